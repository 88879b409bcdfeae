// SPDX-License-Identifier: Apache-2.0
#include "registry/pull/extraction_list.hpp"

#include <fmt/format.h>

#include <set>
#include <utility>

#include "base/error.hpp"
#include "registry/layer/hash.hpp"
#include "registry/layer/source.hpp"
#include "value/reader.hpp"
#include "value/writer.hpp"

namespace kmm::registry {

namespace {

// The number is that of the form. The rules that made the tree are those of a version of the toolkit, which is in the
// key as well.
constexpr std::string_view k_list_mark = "kmm-extraction 2 ";
constexpr std::string_view k_former_mark =
    "kmm-extraction 1 ";  // one line with the digest of all the rest, which was one JSON text
constexpr std::string_view k_end_mark = "end ";
constexpr std::size_t k_list_piece = 64U << 10U;

value::Node limits_node(const Limits& limits) {
    static_assert(sizeof(Limits) == 15 * sizeof(std::uint64_t),
                  "a new limit belongs below: a list made under laxer ones must not serve");
    value::Node node = value::Node::sequence();
    for (const std::uint64_t limit :
         {limits.manifest_bytes, limits.config_bytes, limits.index_entries, limits.index_depth, limits.layers,
          limits.blob_bytes, limits.image_bytes, limits.inflated_layer_bytes, limits.inflated_bytes, limits.ratio,
          limits.entries, limits.path_bytes, limits.component_bytes, limits.depth, limits.file_bytes}) {
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

/// The one document of a line; nullopt for anything else.
std::optional<value::Node> node_of_line(std::string_view line) {
    Diagnostics faults;
    auto documents = value::read_json(line, "list", faults);
    return has_errors(faults) || documents.size() != 1 ? std::nullopt
                                                       : std::optional(std::move(documents.front().root));
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

/// The last line of a list, without its end.
std::string last_line(std::uint64_t entries, Hasher& hasher) {
    return fmt::format("{}{} {}", k_end_mark, entries, hasher.finish().to_string());
}

/// The lines of a file. One that cannot be read further is one that is cut.
class ListLines {
public:
    explicit ListLines(int fd) : source_(fd) {}

    /// The next line without its end; nullopt when there is no whole one, or one that is too long.
    std::optional<std::string_view> next() {
        line_.clear();
        for (;;) {
            const std::size_t end = piece_.find('\n');
            const std::string_view part = piece_.substr(0, end);
            if (line_.size() + part.size() > k_extraction_line_max) {
                return std::nullopt;
            }
            if (end != std::string_view::npos) {
                piece_.remove_prefix(end + 1);
                if (line_.empty()) {
                    return part;
                }
                line_ += part;
                return line_;
            }
            line_ += part;
            piece_ = rest();
            if (piece_.empty()) {
                return std::nullopt;
            }
        }
    }
    /// What is left in the file, piece by piece, whatever lines it has; empty at the end.
    std::string_view pass() {
        const std::string_view had = std::exchange(piece_, {});
        return had.empty() ? rest() : had;
    }
    [[nodiscard]] bool could_be_read() const noexcept { return readable_; }

private:
    std::string_view rest() {
        try {
            return readable_ ? source_.next() : std::string_view();
        } catch (const Error&) {
            readable_ = false;
            return {};
        }
    }

    FileSource source_;
    std::string_view piece_;
    std::string line_;
    bool readable_ = true;
};

/// Whether what follows the first line of a list of the first form is what that line says.
bool is_whole_former(std::string_view first, ListLines& lines) {
    const std::string digest(first.substr(k_former_mark.size()));
    Hasher hasher;
    for (std::string_view piece = lines.pass(); !piece.empty(); piece = lines.pass()) {
        hasher.update(piece);
    }
    return hasher.finish().to_string() == digest && lines.could_be_read();
}

}  // namespace

std::string ExtractionKey::name() const { return digest_of(text).hex; }

bool ExtractionKey::is_ours() const {
    const auto node = node_of_line(text);
    return node && node->get_string({"version"}) == KMM_VERSION;
}

ExtractionKey extraction_key(const image::Digest& manifest, const Wanted& wanted, const image::Platform& platform,
                             const Limits& limits) {
    const std::set<std::string> kernels(wanted.kernels.begin(), wanted.kernels.end());
    value::Node node = value::Node::mapping({{"version", KMM_VERSION},
                                             {"manifest", manifest.to_string()},
                                             {"platform", platform.to_string()},
                                             {"modules", wanted.modules_root},
                                             {"kernels", value::Node::strings({kernels.begin(), kernels.end()})},
                                             {"firmware", wanted.firmware_root},
                                             {"limits", limits_node(limits)}});
    if (!wanted.modprobed_root.empty()) {
        node.set("modprobed", wanted.modprobed_root);
    }
    return {manifest, value::to_json(node)};
}

std::string extraction_line(const ExtractionHead& head) {
    const value::Node node = value::Node::mapping({{"key", head.key.text},
                                                   {"manifest", head.key.manifest.to_string()},
                                                   {"kernels", value::Node::strings(head.kernels)},
                                                   {"warnings", value::Node::strings(head.warnings)}});
    return fmt::format("{}{}\n", k_list_mark, value::to_json(node));
}

std::optional<ExtractionHead> parse_extraction_head(std::string_view line) {
    const auto node = line.starts_with(k_list_mark) ? node_of_line(line.substr(k_list_mark.size())) : std::nullopt;
    const auto manifest = node ? image::parse_digest(node->get_string({"manifest"})) : std::nullopt;
    if (!manifest) {
        return std::nullopt;
    }
    auto kernels = strings_of(node->find("kernels"));
    auto warnings = strings_of(node->find("warnings"));
    if (!kernels || !warnings) {
        return std::nullopt;
    }
    return ExtractionHead{{*manifest, node->get_string({"key"})}, std::move(*kernels), std::move(*warnings)};
}

std::string extraction_line(const ExtractionEntry& entry) {
    value::Node node = value::Node::mapping({{"path", entry.path}, {"kind", kind_word(entry.kind)}});
    if (entry.kind == EntryKind::file) {
        node.set("digest", entry.digest.to_string());
        node.set("size", entry.size);
        node.set("executable", entry.executable);
    } else if (entry.kind != EntryKind::directory) {
        node.set("target", entry.target);
    }
    return value::to_json(node) + "\n";
}

std::optional<ExtractionEntry> parse_extraction_entry(std::string_view line) {
    const auto node = node_of_line(line);
    if (!node) {
        return std::nullopt;
    }
    ExtractionEntry entry;
    entry.path = node->get_string({"path"});
    const std::string kind = node->get_string({"kind"});
    for (const EntryKind one : {EntryKind::directory, EntryKind::file, EntryKind::symlink, EntryKind::hardlink}) {
        if (kind_word(one) != kind) {
            continue;
        }
        entry.kind = one;
        if (one == EntryKind::file) {
            const auto digest = image::parse_digest(node->get_string({"digest"}));
            const value::Node* size = node->find("size");
            const value::Node* executable = node->find("executable");
            if (!digest || digest->algorithm != image::DigestAlgorithm::sha256 || size == nullptr || !size->as_uint() ||
                executable == nullptr || !executable->as_bool()) {
                return std::nullopt;
            }
            entry.digest = *digest;
            entry.size = *size->as_uint();
            entry.executable = *executable->as_bool();
        } else {
            entry.target = node->get_string({"target"});
        }
        return entry;
    }
    return std::nullopt;
}

void write_extraction(const ExtractionHead& head, const std::function<void(const TakeEntry&)>& entries,
                      const std::function<void(std::string_view)>& put) {
    Hasher hasher;
    std::string piece = extraction_line(head);
    hasher.update(piece);
    std::uint64_t count = 0;
    entries([&](const ExtractionEntry& entry) {
        const std::string line = extraction_line(entry);
        hasher.update(line);
        piece += line;
        ++count;
        if (piece.size() >= k_list_piece) {
            put(piece);
            piece.clear();
        }
    });
    put(piece + last_line(count, hasher) + "\n");
}

ReadExtraction read_extraction(int fd, const TakeEntry& take) {
    ListLines lines(fd);
    const auto first = lines.next();
    if (first && first->starts_with(k_former_mark)) {
        return {is_whole_former(std::string(*first), lines) ? ListState::former : ListState::damaged, {}};
    }
    auto head = first ? parse_extraction_head(*first) : std::nullopt;
    if (!head) {
        return {};
    }
    Hasher hasher;
    const auto hash = [&](std::string_view line) {
        hasher.update(line);
        hasher.update("\n");
    };
    hash(*first);
    std::uint64_t count = 0;
    for (auto line = lines.next(); line; line = lines.next()) {
        if (line->starts_with(k_end_mark)) {
            const bool is_last = *line == last_line(count, hasher) && lines.pass().empty() && lines.could_be_read();
            return is_last ? ReadExtraction{ListState::sound, std::move(*head)} : ReadExtraction{};
        }
        hash(*line);
        ++count;
        if (take) {
            const auto entry = parse_extraction_entry(*line);
            if (!entry) {
                return {};
            }
            take(*entry);
        }
    }
    return {};
}

std::optional<ExtractionHead> read_extraction_head(int fd) {
    ListLines lines(fd);
    const auto first = lines.next();
    return first ? parse_extraction_head(*first) : std::nullopt;
}

}  // namespace kmm::registry
