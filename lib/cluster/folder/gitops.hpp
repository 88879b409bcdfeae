// SPDX-License-Identifier: Apache-2.0
// What Argo CD, Flux and Fleet do with objects of a repository, namespaces first: their own objects in it say it.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cluster/folder/flux_variables.hpp"
#include "value/node.hpp"

namespace kmm::cluster {

/// A namespace that one of them gives.
struct GitOpsNamespace {
    std::string name;        ///< "" for none
    bool is_forced = false;  ///< objects that say another get it, too
    bool is_of_kustomize = false;  ///< Namespaces get that name, too
};

/// An object of Argo CD or Flux that changes the objects of its path in more than their namespace.
struct GitOpsChange {
    std::string file;         ///< that the object is in
    std::string subject;      ///< such as "Kustomization drivers of Flux"
    std::string command;      ///< that prints the changed objects
    bool has_patches = false;  ///< or images, prefixes and the like: changes that are not followed
    FluxVariables variables;
    std::string include = {}, exclude = {};  ///< patterns of files below the path; "" for none
};

/// That the patches and the like of a change were not followed: a note "kustomize-not-built".
[[nodiscard]] Diagnostic not_followed(const GitOpsChange& change);

/// What is to be said of an object whose variables could not all be replaced: an error "unknown-template-variable" if
/// Flux refuses an object of KMM or a ConfigMap with a Dockerfile, a warning of that code for a variable in such an
/// object that Flux replaces by nothing, and a note "kustomize-not-built" for an object that was not read: the cluster
/// may have the value, or a function is not followed.
[[nodiscard]] Diagnostics report_variables(const value::Document& document, const ReplacedVariables& replaced,
                                           const GitOpsChange& change);

/// Gives faults of type of an object that stand at a replaced text the hint that its quotes do not count for Flux.
void explain_types(std::span<Diagnostic> faults, const value::Document& document, const ReplacedVariables& replaced);

/// The paths that Applications and ApplicationSets of Argo CD, Kustomizations of Flux and a fleet.yaml apply, with the
/// namespace of objects that say none (destination.namespace, defaultNamespace) or of all (targetNamespace,
/// kustomize.namespace, namespace of fleet.yaml).
class GitOpsPaths {
public:
    /// `files` as object_files lists them below the directory `top`. A file that cannot be read, one that is packed,
    /// and an object with variables in its path or namespace, say nothing; nor do objects that name several
    /// repositories between them.
    [[nodiscard]] static GitOpsPaths among(const std::string& top, const std::vector<std::string>& files);

    /// The namespace for what lies in one of `directories`: that of the longest path. None if no path leads there, or
    /// several with different namespaces. Paths begin at the root of a repository: that is `top`, or, where `top` holds
    /// no such directory and ends as the path begins, a directory above it. O(paths of equal length that lead there).
    /// `file` lies in the first of them, and no namespace comes from an Application that leaves it out.
    [[nodiscard]] GitOpsNamespace namespace_of(const std::vector<std::string>& directories,
                                               const std::string& file) const;
    /// The namespaces that those with the longest path give, each with the file of one that says it.
    [[nodiscard]] std::map<std::string, std::string> given_to(const std::vector<std::string>& directories,
                                                              const std::string& file) const;
    /// What changes objects in one of `directories`: that of the longest path, as above; nullopt for nothing. Of
    /// several the variables on which they agree have a value. O(as above).
    [[nodiscard]] std::optional<GitOpsChange> change_of(const std::vector<std::string>& directories,
                                                        const std::string& file) const;

private:
    struct Applied {
        std::string path;         ///< "" for the root
        GitOpsNamespace given;
        bool with_below = false;  ///< directories below it, too
        bool is_bundle = false;   ///< `path` is below `top` already: it has a fleet.yaml
        std::shared_ptr<GitOpsChange> change = {};  ///< all that one object applies have the same; none of a bundle
        std::vector<std::string> excluded = {};  ///< patterns, if `path` is one

        [[nodiscard]] bool has_patterns() const;
        /// Whether its patterns leave out `file`, written below the top.
        [[nodiscard]] bool leaves_out(const std::string& file) const;
    };

    void add(const value::Node& root, const std::string& file);
    void add_bundle(const value::Node& root, const std::string& file);
    /// Adds those of whole_ whose repository is the one that all Kustomizations with a path name. If there are none,
    /// nothing says that the directory is that repository.
    void take_whole();
    void add_path(const std::string& path, GitOpsNamespace given, bool with_below,
                  std::shared_ptr<GitOpsChange> change, std::vector<std::string> excluded = {});
    /// Puts what patterns mean in their place. `whole` is the absolute path of `top`. Of one object a directory gets
    /// two namespaces at most: with two, none of them is certain.
    void expand_patterns(const std::set<std::string>& directories, const std::string& whole);
    /// Those with the longest path that leads to one of `directories`, but for those that leave `file` out.
    [[nodiscard]] std::vector<const Applied*> applied_to(const std::vector<std::string>& directories,
                                                         const std::string& file,
                                                         bool (*is_meant)(const Applied&)) const;
    /// Makes all paths relative to `top`; what does not lead into it goes.
    void resolve(const std::vector<std::string>& files);
    [[nodiscard]] static bool gives_namespace(const Applied& each);
    [[nodiscard]] std::string below_top(const std::string& directory) const;

    std::string top_, named_;  ///< the second as the user wrote it
    std::vector<Applied> all_;
    std::map<std::string, std::vector<std::size_t>> by_path_;  ///< places in all_
    std::set<std::string> argo_repositories_, flux_repositories_;
    /// Of Flux without a path: the root of the GitRepository with that name.
    std::vector<std::pair<std::string, Applied>> whole_;
};

}  // namespace kmm::cluster
