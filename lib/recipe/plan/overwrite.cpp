// SPDX-License-Identifier: Apache-2.0
#include "recipe/plan/overwrite.hpp"

#include <fmt/format.h>

namespace kmm::recipe::plan {

std::string copies_differ(const std::string& object, const std::string& kernel, const std::string& other) {
    return fmt::format("{}: the copies for kernels {} and {} have one name and differ", object, kernel, other);
}

OverwriteTexts overwrite_texts(const std::string& object, const RecipeObject& before, const Copy& before_copy,
                               const Copy& made, const Position& origin) {
    const bool is_same_file = before.origin == origin;
    if (is_same_file && before_copy.release != made.release) {
        const std::string of_kernel =
            before_copy.kernel == made.kernel ? fmt::format(", both with kernel {},", made.kernel) : "";
        return {fmt::format("{}: the copies for releases {} and {}{} have one name and differ", object,
                            before_copy.release, made.release, of_kernel),
                "put .Values.openShiftVersion into its name, or leave out of it what differs"};
    }
    if (is_same_file && before_copy.kernel != made.kernel) {
        return {copies_differ(object, before_copy.kernel, made.kernel),
                "annotate it with specialresource.openshift.io/kernel-affine: \"true\", or put "
                ".Values.kernelFullVersion into its name"};
    }
    return {fmt::format("{} replaces the one of {}, which differs", object, before.state),
            "give one of them another name"};
}

}  // namespace kmm::recipe::plan
