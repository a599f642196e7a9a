/* SPDX-License-Identifier: BSD-2-Clause */
/* Finds out what the terminal can show, and starts the user's pager. */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "terminal.h"

bool terminal_wide, terminal_all;

static bool is_terminal, has_colours;
static size_t columns;
static volatile pid_t pager; /* read when the user interrupts the command */

/* ---- what it is ------------------------------------------------------------------------------ */

static size_t find_columns(void)
{
	struct winsize size;

	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) >= 0 && size.ws_col)
		return size.ws_col;
	return 80;
}

static bool find_colours(void)
{
	const char *term = getenv("TERM"), *none = getenv("NO_COLOR");

	return term && strcmp(term, "dumb") != 0 && !(none && *none);
}

size_t terminal_width(void)
{
	return is_terminal && !terminal_wide ? columns : 0;
}

size_t terminal_columns(void)
{
	return is_terminal ? columns : 0;
}

size_t terminal_rows(void)
{
	return is_terminal && !terminal_all ? TERMINAL_ROWS : 0;
}

const char *terminal_heat(double percent)
{
	if (!has_colours || percent < 1)
		return "";
	return percent >= 10 ? "\033[1;31m" : "\033[33m";
}

const char *terminal_plain(double percent)
{
	return *terminal_heat(percent) ? "\033[0m" : "";
}

/* ---- the pager ------------------------------------------------------------------------------- */

static bool is_installed(const char *program)
{
	const char *path = getenv("PATH");
	char file[4096];

	for (; path && *path; path += strspn(path, ":")) {
		size_t len = strcspn(path, ":");
		int n = snprintf(file, sizeof(file), "%.*s/%s", (int)len, path, program);

		if (n > 0 && (size_t)n < sizeof(file) && access(file, X_OK) == 0)
			return true;
		path += len;
	}
	return false;
}

/* NULL: none. */
static const char *find_pager(void)
{
	const char *command = getenv("DCPI_PAGER");

	if (!command)
		command = getenv("PAGER");
	if (!command)
		command = is_installed("less") ? "less" : "";
	return *command && strcmp(command, "cat") != 0 ? command : NULL;
}

/* In the child: it quits where all fits on the screen, and takes colours. */
static void run_pager(const char *command, int from)
{
	dup2(from, STDIN_FILENO);
	close(from);
	setenv("LESS", "FRX", 0);
	execl("/bin/sh", "sh", "-c", command, (char *)NULL);
	_exit(127);
}

static void wait_for_pager(void)
{
	close(STDOUT_FILENO);
	close(STDERR_FILENO);
	while (pager > 0 && waitpid(pager, NULL, 0) < 0 && errno == EINTR)
		;
}

/* An interrupt reaches the pager too, which may only stop a search: the shell is to wait until the
 * user has left it. */
static void on_interrupt(int number)
{
	wait_for_pager();
	_exit(128 + number);
}

/* Programs that are executed have the default again. */
static void handle_interrupts(void)
{
	const struct sigaction handled = { .sa_handler = on_interrupt };
	struct sigaction old;

	if (sigaction(SIGINT, NULL, &old) == 0 && old.sa_handler == SIG_DFL)
		sigaction(SIGINT, &handled, NULL);
}

static void start_pager(const char *command)
{
	int fds[2];

	if (pipe(fds) < 0)
		return;
	handle_interrupts();
	pager = fork();
	if (pager == 0) {
		close(fds[1]);
		run_pager(command, fds[0]);
	}
	close(fds[0]);
	if (pager > 0) {
		/* Messages are read there as well; it would disturb the screen. */
		dup2(fds[1], STDOUT_FILENO);
		if (isatty(STDERR_FILENO))
			dup2(fds[1], STDERR_FILENO);
	}
	close(fds[1]);
}

void terminal_begin(void)
{
	const char *command;

	if (is_terminal || !isatty(STDOUT_FILENO))
		return;
	is_terminal = true;
	columns = find_columns();
	has_colours = find_colours();
	command = find_pager();
	if (command)
		start_pager(command);
}

void terminal_end(void)
{
	if (pager <= 0)
		return;
	fflush(stdout);
	fflush(stderr);
	wait_for_pager();
	pager = 0;
}
