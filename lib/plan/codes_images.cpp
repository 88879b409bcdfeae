// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "plan/codes.hpp"

namespace kmm::plan {

namespace {

constexpr std::array k_image_texts{
    CodeText{"bad-certificate", "error", "a file of --cert is no X.509 certificate", "", "name the public certificate of the signing key, in DER or PEM form"},
    CodeText{"bad-kernel", "error", "a text is no kernel version", "It is empty, has spaces, or has fewer than three parts, so that template "
             "variables cannot be made from it.", "write it as uname -r prints it"},
    CodeText{"bad-lock", "finding", "the lock file of images cannot be read", "", "remove it to write it anew"},
    CodeText{"bad-package", "error", "the package with kernel headers is damaged or none", "", "get it again, or name its unpacked directory"},
    CodeText{"bad-parameter", "finding", "a parameter's value does not fit its type", "The kernel would refuse the module.", "correct modprobe.parameters"},
    CodeText{"bad-signature", "finding", "a module's signature is damaged or does not fit the module", "Kernels refuse it even where they do not want signatures, unless "
             "they were built without CONFIG_MODULE_SIG.", "sign the module again, and do not strip it afterwards"},
    CodeText{"bad-symvers", "error", "a file is no Module.symvers", "", "name the one of the kernel's build"},
    CodeText{"cert-not-found", "error", "there is no file of that name for --cert", "", "correct the name"},
    CodeText{"dependency-cycle", "finding", "the modules of an image need each other in a circle", "", "look at depends and at modulesLoadingOrder"},
    CodeText{"dependency-not-known", "finding", "a module that is needed is neither in the image nor among those that export symbols",
             "Modules without exports do not show in Module.symvers, so the kernel may have it.", "see that the kernel's module package has it"},
    CodeText{"digest-drift", "finding", "an image name stands for another digest than the lock file says", "Somebody pushed another image under that name.",
             "find out who; remove the lock file to accept it"},
    CodeText{"firmware-not-in-image", "finding", "a module may ask for firmware that the image does not have",
             "Drivers declare all firmware they know; hardware needs some of it.", "add the file below firmwarePath if the hardware needs it"},
    CodeText{"gpl-only", "finding", "a module without a GPL-compatible licence needs a symbol reserved for such", "The kernel treats it as unknown.",
             "use another interface, or correct MODULE_LICENSE"},
    CodeText{"image-not-found", "finding", "the registry does not have the image", "A worker Pod would wait for it for ever.", "push it, or correct the kernel mapping"},
    CodeText{"image-rejected", "finding", "the policy of --policy rejects the image", "", "use an image that it allows, or allow the repository there"},
    CodeText{"image-unsigned", "finding", "an image must be signed, and has no signature", "A worker with the same --policy or --signature-key refuses it.",
             "cosign sign --key KEY IMAGE (cosign 3: with --new-bundle-format=false); where it was copied, copy its signature too"},
    CodeText{"interrupted", "error", "the command was interrupted", "Nothing was changed.", ""},
    CodeText{"kernel-devel-ambiguous", "error", "a Module.symvers does not say which kernel it is of", "", "name one --kernel at a time, or the kernel's headers as a whole"},
    CodeText{"kernel-devel-not-found", "error", "there are no such kernel headers", "", "correct --kernel-devel"},
    CodeText{"kernel-devel-other", "error", "the headers are of a kernel that was not asked for", "", "add --kernel for it"},
    CodeText{"kernel-not-in-image", "finding", "the image has no directory for the kernel", "A worker Pod would fail there.", "build the image for this kernel"},
    CodeText{"key-not-checked", "finding", "nobody said which keys the kernel trusts", "The kernel takes trusted modules only, and no certificate was given to compare with.",
             "give --cert FILE"},
    CodeText{"key-not-trusted", "finding", "a module is signed with a key of none of the certificates", "Where signatures are enforced the kernel refuses it; elsewhere it is tainted.",
             "sign with a trusted key, or give its certificate with --cert if the kernel trusts it"},
    CodeText{"literal-match", "reason", "a literal of the kernel mappings is the kernel's version", "", ""},
    CodeText{"missing-option", "error", "an option is missing", "", "see --help of the verb"},
    CodeText{"module-format", "finding", "a module file is damaged, or for another architecture", "", "build it again for the nodes' architecture"},
    CodeText{"module-not-in-image", "finding", "the image does not have the module", "The name of the file and moduleName must agree.", "correct modprobe.moduleName or the image"},
    CodeText{"namespace-missing", "finding", "a module uses a symbol of a namespace that it does not import", "Kernels refuse that unless they were built to be lenient.",
             "add MODULE_IMPORT_NS to its source"},
    CodeText{"network", "finding", "a registry cannot be reached", "What depends on it stays unknown.", "look at name resolution, proxies and the registry"},
    CodeText{"no-modules", "error", "no Module with a moduleLoader was read", "", "read their documents"},
    CodeText{"no-platform", "finding", "the image is not there for the nodes' architecture", "", "build it for that platform"},
    CodeText{"no-symvers", "error", "there is no Module.symvers in the kernel headers", "", "name linux-headers-RELEASE or kernel-devel"},
    CodeText{"not-locked", "finding", "an image is not in the lock file", "", "remove the lock file to write it anew"},
    CodeText{"odd-parameter", "finding", "the kernel takes a parameter, perhaps otherwise than it is meant", "Of a bool it looks at the beginning only: 10 is y, none is n. Before Linux 5.19 it "
             "does not know true and false. Of a parameter that is given twice the last value stays. async_probe and dyndbg are the kernel's own.",
             "write y or n for a boolean, and each parameter once"},
    CodeText{"parser-crashed", "finding", "the process that parses the image crashed", "", "do not use the image, and report it: it may be an attack"},
    CodeText{"parser-killed", "finding", "the process that parses the image was killed", "", "see the kernel's log: usually memory ran out"},
    CodeText{"policy-unsupported", "finding", "the policy requires of an image what cannot be checked here", "GPG signatures, Fulcio and Rekor are not supported.",
             "require sigstoreSigned with keyPath for it"},
    CodeText{"preflight-bad-reference", "finding", "the image for a kernel has a name that no registry can have", "No worker Pod could start with it, on any node of that kernel.",
             "correct containerImage of the kernel mapping"},
    CodeText{"regexp-match", "reason", "a regexp of the kernel mappings is found in the kernel's version", "", ""},
    CodeText{"registry-auth", "finding", "the registry wants other credentials", "", "give --authfile, or put the Module's pull Secret into the input"},
    CodeText{"registry-blocked", "finding", "the mirror configuration forbids the registry and names no mirror for the image", "What depends on it stays unknown.",
             "correct the file of --mirror-config"},
    CodeText{"signature-format", "finding", "an image has a sigstore bundle as cosign 3 makes it, and no signature that is read here", "A worker with the same --policy or --signature-key refuses it.",
             "cosign sign --new-bundle-format=false --key KEY IMAGE"},
    CodeText{"signature-rejected", "finding", "no signature of an image is by an expected key, for this image and this name",
             "A worker with the same --policy or --signature-key refuses it.", "see the message; sign it, or correct the policy"},
    CodeText{"symbol-version-differs", "finding", "a module was built against another interface of the kernel, or of another module of the image",
             "The CRC of a symbol it uses differs from that of what exports it: structures or functions have changed.",
             "rebuild it against the headers of that kernel, and together with the modules it needs"},
    CodeText{"symbol-version-missing", "finding", "a module was built without the version of a symbol that it uses",
             "Whether it fits cannot be told: Debian's kernels refuse it, others complain and go on; one without any version is loaded by force only.",
             "build it with the Module.symvers of all that it needs, in KBUILD_EXTRA_SYMBOLS"},
    CodeText{"timeout", "error", "nothing came from a pipe within --timeout", "", "see that something writes to it, or give it more time"},
    CodeText{"toml-syntax", "error", "a mirror configuration is no TOML", "", "see the position in the message"},
    CodeText{"unknown-parameter", "finding", "the module has no such parameter", "The kernel ignores it silently, and the driver runs without it.",
             "correct modprobe.parameters"},
    CodeText{"unknown-symbol", "finding", "a module needs a symbol that nothing exports", "The kernel would refuse it.",
             "add the module that exports it to the image, or rebuild against that kernel"},
    CodeText{"unsigned-module", "finding", "a module is not signed", "Where signatures are enforced the kernel refuses it; elsewhere it is tainted.", "sign it with a key that the kernel trusts"},
    CodeText{"vermagic-differs", "finding", "a module was built for another kernel", "", "rebuild it against the headers of that kernel"},
    CodeText{"vermagic-not-checked", "finding", "the kernel's configuration is not known", "Only the release, the first word of vermagic, was compared.",
             "name the kernel's headers as a whole"},
    CodeText{"weak-digest", "finding", "a module is signed with MD5 or SHA-1", "Another module with the same digest can be made, and the signature fits it. With --sig-enforce "
             "that is an error.", "sign the module again with sha256 or sha512"},
};

}  // namespace

std::span<const CodeText> image_texts() noexcept { return k_image_texts; }

}  // namespace kmm::plan
