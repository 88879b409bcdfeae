// SPDX-License-Identifier: Apache-2.0
#include "kmod/load/steps.hpp"

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <set>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "base/text.hpp"
#include "digest/digest.hpp"
#include "kmod/check/errno_doctor.hpp"
#include "kmod/check/logged_cause.hpp"
#include "kmod/host/soft_needs.hpp"
#include "kmod/ko/inflate.hpp"
#include "kmod/load/users.hpp"

namespace kmm::kmod {

namespace {

using std::chrono::milliseconds;

constexpr std::uint64_t k_bad_page = 1ULL << 5U;     // B
constexpr std::uint64_t k_died = 1ULL << 7U;         // D: oops or BUG
constexpr std::uint64_t k_warned = 1ULL << 9U;       // W
constexpr std::uint64_t k_soft_lockup = 1ULL << 14U; // L
constexpr std::uint64_t k_faults = k_died | k_soft_lockup | k_warned | k_bad_page;
constexpr std::uint64_t k_expected =
    1ULL << 0U | 1ULL << 10U | 1ULL << 12U | 1ULL << 13U | 1ULL << 16U;  // P, C, O, E, X: what the module is
constexpr milliseconds k_poll{20};

constexpr std::size_t k_log_lines = 8;

constexpr std::pair<std::string_view, std::uint64_t> k_complaints[] = {
    {"WARNING:", k_warned}, {"lockup", k_soft_lockup}, {"Bad page", k_bad_page},
    {"BUG:", k_died},       {"Oops", k_died},          {"general protection", k_died}};

/// The taint that such a line of the kernel's goes with, 0 for any other line.
std::uint64_t fault_of(const std::string& line) {
    const auto it = std::find_if(std::begin(k_complaints), std::end(k_complaints), [&](const auto& complaint) {
        return line.find(complaint.first) != std::string::npos;
    });
    return it == std::end(k_complaints) ? 0 : it->second;
}

/// The kernel's report on a fault of the module itself, or of the helper process while it was in the kernel: its lines
/// name either, "WARNING: CPU: 0 PID: 703 at demo.c:55 demo_init+0x40/0x1000 [demo]", "CPU: 0 PID: 703 Comm: kmm-worker
/// Tainted: G W".
bool complains_of(const std::vector<std::string>& lines, const Deed& deed) {
    const std::string process =
        fmt::format("PID: {} Comm: kmm-worker", deed.helper);  // a number of another PID namespace fits nothing
    const std::string code = fmt::format(" [{}]", deed.module);
    return std::any_of(lines.begin(), lines.end(), [&](const std::string& line) {
        return (deed.helper != 0 && line.find(process) != std::string::npos) ||
               (fault_of(line) != 0 && line.find(code) != std::string::npos);
    });
}

/// The symbols that the kernel named, and who could export them.
void add_unknown_symbols(Error& error, const std::vector<std::string>& lines, const std::string& directory) {
    std::vector<std::string> symbols;
    for (const auto& line : lines) {
        const auto at = line.find(k_unknown_symbol);
        if (at == std::string::npos || symbols.size() >= k_log_lines) continue;
        const std::string rest = line.substr(at + k_unknown_symbol.size());
        const std::string symbol = rest.substr(0, rest.find(' '));
        const std::string exporter = host_exporter(directory, symbol);
        const bool refused = rest.find(k_found_and_refused) != std::string::npos;
        const std::string_view otherwise =
            refused ? "exported, and refused by the kernel" : "exported by nothing on this host";
        symbols.push_back(fmt::format(
            "{} ({})", base::escape(symbol),
            exporter.empty() ? std::string(otherwise) : "exported by module " + exporter + " of this host"));
    }
    if (!symbols.empty()) error.detail("symbols", base::join(symbols, ", "));
}

/// What the kernel logged about a module, as details of an error: the line that tells most, and the others.
void add_kernel_lines(Error& error, const std::vector<std::string>& about, const std::string& directory) {
    add_unknown_symbols(error, about, directory);
    const std::string telling = telling_line(about);
    if (telling.empty()) return;
    error.detail("kernel", base::escape(telling));
    std::vector<std::string> others;
    for (const auto& line : about) {
        if (line != telling && others.size() < k_log_lines) others.push_back(base::escape(line));
    }
    if (!others.empty()) error.detail("kernel-log", base::join(others, " | "));
}

/// Between two looks at what the kernel was told. An interruption does not end that: the step is finished first.
void look_again_later(const Machine& machine) {
    if (!machine.clock.sleep_for(k_poll)) std::this_thread::sleep_for(k_poll);
}

Error interrupted_error(const std::string& while_what) {
    return Error(Exit::interrupted, "interrupted", fmt::format("interrupted while {}", while_what))
        .hint("run the same command again");
}

}  // namespace

std::optional<LiveModule> settled_module(const Machine& machine, const std::string& name) {
    const milliseconds end = machine.clock.monotonic() + machine.patience.settle;
    for (;;) {
        auto live = live_module(machine.host, name);
        if (!live || live->state == "live" || live->state == "builtin") return live;
        if (machine.clock.monotonic() >= end) {
            throw Error(Exit::hung, "loader-hung",
                        fmt::format("module {} is {}: an earlier load or unload has not come back", name, live->state))
                .detail("state", live->state)
                .hint("look at the kernel's log; if it never ends, only a reboot of the node helps");
        }
        if (!machine.clock.sleep_for(k_poll))
            throw interrupted_error(
                fmt::format("an earlier load or unload of module {} was waited for, which is {}", name, live->state));
    }
}

void require_healthy(const Machine& machine, std::uint64_t taint_before, const Deed& deed, KernelLog& log) {
    const auto taint = known_taint(machine.host);
    const std::uint64_t fresh = taint.value_or(0) & ~taint_before & k_faults;
    if (fresh == 0 && taint && (taint_before & k_faults) == 0) return;
    const auto& lines = log.lines();
    const auto it =
        std::find_if(lines.begin(), lines.end(), [](const std::string& line) { return fault_of(line) != 0; });
    if (fresh == 0 && (it == lines.end() || !complains_of(lines, deed))) return;
    const std::uint64_t seen = fresh != 0 ? fresh : fault_of(*it);
    const char* how = (seen & k_died) != 0          ? "oopsed"
                      : (seen & k_soft_lockup) != 0 ? "locked up"
                      : (seen & k_bad_page) != 0    ? "found a bad page"
                                                    : "warned";
    Error error(Exit::unhealthy, "node-unhealthy", fmt::format("the kernel {} while {}", how, deed.what));
    if (it != lines.end()) error.detail("kernel", base::escape(*it));
    if (taint) error.detail("taint", taint_letters(*taint));
    if (fresh != 0) error.detail("new-taint", taint_letters(fresh));
    error.hint("drain and reboot this node, and do not load this build anywhere else");
    throw error;
}

void warn_of_unwatched(const HostPaths& host, std::uint64_t taint_before, std::vector<std::string>& warnings) {
    if (KernelLog(host.kmsg).available()) return;
    const auto taint = known_taint(host);
    const std::uint64_t hidden = taint_before & k_faults;
    if (!taint) {
        warnings.push_back(
            fmt::format("health-not-checked: neither {}/sys/kernel/tainted nor {} can be read: whether the kernel "
                        "oopsed, locked up or warned during the step is not known",
                        base::escape(host.proc), base::escape(host.kmsg)));
    } else if (hidden != 0) {
        warnings.push_back(
            fmt::format("health-not-checked: the kernel had the taint {} before, and {} cannot be read: whether it "
                        "happened again during the step is not known",
                        taint_letters(hidden), base::escape(host.kmsg)));
    }
}

Error hung_error(const std::string& what, const LoaderAnswer& answer, const Machine& machine,
                 const std::string& module) {
    const auto live = live_module(machine.host, module);
    Error error(Exit::hung, "loader-hung",
                fmt::format("{} did not come back within {}", what, base::format_duration(machine.patience.loader)));
    error.detail("state", live ? live->state : "absent")
        .detail("helper", fmt::format("pid {}{}", answer.pid, answer.gone ? ", killed" : ", cannot be killed"));
    if (!answer.wchan.empty() && answer.wchan != "0") error.detail("waits-in", answer.wchan);
    error.hint(answer.gone ? "read the kernel's log before another attempt"
                           : "nothing was retried; kmm-worker status shows whether it comes back, and if it never "
                             "does, only a reboot of the node helps");
    return error;
}

Error refused_error(const Machine& machine, const Candidate& candidate, int error_number, const KernelState& state,
                    KernelLog& log) {
    const std::string& name = candidate.file.name;
    auto causes = load_causes(error_number, machine.host, state, {&candidate.file, candidate.parameters});
    const std::string directory = host_module_directory(machine.host, node_facts(machine.host).kernel);
    Error error(
        Exit::refused, "module-refused",
        fmt::format("the kernel refused module {}: {} ({})", name, errno_text(error_number), errno_name(error_number)));
    auto about = lines_of_load(log, name);
    std::copy_if(log.lines().begin(), log.lines().end(), std::back_inserter(about), [](const std::string& line) {
        return is_of_lockdown(line) || is_of_signatures(line) || is_of_any_load(line);
    });
    const bool unknown_symbol = std::any_of(about.begin(), about.end(), [](const std::string& line) {
        return line.find(k_unknown_symbol) != std::string::npos;
    });
    if (unknown_symbol)
        std::erase_if(causes, [](const Cause& cause) {
            return cause.applies == Applies::no;
        });  // the kernel knows better than a look at it from outside
    ErrnoAdvice advice = load_advice(all_excluded(causes) && !unknown_symbol ? 0 : error_number);
    if (is_signature_errno(error_number) && !candidate.file.is_signed && advice.number == error_number)
        advice.hint = "sign the module with a key that this kernel trusts";
    const std::string parameter = refused_parameter(about);
    LoggedCause told = logged_cause(about, candidate.file, machine.host, directory);
    const bool of_kernel =
        std::any_of(causes.begin(), causes.end(), [](const Cause& cause) { return cause.applies == Applies::yes; });
    if (told.cause.empty() && !of_kernel) told = logged_signature(about);
    if (told.cause.empty() && (!of_kernel || error_number == ENOENT) && !unknown_symbol)
        told = logged_firmware(about, machine.host, node_facts(machine.host).kernel);
    if (!parameter.empty())
        told = {fmt::format("the value of parameter {} does not fit", parameter),
                "correct it in the Module's parameters, or in the options that this host adds"};
    error.detail("errno", errno_name(error_number));
    if (!told.cause.empty()) {
        error.detail("cause", told.cause);
    } else {
        error.detail("cause",
                     advice.number == error_number ? likeliest_cause(causes, error_number) : std::string(advice.cause));
    }
    if (told.cause.empty() && !of_kernel) {
        int number = 0;
        for (const auto& cause : causes) {
            if (cause.evidence.empty()) continue;
            error.detail(fmt::format("tested-{}", ++number),
                         fmt::format("{}? {}: {}", cause.text, to_string(cause.applies), cause.evidence));
        }
    }
    add_kernel_lines(error, about, directory);
    error.hint(told.hint.empty() ? std::string(advice.hint) : told.hint).cause_errno(error_number);
    return error;
}

Error differs_error(const std::string& name, const IdentityVerdict& verdict) {
    return Error(Exit::refused, "module-differs",
                 fmt::format("another build of module {} is live, and stays until it is unloaded", name))
        .detail("loaded", fmt::format("{} {}", verdict.what, verdict.loaded))
        .detail("wanted", fmt::format("{} {}", verdict.what, verdict.wanted))
        .hint(fmt::format("kmm-worker unload --module {}, then load again", name));
}

Error busy_error(const Machine& machine, const std::string& name) {
    const auto live = live_module(machine.host, name);
    const std::string refcount = live && live->refcount ? fmt::format("{}", *live->refcount) : "unknown";
    const std::string chain = holder_chain(machine.host, name);
    Error error(Exit::busy, "module-in-use", fmt::format("module {} is still in use (refcount {})", name, refcount));
    const auto users = module_users(machine.host, name);
    if (!chain.empty()) error.detail("holders", chain);
    error.detail("refcount", refcount);
    if (!users.empty()) error.detail("users", base::join(users, ", "));
    error.hint(chain.empty() ? "stop the processes or mounts that use it, then run the same command again"
                             : "unload the holders first, then run the same command again");
    return error;
}

Error permanent_error(const std::string& name, bool sure) {
    return Error(Exit::busy, "module-in-use",
                 fmt::format("module {} cannot be unloaded: it has no exit function{}", name,
                             sure ? "" : ", or is being loaded"))
        .hint("a module without an exit function stays until the node is rebooted");
}

namespace {

Error unload_refused(const Machine& machine, const std::string& name, int number, std::string cause, KernelLog& log) {
    const ErrnoAdvice advice = unload_advice(number);
    auto about = lines_about(log.lines(), name);
    std::string hint(advice.hint);
    for (const auto& line : log.lines()) {
        LoggedCause told = security_refusal(line);
        if (told.cause.empty()) continue;
        about.insert(about.begin(), line);
        if (!cause.empty()) break;
        cause = std::move(told.cause);
        hint = std::move(told.hint);
        break;
    }
    Error error(
        Exit::refused, "module-refused",
        fmt::format("the kernel refused to unload module {}: {} ({})", name, errno_text(number), errno_name(number)));
    error.detail("errno", errno_name(number))
        .detail("cause", cause.empty() ? std::string(advice.cause) : std::move(cause));
    add_kernel_lines(error, about, host_module_directory(machine.host, node_facts(machine.host).kernel));
    return std::move(error).hint(std::move(hint)).cause_errno(number);
}

/// `does`: "loads"; `state`: what the module is then.
Error helper_killed(const std::string& name, std::string_view does, std::string_view state) {
    return Error(Exit::refused, "module-refused",
                 fmt::format("the helper that {} module {} was killed before the kernel answered, and the module is {}",
                             does, name, state))
        .hint(
            "look for the OOM killer in the kernel's log, and at the memory limit of the Pod; then run the same "
            "command again");
}

void note_bytes(const HostPaths& host, const Candidate& candidate) {
    try {
        note_loaded_bytes(host, candidate.file.name, code_sha256(candidate.file, candidate.bytes));
    } catch (const Error&) {
        // Outputs then say that the build id or the srcversion was compared; a load record that cannot be written has
        // its own warning.
    }
}

/// False if the module is still shown as live when time is up.
bool wait_gone(const Machine& machine, const std::string& name) {
    const milliseconds gone_by = machine.clock.monotonic() + machine.patience.settle;
    while (live_module(machine.host, name)) {
        if (machine.clock.monotonic() >= gone_by) return false;
        look_again_later(machine);
    }
    forget_loaded_bytes(machine.host, name);
    return true;
}

}  // namespace

bool unload_one(const Machine& machine, const std::string& name, const Force& force) {
    const auto live = settled_module(machine, name);
    if (!live) {
        forget_loaded_bytes(machine.host, name);  // a worker that was killed left it
        return false;
    }
    KernelLog log(machine.host.kmsg);
    const KernelState state = kernel_state(machine.host);
    if (live->state == "builtin") {
        throw Error(Exit::refused, "module-refused",
                    fmt::format("module {} is built into the kernel and cannot be unloaded", name))
            .detail("cause", "built-in");
    }
    const milliseconds end = machine.clock.monotonic() + machine.patience.busy;
    milliseconds delay{50};
    bool lost = false;  // an answer: the module may be gone because of it
    int busy_though_live = 0;
    for (;;) {
        const LoaderAnswer answer = machine.loader.unload(name, force, machine.patience.loader);
        require_healthy(machine, state.tainted, {fmt::format("module {} was unloaded", name), name, answer.pid}, log);
        if (answer.hung) throw hung_error(fmt::format("the unload of module {}", name), answer, machine, name);
        lost = lost || answer.lost;
        if (answer.error == ENOENT) {
            if (wait_gone(machine, name)) return lost;
            throw unload_refused(machine, name, ENOENT, "the kernel has no such module, and sysfs here shows it live",
                                 log)
                .hint("look at the same node with --host-root as the kernel that runs this");
        }
        if (answer.error == 0) break;
        const bool transient = answer.error == EAGAIN || answer.error == EINTR || answer.error == EBUSY;
        if (!transient) throw unload_refused(machine, name, answer.error, {}, log);
        const auto now = live_module(machine.host, name);
        if (answer.error == EBUSY && now && now->state == "live")
            ++busy_though_live;  // once, its load or another unload may just have ended
        const bool permanent = busy_though_live > 1;
        const bool held = now && !now->holders.empty();  // does not pass by waiting
        const milliseconds left = end - machine.clock.monotonic();
        if (held || permanent || left <= milliseconds(0)) {
            if (answer.lost && !held) throw helper_killed(name, "unloads", "live");
            if (answer.error == EINTR && !held) throw unload_refused(machine, name, EINTR, {}, log);
            if (answer.error != EBUSY) throw busy_error(machine, name);
            throw permanent_error(name, permanent).detail("errno", "EBUSY");
        }
        if (!machine.clock.sleep_for(std::min(delay, left)))
            throw interrupted_error(fmt::format("users of module {} were waited for, which is still live", name));
        delay = std::min(delay * 2, milliseconds{1000});
    }
    if (wait_gone(machine, name)) return true;
    throw Error(Exit::refused, "module-refused", fmt::format("module {} was unloaded but is live again", name))
        .hint("something reloads it, e.g. udev by an alias: blacklist it on the node");
}

Action load_one(const Machine& machine, const Candidate& candidate, std::vector<std::string>& warnings) {
    const ModuleFile& file = candidate.file;
    const sys::Fd fd = sealed_file(candidate.bytes, file.name);
    KernelLog log(machine.host.kmsg);
    const KernelState state = kernel_state(machine.host);
    Action action = Action::loaded;
    bool is_ours = false;
    for (int attempt = 1;; ++attempt) {
        const LoaderAnswer answer =
            machine.loader.load(fd.get(), candidate.parameters, candidate.force, machine.patience.loader);
        require_healthy(machine, state.tainted, {fmt::format("module {} was loaded", file.name), file.name, answer.pid},
                        log);
        if (answer.hung) throw hung_error(fmt::format("the load of module {}", file.name), answer, machine, file.name);
        is_ours = answer.error == 0;
        if (is_ours) break;
        if (answer.error != EEXIST && answer.error != EBUSY && answer.error != EINTR)
            throw refused_error(machine, candidate, answer.error, state, log);
        // somebody else may have loaded it, or the answer was lost: the module itself says what is true
        if (settled_module(machine, file.name)) {
            if (!answer.lost) action = Action::already_loaded;
            break;
        }
        if (attempt == 2 && answer.lost) throw helper_killed(file.name, "loads", "not live");
        if (attempt == 2) throw refused_error(machine, candidate, answer.error, state, log);
    }
    const milliseconds end = machine.clock.monotonic() + machine.patience.settle;
    auto live = live_module(machine.host, file.name);
    while (!live || live->state != "live") {
        if (machine.clock.monotonic() >= end) {
            throw Error(
                Exit::unhealthy, "node-unhealthy",
                fmt::format("the kernel accepted module {} but it is {}", file.name, live ? live->state : "absent"))
                .hint("look at the kernel's log; the module may have unloaded itself");
        }
        look_again_later(machine);
        live = live_module(machine.host, file.name);
    }
    const IdentityVerdict verdict = compare_identity(file, *live);
    if (verdict.identity == Identity::different) throw differs_error(file.name, verdict);
    if (verdict.identity == Identity::unknown) {
        warnings.push_back(fmt::format(
            "identity-unknown: module {} has neither srcversion nor build id; only its name could be compared",
            file.name));
    }
    if (is_ours) note_bytes(machine.host, candidate);
    const auto about = lines_about(log.lines(), file.name);
    const auto odd = std::find_if(about.begin(), about.end(), [](const std::string& line) {
        return line.find("init suspiciously returned") != std::string::npos;
    });
    if (odd != about.end())
        warnings.push_back(
            fmt::format("init-result: the kernel loaded module {} and says: {}", file.name, base::escape(*odd)));
    const std::uint64_t fresh = taint_bits(machine.host) & ~state.tainted & ~k_expected;
    if (fresh != 0)
        warnings.push_back(fmt::format("new-taint: the kernel got the taint {} while module {} was loaded",
                                       taint_letters(fresh), file.name));
    return action;
}

ModuleReport report_of(const IndexedModule& module, Action action) {
    ModuleReport report;
    report.name = module.file.name;
    report.action = action;
    report.path = module.image_path;
    report.sha256 = module.sha256;
    report.srcversion = module.file.srcversion();
    report.build_id = module.file.build_id;
    report.version = module.file.version();
    report.vermagic = module.file.vermagic();
    ModuleSignature signature = module.file.signature();
    report.signer = std::move(signature.signer);
    report.other_signers = std::move(signature.others);
    return report;
}

void add_parameters(ModuleReport& report, const ModprobeConfig& config, const ModuleFile& module,
                    const std::vector<std::string>& own) {
    for (auto& [key, given] : given_parameters(config, module, own)) {
        report.parameters.insert_or_assign(key, given.value);
        if (!given.origin.empty()) report.parameter_origins.insert_or_assign(key, given.origin);
    }
}

HostLoad load_host_file(const Machine& machine, const ModprobeConfig& config, const std::string& path, Action shown,
                        std::vector<std::string>& warnings) {
    const auto start = machine.clock.monotonic();
    std::string bytes =
        read_module_bytes(host_module_file(host_module_directory(machine.host, node_facts(machine.host).kernel), path));
    std::string sum = digest::sha256_hex(bytes);
    bytes = plain_module(std::move(bytes), path);
    const IndexedModule found{parse_module(bytes, path), path, path, std::move(sum)};
    HostLoad done{report_of(found, shown),
                  load_one(machine, {found.file, bytes, effective_parameters(config, found.file.name, {})}, warnings)};
    if (const auto live = live_module(machine.host, done.report.name)) done.report.taint = live->taint;
    if (done.outcome == Action::loaded) add_parameters(done.report, config, found.file, {});
    done.report.took = machine.clock.monotonic() - start;
    return done;
}

std::optional<std::string> load_from_host(const Machine& machine, const std::string& name, Action action,
                                          Report& report) {
    return load_from_host(machine, name, action, report, read_modprobe_config(machine.host));
}

std::optional<std::string> load_from_host(const Machine& machine, const std::string& name, Action action,
                                          Report& report, ModprobeConfig config) {
    try {
        const std::string directory = host_module_directory(machine.host, node_facts(machine.host).kernel);
        auto need = find_host_module(directory, name);
        if (!need) return fmt::format("module {} is not in the host's tree", name);
        for (const auto& [wanted, by] : need->missing) {
            if (!live_module(machine.host, wanted))
                return fmt::format("module {}, which module {} needs, has no file in the host's tree",
                                   base::escape(wanted), by);
        }
        std::set<std::string> optional;
        add_soft_needs({machine.host, directory, config, {}, {{name, name}}}, need->modules, optional);
        for (const auto& module : need->modules) {
            if (live_module(machine.host, module.name)) continue;
            const Action shown = module.name == normalise_name(name) ? action : Action::dependency;
            try {
                report.modules.push_back(load_host_file(machine, config, module.path, shown, report.warnings).report);
            } catch (const Error& error) {
                const auto warning = optional.contains(module.name) ? soft_failure(module.name, error) : std::nullopt;
                if (!warning) throw;
                report.warnings.push_back(*warning);
            }
        }
        return std::nullopt;
    } catch (const Error& error) {
        if (error.exit() == Exit::hung || error.exit() == Exit::unhealthy) throw;
        return error.message();
    }
}

}  // namespace kmm::kmod
