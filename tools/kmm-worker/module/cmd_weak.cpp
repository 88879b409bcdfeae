// SPDX-License-Identifier: Apache-2.0
// weak-updates: links to modules of another kernel release that fit this one by every symbol version.
#include <algorithm>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "base/shell_word.hpp"
#include "base/text.hpp"
#include "cli/document.hpp"
#include "cli/table.hpp"
#include "kmm-worker/commands.hpp"
#include "kmm-worker/job.hpp"
#include "kmm-worker/module/weak_links.hpp"
#include "sys/process.hpp"

namespace kmm::tool_worker {

namespace {

constexpr std::chrono::milliseconds k_depmod_time{600'000};

/// One path below weak-updates of a kernel, or one module that gets no link there.
struct WeakRow {
    std::string module, home, subpath;
    std::string action;  ///< "keep", "add", "replace", "remove", "leave", "none"
    std::string code, reason;
    LinkChange change;   ///< of add, replace and remove
    [[nodiscard]] bool changes() const { return action == "add" || action == "replace" || action == "remove"; }
};

struct WeakKernel {
    std::string release, source;  ///< `source`: the symvers, "" if there is none
    std::string why;              ///< why it is not judged, "" if it is
    std::vector<WeakRow> rows;
    std::string depmod = "not-run";
};

/// What is to be done for one kernel. `all`: the modules of every release. Errors: data "bad-symvers" of a kernel that
/// somebody named.
WeakKernel plan_kernel_links(const kubeadm::Place& place, const std::string& release, bool is_named,
                             const std::vector<kernel::WeakCandidate>& all) {
    WeakKernel made;
    made.release = release;
    std::optional<kernel::Interface> interface;
    std::map<std::string, std::string> links;
    try {
        interface = read_kernel(place, release, made.why);
        if (interface) links = read_links(place, release);
    } catch (const Error& error) {
        // One that is damaged keeps no other kernel from its links.
        const bool is_damaged = error.code() == "bad-symvers" || (error.code() == "io" && !error.errno_cause());
        if (is_named || !is_damaged) throw;
        made.why = error.message();
        return made;
    }
    if (!interface) return made;
    made.source = interface->source;
    std::vector<kernel::WeakCandidate> others;
    std::vector<kmod::IndexedModule> own;
    for (const auto& candidate : all) {
        if (candidate.home == release) own.push_back(candidate.module);
        else others.push_back(candidate);
    }
    for (const auto& judged : kernel::judge_weak(others, own, *interface)) {
        const auto& candidate = *judged.candidate;
        WeakRow row{
            candidate.module.file.name, candidate.home, candidate.subpath, "none", judged.code, judged.reason, {}};
        if (judged.fits) {
            const auto found = links.find(candidate.subpath);
            const auto before = found == links.end() ? std::string() : found->second;
            row.change = {candidate.subpath, before, candidate.module.path};
            row.action = found == links.end()                          ? "add"
                         : addon_path(before) == candidate.module.path ? "keep"
                         : !addon_path(before).empty()                 ? "replace"
                                                                       : "leave";
            if (row.action == "leave")
                row.reason = before.empty() ? "a file that is not a link has this path"
                                            : fmt::format("somebody else's link has this path, to {}", before);
            if (row.action == "leave") row.code = "not-ours";
            links.erase(candidate.subpath);
        }
        made.rows.push_back(std::move(row));
    }
    for (const auto& [subpath, target] : links) {
        WeakRow row{"-", "-", subpath, "remove", "", "", {subpath, target, ""}};
        const auto of = std::find_if(made.rows.begin(), made.rows.end(), [&](const WeakRow& other) {
            return other.action == "none" && other.subpath == subpath && target.ends_with("/" + subpath) &&
                   target.find("/" + other.home + "/") != std::string::npos;
        });
        if (addon_path(target).empty()) {
            row.action = "leave";
            row.code = "not-ours";
            row.reason =
                target.empty() ? "a file that is not a link" : fmt::format("somebody else's link, to {}", target);
        } else if (of != made.rows.end()) {
            // One line says both: why it gets no link, and that the one it has goes away.
            of->action = "remove";
            of->change = row.change;
            continue;
        } else if (const auto at = std::find_if(
                       all.begin(), all.end(),
                       [&](const auto& each) { return each.module.path == addon_path(target); });
                   at != all.end()) {
            row.code = "other-path";
            row.reason = fmt::format("links to {} have the path {}", target, at->subpath);
        } else {
            row.code = "module-absent";
            row.reason = fmt::format("{} is not there, or not a module", target);
        }
        made.rows.push_back(std::move(row));
    }
    return made;
}

/// A host without depmod is a warning. Errors: other "depmod-failed".
void run_depmod(const kubeadm::Place& place, WeakKernel& one, cli::Context& context) {
    const auto program = place.find_program("depmod");
    if (program.empty()) {
        one.depmod = "not-found";
        context.console.err(
            fmt::format("warning: depmod is not there: run depmod {} before the next boot\n", one.release));
        return;
    }
    sys::ProcessSpec spec;
    spec.argv = place.command({program, one.release});
    spec.timeout = k_depmod_time;
    const auto result = sys::run_process(spec);
    if (result.timed_out || result.signal != 0 || result.exit_code != 0) {
        Error error(Exit::other, "depmod-failed",
                    fmt::format("the links of kernel {} are made, but depmod failed: modprobe does not know them",
                                one.release));
        kubeadm::tell_output(error, result.err);
        throw std::move(error).hint(fmt::format("depmod {} on the node, and see what it says", one.release));
    }
    one.depmod = "run";
}

/// Of two files of one name depmod chooses by the search and override lines of depmod.d: a link that it passes over has
/// no effect.
void note_passed_over(const kubeadm::Place& place, WeakKernel& one, cli::Context& context) {
    const auto module_of = [](std::string_view path) {
        const auto file = path.substr(path.rfind('/') + 1);  // npos + 1 is 0
        return kmod::normalise_name(file.substr(0, file.find(".ko")));
    };
    const auto text = place.read_if_there(fmt::format("/lib/modules/{}/modules.dep", one.release)).value_or("");
    std::map<std::string, std::string> chosen;
    for (const auto line : base::split(text, '\n')) {
        const auto path = line.substr(0, line.find(':'));
        if (!path.empty()) chosen.emplace(module_of(path), path);
    }
    for (auto& row : one.rows) {
        if (row.action != "add" && row.action != "replace" && row.action != "keep") continue;
        const auto it = chosen.find(module_of(row.subpath));
        if (it == chosen.end() || it->second == "weak-updates/" + row.subpath) continue;
        row.code = "not-chosen";
        row.reason = fmt::format("depmod has chosen {}, so modprobe loads that one", it->second);
        context.console.err(fmt::format("warning: kernel {}: depmod has chosen {}, not weak-updates/{}\n"
                                        "  hint:    name weak-updates before built-in in a search line of "
                                        "/etc/depmod.d, then run depmod {}\n",
                                        one.release, base::escape(it->second), base::escape(row.subpath), one.release));
    }
}

/// Whether modules.dep of the kernel has links that are gone: modprobe of such a module fails.
bool names_absent_links(const kubeadm::Place& place, const std::string& release) {
    const auto own = fmt::format("/lib/modules/{}/", release);
    const auto text = place.read_if_there(own + "modules.dep").value_or("");
    for (const auto line : base::split(text, '\n'))
        if (line.starts_with("weak-updates/") && !place.exists(own + std::string(line.substr(0, line.find(':')))))
            return true;
    return false;
}

value::Node weak_document(const std::vector<WeakKernel>& kernels, bool is_applied) {
    auto list = value::Node::sequence();
    for (const auto& one : kernels) {
        auto made = value::Node::mapping({{"kernel", one.release}});
        if (!one.source.empty()) made.set("symvers", one.source);
        if (!one.why.empty()) made.set("skipped", one.why);
        auto rows = value::Node::sequence();
        for (const auto& row : one.rows) {
            auto item = value::Node::mapping(
                {{"path", row.subpath}, {"module", row.module}, {"home", row.home}, {"action", row.action}});
            if (!row.change.after.empty()) item.set("target", row.change.after);
            if (!row.code.empty()) item.set("code", row.code);
            item.set("reason", row.reason);
            rows.push_back(std::move(item));
        }
        made.set("links", std::move(rows));
        if (is_applied) made.set("depmod", one.depmod);
        list.push_back(std::move(made));
    }
    return value::Node::mapping({{"apiVersion", "kmmtools/v1"},
                                 {"kind", "WeakUpdates"},
                                 {"applied", is_applied},
                                 {"kernels", std::move(list)}});
}

/// The call that makes what this one has shown: of the same root and kernels.
std::string apply_command(const cli::Args& args) {
    std::string command = "kmm-worker weak-updates --apply";
    if (const auto root = args.get("host-root")) command += " --host-root " + base::command_word(*root);
    for (const auto& kernel : args.all("kernel")) command += " --kernel " + base::command_word(kernel);
    return command;
}

void print_weak(const std::vector<WeakKernel>& kernels, bool is_applied, const cli::Args& args,
                cli::Context& context) {
    if (cli::print_document(context, weak_document(kernels, is_applied))) return;
    std::vector<std::vector<std::string>> rows;
    std::size_t changed = 0;
    for (const auto& one : kernels)
        for (const auto& row : one.rows) {
            changed += row.changes() ? 1U : 0U;
            if (context.output == "name") {
                if (row.changes())
                    context.console.out(fmt::format("{} {} {}\n", row.action, one.release, base::escape(row.subpath)));
                continue;
            }
            rows.push_back({one.release, base::escape(row.subpath), base::escape(row.home), row.action,
                            (row.code.empty() ? "" : row.code + ": ") + base::escape(row.reason)});
        }
    for (const auto& one : kernels)
        if (!one.why.empty() && context.verbosity >= 0)
            context.console.err(
                fmt::format("note: kernel {} is passed over: {}\n", base::escape(one.release), base::escape(one.why)));
    if (context.output == "name") return;
    if (!rows.empty())
        context.console.out(cli::folded_table({"KERNEL", "PATH", "BUILT-FOR", "ACTION", "REASON"}, std::move(rows), 1,
                                              context.table_width()));
    if (is_applied)
        context.console.out(changed == 0 ? "nothing to change\n"
                                         : fmt::format("{} {} changed\n", changed, changed == 1 ? "link" : "links"));
    else
        context.console.out(changed == 0 ? "nothing to change\n"
                                         : fmt::format("nothing was changed; next: {}\n", apply_command(args)));
}

Exit run_weak_updates(const cli::Args& args, cli::Context& context) {
    const bool is_applied = args.flag("apply");
    if (is_applied && args.flag("dry-run"))
        throw Error(Exit::usage, "bad-value", "--apply and --dry-run contradict each other")
            .hint("leave one of them out: --dry-run prints what --apply would change");
    if (!is_applied && !args.flag("dry-run"))
        throw Error(Exit::usage, "missing-option", "expected --dry-run or --apply")
            .hint("--dry-run prints what --apply would change");
    const auto host = host_paths(args);
    const kubeadm::Place place(host.root);
    if (is_applied) take_trusted_path(host.root, context);
    if (!place.exists("/lib/modules"))
        throw Error(Exit::io, "host-not-mounted",
                    fmt::format("expected the node's kernels in {}, found no such directory",
                                base::escape(host.lib_modules)))
            .hint(host.root.empty() ? "mount the node's /lib/modules here"
                                    : "correct --host-root, or mount the node's /lib/modules below it");
    const auto releases = kernel_releases(place);
    if (releases.empty() && args.all("kernel").empty() && context.verbosity >= 0)
        context.console.err(fmt::format("warning: no kernel release is in {}\n", base::escape(host.lib_modules)));
    auto chosen = args.all("kernel");
    for (const auto& name : chosen)
        if (std::find(releases.begin(), releases.end(), name) == releases.end())
            throw Error(Exit::not_found, "kernel-not-found",
                        fmt::format("there is no /lib/modules/{}", base::escape(name)))
                .hint(releases.empty() ? "there is no kernel at all" : "there are: " + base::join(releases, ", "));
    if (chosen.empty()) chosen = releases;
    std::vector<std::string> warnings;
    std::vector<kernel::WeakCandidate> all;
    const auto form = link_form(place, releases);
    for (const auto& release : releases) {
        auto found = read_addons(place, release, form, warnings);
        std::move(found.begin(), found.end(), std::back_inserter(all));
    }
    if (context.verbosity >= 0)
        for (const auto& warning : warnings) context.console.err(fmt::format("warning: {}\n", base::escape(warning)));
    std::vector<WeakKernel> kernels;
    const bool are_named = !args.all("kernel").empty();
    for (const auto& release : chosen) kernels.push_back(plan_kernel_links(place, release, are_named, all));
    if (!args.all("kernel").empty())
        for (const auto& one : kernels)
            if (!one.why.empty())
                throw Error(Exit::not_found, "no-symvers", one.why)
                    .hint("install the headers of the kernel, or its symvers");
    if (is_applied)
        for (auto& one : kernels) {
            std::vector<LinkChange> changes;
            for (const auto& row : one.rows)
                if (row.changes()) changes.push_back(row.change);
            if (!changes.empty()) change_links(place, one.release, changes);
            const auto packed = changes.empty() ? std::string() : initramfs_of(place, one.release);
            if (!packed.empty() && context.verbosity >= 0)
                context.console.err(
                    fmt::format("note: {} is as before: make it again if it has one of these modules\n", packed));
            // Also without a change: an earlier call may have ended before it, or depmod has failed.
            const bool is_depmod_due =
                (one.why.empty() && names_absent_links(place, one.release)) ||
                std::any_of(one.rows.begin(), one.rows.end(), [](const WeakRow& row) {
                    return row.changes() || row.action == "keep";
                });
            if (is_depmod_due) run_depmod(place, one, context);
            if (one.depmod == "run") note_passed_over(place, one, context);
        }
    print_weak(kernels, is_applied, args, context);
    return Exit::ok;
}

}  // namespace

cli::Verb verb_weak_updates() {
    cli::Verb verb;
    verb.name = "weak-updates";
    verb.summary = "link modules of another kernel release that fit";
    verb.description =
        "Modules below extra and updates of other releases in /lib/modules are judged against a kernel: the words of "
        "vermagic behind the release, each symbol with its version, namespaces, licence, and all that they need of "
        "each other, until nothing more falls out. Those that fit get a link below weak-updates of that kernel, as "
        "weak-modules makes them, or on SUSE weak-modules2; of several builds the latest. Links to modules that no "
        "longer fit, or are gone, are removed; links and files of somebody else stay. The versions are those of "
        "symvers.gz or of the kernel's headers.\n\n"
        "depmod runs afterwards, if it is there; libkmod cannot write its files. An initramfs is not made; one that "
        "is there is named.";
    verb.examples = {{"kmm-worker weak-updates --dry-run", "what would be linked, and why not"},
                     {"kmm-worker weak-updates --apply --kernel 5.14.0-427.43.1.el9_4.x86_64", "for one kernel"}};
    const auto kernel = cli::option("kernel", "KERNEL", "only this kernel; all of /lib/modules if absent");
    verb.options =
        std::vector<cli::Option>{cli::option("dry-run", "", "print what would be changed, with reasons"),
                                 cli::option("apply", "", "change the links and run depmod"), cli::repeatable(kernel)} +
        host_options() + cli::common_options();
    verb.run = run_weak_updates;
    return verb;
}

}  // namespace kmm::tool_worker
