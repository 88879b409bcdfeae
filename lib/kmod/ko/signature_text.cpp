// SPDX-License-Identifier: Apache-2.0
// What is said of a signature.
#include <fmt/format.h>

#include "base/text.hpp"
#include "kmod/ko/signature.hpp"

namespace kmm::kmod {

bool is_weak_digest(std::string_view digest) noexcept { return digest == "md4" || digest == "md5" || digest == "sha1"; }

std::string weak_digest_of(const ModuleSignature& signature) {
    if (is_weak_digest(signature.digest)) return signature.digest;
    for (const auto& other : signature.others)
        if (is_weak_digest(other.digest)) return other.digest;
    return {};
}

std::string signature_text(const ModuleSignature& signature) {
    if (!signature.fault.empty()) return fmt::format("damaged signature: {}", signature.fault);
    const auto or_unknown = [](const std::string& text) {
        return text.empty() ? std::string("unknown") : base::escape(text);
    };
    std::string text = fmt::format("signer {}, key {}, digest {}", or_unknown(signature.signer),
                                   or_unknown(signature.key_id), or_unknown(signature.digest));
    for (const auto& other : signature.others) text += "; " + signature_text(other);
    return text;
}

}  // namespace kmm::kmod
