// SPDX-License-Identifier: Apache-2.0
#include "base/printable.hpp"

#include "base/text.hpp"

namespace kmm::base {

std::string printable(std::string_view text) {
    std::string safe;
    for (const auto piece : split(text, '\\')) {
        if (piece.data() != text.data()) { safe.push_back('\\'); }
        safe += escape(piece);
    }
    return safe;
}

}  // namespace kmm::base
