// SPDX-License-Identifier: Apache-2.0
// The streaming readers against the readers of whole texts: what they accept is the same tree with the same marks.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <random>
#include <string>
#include <vector>

#include "mutate.hpp"
#include "support/sanitized.hpp"
#include "value/object_stream.hpp"
#include "value/writer.hpp"

using namespace kmm;
using namespace kmm::value;

namespace {

std::string place(Mark mark) { return std::to_string(mark.line) + ":" + std::to_string(mark.column); }

/// A tree with all its marks as text.
std::string dump(const Node& node) {
    std::string out = std::string(kind_name(node.kind())) + "@" + place(node.mark()) + " " + node.text();
    for (const auto& item : node.items()) out += "[" + dump(item) + "]";
    for (const auto& member : node.members())
        out += "{" + member.key + "@" + place(member.key_mark) + "=" + dump(member.value) + "}";
    return out;
}

/// Puts the items back where they were.
class Collector : public ObjectSink {
public:
    const Shape* shape(const Node& object, const Node* list) override {
        shapes_asked += object.members().empty() ? 1U : 0U;
        CHECK((list == nullptr || list->is_mapping()));
        return shape_of_objects;
    }
    bool take_item(Document& item, const Node&) override {
        if (refuse_items) return false;
        items_.push_back(item.root);
        ++taken;
        return true;
    }
    void take_document(const Document& document) override {
        Node root = document.root;
        if (auto* list = root.find("items"); list != nullptr && list->is_sequence() && !items_.empty()) {
            CHECK(list->items().empty());
            for (auto& item : items_) list->push_back(item);
        }
        items_.clear();
        text += dump(root) + "\n";
    }

    std::string text;
    std::size_t taken = 0, shapes_asked = 0;
    bool refuse_items = false;
    const Shape* shape_of_objects = nullptr;

private:
    std::vector<Node> items_;
};

/// Hands a text out in pieces of at most `piece` bytes.
ReadMore pieces(std::string_view text, std::size_t piece) {
    return [text, piece](char* into, std::size_t size) mutable {
        const auto count = std::min({text.size(), piece, size});
        std::memcpy(into, text.data(), count);
        text.remove_prefix(count);
        return count;
    };
}

using Stream = std::optional<Diagnostic> (*)(const ReadMore&, std::string_view, ObjectSink&, const ReadLimits&);
using Reader = std::vector<Document> (*)(std::string_view, std::string_view, Diagnostics&, const ReadLimits&);

/// True if the streaming reader takes the text; then it must have read what the other one reads.
bool agrees(Stream stream, Reader reader, const std::string& text, std::size_t piece = 4096,
            bool refuse_items = false) {
    Collector collector;
    collector.refuse_items = refuse_items;
    const auto doubt = stream(pieces(text, piece), "f", collector, {});
    if (doubt) {
        CHECK_FALSE(doubt->message.empty());
        REQUIRE(doubt->position);
        CHECK(doubt->position->file == "f");
        return false;
    }
    Diagnostics faults;
    const auto documents = reader(text, "f", faults, {});
    std::string expected;
    for (const auto& document : documents) expected += dump(document.root) + "\n";
    CHECK(faults.empty());
    CHECK(collector.text == expected);
    return true;
}

Node random_object(std::mt19937& random, int index) {
    const auto roll = [&](std::size_t n) { return static_cast<std::size_t>(random()) % n; };
    static const std::vector<std::string> words = {
        "a", "yes", "1", "x\ny", "\"q\\", "\xC3\xA9", "long text, with: more", "", "{}", "1e3"};
    Node labels = Node::mapping();
    for (std::size_t i = roll(12); i > 0; --i)
        labels.set("k" + std::to_string(i) + words[roll(words.size())], words[roll(words.size())]);
    Node list = Node::sequence();
    for (std::size_t i = roll(5); i > 0; --i)
        list.push_back(Node::mapping({{"n", Node(static_cast<int>(roll(100)) - 50)}, {"f", Node(0.25)}}));
    return Node::mapping({{"apiVersion", "v1"},
                          {"kind", "Node"},
                          {"name", "n" + std::to_string(index)},
                          {"labels", labels},
                          {"list", list},
                          {"text", std::string(roll(400), 'x') + words[roll(words.size())]},
                          {"flag", Node(true)}});
}

Node random_list(std::size_t objects) {
    std::mt19937 random(7);
    Node items = Node::sequence();
    for (std::size_t i = 0; i < objects; ++i) items.push_back(random_object(random, static_cast<int>(i)));
    return Node::mapping(
        {{"apiVersion", "v1"}, {"items", items}, {"kind", "List"}, {"metadata", Node::mapping({{"x", ""}})}});
}

const std::vector<std::string> k_lists = {
    "{\n  \"apiVersion\": \"v1\",\n  \"items\": [\n    {\"kind\": \"A\", \"b\": \"x\\\"y\"},\n    {\"c\": [1, -2.5e1, "
    "null, {}]}\n  ],\n  \"kind\": \"List\"\n}\n",
    "apiVersion: v1\nitems:\n- apiVersion: v1\n  kind: A\n  metadata:\n    labels:\n      b: \"true\"\n      a/c: "
    "'it''s \xC3\xA9 x'\n    n: null\n- kind: B\n"
    "  list:\n  - 1\n  - {x: y}\n  text: |\n    a\n     b\nkind: List\nmetadata:\n  resourceVersion: \"\"\n",
};

/// Numbers repeated values, and knows each one that an item before had.
class Remembering final : public ObjectSink {
public:
    const Shape* shape(const Node&, const Node*) override { return &k_object; }
    std::uint32_t number_repeat() override { return ++numbers; }
    bool knows(std::uint32_t repeat) const override { return known_.contains(repeat); }
    bool take_item(Document& item, const Node&) override {
        std::map<std::uint32_t, Node> found;
        for (const auto* key : {"labels", "list"}) {
            Node* part = item.root.find(key);
            const auto number =
                part == nullptr ? numbers_.end() : numbers_.find({part->mark().line, part->mark().column});
            if (number == numbers_.end() || number->second == 0) continue;
            if (const auto before = known_.find(number->second); before != known_.end()) {
                CHECK(part->members().empty());
                CHECK(part->items().empty());
                CHECK(part->kind() == before->second.kind());
                const auto mark = part->mark();
                *part = before->second;
                part->set_mark(mark);
                ++filled;
            } else {
                found.emplace(number->second, *part);
            }
        }
        known_.merge(found);
        items.push_back(std::move(item.root));
        return true;
    }
    void take_document(const Document&) override {}
    void take_repeats(const std::vector<Repeat>& repeats) override {
        numbers_.clear();
        for (const auto& one : repeats)
            CHECK(numbers_.emplace(std::pair(one.mark.line, one.mark.column), one.number).second);
    }

    std::uint32_t numbers = 0;
    std::size_t filled = 0;
    std::vector<Node> items;

private:
    inline static const Shape k_labels{{}, {}, "", Shape::Repeats::mapping};
    inline static const Shape k_list{{}, {}, "", Shape::Repeats::list};
    inline static const Shape k_object{{}, {{"labels", &k_labels}, {"list", &k_list}}};
    std::map<std::uint32_t, Node> known_;
    std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> numbers_;  ///< by line and column
};

}  // namespace

TEST_SUITE("value::object_stream") {
    TEST_CASE("a value that was read before is not read again, and is what it would be") {
        std::mt19937 random(3);
        std::vector<Node> labels, lists;
        for (int i = 0; i < 6; ++i) {
            Node map = Node::mapping(), list = Node::sequence();
            // Long and alike: only the last of it differs.
            for (int k = 0; k < 9; ++k)
                map.set("key-" + std::to_string(k),
                        "a text that is as long as any: " + std::string(k == 8 ? std::size_t(i) : 0, 'x'));
            for (int k = 0; k < 9; ++k)
                list.push_back(Node::mapping(
                    {{"key", "yes"}, {"a\"b", Node(k == 8 ? i : 7)}, {"text", "0x1f is not a number\nhere"}}));
            labels.push_back(map);
            lists.push_back(list);
        }
        Node items = Node::sequence();
        for (int i = 0; i < 4000; ++i) {
            items.push_back(
                Node::mapping({{"kind", "Node"},
                               {"name", "n" + std::to_string(i)},
                               {"labels", labels[random() % labels.size()]},
                               {"list", random() % 5 == 0 ? Node::sequence() : lists[random() % lists.size()]},
                               {"flag", Node(true)}}));
        }
        const Node list = Node::mapping({{"kind", "List"}, {"items", items}});
        const auto check = [](Stream stream, Reader reader, const std::string& text) {
            Remembering sink;
            CHECK_FALSE(stream(pieces(text, 100'000), "f", sink, {}));
            Diagnostics faults;
            const auto whole = reader(text, "f", faults, {});
            const auto& expected = whole.at(0).root.find("items")->items();
            REQUIRE(sink.items.size() == expected.size());
            std::size_t different = 0;
            for (std::size_t i = 0; i < expected.size(); ++i) {
                different += sink.items[i].same_value(expected[i]) ? 0U : 1U;
                for (const auto* key : {"name", "labels", "list", "flag"})
                    different += sink.items[i].find(key)->mark() == expected[i].find(key)->mark() ? 0U : 1U;
            }
            CHECK(different == 0);
            CHECK(sink.filled > 6000);
            CHECK(sink.numbers == 12);
        };
        check(stream_json, read_json, to_json_pretty(list));
        check(stream_json, read_json, to_json(list));
        check(stream_yaml, read_yaml, to_yaml(list));
    }

    TEST_CASE("a sink that numbers nothing gets whole trees, and a fault in a repeated value is a doubt") {
        const std::string value = "{\"a\": \"" + std::string(300, 'x') + "\", \"b\": [1, {\"c\": null}]}";
        const auto text = [&](const std::string& last) {
            return "{\"kind\": \"List\", \"items\": [{\"labels\": " + value + "}, {\"labels\": " + value +
                   "}, {\"labels\": " + last + "}]}";
        };
        static const Shape repeated{{}, {}, "", Shape::Repeats::mapping};
        static const Shape object{{}, {{"labels", &repeated}}};
        for (const auto stream : {Stream(stream_json), Stream(stream_yaml)}) {
            Collector collector, plain;
            collector.shape_of_objects = &object;
            CHECK_FALSE(stream(pieces(text(value), 50), "f", collector, {}));
            CHECK_FALSE(stream(pieces(text(value), 50), "f", plain, {}));
            CHECK(collector.text == plain.text);
            for (const auto& bad :
                 {value.substr(0, value.size() - 1), value + "]", std::string("{\"a\": 1, \"a\": 2}")}) {
                Remembering sink;
                CHECK(stream(pieces(text(bad), 50), "f", sink, {}));
            }
        }
    }

    TEST_CASE("large lists are read through many windows, pretty or in one line") {
        const Node list = random_list(9000);
        const std::string pretty = to_json_pretty(list);
        const std::string line = to_json(list);
        const std::string yaml = to_yaml(list);
        REQUIRE(line.size() > 3'000'000);
        CHECK(agrees(stream_json, read_json, pretty));
        CHECK(agrees(stream_json, read_json, line, 100'000));
        CHECK(agrees(stream_json, read_json, "\xEF\xBB\xBF" + pretty, 777));
        CHECK(agrees(stream_json, read_json, pretty, 4096, true));
        CHECK(agrees(
            stream_yaml,
            [](std::string_view text, std::string_view file, Diagnostics& faults, const ReadLimits&) {
                ReadLimits limits;
                limits.nodes_max = 10'000'000;
                return read_yaml(text, file, faults, limits);
            },
            yaml));
    }

    TEST_CASE("numbers and words as they were written, of items and of what is left") {
        class Texts : public Collector {
        public:
            bool take_item(Document& item, const Node& list) override {
                seen += "item:" + entries(item);
                return Collector::take_item(item, list);
            }
            void take_document(const Document& document) override { seen += "document:" + entries(document); }
            static std::string entries(const Document& document) {
                std::string all;
                for (const auto& [mark, text] : document.written) all += place(mark) + "=" + text + " ";
                return all;
            }
            std::string seen;
        };
        const std::string text =
            "kind: List\nitems:\n- {a: 1.10, b: 2}\n- {a: yes, b: [true, 0x1F]}\n- {a: 1}\nz: 1e3\n---\nkind: 1_0\n";
        Texts taken;
        CHECK_FALSE(stream_yaml(pieces(text, 4096), "f", taken, {}));
        CHECK(taken.seen == "item:3:7=1.10 item:4:7=yes 4:22=0x1F item:document:6:4=1e3 document:8:7=1_0 ");
        Texts refused;
        refused.refuse_items = true;
        CHECK_FALSE(stream_yaml(pieces(text, 4096), "f", refused, {}));
        CHECK(refused.seen == "item:3:7=1.10 item:3:7=1.10 4:7=yes 4:22=0x1F item:3:7=1.10 4:7=yes 4:22=0x1F "
                              "document:3:7=1.10 4:7=yes 4:22=0x1F 6:4=1e3 document:8:7=1_0 ");
        Diagnostics faults;
        const auto documents = read_yaml(text, "f", faults);
        REQUIRE(documents.size() == 2);
        CHECK(Texts::entries(documents[0]) == "3:7=1.10 4:7=yes 4:22=0x1F 6:4=1e3 ");
        CHECK(documents[1].text_of(*documents[1].root.find("kind")) == "1_0");
        CHECK(documents[0].text_of(*documents[0].root.find("kind")) == "List");
    }

    TEST_CASE("an object larger than a window is one object") {
        Node big = Node::mapping(
            {{"kind", "A"}, {"text", std::string(3'000'000, '"')}, {"more", std::string(2'000'000, ',')}});
        const Node list = Node::mapping({{"items", Node::sequence({Node::mapping({{"a", 1}}), big, big})}});
        CHECK(agrees(stream_json, read_json, to_json(list)));
        CHECK(agrees(stream_json, read_json, to_json(big)));
        ReadLimits limits;
        limits.bytes_max = 2U << 20U;
        Collector collector;
        CHECK(stream_json(pieces(to_json(list), 4096), "f", collector, limits).has_value());
    }

    TEST_CASE("damaged text is read alike or not at all") {
        std::mt19937 random(99);
        std::vector<std::string> samples = k_samples;
        samples.insert(samples.end(), k_lists.begin(), k_lists.end());
        const std::size_t rounds = test::sanitized() ? 3000 : 9000;
        std::size_t json = 0, yaml = 0;
        for (std::size_t round = 0; round < rounds; ++round) {
            const auto& sample = samples[round % samples.size()];
            auto text = round < samples.size() ? sample : mutate(random, sample);
            // Of a last line of blanks yaml-cpp makes one in a folded text; libyaml and Go do not.
            if (text.ends_with(' ')) text += '\n';
            CAPTURE(text);
            json += agrees(stream_json, read_json, text, 1 + round % 50) ? 1U : 0U;
            yaml += agrees(stream_yaml, read_yaml, text, 1 + round % 50, round % 3 == 0) ? 1U : 0U;
        }
        CHECK(json > rounds / 90);
        CHECK(yaml > rounds / 18);
    }

    TEST_CASE("a text cut anywhere is a doubt") {
        for (std::size_t length = 0; length + 2 < k_lists[0].size(); ++length) {
            CAPTURE(length);
            CHECK_FALSE(agrees(stream_json, read_json, k_lists[0].substr(0, length), 3));
        }
    }

    TEST_CASE("what a shape leaves out is checked and not kept") {
        const Shape inner{{"drop"}, {}};
        const Shape shape{{"fat"}, {{"list", &inner}}};
        const auto read = [&](Stream stream, const std::string& text) {
            Collector collector;
            collector.shape_of_objects = &shape;
            const auto doubt = stream(pieces(text, 5), "f", collector, {});
            return doubt ? "!" + std::to_string(doubt->position->line) + ":" + std::to_string(doubt->position->column)
                         : collector.text;
        };
        const std::string kept = "mapping@1:1 {list@1:2=list@1:9 [mapping@1:10 {a@1:11=integer@1:15 1}]}\n";
        const auto with = [](const std::string& fat) {
            return "{\"list\": [{\"a\": 1, \"drop\": " + fat + "}], \"fat\": " + fat + "}";
        };
        CHECK(read(stream_json, "{\"list\":[{\"a\": 1, \"drop\": 7}], \"fat\": {\"x\": [\"\\n\", 12, -1.5]}}") ==
              "mapping@1:1 {list@1:2=list@1:9 [mapping@1:10 {a@1:11=integer@1:16 1}]}\n");
        CHECK(read(stream_yaml, "{\"list\":[{\"a\":1, \"drop\": 7}], \"fat\": {\"x\": [\"\\n\", 12, -1.5]}}") == kept);
        const std::vector<std::string> bad = {
            "tru",     "01",          "1.",     "[1,]",  "{\"a\"}",           "{\"a\":}", "{,}",  "[1 2]",
            "\"\\x\"", "\"\\ud800\"", "+1",     "1e999", "{\"a\":1 \"b\":2}", "[}",       "{]",   "nul",
            "-",       "\"a\"b",      "a\"b\"", "",      "{\"fat\" 1}",       "{1:2}",    "[[[]]"};
        for (const auto& fat : bad) {
            CAPTURE(fat);
            CHECK(read(stream_json, with(fat))[0] == '!');
        }
        CHECK(read(stream_json, with("1") + "x")[0] == '!');
        CHECK(read(stream_json, "{\"fat\":1,\"fat\":2}") == "!1:10");
        CHECK(read(stream_yaml, "fat: 1\nfat: 2\n") == "!2:1");
        CHECK(read(stream_yaml, "a: 1\nfat: [*x]\n")[0] == '!');
        CHECK(read(stream_yaml, "a: 1\nfat: {b: !c 1}\n")[0] == '!');
        CHECK(read(stream_json, with(std::string(101, '[') + std::string(101, ']')))[0] == '!');
        CHECK(read(stream_yaml, with(std::string(101, '[') + std::string(101, ']')))[0] == '!');
    }

    TEST_CASE("strings whose keys lack a part are checked and not kept") {
        const Shape shape{{}, {}, "kmm"};
        const auto read = [&](const std::string& text, std::size_t piece) {
            Collector collector;
            collector.shape_of_objects = &shape;
            return stream_json(pieces(text, piece), "f", collector, {}) ? "!" : collector.text;
        };
        const std::string text = "{\"a\": \"b\", \"x.kmm/y\": \"c\", \"d\": 1, \"e\": \"\\n\", \"kmm\": [\"f\"]}";
        for (const std::size_t piece : {1U, 3U, 99U}) {
            CHECK(read(text, piece) ==
                  "mapping@1:1 {x.kmm/y@1:12=string@1:23 c}{d@1:28=integer@1:33 1}{kmm@1:47=list@1:54 [string@1:55 "
                  "f]}\n");
        }
        for (const auto* bad : {"{\"a\": \"\\x\"}", "{\"a\": \"b\" \"c\": 1}", "{\"a\" \"b\"}", "{\"a\": \"b\",}",
                                "{\"a\": \"b\"", "{\"a\": b}"}) {
            CAPTURE(bad);
            CHECK(read(bad, 99) == "!");
        }
    }

    TEST_CASE("limits count for an item, not for a list") {
        ReadLimits limits;
        limits.nodes_max = limits.json_nodes_max = 40;
        const Node item = Node::mapping({{"kind", "A"}, {"b", Node::sequence({1, 2, 3})}});
        const Node list = Node::mapping({{"items", Node::sequence(std::vector<Node>(50, item))}});
        const Node large = Node::mapping(
            {{"items", Node::sequence({Node::mapping({{"x", Node::sequence(std::vector<Node>(50, item))}})})}});
        Collector collector;
        CHECK_FALSE(stream_json(pieces(to_json(list), 99), "f", collector, limits));
        CHECK_FALSE(stream_yaml(pieces(to_yaml(list), 99), "f", collector, limits));
        CHECK(collector.taken == 100);
        CHECK(stream_json(pieces(to_json(large), 99), "f", collector, limits).has_value());
        CHECK(stream_yaml(pieces(to_yaml(large), 99), "f", collector, limits).has_value());
    }

    TEST_CASE("columns count bytes behind characters of several bytes") {
        CHECK(agrees(stream_yaml, read_yaml,
                     "a: {\xC3\xA9: 1, \"\xE2\x82\xAC\xF0\x9F\x98\x80\": [x, y], z: 2}\nb: {\xC3\xA9: 1, c: 2}\nd: 3\n",
                     1));
        Collector collector;
        CHECK(stream_yaml(pieces("a: 'x\xC2\x85y'\nb: 1\n", 1), "f", collector, {}).has_value());
        CHECK(stream_yaml(pieces("a: 1\rb: 1\n", 1), "f", collector, {}).has_value());
        CHECK(stream_yaml(pieces("a: 1\rb: 1\n", 4), "f", collector, {}).has_value());
    }

    TEST_CASE("a byte that libyaml's reader refuses has its own place, wherever pieces of the text end") {
        const auto found = [](std::string_view text, std::size_t piece) {
            Collector sink;
            const auto doubt = stream_yaml(pieces(text, piece), "f", sink);
            REQUIRE(doubt);
            REQUIRE(doubt->position);
            return std::to_string(doubt->position->line) + ":" + std::to_string(doubt->position->column);
        };
        std::string lines;
        for (int i = 0; i < 3000; ++i) lines += "- \"\xC3\xA4\": 1\n";
        for (const std::size_t piece : {std::size_t{1}, std::size_t{7}, std::size_t{100000}}) {
            CAPTURE(piece);
            CHECK(found("a: 1\nb: \"\xC3\xA4\x07\"\n", piece) == "2:7");
            CHECK(found("a: \"\xC3\xA4\xC2\x80\"\n", piece) == "1:7");
            CHECK(found(lines + "- \"\xC3\xA4 \x07\"\n", piece) == "3001:7");
        }
    }
}
