/* SPDX-License-Identifier: BSD-2-Clause */
/* The daemon as a service: what its manager told it by its environment, and is told. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "service.h"

bool service_on_journal(int fd)
{
	const char *stream = getenv("JOURNAL_STREAM");
	uint64_t dev, ino;
	struct stat st;

	return stream && sscanf(stream, "%" SCNu64 ":%" SCNu64, &dev, &ino) == 2 &&
	       fstat(fd, &st) == 0 && dev == (uint64_t)st.st_dev && ino == (uint64_t)st.st_ino;
}

/* ---- the socket ------------------------------------------------------------------------------ */

/* A path, or '@' and a name of the abstract kind. */
static int set_address(struct service *s, const char *path)
{
	size_t len = strlen(path);

	if ((path[0] != '/' && path[0] != '@') || len < 2 || len >= sizeof(s->to.sun_path))
		return -EINVAL;
	s->to.sun_family = AF_UNIX;
	memcpy(s->to.sun_path, path, len);
	if (path[0] == '@')
		s->to.sun_path[0] = '\0';
	s->to_len = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len);
	return 0;
}

/* How often the manager wants to hear of us; twice as often it will. 0: it does not. */
static uint64_t watchdog_ns(void)
{
	const char *usec = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");
	char *end;
	uint64_t n;

	if (!usec || *usec < '0' || *usec > '9' || (pid && atol(pid) != (long)getpid()))
		return 0;
	errno = 0;
	n = strtoull(usec, &end, 10);
	return *end || errno || n > UINT64_MAX / 1000 ? 0 : n * 1000 / 2;
}

int service_open(struct service *s, struct base_err *err)
{
	const char *path = getenv("NOTIFY_SOCKET");
	int r;

	*s = (struct service){ 0 };
	if (!path || !*path)
		return 0;
	r = set_address(s, path);
	if (r == 0) {
		s->fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
		r = s->fd < 0 ? -errno : 0;
	}
	if (r < 0) {
		*s = (struct service){ 0 };
		return base_fail_errno(err, r, "cannot use NOTIFY_SOCKET '%s'", path);
	}
	s->every_ns = watchdog_ns();
	return 0;
}

void service_close(struct service *s)
{
	if (s->to_len)
		close(s->fd);
	*s = (struct service){ 0 };
}

/* A manager that does not listen is not waited for: it has its own clock. */
static void tell(struct service *s, const char *text)
{
	if (!s->to_len)
		return;
	if (sendto(s->fd, text, strlen(text), MSG_NOSIGNAL, (const struct sockaddr *)&s->to,
		   s->to_len) < 0)
		base_log(BASE_LOG_DEBUG, "the service's manager does not hear: %s",
			 base_strerror(errno));
}

/* ---- what it is told ------------------------------------------------------------------------- */

void service_ready(struct service *s, const char *source)
{
	char text[512];

	snprintf(text, sizeof(text), "READY=1\nSTATUS=%s", source);
	tell(s, text);
	s->next_ns = base_now_ns() + s->every_ns;
}

void service_alive(struct service *s, const char *epoch, uint64_t stored)
{
	char text[128];

	if (!s->every_ns || base_now_ns() < s->next_ns)
		return;
	snprintf(text, sizeof(text), "WATCHDOG=1\nSTATUS=epoch %s, %" PRIu64 " sample%s stored",
		 epoch, stored, stored == 1 ? "" : "s");
	tell(s, text);
	s->next_ns = base_now_ns() + s->every_ns;
}

void service_stopping(struct service *s)
{
	tell(s, "STOPPING=1\nSTATUS=flushing");
}

void service_failed(struct service *s, const struct base_err *err)
{
	char text[sizeof(err->text) + 64];

	/* A code of our own is no errno. */
	if (err->code < 0 && err->code > -DCPI_ERROR_BASE)
		snprintf(text, sizeof(text), "STATUS=%s\nERRNO=%d", err->text, -err->code);
	else
		snprintf(text, sizeof(text), "STATUS=%s", err->text);
	tell(s, text);
}
