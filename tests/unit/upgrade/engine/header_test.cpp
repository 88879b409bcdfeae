// SPDX-License-Identifier: Apache-2.0
// Members of the header that records of earlier programs do not have.
#include <doctest/doctest.h>

#include "base/error.hpp"
#include "unit/upgrade/engine/make_run.hpp"

using namespace kmm;
using namespace kmm::upgrade;

TEST_SUITE("upgrade::unit") {

TEST_CASE("nodes that were left out, the context and the way to the nodes are read back") {
    for (const auto via : {Via::self, Via::operator_, Via::ssh, Via::local}) {
        auto run = test::make_run(1);
        run.options.via = via;
        run.left_out = {{"node-x", "cordoned"}, {"node-y", "not ready"}};
        run.cluster_place = "context ctx of /etc/x";
        run.cluster_context = "ctx of /etc/x";
        const auto tree = encode(run);
        CHECK(tree.get_string({"options", "runner"}) == to_string(via));
        const auto read = decode_run(tree, module::procedures());
        CHECK(read.options.via == via);
        CHECK(read.left_out == run.left_out);
        CHECK(read.cluster_context == run.cluster_context);
        CHECK(read.extra.members().empty());
        CHECK(read.is_partial());
    }
}

TEST_CASE("a record without them is what it was") {
    const auto run = test::make_run(1);
    const auto tree = encode(run);
    CHECK(tree.find("leftOut") == nullptr);
    CHECK(tree.find("clusterContext") == nullptr);
    const auto read = decode_run(tree, module::procedures());
    CHECK(read.left_out.empty());
    CHECK_FALSE(read.is_partial());
}

TEST_CASE("a way to the nodes that this program does not know is that of a newer one") {
    auto tree = encode(test::make_run(1));
    tree.find("options")->set("runner", "carrier-pigeon");
    try {
        static_cast<void>(decode_run(tree, module::procedures()));
        FAIL("it was taken");
    } catch (const Error& error) {
        CHECK(error.code() == "state-newer");
        CHECK(error.message().find("carrier-pigeon") != std::string::npos);
    }
}

}  // TEST_SUITE
