// SPDX-License-Identifier: Apache-2.0
#include "sys/shared_library.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include "base/error.hpp"
#include "base/text.hpp"

namespace kmm::sys {

namespace {

Error library_missing(const char* name, const char* package, const char* wanted) {
    const char* said = ::dlerror();
    const std::string reason = said == nullptr ? "no reason given" : said;
    const bool lacks_memory = reason.find("failed to map") != std::string::npos ||
                              reason.find("annot allocate") != std::string::npos;
    return Error(Exit::io, "library-missing", fmt::format("expected {} in {}: {}", wanted, name, base::escape(reason)))
        .hint(lacks_memory ? "it is there, and memory is short: see the limit of memory, ulimit -v"
                           : fmt::format("install the package that holds it; in Debian 12: {}", package));
}

}  // namespace

SharedLibrary::SharedLibrary(const char* name, const char* package)
    : name_(name), package_(package), handle_(::dlopen(name, RTLD_NOW | RTLD_LOCAL)) {
    if (handle_ == nullptr) {
        throw library_missing(name, package, "a shared library");
    }
}

void* SharedLibrary::address(const char* symbol) const {
    void* found = ::dlsym(handle_, symbol);
    if (found == nullptr) {
        throw library_missing(name_, package_, symbol);
    }
    return found;
}

}  // namespace kmm::sys
