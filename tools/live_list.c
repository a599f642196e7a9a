/* SPDX-License-Identifier: BSD-2-Clause */
/* The instructions of a procedure in the live view, with their shares. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "demangle.h"
#include "live.h"

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

int live_list_open(struct live_view *v, const struct live_row *row)
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
int live_list_count(struct live_view *v)
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

void live_list_close(struct live_view *v)
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
enum live_style live_list_line(const struct live_view *v, unsigned int y, char *out, size_t size)
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
