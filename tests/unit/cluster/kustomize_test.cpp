// SPDX-License-Identifier: Apache-2.0
// Which files say something of a kustomization, and which objects it is said of.
#include <doctest/doctest.h>

#include <string>
#include <string_view>

#include <fmt/format.h>

#include "unit/cluster/repository_case.hpp"

using namespace kmm;
using repository_case::Repository;

namespace {

/// The hint of the finding with that code; "" for none.
std::string hint_of(const Repository& repository, std::string_view code) {
    for (const auto& each : repository.diagnostics) {
        if (each.code == code) { return each.hint; }
    }
    return "";
}

void put_overlays(const Repository& repository, const std::string& said = "") {
    repository.put_module("base", "a", said);
    repository.put("base/kustomization.yaml", "resources: [a.yaml]\n");
    repository.put("overlays/dev/kustomization.yaml", "resources: [../../base]\nnamespace: dev\n");
    repository.put("overlays/prod/kustomization.yaml", "resources: [../../base]\nnamespace: prod\n");
}

}  // namespace

TEST_SUITE("cluster::unit") {
    TEST_CASE("a kustomization that is ignored says nothing") {
        Repository repository;
        put_overlays(repository);
        const auto is_dev = [](std::string_view path) { return path.starts_with("overlays/dev"); };
        CHECK(repository.namespace_read("a", "", "", is_dev) == "prod");
        repository.put("overlays/prod/kustomization.yaml",
                       "resources: [../../base]\nnamespace: prod\nnamePrefix: x-\n");
        CHECK(repository.namespace_read("a", "", "", is_dev) == "prod");
        CHECK(repository.is_told("kustomize-not-built"));
        const auto is_any = [](std::string_view path) { return path.ends_with("kustomization.yaml"); };
        CHECK(repository.namespace_read("a", "given", "", is_any) == "given");
        CHECK_FALSE(repository.is_told("kustomize-not-built"));
        SUBCASE("by its name without an ending, too") {
            repository.put_module("more", "b");
            repository.put("more/Kustomization", "resources: [b.yaml]\nnamespace: more\n");
            CHECK(repository.namespace_read("b") == "more");
            CHECK(repository.namespace_read("b", "given", "", [](std::string_view path) {
                return path == "more/Kustomization";
            }) == "given");
        }
        SUBCASE("nor does a chart, an Application or a reference") {
            repository.put("chart/Chart.yaml", "name: x\n");
            repository.put("chart/values.yaml", "kind: Node\napiVersion: v1\nmetadata: {name: n}\n");
            static_cast<void>(repository.namespace_read("a", "given"));
            CHECK(repository.objects.nodes.empty());
            static_cast<void>(repository.namespace_read(
                "a", "given", "", [](std::string_view path) { return path == "chart/Chart.yaml"; }));
            CHECK(repository.objects.nodes.size() == 1);
        }
    }

    TEST_CASE("two overlays with different namespaces give an object without one none") {
        Repository repository;
        put_overlays(repository);
        CHECK(repository.namespace_read("a") == "");
        CHECK(has_errors(repository.diagnostics));
        CHECK(hint_of(repository, "missing-field") ==
              fmt::format("{0}/overlays/dev/kustomization.yaml gives dev, {0}/overlays/prod/kustomization.yaml gives "
                          "prod: write one of them into the document, or give -n NAMESPACE",
                          repository.dir));
        CHECK(repository.namespace_read("a", "given") == "given");
        SUBCASE("that it has, it keeps, and both are said to change it") {
            put_overlays(repository, "said");
            CHECK(repository.namespace_read("a") == "said");
            CHECK(repository.is_told("kustomize-not-built"));
        }
        SUBCASE("equal ones, and one that is nearer, do") {
            repository.put("overlays/dev/kustomization.yaml", "resources: [../../base]\nnamespace: prod\n");
            CHECK(repository.namespace_read("a") == "prod");
            put_overlays(repository);
            repository.put("base/kustomization.yaml", "resources: [a.yaml]\nnamespace: base\n");
            CHECK(repository.namespace_read("a") == "base");
        }
    }

    TEST_CASE("only objects of KMM are changed objects of KMM") {
        Repository repository;
        repository.put("webhook/kustomization.yaml", "resources: [hook.yaml]\npatches: [{path: patch.yaml}]\n");
        repository.put("webhook/patch.yaml", "kind: ValidatingWebhookConfiguration\n");
        repository.put("webhook/hook.yaml",
                       "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingWebhookConfiguration\n"
                       "metadata: {name: a}\nwebhooks:\n- rules:\n  - apiGroups: [kmm.sigs.x-k8s.io]\n");
        static_cast<void>(repository.namespace_read("a"));
        CHECK_FALSE(repository.is_told("kustomize-not-built"));
        for (const std::string version : {"kmm.sigs.x-k8s.io/v1beta1", "'hub.kmm.sigs.x-k8s.io/v1beta1'"}) {
            repository.put("webhook/hook.yaml",
                           "apiVersion: " + version + "\nkind: Module\nmetadata: {name: a, namespace: b}\n");
            static_cast<void>(repository.namespace_read("a"));
            CHECK(repository.is_told("kustomize-not-built"));
        }
    }

    TEST_CASE("a kustomization without an ending is named as its neighbours are") {
        const Repository repository;
        repository.put_module("a", "a", "said");
        repository.put("a/Kustomization", "resources: [a.yaml]\nnamePrefix: x-\n");
        api::Objects objects;
        Diagnostics diagnostics;
        static_cast<void>(cluster::read_documents({repository.dir + "/a/../a"}, objects, diagnostics));
        REQUIRE(diagnostics.size() == 1);
        CHECK(diagnostics[0].position->file == repository.dir + "/a/../a/Kustomization");
    }

    TEST_CASE("a kustomization whose resources are not below the directory is said to be not built") {
        Repository repository;
        put_overlays(repository);
        static_cast<void>(repository.namespace_read("a", "", "/overlays/prod"));
        CHECK(hint_of(repository, "kustomize-not-built") ==
              "kubectl kustomize " + repository.dir + "/overlays/prod | kmm-plan validate -f -");
        SUBCASE("far ones only with a patch of KMM") {
            const std::string far = "resources: ['https://git.example/a//b?ref=c']\n";
            repository.put("far/kustomization.yaml", far + "patches: [{path: patch.yaml}]\n");
            repository.put("far/patch.yaml", "apiVersion: apps/v1\nkind: Deployment\n");
            static_cast<void>(repository.namespace_read("a", "", "/far"));
            CHECK_FALSE(repository.is_told("kustomize-not-built"));
            repository.put("far/patch.yaml", "apiVersion: kmm.sigs.x-k8s.io/v1beta1\nkind: Module\n");
            static_cast<void>(repository.namespace_read("a", "", "/far"));
            CHECK(repository.is_told("kustomize-not-built"));
            repository.put("far/kustomization.yaml",
                           far + "patches:\n- target: {kind: Module, group: kmm.sigs.x-k8s.io}\n  patch: x\n");
            static_cast<void>(repository.namespace_read("a", "", "/far"));
            CHECK(repository.is_told("kustomize-not-built"));
        }
    }

    TEST_CASE("a file that an Application leaves out gets nothing from it") {
        Repository repository;
        repository.put_module("kmm", "a");
        repository.put_module("kmm/more", "b");
        const auto namespace_of = [&](const std::string& name, const std::string& directory) {
            repository.put("apps/a.yaml",
                           "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: a}\nspec:\n"
                           "  source: {path: kmm, directory: {recurse: true, " + directory +
                               "}}\n  destination: {namespace: drivers}\n");
            return repository.namespace_read(name);
        };
        CHECK(namespace_of("a", "exclude: b.yaml") == "drivers");
        CHECK(namespace_of("a", "exclude: a.yaml") == "");
        CHECK(namespace_of("b", "exclude: '{x,*/b.yaml}'") == "");
        CHECK(namespace_of("b", "exclude: 'm*'") == "");  // * matches slashes, too
        CHECK(namespace_of("b", "exclude: 'more'") == "drivers");
        CHECK(namespace_of("b", "exclude: '[!a-c]*'") == "");
        CHECK(namespace_of("a", "exclude: '[!a-c]*'") == "drivers");
        CHECK(namespace_of("a", "include: 'more/*'") == "");
        CHECK(namespace_of("b", "include: 'more/*'") == "drivers");
        CHECK(namespace_of("b", "include: 'more/*', exclude: '*b*'") == "");
        CHECK(namespace_of("a", "exclude: '{a'") == "drivers");  // no pattern
    }

    TEST_CASE("different namespaces of two Applications are named") {
        Repository repository;
        repository.put_module("kmm", "a");
        repository.put_argo("kmm", "drivers");
        repository.put_argo("kmm", "test");
        CHECK(repository.namespace_read("a") == "");
        CHECK(hint_of(repository, "missing-field") ==
              fmt::format("{0}/argo/drivers.yaml gives drivers, {0}/argo/test.yaml gives test: write one of them into "
                          "the document, or give -n NAMESPACE",
                          repository.dir));
    }
}
