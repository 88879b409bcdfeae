// SPDX-License-Identifier: Apache-2.0
// Results as documents, in the form that -o asks for, and as files.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "cli/app.hpp"
#include "value/node.hpp"
#include "value/writer.hpp"

namespace kmm::cli {

/// The form of documents that -o json, yaml or jsonl asks for; nullopt for the other formats.
[[nodiscard]] std::optional<value::Form> document_form(const Context& context);
/// Prints a document, `sequence` in it as its items are made, as -o json, yaml or jsonl asks; false, and nothing
/// printed, for the other formats.
bool print_document(Context& context, const value::Node& node, const value::LongSequence& sequence = {});
/// As print_document, of a document that is a list: with jsonl a line for each of the sequence `member`, and nothing
/// around them.
[[nodiscard]] bool print_list(Context& context, const value::Node& node, std::string_view member = "items");

/// Prints a document that another command takes as a file: YAML unless JSON is asked. `option` is what asks for it.
/// Error: usage "bad-value" for -o name.
void print_file_document(Context& context, const value::Node& node, std::string_view option);

/// Who chose the name of a file to write: the caller by an option, or the program itself, in the working directory.
enum class NamedBy { user, program };

/// Writes a report to what an option names: a file as a whole, or not at all; standard output for "-", by
/// Console::out_alone; a pipe, a terminal, or a descriptor of this process such as /dev/stdout or /dev/fd/3 as it is.
/// Errors: io if the name is a link, or with NamedBy::program anything but a regular file; those of require_way_stays
/// for its directory and of sys::write_file_atomically.
void write_report(Context& context, const std::string& file, const std::string& text, NamedBy by = NamedBy::user);

/// Judges, before long work, what write_report will find at `file` when that is done. Errors: its own, but for those of
/// the writing itself; io, too, if nothing may be written to the directory.
void require_report(const std::string& file, NamedBy by = NamedBy::user);

/// What is written to a relative name without ".." stays below the working directory, whatever links are on its way.
/// Error: io.
void require_way_stays(const std::string& path);

}  // namespace kmm::cli
