// SPDX-License-Identifier: Apache-2.0
#include "kmod/host/module_index.hpp"

#include <doctest/doctest.h>
#include <fmt/format.h>

#include "base/error.hpp"
#include "digest/digest.hpp"
#include "kmod/ko/inflate.hpp"
#include "unit/kmod/fixtures.hpp"

using namespace kmm;
using namespace kmm::test;

namespace {

using Names = std::vector<std::string>;

struct Image {
    sys::TempDir out{"kmm-index-"};
    std::string directory = out.path() + "/opt/lib/modules/" + k_release;

    void add(const std::string& file, const KoSpec& spec) { put(directory + "/" + file, make_ko(spec)); }
    void add(const std::string& name, const std::string& depends = "", const Names& undefined = {},
             const Names& exported = {}) {
        KoSpec spec;
        spec.name = name;
        spec.depends = depends;
        spec.undefined = undefined;
        spec.exported = exported;
        add(name + ".ko", spec);
    }
    [[nodiscard]] kmod::ModuleIndex index() const { return kmod::ModuleIndex::build(directory, out.path()); }
};

template <typename Body>
Error caught(Body&& body) {
    try {
        body();
    } catch (const Error& error) {
        return error;
    }
    FAIL("no error");
    throw bug("unreachable");
}

}  // namespace

TEST_SUITE("kmod::unit") {

TEST_CASE("the index holds the .ko files of all directories, and nothing else") {
    Image image;
    image.add("alpha");
    KoSpec deep;
    deep.name = "deep";
    image.add("extra/net/deep.ko", deep);
    put(image.directory + "/modules.softdep", "install alpha touch /tmp/owned\n");
    put(image.directory + "/modules.dep", "../../../../etc/evil.ko:\n");
    std::filesystem::create_symlink("/etc/passwd", image.directory + "/link.ko");
    const auto index = image.index();
    REQUIRE(index.modules().size() == 2);
    CHECK(index.find("deep")->image_path == std::string("/opt/lib/modules/") + k_release + "/extra/net/deep.ko");
    CHECK(index.find("alpha")->sha256 == digest::sha256_hex(make_ko([] { KoSpec s; s.name = "alpha"; return s; }())));
}

TEST_CASE("links inside of the image are what they mean, as for depmod") {
    Image image;
    namespace fs = std::filesystem;
    KoSpec shared;
    shared.name = "shared";
    image.add("../common/shared.ko", shared);
    image.add("alpha");
    KoSpec deep;
    deep.name = "deep";
    image.add("../common/more/deep.ko", deep);
    fs::create_directory(image.directory + "/weak-updates");
    fs::create_symlink("../../common/../common/shared.ko", image.directory + "/weak-updates/shared.ko");
    fs::create_symlink("../alpha.ko", image.directory + "/weak-updates/alpha.ko");       // a second name of one file
    fs::create_symlink("../alpha.ko", image.directory + "/weak-updates/absent-name.ko");
    fs::create_directory_symlink("../common/more", image.directory + "/extra");
    fs::create_directory_symlink("..", image.directory + "/extra-loop");
    fs::create_directory_symlink("../common", image.directory + "/build");               // depmod passes these two over
    fs::create_symlink("nowhere.ko", image.directory + "/dangling.ko");
    const auto index = image.index();
    CHECK(index.modules().size() == 3);
    REQUIRE(index.find("shared") != nullptr);
    CHECK(index.find("shared")->image_path == std::string("/opt/lib/modules/") + k_release + "/weak-updates/shared.ko");
    CHECK(index.find("shared")->path == fs::canonical(image.directory + "/../common/shared.ko").native());
    REQUIRE(index.find("deep") != nullptr);
    CHECK(index.find("deep")->image_path == std::string("/opt/lib/modules/") + k_release + "/extra/deep.ko");
    REQUIRE(index.find("alpha") != nullptr);
    CHECK(index.find("alpha")->image_path == std::string("/opt/lib/modules/") + k_release + "/alpha.ko");
}

TEST_CASE("digests that are known are taken, the others computed") {
    Image image;
    image.add("alpha");
    image.add("beta");
    const std::string path = std::string("/opt/lib/modules/") + k_release + "/alpha.ko";
    const auto index =
        kmod::ModuleIndex::build(image.directory, image.out.path(), {{path, "abc"}, {"/elsewhere.ko", "def"}});
    CHECK(index.find("alpha")->sha256 == "abc");
    CHECK(index.find("beta")->sha256 == image.index().find("beta")->sha256);
}

TEST_CASE("of many modules only some are named") {
    Image image;
    for (int i = 100; i < 125; ++i) image.add("m" + std::to_string(i));
    try {
        (void)image.index().order("other", {});
        FAIL("expected an error");
    } catch (const Error& error) {
        CHECK(error.code() == "module-not-in-image");
        CHECK(error.message().ends_with("m118, m119 and 5 more"));
    }
}

TEST_CASE("an absent directory is an empty index") {
    CHECK(kmod::ModuleIndex::build("/nonexistent/kmm", "").modules().empty());
}

TEST_CASE("M53: names in files and modules") {
    SUBCASE("- and _ are the same") {
        Image image;
        KoSpec spec;
        spec.name = "nv_peer_mem";
        image.add("nv-peer-mem.ko", spec);
        CHECK(image.index().find("nv-peer_mem") != nullptr);
    }
    SUBCASE("another name inside") {
        Image image;
        KoSpec spec;
        spec.name = "other";
        image.add("demo.ko", spec);
        const Error error = caught([&] { image.index().require_sound(); });
        CHECK(error.code() == "module-name");
        CHECK(error.exit() == Exit::data);
    }
    SUBCASE("the name of a link counts") {
        Image image;
        KoSpec spec;
        spec.name = "demo";
        image.add("demo-1.2.ko", spec);
        CHECK(caught([&] { image.index().require_sound(); }).code() == "module-name");
        std::filesystem::create_symlink("demo-1.2.ko", image.directory + "/demo.ko");
        CHECK(image.index().find("demo")->image_path.ends_with("/demo.ko"));
        CHECK(image.index().find("demo")->path.ends_with("/demo-1.2.ko"));
    }
    SUBCASE("two files of one module") {
        Image image;
        image.add("demo");
        KoSpec spec;
        spec.name = "demo";
        image.add("extra/demo.ko", spec);
        CHECK(image.index().faults().empty());  // the same bytes
        CHECK(image.index().find("demo") != nullptr);
        for (const char* how : {"xz", "gzip", "zstd"}) {  // and however they are packed
            put(image.directory + "/extra/demo.ko", kmod::packed_module(make_ko(spec), how));
            CHECK(image.index().faults().empty());
            CHECK(image.index().find("demo") != nullptr);
        }
        spec.srcversion = "OTHER";
        image.add("extra/demo.ko", spec);
        CHECK(caught([&] { (void)image.index().order("demo", {}); }).code() == "duplicate-module");
        CHECK(image.index().find("demo") == nullptr);
        image.add("updates/demo.ko", spec);
        CHECK(image.index().find("demo")->image_path.ends_with("/updates/demo.ko"));
        CHECK(image.index().order("demo", {}).names == std::vector<std::string>{"demo"});
        std::filesystem::remove(image.directory + "/updates/demo.ko");
        CHECK(caught([&] { image.index().require_sound(); }).code() == "duplicate-module");
    }
    SUBCASE("twins that differ in - and _") {
        Image image;
        KoSpec spec;
        spec.name = "a_b";
        image.add("a_b.ko", spec);
        spec.srcversion = "OTHER";
        image.add("a-b.ko", spec);
        CHECK(caught([&] { image.index().require_sound(); }).code() == "duplicate-module");
    }
    SUBCASE("a file that nobody needs is no hindrance; one that is needed is") {
        Image image;
        image.add("demo");
        put(image.directory + "/extra/other.ko", "<html>404</html>");
        put(image.directory + "/need-ed.ko", "");
        const auto index = image.index();
        CHECK(index.faults().size() == 2);
        CHECK(index.order("demo", {}).names == std::vector<std::string>{"demo"});
        CHECK(caught([&] { (void)index.order("other", {}); }).code() == "module-format");
        KoSpec spec;
        spec.name = "user";
        spec.depends = "need_ed";
        image.add("user.ko", spec);
        const Error error = caught([&] { (void)image.index().order("user", {}); });
        CHECK(error.code() == "module-format");
        CHECK(error.message().find("/need-ed.ko") != std::string::npos);
    }
    SUBCASE("all faults at once") {
        Image image;
        put(image.directory + "/a.ko", "text");
        put(image.directory + "/b.ko", "");
        const Error error = caught([&] { image.index().require_sound(); });
        CHECK(error.exit() == Exit::data);
        CHECK(error.diagnostics().size() == 2);
        CHECK(error.details().empty());
    }
    SUBCASE("of very many faults the first") {
        Image image;
        for (int i = 100; i < 400; ++i) put(fmt::format("{}/m{}.ko", image.directory, i), "text");
        const Error error = caught([&] { image.index().require_sound(); });
        CHECK(error.message() == "300 faults found");
        REQUIRE(error.diagnostics().size() == 20);
        CHECK(error.diagnostics().front().message.find("/m100.ko: ") != std::string::npos);
        CHECK(error.diagnostics().back().message.find("/m119.ko: ") != std::string::npos);
        REQUIRE(error.details().size() == 1);
        CHECK(error.details().front().first == "left out");
        CHECK(error.details().front().second == "280 more faults");
    }
}

TEST_CASE("load order") {
    Image image;
    image.add("top", "middle", {"low_symbol"});
    image.add("middle", "low,host-module");
    image.add("low", "", {}, {"low_symbol"});
    image.add("unrelated");
    SUBCASE("dependencies first, main last, nothing else") {
        const auto order = image.index().order("top", {});
        CHECK(order.names == Names{"low", "middle", "top"});
        CHECK(order.external == Names{"host_module"});
    }
    SUBCASE("symbols count without depends") {
        Image other;
        other.add("user", "", {"answer"});
        other.add("provider", "", {}, {"answer"});
        CHECK(other.index().order("user", {}).names == Names{"provider", "user"});
    }
    SUBCASE("KMM's loading order is the reverse of the load") {
        Image other;
        for (const char* name : {"a", "b", "c"}) other.add(name);
        CHECK(other.index().order("a", {"a", "b", "c"}).names == Names{"c", "b", "a"});
    }
    SUBCASE("softdeps: before, after, and not required") {
        Image other;
        KoSpec spec;
        spec.name = "soft";
        spec.modinfo = {"softdep=pre: helper\tmissing  post:\tlater"};
        other.add("soft.ko", spec);
        other.add("helper");
        other.add("later");
        const auto order = other.index().order("soft", {});
        CHECK(order.names == Names{"helper", "soft", "later"});
        CHECK(order.external.empty());
        CHECK(order.soft == Names{"missing"});
        CHECK(order.optional == std::set<std::string>{"helper", "later"});
    }
    SUBCASE("softdeps name aliases, too, and all that have them are meant") {
        Image other;
        KoSpec spec;
        spec.name = "soft";
        spec.modinfo = {"softdep=pre: any-sum post: any-late", "alias=any_sum"};
        other.add("soft.ko", spec);
        for (const char* name : {"sum_a", "sum_b", "late"}) {
            spec.name = name;
            spec.modinfo = {name == std::string("late") ? "alias=any_late" : "alias=any-*m"};
            other.add(std::string(name) + ".ko", spec);
        }
        const auto order = other.index().order("soft", {});
        CHECK(order.names == Names{"sum_a", "sum_b", "soft", "late"});
        CHECK(order.soft.empty());
        CHECK(order.optional == std::set<std::string>{"late", "sum_a", "sum_b"});
        other.add("wild");
        const auto patterned =
            other.index().order("wild", {}, {{}, {{"wil[!d]", {{}, {"sum_a"}}}, {"w[a-j]ld", {{"late"}, {}}}}});
        CHECK(patterned.names == Names{"late", "wild"});
    }
    SUBCASE("softdeps name modules of the image by alias lines of the configuration, which come first") {
        Image other;
        KoSpec spec;
        spec.name = "main";
        spec.modinfo = {"softdep=pre: by-line helper unwanted of_host post: last"};
        other.add("main.ko", spec);
        for (const char* name : {"base", "helper", "other", "unwanted", "tail"}) other.add(name);
        const kmod::OrderExtras extras{{},
                                       {},
                                       {{"by-*e", "base", "", {}},
                                        {"helper", "other", "", {}},
                                        {"unwanted", "off", "", {}},
                                        {"of_host", "far", "", {}},
                                        {"last", "tail", "", {}}}};
        const auto order = other.index().order("main", {}, extras);
        CHECK(order.names == Names{"base", "other", "main", "tail"});
        CHECK(order.soft == Names{"of_host"});
        CHECK(order.by_alias == std::vector<std::pair<std::string, std::string>>{
                                    {"by_line", "base"}, {"helper", "other"}, {"last", "tail"}});
    }
    SUBCASE("what softdeps want after a dependency, as modprobe has it") {
        Image other;
        KoSpec spec;
        spec.name = "low";
        spec.modinfo = {"softdep=post: follower above configured host_only"};
        other.add("low.ko", spec);
        spec.name = "follower";
        spec.modinfo = {"softdep=post: last low"};
        other.add("follower.ko", spec);
        other.add("main", "low");
        other.add("above", "main");
        for (const char* name : {"last", "configured"}) other.add(name);
        const kmod::OrderExtras extras{{}, {{"low", {{"none"}, {}}, false}}};
        const auto order = other.index().order("main", {}, extras);
        CHECK(order.names == Names{"low", "follower", "last", "configured", "main", "above"});
        CHECK(order.soft_post == Names{"host_only"});
        CHECK(order.optional == std::set<std::string>{"above", "configured", "follower", "last"});
    }
    SUBCASE("what a softdep asks for and something needs is required") {
        Image other;
        KoSpec spec;
        spec.name = "soft";
        spec.depends = "hard";
        spec.modinfo = {"softdep=pre: hard request"};
        other.add("soft.ko", spec);
        other.add("hard");
        other.add("request", "below,elsewhere");
        other.add("below");
        const auto order = other.index().order("soft", {});
        CHECK(order.names == Names{"hard", "below", "request", "soft"});
        CHECK(order.external == Names{"elsewhere"});
        CHECK(order.optional == std::set<std::string>{"below", "request", "elsewhere"});
        CHECK(other.index().order("soft", {"soft", "request"}).optional.empty());
    }
    SUBCASE("softdep, depends= and loading order count together") {
        Image other;
        KoSpec spec;
        spec.name = "main";
        spec.modinfo = {"softdep=pre: soft ordered configured elsewhere", "softdep=pre: never"};
        other.add("main.ko", spec);
        for (const char* name : {"soft", "ordered", "configured"}) other.add(name);
        const kmod::OrderExtras extras{{"configured"}, {{"main", {{"none"}, {}}, false}}};
        const auto order = other.index().order("main", {"main", "ordered"}, extras);
        CHECK(order.names == Names{"ordered", "soft", "configured", "main"});
        CHECK(order.soft == Names{"elsewhere"});
    }
    SUBCASE("a softdep that needs the module itself comes after it, as with modprobe") {
        Image other;
        KoSpec spec;
        spec.name = "low";
        spec.modinfo = {"softdep=pre: high"};
        other.add("low.ko", spec);
        other.add("high", "low");
        CHECK(other.index().order("low", {}).names == Names{"low", "high"});
        CHECK(other.index().order("low", {}).optional == std::set<std::string>{"high"});
        CHECK(other.index().order("high", {}).names == Names{"low", "high"});
    }
    SUBCASE("a softdep of a softdep closes no circle") {
        Image other;
        KoSpec spec;
        spec.name = "first";
        spec.modinfo = {"softdep=pre: second"};
        other.add("first.ko", spec);
        spec.name = "second";
        spec.modinfo = {"softdep=pre: third"};
        other.add("second.ko", spec);
        other.add("third", "first");
        CHECK(other.index().order("first", {}).names == Names{"first", "third", "second"});
        CHECK(other.index().order("third", {}).names == Names{"second", "first", "third"});
    }
    SUBCASE("a cycle is named") {
        Image other;
        other.add("a", "b");
        other.add("b", "c");
        other.add("c", "a");
        const Error error = caught([&] { (void)other.index().order("a", {}); });
        CHECK(error.code() == "dependency-cycle");
        CHECK(error.message().find("a -> b -> c -> a") != std::string::npos);
    }
    SUBCASE("an alias, with the module that has it") {
        Image other;
        KoSpec spec;
        spec.name = "real";
        spec.modinfo = {"alias=nick-name", "alias=pci:v*sv*"};
        other.add("real.ko", spec);
        const Error error = caught([&] { (void)other.index().order("nick_name", {}); });
        CHECK(error.exit() == Exit::not_found);
        CHECK(error.message() == "the image has no module nick_name; that is an alias of real");
        CHECK(other.index().with_alias("pci:v1sv2") == Names{"real"});
        CHECK(other.index().with_alias("real").empty());
    }
    SUBCASE("an absent module, with the nearest name") {
        const Error error = caught([&] { (void)image.index().order("midle", {}); });
        CHECK(error.exit() == Exit::not_found);
        CHECK(error.hint() == "did you mean middle?");
    }
}

}
