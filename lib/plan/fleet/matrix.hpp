// SPDX-License-Identifier: Apache-2.0
// Which Module covers which kernel.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "plan/kmm/resolve.hpp"

namespace kmm::plan {

/// One Module on one kernel.
struct MatrixCell {
    enum class State {
        covered,   ///< a mapping matches
        gap,       ///< nodes would run the kernel, or it was asked for, and no mapping matches
        fault,     ///< the mapping is faulty, see `message`
        unwanted,  ///< no mapping matches, and no node with the kernel is selected
    };
    State state = State::unwanted;
    std::vector<std::string> nodes;  ///< with this kernel and selected by the Module, sorted
    std::optional<Resolved> resolved;
    std::string message;
};

struct MatrixKernel {
    std::string version;     ///< as nodes report it
    std::size_t nodes = 0;   ///< that run it
    bool asked = false;      ///< named by the caller
    std::vector<MatrixCell> cells;  ///< one a Module, in the order of Matrix::modules
};

struct Matrix {
    std::vector<const api::Module*> modules;  ///< those with a moduleLoader that are not being deleted, sorted
    std::vector<MatrixKernel> kernels;        ///< in the order of their numbers: 6.1.9 before 6.1.10
    std::size_t nodes_without_kernel = 0;
    std::size_t gaps = 0;                     ///< cells with State::gap or State::fault
};

/// The matrix over `nodes` and all Modules; `kernels` are added to those of the nodes and need not be run by any.
/// Taints do not count: a cordon passes. O(nodes * modules + kernels * modules * mappings).
[[nodiscard]] Matrix make_matrix(const std::vector<const api::Node*>& nodes, const std::vector<api::Module>& modules,
                                 const std::vector<std::string>& kernels);

/// "covered", "gap", "fault" or "unwanted".
[[nodiscard]] std::string_view to_string(MatrixCell::State state) noexcept;

/// Order of version numbers: runs of digits compare as numbers, everything else as bytes.
[[nodiscard]] bool version_less(std::string_view a, std::string_view b) noexcept;

}  // namespace kmm::plan
