// SPDX-License-Identifier: Apache-2.0
// Secrets of build and sign Pods: KMM names a volume after each, "secret-NAME", and an API server refuses a Pod with a
// name that no volume can have, with two volumes of one name, or with a volume of a Secret or ConfigMap without a name
// (`{}` passes the schema of Modules). Source: KMM internal/buildsign/pod/volumes.go; Kubernetes
// pkg/apis/core/validation (validateSecretVolumeSource, validateConfigMapVolumeSource).
#include <set>
#include <vector>

#include <fmt/format.h>

#include "api/names.hpp"
#include "base/text.hpp"
#include "plan/kmm/merge.hpp"
#include "plan/lint/findings.hpp"

namespace kmm::plan {

namespace {

struct NamedSecret {
    std::string name, path;
};

void report_nameless(Findings& findings, const std::string& path, const char* kind, const char* pod) {
    findings.warning(path, "volume-name",
                     fmt::format("no {} is named, and an API server refuses a {} Pod without", kind, pod),
                     fmt::format("name the {}", kind));
}

void check_volumes_of(Findings& findings, const std::vector<NamedSecret>& secrets, const char* pod) {
    std::set<std::string> seen;
    for (const auto& [name, path] : secrets) {
        const std::string volume = "secret-" + name;
        if (name.empty()) {
            report_nameless(findings, path.substr(0, path.rfind('.')), "Secret", pod);
        } else if (!api::is_dns1123_label(volume)) {
            findings.warning(path, "volume-name",
                             fmt::format("KMM names a volume \"{}\" after its Secret, which is not a volume name",
                                         base::escape(volume)),
                             "use a Secret name of at most 56 characters without dots; kmm-plan render gives the "
                             "volume another name");
        } else if (!seen.insert(name).second) {
            findings.warning(
                path, "volume-name",
                fmt::format("Secret {} is named twice for the {} Pod, for which KMM makes two volumes of one name",
                            name, pod),
                "name each Secret once for a Pod, or use two Secrets; kmm-plan render makes a Pod that works");
        }
    }
}

}  // namespace

void validate_pod_secrets(Findings& findings) {
    const api::Module& module = findings.module();
    const auto& container = module.module_loader->container;
    const std::string container_path(k_container_path);
    std::vector<NamedSecret> common;  // of every Pod: what it pushes with
    if (!module.image_repo_secret.empty()) {
        common.push_back({module.image_repo_secret, "spec.imageRepoSecret.name"});
    }
    for (std::size_t i = 0; i < container.kernel_mappings.size(); ++i) {
        const auto& mapping = container.kernel_mappings[i];
        const std::string mapping_path = fmt::format("{}.kernelMappings[{}]", k_container_path, i);
        if (const auto build = merge_build(container.build, mapping.build)) {
            // Where the field is missing, the schema has said so.
            const std::string place = (mapping.build ? mapping_path : container_path) + ".build.dockerfileConfigMap";
            if (build->dockerfile_config_map.empty() && findings.present(place)) {
                report_nameless(findings, place, "ConfigMap", "build");
            }
            std::vector<NamedSecret> secrets = common;
            const auto add = [&](const std::optional<api::Build>& part, const std::string& path) {
                for (std::size_t k = 0; part && k < part->secrets.size(); ++k) {
                    secrets.push_back({part->secrets[k], fmt::format("{}.build.secrets[{}].name", path, k)});
                }
            };
            add(container.build, container_path);
            add(mapping.build, mapping_path);
            check_volumes_of(findings, secrets, "build");
        }
        if (const auto sign = merge_sign(container.sign, mapping.sign)) {
            std::vector<NamedSecret> secrets = common;
            const auto place = [&](const char* field, bool is_own) {
                return fmt::format("{}.sign.{}.name", is_own ? mapping_path : container_path, field);
            };
            secrets.push_back(
                {sign->key_secret,
                 place("keySecret", !container.sign || (mapping.sign && !mapping.sign->key_secret.empty()))});
            secrets.push_back(
                {sign->cert_secret,
                 place("certSecret", !container.sign || (mapping.sign && !mapping.sign->cert_secret.empty()))});
            check_volumes_of(findings, secrets, "sign");
        }
    }
}

}  // namespace kmm::plan
