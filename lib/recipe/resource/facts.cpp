// SPDX-License-Identifier: Apache-2.0
#include "recipe/resource/facts.hpp"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "api/fields.hpp"
#include "base/kernel_name.hpp"
#include "base/text.hpp"

namespace kmm::recipe::plan {

using value::Node;

namespace {

constexpr std::string_view k_kernel_hint = "name it as uname -r prints it: 6.1.0-56-amd64";

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// The digits at `at`.
std::string_view digits_at(std::string_view text, std::size_t at) {
    std::size_t end = at;
    while (end < text.size() && is_digit(text[end])) { ++end; }
    return text.substr(at, end - at);
}

/// Of "A.B.DATE-N" at `at`: whether DATE has `date` digits at least, or exactly.
bool has_date(std::string_view text, std::size_t at, std::size_t digits) {
    const auto date = digits_at(text, at);
    return date.size() == digits && at + digits + 1 < text.size() && text[at + digits] == '-' &&
           is_digit(text[at + digits + 1]);
}

std::string wrong_kernel(std::string_view text) {
    return fmt::format("expected the release of a kernel, found '{}'", base::escape(text));
}

void require_kernel(const std::string& option, std::string_view text) {
    if (base::is_kernel_name(text)) { return; }
    throw Error(Exit::usage, "bad-kernel", option + ": " + wrong_kernel(text)).hint(std::string(k_kernel_hint));
}

/// The release of a kernel. Faults: missing-field, wrong-type, bad-kernel.
std::string kernel_text(api::Fields& fields, std::string_view key, api::Need need) {
    std::string text = fields.string(key, need);
    const Node* found = fields.get(key);
    const bool is_absent = found == nullptr || (text.empty() && need == api::Need::optional);
    if (!is_absent && found->kind() == value::Kind::string && !base::is_kernel_name(text)) {
        fields.scope().fault("bad-kernel", fields.path_of(key) + ": " + wrong_kernel(text), found->mark(),
                             std::string(k_kernel_hint));
    }
    return text;
}

std::optional<std::string> optional_text(api::Fields& fields, std::string_view key) {
    return fields.get(key) == nullptr ? std::nullopt : std::optional(fields.string(key));
}

KernelFacts decode_kernel(api::Fields fields) {
    KernelFacts facts;
    facts.kernel = kernel_text(fields, "kernelFullVersion", api::Need::required);
    facts.os_image = fields.string("osImage");
    for (const auto& [key, text] : fields.string_map("labels")) { facts.labels.emplace(key, text); }
    if (auto toolkit = fields.child("driverToolkit")) {
        facts.toolkit = DriverToolkit{toolkit->string("imageURL"), toolkit->string("kernelFullVersion"),
                                      toolkit->string("rtKernelFullVersion"), toolkit->string("osVersion")};
        toolkit->done();
    }
    facts.is_asked_for = fields.boolean("anySelector");
    fields.done();
    return facts;
}

Release decode_release(api::Fields fields) {
    Release release;
    release.image = fields.string("image");
    release.version = fields.string("openShiftVersion", api::Need::required);
    release.toolkit_image = fields.string("driverToolkitImage", api::Need::required);
    release.kernel = kernel_text(fields, "kernelFullVersion", api::Need::required);
    release.rt_kernel = kernel_text(fields, "rtKernelFullVersion", api::Need::optional);
    release.os = fields.string("operatingSystem");
    fields.done();
    return release;
}

/// Whether nodes of the release may run the kernel: the usual one, that with pages of 64 KiB, or the real-time one.
bool has_kernel(const Release& release, std::string_view kernel) {
    return kernel == release.kernel || kernel == release.kernel + "+64k" ||
           (!release.rt_kernel.empty() && kernel == release.rt_kernel);
}

Node toolkit_node(const DriverToolkit& toolkit) {
    return Node::mapping({{"imageURL", toolkit.image},
                          {"kernelFullVersion", toolkit.kernel},
                          {"rtKernelFullVersion", toolkit.rt_kernel},
                          {"osVersion", toolkit.os_version}});
}

Node labels_node(const std::map<std::string, std::string>& labels) {
    Node node = Node::mapping();
    for (const auto& [key, text] : labels) { node.set(key, text); }
    return node;
}

}  // namespace

SystemVersion parse_os_image(std::string_view os_image, bool operator_only) {
    for (std::size_t at = 0; at < os_image.size(); ++at) {
        if (!is_digit(os_image[at])) { continue; }
        const auto first = digits_at(os_image, at);
        const std::size_t dot = at + first.size();
        if (dot >= os_image.size() || os_image[dot] != '.') {
            at = dot;
            continue;
        }
        const auto second = digits_at(os_image, dot + 1);
        const std::size_t next = dot + 1 + second.size();
        const bool dated = next < os_image.size() && os_image[next] == '.';
        if (first.size() >= 2 && second.size() >= 2 && dated && has_date(os_image, next + 1, 12)) {
            return {fmt::format("{}.{}", first[0], first.substr(1)), fmt::format("{}.{}", second[0], second.substr(1)),
                    std::string(1, second[0])};
        }
        if (!operator_only && !second.empty() && dated && has_date(os_image, next + 1, 8)) {
            return {"", fmt::format("{}.{}", first, second), std::string(first)};
        }
        at = dot;
    }
    return {};
}

Facts decode_facts(const value::Document& document, Diagnostics& faults) {
    Facts facts;
    if (const std::string kind = document.root.get_string({"kind"}); !kind.empty()) {
        faults.push_back({Severity::error, "bad-value",
                          fmt::format("expected facts of a cluster, found a document of kind {}", base::escape(kind)),
                          document.position(document.root.mark()), "give objects with -f: facts are derived from them",
                          Exit::data});
        return facts;
    }
    api::Scope scope{document, faults};
    api::Fields root(scope, document.root, "");
    facts.cluster_version = optional_text(root, "clusterVersion");
    facts.os_image_url = optional_text(root, "osImageURL");
    facts.push_secret = optional_text(root, "pushSecretName");
    facts.update_vendor = optional_text(root, "updateVendor");
    facts.kube_version = optional_text(root, "kubeVersion");
    facts.api_versions = root.strings("apiVersions").value_or(std::vector<std::string>{});
    if (auto proxy = root.child("proxy")) {
        facts.proxy = Proxy{proxy->string("httpProxy"), proxy->string("httpsProxy"), proxy->string("noProxy"),
                            proxy->string("trustedCA")};
        proxy->done();
    }
    for (const auto& [key, text] : root.string_map("nodeLabels")) { facts.node_labels.emplace(key, text); }
    for (const auto& item : root.items("kernels")) {
        facts.kernels.push_back(decode_kernel(api::Fields(scope, *item.node, item.path)));
    }
    for (const auto& item : root.items("releases")) {
        facts.releases.push_back(decode_release(api::Fields(scope, *item.node, item.path)));
    }
    root.done();
    return facts;
}

void overlay_facts(Facts& facts, Facts over) {
    const auto put = [](auto& to, auto& from) {
        if (from) { to = std::move(from); }
    };
    put(facts.cluster_version, over.cluster_version);
    put(facts.os_image_url, over.os_image_url);
    put(facts.push_secret, over.push_secret);
    put(facts.update_vendor, over.update_vendor);
    put(facts.kube_version, over.kube_version);
    put(facts.proxy, over.proxy);
    if (!over.api_versions.empty()) { facts.api_versions = std::move(over.api_versions); }
    if (!over.node_labels.empty()) { facts.node_labels = std::move(over.node_labels); }
    if (!over.releases.empty()) { facts.releases = std::move(over.releases); }
    if (over.kernels.empty()) { return; }
    facts.kernels = std::move(over.kernels);
    facts.left_out.clear();
}

KernelFacts facts_of(const Facts& facts, KernelFacts node) {
    if (!node.toolkit && (facts.os_version || facts.toolkit_image)) { node.toolkit.emplace(); }
    if (facts.toolkit_image) { node.toolkit->image = *facts.toolkit_image; }
    if (!facts.os_version) { return node; }
    node.toolkit->os_version = *facts.os_version;
    // What it says of the system would win.
    if (parse_os_image(node.os_image, false).os != *facts.os_version) { node.os_image.clear(); }
    return node;
}

void add_release_toolkits(Facts& facts) {
    for (auto* nodes : {&facts.kernels, &facts.left_out}) {
        for (auto& one : *nodes) {
            if (one.toolkit) { continue; }
            for (const auto& release : facts.releases) {
                if (has_kernel(release, one.kernel)) {
                    one.toolkit = DriverToolkit{release.toolkit_image, release.kernel, release.rt_kernel, release.os};
                }
            }
        }
    }
}

Facts facts_on(const Facts& facts, const std::string& kernel) {
    Facts next = facts;
    for (const auto& release : facts.releases) {
        if (has_kernel(release, kernel)) { next.cluster_version = release.version; }
    }
    const KernelFacts* known = nullptr;
    for (const auto* nodes : {&facts.left_out, &facts.kernels}) {
        const auto found = std::find_if(nodes->begin(), nodes->end(),
                                        [&](const KernelFacts& one) { return one.kernel == kernel; });
        if (found != nodes->end()) { known = &*found; }
    }
    for (auto* nodes : {&next.kernels, &next.left_out}) {
        for (auto& one : *nodes) {
            if (one.kernel == kernel) { continue; }
            one.kernel = kernel;
            one.os_image = known == nullptr ? "" : known->os_image;
            one.toolkit = known == nullptr ? std::nullopt : known->toolkit;
        }
    }
    add_release_toolkits(next);
    return next;
}

void add_next_kernel(Facts& facts, const std::string& kernel) {
    require_kernel("--next-kernel", kernel);
    const auto runs = [&](const KernelFacts& one) { return one.kernel == kernel; };
    if (std::any_of(facts.kernels.begin(), facts.kernels.end(), runs)) { return; }
    auto next = facts_on(facts, kernel);
    const auto add = [](std::vector<KernelFacts>& to, const std::vector<KernelFacts>& more) {
        to.insert(to.end(), more.begin(), more.end());
    };
    // A node that is left out and runs it now is asked for.
    std::copy_if(facts.left_out.begin(), facts.left_out.end(), std::back_inserter(facts.kernels), runs);
    add(facts.kernels, next.kernels);
    add(facts.left_out, next.left_out);
}

void set_fact(Facts& facts, std::string_view assignment) {
    const std::size_t equals = assignment.find('=');
    const std::string key(assignment.substr(0, equals));
    const std::string text(equals == std::string_view::npos ? std::string_view() : assignment.substr(equals + 1));
    const auto proxy = [&]() -> Proxy& { return facts.proxy ? *facts.proxy : facts.proxy.emplace(); };
    if (equals == std::string_view::npos) {
    } else if (key == "clusterVersion") {
        facts.cluster_version = text;
        return;
    } else if (key == "osImageURL") {
        facts.os_image_url = text;
        return;
    } else if (key == "pushSecretName") {
        facts.push_secret = text;
        return;
    } else if (key == "updateVendor") {
        facts.update_vendor = text;
        return;
    } else if (key == "kubeVersion") {
        facts.kube_version = text;
        return;
    } else if (key == "proxy.httpProxy") {
        proxy().http = text;
        return;
    } else if (key == "proxy.httpsProxy") {
        proxy().https = text;
        return;
    } else if (key == "proxy.noProxy") {
        proxy().no = text;
        return;
    } else if (key == "proxy.trustedCA") {
        proxy().trusted_ca = text;
        return;
    } else if (key == "osVersion" && !text.empty()) {
        facts.os_version = text;
        return;
    } else if (key == "driverToolkitImage" && !text.empty()) {
        facts.toolkit_image = text;
        return;
    } else if (key == "apiVersions" && !text.empty()) {
        facts.api_versions.clear();
        for (const auto one : base::split(text, ',')) { facts.api_versions.emplace_back(one); }
        return;
    } else if (key == "kernels" && !text.empty()) {
        std::vector<KernelFacts> kept;
        for (const auto wanted : base::split(text, ',')) {
            require_kernel("--fact kernels", wanted);
            const std::size_t before = kept.size();
            for (const auto* nodes : {&facts.kernels, &facts.left_out}) {
                for (const auto& known : *nodes) {
                    if (known.kernel == wanted) { kept.push_back(known); }
                }
            }
            if (kept.size() == before) { kept.push_back({std::string(wanted), "", {}, std::nullopt, true}); }
        }
        facts.kernels = std::move(kept);
        facts.left_out.clear();
        return;
    }
    const std::vector<std::string> names{"clusterVersion",  "osImageURL",      "pushSecretName",   "updateVendor",
                                         "kubeVersion",     "proxy.httpProxy", "proxy.httpsProxy", "proxy.noProxy",
                                         "proxy.trustedCA", "kernels",         "apiVersions",
                                         "osVersion",       "driverToolkitImage"};
    const auto near = base::nearest(key, names);
    throw Error(Exit::usage, "bad-value",
                fmt::format("--fact: expected MEMBER=VALUE with one of {}, found '{}'", base::join(names, ", "),
                            base::escape(assignment)))
        .hint(near && *near != key ? fmt::format("did you mean {}?", *near)
                                   : "for example --fact clusterVersion=4.17.4");
}

Node facts_node(const Facts& facts) {
    Node node = Node::mapping();
    const auto put = [&](const char* key, const std::optional<std::string>& text) {
        if (text) { node.set(key, *text); }
    };
    put("clusterVersion", facts.cluster_version);
    put("osImageURL", facts.os_image_url);
    put("pushSecretName", facts.push_secret                ? facts.push_secret
                          : facts.push_secrets.size() == 1 ? std::optional(facts.push_secrets.begin()->second)
                                                           : std::nullopt);
    put("updateVendor", facts.update_vendor);
    put("kubeVersion", facts.kube_version);
    if (!facts.api_versions.empty()) { node.set("apiVersions", Node::strings(facts.api_versions)); }
    if (facts.proxy) {
        node.set("proxy", Node::mapping({{"httpProxy", facts.proxy->http},
                                         {"httpsProxy", facts.proxy->https},
                                         {"noProxy", facts.proxy->no},
                                         {"trustedCA", facts.proxy->trusted_ca}}));
    }
    if (!facts.node_labels.empty()) { node.set("nodeLabels", labels_node(facts.node_labels)); }
    Node kernels = Node::sequence();
    for (const auto& each : facts.kernels) {
        const auto one = facts_of(facts, each);
        Node kernel = Node::mapping({{"kernelFullVersion", one.kernel}});
        if (!one.os_image.empty()) { kernel.set("osImage", one.os_image); }
        if (!one.labels.empty()) { kernel.set("labels", labels_node(one.labels)); }
        if (one.toolkit) { kernel.set("driverToolkit", toolkit_node(*one.toolkit)); }
        if (one.is_asked_for) { kernel.set("anySelector", true); }
        kernels.push_back(std::move(kernel));
    }
    node.set("kernels", std::move(kernels));
    if (!facts.releases.empty()) { node.set("releases", releases_node(facts.releases)); }
    return node;
}

Node releases_node(const std::vector<Release>& releases) {
    Node list = Node::sequence();
    for (const auto& one : releases) {
        Node release = Node::mapping();
        if (!one.image.empty()) { release.set("image", one.image); }
        release.set("openShiftVersion", one.version);
        release.set("driverToolkitImage", one.toolkit_image);
        release.set("kernelFullVersion", one.kernel);
        release.set("rtKernelFullVersion", one.rt_kernel);
        release.set("operatingSystem", one.os);
        list.push_back(std::move(release));
    }
    return list;
}

}  // namespace kmm::recipe::plan
