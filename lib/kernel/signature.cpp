// SPDX-License-Identifier: Apache-2.0
// Adapter of OpenSSL: certificates, and the verification of PKCS#7 messages.
#include "kernel/signature.hpp"

#include <openssl/bio.h>
#include <openssl/cms.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/text.hpp"
#include "kmod/ko/files.hpp"
#include "kmod/ko/signature.hpp"

namespace kmm::kernel {

namespace {

constexpr std::size_t k_certificates_bytes_max = 16U << 20U;
constexpr int k_chain_max = 8;

template <auto Free>
struct Freed {
    template <typename T>
    void operator()(T* object) const noexcept { Free(object); }
};
using X509Ptr = std::unique_ptr<X509, Freed<X509_free>>;
using CmsPtr = std::unique_ptr<CMS_ContentInfo, Freed<CMS_ContentInfo_free>>;
using DigestPtr = std::unique_ptr<EVP_MD_CTX, Freed<EVP_MD_CTX_free>>;
using BioPtr = std::unique_ptr<BIO, Freed<BIO_free_all>>;

void free_certificates(STACK_OF(X509)* list) { sk_X509_pop_free(list, X509_free); }
using X509List = std::unique_ptr<STACK_OF(X509), Freed<free_certificates>>;

const unsigned char* octets(std::string_view bytes) { return reinterpret_cast<const unsigned char*>(bytes.data()); }

X509Ptr decode_certificate(std::string_view der) {
    const unsigned char* at = octets(der);
    X509Ptr certificate(d2i_X509(nullptr, &at, static_cast<long>(der.size())));
    // Bytes behind the certificate would be silently passed over.
    if (certificate && at != octets(der) + der.size()) certificate.reset();
    return certificate;
}

std::string subject_of(const X509* certificate) {
    return kmod::name_text(X509_get_subject_name(certificate));
}

Certificate described(const X509* certificate, const std::string& source) {
    unsigned char* der = nullptr;
    const int length = i2d_X509(certificate, &der);
    if (length < 0) throw bug("a certificate that was read cannot be written");
    Certificate result{std::string(reinterpret_cast<const char*>(der), static_cast<std::size_t>(length)),
                       subject_of(certificate), source};
    OPENSSL_free(der);
    return result;
}

/// Whether the signature of `signer` over `content` was made with the key of `certificate`; nullopt if OpenSSL cannot
/// say, as of ML-DSA before 3.5.
std::optional<bool> verifies(CMS_SignerInfo* signer, X509* certificate, std::string_view content) {
    X509_ALGOR* algorithm = nullptr;
    CMS_SignerInfo_get0_algs(signer, nullptr, nullptr, &algorithm, nullptr);
    const ASN1_OBJECT* object = nullptr;
    X509_ALGOR_get0(&object, nullptr, nullptr, algorithm);
    const EVP_MD* digest = EVP_get_digestbyobj(object);
    const ASN1_OCTET_STRING* signature = CMS_SignerInfo_get0_signature(signer);
    EVP_PKEY* key = X509_get0_pubkey(certificate);
    const DigestPtr context(EVP_MD_CTX_new());
    if (signature == nullptr || !context) return false;
    // Attributes are only left to stand beside ML-DSA (kmod::read_signature): they would be what is signed.
    if (digest == nullptr || key == nullptr || CMS_signed_get_attr_count(signer) > 0 ||
        EVP_DigestVerifyInit(context.get(), nullptr, digest, nullptr, key) != 1)
        return std::nullopt;
    return EVP_DigestVerifyUpdate(context.get(), content.data(), content.size()) == 1 &&
           EVP_DigestVerifyFinal(context.get(), ASN1_STRING_get0_data(signature),
                                 static_cast<std::size_t>(ASN1_STRING_length(signature))) == 1;
}

bool same_octets(const ASN1_OCTET_STRING* one, const ASN1_OCTET_STRING* other) {
    return one == nullptr || other == nullptr ? one == other : ASN1_OCTET_STRING_cmp(one, other) == 0;
}

/// Whether kernels take both for one certificate: by issuer, serial number and subject key identifier.
bool same_ids(X509* one, X509* other) {
    return X509_issuer_and_serial_cmp(one, other) == 0 &&
           same_octets(X509_get0_subject_key_id(one), X509_get0_subject_key_id(other));
}

bool made_by(X509* certificate, X509* issuer) {
    EVP_PKEY* key = X509_get0_pubkey(issuer);
    return key != nullptr && X509_verify(certificate, key) == 1;
}

/// The trusted certificate that vouches for `certificate`, itself or by the chain through those in the message; nullptr
/// if none. As in pkcs7_validate_trust_one: the issuer of a certificate is asked for among the trusted ones if the
/// message does not carry it.
X509* voucher(X509* certificate, const std::vector<X509Ptr>& trusted, STACK_OF(X509)* carried) {
    X509* below = nullptr;  // signed by `certificate`
    for (int step = 0; step < k_chain_max; ++step) {
        for (const auto& known : trusted)
            if (same_ids(known.get(), certificate) && (below == nullptr || made_by(below, known.get())))
                return known.get();
        X509* above = nullptr;
        for (int i = 0; i < sk_X509_num(carried) && above == nullptr; ++i)
            if (kmod::names_issuer(certificate, sk_X509_value(carried, i))) above = sk_X509_value(carried, i);
        if (above == nullptr) {
            for (const auto& known : trusted)
                if (kmod::names_issuer(certificate, known.get()) && made_by(certificate, known.get()))
                    return known.get();
            return nullptr;
        }
        if (above == certificate || !made_by(certificate, above)) return nullptr;
        below = certificate;
        certificate = above;
    }
    return nullptr;
}

SignatureCheck bad_signature(std::string fault) { return {Trust::bad, "", std::move(fault)}; }

SignatureCheck unknown_algorithm() {
    return {Trust::unchecked, "", "OpenSSL does not know the algorithm of its key or digest"};
}

/// True for a signer that is named by issuer and serial number. Those that a subject key identifier names are never
/// looked for among the certificates of the message (pkcs7_find_key).
bool is_named_by_serial(CMS_SignerInfo* signer) {
    ASN1_INTEGER* serial = nullptr;
    return CMS_SignerInfo_get0_signer_id(signer, nullptr, nullptr, &serial) == 1 && serial != nullptr;
}

/// One of the message's signers. The kernel looks for its certificate in the message first, then among the trusted
/// ones.
SignatureCheck check_signer(CMS_SignerInfo* signer, std::string_view content, const std::vector<X509Ptr>& trusted,
                            STACK_OF(X509) * carried) {
    const std::string differs = "the module is not what was signed, or the signature was changed";
    for (int i = 0; i < sk_X509_num(carried) && is_named_by_serial(signer); ++i) {
        X509* certificate = sk_X509_value(carried, i);
        if (CMS_SignerInfo_cert_cmp(signer, certificate) != 0) continue;
        const auto fits = verifies(signer, certificate, content);
        if (!fits) return unknown_algorithm();
        if (!*fits) return bad_signature(differs);
        if (X509* known = voucher(certificate, trusted, carried); known != nullptr)
            return {Trust::trusted, subject_of(known), ""};
        return {Trust::unknown_key, "", ""};
    }
    for (const auto& certificate : trusted) {
        if (CMS_SignerInfo_cert_cmp(signer, certificate.get()) != 0) continue;
        const auto fits = verifies(signer, certificate.get(), content);
        if (!fits) return unknown_algorithm();
        return *fits ? SignatureCheck{Trust::trusted, subject_of(certificate.get()), ""} : bad_signature(differs);
    }
    return {Trust::unknown_key, "", ""};
}

}  // namespace

std::vector<Certificate> read_certificates(const std::string& path) {
    std::error_code failed;
    if (!std::filesystem::exists(path, failed))
        throw Error(Exit::not_found, "cert-not-found", fmt::format("there is no {}", base::escape(path)))
            .hint("name a certificate in DER or PEM form");
    const auto bytes = kmod::read_raw(path, k_certificates_bytes_max);
    if (!bytes)
        throw Error(Exit::io, "io", fmt::format("{} cannot be read", base::escape(path)))
            .hint("look at its permissions");
    std::vector<Certificate> result;
    if (const auto certificate = decode_certificate(*bytes)) return {described(certificate.get(), path)};
    const BioPtr text(BIO_new_mem_buf(bytes->data(), static_cast<int>(bytes->size())));
    while (const X509Ptr certificate{PEM_read_bio_X509(text.get(), nullptr, nullptr, nullptr)})
        result.push_back(described(certificate.get(), path));
    const auto reason = ERR_GET_REASON(ERR_peek_last_error());
    ERR_clear_error();
    if (result.empty() || reason != PEM_R_NO_START_LINE)
        throw Error(
            Exit::data, "bad-certificate",
            result.empty()
                ? fmt::format("expected an X.509 certificate in DER or PEM form in {}, found none", base::escape(path))
                : fmt::format("certificate {} of {} is damaged", result.size() + 1, base::escape(path)))
            .hint("name the public certificate of the signing key, such as signing_key.x509 or MOK.der");
    return result;
}

std::string_view to_string(Trust trust) noexcept {
    switch (trust) {
        case Trust::unchecked: return "not-checked";
        case Trust::trusted: return "trusted";
        case Trust::unknown_key: return "unknown-key";
        case Trust::bad: return "bad";
        case Trust::none: break;
    }
    return "unsigned";
}

SignatureCheck check_signature(std::string_view bytes, const std::vector<Certificate>& trusted) {
    const auto facts = kmod::read_signature(bytes);
    if (!facts.fault.empty()) return bad_signature(facts.fault);
    const auto parts = kmod::split_signature(bytes);
    if (!parts.present) return {};
    const unsigned char* at = octets(parts.message);
    const CmsPtr message(d2i_CMS_ContentInfo(nullptr, &at, static_cast<long>(parts.message.size())));
    STACK_OF(CMS_SignerInfo)* signers = message ? CMS_get0_SignerInfos(message.get()) : nullptr;
    if (signers == nullptr) return bad_signature("it is not a PKCS#7 message");
    if (trusted.empty()) return {Trust::unchecked, "", ""};
    std::vector<X509Ptr> known;
    for (const auto& certificate : trusted) known.push_back(decode_certificate(certificate.der));
    std::erase(known, nullptr);
    const X509List carried(CMS_get1_certs(message.get()));
    SignatureCheck best{Trust::unknown_key, "", ""};
    for (int i = 0; i < sk_CMS_SignerInfo_num(signers) && best.trust != Trust::bad; ++i) {
        const auto check = check_signer(sk_CMS_SignerInfo_value(signers, i), parts.content, known, carried.get());
        if (check.trust != Trust::unknown_key && best.trust != Trust::trusted) best = check;
        if (check.trust == Trust::bad) best = check;
    }
    ERR_clear_error();
    return best;
}

std::map<std::string, SignatureCheck> check_signatures(const kmod::ModuleIndex& index,
                                                       const std::vector<Certificate>& trusted) {
    std::map<std::string, SignatureCheck> result;
    for (const auto& [name, module] : index.modules())
        result.emplace(name, check_signature(kmod::plain_bytes(module), trusted));
    return result;
}

}  // namespace kmm::kernel
