// SPDX-License-Identifier: Apache-2.0
// Entries of a layer one after the other, wherever they come from.
#pragma once

#include <string_view>

#include "registry/layer/layer_view.hpp"

namespace kmm::registry {

class EntryReader {
public:
    virtual ~EntryReader() = default;
    /// The next entry; false at the end.
    [[nodiscard]] virtual bool next(LayerEntry& entry) = 0;
    /// The next piece of the current entry's content, holes filled with zeros; empty at its end.
    [[nodiscard]] virtual std::string_view content() = 0;
};

}  // namespace kmm::registry
