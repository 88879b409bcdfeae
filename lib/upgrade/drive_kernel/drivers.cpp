// SPDX-License-Identifier: Apache-2.0
#include "upgrade/drive_kernel/drivers.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "api/labels.hpp"
#include "base/text.hpp"
#include "plan/decide/order.hpp"
#include "plan/fleet/survey.hpp"
#include "upgrade/drive/actor.hpp"
#include "upgrade/module_nodes/fleet.hpp"
#include "upgrade/module_nodes/look.hpp"
#include "upgrade/prepare_module/prepare_parts.hpp"

namespace kmm::drive {

using std::chrono::milliseconds;
using upgrade::module::Identity;
using upgrade::module::Sameness;

namespace {

constexpr milliseconds k_pause{1000}, k_before_word{5000};

Error rebooted(const std::string& node) {
    return Error(Exit::unhealthy, "node-rebooted", fmt::format("node {} rebooted while its drivers were loaded", node))
        .hint(fmt::format("see its kernel log: a module may have brought it down; then kmm-upgrade retry {}", node));
}

}  // namespace

std::map<std::string, value::Node> encode(const std::map<std::string, LoadedDriver>& drivers) {
    std::map<std::string, value::Node> documents;
    for (const auto& [name, driver] : drivers)
        documents.emplace(name, value::Node::mapping({{"kernelModule", driver.kernel_module},
                                                      {"identity", upgrade::module::encode(driver.identity)}}));
    return documents;
}

std::map<std::string, LoadedDriver> decode_drivers(const std::map<std::string, value::Node>& documents) {
    std::map<std::string, LoadedDriver> drivers;
    for (const auto& [name, document] : documents) {
        const auto* identity = document.find("identity");
        drivers.emplace(name,
                        LoadedDriver{document.get_string({"kernelModule"}),
                                     identity == nullptr ? Identity() : upgrade::module::decode_identity(*identity)});
    }
    return drivers;
}

/// One Module with the entry for the kernel.
struct Drivers::Wanted {
    std::string ns, name, kernel_module;
    api::NodeModule entry;
    std::string input;  ///< of the worker
    [[nodiscard]] std::string full_name() const { return ns + "/" + name; }
};

std::vector<Drivers::Wanted> Drivers::wanted_on(const std::string& node, const std::string& kernel) {
    const auto snapshot = store_.read();
    if (has_errors(snapshot.diagnostics)) throw Error::from_diagnostics(snapshot.diagnostics);
    const auto& objects = snapshot.objects;
    auto rows = plan::survey(objects, {kernel});
    std::erase_if(rows, [&](const plan::Surveyed& row) {
        return std::none_of(row.pools.begin(), row.pools.end(), [&](const plan::Pool& pool) {
            return std::find(pool.nodes.begin(), pool.nodes.end(), node) != pool.nodes.end();
        });
    });
    const auto order = plan::load_order(objects.modules);
    const auto rank = [&](const plan::Surveyed& row) { return order.at(row.module->full_name()); };
    std::stable_sort(rows.begin(), rows.end(),
                     [&](const plan::Surveyed& left, const plan::Surveyed& right) { return rank(left) < rank(right); });
    std::vector<Wanted> wanted;
    for (const auto& row : rows) {
        Wanted made;
        made.ns = row.module->meta.namespace_;
        made.name = row.module->meta.name;
        made.entry = resolve_entry(*row.module, kernel);
        made.kernel_module = kernel_module_name(made.entry.config->modprobe.module_name);
        made.input = worker_input(made.entry.config, secret_for(objects, *row.module, made.entry.image_repo_secret));
        wanted.push_back(std::move(made));
    }
    return wanted;
}

WorkerResult Drivers::ask(const std::string& verb, const std::string& node, const std::string& input,
                          const std::string& boot, const Deadline& deadline) {
    for (;;) {
        const auto reply = worker_.run(verb, node, input, deadline.left());
        if (reply.value) {
            if (!reply.value->boot_id.empty() && reply.value->boot_id != boot) throw rebooted(node);
            return *reply.value;
        }
        const bool again = !reply.settled() || !reply.has_result || reply.error->code() == "node-busy";
        if (!again || deadline.passed()) throw Error(*reply.error);
        tell_(node, reply.error->message() + "; it is asked again");
        if (interrupted_() || !clock_.sleep_for(k_pause) || interrupted_()) throw Leave{StepEnd::left};
    }
}

void Drivers::require_live(const std::string& node, const std::string& module, const LoadedDriver& driver,
                           const std::string& boot, const Deadline& deadline) {
    const auto result = look_at(worker_, clock_, node, driver.kernel_module, deadline, interrupted_);
    if (!result.look && result.why == NoLook::interrupted) throw Leave{StepEnd::left};
    if (!result.look) throw Error(*result.error);
    if (result.look->facts.boot_id != boot) throw rebooted(node);
    const auto& live = result.look->module;
    if (live.presence == Presence::absent)
        throw Error(Exit::unhealthy, "driver-missing",
                    fmt::format("node {}: {} of Module {} is not live", node, driver.kernel_module, module))
            .hint(fmt::format("see the node's kernel log and who unloads it; then kmm-upgrade retry {}", node));
    if (compare(live.identity, driver.identity) == Sameness::same) return;
    throw Error(Exit::unhealthy, "identity-mismatch",
                fmt::format("node {}: the live {} is {}, expected {} of Module {}", node, driver.kernel_module,
                            live.identity.brief(), driver.identity.brief(), module))
        .hint("another build is loaded, or the image was changed: kmm-worker status on the node");
}

Identity Drivers::load(const std::string& node, const Wanted& wanted, const std::string& boot,
                       const Deadline& deadline) {
    Fleet fleet(store_, wanted.ns, wanted.name);
    const auto view = fleet.view(node);
    require_name(view, wanted.full_name(), wanted.kernel_module);
    const auto& version = wanted.entry.version;
    if (!version.empty() && view.labels.module && *view.labels.module != version)
        throw Error(Exit::checks_failed, "version-mismatch",
                    fmt::format("node {} is to run version {} of Module {}, which is at version {}", node,
                                base::escape(*view.labels.module), wanted.full_name(), version))
            .hint(fmt::format("finish that upgrade first: kmm-upgrade start module {} --to {}", wanted.full_name(),
                              version));
    auto status = wanted.entry;
    status.boot_id = boot;
    if (view.status != status) {
        fleet.require_loadable(node, boot);
        fleet.remove_ready(node);  // facts KMM 8.1: W is added only without a ready label
    }
    const auto label = version.empty() ? std::nullopt : std::optional<std::string>(version);
    fleet.set_module(node, label);
    fleet.add_schedule(node, label, label, std::nullopt);
    fleet.put_spec(node, wanted.entry);
    const auto result = ask("load", node, wanted.input, boot, deadline);
    LoadedDriver driver{wanted.kernel_module, result.identity};
    if (driver.identity.empty()) driver.identity = ask("check", node, wanted.input, boot, deadline).identity;
    require_live(node, wanted.full_name(), driver, boot, deadline);
    fleet.put_status(node, status);
    fleet.set_ready(node, version);
    return driver.identity;
}

std::string operator_lacks(const NodeView& view, const api::NodeModule& entry, const std::string& boot) {
    const auto module = entry.namespace_ + "/" + entry.name;
    if (view.node.boot_id != boot) return "its Node to have the boot id of the node";
    if (!view.spec || view.spec->config != entry.config)
        return fmt::format("KMM to write {} for this kernel into the NodeModulesConfig", module);
    const auto& status = view.status;
    if (!status || status->config != entry.config || (!status->boot_id.empty() && status->boot_id != boot))
        return fmt::format("KMM to load {}", module);
    if (!view.ready) return fmt::format("KMM to set label {}", api::label_ready(entry.namespace_, entry.name));
    return "";
}

Identity Drivers::await_operator(const std::string& node, const Wanted& wanted, const std::string& boot,
                                 const Deadline& deadline) {
    Fleet fleet(store_, wanted.ns, wanted.name);
    std::string told;
    const auto begin = clock_.monotonic();
    for (;;) {
        const auto news = store_.await_news(0, milliseconds(0));
        const auto lacks = operator_lacks(fleet.view(node), wanted.entry, boot);
        if (lacks.empty()) break;
        if (deadline.passed())
            throw Error(Exit::timeout, "operator-timeout", fmt::format("node {}: still waiting for {}", node, lacks))
                .hint("is KMM's operator running? kubectl get pods -A -l app.kubernetes.io/part-of=kmm");
        if (lacks != told && clock_.monotonic() - begin >= k_before_word) {
            told = lacks;
            tell_(node, "waits for " + lacks);
        }
        if (interrupted_()) throw Leave{StepEnd::left};
        static_cast<void>(store_.await_news(news, std::min(k_pause, deadline.left())));
    }
    // The labels are KMM's word; the kernel has the last one.
    return ask("check", node, wanted.input, boot, deadline).identity;
}

std::map<std::string, LoadedDriver> Drivers::bring(const std::string& node, const SystemSight& seen,
                                                   const Deadline& deadline) {
    std::map<std::string, LoadedDriver> drivers;
    for (const auto& wanted : wanted_on(node, seen.kernel)) {
        const bool is_operated = loader_ == upgrade::kernel::Loader::operator_;
        LoadedDriver driver{wanted.kernel_module, is_operated ? await_operator(node, wanted, seen.boot_id, deadline)
                                                              : load(node, wanted, seen.boot_id, deadline)};
        if (is_operated) require_live(node, wanted.full_name(), driver, seen.boot_id, deadline);
        drivers.emplace(wanted.full_name(), std::move(driver));
    }
    return drivers;
}

void Drivers::prove(const std::string& node, const std::map<std::string, LoadedDriver>& drivers,
                    const std::string& boot, const Deadline& deadline) {
    for (const auto& [name, driver] : drivers) require_live(node, name, driver, boot, deadline);
}

}  // namespace kmm::drive
