// SPDX-License-Identifier: Apache-2.0
#include "plan/fleet/why.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "api/labels.hpp"
#include "api/names.hpp"
#include "base/counted.hpp"
#include "base/kernel_name.hpp"
#include "plan/codes/reasons.hpp"
#include "plan/decide/causes.hpp"
#include "plan/decide/policy.hpp"
#include "plan/kmm/eligible.hpp"
#include "plan/kmm/regexp.hpp"
#include "plan/kmm/resolve.hpp"
#include "plan/kmm/template.hpp"

namespace kmm::plan {

namespace {

class Explainer {
public:
    Explainer(const NodeView& view, const api::Module& module, Options options,
              std::span<const api::ConfigMap> config_maps)
        : node_(*view.node), module_(module), resolver_(module) {
        why_.about_next = options.next;
        options.next = false;
        settled_ = judge(view, resolver_, options);
        options.next = true;
        next_ = judge(view, resolver_, options);
        causes_ = causes(view, module, settled_, config_maps);
    }

    Why run() {
        selector();
        taints();
        if (module_.module_loader) {
            mappings();
            image_template();
            image();
            labels();
        }
        policy();
        observed();
        decision();
        changes();
        why_.settled = settled_.entry;
        why_.next = next_.entry;
        return std::move(why_);
    }

private:
    void line(const char* topic, Mark mark, std::string text) {
        why_.lines.push_back(WhyLine{topic, mark, std::move(text)});
    }

    void selector() {
        if (module_.selector.empty()) { line("selector", Mark::passed, "the selector is empty and takes every node"); }
        for (const auto& [key, wanted] : module_.selector) {
            const auto found = node_.meta.labels.find(key);
            if (found == node_.meta.labels.end()) {
                line("selector", Mark::failed, fmt::format("{}={}: the node has no such label", key, wanted));
            } else if (found->second != wanted) {
                line("selector", Mark::failed, fmt::format("{}={}: the node has \"{}\"", key, wanted, found->second));
            } else {
                line("selector", Mark::passed, fmt::format("{}={}", key, wanted));
            }
        }
    }

    void taints() {
        if (node_.taints.empty()) { line("taint", Mark::passed, "the node has no taints"); }
        const auto tolerations = loader_tolerations(module_);
        for (const auto& taint : node_.taints) {
            const std::string text = taint.value.empty()
                                         ? fmt::format("{}:{}", taint.key, taint.effect)
                                         : fmt::format("{}={}:{}", taint.key, taint.value, taint.effect);
            if (taint.effect != "NoSchedule" && taint.effect != "NoExecute") {
                line("taint", Mark::passed, text + " never keeps a module away");
            } else if (tolerates(tolerations, {taint})) {
                line("taint", Mark::passed, text + " is tolerated");
            } else {
                line("taint", Mark::failed, text + " is not tolerated");
            }
        }
    }

    void mappings() {
        if (node_.kernel_version.empty()) {
            line("mapping", Mark::failed, "the node does not say which kernel it runs");
            return;
        }
        if (!base::is_kernel_name(node_.kernel_version)) {
            line("mapping", Mark::failed,
                 fmt::format("kernel version \"{}\" is not one that a kernel can have", node_.kernel_version));
            return;
        }
        const std::string kernel = api::trim_kernel(node_.kernel_version);
        if (kernel != node_.kernel_version) {
            line("mapping", Mark::fact, fmt::format("kernel {}, matched as {}", node_.kernel_version, kernel));
        } else {
            line("mapping", Mark::fact, fmt::format("kernel {}", kernel));
        }
        const auto attempts = resolver_.attempts(node_.kernel_version);
        for (const auto& attempt : attempts) {
            const std::string what =
                fmt::format("[{}] {} {}", attempt.index, attempt.literal ? "literal" : "regexp", attempt.matcher);
            if (!attempt.fault.empty()) {
                line("mapping", Mark::failed, fmt::format("{}: {}", what, attempt.fault));
            } else if (attempt.matched) {
                line("mapping", Mark::passed, what + (attempt.literal ? " is equal" : " is found in it"));
            } else {
                line("mapping", Mark::failed, what + (attempt.literal ? " is not equal" : " is not found in it"));
                plus_line(attempt, kernel);
            }
        }
        const std::size_t count = module_.module_loader->container.kernel_mappings.size();
        const std::size_t tried = attempts.empty() ? 0 : attempts.back().index + 1;
        if (tried < count) {
            line("mapping", Mark::fact,
                 base::counted(count - tried, "later mapping") + " not tried: the first match wins");
        }
    }

    /// A '+' of the kernel that KMM drops, or that the regexp has as a repetition.
    void plus_line(const Attempt& attempt, const std::string& kernel) {
        const std::string& real = node_.kernel_version;
        if (kernel != real && (attempt.literal ? attempt.matcher == real : Regexp(attempt.matcher).search(real))) {
            line("mapping", Mark::failed,
                 attempt.literal ? "KMM drops the trailing '+' first; the literal equals the whole version"
                                 : "KMM drops the trailing '+' first; the regexp is found in the whole version");
            return;
        }
        if (attempt.literal || kernel.find('+') == std::string::npos) { return; }
        const std::string meant = with_literal_plus(attempt.matcher);
        if (meant == attempt.matcher || !Regexp(meant).search(kernel)) { return; }
        line("mapping", Mark::failed, fmt::format("'+' repeats what stands before it; {} is found in it", meant));
    }

    void image_template() {
        if (!settled_.entry.mapping_index) {
            if (const auto* bad = std::get_if<MappingFault>(&settled_.resolution)) {
                line("template", Mark::failed, bad->diagnostic.message);
            }
            return;
        }
        const auto& container = module_.module_loader->container;
        const auto& mapping = container.kernel_mappings[*settled_.entry.mapping_index];
        const bool own = !mapping.container_image.empty();
        const std::string& text = own ? mapping.container_image : container.container_image;
        line("template", Mark::fact, fmt::format("{} (from the {})", text, own ? "mapping" : "container"));
        const auto variables =
            template_variables(api::trim_kernel(node_.kernel_version), module_.meta.name, module_.meta.namespace_);
        if (!variables) { return; }
        const Expansion expansion = expand(text, *variables);
        for (const auto& use : expansion.uses) {
            line("template", Mark::fact,
                 fmt::format("{} = {}", use.name, use.value.value_or("(unset, has a default)")));
        }
        line("template", Mark::fact, fmt::format("image {}", expansion.text));
    }

    void image() {
        for (const auto& cause : causes_) {
            if (cause.topic == "image") { line("image", Mark::failed, cause.text); }
        }
        if (!settled_.image_missing) { return; }
        const auto& resolved = std::get<Resolved>(settled_.resolution);
        line("image", Mark::failed, resolved.config.container_image + " is not in its registry");
        if (resolved.build || resolved.sign) {
            line("image", Mark::fact, fmt::format("KMM will {} it first", resolved.build ? "build" : "sign"));
        }
    }

    void labels() {
        const std::string& version = module_.module_loader->container.version;
        if (version.empty()) {
            line("label", Mark::passed, "the Module has no version: version labels do not count");
            return;
        }
        line("label", Mark::fact, fmt::format("the Module has version {}", version));
        const VersionLabels& now = settled_.labels_before;
        const auto label_line = [this](std::string_view name, const std::string& text) {
            line("label", Mark::fact, fmt::format("{} {}", name, text.empty() ? "is missing" : "is " + text));
        };
        label_line("version-module", now.module);
        label_line("version-worker-pod", now.worker);
        label_line(api::to_string(settled_.schedule_key), now.schedule);
        ignored_label();
        for (const auto step : settled_.labels_after.steps) {
            line("label", Mark::fact, fmt::format("KMM will {}", to_string(step, settled_.schedule_key)));
        }
        const VersionLabels& then = settled_.labels_after.labels;
        if (settled_.labels_after.stuck) {
            const LabelRow& row = label_row(then);
            line("label", Mark::failed, fmt::format("{} {}: {}", row.name, to_string(row), row.text));
            line("label", Mark::failed, "KMM has no step for this combination and leaves it as it is");
        }
        line("label", then.worker == version ? Mark::passed : Mark::failed,
             fmt::format("settled version-worker-pod {}, wanted {}",
                         then.worker.empty() ? "is missing" : "is " + then.worker, version));
    }

    void ignored_label() {
        const auto other = settled_.schedule_key == api::ScheduleKey::schedule_pod ? api::ScheduleKey::device_plugin
                                                                                   : api::ScheduleKey::schedule_pod;
        const auto found = node_.meta.labels.find(
            api::label_version_schedule(other, module_.meta.namespace_, module_.meta.name));
        if (found == node_.meta.labels.end()) { return; }
        line("label", Mark::fact,
             fmt::format("{} is {}: of another KMM version, does not count", api::to_string(other), found->second));
    }

    void policy() {
        if (settled_.policy == UnloadPolicy::always) { return; }
        line("policy", Mark::fact, fmt::format("{} is {}", k_annotation_unload_policy, to_string(settled_.policy)));
    }

    void observe(const char* what, const std::optional<api::NodeModule>& entry) {
        if (!entry) {
            line("observed", Mark::fact, fmt::format("{}: no entry", what));
            return;
        }
        line("observed", Mark::fact,
             fmt::format("{}: {}version {}, kernel {}{}", what, entry->config->container_image + ", ",
                         entry->version.empty() ? "none" : entry->version, entry->config->kernel_version,
                         entry->boot_id.empty() ? "" : ", boot " + entry->boot_id));
    }

    void observed() {
        observe("configured", settled_.observed_spec);
        observe("loaded", settled_.observed_status);
        if (!settled_.worker_pod.empty()) { line("observed", Mark::fact, "worker Pod " + settled_.worker_pod); }
        for (const auto& cause : causes_) {
            if (cause.topic == "observed") { line("observed", Mark::failed, cause.text); }
        }
        line("observed", Mark::fact, fmt::format("node boot {}", node_.boot_id.empty() ? "unknown" : node_.boot_id));
    }

    std::string_view module_version() const {
        return module_.module_loader ? std::string_view(module_.module_loader->container.version) : std::string_view();
    }

    const Verdict& verdict() const { return why_.about_next ? next_ : settled_; }

    void decision() {
        const Verdict& chosen = verdict();
        if (chosen.row != nullptr) {
            line("decision", Mark::fact,
                 chosen.row->number == 0 ? std::string(chosen.row->text)
                                         : fmt::format("row {}: {}", chosen.row->number, chosen.row->text));
        }
        if (chosen.observed_status && !chosen.observed_spec && !chosen.wanted) {
            line("decision", Mark::fact, "what is loaded but not configured is unloaded");
        }
        line("decision", Mark::fact, chosen.entry.message);
    }

    void change(std::string text) { why_.changes.push_back(std::move(text)); }

    void selector_changes(const std::string& also) {
        for (const auto& [key, wanted] : module_.selector) {
            const auto found = node_.meta.labels.find(key);
            if (found == node_.meta.labels.end() || found->second != wanted) {
                change(fmt::format("{}label node {} with {}={}", also, node_.meta.name, key, wanted));
            }
        }
    }

    void taint_changes(const api::Taint& taint, const std::string& also) {
        change(fmt::format("{}remove taint {}:{} from node {}{}", also, taint.key, taint.effect, node_.meta.name,
                           taint.key == api::k_taint_unschedulable ? " (kubectl uncordon)" : ""));
        change(fmt::format("or add a toleration for {} to spec.tolerations of the Module", taint.key));
    }

    void mapping_change(const std::string& also) {
        change(fmt::format("{}add a kernel mapping that matches {} to the Module", also,
                           api::trim_kernel(node_.kernel_version)));
    }

    void version_change(const std::string& also) {
        change(fmt::format("{}label node {} with {}={}", also, node_.meta.name,
                           api::label_version_module(module_.meta.namespace_, module_.meta.name), module_version()));
    }

    /// What stands in the way besides `code`, which is only the first that the decision met.
    void other_obstacles(const std::string& code) {
        const bool is_version = code == "version-held" || code == "version-label-differs" ||
                                code == "version-label-missing" || code == "version-labels-stuck";
        if (code != "selector-mismatch" && code != "taint-not-tolerated" && code != "no-kernel-mapping" &&
            !is_version) {
            return;
        }
        const std::string also = "also: ";
        if (code != "selector-mismatch") { selector_changes(also); }
        const auto tolerations = loader_tolerations(module_);
        for (const auto& taint : node_.taints) {
            const bool is_told = code == "taint-not-tolerated" && taint == settled_.blocking;
            if ((taint.effect == "NoSchedule" || taint.effect == "NoExecute") && !is_told &&
                !tolerates(tolerations, {taint})) {
                taint_changes(taint, also);
            }
        }
        if (!module_.module_loader) { return; }
        if (code != "no-kernel-mapping" && base::is_kernel_name(node_.kernel_version)) {
            const auto attempts = resolver_.attempts(node_.kernel_version);
            if (std::none_of(attempts.begin(), attempts.end(),
                             [](const auto& attempt) { return attempt.matched || !attempt.fault.empty(); })) {
                mapping_change(also);
            }
        }
        if (!is_version && !module_version().empty() && settled_.labels_before.module != module_version()) {
            version_change(also);
        }
    }

    void changes() {
        std::vector<std::string> texts;
        for (const auto& cause : causes_) { texts.insert(texts.end(), cause.changes.begin(), cause.changes.end()); }
        // The end of another text is said there: "if the registry is private, set ...".
        const auto says = [](const std::string& text, const std::string& other) {
            return text != other && other.ends_with(text);
        };
        for (const auto& text : texts) {
            const bool is_said =
                std::any_of(texts.begin(), texts.end(), [&](const auto& other) { return says(text, other); });
            if (!is_said && std::find(why_.changes.begin(), why_.changes.end(), text) == why_.changes.end()) {
                change(text);
            }
        }
        first_changes();
        other_obstacles(verdict().entry.reason);
    }

    void first_changes() {
        const Entry& entry = verdict().entry;
        const std::string& code = entry.reason;
        const std::string& name = node_.meta.name;
        if (settled_.labels_after.stuck && !module_version().empty()) {
            change(fmt::format("kubectl label node {} {}-", name,
                               api::label_version_schedule(settled_.schedule_key, module_.meta.namespace_,
                                                           module_.meta.name)));
        }
        if (code == "selector-mismatch") {
            selector_changes("");
        } else if (code == "taint-not-tolerated") {
            taint_changes(settled_.blocking, "");
        } else if (code == "no-kernel-mapping") {
            mapping_change("");
        } else if (code == "version-labels-stuck") {
            return;  // said already
        } else if (why_.about_next && code.starts_with("version-") &&
                   settled_.labels_before.module == module_version() &&
                   settled_.labels_after.labels.module == settled_.labels_after.labels.worker) {
            change("wait: KMM's label controller moves the node's labels step by step");
        } else if (code == "version-held" || code == "version-label-differs" || code == "version-label-missing") {
            version_change("");
        } else if (entry.action == Action::keep && reason(code).remedy.empty()) {
            change("another image or other modprobe settings in the Module reload it");
            change("a reboot, another kernel or a taint on the node load or unload it");
        } else if (!causes_.empty() && (code.starts_with("image-") || reason(code).remedy.empty())) {
            return;  // said already
        } else if (!reason(code).remedy.empty()) {
            change(std::string(reason(code).remedy));
        } else {
            change(fmt::format("nothing is missing: {} is what the Module and the node ask for",
                               to_string(entry.action)));
        }
    }

    const api::Node& node_;
    const api::Module& module_;
    Resolver resolver_;
    Verdict settled_, next_;
    std::vector<Cause> causes_;
    Why why_;
};

}  // namespace

std::string_view to_string(Mark mark) noexcept {
    switch (mark) {
        case Mark::passed: return "yes";
        case Mark::failed: return "no";
        case Mark::fact: return "-";
    }
    return "-";
}

Why explain(const NodeView& view, const api::Module& module, const Options& options,
            std::span<const api::ConfigMap> config_maps) {
    return Explainer(view, module, options, config_maps).run();
}

}  // namespace kmm::plan
