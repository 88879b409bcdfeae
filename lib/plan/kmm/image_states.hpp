// SPDX-License-Identifier: Apache-2.0
// What KMM itself has written down about the images of Modules: its ModuleImagesConfigs and ModuleBuildSignConfigs.
// Facts: KMM 11.1.
#pragma once

#include <map>
#include <string>
#include <string_view>

#include "api/types.hpp"

namespace kmm::plan {

/// KMM's word about one image of one Module.
struct ImageState {
    enum class Kind {
        unread,      ///< no ModuleImagesConfig of the Module was read
        unverified,  ///< there is one, and it does not say anything about the image so far
        exists,
        missing,     ///< DoesNotExist
        made,        ///< NeedsBuilding or NeedsSigning
    };
    Kind kind = Kind::unread;
    std::string word;           ///< as in the status, "" if there is none
    std::string failed_action;  ///< BuildImage or SignImage if the last one ended in Failure, else ""

    /// KMM writes an entry for the image. An unread state counts as one that exists.
    [[nodiscard]] bool is_usable() const { return kind == Kind::unread || kind == Kind::exists; }
};

/// Copies what it needs of the objects. Lookup is logarithmic.
class ImageStates {
public:
    explicit ImageStates(const api::Objects& objects);
    [[nodiscard]] ImageState find(std::string_view ns, std::string_view module, std::string_view image) const;
    [[nodiscard]] bool empty() const noexcept { return modules_.empty(); }

private:
    using Words = std::map<std::string, std::string, std::less<>>;  ///< by image
    struct Module {
        bool is_read = false;
        Words states, failures;
    };
    std::map<std::string, std::map<std::string, Module, std::less<>>, std::less<>> modules_;  ///< by namespace and name
};

}  // namespace kmm::plan
