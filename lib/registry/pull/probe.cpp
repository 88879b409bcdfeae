// SPDX-License-Identifier: Apache-2.0
#include "registry/pull/probe.hpp"

#include <optional>

#include "base/error.hpp"
#include "base/text.hpp"
#include "image/reference.hpp"
#include "registry/client/resolve.hpp"
#include "registry/client/signatures.hpp"
#include "registry/local/local.hpp"

namespace kmm::registry {

Probe probe(const PullRequest& request, net::HttpClient& http, sys::Clock& clock) {
    Probe result;
    result.reference = request.reference;
    std::vector<std::string> notes;
    const auto context = [&] { return "image " + base::escape(result.reference); };
    std::optional<image::Reference> name;
    const auto store = with_context(context, [&]() -> std::unique_ptr<ImageStore> {
        if (const auto local = parse_local_reference(request.reference)) {
            if (local->transport == Transport::directory) return nullptr;
            return open_local(*local, request, [] {});
        }
        name = image::parse_reference(request.reference);
        result.reference = name->to_string();
        return open_registry(*name, request, http, clock, notes);
    });
    if (!store) return result;
    const ResolvedImage image = with_context(context, [&] {
        ResolvedImage found = resolve_image(*store, request, notes);
        require_trust(*store, name, found.manifests, request, notes);
        return found;
    });
    result.manifest = store->identity().value_or(image.digest).to_string();
    result.digest = image.index_digest.empty() ? result.manifest : image.index_digest;
    for (const auto& layer : image.manifest.layers) result.bytes += layer.size;
    return result;
}

}  // namespace kmm::registry
