// SPDX-License-Identifier: Apache-2.0
// Images without a registry: layouts and archives. The rules are those of a registry's images.
#include <doctest/doctest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "sys/temp_dir.hpp"
#include "unit/registry/pull_fixture.hpp"

using namespace kmm;
using namespace kmm::test;

namespace fs = std::filesystem;

namespace {

/// The files of an OCI layout, to be written into a directory or a tar.
struct Layout {
    std::map<std::string, std::string> files{{"oci-layout", R"({"imageLayoutVersion":"1.0.0"})"}};
    std::string entries;

    std::string add_blob(const std::string& bytes) {
        const std::string digest = sha256(bytes);
        files["blobs/sha256/" + digest.substr(7)] = bytes;
        return digest;
    }
    /// `more` is put behind the descriptor's members, "" for none: annotations, platform.
    std::string add_image(const std::vector<TestLayer>& layers, const std::string& more,
                          const std::string& architecture = "amd64") {
        FakeRegistry registry;  // only for its manifests
        const std::string manifest = registry.image_manifest(layers, architecture);
        std::string ids;
        for (const TestLayer& layer : layers) {
            add_blob(layer.bytes);
            ids += (ids.empty() ? "\"" : ",\"") + layer.diff_id + "\"";
        }
        add_blob(R"({"architecture":")" + architecture + R"(","os":"linux","rootfs":{"type":"layers","diff_ids":[)" +
                 ids + "]}}");
        entries +=
            (entries.empty() ? "" : ",") + descriptor("application/vnd.oci.image.manifest.v1+json", manifest, more);
        files["index.json"] = R"({"schemaVersion":2,"manifests":[)" + entries + "]}";
        return add_blob(manifest);
    }
    void write(const std::string& directory) const {
        for (const auto& [name, text] : files) {
            put_file(directory + "/" + name, text);
        }
    }
    [[nodiscard]] std::string tar() const {
        TarBuilder builder;
        for (const auto& [name, text] : files) {
            builder.file("./" + name, text);
        }
        return builder.finish();
    }
};

std::string tag_of(const std::string& tag) {
    return R"(,"annotations":{"org.opencontainers.image.ref.name":")" + tag + "\"}";
}

TestLayer one_module(const std::string& text) {
    return gzip_layer(TarBuilder().file(k_modules + "/a.ko", text).finish());
}

/// What `docker save` writes for one image.
std::string docker_archive(const std::vector<TestLayer>& layers, const std::string& name, bool old_names) {
    TarBuilder builder;
    std::string ids;
    std::string list;
    for (const TestLayer& layer : layers) {
        ids += (ids.empty() ? "\"" : ",\"") + layer.diff_id + "\"";
        const std::string file =
            old_names ? layer.diff_id.substr(7, 12) + "/layer.tar" : "blobs/sha256/" + sha256(layer.bytes).substr(7);
        list += (list.empty() ? "\"" : ",\"") + file + "\"";
        builder.file(file, layer.bytes);
    }
    const std::string config =
        R"({"architecture":"amd64","os":"linux","rootfs":{"type":"layers","diff_ids":[)" + ids + "]}}";
    builder.file(sha256(config).substr(7) + ".json", config);
    builder.file("manifest.json", R"([{"Config":")" + sha256(config).substr(7) + R"(.json","RepoTags":[")" + name +
                                      R"("],"Layers":[)" + list + "]}]");
    return builder.finish();
}

}  // namespace

TEST_SUITE("registry::unit") {

TEST_CASE("manifests of a layout that say no media type, as skopeo writes them: the index says it") {
    const sys::TempDir top("kmm-test-");
    Layout layout;
    const TestLayer layer = one_module("bare");
    layout.add_blob(layer.bytes);
    const std::string config = layout.add_blob(
        R"({"architecture":"amd64","os":"linux","rootfs":{"type":"layers","diff_ids":[")" + layer.diff_id + "\"]}}");
    const auto part = [&](const std::string& type, const std::string& digest) {
        return R"({"mediaType":"application/vnd.oci.image.)" + type + R"(","digest":")" + digest + R"(","size":)" +
               std::to_string(layout.files["blobs/sha256/" + digest.substr(7)].size()) + "}";
    };
    const std::string manifest =
        layout.add_blob(R"({"schemaVersion":2,"config":)" + part("config.v1+json", config) + R"(,"layers":[)" +
                        part("layer.v1.tar+gzip", sha256(layer.bytes)) + "]}");
    const std::string index =
        layout.add_blob(R"({"schemaVersion":2,"manifests":[)" + part("manifest.v1+json", manifest) + "]}");
    layout.files["index.json"] = R"({"schemaVersion":2,"manifests":[)" + part("manifest.v1+json", manifest) + "]}";
    layout.write(top.path() + "/manifest");
    layout.files["index.json"] = R"({"schemaVersion":2,"manifests":[)" + part("index.v1+json", index) + "]}";
    layout.write(top.path() + "/index");
    for (const char* name : {"manifest", "index"}) {
        CAPTURE(name);
        CHECK(pull_local("oci:" + top.path() + "/" + name).code() == "ok");
        CHECK(pull_local("oci:" + top.path() + "/" + name + "@" + manifest).code() == "ok");
    }
}

TEST_CASE("an OCI layout and its archive, by tag, by digest and alone") {
    const sys::TempDir top("kmm-test-");
    Layout layout;
    const std::string first = layout.add_image({one_module("one")}, tag_of("v1"));
    layout.write(top.path() + "/single");
    put_file(top.path() + "/single.tar", layout.tar());
    put_file(top.path() + "/single.tar.gz", gzip(layout.tar()));
    layout.add_image({one_module("two"), zstd_layer(TarBuilder().file(k_modules + "/b.ko", "b").finish())},
                     tag_of("reg.example.com/team/driver:v2"));
    layout.write(top.path() + "/several");
    put_file(top.path() + "/several.tar.zst", zstd(layout.tar()));

    for (const char* reference : {"oci:single", "oci:single:v1", "oci-archive:single.tar",
                                  "oci-archive:single.tar.gz:v1", "oci:several:v1", "oci-archive:several.tar.zst:v1"}) {
        CAPTURE(reference);
        const std::string text = reference;
        const std::size_t colon = text.find(':') + 1;
        const Outcome outcome = pull_local(text.substr(0, colon) + top.path() + "/" + text.substr(colon));
        REQUIRE_MESSAGE(!outcome.error, outcome.message());
        CHECK(outcome.result.digest == first);
        CHECK(outcome.files == std::map<std::string, std::string>{{k_modules + "/a.ko", "one"}});
    }
    const Outcome second = pull_local("oci:" + top.path() + "/several:v2");
    CHECK(second.files.at(k_modules + "/a.ko") == "two");
    CHECK(second.files.at(k_modules + "/b.ko") == "b");
    CHECK(pull_local("oci:" + top.path() + "/several@" + first).result.digest == first);

    Layout stored;  // as docker save writes it where containerd keeps the images: tags alone, names beside them
    const auto named = [](const std::string& name) {
        return R"(,"annotations":{"io.containerd.image.name":")" + name +
               R"(","org.opencontainers.image.ref.name":"v1"})";
    };
    stored.add_image({one_module("a")}, named("docker.io/team/driver:v1"));
    stored.add_image({one_module("b")}, named("reg.example.com/team/driver:v1"));
    stored.write(top.path() + "/stored");
    const std::string of_stored = "oci:" + top.path() + "/stored";
    for (const auto& [name, text] :
         std::map<std::string, std::string>{{"reg.example.com/team/driver:v1", "b"}, {"team/driver:v1", "a"}}) {
        const Outcome outcome = pull_local(of_stored + ":" + name);
        REQUIRE_MESSAGE(!outcome.error, outcome.message());
        CHECK(outcome.files.at(k_modules + "/a.ko") == text);
    }
    CHECK(pull_local(of_stored + ":reg.example.com/driver:v1").code() == "image-not-found");
    CHECK(pull_local(of_stored + ":v1").message().find("docker.io/team/driver:v1, reg.example.com/team/driver:v1") !=
          std::string::npos);

    const Outcome absent = pull_local("oci:" + top.path() + "/several:v3");
    CHECK(absent.code() == "image-not-found");
    CHECK(absent.exit() == Exit::not_found);
    CHECK(absent.message() == "expected the tag v3 in the layout, found reg.example.com/team/driver:v2, v1");
    const Outcome unclear = pull_local("oci:" + top.path() + "/several");
    CHECK(unclear.code() == "ambiguous-image");
    CHECK(unclear.exit() == Exit::data);
}

TEST_CASE("a layout with one name for several platforms") {
    const sys::TempDir top("kmm-test-");
    Layout layout;
    const auto platform = [](const std::string& name) {
        return R"(,"platform":{"os":"linux","architecture":")" + name + "\"}";
    };
    layout.add_image({one_module("arm")}, platform("arm64"), "arm64");
    layout.add_image({one_module("amd")}, platform("amd64"));
    layout.write(top.path());
    CHECK(pull_local("oci:" + top.path()).files.at(k_modules + "/a.ko") == "amd");
    CHECK(pull_local("oci:" + top.path(), [](auto& request) {
              request.architecture = "arm64";
          }).files.at(k_modules + "/a.ko") == "arm");
    CHECK(pull_local("oci:" + top.path(), [](auto& request) { request.architecture = "s390x"; }).code() ==
          "no-platform");
}

TEST_CASE("a layout with two images for one platform, under one name or without one") {
    const sys::TempDir top("kmm-test-");
    const auto annotated = [](const std::string& name) {
        return R"(,"platform":{"os":"linux","architecture":"amd64"},"annotations":{"org.opencontainers.image.ref.name":")" +
               name + "\"}";
    };
    Layout layout;
    const std::string old = layout.add_image({one_module("old")}, annotated("a.example.com/x:v1"));
    layout.add_image({one_module("new")}, annotated("b.example.com/x:v1"));
    layout.write(top.path() + "/l");
    CHECK(pull_local("oci:" + top.path() + "/l:v1").code() == "ambiguous-image");
    CHECK(pull_local("oci:" + top.path() + "/l").code() == "ambiguous-image");
    CHECK(pull_local("oci:" + top.path() + "/l:b.example.com/x:v1").files.at(k_modules + "/a.ko") == "new");
    // The tag itself goes before names that end with it; one image under two names is one.
    layout.add_image({one_module("third")}, annotated("v1"));
    layout.write(top.path() + "/exact");
    CHECK(pull_local("oci:" + top.path() + "/exact:v1").files.at(k_modules + "/a.ko") == "third");
    Layout spellings;  // of one platform, as --platform reads them
    spellings.add_image({one_module("old")}, R"(,"platform":{"os":"linux","architecture":"amd64"})");
    spellings.add_image({one_module("new")}, R"(,"platform":{"os":"linux","architecture":"x86_64"})");
    spellings.write(top.path() + "/spellings");
    CHECK(pull_local("oci:" + top.path() + "/spellings").code() == "ambiguous-image");
    Layout twice;
    twice.add_image({one_module("old")}, tag_of("v1"));
    twice.add_image({one_module("old")}, tag_of("latest"));
    twice.write(top.path() + "/twice");
    CHECK(pull_local("oci:" + top.path() + "/twice").files.at(k_modules + "/a.ko") == "old");
}

TEST_CASE("a manifest of another size than the layout's index says is refused, as one of an index in a registry") {
    const sys::TempDir top("kmm-test-");
    Layout layout;
    layout.add_image({one_module("one")}, tag_of("v1"));
    std::string& index = layout.files["index.json"];
    const std::size_t size = index.find("\"size\":") + 7;
    index.insert(size, "1");
    layout.write(top.path());
    const Outcome outcome = pull_local("oci:" + top.path());
    CHECK(outcome.code() == "size-mismatch");
    CHECK(outcome.exit() == Exit::integrity);
}

TEST_CASE("what stands beside an image in a layout and is none is not mistaken for another image") {
    const sys::TempDir top("kmm-test-");
    Layout layout;
    const auto add_artifact = [&](const std::string& config_type, const std::string& layer_type,
                                  const std::string& more) {
        const std::string text =
            R"({"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","config":)" +
            descriptor(config_type, "{}") + R"(,"layers":[)" + descriptor(layer_type, "signature") + "]}";
        layout.entries +=
            (layout.entries.empty() ? "" : ",") + descriptor("application/vnd.oci.image.manifest.v1+json", text, more);
        layout.files["index.json"] = R"({"schemaVersion":2,"manifests":[)" + layout.entries + "]}";
        layout.add_blob(text);
    };
    add_artifact("application/vnd.oci.empty.v1+json", "application/spdx+json", "");
    add_artifact("application/vnd.oci.image.config.v1+json", "application/vnd.dev.cosign.simplesigning.v1+json",
                 tag_of("sha256-12.sig"));
    layout.write(top.path() + "/artifacts");
    const std::string image = layout.add_image({one_module("m")}, tag_of("v1"));
    layout.write(top.path() + "/one");
    const Outcome one = pull_local("oci:" + top.path() + "/one");
    CHECK(one.code() == "ok");
    CHECK(one.result.digest == image);
    layout.add_image({one_module("other")}, tag_of("v2"));
    layout.write(top.path() + "/two");
    CHECK(pull_local("oci:" + top.path() + "/two").message() == "expected one image, found 2 in the layout: v1, v2");
    const Outcome none = pull_local("oci:" + top.path() + "/artifacts");
    CHECK(none.code() == "image-not-found");
    CHECK(none.message() == "the layout holds no image, only other artifacts: sha256-12.sig");
}

TEST_CASE("layouts that are none, or hold other bytes than they say") {
    const sys::TempDir top("kmm-test-");
    const TestLayer layer = one_module("x");
    const auto spoilt = [&](const std::function<void(Layout&)>& spoil) {
        Layout layout;
        layout.add_image({layer}, "");
        spoil(layout);
        fs::remove_all(top.path() + "/l");
        layout.write(top.path() + "/l");
        put_file(top.path() + "/l.tar", layout.tar());
        const Outcome directory = pull_local("oci:" + top.path() + "/l");
        const Outcome archive = pull_local("oci-archive:" + top.path() + "/l.tar");
        CHECK(directory.code() == archive.code());
        return directory;
    };
    const std::string blob = "blobs/sha256/" + sha256(layer.bytes).substr(7);
    CHECK(spoilt([](Layout&) {}).code() == "ok");
    CHECK(spoilt([](Layout& l) { l.files.erase("oci-layout"); }).code() == "bad-layout");
    CHECK(spoilt([](Layout& l) { l.files.erase("index.json"); }).code() == "bad-layout");
    CHECK(spoilt([](Layout& l) { l.files["oci-layout"] = R"({"imageLayoutVersion":"2"})"; }).code() == "bad-layout");
    CHECK(spoilt([](Layout& l) { l.files["index.json"] = "{"; }).code() == "bad-layout");
    CHECK(spoilt([](Layout& l) { l.files["index.json"] = R"({"schemaVersion":2,"manifests":[]})"; }).code() ==
          "image-not-found");
    const auto index_as = [&](const std::string& from, const std::string& to) {
        return spoilt([&](Layout& l) {
            std::string& text = l.files["index.json"];
            text.replace(text.find(from), from.size(), to);
        });
    };
    CHECK(index_as("\"schemaVersion\":2", "\"schemaVersion\":3").message() == "schemaVersion: expected 2");
    CHECK(index_as("\"schemaVersion\":2,", "").message() == "schemaVersion: expected 2");
    CHECK(index_as("{\"schemaVersion", "{\"Manifests\":[],\"schemaVersion").code() == "bad-manifest");
    CHECK(index_as("{\"schemaVersion", "{\"layers\":[],\"schemaVersion").code() == "bad-manifest");
    CHECK(index_as("{\"schemaVersion", "{\"mediaType\":\"application/vnd.oci.image.manifest.v1+json\",\"schemaVersion")
              .code() == "bad-manifest");
    CHECK(spoilt([&](Layout& l) { l.files.erase(blob); }).code() == "image-not-found");
    const Outcome other = spoilt([&](Layout& l) { l.files[blob][5] ^= 1; });
    CHECK(other.code() == "digest-mismatch");
    CHECK(other.exit() == Exit::integrity);
    CHECK(spoilt([&](Layout& l) { l.files[blob] += "x"; }).code() == "size-mismatch");
    CHECK(spoilt([&](Layout& l) { l.files[blob].pop_back(); }).code() == "size-mismatch");
    CHECK(pull_local("oci:" + top.path() + "/nothing").code() == "image-not-found");
    CHECK(pull_local("oci-archive:" + top.path() + "/nothing.tar").code() == "image-not-found");
    put_file(top.path() + "/text.tar", "this is not a tar");
    const Outcome text = pull_local("oci-archive:" + top.path() + "/text.tar");
    CHECK(text.code() == "bad-layout");
    CHECK_MESSAGE(text.message().find("in the layer") == std::string::npos, text.message());
    CHECK(text.error->hint().find("gzip or zstd") != std::string::npos);
}

TEST_CASE("a manifest.json of docker save that is none") {
    const sys::TempDir top("kmm-test-");
    const auto told = [&](const std::string& manifest) {
        put_file(top.path() + "/x.tar", TarBuilder().file("manifest.json", manifest).finish());
        return pull_local("docker-archive:" + top.path() + "/x.tar").message();
    };
    CHECK(told(R"({"Config":"c"})") == "manifest.json: expected a list of images, found a mapping");
    CHECK(told(R"([{"Config":"c","Layers":"a"}])") == "manifest.json: Layers: expected a list, found a string");
    CHECK(told(R"([{"Config":"c","layers":["a"]}])") ==
          "manifest.json: expected the member Layers, found \"layers\"");
}

TEST_CASE("an image by its place in a layout or archive, as skopeo names those without a name") {
    const sys::TempDir top("kmm-test-");
    Layout layout;
    layout.add_image({one_module("one")}, "");
    const std::string second = layout.add_image({one_module("two")}, "");
    layout.write(top.path() + "/l");
    put_file(top.path() + "/l.tar", layout.tar());
    for (const std::string& place : {"oci:" + top.path() + "/l:", "oci-archive:" + top.path() + "/l.tar:"}) {
        CAPTURE(place);
        CHECK(pull_local(place + "@0").files.at(k_modules + "/a.ko") == "one");
        const Outcome outcome = pull_local(place + "@1");
        REQUIRE_MESSAGE(!outcome.error, outcome.message());
        CHECK(outcome.result.digest == second);
        CHECK(outcome.files.at(k_modules + "/a.ko") == "two");
        const Outcome absent = pull_local(place + "@2");
        CHECK(absent.code() == "image-not-found");
        CHECK(absent.message() == "expected an image at place 2 of index.json, found 2 entries (counted from 0)");
        for (const char* bad : {"@", "@-1", "@x", "@1x"}) CHECK(pull_local(place + bad).code() == "bad-reference");
        CHECK(pull_local(place + "@0@" + second).code() == "bad-reference");
    }
    put_file(top.path() + "/saved.tar", docker_archive({one_module("saved")}, "a:1", true));
    const std::string saved = "docker-archive:" + top.path() + "/saved.tar:";
    CHECK(pull_local(saved + "@0").files.at(k_modules + "/a.ko") == "saved");
    CHECK(pull_local(saved + "@1").message() ==
          "expected an image at place 1 of manifest.json, found one entry (counted from 0)");
}

TEST_CASE("links in a layout are not followed") {
    const sys::TempDir top("kmm-test-");
    Layout layout;
    const TestLayer layer = one_module("x");
    layout.add_image({layer}, "");
    layout.write(top.path() + "/l");
    const std::string blob = top.path() + "/l/blobs/sha256/" + sha256(layer.bytes).substr(7);
    fs::rename(blob, top.path() + "/elsewhere");
    fs::create_symlink(top.path() + "/elsewhere", blob);
    const Outcome outcome = pull_local("oci:" + top.path() + "/l");
    CHECK(outcome.code() == "bad-layout");
    CHECK(outcome.message().find("expected no links in the layout, found one on the way to blobs/sha256/") !=
          std::string::npos);
}

TEST_CASE("what docker save writes, old and new") {
    const sys::TempDir top("kmm-test-");
    const std::string tar = TarBuilder().file(k_modules + "/a.ko", "module").finish();
    const std::string upper = TarBuilder().file(k_modules + "/b.ko", "b").finish();
    for (const bool old_names : {true, false}) {
        const TestLayer lower = old_names ? plain_layer(tar) : gzip_layer(tar);
        const std::string file = top.path() + "/saved.tar";
        put_file(file, docker_archive({lower, plain_layer(upper)}, "reg.example.com:5000/team/driver:v1", old_names));
        const Outcome outcome = pull_local("docker-archive:" + file);
        REQUIRE_MESSAGE(!outcome.error, outcome.message());
        CHECK(outcome.files.size() == 2);
        CHECK(outcome.result.digest.starts_with("sha256:"));
        CHECK(pull_local("docker-archive:" + file + ":reg.example.com:5000/team/driver:v1").code() == "ok");
        CHECK(pull_local("docker-archive:" + file + ":v1").code() == "ok");
        CHECK(pull_local("docker-archive:" + file + ":v2").code() == "image-not-found");
        CHECK(pull_local("docker-archive:" + file + "@" + outcome.result.digest).code() == "ok");
        CHECK(pull_local("docker-archive:" + file + "@" + sha256("other")).code() == "digest-mismatch");
        CHECK(pull_local("oci-archive:" + file).code() == "bad-layout");
        put_file(file, docker_archive({lower}, "docker.io/library/driver:v1", old_names));  // as podman writes it
        CHECK(pull_local("docker-archive:" + file + ":driver:v1").code() == "ok");
        CHECK(pull_local("docker-archive:" + file + ":driver:v2").code() == "image-not-found");
        put_file(file, docker_archive({lower}, "team/driver:v1", old_names));
        CHECK(pull_local("docker-archive:" + file + ":docker.io/team/driver:v1").code() == "ok");
        CHECK(pull_local("docker-archive:" + file + ":quay.io/team/driver:v1").code() == "image-not-found");

        put_file(file, docker_archive({{lower.bytes, sha256("other"), {}}}, "a:1", old_names));
        CHECK(pull_local("docker-archive:" + file).code() == "digest-mismatch");
    }
}

TEST_CASE("a layer in an archive that is itself compressed, however its first bytes are cut") {
    const sys::TempDir top("kmm-test-");
    const std::string file = top.path() + "/saved.tar.gz";
    const std::string tar = TarBuilder().file(k_modules + "/a.ko", "module").finish();
    for (const TestLayer& layer : {gzip_layer(tar), zstd_layer(tar), plain_layer(tar)}) {
        const std::string archive = docker_archive({layer}, "a:1", false);
        for (std::size_t cut = 510; cut < 518; ++cut) {
            CAPTURE(cut);
            put_file(file, gzip(archive.substr(0, cut)) + gzip(archive.substr(cut)));
            const Outcome outcome = pull_local("docker-archive:" + file);
            CHECK_MESSAGE(!outcome.error, outcome.message());
        }
    }
}

TEST_CASE("hostile layers are refused wherever they come from") {
    const sys::TempDir top("kmm-test-");
    const struct {
        std::string tar;
        const char* code;
    } table[] = {
        {TarBuilder().file("../victim", "x").finish(), "image-unsafe"},
        {TarBuilder().symlink(k_modules + "/l", "/etc/passwd").finish(), "image-unsafe"},
        {TarBuilder().file(k_modules + "/z.ko", std::string(40U << 20U, '\0')).finish(), "image-limit"},
        {sparse_entry(k_modules + "/s.ko", 8ULL << 40U), "image-limit"},
    };
    for (const auto& row : table) {
        CAPTURE(row.code);
        Layout layout;
        layout.add_image({gzip_layer(row.tar)}, "");
        fs::remove_all(top.path() + "/l");
        layout.write(top.path() + "/l");
        CHECK(pull_local("oci:" + top.path() + "/l").code() == row.code);
        put_file(top.path() + "/s.tar", docker_archive({gzip_layer(row.tar)}, "a:1", false));
        CHECK(pull_local("docker-archive:" + top.path() + "/s.tar").code() == row.code);
    }
}

TEST_CASE("references to nothing on this host") {
    for (const char* reference : {"oci:", "dir:", "oci-archive::v1", "oci:x:", "oci:x@sha256:12"}) {
        CAPTURE(reference);
        CHECK(pull_local(reference).code() == "bad-reference");
    }
    for (const char* reference : {"docker-daemon:x:1", "containers-storage:x", "docker://reg.example.com/x:1"}) {
        const Outcome outcome = pull_local(reference);
        CHECK(outcome.code() == "unsupported");
        CHECK(outcome.exit() == Exit::usage);
    }
}

}
