// SPDX-License-Identifier: Apache-2.0
// A procedure that has nothing to do with modules: images are fetched once for all, a first part walks every node to a
// rest, a step of the run switches over, a second part walks them to the end.
#pragma once

#include <string>
#include <vector>

#include "upgrade/engine/procedure.hpp"
#include "upgrade/engine/run.hpp"

namespace kmm::upgrade::test {

class FakeProcedure final : public Procedure {
public:
    bool fetches = true;  ///< else the first stage is left out

    [[nodiscard]] const Table& table() const override {
        static const Table table([] {
            Table::Parts parts;
            parts.name = "fake";
            parts.stages = {
                {"fetch", "fetching", "fetched", "fetching-failed", {}, "", false},
                {"first", "walking-first", "walked-first", "walking-first-failed", {"copy", "check"}, "copied", true},
                {"switch", "switching", "switched", "switching-failed", {}, "", false},
                {"second",
                 "walking-second",
                 "walked-second",
                 "walking-second-failed",
                 {"restart", "prove"},
                 "done",
                 false}};
            const auto step = [](const char* name, std::vector<std::string> from, std::string during,
                                 const char* done) {
                return Step{name, Scope::node, std::move(from), during, done, during + "-failed"};
            };
            parts.steps = {
                step("copy", {"pending"}, "copying", "unchecked"), step("check", {"unchecked"}, "checking", "copied"),
                step("restart", {"copied"}, "restarting", "restarted"), step("prove", {"restarted"}, "proving", "done"),
                step("rollback",
                     {"copying", "unchecked", "checking", "copied", "restarting", "restarted", "proving", "done",
                      "copying-failed", "checking-failed", "restarting-failed", "proving-failed", "pending"},
                     "rolling-back", "rolled-back")};
            parts.side_moves.push_back(
                Move{Scope::node, "done", "proving-failed", Cause::observe, ""});  // what a last look finds
            return Table(std::move(parts));
        }());
        return table;
    }
    [[nodiscard]] const std::vector<Member>& run_members() const override {
        static const std::vector<Member> members = {{"parcel", MemberKind::text, "toVersion"}};
        return members;
    }
    [[nodiscard]] const std::vector<Member>& node_members() const override {
        static const std::vector<Member> members = {{"copied", MemberKind::text, "fromVersion"},
                                                    {"plan", MemberKind::text, "fromVersion", Life::plan},
                                                    {"noise", MemberKind::text, "message", Life::outcome}};
        return members;
    }
    void check(const Run&) const override {}
    [[nodiscard]] Description describe(const Run& run) const override {
        Description description;
        description.kind = "parcel";
        description.space = "fakes";
        description.name = run.subject.get_string({"parcel"});
        description.from = run.from_version;
        description.to = run.to_version;
        description.again = "fake again";
        description.elsewhere = "fake elsewhere";
        return description;
    }
    [[nodiscard]] std::string target_text(const Header& run, const NodeRecord&) const override {
        return run.to_version;
    }
    [[nodiscard]] Members members(const Run& run, const Stage& stage) const override {
        Members members;
        members.is_left_out = stage.name == "fetch" && !fetches;
        if (stage.is_walk())
            for (std::size_t place = 0; place < run.nodes.size(); ++place) members.places.push_back(place);
        return members;
    }
    [[nodiscard]] std::string next_step(const Run&, const NodeRecord& node, const Stage& stage) const override {
        for (const auto& name : stage.steps) {
            const auto& step = *table().find_step(name);
            if (step.during == node.state || step.from.front() == node.state) return name;
        }
        return "";
    }
    [[nodiscard]] std::string restart_state(const Run& run, const NodeRecord&) const override {
        return run.state.find("second") == std::string::npos ? "pending" : "copied";
    }
    [[nodiscard]] std::string pause_note(const Run&, const Stage& stage) const override {
        return stage.name + " is through";
    }
};

}  // namespace kmm::upgrade::test
