// SPDX-License-Identifier: Apache-2.0
#include "cluster/worker/pod_runner.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "base/text.hpp"
#include "cluster/seam/object_facts.hpp"
#include "cluster/seam/store.hpp"
#include "cluster/seam/worker_answer.hpp"
#include "cluster/seam/worker_process.hpp"
#include "cluster/worker/pod_outcome.hpp"
#include "kube/watch.hpp"
#include "value/reader.hpp"
#include "value/writer.hpp"

namespace kmm::cluster {

namespace {

using kube::Key;
using kube::key_of;
using std::chrono::milliseconds;
using value::Node;

constexpr const char* k_firmware_directory = "/lib/firmware";
constexpr std::chrono::seconds k_look_again{20};    // a watch that tells nothing is not believed for longer
constexpr std::chrono::seconds k_deadline_extra{60};  // what a Pod outlives the call it was made for
constexpr std::chrono::minutes k_start_patience{
    4};  // for the first pull of the worker's image, by a node that is ready
constexpr std::chrono::seconds k_silent_patience{15};  // for a question to a node whose kubelet is said to be silent
constexpr int k_start_tries = 3;

std::string uid_of(const Node& pod) { return pod.get_string({"metadata", "uid"}); }
std::string label_text(const Node& pod, std::string_view key) { return pod.get_string({"metadata", "labels", key}); }

bool changes_the_node(const Node& pod) { return render::is_worker_change(label_text(pod, render::k_label_verb)); }

/// True for a Pod that is twice as old as it may become: its maker is gone, or its node is.
bool is_abandoned(const Node& pod, std::int64_t now) {
    const auto created = base::parse_rfc3339(pod.get_string({"metadata", "creationTimestamp"}));
    const Node* deadline = pod.find_path({"spec", "activeDeadlineSeconds"});
    const auto life = deadline == nullptr ? std::nullopt : deadline->as_int();
    return created && life && now - *created >= 2 * *life;
}

void delete_pod(kube::Client& client, const Key& key, const std::string& uid) {
    kube::DeleteOptions options;
    options.uid = uid;
    static_cast<void>(client.remove(kube::resources::k_pods, key, options));
}

/// An error of the server that is its last word on the request.
bool is_refusal(const Error& error) {
    return error.code() == "forbidden" || error.code() == "rejected" || error.code() == "object-not-found";
}

/// Admission says no more than "forbidden" or "invalid", as missing rights and bad objects do.
Error refusal_of(const Error& error) {
    if (!kube::is_refused_by_admission(error.http_cause().value_or(0), error.message())) { return error; }
    return Error(Exit::no_permission, "worker-refused", error.message()).hint(error.hint());
}

/// What to do about a Pod that cannot end.
std::string removal_hint(const Key& key, const std::string& node) {
    return fmt::format(
        "only if node {} is off or has restarted since, so that no worker runs there: kubectl delete pod -n {} {} "
        "--force --grace-period=0",
        node, key.namespace_, key.name);
}

/// Who has made a Pod that is none of ours.
std::string whose(const Node& pod) {
    const Node* owners = pod.find_path({"metadata", "ownerReferences"});
    for (const auto& owner : owners == nullptr ? std::vector<Node>() : owners->items()) {
        const Node* is_controller = owner.find("controller");
        if (is_controller == nullptr || !is_controller->as_bool().value_or(false)) { continue; }
        return fmt::format("of {} {}", base::escape(owner.get_string({"kind"})),
                           base::escape(owner.get_string({"name"})));
    }
    const Node* fields = pod.find_path({"metadata", "managedFields"});
    for (const auto& entry : fields == nullptr ? std::vector<Node>() : fields->items()) {
        // A kubelet writes status alone.
        if (entry.get_string({"subresource"}).empty()) {
            return "made by " + base::escape(entry.get_string({"manager"}));
        }
    }
    return "that kmm-upgrade has not made";
}

/// The error that a Pod of somebody else has the name of a worker Pod; nullopt if it has not, or nobody may look.
std::optional<Error> taken_name_error(kube::Client& client, const Key& key) {
    std::optional<Node> there;
    try {
        there = client.find(kube::resources::k_pods, key);
    } catch (const Error& error) {
        if (ends_run(error)) { throw; }
    }
    if (!there || label_text(*there, render::k_label_managed_by) == render::k_task_manager) { return std::nullopt; }
    return Error(Exit::checks_failed, "worker-name-taken",
                 fmt::format("worker Pod {} cannot be made: a Pod {} has its name", key.to_string(), whose(*there)))
        .hint(fmt::format("if nobody needs it: kubectl delete pod -n {} {}", key.namespace_, key.name));
}

/// Command line for the Pod: the config is a file there, not standard input.
std::vector<std::string> task_arguments(const WorkerCall& call) {
    std::vector<std::string> args;
    for (std::size_t i = 0; i < call.args.size(); ++i) {
        if (call.args[i] == "--input-size") {
            ++i;
            continue;
        }
        args.push_back(call.args[i] == "-" ? std::string(render::k_task_config_file) : call.args[i]);
    }
    args.insert(args.end(), {"-o", "json"});
    return args;
}

}  // namespace

std::vector<kube::Rule> worker_pod_rules(const std::string& ns) {
    std::vector<kube::Rule> rules;
    for (const char* verb : {"get", "list", "watch", "create", "delete"}) {
        rules.push_back({verb, "", "pods", "", ns, ""});
    }
    return rules;
}

kube::Rule worker_log_rule(const std::string& ns) { return {"get", "", "pods", "log", ns, ""}; }

render::WorkerTask PodRunner::task_of(const WorkerCall& call) const {
    render::WorkerTask task;
    task.namespace_ = options_.namespace_;
    task.module = options_.module;
    task.module_namespace = options_.module_namespace;
    task.node = call.node;
    task.run = options_.run;
    task.image = options_.image;
    task.service_account = options_.service_account;
    task.args = task_arguments(call);
    task.has_apparmor_field = options_.has_apparmor_field;
    const auto timeout = std::chrono::ceil<std::chrono::seconds>(call.timeout);
    task.deadline = (render::is_worker_change(render::worker_task_verb(call.args)) ? timeout : 2 * timeout) +
                    k_start_patience + k_deadline_extra;  // see wait()
    if (call.stdin_text.empty()) { return task; }
    Diagnostics faults;
    const auto documents = value::read_any(call.stdin_text, "the worker's input", faults);
    if (documents.empty() || has_errors(faults)) {
        throw bug("a worker was given an input that is not a ModuleConfig");
    }
    task.config = value::to_yaml(documents.front().root);
    for (std::size_t i = 1; i < documents.size(); ++i) {
        const Node& document = documents[i].root;
        if (document.get_string({"kind"}) == "Secret") {  // is mounted: nothing of it stands in an annotation
            task.pull_secret = document.get_string({"metadata", "name"});
            if (const Node* data = document.find("data"); data != nullptr) {
                for (const auto& member : data->members()) { task.pull_secret_keys.push_back(member.key); }
            }
        } else {
            task.config += "---\n" + value::to_yaml(document);
        }
    }
    if (!documents.front().root.get_string({"modprobe", "firmwarePath"}).empty()) {
        task.firmware_host_path = k_firmware_directory;
        task.args.insert(task.args.end(), {"--firmware-path", k_firmware_directory});
    }
    return task;
}

bool PodRunner::take_away(const Key& key, const std::string& uid) {
    try {
        delete_pod(client_, key, uid);
        return true;
    } catch (const Error& error) {
        // Whoever lost the Lease, or wants to stop, says so; whoever resumes takes the Pod away.
        if (options_.warn && error.code() != "interrupted" && error.code() != "lease-lost")
            options_.warn(fmt::format("worker Pod {} is left behind, it could not be deleted: {}", key.to_string(),
                                      error.message()));
        return false;
    }
}

bool PodRunner::is_clear(const std::string& node) {
    const std::lock_guard lock(mutex_);
    return clear_nodes_.contains(node);
}

void PodRunner::set_clear(const std::string& node, bool clear) {
    const std::lock_guard lock(mutex_);
    if (clear) {
        clear_nodes_.insert(node);
    } else {
        clear_nodes_.erase(node);
    }
}

std::optional<PodRunner::Obstacle> PodRunner::clear_pod(const Node& pod, const std::string& wanted_name,
                                                        milliseconds end) {
    const Key key = key_of(pod);
    const std::string uid = uid_of(pod);
    const bool is_ours = label_text(pod, render::k_label_run) == options_.run;
    const bool has_name = key.name == wanted_name && key.namespace_ == options_.namespace_;
    const auto left = [&] { return std::max(end - client_.clock().monotonic(), milliseconds(0)); };
    const auto is_gone = [&](const std::optional<Node>& now) { return !now || uid_of(*now) != uid; };
    std::optional<Node> last = pod;
    if (!is_pod_over(pod) && !(is_ours && (!changes_the_node(pod) || is_pod_unstarted(pod)))) {
        const bool over = kube::wait_for(
            client_, kube::resources::k_pods, key,
            [&](const std::optional<Node>& now) {
                last = now;
                return is_gone(now) || is_pod_over(*now);
            },
            left(), k_look_again);
        if (!over) {
            return Obstacle{fmt::format("worker Pod {} of {} is still there: {}", key.to_string(),
                                        is_ours ? "this upgrade" : "another upgrade", pod_situation(*last)),
                            removal_hint(key, pod.get_string({"spec", "nodeName"}))};
        }
        if (is_gone(last)) { return std::nullopt; }
    }
    if (!is_ours && !has_name) { return std::nullopt; }  // it has ended, and is somebody else's
    delete_pod(client_, key, uid);
    const bool gone = kube::wait_for(client_, kube::resources::k_pods, key, is_gone, left(), k_look_again);
    if (gone) { return std::nullopt; }
    return Obstacle{fmt::format("worker Pod {} was deleted, but is still there: the node's kubelet has not ended it",
                                key.to_string()),
                    removal_hint(key, pod.get_string({"spec", "nodeName"}))};
}

/// True for a Pod that a kmm-upgrade of this namespace can have made: its name follows from its labels and its node.
/// Labels alone are no proof, anybody may set them.
bool PodRunner::can_be_ours(const Node& pod) const {
    const Key key = key_of(pod);
    const std::string prefix = std::string(render::k_task_manager) + "-";
    if (key.namespace_ != options_.namespace_ || !key.name.starts_with(prefix)) { return false; }
    render::WorkerTask task;
    task.namespace_ = key.namespace_;
    task.node = pod.get_string({"spec", "nodeName"});
    task.args = {label_text(pod, render::k_label_verb)};
    task.module = label_text(pod, render::k_label_module);
    task.module_namespace = label_text(pod, render::k_label_module_namespace);
    task.run = label_text(pod, render::k_label_run);
    if (key.name == render::worker_task_name(task)) { return true; }
    task.module = options_.module;  // a long name is cut in the label
    return key.name == render::worker_task_name(task);
}

void PodRunner::clear_reader(const Node& pod, milliseconds patience) {
    const Key key = key_of(pod);
    const std::string uid = uid_of(pod);
    const bool can_end = !is_pod_unstarted(pod) || is_pod_starting(pod);
    bool is_over = is_pod_over(pod) || is_abandoned(pod, client_.clock().now_unix());
    if (!is_over && can_end && node_trouble(pod.get_string({"spec", "nodeName"})).empty()) {
        const auto has_ended = [&](const std::optional<Node>& now) {
            return !now || uid_of(*now) != uid || is_pod_over(*now);
        };
        is_over = kube::wait_for(client_, kube::resources::k_pods, key, has_ended, patience, k_look_again);
    }
    if (is_over) { delete_pod(client_, key, uid); }
}

std::optional<PodRunner::Obstacle> PodRunner::clear_node(const render::WorkerTask& task, milliseconds end) {
    if (is_clear(task.node)) { return std::nullopt; }
    const std::string wanted_name = render::worker_task_name(task);
    kube::ListQuery query;
    query.namespace_ = options_.namespace_;
    query.label_selector = fmt::format("{}={}", render::k_label_managed_by, render::k_task_manager);
    query.field_selector = "spec.nodeName=" + task.node;
    for (const auto& pod : client_.list_all(kube::resources::k_pods, query)) {
        if (!can_be_ours(pod)) { continue; }
        const bool is_ours = label_text(pod, render::k_label_run) == options_.run;
        if (!is_ours && render::is_worker_reading(label_text(pod, render::k_label_verb))) {
            clear_reader(pod, std::max(end - client_.clock().monotonic(), milliseconds(0)) / 2);
            continue;
        }
        if (auto obstacle = clear_pod(pod, wanted_name, end)) { return obstacle; }
    }
    set_clear(task.node, true);
    return std::nullopt;
}

std::optional<WorkerReply> PodRunner::start(const render::WorkerTask& task, milliseconds end, Node& created) {
    const auto unreachable = [](const std::string& text, const std::string& hint = "") {
        WorkerReply reply;
        reply.hint = hint;
        reply.end = CallEnd::unreachable;
        reply.transport = text;
        return reply;
    };
    const Node pod = render::worker_task_pod(task);
    for (int tried = 1;; ++tried) {
        try {
            if (const auto obstacle = clear_node(task, end)) { return unreachable(obstacle->text, obstacle->hint); }
        } catch (const Error& error) {
            if (ends_run(error)) { throw; }
            if (is_refusal(error)) { return error_reply(error); }
            return unreachable(error.message());
        }
        try {
            set_clear(task.node, false);
            created = client_.create(kube::resources::k_pods, pod);
            return std::nullopt;
        } catch (const Error& error) {
            if (ends_run(error)) { throw; }
            if (error.code() == "already-exists") {
                if (const auto taken = taken_name_error(client_, key_of(pod))) { return error_reply(*taken); }
                if (tried < k_start_tries) { continue; }
            }
            if (is_refusal(error)) {
                set_clear(task.node, true);
                return error_reply(refusal_of(error));
            }
            WorkerReply reply = unreachable(error.message());
            if (error.code() != "already-exists") {
                reply.end = CallEnd::unknown;
            }  // it may have been made all the same
            return reply;
        }
    }
}

std::string PodRunner::node_trouble(const std::string& node) {
    const auto object = client_.find(kube::resources::k_nodes, {"", node});
    if (!object) { return fmt::format("; there is no Node {}", node); }
    const Node* ready = condition_of(*object, "Ready");
    if (ready == nullptr || is_ready(*object)) { return ""; }
    return fmt::format("; node {} is not ready: {}: {}", node, base::escape(ready->get_string({"reason"})),
                       base::escape(ready->get_string({"message"})));
}

bool PodRunner::is_kubelet_silent(const std::string& node) {
    const auto object = client_.find(kube::resources::k_nodes, {"", node});
    const Node* ready = object ? condition_of(*object, "Ready") : nullptr;
    return ready != nullptr && ready->get_string({"status"}) == "Unknown";
}

std::string PodRunner::why_unstarted(const std::string& node, const std::optional<Node>& pod) {
    std::string text =
        pod ? fmt::format("worker Pod {} was not started in time: {}", pod_title(*pod), pod_situation(*pod)) : "";
    try {
        text += node_trouble(node);
    } catch (const Error& error) {
        text += "; " + error.message();
    }
    return text;
}

std::optional<WorkerReply> PodRunner::with_log(WorkerReply reply, const Key& key) {
    if (reply.document.get_string({"kind"}) != "PodLog") { return reply; }
    kube::Call call;
    call.path = kube::path_of(kube::resources::k_pods, key, "log");
    call.query.emplace_back("container", "worker");
    call.action = {"get", "", "pods", "log", key.namespace_, key.name};
    // A kubelet that restarts gives no logs until it listens again.
    call.is_answer = [](const kube::Failure& failure) { return failure.code != 403; };
    const auto answer = client_.exchange(call);
    const auto* bytes = reply.document.find("bytes");
    const auto size = bytes == nullptr ? std::nullopt : bytes->as_int();
    if (answer.failure || !size) { return std::nullopt; }
    Node document = worker_document(answer.body);
    if (static_cast<std::int64_t>(value::to_json(document).size()) != *size) { return std::nullopt; }
    reply.document = std::move(document);
    return reply;
}

WorkerReply PodRunner::wait(const WorkerCall& call, const Node& created, milliseconds end) {
    const Key key = key_of(created);
    const std::string uid = uid_of(created);
    const milliseconds left = std::max(end - client_.clock().monotonic(), milliseconds(1000));
    PodOutcome outcome;
    std::optional<WorkerReply> reply;
    std::optional<Node> last = created;
    bool vanished = false;
    std::optional<milliseconds> started;  // when its worker was first seen to run
    const auto has_ended = [&](const std::optional<Node>& now) {
        vanished = !now || uid_of(*now) != uid;
        if (vanished) { return true; }
        last = now;
        reply = outcome.take(*now);
        if (reply) { reply = with_log(std::move(*reply), key); }
        if (!started && !is_pod_unstarted(*now)) { started = client_.clock().monotonic(); }
        return reply.has_value();
    };
    const auto told_within = [&](milliseconds time) {
        return kube::wait_for(client_, kube::resources::k_pods, key, has_ended, time, k_look_again);
    };
    bool told = false, is_silent = false;
    try {
        if (left > k_silent_patience && !changes_the_node(created)) {
            told = told_within(k_silent_patience);
            is_silent = !told && is_pod_unstarted(*last) && is_kubelet_silent(call.node);
        }
        if (!told && !is_silent) {
            told = told_within(std::max(end - client_.clock().monotonic(), milliseconds(1000)));
        }
        if (!told && !is_silent && is_pod_starting(*last) && !changes_the_node(*last) &&
            node_trouble(call.node).empty()) {
            told = told_within(k_start_patience);
        }
        // The time of a question is its worker's: a kubelet that was long in starting it leaves it no less.
        if (!told && started && !changes_the_node(*last)) {
            const milliseconds rest = *started + call.timeout - client_.clock().monotonic();
            told = rest > milliseconds(0) && told_within(rest);
        }
    } catch (const Error& error) {
        if (error.code() != "interrupted") { throw; }
        const bool goes_on = changes_the_node(*last) && !is_pod_unstarted(*last);
        if (!goes_on) { static_cast<void>(take_away(key, uid)); }
        throw Error(
            error.exit(), "interrupted",
            goes_on ? fmt::format(
                          "interrupted; worker Pod {} goes on, and is looked for before anything else is done there",
                          key.to_string())
                    : error.message());
    }
    if (vanished) {
        WorkerReply lost;
        lost.end = CallEnd::unknown;
        lost.transport =
            fmt::format("worker Pod {} vanished before its result was read; somebody has deleted it", key.to_string());
        return lost;
    }
    if (!told) {
        WorkerReply silent;
        const bool unstarted = is_pod_unstarted(*last);
        silent.end = unstarted ? CallEnd::unreachable : CallEnd::unknown;
        silent.transport = unstarted ? why_unstarted(call.node, last)
                                     : fmt::format("worker Pod {} has not ended within the time limit: {}",
                                                   key.to_string(), pod_situation(*last));
        reply = silent;
        if (!unstarted && changes_the_node(*last)) {
            return *reply;
        }  // it may be in the middle of the kernel: the next call waits for it
    }
    // What is left of it is its kubelet's work, and in nobody's way but that of a Pod of the same name.
    if (take_away(key, uid) && is_pod_over(*last)) { set_clear(call.node, true); }
    return *reply;
}

WorkerReply PodRunner::run(const WorkerCall& call) {
    if (const auto& asked = client_.options().stop_waiting; asked && asked()) {
        throw kube::stopped_waiting("node " + call.node);
    }
    const milliseconds end = client_.clock().monotonic() + call.timeout;
    const render::WorkerTask task = task_of(call);
    Node created;
    if (auto reply = start(task, end, created)) { return *reply; }
    try {
        return wait(call, created, end);
    } catch (const Error& error) {
        if (ends_run(error)) { throw; }
        WorkerReply reply;
        reply.end = CallEnd::unknown;
        reply.transport = fmt::format("worker Pod {}: {}", pod_title(created), error.message());
        return reply;
    }
}

}  // namespace kmm::cluster
