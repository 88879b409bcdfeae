// SPDX-License-Identifier: Apache-2.0
#include "kmm-upgrade/session.hpp"

#include <algorithm>
#include <csignal>
#include <filesystem>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "api/codec.hpp"
#include "base/text.hpp"
#include "cluster/definitions.hpp"
#include "cluster/directory_store.hpp"
#include "cluster/kube_store.hpp"
#include "cluster/operator_signs.hpp"
#include "drive/prepare.hpp"
#include "kmm-upgrade/record_trust.hpp"
#include "kmm-upgrade/view.hpp"
#include "kube/kubeconfig.hpp"
#include "kube/own_pod.hpp"
#include "kube/teller.hpp"
#include "record/space.hpp"
#include "sys/host.hpp"
#include "sys/local_time.hpp"
#include "sys/signals.hpp"

namespace kmm::tool_upgrade {
namespace {

cli::Option make_option(std::string name, std::string value_name, std::string help) {
    cli::Option option;
    option.name = std::move(name);
    option.value_name = std::move(value_name);
    option.help = std::move(help);
    return option;
}

std::string absolute(const std::string& path) {
    std::error_code failed;
    const auto full = std::filesystem::weakly_canonical(path, failed);
    return failed ? path : full.string();
}

}  // namespace

std::vector<cli::Option> state_options() {
    auto option = make_option("state-dir", "DIR", "where the record is kept (default: /var/lib/kmm-upgrade for root, else ~/.local/state/kmm-upgrade)");
    option.environment = "KMM_STATE_DIR";
    return {option};
}

std::vector<cli::Option> runner_options() {
    auto via = make_option("via", "HOW", "how nodes are reached: self makes worker Pods (default on a live cluster), operator leaves the "
                                         "work to KMM's and sets one label");
    via.choices = {"self", "ssh", "local", "operator"};
    auto said = make_option("operator", "WHETHER", "whether KMM's operator is at work, if it cannot be seen");
    said.choices = {"auto", "present", "absent"};
    auto repair = make_option("repair", "", "with --via operator: mend version labels that KMM never leaves by itself");
    auto image = make_option("worker-image", "REF", "image of kmm-worker, for worker Pods");
    image.environment = "RELATED_IMAGE_WORKER";
    auto runner = make_option("runner", "NAME", "the earlier name of --via");
    runner.choices = {"ssh", "local"};
    runner.hidden = true;
    auto patience = make_option("api-timeout", "DURATION", "how long an API server that does not answer is waited for");
    patience.default_text = "5m";
    auto break_lock = make_option("break-lock", "HOLDER", "free the Lease from this very holder, who is certainly gone");
    return {via, image, said, repair, make_option("lease-namespace", "NAMESPACE", "of the Lease against other admins (default: the Module's)"),
            break_lock, make_option("force-conflicts", "", "take over fields of the Module's DaemonSets that others have set"), patience, runner, make_option("ssh-config", "FILE", "configuration file of the ssh client, as ssh -F"),
            make_option("worker", "COMMAND", "command of kmm-worker on the nodes")};
}

namespace {

std::string state_place(const cli::Args& args) {
    const auto given = args.get("state-dir");
    if (given && given->empty())
        throw Error(Exit::usage, "bad-value", "--state-dir is empty, expected a directory").hint("leave the option out for the usual one");
    return given.value_or(record::default_state_dir());
}

}  // namespace

Session::Session(const cli::Args& args, cli::Context& context)
    : args_(args), context_(context), directory_(state_place(args), files_, clock_) {
    if (const auto timeout = args.get("timeout"))
        if (const auto duration = base::parse_duration(*timeout)) deadline_ = clock_.monotonic() + *duration;
    if (const auto patience = args.get("api-timeout")) {
        const auto duration = base::parse_duration(*patience);
        if (!duration || duration->count() < 1)
            throw Error(Exit::usage, "bad-value", fmt::format("--api-timeout is \"{}\", expected a duration as 5m", *patience)).hint("leave the option out for the usual one");
        api_timeout_ = *duration;
    }
}

bool Session::stopped() const {
    return sys::interrupt_requested() || (deadline_ && clock_.monotonic() >= *deadline_);
}

std::optional<upgrade::Run> Session::load() {
    try {
        directory_.open(false);
    } catch (const Error& error) {
        if (error.exit() == Exit::not_found) return std::nullopt;
        throw;
    }
    std::vector<std::string> warnings;
    auto run = drive::load_run(directory_.load(), warnings);
    if (context_.verbosity >= 0)
        for (const auto& warning : warnings)
            if (warned_.insert(warning).second) context_.console.err("warning: " + warning + "\n");
    return run;
}

void Session::require_named(const upgrade::Run& run) const {
    const auto ns = args_.get("namespace");
    if (!ns || *ns == run.module_namespace) return;
    throw Error(Exit::not_found, "no-run", fmt::format("the upgrade recorded in {} is of {}, none of namespace {}", directory_.path(), run.module(), base::escape(*ns)))
        .hint("leave --namespace out, or name another record with --state-dir");
}

upgrade::Run Session::must_load() {
    if (auto run = load()) {
        require_named(*run);
        return *run;
    }
    throw Error(Exit::not_found, "no-run", fmt::format("no upgrade is recorded in {}", directory_.path()))
        .hint("kmm-upgrade start module MODULE --to VERSION, or name the record with --state-dir");
}

void Session::lock(const std::string& operation) {
    operation_ = operation;
    if (lock_) return;
    lock_.emplace(record::with_space_explained(directory_.path(), "the same command again", [&] {
        return directory_.lock(record::current_owner(operation, clock_));
    }));
}

void Session::lock_directory(cluster::ClusterStore& store, const std::string& operation) {
    const auto* directory = dynamic_cast<cluster::DirectoryStore*>(&store);
    std::error_code failed;
    if (directory == nullptr || cluster_lock_ || !std::filesystem::is_directory(directory->path(), failed)) return;  // reading tells of that
    cluster_lock_.emplace(record::lock_cluster_directory(directory->path(), record::current_owner(operation, clock_)));
}

namespace {

constexpr std::string_view k_context_place = "context ";
constexpr std::string_view k_file_part = " of /";

bool is_chosen(const cli::Args& args, std::string_view option) {
    return args.get(option) && args.source(option) != "environment";
}

/// The connection that a place of an API server stands for.
kube::ConfigRequest request_of_place(std::string_view place) {
    kube::ConfigRequest request = kube::request_from_environment();
    place.remove_prefix(k_context_place.size());
    if (const auto at = place.rfind(k_file_part); at != std::string_view::npos) {
        request.file = std::string(place.substr(at + k_file_part.size() - 1));
        place = place.substr(0, at);
    }
    if (request.file || place != "in-cluster") request.context = std::string(place);
    return request;
}

/// Documents of the record would be documents of the cluster, which the next step could not read.
void require_apart(const std::string& state, const std::string& cluster) {
    std::error_code failed;
    const auto inner = std::filesystem::weakly_canonical(state, failed).lexically_relative(std::filesystem::weakly_canonical(cluster, failed));
    if (failed || inner.empty()) return;
    for (const auto& part : inner) {
        // What begins with a dot is not read; ".." leads out, "." is the directory itself.
        if (part.native().starts_with('.') && part != ".") return;
    }
    throw Error(Exit::usage, "state-in-cluster",
                fmt::format("the record would be kept in {}, which is in the cluster directory {}: its files would be read as objects", base::escape(state), base::escape(cluster)))
        .hint("name a directory beside it with --state-dir, or in it one whose name begins with a dot: " + base::escape(cluster) + "/.state");
}

std::string live_place(const cli::Args& args) {
    kube::ConfigRequest request = kube::request_from_environment();
    if (is_chosen(args, "kubeconfig")) request.file = absolute(*args.get("kubeconfig"));
    request.context = args.get("context").value_or("");
    // The name is kept, so that another current-context later changes nothing.
    const auto connection = kube::load_connection(request);
    return fmt::format("{}{}{}", k_context_place, connection.context, request.file ? " of " + *request.file : "");
}

}  // namespace

std::string Session::cluster_place(const std::string& recorded) const {
    const bool directory = is_chosen(args_, "cluster");
    const bool server = is_chosen(args_, "kubeconfig") || is_chosen(args_, "context");
    if (directory && server)
        throw Error(Exit::usage, "several-sources", "expected one cluster, found --cluster and --kubeconfig or --context")
            .hint("give one of them");
    if (server) return live_place(args_);
    if (const auto given = args_.get("cluster")) {
        const auto place = absolute(*given);
        require_apart(directory_.path(), place);
        return place;
    }
    if (!recorded.empty()) return recorded;
    if (kube::connection_configured(kube::request_from_environment())) return live_place(args_);
    Error error(Exit::usage, "no-cluster", "no cluster is named");
    if (auto absent = kube::absent_kubeconfig(kube::request_from_environment()); !absent.empty()) error.detail("KUBECONFIG", std::move(absent));
    throw std::move(error)
        .detail("directory", "--cluster DIR, or KMM_CLUSTER: one Kubernetes object per YAML file")
        .detail("api server", "--kubeconfig FILE, --context NAME, KUBECONFIG or ~/.kube/config")
        .hint("--cluster DIR");
}

std::unique_ptr<cluster::ClusterStore> Session::open_cluster(const std::string& place) {
    if (!place.starts_with(k_context_place)) {
        return std::make_unique<cluster::DirectoryStore>(place, files_);
    }
    kube::ClientOptions options;
    options.api_timeout = api_timeout_;
    if (context_.verbosity >= 0)
        kube::tell_all(options, [&console = context_.console](const std::string& line) { console.err(line + "\n"); });
    options.stop_waiting = [this] { return stopped(); };
    options.before_change = [this] {
        if (lease_) require_lease();
    };
    return std::make_unique<cluster::KubeStore>(
        kube::make_client(kube::load_connection(request_of_place(place)), clock_, random_, std::move(options)));
}

std::unique_ptr<cluster::Workloads> Session::workloads_on(cluster::ClusterStore& store) {
    return cluster::workloads_of(store, kube::own_pod(kube::request_from_environment(), sys::host_name()));
}

void Session::choose_runner(upgrade::Options& options, const std::string& place, Age age) const {
    const bool is_live = place.starts_with(k_context_place);
    const auto via = args_.get("via");
    const auto runner = args_.get("runner");
    if (via && runner && *via != *runner && args_.source("via") == args_.source("runner"))
        throw Error(Exit::usage, "bad-value", fmt::format("--via {} and --runner {} contradict each other", *via, *runner))
            .hint("--runner is the earlier name of --via: give one of them");
    const bool asks_for_ssh = args_.source("ssh-config") == "option" || args_.source("worker") == "option";
    if (via) options.runner = *via;
    else if (runner) options.runner = *runner;
    else if (age == Age::fresh) options.runner = is_live && !asks_for_ssh ? "self" : "ssh";
    if (const auto file = args_.get("ssh-config")) options.ssh_config = absolute(*file);
    options.worker = args_.get("worker").value_or(options.worker);
    options.worker_image = args_.get("worker-image").value_or(options.worker_image);
    options.lease_namespace = args_.get("lease-namespace").value_or(options.lease_namespace);
    if (const auto said = args_.get("operator")) options.operator_said = *said == "auto" ? "" : *said;
    options.repair = options.repair || args_.flag("repair");
    const bool is_operated = options.runner == upgrade::k_runner_operator;
    if (args_.flag("repair") && !is_operated)
        throw Error(Exit::usage, "bad-value", "--repair is about --via operator")
            .hint("kmm-upgrade writes all version labels itself here; doctor names those that are left");
    if (options.runner != "self") options.worker_image.clear();
    if (options.runner != "self" && !is_operated) return;
    if (!is_live)
        throw Error(Exit::usage, "bad-value", fmt::format("--via {} needs an API server, found a directory cluster", options.runner))
            .hint("--via ssh, or name the server with --context");
    if (is_operated) return;
    if (options.worker_image.empty())
        throw Error(Exit::usage, "missing-option", "--worker-image REF is missing: nodes are reached by worker Pods")
            .hint("manifests/worker-image builds one; --via ssh reaches nodes without Pods");
}

void Session::require_lease() const {
    lease_->require(api_timeout_, [this] { return stopped(); });
}

void Session::require_kinds(cluster::ClusterStore& store) {
    if (auto* server = dynamic_cast<cluster::KubeStore*>(&store)) server->require_kinds();
}

std::string Session::kinds_to_create(const upgrade::Options& options, cluster::ClusterStore& store, Definitions wanted) {
    auto* server = dynamic_cast<cluster::KubeStore*>(&store);
    if (server == nullptr) return "";
    auto& client = server->client();
    const auto kinds = cluster::lacking_kinds(client);
    if (kinds.empty()) return "";
    const auto place = server->describe();
    if (options.runner != "self") throw cluster::lacking_error(place, kinds.front());
    if (wanted == Definitions::of_nodes && kinds.front().kind == kube::resources::k_modules.kind)
        throw cluster::lacking_error(place, kinds.front()).hint("kubectl apply -k manifests/crd, or kmm-upgrade apply, which creates it; then the Module");
    cluster::require_creatable(client, place, kinds, server->rights());
    const auto signs = options.operator_said.empty() ? cluster::look_for_operator(client) : cluster::OperatorSigns{};
    if (!signs.pods.empty())
        throw Error(Exit::checks_failed, "operator-present",
                    fmt::format("KMM's operator is at work in {} (Pod {}), which brings the kind {}; it is not there", place,
                                signs.pods.front().name, kinds.front().kind))
            .detail("known by", signs.pods.front().sign)
            .hint("look why its installation is not complete; --operator absent if that is no operator of KMM");
    std::vector<std::string> names;
    for (const auto& kind : kinds) names.push_back(kind.full_name());
    return base::join(names, ",");
}

void Session::create_kinds(const std::string& names, cluster::ClusterStore& store) {
    auto* server = dynamic_cast<cluster::KubeStore*>(&store);
    if (server == nullptr || names.empty()) return;
    const auto wanted = base::split(names, ',');
    for (const auto& kind : cluster::lacking_kinds(server->client())) {
        const auto name = kind.full_name();
        if (std::find(wanted.begin(), wanted.end(), name) == wanted.end()) continue;
        if (context_.verbosity >= 0) context_.console.err(fmt::format("note: creating CustomResourceDefinition {}\n", name));
        if (!cluster::create_definition(server->client(), kind) && context_.verbosity >= 0)
            context_.console.err(fmt::format("note: {} was created by somebody else meanwhile\n", name));
    }
}

Exit Session::finish(drive::Ended ended, const upgrade::Run& run) {
    print_summary(context_, run, ended == drive::Ended::interrupted);
    return exit_of(ended, run);
}

Exit Session::finish_one(drive::Ended ended, const upgrade::Run& run) {
    if (context_.output != "json" && context_.output != "yaml") print_summary(context_, run, false);
    return exit_of(ended, run);
}

Exit Session::exit_of(drive::Ended ended, const upgrade::Run& run) const {
    switch (ended) {
        case drive::Ended::complete: return run.is_partial() ? Exit::partial : Exit::ok;
        case drive::Ended::aborted: return Exit::ok;
        case drive::Ended::paused: return upgrade::is_through(run) ? Exit::partial : Exit::paused;
        case drive::Ended::interrupted: break;
    }
    return stop_exit();
}

Exit Session::stop_exit() const {
    if (!sys::interrupt_requested()) return Exit::timeout;
    return sys::interrupt_signal() == SIGINT ? Exit::interrupted : Exit::terminated;
}

namespace {

/// Loads under the lock: what is read is what will be changed.
upgrade::Run locked_run(Session& session, const std::string& operation) {
    session.directory().open(false);
    session.lock(operation);
    auto run = session.must_load();
    require_trust(session.directory().path(), run, session.args(), session.context());
    if (!run.options.time_zone.empty()) sys::use_time_zone(run.options.time_zone);
    return run;
}

std::unique_ptr<cluster::NodeRunner> runner_of(Session& session, upgrade::Run& run, cluster::ClusterStore& store, cluster::Workloads& workloads,
                                               Reach reach) {
    drive::require_cluster_of(run, store);
    session.choose_runner(run.options, session.cluster_place(run.cluster_place), Session::Age::recorded);
    drive::require_one_host(run.options, run.nodes.size());
    Session::Errand errand{run.module_namespace, run.module_name, "", run.lineage, {}};
    for (const auto& node : run.nodes)
        if (!node.target_entry.is_null()) errand.service_account = api::decode_node_module(node.target_entry).service_account_name;
    if (reach != Reach::record && run.options.runner == "self")
        for (const auto& module : store.read().objects.modules)
            if (module.meta.namespace_ == errand.ns && module.meta.name == errand.module) errand.rights = cluster::plugin_rules(module);
    if (reach == Reach::onward && upgrade::drains_ahead(run)) Session::expect_drain(run.options, workloads);
    if (reach != Reach::record) {
        session.secure(run.options, store, errand, Session::Purpose::change);
        session.create_kinds(run.created_definitions, store);
    }
    return session.make_runner(run.options, store, errand);
}

}  // namespace

drive::Ended recording_loss(drive::Driver& driver, const drive::Recorder& recorder, const std::function<drive::Ended()>& body) {
    try {
        return body();
    } catch (const Error& error) {
        if (!cluster::ends_run(error) || error.code() == "interrupted") throw;
        // No node has failed: what is under way is looked at by whoever resumes.
        if (!recorder.state().paused) driver.pause(error.code(), error.message());
        if (!cluster::is_server_trouble(error)) throw;
        throw Error(error).detail("then", "kmm-upgrade resume");
    }
}

Walk::Walk(Session& in, const std::string& operation, Reach reach)
    : session(in),
      found(locked_run(in, operation)),
      store(in.open_cluster(in.cluster_place(found.cluster_place))),
      workloads(Session::workloads_on(*store)),
      runner(runner_of(in, found, *store, *workloads, reach)),
      plugins(reach != Reach::record ? in.make_plugins(found, *store) : nullptr),
      journal(in.directory()),
      progress(in.context(), found),
      recorder(found, journal, in.clock(), told_to_command(progress, found.options.on_event)),
      driver(plugins ? static_cast<cluster::ClusterStore&>(*plugins) : *store, *workloads, *runner, recorder, in.clock(),
             [&in] { return in.stopped(); }) {
    driver.set_pace(pace_of(progress));
}

}  // namespace kmm::tool_upgrade
