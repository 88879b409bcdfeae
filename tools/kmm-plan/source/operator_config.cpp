// SPDX-License-Identifier: Apache-2.0
#include "kmm-plan/source/operator_config.hpp"

#include <algorithm>
#include <fmt/format.h>

#include "api/names.hpp"
#include "base/text.hpp"
#include "value/reader.hpp"

namespace kmm::tool_plan {

namespace {

/// Since then the operator refuses the whole file for one field that it does not know.
constexpr plan::Release k_strict{2, 4, 0};
/// Before, worker.firmwareHostPath was worker.setFirmwareClassPath.
constexpr plan::Release k_host_path{2, 2, 0};

render::OperatorConfig decode_as(const value::Document& document, const std::optional<plan::Release>& release,
                                 Diagnostics& faults) {
    const std::size_t begin = faults.size();
    auto config = render::decode_operator_config(document, faults);
    if (!release || *release >= k_strict) { return config; }
    const value::Node* old = document.root.find_path({"worker", "setFirmwareClassPath"});
    const auto is_of_old = [&](const Diagnostic& one) {
        return old != nullptr && one.code == "unknown-field" && one.position == document.position(old->mark());
    };
    const auto first = faults.begin() + static_cast<std::ptrdiff_t>(begin);
    if (old != nullptr && *release < k_host_path) {
        faults.erase(std::remove_if(first, faults.end(), is_of_old), faults.end());
        config.worker_firmware_host_path = old->text();
        if (const auto fault = render::firmware_path_fault(old->text()); !fault.empty()) {
            faults.push_back({Severity::error, "bad-value", "worker.setFirmwareClassPath " + fault,
                              document.position(old->mark()), "", Exit::data});
        }
    }
    for (auto one = faults.begin() + static_cast<std::ptrdiff_t>(begin); one != faults.end(); ++one) {
        if (one->code != "unknown-field") { continue; }
        if (is_of_old(*one)) { one->message = "unknown field worker.setFirmwareClassPath"; }
        one->severity = Severity::warning;
        one->message += fmt::format(": KMM {} ignores it", plan::to_string(*release));
    }
    return config;
}

}  // namespace

render::OperatorConfig parse_operator_config(const std::string& text, const std::string& file,
                                             const std::optional<plan::Release>& release) {
    Diagnostics faults;
    const auto documents = value::read_any(text, file, faults);
    render::OperatorConfig config;
    if (documents.size() > 1) {
        throw Error(Exit::data, "bad-value",
                    fmt::format("expected one document with the operator's configuration, found {}", documents.size()))
            .at(documents[1].position(documents[1].root.mark()));
    }
    if (!documents.empty() && documents[0].root.get_string({"kind"}) == "ConfigMap") {
        const value::Node* inner = documents[0].root.find_path({"data", render::k_operator_config_key});
        if (inner == nullptr || !inner->is_string()) {
            throw Error(Exit::data, "missing-field",
                        fmt::format("the ConfigMap has no data.{}", render::k_operator_config_key))
                .at(documents[0].position(documents[0].root.mark()));
        }
        return parse_operator_config(inner->text(), fmt::format("{}({})", file, render::k_operator_config_key),
                                     release);
    }
    if (!documents.empty()) { config = decode_as(documents[0], release, faults); }
    if (has_errors(faults)) { throw Error::from_diagnostics(std::move(faults)); }
    return config;
}

namespace {

/// A text has no lines of its own in the file: the value's place stands for all of them.
void check_config_text(const std::string& text, const Position& place, const std::string& map,
                       const std::optional<plan::Release>& release, Diagnostics& findings) {
    Diagnostics faults;
    const auto documents = value::read_any(text, place.file, faults);
    if (!documents.empty()) { static_cast<void>(decode_as(documents.front(), release, faults)); }
    for (auto& fault : faults) {
        const std::size_t line = fault.position ? fault.position->line : 0;
        fault.message =
            fmt::format("ConfigMap {}, line {} of {}: {}", map, line, render::k_operator_config_key, fault.message);
        fault.position = place;
        findings.push_back(std::move(fault));
    }
}

void check_config_map(const api::ConfigMap& map, const std::optional<plan::Release>& release, Diagnostics& findings) {
    const std::string key(render::k_operator_config_key);
    const std::string name = base::escape(map.meta.full_name());
    if (const auto text = map.data.find(key); text != map.data.end()) {
        const auto place = map.places.find(key);
        check_config_text(text->second, place == map.places.end() ? map.meta.origin : place->second, name, release,
                          findings);
        return;
    }
    // The operator mounts it as a file, too.
    if (std::find(map.binary_keys.begin(), map.binary_keys.end(), key) != map.binary_keys.end()) { return; }
    Diagnostic finding;
    finding.severity = Severity::warning;
    finding.code = "operator-config";
    finding.message = fmt::format("ConfigMap {} has no key {}: the operator takes its defaults", name, key);
    if (!map.meta.origin.file.empty()) { finding.position = map.meta.origin; }
    finding.hint = fmt::format("write the configuration as data.{}", key);
    findings.push_back(std::move(finding));
}

}  // namespace

void check_operator_configs(Source& source, OperatorConfigUse use, const std::optional<plan::Release>& release) {
    if (use == OperatorConfigUse::checked) {
        for (const auto& map : source.objects.config_maps) {
            if (api::is_operator_config_map(map.meta.name)) { check_config_map(map, release, source.diagnostics); }
        }
    }
    for (const auto& document : source.objects.operator_configs) {
        Diagnostic finding;
        finding.severity = use == OperatorConfigUse::checked ? Severity::note : Severity::warning;
        finding.code = "operator-config";
        finding.message =
            fmt::format("this is the operator's {}, not an object of a cluster{}", render::k_operator_config_key,
                        use == OperatorConfigUse::checked ? "" : ": it is not used");
        finding.position = document.position(document.root.mark());
        finding.hint = use == OperatorConfigUse::checked
                           ? fmt::format("the operator reads it from ConfigMap {}", render::k_operator_config_map)
                           : "kmm-plan render --operator-config FILE reads it";
        source.diagnostics.push_back(std::move(finding));
        if (use == OperatorConfigUse::checked) {
            static_cast<void>(decode_as(document, release, source.diagnostics));
        }
    }
}

}  // namespace kmm::tool_plan
