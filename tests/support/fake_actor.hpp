// SPDX-License-Identifier: Apache-2.0
// The hands of FakeProcedure, on a directory: DIR/depot/VERSION is the parcel, DIR/stage what was fetched, DIR/switched
// what the fleet is switched to, DIR/nodes/NAME/{copy,running} what a node has. Every step compares before it changes.
// DIR/nodes/NAME/faults has lines "STEP KIND":
//   lost-before, lost-after   the connection is lost before or after the node has done it; such a line counts once
//   fail                      the node refuses, as long as the line is there
// The same lines in DIR/faults are about steps of the run.
#pragma once

#include <filesystem>
#include <fstream>
#include <functional>
#include <sstream>
#include <system_error>

#include "base/text.hpp"
#include "support/fake_procedure.hpp"
#include "upgrade/drive/actor.hpp"
#include "upgrade/drive/step_runner.hpp"

namespace kmm::drive::test {

class FakeActor final : public Actor {
public:
    std::function<void(const std::string& point)> on_point;  ///< before and after everything that changes something

    FakeActor(std::filesystem::path root, Recorder& recorder) : root_(std::move(root)), recorder_(recorder) {}

    [[nodiscard]] Sight look(const upgrade::NodeStep& step, const Deadline&) override {
        Sight sight;
        if (!std::filesystem::exists(node(step.node)))
            sight.error = Error(Exit::not_found, "node-not-found", "there is no node " + step.node);
        return sight;
    }
    [[nodiscard]] value::Node intent(const upgrade::NodeStep& step) override {
        auto facts = value::Node::mapping();
        if (step.step == "restart" || step.step == "rollback") facts.set("currentKnown", false);
        return facts;
    }
    [[nodiscard]] Done act(const upgrade::NodeStep& step, const Sight&, const Deadline&) override {
        const auto place = step.node.empty() ? root_ : node(step.node);
        const auto version = recorder_.header().to_version;
        if (take(place, step.step + " lost-before", true))
            throw Error(Exit::unavailable, "connection-lost", "the connection was lost");
        if (take(place, step.step + " fail", false))
            throw Error(Exit::unhealthy, "refused", "it refuses " + step.step).hint("mend it");
        auto done = carry_out(step, place, version);
        if (take(place, step.step + " lost-after", true))
            throw Error(Exit::unavailable, "connection-lost", "the connection was lost");
        return done;
    }
    void explain(const upgrade::NodeStep& step, const Error&, upgrade::Event& failed) override {
        failed.facts.set("currentVersion", read(node(step.node) / "running"));
        failed.facts.set("currentKnown", true);
        failed.facts.set("noise", step.step + " has failed");
    }
    [[nodiscard]] std::optional<Error> lost_for_good(const upgrade::NodeStep& step, const Error&) override {
        if (std::filesystem::exists(node(step.node))) return std::nullopt;
        return Error(Exit::not_found, "node-not-found", "there is no node " + step.node);
    }
    [[nodiscard]] value::Node glance(const std::string& name) override {
        return value::Node::mapping({{"currentVersion", read(node(name) / "running")}, {"currentKnown", true}});
    }
    [[nodiscard]] std::vector<upgrade::Event> confirm() override {
        std::vector<upgrade::Event> changed;
        const auto run = recorder_.run();
        for (const auto& record : run.nodes) {
            if (record.state != upgrade::k_node_done || !std::filesystem::exists(node(record.name)) ||
                read(node(record.name) / "running") == run.to_version)
                continue;
            auto event = node_event(recorder_, upgrade::EventKind::observed, record.name, "", "proving-failed");
            event.reason = "changed";
            event.message = "somebody has changed it";
            changed.push_back(std::move(event));
        }
        return changed;
    }
    [[nodiscard]] std::string release(const std::string&) override { return ""; }
    [[nodiscard]] std::map<std::string, std::string> unavailable() override { return {}; }

    [[nodiscard]] static std::string read(const std::filesystem::path& path) {
        std::ifstream file(path);
        std::ostringstream text;
        text << file.rdbuf();
        return std::string(base::trim(text.str()));
    }

private:
    [[nodiscard]] std::filesystem::path node(const std::string& name) const { return root_ / "nodes" / name; }

    [[nodiscard]] Done carry_out(const upgrade::NodeStep& step, const std::filesystem::path& place,
                                 const std::string& version) {
        Done done;
        done.message = step.step + " is done";
        done.facts = value::Node::mapping();
        if (step.step == "fetch") put(place / "stage", read(root_ / "depot" / version));
        else if (step.step == "switch") put(place / "switched", version);
        else if (step.step == "copy") {
            put(place / "copy", read(root_ / "stage"));
            done.facts.set("copied", version);
        } else if (step.step == "check") require(read(place / "copy") == read(root_ / "stage"), "copy-differs");
        else if (step.step == "restart") {
            require(read(root_ / "switched") == version, "not-switched");
            put(place / "running", version);
        } else if (step.step == "prove") {
            require(read(place / "running") == version, "not-running");
            done.facts.set("currentVersion", version);
            done.facts.set("currentKnown", true);
        } else {
            const auto before = recorder_.node(step.node).from_version;
            put(place / "running", before);
            point("remove");
            std::filesystem::remove(place / "copy");
            done.facts.set("currentVersion", before);
            done.facts.set("currentKnown", true);
        }
        return done;
    }
    static void require(bool is_true, const char* code) {
        if (!is_true) throw Error(Exit::unhealthy, code, "it is not as it should be");
    }
    void point(const std::string& name) const {
        if (on_point) on_point(name);
    }
    /// Replaces what is there in one step, if it is another text.
    void put(const std::filesystem::path& path, const std::string& text) const {
        if (std::filesystem::exists(path) && read(path) == text) return;
        point("before " + path.filename().string());
        const auto part = path.parent_path() / ("." + path.filename().string() + ".part");
        std::ofstream file(part);
        file << text << "\n" << std::flush;
        std::error_code failed;
        if (file) std::filesystem::rename(part, path, failed);
        if (!file || failed) throw Error(Exit::io, "cannot-write", path.string() + " cannot be written");
        point("after " + path.filename().string());
    }
    /// True if the faults of `place` have `line`, which is then taken out if it counts `once`.
    static bool take(const std::filesystem::path& place, const std::string& line, bool once) {
        const auto path = place / "faults";
        const auto text = read(path);
        std::string rest;
        bool found = false;
        for (const auto each : base::split(text, '\n')) {
            if (!found && each == line) found = true;
            else if (!each.empty()) rest += std::string(each) + "\n";
        }
        if (found && once) std::ofstream(path) << rest;
        return found;
    }

    std::filesystem::path root_;
    Recorder& recorder_;
};

}  // namespace kmm::drive::test
