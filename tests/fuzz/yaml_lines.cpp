// SPDX-License-Identifier: Apache-2.0
// The YAML that is read line by line: it is what libyaml alone reads, with every place.
#include "fuzz/target.hpp"
#include "support/stream_text.hpp"
#include "value/yaml_stream.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace kmm;
    const auto text = fuzz::text_of(data, size);
    const auto expected = tests::stream_text(value::stream_libyaml, text, size + 1);
    fuzz::require(tests::stream_text(value::stream_yaml, text, size + 1) == expected, "both readers agree");
    fuzz::require(tests::stream_text(value::stream_yaml, text, 7) == expected, "pieces make no difference");
    return 0;
}
