// SPDX-License-Identifier: Apache-2.0
#include "fixture.hpp"
#include "kube/lease.hpp"
#include "kube/lease_keeper.hpp"
#include "value/writer.hpp"

using namespace kmm;
using namespace kmm::kube;
using namespace kmm::kube::test;

namespace {

/// A server with one Lease, that others can change.
class LeaseServer {
public:
    explicit LeaseServer() : server_([this](const FakeRequest& request) { return answer(request); }) {
        Connection connection;
        connection.server = "http://127.0.0.1:" + std::to_string(server_.port());
        scripted_.connect(connection, {});
    }

    /// Renews every quarter of a second; the clock by which it is safe goes on by sleeping only.
    [[nodiscard]] std::unique_ptr<LeaseKeeper> keeper(const std::string& holder) {
        ClientOptions options;
        options.retry = {3, milliseconds(5), milliseconds(20), 0.0};
        auto client = std::make_unique<Client>(
            scripted_.client->connection(),
            Seams{[] { return std::make_unique<net::CurlHttpClient>(); }, scripted_.clock, scripted_.random}, options);
        return std::make_unique<LeaseKeeper>(std::move(client), LeaseOptions{"ops", "run", holder, seconds(1)});
    }
    [[nodiscard]] Lease lease(const std::string& holder) {
        return Lease(*scripted_.client, {"ops", "run", holder, seconds(15)});
    }
    void require_unheld(const std::function<void(const LeaseState&)>& waiting) {
        kube::require_unheld(*scripted_.client, {"ops", "run", ""}, waiting);
    }
    /// As another program would.
    void set(const std::string& holder, const std::string& renewed = "1999-01-01T00:00:00.000000Z") {
        store(R"({"holderIdentity":")" + holder + R"(","leaseDurationSeconds":15,"leaseTransitions":3,"renewTime":")" +
              renewed + "\"}");
    }
    void store(const std::string& spec) {
        const std::lock_guard lock(mutex_);
        spec_ = tree(spec);
        ++version_;
    }
    void remove() {
        const std::lock_guard lock(mutex_);
        spec_.reset();
    }
    [[nodiscard]] std::string holder() const {
        const std::lock_guard lock(mutex_);
        return spec_ ? spec_->get_string({"holderIdentity"}) : "none";
    }
    [[nodiscard]] std::int64_t transitions() const { return spec_->find("leaseTransitions")->as_int().value_or(-1); }
    SleepyClock& clock() { return scripted_.clock; }
    bool lose_next_answer = false;
    std::atomic<bool> renews_itself{false};  ///< whoever has it, before each look
    std::atomic<int> refusal{0};  ///< status for every change
    std::atomic<int> outage{0};   ///< so many changes find no server

private:
    FakeReply answer(const FakeRequest& request) {
        const std::lock_guard lock(mutex_);
        if (outage > 0 && request.method != "GET" && outage-- > 0) { return status_reply(503, "", "no backend"); }
        if (refusal != 0 && request.method != "GET") { return status_reply(refusal, "", "no"); }
        if (request.method == "DELETE") {
            const value::Node body = tree(request.body);
            const bool is_it = spec_ && body.get_string({"preconditions", "uid"}) == "the-uid";
            const std::string version = body.get_string({"preconditions", "resourceVersion"});
            if (is_it && !version.empty() && version != std::to_string(version_)) {
                return status_reply(409, "Conflict", "precondition");
            }
            if (is_it) { spec_.reset(); }
            return is_it ? reply(200, "{}") : status_reply(404, "NotFound", "no lease");
        }
        if (request.method == "GET" && renews_itself) ++version_;
        if (request.method == "GET") { return spec_ ? object() : status_reply(404, "NotFound", "no lease"); }
        const value::Node body = tree(request.body);
        if (request.method == "POST") {
            if (spec_) { return status_reply(409, "AlreadyExists", "exists"); }
        } else if (!spec_) {
            return status_reply(404, "NotFound", "no lease");
        } else if (body.get_string({"metadata", "resourceVersion"}) != std::to_string(version_)) {
            return status_reply(409, "Conflict", "modified");
        }
        spec_ = *body.find("spec");
        ++version_;
        return std::exchange(lose_next_answer, false) ? no_answer() : object();
    }
    [[nodiscard]] FakeReply object() const {
        value::Node lease = tree(
            R"({"kind":"Lease","metadata":{"name":"run","namespace":"ops","uid":"the-uid","managedFields":[{"manager":"kmm-tools","operation":"Update"}]}})");
        lease.find("metadata")->set("resourceVersion", std::to_string(version_));
        lease.set("spec", *spec_);
        return reply(200, value::to_json(lease));
    }

    mutable std::mutex mutex_;
    std::optional<value::Node> spec_;
    int version_ = 1;
    FakeServer server_;
    Scripted scripted_{{}};
};

}  // namespace

TEST_SUITE("kube::unit") {

TEST_CASE("Lease: one that another kmm-upgrade created while our own creation was in doubt is not ours") {
    const std::string theirs =
        R"({"kind":"Lease","metadata":{"name":"run","namespace":"ops","uid":"u","resourceVersion":"7","managedFields":[{"manager":"kmm-tools","operation":"Update"}]},)"
        R"("spec":{"holderIdentity":"two","leaseDurationSeconds":15}})";
    Scripted scripted({status_reply(404, "NotFound", "no lease"), status_reply(503, "", "away"),
                       status_reply(409, "AlreadyExists", "exists"), reply(200, theirs)});
    Lease one(*scripted.client, {"ops", "run", "one", seconds(15)});
    const auto other = one.try_acquire();
    REQUIRE(other.has_value());
    CHECK(other->holder == "two");
    CHECK(error_of([&] { one.renew(); }).code() == "lease-lost");
    CHECK(scripted.targets().size() == 4);
}

TEST_CASE("Lease: taken, renewed, given up, taken by the next") {
    LeaseServer server;
    Lease one = server.lease("one");
    CHECK_FALSE(one.try_acquire().has_value());
    CHECK(server.holder() == "one");
    Lease two = server.lease("two");
    const auto other = two.try_acquire();
    REQUIRE(other.has_value());
    CHECK(other->holder == "one");
    CHECK(other->renew_time == "2027-01-15T08:00:00.000000Z");
    one.renew();
    one.release();
    CHECK(server.holder().empty());
    CHECK_FALSE(two.try_acquire().has_value());
    CHECK(server.holder() == "two");
}

TEST_CASE("Lease: clock skew does not matter, only what changes while we look") {
    LeaseServer server;
    server.set("other", "1999-01-01T00:00:00.000000Z");
    Lease lease = server.lease("me");
    CHECK(lease.try_acquire().has_value());
    server.clock().elapsed += seconds(14);
    CHECK(lease.try_acquire().has_value());
    server.set("other", "1999-01-01T00:00:14.000000Z");
    server.clock().elapsed += seconds(14);
    CHECK(lease.try_acquire().has_value());
    server.clock().elapsed += seconds(15);
    CHECK_FALSE(lease.try_acquire().has_value());
    CHECK(server.holder() == "me");
    CHECK(server.transitions() == 4);
}

TEST_CASE("Lease: stolen or deleted, the renewal says so") {
    LeaseServer server;
    Lease lease = server.lease("me");
    static_cast<void>(lease.try_acquire());
    server.set("thief");
    const Error stolen = error_of([&] {
        lease.renew();
        return 0;
    });
    CHECK(stolen.code() == "lease-lost");
    CHECK(stolen.message().find("held by thief") != std::string::npos);
    server.remove();
    static_cast<void>(lease.try_acquire());
    server.remove();
    CHECK(error_of([&] {
              lease.renew();
              return 0;
          }).code() == "lease-lost");
}

TEST_CASE("Lease: an answer that was lost is no loss") {
    LeaseServer server;
    Lease lease = server.lease("me");
    server.lose_next_answer = true;
    CHECK_FALSE(lease.try_acquire().has_value());
    server.lose_next_answer = true;
    lease.renew();
    CHECK(server.holder() == "me");
}

TEST_CASE("Lease: broken only by its holder's exact name") {
    LeaseServer server;
    server.set("jane@host/12/abc");
    Lease lease = server.lease("me");
    CHECK(error_of([&] {
              lease.break_holder("jane");
              return 0;
          }).code() == "lease-held");
    lease.break_holder("jane@host/12/abc");
    CHECK(server.holder().empty());
    CHECK_FALSE(lease.try_acquire().has_value());
}

namespace {

const auto k_nobody_dead = [](const std::string&) { return false; };
const auto k_silent = [](const LeaseState&) {};

/// What require() says once it says something; asked for five seconds at most.
std::string loss_of(LeaseKeeper& keeper) {
    for (int i = 0; i < 250; ++i) {
        try {
            keeper.require();
        } catch (const Error& error) {
            return error.code() + ": " + error.message();
        }
        std::this_thread::sleep_for(milliseconds(20));
    }
    return "";
}

}  // namespace

TEST_CASE("LeaseKeeper: held and renewed while it lives, deleted at its end") {
    LeaseServer server;
    {
        const auto keeper = server.keeper("me");
        keeper->acquire(k_nobody_dead, k_silent);
        CHECK(server.holder() == "me");
        keeper->require();
        // The last renewal is too old by the clock: the next one is waited for.
        server.clock().elapsed += milliseconds(600);
        keeper->require();
    }
    CHECK(server.holder() == "none");
}

TEST_CASE("LeaseKeeper: the Lease of something else is waited for, and not taken") {
    LeaseServer server;
    int told = 0;
    const auto require = [&] {
        server.require_unheld([&](const LeaseState&) { ++told; });
        return 0;
    };
    CHECK(require() == 0);
    CHECK(told == 0);
    // Nobody renews it: its time runs out.
    server.set("jane@host/12/abc");
    CHECK(require() == 0);
    CHECK(told == 1);
    CHECK(server.holder() == "jane@host/12/abc");
    server.renews_itself = true;
    CHECK(error_of(require).code() == "lease-held");
    server.renews_itself = false;
    server.set("");
    CHECK(require() == 0);
    CHECK(told == 2);
}

TEST_CASE("LeaseKeeper: a machine that was suspended asks for its Lease before it changes anything") {
    LeaseServer server;
    const auto keeper = server.keeper("me");
    keeper->acquire(k_nobody_dead, k_silent);
    server.set("other", "2026-01-01T00:00:00.000000Z");
    server.clock().suspended += std::chrono::hours(1);
    CHECK(error_of([&] { keeper->require(); }).code() == "lease-lost");
}

TEST_CASE("LeaseKeeper: a server that is away when the Lease is taken, or when it is given up, is waited for") {
    LeaseServer server;
    {
        const auto keeper = server.keeper("me");
        server.outage = 1000;
        keeper->acquire(k_nobody_dead, k_silent);
        CHECK(server.holder() == "me");
        CHECK(server.clock().elapsed > seconds(15));
        server.outage = 800;
    }
    CHECK(server.holder() == "none");
    CHECK(server.clock().elapsed < seconds(50));
}

TEST_CASE("LeaseKeeper: in a hurry the Lease is given up, but a server that is away is waited for no longer than 5 s") {
    LeaseServer server;
    for (const int outage : {3, 1000}) {
        CAPTURE(outage);
        server.clock().elapsed = {};
        {
            const auto keeper = server.keeper("me");
            keeper->acquire(k_nobody_dead, k_silent);
            server.outage = outage;
            keeper->hurry();
        }
        CHECK(server.clock().elapsed <= seconds(5));
        server.outage = 0;
        CHECK(server.holder() == (outage == 3 ? "none" : "me"));
    }
}

TEST_CASE(
    "LeaseKeeper: at its end the Lease is deleted however old the last renewal is, but never one that somebody else "
    "has taken") {
    LeaseServer server;
    {
        const auto keeper = server.keeper("me");
        keeper->acquire(k_nobody_dead, k_silent);
        server.clock().elapsed += seconds(9);
    }
    CHECK(server.holder() == "none");
    {
        const auto keeper = server.keeper("me");
        keeper->acquire(k_nobody_dead, k_silent);
        server.set("jane@host/12/abc");
    }
    CHECK(server.holder() == "jane@host/12/abc");
    server.remove();
    {
        const auto keeper = server.keeper("me");
        keeper->acquire(k_nobody_dead, k_silent);
        // A renewal of ours whose answer was lost.
        server.set("me");
    }
    CHECK(server.holder() == "none");
}

TEST_CASE("LeaseKeeper: stolen or deleted, nothing more may be done, and it is left alone") {
    LeaseServer server;
    {
        const auto keeper = server.keeper("me");
        keeper->acquire(k_nobody_dead, k_silent);
        server.set("jane@host/12/abc");
        CHECK(loss_of(*keeper) == "lease-lost: Lease ops/run is lost: held by jane@host/12/abc");
    }
    CHECK(server.holder() == "jane@host/12/abc");
    server.remove();
    const auto keeper = server.keeper("me");
    keeper->acquire(k_nobody_dead, k_silent);
    server.remove();
    CHECK(loss_of(*keeper) == "lease-lost: Lease ops/run is lost: somebody has deleted it");
}

TEST_CASE("LeaseKeeper: who renews it is alive, who does not is waited for, who is dead is not") {
    LeaseServer server;
    server.set("jane@host/12/abc");
    int told = 0;
    const auto tell = [&](const LeaseState&) { ++told; };
    server.clock().on_sleep = [&] { server.set("jane@host/12/abc", "1999-01-01T00:00:09.000000Z"); };
    const Error error = error_of([&] {
        server.keeper("me")->acquire(k_nobody_dead, tell);
        return 0;
    });
    CHECK(error.code() == "lease-held");
    CHECK(error.message() == "Lease ops/run is held by jane@host/12/abc");
    CHECK(told == 1);
    CHECK(server.clock().sleeps.size() == 1);
    server.clock().on_sleep = {};
    {
        const auto keeper = server.keeper("me");
        keeper->acquire(k_nobody_dead, tell);
        CHECK(server.holder() == "me");
        CHECK(server.clock().elapsed >= seconds(15));
    }
    server.set("me@host/1/abc");
    const auto before = server.clock().elapsed;
    const auto keeper = server.keeper("me@host/2/abc");
    keeper->acquire([](const std::string& holder) { return holder == "me@host/1/abc"; }, tell);
    CHECK(server.clock().elapsed == before);
}

TEST_CASE("LeaseKeeper: waiting for a renewal ends when it never can succeed, or when somebody asks to stop") {
    const auto error_while = [](int refusal) {
        LeaseServer server;
        const auto keeper = server.keeper("me");
        keeper->acquire(k_nobody_dead, k_silent);
        server.refusal = refusal;
        server.clock().elapsed += milliseconds(600);
        const Error error = error_of([&] {
            keeper->require(seconds(100'000), [&] { return refusal == 500; });
            return 0;
        });
        server.refusal = 0;
        return error.code();
    };
    CHECK(error_while(401) == "unauthorized");
    CHECK(error_while(500) == "interrupted");
}

TEST_CASE("a client asks before every try of a change, and sends nothing more once that throws") {
    int asked = 0;
    ClientOptions options;
    options.before_change = [&] {
        if (++asked == 3) { throw Error(Exit::locked, "lease-lost", "the Lease is lost"); }
    };
    Scripted scripted({reply(200, R"({"kind":"Node"})"), status_reply(503, "", "sad"),
                       reply(201, R"({"kind":"Lease","metadata":{"name":"x"}})")},
                      options);
    static_cast<void>(scripted.client->get(resources::k_nodes, k_node));
    CHECK(asked == 0);
    const value::Node lease =
        tree(R"({"kind":"Lease","apiVersion":"coordination.k8s.io/v1","metadata":{"name":"x","namespace":"ops"}})");
    static_cast<void>(scripted.client->create(resources::k_leases, lease));
    CHECK(asked == 2);
    CHECK(error_of([&] { return scripted.client->create(resources::k_leases, lease); }).code() == "lease-lost");
    CHECK(scripted.targets().size() == 3);
}

}
