// SPDX-License-Identifier: Apache-2.0
#include "kubernetes/cluster_checks/kubeadm_reads.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/number.hpp"
#include "base/text.hpp"
#include "kubernetes/cluster_checks/address.hpp"
#include "kubernetes/cluster_checks/field_types.hpp"
#include "kubernetes/cluster_checks/kubeadm_problems.hpp"
#include "kubernetes/finding/configuration.hpp"
#include "kubernetes/finding/node_findings.hpp"
#include "kubernetes/inventory/kubelet_config.hpp"
#include "kubernetes/versions/path.hpp"

namespace kmm::kubernetes {
namespace {

using value::Node;

constexpr std::string_view k_server_mark = "kubeadm.kubernetes.io/kube-apiserver.advertise-address.endpoint";
constexpr std::string_view k_etcd_mark = "kubeadm.kubernetes.io/etcd.advertise-client-urls";
/// Which every kubelet gives the Pods of its manifests; a dump that somebody wrote may lack it, and all other marks.
constexpr std::string_view k_source_mark = "kubernetes.io/config.source";
constexpr std::string_view k_socket_mark = "kubeadm.alpha.kubernetes.io/cri-socket";
constexpr std::string_view k_flags_variable = "KUBELET_KUBEADM_ARGS=";
constexpr std::string_view k_endpoint_flag = "--container-runtime-endpoint";

/// Flags of a component: a list of names and values, or before v1beta4 a mapping. All are strings.
void look_at_extra_args(const Node& extra, const std::string& place, bool is_list, Problems& problems) {
    const auto fail = [&](const std::string& where, std::string_view expected, const Node& found) {
        problems.add(fmt::format("{}{} of kubeadm-config: expected {}, found {}", place, where, expected,
                                 found_there(found)),
                     "kubectl edit configmap -n kube-system kubeadm-config; numbers and flags are strings there, in "
                     "quotes");
    };
    if (extra.is_null()) { return; }
    if (!(is_list ? extra.is_sequence() : extra.is_mapping())) {
        const auto* expected = is_list ? "a list of name and value, as v1beta4 has it" : "a mapping, as before v1beta4";
        return fail("", expected, extra);
    }
    if (!is_list) {
        for (const auto& each : extra.members()) {
            if (each.value.is_string() || each.value.is_null()) { continue; }
            fail("." + base::escape(each.key), "a string", each.value);
        }
        return;
    }
    for (const auto& each : extra.items()) {
        if (!each.is_mapping()) {
            fail("", "name and value", each);
            continue;
        }
        for (const auto* member : {"name", "value"}) {
            const auto* found = each.find(member);
            if (found == nullptr || found->is_string() || found->is_null()) { continue; }
            const auto name = each.get_string({"name"});
            fail(name.empty() ? std::string() : fmt::format(" ({})", base::escape(name)), "a string", *found);
        }
    }
}

void look_at_kubeadm_config(const CheckInput& input, Problems& problems) {
    const auto configuration = cluster_configuration(input.inventory);
    if (!configuration.root) { return; }
    for (const auto& wrong : wrong_cluster_fields(*configuration.root)) {
        problems.add("kubeadm-config: " + wrong, "kubectl edit configmap -n kube-system kubeadm-config");
    }
    const auto endpoint = configuration.root->get_string({"controlPlaneEndpoint"});
    if (!endpoint.empty() && !is_endpoint(endpoint)) {
        problems.add(fmt::format("controlPlaneEndpoint of kubeadm-config: expected HOST or HOST:PORT, found '{}'",
                                 base::escape(endpoint)),
                     "kubectl edit configmap -n kube-system kubeadm-config");
    }
    const bool is_list = configuration.root->get_string({"apiVersion"}) == "kubeadm.k8s.io/v1beta4";
    for (const auto& path : {std::vector<std::string_view>{"apiServer"}, {"controllerManager"}, {"scheduler"},
                             {"etcd", "local"}}) {
        const auto* part = &*configuration.root;
        std::string place;
        for (const auto member : path) {
            part = part == nullptr || !part->is_mapping() ? nullptr : part->find(member);
            place += fmt::format("{}.", member);
        }
        const auto* extra = part == nullptr || !part->is_mapping() ? nullptr : part->find("extraArgs");
        if (extra != nullptr) { look_at_extra_args(*extra, place + "extraArgs", is_list, problems); }
    }
}

bool has_label(const PodObject& pod, std::string_view key, std::string_view wanted) {
    const auto* found = find_label(pod.meta.labels, key);
    return found != nullptr && *found == wanted;
}

/// The Pods that kubeadm takes for those of a component.
std::vector<const PodObject*> marked_pods(const Inventory& inventory, std::string_view component) {
    std::vector<const PodObject*> found;
    for (const auto& pod : inventory.pods) {
        if (pod.meta.ns == "kube-system" && has_label(pod, "component", component) &&
            has_label(pod, "tier", "control-plane")) {
            found.push_back(&pod);
        }
    }
    return found;
}

bool is_address_with_port(std::string_view text) {
    const auto [host, port] = split_endpoint(text);
    return port && base::parse_number<std::uint16_t>(*port) && parse_address(host);
}

/// Whether the Pod is one of a manifest, with all that its kubelet writes.
bool is_from_kubelet(const PodObject& pod) { return find_label(pod.meta.annotations, k_source_mark) != nullptr; }

constexpr const char* k_marks_fix =
    "give the Pod in its manifest the labels and annotations that kubeadm writes: kubeadm init phase control-plane "
    "all, or etcd local, with --dry-run shows them";

/// kubeadm takes the address of a node's API server from its Pod.
void look_at_servers(const CheckInput& input, Problems& problems) {
    const auto pods = marked_pods(input.inventory, "kube-apiserver");
    const bool are_any_marked = std::any_of(pods.begin(), pods.end(), [](const auto* pod) {
        return find_label(pod->meta.annotations, k_server_mark) != nullptr;
    });
    for (const auto& running : input.seen.control_plane) {
        if (running.component != "kube-apiserver" || running.pod == nullptr) { continue; }
        std::vector<const PodObject*> own;
        std::copy_if(pods.begin(), pods.end(), std::back_inserter(own),
                     [&](const auto* pod) { return pod->node == running.node; });
        const auto name = base::escape(running.pod->meta.full_name());
        if (own.size() > 1) {
            std::vector<std::string> names;
            for (const auto* pod : own) { names.push_back(base::escape(pod->meta.full_name())); }
            problems.add(fmt::format("{} Pods on {} are labelled as its API server: {}", own.size(),
                                     base::escape(running.node), base::join(names, ", ")),
                         "take the label component=kube-apiserver from all but the API server");
            continue;
        }
        const bool is_judged = are_any_marked || is_from_kubelet(*running.pod);
        if (own.empty() && is_judged) {
            problems.add(fmt::format("Pod {} lacks the labels component=kube-apiserver and tier=control-plane", name),
                         k_marks_fix);
        }
        if (own.empty()) { continue; }
        const auto* mark = find_label(own.front()->meta.annotations, k_server_mark);
        if (mark == nullptr && is_judged) {
            problems.add(fmt::format("Pod {} has no annotation {}", name, k_server_mark), k_marks_fix);
        } else if (mark != nullptr && !is_address_with_port(*mark)) {
            problems.add(fmt::format("annotation {} of Pod {}: expected ADDRESS:PORT, found '{}'", k_server_mark, name,
                                     base::escape(*mark)),
                         k_marks_fix);
        }
    }
}

bool has_container(const PodObject& pod, std::string_view name) {
    return std::any_of(pod.containers.begin(), pod.containers.end(),
                       [&](const auto& each) { return each.name == name; });
}

/// Each Pod that is labelled as etcd has to name its address, and one has to be labelled so.
void look_at_etcd(const CheckInput& input, Problems& problems) {
    const auto configuration = cluster_configuration(input.inventory);
    const auto* external = configuration.root ? configuration.root->find_path({"etcd", "external"}) : nullptr;
    if (external != nullptr && !external->is_null()) { return; }
    const auto pods = marked_pods(input.inventory, "etcd");
    for (const auto& pod : input.inventory.pods) {
        const bool is_etcd = pod.meta.ns == "kube-system" && is_from_kubelet(pod) && has_container(pod, "etcd");
        if (!pods.empty() || !is_etcd) { continue; }
        problems.add(fmt::format("Pod {} lacks the labels component=etcd and tier=control-plane",
                                 base::escape(pod.meta.full_name())),
                     k_marks_fix);
    }
    const auto is_marked = [](const auto* pod) { return find_label(pod->meta.annotations, k_etcd_mark) != nullptr; };
    const bool are_any_marked = std::any_of(pods.begin(), pods.end(), is_marked);
    for (const auto* pod : pods) {
        if (is_marked(pod) || !(are_any_marked || is_from_kubelet(*pod))) { continue; }
        problems.add(fmt::format("Pod {} is labelled as etcd and has no annotation {}",
                                 base::escape(pod->meta.full_name()), k_etcd_mark),
                     pod->is_mirror ? k_marks_fix : "take the label component=etcd from what is not a member of etcd");
    }
}

/// Whether that kubeadm keeps the runtime's socket in instance-config.yaml.
bool keeps_instance_config(const CheckInput& input, const Version& kubeadm) {
    const auto configuration = cluster_configuration(input.inventory);
    const auto* gate =
        configuration.root ? configuration.root->find_path({"featureGates", "NodeLocalCRISocket"}) : nullptr;
    const auto is_set = gate == nullptr ? std::nullopt : gate->as_bool();
    return kubeadm.line() >= MinorVersion{1, 32} && is_set.value_or(kubeadm.line() >= MinorVersion{1, 34});
}

/// The flags in kubeadm-flags.env as kubeadm reads them; nullopt if it reads none of its form.
std::optional<std::vector<std::string>> words_of_flags(std::string_view text) {
    text = base::trim(text);
    if (!text.starts_with(k_flags_variable)) { return std::nullopt; }
    text.remove_prefix(k_flags_variable.size());
    while (text.starts_with('"')) { text.remove_prefix(1); }
    while (text.ends_with('"')) { text.remove_suffix(1); }
    std::vector<std::string> words;
    std::string spaced(text);
    std::replace_if(spaced.begin(), spaced.end(), [](char c) { return c == '\n' || c == '\t' || c == '\r'; }, ' ');
    for (const auto word : base::split(spaced, ' ')) {
        if (!word.empty()) { words.emplace_back(word); }
    }
    return words;
}

/// A flag without a value that kubeadm joins with what follows it, "" if there is none.
std::string joined_flag(const std::vector<std::string>& words) {
    for (std::size_t i = 0; i < words.size(); ++i) {
        if (words[i].find('=') != std::string::npos) { continue; }
        if (i + 1 == words.size() || words[i + 1].starts_with("-")) { return words[i]; }
        ++i;
    }
    return {};
}

/// Whether kubeadm finds the runtime's socket among the flags. It takes the next word for the value of any flag without
/// "=", also if that is a flag.
bool finds_endpoint(const std::vector<std::string>& words) {
    for (std::size_t i = 0; i < words.size(); ++i) {
        const bool is_joined = words[i].find('=') == std::string::npos;
        if (is_joined && i + 1 == words.size()) { return false; }
        const auto word = is_joined ? words[i] + "=" + words[i + 1] : words[i];
        if (word.starts_with(k_endpoint_flag) && word.find('=') == k_endpoint_flag.size() &&
            word.size() > k_endpoint_flag.size() + 1) {
            return true;
        }
        if (is_joined) { ++i; }
    }
    return false;
}

/// Whether that kubeadm writes instance-config.yaml on a node that lacks it.
bool makes_instance_config(const CheckInput& input, const Version& kubeadm) {
    return keeps_instance_config(input, kubeadm) && !skips_phase(input, "kubelet-config");
}

/// Why kubeadm of a version on the way ends at the files with the kubelet's flags, "" if it does not.
std::string flags_problem(const CheckInput& input, const Node& facts) {
    const auto* file = facts.find_path({"kubelet", "kubeadmFlags"});
    const auto has_instance = flag_of(facts, {"kubelet", "instanceConfig"});
    if (file == nullptr || !has_instance) { return {}; }
    const auto words = file->is_string() ? words_of_flags(file->text()) : std::nullopt;
    const auto lists = [&](std::string_view flag) {
        return words && std::any_of(words->begin(), words->end(),
                                    [&](const auto& word) { return word.starts_with(flag); });
    };
    for (const auto& kubeadm : versions_on_way(input)) {
        const bool makes_instance = !*has_instance && makes_instance_config(input, kubeadm);
        // The only one that takes --pod-infra-container-image from there.
        const bool trims = kubeadm.line() == MinorVersion{1, 35} && !skips_phase(input, "post-upgrade");
        if (!makes_instance && !trims) { continue; }
        if (!file->is_string()) {
            return fmt::format("there is no /var/lib/kubelet/kubeadm-flags.env{}, which kubeadm {} reads",
                               makes_instance ? ", nor instance-config.yaml" : "", kubeadm.text());
        }
        if (!words) { return fmt::format("kubeadm-flags.env: expected {}\"...\"", k_flags_variable); }
        const bool refuses_none = kubeadm < Version{1, 35, 1, ""};
        if (words->empty() && refuses_none) {
            return fmt::format("kubeadm-flags.env has no flag, which kubeadm {} refuses (kubeadm#3279)",
                               kubeadm.text());
        }
        const bool rewrites = (makes_instance && finds_endpoint(*words)) ||
                              (trims && lists("--pod-infra-container-image"));
        if (const auto joined = rewrites ? joined_flag(*words) : std::string(); !joined.empty()) {
            return fmt::format("kubeadm-flags.env: {} has no value, and kubeadm {} writes it again joined with what "
                               "follows",
                               base::escape(joined), kubeadm.text());
        }
    }
    return {};
}

/// Whether the Node says where the socket of its runtime is.
bool has_socket_mark(const Inventory& inventory, const std::string& name) {
    return std::any_of(inventory.nodes.begin(), inventory.nodes.end(), [&](const auto& node) {
        return node.meta.name == name && find_label(node.meta.annotations, k_socket_mark) != nullptr;
    });
}

/// Whether that kubeadm looks for the socket in instance-config.yaml.
bool reads_instance_config(const CheckInput& input, const Version& kubeadm) {
    return kubeadm.line() >= MinorVersion{1, 34} || keeps_instance_config(input, kubeadm);
}

/// kubeadm takes the socket from the Node or from instance-config.yaml, from v1.35 on else one that it finds. Where no
/// node has either, none was made by kubeadm.
void look_at_sockets(const CheckInput& input, Problems& problems) {
    if (input.nodes == nullptr || !input.target) { return; }
    const auto has_instance = [](const NodeAnswer& answer) {
        return answer.facts.is_null() ? std::nullopt : flag_of(answer.facts, {"kubelet", "instanceConfig"});
    };
    const bool is_any_named = std::any_of(input.nodes->begin(), input.nodes->end(), [&](const auto& each) {
        return has_socket_mark(input.inventory, each.first) || has_instance(each.second) == true;
    });
    if (!is_any_named) { return; }
    const auto versions = versions_on_way(input);
    for (const auto& [name, answer] : *input.nodes) {
        const auto has_file = has_instance(answer);
        if (!has_file || has_socket_mark(input.inventory, name)) { continue; }
        const auto kubeadm = std::find_if(versions.begin(), versions.end(), [&](const auto& version) {
            return version.line() < MinorVersion{1, 35} && !(*has_file && reads_instance_config(input, version));
        });
        if (kubeadm == versions.end()) { continue; }
        const bool reads_file = reads_instance_config(input, *kubeadm);
        problems.add(fmt::format("node {}: kubeadm {} finds no CRI socket: {}annotation {} of the Node{}",
                                 base::escape(name), kubeadm->text(), reads_file ? "neither " : "no ", k_socket_mark,
                                 reads_file ? " nor /var/lib/kubelet/instance-config.yaml" : ""),
                     fmt::format("kubectl annotate node NODE {}=unix:///run/containerd/containerd.sock",
                                 k_socket_mark));
    }
}

/// The one that a kubelet takes where its configuration names none.
bool is_default_socket(std::string_view socket) {
    if (socket.starts_with("unix://")) { socket.remove_prefix(7); }
    if (socket.starts_with("/var/run/")) { socket.remove_prefix(4); }
    return socket.empty() || socket == "/run/containerd/containerd.sock";
}

/// The socket that only the file of the kubelet's configuration names, which kubeadm writes; "" if there is no such.
std::string socket_of_file(const Node& facts) {
    const auto* arguments = facts.find_path({"kubelet", "arguments"});
    const auto flag = kubelet_flag(texts_of(facts, {"kubelet", "arguments"}), k_endpoint_flag);
    if (arguments == nullptr || !arguments->is_sequence() || !flag.empty()) { return {}; }
    const auto is_kept =
        !text_of(coming_kubelet_configuration(facts, Node::mapping()), {"containerRuntimeEndpoint"}).empty();
    auto socket = text_of(kubelet_configuration_of(facts), {"containerRuntimeEndpoint"});
    return is_kept || is_default_socket(socket) ? std::string() : socket;
}

/// kubeadm writes instance-config.yaml with the socket among the flags, or with none, over what the kubelet has.
void look_at_endpoint(const CheckInput& input, const std::string& name, const Node& facts, Problems& problems) {
    const auto socket = socket_of_file(facts);
    const auto words = words_of_flags(text_of(facts, {"kubelet", "kubeadmFlags"}));
    const auto has_instance = flag_of(facts, {"kubelet", "instanceConfig"});
    if (socket.empty() || !words || finds_endpoint(*words)) { return; }
    if (!kubelet_flag(*words, k_endpoint_flag).empty()) { return; }  // which the kubelet keeps
    for (const auto& kubeadm : versions_on_way(input)) {
        if (has_instance != false || !makes_instance_config(input, kubeadm)) { continue; }
        problems.add(fmt::format("{}: kubeadm-flags.env has no {}: kubeadm {} removes {} from the kubelet's "
                                 "configuration, and the kubelet then takes containerd's socket",
                                 base::escape(name), k_endpoint_flag, kubeadm.text(), base::escape(socket)),
                     fmt::format("add {}=SOCKET to kubeadm-flags.env on the node", k_endpoint_flag));
        return;
    }
}

void look_at_flags(const CheckInput& input, Problems& problems) {
    if (input.nodes == nullptr || !input.target) { return; }
    for (const auto& [name, answer] : *input.nodes) {
        if (answer.facts.is_null()) { continue; }
        if (const auto problem = flags_problem(input, answer.facts); !problem.empty()) {
            problems.add(fmt::format("{}: {}", base::escape(name), problem),
                         "write the file on the node as KUBELET_KUBEADM_ARGS=\"--name=value ...\", with "
                         "--container-runtime-endpoint among its flags");
        } else {
            look_at_endpoint(input, name, answer.facts, problems);
        }
    }
}

}  // namespace

std::vector<Version> versions_on_way(const CheckInput& input) {
    std::vector<Version> versions;
    if (!input.target) { return versions; }
    if (input.seen.faults.empty() && input.seen.lowest_control_plane() && input.seen.lowest_kubelet()) {
        for (const auto& step : find_path(input.catalogue, input.seen, *input.target).steps) {
            if (step.part == Step::Part::control_planes) { versions.push_back(step.version); }
        }
    }
    if (versions.empty()) { versions.push_back(*input.target); }
    return versions;
}

Finding kubeadm_reads(const CheckInput& input) {
    Problems problems;
    look_at_kubeadm_config(input, problems);
    look_at_component_maps(input, problems);
    look_at_servers(input, problems);
    look_at_etcd(input, problems);
    look_at_sockets(input, problems);
    look_at_flags(input, problems);
    auto finding = fail_if_any(problems.texts, "");
    finding.fix = base::join(problems.fixes, "; ");
    return finding;
}

}  // namespace kmm::kubernetes
