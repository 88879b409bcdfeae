// SPDX-License-Identifier: Apache-2.0
// Values that were read before and are left out of a stream are what they would be.
#include "fuzz/target.hpp"
#include "support/stream_refill.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace kmm;
    const auto text = fuzz::text_of(data, size);
    for (const auto stream : {tests::Stream(value::stream_json), tests::Stream(value::stream_yaml)}) {
        fuzz::require(tests::refilled(stream, text, size + 1).has_value(), "numbers make no difference");
        fuzz::require(tests::refilled(stream, text, 100).has_value(), "nor with pieces");
    }
    return 0;
}
