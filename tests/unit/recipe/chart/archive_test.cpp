// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "base/error.hpp"
#include "recipe/chart/chart.hpp"
#include "support/tar_builder.hpp"

namespace {

using namespace kmm;
using test::TarBuilder;

/// "NAME ..." of the files of an archive, or the code and message of the error.
std::string names_in(const std::string& archive) {
    std::string names;
    try {
        for (const auto& file : recipe::chart::read_archive(archive, "top.tgz")) { names += file.name + ' '; }
    } catch (const Error& error) { return error.code() + ": " + error.message(); }
    return names;
}

}  // namespace

TEST_CASE("an archive that ends anywhere is damaged") {
    const std::string whole =
        test::gzip(TarBuilder().file("top/Chart.yaml", "name: top\n").file("top/a", "b").finish());
    CHECK(names_in(whole) == "Chart.yaml a ");
    for (std::size_t size = 1; size < whole.size(); ++size) {
        CAPTURE(size);
        CHECK(names_in(whole.substr(0, size)).starts_with("bad-archive: "));
    }
}

TEST_CASE("in a name of Windows, backslashes alone stand between directories") {
    CHECK(names_in(test::gzip(TarBuilder().file("top\\templates\\a.yaml", "").finish())) == "templates/a.yaml ");
    CHECK(names_in(test::gzip(TarBuilder().file("top/x\\y", "").finish())) == "y ");
    CHECK(names_in(test::gzip(TarBuilder().file("top\\..\\y", "").finish())) ==
          "bad-archive: the archive has a path with '..'");
}
