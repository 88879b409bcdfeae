// SPDX-License-Identifier: Apache-2.0
#include "cli/table.hpp"

#include <algorithm>
#include <string_view>
#include <thread>

#include <doctest/doctest.h>

#include "cli/text.hpp"

namespace kmm::cli {
namespace {

TEST_SUITE("cli::unit") {
    TEST_CASE("tables have two blanks between columns and none at the end") {
        CHECK(format_table({"NODE", "STATE"}, {{"node-a", "done"}, {"b", ""}}, 0) ==
              "NODE    STATE\nnode-a  done\nb\n");
        CHECK(format_table({"NODE"}, {}, 80) == "NODE\n");
        CHECK(format_table({"A", "B"}, {{"é", "x"}, {"ab", "y"}}, 0) == "A   B\né   x\nab  y\n");
        CHECK(format_table({"A"}, {{"a\x1b[31m\nb"}}, 0) == "A\na\\x1b[31m\\nb\n");
    }

    TEST_CASE("a table too wide loses its last column first") {
        const std::vector<std::vector<std::string>> rows = {{"0123456789", "0123456789", "0123456789"}};
        CHECK(format_table({"A", "B", "C"}, rows, 34) ==
              "A           B           C\n0123456789  0123456789  0123456789\n");
        CHECK(format_table({"A", "B", "C"}, rows, 33) ==
              "A           B           C\n0123456789  0123456789  01234567…\n");
        CHECK(format_table({"A", "B", "C"}, rows, 31) == "A           B          C\n0123456789  01234567…  0123456…\n");
        CHECK(format_table({"A", "B", "C"}, rows, 1) == "A         B         C\n0123456…  0123456…  0123456…\n");
    }

    TEST_CASE("a folded table has below its lines as many columns as it takes") {
        const std::vector<std::string> headers{"NAME", "KERNEL", "NODES", "STATE", "REASON"};
        const std::vector<std::vector<std::string>> rows{{"a", "5.14.0-427.43.1", "2", "fail", "no-mapping"},
                                                         {"b", "-", "1", "pass", "-"}};
        CHECK(folded_table(headers, rows, 1, 80) == format_table(headers, rows, 0));
        CHECK(folded_table(headers, rows, 1, 35) ==
              "NAME  KERNEL           NODES  STATE\na     5.14.0-427.43.1  2      fail\n  no-mapping\n"
              "b     -                1      pass\n");
        CHECK(folded_table(headers, rows, 1, 28) ==
              "NAME  KERNEL           NODES\na     5.14.0-427.43.1  2\n  state fail, no-mapping\n"
              "b     -                1\n  state pass\n");
        CHECK(folded_table(headers, rows, 2, 21) ==
              "NAME  KERNEL\na     5.14.0-427.43.1\n  nodes 2,\n  fail: no-mapping\nb     -\n  nodes 1, pass: -\n");
        CHECK(folded_table(headers, rows, 1, 5) ==
              "NAME\na\n  kernel 5.14.0-427.43.1,\n  nodes 2,\n  state fail,\n  no-mapping\nb\n  nodes 1,\n"
              "  state pass\n");
    }

    TEST_CASE("a table whose rows are not kept is the same") {
        std::vector<std::vector<std::string>> rows = {
            {"é", "x", "a\x1b[31m\nb"}, {"ab", "y"}, {"1", "2", "3", "4"}, {"0123456789", "0123456789", "0123456789"}};
        for (const std::size_t count : {std::size_t{0}, std::size_t{4}, std::size_t{9000}}) {
            rows.resize(count, {"a", "b", "c"});
            for (const std::size_t width : {std::size_t{0}, std::size_t{31}, std::size_t{1}}) {
                CAPTURE(count);
                CAPTURE(width);
                std::string text;
                std::size_t longest = 0;
                const auto each = [&](const auto& row) {
                    for (const auto& cells : rows) row(cells);
                };
                print_table({"A", "B", "C"}, each, width, [&](std::string_view piece) {
                    text += piece;
                    longest = std::max(longest, piece.size());
                });
                CHECK(text == format_table({"A", "B", "C"}, rows, width));
                CHECK(longest < 70'000);
            }
        }
    }

    TEST_CASE("properties") {
        CHECK(format_properties({{"module", "a"}, {"to", "v2"}, {"empty", ""}}) == "module   a\nto       v2\nempty\n");
    }

    TEST_CASE("cutting never splits a code point or a colour") {
        CHECK(cut("abc", 3) == "abc");
        CHECK(cut("abcd", 3) == "ab…");
        CHECK(cut("ééé", 2) == "é…");
        CHECK(cut("\x1b[31mabcd\x1b[0m", 3) == "\x1b[31mab…\x1b[0m");
        CHECK(cut("abcd", 1) == "…");
        CHECK(cut("abcd", 0) == "");
        CHECK(display_width("\x1b[1;31mé\x1b[0m") == 1);
        CHECK(display_width("\xff\xfe") == 2);
    }

    TEST_CASE("wrapping") {
        CHECK(wrap("", 10) == "");
        CHECK(wrap("aaa bbb ccc", 7) == "aaa bbb\nccc\n");
        CHECK(wrap("aaa bbb ccc", 9, 2) == "  aaa bbb\n  ccc\n");
        CHECK(wrap("a\n\nb", 10, 1) == " a\n\n b\n");
        CHECK(wrap("aaaaaaaaaaaa b", 5) == "aaaaaaaaaaaa\nb\n");
        CHECK(wrap("intro:\n  kept   as is", 10, 2) == "  intro:\n    kept   as is\n");
    }

    TEST_CASE("the live area redraws in place, also after a resize") {
        BufferConsole console;
        console.terminal = true;
        console.columns = 20;
        {
            LiveArea area(console);
            area.draw({"0123456789abcdefghij", "short"});
            CHECK(console.err_text == "0123456789abcdefgh…\nshort\n");
            console.err_text.clear();
            console.columns = 10;  // the first line now takes two rows
            area.draw({"x"});
            CHECK(console.err_text == "\x1b[3A\r\x1b[Jx\n");
            console.err_text.clear();
        }
        CHECK(console.err_text == "\x1b[1A\r\x1b[J");
    }

    TEST_CASE("the live area is no higher than the terminal") {
        BufferConsole console;
        console.terminal = true;
        LiveArea area(console);
        area.draw(std::vector<std::string>(30, "x"));
        CHECK(console.err_text.ends_with("x\n… 8 more\n"));
        CHECK(std::count(console.err_text.begin(), console.err_text.end(), '\n') == 23);
    }

    TEST_CASE("what is printed while there is a live block stands above it") {
        BufferConsole console;
        console.terminal = true;
        LiveArea area(console);
        area.draw({"a", "b"});
        console.err_text.clear();
        console.err("note: one\n");
        CHECK(console.err_text == "\x1b[2A\r\x1b[Jnote: one\na\nb\n");
        console.err_text.clear();
        console.out("result\n");  // the same screen
        CHECK(console.out_text == "result\n");
        CHECK(console.err_text == "\x1b[2A\r\x1b[Ja\nb\n");
        console.err_text.clear();
        area.clear();
        console.err("note: two\n");
        CHECK(console.err_text == "\x1b[2A\r\x1b[Jnote: two\n");
    }

    TEST_CASE("a question has its line for itself: no live block is drawn into it") {
        BufferConsole console;
        console.terminal = true;
        console.err("go on? ");
        LiveArea area(console);
        area.draw({"a"});
        area.draw({"b"});
        CHECK(console.err_text == "go on? ");
        console.err("\n");
        CHECK(console.err_text == "go on? \nb\n");
        console.err_text.clear();
        console.err("and on? ");
        CHECK(console.err_text == "\x1b[1A\r\x1b[Jand on? ");
        area.clear();
        CHECK(console.err_text == "\x1b[1A\r\x1b[Jand on? ");
    }

    TEST_CASE("messages of several threads never mix with a live block") {
        BufferConsole console;
        console.terminal = true;
        LiveArea area(console);
        std::vector<std::thread> threads;
        for (int thread = 0; thread < 4; ++thread)
            threads.emplace_back([&] {
                for (int i = 0; i < 50; ++i) {
                    console.err("note: x\n");
                    area.draw({"a", "b"});
                }
            });
        for (auto& thread : threads) thread.join();
        std::string_view rest = console.err_text;
        std::size_t notes = 0;
        while (!rest.empty()) {
            if (rest.starts_with("\x1b[2A\r\x1b[J")) rest.remove_prefix(std::string_view("\x1b[2A\r\x1b[J").size());
            const bool is_note = rest.starts_with("note: x\n");
            if (is_note) rest.remove_prefix(8);
            notes += is_note ? 1 : 0;
            const bool is_block = rest.starts_with("a\nb\n");
            if (is_block) rest.remove_prefix(4);
            REQUIRE((is_note || is_block));
        }
        CHECK(notes == 200);
    }

    TEST_CASE("a node's name is taken out as a word") {
        CHECK(without_node("ssh: node-1: refused, node-1.", "node-1") == "ssh: NODE: refused, NODE.");
        CHECK(without_node("node-10 my-node-1 node-1.example.com x.node-1", "node-1") ==
              "node-10 my-node-1 node-1.example.com x.node-1");
        CHECK(without_node("a", "a") == "NODE");
        CHECK(without_node("text", "") == "text");
        CHECK(without_node("Pod status-node-1-x-b7k2p, status-node-10-x-b7k2p, node-1-b7k2p.", "node-1") ==
              "Pod status-NODE-x-…, status-node-10-x-b7k2p, node-1-b7k2p.");
    }

    TEST_CASE("the live area is silent where it cannot redraw") {
        BufferConsole console;
        LiveArea area(console);
        area.draw({"x"});
        area.clear();
        CHECK(console.err_text.empty());
    }
}

}  // namespace
}  // namespace kmm::cli
