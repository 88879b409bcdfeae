// SPDX-License-Identifier: Apache-2.0
// Variables of the environment that the libraries of this process read by themselves: `sudo -E` hands root those of
// another user.
#pragma once

namespace kmm::sys {

/// As root, removes the variables that make a library load code, write a file or find hosts by another way, and judges
/// those of OpenSSL that name its configuration and its code as other files that root reads. Call it before threads
/// start and before anything uses such a library. Does nothing for other users. Errors: no_permission "untrusted-file".
void take_trusted_environment();

}  // namespace kmm::sys
