// SPDX-License-Identifier: Apache-2.0
// What a call of kmm-worker on a node has come to: its document, its refusal, or why there is neither.
#pragma once

#include <optional>
#include <string_view>

#include "base/error.hpp"
#include "cluster/seam/runner.hpp"

namespace kmm::cluster {

/// An answer, a refusal by the worker (`error`), or neither: then `end` says what the transport knows and `error`
/// explains.
template <typename Value>
struct Reply {
    CallEnd end = CallEnd::completed;
    std::optional<Value> value;
    std::optional<Error> error;
    bool has_result =
        true;  ///< false: the worker has ended without one, so that only a look at the node shows what it did; also
               ///< when it says itself that it was interrupted
    bool has_begun = true;  ///< false: this call certainly has not started the worker
    [[nodiscard]] bool settled() const noexcept { return end == CallEnd::completed; }
};

/// A Reply without a value.
struct NoValue {
    CallEnd end = CallEnd::completed;
    std::optional<Error> error;
    bool has_result = true;
    bool has_begun = true;
};
/// nullopt when `reply` has a document of `kind` in our format and the worker succeeded, else what it has come to.
/// Errors in it: those of the worker; unavailable "node-unreachable"; "worker-failed", "worker-not-found".
[[nodiscard]] std::optional<NoValue> look_for_failure(const WorkerReply& reply, const WorkerCall& call,
                                                      std::string_view kind);

/// look_for_failure as a Reply.
template <typename Value>
[[nodiscard]] std::optional<Reply<Value>> failure(const WorkerReply& reply, const WorkerCall& call,
                                                  std::string_view kind) {
    auto found = look_for_failure(reply, call, kind);
    if (!found) return std::nullopt;
    return Reply<Value>{found->end, std::nullopt, std::move(found->error), found->has_result, found->has_begun};
}

/// A reply that holds `error`, which is this program's, as a worker would have said it.
[[nodiscard]] WorkerReply error_reply(const Error& error);

}  // namespace kmm::cluster
