// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/last_lines.hpp"
#include "base/text.hpp"
#include "kubeadm/facts.hpp"
#include "kubeadm/manifests.hpp"
#include "kubeadm/steps.hpp"

namespace kmm::kubeadm {
namespace {

constexpr std::string_view k_default_repository = "registry.k8s.io";

/// Options that say which images are meant.
std::vector<std::string> which_images(const Node& node, const ImageOptions& options) {
    if (!options.config.empty()) return {"--config", options.config};
    std::vector<std::string> words{"--kubernetes-version", options.target.text()};
    std::string repository = options.repository;
    if (repository.empty()) {
        const ManifestSet manifests = read_manifests(node.place);
        const std::string& image = manifests.find("kube-apiserver")->image;
        if (const std::size_t at = image.rfind("/kube-apiserver"); at != std::string::npos)
            repository = image.substr(0, at);
    }
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
    std::vector<std::string> missing;
    for (const std::string& image : wanted) {
        if (!std::binary_search(present.begin(), present.end(), image)) missing.push_back(image);
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
        fmt::format("{} image{} of {}", wanted.size(), wanted.size() == 1 ? "" : "s", options.target.text());
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
    if (options.config.empty()) words.insert(words.end(), {"--cri-socket", "unix://" + runtime_socket(node.place)});
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
