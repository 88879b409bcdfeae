// SPDX-License-Identifier: Apache-2.0
// Adapter of simdjson's first stage.
#include "value/json_index.hpp"

#include <simdjson.h>

#include <bit>

#include "base/error.hpp"

namespace kmm::value {

static_assert(JsonIndex::k_padding >= simdjson::SIMDJSON_PADDING);

struct JsonIndex::Impl {
    std::unique_ptr<simdjson::internal::dom_parser_implementation> stage;
    std::string_view text;
    std::string scratch;
};

JsonIndex::JsonIndex() : impl_(std::make_unique<Impl>()) {}
JsonIndex::~JsonIndex() = default;

IndexState JsonIndex::index(std::string_view text) {
    constexpr std::size_t k_depth = 1;  // of the second stage, which is not used
    if (!impl_->stage || impl_->stage->capacity() < text.size()) {
        const auto failed = simdjson::get_active_implementation()->create_dom_parser_implementation(
            std::bit_ceil(text.size()), k_depth, impl_->stage);
        if (failed) throw bug("no memory for the index of a JSON text");
    }
    impl_->text = text;
    size_ = 0;
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(text.data());
    const auto error = impl_->stage->stage1(bytes, text.size(), simdjson::stage1_mode::regular);
    tokens_ = impl_->stage->structural_indexes.get();
    if (error == simdjson::UNCLOSED_STRING) return IndexState::open_string;
    if (error == simdjson::UTF8_ERROR) return IndexState::not_utf8;
    if (error != simdjson::SUCCESS && error != simdjson::EMPTY) return IndexState::bad;
    size_ = impl_->stage->n_structural_indexes;
    return IndexState::ok;
}

std::optional<std::string_view> JsonIndex::unescape(std::size_t offset) {
    auto& scratch = impl_->scratch;
    const auto room = impl_->text.size() - offset + k_padding;
    if (scratch.size() < room) scratch.resize(impl_->text.size() + k_padding);
    const auto* source = reinterpret_cast<const std::uint8_t*>(impl_->text.data()) + offset + 1;
    auto* start = reinterpret_cast<std::uint8_t*>(scratch.data());
    const auto* end = impl_->stage->parse_string(source, start);
    if (end == nullptr) return std::nullopt;
    return std::string_view(scratch.data(), static_cast<std::size_t>(end - start));
}

}  // namespace kmm::value
