/* Preloaded into a rank: counts what it reads of parts (with flush.io = threads, where each read is a call of this). */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

static unsigned long long bytes;

__attribute__((visibility("default"))) unsigned long long part_bytes_read(void) { return __atomic_load_n(&bytes, __ATOMIC_SEQ_CST); }

static ssize_t counted(const char* name, int file, void* into, size_t length, off64_t at) {
    ssize_t (*next)(int, void*, size_t, off64_t) = NULL;
    *(void**)&next = dlsym(RTLD_NEXT, name);
    const ssize_t read = next(file, into, length, at);
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    const ssize_t end = readlink(link, path, sizeof path - 1);
    if (read > 0 && end > 0) {
        path[end] = 0;
        if (strstr(path, "/part-")) __atomic_fetch_add(&bytes, (unsigned long long)read, __ATOMIC_SEQ_CST);
    }
    return read;
}

__attribute__((visibility("default"))) ssize_t pread(int file, void* into, size_t length, off_t at) { return counted("pread", file, into, length, at); }
__attribute__((visibility("default"))) ssize_t pread64(int file, void* into, size_t length, off64_t at) { return counted("pread64", file, into, length, at); }
