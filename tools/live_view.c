/* SPDX-License-Identifier: BSD-2-Clause */
/* The rows of the live view as lines of text, and what keys change. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <wchar.h>

#include "demangle.h"
#include "live.h"
#include "report.h"

static unsigned int live_view_body(const struct live_view *v);
static void live_list_close(struct live_view *v);

/* The instructions of a procedure in the live view, with their shares. */

enum { LINES_WIDTH = 110 /* with so many columns, source lines have one */, LINE_COLUMN = 24 };

static uint64_t count_of(const struct live_view *v, const struct analysis_unit *u)
{
	return u->count && v->query.event < v->sums->a->nr_events ? u->count[v->query.event] : 0;
}

static size_t hottest(const struct live_view *v)
{
	size_t best = 0;

	for (size_t i = 1; i < v->listing->nr_units; i++)
		if (count_of(v, &v->listing->units[i]) > count_of(v, &v->listing->units[best]))
			best = i;
	return best;
}

static void show_hottest(struct live_view *v)
{
	size_t body = live_view_body(v);

	v->line = hottest(v);
	v->first_line = v->line > body / 2 ? v->line - body / 2 : 0;
}

static void set_title(struct live_view *v, const struct live_row *row)
{
	snprintf(v->title, sizeof(v->title), "%s in %s", row->name, row->image);
}

/* Open the listing of the selected row. -ENOENT: it has no code to list. */
static int live_list_open(struct live_view *v, const struct live_row *row)
{
	const struct image_symbol *symbol;
	struct base_err err = { 0 };
	struct image *img = NULL;
	int r = live_sums_profile(v->sums, v->shown, &v->query, row->ai);

	if (r < 0 || analysis_image_open(v->sums->a, row->ai, &img, &err) < 0)
		return -ENOENT;
	symbol = image_symbol_at(img, row->vaddr);
	if (!symbol) {
		image_close(img);
		return -ENOENT;
	}
	live_list_close(v);
	r = analysis_listing_open(v->sums->a, row->ai, img, symbol, NULL, &v->listing, &err);
	if (r < 0)
		return -ENOENT;
	v->listed = row->ai;
	set_title(v, row);
	show_hottest(v);
	return 0;
}

/* The image is open: the same listing, with counts of now. */
static int live_list_count(struct live_view *v)
{
	struct analysis_listing *old = v->listing, *l = NULL;
	struct image_symbol symbol = old->symbol;
	const struct image_symbol *now;
	struct base_err err = { 0 };
	struct image *img;
	int r = live_sums_profile(v->sums, v->shown, &v->query, v->listed);

	if (r < 0)
		return r;
	img = analysis_listing_take_image(old);
	now = image_symbol_at(img, symbol.vaddr);
	r = analysis_listing_open(v->sums->a, v->listed, img, now ? now : &symbol, NULL, &l, &err);
	analysis_listing_close(old);
	v->listing = l;
	if (r < 0)
		v->page = LIVE_ROWS;
	return r < 0 ? 0 : r;
}

static void live_list_close(struct live_view *v)
{
	analysis_listing_close(v->listing);
	v->listing = NULL;
}

static void put_source(const struct live_view *v, const struct analysis_unit *u, char *out,
		       size_t size)
{
	const char *file =
		u->line && u->file < v->listing->nr_files ? v->listing->files[u->file] : NULL;
	char text[LINE_COLUMN + 1] = "";

	if (v->width < LINES_WIDTH)
		return;
	if (file)
		snprintf(text, sizeof(text), "%s:%u", base_path_name(file), u->line);
	snprintf(out, size, "%-*s ", LINE_COLUMN, text);
}

static enum live_style put_unit(const struct live_view *v, size_t i, char *out, size_t size)
{
	const struct analysis_unit *u = &v->listing->units[i];
	uint64_t n = count_of(v, u), all = v->listing->total[v->query.event];
	double share = all ? 100.0 * (double)n / (double)all : 0;
	char text[400], source[40] = "", part[40] = "";

	analysis_unit_text(v->listing, u, text, sizeof(text));
	put_source(v, u, source, sizeof(source));
	if (n)
		snprintf(part, sizeof(part), "%6.2f%% %9" PRIu64, share, n);
	snprintf(out, size, "%17s  %s%8" PRIx64 "  %s", part, source, u->vaddr, text);
	return i == v->line ? LIVE_SELECTED : share >= 10 ? LIVE_HOT : n ? LIVE_WARM : LIVE_PLAIN;
}

static void put_head(const struct live_view *v, char *out, size_t size)
{
	uint64_t n = v->listing->total[v->query.event];

	snprintf(out, size, "%.1f%% of all, %" PRIu64 " samples: %s",
		 v->rows.total ? 100.0 * (double)n / (double)v->rows.total : 0, n, v->title);
}

/* @y 0: the procedure; 1: heads; the instructions. */
static enum live_style live_list_line(const struct live_view *v, unsigned int y, char *out,
				      size_t size)
{
	size_t i = v->first_line + y - 2;

	if (y == 0) {
		put_head(v, out, size);
		return LIVE_PLAIN;
	}
	if (y == 1) {
		snprintf(out, size, "%7s %9s  %s%8s  instruction", "%", "samples",
			 v->width < LINES_WIDTH ? "" : "line                     ", "address");
		return LIVE_HEADS;
	}
	return i < v->listing->nr_units ? put_unit(v, i, out, size) : LIVE_PLAIN;
}

/* Lengths of time to choose from, in seconds. */
static const unsigned int windows[] = { 1, 5, 15, 60 };
enum { NR_WINDOWS = sizeof(windows) / sizeof(*windows) };

/* Lines of the screen above and below the rows. */
enum { HEAD = 3, FOOT = 1, NUMBERS = 28, NAME_MIN = 20 };

static const char *const sorts[] = { "samples", "name", "image" };

static const char *const help[] = {
	"p  i       procedures; images",
	"w  W       workloads by the next key, the one before: comm, exe, pid, uid,",
	"           cgroup, unit, container, thread, label",
	"Enter      a procedure's instructions; the procedures of an image or workload",
	"Esc        back",
	"/          only rows whose name contains a text; Esc shows all again",
	"space      freeze, or continue",
	"s  r       sort by samples, name, image; reverse the order",
	"+  -       samples of a longer or shorter time",
	"e          the next event",
	"z          the idle task: left out, or a row like others",
	"arrows, PgUp PgDn Home End, k j g G: move",
	"q          leave",
	"",
	"CPU%: percent of one CPU, where the event tells time",
	"%:    percent of the samples that are chosen, but for the text behind /",
};

/* ---- what is shown --------------------------------------------------------------------------- */

void live_view_init(struct live_view *v, struct live_sums *s)
{
	*v = (struct live_view){ .sums = s, .window = 1, .width = 80, .height = 24 };
	v->query.text = v->text;
}

void live_view_release(struct live_view *v)
{
	live_list_close(v);
	live_rows_release(&v->rows);
	profdb_workloads_free(v->shown);
	v->shown = NULL;
	free(v->only);
	v->only = NULL;
	v->query.only_name = NULL;
}

/* Rows of the screen between heads and help. */
static unsigned int live_view_body(const struct live_view *v)
{
	return v->height > HEAD + FOOT ? v->height - HEAD - FOOT : 0;
}

static size_t *cursor(struct live_view *v)
{
	return v->page == LIVE_LISTING ? &v->line : &v->selected;
}

static size_t nr_lines(const struct live_view *v)
{
	return v->page == LIVE_LISTING ? v->listing->nr_units : v->rows.nr;
}

/* The cursor is on a line, and that on the screen. */
static void scroll(struct live_view *v)
{
	size_t *at = cursor(v), nr = nr_lines(v), body = live_view_body(v);
	size_t *first = v->page == LIVE_LISTING ? &v->first_line : &v->first;

	if (*at >= nr)
		*at = nr ? nr - 1 : 0;
	if (*first > *at)
		*first = *at;
	if (body && *at >= *first + body)
		*first = *at - body + 1;
	if (nr <= *first + body)
		*first = nr > body ? nr - body : 0;
}

static bool is_row(const struct live_row *a, const char *name, const char *image)
{
	return strcmp(a->name, name) == 0 && strcmp(a->image, image) == 0;
}

/* A row that the user chose stays so when it moves; the first place is always the first. */
static int make_rows(struct live_view *v)
{
	const struct live_row *old =
		v->selected && v->selected < v->rows.nr ? &v->rows.v[v->selected] : NULL;
	char *name = old ? strdup(old->name) : NULL, *image = old ? strdup(old->image) : NULL;
	int r = v->shown ? live_rows_make(v->sums, v->shown, &v->query, &v->rows) : 0;

	for (size_t i = 0; name && image && i < v->rows.nr; i++)
		if (is_row(&v->rows.v[i], name, image))
			v->selected = i;
	free(name);
	free(image);
	if (r >= 0 && v->page == LIVE_LISTING)
		r = live_list_count(v);
	scroll(v);
	return r;
}

static int show_last(struct live_view *v)
{
	struct profdb_workloads *w = live_sums_last(v->sums, windows[v->window], &v->ns);

	if (!w)
		return -ENOMEM;
	profdb_workloads_free(v->shown);
	v->shown = w;
	return make_rows(v);
}

/* The events are known with the first rows. */
static int show_first(struct live_view *v)
{
	int r = show_last(v), event;

	event = v->event ? analysis_event_find(v->sums->a, v->event, NULL)
			 : (int)analysis_event_default(v->sums->a);
	if (event < 0)
		snprintf(v->message, sizeof(v->message), "no samples of event '%s'", v->event);
	v->query.event = event < 0 ? 0 : (size_t)event;
	return r < 0 ? r : make_rows(v);
}

int live_view_samples(struct live_view *v, const char *clock)
{
	if (v->frozen)
		return 0;
	snprintf(v->clock, sizeof(v->clock), "%s", clock);
	return v->shown ? show_last(v) : show_first(v);
}

void live_view_resize(struct live_view *v, unsigned int width, unsigned int height)
{
	v->width = width;
	v->height = height;
	scroll(v);
}

/* ---- keys ------------------------------------------------------------------------------------ */

static void restart(struct live_view *v)
{
	v->selected = v->first = 0;
}

static int show_by(struct live_view *v, enum live_by by)
{
	v->query.by = by;
	restart(v);
	return make_rows(v);
}

static int next_key(struct live_view *v, unsigned int step)
{
	if (v->query.by == LIVE_WORKLOADS)
		v->query.key = (v->query.key + step) % WORKLOAD_NR_KEYS;
	return show_by(v, LIVE_WORKLOADS);
}

/* Names may be as long as paths, and are compared as a whole. */
static int choose_workload(struct live_view *v, const char *group)
{
	char *name = strdup(group);

	if (!name)
		return -ENOMEM;
	free(v->only);
	v->only = name;
	v->query.only_key = v->query.key;
	v->query.only_name = v->only;
	return show_by(v, LIVE_PROCEDURES);
}

static int enter(struct live_view *v)
{
	struct live_row *row = v->selected < v->rows.nr ? &v->rows.v[v->selected] : NULL;

	if (!row)
		return 0;
	if (row->procedure) {
		if (live_list_open(v, row) < 0)
			snprintf(v->message, sizeof(v->message), "no code of it can be listed");
		else
			v->page = LIVE_LISTING;
		scroll(v);
		return 0;
	}
	if (v->query.by == LIVE_IMAGES) {
		v->query.only = row->ai;
	} else if (v->query.by == LIVE_WORKLOADS) {
		return choose_workload(v, row->group);
	} else {
		return 0;
	}
	return show_by(v, LIVE_PROCEDURES);
}

/* Out of the listing; to the rows that the last Enter was on; then the filter goes. */
static int back(struct live_view *v)
{
	if (v->page == LIVE_LISTING) {
		live_list_close(v);
		v->page = LIVE_ROWS;
		return make_rows(v);
	}
	if (v->query.only) {
		v->query.only = NULL;
		return show_by(v, LIVE_IMAGES);
	}
	if (v->query.only_name) {
		v->query.key = v->query.only_key;
		v->query.only_name = NULL;
		return show_by(v, LIVE_WORKLOADS);
	}
	v->text[0] = '\0';
	restart(v);
	return make_rows(v);
}

static int set_window(struct live_view *v, int step)
{
	int next = (int)v->window + step;

	if (next < 0 || next >= NR_WINDOWS)
		return 0;
	v->window = (unsigned int)next;
	if (v->frozen)
		snprintf(v->message, sizeof(v->message), "frozen: the length counts later");
	return v->frozen ? 0 : show_last(v);
}

static int freeze(struct live_view *v)
{
	v->frozen = !v->frozen;
	return v->frozen || !v->sums->nr ? 0 : show_last(v);
}

static int next_event(struct live_view *v)
{
	size_t nr = v->sums->a->nr_events;

	if (nr > 1 && v->query.event < nr)
		v->query.event = (v->query.event + 1) % nr;
	return make_rows(v);
}

static int next_sort(struct live_view *v)
{
	v->query.sort = (v->query.sort + 1) % LIVE_NR_SORTS;
	return make_rows(v);
}

/* The text of the filter is written; each key shows what it leaves. */
static int prompt_key(struct live_view *v, int key)
{
	size_t len = strlen(v->text);

	if (key == LIVE_ENTER)
		v->prompting = false;
	else if (key == LIVE_BACK && len)
		v->text[len - 1] = '\0';
	else if (key == LIVE_BACK)
		v->prompting = false;
	else if (key >= ' ' && key < 0x7f && len + 1 < sizeof(v->text))
		v->text[len] = (char)key, v->text[len + 1] = '\0';
	restart(v);
	return make_rows(v);
}

/* True: it was one of these. */
static bool move_key(struct live_view *v, int key)
{
	size_t *at = cursor(v), nr = nr_lines(v), page = live_view_body(v);

	if (key == LIVE_UP || key == 'k')
		*at -= *at > 0;
	else if (key == LIVE_DOWN || key == 'j')
		*at += *at + 1 < nr;
	else if (key == LIVE_PAGE_UP)
		*at -= *at < page ? *at : page;
	else if (key == LIVE_PAGE_DOWN)
		*at += page;
	else if (key == LIVE_HOME || key == 'g')
		*at = 0;
	else if (key == LIVE_END || key == 'G')
		*at = nr;
	else
		return false;
	scroll(v);
	return true;
}

static int page_key(struct live_view *v, int key)
{
	switch (key) {
	case 'p':
		return show_by(v, LIVE_PROCEDURES);
	case 'i':
		return show_by(v, LIVE_IMAGES);
	case 'w':
		return next_key(v, 1);
	case 'W':
		return next_key(v, WORKLOAD_NR_KEYS - 1);
	case 's':
		return next_sort(v);
	case 'r':
		v->query.reverse = !v->query.reverse;
		return make_rows(v);
	case 'z':
		v->query.idle = !v->query.idle;
		return make_rows(v);
	case 'e':
		return next_event(v);
	case '/':
		v->prompting = true;
		return 0;
	case LIVE_ENTER:
		return enter(v);
	}
	return 0;
}

int live_view_key(struct live_view *v, int key)
{
	v->message[0] = '\0';
	if (v->page == LIVE_HELP) {
		v->page = LIVE_ROWS;
		return 0;
	}
	if (v->prompting)
		return prompt_key(v, key);
	if (move_key(v, key))
		return 0;
	switch (key) {
	case 'q':
		v->quit = true;
		return 0;
	case ' ':
		return freeze(v);
	case '+':
	case '-':
		return set_window(v, key == '+' ? 1 : -1);
	case LIVE_BACK:
		return back(v);
	case 'h':
	case '?':
		if (v->page == LIVE_ROWS)
			v->page = LIVE_HELP;
		return 0;
	}
	return v->page == LIVE_ROWS ? page_key(v, key) : 0;
}

/* ---- lines ----------------------------------------------------------------------------------- */

/* Text that is written from left to right, up to the width of the screen. */
struct pen {
	char *out;
	size_t size, len, width;
};

static void put(struct pen *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void put(struct pen *p, const char *fmt, ...)
{
	va_list args;
	int n;

	va_start(args, fmt);
	n = vsnprintf(p->out + p->len, p->size - p->len, fmt, args);
	va_end(args);
	if (n > 0)
		p->len += (size_t)n < p->size - p->len ? (size_t)n : p->size - p->len - 1;
}

/* In so many columns, shortened where it must be. */
static void put_wide(struct pen *p, const char *text, size_t width, bool last)
{
	char *shorter =
		base_text_width(text) > width && width >= 8 ? demangle_shorten(text, width) : NULL;
	const char *shown = shorter ? shorter : text;
	size_t len = base_text_width(shown);

	put(p, "%s", shown);
	if (!last)
		put(p, "%*s", (int)(len < width ? width - len : 0), "");
	free(shorter);
}

static const char *event_name(const struct live_view *v)
{
	return v->query.event < v->sums->a->nr_events ? v->sums->a->events[v->query.event].name
						      : "";
}

/* Seconds of a CPU that a sample of the event stands for; 0: it does not tell time. */
static double sample_seconds(const struct live_sums *s, size_t event)
{
	const struct analysis_event *e = event < s->a->nr_events ? &s->a->events[event] : NULL;

	return e && report_is_clock(e->name) ? (double)e->period / 1e9 : 0;
}

static double cpus(const struct live_view *v, uint64_t samples)
{
	double each = sample_seconds(v->sums, v->query.event);

	return v->ns ? (double)samples * each * 1e9 / (double)v->ns : 0;
}

static void put_title(const struct live_view *v, struct pen *p)
{
	uint64_t all = v->rows.all + v->rows.idle;

	/* Narrow terminals lack the end of the line. */
	put(p, "dcpitop %s%s  %s", v->clock, v->frozen ? " FROZEN" : "", event_name(v));
	if (sample_seconds(v->sums, v->query.event) > 0)
		put(p, "  busy %.2f CPUs", cpus(v, v->rows.all));
	if (v->rows.idle)
		put(p, ", idle %.1f%%", 100.0 * (double)v->rows.idle / (double)all);
	put(p, "  %" PRIu64 " samples in %.1f s", all, (double)v->ns / 1e9);
}

static void put_choice(const struct live_view *v, struct pen *p)
{
	static const char *const by[] = { "procedures", "images", "workloads by " };

	put(p, "%s%s", by[v->query.by],
	    v->query.by == LIVE_WORKLOADS ? workload_key_name(v->query.key) : "");
	if (!v->all)
		put(p, " (your programs)");
	if (v->query.only)
		put(p, " of %s", base_path_name(v->query.only->name));
	if (v->query.only_name)
		put(p, " of %s '%s'", workload_key_name(v->query.only_key), v->query.only_name);
	put(p, ", last %u s", windows[v->window]);
	if (v->query.sort || v->query.reverse)
		put(p, ", sorted by %s%s", sorts[v->query.sort],
		    v->query.reverse ? ", reversed" : "");
	if (v->text[0])
		put(p, ", with '%s'", v->text);
	put(p, ": %zu rows", v->rows.nr);
}

/* Columns of names: all that is left, and three fifths where an image stands behind it. */
static size_t name_width(const struct live_view *v)
{
	size_t left = v->width > NUMBERS + NAME_MIN ? v->width - NUMBERS : NAME_MIN;

	return v->query.by == LIVE_PROCEDURES ? left * 3 / 5 : left;
}

static size_t image_width(const struct live_view *v)
{
	size_t name = name_width(v) + NUMBERS;

	return v->width > name + 2 ? v->width - name - 2 : 8;
}

static void put_heads(const struct live_view *v, struct pen *p)
{
	put(p, "%7s %7s %9s   ", "CPU%", "%", "samples");
	put_wide(p,
		 v->query.by == LIVE_WORKLOADS ? workload_key_name(v->query.key)
		 : v->query.by == LIVE_IMAGES  ? "image"
					       : "procedure",
		 name_width(v), false);
	if (v->query.by == LIVE_PROCEDURES)
		put(p, "  image");
}

/* Where there is no room for its path, the name says most. */
static void put_image(const struct live_view *v, const char *path, struct pen *p)
{
	bool fits = base_text_width(path) <= image_width(v);

	put_wide(p, fits ? path : base_path_name(path), image_width(v), true);
}

static enum live_style put_row(const struct live_view *v, size_t i, struct pen *p)
{
	const struct live_row *row = &v->rows.v[i];
	double share = v->rows.total ? 100.0 * (double)row->count / (double)v->rows.total : 0;

	if (sample_seconds(v->sums, v->query.event) > 0)
		put(p, "%7.1f ", 100 * cpus(v, row->count));
	else
		put(p, "%8s", "");
	put(p, "%6.2f%% %9" PRIu64 "   ", share, row->count);
	put_wide(p, row->name, name_width(v), v->query.by != LIVE_PROCEDURES);
	if (v->query.by == LIVE_PROCEDURES && *row->image) {
		put(p, "  ");
		put_image(v, row->image, p);
	}
	return i == v->selected ? LIVE_SELECTED
	       : share >= 10	? LIVE_HOT
	       : share >= 1	? LIVE_WARM
				: LIVE_PLAIN;
}

static enum live_style put_foot(const struct live_view *v, struct pen *p)
{
	if (v->prompting)
		put(p, "only rows with: %s_", v->text);
	else if (v->message[0])
		put(p, "%s", v->message);
	else if (v->page == LIVE_HELP)
		put(p, "any key: back");
	else if (v->page == LIVE_LISTING)
		put(p, "Esc back   space %s   + - time   arrows move   q leave",
		    v->frozen ? "continue" : "freeze");
	else
		put(p, "p procs  i images  w workloads  Enter in  / filter  space %s  s sort  h q",
		    v->frozen ? "continue" : "freeze");
	return v->prompting || v->message[0] ? LIVE_HEADS : LIVE_DIM;
}

static enum live_style put_body(const struct live_view *v, unsigned int y, struct pen *p)
{
	size_t i = v->first + y;

	if (v->page == LIVE_HELP) {
		if (y < sizeof(help) / sizeof(*help))
			put(p, "  %s", help[y]);
		return LIVE_PLAIN;
	}
	if (i < v->rows.nr)
		return put_row(v, i, p);
	if (!y && !v->sums->nr)
		put(p, "  waiting for the first second …");
	else if (!y)
		put(p, "  no samples%s", v->text[0] ? " with that text (Esc shows all)" : "");
	return LIVE_PLAIN;
}

/* A character that the locale does not know has one column. */
static size_t columns_of(uint32_t c)
{
	int n = wcwidth((wchar_t)c);

	return n < 0 ? 1 : (size_t)n;
}

void live_text_cut(char *text, size_t width)
{
	size_t len = 0, columns = 0;

	while (text[len]) {
		uint32_t c = '?';
		size_t n = base_utf8(text + len, strlen(text + len), &c);

		columns += columns_of(c);
		if (columns > width)
			break;
		len += n ? n : 1;
	}
	text[len] = '\0';
}

enum live_style live_view_line(const struct live_view *v, unsigned int y, char *out, size_t size)
{
	struct pen p = { .out = out, .size = size, .width = v->width };
	enum live_style style = LIVE_PLAIN;

	*out = '\0';
	if (y + 1 == v->height) {
		style = put_foot(v, &p);
	} else if (y == 0) {
		put_title(v, &p);
		style = LIVE_TITLE;
	} else if (v->page == LIVE_LISTING) {
		style = live_list_line(v, y - 1, out, size);
	} else if (y == 1) {
		put_choice(v, &p);
	} else if (y == 2) {
		put_heads(v, &p);
		style = LIVE_HEADS;
	} else {
		style = put_body(v, y - HEAD, &p);
	}
	base_text_clean(out);
	live_text_cut(out, v->width);
	return style;
}
