// SPDX-License-Identifier: Apache-2.0
// Traps of the regexps of kernel mappings.
#include <doctest/doctest.h>

#include <algorithm>

#include "plan/lint/lint.hpp"
#include "unit/plan/build.hpp"

using namespace kmm;

namespace {

using RegexpCodes = std::vector<std::string>;

/// Sorted codes of one Module, image-by-tag left out: the Module of these tests is named by a tag.
RegexpCodes regexp_codes(const api::Module& module) {
    Diagnostics diagnostics;
    plan::lint_module(module, diagnostics);
    RegexpCodes result;
    for (const auto& diagnostic : diagnostics) {
        if (diagnostic.code != "image-by-tag") { result.push_back(diagnostic.code); }
    }
    std::sort(result.begin(), result.end());
    return result;
}

}  // namespace

TEST_SUITE("plan::unit") {
    TEST_CASE("regexps that match more than they seem") {
        struct Row {
            const char* regexp;
            RegexpCodes codes;
        };
        const RegexpCodes open{"regexp-unanchored"};
        const RegexpCodes dot{"regexp-bare-dot"};
        const RegexpCodes& open_end = open;
        for (const Row& row : {
                 Row{"^.+$", {}},
                 Row{".", {}},
                 Row{"(.*)", {}},
                 Row{"^6\\.1\\.", {}},
                 Row{"^6\\.1\\.0-5$", {}},
                 Row{".*el8.*", {}},
                 Row{"(?i)^RT", {}},
                 Row{"(^6|^5)\\.", {}},
                 Row{"[0-9].[0-9]", open},
                 Row{"^[6.1]+-", {}},
                 Row{"\\A6\\.", {}},
                 Row{"6\\.1\\.", open},
                 Row{"el8", open},
                 Row{"\\.el8\\.x86_64$", {}},
                 Row{"\\+(rt|64k)$", {}},
                 Row{"(-aws|-azure)$", {}},
                 Row{"2\\.3$", open},
                 Row{"\\d-rt$", open},
                 Row{"el8\\$", open},
                 Row{"^6\\.1\\.0-5", open},
                 Row{"(?:6\\.)", open},
                 Row{"^6.1\\.", dot},
                 Row{"^\\Q6.1.0-56\\E-", {}},
                 Row{"^\\Q6.1", open_end},
                 Row{"^\\Q6.1\\E[.]0.1-", dot},
                 Row{"6.1", {"regexp-bare-dot", "regexp-unanchored"}},
             }) {
            CAPTURE(row.regexp);
            api::Module module = build::module();
            module.module_loader->container.kernel_mappings = {build::regexp(row.regexp)};
            CHECK(regexp_codes(module) == row.codes);
        }
    }

    TEST_CASE("a regexp with a character that no kernel version has") {
        const auto of = [](const char* text) {
            api::Module module = build::module();
            module.module_loader->container.kernel_mappings = {build::regexp(text)};
            return regexp_codes(module);
        };
        for (const char* never : {"\u2018^.+$\u2019", "'^6[.]1[.].+$'", "\"^.+$\"", "^6[.]1 ", "^6 ", " ^6", "^6\n",
                                  "^6\u2011rt", "^6[.]1[.]0-[0-9]+$-amd64", "6[.]1^foo", "/^6[.]1/", "^6[.]$[0-9]",
                                  "^6$[.]1$", "6+^", "6$[[:digit:]]", "6[.]1$\\pL"}) {
            CAPTURE(never);
            CHECK(of(never) == RegexpCodes{"regexp-impossible"});
        }
        for (const char* other :
             {"^6[.]1[.] ?", "^6 *[.]", "^(6 |5)[.]", "^6[ .]1[.]", "^6[.]1[.]| 7", "^6\\ ?", "6?^6[.]1", "^6[.]1$x?",
              "^6[.]1$$", "^^6[.]1[.]", "^6$(-amd64)?", "^6\\b$", "^6[.]1-[^$]+", "^6{2}$", "[[:space:]]*^6[.]1.*$",
              "6[.]1.*$[[:space:]]*", "^6[.]7$\\pL*", "^6[.]7$\\p{Greek}?", "6[.]1$[]]*"}) {
            CAPTURE(other);
            const RegexpCodes found = of(other);
            CHECK(std::find(found.begin(), found.end(), "regexp-impossible") == found.end());
        }
    }

    TEST_CASE("a regexp after one that takes everything") {
        api::Module module = build::module();
        module.module_loader->container.kernel_mappings = {build::regexp("^.+$"), build::regexp("^6\\."),
                                                           build::literal("x")};
        CHECK(regexp_codes(module) == RegexpCodes{"mapping-unreachable"});
        std::swap(module.module_loader->container.kernel_mappings[0],
                  module.module_loader->container.kernel_mappings[1]);
        CHECK(regexp_codes(module).empty());
    }
}
