// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "kubeadm/node/processes.hpp"

namespace kmm::kubeadm {
namespace {

using std::chrono::milliseconds;
using Verdict = SteadyWatch::Verdict;

/// The verdict after looks every half second from 0 on: `pid_at` is asked what runs.
template <typename PidAt>
std::pair<Verdict, milliseconds> watched(SteadyWatch& watch, const PidAt& pid_at) {
    for (milliseconds now{0};; now += milliseconds{500}) {
        if (const auto verdict = watch.look(pid_at(now.count()), now); verdict != Verdict::waiting)
            return {verdict, now};
    }
}

TEST_CASE("a process that starts late is given the time to be steady") {
    using Pid = std::optional<std::int64_t>;
    SteadyWatch watch(milliseconds{60'000}, milliseconds{3'000});
    const auto runs = [&](auto&& pid_at) { return watched(watch, pid_at); };

    SUBCASE("at once") {
        CHECK(runs([](auto) { return Pid(7); }) == std::pair(Verdict::steady, milliseconds{3'000}));
        CHECK(watch.starts() == 1);
    }
    SUBCASE("just before the end") {
        CHECK(runs([](auto now) { return now < 59'000 ? Pid() : Pid(7); }) ==
              std::pair(Verdict::steady, milliseconds{62'000}));
        CHECK(watch.starts() == 1);
    }
    SUBCASE("not seen at one look") {
        CHECK(runs([](auto now) { return now == 1'500 ? Pid() : Pid(7); }) ==
              std::pair(Verdict::steady, milliseconds{3'000}));
        CHECK(watch.starts() == 1);
    }
    SUBCASE("never") {
        CHECK(runs([](auto) { return Pid(); }) == std::pair(Verdict::failed, milliseconds{60'000}));
        CHECK(watch.starts() == 0);
    }
    SUBCASE("once, and then it ends") {
        CHECK(runs([](auto now) { return now < 2'000 ? Pid(7) : Pid(); }) ==
              std::pair(Verdict::failed, milliseconds{60'000}));
        CHECK(watch.starts() == 1);
    }
    SUBCASE("again and again: the one at the end is given its time, the next one is not") {
        CHECK(runs([](auto now) { return Pid(1 + (now + 1'000) / 2'500); }) ==
              std::pair(Verdict::failed, milliseconds{61'500}));
        CHECK(watch.starts() == 26);
    }
    SUBCASE("only after the end") {
        CHECK(runs([](auto now) { return now < 60'000 ? Pid() : Pid(7); }) ==
              std::pair(Verdict::failed, milliseconds{60'000}));
    }
}

}  // namespace
}  // namespace kmm::kubeadm
