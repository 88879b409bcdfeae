// SPDX-License-Identifier: Apache-2.0
// Files that were cut, flipped, edited, or written by another version.
#include <doctest/doctest.h>

#include <fstream>

#include "digest/digest.hpp"
#include "record/crc32c.hpp"
#include "record/journal.hpp"
#include "record/snapshot.hpp"
#include "scenario.hpp"

using namespace kmm;
using namespace kmm::record;
using namespace kmm::record::test;

namespace {

constexpr std::size_t k_state_size = 4096;

/// A journal of at least 4 kB.
std::string golden_journal() {
    std::string text;
    std::string prev(k_no_previous);
    for (int entry = 1; text.size() < k_state_size; ++entry) {
        const std::string line =
            encode_line(static_cast<std::uint64_t>(entry), prev, "2026-11-21T10:41:07Z", payload_of(entry));
        prev = digest::sha256_hex(std::string_view(line).substr(0, line.size() - 1));
        text += line;
    }
    return text;
}

void put(const std::string& path, std::string_view text) {
    std::ofstream(path, std::ios::binary | std::ios::trunc)
        .write(text.data(), static_cast<std::streamsize>(text.size()));
}

bool same_entries(const std::vector<Entry>& a, const std::vector<Entry>& b) {
    if (a.size() != b.size()) {
        return false;
    }
    for (std::size_t i = 0; i < a.size(); ++i) {
        if (a[i].seq != b[i].seq || a[i].time != b[i].time || !a[i].payload.same_value(b[i].payload)) {
            return false;
        }
    }
    return true;
}

std::string code_of_journal(const std::string& text) {
    try {
        return parse_journal(text, "journal").partial_tail ? "partial" : "";
    } catch (const Error& error) {
        return error.code();
    }
}

std::string replaced(std::string text, std::string_view from, std::string_view to) {
    const std::size_t at = text.find(from);
    REQUIRE(at != std::string::npos);
    return text.replace(at, from.size(), to);
}

/// `body` (a line up to its seal) as a whole line.
std::string sealed(const std::string& body) {
    return body + R"(,"crc":")" + crc32c_hex(body) + "\"}\n";
}

}  // namespace

TEST_SUITE("record::unit") {
    TEST_CASE("checksums are the published ones") {
        CHECK(crc32c_hex("123456789") == "e3069283");                    // RFC 3720 B.4's check value
        CHECK(crc32c_hex(std::string(32, '\0')) == "8a9136aa");          // RFC 3720 B.4
        CHECK(digest::sha256_hex("abc") ==
              "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");  // FIPS 180-2 B.1
    }

    TEST_CASE("every flipped bit of a journal is detected") {
        const std::string golden = golden_journal();
        const std::vector<Entry> entries = parse_journal(golden, "journal").entries;
        std::size_t detected = 0;
        std::size_t harmless = 0;
        std::size_t accepted = 0;
        for (std::size_t at = 0; at < golden.size(); at += k_stride) {
            for (unsigned bit = 0; bit < 8; ++bit) {
                std::string text = golden;
                text[at] = static_cast<char>(static_cast<unsigned char>(text[at]) ^ (1U << bit));
                try {
                    const ParsedJournal parsed = parse_journal(text, "journal");
                    (same_entries(parsed.entries, entries) ? harmless : accepted) += 1;
                } catch (const Error&) {
                    ++detected;
                }
            }
        }
        CHECK(accepted == 0);
        MESSAGE("journal bits flipped: " << detected + harmless << ", detected " << detected << ", harmless "
                                         << harmless);
    }

    TEST_CASE("every flipped bit of a snapshot is detected") {
        value::Node payload = value::Node::mapping();
        std::vector<value::Node> nodes;
        std::string golden;
        for (int entry = 1; golden.size() < k_state_size; ++entry) {
            nodes.push_back(payload_of(entry));
            payload.set("nodes", value::Node::sequence(nodes));
            golden = encode_snapshot(7, payload, nullptr);
        }
        const auto good = parse_snapshot(golden, "upgrade.json");
        REQUIRE(good.has_value());
        CHECK(good->payload.same_value(payload));
        std::size_t detected = 0;
        std::size_t accepted = 0;
        for (std::size_t at = 0; at < golden.size(); at += k_stride) {
            for (unsigned bit = 0; bit < 8; ++bit) {
                std::string text = golden;
                text[at] = static_cast<char>(static_cast<unsigned char>(text[at]) ^ (1U << bit));
                try {
                    (parse_snapshot(text, "upgrade.json") ? accepted : detected) += 1;
                } catch (const Error&) {
                    ++detected;
                }
            }
        }
        CHECK(accepted == 0);
        for (std::size_t length = 0; length < golden.size(); ++length) {
            CHECK_FALSE(parse_snapshot(std::string_view(golden).substr(0, length), "upgrade.json").has_value());
        }
        MESSAGE("snapshot bits flipped: " << detected << ", cut at " << golden.size() << " lengths");
    }

    TEST_CASE("every byte replaced by 0, 0xff, a newline or a blank is detected") {
        const std::string golden = golden_journal();
        const std::vector<Entry> entries = parse_journal(golden, "journal").entries;
        std::size_t points = 0;
        for (std::size_t at = 0; at < golden.size(); at += k_stride) {
            for (const char byte : {'\0', '\xff', '\n', ' '}) {
                if (golden[at] == byte) {
                    continue;
                }
                std::string text = golden;
                text[at] = byte;
                ++points;
                bool good = false;
                try {
                    good = same_entries(parse_journal(text, "journal").entries, entries);
                } catch (const Error& error) {
                    good = error.code() == "state-damaged";
                }
                CHECK_MESSAGE(good, "byte " << at);
            }
        }
        MESSAGE("journal bytes replaced: " << points);
    }

    TEST_CASE("a journal cut at any length is the same journal earlier, or damaged, never empty") {
        const std::string golden = golden_journal();
        const std::vector<Entry> entries = parse_journal(golden, "journal").entries;
        const std::size_t first_line = golden.find('\n');
        std::size_t lines = 0;
        for (std::size_t length = 0; length < golden.size(); ++length) {
            CAPTURE(length);
            const std::string text = golden.substr(0, length);
            if (length < first_line) {
                CHECK(code_of_journal(text) == "state-damaged");
                continue;
            }
            const ParsedJournal parsed = parse_journal(text, "journal");
            const bool lacks_only_newline = golden[length] == '\n';
            lines += golden[length - 1] == '\n' ? 1U : 0U;
            CHECK(parsed.entries.size() == lines + (lacks_only_newline ? 1U : 0U));
            CHECK(same_entries(parsed.entries, {entries.begin(),
                                                entries.begin() + static_cast<std::ptrdiff_t>(parsed.entries.size())}));
            CHECK(parsed.partial_tail == (golden[length - 1] != '\n'));
        }
        MESSAGE("journal cut at " << golden.size() << " lengths");
    }

    TEST_CASE("a journal that ends before its snapshot does is damaged, not an earlier state") {
        const ScratchState scratch;
        sys::LinuxFileOps ops;
        const FixedClock clock;
        StateDir state(scratch.path(), ops, clock);
        state.begin(payload_of(1));
        for (int entry = 2; entry <= k_entries; ++entry) {
            state.append(payload_of(entry));
        }
        state.write_snapshot(payload_of(k_entries));
        const std::string path = scratch.path() + "/journal.ndjson";
        const std::string golden = sys::read_file(path);
        for (std::size_t length = 0; length + 1 < golden.size(); length += k_stride) {
            CAPTURE(length);
            put(path, golden.substr(0, length));
            CHECK_THROWS_AS(static_cast<void>(state.load()), Error);
        }
        ::unlink(path.c_str());
        CHECK_THROWS_AS(static_cast<void>(state.load()), Error);
        CHECK_THROWS_AS(state.begin(payload_of(1)), Error);
    }

    TEST_CASE("unwritten blocks at the end are an interrupted append, anywhere else they are damage") {
        const std::string golden = golden_journal();
        const std::size_t last_line = golden.rfind('\n', golden.size() - 2) + 1;
        std::string text = golden;
        std::fill(text.begin() + static_cast<std::ptrdiff_t>(last_line), text.end(), '\0');
        CHECK(code_of_journal(text) == "partial");
        const std::size_t sector = (last_line + 511) / 512 * 512;
        if (sector < golden.size()) {
            text = golden;  // the first sector of the last line was not written, the rest was
            std::fill(text.begin() + static_cast<std::ptrdiff_t>(last_line),
                      text.begin() + static_cast<std::ptrdiff_t>(sector), '\0');
            CHECK(code_of_journal(text) == (sector - last_line >= 2 ? "partial" : "state-damaged"));
        }
        text = golden;
        std::fill(text.begin() + 512, text.begin() + 1024, '\0');
        CHECK(code_of_journal(text) == "state-damaged");
    }

    TEST_CASE("damage names the line") {
        std::string text = golden_journal();
        const std::size_t second = text.find('\n') + 1;
        text[second + 30] = '#';
        try {
            static_cast<void>(parse_journal(text, "DIR/journal.ndjson"));
            FAIL("accepted");
        } catch (const Error& error) {
            REQUIRE(error.position().has_value());
            CHECK(error.position()->to_string() == "DIR/journal.ndjson:2");
            CHECK(error.exit() == Exit::io);
        }
    }

    TEST_CASE("lines that are sealed well but do not belong there are damage") {
        const std::string one = encode_line(1, k_no_previous, "t", payload_of(1));
        const std::string hash = digest::sha256_hex(std::string_view(one).substr(0, one.size() - 1));
        const std::string two = encode_line(2, hash, "t", payload_of(2));
        CHECK(code_of_journal(one + two) == "");
        CHECK(code_of_journal(one + one) == "state-damaged");
        CHECK(code_of_journal(two) == "state-damaged");
        CHECK(code_of_journal(one + encode_line(3, hash, "t", payload_of(3))) == "state-damaged");
        CHECK(code_of_journal(one + encode_line(2, k_no_previous, "t", payload_of(2))) == "state-damaged");
        CHECK(code_of_journal(one + sealed(R"({"seq":2,"prev":")" + hash + R"(","time":"t")")) == "state-damaged");
        CHECK(code_of_journal(one + sealed(R"([2)")) == "state-damaged");
    }

    TEST_CASE("other format versions") {
        struct Row {
            const char* version;
            const char* code;
        };
        const std::string golden = golden_journal();
        const std::string snapshot = encode_snapshot(1, payload_of(1), nullptr);
        for (const Row& row :
             {Row{"2", "state-newer"}, Row{"2147483648", "state-newer"}, Row{"18446744073709551615", "state-newer"},
              Row{"\"1\"", "state-damaged"}, Row{"\"2\"", "state-damaged"}, Row{"-1", "state-damaged"},
              Row{"0", "state-damaged"}, Row{"null", "state-damaged"}}) {
            CAPTURE(row.version);
            const std::string text =
                replaced(golden, R"("formatVersion":1)", std::string(R"("formatVersion":)") + row.version);
            CHECK(code_of_journal(text) == row.code);
        }
        try {
            static_cast<void>(
                parse_journal(replaced(golden, R"("formatVersion":1)", R"("formatVersion":9)"), "journal"));
            FAIL("accepted");
        } catch (const Error& error) {
            CHECK(error.exit() == Exit::config);
            CHECK(error.message() == "the upgrade record has format 9, this program reads up to 1");
            CHECK(error.hint().find("kmm-upgrade 0.") != std::string::npos);
        }
        CHECK_THROWS_AS(static_cast<void>(
                            parse_snapshot(replaced(snapshot, R"("formatVersion": 1)", R"("formatVersion": 2)"), "s")),
                        Error);
        CHECK_FALSE(
            parse_snapshot(replaced(snapshot, R"("formatVersion": 1)", R"("formatVersion": 0)"), "s").has_value());
    }

    TEST_CASE("a newer format is refused and nothing on the disk changes") {
        const ScratchState scratch;
        const std::string text = replaced(golden_journal(), R"("formatVersion":1)", R"("formatVersion":2)");
        put(scratch.path() + "/journal.ndjson", text);
        sys::LinuxFileOps ops;
        const FixedClock clock;
        StateDir state(scratch.path(), ops, clock);
        CHECK_THROWS_AS(static_cast<void>(state.load()), Error);
        CHECK_THROWS_AS(state.append(payload_of(1)), Error);
        CHECK_THROWS_AS(state.archive("x"), Error);
        CHECK(sys::read_file(scratch.path() + "/journal.ndjson") == text);
    }

    TEST_CASE("members that this program does not know survive") {
        const ScratchState scratch;
        sys::LinuxFileOps ops;
        const FixedClock clock;
        const std::string body = R"({"seq":1,"formatVersion":1,"future":{"a":[1,2]},"prev":")" +
                                 std::string(k_no_previous) + R"(","time":"t","payload":{"entry":1,"more":"x"})";
        const std::string line = sealed(body);
        put(scratch.path() + "/journal.ndjson", line);
        const std::string head = "{\n  \"formatVersion\": 1,\n  \"serial\": 1,\n  \"payload\": {},\n  \"future\": 7";
        put(scratch.path() + "/upgrade.json", head + ",\n  \"checksum\": \"" + digest::sha256_hex(head) + "\"\n}\n");
        StateDir state(scratch.path(), ops, clock);
        state.append(payload_of(2));
        state.write_snapshot(payload_of(2));
        CHECK(sys::read_file(scratch.path() + "/journal.ndjson").substr(0, line.size()) == line);
        CHECK(sys::read_file(scratch.path() + "/upgrade.json").find("\"future\": 7") != std::string::npos);
        CHECK(StateDir(scratch.path(), ops, clock).load().warnings.empty());
    }
}
