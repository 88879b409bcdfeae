// SPDX-License-Identifier: Apache-2.0
// What kernels refuse of a module's signature, whoever made it.
#include <doctest/doctest.h>
#include <openssl/cms.h>
#include <openssl/evp.h>
#include <openssl/rsa.h>
#include <openssl/x509.h>

#include <memory>
#include <string>

#include "kmod/signature.hpp"

using namespace kmm;

namespace {

/// "content", followed by a PKCS#7 message made with `flags`, as sign-file appends it.
std::string file_signed_with(unsigned flags, int content_type = NID_pkcs7_data) {
    static const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(EVP_RSA_gen(2048), EVP_PKEY_free);
    const std::unique_ptr<X509, decltype(&X509_free)> certificate(X509_new(), X509_free);
    ASN1_INTEGER_set(X509_get_serialNumber(certificate.get()), 0x4711);
    X509_gmtime_adj(X509_getm_notBefore(certificate.get()), 0);
    X509_gmtime_adj(X509_getm_notAfter(certificate.get()), 3600);
    X509_set_pubkey(certificate.get(), key.get());
    X509_NAME_add_entry_by_txt(X509_get_subject_name(certificate.get()), "CN", MBSTRING_ASC,
                               reinterpret_cast<const unsigned char*>("lab"), -1, -1, 0);
    X509_set_issuer_name(certificate.get(), X509_get_subject_name(certificate.get()));
    REQUIRE(X509_sign(certificate.get(), key.get(), EVP_sha256()) > 0);
    const std::string content = "content";
    const std::unique_ptr<BIO, decltype(&BIO_free)> data(BIO_new_mem_buf(content.data(), 7), BIO_free);
    flags |= CMS_NOCERTS | CMS_BINARY | CMS_NOSMIMECAP;
    const std::unique_ptr<CMS_ContentInfo, decltype(&CMS_ContentInfo_free)> message(
        CMS_sign(nullptr, nullptr, nullptr, data.get(), flags | CMS_PARTIAL), CMS_ContentInfo_free);
    REQUIRE(message);
    REQUIRE(CMS_set1_eContentType(message.get(), OBJ_nid2obj(content_type)) == 1);
    REQUIRE(CMS_add1_signer(message.get(), certificate.get(), key.get(), EVP_sha256(), flags) != nullptr);
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

}  // namespace

TEST_SUITE("kmod::unit") {

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
