// SPDX-License-Identifier: Apache-2.0
#include "kmod/host/module_index.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/join_some.hpp"
#include "base/text.hpp"
#include "digest/digest.hpp"
#include "kmod/host/modprobe_config.hpp"
#include "kmod/ko/files.hpp"
#include "kmod/ko/module_finder.hpp"
#include "kmod/ko/module_service.hpp"
#include "sys/two_threads.hpp"

namespace kmm::kmod {

namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t k_inflated_max = 4ULL << 30U;

std::string cut_root(const std::string& path, const std::string& root) {
    if (!root.empty() && path.starts_with(root)) {
        const std::string rest = path.substr(root.size());
        return rest.starts_with('/') ? rest : "/" + rest;
    }
    return path;
}

/// The first of `names`, and how many more there are.
std::string some_of(const std::vector<std::string>& names) {
    constexpr std::size_t shown = 20;
    return names.empty() ? "none" : base::join_some(names, shown);
}

/// Orders as libkmod does for modprobe (__kmod_module_get_probe_list): all hard needs of a module with what softdeps
/// want around each of them, then the module in the same way. A softdep that needs the module itself comes after it,
/// and one that is met again is passed over.
class Orderer {
public:
    Orderer(const ModuleIndex& index, const std::vector<std::string>& loading_order, const OrderExtras& extras)
        : index_(index), extras_(extras) {
        for (std::size_t i = 0; i + 1 < loading_order.size(); ++i) {
            wanted_[normalise_name(loading_order[i])].push_back(normalise_name(loading_order[i + 1]));
        }
    }

    void visit(const std::string& name) {
        if (!visited_.insert(name).second) return;
        std::vector<std::string> path, list;
        std::set<std::string> seen;
        collect(name, path, seen, list);
        for (const auto& module : list) fill(module);
    }

    LoadOrder take(const std::vector<std::string>& wanted) {
        std::set<std::string> required;
        std::vector<std::string> open(wanted.size());
        std::transform(wanted.begin(), wanted.end(), open.begin(),
                       [](const std::string& raw) { return normalise_name(raw); });
        while (!open.empty()) {
            const std::string name = open.back();
            open.pop_back();
            if (!required.insert(name).second) continue;
            for (auto& need : hard_needs(name)) open.push_back(std::move(need));
        }
        for (const auto* list : {&result_.names, &result_.external}) {
            std::copy_if(list->begin(), list->end(), std::inserter(result_.optional, result_.optional.end()),
                         [&](const std::string& name) { return !required.contains(name); });
        }
        std::erase_if(result_.soft, [&](const std::string& name) { return seen_external_.contains(name); });
        return std::move(result_);
    }

private:
    /// Without softdeps.
    std::vector<std::string> hard_needs(const std::string& name) const {
        const IndexedModule* module = index_.find(name);
        std::vector<std::string> list = module == nullptr ? std::vector<std::string>() : index_.hard_needs(*module);
        if (const auto it = wanted_.find(name); it != wanted_.end())
            list.insert(list.end(), it->second.begin(), it->second.end());
        return list;
    }

    /// `name` and all it cannot be loaded without, dependencies first.
    void collect(const std::string& name, std::vector<std::string>& path, std::set<std::string>& seen,
                 std::vector<std::string>& list) {
        if (seen.contains(name)) return;
        if (const auto it = std::find(path.begin(), path.end(), name); it != path.end()) {
            std::string cycle;
            for (auto at = it; at != path.end(); ++at) cycle += *at + " -> ";
            throw Error(Exit::data, "dependency-cycle",
                        fmt::format("modules of the image need each other in a circle: {}{}", cycle, name))
                .hint("correct modulesLoadingOrder, or the depends= of these modules");
        }
        path.push_back(name);
        for (const auto& need : hard_needs(name)) {
            if (need != name) collect(need, path, seen, list);
        }
        path.pop_back();
        seen.insert(name);
        list.push_back(name);
    }

    /// One module, and what softdeps of the image and of the host want before and after it. What only the host has is
    /// left to the end.
    void fill(const std::string& name) {
        const IndexedModule* module = index_.find(name);
        if (module == nullptr) {
            index_.require_sound(name);  // the image has it, and it is of no use
            if (seen_external_.insert(name).second) result_.external.push_back(name);
            return;
        }
        const SoftNames soft = soft_names(extras_.softdeps, name, module->file.info_all("softdep"));
        for (const auto& pre : all_meant_by(soft.pre)) probe_soft(pre, result_.soft);
        if (done_.insert(name).second) result_.names.push_back(name);
        for (const auto& post : all_meant_by(soft.post)) probe_soft(post, result_.soft_post);
    }

    std::vector<std::string> all_meant_by(const std::vector<std::string>& requests) {
        std::vector<std::string> meant;
        for (const auto& request : requests) {
            for (auto& module_name : meant_by(request)) {
                if (module_name != request && !done_.contains(module_name))
                    result_.by_alias.emplace_back(request, module_name);
                meant.push_back(std::move(module_name));
            }
        }
        return meant;
    }

    void probe_soft(const std::string& name, std::vector<std::string>& of_host) {
        if (index_.find(name) != nullptr) return visit(name);
        if (std::find(of_host.begin(), of_host.end(), name) == of_host.end()) of_host.push_back(name);
    }

    /// A softdep names a module or an alias, which may be that of several (libkmod looks it up as modprobe's argument).
    [[nodiscard]] std::vector<std::string> meant_by(const std::string& request) const {
        if (auto configured =
                aliased(extras_.aliases, request)) {  // these come first, also for what is a module's name
            const bool concerns_image = index_.find(request) != nullptr ||
                                        std::any_of(configured->begin(), configured->end(), [&](const auto& module) {
                                            return index_.find(module) != nullptr;
                                        });
            return concerns_image ? std::move(*configured) : std::vector<std::string>{request};
        }
        if (index_.find(request) != nullptr) return {request};
        auto names = index_.with_alias(request);
        return names.empty() ? std::vector<std::string>{request} : names;
    }

    const ModuleIndex& index_;
    const OrderExtras& extras_;
    std::map<std::string, std::vector<std::string>> wanted_;
    std::set<std::string> visited_, done_, seen_external_;
    LoadOrder result_;
};

}  // namespace

namespace {

/// The name of the module that should be in the file at `path`.
std::string name_of_file(const std::string& path) {
    const std::string stem = fs::path(path).filename().native();
    return normalise_name(stem.substr(0, stem.find(".ko")));
}

/// What became of one file.
struct ReadFile {
    std::string sum;
    std::optional<IndexedModule> module;
    std::exception_ptr failure;
};

/// Reads files side by side: hashing and parsing take longer than the disk. The results stand in the order of `paths`.
class FileReader {
public:
    FileReader(const std::vector<FoundFile>& files, std::string directory, const std::string& image_root,
               const std::map<std::string, std::string>& known_sums, sandbox::Confined* parser, Signatures signatures)
        : files_(files),
          directory_(std::move(directory)),
          image_root_(image_root),
          known_sums_(known_sums),
          parser_(parser),
          signatures_(signatures),
          results_(files.size()) {}

    std::vector<ReadFile> run() {
        constexpr std::size_t files_worth_a_thread = 32;
        const bool alone = files_.size() < files_worth_a_thread || sys::usable_processors() < 2;
        const std::unique_ptr<sandbox::Confined> twin = alone || parser_ == nullptr ? nullptr : parser_->twin();
        std::thread other;
        try {
            if (!alone) other = std::thread([this, &twin] { work(twin.get()); });
        } catch (const std::system_error&) {
            // No more threads here: then this one does it all.
        }
        work(parser_);
        if (other.joinable()) other.join();
        return std::move(results_);
    }

private:
    void work(sandbox::Confined* parser) {
        if (parser == nullptr)
            return each_file([this](std::size_t i) { keep(i, read_module(content_of(i), shown(i))); });
        const auto hear = [this](std::size_t i, ReadModule read, const std::exception_ptr& failure) {
            guarded(i, [&] {
                if (failure) std::rethrow_exception(failure);
                keep(i, std::move(read));
            });
        };
        ModuleBatches batches(*parser, signatures_, hear);
        each_file([&](std::size_t i) { batches.add(i, file_of(i), shown(i)); });
        batches.finish();
    }

    template <typename Body>
    void guarded(std::size_t i, const Body& body) {
        try {
            body();
        } catch (...) {
            results_[i].failure = std::current_exception();
        }
    }

    template <typename Body>
    void each_file(const Body& body) {
        for (std::size_t i = next_++; i < files_.size(); i = next_++) {
            if (const auto known = known_sums_.find(shown(i)); known != known_sums_.end())
                results_[i].sum = known->second;
            guarded(i, [&] { body(i); });
        }
    }

    [[nodiscard]] std::string shown(std::size_t i) const { return cut_root(files_[i].paths.front(), image_root_); }

    /// The bytes of the file, hashed unless its sum is known.
    std::string content_of(std::size_t i) {
        std::string bytes = read_module_bytes(open_module_file(files_[i].file), files_[i].file);
        if (results_[i].sum.empty()) results_[i].sum = digest::sha256_hex(bytes);
        return bytes;
    }

    /// The file if its sum is known, else its bytes: whoever may change the file, what is parsed is what was hashed.
    sys::Fd file_of(std::size_t i) {
        return results_[i].sum.empty() ? sealed_file(content_of(i), "module") : open_module_file(files_[i].file);
    }

    void keep(std::size_t i, ReadModule read) {
        if ((inflated_ += read.inflated) > k_inflated_max) {
            next_ = files_.size();
            throw Error(
                Exit::unsafe, "image-limit",
                fmt::format("the compressed modules below {} are more than {}",
                            base::escape(cut_root(directory_, image_root_)), base::format_bytes(k_inflated_max)));
        }
        read.file.signature_parser = parser_;  // that of a second thread ends before the index does
        results_[i].module = IndexedModule{std::move(read.file), files_[i].file, shown(i), results_[i].sum, parser_};
    }

    const std::vector<FoundFile>& files_;
    std::string directory_;
    const std::string& image_root_;
    const std::map<std::string, std::string>& known_sums_;
    sandbox::Confined* parser_;
    Signatures signatures_;
    std::vector<ReadFile> results_;
    std::atomic<std::size_t> next_{0};
    std::atomic<std::uint64_t> inflated_{0};
};

}  // namespace

namespace {

/// Whether depmod would take the module at image path `one` rather than that at `other`: its search order begins with
/// updates/ everywhere.
bool comes_before(const std::string& one, const std::string& other) {
    const auto of_updates = [](const std::string& path) { return path.find("/updates/") != std::string::npos; };
    return of_updates(one) && !of_updates(other);
}

/// Whether the kernel would get the same of both, however they are packed.
bool has_same_bytes(const IndexedModule& one, const IndexedModule& other) {
    return one.sha256 == other.sha256 ||
           (one.file.size == other.file.size && plain_bytes(one) == plain_bytes(other));
}

}  // namespace

std::string plain_bytes(const IndexedModule& module) {
    std::string bytes = read_module_bytes(module.path);
    if (digest::sha256_hex(bytes) != module.sha256) {
        throw Error(Exit::integrity, "digest-mismatch",
                    fmt::format("{} changed after it was checked", base::escape(module.image_path)));
    }
    return plain_module(module.parser, std::move(bytes), module.image_path);
}

ModuleIndex ModuleIndex::build(const std::string& directory, const std::string& image_root,
                               const std::map<std::string, std::string>& known_sums, sandbox::Confined* parser,
                               Signatures signatures) {
    ModuleIndex index;
    std::set<std::string> ambiguous;
    const auto fault = [&](std::set<std::string> names, std::string code, std::string message, std::string hint) {
        index.faults_.push_back(Diagnostic{Severity::error, std::move(code), std::move(message), std::nullopt,
                                           std::move(hint), Exit::data});
        index.faulty_names_.push_back(std::move(names));
    };
    const std::vector<FoundFile> files = find_module_files(directory, image_root);
    std::size_t at = 0;
    for (ReadFile& file : FileReader(files, directory, image_root, known_sums, parser, signatures).run()) {
        const FoundFile& found = files[at++];
        try {
            if (file.failure) std::rethrow_exception(file.failure);
            if (!file.module) continue;  // the reader stopped at a limit, which another file tells of
            IndexedModule& module = *file.module;
            const std::string name = module.file.name;
            const auto fits = std::find_if(found.paths.begin(), found.paths.end(),
                                           [&](const std::string& path) { return name_of_file(path) == name; });
            if (fits != found.paths.end()) module.image_path = cut_root(*fits, image_root);
            const std::string& shown = module.image_path;
            const IndexedModule* twin = index.find(name);
            if (fits == found.paths.end()) {
                fault({name, name_of_file(shown)}, "module-name",
                      fmt::format("{}: the file is named '{}' but the module in it '{}'", base::escape(shown),
                                  base::escape(name_of_file(shown)), name),
                      "name the file as the module inside it");
            } else if (twin == nullptr || comes_before(shown, twin->image_path)) {
                ambiguous.erase(name);
                index.add(std::move(module));
            } else if (!comes_before(twin->image_path, shown) && !has_same_bytes(*twin, module)) {
                fault({name}, "duplicate-module",
                      fmt::format("{}: module {} is also in {}", base::escape(shown), name,
                                  base::escape(twin->image_path)),
                      "keep one file for each module and kernel");
                ambiguous.insert(name);
            }
        } catch (const Error& error) {
            if (error.exit() != Exit::data) throw;
            fault({name_of_file(found.paths.front())}, error.code(), error.message(), error.hint());
        }
    }
    for (const auto& name : ambiguous) index.remove(name);
    return index;
}

void ModuleIndex::require_sound() const {
    constexpr std::size_t shown = 20;
    if (faults_.empty()) return;
    const auto end = faults_.begin() + static_cast<std::ptrdiff_t>(std::min(shown, faults_.size()));
    throw Error::from_diagnostics({faults_.begin(), end}, faults_.size() - std::min(shown, faults_.size()));
}

void ModuleIndex::require_sound(const std::string& name) const {
    Diagnostics found;
    for (std::size_t i = 0; i < faults_.size(); ++i) {
        if (faulty_names_[i].contains(normalise_name(name))) found.push_back(faults_[i]);
    }
    if (!found.empty()) throw Error::from_diagnostics(std::move(found));
}

void ModuleIndex::remove(const std::string& name) {
    std::erase_if(exporters_, [&](const auto& entry) { return entry.second == name; });
    modules_.erase(name);
}

void ModuleIndex::add(IndexedModule module) {
    if (find(module.file.name) != nullptr) remove(module.file.name);
    for (const auto& symbol : module.file.exported) exporters_.emplace(symbol, module.file.name);
    const std::string name = module.file.name;
    modules_.insert_or_assign(name, std::move(module));
}

const IndexedModule* ModuleIndex::find(std::string_view name) const {
    const auto it = modules_.find(normalise_name(name));
    return it == modules_.end() ? nullptr : &it->second;
}

std::vector<std::string> ModuleIndex::with_alias(const std::string& name) const {
    std::vector<std::string> names;
    for (const auto& [key, module] : modules_) {
        const auto aliases = module.file.info_all("alias");
        if (std::any_of(aliases.begin(), aliases.end(),
                        [&](const std::string& alias) { return alias_fits(alias, name); }))
            names.push_back(key);
    }
    return names;
}

std::vector<std::string> ModuleIndex::hard_needs(const IndexedModule& module) const {
    std::vector<std::string> needs = module.file.depends();
    for (const auto& symbol : module.file.undefined) {
        if (auto exporter = exporter_of(symbol.name); !exporter.empty()) needs.push_back(std::move(exporter));
    }
    return needs;
}

std::string ModuleIndex::exporter_of(const std::string& symbol) const {
    const auto it = exporters_.find(symbol);
    return it == exporters_.end() ? std::string() : it->second;
}

LoadOrder ModuleIndex::order(const std::string& main, const std::vector<std::string>& loading_order,
                             const OrderExtras& extras) const {
    std::vector<std::string> wanted{main};
    wanted.insert(wanted.end(), extras.also.begin(), extras.also.end());
    for (const auto& raw : wanted) {
        if (find(raw) != nullptr) continue;
        require_sound(raw);
        std::vector<std::string> names;
        for (const auto& [key, module] : modules_) names.push_back(key);
        Error error(Exit::not_found, "module-not-in-image",
                    fmt::format("the image has no module {}, found {}", base::escape(raw), some_of(names)));
        if (const auto having = with_alias(raw); !having.empty()) {
            error = Error(
                Exit::not_found, "module-not-in-image",
                fmt::format("the image has no module {}; that is an alias of {}", base::escape(raw), some_of(having)));
            error.hint(
                fmt::format("name the module itself, {}: it is live, and unloaded, by its own name", having.front()));
        } else if (const auto near = base::nearest(normalise_name(raw), names)) {
            error.hint(fmt::format("did you mean {}?", *near));
        } else if (const std::string stem = raw.substr(0, raw.find(".ko")); find(stem) != nullptr) {
            error.hint(fmt::format("did you mean {}?", stem));
        }
        throw error;
    }
    Orderer orderer(*this, loading_order, extras);
    for (const auto& name : wanted) orderer.visit(normalise_name(name));
    return orderer.take(wanted);
}

}  // namespace kmm::kmod
