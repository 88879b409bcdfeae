// SPDX-License-Identifier: Apache-2.0
// Downloads content by digest, verified while it streams, resumed where it broke off.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "image/manifest.hpp"
#include "registry/client/session.hpp"
#include "registry/layer/target.hpp"

namespace kmm::registry {

/// Fetches the blob `wanted` into `target`. Never takes more than wanted.size bytes. A connection that breaks off is
/// resumed by a range request; a wrong digest is tried once more from the start; waits and tries as the session's
/// policy says, a try that brought a mebibyte counts as success. `on_bytes` hears the bytes present after each piece.
/// Errors: integrity 76 "digest-mismatch" with details expected and found, "size-mismatch"; those of Session::get.
void fetch_blob(Session& session, const image::Descriptor& wanted, BlobTarget& target,
                std::vector<std::string>& warnings, const std::function<void(std::uint64_t)>& on_bytes);

}  // namespace kmm::registry
