// SPDX-License-Identifier: Apache-2.0
#include "kube/failure.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/text.hpp"
#include "kube/access.hpp"
#include "net/retry.hpp"
#include "value/reader.hpp"

namespace kmm::kube {

namespace {

constexpr std::size_t k_message_max = 2000;

std::string first_line(std::string_view body) {
    body = base::trim(body);
    const std::string line = base::escape(body.substr(0, std::min(body.find('\n'), std::size_t{200})));
    return line.empty() ? "no explanation" : line;
}

/// `conflict with "kubectl" using v1: .spec.x` names the owner.
std::string owner_of(const Failure::Cause& cause) {
    const std::size_t start = cause.message.find('"');
    const std::size_t end = start == std::string::npos ? start : cause.message.find('"', start + 1);
    return end == std::string::npos ? cause.message : cause.message.substr(start + 1, end - start - 1);
}

Error conflict_error(const Failure& failure, const std::string& said) {
    if (failure.reason == "AlreadyExists") { return Error(Exit::locked, "already-exists", said); }
    if (!failure.has_cause("FieldManagerConflict")) {
        return Error(Exit::locked, "conflict", said).retryable();
    }
    Error error(Exit::locked, "field-conflict", "another manager owns fields that would change");
    for (const auto& cause : failure.causes) {
        if (cause.type == "FieldManagerConflict") {
            error.detail(base::escape(owner_of(cause)), base::escape(cause.field));
        }
    }
    return std::move(error).hint("take the fields over with --force-conflicts, or leave them out");
}

}  // namespace

bool Failure::has_cause(std::string_view type) const {
    return std::any_of(causes.begin(), causes.end(), [&](const Cause& cause) { return cause.type == type; });
}

Failure read_failure(const value::Node& status) {
    Failure failure;
    if (const value::Node* code = status.find("code"); code != nullptr) {
        failure.code = static_cast<int>(code->as_int().value_or(0));
    }
    failure.reason = status.get_string({"reason"});
    failure.message = status.get_string({"message"});
    const value::Node* causes = status.find_path({"details", "causes"});
    if (causes != nullptr) {
        for (const auto& cause : causes->items()) {
            failure.causes.push_back({cause.get_string({"reason"}), cause.get_string({"message"}), cause.get_string({"field"})});
        }
    }
    return failure;
}

Failure read_failure(int status, std::string_view body) {
    Diagnostics faults;
    const auto documents = value::read_json(body, "", faults);
    Failure failure;
    if (documents.size() == 1 && documents.front().root.get_string({"kind"}) == "Status") {
        failure = read_failure(documents.front().root);
    }
    failure.code = status;
    if (failure.message.empty()) { failure.message = first_line(body); }
    return failure;
}

std::string to_string(const Action& action) {
    std::string text = action.verb + " " + action.resource;
    if (!action.subresource.empty()) { text += "/" + action.subresource; }
    const std::string name = action.namespace_.empty() ? action.name : action.namespace_ + "/" + action.name;
    return name.empty() ? text : text + " " + name;
}

Error to_error(const Failure& failure, const Action& action) {
    const std::string text = base::escape(failure.message.substr(0, k_message_max));
    const std::string said = fmt::format("{}: {}", to_string(action), text);
    const auto make = [&]() -> Error {
        switch (failure.code) {
            case 401:
                return Error(Exit::no_permission, "unauthorized", said)
                    .hint("log in again: the token or certificate of the kubeconfig is not accepted any more");
            case 403: {
                const Rule rule{action.verb, action.group, action.resource, action.subresource, action.namespace_, ""};
                return Error(Exit::no_permission, "forbidden", said).hint("this rule is missing:\n" + std::string(base::trim(rule_yaml({rule}))));
            }
            case 404: return Error(Exit::not_found, "object-not-found", said);
            case 409: return conflict_error(failure, said);
            case 410: return Error(Exit::locked, "expired", said).retryable();
            default: break;
        }
        if (failure.code >= 300 && failure.code < 400) {
            return Error(Exit::unavailable, "redirect-refused",
                         fmt::format("{}: expected an answer, found a redirect (HTTP {})", to_string(action), failure.code))
                .hint("cluster.server of the kubeconfig must be the API server itself");
        }
        if (failure.code == 429 || failure.code >= 500) {
            return Error(Exit::unavailable, "api-error", fmt::format("{} (HTTP {})", said, failure.code)).retryable();
        }
        return Error(Exit::data, "rejected", said);
    };
    return std::move(make().cause_http(failure.code));
}

bool is_failed_test(const Failure& failure) {
    return failure.code == 422 && failure.causes.empty() &&
           (failure.message.find("rejected our request due to an error in our request") != std::string::npos ||
            failure.message.find("testing value") != std::string::npos);
}

std::optional<std::chrono::milliseconds> retry_after(const net::Response& response, std::int64_t now_unix) {
    const auto text = response.header("retry-after");
    if (!text) { return std::nullopt; }
    const auto date = response.header("date");
    const auto server_now = date ? net::parse_http_date(*date) : std::nullopt;
    return net::parse_retry_after(*text, server_now.value_or(now_unix));
}

}  // namespace kmm::kube
