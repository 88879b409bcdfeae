// SPDX-License-Identifier: Apache-2.0
// Secrets and ConfigMaps that Modules name, where a whole cluster was read.
#include <doctest/doctest.h>

#include "plan/lint/lint.hpp"
#include "unit/plan/build.hpp"

using namespace kmm;

TEST_SUITE("plan::unit") {
    TEST_CASE("a cluster's directory without the Secret that a Module names") {
        api::Objects objects;
        objects.modules = {build::module()};
        objects.modules[0].image_repo_secret = "nope";
        const auto found = [&](plan::Reading reading) {
            Diagnostics diagnostics;
            plan::check_secrets(objects, reading, diagnostics);
            return diagnostics;
        };
        CHECK(found(plan::Reading::part).empty());
        const auto notes = found(plan::Reading::whole);
        REQUIRE(notes.size() == 1);
        CHECK(notes[0].severity == Severity::note);
        CHECK(notes[0].code == "secret-unknown");
        CHECK(notes[0].message == "Module drivers/kmm-hello: imageRepoSecret: Secret nope is not in the cluster's "
                                  "directory, which has no Secrets");
        CHECK(notes[0].hint.ends_with("those of render worker-pods do not start"));
        // With any Secret in it the directory is complete.
        objects.secrets.emplace_back().meta.name = "other";
        objects.secrets.back().meta.namespace_ = "elsewhere";
        CHECK(found(plan::Reading::part).empty());
        const auto warnings = found(plan::Reading::whole);
        REQUIRE(warnings.size() == 1);
        CHECK(warnings[0].severity == Severity::warning);
        CHECK(warnings[0].message.find("there is no Secret nope among those of namespace drivers") !=
              std::string::npos);
        objects.secrets.back().meta.name = "nope";
        objects.secrets.back().meta.namespace_ = "drivers";
        CHECK(found(plan::Reading::whole).empty());
    }
}
