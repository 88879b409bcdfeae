// SPDX-License-Identifier: Apache-2.0
// What the renderers share. Internal to lib/render.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "plan/decide/verdict.hpp"
#include "render/manifests.hpp"

namespace kmm::render {

inline constexpr std::string_view k_worker_finalizer = "kmm.node.kubernetes.io/nodemodulesconfig-reconciler";
inline constexpr std::string_view k_plugin_finalizer = "kmm.node.kubernetes.io/node-labeler";
inline constexpr std::string_view k_gc_delay_finalizer = "kmm.node.kubernetes.io/gc-delay";
inline constexpr std::string_view k_job_event_finalizer = "kmm.node.kubernetes.io/job-event-finalizer";

/// One rendering: its input, and the findings so far.
struct Scene {
    const api::Objects& objects;
    const Options& options;
    api::ScheduleKey schedule_key = api::ScheduleKey::schedule_pod;
    std::vector<plan::Verdict> verdicts{};  ///< of options.plan; empty where nothing that is rendered looks at them
    Diagnostics findings{};

    /// Whether the objects are of a KMM up to v2.6.0.
    [[nodiscard]] bool is_released() const { return schedule_key == api::ScheduleKey::device_plugin; }
    /// Appends a warning about `module` at the place of `field` (a path like "spec.imageRepoSecret"), if it is known.
    void warn(const api::Module* module, std::string_view field, std::string code, std::string message,
              std::string hint = "");
    /// The Module of an entry, nullptr if it is not among the objects. O(log Modules).
    [[nodiscard]] const api::Module* find_module(std::string_view ns, std::string_view name) const;
    /// `names` as metadata.finalizers, or an empty list if the options want none.
    [[nodiscard]] std::vector<std::string> finalizers(std::vector<std::string> names) const;
};

/// Puts the keys of every mapping of the tree in alphabetical order.
void sort_keys(value::Node& node);
/// The same tree with the keys of every mapping in alphabetical order.
[[nodiscard]] value::Node in_key_order(value::Node node);
/// FNV-1a, 64 bit, of the compact JSON text, as decimal digits.
[[nodiscard]] std::string tree_hash(const value::Node& node);
/// Five characters that differ for different texts (in all likelihood), of the alphabet of Kubernetes' generated names.
[[nodiscard]] std::string short_hash(std::string_view text);
/// The longest name of an object, in bytes.
inline constexpr std::size_t k_name_length_max = 253;
/// `name`, or its start and a hash if it has more than `length_max` bytes.
[[nodiscard]] std::string shortened(const std::string& name, std::size_t length_max);

enum class Access { read_only, read_write };
[[nodiscard]] value::Node mount(std::string_view name, std::string_view path, Access access = Access::read_write);
[[nodiscard]] value::Node host_path(std::string_view name, std::string_view path, std::string_view type);
/// {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}
[[nodiscard]] value::Node env_field(std::string_view name, std::string_view path);
/// A volume with one annotation of the Pod as file.
[[nodiscard]] value::Node annotation_volume(std::string_view name, std::string_view annotation, std::string_view file);
/// A volume with a Secret; `key` and `file` "" for all of it.
[[nodiscard]] value::Node secret_volume(const std::string& name, const std::string& secret, std::string_view key = "",
                                        std::string_view file = "");
[[nodiscard]] value::Node label_tree(const api::Labels& labels);
[[nodiscard]] value::Node toleration_list(const std::vector<api::Toleration>& tolerations);
/// An entry of ownerReferences. `uid` must not be empty.
[[nodiscard]] value::Node owner_reference(std::string_view api_version, std::string_view kind, const std::string& name,
                                          const std::string& uid);
/// As owner_reference, of the one controller.
[[nodiscard]] value::Node controller_reference(std::string_view api_version, std::string_view kind,
                                               const std::string& name, const std::string& uid);
/// Sets spec.imagePullSecrets if there is a Secret, spec.tolerations if there are any.
void set_pull_secret(value::Node& spec, const std::string& secret);
void set_tolerations(value::Node& spec, const std::vector<api::Toleration>& tolerations);
/// Sets metadata.finalizers and metadata.ownerReferences unless they are empty.
void set_finalizers(value::Node& metadata, const std::vector<std::string>& finalizers);
void set_owner(value::Node& metadata, value::Node reference);
[[nodiscard]] value::Node object(std::string_view api_version, std::string_view kind, value::Node metadata,
                                 value::Node spec);

/// "<name>-device-plugin-" or "<name>-dra-" with a hash of namespace, name and version: the name of a DaemonSet.
[[nodiscard]] std::string daemon_set_name(const api::Module& module, std::string_view role, const std::string& version);

/// The groups. Each appends to `out`.
void add_namespaces(Scene& scene, std::vector<value::Node>& out);
void add_rbac(Scene& scene, std::vector<value::Node>& out);
void add_worker_pods(Scene& scene, std::vector<value::Node>& out);
void add_device_plugins(Scene& scene, std::vector<value::Node>& out);
void add_dra(Scene& scene, std::vector<value::Node>& out);

/// Which images: all that the plan asks for, or those that are missing.
enum class Images { all, missing };
void add_build_pods(Scene& scene, Images images, std::vector<value::Node>& out);
void add_sign_pods(Scene& scene, Images images, std::vector<value::Node>& out);
void add_pull_pods(Scene& scene, std::vector<value::Node>& out);

}  // namespace kmm::render
