// SPDX-License-Identifier: Apache-2.0
// What recipes ask of a cluster: kernels, systems, versions, proxy. From a facts file, or from the cluster's objects.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "value/node.hpp"

namespace kmm::recipe::plan {

/// An image with compiler and headers for a kernel (driver-toolkit).
struct DriverToolkit {
    std::string image, kernel, rt_kernel, os_version;
};

/// One node, as far as it matters: several nodes may have the same kernel.
struct KernelFacts {
    std::string kernel;
    std::string os_image;  ///< "Red Hat Enterprise Linux CoreOS 417.94.202410211619-0 (Plow)"; "" unknown
    std::map<std::string, std::string> labels;
    std::optional<DriverToolkit> toolkit;
    bool is_asked_for = false;  ///< of --fact kernels=, "anySelector" in files: its nodes are unknown, every selector
                                ///< takes it
};

/// A release of the cluster, as resources of kind SpecialResourceModule are rendered for.
struct Release {
    std::string image;  ///< of the release itself
    std::string version, toolkit_image, kernel, rt_kernel, os;
};

struct Proxy {
    std::string http, https, no, trusted_ca;
};

/// Absent members are not known: a template that reads them is an error.
struct Facts {
    std::optional<std::string> cluster_version, os_image_url, push_secret, update_vendor, kube_version;
    std::optional<std::string> os_version, toolkit_image;   ///< of every kernel, whatever its node says
    std::vector<std::string> api_versions;
    std::optional<Proxy> proxy;
    std::map<std::string, std::string> node_labels;         ///< on every node
    std::vector<KernelFacts> kernels;                       ///< in the order of the list of nodes
    /// Nodes that Pods are kept from by a taint. They count for a resource that selects no other.
    std::vector<KernelFacts> left_out;
    std::vector<Release> releases;
    std::map<std::string, std::string> push_secrets;        ///< by namespace, of Secrets that were read
};

/// What a release of the operating system is called. All empty: not known.
struct SystemVersion {
    std::string cluster;  ///< "4.17", "" if the image does not say it
    std::string os;       ///< "9.4"
    std::string major;    ///< "9"
};

/// Of a node's osImage: "417.94.202410211619-0" is cluster 4.17 and system 9.4. Without `operator_only`, also
/// "9.6.20250203-0", which the Special Resource Operator cannot read.
[[nodiscard]] SystemVersion parse_os_image(std::string_view os_image, bool operator_only);

/// Decodes a facts file. Faults: unknown-field, wrong-type, missing-field, bad-kernel, with positions.
[[nodiscard]] Facts decode_facts(const value::Document& document, Diagnostics& faults);

/// Whether a Node with this osImage is of OKD, whose toolkit may have the headers of another kernel.
[[nodiscard]] bool is_system_of_okd(std::string_view os_image);

/// Of Nodes, ClusterVersion, Proxy, ImageStream openshift/driver-toolkit, ConfigMap machine-config-osimageurl and
/// Secrets among `objects`. Nodes that Pods are kept from by a taint are in `left_out`: the operator leaves them out.
/// Nodes without Linux are in neither list. Cordoned ones, and those with a taint of their condition, count, unless
/// `operator_only`.
[[nodiscard]] Facts observe_facts(std::span<const value::Document> objects, bool operator_only);

/// Members of `over` in place of those of `facts`.
void overlay_facts(Facts& facts, Facts over);

/// A node with what the facts say of every kernel.
[[nodiscard]] KernelFacts facts_of(const Facts& facts, KernelFacts node);

/// Kernels without a toolkit get that of the release which has their kernel, in any flavour; of several releases the
/// last listed.
void add_release_toolkits(Facts& facts);

/// What the nodes would say once all of them run `kernel`: the toolkit and the system of its release, or of a node that
/// runs it; neither is known otherwise.
[[nodiscard]] Facts facts_on(const Facts& facts, const std::string& kernel);

/// Adds to the nodes the same nodes with `kernel`, as facts_on has them; nothing if one runs it. Error: usage
/// "bad-kernel" for a text that no kernel could be called.
void add_next_kernel(Facts& facts, const std::string& kernel);

/// Sets one member by "clusterVersion=4.17.4" or "proxy.httpProxy=http://p:3128"; "kernels=A,B" keeps the kernels of
/// the list and adds those that are missing; osVersion and driverToolkitImage are of every kernel. Errors: usage
/// "bad-value", "bad-kernel".
void set_fact(Facts& facts, std::string_view assignment);

/// As a facts file has them.
[[nodiscard]] value::Node releases_node(const std::vector<Release>& releases);

/// As a facts file has it.
[[nodiscard]] value::Node facts_node(const Facts& facts);

}  // namespace kmm::recipe::plan
