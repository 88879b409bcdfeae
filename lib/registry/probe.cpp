// SPDX-License-Identifier: Apache-2.0
#include "registry/probe.hpp"

#include "base/error.hpp"
#include "base/text.hpp"
#include "image/reference.hpp"
#include "registry/local.hpp"
#include "registry/resolve.hpp"

namespace kmm::registry {

Probe probe(const PullRequest& request, net::HttpClient& http, sys::Clock& clock) {
    Probe result;
    result.reference = request.reference;
    std::vector<std::string> notes;
    const auto context = [&] { return "image " + base::escape(result.reference); };
    const auto store = with_context(context, [&]() -> std::unique_ptr<ImageStore> {
        if (const auto local = parse_local_reference(request.reference)) {
            if (local->transport == Transport::directory) return nullptr;
            return open_local(*local, request.limits, [] {});
        }
        const image::Reference reference = image::parse_reference(request.reference);
        result.reference = reference.to_string();
        return open_registry(reference, request, http, clock, notes);
    });
    if (!store) return result;
    const ResolvedImage image = with_context(context, [&] { return resolve_image(*store, request, notes); });
    result.manifest = store->identity().value_or(image.digest).to_string();
    result.digest = image.index_digest.empty() ? result.manifest : image.index_digest;
    for (const auto& layer : image.manifest.layers) result.bytes += layer.size;
    return result;
}

}  // namespace kmm::registry
