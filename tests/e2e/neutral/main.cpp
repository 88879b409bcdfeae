// SPDX-License-Identifier: Apache-2.0
// kmm-upgrade with a procedure that is not about modules: the verbs, the record and the engine are those of the
// product. What is upgraded is in DIR/parcels of the cluster directory DIR (support/fake_actor.hpp).
#include <fmt/format.h>

#include "base/text.hpp"
#include "kmm-upgrade/program.hpp"
#include "kmm-upgrade/verb_parts.hpp"
#include "kmm-upgrade/session/walk.hpp"
#include "support/fake_actor.hpp"
#include "sys/signals.hpp"
#include "upgrade/engine/replay.hpp"

namespace kmm::tool_upgrade {
namespace {

const upgrade::test::FakeProcedure k_procedure;
const upgrade::Procedures k_procedures{&k_procedure};

std::filesystem::path parcels_of(Access& access) {
    return std::filesystem::path(access.cluster.opened().place.directory) / "parcels";
}

class FakeHands final : public Hands {
public:
    explicit FakeHands(Access& access) : access_(access) {}
    [[nodiscard]] std::unique_ptr<drive::Actor> actor(drive::Recorder& recorder) override {
        return std::make_unique<drive::test::FakeActor>(parcels_of(access_), recorder);
    }
    void require_readable() override {}
    void tell_after(const upgrade::Run&) override {}

private:
    Access& access_;
};

Exit run_start(const cli::Args& args, cli::Context& context) {
    Access access(args, context);
    const auto place = access.cluster.place();
    access.record.open_locked("start parcel");
    const auto old = access.record.load();
    require_free(old);
    auto& cluster = access.cluster.open(place);
    access.cluster.lock_directory();
    upgrade::Run run;
    run.lineage = "6f1b4c1e-0000-4000-8000-000000000001";
    run.created = run.since = base::format_rfc3339(access.call.clock().now_unix());
    run.procedure = "fake";
    run.rules = &k_procedure;
    run.subject = value::Node::mapping({{"parcel", "box"}});
    run.state = "upgrade-started";
    run.to_version = args.get("to").value_or("");
    run.options.via = upgrade::Via::local;
    if (const auto number = args.get("max-unavailable")) run.options.max_unavailable = std::stoll(*number);
    put_place(run, place);
    for (const auto& node : cluster.store->read().objects.nodes) {
        upgrade::NodeRecord record;
        record.name = node.meta.name;
        record.from_version = record.current_version =
            drive::test::FakeActor::read(parcels_of(access) / "nodes" / node.meta.name / "running");
        record.since = run.created;
        run.from_version = record.from_version;
        run.nodes.push_back(std::move(record));
    }
    const auto launched = launch(access, std::move(run), std::make_unique<FakeHands>(access));
    return finish(access.call, launched.ended, launched.run);
}

class FakeCraft final : public Craft {
public:
    [[nodiscard]] const upgrade::Procedures& procedures() const override { return k_procedures; }
    [[nodiscard]] OwnVerbs verbs() const override {
        return {
            {verb("start parcel", "bring a parcel to all nodes", "Brings a parcel to all nodes.",
                  {{"kmm-upgrade start parcel --to v2", "the new one"}},
                  {required(option("to", "VERSION", "the parcel")), option("max-unavailable", "N", "nodes at once")},
                  run_start)},
            {}};
    }
    [[nodiscard]] std::unique_ptr<Hands> take_up(Access& access, upgrade::Run& run, Extent) const override {
        drive::require_cluster_of(run, *access.cluster.opened().store);
        access.cluster.lock_directory();
        return std::make_unique<FakeHands>(access);
    }
    [[nodiscard]] Exit follow(Access&, const upgrade::Run&) const override { return Exit::ok; }
};

const FakeCraft k_craft;

}  // namespace
}  // namespace kmm::tool_upgrade

int main(int argc, char** argv) {
    kmm::sys::install_signal_handlers();
    kmm::cli::StdConsole console;
    return kmm::cli::run_main(kmm::tool_upgrade::program({&kmm::tool_upgrade::k_craft}), argc, argv, console);
}
