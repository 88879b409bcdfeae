// SPDX-License-Identifier: Apache-2.0
#include "kmod/ko/module_service.hpp"

#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <new>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/text.hpp"
#include "digest/digest.hpp"
#include "kmod/ko/files.hpp"
#include "kmod/ko/inflate.hpp"
#include "kmod/ko/signature.hpp"
#include "sandbox/message.hpp"

namespace kmm::kmod {

namespace {

constexpr std::uint64_t k_module_service = 2;
// What is asked for: the facts of a file with its signature or without it, its plain form, the facts of a signature,
// the lines of a file of modprobe.d.
constexpr std::uint64_t k_read_file = 1, k_read_unsigned = 2, k_plain_file = 3, k_read_signature = 4, k_read_config = 5;
constexpr std::uint64_t k_answer_done = 0, k_answer_failed = 1;        // how an answer begins
constexpr std::size_t k_appended_max = 64U << 10U;  ///< longer ones would not fit into a request of their own
constexpr std::size_t k_signature_max = std::size_t{1} << 20U;
constexpr std::size_t k_lines_max = std::size_t{4} << 20U;
constexpr std::size_t k_facts_max = std::size_t{1} << 30U;
constexpr std::size_t k_plain_answer_max = (std::size_t{512} << 20U) + 64;
constexpr std::size_t k_text_item = sizeof(std::uint64_t);
constexpr std::size_t k_answer_message = 64U << 10U;  ///< answers are sent when there is so much of them
// What is asked for at once. The names of two batches fit into a socket: the process may be busy sending.
constexpr std::size_t k_batch_files = 16, k_batch_name_bytes = 8U << 10U;

template <typename List>
void put_texts(sandbox::MessageWriter& out, const List& texts) {
    out.number(texts.size());
    for (const std::string& text : texts) out.text(text);
}

std::vector<std::string> take_texts(sandbox::MessageReader& in) {
    std::vector<std::string> texts(in.count(k_text_item));
    for (std::string& text : texts) text = in.text();
    return texts;
}

void put_versions(sandbox::MessageWriter& out, const SymbolVersions& versions) {
    out.number(versions.size());
    for (const auto row : versions) {
        out.text(row.symbol);
        out.number(row.crc);
    }
}

SymbolVersions take_versions(sandbox::MessageReader& in) {
    std::vector<SymbolVersions::Row> rows(in.count(2 * k_text_item));
    for (auto& row : rows) {
        row.symbol = in.view();
        row.crc = static_cast<std::uint32_t>(in.number(~std::uint32_t{0}));
    }
    return SymbolVersions(std::move(rows));
}

void put_lines(sandbox::MessageWriter& out, const std::vector<ConfigLine>& lines) {
    out.number(lines.size());
    for (const ConfigLine& line : lines) {
        out.number(line.number);
        put_texts(out, line.words);
    }
}

std::vector<ConfigLine> take_lines(sandbox::MessageReader& in) {
    std::vector<ConfigLine> lines(in.count(2 * k_text_item));
    for (ConfigLine& line : lines) {
        line.number = in.number();
        line.words = take_texts(in);
        if (line.words.empty() || line.words.front().empty()) throw sandbox::bad_message();
    }
    return lines;
}

void put_signature(sandbox::MessageWriter& out, const ModuleSignature& signature) {
    for (const auto* text : {&signature.signer, &signature.key_id, &signature.digest, &signature.fault})
        out.text(*text);
    put_texts(out, signature.authorities);
    out.number(signature.others.size());
    for (const auto& other : signature.others) put_signature(out, other);
}

ModuleSignature take_signature(sandbox::MessageReader& in, bool first = true) {
    ModuleSignature signature;
    for (auto* text : {&signature.signer, &signature.key_id, &signature.digest, &signature.fault}) *text = in.text();
    signature.authorities = take_texts(in);
    const std::size_t others = in.count(6 * k_text_item);
    if (others != 0 && !first) throw sandbox::bad_message();
    for (std::size_t i = 0; i < others; ++i) signature.others.push_back(take_signature(in, false));
    return signature;
}

void put_module(sandbox::MessageWriter& out, const ModuleFile& file, Signatures signatures) {
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
    out.number(file.structure_bytes);
    out.flag(file.is_signed);
    out.text(file.appended_signature);
    out.number(file.size);
    out.flag(signatures == Signatures::with_file);
    if (signatures == Signatures::with_file) put_signature(out, file.signature());
}

/// Errors that say something of a file, unlike an interruption, name it.
void add_file(Error& error, const std::string& shown) {
    if (!is_interruption(error.exit())) error.add_context(shown);
}

/// A signature that is not in the message is read in `parser` where it is asked for.
ModuleFile take_module(sandbox::MessageReader& in, sandbox::Confined& parser) {
    ModuleFile file;
    file.name = in.text();
    if (!is_module_name(file.name) || normalise_name(file.name) != file.name) throw sandbox::bad_message();
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
    file.structure_bytes = in.number();
    file.is_signed = in.flag();
    file.appended_signature = in.text();
    file.size = in.number();
    if (in.flag()) {
        file.known_signature = take_signature(in);
    } else {
        file.signature_parser = &parser;
    }
    return file;
}

/// Appends the answer to one request for the file `descriptor`.
void answer_for(std::uint64_t wanted, const sys::Fd& descriptor, const std::string& shown,
                sandbox::MessageWriter& out) {
    const std::size_t before = out.bytes().size();
    std::optional<Error> fault;
    try {
        out.number(k_answer_done);
        if (wanted == k_plain_file) {
            out.text(plain_module(read_module_bytes(descriptor, shown), shown));
        } else {
            const ReadModule read = read_module(read_module_bytes(descriptor, shown), shown);
            out.number(read.inflated);
            const bool alone = wanted == k_read_unsigned && read.file.appended_signature.size() <= k_appended_max;
            put_module(out, read.file, alone ? Signatures::on_demand : Signatures::with_file);
        }
    } catch (const Error& error) {
        fault = error;
    } catch (const std::bad_alloc&) {
        fault = Error(Exit::unsafe, "image-limit", shown + ": it takes more memory than a module may");
    }
    if (!fault) return;
    out.cut(before);
    out.number(k_answer_failed);
    out.error(*fault);
}

std::string code_of(const std::exception_ptr& fault) {
    try {
        std::rethrow_exception(fault);
    } catch (const Error& error) {
        return error.code();
    } catch (...) {
        return "";
    }
}

/// Answers for all files of the request in their order, in as few messages as their length allows.
void serve_module(const std::string& message, sandbox::Channel& channel) {
    sandbox::MessageReader request(message);
    static_cast<void>(request.number());  // the service
    const std::uint64_t wanted = request.number();
    sandbox::MessageWriter out;
    if (wanted == k_read_signature) {
        put_signature(out, read_signature(request.view()));
        static_cast<void>(channel.send(out.bytes()));
        return;
    }
    if (wanted == k_read_config) {
        put_lines(out, config_lines(request.view()));
        static_cast<void>(channel.send(out.bytes()));
        return;
    }
    for (std::size_t left = request.count(k_text_item); left > 0; --left) {
        const std::string shown = request.text();
        answer_for(wanted, channel.take_descriptor(), shown, out);
        if (left > 1 && out.bytes().size() < k_answer_message) continue;
        if (!channel.send(out.bytes())) return;
        out.clear();
    }
}

std::string request_for(std::uint64_t what, const std::vector<std::string>& shown) {
    sandbox::MessageWriter request;
    request.number(k_module_service);
    request.number(what);
    put_texts(request, shown);
    return request.bytes();
}

/// The answer of `parser` about one file, which begins with what was asked for.
std::string ask_parser(sandbox::Confined& parser, std::uint64_t what, const sys::Fd& descriptor,
                       const std::string& shown, std::size_t most) {
    const auto lock = parser.lock();
    try {
        const int number = descriptor.get();
        parser.send(request_for(what, {shown}), {&number, 1});
        return parser.receive(most);
    } catch (Error& error) {
        add_file(error, shown);
        throw;
    }
}

/// The answer of `parser`, at most `most` bytes, about `text`, which goes with the request.
std::string ask_about_text(sandbox::Confined& parser, std::uint64_t what, const std::string& text,
                           const std::string& shown, std::size_t most) {
    sandbox::MessageWriter request;
    request.number(k_module_service);
    request.number(what);
    request.text(text);
    const auto lock = parser.lock();
    try {
        parser.send(request.bytes());
        return parser.receive(most);
    } catch (Error& error) {
        add_file(error, shown);
        throw;
    }
}

/// Errors: what the answer says.
void open_answer(sandbox::MessageReader& reader) {
    if (reader.number(k_answer_failed) == k_answer_failed) throw reader.error();
}

ReadModule take_read(sandbox::MessageReader& reader, sandbox::Confined& parser) {
    ReadModule read;
    read.inflated = reader.number();
    read.file = take_module(reader, parser);
    return read;
}

}  // namespace

sandbox::Service module_service() {
    const auto prepare_both = [] {
        // OpenSSL reads its configuration at first use.
        using namespace std::string_view_literals;
        static_cast<void>(read_signature("0\0\0\2\0\0\0\0\0\0\0\0\1~Module signature appended~\n"sv));
        static_cast<void>(digest::sha256_hex(""));
    };
    const auto serve = [](const std::string& message, sandbox::Channel& channel, sandbox::Channel&) {
        serve_module(message, channel);
    };
    return {k_module_service, prepare_both, [] {}, serve};
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

ReadModule read_module(sandbox::Confined& parser, const sys::Fd& descriptor, const std::string& shown) {
    const std::string answer = ask_parser(parser, k_read_file, descriptor, shown, k_facts_max);
    sandbox::MessageReader reader(answer);
    open_answer(reader);
    return take_read(reader, parser);
}

ModuleSignature read_signature(sandbox::Confined& parser, const std::string& appended, const std::string& shown) {
    if (appended.empty()) return {};
    const std::string answer = ask_about_text(parser, k_read_signature, appended, shown, k_signature_max);
    try {
        sandbox::MessageReader reader(answer);
        return take_signature(reader);
    } catch (Error& error) {
        add_file(error, shown);
        throw;
    }
}

std::vector<ConfigLine> read_config_lines(sandbox::Confined* parser, const std::string& text,
                                          const std::string& shown) {
    if (text.size() > k_config_file_max) {
        throw Error(Exit::unsafe, "image-limit",
                    fmt::format("{}: expected at most {} bytes of a modprobe.d file, found more", base::escape(shown),
                                k_config_file_max));
    }
    if (parser == nullptr) return config_lines(text);
    const std::string answer = ask_about_text(*parser, k_read_config, text, shown, k_lines_max);
    try {
        sandbox::MessageReader reader(answer);
        return take_lines(reader);
    } catch (Error& error) {
        add_file(error, shown);
        throw;
    }
}

std::string plain_module(sandbox::Confined* parser, std::string bytes, const std::string& shown) {
    if (parser == nullptr || compression_name(bytes).empty()) return plain_module(std::move(bytes), shown);
    const std::string answer =
        ask_parser(*parser, k_plain_file, sealed_file(bytes, "module"), shown, k_plain_answer_max);
    sandbox::MessageReader reader(answer);
    open_answer(reader);
    return reader.text();
}

ModuleBatches::ModuleBatches(sandbox::Confined& parser, Signatures signatures, Hear hear)
    : parser_(parser), signatures_(signatures), hear_(std::move(hear)), lock_(parser.lock()) {}

void ModuleBatches::add(std::size_t id, sys::Fd descriptor, std::string shown) {
    name_bytes_ += shown.size();
    next_.push_back({id, std::move(descriptor), std::move(shown)});
    if (next_.size() == k_batch_files || name_bytes_ >= k_batch_name_bytes) exchange();
}

void ModuleBatches::finish() {
    exchange();  // sends the last ones
    exchange();  // and waits for them
}

/// Sends the next batch, so that the process has something to do, and takes the answers to the one before it.
void ModuleBatches::exchange() {
    if (failed_) {
        for (const File& file : next_) hear_(file.id, {}, failed_);
        next_.clear();
        return;
    }
    std::size_t answered = 0;
    try {
        if (!next_.empty()) send();
        std::string message;
        while (answered < asked_.size()) {
            parser_.receive(message, k_facts_max);
            sandbox::MessageReader reader(message);
            do {
                if (answered == asked_.size()) throw sandbox::bad_message();
                take(asked_[answered], reader);
                ++answered;
            } while (!reader.at_end());
        }
        asked_ = std::exchange(next_, {});
        name_bytes_ = 0;
    } catch (...) {
        failed_ = std::current_exception();
        give_up(answered);
    }
}

void ModuleBatches::send() {
    std::vector<std::string> shown;
    std::vector<int> descriptors;
    for (const File& file : next_) {
        shown.push_back(file.shown);
        descriptors.push_back(file.descriptor.get());
    }
    parser_.send(request_for(signatures_ == Signatures::with_file ? k_read_file : k_read_unsigned, shown), descriptors);
}

/// One answer. An error in it is that of the file; all others end the exchange.
void ModuleBatches::take(const File& file, sandbox::MessageReader& reader) {
    std::exception_ptr failure;
    ReadModule read;
    if (reader.number(k_answer_failed) == k_answer_failed) {
        failure = std::make_exception_ptr(reader.error());
    } else {
        read = take_read(reader, parser_);
    }
    hear_(file.id, std::move(read), failure);
}

/// No more answers come. If the process has died of one of the files, a new one reads them one by one to find out of
/// which.
void ModuleBatches::give_up(std::size_t answered) {
    std::vector<File> rest;
    std::move(asked_.begin() + static_cast<std::ptrdiff_t>(answered), asked_.end(), std::back_inserter(rest));
    std::move(next_.begin(), next_.end(), std::back_inserter(rest));
    asked_.clear();
    next_.clear();
    lock_.unlock();
    const bool crashed = code_of(failed_) == "parser-crashed";
    if (crashed) parser_.renew();
    bool found = false;
    for (const File& file : rest) {
        if (!crashed || found) {
            hear_(file.id, {}, failed_);
            continue;
        }
        try {
            static_cast<void>(::lseek(file.descriptor.get(), 0, SEEK_SET));
            hear_(file.id, read_module(parser_, file.descriptor, file.shown), {});
        } catch (...) {
            const std::exception_ptr fault = std::current_exception();
            found = code_of(fault) == "parser-crashed";
            if (found) failed_ = fault;
            hear_(file.id, {}, fault);
        }
    }
}

}  // namespace kmm::kmod
