// SPDX-License-Identifier: Apache-2.0
// A repository of a registry as the place where an image goes (distribution-spec, "Push").
#pragma once

#include <memory>
#include <string>

#include "image/reference.hpp"
#include "net/http.hpp"
#include "registry/client/request.hpp"
#include "registry/local/image_sink.hpp"
#include "sys/clock.hpp"

namespace kmm::registry {

/// Refuses what nothing can be written to, before any work is done. Errors: data "bad-reference"; usage "usage" for a
/// reference by digest, "unsupported" for another transport than "oci:" and "oci-archive:".
void check_destination(const std::string& to);

/// The repository and tag of `reference`. `request` says how to get there (credentials, TLS, deadline, tries);
/// `mount_from` is a repository of the same registry whose blobs may be taken over, "" for none.
[[nodiscard]] std::unique_ptr<ImageSink> open_registry_sink(const image::Reference& reference,
                                                            const PullRequest& request, const std::string& mount_from,
                                                            net::HttpClient& http, sys::Clock& clock);

}  // namespace kmm::registry
