// SPDX-License-Identifier: Apache-2.0
// Images with changed files, written to a scripted registry and to layouts.
#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <set>

#include "base/error.hpp"
#include "base/text.hpp"
#include "pull_fixture.hpp"
#include "registry/local/local.hpp"
#include "registry/pull/puller.hpp"
#include "registry/pull/rewrite.hpp"
#include "registry/pull/upload.hpp"
#include "rewrite_fixture.hpp"
#include "sys/file_ops.hpp"
#include "sys/temp_dir.hpp"
#include "value/reader.hpp"

using namespace kmm;

using test::Destination, test::json, test::k_module, test::rewrite, test::tar_with;

TEST_CASE("rewrite: one layer more, everything below stays, the name comes last") {
    test::FakeRegistry source;
    const auto base = test::gzip_layer(tar_with("old"));
    const std::string was = source.add_image("v1", {base});
    Destination to;
    const auto done = rewrite(source.reference(), to.registry.reference(":signed"));
    REQUIRE(done.code() == "ok");
    CHECK(done.result.source_digest == was);
    REQUIRE(done.result.files.size() == 1);
    CHECK(done.result.files[0].path == k_module);
    CHECK("sha256:" + done.result.files[0].before == test::sha256("old"));
    CHECK("sha256:" + done.result.files[0].after == test::sha256("old changed"));
    const std::string text = to.manifests.at("signed");
    CHECK(done.result.digest == test::sha256(text));
    CHECK(to.types.at("signed") == "application/vnd.oci.image.manifest.v1+json");
    const auto manifest = json(text);
    const auto& layers = manifest.find("layers")->items();
    REQUIRE(layers.size() == 2);
    CHECK(layers[0].get_string({"digest"}) == test::sha256(base.bytes));
    CHECK(layers[1].get_string({"mediaType"}) == base.media_type);
    CHECK(to.puts == std::vector<std::string>{"blob", "blob", "blob", "signed"});
    const auto config = json(to.blobs.at(manifest.get_string({"config", "digest"})));
    CHECK(config.find_path({"rootfs", "diff_ids"})->items().size() == 2);

    // What was written is an image: pulled, it holds the new file.
    for (const auto& [digest, bytes] : to.blobs) (void)to.registry.add_blob(bytes);
    (void)to.registry.add_manifest("v1", to.types.at("signed"), text);
    const auto pulled = test::pull_from(to.registry);
    REQUIRE(pulled.code() == "ok");
    CHECK(pulled.files.at(test::k_modules + "/a.ko") == "old changed");
    CHECK(pulled.files.at(test::k_modules + "/readme") == "r");
}

TEST_CASE("rewrite: behind a link, the new file lies where the link leads, so that the link stays") {
    test::FakeRegistry source;
    const std::string kernel = "usr/lib/modules/" + test::k_kernel;
    source.add_image("v1", {test::gzip_layer(test::TarBuilder()
                                                 .symlink("lib", "usr/lib")
                                                 .file(kernel + "/b.ko", "b")
                                                 .file(kernel + "/a.ko", "a")
                                                 .symlink("usr/lib/modules/zz", test::k_kernel)
                                                 .finish())});
    const sys::TempDir top("kmm-test-");
    for (const bool all : {true, false}) {
        const std::string to = "oci:" + top.path() + (all ? "/all:v1" : "/two:v1");
        const auto done = rewrite(source.reference(), to, [&](auto& request) {
            request.source.dir_name = "/";
            request.source.all_kernels = all;
            if (!all) request.source.kernels = {"zz", test::k_kernel};
        });
        REQUIRE(done.code() == "ok");
        CHECK(done.result.files.size() == 2);
        CHECK(done.result.files[0].path == "/lib/modules/" + test::k_kernel + "/a.ko");
        const auto written = test::pull_from(source, [&](auto& request) {
            request.reference = to;
            request.dir_name = "/";
        });
        CHECK(written.files ==
              std::map<std::string, std::string>{{"lib/modules/" + test::k_kernel + "/a.ko", "a changed"},
                                                 {"lib/modules/" + test::k_kernel + "/b.ko", "b changed"}});
    }
}

TEST_CASE("rewrite: the same changes give the same digest; none give the same image") {
    test::FakeRegistry source;
    const std::string was = source.add_image("v1", {test::gzip_layer(tar_with("old"))});
    Destination one;
    Destination two;
    CHECK(rewrite(source.reference(), one.registry.reference()).result.digest ==
          rewrite(source.reference(), two.registry.reference()).result.digest);
    Destination three;
    const auto same = rewrite(source.reference(), three.registry.reference(), [](auto& request) {
        request.change = [](const std::string&, std::string) { return std::optional<std::string>(); };
    });
    CHECK(same.result.digest == was);
    CHECK(test::sha256(three.manifests.at("v1")) == was);
}

TEST_CASE("rewrite: a change that fails writes nothing") {
    test::FakeRegistry source;
    (void)source.add_image("v1", {test::gzip_layer(tar_with("old"))});
    Destination to;
    const auto done = rewrite(source.reference(), to.registry.reference(), [](auto& request) {
        request.change = [](const std::string&, std::string) -> std::optional<std::string> {
            throw Error(Exit::data, "module-format", "no module");
        };
    });
    CHECK(done.code() == "module-format");
    CHECK(to.registry.server().requests().empty());
    for (const bool named : {true, false}) {  // by whoever changes the file, or not: once is enough
        const auto told = rewrite(source.reference(), to.registry.reference(), [&](auto& request) {
            request.change = [&](const std::string& path, std::string) -> std::optional<std::string> {
                throw Error(Exit::data, "module-format", named ? path + ": no module" : "no module");
            };
        });
        REQUIRE(told.error);
        std::string text = told.error->message();
        for (const auto& context : told.error->context()) text += " " + context;
        const auto first = text.find(".ko");
        CHECK_MESSAGE((first != std::string::npos && text.find(".ko", first + 1) == std::string::npos), text);
    }
}

TEST_CASE("rewrite: of what lower layers hold, only what the image shows counts") {
    test::FakeRegistry source;
    (void)source.add_image(
        "v1", {test::gzip_layer(tar_with("old")), test::plain_layer(test::TarBuilder()
                                                                        .file(test::k_modules + "/.wh.a.ko", "")
                                                                        .file(test::k_modules + "/b.ko.xz", "b")
                                                                        .finish())});
    Destination to;
    const auto done = rewrite(source.reference(), to.registry.reference());
    REQUIRE(done.result.files.size() == 1);
    CHECK(done.result.files[0].path == "/" + test::k_modules + "/b.ko.xz");
    const auto manifest = json(to.manifests.at("v1"));
    CHECK(manifest.find("layers")->items().back().get_string({"mediaType"}) ==
          "application/vnd.oci.image.layer.v1.tar");
}

TEST_CASE("rewrite: an index, whole or one platform of it") {
    test::FakeRegistry source;
    const std::string amd = source.image_manifest({test::gzip_layer(tar_with("amd"))}, "amd64");
    const std::string arm = source.image_manifest({test::gzip_layer(tar_with("arm"))}, "arm64");
    const std::string type = "application/vnd.oci.image.manifest.v1+json";
    (void)source.add_manifest("amd", type, amd);
    (void)source.add_manifest("arm", type, arm);
    const std::string index =
        R"({"schemaVersion":2,"mediaType":"application/vnd.oci.image.index.v1+json","manifests":[)" +
        test::descriptor(type, amd, R"(,"platform":{"os":"linux","architecture":"amd64"})") + "," +
        test::descriptor(type, arm, R"(,"platform":{"os":"linux","architecture":"arm64"})") +
        R"(],"annotations":{"a":"b"}})";
    const std::string was = source.add_manifest("v1", "application/vnd.oci.image.index.v1+json", index);
    Destination all;
    const auto both = rewrite(source.reference(), all.registry.reference());
    REQUIRE(both.code() == "ok");
    CHECK(both.result.source_digest == was);
    CHECK(both.result.files.size() == 2);
    CHECK(all.puts.back() == "v1");
    CHECK(std::count(all.puts.begin(), all.puts.end(), "child") == 2);
    const auto list = json(all.manifests.at("v1"));
    CHECK(list.get_string({"annotations", "a"}) == "b");
    CHECK(list.find("manifests")->items()[0].get_string({"platform", "architecture"}) == "amd64");
    CHECK(all.manifests.count(list.find("manifests")->items()[0].get_string({"digest"})) == 1);

    Destination one;
    const auto only = rewrite(source.reference(), one.registry.reference(), [](auto& request) {
        request.platform = image::Platform{"linux", "arm64", ""};
    });
    REQUIRE(only.code() == "ok");
    REQUIRE(only.result.files.size() == 1);
    CHECK(only.result.files[0].platform == "linux/arm64");
    const auto half = json(one.manifests.at("v1"));
    CHECK(half.find("manifests")->items()[0].get_string({"digest"}) == test::sha256(amd));
    CHECK(half.find("manifests")->items()[1].get_string({"digest"}) != test::sha256(arm));

    Destination none;
    CHECK(rewrite(source.reference(), none.registry.reference(), [](auto& request) {
              request.platform = image::Platform{"linux", "riscv64", ""};
          }).code() == "no-platform");
    CHECK(none.puts.empty());
}

TEST_CASE("rewrite: patterns of files") {
    test::FakeRegistry source;
    (void)source.add_image("v1", {test::gzip_layer(test::TarBuilder()
                                                       .file(test::k_modules + "/a.ko", "a")
                                                       .file(test::k_modules + "/b.ko", "b")
                                                       .file("opt/tools/c.ko", "c")
                                                       .finish())});
    const auto with = [&](std::vector<std::string> patterns) {
        Destination to;
        return rewrite(source.reference(), to.registry.reference(), [&](auto& request) { request.files = patterns; });
    };
    CHECK(with({k_module}).result.files.size() == 1);
    CHECK(with({"/opt/lib/modules/*/?.ko"}).result.files.size() == 2);
    CHECK(with({"/opt/tools/c.ko", k_module}).result.files.size() == 2);
    const auto absent = with({"/opt/lib/modules/*/absent.ko"});
    CHECK(absent.code() == "file-not-in-image");
    CHECK(with({"/etc/x.ko"}).code() == "bad-path");
    CHECK(with({"a.ko"}).code() == "bad-path");
}

TEST_CASE("rewrite: a link to a file stands for the file, which is what is loaded under its name") {
    test::FakeRegistry source;
    const std::string file = "/" + test::k_modules + "/extra/b.ko";
    (void)source.add_image("v1", {test::gzip_layer(test::TarBuilder()
                                                       .file(test::k_modules + "/a.ko", "a")
                                                       .file(test::k_modules + "/extra/b.ko", "b")
                                                       .file(test::k_modules + "/extra/plain", "c")
                                                       .symlink(test::k_modules + "/b.ko", "second.ko")
                                                       .symlink(test::k_modules + "/second.ko", "more/../more/b.ko")
                                                       .symlink(test::k_modules + "/more", "extra")
                                                       .symlink(test::k_modules + "/c.ko", "extra/plain")
                                                       .finish())});
    const auto changed = [&](std::vector<std::string> patterns) {
        Destination to;
        const auto done = rewrite(source.reference(), to.registry.reference(),
                                  [&](auto& request) { request.files = std::move(patterns); });
        std::vector<std::string> paths{done.code()};
        for (const auto& one : done.result.files) paths.push_back(one.path);
        return paths;
    };
    using Paths = std::vector<std::string>;
    CHECK(changed({"/" + test::k_modules + "/b.ko"}) == Paths{"ok", file});
    CHECK(changed({"/" + test::k_modules + "/?.ko"}) ==
          Paths{"ok", k_module, file, "/" + test::k_modules + "/extra/plain"});
    CHECK(changed({}) == Paths{"ok", k_module, file, "/" + test::k_modules + "/extra/plain"});
    CHECK(changed({"/" + test::k_modules + "/more"}) == Paths{"file-not-in-image"});
}

TEST_CASE("rewrite: an image without modules, a kernel that is not there, a directory") {
    test::FakeRegistry source;
    (void)source.add_image("v1",
                           {test::gzip_layer(test::TarBuilder().file(test::k_modules + "/readme", "r").finish())});
    CHECK(rewrite(source.reference(), "oci:/nowhere").code() == "module-not-in-image");
    CHECK(rewrite(source.reference(), "oci:/nowhere", [](auto& request) {
              request.source.all_kernels = false;
              request.source.kernels = {"5.5"};
          }).code() == "kernel-not-in-image");
    CHECK(rewrite("dir:/tmp", "oci:/nowhere").code() == "unsupported");
}

TEST_CASE("push: what is there is not sent, blobs of another repository are taken over") {
    test::FakeRegistry source;
    const auto base = test::gzip_layer(tar_with("old"));
    (void)source.add_image("v1", {base});
    Destination to;
    to.blobs[test::sha256(base.bytes)] = base.bytes;
    CHECK(rewrite(source.reference(), to.registry.reference()).code() == "ok");
    CHECK(to.puts == std::vector<std::string>{"blob", "blob", "v1"});

    Destination same;
    (void)same.registry.add_image("v1", {base});
    std::size_t mounts = 0;
    same.before = [&](const test::FakeRequest& request) -> std::optional<test::FakeReply> {
        if (request.method == "HEAD" && request.target.find("/other/") != std::string::npos) {
            test::FakeReply none;
            none.status = 404;
            return none;
        }
        if (request.target.find("mount="
                                "sha256%3A" +
                                test::sha256(base.bytes).substr(7)) == std::string::npos)
            return std::nullopt;
        CHECK(request.target.ends_with("&from=team%2Fdriver"));
        ++mounts;
        test::FakeReply taken;
        taken.status = 201;
        return taken;
    };
    const auto done = rewrite(same.registry.reference(), same.registry.host() + "/team/other:v1");
    CHECK(done.code() == "ok");
    CHECK(mounts == 1);
    CHECK(same.puts.size() == 3);
}

TEST_CASE("push: large blobs go in pieces, a fault of the moment is tried again") {
    test::FakeRegistry source;
    std::string large(17U << 20U, '\0');
    for (std::size_t i = 0; i < large.size(); i += 7) large[i] = static_cast<char>(i * 2654435761U >> 24U);
    (void)source.add_image("v1", {test::plain_layer(tar_with(large))});
    Destination to;
    int faults = 2;
    to.before = [&](const test::FakeRequest& request) -> std::optional<test::FakeReply> {
        if (request.method != "PATCH" || faults-- <= 0) return std::nullopt;
        test::FakeReply busy;
        busy.status = 503;
        return busy;
    };
    CHECK(rewrite(source.reference(), to.registry.reference()).code() == "ok");
    CHECK(to.puts.back() == "v1");
}

TEST_CASE("push: a registry that is busy for every second request gets the image all the same") {
    test::FakeRegistry source;
    std::string large(70U << 20U, '\0');  // five pieces: begun anew after each fault, it would never end
    (void)source.add_image("v1", {test::plain_layer(tar_with(large))});
    Destination to;
    bool is_busy = false;
    std::size_t pieces = 0;
    to.before = [&](const test::FakeRequest& request) -> std::optional<test::FakeReply> {
        if (request.method == "PATCH") ++pieces;
        is_busy = !is_busy;
        if (!is_busy) return std::nullopt;
        test::FakeReply busy;
        busy.status = 503;
        return busy;
    };
    REQUIRE(rewrite(source.reference(), to.registry.reference()).code() == "ok");
    CHECK(to.puts.back() == "v1");
    CHECK(pieces <= 20);
}

TEST_CASE("push: an upload that was heard though it failed is not taken for lost") {
    test::FakeRegistry source;
    (void)source.add_image("v1", {test::gzip_layer(tar_with("old"))});
    for (const bool has_blob : {true, false}) {
        CAPTURE(has_blob);
        Destination to;
        int puts = 0;
        to.before = [&](const test::FakeRequest& request) -> std::optional<test::FakeReply> {
            if (request.method != "PUT" || request.target.find("digest=") == std::string::npos || ++puts > 2)
                return std::nullopt;
            const auto hex = request.target.substr(request.target.size() - 64);
            if (has_blob) to.blobs["sha256:" + hex] = request.body;
            test::FakeReply reply;
            reply.status = puts == 1 ? 503 : 404;
            return reply;
        };
        REQUIRE(rewrite(source.reference(), to.registry.reference()).code() == "ok");
        CHECK(to.puts.back() == "v1");
        CHECK(to.blobs.size() == 3);
    }
}

TEST_CASE("push: what the registry refuses ends it before the name is written") {
    test::FakeRegistry source;
    (void)source.add_image("v1", {test::gzip_layer(tar_with("old"))});
    struct Row {
        std::string method, in_target;
        int status;
        std::string code;
    };
    for (const Row& row : std::vector<Row>{{"POST", "/uploads/", 403, "registry-auth"},
                                           {"PUT", "/uploads/", 400, "registry-error"},
                                           {"PUT", "/uploads/", 413, "registry-error"},
                                           {"POST", "/uploads/", 404, "image-not-found"},
                                           {"PUT", "/manifests/", 500, "registry-error"},
                                           {"POST", "/uploads/", 301, "redirect-refused"},
                                           {"POST", "/uploads/", 200, "registry-error"}}) {
        CAPTURE(row.method);
        CAPTURE(row.status);
        Destination to;
        to.before = [&](const test::FakeRequest& request) -> std::optional<test::FakeReply> {
            if (request.method != row.method || request.target.find(row.in_target) == std::string::npos)
                return std::nullopt;
            test::FakeReply reply;
            reply.status = row.status;
            if (row.status == 301) reply.headers.emplace_back("Location", "/elsewhere");
            return reply;
        };
        CHECK(rewrite(source.reference(), to.registry.reference()).code() == row.code);
        CHECK(to.manifests.empty());
    }
}

TEST_CASE("push: a destination that cannot be is said before anything is read") {
    test::FakeRegistry source;
    const auto code = [&](const std::string& to) { return rewrite(source.reference(), to).code(); };
    const std::string digest = "@sha256:" + std::string(64, 'a');
    CHECK(code("reg.example.com/a" + digest) == "usage");
    CHECK(code("oci:dir" + digest) == "usage");
    CHECK(code("UPPER/case:v1") == "bad-reference");
    CHECK(code("oci-archive:a.tar" + digest) == "usage");
    CHECK(code("docker-archive:a.tar") == "unsupported");
    CHECK(source.server().requests().empty());
}

TEST_CASE("push: a token is asked for with the right to push and to take over") {
    Destination to;
    (void)to.registry.add_image("v1", {test::gzip_layer(tar_with("old"))});
    std::string token_target;
    to.before = [&](const test::FakeRequest& request) -> std::optional<test::FakeReply> {
        test::FakeReply reply;
        if (request.target.starts_with("/token")) {
            if (request.target.find("push") != std::string::npos) token_target = request.target;
            reply.body = R"({"token":"t0ken"})";
            return reply;
        }
        if (request.header("authorization") == "Bearer t0ken" ||
            request.target.find("/team/other/") == std::string::npos)
            return std::nullopt;
        reply.status = 401;
        reply.headers.emplace_back("WWW-Authenticate",
                                   "Bearer realm=\"http://" + to.registry.host() + "/token\",service=\"s\"");
        return reply;
    };
    CHECK(rewrite(to.registry.reference(), to.registry.host() + "/team/other:v2").code() == "ok");
    CHECK(token_target ==
          "/token?scope=repository%3Ateam%2Fother%3Apull%2Cpush&scope=repository%3Ateam%2Fdriver%3Apull&service=s");
}

TEST_CASE("layout: made, added to, and its tag replaced") {
    test::FakeRegistry source;
    (void)source.add_image("v1", {test::gzip_layer(tar_with("old"))});
    const sys::TempDir directory("kmm-test-");
    const std::string layout = directory.path() + "/layout";
    const auto one = rewrite(source.reference(), "oci:" + layout + ":one");
    REQUIRE(one.code() == "ok");
    CHECK(one.result.reference == "oci:" + layout + ":one");
    const auto two = rewrite("oci:" + layout + ":one", "oci:" + layout + ":two");
    REQUIRE(two.code() == "ok");
    CHECK(rewrite("oci:" + layout + ":two", "oci:" + layout + ":one").code() == "ok");
    const auto index = json(sys::read_file(layout + "/index.json"));
    CHECK(index.find("manifests")->items().size() == 2);
    registry::PullRequest request;
    request.reference = "oci:" + layout + ":one";
    request.kernels = {test::k_kernel};
    std::filesystem::create_directory(directory.path() + "/out");
    net::CurlHttpClient http;
    test::TestClock clock;
    (void)registry::pull(request, directory.path() + "/out", http, clock);
    CHECK(sys::read_file(directory.path() + "/out" + k_module) == "old changed changed changed");
    for (const auto& file : std::filesystem::recursive_directory_iterator(layout))
        CHECK(file.path().native().find("kmm-tmp") == std::string::npos);

    std::filesystem::create_directory(directory.path() + "/full");
    std::filesystem::create_directory(directory.path() + "/full/thing");
    CHECK(rewrite(source.reference(), "oci:" + directory.path() + "/full").code() == "bad-layout");
}

TEST_CASE("layout: two at once lose no name, and what a kill left is no obstacle") {
    const sys::TempDir directory("kmm-test-");
    const auto open = [&](const std::string& tag) {
        return registry::open_layout_sink(
            *registry::parse_local_reference("oci:" + directory.path() + "/layout:" + tag), {});
    };
    const auto one = open("one");
    const auto two = open("two");
    const std::string text = R"({"schemaVersion":2})";
    for (const auto& sink : {one.get(), two.get()})
        sink->publish("application/vnd.oci.image.manifest.v1+json", text, registry::digest_of(text));
    CHECK(json(sys::read_file(directory.path() + "/layout/index.json")).find("manifests")->items().size() == 2);

    test::FakeRegistry source;
    (void)source.add_image("v1", {test::gzip_layer(tar_with("old"))});
    const std::string begun = directory.path() + "/begun";
    std::filesystem::create_directories(begun + "/blobs/sha256");
    CHECK(rewrite(source.reference(), "oci:" + begun).code() == "ok");
    std::filesystem::remove(begun + "/index.json");
    std::ofstream(begun + "/.index.json.1-2.kmm-tmp") << "{";
    CHECK(rewrite(source.reference(), "oci:" + begun).code() == "ok");
}

TEST_CASE("archive: made whole or not at all, the same bytes each time, replaced") {
    test::FakeRegistry source;
    (void)source.add_image("v1", {test::gzip_layer(tar_with("old"))});
    const sys::TempDir directory("kmm-test-");
    const std::string file = directory.path() + "/driver.tar";
    const auto made = rewrite(source.reference(), "oci-archive:" + file + ":v2");
    REQUIRE(made.code() == "ok");
    CHECK(made.result.reference == "oci-archive:" + file + ":v2");
    const std::string bytes = sys::read_file(file);
    CHECK(rewrite(source.reference(), "oci-archive:" + file + ":v2").code() == "ok");
    CHECK(sys::read_file(file) == bytes);
    // From the archive into itself: read to the end before it is replaced. The signed image is what is signed then.
    CHECK(rewrite("oci-archive:" + file + ":v2", "oci-archive:" + file).code() == "ok");

    registry::PullRequest request;
    request.reference = "oci-archive:" + file;
    request.kernels = {test::k_kernel};
    std::filesystem::create_directory(directory.path() + "/out");
    net::CurlHttpClient http;
    test::TestClock clock;
    (void)registry::pull(request, directory.path() + "/out", http, clock);
    CHECK(sys::read_file(directory.path() + "/out" + k_module) == "old changed changed");

    CHECK(rewrite(source.reference(), "oci-archive:" + directory.path() + "/out").code() == "bad-layout");
    CHECK(rewrite(source.reference(), "oci-archive:" + directory.path() + "/none/a.tar").code() == "io");
    std::set<std::string> names;
    for (const auto& item : std::filesystem::directory_iterator(directory.path())) names.insert(item.path().filename());
    CHECK(names == std::set<std::string>{"driver.tar", "out"});
}
