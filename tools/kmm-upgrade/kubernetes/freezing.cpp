// SPDX-License-Identifier: Apache-2.0
#include "kmm-upgrade/kubernetes/freezing.hpp"

#include <filesystem>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "base/text.hpp"
#include "kmm-upgrade/verb_parts.hpp"

namespace kmm::tool_upgrade {
namespace {

constexpr const char* k_freeze_default = "24h";
constexpr std::chrono::milliseconds k_between_looks{60'000};
constexpr std::string_view k_user = "user:";

std::string record_path(Access& access) { return absolute_path(access.record.directory().path()); }

}  // namespace

std::vector<cli::Option> freeze_options() {
    auto duration = cli::with_default(
        option("freeze-for", "DURATION", "end the freeze of applications by itself after this time"), k_freeze_default);
    auto except = cli::repeatable(
        cli::option("freeze-except", "NAME,...", "namespaces, or user:NAME, that may change applications"));
    return {option("no-freeze", "", "do not freeze Helm releases and GitOps objects during the upgrade"), duration,
            except};
}

void take_freeze_options(const cli::Args& args, upgrade::kubernetes::Subject& subject) {
    for (const auto& given : args.all("freeze-except"))
        for (const auto piece : base::split(given, ',')) {
            const auto name = base::trim(piece);
            if (name.empty() || name == k_user || name.find_first_of(" \t\n") != std::string_view::npos)
                throw Error(
                    Exit::usage, "bad-value",
                    fmt::format("--freeze-except: expected a namespace or user:NAME, found '{}'", base::escape(piece)))
                    .hint("for example --freeze-except kube-system");
            subject.freeze_except.emplace_back(name);
        }
    const auto text = args.get("freeze-for").value_or(k_freeze_default);
    const auto duration = base::parse_duration(text);
    if (!duration || duration->count() < 60'000)
        throw Error(Exit::usage, "bad-value",
                    fmt::format("--freeze-for: expected a duration from 1m, found '{}'", base::escape(text)))
            .hint("leave the option out for 24h");
    if (args.flag("no-freeze")) {
        for (const auto* other : {"freeze-for", "freeze-except"})
            if (args.source(other) == "option")
                throw Error(Exit::usage, "bad-value", fmt::format("--{} and --no-freeze contradict each other", other))
                    .hint("leave one of them out");
        return;
    }
    subject.freeze = text;
}

std::pair<std::vector<std::string>, std::vector<std::string>> freeze_exceptions(
    const upgrade::kubernetes::Subject& subject) {
    std::pair<std::vector<std::string>, std::vector<std::string>> found;
    for (const auto& name : subject.freeze_except) {
        if (name.starts_with(k_user))
            found.first.push_back(name.substr(k_user.size()));
        else
            found.second.push_back(name);
    }
    return found;
}

bool is_notice_of(Access& access, const drive::FreezeNotice& notice, const upgrade::Header& run) {
    std::error_code ignored;
    const bool is_same_record = notice.record.empty() || notice.record == record_path(access) ||
                                !std::filesystem::exists(notice.record, ignored);
    return notice.holder == run.created_by && notice.to == upgrade::kubernetes::subject_of(run).target &&
           is_same_record;
}

void refuse_noticed(const drive::FreezeNotice& notice) {
    Error error(Exit::locked, "upgrade-under-way",
                fmt::format("an upgrade of Kubernetes from {} to {} is under way", base::escape(notice.from),
                            base::escape(notice.to)));
    error.detail("by", base::escape(notice.holder)).detail("since", base::escape(notice.since));
    if (!notice.record.empty()) error.detail("record", base::escape(notice.record));
    throw std::move(error).hint("kmm-upgrade show there; kmm-upgrade unfreeze if that record is lost");
}

void require_no_notice(Access& access, const std::string& holder) {
    auto* server = access.cluster.opened().server;
    if (server == nullptr) return;
    auto& call = access.call;
    drive::Freeze freeze(server->client(), call.clock(), [&call] { return call.stopped(); });
    const auto notice = freeze.look();
    if (!notice) return;
    if (notice->holder != holder || (!notice->record.empty() && notice->record != record_path(access)))
        refuse_noticed(*notice);
    static_cast<void>(freeze.lift());
}

void require_no_kubernetes_upgrade(Access& access) {
    auto* server = access.cluster.opened().server;
    if (server == nullptr) return;
    auto& call = access.call;
    try {
        drive::Freeze freeze(server->client(), call.clock(), [&call] { return call.stopped(); });
        if (const auto notice = freeze.look()) refuse_noticed(*notice);
    } catch (const Error& error) {
        if (error.code() != "forbidden") throw;
        call.note(fmt::format("whether Kubernetes is being upgraded is not known: {}", error.message()));
    }
}

kube::Client* Freezing::client() const {
    auto* server = access_.cluster.opened().server;
    return server == nullptr ? nullptr : &server->client();
}

void Freezing::set(const upgrade::Header& run) {
    auto* server = client();
    if (server == nullptr) return;
    auto& call = access_.call;
    const auto subject = upgrade::kubernetes::subject_of(run);
    drive::FreezeNotice notice;
    notice.from = run.from_version;
    notice.to = subject.target;
    notice.holder = run.created_by;
    notice.record = record_path(access_);
    std::tie(notice.users, notice.namespaces) = freeze_exceptions(subject);
    const auto duration = base::parse_duration(subject.freeze.empty() ? k_freeze_default : subject.freeze)
                              .value_or(std::chrono::hours(24));
    freeze_ = std::make_unique<drive::Freeze>(*server, call.clock(), [&call] { return call.stopped(); });
    if (const auto there = freeze_->look(); there && !is_notice_of(access_, *there, run)) refuse_noticed(*there);
    mode_ = freeze_->set(std::move(notice), !subject.freeze.empty(),
                         std::chrono::duration_cast<std::chrono::milliseconds>(duration));
    if (mode_ == drive::FreezeMode::enforced)
        call.note(
            fmt::format("changes of Helm releases and GitOps objects are refused until the upgrade ends, {} at most",
                        subject.freeze));
    if (mode_ == drive::FreezeMode::advisory)
        call.note(
            "the API server has no ValidatingAdmissionPolicy v1: changes of applications are not refused, only "
            "reported");
    if (mode_ == drive::FreezeMode::lifted)
        call.note("applications are not frozen: kmm-upgrade unfreeze was run during this upgrade");
}

void Freezing::tell_changes() {
    const std::lock_guard guard(mutex_);
    if (mode_ != drive::FreezeMode::advisory || freeze_ == nullptr) return;
    const auto now = access_.call.clock().monotonic();
    if (asked_ && now - *asked_ < k_between_looks) return;
    asked_ = now;
    for (const auto& text : freeze_->changed_releases()) access_.call.note("changed during the upgrade: " + text);
}

void Freezing::lift(const upgrade::Header& run) {
    auto* server = client();
    if (server == nullptr) return;
    auto& call = access_.call;
    try {
        if (mode_ == drive::FreezeMode::advisory && freeze_ != nullptr)
            for (const auto& text : freeze_->changed_releases()) call.note("changed during the upgrade: " + text);
        drive::Freeze freeze(*server, call.clock(), [&call] { return call.stopped(); });
        const auto notice = freeze.look();
        if (notice && !is_notice_of(access_, *notice, run))
            return call.note(fmt::format("the freeze of applications is that of the upgrade to {} by {}: it stays",
                                         base::escape(notice->to), base::escape(notice->holder)));
        const bool was_set = freeze.lift();
        if (was_set && notice && notice->mode == drive::FreezeMode::enforced)
            call.note("applications may be changed again");
    } catch (const Error& error) {
        call.note(fmt::format("the freeze of applications is not lifted: {}; kmm-upgrade unfreeze", error.message()));
    }
}

}  // namespace kmm::tool_upgrade
