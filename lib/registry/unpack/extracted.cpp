// SPDX-License-Identifier: Apache-2.0
#include "registry/unpack/extracted.hpp"

#include "base/error.hpp"
#include "registry/unpack/staging.hpp"

namespace kmm::registry {

const std::string& ExtractedFile::digest() const {
    if (sha256.empty()) {
        throw bug("the digest of a file is needed that was not hashed: " + path);
    }
    return sha256;
}

ExtractedFiles::ExtractedFiles(std::shared_ptr<const ExtractedTree> tree) : tree_(std::move(tree)) {
    for (const auto& [path, node] : tree_->nodes) {
        size_ += node.kind == EntryKind::file ? 1 : 0;
    }
}

void ExtractedFiles::each(const std::function<void(const ExtractedFile&)>& take, std::size_t most) const {
    if (size_ == 0) {
        return;
    }
    std::size_t count = 0;
    for (auto item = tree_->nodes.begin(); item != tree_->nodes.end() && count < most; ++item) {
        if (item->second.kind == EntryKind::file) {
            const StoredFile& content = tree_->contents.at(item->second.number);
            take({"/" + item->first, content.size, content.sha256.hex()});
            ++count;
        }
    }
}

}  // namespace kmm::registry
