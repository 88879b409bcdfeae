// SPDX-License-Identifier: Apache-2.0
#include "kmm-upgrade/session/place_options.hpp"

#include <map>

#include <doctest/doctest.h>

#include "kmm-upgrade/craft.hpp"
#include "kmm-upgrade/program.hpp"

namespace kmm::tool_upgrade {
namespace {

cli::Args given(const std::map<std::string, std::string>& options, const std::string& source = "option") {
    cli::Args args;
    for (const auto& [name, value] : options) {
        args.values[name] = {value};
        args.sources[name] = source;
    }
    return args;
}

TEST_SUITE("tool_upgrade.place_options") {
    TEST_CASE("commands name the record and the cluster that the command line named") {
        const auto program = tool_upgrade::program(all_crafts());
        const PlaceOptions place(given({{"state-dir", "my state"}, {"cluster", "fleet"}}), program);
        // The record of a run has its cluster.
        CHECK(place.put_into("kmm-upgrade retry node-a") == "kmm-upgrade retry --state-dir 'my state' node-a");
        CHECK(place.put_into("kmm-upgrade start module MODULE --to VERSION, or give up") ==
              "kmm-upgrade start module --state-dir 'my state' --cluster fleet MODULE --to VERSION, or give up");
        CHECK(place.put_into("kmm-upgrade delete, then kmm-upgrade abort --rollback none") ==
              "kmm-upgrade delete --state-dir 'my state', then kmm-upgrade abort --state-dir 'my state' --rollback "
              "none");
        for (const char* same : {"", "kmm-upgrade explain io", "kmm-upgrade is here", "see kmm-upgrade(1)",
                                 "/usr/bin/kmm-upgrade show", "kmm-upgrade show --state-dir other",
                                 "kmm-upgrade show there; else wait"}) {
            CAPTURE(same);
            CHECK(place.put_into(same) == same);
        }
    }

    TEST_CASE("what the next command finds by itself is not repeated") {
        const auto program = tool_upgrade::program(all_crafts());
        for (const char* source : {"environment", "configuration file", "default"}) {
            CAPTURE(source);
            CHECK(PlaceOptions(given({{"state-dir", "s"}}, source), program).put_into("kmm-upgrade show") ==
                  "kmm-upgrade show");
        }
        CHECK(PlaceOptions().put_into("kmm-upgrade show") == "kmm-upgrade show");
        CHECK(PlaceOptions(given({{"context", "lab"}}), program).put_into("kmm-upgrade versions lists them") ==
              "kmm-upgrade versions --context lab lists them");
    }
}

}  // namespace
}  // namespace kmm::tool_upgrade
