// SPDX-License-Identifier: Apache-2.0
#include "sys/two_threads.hpp"

#include <malloc.h>
#include <sched.h>

#include <algorithm>
#include <exception>
#include <system_error>
#include <thread>

namespace kmm::sys {

std::size_t usable_processors() noexcept {
    cpu_set_t set;
    CPU_ZERO(&set);
    // On a machine whose set is larger than this one the call fails.
    if (::sched_getaffinity(0, sizeof set, &set) != 0) { return std::max(1U, std::thread::hardware_concurrency()); }
    return static_cast<std::size_t>(std::max(1, CPU_COUNT(&set)));
}

void run_in_two_threads(const std::function<void()>& work) {
    std::exception_ptr here, there;
    const auto call = [&](std::exception_ptr& failure) {
        try {
            work();
        } catch (...) {
            failure = std::current_exception();
        }
    };
    std::thread other;
    try {
        other = std::thread([&] { call(there); });
    } catch (const std::system_error&) {
        // Too many threads already: this one does it all.
    }
    call(here);
    if (other.joinable()) { other.join(); }
    for (const auto& failure : {here, there}) {
        if (failure) { std::rethrow_exception(failure); }
    }
}

void return_freed_memory() noexcept { (void)::malloc_trim(0); }

}  // namespace kmm::sys
