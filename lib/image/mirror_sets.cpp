// SPDX-License-Identifier: Apache-2.0
#include "image/mirror_sets.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

namespace kmm::image {

namespace {

/// What has to come before what, in a graph of mirrors and their source.
class MirrorOrder {
public:
    void add(const std::string& before, const std::string& after) {
        places_[before].followers.insert(after);
        places_[after].waits_for.insert(before);
    }

    /// A circle begins with the first of those that are left.
    [[nodiscard]] std::vector<std::string> sorted() {
        std::vector<std::string> ready, order;
        for (const auto& [name, place] : places_)
            if (place.waits_for.empty()) ready.push_back(name);
        auto next = places_.begin();
        for (std::size_t turn = 0; turn < ready.size() || next != places_.end();) {
            const std::string name = turn < ready.size() ? ready[turn++] : (next++)->first;
            Place& place = places_.at(name);
            if (std::exchange(place.is_used, true)) continue;
            order.push_back(name);
            for (const auto& follower : place.followers) {
                Place& after = places_.at(follower);
                after.waits_for.erase(name);
                if (after.waits_for.empty() && !after.is_used) ready.push_back(follower);
            }
        }
        return order;
    }

private:
    struct Place {
        std::set<std::string> waits_for, followers;
        bool is_used = false;
    };
    std::map<std::string, Place> places_;
};

/// All entries of one source and one use.
struct MergedMirrors {
    MirrorOrder order;
    bool never_source = false;
};

bool has_mirror(const MirrorSetEntry& entry) {
    return std::any_of(entry.mirrors.begin(), entry.mirrors.end(),
                       [&](const std::string& mirror) { return mirror != entry.source; });
}

}  // namespace

std::vector<MirrorRule> rules_of(const std::vector<MirrorSetEntry>& entries) {
    std::map<std::pair<MirrorUse, std::string>, MergedMirrors> merged;
    for (const MirrorSetEntry& entry : entries) {
        if (entry.source.empty() || !has_mirror(entry)) continue;
        MergedMirrors& one = merged[{entry.use, entry.source}];
        one.never_source = one.never_source || entry.never_source;
        for (std::size_t place = 0; place + 1 < entry.mirrors.size(); ++place)
            one.order.add(entry.mirrors[place], entry.mirrors[place + 1]);
        if (std::find(entry.mirrors.begin(), entry.mirrors.end(), entry.source) == entry.mirrors.end())
            one.order.add(entry.mirrors.back(), entry.source);
    }
    std::vector<MirrorRule> rules;
    for (auto& [key, one] : merged) {
        MirrorRule rule;
        rule.prefix = key.second;
        rule.blocked = one.never_source;
        for (const std::string& mirror : one.order.sorted()) rule.mirrors.push_back({mirror, std::nullopt, key.first});
        if (rule.mirrors.back().location == rule.prefix) rule.mirrors.pop_back();  // it is asked last anyway
        static_cast<void>(join_rule(rules, std::move(rule)));                      // of which none says such things
    }
    return rules;
}

}  // namespace kmm::image
