// SPDX-License-Identifier: Apache-2.0
// Which namespace objects of a repository get from GitOps tools and kustomize.
#include <doctest/doctest.h>

#include <filesystem>
#include <string>

#include "unit/cluster/repository_case.hpp"

using namespace kmm;
using repository_case::Repository;

TEST_SUITE("cluster::unit") {
    TEST_CASE("-n goes before what GitOps gives, and a kustomization before both") {
        Repository repository;
        repository.put_module("apps", "a");
        repository.put_argo("apps", "drivers");
        CHECK(repository.namespace_read("a") == "drivers");
        CHECK(repository.namespace_read("a", "given") == "given");
        repository.put("apps/kustomization.yaml", "resources: [a.yaml]\nnamespace: own\n");
        CHECK(repository.namespace_read("a", "given") == "own");
        CHECK(repository.namespace_read("a") == "own");
    }

    TEST_CASE("objects that name several repositories say nothing of this one") {
        Repository repository;
        repository.put_module("apps", "a");
        SUBCASE("Argo CD") {
            repository.put_argo("apps", "drivers", "https://git.example/site/repo.git");
            CHECK(repository.namespace_read("a") == "drivers");
            repository.put_argo("charts", "same", "git@git.example:site/repo");
            CHECK(repository.namespace_read("a") == "drivers");
            repository.put_argo("charts", "other", "https://git.example/site/another.git");
            CHECK(repository.namespace_read("a") == "");
        }
        SUBCASE("Flux") {
            repository.put_flux("apps", "drivers", "repo");
            repository.put_flux("charts", "same", "repo");
            CHECK(repository.namespace_read("a") == "drivers");
            repository.put_flux("charts", "other", "another");
            CHECK(repository.namespace_read("a") == "");
        }
    }

    TEST_CASE("targetNamespace of Flux goes before what kustomizations and objects say") {
        Repository repository;
        repository.put_module("apps", "a");
        repository.put("apps/kustomization.yaml", "resources: [a.yaml]\nnamespace: own\n");
        repository.put_flux("./apps", "drivers");
        CHECK(repository.namespace_read("a") == "drivers");
        CHECK_FALSE(repository.is_told("kustomize-not-built"));
        std::filesystem::remove(repository.dir + "/apps/kustomization.yaml");
        repository.put_module("apps", "a", "said");
        repository.put("apps/ns.yaml", "apiVersion: v1\nkind: Namespace\nmetadata: {name: said}\n");
        CHECK(repository.namespace_read("a") == "drivers");
        REQUIRE(repository.objects.namespaces.size() == 1);
        CHECK(repository.objects.namespaces[0].meta.name == "drivers");
        CHECK(repository.namespace_read("a", "given") == "said");
        CHECK_FALSE(repository.is_told("kustomize-not-built"));
    }

    TEST_CASE("a Kustomization of Flux without a path applies the whole repository") {
        Repository repository;
        repository.put_module("apps", "a");
        const auto put = [&](const std::string& name, const std::string& more) {
            repository.put("flux/" + name + ".yaml", "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\n"
                                                     "metadata: {name: a, namespace: flux-system}\nspec:\n" + more);
        };
        put("all", "  targetNamespace: drivers\n  sourceRef: {kind: GitRepository, name: repo}\n");
        // Nothing says that this is what is read.
        CHECK(repository.namespace_read("a") == "");
        put("some", "  path: clusters\n  sourceRef: {kind: GitRepository, name: other}\n");
        CHECK(repository.namespace_read("a") == "");
        put("some", "  path: clusters\n  sourceRef: {kind: GitRepository, name: repo}\n");
        CHECK(repository.namespace_read("a") == "drivers");
        for (const std::string kind : {"OCIRepository", "Bucket"}) {
            put("all", "  targetNamespace: drivers\n  sourceRef: {kind: " + kind + ", name: repo}\n");
            put("some", "  path: clusters\n  sourceRef: {kind: " + kind + ", name: repo}\n");
            CHECK(repository.namespace_read("a") == "");
        }
    }

    TEST_CASE("namespace of fleet.yaml moves objects and renames no Namespace") {
        Repository repository;
        repository.put_module("apps", "a", "said");
        repository.put("apps/ns.yaml", "apiVersion: v1\nkind: Namespace\nmetadata: {name: said}\n");
        repository.put("apps/fleet.yaml", "namespace: drivers\n");
        CHECK(repository.namespace_read("a") == "drivers");
        CHECK(repository.objects.namespaces.at(0).meta.name == "said");
        CHECK_FALSE(repository.is_told("kustomize-not-built"));
    }

    TEST_CASE("kustomize.namespace of Argo CD goes before destination and objects") {
        Repository repository;
        repository.put_module("apps", "a", "said");
        repository.put("argo.yaml", "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: a}\nspec:\n"
                                    "  source: {path: apps, repoURL: x, kustomize: {namespace: drivers}}\n"
                                    "  destination: {namespace: other}\n");
        CHECK(repository.namespace_read("a") == "drivers");
        CHECK_FALSE(repository.is_told("kustomize-not-built"));
    }

    TEST_CASE("a namespace counts however its key is written") {
        Repository repository;
        repository.put("apps/kustomization.yaml", "resources: [a.yaml]\nnamespace: drivers\n");
        for (const std::string line :
             {"namespace: said", "\"namespace\": said", "'namespace': said", "namespace : said", "namespace: &x said",
              "\"name\\u0073pace\": said", "? namespace\n  : said"}) {
            CAPTURE(line);
            repository.put("apps/a.yaml",
                           "apiVersion: kmm.sigs.x-k8s.io/v1beta1\nkind: Module\nmetadata:\n  name: a\n  " + line +
                               "\nspec: {selector: {}}\n");
            std::filesystem::remove_all(repository.dir + "/other");
            CHECK(repository.namespace_read("a") == "drivers");
            CHECK_FALSE(repository.is_told("kustomize-not-built"));
            // Of two overlays each makes a Module.
            repository.put("other/kustomization.yaml", "resources: [../apps/a.yaml]\nnamespace: drivers\n");
            CHECK(repository.namespace_read("a") == "said");
            CHECK(repository.is_told("kustomize-not-built"));
        }
    }

    TEST_CASE("a Namespace in a list that says its kind is renamed") {
        Repository repository;
        repository.put("apps/kustomization.yaml", "resources: [ns.yaml]\nnamespace: drivers\n");
        repository.put("apps/ns.yaml", "apiVersion: v1\nkind: NamespaceList\nitems:\n- metadata: {name: said}\n");
        static_cast<void>(repository.namespace_read("a"));
        REQUIRE(repository.objects.namespaces.size() == 1);
        CHECK(repository.objects.namespaces[0].meta.name == "drivers");
    }

    TEST_CASE("a Namespace that two overlays rename keeps its name, unless that is none") {
        Repository repository;
        repository.put_module("base", "a", "said");
        repository.put("base/kustomization.yaml", "resources: [a.yaml, ns.yaml]\n");
        repository.put("prod/kustomization.yaml", "resources: [../base]\nnamespace: prod\n");
        repository.put("stage/kustomization.yaml", "resources: [../base]\nnamespace: stage\n");
        const auto name_read = [&](const std::string& name) {
            repository.put("base/ns.yaml", "apiVersion: v1\nkind: Namespace\nmetadata: {name: " + name + "}\n");
            CHECK(repository.namespace_read("a") == "said");
            CHECK_FALSE(has_errors(repository.diagnostics));
            REQUIRE(repository.objects.namespaces.size() == 1);
            return repository.objects.namespaces[0].meta.name;
        };
        CHECK(name_read("said") == "said");
        CHECK(name_read("_") == "prod");
    }

    TEST_CASE("two Namespaces of one kustomization do not get one name") {
        Repository repository;
        const auto put = [&](const std::string& file, const std::string& name) {
            repository.put(file, "apiVersion: v1\nkind: Namespace\nmetadata: {name: " + name + "}\n");
        };
        put("a/ns.yaml", "a-ns");
        put("b/ns.yaml", "b-ns");
        repository.put("a/kustomization.yaml", "resources: [ns.yaml]\nnamespace: drivers\n");
        repository.put("b/kustomization.yaml", "resources: [ns.yaml]\nnamespace: drivers\n");
        static_cast<void>(repository.namespace_read("a"));
        CHECK_FALSE(repository.is_told("duplicate-object"));  // each of two overlays may have its own
        repository.put("kustomization.yaml", "resources: [a, b]\nnamespace: drivers\n");
        static_cast<void>(repository.namespace_read("a"));
        CHECK(repository.is_told("duplicate-object"));
    }

    TEST_CASE("a component that adds objects changes none, and one with patches or a namespace does") {
        Repository repository;
        repository.put_module("apps", "a");
        repository.put("apps/kustomization.yaml", "resources: [a.yaml]\ncomponents: [../extra]\n");
        repository.put("extra/kustomization.yaml", "kind: Component\nresources: [s.yaml]\ncomponents: [../more]\n");
        const auto is_told = [&](const std::string& more) {
            repository.put("more/kustomization.yaml", "kind: Component\n" + more);
            static_cast<void>(repository.namespace_read("a", "given"));
            return repository.is_told("kustomize-not-built");
        };
        CHECK_FALSE(is_told("labels: [{pairs: {a: b}}]\n"));
        CHECK(is_told("patches: [{patch: x}]\n"));
        CHECK(is_told("namespace: more\n"));
        repository.put("apps/kustomization.yaml",
                       "resources: [a.yaml]\ncomponents: [\"https://git.example/site/more?ref=v1\"]\n");
        CHECK(is_told(""));
    }

    TEST_CASE("images and labels of Flux and Argo CD change no Module") {
        Repository repository;
        repository.put_module("apps", "a");
        repository.put_flux("./apps", "drivers\n  images: [{name: x}]\n  commonMetadata: {labels: {a: b}}");
        CHECK(repository.namespace_read("a") == "drivers");
        CHECK_FALSE(repository.is_told("kustomize-not-built"));
    }
}
