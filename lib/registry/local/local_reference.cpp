// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <sys/stat.h>

#include "base/error.hpp"
#include "base/number.hpp"
#include "base/text.hpp"
#include "registry/local/local.hpp"

namespace kmm::registry {

namespace {

struct TransportName {
    std::string_view prefix;
    Transport transport;
};

constexpr TransportName k_transports[] = {
    {"oci:", Transport::oci},
    {"oci-archive:", Transport::oci_archive},
    {"docker-archive:", Transport::docker_archive},
    {"dir:", Transport::directory},
};

}  // namespace

std::optional<LocalReference> parse_local_reference(std::string_view text) {
    for (const std::string_view prefix : {"docker-daemon:", "containers-storage:", "ostree:", "docker:"}) {
        if (text.starts_with(prefix)) {
            throw Error(
                Exit::usage, "unsupported",
                fmt::format(
                    "expected a registry, oci:, oci-archive:, docker-archive: or dir:, found the transport \"{}\"",
                    prefix))
                .hint(prefix == "docker:" ? "leave out \"docker://\""
                                          : "save the image as an archive first: skopeo copy IMAGE oci-archive:FILE");
        }
    }
    for (const TransportName& row : k_transports) {
        if (!text.starts_with(row.prefix)) {
            continue;
        }
        const auto bad = [&](const std::string& what) {
            return Error(Exit::data, "bad-reference", fmt::format("image reference {}: {}", base::escape(text), what));
        };
        LocalReference result;
        result.transport = row.transport;
        std::string_view rest = text.substr(row.prefix.size());
        if (row.transport != Transport::directory) {
            if (const std::size_t at = rest.find("@sha"); at != std::string_view::npos) {
                result.digest = image::parse_digest(rest.substr(at + 1));
                if (!result.digest) {
                    throw bad("expected a digest sha256:… or sha512:… in lower-case hexadecimal behind the \"@\"");
                }
                rest = rest.substr(0, at);
            }
            if (const std::size_t colon = rest.find(':'); colon != std::string_view::npos) {
                result.tag = std::string(rest.substr(colon + 1));
                if (result.tag.empty()) {
                    throw bad("expected a tag behind the colon");
                }
                if (result.tag.front() == '@') {  // as skopeo writes it
                    result.place = base::parse_number<std::size_t>(result.tag.substr(1));
                    if (!result.place) {
                        throw bad(fmt::format("expected the place of an image, :@0 or more, found \":{}\"",
                                              base::escape(result.tag)));
                    }
                    if (result.digest) {
                        throw bad("expected the place of an image or its digest, found both");
                    }
                    result.tag.clear();
                }
                rest = rest.substr(0, colon);
            }
        }
        result.path = std::string(rest);
        if (result.path.empty()) {
            throw bad(fmt::format("expected a path behind \"{}\"", row.prefix));
        }
        return result;
    }
    return std::nullopt;
}

std::unique_ptr<ImageStore> open_local(const LocalReference& reference, const PullRequest& request,
                                       const std::function<void()>& check_deadline) {
    std::unique_ptr<FileSet> files;
    try {
        files = reference.transport == Transport::oci
                    ? open_directory_files(reference.path)
                    : open_archive_files(reference.path, request.limits, check_deadline, request.parser);
    } catch (Error& error) {
        struct stat facts {};
        const bool there = ::stat(reference.path.c_str(), &facts) == 0;
        if (there && reference.transport == Transport::oci && S_ISREG(facts.st_mode)) {
            error.hint("a file is read with oci-archive:FILE or docker-archive:FILE");
        } else if (!there && !reference.tag.empty()) {
            error.hint(
                "the path ends at the first colon, and what is behind it is the tag: a path with a colon needs a "
                "link without one");
        }
        throw;
    }
    if (reference.transport == Transport::oci) {
        return open_layout(reference, std::move(files), request, check_deadline);
    }
    return reference.transport == Transport::oci_archive
               ? open_layout(reference, std::move(files), request, check_deadline)
               : open_docker_archive(reference, std::move(files), request, check_deadline);
}

}  // namespace kmm::registry
