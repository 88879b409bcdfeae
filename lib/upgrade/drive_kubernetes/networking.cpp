// SPDX-License-Identifier: Apache-2.0
#include "upgrade/drive_kubernetes/networking.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/text.hpp"
#include "kube/client.hpp"
#include "sys/file_ops.hpp"
#include "upgrade/drive/actor.hpp"
#include "upgrade/drive_kubernetes/node_proof.hpp"
#include "value/reader.hpp"

namespace kmm::drive {
namespace {

using value::Document;
using value::Node;

/// The directory of that version; both spellings are looked for.
std::filesystem::path directory_of(const std::string& directory, const std::string& version) {
    std::error_code failed;
    for (const auto& name : {version, version.starts_with('v') ? version.substr(1) : "v" + version})
        if (const auto path = std::filesystem::path(directory) / name; std::filesystem::is_directory(path, failed))
            return path;
    throw Error(Exit::not_found, "networking-not-found",
                fmt::format("there is no directory {}/{}", base::escape(directory), version))
        .hint("it holds the manifests of networking for that version of Kubernetes");
}

/// `text` with its variables replaced. Names that are not known are faults.
std::string replaced(const std::string& text, const std::string& file,
                     const std::map<std::string, std::string>& variables, Diagnostics& faults) {
    std::string result;
    std::size_t line = 1, begin = 0;
    for (std::size_t at = 0; at < text.size(); ++at) {
        if (text[at] == '\n') ++line;
        if (text.compare(at, 2, "${") != 0) continue;
        const auto end = text.find('}', at);
        const auto name = end == std::string::npos ? std::string() : text.substr(at + 2, end - at - 2);
        const auto found = variables.find(name);
        if (found == variables.end()) {
            const auto line_begin = text.rfind('\n', at);
            Diagnostic fault;
            fault.code = "unknown-variable";
            fault.message =
                fmt::format("expected ${{KUBERNETES_VERSION}} or ${{FROM_VERSION}}, found ${{{}}}", base::escape(name));
            fault.position = Position{file, line, at - (line_begin == std::string::npos ? 0 : line_begin + 1) + 1};
            faults.push_back(std::move(fault));
            continue;
        }
        result += text.substr(begin, at - begin) + found->second;
        at = end;
        begin = end + 1;
    }
    return result + text.substr(begin);
}

/// The parts of an object that say which one it is. Faults are appended.
void require_object(const Document& document, Diagnostics& faults) {
    for (const auto& path : {std::vector<std::string_view>{"apiVersion"}, {"kind"}, {"metadata", "name"}}) {
        const Node* at = &document.root;
        for (const auto key : path) at = at == nullptr || !at->is_mapping() ? nullptr : at->find(key);
        if (at != nullptr && at->is_string() && !at->text().empty()) continue;
        std::vector<std::string> words(path.begin(), path.end());
        Diagnostic fault;
        fault.code = "bad-object";
        fault.message = fmt::format("expected an object with {}, found none", base::join(words, "."));
        fault.position = document.position(document.root.mark());
        faults.push_back(std::move(fault));
    }
}

std::string name_of(const Node& object) {
    const auto space = object.get_string({"metadata", "namespace"});
    return fmt::format("{} {}{}", object.get_string({"kind"}), space.empty() ? "" : space + "/",
                       object.get_string({"metadata", "name"}));
}

/// The path of an API's list of kinds.
std::string path_of_group(const std::string& api_version) {
    return api_version.find('/') == std::string::npos ? "/api/" + api_version : "/apis/" + api_version;
}

std::int64_t number_in(const Node& object, std::initializer_list<std::string_view> path) {
    const auto* found = object.find_path(path);
    return found == nullptr ? 0 : found->as_int().value_or(0);
}

/// What is left to wait for, "" if the rollout is complete or the kind has none.
std::string rollout_problem(const Node& object) {
    const auto kind = object.get_string({"kind"});
    const auto incomplete = [&](std::int64_t ready, std::int64_t wanted) {
        return fmt::format("{}: {} of {} Pods are updated and available", name_of(object), ready, wanted);
    };
    if (kind != "DaemonSet" && kind != "Deployment" && kind != "StatefulSet") return "";
    if (number_in(object, {"status", "observedGeneration"}) < number_in(object, {"metadata", "generation"}))
        return name_of(object) + ": its controller has not seen it yet";
    if (kind == "DaemonSet") {
        const auto wanted = number_in(object, {"status", "desiredNumberScheduled"});
        const auto ready = std::min(number_in(object, {"status", "updatedNumberScheduled"}),
                                    number_in(object, {"status", "numberAvailable"}));
        return ready >= wanted ? "" : incomplete(ready, wanted);
    }
    const auto* replicas = object.find_path({"spec", "replicas"});
    const auto wanted = replicas == nullptr ? 1 : replicas->as_int().value_or(1);
    const auto ready =
        std::min(number_in(object, {"status", "updatedReplicas"}),
                 number_in(object, {"status", kind == "Deployment" ? "availableReplicas" : "readyReplicas"}));
    return ready >= wanted ? "" : incomplete(ready, wanted);
}

/// An object of a namespaced kind that names no namespace is in "default".
Node placed(Node object, const kube::Resource& resource) {
    if (resource.scope != kube::Scope::namespaced || !object.get_string({"metadata", "namespace"}).empty())
        return object;
    auto meta = *object.find("metadata");
    meta.set("namespace", "default");
    object.set("metadata", std::move(meta));
    return object;
}

class ServerNetworking final : public Networking {
public:
    ServerNetworking(kube::Client& client, sys::Clock& clock) : client_(client), clock_(clock) {}

    [[nodiscard]] std::string apply(const upgrade::Header& run, const upgrade::kubernetes::Subject& subject,
                                    const Deadline& deadline, const std::function<bool()>& interrupted) override {
        auto documents = read_networking(subject.networking, run.to_version, run.from_version);
        // What brings kinds comes first.
        std::stable_partition(documents.begin(), documents.end(), [](const Document& document) {
            const auto kind = document.root.get_string({"kind"});
            return kind == "CustomResourceDefinition" || kind == "Namespace";
        });
        // The server judges all of them before the first one is changed; kinds that this very set brings are not known
        // to it yet.
        for (const auto& document : documents)
            if (const auto resource = resource_of(document.root))
                static_cast<void>(send(*resource, placed(document.root, *resource), kube::DryRun::all));
        std::size_t changed = 0;
        std::vector<std::pair<kube::Resource, kube::Key>> watched;
        for (const auto& document : documents) {
            std::optional<kube::Resource> resource;
            await_none(clock_, deadline, interrupted, document.root.get_string({"metadata", "name"}), [&] {
                resource = resource_of(document.root);
                return resource
                           ? std::string()
                           : fmt::format("the API server does not serve kind {} of {}",
                                         document.root.get_string({"kind"}), document.root.get_string({"apiVersion"}));
            });
            const auto object = placed(document.root, *resource);
            const kube::Key key{object.get_string({"metadata", "namespace"}), object.get_string({"metadata", "name"})};
            const auto before = client_.find(*resource, key);
            const auto after = send(*resource, object, kube::DryRun::no);
            if (!before || before->get_string({"metadata", "resourceVersion"}) !=
                               after.get_string({"metadata", "resourceVersion"}))
                ++changed;
            watched.emplace_back(*resource, key);
        }
        for (const auto& [resource, key] : watched)
            await_none(clock_, deadline, interrupted, key.name,
                       [&, &where = resource, &name = key] { return rollout_problem(client_.get(where, name)); });
        return fmt::format("{} of {} objects changed, every rollout is complete", changed, documents.size());
    }

private:
    /// nullopt if the server has no such kind.
    std::optional<kube::Resource> resource_of(const Node& object) {
        const auto api_version = object.get_string({"apiVersion"}), kind = object.get_string({"kind"});
        kube::Call call;
        call.path = path_of_group(api_version);
        call.is_answer = [](const kube::Failure& failure) { return failure.code == 404; };
        const auto reply = client_.exchange(call);
        if (reply.failure) return std::nullopt;
        const auto list = kube::Client::parse(reply, {"get", "", api_version, "", "", ""});
        const auto* resources = list.find("resources");
        const auto slash = api_version.find('/');
        for (const auto& each : resources == nullptr ? std::vector<Node>() : resources->items()) {
            const auto plural = each.get_string({"name"});
            if (each.get_string({"kind"}) != kind || plural.find('/') != std::string::npos) continue;
            const auto* is_namespaced = each.find("namespaced");
            return kube::Resource{slash == std::string::npos ? "" : api_version.substr(0, slash),
                                  slash == std::string::npos ? api_version : api_version.substr(slash + 1), plural,
                                  kind,
                                  is_namespaced != nullptr && is_namespaced->as_bool() == true ? kube::Scope::namespaced
                                                                                               : kube::Scope::cluster};
        }
        return std::nullopt;
    }

    Node send(const kube::Resource& resource, const Node& object, kube::DryRun dry_run) {
        return with_context([&] { return name_of(object); },
                            [&] { return client_.apply(resource, object, kube::Force::no, dry_run); });
    }

    kube::Client& client_;
    sys::Clock& clock_;
};

class NoNetworking final : public Networking {
public:
    [[nodiscard]] std::string apply(const upgrade::Header&, const upgrade::kubernetes::Subject&, const Deadline&,
                                    const std::function<bool()>&) override {
        throw bug("manifests of networking for a directory cluster");
    }
};

}  // namespace

std::vector<Document> read_networking(const std::string& directory, const std::string& version,
                                      const std::string& from) {
    const auto path = directory_of(directory, version);
    std::vector<std::string> files;
    for (const auto& entry : std::filesystem::directory_iterator(path)) {
        const auto extension = entry.path().extension();
        if (extension == ".yaml" || extension == ".yml" || extension == ".json") files.push_back(entry.path().string());
    }
    std::sort(files.begin(), files.end());
    if (files.empty())
        throw Error(Exit::not_found, "networking-not-found",
                    fmt::format("{} holds no manifest (*.yaml, *.yml, *.json)", base::escape(path.string())));
    Diagnostics faults;
    std::vector<Document> documents;
    const std::map<std::string, std::string> variables{{"KUBERNETES_VERSION", version}, {"FROM_VERSION", from}};
    for (const auto& file : files) {
        for (auto& document : value::read_any(replaced(sys::read_file(file), file, variables, faults), file, faults)) {
            require_object(document, faults);
            documents.push_back(std::move(document));
        }
    }
    sort_and_merge(faults);
    if (has_errors(faults)) throw Error::from_diagnostics(std::move(faults));
    return documents;
}

std::unique_ptr<Networking> networking_of(cluster::Cluster& cluster, sys::Clock& clock) {
    if (cluster.server != nullptr) return std::make_unique<ServerNetworking>(cluster.server->client(), clock);
    return std::make_unique<NoNetworking>();
}

}  // namespace kmm::drive
