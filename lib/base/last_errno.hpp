// SPDX-License-Identifier: Apache-2.0
// Errors of system calls whose text takes work to make.
#pragma once

#include <cerrno>
#include <string>
#include <utility>

#include "base/error.hpp"

namespace kmm {

/// errno as the last call left it: `throw LastErrno().error(fmt::format(...))`. The object is made before the
/// arguments of error() are evaluated, which may change errno; arguments of one call have no such order.
class LastErrno {
public:
    LastErrno() noexcept : number_(errno) {}
    [[nodiscard]] int number() const noexcept { return number_; }
    /// from_errno() with that number.
    [[nodiscard]] Error error(std::string what, std::string code = "io") const {
        return from_errno(number_, std::move(what), std::move(code));
    }

private:
    int number_;
};

}  // namespace kmm
