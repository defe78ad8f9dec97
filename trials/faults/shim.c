/* Counts the calls of a process on paths below a folder, and has one of them fail: by LD_PRELOAD.

   A process is as without it until it calls faults_arm(), which trials/faults/shim.py does after a fork. From then on the calls
   below are numbered from 1. The one with the number in the plan fails with the plan's error, takes or gives half of the
   bytes it is asked for, or ends the process. An error can also stay, as a full disk does: then all calls after it fail
   that need what is gone. */

#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <sys/uio.h>
#include <unistd.h>

enum mode { COUNT, FAIL, FAIL_ON, SHORT, KILL_BEFORE, KILL_AFTER };

/* What a call does: which errors that stay meet it. */
enum need { READS = 1, OPENS = 2, TAKES_SPACE = 4, CHANGES = 8 };

/* In memory that the process shares with the one that armed it. */
struct plan {
    char wanted[32]; /* the call's name */
    long at;        /* its number; the next of that name is met where threads have made others before it */
    int mode;
    int error;      /* an errno */
    int trace;      /* a descriptor that gets a line for each call, or -1 */
    long calls;     /* how many there were */
    long hit;       /* the number of the first that was met, or 0 */
    char path[PATH_MAX]; /* its path */
    char folder[PATH_MAX];
    char apart[PATH_MAX]; /* a folder in that one whose calls don't count, or empty */
};

enum verdict { PASS, REFUSE, HALVE, KILL_THEN };

static struct plan *plan;

static void end(void) { syscall(SYS_kill, getpid(), SIGKILL); }

void faults_arm(struct plan *wanted) { __atomic_store_n(&plan, wanted, __ATOMIC_SEQ_CST); }

size_t faults_plan_size(void) { return sizeof(struct plan); }

/* Write the path of an open file to `out`; 0 where there is none. */
static int path_of_descriptor(int descriptor, char *out) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
    ssize_t size = syscall(SYS_readlinkat, AT_FDCWD, link, out, PATH_MAX - 1);
    if (size <= 0) return 0;
    out[size] = 0;
    return 1;
}

/* Write the path that a name means, in the folder of a descriptor, to `out`; 0 where that can't be told. */
static int path_of_name(int folder, const char *name, char *out) {
    static const char own[] = "/proc/self/fd/";
    int size = 0, descriptor;
    if (!name) return 0;
    if (sscanf(name, "/proc/self/fd/%d%n", &descriptor, &size) == 1 && size > (int)sizeof own - 1) {
        if (!path_of_descriptor(descriptor, out)) return 0;
        strncat(out, name + size, PATH_MAX - strlen(out) - 1);
        return 1;
    }
    if (name[0] == '/') {
        snprintf(out, PATH_MAX, "%s", name);
        return 1;
    }
    if (folder == AT_FDCWD ? syscall(SYS_getcwd, out, PATH_MAX) <= 0 : !path_of_descriptor(folder, out)) return 0;
    strncat(out, "/", PATH_MAX - strlen(out) - 1);
    strncat(out, name, PATH_MAX - strlen(out) - 1);
    return 1;
}

/* Return whether an error that stays meets a call with these needs. */
static int is_met(int error, int needs) {
    switch (error) {
    case ENOSPC: case EDQUOT: return needs & TAKES_SPACE;
    case EROFS: return needs & CHANGES;
    case EMFILE: case ENFILE: return needs & OPENS;
    default: return 1;
    }
}

static int is_below(const char *path, const char *folder) {
    size_t size = strlen(folder);
    return size && !strncmp(path, folder, size) && (!path[size] || path[size] == '/');
}

/* Count a call on a path, and return what is to become of it. */
static enum verdict judge(const char *call, int needs, const char *path) {
    if (!is_below(path, plan->folder) || is_below(path, plan->apart)) return PASS;
    long number = __atomic_add_fetch(&plan->calls, 1, __ATOMIC_SEQ_CST);
    if (plan->trace >= 0) {
        char line[PATH_MAX + 64];
        int length = snprintf(line, sizeof line, "%ld\t%s\t%d\t%s\n", number, call, needs, path);
        syscall(SYS_write, plan->trace, line, length);
    }
    if (plan->mode == COUNT || number < plan->at) return PASS;
    long none = 0;
    if (plan->hit) {
        if (plan->mode != FAIL_ON || !is_met(plan->error, needs)) return PASS;
    } else if (strcmp(call, plan->wanted)) {
        return PASS;
    } else if (__atomic_compare_exchange_n(&plan->hit, &none, number, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) {
        snprintf(plan->path, sizeof plan->path, "%s", path);
    } else {
        return PASS;
    }
    if (plan->mode == KILL_BEFORE) end();
    if (plan->mode == KILL_AFTER) return KILL_THEN;
    if (plan->mode == SHORT) return HALVE;
    errno = plan->error;
    return REFUSE;
}

static enum verdict judge_name(const char *call, int needs, int folder, const char *name) {
    char path[PATH_MAX];
    int before = errno;
    if (!plan || !path_of_name(folder, name, path)) return errno = before, PASS;
    errno = before;
    return judge(call, needs, path);
}

static enum verdict judge_descriptor(const char *call, int needs, int descriptor) {
    char path[PATH_MAX];
    int before = errno;
    if (!plan || !path_of_descriptor(descriptor, path)) return errno = before, PASS;
    errno = before;
    return judge(call, needs, path);
}

/* The function of the C library that this one stands before. */
#define REAL(name) \
    static __typeof__(name) *real; \
    if (!real) real = (__typeof__(name) *)dlsym(RTLD_NEXT, #name)

#define RESULT(verdict, type, value) \
    do { \
        type result = (value); \
        if ((verdict) == KILL_THEN) end(); \
        return result; \
    } while (0)

/* A call on a name: fails, passes, or passes and ends the process. */
#define ON_NAME(type, name, parameters, arguments, failed, needs, folder, path) \
    type name parameters { \
        REAL(name); \
        enum verdict verdict = judge_name(#name, needs, folder, path); \
        if (verdict == REFUSE) return failed; \
        RESULT(verdict, type, real arguments); \
    }

#define ON_DESCRIPTOR(type, name, parameters, arguments, failed, needs, descriptor) \
    type name parameters { \
        REAL(name); \
        enum verdict verdict = judge_descriptor(#name, needs, descriptor); \
        if (verdict == REFUSE) return failed; \
        RESULT(verdict, type, real arguments); \
    }

/* A call that moves bytes, of which it may move half. */
#define ON_BYTES(name, parameters, arguments, needs, descriptor, count) \
    ssize_t name parameters { \
        REAL(name); \
        enum verdict verdict = judge_descriptor(#name, needs, descriptor); \
        if (verdict == REFUSE) return -1; \
        if (verdict == HALVE && count > 1) count /= 2; \
        RESULT(verdict, ssize_t, real arguments); \
    }

static int needs_of_flags(int flags) {
    int writes = (flags & O_ACCMODE) != O_RDONLY;
    return OPENS | (flags & O_CREAT || (flags & O_TMPFILE) == O_TMPFILE ? TAKES_SPACE : 0) | (writes ? CHANGES : READS);
}

#define MODE_OF(flags) \
    mode_t mode = 0; \
    if ((flags) & O_CREAT || ((flags) & O_TMPFILE) == O_TMPFILE) { \
        va_list list; \
        va_start(list, flags); \
        mode = va_arg(list, mode_t); \
        va_end(list); \
    }

#define OPEN(name) \
    int name(const char *path, int flags, ...) { \
        MODE_OF(flags) \
        REAL(name); \
        enum verdict verdict = judge_name(#name, needs_of_flags(flags), AT_FDCWD, path); \
        if (verdict == REFUSE) return -1; \
        RESULT(verdict, int, real(path, flags, mode)); \
    }

#define OPENAT(name) \
    int name(int folder, const char *path, int flags, ...) { \
        MODE_OF(flags) \
        REAL(name); \
        enum verdict verdict = judge_name(#name, needs_of_flags(flags), folder, path); \
        if (verdict == REFUSE) return -1; \
        RESULT(verdict, int, real(folder, path, flags, mode)); \
    }

OPEN(open)
OPEN(open64)
OPENAT(openat)
OPENAT(openat64)
ON_NAME(DIR *, opendir, (const char *path), (path), NULL, OPENS | READS, AT_FDCWD, path)
ON_DESCRIPTOR(DIR *, fdopendir, (int file), (file), NULL, READS, file)

ON_BYTES(read, (int file, void *data, size_t count), (file, data, count), READS, file, count)
ON_BYTES(pread, (int file, void *data, size_t count, off_t at), (file, data, count, at), READS, file, count)
ON_BYTES(pread64, (int file, void *data, size_t count, off64_t at), (file, data, count, at), READS, file, count)
ON_BYTES(write, (int file, const void *data, size_t count), (file, data, count), TAKES_SPACE | CHANGES, file, count)
ON_BYTES(pwrite, (int file, const void *data, size_t count, off_t at), (file, data, count, at), TAKES_SPACE | CHANGES,
         file, count)
ON_BYTES(pwrite64, (int file, const void *data, size_t count, off64_t at), (file, data, count, at),
         TAKES_SPACE | CHANGES, file, count)
ON_DESCRIPTOR(ssize_t, preadv64v2, (int file, const struct iovec *parts, int count, off64_t at, int flags),
              (file, parts, count, at, flags), -1, READS, file)
ON_DESCRIPTOR(ssize_t, readv, (int file, const struct iovec *parts, int count), (file, parts, count), -1, READS, file)
ON_DESCRIPTOR(ssize_t, writev, (int file, const struct iovec *parts, int count), (file, parts, count), -1,
              TAKES_SPACE | CHANGES, file)
ON_BYTES(sendfile, (int out, int in, off_t *at, size_t count), (out, in, at, count), TAKES_SPACE | CHANGES, out, count)
ON_BYTES(sendfile64, (int out, int in, off64_t *at, size_t count), (out, in, at, count), TAKES_SPACE | CHANGES, out,
         count)
ON_BYTES(copy_file_range, (int in, off64_t *from, int out, off64_t *to, size_t count, unsigned flags),
         (in, from, out, to, count, flags), TAKES_SPACE | CHANGES, out, count)

ON_DESCRIPTOR(int, fsync, (int file), (file), -1, CHANGES, file)
ON_DESCRIPTOR(int, fdatasync, (int file), (file), -1, CHANGES, file)
ON_DESCRIPTOR(int, ftruncate, (int file, off_t size), (file, size), -1, CHANGES, file)
ON_DESCRIPTOR(int, ftruncate64, (int file, off64_t size), (file, size), -1, CHANGES, file)
ON_DESCRIPTOR(int, posix_fallocate, (int file, off_t at, off_t size), (file, at, size), plan->error,
              TAKES_SPACE | CHANGES, file)
ON_DESCRIPTOR(int, posix_fallocate64, (int file, off64_t at, off64_t size), (file, at, size), plan->error,
              TAKES_SPACE | CHANGES, file)
ON_DESCRIPTOR(int, posix_fadvise64, (int file, off64_t at, off64_t size, int advice), (file, at, size, advice),
              plan->error, READS, file)
ON_DESCRIPTOR(int, fchmod, (int file, mode_t mode), (file, mode), -1, CHANGES, file)
ON_DESCRIPTOR(int, futimens, (int file, const struct timespec times[2]), (file, times), -1, CHANGES, file)
ON_DESCRIPTOR(int, flock, (int file, int what), (file, what), -1, READS, file)

/* Python's own maps have no file. */
#define MMAP(name, offset_type) \
    void *name(void *near, size_t size, int protection, int flags, int file, offset_type at) { \
        REAL(name); \
        enum verdict verdict = file < 0 ? PASS : judge_descriptor(#name, READS, file); \
        if (verdict == REFUSE) return MAP_FAILED; \
        RESULT(verdict, void *, real(near, size, protection, flags, file, at)); \
    }
MMAP(mmap, off_t)
MMAP(mmap64, off64_t)

ON_NAME(int, rename, (const char *from, const char *to), (from, to), -1, TAKES_SPACE | CHANGES, AT_FDCWD, to)
ON_NAME(int, renameat, (int from, const char *old, int to, const char *new), (from, old, to, new), -1,
        TAKES_SPACE | CHANGES, to, new)
ON_NAME(int, renameat2, (int from, const char *old, int to, const char *new, unsigned flags),
        (from, old, to, new, flags), -1, TAKES_SPACE | CHANGES, to, new)
ON_NAME(int, link, (const char *from, const char *to), (from, to), -1, TAKES_SPACE | CHANGES, AT_FDCWD, to)
ON_NAME(int, linkat, (int from, const char *old, int to, const char *new, int flags), (from, old, to, new, flags), -1,
        TAKES_SPACE | CHANGES, to, new)
ON_NAME(int, symlink, (const char *target, const char *path), (target, path), -1, TAKES_SPACE | CHANGES, AT_FDCWD, path)
ON_NAME(int, symlinkat, (const char *target, int folder, const char *path), (target, folder, path), -1,
        TAKES_SPACE | CHANGES, folder, path)
ON_NAME(int, unlink, (const char *path), (path), -1, CHANGES, AT_FDCWD, path)
ON_NAME(int, unlinkat, (int folder, const char *path, int flags), (folder, path, flags), -1, CHANGES, folder, path)
ON_NAME(int, rmdir, (const char *path), (path), -1, CHANGES, AT_FDCWD, path)
ON_NAME(int, mkdir, (const char *path, mode_t mode), (path, mode), -1, TAKES_SPACE | CHANGES, AT_FDCWD, path)
ON_NAME(int, mkdirat, (int folder, const char *path, mode_t mode), (folder, path, mode), -1, TAKES_SPACE | CHANGES,
        folder, path)
ON_NAME(int, chmod, (const char *path, mode_t mode), (path, mode), -1, CHANGES, AT_FDCWD, path)
ON_NAME(int, fchmodat, (int folder, const char *path, mode_t mode, int flags), (folder, path, mode, flags), -1, CHANGES,
        folder, path)
ON_NAME(int, utimensat, (int folder, const char *path, const struct timespec times[2], int flags),
        (folder, path, times, flags), -1, CHANGES, folder, path)
ON_NAME(int, truncate64, (const char *path, off64_t size), (path, size), -1, CHANGES, AT_FDCWD, path)

/* Before glibc 2.33 these were macros of others; programs built since call them. */
ON_NAME(int, stat64, (const char *path, struct stat64 *facts), (path, facts), -1, READS, AT_FDCWD, path)
ON_NAME(int, lstat64, (const char *path, struct stat64 *facts), (path, facts), -1, READS, AT_FDCWD, path)
ON_NAME(int, fstatat64, (int folder, const char *path, struct stat64 *facts, int flags), (folder, path, facts, flags),
        -1, READS, folder, path)
ON_DESCRIPTOR(int, fstat64, (int file, struct stat64 *facts), (file, facts), -1, READS, file)
