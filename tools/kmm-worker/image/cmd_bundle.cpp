// SPDX-License-Identifier: Apache-2.0
// The worker as one file for nodes with another C library, or with none but busybox.
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <map>

#include <fmt/format.h>

#include "base/error.hpp"
#include "cli/document.hpp"
#include "digest/digest.hpp"
#include "kmm-worker/commands.hpp"
#include "kmm-worker/job.hpp"
#include "kmm-worker/result.hpp"
#include "net/ca_bundle.hpp"
#include "registry/unpack/layer_writer.hpp"
#include "sys/fd.hpp"
#include "sys/file_ops.hpp"
#include "sys/shared_library.hpp"
#include "sys/temp_dir.hpp"
#include "sys/trust_script.hpp"

namespace kmm::tool_worker {

namespace {

constexpr const char* k_bundle_variable = "KMM_BUNDLE_FILE";  // set by the bundle for the worker that it starts
constexpr std::size_t k_library_bytes = 256U << 20U;

/// What begins the file. It needs a POSIX shell, and of tools what busybox has; `busybox NAME` where they have no names
/// of their own. @WORDS@ are replaced. The loader has the worker's name, as that is what the kernel logs of a process.
constexpr std::string_view k_start = R"sh(#!/bin/sh
# kmm-worker @VERSION@ for @MACHINE@ with all that it needs. It is unpacked once, and proven whenever it is started.
id=@DIGEST@
tool() { case $(command -v "$1" 2>&1) in /*) "$@";; *) /bin/busybox "$@";; esac; }
fail() { printf 'error: %s\n  hint:    %s\n  code:    bundle-not-started\n' "$1" "$2" >&2; exit 74; }
@TRUST@other='name another directory: KMM_BUNDLE_DIR=DIR'
machine=$(tool uname -m)
[ "$machine" = @MACHINE@ ] || fail "this kmm-worker is for @MACHINE@, the machine is $machine" 'make one on such a machine: kmm-worker bundle'
base=${KMM_BUNDLE_DIR-}
if [ -z "$base" ]; then
  if [ "$me" = 0 ]; then base=/var/lib/kmm-tools
  elif [ -n "${HOME-}" ]; then base=$HOME/.cache/kmm-tools
  else fail 'there is no directory to unpack into: HOME is not set' "$other"; fi
fi
[ -d "$base" ] || (umask 077; tool mkdir -p "$base") || fail "cannot create $base" "$other"
at=$(cd -P "$base" 2>/dev/null && pwd -P) || fail "cannot enter $base" "$other"
base=$at dir=$at/worker-$id
trusted() { theirs=$(changeable "$1"); [ -z "$theirs" ] || fail "other users can change $theirs, and with it what is run" "$other"; }
[ "$me" != 0 ] || trusted "$base"
proven() { (cd "$1" 2>/dev/null && [ "$(tool sha256sum @NAMES@ 2>/dev/null | tool sha256sum)" = '@PROOF@  -' ] && for x in @UNREAD@; do [ -s "$x" ] || exit 1; done); }
if ! proven "$dir"; then
  new=$base/.worker-$id.$$
  (umask 077; tool rm -rf "$new" && tool mkdir "$new") || fail "cannot create $new" "$other"
  trap 'tool rm -rf "$new"; exit 74' HUP INT TERM
  tool tail -n +@LINES@ "$0" >"$new/all" || { tool rm -rf "$new"; fail "cannot unpack into $new" "free space there, or $other"; }
  sum=$(tool sha256sum "$new/all")
  [ "${sum%% *}" = "$id" ] || { tool rm -rf "$new"; fail "$0 is damaged: expected SHA-256 $id of what is packed, found ${sum%% *}" 'copy it again'; }
  { tool gzip -dc <"$new/all" | tool tar -xf - -C "$new"; } && tool rm "$new/all" && proven "$new" ||
    { tool rm -rf "$new"; fail "cannot unpack into $new" "free space there, or $other"; }
  proven "$dir" || { tool rm -rf "$dir"; tool mv "$new" "$dir"; }
  tool rm -rf "$new"
  trap - HUP INT TERM
fi
trusted "$dir"
found=$("$dir/kmm-worker" --help 2>&1) || fail "programs in $base cannot be run: is it mounted noexec?" "$other"
if [ -z "${SSL_CERT_FILE-}" ]; then
  own=1
  for file in @BUNDLES@; do [ ! -r "$file" ] || own=; done
  [ -z "$own" ] || export SSL_CERT_FILE="$dir/ca-certificates.crt"
fi
export @VARIABLE@="$0"
exec "$dir/kmm-worker" --library-path "$dir/lib" "$dir/program" "$@"
)sh";

struct LoadedObjects {
    std::string loader;                            ///< path of the dynamic loader
    std::map<std::string, std::string> libraries;  ///< name -> path
};

int take_object(dl_phdr_info* object, std::size_t /*size*/, void* user) {
    auto& loaded = *static_cast<LoadedObjects*>(user);
    const std::string path = object->dlpi_name == nullptr ? "" : object->dlpi_name;
    if (path.find('/') != std::string::npos) loaded.libraries.emplace(path.substr(path.rfind('/') + 1), path);
    for (int i = 0; path.empty() && i < object->dlpi_phnum; ++i) {
        const auto& header = object->dlpi_phdr[i];
        if (header.p_type == PT_INTERP)
            loaded.loader =
                reinterpret_cast<const char*>(object->dlpi_addr + header.p_vaddr);  // NOLINT: as the format says
    }
    return 0;
}

LoadedObjects loaded_objects() {
    const sys::SharedLibrary network("libcurl.so.4",
                                     "libcurl4");  // this one and the next are loaded when they are needed otherwise
    const sys::SharedLibrary archives("libarchive.so.13", "libarchive13");
    LoadedObjects loaded;
    (void)::dl_iterate_phdr(take_object, &loaded);
    if (loaded.loader.empty() || loaded.libraries.empty()) throw bug("the libraries of this program are not known");
    loaded.libraries.erase(loaded.loader.substr(loaded.loader.rfind('/') + 1));
    return loaded;
}

registry::LayerFile file_at(std::string name, const std::string& path, bool executable) {
    return {std::move(name), executable, [path] { return sys::read_file(path, k_library_bytes); }};
}

/// ICU's tables, 30 MB, are only read with XML, which libarchive needs for formats that no image has. The library must
/// be there, its tables are zeros. To prove them at each start would take longer than to prove all the rest.
bool is_table(std::string_view name) { return name.starts_with("lib/libicudata."); }

std::string without_tables(std::string library) {
    constexpr std::size_t table_bytes = 1U << 20U;
    ElfW(Ehdr) header{};
    if (library.size() < sizeof header) return library;
    std::memcpy(&header, library.data(), sizeof header);
    for (std::size_t i = 0; i < header.e_phnum; ++i) {
        ElfW(Phdr) segment{};
        const std::size_t at = header.e_phoff + i * sizeof segment;
        if (at + sizeof segment > library.size()) break;
        std::memcpy(&segment, library.data() + at, sizeof segment);
        const bool table = segment.p_type == PT_LOAD && segment.p_flags == PF_R && segment.p_filesz > table_bytes;
        if (table && segment.p_offset <= library.size() && segment.p_filesz <= library.size() - segment.p_offset) {
            std::memset(library.data() + segment.p_offset, 0, segment.p_filesz);
        }
    }
    return library;
}

std::string with_words(std::string text, const std::map<std::string, std::string>& words) {
    for (const auto& [word, value] : words) {
        for (auto at = text.find(word); at != std::string::npos; at = text.find(word, at + value.size()))
            text.replace(at, word.size(), value);
    }
    return text;
}

/// The bytes of a bundle of this very program.
std::string make_bundle() {
    const LoadedObjects loaded = loaded_objects();
    const auto readable = [](const std::string& file) { return ::access(file.c_str(), R_OK) == 0; };
    const std::string authorities = net::system_ca_bundle(readable);
    if (authorities.empty()) {
        throw Error(Exit::not_found, "not-found",
                    "this system has no file with certificate authorities, which belong into the bundle")
            .hint("install the package ca-certificates");
    }
    std::map<std::string, registry::LayerFile> files;
    for (const auto& [name, path] : loaded.libraries) {
        registry::LayerFile file = file_at("lib/" + name, path, true);
        if (is_table("lib/" + name))
            file.bytes = [path = path] { return without_tables(sys::read_file(path, k_library_bytes)); };
        files.emplace("lib/" + name, std::move(file));
    }
    files.emplace("ca-certificates.crt", file_at("ca-certificates.crt", authorities, false));
    files.emplace("kmm-worker", file_at("kmm-worker", loaded.loader, true));
    if (::access("/proc/self/exe", F_OK) != 0) {
        const int saved = errno;
        throw from_errno(saved, "cannot find this program in /proc/self/exe").hint("mount /proc here");
    }
    files.emplace("program", file_at("program", "/proc/self/exe", true));
    std::vector<registry::LayerFile> sorted;
    std::string names, sums, unread;
    for (auto& [name, file] : files) {
        if (is_table(name)) {
            unread += " " + name;
        } else {
            names += " " + name;
            sums += fmt::format("{}  {}\n", digest::sha256_hex(file.bytes()), name);
        }
        sorted.push_back(std::move(file));
    }
    const sys::TempDir scratch("kmm-bundle-");
    const std::string packed = scratch.path() + "/packed";
    sys::LinuxFileOps ops;
    const sys::Fd fd(ops.create(packed, 0600));
    const registry::WrittenLayer layer = registry::write_layer(sorted, image::Compression::gzip, fd.get());
    utsname machine{};
    (void)::uname(&machine);
    std::string places;
    (void)net::system_ca_bundle([&](const std::string& place) {
        places += (places.empty() ? "" : " ") + place;
        return false;
    });
    const std::string script = with_words(std::string(k_start), {{"@TRUST@", std::string(sys::k_trust_script)}});
    const std::string start = with_words(
        script, {{"@VERSION@", KMM_VERSION},
                               {"@MACHINE@", machine.machine},
                               {"@DIGEST@", layer.digest.hex},
                               {"@NAMES@", names.substr(1)},
                               {"@PROOF@", digest::sha256_hex(sums)},
                               {"@UNREAD@", unread},
                               {"@BUNDLES@", places},
                               {"@VARIABLE@", k_bundle_variable},
                               {"@LINES@", std::to_string(std::count(script.begin(), script.end(), '\n') + 1)}});
    return start + sys::read_file(packed, k_library_bytes);
}

/// Whoever may read the file may start it; of another kind, or of somebody else, it is left as it is.
void make_executable(const std::string& file) {
    const sys::Fd opened(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY));
    struct stat facts {};
    if (!opened || ::fstat(opened.get(), &facts) != 0 || !S_ISREG(facts.st_mode)) return;
    static_cast<void>(::fchmod(opened.get(), (facts.st_mode | (facts.st_mode & 0444U) >> 2U) & 07777U));
}

WorkerResult bundle(const cli::Args& args, cli::Context& context) {
    const std::string out = args.wanted("out", "FILE", "kmm-worker bundle --out kmm-worker.run");
    const char* running = std::getenv(k_bundle_variable);
    const std::string bytes = running != nullptr ? sys::read_file(running, k_library_bytes) : make_bundle();
    if (out == "-" || out == "/dev/stdout") {
        context.console.out_alone("");  // which takes care of texts: these bytes go past it
        sys::LinuxFileOps().write(STDOUT_FILENO, bytes);
    } else {
        cli::write_report(context, out, bytes);
        make_executable(out);
    }
    WorkerResult result;
    result.verb = "bundle";
    result.node = this_node(kmod::HostPaths{});
    result.outcome = "bundled";
    return result;
}

}  // namespace

cli::Verb verb_bundle() {
    cli::Verb verb;
    verb.name = "bundle";
    verb.summary = "write this program with its libraries into one file";
    verb.description =
        "The file runs on any Linux of the same machine type with a POSIX shell: with an older C library, on another "
        "distribution, or with busybox alone. It contains this program, its libraries with the loader, and "
        "certificate authorities, which are used where the node has none.\n\n"
        "When started, it unpacks itself once into /var/lib/kmm-tools (for users other than "
        "root ~/.cache/kmm-tools; KMM_BUNDLE_DIR names another directory), and runs from there. What it "
        "unpacks, and what it finds there, must have the SHA-256 that it knows; what has another is unpacked again.";
    verb.examples = {
        {"kmm-worker bundle --out kmm-worker.run", "then copy it to a node, and start it there like kmm-worker"}};
    auto out = cli::required(cli::option("out", "FILE", "file to write, - for standard output"));
    verb.options = {out};
    verb.options = verb.options + cli::common_options();
    verb.run = [](const cli::Args& args, cli::Context& context) {
        return run_and_report(context, [&] { return bundle(args, context); });
    };
    return verb;
}

}  // namespace kmm::tool_worker
