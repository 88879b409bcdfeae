// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "upgrade/engine/hint.hpp"

using namespace kmm::upgrade;

TEST_CASE("the same command of a worker is the command of the run that repeats the step") {
    const std::string said = "kmm-worker says: see the registry, then run the same command again";
    CHECK(hint_in_run(said, "cp1", false) == "kmm-worker says: see the registry, then kmm-upgrade retry cp1");
    CHECK(hint_in_run(said, "cp1", true) == "kmm-worker says: see the registry, then kmm-upgrade resume");
    CHECK(hint_in_run(said, "", false) == "kmm-worker says: see the registry, then kmm-upgrade resume");
    CHECK(hint_in_run("kmm-worker says: the same command again tries once more", "w1", false) ==
          "kmm-worker says: kmm-upgrade retry w1 tries once more");
    // A hint of kmm-upgrade itself means the command that was typed.
    CHECK(hint_in_run("kmm-upgrade abort, then the same command again", "w1", false) ==
          "kmm-upgrade abort, then the same command again");
    CHECK(hint_in_run("correct it, then kmm-upgrade retry w1", "w1", false) == "correct it, then kmm-upgrade retry w1");
    CHECK(hint_in_run("correct it, then kmm-upgrade retry w1", "w1", true) == "correct it, then kmm-upgrade resume");
}

TEST_CASE("a hint of a run that has ended names no command that needs a run") {
    const auto kept = [](const char* hint) { return hint_after_end(hint); };
    CHECK(kept("journalctl -u kubelet -n 50 on the node; correct it, then kmm-upgrade retry w1") ==
          "journalctl -u kubelet -n 50 on the node; correct it");
    CHECK(kept("correct it on the node, then kmm-upgrade retry w1; or pass over it: kmm-upgrade retry w1 "
               "--ignore-preflight-errors NAMES") == "correct it on the node");
    CHECK(kept("kmm-upgrade retry cp1 repairs the manifests first, then tries again; see kmm-worker kubernetes facts "
               "on the node") == "see kmm-worker kubernetes facts on the node");
    CHECK(kept("find out who; kmm-upgrade retry node-a sets it again, kmm-upgrade skip node-a --reason TEXT leaves "
               "it") == "find out who");
    CHECK(kept("take the taint away and retry it, or: kmm-upgrade skip node-b --reason TEXT") == "take the taint away");
    CHECK(kept("unload it on the node, then retry") == "unload it on the node");
    CHECK(kept("kubectl get pods -A; then kmm-upgrade retry w1") == "kubectl get pods -A");
    CHECK(kept("look at its console; once it is up: kmm-upgrade retry w1") == "look at its console");
    CHECK(kept("kmm-upgrade resume waits for it; --node-timeout gives it more time") ==
          "--node-timeout gives it more time");
    CHECK(kept("somebody has started the same recipe from another host: look who, then kmm-upgrade abort") ==
          "somebody has started the same recipe from another host: look who");
    CHECK(kept("an older etcd cannot read it: kmm-upgrade abort --rollback none, then start again with --ignore-checks "
               "versions-uniform") ==
          "an older etcd cannot read it: start again with --ignore-checks versions-uniform");
    CHECK(kept("put the image back, then kmm-upgrade retry node-b; or kmm-upgrade abort, then start again") ==
          "put the image back; or start again");
    CHECK(kept("kmm-worker says: see the registry, then kmm-upgrade retry cp1") ==
          "kmm-worker says: see the registry");
    CHECK(kept("kmm-worker says: kmm-upgrade retry cp1: it looks at the node first").empty());
    CHECK(kept("kubectl get pdb -n shop") == "kubectl get pdb -n shop");
    CHECK(kept("").empty());
}
