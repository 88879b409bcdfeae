// SPDX-License-Identifier: Apache-2.0
#include "kmm-plan/program.hpp"
#include "sys/signals.hpp"

int main(int argc, char** argv) {
    kmm::sys::open_standard_descriptors();
    kmm::cli::StdConsole console;
    return kmm::cli::run_main(kmm::tool_plan::program(), argc, argv, console);
}
