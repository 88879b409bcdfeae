// SPDX-License-Identifier: Apache-2.0
// Reading CONFIG: a ModuleConfig, and the Secrets and the ImagePolicy that may follow it.
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "api/codec.hpp"
#include "base/text.hpp"
#include "kmm-worker/job_config.hpp"
#include "kmod/host/host.hpp"
#include "sys/file_ops.hpp"
#include "sys/trust.hpp"
#include "value/reader.hpp"
#include "value/writer.hpp"

namespace kmm::tool_worker {

namespace {

constexpr std::size_t k_config_bytes = 4U << 20U;

/// The credentials of all Secrets.
void add_secrets(const api::Objects& objects, const std::string& file, std::vector<registry::Credential>& credentials) {
    for (const auto& secret : objects.secrets) {
        for (auto& credential :
             registry::secret_credentials(secret.data, fmt::format("{}: Secret {}", file, secret.meta.name)))
            credentials.push_back(std::move(credential));
    }
}

/// A connection that was lost in the middle of the input looks like its end: what is short must not be taken for a
/// config.
void require_size(const std::string& text, const std::string& expected) {
    if (expected.empty() || expected == fmt::format("{}", text.size())) return;
    throw Error(Exit::data, "truncated-input",
                fmt::format("standard input: expected {} bytes, found {}", base::escape(expected), text.size()))
        .hint("the connection was lost; nothing was done");
}

/// Takes the fields that are not known out of the faults.
void warn_of_unknown_fields(Diagnostics& faults, std::vector<std::string>& warnings) {
    std::erase_if(faults, [&](const Diagnostic& fault) {
        if (fault.code != "unknown-field") return false;
        warnings.push_back(fmt::format("unknown-field: {}{}; it is ignored{}",
                                       fault.position ? fault.position->to_string() + ": " : "", fault.message,
                                       fault.hint.empty() ? "" : fmt::format(" ({})", fault.hint)));
        return true;
    });
}

/// Who must have signed the image, as kmm-upgrade passes it on: {kind: ImagePolicy, policy: {...}, signatureKeys:
/// [PEM...]}.
registry::ImagePolicy policy_of(const value::Node& document, const std::string& name) {
    const value::Node* policy = document.find("policy");
    const value::Node* keys = document.find("signatureKeys");
    std::vector<std::string> texts;
    if (keys != nullptr)
        std::transform(keys->items().begin(), keys->items().end(), std::back_inserter(texts),
                       [](const value::Node& key) { return key.text(); });
    if (document.get_string({"apiVersion"}) != "kmmtools/v1" || (policy == nullptr && texts.empty())) {
        throw Error(
            Exit::config, "bad-value",
            fmt::format("{}: expected an ImagePolicy of kmmtools/v1 with policy or signatureKeys", base::escape(name)));
    }
    return registry::ImagePolicy::from_texts(policy == nullptr ? "" : value::to_json(*policy), texts, "ImagePolicy");
}

/// The places of `node`, whose path is `path`, and of all below it.
void note_places(const value::Document& document, const value::Node& node, const std::string& path,
                 std::map<std::string, Position>& places) {
    places.emplace(path, document.position(node.mark()));
    if (node.is_mapping()) {
        for (const auto& member : node.members())
            note_places(document, member.value, (path.empty() ? "" : path + ".") + base::to_lower(member.key), places);
    }
}

/// The place of the field that `message` begins with; where it is not there, that of what it would be in.
std::optional<Position> place_in(const std::string& message, const std::map<std::string, Position>& places) {
    std::string path = base::to_lower(message.substr(0, message.find_first_of(": [")));
    for (;;) {
        if (const auto found = places.find(path); found != places.end()) return found->second;
        if (path.empty()) return std::nullopt;
        const auto dot = path.rfind('.');
        path.resize(dot == std::string::npos ? 0 : dot);
    }
}

}  // namespace

Error with_exit(const Error& error, Exit exit, const std::string& message) {
    Error fault(exit, error.code(), message);
    fault.hint(error.hint());
    for (const auto& [key, value] : error.details()) fault.detail(key, value);
    for (auto text = error.context().rbegin(); text != error.context().rend(); ++text) fault.add_context(*text);
    if (error.position()) fault.at(*error.position());
    if (!error.diagnostics().empty()) fault.attach(error.diagnostics());
    return fault;
}

Error as_configuration_fault(const Error& error, const Job& job) {
    const bool is_refusal =
        error.exit() != Exit::data || error.code() == "force-refused" || error.code() == "unsupported";
    Error fault = is_refusal ? error : with_exit(error, Exit::config, error.message());
    if (const auto place = place_in(error.message(), job.places); place && !fault.position()) fault.at(*place);
    return fault;
}

void read_config(const std::string& name, const std::string& expected_size, Needs needs, UnknownFields unknown,
                 Job& job) {
    std::string text;
    try {
        text = name == "-" ? sys::read_fd(STDIN_FILENO, "standard input", k_config_bytes)
                           : sys::read_trusted_file(name, "module configuration", k_config_bytes);
    } catch (const Error& error) {
        auto fault = as_configuration_fault(error, job);
        // As modprobe and rmmod take it.
        if (error.exit() == Exit::not_found && kmod::is_module_name(name) && name.find('.') == std::string::npos)
            fault.hint(fmt::format("for a module of that name: {}--module {}",
                                   needs == Needs::image ? "--image REF " : "", name));
        throw fault;
    }
    require_size(text, expected_size);
    Diagnostics faults;
    const auto documents = value::read_any(text, name, faults);
    if (documents.empty() && !has_errors(faults)) {
        faults.push_back(
            {Severity::error, "missing-field", "no ModuleConfig in the input", Position{name, 1, 1}, "", Exit::data});
    }
    api::Objects objects;
    for (std::size_t i = 0; i < documents.size(); ++i) {
        if (i == 0 && documents[i].root.find("kind") != nullptr && documents[i].root.find("apiVersion") != nullptr) {
            faults.push_back({Severity::error, "bad-value",
                              fmt::format("expected a ModuleConfig, found a {}",
                                          base::escape(documents[i].root.get_string({"kind"}))),
                              documents[i].position(documents[i].root.mark()),
                              "it is the config of one entry of a NodeModulesConfig, or of kmm-plan show -o json",
                              Exit::config});
        } else if (i == 0) {
            job.config = api::decode_module_config(documents[i], faults);
            note_places(documents[i], documents[i].root, "", job.places);
        } else if (documents[i].root.get_string({"kind"}) == "ImagePolicy") {
            job.policies.push_back(policy_of(documents[i].root, name));
        } else if (documents[i].root.is_mapping() && documents[i].root.find("modprobe") != nullptr) {
            faults.push_back({Severity::error, "bad-value", "expected one ModuleConfig, found another",
                              documents[i].position(documents[i].root.mark()),
                              "only pull Secrets may follow it; each module needs a command of its own", Exit::config});
        } else {
            api::decode(documents[i], objects, faults, "default");  // the namespace of a Secret counts for nothing here
        }
    }
    api::finish(objects, faults);
    if (unknown == UnknownFields::warn) warn_of_unknown_fields(faults, job.warnings);
    if (has_errors(faults) && !documents.empty() && documents.front().root.is_mapping() &&
        documents.front().root.find("kind") == nullptr) {
        const auto& members = documents.front().root.members();
        const bool has_modprobe = std::any_of(members.begin(), members.end(), [](const value::Member& member) {
            return base::to_lower(member.key) == "modprobe" && !member.value.is_null();
        });
        if (!has_modprobe)
            faults.push_back({Severity::error, "missing-field", "modprobe.moduleName is missing",
                              documents.front().position(documents.front().root.mark()), "set modprobe.moduleName",
                              Exit::config});
    }
    for (auto& fault : faults)
        fault.exit = Exit::config;  // row M68: the worker's own configuration, not what it works on
    if (has_errors(faults)) throw Error::from_diagnostics(std::move(faults));
    add_secrets(objects, name, job.credentials);
}

}  // namespace kmm::tool_worker
