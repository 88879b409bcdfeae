// SPDX-License-Identifier: Apache-2.0
// What files of objects hold, so that a file is read as YAML again only when its bytes are others. Internal to
// this room.
#pragma once

#include <cstddef>
#include <functional>
#include <iterator>
#include <list>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>

#include "api/types.hpp"
#include "base/error.hpp"
#include "value/node.hpp"

namespace kmm::cluster {

/// A fault of a file, with its place.
[[nodiscard]] Diagnostic fault_at(std::string code, std::string message, Position position, std::string hint,
                                  Exit exit = Exit::data);

/// Values by the name of a file, as many as weigh `weight_max` together: those that were asked for last.
template <typename Value>
class Recent {
public:
    explicit Recent(std::size_t weight_max) : weight_max_(weight_max) {}

    /// nullptr if it is not kept. Valid until the next put or erase_if.
    [[nodiscard]] const Value* find(const std::string& file) {
        const auto at = places_.find(file);
        if (at == places_.end()) return nullptr;
        items_.splice(items_.begin(), items_, at->second);
        return &at->second->value;
    }

    /// The value as it is kept now; it is kept until the next call at least, whatever it weighs.
    const Value& put(const std::string& file, Value value, std::size_t weight) {
        if (const auto at = places_.find(file); at != places_.end()) remove(at->second);
        items_.push_front({file, std::move(value), weight});
        places_[file] = items_.begin();
        weight_ += weight;
        while (weight_ > weight_max_ && items_.size() > 1) remove(std::prev(items_.end()));
        return items_.front().value;
    }

    void erase_if(const std::function<bool(const std::string& file)>& is_gone) {
        for (auto at = items_.begin(); at != items_.end();) {
            const auto item = at++;
            if (is_gone(item->file)) remove(item);
        }
    }

private:
    struct Item {
        std::string file;
        Value value;
        std::size_t weight;
    };
    void remove(typename std::list<Item>::iterator item) {
        weight_ -= item->weight;
        places_.erase(item->file);
        items_.erase(item);
    }
    std::list<Item> items_;  ///< the one that was asked for last comes first
    std::unordered_map<std::string, typename std::list<Item>::iterator> places_;
    std::size_t weight_max_, weight_ = 0;
};

/// Not thread safe.
class FileCache {
public:
    /// Appends the objects and the faults of a file with these bytes, as api::decode has them, and one-object-per-file.
    void append(const std::string& file, std::string bytes, api::Objects& objects, Diagnostics& diagnostics);
    /// The only document of a file with these bytes; nullptr if there is none in it, or several. Errors: the faults of
    /// the reader.
    [[nodiscard]] std::shared_ptr<const value::Document> document(const std::string& file, const std::string& bytes);
    /// The file has just been given these bytes, which read as `document`.
    void note(const std::string& file, std::string bytes, value::Document document);
    void forget(const std::function<bool(const std::string& file)>& is_gone);

private:
    struct Tree {
        std::string bytes;
        std::shared_ptr<const value::Document> document;
    };
    struct Decoded {
        std::string bytes;
        api::Objects objects;
        Diagnostics diagnostics;
    };
    /// Of a fleet of some ten thousand nodes everything is kept as objects. Trees are larger, and only those of files
    /// that are being changed.
    static constexpr std::size_t k_decoded_max = std::size_t{32} << 20U;
    static constexpr std::size_t k_trees_max = std::size_t{2} << 20U;
    [[nodiscard]] const Tree* tree_of(const std::string& file, std::string_view bytes);

    Recent<Tree> trees_{k_trees_max};
    Recent<Decoded> decoded_{k_decoded_max};
};

}  // namespace kmm::cluster
