// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/text.hpp"
#include "cli/table.hpp"
#include "kmm-worker/commands.hpp"
#include "kmm-worker/job.hpp"
#include "kmm-worker/result.hpp"
#include "kmod/errno_doctor.hpp"

namespace kmm::tool_worker {

namespace {

struct CodeRow {
    std::string_view code;
    Exit exit;
    std::string_view meaning, hint;
};

constexpr std::array<CodeRow, 47> k_codes{{
    {"check-failed", Exit::checks_failed, "the module cannot be loaded on this kernel; nothing was changed", "each finding names its reason; rebuild the image accordingly"},
    {"kernel-differs", Exit::checks_failed, "the config is for another kernel than the running one", "the node was rebooted into another kernel: plan again"},
    {"module-refused", Exit::refused, "the kernel, or the module's own init function, refused", "see errno, cause and the kernel's line; kmm-worker explain ERRNO"},
    {"module-differs", Exit::refused, "another build of the module is live", "unload it first; kmm-worker status shows which build it is"},
    {"module-in-use", Exit::busy, "the module has users or holders", "stop the processes, mounts or modules that use it"},
    {"loader-hung", Exit::hung, "a module's init or exit function does not return", "nothing is retried; look at the kernel's log, in the end reboot"},
    {"node-unhealthy", Exit::unhealthy, "the kernel oopsed or locked up during the step", "drain and reboot the node, and do not load this build elsewhere"},
    {"image-unsafe", Exit::unsafe, "the image holds paths or entries that no kmod image needs", "rebuild the image; do not trust where it came from"},
    {"image-limit", Exit::unsafe, "the image is over a cap against hostile images", "raise the named cap with --limit if the image is really meant"},
    {"digest-mismatch", Exit::integrity, "bytes are not those of their digest", "the registry or something on the way altered them; push the image again"},
    {"firmware-not-in-image", Exit::not_found, "the image has no firmware at firmwarePath", "correct firmwarePath, or add the directory to the image"},
    {"image-not-found", Exit::not_found, "the registry has no such image", "check name and tag; kmm-plan images lists what is needed"},
    {"kernel-not-in-image", Exit::not_found, "the image has no modules for this kernel", "build the image for it, or correct the kernel mapping"},
    {"no-platform", Exit::not_found, "the image has no manifest for this architecture", "build it for this platform"},
    {"registry-auth", Exit::no_permission, "the registry wants other credentials", "give --authfile, or a pull Secret after the config"},
    {"module-format", Exit::data, "a .ko file is no loadable module", "build the module and the image again"},
    {"module-name", Exit::data, "a .ko file has another name than the module in it", "name the file as the module"},
    {"duplicate-module", Exit::data, "two .ko files hold the same module", "keep one for each kernel"},
    {"dependency-cycle", Exit::data, "modules need each other in a circle", "correct modulesLoadingOrder or depends="},
    {"vermagic-differs", Exit::checks_failed, "the module was built for another kernel", "rebuild it against the headers of the running kernel"},
    {"unknown-symbol", Exit::checks_failed, "nothing exports a symbol that the module needs", "add the module that exports it to the image"},
    {"symbol-version-differs", Exit::checks_failed, "the kernel interface has changed since the build", "rebuild it against the headers of the running kernel"},
    {"unknown-parameter", Exit::checks_failed, "the module has no such parameter; the kernel would ignore it", "correct or remove it"},
    {"force-refused", Exit::data, "modules are not forced without the long confirmation", "rebuild the module for the running kernel"},
    {"module-replaced", Exit::refused, "another build took the module's place right after the load", "blacklist the rival module on the node, then load again"},
    {"blacklisted-module", Exit::checks_failed, "the kernel command line, or modprobe.d with -b, excludes the module", "remove it there; the command line takes a reboot"},
    {"install-command", Exit::checks_failed, "modprobe.d of the host runs a command instead of loading the module", "remove that line; commands are never run"},
    {"namespace-missing", Exit::checks_failed, "the module does not import the namespace of a symbol it needs", "add MODULE_IMPORT_NS to it and rebuild it"},
    {"gpl-only", Exit::checks_failed, "a module of another license needs symbols for GPL modules", "the kernel treats these symbols as absent for it"},
    {"unsigned-module", Exit::checks_failed, "the module has no signature and this kernel wants one", "sign it with a key that the kernel trusts"},
    {"bad-signature", Exit::checks_failed, "the signature at the end of the module is damaged", "sign it again, and do not strip it afterwards"},
    {"key-not-trusted", Exit::checks_failed, "no key of the kernel's keyrings fits the module's signature", "enrol the key (mokutil --import), or sign with a trusted one"},
    {"builtin-module", Exit::checks_failed, "the module is part of this kernel", "leave it out for this kernel"},
    {"dependency-missing", Exit::checks_failed, "a module that is needed is neither in the image nor on the host", "add it to the image, or install the kernel's module package"},
    {"bad-parameter", Exit::checks_failed, "a parameter is malformed or does not fit its type", "correct it; modinfo -p shows the types"},
    {"no-memory", Exit::checks_failed, "the modules need more memory than the node has left", "free memory on the node"},
    {"modules-disabled", Exit::checks_failed, "loading of modules is switched off until the next boot", "reboot the node"},
    {"no-module-support", Exit::checks_failed, "the kernel was built without loadable modules", "boot a kernel with CONFIG_MODULES=y"},
    {"module-not-in-image", Exit::not_found, "the image has no module of that name", "correct moduleName, or add the module to the image"},
    {"firmware-manifest", Exit::io, "the list of installed firmware is damaged", "look at the files beside it and remove it"},
    {"bad-firmware-path", Exit::data, "the kernel cannot hold this firmware path", "an absolute path of at most 255 bytes"},
    {"node-busy", Exit::locked, "another kmm-worker is changing modules of this node", "wait for it, then try again"},
    {"no-permission", Exit::no_permission, "this process may not load modules", "run as root; in a Pod add SYS_MODULE"},
    {"command-failed", Exit::other, "the container runtime failed", "see what it said"},
    {"config-not-found", Exit::not_found, "there is no configuration for this instance", "write /etc/kvc/NAME.conf"},
    {"bad-config", Exit::data, "a configuration line is not KEY=VALUE", "nothing of it is run or expanded; write plain values"},
    {"unsupported", Exit::data, "this version cannot do what was asked", "see the message for another way"},
}};

value::Node document(const std::string& code, const std::string& cause, const std::string& hint) {
    return value::Node::mapping({{"apiVersion", "kmmtools/v1"}, {"kind", "Explanation"}, {"code", code}, {"cause", cause}, {"hint", hint}});
}

void print(const std::vector<std::pair<std::string, std::string>>& rows, value::Node node, cli::Context& context) {
    if (print_document(node, context)) return;
    context.console.out(cli::format_properties(rows));
}

/// The causes of an errno, each tested on this host, then what to do.
void explain_errno(int number, const kmod::HostPaths& host, cli::Context& context) {
    const kmod::ErrnoAdvice load = kmod::load_advice(number);
    const auto causes = kmod::load_causes(number, host, kmod::kernel_state(host));
    std::vector<std::pair<std::string, std::string>> rows{
        {"errno", fmt::format("{} ({}): {}", errno_name(number), number, errno_text(number))}, {"when loading", std::string(load.cause)}};
    value::Node list = value::Node::sequence();
    int place = 0;
    for (const auto& cause : causes) {
        value::Node item = value::Node::mapping({{"cause", cause.text}, {"applies", std::string(kmod::to_string(cause.applies))}});
        if (!cause.evidence.empty()) item.set("evidence", cause.evidence);
        list.push_back(std::move(item));
        std::string text = fmt::format("{}? {}", cause.text, kmod::to_string(cause.applies));
        if (!cause.evidence.empty()) text += fmt::format(" ({})", cause.evidence);
        rows.emplace_back(fmt::format("cause {}", ++place), std::move(text));
    }
    rows.emplace_back("hint", std::string(load.hint));
    value::Node made = document(errno_name(number), kmod::likeliest_cause(causes, number), std::string(load.hint));
    made.set("errno", number);
    made.set("causes", std::move(list));
    const auto table = kmod::unload_errnos();
    if (std::any_of(table.begin(), table.end(), [&](const auto& row) { return row.number == number; })) {
        const kmod::ErrnoAdvice unload = kmod::unload_advice(number);
        rows.emplace_back("when unloading", std::string(unload.cause));
        rows.emplace_back("hint", std::string(unload.hint));
        made.set("unload", value::Node::mapping({{"cause", std::string(unload.cause)}, {"hint", std::string(unload.hint)}}));
    }
    print(rows, std::move(made), context);
}

Exit run_explain(const cli::Args& args, cli::Context& context) {
    const std::string word = args.positional("CODE");
    const kmod::HostPaths host = host_paths(args);
    if (const int number = kmod::errno_number(word); number != 0) {
        explain_errno(number, host, context);
        return Exit::ok;
    }
    const auto row = std::find_if(k_codes.begin(), k_codes.end(), [&](const CodeRow& r) { return r.code == word; });
    if (row == k_codes.end()) {
        std::vector<std::string> names;
        for (const auto& known : k_codes) names.emplace_back(known.code);
        for (const auto& known : kmod::load_errnos()) names.push_back(errno_name(known.number));
        Error error(Exit::not_found, "not-found", fmt::format("'{}' is neither a reason code nor an errno", base::escape(word)));
        if (const auto near = base::nearest(word, names)) error.hint(fmt::format("did you mean {}?", *near));
        throw error;
    }
    print({{"code", word}, {"exit code", fmt::format("{} ({})", static_cast<int>(row->exit), exit_name(row->exit))}, {"meaning", std::string(row->meaning)}, {"hint", std::string(row->hint)}},
          document(word, std::string(row->meaning), std::string(row->hint)), context);
    return Exit::ok;
}

}  // namespace

cli::Verb verb_explain() {
    cli::Verb verb;
    verb.name = "explain";
    verb.summary = "what a reason code or an errno means, here";
    verb.description = "The causes of an errno of the kernel's module loader in the order in which the kernel checks them, each tested on this host where "
        "that is possible, and what to do. Reason codes are those of the errors of this command.";
    verb.examples = {{"kmm-worker explain ENOEXEC", "an errno"}, {"kmm-worker explain module-differs", "a reason code"}};
    verb.positionals = {{"CODE", "reason code, errno name or number", true, false}};
    verb.options = host_options() + cli::common_options();
    verb.run = run_explain;
    return verb;
}

}  // namespace kmm::tool_worker
