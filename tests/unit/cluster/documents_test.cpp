// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string>

#include "api/codec.hpp"
#include "cluster/folder/documents.hpp"
#include "cluster/seam/object_facts.hpp"
#include "sys/directory.hpp"
#include "sys/temp_dir.hpp"

using namespace kmm;

namespace {

std::string node_text(const std::string& name, const std::string& label = "x") {
    return "apiVersion: v1\nkind: Node\nmetadata: {name: " + name + ", labels: {is: " + label + "}}\n";
}

void write(const std::string& path, const std::string& text) {
    sys::make_directories(sys::parent_of(path), 0755);
    std::ofstream(path) << text;
}

}  // namespace

TEST_SUITE("cluster::unit") {
    TEST_CASE("a directory stands for its documents at any depth, hidden ones left out") {
        const sys::TempDir top("kmm-documents");
        write(top.path() + "/b.yaml", node_text("b"));
        write(top.path() + "/deep/er/a.yml", node_text("a"));
        write(top.path() + "/c.json", R"({"apiVersion":"v1","kind":"Node","metadata":{"name":"c"}})");
        write(top.path() + "/.hidden.yaml", "nonsense: [");
        write(top.path() + "/.git/x.yaml", "nonsense: [");
        write(top.path() + "/readme.txt", "nonsense: [");
        api::Objects objects;
        Diagnostics diagnostics;
        const auto files = cluster::read_documents({top.path()}, objects, diagnostics);
        api::finish(objects, diagnostics);
        CHECK(diagnostics.empty());
        CHECK(files.size() == 3);
        REQUIRE(objects.nodes.size() == 3);
        CHECK(objects.nodes[0].meta.name == "a");
    }

    TEST_CASE("what lies beside manifests in a repository is left out with one note") {
        const sys::TempDir top("kmm-documents");
        const std::string dir = top.path();
        write(dir + "/node.yaml", node_text("a"));
        write(dir + "/playbook.yaml",
              "---\n# of Ansible\n- hosts: all\n  tasks:\n  - kubernetes.core.k8s:\n      definition:\n"
              "        apiVersion: v1\n        kind: Node\n");
        write(dir + "/mkdocs.yml", "nameReference:\n- kind: Service\n  version: v1\n");
        write(dir + "/package.json", R"({"name": "x"})");
        write(dir + "/chart/Chart.yaml", "apiVersion: v2\nname: x\n");
        write(dir + "/chart/values.yaml", "kind: Deployment\n");
        write(dir + "/chart/templates/deep/a.yaml", "kind: Node\n{{- if .Values.x }}\n{{- end }}\n");
        write(dir + "/chart/templates/b.yaml", node_text("b"));
        write(dir + "/chart/crds/c.yaml", node_text("c"));
        api::Objects objects;
        Diagnostics diagnostics;
        const auto read = [&](const std::string& name) {
            objects = {};
            diagnostics.clear();
            static_cast<void>(cluster::read_documents({name}, objects, diagnostics));
        };
        read(dir);
        REQUIRE(diagnostics.size() == 2);
        CHECK_FALSE(has_errors(diagnostics));
        CHECK(diagnostics[0].message == "3 files without an object of Kubernetes were not read: " + dir +
                                            "/mkdocs.yml, " + dir + "/package.json, " + dir + "/playbook.yaml");
        CHECK(diagnostics[1].message == "3 files of a Helm chart were not read");
        CHECK(diagnostics[1].hint == "helm template " + dir + "/chart | kmm-plan validate -f -");
        CHECK(objects.nodes.size() == 3);
        SUBCASE("not if it is named") {
            read(dir + "/mkdocs.yml");
            CHECK(has_errors(diagnostics));
        }
        SUBCASE("not what may have been meant as an object") {
            for (const char* text : {"  kind: Node\n", "{\"kind\": \"Node\"}", "{kind: Node}", "-   kind: Node\n",
                                     "kind: Node\na: [", "{\"items\": [{\"kind\": \"Node\"", "kind: List\na: 1\na: 2\n",
                                     "apiVersion: kmm.sigs.x-k8s.io/v1beta1\nspec: {}\n", "x: kmm\n- a\n",
                                     "apiVersion: kmm.sigs.x-k8s.io/v1beta1\n{{ if .x }}\nspec: [\n",
                                     "a: [\nKind: x\n"}) {
                CAPTURE(text);
                write(dir + "/mkdocs.yml", text);
                read(dir);
                CHECK(has_errors(diagnostics));
            }
        }
        SUBCASE("nor templates and settings of others that cannot be read") {
            for (const char* text : {"- apiVersion: v1\n", "a: 1\n---\nkind: x\n", "{{ .x }}: [", "a: 1\na: 2\n",
                                     "a: [", "{ // kmm\n}", "{\"a\": \"kmm\", \"b\": {\"kind\": \"Node\"}}",
                                     "{% if x %}\nkind: Pod\n",
                                     "kind: NodePolicy\na: {{ .List }}\n{{ end }}\n",
                                     "apiVersion: v1\nentries: {kmm: [{apiVersion: v2, name: kmm}]}\n",
                                     "apiVersion: v1\nkind: Service\nname: {{ include \"kmm\" . }}-kmm\nx: [\n",
                                     "kind: Pod\nname: {{ .name }}\n{{- if .x }}\n"}) {
                CAPTURE(text);
                write(dir + "/mkdocs.yml", text);
                read(dir);
                CHECK_FALSE(has_errors(diagnostics));
                CHECK(objects.nodes.size() == 3);
            }
        }
        SUBCASE("nor broken objects of kinds that decisions do not need: a note says where") {
            for (const char* text : {"apiVersion: apps/v1\nkind: Deployment\nspec: [\n",
                                     "# x\n---\n\"apiVersion\": \"v1\"\nkind: 'Service' # y\n a: b\n",
                                     "apiVersion: hydra/v1\nkind: Module\n\tb: c\n",
                                     "apiVersion: a/v1\nkind: A\n---\napiVersion: b/v1\nkind: B\nx: {y: *kmm}\n"}) {
                CAPTURE(text);
                write(dir + "/mkdocs.yml", text);
                read(dir);
                CHECK_FALSE(has_errors(diagnostics));
                CHECK(objects.nodes.size() == 3);
                CHECK(std::any_of(diagnostics.begin(), diagnostics.end(), [&](const Diagnostic& one) {
                    return one.position && one.position->file == dir + "/mkdocs.yml" && one.position->line > 0 &&
                           one.severity == Severity::note && one.code != "unknown-kind";
                }));
            }
        }
        SUBCASE("templates of such objects have one note") {
            for (const char* name : {"a", "b"}) {
                write(dir + "/t/" + name + ".yaml",
                      "apiVersion: config.openshift.io/v1\nkind: Node\nspec:\n  {{ if .a }}\n");
            }
            read(dir);
            CHECK_FALSE(has_errors(diagnostics));
            CHECK(std::count_if(diagnostics.begin(), diagnostics.end(), [&](const Diagnostic& one) {
                      return one.code == "unknown-kind" && one.severity == Severity::note &&
                             one.message == "2 templates of objects of kinds that KMM does not use were not read: " +
                                                dir + "/t/a.yaml, " + dir + "/t/b.yaml";
                  }) == 1);
            CHECK(std::none_of(diagnostics.begin(), diagnostics.end(),
                               [](const Diagnostic& one) { return one.code == "bad-key"; }));
        }
        SUBCASE("but those of kinds that it needs, may be meant, or stand beside") {
            for (const char* text : {"apiVersion: v1\nkind: Node\nspec: [\n", "apiVersion: v1\nkind: Secret\nb: [\n",
                                     "apiVersion: v1\nkind: secret\nb: [\n", "kind: Deployment\nb: [\n",
                                     "apiVersion: v1\nkind: [Node\n",
                                     "apiVersion: apps/v1\nkind: Deployment\n---\nkind: x\nb: [\n",
                                     "apiVersion: apps/v1\nkind: Deployment\n---\napiVersion: v1\nkind: Pod\na: [\n",
                                     "apiVersion: policy.example/v1\nkind: Policy\nspec:\n- apiVersion: "
                                     "kmm.sigs.x-k8s.io/v1beta1\n  kind: Module\n x\n",
                                     "apiVersion: v1\nkind: List\nitems:\n- kind: Service\n x\n",
                                     "apiVersion: kmm.sigs.x-k8s.io/v1beta1\nkind: Modul\na: [\n"}) {
                CAPTURE(text);
                write(dir + "/mkdocs.yml", text);
                read(dir);
                CHECK(has_errors(diagnostics));
            }
            write(dir + "/mkdocs.yml", "apiVersion: apps/v1\nkind: Deployment\nspec: [\n");
            read(dir + "/mkdocs.yml");
            CHECK(has_errors(diagnostics));  // named
        }
        SUBCASE("the operator's configuration has no kind") {
            write(dir + "/mkdocs.yml", "webhookPort: 9443\n");
            read(dir);
            CHECK(objects.operator_configs.size() == 1);
            write(dir + "/mkdocs.yml",
                  "healthProbeBindAddress: :8081\nmetricsBindAddress: :8080\n"
                  "leaderElection: {resourceID: a.example}\n");
            read(dir);
            CHECK(objects.operator_configs.empty());
            CHECK_FALSE(has_errors(diagnostics));
        }
    }

    TEST_CASE("templates of a reference for kubectl cluster-compare are no objects") {
        const sys::TempDir top("kmm-documents");
        const std::string dir = top.path();
        write(dir + "/reference/nodes/node.yaml",
              "apiVersion: v1\nkind: Node\nmetadata:\n  {{- .metadata | toYaml | nindent 2 }}\n");
        write(dir + "/reference/metadata.yaml", "apiVersion: v2\nparts:\n- name: a\n  components: [{name: b}]\n");
        write(dir + "/node.yaml", "apiVersion: v1\nkind: Node\nmetadata: {name: node}\n");
        api::Objects objects;
        Diagnostics diagnostics;
        const auto read = [&] {
            objects = {};
            diagnostics.clear();
            static_cast<void>(cluster::read_documents({dir}, objects, diagnostics));
        };
        read();
        CHECK_FALSE(has_errors(diagnostics));
        CHECK(objects.nodes.size() == 1);
        REQUIRE(diagnostics.size() == 1);
        CHECK(diagnostics[0].message == "2 files of a reference for kubectl cluster-compare were not read");
        write(dir + "/reference/metadata.yaml", "parts: [{name: a}]\n");
        read();
        CHECK(has_errors(diagnostics));
    }

    TEST_CASE("what Argo CD and Flux apply gets their namespace") {
        const sys::TempDir top("kmm-documents");
        const std::string dir = top.path();
        const auto module = [](const std::string& name) {
            return "apiVersion: kmm.sigs.x-k8s.io/v1beta1\nkind: Module\nmetadata: {name: " + name +
                   "}\nspec: {selector: {}}\n";
        };
        const auto argo = [](const std::string& path, const std::string& given, const std::string& directory = "{}") {
            return "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: a}\nspec:\n"
                   "  source: {path: " + path + ", directory: " + directory + "}\n  destination: {namespace: " + given +
                   "}\n";
        };
        const auto flux = [](const std::string& path, const std::string& given) {
            return "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: a}\nspec:\n"
                   "  path: " + path + "\n  targetNamespace: " + given + "\n";
        };
        api::Objects objects;
        Diagnostics diagnostics;
        const auto namespace_read = [&](const std::string& name, const std::string& given = "") {
            objects = {};
            diagnostics.clear();
            static_cast<void>(cluster::read_documents({dir}, objects, diagnostics, given));
            for (const auto& each : objects.modules) {
                if (each.meta.name == name) { return each.meta.namespace_; }
            }
            return std::string("?");
        };
        write(dir + "/apps/drivers/module.yaml", module("a"));
        CHECK(namespace_read("a") == "");
        CHECK(has_errors(diagnostics));
        write(dir + "/argo/app.yaml", argo("./apps/drivers/", "drivers"));
        CHECK(namespace_read("a") == "drivers");
        CHECK_FALSE(has_errors(diagnostics));
        SUBCASE("a directory below only if it recurses, and the longest path") {
            write(dir + "/apps/drivers/more/module.yaml", module("b"));
            CHECK(namespace_read("b") == "");
            write(dir + "/argo/all.yaml", argo("apps", "others", "{recurse: true}"));
            CHECK(namespace_read("b") == "others");
            CHECK(namespace_read("a") == "drivers");
        }
        SUBCASE("a path that two apply into different namespaces says nothing") {
            write(dir + "/argo/b.yaml", argo("apps/drivers", "drivers"));
            CHECK(namespace_read("a") == "drivers");
            write(dir + "/argo/c.yaml", argo("apps/drivers", "test"));
            CHECK(namespace_read("a", "given") == "given");
        }
        SUBCASE("Flux, by the kustomization that has the file, and below a part of the repository") {
            std::filesystem::remove(dir + "/argo/app.yaml");
            write(dir + "/clusters/apps.yaml", flux("./deploy/prod", "flux-drivers"));
            write(dir + "/deploy/prod/kustomization.yaml", "resources: [../../apps/drivers/module.yaml]\n");
            CHECK(namespace_read("a") == "flux-drivers");
            write(dir + "/clusters/apps.yaml", flux("somewhere/above/apps", "flux-drivers"));
            CHECK(namespace_read("a") == "");
        }
        SUBCASE("Fleet, in its directory and below") {
            std::filesystem::remove(dir + "/argo/app.yaml");
            write(dir + "/apps/fleet.yaml", "defaultNamespace: fleet-drivers\n");
            CHECK(namespace_read("a") == "fleet-drivers");
            write(dir + "/apps/fleet.yaml", "namespace: all\ndefaultNamespace: fleet-drivers\n");
            CHECK(namespace_read("a") == "all");
        }
        SUBCASE("an ApplicationSet, and variables") {
            write(dir + "/argo/app.yaml",
                  "apiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nmetadata: {name: a}\nspec:\n  template:\n"
                  "    spec:\n      sources: [{chart: x}, {path: apps/drivers}]\n"
                  "      destination: {namespace: '{{ns}}'}\n");
            CHECK(namespace_read("a") == "");
            write(dir + "/argo/app.yaml",
                  "apiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nmetadata: {name: a}\nspec:\n  template:\n"
                  "    spec:\n      sources: [{chart: x}, {path: apps/drivers}]\n"
                  "      destination: {namespace: drivers}\n");
            CHECK(namespace_read("a") == "drivers");
        }
    }

    TEST_CASE("patches of kustomize are left out, and its namespace counts") {
        const sys::TempDir top("kmm-documents");
        const std::string dir = top.path();
        const std::string module =
            "apiVersion: kmm.sigs.x-k8s.io/v1beta1\nkind: Module\nmetadata: {name: a}\nspec: {selector: {}}\n";
        write(dir + "/base/module.yaml", module);
        write(dir + "/base/kustomization.yaml", "resources: [module.yaml]\n");
        write(dir + "/prod/kustomization.yaml",
              "namespace: drivers\nresources: [../base/]\npatches:\n- path: ./patch.yaml\n- patch: |-\n    - op: x\n");
        write(dir + "/prod/patch.yaml", "apiVersion: kmm.sigs.x-k8s.io/v1beta1\nkind: Module\n");
        api::Objects objects;
        Diagnostics diagnostics;
        const auto read = [&](const std::string& given = "") {
            objects = {};
            diagnostics.clear();
            static_cast<void>(cluster::read_documents({dir}, objects, diagnostics, given));
        };
        const auto has = [&](const std::string& message) {
            return std::any_of(diagnostics.begin(), diagnostics.end(), [&](const Diagnostic& one) {
                return one.severity == Severity::note && one.message == message;
            });
        };
        read();
        CHECK_FALSE(has_errors(diagnostics));
        REQUIRE(objects.modules.size() == 1);
        CHECK(objects.modules[0].meta.namespace_ == "drivers");
        CHECK(has("1 file that kustomize uses as a patch or setting was not read"));
        CHECK(has("1 kustomization changes objects of KMM, which were read without those changes"));
        CHECK(diagnostics.back().hint == "kubectl kustomize " + dir + "/prod | kmm-plan validate -f -");
        SUBCASE("a name without an ending, a component, a kustomization that refers to itself") {
            std::filesystem::remove(dir + "/base/kustomization.yaml");
            write(dir + "/base/Kustomization", "resources: [module.yaml, ../base]\nnamespace: near\n");
            read("given");
            REQUIRE(objects.modules.size() == 1);
            CHECK(objects.modules[0].meta.namespace_ == "near");
        }
        SUBCASE("a file that is also a resource is read") {
            write(dir + "/base/kustomization.yaml", "resources: [module.yaml, ../prod/patch.yaml]\n");
            read();
            CHECK(has_errors(diagnostics));
        }
        SUBCASE("what adds objects and labels changes none") {
            write(dir + "/prod/kustomization.yaml",
                  "namespace: drivers\nresources: [../base]\ncommonLabels: {a: b}\npatches: []\n"
                  "configMapGenerator: [{name: x, files: [a]}]\n");
            std::filesystem::remove(dir + "/prod/patch.yaml");
            read();
            CHECK_FALSE(has("1 kustomization changes objects of KMM, which were read without those changes"));
        }
        SUBCASE("a namespace that is written gives way, and Namespaces are renamed") {
            write(dir + "/base/module.yaml",
                  "apiVersion: kmm.sigs.x-k8s.io/v1beta1\nkind: Module\nmetadata: {name: a, namespace: own}\n"
                  "spec: {selector: {}}\n---\napiVersion: v1\nkind: Namespace\nmetadata: {name: _}\n");
            write(dir + "/prod/kustomization.yaml", "namespace: drivers\nresources: [../base]\n");
            std::filesystem::remove(dir + "/prod/patch.yaml");
            read();
            CHECK_FALSE(has_errors(diagnostics));
            REQUIRE(objects.modules.size() == 1);
            CHECK(objects.modules[0].meta.namespace_ == "drivers");
            REQUIRE(objects.namespaces.size() == 1);
            CHECK(objects.namespaces[0].meta.name == "drivers");
            CHECK_FALSE(has("1 kustomization changes objects of KMM, which were read without those changes"));
            // Of two overlays each makes a Module.
            write(dir + "/test/kustomization.yaml", "namespace: testing\nresources: [../base]\n");
            read();
            REQUIRE(objects.modules.size() == 1);
            CHECK(objects.modules[0].meta.namespace_ == "own");
            CHECK(objects.namespaces.at(0).meta.name != "_");
            CHECK(has("2 kustomizations change objects of KMM, which were read without those changes"));
        }
        SUBCASE("of two namespaces the outer one counts") {
            write(dir + "/base/kustomization.yaml", "resources: [module.yaml]\nnamespace: near\n");
            write(dir + "/prod/kustomization.yaml", "namespace: drivers\nresources: [../base]\n");
            std::filesystem::remove(dir + "/prod/patch.yaml");
            read();
            CHECK(objects.modules.at(0).meta.namespace_ == "drivers");
            CHECK_FALSE(has("1 kustomization changes objects of KMM, which were read without those changes"));
        }
        SUBCASE("without a kustomization it is the caller's") {
            std::filesystem::remove(dir + "/prod/kustomization.yaml");
            std::filesystem::remove(dir + "/prod/patch.yaml");
            read("given");
            REQUIRE(objects.modules.size() == 1);
            CHECK(objects.modules[0].meta.namespace_ == "given");
            read();
            CHECK(has_errors(diagnostics));
        }
    }

    TEST_CASE("null in the data of a Secret or ConfigMap is an empty text, as for a server") {
        const sys::TempDir top("kmm-documents");
        write(top.path() + "/a.yaml",
              "apiVersion: v1\nkind: Secret\nmetadata: {name: s, namespace: d}\ndata: {token: }\n---\n"
              "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, namespace: d}\ndata: {a: null}\n");
        api::Objects objects;
        Diagnostics diagnostics;
        static_cast<void>(cluster::read_documents({top.path()}, objects, diagnostics));
        CHECK(diagnostics.empty());
        CHECK(objects.secrets.at(0).data.at("token").empty());
        CHECK(objects.config_maps.at(0).data.at("a").empty());
    }

    TEST_CASE("deep directories are no loop") {
        sys::TempDir top("kmm-deep");
        std::string path = top.path();
        for (int depth = 0; depth < 100; ++depth) { path += "/d"; }
        sys::make_directories(path, 0755);
        std::ofstream(path + "/node.yaml") << "apiVersion: v1\nkind: Node\nmetadata: {name: node-a}\n";
        api::Objects objects;
        Diagnostics diagnostics;
        static_cast<void>(cluster::read_documents({top.path()}, objects, diagnostics));
        CHECK(diagnostics.empty());
        CHECK(objects.nodes.size() == 1);
        for (int depth = 100; depth < 260; ++depth) { path += "/d"; }
        sys::make_directories(path, 0755);
        static_cast<void>(cluster::read_documents({top.path()}, objects, diagnostics));
        REQUIRE(diagnostics.size() == 1);
        CHECK(diagnostics[0].code == "document-limit");
    }

    TEST_CASE("faults of all files come at once") {
        const sys::TempDir top("kmm-documents");
        write(top.path() + "/bad.yaml", "a: [");
        write(top.path() + "/good.yaml", node_text("a"));
        sys::make_directories(top.path() + "/empty", 0755);
        api::Objects objects;
        Diagnostics diagnostics;
        static_cast<void>(cluster::read_documents({top.path() + "/absent.yaml", top.path() + "/bad.yaml",
                                                   top.path() + "/empty", top.path() + "/good.yaml"},
                                                  objects, diagnostics));
        REQUIRE(diagnostics.size() == 3);
        CHECK(diagnostics[0].code == "file-not-found");
        CHECK(diagnostics[0].exit == Exit::not_found);
        CHECK(diagnostics[1].code == "yaml-syntax");
        CHECK(diagnostics[2].code == "no-documents");
        CHECK(diagnostics[2].severity == Severity::error);  // as kubectl has it
        CHECK(objects.nodes.size() == 1);
    }

    TEST_CASE("a file that is named twice is read once") {
        const sys::TempDir top("kmm-documents");
        write(top.path() + "/a.yaml", node_text("a"));
        api::Objects objects;
        Diagnostics diagnostics;
        const auto files =
            cluster::read_documents({top.path() + "/a.yaml", top.path() + "/a.yaml"}, objects, diagnostics);
        CHECK(files.size() == 1);
        CHECK(objects.nodes.size() == 1);
    }

    TEST_CASE("an overlay replaces and adds") {
        const sys::TempDir top("kmm-documents");
        write(top.path() + "/base.yaml", node_text("a") + "---\n" + node_text("b"));
        write(top.path() + "/over.yaml", node_text("b", "new") + "---\n" + node_text("c"));
        api::Objects base, over;
        Diagnostics diagnostics;
        static_cast<void>(cluster::read_documents({top.path() + "/base.yaml"}, base, diagnostics));
        static_cast<void>(cluster::read_documents({top.path() + "/over.yaml"}, over, diagnostics));
        api::finish(base, diagnostics);
        api::finish(over, diagnostics);
        cluster::overlay(base, std::move(over));
        REQUIRE(base.nodes.size() == 3);
        CHECK(base.nodes[0].meta.name == "a");
        CHECK(base.nodes[1].meta.labels.at("is") == "new");
        CHECK(base.nodes[2].meta.name == "c");
    }

    TEST_CASE("facts of an object that has them, and of one that has not") {
        using value::Node;
        const auto with = [](const char* status) {
            const Node condition = Node::mapping({{"type", "Ready"}, {"status", status}});
            return Node::mapping(
                {{"metadata", Node::mapping({{"annotations", Node::mapping({{"a/b", "c"}})}})},
                 {"status",
                  Node::mapping({{"conditions", Node::sequence({Node::mapping({{"type", "Other"}}), condition})}})}});
        };
        CHECK(cluster::is_ready(with("True")));
        CHECK_FALSE(cluster::is_ready(with("Unknown")));
        CHECK_FALSE(cluster::is_ready(Node::mapping()));
        CHECK(cluster::condition_of(with("True"), "None") == nullptr);
        CHECK(cluster::annotation_of(with("True"), "a/b") == "c");
        CHECK(cluster::annotation_of(with("True"), "b").empty());
        CHECK(cluster::annotation_of(Node(), "b").empty());
    }
}
