// SPDX-License-Identifier: Apache-2.0
// A registry that takes images, and an image that is changed and written to it.
#pragma once

#include <doctest/doctest.h>

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "pull_fixture.hpp"
#include "registry/pull/rewrite.hpp"
#include "sys/temp_dir.hpp"
#include "value/reader.hpp"

namespace kmm::test {

inline const std::string k_module = "/" + k_modules + "/a.ko";

/// A registry that also takes images.
struct Destination {
    FakeRegistry registry;
    std::map<std::string, std::string> blobs, manifests;  ///< by digest; by name
    std::map<std::string, std::string> types;             ///< of the manifests
    std::map<std::string, std::string> uploads;
    std::vector<std::string> puts;                        ///< what was stored, in order
    std::function<std::optional<FakeReply>(const FakeRequest&)> before;

    Destination() {
        registry.intercept = [this](const FakeRequest& request) -> std::optional<FakeReply> {
            if (before) {
                if (auto reply = before(request)) return reply;
            }
            return answer(request);
        };
    }

    static std::string parameter(const std::string& target, const std::string& name) {
        const std::size_t at = target.find(name + "=");
        if (at == std::string::npos) return {};
        std::string value = target.substr(at + name.size() + 1);
        value = value.substr(0, value.find('&'));
        for (std::size_t percent = value.find("%3A"); percent != std::string::npos; percent = value.find("%3A"))
            value.replace(percent, 3, ":");
        return value;
    }

    std::optional<FakeReply> answer(const FakeRequest& request) {
        const std::string last = request.target.substr(request.target.rfind('/') + 1);
        FakeReply reply;
        if (request.method == "HEAD" && request.target.find("/blobs/") != std::string::npos) {
            if (blobs.count(last) != 0) return reply;
            return std::nullopt;
        }
        if (request.method == "POST") {
            const std::string id = std::to_string(uploads.size());
            uploads[id] = "";
            reply.status = 202;
            reply.headers.emplace_back("Location", "/v2/team/driver/blobs/uploads/" + id + "?state=x");
            return reply;
        }
        const std::string id = last.substr(0, last.find('?'));
        if (request.method == "PATCH") {
            CHECK(request.header("content-range") ==
                  std::to_string(uploads.at(id).size()) + "-" +
                      std::to_string(uploads.at(id).size() + request.body.size() - 1));
            uploads.at(id) += request.body;
            reply.status = 202;
            reply.headers.emplace_back(
                "Location", registry.server().port() == 0 ? "" : "/v2/team/driver/blobs/uploads/" + id + "?state=y");
            return reply;
        }
        if (request.method == "PUT" && request.target.find("/uploads/") != std::string::npos) {
            const std::string bytes = uploads.at(id) + request.body;
            const std::string digest = parameter(request.target, "digest");
            CHECK(sha256(bytes) == digest);
            blobs[digest] = bytes;
            puts.push_back("blob");
            reply.status = 201;
            return reply;
        }
        if (request.method == "PUT") {
            manifests[last] = request.body;
            types[last] = request.header("content-type");
            puts.push_back(last.starts_with("sha256:") ? "child" : last);
            reply.status = 201;
            reply.headers.emplace_back("Docker-Content-Digest", sha256(request.body));
            return reply;
        }
        return std::nullopt;
    }
};

struct Rewritten {
    std::optional<Error> error;
    registry::RewriteResult result;
    [[nodiscard]] std::string code() const { return error ? error->code() : "ok"; }
};

inline Rewritten rewrite(const std::string& from, const std::string& to,
                         const std::function<void(registry::RewriteRequest&)>& tweak = nullptr) {
    registry::RewriteRequest request;
    request.source.reference = from;
    request.source.all_kernels = true;
    request.source.tls.insecure = true;
    request.source.parser = confined_parser();
    request.to = to;
    request.created_by = "test";
    request.change = [](const std::string&, std::string bytes) { return std::optional(bytes + " changed"); };
    if (tweak) tweak(request);
    const sys::TempDir work("kmm-test-");
    net::CurlHttpClient http;
    TestClock clock;
    Rewritten done;
    try {
        done.result = registry::rewrite_image(request, work.path(), http, clock);
    } catch (const Error& error) {
        done.error = error;
    }
    return done;
}

inline value::Node json(const std::string& text) {
    Diagnostics faults;
    return value::read_json(text, "t", faults).at(0).root;
}

inline std::string tar_with(const std::string& text) {
    return TarBuilder().file(k_modules + "/a.ko", text).file(k_modules + "/readme", "r").finish();
}

}  // namespace kmm::test
