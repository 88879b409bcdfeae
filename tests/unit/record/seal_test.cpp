// SPDX-License-Identifier: Apache-2.0
// Whose a record is: whatever somebody without the key has changed, with CRC and chain put right, is found.
#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <vector>

#include "digest/digest.hpp"
#include "record/crc32c.hpp"
#include "record/journal.hpp"
#include "record/seal.hpp"
#include "record/state_dir.hpp"
#include "sys/clock.hpp"
#include "sys/file_ops.hpp"
#include "sys/temp_dir.hpp"

using namespace kmm;
using record::Seal;
namespace fs = std::filesystem;

namespace {

using LineList = std::vector<std::string>;  ///< without newlines

const std::string k_key(32, 'k');
constexpr std::size_t k_mac_size = 73;  ///< ,"mac":"..." with 64 digits

std::size_t crc_begin(const std::string& line) { return line.rfind(R"(,"crc":")"); }

/// Puts `prev` and CRC of each line right, as anybody can.
std::string forged(LineList lines) {
    std::string prev(record::k_no_previous), text;
    for (auto& line : lines) {
        const auto at = line.find(R"("prev":")");
        if (at != std::string::npos) line.replace(at + 8, prev.size(), prev);
        line.resize(crc_begin(line));
        line += R"(,"crc":")" + record::crc32c_hex(line) + R"("})";
        prev = digest::sha256_hex(line);
        text += line + "\n";
    }
    return text;
}

LineList sealed_lines(std::size_t count, const std::string& name, const std::optional<std::string>& key = k_key) {
    LineList lines;
    std::string prev(record::k_no_previous);
    for (std::size_t seq = 1; seq <= count; ++seq) {
        const auto payload = value::Node::mapping({{"name", name}, {"step", std::to_string(seq)}});
        auto line = record::encode_line(seq, prev, "2026-01-01T00:00:00Z", payload, key);
        line.pop_back();
        prev = digest::sha256_hex(line);
        lines.push_back(std::move(line));
    }
    return lines;
}

Seal seal_of(const std::string& text, const std::optional<std::string>& key = k_key) {
    return record::parse_journal(text, "journal", key).seal;
}

/// True if nothing of the kind is read as this user's own record.
bool is_refused(const std::string& text) {
    try {
        return seal_of(text) != Seal::own;
    } catch (const Error&) {
        return true;
    }
}

/// A number that is written as "seq" says must be right, as anybody can.
void renumber(LineList& lines) {
    for (std::size_t i = 0; i < lines.size(); ++i) {
        const auto end = lines[i].find(',');
        lines[i].replace(0, end, R"({"seq":)" + std::to_string(i + 1));
    }
}

struct Place {
    sys::TempDir top{"kmm-seal-"};
    std::string directory = top.path() + "/state";
    sys::LinuxFileOps ops;
    sys::LinuxClock clock;
    record::SealKey key{top.path() + "/key/record.key"};

    record::StateDir state(bool with_key = true) {
        record::StateDir made(directory, ops, clock, with_key ? std::optional(key) : std::nullopt);
        made.open(true);
        return made;
    }
    Seal loaded() {
        auto made = state();
        return made.load().seal;
    }
    [[nodiscard]] std::string journal() const { return directory + "/journal.ndjson"; }
};

value::Node text_payload(const std::string& text) { return value::Node::mapping({{"text", text}}); }

}  // namespace

TEST_SUITE("record::seal") {
    TEST_CASE("a journal is its writer's, and to others a foreign one") {
        const auto text = forged(sealed_lines(5, "run"));
        CHECK(seal_of(text) == Seal::own);
        CHECK(seal_of(text, std::string(32, 'x')) == Seal::foreign);
        CHECK(seal_of(text, std::nullopt) == Seal::unknown);
        CHECK(seal_of(forged(sealed_lines(5, "run", std::nullopt))) == Seal::none);
        CHECK(seal_of(forged(sealed_lines(5, "run", std::nullopt)), std::nullopt) == Seal::none);
    }

    TEST_CASE("every byte of every line is under the seal, CRC and chain put right or not") {
        const auto lines = sealed_lines(4, "run");
        std::size_t tried = 0;
        for (std::size_t i = 0; i < lines.size(); ++i) {
            for (std::size_t at = 0; at < crc_begin(lines[i]); ++at) {
                auto changed = lines;
                const char with = changed[i][at] == 'a' ? 'b' : 'a';
                const auto prev = lines[i].find(R"("prev":")") + 8;
                changed[i][at] = with;
                const bool is_put_right = at >= prev && at < prev + 64;  // the forger's own chain
                ++tried;
                if (is_put_right ? seal_of(forged(changed)) != Seal::own : !is_refused(forged(changed)))
                    FAIL("line ", i + 1, " byte ", at);
            }
        }
        CHECK(tried > 900);
    }

    TEST_CASE("what was before a kill is still one's own, however much of the last line was written") {
        const auto text = forged(sealed_lines(4, "run"));
        const auto whole = forged(sealed_lines(3, "run"));
        for (std::size_t size = whole.size(); size < text.size(); ++size) {
            if (seal_of(text.substr(0, size)) != Seal::own) FAIL("cut at ", size);
        }
        CHECK(seal_of(text) == Seal::own);
    }

    TEST_CASE("lines that are taken out, moved, or of another run") {
        const auto lines = sealed_lines(6, "run");
        const auto other = sealed_lines(6, "other");
        for (std::size_t i = 0; i + 1 < lines.size(); ++i) {
            auto without = lines;
            without.erase(without.begin() + static_cast<std::ptrdiff_t>(i));
            renumber(without);
            CHECK(is_refused(forged(without)));
            auto swapped = lines;
            std::swap(swapped[i], swapped[i + 1]);
            renumber(swapped);
            CHECK(is_refused(forged(swapped)));
            auto mixed = lines;
            mixed[i] = other[i];
            CHECK(is_refused(forged(mixed)));
            mixed = lines;
            for (auto rest = i + 1; rest < lines.size(); ++rest) mixed[rest] = other[rest];
            CHECK(is_refused(forged(mixed)));
        }
        auto longer = lines;
        longer.push_back(other[5]);
        renumber(longer);
        CHECK(is_refused(forged(longer)));
    }

    TEST_CASE("a seal that is taken off, or copied from another line") {
        auto lines = sealed_lines(3, "run");
        const auto last = crc_begin(lines[2]);
        auto bare = lines;
        bare[2].erase(last - k_mac_size, k_mac_size);
        CHECK(seal_of(forged(bare)) == Seal::none);
        auto copied = lines;
        copied[2].replace(last - k_mac_size, k_mac_size, lines[1].substr(crc_begin(lines[1]) - k_mac_size, k_mac_size));
        CHECK(seal_of(forged(copied)) == Seal::foreign);
    }

    TEST_CASE("a payload that looks like a seal is none") {
        auto payload = value::Node::mapping({{"mac", std::string(64, '0')}});
        CHECK(seal_of(record::encode_line(1, record::k_no_previous, "t", payload)) == Seal::none);
        CHECK(seal_of(record::encode_line(1, record::k_no_previous, "t", payload, k_key)) == Seal::own);
    }

    TEST_CASE("a run is sealed as it is begun and with each entry; the key is this user's alone") {
        Place place;
        CHECK_FALSE(place.key.read());
        auto state = place.state();
        state.begin(text_payload("header"));
        CHECK(state.seal() == Seal::own);
        CHECK(place.loaded() == Seal::own);
        state.append(text_payload("one"));
        auto next = place.state();
        CHECK(next.load().seal == Seal::own);
        next.append(text_payload("two"));
        CHECK(place.loaded() == Seal::own);
        next.succeed("run", text_payload("header"));
        CHECK(place.loaded() == Seal::own);
        struct stat facts {};
        REQUIRE(::stat(place.key.path().c_str(), &facts) == 0);
        CHECK((facts.st_mode & 07777U) == 0600);
        REQUIRE(::chmod(place.key.path().c_str(), 0644) == 0);
        CHECK_FALSE(place.key.read_or_make());  // not replaced either
        CHECK(place.loaded() == Seal::unknown);
    }

    TEST_CASE("what is appended to a foreign record does not make it one's own, until its user says so") {
        Place place;
        auto foreign = place.state(false);
        foreign.begin(text_payload("header"));
        foreign.append(text_payload("one"));
        CHECK(place.loaded() == Seal::none);
        auto state = place.state();
        CHECK(state.load().seal == Seal::none);
        state.append(text_payload("two"));
        CHECK(state.seal() == Seal::none);
        CHECK(place.loaded() == Seal::none);
        state.vouch();
        CHECK(state.seal() == Seal::own);
        CHECK(place.loaded() == Seal::none);  // the record says so with the next entry
        static_cast<void>(state.load());
        CHECK(state.seal() == Seal::own);  // read again in one process: not asked twice
        state.append(text_payload("three"));
        CHECK(place.loaded() == Seal::own);
        // A program that knows no seals goes on with it.
        auto older = place.state(false);
        static_cast<void>(older.load());
        older.append(text_payload("four"));
        CHECK(place.loaded() == Seal::none);
    }

    TEST_CASE("the word of a user is for what he has seen") {
        Place place;
        place.state(false).begin(text_payload("header"));
        auto state = place.state();
        static_cast<void>(state.load());
        state.vouch();
        fs::remove(place.journal());
        place.state(false).begin(text_payload("another"));
        static_cast<void>(state.load());
        CHECK(state.seal() == Seal::none);
    }

    TEST_CASE("without a place for a key a run goes on without seals") {
        Place place;
        const record::SealKey nowhere("/proc/self/no/record.key");
        record::StateDir state(place.directory, place.ops, place.clock, nowhere);
        state.open(true);
        state.begin(text_payload("header"));
        state.append(text_payload("one"));
        CHECK(state.seal() == Seal::none);
        CHECK(place.state().load().entries.size() == 2);
        state.vouch();
        state.append(text_payload("two"));
        CHECK(state.seal() == Seal::own);  // in this process
        CHECK(place.loaded() == Seal::none);
    }
}
