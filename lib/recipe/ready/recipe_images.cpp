// SPDX-License-Identifier: Apache-2.0
// Asks registries for the images of recipes, and decides.
#include "recipe/ready/recipe_images.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "image/reference.hpp"
#include "preflight/images.hpp"
#include "recipe/ready/recipe_preflight.hpp"

namespace kmm::recipe::ready {

namespace {

preflight::RecipeImage image_question(const decide::DriverContainer& container) {
    preflight::RecipeImage question;
    question.reference = container.image;
    question.architecture = image_architecture(container.kernel);
    question.pull_secrets = container.pull_secrets;
    question.name_space = container.name_space;
    return question;
}

/// An image name that no registry can be asked for.
bool check_reference(const decide::DriverContainer& container, Diagnostics& findings) {
    try {
        static_cast<void>(image::parse_reference(container.image));
        return true;
    } catch (const Error& error) {
        findings.push_back({Severity::error, error.code(),
                            fmt::format("{}: image \"{}\": {}", container.name, container.image, error.message()),
                            container.origin, error.hint(), Exit::data});
        return false;
    }
}

}  // namespace

std::vector<decide::Decision> decide_recipes(const plan::RenderedRecipes& rendered,
                                             const files::RecipeDocuments& documents, const plan::Facts& facts,
                                             const cli::Args& args, cli::Context& context, Diagnostics& findings) {
    const auto containers = decide::driver_containers(rendered);
    std::vector<preflight::RecipeImage> questions;
    for (const auto& container : containers) {
        if (args.flag("check-images") && check_reference(container, findings)) {
            questions.push_back(image_question(container));
        }
    }
    if (has_errors(findings)) { throw Error::from_diagnostics(std::move(findings)); }
    const auto answers = questions.empty() ? std::map<std::string, preflight::ImageAnswer>()
                                           : preflight::ask_recipe_images(questions, documents.all, args, context);
    std::vector<decide::Decision> decisions;
    for (const auto& container : containers) {
        const auto answer = answers.find(image_question(container).key());
        auto presence = decide::Presence::not_asked;
        if (answer != answers.end()) {
            presence = !answer->second.reached               ? decide::Presence::unreachable
                       : has_errors(answer->second.findings) ? decide::Presence::absent
                                                             : decide::Presence::present;
            for (auto finding : answer->second.findings) {
                finding.position = container.origin;
                finding.severity = Severity::warning;  // the decision says what becomes of it
                findings.push_back(std::move(finding));
            }
        }
        decisions.push_back(decide::decide(container, presence, facts.update_vendor.value_or("")));
        if (answer != answers.end()) { decisions.back().digest = answer->second.digest; }
    }
    decide::wait_for_dependencies(decisions, documents.resources);
    sort_and_merge(findings);
    return decisions;
}

}  // namespace kmm::recipe::ready
