// SPDX-License-Identifier: Apache-2.0
// kubernetes: what a node of a kubeadm cluster is made of, and the steps of an upgrade on it.
#include <fmt/format.h>

#include "base/number.hpp"
#include "base/text.hpp"
#include "cli/document.hpp"
#include "cli/names.hpp"
#include "cli/table.hpp"
#include "kmm-worker/commands.hpp"
#include "kmm-worker/node/kubernetes_step.hpp"
#include "kmm-worker/result.hpp"
#include "kubeadm/node/facts.hpp"
#include "kubeadm/step/steps.hpp"
#include "net/http.hpp"
#include "sys/trust.hpp"

namespace kmm::tool_worker {

namespace {

kubernetes::Version target_of(const cli::Args& args) {
    const auto text = args.get("target");
    if (!text) throw Error(Exit::usage, "missing-option", "expected --target VERSION").hint("as --target v1.35.4");
    if (const auto version = kubernetes::Version::parse(*text)) return *version;
    throw Error(Exit::usage, "bad-value",
                fmt::format("--target: expected {}, found '{}'", kubernetes::k_version_form, base::escape(*text)))
        .hint("for example --target v1.35.4");
}

std::string absolute(const char* option, const std::string& text) {
    if (text.starts_with('/')) return text;
    throw Error(Exit::usage, "bad-value",
                fmt::format("--{}: expected an absolute path on the node, found '{}'", option, base::escape(text)))
        .hint("begin it with /");
}

kubeadm::Switch switch_of(const cli::Args& args, bool scans = false) {
    kubeadm::Switch how;
    const std::string way = args.get("switch").value_or("");
    using Way = kubeadm::Switch::Way;
    how.way = way == "packages"   ? Way::packages
              : way == "binaries" ? Way::binaries
              : way == "command"  ? Way::command
                                  : Way::none;
    if (const auto from = args.get("from")) {
        if (how.way != Way::binaries && !scans)
            throw Error(Exit::usage, "usage", "--from requires --switch binaries")
                .hint("add --switch binaries, or leave --from out");
        how.directory = absolute("from", *from);
    }
    if (const auto command = args.get("command")) {
        if (how.way != Way::command) throw Error(Exit::usage, "usage", "--command requires --switch command")
            .hint("add --switch command, or leave --command out");
        how.command = absolute("command", *command);
    }
    if (how.way == Way::command && how.command.empty())
        throw Error(Exit::usage, "missing-option", "--switch command requires --command PROGRAM")
            .hint("add --command PROGRAM");
    return how;
}

std::vector<cli::Option> switch_options() {
    return {cli::with_choices(cli::option("switch", "WAY", "how programs of the target are installed"),
                              {"packages", "binaries", "command"}),
            cli::option("from", "DIR", "directory of binaries, by version (default: /usr/local/kubernetes)"),
            cli::option("command", "PROGRAM", "program that installs COMPONENT of VERSION on NODE (its environment)")};
}

/// PROGRAM=VERSION of --placing.
kubeadm::PlacingQuestion placing_of(const std::string& text) {
    const auto equals = text.find('=');
    const auto program = text.substr(0, equals);
    const auto version =
        equals == std::string::npos ? std::nullopt : kubernetes::Version::parse(text.substr(equals + 1));
    if (version && (program == "kubeadm" || program == "kubelet")) return {program, *version};
    throw Error(Exit::usage, "bad-value",
                fmt::format("--placing: expected kubeadm=VERSION or kubelet=VERSION, found '{}'", base::escape(text)))
        .hint("for example --placing kubeadm=v1.35.4");
}

kubeadm::FactQuestions questions_of(const cli::Args& args) {
    kubeadm::FactQuestions questions;
    questions.with_requests = args.flag("requested-apis");
    questions.with_upgrade = args.flag("for-upgrade");
    questions.with_scan = args.flag("scan");
    questions.how = switch_of(args, questions.with_scan);
    for (const auto& text : args.all("placing")) questions.placing.push_back(placing_of(text));
    questions.ignored_preflight = args.get("ignore-preflight-errors").value_or("");
    const bool has_way = questions.how.way != kubeadm::Switch::Way::none;
    if (!questions.placing.empty() && !has_way)
        throw Error(Exit::usage, "missing-option", "--placing requires --switch packages, binaries or command")
            .hint("add --switch packages");
    if (has_way && !questions.with_upgrade)
        throw Error(Exit::usage, "missing-option", "--switch requires --for-upgrade")
            .hint("add --for-upgrade");
    if (!has_way && args.source("ignore-preflight-errors") == "option")
        throw Error(Exit::usage, "missing-option",
                    "--ignore-preflight-errors requires --switch packages, binaries or command")
            .hint("add --for-upgrade --switch packages --placing kubeadm=VERSION, or leave it out");
    return questions;
}

cli::Option target_option() {
    return cli::required(cli::option("target", "VERSION", "version of Kubernetes, as v1.35.4"));
}

cli::Option placing_option() {
    return cli::repeatable(
        cli::option("placing", "PROGRAM=VERSION", "with --switch: also try to install it, changing nothing"));
}

cli::Option ignore_option() {
    return cli::option("ignore-preflight-errors", "NAMES", "checks of kubeadm whose failure is a warning");
}

/// kubeadm puts what they say into the manifests of the control plane. Errors: no_permission "untrusted-file".
/// The absolute path that an option names; "" without it.
std::string path_option(const cli::Args& args, const char* name) {
    const auto text = args.get(name);
    return text ? absolute(name, *text) : std::string();
}

void require_patches(const Here& here, const std::string& directory) {
    sys::require_trusted(here.node.place.here(directory), "directory of kubeadm's patches");
    for (const std::string& name : here.node.place.list(directory))
        sys::require_trusted(here.node.place.here(directory + "/" + name), "patch of kubeadm");
}

std::string version_cell(const std::optional<kubernetes::Version>& version) {
    return version ? version->text() : "unknown";
}

std::string manifests_cell(const kubeadm::Facts& facts) {
    if (!facts.manifests) return "unknown";
    if (!facts.manifests->control_plane) return "none (worker)";
    if (const std::string problems = facts.manifests->problems(); !problems.empty()) return problems;
    std::vector<std::string> told;
    for (const auto& pod : facts.manifests->pods) {
        if (pod.expected) told.push_back(fmt::format("{} {}", pod.component, pod.tag));
    }
    return base::join(told, ", ");
}

std::string etcd_cell(const kubeadm::Facts& facts) {
    if (!facts.etcd) return "none, or unknown";
    if (facts.etcd->member.empty()) return "unknown: its manifest names no address for clients";
    const auto role = facts.etcd->leader.empty()                 ? "no leader"
                      : facts.etcd->leader == facts.etcd->member ? "leader"
                                                                 : "follower";
    const auto alarms = facts.etcd->alarms.empty() ? std::string() : ", " + base::join(facts.etcd->alarms, ", ");
    return base::escape(fmt::format("{}, {}, members: {}, {} of {}{}", facts.etcd->version, role,
                                    facts.etcd->members.size(), base::format_bytes(facts.etcd->size),
                                    base::format_bytes(facts.etcd->quota), alarms));
}

std::string first_expiry(const kubeadm::Facts& facts) {
    const kubeadm::Certificate* first = nullptr;
    for (const auto& certificate : facts.certificates) {
        if (certificate.problem.empty() && (first == nullptr || certificate.not_after < first->not_after))
            first = &certificate;
    }
    return first == nullptr ? "unknown" : fmt::format("{} ({})", base::format_rfc3339(first->not_after), first->file);
}

void add_upgrade_rows(const kubeadm::UpgradeFacts& facts, std::vector<std::pair<std::string, std::string>>& rows) {
    rows.emplace_back("images", facts.images ? std::to_string(facts.images->size()) : "unknown");
    rows.emplace_back("sandbox image", facts.sandbox_image.value_or("unknown"));
    if (facts.drift && facts.drift->empty()) rows.emplace_back("changed manifests", "none");
    if (facts.drift) {
        for (const auto& drift : *facts.drift)
            rows.emplace_back("changed manifest",
                              fmt::format("{}: {}", drift.component, base::join(drift.lines, ", ")));
    }
    if (facts.preflight) {
        const auto found = [&](const char* what, const std::vector<std::string>& texts) {
            for (const auto& text : texts)
                rows.emplace_back(fmt::format("{} of kubeadm {}", what, facts.preflight->version.text()), text);
        };
        found("preflight error", facts.preflight->errors);
        found("preflight warning", facts.preflight->warnings);
    }
    if (!facts.placing) return;
    for (const auto& trial : *facts.placing)
        rows.emplace_back(fmt::format("installing {} {}", trial.program, trial.version.text()),
                          !trial.problem.empty()        ? trial.problem
                          : trial.is_available == false ? "no package source has it"
                          : trial.was_tried             ? "nothing is in the way"
                                                        : "not tried");
}

/// A row for each version that a source offers.
void add_scan_rows(const kubeadm::VersionScan& scan, std::vector<std::pair<std::string, std::string>>& rows) {
    for (const auto& [what, offer] :
         {std::pair("directory", &scan.directories), std::pair("package", &scan.packages)}) {
        if (!*offer) continue;
        for (const auto& one : (*offer)->versions)
            rows.emplace_back(fmt::format("{} {}", what, one.version.text()),
                              one.problem.empty() ? base::join(one.programs, ", ") : one.problem);
        for (const auto& [name, reason] : (*offer)->ignored)
            rows.emplace_back(fmt::format("{} ignored", what), fmt::format("{}: {}", name, reason));
    }
}

Exit run_kubernetes_facts(const cli::Args& args, cli::Context& context) {
    const kubeadm::FactQuestions questions = questions_of(args);
    const Here here(args, context);
    net::CurlHttpClient client;
    const kubeadm::Facts facts = kubeadm::read_facts(here.node, client, questions);
    const value::Node document = kubeadm::facts_document(facts, here.clock.now_unix());
    leave_whole_message(document);
    if (cli::print_document(context, document)) return Exit::ok;
    if (context.output == "name") {
        context.console.out(fmt::format("{}\n", cli::plain_name(facts.node.value_or("unknown"))));
        return Exit::ok;
    }
    const auto text = [](const std::optional<std::string>& found) { return found ? *found : std::string("unknown"); };
    std::vector<std::pair<std::string, std::string>> rows{
        {"node", text(facts.node)},
        {"kubelet", fmt::format("{}, running {}", version_cell(facts.kubelet), version_cell(facts.kubelet_running))},
        {"kubeadm", version_cell(facts.kubeadm)},
        {"manifests", manifests_cell(facts)},
        {"etcd", etcd_cell(facts)},
        {"first certificate to expire", first_expiry(facts)},
        {"cgroup", text(facts.cgroup)},
        {"swap", !facts.swap           ? "unknown"
                 : facts.swap->empty() ? "off"
                                       : base::join(*facts.swap, ", ")},
        {"container runtime",
         !facts.runtime_socket
             ? "unknown"
             : *facts.runtime_socket + (facts.runtime_socket_present.value_or(false) ? "" : " (no socket)")},
        {"leftovers of kubeadm", !facts.leftovers           ? "unknown"
                                 : facts.leftovers->empty() ? "none"
                                                            : base::join(*facts.leftovers, ", ")},
        {"job", !facts.job               ? "unknown"
                : facts.job->key.empty() ? std::string(nodejob::to_string(facts.job->state))
                                         : fmt::format("{}: {}", facts.job->key, nodejob::to_string(facts.job->state))},
    };
    for (const auto& disk : facts.disks) rows.emplace_back("free in " + disk.path, base::format_bytes(disk.free));
    if (facts.manifests) {
        for (const auto& stray : facts.manifests->strays)
            rows.emplace_back("stray manifest", fmt::format("{} declares {}", stray.path, stray.pod));
    }
    if (facts.upgrade) add_upgrade_rows(*facts.upgrade, rows);
    if (facts.scan) add_scan_rows(*facts.scan, rows);
    for (const auto& unread : facts.unread)
        rows.emplace_back("unread", fmt::format("{}: {}", unread.field, unread.reason));
    for (auto& [name, cell] : rows) cell = base::escape(cell);
    context.console.out(cli::format_properties(rows));
    return Exit::ok;
}

constexpr const char* k_job_words =
    "It runs as a detached job: a lost connection, a killed caller or --timeout does not end it, and the same "
    "command waits for it or takes its result. A job that a reboot has ended is reported as lost, never as done.";

}  // namespace

std::vector<cli::Verb> verbs_kubernetes() {
    std::vector<cli::Verb> verbs;
    verbs.push_back(step_verb(
        "facts", "show what this node of a kubeadm cluster runs",
        "Shows the versions of kubelet and kubeadm, the four static Pods, what etcd, API server and kubelet say of "
        "themselves, certificates, space, cgroup, swap, container runtime, leftovers of kubeadm and the job of an "
        "upgrade. Unreadable facts are listed, never guessed; many need root. Changes nothing.",
        {{"kmm-worker kubernetes facts", "for people"},
         {"kmm-worker kubernetes facts -o json", "for programs"},
         {"kmm-worker kubernetes facts --for-upgrade --switch packages --placing kubelet=v1.35.4 -o json",
          "whether packages of that version could be installed"}},
        std::vector<cli::Option>{
            cli::option("requested-apis", "", "also ask its API server which deprecated APIs clients use"),
            cli::option("scan", "", "also versions in --from and in the package source"),
            cli::option("for-upgrade", "", "also images, sandbox image and drift of manifests"), placing_option(),
            ignore_option()} +
            switch_options()));
    verbs.back().run = run_kubernetes_facts;

    verbs.push_back(step_verb(
        "images", "pull the images of a version with kubeadm",
        std::string("Pulls the images of kubeadm config images list from the registry of the API server's image, and "
                    "asks the container runtime (crictl) for each. ") +
            k_job_words,
        {{"kmm-worker kubernetes images --target v1.35.4", "pull before the upgrade"}},
        std::vector<cli::Option>{target_option(), cli::option("config", "FILE", "configuration of kubeadm"),
                                 cli::option("image-repository", "PREFIX", "registry and path of the images"),
                                 cli::option("etcd-image", "IMAGE", "etcd, if not kubeadm's: REPOSITORY[:TAG] or :TAG"),
                                 cli::option("dns-image", "IMAGE", "CoreDNS, if not kubeadm's, in the same form")} +
            switch_options()));
    verbs.back().run = [](const cli::Args& args, cli::Context& context) {
        if (args.get("config"))
            refuse_without_effect(args, {"image-repository", "etcd-image", "dns-image"},
                                  "--config, whose file names the images");
        const Here here(args, context);
        const auto config = path_option(args, "config");
        if (!config.empty()) sys::require_trusted(here.node.place.here(config), "configuration of kubeadm");
        return report_step(
            kubeadm::pull_images(here.node, {target_of(args), config,
                                             args.get("image-repository").value_or(""), switch_of(args),
                                             args.get("etcd-image").value_or(""), args.get("dns-image").value_or("")}),
            here.node.image_slot(), context);
    };

    verbs.push_back(step_verb(
        "backup", "save manifests, certificates and kubelet files",
        "Copies /etc/kubernetes (manifests, pki, kubeconfigs) and the kubelet's files to "
        "/var/lib/kmm-node/backups/NAME with the digest of each, and reads them again. An existing backup is "
        "verified and kept. With --etcd-snapshot it includes the data of etcd, if etcd is a static Pod of this node.",
        {{"kmm-worker kubernetes backup --name before-v1.35.4", "make or verify a backup"}},
        {name_option(), cli::option("etcd-snapshot", "", "include a snapshot of etcd, proven by its hash"),
         cli::option("verify", "", "only verify; exit 76 if it is damaged")}));
    verbs.back().run = [](const cli::Args& args, cli::Context& context) {
        if (args.flag("verify"))
            refuse_without_effect(args, {"etcd-snapshot"}, "--verify, which verifies what the backup has");
        const Here here(args, context);
        const std::string name = name_of_backup(args);
        if (args.flag("verify")) return report_step(kubeadm::verify_backup(here.node, name), here.node.slot(), context);
        net::CurlHttpClient client;
        return report_step(kubeadm::make_backup(here.node, name, args.flag("etcd-snapshot") ? &client : nullptr),
                           here.node.slot(), context);
    };

    verbs.push_back(step_verb(
        "control-plane", "upgrade this node's control plane with kubeadm",
        std::string("Refuses unless the manifests of all static Pods are complete, runs kubeadm upgrade, and then "
                    "reads the version of each manifest: kubeadm's exit code alone is not trusted. ") +
            k_job_words,
        {{"kmm-worker kubernetes control-plane --target v1.35.4 --first", "kubeadm upgrade apply"},
         {"kmm-worker kubernetes control-plane --target v1.35.4", "kubeadm upgrade node"}},
        std::vector<cli::Option>{
            target_option(), cli::option("first", "", "kubeadm upgrade apply: the first control plane of the cluster"),
            ignore_option(),
            cli::option("skip-phases", "NAMES", "phases of kubeadm to leave out, such as addon/kube-proxy"),
            cli::option("patches", "DIR", "directory of kubeadm's patches")} +
            switch_options()));
    verbs.back().run = [](const cli::Args& args, cli::Context& context) {
        const Here here(args, context);
        kubeadm::ControlPlaneOptions options{target_of(args), args.flag("first"), {}, switch_of(args)};
        if (const auto patches = path_option(args, "patches"); !patches.empty()) require_patches(here, patches);
        for (const char* name : {"ignore-preflight-errors", "skip-phases", "patches"}) {
            if (const auto text = args.get(name)) options.extra.push_back(fmt::format("--{}={}", name, *text));
        }
        return report_step(kubeadm::upgrade_control_plane(here.node, options), here.node.slot(), context);
    };

    verbs.push_back(step_verb(
        "kubelet", "switch this node's kubelet to another version",
        std::string("On a worker node kubeadm upgrade node runs first. The kubelet is replaced and restarted, and must "
                    "run the new version for some seconds. Drain the node first. ") +
            k_job_words,
        {{"kmm-worker kubernetes kubelet --target v1.35.4 --switch packages", "with apt-get or dnf"},
         {"kmm-worker kubernetes kubelet --target v1.35.4 --switch binaries", "from /usr/local/kubernetes/1.35.4"}},
        std::vector<cli::Option>{
            target_option(), ignore_option(),
            cli::option("skip-phases", "NAMES", "of a worker: phases of kubeadm upgrade node to leave out"),
            cli::option("patches", "DIR", "of a worker: directory of kubeadm's patches, if this node has it")} +
            switch_options()));
    verbs.back().run = [](const cli::Args& args, cli::Context& context) {
        const Here here(args, context);
        const kubeadm::KubeletOptions options{target_of(args), switch_of(args),
                                              args.get("ignore-preflight-errors").value_or(""),
                                              args.get("skip-phases").value_or(""),
                                              path_option(args, "patches")};
        if (!options.patches.empty() && here.node.place.exists(options.patches))
            require_patches(here, options.patches);
        if (options.how.way == kubeadm::Switch::Way::none) {
            throw Error(Exit::usage, "missing-option", "expected --switch packages, binaries or command")
                .hint("it says how the kubelet gets onto the node");
        }
        return report_step(kubeadm::switch_kubelet(here.node, options), here.node.slot(), context);
    };

    verbs.push_back(
        step_verb("prune", "remove what earlier upgrades have left",
                  "Removes backups that earlier upgrades made, but for NAME and the newest complete ones; a complete "
                  "backup and a complete snapshot of etcd always remain. Removes copies of kubeadm in "
                  "/etc/kubernetes/tmp that are older than NAME, but for the newest of each kind and what repair "
                  "needs. Backups with other names than those of upgrades stay.",
                  {{"kmm-worker kubernetes prune --name before-v1.35.4-0f3c9a12", "after the upgrade is complete"}},
                  {name_option(),
                   cli::with_default(cli::option("keep", "N", "backups of upgrades to keep, NAME included"), "2")}));
    verbs.back().run = [](const cli::Args& args, cli::Context& context) {
        const Here here(args, context);
        const auto text = args.get("keep").value_or("");
        const auto keep = base::parse_number<std::size_t>(text);
        if (!keep || *keep == 0)
            throw Error(Exit::usage, "bad-value",
                        fmt::format("--keep: expected a number from 1 on, found '{}'", base::escape(text)))
                .hint("for example --keep 3");
        return report_step(kubeadm::prune_node(here.node, name_of_backup(args), *keep), here.node.slot(), context);
    };

    verbs.push_back(step_verb("repair", "restore manifests that a killed kubeadm lost",
                              "kubeadm swaps a manifest with two renames; if it is killed in between, the component "
                              "is gone. Each missing or damaged manifest is restored from kubeadm's newest complete "
                              "backup in /etc/kubernetes/tmp. Nothing changes unless all can be restored.",
                              {{"kmm-worker kubernetes repair", "then run control-plane again"}}, {}));
    verbs.back().run = [](const cli::Args& args, cli::Context& context) {
        const Here here(args, context);
        return report_step(kubeadm::repair_manifests(here.node), here.node.slot(), context);
    };

    verbs.push_back(
        step_verb("restore", "restore the files of a backup",
                  "Verifies the backup, then writes each file that differs, manifests last. Refused if the version "
                  "of etcd differs from the backup: its data would need a snapshot.",
                  {{"kmm-worker kubernetes restore --name before-v1.35.4", "back to the files of that backup"}},
                  {name_option()}));
    verbs.back().run = [](const cli::Args& args, cli::Context& context) {
        const Here here(args, context);
        return report_step(kubeadm::restore_backup(here.node, name_of_backup(args)), here.node.slot(), context);
    };
    verbs.push_back(verb_restore_etcd());
    return verbs;
}

}  // namespace kmm::tool_worker
