// SPDX-License-Identifier: Apache-2.0
// The kernel's log lines that a load or unload caused.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "kmod/ko/files.hpp"

namespace kmm::kmod {

/// Opens /dev/kmsg and goes to its end; what is logged afterwards can be read. Without permission (CAP_SYSLOG) it stays
/// silent: the lines are help, not truth.
class KernelLog {
public:
    explicit KernelLog(const std::string& path);
    /// Message texts since construction, in order, without priority and time stamp.
    [[nodiscard]] const std::vector<std::string>& lines();
    /// Those of lines() that a driver logged about one of its devices, as a warning or worse. The module of the driver
    /// need not be named in them.
    [[nodiscard]] const std::vector<std::string>& device_lines();
    [[nodiscard]] bool available() const noexcept { return fd_.get() >= 0; }

private:
    sys::Fd fd_;
    std::vector<std::string> lines_, device_lines_;
    bool grave_ = false;  ///< the last of lines_ is a warning or worse
};

/// What the log says of a load: the lines that name the module, then those about devices.
[[nodiscard]] std::vector<std::string> lines_of_load(KernelLog& log, std::string_view module);
/// Those lines that name the module, in either spelling.
[[nodiscard]] std::vector<std::string> lines_about(const std::vector<std::string>& lines, std::string_view module);
/// The one line that tells most: the first that is no notice about taint or signatures, else the first, else "".
[[nodiscard]] std::string telling_line(const std::vector<std::string>& lines);

}  // namespace kmm::kmod
