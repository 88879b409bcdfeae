// SPDX-License-Identifier: Apache-2.0
#include <cerrno>
#include <csignal>
#include <filesystem>
#include <new>
#include <system_error>

#include <fmt/format.h>

#include "base/text.hpp"
#include "cli/app.hpp"
#include "cli/parse.hpp"
#include "sys/environment.hpp"
#include "sys/input_deadline.hpp"
#include "sys/signals.hpp"
#include "value/writer.hpp"

#ifndef KMM_VERSION
#error "KMM_VERSION is set by the build"
#endif

namespace kmm::cli {
namespace {

/// How errors are shown; guessed from the tokens as long as they are not understood.
struct Presentation {
    std::string output = "table";
    std::string color = "auto";
};

Presentation guess_presentation(const std::vector<std::string>& tokens) {
    Presentation presentation;
    const auto look = [&](std::size_t i, std::string_view name, std::string& value) {
        if (tokens[i] == name && i + 1 < tokens.size()) value = tokens[i + 1];
        if (tokens[i].starts_with(std::string(name) + "=")) value = tokens[i].substr(name.size() + 1);
    };
    for (std::size_t i = 0; i < tokens.size() && tokens[i] != "--"; ++i) {
        look(i, "--output", presentation.output);
        look(i, "--color", presentation.color);
        look(i, "-o", presentation.output);
        if (tokens[i].starts_with("-o") && tokens[i].size() > 2) presentation.output = tokens[i].substr(2);
    }
    return presentation;
}

bool use_color(const std::string& when, bool terminal, const Surroundings& surroundings) {
    if (when == "always") return true;
    if (when == "never") return false;
    return terminal && surroundings.environment("NO_COLOR").value_or("").empty();
}

int report(const Program& program, const Error& error, const Presentation& presentation,
           const Surroundings& surroundings, Console& console) {
    if (program.on_error) program.on_error(error);
    const bool writable = console.out_ok();  // a full disk is not told to the disk
    if (presentation.output == "json" && writable) {
        console.out(error_json(error));
    } else if (presentation.output == "jsonl" && writable) {
        console.out(value::to_json(error_node(error)) + "\n");
    } else if (presentation.output == "yaml" && writable) {
        console.out(value::to_yaml(error_node(error)));
    } else {
        console.err(error_text(error, use_color(presentation.color, console.err_is_terminal(), surroundings)));
    }
    return static_cast<int>(error.exit());
}

Error with_code(const Error& error, Exit exit, const std::string& code) {
    Error told(exit, code, error.message());
    for (auto it = error.context().rbegin(); it != error.context().rend(); ++it) told.add_context(*it);
    for (const auto& [key, value] : error.details()) told.detail(key, value);
    told.hint(error.hint());
    return told;
}

/// Rooms that wait say "interrupted" whatever ended the wait. The exit code names the signal, and --timeout has a code
/// of its own.
Error by_cause(const Error& error) {
    if (error.exit() == Exit::timeout && error.code() == "interrupted")
        return with_code(error, Exit::timeout, "timeout");
    if (error.exit() != Exit::interrupted || sys::interrupt_signal() == 0) return error;
    return with_code(error, sys::interrupt_exit(), error.code());
}

Exit run_command(const Program& program, const Command& command, const Surroundings& surroundings, Console& console) {
    if (command.request == Request::version) {
        console.out(fmt::format("{} {}\n", program.name, KMM_VERSION));
        return Exit::ok;
    }
    if (command.request == Request::help) {
        const bool group = command.verb == nullptr && !command.group.empty();
        console.out(group ? group_help_text(program, command.group) : help_text(program, command.verb));
        return Exit::ok;
    }
    sys::take_trusted_environment();
    sys::require_open_files();
    const Args& args = command.args;
    const std::string color = args.get("color").value_or("auto");
    Context context{console, program, *command.verb, args.get("output").value_or("table"), 0, false, false};
    if (const auto text = args.get("timeout")) {
        const auto timeout = base::parse_duration(*text);
        if (timeout && timeout->count() > 0) sys::limit_input_waits(*timeout);
    }
    context.verbosity = args.flag("quiet") ? -1 : static_cast<int>(args.all("verbose").size());
    context.color_out = use_color(color, console.out_is_terminal(), surroundings);
    context.color_err = use_color(color, console.err_is_terminal(), surroundings);
    if (!command.verb->run) throw bug(fmt::format("verb '{}' has no action", command.verb->name));
    return command.verb->run(args, context);
}

}  // namespace

std::size_t Context::table_width() const {
    return console.out_is_terminal() && output != "wide" ? console.width() : 0;
}

int run_main(const Program& program, int argc, const char* const* argv, Console& console) {
    (void)std::signal(SIGPIPE, SIG_IGN);  // a closed pipe is an EPIPE, which the console remembers
    (void)std::signal(SIGXFSZ,
                      SIG_IGN);  // a limit on the size of files is an EFBIG, which is told with the file's name
    const Surroundings surroundings = process_surroundings();
    const std::vector<std::string> tokens(argv + (argc > 0 ? 1 : 0), argv + argc);
    Presentation presentation = guess_presentation(tokens);
    const auto unexpected = [&](Error error) {
        return report(
            program, std::move(error)
                .detail("version", fmt::format("{} {}", program.name, KMM_VERSION))
                .hint("this is a bug in kmm-tools, please report it with the command line"),
            presentation, surroundings, console
        );
    };
    try {
        const Command command = parse_command(program, tokens, surroundings);
        if (const auto output = command.args.get("output")) presentation.output = *output;
        if (const auto color = command.args.get("color")) presentation.color = *color;
        const Exit exit = run_command(program, command, surroundings, console);
        if (exit == Exit::ok && !console.out_ok()) {
            throw from_errno(console.out_errno(), "writing the result to standard output");
        }
        return static_cast<int>(exit);
    } catch (const Error& error) {
        return report(program, by_cause(error), presentation, surroundings, console);
    } catch (const std::bad_alloc&) {
        return report(program, Error(Exit::bug, "out-of-memory", "out of memory"), presentation, surroundings, console);
    } catch (const std::filesystem::filesystem_error& fault) {
        return report(program,
                      by_cause(from_errno(fault.code().value(), "cannot read " + base::escape(fault.path1().native()))),
                      presentation, surroundings, console);
    } catch (const std::system_error& fault) {
        if (fault.code() != std::errc::resource_unavailable_try_again)
            return unexpected(Error(Exit::bug, "bug", fmt::format("unexpected failure: {}", fault.what())));
        return report(
            program,
            from_errno(EAGAIN, "cannot start a thread").hint("a limit of processes or memory is too low: ulimit -a"),
            presentation, surroundings, console);
    } catch (const std::exception& fault) {
        return unexpected(Error(Exit::bug, "bug", fmt::format("unexpected failure: {}", fault.what())));
    }
}

}  // namespace kmm::cli
