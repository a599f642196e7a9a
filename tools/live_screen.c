/* SPDX-License-Identifier: BSD-2-Clause */
/* The live view on a terminal, by ncurses: lines are drawn, keys read, the daemon asked. */
#include <curses.h>
#include <errno.h>
#include <locale.h>
#include <poll.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "live.h"

enum { ESCAPE = 27, ESCAPE_MS = 25, LINE_SIZE = 4096, RETRY_MS = 1000 };

struct screen {
	struct live_view *v;
	struct live_feed *f;
	const char *run_dir;
	uint64_t due_ns; /* to ask, or to connect, again */
	bool utf8;
	bool lost;	       /* the message says so */
	unsigned int nr_empty; /* turns in a row in which input was there, but no key */
};

/* ---- drawing --------------------------------------------------------------------------------- */

enum { PAIR_HOT = 1, PAIR_WARM };

static void begin_colours(void)
{
	const char *none = getenv("NO_COLOR");

	if ((none && *none) || !has_colors())
		return;
	start_color();
	use_default_colors();
	init_pair(PAIR_HOT, COLOR_RED, -1);
	init_pair(PAIR_WARM, COLOR_YELLOW, -1);
}

static attr_t look_of(enum live_style style)
{
	switch (style) {
	case LIVE_TITLE:
		return A_BOLD;
	case LIVE_HEADS:
	case LIVE_SELECTED:
		return A_REVERSE;
	case LIVE_HOT:
		return (attr_t)COLOR_PAIR(PAIR_HOT) | A_BOLD;
	case LIVE_WARM:
		return (attr_t)COLOR_PAIR(PAIR_WARM);
	case LIVE_DIM:
		return A_DIM;
	case LIVE_PLAIN:
		break;
	}
	return A_NORMAL;
}

/* A terminal that has no such characters shows others. */
static void to_ascii(char *text)
{
	char *to = text;

	for (; *text; text++)
		if (((unsigned char)*text & 0xc0) != 0x80)
			*to++ = (unsigned char)*text > 0x7e ? '?' : *text;
	*to = '\0';
}

static void draw(const struct screen *s)
{
	char line[LINE_SIZE];

	erase();
	for (unsigned int y = 0; y < s->v->height; y++) {
		enum live_style style = live_view_line(s->v, y, line, sizeof(line));
		attr_t look = look_of(style);

		if (!s->utf8)
			to_ascii(line);
		live_text_cut(line, s->v->width);
		attrset((int)look);
		move((int)y, 0);
		clrtoeol();
		/* The bar is as wide as the screen. */
		if (look & A_REVERSE)
			mvhline((int)y, 0, ' ' | look, (int)s->v->width);
		mvaddstr((int)y, 0, line);
	}
	attrset(A_NORMAL);
	refresh();
}

/* ---- keys ------------------------------------------------------------------------------------ */

static int key_of(int c)
{
	static const struct {
		int from, to;
	} keys[] = {
		{ KEY_UP, LIVE_UP },	      { KEY_DOWN, LIVE_DOWN },
		{ KEY_PPAGE, LIVE_PAGE_UP },  { KEY_NPAGE, LIVE_PAGE_DOWN },
		{ KEY_HOME, LIVE_HOME },      { KEY_END, LIVE_END },
		{ KEY_ENTER, LIVE_ENTER },    { '\r', LIVE_ENTER },
		{ '\n', LIVE_ENTER },	      { KEY_RIGHT, LIVE_ENTER },
		{ KEY_BACKSPACE, LIVE_BACK }, { 0x7f, LIVE_BACK },
		{ '\b', LIVE_BACK },	      { ESCAPE, LIVE_BACK },
		{ KEY_LEFT, LIVE_BACK },
	};

	for (size_t i = 0; i < sizeof(keys) / sizeof(*keys); i++)
		if (keys[i].from == c)
			return keys[i].to;
	return c;
}

/* Input that is ready but gives no key, twice, is at its end: a signal may explain it once. */
static int take_keys(struct screen *s, bool ready)
{
	int c, r = 0;

	s->nr_empty = ready ? s->nr_empty + 1 : 0;
	while (r >= 0 && (c = getch()) != ERR) {
		s->nr_empty = 0;
		if (c == KEY_RESIZE)
			live_view_resize(s->v, (unsigned int)COLS, (unsigned int)LINES);
		else
			r = live_view_key(s->v, key_of(c));
	}
	if (s->nr_empty > 1)
		s->v->quit = true;
	return r;
}

/* ---- the daemon ------------------------------------------------------------------------------ */

static void wait_ms(struct screen *s, unsigned int ms)
{
	s->due_ns = base_now_ns() + (uint64_t)ms * 1000000;
}

/* It may come again. */
static void lose(struct screen *s, const struct base_err *why)
{
	live_feed_close(s->f);
	s->lost = true;
	snprintf(s->v->message, sizeof(s->v->message), "%.100s; trying again", why->text);
	wait_ms(s, RETRY_MS);
}

static void ask(struct screen *s)
{
	struct base_err err = { 0 };
	int r = 0;

	if (s->f->fd < 0)
		r = live_feed_open(s->f, s->run_dir, &err);
	if (r >= 0)
		r = live_feed_ask(s->f, &err);
	if (r < 0)
		lose(s, &err);
	else
		wait_ms(s, LIVE_ASK_MS);
}

static void time_of_day(char *out, size_t size)
{
	time_t now = time(NULL);
	struct tm tm;

	if (!localtime_r(&now, &tm) || !strftime(out, size, "%H:%M:%S", &tm))
		*out = '\0';
}

static int take_answer(struct screen *s)
{
	struct profdb_workloads *w = NULL;
	struct base_err err = { 0 };
	int r = live_feed_read(s->f, &w, &err);
	char clock[16];

	if (r < 0)
		lose(s, &err);
	if (r <= 0 || !w)
		return 0;
	s->v->all = s->f->head.all;
	if (s->lost)
		s->v->message[0] = '\0';
	s->lost = false;
	live_sums_add(s->v->sums, w, s->f->head.ns);
	time_of_day(clock, sizeof(clock));
	return live_view_samples(s->v, clock);
}

/* ---- the loop -------------------------------------------------------------------------------- */

static int ms_left(const struct screen *s)
{
	uint64_t now = base_now_ns();

	return now >= s->due_ns ? 0 : (int)((s->due_ns - now) / 1000000 + 1);
}

static int turn(struct screen *s)
{
	struct pollfd fds[] = { { .fd = STDIN_FILENO, .events = POLLIN },
				{ .fd = s->f->fd, .events = POLLIN } };
	bool asked = s->f->fd >= 0 && s->f->asked;
	int r;

	/* One question at a time: while it is not answered, nothing else is due. */
	if (poll(fds, s->f->fd >= 0 ? 2 : 1, asked ? -1 : ms_left(s)) < 0 && errno != EINTR)
		return -errno;
	if (fds[0].revents & (POLLHUP | POLLERR))
		s->v->quit = true;
	r = take_keys(s, fds[0].revents & POLLIN);
	if (r >= 0 && s->f->fd >= 0 && fds[1].revents)
		r = take_answer(s);
	if (r >= 0 && !ms_left(s) && !(s->f->fd >= 0 && s->f->asked))
		ask(s);
	return r;
}

static int loop(struct screen *s)
{
	int r = 0;

	ask(s);
	while (r >= 0 && !s->v->quit) {
		draw(s);
		r = turn(s);
	}
	return r;
}

int live_screen_run(struct live_view *v, struct live_feed *f, const char *run_dir,
		    struct base_err *err)
{
	struct screen s = { .v = v, .f = f, .run_dir = run_dir };
	SCREEN *terminal;
	int r;

	setlocale(LC_CTYPE, "");
	s.utf8 = MB_CUR_MAX > 1;
	terminal = newterm(NULL, stdout, stdin);
	if (!terminal) {
		base_fail(err, -DCPI_EUNSUPPORTED, "the terminal is not known to ncurses");
		base_hint(err, "set TERM, or print a table with 'dcpitop -batch SECONDS'");
		return -DCPI_EUNSUPPORTED;
	}
	set_escdelay(ESCAPE_MS);
	cbreak();
	noecho();
	keypad(stdscr, true);
	nodelay(stdscr, true);
	curs_set(0);
	begin_colours();
	live_view_resize(v, (unsigned int)COLS, (unsigned int)LINES);
	r = loop(&s);
	endwin();
	delscreen(terminal);
	return r < 0 ? base_fail_errno(err, r, "cannot show the samples") : 0;
}
