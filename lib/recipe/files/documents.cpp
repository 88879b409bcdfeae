// SPDX-License-Identifier: Apache-2.0
#include "recipe/files/documents.hpp"

#include <algorithm>
#include <array>
#include <filesystem>

#include <fmt/format.h>

#include "api/recipe_kind.hpp"
#include "base/clean_path.hpp"
#include "base/text.hpp"
#include "cluster/folder/documents.hpp"
#include "cluster/folder/ignored.hpp"
#include "recipe/files/chart_files.hpp"
#include "recipe/files/observe.hpp"
#include "recipe/plan/recipes.hpp"
#include "recipe/resource/graph.hpp"
#include "sys/directory.hpp"
#include "sys/file_ops.hpp"
#include "sys/real_path.hpp"
#include "sys/trusted_tree.hpp"
#include "value/reader.hpp"

namespace kmm::recipe::files {

namespace fs = std::filesystem;
namespace rp = recipe::plan;

namespace {

void add_fault(Diagnostics& faults, const std::string& code, std::string message, Position place, std::string hint,
               Exit exit = Exit::data) {
    faults.push_back({Severity::error, code, std::move(message), std::move(place), std::move(hint), exit});
}

/// Items of a List stand for themselves.
void add_document(value::Document document, std::vector<value::Document>& all) {
    const value::Node* items = document.root.find("items");
    const std::string kind = document.root.get_string({"kind"});
    if (items == nullptr || !kind.ends_with("List")) {
        all.push_back(std::move(document));
        return;
    }
    for (const auto& item : items->items()) {
        value::Document one{document.file, item, document.index, document.written};
        // Items of a typed list do not say what they are.
        if (item.is_mapping() && item.find("kind") == nullptr && kind != "List") {
            one.root.set("kind", kind.substr(0, kind.size() - 4));
            one.root.set("apiVersion", document.root.get_string({"apiVersion"}));
        }
        add_document(std::move(one), all);
    }
}

/// Documents as they stand: charts take any of them.
class RecipeTarget final : public cluster::DocumentTarget {
public:
    explicit RecipeTarget(std::vector<value::Document>& all) : all_(all) {}

    [[nodiscard]] bool has_namespace() const override { return true; }
    [[nodiscard]] bool leaves_charts() const override { return true; }
    /// Facts of the cluster come from these, and the mirrors of its images.
    [[nodiscard]] bool uses(const std::string& api_version, const std::string& kind) const override {
        constexpr std::array<std::string_view, 6> kinds{
            "ClusterVersion",      "Proxy",      "ImageStream", "ImageDigestMirrorSet", "ImageTagMirrorSet",
            "ImageContentSourcePolicy"};
        return api_version.find(".openshift.io/") != std::string::npos &&
               std::find(kinds.begin(), kinds.end(), kind) != kinds.end();
    }
    void take(const value::Document& document, Diagnostics& diagnostics) override {
        if (document.root.find("kind") == nullptr) {
            Diagnostic note;
            note.severity = Severity::note;
            note.code = "unknown-kind";
            note.message = "the document has no kind";
            note.position = document.position(document.root.mark());
            note.is_of_no_object = true;
            diagnostics.push_back(std::move(note));
        }
        add_document(document, all_);
    }

private:
    std::vector<value::Document>& all_;
};

bool has_chart(const std::string& path) { return fs::is_regular_file(path) || fs::exists(path + "/Chart.yaml"); }

Error chart_not_found(const std::string& resource, const rp::ChartReference& reference, std::string message) {
    return Error(Exit::not_found, "chart-not-found", fmt::format("{}: {}", resource, message))
        .at(reference.origin)
        .hint(fmt::format("--chart {}=DIR names a directory with Chart.yaml, or a .tgz", resource));
}

}  // namespace

void add_cluster_resources(kube::Client& client, std::vector<value::Document>& all) {
    const auto id_of = [](const value::Document& document) {
        const auto& root = document.root;
        return root.get_string({"kind"}) + ' ' + root.get_string({"metadata", "namespace"}) + '/' +
               root.get_string({"metadata", "name"});
    };
    for (auto& document : read_cluster_resources(client)) {
        const auto id = id_of(document);
        const bool is_given =
            std::any_of(all.begin(), all.end(), [&](const value::Document& given) { return id_of(given) == id; });
        if (!is_given) { all.push_back(std::move(document)); }
    }
}

void read_document_file(const std::string& name, std::vector<value::Document>& all, Diagnostics& faults) {
    try {
        const std::string text = name == "-" ? sys::read_fd(0, "-") : sys::read_file(name);
        const std::size_t before = faults.size();
        for (auto& document : value::read_objects(text, name, faults)) { add_document(std::move(document), all); }
        cluster::hint_at_template(text, std::span(faults).subspan(before));
    } catch (const Error& error) {
        const auto cause = error.errno_cause();
        add_fault(faults, error.exit() == Exit::not_found ? "file-not-found" : "unreadable-file",
                  cause ? from_errno(*cause, "cannot read").message() : error.message(), Position{name, 0, 0},
                  error.hint(), error.exit());
    }
}

RecipeDocuments decode_documents(std::vector<value::Document> all, Diagnostics& faults) {
    RecipeDocuments documents;
    documents.all = std::move(all);
    for (const auto& document : documents.all) {
        const auto& root = document.root;
        if (auto fault = api::misspelt_recipe(document, root, root.get_string({"apiVersion"}),
                                              root.get_string({"kind"}))) {
            faults.push_back(std::move(*fault));
        }
        if (rp::is_special_resource_module(document)) {
            documents.modules.push_back(rp::decode_special_resource_module(document, faults));
        }
        if (rp::is_release_validation(document)) {
            documents.validations.push_back(rp::decode_release_validation(document, faults));
        }
        if (!rp::is_special_resource(document)) { continue; }
        auto resource = rp::decode_special_resource(document, faults);
        if (const auto* other = rp::find_resource(documents.resources, resource.name);
            other != nullptr && !resource.name.empty()) {
            add_fault(faults, "duplicate-object",
                      fmt::format("SpecialResource {} stands twice, first at {}", base::escape(resource.name),
                                  other->origin.to_string()),
                      resource.origin, "remove one of them");
            continue;
        }
        documents.resources.push_back(std::move(resource));
    }
    for (auto one = documents.modules.begin(); one != documents.modules.end(); ++one) {
        const auto same = std::find_if(documents.modules.begin(), one,
                                       [&](const auto& other) { return other.resource.name == one->resource.name; });
        if (same == one || one->resource.name.empty()) { continue; }
        add_fault(faults, "duplicate-object",
                  fmt::format("SpecialResourceModule {} stands twice, first at {}", base::escape(one->resource.name),
                              same->resource.origin.to_string()),
                  one->resource.origin, "remove one of them");
    }
    return documents;
}

RecipeDocuments read_recipe_documents(const cli::Args& args, cli::Context& context, kube::Client* client) {
    cluster::Ignored ignored(args.all("ignore"), "");
    auto documents = read_recipe_documents(args, ignored, client);
    if (context.verbosity >= 0) { context.console.err(ignored.notes()); }
    return documents;
}

RecipeDocuments read_recipe_documents(const cli::Args& args, cluster::Ignored& ignored, kube::Client* client) {
    const auto names = args.all("filename");
    if (names.empty() && client == nullptr) {
        throw Error(Exit::usage, "no-source", "no documents given, expected -f FILE with SpecialResources")
            .hint("add -f FILE; - is standard input");
    }
    RecipeDocuments documents;
    Diagnostics faults;
    ignored.require_directory(names);
    RecipeTarget target(documents.all);
    static_cast<void>(cluster::read_documents(names, target, faults,
                                              [&](std::string_view path) { return ignored.takes(path); }));
    if (client != nullptr) { add_cluster_resources(*client, documents.all); }
    documents = decode_documents(std::move(documents.all), faults);
    std::erase_if(faults, [](const Diagnostic& fault) { return fault.severity == Severity::note; });
    sort_and_merge(faults);
    if (has_errors(faults)) { throw Error::from_diagnostics(std::move(faults)); }
    return documents;
}

rp::Facts read_facts(const cli::Args& args, const RecipeDocuments& documents, bool operator_only) {
    rp::Facts facts = rp::observe_facts(documents.all, operator_only);
    auto files = args.all("facts");
    const auto more = args.all("values-from");
    files.insert(files.end(), more.begin(), more.end());
    for (const auto& file : files) {
        Diagnostics faults;
        const std::string text = file == "-" ? sys::read_fd(0, "-") : sys::read_file(file);
        const auto read = value::read_objects(text, file, faults);
        if (read.empty() && !has_errors(faults)) {
            add_fault(faults, "no-documents", "the file has no facts, expected one document", Position{file, 0, 0},
                      "look how the command that wrote it ended, or leave the file out");
        }
        if (read.size() > 1) {
            add_fault(faults, "bad-value", fmt::format("expected one document of facts, found {}", read.size()),
                      Position{file, 0, 0}, "");
        }
        for (const auto& document : read) { rp::overlay_facts(facts, rp::decode_facts(document, faults)); }
        if (has_errors(faults)) { throw Error::from_diagnostics(std::move(faults)); }
    }
    for (const auto& assignment : args.all("fact")) { rp::set_fact(facts, assignment); }
    rp::add_release_toolkits(facts);
    return facts;
}

namespace {

/// Errors: usage "bad-value" for a name that no resource, no chart and no dependency has.
void require_known(const std::string& name, const std::string& option, const RecipeDocuments& documents) {
    std::vector<std::string> known;
    const auto add = [&](const rp::SpecialResource& resource) {
        known.push_back(resource.name);
        known.push_back(resource.chart.name);
        for (const auto& dependency : resource.dependencies) {
            known.push_back(dependency.name);
            known.push_back(dependency.chart.name);
        }
    };
    for (const auto& resource : documents.resources) { add(resource); }
    for (const auto& module : documents.modules) { add(module.resource); }
    std::erase(known, "");
    if (std::find(known.begin(), known.end(), name) != known.end()) { return; }
    std::sort(known.begin(), known.end());
    known.erase(std::unique(known.begin(), known.end()), known.end());
    const auto near = base::nearest(name, known);
    throw Error(Exit::usage, "bad-value",
                fmt::format("--chart {}: no resource and no chart is named '{}'", base::escape(option),
                            base::escape(name)))
        .hint(near ? fmt::format("did you mean {}?", *near)
                   : fmt::format("found: {}", base::escape(base::join(known, ", "))));
}

}  // namespace

ChartPlaces::ChartPlaces(const cli::Args& args, const RecipeDocuments& documents, const std::vector<std::string>& names)
    : documents_(documents),
      links_(args.flag(k_follow_links) ? OuterLinks::follow : OuterLinks::refuse) {
    auto roots = args.all("filename");
    roots.emplace_back(".");
    for (const auto& name : roots) {
        const auto directory = fs::is_directory(name) ? name : sys::parent_of(name);
        if (auto real = sys::real_path(directory)) { roots_.push_back(std::move(*real)); }
    }
    for (const auto& text : args.all("chart")) {
        const std::size_t equals = text.find('=');
        const bool named = equals != std::string::npos && text.find('/') > equals;
        std::string name = named ? text.substr(0, equals) : "";
        if (!named) {
            const std::size_t count = documents.resources.size() + documents.modules.size();
            const bool single = names.size() == 1 || (names.empty() && count == 1);
            if (!single) {
                throw Error(Exit::usage, "bad-value",
                            fmt::format("--chart {}: which of {} resources is it for?", base::escape(text), count))
                    .hint("write --chart NAME=DIR, or name one resource");
            }
            name = !names.empty()                ? names.front()
                   : documents.resources.empty() ? documents.modules.front().resource.name
                                                 : documents.resources.front().name;
        }
        if (named) { require_known(name, text, documents); }
        if (!given_.emplace(name, named ? text.substr(equals + 1) : text).second) {
            throw Error(Exit::usage, "bad-value", fmt::format("--chart gives {} two charts", base::escape(name)))
                .hint("leave one of them out");
        }
    }
}

void ChartPlaces::require_given() const {
    for (const auto& [name, place] : given_) { static_cast<void>(read(place)); }
}

recipe::chart::Chart ChartPlaces::chart(const std::string& resource, const rp::ChartReference& reference) {
    {
        const std::lock_guard lock(mutex_);
        const auto known = loaded_.find(resource);
        if (known != loaded_.end()) { return known->second; }
    }
    auto made = load(resource, reference);
    const std::lock_guard lock(mutex_);
    return loaded_.emplace(resource, std::move(made)).first->second;
}

recipe::chart::Chart ChartPlaces::read(const std::string& place) const {
    if (documents_.is_applied) { sys::require_trusted_tree(place, "chart"); }
    return read_chart(place, links_);
}

recipe::chart::Chart ChartPlaces::load(const std::string& resource, const rp::ChartReference& reference) const {
    for (const auto& name : {resource, reference.name}) {
        if (const auto given = given_.find(name); given != given_.end()) { return read(given->second); }
    }
    if (reference.name.empty()) { return rp::built_in_recipe(); }
    const std::string& url = reference.url;
    if (url.starts_with("cm://")) { return from_config_map(resource, reference); }
    if (!url.starts_with("file://")) {
        throw chart_not_found(resource, reference,
                              fmt::format("chart {} is in repository {}, which is not read",
                                          base::escape(reference.name), base::escape(url)));
    }
    std::string path = url.substr(7);
    while (path.size() > 1 && path.ends_with('/')) { path.pop_back(); }
    // A relative one lies beside the file with the resource, or below the current directory.
    std::vector<std::string> places{path};
    const std::string beside = directory_of_resource(resource);
    if (!path.starts_with('/') && !beside.empty()) { places.insert(places.begin(), beside + '/' + path); }
    std::vector<std::string> tried;
    bool outside = false;
    for (const auto& place : places) {
        for (const auto& candidate :
             {place + '/' + reference.name + '-' + reference.version + ".tgz",
              place + '/' + reference.name + '-' + reference.version, place + '/' + reference.name, place}) {
            // Whoever writes the resource must not choose what else of this machine is rendered.
            const auto real = sys::real_path(candidate);
            const bool is_inside = real && std::any_of(roots_.begin(), roots_.end(), [&](const auto& root) {
                                       return sys::is_below(root, *real);
                                   });
            if (is_inside && has_chart(candidate)) { return read(candidate); }
            outside = outside || (!is_inside && has_chart(candidate));
            tried.push_back(candidate);
        }
    }
    if (outside) {
        throw chart_not_found(
            resource, reference,
            fmt::format("chart {} in {} is neither below the current directory nor below one of -f",
                        base::escape(reference.name), base::escape(url)));
    }
    throw chart_not_found(resource, reference,
                          fmt::format("there is no chart {} {} in {}", base::escape(reference.name),
                                      base::escape(reference.version), base::escape(url)))
        .detail("looked at", base::escape(base::join(tried, ", ")));
}

std::string ChartPlaces::directory_of_resource(const std::string& resource) const {
    for (const auto& document : documents_.all) {
        if (document.root.get_string({"kind"}) != "SpecialResource") { continue; }
        if (document.root.get_string({"metadata", "name"}) != resource) { continue; }
        return base::directory_of(document.file);
    }
    return "";
}

recipe::chart::Chart ChartPlaces::from_config_map(const std::string& resource,
                                                  const rp::ChartReference& reference) const {
    const std::string place = reference.url.substr(5);
    const std::string wanted = reference.name + '-' + reference.version + ".tgz";
    for (const auto& document : documents_.all) {
        const value::Node& root = document.root;
        if (root.get_string({"kind"}) != "ConfigMap") { continue; }
        if (root.get_string({"metadata", "namespace"}) + '/' + root.get_string({"metadata", "name"}) != place) {
            continue;
        }
        const value::Node* data = root.find_path({"binaryData", wanted});
        const auto bytes = data == nullptr ? std::nullopt : base::from_base64(data->text());
        if (!bytes) {
            throw chart_not_found(
                resource, reference,
                fmt::format("ConfigMap {} has no {} in binaryData", base::escape(place), base::escape(wanted)));
        }
        const std::string shown = fmt::format("{}({})", document.file, wanted);
        return recipe::chart::load_chart(recipe::chart::read_archive(*bytes, shown), shown);
    }
    throw chart_not_found(resource, reference,
                          fmt::format("ConfigMap {} with chart {} is not among the documents", base::escape(place),
                                      base::escape(wanted)));
}

}  // namespace kmm::recipe::files
