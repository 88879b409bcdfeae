/* SPDX-License-Identifier: Apache-2.0 */
/* Preloaded into kmm-worker and kmm-upgrade by tests that are about order, not about time: where they only sleep, which
   is a poll of one descriptor for reading with a limit, they sleep a thirtieth of it, and their monotonic clock goes on
   by the rest. All else takes as long as it takes. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <poll.h>
#include <time.h>

static const int quicker = 30;
static long long skipped; /* nanoseconds; guarded by atomic operations */

int poll(struct pollfd* fds, nfds_t count, int timeout) {
    static int (*real)(struct pollfd*, nfds_t, int);
    if (real == NULL) real = (int (*)(struct pollfd*, nfds_t, int))dlsym(RTLD_NEXT, "poll");
    if (count != 1 || fds->events != POLLIN || timeout < quicker) return real(fds, count, timeout);
    const int ready = real(fds, count, timeout / quicker);
    if (ready == 0) __atomic_add_fetch(&skipped, (timeout - timeout / quicker) * 1000000LL, __ATOMIC_SEQ_CST);
    return ready;
}

int clock_gettime(clockid_t which, struct timespec* now) {
    static int (*real)(clockid_t, struct timespec*);
    if (real == NULL) real = (int (*)(clockid_t, struct timespec*))dlsym(RTLD_NEXT, "clock_gettime");
    const int result = real(which, now);
    if (result == 0 && (which == CLOCK_MONOTONIC || which == CLOCK_BOOTTIME)) {
        const long long all = now->tv_nsec + __atomic_load_n(&skipped, __ATOMIC_SEQ_CST);
        now->tv_sec += all / 1000000000LL;
        now->tv_nsec = all % 1000000000LL;
    }
    return result;
}
