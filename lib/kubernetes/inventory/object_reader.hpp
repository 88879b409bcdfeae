// SPDX-License-Identifier: Apache-2.0
// One object of an API server that is being decoded. Private to this room.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/text.hpp"
#include "kubernetes/inventory/inventory.hpp"

namespace kmm::kubernetes {

/// Members in the form that they must have, and a fault for any other.
class ObjectReader {
public:
    ObjectReader(const value::Document& document, Diagnostics& faults, std::string what)
        : document_(document), faults_(faults), what_(std::move(what)) {}

    void name_it(std::string what) { what_ = std::move(what); }

    void fault(value::Mark mark, std::string message, std::string hint = {}) {
        Diagnostic made;
        made.code = "bad-object";
        made.message = what_ + ": " + std::move(message);
        made.position = document_.position(mark);
        made.hint = std::move(hint);
        faults_.push_back(std::move(made));
    }

    /// The member, nullptr if it is absent, null or of another kind, which is a fault.
    const value::Node* member(const value::Node* in, std::string_view key, value::Kind kind) {
        const value::Node* found = in == nullptr ? nullptr : in->find(key);
        if (found == nullptr || found->is_null() || found->kind() == kind) {
            return found != nullptr && found->is_null() ? nullptr : found;
        }
        fault(found->mark(), fmt::format("{}: expected a {}, found a {}", key, value::kind_name(kind),
                                         value::kind_name(found->kind())));
        return nullptr;
    }

    const value::Node* mapping(const value::Node* in, std::string_view key) {
        return member(in, key, value::Kind::mapping);
    }

    const std::vector<value::Node>& list(const value::Node* in, std::string_view key) {
        static const std::vector<value::Node> none;
        const value::Node* found = member(in, key, value::Kind::sequence);
        return found == nullptr ? none : found->items();
    }

    std::string text(const value::Node* in, std::string_view key) {
        const value::Node* found = member(in, key, value::Kind::string);
        return found == nullptr ? std::string() : found->text();
    }

    bool flag(const value::Node* in, std::string_view key, bool absent = false) {
        const value::Node* found = member(in, key, value::Kind::boolean);
        return found == nullptr ? absent : found->as_bool().value_or(absent);
    }

    std::optional<std::int64_t> number(const value::Node* in, std::string_view key) {
        const value::Node* found = member(in, key, value::Kind::integer);
        return found == nullptr ? std::nullopt : found->as_int();
    }

    std::vector<std::string> texts(const value::Node* in, std::string_view key) {
        std::vector<std::string> result;
        for (const auto& item : list(in, key)) {
            if (item.is_string()) { result.push_back(item.text());
            } else {
                fault(item.mark(),
                      fmt::format("{}: expected a string, found a {}", key, value::kind_name(item.kind())));
            }
        }
        return result;
    }

    Labels labels(const value::Node* in, std::string_view key) {
        Labels result;
        const value::Node* found = mapping(in, key);
        if (found == nullptr) { return result; }
        for (const auto& each : found->members()) {
            if (each.value.is_string()) { result.emplace_back(each.key, each.value.text());
            } else {
                fault(each.value.mark(), fmt::format("{}: {}: expected a string, found a {}", key,
                                                     base::escape(each.key), value::kind_name(each.value.kind())));
            }
        }
        return result;
    }

    std::vector<Condition> conditions(const value::Node* status) {
        std::vector<Condition> result;
        for (const auto& each : list(status, "conditions")) {
            result.push_back({text(&each, "type"), text(&each, "status"), text(&each, "reason"),
                              text(&each, "message")});
        }
        return result;
    }

    Position position(value::Mark mark) const { return document_.position(mark); }

private:
    const value::Document& document_;
    Diagnostics& faults_;
    std::string what_;
};

[[nodiscard]] PodObject pod_of(ObjectReader& reader, const value::Node& object, ObjectMeta meta);
/// cpu, memory and pods of a mapping, which may be nullptr. Appends to `unread` what is not a quantity and counts as 0,
/// as "PATHcpu 'TEXT'".
[[nodiscard]] Resources resources_of(const value::Node* in, std::string_view path, std::vector<std::string>& unread);
/// Takes a revision of Helm, with what its manifest names of such APIs if Helm may read that manifest again.
void take_release(const value::Node& object, const ObjectMeta& meta, bool is_secret, Inventory& taken);
/// Whether kubeadm takes a Deployment with these labels for the DNS of the cluster.
[[nodiscard]] bool has_label_of_dns(const Labels& labels) noexcept;
/// A Deployment of kube-system that may be the DNS.
[[nodiscard]] CoreDnsObject core_dns_of(ObjectReader& reader, const value::Node& object, ObjectMeta meta);
/// An object of an order_kind.
[[nodiscard]] OrderObject order_of(const value::Node& object, ObjectMeta meta, std::string kind);
/// nullopt if the DaemonSet is not kured's.
[[nodiscard]] std::optional<KuredObject> kured_of(const value::Node& object, const ObjectMeta& meta);

}  // namespace kmm::kubernetes
