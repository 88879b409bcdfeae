// SPDX-License-Identifier: Apache-2.0
// Small objects for the tests of this room.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "api/labels.hpp"
#include "plan/decide/verdict.hpp"
#include "plan/kmm/resolve.hpp"

namespace build {

inline kmm::api::KernelMapping literal(std::string text, std::string image = "") {
    kmm::api::KernelMapping mapping;
    mapping.literal = std::move(text);
    mapping.container_image = std::move(image);
    return mapping;
}

inline kmm::api::KernelMapping regexp(std::string text, std::string image = "") {
    kmm::api::KernelMapping mapping;
    mapping.regexp = std::move(text);
    mapping.container_image = std::move(image);
    return mapping;
}

/// drivers/kmm-hello, selector kmm=yes, one regexp for everything.
inline kmm::api::Module module(std::string version = "") {
    kmm::api::Module result;
    result.meta.name = "kmm-hello";
    result.meta.namespace_ = "drivers";
    result.selector = {{"kmm", "yes"}};
    result.module_loader.emplace();
    auto& container = result.module_loader->container;
    container.version = version;
    container.container_image =
        "registry.example/kmm-hello:" + (version.empty() ? "x" : version) + "-${KERNEL_FULL_VERSION}";
    container.modprobe.module_name = "kmm_hello";
    container.kernel_mappings = {regexp("^.+$")};
    return result;
}

/// node-a, labelled kmm=yes, boot id b1.
inline kmm::api::Node node(std::string kernel = "6.1.0-56-amd64") {
    kmm::api::Node result;
    result.meta.name = "node-a";
    result.meta.labels = {{"kmm", "yes"}};
    result.kernel_version = std::move(kernel);
    result.boot_id = "b1";
    result.architecture = "amd64";
    return result;
}

inline void set_labels(kmm::api::Node& target, const std::string& m, const std::string& w, const std::string& s) {
    using namespace kmm::api;
    const std::pair<std::string, std::string> labels[] = {{label_version_module("drivers", "kmm-hello"), m},
                                                          {label_version_worker_pod("drivers", "kmm-hello"), w},
                                                          {label_version_schedule_pod("drivers", "kmm-hello"), s}};
    for (const auto& [key, text] : labels) {
        if (!text.empty()) { target.meta.labels[key] = text; }
    }
}

/// What KMM would have written for `source` on `target` earlier: in spec and status.
inline kmm::api::NodeModulesConfig loaded(const kmm::api::Module& source, const kmm::api::Node& target) {
    const auto resolution = kmm::plan::resolve(source, target.kernel_version);
    kmm::api::NodeModule entry;
    entry.name = source.meta.name;
    entry.namespace_ = source.meta.namespace_;
    entry.config = std::get<kmm::plan::Resolved>(resolution).config;
    entry.service_account_name = "default";
    entry.version = source.module_loader->container.version;
    kmm::api::NodeModulesConfig config;
    config.meta.name = target.meta.name;
    config.spec = {entry};
    entry.boot_id = target.boot_id;
    config.status = {entry};
    return config;
}

}  // namespace build
