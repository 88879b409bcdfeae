// SPDX-License-Identifier: Apache-2.0
#include "recipe/chart/manifests.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "base/text.hpp"
#include "recipe/chart/metadata.hpp"
#include "recipe/golib/url.hpp"
#include "recipe/govalue/text.hpp"
#include "recipe/goyaml/yaml.hpp"

namespace kmm::recipe::chart {

namespace {

constexpr std::array<std::string_view, 36> k_install_order{"PriorityClass",
                                                           "Namespace",
                                                           "NetworkPolicy",
                                                           "ResourceQuota",
                                                           "LimitRange",
                                                           "PodSecurityPolicy",
                                                           "PodDisruptionBudget",
                                                           "ServiceAccount",
                                                           "Secret",
                                                           "SecretList",
                                                           "ConfigMap",
                                                           "StorageClass",
                                                           "PersistentVolume",
                                                           "PersistentVolumeClaim",
                                                           "CustomResourceDefinition",
                                                           "ClusterRole",
                                                           "ClusterRoleList",
                                                           "ClusterRoleBinding",
                                                           "ClusterRoleBindingList",
                                                           "Role",
                                                           "RoleList",
                                                           "RoleBinding",
                                                           "RoleBindingList",
                                                           "Service",
                                                           "DaemonSet",
                                                           "Pod",
                                                           "ReplicationController",
                                                           "ReplicaSet",
                                                           "Deployment",
                                                           "HorizontalPodAutoscaler",
                                                           "StatefulSet",
                                                           "Job",
                                                           "CronJob",
                                                           "IngressClass",
                                                           "Ingress",
                                                           "APIService"};
constexpr std::array<std::string_view, 10> k_events{"pre-install", "post-install", "pre-delete",   "post-delete",
                                                    "pre-upgrade", "post-upgrade", "pre-rollback", "post-rollback",
                                                    "test",        "test-success"};

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\f' || c == '\r'; }

struct Piece {
    std::string_view text;
    std::size_t at = 0;
};

/// Helm's split at (?:^|\s*\n)---\s*
std::vector<Piece> split_documents(std::string_view whole) {
    const std::string_view text = tmpl::trim_space(whole);
    const auto base = static_cast<std::size_t>(text.data() - whole.data());
    std::vector<Piece> pieces;
    std::size_t begin = 0, end = 0;
    for (std::size_t at = text.find("---"); at != std::string_view::npos; at = text.find("---", at)) {
        const bool starts = at == 0 || (at > begin && text[at - 1] == '\n');
        if (!starts) {
            ++at;
            continue;
        }
        end = at;
        while (end > begin && is_blank(text[end - 1])) { --end; }
        at += 3;
        while (at < text.size() && is_blank(text[at])) { ++at; }
        pieces.push_back({text.substr(begin, end - begin), base + begin});
        begin = at;
    }
    if (begin == 0 || end != text.size()) { pieces.push_back({text.substr(begin), base + begin}); }
    std::erase_if(pieces, [](const Piece& p) { return p.text.empty(); });
    for (auto& piece : pieces) {
        const std::string_view trimmed = tmpl::trim_space(piece.text);
        piece.at += static_cast<std::size_t>(trimmed.data() - piece.text.data());
        piece.text = trimmed;
    }
    return pieces;
}

/// Reads what Helm looks at of a document.
class Head {
public:
    Head(Manifest& manifest, const RenderedFile& file) : manifest_(manifest), file_(file) {}

    void read() {
        tmpl::YamlFault fault;
        // What reads Helm's output ends the last line, and a block scalar at the end of an object keeps that.
        manifest_.object = tmpl::read_yaml_text(manifest_.content + '\n', fault, tmpl::WholeNumbers::exact);
        const tmpl::Value& document = manifest_.object;
        if (!fault.message.empty()) {
            const std::string open = tmpl::open_text(fault, place_of(output_line(fault.open_line)));
            throw bad(fmt::format("the output is not YAML: {}{}", base::escape(fault.problem), open), fault.line,
                      fault.column);
        }
        if (document.is_nil()) { return; }
        if (!document.is_map()) {
            throw bad(fmt::format("expected an object, found {}", tmpl::describe(document)), first_line());
        }
        text(document, "apiVersion", manifest_.api_version);
        text(document, "kind", manifest_.kind);
        const tmpl::Value* metadata = find(document, "metadata");
        if (metadata == nullptr || metadata->is_nil()) { return; }
        if (!metadata->is_map()) { throw wrong("metadata", "a mapping", *metadata); }
        text(*metadata, "name", manifest_.name);
        const tmpl::Value* annotations = find(*metadata, "annotations");
        if (annotations == nullptr || annotations->is_nil()) { return; }
        if (!annotations->is_map()) { throw wrong("metadata.annotations", "a mapping", *annotations); }
        for (const auto& [key, value] : annotations->members()) {
            const auto text = scalar_text(value);
            if (!text) { throw wrong(fmt::format("metadata.annotations[{}]", key), "a string", value, key); }
            if (key == "helm.sh/hook") {
                manifest_.hooks = *text;
                has_hooks_ = true;
            }
        }
    }

    [[nodiscard]] bool has_hooks() const { return has_hooks_; }

private:
    Manifest& manifest_;
    const RenderedFile& file_;
    bool has_hooks_ = false;

    /// Names of fields are matched as encoding/json does.
    static const tmpl::Value* find(const tmpl::Value& mapping, std::string_view key) {
        if (const auto found = mapping.members().find(key); found != mapping.members().end()) {
            return &found->second;
        }
        for (const auto& [name, member] : mapping.members()) {
            if (base::to_lower(name) == base::to_lower(key)) { return &member; }
        }
        return nullptr;
    }

    /// The first line of this document that is neither empty nor a comment.
    std::size_t first_line() const {
        std::size_t number = 0;
        for (const auto line : base::split(manifest_.content, '\n')) {
            ++number;
            const auto words = base::trim(line);
            if (!words.empty() && words.front() != '#') { return number; }
        }
        return 1;
    }

    /// The line of the file's output that `line` of this document is.
    std::size_t output_line(std::size_t line) const { return manifest_.line + (line > 0 ? line - 1 : 0); }
    /// The place in the template that made a line of the output.
    Position place_of(std::size_t line) const {
        return file_.origin ? file_.origin(line) : Position{file_.name, 0, 0};
    }

    Error bad(std::string message, std::size_t line, std::size_t column = 0) const {
        const std::size_t in_output = output_line(line);
        Error error(Exit::data, "bad-manifest", std::move(message));
        error.at(place_of(in_output));
        const std::string place = std::to_string(in_output);
        error.detail("rendered line", column == 0 ? place : fmt::format("{}, column {}", place, column));
        const auto lines = base::split(file_.text, '\n');
        if (in_output <= lines.size()) {
            error.detail("rendered as", base::escape(lines[in_output - 1].substr(0, 120)));
        }
        return error;
    }

    Error wrong(const std::string& path, std::string_view expected, const tmpl::Value& value,
                std::string_view key = {}) const {
        const std::string_view name = key.empty() ? std::string_view(path).substr(path.rfind('.') + 1) : key;
        std::size_t line = 0, number = 0;
        for (const auto text : base::split(manifest_.content, '\n')) {
            ++number;
            const std::size_t at = text.find(name);
            if (line == 0 && at != std::string_view::npos &&
                text.find(':', at + name.size()) != std::string_view::npos) {
                line = number;
            }
        }
        return bad(fmt::format("{}: expected {}, found {}", base::escape(path), expected, tmpl::describe(value)), line)
            .detail("key", base::escape(path))
            .hint("is the indentation right?");
    }

    void text(const tmpl::Value& mapping, std::string_view key, std::string& out) const {
        const tmpl::Value* value = find(mapping, key);
        if (value == nullptr || value->is_nil()) { return; }
        const auto text = scalar_text(*value);
        if (!text) { throw wrong(key == "name" ? "metadata.name" : std::string(key), "a string", *value); }
        out = *text;
    }
};

}  // namespace

std::optional<std::string> unknown_event(const std::string& hooks) {
    for (const auto& one : tmpl::split_text(hooks, ",")) {
        const std::string event(tmpl::trim_space(one));
        if (std::find(k_events.begin(), k_events.end(), base::to_lower(event)) == k_events.end()) { return event; }
    }
    return std::nullopt;
}

std::vector<std::string> hook_events() { return {k_events.begin(), k_events.end()}; }

std::span<const std::string_view> install_order() noexcept { return k_install_order; }

bool installs_before(std::string_view kind, std::string_view other) {
    const auto a = std::find(k_install_order.begin(), k_install_order.end(), kind);
    const auto b = std::find(k_install_order.begin(), k_install_order.end(), other);
    if (a == k_install_order.end() && b == k_install_order.end()) { return kind < other; }
    return a < b;
}

namespace {

/// The documents of a file, in their order, each with whether it has the annotation of hooks.
std::vector<std::pair<Manifest, bool>> documents_of(const RenderedFile& file) {
    std::vector<std::pair<Manifest, bool>> all;
    for (const auto& piece : split_documents(file.text)) {
        Manifest manifest;
        manifest.source = file.name;
        manifest.content = piece.text;
        manifest.line = static_cast<std::size_t>(std::count(
                            file.text.begin(), file.text.begin() + static_cast<std::ptrdiff_t>(piece.at), '\n')) +
                        1;
        manifest.origin = [origin = file.origin, name = file.name, start = manifest.line](std::size_t line) {
            Position place = origin ? origin(start + line - 1) : Position{name, 0, 0};
            place.column = 0;  // an object is more than the start of its line
            return place;
        };
        Head head(manifest, file);
        head.read();
        all.emplace_back(std::move(manifest), head.has_hooks());
    }
    return all;
}

}  // namespace

Manifests sort_manifests(const std::vector<RenderedFile>& files) {
    Manifests all;
    for (const auto& file : files) {
        if (tmpl::base_path(file.name).starts_with('_') || tmpl::trim_space(file.text).empty()) { continue; }
        for (auto& [manifest, is_hook] : documents_of(file)) {
            const bool is_known = !is_hook || !unknown_event(manifest.hooks);
            auto& list = !is_known ? all.left_out : is_hook ? all.hooks : all.objects;
            list.push_back(std::move(manifest));
        }
    }
    for (auto* list : {&all.objects, &all.hooks}) {
        std::stable_sort(list->begin(), list->end(),
                         [](const Manifest& a, const Manifest& b) { return installs_before(a.kind, b.kind); });
    }
    return all;
}

std::vector<Manifest> definitions_of(const Manifest& file) {
    std::vector<Manifest> all;
    for (auto& [manifest, is_hook] : documents_of({file.source, file.content, nullptr})) {
        all.push_back(std::move(manifest));
    }
    return all;
}

}  // namespace kmm::recipe::chart
