// SPDX-License-Identifier: Apache-2.0
// The JSON reader: a tree or faults with places; what it reads, the YAML reader reads alike.
#include "fuzz/target.hpp"
#include "value/reader.hpp"
#include "value/writer.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace kmm;
    Diagnostics faults;
    const auto documents = value::read_json(fuzz::text_of(data, size), "f", faults);
    fuzz::require(!documents.empty() || has_errors(faults), "a document or a fault");
    for (const auto& fault : faults) {
        fuzz::require(fault.position && fault.position->line > 0, "a fault has a place");
    }
    if (has_errors(faults)) { return 0; }
    for (const auto& document : documents) {
        Diagnostics none;
        const auto again = value::read_json(value::to_json(document.root), "g", none);
        fuzz::require(none.empty() && again.size() == 1, "what was written can be read");
        fuzz::require(again[0].root.same_value(document.root), "it has the same value");
        const auto pretty = value::read_json(value::to_json_pretty(document.root), "h", none);
        fuzz::require(pretty.size() == 1 && pretty[0].root.same_value(document.root),
                      "the pretty form has the same value");
    }
    return 0;
}
