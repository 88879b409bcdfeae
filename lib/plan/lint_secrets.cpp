// SPDX-License-Identifier: Apache-2.0
// Secrets that Modules name and that were not read.
#include <map>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "base/text.hpp"
#include "plan/findings.hpp"
#include "plan/lint.hpp"

namespace kmm::plan {

namespace {

using Names = std::set<std::string>;

/// Looks up the Secrets of one Module among those of its namespace. With `absent`, what is not there is known; without, it is
/// whatever was not read.
class SecretCheck {
public:
    SecretCheck(Findings& findings, const Names& known, const Names* absent) : findings_(findings), known_(known), absent_(absent) {}

    void run() {
        const api::Module& module = findings_.module();
        look("spec.imageRepoSecret.name", "imageRepoSecret", module.image_repo_secret, "without it images are pulled as by anybody");
        if (!module.module_loader) { return; }
        const auto& container = module.module_loader->container;
        look_at(container.build, container.sign, std::string(k_container_path));
        for (std::size_t i = 0; i < container.kernel_mappings.size(); ++i) {
            const auto& mapping = container.kernel_mappings[i];
            look_at(mapping.build, mapping.sign, fmt::format("{}.kernelMappings[{}]", k_container_path, i));
        }
    }

private:
    void look_at(const std::optional<api::Build>& build, const std::optional<api::Sign>& sign, const std::string& path) {
        constexpr std::string_view harm = "without it no such Pod starts";
        for (std::size_t i = 0; build && i < build->secrets.size(); ++i) {
            look(fmt::format("{}.build.secrets[{}].name", path, i), fmt::format("build.secrets[{}]", i), build->secrets[i], harm);
        }
        if (!sign) { return; }
        look(path + ".sign.certSecret.name", "sign.certSecret", sign->cert_secret, harm);
        look(path + ".sign.keySecret.name", "sign.keySecret", sign->key_secret, harm);
    }

    void look(const std::string& path, std::string_view field, const std::string& name, std::string_view harm) {
        if (name.empty() || known_.contains(name) || (absent_ != nullptr && !absent_->contains(name))) { return; }
        const auto near = base::nearest(name, std::vector<std::string>(known_.begin(), known_.end()));
        const std::string ns = base::escape(findings_.module().meta.namespace_);
        findings_.warning(path, "secret-unknown",
                          fmt::format("{}: there is no Secret {} {}", field, base::escape(name),
                                      absent_ == nullptr ? "among those of namespace " + ns + " that were read" : "in namespace " + ns),
                          near ? fmt::format("did you mean {}?", *near) : fmt::format("add the Secret, or correct the name: {}", harm));
    }

    Findings& findings_;
    const Names& known_;
    const Names* absent_;
};

using NamesByNamespace = std::map<std::string, Names>;

NamesByNamespace read_secrets(const api::Objects& objects) {
    NamesByNamespace names;
    for (const auto& secret : objects.secrets) { names[secret.meta.namespace_].insert(secret.meta.name); }
    return names;
}

void check_secrets_of(const api::Module& module, const Names& known, const Names* absent, Diagnostics& diagnostics) {
    Findings findings(module, fmt::format("Module {}", module.full_name()), diagnostics);
    SecretCheck(findings, known, absent).run();
}

}  // namespace

void check_secrets(const api::Objects& objects, Diagnostics& diagnostics) {
    const NamesByNamespace known = read_secrets(objects);
    for (const auto& module : objects.modules) {
        if (const auto names = known.find(module.meta.namespace_); names != known.end()) {
            check_secrets_of(module, names->second, nullptr, diagnostics);
        }
    }
}

void check_secrets(const api::Objects& objects, const SecretNames& absent, Diagnostics& diagnostics) {
    if (absent.empty()) { return; }
    NamesByNamespace known = read_secrets(objects);
    NamesByNamespace missing;
    for (const auto& [ns, name] : absent) { missing[ns].insert(name); }
    for (const auto& module : objects.modules) {
        const std::string& ns = module.meta.namespace_;
        check_secrets_of(module, known[ns], &missing[ns], diagnostics);
    }
}

}  // namespace kmm::plan
