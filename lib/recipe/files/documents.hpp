// SPDX-License-Identifier: Apache-2.0
// Documents, facts and charts of recipes.
#pragma once

#include <filesystem>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "cli/app.hpp"
#include "kube/client.hpp"
#include "recipe/chart/chart.hpp"
#include "recipe/files/chart_files.hpp"
#include "recipe/resource/facts.hpp"
#include "recipe/resource/release_kinds.hpp"
#include "recipe/resource/resource.hpp"
#include "value/node.hpp"

namespace kmm::cluster {
class Ignored;
}

namespace kmm::recipe::files {

/// Reads a file, or standard input for "-"; items of a List stand for themselves. Faults: "file-not-found",
/// "unreadable-file", those of the readers.
void read_document_file(const std::string& name, std::vector<value::Document>& all, Diagnostics& faults);

/// Appends what read_cluster_resources finds, but for objects that `all` has. Errors: those of the client.
void add_cluster_resources(kube::Client& client, std::vector<value::Document>& all);

/// What -f names.
struct RecipeDocuments {
    std::vector<value::Document> all;
    std::vector<recipe::plan::SpecialResource> resources;
    std::vector<recipe::plan::SpecialResourceModule> modules;
    std::vector<recipe::plan::ReleaseValidation> validations;
    /// What is rendered is applied: as root, charts count only if nobody else can change them.
    bool is_applied = false;
};

/// Decodes those of `all` that are of recipes. All faults are appended, two resources of one name among them; with an
/// error among them, what comes back is not usable.
[[nodiscard]] RecipeDocuments decode_documents(std::vector<value::Document> all, Diagnostics& faults);

/// -f and --ignore. Directories are read as cluster::read_documents does it, without their charts. Documents without
/// SpecialResources are among `all` only. With a `client`, SpecialResources of the server follow, but for names that -f
/// has, with the ConfigMaps that their charts are in. Globs of --ignore that match nothing are said on standard error.
/// Errors: usage "no-source" without -f and client, "missing-option" for --ignore without a directory; data or
/// not_found with all faults of all files, two resources of one name among them; those of the client.
[[nodiscard]] RecipeDocuments read_recipe_documents(const cli::Args& args, cli::Context& context,
                                                    kube::Client* client = nullptr);
/// The same without words about `ignored`.
[[nodiscard]] RecipeDocuments read_recipe_documents(const cli::Args& args, cluster::Ignored& ignored,
                                                    kube::Client* client = nullptr);

/// What is known of the cluster: objects of the documents, --facts over them, then --fact.
[[nodiscard]] recipe::plan::Facts read_facts(const cli::Args& args, const RecipeDocuments& documents,
                                             bool operator_only);

/// Where charts come from: --chart, by the name of the resource or of its chart; local repositories below the current
/// directory, those of the documents and of -f; ConfigMaps among the documents.
class ChartPlaces {
public:
    /// `main` is the resource that a --chart without a name is for. Errors: usage "bad-value" for a chart given twice,
    /// without a name where there are several resources, or with a name that nothing among the documents has.
    ChartPlaces(const cli::Args& args, const RecipeDocuments& documents, const std::vector<std::string>& names);

    /// Reads the charts of --chart. Errors: those of read_chart.
    void require_given() const;

    /// Loads the chart of a resource, once. Thread safe; charts of several resources are loaded at the same time.
    /// Errors: not_found "chart-not-found"; no_permission "untrusted-file"; those of read_chart.
    [[nodiscard]] recipe::chart::Chart chart(const std::string& resource,
                                             const recipe::plan::ChartReference& reference);

private:
    const RecipeDocuments& documents_;
    OuterLinks links_;
    std::vector<std::filesystem::path> roots_;  ///< where charts of spec.chart.repository may be
    std::map<std::string, std::string> given_;
    std::mutex mutex_;  ///< of loaded_
    std::map<std::string, recipe::chart::Chart> loaded_;
    recipe::chart::Chart read(const std::string& place) const;
    recipe::chart::Chart load(const std::string& resource, const recipe::plan::ChartReference& reference) const;
    /// Of the file that has it; "" for the current one and for what is not read from files.
    std::string directory_of_resource(const std::string& resource) const;
    recipe::chart::Chart from_config_map(const std::string& resource,
                                         const recipe::plan::ChartReference& reference) const;
};

}  // namespace kmm::recipe::files
