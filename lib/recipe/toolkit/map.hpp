// SPDX-License-Identifier: Apache-2.0
// Which driver toolkit has the headers of which kernel.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "recipe/resource/facts.hpp"
#include "recipe/toolkit/inputs.hpp"

namespace kmm::recipe::toolkit {

struct MapOptions {
    std::map<std::string, std::string> images;  ///< file -> image whose kernels it has
    std::string architecture;                   ///< of kernels that name none, as kernels write it: "x86_64"
};

/// A toolkit image, and who says that it is of this kernel.
struct Toolkit {
    std::string image;                  ///< by digest
    std::vector<std::string> releases;  ///< of the cluster, oldest first
    std::vector<std::string> systems;   ///< releases of the nodes' system, "417.94.202410211619-0"
};

struct KernelRow {
    std::string kernel;
    std::string flavour;                ///< "std", "rt" or "64k"
    std::string architecture;           ///< "" not known
    std::string os_version;             ///< "9.4", "" not known
    std::vector<std::string> releases, systems;
    std::vector<Toolkit> toolkits;      ///< that of the newest release first
};

struct ToolkitMap {
    std::vector<KernelRow> rows;                  ///< by kernel, oldest first
    std::vector<plan::Release> releases;          ///< oldest first, as a facts file has them
};

/// Joins the inputs: kernels of an image belong to it by digest, by MapOptions::images, else to the toolkit of the
/// release in the same directory or the nearest one above. Faults with positions, all at once: "release-kernels" for
/// two kernels in one release, "toolkit-kernels" for two in one image, "release-version" for two versions in one
/// directory, "toolkit-not-linked", "toolkit-by-tag", "bad-reference", "kernel-architecture". Warnings:
/// "toolkit-kernel-unknown", "node-without-toolkit".
[[nodiscard]] ToolkitMap make_map(const Inputs& inputs, const MapOptions& options, Diagnostics& faults);

/// The row of a kernel as uname or a node's label has it ("+" or "_" before rt); nullptr if no toolkit is of that
/// kernel.
[[nodiscard]] const KernelRow* find_kernel(const ToolkitMap& map, const std::string& kernel);

}  // namespace kmm::recipe::toolkit
