// SPDX-License-Identifier: Apache-2.0
// What kustomizations in a directory say of the files beside them. They are not built.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cluster/folder/name_affixes.hpp"
#include "value/node.hpp"

namespace kmm::cluster {

/// A ConfigMap or Secret that a generator makes.
struct GeneratedObject {
    value::Document document;
    bool has_hash = false;  ///< kustomize appends one to the name, and leaves the name in Modules as it is
};

/// Whether a file has a name that kustomize looks for.
[[nodiscard]] bool is_kustomization(const std::string& file);

/// Into which namespace objects are moved, as kustomize and Fleet do.
struct MovedObjects {
    std::string to;        ///< "" for none
    bool renames = false;  ///< Namespaces get that name, too
    bool moves = true;     ///< false: only Namespaces change whose text is no name

    /// What an object is.
    struct Kind {
        std::string version, name;
    };
    /// Changes an object, or those of a list, that say a namespace. Places stay. Adds those of Namespaces with the name
    /// `to` to `namespaces`.
    void apply(value::Node& object, std::vector<value::Mark>& namespaces) const;

private:
    void apply(value::Node& object, const Kind& listed, std::vector<value::Mark>& namespaces) const;
};

/// The kustomizations among the files of a directory.
class Kustomizations {
public:
    /// `files` as object_files lists them below the directory `top`, without those that are left out; a file without
    /// an ending is if `is_ignored` says so of its name below `top`. A kustomization that cannot be read says nothing.
    [[nodiscard]] static Kustomizations among(const std::string& top, const std::vector<std::string>& files,
                                              const std::function<bool(std::string_view file)>& is_ignored);

    /// Whether a kustomization has a file as a patch or as a setting, and none as a resource: what stands there is no
    /// object, or half of one.
    [[nodiscard]] bool is_part(const std::string& file) const;
    /// The namespace into which kustomize moves all objects of a file, whatever they say: that of the outermost
    /// kustomization. "" if none says one, or if several have the file, or the directory of one of them, as a resource:
    /// each makes objects of its own.
    [[nodiscard]] std::string moved_to(const std::string& file) const;
    /// The directory of that outermost kustomization; "" for a file that is a resource of none, or of several.
    [[nodiscard]] std::string built_by(const std::string& file) const { return move_of(file).built; }
    /// Whether each kustomization that has a file as a resource is, or is for another that is, one with a namespace.
    [[nodiscard]] bool is_always_moved(const std::string& file) const;
    /// Which namespace objects of a file get that say none: moved_to, else that of all the nearest kustomizations with
    /// one, else "": also if those have different ones.
    [[nodiscard]] std::string namespace_of(const std::string& file) const;
    /// The namespaces of the nearest kustomizations with one, each with the file of one that says it.
    [[nodiscard]] std::map<std::string, std::string> given_to(const std::string& file) const;
    /// The directory of a file, and those of the kustomizations that it is a resource of, nearest first.
    [[nodiscard]] std::vector<std::string> directories_of(const std::string& file) const;
    /// What kustomize adds to names in a file, or in what a directory makes, one for each way to an outermost
    /// kustomization that differs: never empty. Nothing is added if a kustomization may bring the names into Modules.
    [[nodiscard]] std::vector<NameAffixes> affixes_of(const std::string& place) const;
    /// The kustomizations that change objects of a file in more than moved_to and namespace_of say: sorted. It is read
    /// if one has a namespace. Errors: as TextSource.
    [[nodiscard]] std::vector<std::string> changing(const std::string& file) const;
    /// The files of kustomizations with resources that are not below `top`, sorted: those with a path that leads out of
    /// it, and those of another repository that have patches of objects of KMM. Errors: as TextSource.
    [[nodiscard]] std::vector<std::string> not_built() const;
    /// The ConfigMaps and Secrets that generators make, each by its name without the hash that kustomize appends, with
    /// the keys and without the texts. Their namespace is "" where no kustomization says one. ConfigMaps whose keys are
    /// not in a kustomization are left out; Secrets are without data then.
    [[nodiscard]] std::vector<GeneratedObject> generated_objects() const;

private:
    struct Kustomization {
        std::string file, directory;
        std::string given_namespace;   ///< "" if it says none
        std::set<std::string> resources;   ///< files, and directories of other kustomizations
        std::set<std::string> components;  ///< directories; what they do is done to the resources, too
        NameAffixes affixes;
        bool changes = false;
        bool leads_out = false;           ///< a resource is a path that is not below the top
        bool is_of_far = false;           ///< a resource is in another repository
        bool names_kmm = false;           ///< it has a patch of objects of KMM in it
        std::set<std::string> parts = {};  ///< files of patches and settings
        std::vector<std::pair<value::Node, bool>> generated;  ///< objects, each and whether its name gets a hash
    };

    struct Move {
        std::string to, built;  ///< see moved_to and built_by
    };

    void add(const std::string& file, std::string_view text);
    [[nodiscard]] Move move_of(const std::string& file) const;
    /// is_always_moved of what lies at `place`, a file or directory. `seen`: those that were asked.
    [[nodiscard]] bool is_always_moved(const std::string& place, std::set<std::size_t>& seen) const;
    /// affixes_of from `place` outwards, where `inner` is added so far, at the depth `depth`.
    void add_affixes(const std::string& place, const NameAffixes& inner, std::size_t depth,
                     std::vector<NameAffixes>& found) const;
    /// Notes which kustomizations change objects by a component, as it does itself or cannot be seen.
    void follow_components();
    /// Adds to `given` what given_to says of `place`, a file or directory. `seen`: those that were asked.
    void add_given(const std::string& place, std::set<std::size_t>& seen,
                   std::map<std::string, std::string>& given) const;
    /// Those that a file is a resource of, nearest first.
    [[nodiscard]] std::vector<const Kustomization*> users_of(const std::string& file) const;

    std::string top_;  ///< as `joined` writes it
    std::vector<Kustomization> all_;
    std::map<std::string, std::vector<std::size_t>> by_resource_;
    std::set<std::string> parts_;
    bool knows_references_ = false;  ///< a kustomization may bring made names into Modules
};

}  // namespace kmm::cluster
