// SPDX-License-Identifier: Apache-2.0
// Layers: whatever the archive says, the view of the image holds wanted paths only, and no link leaves them.
#include <string>

#include "base/error.hpp"
#include "base/text.hpp"
#include "fuzz/target.hpp"
#include "registry/client/request.hpp"
#include "registry/layer/layer_view.hpp"
#include "registry/unpack/tar_reader.hpp"
#include "registry/unpack/tar_scan.hpp"

namespace {

using namespace kmm;

/// The input in pieces, as a network would bring it.
class Pieces final : public registry::ByteSource {
public:
    explicit Pieces(std::string_view text) : text_(text) {}
    std::string_view next() override {
        const std::string_view piece = text_.substr(0, 700);
        text_.remove_prefix(piece.size());
        return piece;
    }

private:
    std::string_view text_;
};

void check_path(const registry::Wanted& wanted, const std::string& path) {
    fuzz::require(wanted.covers(path) || wanted.is_ancestor(path), "only what is wanted is in the view");
    for (const std::string_view piece : base::split(path, '/')) {
        fuzz::require(!piece.empty() && piece != "." && piece != ".." && !piece.starts_with(".wh."), "paths are plain");
    }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    registry::PullRequest request;
    request.all_kernels = true;
    request.firmware_path = "/firmware";
    request.limits.file_bytes = 1U << 20U;
    request.limits.entries = 1000;
    const registry::Wanted wanted = registry::wanted_from(request);
    try {
        registry::LayerView view(wanted, request.limits);
        std::optional<registry::Wanted> other;
        // Two layers of the same bytes: whiteouts and links meet what the first one left. Twice, if the way to the
        // wanted part says so.
        for (int layer = 0; layer < 2 || (layer < 4 && (layer > 2 || (other = view.other_way()))); ++layer) {
            if (layer == 2) { view = registry::LayerView(wanted, request.limits, *other); }
            Pieces pieces(fuzz::text_of(data, size));
            registry::TarScan scan(pieces);
            registry::TarReader reader(scan);
            registry::LayerEntry entry;
            view.begin_layer();
            while (reader.next(entry)) {
                if (!view.add(entry)) { continue; }
                std::uint64_t bytes = 0;
                for (std::string_view piece = reader.content(); !piece.empty() && bytes <= request.limits.file_bytes;
                     piece = reader.content()) {
                    bytes += piece.size();
                }
            }
        }
        fuzz::require(!view.other_way() || !other, "a second reading is the last");
        view.finish();
        for (const auto& [path, node] : view.nodes()) {
            check_path(wanted, path);
            fuzz::require(node.kind != registry::EntryKind::special && node.kind != registry::EntryKind::hardlink,
                          "devices and hard links are not in the view");
            fuzz::require(node.kind != registry::EntryKind::symlink || !view.target(node).starts_with('/'),
                          "no link is absolute");
        }
    } catch (const Error& error) {
        fuzz::require(error.exit() == Exit::data || error.exit() == Exit::unsafe, "a bad layer is bad data or unsafe");
        fuzz::require(!error.code().empty() && base::is_utf8(error.message()), "an error can be printed");
    }
    return 0;
}
