// SPDX-License-Identifier: Apache-2.0
// What to do when the disk of the state directory, or a quota, is full, or the directory cannot be written.
#pragma once

#include <string>
#include <string_view>

#include "base/error.hpp"
#include "sys/file_ops.hpp"

namespace kmm::record {

/// `error` with a hint that names the directory to make room for and what goes on after that, if it is about space
/// (ENOSPC, EDQUOT) and has no hint; else as it is. `then`: the command to be given then.
[[nodiscard]] Error explain_space(Error error, const std::string& directory, std::string_view then);

/// Runs `body`, which writes into `directory`; its errors as explain_space says.
template <typename Body>
auto with_space_explained(const std::string& directory, std::string_view then, const Body& body) {
    try {
        return body();
    } catch (const Error& error) {
        throw explain_space(error, directory, then);
    }
}

/// Runs `body`; an error of the system that says nothing yet of what to do gets `hint`, unless it is for want of space.
template <typename Body>
auto with_place_explained(const char* hint, const Body& body) {
    try {
        return body();
    } catch (const Error& error) {
        if (!error.errno_cause() || !error.hint().empty() || !sys::space_remedy(*error.errno_cause()).empty()) {
            throw;
        }
        throw Error(error).hint(hint);
    }
}

}  // namespace kmm::record
