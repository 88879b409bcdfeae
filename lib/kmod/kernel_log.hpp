// SPDX-License-Identifier: Apache-2.0
// The kernel's log lines that a load or unload caused.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "kmod/files.hpp"

namespace kmm::kmod {

/// Opens /dev/kmsg and goes to its end; what is logged afterwards can be read. Without permission (CAP_SYSLOG) it stays
/// silent: the lines are help, not truth.
class KernelLog {
public:
    explicit KernelLog(const std::string& path);
    /// Message texts since construction, in order, without priority and time stamp.
    [[nodiscard]] const std::vector<std::string>& lines();
    [[nodiscard]] bool available() const noexcept { return fd_.get() >= 0; }

private:
    sys::Fd fd_;
    std::vector<std::string> lines_;
};

/// Those lines that name the module, in either spelling.
[[nodiscard]] std::vector<std::string> lines_about(const std::vector<std::string>& lines, std::string_view module);
/// The one line that tells most: the first that is no notice about taint or signatures, else the first, else "".
[[nodiscard]] std::string telling_line(const std::vector<std::string>& lines);

}  // namespace kmm::kmod
