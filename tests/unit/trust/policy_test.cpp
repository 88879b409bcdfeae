// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "base/error.hpp"
#include "base/text.hpp"
#include "trust/policy.hpp"

using namespace kmm;
using Kind = trust::Requirement::Kind;

namespace {

/// "CODE LINE:COLUMN MESSAGE" of each fault.
std::vector<std::string> faults_of(const std::string& text) {
    std::vector<std::string> result;
    try {
        static_cast<void>(trust::read_policy(text, "policy.json"));
    } catch (const Error& error) {
        for (const Diagnostic& fault : error.diagnostics()) {
            result.push_back(fault.code + " " + (fault.position ? fault.position->to_string().substr(12) : "") + " " +
                             fault.message);
        }
        if (result.empty()) {
            result.push_back(error.code() + " " + error.message());
        }
    }
    return result;
}

/// The same for one requirement; what is said of it.
std::string fault_of(const std::string& requirement) {
    const auto faults = faults_of(R"({"default": [)" + requirement + "]}");
    return faults.empty() ? "" : faults.front();
}

constexpr const char* k_ec_key = R"(-----BEGIN PUBLIC KEY-----
MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAEkZ5x8phqd0Vtsr2/Yp6y7WVqAepu
sa6Cnq9A9WW9DTdhHsn3f5N23kNYTID5eDnRd9DivsxeTJjfkUG4Qllz2A==
-----END PUBLIC KEY-----
)";

}  // namespace

TEST_SUITE("trust::unit") {

TEST_CASE("a policy, and what it requires of whom") {
    const trust::Policy policy = trust::read_policy(R"({
      "default": [{"type": "reject"}],
      "transports": {
        "docker": {
          "": [{"type": "insecureAcceptAnything"}],
          "Reg.example/team": [{"type": "sigstoreSigned", "keyPath": "/k.pub", "signedIdentity": {"type": "matchRepository"}}],
          "*.example": [{"type": "signedBy", "keyType": "GPGKeys", "keyPath": "/k.gpg"}],
          "reg.example/team/x:1": [{"type": "sigstoreSigned", "keyPaths": ["/a", "/b"], "rekorPublicKeyPath": "/r"}]
        },
        "oci": {"/srv": [{"type": "insecureAcceptAnything"}]},
        "whatever": {"anything": [{"type": "reject"}]}
      }
    })",
                                                    "policy.json");
    const auto of = [&](const std::string& name) {
        return trust::requirements_for(policy, "docker", trust::scopes_of(*trust::named_image(name))).front();
    };
    CHECK(of("reg.example/team/y:1").kind == Kind::signature);
    CHECK(of("reg.example/team/y:1").key_files == std::vector<std::string>{"/k.pub"});
    CHECK(of("reg.example/team/y:1").position.to_string() == "policy.json:6:32");
    CHECK(of("reg.example/team/x:1").type == "sigstoreSigned with rekorPublicKeyPath");
    CHECK(of("reg.example/team/x:1").kind == Kind::unsupported);
    CHECK(of("reg.example/teams/x:1").type == "signedBy");
    CHECK(of("other.test/x:1").kind == Kind::accept);
    CHECK(trust::requirements_for(policy, "oci", trust::scopes_of_path("/srv/images/x")).front().kind == Kind::accept);
    CHECK(trust::requirements_for(policy, "oci", trust::scopes_of_path("/srv2")).front().kind == Kind::reject);
    CHECK(trust::requirements_for(policy, "dir", trust::scopes_of_path("/srv")).front().kind == Kind::reject);
}

TEST_CASE("every fault of a policy is found, with its place") {
    CHECK(faults_of("{\n \"default\": [],\n \"transport\": {},\n \"transports\": {\"docker\": []}\n}") ==
          std::vector<std::string>{
              "bad-value 2:13 default: expected a list of requirements that is not empty, found an empty list",
              "unknown-field 3:2 the policy: unknown key transport",
              "bad-value 4:27 docker: expected an object, found an empty list"});
    CHECK(faults_of("{}") == std::vector<std::string>{"missing-field 1:1 the policy: expected default, found none"});
    CHECK(faults_of("[]") ==
          std::vector<std::string>{"bad-value 1:1 the policy: expected an object, found an empty list"});
    CHECK(faults_of("").front().starts_with("json-syntax"));
    CHECK(faults_of(R"({"default": [{"type": "reject"}], "default": [{"type": "reject"}]})")
              .front()
              .starts_with("duplicate-key"));
    CHECK(
        faults_of(
            R"({"default": [{"type": "reject"}], "transports": {"docker": {"A.b": [{"type": "reject"}], "a.b": [{"type": "reject"}]}}})")
            .front()
            .starts_with("duplicate-key"));
    for (const std::string scope : {"relative", "/", "/a/", "/a/../b", "/a//b", "/a/."}) {
        CHECK_MESSAGE(faults_of(R"({"default": [{"type": "reject"}], "transports": {"oci": {")" + scope +
                                R"(": [{"type": "reject"}]}}})")
                              .size() == 1,
                      scope);
    }
    CHECK(faults_of(
              R"({"default": [{"type": "reject"}], "transports": {"docker-archive": {"/a": [{"type": "reject"}]}}})")
              .size() == 1);
}

TEST_CASE("what a policy says of no image is a fault, not a permission") {
    const auto said = [](const std::string& transport, const std::string& scope) {
        const auto found = faults_of(R"({"default": [{"type": "insecureAcceptAnything"}], "transports": {")" +
                                     transport + R"(": {")" + scope + R"(": [{"type": "reject"}]}}})");
        return found.empty() ? std::string() : found.front();
    };
    CHECK(said("docker", "reg.example/team").empty());
    CHECK(said("docker", "Reg.Example/team").empty());
    CHECK(
        said("docker", "reg.example/team/*") ==
        "bad-value 1:77 docker scope \"reg.example/team/*\": expected HOST[:PORT][/NAMESPACE], a full image name with "
        "a tag or a digest, or *.DOMAIN; no image falls under this");
    for (const char* const known : {"docker-daemon", "containers-storage", "atomic", "a-later-one"}) {
        CHECK_MESSAGE(said(known, "").empty(), known);
    }
    CHECK(said("dokcer", "") == "unknown-field 1:66 transports: unknown transport \"dokcer\"");
    for (const char* const wrong : {"Docker", "docker ", "", "oci_archive", "docker-arhive"}) {
        CHECK_MESSAGE(!said(wrong, "").empty(), wrong);
    }
}

TEST_CASE("every fault of a requirement") {
    CHECK(fault_of(R"({"type": "reject"})").empty());
    CHECK(fault_of(R"({"type": "reject", "more": 1})") == "unknown-field 1:33 reject: unknown key more");
    CHECK(fault_of(R"({"type": "Reject"})").find("expected one of insecureAcceptAnything, reject,") !=
          std::string::npos);
    CHECK(fault_of("{}") == "missing-field 1:14 requirement: expected type, found none");
    CHECK(fault_of("null").starts_with("bad-value"));
    CHECK(fault_of(R"({"type": "signedBaseLayer"})").starts_with("missing-field"));
    CHECK(fault_of(R"({"type": "signedBaseLayer", "baseLayerIdentity": {"type": "matchExact"}})").empty());
    for (
        const std::string wrong :
        {R"({"type": "sigstoreSigned"})",
         R"({"type": "sigstoreSigned", "keyPath": ""})",
         R"({"type": "sigstoreSigned", "keyPaths": []})",
         R"({"type": "sigstoreSigned", "keyPath": 7})",
         R"({"type": "sigstoreSigned", "keyPath": "a", "keyPaths": ["b"]})",
         R"({"type": "sigstoreSigned", "keyData": "!"})",
         R"({"type": "sigstoreSigned", "keyData": "YQ=="})",
         R"({"type": "sigstoreSigned", "fulcio": "x"})",
         R"({"type": "sigstoreSigned", "keypath": "a"})",
         R"({"type": "sigstoreSigned", "keyPath": "a", "signedIdentity": null})",
         R"({"type": "sigstoreSigned", "keyPath": "a", "signedIdentity": {"type": "matchrepository"}})",
         R"({"type": "sigstoreSigned", "keyPath": "a", "signedIdentity": {"type": "matchExact", "dockerReference": "x"}})",
         R"({"type": "sigstoreSigned", "keyPath": "a", "signedIdentity": {"type": "exactReference", "dockerReference": "vendor.example/x"}})",
         R"({"type": "sigstoreSigned", "keyPath": "a", "signedIdentity": {"type": "exactReference"}})",
         R"({"type": "sigstoreSigned", "keyPath": "a", "signedIdentity": {"type": "exactRepository", "dockerRepository": "A B"}})",
         R"({"type": "sigstoreSigned", "keyPath": "a", "signedIdentity": {"type": "remapIdentity", "prefix": "a.b"}})",
         R"({"type": "sigstoreSigned", "keyPath": "a", "signedIdentity": {"type": "remapIdentity", "prefix": "a.b/c:1", "signedPrefix": "d.e"}})",
         R"({"type": "sigstoreSigned", "keyPath": "a", "rekorPublicKeyPath": "b", "rekorPublicKeyData": "YQ=="})",
         R"({"type": "signedBy", "keyPath": "a"})",
         R"({"type": "signedBy", "keyType": "GPG", "keyPath": "a"})",
         R"({"type": "signedBy", "keyType": "GPGKeys"})"}) {
        CHECK_MESSAGE(!fault_of(wrong).empty(), wrong);
    }
    CHECK(fault_of(R"({"type": "sigstoreSigned", "keyData": ")" + base::to_base64(k_ec_key) + R"("})").empty());
}

TEST_CASE("a requirement that cannot be checked here is read as strictly as podman reads it") {
    const auto said = [](const std::string& members) { return fault_of(R"({"type": "sigstoreSigned", )" + members + "}"); };
    const std::string log = R"(, "rekorPublicKeyPath": "r")";
    CHECK(said(R"("fulcio": {"caPath": "a", "oidcIssuer": "i", "subjectEmail": "e"})" + log).empty());
    CHECK(said(R"("pki": {"caRootsPath": "a", "subjectHostname": "h", "caIntermediatesPath": "b"})").empty());
    CHECK(said(R"("fulcio": {"caPath": "a", "oidcIssuer": "i", "subjectEmail": "e"})").find("beside fulcio") !=
          std::string::npos);
    CHECK(said(R"("pki": {"caRootsPath": "a", "subjectEmail": "e"})" + log).find("beside pki") != std::string::npos);
    for (const std::string wrong : {
             R"("fulcio": {"caPath": "a", "oidcIssuer": "i", "subjectEmal": "e"})",
             R"("fulcio": {"caPath": "a", "oidcIssuer": "i"})",
             R"("fulcio": {"oidcIssuer": "i", "subjectEmail": "e"})",
             R"("fulcio": {"caPath": "a", "caData": "YQ==", "oidcIssuer": "i", "subjectEmail": "e"})",
             R"("fulcio": {"caPath": "a", "oidcIssuer": "", "subjectEmail": "e"})"}) {
        CHECK_MESSAGE(!said(wrong + log).empty(), wrong);
    }
    for (const std::string wrong : {R"("pki": {"caRootsPath": "a"})", R"("pki": {"subjectEmail": "e"})",
                                    R"("pki": {"caRootsPath": "a", "subjectEmail": "e", "oidcIssuer": "i"})"}) {
        CHECK_MESSAGE(!said(wrong).empty(), wrong);
    }
    CHECK(fault_of(R"({"type": "signedBy", "keyType": "X509Certificates", "keyPath": "a"})").empty());
}

TEST_CASE("keys are public ones, of kinds and lengths that can be trusted") {
    const auto said = [](const std::string& text) {
        try {
            trust::PublicKey(text, "key.pub");
        } catch (const Error& error) {
            return error.code() + ": " + error.message();
        }
        return std::string();
    };
    CHECK(said(k_ec_key).empty());
    CHECK(said("words before it\n" + std::string(k_ec_key)).empty());
    CHECK(said(std::string(k_ec_key) + "words behind it\n").empty());
    CHECK(said(std::string(k_ec_key) + std::string(k_ec_key)) == "bad-key: key.pub: expected one public key, found 2");
    CHECK(said(std::string(k_ec_key) + "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n") ==
          "bad-key: key.pub: expected one public key alone, found a block \"CERTIFICATE\" after it");
    CHECK(said("") == "bad-key: key.pub: expected a public key in PEM form, found no PEM block");
    CHECK(said("-----BEGIN EC PRIVATE KEY-----\nMAA=\n-----END EC PRIVATE KEY-----\n") ==
          "bad-key: key.pub: expected a public key in PEM form, found a block \"EC PRIVATE KEY\"");
    CHECK(said("-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n").find("CERTIFICATE") !=
          std::string::npos);
    CHECK(said("-----BEGIN PUBLIC KEY-----\nMAA=\n-----END PUBLIC KEY-----\n").find("a damaged one") !=
          std::string::npos);
    // openssl genrsa 1024
    CHECK(
        said("-----BEGIN PUBLIC "
             "KEY-----\nMIGfMA0GCSqGSIb3DQEBAQUAA4GNADCBiQKBgQC9X6Q8CHXxGi412MilgU2HaKUk\nr/j+srsDgTRZro8CgLDO0FYnmrdf/"
             "9dv6jg0x8PG8oGQyqRi7FnFsIh3KeTlZOOH\n867yTKeP+drAPQ91AgVgJ3TgPReHKDeCZxtUbU3mIr0rG6cm+zPnmJPTmsmnnL/"
             "N\n0Yy6VhW2QUw0ipK8CQIDAQAB\n-----END PUBLIC KEY-----\n") ==
        "bad-key: key.pub: expected an RSA key of at least 2048 bits, found 1024");
    // openssl genpkey -algorithm x25519
    CHECK(said("-----BEGIN PUBLIC KEY-----\nMCowBQYDK2VuAyEA30xpOHh5I6VQgY7t68Z3PHSOUTf7W0j5wVhx/VZQCxY=\n-----END "
               "PUBLIC KEY-----\n") == "bad-key: key.pub: expected an EC, RSA or Ed25519 key, found X25519");
    trust::Requirements requirements(2);
    requirements[1].key_files = {"a", "b"};
    trust::load_keys(requirements, [](const std::string&) { return std::string(k_ec_key); });
    CHECK(requirements[0].keys.empty());
    REQUIRE(requirements[1].keys.size() == 2);
    CHECK(requirements[1].keys[1].name() == "b");
    requirements[1].key_files = {"gone"};
    requirements[1].position = {"policy.json", 3, 4};
    try {
        trust::load_keys(requirements, [](const std::string&) -> std::string {
            throw Error(Exit::not_found, "io", "cannot open gone");
        });
        FAIL("expected the error of the reader");
    } catch (const Error& error) {
        REQUIRE(error.details().size() == 1);
        CHECK(error.details().front().second == "policy.json:3:4");
    }
}

}
