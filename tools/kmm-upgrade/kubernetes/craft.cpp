// SPDX-License-Identifier: Apache-2.0
#include "kmm-upgrade/kubernetes/craft.hpp"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/text.hpp"
#include "cluster/worker/pod_runner.hpp"
#include "kmm-upgrade/kubernetes/differences.hpp"
#include "kmm-upgrade/kubernetes/freezing.hpp"
#include "kmm-upgrade/kubernetes/source.hpp"
#include "kmm-upgrade/kubernetes/stx.hpp"
#include "kmm-upgrade/kubernetes/verbs.hpp"
#include "kmm-upgrade/kubernetes/way_back.hpp"
#include "kmm-upgrade/session/newcomers.hpp"
#include "kmm-upgrade/session/walk_options.hpp"
#include "kubernetes/check/checks.hpp"
#include "kubernetes/check/etcd_leader.hpp"
#include "kubernetes/finding/configuration.hpp"
#include "kubernetes/versions/catalogue.hpp"
#include "sys/random.hpp"
#include "upgrade/drive_cluster/rights.hpp"
#include "upgrade/drive_kubernetes/attended_actor.hpp"
#include "upgrade/drive_kubernetes/kubernetes_actor.hpp"
#include "upgrade/drive_kubernetes/node_proof.hpp"
#include "upgrade/engine/replay.hpp"
#include "upgrade/kubernetes/subject.hpp"

namespace kmm::tool_upgrade {
namespace {

constexpr const char* k_lease_namespace = "kube-system";
constexpr const char* k_lease_subject = "kubernetes";

/// Removes canary Pods that a killed process has left. An error is printed and does not fail the run, since they end by
/// themselves.
void remove_canary(Access& access, drive::Networking& networking, const upgrade::Run& run) {
    constexpr std::chrono::milliseconds k_patience{60'000};
    if (upgrade::kubernetes::subject_of(run).canary_image.empty()) return;
    try {
        networking.remove_canary(drive::Deadline(access.call.clock(), k_patience));
    } catch (const Error& error) {
        access.call.note("canary Pods are left in kube-system: " + error.message());
    } catch (const drive::Leave&) {
        access.call.note("canary Pods may be left in kube-system");
    }
}

/// Nodes that came after `run` began and do not run what it has brought.
std::vector<std::string> newcomers_of(kubernetes::Inventory inventory, const upgrade::Run& run) {
    const auto subject = upgrade::kubernetes::subject_of(run);
    leave_out(inventory, left_out_names(run));
    const auto seen = kubernetes::observe(inventory);
    std::vector<std::string> names;
    for (const auto& kubelet : seen.kubelets) {
        if (run.find(kubelet.node) != nullptr) continue;
        const auto server = seen.control_plane_of(kubelet.node);
        const bool is_other =
            (!subject.kubelet.empty() && (!kubelet.version || kubelet.version->text() != subject.kubelet)) ||
            (!subject.control_plane.empty() && server && server->text() != subject.control_plane);
        if (is_other) names.push_back(kubelet.node);
    }
    return names;
}

/// Whether the user has kubeadm leave the add-on alone: "kube-proxy", "coredns".
bool is_addon_skipped(const upgrade::Run& run, const std::string& addon) {
    const auto& options = upgrade::kubernetes::subject_of(run).worker_options;
    const auto found = std::find(options.begin(), options.end(), "--skip-phases");
    return found != options.end() && std::next(found) != options.end() &&
           !kubernetes::skipped_phase(*std::next(found), addon).empty();
}

/// Says where CoreDNS is older than what kubeadm of the target deploys: kubeadm leaves it where it takes control planes
/// for not upgraded yet, and where it cannot migrate the Corefile.
void note_old_dns(Call& call, const kubernetes::Inventory& inventory, const upgrade::Run& run) {
    if (is_addon_skipped(run, "coredns")) return;
    const auto target = kubernetes::Version::parse(run.to_version);
    const auto* entry = target ? kubernetes::builtin_catalogue().find(*target) : nullptr;
    const auto deployed = kubernetes::Version::parse(entry == nullptr ? "" : entry->coredns);
    std::vector<std::string> old;
    for (const auto& pod : inventory.pods) {
        const auto* app = kubernetes::find_label(pod.meta.labels, "k8s-app");
        if (pod.meta.ns != "kube-system" || app == nullptr || *app != "kube-dns") continue;
        for (const auto& container : pod.containers) {
            const auto version = kubernetes::Version::of_image(container.image);
            if (container.name == "coredns" && deployed && version && *version < *deployed)
                old.push_back(fmt::format("{} ({})", base::escape(pod.meta.name), version->text()));
        }
    }
    if (!old.empty())
        call.note(fmt::format("CoreDNS is older than {}, which kubeadm of {} deploys: {}: kubectl rollout status -n "
                              "kube-system deployment coredns; if that is done, kubeadm has left it as it was",
                              deployed->text(), run.to_version, kubernetes::name_some(old)));
}

/// Says where kube-proxy is older than every control plane: kubeadm leaves it where it takes control planes for not
/// upgraded yet, and its Pods may not have been replaced yet.
void note_old_proxies(Call& call, const kubernetes::Inventory& inventory, const upgrade::Run& run) {
    if (is_addon_skipped(run, "kube-proxy")) return;
    std::vector<std::string> old;
    const auto seen = kubernetes::observe(inventory);
    const auto lowest = seen.lowest_control_plane();
    for (const auto& proxy : seen.proxies)
        if (lowest && proxy.version && *proxy.version < *lowest)
            old.push_back(fmt::format("{} ({})", base::escape(proxy.node), proxy.version->text()));
    if (!old.empty())
        call.note(fmt::format("kube-proxy is older than the control plane on {}: kubectl rollout status -n kube-system "
                              "daemonset kube-proxy; if that is done, kubeadm has left it as it was",
                              kubernetes::name_some(old)));
}

class KubernetesHands final : public Hands {
public:
    KubernetesHands(Access& access, std::unique_ptr<cluster::NodeRunner> runner, Extent extent)
        : access_(access),
          extent_(extent),
          freezing_(access),
          runner_(std::move(runner)),
          view_(drive::view_of(access.cluster.opened())),
          networking_(drive::networking_of(access.cluster.opened(), access.call.clock(),
                                           [&access](const std::string& text) { access.call.note(text); })) {}

    [[nodiscard]] std::unique_ptr<drive::Actor> actor(drive::Recorder& recorder) override {
        const auto stopped = [this] { return access_.call.stopped(); };
        if (extent_ == Extent::onward) freezing_.set(recorder.header());
        auto steps = std::make_unique<drive::KubernetesActor>(*view_, *access_.cluster.opened().workloads, *networking_,
                                                              *runner_, recorder, access_.call.clock(), stopped);
        return std::make_unique<drive::AttendedActor>(std::move(steps), recorder, access_.call.clock(), stopped,
                                                      [this] { freezing_.tell_changes(); });
    }
    void require_readable() override { static_cast<void>(view_->read(drive::ReadExtent::control_plane)); }
    void tell_after(const upgrade::Run& run) override {
        remove_canary(access_, *networking_, run);
        if (upgrade::is_followed(run)) return;
        freezing_.lift(run);
        if (run.state != upgrade::k_run_complete) return;
        std::optional<kubernetes::Inventory> seen;
        note_newcomers(access_.call, run, {"does not run " + run.to_version, "do not run " + run.to_version}, [&] {
            seen = view_->read(drive::ReadExtent::system);
            return newcomers_of(*seen, run);
        });
        if (!seen) return;
        note_old_proxies(access_.call, *seen, run);
        note_old_dns(access_.call, *seen, run);
    }

private:
    Access& access_;
    Extent extent_;
    Freezing freezing_;
    std::unique_ptr<cluster::NodeRunner> runner_;
    std::unique_ptr<drive::ClusterView> view_;
    std::unique_ptr<drive::Networking> networking_;
};

class KubernetesCraft final : public Craft {
public:
    [[nodiscard]] const upgrade::Procedures& procedures() const override { return upgrade::kubernetes::procedures(); }
    [[nodiscard]] OwnVerbs verbs() const override { return {{start_kubernetes_verb()}, guarding_verbs()}; }

    [[nodiscard]] std::unique_ptr<Hands> take_up(Access& access, upgrade::Run& run, Extent extent) const override {
        auto& cluster = access.cluster.opened();
        drive::require_cluster_of(run, *cluster.store);
        choose_kubernetes_reach(access, run.options, cluster.place);
        if (extent == Extent::onward) access.cluster.expect(run.options, "");
        return std::make_unique<KubernetesHands>(
            access, kubernetes_runner(access, run.options, run.lineage, extent != Extent::record,
                                      kubernetes_rules(upgrade::kubernetes::subject_of(run))),
            extent);
    }

    [[nodiscard]] Exit follow(Access& access, const upgrade::Run& run) const override {
        return go_on_to_target(access, run);
    }

    [[nodiscard]] bool revise(const cli::Args& args, upgrade::Run& run) const override {
        const auto before = upgrade::kubernetes::subject_of(run);
        auto subject = before;
        const auto take = [&](const char* name, std::string& into) {
            if (args.source(name) == "option") into = args.get(name).value_or("");
        };
        take("canary-image", subject.canary_image);
        take("ignore-preflight-errors", subject.ignored_preflight);
        if (subject == before) return false;
        if (subject.canary_image != before.canary_image && subject.networking.empty())
            throw Error(Exit::usage, "bad-value", "--canary-image: this upgrade has no manifests of networking to try")
                .hint("leave it out");
        set_subject(run, subject);
        return true;
    }
    void restore_data(Access& access) const override { restore_etcd(access); }
    [[nodiscard]] std::string frame(const upgrade::Run& run, Frame which) const override {
        return which == Frame::hosts ? framed_hosts(run) : framed_upgrade(run);
    }
    [[nodiscard]] std::vector<Difference> differences(RecordAccess& record, const upgrade::Run& run) const override {
        return look_for_differences(record, run);
    }
    [[nodiscard]] bool is_restoring(const upgrade::Run& run) const override {
        return upgrade::kubernetes::is_restoring_etcd(run);
    }

    void clean_up(Access& access, const upgrade::Run& run) const override {
        try {
            // One that has been started since then is not touched.
            auto& cluster = access.cluster.open(access.cluster.place(&run));
            auto* server = cluster.server;
            if (server == nullptr || access.record.directory().holder()) return;
            remove_canary(access, *drive::networking_of(cluster, access.call.clock(), [](const std::string&) {}), run);
            drive::Freeze freeze(server->client(), access.call.clock(), [] { return false; });
            const auto notice = freeze.look();
            if (notice && is_notice_of(access, *notice, run)) Freezing(access).lift(run);
        } catch (const Error&) {
            return;  // it ends by itself
        }
    }
};

/// What was true of the way when it began may be so no more: applications are asked again, from what runs now to the
/// version of `hop`. Errors: those of require_checks.
void require_applications(Access& access, const kubernetes::Catalogue& catalogue,
                          const drive::KubernetesRequest& request, const drive::Hop& hop) {
    const auto& subject = request.subject;
    if (catalogue.applications.empty() && subject.app_check.empty()) return;
    auto& call = access.call;
    const auto extent = catalogue.applications.empty() ? drive::ReadExtent::control_plane : extent_of(catalogue);
    auto inventory = drive::view_of(access.cluster.opened())->read(extent);
    leave_out(inventory, request.left_out);
    const auto seen = kubernetes::observe(inventory);
    kubernetes::CheckInput input{inventory, seen, catalogue,
                                 version_argument(hop.control_plane.empty() ? hop.kubelet : hop.control_plane)};
    std::optional<drive::DirectoryPrograms> programs;
    if (!subject.app_check.empty()) programs.emplace(subject.app_check, [&call] { return call.stopped(); });
    input.programs = programs ? &*programs : nullptr;
    require_checks(call, input, subject.ignored_checks, kubernetes::application_checks(),
                   fmt::format("{}: not begun", drive::to_string(hop)));
}

/// The control plane whose etcd leads now: it may be another one than when the way began. "" if none says so, or if
/// there is only one control plane.
std::string ask_etcd_leader(Call& call, cluster::NodeRunner& runner, const kubernetes::Inventory& inventory) {
    kubernetes::Inventory control_planes;
    for (const auto& node : inventory.nodes)
        if (node.is_control_plane()) control_planes.nodes.push_back(node);
    return control_planes.nodes.size() < 2
               ? std::string()
               : kubernetes::etcd_leader(ask_nodes(call, runner, control_planes, NodeQuestions{}));
}

/// Nothing of KMM is read or written: no rights are asked for that.
void limit_writes(Access& access) {
    if (auto* server = access.cluster.opened().server) server->limit_writes(cluster::KubeStore::Writes::nodes);
}

}  // namespace

void choose_kubernetes_reach(Access& access, upgrade::Options& options, const cluster::Place& place) {
    access.reach.choose(options, place, Reach::Age::recorded);
    if (options.via != upgrade::Via::operator_) return;
    throw Error(Exit::usage, "bad-value",
                fmt::format("--via {}: nodes are reached by self, ssh or local here", upgrade::to_string(options.via)))
        .hint("KMM's operator upgrades no Kubernetes");
}

Target kubernetes_target(const std::string& lineage) {
    return {k_lease_namespace, k_lease_subject, "", lineage, {}, Target::Subject::kubernetes, {"kernel"}};
}

std::vector<kube::Rule> kubernetes_rules(const upgrade::kubernetes::Subject& subject) {
    return drive::subject_rules(subject);
}

std::unique_ptr<cluster::NodeRunner> kubernetes_runner(Access& access, const upgrade::Options& options,
                                                       const std::string& lineage, bool to_change,
                                                       const std::vector<kube::Rule>& rights) {
    auto target = kubernetes_target(lineage);
    target.rights = rights;
    limit_writes(access);
    if (options.via == upgrade::Via::self)
        target.rights.push_back(cluster::worker_log_rule(
            options.worker_namespace.empty() ? std::string(k_lease_namespace) : options.worker_namespace));
    if (to_change) access.cluster.secure(options, target, ClusterAccess::Purpose::change);
    return access.reach.runner(options, target);
}

std::unique_ptr<cluster::NodeRunner> asking_runner(Access& access, upgrade::Options options) {
    const bool is_dump = !access.call.args().all("filename").empty();
    const auto place = is_dump ? cluster::Place{"-", "", std::nullopt} : access.cluster.place();
    choose_kubernetes_reach(access, options, place);
    if (options.via == upgrade::Via::self) access.cluster.open(place);
    // No Pod of another caller is taken for ours.
    sys::LinuxRandom random;
    return access.reach.runner(options, kubernetes_target(sys::uuid_v4(random)));
}

void hold_kubernetes_lease(Access& access, const upgrade::Options& options) {
    upgrade::Signature signature;
    sign_request(signature);
    const auto target = kubernetes_target(signature.lineage);
    limit_writes(access);
    access.cluster.secure(options, target, ClusterAccess::Purpose::change);
}

void end_way(Access& access, const upgrade::Run& run, const kubernetes::Observation& seen) {
    const auto target = upgrade::kubernetes::subject_of(run).target;
    auto& opened = access.cluster.opened();
    const auto view = drive::view_of(opened);
    std::string problem = view->unready_reason();
    const auto left_out = left_out_names(run);
    std::string first;
    for (const auto& node : view->read(drive::ReadExtent::nodes).nodes) {
        if (std::find(left_out.begin(), left_out.end(), node.meta.name) != left_out.end()) continue;
        const bool is_control_plane = node.is_control_plane();
        if (problem.empty()) problem = drive::readiness_problem(node, seen, is_control_plane);
        if (is_control_plane) first = node.meta.name;
    }
    if (problem.empty()) problem = drive::configuration_problem(view->about(first), version_argument(target));
    if (!problem.empty())
        throw Error(Exit::unhealthy, "not-verified",
                    fmt::format("every control plane and kubelet runs {} already, but {}", target, problem))
            .hint("correct it, then kmm-upgrade resume");
    if (opened.server != nullptr) Freezing(access).lift(run);
    access.record.directory().archive(upgrade::describe(run).slug());
    access.call.note(fmt::format("every control plane and kubelet runs {} already: the upgrade is complete, its record "
                                 "is in the history",
                                 target));
}

Exit go_on_to_target(Access& access, const upgrade::Run& run) {
    const auto subject = upgrade::kubernetes::subject_of(run);
    access.record.open_locked("resume");
    const auto place = access.cluster.place(&run);
    auto& cluster = access.cluster.open(place);
    drive::require_cluster_of(run, *cluster.store);
    drive::KubernetesRequest request;
    request.options = run.options;
    request.subject = subject;
    request.until = run.until;
    request.left_out = left_out_names(run);
    request.is_networking_first = run.rules == &upgrade::kubernetes::procedure_networking_first();
    sign_kubernetes_request(access.call, request);
    choose_kubernetes_reach(access, request.options, place);
    access.cluster.expect(request.options, "");
    const auto catalogue = read_versions(access.call, subject.versions_file);
    drive::take_patches(request, catalogue);
    auto inventory = drive::view_of(cluster)->read(drive::ReadExtent::control_plane);
    leave_out(inventory, request.left_out);
    const auto seen = kubernetes::observe(inventory);
    const auto hops = drive::hops_of(drive::path_to(catalogue, seen, version_argument(subject.target)));
    if (!hops.empty() && hops.front() == drive::Hop{subject.control_plane, subject.kubelet})
        throw Error(
            Exit::unhealthy, "version-changed",
            fmt::format("{} was complete, and the cluster does not run it any more", drive::to_string(hops.front())))
            .hint(fmt::format(
                "find out who changed it: kmm-upgrade versions; then kmm-upgrade delete, and start kubernetes {}",
                subject.target));
    if (hops.empty()) {
        end_way(access, run, seen);
        return Exit::ok;
    }
    require_applications(access, catalogue, request, hops.front());
    auto runner = kubernetes_runner(access, request.options, request.lineage, true, kubernetes_rules(subject));
    if (!hops.front().control_plane.empty())
        request.etcd_leader = ask_etcd_leader(access.call, *runner, inventory);
    return walk_hops(access, request, seen, hops, std::move(runner));
}

Exit walk_hops(Access& access, const drive::KubernetesRequest& request, const kubernetes::Observation& seen,
               const std::vector<drive::Hop>& hops, std::unique_ptr<cluster::NodeRunner> runner) {
    auto run = drive::plan_run(request, seen, hops);
    put_place(run, access.cluster.opened().place);
    auto launched = launch(access, std::move(run),
                           std::make_unique<KubernetesHands>(access, std::move(runner), Extent::onward));
    if (!upgrade::is_followed(launched.run)) return finish(access.call, launched.ended, launched.run);
    const auto exit = finish_one(access.call, launched.ended, launched.run);
    auto next = Exit::ok;
    go_on_after(access, [&] { next = go_on_to_target(access, launched.run); });
    return next == Exit::ok ? exit : next;
}

const Craft& kubernetes_craft() {
    static const KubernetesCraft craft;
    return craft;
}

}  // namespace kmm::tool_upgrade
