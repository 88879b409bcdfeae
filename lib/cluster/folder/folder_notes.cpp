// SPDX-License-Identifier: Apache-2.0
#include "cluster/folder/folder_notes.hpp"

#include <cstddef>
#include <utility>

#include <fmt/format.h>

#include "base/counted.hpp"
#include "base/join_some.hpp"
#include "base/shell_word.hpp"

namespace kmm::cluster {

namespace {

constexpr std::size_t k_named_max = 4;

void note(Diagnostics& diagnostics, const char* code, const std::string& file, std::string message,
          std::string hint = "") {
    Diagnostic one;
    one.severity = Severity::note;
    one.code = code;
    one.message = std::move(message);
    one.hint = std::move(hint);
    one.position = Position{file, 0, 0};
    one.exit = Exit::data;
    diagnostics.push_back(std::move(one));
}

const char* was(const std::vector<std::string>& files) { return files.size() == 1 ? "was" : "were"; }

}  // namespace

std::string_view directory_part(std::string_view file) {
    const auto slash = file.rfind('/');
    return slash == std::string_view::npos ? std::string_view(".") : file.substr(0, slash);
}

void FolderNotes::report(Diagnostics& diagnostics) const {
    for (const auto& [chart, files] : left_out) {
        const std::string count = base::counted(files.size(), "file");
        if (chart.empty()) {
            note(diagnostics, "unknown-kind", files.front(),
                 fmt::format("{} without an object of Kubernetes {} not read: {}", count, was(files),
                             base::join_some(files, k_named_max)));
        } else {
            note(diagnostics, "unknown-kind", files.front(),
                 fmt::format("{} of a Helm chart {} not read", count, was(files)),
                 fmt::format("helm template {} | kmm-plan validate -f -", base::command_word(chart)));
        }
    }
    if (!templates.empty()) {
        note(diagnostics, "unknown-kind", templates.front(),
             fmt::format("{} of objects of kinds that KMM does not use {} not read: {}",
                         base::counted(templates.size(), "template"), was(templates),
                         base::join_some(templates, k_named_max)));
    }
    if (!compared.empty()) {
        note(diagnostics, "unknown-kind", compared.front(),
             fmt::format("{} of a reference for kubectl cluster-compare {} not read",
                         base::counted(compared.size(), "file"), was(compared)));
    }
    if (!parts.empty()) {
        note(diagnostics, "unknown-kind", parts.front(),
             fmt::format("{} that kustomize uses as {} not read", base::counted(parts.size(), "file"),
                         parts.size() == 1 ? "a patch or setting was" : "patches or settings were"));
    }
    for (const auto& [file, change] : patching) { diagnostics.push_back(not_followed(change)); }
    const auto command = [](const std::string& file) {
        return fmt::format("kubectl kustomize {} | kmm-plan validate -f -", base::command_word(directory_part(file)));
    };
    if (!not_built.empty()) {
        note(diagnostics, "kustomize-not-built", not_built.front(),
             fmt::format("{} with resources outside the directory that was read {} not built",
                         base::counted(not_built.size(), "kustomization"), was(not_built)),
             command(not_built.front()));
    }
    if (changing.empty()) { return; }
    const std::string& first = *changing.begin();
    note(diagnostics, "kustomize-not-built", first,
         fmt::format("{} {} objects of KMM, which were read without those changes",
                     base::counted(changing.size(), "kustomization"), changing.size() == 1 ? "changes" : "change"),
         command(first));
}

}  // namespace kmm::cluster
