// SPDX-License-Identifier: Apache-2.0
#include "kmm-upgrade/program.hpp"

int main(int argc, char** argv) {
    kmm::cli::StdConsole console;
    return kmm::cli::run_main(kmm::tool_upgrade::program(), argc, argv, console);
}
