// SPDX-License-Identifier: Apache-2.0
#include "cluster/worker/worker_bundle.hpp"

#include <fmt/format.h>

#include "base/printable.hpp"
#include "base/text.hpp"
#include "cluster/seam/worker_process.hpp"
#include "sys/trust_script.hpp"

namespace kmm::cluster {
namespace {

constexpr std::string_view k_machine = "machine ";
constexpr std::string_view k_damaged = "damaged";
constexpr std::string_view k_changeable = "other users can change ";

constexpr std::string_view k_own = R"sh(
v=$(kmm-worker --version 2>/dev/null </dev/null)
[ "$v" = "kmm-worker @VERSION@" ] || { [ -z "$v" ] || echo "@FOUND@$v" >&2; echo @MISSING@ >&2; exit 127; }
echo @STARTED@; echo @STARTED@ >&2; exec kmm-worker "$@"
)sh";

constexpr std::string_view k_brought = R"sh(
tool() { case $(command -v "$1" 2>&1) in /*) "$@";; *) /bin/busybox "$@";; esac; }
@TRUST@d=$1 f=$(cd -P "${KMM_BUNDLE_DIR:-@DIRECTORY@}" 2>/dev/null && pwd -P)/kmm-worker-$1.run; shift
[ -f "$f" ] && [ -z "$(changeable "$f")" ] && [ "$(tool sha256sum <"$f")" = "$d  -" ] || { echo @MISSING@ >&2; exit 127; }
echo @STARTED@; echo @STARTED@ >&2; exec sh "$f" "$@"
)sh";

/// The file is complete under a name of its own before it gets that by which it is found. A bundle unpacks itself into
/// worker-ID beside it, ID standing in its head. The directory may be one, as /tmp, where others have files, too:
/// theirs are not followed, read or removed.
constexpr std::string_view k_bring = R"sh(
d=$1 b=${KMM_BUNDLE_DIR:-@DIRECTORY@}
tool() { case $(command -v "$1" 2>&1) in /*) "$@";; *) /bin/busybox "$@";; esac; }
no() { printf '@REFUSED@%s\n' "$1" >&2; exit 73; }
@TRUST@have=$(tool uname -m)
[ "$have" = "$2" ] || no "@MACHINE@$have"
umask 077
e=$(tool mkdir -p "$b" 2>&1) || no "$e"
at=$(cd -P "$b" 2>/dev/null && pwd -P) || no "cannot enter $b"
b=$at e=$(changeable "$at")
[ -z "$e" ] || no "@CHANGEABLE@$e"
n=$b/.kmm-worker-$d.$$
trap 'tool rm -f "$n"; exit 73' HUP INT TERM
e=$({ tool rm -f "$n" && set -C && tool cat >"$n"; } 2>&1) || { tool rm -f "$n" 2>/dev/null; no "$e"; }
s=$(tool sha256sum "$n")
[ "${s%% *}" = "$d" ] || { tool rm -f "$n"; no @DAMAGED@; }
tool sync "$n" 2>/dev/null || tool sync
e=$(tool mv -f "$n" "$b/kmm-worker-$d.run" 2>&1) || { tool rm -f "$n"; no "$e"; }
trap - HUP INT TERM
id() { tool sed -n '/^id=/{s/^id=//p;q;}' "$1"; }
keep=$(id "$b/kmm-worker-$d.run")
for f in "$b"/kmm-worker-*.run; do
  [ -f "$f" ] && [ "$f" != "$b/kmm-worker-$d.run" ] && [ -z "$(changeable "$f")" ] || continue
  i=$(id "$f") runs=
  case $i in *[!0-9A-Za-z]*) i=;; esac
  if [ -n "$i" ] && [ "$i" != "$keep" ]; then
    for x in /proc/[0-9]*/exe; do case $(tool readlink "$x" 2>/dev/null) in */"worker-$i"/*) runs=1; break;; esac; done
    [ -z "$runs" ] || continue
    tool rm -rf "$b/worker-$i"
  fi
  tool rm -f "$f"
done
tool find "$b" -name '.kmm-worker-*' -mmin +60 -exec rm -f {} \; 2>/dev/null
exit 0
)sh";

std::string filled(std::string_view script, const std::string& version = "") {
    std::string text(script);
    for (const auto& [word, value] : {std::pair<std::string_view, std::string_view>{"@VERSION@", version},
                                      {"@TRUST@", sys::k_trust_script},
                                      {"@FOUND@", k_version_marker},
                                      {"@MISSING@", k_missing_marker},
                                      {"@STARTED@", k_started_marker},
                                      {"@DIRECTORY@", k_bundle_directory},
                                      {"@REFUSED@", k_not_brought_marker},
                                      {"@MACHINE@", k_machine},
                                      {"@CHANGEABLE@", k_changeable},
                                      {"@DAMAGED@", k_damaged}})
        for (auto at = text.find(word); at != std::string::npos; at = text.find(word, at + value.size()))
            text.replace(at, word.size(), value);
    return text;
}

}  // namespace

std::string own_worker_script(const std::string& version) { return filled(k_own, version); }
std::string bundle_script() { return filled(k_brought); }
std::string bring_script() { return filled(k_bring); }

Error not_brought(const std::string& node, const std::string& words, const WorkerBundle& bundle) {
    if (words.starts_with(k_machine))
        return Error(Exit::config, "worker-not-brought",
                     fmt::format("node {}: the machine is {}, the kmm-worker here is for {}", node,
                                 base::printable(words.substr(k_machine.size())), bundle.machine))
            .hint("install kmm-tools on the node");
    if (words == k_damaged)
        return Error(Exit::integrity, "worker-not-brought",
                     fmt::format("node {}: kmm-worker arrived there damaged, expected SHA-256 {}", node, bundle.digest))
            .hint("repeat the command");
    Error error(Exit::io, "worker-not-brought",
                fmt::format("node {}: kmm-worker could not be brought there: {}", node, base::printable(words)));
    if (words.starts_with(k_changeable))
        return std::move(error).hint(
            "it must belong to root or to the user of ssh and be writable for nobody else, for root all above it, "
            "too; --worker \"env KMM_BUNDLE_DIR=DIR bundle\" names another directory");
    return std::move(error).hint(
        fmt::format("{} there must be writable for the user of ssh (else --worker \"sudo -n bundle\") and have 60 MB "
                    "free; or install kmm-tools on the node",
                    k_bundle_directory));
}

}  // namespace kmm::cluster
