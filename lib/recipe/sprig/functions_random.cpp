// SPDX-License-Identifier: Apache-2.0
// Sprig's functions that give something else each time. They are refused, or give placeholders: what is rendered for
// reading alone needs no secrets.
#include <array>
#include <memory>

#include <fmt/format.h>

#include "base/text.hpp"
#include "recipe/govalue/convert.hpp"
#include "recipe/sprig/sprig.hpp"

namespace kmm::recipe::tmpl {

namespace {

constexpr std::string_view k_filler = "PLACEHOLDER";
constexpr std::string_view k_hash = "$2a$10$PLACEHOLDERPLACEHOLDERPLACEHOLDERPLACEHOLDERPLACEHOLD";

std::string filled(std::int64_t size, std::string_view filler) {
    if (size <= 0) { return ""; }
    check_size(static_cast<std::uint64_t>(size));
    std::string text;
    while (text.size() < static_cast<std::size_t>(size)) { text += filler; }
    text.resize(static_cast<std::size_t>(size));
    return text;
}

std::string pem(std::string_view kind) {
    return fmt::format("-----BEGIN {0}-----\n{1}\n-----END {0}-----\n", kind, base::to_base64(k_filler));
}

Value certificate(std::string cert, std::string key) {
    auto made = std::make_shared<Record>();
    made->type = "sprig.certificate";
    made->fields = {{"Cert", "Cert", false, Value::string(std::move(cert))},
                    {"Key", "Key", false, Value::string(std::move(key))}};
    return Value::record(std::move(made));
}

Value letters(Call&, List& a) { return Value::string(filled(a[0].as_int(), k_filler)); }
Value digits(Call&, List& a) { return Value::string(filled(a[0].as_int(), "0123456789")); }
Value bytes(Call&, List& a) {
    if (a[0].as_int() < 0) {
        throw Fault{"makeslice: len out of range"};
    }
    return Value::string(base::to_base64(filled(a[0].as_int(), k_filler)));
}

Value least(Call&, List& a) {
    if (a[1].as_int() <= a[0].as_int()) {
        throw Fault{"invalid argument to Intn"};
    }
    return a[0];
}

Value new_certificate(Call&, List&) { return certificate(pem("CERTIFICATE"), pem("RSA PRIVATE KEY")); }

Value given_certificate(Call&, List& a) {
    const auto cert = base::from_base64(a[0].text()), key = base::from_base64(a[1].text());
    if (!cert || !key) {
        throw Fault{"unable to decode base64 certificate or key"};
    }
    return certificate(*cert, *key);
}

Value private_key(Call&, List& a) {
    constexpr std::array<std::pair<std::string_view, std::string_view>, 5> k_kinds{{{"", "RSA PRIVATE KEY"},
                                                                                    {"rsa", "RSA PRIVATE KEY"},
                                                                                    {"dsa", "DSA PRIVATE KEY"},
                                                                                    {"ecdsa", "EC PRIVATE KEY"},
                                                                                    {"ed25519", "PRIVATE KEY"}}};
    for (const auto& [name, kind] : k_kinds) {
        if (a[0].text() == name) { return Value::string(pem(kind)); }
    }
    return Value::string("Unknown type " + a[0].text());
}

constexpr Function random_function(std::string_view name, std::string_view parameters, Value (*call)(Call&, List&)) {
    return {name, parameters, false, call, true};
}

}  // namespace

std::span<const Function> random_functions() {
    static const Function table[] = {
        random_function("now", "", [](Call&, List&) { return Value::time({}); }),
        random_function("ago", "a", [](Call&, List&) { return Value::string("0s"); }),
        random_function("randAlphaNum", "i", letters),
        random_function("randAlpha", "i", letters),
        random_function("randAscii", "i", letters),
        random_function("randNumeric", "i", digits),
        random_function("randBytes", "i", bytes),
        random_function("randInt", "ii", least),
        random_function("shuffle", "s", [](Call&, List& a) { return a[0]; }),
        random_function("uuidv4", "",
                        [](Call&, List&) { return Value::string("00000000-0000-4000-8000-000000000000"); }),
        random_function("genPrivateKey", "s", private_key),
        random_function("genCA", "si", new_certificate),
        random_function("genCAWithKey", "sis", new_certificate),
        random_function("genSelfSignedCert", "saai", new_certificate),
        random_function("genSelfSignedCertWithKey", "saais", new_certificate),
        random_function("genSignedCert", "saaia", new_certificate),
        random_function("genSignedCertWithKey", "saaias", new_certificate),
        random_function("buildCustomCert", "ss", given_certificate),
        random_function("bcrypt", "s", [](Call&, List&) { return Value::string(std::string(k_hash)); }),
        random_function("htpasswd", "ss",
                        [](Call&, List& a) {
                            const bool wrong = a[0].text().find(':') != std::string::npos;
                            return Value::string(wrong ? "invalid username: " + a[0].text()
                                                       : fmt::format("{}:{}", a[0].text(), k_hash));
                        }),
        random_function("encryptAES", "ss", [](Call&, List&) { return Value::string(base::to_base64(k_filler)); }),
    };
    return table;
}

}  // namespace kmm::recipe::tmpl
