// SPDX-License-Identifier: Apache-2.0
#include "plan/kmm/image_states.hpp"

namespace kmm::plan {

ImageStates::ImageStates(const api::Objects& objects) {
    for (const auto& config : objects.module_images_configs) {
        Module& module = modules_[config.meta.namespace_][config.meta.name];
        module.is_read = true;
        module.states.insert(config.states.begin(), config.states.end());
    }
    for (const auto& config : objects.module_build_sign_configs) {
        for (const auto& result : config.results) {
            if (result.status != "Failure") { continue; }
            modules_[config.meta.namespace_][config.meta.name].failures[result.image] = result.action;
        }
    }
}

ImageState ImageStates::find(std::string_view ns, std::string_view module, std::string_view image) const {
    ImageState state;
    const auto space = modules_.find(ns);
    if (space == modules_.end()) { return state; }
    const auto found = space->second.find(module);
    if (found == space->second.end()) { return state; }
    const Module& known = found->second;
    if (const auto failure = known.failures.find(image); failure != known.failures.end()) {
        state.failed_action = failure->second;
        state.kind = ImageState::Kind::missing;
    }
    const auto word = known.states.find(image);
    if (word != known.states.end()) { state.word = word->second; }
    if (state.word == "Exists") {
        state.kind = ImageState::Kind::exists;
        state.failed_action.clear();
    } else if (state.kind == ImageState::Kind::missing || state.word == "DoesNotExist") {
        state.kind = ImageState::Kind::missing;
    } else if (!state.word.empty()) {
        state.kind = ImageState::Kind::made;
    } else if (known.is_read) {
        state.kind = ImageState::Kind::unverified;
    }
    return state;
}

}  // namespace kmm::plan
