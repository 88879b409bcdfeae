// SPDX-License-Identifier: Apache-2.0
// The run of a recipe in memory, and the programs that go on with it one after the other.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "unit/upgrade/drive_recipe/memory_api.hpp"
#include "upgrade/drive/driver.hpp"
#include "upgrade/drive_recipe/plan_rollout.hpp"
#include "upgrade/drive_recipe/recipe_actor.hpp"
#include "upgrade/engine/replay.hpp"

namespace kmm::drive::test {

/// A client of `api`, which must outlive it, as must the others.
inline std::unique_ptr<kube::Client> client_of(MemoryApi& api, sys::Clock& clock, sys::Random& random) {
    kube::Connection connection;
    connection.server = "http://127.0.0.1:1";
    return std::make_unique<kube::Client>(
        std::move(connection), kube::Seams{[&api] { return std::make_unique<MemoryHttp>(api); }, clock, random});
}

/// To roll out `release`, which is kept in kube-system.
inline RecipeRequest request_of(const upgrade::recipe::Release& release, std::int64_t node_timeout_ms) {
    RecipeRequest request;
    request.lineage = release.lineage;
    request.created = "t0";
    request.options.node_timeout_ms = node_timeout_ms;
    request.subject.name = release.recipe;
    request.subject.space = "kube-system";
    return request;
}

/// What outlives the programs: the API server, the time, the journal.
template <class Clock>
struct RecipeLife {
    MemoryApi api;
    Clock clock;
    FixedRandom random;
    MemoryJournal journal;
    std::function<void(const std::string&)> say = [](const auto&) {};  ///< of waves: by several threads

    [[nodiscard]] std::unique_ptr<kube::Client> client() { return client_of(api, clock, random); }
    [[nodiscard]] upgrade::Run replayed() const {
        std::vector<upgrade::TimedPayload> entries;
        for (const auto& entry : journal.entries) entries.push_back({"t", entry});
        return upgrade::replay(entries, upgrade::recipe::procedures());
    }
    /// One program: goes on, or aborts. It writes to `journal_of_program`, which keeps its entries in `journal`.
    Ended live(Journal& journal_of_program, const std::optional<upgrade::Rollback>& abort = std::nullopt) {
        const auto own = client();
        Recorder recorder(replayed(), journal_of_program, clock, {});
        const auto never = [] { return false; };
        RecipeActor actor(*own, recorder, clock, never, say, false);
        Driver driver(actor, recorder, clock, never);
        if (abort) return driver.abort(*abort);
        driver.resume();
        return driver.walk();
    }
};

/// Calls `point` around each entry, which may throw, as a program that is killed there.
template <class Point>
class PointedJournal final : public Journal {
public:
    PointedJournal(Journal& journal, Point point) : journal_(journal), point_(std::move(point)) {}
    void begin(const Node& header) override { journal_.begin(header); }
    void append(const Node& event) override {
        point_(nullptr);
        journal_.append(event);
        point_(&event);
    }
    void snapshot(const Node&) override {}

private:
    Journal& journal_;
    Point point_;  ///< called with nullptr before, and with the entry after it is kept
};

}  // namespace kmm::drive::test
