/* SPDX-License-Identifier: BSD-2-Clause */
/* Rows of a server's answers become images, and profiles in memory; with replicates, workloads too.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fetch.h"

#define EVERYTHING "all images"
/* Bytes that a routine without a place gets. */
enum { PLACE = 16 };

/* ---- values ---------------------------------------------------------------------------------- */

/* A copy; NULL: no memory. Texts have no 0 inside: one ends there. */
static char *get_text(struct store_reader *r)
{
	size_t len;
	const char *text = store_get_string(r, &len);

	return text ? strndup(text, len) : strdup("");
}

static double get_float(struct store_reader *r)
{
	uint64_t bits = store_get_number(r, 8);
	double v;

	memcpy(&v, &bits, sizeof(v));
	return v >= 0 && v < 1e18 ? v : 0;
}

static void get_key(struct store_reader *r, struct store_key *out)
{
	const void *bytes = store_get_bytes(r, sizeof(out->bytes));

	if (bytes)
		memcpy(out->bytes, bytes, sizeof(out->bytes));
	else
		memset(out, 0, sizeof(*out));
}

/* ---- images ---------------------------------------------------------------------------------- */

/*
 * Names come first, and all of them; then as many offsets and lengths. Those above the limit are
 * skipped, as the images of others are good.
 */
static int get_symbols(struct store_reader *r, struct fetch_image *i)
{
	size_t nr = store_get_count(r, 1), len;
	size_t keep = nr < STORE_SYMBOLS_MAX ? nr : STORE_SYMBOLS_MAX;

	i->symbols = calloc(keep + 1, sizeof(*i->symbols));
	if (!i->symbols)
		return -ENOMEM;
	for (; i->nr_symbols < keep && !r->bad; i->nr_symbols++)
		if (!(i->symbols[i->nr_symbols].name = get_text(r)))
			return -ENOMEM;
	for (size_t k = keep; k < nr && !r->bad; k++)
		store_get_string(r, &len);
	r->bad |= store_get_count(r, 8) != nr;
	for (size_t k = 0; k < keep && !r->bad; k++)
		i->symbols[k].off = store_get_number(r, 8);
	store_get_bytes(r, 8 * (nr - keep));
	r->bad |= store_get_count(r, 8) != nr;
	for (size_t k = 0; k < keep && !r->bad; k++)
		i->symbols[k].len = store_get_number(r, 8);
	store_get_bytes(r, 8 * (nr - keep));
	return 0;
}

static void image_release(struct fetch_image *i)
{
	for (size_t k = 0; k < i->nr_symbols; k++)
		free((char *)i->symbols[k].name);
	free(i->symbols);
	free(i->path);
	free(i->text);
	free(i->stem);
}

static int add_image(struct fetch *f, const struct fetch_image *i)
{
	int r = base_grow(&f->v, &f->cap, f->nr + 1, sizeof(*f->v));

	if (r < 0)
		return r;
	f->v[f->nr++] = *i;
	return base_map_set(&f->by_key, &i->key, sizeof(i->key), (void *)(uintptr_t)f->nr);
}

/* Routines of pseudo-images have their facility in place of an image: it has symbols alone, as a
 * file. */
static bool is_facility(const struct fetch_image *i)
{
	return i->kind == PROFDB_DYNAMIC && !*i->stem;
}

static bool has_content(const struct fetch_image *i)
{
	static const struct store_key none;

	return memcmp(&i->content, &none, sizeof(none)) != 0;
}

static void identify(struct fetch_image *i, const char *kind, const char *id)
{
	int k = profdb_kind_find(kind);

	i->kind = k < 0 ? PROFDB_NAMED : (enum profdb_kind)k;
	base_id_parse(&i->id, id, strlen(id));
	if (is_facility(i)) {
		i->id.len = sizeof(i->key.bytes);
		memcpy(i->id.bytes, i->key.bytes, sizeof(i->key.bytes));
	}
}

static int take_image(struct fetch *f, struct store_reader *r)
{
	struct fetch_image i = { 0 };
	char *kind, *id;
	size_t len;
	int result = 0;

	get_key(r, &i.key);
	store_get_number(r, 8);
	kind = get_text(r);
	id = get_text(r);
	i.path = get_text(r);
	i.text = get_text(r);
	store_get_string(r, &len);
	i.stem = get_text(r);
	get_key(r, &i.content);
	store_get_number(r, 4);
	if (!kind || !id || !i.path || !i.text || !i.stem)
		result = -ENOMEM;
	if (result >= 0)
		result = get_symbols(r, &i);
	if (result >= 0) {
		identify(&i, kind, id);
		i.whole = i.nr_symbols || (f->symbols && has_content(&i));
	}
	if (result >= 0 && !r->bad && !base_map_get(&f->by_key, &i.key, sizeof(i.key)))
		result = add_image(f, &i);
	else
		image_release(&i);
	free(kind);
	free(id);
	return result;
}

static int take_content(struct fetch *f, struct store_reader *r)
{
	struct fetch_content c = { 0 };
	struct store_key sum;
	const char *bytes;
	size_t len;
	int result;

	get_key(r, &c.key);
	bytes = store_get_string(r, &len);
	if (!bytes)
		return 0;
	store_content_key(bytes, len, &sum);
	if (memcmp(&sum, &c.key, sizeof(sum)) != 0)
		return -DCPI_EFORMAT; /* these are other bytes: the image has none then */
	if (base_map_get(&f->by_content, &c.key, sizeof(c.key)))
		return 0; /* another question had it too */
	result =
		base_grow(&f->contents, &f->cap_contents, f->nr_contents + 1, sizeof(*f->contents));
	if (result >= 0)
		result = base_buf_append(&c.bytes, bytes, len);
	if (result < 0)
		return result;
	f->contents[f->nr_contents++] = c;
	return base_map_set(&f->by_content, &c.key, sizeof(c.key),
			    (void *)(uintptr_t)f->nr_contents);
}

/* ---- profiles -------------------------------------------------------------------------------- */

/* The store may lack an image that a profile is of, where its row is still on its way. */
static struct profdb_profile *make_profile(struct fetch *f, const struct store_key *key)
{
	struct fetch_image *i = fetch_image_of(f, key);
	struct profdb_profile *p;
	enum profdb_kind kind;
	char missing[64] = "image ";

	if (!i) {
		for (size_t k = 0; k < sizeof(key->bytes); k++)
			snprintf(missing + 6 + 2 * k, 3, "%02x", key->bytes[k]);
		return profdb_profile_new(PROFDB_NAMED, &(const struct base_id){ 0 }, missing);
	}
	i->used = true;
	kind = is_facility(i) ? PROFDB_FILE : i->kind;
	p = profdb_profile_new(kind, &i->id, kind == PROFDB_DYNAMIC ? i->stem : i->path);
	if (p && ((*i->text && profdb_profile_set_word(p, "text", i->text) < 0) ||
		  (is_facility(i) && profdb_profile_set_word(p, "facility", "1") < 0))) {
		profdb_profile_free(p);
		return NULL;
	}
	return p;
}

static int add_profile(struct fetch *f, const char *platform, uint32_t epoch,
		       struct fetch_profile **out)
{
	int r = base_grow(&f->profiles, &f->cap_profiles, f->nr_profiles + 1, sizeof(*f->profiles));

	if (r < 0)
		return r;
	*out = &f->profiles[f->nr_profiles];
	**out = (struct fetch_profile){ .platform = strdup(platform), .epoch = epoch };
	if (!(*out)->platform)
		return -ENOMEM;
	f->nr_profiles++;
	return 0;
}

/* Finds or makes the profile of that image, or of everything (@key NULL). */
static int profile_of(struct fetch *f, const struct store_key *key, const char *label,
		      const char *platform, uint32_t epoch, struct fetch_profile **out)
{
	struct base_buf name = { 0 };
	size_t at;
	int r;

	epoch = f->w->by_epoch ? epoch : 0;
	r = base_buf_printf(&name, "%s%c%u%c%s%c", platform, 0, epoch, 0, label, 0);
	if (r >= 0 && key)
		r = base_buf_append(&name, key->bytes, sizeof(key->bytes));
	at = r < 0 ? 0 : (size_t)(uintptr_t)base_map_get(&f->by_profile, name.data, name.len);
	if (at)
		*out = &f->profiles[at - 1];
	if (r >= 0 && !at)
		r = add_profile(f, platform, epoch, out);
	if (r >= 0 && !at)
		r = base_map_set(&f->by_profile, name.data, name.len,
				 (void *)(uintptr_t)f->nr_profiles);
	if (r >= 0 && key && !(*out)->p) {
		(*out)->p = make_profile(f, key);
		r = (*out)->p ? 0 : -ENOMEM;
		if (r >= 0 && *label)
			r = profdb_profile_set_word((*out)->p, "label", label);
	}
	base_buf_release(&name);
	return r;
}

static void note_begin(struct fetch *f, uint32_t epoch)
{
	if (!f->begin || epoch < f->begin)
		f->begin = epoch;
}

static int take_event(struct fetch *f, struct store_reader *r)
{
	struct profdb_event *e = &f->events[f->nr_events];
	char *name = get_text(r);
	double period = get_float(r), enabled = get_float(r);

	if (name && !r->bad && f->nr_events < PROFDB_NR_EVENTS && strlen(name) < sizeof(e->name)) {
		strcpy(e->name, name);
		e->period = (uint64_t)(period + 0.5);
		e->enabled = enabled < 1e6 ? enabled / 1e6 : 1;
		f->nr_events++;
	}
	free(name);
	return name ? 0 : -ENOMEM;
}

/* As the event is in all chosen rows together, unless the profile has it already. */
static int event_of(const struct fetch *f, struct profdb_profile *p, const char *name)
{
	int e = profdb_profile_event_find(p, name);

	for (size_t i = 0; e < 0 && i < f->nr_events; i++) {
		if (strcmp(f->events[i].name, name) != 0)
			continue;
		e = profdb_profile_event_add(p, name, f->events[i].period);
		if (e >= 0)
			profdb_profile_event_set_enabled(p, (size_t)e, f->events[i].enabled);
	}
	return e;
}

/* ---- samples of replicates ------------------------------------------------------------------- */

static int find_workload(struct fetch_replicates *x, unsigned long number)
{
	char name[32];
	const struct profdb_workload k = {
		.comm = name, .exe = "", .cgroup = "", .label = "", .thread = "", .uid = UINT32_MAX
	};
	int w;

	if (x->workload[number])
		return x->workload[number] - 1;
	snprintf(name, sizeof(name), "replicate %lu", number);
	w = profdb_workloads_workload_add(x->w, &k);
	if (w >= 0)
		x->workload[number] = w + 1;
	return w;
}

static int find_image(struct fetch_replicates *x, struct fetch_profile *p)
{
	enum profdb_kind kind = profdb_profile_kind(p->p);
	const char *path = profdb_profile_path(p->p, 0);
	struct profdb_image_ref ref = { .kind = kind,
					.id = *profdb_profile_image(p->p),
					.path = path,
					.stem = kind == PROFDB_DYNAMIC ? path : NULL };
	int i = p->replicated ? p->replicated - 1 : profdb_workloads_image_add(x->w, &ref);

	if (i >= 0)
		p->replicated = i + 1;
	return i;
}

/* Adds samples of a profile to replicate number @text. 0 or negative. */
static int replicates_add(struct fetch *f, struct fetch_profile *p, const char *text, size_t event,
			  uint64_t off, uint64_t n)
{
	const struct profdb_event *e = profdb_profile_event(p->p, event);
	struct fetch_replicates *x = &f->replicates;
	unsigned long number = strtoul(text, NULL, 10);
	int w, i, at;

	if (!x->w && !(x->w = profdb_workloads_new()))
		return -ENOMEM;
	if (number >= STORE_REPLICATES)
		return -EINVAL;
	w = find_workload(x, number);
	i = w < 0 ? w : find_image(x, p);
	at = i < 0 ? i : profdb_workloads_event_add(x->w, e->name, e->period);
	return at < 0 ? at
		      : profdb_workloads_add(x->w, (uint32_t)w, (uint32_t)i, off, (size_t)at,
					     f->begin / 60, n);
}

/* ---- by offset ------------------------------------------------------------------------------- */

/* The columns that rows of profiles begin with. */
struct head {
	char *event, *label, *platform;
	struct store_key image;
	uint32_t epoch;
};

static int get_head(struct store_reader *r, struct head *h)
{
	h->event = get_text(r);
	get_key(r, &h->image);
	h->label = get_text(r);
	h->platform = get_text(r);
	h->epoch = (uint32_t)store_get_number(r, 4);
	return h->event && h->label && h->platform ? 0 : -ENOMEM;
}

static void head_release(struct head *h)
{
	free(h->event);
	free(h->label);
	free(h->platform);
}

/* In place of a platform's name, rows of counts may have the number of a replicate. */
static const char *shown_platform(const struct fetch *f, const char *told)
{
	return f->replicate.len ? f->fleet : told;
}

static int add_samples(struct fetch *f, struct fetch_profile *p, const char *told, size_t event,
		       uint64_t off, uint64_t n)
{
	int r = profdb_profile_add(p->p, off, event, n);

	return r < 0 || !f->replicate.len ? r : replicates_add(f, p, told, event, off, n);
}

static int take_head(struct fetch *f, struct store_reader *r)
{
	struct head h;
	struct fetch_profile *p = NULL;
	int result = get_head(r, &h), e;
	double period = get_float(r), enabled = get_float(r);

	note_begin(f, h.epoch);
	if (result >= 0 && !r->bad)
		result = profile_of(f, &h.image, h.label, h.platform, h.epoch, &p);
	if (result >= 0 && p) {
		result = e = profdb_profile_event_add(p->p, h.event, (uint64_t)(period + 0.5));
		if (e >= 0 && enabled < 1e6)
			profdb_profile_event_set_enabled(p->p, (size_t)e, enabled / 1e6);
	}
	head_release(&h);
	return result < 0 ? result : 0;
}

static int take_count(struct fetch *f, struct store_reader *r)
{
	struct head h;
	struct fetch_profile *p = NULL;
	int result = get_head(r, &h), e = -ENOENT;
	uint64_t off = store_get_number(r, 8), n = store_get_number(r, 8);

	if (result >= 0 && !r->bad)
		result = profile_of(f, &h.image, h.label, shown_platform(f, h.platform), h.epoch,
				    &p);
	if (result >= 0 && p)
		result = e = profdb_profile_event_find(p->p, h.event);
	if (e >= 0 && n)
		result = add_samples(f, p, h.platform, (size_t)e, off, n);
	head_release(&h);
	return result < 0 ? result : 0;
}

/* ---- by routine ------------------------------------------------------------------------------ */

static int add_symbol(struct fetch_image *i, const char *name, uint64_t off, uint64_t len)
{
	int r = base_grow(&i->symbols, &i->cap_symbols, i->nr_symbols + 1, sizeof(*i->symbols));

	if (r < 0 || !(i->symbols[i->nr_symbols].name = strdup(name)))
		return -ENOMEM;
	i->symbols[i->nr_symbols].off = off;
	i->symbols[i->nr_symbols++].len = len ? len : 1;
	return 0;
}

uint64_t fetch_place(struct fetch *f, const struct store_key *facility, const char *name)
{
	struct fetch_image *i = fetch_image_of(f, facility);
	struct base_buf key = { 0 };
	uint64_t off = 0;
	int r = base_buf_append(&key, facility, sizeof(*facility));

	if (r >= 0)
		r = base_buf_append(&key, name, strlen(name));
	if (r >= 0)
		off = (uintptr_t)base_map_get(&f->placed, key.data, key.len);
	if (r >= 0 && !off && i) {
		off = i->nr_symbols ? i->symbols[i->nr_symbols - 1].off + PLACE : PLACE;
		r = add_symbol(i, name, off, PLACE);
		if (r >= 0)
			r = base_map_set(&f->placed, key.data, key.len, (void *)(uintptr_t)off);
	}
	base_buf_release(&key);
	return r < 0 ? 0 : off;
}

static int place_routine(struct fetch *f, const struct fetch_image *i, const char *name,
			 uint64_t off, uint64_t len, struct fetch_routine *x)
{
	if (i->kind == PROFDB_DYNAMIC) {
		x->off = fetch_place(f, &i->key, name);
		return x->off ? 0 : -ENOMEM;
	}
	x->off = off;
	return i->whole ? 0 : add_symbol(&f->v[i - f->v], name, off, len);
}

static int take_routine(struct fetch *f, struct store_reader *r)
{
	struct fetch_routine x = { .number = store_get_number(r, 8), .off = FETCH_OUTSIDE };
	struct store_key key;
	struct fetch_image *i;
	char *name;
	uint64_t off, len;
	int result = 0;

	get_key(r, &key);
	name = get_text(r);
	off = store_get_number(r, 8);
	len = store_get_number(r, 8);
	/* The first one counts of two that claim one number. */
	i = !base_map_get(&f->wanted, &x.number, sizeof(x.number)) ||
			    base_map_get(&f->by_routine, &x.number, sizeof(x.number))
		    ? NULL
		    : fetch_image_of(f, &key);
	if (name && !r->bad && store_routine_key(&key, name, off) != x.number) {
		free(name);
		return -EINVAL;
	}
	x.placed = i && name && *name;
	if (!name)
		result = -ENOMEM;
	if (x.placed)
		result = place_routine(f, i, name, off, len, &x);
	free(name);
	if (result < 0 || !i || r->bad)
		return result;
	x.image = (size_t)(i - f->v);
	result = base_grow(&f->r, &f->cap_r, f->nr_r + 1, sizeof(*f->r));
	if (result < 0)
		return result;
	f->r[f->nr_r++] = x;
	return base_map_set(&f->by_routine, &x.number, sizeof(x.number),
			    (void *)(uintptr_t)f->nr_r);
}

static int add_total(struct fetch *f, const struct fetch_routine *x, const char *event,
		     const char *platform, uint32_t epoch, uint64_t n)
{
	static const struct store_key unknown = { { 0 } };
	/* Sums have the samples of all labels that were chosen. */
	const char *label = f->w->detail == STORE_PATHS && f->w->nr_labels ? f->w->labels[0] : "";
	struct fetch_profile *p;
	int r = profile_of(f, x ? &f->v[x->image].key : &unknown, label,
			   shown_platform(f, platform), epoch, &p);
	int e = r < 0 ? r : event_of(f, p->p, event);

	return e < 0 ? e : add_samples(f, p, platform, (size_t)e, x ? x->off : 0, n);
}

static int take_total(struct fetch *f, struct store_reader *r)
{
	char *event = get_text(r), *platform = get_text(r);
	uint32_t epoch = (uint32_t)store_get_number(r, 4);
	uint64_t number = store_get_number(r, 8), n = store_get_number(r, 8);
	size_t at = (size_t)(uintptr_t)base_map_get(&f->by_routine, &number, sizeof(number));
	int result = event && platform ? 0 : -ENOMEM;

	note_begin(f, epoch);
	if (result >= 0 && !r->bad && n)
		result = add_total(f, at ? &f->r[at - 1] : NULL, event, platform, epoch, n);
	free(event);
	free(platform);
	return result;
}

/* ---- by platform and by workload ------------------------------------------------------------- */

/* An image that answers to all names that the user gave. */
static struct profdb_profile *everything(const struct fetch *f)
{
	const struct store_want *w = f->w;
	const struct base_id none = { 0 };
	struct profdb_profile *p =
		profdb_profile_new(w->nr_images ? PROFDB_FILE : PROFDB_NAMED, &none,
				   w->nr_images ? w->images[0] : EVERYTHING);

	for (size_t i = 1; p && i < w->nr_images; i++)
		if (profdb_profile_add_path(p, w->images[i]) < 0) {
			profdb_profile_free(p);
			return NULL;
		}
	return p;
}

static int add_everything(struct fetch *f, const char *event, const char *platform, uint32_t epoch,
			  uint64_t n, struct fetch_profile **out)
{
	int r = profile_of(f, NULL, "", platform, epoch, out), e;

	note_begin(f, epoch);
	if (r >= 0 && !(*out)->p && !((*out)->p = everything(f)))
		r = -ENOMEM;
	if (r < 0)
		return r;
	e = event_of(f, (*out)->p, event);
	return e < 0 ? e : profdb_profile_add((*out)->p, 0, (size_t)e, n);
}

static int take_platform(struct fetch *f, struct store_reader *r)
{
	char *event = get_text(r), *platform = get_text(r);
	uint32_t epoch = (uint32_t)store_get_number(r, 4);
	uint64_t n = store_get_number(r, 8);
	struct fetch_profile *p;
	int result = event && platform ? 0 : -ENOMEM;

	if (result >= 0 && !r->bad && n)
		result = add_everything(f, event, platform, epoch, n, &p);
	free(event);
	free(platform);
	return result;
}

static int add_workload(struct fetch_profile *p, const struct profdb_workload *k, const char *event,
			uint64_t n, int64_t minute)
{
	const struct profdb_image_ref ref = { .kind = profdb_profile_kind(p->p),
					      .path = profdb_profile_path(p->p, 0) };
	int i, w, e, at = profdb_profile_event_find(p->p, event);

	if (!p->w && !(p->w = profdb_workloads_new()))
		return -ENOMEM;
	i = profdb_workloads_image_add(p->w, &ref);
	w = i < 0 ? i : profdb_workloads_workload_add(p->w, k);
	e = w < 0 ? w
		  : profdb_workloads_event_add(p->w, event,
					       profdb_profile_event(p->p, (size_t)at)->period);
	return e < 0 ? e
		     : profdb_workloads_add(p->w, (uint32_t)w, (uint32_t)i, 0, (size_t)e, minute,
					    n);
}

static int take_workload(struct fetch *f, struct store_reader *r)
{
	char *event = get_text(r), *platform = get_text(r);
	uint32_t epoch = (uint32_t)store_get_number(r, 4);
	char *comm = get_text(r), *exe = get_text(r), *cgroup = get_text(r), *label = get_text(r);
	const struct profdb_workload k = { .comm = comm,
					   .exe = exe,
					   .cgroup = cgroup,
					   .label = label,
					   .thread = "",
					   .uid = (uint32_t)store_get_number(r, 4) };
	uint64_t n = store_get_number(r, 8);
	struct fetch_profile *p;
	int result = event && platform && comm && exe && cgroup && label ? 0 : -ENOMEM;

	if (result >= 0 && !r->bad && n)
		result = add_everything(f, event, platform, epoch, n, &p);
	if (result >= 0 && !r->bad && n)
		result = add_workload(p, &k, event, n, epoch / 60);
	free(event);
	free(platform);
	free(comm);
	free(exe);
	free(cgroup);
	free(label);
	return result;
}

static int take_rest(struct fetch *f, struct store_reader *r)
{
	char *event = get_text(r), *platform = get_text(r);
	uint32_t epoch = (uint32_t)store_get_number(r, 4);
	uint64_t n = store_get_number(r, 8), have;
	struct fetch_profile *p;
	int result = event && platform ? 0 : -ENOMEM, e;

	if (result >= 0 && !r->bad && n)
		result = add_everything(f, event, platform, epoch, 0, &p);
	if (result >= 0 && !r->bad && n) {
		e = profdb_profile_event_find(p->p, event);
		have = profdb_profile_event(p->p, (size_t)e)->sum;
		result = n > have ? profdb_profile_add(p->p, 0, (size_t)e, n - have) : 0;
	}
	free(event);
	free(platform);
	return result;
}

/* ---- files ----------------------------------------------------------------------------------- */

static int take_part(struct fetch *f, struct store_reader *r)
{
	struct fetch_part part = { .platform = get_text(r) };
	const char *bytes;
	size_t len;
	int result = base_grow(&f->parts, &f->cap_parts, f->nr_parts + 1, sizeof(*f->parts));

	part.epoch = (uint32_t)store_get_number(r, 4);
	part.kind = get_text(r);
	bytes = store_get_string(r, &len);
	if (!part.platform || !part.kind)
		result = -ENOMEM;
	if (result >= 0 && bytes)
		result = base_buf_append(&part.bytes, bytes, len);
	if (result >= 0) {
		f->parts[f->nr_parts++] = part;
		return 0;
	}
	free(part.platform);
	free(part.kind);
	base_buf_release(&part.bytes);
	return result;
}

/* ---- rows ------------------------------------------------------------------------------------ */

int fetch_take(struct fetch *f, enum fetch_row row, struct store_reader *r)
{
	static int (*const take[FETCH_NR_ROWS])(struct fetch * f, struct store_reader * r) = {
		[FETCH_IMAGE] = take_image,	  [FETCH_CONTENT] = take_content,
		[FETCH_HEAD] = take_head,	  [FETCH_COUNT] = take_count,
		[FETCH_ROUTINE] = take_routine,	  [FETCH_TOTAL] = take_total,
		[FETCH_PLATFORM] = take_platform, [FETCH_WORKLOAD] = take_workload,
		[FETCH_PART] = take_part,	  [FETCH_EVENT] = take_event,
		[FETCH_REST] = take_rest,
	};

	return take[row](f, r);
}

int fetch_rows(struct fetch *f, const struct base_buf *answer, enum fetch_row row,
	       struct base_err *err)
{
	struct store_reader reader = { answer->data, answer->data + answer->len, false };
	int r = 0;

	while (r >= 0 && reader.at < reader.end) {
		r = fetch_take(f, row, &reader);
		if (reader.bad)
			return base_fail(err, -EHOSTUNREACH, "the server's answer is malformed");
		/* Any machine may have sent it, and the rows of others are good. */
		f->skipped += r < 0 && r != -ENOMEM;
		r = r == -ENOMEM ? r : 0;
	}
	return r;
}

void fetch_release(struct fetch *f)
{
	for (size_t i = 0; i < f->nr; i++)
		image_release(&f->v[i]);
	for (size_t i = 0; i < f->nr_contents; i++)
		base_buf_release(&f->contents[i].bytes);
	for (size_t i = 0; i < f->nr_profiles; i++) {
		free(f->profiles[i].platform);
		profdb_profile_free(f->profiles[i].p);
		profdb_workloads_free(f->profiles[i].w);
	}
	profdb_workloads_free(f->replicates.w);
	profdb_callpaths_free(f->paths);
	for (size_t i = 0; i < f->nr_parts; i++) {
		free(f->parts[i].platform);
		free(f->parts[i].kind);
		base_buf_release(&f->parts[i].bytes);
	}
	free(f->v);
	free(f->r);
	free(f->contents);
	free(f->profiles);
	free(f->parts);
	base_map_release(&f->by_key);
	base_map_release(&f->by_routine);
	base_map_release(&f->by_profile);
	base_map_release(&f->by_content);
	base_map_release(&f->wanted);
	base_map_release(&f->placed);
	base_buf_release(&f->where);
	base_buf_release(&f->event);
	base_buf_release(&f->labels);
	base_buf_release(&f->platforms);
	base_buf_release(&f->images);
	base_buf_release(&f->routines);
	base_buf_release(&f->replicate);
}
