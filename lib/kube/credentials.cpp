// SPDX-License-Identifier: Apache-2.0
#include "kube/credentials.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/text.hpp"
#include "kube/watch.hpp"
#include "net/url.hpp"
#include "sys/process.hpp"
#include "sys/program.hpp"
#include "sys/signals.hpp"
#include "sys/trust.hpp"
#include "value/reader.hpp"
#include "value/writer.hpp"

namespace kmm::kube {

namespace {

constexpr std::chrono::seconds k_token_file_age{60};
constexpr std::chrono::seconds k_plugin_timeout{60};
constexpr std::chrono::seconds k_grace{5};
constexpr std::int64_t k_expiry_margin = 10;  ///< seconds: a credential about to expire is not used any more
constexpr std::size_t k_token_max = 1U << 20U;

Error plugin_fault(const ExecPlugin& plugin, const std::string& message) {
    return Error(Exit::no_permission, "exec-plugin",
                 fmt::format("login program {}: {}", base::escape(plugin.command), message))
        .at(plugin.origin);
}

/// What to install, in as many lines as the kubeconfig has it.
std::string install_hint_of(const ExecPlugin& plugin) {
    std::vector<std::string> lines;
    for (const auto line : base::split(base::trim(plugin.install_hint), '\n')) { lines.push_back(base::escape(line)); }
    return base::join(lines, "\n");
}

std::string plugin_input(const ExecPlugin& plugin, const Connection& connection) {
    value::Node spec = value::Node::mapping({{"interactive", false}});
    if (plugin.provide_cluster_info) {
        value::Node cluster = value::Node::mapping({{"server", connection.server}});
        const net::TlsSettings& tls = connection.tls;
        if (!tls.server_name.empty()) { cluster.set("tls-server-name", tls.server_name); }
        if (tls.insecure) { cluster.set("insecure-skip-tls-verify", true); }
        if (!tls.ca_pem.empty()) { cluster.set("certificate-authority-data", base::to_base64(tls.ca_pem)); }
        if (!connection.proxy.empty()) { cluster.set("proxy-url", connection.proxy); }
        if (!plugin.cluster_config.is_null()) { cluster.set("config", plugin.cluster_config); }
        spec.set("cluster", std::move(cluster));
    }
    return value::to_json(value::Node::mapping(
        {{"kind", "ExecCredential"}, {"apiVersion", plugin.api_version}, {"spec", std::move(spec)}}));
}

/// RFC 3339 with any fraction and zone; nullopt if it is none.
std::optional<std::int64_t> parse_expiry(const std::string& text) {
    if (text.size() < 20) { return std::nullopt; }
    const auto base_time = base::parse_rfc3339(text.substr(0, 19) + "Z");
    std::size_t at = 19;
    if (text[at] == '.') {
        at = text.find_first_not_of("0123456789", at + 1);
        if (at == std::string::npos) { return std::nullopt; }
    }
    const std::string zone = text.substr(at);
    if (!base_time || zone == "Z" || zone == "z") { return base_time; }
    if (zone.size() != 6 || (zone[0] != '+' && zone[0] != '-') || zone[3] != ':') { return std::nullopt; }
    const auto clock_time = base::parse_rfc3339(fmt::format("1970-01-01T{}:00Z", zone.substr(1)));
    if (!clock_time) { return std::nullopt; }
    return zone[0] == '+' ? *base_time - *clock_time : *base_time + *clock_time;
}

std::string last_line(const std::string& text) {
    const auto trimmed = base::trim(text);
    const std::size_t at = trimmed.rfind('\n');
    return base::escape(at == std::string_view::npos ? trimmed : trimmed.substr(at + 1));
}

}  // namespace

Credentials::Credentials(Connection connection, sys::Clock& clock, std::function<void(std::string_view)> on_plugin_line)
    : connection_(std::move(connection)), clock_(clock), on_plugin_line_(std::move(on_plugin_line)) {}

std::string Credentials::file_token() {
    if (token_read_ && clock_.monotonic() - *token_read_ < k_token_file_age) { return kept_token_; }
    try {
        const std::string token(base::trim(sys::read_trusted_file(connection_.token_file, "token file", k_token_max)));
        if (token.empty()) { throw Error(Exit::config, "bad-kubeconfig", "expected a token, found an empty file"); }
        kept_token_ = token;
        token_read_ = clock_.monotonic();
    } catch (Error& error) {
        // While the kubelet swaps the file, the token of a minute ago is as good.
        const bool is_refused = error.code() == "untrusted-file";
        if (is_refused || (kept_token_.empty() && connection_.token.empty())) {
            error.add_context("token file " + base::escape(connection_.token_file));
            throw;
        }
        return kept_token_.empty() ? connection_.token : kept_token_;
    }
    return kept_token_;
}

Credentials::Issued Credentials::run_plugin(const ExecPlugin& plugin, const std::function<bool()>& is_unwanted) {
    if (plugin.interactive == Interactive::always) {
        throw plugin_fault(plugin, "it wants a terminal (interactiveMode: Always), which it is not given here")
            .hint("a user of the kubeconfig with a token, or a plugin with interactiveMode IfAvailable");
    }
    sys::ProcessSpec spec;
    spec.argv = {plugin.command};
    spec.argv.insert(spec.argv.end(), plugin.args.begin(), plugin.args.end());
    spec.extra_env = plugin.env;
    spec.extra_env.emplace_back("KUBERNETES_EXEC_INFO", plugin_input(plugin, connection_));
    spec.timeout = k_plugin_timeout;
    spec.on_stderr_line = on_plugin_line_;
    const auto asked = [&] { return sys::interrupt_requested() || (is_unwanted && is_unwanted()); };
    spec.cancelled = [&, was_unwanted = asked(), begin = std::chrono::steady_clock::now()] {
        return asked() && (!was_unwanted || std::chrono::steady_clock::now() - begin > k_grace);
    };
    sys::ProcessResult result;
    try {
        sys::require_trusted_program(plugin.command);
        result = sys::run_process(spec);
    } catch (const Error& error) {
        if (error.code() == "untrusted-file") { throw; }
        if (error.code() != "command-not-found") { throw plugin_fault(plugin, error.message()); }
        throw plugin_fault(plugin, "there is no such program").hint(install_hint_of(plugin));
    }
    if (result.cancelled) { throw stopped_waiting("login program " + base::escape(plugin.command)); }
    if (result.timed_out) {
        throw plugin_fault(plugin, fmt::format("no answer within {}", base::format_duration(k_plugin_timeout)));
    }
    if (result.signal != 0) { throw plugin_fault(plugin, fmt::format("killed by signal {}", result.signal)); }
    if (result.exit_code != 0) {
        throw plugin_fault(plugin, fmt::format("exit code {}{}{}", result.exit_code, result.err.empty() ? "" : ": ",
                                               last_line(result.err)))
            .hint(install_hint_of(plugin));
    }
    Diagnostics faults;
    const auto documents = value::read_json(result.out, plugin.command, faults);
    const value::Node* root = documents.size() == 1 && faults.empty() ? &documents.front().root : nullptr;
    if (root == nullptr || root->get_string({"kind"}) != "ExecCredential") {
        throw plugin_fault(plugin, "expected an ExecCredential as JSON on its standard output, found something else");
    }
    if (root->get_string({"apiVersion"}) != plugin.api_version) {
        throw plugin_fault(plugin, fmt::format("expected apiVersion {}, found \"{}\"", plugin.api_version,
                                               base::escape(root->get_string({"apiVersion"}))));
    }
    Issued issued;
    issued.token = root->get_string({"status", "token"});
    issued.certificate_pem = root->get_string({"status", "clientCertificateData"});
    issued.key_pem = root->get_string({"status", "clientKeyData"});
    if (issued.certificate_pem.empty() != issued.key_pem.empty()) {
        throw plugin_fault(plugin, "expected clientCertificateData and clientKeyData together, found one of them");
    }
    if (issued.token.empty() && issued.certificate_pem.empty()) {
        throw plugin_fault(plugin, "expected a token or a certificate in status, found neither");
    }
    const std::string expiry = root->get_string({"status", "expirationTimestamp"});
    if (!expiry.empty()) {
        issued.expires = parse_expiry(expiry);
        if (!issued.expires) {
            throw plugin_fault(
                plugin, "expected an RFC 3339 time as expirationTimestamp, found \"" + base::escape(expiry) + "\"");
        }
    }
    return issued;
}

const Credentials::Issued& Credentials::issued(std::uint64_t attempts_before,
                                               const std::function<bool()>& is_unwanted) {
    const bool expired = issued_ && issued_->expires && *issued_->expires - k_expiry_margin <= clock_.now_unix();
    if (issued_ && !expired) { return *issued_; }
    if (failed_ && attempts_ != attempts_before) { throw Error(*failed_); }
    failed_.reset();
    try {
        issued_ = run_plugin(*connection_.exec, is_unwanted);
        ++generation_;
        ++attempts_;
    } catch (const Error& error) {
        failed_ = error;
        ++attempts_;
        throw;
    }
    return *issued_;
}

Proof Credentials::proof(const std::function<bool()>& is_unwanted) {
    const std::uint64_t attempts_before = attempts_;
    const std::lock_guard lock(mutex_);
    Proof proof;
    proof.tls = connection_.tls;
    std::string token = connection_.token_file.empty() ? connection_.token : file_token();
    if (connection_.exec) {
        const Issued& fresh = issued(attempts_before, is_unwanted);
        token = fresh.token;
        if (!fresh.certificate_pem.empty()) {
            proof.tls.client_certificate_pem = fresh.certificate_pem;
            proof.tls.client_key_pem = fresh.key_pem;
        }
    }
    if (!token.empty()) {
        proof.headers.emplace_back("Authorization", "Bearer " + token);
    } else if (!connection_.username.empty()) {
        proof.headers.emplace_back("Authorization",
                                   "Basic " + base::to_base64(connection_.username + ":" + connection_.password));
    }
    proof.generation = generation_;
    const Impersonation& as = connection_.impersonation;
    if (!as.user.empty()) { proof.headers.emplace_back("Impersonate-User", as.user); }
    if (!as.uid.empty()) { proof.headers.emplace_back("Impersonate-Uid", as.uid); }
    for (const auto& group : as.groups) { proof.headers.emplace_back("Impersonate-Group", group); }
    for (const auto& [key, values] : as.extra) {
        for (const auto& value : values) {
            proof.headers.emplace_back("Impersonate-Extra-" + net::percent_encode(key), value);
        }
    }
    return proof;
}

bool Credentials::refresh(std::uint64_t generation) {
    const std::lock_guard lock(mutex_);
    if (generation == generation_) { issued_.reset(); }
    token_read_.reset();
    return connection_.exec.has_value() || !connection_.token_file.empty();
}

}  // namespace kmm::kube
