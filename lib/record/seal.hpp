// SPDX-License-Identifier: Apache-2.0
// Whether a record is ours. CRCs and hashes of a journal have no key: anybody can write one. What a record has this
// user run was therefore sealed with a key that never lies in a state directory, when the user gave it.
#pragma once

#include <string>

namespace kmm::record {

/// /var/lib/kmm-tools/record.key for root, else $XDG_STATE_HOME/kmm-tools/record.key. Errors: as default_state_dir.
[[nodiscard]] std::string key_path();

/// Writes DIR/seal, an HMAC-SHA256 of `text`; the key is made first, mode 0600, if there is none. False if there can be
/// no key or no seal: then the record is one that nobody has sealed.
[[nodiscard]] bool seal(const std::string& directory, const std::string& text);

/// True if DIR/seal is that of `text` with this user's key. A key that others may read or write counts for nothing.
/// Never writes.
[[nodiscard]] bool is_sealed(const std::string& directory, const std::string& text);

}  // namespace kmm::record
