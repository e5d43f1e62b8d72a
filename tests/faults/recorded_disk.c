/* A disk whose every write is on record, for LD_PRELOAD: what is done to the files of the folder
 * $PARTITA_RECORDED_DISK is appended to $PARTITA_RECORD, one line each and then the bytes written:
 *
 *     what name place count
 *
 * "write"; "durable" for a write that waits for the disk itself, as LMDB's last one does; "size";
 * "sync"; and "failed" for a sync that did as fail_syncs() had asked. */
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

#define NEXT(type, name, ...) ((type (*)(__VA_ARGS__))dlsym(RTLD_NEXT, name))

static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
static int syncs_to_fail = 0;

void fail_syncs(int count) { syncs_to_fail = count; }

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

static void note_write(int file, off_t place, const struct iovec *parts, int count) {
    note(fcntl(file, F_GETFL) & O_DSYNC ? "durable" : "write", file, place, parts, count);
}

static ssize_t write_at(const char *name, int file, const void *from, size_t count, off_t place) {
    struct iovec part = {(void *)from, count};
    note_write(file, place, &part, 1);
    return NEXT(ssize_t, name, int, const void *, size_t, off_t)(file, from, count, place);
}

ssize_t pwrite(int file, const void *from, size_t count, off_t place) {
    return write_at("pwrite", file, from, count, place);
}

ssize_t pwrite64(int file, const void *from, size_t count, off_t place) {
    return write_at("pwrite64", file, from, count, place);
}

ssize_t write(int file, const void *from, size_t count) {
    struct iovec part = {(void *)from, count};
    note_write(file, lseek(file, 0, SEEK_CUR), &part, 1);
    return NEXT(ssize_t, "write", int, const void *, size_t)(file, from, count);
}

ssize_t writev(int file, const struct iovec *parts, int count) {
    note_write(file, lseek(file, 0, SEEK_CUR), parts, count);
    return NEXT(ssize_t, "writev", int, const struct iovec *, int)(file, parts, count);
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
    char path[PATH_MAX];
    if (syncs_to_fail > 0 && name_of(file, path) != NULL) {
        syncs_to_fail--;
        note("failed", file, 0, NULL, 0);
        errno = EIO;
        return -1;
    }
    note("sync", file, 0, NULL, 0);
    return 0;
}

int fdatasync(int file) { return sync_file(file); }

int fsync(int file) { return sync_file(file); }
