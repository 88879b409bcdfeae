// SPDX-License-Identifier: Apache-2.0
#include "registry/pull/extraction_record.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/text.hpp"
#include "registry/layer/hash.hpp"
#include "registry/layer/source.hpp"

namespace kmm::registry {

namespace {

constexpr std::size_t k_no_number = ~std::size_t{0};

/// Adds a tree to `view` as one layer; `entries` gives what it consists of to its argument. `store` is called for each
/// file.
void add_tree(const std::vector<std::string>& kernels, const std::function<void(const TakeEntry&)>& entries,
              LayerView& view, const std::function<void(ContentId, const ExtractionEntry&)>& store) {
    view.begin_layer();
    for (const std::string& kernel : kernels) {
        LayerEntry directory;
        directory.name = view.wanted().modules_root + "/" + kernel;
        directory.kind = EntryKind::directory;
        static_cast<void>(view.add(directory));
    }
    entries([&](const ExtractionEntry& entry) {
        const auto id = view.add({entry.path, entry.kind, entry.target, entry.size, entry.executable, false});
        if (id.has_value() != (entry.kind == EntryKind::file)) {
            throw Error(Exit::data, "bad-layer", "expected wanted files alone, found " + base::escape(entry.path));
        }
        if (id) {
            store(*id, entry);
        }
    });
    if (view.wanted() != view.asked()) {
        throw Error(Exit::data, "bad-layer", "expected the files where they are wanted, found a link on the way there");
    }
}

/// Which files of a finished view another entry leads to, by content: those that hard links share and those that links
/// end at.
std::vector<bool> contents_led_to(const LayerView& view, std::size_t contents) {
    std::vector<bool> seen(contents);
    std::vector<bool> led_to(contents);
    for (const auto& [path, node] : view.nodes()) {
        if (node.kind == EntryKind::file) {
            if (seen.at(node.number)) {
                led_to[node.number] = true;
            }
            seen[node.number] = true;
        }
    }
    for (const std::string& end : view.link_ends()) {
        const auto found = view.nodes().find(end);
        if (found != view.nodes().end() && found->second.kind == EntryKind::file) {
            led_to[found->second.number] = true;
        }
    }
    return led_to;
}

/// True if both finished views hold the same, but for files of `view` that nothing leads to: those must not be in
/// `again`. Contents of `again` are numbered in the order in which `view` has them.
bool is_same_without_files(const LayerView& view, const LayerView& again, const std::vector<bool>& led_to) {
    std::vector<std::size_t> numbers(led_to.size(), k_no_number);
    std::size_t next = 0;
    auto other = again.nodes().begin();
    for (const auto& [path, node] : view.nodes()) {
        const bool is_file = node.kind == EntryKind::file;
        if (is_file && numbers[node.number] == k_no_number) {
            numbers[node.number] = next++;
        }
        if (is_file && !led_to[node.number]) {
            continue;
        }
        if (other == again.nodes().end() || other->first != path || other->second.kind != node.kind ||
            (is_file &&
             (other->second.number != numbers[node.number] || other->second.executable != node.executable)) ||
            (node.kind == EntryKind::symlink && again.target(other->second) != view.target(node))) {
            return false;
        }
        ++other;
    }
    return other == again.nodes().end();
}

}  // namespace

FinishedExtraction::FinishedExtraction(ExtractionKey key, const LayerView& view, const Staging& staging,
                                       const std::set<std::string>& warnings)
    : head_{std::move(key), view.kernels(), {warnings.begin(), warnings.end()}}, view_(view), staging_(staging) {}

void FinishedExtraction::each(const std::function<void(const ExtractionEntry&, ContentId)>& take) const {
    std::vector<const std::string*> first(staging_.count(), nullptr);  // content -> the path that is listed as its file
    for (const auto& [path, node] : view_.nodes()) {
        ExtractionEntry entry{.path = path, .kind = node.kind};
        if (node.kind == EntryKind::symlink) {
            entry.target = view_.target(node);
        } else if (node.kind == EntryKind::file) {
            const std::string*& before = first.at(node.number);
            if (before != nullptr) {
                entry.kind = EntryKind::hardlink;
                entry.target = *before;
            } else {
                before = &path;
                const StoredFile& file = staging_.stored(node.number);
                entry.digest = {image::DigestAlgorithm::sha256, file.sha256.hex()};
                if (entry.digest.hex.empty()) {
                    throw bug("a file that was not hashed is to be kept: " + path);
                }
                entry.size = file.size;
                entry.executable = node.executable;
            }
        }
        take(entry, node.number);
    }
}

std::uint64_t FinishedExtraction::bytes() const {
    std::uint64_t total = 0;
    each([&](const ExtractionEntry& entry, ContentId) { total += entry.size; });
    return total;
}

/// The list is read as a later pull will read it, into a second view, which only keeps what other entries may lead to:
/// to the rest of the files the rules of a layer are applied one by one. Two whole views would take twice the memory.
bool FinishedExtraction::comes_again(const Limits& limits) const {
    const std::string first_line = extraction_line(head_);
    if (first_line.size() > k_extraction_line_max ||
        parse_extraction_head(std::string_view(first_line).substr(0, first_line.size() - 1)) != head_) {
        return false;
    }
    LayerView again(view_.asked(), limits);
    try {
        const std::vector<bool> led_to = contents_led_to(view_, staging_.count());
        ContentId content = 0;
        const auto read_back = [&](const TakeEntry& take) {
            each([&](const ExtractionEntry& entry, ContentId id) {
                const std::string line = extraction_line(entry);
                const auto parsed = line.size() <= k_extraction_line_max
                                        ? parse_extraction_entry(std::string_view(line).substr(0, line.size() - 1))
                                        : std::nullopt;
                if (parsed != entry) {
                    throw Error(Exit::data, "bad-layer",
                                "expected a name that a list can hold, found " + base::escape(entry.path));
                }
                content = id;
                take(*parsed);
            });
        };
        add_tree(head_.kernels, read_back, again, [&](ContentId, const ExtractionEntry& entry) {
            if (!led_to.at(content)) {
                again.drop_file(entry.path);
            }
        });
        again.finish();
        return is_same_without_files(view_, again, led_to) && again.kernels() == head_.kernels &&
               again.warnings().empty();
    } catch (const Error& error) {
        if (error.code() == "bug") {
            throw;
        }
        return false;
    }
}

void add_recorded(const KeptList& list, const std::function<sys::Fd(const image::Digest&)>& open, Extraction& into) {
    const auto store = [&](ContentId id, const ExtractionEntry& entry) {
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
        for (std::string_view piece = next(); !piece.empty() && piece.size() <= entry.size - stored.size;
             piece = next()) {
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
    const auto entries = [&](const TakeEntry& take) {
        if (read_extraction(list.fd.get(), take).state != ListState::sound) {
            throw Error(Exit::data, "bad-layer", "expected the list of files that was proven before, found another");
        }
    };
    add_tree(list.head.kernels, entries, into.view, store);
    into.view.finish();
    into.warnings.insert(list.head.warnings.begin(), list.head.warnings.end());
}

}  // namespace kmm::registry
