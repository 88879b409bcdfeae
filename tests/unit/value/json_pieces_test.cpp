// SPDX-License-Identifier: Apache-2.0
// Lists that two threads read: they are what one thread reads, or nothing at all.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "mutate.hpp"
#include "value/object_stream.hpp"
#include "value/writer.hpp"

using namespace kmm;
using namespace kmm::value;

namespace {

std::string all_of(const Node& node) {
    const auto place = [](Mark mark) { return std::to_string(mark.line) + ":" + std::to_string(mark.column); };
    std::string out = std::string(kind_name(node.kind())) + "@" + place(node.mark()) + " " + node.text();
    for (const auto& item : node.items()) out += "[" + all_of(item) + "]";
    for (const auto& member : node.members())
        out += "{" + member.key + "@" + place(member.key_mark) + "=" + all_of(member.value) + "}";
    return out;
}

/// Items as texts, in the order of the list, each with what was known of the list.
class Items final : public ObjectSink {
public:
    const Shape* shape(const Node& object, const Node* list) override {
        CHECK((list == nullptr || list->is_mapping()));
        return object.find("kind") == nullptr ? nullptr : &k_shape;
    }
    bool take_item(Document& item, const Node& list) override {
        if (item.root.find("refused") != nullptr) return false;
        pieces_[piece_] += item.file + " " + all_of(item.root) + " in " + all_of(list) + "\n";
        return true;
    }
    void take_document(const Document& document) override {
        for (const auto& [number, taken] : pieces_) text += taken;
        pieces_.clear();
        text += all_of(document.root) + "\n";
    }
    std::unique_ptr<ObjectSink> part() override { return std::make_unique<Items>(); }
    void begin_piece(std::size_t number) override {
        CHECK((pieces_.empty() || pieces_.rbegin()->first < number));
        piece_ = number;
        (void)pieces_[number];
    }
    void join(const std::vector<std::unique_ptr<ObjectSink>>& parts) override {
        for (const auto& one : parts) pieces_.merge(static_cast<Items&>(*one).pieces_);
        count = pieces_.size();
    }

    std::string text;
    std::size_t count = 0;  ///< of pieces

private:
    inline static const Shape k_shape{{"left-out"}, {}};
    std::map<std::size_t, std::string> pieces_;
    std::size_t piece_ = 0;
};

ReadMore reader_of(std::string_view text) {
    return [text](char* into, std::size_t size) mutable {
        const auto count = std::min(text.size(), size);
        std::memcpy(into, text.data(), count);
        text.remove_prefix(count);
        return count;
    };
}

InPieces two_threads(std::size_t bytes) {
    return {[](const std::function<void()>& work) {
                std::thread other(work);
                work();
                other.join();
            },
            bytes};
}

/// How many pieces the text was read in, 0 if it was not read. What was read is what one thread reads.
std::size_t pieces_of(const std::string& text, std::size_t bytes) {
    Items alone, both;
    const bool is_good = !stream_json(reader_of(text), "f", alone);
    if (!stream_json_in_pieces(reader_of(text), "f", both, two_threads(bytes))) return 0;
    CHECK(is_good);
    CHECK(both.text == alone.text);
    return std::max<std::size_t>(1, both.count);
}

Node object(std::size_t number, std::size_t size) {
    return Node::mapping({{"apiVersion", "v" + std::to_string(number % 3)},
                          {"kind", number % 2 == 0 ? "Node" : "Other"},
                          {"list", Node::sequence({Node::mapping({{"apiVersion", "v1"}, {"name", "x,{\"\n"}}),
                                                   Node::mapping({{"apiVersion", "v1"}, {"name", "y"}})})},
                          {"left-out", Node::mapping({{"text", std::string(size, '{')}})},
                          {"text", "\xC3\xA9 \\" + std::string(size, ',')}});
}

Node list_of(std::size_t objects) {
    Node items = Node::sequence();
    for (std::size_t i = 0; i < objects; ++i) items.push_back(object(i, i * 7 % 90));
    return Node::mapping({{"apiVersion", "v1"}, {"items", items}, {"kind", "List"}, {"rest", Node::sequence({1, 2})}});
}

}  // namespace

TEST_SUITE("value::json_pieces") {
    TEST_CASE("a list is read in pieces of any size, pretty or in one line") {
        const auto list = list_of(60);
        for (const auto& text : {to_json_pretty(list), to_json(list), "\xEF\xBB\xBF" + to_json_pretty(list) + "\n\n"}) {
            for (const std::size_t bytes : {std::size_t{1}, std::size_t{300}, std::size_t{1000}, std::size_t{7000}})
                CHECK(pieces_of(text, bytes) > 1);
            CHECK(pieces_of(text, text.size() * 2) == 1);
        }
        CHECK(pieces_of(to_json_pretty(list_of(6000)), std::size_t{1} << 16U) > 30);
    }

    TEST_CASE("lists that cannot be cut are read, or left to one thread") {
        for (const auto* text : {"{\"items\": []}", "{\"items\": [1, 2]}", "{}", "{\"items\": [{}]}",
                                 "{\"items\": [{}, {}, {}]}", "{\"items\": [{\"a\": 1}, {\"a\": 1}], \"z\": {}}"}) {
            CAPTURE(text);
            CHECK(pieces_of(text, 1) == 1);
        }
        // Objects within the first one look like items: it is not a list of such objects.
        const std::string filler(300, 'x');
        CHECK(pieces_of("{\"items\": [\n{\"a\": [\n{\"a\": 1},\n{\"a\": \"" + filler + "\"}]}, {\"b\": 2}]}", 1) == 0);
        // The sink keeps an object back.
        auto list = list_of(20);
        list.find("items")->items()[15].set("refused", true);
        CHECK(pieces_of(to_json_pretty(list), 500) == 0);
        // Something that looks like items follows the list.
        auto text = to_json_pretty(list_of(20));
        text.insert(text.rfind('}'), ", \"more\": [\n    {\n}]");
        (void)pieces_of(text, 300);
    }

    TEST_CASE("damaged and cut texts are read as by one thread, or not at all") {
        std::mt19937 random(5);
        const std::vector<std::string> samples = {to_json_pretty(list_of(12)), to_json(list_of(12))};
        std::size_t read = 0;
        for (std::size_t round = 0; round < 600; ++round) {
            const auto text = mutate(random, samples[round % 2]);
            CAPTURE(text);
            read += pieces_of(text, 1 + random() % 900) > 0 ? 1U : 0U;
        }
        CHECK(read > 20);
        for (const auto& sample : samples)
            for (std::size_t size = 0; size + 1 < sample.size(); size += 13)
                CHECK(pieces_of(sample.substr(0, size), 400) == 0);
    }

    TEST_CASE("what a reader throws ends both threads") {
        const auto text = to_json_pretty(list_of(6000));  // more than is read before the threads begin
        auto more = reader_of(text);
        int calls = 0;
        const ReadMore failing = [&](char* into, std::size_t size) {
            if (++calls > 20) throw std::runtime_error("read");
            return more(into, std::min<std::size_t>(size, 100'000));
        };
        Items items;
        bool is_read = true;
        try {
            is_read = stream_json_in_pieces(failing, "f", items, two_threads(100));
        } catch (const std::runtime_error&) {
            is_read = false;
        }
        CHECK_FALSE(is_read);
    }
}
