// SPDX-License-Identifier: Apache-2.0
// Modules that are read in a confined process are what they are when they are read here.
#include "kmod/ko/module_service.hpp"

#include <doctest/doctest.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <csignal>

#include "base/error.hpp"
#include "digest/digest.hpp"
#include "kmod/host/identity.hpp"
#include "kmod/host/module_index.hpp"
#include "kmod/ko/inflate.hpp"
#include "sandbox/message.hpp"
#include "unit/kmod/fixtures.hpp"

using namespace kmm;
using namespace kmm::test;

namespace {

std::string text_of(const kmod::ModuleFile& file) {
    std::string text = fmt::format("{} {} {} {} {} {} {}\n", file.name, file.machine, file.build_id, file.has_versions,
                                   file.is_signed, file.size, file.appended_signature.size());
    for (const auto& [key, value] : file.modinfo) text += fmt::format("{}={}\n", key, value);
    for (const auto& symbol : file.undefined) text += fmt::format("U {} {}\n", symbol.name, symbol.weak);
    for (const auto& name : file.exported) text += "E " + name + "\n";
    for (const auto& [name, facts] : file.exports)
        text += fmt::format("X {} {} {}\n", name, facts.gpl_only, facts.symbol_namespace);
    for (const auto row : file.export_crcs) text += fmt::format("C {} {}\n", row.symbol, row.crc);
    for (const auto row : file.crcs) text += fmt::format("V {} {}\n", row.symbol, row.crc);
    for (const auto& name : file.parameter_names) text += "P " + name + "\n";
    const auto signature = file.signature();
    return text + fmt::format("S {} {} {} {}\n", signature.signer, signature.key_id, signature.digest, signature.fault);
}

KoSpec rich() {
    KoSpec spec;
    spec.modinfo = {"parm=level:how much", "parmtype=level:int", "alias=pci:*", "softdep=pre: other"};
    spec.undefined = {"_printk", "other_symbol"};
    spec.weak = {"maybe"};
    spec.exported = {"demo_one", "demo_two"};
    return spec;
}

/// What reading gives: the facts, or the error with its code.
template <typename Body>
std::string outcome(Body&& body) {
    try {
        return text_of(body().file);
    } catch (const Error& error) {
        return fmt::format("{} {} {} {}", static_cast<int>(error.exit()), error.code(), error.message(), error.hint());
    }
}

}  // namespace

TEST_SUITE("kmod::unit") {

TEST_CASE("a confined process reads the same facts and the same faults of modules") {
    sandbox::Confined parser({kmod::module_service()});
    const std::string plain = make_ko(rich());
    std::vector<std::string> files{
        plain, plain + "~Module signature appended~\n", "", "no module", std::string(64, '\0'), plain.substr(0, 100)};
    for (const char* how : {"gzip", "xz", "zstd"}) {
        files.push_back(kmod::packed_module(plain, how));
        files.push_back(files.back().substr(0, files.back().size() / 2));
    }
    for (std::size_t size = 1; size < plain.size(); size += plain.size() / 40) files.push_back(plain.substr(0, size));
    for (const std::string& bytes : files) {
        const std::string here = outcome([&] { return kmod::read_module(bytes, "/x.ko"); });
        CHECK(outcome([&] { return kmod::read_module(parser, kmod::sealed_file(bytes, "test"), "/x.ko"); }) == here);
    }
    const std::string packed = kmod::packed_module(plain, "xz");
    CHECK(kmod::plain_module(&parser, packed, "/x.ko.xz") == plain);
    CHECK(kmod::read_module(parser, kmod::sealed_file(packed, "test"), "/x.ko.xz").inflated == plain.size());
    CHECK_THROWS_AS(static_cast<void>(kmod::plain_module(&parser, packed.substr(0, 90), "/x.ko.xz")), Error);
}

TEST_CASE("an index that a confined process has made gives the bytes that it was made of, and no others") {
    sandbox::Confined parser({kmod::module_service()});
    const sys::TempDir out("kmm-index-");
    for (int i = 0; i < 40; ++i) {  // enough for two threads
        KoSpec spec = rich();
        spec.name = fmt::format("m{}", i);
        put(fmt::format("{}/{}.ko.gz", out.path(), spec.name), kmod::packed_module(make_ko(spec), "gzip"));
    }
    const auto index = kmod::ModuleIndex::build(out.path(), "", {}, &parser);
    REQUIRE(index.modules().size() == 40);
    CHECK(index.faults().empty());
    const auto* module = index.find("m7");
    REQUIRE(module != nullptr);
    CHECK(kmod::code_sha256(module->file, kmod::plain_bytes(*module)) == digest::sha256_hex(make_ko([] {
              KoSpec s = rich();
              s.name = "m7";
              return s;
          }())));
    put(module->path, "other");
    CHECK_THROWS_AS(static_cast<void>(kmod::plain_bytes(*module)), Error);
}

TEST_CASE(
    "a module that ends the process that reads it is named, and so is one that is said to have a name that is none") {
    sandbox::Service dying = kmod::module_service();
    dying.serve = [](const std::string&, sandbox::Channel&, sandbox::Channel&) { static_cast<void>(::raise(SIGABRT)); };
    sandbox::Confined parser({dying});
    try {
        static_cast<void>(kmod::read_module(parser, kmod::sealed_file("x", "test"), "/bad.ko"));
        FAIL("no error");
    } catch (const Error& error) {
        CHECK(error.code() == "parser-crashed");
        CHECK(error.exit() == Exit::unsafe);
        CHECK(error.context() == std::vector<std::string>{"/bad.ko"});
    }
    sandbox::Service lying = kmod::module_service();
    lying.serve = [](const std::string&, sandbox::Channel& channel, sandbox::Channel&) {
        sandbox::MessageWriter answer;
        answer.number(0);
        answer.number(0);
        answer.text("../../etc/x");
        static_cast<void>(channel.send(answer.bytes()));
    };
    sandbox::Confined liar({lying});
    CHECK_THROWS_AS(static_cast<void>(kmod::read_module(liar, kmod::sealed_file("x", "test"), "/bad.ko")), Error);
}

TEST_CASE("of many modules the one that ends the process is named, and the rest is read or has the same error") {
    sandbox::Service choosy = kmod::module_service();
    choosy.serve = [real = choosy.serve](const std::string& message, sandbox::Channel& channel,
                                         sandbox::Channel& answers) {
        if (message.find("/m23.ko") != std::string::npos) static_cast<void>(::raise(SIGABRT));
        real(message, channel, answers);
    };
    sandbox::Confined parser({choosy});
    const sys::TempDir out("kmm-batch-");
    std::vector<std::string> outcomes(40);
    const auto hear = [&](std::size_t id, kmod::ReadModule read, const std::exception_ptr& failure) {
        CHECK(outcomes[id].empty());
        try {
            if (failure) std::rethrow_exception(failure);
            outcomes[id] = read.file.name;
        } catch (const Error& error) {
            outcomes[id] = fmt::format("{} {}", error.code(), fmt::join(error.context(), " "));
        }
    };
    kmod::ModuleBatches batches(parser, kmod::Signatures::on_demand, hear);
    for (std::size_t i = 0; i < outcomes.size(); ++i) {
        KoSpec spec = rich();
        spec.name = fmt::format("m{}", i);
        const std::string bytes = i == 7 ? "no module" : make_ko(spec);
        batches.add(i, kmod::sealed_file(bytes, "test"), fmt::format("/m{}.ko", i));
    }
    batches.finish();
    for (std::size_t i = 0; i < outcomes.size(); ++i)
        CHECK(outcomes[i] == (i == 7 ? "module-format " : i < 23 ? fmt::format("m{}", i) : "parser-crashed /m23.ko"));
}

TEST_CASE("the signature of an indexed module is read in the confined process, where it is asked for") {
    sandbox::Service choosy = kmod::module_service();
    choosy.serve = [real = choosy.serve](const std::string& message, sandbox::Channel& channel,
                                         sandbox::Channel& answers) {
        if (message.find("poison") != std::string::npos) static_cast<void>(::raise(SIGABRT));
        real(message, channel, answers);
    };
    sandbox::Confined parser({choosy});
    const sys::TempDir out("kmm-index-");
    const auto put_signed = [&](const std::string& name, const std::string& message) {
        KoSpec spec = rich();
        spec.name = name;
        std::string trailer("\0\0\2\0\0\0\0\0", 8);
        for (const int shift : {24, 16, 8, 0}) trailer += static_cast<char>(message.size() >> shift & 0xff);
        const std::string bytes = make_ko(spec) + message + trailer + "~Module signature appended~\n";
        put(out.path() + "/" + name + ".ko", bytes);
        return kmod::read_module(bytes, "/x.ko").file.signature().fault;
    };
    const std::string fault = put_signed("small", "no message");
    CHECK(!fault.empty());
    CHECK(put_signed("large", std::string(200'000, 'x')) == fault);  // more than a request holds
    static_cast<void>(put_signed("hostile", "poison"));
    for (int i = 0; i < 40; ++i) static_cast<void>(put_signed(fmt::format("m{}", i), "no message"));  // for two threads
    const auto index = kmod::ModuleIndex::build(out.path(), "", {}, &parser);
    REQUIRE(index.modules().size() == 43);
    CHECK_FALSE(index.find("small")->file.known_signature.has_value());
    for (const auto& [name, module] : index.modules()) {
        if (name != "hostile") CHECK(module.file.signature().fault == fault);
    }
    try {
        static_cast<void>(index.find("hostile")->file.signature());
        FAIL("no error");
    } catch (const Error& error) {
        CHECK(error.code() == "parser-crashed");
        CHECK(error.context() == std::vector<std::string>{"the signature of module hostile"});
    }
}

TEST_CASE("many large answers and long names do not block the exchange") {
    sandbox::Confined parser({kmod::module_service()});
    KoSpec spec = rich();
    for (int i = 0; i < 3000; ++i) spec.exported.push_back(fmt::format("a_symbol_with_quite_a_long_name_{:06}", i));
    const sys::Fd file = kmod::sealed_file(make_ko(spec), "test");
    std::size_t read = 0;
    const auto hear = [&](std::size_t, kmod::ReadModule module, const std::exception_ptr& failure) {
        if (!failure && module.file.exported.size() > 3000) ++read;
    };
    kmod::ModuleBatches batches(parser, kmod::Signatures::with_file, hear);
    for (std::size_t i = 0; i < 100; ++i) {
        const std::string path = fmt::format("/proc/self/fd/{}", file.get());
        batches.add(i, sys::Fd(::open(path.c_str(), O_RDONLY | O_CLOEXEC)),
                    "/" + std::string(i % 2 == 0 ? 4000 : 10, 'n'));
    }
    batches.finish();
    CHECK(read == 100);
}

TEST_CASE("whoever waits for modules can end the wait") {
    sandbox::Service sleeping = kmod::module_service();
    sleeping.serve = [](const std::string&, sandbox::Channel& channel, sandbox::Channel&) {
        std::string nothing;
        static_cast<void>(channel.receive(nothing, 1));
    };
    sandbox::Confined parser({sleeping}, [] { throw Error(Exit::timeout, "timeout", "too late"); });
    const sys::TempDir out("kmm-index-");
    put(out.path() + "/demo.ko", make_ko(rich()));
    try {
        static_cast<void>(kmod::ModuleIndex::build(out.path(), "", {}, &parser));
        FAIL("no error");
    } catch (const Error& error) {
        CHECK(error.code() == "timeout");
    }
}

}  // TEST_SUITE
