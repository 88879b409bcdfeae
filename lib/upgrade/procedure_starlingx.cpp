// SPDX-License-Identifier: Apache-2.0
// StarlingX' Kubernetes upgrade as data. Source: facts StarlingX 1.1, 1.3 and 1.5 (the first code, 2020-02). Guards keep
// the order of that table; their numbers there are the order here. Steps are known, not carried out, by this release.
#include "upgrade/procedure.hpp"

namespace kmm::upgrade {
namespace {

Step make_step(std::string name, Scope scope, StateChange run, std::vector<std::string> guards, std::string action) {
    Step step;
    step.name = std::move(name);
    step.scope = scope;
    step.run = std::move(run);
    step.guards = std::move(guards);
    step.action = std::move(action);
    step.walk = Walk::later;
    return step;
}

Step control_plane(std::string name, StateChange run) {
    auto step = make_step(std::move(name), Scope::node, std::move(run),
                          {"record-exists", "is-controller", "same-controller-as-failed", "patches-in-place",
                           "control-plane-version-known", "unlocked-enabled"},
                          "kube-host-upgrade control-plane");
    step.node = StateChange{{"none"}, "upgrading-control-plane", "none", "upgrading-control-plane-failed"};
    step.verification = "control-plane-at-target";
    return step;
}

Procedure make_starlingx() {
    Procedure::Parts parts;
    parts.name = "starlingx";
    parts.run_initial = "idle";
    parts.node_initial = "none";
    parts.recovery = Recovery::to_failed;
    auto kubelet = make_step("kubelet", Scope::node,
                             {{"upgraded-second-master", "upgraded-networking"}, "upgrading-kubelets", "", ""},
                             {"record-exists", "is-controller-or-worker", "second-master-done-unless-simplex",
                              "available-patches-applied", "controllers-first", "not-yet-at-target", "kubelet-version-known",
                              "locked-online-unless-simplex"},
                             "kube-host-upgrade kubelet");
    kubelet.node = StateChange{{"none"}, "upgrading-kubelet", "none", "upgrading-kubelet-failed"};
    kubelet.verification = "kubelet-at-target";
    parts.steps = {
        make_step("start", Scope::run, {{"idle"}, "", "upgrade-started", ""},
                  {"no-platform-upgrade", "no-upgrade-record", "version-known", "path-allowed", "current-is-active",
                   "applied-patches", "available-patches", "apps-compatible", "health"},
                  "kube-upgrade-start"),
        make_step("download-images", Scope::run,
                  {{"upgrade-started"}, "downloading-images", "downloaded-images", "downloading-images-failed"},
                  {"applied-patches", "available-patches"}, "kube-upgrade-download-images"),
        control_plane("first-master", {{"downloaded-images"}, "upgrading-first-master", "upgraded-first-master",
                                       "upgrading-first-master-failed"}),
        make_step("networking", Scope::run,
                  {{"upgraded-first-master"}, "upgrading-networking", "upgraded-networking", "upgrading-networking-failed"}, {},
                  "kube-upgrade-networking"),
        control_plane("second-master", {{"upgraded-networking"}, "upgrading-second-master", "upgraded-second-master",
                                        "upgrading-second-master-failed"}),
        kubelet,
        make_step("complete", Scope::run, {{"upgrading-kubelets"}, "", "upgrade-complete", ""},
                  {"every-host-idle", "target-is-active"}, "kube-upgrade-complete"),
        make_step("delete", Scope::run, {{"upgrade-complete"}, "", "idle", ""}, {}, "kube-upgrade-delete"),
    };
    return Procedure(std::move(parts));
}

}  // namespace

const Procedure& procedure_starlingx() {
    static const Procedure procedure = make_starlingx();
    return procedure;
}

}  // namespace kmm::upgrade
