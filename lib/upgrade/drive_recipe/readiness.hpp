// SPDX-License-Identifier: Apache-2.0
// When an object of a recipe is ready, by its kind. Pure: what it looks at was read before.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "value/node.hpp"

namespace kmm::drive {

/// Whether the rollout waits for the object: the annotation specialresource.openshift.io/wait is "true", or it is a
/// definition of a kind or a hook of Helm.
[[nodiscard]] bool is_gated(const value::Node& object);

/// The annotation driver-container-vendor, "" for none: it pairs drivers with what builds their image.
[[nodiscard]] std::string driver_vendor(const value::Node& object);
/// Whether the object builds the image of drivers of its vendor: a BuildConfig or a Job.
[[nodiscard]] bool is_paired_build(const value::Node& object);
/// Why one of the Pods has not started: "image r/a of Pod demo/a-x cannot be pulled: ErrImagePull: ..."; "" if all
/// images are there, as far as kubelets say.
[[nodiscard]] std::string missing_image(const std::vector<value::Node>& pods);

/// The annotation wait-for-logs, "" for none.
[[nodiscard]] std::string log_pattern(const value::Node& object);
/// Why the annotation wait-for-logs cannot be obeyed: a bad regular expression, or a kind without Pods. "" if it can,
/// or is absent.
[[nodiscard]] std::string log_pattern_fault(const value::Node& object);
/// Whether the end of a log, its last 100 bytes, matches `pattern`.
[[nodiscard]] bool log_matches(const std::string& pattern, std::string_view log);

/// What a live object still lacks, "" if it is ready. A Pod is ready when it has succeeded; a Job when it is complete;
/// DaemonSet, Deployment and StatefulSet when all Pods are updated and available; a BuildConfig when its newest Build,
/// one of `builds`, is complete; a definition of a kind when it is established; a Namespace when it is active; a
/// PersistentVolumeClaim when it is bound; a Service when its load balancer has an address; a ReplicaSet when its Pods
/// are available; a Module when it is on all nodes that it selects. Other
/// objects are ready when they exist, their controller has seen this generation where it says what it has seen, and no
/// condition Ready or Available denies it; an APIService, objects of cert-manager and runs of builds need their
/// condition. Errors: unhealthy "gate-failed" for what will not become ready: a failed Job, Pod, Build or run.
[[nodiscard]] std::string readiness_problem(const value::Node& live, const std::vector<value::Node>& builds);

/// What keeps an object that is being deleted, to be written behind a sentence: " (Some content in the namespace has
/// finalizers remaining: ...)", or the finalizers of others; "" if nothing is known.
[[nodiscard]] std::string deletion_obstacle(const value::Node& live);

/// How many Pods a live object wants: none where a DaemonSet selects no node, or a Deployment is scaled to 0; one where
/// nothing says it.
[[nodiscard]] std::int64_t wanted_pods(const value::Node& live);

/// The label of nodes with their kernel, that of the node feature discovery.
inline constexpr std::string_view k_kernel_label = "feature.node.kubernetes.io/kernel-version.full";

/// Which labels decide: every one, or every one but that of the kernel.
enum class Label { every, any_kernel };
/// Whether the nodeSelector of the DaemonSet's Pods selects a node with these labels.
[[nodiscard]] bool selects(const value::Node& daemon_set, const value::Node& labels, Label which);

/// Of a DaemonSet that is the copy for `kernel`: nodes that run this kernel and are selected but for the label of the
/// kernel, which they lack. No Pod would come there, and the DaemonSet would look ready.
[[nodiscard]] std::vector<std::string> nodes_without_kernel_label(const value::Node& daemon_set,
                                                                  const std::string& kernel,
                                                                  const std::vector<value::Node>& nodes);

/// Whether `owned` has an owner with the uid of `owner`.
[[nodiscard]] bool is_owned_by(const value::Node& owned, const value::Node& owner);

}  // namespace kmm::drive
