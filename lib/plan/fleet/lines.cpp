// SPDX-License-Identifier: Apache-2.0
#include "plan/fleet/lines.hpp"

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "api/names.hpp"
#include "base/counted.hpp"
#include "base/glob.hpp"
#include "base/module_name.hpp"
#include "base/text.hpp"
#include "plan/codes/reasons.hpp"
#include "plan/decide/order.hpp"
#include "plan/decide/situation.hpp"
#include "plan/decide/verdict.hpp"
#include "plan/kmm/eligible.hpp"
#include "plan/kmm/resolve.hpp"
#include "plan/lint/lint.hpp"

namespace kmm::plan {

namespace {

/// As api::Module::full_name writes it.
std::string full_name_of(const Entry& entry) {
    return entry.namespace_.empty() ? entry.module : entry.namespace_ + "/" + entry.module;
}

/// The kernel module that the entry leaves loaded, with "_" for "-"; "" if there is none.
std::string kept_kernel_module(const Entry& entry) {
    if (!ends_loaded(entry.action) || !entry.config) { return {}; }
    return base::kernel_module_name(entry.config->modprobe.module_name);
}

/// Where the Module `full_name` names its kernel module, or where the Module stands.
std::optional<Position> place_of_kernel_module(const api::Objects& objects, const std::string& full_name) {
    for (const auto& module : objects.modules) {
        if (module.full_name() != full_name || module.meta.origin.file.empty()) { continue; }
        const auto place = module.places.find("spec.moduleLoader.container.modprobe.moduleName");
        return place == module.places.end() ? module.meta.origin : place->second;
    }
    return std::nullopt;
}

/// A kernel version that cannot be used is told once, at the first Node that has it.
void place_kernel_faults(const api::Objects& objects, Diagnostics& diagnostics) {
    std::map<std::string, Position> first;
    for (const auto& node : objects.nodes) {
        if (!node.meta.origin.file.empty()) { first.emplace(node.kernel_version, node.meta.origin); }
    }
    for (auto& diagnostic : diagnostics) {
        if (diagnostic.code != "kernel-unparsable" || diagnostic.position) { continue; }
        for (const auto& [kernel, origin] : first) {
            if (diagnostic.message.find(fmt::format("\"{}\"", base::escape(api::trim_kernel(kernel)))) !=
                std::string::npos) {
                diagnostic.position = origin;
                break;
            }
        }
    }
}

/// Two Modules that put the same kernel module on one node: each undoes the other's work, and KMM does not notice.
class Conflicts {
public:
    /// A number for the name, the same for the same name.
    std::size_t number_of(const std::string& kernel_module) {
        const auto [found, fresh] = numbers_.emplace(kernel_module, owners_.size());
        if (fresh) { owners_.push_back(Owner{}); }
        return found->second;
    }

    /// Lines come node by node.
    void see(const api::Node& node, const Entry& entry, std::size_t number) {
        Owner& owner = owners_[number];
        if (owner.node != &node) {
            owner = Owner{&node, full_name_of(entry)};
            return;
        }
        auto& nodes = conflicts_[{kept_kernel_module(entry), owner.module, full_name_of(entry)}];
        if (nodes.count++ == 0) { nodes.first = node.meta.name; }
    }

    void report(const api::Objects& objects, Diagnostics& diagnostics) const {
        for (const auto& [key, nodes] : conflicts_) {
            const auto& [kernel_module, first, second] = key;
            Diagnostic diagnostic;
            diagnostic.severity = Severity::warning;
            diagnostic.code = "module-conflict";
            diagnostic.message =
                fmt::format("Modules {} and {} both load the kernel module {} on {}, first {}", first, second,
                            kernel_module, base::counted(nodes.count, "node"), nodes.first);
            diagnostic.hint = "let their selectors exclude each other";
            diagnostic.position = place_of_kernel_module(objects, second);
            diagnostics.push_back(std::move(diagnostic));
        }
    }

private:
    struct Owner {
        const api::Node* node = nullptr;
        std::string module;
    };
    struct Nodes {
        std::size_t count = 0;
        std::string first;
    };
    std::unordered_map<std::string, std::size_t> numbers_;
    std::vector<Owner> owners_;
    std::map<std::tuple<std::string, std::string, std::string>, Nodes> conflicts_;
};

/// Order between Modules: ranks of the entries, and entries that are loaded although what they need is not.
class Needs {
public:
    explicit Needs(const std::vector<api::Module>& modules) {
        for (const auto& module : modules) {
            if (auto names = needs(module); !names.empty()) { needed_.emplace(module.full_name(), std::move(names)); }
        }
        if (!needed_.empty()) { ranks_ = load_order(modules); }
    }

    /// Sets `order` and `needs`.
    void rank(Entry& entry) const {
        if (needed_.empty()) { return; }
        const std::string name = full_name_of(entry);
        if (const auto rank = ranks_.find(name); rank != ranks_.end()) { entry.order = rank->second; }
        if (const auto found = needed_.find(name); found != needed_.end()) { entry.needs = found->second; }
    }

    void see(const Entry& entry) {
        if (needed_.empty() || !ends_loaded(entry.action)) { return; }
        loaded_.insert(full_name_of(entry));
    }

    void end_node(const api::Node& node) {
        for (const auto& name : loaded_) {
            const auto found = needed_.find(name);
            if (found == needed_.end()) { continue; }
            for (const auto& other : std::set<std::string>(found->second.begin(), found->second.end())) {
                if (loaded_.contains(other)) { continue; }
                auto& nodes = lacking_[{name, other}];
                if (nodes.count++ == 0) { nodes.first = node.meta.name; }
            }
        }
        loaded_.clear();
    }

    void report(const api::Objects& objects, Diagnostics& diagnostics) const {
        for (const auto& [key, nodes] : lacking_) {
            Diagnostic diagnostic;
            diagnostic.severity = Severity::warning;
            diagnostic.code = "needs-not-loaded";
            diagnostic.message =
                fmt::format("Module {} needs {}, which is not loaded on {}, first {}", key.first, key.second,
                            base::counted(nodes.count, "node"), nodes.first);
            diagnostic.hint = "add the Module to the input";
            for (const auto& module : objects.modules) {
                if (module.full_name() == key.second) {
                    diagnostic.hint = fmt::format("kmm-plan why {} {}", nodes.first, key.second);
                }
                if (module.full_name() == key.first && !module.meta.origin.file.empty()) {
                    diagnostic.position = module.meta.origin;
                }
            }
            diagnostics.push_back(std::move(diagnostic));
        }
    }

private:
    struct Nodes {
        std::size_t count = 0;
        std::string first;
    };
    std::map<std::string, std::vector<std::string>> needed_;
    std::map<std::string, std::size_t> ranks_;
    std::set<std::string> loaded_;  ///< on the current node
    std::map<std::pair<std::string, std::string>, Nodes> lacking_;
};

/// A --missing that is about no image of the plan is a typing error more often than not.
class MissingGlobs {
public:
    explicit MissingGlobs(std::vector<std::string> patterns) : unmatched_(std::move(patterns)) {}

    void see(const Resolution& resolution) {
        const auto* resolved = std::get_if<Resolved>(&resolution);
        if (resolved == nullptr || unmatched_.empty()) { return; }
        std::erase_if(unmatched_, [&](const auto& pattern) {
            return base::glob_matches(pattern, resolved->config.container_image);
        });
    }

    void report(Diagnostics& diagnostics) const {
        for (const auto& pattern : unmatched_) {
            Diagnostic diagnostic;
            diagnostic.severity = Severity::warning;
            diagnostic.code = "missing-unmatched";
            diagnostic.message = fmt::format("no image of the plan matches --missing {}", base::escape(pattern));
            diagnostic.hint = "it is compared with whole names of images; * and ? match any characters";
            diagnostics.push_back(std::move(diagnostic));
        }
    }

private:
    std::vector<std::string> unmatched_;
};

std::vector<const api::Module*> sorted_modules(const api::Objects& objects) {
    std::vector<const api::Module*> modules;
    for (const auto& module : objects.modules) { modules.push_back(&module); }
    std::stable_sort(modules.begin(), modules.end(), [](const api::Module* a, const api::Module* b) {
        return std::tie(a->meta.namespace_, a->meta.name) < std::tie(b->meta.namespace_, b->meta.name);
    });
    return modules;
}

class PlanVisitor {
public:
    PlanVisitor(const api::Objects& objects, const Options& options, const LineSink& sink)
        : objects_(objects), options_(complete(options, objects)), sink_(sink), lint_(objects), needs_(objects.modules),
          globs_(options.missing_images), situations_(sorted_modules(objects), *options_.schedule_key) {
        const auto modules = sorted_modules(objects);
        resolvers_.reserve(modules.size());
        for (const auto* module : modules) {
            resolvers_.emplace_back(*module);
            const auto same = std::find(selectors_.begin(), selectors_.end(), module->selector);
            selector_of_.push_back(static_cast<std::size_t>(same - selectors_.begin()));
            if (same == selectors_.end()) { selectors_.push_back(module->selector); }
            known_.emplace(module->meta.namespace_, module->meta.name);
        }
        selected_.resize(selectors_.size());
        numbers_.resize(resolvers_.size());
    }

    Diagnostics run() && {
        auto nodes = views(objects_);
        std::stable_sort(nodes.begin(), nodes.end(), [](const NodeView& a, const NodeView& b) {
            return a.node->meta.name < b.node->meta.name;
        });
        for (const auto& view : nodes) { visit(view); }
        lint_.report(diagnostics_);
        globs_.report(diagnostics_);
        diagnostics_.insert(diagnostics_.end(), faults_.begin(), faults_.end());
        report_missing_nodes();
        needs_.report(objects_, diagnostics_);
        conflicts_.report(objects_, diagnostics_);
        sort_and_merge(diagnostics_);
        place_kernel_faults(objects_, diagnostics_);
        sort_and_merge(diagnostics_);
        return std::move(diagnostics_);
    }

private:
    struct Known {
        std::shared_ptr<const Entry> entry;
        std::size_t number = k_own_entry;          ///< of the shared entry
        std::size_t kernel_module = k_own_entry;   ///< Conflicts' number
        FleetLint::Share lint;
    };

    void visit(const NodeView& view) {
        const api::Node& node = *view.node;
        for (std::size_t i = 0; i < selectors_.size(); ++i) { selected_[i] = selects(selectors_[i], node.meta.labels); }
        const bool shares = situations_.look(view);
        if (shares) { number_situations(); }
        const auto unknown = situations_.has_unknown() ? unknown_modules(view) : std::map<Name, Entry>();
        auto next = unknown.begin();
        for (std::size_t i = 0; i < resolvers_.size(); ++i) {
            const auto& meta = resolvers_[i].module().meta;
            for (; next != unknown.end() && next->first < Name(meta.namespace_, meta.name); ++next) {
                own(node, next->second);
            }
            if (!shares) {
                own(node, judged(view, i));
                continue;
            }
            auto& known = known_verdicts_[numbers_[i]];
            if (known == nullptr) {
                Verdict verdict = judged(view, i);
                if (is_about_one_node(verdict)) {
                    own(node, verdict);
                    continue;
                }
                known = share(node, std::move(verdict));
            }
            emit(node, *known);
        }
        for (; next != unknown.end(); ++next) { own(node, next->second); }
        lint_.end_node(node);
        needs_.end_node(node);
        own_lint_.clear();
    }

    /// Numbers the situations of the node with each Module. What is known of them lies all over the memory of a large
    /// fleet, so it is fetched before it is needed.
    void number_situations() {
        for (std::size_t i = 0; i < resolvers_.size(); ++i) {
            const std::size_t number = situations_.number(i, selected_[selector_of_[i]]);
            if (number >= known_verdicts_.size()) { known_verdicts_.resize(number + 1); }
            numbers_[i] = number;
            __builtin_prefetch(known_verdicts_[number]);
        }
    }

    /// Findings about such verdicts name the node.
    static bool is_about_one_node(const Verdict& verdict) {
        return verdict.labels_after.stuck || verdict.entry.action == Action::unload;
    }

    Verdict judged(const NodeView& view, std::size_t resolver) {
        Verdict verdict = judge(view, resolvers_[resolver], options_);
        if (const auto* bad = std::get_if<MappingFault>(&verdict.resolution);
            bad != nullptr && verdict.selected && verdict.tolerated) {
            faults_.push_back(bad->diagnostic);
        }
        globs_.see(verdict.resolution);
        needs_.rank(verdict.entry);
        return verdict;
    }

    const Known* share(const api::Node& node, Verdict verdict) {
        auto lint = lint_.see(node, verdict);
        auto& known =
            shared_.emplace_back(Known{std::make_shared<const Entry>(std::move(verdict.entry)), shared_.size(),
                                       k_own_entry, std::move(lint)});
        if (const auto name = kept_kernel_module(*known.entry); !name.empty()) {
            known.kernel_module = conflicts_.number_of(name);
        }
        return &known;
    }

    void own(const api::Node& node, const Verdict& verdict) {
        lint_.add(node, own_lint_.emplace_back(lint_.see(node, verdict)));
        own(node, verdict.entry);
    }

    void own(const api::Node& node, const Entry& entry) {
        if (const auto name = kept_kernel_module(entry); !name.empty()) {
            conflicts_.see(node, entry, conflicts_.number_of(name));
        }
        needs_.see(entry);
        sink_(Line{node, entry, k_own_entry, nullptr});
    }

    void emit(const api::Node& node, const Known& known) {
        if (known.kernel_module != k_own_entry) { conflicts_.see(node, *known.entry, known.kernel_module); }
        lint_.add(node, known.lint);
        needs_.see(*known.entry);
        sink_(Line{node, *known.entry, known.number, &known.entry});
    }

    using Name = std::pair<std::string, std::string>;

    /// Entries of a NodeModulesConfig whose Module was not read: KMM keeps what is in spec and unloads what is only in
    /// status.
    std::map<Name, Entry> unknown_modules(const NodeView& view) const {
        std::map<Name, Entry> entries;
        if (view.config == nullptr) { return entries; }
        for (const auto* list : {&view.config->status, &view.config->spec}) {
            for (const auto& item : *list) {
                if (known_.count({item.namespace_, item.name}) != 0) { continue; }
                Entry entry;
                entry.node = view.node->meta.name;
                entry.kernel = view.node->kernel_version;
                entry.boot_id = view.node->boot_id;
                entry.namespace_ = item.namespace_;
                entry.module = item.name;
                entry.version = item.version;
                entry.image = item.config->container_image;
                entry.config = *item.config;
                entry.action = list == &view.config->spec ? Action::keep : Action::unload;
                entry.reason = "module-unknown";
                entry.message = reason(entry.reason).text;
                entries.insert_or_assign({item.namespace_, item.name}, std::move(entry));
            }
        }
        return entries;
    }

    /// NodeModulesConfigs that belong to no node.
    void report_missing_nodes() {
        std::unordered_set<std::string_view> nodes;
        nodes.reserve(objects_.nodes.size());
        for (const auto& node : objects_.nodes) { nodes.insert(node.meta.name); }
        for (const auto& config : objects_.node_modules_configs) {
            if (nodes.count(config.meta.name) != 0) { continue; }
            Diagnostic diagnostic;
            diagnostic.severity = Severity::warning;
            diagnostic.code = "node-missing";
            diagnostic.message = fmt::format("NodeModulesConfig {}: there is no Node of that name", config.meta.name);
            if (!config.meta.origin.file.empty()) { diagnostic.position = config.meta.origin; }
            diagnostic.hint = "add the Node to the input";
            diagnostics_.push_back(std::move(diagnostic));
        }
    }

    const api::Objects& objects_;
    const Options options_;
    const LineSink& sink_;
    std::vector<Resolver> resolvers_;         ///< of the Modules in the plan's order
    std::vector<std::size_t> selector_of_;    ///< for each of them, its place in selectors_
    std::vector<api::Labels> selectors_;      ///< each once
    std::vector<bool> selected_;              ///< for each selector, whether it matches the current node
    std::set<Name> known_;
    std::vector<std::size_t> numbers_;          ///< for each resolver, that of the current node's situation
    std::vector<const Known*> known_verdicts_;  ///< by situation
    std::deque<Known> shared_;
    Conflicts conflicts_;
    FleetLint lint_;
    std::deque<FleetLint::Share> own_lint_;   ///< of the current node
    Needs needs_;
    MissingGlobs globs_;
    Situations situations_;
    Diagnostics faults_;                      ///< of mappings
    Diagnostics diagnostics_;
};

}  // namespace

Entry Line::own() const {
    Entry result = entry;
    result.node = node.meta.name;
    result.boot_id = node.boot_id;
    return result;
}

Diagnostics visit_plan(const api::Objects& objects, const Options& options, const LineSink& sink) {
    return PlanVisitor(objects, options, sink).run();
}

}  // namespace kmm::plan
