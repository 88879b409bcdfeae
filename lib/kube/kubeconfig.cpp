// SPDX-License-Identifier: Apache-2.0
// Files to entries.
#include <sys/stat.h>

#include <cerrno>
#include <utility>

#include <fmt/format.h>

#include "base/text.hpp"
#include "kube/kubeconfig_parts.hpp"
#include "sys/trust.hpp"
#include "value/reader.hpp"

namespace kmm::kube {

namespace {

constexpr std::size_t k_config_max = 16U << 20U;

Error config_fault(const std::string& file, value::Mark mark, std::string message) {
    return Error(Exit::config, "bad-kubeconfig", std::move(message)).at(Position{file, mark.line, mark.column});
}

std::string kind_of(const value::Node& node) { return std::string(value::kind_name(node.kind())); }

/// A number or boolean is as good as its text where a string is expected: so does sigs.k8s.io/yaml.
bool is_scalar(const value::Node& node) { return !node.is_null() && !node.is_mapping() && !node.is_sequence(); }

void read_entries(const value::Node& root, const std::string& file, std::string_view list_key,
                  std::string_view body_key, ConfigEntries& entries) {
    const value::Node* list = root.find(list_key);
    if (list == nullptr || list->is_null()) { return; }
    if (!list->is_sequence()) {
        throw config_fault(file, list->mark(), fmt::format("{}: expected a list, found {}", list_key, kind_of(*list)));
    }
    std::map<std::string, value::Mark, std::less<>> seen;
    for (const auto& item : list->items()) {
        const value::Node* name = item.find("name");
        if (name == nullptr || !is_scalar(*name) || name->text().empty()) {
            throw config_fault(file, item.mark(), fmt::format("{}: expected an entry with a name", list_key));
        }
        const auto [first, is_new] = seen.emplace(name->text(), name->mark());
        if (!is_new) {
            throw config_fault(file, name->mark(),
                               fmt::format("{}: expected every name once, found {} here and in line {}", list_key,
                                           base::escape(name->text()), first->second.line));
        }
        const value::Node* body = item.find(body_key);
        ConfigEntry entry{value::Node::mapping(), file, name->mark()};
        if (body != nullptr && !body->is_null()) {
            if (!body->is_mapping()) {
                throw config_fault(file, body->mark(),
                                   fmt::format("{}: expected a mapping, found {}", body_key, kind_of(*body)));
            }
            entry.body = *body;
        }
        entries.emplace(name->text(), std::move(entry));  // the first file wins
    }
}

void merge_file(const std::string& file, MergedConfig& merged) {
    const std::string text = sys::read_trusted_file(file, "file", k_config_max);
    Diagnostics faults;
    const auto documents = value::read_any(text, file, faults);
    if (has_errors(faults)) {
        for (const auto& fault : faults) {
            if (fault.severity != Severity::error) { continue; }
            Error error(Exit::config, "bad-kubeconfig", fault.message);
            if (fault.position) { error.at(*fault.position); }
            throw error;
        }
    }
    merged.files.push_back(file);
    if (documents.empty()) { return; }
    const value::Node& root = documents.front().root;
    if (!root.is_mapping()) {
        throw config_fault(file, root.mark(), fmt::format("expected a kubeconfig, found {}", kind_of(root)));
    }
    const value::Node* kind = root.find("kind");
    if (kind != nullptr && !kind->is_null() && kind->text() != "Config") {
        throw config_fault(file, kind->mark(),
                           fmt::format("kind: expected Config, found {}", base::escape(kind->text())));
    }
    read_entries(root, file, "clusters", "cluster", merged.clusters);
    read_entries(root, file, "users", "user", merged.users);
    read_entries(root, file, "contexts", "context", merged.contexts);
    const value::Node* current = root.find("current-context");
    if (merged.current_context.empty() && current != nullptr && !current->is_null()) {
        if (!is_scalar(*current)) {
            throw config_fault(file, current->mark(), "current-context: expected a string, found " + kind_of(*current));
        }
        if (!current->text().empty()) {
            merged.current_context = current->text();
            merged.current_origin = Position{file, current->mark().line, current->mark().column};
        }
    }
}

}  // namespace

MergedConfig merge_configs(const std::vector<std::string>& files, Presence presence) {
    MergedConfig merged;
    for (const auto& file : files) {
        struct stat info {};
        if (::stat(file.c_str(), &info) != 0 && (errno == ENOENT || errno == ENOTDIR)) {
            if (presence == Presence::optional) { continue; }
            throw Error(Exit::not_found, "kubeconfig-not-found", "there is no kubeconfig " + base::escape(file))
                .hint("--kubeconfig FILE, or KUBECONFIG");
        }
        with_context([&] { return "kubeconfig"; }, [&] { merge_file(file, merged); });
    }
    return merged;
}

bool EntryReader::is_absent(std::string_view key) const {
    const value::Node* node = body_.find(key);
    return node == nullptr || node->is_null();
}

Position EntryReader::place(std::string_view key) const {
    const value::Node* node = body_.find(key);
    const value::Mark mark = node == nullptr ? body_.mark() : node->mark();
    return Position{file_, mark.line, mark.column};
}

Error EntryReader::fault(std::string_view key, const std::string& message) const {
    return Error(Exit::config, "bad-kubeconfig", fmt::format("{}: {}", key, message)).at(place(key));
}

std::string EntryReader::text(std::string_view key) const {
    if (is_absent(key)) { return ""; }
    const value::Node& node = *body_.find(key);
    if (!is_scalar(node)) { throw fault(key, "expected a string, found " + kind_of(node)); }
    return node.text();
}

bool EntryReader::flag(std::string_view key) const {
    if (is_absent(key)) { return false; }
    const auto flag = body_.find(key)->as_bool();
    if (!flag) { throw fault(key, "expected true or false, found " + kind_of(*body_.find(key))); }
    return *flag;
}

const value::Node* EntryReader::mapping(std::string_view key) const {
    if (is_absent(key)) { return nullptr; }
    const value::Node* node = body_.find(key);
    if (!node->is_mapping()) { throw fault(key, "expected a mapping, found " + kind_of(*node)); }
    return node;
}

const value::Node* EntryReader::list(std::string_view key) const {
    if (is_absent(key)) { return nullptr; }
    const value::Node* node = body_.find(key);
    if (!node->is_sequence()) { throw fault(key, "expected a list, found " + kind_of(*node)); }
    return node;
}

std::vector<std::string> EntryReader::texts(std::string_view key) const {
    std::vector<std::string> result;
    const value::Node* node = list(key);
    if (node == nullptr) { return result; }
    for (const auto& item : node->items()) {
        if (!is_scalar(item)) { throw fault(key, "expected a list of strings, found " + kind_of(item) + " in it"); }
        result.push_back(item.text());
    }
    return result;
}

std::string EntryReader::resolve(const std::string& path) const {
    if (path.empty() || path.front() == '/') { return path; }
    const std::size_t slash = file_.rfind('/');
    return slash == std::string::npos ? path : file_.substr(0, slash + 1) + path;
}

std::string EntryReader::content(std::string_view key) const {
    const std::string data_key = std::string(key) + "-data";
    const std::string encoded = text(data_key);
    if (!encoded.empty()) {
        auto decoded = base::from_base64(encoded);
        if (!decoded) { throw fault(data_key, "expected base64, found other characters"); }
        return std::move(*decoded);
    }
    const std::string path = text(key);
    if (path.empty()) { return ""; }
    try {
        return sys::read_trusted_file(resolve(path), "file", k_config_max);
    } catch (Error& error) {
        error.add_context(std::string(key)).at(place(key));
        throw;
    }
}

}  // namespace kmm::kube
