// SPDX-License-Identifier: Apache-2.0
// Pulls from a fake registry into a directory of its own and says what came of it.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "registry/client/request.hpp"
#include "registry/pull/puller.hpp"
#include "registry/unpack/extracted.hpp"
#include "support/fake_registry.hpp"
#include "support/tar_builder.hpp"

namespace kmm::test {

inline const std::string k_kernel = "6.1.0-1-amd64";
inline const std::string k_modules = "opt/lib/modules/" + k_kernel;

/// Time that passes only by sleeping, and instantly. Download and extraction ask it in threads of their own.
class TestClock final : public sys::Clock {
public:
    [[nodiscard]] std::int64_t now_unix() const override { return 1'700'000'000 + monotonic().count() / 1000; }
    [[nodiscard]] std::chrono::milliseconds monotonic() const override {
        const std::lock_guard lock(mutex);
        return slept;
    }
    bool sleep_for(std::chrono::milliseconds duration) override {
        const std::lock_guard lock(mutex);
        sleeps.push_back(duration);
        slept += duration;
        return true;
    }
    mutable std::mutex mutex;
    std::chrono::milliseconds slept{1000};
    std::vector<std::chrono::milliseconds> sleeps;
};

struct Outcome {
    std::optional<Error> error;
    registry::PullResult result;
    std::vector<registry::ExtractedFile> listed;  ///< result.files
    std::map<std::string, std::string> files;  ///< path below the directory -> content, "-> TARGET" for links
    std::map<std::string, unsigned> modes;     ///< of the regular files
    std::size_t attributes = 0;                ///< extended attributes of all files, but for the system's SELinux label
    std::vector<std::chrono::milliseconds> sleeps;

    [[nodiscard]] std::string code() const { return error ? error->code() : "ok"; }
    [[nodiscard]] Exit exit() const { return error ? error->exit() : Exit::ok; }
    [[nodiscard]] std::string message() const { return error ? error->message() : ""; }
    [[nodiscard]] std::string detail(const std::string& key) const;
    [[nodiscard]] bool warned(const std::string& text) const;
};

/// With KMM_TEST_CONFINED in the environment the process that reads the layers of all pulls, else nullptr.
[[nodiscard]] sandbox::Confined* confined_parser();

/// Pulls `registry`'s image for k_kernel. The directory is made and removed here. CHECKs that nothing is left in it
/// after an error, and that no temporary file is left after success.
[[nodiscard]] Outcome pull_from(const FakeRegistry& registry,
                                const std::function<void(registry::PullRequest&)>& tweak = nullptr);
/// Pushes one gzip layer with this tar, pulls it.
[[nodiscard]] Outcome pull_tar(const std::string& tar,
                               const std::function<void(registry::PullRequest&)>& tweak = nullptr);
/// The same with several layers.
[[nodiscard]] Outcome pull_layers(const std::vector<TestLayer>& layers,
                                  const std::function<void(registry::PullRequest&)>& tweak = nullptr);

/// Pulls what is at `reference` on this host.
[[nodiscard]] Outcome pull_local(const std::string& reference,
                                 const std::function<void(registry::PullRequest&)>& tweak = nullptr);
/// Makes the checksum of a tar's first header right again.
void reseal(std::string& tar);
/// Writes a file, with its directories.
void put_file(const std::string& path, const std::string& text);

}  // namespace kmm::test
