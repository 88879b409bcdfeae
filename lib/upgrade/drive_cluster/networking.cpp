// SPDX-License-Identifier: Apache-2.0
#include "upgrade/drive_cluster/networking.hpp"

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/counted.hpp"
#include "base/text.hpp"
#include "kube/client.hpp"
#include "sys/trust.hpp"
#include "upgrade/actor_parts/objects.hpp"
#include "upgrade/drive/actor.hpp"
#include "upgrade/drive_cluster/network_canary.hpp"
#include "upgrade/drive_cluster/operator_rollouts.hpp"
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

/// `text` with its variables replaced, and "$${" by "${". Names that are not known are faults.
std::string replaced(const std::string& text, const std::string& file,
                     const std::map<std::string, std::string>& variables, Diagnostics& faults) {
    std::string result;
    std::size_t line = 1, begin = 0;
    for (std::size_t at = 0; at < text.size(); ++at) {
        if (text[at] == '\n') ++line;
        if (text.compare(at, 3, "$${") == 0) {
            result += text.substr(begin, at - begin);
            begin = at + 1;
            at += 2;
            continue;
        }
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
            fault.hint = fmt::format("write $${{{}}} where the manifest itself has ${{{}}}, as in a script",
                                     base::escape(name), base::escape(name));
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

/// The objects of a document: lists, which may be in lists, are taken apart.
void take_objects(Document document, std::vector<Document>& objects, Diagnostics& faults) {
    const Node* items = document.root.find("items");
    const auto kind = document.root.get_string({"kind"});
    const bool is_list = kind.ends_with("List") && items != nullptr && items->is_sequence();
    if (is_list && document.root.find_path({"metadata", "name"}) == nullptr) {
        for (const auto& item : items->items()) {
            Document one;
            one.file = document.file;
            one.index = document.index;
            one.root = item;
            take_objects(std::move(one), objects, faults);
        }
        return;
    }
    require_object(document, faults);
    objects.push_back(std::move(document));
}

/// Of two that differ the one that comes last would win, and Pods would be replaced twice.
void require_once(const std::vector<Document>& objects, Diagnostics& faults) {
    std::map<std::string, const Document*> first;
    for (const auto& object : objects) {
        const auto api_version = object.root.get_string({"apiVersion"});
        const auto slash = api_version.find('/');
        const auto key = fmt::format("{} {}", slash == std::string::npos ? "" : api_version.substr(0, slash),
                                     object_text(object.root));
        const auto [before, is_new] = first.emplace(key, &object);
        if (is_new || before->second->root.same_value(object.root)) continue;
        Diagnostic fault;
        fault.code = "duplicate-object";
        fault.message =
            fmt::format("{} appears twice, first at {}", base::escape(object_text(object.root)),
                        before->second->position(before->second->root.mark()).to_string());
        fault.position = object.position(object.root.mark());
        fault.hint = "give each object once: remove what is left of another release";
        faults.push_back(std::move(fault));
    }
}

class ServerNetworking final : public Networking {
public:
    ServerNetworking(kube::Client& client, sys::Clock& clock, Say say)
        : objects_(client), client_(client), clock_(clock), say_(say), canary_(client, clock, std::move(say)) {}

    [[nodiscard]] std::string apply(const upgrade::Header& run, const upgrade::kubernetes::Subject& subject,
                                    const Deadline& deadline, const std::function<bool()>& interrupted) override {
        auto documents = read_networking(subject.networking, run.to_version, upgrade::kubernetes::version_before(run));
        // Rights may have been taken since the start of the run.
        OperatorRollouts::require_rights(client_, documents);
        // What brings kinds comes first.
        std::stable_partition(documents.begin(), documents.end(), [](const Document& document) {
            const auto kind = document.root.get_string({"kind"});
            return kind == "CustomResourceDefinition" || kind == "Namespace";
        });
        // The server judges all of them before the first one is changed; kinds and namespaces that this very set
        // brings are not known to it yet.
        const auto brought = missing_namespaces(documents);
        for (const auto& document : documents)
            if (const auto resource = objects_.resource_of(document.root)) {
                const auto object = placed(document.root, *resource);
                if (!brought.contains(object.get_string({"metadata", "namespace"})))
                    static_cast<void>(objects_.apply(*resource, object, kube::Force::no, kube::DryRun::all));
            }
        std::size_t changed = 0;
        std::vector<std::pair<kube::Resource, kube::Key>> watched;
        for (const auto& document : documents) {
            std::optional<kube::Resource> resource;
            const auto is_unserved = [&] {
                resource = objects_.resource_of(document.root);
                return resource
                           ? std::string()
                           : fmt::format("the API server does not serve kind {} of {}",
                                         document.root.get_string({"kind"}), document.root.get_string({"apiVersion"}));
            };
            await_clear(clock_, deadline, interrupted, "kubectl get crds: see whether the set brings this kind",
                        spoken(clock_, deadline, say_, is_unserved));
            const auto object = placed(document.root, *resource);
            const kube::Key key{object.get_string({"metadata", "namespace"}), object.get_string({"metadata", "name"})};
            const auto before = client_.find(*resource, key);
            const auto after = objects_.apply(*resource, object, kube::Force::no);
            if (!before || before->get_string({"metadata", "resourceVersion"}) !=
                               after.get_string({"metadata", "resourceVersion"}))
                ++changed;
            watched.emplace_back(*resource, key);
        }
        for (const auto& [resource, key] : watched)
            await_clear(clock_, deadline, interrupted,
                        fmt::format("kubectl describe {} -n {} {}; kubectl get pods -n {} -o wide", resource.plural,
                                    key.namespace_, key.name, key.namespace_),
                        spoken(clock_, deadline, say_, [&, &where = resource, &name = key] {
                            return rollout_problem(client_.get(where, name));
                        }));
        const auto operators = OperatorRollouts(client_, clock_)
                                   .await(documents, watched, base::parse_rfc3339(run.created).value_or(0), deadline,
                                          interrupted, say_);
        return fmt::format("{} of {} changed, every rollout is complete; {}{}{}", changed,
                           base::counted(documents.size(), "object"), operators, operators.empty() ? "" : "; ",
                           tried(run, subject, deadline, interrupted));
    }

    void remove_canary(const Deadline& deadline) override {
        canary_.remove(deadline, [] { return false; });
    }

private:
    /// Namespaces of the set that the server does not have.
    [[nodiscard]] std::set<std::string> missing_namespaces(const std::vector<Document>& documents) {
        std::set<std::string> names;
        for (const auto& document : documents) {
            const auto& root = document.root;
            const auto name = root.get_string({"metadata", "name"});
            if (root.get_string({"kind"}) == "Namespace" && root.get_string({"apiVersion"}) == "v1" &&
                !client_.find(kube::resources::k_namespaces, {"", name}))
                names.insert(name);
        }
        return names;
    }

    [[nodiscard]] std::string tried(const upgrade::Header& run, const upgrade::kubernetes::Subject& subject,
                                    const Deadline& deadline, const std::function<bool()>& interrupted) {
        if (subject.canary_image.empty())
            return "traffic between Pods and DNS were not tried: no --canary-image was given";
        return canary_.run({subject.canary_image, run.lineage, domain(), left_out_names(run)}, deadline, interrupted);
    }

    /// The domain of the cluster, as kubeadm-config has it.
    [[nodiscard]] std::string domain() {
        const auto map = client_.find(kube::resources::k_config_maps, {"kube-system", "kubeadm-config"});
        const auto text = map ? map->get_string({"data", "ClusterConfiguration"}) : std::string();
        Diagnostics faults;
        for (const auto& document : value::read_any(text, "kubeadm-config", faults))
            if (const auto found = document.root.get_string({"networking", "dnsDomain"}); !found.empty()) return found;
        return "cluster.local";
    }

    Objects objects_;
    kube::Client& client_;
    sys::Clock& clock_;
    Say say_;
    NetworkCanary canary_;
};

class NoNetworking final : public Networking {
public:
    [[nodiscard]] std::string apply(const upgrade::Header&, const upgrade::kubernetes::Subject&, const Deadline&,
                                    const std::function<bool()>&) override {
        throw bug("manifests of networking for a directory cluster");
    }
    void remove_canary(const Deadline&) override {}
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
        const auto text = replaced(sys::read_trusted_file(file, "manifest of networking"), file, variables, faults);
        for (auto& document : value::read_objects(text, file, faults))
            take_objects(std::move(document), documents, faults);
    }
    require_once(documents, faults);
    sort_and_merge(faults);
    if (has_errors(faults)) throw Error::from_diagnostics(std::move(faults));
    if (documents.empty())
        throw Error(Exit::not_found, "networking-not-found",
                    fmt::format("the manifests of {} hold no object", base::escape(path.string())))
            .hint("see what was to write them: their files are empty, or hold comments alone");
    return documents;
}

std::unique_ptr<Networking> networking_of(cluster::Cluster& cluster, sys::Clock& clock, Say say) {
    if (cluster.server != nullptr)
        return std::make_unique<ServerNetworking>(cluster.server->client(), clock, std::move(say));
    return std::make_unique<NoNetworking>();
}

}  // namespace kmm::drive
