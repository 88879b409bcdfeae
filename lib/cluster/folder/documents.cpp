// SPDX-License-Identifier: Apache-2.0
#include "cluster/folder/documents.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "api/codec.hpp"
#include "api/object_decoder.hpp"
#include "base/join_some.hpp"
#include "base/shell_word.hpp"
#include "base/text.hpp"
#include "cluster/folder/chart_files.hpp"
#include "cluster/folder/compare_reference.hpp"
#include "cluster/folder/file_cache.hpp"
#include "cluster/folder/flux_variables.hpp"
#include "cluster/folder/folder_notes.hpp"
#include "cluster/folder/foreign_text.hpp"
#include "cluster/folder/gitops.hpp"
#include "cluster/folder/kustomize.hpp"
#include "cluster/folder/object_files.hpp"
#include "cluster/folder/text_source.hpp"
#include "sys/input_deadline.hpp"
#include "sys/missing_file.hpp"
#include "sys/two_threads.hpp"
#include "value/object_stream.hpp"
#include "value/reader.hpp"
#include "value/text_index.hpp"

namespace kmm::cluster {

namespace {

void report(Diagnostics& diagnostics, Severity severity, const char* code, Exit exit, const std::string& file,
            std::string message) {
    Diagnostic diagnostic;
    diagnostic.severity = severity;
    diagnostic.code = code;
    diagnostic.message = std::move(message);
    diagnostic.position = Position{file, 0, 0};
    diagnostic.exit = exit;
    diagnostics.push_back(std::move(diagnostic));
}

void report_unreadable(Diagnostics& diagnostics, const std::string& file, const Error& error) {
    const bool absent = error.exit() == Exit::not_found;
    report(diagnostics, Severity::error, absent ? "file-not-found" : "unreadable-file", error.exit(), file,
           error.message());
    if (!absent) { return; }
    // kubectl takes both.
    if (file.starts_with("https://") || file.starts_with("http://")) {
        diagnostics.back().hint =
            fmt::format("no address is fetched: curl -sSfL {} | kmm-plan validate -f -", base::command_word(file));
    } else if (file.find(',') != std::string::npos) {
        diagnostics.back().hint = "give -f once for each file";
    } else {
        diagnostics.back().hint = sys::missing_file_hint(file);
    }
}

/// With the position before it, the message needs no path.
void report_unreadable(Diagnostics& diagnostics, const std::string& file, int number) {
    report_unreadable(diagnostics, file, from_errno(number, "cannot read"));
}

void run_for_a_while(const std::function<void()>& work) {
    sys::run_in_two_threads(work);
    sys::return_freed_memory();
}

/// Objects that decisions need.
class ObjectsTarget final : public DocumentTarget {
public:
    ObjectsTarget(api::Objects& objects, const std::string& given_namespace)
        : objects_(objects), given_namespace_(given_namespace) {}

    [[nodiscard]] bool has_namespace() const override { return !given_namespace_.empty(); }
    void set_namespace(const std::string& name) override { own_namespace_ = name; }
    value::ObjectSink* begin() override { return &decoder_.emplace(used_namespace()); }
    void commit(Diagnostics& diagnostics) override { std::move(*decoder_).commit(objects_, diagnostics); }
    void take(const value::Document& document, Diagnostics& diagnostics) override {
        api::decode(document, objects_, diagnostics, used_namespace());
    }
    void take_generated(GeneratedObject made, Diagnostics& diagnostics) override {
        auto& root = made.document.root;
        const std::string name = root.get_string({"metadata", "name"});
        std::string ns = root.get_string({"metadata", "namespace"});
        if (ns.empty()) { ns = given_namespace_; }
        if (ns.empty()) { return; }
        root.find("metadata")->set("namespace", ns);
        const auto& maps = objects_.config_maps;
        const bool is_there = std::any_of(maps.begin(), maps.end(), [&](const api::ConfigMap& map) {
            return map.meta.name == name && map.meta.namespace_ == ns;
        });
        const bool is_secret = root.get_string({"kind"}) == "Secret";
        if (!is_secret && is_there) { return; }
        if (!is_secret && !made.has_hash) { return take(made.document, diagnostics); }
        // Its texts are not known: logins and the like are not to be taken from it.
        api::WrappedObject object;
        object.holder = made.document.file;
        object.is_template = made.has_hash;
        object.document = std::move(made.document);
        objects_.wrapped.push_back(std::move(object));
    }

private:
    [[nodiscard]] const std::string& used_namespace() const {
        return own_namespace_.empty() ? given_namespace_ : own_namespace_;
    }

    api::Objects& objects_;
    const std::string& given_namespace_;
    std::string own_namespace_;  ///< of the text that is read
    std::optional<api::ObjectDecoder> decoder_;
};

class DocumentReader {
public:
    /// `names` are all that is read.
    DocumentReader(const std::vector<std::string>& names, DocumentTarget& target, Diagnostics& diagnostics,
                   const std::function<bool(std::string_view)>& is_ignored)
        : names_(names), target_(target), diagnostics_(diagnostics), is_ignored_(is_ignored) {}

    void read_named(const std::string& name) {
        if (name == "-") {
            read_text(name, Empty::fault);
            return;
        }
        struct stat info {};
        if (::stat(name.c_str(), &info) != 0) {
            const int saved = errno;
            report_unreadable(diagnostics_, name, saved);
        } else if (S_ISDIR(info.st_mode)) {
            read_directory(name.substr(0, std::max<std::size_t>(name.find_last_not_of('/') + 1, 1)));
        } else {
            read_text(name, S_ISREG(info.st_mode) || S_ISFIFO(info.st_mode) ? Empty::fault : Empty::fine);
        }
    }

    void end() {
        for (auto& object : generated_) { target_.take_generated(std::move(object), diagnostics_); }
    }

    std::vector<std::string> files() && { return std::move(files_); }

private:
    /// `name` has no slash at its end, but for the root.
    void read_directory(const std::string& name) {
        const std::size_t faults = diagnostics_.size();
        const auto found = object_files(name, diagnostics_, PackedFiles::take, names_);
        if (found.empty() && diagnostics_.size() == faults) {
            report(diagnostics_, Severity::error, "no-documents", Exit::data, name,
                   "no *.yaml, *.yml or *.json file in this directory");
        }
        const std::size_t prefix = name.ends_with('/') ? name.size() : name.size() + 1;
        notes_ = {};
        const auto ignored = [&](std::string_view file) {
            return is_ignored_ && is_ignored_(file.substr(std::min(prefix, file.size())));
        };
        std::erase_if(diagnostics_, [&](const Diagnostic& fault) {
            return fault.code == "link-leaves" && fault.position->file.starts_with(name) &&
                   ignored(fault.position->file);
        });
        std::vector<std::string> taken;
        std::remove_copy_if(found.begin(), found.end(), std::back_inserter(taken), ignored);
        charts_ = charts_among(taken);
        if (target_.leaves_charts()) { std::erase_if(taken, [&](auto& file) { return is_in_chart(charts_, file); }); }
        kustomizations_ = Kustomizations::among(name, taken, ignored);
        gitops_ = GitOpsPaths::among(name, taken);
        const auto references = CompareReferences::among(taken);
        for (const auto& file : taken) {
            sys::require_input_time(file);
            if (references.has(file)) {
                notes_.compared.push_back(file);
            } else {
                read_found(file);
            }
        }
        for (auto& object : kustomizations_.generated_objects()) {
            auto& metadata = *object.document.root.find("metadata");
            if (const auto given = gitops_namespace(object.document.file);
                given.is_forced || metadata.get_string({"namespace"}).empty()) {
                metadata.set("namespace", given.name);
            }
            generated_.push_back(std::move(object));
        }
        notes_.not_built = kustomizations_.not_built();
        notes_.report(diagnostics_);
    }

    /// What the caller gives is no guess.
    [[nodiscard]] GitOpsNamespace gitops_namespace(const std::string& file) const {
        return target_.has_namespace() ? GitOpsNamespace{}
                                       : gitops_.namespace_of(kustomizations_.directories_of(file), file);
    }

    void read_found(const std::string& file) {
        if (kustomizations_.is_part(file)) {
            notes_.parts.push_back(file);
            return;
        }
        const std::size_t before = diagnostics_.size();
        const std::string own = kustomizations_.namespace_of(file);
        given_ = gitops_namespace(file);
        change_ = gitops_.change_of(kustomizations_.directories_of(file), file);
        target_.set_namespace(own.empty() || given_.is_forced ? given_.name : own);
        moved_ = given_.is_forced ? MovedObjects{given_.name, given_.is_of_kustomize}
                                  : MovedObjects{kustomizations_.moved_to(file), true};
        if (moved_.to.empty() && kustomizations_.is_always_moved(file)) {
            moved_ = {kustomizations_.given_to(file).begin()->first, true, false};
        }
        read_text(file, Empty::fine);
        target_.set_namespace("");
        moved_ = {};
        given_ = {};
        change_.reset();
        explain_namespaces(file, before);
        leave_out_unreadable(file, before);
    }

    /// That an object has no namespace since several are given is not to be seen in it. `begin`: of its faults.
    void explain_namespaces(const std::string& file, std::size_t begin) {
        const auto faults = std::span(diagnostics_).subspan(begin);
        const auto is_meant = [](const Diagnostic& one) {
            return one.code == "missing-field" && one.message.find("metadata.namespace") != std::string::npos;
        };
        if (std::none_of(faults.begin(), faults.end(), is_meant)) { return; }
        auto given = kustomizations_.given_to(file);
        if (given.empty()) { given = gitops_.given_to(kustomizations_.directories_of(file), file); }
        if (given.size() < 2) { return; }
        std::vector<std::string> parts;
        for (const auto& [name, where] : given) {
            parts.push_back(fmt::format("{} gives {}", base::escape(where), base::escape(name)));
        }
        for (auto& fault : faults) {
            if (!is_meant(fault)) { continue; }
            fault.hint = base::join_some(parts, 4) + ": write one of them into the document, or give -n NAMESPACE";
        }
    }

    /// `begin`: of the faults of the file.
    void leave_out_unreadable(const std::string& file, std::size_t begin) {
        const auto uses = [&](const std::string& version, const std::string& kind) {
            return target_.uses(version, kind);
        };
        switch (cluster::leave_out_unreadable(file, uses, diagnostics_, begin)) {
            case LeftOut::nothing: break;
            case LeftOut::text: notes_.left_out[""].push_back(file); break;
            case LeftOut::foreign_template: notes_.templates.push_back(file); break;
        }
    }

    /// Whether a file that was found, not named, is none of manifests: a part of a chart, or a text without an object.
    bool leaves_out(const std::string& file, std::string_view front) {
        const auto chart = chart_of(charts_, file, front);
        if (!chart && may_hold_objects(front)) { return false; }
        if (!chart) {
            Diagnostics faults;
            static_cast<void>(value::read_objects(front, file, faults));
            // Tags of other programs, and comments in JSON: there is no object however the text goes on.
            const auto is_foreign = [](const Diagnostic& fault) {
                return fault.code == "bad-tag" || fault.code == "json-syntax";
            };
            if (!std::all_of(faults.begin(), faults.end(), is_foreign)) { return false; }
        }
        notes_.left_out[chart.value_or("")].push_back(file);
        return true;
    }

    /// What it means if there is not a byte. Where a command was to write something it has failed: kubectl get > FILE
    /// leaves such a file, and a plan without nodes would be taken for an answer.
    enum class Empty { fine, fault };

    void read_text(const std::string& file, Empty empty) {
        if (!seen_.insert(file).second) { return; }
        try {
            TextSource source(file);
            if (empty == Empty::fault && source.front().empty()) {
                const bool is_input = file == "-";
                report(diagnostics_, Severity::error, "no-documents", Exit::data, file,
                       fmt::format("{} is empty, expected documents", is_input ? "standard input" : "the file"));
                diagnostics_.back().hint =
                    is_input ? "look how the command before the pipe ended; in a shell, set -o pipefail"
                             : "look how the command that wrote it ended, or leave the file out";
                return;
            }
            if (empty == Empty::fine && leaves_out(file, source.front())) { return; }
            if (empty == Empty::fine && names_kmm_object(source.front())) {
                for (auto& user : kustomizations_.changing(file)) {
                    notes_.changing.insert(std::move(user));
                }
                if (change_ && change_->has_patches) { notes_.patching.emplace(change_->file, *change_); }
            }
            if (read_changed(source, file)) { return; }
            const auto doubt = stream(source, file);
            files_.push_back(file);
            if (doubt) { read_whole(source, file, *doubt); }
        } catch (const Error& error) {
            if (const auto cause = error.errno_cause()) report_unreadable(diagnostics_, file, *cause);
            else report_unreadable(diagnostics_, file, error);
        }
    }

    /// Reads what kustomize and Flux make of a text with other namespaces or with variables; false if they change
    /// nothing that is followed, or if it has a fault.
    bool read_changed(TextSource& source, const std::string& file) {
        const auto front = source.front();
        const bool has_variables =
            change_ && change_->variables.are_used() && front.find('$') != std::string_view::npos;
        const bool is_moved = !moved_.to.empty();
        const auto affixes = kustomizations_.affixes_of(file);
        const bool is_renamed = affixes.size() > 1 || !affixes.front().is_empty();
        if (!source.size() || !(has_variables || is_moved || is_renamed)) { return false; }
        const auto text = source.whole();
        Diagnostics faults;
        if (text) {
            auto documents = value::read_objects(*text, file, faults);
            if (faults.empty()) {
                files_.push_back(file);
                for (auto& document : documents) {
                    if (is_moved) { move(document); }
                    for (const auto& one : affixes) {
                        if (&one != &affixes.front() && !NameAffixes::renames(document.root)) { break; }
                        auto made = document;
                        one.apply(made.root);
                        has_variables ? take_replaced(made) : target_.take(made, diagnostics_);
                    }
                }
                return true;
            }
        }
        source.rewind();
        return false;
    }

    /// Of one kustomization no two Namespaces get the same name: kustomize refuses them.
    void move(value::Document& document) {
        std::vector<value::Mark> namespaces;
        moved_.apply(document.root, namespaces);
        const auto built = given_.is_forced || !moved_.moves ? "" : kustomizations_.built_by(document.file);
        if (built.empty()) { return; }
        for (const auto& mark : namespaces) {
            const auto place = document.position(mark);
            const auto [first, is_new] = renamed_.emplace(built, place);
            if (is_new || first->second.file == place.file) { continue; }
            report(diagnostics_, Severity::error, "duplicate-object", Exit::data, place.file,
                   fmt::format("Namespace {} is already defined at {}", base::escape(moved_.to),
                               first->second.to_string()));
            diagnostics_.back().position = place;
            diagnostics_.back().hint =
                fmt::format("the kustomization in {} gives both this name: remove one of the two", base::escape(built));
        }
    }

    void take_replaced(value::Document& document) {
        const auto replaced = replace_variables(document.root, change_->variables);
        const auto found = report_variables(document, replaced, *change_);
        diagnostics_.insert(diagnostics_.end(), found.begin(), found.end());
        if (!found.empty() && (!replaced.fault.empty() || change_->variables.has_others)) { return; }
        const auto before = diagnostics_.size();
        target_.take(document, diagnostics_);
        explain_types(std::span(diagnostics_).subspan(before), document, replaced);
    }

    /// Reads a text without faults object by object; otherwise nothing has happened and the first doubt is returned.
    std::optional<Diagnostic> stream(TextSource& source, const std::string& file) {
        auto* sink = target_.begin();
        if (sink == nullptr) {
            return fault_at("document-limit", "the text is longer than 256 MiB", Position{file, 0, 0}, "");
        }
        const auto front = value::without_bom(source.front());
        const auto first = front.find_first_not_of(" \t\r\n");
        const bool is_json = first != std::string_view::npos && (front[first] == '{' || front[first] == '[');
        const value::ReadMore more = [&](char* into, std::size_t size) { return source.read(into, size); };
        // Texts of a few pieces are read before a second thread could help.
        constexpr std::size_t k_threads = std::size_t{4} << 20U;
        if (is_json && source.size().value_or(0) > k_threads && sys::usable_processors() > 1) {
            if (value::stream_json_in_pieces(more, file, *sink, {run_for_a_while})) {
                target_.commit(diagnostics_);
                sys::return_freed_memory();
                return std::nullopt;
            }
            source.rewind();
            sink = target_.begin();
        }
        auto doubt = is_json ? value::stream_json(more, file, *sink) : value::stream_yaml(more, file, *sink);
        if (!doubt) { target_.commit(diagnostics_); }
        return doubt;
    }

    /// Says everything that is wrong with a text, or reads what the streaming readers leave to the others.
    void read_whole(TextSource& source, const std::string& file, const Diagnostic& doubt) {
        const auto text = source.whole();
        if (!text) {
            diagnostics_.push_back(doubt);
            return;
        }
        Diagnostics faults;
        const auto documents = is_kustomization(file) ? value::read_any(*text, file, faults)  // as kustomize does
                                                      : value::read_objects(*text, file, faults);
        if (const Diagnostic* found = hint_at_template(*text, faults)) {
            diagnostics_.push_back(*found);
            return;
        }
        for (const auto& document : documents) { target_.take(document, faults); }
        constexpr std::string_view k_limit = "document-limit";
        constexpr std::size_t k_large = std::size_t{16} << 20U;
        // A dump that is too large for a tree has a first doubt that says more.
        if (text->size() > k_large && doubt.code != k_limit &&
            std::any_of(faults.begin(), faults.end(), [](const Diagnostic& fault) { return fault.code == k_limit; })) {
            diagnostics_.push_back(doubt);
        }
        diagnostics_.insert(diagnostics_.end(), faults.begin(), faults.end());
    }

    const std::vector<std::string>& names_;
    DocumentTarget& target_;
    Diagnostics& diagnostics_;
    const std::function<bool(std::string_view)>& is_ignored_;
    std::vector<std::string> files_;
    std::set<std::string> seen_;
    std::set<std::string> charts_;                             ///< of the directory that is being read
    FolderNotes notes_;                                        ///< of the directory
    Kustomizations kustomizations_;                             ///< of the directory
    GitOpsPaths gitops_;                                        ///< of the directory
    std::vector<GeneratedObject> generated_;                    ///< by kustomizations of all directories
    GitOpsNamespace given_;                                     ///< for the file that is being read
    std::optional<GitOpsChange> change_;                        ///< of the file that is being read
    MovedObjects moved_;                                       ///< what the file that is being read needs
    std::map<std::string, Position> renamed_;  ///< the first Namespace that a kustomization in that directory moves
};

}  // namespace

std::vector<std::string> read_documents(const std::vector<std::string>& names, api::Objects& objects,
                                        Diagnostics& diagnostics, const std::string& given_namespace,
                                        const std::function<bool(std::string_view path)>& is_ignored) {
    ObjectsTarget target(objects, given_namespace);
    return read_documents(names, target, diagnostics, is_ignored);
}

std::vector<std::string> read_documents(const std::vector<std::string>& names, DocumentTarget& target,
                                        Diagnostics& diagnostics,
                                        const std::function<bool(std::string_view path)>& is_ignored) {
    DocumentReader reader(names, target, diagnostics, is_ignored);
    for (const auto& name : names) { reader.read_named(name); }
    reader.end();
    return std::move(reader).files();
}

}  // namespace kmm::cluster
