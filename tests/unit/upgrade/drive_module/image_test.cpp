// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "base/text.hpp"
#include "unit/upgrade/drive_module/fakes.hpp"
#include "upgrade/module_nodes/worker.hpp"

using namespace kmm;
using namespace kmm::drive;
using namespace kmm::drive::test;

TEST_SUITE("drive::unit") {

TEST_CASE("a load gets the image by the digest that was checked, and only that of a registry") {
    const std::string digest = "sha256:" + std::string(64, 'a');
    CHECK(pinned_image("reg.example:5000/a/b:t", digest) == "reg.example:5000/a/b@" + digest);
    CHECK(pinned_image("reg.example:5000/a/b", digest) == "reg.example:5000/a/b@" + digest);
    CHECK(pinned_image("busybox:1", digest) == "busybox@" + digest);
    CHECK(pinned_image("reg/a@sha256:x", digest) == "reg/a@sha256:x");
    CHECK(pinned_image("oci:dir:t", digest) == "oci:dir:t");
    for (const std::string& none : {std::string(), std::string("sha256:x"), digest + "a",
                                    "sha256:" + std::string(64, 'A'), "md5:" + std::string(64, 'a')}) {
        CHECK(pinned_image("reg.example/a:t", none) == "reg.example/a:t");
    }
}

TEST_CASE("only the login for the image's registry leaves with the configuration") {
    api::ModuleConfig config;
    api::Secret secret;
    const auto sent = [&](const std::string& image, const std::string& key, const std::string& text) {
        config.container_image = image;
        secret.data = {{key, text}, {"other", "secret-other"}};
        const std::string input = worker_input(config, &secret);
        CHECK(input.find(base::to_base64("secret-other")) == std::string::npos);
        const std::string mark = key + "\": ";
        const std::size_t at = std::min(input.find("  " + key + ": "), input.find("  \"" + mark));
        REQUIRE(at != std::string::npos);
        std::string coded = input.substr(input.find(": ", at) + 2);
        coded = coded.substr(0, coded.find('\n'));
        std::erase(coded, '"');
        return base::from_base64(coded).value_or("?");
    };
    const std::string all =
        R"({"auths":{"https://reg.example/v1/":{"auth":"A"},"other.example":{"auth":"B"},"*.wild.example":{"auth":"C"},"https://index.docker.io/v1/":{"auth":"D"}},"credsStore":"x"})";
    CHECK(sent("reg.example:5000/a:t", ".dockerconfigjson", all) ==
          R"({"auths":{"https://reg.example/v1/":{"auth":"A"}}})");
    CHECK(sent("a.wild.example/a:t", ".dockerconfigjson", all) == R"({"auths":{"*.wild.example":{"auth":"C"}}})");
    CHECK(sent("busybox", ".dockerconfigjson", all) == R"({"auths":{"https://index.docker.io/v1/":{"auth":"D"}}})");
    CHECK(sent("nobody.example/a", ".dockerconfigjson", all) == R"({"auths":{}})");
    CHECK(sent("reg.example/a", ".dockercfg", R"({"reg.example":{"auth":"A"},"b.example":{"auth":"B"}})") ==
          R"({"reg.example":{"auth":"A"}})");
    CHECK(sent("reg.example/a", ".dockerconfigjson", "no json: B").empty());
}

TEST_CASE("an image that is another one after the first node stops the next node before it is touched") {
    World world(2);
    upgrade::Options options;
    options.canary = 1;
    Drive drive(world, world.prepare(options));
    REQUIRE(drive.driver.walk() == Ended::paused);
    REQUIRE(drive.state("node-a") == "done");
    world.nodes.images["reg/hello:v2"] = "CCCC3333";
    drive.driver.resume();
    CHECK(drive.driver.walk() == Ended::paused);
    const auto node = drive.recorder.node("node-b");
    CHECK(node.state == "checking-failed");
    CHECK(node.reason == "image-changed");
    CHECK(node.message == "reg/hello:v2 is sha256:CCCC3333 now, but node node-a has sha256:BBBB2222 as v2");
    CHECK(
        node.hint.starts_with("let it be the former image again, then kmm-upgrade retry node-b; or kmm-upgrade abort"));
    CHECK(world.nodes.nodes["node-b"].live == "AAAA1111");
    SUBCASE("once it is the former one again, the upgrade goes on") {
        world.nodes.images["reg/hello:v2"] = "BBBB2222";
        drive.driver.resume();
        CHECK(drive.driver.walk() == Ended::complete);
        CHECK(world.nodes.nodes["node-b"].live == "BBBB2222");
    }
}

TEST_CASE("a rollback loads by digest what was live before, and unloads nothing for another build") {
    World world(2);
    upgrade::Options options;
    options.canary = 1;
    Drive drive(world, world.prepare(options));
    REQUIRE(drive.driver.walk() == Ended::paused);
    REQUIRE(world.nodes.nodes["node-a"].live == "BBBB2222");
    world.nodes.images["reg/hello:v1"] = "CCCC3333";
    static_cast<void>(drive.driver.abort(upgrade::Rollback::all));
    const auto node = drive.recorder.node("node-a");
    CHECK(node.reason == "image-changed");
    CHECK(node.message == "reg/hello:v1 has CCCC3333 now, before the run AAAA1111 was live");
    CHECK(world.nodes.nodes["node-a"].live == "BBBB2222");

    const std::string digest = "sha256:" + std::string(64, 'a');
    world.nodes.images["reg/hello:v1"] = world.nodes.images["reg/hello@" + digest] = "AAAA1111";
    std::string loaded;
    world.nodes.fault = [&](const cluster::WorkerCall& call, const auto& act) -> std::optional<cluster::WorkerReply> {
        if (call.args.front() == "load") loaded = call.stdin_text;
        auto reply = act();
        if (reply.document.find("image") != nullptr)
            reply.document.set("image", value::Node::mapping({{"digest", digest}}));
        return reply;
    };
    CHECK(drive.driver.abort(upgrade::Rollback::all) == Ended::aborted);
    CHECK(world.nodes.nodes["node-a"].live == "AAAA1111");
    CHECK(loaded.find("reg/hello@" + digest) != std::string::npos);
}

TEST_CASE("settings that are other ones after the first node stop the next node before it is touched") {
    World world(2);
    upgrade::Options options;
    options.canary = 1;
    Drive drive(world, world.prepare(options));
    REQUIRE(drive.driver.walk() == Ended::paused);
    const auto before = world.store.objects.modules.front();
    auto& container = world.store.objects.modules.front().module_loader->container;
    std::string what;
    SUBCASE("parameters") {
        container.modprobe.parameters = {"debug=1"};
        what = "modprobe.parameters";
    }
    SUBCASE("several of modprobe") {
        container.modprobe.firmware_path = "/firmware";
        container.modprobe.modules_loading_order = {"kmm_hello", "other"};
        what = "modprobe.firmwarePath, modprobe.modulesLoadingOrder";
    }
    SUBCASE("modules to remove first, of one mapping") {
        container.kernel_mappings.front().in_tree_modules_to_remove = {"hello"};
        what = "inTreeModulesToRemove";
    }
    drive.driver.resume();
    CHECK(drive.driver.walk() == Ended::paused);
    const auto node = drive.recorder.node("node-b");
    CHECK(node.state == "checking-failed");
    CHECK(node.reason == "module-changed");
    CHECK(node.message.ends_with("was changed during this run: node node-a has another " + what));
    CHECK(world.nodes.nodes["node-b"].live == "AAAA1111");
    world.store.objects.modules.front() = before;
    drive.driver.resume();
    CHECK(drive.driver.walk() == Ended::complete);
}

TEST_CASE("another image for the kernel of the first node stops the next node, which has another kernel") {
    World world(2, false);
    world.store.objects.nodes.front().kernel_version = world.nodes.nodes["node-a"].kernel = "6.1.0-57-amd64";
    auto& mappings = world.store.objects.modules.front().module_loader->container.kernel_mappings;
    mappings.front().container_image = "reg/${KERNEL_FULL_VERSION}/hello:v2";
    for (const auto* name : {"reg/6.1.0-56-amd64/hello:v2", "reg/6.1.0-57-amd64/hello:v2"})
        world.nodes.images[name] = "BBBB2222";
    upgrade::Options options;
    options.canary = 1;
    Drive drive(world, world.prepare(options));
    REQUIRE(drive.driver.walk() == Ended::paused);
    REQUIRE(drive.state("node-a") == "done");
    auto& mapping = world.store.objects.modules.front().module_loader->container.kernel_mappings.front();
    SUBCASE("by a name that both kernels have") {
        mapping.container_image = "reg/${KERNEL_FULL_VERSION}/hello:v2-fixed";
        world.nodes.images["reg/6.1.0-56-amd64/hello:v2-fixed"] = "CCCC3333";
        drive.driver.resume();
        CHECK(drive.driver.walk() == Ended::paused);
        const auto node = drive.recorder.node("node-b");
        CHECK(node.state == "checking-failed");
        CHECK(node.reason == "module-changed");
        CHECK(node.message.ends_with("node node-a has another containerImage"));
        CHECK(world.nodes.nodes["node-b"].live.empty());
        mapping.container_image = "reg/${KERNEL_FULL_VERSION}/hello:v2";
        drive.driver.resume();
        CHECK(drive.driver.walk() == Ended::complete);
    }
    SUBCASE("by one of its own, which says nothing of the first") {
        auto own = mapping;
        own.regexp.clear();
        own.literal = "6.1.0-56-amd64";
        own.container_image = "reg/only:v2";
        world.nodes.images["reg/only:v2"] = "CCCC3333";
        auto& list = world.store.objects.modules.front().module_loader->container.kernel_mappings;
        list.insert(list.begin(), own);
        drive.driver.resume();
        CHECK(drive.driver.walk() == Ended::complete);
        CHECK(world.nodes.nodes["node-b"].live == "CCCC3333");
    }
}

TEST_CASE("settings that no node has got are taken, and so is what does not reach the kernel") {
    World world(2);
    upgrade::Options options;
    options.canary = 1;
    Drive drive(world, world.prepare(options));
    auto& module = world.store.objects.modules.front();
    SUBCASE("before the first node is done") {
        module.module_loader->container.modprobe.parameters = {"debug=1"};
        REQUIRE(drive.driver.walk() == Ended::paused);
    }
    SUBCASE("how the image is pulled") {
        REQUIRE(drive.driver.walk() == Ended::paused);
        world.store.objects.modules.front().module_loader->container.image_pull_policy = "Always";
    }
    drive.driver.resume();
    CHECK(drive.driver.walk() == Ended::complete);
}

TEST_CASE("an image that was mended because no node could load it is taken") {
    World world(2);
    world.nodes.fault = [&](const cluster::WorkerCall& call, const auto&) -> std::optional<cluster::WorkerReply> {
        if (call.args.front() != "load" || world.nodes.images["reg/hello:v2"] != "BBBB2222") return std::nullopt;
        return FakeNodes::error(13, "module-refused", "the kernel refused kmm_hello");
    };
    Drive drive(world, world.prepare());
    REQUIRE(drive.driver.walk() == Ended::paused);
    world.nodes.images["reg/hello:v2"] = "CCCC3333";
    drive.driver.resume();
    CHECK(drive.driver.walk() == Ended::complete);
    CHECK(world.nodes.nodes["node-a"].live == "CCCC3333");
    CHECK(world.nodes.nodes["node-b"].live == "CCCC3333");
}

}  // TEST_SUITE
