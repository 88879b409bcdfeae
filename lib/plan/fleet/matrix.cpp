// SPDX-License-Identifier: Apache-2.0
#include "plan/fleet/matrix.hpp"

#include <algorithm>
#include <map>
#include <tuple>

#include "plan/kmm/eligible.hpp"

namespace kmm::plan {

namespace {

bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }

/// Takes the digits at the front of `text`, without leading zeros.
std::string_view take_number(std::string_view& text) noexcept {
    std::size_t end = 0;
    while (end < text.size() && is_digit(text[end])) { ++end; }
    std::string_view number = text.substr(0, end);
    text.remove_prefix(end);
    while (number.size() > 1 && number.front() == '0') { number.remove_prefix(1); }
    return number;
}

struct VersionOrder {
    bool operator()(const std::string& a, const std::string& b) const noexcept { return version_less(a, b); }
};

void judge_cell(const Resolver& resolver, const MatrixKernel& kernel, MatrixCell& cell) {
    const Resolution resolution = resolver.resolve(kernel.version);
    if (const auto* found = std::get_if<Resolved>(&resolution)) {
        cell.state = MatrixCell::State::covered;
        cell.resolved = *found;
    } else if (const auto* fault = std::get_if<MappingFault>(&resolution)) {
        cell.state = MatrixCell::State::fault;
        cell.message = fault->diagnostic.message;
    } else {
        cell.state = kernel.asked || !cell.nodes.empty() ? MatrixCell::State::gap : MatrixCell::State::unwanted;
    }
}

}  // namespace

bool version_less(std::string_view a, std::string_view b) noexcept {
    const std::string_view whole_a = a;
    const std::string_view whole_b = b;
    while (!a.empty() && !b.empty()) {
        if (is_digit(a.front()) && is_digit(b.front())) {
            const std::string_view left = take_number(a);
            const std::string_view right = take_number(b);
            if (left.size() != right.size()) { return left.size() < right.size(); }
            if (left != right) { return left < right; }
        } else if (a.front() != b.front()) {
            return a.front() < b.front();
        } else {
            a.remove_prefix(1);
            b.remove_prefix(1);
        }
    }
    if (a.empty() != b.empty()) { return a.empty(); }
    return whole_a < whole_b;  // "01" and "1" are not the same kernel
}

Matrix make_matrix(const std::vector<const api::Node*>& nodes, const std::vector<api::Module>& modules,
                   const std::vector<std::string>& kernels) {
    Matrix matrix;
    std::map<std::string, std::vector<const api::Node*>, VersionOrder> by_kernel;
    for (const auto& kernel : kernels) { by_kernel[kernel]; }
    for (const auto* node : nodes) {
        if (node->kernel_version.empty()) {
            ++matrix.nodes_without_kernel;
        } else {
            by_kernel[node->kernel_version].push_back(node);
        }
    }
    std::vector<Resolver> resolvers;
    for (const auto& module : modules) {
        if (!module.module_loader || module.meta.deleting) { continue; }
        matrix.modules.push_back(&module);
        resolvers.emplace_back(module);
    }
    for (const auto& [version, running] : by_kernel) {
        MatrixKernel kernel;
        kernel.version = version;
        kernel.nodes = running.size();
        kernel.asked = std::find(kernels.begin(), kernels.end(), version) != kernels.end();
        for (std::size_t i = 0; i < matrix.modules.size(); ++i) {
            MatrixCell cell;
            for (const auto* node : running) {
                if (selects(matrix.modules[i]->selector, node->meta.labels)) { cell.nodes.push_back(node->meta.name); }
            }
            std::sort(cell.nodes.begin(), cell.nodes.end());
            judge_cell(resolvers[i], kernel, cell);
            const bool missing = cell.state == MatrixCell::State::gap || cell.state == MatrixCell::State::fault;
            matrix.gaps += missing ? 1U : 0U;
            kernel.cells.push_back(std::move(cell));
        }
        matrix.kernels.push_back(std::move(kernel));
    }
    return matrix;
}

std::string_view to_string(MatrixCell::State state) noexcept {
    switch (state) {
        case MatrixCell::State::covered: return "covered";
        case MatrixCell::State::gap: return "gap";
        case MatrixCell::State::fault: return "fault";
        case MatrixCell::State::unwanted: return "unwanted";
    }
    return "unwanted";
}

}  // namespace kmm::plan
