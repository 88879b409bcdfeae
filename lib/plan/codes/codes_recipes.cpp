// SPDX-License-Identifier: Apache-2.0
// What rendering recipes finds and refuses.
#include <array>

#include "plan/codes/codes.hpp"

namespace kmm::plan {

namespace {

constexpr std::array k_recipe_texts{
    CodeText{"buildable", "reason", "the image for a kernel is not there and can be built",
             "Its build names a source, and the toolkit is known.", ""},
    CodeText{"compatible-weak", "reason", "the modules of the present image fit the new kernel",
             "Every symbol version is equal, so the kernel takes modules of another release.", ""},
    CodeText{"kernel-runs", "reason", "every node of a recipe runs that kernel already", "", ""},
    CodeText{"no-driver-container", "reason", "a recipe has no driver container",
             "No object has the annotation specialresource.openshift.io/state: driver-container, is a DaemonSet's "
             "copy for a kernel, or has the kernel in the name of its image.", ""},
    CodeText{"no-nodes-selected", "reason", "a recipe selects no node", "", ""},
    CodeText{"no-releases", "error", "no release is known for a SpecialResourceModule, or of a toolkit",
             "Watches find no version, the facts have no releases, or dtk-map --print-facts has none to print.",
             "kmm-plan dtk-map RELEASE --print-facts"},
    CodeText{"build-needed", "reason", "the image of a driver container is not there and is built", "", ""},
    CodeText{"dependency-waits", "reason", "a resource waits because one that it needs waits", "",
             "see why the other one waits"},
    CodeText{"image-not-checked", "reason", "no registry was asked for the image of a driver container",
             "It is pulled; if that fails, a paired BuildConfig or Job builds it.", "give --check-images"},
    CodeText{"image-present", "reason", "the image of a driver container is there", "", ""},
    CodeText{"no-image-no-source", "reason", "an image is not there, and nothing can build it",
             "The driver container waits until the image is there.",
             "push the image, or add a BuildConfig or Job with the same annotation driver-container-vendor"},
    CodeText{"registry-unreachable", "reason", "whether an image is there could not be found out", "",
             "try again when the registry answers"},
    CodeText{"tag-not-mirrored", "finding", "no mirror serves an image that is named by a tag",
             "ImageDigestMirrorSets and ImageContentSourcePolicies serve digests only.",
             "name the image by digest, or add an ImageTagMirrorSet"},
    CodeText{"bad-kernel", "error", "a kernel release of a file is not valid",
             "Kernel releases begin with three numbers: 5.14.0-427.40.1.el9_4.x86_64.", "correct the file"},
    CodeText{"kernel-architecture", "error", "a kernel names no architecture, or another than its image",
             "Old toolkit images leave it out.", "give --arch x86_64, or the file of the right image"},
    CodeText{"node-without-toolkit", "finding", "a node runs a kernel that no toolkit is known for",
             "Its release was not given, or its kernel is not that of its system.", "give the files of the release"},
    CodeText{"not-toolkit-data", "error", "a file says nothing of releases or toolkits", "", "leave the file out"},
    CodeText{"release-kernels", "error", "a release has two kernels",
             "A release of OpenShift has one kernel of each flavour; several releases may have the same.",
             "find the file that is of another release"},
    CodeText{"release-version", "error", "files of two releases are in one directory", "",
             "keep the files of each release in a directory of its own"},
    CodeText{"toolkit-by-tag", "error", "a toolkit is not named by digest",
             "A tag moves to the toolkit of another kernel.", "write REPOSITORY@sha256:DIGEST"},
    CodeText{"toolkit-kernel-unknown", "finding", "the kernel of a toolkit is not known",
             "Nothing that was read says which kernel the image has headers of.",
             "give driver-toolkit-release.json of the image, or its configuration"},
    CodeText{"toolkit-kernels", "error", "a toolkit has two kernels", "", "find the file that is of another image"},
    CodeText{"toolkit-not-found", "error", "no toolkit is known for a kernel", "",
             "give the files of the release that has this kernel"},
    CodeText{"toolkit-not-linked", "error", "a file does not say which image it is of",
             "driver-toolkit-release.json has kernels and no name of an image.",
             "keep it in the directory of its release, or give --image FILE=IMAGE"},
    CodeText{"annotation-idle", "finding", "an annotation, or a label in its place, has no effect",
             "Of a recipe: its name is misspelt, its value is neither true nor false in lower case, it is no "
             "pattern, or it is on the Pods or among the labels: nothing is waited for, or copied for a kernel. Of the "
             "toolkit itself (kmmtools.dev/...): nothing reads it, so that a Module is unloaded or ordered without it.",
             "correct it as the hint says"},
    CodeText{"bad-os-image", "error", "the operator cannot read the version of a node's system",
             "With --compat sro only: it knows the form 417.94.202410211619-0 alone.",
             "leave out --compat sro, or correct osImage"},
    CodeText{"chart-differs", "finding", "a chart is not the one that the SpecialResource asks for",
             "spec.chart has another name or version than Chart.yaml.",
             "give the chart that it asks for, or correct spec.chart"},
    CodeText{"chart-link", "finding", "a link leads out of a chart",
             "By such a link the author of a chart chooses which files of this machine become a part of what is "
             "printed. It is an error; with --follow-links it is followed, as Helm does, with a warning. /proc, /sys "
             "and /dev are not read through links.",
             "copy the file into the chart, leave it out by .helmignore, or give --follow-links"},
    CodeText{"chart-not-found", "error", "the chart of a recipe cannot be found",
             "Charts come from --chart, from repositories file://DIR below the current directory or one of -f, and "
             "from ConfigMaps cm://NAMESPACE/NAME among the documents.",
             "give --chart NAME=DIR"},
    CodeText{"dependency-cycle", "error", "SpecialResources need each other in a circle", "The message has the path.",
             "remove one of the dependencies"},
    CodeText{"dependency-values", "finding", "values of a dependency do not count",
             "A resource gives values to what it depends on; they replace its own spec.set, and those of a second "
             "resource.",
             "give the values in one place"},
    CodeText{"empty-state", "finding", "a state renders no object",
             "The operator counts it as done and labels the nodes.",
             "look at the conditions around it, or remove the file"},
    CodeText{"float-format", "finding", "a number is printed with an exponent",
             "Numbers of values files are float64: 1000000 prints as 1e+06.",
             "write int64 before it, or quote the number in the values"},
    CodeText{"hook-not-run", "finding", "a hook of Helm is left out of a recipe, or runs at another place",
             "Hooks of pre-install and post-install are applied and awaited with their state, Jobs and Pods of them "
             "once in the first rollout, and in later ones if they are hooks of upgrades too. Those of upgrades, "
             "rollbacks and removals alone are not. One of pre-install and post-install runs before the objects. One "
             "of post-install and pre-upgrade runs after the objects, and one of pre-install and post-upgrade before "
             "them, in an upgrade too.",
             "add pre-install or post-install to helm.sh/hook, or do its work by hand"},
    CodeText{"kernel-dependent", "finding", "an object differs by kernel and is made for one alone",
             "It has no annotation specialresource.openshift.io/kernel-affine.",
             "annotate it, or make it independent of the kernel"},
    CodeText{"long-name", "finding", "the Pods of a StatefulSet get a label that is too long",
             "The API server takes the name, and refuses each Pod.", "give the StatefulSet at most 52 characters"},
    CodeText{"missing-value", "finding", "a template prints a value that is missing",
             "It prints nothing. Keys are case-sensitive.", "correct the key, or say default or required"},
    CodeText{"no-kernels", "error", "no kernel is known for a recipe",
             "No Node was given, or spec.nodeSelector selects none.", "give Nodes in -f, or --facts FILE"},
    CodeText{"no-value-text", "finding", "a template prints <nil> or <no value>",
             "A value that is missing was made a text. Helm removes <no value> from the output.",
             "test it with default before"},
    CodeText{"not-a-text", "finding", "a label, annotation or variable is not a text",
             "A boolean or number without quotes. The API server refuses it; the Special Resource Operator loses all "
             "labels or annotations of the object.",
             "quote the value"},
    CodeText{"not-managed", "finding", "a SpecialResource is not managed",
             "spec.managementState is Unmanaged or Removed.", ""},
    CodeText{"printf-fault", "finding", "printf got a value of another type than its verb wants",
             "The output has text like %!d(float64=5).", "convert the value with int64 or toString"},
    CodeText{"recipe-duplicate", "error", "copies of an object for several kernels have one name and differ",
             "One would replace the other.",
             "annotate the object with specialresource.openshift.io/kernel-affine: \"true\""},
    CodeText{"recipe-not-found", "error", "there is no such SpecialResource", "",
             "correct the name, or give its document in -f"},
    CodeText{"recipe-overwrite", "finding", "an object of a state replaces one of another state",
             "They have one name and differ.", "give one of them another name"},
    CodeText{"selector-lost", "finding", "a Service or policy selects Pods by a label that copies for kernels lose",
             "The label app of a copy and of its Pods is the name of the copy. Traffic, budgets and metrics of the "
             "selector have no Pod.",
             "select another label of the Pods"},
    CodeText{"source-not-read", "finding", "the source of a driver is not built where there is no OpenShift",
             "The Job of a resource without a chart reads repositories by HTTPS or HTTP, without keys. There is no "
             "Job for ssh://HOST/PATH and git@HOST:PATH.",
             "give the repository as https://HOST/PATH, or push the images"},
    CodeText{"sro-differs", "finding", "the Special Resource Operator does something else",
             "What it does is a fault, which is repaired here.", "--compat sro renders what the operator makes"},
    CodeText{"sro-ignores", "finding", "the Special Resource Operator ignores a fault",
             "With --compat sro only: it goes on as if the state was done.", "leave out --compat sro"},
    CodeText{"unknown-event", "finding", "a hook of a chart has an event that Helm does not know",
             "Helm leaves such an object out, and so do we.", "correct the annotation helm.sh/hook"},
    CodeText{"unknown-fact", "error", "a template reads a fact that nobody has given",
             "Kernels, versions and the proxy are never guessed.", "give it in -f, --facts or --fact"},
};

}  // namespace

std::span<const CodeText> recipe_texts() noexcept { return k_recipe_texts; }

}  // namespace kmm::plan
