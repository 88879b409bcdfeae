// SPDX-License-Identifier: Apache-2.0
// Secrets and ConfigMaps that Modules name: whether they are there, and whether they have the keys that KMM mounts.
// Facts: KMM 11.2, 11.3.
#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "api/made_objects.hpp"
#include "base/shell_word.hpp"
#include "base/text.hpp"
#include "plan/kmm/login_secret.hpp"
#include "plan/lint/findings.hpp"
#include "plan/lint/lint.hpp"

namespace kmm::plan {

namespace {

using Names = std::set<std::string>;
using Keys = std::vector<std::string>;

/// Names of one kind with the keys of each, by namespace.
using KeysByName = std::map<std::string, Keys, std::less<>>;
using KeysByNamespace = std::map<std::string, KeysByName, std::less<>>;

/// A Secret or ConfigMap that another program makes of something that was read.
struct MadeObject {
    Keys keys;
    std::string type;    ///< of a Secret
    std::string holder;  ///< "SealedSecret drivers/pull", or the file of a kustomization
    bool has_hash;       ///< a made name, too
};

using NamespacedName = std::pair<std::string, std::string>;

struct Known {
    KeysByNamespace secrets, config_maps;
    std::map<NamespacedName, std::string> faults_of_login_types;
    std::map<NamespacedName, MadeObject> made_secrets, made_config_maps;
};

/// What is wrong with the type of a Secret that is to have a login, "" if nothing is. Kubelets look at Secrets of two
/// types alone, and a server takes each with its key only.
/// Source: Kubernetes pkg/credentialprovider/secrets/secrets.go, pkg/apis/core/validation/validation.go.
std::string fault_of_login_type(const std::string& type, const Keys& keys) {
    const auto has = [&](const std::string& key) { return std::find(keys.begin(), keys.end(), key) != keys.end(); };
    if (!has(".dockerconfigjson") && !has(".dockercfg")) { return ""; }  // that is another fault, or none
    for (const std::string known : {"dockerconfigjson", "dockercfg"}) {
        if (type != "kubernetes.io/" + known) { continue; }
        return has("." + known) ? ""
                                : fmt::format("has type {} without its key .{}: no server takes it", type, known);
    }
    return fmt::format("has type {}, and kubelets use logins of type kubernetes.io/dockerconfigjson",
                       type.empty() ? "Opaque" : base::escape(type));
}

/// Whether `name` is `plain` with the hash that kustomize appends to what it generates.
bool is_hashed(std::string_view name, std::string_view plain) {
    constexpr std::size_t k_length = 10;
    constexpr std::string_view k_digits = "2456789bcdfghkmt";  // of kustomize api/hasher
    return name.size() == plain.size() + 1 + k_length && name.starts_with(plain) && name[plain.size()] == '-' &&
           name.substr(plain.size() + 1).find_first_not_of(k_digits) == std::string_view::npos;
}

constexpr std::string_view k_pull_secret = "spec.imageRepoSecret.name";

/// One name in a Module.
struct Reference {
    std::string path, field, name, key;  ///< key: that KMM mounts, "" if it takes whatever is there
    std::string_view kind, harm;
};

/// Everything that the Module names, in the order of its fields.
class References {
public:
    explicit References(const api::Module& module) {
        if (!module.module_loader) {
            pull_secret(module, false);
            return;
        }
        const auto& container = module.module_loader->container;
        const auto& mappings = container.kernel_mappings;
        const bool made = container.build || container.sign ||
                          std::any_of(mappings.begin(), mappings.end(),
                                      [](const auto& mapping) { return mapping.build || mapping.sign; });
        pull_secret(module, made);
        add(container.build, container.sign, std::string(k_container_path));
        for (std::size_t i = 0; i < mappings.size(); ++i) {
            add(mappings[i].build, mappings[i].sign, fmt::format("{}.kernelMappings[{}]", k_container_path, i));
        }
    }

    [[nodiscard]] const std::vector<Reference>& all() const noexcept { return all_; }

private:
    static constexpr std::string_view k_no_pod = "without it no such Pod starts";

    void pull_secret(const api::Module& module, bool made) {
        // KMM's worker Pods name it as imagePullSecrets, which kubelets pass over if it is not there; its build and
        // sign Pods, and worker Pods that pull by themselves, mount it.
        put({std::string(k_pull_secret), "imageRepoSecret", module.image_repo_secret, made ? ".dockerconfigjson" : "?",
             "Secret",
             made ? "without it no build, sign or worker Pod of render starts, and KMM's worker Pods pull without login"
                  : "without it KMM's worker Pods pull without login, and those of render worker-pods do not start"});
    }

    void add(const std::optional<api::Build>& build, const std::optional<api::Sign>& sign, const std::string& path) {
        if (build) {
            put({path + ".build.dockerfileConfigMap.name", "build.dockerfileConfigMap", build->dockerfile_config_map,
                 "dockerfile", "ConfigMap", k_no_pod});
        }
        for (std::size_t i = 0; build && i < build->secrets.size(); ++i) {
            put({fmt::format("{}.build.secrets[{}].name", path, i), fmt::format("build.secrets[{}]", i),
                 build->secrets[i], "", "Secret", k_no_pod});
        }
        if (!sign) { return; }
        put({path + ".sign.certSecret.name", "sign.certSecret", sign->cert_secret, "cert", "Secret", k_no_pod});
        put({path + ".sign.keySecret.name", "sign.keySecret", sign->key_secret, "key", "Secret", k_no_pod});
    }

    void put(Reference reference) {
        if (!reference.name.empty()) { all_.push_back(std::move(reference)); }
    }

    std::vector<Reference> all_;
};

/// Looks up the references of one Module. With `absent`, which Secrets are not there is known; without, it is whatever
/// was not read, and `whole` says that the whole cluster was.
class ReferenceCheck {
public:
    ReferenceCheck(Findings& findings, const Known& known, const Names* absent, bool whole)
        : findings_(findings), known_(known), absent_(absent), whole_(whole) {}

    void run() {
        const References references(findings_.module());
        for (const auto& reference : references.all()) { look(reference, references.all()); }
    }

private:
    [[nodiscard]] const std::string& ns() const { return findings_.module().meta.namespace_; }
    [[nodiscard]] const KeysByNamespace& of_kind(const Reference& reference) const {
        return reference.kind == "Secret" ? known_.secrets : known_.config_maps;
    }

    void look(const Reference& reference, const std::vector<Reference>& others) {
        const auto& spaces = of_kind(reference);
        const auto space = spaces.find(ns());
        if (space != spaces.end()) {
            if (const auto found = space->second.find(reference.name); found != space->second.end()) {
                check_key(reference, found->second, nullptr);
                const auto fault = known_.faults_of_login_types.find({ns(), reference.name});
                if (fault != known_.faults_of_login_types.end()) { check_type(reference, fault->second, nullptr); }
                return;
            }
        }
        const auto& made = reference.kind == "Secret" ? known_.made_secrets : known_.made_config_maps;
        if (const auto found = made.find({ns(), reference.name}); found != made.end()) {
            look_at_made(reference, found->second);
            return;
        }
        if (absent_ != nullptr ? reference.kind != "Secret" || !absent_->contains(reference.name)
                               : space == spaces.end() && !whole_ && !is_elsewhere(reference)) {
            return;
        }
        if (absent_ == nullptr && spaces.empty()) {  // a directory without any: they may be kept elsewhere on purpose
            note_unread(reference);
            return;
        }
        report_absent(reference, others, space == spaces.end() ? nullptr : &space->second);
    }

    void look_at_made(const Reference& reference, const MadeObject& made) {
        const bool is_secret = reference.kind == "Secret";
        const bool may_be_there = absent_ != nullptr && !(is_secret && absent_->contains(reference.name));
        if (made.has_hash && may_be_there) { return; }
        if (made.has_hash) {
            findings_.warning(
                reference.path, is_secret ? "secret-unknown" : "config-map-unknown",
                fmt::format("{}: kustomize appends a hash to the name of {} {}, and not to names in Modules",
                            reference.field, reference.kind, base::escape(reference.name)),
                fmt::format("set generatorOptions.disableNameSuffixHash: true in {}: {}", base::escape(made.holder),
                            reference.harm));
        }
        check_key(reference, made.keys, &made);
        check_type(reference, fault_of_login_type(made.type, made.keys), &made);
    }

    /// The namespace that has it, "" if none has.
    [[nodiscard]] std::string elsewhere(const Reference& reference) const {
        for (const auto& [other, names] : of_kind(reference)) {
            if (other != ns() && names.contains(reference.name)) { return other; }
        }
        return "";
    }
    [[nodiscard]] bool is_elsewhere(const Reference& reference) const { return !elsewhere(reference).empty(); }

    void note_unread(const Reference& reference) {
        Diagnostic note;
        note.severity = Severity::note;
        note.code = reference.kind == "Secret" ? "secret-unknown" : "config-map-unknown";
        note.message = fmt::format("{}: {}: {} {} is not in the cluster's directory, which has no {}s",
                                   findings_.subject(), reference.field, reference.kind,
                                   base::escape(reference.name), reference.kind);
        note.position = findings_.place(reference.path);
        note.hint = fmt::format("see that the cluster has it: {}", reference.harm);
        findings_.add(std::move(note));
    }

    void report_absent(const Reference& reference, const std::vector<Reference>& others, const KeysByName* here) {
        const std::string space = base::escape(ns());
        const char* code = reference.kind == "Secret" ? "secret-unknown" : "config-map-unknown";
        if (const std::string other = elsewhere(reference); !other.empty()) {
            findings_.warning(reference.path, code,
                              fmt::format("{}: {} {} is in namespace {}, not in {}", reference.field, reference.kind,
                                          base::escape(reference.name), base::escape(other), space),
                              fmt::format("copy it to namespace {}: {}", space, reference.harm));
            return;
        }
        std::vector<std::string> candidates;
        for (const auto& [name, keys] : here == nullptr ? KeysByName{} : *here) {
            // What the Module names somewhere else is not meant here.
            const bool taken = std::any_of(others.begin(), others.end(), [&](const Reference& other) {
                return other.name == name && other.kind == reference.kind;
            });
            if (!taken) { candidates.push_back(name); }
        }
        const auto hashed = std::find_if(candidates.begin(), candidates.end(), [&](const std::string& name) {
            return is_hashed(name, reference.name);
        });
        const auto near = base::nearest(reference.name, candidates);
        findings_.warning(
            reference.path, code,
            fmt::format(
                "{}: there is no {} {} {}", reference.field, reference.kind, base::escape(reference.name),
                absent_ == nullptr ? "among those of namespace " + space + " that were read" : "in namespace " + space),
            hashed != candidates.end()
                ? fmt::format("kustomize has named it {} and knows no names in Modules: set "
                              "generatorOptions.disableNameSuffixHash",
                              *hashed)
            : near ? fmt::format("did you mean {}?", *near)
                   : fmt::format("add the {}, or correct the name: {}", reference.kind, reference.harm));
    }

    /// What has no keys at all was read without its data. `made`: of whom an object of these keys is; nullptr for one
    /// that was read.
    void check_key(const Reference& reference, const Keys& keys, const MadeObject* made) {
        if (reference.key.empty() || (keys.empty() && reference.kind == "Secret")) { return; }
        const auto has = [&](std::string_view key) { return std::find(keys.begin(), keys.end(), key) != keys.end(); };
        const bool any_login = reference.key == "?";
        const std::string wanted = any_login ? ".dockerconfigjson" : reference.key;
        if (has(wanted) || (any_login && has(".dockercfg"))) { return; }
        const std::string there = keys.empty() ? "no data" : base::escape(base::join(keys, ", "));
        const std::string name =
            fmt::format("{} {}/{}", reference.kind, base::escape(ns()), base::escape(reference.name));
        if (made != nullptr && reference.kind == "Secret") {
            findings_.warning(
                reference.path, "secret-key",
                fmt::format("{}: {} from {} has no key {} (it has {})", reference.field, name, made->holder, wanted,
                            there),
                fmt::format("correct the key: {}", reference.harm));
            return;
        }
        if (reference.kind == "ConfigMap" && made != nullptr) {
            findings_.warning(reference.path, "config-map-key",
                              fmt::format("{}: {} from {} has no key {} (it has {}): KMM's build Pod does not start",
                                          reference.field, name, base::escape(made->holder), wanted, there),
                              "correct the key");
            return;
        }
        if (reference.kind == "ConfigMap") {
            const auto near = base::nearest(wanted, keys);
            const bool case_alone = std::any_of(keys.begin(), keys.end(),
                                                [&](const std::string& key) { return base::to_lower(key) == wanted; });
            const std::string from = keys.empty()         ? "Dockerfile"
                                     : case_alone || near ? near.value_or(keys.front())
                                                          : keys.front();
            findings_.warning(
                reference.path, "config-map-key",
                fmt::format("{}: {} has no key {} (it has {}): KMM's build Pod does not start", reference.field, name,
                            wanted, there),
                fmt::format("{}kubectl create configmap {} -n {} --from-file={}={} --dry-run=client -o yaml | "
                            "kubectl apply -f -",
                            case_alone || near ? fmt::format("did you mean {}? ", wanted) : "",
                            base::command_word(reference.name), base::command_word(ns()), wanted,
                            base::command_word(from)));
            return;
        }
        findings_.warning(reference.path, "secret-key",
                          fmt::format("{}: {} has no key {} (it has {})", reference.field, name, wanted, there),
                          wanted == ".dockerconfigjson"
                              ? login_made_again(reference.name, ns())
                              : fmt::format("{}: kubectl patch secret {} -n {} -p "
                                            "'{{\"data\":{{\"{}\":\"'$(base64 -w0 FILE)'\"}}}}'",
                                            reference.harm, base::command_word(reference.name),
                                            base::command_word(ns()), wanted));
    }

    /// `fault` as fault_of_login_type.
    void check_type(const Reference& reference, const std::string& fault, const MadeObject* made) {
        if (fault.empty() || reference.path != k_pull_secret) { return; }
        findings_.warning(reference.path, "secret-key",
                          fmt::format("{}: Secret {}/{}{} {}", reference.field, base::escape(ns()),
                                      base::escape(reference.name), made == nullptr ? "" : " from " + made->holder,
                                      fault),
                          made == nullptr
                              ? login_made_again(reference.name, ns())
                              : fmt::format("give it the type kubernetes.io/dockerconfigjson and the key "
                                            ".dockerconfigjson: {}",
                                            reference.harm));
    }

    Findings& findings_;
    const Known& known_;
    const Names* absent_;
    bool whole_;
};

void add_made(Known& known, const api::WrappedObject& object) {
    const auto& root = object.document.root;
    MadeObject made{{}, root.get_string({"type"}), object.holder, object.is_template};
    if (const auto* data = root.find("data"); data != nullptr) {
        for (const auto& member : data->members()) { made.keys.push_back(member.key); }
    }
    NamespacedName name{root.get_string({"metadata", "namespace"}), root.get_string({"metadata", "name"})};
    auto& spaces = root.get_string({"kind"}) == "Secret" ? known.made_secrets : known.made_config_maps;
    const auto [place, is_new] = spaces.try_emplace(std::move(name), made);
    // Of several the one that does most for the Module counts: which of them are applied is not known.
    if (!is_new && place->second.has_hash && !made.has_hash) { place->second = std::move(made); }
}

Known read_known(const api::Objects& objects) {
    Known known;
    const auto add = [](KeysByNamespace& spaces, const auto& object) -> Keys& {
        Keys& keys = spaces[object.meta.namespace_][object.meta.name];
        for (const auto& [key, text] : object.data) { keys.push_back(key); }
        return keys;
    };
    for (const auto& secret : objects.secrets) {
        const Keys& keys = add(known.secrets, secret);
        if (std::string fault = fault_of_login_type(secret.type, keys); !fault.empty()) {
            known.faults_of_login_types[{secret.meta.namespace_, secret.meta.name}] = std::move(fault);
        }
    }
    for (const auto& map : objects.config_maps) {
        Keys& keys = add(known.config_maps, map);
        keys.insert(keys.end(), map.binary_keys.begin(), map.binary_keys.end());
    }
    for (const auto& object : objects.wrapped) {
        if (api::is_made(object)) { add_made(known, object); }
    }
    return known;
}

void check_references(const api::Module& module, const Known& known, const Names* absent, bool whole,
                      Diagnostics& diagnostics) {
    Findings findings(module, fmt::format("Module {}", module.full_name()), diagnostics);
    ReferenceCheck(findings, known, absent, whole).run();
}

}  // namespace

void check_secrets(const api::Objects& objects, Reading reading, Diagnostics& diagnostics) {
    const Known known = read_known(objects);
    for (const auto* list : {&objects.modules, &objects.doubles}) {
        for (const auto& module : *list) {
            check_references(module, known, nullptr, reading == Reading::whole, diagnostics);
        }
    }
}

void check_secrets(const api::Objects& objects, const SecretNames& absent, Diagnostics& diagnostics) {
    const Known known = read_known(objects);
    std::map<std::string, Names> missing;
    for (const auto& [ns, name] : absent) { missing[ns].insert(name); }
    for (const auto& module : objects.modules) {
        check_references(module, known, &missing[module.meta.namespace_], false, diagnostics);
    }
}

}  // namespace kmm::plan
