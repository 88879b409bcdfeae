// SPDX-License-Identifier: Apache-2.0
#include "registry/layer/rewritten.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "registry/layer/hash.hpp"
#include "registry/layer/path_rules.hpp"
#include "value/writer.hpp"

namespace kmm::registry {

NewDocument rewritten(const value::Node& root, const std::string& media_type) {
    NewDocument made{value::to_json(root), media_type, {}};
    made.digest = digest_of(made.text);
    return made;
}

void set_content(value::Node& descriptor, const image::Digest& digest, std::uint64_t size) {
    descriptor.set("digest", digest.to_string());
    descriptor.set("size", size);
    descriptor.erase("data");  // the content itself, which is another now
}

value::Node with_layer(value::Node config, std::size_t layers, const image::Digest& diff_id,
                       const std::string& created_by) {
    config.find("rootfs")->find("diff_ids")->push_back(diff_id.to_string());
    value::Node* history = config.find("history");
    const auto fits = [&] {
        return static_cast<std::size_t>(
                   std::count_if(history->items().begin(), history->items().end(), [](const value::Node& item) {
                       const value::Node* empty = item.find("empty_layer");
                       return empty == nullptr || empty->as_bool() != true;
                   })) == layers;
    };
    if (history != nullptr && history->is_sequence() && fits()) {
        value::Node entry = value::Node::mapping();
        if (const value::Node* created = config.find("created")) {
            entry.set("created", *created);  // a clock would make every run another image
        }
        entry.set("created_by", created_by);
        config.find("history")->push_back(std::move(entry));
    }
    return config;
}

std::string end_of_link(const LayerView& view, std::string path) {
    for (std::size_t end = path.find('/'); true; end = path.find('/', end + 1)) {
        const std::string begin = path.substr(0, end);
        const auto node = view.nodes().find(begin);
        if (node != view.nodes().end() && node->second.kind == EntryKind::symlink) {
            const std::string target =
                fmt::format("{}/{}{}", parent_of(begin), view.target(node->second), path.substr(begin.size()));
            path = std::filesystem::path(target).lexically_normal().native();
            end = 0;
        } else if (end == std::string::npos) {
            return path;
        }
    }
}

}  // namespace kmm::registry
