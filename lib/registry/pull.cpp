// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/error.hpp"
#include "base/text.hpp"
#include "registry/blob.hpp"
#include "registry/extract.hpp"
#include "registry/puller.hpp"
#include "registry/resolve.hpp"

namespace kmm::registry {

namespace {

/// Everything that can be said about the layers before the first of them is fetched.
std::uint64_t check_layers(const ResolvedImage& image, const Limits& limits) {
    const auto& layers = image.manifest.layers;
    if (layers.empty()) {
        throw Error(Exit::data, "bad-manifest", "expected at least one layer with modules, found none");
    }
    if (layers.size() > limits.layers) {
        throw limit_error("the number of layers", "layers", limits.layers);
    }
    if (layers.size() != image.config.diff_ids.size()) {
        throw Error(Exit::data, "bad-manifest",
                    fmt::format("expected one diff id for each of {} layers, found {}", layers.size(),
                                image.config.diff_ids.size()));
    }
    std::uint64_t total = 0;
    for (const image::Descriptor& layer : layers) {
        static_cast<void>(image::layer_compression(layer));
        if (layer.size > limits.blob_bytes) {
            throw limit_error("the size of the layer " + layer.digest.short_text(), "blob_bytes", limits.blob_bytes);
        }
        total += layer.size;
        if (total > limits.image_bytes) {
            throw limit_error("the size of the image", "image_bytes", limits.image_bytes);
        }
    }
    return total;
}

void check_kernels(const PullRequest& request, const std::vector<std::string>& found,
                   const image::Reference& reference) {
    for (const std::string& kernel : request.kernels) {
        if (std::binary_search(found.begin(), found.end(), kernel)) {
            continue;
        }
        throw Error(Exit::not_found, "kernel-not-in-image",
                    fmt::format("expected the directory {}/lib/modules/{} in the image, found {}",
                                request.dir_name == "/" ? "" : request.dir_name, kernel,
                                found.empty() ? std::string("no kernel at all") : "other kernels"))
            .detail("image", reference.to_string())
            .detail("kernels", found.empty() ? "none" : base::escape(base::join(found, ", ")))
            .hint("build the image for this kernel, or correct the kernel mapping or dirName of the Module");
    }
    if (request.all_kernels && found.empty()) {
        throw Error(Exit::not_found, "kernel-not-in-image",
                    fmt::format("expected kernel directories below {}/lib/modules, found none", request.dir_name))
            .detail("image", reference.to_string());
    }
}

/// Images that are not in a registry are another transport: said clearly instead of being taken for a repository name.
void refuse_other_transports(const std::string& reference) {
    for (const char* prefix : {"oci:", "oci-archive:", "docker-archive:", "docker-daemon:", "containers-storage:"}) {
        if (reference.starts_with(prefix)) {
            throw Error(Exit::usage, "unsupported",
                        fmt::format("expected an image in a registry, found the transport \"{}\"", prefix))
                .hint("push the image to a registry that the node reaches, for example with skopeo copy");
        }
    }
}

}  // namespace

PullResult pull(const PullRequest& request, const std::string& out_dir, net::HttpClient& http, sys::Clock& clock) {
    refuse_other_transports(request.reference);
    const image::Reference reference = image::parse_reference(request.reference);
    LayerView view(wanted_from(request), request.limits);
    Staging staging(out_dir);
    Session session(http, clock, reference, request);
    PullResult result;
    result.reference = reference.to_string();
    std::vector<std::string> notes;

    const ResolvedImage image = with_context([&] { return "image " + result.reference; },
                                             [&] { return resolve_image(session, reference, request, notes); });
    result.digest = image.digest.to_string();
    result.index_digest = image.index_digest;

    const std::uint64_t total = check_layers(image, request.limits);
    std::set<std::string> warnings;
    InflateBudget budget;
    Extraction extraction{view, staging, budget, request.limits, warnings, [&] { session.check_deadline(); }};
    std::uint64_t done = 0;
    for (std::size_t i = 0; i < image.manifest.layers.size(); ++i) {
        const image::Descriptor& layer = image.manifest.layers[i];
        with_context(
            [&] {
                return fmt::format("image {}: layer {} of {} ({})", result.reference, i + 1,
                                   image.manifest.layers.size(), layer.digest.short_text());
            },
            [&] {
                staging.need_space(layer.size);
                const sys::Fd blob = staging.unnamed_file();
                FileTarget target(blob.get());
                fetch_blob(session, layer, target, notes, [&](std::uint64_t have) {
                    if (request.progress) {
                        request.progress(done + have, total);
                    }
                });
                extract_layer(blob.get(), layer, image.config.diff_ids[i], extraction);
            });
        done += layer.size;
    }
    result.bytes_downloaded = done;
    view.finish();
    result.kernels_found = view.kernels();
    check_kernels(request, result.kernels_found, reference);
    warnings.insert(view.warnings().begin(), view.warnings().end());
    warnings.insert(notes.begin(), notes.end());
    result.warnings.assign(warnings.begin(), warnings.end());
    result.files = staging.publish(view);
    return result;
}

}  // namespace kmm::registry
