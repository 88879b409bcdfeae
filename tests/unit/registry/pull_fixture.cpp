// SPDX-License-Identifier: Apache-2.0
#include "unit/registry/pull_fixture.hpp"

#include <doctest/doctest.h>
#include <stdlib.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>

#include "registry/client/document_service.hpp"
#include "registry/unpack/layer_service.hpp"
#include "sandbox/confined.hpp"

namespace kmm::test {

namespace fs = std::filesystem;

namespace {

std::size_t attributes_of(const std::string& path) {
    std::string names(4096, '\0');
    const ssize_t got = ::llistxattr(path.c_str(), names.data(), names.size());
    names.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    const auto count = std::count(names.begin(), names.end(), '\0');
    return static_cast<std::size_t>(count) - (names.find("security.selinux") != std::string::npos ? 1 : 0);
}

}  // namespace

std::string Outcome::detail(const std::string& key) const {
    if (error) {
        for (const auto& [name, value] : error->details()) {
            if (name == key) {
                return value;
            }
        }
    }
    return {};
}

bool Outcome::warned(const std::string& text) const {
    return std::any_of(result.warnings.begin(), result.warnings.end(),
                       [&](const std::string& warning) { return warning.find(text) != std::string::npos; });
}

namespace {

const pid_t g_process = ::getpid();  ///< children of tests have no parser
/// Begun before there are threads.
const std::unique_ptr<sandbox::Confined> g_parser =
    std::getenv("KMM_TEST_CONFINED") == nullptr
        ? nullptr
        : std::make_unique<sandbox::Confined>(std::vector{registry::layer_service(), registry::document_service()});

}  // namespace

sandbox::Confined* confined_parser() { return ::getpid() == g_process ? g_parser.get() : nullptr; }

Outcome pull_from(const FakeRegistry& registry, const std::function<void(registry::PullRequest&)>& tweak) {
    std::string root = (fs::temp_directory_path() / "kmm-test-XXXXXX").string();
    REQUIRE(::mkdtemp(root.data()) != nullptr);
    const std::string out = root + "/out";
    fs::create_directory(out);
    std::ofstream(root + "/victim") << "untouched";

    registry::PullRequest request;
    request.reference = registry.reference();
    request.kernels = {k_kernel};
    request.tls.insecure = true;
    request.parser = confined_parser();
    if (tweak) {
        tweak(request);
    }
    Outcome outcome;
    TestClock clock;
    net::CurlHttpClient http;
    try {
        outcome.result = registry::pull(request, out, http, clock);
        outcome.result.files.each([&](const registry::ExtractedFile& file) { outcome.listed.push_back(file); });
    } catch (const Error& error) {
        outcome.error = error;
    }
    outcome.sleeps = clock.sleeps;
    for (const auto& item : fs::recursive_directory_iterator(out)) {
        const std::string path = item.path().lexically_relative(out).string();
        if (item.is_symlink()) {
            outcome.files[path] = "-> " + fs::read_symlink(item.path()).string();
        } else if (item.is_regular_file()) {
            std::ifstream in(item.path(), std::ios::binary);
            std::stringstream text;
            text << in.rdbuf();
            outcome.files[path] = text.str();
            outcome.modes[path] = static_cast<unsigned>(fs::status(item.path()).permissions());
            outcome.attributes += attributes_of(item.path().string());
        } else if (!item.is_directory()) {
            outcome.files[path] = "special";
        }
    }
    if (outcome.error) {
        CHECK_MESSAGE(fs::is_empty(out), "something is left below the directory after " << outcome.code());
    }
    CHECK_FALSE(fs::exists(out + "/.kmm-pull"));
    // Nothing beside the directory was touched.
    std::stringstream victim;
    victim << std::ifstream(root + "/victim").rdbuf();
    CHECK(victim.str() == "untouched");
    CHECK(std::distance(fs::directory_iterator(root), fs::directory_iterator()) == 2);
    fs::remove_all(root);
    return outcome;
}

Outcome pull_layers(const std::vector<TestLayer>& layers, const std::function<void(registry::PullRequest&)>& tweak) {
    FakeRegistry registry;
    registry.add_image("v1", layers);
    return pull_from(registry, tweak);
}

Outcome pull_tar(const std::string& tar, const std::function<void(registry::PullRequest&)>& tweak) {
    return pull_layers({gzip_layer(tar)}, tweak);
}

Outcome pull_local(const std::string& reference, const std::function<void(registry::PullRequest&)>& tweak) {
    static FakeRegistry unused;
    return pull_from(unused, [&](auto& request) {
        request.reference = reference;
        if (tweak) {
            tweak(request);
        }
    });
}

void reseal(std::string& tar) {
    tar.replace(148, 8, 8, ' ');
    unsigned sum = 0;
    for (const char c : tar.substr(0, 512)) sum += static_cast<unsigned char>(c);
    tar.replace(148, 8, fmt::format("{:06o}", sum) + std::string("\0 ", 2));
}

void put_file(const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(path).parent_path());
    std::ofstream(path, std::ios::binary) << text;
}

}  // namespace kmm::test
