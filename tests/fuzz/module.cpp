// SPDX-License-Identifier: Apache-2.0
// Whole documents: read, decoded, validated and planned for a node of their own.
#include <array>
#include <string>

#include "api/codec.hpp"
#include "fuzz/target.hpp"
#include "plan/decide/plan.hpp"
#include "plan/fleet/make_plan.hpp"
#include "plan/lint/validate.hpp"
#include "value/reader.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace kmm;
    const std::string node = "apiVersion: v1\nkind: Node\nmetadata: {name: node-a, labels: {kmm: \"yes\"}}\n"
                             "status: {nodeInfo: {kernelVersion: 6.1.0-1-amd64, bootID: b}}\n";
    Diagnostics faults;
    api::Objects objects;
    for (const std::string_view text : {fuzz::text_of(data, size), std::string_view(node)}) {
        for (const auto& document : value::read_any(text, "f", faults)) { api::decode(document, objects, faults); }
    }
    api::finish(objects, faults);
    for (const auto& fault : faults) {
        fuzz::require(!fault.code.empty() && fault.position.has_value(), "a fault has a code and a place");
    }
    for (const auto& finding : plan::validate(objects)) {
        fuzz::require(!finding.code.empty() && !finding.hint.empty(), "a finding has a code and a hint");
    }
    for (const bool next : {false, true}) {
        plan::Options options;
        options.next = next;
        for (const auto& entry : plan::make_plan(objects, options).entries) {
            fuzz::require(!entry.reason.empty(), "an entry has a reason");
        }
    }
    return 0;
}
