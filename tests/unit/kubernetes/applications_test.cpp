// SPDX-License-Identifier: Apache-2.0
// Applications and patches: what metadata and programs say, and the checks of both.
#include <doctest/doctest.h>

#include <map>
#include <string>
#include <vector>

#include "base/gzip.hpp"
#include "base/text.hpp"
#include "kubernetes/check/checks.hpp"
#include "unit/kubernetes/make_inventory.hpp"
#include "value/writer.hpp"

using namespace kmm;
using namespace kmm::kubernetes;
using namespace kmm::kubernetes::test;

namespace {

constexpr std::string_view k_versions =
    "versions:\n- version: v1.32.0\n- version: v1.33.0\n- version: v1.33.4\n- version: v1.34.4\n  applied_patches: "
    "[KUBE.1]\n- version: v1.35.4\n"
    "  applied_patches: [KUBE.2, KUBE.1]\n  available_patches: [KUBE.3]\n";

std::vector<std::string> app_faults(const std::string& applications) {
    Diagnostics faults;
    (void)read_catalogue(std::string(k_versions) + "applications:\n" + applications, "v.yaml", faults);
    sort_and_merge(faults);
    std::vector<std::string> lines;
    for (const auto& fault : faults) { lines.push_back(fault.position->to_string() + ": " + fault.message); }
    return lines;
}

Catalogue with_apps(const std::string& applications) {
    Diagnostics faults;
    auto made = read_catalogue(std::string(k_versions) + (applications.empty() ? "" : "applications:\n" + applications),
                               "v.yaml", faults);
    for (const auto& fault : faults) { FAIL_CHECK(fault.position->to_string() << ": " << fault.message); }
    return made;
}

/// Answers from a table of TO.
class ScriptedPrograms final : public AppPrograms {
public:
    std::map<std::string, ProgramReplies> answers;
    std::vector<std::string> asked;
    const ProgramReplies& ask(const Version& from, const Version& to) override {
        asked.push_back(from.text() + ">" + to.text());
        return answers[to.text()];
    }
};

ProgramReply refusal(const std::string& program, const std::string& reason) {
    ProgramReply reply;
    reply.program = reply.name = program;
    reply.is_supported = false;
    reply.reason = reason;
    return reply;
}

CheckResult check_of(const std::string& id, const Inventory& inventory, const Catalogue& catalogue,
                     AppPrograms* programs = nullptr, const PatchList* patches = nullptr,
                     const char* target = "v1.35.4") {
    const auto seen = observe(inventory);
    CheckInput input{inventory, seen, catalogue, Version::parse(target)};
    input.programs = programs;
    input.patches = patches;
    for (auto& result : run_checks(input, {})) {
        if (result.id == id) { return std::move(result); }
    }
    FAIL("no such check");
    return {};
}

std::string said(const CheckResult& result) { return std::string(to_string(result.outcome)) + " " + result.detail; }

const std::string k_pod =
    "---\n{kind: Pod, apiVersion: v1, metadata: {name: db-0, namespace: prod, labels: {app: db}}}\n---\n{kind: Pod, "
    "apiVersion: v1, metadata: {name: x, namespace: other, labels: {app: x}}}\n";

std::string secret(const std::string& release, int revision, const std::string& status,
                   const std::string& ns = "prod") {
    return "---\n{kind: Secret, apiVersion: v1, type: helm.sh/release.v1, metadata: {name: sh.helm.release.v1." +
           release + ".v" + std::to_string(revision) + ", namespace: " + ns +
           ", labels: {owner: helm, name: " + release + ", status: " + status + ", version: '" +
           std::to_string(revision) + "'}}}\n";
}

}  // namespace

TEST_SUITE("kubernetes::applications") {

TEST_CASE("a Helm release that unpacks to much more than Helm writes is not read, and the check says so") {
    const auto with_manifest = [](const std::string& manifest) {
        const auto text = value::to_json(value::Node::mapping({{"manifest", manifest}}));
        auto object = secret("web", 1, "deployed");
        object.replace(object.size() - 2, 2,
                       ", data: {release: " + base::to_base64(base::to_base64(base::to_gzip(text))) + "}}\n");
        return said(check_of("removed-api-helm", inventory_of(k_pod + object), with_apps("")));
    };
    const auto repeated = [](std::string_view text, std::size_t count) {
        std::string all;
        for (std::size_t i = 0; i < count; ++i) { all += text; }
        return all;
    };
    const std::string_view small = "---\napiVersion: v1\nkind: ConfigMap\n", old = "apiVersion: policy/v1beta1\n"
                                   "kind: PodDisruptionBudget\n";
    CHECK(with_manifest(repeated(small, 200'000)).starts_with("OK "));
    CHECK(with_manifest(repeated(small, 9) + "---\n" + std::string(old)).find("prod/web") != std::string::npos);
    CHECK(with_manifest("[" + repeated("{},", 400'000) + "{}]") == "WARN prod/web cannot be read");
    CHECK(with_manifest("[" + repeated("x                ,", 200'000) + "x]") == "WARN prod/web cannot be read");
    CHECK(with_manifest(std::string(33U << 20U, ' ')) == "WARN prod/web cannot be read");
}

TEST_CASE("the network add-on has a check of its own") {
    const auto inventory = inventory_of(k_pod);
    const std::string db = "- {name: db, namespace: prod, cni: true, selector: {app: db}, maximum: ";
    CHECK(said(check_of("cni-supports", inventory, with_apps(""))) ==
          "SKIP the metadata lists no application with cni: true");
    const auto refusing = with_apps(db + "v1.34}\n");
    CHECK(said(check_of("cni-supports", inventory, refusing)) ==
          "FAIL prod/db supports v1.34 and earlier, not v1.35.4");
    CHECK(said(check_of("apps-support", inventory, refusing)) ==
          "SKIP the metadata lists no applications, and there is no --app-check DIR");
    CHECK(said(check_of("cni-supports", inventory, with_apps(db + "v1.35}\n"))) == "OK prod/db");
    CHECK(said(check_of("cni-supports", inventory,
                        with_apps("- {name: a, cni: true, selector: {a: b}, maximum: v1.34}"))) ==
          "WARN no network add-on of the metadata is installed, another one is not known");
    CHECK(app_faults("- {name: a, cni: calico, selector: {a: b}, maximum: v1.34}") ==
          std::vector<std::string>{"v.yaml:11:18: cni: expected true or false, found the string 'calico'"});
}

TEST_CASE("faults of applications, all at once, each with its place") {
    CHECK(app_faults("- 5\n- {name: a, selector: {app: a}, minimum: v1.30, maximum: v1.29.9}\n- {release: r, nmespace: "
                     "x, maximum: newest}\n- {name: c, selector: {a: 1}, release: r, minimum: 1.30}\n"
                     "- {name: d, selector: 'a!=b'}\n- {name: e, selector: {}, minimum: 'v1.30'}\n- {name: e, release: "
                     "e, minimum: v1.30}\n- {name: f, minimum: v1.30}\n- {name: '', release: g, maximum: v1}\n") ==
          std::vector<std::string>{
              "v.yaml:11:3: applications: expected a mapping with name, found the integer '5'",
              "v.yaml:12:58: application a: expected a maximum from v1.30 on, found v1.29.9",
              "v.yaml:13:3: name is missing, expected the name of the application",
              "v.yaml:13:16: the application: field nmespace is not known, expected one of name, namespace, selector, "
              "release, minimum, maximum, cni",
              "v.yaml:13:38: maximum: expected MAJOR.MINOR as v1.34, or MAJOR.MINOR.PATCH, found 'newest'",
              "v.yaml:14:3: application c: expected selector or release, found both",
              "v.yaml:14:27: application c: selector: a: expected a string, found the integer '1'",
              "v.yaml:14:52: minimum: expected a string, found the number '1.30'",
              "v.yaml:15:3: application d: minimum or maximum is missing, expected MAJOR.MINOR as v1.34, or "
              "MAJOR.MINOR.PATCH",
              "v.yaml:15:23: application d: selector: expected LABEL=VALUE,..., found 'a!=b'",
              "v.yaml:16:23: application e: selector: expected a label, found none",
              "v.yaml:17:3: application e is listed twice, first at v.yaml:16:3",
              "v.yaml:18:3: application f: expected selector or release, found neither",
              "v.yaml:19:10: name: expected a string, found the string ''",
              "v.yaml:19:35: maximum: expected MAJOR.MINOR as v1.34, or MAJOR.MINOR.PATCH, found 'v1'",
          });
}

TEST_CASE("bounds") {
    const auto accepts = [](const char* minimum, const char* maximum, const char* version) {
        VersionBounds bounds;
        if (*minimum != 0) { bounds.minimum = VersionBound::parse(minimum); }
        if (*maximum != 0) { bounds.maximum = VersionBound::parse(maximum); }
        return bounds.accept(*Version::parse(version));
    };
    CHECK(accepts("", "", "v1.99.0"));
    CHECK(accepts("1.34", "", "v1.34.0"));
    CHECK_FALSE(accepts("v1.34", "", "v1.34.0-rc.1"));
    CHECK_FALSE(accepts("v1.34.2", "", "v1.34.1"));
    // A MAJOR.MINOR includes every patch of it.
    CHECK(accepts("", "v1.34", "v1.34.17"));
    CHECK_FALSE(accepts("", "v1.34", "v1.35.0"));
    CHECK(accepts("", "v1.34.4", "v1.34.4"));
    CHECK_FALSE(accepts("", "v1.34.4", "v1.34.5"));
}

TEST_CASE("answers of programs") {
    const auto fault = [](const char* text) { return read_program_answer("p", text).fault; };
    CHECK(fault("") == "expected JSON, found nothing");
    CHECK(fault("yes\n") == "expected JSON, found 'yes'");
    CHECK(fault("5") == "expected a JSON object, found '5'");
    CHECK(fault("{}") == "supported is missing, expected true or false");
    CHECK(fault(R"({"supported": "yes"})") == "supported: expected true or false, found 'yes'");
    CHECK(fault(R"({"supported": true, "maximum": 1.35})") == "maximum: expected a string, found '1.35'");
    CHECK(fault(R"({"supported": true, "maximum": "new"})") ==
          "maximum: expected MAJOR.MINOR as v1.34, or MAJOR.MINOR.PATCH, found 'new'");
    CHECK(fault("[]") == "expected an answer, found an empty list");
    CHECK(fault(R"({"supported": true, "max": "v1.34"})") ==
          "field max is not known, expected one of name, supported, reason, minimum, maximum");
    CHECK(fault("null") == "expected a JSON object, found null");
    CHECK(fault(R"([{"supported": true}, 7])") == "expected a JSON object, found '7'");
    const auto answer =
        read_program_answer("p", R"([{"supported": false, "name": "db", "reason": "too new"}, {"maximum": "v1.34"}])");
    REQUIRE(answer.replies.size() == 2);
    CHECK(answer.replies[0].name == "db");
    CHECK_FALSE(answer.replies[0].is_supported);
    CHECK(answer.replies[1].name == "p");
    CHECK_FALSE(answer.replies[1].supported.accept(*Version::parse("v1.35.0")));
}

TEST_CASE("applications of the metadata: all offenders, and the highest version for them all") {
    const auto cluster =
        inventory_of(control_plane("a", "v1.33.0") + k_pod + secret("web", 1, "superseded") +
                     secret("web", 2, "deployed") + secret("old", 1, "superseded") + secret("old", 2, "uninstalled"));
    CHECK(said(check_of("apps-support", cluster, with_apps(""))) ==
          "SKIP the metadata lists no applications, and there is no --app-check DIR");
    CHECK(said(check_of("apps-support", cluster,
                        with_apps("- {name: db, namespace: prod, selector: {app: db}, maximum: v1.35}\n- {name: web, "
                                  "release: web, minimum: v1.33.1}\n"))) == "OK applications that support v1.35.4: 2");
    // What is not installed does not count: another namespace, an uninstalled release.
    CHECK(said(check_of("apps-support", cluster,
                        with_apps("- {name: db, namespace: other, selector: app=db, maximum: v1.30}\n- {name: old, "
                                  "release: old, maximum: v1.30}\n"))) ==
          "OK none of the applications in the metadata is installed");
    CHECK(said(check_of("apps-support", cluster,
                        with_apps("- {name: db, namespace: prod, selector: 'app=db', maximum: v1.34}\n- {name: web, "
                                  "release: web, namespace: prod, maximum: v1.33.9}\n"))) ==
          "FAIL prod/db supports v1.34 and earlier, not v1.35.4; prod/web supports v1.33.9 and earlier, not v1.34.4; "
          "the highest version that can be reached with all of them is v1.33.4");
    // Also a version on the way must fit.
    CHECK(said(check_of("apps-support", cluster, with_apps("- {name: db, selector: {app: db}, minimum: v1.35}\n"))) ==
          "FAIL db supports v1.35 and later, not v1.34.4; no higher version can be reached with all of them");
}

TEST_CASE("an application that cannot be seen is not taken for absent") {
    const auto catalogue =
        with_apps("- {name: web, release: web, maximum: v1.34}\n- {name: db, selector: {app: db}, maximum: v1.35}\n");
    CHECK(said(check_of("apps-support", inventory_of(control_plane("a", "v1.34.4") + k_pod), catalogue)) ==
          "FAIL web supports v1.34 and earlier, not v1.35.4 (whether it is installed is not known: the documents "
          "contain no Secret); no higher version can be reached with all of them");
}

TEST_CASE("programs: refusals and faults, asked about each version of the way") {
    const auto cluster = inventory_of(control_plane("a", "v1.33.0") + k_pod);
    const auto catalogue = with_apps("- {name: db, selector: {app: db}, maximum: v1.34}\n");
    ScriptedPrograms programs;
    programs.answers["v1.35.4"].replies = {refusal("mesh", "no CNI plugin")};
    programs.answers["v1.34.4"].replies = {refusal("cache", "")};
    CHECK(said(check_of("apps-support", cluster, catalogue, &programs)) ==
          "FAIL db supports v1.34 and earlier, not v1.35.4; cache does not support v1.34.4; mesh does not support "
          "v1.35.4: no CNI plugin; the highest version that can be reached with all of them is v1.33.4");
    CHECK(programs.asked.front() == "v1.33.0>v1.34.4");
    CHECK(said(check_of("app-check-programs", cluster, catalogue, &programs)) ==
          "OK answers for v1.33.0 -> v1.35.4: 1");
    programs.answers["v1.34.4"].faults = {"cache: exited with 1", "dns: expected JSON, found 'x'"};
    programs.answers["v1.35.4"].faults = {"cache: exited with 1"};
    CHECK(said(check_of("app-check-programs", cluster, catalogue, &programs)) ==
          "FAIL cache: exited with 1; dns: expected JSON, found 'x'");
    CHECK(check_of("apps-support", cluster, catalogue, &programs)
              .detail.ends_with("the highest version that all support is not known, see app-check-programs"));
    CHECK(said(check_of("app-check-programs", cluster, catalogue)) == "SKIP there is no --app-check DIR");
}

TEST_CASE("lists of patches") {
    const auto table = read_patches(
        "\n  Patch ID    RR  Release  Patch State\n============  ==  =======  ==============\nKUBE.1        N   20.06  "
        "  Applied\nKUBE.2        N   20.06    Partial-Remove\n");
    CHECK(table.fault.empty());
    CHECK(table.states == PatchStates{{"KUBE.1", "Applied"}, {"KUBE.2", "Partial-Remove"}});
    CHECK(read_patches("Patch ID  RR  Release  Repo State  Patch State\n========  ==  =======  ==========  "
                       "===========\n  P.1     N    20.06    Applied        n/a\n")
              .states == PatchStates{{"P.1", "n/a"}});
    CHECK(read_patches(R"({"pd": {"KUBE.1": {"patchstate": "Available", "sw_version": "20.06"}}})").states ==
          PatchStates{{"KUBE.1", "Available"}});
    CHECK(read_patches(R"([{"id": "A", "state": "Committed"}])").states == PatchStates{{"A", "Committed"}});
    CHECK(read_patches(R"({"pd": {}})").fault.empty());
    CHECK(read_patches(R"({"pd": []})").fault == "expected a mapping of patches, found a list");
    CHECK(read_patches("{\"pd\":").fault.starts_with("expected JSON: "));
    // What is printed behind the table.
    const std::string query = "Patch ID  RR  Release  Patch State\n========  ==  =======  ===========\n";
    CHECK(read_patches(query).fault.empty());
    CHECK(read_patches(query + "KUBE.1    Y    20.06     Applied\n\nWarning:\nKUBE.1 is old\n").states ==
          PatchStates{{"KUBE.1", "Applied"}});
    CHECK(read_patches(query + "\nError:\nthe daemon does not answer\n").fault ==
          "the query failed: the daemon does not answer");
    CHECK(read_patches(R"({"pd": {}, "info": "", "warning": "", "error": "no such release\n"})").fault ==
          "the query failed: no such release");
    // The program that follows sw-patch.
    const std::string list = "+------------------+------+-----------+\n| Release          |  RR  |   State   |\n"
                             "+------------------+------+-----------+\n";
    CHECK(read_patches(list + "| starlingx-10.0.0 | True | deployed  |\n| starlingx-10.0.1 | True | available |\n"
                              "| starlingx-10.0.2 | None | deploying |\n+------------------+------+-----------+\n")
              .states == PatchStates{{"starlingx-10.0.0", "Applied"},
                                     {"starlingx-10.0.1", "Available"},
                                     {"starlingx-10.0.2", "Partial-Apply"}});
    CHECK(read_patches(list).fault.empty());
    CHECK(read_patches("+---+\n").fault == "expected the table of software list, found its border alone");
    CHECK(read_patches("+---+\n| A |\n").fault == "expected columns Release and State, found '| A |'");
    CHECK(read_patches(R"([{"release_id": "A", "state": "committed"}])").states == PatchStates{{"A", "Committed"}});
    CHECK(read_patches("").fault == "expected the table of sw-patch query or JSON, found ''");
    CHECK(read_patches("Error: you must be root\n").fault ==
          "expected the table of sw-patch query or JSON, found 'Error: you must be root'");
    CHECK(read_patches("A  B\n=  =\n1  2\n").fault == "expected columns Patch ID and Patch State, found 'A  B'");
    CHECK(read_patches("Patch ID  Patch State\n========  ===========\nKUBE.1    applied\n").fault ==
          "patch KUBE.1: expected the state Available, Partial-Apply, Applied, Partial-Remove, Committed, n/a, found "
          "'applied'");
    CHECK(read_patches("Patch ID  Patch State\n========  ===========\nA         Applied\nA         Applied\n").fault ==
          "patch A is listed twice");
}

TEST_CASE("patches that the way needs") {
    const auto cluster = inventory_of(control_plane("a", "v1.33.4"));
    const auto catalogue = with_apps("");
    CHECK(said(check_of("applied-patches", cluster, catalogue)) ==
          "FAIL KUBE.1, KUBE.2 required, and nothing says which are there: --patch-query COMMAND is missing");
    CHECK(said(check_of("applied-patches", cluster, catalogue, nullptr, nullptr, "v1.33.4")) ==
          "SKIP the metadata lists none for this upgrade");
    PatchList list{{}, "sw-patch: exited with 1"};
    CHECK(said(check_of("available-patches", cluster, catalogue, nullptr, &list)) == "FAIL sw-patch: exited with 1");
    list = {{{"KUBE.1", "Committed"}, {"KUBE.3", "Available"}}, ""};
    CHECK(said(check_of("applied-patches", cluster, catalogue, nullptr, &list)) ==
          "FAIL KUBE.2 is not known, expected Applied");
    CHECK(said(check_of("available-patches", cluster, catalogue, nullptr, &list)) == "OK KUBE.3");
    const PatchStates states{
        {"a", "Available"}, {"b", "Applied"}, {"c", "Partial-Apply"}, {"d", "Partial-Remove"}, {"e", "n/a"}};
    CHECK(patch_problems(states, {"a", "b", "c", "d", "e"}, PatchNeed::applied) ==
          std::vector<std::string>{"a is Available, expected Applied", "c is Partial-Apply, expected Applied",
                                   "d is Partial-Remove, expected Applied", "e is n/a, expected Applied"});
    CHECK(patch_problems(states, {"a", "b", "c", "d", "e"}, PatchNeed::available) ==
          std::vector<std::string>{"d is Partial-Remove, expected Available", "e is n/a, expected Available"});
}

}
