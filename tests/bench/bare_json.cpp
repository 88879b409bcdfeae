// SPDX-License-Identifier: Apache-2.0
// The limit of reading a fleet: simdjson's on-demand parser over a file of `kubectl get -o json`, visiting the fields
// that kmm-plan reads and nothing else: of Nodes some, of other kinds metadata and all that spec and status have.
// Prints how much it saw.
#include <simdjson.h>

#include <cstdio>
#include <string_view>

namespace {

namespace od = simdjson::ondemand;

struct Seen {
    std::size_t values = 0, bytes = 0;

    void add(std::string_view text) {
        ++values;
        bytes += text.size();
    }
};

void read_strings(od::object object, Seen& seen) {
    for (auto field : object) {
        seen.add(field.unescaped_key());
        seen.add(std::string_view(field.value()));
    }
}

void read_all(od::value value, Seen& seen) {
    switch (value.type()) {
        case od::json_type::object:
            for (auto field : value.get_object()) {
                seen.add(field.unescaped_key());
                read_all(field.value(), seen);
            }
            break;
        case od::json_type::array:
            for (auto item : value.get_array()) { read_all(item.value(), seen); }
            break;
        case od::json_type::string: seen.add(std::string_view(value)); break;
        default: seen.add(value.raw_json_token());
    }
}

void read_metadata(od::object metadata, Seen& seen) {
    for (auto field : metadata) {
        const std::string_view key = field.unescaped_key();
        if (key == "name" || key == "uid") {
            seen.add(std::string_view(field.value()));
        } else if (key == "labels" || key == "annotations") {
            read_strings(field.value(), seen);
        }
    }
}

void read_spec(od::object spec, Seen& seen) {
    for (auto field : spec) {
        const std::string_view key = field.unescaped_key();
        if (key == "unschedulable") {
            seen.values += bool(field.value()) ? 1U : 0U;
        } else if (key == "taints") {
            for (auto taint : field.value()) { read_strings(taint.get_object(), seen); }
        }
    }
}

void read_status(od::object status, Seen& seen) {
    for (auto field : status) {
        const std::string_view key = field.unescaped_key();
        if (key == "nodeInfo") {
            read_strings(field.value(), seen);
        } else if (key == "conditions") {
            for (auto condition : field.value()) {
                for (auto member : condition.get_object()) {
                    const std::string_view name = member.unescaped_key();
                    if (name == "type" || name == "status") { seen.add(std::string_view(member.value())); }
                }
            }
        }
    }
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 2) { return 2; }
    try {
        const simdjson::padded_string text = simdjson::padded_string::load(argv[1]);
        od::parser parser;
        od::document document = parser.iterate(text);
        Seen seen;
        for (auto item : document["items"]) {
            bool is_node = false;
            for (auto field : item.get_object()) {
                const std::string_view key = field.unescaped_key();
                if (key == "kind") {
                    is_node = std::string_view(field.value()) == "Node";
                } else if (key == "metadata") {
                    read_metadata(field.value(), seen);
                } else if (!is_node && (key == "spec" || key == "status")) {
                    read_all(field.value(), seen);
                } else if (key == "spec") {
                    read_spec(field.value(), seen);
                } else if (key == "status") {
                    read_status(field.value(), seen);
                }
            }
        }
        std::printf("%zu values, %zu bytes\n", seen.values, seen.bytes);
    } catch (const simdjson::simdjson_error& error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
    return 0;
}
