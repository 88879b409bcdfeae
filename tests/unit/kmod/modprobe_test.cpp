// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <filesystem>

#include "base/error.hpp"
#include "kmod/check/preflight.hpp"
#include "kmod/host/modprobe_args.hpp"
#include "kmod/host/modprobe_config.hpp"
#include "unit/kmod/fixtures.hpp"

using namespace kmm;
using namespace kmm::test;
using Words = std::vector<std::string>;

namespace {

kmod::ModprobeCommand whole(const Words& words) {
    return kmod::read_modprobe_arguments(words, "modprobe.rawArgs.load", kmod::ArgsKind::whole_command);
}
kmod::ModprobeCommand options(const Words& words) {
    return kmod::read_modprobe_arguments(words, "modprobe.args.load", kmod::ArgsKind::options_only);
}

std::string code_of_words(const Words& words, kmod::ArgsKind kind) {
    try {
        (void)kmod::read_modprobe_arguments(words, "modprobe.args.load", kind);
    } catch (const Error& error) {
        CHECK(error.exit() == Exit::data);
        return error.code();
    }
    return "";
}

TEST_CASE("the kernel's command line is read as libkmod reads it, and module_blacklist= as the kernel does") {
    FakeHost host;
    struct Row {
        const char* line;
        std::vector<std::string> options;  // of demo
    };
    // What `modprobe -c` prints of each.
    for (const Row& row : std::vector<Row>{{R"("demo.key=a b" z.t=2)", {R"(key="a b")"}},
                                           {R"(demo.key="a b" x)", {R"(key="a b")"}},
                                           {"a.b=1 -- demo.x=1", {"x=1"}},
                                           {R"("demo".key=1)", {}},
                                           {R"(de"mo.key=1)", {}},
                                           {R"(demo."key=1 2")", {}},
                                           {R"("demo.a=1)", {}},
                                           {"demo.flag", {"flag"}},
                                           {R"("demo.flag")", {}},
                                           {"x=demo.z=1", {}},
                                           {R"("demo.a=x"y b.c=1)", {R"(a="x"y)"}}}) {
        CAPTURE(row.line);
        put(host.paths.proc + "/cmdline", std::string(row.line) + "\n");
        const auto config = kmod::read_modprobe_config(host.paths);
        std::vector<std::string> found;
        if (const auto it = config.options.find("demo"); it != config.options.end()) {
            for (const auto& option : it->second) found.push_back(option.text);
        }
        CHECK(found == row.options);
    }
    const auto blacklisted = [&](const char* line) {
        put(host.paths.proc + "/cmdline", std::string(line) + "\n");
        return kmod::read_modprobe_config(host.paths).kernel_blacklist;
    };
    using Names = std::set<std::string>;
    CHECK(blacklisted("module_blacklist=a-b,c_d -- module_blacklist=h") == Names{"a-b", "c_d"});
    CHECK(blacklisted("\"module_blacklist=e\"") == Names{"e"});
    CHECK(blacklisted("module_blacklist=\"f,g\"") == Names{"f", "g"});
    CHECK(blacklisted("module_blacklist=a,b quiet module_blacklist=c") == Names{"c"});  // the kernel keeps the last one
}

TEST_CASE("whole modprobe commands") {
    const auto one = whole({"-vd", "/opt", "demo", "answer=7", "who=you"});
    CHECK(one.modules == Words{"demo"});
    CHECK(one.parameters == Words{"answer=7", "who=you"});
    CHECK(one.directory == "/opt");
    CHECK_FALSE(one.force.any());
    const auto many = whole({"-a", "--dirname=/opt", "one", "two"});
    CHECK(many.modules == Words{"one", "two"});
    const auto gone = whole({"-r", "-w", "500", "--remove-holders", "demo", "dep"});
    CHECK(gone.remove);
    CHECK(gone.remove_holders);
    CHECK(gone.wait == std::chrono::milliseconds(500));
    CHECK(gone.modules == Words{"demo", "dep"});
    CHECK(whole({"--", "demo"}).modules == Words{"demo"});
    const auto forced = whole({"--force-vermagic", "demo"});
    CHECK(forced.force.vermagic);
    CHECK_FALSE(forced.force.modversions);
    CHECK(forced.forcing == Words{"--force-vermagic"});
}

TEST_CASE("options beside a module name") {
    CHECK(options({"-v", "--first-time", "-b", "-i"}).first_time);
    CHECK(options({"-f"}).force.vermagic);
    CHECK(options({"-w100"}).wait == std::chrono::milliseconds(100));
    struct Row {
        Words words;
        kmod::ArgsKind kind;
        const char* code;
    };
    const Row rows[] = {
        {{"--show-depends"}, kmod::ArgsKind::options_only, "unsupported"},
        {{"-C", "/x"}, kmod::ArgsKind::options_only, "unsupported"},
        {{"demo"}, kmod::ArgsKind::options_only, "unsupported"},
        {{"-S", "6.1"}, kmod::ArgsKind::options_only, "unsupported"},
        {{"-w"}, kmod::ArgsKind::options_only, "bad-value"},
        {{"-w", "soon"}, kmod::ArgsKind::options_only, "bad-value"},
        {{"--all=yes"}, kmod::ArgsKind::options_only, "bad-value"},
        {{}, kmod::ArgsKind::whole_command, "missing-field"},
        {{"-d", "/opt"}, kmod::ArgsKind::whole_command, "missing-field"},
        {{"-a", "a b"}, kmod::ArgsKind::whole_command, "bad-value"},
        {{"../demo"}, kmod::ArgsKind::whole_command, "bad-value"},
    };
    for (const auto& row : rows) {
        CAPTURE(row.code);
        CHECK(code_of_words(row.words, row.kind) == row.code);
    }
}

TEST_CASE("options of an alias stand among those of its module as modprobe comes by them") {
    FakeHost host;
    put(host.paths.etc + "/modprobe.d/a.conf", "alias nick base\noptions nick answer=1\noptions base answer=2\n");
    put(host.paths.etc + "/modprobe.d/b.conf", "options nick more=3 more=3\n");
    put(host.paths.proc + "/cmdline", "quiet base.more=7\n");
    auto config = kmod::read_modprobe_config(host.paths);
    for (int i = 0; i < 2; ++i) {  // the second time there is nothing to add
        kmod::add_alias_options(config, "nick", "base");
        Words texts;
        for (const auto& option : config.options.at("base")) texts.push_back(option.text);
        CHECK(texts == Words{"answer=1", "answer=2", "more=3", "more=3", "more=7"});
    }
}

TEST_CASE("the host's modprobe.d and command line") {
    FakeHost host;
    put(host.paths.etc + "/modprobe.d/a.conf",
        "# options demo no=1\noptions demo answer=7 \\\n  who=\"a b\"\nblacklist other-one\ninstall dep "
        "/bin/false\nsoftdep demo pre: x-y z post: late\nalias nick-* demo\nremove vendor-* /bin/true\nremove "
        "vendor-net /bin/false\nalias lost\n");
    put(host.directory.path() + "/usr/lib/modprobe.d/a.conf", "options demo hidden=1\n");
    put(host.directory.path() + "/lib/modprobe.d/b.conf", "options demo from=lib\r\nnonsense\r\n");
    put(host.paths.proc + "/cmdline",
        "quiet root=/dev/sda1 demo.level=3 modprobe.blacklist=p,q module_blacklist=k -- demo.not=1\n");
    const auto config = kmod::read_modprobe_config(host.paths);
    Words texts;
    for (const auto& option : config.options.at("demo")) texts.push_back(option.text + " " + option.where);
    CHECK(texts == Words{"answer=7 /etc/modprobe.d/a.conf:2", "who=\"a b\" /etc/modprobe.d/a.conf:2",
                         "from=lib /lib/modprobe.d/b.conf:1", "level=3 /proc/cmdline", "not=1 /proc/cmdline"});
    CHECK(config.blacklist.at("other_one").where == "/etc/modprobe.d/a.conf:4");
    CHECK(config.blacklist.contains("p"));
    CHECK(config.kernel_blacklist == std::set<std::string>{"k"});
    REQUIRE(kmod::command_for(config.install, "dep") != nullptr);
    CHECK(kmod::command_for(config.install, "dep")->text == "/bin/false");
    CHECK(kmod::command_for(config.install, "demo") == nullptr);
    REQUIRE(kmod::command_for(config.remove, "vendor_net") != nullptr);  // the first line that fits
    CHECK(kmod::command_for(config.remove, "vendor_net")->where == "/etc/modprobe.d/a.conf:8");
    REQUIRE(config.aliases.size() == 1);
    CHECK(config.aliases[0].pattern == "nick-*");
    CHECK(config.aliases[0].module == "demo");
    CHECK(kmod::alias_fits("nick-*", "nick_1"));
    CHECK_FALSE(kmod::alias_fits("nick-*", "demo"));
    CHECK(kmod::alias_fits("net-pf-[3-5]", "net_pf_4"));
    CHECK_FALSE(kmod::alias_fits("net-pf-[3-5]", "net-pf-6"));
    REQUIRE(config.softdeps.size() == 1);
    CHECK(config.softdeps[0].pattern == "demo");
    CHECK(config.softdeps[0].names.pre == Words{"x_y", "z"});
    CHECK(config.softdeps[0].names.post == Words{"late"});
    CHECK(kmod::effective_parameters(config, "demo", {"answer=8"}) == "who=\"a b\" from=lib level=3 not=1 answer=8");
    CHECK(kmod::effective_parameters(config, "dep", {}).empty());
}

TEST_CASE("one softdep line counts for a module, as modprobe has it") {  // compared with kmod 30, -n --show-depends
    FakeHost host;
    const Words own = {"pre: a post: b", "pre: c"};
    const auto around = [&](const Words& values) {
        return kmod::soft_names(kmod::read_modprobe_config(host.paths).softdeps, "my_demo", values);
    };
    CHECK(around(own).pre == Words{"a"});
    CHECK(around(own).post == Words{"b"});
    CHECK(around({" ", "pre: c other: d"}).pre == Words{"c", "other:", "d"});
    SUBCASE("files after modules.softdep add nothing to what the module names itself") {
        put(host.paths.etc + "/modprobe.d/x.conf", "softdep my_demo\nsoftdep my-d* pre: x\nsoftdep my_demo pre: y\n");
        CHECK(around(own).pre == Words{"a"});
        CHECK(around({}).pre == Words{"x"});
    }
    SUBCASE("files before it take its place") {
        put(host.paths.etc + "/modprobe.d/a.conf", "softdep my_demo pre: x\nsoftdep my_demo post: y\n");
        CHECK(around(own).pre == Words{"x"});
        CHECK(around(own).post.empty());
    }
    SUBCASE("also where they name nothing") {
        put(host.paths.etc + "/modprobe.d/a.conf", "softdep my_demo pre:\n");
        CHECK(around(own).pre.empty());
        CHECK(around(own).post.empty());
    }
}

TEST_CASE("a softdep that names a module drops the install command") {  // compared with kmod 30, -n -v
    const std::vector<kmod::SoftLine> lines{{"demo", {{"helper"}, {}}}, {"late", {{}, {"helper"}}}};
    const Words known{"helper", "demo"};
    CHECK(kmod::is_install_dropped(lines, "demo", {}, known));
    CHECK(kmod::is_install_dropped(lines, "late", {}, {"helper", "late"}));
    CHECK(kmod::is_install_dropped({}, "demo", {"pre: helper"}, known));
    CHECK_FALSE(kmod::is_install_dropped(lines, "other", {}, known));
    CHECK_FALSE(kmod::is_install_dropped({{"demo", {{"nowhere"}, {}}}}, "demo", {}, known));
}

TEST_CASE("lines and files of modprobe.d as modprobe reads them") {  // compared with modprobe -c of kmod 30
    FakeHost host;
    put(host.paths.etc + "/modprobe.d/x.conf",
        "options foo a=1,\\\n2 b=3\noptions bar c=\\\"x y\\\"\noptions tail e=1\\\\\noptions next f=1\n# comment "
        "\\\noptions hidden g=1\n\n  options last h=1");
    put(host.paths.etc + "/modprobe.d/y.alias", "options other i=1\n");
    put(host.paths.etc + "/modprobe.d/z.conf.bak", "options no j=1\n");
    const auto config = kmod::read_modprobe_config(host.paths);
    const auto texts = [&](const char* name) {
        Words found;
        if (const auto it = config.options.find(name); it != config.options.end()) {
            for (const auto& option : it->second)
                found.push_back(option.text + " " + option.where.substr(option.where.rfind('/') + 1));
        }
        return found;
    };
    CHECK(texts("foo") == Words{"a=1,2 x.conf:1", "b=3 x.conf:1"});
    CHECK(texts("bar") == Words{"c=\"x y\" x.conf:3"});
    CHECK(texts("tail") == Words{"e=1\\ x.conf:4"});
    CHECK(texts("next") == Words{"f=1 x.conf:5"});
    CHECK(texts("hidden").empty());
    CHECK(texts("last") == Words{"h=1 x.conf:9"});
    CHECK(texts("other") == Words{"i=1 y.alias:1"});
    CHECK(texts("no").empty());
}

TEST_CASE("a line of modprobe.d without its command is passed over") {  // as modprobe of kmod 30: "ignoring bad line
                                                                        // starting with 'install'"
    FakeHost host;
    put(host.paths.etc + "/modprobe.d/x.conf",
        "install demo\ninstall other \t\nremove demo\noptions demo\nalias demo\nblacklist\n");
    const auto config = kmod::read_modprobe_config(host.paths);
    CHECK(config.install.empty());
    CHECK(config.remove.empty());
    CHECK(config.options.empty());
    CHECK(config.aliases.empty());
    CHECK(config.blacklist.empty());
}

TEST_CASE("links of modprobe.d lead where they lead on the host") {  // as /etc/modprobe.d/nvidia.conf ->
                                                                     // /etc/alternatives/glx--nvidia-modprobe.conf
    FakeHost host;
    host.paths.root = host.directory.path();
    put(host.paths.etc + "/alternatives/driver.conf", "options demo answer=7\n");
    put(host.directory.path() + "/usr/share/site/b.conf", "blacklist rival\n");
    std::filesystem::create_directories(host.paths.etc + "/modprobe.d");
    std::filesystem::create_symlink("/etc/alternatives/driver.conf", host.paths.etc + "/modprobe.d/driver.conf");
    std::filesystem::create_directories(host.directory.path() + "/run");
    std::filesystem::create_directory_symlink("/usr/share/site", host.directory.path() + "/run/modprobe.d");
    put(host.directory.path() + "/usr/lib/modprobe.d/masked.conf", "install demo /bin/false\n");
    std::filesystem::create_symlink("/dev/null", host.paths.etc + "/modprobe.d/masked.conf");
    const auto config = kmod::read_modprobe_config(host.paths);
    REQUIRE(config.options.contains("demo"));
    CHECK(config.options.at("demo").front().where == "/etc/modprobe.d/driver.conf:1");
    CHECK(config.blacklist.contains("rival"));
    CHECK(config.install.empty());
}

/// A file of an image's modprobedDir.
kmod::ImageConfigFile of_image(const std::string& name, const std::string& text) {
    return {name, "image:/opt/" + name, kmod::config_lines(text)};
}

TEST_CASE("files of modprobedDir lie among the host's by their names, behind that of the same name") {
    FakeHost host;
    put(host.paths.etc + "/modprobe.d/a.conf", "options demo a=1\nalias one demo\n");
    put(host.paths.etc + "/modprobe.d/b.conf", "options demo b=0\nblacklist kept\ninstall rival /bin/false\n");
    put(host.paths.etc + "/modprobe.d/d.conf", "options demo d=1\nsoftdep demo pre: late\n");
    const auto config = kmod::read_modprobe_config(
        host.paths, {of_image("b.conf", "# x\noptions demo \\\n  b=1\ninstall demo /bin/false\nremove demo stop me\n"),
                     of_image("c.conf", "softdep demo pre: early\nblacklist rival\nalias two demo\n")});
    std::vector<std::string> options;
    for (const auto& option : config.options.at("demo")) options.push_back(option.text + " " + option.where);
    CHECK(options == Words{"a=1 /etc/modprobe.d/a.conf:1", "b=0 /etc/modprobe.d/b.conf:1", "b=1 image:/opt/b.conf:2",
                           "d=1 /etc/modprobe.d/d.conf:1"});
    CHECK(config.options.at("demo")[1].source == kmod::ConfigSource::host);
    CHECK(config.options.at("demo")[2].source == kmod::ConfigSource::image);
    CHECK(config.blacklist.contains("kept"));
    CHECK(config.blacklist.at("rival").source == kmod::ConfigSource::image);
    CHECK(kmod::soft_names(config.softdeps, "demo", {}).pre == Words{"early"});
    REQUIRE(config.install.size() == 2);
    CHECK(config.install[0].where == "/etc/modprobe.d/b.conf:3");
    CHECK(config.install[1].where == "image:/opt/b.conf:4");
    CHECK(config.remove.at(0).text == "stop me");
    CHECK(kmod::aliased(config.aliases, "two") == std::vector<std::string>{"demo"});
}
}
