/* Preloaded into a daemon: its writes to parts are slow, or fail, while files of these names are there (with flush.io = threads, where each write is a call of this):
   $TEST_WRITES/slow, a tenth of a second each; $TEST_WRITES/fail, all; $TEST_WRITES/fail-once, one, which takes that file away. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <time.h>
#include <unistd.h>

static int is_part(int file) {
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    const ssize_t end = readlink(link, path, sizeof path - 1);
    if (end <= 0) return 0;
    path[end] = 0;
    return strstr(path, "/part-") || strstr(path, "/rank-") || strstr(path, "/node-");
}

static ssize_t written(const char* name, int file, const void* from, size_t length, off64_t at) {
    ssize_t (*next)(int, const void*, size_t, off64_t) = NULL;
    *(void**)&next = dlsym(RTLD_NEXT, name);
    const char* where = getenv("TEST_WRITES");
    if (where && is_part(file)) {
        char slow[4096], fail[4096], once[4096];
        snprintf(slow, sizeof slow, "%s/slow", where);
        snprintf(fail, sizeof fail, "%s/fail", where);
        snprintf(once, sizeof once, "%s/fail-once", where);
        const struct timespec tenth = {0, 100000000};
        if (access(slow, F_OK) == 0) nanosleep(&tenth, NULL);
        if (unlink(once) == 0 || access(fail, F_OK) == 0) {
            errno = EIO;
            return -1;
        }
    }
    return next(file, from, length, at);
}

__attribute__((visibility("default"))) ssize_t pwrite(int file, const void* from, size_t length, off_t at) { return written("pwrite", file, from, length, at); }
__attribute__((visibility("default"))) ssize_t pwrite64(int file, const void* from, size_t length, off64_t at) { return written("pwrite64", file, from, length, at); }
