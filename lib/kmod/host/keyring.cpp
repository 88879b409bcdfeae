// SPDX-License-Identifier: Apache-2.0
// What a signature says beside the keys of the kernel.
#include <algorithm>
#include <set>

#include "base/text.hpp"
#include "kmod/host/keyring.hpp"
#include "kmod/ko/files.hpp"
#include "kmod/ko/signature.hpp"

namespace kmm::kmod {

namespace {

/// True if `id` is in `key`, and not a part of a longer number: serial numbers may be short. Kernels print the zeros
/// that DER puts in front of some.
bool has_identifier(const std::string& key, const std::string& id) {
    const auto is_hex = [&](std::size_t at) {
        return at < key.size() && std::string_view("0123456789abcdef").find(key[at]) != std::string_view::npos;
    };
    for (std::size_t at = key.find(id); at != std::string::npos; at = key.find(id, at + 1)) {
        const std::size_t begin = at >= 2 && key.compare(at - 2, 2, "00") == 0 ? at - 2 : at;
        if ((begin == 0 || !is_hex(begin - 1)) && !is_hex(at + id.size())) return true;
    }
    return false;
}

/// True if `key`, a line of the kernel's about one, is of a certificate for `name`: "NAME: ID: ...", in front of which
/// its organisation may stand, or the name alone.
bool is_key_of(const std::string& key, const std::string& name) {
    if (key == name) return true;
    for (std::size_t at = key.find(name); at != std::string::npos; at = key.find(name, at + 1)) {
        const bool begins = at == 0 || (at >= 2 && key.compare(at - 2, 2, ": ") == 0);
        const std::string_view rest = std::string_view(key).substr(at + name.size());
        const std::size_t end = std::min(rest.find_first_not_of("0123456789abcdef", 2), rest.size());
        if (begins && rest.starts_with(": ") && end > 2 && (end == rest.size() || rest[end] == ':')) return true;
    }
    return false;
}

/// Serial numbers as numbers: DER puts a zero in front of some.
bool same_serial(std::string_view one, std::string_view other) {
    const auto digits = [](std::string_view text) {
        return text.substr(std::min(text.find_first_not_of('0'), text.size()));
    };
    return digits(one) == digits(other);
}

/// What `enrolled` knows of `key`, a line of the kernel's: whether it is the signer's certificate; nullopt if it is
/// none of them.
std::optional<bool> is_signer(const std::string& key, const ModuleSignature& signature,
                              const std::vector<EnrolledCertificate>& enrolled) {
    std::optional<bool> verdict;
    const std::string lower = base::to_lower(key);
    for (const auto& certificate : enrolled) {
        if (certificate.id.empty() || !has_identifier(lower, certificate.id)) continue;
        verdict = verdict.value_or(false) || (certificate.issuer == signature.signer &&
                                              same_serial(certificate.serial, signature.key_id));
    }
    return verdict;
}

}  // namespace

std::optional<std::vector<std::string>> kernel_keys(const HostPaths& host) {
    const auto text = read_text(host.proc + "/keys");
    if (!text) return std::nullopt;
    std::vector<std::string> keys;
    for (const auto line : base::split(*text, '\n')) {
        const auto at = line.find(" asymmetri");
        if (at == std::string_view::npos) continue;
        const auto blank = line.find(' ', at + 1);
        if (blank != std::string_view::npos) keys.emplace_back(base::trim(line.substr(blank)));
    }
    if (keys.empty()) return std::nullopt;
    return keys;
}

KeyPresence find_key(const ModuleSignature& signature, const std::optional<std::vector<std::string>>& keys,
                     const ModuleSignature* own, const std::vector<EnrolledCertificate>& enrolled) {
    const bool nameless = signature.key_id.empty() && signature.signer.empty();
    KeyPresence presence = !keys || nameless ? KeyPresence::unknown : KeyPresence::absent;
    std::set<std::string_view> of_name;
    for (const auto& key : keys.value_or(std::vector<std::string>{})) {
        const std::string lower = base::to_lower(key);
        const auto names = [&](const std::string& id) { return !id.empty() && has_identifier(lower, id); };
        if (names(signature.key_id) || std::any_of(signature.authorities.begin(), signature.authorities.end(), names))
            return KeyPresence::present;
        if (signature.signer.empty()) continue;
        const auto known = is_signer(key, signature, enrolled);
        if (known == true) return KeyPresence::present;
        if (!known && is_key_of(key, signature.signer)) of_name.insert(key);
    }
    // A name is not all that a key is: with the certificate at hand it has to be this one, and if the only key of the
    // name is the one that signs the kernel's modules, then it has that one's serial number.
    const bool is_other = own != nullptr && own->signer == signature.signer && own->key_id != signature.key_id;
    if (signature.authorities.empty() && of_name.size() > (is_other ? 1U : 0U)) return KeyPresence::present;
    for (const auto& other : signature.others) {
        const KeyPresence found = find_key(other, keys, own, enrolled);
        if (found == KeyPresence::present) return found;
        if (found == KeyPresence::unknown) presence = found;
    }
    return presence;
}

bool is_revoked(const ModuleSignature& signature, const std::vector<EnrolledCertificate>& revoked) {
    const auto is_signer_of = [](const ModuleSignature& one, const EnrolledCertificate& certificate) {
        return (certificate.issuer == one.signer && same_serial(certificate.serial, one.key_id)) ||
               (one.signer.empty() && certificate.id == one.key_id) ||
               std::find(one.authorities.begin(), one.authorities.end(), certificate.id) != one.authorities.end();
    };
    return std::any_of(revoked.begin(), revoked.end(), [&](const EnrolledCertificate& certificate) {
        return is_signer_of(signature, certificate) ||
               std::any_of(signature.others.begin(), signature.others.end(),
                           [&](const ModuleSignature& other) { return is_signer_of(other, certificate); });
    });
}

}  // namespace kmm::kmod
