// SPDX-License-Identifier: Apache-2.0
// Modules that the init container of a worker Pod of KMM has copied from an image.
#pragma once

#include <string>
#include <vector>

#include "kmm-worker/job.hpp"
#include "kmm-worker/result.hpp"
#include "kmod/host/image_config.hpp"
#include "kmod/host/module_index.hpp"

namespace kmm::tool_worker {

/// Where that container copies images to.
[[nodiscard]] std::string copies_root(const Job& job);

/// The directory below it that has the modules for this kernel, "" without one.
[[nodiscard]] std::string copied_modules(const Job& job);

/// Reads the copied files of the image's modprobedDir, if it has one. Errors: not_found (66)
/// "modprobed-dir-not-in-image" where none were copied; as take_copied_files() and kmod::read_image_config().
[[nodiscard]] std::vector<kmod::ImageConfigFile> copied_config(const Job& job, sandbox::Confined* parser,
                                                               std::vector<std::string>& warnings);

/// Takes the copied modules, and the directory of their firmware ("" for none); then nothing is pulled. False if there
/// are none. Errors: unsafe (16) "image-unsafe" where others may write; not_found "firmware-not-in-image".
[[nodiscard]] bool take_copied_files(const Job& job, kmod::ModuleIndex& modules, std::string& firmware_directory,
                                     WorkerResult& result);

}  // namespace kmm::tool_worker
