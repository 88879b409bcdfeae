// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <string>
#include <string_view>

#include "api/codec.hpp"
#include "cluster/folder/documents.hpp"
#include "sys/directory.hpp"
#include "unit/cluster/repository_case.hpp"

using namespace kmm;
using repository_case::Repository;

TEST_SUITE("cluster::unit") {
    TEST_CASE("paths of Flux begin at the root of the repository, wherever its clone lies") {
        Repository repository;
        repository.put_module("legacy", "a");
        repository.put_module("old/apps", "b");
        repository.put_flux("./apps", "drivers");
        CHECK(repository.namespace_read("a") == "");
        CHECK(repository.namespace_read("b") == "");
        repository.put_module("apps/more", "c");
        CHECK(repository.namespace_read("a") == "");
        CHECK(repository.namespace_read("c") == "drivers");
    }

    TEST_CASE("the end of what is read may be the beginning of a path") {
        Repository repository;
        repository.put_module("deploy/prod", "a");
        repository.put_module("deploy/test/prod", "b");
        repository.put("deploy/flux.yaml",
                       "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: a}\nspec: "
                       "{path: deploy/prod, targetNamespace: drivers}\n");
        CHECK(repository.namespace_read("a", "", "/deploy") == "drivers");
        CHECK(repository.namespace_read("b", "", "/deploy/") == "");
        CHECK(repository.namespace_read("a") == "drivers");
    }

    TEST_CASE("a fleet.yaml is for its own directory, and one below it for itself") {
        Repository repository;
        repository.put_module("apps", "a");
        repository.put_module("other/apps", "b");
        repository.put_module("apps/more", "c");
        repository.put("apps/fleet.yaml", "defaultNamespace: drivers\n");
        CHECK(repository.namespace_read("a") == "drivers");
        CHECK(repository.namespace_read("b") == "");
        CHECK(repository.namespace_read("c") == "drivers");
        repository.put("apps/more/fleet.yaml", "labels: {a: b}\n");
        CHECK(repository.namespace_read("a") == "drivers");
        CHECK(repository.namespace_read("c") == "");
    }

    TEST_CASE("the working directory has its own name") {
        Repository repository;
        repository.put_module("deploy/apps", "a");
        repository.put("deploy/flux.yaml",
                       "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: a}\nspec: "
                       "{path: ./deploy/apps, targetNamespace: drivers}\n");
        const auto before = std::filesystem::current_path();
        std::filesystem::current_path(repository.dir + "/deploy");
        for (const std::string name : {".", "./", "../deploy", "../../repo/deploy/."}) {
            CAPTURE(name);
            api::Objects objects;
            Diagnostics diagnostics;
            static_cast<void>(cluster::read_documents({name}, objects, diagnostics));
            REQUIRE(objects.modules.size() == 1);
            CHECK(objects.modules[0].meta.namespace_ == "drivers");
        }
        std::filesystem::current_path(before);
    }

    TEST_CASE("variables of Flux are replaced as its postBuild says") {
        Repository repository;
        const auto put = [&](const std::string& name, const std::string& post_build) {
            repository.put("clusters/" + name + ".yaml",
                           "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: " + name +
                               "}\nspec:\n  path: apps\n  targetNamespace: drivers\n" + post_build);
        };
        const auto put_image = [&](const std::string& image, const std::string& metadata = "") {
            repository.put("apps/m.yaml",
                           "apiVersion: kmm.sigs.x-k8s.io/v1beta1\nkind: Module\nmetadata:\n  name: ${name:-a}\n" +
                               metadata + "spec:\n  selector: {}\n  imageRebuildTriggerGeneration: ${generation:=5}\n"
                               "  moduleLoader:\n    container:\n      modprobe: {moduleName: m}\n"
                               "      kernelMappings:\n      - {literal: '1', containerImage: \"" + image + "\"}\n");
        };
        const auto image = [&](const std::string& name) -> std::string {
            static_cast<void>(repository.namespace_read(name));
            if (repository.objects.modules.size() != 1) { return "?"; }
            const auto& read = repository.objects.modules.front();
            return read.meta.name == name ? read.module_loader->container.kernel_mappings.at(0).container_image : "";
        };
        put("one", "  postBuild: {substitute: {registry: r.example, tag: '7'}}\n");
        put_image("${registry}/m:${tag}-$${KERNEL_VERSION}-$KERNEL_X-$$X");
        CHECK(image("a") == "r.example/m:7-${KERNEL_VERSION}-$KERNEL_X-$X");
        CHECK(repository.objects.modules.front().misread.empty());
        CHECK_FALSE(repository.is_told("wrong-type"));
        CHECK_FALSE(repository.is_told("unknown-template-variable"));
        CHECK_FALSE(repository.is_told("kustomize-not-built"));
        put_image("${registry}/m:1${KERNEL_VERSION}");
        CHECK(image("a") == "r.example/m:1");
        CHECK(repository.is_told("unknown-template-variable"));
        // A colon at the end of a value is that of a key.
        put_image("${registry}/m:${KERNEL_VERSION}");
        CHECK(image("a") == "?");
        CHECK(repository.is_told("unknown-template-variable"));
        put_image("r/m:${KERNEL_VERSION}", "  annotations: {kustomize.toolkit.fluxcd.io/substitute: disabled}\n");
        CHECK(image("${name:-a}") == "r/m:${KERNEL_VERSION}");
        CHECK_FALSE(repository.is_told("unknown-template-variable"));
        // The cluster has more values.
        put("one", "  postBuild: {substitute: {registry: r.example}, substituteFrom: [{kind: Secret, name: s}]}\n");
        put_image("${registry}/m:${tag}");
        CHECK(image("a") == "?");
        CHECK(repository.is_told("kustomize-not-built"));
        put_image("${registry}/m:1");
        CHECK(image("a") == "r.example/m:1");
        // Another one applies the same files.
        put("one", "  postBuild: {substitute: {registry: r.example, tag: '7'}}\n");
        put("two", "  postBuild: {substitute: {registry: r.example, tag: '8'}}\n");
        CHECK(image("a") == "r.example/m:1");
        put_image("${registry}/m:${tag}");
        CHECK(image("a") == "?");
        CHECK(repository.is_told("kustomize-not-built"));
        // Without a value to replace Flux leaves all as it is.
        put("one", "");
        put("two", "");
        put_image("r/m:${KERNEL_VERSION}");
        CHECK(image("${name:-a}") == "r/m:${KERNEL_VERSION}");
        CHECK_FALSE(repository.is_told("kustomize-not-built"));
    }

    TEST_CASE("a text with variables is read again in the form in which Flux writes it") {
        Repository repository;
        const std::string flux = "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\n"
                                 "metadata: {name: a}\nspec:\n  path: apps\n  targetNamespace: drivers\n"
                                 "  postBuild: {substitute: {quote: '\"', five: '5', word: 'yes', "
                                 "list: '[a, b]', colon: 'a: b'}}\n";
        repository.put("clusters/a.yaml", flux);
        const auto put = [&](const std::string& version, const std::string& name) {
            repository.put("apps/m.yaml", "apiVersion: kmm.sigs.x-k8s.io/v1beta1\nkind: Module\nmetadata:\n  name: a\n"
                                          "spec:\n  selector: {}\n  moduleLoader:\n    container:\n      version: " +
                                              version + "\n      modprobe: {moduleName: " + name +
                                              "}\n      kernelMappings: [{literal: '1', containerImage: r/m:1}]\n");
            static_cast<void>(repository.namespace_read("a"));
        };
        // Flux writes it without quotes, so that it is a number.
        put("\"${five}\"", "m");
        CHECK(repository.is_told("wrong-type"));
        put("'${word}'", "m");
        CHECK(repository.is_told("wrong-type"));
        CHECK(repository.diagnostics.front().hint.find("${quote}") != std::string::npos);
        put("${quote}${five}${quote}", "m");
        CHECK(repository.objects.modules.at(0).module_loader->container.version == "5");
        CHECK_FALSE(repository.is_told("wrong-type"));
        put("v${five}", "m");
        CHECK_FALSE(repository.is_told("wrong-type"));
        // These it writes with quotes.
        put("' ${five}'", "m");
        CHECK_FALSE(repository.is_told("wrong-type"));
        put("1", "\"${list}\"");
        CHECK(repository.is_told("wrong-type"));
        put("'1'", "\"${colon}\"");
        CHECK(repository.is_told("unknown-template-variable"));
        CHECK(repository.objects.modules.empty());
        put("${five/5/v6}", "m");
        CHECK(repository.objects.modules.at(0).module_loader->container.version == "v6");
        put("${five[0]}", "m");
        CHECK(repository.is_told("unknown-template-variable"));
        CHECK(repository.objects.modules.empty());
        put("${five#[0-9]}", "m");
        CHECK(repository.is_told("kustomize-not-built"));
        CHECK(repository.objects.modules.empty());
    }

    TEST_CASE("variables of ConfigMaps and Secrets in the repository") {
        Repository repository;
        repository.put("clusters/a.yaml",
                       "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\n"
                       "metadata: {name: a, namespace: flux-system}\nspec:\n  path: apps\n"
                       "  targetNamespace: drivers\n  postBuild:\n    substitute: {inline: one}\n"
                       "    substituteFrom: [{kind: ConfigMap, name: c}, {kind: Secret, name: s}]\n");
        const auto put_map = [&](const std::string& file, const std::string& ns, const std::string& data) {
            repository.put(file, "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, namespace: " + ns +
                                     "}\ndata: " + data + "\n");
        };
        const auto put_secret = [&](const std::string& rest) {
            repository.put("clusters/s.yaml",
                           "apiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: flux-system}\n" + rest + "\n");
        };
        const auto name_of = [&](const std::string& name) -> std::string {
            repository.put("apps/m.yaml",
                           "apiVersion: kmm.sigs.x-k8s.io/v1beta1\nkind: Module\nmetadata:\n  name: \"" + name +
                               "\"\nspec: {selector: {}}\n");
            static_cast<void>(repository.namespace_read("?"));
            return repository.objects.modules.empty() ? "?" : repository.objects.modules.front().meta.name;
        };
        put_map("clusters/c.yaml", "flux-system", "{inline: two, map: m, both: m}");
        CHECK(name_of("${inline}") == "one");
        CHECK(name_of("${map}") == "?");  // the Secret may have another value
        put_secret("data: {both: cw==, coded: eA==}\nstringData: {plain: p}");
        CHECK(name_of("${inline}-${map}-${both}-${coded}-${plain}") == "one-m-s-x-p");
        CHECK_FALSE(repository.is_told("kustomize-not-built"));
        CHECK(name_of("a${none}") == "a");
        CHECK(repository.is_told("unknown-template-variable"));
        put_secret("stringData: {both: 'ENC[x]'}\nsops: {mac: x}");
        CHECK(name_of("${map}") == "m");
        CHECK(name_of("${both}") == "?");
        CHECK(repository.is_told("kustomize-not-built"));
        // The one beside the Kustomization counts, else that on which all agree.
        put_map("other/c.yaml", "flux-system", "{map: other}");
        CHECK(name_of("${map}") == "m");
        put_map("clusters/c.yaml", "elsewhere", "{map: m}");
        CHECK(name_of("${map}") == "other");
        put_map("third/c.yaml", "flux-system", "{map: third, same: x}");
        CHECK(name_of("${map}") == "?");
    }

    TEST_CASE("each namespace has values of its own on which the ConfigMaps of one name agree") {
        Repository repository;
        for (const std::string each : {"a", "b", "c", "d"}) {
            const std::string ns = each < "c" ? "one" : "two";
            repository.put("clusters/" + each + ".yaml",
                           "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\n"
                           "metadata: {name: " + each + ", namespace: " + ns + "}\nspec:\n  path: apps/" + each +
                               "\n  targetNamespace: x\n  postBuild:\n"
                               "    substituteFrom: [{kind: ConfigMap, name: c}]\n");
            repository.put("maps/" + each + "/c.yaml",
                           "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, namespace: " + ns +
                               "}\ndata: {same: " + ns + ", own: " + each + "}\n");
            repository.put_module("apps/" + each, each + "-${same}");
            repository.put_module("apps/" + each, each + "-${own}");
        }
        for (const std::string name : {"a-one", "b-one", "c-two", "d-two"}) {
            CHECK(repository.namespace_read(name) == "x");
        }
        CHECK(repository.objects.modules.size() == 4);  // ${own} has no certain value
    }

    TEST_CASE("an object whose variables the cluster may have is kept where they do not matter, else it is said") {
        Repository repository;
        repository.put("clusters/a.yaml",
                       "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: a}\nspec:\n"
                       "  path: apps\n  targetNamespace: drivers\n  postBuild:\n    substituteFrom: [{kind: ConfigMap, "
                       "name: c}]\n");
        const auto put_secret = [&](const std::string& name) {
            repository.put("apps/s.yaml", "apiVersion: v1\nkind: Secret\nmetadata: {name: " + name +
                                              "}\nstringData: {token: '${token}'}\n---\napiVersion: apps/v1\n"
                                              "kind: Deployment\nmetadata: {name: '${x}'}\n");
            static_cast<void>(repository.namespace_read("?"));
        };
        put_secret("s");
        CHECK(repository.objects.secrets.size() == 1);
        CHECK_FALSE(repository.is_told("kustomize-not-built"));
        put_secret("'${name}'");
        CHECK(repository.objects.secrets.empty());
        CHECK(repository.is_told("kustomize-not-built"));
    }

    TEST_CASE("generators of ApplicationSets lead to paths and namespaces") {
        Repository repository;
        repository.put_module("apps/net", "a");
        repository.put_module("apps/old", "b");
        const auto put = [&](const std::string& generator, const std::string& path, const std::string& ns) {
            repository.put("argo/set.yaml",
                           "apiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nmetadata: {name: s}\nspec:\n"
                           "  generators: [" +
                               generator + "]\n  template: {spec: {source: {path: '" + path +
                               "'}, destination: {namespace: '" + ns + "'}}}\n");
        };
        const std::string directories = "{git: {directories: [{path: apps/*}, {path: apps/old, exclude: true}]}}";
        put(directories, "{{path}}", "drivers");
        CHECK(repository.namespace_read("a") == "drivers");
        CHECK(repository.namespace_read("b") == "");
        put(directories, "{{ .path.path }}", "x-{{ .path.basename }}");
        CHECK(repository.namespace_read("a") == "x-net");
        CHECK(repository.namespace_read("a", "", "/apps") == "");  // without the set
        put("{matrix: {generators: [{clusters: {}}, " + directories + "]}}", "{{path}}", "drivers");
        CHECK(repository.namespace_read("a") == "drivers");
        put("{list: {elements: [{d: net, to: {ns: one}}, {d: old, to: {ns: two}}]}}", "apps/{{d}}", "{{.to.ns}}");
        CHECK(repository.namespace_read("a") == "one");
        CHECK(repository.namespace_read("b") == "two");
        put("{git: {files: [{path: x.json}]}}", "{{path}}", "drivers");
        CHECK(repository.namespace_read("a") == "");
        // The root of the repository is above.
        put("{git: {directories: [{path: repo/apps/*}]}}", "{{path}}", "drivers");
        CHECK(repository.namespace_read("a") == "drivers");
    }

    TEST_CASE("a matrix of many directories and a long list is read in linear time") {
        Repository repository;
        constexpr int k_count = 300;  // the product of them, for each file, would not end
        std::string elements;
        for (int i = 0; i < k_count; ++i) {
            const auto number = std::to_string(i);
            repository.put_module("apps/d" + number, "m" + number);
            elements += (i == 0 ? "{c: x" : ", {c: x") + number + "}";
        }
        const auto put = [&](const std::string& ns) {
            repository.put("argo/set.yaml",
                           "apiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nmetadata: {name: s}\nspec:\n"
                           "  generators: [{matrix: {generators: [{git: {directories: [{path: apps/*}]}}, "
                           "{list: {elements: [" +
                               elements + "]}}]}}]\n  template: {spec: {source: {path: '{{path}}', kustomize: "
                                          "{namePrefix: x}}, destination: {namespace: '" +
                               ns + "'}}}\n");
        };
        put("x-{{path.basename}}");
        CHECK(repository.namespace_read("m7") == "x-d7");
        CHECK(repository.namespace_read("m299") == "x-d299");
        CHECK(repository.is_told("kustomize-not-built"));
        put("{{c}}-{{path.basename}}");
        CHECK(repository.namespace_read("m7") == "");  // one for each element
        CHECK(repository.is_told("kustomize-not-built"));
    }

    TEST_CASE("slashes behind the name of a directory do not count") {
        Repository repository;
        repository.put_module("apps", "a", "x");
        for (const auto* name : {"/apps", "/apps/", "/apps//", "/apps///", "/apps/../apps//"}) {
            CAPTURE(name);
            std::string below;
            CHECK(repository.namespace_read("a", "", name, [&](std::string_view path) {
                below = path;
                return false;
            }) == "x");
            CHECK(below == "a.yaml");
        }
    }

    TEST_CASE("patches of Flux and Argo CD are said not to be followed") {
        Repository repository;
        repository.put_module("apps", "a");
        const auto is_told = [&] { return repository.is_told("kustomize-not-built"); };
        SUBCASE("Flux") {
            repository.put_flux("./apps", "drivers\n  patches: [{patch: x}]");
            CHECK(repository.namespace_read("a") == "drivers");
            CHECK(is_told());
            repository.put("clusters/drivers\n  patches: [{patch: x}].yaml", "");
            repository.put_flux("./apps", "drivers\n  patches: []");
            CHECK(repository.namespace_read("a") == "drivers");
            CHECK_FALSE(is_told());
        }
        SUBCASE("Argo CD") {
            repository.put("argo.yaml",
                           "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: a}\nspec:\n"
                           "  source: {path: apps, repoURL: x, kustomize: {namePrefix: x-}}\n"
                           "  destination: {namespace: drivers}\n");
            CHECK(repository.namespace_read("a") == "drivers");
            CHECK(is_told());
        }
    }

    TEST_CASE("files that are ignored give no namespace") {
        Repository repository;
        repository.put_module("apps", "a");
        repository.put_argo("apps", "drivers");
        const auto is_ignored = [](std::string_view path) { return path.starts_with("argo/"); };
        CHECK(repository.namespace_read("a", "", "", is_ignored) == "");
        CHECK(repository.namespace_read("a") == "drivers");
    }

    TEST_CASE("manifests beside a reference for kubectl cluster-compare are read, and its templates are not") {
        Repository repository;
        repository.put_module("site", "a", "drivers");
        repository.put_module("site/templates", "named", "drivers");
        repository.put_module("site", "functions", "drivers");
        repository.put("site/metadata.yaml",
                       "apiVersion: v2\nparts:\n- name: a\n  components: [{name: b, allOf: [{path: "
                       "./templates/named.yaml}]}]\ntemplateFunctionFiles: [functions.yaml]\n");
        CHECK(repository.namespace_read("a") == "drivers");
        CHECK(repository.objects.modules.size() == 1);
        CHECK(repository.is_told("unknown-kind"));
        const auto is_ignored = [](std::string_view path) { return path == "site/metadata.yaml"; };
        CHECK(repository.namespace_read("named", "", "", is_ignored) == "drivers");
        CHECK(repository.objects.modules.size() == 3);
    }
}
