/* Preloaded into a process, changes what it sees of the world, as files say that may change at any moment:
 *
 * - CLOCK_REALTIME is off by as many seconds as the file STEPPED_CLOCK says. No other clock is touched, so no wait is:
 *   libfaketime 0.9.10 shifts CLOCK_BOOTTIME with it once a thread has slept.
 * - No connection is made to the IPv4 address that the file UNREACHABLE names. */

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* The content of the file that a variable names; empty when there is none. */
static void content(const char *variable, char *text, size_t size) {
  const char *path = getenv(variable);
  int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
  ssize_t length = file < 0 ? 0 : read(file, text, size - 1);
  text[length > 0 ? length : 0] = 0;
  if (file >= 0) close(file);
}

int clock_gettime(clockid_t clock, struct timespec *now) {
  int result = syscall(SYS_clock_gettime, clock, now);
  if (result == 0 && clock == CLOCK_REALTIME) {
    char seconds[32];
    content("STEPPED_CLOCK", seconds, sizeof seconds);
    now->tv_sec += atol(seconds);
  }
  return result;
}

int connect(int socket, const struct sockaddr *address, socklen_t length) {
  if (address->sa_family == AF_INET) {
    char asked[INET_ADDRSTRLEN] = "", hidden[INET_ADDRSTRLEN];
    inet_ntop(AF_INET, &((const struct sockaddr_in *)address)->sin_addr, asked, sizeof asked);
    content("UNREACHABLE", hidden, sizeof hidden);
    if (strcmp(asked, hidden) == 0) {
      errno = EHOSTUNREACH;
      return -1;
    }
  }
  return syscall(SYS_connect, socket, address, length);
}
