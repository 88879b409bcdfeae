// SPDX-License-Identifier: Apache-2.0
#include "registry/extraction_record.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <map>

#include "base/error.hpp"
#include "base/text.hpp"
#include "registry/hash.hpp"
#include "value/reader.hpp"
#include "value/writer.hpp"

namespace kmm::registry {

namespace {

/// Of the form of the text. The rules that made the tree are those of a version of the toolkit, which is in the key as well.
constexpr int k_extraction_format = 1;

value::Node limits_node(const Limits& limits) {
    static_assert(sizeof(Limits) == 15 * sizeof(std::uint64_t), "a new limit belongs below: a record made under laxer ones must not serve");
    value::Node node = value::Node::sequence();
    for (const std::uint64_t limit : {limits.manifest_bytes, limits.config_bytes, limits.index_entries, limits.index_depth, limits.layers, limits.blob_bytes,
                                      limits.image_bytes, limits.inflated_layer_bytes, limits.inflated_bytes, limits.ratio, limits.entries, limits.path_bytes,
                                      limits.component_bytes, limits.depth, limits.file_bytes}) {
        node.push_back(limit);
    }
    return node;
}

constexpr std::string_view kind_word(EntryKind kind) {
    switch (kind) {
        case EntryKind::directory: return "directory";
        case EntryKind::file: return "file";
        case EntryKind::symlink: return "symlink";
        case EntryKind::hardlink: return "hardlink";
        case EntryKind::special: break;
    }
    return "special";
}

value::Node entry_node(const ExtractionRecord::Entry& entry) {
    value::Node node = value::Node::mapping({{"path", entry.path}, {"kind", kind_word(entry.kind)}});
    if (entry.kind == EntryKind::file) {
        node.set("digest", entry.digest.to_string());
        node.set("size", entry.size);
        node.set("executable", entry.executable);
    } else if (entry.kind != EntryKind::directory) {
        node.set("target", entry.target);
    }
    return node;
}

std::optional<ExtractionRecord::Entry> entry_of(const value::Node& node) {
    ExtractionRecord::Entry entry;
    entry.path = node.get_string({"path"});
    const std::string kind = node.get_string({"kind"});
    for (const EntryKind one : {EntryKind::directory, EntryKind::file, EntryKind::symlink, EntryKind::hardlink}) {
        if (kind_word(one) != kind) {
            continue;
        }
        entry.kind = one;
        if (one == EntryKind::file) {
            const auto digest = image::parse_digest(node.get_string({"digest"}));
            const value::Node* size = node.find("size");
            const value::Node* executable = node.find("executable");
            if (!digest || digest->algorithm != image::DigestAlgorithm::sha256 || size == nullptr || !size->as_uint() || executable == nullptr || !executable->as_bool()) {
                return std::nullopt;
            }
            entry.digest = *digest;
            entry.size = *size->as_uint();
            entry.executable = *executable->as_bool();
        } else {
            entry.target = node.get_string({"target"});
        }
        return entry;
    }
    return std::nullopt;
}

/// The strings of a sequence; nullopt for anything else.
std::optional<std::vector<std::string>> strings_of(const value::Node* node) {
    if (node == nullptr || !node->is_sequence()) {
        return std::nullopt;
    }
    std::vector<std::string> result;
    for (const value::Node& item : node->items()) {
        if (!item.is_string()) {
            return std::nullopt;
        }
        result.push_back(item.text());
    }
    return result;
}

/// The first line of a record: what it is, and the digest of what follows.
std::string head_line(std::string_view body) { return fmt::format("kmm-extraction {} {}\n", k_extraction_format, digest_of(body).to_string()); }

/// The entries of a finished view. `stored` says what a content is; `contents` (may be nullptr) hears the content of each file.
std::vector<ExtractionRecord::Entry> entries_of(const LayerView& view, const std::function<const StoredFile&(ContentId)>& stored, std::vector<ContentId>* contents) {
    std::vector<ExtractionRecord::Entry> entries;
    std::map<ContentId, std::string> first;
    for (const auto& [path, node] : view.nodes()) {
        ExtractionRecord::Entry entry{.path = path, .kind = node.kind};
        if (node.kind == EntryKind::symlink) {
            entry.target = view.target(node);
        } else if (node.kind == EntryKind::file) {
            const auto [before, is_first] = first.emplace(node.number, path);
            if (is_first) {
                const StoredFile& file = stored(node.number);
                entry.digest = {image::DigestAlgorithm::sha256, file.sha256.hex()};
                if (entry.digest.hex.empty()) {
                    throw bug("a file that was not hashed is to be kept: " + path);
                }
                entry.size = file.size;
                entry.executable = node.executable;
                if (contents != nullptr) {
                    contents->push_back(node.number);
                }
            } else {
                entry.kind = EntryKind::hardlink;
                entry.target = before->second;
            }
        }
        entries.push_back(std::move(entry));
    }
    return entries;
}

/// Adds the tree to `view` as one layer; `store` is called for each file.
void add_entries_of(const ExtractionRecord& record, LayerView& view, const std::function<void(ContentId, const ExtractionRecord::Entry&)>& store) {
    view.begin_layer();
    for (const std::string& kernel : record.kernels) {
        LayerEntry directory;
        directory.name = view.wanted().modules_root + "/" + kernel;
        directory.kind = EntryKind::directory;
        static_cast<void>(view.add(directory));
    }
    for (const ExtractionRecord::Entry& entry : record.entries) {
        const auto id = view.add({entry.path, entry.kind, entry.target, entry.size, entry.executable, false});
        if (id.has_value() != (entry.kind == EntryKind::file)) {
            throw Error(Exit::data, "bad-layer", "expected wanted files alone, found " + base::escape(entry.path));
        }
        if (id) {
            store(*id, entry);
        }
    }
    if (view.wanted() != view.asked()) {
        throw Error(Exit::data, "bad-layer", "expected the files where they are wanted, found a link on the way there");
    }
}

/// True if the text of `record` makes the same tree again.
bool makes_the_same(const ExtractionRecord& record, const Wanted& wanted, const Limits& limits) {
    const std::string text = extraction_text(record);
    const auto parsed = text.size() <= k_extraction_text_max ? parse_extraction(text) : std::nullopt;
    if (!parsed) {
        return false;
    }
    LayerView view(wanted, limits);
    std::vector<StoredFile> stored;
    try {
        add_entries_of(*parsed, view, [&](ContentId, const ExtractionRecord::Entry& entry) { stored.push_back({entry.size, FileSum(entry.digest)}); });
        view.finish();
    } catch (const Error&) {
        return false;
    }
    return entries_of(view, [&](ContentId id) -> const StoredFile& { return stored.at(id); }, nullptr) == record.entries &&
           view.kernels() == record.kernels && view.warnings().empty() && parsed->warnings == record.warnings;
}

}  // namespace

std::string ExtractionKey::name() const { return digest_of(text).hex; }

bool ExtractionKey::is_ours() const {
    Diagnostics faults;
    const auto documents = value::read_json(text, "key", faults);
    return !has_errors(faults) && documents.size() == 1 && documents.front().root.get_string({"version"}) == KMM_VERSION;
}

ExtractionKey extraction_key(const image::Digest& manifest, const Wanted& wanted, const image::Platform& platform, const Limits& limits) {
    const std::set<std::string> kernels(wanted.kernels.begin(), wanted.kernels.end());
    const value::Node node = value::Node::mapping({{"version", KMM_VERSION},
                                                   {"manifest", manifest.to_string()},
                                                   {"platform", platform.to_string()},
                                                   {"modules", wanted.modules_root},
                                                   {"kernels", value::Node::strings({kernels.begin(), kernels.end()})},
                                                   {"firmware", wanted.firmware_root},
                                                   {"limits", limits_node(limits)}});
    return {manifest, value::to_json(node)};
}

std::uint64_t ExtractionRecord::bytes() const {
    std::uint64_t total = 0;
    for (const Entry& entry : entries) {
        total += entry.size;
    }
    return total;
}

std::optional<StagedRecord> record_extraction(const ExtractionKey& key, const LayerView& view, const Staging& staging,
                                              const std::set<std::string>& warnings, const Limits& limits) {
    StagedRecord staged;
    ExtractionRecord& record = staged.record;
    record.key = key;
    record.entries = entries_of(view, [&](ContentId id) -> const StoredFile& { return staging.stored(id); }, &staged.contents);
    record.kernels = view.kernels();
    record.warnings.assign(warnings.begin(), warnings.end());
    return makes_the_same(record, view.wanted(), limits) ? std::optional(std::move(staged)) : std::nullopt;
}

std::string extraction_text(const ExtractionRecord& record) {
    value::Node entries = value::Node::sequence();
    for (const ExtractionRecord::Entry& entry : record.entries) {
        entries.push_back(entry_node(entry));
    }
    value::Node node = value::Node::mapping({{"key", record.key.text}, {"manifest", record.key.manifest.to_string()}});
    node.set("kernels", value::Node::strings(record.kernels));
    node.set("warnings", value::Node::strings(record.warnings));
    node.set("entries", std::move(entries));
    const std::string body = value::to_json(node) + "\n";
    return head_line(body) + body;
}

std::optional<ExtractionRecord> parse_extraction(std::string_view text) {
    const std::size_t end = text.find('\n');
    if (end == std::string_view::npos || text.substr(0, end + 1) != head_line(text.substr(end + 1))) {
        return std::nullopt;
    }
    Diagnostics faults;
    const auto documents = value::read_json(text.substr(end + 1), "extraction", faults);
    if (has_errors(faults) || documents.size() != 1) {
        return std::nullopt;
    }
    const value::Node& node = documents.front().root;
    const auto manifest = image::parse_digest(node.get_string({"manifest"}));
    auto kernels = strings_of(node.find("kernels"));
    auto warnings = strings_of(node.find("warnings"));
    const value::Node* entries = node.find("entries");
    if (!manifest || !kernels || !warnings || entries == nullptr) {
        return std::nullopt;
    }
    ExtractionRecord record;
    record.key = {*manifest, node.get_string({"key"})};
    record.kernels = std::move(*kernels);
    record.warnings = std::move(*warnings);
    for (const value::Node& item : entries->items()) {
        auto entry = entry_of(item);
        if (!entry) {
            return std::nullopt;
        }
        record.entries.push_back(std::move(*entry));
    }
    return record;
}

void add_recorded(const ExtractionRecord& record, const std::function<sys::Fd(const image::Digest&)>& open, Extraction& into) {
    const auto store = [&](ContentId id, const ExtractionRecord::Entry& entry) {
        const sys::Fd fd = open(entry.digest);
        struct stat facts {};
        if (!fd || ::fstat(fd.get(), &facts) != 0) {
            throw LostContent{entry.digest, false};
        }
        if (!S_ISREG(facts.st_mode) || static_cast<std::uint64_t>(facts.st_size) != entry.size) {
            throw LostContent{entry.digest, true};
        }
        FileSource source(fd.get(), entry.size);
        const auto next = [&] {
            try {
                return source.next();
            } catch (const Error&) {
                throw LostContent{entry.digest, true};
            }
        };
        Hasher hasher(entry.digest.algorithm);
        StoredFile stored;
        into.staging.begin_file(id);
        for (std::string_view piece = next(); !piece.empty() && piece.size() <= entry.size - stored.size; piece = next()) {
            into.on_piece();
            stored.size += piece.size();
            hasher.update(piece);
            into.staging.append(piece);
        }
        const image::Digest found = hasher.finish();
        if (stored.size != entry.size || found != entry.digest) {
            throw LostContent{entry.digest, true};
        }
        stored.sha256 = FileSum(found);
        into.staging.end_file(stored);
    };
    add_entries_of(record, into.view, store);
    into.view.finish();
    into.warnings.insert(record.warnings.begin(), record.warnings.end());
}

}  // namespace kmm::registry
