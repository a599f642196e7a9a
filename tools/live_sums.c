/* SPDX-License-Identifier: BSD-2-Clause */
/* Samples of the last seconds are kept, and summed by procedure, image or workload. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "by.h"
#include "demangle.h"
#include "live.h"

/*
 * The daemon tells an ordinary user no path of a file that may lie in another user's folder. The
 * user's own processes have the file mapped too, and /proc says from where.
 */

enum { PIDS_MAX = 64 };

/* The path on a line of /proc/PID/maps, if that is of code in a file. */
static const char *code_of(char *line)
{
	char *perms = strchr(line, ' '), *path = strchr(line, '/');

	if (!perms || strlen(perms) < 4 || perms[3] != 'x' || !path)
		return NULL;
	path[strcspn(path, "\n")] = '\0';
	return path;
}

/* An image is known by its identity, and gets the path for its name. */
static void name_image(struct live_sums *s, const char *path)
{
	struct analysis_image *ai;
	char *name;

	if (base_map_get(&s->looked, path, strlen(path)) ||
	    base_map_set(&s->looked, path, strlen(path), s) < 0 ||
	    analysis_image_add(s->a, path, &ai, NULL) < 0 || strcmp(ai->name, LIVE_UNTOLD) != 0)
		return;
	name = strdup(path);
	if (!name)
		return;
	free(ai->name);
	ai->name = name;
}

static void look_in(struct live_sums *s, int32_t pid)
{
	char file[64], *line = NULL;
	const char *path;
	size_t cap = 0;
	FILE *f;

	snprintf(file, sizeof(file), "/proc/%d/maps", pid);
	f = fopen(file, "re");
	while (f && getline(&line, &cap, f) > 0) {
		path = code_of(line);
		if (path)
			name_image(s, path);
	}
	free(line);
	if (f)
		fclose(f);
}

/* Images without a path that are mapped by the processes of @w get it. */
static void live_own_find(struct live_sums *s, const struct profdb_workloads *w)
{
	size_t nr = profdb_workloads_nr(w);

	/* A file that was not there, or not mapped, may be now. */
	base_map_release(&s->looked);
	for (size_t i = 0; i < nr && i < PIDS_MAX; i++) {
		int32_t pid = profdb_workloads_workload(w, i)->pid;

		if (pid > 0)
			look_in(s, pid);
	}
}

/* An image that was not found, or lacks a routine, may come with the next flush. */
#define REOPEN_NS UINT64_C(3000000000)

struct live_image {
	struct image *img; /* NULL: it was not found, or is closed */
	uint64_t tried_ns;
	uint64_t used; /* number of answers then */
};

/* An image that was not looked at for as long as answers are kept gives its descriptor back. */
static void close_unused(const struct live_sums *s)
{
	void *value;

	for (size_t pos = 0; base_map_next(&s->opened, &pos, &value);) {
		struct live_image *t = value;

		if (!t->img || s->nr_added - t->used <= LIVE_NR_SECONDS)
			continue;
		image_close(t->img);
		t->img = NULL;
		t->tried_ns = 0;
	}
}

/* ---- the last seconds ------------------------------------------------------------------------ */

void live_sums_add(struct live_sums *s, struct profdb_workloads *w, uint64_t ns)
{
	if (s->nr == LIVE_NR_SECONDS)
		profdb_workloads_free(s->seconds[--s->nr].w);
	memmove(s->seconds + 1, s->seconds, s->nr++ * sizeof(*s->seconds));
	s->seconds[0] = (struct live_second){ w, ns };
	s->nr_added++;
	close_unused(s);
}

struct profdb_workloads *live_sums_last(const struct live_sums *s, double seconds, uint64_t *ns)
{
	struct profdb_workloads *w = profdb_workloads_new();
	int r = w ? 0 : -ENOMEM;

	*ns = 0;
	/* The part that ends the window counts if most of it is inside. */
	for (size_t i = 0; r >= 0 && i < s->nr; i++) {
		if (i && (double)*ns + (double)s->seconds[i].ns / 2 > seconds * 1e9)
			break;
		r = profdb_workloads_merge(w, s->seconds[i].w);
		*ns += s->seconds[i].ns;
	}
	if (r >= 0)
		return w;
	profdb_workloads_free(w);
	return NULL;
}

/* ---- images ---------------------------------------------------------------------------------- */

static struct live_image *image_of(struct live_sums *s, struct analysis_image *ai)
{
	struct live_image *t = base_map_get(&s->opened, &ai, sizeof(ai));

	if (t)
		return t;
	t = calloc(1, sizeof(*t));
	if (!t || base_map_set(&s->opened, &ai, sizeof(ai), t) == 0)
		return t;
	free(t);
	return NULL;
}

static void look_for(struct live_sums *s, const struct profdb_workloads *w,
		     struct analysis_image *ai, struct live_image *t)
{
	uint64_t now = base_now_ns();

	if (t->tried_ns && now - t->tried_ns < REOPEN_NS)
		return;
	t->tried_ns = now;
	image_close(t->img);
	t->img = NULL;
	/* All images of own processes are found at once. */
	if (strcmp(ai->name, LIVE_UNTOLD) == 0 &&
	    (!s->looked_ns || now - s->looked_ns >= REOPEN_NS)) {
		s->looked_ns = now;
		live_own_find(s, w);
	}
	analysis_image_open(s->a, ai, &t->img, NULL);
}

/* The routine at @off; NULL: none is known. */
static const struct image_symbol *symbol_at(struct live_sums *s, const struct profdb_workloads *w,
					    struct analysis_image *ai, uint64_t off)
{
	struct live_image *t = ai->kind == PROFDB_NAMED ? NULL : image_of(s, ai);
	const struct image_symbol *symbol = NULL;
	uint64_t vaddr;

	for (int i = 0; t && !symbol && i < 2; i++) {
		t->used = s->nr_added;
		if (!t->img)
			look_for(s, w, ai, t);
		if (t->img && image_vaddr(t->img, off, &vaddr) >= 0)
			symbol = image_symbol_at(t->img, vaddr);
		/* A pseudo-image grows with each flush. */
		if (symbol || ai->kind != PROFDB_DYNAMIC)
			break;
		look_for(s, w, ai, t);
	}
	return symbol;
}

static const char *label_of(const struct analysis_image *ai)
{
	bool waits = ai->kind == PROFDB_DYNAMIC &&
		     (ai->state == ANALYSIS_MISSING || ai->state == ANALYSIS_OPEN);

	return waits ? "(not yet saved)" : analysis_image_label(ai);
}

/* ---- rows ------------------------------------------------------------------------------------ */

struct making {
	struct live_sums *s;
	const struct profdb_workloads *w;
	const struct live_query *q;
	struct live_rows *rows;
	bool *chosen;			/* indexed by workload */
	struct analysis_image **images; /* indexed by image of @w */
	size_t event;			/* of @w */
	struct base_map by_key;		/* number of the row + 1 */
};

static int new_row(struct making *m, const char *name, const char *image, struct live_row **out)
{
	struct live_rows *rows = m->rows;
	struct live_row *row;

	if (base_grow(&rows->v, &rows->cap, rows->nr + 1, sizeof(*rows->v)) < 0)
		return -ENOMEM;
	row = &rows->v[rows->nr];
	*row = (struct live_row){ .name = strdup(name), .image = strdup(image) };
	if (!row->name || !row->image) {
		free(row->name);
		free(row->image);
		return -ENOMEM;
	}
	base_text_clean(row->name);
	base_text_clean(row->image);
	rows->nr++;
	*out = row;
	return 0;
}

static struct live_row *known(const struct making *m, const void *key, size_t len)
{
	uintptr_t number = (uintptr_t)base_map_get(&m->by_key, key, len);

	return number ? &m->rows->v[number - 1] : NULL;
}

static int remember(struct making *m, const void *key, size_t len)
{
	return base_map_set(&m->by_key, key, len, (void *)(uintptr_t)m->rows->nr);
}

struct place_key {
	const struct analysis_image *ai;
	uint64_t vaddr; /* UINT64_MAX: outside of procedures, or the whole image */
};

static int procedure_row(struct making *m, struct analysis_image *ai, uint64_t off,
			 struct live_row **out)
{
	/* To look for it may give an image its name. */
	bool images = m->q->by == LIVE_IMAGES && strcmp(ai->name, LIVE_UNTOLD) != 0;
	const struct image_symbol *at = images ? NULL : symbol_at(m->s, m->w, ai, off);
	const struct image_symbol *symbol = m->q->by == LIVE_PROCEDURES ? at : NULL;
	const struct place_key key = { ai, symbol ? symbol->vaddr : UINT64_MAX };
	const char *name = m->q->by == LIVE_IMAGES ? ai->name
			   : symbol		   ? demangle_shown(symbol->name)
						   : label_of(ai);
	bool alone = m->q->by == LIVE_IMAGES || ai->kind == PROFDB_NAMED;
	int r;

	*out = known(m, &key, sizeof(key));
	if (*out)
		return 0;
	r = new_row(m, name, alone ? "" : ai->name, out);
	if (r < 0)
		return r;
	(*out)->ai = ai;
	(*out)->procedure = symbol;
	(*out)->vaddr = symbol ? symbol->vaddr : 0;
	return remember(m, &key, sizeof(key));
}

/* Samples that are told of nobody in particular (docs/format/control.md). */
static bool is_of_others(const struct analysis_image *ai)
{
	return ai->kind == PROFDB_NAMED && strcmp(ai->name, "(other users)") == 0;
}

static int name_group(struct making *m, const struct profdb_workload *k,
		      const struct analysis_image *ai, const char *group, struct live_row **out)
{
	const char *missing = workload_key_missing(m->q->key, workload_is_idle(k) ? WORKLOAD_IDLE
										  : WORKLOAD_KEPT);
	char name[300];
	int r;

	if (*group && m->q->key == WORKLOAD_PID)
		snprintf(name, sizeof(name), "%s %s", group, k->comm);
	else
		snprintf(name, sizeof(name), "%s",
			 *group		    ? group
			 : is_of_others(ai) ? ai->name
					    : missing);
	r = new_row(m, name, "", out);
	if (r < 0)
		return r;
	(*out)->group = strdup(group);
	return (*out)->group ? 0 : -ENOMEM;
}

static int workload_row(struct making *m, const struct profdb_workload *k,
			const struct analysis_image *ai, struct live_row **out)
{
	const char *class = workload_is_idle(k) ? "i" : is_of_others(ai) ? "o" : "k";
	struct base_buf key = { 0 };
	int r = base_buf_append(&key, class, 1);

	if (r >= 0)
		r = workload_key_of(k, m->q->key, &key);
	if (r >= 0)
		r = base_buf_append(&key, "", 1);
	*out = r >= 0 ? known(m, key.data, key.len) : NULL;
	if (r >= 0 && !*out) {
		r = name_group(m, k, ai, (const char *)key.data + 1, out);
		if (r >= 0)
			r = remember(m, key.data, key.len);
	}
	base_buf_release(&key);
	return r < 0 ? r : 0;
}

/* ---- which samples --------------------------------------------------------------------------- */

static bool has_name(const struct profdb_workload *k, enum workload_key key, const char *name)
{
	struct base_buf text = { 0 };
	bool yes = workload_key_of(k, key, &text) >= 0 && base_buf_append(&text, "", 1) >= 0 &&
		   strcmp((const char *)text.data, name) == 0;

	base_buf_release(&text);
	return yes;
}

static int choose(struct making *m)
{
	int r = workload_mark(m->s->a, m->w, &m->s->filter, WORKLOAD_NR_KEYS, m->chosen);

	for (size_t i = 0; r >= 0 && m->q->only_name && i < profdb_workloads_nr(m->w); i++)
		m->chosen[i] = m->chosen[i] && has_name(profdb_workloads_workload(m->w, i),
							m->q->only_key, m->q->only_name);
	return r;
}

static int add_events(struct live_sums *s, const struct profdb_workloads *w)
{
	int r = 0;

	for (size_t i = 0; r >= 0 && i < profdb_workloads_nr_events(w); i++) {
		struct profdb_event e = *profdb_workloads_event(w, i);

		for (size_t k = 0; k < s->a->nr_events; k++)
			if (strcmp(s->a->events[k].name, e.name) == 0)
				s->a->events[k].period = e.period;
		r = analysis_event_add(s->a, &e);
	}
	return r;
}

/* SIZE_MAX: no sample of the event came. */
static size_t find_event(const struct making *m)
{
	size_t event[PROFDB_NR_EVENTS];

	workload_events(m->s->a, m->w, event);
	for (size_t i = 0; i < profdb_workloads_nr_events(m->w); i++)
		if (event[i] == m->q->event)
			return i;
	return SIZE_MAX;
}

static int begin(struct making *m)
{
	int r = add_events(m->s, m->w);

	m->chosen = calloc(profdb_workloads_nr(m->w) + 1, sizeof(*m->chosen));
	m->images = calloc(profdb_workloads_nr_images(m->w) + 1, sizeof(*m->images));
	if (r >= 0)
		r = m->chosen && m->images ? choose(m) : -ENOMEM;
	for (size_t i = 0; r >= 0 && i < profdb_workloads_nr_images(m->w); i++)
		r = workload_image(m->s->a, m->w, i, &m->images[i]);
	m->event = find_event(m);
	return r;
}

static void end(struct making *m)
{
	free(m->chosen);
	free(m->images);
	base_map_release(&m->by_key);
}

static int add_count(struct making *m, const struct profdb_workload_count *c)
{
	struct analysis_image *ai = m->images[c->image];
	uint64_t n = c->count[m->event];
	bool idle = by_is_idle(ai);
	struct live_row *row;
	int r;

	*(idle ? &m->rows->idle : &m->rows->all) += n;
	if (!n || !m->chosen[c->workload] || (idle && !m->q->idle) ||
	    (m->q->only && m->q->only != ai))
		return 0;
	if (m->q->by == LIVE_WORKLOADS)
		r = workload_row(m, profdb_workloads_workload(m->w, c->workload), ai, &row);
	else
		r = procedure_row(m, ai, c->off, &row);
	if (r < 0)
		return r;
	row->count += n;
	m->rows->total += n;
	return 0;
}

/* ---- order ----------------------------------------------------------------------------------- */

static int compare(const void *pa, const void *pb, void *ctx)
{
	const struct live_row *a = pa, *b = pb;
	const struct live_query *q = ctx;
	int r = 0;

	if (q->sort == LIVE_BY_NAME)
		r = strcmp(a->name, b->name);
	else if (q->sort == LIVE_BY_IMAGE)
		r = strcmp(a->image, b->image);
	if (!r)
		r = (a->count < b->count) - (a->count > b->count);
	if (q->reverse)
		r = -r;
	if (!r)
		r = strcmp(a->name, b->name);
	if (!r)
		r = strcmp(a->image, b->image);
	return r ? r : (a->vaddr > b->vaddr) - (a->vaddr < b->vaddr);
}

static void row_release(struct live_row *row)
{
	free(row->name);
	free(row->image);
	free(row->group);
}

/* Percentages stay those of all that was chosen. */
static void drop_others(struct live_rows *rows, const char *text)
{
	size_t kept = 0;

	for (size_t i = 0; i < rows->nr; i++) {
		if (strcasestr(rows->v[i].name, text) || strcasestr(rows->v[i].image, text))
			rows->v[kept++] = rows->v[i];
		else
			row_release(&rows->v[i]);
	}
	rows->nr = kept;
}

int live_rows_make(struct live_sums *s, const struct profdb_workloads *w,
		   const struct live_query *q, struct live_rows *rows)
{
	struct making m = { .s = s, .w = w, .q = q, .rows = rows };
	int r;

	live_rows_release(rows);
	r = begin(&m);
	for (size_t i = 0; r >= 0 && m.event != SIZE_MAX && i < profdb_workloads_nr_counts(w);
	     i++) {
		struct profdb_workload_count c = profdb_workloads_count(w, i);

		r = add_count(&m, &c);
	}
	if (r >= 0 && q->text && *q->text)
		drop_others(rows, q->text);
	if (r >= 0 && rows->nr)
		qsort_r(rows->v, rows->nr, sizeof(*rows->v), compare, (void *)q);
	end(&m);
	return r < 0 ? r : 0;
}

void live_rows_release(struct live_rows *rows)
{
	for (size_t i = 0; i < rows->nr; i++)
		row_release(&rows->v[i]);
	free(rows->v);
	*rows = (struct live_rows){ 0 };
}

/* ---- one image ------------------------------------------------------------------------------- */

int live_sums_profile(struct live_sums *s, const struct profdb_workloads *w,
		      const struct live_query *q, struct analysis_image *ai)
{
	struct making m = { .s = s, .w = w, .q = q };
	const struct analysis_event *e = &s->a->events[q->event];
	int event = -1, r = begin(&m);

	profdb_profile_clear(ai->profile);
	if (r >= 0)
		r = event = profdb_profile_event_add(ai->profile, e->name, e->period);
	for (size_t i = 0; r >= 0 && m.event != SIZE_MAX && i < profdb_workloads_nr_counts(w);
	     i++) {
		struct profdb_workload_count c = profdb_workloads_count(w, i);

		if (m.images[c.image] == ai && m.chosen[c.workload])
			r = profdb_profile_add(ai->profile, c.off, (size_t)event, c.count[m.event]);
	}
	end(&m);
	return r < 0 ? r : analysis_sum(s->a);
}

void live_sums_release(struct live_sums *s)
{
	void *value;

	for (size_t pos = 0; base_map_next(&s->opened, &pos, &value);) {
		image_close(((struct live_image *)value)->img);
		free(value);
	}
	base_map_release(&s->opened);
	base_map_release(&s->looked);
	while (s->nr)
		profdb_workloads_free(s->seconds[--s->nr].w);
}
