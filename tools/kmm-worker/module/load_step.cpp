// SPDX-License-Identifier: Apache-2.0
#include "kmm-worker/module/load_step.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/text.hpp"

namespace kmm::tool_worker {

using std::chrono::milliseconds;

cli::Positional config_positional() {
    return {"CONFIG",
            "KMM's ModuleConfig as YAML or JSON, - for standard input; pull Secrets may follow as further documents",
            false, false};
}

cli::Option firmware_option() {
    return cli::option("firmware-path", "DIR", "host directory for firmware, set as the kernel's search path");
}

cli::Option verify_option() {
    return cli::with_default(
        cli::with_environment(
            cli::option("verify-after", "DURATION", "check the live module again after this time; 0s disables"),
            "KMM_VERIFY_AFTER"),
        "2s");
}

UnknownFields unknown_fields(const cli::Context& context) {
    return context.verb.name.starts_with("kmod ") ? UnknownFields::warn : UnknownFields::refuse;
}

std::uint64_t since(const sys::Clock& clock, milliseconds start) {
    return static_cast<std::uint64_t>((clock.monotonic() - start).count());
}

milliseconds left(const Job& job, const sys::Clock& clock, milliseconds start, milliseconds otherwise) {
    if (job.deadline.count() == 0) return otherwise;
    const milliseconds rest = job.deadline - (clock.monotonic() - start);
    if (rest >= std::min(milliseconds(2000), job.deadline / 2)) return std::max(rest, milliseconds(100));
    throw Error(Exit::timeout, "timeout",
                fmt::format("not enough of --timeout {} left to start a kernel call; nothing was changed",
                            base::format_duration(job.deadline)))
        .hint("run the same command again with a longer --timeout");
}

WorkerResult start_result(const std::string& verb, const Job& job) {
    WorkerResult result;
    result.verb = verb;
    result.node = job.node;
    result.warnings = job.warnings;
    return result;
}

std::string outcome_of(const kmod::Report& report) {
    const auto main = std::find_if(report.modules.begin(), report.modules.end(),
                                   [](const auto& m) { return m.role == kmod::Role::main; });
    return main == report.modules.end() ? "loaded" : std::string(kmod::to_string(main->action));
}

void take(WorkerResult& result, kmod::Report report) {
    result.modules = std::move(report.modules);
    result.warnings.insert(result.warnings.end(), report.warnings.begin(), report.warnings.end());
    result.new_taint = report.new_taint;
}

void require_first_time(bool wanted, const std::string& outcome, const std::string& module) {
    if (!wanted || (outcome != "already-loaded" && outcome != "not-loaded")) return;
    const bool loading = outcome == "already-loaded";
    throw Error(Exit::refused, "module-refused",
                fmt::format("module {} is {}, and modprobe.args holds --first-time", module,
                            loading ? "live already" : "not live"))
        .detail("errno", loading ? "EEXIST" : "ENOENT")
        .hint("leave --first-time out if that is fine");
}

}  // namespace kmm::tool_worker
