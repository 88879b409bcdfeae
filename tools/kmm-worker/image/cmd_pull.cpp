// SPDX-License-Identifier: Apache-2.0
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include <fmt/format.h>

#include "base/text.hpp"
#include "kmm-worker/commands.hpp"
#include "kmm-worker/image/image_step.hpp"
#include "kmm-worker/job.hpp"
#include "kmm-worker/result.hpp"
#include "registry/client/document_service.hpp"
#include "registry/client/request.hpp"
#include "registry/layer/path_rules.hpp"
#include "registry/pull/puller.hpp"
#include "registry/unpack/layer_service.hpp"
#include "sandbox/sandbox.hpp"
#include "sys/directory.hpp"
#include "sys/trust.hpp"

namespace kmm::tool_worker {

namespace {

namespace fs = std::filesystem;

/// Makes sure that DIR is an empty directory; true if it was created.
bool prepare(const std::string& directory) {
    if (::mkdir(directory.c_str(), 0700) == 0) return true;
    const int error = errno;
    if (const std::string above = fs::path(directory).parent_path().native();
        error == ENOENT && !above.empty() && ::access(above.c_str(), F_OK) != 0) {
        throw from_errno(error, fmt::format("cannot create {}", base::escape(directory)))
            .hint(
                fmt::format("only the last directory is made; mkdir -p {} makes those above it", base::escape(above)));
    }
    if (error != EEXIST) throw from_errno(error, fmt::format("cannot create {}", base::escape(directory)));
    std::error_code failed;
    std::string plain = directory;
    while (plain.size() > 1 && plain.ends_with('/')) plain.pop_back();
    if (const auto target = fs::read_symlink(plain, failed); !failed) {
        throw Error(Exit::io, "out-dir",
                    fmt::format("--out {}: expected an empty or absent directory, found a symbolic link to {}",
                                base::escape(directory), base::escape(target.native())))
            .hint("links are not followed there: name the directory itself");
    }
    failed.clear();
    const bool is_directory = fs::is_directory(directory, failed);
    const bool empty = is_directory && (fs::is_empty(directory, failed) || registry::has_unfinished_pull(directory));
    if (failed) throw from_errno(failed.value(), fmt::format("cannot look into {}", base::escape(directory)));
    if (!empty) {
        throw Error(Exit::io, "not-empty",
                    fmt::format("--out {}: expected an empty or absent directory, found {}", base::escape(directory),
                                is_directory ? "one that is not empty" : "a file"))
            .hint("name another directory, which will be made");
    }
    return false;
}

/// Before the first byte comes. Where a directory that was made here may have to be removed again, that is all that is
/// done to the one above.
void close_sandbox_of_pull(const registry::PullRequest& request, const std::string& out, cli::Context& context) {
    std::vector<std::string> writable{out, "/dev/null"};
    if (!request.cache_dir.empty() && !sys::trust_fault(request.cache_dir)) {  // the pull refuses another one
        try {
            sys::make_directories(request.cache_dir, 0700);
            writable.push_back(request.cache_dir);
        } catch (const Error&) {  // the pull goes on without a cache, and says so
        }
    }
    for (const char* place :
         std::initializer_list<const char*>{std::getenv("KMM_TERMINATION_LOG"), "/dev/termination-log"}) {
        if (place != nullptr && ::access(place, W_OK) == 0) writable.emplace_back(place);
    }
    sandbox::SandboxReport sandbox;
    sandbox::forbid_writes(writable, sandbox, sys::parent_of(out));
    sandbox::forbid_programs(sandbox);
    tell_sandbox(sandbox, context);
}

/// What was asked for and is not there, although the image as such is sound.
void warn_of_absent(const registry::PullRequest& request, const registry::PullResult& pulled,
                    std::vector<std::string>& warnings) {
    const std::string firmware = (fs::path("/") / request.firmware_path / "").lexically_normal().native();
    bool has_module = false;
    bool has_firmware = request.firmware_path.empty();
    pulled.files.each([&](const registry::ExtractedFile& file) {
        has_module = has_module || registry::ends_like_module(file.path);
        has_firmware = has_firmware || file.path.starts_with(firmware);
    });
    if (!has_module) warnings.push_back("module-not-in-image: no .ko file is in what was taken");
    if (!has_firmware)
        warnings.push_back("firmware-not-in-image: no file is in " + base::escape(request.firmware_path));
}

/// Removes what was pulled, and the directory where it `was_made`. Faults are passed over: the error that led here is
/// the one to be told.
void leave_nothing(const std::string& out, bool was_made) {
    std::error_code failed;
    std::vector<fs::path> entries;
    for (fs::directory_iterator it(out, failed), end; !failed && it != end; it.increment(failed))
        entries.push_back(it->path());
    for (const auto& entry : entries) fs::remove_all(entry, failed);
    if (was_made) static_cast<void>(::rmdir(out.c_str()));  // fs::remove tries unlink first, which the sandbox forbids
}

/// Returns whether --out was made.
bool pull(const cli::Args& args, cli::Context& context, WorkerResult& result) {
    sys::LinuxClock clock;
    const auto start = clock.monotonic();
    const auto parser = start_parser();
    const kmod::HostPaths host = host_paths(args);
    const auto out = args.wanted("out", "DIR", "kmm-worker pull REF --out DIR");
    result.verb = "pull";
    result.node = this_node(host);
    registry::PullRequest request =
        prepare_request(args, args.positional("REF"), timeout_of(args), host, {}, result.warnings);
    request.dir_name = args.get("dir-name").value_or("/opt");
    request.firmware_path = args.get("image-firmware").value_or("");
    request.file_digests = shows_digests(context);
    request.durable = true;
    request.parser = parser.get();
    // Prepared for layers it reads manifests, too; where layers are cached, it is never asked for one.
    parser->begin((request.cache_dir.empty() ? registry::layer_service() : registry::document_service()).number);
    if (!args.get("platform")) request.architecture = result.node.architecture;
    if (args.all("kernel").empty()) require_release(host, result.node);
    want_kernels(request, args, result.node.kernel);
    const bool created = prepare(out);
    close_sandbox_of_pull(request, out, context);
    try {
        registry::PullResult pulled;
        in_default_directories(request.dir_name, !args.get("dir-name"),
                               [&] { pulled = run_pull(request, out, context, clock); });
        warn_of_absent(request, pulled, pulled.warnings);
        result.image = pulled.reference;
        result.digest = pulled.digest;
        result.files = std::move(pulled.files);
        result.warnings.insert(result.warnings.end(), pulled.warnings.begin(), pulled.warnings.end());
    } catch (...) {
        if (created)
            static_cast<void>(::rmdir(out.c_str()));  // fs::remove tries unlink first, which the sandbox forbids there
        throw;
    }
    tell_parser(*parser, context);
    result.outcome = "pulled";
    result.durations_ms["pull"] = static_cast<std::uint64_t>((clock.monotonic() - start).count());
    return created;
}

}  // namespace

cli::Verb verb_pull() {
    cli::Verb verb;
    verb.name = "pull";
    verb.summary = "pull, verify and extract an image";
    verb.description =
        "Extracts the directory of the running kernel, or of --kernel, and the firmware of --image-firmware. Files "
        "are written below --out at their paths in the image; after an error nothing is left. Needs no root.";
    verb.examples = {{"kmm-worker pull reg/drivers:v2 --out drivers", "for the running kernel"},
                     {"kmm-worker pull reg/drivers:v2 --out drivers --kernel all", "whatever is in it"},
                     {"kmm-worker pull oci-archive:drivers.tar --out drivers", "from a file, without a registry"}};
    verb.positionals = {{"REF",
                         "image reference; or oci:DIR[:TAG], oci-archive:FILE[:TAG], docker-archive:FILE[:NAME:TAG], "
                         "dir:DIR with .ko files",
                         true, false}};
    auto out = cli::required(cli::option("out", "DIR", "empty or absent directory for the files"));
    auto kernel = cli::repeatable(cli::option("kernel", "K", "kernel to take instead of the running one, or all"));
    verb.options = {out, kernel};
    for (auto& option : module_options()) {
        if (option.name == "dir-name" || option.name == "image-firmware") verb.options.push_back(option);
    }
    verb.options = verb.options + pull_options() + host_options() + cli::common_options();
    verb.run = [](const cli::Args& args, cli::Context& context) {
        try {
            bool was_made = false;
            const auto exit = run_and_report(context, [&] {
                return with_warnings([&](WorkerResult& result) { was_made = pull(args, context, result); });
            });
            if (exit == Exit::ok && !context.console.out_ok()) leave_nothing(args.get("out").value_or(""), was_made);
            return exit;
        } catch (const Error& error) {
            throw as_usage_fault(error);  // image and paths are from the command line
        }
    };
    return verb;
}

}  // namespace kmm::tool_worker
