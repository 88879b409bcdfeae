// SPDX-License-Identifier: Apache-2.0
// Adapter of OpenSSL: digests, keys, and the PKCS#7 message of a module signature, read and written.
#include "kmod/ko/signature.hpp"

#include <openssl/bio.h>
#include <openssl/bn.h>
#include <openssl/cms.h>
#include <openssl/core_names.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/objects.h>
#include <openssl/pem.h>
#include <openssl/pkcs12.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <memory>
#include <span>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/text.hpp"
#include "kmod/ko/files.hpp"
#include "kmod/ko/signer.hpp"

namespace kmm::kmod {

namespace {

constexpr std::string_view k_marker = "~Module signature appended~\n";
constexpr std::size_t k_trailer_bytes = 12;  // struct module_signature
constexpr unsigned char k_pkcs7 = 2;         // PKEY_ID_PKCS7
constexpr int k_signers_max = 8;             // of one message; the kernel tries each, no program makes more
constexpr std::size_t k_chain_max = 8;       // certificates from a signer's upwards

std::string hex_of(const unsigned char* data, int length) {
    return base::to_hex(std::span<const std::uint8_t>(data, static_cast<std::size_t>(std::max(length, 0))));
}

std::string algorithm_name(const X509_ALGOR* algorithm) {
    const ASN1_OBJECT* object = nullptr;
    X509_ALGOR_get0(&object, nullptr, nullptr, algorithm);
    if (object == nullptr) return {};
    if (const int known = OBJ_obj2nid(object); known != NID_undef) return base::to_lower(OBJ_nid2sn(known));
    std::array<char, 80> number{};
    (void)OBJ_obj2txt(number.data(), number.size(), object, 1);
    return number.data();
}

/// True for ML-DSA, by its number: OpenSSL before 3.5 has no name for it.
bool is_ml_dsa(CMS_SignerInfo* signer) {
    X509_ALGOR* algorithm = nullptr;
    CMS_SignerInfo_get0_algs(signer, nullptr, nullptr, nullptr, &algorithm);
    const ASN1_OBJECT* object = nullptr;
    if (algorithm != nullptr) X509_ALGOR_get0(&object, nullptr, nullptr, algorithm);
    std::array<char, 80> number{};
    if (object != nullptr) (void)OBJ_obj2txt(number.data(), number.size(), object, 1);
    constexpr std::array<std::string_view, 3> known{"2.16.840.1.101.3.4.3.17", "2.16.840.1.101.3.4.3.18",
                                                    "2.16.840.1.101.3.4.3.19"};
    return std::find(known.begin(), known.end(), number.data()) != known.end();
}

ModuleSignature damaged_signature(std::string why) {
    ModuleSignature signature;
    signature.fault = std::move(why);
    return signature;
}

/// Why no kernel takes a message for a module's signature, whoever made it; "" if kernels look on. Source: Linux
/// certs/system_keyring.c (verify_pkcs7_message_sig), crypto/asymmetric_keys/pkcs7_verify.c.
std::string refusal_by_kernels(CMS_ContentInfo* message, STACK_OF(CMS_SignerInfo) * signers) {
    if (OBJ_obj2nid(CMS_get0_eContentType(message)) != NID_pkcs7_data) return "what it signs is not plain data";
    ASN1_OCTET_STRING** content = CMS_get0_content(message);
    if (content != nullptr && *content != nullptr) return "it holds what it signs, expected a detached signature";
    for (int i = 0; i < sk_CMS_SignerInfo_num(signers); ++i) {
        CMS_SignerInfo* signer = sk_CMS_SignerInfo_value(signers, i);
        // Linux 7.0 can be built to take them (CONFIG_PKCS7_WAIVE_AUTHATTRS_REJECTION_FOR_MLDSA).
        if (CMS_signed_get_attr_count(signer) > 0 && !is_ml_dsa(signer))
            return "it has signed attributes, which kernels refuse for modules";
    }
    return {};
}

std::string hex_of(const ASN1_STRING* text) { return hex_of(ASN1_STRING_get0_data(text), ASN1_STRING_length(text)); }

/// See ModuleSignature::authorities. Source: Linux crypto/asymmetric_keys/pkcs7_verify.c (pkcs7_find_key,
/// pkcs7_verify_sig_chain), pkcs7_trust.c (pkcs7_validate_trust_one).
std::vector<std::string> authorities_of(CMS_SignerInfo* signer, STACK_OF(X509) * carried) {
    std::vector<std::string> ids;
    const auto find = [&](auto fits) {
        X509* found = nullptr;
        for (int i = 0; i < sk_X509_num(carried) && found == nullptr; ++i)
            if (fits(sk_X509_value(carried, i))) found = sk_X509_value(carried, i);
        return found;
    };
    X509* last = find([&](X509* each) { return CMS_SignerInfo_cert_cmp(signer, each) == 0; });
    while (last != nullptr && ids.size() < k_chain_max) {
        const ASN1_OCTET_STRING* own = X509_get0_subject_key_id(last);
        ids.push_back(own != nullptr ? hex_of(own) : hex_of(X509_get0_serialNumber(last)));
        const ASN1_OCTET_STRING* above = X509_get0_authority_key_id(last);
        const ASN1_INTEGER* number = X509_get0_authority_serial(last);
        if (above == nullptr && number == nullptr) break;
        X509* below = last;
        last = find([&](X509* each) { return names_issuer(below, each); });
        if (last == nullptr) ids.push_back(above != nullptr ? hex_of(above) : hex_of(number));
    }
    return ids;
}

ModuleSignature signer_facts(CMS_SignerInfo* signer, STACK_OF(X509) * carried) {
    ModuleSignature signature;
    ASN1_OCTET_STRING* key_id = nullptr;
    X509_NAME* issuer = nullptr;
    ASN1_INTEGER* serial = nullptr;
    if (CMS_SignerInfo_get0_signer_id(signer, &key_id, &issuer, &serial) == 1) {
        if (issuer != nullptr) signature.signer = name_text(issuer);
        if (key_id != nullptr) signature.key_id = hex_of(key_id);
        if (serial != nullptr) signature.key_id = hex_of(serial);
        // Kernels find carried certificates by issuer and serial number alone.
        if (serial != nullptr && carried != nullptr) signature.authorities = authorities_of(signer, carried);
    }
    X509_ALGOR* digest = nullptr;
    CMS_SignerInfo_get0_algs(signer, nullptr, nullptr, &digest, nullptr);
    if (digest != nullptr) signature.digest = algorithm_name(digest);
    return signature;
}

constexpr std::array<std::string_view, 4> k_digests{"sha224", "sha256", "sha384", "sha512"};

using Bio = std::unique_ptr<BIO, decltype(&BIO_free)>;
using Key = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;
using Certificate = std::unique_ptr<X509, decltype(&X509_free)>;

Bio bio_of(std::string_view bytes) {
    if (bytes.size() > static_cast<std::size_t>(std::numeric_limits<int>::max()))
        throw bug("too many bytes for OpenSSL");
    Bio bio(BIO_new_mem_buf(bytes.data(), static_cast<int>(bytes.size())), BIO_free);
    if (!bio) throw bug("OpenSSL gave no buffer");
    return bio;
}

Error bad_key(const ModuleSigner::Material& material, const std::string& what, std::string hint) {
    return Error(Exit::data, "bad-key", fmt::format("{}: {}", base::escape(material.key_name), what))
        .hint(std::move(hint));
}

/// What OpenSSL is told when it asks for a passphrase; it never asks a terminal.
struct Passphrase {
    const std::optional<std::string>& text;
    bool asked = false;

    static int answer(char* buffer, int size, int /*writing*/, void* user) {
        auto& self = *static_cast<Passphrase*>(user);
        self.asked = true;
        if (!self.text || self.text->size() > static_cast<std::size_t>(size)) return -1;
        std::memcpy(buffer, self.text->data(), self.text->size());
        return static_cast<int>(self.text->size());
    }
};

/// What stands in the place of a private key, and what makes one of it.
struct OtherForm {
    std::string name, hint;
};

OtherForm form_of(std::string_view text) {
    constexpr std::string_view begin = "-----BEGIN ";
    constexpr std::size_t longest = 40;
    const std::string_view from = text.substr(std::min(text.find(begin), text.size()));
    const std::string_view block = from.substr(std::min(begin.size(), from.size()));
    const std::string type(block.substr(0, std::min(block.find("-----"), longest)));
    const auto* at = reinterpret_cast<const unsigned char*>(text.data());
    const std::unique_ptr<PKCS12, decltype(&PKCS12_free)> store(
        d2i_PKCS12(nullptr, &at, static_cast<long>(text.size())), PKCS12_free);
    ERR_clear_error();
    if (store) return {"a PKCS#12 file", "openssl pkcs12 -in KEY -nocerts -nodes -out KEY.pem takes the key out"};
    if (type == "OPENSSH PRIVATE KEY")
        return {"a key of OpenSSH", "ssh-keygen -p -m PKCS8 -f KEY converts it in place"};
    if (type.ends_with("PRIVATE KEY")) return {"a damaged one", "openssl pkey -in KEY -noout says what is wrong"};
    if (!type.empty()) return {fmt::format("a block \"{}\"", base::escape(type)), "--key is the private key"};
    return {"none", "openssl pkey -in KEY -out KEY.pem converts other forms"};
}

Key read_key(const ModuleSigner::Material& material, std::vector<std::string>& warnings) {
    const Bio bio = bio_of(material.key);
    Passphrase passphrase{material.passphrase};
    Key key(PEM_read_bio_PrivateKey(bio.get(), nullptr, &Passphrase::answer, &passphrase), EVP_PKEY_free);
    ERR_clear_error();
    if (!key && passphrase.asked) {
        throw material.passphrase ? bad_key(material, "expected the passphrase of the key, found another one",
                                            "correct the file of --passphrase-file")
                                  : bad_key(material, "expected a passphrase for the encrypted key, found none",
                                            "--passphrase-file FILE holds it");
    }
    if (!key) {
        const OtherForm form = form_of(material.key);
        throw bad_key(material, "expected a private key in PEM form, found " + form.name, form.hint);
    }
    const int type = EVP_PKEY_get_base_id(key.get());
    if (type != EVP_PKEY_RSA && type != EVP_PKEY_EC) {
        const char* const name = EVP_PKEY_get0_type_name(key.get());
        throw bad_key(material,
                      fmt::format("expected an RSA or EC key, which kernels know, found {}",
                                  name == nullptr ? "another kind" : name),
                      "openssl req -new -x509 -newkey rsa:4096 ... makes one with its certificate");
    }
    if (material.passphrase && !passphrase.asked) {
        warnings.push_back(fmt::format("passphrase-unused: {}: the key is not encrypted; the passphrase has no effect",
                                       base::escape(material.key_name)));
    }
    return key;
}

Certificate read_certificate(const ModuleSigner::Material& material) {
    const Bio bio = bio_of(material.certificate);
    Certificate certificate(nullptr, X509_free);
    if (material.certificate.find("-----BEGIN") != std::string::npos) {
        certificate.reset(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr));
    } else {
        certificate.reset(d2i_X509_bio(bio.get(), nullptr));
    }
    ERR_clear_error();
    if (!certificate) {
        throw Error(Exit::data, "bad-certificate",
                    fmt::format("{}: expected an X.509 certificate in PEM or DER form, found none",
                                base::escape(material.certificate_name)))
            .hint("it is the file that mokutil --import takes");
    }
    return certificate;
}

/// Signatures of keys on other curves are made without a fault, and no kernel can ever check them. The certificate's
/// form counts: it is what the kernel reads. A warning for a curve that not every kernel knows, "" else.
std::string check_curve(const ModuleSigner::Material& material, const EVP_PKEY* key) {
    if (EVP_PKEY_get_base_id(key) != EVP_PKEY_EC) return {};
    constexpr std::array<std::string_view, 4> known{"prime192v1", "prime256v1", "secp384r1", "secp521r1"};
    std::array<char, 80> curve{}, form{};
    (void)EVP_PKEY_get_group_name(key, curve.data(), curve.size(), nullptr);
    (void)EVP_PKEY_get_utf8_string_param(key, OSSL_PKEY_PARAM_EC_ENCODING, form.data(), form.size(), nullptr);
    ERR_clear_error();
    const std::string_view name = curve.data();
    const bool is_named = std::string_view(form.data()) != OSSL_PKEY_EC_ENCODING_EXPLICIT;
    if (!is_named || std::find(known.begin(), known.end(), name) == known.end()) {
        throw bad_key(material,
                      fmt::format("expected a curve that kernels know (P-256, P-384), found {}",
                                  !is_named || name.empty() ? "one without a name" : name),
                      "openssl ecparam -name secp384r1 -genkey makes such a key; or take RSA");
    }
    if (name != "secp521r1") return {};
    return fmt::format("new-curve: {}: kernels before 6.10 do not know P-521", base::escape(material.key_name));
}

/// Kernels compute with RSA keys of six lengths alone, three of them for the sake of the past (rsa_check_key_length in
/// crypto/rsa.c). A warning for one of these three, "" else.
std::string check_rsa_length(const ModuleSigner::Material& material, const EVP_PKEY* key) {
    if (EVP_PKEY_get_base_id(key) != EVP_PKEY_RSA) return {};
    constexpr std::array<int, 3> sound{2048, 3072, 4096};
    constexpr std::array<int, 3> weak{512, 1024, 1536};
    const int bits = EVP_PKEY_get_bits(key);
    const int length = (bits + 7) / 8 * 8;  // what counts is how many bytes a signature has
    if (std::find(sound.begin(), sound.end(), length) != sound.end()) return {};
    if (std::find(weak.begin(), weak.end(), length) == weak.end()) {
        throw bad_key(
            material,
            fmt::format("expected an RSA key of 2048, 3072 or 4096 bits, as kernels compute with, found one of {}",
                        bits),
            "openssl req -new -x509 -newkey rsa:4096 ... makes one with its certificate");
    }
    return fmt::format(
        "weak-key: {}: RSA of {} bits can be forged, and kernels in FIPS mode refuse it: expected 2048 or more",
        base::escape(material.key_name), bits);
}

/// The length of the signature at the end of `bytes`, trailer and marker included; 0 without one.
std::size_t signature_length(std::string_view bytes, const std::string& file) {
    if (!bytes.ends_with(k_marker)) return 0;
    const auto damaged = [&](const char* why) {
        return Error(Exit::data, "module-format",
                     fmt::format("{}: the appended signature is damaged: {}", base::escape(file), why))
            .hint("build the module again");
    };
    bytes.remove_suffix(k_marker.size());
    if (bytes.size() < k_trailer_bytes) throw damaged("it is cut off");
    std::size_t length = 0;
    for (std::size_t i = bytes.size() - 4; i < bytes.size(); ++i)
        length = length << 8U | static_cast<unsigned char>(bytes[i]);
    if (length > bytes.size() - k_trailer_bytes) throw damaged("its length is more than the file");
    return length + k_trailer_bytes + k_marker.size();
}

}  // namespace

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

bool names_issuer(x509_st* certificate, x509_st* issuer) {
    const ASN1_OCTET_STRING* id = X509_get0_authority_key_id(certificate);
    const ASN1_OCTET_STRING* own = X509_get0_subject_key_id(issuer);
    const ASN1_INTEGER* serial = X509_get0_authority_serial(certificate);
    const GENERAL_NAMES* names = X509_get0_authority_issuer(certificate);
    if (id != nullptr && (own == nullptr || ASN1_OCTET_STRING_cmp(id, own) != 0)) return false;
    if (serial == nullptr || names == nullptr) return id != nullptr;
    const auto is_its_issuer = [&](const GENERAL_NAME* name) {
        return name->type == GEN_DIRNAME && X509_NAME_cmp(name->d.directoryName, X509_get_issuer_name(issuer)) == 0;
    };
    if (ASN1_INTEGER_cmp(serial, X509_get0_serialNumber(issuer)) != 0) return false;
    for (int i = 0; i < sk_GENERAL_NAME_num(names); ++i)
        if (is_its_issuer(sk_GENERAL_NAME_value(names, i))) return true;
    return false;
}

std::optional<EnrolledCertificate> read_enrolled(std::string_view der) {
    const auto* at = reinterpret_cast<const unsigned char*>(der.data());
    const Certificate certificate(d2i_X509(nullptr, &at, static_cast<long>(der.size())), X509_free);
    ERR_clear_error();
    if (!certificate) return std::nullopt;
    const ASN1_OCTET_STRING* id = X509_get0_subject_key_id(certificate.get());
    const std::string serial = hex_of(X509_get0_serialNumber(certificate.get()));
    return EnrolledCertificate{name_text(X509_get_issuer_name(certificate.get())), serial,
                               id != nullptr ? hex_of(id) : serial};
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
    const bool other_words = std::any_of(trailer.begin(), trailer.begin() + 8,
                                         [&](const char& byte) { return &byte != &trailer[2] && byte != 0; });
    if (static_cast<unsigned char>(trailer[2]) != k_pkcs7) {
        parts.fault = fmt::format("its type is {}, expected PKCS#7", static_cast<unsigned char>(trailer[2]));
    } else if (other_words) {
        parts.fault = "its trailer has values where PKCS#7 wants zeros";
    } else if (length == 0) {
        parts.fault = "its length is 0";
    } else if (length > bytes.size()) {
        parts.fault = "its length is more than the file";
    } else {
        parts.message = bytes.substr(bytes.size() - length);
        parts.content = bytes.substr(0, bytes.size() - length);
    }
    return parts;
}

std::string_view signature_part(std::string_view bytes) {
    const AppendedSignature parts = split_signature(bytes);
    if (!parts.present) return {};
    // Of a damaged one the trailer says what is wrong, however long it claims to be.
    return bytes.substr(bytes.size() -
                        std::min(bytes.size(), parts.message.size() + k_trailer_bytes + k_marker.size()));
}

ModuleSignature read_signature(std::string_view bytes) {
    const AppendedSignature parts = split_signature(bytes);
    if (!parts.present) return {};
    if (!parts.fault.empty()) return damaged_signature(parts.fault);
    const auto* data = reinterpret_cast<const unsigned char*>(parts.message.data());
    const std::unique_ptr<CMS_ContentInfo, decltype(&CMS_ContentInfo_free)> message(
        d2i_CMS_ContentInfo(nullptr, &data, static_cast<long>(parts.message.size())), CMS_ContentInfo_free);
    if (!message || OBJ_obj2nid(CMS_get0_type(message.get())) != NID_pkcs7_signed)
        return damaged_signature("it is not a PKCS#7 message");
    STACK_OF(CMS_SignerInfo)* signers = CMS_get0_SignerInfos(message.get());
    if (signers == nullptr || sk_CMS_SignerInfo_num(signers) < 1) return damaged_signature("it names no signer");
    if (const auto refusal = refusal_by_kernels(message.get(), signers); !refusal.empty())
        return damaged_signature(refusal);
    const int count = sk_CMS_SignerInfo_num(signers);
    if (count > k_signers_max)
        return damaged_signature(fmt::format("it has {} signers, expected at most {}", count, k_signers_max));
    const auto free_all = [](STACK_OF(X509) * list) { sk_X509_pop_free(list, X509_free); };
    const std::unique_ptr<STACK_OF(X509), decltype(free_all)> carried(CMS_get1_certs(message.get()), free_all);
    ModuleSignature signature = signer_facts(sk_CMS_SignerInfo_value(signers, 0), carried.get());
    for (int i = 1; i < count; ++i)
        signature.others.push_back(signer_facts(sk_CMS_SignerInfo_value(signers, i), carried.get()));
    ERR_clear_error();
    return signature;
}

struct ModuleSigner::Impl {
    Key key;
    Certificate certificate;
    const EVP_MD* digest;
};

ModuleSigner::ModuleSigner(const Material& material) {
    if (std::find(k_digests.begin(), k_digests.end(), material.digest) == k_digests.end()) {
        throw Error(Exit::data, "bad-key",
                    fmt::format("expected the digest sha224, sha256, sha384 or sha512, found {}",
                                base::escape(material.digest)));
    }
    impl_ = std::make_unique<Impl>(
        Impl{read_key(material, warnings_), read_certificate(material), EVP_get_digestbyname(material.digest.c_str())});
    if (impl_->digest == nullptr) throw bug("OpenSSL does not know " + material.digest);
    const bool fits = X509_check_private_key(impl_->certificate.get(), impl_->key.get()) == 1;
    ERR_clear_error();
    if (!fits) {
        throw Error(Exit::data, "key-mismatch",
                    fmt::format("{} is the certificate of another key than {}", base::escape(material.certificate_name),
                                base::escape(material.key_name)))
            .hint("give the certificate that was made with this key");
    }
    const EVP_PKEY* certified = X509_get0_pubkey(impl_->certificate.get());
    const auto warn = [this](std::string warning) {
        if (!warning.empty()) warnings_.push_back(std::move(warning));
    };
    warn(check_curve(material, certified));
    warn(check_rsa_length(material, certified));
    if (X509_cmp_current_time(X509_get0_notAfter(impl_->certificate.get())) < 0) {
        warn(fmt::format("certificate-expired: {}: its time is over; the kernel does not mind, people may",
                         base::escape(material.certificate_name)));
    }
    if (X509_cmp_current_time(X509_get0_notBefore(impl_->certificate.get())) > 0) {
        warn(
            fmt::format("certificate-not-yet-valid: {}: its time has not begun, or this machine's clock is slow; the "
                        "kernel does not mind, people may",
                        base::escape(material.certificate_name)));
    }
    identity_ = read_signature(sign("module"));
}

ModuleSigner::~ModuleSigner() = default;
ModuleSigner::ModuleSigner(ModuleSigner&&) noexcept = default;
ModuleSigner& ModuleSigner::operator=(ModuleSigner&&) noexcept = default;

std::string ModuleSigner::sign(std::string_view module) const {
    const Bio content = bio_of(module);
    constexpr unsigned shape = CMS_NOCERTS | CMS_PARTIAL | CMS_BINARY | CMS_DETACHED | CMS_STREAM;
    constexpr unsigned signer_shape = CMS_NOCERTS | CMS_BINARY | CMS_NOSMIMECAP | CMS_NOATTR;
    const std::unique_ptr<CMS_ContentInfo, decltype(&CMS_ContentInfo_free)> message(
        CMS_sign(nullptr, nullptr, nullptr, nullptr, shape), CMS_ContentInfo_free);
    if (!message ||
        CMS_add1_signer(message.get(), impl_->certificate.get(), impl_->key.get(), impl_->digest, signer_shape) ==
            nullptr ||
        CMS_final(message.get(), content.get(), nullptr, CMS_NOCERTS | CMS_BINARY) != 1) {
        const unsigned long reason = ERR_get_error();
        ERR_clear_error();
        const char* text = reason == 0 ? nullptr : ERR_reason_error_string(reason);
        throw Error(Exit::data, "bad-key",
                    fmt::format("the key cannot sign a module: {}",
                                text == nullptr ? "no reason given" : base::to_lower(text)));
    }
    unsigned char* encoded = nullptr;
    const int length = i2d_CMS_ContentInfo(message.get(), &encoded);
    if (length <= 0) throw bug("OpenSSL could not write a PKCS#7 message");
    std::string result(module);
    result.append(reinterpret_cast<const char*>(encoded), static_cast<std::size_t>(length));
    OPENSSL_free(encoded);
    std::array<char, k_trailer_bytes> trailer{0, 0, static_cast<char>(k_pkcs7)};
    for (std::size_t i = 0; i < 4; ++i)
        trailer[8 + i] = static_cast<char>(static_cast<unsigned>(length) >> (24 - 8 * i));
    result.append(trailer.data(), trailer.size());
    result += k_marker;
    return result;
}

std::string_view unsigned_module(std::string_view bytes, const std::string& file) {
    for (std::size_t length = signature_length(bytes, file); length != 0; length = signature_length(bytes, file))
        bytes.remove_suffix(length);
    return bytes;
}

}  // namespace kmm::kmod
