// SPDX-License-Identifier: Apache-2.0
// Helm's --set, --set-string, --set-json, --set-file and --set-literal.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "recipe/govalue/value.hpp"

namespace kmm::recipe::chart {

/// How the values behind '=' are read.
enum class SetForm {
    typed,    ///< --set: numbers become int64, true, false and null what they say, all else texts
    text,     ///< --set-string: always texts
    json,     ///< --set-json: JSON, an empty value is null
    file,     ///< --set-file: the text of the file that is named
    literal,  ///< --set-literal: the rest of the text as it is, without escapes and lists
};

/// The content of the file that --set-file names.
using ReadSetFile = std::function<std::string(const std::string& path)>;

/// Puts "a.b=1,c={x,y},d[0].e=z" into `values`, a map; with SetForm::json also a whole JSON object, which is merged.
/// `read` is called with SetForm::file alone. Error: usage "bad-set" that names the key and the place.
void set_values(const tmpl::Value& values, std::string_view text, SetForm form = SetForm::typed,
                const ReadSetFile& read = {});

/// The option of a form: "--set-json".
[[nodiscard]] std::string_view set_option(SetForm form) noexcept;

}  // namespace kmm::recipe::chart
