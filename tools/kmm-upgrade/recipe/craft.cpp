// SPDX-License-Identifier: Apache-2.0
// How recorded runs about recipes are taken up.
#include <utility>

#include <fmt/format.h>

#include "base/text.hpp"
#include "kmm-upgrade/craft.hpp"
#include "kmm-upgrade/recipe/verbs.hpp"
#include "kmm-upgrade/session/releases.hpp"
#include "kmm-upgrade/session/walk_options.hpp"
#include "plan/kmm/template.hpp"
#include "upgrade/drive/driver.hpp"
#include "upgrade/drive_recipe/recipe_actor.hpp"

namespace kmm::tool_upgrade {
namespace {

class RecipeHands final : public Hands {
public:
    explicit RecipeHands(Access& access) : access_(access) {}

    [[nodiscard]] std::unique_ptr<drive::Actor> actor(drive::Recorder& recorder) override {
        return std::make_unique<drive::RecipeActor>(
            recipe_server(access_).client(), recorder, access_.call.clock(), [this] { return access_.call.stopped(); },
            [this](const std::string& text) { access_.call.note(text); }, access_.call.args().flag("force-conflicts"));
    }
    void require_readable() override {}
    void tell_after(const upgrade::Run& run) override {
        if (run.state != upgrade::k_run_complete || upgrade::recipe::is_removal(run)) return;
        const auto subject = upgrade::recipe::subject_of(run);
        auto& client = recipe_server(access_).client();
        try {
            const auto all = drive::ReleaseStore(client, subject.space).of(subject.name);
            const auto* now = drive::revision_of(all, subject.revision);
            if (now == nullptr) return;
            for (const auto& node : drive::uncovered_nodes(client, *now))
                access_.call.note(fmt::format(
                    "node {} runs {}, for which this release has no copy{}: kmm-upgrade start recipe {}{}", node.name,
                    node.kernel, node.is_left_out ? ", though its drivers tolerate the taints" : "", subject.name,
                    node.is_left_out ? " --next-kernel " + node.kernel : ""));
            drive::Objects objects(client);
            for (const auto& lacks : drive::Gates(client, objects).unwaited_drivers(*now))
                access_.call.note(fmt::format("{}; the rollout did not wait for it: it has no annotation "
                                              "specialresource.openshift.io/wait: \"true\"",
                                              base::escape(lacks)));
        } catch (const Error& error) {
            // The run has ended well, whatever can be told besides.
            access_.call.note("whether nodes were updated after the start, and drivers are ready, could not be seen: " +
                              error.message());
        }
    }

private:
    Access& access_;
};

class RecipeCraft final : public Craft {
public:
    [[nodiscard]] const upgrade::Procedures& procedures() const override { return upgrade::recipe::procedures(); }
    [[nodiscard]] OwnVerbs verbs() const override { return {{start_recipe_verb()}, {remove_recipe_verb()}}; }

    [[nodiscard]] std::unique_ptr<Hands> take_up(Access& access, upgrade::Run& run, Extent extent) const override {
        drive::require_cluster_of(run, *access.cluster.opened().store);
        if (extent != Extent::record)
            secure_recipe(access, run.options, upgrade::recipe::subject_of(run), run.lineage,
                          ClusterAccess::Purpose::change);
        return std::make_unique<RecipeHands>(access);
    }

    [[nodiscard]] Exit follow(Access&, const upgrade::Run&) const override {
        throw bug("nothing follows a run about a recipe");
    }
};

}  // namespace

cluster::KubeStore& recipe_server(Access& access) {
    auto* server = access.cluster.opened().server;
    if (server != nullptr) return *server;
    throw Error(Exit::usage, "recipe-needs-server", "recipes are applied to an API server, found a directory cluster")
        .hint("--context NAME or --kubeconfig FILE; kmm-plan render recipe prints the objects");
}

void secure_recipe(Access& access, const upgrade::Options& options, const upgrade::recipe::Subject& subject,
                   const std::string& lineage, ClusterAccess::Purpose purpose) {
    Target target{subject.space, subject.name, "", lineage, drive::ReleaseStore::rules(subject.space)};
    for (const auto* verb : {"get", "list", "patch"}) target.rights.push_back({verb, "", "nodes", "", "", ""});
    access.cluster.secure(options, target, purpose);
}

drive::RecipeRequest recipe_request(Call& call, const std::string& name) {
    const auto& args = call.args();
    drive::RecipeRequest request;
    sign_request(request);
    request.created = base::format_rfc3339(call.clock().now_unix());
    drive::StartRequest walking;
    take_walk_options(args, walking);
    request.options = walking.options;
    request.options.via = upgrade::Via::ssh;  // no node is reached
    request.options.max_unavailable = 1;
    request.options.count_unavailable = false;
    request.options.lease_namespace = namespace_option(args, "lease-namespace");
    request.subject.name = name;
    request.subject.space = release_namespace_of(args);
    for (const auto& kernel : args.all("keep-kernel")) plan::require_kernel_name(kernel);
    request.subject.keep_kernels = args.all("keep-kernel");
    request.subject.is_forced = args.flag("force-conflicts");
    return request;
}

Exit launch_recipe(Access& access, upgrade::Run run) {
    put_place(run, access.cluster.opened().place);
    const auto launched = launch(access, std::move(run), std::make_unique<RecipeHands>(access));
    return finish(access.call, launched.ended, launched.run);
}

const Craft& recipe_craft() {
    static const RecipeCraft craft;
    return craft;
}

}  // namespace kmm::tool_upgrade
