// SPDX-License-Identifier: Apache-2.0
// gendocs write DIR | compare DIR | check
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <set>
#include <vector>

#include "cli/explain.hpp"
#include "cli/parse.hpp"
#include "gendocs/generators.hpp"
#include "kmm-plan/program.hpp"
#include "kmm-upgrade/codes.hpp"
#include "kmm-upgrade/program.hpp"
#include "kmm-worker/codes.hpp"
#include "kmm-worker/program.hpp"
#include "plan/codes/codes.hpp"

namespace {

using kmm::cli::Program;

std::vector<Program> programs() {
    return {kmm::tool_plan::program(), kmm::tool_upgrade::program(kmm::tool_upgrade::all_crafts()),
            kmm::tool_worker::program()};
}

/// lib/cli/option_names.cpp: what a configuration file shared by the commands may have.
std::string option_names() {
    std::set<std::string> names;
    for (const auto& program : programs()) {
        for (const auto& verb : program.verbs) {
            for (const auto& option : kmm::cli::accepted_options(verb)) {
                if (option.name != "help" && option.name != "version") names.insert(option.name);
            }
        }
    }
    std::string text =
        "// SPDX-License-Identifier: Apache-2.0\n// Written by tests/gendocs from the command trees.\n#include "
        "<array>\n\n";
    text += "#include \"cli/parse.hpp\"\n\nnamespace kmm::cli {\n\n";
    text += "std::span<const std::string_view> all_option_names() noexcept {\n";
    text += "    static constexpr auto k_names = std::to_array<std::string_view>({\n";
    for (const auto& name : names) text += "        \"" + name + "\",\n";
    return text + "    });\n    return k_names;\n}\n\n}  // namespace kmm::cli\n";
}

/// An array of the names, as many on a line as there is room for.
std::string name_array(const std::string& name, const std::set<std::string>& names) {
    constexpr std::size_t k_width = 120;
    std::string text = "constexpr auto " + name + " = std::to_array<std::string_view>({", line;
    for (const auto& each : names) {
        const auto word = "\"" + each + "\",";
        if (line.empty() || line.size() + 1 + word.size() > k_width) {
            text += line + "\n";
            line = "   ";
        }
        line += " " + word;
    }
    return text + line + "\n});\n";
}

/// lib/cli/code_names.cpp: which command explains a code that another one is asked about.
std::string code_names() {
    std::set<std::string> plan, upgrade, worker;
    for (const auto& code : kmm::plan::codes()) plan.insert(code.code);
    for (const auto& code : kmm::tool_upgrade::codes()) upgrade.insert(code.code);
    for (const auto& code : kmm::tool_worker::codes()) worker.emplace(code.code);
    return "// SPDX-License-Identifier: Apache-2.0\n// Written by tests/gendocs from the tables of codes.\n#include "
           "<array>\n\n#include \"cli/explain.hpp\"\n\nnamespace kmm::cli {\nnamespace {\n\n" +
           name_array("k_codes_of_plan", plan) + "\n" + name_array("k_codes_of_upgrade", upgrade) + "\n" +
           name_array("k_codes_of_worker", worker) +
           "\n}  // namespace\n\nstd::span<const std::string_view> codes_of(std::string_view command) noexcept {\n"
           "    if (command == \"kmm-plan\") return k_codes_of_plan;\n"
           "    if (command == \"kmm-upgrade\") return k_codes_of_upgrade;\n"
           "    if (command == \"kmm-worker\") return k_codes_of_worker;\n    return {};\n}\n\n"
           "}  // namespace kmm::cli\n";
}

/// What `explain CODE` prints, for every code.
std::string explanations(const std::vector<kmm::Code>& codes) {
    std::string text;
    for (const auto& code : codes) text += kmm::cli::explanation_text(code) + "\n";
    return text;
}

/// Path below the source directory -> text.
std::map<std::string, std::string> documents() {
    std::map<std::string, std::string> texts;
    for (const auto& program : programs()) {
        texts["man/" + program.name + "." + std::to_string(program.man_section)] = kmm::gendocs::man_page(program);
        texts["completions/bash/" + program.name] = kmm::gendocs::bash_completion(program);
        texts["completions/zsh/_" + program.name] = kmm::gendocs::zsh_completion(program);
        texts["completions/fish/" + program.name + ".fish"] = kmm::gendocs::fish_completion(program);
        texts["tests/golden/help/" + program.name + ".txt"] = kmm::gendocs::help_texts(program);
    }
    texts["tests/golden/help/codes/kmm-plan.txt"] = explanations(kmm::plan::codes());
    texts["tests/golden/help/codes/kmm-upgrade.txt"] = explanations(kmm::tool_upgrade::codes());
    texts["lib/cli/option_names.cpp"] = option_names();
    texts["lib/cli/code_names.cpp"] = code_names();
    return texts;
}

int write(const std::filesystem::path& top) {
    for (const auto& [name, text] : documents()) {
        std::filesystem::create_directories((top / name).parent_path());
        std::ofstream file(top / name, std::ios::binary);
        file << text;
        file.close();
        if (!file) {
            std::cerr << "cannot write " << name << "\n";
            return 1;
        }
    }
    return 0;
}

int compare(const std::filesystem::path& top) {
    int stale = 0;
    for (const auto& [name, text] : documents()) {
        std::ifstream file(top / name, std::ios::binary);
        const std::string present((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
        if (present == text) continue;
        ++stale;
        std::cout << name << " is not what the command tree says\n";
    }
    if (stale > 0) std::cout << "write them anew: cmake --build BUILD --target docs\n";
    return stale > 0 ? 1 : 0;
}

int check() {
    std::size_t faults = 0;
    for (const auto& program : programs()) {
        for (const auto& fault : kmm::gendocs::check_tree(program)) {
            ++faults;
            std::cout << program.name << ": " << fault << "\n";
        }
    }
    std::cout << faults << " faults\n";
    return faults > 0 ? 1 : 0;
}

}  // namespace

int main(int argc, char** argv) {
    const std::string mode = argc > 1 ? argv[1] : "";
    if (mode == "write" && argc == 3) return write(argv[2]);
    if (mode == "compare" && argc == 3) return compare(argv[2]);
    if (mode == "check" && argc == 2) return check();
    std::cerr << "usage: gendocs write DIR | compare DIR | check\n";
    return 64;
}
