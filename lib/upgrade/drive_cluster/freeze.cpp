// SPDX-License-Identifier: Apache-2.0
#include "upgrade/drive_cluster/freeze.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>

#include <fmt/format.h>

#include "base/number.hpp"
#include "base/text.hpp"
#include "value/writer.hpp"

namespace kmm::drive {
namespace {

using value::Node;

constexpr const char* k_freeze_namespace = "kube-system";
constexpr const char* k_probe_name = "kmm-upgrade-freeze-probe";
constexpr const char* k_freeze_group = "admissionregistration.k8s.io/v1";
constexpr std::size_t k_releases_max = 512U
                                       << 10U;  ///< bytes of the list in the ConfigMap, which etcd limits to 1.5 MiB
constexpr std::int64_t k_clock_tolerance = 5;  ///< seconds
constexpr std::chrono::milliseconds k_proof_patience{30'000}, k_proof_pause{200};

const kube::Resource k_freeze_policies{"admissionregistration.k8s.io", "v1", "validatingadmissionpolicies",
                                       "ValidatingAdmissionPolicy", kube::Scope::cluster};
const kube::Resource k_freeze_bindings{"admissionregistration.k8s.io", "v1", "validatingadmissionpolicybindings",
                                       "ValidatingAdmissionPolicyBinding", kube::Scope::cluster};

// CEL knows no time. When an object was made is set by the API server before a policy is asked, and when the one who
// writes has changed it: what is later than notAfter comes after the freeze. The server takes what an object says of
// other writers as it is sent: whoever forges that gets past the freeze. In a DELETE nothing says when it is.
constexpr const char* k_is_app =
    "request.resource.group != '' ? (request.operation != 'UPDATE' || object.spec != oldObject.spec) : "
    "request.resource.resource == 'secrets' ? (request.operation == 'DELETE' ? oldObject : object).?type.orValue('') "
    "== 'helm.sh/release.v1' : (request.operation == 'DELETE' ? oldObject : "
    "object).?metadata.labels.owner.orValue('') == 'helm'";
constexpr const char* k_is_free =
    "request.name != 'kmm-upgrade-freeze-probe' && (request.userInfo.username in variables.users || "
    "request.namespace in variables.namespaces)";
constexpr const char* k_is_late =
    "(request.operation == 'DELETE' ? oldObject : object).?metadata.creationTimestamp.optMap(t, timestamp(t) > "
    "variables.end).orValue(false) || (request.operation != 'CREATE' && (request.operation == 'UPDATE' ? object : "
    "oldObject).?metadata.managedFields.orValue([]).exists(f, f.?time.optMap(t, timestamp(t) > "
    "variables.end).orValue(false)))";

/// A string literal of CEL.
std::string cel_text(const std::string& text) {
    std::string literal = "'";
    for (const char c : text) {
        if (c == '\'' || c == '\\') literal += '\\';
        // Nothing that is written there has control characters.
        literal += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
    }
    return literal + "'";
}

std::string cel_list(const std::vector<std::string>& texts) {
    std::vector<std::string> literals;
    for (const auto& text : texts) literals.push_back(cel_text(text));
    return "[" + base::join(literals, ", ") + "]";
}

Node named_object(const char* api_version, const char* kind, Node metadata) {
    metadata.set("labels", Node::mapping({{"app.kubernetes.io/managed-by", "kmm-upgrade"}}));
    return Node::mapping({{"apiVersion", api_version}, {"kind", kind}, {"metadata", std::move(metadata)}});
}

Node rule_of(std::vector<std::string> groups, std::vector<std::string> versions, std::vector<std::string> kinds) {
    return Node::mapping({{"apiGroups", Node::strings(groups)},
                          {"apiVersions", Node::strings(versions)},
                          {"resources", Node::strings(kinds)},
                          {"operations", Node::strings(std::vector<std::string>{"CREATE", "UPDATE", "DELETE"})}});
}

Node named_expression(const char* name, const std::string& expression) {
    return Node::mapping({{"name", name}, {"expression", expression}});
}

/// When the API server has changed an object last, by its own clock; nullopt if it does not say.
std::optional<std::int64_t> changed_at(const Node& object) {
    std::optional<std::int64_t> last;
    if (const auto* managers = object.find_path({"metadata", "managedFields"}); managers != nullptr)
        for (const auto& each : managers->items())
            if (const auto time = base::parse_rfc3339(each.get_string({"time"})); time && (!last || *time > *last))
                last = time;
    return last;
}

std::vector<std::string> words_of(const std::string& text) {
    std::vector<std::string> words;
    for (const auto piece : base::split(text, ','))
        if (!piece.empty()) words.emplace_back(piece);
    return words;
}

}  // namespace

std::string_view to_string(FreezeMode mode) noexcept {
    switch (mode) {
        case FreezeMode::enforced: return "enforced";
        case FreezeMode::advisory: return "advisory";
        case FreezeMode::lifted: return "lifted";
        case FreezeMode::off: break;
    }
    return "off";
}

Node freeze_config_map(const FreezeNotice& notice) {
    auto object =
        named_object("v1", "ConfigMap", Node::mapping({{"name", k_freeze_name}, {"namespace", k_freeze_namespace}}));
    auto data = Node::mapping({{"mode", to_string(notice.mode)},
                               {"from", notice.from},
                               {"to", notice.to},
                               {"holder", notice.holder},
                               {"since", notice.since},
                               {"notAfter", notice.not_after},
                               {"users", base::join(notice.users, ",")},
                               {"namespaces", base::join(notice.namespaces, ",")}});
    if (!notice.record.empty()) data.set("record", notice.record);
    std::string releases;
    for (const auto& [name, revision] : notice.releases) releases += fmt::format("{} {}\n", name, revision);
    if (!releases.empty() && releases.size() <= k_releases_max) data.set("releases", releases);
    object.set("data", std::move(data));
    return object;
}

FreezeNotice read_freeze(const Node& config_map) {
    const auto text = [&](const char* key) { return config_map.get_string({"data", key}); };
    FreezeNotice notice;
    const auto mode = text("mode");
    for (const auto each : {FreezeMode::enforced, FreezeMode::advisory, FreezeMode::lifted})
        if (mode == to_string(each)) notice.mode = each;
    notice.from = text("from");
    notice.to = text("to");
    notice.holder = text("holder");
    notice.record = text("record");
    notice.since = text("since");
    notice.not_after = text("notAfter");
    notice.users = words_of(text("users"));
    notice.namespaces = words_of(text("namespaces"));
    const auto releases = text("releases");
    for (const auto line : base::split(releases, '\n')) {
        const auto blank = line.find(' ');
        const auto revision =
            blank == std::string_view::npos ? std::nullopt : base::parse_number<std::int64_t>(line.substr(blank + 1));
        if (revision) notice.releases.emplace(std::string(line.substr(0, blank)), *revision);
    }
    return notice;
}

Node freeze_policy(const FreezeNotice& notice) {
    auto object = named_object(k_freeze_group, "ValidatingAdmissionPolicy", Node::mapping({{"name", k_freeze_name}}));
    auto rules = Node::sequence();
    rules.push_back(rule_of({""}, {"v1"}, {"secrets", "configmaps"}));
    rules.push_back(rule_of({"helm.toolkit.fluxcd.io"}, {"*"}, {"helmreleases"}));
    rules.push_back(rule_of({"kustomize.toolkit.fluxcd.io"}, {"*"}, {"kustomizations"}));
    rules.push_back(rule_of({"argoproj.io"}, {"*"}, {"applications", "applicationsets"}));
    rules.push_back(rule_of({"operators.coreos.com"}, {"*"}, {"subscriptions"}));
    auto conditions = Node::sequence();
    conditions.push_back(named_expression("is-app", k_is_app));
    auto variables = Node::sequence();
    variables.push_back(named_expression("end", fmt::format("timestamp({})", cel_text(notice.not_after))));
    variables.push_back(named_expression("users", cel_list(notice.users)));
    variables.push_back(named_expression("namespaces", cel_list(notice.namespaces)));
    variables.push_back(named_expression("free", k_is_free));
    variables.push_back(named_expression("late", k_is_late));
    auto validations = Node::sequence();
    const auto message = fmt::format(
        "the cluster is being upgraded from {} to {} by {}: applications cannot be changed until it ends, at the "
        "latest at {} (kmm-upgrade show there; kmm-upgrade unfreeze)",
        base::escape(notice.from), base::escape(notice.to), base::escape(notice.holder), notice.not_after);
    validations.push_back(Node::mapping(
        {{"expression", "variables.free || variables.late"}, {"reason", "Forbidden"}, {"message", message}}));
    // A policy that cannot be computed must never block a cluster.
    object.set("spec", Node::mapping({{"failurePolicy", "Ignore"},
                                      {"matchConstraints", Node::mapping({{"resourceRules", std::move(rules)}})},
                                      {"matchConditions", std::move(conditions)},
                                      {"variables", std::move(variables)},
                                      {"validations", std::move(validations)}}));
    return object;
}

Node freeze_binding() {
    auto object =
        named_object(k_freeze_group, "ValidatingAdmissionPolicyBinding", Node::mapping({{"name", k_freeze_name}}));
    object.set("spec", Node::mapping({{"policyName", k_freeze_name},
                                      {"validationActions", Node::strings(std::vector<std::string>{"Deny"})}}));
    return object;
}

Freeze::Freeze(kube::Client& client, sys::Clock& clock, std::function<bool()> interrupted)
    : client_(client), clock_(clock), interrupted_(std::move(interrupted)) {}

std::optional<FreezeNotice> Freeze::look() {
    const auto found = client_.find(kube::resources::k_config_maps, {k_freeze_namespace, k_freeze_name});
    return found ? std::optional(read_freeze(*found)) : std::nullopt;
}

FreezeMode Freeze::set(FreezeNotice notice, bool wanted, std::chrono::milliseconds duration) {
    const auto before = look();
    const bool is_same = before && before->to == notice.to;
    if (is_same && before->mode == FreezeMode::lifted) return FreezeMode::lifted;
    notice.mode = !wanted                             ? FreezeMode::off
                  : client_.serves(k_freeze_policies) ? FreezeMode::enforced
                                                      : FreezeMode::advisory;
    const auto begin_at = [&](std::int64_t now) {
        notice.since = is_same ? before->since : base::format_rfc3339(now);
        notice.not_after =
            base::format_rfc3339(now + std::chrono::duration_cast<std::chrono::seconds>(duration).count());
    };
    const auto now = clock_.now_unix();
    begin_at(now);
    if (notice.mode == FreezeMode::advisory) {
        notice.releases = is_same && !before->releases.empty() ? before->releases : list_revisions();
        known_ = notice.releases;
    }
    const auto applied = client_.apply(kube::resources::k_config_maps, freeze_config_map(notice), kube::Force::yes);
    // The policy compares its end with times that the API server has set: the end is by its clock.
    if (const auto there = changed_at(applied); there && std::abs(*there - now) > k_clock_tolerance) {
        begin_at(*there);
        client_.apply(kube::resources::k_config_maps, freeze_config_map(notice), kube::Force::yes);
    }
    if (notice.mode != FreezeMode::enforced) return notice.mode;
    client_.apply(k_freeze_policies, freeze_policy(notice), kube::Force::yes);
    client_.apply(k_freeze_bindings, freeze_binding(), kube::Force::yes);
    prove();
    return notice.mode;
}

void Freeze::prove() {
    // As Helm keeps releases in ConfigMaps. Nobody needs a right to make Secrets for it.
    auto probe =
        named_object("v1", "ConfigMap", Node::mapping({{"name", k_probe_name}, {"namespace", k_freeze_namespace}}));
    probe.find("metadata")->find("labels")->set("owner", "helm");
    kube::Call call;
    call.method = "POST";
    call.path = kube::path_of(kube::resources::k_config_maps, {k_freeze_namespace, ""});
    call.query = {{"dryRun", "All"}};
    call.content_type = "application/json";
    call.body = value::to_json(probe);
    call.action = {"create", "", "configmaps", "", k_freeze_namespace, k_probe_name};
    // Others may refuse it, too: that proves nothing.
    const auto is_refusal = [](const kube::Failure& failure) {
        return failure.message.find(fmt::format("ValidatingAdmissionPolicy '{}'", k_freeze_name)) != std::string::npos;
    };
    call.is_answer = is_refusal;
    const auto end = clock_.monotonic() + k_proof_patience;
    for (;;) {
        const auto reply = client_.exchange(call);
        if (reply.failure && is_refusal(*reply.failure)) return;
        if (reply.failure) throw kube::to_error(*reply.failure, call.action);
        if (clock_.monotonic() >= end) break;
        if (!clock_.sleep_for(k_proof_pause) || interrupted_())
            throw Error(Exit::interrupted, "interrupted", "stopped while the freeze of applications was proven");
    }
    throw Error(
        Exit::unhealthy, "freeze-without-effect",
        fmt::format("the API server has the policy {} for 30 s and still accepts a Helm release", k_freeze_name))
        .hint(fmt::format("kubectl get validatingadmissionpolicy {} -o yaml shows its status; --no-freeze goes without",
                          k_freeze_name));
}

void Freeze::remove_policy() {
    static_cast<void>(client_.remove(k_freeze_bindings, {"", k_freeze_name}));
    static_cast<void>(client_.remove(k_freeze_policies, {"", k_freeze_name}));
}

bool Freeze::lift() {
    if (client_.serves(k_freeze_policies)) remove_policy();
    known_.reset();
    return client_.remove(kube::resources::k_config_maps, {k_freeze_namespace, k_freeze_name}) !=
           kube::Deletion::already_gone;
}

void Freeze::lift_for_now(const FreezeNotice& notice) {
    if (client_.serves(k_freeze_policies)) remove_policy();
    auto lifted = notice;
    lifted.mode = FreezeMode::lifted;
    lifted.releases.clear();
    client_.apply(kube::resources::k_config_maps, freeze_config_map(lifted), kube::Force::yes);
}

std::map<std::string, std::int64_t, std::less<>> Freeze::list_revisions() {
    std::map<std::string, std::int64_t, std::less<>> revisions;
    kube::ListQuery query;
    query.label_selector = "owner=helm";
    query.content = kube::ListQuery::Content::metadata;
    for (const auto* resource : {&kube::resources::k_secrets, &kube::resources::k_config_maps}) {
        for (const auto& object : client_.list_all(*resource, query)) {
            const auto revision =
                base::parse_number<std::int64_t>(object.get_string({"metadata", "labels", "version"}));
            auto& highest = revisions[object.get_string({"metadata", "namespace"}) + "/" +
                                      object.get_string({"metadata", "labels", "name"})];
            highest = std::max(highest, revision.value_or(0));
        }
    }
    return revisions;
}

std::vector<std::string> Freeze::changed_releases() {
    std::vector<std::string> changed;
    if (!known_) return changed;
    auto now = list_revisions();
    for (const auto& [name, revision] : now) {
        const auto before = known_->find(name);
        if (before == known_->end()) changed.push_back(fmt::format("{}: installed", base::escape(name)));
        else if (before->second != revision)
            changed.push_back(fmt::format("{}: revision {} -> {}", base::escape(name), before->second, revision));
    }
    for (const auto& [name, revision] : *known_)
        if (!now.contains(name)) changed.push_back(fmt::format("{}: uninstalled", base::escape(name)));
    known_ = std::move(now);
    return changed;
}

}  // namespace kmm::drive
