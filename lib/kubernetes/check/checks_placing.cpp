// SPDX-License-Identifier: Apache-2.0
// Checks of what the target needs on each node: images, unchanged manifests, programs that can be installed.
#include <algorithm>
#include <functional>

#include "kubernetes/check/node_checks.hpp"
#include "kubernetes/cluster_checks/kubeadm_writes.hpp"
#include "kubernetes/finding/configuration.hpp"
#include "kubernetes/finding/node_findings.hpp"
#include "kubernetes/inventory/image_name.hpp"

namespace kmm::kubernetes {
namespace {

using value::Node;

Finding as_warning(Finding found) {
    if (found.outcome == Outcome::fail) {
        found.outcome = Outcome::warn;
    }
    return found;
}

/// A member of `upgrade`, nullptr with the reason appended to `unknown` if the node could not read it.
const Node* upgrade_fact(const std::string& name, const Node& facts, std::string_view member,
                         std::vector<std::string>& unknown) {
    const auto* found = facts.find_path({"upgrade", member});
    if (found != nullptr && !found->is_null()) {
        return found;
    }
    unknown.push_back(fmt::format("{} ({})", base::escape(name), unread(facts, fmt::format("upgrade.{}", member))));
    return nullptr;
}

/// "registry/kube-apiserver" and "v1.34.4" of "registry/kube-apiserver:v1.34.4@sha256:..."; both "" without a tag.
std::pair<std::string, std::string> name_and_tag(std::string image) {
    image = image.substr(0, image.find('@'));
    const auto colon = image.rfind(':');
    const auto slash = image.rfind('/');
    if (colon == std::string::npos || (slash != std::string::npos && colon < slash)) {
        return {};
    }
    return {image.substr(0, colon), image.substr(colon + 1)};
}

/// Where kubeadm takes the image of a component from, as "registry/etcd": kubeadm-config says so. Where that was not
/// read, from where the image that runs, `now`, is.
std::string source_of(const ImageSources& sources, const std::string& component, const std::string& now) {
    if (sources.repository.empty()) { return now; }
    const auto own = component == "etcd" ? sources.etcd : std::string();
    const auto colon = own.rfind(':'), slash = own.rfind('/');
    const bool has_tag = colon != std::string::npos && (slash == std::string::npos || colon > slash);
    const auto repository = has_tag ? own.substr(0, colon) : own;
    return fmt::format("{}/{}", repository.empty() ? sources.repository : repository, component);
}

/// Images of the static Pods of a control plane at the target, as kubeadm names them. Why one is not known is appended.
std::vector<std::string> wanted_images(const CheckInput& input, const std::string& name, const Node& facts,
                                       std::vector<std::string>& unknown) {
    std::vector<std::string> wanted;
    const auto* entry = input.catalogue.find(*input.target);
    const auto* manifests = facts.find("manifests");
    if (manifests == nullptr || !manifests->is_sequence()) {
        unknown.push_back(fmt::format("{} ({})", base::escape(name), unread(facts, "manifests")));
        return wanted;
    }
    const auto sources = configured_images(input.inventory);
    for (const auto& item : manifests->items()) {
        if (flag_of(item, {"expected"}) != true) {
            continue;
        }
        const auto component = item.get_string({"component"});
        const auto running = name_and_tag(text_of(item, {"image"})).first;
        const auto image = source_of(sources, component, running);
        std::string fresh = input.target->text();
        if (component == "etcd") {
            fresh = configured_etcd(input.inventory);
            if (fresh.empty()) {
                fresh = entry == nullptr ? std::string() : entry->etcd;
            }
            // kubeadm leaves an etcd that is not older alone.
            const auto fixed = fixed_etcd(input.inventory);
            const auto now = Version::of_image(text_of(item, {"image"})), then = fixed ? fixed : Version::parse(fresh);
            if (now && then && *then <= *now) {
                continue;
            }
        }
        if (image.empty() || fresh.empty()) {
            unknown.push_back(fmt::format("{} (the image of {})", base::escape(name), base::escape(component)));
        } else {
            wanted.push_back(fmt::format("{}:{}", image, fresh));
        }
    }
    return wanted;
}

bool holds(const Node& images, const std::string& image) {
    const auto wanted = full_image_name(image);
    return std::any_of(images.items().begin(), images.items().end(),
                       [&](const Node& one) { return full_image_name(one.text()) == wanted; });
}

Finding images_present(const CheckInput& input) {
    std::vector<std::string> unknown;
    auto found =
        each_node(input, "every control plane has the images of its static Pods",
                  [&](const std::string& name, const Node& facts) {
                      if (!is_control_plane_node(input, name)) {
                          return std::string();
                      }
                      const auto* images = upgrade_fact(name, facts, "images", unknown);
                      if (images == nullptr) {
                          return std::string();
                      }
                      std::vector<std::string> missing;
                      for (const auto& image : wanted_images(input, name, facts, unknown)) {
                          if (!holds(*images, image)) {
                              missing.push_back(base::escape(image));
                          }
                      }
                      return missing.empty() ? std::string() : fmt::format("lacks {}", base::join(missing, ", "));
                  });
    return as_warning(known_or_skipped(std::move(found), unknown));
}

Finding sandbox_image(const CheckInput& input) {
    const auto* entry = input.catalogue.find(*input.target);
    if (entry == nullptr || entry->pause.empty()) {
        return {Outcome::skip, fmt::format("the metadata does not say which pause image {} has", input.target->text())};
    }
    std::vector<std::string> unknown;
    auto found =
        each_node(input, "every runtime uses pause " + entry->pause, [&](const std::string& name, const Node& facts) {
            const auto* fact = upgrade_fact(name, facts, "sandboxImage", unknown);
            if (fact == nullptr) {
                return std::string();
            }
            const auto [image, tag] = name_and_tag(fact->text());
            if (tag != entry->pause) {
                return fmt::format("uses {}, expected pause {}", base::escape(fact->text()), entry->pause);
            }
            const auto* images = upgrade_fact(name, facts, "images", unknown);
            if (images == nullptr) {
                return std::string();
            }
            const auto wanted = image + ":" + tag;
            return holds(*images, wanted) ? std::string()
                                          : fmt::format("its image {} is not on the node", base::escape(wanted));
        });
    return as_warning(known_or_skipped(std::move(found), unknown));
}

Finding manifest_drift(const CheckInput& input) {
    constexpr std::size_t k_lines = 4;
    std::vector<std::string> unknown;
    auto found =
        each_node(input, "the manifests of every control plane are as kubeadm writes them",
                  [&](const std::string& name, const Node& facts) {
                      if (!is_control_plane_node(input, name)) {
                          return std::string();
                      }
                      const auto* drift = upgrade_fact(name, facts, "manifestDrift", unknown);
                      if (drift == nullptr) {
                          return std::string();
                      }
                      std::vector<std::string> parts;
                      for (const auto& item : drift->items()) {
                          auto lines = texts_of(item, {"lines"});
                          const auto* count = item.find("count");
                          const auto all = static_cast<std::size_t>(count == nullptr ? 0 : count->as_int().value_or(0));
                          lines.resize(std::min(lines.size(), k_lines));
                          parts.push_back(fmt::format(
                              "{} ({}{})", base::escape(item.get_string({"component"})), base::join(lines, ", "),
                              all > lines.size() ? fmt::format(" and {} more lines", all - lines.size()) : ""));
                      }
                      return base::join(parts, ", ");
                  });
    found = known_or_skipped(std::move(found), unknown);
    if (found.outcome == Outcome::fail) { return found; }
    // What kubeadm of the running version writes is known of every control plane: a later one only has other rules.
    if (found.outcome == Outcome::ok) {
        auto reordered = kubeadm_reorders(input);
        return reordered.outcome == Outcome::fail ? reordered : found;
    }
    // A node without a kubeadm of its minor does not know what differs.
    auto written = kubeadm_writes(input);
    return written.outcome == Outcome::fail ? written : found;
}

/// Asks `problem` of each program that is to be installed on each node. `way`: that the check is about.
Finding each_program(const CheckInput& input, std::string_view way, std::string fine,
                     const std::function<std::string(const Node& trial, std::string& unknown)>& problem) {
    if (input.way.empty()) {
        return {Outcome::skip, fmt::format("needs --switch {}: how programs get onto nodes", way)};
    }
    if (input.way != way) {
        return {Outcome::skip, fmt::format("--switch {} uses none", input.way)};
    }
    std::vector<std::string> unknown;
    auto found = each_node(input, std::move(fine), [&](const std::string& name, const Node& facts) {
        const auto* trials = upgrade_fact(name, facts, "placing", unknown);
        if (trials == nullptr) {
            return std::string();
        }
        std::vector<std::string> problems;
        for (const auto& trial : trials->items()) {
            std::string reason;
            if (auto text = problem(trial, reason); !text.empty()) {
                problems.push_back(std::move(text));
            }
            if (!reason.empty()) {
                unknown.push_back(fmt::format("{} {} on {} ({})", base::escape(trial.get_string({"program"})),
                                              base::escape(trial.get_string({"version"})), base::escape(name), reason));
            }
        }
        return base::join(problems, ", ");
    });
    return known_or_skipped(std::move(found), unknown);
}

bool has_no_manager(const Node& trial) { return trial.get_string({"code"}) == "command-not-found"; }

Finding package_repo(const CheckInput& input) {
    return each_program(input, "packages", "package sources of every node have the versions of the next step",
                        [](const Node& trial, std::string& unknown) {
                            if (has_no_manager(trial)) {
                                return base::escape(trial.get_string({"problem"}));
                            }
                            const auto is_available = flag_of(trial, {"available"});
                            if (!is_available) {
                                unknown = "its package manager was not asked";
                            }
                            return is_available == false ? fmt::format("no package source has {} {}",
                                                                       base::escape(trial.get_string({"program"})),
                                                                       base::escape(trial.get_string({"version"})))
                                                         : std::string();
                        });
}

Finding package_simulate(const CheckInput& input) {
    return each_program(input, "packages", "installing the packages changes nothing else",
                        [](const Node& trial, std::string& unknown) {
                            if (flag_of(trial, {"available"}) != true) {
                                unknown = "see package-repo";
                            } else if (flag_of(trial, {"tried"}) != true) {
                                unknown = "only apt-get can be simulated";
                            } else {
                                return base::escape(trial.get_string({"problem"}));
                            }
                            return std::string();
                        });
}

Finding binaries_digest(const CheckInput& input) {
    return each_program(input, "binaries", "the binaries have their digests and versions",
                        [](const Node& trial, std::string& unknown) {
                            if (flag_of(trial, {"digest"}) == false) {
                                unknown = "no file of its digest is beside it";
                            }
                            return base::escape(trial.get_string({"problem"}));
                        });
}

Finding kubeadm_preflight(const CheckInput& input) {
    if (input.way.empty() || input.way == "command") {
        return {Outcome::skip, "needs --switch binaries or packages: which kubeadm it is"};
    }
    std::vector<std::string> unknown, warnings;
    auto found = each_node(input, "the preflight of kubeadm finds nothing on any control plane",
                           [&](const std::string& name, const Node& facts) {
                               if (!is_control_plane_node(input, name)) {
                                   return std::string();
                               }
                               const auto* preflight = upgrade_fact(name, facts, "preflight", unknown);
                               if (preflight == nullptr) {
                                   return std::string();
                               }
                               if (const auto mild = texts_of(*preflight, {"warnings"}); !mild.empty()) {
                                   warnings.push_back(
                                       fmt::format("{}: {}", base::escape(name), base::join(mild, ", ")));
                               }
                               return base::join(texts_of(*preflight, {"errors"}), ", ");
                           });
    if (found.outcome == Outcome::ok && !warnings.empty()) {
        return {Outcome::warn, name_some(warnings)};
    }
    return known_or_skipped(std::move(found), unknown);
}

constexpr CheckRow k_placing_rows[] = {
    {"images-present", images_present}, {"sandbox-image", sandbox_image},       {"manifest-drift", manifest_drift},
    {"package-repo", package_repo},     {"package-simulate", package_simulate}, {"binaries-digest", binaries_digest},
    {"kubeadm-preflight", kubeadm_preflight},
};

}  // namespace

std::span<const CheckRow> placing_checks() noexcept { return k_placing_rows; }

}  // namespace kmm::kubernetes
