/* SPDX-License-Identifier: BSD-2-Clause */
/* Draws how far the current work is, and how long it still takes. */
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base.h"
#include "progress.h"

#define SECOND 1000000000ull

enum { BAR = 30 };

static int terminal = -1;
static const char *current; /* NULL: no work */
static uint64_t began_ns, drawn_ns;
static bool drawn;

void progress_begin(int fd)
{
	if (terminal < 0 && isatty(fd))
		terminal = fcntl(fd, F_DUPFD_CLOEXEC, 3);
}

void progress_text(const char *what, uint64_t done, uint64_t total, uint64_t elapsed_ns, char *buf,
		   size_t buf_len)
{
	double part = total ? (double)(done < total ? done : total) / (double)total : 1;
	int full = (int)(part * BAR);
	double left = part > 0 ? (double)elapsed_ns / SECOND * (1 - part) / part : 0;
	char bar[BAR + 1];

	memset(bar, '-', BAR);
	memset(bar, '#', (size_t)full);
	bar[BAR] = '\0';
	if (left >= 90)
		snprintf(buf, buf_len, "%s [%s] %.0f %%, %.0f min left", what, bar, 100 * part,
			 left / 60);
	else
		snprintf(buf, buf_len, "%s [%s] %.0f %%, %.0f s left", what, bar, 100 * part, left);
}

/* The cursor returns, and what stood there is removed. */
static void draw(const char *text)
{
	char line[160];
	int len = snprintf(line, sizeof(line), "\r\033[K%s", text);
	ssize_t n = write(terminal, line, (size_t)len < sizeof(line) ? (size_t)len : sizeof(line));

	(void)n;
	drawn = *text;
}

void progress_show(const char *what, uint64_t done, uint64_t total)
{
	uint64_t now;
	char text[120];

	if (terminal < 0)
		return;
	now = base_now_ns();
	if (!current || strcmp(what, current) != 0) {
		current = what;
		began_ns = drawn_ns = now;
	}
	if (done >= total) {
		current = NULL;
		if (drawn)
			draw("");
	} else if (now - began_ns >= SECOND && now - drawn_ns >= SECOND / 10) {
		progress_text(what, done, total, now - began_ns, text, sizeof(text));
		draw(text);
		drawn_ns = now;
	}
}
