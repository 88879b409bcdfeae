// SPDX-License-Identifier: Apache-2.0
#include "kmm-plan/source/results.hpp"

#include <filesystem>

#include <fmt/format.h>

#include "base/clean_path.hpp"
#include "base/text.hpp"
#include "cli/document.hpp"
#include "sys/directory.hpp"
#include "sys/file_ops.hpp"
#include "sys/missing_file.hpp"
#include "sys/real_path.hpp"

namespace kmm::tool_plan {

namespace {

namespace fs = std::filesystem;

constexpr unsigned k_result_mode = 0644;

/// True for "-", /dev/stdout, /dev/fd/3 and the like, which a link of the system leads to.
bool is_descriptor(const std::string& file) {
    return file == "-" || file.starts_with("/dev/") || file.starts_with("/proc/self/fd/");
}

}  // namespace

void require_way_inside(const std::string& path) {
    std::error_code fault;
    const fs::path here = fs::current_path(fault);
    const std::string whole = base::clean_path(path.starts_with('/') ? path : here.string() + '/' + path);
    if (fault || !sys::is_below(here, whole)) { return; }
    const fs::path real = fs::weakly_canonical(whole, fault);
    if (fault || sys::is_below(fs::canonical(here, fault), real)) { return; }
    throw Error(Exit::data, "link-leaves",
                fmt::format("writing {}: a link on the way leads out of the current directory, to {}",
                            base::escape(path), base::escape(real.string())))
        .hint("name the place that it leads to, or remove the link");
}

void write_result(cli::Context& context, const std::string& file, const std::string& text) {
    if (is_descriptor(file)) { return cli::write_report(context, file, text); }
    require_way_inside(sys::parent_of(file));
    std::error_code fault;
    if (!fs::is_symlink(fs::symlink_status(file, fault))) { return cli::write_report(context, file, text); }
    sys::LinuxFileOps ops;
    sys::require_directory_of(file);
    sys::write_file_atomically(ops, file, text, k_result_mode);
}

}  // namespace kmm::tool_plan
