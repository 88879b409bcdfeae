// SPDX-License-Identifier: Apache-2.0
#include "recipe/toolkit/map.hpp"

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "base/clean_path.hpp"
#include "base/text.hpp"
#include "image/reference.hpp"
#include "recipe/toolkit/versions.hpp"

namespace kmm::recipe::toolkit {

namespace {

constexpr std::array<std::string_view, 3> k_file_names{"image-references", "release-metadata",
                                                       "driver-toolkit-release.json"};

/// What stands before the usual name of a file, "4.17.4-" of "4.17.4-image-references"; nullopt for other names.
std::optional<std::string> stem_of(const std::string& file) {
    const std::size_t slash = file.rfind('/');
    const std::string name = file.substr(slash == std::string::npos ? 0 : slash + 1);
    for (const auto known : k_file_names) {
        if (const std::size_t at = name.find(known); at != std::string::npos) { return name.substr(0, at); }
    }
    return std::nullopt;
}

/// One image with what is known of its kernels.
struct KnownImage {
    const ImageKernels* kernels = nullptr;
    std::string kernel, rt_kernel, architecture, os_version;
};

/// Where a kernel of a release was read.
struct Said {
    std::string kernel;
    Position place;
};

class MapMaker {
public:
    MapMaker(const Inputs& inputs, const MapOptions& options, Diagnostics& faults)
        : inputs_(inputs), options_(options), faults_(faults) {}

    ToolkitMap run() {
        join_metadata();
        for (const auto& payload : payloads_) {
            for (const auto& listed : payload.toolkits) { asked_.insert(digest_text(listed.image)); }
        }
        for (const auto& tag : inputs_.tags) { asked_.insert(digest_text(tag.image)); }
        for (const auto& image : inputs_.images) { image.is_system ? link_system(image) : link_toolkit(image); }
        for (const auto& payload : payloads_) { add_payload(payload); }
        for (const auto& tag : inputs_.tags) { add_tag(tag); }
        add_unlisted();
        sort_rows();
        check_nodes();
        return std::move(map_);
    }

private:
    const Inputs& inputs_;
    const MapOptions& options_;
    Diagnostics& faults_;
    std::vector<Payload> payloads_;                                   ///< with image-references
    std::map<std::string, std::vector<KnownImage>> known_;            ///< by digest
    std::map<std::string, std::string> pullspecs_;  ///< digest -> pullspec of an image that nothing lists
    std::map<std::size_t, std::vector<const ImageKernels*>> systems_; ///< payload -> labels of its operating system
    std::map<std::string, Said> said_;                                ///< release, toolkit and architecture -> kernel
    std::map<std::string, KernelRow> rows_;
    std::set<std::string> asked_;                                     ///< "@DIGEST" of what releases and tags list
    std::set<std::string> listed_;                                    ///< digests
    ToolkitMap map_;

    void fault(std::string code, std::string message, Position place, std::string hint,
               Severity severity = Severity::error) {
        faults_.push_back(
            {severity, std::move(code), std::move(message), std::move(place), std::move(hint), Exit::data});
    }

    /// release-metadata belongs to the image-references beside it.
    void join_metadata() {
        for (const auto& one : inputs_.payloads) {
            if (one.has_references) { payloads_.push_back(one); }
        }
        for (const auto& one : inputs_.payloads) {
            if (one.has_references) { continue; }
            std::vector<Payload*> beside;
            for (auto& payload : payloads_) {
                if (base::directory_of(payload.place.file) == base::directory_of(one.place.file) &&
                    stem_of(payload.place.file) == stem_of(one.place.file)) {
                    beside.push_back(&payload);
                }
            }
            const bool known = std::any_of(beside.begin(), beside.end(),
                                           [&](const Payload* payload) { return payload->version == one.version; });
            if (known) { continue; }
            if (beside.size() == 1) {
                fault("release-version",
                      fmt::format("release-metadata says version {}, image-references at {} says {}",
                                  base::escape(one.version), beside[0]->place.to_string(),
                                  base::escape(beside[0]->version)),
                      one.place, "keep the files of each release in a directory of its own");
            } else {
                fault("missing-field",
                      fmt::format("release {} has no image-references beside its release-metadata",
                                  base::escape(one.version)),
                      one.place, "keep the files of each release in a directory of its own");
            }
        }
    }

    /// The releases that a file belongs to: of the same name, else of the same directory, else of the nearest one
    /// above.
    std::vector<std::size_t> releases_of(const std::string& file) const {
        const auto stem = stem_of(file);
        for (std::string directory = base::directory_of(file);;) {
            std::vector<std::size_t> here, same_stem;
            for (std::size_t i = 0; i < payloads_.size(); ++i) {
                if (base::directory_of(payloads_[i].place.file) != directory) { continue; }
                here.push_back(i);
                if (stem && stem_of(payloads_[i].place.file) == stem) { same_stem.push_back(i); }
            }
            if (!same_stem.empty()) { return same_stem; }
            if (!here.empty()) { return here; }
            if (directory.empty()) { return {}; }
            directory = base::directory_of(directory);
        }
    }

    /// The image by digest; nullopt and a fault if it is not.
    std::optional<image::Reference> pinned(const std::string& text, const Position& place) {
        try {
            auto reference = image::parse_reference(text);
            if (reference.digest) { return reference; }
            fault("toolkit-by-tag", fmt::format("expected an image by digest, found {}", base::escape(text)), place,
                  "write REPOSITORY@sha256:DIGEST: tags move to other kernels");
        } catch (const Error& error) {
            fault(error.code(), fmt::format("\"{}\": {}", base::escape(text), error.message()), place, error.hint());
        }
        return std::nullopt;
    }

    const ListedToolkit& listed_for(const Payload& payload, const ImageKernels& image) const {
        const std::string wanted = image.os_version.starts_with("10") ? "driver-toolkit-10" : "driver-toolkit";
        const auto found = std::find_if(payload.toolkits.begin(), payload.toolkits.end(),
                                        [&](const ListedToolkit& one) { return one.tag == wanted; });
        return found == payload.toolkits.end() ? payload.toolkits.front() : *found;
    }

    /// What releases and tags call the image, else one name of it; none and a fault if nobody says it.
    std::vector<std::string> images_of(const ImageKernels& image) {
        if (const auto given = options_.images.find(image.place.file); given != options_.images.end()) {
            return {given->second};
        }
        if (!image.images.empty()) {
            std::vector<std::string> listed;
            std::copy_if(image.images.begin(), image.images.end(), std::back_inserter(listed),
                         [&](const std::string& one) { return asked_.contains(digest_text(one)); });
            return listed.empty() ? std::vector{image.images.front()} : listed;
        }
        std::set<std::string> candidates;
        std::vector<std::string> versions;
        for (const std::size_t index : releases_of(image.place.file)) {
            if (payloads_[index].toolkits.empty()) { return {}; }  // a fault already
            candidates.insert(listed_for(payloads_[index], image).image);
            versions.push_back(payloads_[index].version);
        }
        if (candidates.size() == 1) { return {*candidates.begin()}; }
        const std::string what = candidates.empty()
                                     ? "nothing says which image it is of"
                                     : fmt::format("releases {} are in one directory: which image is it of?",
                                                   base::escape(base::join(versions, ", ")));
        fault("toolkit-not-linked", fmt::format("kernel {}: {}", base::escape(image.kernel), what), image.place,
              "keep it in the directory of its release, or give --image FILE=REPOSITORY@DIGEST");
        return {};
    }

    void link_toolkit(const ImageKernels& image) {
        if (!is_kernel_release(image.kernel)) { return; }  // a fault already
        for (const auto& name : images_of(image)) { link_to(name, image); }
    }

    void link_to(const std::string& name, const ImageKernels& image) {
        const auto reference = pinned(name, image.place);
        const auto made = reference ? known_image(image, "") : std::nullopt;
        if (!made) { return; }
        const std::string digest = reference->digest->to_string();
        pullspecs_.emplace(digest, reference->name() + '@' + digest);
        auto& others = known_[digest];
        for (const auto& other : others) {
            if (other.architecture != made->architecture) { continue; }
            if (other.kernel == made->kernel && other.rt_kernel == made->rt_kernel) { return; }
            fault("toolkit-kernels",
                  fmt::format("image {} has kernel {}, and kernel {} at {}", base::escape(name), shown(*made),
                              shown(other), other.kernels->place.to_string()),
                  image.place, "one of the files is of another image");
            return;
        }
        others.push_back(*made);
    }

    static std::string shown(const KnownImage& image) {
        return image.rt_kernel.empty() ? image.kernel : image.kernel + " with " + image.rt_kernel;
    }

    std::optional<KnownImage> known_image(const ImageKernels& image, const std::string& os_version) {
        KnownImage made{&image, "", "", image.architecture, image.os_version};
        if (made.architecture.empty()) { made.architecture = options_.architecture; }
        if (made.architecture.empty()) {
            fault("kernel-architecture", fmt::format("kernel {} names no architecture", base::escape(image.kernel)),
                  image.place, "give --arch, for example --arch x86_64");
            return std::nullopt;
        }
        made.kernel = with_architecture(image.kernel, made.architecture);
        made.rt_kernel = image.rt_kernel.empty() ? "" : with_architecture(image.rt_kernel, made.architecture);
        if (made.os_version.empty()) { made.os_version = os_version; }
        return made;
    }

    void link_system(const ImageKernels& image) {
        if (!is_kernel_release(image.kernel)) { return; }
        const auto releases = releases_of(image.place.file);
        if (releases.size() == 1) {
            systems_[releases.front()].push_back(&image);
        } else {
            fault("toolkit-not-linked",
                  fmt::format("kernel {} of an operating system: expected one release in its directory, found {}",
                              base::escape(image.kernel), releases.size()),
                  image.place, "keep it in the directory of its release");
        }
    }

    /// Whether the release has that kernel already or had none; a fault if it has another.
    bool agrees(const Payload& payload, const std::string& key, const std::string& kernel, const Position& place) {
        const auto [known, is_new] = said_.try_emplace(key, Said{kernel, place});
        if (is_new || known->second.kernel == kernel) { return true; }
        fault("release-kernels",
              fmt::format("release {} has kernel {}, and kernel {} at {}", base::escape(payload.version),
                          base::escape(kernel), base::escape(known->second.kernel), known->second.place.to_string()),
              place, "a release has one kernel: one of the files is of another release");
        return false;
    }

    void add_payload(const Payload& payload) {
        const std::size_t index = static_cast<std::size_t>(&payload - payloads_.data());
        for (const auto& listed : payload.toolkits) {
            const auto reference = pinned(listed.image, listed.place);
            if (!reference) { continue; }
            const std::string digest = reference->digest->to_string();
            listed_.insert(digest);
            auto kernels = known_[digest];
            const bool is_second = listed.tag == "driver-toolkit-10" && !payload.os_version_10.empty();
            const std::string& os_version =
                is_second || payload.os_version.empty() ? payload.os_version_10 : payload.os_version;
            const std::string system = plan::parse_os_image(os_version, false).os;
            std::optional<KnownImage> of_system;
            for (const ImageKernels* labels : systems_[index]) {
                const bool is_ten = listed.tag == "driver-toolkit-10";
                if (is_ten != labels->os_version.starts_with("10")) { continue; }
                auto made = known_image(*labels, system);
                if (made && kernels.empty()) { of_system = std::move(made); }
                for (const auto& known : kernels) {
                    if (without_architecture(known.kernel) == without_architecture(labels->kernel)) { continue; }
                    fault("release-kernels",
                          fmt::format(
                              "release {} has kernel {} in its operating system, and kernel {} in its toolkit at {}",
                              base::escape(payload.version), labels->kernel, known.kernel,
                              known.kernels->place.to_string()),
                          labels->place,
                          "one of the files is of another release, or its toolkit does not fit its system, as of "
                          "OKD: then leave the labels of the system out");
                }
            }
            if (of_system) { kernels.push_back(*of_system); }
            if (kernels.empty()) {
                fault("toolkit-kernel-unknown",
                      fmt::format("the kernel of {} of release {} is not known", base::escape(listed.image),
                                  base::escape(payload.version)),
                      listed.place, "give its driver-toolkit-release.json or the configuration of the image",
                      Severity::warning);
            }
            for (auto& known : kernels) {
                complete_os(known, system);
                const std::string key = payload.version + ' ' + listed.tag + ' ' + known.architecture;
                if (!agrees(payload, key, known.kernel, known.kernels->place)) { continue; }
                if (!known.rt_kernel.empty() && !agrees(payload, key + " rt", known.rt_kernel, known.kernels->place)) {
                    continue;
                }
                add(known, listed.image, payload.version, os_version);
                map_.releases.push_back(
                    {payload.image, payload.version, listed.image, known.kernel, known.rt_kernel, known.os_version});
            }
        }
    }

    static std::vector<std::string> kernels_of(const KnownImage& known) {
        std::vector<std::string> all{known.kernel};
        if (!known.rt_kernel.empty()) { all.push_back(known.rt_kernel); }
        // The toolkit has the headers of both, and names one of them.
        const bool has_64k = known.architecture == "aarch64" && kernel_flavour(known.kernel) == "std" &&
                             !known.os_version.empty() && !known.os_version.starts_with("8");
        if (has_64k) { all.push_back(known.kernel + "+64k"); }
        return all;
    }

    void add(const KnownImage& known, const std::string& image, const std::string& release, const std::string& system) {
        for (const auto& kernel : kernels_of(known)) { add_row(kernel, known, image, release, system); }
    }

    void add_row(const std::string& kernel, const KnownImage& known, const std::string& image,
                 const std::string& release, const std::string& system) {
        KernelRow& row = rows_[kernel];
        row.kernel = kernel;
        row.flavour = kernel_flavour(kernel);
        row.architecture = known.architecture;
        if (row.os_version.empty() || row.os_version.find('.') == std::string::npos) {
            row.os_version = known.os_version;
        }
        const auto same = std::find_if(row.toolkits.begin(), row.toolkits.end(), [&](const Toolkit& one) {
            return digest_text(one.image) == digest_text(image);
        });
        Toolkit& toolkit = same == row.toolkits.end() ? row.toolkits.emplace_back(Toolkit{image, {}, {}}) : *same;
        for (auto* place : {&row.releases, &toolkit.releases}) { put_once(*place, release); }
        for (auto* place : {&row.systems, &toolkit.systems}) { put_once(*place, system); }
    }

    /// Some images say the major version alone. The system of a release may be of another one than its second toolkit.
    static void complete_os(KnownImage& known, const std::string& system) {
        if (known.os_version.empty() || system.starts_with(known.os_version + ".")) {
            known.os_version = system.empty() ? known.os_version : system;
        }
    }

    static std::string digest_text(const std::string& image) {
        return image.substr(std::min(image.find('@'), image.size()));
    }

    static void put_once(std::vector<std::string>& list, const std::string& text) {
        if (!text.empty() && std::find(list.begin(), list.end(), text) == list.end()) { list.push_back(text); }
    }

    static bool has_word(std::string_view text, std::string_view word) {
        const auto words = base::split(text, ' ');
        return std::find(words.begin(), words.end(), word) != words.end();
    }

    /// Whether the toolkit of the node's system is of its kernel. OKD builds the two at different times.
    static bool has_kernel_of_toolkit(const SeenNode& node, const StreamTag& tag) {
        return !tag.tag.starts_with("latest") && node.os_image.starts_with("Red Hat ") &&
               has_word(node.os_image, tag.tag) && is_kernel_release(node.kernel);
    }

    /// A tag is a release of the nodes' system, or "latest".
    void add_tag(const StreamTag& tag) {
        const auto reference = pinned(tag.image, tag.place);
        if (!reference) { return; }
        const std::string digest = reference->digest->to_string();
        listed_.insert(digest);
        const bool is_system = !tag.tag.starts_with("latest");
        const std::string system = is_system ? tag.tag : "";
        auto kernels = known_[digest];
        std::map<std::string, const SeenNode*> seen;
        for (const auto& node : inputs_.nodes) {
            if (has_kernel_of_toolkit(node, tag)) { seen.emplace(node.kernel, &node); }
        }
        if (kernels.empty() && !seen.empty()) { return add_seen(tag, seen); }
        if (kernels.empty() && is_system) {
            fault("toolkit-kernel-unknown",
                  fmt::format("the kernel of {} of system {} is not known", base::escape(tag.image),
                              base::escape(tag.tag)),
                  tag.place, "give its driver-toolkit-release.json, or Nodes with this system (OpenShift)",
                  Severity::warning);
        }
        for (auto& known : kernels) {
            complete_os(known, plan::parse_os_image(system, false).os);
            add(known, tag.image, "", system);
        }
    }

    /// The nodes of a system run its kernel, or another flavour of it.
    void add_seen(const StreamTag& tag, const std::map<std::string, const SeenNode*>& seen) {
        const SeenNode* first = seen.begin()->second;
        for (const auto& [kernel, node] : seen) {
            const bool is_same = without_architecture(kernel) == without_architecture(first->kernel) ||
                                 kernel_flavour(kernel) != kernel_flavour(first->kernel);
            if (!is_same) {
                fault("toolkit-kernels",
                      fmt::format("system {}: node {} runs kernel {}, node {} runs {}", base::escape(tag.tag),
                                  base::escape(node->name), kernel, base::escape(first->name), first->kernel),
                      node->place, "give driver-toolkit-release.json of the image");
                continue;
            }
            KnownImage known{nullptr, kernel, "", kernel_architecture(kernel), plan::parse_os_image(tag.tag, false).os};
            add_row(kernel, known, tag.image, "", tag.tag);
        }
    }

    /// Images whose kernel is known and that no release and no tag lists.
    void add_unlisted() {
        for (const auto& [digest, images] : known_) {
            if (listed_.count(digest) != 0) { continue; }
            for (const auto& known : images) { add(known, pullspecs_.at(digest), "", ""); }
        }
    }

    void sort_rows() {
        const auto by_version = [](const std::string& a, const std::string& b) { return version_before(a, b); };
        for (auto& [kernel, row] : rows_) {
            std::sort(row.releases.begin(), row.releases.end(), by_version);
            std::sort(row.systems.begin(), row.systems.end(), by_version);
            for (auto& toolkit : row.toolkits) {
                std::sort(toolkit.releases.begin(), toolkit.releases.end(), by_version);
                std::sort(toolkit.systems.begin(), toolkit.systems.end(), by_version);
            }
            const auto newest = [](const std::vector<std::string>& list) {
                return list.empty() ? std::string() : list.back();
            };
            std::sort(row.toolkits.begin(), row.toolkits.end(), [&](const Toolkit& a, const Toolkit& b) {
                for (const auto& [left, right] : {std::pair(newest(a.releases), newest(b.releases)),
                                                  std::pair(newest(a.systems), newest(b.systems))}) {
                    if (left != right) {
                        return left.empty() ? false : right.empty() || version_before(right, left);
                    }
                }
                return a.image < b.image;
            });
            map_.rows.push_back(std::move(row));
        }
        std::sort(map_.rows.begin(), map_.rows.end(),
                  [](const KernelRow& a, const KernelRow& b) { return version_before(a.kernel, b.kernel); });
        std::sort(map_.releases.begin(), map_.releases.end(), [](const plan::Release& a, const plan::Release& b) {
            return a.version != b.version ? version_before(a.version, b.version) : version_before(a.kernel, b.kernel);
        });
    }

    void check_nodes() {
        std::set<std::string> told;
        for (const auto& node : inputs_.nodes) {
            if (node.kernel.empty() || find_kernel(map_, node.kernel) != nullptr || !told.insert(node.kernel).second) {
                continue;
            }
            const auto other = kernel_of_system(node);
            fault("node-without-toolkit",
                  fmt::format("node {} runs kernel {}, {}", base::escape(node.name), base::escape(node.kernel),
                              other.empty() ? "of which no toolkit is known"
                                            : "the toolkit of its system has kernel " + other),
                  node.place,
                  other.empty() ? "give the release of the node's system; a kernel of its own has no toolkit"
                                : "modules for this node need the headers of its own kernel: not those of the toolkit",
                  Severity::warning);
        }
    }

    /// The kernel of the node's kind, by architecture and flavour, of the toolkit that the stream has for its system;
    /// "" not known.
    std::string kernel_of_system(const SeenNode& node) const {
        for (const auto& tag : inputs_.tags) {
            if (!has_word(node.os_image, tag.tag)) { continue; }
            const std::string text = digest_text(tag.image);
            const auto found = known_.find(text.substr(std::min<std::size_t>(1, text.size())));
            if (found == known_.end()) { continue; }
            for (const auto& known : found->second) {
                for (const auto& kernel : kernels_of(known)) {
                    if (is_of_one_kind(kernel, node.kernel)) { return kernel; }
                }
            }
        }
        return {};
    }
};

}  // namespace

ToolkitMap make_map(const Inputs& inputs, const MapOptions& options, Diagnostics& faults) {
    return MapMaker(inputs, options, faults).run();
}

const KernelRow* find_kernel(const ToolkitMap& map, const std::string& kernel) {
    std::string wanted = kernel;
    for (const std::string_view flavour : {"rt", "64k"}) {
        if (wanted.ends_with("_" + std::string(flavour))) { wanted[wanted.size() - flavour.size() - 1] = '+'; }
    }
    const auto found =
        std::find_if(map.rows.begin(), map.rows.end(), [&](const KernelRow& row) { return row.kernel == wanted; });
    return found == map.rows.end() ? nullptr : &*found;
}

}  // namespace kmm::recipe::toolkit
