// SPDX-License-Identifier: Apache-2.0
// The messages were made with `openssl cms -sign -binary -md sha256` over "module bytes", the way sign-file makes them:
// -noattr -nocerts, by serial number or with -keyid; with attributes; and with certificates: k_by_leaf and those below
// Root have one that its CA has signed, k_of_chain also that of a CA between them.
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
constexpr const char* k_root_certificate =
    "308201753082011ba00302010202143cc41a3e0ebfdc00fda92344c27a8001a5f47a52300a06082a8648ce3d040302300f310d300b06035504"
    "030c04526f6f743020170d3236313132393032333635365a180f32313236313130353032333635365a300f310d300b06035504030c04526f6f"
    "743059301306072a8648ce3d020106082a8648ce3d03010703420004c03aa7bf691f30d2360a7519f73f0eab348dd1d8156515a21a3d63905a"
    "7016e2ca5e56a196460d7a0a81795e2f05331bb3888cb44a5ba9cd580668540bce15f2a3533051301d0603551d0e04160414ab3426f7bd9433"
    "85e930945cd16445a83ed2f97f301f0603551d23041830168014ab3426f7bd943385e930945cd16445a83ed2f97f300f0603551d130101ff04"
    "0530030101ff300a06082a8648ce3d04030203480030450221009d8d28b664d8184ea78b8f7f55575c906d647eadf1cf0fee37f43e8bbdc52f"
    "0e022000febee3c176665620ec39905282178730ff3581fdbd1388f47fbf3398e44a81";
constexpr const char* k_of_leaf =
    "3082020b06092a864886f70d010702a08201fc308201f8020101310d300b0609608648016503040201300b06092a864886f70d010701a08201"
    "55308201513081f7a003020102020111300a06082a8648ce3d040302300f310d300b06035504030c04526f6f743020170d3236313132393032"
    "333635365a180f32313236313130353032333635365a300f310d300b06035504030c044c6561663059301306072a8648ce3d020106082a8648"
    "ce3d0301070342000474d9596e6025a7b14ad7071dfa15b2efc542f4ed180d46ab2c95e88704daab08a3f309b8711cd554ea472137075f61f4"
    "2481a08602121cc55783903dcf73e3aaa3423040301d0603551d0e04160414f30d214aa6e49da327c386172e15caa5c68af5b3301f0603551d"
    "23041830168014ab3426f7bd943385e930945cd16445a83ed2f97f300a06082a8648ce3d0403020349003046022100885abed9d7f7c084e98f"
    "56447990f005250b45b2ee724db4679867997031efd8022100e509abb4e6f624df18b1900a536b9495bc2346dd54b9f51c8266d9ded779d9b0"
    "317e307c0201013014300f310d300b06035504030c04526f6f74020111300b0609608648016503040201300a06082a8648ce3d040302044830"
    "46022100a7da056af7132b61c07e9474d2e3510e086c8f7cc3861836814a59f0d99cceb8022100ef3d3a1c9ca257f0632ae2445aea08ece11b"
    "80c5a002c847c33b9f4e67ccd13c";
constexpr const char* k_of_leaf_by_key_id =
    "3082020906092a864886f70d010702a08201fa308201f6020103310d300b0609608648016503040201300b06092a864886f70d010701a08201"
    "55308201513081f7a003020102020111300a06082a8648ce3d040302300f310d300b06035504030c04526f6f743020170d3236313132393032"
    "333635365a180f32313236313130353032333635365a300f310d300b06035504030c044c6561663059301306072a8648ce3d020106082a8648"
    "ce3d0301070342000474d9596e6025a7b14ad7071dfa15b2efc542f4ed180d46ab2c95e88704daab08a3f309b8711cd554ea472137075f61f4"
    "2481a08602121cc55783903dcf73e3aaa3423040301d0603551d0e04160414f30d214aa6e49da327c386172e15caa5c68af5b3301f0603551d"
    "23041830168014ab3426f7bd943385e930945cd16445a83ed2f97f300a06082a8648ce3d0403020349003046022100885abed9d7f7c084e98f"
    "56447990f005250b45b2ee724db4679867997031efd8022100e509abb4e6f624df18b1900a536b9495bc2346dd54b9f51c8266d9ded779d9b0"
    "317c307a0201038014f30d214aa6e49da327c386172e15caa5c68af5b3300b0609608648016503040201300a06082a8648ce3d040302044630"
    "44022068323e36f6301a65719be4a646231cd6079d72f3dc7ced46be9dd467af205dfd02204617eb5692cbc7d033f6e9b416bd99a1ab982092"
    "7c03f42bb000435c3fbbddd6";
constexpr const char* k_of_chain =
    "3082037306092a864886f70d010702a082036430820360020101310d300b0609608648016503040201300b06092a864886f70d010701a08202"
    "bd308201523081f8a003020102020114300a06082a8648ce3d0403023010310e300c06035504030c05496e7465723020170d32363131323930"
    "32333732305a180f32313236313130353032333732305a300f310d300b06035504030c044c6561663059301306072a8648ce3d020106082a86"
    "48ce3d0301070342000474d9596e6025a7b14ad7071dfa15b2efc542f4ed180d46ab2c95e88704daab08a3f309b8711cd554ea472137075f61"
    "f42481a08602121cc55783903dcf73e3aaa3423040301d0603551d0e04160414f30d214aa6e49da327c386172e15caa5c68af5b3301f060355"
    "1d23041830168014b9c2a3eaf74e20a6723c64a1cae43a598a939688300a06082a8648ce3d0403020349003046022100a76a674b0a7e2b2c5b"
    "e40e6605eb1977610f89d814589b8b7dc1ce38e8092530022100c4e5d1e2ea39c1eccdcd52e897fa4ed1a932baba016ada37ac50cf5831a720"
    "483082016330820109a003020102020113300a06082a8648ce3d040302300f310d300b06035504030c04526f6f743020170d32363131323930"
    "32333732305a180f32313236313130353032333732305a3010310e300c06035504030c05496e7465723059301306072a8648ce3d020106082a"
    "8648ce3d03010703420004fb8fee75140496dfbc7dc7699c9cc58c7bd424f5e7a5fae22756271082a09010254a39c7d0b2cb6184ddc1f20a3b"
    "4b123dde59f8ddace69ad4a35202b72fab7ca3533051300f0603551d130101ff040530030101ff301d0603551d0e04160414b9c2a3eaf74e20"
    "a6723c64a1cae43a598a939688301f0603551d23041830168014ab3426f7bd943385e930945cd16445a83ed2f97f300a06082a8648ce3d0403"
    "020348003045022100a6421b72559c43e8d88bd04e38f04d8bd02b27e4904e4a56f7b4709849c1636d0220175b9f2992b1204f98b33d408fc6"
    "0586b43174bd75f7325bcd3608bc51575cf0317e307c02010130153010310e300c06035504030c05496e746572020114300b06096086480165"
    "03040201300a06082a8648ce3d04030204473045022059e25287198adfbf461f5cc454a757b15696baeedd4f733323752b9d3426fab5022100"
    "a9c57e44f0786241db77251e6c6aa64981e1aec32d57d91e8ee3ed2ebc6ba3cc";
constexpr const char* k_of_leaf_without_authority =
    "308201f406092a864886f70d010702a08201e5308201e1020101310d300b0609608648016503040201300b06092a864886f70d010701a08201"
    "3f3082013b3081e1a003020102020112300a06082a8648ce3d040302300f310d300b06035504030c04526f6f743020170d3236313132393032"
    "333635375a180f32313236313130353032333635375a300f310d300b06035504030c04426172653059301306072a8648ce3d020106082a8648"
    "ce3d03010703420004e885fcc8b683567a744491fbd032435f3ceefbfbe5c9790069d80031ae53ec39f318f88067ff6529bd715c456a3aa4a3"
    "ecae3a0e88c0af64ec4ded54e03ebca2a32c302a30090603551d1304023000301d0603551d0e041604149f3aa664400801d0861a0d59cfb881"
    "7adee1efec300a06082a8648ce3d04030203490030460221009b321b5357634b9d8f70aa7ea62273bddc30087a6be23f8578ab1f72aee5d178"
    "022100812e3ebc045cee4cb15d80127da2110281d945ea7097c331065e385893f3c90a317d307b0201013014300f310d300b06035504030c04"
    "526f6f74020112300b0609608648016503040201300a06082a8648ce3d04030204473045022041cc54c44d9e595f4bf50538f36b78af6db86d"
    "2f97e0265306cd181bcbcc8c4f022100ca5edbe6e079da589b84858567dadc83b448c70d3f45410fcc65ea5201df9954";

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
    CHECK(verdict(by(k_by_leaf), {k_other_certificate}) == "unknown-key");
    CHECK(verdict(by(k_with_attributes), {k_lab_certificate}) ==
          "bad: it has signed attributes, which kernels refuse for modules");
}

TEST_CASE("certificates in the message count where kernels look for them") {
    const auto with_root = [](const char* message) {
        return verdict(signed_file("module bytes", bytes_of(message)), {k_other_certificate, k_root_certificate});
    };
    CHECK(with_root(k_of_leaf) == "trusted by Root");
    CHECK(with_root(k_of_chain) == "trusted by Root");
    // For a key identifier the kernel asks its keyrings alone, and an issuer is looked for by the authority key
    // identifier: in both cases it answers ENOKEY.
    CHECK(with_root(k_of_leaf_by_key_id) == "unknown-key");
    CHECK(with_root(k_of_leaf_without_authority) == "unknown-key");
    CHECK(verdict(signed_file("module bytes", bytes_of(k_by_leaf)), {k_lab_certificate}) == "unknown-key");
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
