// SPDX-License-Identifier: Apache-2.0
#include "cluster/folder/name_affixes.hpp"

namespace kmm::cluster {

NameAffixes NameAffixes::of(const value::Node& root) {
    return {root.get_string({"namePrefix"}), root.get_string({"nameSuffix"})};
}

void NameAffixes::add_outer(const NameAffixes& outer) {
    prefix.insert(0, outer.prefix);
    suffix += outer.suffix;
}

bool NameAffixes::renames(const value::Node& object) {
    const auto kind = object.get_string({"kind"});
    return object.get_string({"apiVersion"}) == "v1" && (kind == "ConfigMap" || kind == "Secret");
}

void NameAffixes::apply(value::Node& object) const {
    if (auto* items = object.find("items"); items != nullptr && object.get_string({"kind"}) == "List") {
        for (auto& item : items->items()) { apply(item); }
        return;
    }
    auto* metadata = object.find("metadata");
    auto* name = metadata == nullptr ? nullptr : metadata->find("name");
    if (name == nullptr || !name->is_string() || !renames(object)) { return; }
    const auto mark = name->mark();
    *name = value::Node(prefix + name->text() + suffix);
    name->set_mark(mark);
}

}  // namespace kmm::cluster
