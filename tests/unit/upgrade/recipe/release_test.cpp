// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "base/error.hpp"
#include "upgrade/recipe/release.hpp"

using namespace kmm;
using namespace kmm::upgrade::recipe;
using value::Node;

namespace {

Node object(const std::string& name, const std::string& version = "apps/v1") {
    return Node::mapping({{"apiVersion", version},
                          {"kind", "DaemonSet"},
                          {"metadata", Node::mapping({{"name", name}, {"namespace", "drivers"}})}});
}

/// One state, "a/1000-driver", of objects NAME or NAME@KERNEL.
Release release(std::int64_t revision, const std::vector<std::string>& names) {
    Release made;
    made.recipe = "a";
    made.version = "0.0." + std::to_string(revision);
    made.lineage = "6f1b4c1e-0000-4000-8000-000000000001";
    made.revision = revision;
    State state;
    state.name = "a/1000-driver";
    state.resource = "a";
    state.label = state_label("a", "1000-driver");
    state.nodes.labels["role"] = "worker";
    state.nodes.key = "pci";
    state.nodes.values = {"x", "y"};
    for (const auto& name : names) {
        const auto at = name.find('@');
        state.objects.push_back({at == std::string::npos ? "" : name.substr(at + 1), object(name.substr(0, at))});
    }
    made.states.push_back(state);
    return made;
}

std::vector<std::string> names(const std::vector<ReleaseObject>& objects) {
    std::vector<std::string> all;
    for (const auto& one : objects) all.push_back(id_of(one.object).name);
    return all;
}

}  // namespace

TEST_SUITE("upgrade::recipe") {

TEST_CASE("a release is read as it was written") {
    auto before = release(3, {"plain", "copy@k1"});
    before.status = Status::deployed;
    before.kernels = {"k1", "k2"};
    before.kept.push_back({"k0", object("old")});
    const auto after = decode_release(encode(before), "Secret x");
    CHECK(encode(after).same_value(encode(before)));
    CHECK(after.states.front().objects[1].kernel == "k1");
    CHECK(after.states.front().nodes.values == std::vector<std::string>{"x", "y"});
}

TEST_CASE("what is no release, and one of a later format, are errors") {
    CHECK_THROWS_AS(static_cast<void>(decode_release(Node::mapping(), "Secret x")), Error);
    auto tree = encode(release(1, {}));
    tree.set("status", "half");
    CHECK_THROWS_AS(static_cast<void>(decode_release(tree, "Secret x")), Error);
    tree = encode(release(1, {}));
    tree.set("formatVersion", 2);
    try {
        static_cast<void>(decode_release(tree, "Secret x"));
        FAIL("no error");
    } catch (const Error& error) {
        CHECK(error.code() == "state-newer");
    }
}

TEST_CASE("what later releases no longer have is obsolete, newest release first, the last applied first") {
    const auto now = release(3, {"c"});
    const auto left = leftovers({release(1, {"x", "y", "c"}), release(2, {"a", "b", "c"}), now}, now, {});
    CHECK(names(left.obsolete) == std::vector<std::string>{"b", "a", "y", "x"});
    CHECK(left.kept.empty());
}

TEST_CASE("a copy for a kernel stays as long as the kernel is needed; other objects never do") {
    const auto now = release(2, {"copy-k2@k2"});
    const std::vector<Release> all = {release(1, {"copy-k1@k1", "plain"}), now};
    CHECK(names(leftovers(all, now, {"k1", "k2"}).kept) == std::vector<std::string>{"copy-k1"});
    CHECK(names(leftovers(all, now, {"k1", "k2"}).obsolete) == std::vector<std::string>{"plain"});
    CHECK(names(leftovers(all, now, {"k2"}).obsolete) == std::vector<std::string>{"plain", "copy-k1"});
}

TEST_CASE("a copy for a kernel that the release was rendered for is obsolete if the release does not have it") {
    auto now = release(2, {"other-k1@k1"});
    now.kernels = {"k1"};
    const std::vector<Release> all = {release(1, {"copy-k1@k1", "copy-k0@k0"}), now};
    CHECK(names(leftovers(all, now, {"k0", "k1"}).obsolete) == std::vector<std::string>{"copy-k1"});
    CHECK(names(leftovers(all, now, {"k0", "k1"}).kept) == std::vector<std::string>{"copy-k0"});
}

TEST_CASE("what a release kept is judged again by the next one") {
    auto second = release(2, {"copy-k2@k2"});
    second.kept.push_back({"k1", object("copy-k1")});
    const auto now = release(3, {"copy-k2@k2"});
    CHECK(names(leftovers({second, now}, now, {"k2"}).obsolete) == std::vector<std::string>{"copy-k1"});
    CHECK(names(leftovers({second, now}, now, {"k1"}).kept) == std::vector<std::string>{"copy-k1"});
}

TEST_CASE("another version of the same group is the same object") {
    auto now = release(2, {});
    now.states.front().objects.push_back({"", object("a", "apps/v1beta2")});
    CHECK(leftovers({release(1, {"a"}), now}, now, {}).obsolete.empty());
}

TEST_CASE("merged releases have every object once, and labels of states that only earlier ones have") {
    auto first = release(1, {"x", "c"});
    first.states.push_back(State{"a/2000-plugin", "a", state_label("a", "2000-plugin"), {}, {}});
    auto second = release(2, {"c"});
    second.kept.push_back({"k1", object("copy-k1")});
    const auto all = merged({first, second});
    CHECK(all.revision == 2);
    REQUIRE(all.states.size() == 3);
    CHECK(names(all.states[0].objects) == std::vector<std::string>{"c", "x"});
    CHECK(names(all.states[1].objects) == std::vector<std::string>{"copy-k1"});
    CHECK(all.states[2].label == "specialresource.openshift.io/state-a-2000");
    CHECK(all.kept.empty());
}

TEST_CASE("labels of states, and the nodes that get them") {
    CHECK(state_label("ice", "1000-driver") == "specialresource.openshift.io/state-ice-1000");
    CHECK(state_label("ice", "stateless").empty());
    CHECK(state_label("ice", "10").empty());
    const auto choice = release(1, {}).states.front().nodes;
    const auto node = [](const Node& labels) {
        return Node::mapping({{"metadata", Node::mapping({{"labels", labels}})}});
    };
    CHECK(choice.selects(node(Node::mapping({{"role", "worker"}, {"pci", "y"}}))));
    CHECK_FALSE(choice.selects(node(Node::mapping({{"role", "worker"}, {"pci", "z"}}))));
    CHECK_FALSE(choice.selects(node(Node::mapping({{"pci", "y"}}))));
    CHECK_FALSE(choice.selects(Node::mapping()));
    CHECK(NodeChoice{}.selects(Node::mapping()));
}

}
