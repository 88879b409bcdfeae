// SPDX-License-Identifier: Apache-2.0
// Reading: single objects, and lists page by page.
#include <algorithm>
#include <cstring>
#include <functional>
#include <unordered_set>

#include <fmt/format.h>

#include "kube/client.hpp"

namespace kmm::kube {

namespace {

constexpr const char* k_metadata_list =
    "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json";

Action read_action(const char* verb, const Resource& resource, const Key& key) {
    return {verb,    resource.group, resource.plural, "", resource.scope == Scope::cluster ? "" : key.namespace_,
            key.name};
}

/// Passes everything on and remembers what the list says about itself.
class PageSink final : public value::ObjectSink {
public:
    explicit PageSink(value::ObjectSink& sink) : sink_(sink) {}

    const value::Shape* shape(const value::Node& object, const value::Node* list) override {
        return sink_.shape(object, list);
    }
    bool take_item(value::Document& item, const value::Node& list) override {
        ++items;
        return sink_.take_item(item, list);
    }
    void take_document(const value::Document& document) override {
        continue_token = document.root.get_string({"metadata", "continue"});
        resource_version = document.root.get_string({"metadata", "resourceVersion"});
        is_list = document.root.get_string({"kind"}).ends_with("List");
        sink_.take_document(document);
    }

    std::string continue_token, resource_version;
    bool is_list = false;
    std::size_t items = 0;  ///< of all pages

private:
    value::ObjectSink& sink_;
};

void parse_page(const std::string& body, const std::string& name, const Action& action, PageSink& sink) {
    std::size_t at = 0;
    const value::ReadMore more = [&](char* into, std::size_t size) {
        const std::size_t piece = std::min(size, body.size() - at);
        std::memcpy(into, body.data() + at, piece);
        at += piece;
        return piece;
    };
    const auto doubt = value::stream_json(more, name, sink);
    if (doubt || !sink.is_list) {
        throw Error(Exit::unavailable, "bad-answer",
                    doubt ? fmt::format("{}: the answer is not a list in JSON: {}", to_string(action), doubt->message)
                          : fmt::format("{}: expected a list, found something else", to_string(action)))
            .retryable();
    }
}

/// Sees that a list comes to its end: no page is asked for twice, and not many in a row are empty. A server may hand
/// out an empty page, as when everything in it was deleted meanwhile.
class Progress {
public:
    /// Errors: "bad-answer".
    void note(const std::string& next, std::size_t items, const Action& action) {
        constexpr int k_empty_max = 8;
        empty_ = items == items_ ? empty_ + 1 : 0;
        items_ = items;
        const bool is_new = seen_.insert(std::hash<std::string>{}(next)).second;
        if (!next.empty() && (empty_ > k_empty_max || !is_new)) {
            throw Error(Exit::unavailable, "bad-answer",
                        fmt::format("{}: expected the list to end, found {}", to_string(action),
                                    is_new ? fmt::format("{} empty pages in a row and a next one", empty_)
                                           : "a page that names one as the next that was read"))
                .hint("is that the API server? kubectl get --raw /version asks it");
        }
    }

private:
    std::unordered_set<std::size_t> seen_;  ///< hashes of the pages' tokens
    std::size_t items_ = 0;
    int empty_ = 0;
};

/// Items as they are, without the bookkeeping of server-side apply.
class CollectingSink final : public value::ObjectSink {
public:
    explicit CollectingSink(const value::Shape* shape) : shape_(shape) {}

    const value::Shape* shape(const value::Node& /*object*/, const value::Node* list) override {
        if (list == nullptr) { return nullptr; }  // the list itself: its version is where a watch begins
        static const value::Shape metadata{{"managedFields"}, {}};
        static const value::Shape whole{{}, {{"metadata", &metadata}}};
        return shape_ == nullptr ? &whole : shape_;
    }
    bool take_item(value::Document& item, const value::Node& /*list*/) override {
        items.push_back(std::move(item.root));
        return true;
    }
    void take_document(const value::Document& document) override {
        // Items of a list are without kind and apiVersion; the list has them.
        const std::string list_kind = document.root.get_string({"kind"});
        const std::string kind = list_kind.substr(0, list_kind.size() - std::min<std::size_t>(list_kind.size(), 4));
        const std::string version = document.root.get_string({"apiVersion"});
        for (; named_ < items.size(); ++named_) {
            if (items[named_].find("kind") == nullptr) { items[named_].set("kind", kind); }
            if (items[named_].find("apiVersion") == nullptr) { items[named_].set("apiVersion", version); }
        }
    }

    std::vector<value::Node> items;

private:
    const value::Shape* shape_;
    std::size_t named_ = 0;
};

}  // namespace

value::Node Client::get(const Resource& resource, const Key& key) {
    Call call;
    call.path = path_of(resource, key);
    call.action = read_action("get", resource, key);
    return parse(exchange(call), call.action);
}

std::optional<value::Node> Client::find(const Resource& resource, const Key& key) {
    Call call;
    call.path = path_of(resource, key);
    call.action = read_action("get", resource, key);
    call.is_answer = [](const Failure& failure) { return failure.code == 404; };
    const Reply reply = exchange(call);
    if (reply.failure) { return std::nullopt; }
    return parse(reply, call.action);
}

ListMeta Client::list(const Resource& resource, const ListQuery& query,
                      const std::function<value::ObjectSink&()>& make_sink) {
    constexpr std::size_t k_restarts_max = 5;
    constexpr std::size_t k_page_max = 128U << 20U;  // 500 Nodes or NodeModulesConfigs have some 20 MiB
    std::optional<Progress> progress(std::in_place);
    ListMeta meta;
    std::string token;
    PageSink* page = nullptr;
    std::optional<PageSink> sink;
    for (;;) {
        Call call;
        call.path = path_of(resource, Key{query.namespace_, ""});
        call.action = read_action("list", resource, Key{query.namespace_, ""});
        call.query.emplace_back("limit", std::to_string(options_.page_size));
        if (!query.label_selector.empty()) { call.query.emplace_back("labelSelector", query.label_selector); }
        if (!query.field_selector.empty()) { call.query.emplace_back("fieldSelector", query.field_selector); }
        if (!token.empty()) { call.query.emplace_back("continue", token); }
        call.body_max = k_page_max;
        if (query.content == ListQuery::Content::metadata) { call.accept = k_metadata_list; }
        // The rest of an old list would not fit what was read before: it starts anew.
        const bool may_restart = !token.empty() && meta.restarts < k_restarts_max;
        call.is_answer = [&](const Failure& failure) { return failure.code == 410 && may_restart; };
        const Reply reply = exchange(call);
        if (reply.failure) {
            ++meta.restarts;
            token.clear();
            page = nullptr;
            progress.emplace();
            continue;
        }
        if (page == nullptr) { page = &sink.emplace(make_sink()); }
        parse_page(reply.body, resource.full_name(), call.action, *page);
        ++meta.pages;
        meta.bytes += reply.body.size();
        meta.resource_version = page->resource_version;
        token = page->continue_token;
        progress->note(token, page->items, call.action);
        if (token.empty()) { return meta; }
    }
}

std::vector<value::Node> Client::list_all(const Resource& resource, const ListQuery& query, ListMeta* meta,
                                          const value::Shape* shape) {
    std::optional<CollectingSink> sink;
    ListMeta found = list(resource, query, [&]() -> value::ObjectSink& { return sink.emplace(shape); });
    if (meta != nullptr) { *meta = std::move(found); }
    return std::move(sink->items);
}

}  // namespace kmm::kube
