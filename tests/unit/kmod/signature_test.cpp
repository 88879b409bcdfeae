// SPDX-License-Identifier: Apache-2.0
// What kernels refuse of a module's signature, whoever made it.
#include <doctest/doctest.h>
#include <openssl/cms.h>
#include <openssl/evp.h>
#include <openssl/rsa.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kmod/host/keyring.hpp"
#include "kmod/ko/signature.hpp"
#include "unit/kmod/fixtures.hpp"

using namespace kmm;
using namespace kmm::test;

namespace {

using Certificate = std::unique_ptr<X509, decltype(&X509_free)>;

EVP_PKEY* lab_key() {
    static const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(EVP_RSA_gen(2048), EVP_PKEY_free);
    return key.get();
}

Certificate certificate_of(const char* name, long serial) {
    Certificate certificate(X509_new(), X509_free);
    ASN1_INTEGER_set(X509_get_serialNumber(certificate.get()), serial);
    X509_gmtime_adj(X509_getm_notBefore(certificate.get()), 0);
    X509_gmtime_adj(X509_getm_notAfter(certificate.get()), 3600);
    X509_set_pubkey(certificate.get(), lab_key());
    X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate.get()), "CN", MBSTRING_ASC,
                               reinterpret_cast<const unsigned char*>(name), -1, -1, 0);
    X509_set_issuer_name(certificate.get(), X509_get_subject_name(certificate.get()));
    REQUIRE(X509_sign(certificate.get(), lab_key(), EVP_sha256()) > 0);
    return certificate;
}

/// Gives `certificate` its own key identifier and that of its issuer, "" for none, and `issuer` as the name.
/// `authority` is named by its issuer and serial number, too.
void issue(X509* certificate, const char* issuer, const std::string& own_id, const std::string& issuer_id,
           X509* authority = nullptr) {
    const std::unique_ptr<X509_NAME, decltype(&X509_NAME_free)> name(X509_NAME_new(), X509_NAME_free);
    X509_NAME_add_entry_by_txt(name.get(), "CN", MBSTRING_ASC, reinterpret_cast<const unsigned char*>(issuer), -1, -1,
                               0);
    X509_set_issuer_name(certificate, name.get());
    const auto octets = [](const std::string& text) {
        ASN1_OCTET_STRING* made = ASN1_OCTET_STRING_new();
        ASN1_OCTET_STRING_set(made, reinterpret_cast<const unsigned char*>(text.data()), static_cast<int>(text.size()));
        return made;
    };
    if (!own_id.empty()) {
        ASN1_OCTET_STRING* id = octets(own_id);
        REQUIRE(X509_add1_ext_i2d(certificate, NID_subject_key_identifier, id, 0, X509V3_ADD_DEFAULT) == 1);
        ASN1_OCTET_STRING_free(id);
    }
    if (!issuer_id.empty() || authority != nullptr) {
        AUTHORITY_KEYID* id = AUTHORITY_KEYID_new();
        if (!issuer_id.empty()) id->keyid = octets(issuer_id);
        if (authority != nullptr) {
            GENERAL_NAME* of = GENERAL_NAME_new();
            GENERAL_NAME_set0_value(of, GEN_DIRNAME, X509_NAME_dup(X509_get_issuer_name(authority)));
            id->issuer = GENERAL_NAMES_new();
            sk_GENERAL_NAME_push(id->issuer, of);
            id->serial = ASN1_INTEGER_dup(X509_get0_serialNumber(authority));
        }
        REQUIRE(X509_add1_ext_i2d(certificate, NID_authority_key_identifier, id, 0, X509V3_ADD_DEFAULT) == 1);
        AUTHORITY_KEYID_free(id);
    }
    REQUIRE(X509_sign(certificate, lab_key(), EVP_sha256()) > 0);
}

/// "content", followed by a PKCS#7 message made with `flags`, as sign-file appends it; `second` signs it, too, and
/// `more` others. The signer's certificate is `own`, if there is one; the message carries `carried`.
std::string file_signed_with(unsigned flags, int content_type = NID_pkcs7_data, const char* second = nullptr,
                             const EVP_MD* second_digest = EVP_sha256(), Certificate own = {nullptr, X509_free},
                             const std::vector<X509*>& carried = {}, int more = 0) {
    const Certificate certificate = own ? std::move(own) : certificate_of("lab", 0x4711);
    const std::string content = "content";
    const std::unique_ptr<BIO, decltype(&BIO_free)> data(BIO_new_mem_buf(content.data(), 7), BIO_free);
    flags |= CMS_NOCERTS | CMS_BINARY | CMS_NOSMIMECAP;
    const std::unique_ptr<CMS_ContentInfo, decltype(&CMS_ContentInfo_free)> message(
        CMS_sign(nullptr, nullptr, nullptr, data.get(), flags | CMS_PARTIAL), CMS_ContentInfo_free);
    REQUIRE(message);
    REQUIRE(CMS_set1_eContentType(message.get(), OBJ_nid2obj(content_type)) == 1);
    REQUIRE(CMS_add1_signer(message.get(), certificate.get(), lab_key(), EVP_sha256(), flags) != nullptr);
    if (second != nullptr) {
        REQUIRE(CMS_add1_signer(message.get(), certificate_of(second, 0x4712).get(), lab_key(), second_digest, flags) !=
                nullptr);
    }
    for (int i = 0; i < more; ++i) {
        const auto other = certificate_of("other", 0x5000 + i);
        REQUIRE(CMS_add1_signer(message.get(), other.get(), lab_key(), EVP_sha256(), flags) != nullptr);
    }
    for (X509* other : carried) REQUIRE(CMS_add1_cert(message.get(), other) == 1);
    REQUIRE(CMS_final(message.get(), data.get(), nullptr, flags) == 1);
    unsigned char* der = nullptr;
    const int length = i2d_CMS_ContentInfo(message.get(), &der);
    REQUIRE(length > 0);
    std::string file = content + std::string(reinterpret_cast<char*>(der), static_cast<std::size_t>(length));
    OPENSSL_free(der);
    std::string trailer(12, '\0');
    trailer[2] = 2;
    trailer[10] = static_cast<char>(length >> 8);
    trailer[11] = static_cast<char>(length & 0xff);
    return file + trailer + "~Module signature appended~\n";
}

std::string replaced(std::string text, std::string_view what, std::string_view with) {
    const std::size_t at = text.find(what);
    REQUIRE(at != std::string::npos);
    return text.replace(at, what.size(), with);
}

std::string little(std::size_t number) {
    std::string bytes;
    for (int i = 0; i < 4; ++i) bytes += static_cast<char>(number >> (8 * i) & 255U);
    return bytes;
}

/// An EFI_SIGNATURE_LIST of one certificate.
std::string signature_list(X509* certificate) {
    unsigned char* der = nullptr;
    const int length = i2d_X509(certificate, &der);
    REQUIRE(length > 0);
    const std::string entry = std::string(16, 'o') + std::string(reinterpret_cast<char*>(der),
                                                                 static_cast<std::size_t>(length));
    OPENSSL_free(der);
    return std::string("\xa1\x59\xc0\xa5\xe4\x94\xa7\x4a\x87\xb5\xab\x15\x5c\x2b\xf0\x72", 16) +
           little(28 + entry.size()) + little(0) + little(entry.size()) + entry;
}

constexpr std::string_view k_rsa = "\x2a\x86\x48\x86\xf7\x0d\x01\x01\x01";
constexpr std::string_view k_ml_dsa_65 = "\x60\x86\x48\x01\x65\x03\x04\x03\x12";
constexpr std::string_view k_sha256 = "\x60\x86\x48\x01\x65\x03\x04\x02\x01";
constexpr std::string_view k_of_tomorrow = "\x60\x86\x48\x01\x65\x03\x04\x02\x7f";

}  // namespace

TEST_SUITE("kmod::unit") {

TEST_CASE("kernels trust a module by any of its signers") {
    const unsigned good = CMS_DETACHED | CMS_NOATTR;
    const auto both = kmod::read_signature(file_signed_with(good, NID_pkcs7_data, "vendor"));
    CHECK(both.fault.empty());
    std::vector<std::string> names{both.signer};
    for (const auto& other : both.others) names.push_back(other.signer);
    std::sort(names.begin(), names.end());  // in a SET, DER has its own order
    CHECK(names == std::vector<std::string>{"lab", "vendor"});
    for (const std::string known : {"lab: 1234: X509.rsa", "vendor: 5678: X509.rsa"})
        CHECK(kmod::find_key(both, std::vector{known}) == kmod::KeyPresence::present);
    CHECK(kmod::find_key(both, std::vector<std::string>{"third: 4713: X509.rsa"}) == kmod::KeyPresence::absent);
    const std::string text = kmod::signature_text(both);
    CHECK_MESSAGE(text.find("signer lab, key 4711, digest sha256") != std::string::npos, text);
    CHECK_MESSAGE(text.find("signer vendor, key 4712, digest sha256") != std::string::npos, text);
    CHECK(kmod::weak_digest_of(both).empty());
    CHECK(kmod::weak_digest_of(kmod::read_signature(
              file_signed_with(good, NID_pkcs7_data, "vendor", EVP_sha1()))) == "sha1");
    // None is passed over: the kernel tries them all.
    const auto of_many = [&](int more) {
        return kmod::read_signature(file_signed_with(good, NID_pkcs7_data, "vendor", EVP_sha1(),
                                                     Certificate(nullptr, X509_free), {}, more));
    };
    CHECK(kmod::weak_digest_of(of_many(6)) == "sha1");
    CHECK(of_many(6).others.size() == 7);
    CHECK(of_many(7).fault == "it has 9 signers, expected at most 8");
}

TEST_CASE("a certificate of an enrolled authority is not that authority's own") {
    FakeHost host;
    const unsigned good = CMS_DETACHED | CMS_NOATTR;
    Certificate root = certificate_of("Root", 0x4711), leaf = certificate_of("Leaf", 0x4712);
    issue(root.get(), "Root", "root-id", "");
    issue(leaf.get(), "Root", "leaf-id", "root-id");
    const auto signature_of = [&](const Certificate& one) {
        return kmod::read_signature(file_signed_with(good, NID_pkcs7_data, nullptr, EVP_sha256(),
                                                     Certificate(X509_dup(one.get()), X509_free)));
    };
    const auto of_root = signature_of(root), of_leaf = signature_of(leaf);
    const std::vector<std::string> keys{"Root: 726f6f742d6964: X509.rsa []"};
    const auto presence = [&](const kmod::ModuleSignature& signature, const std::vector<std::string>& known) {
        return kmod::find_key(signature, known, nullptr, kmod::enrolled_certificates(host.paths));
    };
    CHECK(kmod::enrolled_certificates(host.paths).empty());
    CHECK(presence(of_root, keys) == kmod::KeyPresence::present);
    CHECK(presence(of_leaf, keys) == kmod::KeyPresence::present);  // by the name alone nobody can tell
    const std::string hashes = std::string(16, 'h') + little(28 + 48) + little(0) + little(48) + std::string(48, 's');
    const std::string list = hashes + signature_list(root.get());
    const std::string efi = host.paths.sys + "/firmware/efi";
    for (const auto& [place, front] : {std::pair{"/efivars/MokListRT-605dab50-e046-4300-abb6-3dd810dd8b23", 4U},
                                       std::pair{"/mok-variables/MokListRT", 0U}}) {
        CAPTURE(place);
        put(efi + place, std::string(front, '\x07') + list);
        CHECK(kmod::enrolled_certificates(host.paths).size() == 1);
        CHECK(presence(of_root, keys) == kmod::KeyPresence::present);
        CHECK(presence(of_leaf, keys) == kmod::KeyPresence::absent);
        CHECK(presence(of_leaf, {keys.front(), "Root: 01: X509.rsa []"}) == kmod::KeyPresence::present);
        for (std::size_t i = 0; i < front + list.size(); ++i) {  // a damaged list says nothing
            put(efi + place, (std::string(front, '\x07') + list).substr(0, i));
            CHECK(kmod::enrolled_certificates(host.paths).empty());
        }
        std::filesystem::remove(efi + place);
    }
}

TEST_CASE("certificates that the message carries lead to the key that vouches for the signer") {
    const unsigned good = CMS_DETACHED | CMS_NOATTR;
    const auto presence = [&](const kmod::ModuleSignature& signature, const std::string& key) {
        CHECK_MESSAGE(signature.fault.empty(), signature.fault);
        return kmod::find_key(signature, std::vector{key});
    };
    using enum kmod::KeyPresence;
    Certificate leaf = certificate_of("leaf", 0x4711), middle = certificate_of("middle", 0x4712);
    issue(leaf.get(), "middle", "leaf-id", "mid-id");
    issue(middle.get(), "root", "mid-id", "root-id");
    const std::string of_leaf = "leaf: 6c6561662d6964: X509.rsa []", of_middle = "middle: 6d69642d6964: X509.rsa []",
                      of_root = "root: 726f6f742d6964: X509.rsa []", rotated = "middle: 11: X509.rsa []";
    const auto copy = [](const Certificate& given) { return Certificate(X509_dup(given.get()), X509_free); };
    const auto read = [&](const std::vector<X509*>& carried, const Certificate& own) {
        return kmod::read_signature(
            file_signed_with(good, NID_pkcs7_data, nullptr, EVP_sha256(), copy(own), carried));
    };
    SUBCASE("authorities that are named by issuer and serial number alone") {
        Certificate root = certificate_of("root", 0x4713), by_number = certificate_of("leaf", 0x4711),
                    above = certificate_of("middle", 0x4712);
        issue(above.get(), "root", "mid-id", "", root.get());
        issue(by_number.get(), "middle", "leaf-id", "", above.get());
        const auto signature = read({above.get(), by_number.get()}, by_number);
        for (const auto& key : {of_leaf, of_middle}) CHECK(presence(signature, key) == present);
        CHECK(presence(signature, "root: 4713: X509.rsa []") == present);
        CHECK(presence(signature, "root: 4714: X509.rsa []") == absent);
        issue(above.get(), "other", "", "");
        CHECK(presence(read({above.get(), by_number.get()}, by_number), of_middle) == absent);
    }
    SUBCASE("the whole chain") {
        const auto signature = read({middle.get(), leaf.get()}, leaf);
        for (const auto& key : {of_leaf, of_middle, of_root}) CHECK(presence(signature, key) == present);
        CHECK(presence(signature, "root: 11: X509.rsa []") == absent);
        CHECK(presence(signature, rotated) == absent);
        CHECK(kmod::find_key(signature, std::nullopt) == unknown);
    }
    SUBCASE("the signer's alone") {
        const auto signature = read({leaf.get()}, leaf);
        for (const auto& key : {of_leaf, of_middle}) CHECK(presence(signature, key) == present);
        CHECK(presence(signature, of_root) == absent);
    }
    SUBCASE("others than the signer's lead nowhere") {
        const auto signature = read({middle.get()}, leaf);
        CHECK(signature.authorities.empty());
        CHECK(presence(signature, of_root) == absent);
    }
    SUBCASE("an issuer without an identifier is not looked for") {
        Certificate plain = certificate_of("leaf", 0x4711);
        issue(plain.get(), "middle", "leaf-id", "");
        const auto signature = read({plain.get()}, plain);
        CHECK(presence(signature, of_leaf) == present);
        CHECK(presence(signature, of_middle) == absent);
    }
    SUBCASE("certificates in a ring end") {
        Certificate ring = certificate_of("root", 0x4713);
        issue(ring.get(), "leaf", "root-id", "leaf-id");
        const auto signature = read({middle.get(), leaf.get(), ring.get()}, leaf);
        CHECK(presence(signature, of_root) == present);
        CHECK(presence(signature, "other: 99: X509.rsa []") == absent);
    }
    SUBCASE("one that signed itself is looked for by its own identifier") {
        Certificate self = certificate_of("lab", 0x4711);
        issue(self.get(), "lab", "self-id", "");
        const auto signature = read({self.get()}, self);
        CHECK(presence(signature, "lab: 73656c662d6964: X509.rsa []") == present);
        CHECK(presence(signature, "lab: 11: X509.rsa []") == absent);
    }
}

TEST_CASE("a short serial number is not found within the identifiers of other keys") {
    const kmod::ModuleSignature signature{"lab", "01", "sha256", ""};
    CHECK(kmod::find_key(signature, std::vector<std::string>{"Vendor: a7013f: X509.rsa 54010f []"}) ==
          kmod::KeyPresence::absent);
    CHECK(kmod::find_key(signature, std::vector<std::string>{"Other: 01: X509.rsa 01 []"}) ==
          kmod::KeyPresence::present);
}

TEST_CASE("signed attributes beside ML-DSA, which OpenSSL before 4.0 cannot leave out, are for the kernel to judge") {
    const auto signature = kmod::read_signature(replaced(file_signed_with(CMS_DETACHED), k_rsa, k_ml_dsa_65));
    CHECK_MESSAGE(signature.fault.empty(), signature.fault);
    CHECK(signature.signer == "lab");
    CHECK(signature.digest == "sha256");
}

TEST_CASE("a digest without a name is shown by its number") {
    const std::string file = file_signed_with(CMS_DETACHED | CMS_NOATTR);
    const std::size_t second = file.rfind(k_sha256);
    REQUIRE(second != std::string::npos);
    CHECK(kmod::read_signature(std::string(file).replace(second, k_sha256.size(), k_of_tomorrow)).digest ==
          "2.16.840.1.101.3.4.2.127");
}

TEST_CASE("a signature that no kernel takes is a fault of the module") {
    const auto fault = [](const std::string& file) { return kmod::read_signature(file).fault; };
    const unsigned good = CMS_DETACHED | CMS_NOATTR;
    CHECK(fault(file_signed_with(good)).empty());
    CHECK(kmod::read_signature(file_signed_with(good)).signer == "lab");
    CHECK(fault(file_signed_with(CMS_DETACHED)) == "it has signed attributes, which kernels refuse for modules");
    CHECK(fault(file_signed_with(CMS_NOATTR)) == "it holds what it signs, expected a detached signature");
    CHECK(fault(file_signed_with(CMS_DETACHED, NID_pkcs7_enveloped)) == "what it signs is not plain data");
}

}
