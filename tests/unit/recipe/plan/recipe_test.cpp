// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "base/ci_text.hpp"
#include "fixture.hpp"
#include "recipe/plan/recipes.hpp"
#include "recipe/plan/states.hpp"
#include "recipe/resource/graph.hpp"
#include "recipe/resource/values.hpp"
#include "value/writer.hpp"

namespace {

using namespace kmm;
using namespace kmm::recipe_test;
namespace rp = recipe::plan;

std::string alpha(const std::string& name, const std::string& spec) {
    return "apiVersion: sro.openshift.io/v1alpha1\nkind: SpecialResource\nmetadata: {name: " + name + "}\nspec:\n" +
           spec + "\n---\n";
}

/// Two kernels of a cluster with builds, where `vendor` needs one.
rp::Facts kernels_that_build(const std::string& vendor) {
    auto facts = two_kernels();
    facts.api_versions = {"build.openshift.io/v1", "image.openshift.io/v1"};
    facts.update_vendor = vendor;
    return facts;
}

}  // namespace

TEST_CASE("suffixes of copies are the operator's") {
    CHECK(rp::kernel_suffix("8.4", "4.18.0-305.40.2.el8_4.x86_64") == "e383247e62b56585");
    CHECK(rp::kernel_suffix("8.4", "4.18.0-305.19.1.el8_4.x86_64") == "bfb16b50984f16f0");
    CHECK(rp::kernel_suffix("9.2", "5.14.0-284.11.1.el9_2.x86_64") == "a5395987a432047d");
    CHECK(rp::kernel_suffix("9.6", "5.14.0-570.12.1.el9_6.x86_64+rt") == "7efc4fffe8c88ce7");
    CHECK(rp::kernel_suffix("9.6", "5.14.0-570.12.1.el9_6.aarch64+64k") == "a7c5228c1a446040");
    CHECK(rp::kernel_suffix("9.2", "5.14.0-25.el9.x86_64") == "c95bab2c57f9b3a");
}

TEST_CASE("versions of systems") {
    const auto os = [](const char* image, bool operator_only) {
        const auto version = rp::parse_os_image(image, operator_only);
        return version.cluster + "|" + version.os + "|" + version.major;
    };
    CHECK(os("Red Hat Enterprise Linux CoreOS 49.84.202201102104-0 (Ootpa)", true) == "4.9|8.4|8");
    CHECK(os("Red Hat Enterprise Linux CoreOS 410.810.202201102104-0", true) == "4.10|8.10|8");
    CHECK(os("Red Hat Enterprise Linux CoreOS 4.84.202201102104-0", true) == "||");
    CHECK(os("Red Hat Enterprise Linux CoreOS 49.4.202201102104-0", true) == "||");
    CHECK(os("Red Hat Enterprise Linux CoreOS 9.6.20250203-0 (Plow)", true) == "||");
    CHECK(os("Red Hat Enterprise Linux CoreOS 9.6.20250203-0 (Plow)", false) == "|9.6|9");
    CHECK(os("Debian GNU/Linux 12 (bookworm)", false) == "||");
    CHECK(rp::kernel_patch_version("4.18.0-305.40.2.el8_4.x86_64") == "4.18.0-305");
    CHECK(rp::kernel_patch_version("6.1.0") == "6.1.0");
    CHECK(rp::kernel_patch_version("6") == "6");
}

TEST_CASE("all faults of a resource at once, each with its place") {
    Diagnostics faults;
    (void)resources_of(
        "apiVersion: sro.openshift.io/v1beta1\nkind: SpecialResource\nmetadata: {name: Bad_Name}\nspec:\n  chart: "
        "{name: x, repository: {name: r}}\n"
        "  namespace: Upper\n  nodeselector: {}\n  managementState: manged\n  set: []\n  debug: 'yes'\n",
        faults);
    sort_and_merge(faults);
    std::string all;
    for (const auto& fault : faults) { all += std::to_string(fault.position->line) + " " + fault.code + "\n"; }
    CHECK(all ==
          "3 bad-value\n5 missing-field\n5 missing-field\n6 bad-value\n7 unknown-field\n8 bad-value\n9 wrong-type\n10 "
          "wrong-type\n");
}

TEST_CASE("a resource of v1beta1 without a chart is told of the form that has none") {
    Diagnostics faults;
    (void)resources_of("apiVersion: sro.openshift.io/v1beta1\nkind: SpecialResource\nmetadata: {name: a}\nspec:\n"
                       "  namespace: a\n  set: {b: c}\n",
                       faults);
    REQUIRE(!faults.empty());
    CHECK(faults[0].message == "required field spec.chart is missing");
    CHECK(faults[0].hint == "apiVersion sro.openshift.io/v1alpha1 is the form without a chart");
    CHECK(faults[0].position->to_string() == "cr.yaml:5:3");
}

TEST_CASE("facts that nobody gave are errors that name them") {
    Case one;
    one.facts.cluster_version.reset();
    one.files = {{"templates/1000-a.yaml", config_map("a", "{v: '{{ .Values.clusterVersion }}'}")}};
    const Error error = error_of([&] { (void)one.text(); });
    CHECK(error.code() == "unknown-fact");
    CHECK(has(error.message(), "clusterVersion is not known"));
    one.files = {{"templates/1000-a.yaml", "{{ toYaml .Values }}"}};
    CHECK(error_of([&] { (void)one.text(); }).code() == "unknown-fact");
    one.files = {{"templates/1000-a.yaml", config_map("a")}};
    CHECK(has(one.text(), "kind: ConfigMap"));
    one.facts.kernels.clear();
    CHECK(error_of([&] { (void)one.text(); }).code() == "no-kernels");
    one.facts = two_kernels();
    one.resource = cr("  nodeSelector: {disk: slow}\n");
    CHECK(has(error_of([&] { (void)one.text(); }).message(), "selects none of 2 nodes"));
}

TEST_CASE("set is expanded for each kernel") {
    Case one;
    one.resource = cr("  set: {tag: 'v{{ .Values.kernelFullVersion }}'}\n");
    one.files = {{"templates/1000-a.yaml",
                  daemon_set(k_affine, "      initContainers: [{name: t, image: 'x:{{ .Values.tag }}'}]\n")}};
    CHECK(count(one.text(), "x:v4.18") == 1);
    CHECK(count(one.text(), "x:v5.14") == 1);
    CHECK(found(one.render().findings, "sro-differs"));
    one.compat = true;
    CHECK(count(one.text(), "x:v4.18") == 2);
}

TEST_CASE("a kernel with a plus sign is selected by the label that nodes have") {
    Case one;
    one.facts = one_kernel();
    one.facts.kernels[0].kernel = "5.14.0-427.el9_4.x86_64+rt";
    one.files = {{"templates/1000-a.yaml", daemon_set(k_affine)}};
    CHECK(has(one.text(), "kernel-version.full: 5.14.0-427.el9_4.x86_64_rt"));
    one.compat = true;
    CHECK(has(one.text(), "kernel-version.full: 5.14.0-427.el9_4.x86_64+rt"));
}

TEST_CASE("builds are made for the vendor that needs one") {
    Case one;
    one.facts = one_kernel();
    one.files = {{"templates/1000-a.yaml",
                  "apiVersion: build.openshift.io/v1\nkind: BuildConfig\nmetadata:\n  name: b\n  annotations: "
                  "{specialresource.openshift.io/driver-container-vendor: acme}\n"}};
    CHECK_FALSE(has(one.text(), "BuildConfig"));
    one.facts.update_vendor = "acme";
    CHECK(has(one.text(), "BuildConfig"));
}

TEST_CASE("a copy has its own label app, whatever an expression of its selector asks for") {
    Case one;
    one.facts = one_kernel();
    std::string set = daemon_set(k_affine);
    const std::string given = "matchLabels: {app: ds}";
    set.replace(set.find(given), given.size(),
                "matchExpressions: [{key: app, operator: In, values: [ds]}, {key: tier, operator: DoesNotExist}]");
    one.files = {{"templates/1000-a.yaml", set}};
    CHECK(has(one.text(), "matchExpressions:\n    - key: tier\n      operator: DoesNotExist\n    matchLabels:"));
    CHECK_FALSE(has(one.text(), "key: app"));
    CHECK(found(one.render().findings, "sro-differs"));
    one.compat = true;
    CHECK(has(one.text(), "key: app"));
}

TEST_CASE("words of Mermaid are no names of nodes") {
    Diagnostics faults;
    const auto all = resources_of(alpha("end", "  dependsOn: [{name: graph-a}, {name: endless}]") +
                                      alpha("graph-a", "  {}") + alpha("endless", "  {}"),
                                  faults);
    REQUIRE(faults.empty());
    CHECK(rp::graph_text(all, {}, rp::GraphForm::mermaid) ==
          "graph BT\n  endless[\"endless\"]\n  _graph-a[\"graph-a\"]\n  _end[\"end\"]\n  _end --> _graph-a\n  _end --> "
          "endless\n");
    // What it takes for an arrow stands in no name of a node either.
    CHECK(rp::graph_text(resources_of(alpha("a--b-c", "  {}"), faults), {}, rp::GraphForm::mermaid) ==
          "graph BT\n  a__b_c[\"a--b-c\"]\n");
}

TEST_CASE("what a resource needs has the name of a resource") {
    for (const auto& name : {R"("a\"]; click a")", R"("a\e[2Jb")", "Upper", "under_score"}) {
        Diagnostics faults;
        static_cast<void>(resources_of(alpha("r", std::string("  dependsOn: [{name: ") + name + "}]"), faults));
        CHECK(found(faults, "bad-value"));
    }
    Diagnostics faults;
    static_cast<void>(resources_of(alpha("r", "  dependsOn: {name: [a, 'b c']}"), faults));
    REQUIRE(faults.size() == 1);
    CHECK(faults[0].message == "spec.dependsOn.name \"b c\" is not valid");
}

TEST_CASE("where there is no OpenShift, a Job builds what kaniko reads") {
    Diagnostics faults;
    const auto rendered = [&](const std::string& uri) {
        auto facts = one_kernel();
        facts.update_vendor = "kmod";
        const auto resources = resources_of(
            alpha("kmod", "  configuration: [{name: image, value: [registry.example.test/kmod]}]\n"
                          "  driverContainer: {source: {git: {uri: '" + uri + "'}}}"),
            faults);
        REQUIRE(faults.empty());
        return rp::render_recipes(
            resources, {}, [](const std::string&, const rp::ChartReference&) { return rp::built_in_recipe(); }, facts,
            {});
    };
    const auto secure = rendered("https://g.example.test/k.git"), plain = rendered("http://g.example.test:3000/k.git");
    CHECK(has(rp::recipe_text(secure), "--context=git://g.example.test/k.git"));
    CHECK_FALSE(has(rp::recipe_text(secure), "GIT_PULL_METHOD"));
    CHECK(has(rp::recipe_text(plain), "--context=git://g.example.test:3000/k.git"));
    CHECK(has(rp::recipe_text(plain), "name: GIT_PULL_METHOD\n          value: http\n"));
    CHECK_FALSE(found(plain.findings, "source-not-read"));
    for (const auto* uri : {"git@g.example.test:k.git", "ssh://git@g.example.test/k.git"}) {
        const auto none = rendered(uri);
        CHECK_FALSE(has(rp::recipe_text(none), "kind: Job"));
        CHECK(has(rp::recipe_text(none), "kind: DaemonSet"));
        CHECK(found(none.findings, "source-not-read"));
    }
}

TEST_CASE("paths of artifacts are one word for the shell that copies them") {
    Diagnostics faults;
    auto facts = one_kernel();
    facts.api_versions = {"image.openshift.io/v1"};
    const auto resources = resources_of(
        alpha("kmod", "  driverContainer: {artifacts: {images: [{name: 'i:1', paths: [{sourcePath: "
                      "'/my lib/a''s $x/.', destinationDir: /b}, {sourcePath: '/lib/*.ko', destinationDir: /c}]}]}}"),
        faults);
    REQUIRE(faults.empty());
    const std::string text = rp::recipe_text(rp::render_recipes(
        resources, {}, [](const std::string&, const rp::ChartReference&) { return rp::built_in_recipe(); }, facts, {}));
    CHECK(has(text, "cp -a '/my lib/a'\\''s $x/.' /artifacts/0-0/"));
    CHECK(has(text, "cp -a /lib/*.ko /artifacts/0-1/"));
}

TEST_CASE("v1alpha1 uses the built-in recipe") {
    Diagnostics faults;
    auto facts = two_kernels();
    facts.api_versions = {"build.openshift.io/v1", "image.openshift.io/v1", "security.openshift.io/v1"};
    facts.update_vendor = "ofed";
    const auto resources = resources_of(
        alpha("ofed",
              "  metadata: {namespace: net}\n  driverContainer: {source: {git: {ref: main, uri: "
              "'https://g.example.test/o.git'}}, buildArgs: [{name: A, value: '1'}]}") +
            alpha("lustre",
                  "  dependsOn: [{name: ofed, imageReference: 'true'}]\n  nodeSelector: {key: disk, values: [fast]}"),
        faults);
    REQUIRE(faults.empty());
    const auto chart = [](const std::string&, const rp::ChartReference&) { return rp::built_in_recipe(); };
    const std::string text = rp::recipe_text(rp::render_recipes(resources, {}, chart, facts, {}));
    CHECK(count(text, "kind: BuildConfig") == 2);
    CHECK(count(text, "kind: DaemonSet") == 3);  // lustre's nodes have one kernel
    CHECK(has(text, "name: system:image-puller-lustre\n  namespace: net"));
    CHECK(has(text, "name: A\n        value: \"1\""));
    CHECK(has(text, "image: image-registry.openshift-image-registry.svc:5000/net/ofed:4.18.0-305.40.2.el8_4.x86_64"));
    const auto missing = resources_of(alpha("lustre", "  dependsOn: [{name: ofed}]"), faults);
    CHECK(error_of([&] { (void)rp::render_recipes(missing, {}, chart, facts, {}); }).code() == "recipe-not-found");
}

TEST_CASE("a resource of v1beta1 as it was before charts is one of v1alpha1") {
    Diagnostics faults;
    auto facts = kernels_that_build("kmod");
    const auto resources = resources_of(
        "apiVersion: sro.openshift.io/v1beta1\nkind: SpecialResource\nmetadata: {name: kmod}\nspec:\n"
        "  namespace: mods\n  environment: [{key: mig, value: none}]\n  configuration: [{name: NAMES, value: [a, b]}]\n"
        "  driverContainer:\n    source: {git: {ref: master, uri: 'https://g.example.test/k.git'}}\n"
        "    buildArgs: [{name: KVER, value: '{{.KernelFullVersion}}'}, {name: OS, value: "
        "'{{.OperatingSystemDecimal}}'}]\n"
        "    artifacts: {images: [{name: i:1, kind: ImageStreamTag, namespace: x, pullsecret: p, path: [{sourcePath: "
        "/a, destinationDir: /b}]}]}\n"
        "  node: {selector: disk.present}\n  dependsOn: {name: [base]}\n---\n" +
            alpha("base", "  dependsOn: [{name: root, namespace: root}]") + alpha("root", "  {}"),
        faults);
    REQUIRE(faults.empty());
    CHECK(resources[0].is_built_in());
    CHECK(resources[0].name_space == "mods");
    CHECK(resources[0].node_selector == std::map<std::string, std::string>{{"disk.present", "true"}});
    CHECK(rp::apply_order(resources, {"kmod"}) == std::vector<std::string>{"root", "base", "kmod"});
    for (auto& node : facts.kernels) node.labels["disk.present"] = "true";
    const auto chart = [](const std::string&, const rp::ChartReference&) { return rp::built_in_recipe(); };
    const std::string text = rp::recipe_text(rp::render_recipes(resources, {"kmod"}, chart, facts, {}));
    CHECK(has(text, "NAMES: a b"));
    CHECK(has(text, "mig: none"));
    CHECK(count(text, "kind: BuildConfig") == 2);
    CHECK(has(text, "- name: p"));
    CHECK(has(text, "mountPath: /b"));
    CHECK_FALSE(has(text, "{{"));
    CHECK(has(text, "value: \"8.4\""));
}

TEST_CASE("texts of a resource without a chart are expanded for each kernel") {
    Diagnostics faults;
    auto facts = kernels_that_build("kmod");
    const auto resources = resources_of(
        alpha("kmod", "  driverContainer:\n    source: {git: {ref: 'v{{.OperatingSystemDecimal}}', uri: "
                      "'https://g.example.test/k.git'}}\n    buildArgs:\n    - {name: A, value: '{{.KernelVersion}}'}\n"
                      "    - {name: B, value: '{{.Values.kernelFullVersion}}'}\n    - {name: C, value: "
                      "'{{.RuntimeArchitecture}}'}\n    runArgs: [{name: D, value: '{{.KernelVersion}}'}]"),
        faults);
    REQUIRE(faults.empty());
    const auto chart = [](const std::string&, const rp::ChartReference&) { return rp::built_in_recipe(); };
    const auto rendered = rp::render_recipes(resources, {}, chart, facts, {});
    const std::string text = rp::recipe_text(rendered);
    CHECK_FALSE(has(text, "{{"));
    CHECK_FALSE(found(rendered.findings, "missing-value"));
    CHECK(count(text, "name: A\n        value: 4.18.0-305.40.2.el8_4.x86_64") == 1);
    CHECK(count(text, "name: B\n        value: 4.18.0-305.40.2.el8_4.x86_64") == 1);
    CHECK(count(text, "name: C\n        value: amd64") == 2);
    CHECK(count(text, "name: D\n          value: 4.18.0-305.40.2.el8_4.x86_64") == 1);
    CHECK(has(text, "ref: v8.4"));
}

TEST_CASE("dependencies of any depth, in waves; a circle is named with its path") {
    Diagnostics faults;
    auto all = resources_of(alpha("a", "  dependsOn: [{name: b}, {name: c}, {name: b}]") +
                                alpha("b", "  dependsOn: [{name: d}]") +
                                alpha("c", "  dependsOn: [{name: d}]") + alpha("d", "  {}") + alpha("e", "  {}"),
                            faults);
    CHECK(rp::apply_order(all, {}) == std::vector<std::string>{"d", "b", "c", "a", "e"});
    CHECK(rp::apply_order(all, {"c"}) == std::vector<std::string>{"d", "c"});
    CHECK(rp::apply_waves(all, {}) == std::vector<std::vector<std::string>>{{"d", "e"}, {"b", "c"}, {"a"}});
    CHECK(count(rp::graph_text(all, {"a"}, rp::GraphForm::dot), "\"a\" -> \"b\";") == 1);
    const Error unknown = error_of([&] { (void)rp::apply_order(all, {"aa"}); });
    CHECK(unknown.exit() == Exit::not_found);
    CHECK(has(unknown.hint(), "did you mean"));
    all = resources_of(alpha("x", "  {}") + alpha("a", "  dependsOn: [{name: b}]") +
                           alpha("b", "  dependsOn: [{name: c}]") + alpha("c", "  dependsOn: [{name: a}]"),
                       faults);
    const Error cycle = error_of([&] { (void)rp::apply_order(all, {}); });
    CHECK(cycle.code() == "dependency-cycle");
    CHECK(has(cycle.message(), "a -> b -> c -> a"));
    CHECK(cycle.position()->line > 0);
}

TEST_CASE("facts are read, replaced member by member, and written again") {
    Diagnostics faults;
    const std::string text =
        "clusterVersion: 4.17.4\nkernels:\n- kernelFullVersion: k1\n  osImage: o\n  driverToolkit: {imageURL: i, "
        "kernelFullVersion: k1, rtKernelFullVersion: r, osVersion: '9.4'}\n";
    auto facts = rp::decode_facts(value::read_yaml(text, "f", faults).at(0), faults);
    REQUIRE(faults.empty());
    rp::set_fact(facts, "proxy.httpProxy=http://p");
    rp::set_fact(facts, "kernels=k1,k2");
    CHECK(facts.kernels.size() == 2);
    CHECK(facts.kernels[0].toolkit->image == "i");
    CHECK(error_of([&] { rp::set_fact(facts, "clusterversion=1"); }).hint() == "did you mean clusterVersion?");
    const auto again =
        rp::decode_facts(value::read_yaml(value::to_yaml(rp::facts_node(facts)), "g", faults).at(0), faults);
    CHECK(faults.empty());
    CHECK(value::to_yaml(rp::facts_node(again)) == value::to_yaml(rp::facts_node(facts)));
    (void)rp::decode_facts(value::read_yaml("clusterversion: x\nkernels: [{}]\n", "h", faults).at(0), faults);
    CHECK(faults.size() == 2);
    faults.clear();
    const std::string object = "apiVersion: v1\nkind: Node\nmetadata: {name: n}\n";
    (void)rp::decode_facts(value::read_yaml(object, "h", faults).at(0), faults);
    REQUIRE(faults.size() == 1);
    CHECK(faults[0].message == "expected facts of a cluster, found a document of kind Node");
}

TEST_CASE("facts on a kernel of a release have its version, also with large pages") {
    rp::Facts facts = one_kernel();
    facts.releases = {
        {"rel", "4.18.2", "dtk@10", "5.14.0-503.1.1.el9_5.aarch64", "5.14.0-503.1.1.el9_5.aarch64+rt", "9.5"}};
    for (const auto* variant : {"", "+64k", "+rt"}) {
        const auto next = rp::facts_on(facts, facts.releases[0].kernel + variant);
        CAPTURE(variant);
        CHECK(next.cluster_version == "4.18.2");
        CHECK(next.kernels.at(0).toolkit->image == "dtk@10");
    }
    CHECK(rp::facts_on(facts, "6.1.0").cluster_version == "4.17.4");
}

TEST_CASE("system and toolkit: what the node does not say is an error, and a fact of every kernel wins") {
    Case one;
    one.facts = one_kernel();
    one.facts.kernels[0].os_image = "Debian GNU/Linux 12 (bookworm)";
    one.facts.kernels[0].toolkit.reset();
    one.files = {{"templates/1000-a.yaml", config_map("a", "{}", k_affine)}};
    const auto unknown = error_of([&] { (void)one.render(); });
    CHECK(unknown.code() == "unknown-fact");
    CHECK(has(unknown.hint(), "osImage \"Debian GNU/Linux 12 (bookworm)\" does not say it"));
    rp::set_fact(one.facts, "osVersion=12");
    CHECK(has(one.text(), "name: a-" + rp::kernel_suffix("12", one.facts.kernels[0].kernel)));
    // a toolkit without an image is none
    one.files[0].data = config_map("a", "{from: \"{{ .Values.driverToolkitImage }}\"}");
    CHECK(has(error_of([&] { (void)one.render(); }).message(), "driverToolkit.imageURL"));
    rp::set_fact(one.facts, "driverToolkitImage=dtk@7");
    CHECK(has(one.text(), "from: dtk@7"));
    CHECK(has(value::to_yaml(rp::facts_node(one.facts)), "dtk@7"));
    one.facts = rp::facts_on(two_kernels(), "6.1.0");
    rp::set_fact(one.facts, "osVersion=9.7");
    CHECK(rp::facts_of(one.facts, one.facts.kernels[0]).toolkit->os_version == "9.7");
    one.facts = one_kernel();
    rp::set_fact(one.facts, "osVersion=9.7");
    one.files[0].data = config_map("a", "{os: \"{{ .Values.operatingSystemMajorMinor }}\"}");
    CHECK(has(one.text(), "os: rhel9.7"));
    one.facts = one_kernel();
    one.facts.cluster_version.reset();
    one.facts.kernels[0].os_image.clear();
    one.files[0].data = config_map("a", "{os: \"{{ .Values.clusterVersionMajorMinor }}\"}");
    CHECK(has(error_of([&] { (void)one.render(); }).hint(), "clusterVersion"));
}

TEST_CASE("text that a CI system would take for a command is printed as JSON") {
    Case one;
    one.facts = one_kernel();
    one.files = {{"templates/1000-a.yaml", config_map("a", "{k: \"x\\n::warning::y\", l: '##[group]'}")}};
    const std::string text = one.text();
    CHECK(has(text, R"("data":{"k":"x\n::warning::y","l":"##\u005bgroup]"})"));
    CHECK_FALSE(base::has_ci_command(text));
    CHECK_FALSE(base::has_ci_command(recipe::plan::recipe_json(one.render())));
}

TEST_CASE("facts of objects") {
    Diagnostics faults;
    const auto objects = value::read_yaml(
        "apiVersion: v1\nkind: Node\nmetadata: {name: a, labels: {disk: fast}}\nspec: {taints: [{key: "
        "node.kubernetes.io/unschedulable, effect: NoSchedule}]}\n"
        "status: {nodeInfo: {kernelVersion: k1, osImage: CoreOS 417.94.202410211619-0 (Plow)}}\n---\n"
        "apiVersion: v1\nkind: Node\nmetadata: {name: b}\nspec: {taints: [{key: master, effect: NoSchedule}]}\nstatus: "
        "{nodeInfo: {kernelVersion: k2}}\n---\n"
        "apiVersion: config.openshift.io/v1\nkind: ClusterVersion\nmetadata: {name: version}\nstatus: {history: "
        "[{state: Partial, version: 4.18.0}, {state: Completed, version: 4.17.4}]}\n---\n"
        "apiVersion: config.openshift.io/v1\nkind: Proxy\nmetadata: {name: cluster}\nspec: {httpProxy: p, noProxy: "
        "mine}\nstatus: {httpProxy: p, noProxy: 'mine,.svc'}\n---\n"
        "apiVersion: image.openshift.io/v1\nkind: ImageStream\nmetadata: {name: driver-toolkit, namespace: openshift}\n"
        "status: {tags: [{tag: latest, items: [{dockerImageReference: new}]}, {tag: 417.94.202410211619-0, items: "
        "[{dockerImageReference: dtk}]}]}\n---\n"
        "apiVersion: v1\nkind: Secret\nmetadata: {name: builder-dockercfg-1, namespace: demo}\n",
        "f", faults);
    REQUIRE(faults.empty());
    const auto facts = rp::observe_facts(objects, false);
    REQUIRE(facts.kernels.size() == 1);
    CHECK(facts.kernels[0].toolkit->image == "dtk");
    CHECK(facts.cluster_version == "4.17.4");
    CHECK(facts.proxy->no == "mine,.svc");
    CHECK(facts.push_secrets.at("demo") == "builder-dockercfg-1");
    const auto as_operator = rp::observe_facts(objects, true);
    CHECK(as_operator.kernels.empty());
    CHECK(as_operator.proxy->no == "mine");
}

TEST_CASE("on OKD the toolkit of the stream may be of another kernel: it is that of a release with the kernel") {
    const auto facts_with = [](const std::string& system, bool compat) {
        Diagnostics faults;
        const auto objects = value::read_yaml(
            "apiVersion: v1\nkind: Node\nmetadata: {name: a}\n"
            "status: {nodeInfo: {kernelVersion: 5.14.0-531.el9.x86_64, osImage: " + system +
                " 416.9.202411211032-0}}\n---\n"
            "apiVersion: image.openshift.io/v1\nkind: ImageStream\nmetadata: {name: driver-toolkit, namespace: "
            "openshift}\nstatus: {tags: [{tag: 416.9.202411211032-0, items: [{dockerImageReference: dtk}]}]}\n",
            "f", faults);
        REQUIRE(faults.empty());
        return rp::observe_facts(objects, compat);
    };
    CHECK(facts_with("Red Hat Enterprise Linux CoreOS", false).kernels[0].toolkit->image == "dtk");
    for (const std::string system : {"CentOS Stream CoreOS", "Fedora CoreOS"}) {
        CHECK(facts_with(system, true).kernels[0].toolkit->image == "dtk");
        auto facts = facts_with(system, false);
        CHECK_FALSE(facts.kernels[0].toolkit);
        Case one;
        one.files = {{"templates/0001-a.yaml", config_map("a", "{v: '{{ .Values.driverToolkitImage }}'}")}};
        one.facts.kernels = facts.kernels;
        const auto error = error_of([&] { static_cast<void>(one.render()); });
        CHECK(has(error.message(), "driverToolkit.imageURL of kernel 5.14.0-531.el9.x86_64 is not known"));
        CHECK(has(error.hint(), "OKD builds its toolkit and its system at different times"));
        facts.releases = {{"rel", "4.16.0-okd-scos.1", "dtk-of-release", "5.14.0-531.el9.x86_64", "", "9"}};
        rp::add_release_toolkits(facts);
        CHECK(facts.kernels[0].toolkit->image == "dtk-of-release");
    }
}

TEST_CASE("a kernel that was asked for by name is so in the printed facts, too") {
    Case one;
    one.resource = cr("  nodeSelector: {disk: fast}\n");
    one.files = {{"templates/0001-a.yaml", config_map("a", "{v: '{{ .Values.kernelFullVersion }}'}")}};
    one.facts.kernels.clear();
    rp::set_fact(one.facts, "kernels=6.1.0-1-amd64");
    const std::string direct = one.text();
    value::Document document;
    document.file = "facts.yaml";
    document.root = rp::facts_node(one.facts);
    Diagnostics faults;
    one.facts.kernels = rp::decode_facts(document, faults).kernels;
    REQUIRE(faults.empty());
    CHECK(one.text() == direct);
}

TEST_CASE("nodes that are away for a while count, those without Linux do not") {
    const auto kernels = [](const std::string& meta, const std::string& spec, const std::string& info, bool compat) {
        Diagnostics faults;
        const auto objects = value::read_yaml("{apiVersion: v1, kind: Node, metadata: {name: a" + meta + "}, spec: {" +
                                                  spec + "}, status: {nodeInfo: {kernelVersion: k1" + info + "}}}",
                                              "f", faults);
        REQUIRE(faults.empty());
        return rp::observe_facts(objects, compat).kernels.size();
    };
    for (const auto* key : {"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable",
                            "node.kubernetes.io/network-unavailable"}) {
        const std::string taints = std::string("taints: [{key: ") + key + ", effect: NoSchedule}]";
        CHECK(kernels("", taints, "", false) == 1);
        CHECK(kernels("", taints, "", true) == 0);
    }
    CHECK(kernels("", "taints: [{key: node.kubernetes.io/out-of-service, effect: NoExecute}]", "", false) == 0);
    CHECK(kernels(", labels: {kubernetes.io/os: windows}", "", "", false) == 0);
    CHECK(kernels("", "", ", operatingSystem: windows", false) == 0);
    CHECK(kernels("", "", ", operatingSystem: windows", true) == 1);
    CHECK(kernels(", labels: {kubernetes.io/os: linux}", "", ", operatingSystem: linux", false) == 1);
}
