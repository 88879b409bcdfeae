// SPDX-License-Identifier: Apache-2.0
#include "sys/two_threads.hpp"

#include <malloc.h>
#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <exception>
#include <thread>

namespace kmm::sys {

namespace {

struct Call {
    const std::function<void()>& work;
    bool is_new_thread;
    std::exception_ptr failure;
};

/// Makes room in the heap of a new thread. That heap grows by few pages at a time otherwise, with a call each that
/// holds up every other thread which touches new memory; what was in it once is there without a call. Nothing of it is
/// touched.
void widen_heap() noexcept {
    constexpr std::size_t k_block = std::size_t{96} << 10U;  // larger ones may not come from the heap
    std::array<void*, 320> blocks;
    for (auto& block : blocks) { block = std::malloc(k_block); }
    for (auto* block : blocks) { std::free(block); }
}

void* make_call(void* of) {
    auto& call = *static_cast<Call*>(of);
    if (call.is_new_thread) { widen_heap(); }
    try {
        call.work();
    } catch (...) {
        call.failure = std::current_exception();
    }
    return nullptr;
}

/// False if no thread can be started.
bool start(pthread_t& thread, Call& call) {
    constexpr std::size_t k_stack_min = std::size_t{8} << 20U;  // where `ulimit -s` is unlimited, threads have less
    pthread_attr_t attributes;
    if (::pthread_attr_init(&attributes) != 0) { return false; }
    std::size_t size = 0;
    if (::pthread_attr_getstacksize(&attributes, &size) == 0 && size < k_stack_min) {
        static_cast<void>(::pthread_attr_setstacksize(&attributes, k_stack_min));
    }
    const bool is_started = ::pthread_create(&thread, &attributes, make_call, &call) == 0;
    ::pthread_attr_destroy(&attributes);
    return is_started;
}

}  // namespace

std::size_t usable_processors() noexcept {
    cpu_set_t set;
    CPU_ZERO(&set);
    // On a machine whose set is larger than this one the call fails.
    if (::sched_getaffinity(0, sizeof set, &set) != 0) { return std::max(1U, std::thread::hardware_concurrency()); }
    return static_cast<std::size_t>(std::max(1, CPU_COUNT(&set)));
}

void run_in_two_threads(const std::function<void()>& work) {
    Call here{work, false, nullptr}, there{work, true, nullptr};
    pthread_t other{};
    const bool is_started = start(other, there);
    make_call(&here);
    if (is_started) { ::pthread_join(other, nullptr); }
    for (const auto& failure : {here.failure, there.failure}) {
        if (failure) { std::rethrow_exception(failure); }
    }
}

base::RunTogether run_together() {
    return usable_processors() > 1 ? base::RunTogether(run_in_two_threads) : nullptr;
}

void return_freed_memory() noexcept { (void)::malloc_trim(0); }

}  // namespace kmm::sys
