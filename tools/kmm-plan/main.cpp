// SPDX-License-Identifier: Apache-2.0
#include "kmm-plan/program.hpp"

int main(int argc, char** argv) {
    kmm::cli::StdConsole console;
    return kmm::cli::run_main(kmm::tool_plan::program(), argc, argv, console);
}
