/*
 * Edits a small file again and again with the file system calls that Pintle makes for an edit, in their order, and
 * nothing else: no protocol, no threads, and no hash. The yardstick for what all of that costs.
 *
 * Usage: edit FOLDER NAME fsync|no-fsync. For each number on standard input that many edits are made, and how many
 * seconds they took is printed. The line in the middle of the file is replaced by one of the same length.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#define TEMPORARY ".bench-tmp"

static char content[4096];

static void check(int is_right, const char *what)
{
    if (!is_right) {
        perror(what);
        exit(1);
    }
}

static int open_beneath(int root, const char *path, int flags)
{
    unsigned long long resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS | RESOLVE_NO_SYMLINKS;
    struct open_how how = {.flags = (unsigned)flags, .resolve = resolve};
    int opened = (int)syscall(SYS_openat2, root, path, &how, sizeof how);
    check(opened >= 0, "openat2");
    return opened;
}

static void look_at(int file)
{
    struct statx told;
    check(statx(file, "", AT_EMPTY_PATH, STATX_BASIC_STATS | STATX_BTIME, &told) == 0, "statx");
}

static size_t read_part(int file, off_t place, size_t length)
{
    ssize_t count = pread(file, content + place, length, place);
    check(count >= 0, "pread");
    return (size_t)count;
}

static void write_part(int file, const char *bytes, size_t length)
{
    check(write(file, bytes, length) == (ssize_t)length, "write");
}

/* Replaces the bytes from start to end, which are those of one line. */
static void edit(int root, const char *name, size_t size, size_t start, size_t end, int number, int is_synced)
{
    struct stat told;
    int flags = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;

    /* The folder, locked and swept. */
    int folder = open_beneath(root, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    check(flock(folder, LOCK_EX | LOCK_NB) == 0, "flock");
    unlinkat(folder, TEMPORARY, 0);

    /* The file, and all that it holds. */
    int file = openat(folder, name, flags | O_NOFOLLOW);
    check(file >= 0, "openat");
    check(fstat(file, &told) == 0, "fstat");
    check(syscall(SYS_faccessat2, folder, name, W_OK, AT_EACCESS) == 0, "faccessat2");
    look_at(file);
    check(read_part(file, 0, size) == size, "the whole file");
    check(read_part(file, (off_t)size, 1024) == 0, "the end of the file");

    /* The new one, put together from the old. */
    int temporary = openat(folder, TEMPORARY, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    check(temporary >= 0, "openat");
    look_at(temporary);
    char names[256];
    flistxattr(temporary, names, sizeof names);
    check(fchmod(temporary, told.st_mode & 07777) == 0, "fchmod");
    flistxattr(file, names, sizeof names);
    check(read_part(file, 0, start) == start, "the first part");
    write_part(temporary, content, start);
    char line[16];
    snprintf(line, sizeof line, "%08d", number);
    memcpy(content + start, line, 8);
    write_part(temporary, content + start, end - start);
    check(read_part(file, (off_t)end, size - end) == size - end, "the last part");
    write_part(temporary, content + end, size - end);

    /* In its place, and on the disk. */
    check(!is_synced || fsync(temporary) == 0, "fsync");
    check(fstatat(folder, name, &told, AT_SYMLINK_NOFOLLOW) == 0, "fstatat");
    check(syscall(SYS_renameat2, folder, TEMPORARY, folder, name, RENAME_EXCHANGE) == 0, "renameat2");
    check(fstatat(folder, TEMPORARY, &told, AT_SYMLINK_NOFOLLOW) == 0, "fstatat");
    check(unlinkat(folder, TEMPORARY, 0) == 0, "unlinkat");
    check(!is_synced || fsync(folder) == 0, "fsync");
    close(temporary);
    close(file);
    close(folder);
}

int main(int count, char **arguments)
{
    if (count != 4) {
        fprintf(stderr, "usage: edit FOLDER NAME fsync|no-fsync\n");
        return 2;
    }
    const char *name = arguments[2];
    int is_synced = strcmp(arguments[3], "fsync") == 0;
    int root = open(arguments[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    check(root >= 0, "the folder");
    int file = openat(root, name, O_RDONLY | O_CLOEXEC);
    check(file >= 0, "the file");
    size_t size = read_part(file, 0, sizeof content);
    close(file);
    const char *middle = memchr(content + size / 2, '\n', size / 2);
    check(middle != NULL && middle[1] != 0, "a line in the middle");
    const char *end = memchr(middle + 1, '\n', (size_t)(content + size - middle - 1));
    check(end != NULL && end - middle > 9, "a line of some length");

    int edits;
    while (scanf("%d", &edits) == 1) {
        struct timespec from, to;
        clock_gettime(CLOCK_MONOTONIC, &from);
        for (int number = 0; number < edits; number++)
            edit(root, name, size, (size_t)(middle + 1 - content), (size_t)(end - content), number, is_synced);
        clock_gettime(CLOCK_MONOTONIC, &to);
        printf("%.9f\n", (double)(to.tv_sec - from.tv_sec) + (double)(to.tv_nsec - from.tv_nsec) / 1e9);
        fflush(stdout);
    }
    return 0;
}
