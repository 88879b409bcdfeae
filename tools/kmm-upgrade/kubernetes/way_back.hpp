// SPDX-License-Identifier: Apache-2.0
// abort --restore-etcd: the data of etcd goes back before the nodes do, while no API server runs.
#pragma once

#include "kmm-upgrade/session/walk.hpp"

namespace kmm::tool_upgrade {

/// Restores the data of etcd of all members for the recorded run, or goes on with it. Where no member has been stopped
/// yet, only if a person has given the words for it: --confirm, or on a terminal. Takes the lock of the record. Errors:
/// checks_failed "not-confirmed" with the words, "restore-not-needed"; usage "bad-value" for worker Pods; those of
/// drive::EtcdRestorer and of the Lease.
void restore_etcd(Access& access);

}  // namespace kmm::tool_upgrade
