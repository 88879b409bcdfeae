// SPDX-License-Identifier: Apache-2.0
// What render finds and refuses. Facts about the operator: KMM 6, 9, 11.
#include <array>

#include "plan/codes/codes.hpp"

namespace kmm::plan {

namespace {

constexpr std::array k_render_texts{
    CodeText{"bad-path", "error", "a path cannot be written into a Dockerfile, or leads out of the image",
             "Sign Pods copy dirName and sign files by a Dockerfile, which cannot name paths with control "
             "characters, and no dirName with a pattern.",
             "use plain characters"},
    CodeText{"bad-cluster-name", "error", "a cluster has no name that a hub could use",
             "ManifestWorks lie in a namespace called like the cluster, so that its name has at most 63 lower-case "
             "letters, digits and '-', and no other cluster has it.",
             "--cluster-name CONTEXT=NAME"},
    CodeText{"damaged-list", "error", "the list of files that render wrote cannot be read",
             "DIR/.kmm-render.json says which files of --out DIR may be replaced and removed. Without it nothing is.",
             "restore it, or render into an empty directory"},
    CodeText{"device-class-conflict", "finding", "two Modules have a DeviceClass of the same name",
             "DeviceClasses have no namespace: each Module's controller takes the object over from the other. Only "
             "the first is rendered.",
             "rename one of them"},
    CodeText{"hub-field-lost", "finding", "a field of a mapping does not reach the clusters",
             "KMM's hub writes mappings of a kernel, an image and in-tree modules alone; an empty list, or "
             "registryTLS, is lost on the way.",
             "set it in the container"},
    CodeText{"hub-image-differs", "finding", "hub and clusters read different images of one ManagedClusterModule",
             "KMM's hub looks for, builds and signs the image with its operator's namespace as MOD_NAMESPACE, and "
             "sends the clusters the image with spokeNamespace. They agree only where both have one name.",
             "write the namespace itself into the image"},
    CodeText{"hub-labels-unknown", "finding", "nobody says which labels a cluster has",
             "A context without a ManagedCluster of its name is taken as selected, since it was named on the command "
             "line.",
             "give its ManagedCluster with -f"},
    CodeText{"hub-no-mapping", "finding", "a cluster has a kernel without a mapping",
             "KMM's hub leaves the kernel out: its nodes get no module.", "add a mapping"},
    CodeText{"hub-not-selected", "finding", "a ManagedClusterModule selects no cluster", "",
             "label the ManagedClusters, or correct spec.selector"},
    CodeText{"hub-skipped", "finding", "a selected cluster gets no ManifestWork",
             "As on KMM's hub: kernels that are not known, a mapping that cannot be used or an image that is missing "
             "hold the whole cluster back. Other clusters go on.",
             "see the message"},
    CodeText{"kaniko-tag", "finding", "kanikoParams.tag with a builder image that has a port",
             "KMM cuts the image at its first ':', which is that of the port, and so asks for an image that does not "
             "exist. render replaces the tag.",
             "use a builder image without a port"},
    CodeText{"kernel-plus", "finding", "a kernel whose name ends in '+', and worker style extract",
             "KMM drops one trailing '+' and copies the directory of that name; modprobe then looks in the directory "
             "of the real one and finds nothing.",
             "use --worker-style pull"},
    CodeText{"no-managed-cluster", "error", "there is no cluster to render for",
             "render hub needs ManagedClusters, or contexts of clusters.", "-f hub.yaml, or --context A --context B"},
    CodeText{"no-managed-cluster-module", "error", "there is no ManagedClusterModule", "",
             "add it with -f, or name the hub's context"},
    CodeText{"no-unsigned-image", "finding", "there is nothing to sign",
             "sign needs either build or sign.unsignedImage; KMM fails on every pass.", "set sign.unsignedImage"},
    CodeText{"not-ours", "error", "a file that render would write is there already and is not its own",
             "--out replaces only files that an earlier run wrote.",
             "move the file away, or render into another directory"},
    CodeText{"out-in-input", "error", "a file or directory to write is one that is read",
             "--report and --metrics would replace a document. What --out writes into a directory that is read, the "
             "next command takes for objects of the cluster, beside those that are there.",
             "write another file, or into a directory beside it"},
    CodeText{"same-name", "finding", "two different objects have the same name",
             "KMM makes names of parts that are joined with '-', so that a-b and c meet a and b-c.",
             "rename one of the Modules"},
    CodeText{"several-hubs", "error", "two contexts are hubs",
             "Both have ManagedClusterModules or ManagedClusters, and which one is meant is not clear.",
             "name one of them"},
    CodeText{"unsafe-path", "finding", "a path with characters that a shell takes for something else",
             "KMM puts dirName, firmwarePath and filesToSign into shell commands without quotes: the Pod breaks, or "
             "runs what the path says. render quotes them.",
             "use plain characters"},
    CodeText{"volume-name", "finding", "a Secret or ConfigMap that KMM cannot make a volume of",
             "KMM calls the volume secret-NAME: names with dots or more than 56 characters, and one Secret used "
             "twice in a Pod, give a Pod that the API server refuses. render names it otherwise. One without a name "
             "(dockerfileConfigMap: {}) is refused, too.",
             "use other Secrets, name the one that is meant"},
};

}  // namespace

std::span<const CodeText> render_texts() noexcept { return k_render_texts; }

}  // namespace kmm::plan
