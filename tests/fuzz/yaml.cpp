// SPDX-License-Identifier: Apache-2.0
// The YAML reader: a tree or faults with places, and what was read can be written and read again.
#include "fuzz/target.hpp"
#include "value/reader.hpp"
#include "value/writer.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace kmm;
    Diagnostics faults;
    const auto documents = value::read_yaml(fuzz::text_of(data, size), "f", faults);
    for (const auto& fault : faults) {
        fuzz::require(!fault.code.empty() && !fault.message.empty(), "a fault has a code and a message");
        fuzz::require(fault.position && fault.position->line > 0, "a fault has a place");
    }
    for (const auto& document : documents) {
        Diagnostics none;
        const auto again = value::read_yaml(value::to_yaml(document.root), "g", none);
        fuzz::require(none.empty() && again.size() == 1, "what was written can be read");
        fuzz::require(again[0].root.same_value(document.root), "it has the same value");
    }
    return 0;
}
