/* A disk whose every write is on record, for LD_PRELOAD: what is done to the files of the folder
 * $PARTITA_RECORDED_DISK is appended to $PARTITA_RECORD, one line each and then the bytes written:
 *
 *     what name place count
 *
 * "write"; "durable" for a write that waits for the disk itself, as LMDB's last one does; "size";
 * "sync"; and "failed" for a sync that fails as fail_soon() has asked. A write that fails does half
 * of its work, as on a disk that gets full. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#define SECTOR 512
#define NEXT(type, name, ...) ((type (*)(__VA_ARGS__))dlsym(RTLD_NEXT, name))

static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
static int good_ones = 0, bad_ones = 0;

/* After so many writes and syncs that work, let so many fail. */
void fail_soon(int good, int bad) {
    good_ones = good;
    bad_ones = bad;
}

/* The name of a file of the folder, or NULL. */
static const char *name_of(int file, char *path) {
    const char *folder = getenv("PARTITA_RECORDED_DISK");
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", file);
    ssize_t length = readlink(link, path, PATH_MAX - 1);
    if (folder == NULL || length < 0) return NULL;
    path[length] = '\0';
    size_t inside = strlen(folder);
    return strncmp(path, folder, inside) == 0 && path[inside] == '/' ? path + inside + 1 : NULL;
}

/* Put a word of the test itself on record. */
void tell(const char *what, int number) {
    pthread_mutex_lock(&turn);
    FILE *record = fopen(getenv("PARTITA_RECORD"), "a");
    fprintf(record, "%s - %d 0\n", what, number);
    fclose(record);
    pthread_mutex_unlock(&turn);
}

static int fails(int file) {
    char path[PATH_MAX];
    if (name_of(file, path) == NULL) return 0;
    pthread_mutex_lock(&turn);
    int is_bad = good_ones == 0 && bad_ones > 0;
    if (is_bad) bad_ones--;
    if (good_ones > 0) good_ones--;
    pthread_mutex_unlock(&turn);
    return is_bad;
}

static void note(const char *what, int file, off_t place, const struct iovec *parts, int count) {
    char path[PATH_MAX];
    const char *name = name_of(file, path);
    if (name == NULL) return;
    long long bytes = 0;
    for (int part = 0; part < count; part++) bytes += parts[part].iov_len;
    pthread_mutex_lock(&turn);
    FILE *record = fopen(getenv("PARTITA_RECORD"), "a");
    fprintf(record, "%s %s %lld %lld\n", what, name, (long long)place, bytes);
    for (int part = 0; part < count; part++)
        fwrite(parts[part].iov_base, 1, parts[part].iov_len, record);
    fclose(record);
    pthread_mutex_unlock(&turn);
}

static ssize_t write_parts(int file, const struct iovec *parts, int count, off_t place) {
    const char *what = fcntl(file, F_GETFL) & O_DSYNC ? "durable" : "write";
    struct iovec half = {parts[0].iov_base, parts[0].iov_len / 2 / SECTOR * SECTOR};
    int is_bad = fails(file);
    if (is_bad && half.iov_len == 0) {
        errno = ENOSPC;
        return -1;
    }
    if (is_bad) {
        parts = &half;
        count = 1;
    }
    note(what, file, place, parts, count);
    return pwritev(file, parts, count, place);
}

ssize_t pwrite(int file, const void *from, size_t count, off_t place) {
    struct iovec part = {(void *)from, count};
    return write_parts(file, &part, 1, place);
}

ssize_t pwrite64(int file, const void *from, size_t count, off_t place) {
    return pwrite(file, from, count, place);
}

/* LMDB sets the place first, and sets it again before the next one. */
ssize_t writev(int file, const struct iovec *parts, int count) {
    char path[PATH_MAX];
    if (name_of(file, path) == NULL)
        return NEXT(ssize_t, "writev", int, const struct iovec *, int)(file, parts, count);
    return write_parts(file, parts, count, lseek(file, 0, SEEK_CUR));
}

int ftruncate(int file, off_t size) {
    note("size", file, size, NULL, 0);
    return NEXT(int, "ftruncate", int, off_t)(file, size);
}

int ftruncate64(int file, off_t size) {
    note("size", file, size, NULL, 0);
    return NEXT(int, "ftruncate64", int, off_t)(file, size);
}

/* Nothing is synced in truth: the disk is the record. */
static int sync_file(int file) {
    if (fails(file)) {
        note("failed", file, 0, NULL, 0);
        errno = EIO;
        return -1;
    }
    note("sync", file, 0, NULL, 0);
    return 0;
}

int fdatasync(int file) { return sync_file(file); }

int fsync(int file) { return sync_file(file); }
