// SPDX-License-Identifier: Apache-2.0
// A repository in a directory, as GitOps tools read one.
#pragma once

#include <fstream>
#include <functional>
#include <string>
#include <string_view>

#include "cluster/folder/documents.hpp"
#include "sys/directory.hpp"
#include "sys/temp_dir.hpp"

namespace kmm::repository_case {

/// A repository in a directory whose own path has names that are in paths of its objects, too.
struct Repository {
    sys::TempDir top{"kmm-gitops"};
    std::string dir = top.path() + "/apps/repo";
    api::Objects objects;
    Diagnostics diagnostics;

    void put(const std::string& name, const std::string& text) const {
        const std::string path = dir + "/" + name;
        sys::make_directories(sys::parent_of(path), 0755);
        std::ofstream(path) << text;
    }
    void put_module(const std::string& directory, const std::string& name, const std::string& ns = "") const {
        put(directory + "/" + name + ".yaml",
            "apiVersion: kmm.sigs.x-k8s.io/v1beta1\nkind: Module\nmetadata:\n  name: " + name +
                (ns.empty() ? "" : "\n  namespace: " + ns) + "\nspec: {selector: {}}\n");
    }
    void put_flux(const std::string& path, const std::string& given, const std::string& source = "") const {
        put("clusters/" + given + ".yaml",
            "apiVersion: kustomize.toolkit.fluxcd.io/v1\nkind: Kustomization\nmetadata: {name: a}\nspec:\n  path: " +
                path + "\n  targetNamespace: " + given + "\n" +
                (source.empty() ? "" : "  sourceRef: {kind: GitRepository, name: " + source + "}\n"));
    }
    void put_argo(const std::string& path, const std::string& given, const std::string& url = "") const {
        put("argo/" + given + ".yaml",
            "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: a}\nspec:\n  source: {path: " +
                path + (url.empty() ? "" : ", repoURL: " + url) + "}\n  destination: {namespace: " + given + "}\n");
    }
    std::string namespace_read(const std::string& name, const std::string& given = "", const std::string& below = "",
                               const std::function<bool(std::string_view)>& is_ignored = {}) {
        objects = {};
        diagnostics.clear();
        static_cast<void>(cluster::read_documents({dir + below}, objects, diagnostics, given, is_ignored));
        for (const auto& each : objects.modules) {
            if (each.meta.name == name) { return each.meta.namespace_; }
        }
        return "?";
    }
    [[nodiscard]] bool is_told(const std::string& code) const {
        for (const auto& each : diagnostics) {
            if (each.code == code) { return true; }
        }
        return false;
    }
};

}  // namespace kmm::repository_case
