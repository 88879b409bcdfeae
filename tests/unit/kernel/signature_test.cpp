// SPDX-License-Identifier: Apache-2.0
// The messages were made with `openssl cms -sign -binary -md sha256` over "module bytes", the way sign-file makes them:
// -noattr -nocerts, by serial number or with -keyid; with attributes; and with the certificate of a key that the Lab CA
// vouches for.
#include <doctest/doctest.h>

#include <fstream>

#include "base/error.hpp"
#include "base/text.hpp"
#include "kernel/signature.hpp"
#include "sys/temp_dir.hpp"

using namespace kmm;
using namespace kmm::kernel;

namespace {

constexpr const char* k_lab_certificate =
    "308201673082010da003020102020400aabbcc300a06082a8648ce3d0403023011310f300d06035504030c064c6162204341301e170d323631"
    "31"
    "32313232343035305a170d3336313131383232343035305a3011310f300d06035504030c064c61622043413059301306072a8648ce3d020106"
    "08"
    "2a8648ce3d0301070342000452a7260e68fdbbeb32cc48bfc30d1453ece670d0ebd69c2a061d5feefe65ccbc5b9585eada30cd7036bd6f012c"
    "f9"
    "9f643f6278dc0fac2ab81c493c34eaed99ffa3533051301d0603551d0e041604143dbcbe9db0046f2f9b761024606744d9df65a7da301f0603"
    "55"
    "1d230418301680143dbcbe9db0046f2f9b761024606744d9df65a7da300f0603551d130101ff040530030101ff300a06082a8648ce3d040302"
    "03"
    "4800304502205efad669147ef39c02954c5aae1c44c24eb0e55e6322f31788be7c602821d8c9022100c446ebfe01e7cbb3e23462afc6ec12f2"
    "43"
    "461a926869ee6dfe0947eab23cbe64";
constexpr const char* k_other_certificate =
    "308201683082010ea003020102020111300a06082a8648ce3d04030230133111300f06035504030c084f74686572204341301e170d32363131"
    "32"
    "313232343035305a170d3336313131383232343035305a30133111300f06035504030c084f746865722043413059301306072a8648ce3d0201"
    "06"
    "082a8648ce3d030107034200049664daee8bf82d6daf8fa3b15fa1084452013b842c0e3203757f8cfcb60766d5a44a8db181bc67955644b73e"
    "b8"
    "ac8201c79fc02ebc3ca59ff290bfc32b55f688a3533051301d0603551d0e0416041413bfbfcf9240366fdf63ca06ff6df104cfe95e2f301f06"
    "03"
    "551d2304183016801413bfbfcf9240366fdf63ca06ff6df104cfe95e2f300f0603551d130101ff040530030101ff300a06082a8648ce3d0403"
    "02"
    "0348003045022100bb1252bf012201473eb62832914019cdddaeaebfb7bdfa41720b1cbcec93777b022035bee83ef55618e2fc58b31841e558"
    "e1"
    "69920a10c560890dd8bb506ce353fa60";
constexpr const char* k_by_serial =
    "3081b706092a864886f70d010702a081a93081a6020101310d300b0609608648016503040201300b06092a864886f70d010701318184308181"
    "02"
    "010130193011310f300d06035504030c064c6162204341020400aabbcc300b0609608648016503040201300a06082a8648ce3d040302044830"
    "46"
    "022100cb1a63ec4ccc88decef98bcaa5d99b6ddfdf26ae0fb869b3f14c506bfab7e7af022100bc669ac81ddbed6da32a39ebc8e628aaf7154b"
    "27"
    "aba5815d9382b79114c9384d";
constexpr const char* k_by_key_id =
    "3081af06092a864886f70d010702a081a130819e020103310d300b0609608648016503040201300b06092a864886f70d010701317d307b0201"
    "03"
    "80143dbcbe9db0046f2f9b761024606744d9df65a7da300b0609608648016503040201300a06082a8648ce3d0403020447304502200ab12ac1"
    "9c"
    "50d89dcb5c2b986d24ffdad4070d7ee1dd6fe21ed9407037120a89022100aeb754a426e93cc6d9f85c810de56249cc92aa97eb344a2de7c91d"
    "23"
    "468220df";
constexpr const char* k_with_attributes =
    "308201a206092a864886f70d010702a08201933082018f020101310d300b0609608648016503040201300b06092a864886f70d010701318201"
    "6c"
    "3082016802010130193011310f300d06035504030c064c6162204341020400aabbcc300b0609608648016503040201a081e4301806092a8648"
    "86"
    "f70d010903310b06092a864886f70d010701301c06092a864886f70d010905310f170d3236313132313232343035305a302f06092a864886f7"
    "0d"
    "010904312204205c073b6de205a83e4df87dcd07111be224ad4435a8c08ca0ba10e68dcf38fe92307906092a864886f70d01090f316c306a30"
    "0b"
    "060960864801650304012a300b0609608648016503040116300b0609608648016503040102300a06082a864886f70d0307300e06082a864886"
    "f7"
    "0d030202020080300d06082a864886f70d0302020140300706052b0e030207300d06082a864886f70d0302020128300a06082a8648ce3d0403"
    "02"
    "04483046022100cbfd8d7d26e56e909cdd3f66c9d4602a1effd5a3e527c5c69699ccc9190f053602210092b3798f14ce796b7f849b62f71a9f"
    "51"
    "c94f3865372260532ffdc90428fbc21d";
constexpr const char* k_by_leaf =
    "308201c406092a864886f70d010702a08201b5308201b1020101310d300b0609608648016503040201300b06092a864886f70d010701a08201"
    "0b"
    "308201073081ae020122300a06082a8648ce3d0403023011310f300d06035504030c064c6162204341301e170d323631313231323234303530"
    "5a"
    "170d3336313131383232343035305a300f310d300b06035504030c044c6561663059301306072a8648ce3d020106082a8648ce3d0301070342"
    "00"
    "04a4b1d02928ac816b30f75019ec4eebfaa6b9dcfa1f491279746db534ebd240273020f9244e8143bbed104abd7d3d5c39fff856d24e45fed1"
    "4a"
    "9ccb65c54b9aeb300a06082a8648ce3d0403020348003045022100b0d565fe776bd438bb3cefbf035bec83b38dd61f46b8216b4f1d721f21f0"
    "0f"
    "41022008eae000fd6d95a00a1231926f0457c4d97e7cc650073ed9d0b13399c038ec9b318180307e02010130163011310f300d06035504030c"
    "06"
    "4c6162204341020122300b0609608648016503040201300a06082a8648ce3d04030204483046022100c2e6afdd4a3f940ac99145b0eae8240f"
    "cd"
    "9ea9adad080d5896f551e011b58ae4022100c65416704bb5c8e324be474c52a0e17f1d355ccd32ee932d35df7a391322fb03";

std::string bytes_of(const char* hex) {
    const auto bytes = base::from_hex(hex);
    return {bytes->begin(), bytes->end()};
}

/// A module file with the message appended, as sign-file does.
std::string signed_file(const std::string& content, const std::string& message) {
    std::string trailer(12, '\0');
    trailer[2] = 2;
    trailer[10] = static_cast<char>(message.size() >> 8U);
    trailer[11] = static_cast<char>(message.size() & 255U);
    return content + message + trailer + "~Module signature appended~\n";
}

std::string verdict(const std::string& file, const std::vector<const char*>& certificates) {
    std::vector<Certificate> trusted;
    for (const char* hex : certificates) trusted.push_back({bytes_of(hex), "", "test"});
    const auto check = check_signature(file, trusted);
    return std::string(to_string(check.trust)) + (check.certificate.empty() ? "" : " by " + check.certificate) +
           (check.fault.empty() ? "" : ": " + check.fault);
}

void write(const std::string& path, const std::string& text) { std::ofstream(path, std::ios::binary) << text; }

std::string certificate_fault(const std::string& path) {
    try {
        (void)read_certificates(path);
    } catch (const Error& error) {
        return error.code();
    }
    return "none";
}

constexpr const char* k_differs = "bad: the module is not what was signed, or the signature was changed";

}  // namespace

TEST_SUITE("kernel::unit") {

TEST_CASE("a signature is verified as the kernel does") {
    const std::string content = "module bytes";
    const auto by = [&](const char* message) { return signed_file(content, bytes_of(message)); };
    CHECK(verdict(content, {k_lab_certificate}) == "unsigned");
    CHECK(verdict(by(k_by_serial), {}) == "not-checked");
    CHECK(verdict(by(k_by_serial), {k_lab_certificate}) == "trusted by Lab CA");
    CHECK(verdict(by(k_by_serial), {k_other_certificate, k_lab_certificate}) == "trusted by Lab CA");
    CHECK(verdict(by(k_by_key_id), {k_lab_certificate}) == "trusted by Lab CA");
    CHECK(verdict(by(k_by_serial), {k_other_certificate}) == "unknown-key");
    CHECK(verdict(by(k_by_key_id), {k_other_certificate}) == "unknown-key");
    CHECK(verdict(by(k_by_leaf), {k_lab_certificate}) == "trusted by Lab CA");
    CHECK(verdict(by(k_by_leaf), {k_other_certificate}) == "unknown-key");
    CHECK(verdict(by(k_with_attributes), {k_lab_certificate}) ==
          "bad: it has signed attributes, which kernels refuse for modules");
}

TEST_CASE("what OpenSSL does not know is not checked, and no fault of the module") {
    const auto with = [](std::string hex, const std::string& what, const std::string& instead) {
        for (std::size_t at = hex.find(what); at != std::string::npos; at = hex.find(what, at + 1))
            hex.replace(at, what.size(), instead);
        return hex;
    };
    const auto verdict_of = [](const std::string& message, const std::string& certificate) {
        return verdict(signed_file("module bytes", bytes_of(message.c_str())), {certificate.c_str()});
    };
    // A key of the kind of tomorrow (as ML-DSA is for OpenSSL 3.0), and a digest without a name.
    CHECK(verdict_of(k_by_serial, with(k_lab_certificate, "2a8648ce3d0201", "2a8648ce3d027f")) ==
          "not-checked: OpenSSL does not know the algorithm of its key or digest");
    CHECK(verdict_of(with(k_by_serial, "608648016503040201", "60864801650304027f"), k_lab_certificate) ==
          "not-checked: OpenSSL does not know the algorithm of its key or digest");
}

TEST_CASE("a signature that does not fit is bad, whatever byte was changed") {
    const std::string message = bytes_of(k_by_serial);
    CHECK(verdict(signed_file("module byteS", message), {k_lab_certificate}) == k_differs);
    CHECK(verdict(signed_file("", message), {k_lab_certificate}) == k_differs);
    CHECK(verdict(signed_file("module byteS", bytes_of(k_by_leaf)), {k_lab_certificate}) == k_differs);
    for (std::size_t i = 0; i < message.size(); ++i) {
        CAPTURE(i);
        std::string changed = message;
        changed[i] = static_cast<char>(changed[i] ^ 0x55);
        const auto found = verdict(signed_file("module byteS", changed), {k_lab_certificate});
        CHECK(found.find("trusted") == std::string::npos);
        CHECK(verdict(signed_file("module bytes", message.substr(0, i)), {k_lab_certificate}).starts_with("bad"));
    }
    std::string words = signed_file("module bytes", message);
    words[words.size() - 28 - 12] = 1;  // the trailer's first word, which PKCS#7 leaves at zero
    CHECK(verdict(words, {k_lab_certificate}) == "bad: its trailer has values where PKCS#7 wants zeros");
}

TEST_CASE("certificates are read in both forms") {
    const sys::TempDir scratch("kmm-unit-");
    const std::string der = bytes_of(k_lab_certificate);
    const std::string file = scratch.path() + "/a";
    write(file, der);
    const auto one = read_certificates(file);
    REQUIRE(one.size() == 1);
    CHECK(one[0].subject == "Lab CA");
    CHECK(one[0].der == der);
    const auto pem = [](const char* hex) {
        return "-----BEGIN CERTIFICATE-----\n" + base::to_base64(bytes_of(hex)) + "\n-----END CERTIFICATE-----\n";
    };
    write(file, "a comment\n" + pem(k_lab_certificate) + pem(k_other_certificate));
    const auto two = read_certificates(file);
    REQUIRE(two.size() == 2);
    CHECK(two[0].der == der);
    CHECK(two[1].subject == "Other CA");
    write(file, pem(k_lab_certificate) + "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
    CHECK(certificate_fault(file) == "bad-certificate");
    for (const std::string& bad : {std::string(), std::string("text"), der + "x", der.substr(0, 100)}) {
        write(file, bad);
        CHECK(certificate_fault(file) == "bad-certificate");
    }
    CHECK(certificate_fault(scratch.path() + "/absent") == "cert-not-found");
}

}
