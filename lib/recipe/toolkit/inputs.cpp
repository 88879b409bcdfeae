// SPDX-License-Identifier: Apache-2.0
// Formats: openshift/driver-toolkit README, openshift/oc pkg/cli/admin/release, ImageStream image.openshift.io/v1.
#include "recipe/toolkit/inputs.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "base/text.hpp"
#include "image/reference.hpp"
#include "recipe/toolkit/versions.hpp"
#include "value/kind_phrase.hpp"

namespace kmm::recipe::toolkit {

using value::Node;

namespace {

constexpr std::string_view k_toolkit = "driver-toolkit";

/// One document at work.
class InputReader {
public:
    InputReader(const value::Document& document, const Node& root, Inputs& inputs, Diagnostics& faults)
        : document_(document), root_(root), inputs_(inputs), faults_(faults) {}

    void run() {
        const std::string kind = root_.get_string({"kind"});
        if (!root_.is_mapping()) { return unknown(); }
        if (root_.find("KERNEL_VERSION") != nullptr || root_.find("RHEL_VERSION") != nullptr) { return release_file(); }
        if (kind.starts_with("cincinnati-metadata")) { return metadata(); }
        if (root_.find("references") != nullptr) { return release_info(); }
        if (kind == "ImageStream") { return stream(); }
        if (kind == "ImageStreamTag" || kind == "ImageStreamImage") { return image_object(root_.find("image")); }
        if (kind == "Image") { return image_object(&root_); }
        if (kind == "Node") { return node(); }
        if (!kind.empty() && root_.find("apiVersion") != nullptr) { return; }
        if (const Node* digests = root_.find("RepoDigests"); digests != nullptr && root_.find("Config") != nullptr) {
            return labels(root_.find_path({"Config", "Labels"}), names(digests->get_texts({}), {}),
                          root_.get_string({"Architecture"}));
        }
        if (root_.find("Labels") != nullptr && root_.find("Digest") != nullptr) {
            return labels(root_.find("Labels"), names({root_.get_string({"Name"})}, {root_.get_string({"Digest"})}),
                          root_.get_string({"Architecture"}));
        }
        if (const Node* inner = root_.find_path({"config", "config"}); inner != nullptr) {
            return labels(inner->find("Labels"),
                          names({root_.get_string({"name"})},
                                {root_.get_string({"digest"}), root_.get_string({"listDigest"})}),
                          root_.get_string({"config", "architecture"}));
        }
        if (const Node* config = root_.find("config");
            config != nullptr && (root_.find("architecture") != nullptr || root_.find("rootfs") != nullptr)) {
            return labels(config->find("Labels"), {}, root_.get_string({"architecture"}));
        }
        unknown();
    }

private:
    const value::Document& document_;
    const Node& root_;
    Inputs& inputs_;
    Diagnostics& faults_;

    [[nodiscard]] Position place(const Node& node) const { return document_.position(node.mark()); }

    void fault(std::string code, std::string message, const Node& at, std::string hint = {}) {
        faults_.push_back(
            {Severity::error, std::move(code), std::move(message), place(at), std::move(hint), Exit::data});
    }

    void unknown() {
        std::vector<std::string> keys;
        for (const auto& member : root_.members()) { keys.push_back(base::escape(member.key)); }
        if (keys.size() > 5) { keys.resize(5); }
        fault("not-toolkit-data",
              fmt::format("expected image-references, release-metadata, driver-toolkit-release.json, a configuration "
                          "of an image or a Kubernetes object, found {}",
                          keys.empty() ? value::a_kind(root_.kind())
                                       : "a mapping with " + base::join(keys, ", ")),
              root_, "leave the file out");
    }

    /// A text that has to be there.
    std::string required(const Node& owner, const std::string& path, std::initializer_list<std::string_view> keys) {
        const Node* found = owner.find_path(keys);
        if (found == nullptr || found->is_null()) {
            fault("missing-field", fmt::format("{} is missing", path), owner);
            return {};
        }
        if (!found->is_string()) {
            fault("wrong-type", fmt::format("{}: expected string, found {}", path, value::kind_name(found->kind())),
                  *found);
            return {};
        }
        if (found->text().empty()) { fault("missing-field", fmt::format("{} is empty", path), *found); }
        return found->text();
    }

    void release_file() {
        ImageKernels made;
        made.place = place(root_);
        made.kernel = required(root_, "KERNEL_VERSION", {"KERNEL_VERSION"});
        check_kernel("KERNEL_VERSION", made.kernel, root_.find("KERNEL_VERSION"));
        made.rt_kernel = realtime_kernel(root_.get_string({"RT_KERNEL_VERSION"}));
        made.os_version = root_.get_string({"RHEL_VERSION"});
        made.architecture = kernel_architecture(made.kernel);
        if (const Node* kernel = root_.find("KERNEL_VERSION"); kernel != nullptr) { made.place = place(*kernel); }
        inputs_.images.push_back(std::move(made));
    }

    void check_kernel(const char* key, const std::string& kernel, const Node* at) {
        if (at == nullptr || kernel.empty() || is_kernel_release(kernel)) { return; }
        fault("bad-kernel", fmt::format("{}: expected a kernel release, found \"{}\"", key, base::escape(kernel)), *at,
              "for example 5.14.0-427.40.1.el9_4.x86_64");
    }

    void metadata() {
        Payload made;
        made.version = required(root_, "version", {"version"});
        made.place = place(root_);
        inputs_.payloads.push_back(std::move(made));
    }

    void release_info() {
        Payload made;
        const Node* metadata = root_.find("metadata");
        made.version = required(root_, "metadata.version", {"metadata", "version"});
        const std::string image = root_.get_string({"image"}), digest = root_.get_string({"digest"});
        made.image = by_digest(image, digest);
        made.place = metadata == nullptr ? place(root_) : place(*metadata);
        references(*root_.find("references"), "references.", made);
        inputs_.payloads.push_back(std::move(made));
    }

    /// "REPOSITORY@DIGEST"; `reference` itself if it has a digest.
    static std::string by_digest(const std::string& reference, const std::string& digest) {
        if (reference.empty() || reference.find('@') != std::string::npos || digest.empty()) { return reference; }
        const std::size_t slash = reference.rfind('/');
        const std::size_t colon = reference.find(':', slash == std::string::npos ? 0 : slash);
        return reference.substr(0, colon) + '@' + digest;
    }

    /// What an image is called: `references`, by each of `digests`, which may be "".
    static std::vector<std::string> names(const std::vector<std::string>& references,
                                          const std::vector<std::string>& digests) {
        std::vector<std::string> made;
        for (const auto& reference : references) {
            const bool has_digest = reference.find('@') != std::string::npos;
            if (has_digest) { made.push_back(reference); }
            for (const auto& digest : digests) {
                if (!digest.empty()) { made.push_back(by_digest(reference.substr(0, reference.find('@')), digest)); }
            }
            if (made.empty() && !reference.empty()) { made.push_back(reference); }
        }
        std::erase(made, "");
        return made;
    }

    void stream() {
        if (root_.get_string({"metadata", "name"}) == k_toolkit) { return toolkit_stream(); }
        const Node* tags = root_.find_path({"spec", "tags"});
        const bool is_payload =
            tags != nullptr && std::any_of(tags->items().begin(), tags->items().end(), [](const Node& tag) {
                const std::string name = tag.get_string({"name"});
                return name.starts_with(k_toolkit) || name == "cluster-version-operator" ||
                       name == "machine-config-operator";
            });
        if (!is_payload) { return; }
        Payload made;
        made.version = required(root_, "metadata.name", {"metadata", "name"});
        made.place = place(root_);
        references(root_, "", made);
        inputs_.payloads.push_back(std::move(made));
    }

    /// Tags of image-references.
    void references(const Node& stream, const std::string& path, Payload& made) {
        made.has_references = true;
        const Node* tags = stream.find_path({"spec", "tags"});
        if (tags == nullptr || !tags->is_sequence()) {
            fault("missing-field", path + "spec.tags is missing", stream);
            return;
        }
        std::size_t index = 0;
        for (const auto& tag : tags->items()) {
            const std::string here = fmt::format("{}spec.tags[{}]", path, index++);
            const std::string name = tag.get_string({"name"});
            if (const Node* versions = tag.find_path({"annotations", "io.openshift.build.versions"})) {
                const std::string system = build_version(versions->text(), "machine-os");
                if (!system.empty()) { (system.starts_with("10.") ? made.os_version_10 : made.os_version) = system; }
            }
            if (name != k_toolkit && !name.starts_with("driver-toolkit-")) { continue; }
            const Node* from = tag.find_path({"from", "name"});
            const std::string image = required(tag, here + ".from.name", {"from", "name"});
            if (!image.empty()) { made.toolkits.push_back({name, image, place(*from)}); }
        }
        if (made.toolkits.empty()) {
            fault("missing-field", fmt::format("release {} lists no image driver-toolkit", base::escape(made.version)),
                  *tags, "releases before 4.6 have none: leave the file out");
        }
    }

    /// "417.94.202410211619-0" of "kubernetes=1.30.5,machine-os=417.94.202410211619-0".
    static std::string build_version(std::string_view text, std::string_view key) {
        for (const auto part : base::split(text, ',')) {
            const auto trimmed = base::trim(part);
            if (trimmed.size() > key.size() && trimmed.starts_with(key) && trimmed[key.size()] == '=') {
                return std::string(trimmed.substr(key.size() + 1));
            }
        }
        return {};
    }

    void toolkit_stream() {
        const Node* status = root_.find_path({"status", "tags"});
        if (status != nullptr && !status->items().empty()) {
            std::size_t index = 0;
            for (const auto& tag : status->items()) {
                const std::string path = fmt::format("status.tags[{}]", index++);
                const std::string name = required(tag, path + ".tag", {"tag"});
                const Node* items = tag.find("items");
                if (items == nullptr || items->items().empty()) { continue; }  // not imported
                const Node& newest = items->items()[0];
                const std::string image =
                    required(newest, path + ".items[0].dockerImageReference", {"dockerImageReference"});
                if (!image.empty() && !name.empty()) {
                    inputs_.tags.push_back({name, by_digest(image, newest.get_string({"image"})), place(newest)});
                }
            }
            return;
        }
        const Node* tags = root_.find_path({"spec", "tags"});
        if (tags == nullptr || tags->items().empty()) {
            fault("missing-field", "ImageStream driver-toolkit has no tags in status.tags or spec.tags", root_);
            return;
        }
        for (const auto& tag : tags->items()) {
            const std::string image = tag.get_string({"from", "name"});
            if (!image.empty()) { inputs_.tags.push_back({tag.get_string({"name"}), image, place(tag)}); }
        }
    }

    void image_object(const Node* image) {
        if (image == nullptr) {
            fault("missing-field", "image is missing", root_);
            return;
        }
        const Node* metadata = image->find("dockerImageMetadata");
        const Node* config = metadata == nullptr ? nullptr : metadata->find("Config");
        labels(config == nullptr ? nullptr : config->find("Labels"),
               names({image->get_string({"dockerImageReference"})}, {image->get_string({"metadata", "name"})}),
               metadata == nullptr ? "" : metadata->get_string({"Architecture"}));
    }

    /// Go's name of an architecture as kernels write it.
    static std::string machine_of(const std::string& architecture) {
        static constexpr std::array<std::pair<std::string_view, std::string_view>, 2> k_machines{
            {{"amd64", "x86_64"}, {"arm64", "aarch64"}}};
        for (const auto& [go, machine] : k_machines) {
            if (architecture == go) { return std::string(machine); }
        }
        return architecture;
    }

    /// Of RHEL 9.3 and later the realtime kernel has the version of the other one; images have left its ending out.
    static std::string realtime_kernel(const std::string& text) {
        if (!is_kernel_release(text)) { return {}; }
        return kernel_flavour(text) == "rt" ? text : text + "+rt";
    }

    void labels(const Node* labels, std::vector<std::string> images, const std::string& architecture) {
        if (labels == nullptr || !labels->is_mapping()) {
            fault("missing-field", "the configuration of the image has no Labels", root_,
                  "toolkit images have kernel-version since OpenShift 4.17: use driver-toolkit-release.json");
            return;
        }
        ImageKernels made;
        made.place = place(*labels);
        made.images = std::move(images);
        const char* key = "kernel-version";
        made.kernel = labels->get_string({key});
        made.rt_kernel = realtime_kernel(labels->get_string({"kernel-rt-version"}));
        if (made.kernel.empty()) {
            made.is_system = true;
            for (const char* one : {"ostree.linux", "com.coreos.rpm.kernel"}) {
                if (made.kernel.empty()) { made.kernel = labels->get_string({key = one}); }
            }
            made.rt_kernel = realtime_kernel(labels->get_string({"com.coreos.rpm.kernel-rt-core"}));
        }
        if (made.kernel.empty()) {
            fault("missing-field",
                  "expected a label kernel-version, ostree.linux or com.coreos.rpm.kernel, found none of them", *labels,
                  "use driver-toolkit-release.json of the image");
            return;
        }
        check_kernel(key, made.kernel, labels->find(key));
        made.place = place(*labels->find(key));
        const std::string stream_class = labels->get_string({"io.openshift.os.streamclass"});
        if (stream_class.starts_with("rhel-")) { made.os_version = stream_class.substr(5); }
        made.architecture = kernel_architecture(made.kernel);
        const std::string machine = machine_of(architecture);
        if (made.architecture.empty()) { made.architecture = machine; }
        static constexpr std::array<std::string_view, 4> k_known{"x86_64", "aarch64", "ppc64le", "s390x"};
        if (std::find(k_known.begin(), k_known.end(), machine) != k_known.end() && made.architecture != machine) {
            fault("kernel-architecture",
                  fmt::format("{}: kernel {} is of {}, and the image of {}", key, base::escape(made.kernel),
                              base::escape(made.architecture), base::escape(machine)),
                  *labels->find(key), "take the configuration of the image of that architecture");
            return;
        }
        inputs_.images.push_back(std::move(made));
    }

    void node() {
        inputs_.nodes.push_back({root_.get_string({"metadata", "name"}),
                                 root_.get_string({"status", "nodeInfo", "kernelVersion"}),
                                 root_.get_string({"status", "nodeInfo", "osImage"}), place(root_)});
    }
};

}  // namespace

void read_input(const value::Document& document, Inputs& inputs, Diagnostics& faults) {
    const auto& items = document.root.items();
    const bool is_list = document.root.is_sequence() && !items.empty() &&
                         std::all_of(items.begin(), items.end(), [](const Node& item) { return item.is_mapping(); });
    if (!is_list) { return InputReader(document, document.root, inputs, faults).run(); }
    for (const auto& item : items) { InputReader(document, item, inputs, faults).run(); }
}

}  // namespace kmm::recipe::toolkit
