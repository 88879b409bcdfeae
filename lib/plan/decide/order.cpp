// SPDX-License-Identifier: Apache-2.0
#include "plan/decide/order.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "api/names.hpp"
#include "base/text.hpp"

namespace kmm::plan {

namespace {

using Graph = std::map<std::string, std::vector<std::string>>;

/// Only Modules that were read, on both ends.
Graph graph_of(const std::vector<api::Module>& modules) {
    Graph graph;
    for (const auto& module : modules) { graph[module.full_name()]; }
    for (const auto& module : modules) {
        for (const auto& name : needs(module)) {
            if (graph.contains(name)) { graph[module.full_name()].push_back(name); }
        }
    }
    return graph;
}

enum class Colour { white, grey, black };

/// Depth first over the graph: ranks, and the cycles by their path.
class Search {
public:
    explicit Search(const Graph& graph) : graph_(graph) {
        for (const auto& [name, needed] : graph_) { visit(name); }
    }

    std::map<std::string, std::size_t> ranks;
    std::vector<std::vector<std::string>> cycles;  ///< first and last name are the same

private:
    void visit(const std::string& name) {
        if (colours_[name] != Colour::white) { return; }
        colours_[name] = Colour::grey;
        path_.push_back(name);
        std::size_t rank = 0;
        for (const auto& needed : graph_.at(name)) {
            if (colours_[needed] == Colour::grey) {
                const auto begin = std::find(path_.begin(), path_.end(), needed);
                cycles.emplace_back(begin, path_.end());
                cycles.back().push_back(needed);
                continue;
            }
            visit(needed);
            rank = std::max(rank, ranks.at(needed) + 1);
        }
        path_.pop_back();
        colours_[name] = Colour::black;
        ranks[name] = rank;
    }

    const Graph& graph_;
    std::map<std::string, Colour> colours_;
    std::vector<std::string> path_;
};

void report_needs(const api::Module& module, Severity severity, std::string code, const std::string& message,
                  std::string hint, Diagnostics& diagnostics) {
    Diagnostic diagnostic;
    diagnostic.severity = severity;
    diagnostic.code = std::move(code);
    diagnostic.message = fmt::format("Module {}: annotation {}: {}", module.full_name(), k_annotation_needs, message);
    const auto place = module.places.find(fmt::format("metadata.annotations[{}]", k_annotation_needs));
    if (place != module.places.end()) {
        diagnostic.position = place->second;
    } else if (!module.meta.origin.file.empty()) {
        diagnostic.position = module.meta.origin;
    }
    diagnostic.hint = std::move(hint);
    diagnostics.push_back(std::move(diagnostic));
}

bool is_full_name(const std::string& text) {
    const auto pieces = base::split(text, '/');
    return pieces.size() == 2 && api::is_dns1123_label(pieces[0]) && api::is_dns1123_subdomain(pieces[1]);
}

}  // namespace

std::vector<std::string> needs(const api::Module& module) {
    std::vector<std::string> result;
    const auto found = module.meta.annotations.find(std::string(k_annotation_needs));
    if (found == module.meta.annotations.end() || base::trim(found->second).empty()) { return result; }
    for (const auto piece : base::split(found->second, ',')) { result.emplace_back(base::trim(piece)); }
    return result;
}

std::map<std::string, std::size_t> load_order(const std::vector<api::Module>& modules) {
    const Graph graph = graph_of(modules);
    return Search(graph).ranks;
}

void check_needs(const std::vector<api::Module>& modules, Diagnostics& diagnostics) {
    const Graph graph = graph_of(modules);
    std::vector<std::string> known;
    for (const auto& [name, needed] : graph) { known.push_back(name); }
    for (const auto& module : modules) {
        std::set<std::string> seen;
        for (const auto& name : needs(module)) {
            if (!is_full_name(name)) {
                report_needs(
                    module, Severity::error, "bad-needs",
                    fmt::format("expected NAMESPACE/NAME, separated by commas, found \"{}\"", base::escape(name)),
                    fmt::format("{}: drivers/base,drivers/net", k_annotation_needs), diagnostics);
            } else if (!seen.insert(name).second) {
                report_needs(module, Severity::error, "bad-needs", fmt::format("{} is named twice", name),
                             "remove one of them", diagnostics);
            } else if (!graph.contains(name)) {
                const auto near = base::nearest(name, known);
                report_needs(module, Severity::warning, "needs-unknown", fmt::format("there is no Module {}", name),
                             near ? fmt::format("did you mean {}?", *near) : "add the Module to the input",
                             diagnostics);
            }
        }
    }
    for (const auto& cycle : Search(graph).cycles) {
        const auto owner = std::find_if(modules.begin(), modules.end(),
                                        [&](const api::Module& module) { return module.full_name() == cycle.front(); });
        report_needs(*owner, Severity::error, "needs-cycle",
                     fmt::format("the Modules need each other in a circle: {}", base::join(cycle, " -> ")),
                     "remove one of the needs", diagnostics);
    }
}

}  // namespace kmm::plan
