// SPDX-License-Identifier: Apache-2.0
// Applications that run on some versions of Kubernetes only: from the metadata, and from programs that are asked.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "kubernetes/inventory/inventory.hpp"
#include "kubernetes/versions/version.hpp"

namespace kmm::kubernetes {

/// The least or the highest version that an application supports, as MAJOR.MINOR.PATCH or MAJOR.MINOR.
struct VersionBound {
    Version version;              ///< patch 0 of a MAJOR.MINOR
    bool is_whole_minor = false;  ///< MAJOR.MINOR: as the highest one it includes every patch of that minor

    /// nullopt for a text of another form.
    [[nodiscard]] static std::optional<VersionBound> parse(std::string_view text);
    /// "v1.34.4" or "v1.34".
    [[nodiscard]] std::string text() const;
};

/// What a bound looks like, for messages.
inline constexpr std::string_view k_bound_form = "MAJOR.MINOR as v1.34, or MAJOR.MINOR.PATCH";

/// Both ends belong to it; a missing end is none.
struct VersionBounds {
    std::optional<VersionBound> minimum, maximum;

    [[nodiscard]] bool accept(const Version& version) const;
    /// "v1.30 to v1.34", "v1.30 and later", "v1.34 and earlier".
    [[nodiscard]] std::string text() const;
    /// Whether some version is accepted.
    [[nodiscard]] bool has_any() const;
};

/// One entry of `applications:`. It is in a cluster if a Pod has the labels, or Helm has the release, in its namespace.
struct Application {
    std::string name;
    std::string ns;                      ///< "": in any namespace
    selector::LabelSelector selector;  ///< of Pods; empty with `release`
    std::string release;                 ///< of Helm; "" with `selector`
    VersionBounds supported;
    bool is_cni = false;                 ///< the network add-on, which has a check of its own
    Position position;
};

/// Whether a cluster has an application; nullopt, with `reason` set, if the inventory cannot say.
[[nodiscard]] std::optional<bool> is_installed(const Application& application, const Inventory& inventory,
                                               std::string& reason);

/// What one program said of one application.
struct ProgramReply {
    std::string program;          ///< its file name
    std::string name;             ///< of the application; that of the program if it does not say
    bool is_supported = true;
    std::string reason;           ///< why not, for people
    VersionBounds supported;
};

/// What all programs said of the way to one version.
struct ProgramReplies {
    std::vector<ProgramReply> replies;
    std::vector<std::string> faults;  ///< programs that gave no answer, each with its name
};

/// Programs that know which versions their application supports.
class AppPrograms {
public:
    virtual ~AppPrograms() = default;
    /// All of them, asked for `from` -> `to`. The same question has the same answer. Errors: only those that end the
    /// call.
    [[nodiscard]] virtual const ProgramReplies& ask(const Version& from, const Version& to) = 0;
};

/// Reads the answer of a program: a JSON object {"supported": true|false, "name": TEXT, "reason": TEXT, "minimum":
/// VERSION, "maximum": VERSION}, or a list of such objects. `supported` may be left out where a bound is given. What
/// else is in it is not looked at. Returns the replies, or the fault.
struct ProgramAnswer {
    std::vector<ProgramReply> replies;
    std::string fault;
};
[[nodiscard]] ProgramAnswer read_program_answer(const std::string& program, std::string_view text);

}  // namespace kmm::kubernetes
