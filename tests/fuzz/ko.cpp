// SPDX-License-Identifier: Apache-2.0
// Module files as an image holds them: packed or not, ELF, modinfo, versions, signature.
#include <string>

#include "base/error.hpp"
#include "fuzz/target.hpp"
#include "kmod/check/parameters.hpp"
#include "kmod/ko/inflate.hpp"
#include "kmod/ko/module_file.hpp"
#include "kmod/ko/signature.hpp"
#include "kmod/ko/signer.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    using namespace kmm;
    try {
        const std::string bytes = kmod::plain_module(std::string(fuzz::text_of(data, size)), "f.ko");
        static_cast<void>(kmod::read_signature(bytes));
        const kmod::ModuleFile module = kmod::parse_module(bytes, "f.ko");
        fuzz::require(kmod::is_module_name(module.name), "a module has a name that the kernel can carry");
        fuzz::require(module.size == bytes.size(), "a module has the size of its file");
        for (const auto& parameter : module.parameters()) {
            fuzz::require(!parameter.name.empty(), "a parameter has a name");
        }
        static_cast<void>(module.depends());
        static_cast<void>(module.gpl_compatible());
        static_cast<void>(module.imports("NS"));
        const std::string_view body = kmod::unsigned_module(bytes, "f.ko");
        fuzz::require(bytes.starts_with(body), "a signature stands at the end");
    } catch (const Error& error) {
        fuzz::require(error.code() == "module-format" || error.code() == "image-limit" || error.code() == "module-name",
                      "a bad module has a code of its own");
    }
    return 0;
}
