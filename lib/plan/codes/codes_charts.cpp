// SPDX-License-Identifier: Apache-2.0
// What rendering charts refuses.
#include <array>

#include "plan/codes/codes.hpp"

namespace kmm::plan {

namespace {

constexpr std::array k_chart_texts{
    CodeText{"bad-archive", "error", "a .tgz is not a chart",
             "Damaged archives, absolute paths, paths with '..', links and devices are refused.",
             "pack it again with helm package"},
    CodeText{"bad-chart", "error", "a chart cannot be loaded",
             "Chart.yaml, values.yaml or a sub-chart is missing, is not YAML or has a field of another type.",
             "correct the file that the message names"},
    CodeText{"bad-ignore", "error", ".helmignore has a pattern that cannot be read", "", "correct the line"},
    CodeText{"bad-manifest", "error", "what a template prints is not an object",
             "The output is not YAML, or its kind, name or annotations are not strings. The position is that of the "
             "template.",
             "correct the template or the value; `quote` makes strings"},
    CodeText{"bad-schema", "error", "values.schema.json cannot be used",
             "It is not JSON, is not a schema by its draft, or refers to another document.", "correct the schema"},
    CodeText{"bad-set", "error", "--set cannot be read", "", "write KEY=VALUE, and \\, for a comma in a value"},
    CodeText{"bad-values", "error", "a values file is not a mapping of values", "", "correct the file"},
    CodeText{"not-deterministic", "error", "a template calls a function that gives another result each time",
             "Functions of random numbers, of the present time and of new certificates would make each rendering "
             "differ.",
             "set the value in the values, or give --placeholders to render chart"},
    CodeText{"placeholder", "finding", "a template gets a fixed text in place of a random one",
             "--placeholders is given, for output that is read and not applied.", "set the value in the values"},
    CodeText{"recipe-too-large", "error", "a chart is over a limit",
             "Limits on files, steps, depth and output protect against templates without an end.",
             "look for a loop, or for a file that is not part of the chart"},
    CodeText{"template-error", "error", "a template failed",
             "The message has the template, line and column, the expression and the value that was found.",
             "correct the template or the value"},
    CodeText{"template-fail", "error", "a template refuses the values",
             "It called `required` or `fail` with that message.", "set the value"},
    CodeText{"template-syntax", "error", "a template cannot be parsed", "", "correct the template"},
    CodeText{"unknown-function", "error", "a template calls a function that does not exist", "", "correct its name"},
    CodeText{"unsupported-function", "error", "a template calls a function that is not supported", "", "see the hint"},
    CodeText{"unsupported-zone", "error", "a template asks for a time zone",
             "Only UTC gives the same result on every machine.", "use UTC"},
    CodeText{"values-schema", "error", "values do not meet values.schema.json", "", "correct the values"},
};

}  // namespace

std::span<const CodeText> chart_texts() noexcept { return k_chart_texts; }

}  // namespace kmm::plan
