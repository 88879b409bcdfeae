// SPDX-License-Identifier: Apache-2.0
#include "cluster/folder/file_cache.hpp"

#include <span>
#include <vector>

#include "api/codec.hpp"
#include "cluster/folder/documents.hpp"
#include "value/reader.hpp"

namespace kmm::cluster {
namespace {

/// What a file costs beside its text.
constexpr std::size_t k_entry_weight = 1024;

bool is_list(const value::Node& root) { return root.get_string({"kind"}).ends_with("List"); }

void decode_documents(std::span<const value::Document> documents, api::Objects& objects, Diagnostics& diagnostics) {
    for (const auto& document : documents) {
        if (&document != &documents.front() || is_list(document.root)) {
            diagnostics.push_back(fault_at("one-object-per-file", "expected one object in the file, found several",
                                           document.position(document.root.mark()),
                                           "put each object into a file of its own"));
        }
        api::decode(document, objects, diagnostics);
    }
}

/// Here a file with the name of a JSON file has to be one.
bool is_json(std::string_view file) { return file.ends_with(".json"); }

}  // namespace

Diagnostic fault_at(std::string code, std::string message, Position position, std::string hint, Exit exit) {
    Diagnostic diagnostic;
    diagnostic.code = std::move(code);
    diagnostic.message = std::move(message);
    diagnostic.position = std::move(position);
    diagnostic.hint = std::move(hint);
    diagnostic.exit = exit;
    return diagnostic;
}

const FileCache::Tree* FileCache::tree_of(const std::string& file, std::string_view bytes) {
    const auto* tree = trees_.find(file);
    return tree != nullptr && tree->bytes == bytes ? tree : nullptr;
}

void FileCache::append(const std::string& file, std::string bytes, api::Objects& objects, Diagnostics& diagnostics) {
    const auto* known = decoded_.find(file);
    if (known == nullptr || known->bytes != bytes) {
        Decoded decoded;
        if (const auto* tree = is_json(file) ? nullptr : tree_of(file, bytes); tree != nullptr) {
            decode_documents({tree->document.get(), 1}, decoded.objects, decoded.diagnostics);
        } else {
            const auto documents = is_json(file) ? value::read_json(bytes, file, decoded.diagnostics)
                                                 : value::read_objects(bytes, file, decoded.diagnostics);
            decode_documents(documents, decoded.objects, decoded.diagnostics);
        }
        hint_at_template(bytes, decoded.diagnostics);
        const auto weight = bytes.size() + k_entry_weight;
        decoded.bytes = std::move(bytes);
        known = &decoded_.put(file, std::move(decoded), weight);
    }
    api::append(objects, known->objects);
    diagnostics.insert(diagnostics.end(), known->diagnostics.begin(), known->diagnostics.end());
}

std::shared_ptr<const value::Document> FileCache::document(const std::string& file, const std::string& bytes) {
    if (const auto* known = tree_of(file, bytes); known != nullptr) return known->document;
    Diagnostics faults;
    auto documents = value::read_objects(bytes, file, faults);
    if (has_errors(faults)) throw Error::from_diagnostics(std::move(faults));
    if (documents.size() != 1) return nullptr;
    auto document = std::make_shared<const value::Document>(std::move(documents[0]));
    trees_.put(file, {bytes, document}, bytes.size() + k_entry_weight);
    return document;
}

void FileCache::note(const std::string& file, std::string bytes, value::Document document) {
    const auto weight = bytes.size() + k_entry_weight;
    trees_.put(file, {std::move(bytes), std::make_shared<const value::Document>(std::move(document))}, weight);
}

void FileCache::forget(const std::function<bool(const std::string& file)>& is_gone) {
    trees_.erase_if(is_gone);
    decoded_.erase_if(is_gone);
}

}  // namespace kmm::cluster
