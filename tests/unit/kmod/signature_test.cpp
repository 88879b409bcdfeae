// SPDX-License-Identifier: Apache-2.0
// What kernels refuse of a module's signature, whoever made it.
#include <doctest/doctest.h>
#include <openssl/cms.h>
#include <openssl/evp.h>
#include <openssl/rsa.h>
#include <openssl/x509.h>

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "kmod/signature.hpp"

using namespace kmm;

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

/// "content", followed by a PKCS#7 message made with `flags`, as sign-file appends it; `second` signs it, too.
std::string file_signed_with(unsigned flags, int content_type = NID_pkcs7_data, const char* second = nullptr,
                             const EVP_MD* second_digest = EVP_sha256()) {
    const Certificate certificate = certificate_of("lab", 0x4711);
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
