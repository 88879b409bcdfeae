// SPDX-License-Identifier: Apache-2.0
#include "kmm-upgrade/reach/own_bundle.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <climits>
#include <cstdlib>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/last_lines.hpp"
#include "base/text.hpp"
#include "digest/digest.hpp"
#include "sys/directory.hpp"
#include "sys/file_ops.hpp"
#include "sys/process.hpp"
#include "sys/program.hpp"
#include "sys/temp_dir.hpp"
#include "sys/trust.hpp"

namespace kmm::tool_upgrade {
namespace {

constexpr std::size_t k_bundle_max = 256U << 20U;
constexpr std::chrono::minutes k_make_time{5};

/// kmm-worker beside this program, "" if there is none.
std::string neighbour() {
    std::array<char, PATH_MAX> own{};
    const auto length = ::readlink("/proc/self/exe", own.data(), own.size());
    if (length <= 0 || static_cast<std::size_t>(length) == own.size()) return "";
    auto path = sys::parent_of(std::string(own.data(), static_cast<std::size_t>(length))) + "/kmm-worker";
    return ::access(path.c_str(), X_OK) == 0 ? path : "";
}

std::string variable(const char* name) {
    const char* text = std::getenv(name);
    return text == nullptr ? "" : text;
}

/// "" if there is none, or somebody else may change it and this is root.
std::string cache_directory() {
    auto base = variable("XDG_CACHE_HOME");
    if (!base.starts_with('/')) base = ::geteuid() == 0 ? "/var/cache" : variable("HOME") + "/.cache";
    if (!base.starts_with('/') || sys::trust_fault(base + "/kmm-tools")) return "";
    return base + "/kmm-tools";
}

/// What a bundle of `worker` is made of, as far as it can change: the program, and through the list of the loader and
/// that of authorities what goes with it.
std::string key_of(const std::string& worker) {
    std::string facts = KMM_VERSION;
    for (const auto& path :
         {worker, std::string("/etc/ld.so.cache"), std::string("/etc/ssl/certs/ca-certificates.crt")}) {
        struct stat found {};
        if (::stat(path.c_str(), &found) != 0) found = {};
        facts += fmt::format("\n{} {} {} {}.{}", path, found.st_ino, found.st_size, found.st_mtim.tv_sec,
                             found.st_mtim.tv_nsec);
    }
    return digest::sha256_hex(facts);
}

Error failed(Exit exit, const std::string& what) {
    return Error(exit, "bundle-failed", "the file with kmm-worker for the nodes cannot be made: " + what)
        .hint("install kmm-worker beside kmm-upgrade, or on the nodes");
}

std::string make(const std::string& worker) {
    const sys::TempDir scratch("kmm-bundle-");
    sys::ProcessSpec spec;
    spec.argv = {worker.empty() ? "kmm-worker" : worker, "bundle", "--out", scratch.path() + "/run", "-o", "name"};
    spec.timeout = k_make_time;
    sys::require_trusted_program(spec.argv.front());
    const auto result = [&] {
        try {
            return sys::run_process(spec);
        } catch (const Error& error) { throw failed(Exit::not_found, error.message()); }
    }();
    if (result.timed_out || result.signal != 0 || result.exit_code != 0)
        throw failed(Exit::io, fmt::format("kmm-worker bundle failed: {}",
                                           base::escape(base::last_line(result.err).substr(0, 300))));
    return sys::read_file(spec.argv[3], k_bundle_max);
}

/// By its second line, which names version and machine.
cluster::WorkerBundle read_bundle(std::string bytes) {
    const auto lines = base::split(std::string_view(bytes).substr(0, 256), '\n');
    const auto words = lines.size() > 1 ? base::split(lines[1], ' ') : std::vector<std::string_view>();
    if (words.size() < 5 || words[1] != "kmm-worker" || words[3] != "for")
        throw failed(Exit::config, "kmm-worker bundle wrote something else");
    if (words[2] != KMM_VERSION)
        throw failed(Exit::config, fmt::format("kmm-worker here has version {}, kmm-upgrade {}", base::escape(words[2]),
                                               KMM_VERSION));
    cluster::WorkerBundle bundle;
    bundle.machine = words[4];
    bundle.digest = digest::sha256_hex(bytes);
    bundle.bytes = std::move(bytes);
    return bundle;
}

/// The file in the cache, which begins with the digest of the rest; "" if there is none, or it is damaged.
std::string cached(const std::string& file) {
    try {
        const auto text = sys::read_trusted_file(file, "kmm-worker for nodes", k_bundle_max);
        const auto end = text.find('\n');
        if (end == std::string::npos) return "";
        auto bytes = text.substr(end + 1);
        return digest::sha256_hex(bytes) == text.substr(0, end) ? bytes : "";
    } catch (const Error&) { return ""; }
}

void keep(const std::string& directory, const std::string& file, const cluster::WorkerBundle& bundle) {
    try {
        sys::make_directories(directory, 0700);
        // One at a time: those of earlier versions are of no use.
        for (const auto& entry : sys::list_directory(directory))
            if (entry.name.starts_with("kmm-worker-")) sys::remove_tree(directory + "/" + entry.name);
        sys::LinuxFileOps ops;
        sys::write_file_atomically(ops, file, bundle.digest + "\n" + bundle.bytes);
    } catch (const Error&) {
        // It is made again next time.
    }
}

}  // namespace

const cluster::WorkerBundle& OwnBundle::get() {
    const std::lock_guard lock(mutex_);
    if (made_) return *made_;
    const auto worker = neighbour();
    const auto directory = worker.empty() ? std::string() : cache_directory();
    const auto file = directory.empty() ? std::string() : fmt::format("{}/kmm-worker-{}", directory, key_of(worker));
    auto bytes = file.empty() ? std::string() : cached(file);
    const bool is_new = bytes.empty();
    made_ = read_bundle(is_new ? make(worker) : std::move(bytes));
    if (is_new && !file.empty()) keep(directory, file, *made_);
    return *made_;
}

std::optional<std::string> bundle_prefix(const std::string& text) {
    auto words = base::split(text, ' ');
    std::erase_if(words, [](std::string_view word) { return word.empty(); });
    if (words.empty() || words.back() != "bundle") return std::nullopt;
    words.pop_back();
    std::string prefix;
    for (const auto word : words) prefix += (prefix.empty() ? "" : " ") + std::string(word);
    return prefix;
}

}  // namespace kmm::tool_upgrade
