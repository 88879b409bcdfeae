// SPDX-License-Identifier: Apache-2.0
#include "sandbox/message.hpp"

#include <algorithm>
#include <cstring>

#include "base/exit_code.hpp"

namespace kmm::sandbox {

namespace {

constexpr std::size_t k_code_bytes = 64;
constexpr std::size_t k_text_bytes = 64U << 10U;
constexpr std::size_t k_texts = 64;

std::string printable(std::string text) {
    const auto is_control = [](char c) { return (static_cast<unsigned char>(c) < 0x20U && c != '\n') || c == 0x7f; };
    std::replace_if(text.begin(), text.end(), is_control, '?');
    return text;
}

bool is_code(std::string_view text) {
    const auto fits = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-'; };
    return !text.empty() && std::all_of(text.begin(), text.end(), fits);
}

}  // namespace

Error bad_message() {
    return Error(Exit::unsafe, "parser-crashed", "the process that parses foreign bytes gave an answer that is not one")
        .hint("its input may be an attack: do not use the image, and report it");
}

void MessageWriter::number(std::uint64_t value) { bytes_.append(reinterpret_cast<const char*>(&value), sizeof value); }

void MessageWriter::text(std::string_view value) {
    number(value.size());
    bytes_ += value;
}

void MessageWriter::error(const Error& error) {
    const auto cut = [this](std::string_view value) { text(value.substr(0, k_text_bytes)); };
    number(static_cast<std::uint64_t>(error.exit()));
    cut(error.code());
    cut(error.message());
    cut(error.hint());
    const std::size_t contexts = std::min(error.context().size(), k_texts);
    number(contexts);
    std::for_each_n(error.context().begin(), contexts, cut);
    const std::size_t details = std::min(error.details().size(), k_texts);
    number(details);
    std::for_each_n(error.details().begin(), details, [&](const auto& detail) {
        cut(detail.first);
        cut(detail.second);
    });
}

std::uint64_t MessageReader::number(std::uint64_t most) {
    std::uint64_t value = 0;
    if (rest_.size() < sizeof value) throw bad_message();
    std::memcpy(&value, rest_.data(), sizeof value);
    rest_.remove_prefix(sizeof value);
    if (value > most) throw bad_message();
    return value;
}

std::string_view MessageReader::view(std::size_t most) {
    const std::uint64_t size = number(most);
    if (size > rest_.size()) throw bad_message();
    const std::string_view text = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return text;
}

std::size_t MessageReader::count(std::size_t item_bytes) { return number(rest_.size() / item_bytes); }

Error MessageReader::error() {
    const std::uint64_t exit = number();
    const std::string code = text(k_code_bytes);
    const auto& rows = exit_code_table();
    const auto row = std::find_if(rows.begin(), rows.end(), [&](const ExitCodeRow& known) {
        return static_cast<std::uint64_t>(known.code) == exit;
    });
    if (row == rows.end() || row->code == Exit::ok || !is_code(code)) throw bad_message();
    Error error(row->code, code, printable(text(k_text_bytes)));
    error.hint(printable(text(k_text_bytes)));
    std::vector<std::string> contexts(number(k_texts));
    for (std::string& context : contexts) context = printable(text(k_text_bytes));
    for (auto context = contexts.rbegin(); context != contexts.rend(); ++context) error.add_context(*context);
    for (std::uint64_t left = number(k_texts); left > 0; --left) {
        std::string key = printable(text(k_text_bytes));
        error.detail(std::move(key), printable(text(k_text_bytes)));
    }
    return error;
}

}  // namespace kmm::sandbox
