// SPDX-License-Identifier: Apache-2.0
#include "kmod/host/soft_needs.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace kmm::kmod {

namespace {

class SoftNeeds {
public:
    SoftNeeds(const SoftPlace& place, std::vector<HostModule>& modules, std::set<std::string>& optional)
        : place_(place), modules_(modules), optional_(optional) {}

    void run() {
        const std::vector<HostModule> given = std::exchange(modules_, {});
        for (const auto& module : given) given_.insert(normalise_name(module.name));
        for (const auto& module : place_.live) fill(module);
        for (const auto& module : given) {
            if (const auto request = place_.named.find(module.name); request != place_.named.end())
                visited_.insert(request->second);
            fill(module);
        }
    }

private:
    void fill(const HostModule& module) {
        const std::string name = normalise_name(module.name);
        const SoftNames soft = soft_names(place_.config.softdeps, name, module.softdeps);
        for (const auto& request : soft.pre) probe(request);
        if ((given_.contains(name) || !is_live(name)) && done_.insert(name).second) modules_.push_back(module);
        for (const auto& request : soft.post) probe(request);
    }

    /// `request` is a module or an alias.
    void probe(const std::string& request) {
        if (!visited_.insert(request).second || is_elsewhere(request)) return;
        // These come first, also for what is a module's name.
        if (const auto modules = aliased(place_.config.aliases, request)) {
            take_all(request, *modules);
            return;
        }
        const auto modules = modules_behind(place_.host, place_.directory, request);
        if (modules.empty()) take_module(request);
        else take_all(request, modules);
    }

    /// The modules that an alias stands for: what their own names are aliases of does not count. For libkmod they are
    /// others than those that are asked for by name, which are looked at even so.
    void take_all(const std::string& alias, const std::vector<std::string>& modules) {
        for (const auto& name : modules) {
            add_alias_options(place_.config, alias, name);
            take_module(name);
        }
    }

    void take_module(const std::string& name) {
        if (is_elsewhere(name)) return;
        if (const auto need = find_host_module(place_.directory, name)) take(*need);
    }

    void take(const HostNeed& need) {
        const bool is_out_of_reach =
            std::any_of(need.missing.begin(), need.missing.end(),
                        [&](const auto& missing) { return !is_live(missing.first); }) ||
            std::any_of(need.modules.begin(), need.modules.end(), [&](const HostModule& module) {
                return is_elsewhere(module.name) && !is_live(module.name);
            });
        if (is_out_of_reach) return;
        for (const auto& module : need.modules) {
            const std::string name = normalise_name(module.name);
            if (!given_.contains(name) && !is_live(name)) optional_.insert(name);
            fill(module);
        }
    }

    [[nodiscard]] bool is_live(const std::string& name) const { return live_module(place_.host, name).has_value(); }
    [[nodiscard]] bool is_elsewhere(const std::string& name) const {
        return place_.is_elsewhere && place_.is_elsewhere(name);
    }

    const SoftPlace& place_;
    std::vector<HostModule>& modules_;
    std::set<std::string>& optional_;
    std::set<std::string> given_, visited_, done_;
};

}  // namespace

std::vector<std::string> modules_behind(const HostPaths& host, const std::string& directory, const std::string& name) {
    const auto need = find_host_module(directory, name);
    const bool is_module = need ? !need->builtin : live_module(host, name).has_value();
    return is_module ? std::vector<std::string>() : host_modules_with_alias(directory, name);
}

void add_soft_needs(const SoftPlace& place, std::vector<HostModule>& modules, std::set<std::string>& optional) {
    SoftNeeds(place, modules, optional).run();
}

std::optional<std::string> soft_failure(const std::string& name, const Error& error) {
    if (error.exit() == Exit::hung || error.exit() == Exit::unhealthy || error.exit() == Exit::integrity ||
        is_interruption(error.exit()))
        return std::nullopt;
    return fmt::format("soft-dependency-failed: module {} is wanted by a softdep and not loaded: {}", name,
                       error.message());
}

}  // namespace kmm::kmod
