// SPDX-License-Identifier: Apache-2.0
// The operator's configuration file, as far as manifests follow from it. Facts: KMM 13.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "api/types.hpp"
#include "base/error.hpp"
#include "value/node.hpp"

namespace kmm::render {

/// The ConfigMap that holds the operator's configuration, and the key in it.
inline constexpr std::string_view k_operator_config_map = "kmm-operator-manager-config";
inline constexpr std::string_view k_operator_config_key = "controller_config.yaml";

/// Fields with the defaults of the operator. The others (addresses, leader election, metrics) are checked, not kept.
struct OperatorConfig {
    std::int64_t worker_run_as_user = 0;
    std::string worker_se_linux_type = "spc_t";
    std::string worker_firmware_host_path =
        "/lib/firmware";  ///< "" if the file sets it so: then firmware cannot be loaded
};

/// What is wrong with a directory that hosts keep firmware in, as "must be absolute, found ..."; "" if nothing is, or
/// if `path` is empty.
[[nodiscard]] std::string firmware_path_fault(std::string_view path);

/// Reads controller_config.yaml. Strict as the operator is, which then ignores the whole file: unknown fields, wrong
/// types and bad values are diagnostics with their places. The fields of KMM on OpenShift (webhook,
/// metrics.disableHTTP2) are taken, too. Codes: unknown-field (the hint names the nearest field, and the new name of
/// worker.setFirmwareClassPath), wrong-type, bad-value.
[[nodiscard]] OperatorConfig decode_operator_config(const value::Document& document, Diagnostics& diagnostics);

}  // namespace kmm::render
