// SPDX-License-Identifier: Apache-2.0
#include "kmod/module_service.hpp"

#include <new>
#include <utility>

#include "base/error.hpp"
#include "kmod/files.hpp"
#include "kmod/inflate.hpp"
#include "kmod/signature.hpp"
#include "sys/message.hpp"

namespace kmm::kmod {

namespace {

constexpr std::uint64_t k_module_service = 2;
constexpr std::uint64_t k_read_file = 1, k_plain_file = 2;         // what is asked for
constexpr std::uint64_t k_answer_done = 0, k_answer_failed = 1;        // how an answer begins
constexpr std::size_t k_facts_max = std::size_t{1} << 30U;
constexpr std::size_t k_plain_answer_max = (std::size_t{512} << 20U) + 64;
constexpr std::size_t k_text_item = sizeof(std::uint64_t);

template <typename List>
void put_texts(sys::MessageWriter& out, const List& texts) {
    out.number(texts.size());
    for (const std::string& text : texts) out.text(text);
}

std::vector<std::string> take_texts(sys::MessageReader& in) {
    std::vector<std::string> texts(in.count(k_text_item));
    for (std::string& text : texts) text = in.text();
    return texts;
}

void put_versions(sys::MessageWriter& out, const SymbolVersions& versions) {
    out.number(versions.size());
    for (const auto row : versions) {
        out.text(row.symbol);
        out.number(row.crc);
    }
}

SymbolVersions take_versions(sys::MessageReader& in) {
    std::vector<SymbolVersions::Row> rows(in.count(2 * k_text_item));
    for (auto& row : rows) {
        row.symbol = in.view();
        row.crc = static_cast<std::uint32_t>(in.number(~std::uint32_t{0}));
    }
    return SymbolVersions(std::move(rows));
}

void put_module(sys::MessageWriter& out, const ModuleFile& file) {
    out.text(file.name);
    out.text(file.machine);
    out.text(file.build_id);
    out.number(file.modinfo.size());
    for (const auto& [key, value] : file.modinfo) {
        out.text(key);
        out.text(value);
    }
    out.number(file.undefined.size());
    for (const auto& symbol : file.undefined) {
        out.text(symbol.name);
        out.flag(symbol.weak);
    }
    put_texts(out, file.exported);
    out.number(file.exports.size());
    for (const auto& [name, facts] : file.exports) {
        out.text(name);
        out.flag(facts.gpl_only);
        out.text(facts.symbol_namespace);
    }
    put_versions(out, file.export_crcs);
    put_versions(out, file.crcs);
    put_texts(out, file.parameter_names);
    out.flag(file.has_versions);
    out.flag(file.is_signed);
    out.text(file.appended_signature);
    out.number(file.size);
    const ModuleSignature signature = file.signature();
    for (const auto* text : {&signature.signer, &signature.key_id, &signature.digest, &signature.fault})
        out.text(*text);
}

ModuleFile take_module(sys::MessageReader& in) {
    ModuleFile file;
    file.name = in.text();
    if (!is_module_name(file.name) || normalise_name(file.name) != file.name) throw sys::bad_message();
    file.machine = in.text();
    file.build_id = in.text();
    file.modinfo.resize(in.count(2 * k_text_item));
    for (auto& [key, value] : file.modinfo) {
        key = in.text();
        value = in.text();
    }
    file.undefined.resize(in.count(2 * k_text_item));
    for (auto& symbol : file.undefined) {
        symbol.name = in.text();
        symbol.weak = in.flag();
    }
    file.exported = take_texts(in);
    for (std::size_t left = in.count(3 * k_text_item); left > 0; --left) {
        Export& facts = file.exports[in.text()];
        facts.gpl_only = in.flag();
        facts.symbol_namespace = in.text();
    }
    file.export_crcs = take_versions(in);
    file.crcs = take_versions(in);
    file.parameter_names = take_texts(in);
    file.has_versions = in.flag();
    file.is_signed = in.flag();
    file.appended_signature = in.text();
    file.size = in.number();
    ModuleSignature& signature = file.known_signature.emplace();
    for (auto* text : {&signature.signer, &signature.key_id, &signature.digest, &signature.fault}) *text = in.text();
    return file;
}

void serve_module(const std::string& message, sys::Channel& channel) {
    sys::MessageReader request(message);
    static_cast<void>(request.number());  // the service
    const std::uint64_t wanted = request.number();
    const std::string shown = request.text();
    const sys::Fd descriptor = channel.take_descriptor();
    sys::MessageWriter answer;
    try {
        answer.number(k_answer_done);
        if (wanted == k_plain_file) {
            answer.text(plain_module(read_module_bytes(descriptor, shown), shown));
        } else {
            const ReadModule read = read_module(read_module_bytes(descriptor, shown), shown);
            answer.number(read.inflated);
            put_module(answer, read.file);
        }
    } catch (const Error& error) {
        answer.clear();
        answer.number(k_answer_failed);
        answer.error(error);
    } catch (const std::bad_alloc&) {
        answer.clear();
        answer.number(k_answer_failed);
        answer.error(Error(Exit::unsafe, "image-limit", shown + ": it takes more memory than a module may"));
    }
    static_cast<void>(channel.send(answer.bytes()));
}

/// The answer of `parser`, which begins with what was asked for.
std::string ask_parser(sys::Confined& parser, std::uint64_t what, const sys::Fd& descriptor, const std::string& shown,
                       std::size_t most) {
    sys::MessageWriter request;
    request.number(k_module_service);
    request.number(what);
    request.text(shown);
    const auto lock = parser.lock();
    try {
        parser.send(request.bytes(), descriptor.get());
        return parser.receive(most);
    } catch (Error& error) {
        if (error.code() != "interrupted") error.add_context(shown);  // which says nothing of the file
        throw;
    }
}

/// Errors: what the answer says.
sys::MessageReader open_answer(const std::string& answer) {
    sys::MessageReader reader(answer);
    if (reader.number(k_answer_failed) == k_answer_failed) throw reader.error();
    return reader;
}

}  // namespace

sys::Service module_service() {
    const auto prepare = [] {
        // OpenSSL reads its configuration at first use.
        using namespace std::string_view_literals;
        static_cast<void>(read_signature("0\0\0\2\0\0\0\0\0\0\0\0\1~Module signature appended~\n"sv));
        static_cast<void>(sha256_hex(""));
    };
    return {k_module_service, prepare,
            [](const std::string& message, sys::Channel& channel, sys::Channel&) { serve_module(message, channel); }};
}

ReadModule read_module(std::string bytes, const std::string& shown) {
    ReadModule read;
    if (!compression_name(bytes).empty()) {
        bytes = plain_module(std::move(bytes), shown);
        read.inflated = bytes.size();
    }
    read.file = parse_module(bytes, shown);
    return read;
}

ReadModule read_module(sys::Confined& parser, const sys::Fd& descriptor, const std::string& shown) {
    const std::string answer = ask_parser(parser, k_read_file, descriptor, shown, k_facts_max);
    sys::MessageReader reader = open_answer(answer);
    ReadModule read;
    read.inflated = reader.number();
    read.file = take_module(reader);
    return read;
}

std::string plain_module(sys::Confined* parser, std::string bytes, const std::string& shown) {
    if (parser == nullptr || compression_name(bytes).empty()) return plain_module(std::move(bytes), shown);
    const std::string answer =
        ask_parser(*parser, k_plain_file, sealed_file(bytes, "module"), shown, k_plain_answer_max);
    return open_answer(answer).text();
}

}  // namespace kmm::kmod
