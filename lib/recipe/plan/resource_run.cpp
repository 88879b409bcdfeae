// SPDX-License-Identifier: Apache-2.0
// Follows controllers/resources.go of the Special Resource Operator.
#include "recipe/plan/resource_run.hpp"

#include <algorithm>
#include <map>
#include <set>

#include <fmt/format.h>

#include "recipe/chart/render.hpp"
#include "recipe/plan/manifest_parts.hpp"
#include "recipe/plan/object_names.hpp"
#include "recipe/plan/objects.hpp"
#include "recipe/plan/overwrite.hpp"
#include "recipe/plan/resource_chart.hpp"
#include "recipe/plan/selectors.hpp"
#include "recipe/plan/states.hpp"
#include "recipe/resource/expand.hpp"
#include "recipe/resource/release_kinds.hpp"
#include "recipe/resource/value_path.hpp"
#include "recipe/resource/values.hpp"

namespace kmm::recipe::plan {

using chart::Manifest;
using tmpl::Map;
using tmpl::Value;

namespace {

/// An object as it came out of one run for one kernel.
struct Made {
    Value object;
    Position origin;
    bool affine = false;
};

/// One resource at work.
class ResourceRun {
public:
    ResourceRun(const SpecialResource& resource, chart::Chart chart, const Facts& facts, const RenderOptions& options,
                RenderedRecipes& out)
        : resource_(resource),
          whole_(chart),
          facts_(facts),
          options_(options),
          out_(out),
          kernels_(select_kernels(facts, resource, options.operator_only)),
          states_(recipe_states(std::move(chart))),
          chart_(resource_, whole_, facts_, options_, notice_) {
        init(options);
    }

    void init(const RenderOptions& options) {
        context_.owner = &resource_;
        context_.facts = &facts_;
        context_.owner_uid = options.owner_uid.empty() ? resource_.uid : options.owner_uid;
        context_.operator_only = options.operator_only;
        context_.all_builds = options.all_builds;
    }

    /// For each release in place of each kernel: no first pass, and what is no state comes with each state.
    ResourceRun(const SpecialResourceModule& module, chart::Chart chart, const Facts& facts,
                const RenderOptions& options, RenderedRecipes& out)
        : resource_(module.resource),
          whole_(chart),
          facts_(facts),
          options_(options),
          out_(out),
          states_(recipe_states(std::move(chart))),
          chart_(resource_, whole_, facts_, options_, notice_) {
        init(options);
        context_.owner_kind = "SpecialResourceModule";
    }

    void run_module(const SpecialResourceModule& module, const std::vector<Release>& releases) {
        Expanded& own = expanded_[""] = Expanded{resource_.set(), resource_.name_space, {}, Value::nil()};
        make_namespace(own);
        RecipeState others = std::move(states_.back());
        states_.pop_back();
        if (states_.empty() && options_.operator_only) { return; }
        if (states_.empty()) {
            warn("sro-differs",
                 fmt::format("{}: the chart has no states; the operator makes nothing then", resource_.name),
                 Position{whole_.place, 0, 0}, "name a file of templates/ NNNN-NAME.yaml", Severity::note);
            states_.push_back(others);
        }
        // The operator writes its status after each release, and templates of the next one see it.
        ModuleView view{options_.operator_only, context_.owner_uid, {}};
        for (const auto& release : releases) {
            const Value values = release_values(module, release, view);
            if (options_.operator_only) { view.complete.push_back(release.toolkit_image); }
            for (const auto& state : states_) {
                RecipeState step = state;
                if (state.name != k_stateless) { join_templates(step.chart, others.chart); }
                with_context(
                    [&] {
                        return fmt::format("{}: state {}: release {}", resource_.name, state.name, release.version);
                    },
                    [&] { run_release(step, release, own, values); });
            }
        }
    }

    void run() {
        for (const auto& kernel : kernels_.all) {
            if (options_.operator_only && kernel.kernel != kernels_.last) { continue; }
            const Value values = runtime(resource_, kernel, Root::resource);
            Expanded& made = expanded_[kernel.kernel] =
                expand_resource(resource_, values, options_.operator_only, notice_);
            if (resource_.set_giver == nullptr) { continue; }
            const Value giver = runtime(*resource_.set_giver, kernel, Root::resource);
            made.set = expand_resource(resource_, giver, options_.operator_only, nullptr).set;
        }
        note_frozen_set();
        note_unread_source(resource_, expanded(kernels_.last).spec, facts_, notice_);
        make_namespace(expanded(kernels_.last));
        for (const auto& state : states_) {
            with_context([&] { return fmt::format("{}: state {}", resource_.name, state.name); },
                         [&] { options_.operator_only ? run_as_operator(state) : run_state(state); });
        }
        if (!options_.operator_only) { note_lost_selectors(out_.objects, renamed_, notice_); }
    }

private:
    const SpecialResource& resource_;
    chart::Chart whole_;
    const Facts& facts_;
    const RenderOptions& options_;
    RenderedRecipes& out_;
    RecipeKernels kernels_;
    std::vector<RecipeState> states_;
    std::map<std::string, Expanded> expanded_;  ///< by kernel
    std::map<std::string, Value> values_;       ///< of charts, by kernel: all states have the same
    std::function<void(Diagnostic)> notice_ = [this](Diagnostic finding) {
        out_.findings.push_back(std::move(finding));
    };
    ResourceChart chart_;
    ObjectContext context_;
    /// identity -> index of what was made for this resource, and the kernel that it was made for
    std::map<std::string, Copy> applied_;
    std::string release_;  ///< the one that a SpecialResourceModule is rendered for
    std::map<std::string, std::string> renamed_;  ///< label app that a copy had -> whose copy
    std::set<std::string> hooks_done_;
    bool definitions_done_ = false;

    [[nodiscard]] const Expanded& expanded(const std::string& kernel) const {
        return expanded_.at(options_.operator_only ? kernels_.last : kernel);
    }

    /// Runtime values; the resource has the uid of --owned-by where its document says none.
    Value runtime(const SpecialResource& resource, const RecipeKernel& kernel, Root root) const {
        Value made = runtime_values(facts_, resource, kernels_, kernel, root, options_.operator_only);
        if (!context_.owner_uid.empty() && &resource == &resource_) {
            Value& whole = (*made.shared_map())["specialresource"];
            Value& metadata = (*whole.shared_map())["metadata"];
            if (metadata.is_map()) { metadata.shared_map()->try_emplace("uid", Value::string(context_.owner_uid)); }
        }
        return made;
    }

    void warn(std::string code, std::string message, Position place, std::string hint,
              Severity severity = Severity::warning) {
        out_.findings.push_back(
            {severity, std::move(code), std::move(message), std::move(place), std::move(hint), Exit::data});
    }

    /// The operator expands spec.set for one kernel alone.
    void note_frozen_set() {
        if (options_.operator_only || kernels_.all.size() < 2) { return; }
        const auto& last = expanded_.at(kernels_.last);
        const bool same = std::all_of(expanded_.begin(), expanded_.end(),
                                      [&](const auto& one) { return tmpl::deep_equal(one.second.set, last.set); });
        if (!same) {
            warn("sro-differs",
                 fmt::format("{}: spec.set is expanded for each kernel; the operator takes {} for all", resource_.name,
                             kernels_.last),
                 resource_.place("spec.set"), k_operator_hint, Severity::note);
        }
    }

    void run_release(const RecipeState& step, const Release& release, const Expanded& own, const Value& values) {
        context_.kernel = release.kernel;
        context_.os = release.os;
        release_ = release.version;
        context_.expanded = &own;
        auto rendered = opened(chart_.render(step, own, chart_.values(own, values)));
        put_definitions(step.name, rendered);
        put_hooks(step.name, rendered, "pre-install");
        for (const auto& manifest : in_order(rendered)) {
            if (auto made = make(manifest)) {
                put(step.name, made->affine ? release.kernel : "", std::move(made->object), made->origin);
            }
        }
        put_hooks(step.name, rendered, "post-install");
        if (!options_.operator_only) { warn_of_hooks(rendered, notice_); }
    }

    void make_namespace(const Expanded& own) {
        const Value object = Value::map(
            {{"apiVersion", Value::string("v1")},
             {"kind", Value::string("Namespace")},
             {"metadata", Value::map({{"name", Value::string(own.name_space)},
                                      {"annotations",
                                       Value::map({{"specialresource.openshift.io/wait", Value::string("true")},
                                                   {"openshift.io/cluster-monitoring", Value::string("true")}})}})}});
        context_.is_hook = true;
        context_.expanded = &own;
        const Position place = resource_.place("spec.namespace");
        if (auto made = adapt_object(object, context_, place, notice_)) {
            put("(namespace)", "", std::move(*made), place);
        }
        context_.is_hook = false;
    }

    void put(const std::string& state, const std::string& kernel, Value object, const Position& origin) {
        const std::string key = identity(object);
        const auto known = applied_.find(key);
        if (known != applied_.end() && !options_.operator_only) {
            const RecipeObject& before = out_.objects[known->second.object];
            if (tmpl::deep_equal(before.object, object)) { return; }
            const Copy made{out_.objects.size(), context_.kernel, release_};
            auto [message, hint] = overwrite_texts(shown(object), before, known->second, made, origin);
            warn("recipe-overwrite", std::move(message), origin, std::move(hint));
        }
        applied_[key] = {out_.objects.size(), context_.kernel, release_};
        out_.objects.push_back({resource_.name, state, kernel, std::move(object), origin});
    }

    chart::Rendered render(const RecipeState& state, const RecipeKernel& kernel) {
        context_.kernel = kernel.kernel;
        context_.os = kernel.system.os;
        auto known = values_.find(kernel.kernel);
        if (known == values_.end()) {
            Value all = runtime(resource_, kernel, Root::charts);
            // Its settings are texts of the resource itself: it has no spec.set.
            if (resource_.is_built_in()) {
                (*(*all.shared_map())["specialresource"].shared_map())["spec"] = expanded(kernel.kernel).spec;
            }
            known = values_.emplace(kernel.kernel, chart_.values(expanded(kernel.kernel), all)).first;
        }
        context_.expanded = &expanded(kernel.kernel);
        return opened(chart_.render(state, *context_.expanded, known->second));
    }

    /// Hooks and definitions. The operator gives them no kernel: the name ends with the hash of none.
    void put_all(const std::string& state, const std::vector<Manifest>& manifests, bool has_kernel) {
        ObjectContext whole = context_;
        context_.is_hook = true;
        if (!has_kernel || options_.operator_only) { context_.kernel = context_.os = ""; }
        for (const auto& manifest : manifests) {
            if (auto made = make(manifest)) {
                put(state, made->affine ? context_.kernel : "", std::move(made->object), made->origin);
            }
        }
        context_ = std::move(whole);
    }

    void put_definitions(const std::string& state, const chart::Rendered& rendered) {
        if (options_.operator_only) {
            put_all(state, operator_definitions(rendered), false);
        } else if (!definitions_done_) {
            definitions_done_ = true;
            put_all(state, definitions(rendered), false);
        }
    }

    std::optional<Made> make(const Manifest& manifest) {
        // A hook of two events is made twice.
        Made made{context_.is_hook ? tmpl::deep_copy(manifest.object) : manifest.object, place_of(manifest), false};
        if (!options_.operator_only && made.object.is_nil()) { return std::nullopt; }
        if (options_.operator_only && manifest.content.starts_with("---")) { made.object = Value::nil(); }
        const bool may_be_affine = options_.operator_only ? !context_.is_hook : !context_.kernel.empty();
        made.affine = may_be_affine && is_kernel_affine(made.object, options_.operator_only);
        const auto app = text_at(made.object, {"spec", "template", "metadata", "labels", "app"});
        if (made.affine && !app.empty()) { renamed_.emplace(app, shown(made.object)); }
        auto object = adapt_object(made.object, context_, made.origin, notice_);
        if (!object) { return std::nullopt; }
        made.object = std::move(*object);
        return made;
    }

    /// The operator takes a List for one object, which no API server takes.
    chart::Rendered opened(chart::Rendered rendered) const {
        if (!options_.operator_only) {
            open_lists(rendered.objects);
            open_lists(rendered.hooks);
        }
        return rendered;
    }

    std::vector<Manifest> in_order(chart::Rendered& rendered) const {
        std::stable_sort(rendered.objects.begin(), rendered.objects.end(),
                         [this](const Manifest& a, const Manifest& b) {
                             return operator_installs_before(a.kind, b.kind, options_.operator_only);
                         });
        return rendered.objects;
    }

    void note_hooks(const std::string& state, const std::string& event, const Position& place) {
        if (hooks_done_.insert(event).second) { return; }
        warn("sro-differs",
             fmt::format("{}: {} hooks of {} are run; the operator runs those of the first state that has any",
                         resource_.name, event, state),
             place, k_operator_hint, Severity::note);
    }

    void put_hooks(const std::string& state, const chart::Rendered& rendered, const std::string& event) {
        auto hooks = hooks_of(rendered, event);
        // The operator reads a hook alone: a separator in front of it makes no empty document.
        for (auto& hook : hooks) {
            if (hook.content.starts_with("---")) { hook.content.erase(0, 3); }
        }
        // The operator keeps a marker for each namespace and runs no hooks of that event any more.
        if (hooks.empty() || (options_.operator_only && hooks_done_.contains(event))) { return; }
        if (!options_.operator_only) { note_hooks(state, event, place_of(hooks.front())); }
        put_all(state, hooks, true);
        if (!options_.operator_only) { return; }
        hooks_done_.insert(event);  // not if one of them failed
        Map metadata{{"name", Value::string("sh.helm.hooks." + event)},
                     {"namespace", Value::string(context_.expanded->name_space)}};
        if (!context_.owner_uid.empty()) {
            metadata["ownerReferences"] =
                Value::list({Value::map({{"apiVersion", Value::string(std::string(k_group_version))},
                                         {"kind", Value::string("SpecialResource")},  // of each owner's marker
                                         {"name", Value::string(resource_.name)},
                                         {"uid", Value::string(context_.owner_uid)}})});
        }
        const Value marker = Value::map({{"apiVersion", Value::string("v1")},
                                         {"kind", Value::string("ConfigMap")},
                                         {"metadata", Value::map(std::move(metadata))}});
        put(state, "", marker, place_of(hooks.front()));
    }

    void run_as_operator(const RecipeState& state) {
        const bool is_last = state.name == k_stateless;
        const bool each = state.affine_text && !is_last;
        std::size_t done = 0;
        for (const auto& kernel : kernels_.all) {
            if (!each && kernel.kernel != kernels_.last) { continue; }
            ++done;
            try {
                auto rendered = render(state, kernel);
                put_definitions(state.name, rendered);
                put_hooks(state.name, rendered, "pre-install");
                for (const auto& manifest : in_order(rendered)) {
                    if (auto made = make(manifest)) {
                        put(state.name, each || made->affine ? kernel.kernel : "", std::move(made->object),
                            made->origin);
                    }
                }
                put_hooks(state.name, rendered, "post-install");
            } catch (const Error& error) {
                // The fault of the last of several kernels counts, and a state that is run once is never the last of
                // several.
                if (is_last || done == kernels_.all.size()) { throw; }
                warn("sro-ignores",
                     fmt::format("{}: state {}, kernel {}: {}; the operator goes on as if it was done", resource_.name,
                                 state.name, kernel.kernel, error.message()),
                     error.position().value_or(resource_.origin), error.hint());
            }
        }
    }

    void run_state(const RecipeState& state) {
        std::map<std::string, std::vector<Made>> by_kernel;
        std::map<std::string, chart::Rendered> rendered;
        bool any_affine = false, any = false;
        for (const auto& kernel : kernels_.all) {
            with_context([&] { return "kernel " + kernel.kernel; }, [&] {
                auto& one = rendered[kernel.kernel] = render(state, kernel);
                put_definitions(state.name, one);
                for (const auto& manifest : in_order(one)) {
                    any = true;
                    if (auto made = make(manifest)) {
                        any_affine = any_affine || made->affine;
                        by_kernel[kernel.kernel].push_back(std::move(*made));
                    }
                }
            });
        }
        context_.expanded = &expanded(kernels_.last);
        const auto& last = rendered[kernels_.last];
        run_hooks(state, rendered, "pre-install");
        any_affine ? put_copies(state, by_kernel) : put_once(state, by_kernel);
        run_hooks(state, rendered, "post-install");
        warn_of_hooks(last, notice_);
        if (!any && state.name != k_stateless && last.hooks.empty()) {
            warn("empty-state", fmt::format("{}: state {} renders no object", resource_.name, state.name),
                 Position{fmt::format("{}/templates/{}", whole_.place, state.name), 0, 0},
                 "is a condition around it never true?");
        }
    }

    /// For each kernel, as the objects are: a hook may be the copy of one, too.
    void run_hooks(const RecipeState& state, const std::map<std::string, chart::Rendered>& rendered,
                   const std::string& event) {
        std::map<std::string, std::vector<Made>> by_kernel;
        bool any_affine = false;
        ObjectContext whole = context_;
        context_.is_hook = true;
        for (const auto& kernel : kernels_.all) {
            context_.kernel = kernel.kernel;
            context_.os = kernel.system.os;
            context_.expanded = &expanded(kernel.kernel);
            with_context([&] { return "kernel " + kernel.kernel; }, [&] {
                for (const auto& hook : hooks_of(rendered.at(kernel.kernel), event)) {
                    auto made = make(hook);
                    if (!made) { continue; }
                    any_affine = any_affine || made->affine;
                    by_kernel[kernel.kernel].push_back(std::move(*made));
                }
            });
        }
        context_ = std::move(whole);
        if (by_kernel.empty()) { return; }
        const Position& place = by_kernel.begin()->second.front().origin;
        note_hooks(state.name, event, place);
        if (any_affine) {
            warn("sro-differs",
                 fmt::format("{}: {} hooks of {} have a copy for each kernel; the operator makes one of no kernel",
                             resource_.name, event, state.name),
                 place, k_operator_hint, Severity::note);
        }
        any_affine ? put_copies(state, by_kernel) : put_once(state, by_kernel);
    }

    void put_copies(const RecipeState& state, std::map<std::string, std::vector<Made>>& by_kernel) {
        std::map<std::string, std::pair<Value, std::string>> shared;
        for (const auto& kernel : kernels_.all) {
            for (auto& made : by_kernel[kernel.kernel]) {
                if (made.affine) {
                    put(state.name, kernel.kernel, std::move(made.object), made.origin);
                    continue;
                }
                const auto [known, is_new] = shared.try_emplace(identity(made.object), made.object, kernel.kernel);
                if (is_new) {
                    put(state.name, "", std::move(made.object), made.origin);
                } else if (!tmpl::deep_equal(known->second.first, made.object)) {
                    throw Error(Exit::data, "recipe-duplicate",
                                copies_differ(shown(made.object), known->second.second, kernel.kernel))
                        .at(made.origin)
                        .hint(
                            "annotate it with specialresource.openshift.io/kernel-affine: \"true\", or move it to "
                            "another state; the operator lets one replace the other");
                }
            }
        }
        if (!state.affine_text && kernels_.all.size() > 1) {
            warn("sro-differs",
                 fmt::format("{}: {} has a copy for each kernel; the operator sees the annotation kernel-affine on a "
                             "line of its own alone, and never in files without a state",
                             resource_.name, state.name),
                 Position{whole_.place, 0, 0}, k_operator_hint, Severity::note);
        }
    }

    void put_once(const RecipeState& state, std::map<std::string, std::vector<Made>>& by_kernel) {
        auto& last = by_kernel[kernels_.last];
        for (auto& [kernel, objects] : by_kernel) {
            const bool same =
                objects.size() == last.size() &&
                std::equal(objects.begin(), objects.end(), last.begin(),
                           [](const Made& a, const Made& b) { return tmpl::deep_equal(a.object, b.object); });
            if (same) { continue; }
            const auto differing = std::find_if(last.begin(), last.end(), [&, list = &objects](const Made& made) {
                return std::none_of(list->begin(), list->end(),
                                    [&](const Made& other) { return tmpl::deep_equal(made.object, other.object); });
            });
            warn("kernel-dependent",
                 fmt::format("{}: {} is made for kernel {} alone, and differs for {}", resource_.name,
                             differing == last.end() ? state.name : shown(differing->object), kernels_.last, kernel),
                 differing == last.end() ? Position{whole_.place, 0, 0} : differing->origin,
                 "annotate it with specialresource.openshift.io/kernel-affine: \"true\"");
            break;
        }
        for (auto& made : last) { put(state.name, "", std::move(made.object), made.origin); }
    }
};

}  // namespace

void render_module(const SpecialResourceModule& module, const std::vector<Release>& releases, chart::Chart chart,
                   const Facts& facts, const RenderOptions& options, RenderedRecipes& out) {
    ResourceRun(module, std::move(chart), facts, options, out).run_module(module, releases);
}

void render_resource(const SpecialResource& resource, chart::Chart chart, const Facts& facts,
                     const RenderOptions& options, RenderedRecipes& out) {
    ResourceRun(resource, std::move(chart), facts, options, out).run();
}

}  // namespace kmm::recipe::plan
