// SPDX-License-Identifier: Apache-2.0
#include "recipe/resource/values.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "base/counted.hpp"
#include "base/text.hpp"

namespace kmm::recipe::plan {

using tmpl::Map;
using tmpl::Value;

namespace {

constexpr std::array<std::pair<const char*, const char*>, 8> k_group_names{
    {{"driverBuild", "driver-build"},
     {"driverContainer", "driver-container"},
     {"runtimeEnablement", "runtime-enablement"},
     {"devicePlugin", "device-plugin"},
     {"deviceMonitoring", "device-monitoring"},
     {"deviceDashboard", "device-dashboard"},
     {"deviceFeatureDiscovery", "device-feature-discovery"},
     {"csiDriver", "csi-driver"}}};

Value known(const std::optional<std::string>& text, const char* member, const char* source) {
    if (text) { return Value::string(*text); }
    return tmpl::unknown_value(
        member, fmt::format("give {}, --facts FILE with {}, or --fact {}=VALUE", source, member, member));
}

/// Of a kernel's system: `text` unless it is empty.
Value of_system(const std::string& text, const RecipeKernel& kernel, const char* member) {
    if (!text.empty()) { return Value::string(text); }
    return tmpl::unknown_value(fmt::format("{} of kernel {}", member, kernel.kernel), system_hint(kernel.os_image));
}

Value of_cluster(const std::string& text, const RecipeKernel& kernel, const char* member) {
    if (!text.empty()) { return Value::string(text); }
    return tmpl::unknown_value(fmt::format("{} of kernel {}", member, kernel.kernel),
                               "give ClusterVersion in -f, clusterVersion in --facts FILE, or --fact "
                               "clusterVersion=VERSION");
}

/// A release may have no real-time kernel; the other members are never empty.
Value of_toolkit(const RecipeKernel& kernel, std::string DriverToolkit::*text, const char* member,
                 bool operator_only) {
    const bool may_be_empty = operator_only || text == &DriverToolkit::rt_kernel;
    if (kernel.toolkit && (may_be_empty || !((*kernel.toolkit).*text).empty())) {
        return Value::string((*kernel.toolkit).*text);
    }
    return tmpl::unknown_value(
        fmt::format("driverToolkit.{} of kernel {}", member, kernel.kernel),
        is_system_of_okd(kernel.os_image)
            ? "OKD builds its toolkit and its system at different times, so the one of the ImageStream may lack the "
              "headers: kmm-plan dtk-map RELEASE --print-facts for --facts FILE tells, or give driverToolkit of this "
              "kernel there"
        : text == &DriverToolkit::image
            ? "give ImageStream openshift/driver-toolkit in -f, driverToolkit of this kernel in --facts FILE, or "
              "--fact driverToolkitImage=IMAGE"
            : "give ImageStream openshift/driver-toolkit in -f, or driverToolkit of this kernel in --facts FILE");
}

std::string with_prefix(const std::string& text) { return text.empty() ? text : "rhel" + text; }

Value upgrade_info_of(const RecipeKernels& kernels, bool operator_only) {
    Map all;
    for (const auto& one : kernels.all) {
        const auto member = [&](std::string DriverToolkit::*text, const char* name) {
            return of_toolkit(one, text, name, operator_only);
        };
        const Value toolkit = Value::map({{"imageURL", member(&DriverToolkit::image, "imageURL")},
                                          {"kernelFullVersion", member(&DriverToolkit::kernel, "kernelFullVersion")},
                                          {"RTKernelFullVersion",
                                           member(&DriverToolkit::rt_kernel, "rtKernelFullVersion")},
                                          {"OSVersion", member(&DriverToolkit::os_version, "osVersion")}});
        all[one.kernel] = Value::map({{"OSVersion", of_system(one.system.os, one, "OSVersion")},
                                      {"OSMajor", of_system(with_prefix(one.system.major), one, "OSMajor")},
                                      {"OSMajorMinor", of_system(with_prefix(one.system.os), one, "OSMajorMinor")},
                                      {"clusterVersion", of_cluster(one.system.cluster, one, "clusterVersion")},
                                      {"driverToolkit", toolkit}});
    }
    return Value::map(std::move(all));
}

std::string major_minor(const std::string& version) {
    const std::size_t dot = version.find('.');
    return dot == std::string::npos ? version : version.substr(0, std::min(version.find('.', dot + 1), version.size()));
}

Value proxy_value(const Facts& facts, Root root, bool operator_only) {
    if (!facts.proxy) {
        return tmpl::unknown_value("proxy",
                                   "give Proxy cluster in -f, proxy in --facts FILE, or --fact proxy.httpProxy=URL");
    }
    const std::array<std::pair<const char*, const std::string*>, 4> members{{{"ttpProxy", &facts.proxy->http},
                                                                             {"ttpsProxy", &facts.proxy->https},
                                                                             {"oProxy", &facts.proxy->no},
                                                                             {"rustedCA", &facts.proxy->trusted_ca}}};
    constexpr std::array<std::pair<char, char>, 4> first{{{'h', 'H'}, {'h', 'H'}, {'n', 'N'}, {'t', 'T'}}};
    Map made;
    for (std::size_t i = 0; i < members.size(); ++i) {
        const Value text = Value::string(*members[i].second);
        const bool upper = root == Root::resource;
        if (upper) { made[first[i].second + std::string(members[i].first)] = text; }
        if (!upper || !operator_only) { made[first[i].first + std::string(members[i].first)] = text; }
    }
    return Value::map(std::move(made));
}

const std::string* label_of(const Facts& facts, const KernelFacts& node, const std::string& key) {
    for (const auto* labels : {&node.labels, &facts.node_labels}) {
        if (const auto found = labels->find(key); found != labels->end()) { return &found->second; }
    }
    return nullptr;
}

bool selects(const SpecialResource& resource, const Facts& facts, const KernelFacts& node) {
    if (node.is_asked_for) { return true; }
    const auto& choice = resource.node_choice;
    if (!choice.key.empty()) {
        const std::string* label = label_of(facts, node, choice.key);
        if (label == nullptr || std::find(choice.values.begin(), choice.values.end(), *label) == choice.values.end()) {
            return false;
        }
    }
    return std::all_of(resource.node_selector.begin(), resource.node_selector.end(), [&](const auto& term) {
        const std::string* label = label_of(facts, node, term.first);
        return label != nullptr && *label == term.second;
    });
}

}  // namespace

std::string system_hint(const std::string& os_image) {
    const std::string how =
        "give driverToolkit.osVersion of this kernel in --facts FILE, or --fact osVersion=VERSION for all";
    return os_image.empty() ? how : fmt::format("osImage \"{}\" does not say it: {}", base::escape(os_image), how);
}

Value as_operator_sees(const SpecialResource& resource, Root root) {
    Value made = tmpl::deep_copy(resource.object);
    const Value absent = root == Root::charts ? Value::integer(0, tmpl::Type::int64) : Value::nil();
    const auto mark_absent = [&](Value& holder) {
        if (!holder.is_map()) { return; }
        const auto set = holder.shared_map()->find("set");
        if (set != holder.shared_map()->end() && set->second.is_map() && set->second.members().empty()) {
            set->second = absent;
        }
    };
    const auto spec = made.shared_map()->find("spec");
    if (spec == made.shared_map()->end() || !spec->second.is_map()) { return made; }
    mark_absent(spec->second);
    const auto dependencies = spec->second.shared_map()->find("dependencies");
    if (dependencies != spec->second.shared_map()->end() && dependencies->second.is_list()) {
        for (auto& dependency : dependencies->second.shared_items()) { mark_absent(dependency); }
    }
    return made;
}

const RecipeKernel& RecipeKernels::at(const std::string& kernel) const {
    const auto found =
        std::find_if(all.begin(), all.end(), [&](const RecipeKernel& one) { return one.kernel == kernel; });
    if (found == all.end()) { throw bug("a kernel that was not selected"); }
    return *found;
}

RecipeKernels select_kernels(const Facts& facts, const SpecialResource& resource, bool operator_only) {
    RecipeKernels made;
    const bool has_others = std::any_of(facts.kernels.begin(), facts.kernels.end(), [&](const KernelFacts& each) {
        return selects(resource, facts, facts_of(facts, each));
    });
    // A resource may be for nodes with a taint alone, as nodes with accelerators often are.
    for (const auto& each : has_others || operator_only ? facts.kernels : facts.left_out) {
        const auto node = facts_of(facts, each);
        if (!selects(resource, facts, node)) { continue; }
        RecipeKernel one{node.kernel, parse_os_image(node.os_image, operator_only), node.os_image, node.toolkit};
        if (one.system.os.empty() && operator_only && !node.os_image.empty()) {
            throw Error(Exit::data, "bad-os-image",
                        fmt::format("{}: the operator cannot read the version of system \"{}\"", resource.name,
                                    base::escape(node.os_image)))
                .hint(
                    "leave out --compat sro, or give an osImage like \"Red Hat Enterprise Linux CoreOS "
                    "417.94.202410211619-0 (Plow)\"");
        }
        if (one.system.os.empty() && node.toolkit) {
            one.system.os = node.toolkit->os_version;
            one.system.major = one.system.os.substr(0, one.system.os.find('.'));
        }
        if (one.system.cluster.empty() && facts.cluster_version) {
            one.system.cluster = major_minor(*facts.cluster_version);
        }
        made.last = one.kernel;
        const auto same = std::find_if(made.all.begin(), made.all.end(),
                                       [&](const RecipeKernel& known) { return known.kernel == one.kernel; });
        if (same != made.all.end()) {
            *same = std::move(one);
        } else {
            made.all.push_back(std::move(one));
        }
    }
    if (made.all.empty()) {
        std::string_view field = "spec.nodeSelector";
        for (const std::string_view old : {"spec.node.selector", "spec.machineConfigPool", "spec.matchLabels"}) {
            if (!resource.places.contains(field) && resource.places.contains(old)) { field = old; }
        }
        std::string message = fmt::format("{}: no kernel is known", resource.name);
        std::string hint = "give Nodes in -f, kernels in --facts FILE, or --fact kernels=RELEASE";
        const std::size_t nodes = facts.kernels.size() + (operator_only ? 0 : facts.left_out.size());
        if (nodes > 0) {
            message = fmt::format("{}: {} selects none of {}", resource.name, field, base::counted(nodes, "node"));
            hint = "compare it with the labels of the nodes";
        }
        throw Error(Exit::data, "no-kernels", std::move(message))
            .at(resource.place(field))
            .hint(std::move(hint));
    }
    std::sort(made.all.begin(), made.all.end(),
              [](const RecipeKernel& a, const RecipeKernel& b) { return a.kernel < b.kernel; });
    made.upgrade_info = upgrade_info_of(made, operator_only);
    return made;
}

Value runtime_values(const Facts& facts, const SpecialResource& resource, const RecipeKernels& kernels,
                     const RecipeKernel& kernel, Root root, bool operator_only) {
    std::optional<std::string> push_secret = facts.push_secret;
    if (!push_secret) {
        const auto found = facts.push_secrets.find(resource.name_space);
        if (found != facts.push_secrets.end()) { push_secret = found->second; }
    }
    const std::string cluster =
        root == Root::resource && facts.cluster_version ? major_minor(*facts.cluster_version) : kernel.system.cluster;
    // The operator computes it once, with the last node's kernel.
    const std::string& patched = operator_only ? kernels.last : kernel.kernel;
    return Value::map(
        {{"kind", Value::string("Values")},
         {"operatingSystemMajor", of_system(with_prefix(kernel.system.major), kernel, "operatingSystemMajor")},
         {"operatingSystemMajorMinor", of_system(with_prefix(kernel.system.os), kernel, "operatingSystemMajorMinor")},
         {"operatingSystemDecimal", of_system(kernel.system.os, kernel, "operatingSystemDecimal")},
         {"kernelFullVersion", Value::string(kernel.kernel)},
         {"kernelPatchVersion", Value::string(kernel_patch_version(patched))},
         {"driverToolkitImage", root == Root::resource && operator_only
                                    ? Value::string("")
                                    : of_toolkit(kernel, &DriverToolkit::image, "imageURL", operator_only)},
         {"platform", Value::string("OCP")},
         {"clusterVersion", known(facts.cluster_version, "clusterVersion", "ClusterVersion in -f")},
         {"clusterVersionMajorMinor", of_cluster(cluster, kernel, "clusterVersionMajorMinor")},
         {"clusterUpgradeInfo", kernels.upgrade_info},
         {"pushSecretName", known(push_secret, "pushSecretName", "the builder's Secret in -f")},
         {"osImageURL", known(facts.os_image_url, "osImageURL", "ConfigMap machine-config-osimageurl in -f")},
         {"proxy", proxy_value(facts, root, operator_only)},
         {"groupName", group_names()},
         {"specialresource",
          operator_only ? as_operator_sees(resource, root) : tmpl::deep_copy(resource.object)}});
}

Value group_names() {
    Map groups;
    for (const auto& [key, text] : k_group_names) { groups[key] = Value::string(text); }
    return Value::map(std::move(groups));
}

std::string kernel_patch_version(std::string_view kernel) {
    const std::size_t dash = kernel.find('-');
    if (dash == std::string_view::npos) {
        const auto parts = base::split(kernel, '.');
        std::string made;
        for (std::size_t i = 0; i < std::min<std::size_t>(parts.size(), 3); ++i) {
            made += (i == 0 ? "" : ".") + std::string(parts[i]);
        }
        return made;
    }
    const auto behind = base::split(kernel, '-')[1];
    return fmt::format("{}-{}", kernel.substr(0, dash), behind.substr(0, behind.find('.')));
}

std::string kernel_suffix(std::string_view os, std::string_view kernel) {
    std::uint64_t hash = 14695981039346656037ULL;
    const auto add = [&](char c) { hash = (hash ^ static_cast<unsigned char>(c)) * 1099511628211ULL; };
    for (const char c : os) { add(c); }
    add('-');
    for (const char c : kernel) { add(c == '_' ? '-' : c); }
    return fmt::format("{:x}", hash);
}

}  // namespace kmm::recipe::plan
