/* Preloaded into a daemon: removing a slot takes a second, as where it is large or its disk is slow. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <string.h>
#include <time.h>

__attribute__((visibility("default"))) int unlink(const char* path) {
    int (*next)(const char*) = NULL;
    *(void**)&next = dlsym(RTLD_NEXT, "unlink");
    const struct timespec second = {1, 0};
    if (strstr(path, "/images/slot-")) nanosleep(&second, NULL);
    return next(path);
}
