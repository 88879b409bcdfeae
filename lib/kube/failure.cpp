// SPDX-License-Identifier: Apache-2.0
#include "kube/failure.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/text.hpp"
#include "kube/access.hpp"
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

/// What to do about an object that admission does not let in.
std::string admission_hint(const Failure& failure, const Action& action) {
    const auto says = [&](std::string_view text) { return failure.message.find(text) != std::string::npos; };
    const std::string ns = action.namespace_.empty() ? "NAMESPACE" : action.namespace_;
    if (says("exceeded quota") || says("failed quota")) {
        return fmt::format("make room: kubectl describe resourcequota -n {}", ns);
    }
    if (says("is being terminated") || failure.has_cause("NamespaceTerminating")) {
        return fmt::format("Namespace {} is being deleted: wait until it is gone, then create it again", ns);
    }
    if (says("violates PodSecurity")) {
        return fmt::format("kubectl label namespace {} pod-security.kubernetes.io/enforce=privileged --overwrite", ns);
    }
    if (says("error looking up service account")) {
        return fmt::format("create the ServiceAccount: kubectl get serviceaccounts -n {}", ns);
    }
    if (says("admission webhook")) { return "the webhook that is named forbids it: its owner must make an exception"; }
    return "no right is missing: change what the API server's admission refuses";
}

Error forbidden_error(const Failure& failure, const Action& action, const std::string& said) {
    Error error(Exit::no_permission, "forbidden", said);
    if (is_refused_by_admission(failure.code, failure.message)) {
        return std::move(error).hint(admission_hint(failure, action));
    }
    const Rule rule{action.verb, action.group, action.resource, action.subresource, action.namespace_, ""};
    return std::move(error).hint("this rule is missing:\n" + std::string(base::trim(rule_yaml({rule}))));
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
            failure.causes.push_back(
                {cause.get_string({"reason"}), cause.get_string({"message"}), cause.get_string({"field"})});
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
            case 403: return forbidden_error(failure, action, said);
            case 404: {
                Error error(Exit::not_found, "object-not-found", said);
                const bool no_namespace = action.verb == "create" && failure.message.starts_with("namespaces ");
                if (no_namespace) { error.hint("kubectl create namespace " + action.namespace_); }
                return error;
            }
            case 409: return conflict_error(failure, said);
            case 410: return Error(Exit::locked, "expired", said).retryable();
            default: break;
        }
        if (failure.code >= 300 && failure.code < 400) {
            return Error(Exit::unavailable, "redirect-refused",
                         fmt::format("{}: expected an answer, found a redirect (HTTP {})", to_string(action),
                                     failure.code))
                .hint("cluster.server of the kubeconfig must be the API server itself");
        }
        if (failure.code == 429 || failure.code >= 500) {
            Error error(Exit::unavailable, "api-error", fmt::format("{} (HTTP {})", said, failure.code));
            if (failure.message.find("failed calling webhook") != std::string::npos) {
                error.hint(
                    "an admission webhook does not answer: kubectl get "
                    "validatingwebhookconfigurations,mutatingwebhookconfigurations");
            } else if (is_refused_by_admission(failure.code, failure.message)) {
                error.hint(admission_hint(failure, action));
            }
            return std::move(error).retryable();
        }
        Error error(Exit::data, "rejected", said);
        if (is_refused_by_admission(failure.code, failure.message)) { error.hint(admission_hint(failure, action)); }
        return error;
    };
    return std::move(make().cause_http(failure.code));
}

bool is_refused_by_admission(int status, std::string_view message) {
    const auto says = [&](std::string_view text) { return message.find(text) != std::string_view::npos; };
    if (says("admission webhook") && says("denied the request")) { return true; }
    if (says("ValidatingAdmissionPolicy") && says("denied request")) { return true; }
    // `pods "x" is forbidden: WHY`; authorizers always say: User "y" cannot VERB resource "pods".
    return status == 403 && says(" is forbidden: ") && !says(" cannot ");
}

bool is_server_trouble(const Error& error) {
    const std::string& code = error.code();
    if (code == "api-unreachable" || code == "exec-plugin" || code == "bad-answer") { return true; }
    // Workers have codes of the same name, for registries; theirs have no status of an API server.
    const auto status = error.http_cause();
    if (!status) { return false; }
    if (code == "unauthorized" || code == "redirect-refused") { return true; }
    return code == "api-error" && (*status == 429 || *status == 502 || *status == 503 || *status == 504) &&
           !is_refused_by_admission(*status, error.message());
}

bool is_right_missing(const Error& error) {
    if (error.code() != "forbidden") { return false; }
    const bool is_named = std::any_of(error.details().begin(), error.details().end(),
                                      [](const auto& detail) { return detail.first == "right"; });
    return is_named || (error.http_cause() == 403 && !is_refused_by_admission(403, error.message()));
}

bool is_failed_test(const Failure& failure) {
    return failure.code == 422 && failure.causes.empty() &&
           (failure.message.find("rejected our request due to an error in our request") != std::string::npos ||
            failure.message.find("testing value") != std::string::npos);
}

}  // namespace kmm::kube
