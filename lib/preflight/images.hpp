// SPDX-License-Identifier: Apache-2.0
// Questions to registries: is an image there, and do its modules fit a kernel. With their options.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "api/types.hpp"
#include "base/error.hpp"
#include "cli/app.hpp"
#include "kernel/interface.hpp"
#include "kernel/signature.hpp"
#include "plan/kmm/resolve.hpp"

namespace kmm::preflight {

/// --check-images, --authfile, --ca-file, --insecure, --mirror-config, --policy, --signature-key.
[[nodiscard]] std::vector<cli::Option> registry_options();
/// Whom --policy and --signature-key are for: the questions to registries, or nodes that load images.
enum class PolicyUse { images, nodes };
/// For verbs that ask registries only with --check-images or one of `others`. Errors: usage "missing-option" for
/// --authfile, --ca-file, --insecure, --mirror-config, and a policy of `images`, on the command line without one of
/// these: no registry would be asked, and no signature checked.
void require_question(const cli::Args& args, const std::vector<std::string>& others = {},
                      PolicyUse policy = PolicyUse::images);

enum class Depth {
    manifest,  ///< the image and its platform are there
    modules,   ///< pulled, and its modules judged
};

/// What kernels are taken to trust.
struct Trusted {
    std::vector<kernel::Certificate> certificates;
    bool enforced =
        false;  ///< modules without a trusted signature are refused, whatever the kernel's configuration says
};

/// --cert and --sig-enforce.
[[nodiscard]] std::vector<cli::Option> signature_options();
/// Errors: those of kernel::read_certificates.
[[nodiscard]] Trusted read_trusted(const cli::Args& args);

/// One module file of an image.
struct SignedFile {
    std::string module, path;  ///< path inside the image
    kmod::ModuleSignature signature;
    kernel::SignatureCheck check;
};

/// One question. Equal questions (see key()) are asked once.
struct ImageQuestion {
    const api::Module* module = nullptr;
    const plan::Resolved* resolved = nullptr;
    std::string architecture;
    const kernel::Interface* interface = nullptr;  ///< may be nullptr
    Depth depth = Depth::manifest;
    const Trusted* trusted = nullptr;              ///< must be there for Depth::modules

    [[nodiscard]] std::string key() const;
};

struct ImageAnswer {
    std::string digest;     ///< of what the reference names, "" if it was not found out
    Diagnostics findings;   ///< with the registry's refusal as an error, if there was one
    std::vector<SignedFile> files;  ///< with Depth::modules: every module of the image for that kernel, by name
    std::size_t symbols = 0;  ///< how many symbols of its modules do not fit the interface
    bool reached = false;   ///< false: the registry could not be asked, the answer is unknown
    bool is_open = false;   ///< whether its modules fit cannot be said
    bool is_judged = false; ///< its modules were looked at
};

/// Asks all questions, eight at a time, and answers by key. Credentials: the Module's pull Secret if `objects` have it,
/// then
/// --authfile or the usual places. Errors: interrupted; data for a bad authentication file.
[[nodiscard]] std::map<std::string, ImageAnswer> ask_registries(const std::vector<ImageQuestion>& questions,
                                                                const api::Objects& objects, const cli::Args& args,
                                                                cli::Context& context);

/// A question about the image of a recipe.
struct RecipeImage {
    std::string reference;
    std::string architecture;                ///< "amd64", "" for any
    std::vector<std::string> pull_secrets;   ///< names of Secrets in `name_space`
    std::string name_space;
    std::string kernel;                      ///< "": is the image there; else its modules for this kernel are judged:
    const kernel::Interface* interface = nullptr;  ///< do they fit this other kernel

    [[nodiscard]] std::string key() const;
};

/// Answers by key, as ask_registries. The modules of an image fit if `findings` has no error: all of them, with what
/// they export to each other. Mirrors: sets among `documents`, then --mirror-config; pull Secrets are among
/// `documents`. A tag that no mirror serves, where there are mirrors, is a warning "tag-not-mirrored". Errors: those of
/// image::read_mirror_sets.
[[nodiscard]] std::map<std::string, ImageAnswer> ask_recipe_images(const std::vector<RecipeImage>& questions,
                                                                   const std::vector<value::Document>& documents,
                                                                   const cli::Args& args, cli::Context& context);

}  // namespace kmm::preflight
