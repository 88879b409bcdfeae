// SPDX-License-Identifier: Apache-2.0
// What the Special Resource Operator was seen to do, with --compat sro, and what is made of it without.
#include <doctest/doctest.h>

#include "fixture.hpp"

namespace {

using namespace kmm;
using namespace kmm::recipe_test;

}  // namespace

TEST_CASE("behaviour 1: the proxy is never injected; here it is") {
    Case one;
    one.files = {{"templates/1000-a.yaml", daemon_set("    specialresource.openshift.io/proxy: \"true\"\n")}};
    CHECK(has(one.text(), "name: HTTP_PROXY"));
    CHECK(found(one.render().findings, "sro-differs"));
    one.compat = true;
    CHECK_FALSE(has(one.text(), "HTTP_PROXY"));
}

TEST_CASE("behaviour 1: the proxy is set where Pods prepare and build, too") {
    Case one;
    one.facts = one_kernel();
    const std::string head = "metadata: {name: x, annotations: {specialresource.openshift.io/proxy: \"true\"}}\n";
    const std::string pod = "{spec: {initContainers: [{name: a}], containers: [{name: b, env: [{name: HTTP_PROXY, "
                            "value: own}]}, {name: c}]}}";
    one.files = {{"templates/1000-a.yaml",
                  "apiVersion: batch/v1\nkind: Job\n" + head + "spec: {template: " + pod + "}\n"},
                 {"templates/2000-b.yaml", "apiVersion: batch/v1\nkind: CronJob\n" + head +
                                               "spec: {jobTemplate: {spec: {template: " + pod + "}}}\n"}};
    CHECK(count(one.text(), "value: http://proxy:3128") == 4);
    CHECK(count(one.text(), "value: .svc") == 6);
    CHECK(count(one.text(), "value: own") == 2);
    one.compat = true;
    CHECK_FALSE(has(one.text(), "proxy:3128"));
}

TEST_CASE("behaviour 2: charts see the resource before the first pass; set is expanded twice") {
    Case one;
    one.resource = cr("  driverContainer: {source: {git: {ref: 'v-{{ .Values.clusterVersion }}'}}}\n"
                      "  set: {ref: '{{ .Values.specialresource.spec.driverContainer.source.git.ref }}'}\n");
    one.files = {
        {"templates/1000-a.yaml",
         config_map(
             "a",
             "{raw: '{{ .Values.specialresource.spec.driverContainer.source.git.ref }}', set: '{{ .Values.ref }}'}")}};
    for (const bool compat : {false, true}) {
        one.compat = compat;
        CHECK(has(one.text(), "raw: v-{{ .Values.clusterVersion }}"));
        CHECK(has(one.text(), "set: v-4.17.4"));
    }
}

TEST_CASE("behaviour 3: pass 1 works on JSON text; a quote breaks it, a missing key becomes empty in the end") {
    Case one;
    one.resource = cr("  set: {a: '{{ printf \"%s\" .Values.platform }}'}\n");
    one.files = {{"templates/1000-a.yaml", config_map("a", "{a: '{{ .Values.a }}'}")}};
    CHECK(has(one.text(), "a: OCP"));
    one.compat = true;
    const Error error = error_of([&] { (void)one.text(); });
    CHECK(error.diagnostics().at(0).code == "template-syntax");
    CHECK(error.diagnostics().at(0).position->line == 8);
    one.resource = cr("  set: {a: 'x{{ .Values.absent.x }}y{{ .Values.absent }}'}\n");
    CHECK(has(one.text(), "a: xy"));
    one.compat = false;
    CHECK(has(one.text(), "a: xy"));
    CHECK(found(one.render().findings, "missing-value"));
    one.resource = cr("  set: {'k-{{ .Values.platform }}': 1, lit: '{{ `{{ 1 }}` }}'}\n");
    one.files = {{"templates/1000-a.yaml", config_map("a", "{num: {{ index .Values \"k-OCP\" | quote }}}")}};
    CHECK(has(one.text(), "num: \"1\""));
}

TEST_CASE("a List is one object to the operator; here each of its items is one") {
    Case one;
    const auto list = [&](const std::string& text) { one.files = {{"templates/1000-a.yaml", "apiVersion: " + text}}; };
    list("v1\nkind: List\nitems:\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n"
         "- apiVersion: v1\n  kind: ConfigMapList\n"
         "  items: [{apiVersion: v1, kind: ConfigMap, metadata: {name: b}}]\n");
    const std::string text = one.text();
    CHECK_FALSE(has(text, "List"));
    CHECK(has(text, "  name: a\n  namespace: demo\n"));
    CHECK(has(text, "  name: b\n  namespace: demo\n"));
    one.compat = true;
    CHECK(has(one.text(), "kind: List"));
    one.compat = false;
    list("v1\nkind: List\nitems: [{apiVersion: v1, kind: ConfigMap}]\n");
    CHECK(error_of([&] { (void)one.text(); }).message() == "ConfigMap: metadata.name is missing");
    list("x.io/v1\nkind: AllowList\nmetadata: {name: z}\nitems: [{a: b}]\n");
    CHECK(has(one.text(), "kind: AllowList"));
}

TEST_CASE("behaviour 4: a state that is rendered once may fail where several kernels run") {
    Case one;
    one.files = {{"templates/1000-a.yaml", "{{ fail \"no\" }}"}, {"templates/2000-b.yaml", config_map("b")}};
    CHECK(error_of([&] { (void)one.text(); }).code() == "template-fail");
    one.compat = true;
    CHECK(has(one.text(), "# state: 2000-b.yaml"));
    CHECK(found(one.render().findings, "sro-ignores"));
    one.facts = one_kernel();
    CHECK(error_of([&] { (void)one.text(); }).code() == "template-fail");
}

TEST_CASE("behaviour 4: of several kernels the last one's fault counts") {
    Case one;
    one.files = {
        {"templates/1000-a.yaml",
         "{{ if hasPrefix \"4.\" .Values.kernelFullVersion }}{{ fail \"no\" }}{{ end }}\n" + daemon_set(k_affine)}};
    CHECK(error_of([&] { (void)one.text(); }).code() == "template-fail");
    one.compat = true;
    CHECK(count(one.text(), "kind: DaemonSet") == 1);
    one.files = {
        {"templates/1000-a.yaml",
         "{{ if hasPrefix \"5.\" .Values.kernelFullVersion }}{{ fail \"no\" }}{{ end }}\n" + daemon_set(k_affine)}};
    CHECK(error_of([&] { (void)one.text(); }).code() == "template-fail");
}

TEST_CASE("behaviour 5: the operator finds the annotation on a line of its own alone") {
    Case one;
    one.files = {{"templates/1000-a.yaml",
                  "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  annotations: "
                  "{specialresource.openshift.io/kernel-affine: \"true\"}\n"}};
    CHECK(count(one.text(), "kind: ConfigMap") == 2);
    CHECK(found(one.render().findings, "sro-differs"));
    one.compat = true;
    CHECK(count(one.text(), "kind: ConfigMap") == 1);
    CHECK(has(one.text(), "# kernel: 4.18.0-305.40.2.el8_4.x86_64\n"));
    CHECK(has(one.text(), "name: a-e383247e62b56585"));
    one.files = {{"templates/1000-a.yaml",
                  "{{/*\n specialresource.openshift.io/kernel-affine: mentioned\n*/}}" + config_map("a")}};
    CHECK(count(one.text(), "kind: ConfigMap") == 2);
    one.files = {{"templates/a.yaml", daemon_set(k_affine)}};
    CHECK(count(one.text(), "kind: DaemonSet") == 1);
    one.compat = false;
    CHECK(count(one.text(), "kind: DaemonSet") == 2);
}

TEST_CASE("behaviour 6: objects of an affine state without the annotation have one name for all kernels") {
    Case one;
    one.files = {{"templates/1000-a.yaml", config_map("same") + "---\n" + daemon_set(k_affine)}};
    CHECK(count(one.text(), "kind: ConfigMap") == 1);
    one.compat = true;
    CHECK(count(one.text(), "kind: ConfigMap") == 2);
    one.files = {{"templates/1000-a.yaml",
                  config_map("k", "{k: '{{ .Values.kernelFullVersion }}'}") + "---\n" + daemon_set(k_affine)}};
    CHECK(count(one.text(), "kind: ConfigMap") == 2);
    one.compat = false;
    CHECK(error_of([&] { (void)one.text(); }).code() == "recipe-duplicate");
    one.files = {{"templates/1000-a.yaml", config_map("k", "{k: '{{ .Values.kernelFullVersion }}'}")}};
    CHECK(found(one.render().findings, "kernel-dependent"));
    CHECK(has(one.text(), "k: 4.18.0-305"));
}

TEST_CASE("behaviour 7: an empty document is a fault of the operator's") {
    Case one;
    one.facts = one_kernel();
    one.files = {{"templates/1000-a.yaml", config_map("a") + "---\n# nothing\n---\n" + config_map("b")}};
    CHECK(count(one.text(), "kind: ConfigMap") == 2);
    one.compat = true;
    CHECK(has(error_of([&] { (void)one.text(); }).message(), "Object 'Kind' is missing in 'null'"));
    one.files = {{"templates/1000-a.yaml", ""},
                 {"templates/2000-a.yaml", config_map("a") + "---\n---\n" + config_map("b")}};
    CHECK(has(error_of([&] { (void)one.text(); }).message(), "Object 'Kind' is missing in 'null'"));
    one.files.resize(1);
    CHECK(count(one.text(), "---") == 1);
}

TEST_CASE("an object without a name, or with one that is no text, is refused before the API server does") {
    const std::string head = "apiVersion: v1\nkind: ConfigMap\n";
    Case one;
    one.facts = one_kernel();
    for (const auto* metadata :
         {"metadata: {}\n", "metadata:\n  name: \"\"\n", "metadata:\n  name:\n", "data: {a: b}\n"}) {
        one.files = {{"templates/1000-a.yaml", head + metadata}};
        CAPTURE(std::string(metadata));
        CHECK(has(error_of([&] { (void)one.text(); }).message(), "ConfigMap: metadata.name is missing"));
    }
    one.files = {{"templates/1000-a.yaml", head + "metadata:\n  name: 12\n"}};
    CHECK(has(error_of([&] { (void)one.text(); }).message(), "metadata.name: expected a text, found int64 12"));
    one.files = {{"templates/1000-a.yaml", head + "metadata:\n  name: \"12\"\n"}};
    CHECK(has(one.text(), "name: \"12\""));
}

TEST_CASE("behaviour 8: Pods that are never restarted are never made") {
    Case one;
    one.facts = one_kernel();
    const std::string pod = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec:\n  containers: []\n";
    one.files = {{"templates/1000-a.yaml", pod + "  restartPolicy: Never\n"}};
    CHECK(has(one.text(), "kind: Pod"));
    one.compat = true;
    CHECK_FALSE(has(one.text(), "kind: Pod"));
    one.files = {{"templates/1000-a.yaml", pod}};
    CHECK(has(error_of([&] { (void)one.text(); }).message(), "restartPolicy not found"));
    one.compat = false;
    CHECK(has(one.text(), "kind: Pod"));
}

TEST_CASE("behaviour 9: labels of Pods are demanded; one annotation that is no text takes all others with it") {
    Case one;
    one.facts = one_kernel();
    one.files = {{"templates/1000-a.yaml",
                  "apiVersion: apps/v1\nkind: DaemonSet\nmetadata: {name: d}\nspec: {template: {spec: {}}}\n"}};
    CHECK(has(error_of([&] { (void)one.text(); }).message(), "labels not found"));
    one.files = {{"templates/1000-a.yaml",
                  config_map("a", "{}", "    keep: me\n    specialresource.openshift.io/kernel-affine: true\n")}};
    CHECK(has(one.text(), "keep: me"));
    CHECK(has(one.text(), "name: a-"));
    CHECK(found(one.render().findings, "not-a-text"));
    one.compat = true;
    CHECK_FALSE(has(one.text(), "keep: me"));
    CHECK(has(one.text(), "name: a\n"));
}

TEST_CASE("behaviour 10: node selectors") {
    Case one;
    one.facts = one_kernel();
    const std::string set = daemon_set("");
    std::string stateful = set;
    stateful.replace(stateful.find("DaemonSet"), 9, "StatefulSet");
    one.files = {{"templates/1000-a.yaml", set + "---\n" + stateful}};
    one.compat = true;
    CHECK(count(one.text(), "nodeSelector: {}") == 1);
    one.resource = cr("  nodeSelector: {disk: fast}\n");
    CHECK(count(one.text(), "disk: fast") == 1);
    one.compat = false;
    CHECK(count(one.text(), "disk: fast") == 2);
}

TEST_CASE("behaviour 11: kinds without a namespace") {
    Case one;
    one.facts = one_kernel();
    one.files = {{"templates/1000-a.yaml",
                  "apiVersion: storage.k8s.io/v1\nkind: CSIDriver\nmetadata: {name: c}\n---\napiVersion: "
                  "rbac.authorization.k8s.io/v1\nkind: ClusterRole\n"
                  "metadata: {name: r}\n"}};
    CHECK(count(one.text(), "  namespace: demo") == 0);
    one.compat = true;
    CHECK(count(one.text(), "  namespace: demo") == 1);
}

TEST_CASE("behaviour 12: install order") {
    Case one;
    one.facts = one_kernel();
    std::string text;
    for (const auto kind : {"Zebra", "Service", "BuildConfig", "ImageStream", "SecurityContextConstraints", "Issuer",
                            "Certificates", "RoleBinding", "Certificate", "PriorityClass"}) {
        text += std::string("---\napiVersion: v1\nkind: ") + kind + "\nmetadata: {name: x}\n";
    }
    one.files = {{"templates/1000-a.yaml", text}};
    const auto kinds = [&] {
        std::string all;
        for (const auto& object : one.render().objects) { all += object.object.members().at("kind").text() + " "; }
        return all;
    };
    CHECK(kinds() ==
          "Namespace PriorityClass RoleBinding Certificates Issuer SecurityContextConstraints ImageStream BuildConfig "
          "Service Certificate Zebra ");
    one.compat = true;
    CHECK(kinds() ==
          "Namespace RoleBinding Certificates Issuer SecurityContextConstraints ImageStream BuildConfig Service "
          "Certificate PriorityClass Zebra ");
}

TEST_CASE("behaviour 9: kinds that get no annotation of the operator lose theirs, too") {
    Case one;
    one.facts = one_kernel();
    one.files = {{"templates/n.yaml",
                  "apiVersion: v1\nkind: Namespace\nmetadata: {name: other, annotations: {number: 5, kept: text}}\n"}};
    CHECK(has(one.text(), "kept: text"));
    one.compat = true;
    CHECK_FALSE(has(one.text(), "kept: text"));
}

TEST_CASE("behaviour 2: a set that is absent is the number 0 to charts, and null to the first pass") {
    Case one;
    one.facts = one_kernel();
    one.compat = true;
    one.files = {{"templates/1000-a.yaml", config_map("a", "{set: '{{ toJson .Values.specialresource.spec.set }}'}")}};
    CHECK(has(one.text(), "set: \"0\""));
    one.compat = false;
    CHECK(has(one.text(), "set: '{}'"));
    one.compat = true;
    one.resource = cr("  nodeSelector: {a: '{{ .Values.specialresource.spec.set }}'}\n");
    CHECK(error_of([&] { (void)one.render(); }).code() == "no-kernels");
}

TEST_CASE("behaviour 13: names of states") {
    Case one;
    one.facts = one_kernel();
    for (const auto name : {"6000-y.yaml", "sub/0100-x.yaml", "0100-B.yaml", "0100-a.yaml", "1234.yaml", "123-x.yaml",
                            "12345-x.yaml", "1234-x.yml"}) {
        one.files.push_back({std::string("templates/") + name, config_map("c" + std::to_string(one.files.size()))});
    }
    one.files.push_back({"templates/_1000-x.yaml", "{{ define \"x\" }}{{ end }}"});
    std::string states;
    for (const auto& object : one.render().objects) { states += object.state + " "; }
    CHECK(
        states ==
        "(namespace) 0100-B.yaml 0100-a.yaml 6000-y.yaml 0100-x.yaml (stateless) (stateless) (stateless) (stateless) ");
}

TEST_CASE("behaviour 15: sub-charts come again in every state; from the second on without alias and condition") {
    Case one;
    one.facts = one_kernel();
    one.chart_yaml =
        "dependencies:\n- {name: sub, version: 0.1.0, alias: other}\n- {name: gated, version: 0.1.0, condition: "
        "gated.enabled}\n- {name: plain, version: 0.1.0}\n";
    one.values = "gated: {enabled: false}\n";
    one.files = {{"templates/1000-a.yaml", config_map("a")}, {"templates/2000-b.yaml", config_map("b")}};
    for (const char* name : {"sub", "gated", "plain"}) {
        one.files.push_back({std::string("charts/") + name + "/Chart.yaml",
                             std::string("apiVersion: v2\nname: ") + name + "\nversion: 0.1.0\n"});
        one.files.push_back(
            {std::string("charts/") + name + "/templates/c.yaml", config_map("{{ .Chart.Name }}-{{ .Release.Name }}")});
    }
    const auto names = [&](const std::string& state) {
        std::string made;
        for (const auto& object : one.render().objects) {
            if (object.state == state) {
                made += object.object.members().at("metadata").members().at("name").text() + ' ';
            }
        }
        return made;
    };
    CHECK(names("1000-a.yaml") == "other-demo plain-demo a ");
    CHECK(names("2000-b.yaml") == "b ");  // the same once more is not applied again
    one.compat = true;
    CHECK(names("1000-a.yaml") == "other-demo plain-demo a ");
    CHECK(names("2000-b.yaml") == "gated-demo plain-demo sub-demo b ");
}

TEST_CASE("behaviour 15: the operator does not miss sub-charts; it takes no library") {
    Case one;
    one.files = {{"templates/1000-a.yaml", config_map("a")}};
    one.chart_yaml = "dependencies: [{name: absent, version: 1.0.0, repository: ''}]\n";
    CHECK(error_of([&] { (void)one.text(); }).code() == "bad-chart");
    one.compat = true;
    CHECK(has(one.text(), "name: a\n"));
    one.chart_yaml = "type: library\n";
    one.facts = one_kernel();
    CHECK(error_of([&] { (void)one.text(); }).code() == "bad-chart");
}

TEST_CASE("behaviour 16: a name longer than a Helm release's") {
    Case one;
    one.resource = cr("", std::string(54, 'a'));
    CHECK(has(error_of([&] { (void)one.text(); }).diagnostics().at(0).message, "at most 53"));
}

TEST_CASE("behaviour 17: values merge, lists are replaced, null deletes, runtime values win") {
    Case one;
    one.facts = one_kernel();
    one.values = "a: {b: 1, c: 2}\nl: [1, 2]\ngone: here\nplatform: mine\ngroupName: {extra: kept}\n";
    one.resource = cr("  set: {a: {c: 3}, l: [9], gone: null}\n");
    one.files = {
        {"templates/1000-a.yaml", config_map("a",
                                             "{v: '{{ .Values.a.b }} {{ .Values.a.c }} {{ .Values.l }} {{ hasKey "
                                             ".Values \"gone\" }} {{ .Values.platform }} {{ .Values.groupName.extra }} "
                                             "{{ hasKey .Values.specialresource.spec.set \"gone\" }}'}")}};
    for (const bool compat : {false, true}) {
        one.compat = compat;
        CHECK(has(one.text(), "v: 1 3 [9] false OCP kept false"));
    }
}

TEST_CASE("behaviour 18: numbers of set are int64, those of values.yaml float64") {
    Case one;
    one.facts = one_kernel();
    one.values = "num: 1000000\n";
    one.files = {{"templates/1000-a.yaml", config_map("a", "{v: 'n{{ .Values.num }}'}")}};
    CHECK(has(one.text(), "v: n1e+06"));
    CHECK(found(one.render().findings, "float-format"));
    one.resource = cr("  set: {num: 1000000}\n");
    CHECK(has(one.text(), "v: n1000000"));
    CHECK_FALSE(found(one.render().findings, "float-format"));
}

TEST_CASE("behaviour 19: dependencies") {
    Case one;
    one.facts = one_kernel();
    one.files = {{"templates/1000-a.yaml",
                  config_map("a", "{v: '{{ .Values.v }}', of: '{{ .Values.specialresource.metadata.name }}'}")}};
    const std::string needs =
        "  set: {v: main}\n  dependencies:\n  - chart: {name: base, version: 0.0.1, repository: {name: r, url: "
        "'file:///x'}}\n"
        "    set: {v: 'for {{ .Values.specialresource.metadata.name }}'}\n";
    one.resource = cr(needs) + "---\n" + cr("  set: {v: own}\n", "base");
    for (const bool compat : {false, true}) {
        one.compat = compat;
        const std::string text = one.text();
        CHECK(text.find("name: base") < text.find("name: demo"));
        CHECK(has(text, "# cr: base"));
        CHECK_FALSE(has(text, "# cr: demo"));
        CHECK(has(text, "v: for demo"));
        CHECK(has(text, "of: base"));
        CHECK_FALSE(has(text, "own\n"));
    }
    one.resource = cr(needs);
    CHECK(count(one.text(), "kind: SpecialResource") == 1);
    CHECK(count(one.text(), "kind: ConfigMap") == 0);
    CHECK(has(one.text(), "forceUpgrade: false"));  // the Go type whole, and no label
    CHECK_FALSE(has(one.text(), "specialresource.openshift.io/owned"));
    one.compat = false;
    CHECK(has(one.text(), "# state: (dependency)\n# cr: base\n"));
    CHECK(count(one.text(), "kind: ConfigMap") == 2);
}

TEST_CASE("behaviour 22: text in values as go-yaml reads it") {
    Case one;
    one.facts = one_kernel();
    one.values = "n: 014\nb: y\nt: 1:30\n";
    one.files = {
        {"templates/1000-a.yaml", config_map("a", "{v: '{{ .Values.false }} {{ .Values.b }} {{ .Values.t }}'}")}};
    CHECK(has(one.text(), "v: 12 true 1:30"));
}

TEST_CASE("behaviour 25: nil as a text, and literal <no value>") {
    Case one;
    one.facts = one_kernel();
    one.files = {{"templates/1000-a.yaml",
                  config_map("a", "{v: 'x{{ toString .Values.absent }}', w: '{{ printf \"%d\" .Values.f }}'}")}};
    one.values = "f: 5\n";
    CHECK(has(one.text(), "v: x<nil>"));
    CHECK(found(one.render().findings, "no-value-text"));
    CHECK(found(one.render().findings, "printf-fault"));
    one.compat = true;
    CHECK_FALSE(found(one.render().findings, "no-value-text"));
}

TEST_CASE("behaviour 27: lookup, .Files.Get and .Files.Lines") {
    Case one;
    one.files = {
        {"templates/1000-a.yaml",
         config_map("a",
                    "{get: 'x{{ .Files.Get \"absent\" }}x', found: '{{ lookup \"v1\" \"Pod\" \"a\" \"b\" }}', lines: "
                    "'{{ len (.Files.Lines \"f.txt\") }}',"
                    " none: '{{ len (.Files.Lines \"absent\") }}', empty: '{{ len (.Files.Lines \"empty.txt\") }}',"
                    " part: '{{ len ((.Files.Glob \"f*\").Lines \"f.txt\") }}'}")},
        {"f.txt", "one\ntwo\n"},
        {"empty.txt", ""}};
    for (const bool compat : {false, true}) {
        one.compat = compat;
        const std::string text = one.text();
        CHECK(has(text, "get: xx"));
        CHECK(has(text, "found: map[]"));
        CHECK(has(text, "none: \"0\""));
        CHECK(has(text, compat ? "lines: \"3\"" : "lines: \"2\""));
        CHECK(has(text, compat ? "part: \"3\"" : "part: \"2\""));
        CHECK(has(text, compat ? "empty: \"1\"" : "empty: \"0\""));
    }
}

TEST_CASE("behaviour 32: values that a sub-chart exports win over those of its parent, in Helm 3.7 alone") {
    Case one;
    one.facts = one_kernel();
    one.chart_yaml = "dependencies:\n- {name: sub, version: 0.1.0, import-values: [data]}\n";
    one.values = "a: parent\n";
    one.files = {{"templates/1000-a.yaml", config_map("a", "{a: '{{ .Values.a }}', b: '{{ .Values.b }}'}")},
                 {"charts/sub/Chart.yaml", "apiVersion: v2\nname: sub\nversion: 0.1.0\n"},
                 {"charts/sub/values.yaml", "exports: {data: {a: child, b: child}}\n"}};
    CHECK(has(one.text(), "a: parent\n  b: child"));
    one.files[0].data = config_map("a", "{b: '{{ .Values.b }}'}");
    one.compat = true;
    CHECK(has(one.text(), "b: child"));
}

TEST_CASE("behaviour 32: install order of Helm 3.7") {
    Case one;
    one.facts = one_kernel();
    one.files = {
        {"templates/1000-a.yaml",
         "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: p}\n---\n" + config_map("a")}};
    const auto first = [&] { return one.render().objects.at(1).object.members().at("kind").text(); };
    CHECK(first() == "PriorityClass");
    one.compat = true;
    CHECK(first() == "ConfigMap");
}

TEST_CASE("a state does not see what another state defines; the error says where it is") {
    Case one;
    one.facts = one_kernel();
    one.files = {{"templates/1000-a.yaml", "{{ define \"h\" }}x{{ end }}" + config_map("a")},
                 {"templates/2000-b.yaml", "{{ include \"h\" . }}"}};
    const Error error = error_of([&] { (void)one.text(); });
    CHECK(has(error.hint(), "templates/1000-a.yaml defines it"));
}

TEST_CASE("a state that renders nothing is a warning") {
    Case one;
    one.files = {{"templates/1000-a.yaml", "{{ if false }}x{{ end }}"}};
    CHECK(found(one.render().findings, "empty-state"));
}
