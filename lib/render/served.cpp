// SPDX-License-Identifier: Apache-2.0
#include "render/served.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

namespace kmm::render {

namespace {

using value::Node;

struct TextDefault {
    std::string_view key, text;
};
constexpr std::array k_text_defaults{
    TextDefault{"dnsPolicy", "ClusterFirst"},      TextDefault{"protocol", "TCP"},
    TextDefault{"restartPolicy", "Always"},        TextDefault{"schedulerName", "default-scheduler"},
    TextDefault{"scheme", "HTTP"},                 TextDefault{"service", ""},
    TextDefault{"terminationMessagePath", "/dev/termination-log"},
    TextDefault{"terminationMessagePolicy", "File"}, TextDefault{"type", ""},
    TextDefault{"value", ""},                      TextDefault{"volumeMode", "Filesystem"},
};

struct NumberDefault {
    std::string_view key;
    std::int64_t number;
};
constexpr std::array k_number_defaults{
    NumberDefault{"defaultMode", 420},
    NumberDefault{"expirationSeconds", 3600},
    NumberDefault{"failureThreshold", 3},
    NumberDefault{"initialDelaySeconds", 0},
    NumberDefault{"minReadySeconds", 0},
    NumberDefault{"periodSeconds", 10},
    NumberDefault{"revisionHistoryLimit", 10},
    NumberDefault{"successThreshold", 1},
    NumberDefault{"terminationGracePeriodSeconds", 30},
    NumberDefault{"timeoutSeconds", 1},
};

constexpr std::array<std::string_view, 6> k_false_defaults{"hostIPC",  "hostNetwork", "hostPID",
                                                           "readOnly", "stdin",       "tty"};
constexpr std::array<std::string_view, 4> k_chosen_by_users{"annotations", "labels", "matchLabels", "nodeSelector"};
constexpr std::array<std::string_view, 2> k_quantities{"divisor", "sizeLimit"};

template <typename List, typename Key>
bool holds(const List& list, const Key& key) {
    return std::find(list.begin(), list.end(), key) != list.end();
}

/// Kubernetes: Always for no tag and for :latest, else IfNotPresent.
std::string_view default_pull_policy(const std::string& image) {
    if (image.find('@') != std::string::npos) { return "IfNotPresent"; }
    const std::size_t name = image.rfind('/') == std::string::npos ? 0 : image.rfind('/');
    const std::size_t colon = image.find(':', name);
    return colon == std::string::npos || std::string_view(image).substr(colon + 1) == "latest" ? "Always"
                                                                                               : "IfNotPresent";
}

const Node& default_update_strategy() {
    static const Node strategy = Node::mapping(
        {{"rollingUpdate", Node::mapping({{"maxSurge", 0}, {"maxUnavailable", 1}})}, {"type", "RollingUpdate"}});
    return strategy;
}

bool is_default(const Node& parent, const std::string& key, const Node& value) {
    if (value.is_null()) { return true; }
    if (value.is_mapping() && value.members().empty()) { return key != "emptyDir"; }
    if (value.is_sequence() && value.items().empty()) { return true; }
    for (const auto& row : k_text_defaults) {
        if (row.key == key && value.is_string() && value.text() == row.text) { return true; }
    }
    for (const auto& row : k_number_defaults) {
        if (row.key == key && value.as_int() == row.number) { return true; }
    }
    if (value.as_bool() == false && holds(k_false_defaults, key)) { return true; }
    if (key == "updateStrategy") { return value.same_value(default_update_strategy()); }
    if (key == "serviceAccount") { return value.text() == parent.get_string({"serviceAccountName"}); }
    if (key == "imagePullPolicy") { return value.text() == default_pull_policy(parent.get_string({"image"})); }
    if (key == "pullPolicy") { return value.text() == default_pull_policy(parent.get_string({"reference"})); }
    if (key == "divisor") { return value.text() == "0"; }
    return key == "apiVersion" && value.text() == "v1" && parent.find("fieldPath") != nullptr;
}

struct Suffix {
    std::string_view text;
    double factor;
};
constexpr double k_binary = 1024.0;
constexpr std::array k_suffixes{
    Suffix{"", 1},   Suffix{"n", 1e-9}, Suffix{"u", 1e-6}, Suffix{"m", 1e-3}, Suffix{"k", 1e3}, Suffix{"M", 1e6},
    Suffix{"G", 1e9}, Suffix{"T", 1e12}, Suffix{"P", 1e15}, Suffix{"E", 1e18}, Suffix{"Ki", k_binary},
    Suffix{"Mi", k_binary * k_binary}, Suffix{"Gi", k_binary * k_binary * k_binary},
    Suffix{"Ti", k_binary * k_binary * k_binary * k_binary},
    Suffix{"Pi", k_binary * k_binary * k_binary * k_binary * k_binary},
    Suffix{"Ei", k_binary * k_binary * k_binary * k_binary * k_binary * k_binary},
};

/// "1000m", 1 and "1" are the same quantity; what is none stays as it is.
Node one_quantity(const Node& value) {
    const std::string& text = value.text();
    double number = 0;
    const auto [end, failed] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (failed != std::errc{}) { return value; }
    const std::string_view rest(end, static_cast<std::size_t>(text.data() + text.size() - end));
    const auto suffix =
        std::find_if(k_suffixes.begin(), k_suffixes.end(), [&](const Suffix& row) { return row.text == rest; });
    return suffix == k_suffixes.end() ? value : Node(fmt::format("{:.12g}", number * suffix->factor));
}

}  // namespace

Node without_defaults(const Node& spec) {
    if (spec.is_sequence()) {
        Node list = Node::sequence();
        for (const auto& item : spec.items()) { list.push_back(without_defaults(item)); }
        return list;
    }
    if (!spec.is_mapping()) { return spec; }
    Node result = Node::mapping();
    for (const auto& [key, mark, value] : spec.members()) {
        if (is_default(spec, key, value)) { continue; }
        if (holds(k_chosen_by_users, std::string_view(key))) {
            result.set(key, value);
        } else if (holds(k_quantities, std::string_view(key))) {
            result.set(key, one_quantity(value));
        } else if (key == "limits" || key == "requests") {
            Node quantities = Node::mapping();
            for (const auto& member : value.members()) { quantities.set(member.key, one_quantity(member.value)); }
            result.set(key, std::move(quantities));
        } else if (Node inner = without_defaults(value); !is_default(spec, key, inner)) {
            result.set(key, std::move(inner));
        }
    }
    return result;
}

}  // namespace kmm::render
