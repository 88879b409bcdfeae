// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "unit/upgrade/drive_module/fakes.hpp"
#include "upgrade/prepare_module/prepare_parts.hpp"

using namespace kmm;
using namespace kmm::drive;
using namespace kmm::drive::test;

namespace {

/// Runs prepare with `change` applied and returns the Error; nothing may have been written.
Error refused(const std::function<void(World&, StartRequest&)>& change) {
    World world;
    StartRequest request;
    request.name = "kmm-hello";
    request.to_version = "v2";
    change(world, request);
    Worker worker(world.nodes);
    try {
        static_cast<void>(prepare(world.store.read(), worker, world.clock, request, [](const auto&, const auto&) {}));
    } catch (const Error& error) {
        CHECK(world.store.writes.empty());
        for (const auto& call : world.nodes.calls) {
            CHECK(call.find(" load") == std::string::npos);
            CHECK(call.find(" unload") == std::string::npos);
        }
        return error;
    }
    return Error(Exit::ok, "", "");
}

/// A second Module, loaded on every node, with an annotation.
void add_neighbour(World& world, const char* annotation, const char* text) {
    auto module = make_module("v1");
    module.meta.name = "neighbour";
    module.meta.annotations[annotation] = text;
    for (auto& config : world.store.objects.node_modules_configs) {
        auto entry = config.status.at(0);
        entry.name = "neighbour";
        entry.config.edit().modprobe.module_name = "neighbour";
        config.status.push_back(entry);
    }
    world.store.objects.modules.push_back(std::move(module));
}

}  // namespace

TEST_SUITE("drive::unit") {

TEST_CASE("everything that would fail is found before anything is touched") {
    struct Row {
        const char* what;
        std::function<void(World&, StartRequest&)> change;
        Exit exit;
        const char* code;
        const char* detail;  ///< text of the first detail, "" for any
    };
    const std::vector<Row> rows = {
        {"no image", [](World& world, StartRequest&) { world.nodes.images.erase("reg/hello:v2"); }, Exit::checks_failed,
         "nodes-not-ready", "image-not-found: kmm-worker says: image not found"},
        {"one node silent", [](World& world, StartRequest&) { world.nodes.nodes.at("node-b").reachable = false; },
         Exit::checks_failed, "nodes-not-ready", "node-unreachable: node node-b cannot be reached"},
        {"no mapping", [](World& world, StartRequest&) { world.nodes.nodes.at("node-c").kernel = "5.0"; },
         Exit::checks_failed, "nodes-not-ready",
         "no-mapping: no kernel mapping of Module drivers/kmm-hello matches kernel 5.0"},
        {"version not in the Module", [](World&, StartRequest& request) { request.to_version = "v3"; },
         Exit::checks_failed, "version-mismatch", ""},
        {"a version that is not a label value",
         [](World& world, StartRequest& request) {
             world.store.objects.modules[0].module_loader->container.version = request.to_version = "v 2";
         },
         Exit::data, "bad-version", ""},
        {"one host for three nodes", [](World&, StartRequest& request) { request.options.via = upgrade::Via::local; },
         Exit::usage, "several-nodes", ""},
        {"unknown Module", [](World&, StartRequest& request) { request.name = "kmm-helo"; }, Exit::not_found,
         "module-not-found", ""},
        {"a Module that is being deleted",
         [](World& world, StartRequest&) { world.store.objects.modules[0].meta.deleting = true; },
         Exit::checks_failed, "module-deleting", ""},
        {"unknown node", [](World&, StartRequest& request) { request.nodes = {"node-z"}; }, Exit::not_found,
         "node-not-found", ""},
        {"node not selected",
         [](World& world, StartRequest& request) {
             world.store.objects.nodes[0].meta.labels.erase("role");
             request.nodes = {"node-a"};
         },
         Exit::checks_failed, "node-not-eligible", ""},
        {"nothing selected",
         [](World&, StartRequest& request) { request.selector = cluster::Selector::parse("zone=x"); },
         Exit::checks_failed, "no-nodes", ""},
        {"order leaves nodes out",
         [](World&, StartRequest& request) { request.order = std::vector<std::string>{"node-b"}; }, Exit::checks_failed,
         "order-incomplete", ""},
        {"secret missing",
         [](World& world, StartRequest&) { world.store.objects.modules[0].image_repo_secret = "pull"; },
         Exit::checks_failed, "nodes-not-ready", "secret-not-found: pull Secret drivers/pull is not in the cluster"},
        {"unload policy never",
         [](World& world, StartRequest&) {
             world.store.objects.modules[0].meta.annotations["kmmtools.dev/unload-policy"] = "never";
         },
         Exit::checks_failed, "nodes-not-ready",
         "unload-policy: another build of Module drivers/kmm-hello is loaded, and its unload policy is never"},
        {"an unload policy that cannot be read",
         [](World& world, StartRequest&) {
             world.store.objects.modules[0].meta.annotations["kmmtools.dev/unload-policy"] = "nevr";
         },
         Exit::data, "bad-unload-policy", ""},
        {"needs that cannot be read",
         [](World& world, StartRequest&) {
             world.store.objects.modules[0].meta.annotations["kmmtools.dev/needs"] = "base";
         },
         Exit::data, "bad-needs", ""},
        {"needs in a circle",
         [](World& world, StartRequest&) {
             world.store.objects.modules[0].meta.annotations["kmmtools.dev/needs"] = "drivers/kmm-hello";
         },
         Exit::data, "needs-cycle", ""},
        {"needed by a Module that is loaded",
         [](World& world, StartRequest&) { add_neighbour(world, "kmmtools.dev/needs", "drivers/kmm-hello"); },
         Exit::checks_failed, "nodes-not-ready",
         "module-needed: Module drivers/kmm-hello cannot be unloaded: drivers/neighbour, which is loaded, needs it"},
        {"needs a Module that is not loaded",
         [](World& world, StartRequest&) {
             world.store.objects.modules[0].meta.annotations["kmmtools.dev/needs"] = "drivers/base";
         },
         Exit::checks_failed, "nodes-not-ready",
         "needs-not-loaded: Module drivers/kmm-hello needs drivers/base, which is not loaded"},
        {"another kernel module is loaded for it",
         [](World& world, StartRequest&) {
             world.store.objects.modules[0].module_loader->container.modprobe.module_name = "kmm-other";
         },
         Exit::checks_failed, "nodes-not-ready",
         "module-renamed: Module drivers/kmm-hello has loaded kmm_hello, expected kmm_other"},
        {"another Module has loaded the same kernel module",
         [](World& world, StartRequest&) {
             auto& status = world.store.objects.node_modules_configs[1].status;
             status.push_back(status.front());
             status.back().name = "another";
         },
         Exit::checks_failed, "nodes-not-ready",
         "module-shared: kmm_hello is also loaded for Module drivers/another"},
        {"another Module alone has loaded it",
         [](World& world, StartRequest&) {
             auto& config = world.store.objects.node_modules_configs[1];
             config.spec.front().name = config.status.front().name = "another";
         },
         Exit::checks_failed, "nodes-not-ready",
         "module-shared: kmm_hello is also loaded for Module drivers/another"},
        {"a live module nobody answers for",
         [](World& world, StartRequest&) { world.store.objects.node_modules_configs.clear(); }, Exit::checks_failed,
         "nodes-not-ready", "module-unmanaged: kmm_hello is live, but the cluster says nothing of it"},
    };
    for (const auto& row : rows) {
        CAPTURE(std::string(row.what));
        const auto error = refused(row.change);
        CHECK(error.exit() == row.exit);
        CHECK(error.code() == row.code);
        if (std::string_view(row.detail).empty()) continue;
        REQUIRE_FALSE(error.details().empty());
        CHECK(error.details().front().second == row.detail);
    }
}

TEST_CASE("annotations that the steps keep are no obstacle") {
    const auto passes = [](const std::function<void(World&, StartRequest&)>& change) {
        return refused(change).code().empty();
    };
    CHECK(passes([](World& world, StartRequest&) {
        world.store.objects.modules[0].meta.annotations["kmmtools.dev/unload-policy"] = "on-delete";
    }));
    CHECK(passes([](World& world, StartRequest&) {
        // Booted anew, and nothing is loaded: there is nothing to unload.
        world.store.objects.modules[0].meta.annotations["kmmtools.dev/unload-policy"] = "never";
        for (auto& [name, node] : world.nodes.nodes) {
            node.boot = "boot-2";
            node.live = "";
        }
    }));
    CHECK(passes([](World& world, StartRequest&) {
        add_neighbour(world, "note", "");
        world.store.objects.modules[0].meta.annotations["kmmtools.dev/needs"] = "drivers/neighbour";
    }));
    CHECK_FALSE(passes([](World& world, StartRequest&) {
        // The neighbour was loaded before the reboot only.
        add_neighbour(world, "note", "");
        world.store.objects.modules[0].meta.annotations["kmmtools.dev/needs"] = "drivers/neighbour";
        for (auto& [name, node] : world.nodes.nodes) {
            node.boot = "boot-2";
            node.live = "";
        }
    }));
}

TEST_CASE("every failing node is listed") {
    const auto error = refused([](World& world, StartRequest&) {
        world.nodes.nodes.at("node-a").reachable = false;
        world.nodes.nodes.at("node-c").kernel = "5.0";
    });
    CHECK(error.message() == "2 of 3 nodes cannot be upgraded; nothing was changed");
    CHECK(error.details().front().first == "node-a");
    bool found = false;
    for (const auto& [key, text] : error.details()) found = found || key == "node-c";
    CHECK(found);
}

TEST_CASE("nodes with the same trouble share a line") {
    const auto error = refused([](World& world, StartRequest&) {
        for (const auto* name : {"node-a", "node-c"}) world.nodes.nodes.at(name).kernel = "5.0";
        world.nodes.nodes.at("node-b").reachable = false;
    });
    std::vector<std::string> keys;
    for (const auto& [key, text] : error.details())
        if (key.find(' ') == std::string::npos || key.find(',') != std::string::npos) keys.push_back(key);
    CHECK(keys == std::vector<std::string>{"node-a, node-c", "node-b"});
}

TEST_CASE("the order is the walk") {
    World world;
    StartRequest request;
    request.name = "kmm-hello";
    request.to_version = "v2";
    request.order = std::vector<std::string>{"node-c", "node-a", "node-b"};
    Worker worker(world.nodes);
    const auto prepared = prepare(world.store.read(), worker, world.clock, request, [](const auto&, const auto&) {});
    std::vector<std::string> names;
    for (const auto& node : prepared.run.nodes) names.push_back(node.name);
    CHECK(names == *request.order);
    CHECK(prepared.run.from_version == "v1");
}

TEST_CASE("a version without a name is said once, whoever wrote the record") {
    VersionsBefore versions;
    upgrade::module::Node node;
    versions.add(node);
    CHECK(versions.text().empty());
    node.from_entry = value::Node::mapping({{"config", "c"}});
    versions.add(node);
    CHECK(versions.text() == "unversioned");
    node.from_version = "unversioned";
    versions.add(node);
    CHECK(versions.text() == "unversioned");
    node.from_version = "v1";
    versions.add(node);
    CHECK(versions.text() == "v1,unversioned");
}

TEST_CASE("a tainted node is left out and said so") {
    World world;
    world.store.objects.nodes[1].taints = {{"node.kubernetes.io/unschedulable", "", "NoSchedule"}};
    StartRequest request;
    request.name = "kmm-hello";
    request.to_version = "v2";
    Worker worker(world.nodes);
    const auto prepared = prepare(world.store.read(), worker, world.clock, request, [](const auto&, const auto&) {});
    CHECK(prepared.run.nodes.size() == 2);
    CHECK(prepared.run.left_out == std::vector<upgrade::LeftOut>{{"node-b", "cordoned"}});
    CHECK(prepared.run.is_partial());
    CHECK(prepared.notes ==
          std::vector<std::string>{
              "node node-b is left out: its taint node.kubernetes.io/unschedulable:NoSchedule is not tolerated"});
}

TEST_CASE("a node that has the module and is not selected is left out and said so") {
    World world;
    for (auto& node : world.store.objects.nodes)
        if (node.meta.name == "node-b") node.meta.labels.clear();
    StartRequest request;
    request.name = "kmm-hello";
    request.to_version = "v2";
    Worker worker(world.nodes);
    const auto prepared = prepare(world.store.read(), worker, world.clock, request, [](const auto&, const auto&) {});
    CHECK(prepared.run.nodes.size() == 2);
    CHECK(prepared.run.left_out ==
          std::vector<upgrade::LeftOut>{{"node-b", "the Module's selector does not match its labels"}});
    CHECK(prepared.notes ==
          std::vector<std::string>{"node node-b is left out: it has the Module, which does not select it"});
}

TEST_CASE("an apply records what it cannot bring to the Module, and overlooks the cordon of a lost run") {
    World world(3, false);
    world.without_versions();
    std::erase_if(world.store.objects.nodes, [](const auto& node) { return !node.meta.labels.contains("role"); });
    world.store.objects.nodes[0].taints = {{"node.kubernetes.io/not-ready", "", "NoExecute"}};
    world.store.put_cordon("node-b", {true, "kmm-upgrade lost"});
    auto snapshot = world.store.read();
    overlook_own_cordons(snapshot.objects);
    StartRequest request;
    auto works = plan::apply_work(snapshot.objects, plan::complete({}, snapshot.objects));
    REQUIRE(works.size() == 1);
    CHECK(works[0].load == std::vector<std::string>{"node-b"});
    Worker worker(world.nodes);
    const auto prepared =
        prepare_apply(snapshot, worker, world.clock, request, works[0], [](const auto&, const auto&) {});
    CHECK(prepared.run.left_out == std::vector<upgrade::LeftOut>{{"node-a", "not ready"}});
    CHECK(prepared.run.is_partial());
}

TEST_CASE("the pull Secret follows the config on standard input") {
    World world(1);
    world.store.objects.modules[0].image_repo_secret = "pull";
    api::Secret secret;
    secret.meta.name = "pull";
    secret.meta.namespace_ = "drivers";
    secret.type = "kubernetes.io/dockerconfigjson";
    secret.data[".dockerconfigjson"] = "{}";
    world.store.objects.secrets.push_back(secret);
    std::size_t with_secret = 0;
    world.nodes.fault = [&](const cluster::WorkerCall& call, const auto&) -> std::optional<cluster::WorkerReply> {
        const bool has = call.stdin_text.find("---\napiVersion: v1\nkind: Secret\n") != std::string::npos &&
                         call.stdin_text.find("eyJhdXRocyI6e319") != std::string::npos;
        const bool wants = call.args.front() == "check" || call.args.front() == "load";
        CHECK(has == wants);
        if (has) ++with_secret;
        return std::nullopt;
    };
    Drive drive(world, world.prepare());
    CHECK(drive.driver.walk() == Ended::complete);
    CHECK(with_secret == 3);
    for (const auto& entry : drive.journal.entries) CHECK(value::Node(entry).find("data") == nullptr);
}
}
