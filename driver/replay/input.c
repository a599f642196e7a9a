/* SPDX-License-Identifier: BSD-2-Clause */
/* Input of the source "replay": a file, or a pipe, which may have to be waited for. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "replay_internal.h"

/* How long a drain of a pipe may take, which may come slowly: so that it is flushed in time. */
#define REPLAY_DRAIN_NS 250000000ull

/*
 * At the end the rest of the input is read: ^C ends perf too, which has kept the contents of its
 * rings until then. Input ends after a silence of this length.
 */
enum { SILENCE_MS = 500 };

/* A pipe: whoever waits for it is woken when it is to end. */
struct input {
	int fd, stop_fd;
};

static ssize_t input_read(void *ctx, char *to, size_t len)
{
	const struct input *in = ctx;
	struct pollfd fds[] = { { .fd = in->fd, .events = POLLIN },
				{ .fd = in->stop_fd, .events = POLLIN } };
	int nr = poll(fds, 2, -1);

	if (nr > 0 && !fds[0].revents)
		nr = poll(fds, 1, SILENCE_MS);
	if (nr > 0)
		return read(in->fd, to, len);
	if (nr == 0)
		errno = ECANCELED;
	return -1;
}

static int input_close(void *ctx)
{
	struct input *in = ctx;
	int r = close(in->fd);

	free(in);
	return r;
}

/* NULL with errno: @fd is still the caller's. */
static FILE *open_stream(int fd, int stop_fd)
{
	static const cookie_io_functions_t of_pipe = { .read = input_read, .close = input_close };
	struct input *in;
	struct stat st;
	FILE *stream;

	if (stop_fd <= 0 || (fstat(fd, &st) == 0 && S_ISREG(st.st_mode)))
		return fdopen(fd, "r");
	in = malloc(sizeof(*in));
	if (!in)
		return NULL;
	*in = (struct input){ fd, stop_fd };
	stream = fopencookie(in, "r", of_pipe);
	if (!stream)
		free(in);
	return stream;
}

/* A FIFO without a writer would keep us waiting for ever: only standard input is read as a pipe. */
int replay_input_open(const struct driver_config *config, FILE **out, struct base_err *err)
{
	const char *path = config->replay_path;
	bool input = !strcmp(path, "-");
	int fd = input ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3)
		       : open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	bool is_folder;
	struct stat st = { 0 };
	int r;

	if (fd < 0)
		return base_fail_errno(err, -errno, "cannot open '%s'", path);
	if (!input && (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))) {
		is_folder = S_ISDIR(st.st_mode);
		close(fd);
		r = base_fail(err, -EINVAL, "cannot replay '%s': not a regular file", path);
		base_hint(err,
			  is_folder ? "of a folder of perf's (--kcore) name the file 'data' in it"
				    : "a pipe is read as '-': standard input");
		return r;
	}
	*out = open_stream(fd, config->stop_fd);
	if (*out)
		return 0;
	r = base_fail_errno(err, -errno, "cannot open '%s'", path);
	close(fd);
	return r;
}

/* Input that cannot seek may block. */
uint64_t replay_drain_end(FILE *in)
{
	return ftello(in) < 0 ? base_now_ns() + REPLAY_DRAIN_NS : UINT64_MAX;
}
