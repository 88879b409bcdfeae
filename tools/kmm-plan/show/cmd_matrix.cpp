// SPDX-License-Identifier: Apache-2.0
// kmm-plan matrix: which Module covers which kernel.
#include <algorithm>

#include <fmt/format.h>

#include "base/counted.hpp"
#include "base/join_some.hpp"
#include "base/text.hpp"
#include "cli/document.hpp"
#include "cli/table.hpp"
#include "cli/text.hpp"
#include "kmm-plan/source/documents.hpp"
#include "kmm-plan/source/plan_options.hpp"
#include "kmm-plan/verbs.hpp"
#include "plan/fleet/matrix.hpp"
#include "plan/kmm/template.hpp"
#include "report/report.hpp"

namespace kmm::tool_plan {

namespace {

using plan::Matrix;
using plan::MatrixCell;
using value::Node;

constexpr std::size_t k_page_width = 80;
constexpr std::size_t k_named_nodes_max = 3;

/// "3", "ok", "GAP 2", "BAD", "-".
std::string cell_text(const MatrixCell& cell) {
    const std::string count = cell.nodes.empty() ? "" : std::to_string(cell.nodes.size());
    switch (cell.state) {
        case MatrixCell::State::covered: return count.empty() ? "ok" : count;
        case MatrixCell::State::gap: return count.empty() ? "GAP" : "GAP " + count;
        case MatrixCell::State::fault: return count.empty() ? "BAD" : "BAD " + count;
        case MatrixCell::State::unwanted: return "-";
    }
    return "-";
}

bool is_missing(const MatrixCell& cell) {
    return cell.state == MatrixCell::State::gap || cell.state == MatrixCell::State::fault;
}

std::string nodes_text(const MatrixCell& cell) {
    return cell.nodes.empty() ? "no node yet" : base::join_some(cell.nodes, k_named_nodes_max);
}

std::string mapping_of(const MatrixCell& cell) {
    if (!cell.resolved) { return "-"; }
    return fmt::format("[{}] {} {}", cell.resolved->mapping_index, cell.resolved->literal ? "literal" : "regexp",
                       cell.resolved->matcher);
}

/// Kernels down, modules across; as many modules side by side as fit into `width`.
std::string folded_table(const Matrix& matrix, std::size_t width) {
    std::vector<std::size_t> widths;
    for (std::size_t m = 0; m < matrix.modules.size(); ++m) {
        std::size_t widest = matrix.modules[m]->full_name().size();
        for (const auto& kernel : matrix.kernels) { widest = std::max(widest, cell_text(kernel.cells[m]).size()); }
        widths.push_back(widest + 2);
    }
    std::size_t first = std::string_view("KERNEL").size();
    for (const auto& kernel : matrix.kernels) { first = std::max(first, kernel.version.size()); }
    first += 2 + std::string_view("NODES").size();
    std::string text;
    for (std::size_t from = 0; from < widths.size() || from == 0;) {
        std::vector<std::string> headers{"KERNEL", "NODES"};
        std::size_t to = from;
        for (std::size_t used = first; to < widths.size() && (to == from || used + widths[to] <= width); ++to) {
            used += widths[to];
            headers.push_back(matrix.modules[to]->full_name());
        }
        std::vector<std::vector<std::string>> rows;
        for (const auto& kernel : matrix.kernels) {
            std::vector<std::string> row{kernel.version, std::to_string(kernel.nodes)};
            for (std::size_t m = from; m < to; ++m) { row.push_back(cell_text(kernel.cells[m])); }
            rows.push_back(std::move(row));
        }
        text += (text.empty() ? "" : "\n") + cli::format_table(headers, rows, 0);
        if (to == from) { break; }  // no modules at all
        from = to;
    }
    return text;
}

/// One entry a gap: kernel, module, why, which nodes.
template <typename Visit>
void for_each_gap(const Matrix& matrix, Visit&& visit) {
    for (const auto& kernel : matrix.kernels) {
        for (std::size_t m = 0; m < matrix.modules.size(); ++m) {
            const MatrixCell& cell = kernel.cells[m];
            if (is_missing(cell)) {
                visit(base::escape(kernel.version), matrix.modules[m]->full_name(),
                      cell.message.empty() ? "no mapping" : cell.message, cell);
            }
        }
    }
}

std::string gap_count(const Matrix& matrix) {
    if (matrix.modules.empty()) { return "there is no Module with a moduleLoader to look at"; }
    if (matrix.kernels.empty()) { return "there is no kernel to look at"; }
    if (matrix.gaps == 0) { return "no gaps"; }
    return base::counted(matrix.gaps, "gap");
}

std::string gaps_text(const Matrix& matrix) {
    std::string text = gap_count(matrix) + (matrix.gaps == 0 ? "" : ":") + "\n";
    for_each_gap(matrix, [&](const std::string& kernel, const std::string& module, const std::string& why,
                             const MatrixCell& cell) {
        std::string lines =
            cli::wrap(fmt::format("{}  {}: {} ({})", kernel, module, why, nodes_text(cell)), k_page_width, 4);
        text += "  " + lines.substr(4);
    });
    if (matrix.nodes_without_kernel > 0) {
        const bool one = matrix.nodes_without_kernel == 1;
        text += fmt::format("{} node{} not say which kernel {}\n", matrix.nodes_without_kernel, one ? " does" : "s do",
                            one ? "it runs" : "they run");
    }
    return text;
}

std::string wide_table(const Matrix& matrix) {
    std::vector<std::vector<std::string>> rows;
    for (const auto& kernel : matrix.kernels) {
        for (std::size_t m = 0; m < matrix.modules.size(); ++m) {
            const MatrixCell& cell = kernel.cells[m];
            rows.push_back({kernel.version, matrix.modules[m]->full_name(), std::to_string(cell.nodes.size()),
                            std::string(plan::to_string(cell.state)), mapping_of(cell),
                            cell.resolved ? cell.resolved->config.container_image : "-"});
        }
    }
    return cli::format_table({"KERNEL", "MODULE", "NODES", "STATE", "MAPPING", "IMAGE"}, rows, 0);
}

std::string matrix_markdown(const Matrix& matrix) {
    using report::markdown_text;
    std::string text = fmt::format("## kmm-plan matrix: {}\n\n| kernel | nodes |", gap_count(matrix));
    std::string line = "| --- | --- |";
    for (const auto* module : matrix.modules) {
        text += fmt::format(" {} |", markdown_text(module->full_name()));
        line += " --- |";
    }
    text += "\n" + line + "\n";
    for (const auto& kernel : matrix.kernels) {
        text += fmt::format("| {} | {} |", markdown_text(kernel.version), kernel.nodes);
        for (const auto& cell : kernel.cells) {
            const char* strong = is_missing(cell) ? "**" : "";
            text += fmt::format(" {0}{1}{0} |", strong, cell_text(cell));
        }
        text += "\n";
    }
    if (matrix.gaps > 0) { text += "\n"; }
    for_each_gap(matrix, [&](const std::string& kernel, const std::string& module, const std::string& why,
                             const MatrixCell& cell) {
        text += fmt::format("- {} {}: {} ({})\n", markdown_text(kernel), markdown_text(module), markdown_text(why),
                            markdown_text(nodes_text(cell)));
    });
    return text;
}

std::string matrix_html(const Matrix& matrix) {
    using report::html_text;
    std::string text = "<table>\n<tr><th>kernel</th><th>nodes</th>";
    for (const auto* module : matrix.modules) { text += fmt::format("<th>{}</th>", html_text(module->full_name())); }
    text += "</tr>\n";
    for (const auto& kernel : matrix.kernels) {
        text += fmt::format("<tr><th>{}</th><td>{}</td>", html_text(base::escape(kernel.version)), kernel.nodes);
        for (const auto& cell : kernel.cells) {
            const std::string title =
                cell.resolved ? mapping_of(cell) + ", " + cell.resolved->config.container_image : cell.message;
            text += fmt::format("<td class=\"{}\" title=\"{}\">{}</td>", plan::to_string(cell.state), html_text(title),
                                cell_text(cell));
        }
        text += "</tr>\n";
    }
    text += "</table>\n<ul>\n";
    for_each_gap(matrix, [&](const std::string& kernel, const std::string& module, const std::string& why,
                             const MatrixCell& cell) {
        text += fmt::format("<li>{} {}: {} ({})</li>\n", html_text(kernel), html_text(module), html_text(why),
                            html_text(nodes_text(cell)));
    });
    return report::html_page(
        fmt::format("Kernels and modules: {}", gap_count(matrix)),
        "td.gap, td.fault { background: #c22; color: #fff; font-weight: bold }\ntd.covered { background: #dfd }\n",
        text + "</ul>\n");
}

Node cell_node(const std::string& kernel, const api::Module& module, const MatrixCell& cell) {
    Node node =
        Node::mapping({{"kernel", kernel}, {"namespace", module.meta.namespace_}, {"module", module.meta.name}});
    node.set("state", plan::to_string(cell.state));
    node.set("nodes", Node::strings(cell.nodes));
    if (cell.resolved) {
        Node mapping = Node::mapping({{"index", static_cast<std::uint64_t>(cell.resolved->mapping_index)}});
        mapping.set(cell.resolved->literal ? "literal" : "regexp", cell.resolved->matcher);
        node.set("mapping", std::move(mapping));
        node.set("image", cell.resolved->config.container_image);
    }
    if (!cell.message.empty()) { node.set("message", cell.message); }
    return node;
}

Node matrix_node(const Source& source, const Matrix& matrix) {
    Node node = Node::mapping({{"apiVersion", "kmmtools/v1"}, {"kind", "Matrix"}, {"source", source.description}});
    Node kernels = Node::sequence();
    Node cells = Node::sequence();
    for (const auto& kernel : matrix.kernels) {
        kernels.push_back(Node::mapping({{"kernel", kernel.version},
                                         {"nodes", static_cast<std::uint64_t>(kernel.nodes)},
                                         {"asked", kernel.asked}}));
        for (std::size_t m = 0; m < matrix.modules.size(); ++m) {
            cells.push_back(cell_node(kernel.version, *matrix.modules[m], kernel.cells[m]));
        }
    }
    node.set("kernels", std::move(kernels));
    node.set("cells", std::move(cells));
    node.set("summary",
             Node::mapping({{"gaps", static_cast<std::uint64_t>(matrix.gaps)},
                            {"nodesWithoutKernel", static_cast<std::uint64_t>(matrix.nodes_without_kernel)}}));
    return node;
}

std::string names_text(const Matrix& matrix) {
    std::string text;
    for (const auto& kernel : matrix.kernels) { text += base::escape(kernel.version) + "\n"; }
    return text;
}

Exit run_matrix(const cli::Args& args, cli::Context& context) {
    Source source = read_valid_source(args, context);
    check_namespace({&source, 1}, args);
    if (const auto ns = args.get("namespace")) {
        std::erase_if(source.objects.modules, [&](const api::Module& module) { return module.meta.namespace_ != *ns; });
    }
    for (const auto& kernel : args.all("kernel")) { plan::require_kernel_name(kernel); }
    const auto nodes = require_nodes(source, args, {});
    warn_of_shared_images(source, nodes, args.all("kernel"), context);
    const Matrix matrix = plan::make_matrix(nodes, source.objects.modules, args.all("kernel"));
    const std::string& output = context.output;
    if (cli::document_form(context)) {
        print_document(context, matrix_node(source, matrix));
    } else if (output == "md" || output == "html") {
        context.console.out(output == "md" ? matrix_markdown(matrix) : matrix_html(matrix));
    } else if (output == "name") {
        context.console.out(names_text(matrix));
    } else if (output == "wide") {
        context.console.out(wide_table(matrix));
    } else {
        const std::size_t width = context.console.out_is_terminal() ? context.console.width() : k_page_width;
        context.console.out(folded_table(matrix, width) + "\n" + gaps_text(matrix));
    }
    return Exit::ok;
}

}  // namespace

cli::Verb matrix_verb() {
    cli::Verb verb;
    verb.name = "matrix";
    verb.summary = "show which module covers which kernel, and the gaps";
    verb.description =
        "Rows are kernels, columns are modules. A cell shows the number of selected nodes that run the kernel; ok: "
        "covered, no such node; GAP: no kernel mapping matches; BAD: the mapping is faulty; -: neither covered nor "
        "needed. Taints are ignored.";
    verb.examples = {
        {"kmm-plan matrix --cluster ./fleet", "the kernels that nodes run"},
        {"kmm-plan matrix --cluster ./fleet --kernel 6.12.0-1-amd64", "and one that none runs yet"},
        {"kmm-plan matrix --cluster ./fleet -o html", "a page for a report"},
    };
    auto kernel = cli::repeatable(cli::option("kernel", "K", "add a row for this kernel"));
    std::vector<cli::Option> common = cli::common_options();
    for (auto& option : common) {
        if (option.name == "output") { option.choices.insert(option.choices.end(), {"md", "html"}); }
    }
    verb.options = std::vector<cli::Option>{kernel} + source_options() + common;
    verb.run = run_matrix;
    return verb;
}

}  // namespace kmm::tool_plan
