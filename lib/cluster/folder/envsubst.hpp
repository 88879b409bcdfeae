// SPDX-License-Identifier: Apache-2.0
// ${NAME} and its functions, as Flux replaces them in the text of an object.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>

namespace kmm::cluster {

/// The value of a variable, nullopt if it has none.
using VariableLookup = std::function<std::optional<std::string_view>(std::string_view name)>;

/// What was made of a text.
struct Substitution {
    std::string text;
    std::set<std::string> unknown;  ///< variables without a value and without a default: "" is in their place
    std::string fault;              ///< why Flux refuses the text, or why it was not followed; "" if neither
    bool is_refused = false;        ///< by Flux
};

/// Replaces ${NAME} by what `value_of` has, and $$ by $, with the functions of envsubst: default (:- := = :+ :?),
/// length (#), case (, ,, ^ ^^), part (:2:3), removal of a pattern (# ## % %%) and replacement (/ // /# /%).
/// Functions of texts outside ASCII, character classes in patterns and results of more than 16 MiB are not followed.
[[nodiscard]] Substitution substitute(std::string_view text, const VariableLookup& value_of);

}  // namespace kmm::cluster
