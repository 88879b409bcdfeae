// SPDX-License-Identifier: Apache-2.0
// Findings about documents and clusters. Numbers of rules are those of KMM's admission webhook in the order in which it
// tries them (facts: KMM 10.1, 10.2).
#include <array>

#include "plan/codes/codes.hpp"

namespace kmm::plan {

namespace {

constexpr std::array k_finding_texts{
    // Text and documents.
    CodeText{"bad-alias", "finding", "a YAML alias cannot be expanded", "It names no anchor, or contains itself.",
             "write the value out"},
    CodeText{"bad-key", "finding", "a key is not plain text", "Kubernetes reads YAML as JSON, whose keys are strings.",
             "write the key as text"},
    CodeText{"bad-merge", "finding", "a YAML merge key (<<) cannot be read in one way",
             "It takes a mapping or a list of mappings. A key of the mapping itself wins; where it stands before the "
             "<<, readers of YAML differ.",
             "put << first, with an alias of a mapping"},
    CodeText{"bad-number", "finding", "a number that JSON cannot hold",
             "Kubernetes reads YAML as JSON, which has neither .inf nor .nan.",
             "put it in quotes if it is meant as text"},
    CodeText{"bad-tag", "finding", "a YAML tag that is not read, or does not fit its value", "", "remove the tag"},
    CodeText{"bad-value", "finding", "a value that the field does not take", "", "the message names what was expected"},
    CodeText{"document-limit", "finding", "the document is over a limit against hostile input",
             "Limits are on bytes, depth and the number of values after aliases are expanded.", "split the file"},
    CodeText{"duplicate-key", "finding", "a key stands twice in one mapping",
             "YAML readers keep the first, the last, or refuse; the API server refuses.", "remove one of the two"},
    CodeText{"duplicate-object", "finding", "two documents define the same object",
             "The first one counts; both are checked. Where they are in different directories, as in a tree with a "
             "directory for each cluster, validate makes it a warning.",
             "remove one of the two, or read each cluster's directory by itself"},
    CodeText{"file-not-found", "finding", "a file that was named does not exist", "", "correct the name"},
    CodeText{"file-too-large", "finding", "a file is larger than any document of a cluster", "",
             "name the right file, or split it"},
    CodeText{"json-syntax", "finding", "the text is not JSON", "The reader is strict: no comments, no trailing commas.",
             "correct it at that place"},
    CodeText{"kustomize-not-built", "finding", "a kustomization changes objects of KMM that were read",
             "Files below a directory are read as they stand: patches of kustomize, Flux and Argo CD are left out, "
             "their namespace and values of variables count. validate says so as a note, verbs that plan as a warning.",
             "give the verb what the command in the hint prints"},
    CodeText{"link-leaves", "finding", "a link leads out of the directory that is read",
             "It is not followed: whoever writes into that directory would choose which files of this machine are "
             "read or written. Links that stay in the directory are followed.",
             "name what it leads to with -f, too, or remove the link"},
    CodeText{"missing-field", "finding", "a required field is missing",
             "The CRD, or Kubernetes' own schema, requires it: the API server refuses the object. Of Pods, Secrets "
             "and others that KMM does not define a missing namespace is a note: they are left out.",
             "add the field"},
    CodeText{"no-documents", "finding", "the directory, a named file or standard input has no documents",
             "Of a directory only *.yaml, *.yml and *.json are read. A named file or standard input that is empty is "
             "an error: mostly the command that was to fill it has failed.",
             "name another directory; look how that command ended"},
    CodeText{"no-objects", "finding", "nothing that was read can be validated",
             "Comments alone, an empty directory, or only kinds that KMM does not use: that nothing is wrong with "
             "them says nothing.",
             "name the files with the Modules; look whether the command before a pipe made any"},
    CodeText{"not-utf8", "finding", "the file is not UTF-8", "", "save it as UTF-8"},
    CodeText{"object-not-named", "finding", "objects with faults that nothing of KMM names",
             "Repositories hold Secrets, ConfigMaps, Namespaces and Pods of other programs, and examples of them. "
             "KMM looks at those alone that a Module names. Of files that -f names where no Module was read, and of "
             "objects that a server gave, each fault is reported.",
             "nothing; kubectl apply --dry-run=server -f FILE checks any object"},
    CodeText{"one-object-per-file", "finding", "a file of a directory cluster has several objects",
             "Objects of a directory cluster are written back one by one.",
             "put each object into a file of its own, or read it with -f"},
    CodeText{"symlink-loop", "finding", "a link leads back into the directory", "", "remove the link"},
    CodeText{"unknown-api-version", "finding", "the kind does not exist in that version", "The object was not read.",
             "write the version that the message names"},
    CodeText{"unknown-field", "finding", "the kind has no such field",
             "The API server drops unknown fields with a warning at most, so a typing error has no effect and no "
             "error. Of Nodes that a server gave out (they have a uid) it is a note: they are of a later Kubernetes.",
             "correct the name; the hint has the nearest one"},
    CodeText{"unknown-kind", "finding", "a document of a kind that is not read", "It has no influence on the plan.",
             "nothing, unless the kind is misspelt"},
    CodeText{"unreadable-file", "finding", "a file could not be read", "", "look at its permissions"},
    CodeText{"wrong-type", "finding", "a value has another type than the field",
             "For example a number or true where text is expected.",
             "put numbers and words like yes or true in quotes where text is meant"},
    CodeText{"yaml-syntax", "finding", "the text is not YAML", "", "correct it at that place"},

    // Rules of KMM's webhook.
    CodeText{"version-toggled", "finding", "a version is added to a Module or removed from it",
             "Rule 1: ordered upgrade cannot be switched on or off for a Module that exists.",
             "delete the Module and create it again"},
    CodeText{"name-too-long", "finding", "name and namespace are too long together",
             "Rule 2: label keys of nodes contain both. The limit is 40 characters up to KMM v2.6.0 and 41 later.",
             "shorten one of them"},
    CodeText{"toleration-key", "finding", "a toleration's key is not a taint key", "Rule 3.", "write [PREFIX/]NAME"},
    CodeText{"toleration-operator", "finding", "a toleration's operator does not fit",
             "Rules 4 and 6: the operator is Equal or Exists; without a key it must be Exists.",
             "correct the operator, or add the key"},
    CodeText{"toleration-seconds", "finding", "tolerationSeconds without effect NoExecute", "Rule 5.",
             "remove tolerationSeconds, or write effect: NoExecute"},
    CodeText{"toleration-value", "finding", "a toleration's value does not fit",
             "Rule 6: with Exists there is none, with Equal it is a label value.", "correct or remove the value"},
    CodeText{"toleration-effect", "finding", "no such taint effect", "Rule 7.",
             "write NoSchedule, PreferNoSchedule or NoExecute"},
    CodeText{"dra-kubernetes-version", "finding", "the cluster is too old for spec.dra",
             "Rule 8: DRA needs Kubernetes 1.34. Checked if --kubernetes-version is given.", "use spec.devicePlugin"},
    CodeText{"dra-driver-name", "finding", "driverName is not a DNS subdomain", "Rule 9.",
             "write it like driver.example.org"},
    CodeText{"dra-device-class", "finding", "a device class has no usable name", "Rule 10: a DNS subdomain, each once.",
             "rename the device class"},
    CodeText{"host-path", "finding", "a hostPath outside the directories that KMM allows",
             "Rule 11, since v2.7: the cleaned path is /dev, /sys, /var, /opt or /run, or below one of them.",
             "use one of these directories"},
    CodeText{"in-tree-both", "finding", "inTreeModulesToRemove and inTreeModuleToRemove are both set",
             "Rules 12, 19 and 20: the list and the deprecated single name exclude each other, also across container "
             "and mapping.",
             "keep inTreeModulesToRemove"},
    CodeText{"image-untagged", "finding", "an image has neither tag nor digest",
             "Rules 13 and 18, since v2.2: the name must contain ':' or '@'.", "add :TAG or @sha256:DIGEST"},
    CodeText{"mapping-ambiguous", "finding", "a kernel mapping has a literal and a regexp", "Rule 14.",
             "make two mappings of it"},
    CodeText{"mapping-empty", "finding", "a kernel mapping has neither literal nor regexp", "Rule 15.",
             "add one; regexp: '^.+$' matches every kernel"},
    CodeText{"bad-regexp", "finding", "a kernel mapping's regexp cannot be compiled",
             "Rule 16: the syntax is RE2's, as in Go.", "correct the regexp"},
    CodeText{"missing-image", "finding", "neither the mapping nor the container has an image", "Rule 17.",
             "set containerImage"},
    CodeText{"raw-args-with-name", "finding", "rawArgs and moduleName are both set",
             "Rule 21: rawArgs is the whole command line of modprobe.", "remove one; args adds to what KMM passes"},
    CodeText{"raw-args-alone", "finding", "rawArgs without what the image needs, or with what has no effect",
             "KMM passes rawArgs to modprobe as they are: without module parameters and without the directory that "
             "the image was copied to.",
             "set moduleName, or write the whole command line"},
    CodeText{"raw-args-missing", "finding", "neither moduleName nor both rawArgs are set", "Rule 22.",
             "set moduleName"},
    CodeText{"loading-order", "finding", "modulesLoadingOrder is not usable",
             "Rule 23: at least two different modules, the first being moduleName, which is loaded last. KMM takes "
             "any text for a name, and modprobe then finds no such module.",
             "correct the list"},
    CodeText{"sign-files", "finding", "filesToSign is empty or leaves the image's directory",
             "Rule 24, since v2.6: on every level that has sign, filesToSign has an entry, and each begins with "
             "modprobe.dirName and a slash.",
             "write whole paths below dirName"},
    CodeText{"null-dropped", "finding", "an entry of a map has no value, and the API server drops it",
             "A selector without the entry chooses more nodes than it looks like: with none left, every node.",
             "write a value, \"\" for an empty one, or remove the line"},
    CodeText{"plugins-exclusive", "finding", "spec.dra and spec.devicePlugin are both set", "The CRD forbids it.",
             "keep one of them"},
    CodeText{"namespace-has-modules", "finding", "a Namespace with Modules is being deleted",
             "KMM's webhook refuses the deletion as long as the Namespace has the label "
             "kmm.node.k8s.io/contains-modules; where that webhook is off, the deletion waits for the Modules.",
             "delete its Modules first"},
    CodeText{"preflight-kernel", "finding", "kernelVersion of a PreflightValidation is not a kernel version",
             "It must have three parts between '.', ',' and '-'.", "write it as uname -r prints it"},

    // What KMM admits, and what then goes wrong.
    CodeText{"bad-selector", "finding", "a selector that no node can match",
             "Its key or value is not what Kubernetes allows in labels.", "correct it"},
    CodeText{"bad-template", "finding", "the image template cannot be read", "KMM fails on it for every node.",
             "a variable is $NAME, ${NAME} or ${NAME:-default}; $$ is a dollar sign"},
    CodeText{"unknown-template-variable", "finding", "the image template uses a variable that KMM does not have",
             "KMM puts nothing in its place and asks for the image that is left. Its variables are "
             "KERNEL_FULL_VERSION, KERNEL_VERSION, KERNEL_XYZ, KERNEL_X, KERNEL_Y, KERNEL_Z, MOD_NAME and "
             "MOD_NAMESPACE.",
             "correct the name; the hint has the nearest one"},
    CodeText{"bad-version", "finding", "the version is not a label value", "KMM writes it into labels and fails there.",
             "use at most 63 letters, digits, '-', '_' and '.'"},
    CodeText{"dotted-name", "finding", "a dot in the name of a Module with a version",
             "KMM takes name and namespace out of label keys, where they are joined with a dot.",
             "use '-' instead of '.'"},
    CodeText{"module-name", "finding", "moduleName cannot be the name of a module",
             "KMM takes any text, and hands it to modprobe, which finds no such module; kmm-worker refuses it.",
             "write the module's name, which is that of its file without .ko"},
    CodeText{"dir-name", "finding", "dirName is not absolute, leads out of the image, or is below /tmp",
             "KMM copies from the image's working directory, which is the root unless the image sets another, to a "
             "volume at /tmp.",
             "begin it with '/', and let no .. lead above the root"},
    CodeText{"firmware-path", "finding", "firmwarePath is not absolute, leads out of the image, or is below /tmp",
             "KMM copies from the image's working directory, which is the root unless the image sets another, to a "
             "volume at /tmp.",
             "begin it with '/', and let no .. lead above the root"},
    CodeText{"modprobed-dir", "finding", "modprobedDir is not absolute, not in plain form, or is below /tmp",
             "Since v2.7 KMM refuses a path that is not absolute and well-formed. Its worker Pods with the field are "
             "privileged, and fail if the image has no such directory, no regular file in it, or a directory in it.",
             "write the path of the directory as it is in the image"},
    CodeText{"pull-policy", "finding", "imagePullPolicy is not Always, IfNotPresent or Never",
             "KMM takes any word; Pods with it are refused, so nothing is ever loaded.",
             "write Always, IfNotPresent or Never"},
    CodeText{"plugin-refused", "finding", "a device plugin or DRA driver breaks a rule of Kubernetes for Pods",
             "KMM admits the Module, and asks for a DaemonSet that an API server with these rules does not take: "
             "names of volumes, variables and resources, mounts, paths, requests and limits. Nothing but the "
             "operator's log shows it. The rules were read in Kubernetes' source, not tried on a server, and other "
             "versions may have others.",
             "correct what the message names; kmm-plan render device-plugin (or dra) gives the DaemonSet, and "
             "kubectl apply --dry-run=server -f - asks a server"},
    CodeText{"pull-pod-taints", "finding", "no node takes the Pods that look whether images exist",
             "KMM v2.4 to v2.6 makes them without the Module's tolerations. Where every Node has a taint with "
             "NoSchedule or NoExecute they stay Pending: the image counts as not looked at, and no worker Pod is made.",
             "leave one node without such a taint, or use a later KMM"},
    CodeText{"literal-impossible", "finding", "a literal that no kernel version can be equal to",
             "A literal is compared byte by byte: patterns, blanks and versions with fewer than three parts match "
             "nothing.",
             "write it as uname -r prints it, or write a regexp"},
    CodeText{"literal-plus", "finding", "a literal that ends with '+' never matches",
             "KMM drops one trailing '+' of the kernel version before it compares.", "write it without the '+'"},
    CodeText{"mapping-unreachable", "finding", "an earlier kernel mapping takes everything this one would",
             "The first match in list order wins; a literal has no priority over a regexp.",
             "move the mapping up, or remove it"},
    CodeText{"module-conflict", "finding", "two Modules load the same kernel module on a node",
             "The second finds it loaded and reports success, whatever build that is; one being deleted takes it "
             "from the other. A name in modulesLoadingOrder counts, too: unloading unloads all of them.",
             "let their selectors exclude each other"},
    CodeText{"bad-unload-policy", "finding", "the annotation kmmtools.dev/unload-policy has an unknown value", "",
             "write always, on-delete or never"},
    CodeText{
        "regexp-impossible", "finding", "a regexp that no kernel version can match",
        "It has a blank, a quotation mark or a character beyond ASCII: often quotes within quotes, or curly ones of "
        "a word processor. Or something stands before '^' or behind '$'.",
        "write it without them"},
    CodeText{"regexp-unanchored", "finding", "a regexp of a kernel mapping matches more than it seems",
             "KMM searches for it anywhere in the kernel version: 6.1 is found in 5.16.1, and ^6.1.0-5 in 6.1.0-56.",
             "write '^' before and '$' after it, or what follows the number"},
    CodeText{"regexp-bare-dot", "finding", "a '.' between digits of a regexp stands for any character", "",
             "write [.] for a dot"},
    CodeText{"regexp-plus", "finding", "a '+' of a regexp repeats what stands before it",
             "Kernels for real time, of large pages and for debugging have names like 5.14.0-427.el9.x86_64+rt: "
             "there the '+' is meant as it is.",
             "write [+]"},
    CodeText{"sign-same-image", "finding", "unsignedImage and containerImage are the same image",
             "KMM looks whether containerImage exists, and signs only if it does not.",
             "give the signed image another tag"},
    CodeText{"image-kernels", "finding", "one image is used for several kernels",
             "KMM builds or signs an image once, for the first kernel that asks for it; nodes with another kernel "
             "find no modules in it. A note if KMM does not make the image: it may hold the modules of each.",
             "put ${KERNEL_FULL_VERSION} into the tag"},
    CodeText{"image-architectures", "finding", "one image is built or signed for nodes of several architectures",
             "The build or sign Pod runs on any node, and the image is of that node's architecture.",
             "make one Module for each architecture, with an image of its own, and kubernetes.io/arch in "
             "spec.selector and in build.selector"},
    CodeText{"image-shared", "finding", "two Modules make one image in different ways",
             "KMM builds or signs what does not exist: the Module that comes first makes the image, and the other "
             "one takes it as it is.",
             "give each Module an image of its own, as with ${MOD_NAME} in the tag"},
    CodeText{"configs-missing", "finding", "a Node has the label of a loaded module and no NodeModulesConfig",
             "What is loaded stands in the status of NodeModulesConfigs; without them each module counts as not "
             "loaded. The labels also stay on nodes when KMM is removed.",
             "read NodeModulesConfigs with the rest: kubectl get nodes,modules,nodemodulesconfigs -A -o json"},
    CodeText{"label-unknown", "finding", "a label looks like one of KMM or of Pod security but is not",
             "On Nodes KMM looks for kmm.node.kubernetes.io/version-module.NAMESPACE.NAME and the labels that it sets "
             "itself, on Namespaces for kmm.node.k8s.io/contains-modules; Kubernetes looks there for "
             "pod-security.kubernetes.io/enforce. All others have no effect.",
             "correct the key as the hint says"},
    CodeText{
        "pod-security", "finding", "a Namespace refuses the Pods of its Modules",
        "Worker Pods need host paths and the capability SYS_MODULE, which the levels baseline and restricted do not "
        "allow.",
        "label the Namespace pod-security.kubernetes.io/enforce=privileged; kmm-plan render namespace writes that"},
    CodeText{"newer-field", "finding", "a field that the last release of KMM does not have",
             "It is one of KMM's branch main. A cluster with a released KMM refuses the object, or drops the field.",
             "leave it out, or give --kmm-version main if that is what runs"},
    CodeText{"kmm-version-later", "finding", "--kmm-version names a later release than those that are known",
             "The fields and rules of main are taken for it.", "nothing, or a later kmm-plan"},
    CodeText{"operator-config", "finding", "a file is the configuration of KMM's operator, or its ConfigMap lacks it",
             "The operator reads the key controller_config.yaml of ConfigMap kmm-operator-manager-config, and "
             "ignores the whole text if it has a fault.",
             "kmm-plan render --operator-config FILE uses it"},
    CodeText{"bad-reference", "finding", "an image name is not valid",
             "KMM takes any text; the container runtime refuses it (InvalidImageName), so nothing is ever loaded.",
             "write REGISTRY/REPOSITORY:TAG or @sha256:DIGEST; repositories are lower case"},
    CodeText{"image-port-tag", "finding", "an image without tag, hidden by a registry's port",
             "KMM's webhook looks for ':' or '@' anywhere in the name, so host:5000/image passes, and the registry's "
             "default tag is pulled.",
             "add a tag or a digest"},
    CodeText{"image-by-tag", "finding", "an image is named by a tag",
             "A tag can come to mean another image; nodes then run different builds under one name, and KMM does not "
             "notice. Images that KMM builds or signs, and those with a variable in their name, cannot have a digest.",
             "name it by digest"},
    CodeText{"path-characters", "finding", "a path has characters that a shell reads",
             "The operator copies files with an unquoted shell command; kmm-worker and our manifests quote.",
             "use letters, digits and / . _ - only"},
    CodeText{"path-variable", "finding", "a path has a variable",
             "KMM replaces KERNEL_FULL_VERSION and its like in names of images, not in dirName and firmwarePath; a "
             "directory of that name is in no image.",
             "write the path as it is in the image"},
    CodeText{"dirname-modules", "finding", "dirName leads to the modules themselves",
             "modprobe -d DIRNAME looks for DIRNAME/lib/modules/KERNEL. A dirName of /opt/lib/modules/KERNEL makes "
             "it look for /opt/lib/modules/KERNEL/lib/modules/KERNEL, which is in no usual image.",
             "write what stands before /lib/modules: /opt, or /"},
    CodeText{"sign-outside", "finding", "a file to sign lies outside its directory",
             "KMM compares the beginning of the path only.", "write the path without '..'"},
    CodeText{"kernel-unmapped", "finding", "no kernel mapping matches a kernel of the fleet",
             "The nodes are selected, but get nothing; what is loaded there is unloaded.",
             "add a kernel mapping, or leave the nodes out of the selector"},
    CodeText{"secret-unknown", "finding", "a Module names a Secret that is not there",
             "Other Secrets of its namespace were read and this one was not, it was read in another namespace, or "
             "the API server does not have it. Without imageRepoSecret images are pulled without a login; build and "
             "sign Pods do not start without theirs.",
             "add the Secret, or correct the name"},
    CodeText{"secret-key", "finding", "a Secret lacks the key that KMM mounts",
             "sign.certSecret needs cert, sign.keySecret needs key, and imageRepoSecret needs .dockerconfigjson, "
             "with the type kubernetes.io/dockerconfigjson: kubelets ignore a login in a Secret of another type.",
             "make the Secret with that key and type"},
    CodeText{"config-map-unknown", "finding", "a Module names a ConfigMap that is not there",
             "Other ConfigMaps of its namespace were read and this one was not, or it was read in another namespace. "
             "The build Pod does not start without it.",
             "add the ConfigMap, or correct the name"},
    CodeText{"config-map-key", "finding", "a ConfigMap lacks the key dockerfile",
             "KMM mounts that key as the build's Dockerfile. The build Pod does not start without it.",
             "kubectl create configmap NAME -n NAMESPACE --from-file=dockerfile=Dockerfile --dry-run=client -o yaml | "
             "kubectl apply -f -"},
    CodeText{"kernel-plus", "finding", "a kernel whose version ends with '+' on a node where something is to be loaded",
             "KMM drops one '+' for matching, tags and the directory it copies; modprobe looks under the real name.",
             "put a directory of each name into the image, or a link"},
    CodeText{
        "label-key-leftover", "finding", "a node has the version label of another KMM",
        "KMM up to v2.6.0 writes version-device-plugin, later ones version-schedule-pod. Nothing migrates: the "
        "DaemonSet of the old key keeps running beside the new one.",
        "remove the old label from the node"},
    CodeText{"label-collision", "finding", "two Modules share one state of version labels",
             "KMM keeps it by NAMESPACE-NAME.", "rename one"},
    CodeText{"cordon-unloads", "finding", "a taint unloads a driver that is in use",
             "KMM looks at taints on every pass, and a cordon is a taint: the driver is unloaded under the Pods that "
             "use it, or the unloader fails until they are gone.",
             "tolerate the taint, or annotate the Module with kmmtools.dev/unload-policy: on-delete"},
    CodeText{"cordon-loses-version", "finding", "a tainted node loses a version that does not come back",
             "The Module has moved on and the node's label has not, so nothing is loaded when the taint goes.",
             "move the node's version label"},
    CodeText{"in-tree-needed", "finding", "a Module removes a kernel module that another Module loads", "",
             "let their selectors exclude each other"},
    CodeText{"missing-unmatched", "finding", "--missing names no image of the plan", "",
             "correct the name; * and ? match any characters"},
    CodeText{"bad-needs", "finding", "the annotation kmmtools.dev/needs cannot be read", "",
             "write NAMESPACE/NAME,NAMESPACE/NAME"},
    CodeText{"needs-unknown", "finding", "a Module needs one that was not read", "",
             "correct the annotation, or add the Module to the input"},
    CodeText{"needs-cycle", "finding", "Modules need each other in a circle", "None of them could be loaded first.",
             "remove one of the needs"},
    CodeText{"module-needed", "finding",
             "a Module cannot be upgraded on a node: another one that is loaded there needs it",
             "The annotation kmmtools.dev/needs wants what needs a Module to be unloaded before it and loaded after "
             "it; an upgrade walks one Module.",
             "unload the other Module on the node first, and load it after the upgrade"},
    CodeText{"module-renamed", "finding", "a Module names another kernel module than the one that is loaded for it",
             "An upgrade covers one kernel module: the other one would stay loaded. KMM's operator unloads it "
             "(kmm-upgrade start --via operator).",
             "delete the Module and apply that first; then create it with the other moduleName"},
    CodeText{"needs-not-loaded", "finding", "what a Module needs is not loaded on its node", "",
             "ask kmm-plan why about the other Module"},
    CodeText{"kernel-unknown", "finding", "a Node does not say which kernel it runs", "Nothing can be decided for it.",
             "set status.nodeInfo.kernelVersion"},
    CodeText{"kernel-unparsable", "finding",
             "a kernel version is not possible, or has fewer than three parts",
             "It must be 1 to 64 printable characters without spaces and '/', no dot in front, and template "
             "variables must come out of it.",
             "correct status.nodeInfo.kernelVersion"},
    CodeText{"differs", "finding", "an object differs from what the plan renders",
             "diff found a field that KMM, or an upgrade, would change.",
             "nothing if the change is wanted; kmm-plan why shows where it comes from"},
    CodeText{"node-missing", "finding", "a NodeModulesConfig without Node",
             "It is named like its node; without the Node nothing is planned for it.", "add the Node to the input"},
    CodeText{"selects-no-node", "finding", "a Module selects none of the Nodes that were read",
             "KMM compares both key and value of each label of spec.selector. It is a warning where a label looks "
             "misspelt, else a note: the nodes may get the label later.",
             "correct spec.selector, or label the nodes"},
    CodeText{"node-not-linux", "finding", "a Module selects a node of another operating system",
             "KMM does not look at the operating system: it makes worker Pods for such nodes, which never run.",
             "add kubernetes.io/os: linux to spec.selector"},
};

}  // namespace

std::span<const CodeText> finding_texts() noexcept { return k_finding_texts; }

}  // namespace kmm::plan
