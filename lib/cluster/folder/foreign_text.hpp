// SPDX-License-Identifier: Apache-2.0
// What stands beside manifests in a repository: whether a text may hold objects that decisions need.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

#include "base/error.hpp"
#include "value/node.hpp"

namespace kmm::cluster {

/// False for the beginning of a text that has no object in it: no document has a member kind, apiVersion or items of
/// its own. Operator configurations have neither.
[[nodiscard]] bool may_hold_objects(std::string_view front);

/// Whether a text says of an object that its group is one of KMM: rules and settings name that group, too.
[[nodiscard]] bool names_kmm_object(std::string_view text);

/// Where a text that may hold objects of KMM names it. Templates, indexes of charts and the like have its name in other
/// texts, too.
enum class KmmNamed { anywhere, as_group };

/// Whether a text that cannot be read may be meant to hold objects of KMM, Nodes or a dump with some.
[[nodiscard]] bool may_be_meant(std::string_view text, KmmNamed where);

/// Whether a text that cannot be read has a word that an object or an operator configuration needs. One with zero bytes
/// may have it in an encoding that was not read.
[[nodiscard]] bool names_object(std::string_view text);

/// Whether each document of a text has neither kind nor apiVersion, whatever stands deeper in it, or is a list of such:
/// a dashboard of Grafana names metrics of KMM, and a catalog of operators its kinds.
[[nodiscard]] bool is_of_others(std::string_view text, const std::string& file);

/// Whether an object is of a kind that decisions do not need, and none that they need is in it.
[[nodiscard]] bool is_foreign_object(const value::Document& document);

/// Whether a kind is needed beside those of KMM.
using KindUse = std::function<bool(const std::string& api_version, const std::string& kind)>;

/// What a file is left out as.
enum class LeftOut { nothing, text, foreign_template };

/// A file that was found, not named, may be a template, or a setting of another program: that no object can be read in
/// it is no fault, unless it looks as if one was meant that decisions need. Removes such faults from those of the file,
/// which begin at `begin`, or makes notes of them. Errors: as TextSource.
[[nodiscard]] LeftOut leave_out_unreadable(const std::string& file, const KindUse& uses, Diagnostics& diagnostics,
                                           std::size_t begin);

}  // namespace kmm::cluster
