// SPDX-License-Identifier: Apache-2.0
// What the module procedures keep in the record beside the members of the engine, as typed views of its trees.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "upgrade/engine/procedure.hpp"
#include "upgrade/engine/run.hpp"
#include "value/node.hpp"

namespace kmm::upgrade::module {

/// What tells one build of a module from another.
struct Identity {
    std::string srcversion, build_id, sha256, version;
    [[nodiscard]] bool empty() const noexcept { return srcversion.empty() && build_id.empty() && sha256.empty(); }
    /// For people: the first twelve characters of what there is, "" if nothing.
    [[nodiscard]] std::string brief() const;
    friend bool operator==(const Identity&, const Identity&) = default;
};

/// `unknown`: the two have no kind of identity in common.
enum class Sameness { same, different, unknown };
/// Srcversion and build id, as far as both have them: one source makes many builds, so either tells two apart.
[[nodiscard]] Sameness compare(const Identity& left, const Identity& right) noexcept;
/// {"srcversion":...,"buildID":...,"sha256":...,"version":...}; empty members are left out.
[[nodiscard]] value::Node encode(const Identity& identity);
[[nodiscard]] Identity decode_identity(const value::Node& node);

/// Node::goal of a node that loses the module for good.
inline constexpr std::string_view k_goal_absent = "absent";
/// Header::procedure of an ordered upgrade, and of a run that brings nodes to what the plan says.
inline constexpr std::string_view k_procedure_module = "module", k_procedure_apply = "apply";

/// What an apply has to do after this run: more Modules, with the options of this one.
struct Rest {
    std::string modules;             ///< "NS/NAME NS/NAME", "" for none
    std::string nodes;               ///< that it is narrowed to, "a,b", "" for all
    std::string selector;            ///< that it is narrowed to, "" for all
    std::string share;               ///< max_unavailable as it was given
};

/// What a run is about.
struct Subject {
    std::string ns, name;            ///< of the Module
    std::string kernel_module;       ///< the main module's name, "-" as "_"
    std::string created_definitions; ///< CustomResourceDefinitions that were created for the run, "a,b"; they stay
    Rest rest;
    /// "NAMESPACE/NAME".
    [[nodiscard]] std::string full_name() const { return ns + "/" + name; }
};
[[nodiscard]] Subject subject_of(const Header& run);
/// Puts all of `subject` into the header.
void set_subject(Header& run, const Subject& subject);
/// Records which definitions are created for the run.
void set_created_definitions(Header& run, const std::string& names);
/// "NAMESPACE/NAME" of the Module.
[[nodiscard]] std::string full_name(const Header& run);
[[nodiscard]] inline bool is_apply(const Header& run) { return run.procedure == k_procedure_apply; }

/// One node of a run, with what the procedures keep of it as members.
struct Node : NodeRecord {
    std::string next;                ///< what `check` found to do next: unload, load or validate
    std::string goal;                ///< "" for the target version live, k_goal_absent for nothing left of the Module
    value::Node from_entry;          ///< the NodeModulesConfig entry that was live, null when there was none
    Identity from_identity;
    value::Node from_labels;  ///< version labels before the first change: {"module","worker","schedule","device"}
    std::string target_image, target_digest;
    value::Node target_entry;        ///< the NodeModulesConfig entry of the target version for this kernel; with
                                     ///< k_goal_absent the one that is taken out
    Identity target_identity;        ///< what `check` says the file would have when loaded
    Identity live;                   ///< identity of the live module at the last look
    std::string kernel_line;         ///< the kernel's own words about the last step, if any
};
/// Members that are not there are empty.
[[nodiscard]] Node read(const NodeRecord& record);
/// The inverse: what is empty is not there.
[[nodiscard]] NodeRecord record_of(Node node);
/// NodeRecord::facts of `name`, "" if it is not there.
[[nodiscard]] const std::string& text_of(const NodeRecord& record, std::string_view name);
[[nodiscard]] bool goes_away(const NodeRecord& record);

/// True if the way forward drains nodes: some are to be drained and have not been yet. Not of a run that goes back.
[[nodiscard]] bool drains_ahead(const Run& run);

/// The ordered upgrade of one Module (module), and apply, which is the same but for nodes that end without it. Source:
/// facts KMM 8.1 and 8.2 for the flow of a node, the command line page section 3 for the names.
[[nodiscard]] const Procedure& procedure_module();
[[nodiscard]] const Procedure& procedure_apply();
/// Both.
[[nodiscard]] const Procedures& procedures();

}  // namespace kmm::upgrade::module
