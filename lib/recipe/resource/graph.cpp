// SPDX-License-Identifier: Apache-2.0
#include "recipe/resource/graph.hpp"

#include <algorithm>
#include <array>
#include <map>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/text.hpp"

namespace kmm::recipe::plan {

namespace {

class Walk {
public:
    explicit Walk(std::span<const SpecialResource> all) : all_(all) {}

    void visit(const std::string& name) {
        const auto state = depths_.find(name);
        if (state != depths_.end() && state->second > 0) { return; }
        if (state != depths_.end()) { throw cycle(name); }
        depths_[name] = 0;  // at work
        path_.push_back(name);
        int depth = 1;
        if (const SpecialResource* resource = find_resource(all_, name)) {
            for (const auto& dependency : resource->dependencies) {
                visit(dependency.name);
                depth = std::max(depth, depths_[dependency.name] + 1);
            }
        }
        path_.pop_back();
        depths_[name] = depth;
        order_.push_back(name);
    }

    [[nodiscard]] const std::vector<std::string>& order() const { return order_; }
    [[nodiscard]] int depth(const std::string& name) const { return depths_.at(name); }

private:
    std::span<const SpecialResource> all_;
    std::map<std::string, int> depths_;
    std::vector<std::string> path_, order_;

    Error cycle(const std::string& name) const {
        std::vector<std::string> path(std::find(path_.begin(), path_.end(), name), path_.end());
        const SpecialResource* last = find_resource(all_, path.back());
        Position place = last->origin;
        for (const auto& dependency : last->dependencies) {
            if (dependency.name == name) { place = dependency.origin; }
        }
        path.push_back(name);
        return Error(Exit::data, "dependency-cycle",
                     fmt::format("SpecialResources need each other in a circle: {}", base::join(path, " -> ")))
            .at(std::move(place))
            .hint("remove one of these dependencies");
    }
};

Walk walk(std::span<const SpecialResource> all, const std::vector<std::string>& names) {
    Walk walk(all);
    std::vector<std::string> known;
    for (const auto& resource : all) { known.push_back(resource.name); }
    for (const auto& name : names.empty() ? known : names) {
        if (find_resource(all, name) == nullptr) {
            const auto near = base::nearest(name, known);
            throw Error(Exit::not_found, "recipe-not-found",
                        fmt::format("there is no SpecialResource {}", base::escape(name)))
                .hint(near            ? fmt::format("did you mean {}?", *near)
                      : known.empty() ? "give documents with SpecialResources in -f"
                                      : "found: " + base::join(known, ", "));
        }
        walk.visit(name);
    }
    return walk;
}

/// A name as Mermaid takes it for a node: "--" begins an arrow, and its own words are none. No resource has '_' in its
/// name.
std::string mermaid_id(const std::string& name) {
    constexpr std::array<std::string_view, 10> k_words{"call",      "class", "click", "default",  "end",
                                                       "flowchart", "graph", "href",  "subgraph", "style"};
    const auto word = std::string_view(name).substr(0, name.find_first_of("-."));
    std::string id = std::find(k_words.begin(), k_words.end(), word) == k_words.end() ? name : "_" + name;
    if (id.find("--") != std::string::npos) { std::replace(id.begin(), id.end(), '-', '_'); }
    return id;
}

/// Each once, in order.
std::vector<std::string> needed_by(std::span<const SpecialResource> all, const std::string& name) {
    std::vector<std::string> made;
    if (const SpecialResource* resource = find_resource(all, name)) {
        for (const auto& dependency : resource->dependencies) {
            if (std::find(made.begin(), made.end(), dependency.name) == made.end()) { made.push_back(dependency.name); }
        }
    }
    return made;
}

}  // namespace

const SpecialResource* find_resource(std::span<const SpecialResource> all, std::string_view name) {
    const auto found =
        std::find_if(all.begin(), all.end(), [&](const SpecialResource& resource) { return resource.name == name; });
    return found == all.end() ? nullptr : &*found;
}

std::vector<std::string> apply_order(std::span<const SpecialResource> all, const std::vector<std::string>& names) {
    return walk(all, names).order();
}

std::vector<std::vector<std::string>> apply_waves(std::span<const SpecialResource> all,
                                                  const std::vector<std::string>& names) {
    const Walk walked = walk(all, names);
    std::vector<std::vector<std::string>> waves;
    for (const auto& name : walked.order()) {
        const auto depth = static_cast<std::size_t>(walked.depth(name));
        if (waves.size() < depth) { waves.resize(depth); }
        waves[depth - 1].push_back(name);
    }
    for (auto& wave : waves) { std::sort(wave.begin(), wave.end()); }
    return waves;
}

std::string graph_text(std::span<const SpecialResource> all, const std::vector<std::string>& names, GraphForm form) {
    const auto waves = apply_waves(all, names);
    std::string text = form == GraphForm::dot       ? "digraph recipes {\n  rankdir=BT;\n"
                       : form == GraphForm::mermaid ? "graph BT\n"
                                                    : "";
    std::size_t number = 0;
    for (const auto& wave : waves) {
        if (form == GraphForm::text) { text += fmt::format("wave {}\n", ++number); }
        for (const auto& name : wave) {
            const auto needs = needed_by(all, name);
            const std::string absent = find_resource(all, name) == nullptr ? " (not among the documents)" : "";
            if (form == GraphForm::text) {
                text +=
                    fmt::format("  {}{}{}{}\n", name, absent, needs.empty() ? "" : " needs ", base::join(needs, ", "));
            }
            if (form == GraphForm::dot) {
                text += fmt::format("  \"{}\"{};\n", name, absent.empty() ? "" : " [style=dashed]");
            }
            if (form == GraphForm::mermaid) {
                text += fmt::format("  {}[\"{}{}\"]\n", mermaid_id(name), name, absent);
            }
            for (const auto& need : needs) {
                if (form == GraphForm::dot) { text += fmt::format("  \"{}\" -> \"{}\";\n", name, need); }
                if (form == GraphForm::mermaid) {
                    text += fmt::format("  {} --> {}\n", mermaid_id(name), mermaid_id(need));
                }
            }
        }
    }
    return form == GraphForm::dot ? text + "}\n" : text;
}

}  // namespace kmm::recipe::plan
