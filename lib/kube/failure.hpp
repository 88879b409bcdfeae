// SPDX-License-Identifier: Apache-2.0
// What the API server says when it does not do what was asked.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "net/http.hpp"
#include "value/node.hpp"

namespace kmm::kube {

/// meta/v1 Status, as far as decisions and messages need it.
struct Failure {
    int code = 0;         ///< HTTP status
    std::string reason;   ///< "Conflict", "AlreadyExists", "NotFound", ...; "" if the body was no Status
    std::string message;
    struct Cause {
        std::string type, message, field;
    };
    std::vector<Cause> causes;

    /// True if one of the causes is of that type ("DisruptionBudget", "FieldManagerConflict", "NamespaceTerminating").
    [[nodiscard]] bool has_cause(std::string_view type) const;
};

/// Reads the body of a reply that is no success. A body that is no Status gives its first line as the message.
[[nodiscard]] Failure read_failure(int status, std::string_view body);
/// The same for an object, such as that of a watch's ERROR event.
[[nodiscard]] Failure read_failure(const value::Node& status);

/// What a request was about, for messages and for the rule that is missing after a 403.
struct Action {
    std::string verb;      ///< as RBAC names it: get, list, watch, create, update, patch, delete
    std::string group, resource, subresource;
    std::string namespace_, name;
};

/// "patch nodes/status node-a".
[[nodiscard]] std::string to_string(const Action& action);

/// True for what admission says (quotas, webhooks, Pod security, a Namespace that is ending, a ServiceAccount that is
/// not there): it shares its statuses with missing rights and with faults of the object.
[[nodiscard]] bool is_refused_by_admission(int status, std::string_view message);

/// The failure as an error:
///   404 not_found "object-not-found"; 403 no_permission "forbidden", the missing RBAC rule as hint unless admission
///   said it; 401 no_permission "unauthorized"; 409 locked "already-exists", "field-conflict" (details: owner and field
///   of each conflict) or "conflict" (retryable); 410 locked "expired"; 400, 413, 415, 422 data "rejected"; 3xx
///   unavailable "redirect-refused"; 429 and 5xx unavailable "api-error" (retryable).
[[nodiscard]] Error to_error(const Failure& failure, const Action& action);

/// True if `error`, of a Client, is about the way to the API server or our account there, not about what was asked for:
/// nothing can be concluded from it, and the same request may succeed later.
[[nodiscard]] bool is_server_trouble(const Error& error);

/// True if `error`, of a Client, says that our account lacks a right. What admission refuses is no such error.
[[nodiscard]] bool is_right_missing(const Error& error);

/// True for a JSON patch whose `test` found something else: the server says no more than that the patch cannot be
/// applied.
[[nodiscard]] bool is_failed_test(const Failure& failure);

}  // namespace kmm::kube
