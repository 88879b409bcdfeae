// SPDX-License-Identifier: Apache-2.0
#include "kube/teller.hpp"

#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/text.hpp"

namespace kmm::kube {

namespace {

using std::chrono::milliseconds;

/// Whether `reason` is what a server said that answers, as to_error puts it. 502 to 504 come from what stands before a
/// server that is not there.
bool is_answer(std::string_view reason) {
    constexpr std::string_view k_mark = " (HTTP ";
    const std::size_t start = reason.rfind(k_mark);
    if (start == std::string_view::npos || !reason.ends_with(')')) { return false; }
    const std::string_view status = reason.substr(start + k_mark.size(), 3);
    return status != "502" && status != "503" && status != "504";
}

class OutageTeller {
public:
    explicit OutageTeller(std::function<void(const std::string&)> say) : say_(std::move(say)) {}

    void tell(const Outage& outage) {
        constexpr milliseconds k_between{10'000};
        const std::lock_guard lock(mutex_);
        const bool is_answering = outage.kind == Outage::Kind::away && is_answer(outage.reason);
        // Another request that has just begun to wait says nothing new.
        if (told_ == outage.kind && is_answering_ == is_answering && outage.since < said_ + k_between) { return; }
        told_ = outage.kind;
        is_answering_ = is_answering;
        said_ = outage.since;
        const auto whole = std::chrono::duration_cast<std::chrono::seconds>(outage.since);
        const std::string since = whole.count() == 0 ? "" : base::format_duration(whole);
        const std::string reason = base::escape(outage.reason);
        if (is_answering) {
            say_(fmt::format("the API server answers with an error{}{}: {}; trying again",
                             since.empty() ? "" : " for ", since, reason));
        } else if (outage.kind == Outage::Kind::away) {
            say_(fmt::format("API unreachable{}{}: {}; trying again", since.empty() ? "" : " for ", since, reason));
        } else if (outage.kind == Outage::Kind::silent) {
            const auto left = std::chrono::duration_cast<std::chrono::seconds>(outage.next_try);
            say_(fmt::format(
                "{}: no answer of the API server for {}, waiting for {} more (it hangs when etcd has no quorum)",
                reason, since, base::format_duration(left)));
        } else {
            say_(fmt::format("the API server is starting and does not know all roles yet{}{}: {}; asking again",
                             since.empty() ? "" : ", after ", since, reason));
        }
    }
    void tell_return(milliseconds after) {
        const std::lock_guard lock(mutex_);
        if (told_) {
            const char* what = told_ == Outage::Kind::starting ? "the API server knows its roles after "
                               : is_answering_                 ? "the API server's error ended after "
                                                               : "API answers again after ";
            say_(what + base::format_duration(after));
        }
        told_.reset();
        said_ = {};
    }
    void say(const std::string& line) {
        const std::lock_guard lock(mutex_);
        say_(line);
    }

private:
    std::mutex mutex_;
    std::function<void(const std::string&)> say_;
    std::optional<Outage::Kind> told_;
    bool is_answering_ = false;  ///< of what was told last
    milliseconds said_{};
};

}  // namespace

void tell_all(ClientOptions& options, std::function<void(const std::string&)> say) {
    const auto teller = std::make_shared<OutageTeller>(std::move(say));
    options.observer.on_outage = [teller](const Outage& outage) { teller->tell(outage); };
    options.observer.on_return = [teller](milliseconds after) { teller->tell_return(after); };
    options.observer.on_warning = [teller](std::string_view text) {
        teller->say(fmt::format("warning: API server: {}", text));
    };
    options.observer.on_plugin_line = [teller](std::string_view line) { teller->say(base::escape(line)); };
}

}  // namespace kmm::kube
