// SPDX-License-Identifier: Apache-2.0
// Sprig's sums, keys and semantic versions.
#include <cstdint>
#include <string>

#include <fmt/format.h>

#include "digest/digest.hpp"
#include "recipe/golib/keys.hpp"
#include "recipe/golib/version.hpp"
#include "recipe/govalue/format.hpp"
#include "recipe/sprig/sprig.hpp"
#include "recipe/template/engine.hpp"

namespace kmm::recipe::tmpl {
namespace {

template <digest::Algorithm algorithm>
Value sum(Call&, List& a) {
    return Value::string(digest::hex(a[0].text(), algorithm));
}

}  // namespace

std::span<const Function> digest_functions() {
    static const Function table[] = {
        {"sha1sum", "s", false, sum<digest::Algorithm::sha1>},
        {"sha256sum", "s", false, sum<digest::Algorithm::sha256>},
        {"sha512sum", "s", false, sum<digest::Algorithm::sha512>},
        {"adler32sum", "s", false,
         [](Call&, List& a) {
             std::uint32_t low = 1, high = 0;
             for (const char c : a[0].text()) {
                 low = (low + static_cast<unsigned char>(c)) % 65521;
                 high = (high + low) % 65521;
             }
             return Value::string(std::to_string((high << 16U) | low));
         }},
        {"derivePassword", "ussss", false,
         [](Call& call, List& a) {
             // scrypt takes as long as so many steps.
             constexpr std::uint64_t k_scrypt = 100'000;
             call.run.step(k_scrypt);
             return Value::string(derive_password(static_cast<std::uint32_t>(a[0].as_int()), a[1].text(), a[2].text(),
                                                  a[3].text(), a[4].text()));
         }},
        {"decryptAES", "ss", false,
         [](Call&, List& a) { return Value::string(decrypt_aes(a[0].text(), a[1].text())); }},
    };
    return table;
}

std::span<const Function> version_functions() {
    static const Function table[] = {
        {"semver", "s", false,
         [](Call&, List& a) {
             const auto version = parse_version(a[0].text());
             if (!version) { throw Fault{fmt::format("invalid semantic version {}", quote_text(a[0].text()))}; }
             return version_value(*version);
         }},
        {"semverCompare", "ss", false,
         [](Call&, List& a) {
             (void)version_matches(a[0].text(), Version{});
             const auto version = parse_version(a[1].text());
             if (!version) { throw Fault{fmt::format("invalid semantic version {}", quote_text(a[1].text()))}; }
             return Value::boolean(version_matches(a[0].text(), *version));
         }},
    };
    return table;
}

}  // namespace kmm::recipe::tmpl
