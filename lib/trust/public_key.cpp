// SPDX-License-Identifier: Apache-2.0
#include "trust/public_key.hpp"

#include <fmt/format.h>
#include <openssl/decoder.h>
#include <openssl/err.h>
#include <openssl/evp.h>

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

#include "base/error.hpp"
#include "base/text.hpp"

namespace kmm::trust {

namespace {

constexpr int k_rsa_bits_min = 2048;
constexpr std::size_t k_type_shown = 40;
constexpr std::string_view k_begin = "-----BEGIN ";

EVP_PKEY* key_of(const std::shared_ptr<void>& key) { return static_cast<EVP_PKEY*>(key.get()); }

Error bad_public_key(const std::string& name, const std::string& found) {
    return Error(Exit::data, "bad-key",
                 fmt::format("{}: expected a public key in PEM form, found {}", base::escape(name), found));
}

/// The words between "-----BEGIN " and "-----" of each block.
std::vector<std::string_view> block_types(std::string_view text) {
    std::vector<std::string_view> types;
    for (std::size_t at = text.find(k_begin); at != std::string_view::npos; at = text.find(k_begin)) {
        text.remove_prefix(at + k_begin.size());
        types.push_back(text.substr(0, text.find("-----")));
    }
    return types;
}

std::shared_ptr<void> decode_key(std::string_view text) {
    EVP_PKEY* key = nullptr;
    const std::unique_ptr<OSSL_DECODER_CTX, decltype(&OSSL_DECODER_CTX_free)> decoder(
        OSSL_DECODER_CTX_new_for_pkey(&key, "PEM", nullptr, nullptr, EVP_PKEY_PUBLIC_KEY, nullptr, nullptr),
        &OSSL_DECODER_CTX_free);
    const auto* data = reinterpret_cast<const unsigned char*>(text.data());  // NOLINT: bytes of a text
    std::size_t size = text.size();
    const bool read = decoder && OSSL_DECODER_from_data(decoder.get(), &data, &size) == 1;
    ERR_clear_error();
    std::shared_ptr<void> result(key, [](void* held) { EVP_PKEY_free(static_cast<EVP_PKEY*>(held)); });
    return read ? result : nullptr;
}

}  // namespace

PublicKey::PublicKey(std::string_view text, std::string name) : name_(std::move(name)) {
    const std::vector<std::string_view> types = block_types(text);
    const std::string_view type = types.empty() ? std::string_view() : types.front();
    if (type.empty()) {
        throw bad_public_key(name_, "no PEM block")
            .hint("cosign public-key --key KEY, or openssl pkey -in KEY -pubout, writes one");
    }
    if (type != "PUBLIC KEY" && type != "RSA PUBLIC KEY") {
        auto error = bad_public_key(name_, fmt::format("a block \"{}\"", base::escape(type.substr(0, k_type_shown))));
        if (type.ends_with("PRIVATE KEY")) {
            error.hint(
                "keep the private key away from nodes: cosign public-key --key KEY, or openssl pkey -in KEY -pubout, "
                "writes the public one");
        } else if (type == "CERTIFICATE") {
            error.hint("openssl x509 -in FILE -pubkey -noout writes its public key");
        }
        throw error;
    }
    if (types.size() > 1) {  // skopeo and cosign read the first and say nothing of the others
        const bool keys = std::all_of(types.begin(), types.end(), [&](std::string_view each) { return each == type; });
        throw Error(Exit::data, "bad-key",
                    keys ? fmt::format("{}: expected one public key, found {}", base::escape(name_), types.size())
                         : fmt::format("{}: expected one public key alone, found a block \"{}\" after it",
                                       base::escape(name_), base::escape(types[1].substr(0, k_type_shown))))
            .hint(keys ? "give each key a file: --signature-key once for each, keyPaths or keyDatas in a policy"
                       : "leave only the block of the public key in the file");
    }
    key_ = decode_key(text.substr(text.find(k_begin)));
    if (!key_) {
        throw bad_public_key(name_, "a damaged one");
    }
    const int kind = EVP_PKEY_get_base_id(key_of(key_));
    if (kind != EVP_PKEY_RSA && kind != EVP_PKEY_EC && kind != EVP_PKEY_ED25519) {
        const char* const found = EVP_PKEY_get0_type_name(key_of(key_));
        throw Error(Exit::data, "bad-key",
                    fmt::format("{}: expected an EC, RSA or Ed25519 key, found {}", base::escape(name_),
                                found == nullptr ? "another" : found));
    }
    if (const int bits = EVP_PKEY_get_bits(key_of(key_)); kind == EVP_PKEY_RSA && bits < k_rsa_bits_min) {
        throw Error(Exit::data, "bad-key",
                    fmt::format("{}: expected an RSA key of at least {} bits, found {}", base::escape(name_),
                                k_rsa_bits_min, bits));
    }
}

bool PublicKey::verifies(std::string_view message, std::string_view signature) const {
    EVP_PKEY* const key = key_of(key_);
    const EVP_MD* const digest = EVP_PKEY_get_base_id(key) == EVP_PKEY_ED25519 ? nullptr : EVP_sha256();
    const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(), &EVP_MD_CTX_free);
    const auto bytes = [](std::string_view text) {
        return reinterpret_cast<const unsigned char*>(text.data());
    };  // NOLINT: bytes of a text
    const bool good =
        context && EVP_DigestVerifyInit(context.get(), nullptr, digest, nullptr, key) == 1 &&
        EVP_DigestVerify(context.get(), bytes(signature), signature.size(), bytes(message), message.size()) == 1;
    ERR_clear_error();
    return good;
}

}  // namespace kmm::trust
