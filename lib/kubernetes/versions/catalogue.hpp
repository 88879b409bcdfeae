// SPDX-License-Identifier: Apache-2.0
// Metadata of Kubernetes versions: which there are, which may follow which, and what each brings and takes away.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "kubernetes/versions/applications.hpp"
#include "kubernetes/versions/version.hpp"

namespace kmm::kubernetes {

/// One entry of `versions:`.
struct VersionEntry {
    Version version;
    /// nullopt where the entry says nothing: lower patches of its minor and every version of the minor below.
    std::optional<std::vector<Version>> upgrade_from;
    std::vector<Version> downgrade_to;  ///< lower patches of its minor
    std::vector<std::string> applied_patches, available_patches;
    std::string etcd, coredns, pause;  ///< tags of the images that kubeadm of this version deploys; "" where not known
    Position position;

    /// Whether control planes of `from` may be upgraded to this version in one step.
    [[nodiscard]] bool follows(const Version& from) const;
};

/// What a minor no longer accepts that the minor before it did. Flags are without dashes.
struct Removals {
    bool complete = false;  ///< nothing else was removed; otherwise the lists may lack something
    std::vector<std::string> apiserver_flags, controller_manager_flags, scheduler_flags, kubelet_flags;
    std::vector<std::string> admission_plugins, feature_gates;
    std::vector<std::string> locked_gates;  ///< "NAME=BOOL": any other setting is refused from here on
};

/// What is wrong with some patches of a minor.
struct KnownIssue {
    std::vector<Version> versions;  ///< at least one, all of the minor
    std::string issue;              ///< a phrase
    bool needs_other_host_name = false;  ///< it meets only Nodes whose name is not that of their host
};

/// One entry of `minors:`.
struct MinorFacts {
    MinorVersion minor;
    bool needs_cgroup_v2 = false;  ///< its kubelet refuses cgroup v1 unless failCgroupV1 is false
    Removals removed;
    std::vector<KnownIssue> known_issues;
    Position position;
};

/// A file of metadata. `versions` and `minors` are sorted and have no doubles; `applications` are as they stand there.
struct Catalogue {
    std::vector<VersionEntry> versions;
    std::vector<MinorFacts> minors;
    std::vector<Application> applications;
    std::string source;  ///< the file, or "built in"

    /// nullptr if it is not there.
    [[nodiscard]] const VersionEntry* find(const Version& version) const noexcept;
    [[nodiscard]] const MinorFacts* facts_of(MinorVersion minor) const noexcept;
    /// Those of `known_issues` that name the version.
    [[nodiscard]] std::vector<const KnownIssue*> issues_of(const Version& version) const;
};

/// Reads a text of YAML or JSON: a mapping with `versions`, and optionally `minors` and `applications`. All faults are
/// appended, each with its place: those of the readers, bad-value, missing-field, unknown-field, duplicate-version,
/// version-order. With faults the result is not usable.
[[nodiscard]] Catalogue read_catalogue(std::string_view text, const std::string& file, Diagnostics& diagnostics);

/// manifests/kubernetes-versions.yaml as it was when the program was built.
[[nodiscard]] const Catalogue& builtin_catalogue();

/// Adds to `catalogue` what `other` knows and it does not: minors, and tags of images of the versions that it lists.
void add_known(Catalogue& catalogue, const Catalogue& other);

}  // namespace kmm::kubernetes
