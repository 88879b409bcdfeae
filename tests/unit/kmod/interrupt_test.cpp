// SPDX-License-Identifier: Apache-2.0
// A signal ends waiting. It is never told as a fault of the node, and what the kernel has begun is finished.
#include <doctest/doctest.h>

#include <cerrno>
#include <functional>
#include <optional>

#include "base/error.hpp"
#include "kmod/load/procedure.hpp"
#include "kmod/load/steps.hpp"
#include "unit/kmod/fixtures.hpp"

using namespace kmm;
using namespace kmm::test;

namespace {

/// A clock of a process that has got a signal: time goes on, nobody sleeps.
class SignalledClock final : public sys::Clock {
public:
    [[nodiscard]] std::int64_t now_unix() const override { return 1'800'000'000; }
    [[nodiscard]] std::chrono::milliseconds monotonic() const override { return now_; }
    bool sleep_for(std::chrono::milliseconds duration) override {
        now_ += duration;
        if (on_sleep) on_sleep();
        return false;
    }
    std::function<void()> on_sleep;

private:
    std::chrono::milliseconds now_{0};
};

struct SignalledRig {
    FakeHost host;
    SignalledClock clock;
    FakeKernel kernel{host};
    kmod::Machine machine{host.paths, kernel, clock, {}};

    std::optional<Error> error_of(const std::function<void()>& step) const {
        try {
            step();
        } catch (const Error& error) {
            return error;
        }
        return std::nullopt;
    }
    void set_state(const std::string& name, const std::string& state) const {
        put(host.paths.sys + "/module/" + name + "/initstate", state + "\n");
    }
};

}  // namespace

TEST_SUITE("kmod::unit") {

TEST_CASE("interrupted: a module that is coming is no hung kernel") {
    SignalledRig rig;
    rig.host.make_live("demo", "AAAA");
    rig.set_state("demo", "coming");
    const auto error = rig.error_of([&] { (void)kmod::settled_module(rig.machine, "demo"); });
    REQUIRE(error);
    CHECK(error->exit() == Exit::interrupted);
    CHECK(error->message().find("demo") != std::string::npos);
}

TEST_CASE("interrupted: waiting for users ends at once") {
    SignalledRig rig;
    rig.host.make_live("demo", "AAAA", "OE", "1");
    rig.kernel.unload_answers["demo"] =
        std::vector<kmod::LoaderAnswer>(8, kmod::LoaderAnswer{EAGAIN, false, false, 0, ""});
    const auto error = rig.error_of([&] { (void)kmod::unload_one(rig.machine, "demo"); });
    REQUIRE(error);
    CHECK(error->exit() == Exit::interrupted);
    CHECK(rig.kernel.calls.size() == 1);
}

TEST_CASE("interrupted: a second look that comes early says so") {
    SignalledRig rig;
    rig.machine.patience.second_look = std::chrono::seconds(2);
    const sys::TempDir out{"kmm-image-"};
    put(out.path() + "/demo.ko", make_ko({}));
    const auto index = kmod::ModuleIndex::build(out.path(), out.path());
    const kmod::LoadRequest request{"demo", {}, {}, {}};
    const auto report =
        kmod::load_modules(index, kmod::preflight(index, request, rig.host.paths), request, {}, rig.machine);
    CHECK(report.modules.back().action == kmod::Action::loaded);
    REQUIRE(report.warnings.size() == 1);
    CHECK(report.warnings.front() ==
          "second-look-early: a signal came, and module demo was looked at again before 2.0s had passed");
}

TEST_CASE("interrupted: what the kernel has been told is looked at to its end") {
    SignalledRig rig;
    const std::string bytes = make_ko({});
    const kmod::ModuleFile file = kmod::parse_module(bytes, "demo.ko");
    rig.kernel.live_state = "coming";
    int looks = 0;
    rig.clock.on_sleep = [&] {
        if (++looks == 3) rig.set_state("demo", "live");
    };
    std::vector<std::string> warnings;
    const auto load = rig.error_of([&] {
        CHECK(kmod::load_one(rig.machine, {file, bytes, ""}, warnings) == kmod::Action::loaded);
    });
    CHECK_MESSAGE(!load, load->message());
    CHECK(looks == 3);
    rig.kernel.keeps_unloaded = true;
    rig.clock.on_sleep = [&] {
        if (++looks == 6) rig.host.make_gone("demo");
    };
    const auto unload = rig.error_of([&] { CHECK(kmod::unload_one(rig.machine, "demo")); });
    CHECK_MESSAGE(!unload, unload->message());
    CHECK(looks == 6);
}

}
