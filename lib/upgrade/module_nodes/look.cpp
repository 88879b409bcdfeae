// SPDX-License-Identifier: Apache-2.0
#include "upgrade/module_nodes/look.hpp"

#include <fmt/format.h>

#include "plan/kmm/find_named.hpp"

namespace kmm::drive {

bool is_boot_id(std::string_view text) {
    constexpr std::size_t k_length = 36;  // 8-4-4-4-12
    if (text.size() != k_length) return false;
    for (std::size_t i = 0; i < text.size(); ++i) {
        const bool is_dash = i == 8 || i == 13 || i == 18 || i == 23;
        const bool is_digit = (text[i] >= '0' && text[i] <= '9') || (text[i] >= 'a' && text[i] <= 'f');
        if (is_dash ? text[i] != '-' : !is_digit) return false;
    }
    return true;
}

Error wrong_host(const std::string& message) {
    return Error(Exit::checks_failed, "node-differs", message)
        .hint(
            "each node's name must lead to its own host: correct the ssh configuration or /etc/hosts; with --via "
            "local name the Node that is this host");
}

Error host_of_other(const std::string& node, const std::string& boot_id, const std::string& other) {
    return wrong_host(
        fmt::format("the host that answers as node {} has boot id {}, which is that of node {}", node, boot_id, other));
}

std::optional<Error> other_host(const api::Objects& objects, const std::string& node, const std::string& boot_id) {
    const auto* own = plan::find_named(objects.nodes, node);
    if (!is_boot_id(boot_id) || own == nullptr || own->boot_id == boot_id) return std::nullopt;
    for (const auto& each : objects.nodes)
        if (each.boot_id == boot_id) return host_of_other(node, boot_id, each.meta.name);
    return std::nullopt;
}

std::optional<Error> other_host(const Recorder& recorder, cluster::ClusterStore& store, const std::string& node,
                                const std::string& boot_id) {
    if (!is_led_by_name(recorder.header().options.via) || !is_boot_id(boot_id)) return std::nullopt;
    std::string other;
    const bool is_known = recorder.look([&](const upgrade::Run& run) {
        for (const auto& each : run.nodes) {
            if (each.boot_id != boot_id) continue;
            if (each.name == node) return true;
            other = each.name;
        }
        return false;
    });
    if (is_known) return std::nullopt;
    const auto snapshot = store.read_about({node, "", ""});
    const auto* own = plan::find_named(snapshot.objects.nodes, node);
    if (own != nullptr && own->boot_id == boot_id) return std::nullopt;
    return other.empty() ? other_host(store.read().objects, node, boot_id) : host_of_other(node, boot_id, other);
}

LookResult look_at(Worker& worker, sys::Clock& clock, const std::string& node, const std::string& kernel_module,
                   const Deadline& deadline, const std::function<bool()>& interrupted) {
    LookResult result;
    const auto leave = [&] {
        result.why = NoLook::interrupted;
        result.error.reset();
        return result;
    };
    for (std::chrono::milliseconds pause{1000};; pause = std::min(pause * 2, std::chrono::milliseconds(10'000))) {
        Reply<Look> status;
        try {
            status = worker.status(node, kernel_module, std::min(deadline.left(), std::chrono::milliseconds(60'000)));
        } catch (const Error& error) {
            if (error.code() != "interrupted" || !interrupted()) throw;
            return leave();
        }
        result.error = status.error;
        result.why = status.settled() ? NoLook::refused : NoLook::unreachable;
        if (!status.settled()) result.lost = status.error;
        if (status.value && status.value->module.presence != Presence::moving) {
            result.look = *status.value;
            result.error.reset();
            return result;
        }
        if (status.value) {
            result.why = NoLook::moving;
            result.error =
                Error(Exit::hung, "loader-hung",
                      fmt::format("node {}: {} is still being loaded or unloaded", node, kernel_module));
        }
        // Another worker, whose connection was lost, may still be at work there: its end is waited for.
        const bool busy = result.error && result.error->code() == "node-busy";
        if ((result.why == NoLook::refused && !busy) || deadline.passed()) return result;
        if (interrupted() || !clock.sleep_for(pause) || interrupted()) return leave();
    }
}

}  // namespace kmm::drive
