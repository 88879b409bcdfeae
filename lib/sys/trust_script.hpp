// SPDX-License-Identifier: Apache-2.0
// What sys/trust.hpp asks of files, for scripts of a POSIX shell that start programs where a user of the node has named
// a directory.
#pragma once

#include <string_view>

namespace kmm::sys {

/// A function `changeable PATH` that prints what of an absolute path without links other users than the caller and root
/// can change or replace, nothing if there is none. Root asks it of the whole way, others of PATH alone, which their
/// group may write. It needs a function `tool`, which runs what busybox has.
///
/// GNU's ls marks a file with an access control list, whose names may do what the mode says of the group. Where ls is
/// another one, as busybox's, root takes it that the group root has members.
inline constexpr std::string_view k_trust_script = R"sh(me=$(tool id -u) marks=
case $(tool ls --version 2>/dev/null) in *GNU*) marks=1;; esac
changeable() (
  at=$1
  set -f
  while :; do
    set -- $(tool ls -ldn "$at" 2>/dev/null)
    case $1/$3/$4 in
    l*) echo "$at"; break;;
    d????????[tT]*/0/* | d????????[tT]*/"$me"/*) ;;
    ????????w*) echo "$at"; break;;
    ?????w????[!./]*) echo "$at"; break;;  # a list of access
    ?????w*/0/0) [ "$me$marks" != 0 ] || { echo "$at"; break; };;  # the group root has no members but root
    ?????w*/0/* | ?????w*/"$me"/*) [ "$me" != 0 ] || { echo "$at"; break; };;
    */0/* | */"$me"/*) ;;
    *) echo "$at"; break;;
    esac
    [ "$me" = 0 ] && [ "$at" != / ] || break
    at=${at%/*}; at=${at:-/}
  done
)
)sh";

}  // namespace kmm::sys
