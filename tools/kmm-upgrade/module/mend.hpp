// SPDX-License-Identifier: Apache-2.0
// doctor --fix: what is left behind is mended, one finding after the other, when somebody agrees.
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "kmm-upgrade/session/call.hpp"

namespace kmm::tool_upgrade {

/// A finding with what mends it.
struct Repair {
    Diagnostic diagnostic;
    std::string what;              ///< as "delete Pod ns/name", "" if nothing safe is known
    std::function<void()> act{};   ///< one guarded write, or a few; throws Error
    std::string named{};           ///< a node that has to be named with --uncordon, "" for none
    std::string ns{};              ///< namespace that it is about, "" for none
    std::string module{};          ///< Module whose recorded upgrade must have ended before, "" for none
};

/// How it went: `none` has no safe fix, `unnamed` needs --uncordon NODE, `busy` waits for the recorded upgrade.
/// `elsewhere` is not of the namespace that was named, `stopped`: a signal or --timeout came before.
enum class Mended { done, declined, failed, stopped, none, unnamed, busy, elsewhere };
[[nodiscard]] const char* to_string(Mended mended) noexcept;

struct MendChoice {
    bool yes = false;                ///< --yes: nobody is asked
    std::set<std::string> uncordon;  ///< --uncordon
    std::string ns;                  ///< -n, "" for all
    std::string open_module;         ///< of a recorded upgrade that goes on, "" for none
};

/// --fix, --yes and --uncordon; nullopt without --fix. Errors: usage "missing-option" if one needs another, or if
/// nobody can be asked and --yes is missing.
[[nodiscard]] std::optional<MendChoice> mend_choice_of(const cli::Args& args, const cli::Context& context);

/// Errors: not_found "node-not-cordoned" if a node of --uncordon has no finding that says so.
void require_cordons(const MendChoice& choice, const std::vector<Repair>& repairs);

/// Asks on standard error, unless nobody has to be asked, and acts. Throws nothing of the kind Error: what fails is
/// told. `why` is the reason of a failure, for people.
[[nodiscard]] Mended mend(Call& call, const Repair& repair, const MendChoice& choice, std::string& why);

}  // namespace kmm::tool_upgrade
