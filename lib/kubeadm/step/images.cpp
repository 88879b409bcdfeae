// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "base/counted.hpp"
#include "base/error.hpp"
#include "base/last_lines.hpp"
#include "base/text.hpp"
#include "kubeadm/node/facts.hpp"
#include "kubeadm/node/manifests.hpp"
#include "kubeadm/step/steps.hpp"
#include "kubernetes/inventory/image_name.hpp"
#include "kubernetes/versions/config_api.hpp"
#include "sys/directory.hpp"
#include "value/writer.hpp"

namespace kmm::kubeadm {
namespace {

constexpr std::string_view k_default_repository = "registry.k8s.io";

/// imageRepository and imageTag of kubeadm's configuration.
value::Node image_members(std::string_view image) {
    const auto colon = image.rfind(':'), slash = image.rfind('/');
    const bool has_tag = colon != std::string_view::npos && (slash == std::string_view::npos || colon > slash);
    auto members = value::Node::mapping();
    if (const auto repository = image.substr(0, has_tag ? colon : image.size()); !repository.empty())
        members.set("imageRepository", std::string(repository));
    if (has_tag) members.set("imageTag", std::string(image.substr(colon + 1)));
    return members;
}

/// A configuration for kubeadm of the target that says what no option of it can; its path on the node.
std::string write_configuration(const Node& node, const ImageOptions& options, const std::string& repository,
                                bool is_etcd_elsewhere) {
    const std::string api(kubernetes::newest_config_api(options.target.line()).name);
    auto own = value::Node::mapping({{"apiVersion", api}, {"kind", "InitConfiguration"}});
    own.set("nodeRegistration", value::Node::mapping({{"criSocket", "unix://" + runtime_socket(node.place)}}));
    auto cluster = value::Node::mapping({{"apiVersion", api}, {"kind", "ClusterConfiguration"}});
    if (!repository.empty()) cluster.set("imageRepository", repository);
    if (!options.dns.empty()) cluster.set("dns", image_members(options.dns));
    // Where it is does not matter here: kubeadm has no image of it.
    if (is_etcd_elsewhere)
        cluster.set("etcd", value::Node::mapping({{"external", value::Node::mapping({{"endpoints",
            value::Node::strings({"http://127.0.0.1:2379"})}})}}));
    else if (!options.etcd.empty())
        cluster.set("etcd", value::Node::mapping({{"local", image_members(options.etcd)}}));
    cluster.set("kubernetesVersion", options.target.text());
    const auto path = fmt::format("{}/kubeadm-images-{}.yaml", k_state_directory, options.target.text());
    sys::make_directories(node.place.here(k_state_directory), 0700);
    place_file(node, path, value::to_json(own) + "\n---\n" + value::to_json(cluster) + "\n",
               {0600, ::geteuid(), ::getegid()});
    return path;
}

/// Options that say which images are meant.
std::vector<std::string> which_images(const Node& node, const ImageOptions& options) {
    if (!options.config.empty()) return {"--config", options.config};
    std::vector<std::string> words{"--kubernetes-version", options.target.text()};
    std::string repository = options.repository;
    const ManifestSet manifests = read_manifests(node.place);
    if (repository.empty()) {
        const std::string& image = manifests.find("kube-apiserver")->image;
        if (const std::size_t at = image.rfind("/kube-apiserver"); at != std::string::npos)
            repository = image.substr(0, at);
    }
    const bool is_etcd_elsewhere = manifests.control_plane && !manifests.find("etcd")->expected;
    if (is_etcd_elsewhere || !options.etcd.empty() || !options.dns.empty())
        return {"--config", write_configuration(node, options, repository, is_etcd_elsewhere)};
    if (!repository.empty() && repository != k_default_repository)
        words.insert(words.end(), {"--image-repository", repository});
    return words;
}

std::vector<std::string> wanted_images(const Node& node, const std::vector<std::string>& which) {
    std::vector<std::string> words{"kubeadm", "config", "images", "list"};
    words.insert(words.end(), which.begin(), which.end());
    const auto told = ask(node.place, words);
    if (told.exit_code != 0 || told.signal != 0) {
        throw Error(Exit::io, "command-failed",
                    fmt::format("{} failed: {}", base::join(words, " "), base::escape(base::last_line(told.err))));
    }
    std::vector<std::string> images;
    for (const std::string_view line : base::split(told.out, '\n')) {
        if (!base::trim(line).empty()) images.emplace_back(base::trim(line));
    }
    if (images.empty())
        throw Error(Exit::io, "command-failed", base::join(words, " ") + ": expected names of images, found none");
    return images;
}

std::vector<std::string> missing_of(const std::vector<std::string>& wanted, const std::vector<std::string>& present) {
    std::set<std::string> names;
    for (const std::string& image : present) names.insert(kubernetes::full_image_name(image));
    std::vector<std::string> missing;
    for (const std::string& image : wanted) {
        if (!names.contains(kubernetes::full_image_name(image))) missing.push_back(image);
    }
    return missing;
}

}  // namespace

StepResult pull_images(const Node& node, const ImageOptions& options) {
    StepResult result;
    result.step = "images";
    require_kubeadm(node, options.kubeadm, options.target, result);
    const auto which = which_images(node, options);
    const auto wanted = wanted_images(node, which);
    const bool fits = std::any_of(wanted.begin(), wanted.end(), [&](const std::string& image) {
        return image.find("/kube-apiserver:") != std::string::npos &&
               kubernetes::Version::of_image(image) == options.target;
    });
    if (!fits) {
        throw Error(Exit::checks_failed, "images-other",
                    fmt::format("expected the image of kube-apiserver {} among those that kubeadm names, found {}",
                                options.target.text(), base::join(wanted, ", ")))
            .hint(options.config.empty() ? "see kubeadm config images list"
                                         : "correct kubernetesVersion in " + options.config);
    }
    const bool can_prove = !node.place.find_program("crictl").empty();
    const std::string count =
        fmt::format("{} of {}", base::counted(wanted.size(), "image"), options.target.text());
    auto slot = node.image_slot();
    const nodejob::JobSpec spec{fmt::format("images {}", options.target.text()), {}};
    const bool is_running = slot.adopt(spec.key).has_value();
    if (!is_running && can_prove && missing_of(wanted, present_images(node.place)).empty()) {
        result.already = true;
        result.message = fmt::format("{} are present", count);
        return result;
    }
    nodejob::JobSpec job = spec;
    std::vector<std::string> words{"kubeadm", "config", "images", "pull"};
    words.insert(words.end(), which.begin(), which.end());
    if (which.front() != "--config")
        words.insert(words.end(), {"--cri-socket", "unix://" + runtime_socket(node.place)});
    job.commands.push_back({node.place.command(std::move(words)), {}, false});
    run_job(node, slot, job, result, [](const nodejob::JobView& failed, const std::string& output) {
        Error error(Exit::unavailable, "images-failed",
                    fmt::format("kubeadm config images pull failed: {}", how_it_ended(failed)));
        tell_output(error, output);
        return std::move(error)
            .hint("see whether this node reaches the registry, then run the same command again")
            .retryable();
    });
    if (!can_prove) {
        result.warnings.emplace_back(
            "images-not-proven: crictl is not on this node: that the images are there is kubeadm's word");
        result.message = fmt::format("kubeadm pulled {}", count);
        return result;
    }
    prove_job(node, slot, result, [&] {
        const auto missing = missing_of(wanted, present_images(node.place));
        if (missing.empty()) return;
        throw Error(Exit::unhealthy, "images-missing",
                    fmt::format("kubeadm reported success, but the container runtime does not have {}",
                                base::join(missing, ", ")))
            .hint("see whether the runtime removes images for lack of space");
    });
    result.message = fmt::format("{} are present", count);
    return result;
}

}  // namespace kmm::kubeadm
