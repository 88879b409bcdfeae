// SPDX-License-Identifier: Apache-2.0
// Random clusters walked pass by pass, all Pods succeeding, against the settled plan. The walk below is written over
// whole objects and the bare tables; it shares no code with plan/decide/passes.cpp.
#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <random>

#include "base/glob.hpp"
#include "plan/decide/policy.hpp"
#include "plan/fleet/make_plan.hpp"
#include "plan/kmm/eligible.hpp"
#include "plan/kmm/resolve.hpp"
#include "support/sanitized.hpp"
#include "unit/plan/build.hpp"

using namespace kmm;

namespace {

class Dice {
public:
    explicit Dice(unsigned seed) : engine_(seed) {}
    std::size_t below(std::size_t n) { return engine_() % n; }
    bool once_in(std::size_t n) { return below(n) == 0; }
    template <typename T>
    const T& pick(const std::vector<T>& from) {
        return from[below(from.size())];
    }

private:
    std::mt19937 engine_;
};

const std::vector<std::string> k_versions{"", "v1", "v2"};
const std::vector<std::string> k_kernels{"6.1.0-56-amd64", "6.1.0-57-amd64", "5.10.0-1+", "bad"};

void put_labels(api::Node& node, const api::Module& module, Dice& dice) {
    const auto& [ns, name] = std::pair{module.meta.namespace_, module.meta.name};
    for (const auto& key : {api::label_version_module(ns, name), api::label_version_worker_pod(ns, name),
                            api::label_version_schedule_pod(ns, name)}) {
        if (const auto& value = dice.pick(k_versions); !value.empty()) { node.meta.labels[key] = value; }
    }
}

api::Module random_module(const std::string& name, Dice& dice) {
    api::Module module = build::module(dice.pick(k_versions));
    module.meta.name = name;
    module.selector = dice.once_in(3) ? api::Labels{} : api::Labels{{"pool", "a"}};
    auto& container = module.module_loader->container;
    container.modprobe.module_name = name;
    container.container_image = "r.example/" + name + ":" + container.version + "-$KERNEL_FULL_VERSION";
    container.kernel_mappings.clear();
    if (dice.once_in(2)) { container.kernel_mappings.push_back(build::literal(dice.pick(k_kernels))); }
    container.kernel_mappings.push_back(build::regexp(dice.pick<std::string>({"^6\\.", "56", "^.+$", "^.+$", "("}),
                                                      dice.once_in(3) ? "r.example/own:x" : ""));
    if (dice.once_in(4)) { module.tolerations = {{"dedicated", "Exists", "", "", std::nullopt}}; }
    if (dice.once_in(8)) { module.meta.deleting = true; }
    if (dice.once_in(8)) { module.module_loader.reset(); }
    return module;
}

api::NodeModule random_entry(const api::Module& module, const api::Node& node, Dice& dice) {
    api::Module source = module;
    if (!source.module_loader) { source.module_loader = build::module().module_loader; }
    auto& container = source.module_loader->container;
    container.version = dice.pick(k_versions);
    container.kernel_mappings = {build::regexp("^.+$")};
    api::NodeModule entry;
    entry.name = module.meta.name;
    entry.namespace_ = module.meta.namespace_;
    const auto resolution = plan::resolve(source, dice.once_in(3) ? k_kernels[0] : node.kernel_version);
    if (const auto* resolved = std::get_if<plan::Resolved>(&resolution)) { entry.config = resolved->config; }
    if (dice.once_in(3)) { entry.config.edit().modprobe.parameters = {"debug=1"}; }
    entry.version = container.version;
    entry.service_account_name = "default";
    entry.tolerations = plan::loader_tolerations(module);
    return entry;
}

api::Objects random_cluster(unsigned seed) {
    Dice dice(seed);
    api::Objects objects;
    for (const auto* name : {"aa", "bb"}) { objects.modules.push_back(random_module(name, dice)); }
    for (const auto* name : {"n1", "n2", "n3"}) {
        api::Node node = build::node(dice.pick(k_kernels));
        node.meta.name = name;
        node.meta.labels = {{"pool", dice.once_in(4) ? "b" : "a"}};
        node.boot_id = "now";
        if (dice.once_in(4)) { node.taints = {{"dedicated", "x", "NoExecute"}}; }
        if (dice.once_in(6)) { node.taints.push_back({"node.kubernetes.io/memory-pressure", "", "NoSchedule"}); }
        api::NodeModulesConfig config;
        config.meta.name = name;
        for (const auto& module : objects.modules) {
            put_labels(node, module, dice);
            if (dice.once_in(2)) { config.spec.push_back(random_entry(module, node, dice)); }
            if (dice.once_in(2)) {
                config.status.push_back(dice.once_in(2) && !config.spec.empty() &&
                                                config.spec.back().name == module.meta.name
                                            ? config.spec.back()
                                            : random_entry(module, node, dice));
                config.status.back().boot_id = dice.once_in(4) ? "before" : "now";
            }
            if (dice.once_in(3)) { node.meta.labels[api::label_ready("drivers", module.meta.name)] = ""; }
        }
        objects.nodes.push_back(node);
        if (!dice.once_in(5)) { objects.node_modules_configs.push_back(config); }
    }
    return objects;
}

/// One cluster, its own bookkeeping of worker Pods.
class Walk {
public:
    Walk(api::Objects objects, plan::Options options) : objects_(std::move(objects)), options_(std::move(options)) {
        for (const auto& node : objects_.nodes) {
            const bool has = std::any_of(objects_.node_modules_configs.begin(), objects_.node_modules_configs.end(),
                                         [&](const auto& config) { return config.meta.name == node.meta.name; });
            if (has) { continue; }
            objects_.node_modules_configs.emplace_back();
            objects_.node_modules_configs.back().meta.name = node.meta.name;
        }
    }

    /// One pass over everything; true if anything changed.
    bool pass() {
        changed_ = false;
        for (auto& node : objects_.nodes) {
            auto& config = *std::find_if(objects_.node_modules_configs.begin(), objects_.node_modules_configs.end(),
                                         [&](const auto& one) { return one.meta.name == node.meta.name; });
            for (const auto& module : objects_.modules) { visit(node, config, module); }
        }
        return changed_;
    }

    /// Passes until nothing changes; the number of them.
    int run() {
        for (int count = 1; count < 40; ++count) {
            if (!pass()) { return count; }
        }
        FAIL("the cluster does not settle");
        return 0;
    }

    const api::Objects& objects() const { return objects_; }
    /// 'L' for a loader, 'U' for an unloader that the last pass made, 0 for none.
    char pod(const std::string& node, const std::string& module) const {
        const auto found = pods_.find({node, module});
        return found == pods_.end() ? '\0' : found->second.first;
    }

private:
    using Entries = std::vector<api::NodeModule>;

    static const api::NodeModule* find(const Entries& entries, const std::string& name) {
        return plan::find_entry(entries, "drivers", name);
    }
    void erase(Entries& entries, const std::string& name) {
        changed_ = std::erase_if(entries, [&](const auto& entry) { return entry.name == name; }) > 0 || changed_;
    }
    void put(Entries& entries, api::NodeModule entry) {
        if (const auto* old = find(entries, entry.name); old != nullptr && *old == entry) { return; }
        erase(entries, entry.name);
        entries.push_back(std::move(entry));
        changed_ = true;
    }

    void reconcile_spec(const api::Node& node, api::NodeModulesConfig& config, const api::Module& module,
                        const plan::VersionLabels& labels) {
        using namespace plan;
        if (module.meta.deleting) {
            erase(config.spec, module.meta.name);
            return;
        }
        if (!module.module_loader) { return; }
        const std::string& version = module.module_loader->container.version;
        const auto resolution = resolve(module, node.kernel_version);
        const auto* resolved = std::get_if<Resolved>(&resolution);
        Situation asked;
        asked.eligibility =
            selects(module.selector, node.meta.labels) && tolerates(loader_tolerations(module), node.taints)
                ? Eligibility::eligible
                : Eligibility::not_eligible;
        asked.mapping = std::holds_alternative<MappingFault>(resolution) ? MappingState::fault
                        : resolved != nullptr                            ? MappingState::found
                                                                         : MappingState::none;
        asked.configured = find(config.spec, module.meta.name) != nullptr ? Configured::yes : Configured::no;
        asked.worker = version.empty()                 ? WorkerLabel::unversioned
                       : labels.worker.empty()         ? WorkerLabel::missing
                       : labels.worker == version      ? WorkerLabel::equal
                                                       : WorkerLabel::differs;
        const Want want = decide(asked).want;
        if (want == Want::remove) { erase(config.spec, module.meta.name); }
        if (want != Want::put) { return; }
        for (const auto& pattern : options_.missing_images) {
            if (base::glob_matches(pattern, resolved->config.container_image)) { return; }
        }
        api::NodeModule entry;
        entry.name = module.meta.name;
        entry.namespace_ = "drivers";
        entry.config = resolved->config;
        entry.service_account_name = "default";
        entry.tolerations = loader_tolerations(module);
        entry.version = version;
        put(config.spec, entry);
    }

    void reconcile_status(const api::Node& node, api::NodeModulesConfig& config, const std::string& name) {
        using namespace plan;
        auto& pod = pods_[{node.meta.name, name}];
        if (pod.first == 'L') {
            api::NodeModule loaded = pod.second;
            loaded.boot_id = node.boot_id;
            put(config.status, loaded);
        }
        if (pod.first == 'U') { erase(config.status, name); }
        changed_ = changed_ || pod.first != 0;
        pod = {};
        const auto* spec = find(config.spec, name);
        const auto* status = find(config.status, name);
        const bool rebooted = status != nullptr && status->boot_id != node.boot_id;
        const auto answer = [](bool b) { return b ? Answer::yes : Answer::no; };
        PodStep step = PodStep::nothing;
        if (spec != nullptr) {
            if (!tolerates(spec->tolerations, node.taints)) { return; }
            const bool same = status != nullptr && spec->config == status->config;
            const bool kernel = status != nullptr && spec->config->kernel_version == status->config->kernel_version;
            step = decide(SpecRow{PodState::none, answer(status != nullptr), answer(same), answer(kernel),
                                  answer(rebooted), PodStep::nothing, ""})
                       .step;
        } else if (status != nullptr) {
            step = decide(OrphanRow{answer(rebooted), PodState::none, PodStep::nothing, ""}).step;
        }
        if (step == PodStep::create_loader) { pod = {'L', *spec}; }
        if (step == PodStep::create_unloader) { pod = {'U', {}}; }
        if (step == PodStep::forget) { erase(config.status, name); }
        changed_ = changed_ || pod.first != 0;
    }

    void set_label(api::Node& node, const std::string& key, const std::optional<std::string>& value) {
        const auto found = node.meta.labels.find(key);
        const bool same =
            value ? found != node.meta.labels.end() && found->second == *value : found == node.meta.labels.end();
        if (same) { return; }
        changed_ = true;
        if (value) {
            node.meta.labels[key] = *value;
        } else {
            node.meta.labels.erase(key);
        }
    }

    void visit(api::Node& node, api::NodeModulesConfig& config, const api::Module& module) {
        using namespace plan;
        const std::string& name = module.meta.name;
        const VersionLabels labels =
            version_labels(node.meta.labels, "drivers", name, api::ScheduleKey::schedule_pod);
        const std::string ready = api::label_ready("drivers", name);
        const bool was_ready = node.meta.labels.contains(ready);
        reconcile_spec(node, config, module, labels);
        reconcile_status(node, config, name);
        const auto* spec = find(config.spec, name);
        const auto* status = find(config.status, name);
        if (spec != nullptr && !tolerates(spec->tolerations, node.taints)) {
            set_label(node, ready, std::nullopt);
        } else if (spec == nullptr && status == nullptr) {
            set_label(node, ready, std::nullopt);
        } else if (spec != nullptr && status != nullptr && spec->config == status->config) {
            set_label(node, ready, "");
        }
        const LabelStep step = next_step(labels);
        if (step == LabelStep::add_worker && was_ready) { return; }
        const VersionLabels then = after(step, labels);
        const auto write = [&](const std::string& key, const std::string& value) {
            set_label(node, key, value.empty() ? std::nullopt : std::optional(value));
        };
        write(api::label_version_worker_pod("drivers", name), then.worker);
        write(api::label_version_schedule_pod("drivers", name), then.schedule);
    }

    api::Objects objects_;
    plan::Options options_;
    std::map<std::pair<std::string, std::string>, std::pair<char, api::NodeModule>> pods_;
    bool changed_ = false;
};

void compare(const plan::Verdict& verdict, const api::Objects& end) {
    CAPTURE(verdict.entry.node);
    CAPTURE(verdict.entry.module);
    CAPTURE(verdict.entry.reason);
    CAPTURE(verdict.entry.message);
    const auto& config = *std::find_if(end.node_modules_configs.begin(), end.node_modules_configs.end(),
                                       [&](const auto& one) { return one.meta.name == verdict.entry.node; });
    const auto& node = *std::find_if(end.nodes.begin(), end.nodes.end(),
                                     [&](const auto& one) { return one.meta.name == verdict.entry.node; });
    const auto* spec = plan::find_entry(config.spec, "drivers", verdict.entry.module);
    const auto* status = plan::find_entry(config.status, "drivers", verdict.entry.module);
    CHECK((spec == nullptr ? std::nullopt : std::optional(*spec)) == verdict.wanted);
    CHECK(plan::version_labels(node.meta.labels, "drivers", verdict.entry.module, api::ScheduleKey::schedule_pod) ==
          verdict.labels_after.labels);
    switch (verdict.entry.action) {
        case plan::Action::load:
        case plan::Action::reload:
        case plan::Action::keep:
            REQUIRE(status != nullptr);
            CHECK(verdict.entry.config == status->config);
            break;
        case plan::Action::unload: CHECK(status == nullptr); break;
        case plan::Action::none: CHECK(status == nullptr); break;
        case plan::Action::blocked: break;  // says why; what stays loaded is not part of the line
    }
}

}  // namespace

TEST_SUITE("plan::unit") {
    TEST_CASE("the settled plan is where the passes end") {
        std::map<std::string, int> reasons;
        int longest = 0;
        const unsigned seeds = test::sanitized() ? 300 : 1500;
        for (unsigned seed = 1; seed <= seeds; ++seed) {
            CAPTURE(seed);
            const api::Objects objects = random_cluster(seed);
            plan::Options options;
            if (seed % 3 == 0) { options.missing_images = {"*v2-*"}; }
            Walk walk(objects, options);
            longest = std::max(longest, walk.run());
            for (const auto& verdict : plan::judge_all(objects, options)) {
                compare(verdict, walk.objects());
                ++reasons[verdict.entry.reason];
            }
        }
        CHECK((longest >= 8 || test::sanitized()));
        // The random clusters reach what matters.
        for (const auto* code : {"not-loaded",
                                 "up-to-date",
                                 "config-changed",
                                 "kernel-changed",
                                 "node-rebooted",
                                 "bad-regexp",
                                 "kernel-unparsable",
                                 "no-kernel-mapping",
                                 "image-missing",
                                 "version-changed",
                                 "version-held",
                                 "version-label-missing",
                                 "version-label-differs",
                                 "version-labels-stuck",
                                 "version-relabelled",
                                 "entry-for-other-kernel",
                                 "selector-mismatch",
                                 "taint-not-tolerated",
                                 "module-deleting",
                                 "no-module-loader"}) {
            CAPTURE(code);
            CHECK((reasons[code] > 0 || test::sanitized()));
        }
    }

    TEST_CASE("one pass of --next is the first pass of the walk") {
        for (unsigned seed = 1; seed <= 300; ++seed) {
            CAPTURE(seed);
            const api::Objects objects = random_cluster(seed);
            plan::Options next;
            next.next = true;
            Walk walk(objects, next);
            walk.pass();
            for (const auto& verdict : plan::judge_all(objects, next)) {
                CAPTURE(verdict.entry.node);
                CAPTURE(verdict.entry.module);
                CAPTURE(verdict.entry.reason);
                if (verdict.entry.action == plan::Action::blocked) {
                    continue;
                }  // says why, whatever is done meanwhile
                const char pod = walk.pod(verdict.entry.node, verdict.entry.module);
                CHECK((verdict.entry.action == plan::Action::load) == (pod == 'L'));
                CHECK((verdict.entry.action == plan::Action::unload) == (pod == 'U'));
                CHECK(verdict.entry.action != plan::Action::reload);
            }
        }
    }

    TEST_CASE("the same plan in any order of the objects") {
        for (unsigned seed = 1; seed <= 200; ++seed) {
            CAPTURE(seed);
            const api::Objects objects = random_cluster(seed);
            api::Objects shuffled = objects;
            std::mt19937 engine(seed);
            std::shuffle(shuffled.nodes.begin(), shuffled.nodes.end(), engine);
            std::shuffle(shuffled.modules.begin(), shuffled.modules.end(), engine);
            std::shuffle(shuffled.node_modules_configs.begin(), shuffled.node_modules_configs.end(), engine);
            for (auto& config : shuffled.node_modules_configs) {
                std::shuffle(config.spec.begin(), config.spec.end(), engine);
                std::shuffle(config.status.begin(), config.status.end(), engine);
            }
            const auto one = plan::make_plan(objects, {});
            const auto other = plan::make_plan(shuffled, {});
            CHECK(one.diagnostics == other.diagnostics);
            REQUIRE(one.entries.size() == other.entries.size());
            for (std::size_t i = 0; i < one.entries.size(); ++i) {
                const auto& [a, b] = std::tie(one.entries[i], other.entries[i]);
                CHECK(std::tie(a.node, a.module, a.version, a.image, a.action, a.reason, a.message, a.config) ==
                      std::tie(b.node, b.module, b.version, b.image, b.action, b.reason, b.message, b.config));
            }
        }
    }
}
