// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/pkcs12.h>
#include <openssl/rsa.h>
#include <openssl/x509.h>
#include <unistd.h>

#include <memory>

#include "base/error.hpp"
#include "fixtures.hpp"
#include "kmod/ko/inflate.hpp"
#include "kmod/ko/signature.hpp"
#include "kmod/ko/signer.hpp"
#include "sys/file_ops.hpp"
#include "sys/process.hpp"

using namespace kmm;
using kmod::ModuleSigner;

namespace {

constexpr const char* k_sign_file = "/usr/lib/linux-kbuild-6.1/scripts/sign-file";

struct KeyPair {
    std::string key, encrypted_key, certificate, certificate_der;
};

std::string text_and_free(BIO* memory) {
    char* data = nullptr;
    const long size = BIO_get_mem_data(memory, &data);
    std::string text(data, static_cast<std::size_t>(size));
    BIO_free(memory);
    return text;
}

KeyPair make_pair(EVP_PKEY* raw, long seconds, long from = -7200) {
    const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(raw, EVP_PKEY_free);
    const std::unique_ptr<X509, decltype(&X509_free)> certificate(X509_new(), X509_free);
    ASN1_INTEGER_set(X509_get_serialNumber(certificate.get()), 0x4711);
    X509_gmtime_adj(X509_getm_notBefore(certificate.get()), from);
    X509_gmtime_adj(X509_getm_notAfter(certificate.get()), seconds);
    X509_set_pubkey(certificate.get(), key.get());
    X509_NAME* name = X509_get_subject_name(certificate.get());
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, reinterpret_cast<const unsigned char*>("test signer"), -1, -1,
                               0);
    X509_set_issuer_name(certificate.get(), name);
    const bool hashes_itself = EVP_PKEY_is_a(key.get(), "ED25519") == 1;
    REQUIRE(X509_sign(certificate.get(), key.get(), hashes_itself ? nullptr : EVP_sha256()) > 0);
    KeyPair pair;
    BIO* memory = BIO_new(BIO_s_mem());
    PEM_write_bio_PrivateKey(memory, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
    pair.key = text_and_free(memory);
    memory = BIO_new(BIO_s_mem());
    PEM_write_bio_PKCS8PrivateKey(memory, key.get(), EVP_aes_256_cbc(), "opensesame", 10, nullptr, nullptr);
    pair.encrypted_key = text_and_free(memory);
    memory = BIO_new(BIO_s_mem());
    PEM_write_bio_X509(memory, certificate.get());
    pair.certificate = text_and_free(memory);
    memory = BIO_new(BIO_s_mem());
    i2d_X509_bio(memory, certificate.get());
    pair.certificate_der = text_and_free(memory);
    return pair;
}

/// Key and certificate in one file with a password, as browsers and Windows take them.
std::string pkcs12_of(const KeyPair& pair) {
    const auto memory_of = [](const std::string& text) {
        return std::unique_ptr<BIO, decltype(&BIO_free)>(BIO_new_mem_buf(text.data(), static_cast<int>(text.size())),
                                                         BIO_free);
    };
    const std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)> key(
        PEM_read_bio_PrivateKey(memory_of(pair.key).get(), nullptr, nullptr, nullptr), EVP_PKEY_free);
    const std::unique_ptr<X509, decltype(&X509_free)> certificate(
        PEM_read_bio_X509(memory_of(pair.certificate).get(), nullptr, nullptr, nullptr), X509_free);
    const std::unique_ptr<PKCS12, decltype(&PKCS12_free)> store(
        PKCS12_create("opensesame", "test", key.get(), certificate.get(), nullptr, 0, 0, 0, 0, 0), PKCS12_free);
    BIO* memory = BIO_new(BIO_s_mem());
    i2d_PKCS12_bio(memory, store.get());
    return text_and_free(memory);
}

const KeyPair& rsa_pair() {
    static const KeyPair pair = make_pair(EVP_RSA_gen(2048), 3600);
    return pair;
}

ModuleSigner::Material material(const KeyPair& pair) {
    return {pair.key, "key.pem", pair.certificate, "cert.pem", std::nullopt, "sha256"};
}

std::string code_of(const ModuleSigner::Material& from) {
    try {
        const ModuleSigner made(from);
    } catch (const Error& error) {
        return error.code() + ": " + error.message();
    }
    return "ok";
}

}  // namespace

TEST_CASE("sign: byte for byte what the kernel's sign-file writes, for every digest") {
    if (::access(k_sign_file, X_OK) != 0) {
        MESSAGE("SKIP: no ", k_sign_file);
        return;
    }
    const sys::TempDir directory("kmm-test-");
    const auto at = [&](const char* name) { return directory.path() + "/" + name; };
    const std::string module = test::make_ko({});
    test::put(at("key.pem"), rsa_pair().key);
    test::put(at("cert.pem"), rsa_pair().certificate);
    for (const std::string digest : {"sha224", "sha256", "sha384", "sha512"}) {
        CAPTURE(digest);
        test::put(at("a.ko"), module);
        sys::ProcessSpec run;
        run.argv = {k_sign_file, digest, at("key.pem"), at("cert.pem"), at("a.ko")};
        REQUIRE(sys::run_process(run).exit_code == 0);
        auto from = material(rsa_pair());
        from.digest = digest;
        CHECK(ModuleSigner(from).sign(module) == sys::read_file(at("a.ko")));
    }
}

TEST_CASE("sign: what was signed is read back, and comes off again") {
    const std::string module = test::make_ko({});
    for (const bool der : {false, true}) {
        auto from = material(rsa_pair());
        if (der) from.certificate = rsa_pair().certificate_der;
        const ModuleSigner signer(from);
        const std::string result = signer.sign(module);
        CHECK(result == signer.sign(module));
        const auto read = kmod::read_signature(result);
        CHECK(read.fault.empty());
        CHECK(read.signer == "test signer");
        CHECK(read.key_id == "4711");
        CHECK(read.digest == "sha256");
        CHECK(signer.identity().key_id == "4711");
        CHECK(kmod::unsigned_module(result, "a.ko") == module);
        CHECK(kmod::unsigned_module(signer.sign(result), "a.ko") == module);
        CHECK(kmod::unsigned_module(module, "a.ko") == module);
        CHECK(kmod::parse_module(result, "a.ko").is_signed);
    }
}

TEST_CASE("sign: an EC key, too") {
    const KeyPair pair = make_pair(EVP_EC_gen("P-384"), 3600);
    const ModuleSigner signer(material(pair));
    CHECK(kmod::read_signature(signer.sign(test::make_ko({}))).fault.empty());
    CHECK(signer.warnings().empty());
}

TEST_CASE("sign: a curve that no kernel knows is refused, a new one is told of") {
    for (const char* curve : {"secp256k1", "brainpoolP256r1", "secp224r1"}) {
        CAPTURE(curve);
        CHECK(code_of(material(make_pair(EVP_EC_gen(curve), 3600))) ==
              fmt::format("bad-key: key.pem: expected a curve that kernels know (P-256, P-384), found {}", curve));
    }
    EVP_PKEY* explicit_one = EVP_EC_gen("P-256");
    REQUIRE(EVP_PKEY_set_utf8_string_param(explicit_one, OSSL_PKEY_PARAM_EC_ENCODING, OSSL_PKEY_EC_ENCODING_EXPLICIT) ==
            1);
    CHECK(code_of(material(make_pair(explicit_one, 3600))).ends_with("found one without a name"));
    CHECK(code_of(material(make_pair(EVP_EC_gen("P-256"), 3600))) == "ok");
    CHECK(ModuleSigner(material(make_pair(EVP_EC_gen("P-521"), 3600)))
              .warnings()
              .at(0)
              .starts_with("new-curve: key.pem"));
}

TEST_CASE("sign: an expired certificate signs and is told of") {
    CHECK(ModuleSigner(material(make_pair(EVP_RSA_gen(2048), -60)))
              .warnings()
              .at(0)
              .starts_with("certificate-expired: cert.pem"));
    const auto both = ModuleSigner(material(make_pair(EVP_RSA_gen(1024), -60))).warnings();
    REQUIRE(both.size() == 2);
    CHECK(
        both[0] ==
        "weak-key: key.pem: RSA of 1024 bits can be forged, and kernels in FIPS mode refuse it: expected 2048 or more");
    CHECK(both[1].starts_with("certificate-expired: cert.pem"));
}

TEST_CASE("sign: a certificate whose time has not begun signs and is told of") {
    const auto warnings = ModuleSigner(material(make_pair(EVP_RSA_gen(2048), 7200, 3600))).warnings();
    REQUIRE(warnings.size() == 1);
    CHECK(warnings[0].starts_with("certificate-not-yet-valid: cert.pem: its time has not begun"));
}

TEST_CASE("sign: lengths of RSA keys that no kernel computes with are refused, weak ones told of") {
    for (const unsigned bits : {2560U, 2040U, 4160U}) {
        CAPTURE(bits);
        CHECK(code_of(material(make_pair(EVP_RSA_gen(bits), 3600))) ==
              fmt::format("bad-key: key.pem: expected an RSA key of 2048, 3072 or 4096 bits, as kernels compute with, "
                          "found one of {}",
                          bits));
    }
    for (const unsigned bits : {512U, 1024U, 1536U, 2047U, 2048U, 3072U}) {
        CAPTURE(bits);
        CHECK(ModuleSigner(material(make_pair(EVP_RSA_gen(bits), 3600))).warnings().size() == (bits < 2000 ? 1 : 0));
    }
}

TEST_CASE("sign: keys and certificates that do not do are refused by name, the key's text is never shown") {
    auto from = material(rsa_pair());
    CHECK(code_of(from) == "ok");
    from.key = rsa_pair().encrypted_key;
    CHECK(code_of(from) == "bad-key: key.pem: expected a passphrase for the encrypted key, found none");
    from.passphrase = "wrong";
    CHECK(code_of(from) == "bad-key: key.pem: expected the passphrase of the key, found another one");
    from.passphrase = "opensesame";
    CHECK(code_of(from) == "ok");
    from = material(rsa_pair());
    from.key = "s3cret no key";
    CHECK(code_of(from) == "bad-key: key.pem: expected a private key in PEM form, found none");
    const std::string expected = "bad-key: key.pem: expected a private key in PEM form, found ";
    from.key = rsa_pair().certificate;
    CHECK(code_of(from) == expected + "a block \"CERTIFICATE\"");
    from.key = "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXk=\n-----END OPENSSH PRIVATE KEY-----\n";
    CHECK(code_of(from) == expected + "a key of OpenSSH");
    from.key = "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n";
    CHECK(code_of(from) == expected + "a damaged one");
    from.key = "\x30\x03\x02\x01\x05";
    CHECK(code_of(from) == expected + "none");
    from.key = pkcs12_of(rsa_pair());
    CHECK(code_of(from) == expected + "a PKCS#12 file");
    CHECK(code_of(material(make_pair(EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519"), 3600))) ==
          "bad-key: key.pem: expected an RSA or EC key, which kernels know, found ED25519");
    from = material(make_pair(EVP_RSA_gen(2048), 3600));
    from.certificate = rsa_pair().certificate;
    CHECK(code_of(from) == "key-mismatch: cert.pem is the certificate of another key than key.pem");
    from = material(rsa_pair());
    from.certificate = from.key;
    CHECK(code_of(from).starts_with("bad-certificate: cert.pem: expected an X.509 certificate"));
    from = material(rsa_pair());
    from.digest = "md5";
    CHECK(code_of(from) == "bad-key: expected the digest sha224, sha256, sha384 or sha512, found md5");
}

TEST_CASE("sign: a damaged trailer is no module") {
    const std::string signature = ModuleSigner(material(rsa_pair())).sign("x");
    for (const std::string& bytes : {std::string("~Module signature appended~\n"), signature.substr(2)}) {
        CHECK_THROWS_WITH_AS((void)kmod::unsigned_module(bytes, "a.ko"),
                             doctest::Contains("a.ko: the appended signature is damaged"), Error);
    }
}

TEST_CASE("packing: every kind comes back, twice the same") {
    const std::string module = test::make_ko({}) + std::string(100'000, 'x');
    for (const std::string how : {"", "gzip", "xz", "zstd"}) {
        CAPTURE(how);
        const std::string packed = kmod::packed_module(module, how);
        CHECK(kmod::compression_name(packed) == how);
        CHECK(kmod::plain_module(packed, "a.ko") == module);
        CHECK(kmod::packed_module(module, how) == packed);
        CHECK((how.empty() || packed.size() < 10'000));
    }
}
