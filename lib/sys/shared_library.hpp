// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace kmm::sys {

/// A shared library that is loaded when something of it is needed first, not with every process: for those that drag
/// many others in and that most commands never call. Stays loaded until the process ends.
class SharedLibrary {
public:
    /// Loads `name` ("libcurl.so.4") as the dynamic linker searches. `package` is that of Debian 12 that holds it.
    /// Throws Error with exit 74, code "library-missing".
    SharedLibrary(const char* name, const char* package);

    /// The function `symbol`, as the type that its header declares. Throws as the constructor if the library has none.
    template <typename Function>
    [[nodiscard]] Function* function(const char* symbol) const {
        return reinterpret_cast<Function*>(address(symbol));
    }

private:
    [[nodiscard]] void* address(const char* symbol) const;

    const char* name_;
    const char* package_;
    void* handle_;
};

}  // namespace kmm::sys
