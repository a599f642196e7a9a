/* SPDX-License-Identifier: BSD-2-Clause */
/* A table is printed with its columns aligned, or with commas, as the terminal can show it. */
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "demangle.h"
#include "table.h"
#include "terminal.h"

/* Finds out what the terminal can show, and starts the user's pager. */

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

/* Columns into which rows are to fit; 0: no limit. */
static size_t terminal_width(void)
{
	return is_terminal && !terminal_wide ? columns : 0;
}

size_t terminal_columns(void)
{
	return is_terminal ? columns : 0;
}

/* Rows that a long table is cut to; 0: no limit. */
static size_t terminal_rows(void)
{
	return is_terminal && !terminal_all ? TERMINAL_ROWS : 0;
}

static const char *terminal_heat(double percent)
{
	if (!has_colours || percent < 1)
		return "";
	return percent >= 10 ? "\033[1;31m" : "\033[33m";
}

/* The text that begins, and that ends, a share of the samples of @percent: colours by heat, or "".
 */
static const char *terminal_plain(double percent)
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
	sigset_t interrupt, old;
	int fds[2];

	if (pipe(fds) < 0)
		return;
	handle_interrupts();
	/* An interrupt waits until the pager has all of the output's ends. */
	sigemptyset(&interrupt);
	sigaddset(&interrupt, SIGINT);
	sigprocmask(SIG_BLOCK, &interrupt, &old);
	pager = fork();
	if (pager == 0) {
		sigprocmask(SIG_SETMASK, &old, NULL);
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
	sigprocmask(SIG_SETMASK, &old, NULL);
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

char *table_clean(char *text)
{
	return base_text_clean(text);
}

static void add(struct table *t, char *text)
{
	if (!text || base_grow(&t->cells, &t->cap_cells, t->nr_cells + 1, sizeof(*t->cells)) < 0) {
		free(text);
		t->failed = true;
		return;
	}
	t->cells[t->nr_cells++] = table_clean(text);
}

void table_column(struct table *t, bool left, const char *head)
{
	if (left)
		t->left |= 1ull << t->nr_columns;
	else if (strcmp(head, "%") == 0)
		t->heat |= 1ull << t->nr_columns;
	t->nr_columns++;
	add(t, strdup(head));
}

static uint64_t last_column(const struct table *t)
{
	return UINT64_C(1) << (t->nr_columns - 1);
}

void table_code(struct table *t)
{
	t->code |= last_column(t);
}

void table_address(struct table *t)
{
	t->address |= last_column(t);
}

void table_spare(struct table *t)
{
	t->spare |= last_column(t);
}

void table_cell(struct table *t, const char *fmt, ...)
{
	char *text = NULL;
	va_list args;

	va_start(args, fmt);
	if (vasprintf(&text, fmt, args) < 0)
		text = NULL;
	va_end(args);
	add(t, text);
}

static void take_row(struct table *t, char **from, bool keep)
{
	for (size_t c = 0; c < t->nr_columns; c++) {
		if (keep && !t->failed &&
		    base_grow(&t->cells, &t->cap_cells, t->nr_cells + 1, sizeof(*t->cells)) >= 0) {
			t->cells[t->nr_cells++] = from[c];
			continue;
		}
		t->failed |= keep;
		free(from[c]);
	}
}

void table_leave_out(struct table *t, const bool *keep,
		     void (*gap)(void *ctx, size_t from, size_t to), void *ctx)
{
	size_t nr = t->nr_columns ? t->nr_cells / t->nr_columns - 1 : 0, begin = 0;
	char **old = t->cells;

	if (t->failed || !nr)
		return;
	t->cells = NULL;
	t->nr_cells = t->cap_cells = 0;
	take_row(t, old, true);
	for (size_t i = 0; i < nr; i++) {
		if (keep[i] && begin < i)
			gap(ctx, begin, i);
		begin = keep[i] ? i + 1 : begin;
		take_row(t, old + (i + 1) * t->nr_columns, keep[i]);
	}
	if (begin < nr)
		gap(ctx, begin, nr);
	free(old);
}

/* In place of a width: the column is left out. */
#define HIDDEN SIZE_MAX

/* The share that a cell is, or 0. */
static double share(const struct table *t, size_t column, const char *cell)
{
	return t->heat >> column & 1 ? strtod(cell, NULL) : 0;
}

static void print_row(const struct table *t, char *const *cells, const size_t *widths, FILE *to)
{
	size_t last = t->nr_columns, owed = 0;

	while (last && (!*cells[last - 1] || widths[last - 1] == HIDDEN))
		last--;
	for (size_t c = 0; c < last; c++) {
		const char *cell = cells[c];
		size_t is = base_text_width(cell), pad = is < widths[c] ? widths[c] - is : 0;
		bool left = t->left >> c & 1;
		double heat = share(t, c, cell);

		if (widths[c] == HIDDEN)
			continue;

		fprintf(to, "%*s%s%s%s%s", (int)(owed + (left ? 0 : pad)), "", terminal_heat(heat),
			cell, terminal_plain(heat), c + 1 < last ? "  " : "");
		owed = left ? pad : 0;
	}
	fputc('\n', to);
}

/* ---- what fits ------------------------------------------------------------------------------- */

/* Rows without the heads. */
static size_t nr_rows(const struct table *t)
{
	return t->nr_columns ? t->nr_cells / t->nr_columns - 1 : 0;
}

/* How many rows are left out, from row *@first on (0: the heads). */
static size_t nr_cut(const struct table *t, size_t *first)
{
	size_t rows = t->cut ? terminal_rows() : 0, nr = nr_rows(t);

	*first = 1 + rows;
	/* A line that says that one is left out takes as much room. */
	return rows && nr > rows + t->foot + 1 ? nr - rows - t->foot : 0;
}

static void find_widths(const struct table *t, size_t widest, bool heads, size_t *widths)
{
	size_t first, cut = nr_cut(t, &first);

	for (size_t i = heads ? 0 : t->nr_columns; i < t->nr_cells; i++) {
		size_t w = base_text_width(t->cells[i]), row = i / t->nr_columns;

		if (cut && row >= first && row < first + cut)
			continue;
		w = w > widest ? widest : w;
		if (w > widths[i % t->nr_columns])
			widths[i % t->nr_columns] = w;
	}
}

static bool is_name(const struct table *t, size_t column)
{
	return (t->left & ~t->address) >> column & 1;
}

/* The first name, which is read and pasted. */
static bool is_front(const struct table *t, size_t column)
{
	uint64_t names = t->left & ~t->address;

	return is_name(t, column) && !(names & ((UINT64_C(1) << column) - 1));
}

/* Names in front, and code, get twice as much as others: mostly paths, whose end tells them apart.
 */
static size_t weight(const struct table *t, size_t column)
{
	if (!is_name(t, column))
		return 0;
	return is_front(t, column) || t->code >> column & 1 ? 2 : 1;
}

/* The room for names, and into *@names the sum of their weights. */
static size_t room_for_names(const struct table *t, size_t room, const size_t *widths,
			     size_t *names)
{
	size_t taken = 0;

	*names = 0;
	for (size_t c = 0; c < t->nr_columns; c++) {
		if (widths[c] == HIDDEN)
			continue;
		taken += (taken ? 2 : 0) + (weight(t, c) ? 0 : widths[c]);
		*names += weight(t, c);
	}
	return room > taken ? room - taken : 0;
}

/* Leaves out spare columns as long as a name has less than ten characters. */
static void hide_spare(const struct table *t, size_t room, size_t *widths)
{
	enum { READABLE = 10 };
	size_t names;

	for (size_t c = t->nr_columns; c--;)
		if (t->spare >> c & 1 && room_for_names(t, room, widths, &names) < READABLE * names)
			widths[c] = HIDDEN;
}

/*
 * Names share the room of a row by their weights, but none gets more than it needs. Where there is
 * little room, the one in front still can be read, and the others have a few characters.
 */
static void fit_widths(const struct table *t, size_t room, size_t *widths)
{
	enum { FRONT = 12, LEAST = 4 };
	size_t names, part;
	bool changed = true;
	uint64_t open = t->left & ~t->address;

	for (size_t c = 0; c < t->nr_columns; c++)
		open &= widths[c] == HIDDEN ? ~(UINT64_C(1) << c) : UINT64_MAX;
	room = room_for_names(t, room, widths, &names);
	while (changed && names) {
		changed = false;
		for (size_t c = 0; c < t->nr_columns && names; c++) {
			if (!(open >> c & 1) || widths[c] > room * weight(t, c) / names)
				continue;
			open &= ~(1ull << c);
			room -= widths[c];
			names -= weight(t, c);
			changed = true;
		}
	}
	for (size_t c = 0; c < t->nr_columns && names; c++) {
		if (!(open >> c & 1))
			continue;
		part = room * weight(t, c) / names;
		names -= weight(t, c);
		if (part < (is_front(t, c) ? FRONT : LEAST))
			part = is_front(t, c) ? FRONT : LEAST;
		room = room > part ? room - part : 0;
		widths[c] = part;
	}
}

static int shorten(const struct table *t, const size_t *widths, char **cells)
{
	for (size_t c = 0; c < t->nr_columns; c++) {
		if (!weight(t, c) || widths[c] == HIDDEN || base_text_width(cells[c]) <= widths[c])
			continue;
		cells[c] = t->code >> c & 1 ? demangle_cut(cells[c], widths[c])
					    : demangle_shorten(cells[c], widths[c]);
		if (!cells[c])
			return -ENOMEM;
	}
	return 0;
}

static int print_fitted(const struct table *t, size_t row, const size_t *widths, FILE *to)
{
	char *const *from = &t->cells[row * t->nr_columns];
	char *cells[64];
	int r;

	memcpy(cells, from, t->nr_columns * sizeof(*cells));
	r = shorten(t, widths, cells);
	if (r >= 0)
		print_row(t, cells, widths, to);
	for (size_t c = 0; c < t->nr_columns; c++)
		if (cells[c] != from[c])
			free(cells[c]);
	return r;
}

static int print_rows(const struct table *t, bool heads, const size_t *widths, FILE *to)
{
	size_t first, cut = nr_cut(t, &first);
	int r = 0;

	for (size_t i = heads ? 0 : 1; i <= nr_rows(t) && r >= 0; i++) {
		if (cut && i == first) {
			fprintf(to, "\xe2\x80\xa6 %zu more (-all)\n", cut);
			i += cut;
		}
		if (i > nr_rows(t))
			break;
		if (to == stdout && terminal_width())
			r = print_fitted(t, i, widths, to);
		else
			print_row(t, &t->cells[i * t->nr_columns], widths, to);
	}
	return r;
}

int table_print(const struct table *t, bool heads, FILE *to)
{
	size_t *widths = calloc(t->nr_columns + 1, sizeof(*widths));
	size_t room = to == stdout ? terminal_width() : 0;
	int r = -ENOMEM;

	if (!t->failed && widths) {
		/* One name of a hundred characters must not push all else off the screen. */
		find_widths(t, room ? SIZE_MAX : TABLE_WIDEST, heads, widths);
		if (room && t->nr_columns) {
			hide_spare(t, room, widths);
			fit_widths(t, room, widths);
		}
		r = print_rows(t, heads, widths, to);
	}
	free(widths);
	return r;
}

static void print_quoted(const char *cell, FILE *to)
{
	if (!strpbrk(cell, ",\"")) {
		fputs(cell, to);
		return;
	}
	fputc('"', to);
	for (; *cell; cell++)
		fputs(*cell == '"' ? "\"\"" : (char[]){ *cell, '\0' }, to);
	fputc('"', to);
}

int table_print_csl(const struct table *t, bool heads, FILE *to)
{
	if (t->failed)
		return -ENOMEM;
	for (size_t i = heads ? 0 : t->nr_columns; i < t->nr_cells; i++) {
		print_quoted(t->cells[i], to);
		fputc((i + 1) % t->nr_columns ? ',' : '\n', to);
	}
	return 0;
}

void table_release(struct table *t)
{
	for (size_t i = 0; i < t->nr_cells; i++)
		free(t->cells[i]);
	free(t->cells);
	memset(t, 0, sizeof(*t));
}
