// SPDX-License-Identifier: Apache-2.0
// The worker's input: a ModuleConfig and its pull Secrets.
#include <string>

#include "api/codec.hpp"
#include "base/error.hpp"
#include "fuzz/target.hpp"
#include "registry/client/credentials.hpp"
#include "value/reader.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace kmm;
    Diagnostics faults;
    api::Objects objects;
    bool first = true;
    for (const auto& document : value::read_any(fuzz::text_of(data, size), "f", faults)) {
        if (first) {
            static_cast<void>(api::decode_module_config(document, faults));
        } else {
            api::decode(document, objects, faults);
        }
        first = false;
    }
    api::finish(objects, faults);
    for (const auto& fault : faults) {
        fuzz::require(!fault.code.empty() && !fault.message.empty(), "a fault has a code and a text");
    }
    try {
        static_cast<void>(registry::parse_credentials(std::string(fuzz::text_of(data, size)), "f"));
    } catch (const Error& error) {
        fuzz::require(error.code() == "bad-auth-file", "bad credentials have a code of their own");
        fuzz::require(error.message().size() < 1200, "credentials are not repeated in a message");
    }
    return 0;
}
