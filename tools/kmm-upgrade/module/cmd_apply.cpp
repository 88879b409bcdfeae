// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "api/names.hpp"
#include "base/text.hpp"
#include "cli/document.hpp"
#include "cluster/live/kube_store.hpp"
#include "cluster/live/plugin_store.hpp"
#include "kmm-upgrade/record/view.hpp"
#include "kmm-upgrade/session/begin.hpp"
#include "kmm-upgrade/verbs.hpp"
#include "plan/decide/order.hpp"
#include "upgrade/engine/replay.hpp"
#include "upgrade/module/subject.hpp"
#include "upgrade/prepare_module/prepare_apply.hpp"

namespace kmm::tool_upgrade {
namespace {

using plan::ApplyWork;

bool is_named(const ApplyWork& work, const std::string& name, const std::string& ns) {
    if (name.find('/') != std::string::npos) return name == work.full_name();
    return name == work.module && (ns.empty() || ns == work.namespace_);
}

enum class Unknown { refuse, skip };

/// Those of `all` that were asked for, in their order. Errors: not_found "module-not-found" unless they are to be
/// skipped, usage "module-ambiguous".
std::vector<ApplyWork> choose(std::vector<ApplyWork> all, const std::vector<std::string>& names, const std::string& ns,
                              Unknown unknown) {
    if (names.empty()) {
        std::erase_if(all, [&](const ApplyWork& work) { return !ns.empty() && work.namespace_ != ns; });
        return all;
    }
    std::vector<std::string> known;
    for (const auto& work : all) known.push_back(work.full_name());
    for (const auto& name : names) {
        std::vector<std::string> found;
        for (const auto& work : all) {
            // One that is there twice has its removals apart.
            const bool is_new = std::find(found.begin(), found.end(), work.full_name()) == found.end();
            if (is_new && is_named(work, name, ns)) found.push_back(work.full_name());
        }
        if (found.size() > 1)
            throw Error(Exit::usage, "module-ambiguous",
                        fmt::format("{} have the same name", base::join(found, " and ")))
                .hint("name it as NAMESPACE/NAME, or use -n");
        if (!found.empty() || unknown == Unknown::skip) continue;
        const auto near = base::nearest(name, known);
        throw Error(Exit::not_found, "module-not-found",
                    fmt::format("Module {} is neither in the cluster nor on a node", name))
            .hint(near            ? "did you mean " + *near + "?"
                  : known.empty() ? "there are none"
                                  : "there are: " + base::join(known, ", "));
    }
    std::erase_if(all, [&](const ApplyWork& work) {
        return std::none_of(names.begin(), names.end(),
                            [&](const std::string& name) { return is_named(work, name, ns); });
    });
    return all;
}

std::string nodes_text(const std::vector<std::string>& names) {
    constexpr std::size_t k_named = 3;
    if (names.size() <= k_named) return base::join(names, ", ");
    return fmt::format("{} nodes", names.size());
}

std::string on_nodes(const std::vector<std::string>& names) {
    return names.size() == 1 ? "node " + names.front() : nodes_text(names);
}

/// One `apply`: which Modules, and everything they are walked with.
class Apply {
public:
    /// As the command line says.
    explicit Apply(Access& access);
    /// What is left to do after `run`.
    Apply(Access& access, const upgrade::Run& run);

    Exit run();

private:
    void open();
    [[nodiscard]] cluster::Snapshot read() {
        auto snapshot = dry_store_ ? dry_store_->read() : store_->read();
        drive::overlook_own_cordons(snapshot.objects);
        return snapshot;
    }
    [[nodiscard]] std::vector<ApplyWork> works(const cluster::Snapshot& snapshot) const;
    /// In a directory nobody but us keeps Nodes up to date: the nodes themselves are asked.
    void refresh(cluster::Snapshot& snapshot);
    void tell(const std::string& text) const { access_.call.note(text); }
    /// Says what is left alone. Errors: checks_failed "versioned-module".
    void review(const cluster::Snapshot& snapshot, const std::vector<ApplyWork>& all);
    [[nodiscard]] Exit say_nothing();
    /// What there is to do for Modules without a kernel module, of which no node is asked: their DaemonSets are
    /// applied. Nothing of it is in a record: it is done at once. Errors: those of PluginStore::apply and
    /// ClusterAccess::secure.
    void apply_plugins(const cluster::Snapshot& snapshot, const std::vector<ApplyWork>& all);
    /// True if what is done for another Module changes whether this one can be checked.
    [[nodiscard]] bool is_related(const ApplyWork& work, const api::Objects& objects) const;
    void reach(const cluster::Snapshot& snapshot, const ApplyWork& work);
    [[nodiscard]] drive::Prepared prepare(const cluster::Snapshot& snapshot, const ApplyWork& work);
    [[nodiscard]] upgrade::module::Rest rest_after(std::size_t index) const;
    void note_boots(const cluster::Snapshot& snapshot);
    /// Adds what nodes lack that were restarted since `note_boots`, maybe after their part was done; true if there is
    /// any. In a directory only those are known whose restart a step has met. Names nodes that came since then and have
    /// work to do.
    [[nodiscard]] bool add_restarted();
    /// nullopt: done, the next one may follow.
    [[nodiscard]] std::optional<Exit> walk(std::size_t index);

    Access& access_;
    cli::Console& console_;
    std::vector<std::string> names_;  ///< Modules asked for, empty: all
    std::string ns_;
    std::string selector_, share_text_;
    Share share_;
    bool dry_ = false;
    Unknown unknown_ = Unknown::refuse;
    drive::StartRequest request_;
    cluster::Place place_;
    std::optional<upgrade::Run> before_;  ///< the run that is continued
    cluster::ClusterStore* store_ = nullptr;  ///< of the open cluster
    Rehearsal rehearsal_;
    std::optional<drive::DryStore> dry_store_;
    std::map<std::string, std::set<std::string>> boots_;  ///< of each node, as its Node and as it itself said
    std::vector<ApplyWork> todo_;
    std::vector<std::optional<drive::Prepared>> prepared_;
    std::string definitions_;  ///< those that are to be created, and are in no record yet
    std::string reached_;  ///< the Module that `runner_` is for
    std::unique_ptr<cluster::NodeRunner> runner_;
    std::vector<upgrade::LeftOut> left_out_;  ///< with the Module in the reason
    bool is_blocked_ = false;  ///< a node cannot get what it should have
    bool is_left_ = false;     ///< a node is left as it is, for this or another reason
};

Apply::Apply(Access& access)
    : access_(access), console_(access.call.context().console), rehearsal_(access.call.context()) {
    const auto& args = access.call.args();
    names_ = args.positionals("MODULE");
    ns_ = args.get("namespace").value_or("");
    selector_ = args.get("selector").value_or("");
    share_text_ = args.get("max-unavailable").value_or("1");
    share_ = parse_share(share_text_);
    dry_ = args.flag("dry-run");
    take_walk_options(args, request_);
    place_ = access_.cluster.place();
    access_.reach.choose(request_.options, place_, Reach::Age::fresh);
    if (request_.options.via == upgrade::Via::operator_)
        throw Error(Exit::usage, "bad-value", "--via operator is for start: KMM's operator applies Modules by itself")
            .hint("kmm-upgrade start module MODULE --to VERSION --via operator, for one with versions");
}

Apply::Apply(Access& access, const upgrade::Run& run)
    : access_(access), console_(access.call.context().console), rehearsal_(access.call.context()) {
    const auto words = [](const std::string& text, char separator) {
        std::vector<std::string> parts;
        for (const auto part : base::split(text, separator))
            if (!part.empty()) parts.emplace_back(part);
        return parts;
    };
    const auto rest = upgrade::module::subject_of(run).rest;
    names_ = words(rest.modules, ' ');
    selector_ = rest.selector;
    share_text_ = rest.share;
    share_ = parse_share(share_text_);
    unknown_ = Unknown::skip;
    request_.nodes = words(rest.nodes, ',');
    request_.selector = cluster::Selector::parse(selector_);
    request_.options = run.options;
    read_order(request_);
    sign_request(request_);
    place_ = access_.cluster.place(&run);
    access_.reach.choose(request_.options, place_, Reach::Age::recorded);
    before_ = run;
    is_blocked_ = run.is_partial();
}

void Apply::open() {
    if (!dry_) access_.record.open_locked(names_.empty() ? "apply" : "apply " + base::join(names_, " "));
    require_free(access_.record.load());
    store_ = access_.cluster.open(place_).store.get();
    if (before_) drive::require_cluster_of(*before_, *store_);
    access_.cluster.expect(request_.options, ns_);
    definitions_ = access_.cluster.kinds_to_create(request_.options, ClusterAccess::Definitions::all);
    if (dry_) say_definitions(rehearsal_, definitions_);
    if (dry_) dry_store_.emplace(*store_, rehearsal_.sink());
}

std::vector<ApplyWork> Apply::works(const cluster::Snapshot& snapshot) const {
    if (has_errors(snapshot.diagnostics)) throw Error::from_diagnostics(snapshot.diagnostics);
    if (unknown_ == Unknown::refuse) require_matches(snapshot.objects, ns_, request_.selector);
    const auto all = plan::apply_work(snapshot.objects, plan::complete({}, snapshot.objects));
    std::vector<ApplyWork> chosen;
    for (auto& work : choose(all, names_, ns_, unknown_))
        chosen.push_back(drive::narrow(std::move(work), snapshot.objects, request_));
    return chosen;
}

void Apply::refresh(cluster::Snapshot& snapshot) {
    if (place_.is_live()) return;
    const auto chosen = works(snapshot);
    const auto runner = access_.reach.runner(request_.options, {});
    drive::Worker worker(*runner);
    for (const auto& note : drive::ask_nodes(snapshot.objects, worker, access_.call.clock(), request_, chosen,
                                             check_observer(access_.call, "")))
        tell(note);
}

void Apply::review(const cluster::Snapshot& snapshot, const std::vector<ApplyWork>& all) {
    for (const auto& work : all) {
        std::map<std::string, std::vector<std::string>> by_reason, kept_out;
        for (const auto& left : drive::left_out_of(snapshot.objects, request_, work)) {
            is_blocked_ = is_left_ = true;
            left_out_.push_back({left.name, fmt::format("{}: {}", work.full_name(), left.reason)});
            by_reason[left.reason].push_back(left.name);
        }
        for (const auto& [reason, nodes] : by_reason)
            tell(fmt::format("{} cannot be applied to {}: {}", work.full_name(), on_nodes(nodes), reason));
        for (const auto& left : work.kept_out) kept_out[left.message].push_back(left.node);
        for (const auto& [message, nodes] : kept_out) {
            is_left_ = true;
            tell(fmt::format("{} is left as it is on {}: {}", work.full_name(), on_nodes(nodes), message));
        }
        if (work.ordered.empty()) continue;
        const auto command = fmt::format("kmm-upgrade start module {} --to {}", work.full_name(), work.version);
        if (!names_.empty() && !before_ && !work.has_work())
            throw Error(
                Exit::checks_failed, "versioned-module",
                fmt::format("Module {} has a version: which node runs it is not decided by apply", work.full_name()))
                .detail("nodes", nodes_text(work.ordered))
                .hint(command);
        is_left_ = true;
        tell(fmt::format("{} is left as it is on {}: {}", work.full_name(), nodes_text(work.ordered), command));
    }
}

Exit Apply::say_nothing() {
    auto& context = access_.call.context();
    if (!dry_) access_.cluster.create_kinds(definitions_);
    if (dry_ && !rehearsal_.is_empty() && context.output != "table" && context.output != "wide") {
        rehearsal_.finish(true);
        return is_blocked_ ? Exit::partial : Exit::ok;
    }
    auto document =
        value::Node::mapping({{"apiVersion", "kmmtools/v1"}, {"kind", "Upgrade"}, {"state", "nothing-to-do"}});
    if (!left_out_.empty()) document.set("leftOut", encode(left_out_));
    if (!print_document(context, document) && context.output != "name")
        console_.out(is_left_               ? "nothing else to do\n"
                     : definitions_.empty() ? "nothing to do: every node is as the Modules say\n"
                     : dry_                 ? "nothing was done; next: the same command without --dry-run\n"
                            : "nothing else to do yet; next: kubectl apply the Modules, then the same command\n");
    return is_blocked_ ? Exit::partial : Exit::ok;
}

void Apply::apply_plugins(const cluster::Snapshot& snapshot, const std::vector<ApplyWork>& all) {
    if (before_) return;
    for (const auto& module : snapshot.objects.modules) {
        const auto name = module.full_name();
        const bool is_chosen =
            std::any_of(all.begin(), all.end(), [&](const ApplyWork& work) { return work.full_name() == name; });
        if (module.module_loader || !cluster::has_plugins(module) || !is_chosen) continue;
        auto* server = access_.cluster.opened().server;
        const bool is_narrowed = !request_.nodes.empty() || !selector_.empty();
        if (server == nullptr || request_.options.via != upgrade::Via::self || is_narrowed) {
            is_left_ = true;
            tell(is_narrowed ? fmt::format("{} has no kernel module, only DaemonSets, which are for all nodes: left "
                                           "out with --node and -l",
                                           name)
                             : fmt::format("{} has no kernel module, only DaemonSets: --via self on an API server "
                                           "applies them; here: kmm-plan render device-plugin dra | kubectl apply -f "
                                           "-",
                                           name));
            continue;
        }
        Target target{module.meta.namespace_, module.meta.name, "", request_.lineage, cluster::plugin_rules(module)};
        access_.cluster.secure(request_.options, target,
                               dry_ ? ClusterAccess::Purpose::look : ClusterAccess::Purpose::change);
        reached_.clear();
        if (dry_) {
            is_left_ = true;
            rehearsal_.action("cluster", fmt::format("apply the DaemonSets of Module {}", name));
            continue;
        }
        cluster::PluginStore plugins(*server, target.ns, target.module,
                                     std::chrono::milliseconds(request_.options.node_timeout_ms));
        for (const auto& changed : plugins.apply(access_.reach.force())) {
            is_left_ = true;
            tell(fmt::format("applied {} of Module {}", changed, name));
        }
    }
}

bool Apply::is_related(const ApplyWork& work, const api::Objects& objects) const {
    if (todo_.size() == 1) return false;
    const auto kernel_module = drive::kernel_module_of(objects, work);
    const auto same = [&](const ApplyWork& other) { return drive::kernel_module_of(objects, other) == kernel_module; };
    if (std::count_if(todo_.begin(), todo_.end(), same) > 1) return true;
    return std::any_of(objects.modules.begin(), objects.modules.end(), [&](const api::Module& module) {
        const auto names = plan::needs(module);
        return !names.empty() && (module.full_name() == work.full_name() ||
                                  std::find(names.begin(), names.end(), work.full_name()) != names.end());
    });
}

void Apply::reach(const cluster::Snapshot& snapshot, const ApplyWork& work) {
    if (reached_ == work.full_name()) return;
    runner_.reset();
    Target target{work.namespace_, work.module, "", request_.lineage, {}};
    for (const auto& module : snapshot.objects.modules) {
        if (module.full_name() != work.full_name()) continue;
        if (request_.options.via == upgrade::Via::self) target.rights = cluster::plugin_rules(module);
        if (module.module_loader) target.service_account = module.module_loader->service_account_name;
    }
    if (work.deleted)
        for (const auto& config : snapshot.objects.node_modules_configs)
            for (const auto* list : {&config.spec, &config.status})
                for (const auto& entry : *list)
                    if (entry.namespace_ == work.namespace_ && entry.name == work.module)
                        target.service_account = entry.service_account_name;
    access_.cluster.secure(request_.options, target,
                           dry_ ? ClusterAccess::Purpose::look : ClusterAccess::Purpose::change);
    runner_ = access_.reach.runner(request_.options, target);
    reached_ = work.full_name();
}

drive::Prepared Apply::prepare(const cluster::Snapshot& snapshot, const ApplyWork& work) {
    return with_context([&] { return "Module " + work.full_name(); }, [&] {
        // Of one Module that is there twice in a row, the second run goes on with the Lease of the first.
        if (reached_ != work.full_name()) {
            sys::LinuxRandom random;
            request_.lineage = sys::uuid_v4(random);
        }
        reach(snapshot, work);
        drive::Worker worker(*runner_);
        auto prepared =
            drive::prepare_apply(snapshot, worker, access_.call.clock(), request_, work,
                                 check_observer(access_.call, work.version.empty() ? work.full_name() : work.version));
        api::Module gone;
        gone.meta.namespace_ = work.namespace_;
        gone.meta.name = work.module;
        const auto& modules = snapshot.objects.modules;
        const auto found = std::find_if(modules.begin(), modules.end(), [&](const api::Module& module) {
            return module.full_name() == work.full_name();
        });
        finish_preparing(access_, prepared, share_, found != modules.end() ? *found : gone);
        return prepared;
    });
}

upgrade::module::Rest Apply::rest_after(std::size_t index) const {
    std::vector<std::string> names;
    for (++index; index < todo_.size(); ++index) names.push_back(todo_[index].full_name());
    if (names.empty()) return {};
    return {base::join(names, " "), base::join(request_.nodes, ","), selector_, share_text_};
}

void Apply::note_boots(const cluster::Snapshot& snapshot) {
    for (const auto& node : snapshot.objects.nodes) boots_[node.meta.name].insert(node.boot_id);
}

bool Apply::add_restarted() {
    const auto snapshot = read();
    std::vector<std::string> restarted;
    std::set<std::string> joined;
    for (const auto& node : snapshot.objects.nodes) {
        const auto known = boots_.find(node.meta.name);
        if (known == boots_.end()) joined.insert(node.meta.name);
        else if (known->second.insert(node.boot_id).second) restarted.push_back(node.meta.name);
    }
    if (restarted.empty() && (joined.empty() || has_errors(snapshot.diagnostics))) return false;
    unknown_ = Unknown::skip;  // the names were right when it began
    const auto before = todo_.size();
    for (auto& work : works(snapshot)) {
        std::vector<std::string> newcomers;
        std::copy_if(work.load.begin(), work.load.end(), std::back_inserter(newcomers),
                     [&](const auto& name) { return joined.contains(name); });
        if (!newcomers.empty())
            tell(fmt::format("{} came after the start and {} selected by Module {}: kmm-upgrade apply {}",
                             on_nodes(newcomers), newcomers.size() == 1 ? "is" : "are", work.full_name(),
                             work.full_name()));
        for (auto* names : {&work.load, &work.unload})
            std::erase_if(*names, [&](const auto& name) {
                return std::find(restarted.begin(), restarted.end(), name) == restarted.end();
            });
        if (work.has_work()) todo_.push_back(std::move(work));
    }
    prepared_.resize(todo_.size());
    if (todo_.size() == before) return false;
    tell(fmt::format("{} {} restarted and {} looked at again", nodes_text(restarted),
                     restarted.size() == 1 ? "was" : "were", restarted.size() == 1 ? "is" : "are"));
    return true;
}

std::optional<Exit> Apply::walk(std::size_t index) {
    auto& prepared = prepared_[index];
    const auto work = todo_[index];
    const auto snapshot = read();
    if (!prepared) prepared = prepare(snapshot, work);
    request_.lineage = prepared->run.lineage;
    reach(snapshot, work);
    auto& run = prepared->run;
    if (dry_) {
        const auto text = upgrade::describe(run);
        rehearsal_.module(work.full_name(), text.from, text.to, true);
        rehearsal_.left_out(run.left_out);
        if (dry_walk(access_, rehearsal_, run, *dry_store_, *runner_) == drive::Ended::complete) return std::nullopt;
        rehearsal_.finish(false);
        return Exit::checks_failed;
    }
    auto subject = upgrade::module::subject_of(run);
    subject.rest = rest_after(index);
    subject.created_definitions = std::exchange(definitions_, "");
    upgrade::module::set_subject(run, subject);
    run.partial_before = is_blocked_;
    const auto launched = launch_module(access_, std::move(run), *runner_);
    const bool is_last = index + 1 == todo_.size();
    if (upgrade::is_followed(launched.run) ||
        (is_last && launched.ended == drive::Ended::complete && add_restarted())) {
        if (finish_one(access_.call, launched.ended, launched.run) == Exit::partial) is_blocked_ = true;
        return std::nullopt;
    }
    const auto exit = finish(access_.call, launched.ended, launched.run);
    return exit == Exit::ok && is_blocked_ ? Exit::partial : exit;
}

Exit Apply::run() {
    open();
    auto snapshot = read();
    note_boots(snapshot);
    refresh(snapshot);
    note_boots(snapshot);
    auto all = works(snapshot);
    tell_warnings(access_.call, snapshot.diagnostics);
    review(snapshot, all);
    apply_plugins(snapshot, all);
    std::erase_if(all, [](const ApplyWork& work) { return !work.has_work(); });
    todo_ = std::move(all);
    if (todo_.empty()) return say_nothing();
    prepared_.resize(todo_.size());
    for (std::size_t i = 0; i < todo_.size(); ++i) {
        if (is_related(todo_[i], snapshot.objects)) continue;
        prepared_[i] = prepare(snapshot, todo_[i]);
    }
    for (std::size_t i = 0; i < todo_.size(); ++i) {
        std::optional<Exit> exit;
        if (i == 0) exit = walk(i);
        else go_on_after(access_, [&] { exit = walk(i); });
        if (exit) return *exit;
    }
    rehearsal_.finish(true);
    return is_blocked_ ? Exit::partial : Exit::ok;
}

}  // namespace

Exit run_apply(const cli::Args& args, cli::Context& context) {
    if (is_to_be_resumed(args, context, [&](const upgrade::Run& run) { return asks_for_module(args, run); }))
        return run_resume(args, context);
    Access access(args, context);
    return Apply(access).run();
}

Exit go_on_applying(Access& access, const upgrade::Run& run) { return Apply(access, run).run(); }

}  // namespace kmm::tool_upgrade
