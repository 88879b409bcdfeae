// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "image/mirrors.hpp"

using namespace kmm;

namespace {

/// "HOST/REPOSITORY[:TAG][@DIGEST]" of every endpoint in order, with "!" behind insecure ones.
std::string endpoints_text(const std::string& reference, const std::string& config) {
    std::string result;
    for (const auto& endpoint :
         image::endpoints_of(image::parse_reference(reference), image::read_mirrors(config, "m.conf"))) {
        result += (result.empty() ? "" : " ") + endpoint.reference.to_string() + (endpoint.insecure ? "!" : "");
    }
    return result;
}

/// "LINE:COLUMN CODE" of every fault, and the first message.
std::string mirror_faults(const std::string& config) {
    try {
        static_cast<void>(image::read_mirrors(config, "m.conf"));
    } catch (const Error& error) {
        std::string result;
        for (const Diagnostic& fault : error.diagnostics()) {
            result += (result.empty() ? "" : " ") + fault.position->to_string() + " " + fault.code;
        }
        return result + ": " + error.diagnostics().front().message;
    }
    return "none";
}

const std::string k_pinned = "@sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

}  // namespace

TEST_SUITE("image::unit") {

TEST_CASE("registries.conf: the longest prefix, mirrors in order, the source last") {
    const std::string config =
        "unqualified-search-registries = [\"docker.io\"]\nshort-name-mode = \"enforcing\"\n"
        "[[registry]]\nprefix = \"quay.io\"\nlocation = \"quay.io\"\ninsecure = true\n"
        "[[registry]]\nlocation = \"quay.io/team\"\n"
        "[[registry.mirror]]\nlocation = \"m1.example.com:5000/quay\"\n"
        "[[registry.mirror]]\nlocation = \"m2.example.com\"\ninsecure = true\n"
        "[[registry]]\nprefix = \"old.example.com/a\"\nlocation = \"new.example.com\"\n"
        "[[registry]]\nprefix = \"docker.io\"\n[[registry.mirror]]\nlocation = \"hub.example.com\"\n"
        "[[registry]]\nprefix = \"*.blocked.com\"\nblocked = true\n";
    CHECK(endpoints_text("quay.io/team/driver:v1", config) ==
          "m1.example.com:5000/quay/driver:v1 m2.example.com/driver:v1! quay.io/team/driver:v1");
    CHECK(endpoints_text("quay.io/teams/driver:v1", config) == "quay.io/teams/driver:v1!");
    CHECK(endpoints_text("quay.io:443/team/driver:v1", config) == "quay.io:443/team/driver:v1");
    CHECK(endpoints_text("old.example.com/a/b" + k_pinned, config) == "new.example.com/b" + k_pinned);
    CHECK(endpoints_text("alpine", config) ==
          "hub.example.com/library/alpine:latest index.docker.io/library/alpine:latest");
    CHECK(endpoints_text("x.blocked.com/a:1", config).empty());
    CHECK(endpoints_text("x.y.blocked.com/a:1", config).empty());
    CHECK(endpoints_text("x.blocked.com:5000/a:1", config).empty());
    CHECK(endpoints_text("blocked.com/a:1", config) == "blocked.com/a:1");
    CHECK(endpoints_text("x.ports.com:5000/a:1", "[[registry]]\nprefix = \"*.ports.com:5000\"\nblocked = true\n")
              .empty());
    CHECK(endpoints_text("x.ports.com/a:1", "[[registry]]\nprefix = \"*.ports.com:5000\"\nblocked = true\n") ==
          "x.ports.com/a:1");
}

TEST_CASE("registries.conf: HOST and HOST:443 are one registry for what is blocked") {
    const std::string config =
        "[[registry]]\nlocation = \"a.io\"\nblocked = true\n[[registry]]\nlocation = \"a.io/ours\"\n"
        "[[registry]]\nlocation = \"b.io:443\"\nblocked = true\n"
        "[[registry]]\nlocation = \"docker.io\"\nblocked = true\n"
        "[[registry]]\nlocation = \"[::1]\"\nblocked = true\n"
        "[[registry]]\nprefix = \"m.io\"\nlocation = \"a.io:443\"\n"
        "[[registry]]\nlocation = \"n.io\"\n[[registry.mirror]]\nlocation = \"a.io:443/n\"\n";
    for (const char* name : {"a.io:443/x:1", "b.io/x:1", "docker.io:443/a/x:1", "index.docker.io:443/a/x:1",
                             "[::1]:443/x:1", "m.io/x:1"}) {
        CAPTURE(name);
        CHECK(endpoints_text(name, config).empty());
        CHECK(image::blocked_source(image::parse_reference(name), image::read_mirrors(config, "m.conf")));
    }
    CHECK(endpoints_text("a.io:443/ours/x:1", config) == "a.io:443/ours/x:1");
    CHECK(endpoints_text("a.io:5000/x:1", config) == "a.io:5000/x:1");
    CHECK(endpoints_text("n.io/x:1", config) == "n.io/x:1");
}

TEST_CASE("registries.conf: what stands in the place of a wildcard") {
    const std::string config =
        "[[registry]]\nprefix = '*.a.io'\nlocation = 'b.io/all'\n[[registry.mirror]]\nlocation = 'm.io/all'\n"
        "[[registry]]\nprefix = '*.a.io/secret'\nblocked = true\n"
        "[[registry]]\nprefix = '*.sub.a.io'\ninsecure = true\n"
        "[[registry]]\nprefix = 'z.a.io'\n"
        "[[registry]]\nprefix = 'very-long-name.a.io'\n";
    CHECK(endpoints_text("x.a.io/team/d:1", config) == "m.io/all/team/d:1 b.io/all/team/d:1");
    CHECK(endpoints_text("x.a.io:5000/d:1", config) == "m.io/all/d:1 b.io/all/d:1");
    CHECK(endpoints_text("x.a.io/secret/d:1", config).empty());
    CHECK(endpoints_text("very-long-name.a.io/secret/d:1", config) == "very-long-name.a.io/secret/d:1");
    CHECK(endpoints_text("x.a.io/secrets/d:1", config) == "m.io/all/secrets/d:1 b.io/all/secrets/d:1");
    CHECK(endpoints_text("x.sub.a.io/d:1", config) == "x.sub.a.io/d:1!");
    CHECK(endpoints_text("z.a.io/d:1", config) == "m.io/all/d:1 b.io/all/d:1");
    CHECK(endpoints_text("z.a.io/d:1", "[[registry]]\nprefix = 'z.a.io'\n" + config) == "z.a.io/d:1");
    CHECK(endpoints_text("zz.a.io/d:1", config + "[[registry]]\nprefix = 'zz.a.io'\n") == "zz.a.io/d:1");
    CHECK(endpoints_text("very-long-name.a.io/d:1", config) == "very-long-name.a.io/d:1");
}

TEST_CASE("registries.conf: a slash at the end of a location says nothing") {
    CHECK(endpoints_text("a.io/x:1", "[[registry]]\nprefix = 'a.io/'\nlocation = 'b.io/y/'\n") == "b.io/y/x:1");
}

TEST_CASE("registries.conf: keys that mean nothing here are no faults") {
    CHECK(mirror_faults("credential-helpers = ['containers-auth.json']\nadditional-layer-store-auth-helper = 'x'\n"
                        "[[registry]]\nlocation = 'a.io'\n[aliases]\n'ubi' = 'registry.example.com/ubi'\n") == "none");
}

TEST_CASE("registries.conf: mirrors in the line of their registry") {
    const std::string config =
        "registry = [{prefix = 'q.io', mirror = [{location = 'm.io', insecure = true}]},\n  {location = 'r.io'}]\n";
    CHECK(endpoints_text("q.io/a:1", config) == "m.io/a:1! q.io/a:1");
    CHECK(mirror_faults("registry = [{prefix = 'q.io', miror = []}]\n") ==
          "m.conf:1:31 unknown-field: registry: unknown key miror");
}

TEST_CASE("registries.conf: mirrors only for digests or only for tags") {
    const std::string config =
        "[[registry]]\nprefix = \"q.io\"\nmirror-by-digest-only = true\n[[registry.mirror]]\nlocation = \"d.io\"\n"
        "[[registry]]\nprefix = \"t.io\"\n[[registry.mirror]]\nlocation = \"m.io\"\npull-from-mirror = \"tag-only\"\n";
    CHECK(endpoints_text("q.io/a:1", config) == "q.io/a:1");
    CHECK(endpoints_text("q.io/a:1" + k_pinned, config) == "d.io/a:1" + k_pinned + " q.io/a:1" + k_pinned);
    CHECK(endpoints_text("t.io/a:1", config) == "m.io/a:1 t.io/a:1");
    CHECK(endpoints_text("t.io/a" + k_pinned, config) == "t.io/a" + k_pinned);
}

TEST_CASE("registries.conf: its first format says who is insecure and who is blocked") {
    const std::string config =
        "[registries.search]\nregistries = ['docker.io', 'quay.io']\n"
        "[registries.insecure]\nregistries = [\n  'localhost:5000',\n  \"reg.example.com/team\"\n]\n"
        "[registries.block]\nregistries = ['bad.example.com']\n";
    CHECK(endpoints_text("localhost:5000/a:1", config) == "localhost:5000/a:1!");
    CHECK(endpoints_text("reg.example.com/team/a:1", config) == "reg.example.com/team/a:1!");
    CHECK(endpoints_text("reg.example.com/other/a:1", config) == "reg.example.com/other/a:1");
    CHECK(endpoints_text("bad.example.com/a:1", config).empty());
    CHECK(endpoints_text("quay.io/a:1", config) == "quay.io/a:1");
    CHECK(mirror_faults("[registries.insecure]\nregistries = ['http://a.io']\n")
              .starts_with("m.conf:2:15 bad-value: registries: expected HOST[:PORT]"));
    CHECK(mirror_faults("[registries.insecur]\nregistries = []\n").starts_with("m.conf:1:1 unknown-field"));
    CHECK(mirror_faults("[registries.block]\nregistry = 'a.io'\n").starts_with("m.conf:2:1 unknown-field"));
    CHECK(mirror_faults("[[registry]]\nlocation = 'a.io'\n[registries.block]\nregistries = ['b.io']\n")
              .find("one format") != std::string::npos);
}

TEST_CASE("registries.conf: a prefix that stands twice") {
    const std::string mirror = "[[registry.mirror]]\nlocation = \"m.io\"\n";
    CHECK(endpoints_text("a.io/x:1", "[[registry]]\nprefix = 'a.io'\n" + mirror +
                                         "[[registry]]\nprefix = 'a.io'\nlocation = 'b.io'\n") == "m.io/x:1 b.io/x:1");
    for (const char* second : {"insecure = true", "location = 'c.io'", "blocked = true"}) {
        const std::string what(second, std::string_view(second).find(' '));
        CHECK(mirror_faults("[[registry]]\nprefix = 'a.io'\nlocation = 'b.io'\n[[registry]]\nprefix = 'a.io'\n" +
                            std::string(second) + "\n") ==
              "m.conf:4:1 bad-value: registry: expected one " + what +
                  " for each prefix, found a second [[registry]] with another");
    }
    const std::string first = "[[registry]]\nlocation = 'a.io'\n" + mirror;
    CHECK(endpoints_text("a.io/x:1", first + first) == "m.io/x:1 a.io/x:1");
    CHECK(mirror_faults(first + first + "insecure = true\n")
              .starts_with("m.conf:5:1 bad-value: registry: expected one insecure of the mirror m.io for each prefix"));
}

TEST_CASE("the documents of OpenShift") {
    const std::string config =
        "apiVersion: config.openshift.io/v1\nkind: ImageDigestMirrorSet\nmetadata: {name: d}\nspec:\n  "
        "imageDigestMirrors:\n"
        "  - source: q.io/team\n    mirrors: [m.io/a, m.io/b]\n    mirrorSourcePolicy: NeverContactSource\n"
        "---\napiVersion: config.openshift.io/v1\nkind: ImageTagMirrorSet\nmetadata: {name: t}\nspec:\n  "
        "imageTagMirrors:\n"
        "  - source: t.io\n    mirrors: [m.io/t]\n"
        "---\napiVersion: operator.openshift.io/v1alpha1\nkind: ImageContentSourcePolicy\nmetadata: {name: c}\nspec:\n"
        "  repositoryDigestMirrors:\n  - source: t.io\n    mirrors: [m.io/c]\n";
    CHECK(endpoints_text("q.io/team/x" + k_pinned, config) == "m.io/a/x" + k_pinned + " m.io/b/x" + k_pinned);
    CHECK(endpoints_text("q.io/team/x:1", config).empty());
    CHECK(endpoints_text("t.io/x:1", config) == "m.io/t/x:1 t.io/x:1");
    CHECK(endpoints_text("t.io/x" + k_pinned, config) == "m.io/c/x" + k_pinned + " t.io/x" + k_pinned);
    CHECK(endpoints_text("t.io/x:1",
                         R"({"kind":"List","items":[{"kind":"ImageTagMirrorSet","spec":{"imageTagMirrors":[]}}]})") ==
          "t.io/x:1");
}

TEST_CASE("the documents of OpenShift: an entry without a mirror has no effect") {
    const auto set = [](const std::string& entry) {
        return "kind: ImageDigestMirrorSet\nspec: {imageDigestMirrors: [" + entry + "]}\n";
    };
    for (const char* mirrors : {"", ", mirrors: []", ", mirrors: [q.io/a]"}) {
        CAPTURE(mirrors);
        const std::string none =
            set(std::string("{source: q.io/a, mirrorSourcePolicy: NeverContactSource") + mirrors + "}");
        CHECK(endpoints_text("q.io/a/x:1", none) == "q.io/a/x:1");
        // Nor does it hide the mirrors of what it is a part of.
        CHECK(endpoints_text("q.io/a/x" + k_pinned, none + "---\n" + set("{source: q.io, mirrors: [m.io]}")) ==
              "m.io/a/x" + k_pinned + " q.io/a/x" + k_pinned);
    }
}

TEST_CASE("the documents of OpenShift: the mirrors of one source in an order that agrees with each entry") {
    const auto order = [](const std::string& first, const std::string& second) {
        return endpoints_text("q.io/x" + k_pinned,
                              "kind: ImageDigestMirrorSet\nspec: {imageDigestMirrors: [{source: q.io, mirrors: [" +
                                  first +
                                  "]}]}\n---\nkind: ImageContentSourcePolicy\nspec: {repositoryDigestMirrors: "
                                  "[{source: q.io, mirrors: [" +
                                  second + "]}]}\n");
    };
    const std::string a = "a.io/x" + k_pinned, b = " b.io/x" + k_pinned, c = " c.io/x" + k_pinned,
                      q = " q.io/x" + k_pinned;
    CHECK(order("b.io, c.io", "a.io, b.io") == a + b + c + q);
    CHECK(order("a.io, b.io", "a.io, b.io") == a + b + q);
    CHECK(order("b.io", "a.io") == a + b + q);
    CHECK(order("a.io, b.io", "b.io, a.io") == a + b + q);
    CHECK(order("a.io, q.io, b.io", "a.io") == a + q + b + q);
    CHECK(order("a.io, q.io", "a.io") == a + q);
}

TEST_CASE("a mirror that is blocked itself is not asked") {
    const std::string config =
        "[[registry]]\nlocation = 'a.io'\nblocked = true\n[[registry.mirror]]\nlocation = 'm.io/bad'\n"
        "[[registry.mirror]]\nlocation = 'm.io/good'\n[[registry]]\nlocation = 'm.io/bad'\nblocked = true\n";
    CHECK(endpoints_text("a.io/x:1", config) == "m.io/good/x:1");
    CHECK(endpoints_text("q.io/x" + k_pinned,
                         "kind: ImageDigestMirrorSet\nspec: {imageDigestMirrors: [{source: q.io, mirrors: [q.io, "
                         "m.io], mirrorSourcePolicy: NeverContactSource}]}\n") == "m.io/x" + k_pinned);
}

TEST_CASE("a registry that another one leads to is not asked if it is blocked itself") {
    const std::string config =
        "[[registry]]\nprefix = 'a.io/team'\nlocation = 'b.io/x'\n"
        "[[registry]]\nprefix = 'c.io'\nlocation = 'b.io'\n[[registry.mirror]]\nlocation = 'm.io'\n"
        "[[registry]]\nlocation = 'b.io'\nblocked = true\n";
    CHECK(endpoints_text("a.io/team/d:1", config).empty());
    const auto source_of = [&](const std::string& reference) {
        const auto source =
            image::blocked_source(image::parse_reference(reference), image::read_mirrors(config, "m.conf"));
        return source ? source->to_string() : "asked";
    };
    CHECK(source_of("a.io/team/d:1") == "b.io/x/d:1");
    CHECK(source_of("b.io/d:1") == "b.io/d:1");
    CHECK(source_of("a.io/d:1") == "asked");
    CHECK(endpoints_text("a.io/other/d:1", config) == "a.io/other/d:1");
    CHECK(endpoints_text("c.io/d:1", config) == "m.io/d:1");
}

TEST_CASE("registries.conf: a prefix that is one image") {
    const std::string config =
        "[[registry]]\nprefix = 'a.io/d:bad'\nblocked = true\n"
        "[[registry]]\nlocation = 'a.io/d" + k_pinned + "'\nblocked = true\n"
        "[[registry]]\nprefix = 'docker.io/ubi:9'\nlocation = 'b.io/ubi'\n"
        "[[registry.mirror]]\nlocation = 'm.io:5000/ubi:9'\n"
        "[[registry]]\nprefix = 'a.io'\n[[registry.mirror]]\nlocation = 'm.io'\n";
    CHECK(endpoints_text("a.io/d:bad", config).empty());
    CHECK(endpoints_text("a.io/d" + k_pinned, config).empty());
    CHECK(endpoints_text("a.io/d:bad" + k_pinned, config).empty());
    for (const char* other : {"d:bad2", "d:good", "d/bad:1", "d/d:bad"}) {
        CAPTURE(other);
        const std::string name = other;
        CHECK(endpoints_text("a.io/" + name, config) == "m.io/" + name + " a.io/" + name);
    }
    CHECK(endpoints_text("ubi:9", config) == "m.io:5000/ubi:9 b.io/ubi:9");
    CHECK(endpoints_text("ubi:8", config) == "index.docker.io/library/ubi:8");
    for (const char* wrong : {"prefix = 'a.io/d'\nlocation = 'b.io/d:1'", "prefix = 'a.io/d:1'\nlocation = 'b.io/d:2'",
                              "prefix = 'a.io/d:'\nlocation = 'b.io'", "prefix = '*.a.io/d:1'\nlocation = 'b.io'",
                              "prefix = 'team/d:1'\nlocation = 'b.io'"}) {
        CAPTURE(wrong);
        CHECK(mirror_faults("[[registry]]\n" + std::string(wrong) + "\n").find("bad-value") != std::string::npos);
    }
}

TEST_CASE("registries.conf: texts that are empty") {
    CHECK(endpoints_text("a.io/x:1", "[[registry]]\nprefix = 'a.io'\n[[registry.mirror]]\nlocation = 'm.io'\n"
                                     "pull-from-mirror = ''\n") == "m.io/x:1 a.io/x:1");
    CHECK(endpoints_text("x.a.io/x:1", "[[registry]]\nprefix = '*.a.io'\nlocation = ''\n") == "x.a.io/x:1");
    CHECK(mirror_faults("[[registry]]\nlocation = ''\nblocked = true\n").starts_with("m.conf:1:1 missing-field"));
    CHECK(mirror_faults("[[registry]]\nlocation = 'a.io'\n[[registry.mirror]]\nlocation = ''\n")
              .starts_with("m.conf:3:1 missing-field"));
    CHECK(mirror_faults("kind: ImageTagMirrorSet\nspec: {imageTagMirrors: [{source: '', mirrors: [y.io]}]}\n")
              .starts_with("m.conf:2:26 missing-field"));
}

TEST_CASE("registries.conf: two words on when a mirror is asked") {
    CHECK(mirror_faults("[[registry]]\nprefix = 'a.io'\nmirror-by-digest-only = true\n[[registry.mirror]]\n"
                        "location = 'm.io'\npull-from-mirror = 'tag-only'\n")
              .starts_with("m.conf:6:20 bad-value: pull-from-mirror: expected none where the registry has "
                           "mirror-by-digest-only"));
}

TEST_CASE("faults of a mirror configuration are all named with their places") {
    CHECK(mirror_faults("[[registry]]\nlocaton = \"a.io\"\nblocked = \"yes\"\n")
              .starts_with("m.conf:1:1 missing-field m.conf:2:1 unknown-field m.conf:3:11 bad-value: registry: "
                           "expected prefix or location"));
    CHECK(mirror_faults("[[registry]]\nprefix = \"a.io:tag\"\n")
              .starts_with("m.conf:2:10 bad-value: prefix: expected HOST[:PORT]"));
    CHECK(mirror_faults("[[registry]]\nprefix = \"team/x\"\n").starts_with("m.conf:2:10 bad-value"));
    CHECK(mirror_faults("[[registry]]\nprefix = \"a.io\"\n[[registry.mirror]]\ninsecure = true\n")
              .starts_with("m.conf:3:1 missing-field"));
    CHECK(
        mirror_faults(
            "[[registry]]\nprefix = \"a.io\"\n[[registry.mirror]]\nlocation = \"b.io\"\npull-from-mirror = \"never\"\n")
            .starts_with("m.conf:5:20 bad-value: pull-from-mirror: expected one of all, digest-only, tag-only, found "
                         "\"never\""));
    CHECK(mirror_faults("[alias]\nx = \"y\"\n").starts_with("m.conf:1:1 unknown-field"));
    for (const char* text : {"server = 'https://a.io'\n[host.'https://b.io']\n", "version = 2\n[plugins.x]\n",
                             "mirrors:\n  a.io: {}\n", R"({"registry-mirrors":["https://a.io"]})"}) {
        CAPTURE(text);
        CHECK(mirror_faults(text).starts_with(
            "m.conf:1:1 unknown-kind: expected registries.conf or mirror sets of OpenShift, found "));
    }
    CHECK(mirror_faults("registry = 1\n").starts_with("m.conf:1:12 bad-value"));
    CHECK(mirror_faults("kind: Pod\n").starts_with("m.conf:1:1 unknown-kind"));
    CHECK(mirror_faults("kind: ImageTagMirrorSet\n").starts_with("m.conf:1:1 missing-field"));
    CHECK(mirror_faults(
              "kind: ImageTagMirrorSet\nspec: {imageTagMirrors: [{source: a.io, mirrors: [x, y.io], extra: 1}]}\n")
              .starts_with("m.conf:2:51 bad-value m.conf:2:61 unknown-field"));
}

}
