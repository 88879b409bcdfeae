// SPDX-License-Identifier: Apache-2.0
#include "kmm-upgrade/program.hpp"
#include "sys/signals.hpp"

int main(int argc, char** argv) {
    kmm::sys::install_signal_handlers();
    kmm::cli::StdConsole console;
    return kmm::cli::run_main(kmm::tool_upgrade::program(kmm::tool_upgrade::all_crafts()), argc, argv, console);
}
