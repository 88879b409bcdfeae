// SPDX-License-Identifier: Apache-2.0
// Read-only documents: files, directories and standard input, as -f names them.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "api/types.hpp"
#include "base/error.hpp"
#include "cluster/folder/kustomize.hpp"
#include "value/object_stream.hpp"

namespace kmm::cluster {

/// What takes the documents of files.
class DocumentTarget {
public:
    virtual ~DocumentTarget() = default;
    /// Whether the caller gives objects that say no namespace one: none is guessed.
    [[nodiscard]] virtual bool has_namespace() const { return false; }
    /// Whether texts about objects of a kind are faults where they cannot be read, beside those of KMM.
    [[nodiscard]] virtual bool uses(const std::string& /*api_version*/, const std::string& /*kind*/) const {
        return false;
    }
    /// Whether nothing of the charts in a directory is read, see is_in_chart.
    [[nodiscard]] virtual bool leaves_charts() const { return false; }
    /// Which namespace objects of the next text have that say none; "" for that of the caller.
    virtual void set_namespace(const std::string& /*name*/) {}
    /// A sink for a text that is read from its beginning. What an earlier one got and was not committed is void.
    /// nullptr: all documents are to be given to take().
    [[nodiscard]] virtual value::ObjectSink* begin() { return nullptr; }
    /// The sink of the last begin() got a whole text without a fault. Faults of what it says are appended.
    virtual void commit(Diagnostics& /*diagnostics*/) {}
    /// A document of a text that is not read object by object.
    virtual void take(const value::Document& document, Diagnostics& diagnostics) = 0;
    /// A ConfigMap or Secret that kustomize would make, after all texts. One of its name that was read counts instead.
    virtual void take_generated(GeneratedObject /*made*/, Diagnostics& /*diagnostics*/) {}
};

/// Reads as the other read_documents does, and gives everything to `target`.
std::vector<std::string> read_documents(const std::vector<std::string>& names, DocumentTarget& target,
                                        Diagnostics& diagnostics,
                                        const std::function<bool(std::string_view path)>& is_ignored = {});

/// Reads YAML or JSON (one or more documents, lists, output of kubectl get) from each of `names` in order and appends
/// the objects; a directory stands for its *.yaml, *.yml, *.json and *.json.gz at any depth, names with a leading dot
/// left out; "-" is standard input. Nothing throws for bad input: all faults of all files are in `diagnostics`, with
/// the codes of the readers and decoders and file-not-found (exit 66), unreadable-file, no-documents (a directory
/// without any document file; standard input or a named file without a byte). Call api::finish afterwards.
/// Returns the files that were read, in order. Objects that say no namespace are in that of a kustomization in the
/// directory that has their file as a resource, else in `given_namespace`, else in that of an object of Argo CD, Flux
/// or Fleet in it that applies their path; without any that is a fault. Objects that say another are moved, and
/// Namespaces renamed, as kustomize does it: by the outermost of the kustomizations if there is one chain of them, and,
/// without a `given_namespace`, by targetNamespace of Flux, kustomize.namespace of Argo CD and namespace of Fleet,
/// which go before it. Patches of a kustomization are left out; one that changes objects of KMM in any other way is
/// reported as "kustomize-not-built", and so are patches and the like that an object of Argo CD or Flux has for them.
/// Variables of Flux are replaced.
/// Files of a directory for whose path below it `is_ignored` is true are left out.
std::vector<std::string> read_documents(const std::vector<std::string>& names, api::Objects& objects,
                                        Diagnostics& diagnostics, const std::string& given_namespace = {},
                                        const std::function<bool(std::string_view path)>& is_ignored = {});

/// Gives the first fault of syntax in `text` the hint that it is a template, if it looks like one; that fault, else
/// nullptr. Other findings about such a text say nothing.
Diagnostic* hint_at_template(std::string_view text, std::span<Diagnostic> faults);

/// Puts `over` on top of `base`: objects of the same kind, namespace and name are replaced, others added. Both must be
/// finished; the result is sorted.
void overlay(api::Objects& base, api::Objects over);

}  // namespace kmm::cluster
