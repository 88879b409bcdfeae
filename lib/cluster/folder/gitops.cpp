// SPDX-License-Identifier: Apache-2.0
// Source: Argo CD docs/operator-manual/application.yaml, Flux kustomize-controller api/v1 kustomization_types.go,
// Fleet docs/ref-fleet-yaml.md.
#include "cluster/folder/gitops.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <system_error>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/shell_word.hpp"
#include "base/text.hpp"
#include "cluster/folder/application_set.hpp"
#include "cluster/folder/file_pattern.hpp"
#include "cluster/folder/foreign_text.hpp"
#include "cluster/folder/text_source.hpp"
#include "value/reader.hpp"

namespace kmm::cluster {

namespace {

constexpr std::string_view k_argo = "argoproj.io/";
constexpr std::string_view k_flux = "kustomize.toolkit.fluxcd.io/";
constexpr std::string_view k_outside = "..";  // what is in no directory below the top
constexpr std::string_view k_fleet_file = "fleet.yaml";
constexpr std::size_t k_size_max = std::size_t{1} << 20U;  // a longer file is a dump

/// Without "." and slashes at the ends.
std::string plain_path(const std::string& path) {
    auto text = std::filesystem::path(path).lexically_normal().native();
    while (text.ends_with('/')) { text.pop_back(); }
    while (text.starts_with('/')) { text.erase(0, 1); }
    return text == "." ? "" : text;
}

bool has_variable(std::string_view text) {
    return text.find("{{") != std::string_view::npos || text.find("${") != std::string_view::npos;
}

bool is_below(const std::string& directory, const std::string& path) {
    return path.empty() || (directory.starts_with(path) && directory[path.size()] == '/');
}

/// Owner and name: the same for all protocols.
std::string repository_name(std::string url) {
    while (url.ends_with('/')) { url.pop_back(); }
    if (url.ends_with(".git")) { url.erase(url.size() - 4); }
    const auto slash = url.find_last_of("/:");
    if (slash == std::string::npos || slash == 0) { return url; }
    const auto before = url.find_last_of("/:", slash - 1);
    url.erase(0, before == std::string::npos ? 0 : before + 1);
    return url;
}

/// Objects that either tool has made have its name in a label, too.
bool may_apply(std::string_view front) {
    const auto has = [&](std::string_view text) { return front.find(text) != std::string_view::npos; };
    return (has(k_argo) && has("Application")) || (has(k_flux) && has("Kustomization"));
}

/// Members with which kustomize changes objects of KMM, in Flux and in Argo CD. It sees no image, selector or template
/// in them.
bool has_patches(const value::Node& settings) {
    constexpr std::array<std::string_view, 7> k_changing = {
        "patches",    "patchesStrategicMerge", "patchesJson6902", "namePrefix",
        "nameSuffix", "components",            "replacements"};
    return std::any_of(k_changing.begin(), k_changing.end(), [&](std::string_view name) {
        const auto* member = settings.find(name);
        return member != nullptr && !(member->items().empty() && member->members().empty() && member->text().empty());
    });
}

}  // namespace

Diagnostic not_followed(const GitOpsChange& change) {
    Diagnostic note;
    note.severity = Severity::note;
    note.code = "kustomize-not-built";
    note.message = fmt::format("{} changes objects of KMM, which were read without those changes",
                               base::escape(change.subject));
    note.hint = change.command + " | kmm-plan validate -f -";
    note.position = Position{change.file, 0, 0};
    return note;
}

Diagnostics report_variables(const value::Document& document, const ReplacedVariables& replaced,
                             const GitOpsChange& change) {
    Diagnostics result;
    const auto& root = document.root;
    const bool is_of_kmm = root.get_string({"apiVersion"}).find("kmm.sigs.x-k8s.io") != std::string::npos;
    const bool is_needed = is_of_kmm || root.find_path({"data", "dockerfile"}) != nullptr;
    if (!is_needed && is_foreign_object(document)) { return result; }
    const auto subject = base::escape(change.subject);
    const auto add = [&](Severity severity, const char* code, value::Mark mark, std::string message, std::string hint) {
        Diagnostic one;
        one.severity = severity;
        one.code = code;
        one.message = std::move(message);
        one.hint = std::move(hint);
        one.position = document.position(mark);
        result.push_back(std::move(one));
    };
    if (!replaced.fault.empty()) {
        const bool is_error = is_needed && replaced.is_refused;
        add(is_error ? Severity::error : Severity::note, is_error ? "unknown-template-variable" : "kustomize-not-built",
            replaced.fault_mark,
            fmt::format("the object was not read: {} {}: {}", subject,
                        replaced.is_refused ? "cannot replace its variables" : "replaces its variables",
                        replaced.fault),
            replaced.is_refused ? "write $${ for a text that Flux leaves alone, or give the object the annotation "
                                  "kustomize.toolkit.fluxcd.io/substitute: disabled"
                                : change.command + " | kmm-plan validate -f -");
    }
    for (const auto& [raw, unknown] : replaced.unknown) {
        const auto name = base::escape(raw);
        auto hint = fmt::format("write $${{{}}} for a variable that KMM or a build replaces", name);
        if (change.variables.has_others) {
            if (!is_needed && unknown.is_in_data) { continue; }
            add(Severity::note, "kustomize-not-built", unknown.mark,
                fmt::format("the object was not read: {} says no value of ${{{}}}", subject, name),
                fmt::format("{}; {} | kmm-plan validate -f -", hint, change.command));
        } else if (is_needed) {
            add(Severity::warning, "unknown-template-variable", unknown.mark,
                fmt::format("{} has no variable {} and puts nothing in its place", subject, name), std::move(hint));
        }
    }
    return result;
}

void explain_types(std::span<Diagnostic> faults, const value::Document& document, const ReplacedVariables& replaced) {
    for (auto& fault : faults) {
        const bool is_meant =
            fault.code == "wrong-type" &&
            std::any_of(replaced.no_texts.begin(), replaced.no_texts.end(), [&](value::Mark mark) {
                const auto position = document.position(mark);
                return fault.position && fault.position->line == position.line &&
                       fault.position->column == position.column;
            });
        if (!is_meant) { continue; }
        fault.hint = "Flux writes the text without the quotes of the file before it replaces variables: give it a "
                     "variable quote: '\"' and write ${quote} before and behind the text";
    }
}

GitOpsPaths GitOpsPaths::among(const std::string& top, const std::vector<std::string>& files) {
    GitOpsPaths result;
    result.named_ = top;
    result.top_ = plain_path(top);
    for (const auto& file : files) {
        if (file.ends_with(".gz")) { continue; }
        try {
            TextSource source(file);
            const bool is_of_fleet = file.substr(file.rfind('/') + 1) == k_fleet_file;
            if (!is_of_fleet && !may_apply(source.front())) { continue; }
            const auto text = source.size().value_or(k_size_max) < k_size_max ? source.whole() : std::nullopt;
            if (!text) { continue; }
            Diagnostics faults;
            for (const auto& document : value::read_any(*text, file, faults)) {
                if (!document.root.is_mapping()) { continue; }
                if (is_of_fleet) {
                    result.add_bundle(document.root, file);
                } else {
                    result.add(document.root, file);
                }
            }
        } catch (const Error&) {
            // Files that are read as documents tell why they cannot be read.
        }
    }
    // Which of them the directory is nothing says.
    if (result.argo_repositories_.size() > 1 || result.flux_repositories_.size() > 1) {
        std::erase_if(result.all_, [](const Applied& each) { return !each.is_bundle; });
    }
    result.take_whole();
    if (!result.all_.empty()) { result.resolve(files); }
    std::set<GitOpsChange*> changes;
    std::set<FluxSources::Reference> wanted;
    for (std::size_t i = 0; i < result.all_.size(); ++i) {
        const auto& each = result.all_[i];
        result.by_path_[each.path].push_back(i);
        if (!each.change || !changes.insert(each.change.get()).second) { continue; }
        const auto& references = each.change->variables.references;
        wanted.insert(references.begin(), references.end());
    }
    auto sources = FluxSources::among(files, {wanted.begin(), wanted.end()});
    for (auto* change : changes) { change->variables.look_up(sources, change->file); }
    return result;
}

void GitOpsPaths::add(const value::Node& root, const std::string& file) {
    const std::string version = root.get_string({"apiVersion"});
    const std::string kind = root.get_string({"kind"});
    if (version.starts_with(k_flux) && kind == "Kustomization") {
        const auto said_path = root.get_string({"spec", "path"});
        const auto path = said_path.empty() ? "./" : said_path;
        const auto name = root.get_string({"spec", "sourceRef", "name"});
        auto ns = root.get_string({"spec", "sourceRef", "namespace"});
        if (ns.empty()) { ns = root.get_string({"metadata", "namespace"}); }
        const auto source_kind = root.get_string({"spec", "sourceRef", "kind"});
        const auto repository = fmt::format("{}/{}/{}", source_kind, ns, name);
        if (!said_path.empty() && !name.empty()) { flux_repositories_.insert(repository); }
        const auto own = root.get_string({"metadata", "name"});
        const auto* spec = root.find("spec");
        const auto before = all_.size();
        add_path(path, {root.get_string({"spec", "targetNamespace"}), true, true}, true,
                 std::make_shared<GitOpsChange>(GitOpsChange{
                            file, fmt::format("Kustomization {} of Flux", own),
                            fmt::format("flux build kustomization {} --path {} --kustomization-file {}",
                                        base::command_word(own), base::command_word(path), base::command_word(file)),
                            spec != nullptr && has_patches(*spec), FluxVariables::of(root)}));
        if (said_path.empty() && all_.size() > before) {
            // The root of an artifact or a bucket is not that of a repository.
            if (source_kind == "GitRepository") { whole_.emplace_back(repository, std::move(all_.back())); }
            all_.pop_back();
        }
        return;
    }
    const bool is_set = kind == "ApplicationSet";
    if (!version.starts_with(k_argo) || (!is_set && kind != "Application")) { return; }
    const value::Node* spec = is_set ? root.find_path({"spec", "template", "spec"}) : root.find("spec");
    if (spec == nullptr) { return; }
    const auto destination = spec->get_string({"destination", "namespace"});
    const auto add_source = [&](const value::Node& source) {
        const value::Node* flag = source.find_path({"directory", "recurse"});
        const auto pattern = [&](std::string_view name) {
            auto text = source.get_string({"directory", name});
            return has_variable(text) ? std::string() : text;
        };
        const auto path = source.get_string({"path"});
        const auto url = source.get_string({"repoURL"});
        if (!path.empty() && !url.empty()) { argo_repositories_.insert(repository_name(url)); }
        const auto* settings = source.find("kustomize");
        const auto set = settings == nullptr ? "" : settings->get_string({"namespace"});
        const GitOpsNamespace given{set.empty() ? destination : set, !set.empty(), !set.empty()};
        const auto own = root.get_string({"metadata", "name"});
        const bool with_below = flag != nullptr && flag->as_bool().value_or(false);
        const auto change = std::make_shared<GitOpsChange>(
            GitOpsChange{file, fmt::format("{} {} of Argo CD", kind, own),
                         is_set ? "argocd app manifests APPLICATION"
                                : fmt::format("argocd app manifests {}", base::command_word(own)),
                         settings != nullptr && has_patches(*settings), {}, pattern("include"), pattern("exclude")});
        if (!is_set) { return add_path(path, given, with_below, change); }
        for (auto& each : generated_paths(root, path, given.name)) {
            add_path(each.path, {each.ns, given.is_forced, given.is_of_kustomize}, with_below, change,
                     std::move(each.excluded));
        }
    };
    if (const auto* source = spec->find("source"); source != nullptr && source->is_mapping()) { add_source(*source); }
    if (const auto* sources = spec->find("sources"); sources != nullptr && sources->is_sequence()) {
        for (const auto& source : sources->items()) { add_source(source); }
    }
}

void GitOpsPaths::add_bundle(const value::Node& root, const std::string& file) {
    const auto forced = root.get_string({"namespace"});
    GitOpsNamespace given{forced.empty() ? root.get_string({"defaultNamespace"}) : forced, !forced.empty()};
    if (has_variable(given.name)) { given = {}; }
    all_.push_back({below_top(file.substr(0, file.size() - k_fleet_file.size())), given, true, true, {}});
}

void GitOpsPaths::add_path(const std::string& path, GitOpsNamespace given, bool with_below,
                           std::shared_ptr<GitOpsChange> change, std::vector<std::string> excluded) {
    if (path.empty() || has_variable(path)) { return; }
    if (has_variable(given.name)) { given = {}; }
    if (given.name.empty() && !change->has_patches && !change->variables.are_used()) { return; }
    all_.push_back({plain_path(path), std::move(given), with_below, false, std::move(change), std::move(excluded)});
}

void GitOpsPaths::take_whole() {
    if (flux_repositories_.size() != 1) { return; }
    for (auto& [repository, applied] : whole_) {
        if (flux_repositories_.contains(repository)) { all_.push_back(std::move(applied)); }
    }
}

std::string GitOpsPaths::below_top(const std::string& directory) const {
    const auto place = plain_path(directory);
    if (top_.empty() || place == top_) { return top_.empty() ? place : ""; }
    return is_below(place, top_) ? place.substr(top_.size() + 1) : std::string(k_outside);
}

void GitOpsPaths::resolve(const std::vector<std::string>& files) {
    std::set<std::string> directories{""};
    for (const auto& file : files) {
        const auto name = below_top(file);
        for (auto slash = name.rfind('/'); slash != std::string::npos; slash = name.rfind('/', slash - 1)) {
            if (slash == 0 || !directories.insert(name.substr(0, slash)).second) { break; }
        }
    }
    std::error_code ignored;  // "." has the name of the working directory
    const auto absolute = std::filesystem::absolute(top_.empty() ? "." : named_, ignored);
    const auto whole = ignored ? top_ : plain_path(absolute.native());
    expand_patterns(directories, whole);
    std::erase_if(all_, [&](Applied& each) {
        if (each.is_bundle || directories.contains(each.path)) { return false; }
        // The longest part: what lies in deploy/deploy/ is not in deploy/.
        for (auto end = each.path.size(); end != std::string::npos && end > 0; end = each.path.rfind('/', end - 1)) {
            const auto part = each.path.substr(0, end);
            if (whole != part && !whole.ends_with("/" + part)) { continue; }
            auto rest = end == each.path.size() ? "" : each.path.substr(end + 1);
            if (!directories.contains(rest)) { continue; }
            each.path = std::move(rest);
            return false;
        }
        return true;
    });
}

void GitOpsPaths::expand_patterns(const std::set<std::string>& directories, const std::string& whole) {
    const auto patterns = std::stable_partition(all_.begin(), all_.end(), [](const Applied& each) {
        return each.is_bundle || !is_path_pattern(each.path);
    });
    using Pattern = std::tuple<GitOpsChange*, std::string, std::vector<std::string>, bool>;
    std::map<Pattern, std::vector<Applied>> equal;  // but for the namespace
    for (auto each = patterns; each != all_.end(); ++each) {
        equal[{each->change.get(), each->path, each->excluded, each->with_below}].push_back(std::move(*each));
    }
    all_.erase(patterns, all_.end());
    for (const auto& [pattern, applied] : equal) {
        const auto before = all_.size();
        const auto& first = applied.front();
        const auto expand = [&](const std::string& above) {
            for (const auto& directory : directories) {
                const auto place = above.empty() ? directory : above + "/" + directory;
                const bool is_meant = matches_path(first.path, place) &&
                                      std::none_of(first.excluded.begin(), first.excluded.end(),
                                                   [&](const auto& one) { return matches_path(one, place); });
                if (!is_meant) { continue; }
                std::set<std::string> names;
                for (const auto& each : applied) {
                    auto given = each.given;
                    const auto at = given.name.find(k_matched_name);
                    if (at != std::string::npos) { given.name.replace(at, 1, place.substr(place.rfind('/') + 1)); }
                    if (!names.insert(given.name).second) { continue; }
                    all_.push_back({directory, std::move(given), first.with_below, false, first.change});
                    if (names.size() - names.count("") > 1) { break; }
                }
            }
        };
        expand("");
        // The directory that is read may be one of the repository.
        for (auto slash = whole.rfind('/'); all_.size() == before && slash != std::string::npos && slash > 0;
             slash = whole.rfind('/', slash - 1)) {
            expand(whole.substr(slash + 1));
        }
    }
}

bool GitOpsPaths::gives_namespace(const Applied& each) { return each.is_bundle || !each.given.name.empty(); }

bool GitOpsPaths::Applied::has_patterns() const {
    return change && !(change->exclude.empty() && change->include.empty());
}

bool GitOpsPaths::Applied::leaves_out(const std::string& file) const {
    if (file == k_outside) { return false; }
    const auto rest = path.empty() ? file : file.substr(std::min(path.size() + 1, file.size()));
    return (!change->exclude.empty() && matches_file(change->exclude, rest)) ||
           (!change->include.empty() && !matches_file(change->include, rest));
}

std::vector<const GitOpsPaths::Applied*>
GitOpsPaths::applied_to(const std::vector<std::string>& directories, const std::string& file,
                        bool (*is_meant)(const Applied&)) const {
    const auto file_place = below_top(file);
    std::set<std::size_t> found;
    std::size_t longest = 0;
    for (const auto& directory : directories) {
        const auto place = below_top(directory);
        if (place == k_outside) { continue; }
        // The place, and what is above it up to the top.
        for (auto path = place;; path.erase(path.find('/') == std::string::npos ? 0 : path.rfind('/'))) {
            if (!found.empty() && path.size() < longest) { break; }
            const auto there = by_path_.find(path);
            if (there != by_path_.end()) {
                for (const auto i : there->second) {
                    const auto& each = all_[i];
                    if (!is_meant(each) || (path.size() != place.size() && !each.with_below)) { continue; }
                    // A directory with patterns is not built by a kustomization.
                    if (each.has_patterns() && (&directory != &directories.front() || each.leaves_out(file_place))) {
                        continue;
                    }
                    if (path.size() > longest) { found.clear(); }
                    longest = path.size();
                    found.insert(i);
                }
            }
            if (path.empty()) { break; }
        }
    }
    std::vector<const Applied*> result;
    for (const auto i : found) { result.push_back(&all_[i]); }
    return result;
}

std::map<std::string, std::string> GitOpsPaths::given_to(const std::vector<std::string>& directories,
                                                         const std::string& file) const {
    std::map<std::string, std::string> given;
    for (const auto* each : applied_to(directories, file, gives_namespace)) {
        given.emplace(each->given.name, each->change ? each->change->file : std::string(k_fleet_file));
    }
    return given;
}

GitOpsNamespace GitOpsPaths::namespace_of(const std::vector<std::string>& directories, const std::string& file) const {
    const auto found = applied_to(directories, file, gives_namespace);
    const bool is_certain = std::all_of(found.begin(), found.end(), [&](const Applied* each) {
        return each->given.name == found.front()->given.name;
    });
    return !found.empty() && is_certain ? found.front()->given : GitOpsNamespace{};
}

std::optional<GitOpsChange> GitOpsPaths::change_of(const std::vector<std::string>& directories,
                                                   const std::string& file) const {
    std::optional<GitOpsChange> result;
    const GitOpsChange* last = nullptr;
    for (const auto* each : applied_to(directories, file, [](const Applied& one) { return !one.is_bundle; })) {
        if (std::exchange(last, each->change.get()) == each->change.get()) { continue; }
        if (!result) {
            result = *last;
            continue;
        }
        auto& values = result->variables.values;
        const auto& others = last->variables.values;
        const bool has_others = result->variables.has_others || last->variables.has_others || values != others;
        if (values.empty() && !result->has_patches) { result = *last; }
        std::erase_if(result->variables.values, [&](const auto& value) {
            const auto found = others.find(value.first);
            return found == others.end() || found->second != value.second;
        });
        result->variables.has_others = has_others;
        result->has_patches = result->has_patches || last->has_patches;
    }
    return result && (result->has_patches || result->variables.are_used()) ? result : std::nullopt;
}

}  // namespace kmm::cluster
