// SPDX-License-Identifier: Apache-2.0
#include "kmm-upgrade/session.hpp"

#include <csignal>
#include <filesystem>

#include <fmt/format.h>

#include "base/text.hpp"
#include "cluster/directory_store.hpp"
#include "cluster/kube_store.hpp"
#include "cluster/local_runner.hpp"
#include "cluster/ssh_runner.hpp"
#include "kmm-upgrade/view.hpp"
#include "kube/kubeconfig.hpp"
#include "kube/teller.hpp"
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
    auto option = make_option("state-dir", "DIR", "where the record is kept");
    option.environment = "KMM_STATE_DIR";
    return {option};
}

std::vector<cli::Option> runner_options() {
    auto runner = make_option("runner", "NAME", "how nodes are reached");
    runner.choices = {"ssh", "local"};
    return {runner, make_option("ssh-config", "FILE", "configuration file of the ssh client, as ssh -F"),
            make_option("worker", "COMMAND", "command of kmm-worker on the nodes")};
}

Session::Session(const cli::Args& args, cli::Context& context)
    : args_(args),
      context_(context),
      directory_(args.get("state-dir").value_or(record::default_state_dir()), files_, clock_) {
    if (const auto timeout = args.get("timeout"))
        if (const auto duration = base::parse_duration(*timeout)) deadline_ = clock_.monotonic() + *duration;
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
        for (const auto& warning : warnings) context_.console.err("warning: " + warning + "\n");
    return run;
}

upgrade::Run Session::must_load() {
    if (auto run = load()) return *run;
    throw Error(Exit::not_found, "no-run", fmt::format("no upgrade is recorded in {}", directory_.path()))
        .hint("kmm-upgrade start module MODULE --to VERSION, or name the record with --state-dir");
}

void Session::lock(const std::string& operation) {
    lock_.emplace(directory_.lock(record::current_owner(operation, clock_)));
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
    if (const auto given = args_.get("cluster")) return absolute(*given);
    if (!recorded.empty()) return recorded;
    if (kube::connection_configured(kube::request_from_environment())) return live_place(args_);
    throw Error(Exit::usage, "no-cluster", "no cluster is named")
        .detail("directory", "--cluster DIR, or KMM_CLUSTER: one Kubernetes object per YAML file")
        .detail("api server", "--kubeconfig FILE, --context NAME, KUBECONFIG or ~/.kube/config")
        .hint("--cluster DIR");
}

std::unique_ptr<cluster::ClusterStore> Session::open_cluster(const std::string& place) {
    if (!place.starts_with(k_context_place)) return std::make_unique<cluster::DirectoryStore>(place, files_);
    kube::ClientOptions options;
    if (context_.verbosity >= 0)
        kube::tell_all(options, [&console = context_.console](const std::string& line) { console.err(line + "\n"); });
    return std::make_unique<cluster::KubeStore>(
        kube::make_client(kube::load_connection(request_of_place(place)), clock_, random_, std::move(options)));
}

std::unique_ptr<cluster::NodeRunner> Session::make_runner(upgrade::Options& options) const {
    options.runner = args_.get("runner").value_or(options.runner);
    if (const auto file = args_.get("ssh-config")) options.ssh_config = absolute(*file);
    options.worker = args_.get("worker").value_or(options.worker);
    if (options.runner == "local")
        return std::make_unique<cluster::LocalRunner>(options.worker.empty() ? "kmm-worker" : options.worker);
    cluster::SshOptions ssh;
    ssh.config_file = options.ssh_config;
    if (!options.worker.empty()) ssh.worker_command = options.worker;
    return std::make_unique<cluster::SshRunner>(ssh);
}

Exit Session::finish(drive::Ended ended, const upgrade::Run& run) {
    print_summary(context_, run, ended == drive::Ended::interrupted);
    switch (ended) {
        case drive::Ended::complete: return upgrade::count(run).skipped > 0 ? Exit::partial : Exit::ok;
        case drive::Ended::aborted: return Exit::ok;
        case drive::Ended::paused: return Exit::paused;
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
    return session.must_load();
}

std::unique_ptr<cluster::NodeRunner> runner_of(Session& session, upgrade::Run& run) {
    return session.make_runner(run.options);
}

}  // namespace

Walk::Walk(Session& in, const std::string& operation)
    : session(in),
      found(locked_run(in, operation)),
      store(in.open_cluster(in.cluster_place(found.cluster_place))),
      runner(runner_of(in, found)),
      journal(in.directory()),
      progress(in.context(), found),
      recorder(found, journal, in.clock(), progress.observer()),
      driver(*store, *runner, recorder, in.clock(), [&in] { return in.stopped(); }) {
    driver.require_same_cluster();
}

}  // namespace kmm::tool_upgrade
