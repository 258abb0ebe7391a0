// Loaded into a program by LD_PRELOAD: one of its system calls that change
// files fails, or the program is killed there. Calls are counted from 1 over
// the life of the process; writes to the standard streams are not.
//
//   FAULT_AT=N      which call
//   FAULT=kill      SIGKILL before the call
//         torn      half of a write's bytes, then SIGKILL
//         fail      the call fails with EIO
//         full      the call, and every later one that takes room, with ENOSPC
//   FAULT_REPORT=F  at exit, the number of calls goes to the file F
//
// Used by disturbed_runs.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

enum Kind { kTakesRoom, kTakesNone };

static atomic_long calls;

static void Die(void) {
  kill(getpid(), SIGKILL);
  for (;;) pause();
}

// Counts a call. Nonzero: it fails with this errno. `torn` says whether half of
// the bytes are written before the end.
static int Fault(enum Kind kind, int* torn) {
  *torn = 0;
  const char* at = getenv("FAULT_AT");
  const char* what = getenv("FAULT");
  const long call = atomic_fetch_add(&calls, 1) + 1;
  if (at == NULL || what == NULL) return 0;
  const long wanted = atol(at);
  if (call < wanted) return 0;
  if (strcmp(what, "full") == 0) return kind == kTakesRoom ? ENOSPC : 0;
  if (call > wanted) return 0;
  if (strcmp(what, "kill") == 0) Die();
  if (strcmp(what, "torn") == 0) *torn = 1;
  return strcmp(what, "fail") == 0 ? EIO : 0;
}

// The function that this file stands before.
#define REAL(name)                            \
  static __typeof__(name)* real;              \
  if (real == NULL) {                         \
    *(void**)&real = dlsym(RTLD_NEXT, #name); \
  }

// Half of the bytes of a torn write arrive.
#define WRITE(whole, half)                    \
  int torn;                                   \
  const int error = Fault(kTakesRoom, &torn); \
  if (error != 0) {                           \
    errno = error;                            \
    return -1;                                \
  }                                           \
  if (torn) {                                 \
    if ((half) < 0) Die();                    \
    Die();                                    \
  }                                           \
  return (whole);

ssize_t write(int fd, const void* data, size_t bytes) {
  REAL(write)
  if (fd == STDOUT_FILENO || fd == STDERR_FILENO) return real(fd, data, bytes);
  WRITE(real(fd, data, bytes), real(fd, data, bytes / 2))
}

ssize_t pwrite(int fd, const void* data, size_t bytes, off_t offset) {
  REAL(pwrite)
  WRITE(real(fd, data, bytes, offset), real(fd, data, bytes / 2, offset))
}

// A call without bytes, which a torn write ends before.
#define SIMPLE(kind)                    \
  int torn;                             \
  const int error = Fault(kind, &torn); \
  if (torn) Die();                      \
  if (error != 0) {                     \
    errno = error;                      \
    return -1;                          \
  }

int fsync(int fd) {
  REAL(fsync)
  SIMPLE(kTakesRoom)
  return real(fd);
}

int rename(const char* from, const char* to) {
  REAL(rename)
  SIMPLE(kTakesNone)
  return real(from, to);
}

int unlink(const char* path) {
  REAL(unlink)
  SIMPLE(kTakesNone)
  return real(path);
}

int posix_fallocate(int fd, off_t offset, off_t bytes) {
  REAL(posix_fallocate)
  int torn;
  const int error = Fault(kTakesRoom, &torn);
  if (torn) Die();
  return error != 0 ? error : real(fd, offset, bytes);
}

int mkostemp(char* path, int flags) {
  REAL(mkostemp)
  SIMPLE(kTakesRoom)
  return real(path, flags);
}

int fchmod(int fd, mode_t mode) {
  REAL(fchmod)
  SIMPLE(kTakesNone)
  return real(fd, mode);
}

__attribute__((destructor)) static void Report(void) {
  const char* path = getenv("FAULT_REPORT");
  if (path == NULL) return;
  FILE* file = fopen(path, "w");
  if (file == NULL) return;
  fprintf(file, "%ld\n", atomic_load(&calls));
  fclose(file);
}
