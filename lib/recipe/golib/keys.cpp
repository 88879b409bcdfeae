// SPDX-License-Identifier: Apache-2.0
#include "recipe/golib/keys.hpp"

#include <array>
#include <memory>
#include <span>
#include <vector>

#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "base/text.hpp"
#include "recipe/govalue/value.hpp"

namespace kmm::recipe::tmpl {

namespace {

constexpr std::string_view k_seed = "com.lyndir.masterpassword";

std::string big_endian(std::uint32_t number) {
    std::string out;
    for (const unsigned shift : {24U, 16U, 8U, 0U}) { out += static_cast<char>((number >> shift) & 0xFFU); }
    return out;
}

const unsigned char* bytes_of(std::string_view text) { return reinterpret_cast<const unsigned char*>(text.data()); }

std::span<const std::string_view> password_forms(std::string_view kind) {
    static constexpr std::array<std::string_view, 2> maximum{"anoxxxxxxxxxxxxxxxxx", "axxxxxxxxxxxxxxxxxno"};
    static constexpr std::array<std::string_view, 21> long_forms{
        "CvcvnoCvcvCvcv", "CvcvCvcvnoCvcv", "CvcvCvcvCvcvno", "CvccnoCvcvCvcv", "CvccCvcvnoCvcv", "CvccCvcvCvcvno",
        "CvcvnoCvccCvcv", "CvcvCvccnoCvcv", "CvcvCvccCvcvno", "CvcvnoCvcvCvcc", "CvcvCvcvnoCvcc", "CvcvCvcvCvccno",
        "CvccnoCvccCvcv", "CvccCvccnoCvcv", "CvccCvccCvcvno", "CvcvnoCvccCvcc", "CvcvCvccnoCvcc", "CvcvCvccCvccno",
        "CvccnoCvcvCvcc", "CvccCvcvnoCvcc", "CvccCvcvCvccno"};
    static constexpr std::array<std::string_view, 2> medium{"CvcnoCvc", "CvcCvcno"};
    static constexpr std::array<std::string_view, 1> short_forms{"Cvcn"};
    static constexpr std::array<std::string_view, 3> basic{"aaanaaan", "aannaaan", "aaannaaa"};
    static constexpr std::array<std::string_view, 1> pin{"nnnn"};
    if (kind == "maximum") { return maximum; }
    if (kind == "long") { return long_forms; }
    if (kind == "medium") { return medium; }
    if (kind == "short") { return short_forms; }
    if (kind == "basic") { return basic; }
    if (kind == "pin") { return pin; }
    return {};
}

std::string_view form_letters(char form) {
    switch (form) {
        case 'V': return "AEIOU";
        case 'C': return "BCDFGHJKLMNPQRSTVWXYZ";
        case 'v': return "aeiou";
        case 'c': return "bcdfghjklmnpqrstvwxyz";
        case 'A': return "AEIOUBCDFGHJKLMNPQRSTVWXYZ";
        case 'a': return "AEIOUaeiouBCDFGHJKLMNPQRSTVWXYZbcdfghjklmnpqrstvwxyz";
        case 'n': return "0123456789";
        case 'o': return "@&%?,=[]_:-+*$#!'^~;()/.";
        default: return "AEIOUaeiouBCDFGHJKLMNPQRSTVWXYZbcdfghjklmnpqrstvwxyz0123456789!@#$%^&*()";
    }
}

}  // namespace

std::string derive_password(std::uint32_t counter, std::string_view kind, std::string_view password,
                            std::string_view user, std::string_view site) {
    const auto forms = password_forms(kind);
    if (forms.empty()) { return "cannot find password template " + std::string(kind); }
    const std::string salt =
        std::string(k_seed) + big_endian(static_cast<std::uint32_t>(user.size())) + std::string(user);
    std::array<unsigned char, 64> key{};
    if (EVP_PBE_scrypt(password.data(), password.size(), bytes_of(salt), salt.size(), 32768, 8, 2, 256U << 20U,
                       key.data(), key.size()) != 1) {
        throw Fault{"scrypt failed"};
    }
    const std::string message = std::string(k_seed) + big_endian(static_cast<std::uint32_t>(site.size())) +
                                std::string(site) + big_endian(counter);
    std::array<unsigned char, EVP_MAX_MD_SIZE> seed{};
    unsigned size = 0;
    HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()), bytes_of(message), message.size(), seed.data(), &size);
    const std::string_view form = forms[seed[0] % forms.size()];
    std::string out;
    for (std::size_t i = 0; i < form.size(); ++i) {
        const std::string_view letters = form_letters(form[i]);
        out += letters[seed.at(i + 1) % letters.size()];
    }
    return out;
}

std::string decrypt_aes(std::string_view password, std::string_view encoded) {
    if (encoded.empty()) { return ""; }
    std::array<unsigned char, 32> key{};
    for (std::size_t i = 0; i < key.size() && i < password.size(); ++i) { key.at(i) = bytes_of(password)[i]; }
    const auto bytes = base::from_base64(encoded);
    if (!bytes || bytes->size() < 32 || bytes->size() % 16 != 0) {
        throw Fault{"the text is not one that encryptAES makes"};
    }
    const std::unique_ptr<EVP_CIPHER_CTX, decltype(&EVP_CIPHER_CTX_free)> context(EVP_CIPHER_CTX_new(),
                                                                                  EVP_CIPHER_CTX_free);
    std::vector<unsigned char> out(bytes->size());
    int first = 0, last = 0;
    const unsigned char* data = bytes_of(*bytes);
    if (!context || EVP_DecryptInit_ex(context.get(), EVP_aes_256_cbc(), nullptr, key.data(), data) != 1 ||
        EVP_DecryptUpdate(context.get(), out.data(), &first, data + 16, static_cast<int>(bytes->size() - 16)) != 1 ||
        EVP_DecryptFinal_ex(context.get(), out.data() + first, &last) != 1) {
        throw Fault{"the text cannot be decrypted with this password"};
    }
    return {out.begin(), out.begin() + first + last};
}

}  // namespace kmm::recipe::tmpl
