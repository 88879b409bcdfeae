// SPDX-License-Identifier: Apache-2.0
// Images without a registry: OCI layouts, archives, and directories of modules.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "registry/client/store.hpp"
#include "registry/layer/entry_reader.hpp"
#include "registry/layer/path_rules.hpp"
#include "registry/layer/source.hpp"
#include "sandbox/confined.hpp"

namespace kmm::registry {

enum class Transport {
    oci,             ///< "oci:DIR[:TAG]"
    oci_archive,     ///< "oci-archive:FILE[:TAG]"
    docker_archive,  ///< "docker-archive:FILE[:NAME:TAG]"
    directory,       ///< "dir:DIR"
};

/// A parsed reference to something on this host.
struct LocalReference {
    Transport transport = Transport::oci;
    std::string path;
    std::string tag;                      ///< "" takes the only image there is
    std::optional<std::size_t> place;     ///< ":@N": which entry of index.json or manifest.json, from 0 on
    std::optional<image::Digest> digest;  ///< "@sha256:…" behind it
};

/// nullopt if `text` names an image of a registry. Errors: usage "unsupported" for the transports of container engines;
/// data "bad-reference" for a transport without a path, or with a bad digest.
[[nodiscard]] std::optional<LocalReference> parse_local_reference(std::string_view text);

/// Named files that an image is stored in.
class FileSet {
public:
    virtual ~FileSet() = default;
    /// The bytes of the regular file `name`, relative to the set; nullptr if there is none. Opening another one ends
    /// it.
    [[nodiscard]] virtual std::unique_ptr<ByteSource> open(const std::string& name) = 0;
};

/// The files below a directory; links are not followed. Errors: not_found "image-not-found".
[[nodiscard]] std::unique_ptr<FileSet> open_directory_files(const std::string& directory);
/// The files of a tar, plain or compressed with gzip or zstd, which a twin of `parser` reads if there is one.
/// `on_piece` is called often and may throw. Errors: not_found "image-not-found"; data "bad-layout"; unsafe
/// "image-limit"; sandbox::Confined::lost().
[[nodiscard]] std::unique_ptr<FileSet> open_archive_files(const std::string& file, const Limits& limits,
                                                          std::function<void()> on_piece,
                                                          sandbox::Confined* parser = nullptr);
/// The whole file `name`; nullopt if there is none. Errors: unsafe "image-limit" above `cap` bytes.
[[nodiscard]] std::optional<std::string> read_named(FileSet& files, const std::string& name, std::uint64_t cap);

/// An OCI image layout (image-spec, "Image Layout Specification"). Errors: data "bad-layout"; not_found
/// "image-not-found" with the tags there are; data "ambiguous-image" when there are several images and no tag was
/// given.
[[nodiscard]] std::unique_ptr<ImageStore> open_layout(const LocalReference& reference, std::unique_ptr<FileSet> files,
                                                      const PullRequest& request,
                                                      std::function<void()> check_deadline);
/// What `docker save` writes (manifest.json). Errors as open_layout. Its layers are proven by the diff ids of the
/// configuration, whose digest takes the place of the manifest's.
[[nodiscard]] std::unique_ptr<ImageStore> open_docker_archive(const LocalReference& reference,
                                                              std::unique_ptr<FileSet> files,
                                                              const PullRequest& request,
                                                              std::function<void()> check_deadline);
/// Opens what `reference` names; not for Transport::directory. Of `request` limits and parser count; it must outlive
/// the store.
[[nodiscard]] std::unique_ptr<ImageStore> open_local(const LocalReference& reference, const PullRequest& request,
                                                     const std::function<void()>& check_deadline);

/// Reads the wanted part of DIR as if it were a layer. DIR is the root of an unpacked image if it holds the wanted
/// modules root; otherwise its .ko files (also .ko.gz, .ko.xz, .ko.zst) are the modules of the one wanted kernel.
/// Errors: not_found "image-not-found"; usage for other than one kernel where that is needed.
[[nodiscard]] std::unique_ptr<EntryReader> read_module_directory(const LocalReference& reference, const Wanted& wanted,
                                                                 const Limits& limits);

}  // namespace kmm::registry
