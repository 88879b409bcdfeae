// SPDX-License-Identifier: Apache-2.0
// Go's regular expressions, as kernel mappings use them. Adapter over RE2.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace re2 {
class RE2;
}

namespace kmm::plan {

/// One compiled expression with the meaning Go's regexp.MatchString gives it: RE2 syntax, search anywhere in the text.
/// What Go takes and RE2 does not, `(?<name>...)`, is translated; what RE2 takes and Go does not, `\C`, is refused.
class Regexp {
public:
    /// Never throws; see `error`. Compiling is linear in the length of the text.
    explicit Regexp(const std::string& text);
    ~Regexp();
    Regexp(Regexp&&) noexcept;
    Regexp& operator=(Regexp&&) noexcept;

    /// Why the text is no regular expression, "" if it is one.
    [[nodiscard]] const std::string& error() const noexcept { return error_; }
    /// False if there is an error. Linear in the length of `subject`.
    [[nodiscard]] bool search(std::string_view subject) const;

private:
    std::unique_ptr<re2::RE2> re_;
    std::string error_;
};

/// `text` with each '+' as "[+]" that stands between plain letters or digits, as in "x86_64+rt": kernels have such
/// names, and there the sign is meant as it is. The same text if it has none.
[[nodiscard]] std::string with_literal_plus(std::string_view text);

}  // namespace kmm::plan
