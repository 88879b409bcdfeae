// SPDX-License-Identifier: Apache-2.0
// Parts of the decoder of SpecialResources. Internal to this room.
#pragma once

#include "api/fields.hpp"
#include "recipe/resource/resource.hpp"

namespace kmm::recipe::plan {

/// Where the values of a document stand, by path.
void note_places(const value::Node& node, const std::string& path, const value::Document& document,
                 std::map<std::string, Position, std::less<>>& places);
/// `name` stands at `key` of `owner` and is that of a SpecialResource. Fault: "bad-value".
void check_name(const api::Fields& owner, std::string_view key, const std::string& name);
/// Name, uid and what else metadata may have.
void decode_metadata(api::Fields& root, SpecialResource& resource);
/// Reads a chart reference; `written` is what templates see of it.
[[nodiscard]] ChartReference decode_chart(api::Fields& chart, tmpl::Value& written);
/// Free values; nil if they are absent.
[[nodiscard]] tmpl::Value decode_set(api::Fields& owner, std::string_view key);
/// spec as templates see it; the other fields go into `resource`.
[[nodiscard]] tmpl::Value decode_spec_v1beta1(api::Fields& spec, SpecialResource& resource);
[[nodiscard]] tmpl::Value decode_spec_v1alpha1(api::Fields& spec, SpecialResource& resource);

}  // namespace kmm::recipe::plan
