// SPDX-License-Identifier: Apache-2.0
#include "upgrade/drive_recipe/recipe_drivers.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <set>

#include <fmt/format.h>

#include "base/text.hpp"
#include "cluster/seam/object_facts.hpp"
#include "recipe/plan/kernel_names.hpp"
#include "upgrade/drive_recipe/downgrade.hpp"
#include "upgrade/drive_recipe/gates.hpp"
#include "upgrade/drive_recipe/readiness.hpp"
#include "upgrade/drive_recipe/release_store.hpp"

namespace kmm::drive {
namespace {

using upgrade::recipe::Release;
using upgrade::recipe::ReleaseObject;
using value::Node;

kube::Key key_of_driver(const ReleaseObject& driver) {
    const auto object = placed(driver.object, kube::resources::k_daemon_sets);
    return {object.get_string({"metadata", "namespace"}), object.get_string({"metadata", "name"})};
}

std::vector<std::string> images_of(const ReleaseObject& one) {
    std::vector<std::string> images;
    for (const auto* list : {"initContainers", "containers"}) {
        const auto* containers = one.object.find_path({"spec", "template", "spec", list});
        for (const auto& container : containers == nullptr ? std::span<const Node>() : containers->items())
            images.push_back(container.get_string({"image"}));
    }
    return images;
}

/// Whether an image of the object has the kernel in its name.
bool names_kernel(const ReleaseObject& one, const std::string& kernel) {
    const auto images = images_of(one);
    return std::any_of(images.begin(), images.end(), [&](const std::string& image) {
        return recipe::plan::names_kernel(image, kernel);
    });
}

/// The kernel that the node selector of a DaemonSet names without its being the copy for it, "" for none.
std::string kernel_of_selector(const ReleaseObject& one) {
    if (!one.kernel.empty()) return "";
    const auto* selector = one.object.find_path({"spec", "template", "spec", "nodeSelector"});
    const auto* label = selector == nullptr ? nullptr : selector->find(k_kernel_label);
    return label == nullptr ? "" : std::string(label->text());
}

/// A kernel as a label of a node has it: without '+'.
bool is_label_of(const std::string& label, std::string kernel) {
    if (label == kernel) return true;
    std::replace(kernel.begin(), kernel.end(), '+', '_');
    return label == kernel || label == kernel.substr(0, kernel.find_last_not_of("._-") + 1);
}

/// The kernel that a DaemonSet is made for without being the copy for it: its image or its node selector names it. ""
/// for none.
std::string kernel_made_for(const Release& release, const ReleaseObject& one) {
    if (!one.kernel.empty() || one.object.get_string({"kind"}) != "DaemonSet") return "";
    const auto found = std::find_if(release.kernels.begin(), release.kernels.end(),
                                    [&](const std::string& kernel) { return names_kernel(one, kernel); });
    if (found != release.kernels.end()) return *found;
    return is_driver(one) ? kernel_of_selector(one) : "";
}

bool is_made_for(const ReleaseObject& one, const std::string& kernel) {
    const auto selected = kernel_of_selector(one);
    return selected.empty() ? names_kernel(one, kernel) : is_label_of(selected, kernel);
}

void replace_all(std::string& text, const std::string& from, std::string_view to) {
    if (from.empty()) return;
    for (auto place = text.find(from); place != std::string::npos; place = text.find(from, place + to.size()))
        text.replace(place, from.size(), to);
}

/// The images of a DaemonSet with a mark in place of the kernel.
std::vector<std::string> images_without(const ReleaseObject& one, const std::string& kernel) {
    auto in_tag = kernel;
    std::replace(in_tag.begin(), in_tag.end(), '+', '_');
    auto images = images_of(one);
    for (auto& image : images)
        for (const auto& text : {kernel, in_tag}) replace_all(image, text, "KERNEL");
    return images;
}

/// What the chart wrote for `kernel` as it wrote `one` for another: the images differ in the kernel alone. nullptr for
/// none.
const ReleaseObject* counterpart(const Release& release, const ReleaseObject& one, const std::string& kernel) {
    if (is_made_for(one, kernel)) return &one;
    const auto images = images_without(one, kernel_made_for(release, one));
    const ReleaseObject* found = nullptr;
    const auto look = [&](const ReleaseObject& other) {
        const bool is_other = other.kernel.empty() && other.object.get_string({"kind"}) == "DaemonSet" &&
                              is_made_for(other, kernel) && images_without(other, kernel) == images;
        if (is_other) found = &other;
    };
    for (const auto& state : release.states) std::for_each(state.objects.begin(), state.objects.end(), look);
    std::for_each(release.kept.begin(), release.kept.end(), look);
    return found;
}

void each_driver(std::span<const Release> deployed,
                 const std::function<void(const Release&, const ReleaseObject&)>& visit) {
    for (const auto& release : deployed) {
        const auto look = [&](const ReleaseObject& one) {
            if (is_driver(one) || !kernel_made_for(release, one).empty()) visit(release, one);
        };
        for (const auto& state : release.states) std::for_each(state.objects.begin(), state.objects.end(), look);
        std::for_each(release.kept.begin(), release.kept.end(), look);
    }
}

/// Identities of the Pod's containers, "" where its status has none. A reboot ends containers: the next have others.
std::string containers_of(const Node& pod) {
    std::vector<std::string> ids;
    if (const auto* statuses = pod.find_path({"status", "containerStatuses"}))
        for (const auto& status : statuses->items())
            if (auto id = status.get_string({"containerID"}); !id.empty()) ids.push_back(std::move(id));
    return base::join(ids, ",");
}

Node labels_node(const api::Labels& labels) {
    auto node = Node::mapping();
    for (const auto& [key, text] : labels) node.set(std::string(key), std::string(text));
    return node;
}

/// In a kernel that the driver is for. A node whose label of the kernel is not there yet counts as selected.
bool is_selected(const ReleaseObject& driver, const api::Node& node) {
    const auto selected = kernel_of_selector(driver);
    return (driver.kernel.empty() || driver.kernel == node.kernel_version) &&
           (selected.empty() || is_label_of(selected, node.kernel_version)) &&
           selects(driver.object, labels_node(node.meta.labels), Label::any_kernel);
}

}  // namespace

std::string driver_name(const ReleaseObject& driver) {
    auto key = key_of_driver(driver);
    if (!driver.kernel.empty()) key.name = key.name.substr(0, key.name.rfind('-'));
    return key.to_string();
}

std::vector<std::string> selected_drivers(std::span<const Release> deployed, const api::Node& node) {
    std::set<std::string> names;
    each_driver(deployed, [&](const Release&, const ReleaseObject& one) {
        if (is_selected(one, node)) names.insert(driver_name(one));
    });
    return {names.begin(), names.end()};
}

Diagnostics missing_copies(std::span<const Release> deployed, std::span<const api::Node> nodes,
                           const std::string& kernel) {
    std::set<std::string> ready;  // drivers that have a copy for `kernel`, or need none
    std::set<std::string> made_for_one;  // without being a copy
    each_driver(deployed, [&](const Release& release, const ReleaseObject& one) {
        const auto made_for = kernel_made_for(release, one);
        if (made_for.empty() ? one.kernel.empty() || one.kernel == kernel
                             : counterpart(release, one, kernel) != nullptr)
            ready.insert(driver_name(one));
        else if (!made_for.empty()) made_for_one.insert(driver_name(one));
    });
    std::map<std::string, std::pair<const Release*, std::set<std::string>>> missing;  // by driver: for which nodes
    each_driver(deployed, [&](const Release& release, const ReleaseObject& one) {
        const auto name = driver_name(one);
        if (ready.contains(name)) return;
        for (const auto& node : nodes)
            if (is_selected(one, node)) {
                auto& [of, names] = missing[name];
                of = &release;
                names.insert(node.meta.name);
            }
    });
    Diagnostics findings;
    for (const auto& [name, found] : missing) {
        const auto& [release, on] = found;
        Diagnostic finding;
        finding.code = "recipe-copy-missing";
        finding.exit = Exit::checks_failed;
        finding.message = fmt::format(
            "driver {} of recipe {} has no copy for kernel {}, and {} would come back without it", name,
            release->recipe, kernel, on.size() == 1 ? "node " + *on.begin() : fmt::format("{} nodes", on.size()));
        finding.hint =
            fmt::format("{}roll that copy out first: kmm-upgrade start recipe {} --next-kernel {}",
                        made_for_one.contains(name)
                            ? "it is made for one kernel: annotate it with "
                              "specialresource.openshift.io/kernel-affine: \"true\", and "
                            : "",
                        release->recipe, kernel);
        findings.push_back(std::move(finding));
    }
    return findings;
}

std::vector<Release> RecipeDrivers::deployed() {
    auto all = ReleaseStore(client_, space_).all();
    std::map<std::string, std::vector<Release>> by_recipe;
    for (auto& one : all) by_recipe[one.recipe].push_back(std::move(one));
    std::vector<Release> deployed;
    for (const auto& [recipe, releases] : by_recipe)
        if (const auto* found = deployed_of(releases)) deployed.push_back(*found);
    return deployed;
}

std::map<std::string, std::string> RecipeDrivers::serving(const std::string& node) {
    std::vector<Release> releases;
    try {
        releases = deployed();
    } catch (const Error& error) {
        if (error.code() != "forbidden") throw;
        return {};  // the start of the run has said so
    }
    std::map<std::string, std::string> drivers;  // DaemonSet to driver
    each_driver(releases, [&](const Release&, const ReleaseObject& one) {
        drivers.emplace(key_of_driver(one).to_string(), driver_name(one));
    });
    if (drivers.empty()) return {};
    std::map<std::string, std::string> served;
    for (const auto& pod : client_.list_all(kube::resources::k_pods, {"", "", "spec.nodeName=" + node})) {
        const auto* owners = pod.find_path({"metadata", "ownerReferences"});
        if (owners == nullptr || !cluster::is_ready(pod)) continue;
        for (const auto& owner : owners->items()) {
            if (owner.get_string({"kind"}) != "DaemonSet") continue;
            const auto found =
                drivers.find(pod.get_string({"metadata", "namespace"}) + "/" + owner.get_string({"name"}));
            if (found != drivers.end()) served[found->second] = containers_of(pod);
        }
    }
    return served;
}

std::string RecipeDrivers::problem(const std::string& node, const std::string& kernel, const std::string& driver,
                                   const std::string& before) {
    const auto releases = deployed();
    const Release* of = nullptr;
    const ReleaseObject* copy = nullptr;
    each_driver(releases, [&](const Release& release, const ReleaseObject& one) {
        if (driver_name(one) != driver) return;
        of = &release;
        const auto* other = kernel_made_for(release, one).empty() ? nullptr : counterpart(release, one, kernel);
        const auto selected = kernel_of_selector(one);
        if (other != nullptr) copy = other;
        else if (one.kernel == kernel || (one.kernel.empty() && (selected.empty() || is_label_of(selected, kernel))))
            copy = &one;
    });
    if (of == nullptr) return "";
    if (copy == nullptr)
        return fmt::format("driver {} of recipe {} has no copy for kernel {}", driver, of->recipe, kernel);
    const auto key = key_of_driver(*copy);
    const auto live = client_.find(kube::resources::k_daemon_sets, key);
    if (!live) return fmt::format("DaemonSet {} of recipe {} does not exist", key.to_string(), of->recipe);
    const auto there = client_.find(kube::resources::k_nodes, {"", node});
    const auto* labels = there ? there->find_path({"metadata", "labels"}) : nullptr;
    const auto of_node = labels == nullptr ? Node::mapping() : *labels;
    if (!selects(*live, of_node, Label::any_kernel)) return "";
    if (!selects(*live, of_node, Label::every))
        return fmt::format("DaemonSet {}: node {} has no label {} for kernel {} yet", key.to_string(), node,
                           k_kernel_label, kernel);
    auto pods = client_.list_all(kube::resources::k_pods, {key.namespace_, "", "spec.nodeName=" + node});
    std::erase_if(pods, [&](const Node& pod) {
        const auto phase = pod.get_string({"status", "phase"});
        return !is_owned_by(pod, *live) || !pod.get_string({"metadata", "deletionTimestamp"}).empty() ||
               phase == "Failed" || phase == "Succeeded";  // those stay beside the Pod in their place
    });
    if (pods.empty()) return fmt::format("DaemonSet {} has no Pod on node {}", key.to_string(), node);
    const auto& pod = pods.front();
    // Until the kubelet has looked, the API server has the Pod as it was before the reboot.
    if (!before.empty() && containers_of(pod) == before)
        return fmt::format("Pod {}/{} of recipe {} has not been started since the reboot",
                           pod.get_string({"metadata", "namespace"}), pod.get_string({"metadata", "name"}), of->recipe);
    const auto pattern = log_pattern(copy->object);
    if (cluster::is_ready(pod)) return pattern.empty() ? "" : Gates(client_, objects_).log_problem_of_pod(pod, pattern);
    const auto image = missing_image(pods);
    return image.empty() ? fmt::format("Pod {}/{} of recipe {} is not Ready", pod.get_string({"metadata", "namespace"}),
                                       pod.get_string({"metadata", "name"}), of->recipe)
                         : image;
}

}  // namespace kmm::drive
