// SPDX-License-Identifier: Apache-2.0
// Adapter of OpenSSL: digests and the PKCS#7 message of a module signature.
#include "kmod/signature.hpp"

#include <openssl/bn.h>
#include <openssl/cms.h>
#include <openssl/evp.h>
#include <openssl/objects.h>
#include <openssl/x509.h>

#include <algorithm>
#include <array>
#include <memory>
#include <span>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/text.hpp"
#include "kmod/files.hpp"

namespace kmm::kmod {

namespace {

constexpr std::string_view k_marker = "~Module signature appended~\n";
constexpr std::size_t k_trailer_bytes = 12;  // struct module_signature
constexpr unsigned char k_pkcs7 = 2;         // PKEY_ID_PKCS7

std::string hex_of(const unsigned char* data, int length) {
    return base::to_hex(std::span<const std::uint8_t>(data, static_cast<std::size_t>(std::max(length, 0))));
}

/// The common name, else the organisation, of a distinguished name.
std::string name_text(const X509_NAME* name) {
    for (const int nid : {NID_commonName, NID_organizationName, NID_pkcs9_emailAddress}) {
        const int at = X509_NAME_get_index_by_NID(name, nid, -1);
        if (at < 0) continue;
        unsigned char* text = nullptr;
        const int length = ASN1_STRING_to_UTF8(&text, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(name, at)));
        if (length < 0) continue;
        std::string result(reinterpret_cast<const char*>(text), static_cast<std::size_t>(length));
        OPENSSL_free(text);
        return result;
    }
    return {};
}

std::string algorithm_name(const X509_ALGOR* algorithm) {
    const ASN1_OBJECT* object = nullptr;
    X509_ALGOR_get0(&object, nullptr, nullptr, algorithm);
    const char* name = OBJ_nid2sn(OBJ_obj2nid(object));
    return name == nullptr ? std::string() : base::to_lower(name);
}

ModuleSignature damaged_signature(std::string why) {
    ModuleSignature signature;
    signature.fault = std::move(why);
    return signature;
}

}  // namespace

std::string sha256_hex(std::string_view bytes) {
    std::array<std::uint8_t, EVP_MAX_MD_SIZE> digest{};
    unsigned length = 0;
    if (EVP_Digest(bytes.data(), bytes.size(), digest.data(), &length, EVP_sha256(), nullptr) != 1) {
        throw bug("the SHA-256 digest of a module could not be computed");
    }
    return base::to_hex(std::span<const std::uint8_t>(digest.data(), length));
}

AppendedSignature split_signature(std::string_view bytes) {
    AppendedSignature parts;
    if (!bytes.ends_with(k_marker)) return parts;
    bytes.remove_suffix(k_marker.size());
    parts.present = true;
    if (bytes.size() < k_trailer_bytes) {
        parts.fault = "it is cut off";
        return parts;
    }
    const std::string_view trailer = bytes.substr(bytes.size() - k_trailer_bytes);
    bytes.remove_suffix(k_trailer_bytes);
    std::size_t length = 0;
    for (std::size_t i = 8; i < k_trailer_bytes; ++i) length = length << 8U | static_cast<unsigned char>(trailer[i]);
    const bool other_words = std::any_of(trailer.begin(), trailer.begin() + 8, [&](const char& byte) { return &byte != &trailer[2] && byte != 0; });
    if (static_cast<unsigned char>(trailer[2]) != k_pkcs7) {
        parts.fault = fmt::format("its type is {}, expected PKCS#7", static_cast<unsigned char>(trailer[2]));
    } else if (length == 0 || length > bytes.size()) {
        parts.fault = "its length is more than the file";
    } else if (other_words) {
        parts.fault = "its trailer has values where PKCS#7 wants zeros";
    } else {
        parts.message = bytes.substr(bytes.size() - length);
        parts.content = bytes.substr(0, bytes.size() - length);
    }
    return parts;
}

ModuleSignature read_signature(std::string_view bytes) {
    const AppendedSignature parts = split_signature(bytes);
    if (!parts.present) return {};
    if (!parts.fault.empty()) return damaged_signature(parts.fault);
    const auto* data = reinterpret_cast<const unsigned char*>(parts.message.data());
    const std::unique_ptr<CMS_ContentInfo, decltype(&CMS_ContentInfo_free)> message(d2i_CMS_ContentInfo(nullptr, &data, static_cast<long>(parts.message.size())), CMS_ContentInfo_free);
    if (!message || OBJ_obj2nid(CMS_get0_type(message.get())) != NID_pkcs7_signed) return damaged_signature("it is no PKCS#7 message");
    STACK_OF(CMS_SignerInfo)* signers = CMS_get0_SignerInfos(message.get());
    if (signers == nullptr || sk_CMS_SignerInfo_num(signers) < 1) return damaged_signature("it names no signer");
    CMS_SignerInfo* signer = sk_CMS_SignerInfo_value(signers, 0);
    ModuleSignature signature;
    ASN1_OCTET_STRING* key_id = nullptr;
    X509_NAME* issuer = nullptr;
    ASN1_INTEGER* serial = nullptr;
    if (CMS_SignerInfo_get0_signer_id(signer, &key_id, &issuer, &serial) == 1) {
        if (issuer != nullptr) signature.signer = name_text(issuer);
        if (key_id != nullptr) signature.key_id = hex_of(ASN1_STRING_get0_data(key_id), ASN1_STRING_length(key_id));
        if (serial != nullptr) signature.key_id = hex_of(ASN1_STRING_get0_data(serial), ASN1_STRING_length(serial));
    }
    X509_ALGOR* digest = nullptr;
    CMS_SignerInfo_get0_algs(signer, nullptr, nullptr, &digest, nullptr);
    if (digest != nullptr) signature.digest = algorithm_name(digest);
    return signature;
}

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

KeyPresence find_key(const ModuleSignature& signature, const std::optional<std::vector<std::string>>& keys) {
    if (!keys || (signature.key_id.empty() && signature.signer.empty())) return KeyPresence::unknown;
    for (const auto& key : *keys) {
        const std::string lower = base::to_lower(key);
        if (!signature.key_id.empty() && lower.find(signature.key_id) != std::string::npos) return KeyPresence::present;
        if (!signature.signer.empty() && key.find(signature.signer) != std::string::npos) return KeyPresence::present;
    }
    return KeyPresence::absent;
}

std::string signature_text(const ModuleSignature& signature) {
    if (!signature.fault.empty()) return fmt::format("damaged signature: {}", signature.fault);
    const auto or_unknown = [](const std::string& text) { return text.empty() ? std::string("unknown") : base::escape(text); };
    return fmt::format("signer {}, key {}, digest {}", or_unknown(signature.signer), or_unknown(signature.key_id), or_unknown(signature.digest));
}

}  // namespace kmm::kmod
