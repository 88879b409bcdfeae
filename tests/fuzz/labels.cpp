// SPDX-License-Identifier: Apache-2.0
// Label keys, values and selectors.
#include <string>

#include "api/names.hpp"
#include "base/error.hpp"
#include "cluster/seam/selector.hpp"
#include "fuzz/target.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace kmm;
    const std::string text(fuzz::text_of(data, size));
    const bool value = api::is_label_value(text);
    fuzz::require(!value || text.empty() || api::is_qualified_name(text), "a label value is a name");
    fuzz::require(!value || text.size() <= api::k_label_length_max, "a label value is short");
    fuzz::require(!api::is_dns1123_label(text) || api::is_dns1123_subdomain(text), "a label is a subdomain");
    fuzz::require(!api::is_dns1123_label(text) || value, "a DNS label is a label value");
    try {
        const auto selector = cluster::Selector::parse(text);
        const bool none = selector.matches({});
        fuzz::require(selector.matches({}) == none, "a selector answers alike");
    } catch (const Error& error) {
        fuzz::require(error.exit() == Exit::usage && !error.message().empty(), "a bad selector is a usage error");
    }
    return 0;
}
