// SPDX-License-Identifier: Apache-2.0
// Parts of what a chart renders.
#include "recipe/plan/manifest_parts.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/text.hpp"

namespace kmm::recipe::plan {

using chart::Manifest;
using tmpl::Value;

namespace {

std::int64_t weight(const Manifest& hook) {
    const Value& object = hook.object;
    const auto metadata = object.members().find("metadata");
    if (metadata == object.members().end()) { return 0; }
    const auto annotations = metadata->second.members().find("annotations");
    if (annotations == metadata->second.members().end()) { return 0; }
    const std::string text = member_text(annotations->second, "helm.sh/hook-weight");
    try {
        std::size_t end = 0;
        const std::int64_t number = std::stoll(text, &end);
        return end == text.size() && text.front() != ' ' ? number : 0;  // as Atoi of Go has it
    } catch (const std::exception&) { return 0; }
}

bool is_list(const Value& object) {
    const auto items = object.members().find("items");
    const auto metadata = object.members().find("metadata");
    const bool is_named = metadata != object.members().end() && metadata->second.members().contains("name");
    return member_text(object, "kind").ends_with("List") && !is_named && items != object.members().end() &&
           (items->second.is_nil() || items->second.is_list()) &&
           std::all_of(items->second.items().begin(), items->second.items().end(),
                       [](const Value& item) { return item.is_map(); });
}

void put_opened(const Manifest& manifest, std::vector<Manifest>& opened) {
    if (!is_list(manifest.object)) {
        opened.push_back(manifest);
        return;
    }
    for (const auto& item : manifest.object.members().at("items").items()) {
        Manifest one = manifest;
        one.object = item;
        one.api_version = member_text(item, "apiVersion");
        one.kind = member_text(item, "kind");
        const auto metadata = item.members().find("metadata");
        one.name = metadata == item.members().end() ? std::string() : member_text(metadata->second, "name");
        put_opened(one, opened);
    }
}

}  // namespace

std::string member_text(const Value& object, std::string_view key) {
    const auto found = object.members().find(key);
    return found == object.members().end() ? std::string() : found->second.text();
}

std::string identity(const Value& object) {
    const auto metadata = object.members().find("metadata");
    const Value none = Value::map({});
    const Value& meta = metadata == object.members().end() ? none : metadata->second;
    const std::string version = member_text(object, "apiVersion");
    // The group alone: versions of one group are one object.
    const std::string group = version.find('/') == std::string::npos ? "" : version.substr(0, version.find('/'));
    return fmt::format("{}/{} {}/{}", group, member_text(object, "kind"), member_text(meta, "namespace"),
                       member_text(meta, "name"));
}

std::string shown(const Value& object) {
    const auto metadata = object.members().find("metadata");
    return fmt::format("{} {}", member_text(object, "kind"),
                       metadata == object.members().end() ? "" : member_text(metadata->second, "name"));
}

Position place_of(const Manifest& manifest) {
    return manifest.origin ? manifest.origin(1) : Position{manifest.source, 0, 0};
}

void open_lists(std::vector<Manifest>& manifests) {
    std::vector<Manifest> opened;
    for (const auto& one : manifests) { put_opened(one, opened); }
    manifests = std::move(opened);
}

std::vector<Manifest> definitions(const chart::Rendered& rendered) {
    std::vector<Manifest> all;
    for (const auto& file : rendered.crds) {
        for (auto& one : chart::definitions_of(file)) { all.push_back(std::move(one)); }
    }
    open_lists(all);
    return all;
}

std::vector<Manifest> operator_definitions(const chart::Rendered& rendered) {
    std::vector<Manifest> all;
    const auto add = [&](const Manifest& file, const std::string& text, std::size_t line) {
        auto parts = chart::sort_manifests({chart::RenderedFile{file.source, text, nullptr}});
        for (auto* list : {&parts.objects, &parts.hooks}) { all.insert(all.end(), list->begin(), list->end()); }
        if (parts.objects.empty() && parts.hooks.empty()) {
            Manifest& none = all.emplace_back();
            none.source = file.source;
            none.origin = [place = Position{file.source, line, 0}](std::size_t) { return place; };
        }
    };
    for (const auto& file : rendered.crds) {
        std::string document = "# Source\n";
        std::size_t line = 0;
        for (const auto text : base::split(file.content, '\n')) {
            ++line;
            if (!text.starts_with("---")) {
                document.append(text) += '\n';
                continue;
            }
            const auto behind = base::trim(text.substr(3));
            if (!behind.empty() && behind.front() != '#') {
                throw Error(Exit::data, "bad-manifest",
                            fmt::format("invalid Yaml document separator: {}", base::escape(behind)))
                    .at({file.source, line, 0})
                    .hint("the operator wants the document on the next line; leave out --compat sro");
            }
            if (document.empty()) {
                document = "#\n";
            } else {
                add(file, document, line);
                document.clear();
            }
        }
        if (!document.empty()) { add(file, document, line); }
    }
    return all;
}

std::vector<std::string> events_of(const Manifest& hook) {
    std::vector<std::string> events;
    for (const auto one : base::split(hook.hooks, ',')) { events.push_back(base::to_lower(base::trim(one))); }
    return events;
}

std::vector<Manifest> hooks_of(const chart::Rendered& rendered, std::string_view event) {
    std::vector<Manifest> all;
    for (const auto& hook : rendered.hooks) {
        const auto events = events_of(hook);
        if (std::find(events.begin(), events.end(), event) != events.end()) { all.push_back(hook); }
    }
    std::stable_sort(all.begin(), all.end(), [](const Manifest& a, const Manifest& b) {
        const auto wa = weight(a), wb = weight(b);
        return wa != wb ? wa < wb : a.name < b.name;
    });
    return all;
}

void warn_of_hooks(const chart::Rendered& rendered, const std::function<void(Diagnostic)>& notice) {
    for (const auto& hook : rendered.hooks) {
        const auto warn = [&](std::string message, std::string hint) {
            notice({Severity::warning, "hook-not-run", std::move(message), place_of(hook), std::move(hint),
                    Exit::data});
        };
        const auto events = events_of(hook);
        const auto has = [&](std::string_view event) {
            return std::find(events.begin(), events.end(), event) != events.end();
        };
        const bool is_early = has("pre-install"), is_late = has("post-install");
        if (is_early && is_late && (hook.kind == "Job" || hook.kind == "Pod")) {
            warn(fmt::format("{} {} is a hook of {}, and a rollout runs it once, before the objects", hook.kind,
                             hook.name, base::join(events, ", ")),
                 "give the work after the objects to a hook with another name");
            continue;
        }
        if (is_early || is_late) {
            const bool is_moved =
                is_early != is_late && (is_early ? has("post-upgrade") && !has("pre-upgrade")
                                                 : has("pre-upgrade") && !has("post-upgrade"));
            if (!is_moved) { continue; }
            warn(fmt::format("{} {} is a hook of {}, and a rollout over an earlier release runs it {} the objects",
                             hook.kind, hook.name, base::join(events, ", "), is_early ? "before" : "after"),
                 is_early ? "put it into a later state if it has to run after them"
                          : "put it into an earlier state if it has to run before them");
            continue;
        }
        if (std::any_of(events.begin(), events.end(),
                        [](const std::string& event) { return event.starts_with("test"); })) {
            continue;
        }
        warn(fmt::format("{} {} is a hook of {} alone, and is left out", hook.kind, hook.name,
                         base::join(events, ", ")),
             "add pre-install or post-install to helm.sh/hook, or do its work by hand");
    }
}

}  // namespace kmm::recipe::plan
