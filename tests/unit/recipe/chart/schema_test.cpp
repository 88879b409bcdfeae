// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "base/error.hpp"
#include "recipe/chart/schema.hpp"
#include "recipe/chart/schema_format.hpp"
#include "recipe/golib/json.hpp"

namespace {

using namespace kmm;

constexpr const char* k_draft7 = R"("$schema": "http://json-schema.org/draft-07/schema#", )";
constexpr const char* k_draft2019 = R"("$schema": "https://json-schema.org/draft/2019-09/schema", )";

std::vector<std::string> faults(const std::string& schema, const std::string& values) {
    std::string fault;
    return recipe::chart::schema_faults(schema, "s.json", recipe::tmpl::read_json_text(values, fault));
}

bool meets(const std::string& schema, const std::string& values) { return faults(schema, values).empty(); }

/// "": it is a schema.
std::string refused(const std::string& schema) {
    try {
        (void)faults(schema, "{}");
    } catch (const Error& error) {
        CHECK(error.code() == "bad-schema");
        return error.message();
    }
    return "";
}

}  // namespace

TEST_CASE("what no keyword has looked at is unevaluated") {
    const std::string closed = R"("unevaluatedProperties": false})";
    CHECK(meets(R"({"allOf": [{"properties": {"x": true}}], )" + closed, R"({"x": 1})"));
    CHECK(faults(R"({"allOf": [{"properties": {"x": true}}], )" + closed, R"({"x": 1, "y": 2})") ==
          std::vector<std::string>{"(root): the property y is not allowed"});
    CHECK(meets(
        R"({"if": {"required": ["x"], "properties": {"x": true}}, "then": {"properties": {"y": true}}, )" + closed,
        R"({"x": 1, "y": 2})"));
    CHECK_FALSE(meets(R"({"not": {"properties": {"x": {"type": "string"}}}, )" + closed, R"({"x": 1})"));
    CHECK(meets(R"({"anyOf": [{"properties": {"x": true}}, {"properties": {"y": true}}], )" + closed,
                R"({"x": 1, "y": 2})"));
    CHECK(meets(R"({"contains": {"const": 1}, "unevaluatedItems": {"type": "string"}})", R"([1, "a"])"));
    CHECK_FALSE(meets(R"({"prefixItems": [true], "unevaluatedItems": false})", "[1, 2]"));
    const std::string contains = R"("contains": {"const": 1}, "unevaluatedItems": false})";
    CHECK_FALSE(meets(std::string("{") + k_draft2019 + contains, "[1]"));
    CHECK(meets("{" + contains, "[1]"));
    CHECK(meets(std::string("{") + k_draft7 + closed, R"({"x": 1})"));
}

TEST_CASE("references lead to identifiers, anchors and pointers") {
    const std::string item =
        R"("properties": {"x": {"$ref": "item.json"}}, "$defs": {"i": {"$id": "item.json", "type": "string"}}})";
    CHECK_FALSE(meets("{" + item, R"({"x": 1})"));
    CHECK_FALSE(meets(R"({"$id": "http://example.test/a/b.json", )" + item, R"({"x": 1})"));
    CHECK_FALSE(meets(R"({"properties": {"x": {"$ref": "#a"}}, "$defs": {"i": {"$anchor": "a", "type": "string"}}})",
                      R"({"x": 1})"));
    CHECK_FALSE(
        meets(R"({"properties": {"x": {"$ref": "#/own/a~1b"}}, "own": {"a/b": {"type": "string"}}})", R"({"x": 1})"));
    CHECK(meets(R"({"properties": {"x": {"$ref": "urn:example:x"}}})", R"({"x": 1})"));
    const std::string beside =
        R"("properties": {"x": {"$ref": "#/definitions/a", "type": "string"}}, "definitions": {"a": {}}})";
    CHECK(meets(std::string("{") + k_draft7 + beside, R"({"x": 1})"));
    CHECK_FALSE(meets("{" + beside, R"({"x": 1})"));
    const std::string tree =
        R"({"$ref": "tree.json", "$dynamicAnchor": "node", "unevaluatedProperties": false, "$defs": {"t": {"$id": "tree.json",
            "$dynamicAnchor": "node", "properties": {"x": {"$dynamicRef": "#node"}}}}})";
    CHECK(meets(tree, R"({"x": {"x": {}}})"));
    CHECK_FALSE(meets(tree, R"({"x": {"z": 1}})"));
    CHECK_FALSE(
        meets(std::string("{") + k_draft2019 +
                  R"("$recursiveAnchor": true, "properties": {"x": {"$recursiveRef": "#"}}, "maxProperties": 1})",
              R"({"x": {"a": 1, "b": 2}})"));
    CHECK(faults(R"({"$ref": "#"})", "{}") ==
          std::vector<std::string>{"(root): the schema refers to itself without an end"});
    CHECK(meets(R"({"properties": {"x": {"$ref": "http://json-schema.org/draft-07/schema#"}}})",
                R"({"x": {"type": "string"}})"));
    CHECK_FALSE(meets(R"({"properties": {"x": {"$ref": "http://json-schema.org/draft-07/schema#"}}})",
                      R"({"x": {"type": "s"}})"));
}

TEST_CASE("a schema is refused for what leads nowhere, and for names that stand twice") {
    CHECK(refused(R"({"properties": {"x": {"$ref": "other.json"}}})") == "$ref other.json leads to another document");
    CHECK(refused(R"({"properties": {"x": {"$ref": "#/absent"}}})") == "$ref #/absent leads nowhere");
    CHECK(refused(R"({"$ref": "#absent"})") == "$ref #absent leads nowhere");
    CHECK(refused(R"({"$defs": {"x": {"$ref": "#/absent"}}})").empty());
    CHECK(refused(R"({"$defs": {"a": {"$id": "i.json"}, "b": {"$id": "i.json"}}})") ==
          "the identifier file:///i.json stands twice");
    CHECK(refused(R"({"$defs": {"a": {"$anchor": "i"}, "b": {"$anchor": "i"}}})") == "the anchor i stands twice");
    CHECK(refused(R"({"properties": {"x": {"$ref": "#/own"}}, "own": 5})") ==
          "own: expected a schema: an object or a boolean, found float64 5");
    for (const std::string wrong :
         {R"({"$id": "#x"})", R"({"$anchor": "1"})", R"({"$vocabulary": 1})", R"({"contentSchema": 5})",
          R"({"$recursiveAnchor": true})", R"({"$schema": "json-schema.org/draft-07/schema"})",
          R"({"$schema": "http://json-schema.org/draft-07/schema", "enum": [1, 1]})",
          R"({"$defs": {"x": {"id": "x", "$schema": "http://json-schema.org/draft-04/schema#", "not": true}}})"}) {
        CAPTURE(wrong);
        CHECK_FALSE(refused(wrong).empty());
    }
}

TEST_CASE("a schema of many parts takes time in proportion to them") {
    std::string many = R"({"$defs": {)", chain = R"({"$ref": "#/$defs/a0", "$defs": {)";
    for (int i = 0; i < 20'000; ++i) {
        const std::string n = std::to_string(i), next = std::to_string(i + 1);
        many += "\"a" + n + "\": {\"$id\": \"i" + n + "\"}, ";
        chain += "\"a" + n + "\": {\"$ref\": \"#/$defs/a" + next + "\"}, ";
    }
    CHECK(refused(many + R"("end": {"enum": [1, 2]}}})").empty());
    CHECK(refused(chain + R"("a20000": {}}})") == "the schema refers to itself too often");
}

TEST_CASE("drafts before 2019 assert formats") {
    const std::string ipv4 = R"("properties": {"x": {"format": "ipv4"}}})";
    CHECK(faults(std::string("{") + k_draft7 + ipv4, R"({"x": "a"})") ==
          std::vector<std::string>{"x: \"a\" is not of the format ipv4"});
    CHECK(meets(std::string("{") + k_draft7 + ipv4, R"({"x": 5})"));
    CHECK(meets("{" + ipv4, R"({"x": "a"})"));
    const auto check = [](const char* name, std::vector<const char*> right, std::vector<const char*> wrong) {
        CAPTURE(name);
        for (const auto* text : right) { CHECK_MESSAGE(recipe::chart::has_format(name, text), text); }
        for (const auto* text : wrong) { CHECK_FALSE_MESSAGE(recipe::chart::has_format(name, text), text); }
    };
    check("date", {"2020-02-29"}, {"2021-02-29", "2020-2-1", ""});
    check("time", {"10:20:30Z", "23:59:60Z", "10:20:30.5+01:00"}, {"10:20:30", "10:20:60Z", "10:20:30+0100"});
    check("email", {"a@b", "\"a b\"@c", "a@[IPv6:::1]"}, {"a", "a..b@c", "a@b_c"});
    check("hostname", {"a.b."}, {"a_b", "-a", ""});
    check("ipv6", {"::", "::1", "1::", "::ffff:1.2.3.4", "1:2:3:4:5:6:7:8", "1:2:3:4:5:6:1.2.3.4"},
          {"", "1.2.3.4", ":", ":::", "fe80::1%eth0", "12345::", "1::2::3", "1:2:3:4:5:6:7",
           "1:2:3:4:5:6:7:8::", ":1:2:3:4:5:6:7", "1.2.3.4::", "::1.2.3", "1:2:3:4:5:6:7:1.2.3.4"});
    check("uri", {"http://[::1]", "mailto:a"}, {"a/b", "http://::1", "%zz"});
    check("uri-template", {"a/{b}"}, {"a/{b"});
    check("json-pointer", {"", "/a~0"}, {"a", "/~2"});
    check("duration", {"P1W", "P1YT1H1M"}, {"P", "PT", "P1D1Y", "PT1H2"});
    check("semver", {"1.2.3-a.1+b"}, {"v1.2.3", "1.2.3-01", "1.2"});
    check("uuid", {"2eb8aa08-aa98-11ea-b4aa-73b441d16380"}, {"2eb8aa08"});
    check("regex", {"^a"}, {"(", "(?=a)"});
    check("no-format", {"x"}, {});
}
