// SPDX-License-Identifier: Apache-2.0
// Where images are written: layouts and archives, beside what others left there.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "registry/layer/hash.hpp"
#include "registry/local/local.hpp"
#include "registry/pull/upload.hpp"
#include "sys/fd.hpp"
#include "sys/temp_dir.hpp"

using namespace kmm;

TEST_CASE("layout and archive: files of killed writers go, those of living ones and of others stay") {
    const sys::TempDir directory("kmm-test-");
    const auto exists = [&](const std::string& name) { return std::filesystem::exists(directory.path() + "/" + name); };
    const auto put = [&](const std::string& name) { std::ofstream(directory.path() + "/" + name) << "x"; };
    const auto open = [&](const std::string& reference) {
        const auto local = *registry::parse_local_reference(reference);
        return local.path.ends_with(".tar") ? registry::open_archive_sink(local)
                                            : registry::open_layout_sink(local, {});
    };
    const std::string layout = "oci:" + directory.path() + "/layout";
    std::filesystem::create_directories(directory.path() + "/layout/blobs/sha256");
    std::filesystem::create_directories(directory.path() + "/layout/blobs/sha512");
    const std::vector<std::string> left{"layout/.index.json.7-1.kmm-tmp", "layout/.oci-layout.7-1.kmm-tmp",
                                        "layout/blobs/sha256/.00.7-1.kmm-tmp", "layout/blobs/sha512/.00.7-1.kmm-tmp"};
    for (const std::string& name : left) put(name);
    put("layout/blobs/sha256/other.kmm-tmp");
    std::filesystem::create_directory(directory.path() + "/layout/blobs/sha256/.d.7-1.kmm-tmp");
    {
        const auto sink = open(layout + ":one");
        for (const std::string& name : left) CHECK_FALSE(exists(name));
        CHECK(exists("layout/blobs/sha256/other.kmm-tmp"));
        CHECK(exists("layout/blobs/sha256/.d.7-1.kmm-tmp"));
        put(left[2]);  // of the living one
        (void)open(layout + ":two");
        CHECK(exists(left[2]));
    }
    (void)open(layout + ":three");
    CHECK_FALSE(exists(left[2]));

    for (const char* name : {".a.tar.7-1.kmm-tmp", ".b.tar.7-1.kmm-tmp", ".a.tar.x.7-1.kmm-tmp", "a.tar.7.kmm-tmp"})
        put(name);
    const std::string archive = "oci-archive:" + directory.path() + "/a.tar";
    const auto one = open(archive);
    CHECK_FALSE(exists(".a.tar.7-1.kmm-tmp"));
    for (const char* name : {".b.tar.7-1.kmm-tmp", ".a.tar.x.7-1.kmm-tmp", "a.tar.7.kmm-tmp"}) CHECK(exists(name));
    const auto two = open(archive);
    const std::string text = R"({"schemaVersion":2})";
    for (const auto& sink : {one.get(), two.get()})
        sink->publish("application/vnd.oci.image.manifest.v1+json", text, registry::digest_of(text));
    CHECK(exists("a.tar"));
    CHECK(std::distance(std::filesystem::directory_iterator(directory.path()), {}) == 5);
}

TEST_CASE("layout: blobs whose digest is a SHA-512") {
    const sys::TempDir directory("kmm-test-");
    const auto sink =
        registry::open_layout_sink(*registry::parse_local_reference("oci:" + directory.path() + "/layout:one"), {});
    const std::string text = "layer";
    image::Descriptor blob;
    blob.digest = registry::digest_of(text, image::DigestAlgorithm::sha512);
    blob.size = text.size();
    std::ofstream(directory.path() + "/blob") << text;
    CHECK_FALSE(sink->has(blob));
    sink->put_blob(blob, sys::Fd(::open((directory.path() + "/blob").c_str(), O_RDONLY | O_CLOEXEC)).get());
    CHECK(sink->has(blob));
}

TEST_CASE("layout: what was written for an image that got no name is removed, unless another may need it") {
    const sys::TempDir directory("kmm-test-");
    const std::string layout = directory.path() + "/layout";
    const auto open = [&](const std::string& tag) {
        return registry::open_layout_sink(*registry::parse_local_reference("oci:" + layout + ":" + tag), {});
    };
    const auto path = [&](const std::string& text) {
        return layout + "/blobs/sha256/" + registry::digest_of(text).hex;
    };
    const std::string type = "application/vnd.oci.image.manifest.v1+json";
    open("one")->publish(type, "one", registry::digest_of("one"));
    {
        const auto sink = open("two");
        for (const char* text : {"one", "two"}) sink->put_manifest(type, text, registry::digest_of(text));
        CHECK(std::filesystem::exists(path("two")));
    }
    CHECK_FALSE(std::filesystem::exists(path("two")));
    CHECK(std::filesystem::exists(path("one")));
    const auto other = open("three");
    open("two")->put_manifest(type, "two", registry::digest_of("two"));
    CHECK(std::filesystem::exists(path("two")));
}

TEST_CASE("layout and archive: a link in the place of a directory leads nothing elsewhere") {
    namespace fs = std::filesystem;
    const sys::TempDir directory("kmm-test-");
    const std::string top = directory.path();
    fs::create_directories(top + "/victim/sha256");
    std::ofstream(top + "/victim/sha256/.y.kmm-tmp") << "x";
    const auto open = [&](const std::string& reference) {
        const auto local = *registry::parse_local_reference(reference);
        return local.path.ends_with(".tar") ? registry::open_archive_sink(local)
                                            : registry::open_layout_sink(local, {});
    };
    const auto entries = [&](const std::string& name) {
        return std::distance(fs::recursive_directory_iterator(top + "/" + name), {});
    };
    const std::string type = "application/vnd.oci.image.manifest.v1+json";
    const std::string text = R"({"schemaVersion":2})";
    for (const std::string& name : {"oci:" + top + "/one:t", "oci-archive:" + top + "/two/a.tar"}) {
        CAPTURE(name);
        const std::string place = top + (name.ends_with(".tar") ? "/two" : "/one");
        fs::create_directory(place);
        const auto sink = open(name);
        fs::rename(place, place + "-moved");
        fs::create_directory_symlink("victim", place);
        if (place.ends_with("two")) {
            sink->publish(type, text, registry::digest_of(text));
            CHECK(fs::exists(top + "/two-moved/a.tar"));
        } else {
            sink->put_manifest(type, text, registry::digest_of(text));
            CHECK(fs::exists(top + "/one-moved/blobs/sha256/" + registry::digest_of(text).hex));
            CHECK_THROWS_AS(sink->publish(type, text, registry::digest_of(text)), Error);  // it is no layout
        }
        CHECK(entries("victim") == 2);
    }

    if (::geteuid() != 0) return;
    fs::create_directory(top + "/pub");
    fs::create_directory_symlink(top + "/victim", top + "/pub/blobs");
    fs::create_directory_symlink(top + "/victim", top + "/d");
    for (const std::string name : {"/pub", "/pub/blobs", "/d"})
        REQUIRE(::lchown((top + name).c_str(), 65534, 65534) == 0);
    for (const std::string& name : {"oci:" + top + "/pub:t", "oci:" + top + "/d/l:t",
                                   "oci-archive:" + top + "/d/a.tar"}) {
        CAPTURE(name);
        try {
            (void)open(name);
            CHECK(false);
        } catch (const Error& error) {
            CHECK(error.code() == "untrusted-file");
            CHECK(error.exit() == Exit::no_permission);
        }
        CHECK(entries("victim") == 2);
    }
}
