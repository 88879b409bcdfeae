// SPDX-License-Identifier: Apache-2.0
#include "value/kind_phrase.hpp"

namespace kmm::value {

std::string a_kind(Kind kind) {
    switch (kind) {
        case Kind::null: return "null";
        case Kind::integer: return "an integer";
        default: return "a " + std::string(kind_name(kind));
    }
}

}  // namespace kmm::value
