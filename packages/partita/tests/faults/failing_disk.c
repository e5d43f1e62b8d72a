/* A disk that fails on demand, for LD_PRELOAD: while the folder $PARTITA_FAILING_DISK has a file
 * "sync", "meta" or "read", that is what fails with an input/output error: for data.mdb, and
 * syncs for the write-ahead logs too.
 *
 * "meta" is the small write with which LMDB makes a commit count: of less than a page, to one of
 * the first two pages. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#define PAGE 4096

static int fails(const char *what, int file) {
    const char *folder = getenv("PARTITA_FAILING_DISK");
    char path[PATH_MAX], name[PATH_MAX];
    if (folder == NULL) return 0;
    snprintf(path, sizeof path, "%s/%s", folder, what);
    if (access(path, F_OK) != 0) return 0;
    snprintf(path, sizeof path, "/proc/self/fd/%d", file);
    ssize_t length = readlink(path, name, sizeof name - 1);
    if (length < 0) return 0;
    name[length] = '\0';
    int is_log = strstr(name, "/journal.") != NULL && strcmp(what, "sync") == 0;
    if (strstr(name, "/data.mdb") == NULL && !is_log) return 0;
    errno = EIO;
    return 1;
}

#define NEXT(type, name, ...) ((type (*)(__VA_ARGS__))dlsym(RTLD_NEXT, name))

int fdatasync(int file) {
    return fails("sync", file) ? -1 : NEXT(int, "fdatasync", int)(file);
}

int fsync(int file) {
    return fails("sync", file) ? -1 : NEXT(int, "fsync", int)(file);
}

static ssize_t write_at(const char *name, int file, const void *from, size_t count, off_t place) {
    if (count < PAGE && place < 2 * PAGE && fails("meta", file)) return -1;
    return NEXT(ssize_t, name, int, const void *, size_t, off_t)(file, from, count, place);
}

ssize_t pwrite(int file, const void *from, size_t count, off_t place) {
    return write_at("pwrite", file, from, count, place);
}

ssize_t pwrite64(int file, const void *from, size_t count, off_t place) {
    return write_at("pwrite64", file, from, count, place);
}

static ssize_t read_at(const char *name, int file, void *into, size_t count, off_t place) {
    if (fails("read", file)) return -1;
    return NEXT(ssize_t, name, int, void *, size_t, off_t)(file, into, count, place);
}

ssize_t pread(int file, void *into, size_t count, off_t place) {
    return read_at("pread", file, into, count, place);
}

ssize_t pread64(int file, void *into, size_t count, off_t place) {
    return read_at("pread64", file, into, count, place);
}
