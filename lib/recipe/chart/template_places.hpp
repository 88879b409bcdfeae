// SPDX-License-Identifier: Apache-2.0
// The files that templates are in: Helm names a template by the chart's name, whatever the directory's is.
#pragma once

#include <map>
#include <string>

#include "base/error.hpp"

namespace kmm::recipe::chart {

/// Leads from names of templates to their files.
class TemplatePlaces {
public:
    /// `file` as messages name it; "" leaves the template's name.
    void add(const std::string& name, const std::string& file) {
        if (!file.empty()) { files_.insert_or_assign(name, file); }
    }
    /// `place`, whose file is the name of a template, in the template's file.
    [[nodiscard]] Position file(Position place) const {
        if (const auto found = files_.find(place.file); found != files_.end()) { place.file = found->second; }
        return place;
    }

private:
    std::map<std::string, std::string> files_;
};

}  // namespace kmm::recipe::chart
