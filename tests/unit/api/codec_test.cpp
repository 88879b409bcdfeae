// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <string>

#include "api/codec.hpp"
#include "value/reader.hpp"

using namespace kmm;

namespace {

struct Read {
    api::Objects objects;
    Diagnostics diagnostics;
};

Read read(const std::string& text, const char* file = "f.yaml") {
    Read result;
    for (const auto& document : value::read_any(text, file, result.diagnostics)) {
        api::decode(document, result.objects, result.diagnostics);
    }
    api::finish(result.objects, result.diagnostics);
    return result;
}

/// The only diagnostic, as "LINE:COL code: message | hint".
std::string only(const Read& result) {
    if (result.diagnostics.size() != 1) { return std::to_string(result.diagnostics.size()) + " diagnostics"; }
    const Diagnostic& found = result.diagnostics[0];
    const Position place = found.position.value_or(Position{});
    return std::to_string(place.line) + ":" + std::to_string(place.column) + " " + found.code + ": " + found.message +
           (found.hint.empty() ? "" : " | " + found.hint);
}

const std::string k_module = R"(apiVersion: kmm.sigs.x-k8s.io/v1beta1
kind: Module
metadata:
  name: kmm-hello
  namespace: drivers
spec:
  selector:
    kmm: "yes"
  imageRepoSecret: {name: pull}
  tolerations:
  - {key: a, operator: Exists, effect: NoExecute, tolerationSeconds: 5}
  moduleLoader:
    serviceAccountName: loader
    container:
      version: v1
      containerImage: registry.example/kmm-hello:v1
      imagePullPolicy: Always
      registryTLS: {insecure: true, insecureSkipTLSVerify: false}
      inTreeModulesToRemove: [old]
      build:
        dockerfileConfigMap: {name: docker}
        buildArgs: [{name: A, value: "1"}]
        secrets: [{name: s}]
        kanikoParams: {tag: t}
        selector: {arch: x}
        baseImageRegistryTLS: {insecure: true}
      sign:
        certSecret: {name: c}
        keySecret: {name: k}
        filesToSign: [/opt/a.ko]
        unsignedImage: u
        unsignedImageRegistryTLS: {insecureSkipTLSVerify: true}
      modprobe:
        moduleName: kmm_hello
        parameters: [a=b]
        dirName: /opt
        firmwarePath: /firmware
        modulesLoadingOrder: [kmm_hello, base]
        args: {load: ["-v"], unload: ["-v"]}
      kernelMappings:
      - literal: 6.1.0-1
        containerImage: ""
        registryTLS: {}
        inTreeModulesToRemove: []
      - regexp: '^6\.'
        containerImage: other:tag
  devicePlugin:
    container: {image: "plugin:1", args: [a], env: [], resources: {}, volumeMounts: []}
    volumes: []
)";

}  // namespace

TEST_SUITE("api::unit") {
    TEST_CASE("a Module is read completely, with the places of its fields") {
        const Read result = read(k_module);
        CHECK(only(result) == "0 diagnostics");
        REQUIRE(result.objects.modules.size() == 1);
        const api::Module& module = result.objects.modules[0];
        CHECK(module.full_name() == "drivers/kmm-hello");
        CHECK(module.selector == api::Labels{{"kmm", "yes"}});
        CHECK(module.image_repo_secret == "pull");
        CHECK(module.tolerations.at(0).toleration_seconds == 5);
        const auto& container = module.module_loader.value().container;
        CHECK(module.module_loader->service_account_name == "loader");
        CHECK(container.version == "v1");
        CHECK(container.version_origin == Position{"f.yaml", 15, 16});
        CHECK(container.registry_tls.insecure);
        CHECK(container.in_tree_modules_to_remove == std::vector<std::string>{"old"});
        CHECK(container.build.value().build_args.at(0).value == "1");
        CHECK(container.build->kaniko_tag == "t");
        CHECK(container.sign.value().files_to_sign.at(0) == "/opt/a.ko");
        CHECK(container.modprobe.modules_loading_order.size() == 2);
        CHECK(container.modprobe.args.value().load.at(0) == "-v");
        REQUIRE(container.kernel_mappings.size() == 2);
        CHECK(container.kernel_mappings[0].registry_tls.has_value());
        CHECK(container.kernel_mappings[0].in_tree_modules_to_remove.value().empty());
        CHECK_FALSE(container.kernel_mappings[1].in_tree_modules_to_remove.has_value());
        CHECK(container.kernel_mappings[1].regexp == "^6\\.");
        CHECK(module.device_plugin.has_value());
        CHECK(module.places.at("spec.moduleLoader.container.kernelMappings[1].regexp") ==
              container.kernel_mappings[1].matcher_origin);
    }

    TEST_CASE("each fault has its place, code and hint") {
        struct Row {
            std::string text, expected;
        };
        const auto swap = [](const std::string& from, const std::string& to) {
            std::string text = k_module;
            text.replace(text.find(from), from.size(), to);
            return text;
        };
        const std::string head = "apiVersion: v1\nkind: Node\nmetadata: {name: a}\n";
        for (const Row& row : {
                 Row{swap("moduleLoader:", "moduleLoder:"),
                     "12:3 unknown-field: unknown field spec.moduleLoder | did you mean moduleLoader?"},
                 Row{swap("dirName:", "dirname:"),
                     "36:9 unknown-field: unknown field spec.moduleLoader.container.modprobe.dirname | did you mean "
                     "dirName?"},
                 Row{swap("version: v1", "version: 1.50"),
                     "15:16 wrong-type: spec.moduleLoader.container.version: expected string, found number 1.50 | put "
                     "it in "
                     "quotes: \"1.50\""},
                 Row{swap("insecure: true,", "insecure: 'true',"),
                     "18:31 wrong-type: spec.moduleLoader.container.registryTLS.insecure: expected boolean, found "
                     "string "
                     "\"true\" | write true without quotes"},
                 Row{swap("parameters: [a=b]", "parameters: a=b"),
                     "35:21 wrong-type: spec.moduleLoader.container.modprobe.parameters: expected list, found string "
                     "\"a=b\" | write it as a list: one \"- \" line per entry"},
                 Row{swap("        containerImage: \"\"\n", ""),
                     "41:9 missing-field: required field spec.moduleLoader.container.kernelMappings[0].containerImage "
                     "is "
                     "missing | write containerImage: \"\" to inherit the container's image"},
                 Row{swap("kmm: \"yes\"", "kmm: yes"),
                     "8:10 wrong-type: spec.selector[kmm]: expected string, found boolean yes | put it in quotes: "
                     "\"yes\""},
                 Row{swap("kmm: \"yes\"", "matchLabels: {kmm: \"yes\"}"),
                     "8:18 wrong-type: spec.selector[matchLabels]: expected string, found mapping | spec.selector is a "
                     "plain map of labels: "
                     "write them without matchLabels"},
                 Row{swap("  selector:\n", "  nodeSelector: {}\n  selector:\n"),
                     "7:3 unknown-field: unknown field spec.nodeSelector | did you mean selector?"},
                 Row{swap("imageRepoSecret: {name: pull}", "imageRepoSecret: pull"),
                     "9:20 wrong-type: spec.imageRepoSecret: expected mapping, found string \"pull\" | write "
                     "imageRepoSecret: {name: pull}"},
                 Row{head + "spec: {taints: {key: a, effect: NoExecute}}\n",
                     "4:16 wrong-type: spec.taints: expected list, found mapping | begin each entry with \"- \""},
                 Row{swap("v1beta1", "v1beta2"),
                     "1:13 unknown-api-version: apiVersion kmm.sigs.x-k8s.io/v1beta2 of kind Module is not supported, "
                     "expected kmm.sigs.x-k8s.io/v1beta1 | no release of KMM serves Module as v1beta2: write "
                     "apiVersion: kmm.sigs.x-k8s.io/v1beta1"},
                 Row{swap("  namespace: drivers\n", ""),
                     "4:3 missing-field: required field metadata.namespace is missing | kubectl would take it from the "
                     "current context; write it into the document"},
                 Row{"kind: Node\nmetadata: {name: a}\n", "1:1 missing-field: required field apiVersion is missing"},
                 Row{head + "status: {nodeInfo: {kernelVerson: x}}\n",
                     "4:21 unknown-field: unknown field status.nodeInfo.kernelVerson | did you mean kernelVersion?"},
                 Row{head + "spec: {taints: [{key: a, effect: NoSchedule, timeAdded: null, vlaue: b}]}\n",
                     "4:63 unknown-field: unknown field spec.taints[0].vlaue | did you mean value?"},
                 Row{head + "spec: {taints: [{key: a, effect: NoSchedual}]}\n",
                     "4:34 bad-value: spec.taints[0].effect: expected NoSchedule, PreferNoSchedule or NoExecute, found "
                     "\"NoSchedual\" | "
                     "did you mean NoSchedule?"},
                 Row{head + "spec: {taints: [{key: '', effect: NoExecute}]}\n",
                     "4:23 bad-value: spec.taints[0].key: expected a taint key, found \"\" | a key is [PREFIX/]NAME; "
                     "NAME has 1 to 63 "
                     "letters, digits, '-', '_' or '.'"},
                 Row{head + "spec: {taints: [{key: a/b, value: c d, effect: NoExecute}]}\n",
                     "4:35 bad-value: spec.taints[0].value: expected a label value, found \"c d\" | at most 63 "
                     "letters, digits, '-', '_' or "
                     "'.', a letter or digit at both ends"},
                 Row{"apiVersion: v1\nkind: Node\nmetadata: {name: -oProxyCommand=x}\n",
                     "3:18 bad-value: metadata.name \"-oProxyCommand=x\" is not valid | a name has lower-case letters, "
                     "digits, '-' and '.', at most 253 of them"},
                 Row{"apiVersion: v1\nkind: Secret\nmetadata: {name: a, namespace: b}\ndata: {k: '***'}\n",
                     "4:11 bad-value: data.k is not base64 | plain text belongs under stringData"},
                 Row{"apiVersion: v1\nkind: Secret\nmetadata: {name: a, namespace: b}\nstringData: {k: 4711}\n",
                     "4:17 wrong-type: stringData[k]: expected string, found integer | put it in quotes"},
                 Row{"apiVersion: apps/v1\nkind: Deployment\nmetadata: {}\n",
                     "2:7 unknown-kind: 1 object of kinds that KMM does not use was not read: Deployment"},
                 Row{"apiVersion: kmm.sigs.x-k8s.io/v1beta1\nkind: Modul\nmetadata: {}\n",
                     "2:7 unknown-kind: kind Modul (kmm.sigs.x-k8s.io/v1beta1) does not exist | did you mean Module?"},
                 Row{"apiVersion: v1\nkind: node\nmetadata: {}\n",
                     "2:7 unknown-kind: kind node (v1) does not exist | did you mean Node?"},
                 Row{"apiVersion: v1\nkind: Noed\nmetadata: {}\n",
                     "2:7 unknown-kind: kind Noed (v1) does not exist | did you mean Node?"},
                 Row{"apiVersion: v1\nkind: Modules\nmetadata: {}\n",
                     "2:7 unknown-kind: kind Modules (v1) does not exist | did you mean Module?"},
                 Row{"apiVersion: sro.openshift.io/v1beta1\nkind: SpecialResorce\nmetadata: {}\n",
                     "2:7 unknown-kind: kind SpecialResorce (sro.openshift.io/v1beta1) does not exist | did you "
                     "mean SpecialResource?"},
                 Row{"apiVersion: cluster.open-cluster-management.io/v1beta2\nkind: ManagedClusterSet\n"
                     "metadata: {}\n",
                     "2:7 unknown-kind: 1 object of kinds that KMM does not use was not read: ManagedClusterSet"},
                 Row{head + "status: {nodeInfo: {architecture: x86_64}}\n",
                     "4:35 bad-value: status.nodeInfo.architecture: expected an architecture by Go's name, found "
                     "\"x86_64\" | did you mean amd64?"},
                 Row{"apiVersion: v1\nkind: list\nitems: []\n",
                     "2:7 unknown-kind: kind list (v1) does not exist | did you mean List?"},
                 Row{"apiVersion: v1\nkind: list\nitems: [{apiVersion: kmm.sigs.x-k8s.io/v1beta1, kind: Module, "
                     "metadata: {name: a}}]\n",
                     "2:7 unknown-kind: kind list (v1) does not exist | did you mean List?"},
                 Row{"apiVersion: example.com/v1\nkind: NameSpace\nmetadata: {}\n",
                     "2:7 unknown-kind: 1 object of kinds that KMM does not use was not read: NameSpace"},
                 Row{"- a\n",
                     "1:1 wrong-type: document: expected mapping, found list | write several objects as documents with "
                     "--- between them, or as items of a List"},
                 Row{"NAME STATUS\na Ready\n",
                     "1:1 wrong-type: document: expected mapping, found string \"NAME STATUS a Ready\" | this looks "
                     "like a table: kubectl get -o "
                     "json writes the objects"},
                 Row{"a b\n", "1:1 wrong-type: document: expected mapping, found string \"a b\""},
             }) {
            CAPTURE(row.text);
            CHECK(only(read(row.text)) == row.expected);
        }
    }

    TEST_CASE("all faults of a document come at once") {
        const Read result =
            read("apiVersion: v1\nkind: Node\nmetadata: {nam: a, labels: {'a b': c, d: 'e f'}}\nspce: {}\n");
        CHECK(result.diagnostics.size() == 5);
    }

    TEST_CASE("a Node of kubectl get -o json has no faults") {
        const Read result = read(R"({"apiVersion":"v1","kind":"List","metadata":{"resourceVersion":""},"items":[
          {"apiVersion":"v1","kind":"Node","metadata":{"annotations":{"a":"b"},"creationTimestamp":"2026-01-01T00:00:00Z",
           "labels":{"kubernetes.io/hostname":"worker-1"},"managedFields":[{"manager":"x"}],"name":"worker-1",
           "ownerReferences":[],"resourceVersion":"5","uid":"u"},
           "spec":{"podCIDR":"10.0.0.0/24","podCIDRs":["10.0.0.0/24"],"providerID":"x","unschedulable":true,
             "taints":[{"effect":"NoSchedule","key":"node.kubernetes.io/unschedulable","timeAdded":"2026-01-01T00:00:00Z"}]},
           "status":{"addresses":[],"allocatable":{},"capacity":{},"conditions":[{"lastHeartbeatTime":"x",
             "lastTransitionTime":"x","message":"m","reason":"r","status":"False","type":"Ready"}],
             "daemonEndpoints":{},"images":[],"runtimeHandlers":[],"features":{},
             "nodeInfo":{"architecture":"amd64","bootID":"b","containerRuntimeVersion":"c","kernelVersion":"6.1.0-1+",
               "kubeProxyVersion":"","kubeletVersion":"v","machineID":"m","operatingSystem":"linux","osImage":"Debian",
               "systemUUID":"s","swap":{}}}}]})",
                                 "nodes.json");
        CHECK(only(result) == "0 diagnostics");
        REQUIRE(result.objects.nodes.size() == 1);
        const api::Node& node = result.objects.nodes[0];
        CHECK(node.meta.name == "worker-1");
        CHECK(node.kernel_version == "6.1.0-1+");
        CHECK(node.boot_id == "b");
        CHECK(node.architecture == "amd64");
        CHECK(node.ready == "False");
        CHECK(node.unschedulable);
        REQUIRE(node.taints.size() == 1);
        CHECK(node.taints[0].effect == "NoSchedule");
    }

    TEST_CASE("a field that only a later Kubernetes has is a note where a server gave the object out") {
        const std::string field = R"("status":{"brandNew":1,"nodeInfo":{"kernelVersion":"6.1.0"}}})";
        const std::string start = R"({"apiVersion":"v1","kind":"Node","metadata":{"name":")";
        const Read served =
            read(start + R"(a","uid":"u"},)" + field + start + R"(b","uid":"v"},)" + field, "nodes.json");
        REQUIRE(served.diagnostics.size() == 1);
        CHECK(served.diagnostics[0].severity == Severity::note);
        CHECK(served.diagnostics[0].message == "unknown field status.brandNew: 2 of them in this file");
        const Read written = read(start + R"(a"},)" + field, "node.json");
        REQUIRE(written.diagnostics.size() == 1);
        CHECK(written.diagnostics[0].severity == Severity::error);
        const Read misspelt = read(start + R"(a","uid":"u"},"status":{"nodInfo":{}}})", "node.json");
        REQUIRE(misspelt.diagnostics.size() == 1);
        CHECK(misspelt.diagnostics[0].severity == Severity::error);
    }

    TEST_CASE("items of a typed list inherit its kind") {
        const Read result =
            read("apiVersion: v1\nkind: NodeList\nitems:\n- metadata: {name: b}\n- metadata: {name: a}\n");
        CHECK(only(result) == "0 diagnostics");
        REQUIRE(result.objects.nodes.size() == 2);
        CHECK(result.objects.nodes[0].meta.name == "a");
    }

    TEST_CASE("a list without items is empty if it says so") {
        CHECK(only(read("apiVersion: v1\nkind: NodeList\nitems: null\n")) == "0 diagnostics");
        CHECK(only(read(R"({"apiVersion":"v1","kind":"List","items":null,"metadata":{}})")) == "0 diagnostics");
        CHECK(only(read("apiVersion: v1\nkind: NodeList\nitem: []\n")) != "0 diagnostics");
    }

    TEST_CASE("the same object twice names both places and keeps the first") {
        const std::string node = "apiVersion: v1\nkind: Node\nmetadata: {name: a, labels: {n: x}}\n";
        const Read result = read(node + "---\n" + node);
        CHECK(only(result) == "5:1 duplicate-object: Node a is already defined at f.yaml:1:1 | remove one of the two");
        CHECK(result.objects.nodes.size() == 1);
    }

    TEST_CASE("a Namespace that two files declare alike is one, and a fault in one file or where the two differ") {
        const std::string space = "apiVersion: v1\nkind: Namespace\nmetadata: {name: a, labels: {b: c}}\n";
        Read alike = read(space);
        for (const auto& document : value::read_any(space, "g.yaml", alike.diagnostics)) {
            api::decode(document, alike.objects, alike.diagnostics);
        }
        api::finish(alike.objects, alike.diagnostics);
        CHECK(only(alike) == "0 diagnostics");
        CHECK(alike.objects.namespaces.size() == 1);
        CHECK(only(read(space + "---\n" + space)) ==
              "5:1 duplicate-object: Namespace a is already defined at f.yaml:1:1 | remove one of the two");
        const Read differ = read(space + "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n");
        CHECK(only(differ) ==
              "5:1 duplicate-object: Namespace a is already defined at f.yaml:1:1 | remove one of the two");
    }

    TEST_CASE("faults of what nothing of KMM names are one note, if there is a Module") {
        const std::string secret =
            "apiVersion: v1\nkind: Secret\nmetadata: {name: pull, namespace: a}\ndata: {k: '?'}\n";
        const auto module = [](const std::string& named) {
            return "---\napiVersion: kmm.sigs.x-k8s.io/v1beta1\nkind: Module\nmetadata: {name: m, namespace: a}\n"
                   "spec: {selector: {}, imageRepoSecret: {name: " + named + "}, moduleLoader: {container: {modprobe: "
                   "{moduleName: m}, kernelMappings: [{literal: '1', containerImage: b}]}}}\n";
        };
        const auto codes = [](const Read& result) {
            std::string text;
            for (const auto& one : result.diagnostics) { text += one.code + " "; }
            return text;
        };
        CHECK(codes(read(secret)) == "bad-value ");
        CHECK(codes(read(secret + module("pull"))) == "bad-value ");
        const Read other = read(secret + "---\n" + secret + module("other"));
        CHECK(only(other) ==
              "4:11 object-not-named: 3 faults of an object that nothing of KMM names were left out: "
              "Secret a/pull | kubectl apply --dry-run=server -f FILE says what a server thinks of them");
        // What a server gave out cannot be an example.
        const std::string served =
            "apiVersion: v1\nkind: Secret\nmetadata: {name: x, namespace: a, uid: u}\ndata: {k: '?'}\n";
        CHECK(codes(read(served + module("other"))) == "bad-value ");
    }

    TEST_CASE("definitions of one kind and patches of it, as operators' repositories have them, are one") {
        const auto definition = [](const std::string& spec) {
            return "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n"
                   "metadata: {name: modules.kmm.sigs.x-k8s.io}\nspec: {" + spec + "}\n";
        };
        const auto fields = [](const std::string& names) {
            return "versions: [{schema: {openAPIV3Schema: {properties: {spec: {properties: {" + names + "}}}}}}]";
        };
        const Read result = read(definition("conversion: {strategy: Webhook}") + "---\n" +
                                 definition(fields("selector: {}, devicePlugin: {}")) + "---\n" +
                                 definition(fields("selector: {}, dra: {}")));
        CHECK(only(result) == "0 diagnostics");
        REQUIRE(result.objects.custom_resource_definitions.size() == 1);
        CHECK(result.objects.custom_resource_definitions[0].spec_fields ==
              std::vector<std::string>{"devicePlugin", "dra", "selector"});
    }

    TEST_CASE("that a document is no object is marked, and nothing else is") {
        CHECK(read("- a\n").diagnostics.at(0).is_of_no_object);
        CHECK(read("just words\n").diagnostics.at(0).is_of_no_object);
        for (const auto& one : read("name: a\n").diagnostics) { CHECK(one.is_of_no_object); }
        CHECK(read("apiVersion: v1\nmetadata: {name: a}\n").diagnostics.at(0).is_of_no_object);
        const auto misread = read("apiVersion: v1\nkind: Node\nmetadata: a\n").diagnostics;
        REQUIRE(!misread.empty());
        for (const auto& one : misread) { CHECK_FALSE(one.is_of_no_object); }
        for (const auto& one : read("apiVersion: kmm.sigs.x-k8s.io/v1beta1\nkind: Module\n").diagnostics) {
            CHECK_FALSE(one.is_of_no_object);
        }
    }

    TEST_CASE("of an object that a server gave twice the later counts, as must-gather has Pods and Namespaces") {
        const auto pod = [](const std::string& uid, const std::string& version, const std::string& phase) {
            return "apiVersion: v1\nkind: Pod\nmetadata: {name: a, namespace: b, uid: " + uid + ", resourceVersion: '" +
                   version + "'}\nstatus: {phase: " + phase + "}\n---\n";
        };
        for (const auto& text : {pod("u", "9", "Pending") + pod("u", "10", "Running"),
                                 pod("u", "10", "Running") + pod("u", "9", "Pending")}) {
            const Read result = read(text);
            CHECK(only(result) == "0 diagnostics");
            REQUIRE(result.objects.pods.size() == 1);
            CHECK(result.objects.pods[0].phase == "Running");
        }
        CHECK(only(read(pod("u", "9", "Pending") + pod("v", "10", "Running"))) != "0 diagnostics");
        CHECK(only(read(pod("u", "", "Pending") + pod("u", "10", "Running"))) != "0 diagnostics");
        CHECK(only(read(pod("''", "9", "Pending") + pod("''", "10", "Running"))) != "0 diagnostics");
    }

    TEST_CASE("secrets are decoded, stringData wins") {
        const Read result = read("apiVersion: v1\nkind: Secret\ntype: Opaque\nmetadata: {name: a, namespace: b}\n"
                                 "data: {one: aGVsbG8=, two: aGVsbG8=}\nstringData: {two: plain}\n");
        CHECK(only(result) == "0 diagnostics");
        const auto& data = result.objects.secrets.at(0).data;
        CHECK(data.at("one") == "hello");
        CHECK(data.at("two") == "plain");
    }

    TEST_CASE("a NodeModulesConfig survives encode and decode") {
        const Read first = read(R"(apiVersion: kmm.sigs.x-k8s.io/v1beta1
kind: NodeModulesConfig
metadata: {name: a, labels: {beta.kmm.node.kubernetes.io/n.m.module-configured: ""}}
spec:
  modules:
  - name: m
    namespace: ns
    serviceAccountName: default
    version: v1
    config:
      containerImage: i:t
      insecurePull: false
      kernelVersion: 6.1.0
      modprobe: {moduleName: m}
status:
  modules:
  - {name: m, namespace: ns, serviceAccountName: default, bootId: b,
     config: {containerImage: "i:t", insecurePull: false, kernelVersion: 6.1.0, modprobe: {moduleName: m}}}
)");
        CHECK(only(first) == "0 diagnostics");
        const auto& object = first.objects.node_modules_configs.at(0);
        CHECK(object.status.at(0).boot_id == "b");
        value::Document document;
        document.root = api::encode(object);
        Read second;
        api::decode(document, second.objects, second.diagnostics);
        CHECK(only(second) == "0 diagnostics");
        CHECK(second.objects.node_modules_configs.at(0).spec == object.spec);
        CHECK(second.objects.node_modules_configs.at(0).status == object.status);
        CHECK(second.objects.node_modules_configs.at(0).meta.labels == object.meta.labels);
    }

    TEST_CASE("the time of a change, which KMM wrote before there were boot ids, is read over") {
        CHECK(only(read("apiVersion: kmm.sigs.x-k8s.io/v1beta1\nkind: NodeModulesConfig\nmetadata: {name: "
                        "a}\nstatus:\n  modules:\n"
                        "  - {name: m, namespace: ns, serviceAccountName: default, lastTransitionTime: "
                        "'2024-01-01T00:00:00Z',\n"
                        "     config: {containerImage: 'i:t', insecurePull: false, kernelVersion: 6.1.0, modprobe: "
                        "{moduleName: m}}}\n")) == "0 diagnostics");
    }

    TEST_CASE("kinds that KMM does not use are one note, with their numbers") {
        Read result =
            read("apiVersion: x/v1\nkind: Foo\n---\napiVersion: x/v1\nkind: Foo\n---\napiVersion: x/v1\nkind: Bar\n");
        api::finish(result.objects, result.diagnostics);
        REQUIRE(result.diagnostics.size() == 1);
        CHECK(result.diagnostics[0].severity == Severity::note);
        CHECK(result.diagnostics[0].message == "3 objects of kinds that KMM does not use were not read: Bar, Foo (2)");
    }

    TEST_CASE("the worker's file is strict and requires nothing") {
        Diagnostics diagnostics;
        const auto documents =
            value::read_yaml("ContainerImage: i:t\nmodprobe: {modulNames: m}\nkernel: x\n", "c", diagnostics);
        REQUIRE(documents.size() == 1);
        const auto config = api::decode_module_config(documents[0], diagnostics);
        CHECK(config.container_image == "i:t");
        CHECK(diagnostics.size() == 2);
    }
}
