// SPDX-License-Identifier: Apache-2.0
#include "kmm-plan/plan_options.hpp"

#include <fmt/format.h>

#include "base/text.hpp"
#include "plan/version_labels.hpp"

namespace kmm::tool_plan {

std::vector<cli::Option> plan_option_list() {
    cli::Option next;
    next.name = "next";
    next.help = "only what the very next pass does";
    cli::Option missing;
    missing.name = "missing";
    missing.value_name = "REF";
    missing.help = "an image that is not in its registry, * and ? match any characters; all others are taken to exist";
    missing.repeatable = true;
    cli::Option version;
    version.name = "kmm-version";
    version.value_name = "VERSION";
    version.help = "KMM of the cluster, which decides the label keys: auto looks at labels and CRDs, or v2.6.0, main";
    version.default_text = "auto";
    return {next, missing, version};
}

plan::Options plan_options(const cli::Args& args, const Source& source) {
    plan::Options options;
    options.next = args.flag("next");
    options.missing_images = args.all("missing");
    const std::string version = args.get("kmm-version").value_or("auto");
    if (version != "auto") {
        options.schedule_key = plan::schedule_key_of(version);
        if (!options.schedule_key) {
            throw Error(Exit::usage, "bad-kmm-version",
                        fmt::format("option --kmm-version: expected auto, main or a version like v2.6.0, found \"{}\"",
                                    base::escape(version)))
                .hint("KMM has ordered upgrades since v2.0.0");
        }
    }
    return plan::complete(std::move(options), source.objects);
}

}  // namespace kmm::tool_plan
