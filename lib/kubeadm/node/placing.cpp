// SPDX-License-Identifier: Apache-2.0
#include "kubeadm/node/placing.hpp"

#include <fcntl.h>
#include <fnmatch.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/last_lines.hpp"
#include "base/text.hpp"
#include "digest/digest.hpp"
#include "kubeadm/node/facts.hpp"
#include "sys/trust.hpp"
#include "toml/reader.hpp"

namespace kmm::kubeadm {
namespace {

using Words = std::vector<std::string>;

constexpr const char* k_stage_directory = "/var/lib/kubernetes";
constexpr std::size_t k_binary_max = 512U << 20U;

/// The directory of versioned binaries in which a program is (as on StarlingX): what comes before the kubelet, and the
/// kubelet.
std::string stage_of(const std::string& program) {
    return program == "kubelet" ? "stage2" : "stage1";
}

std::string bare(const kubernetes::Version& version) {
    return version.text().substr(1);
}

/// Where the node's link leads; "" if it is not a link. Errors: from_errno if it is absent.
std::string link_of(const Place& place, const std::string& path) {
    const sys::Fd fd = place.open(path, O_PATH | O_NOFOLLOW);
    std::array<char, 4096> buffer{};
    const ssize_t length = ::readlinkat(fd.get(), "", buffer.data(), buffer.size());
    return length < 0 ? std::string() : std::string(buffer.data(), static_cast<std::size_t>(length));
}

struct Binary {
    std::string file;   ///< the node's path of the program
    std::string stage;  ///< directory of its stage, "" where there are none
};

Binary find_binary(const Place& place, const Switch& how, const kubernetes::Version& target,
                   const std::string& program) {
    std::vector<std::string> tried;
    for (const std::string& version : {bare(target), target.text()}) {
        const std::string directory = how.directory + "/" + version;
        const std::string stage = directory + "/" + stage_of(program);
        for (const Binary& binary :
             {Binary{stage + "/usr/bin/" + program, stage}, Binary{directory + "/" + program, ""}}) {
            if (place.exists(binary.file)) {
                sys::require_trusted(place.here(binary.file), "program");
                return binary;
            }
            tried.push_back(binary.file);
        }
    }
    throw Error(Exit::not_found, "binary-not-found",
                fmt::format("expected {} {} in {}, found none of its places", program, target.text(), how.directory))
        .detail("looked for", base::join(tried, ", "))
        .hint("put it there, or correct --from");
}

void prove_binary(const Node& node, const Binary& binary, const kubernetes::Version& target) {
    if (const auto digest = node.place.read_if_there(binary.file + ".sha256")) {
        const std::string_view text = base::trim(*digest);
        const std::string wanted(text.substr(0, text.find_first_of(" \t\n")));
        const sys::Fd fd = node.place.open(binary.file, O_RDONLY);
        const std::string found = digest::sha256_hex(sys::read_fd(fd.get(), binary.file, k_binary_max));
        if (base::to_lower(wanted) != found) {
            throw Error(Exit::integrity, "digest-mismatch",
                        fmt::format("{}: expected sha256 {}, found {}", binary.file, base::escape(wanted), found))
                .hint("copy the binary again");
        }
    }
    if (const auto found = version_of_program(node.place, binary.file.ends_with("/kubeadm")
                                                              ? Words{binary.file, "version", "-o", "short"}
                                                              : Words{binary.file, "--version"});
        found != target) {
        throw Error(Exit::integrity, "binary-version",
                    fmt::format("{}: expected {}, found {}", binary.file, target.text(), found.text()))
            .hint("put the right binary there");
    }
}

void add(const Place& place, std::vector<nodejob::Command>& commands, Words words, bool always = false) {
    commands.push_back({place.command(std::move(words)), {}, always});
}

/// A new link beside the old one, renamed over it: there is no moment without.
void replace_link(const Place& place, std::vector<nodejob::Command>& commands, const std::string& target,
                  const std::string& link) {
    const std::string fresh =
        fmt::format("{}/.{}.kmm-new", link.substr(0, link.rfind('/')), link.substr(link.rfind('/') + 1));
    add(place, commands, {"rm", "-f", fresh});
    add(place, commands, {"ln", "-s", target, fresh});
    add(place, commands, {"mv", "-T", fresh, link});
}

void binaries(const Node& node, const Switch& how, const kubernetes::Version& target, const std::string& program,
              std::vector<nodejob::Command>& commands) {
    const Place& place = node.place;
    const Binary binary = find_binary(place, how, target, program);
    prove_binary(node, binary, target);
    const std::string stage_link = std::string(k_stage_directory) + "/" + stage_of(program);
    if (!binary.stage.empty() && place.exists(stage_link) && !link_of(place, stage_link).empty()) {
        replace_link(place, commands, binary.stage, stage_link);
        return;
    }
    const std::string installed = place.find_program(program);
    const std::string destination = installed.empty() ? "/usr/bin/" + program : installed;
    if (!installed.empty() && !link_of(place, installed).empty()) {
        replace_link(place, commands, binary.file, installed);
        return;
    }
    if (!installed.empty()) {
        // The old one is kept for the way back.
        const std::string kept =
            fmt::format("{}/replaced/{}", k_state_directory,
                        bare(version_of_program(place, program == "kubeadm" ? Words{program, "version", "-o", "short"}
                                                                            : Words{program, "--version"})));
        add(place, commands, {"mkdir", "-p", kept});
        add(place, commands, {"cp", "-p", installed, kept + "/" + program});
    }
    const std::string fresh = fmt::format("{}/.{}.kmm-new", destination.substr(0, destination.rfind('/')), program);
    add(place, commands, {"cp", binary.file, fresh});
    add(place, commands, {"chmod", "0755", fresh});
    add(place, commands, {"sync", fresh});
    add(place, commands, {"mv", "-T", fresh, destination});
}

/// Names of packages in the lines "Inst NAME ..." and "Remv NAME ..." of apt-get -s.
std::vector<std::string> simulated(const std::string& text, std::string_view verb) {
    std::vector<std::string> names;
    for (const std::string_view line : base::split(text, '\n')) {
        if (!line.starts_with(verb)) continue;
        const std::string_view rest = line.substr(verb.size());
        names.emplace_back(rest.substr(0, rest.find(' ')));
    }
    return names;
}

/// Entries of dnf's plugin versionlock that lock a package to a version, as "kubelet-0:1.34.4-150500.1.1.*": dnf knows
/// no other version of it then.
Words locks_of(const Place& place, const std::string& package) {
    Words entries;
    const auto text = place.read_if_there("/etc/dnf/plugins/versionlock.list").value_or("");
    for (const std::string_view line : base::split(text, '\n')) {
        const auto entry = base::trim(line);
        const bool is_of_package = entry.starts_with(package + "-") && entry.size() > package.size() + 1;
        if (is_of_package && entry[package.size() + 1] >= '0' && entry[package.size() + 1] <= '9')
            entries.emplace_back(entry);
    }
    return entries;
}

constexpr std::array<const char*, 5> k_family{"kubeadm", "kubelet", "kubectl", "cri-tools", "kubernetes-cni"};

/// dnf with these words, as if no package of Kubernetes were locked.
Words dnf_words(const Place& place, Words words) {
    const bool is_any_locked = std::any_of(k_family.begin(), k_family.end(),
                                           [&](const char* package) { return !locks_of(place, package).empty(); });
    words.insert(words.begin(), "dnf");
    if (is_any_locked) words.insert(words.begin() + 1, "--disableplugin=versionlock");
    return words;
}

/// Locks of dnf 5. One entry of a package's name that admits a version is enough.
void require_let(const Place& place, const kubernetes::Version& target, const std::string& program) {
    constexpr const char* k_file = "/etc/dnf/versionlock.toml";
    Diagnostics faults;
    const auto document = toml::read(place.read_if_there(k_file).value_or(""), k_file, faults);
    const value::Node* entries = document ? document->root.find("packages") : nullptr;
    if (entries == nullptr || !entries->is_sequence()) return;
    const auto is_kept_out = [&](const value::Node& condition) {
        if (condition.get_string({"key"}) != "evr") return false;
        const auto evr = condition.get_string({"value"}), how = condition.get_string({"comparator"});
        const auto colon = evr.find(':');
        const auto version = colon == std::string::npos ? evr : evr.substr(colon + 1);
        const bool is_target = version == bare(target) || version.starts_with(bare(target) + "-");
        return (how == "=" && !is_target) || (how == "!=" && is_target);
    };
    bool is_named = false;
    for (const value::Node& entry : entries->items()) {
        if (::fnmatch(entry.get_string({"name"}).c_str(), program.c_str(), 0) != 0) continue;
        is_named = true;
        const value::Node* conditions = entry.find("conditions");
        if (conditions == nullptr || !conditions->is_sequence() ||
            std::none_of(conditions->items().begin(), conditions->items().end(), is_kept_out))
            return;
    }
    if (!is_named) return;
    throw Error(Exit::checks_failed, "package-refused",
                fmt::format("dnf may not install {}-{}: {} locks {} to other versions", program, bare(target), k_file,
                            program))
        .hint(fmt::format("on this node: dnf versionlock delete {0}; after the upgrade: dnf versionlock add {0}",
                          program));
}

/// Whether a package source that the node knows has that version. Nothing is downloaded by apt; dnf may refresh its
/// data.
bool is_in_sources(const Place& place, const kubernetes::Version& target, const std::string& program) {
    const bool is_apt = !place.find_program("apt-get").empty();
    const Words words = is_apt ? Words{"apt-cache", "madison", program}
                               : dnf_words(place, {"-q", k_with_excluded, "repoquery",
                                                   fmt::format("{}-{}", program, bare(target))});
    const auto told = ask(place, words);
    if (told.exit_code != 0 || told.signal != 0)
        throw Error(Exit::io, "command-failed",
                    fmt::format("{} failed: {}", base::join(words, " "), base::escape(base::last_line(told.err))));
    if (!is_apt) return !base::trim(told.out).empty();
    for (const std::string_view line : base::split(told.out, '\n')) {
        const auto cells = base::split(line, '|');  // "kubeadm | 1.35.4-1.1 | https://... Packages"
        if (cells.size() >= 2 && base::trim(cells[1]).starts_with(bare(target) + "-")) return true;
    }
    return false;
}

/// The packages depend on each other: only what belongs to them may come along, and nothing may go.
void prove_apt(const Node& node, const Words& install, const Words& wanted, const kubernetes::Version& target) {
    Words simulate = install;
    simulate.insert(simulate.begin() + 1, "-s");
    const auto told = ask(node.place, simulate);
    if (told.exit_code != 0 || told.signal != 0) {
        const bool is_there = std::all_of(wanted.begin(), wanted.end(), [&](const std::string& program) {
            return is_in_sources(node.place, target, program);
        });
        Error error(Exit::checks_failed, is_there ? "package-refused" : "package-not-found",
                    fmt::format("apt-get cannot install {}: {}", base::join(wanted, " "),
                                base::escape(base::last_line(told.err))));
        throw std::move(error).hint(
            is_there ? fmt::format("apt-get -s install {} on this node says why",
                                   base::join(Words(install.end() - std::ssize(wanted), install.end()), " "))
                     : fmt::format("a repository holds one minor: set it to {} on this node and run apt-get update",
                                   target.line().text()));
    }
    Words unexpected;
    for (const std::string& name : simulated(told.out, "Inst ")) {
        if (std::find(k_family.begin(), k_family.end(), name) == k_family.end())
            unexpected.push_back("installs " + name);
    }
    for (const std::string& name : simulated(told.out, "Remv ")) unexpected.push_back("removes " + name);
    for (const std::string& name : simulated(told.out, "Inst ")) {
        const bool is_wanted = std::find(wanted.begin(), wanted.end(), name) != wanted.end();
        if (!is_wanted && (name == "kubelet" || name == "kubeadm")) unexpected.push_back("changes " + name);
    }
    if (unexpected.empty()) return;
    throw Error(Exit::checks_failed, "package-unexpected",
                fmt::format("apt-get would do more than expected: {}", base::join(unexpected, ", ")))
        .hint("apt-get -s " + base::join(Words(install.begin() + 1, install.end()), " ") + " shows all of it");
}

/// Whether a dpkg was cut off, after which apt-get refuses to begin: its updates are there, and nobody has its lock.
bool is_dpkg_cut_off(const Place& place) {
    const auto updates = place.list("/var/lib/dpkg/updates");
    const auto is_number = [](const std::string& name) {
        return name.find_first_not_of("0123456789") == std::string::npos;
    };
    if (std::none_of(updates.begin(), updates.end(), is_number)) return false;
    for (const char* file : {"/var/lib/dpkg/lock-frontend", "/var/lib/dpkg/lock"}) {
        if (!place.exists(file)) continue;
        const sys::Fd fd = place.open(file, O_RDONLY);
        struct flock lock {};
        lock.l_type = F_WRLCK;
        lock.l_whence = SEEK_SET;
        if (::fcntl(fd.get(), F_GETLK, &lock) == 0 && lock.l_type != F_UNLCK) return false;
    }
    return true;
}

void packages(const Node& node, const kubernetes::Version& target, const Words& programs,
              std::vector<nodejob::Command>& commands) {
    const Place& place = node.place;
    if (!place.find_program("apt-get").empty()) {
        Words install{"apt-get",
                      "install",
                      "-y",
                      "--allow-downgrades",
                      "--allow-change-held-packages",
                      "-o",
                      "Dpkg::Options::=--force-confold",
                      "-o",
                      "DPkg::Lock::Timeout=300"};
        for (const std::string& program : programs) install.push_back(fmt::format("{}={}-*", program, bare(target)));
        prove_apt(node, install, programs, target);
        // Where another program has the lock, apt-get waits for it, and dpkg does not.
        if (is_dpkg_cut_off(place)) add(place, commands, {"dpkg", "--force-confold", "--configure", "-a"});
        add(place, commands, install);
        Words hold{"apt-mark", "hold"};
        hold.insert(hold.end(), programs.begin(), programs.end());
        add(place, commands, std::move(hold), true);
        for (nodejob::Command& command : commands) command.environment = {{"DEBIAN_FRONTEND", "noninteractive"}};
        return;
    }
    if (!place.find_program("dnf").empty()) {
        Words install = dnf_words(place, {"install", "-y", k_with_excluded}), locked, obsolete;
        for (const std::string& program : programs) {
            install.push_back(fmt::format("{}-{}", program, bare(target)));
            require_let(place, target, program);
            if (program == "kubectl" || is_installed(place, target, program) || is_in_sources(place, target, program))
                continue;
            throw Error(Exit::checks_failed, "package-not-found",
                        fmt::format("dnf knows no package {}", install.back()))
                .hint(fmt::format("a repository holds one minor: set it to {} on this node and run dnf makecache",
                                  target.line().text()));
        }
        // The lock of the new version is there before that of the old one goes.
        for (const std::string& program : programs) {
            const auto fresh = fmt::format("{}-{}", program, bare(target));
            const auto entries = locks_of(place, program);
            if (!entries.empty()) locked.push_back(fresh);
            for (const std::string& entry : entries)
                if (entry.find(fmt::format("{}-", bare(target))) == std::string::npos) obsolete.push_back(entry);
        }
        add(place, commands, install);
        const auto change_locks = [&](const char* how, const Words& entries) {
            if (entries.empty()) return;
            Words words{"dnf", "versionlock", how};
            words.insert(words.end(), entries.begin(), entries.end());
            add(place, commands, std::move(words));
        };
        change_locks("add", locked);
        change_locks("delete", obsolete);
        return;
    }
    throw Error(Exit::not_found, "command-not-found", "expected apt-get or dnf on this node, found neither")
        .hint("use --switch binaries or --switch command");
}

}  // namespace

bool is_installed(const Place& place, const kubernetes::Version& target, const std::string& program) {
    if (place.find_program(program).empty()) return false;
    return (program == "kubeadm" ? kubeadm_version(place) : kubelet_version(place)) == target;
}

PlacingTrial try_placing(const Node& node, const Switch& how, const kubernetes::Version& target,
                         const std::string& program) {
    PlacingTrial trial;
    trial.program = program;
    trial.version = target;
    const bool is_apt = !node.place.find_program("apt-get").empty();
    const bool has_manager = is_apt || !node.place.find_program("dnf").empty();
    if (how.way == Switch::Way::packages && has_manager)
        trial.is_available = is_in_sources(node.place, target, program);
    trial.was_tried =
        how.way == Switch::Way::binaries || (how.way == Switch::Way::packages && (is_apt || !has_manager));
    try {
        if (how.way == Switch::Way::packages && has_manager && !is_apt) require_let(node.place, target, program);
        if (!trial.was_tried) return trial;
        if (how.way == Switch::Way::binaries) {
            const Binary binary = find_binary(node.place, how, target, program);
            trial.has_digest = node.place.exists(binary.file + ".sha256");
            prove_binary(node, binary, target);
        } else {
            static_cast<void>(placing_commands(node, how, target, {program}));
        }
    } catch (const Error& error) {
        trial.was_tried = true;
        trial.code = error.code();
        trial.problem = error.message();
    }
    return trial;
}

std::string find_kubeadm(const Place& place, const Switch& how, const kubernetes::Version& target) {
    if (how.way == Switch::Way::binaries) {
        try {
            return find_binary(place, how, target, "kubeadm").file;
        } catch (const Error& error) {
            if (error.code() != "binary-not-found") throw;
        }
    }
    return is_installed(place, target, "kubeadm") ? place.find_program("kubeadm") : std::string();
}

std::string placing_key(const kubernetes::Version& target) {
    return fmt::format("kubeadm {}", target.text());
}

void require_kubeadm(const Node& node, const Switch& how, const kubernetes::Version& target, StepResult& result) {
    auto slot = node.slot();
    StepResult placing;
    const std::string key = placing_key(target);
    const auto failed = [](const nodejob::JobView& job, const std::string& output) {
        Error error(Exit::other, "switch-failed",
                    fmt::format("{} failed: {}", job.commands[job.failed_command], how_it_ended(job)));
        tell_output(error, output);
        return error;
    };
    const auto before = slot.look();
    if (before.state == nodejob::JobState::running && before.key == key)
        slot.mark_received(finish_job(node, slot, before.id, placing, failed).id);
    // Its version alone does not tell that all of the job was done: a package may not be configured, or not held.
    const auto last = slot.look();
    const bool is_unfinished = last.key == key && !last.succeeded();
    // A worker may have none: only joining takes one.
    const bool is_there = !node.place.find_program("kubeadm").empty();
    const auto found = is_there ? std::optional(kubeadm_version(node.place)) : std::nullopt;
    if (found == target && (!is_unfinished || how.way == Switch::Way::none)) return;
    if (how.way == Switch::Way::none) {
        throw Error(Exit::checks_failed, "kubeadm-version",
                    fmt::format("expected kubeadm {} on this node, found {}", target.text(),
                                found ? found->text() : "none"))
            .hint("install it first, or say how with --switch");
    }
    slot.mark_received(
        run_job(node, slot, {key, placing_commands(node, how, target, {"kubeadm"})}, placing, failed).id);
    result.warnings.insert(result.warnings.end(), placing.warnings.begin(), placing.warnings.end());
    if (const auto now = kubeadm_version(node.place); now != target) {
        throw Error(Exit::unhealthy, "kubeadm-version",
                    fmt::format("expected kubeadm {} after it was installed, found {}", target.text(), now.text()))
            .hint("another kubeadm comes first in PATH");
    }
}

std::vector<nodejob::Command> placing_commands(const Node& node, const Switch& how, const kubernetes::Version& target,
                                               const std::vector<std::string>& programs) {
    std::vector<nodejob::Command> commands;
    switch (how.way) {
        case Switch::Way::none: break;
        case Switch::Way::packages: packages(node, target, programs, commands); break;
        case Switch::Way::binaries:
            for (const std::string& program : programs) binaries(node, how, target, program, commands);
            break;
        case Switch::Way::command: {
            sys::require_trusted(node.place.here(how.command), "program");
            const std::string name = node_name(node.place);
            for (const std::string& program : programs) {
                commands.push_back({node.place.command({how.command}),
                                    {{"VERSION", target.text()}, {"NODE", name}, {"COMPONENT", program}},
                                    false});
            }
            break;
        }
    }
    return commands;
}

}  // namespace kmm::kubeadm
