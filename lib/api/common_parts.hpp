// SPDX-License-Identifier: Apache-2.0
// Parts that entries of NodeModulesConfigs have in common, after several decoders have made them. Internal to lib/api.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "api/types.hpp"

namespace kmm::api {

/// Equal values that were not shared are shared again: the first one stays.
class CommonParts {
public:
    void share(std::vector<NodeModulesConfig>& objects) {
        for (auto& object : objects) {
            for (auto* list : {&object.spec, &object.status}) {
                for (auto& entry : *list) {
                    configs_.share(entry.config);
                    tolerations_.share(entry.tolerations);
                }
            }
        }
    }

private:
    template <typename T>
    class Values {
    public:
        Values() { by_place_.reserve(std::size_t{1} << 14U); }  // growing is what costs

        void share(Shared<T>& value) {
            const T* const place = &*value;
            auto& last = last_[(reinterpret_cast<std::uintptr_t>(place) >> 4U) % last_.size()];
            if (last.first != place) { last = {place, &stand_in(value)}; }
            if (&**last.second != place) { value = *last.second; }
        }

    private:
        const Shared<T>& stand_in(const Shared<T>& value) {
            auto& stands_for = by_place_[&*value];
            if (stands_for == nullptr) {
                const auto own_hash = hash(*value);
                const auto [first, last] = by_hash_.equal_range(own_hash);
                const auto same = std::find_if(first, last, [&](const auto& one) { return one.second == *value; });
                stands_for = same == last ? &by_hash_.emplace(own_hash, value)->second : &same->second;
                if (same != last) { replaced_.push_back(value); }
            }
            return *stands_for;
        }

        static std::size_t hash(const ModuleConfig& config) {
            return std::hash<std::string>{}(config.container_image) ^ std::hash<std::string>{}(config.kernel_version);
        }
        static std::size_t hash(const std::vector<Toleration>& tolerations) {
            std::size_t sum = tolerations.size();
            for (const auto& one : tolerations) { sum = sum * 31 + std::hash<std::string>{}(one.key); }
            return sum;
        }

        std::array<std::pair<const T*, const Shared<T>*>, 4096> last_{};  ///< of by_place_, by a cheap hash
        std::unordered_map<const T*, const Shared<T>*> by_place_;
        std::unordered_multimap<std::size_t, Shared<T>> by_hash_;
        std::vector<Shared<T>> replaced_;  ///< no other value may get their places
    };

    Values<ModuleConfig> configs_;
    Values<std::vector<Toleration>> tolerations_;
};

}  // namespace kmm::api
