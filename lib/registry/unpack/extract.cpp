// SPDX-License-Identifier: Apache-2.0
#include "registry/unpack/extract.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string_view>

#include "base/counted.hpp"
#include "base/error.hpp"
#include "base/text.hpp"
#include "registry/layer/hash.hpp"
#include "registry/unpack/layer_service.hpp"
#include "registry/unpack/tar_reader.hpp"
#include "registry/unpack/tar_scan.hpp"
#include "registry/unpack/threaded_source.hpp"

namespace kmm::registry {

namespace {

constexpr int k_far_readings_max = 3;  // for files elsewhere: archives name the first of equal files, never a chain
constexpr std::size_t k_hole_piece = 256U << 10U;
constexpr std::size_t k_config_scan_max = 1U << 20U;

/// "modules.*" next to the modules: depmod's output, which this toolkit makes itself and never reads from an image.
/// Also links of such a name: modprobe would read what they lead to.
bool is_module_metadata(std::string_view path, const Wanted& wanted) {
    const std::string_view name = name_of(path);
    return name.starts_with("modules.") && !name.starts_with("modules.ko") &&
           parent_of(parent_of(path)) == wanted.modules_root;
}

bool is_modprobe_config(std::string_view path) { return name_of(parent_of(path)) == "modprobe.d"; }

/// Whether it was asked for as such: what its commands are worth is said by whoever asked.
bool is_read_as_config(std::string_view path, const Wanted& wanted) {
    return !wanted.modprobed_root.empty() && is_in(path, wanted.modprobed_root);
}

/// Number of lines that would make modprobe run a command: "install NAME COMMAND" and "remove NAME COMMAND".
std::size_t command_lines(std::string_view text) {
    std::size_t count = 0;
    for (const std::string_view line : base::split(text, '\n')) {
        const std::string_view words = base::trim(line);
        for (const std::string_view verb : {"install", "remove"}) {
            if (words.starts_with(verb) && words.size() > verb.size() &&
                (words[verb.size()] == ' ' || words[verb.size()] == '\t')) {
                ++count;
            }
        }
    }
    return count;
}

/// Reads the beginning of the current entry to tell the user what is ignored; returns what was read.
std::string scan_for_commands(EntryReader& tar, const std::string& path, Extraction& into) {
    std::string text;
    while (text.size() < k_config_scan_max) {
        const std::string_view piece = tar.content();
        if (piece.empty()) {
            break;
        }
        text += piece;
    }
    if (const std::size_t count = command_lines(text); count != 0) {
        into.warnings.insert(fmt::format("image-command-ignored: /{}: {}", base::escape(path),
                                         base::counted(count, "install or remove line")));
    }
    return text;
}

/// Stores the content of the current entry, the beginning of which has been read. Without digests every byte is used
/// once: it may lie in memory that is shared with a parser.
void store(EntryReader& tar, std::string_view beginning, ContentId id, const LayerEntry& entry, Extraction& into) {
    std::optional<Hasher> hasher;
    if (into.file_digests) {
        hasher.emplace();
    }
    StoredFile stored;
    const auto take = [&](std::string_view bytes) {
        if (hasher) {
            hasher->update(bytes);
        }
        into.staging.append(bytes);
    };
    into.staging.begin_file(id);
    for (std::string_view piece = beginning.empty() ? tar.content() : beginning; !piece.empty();
         piece = tar.content()) {
        stored.size += piece.size();
        if (stored.size > entry.size) {
            break;
        }
        take(piece);
    }
    const std::string zeros(entry.sparse ? k_hole_piece : 0, '\0');
    while (entry.sparse && stored.size < entry.size) {
        const std::string_view hole = std::string_view(zeros).substr(0, entry.size - stored.size);
        stored.size += hole.size();
        take(hole);
        into.on_piece();
    }
    if (stored.size != entry.size) {
        throw Error(Exit::data, "bad-layer", fmt::format("expected {} bytes of \"{}\", found {}", entry.size,
                                                         base::escape(entry.name), stored.size));
    }
    if (hasher) {
        stored.sha256 = FileSum(hasher->finish());
    }
    into.staging.end_file(stored);
}

}  // namespace

void add_entries(EntryReader& reader, Extraction& into) {
    LayerEntry entry;
    while (reader.next(entry)) {
        std::string beginning;
        const bool maybe_config = entry.kind != EntryKind::directory && entry.name.find("mod") != std::string::npos;
        if (maybe_config) {
            const std::string path = normalise_entry(entry.name, into.limits);
            const bool metadata = is_module_metadata(path, into.view.wanted());
            const bool config = is_modprobe_config(path) && !is_read_as_config(path, into.view.wanted());
            if (entry.kind == EntryKind::file && (metadata || config)) {
                beginning = scan_for_commands(reader, path, into);
            }
            if (metadata) {
                continue;
            }
        }
        if (const auto id = into.view.add(entry)) {
            store(reader, beginning, *id, entry, into);
        }
    }
}

ExtractionMark::ExtractionMark(const Extraction& extraction)
    : view_(extraction.view),
      budget_(extraction.budget),
      warnings_(extraction.warnings),
      files_(extraction.staging.count()) {}

void ExtractionMark::rewind(Extraction& extraction) const {
    extraction.view = view_;
    extraction.budget = budget_;
    extraction.warnings = warnings_;
    extraction.staging.forget_after(files_);
}

void extract_layer(int fd, const image::Descriptor& layer, const image::Digest& diff_id, Extraction& into) {
    FileSource file(fd);
    extract_layer(file, layer, diff_id, into);
}

void extract_layer(ByteSource& blob, const image::Descriptor& layer, const image::Digest& diff_id, Extraction& into) {
    if (into.parser != nullptr) {
        extract_confined(*into.parser, blob, layer, diff_id, into);
        return;
    }
    const auto inflater = make_inflater(image::layer_compression(layer), blob);
    Hasher hasher(diff_id.algorithm);
    ThreadedSource ahead(*inflater, [&hasher](std::string_view piece) { hasher.update(piece); });
    CheckedSource checked(ahead, layer.size, into.limits, into.budget, into.on_piece);
    into.view.begin_layer();
    {
        TarScan scan(checked);
        TarReader tar(scan);
        add_entries(tar, into);
        scan.look_to_end();
        if (scan.lacks_end()) {
            into.warnings.insert(
                fmt::format("tar-without-end: the layer {} ends without the blocks that end a tar: was it cut off when "
                            "it was made?",
                            layer.digest.short_text()));
        }
    }
    checked.drain();
    require_diff_id(diff_id, hasher.finish().hex);
}

void require_diff_id(const image::Digest& diff_id, const std::string& found) {
    if (found != diff_id.hex) {
        throw Error(Exit::integrity, "digest-mismatch",
                    "the inflated layer is not what the image configuration says")
            .detail("expected", diff_id.to_string())
            .detail("found", fmt::format("{}:{}", image::to_string(diff_id.algorithm), base::escape(found)))
            .hint("the image was altered or built wrongly: nothing of it was used");
    }
}

void read_image(Extraction& into, const std::function<void()>& read) {
    const ExtractionMark nothing(into);
    read();
    const auto real = into.view.other_way();
    const auto read_again = [&](std::set<std::string> far) {
        const Wanted asked = into.view.asked();
        nothing.rewind(into);
        if (real) {
            into.view = LayerView(asked, into.limits, *real);
        }
        into.view.look_for(std::move(far));
        read();
        static_cast<void>(into.view.other_way());
    };
    if (real) {
        read_again({});
    }
    std::set<std::string> looked_for;
    for (int reading = 0; reading < k_far_readings_max; ++reading) {
        const auto far = into.view.far_files();
        if (std::includes(looked_for.begin(), looked_for.end(), far.begin(), far.end())) {
            break;
        }
        looked_for.insert(far.begin(), far.end());
        read_again(looked_for);
    }
    into.view.finish();
}

}  // namespace kmm::registry
