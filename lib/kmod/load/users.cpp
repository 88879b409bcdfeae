// SPDX-License-Identifier: Apache-2.0
#include "kmod/load/users.hpp"

#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <functional>
#include <iterator>
#include <map>
#include <set>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "base/number.hpp"
#include "base/text.hpp"
#include "kmod/check/load_record.hpp"
#include "kmod/ko/files.hpp"
#include "sys/fd.hpp"

namespace kmm::kmod {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t k_users_max = 20;

using DeviceNumber = std::pair<unsigned, unsigned>;

/// The devices of one kind ("char", "block") that belong to a module.
struct DeviceSet {
    std::set<unsigned> majors;       ///< all minors
    std::set<DeviceNumber> numbers;
    [[nodiscard]] bool contains(DeviceNumber n) const { return majors.contains(n.first) || numbers.contains(n); }
    [[nodiscard]] bool empty() const { return majors.empty() && numbers.empty(); }
};

std::vector<std::string> names_below(const std::string& directory) {
    std::vector<std::string> names;
    std::error_code error;
    for (fs::directory_iterator it(directory, error), end; !error && it != end; it.increment(error))
        names.push_back(it->path().filename().native());
    std::sort(names.begin(), names.end());
    return names;
}

std::optional<DeviceNumber> device_number(std::string_view text) {
    const auto colon = text.find(':');
    if (colon == std::string_view::npos) return std::nullopt;
    const auto major_number = base::parse_number<unsigned>(text.substr(0, colon));
    const auto minor_number = base::parse_number<unsigned>(text.substr(colon + 1));
    if (!major_number || !minor_number) return std::nullopt;
    return DeviceNumber{*major_number, *minor_number};
}

/// The module whose driver serves the device directory, "" if none.
std::string driving_module(const fs::path& device) {
    std::error_code error;
    for (const char* way : {"driver/module", "device/driver/module"}) {
        const fs::path target = fs::read_symlink(device / way, error);
        if (!error) return normalise_name(target.filename().native());
    }
    return {};
}

/// Calls `body` with the major and the driver's name of each line of /proc/devices of one kind.
void each_major(const HostPaths& host, const std::string& kind,
                const std::function<void(unsigned, std::string_view)>& body) {
    const std::string table = read_text(host.proc + "/devices").value_or("");
    bool here = false;
    for (const auto line : base::split(table, '\n')) {
        if (line.ends_with("devices:")) {
            here = base::to_lower(line).starts_with(kind.substr(0, 4));
            continue;
        }
        const auto text = base::trim(line);
        const auto blank = text.find(' ');
        if (!here || blank == std::string_view::npos) continue;
        if (const auto number = base::parse_number<unsigned>(text.substr(0, blank)))
            body(*number, text.substr(blank + 1));
    }
}

/// What the records of loads say of the devices of `module`.
void add_recorded(const HostPaths& host, const std::string& module, const std::string& kind, DeviceSet& devices) {
    for (const auto& record : all_records(host)) {
        const auto it = record.devices.find(module);
        if (it == record.devices.end()) continue;
        for (const std::string_view device : it->second) {
            if (!device.starts_with(kind + " ")) continue;
            const std::string_view text = device.substr(kind.size() + 1);
            if (const auto number = device_number(text)) devices.numbers.insert(*number);
            if (const auto all = base::parse_number<unsigned>(text)) devices.majors.insert(*all);
        }
    }
}

DeviceSet devices_of(const HostPaths& host, const std::string& module, const std::string& kind) {
    DeviceSet devices;
    each_major(host, kind, [&](unsigned number, std::string_view name) {
        if (normalise_name(name) == module) devices.majors.insert(number);
    });
    add_recorded(host, module, kind, devices);
    const std::string below = host.sys + "/dev/" + kind;
    for (const auto& name : names_below(below)) {
        const auto number = device_number(name);
        if (number && driving_module(fs::path(below) / name) == module) devices.numbers.insert(*number);
    }
    if (kind == "char") {
        for (const auto& name : names_below(host.sys + "/class/misc")) {
            if (normalise_name(name) != module) continue;
            if (const auto number = device_number(read_text(host.sys + "/class/misc/" + name + "/dev").value_or("")))
                devices.numbers.insert(*number);
        }
    }
    return devices;
}

/// Character devices that no module is known to have: of a driver that registered no device with the kernel's driver
/// core, or a virtual one.
class UnclaimedDevices {
public:
    explicit UnclaimedDevices(const HostPaths& host) : host_(host) {
        each_major(host, "char",
                   [&](unsigned number, std::string_view name) { names_.emplace(number, normalise_name(name)); });
    }

    [[nodiscard]] bool contains(DeviceNumber n) const {
        const auto [number, minor_number] = n;
        constexpr unsigned core[] = {0,  1,  2,   3,   4,   5,   7,  10,
                                     13, 29, 108, 180, 189, 202, 203};  // memory, terminals, misc, input, ...
        if (std::find(std::begin(core), std::end(core), number) != std::end(core) || (number >= 128 && number <= 143))
            return false;
        const fs::path device = fs::path(host_.sys) / "dev/char" / fmt::format("{}:{}", number, minor_number);
        std::error_code error;
        if (fs::exists(device, error))
            return driving_module(device).empty() && !has_driver(device) && is_virtual(device);
        const auto name = names_.find(number);
        return name != names_.end() && !live_module(host_, name->second);
    }

private:
    static bool has_driver(const fs::path& device) {
        std::error_code error;
        return fs::exists(device / "driver", error) || fs::exists(device / "device/driver", error);
    }
    static bool is_virtual(const fs::path& device) {
        std::error_code error;
        return fs::canonical(device, error).native().find("/devices/virtual/") != std::string::npos;
    }

    const HostPaths& host_;
    std::map<unsigned, std::string> names_;
};

/// Adds the processes that have a device open of which `is_wanted` says so; it is asked with "char" or "block" and the
/// number.
void add_processes(const HostPaths& host, const std::function<bool(std::string_view, DeviceNumber)>& is_wanted,
                   std::string_view note, std::vector<std::string>& users) {
    for (const auto& pid : names_below(host.proc)) {
        if (!base::parse_number<unsigned>(pid)) continue;
        const std::string directory = host.proc + "/" + pid;
        std::set<std::string> seen;
        for (const auto& number : names_below(directory + "/fd")) {
            const std::string link = directory + "/fd/" + number;
            struct stat status {};
            if (::stat(link.c_str(), &status) != 0) continue;
            const DeviceNumber device{major(status.st_rdev), minor(status.st_rdev)};
            const std::string_view kind = S_ISCHR(status.st_mode) ? "char" : S_ISBLK(status.st_mode) ? "block" : "";
            if (kind.empty() || !is_wanted(kind, device)) continue;
            std::error_code error;
            const std::string path = fs::read_symlink(link, error).native();
            if (!seen.insert(path).second) continue;
            users.push_back(fmt::format("process {} ({}) has {} open{}", pid,
                                        base::escape(read_text(directory + "/comm").value_or("?")), base::escape(path),
                                        note));
        }
    }
}

void add_open_devices(const HostPaths& host, const std::string& module, std::vector<std::string>& users) {
    const DeviceSet characters = devices_of(host, module, "char");
    const DeviceSet blocks = devices_of(host, module, "block");
    if (characters.empty() && blocks.empty()) return;
    add_processes(
        host,
        [&](std::string_view kind, DeviceNumber device) {
            return (kind == "char" ? characters : blocks).contains(device);
        },
        "", users);
}

/// Only if the reference count says that somebody uses it and nobody was found.
void add_likely_devices(const HostPaths& host, const std::string& module, std::vector<std::string>& users) {
    const auto live = live_module(host, module);
    if (!users.empty() || !live || live->refcount.value_or(0) <= static_cast<long>(live->holders.size())) return;
    const UnclaimedDevices unclaimed(host);
    add_processes(
        host, [&](std::string_view kind, DeviceNumber device) { return kind == "char" && unclaimed.contains(device); },
        ", a device of no known driver", users);
}

void add_mounts(const HostPaths& host, const std::string& module, std::vector<std::string>& users) {
    const DeviceSet blocks = devices_of(host, module, "block");
    std::string table = read_text(host.proc + "/1/mountinfo").value_or("");
    if (table.empty()) table = read_text(host.proc + "/self/mountinfo").value_or("");
    for (const auto line : base::split(table, '\n')) {
        const auto words = base::split(line, ' ');
        const auto dash = std::find(words.begin(), words.end(), "-");
        if (words.size() < 5 || dash == words.end() || dash + 1 == words.end()) continue;
        const std::string_view type = *(dash + 1);
        const auto number = device_number(words[2]);
        if (normalise_name(type) == module || (number && blocks.contains(*number))) {
            users.push_back(fmt::format("{} is mounted ({})", base::escape(words[4]), base::escape(type)));
        }
    }
}

/// What the kernel names the driver of an interface of this machine; of a virtual one, its kind. "" if it says none.
std::string driver_by_ethtool(const std::string& interface) {
    const sys::Fd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    ethtool_drvinfo information{};
    information.cmd = ETHTOOL_GDRVINFO;
    ifreq request{};
    if (!socket || interface.size() >= sizeof request.ifr_name) return {};
    std::memcpy(request.ifr_name, interface.data(), interface.size());
    request.ifr_data = reinterpret_cast<char*>(&information);
    if (::ioctl(socket.get(), SIOCETHTOOL, &request) != 0) return {};
    return {information.driver, ::strnlen(information.driver, sizeof information.driver)};
}

/// The module of a virtual interface, which no driver serves: the module of a kind ("wireguard", "dummy") has its name.
/// "" if unknown.
std::string module_of_kind(const HostPaths& host, const std::string& interface) {
    const std::string event = read_text(host.sys + "/class/net/" + interface + "/uevent").value_or("");
    for (const auto line : base::split(event, '\n')) {
        if (line.starts_with("DEVTYPE=")) return normalise_name(line.substr(line.find('=') + 1));
    }
    return host.sys == HostPaths{}.sys ? normalise_name(driver_by_ethtool(interface)) : std::string();
}

std::vector<std::string> interfaces_of(const HostPaths& host, const std::string& module) {
    std::vector<std::string> names = names_below(host.sys + "/class/net");
    std::erase_if(names, [&](const std::string& name) {
        const std::string driver = driving_module(fs::path(host.sys) / "class/net" / name);
        return (driver.empty() ? module_of_kind(host, name) : driver) != module;
    });
    return names;
}

}  // namespace

std::vector<std::string> module_users(const HostPaths& host, const std::string& module) {
    std::vector<std::string> users;
    const std::string name = normalise_name(module);
    add_open_devices(host, name, users);
    add_mounts(host, name, users);
    for (const auto& interface : interfaces_of(host, name))
        users.push_back(fmt::format("network interface {}", base::escape(interface)));
    add_likely_devices(host, name, users);
    if (users.size() > k_users_max) users.resize(k_users_max);
    return users;
}

std::set<std::string> device_numbers(const HostPaths& host) {
    std::set<std::string> devices;
    for (const std::string kind : {"char", "block"}) {
        each_major(host, kind,
                   [&](unsigned number, std::string_view) { devices.insert(fmt::format("{} {}", kind, number)); });
        for (const auto& name : names_below(host.sys + "/dev/" + kind))
            devices.insert(fmt::format("{} {}", kind, name));
    }
    return devices;
}

std::vector<std::string> interfaces_up(const HostPaths& host, const std::string& module) {
    std::vector<std::string> names = interfaces_of(host, normalise_name(module));
    std::erase_if(names, [&](const std::string& name) {
        const std::string text = read_text(host.sys + "/class/net/" + name + "/flags").value_or("");  // "0x1003"
        unsigned flags = 0;
        const bool known = text.starts_with("0x") &&
                           std::from_chars(text.data() + 2, text.data() + text.size(), flags, 16).ec == std::errc{};
        return known && (flags & IFF_UP) == 0;
    });
    return names;
}

}  // namespace kmm::kmod
