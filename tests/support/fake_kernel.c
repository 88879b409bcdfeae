/* SPDX-License-Identifier: Apache-2.0 */
/* Preloaded into kmm-worker by worker_case.py: answers finit_module and delete_module from a script and keeps the
   made-up sysfs of $KMM_HOST_ROOT as a kernel would. Every other system call goes through. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static void write_file(const char* path, const char* text, const char* mode) {
    FILE* file = fopen(path, mode);
    if (file == NULL) return;
    fputs(text, file);
    fclose(file);
}

static void host_path(char* path, size_t size, const char* below, const char* name, const char* file) {
    snprintf(path, size, "%s/%s%s%s", getenv("KMM_HOST_ROOT"), below, name, file);
}

/* Value of KEY= in the .modinfo text of the module, "" if absent. */
static void modinfo(const char* bytes, size_t size, const char* key, char* value, size_t value_size) {
    value[0] = '\0';
    const size_t length = strlen(key);
    for (size_t at = 1; at + length < size; ++at) {
        if (bytes[at - 1] == '\0' && memcmp(bytes + at, key, length) == 0) {
            snprintf(value, value_size, "%s", bytes + at + length);
            return;
        }
    }
}

/* Finds the script's line for CALL NAME, writes its log lines and taint; returns its errno, 0 without a line. */
static int scripted(const char* call, const char* name, char* srcversion) {
    FILE* script = fopen(getenv("FAKE_KERNEL_SCRIPT"), "r");
    char line[1024], path[4096];
    int error = 0, mine = 0;
    if (script == NULL) return 0;
    while (fgets(line, sizeof line, script) != NULL) {
        char of[32], whom[64], tainted[32], src[64];
        int number = 0, seconds = 0;
        if (strncmp(line, "log ", 4) == 0) {
            if (!mine) continue;
            host_path(path, sizeof path, "dev/kmsg", "", "");
            char record[1100];
            snprintf(record, sizeof record, "4,2,2,-;%s", line + 4);
            write_file(path, record, "a");
        } else if (sscanf(line, "%31s %63s %d %31s %d %63s", of, whom, &number, tainted, &seconds, src) == 6) {
            mine = strcmp(of, call) == 0 && strcmp(whom, name) == 0;
            if (!mine) continue;
            error = number;
            if (seconds > 0) sleep((unsigned)seconds);
            if (strcmp(tainted, "-") != 0) {
                host_path(path, sizeof path, "proc/sys/kernel/tainted", "", "");
                write_file(path, tainted, "w");
            }
            if (strcmp(src, "-") != 0 && srcversion != NULL) strcpy(srcversion, src);
        }
    }
    fclose(script);
    return error;
}

static long load(int fd) {
    static char bytes[1 << 16];
    char name[64], srcversion[64], version[64], path[4096], text[128];
    const ssize_t size = pread(fd, bytes, sizeof bytes - 1, 0);
    modinfo(bytes, (size_t)size, "name=", name, sizeof name);
    modinfo(bytes, (size_t)size, "srcversion=", srcversion, sizeof srcversion);
    modinfo(bytes, (size_t)size, "version=", version, sizeof version);
    const int error = scripted("load", name, srcversion);
    if (error != 0) {
        errno = error;
        return -1;
    }
    host_path(path, sizeof path, "sys/module/", name, "");
    mkdir(path, 0755);
    const char* const files[][2] = {{"/srcversion", srcversion}, {"/version", version}, {"/taint", "OE"},
                                    {"/refcnt", "0"}, {"/initstate", "live"}};
    for (size_t i = 0; i < sizeof files / sizeof files[0]; ++i) {
        if (files[i][1][0] == '\0') continue;
        host_path(path, sizeof path, "sys/module/", name, files[i][0]);
        snprintf(text, sizeof text, "%s\n", files[i][1]);
        write_file(path, text, "w");
    }
    return 0;
}

static long unload(const char* name) {
    char path[4096], away[4096];
    const int error = scripted("unload", name, NULL);
    if (error != 0) {
        errno = error;
        return -1;
    }
    host_path(path, sizeof path, "sys/module/", name, "");
    char again[32];  /* a second unload of the same name */
    snprintf(again, sizeof again, "-%d", (int)getpid());
    host_path(away, sizeof away, "sys/unloaded-", name, "");
    if (access(away, F_OK) == 0) host_path(away, sizeof away, "sys/unloaded-", name, again);
    if (rename(path, away) == 0) {
        host_path(path, sizeof path, "proc/modules", "", "");
        write_file(path, "", "w");
        return 0;
    }
    errno = ENOENT;
    return -1;
}

long syscall(long number, ...) {
    long a[6];
    va_list list;
    va_start(list, number);
    for (int i = 0; i < 6; ++i) a[i] = va_arg(list, long);
    va_end(list);
    if (number == SYS_finit_module) return load((int)a[0]);
    if (number == SYS_delete_module) return unload((const char*)a[0]);
    long (*real)(long, ...) = (long (*)(long, ...))dlsym(RTLD_NEXT, "syscall");
    return real(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}
