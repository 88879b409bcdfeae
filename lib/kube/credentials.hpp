// SPDX-License-Identifier: Apache-2.0
// What proves to the API server who we are, kept fresh.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kube/kubeconfig.hpp"
#include "sys/clock.hpp"

namespace kmm::kube {

/// Headers and certificates for one request.
struct Proof {
    std::vector<std::pair<std::string, std::string>> headers;
    net::TlsSettings tls;
    std::uint64_t generation = 0;  ///< of what was kept: tells refresh which one was refused
};

/// Token files are read again once a minute, as client-go does; an exec plugin runs again when what it said expires.
/// Thread safe: a plugin runs once for all who wait for it.
class Credentials {
public:
    /// `on_plugin_line` gets what a plugin writes to its standard error. `clock` must outlive the object.
    Credentials(Connection connection, sys::Clock& clock, std::function<void(std::string_view)> on_plugin_line);

    /// Errors: no_permission "exec-plugin" when the plugin fails, says something else than an ExecCredential, wants a
    /// terminal or is not there (its installHint is the hint); from_errno for a token file without a token to fall back
    /// to; those who waited while a plugin failed get its error. `is_unwanted`, asked once a second and after signals,
    /// ends a plugin: "interrupted", as kube::stopped_waiting. One that is begun although nobody wants to wait has 5 s.
    [[nodiscard]] Proof proof(const std::function<bool()>& is_unwanted = {});

    /// After a 401: forgets what was kept, unless that is newer than the proof of `generation`. False if nothing would
    /// be different the next time.
    [[nodiscard]] bool refresh(std::uint64_t generation);

private:
    struct Issued {
        std::string token, certificate_pem, key_pem;
        std::optional<std::int64_t> expires;  ///< seconds since 1970
    };

    [[nodiscard]] std::string file_token();
    [[nodiscard]] const Issued& issued(std::uint64_t attempts_before, const std::function<bool()>& is_unwanted);
    [[nodiscard]] Issued run_plugin(const ExecPlugin& plugin, const std::function<bool()>& is_unwanted);

    const Connection connection_;
    sys::Clock& clock_;
    std::function<void(std::string_view)> on_plugin_line_;
    std::mutex mutex_;
    std::string kept_token_;
    std::optional<std::chrono::milliseconds> token_read_;
    std::optional<Issued> issued_;
    std::atomic<std::uint64_t> attempts_{0};  ///< to run the plugin
    std::optional<Error> failed_;             ///< of the last attempt
    std::uint64_t generation_ = 0;
};

}  // namespace kmm::kube
