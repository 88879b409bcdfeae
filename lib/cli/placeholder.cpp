// SPDX-License-Identifier: Apache-2.0
#include "cli/app.hpp"

namespace kmm::cli {
void StdConsole::out(std::string_view) {}
void StdConsole::err(std::string_view) {}
bool StdConsole::out_is_terminal() const { return false; }
bool StdConsole::err_is_terminal() const { return false; }
std::size_t StdConsole::width() const { return 80; }
int run_main(const Program&, int, const char* const*, Console&) { return 70; }
}  // namespace kmm::cli
