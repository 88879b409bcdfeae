// SPDX-License-Identifier: Apache-2.0
#include "kube/teller.hpp"

#include <memory>
#include <mutex>
#include <utility>

#include <fmt/format.h>

#include "base/text.hpp"

namespace kmm::kube {

namespace {

using std::chrono::milliseconds;

class OutageTeller {
public:
    explicit OutageTeller(std::function<void(const std::string&)> say) : say_(std::move(say)) {}

    void tell(const Outage& outage) {
        constexpr milliseconds k_between{10'000};
        const std::lock_guard lock(mutex_);
        // Another request that has just begun to wait says nothing new.
        if (is_out_ && outage.since < said_ + k_between) { return; }
        is_out_ = true;
        said_ = outage.since;
        const auto whole = std::chrono::duration_cast<std::chrono::seconds>(outage.since);
        const std::string since = whole.count() == 0 ? "" : " for " + base::format_duration(whole);
        say_(fmt::format("API unreachable{}: {}; trying again", since, base::escape(outage.reason)));
    }
    void tell_return(milliseconds after) {
        const std::lock_guard lock(mutex_);
        if (std::exchange(is_out_, false)) { say_("API answers again after " + base::format_duration(after)); }
        said_ = {};
    }
    void say(const std::string& line) {
        const std::lock_guard lock(mutex_);
        say_(line);
    }

private:
    std::mutex mutex_;
    std::function<void(const std::string&)> say_;
    bool is_out_ = false;
    milliseconds said_{};
};

}  // namespace

void tell_all(ClientOptions& options, std::function<void(const std::string&)> say) {
    const auto teller = std::make_shared<OutageTeller>(std::move(say));
    options.observer.on_outage = [teller](const Outage& outage) { teller->tell(outage); };
    options.observer.on_return = [teller](milliseconds after) { teller->tell_return(after); };
    options.observer.on_warning = [teller](std::string_view text) { teller->say(fmt::format("warning: API server: {}", text)); };
    options.observer.on_plugin_line = [teller](std::string_view line) { teller->say(base::escape(line)); };
}

}  // namespace kmm::kube
