/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Call paths of a fleet: those of some machines' epochs, chosen by chance, become the call paths of
 * all machines together. Only one sample in so many has a path anyway, and tools divide all samples
 * of a routine among the paths that end in it (lib/analysis/callpath): here those are fewer.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fetch.h"
#include "image.h"

/* So many epochs of machines are chosen, and are read a few at a time, until their files have so
 * many bytes. */
enum { CHOSEN = 500, AT_ONCE = 20, BYTES = 256 << 20 };
enum { FRAMES_MAX = 4096 };
/* Pseudo-images that one question asks for, and bytes of each: an answer may have 1 GiB. */
enum { CONTENTS = 32, CONTENT_MAX = 16 << 20 };

/* A pseudo-image of a chosen machine. */
struct jit {
	char *platform;
	struct store_key key;
};

/* The call paths of one machine and epoch. */
struct one {
	char *platform;
	struct profdb_callpaths *c;
};

struct hour {
	char *platform;
	uint32_t epoch;
};

struct gathering {
	struct fetch *f;
	struct hour *hours;
	size_t nr_hours, cap_hours;
	struct jit *jits;
	size_t nr_jits, cap_jits;
	/* The paths that are merged next, and the contents that they refer to. */
	struct one ones[AT_ONCE];
	size_t nr_ones;
	struct image **images;
	size_t nr_images, cap_images;
	struct base_map by_content;
	uint64_t bytes;
	bool full; /* there are as many paths as a file may have */
	struct base_err *err;
};

static int malformed(struct gathering *g)
{
	return base_fail(g->err, -EHOSTUNREACH, "the server's answer is malformed");
}

/* Asks, and gives each row to @row until the answer ends. */
static int ask(struct gathering *g, struct base_buf *sql,
	       int (*row)(struct gathering *g, struct store_reader *r))
{
	struct base_buf answer = { 0 };
	struct store_reader reader;
	int r = base_buf_printf(sql, " FORMAT RowBinary");

	if (r >= 0)
		r = store_ask(g->f->s, (const char *)sql->data, &answer, g->err);
	reader = (struct store_reader){ answer.data, answer.data + answer.len, false };
	while (r >= 0 && reader.at < reader.end) {
		r = row(g, &reader);
		if (r >= 0 && reader.bad)
			r = malformed(g);
	}
	base_buf_release(&answer);
	base_buf_clear(sql);
	return r;
}

static char *get_text(struct store_reader *r)
{
	size_t len;
	const char *text = store_get_string(r, &len);

	return text ? strndup(text, len) : strdup("");
}

/* ---- which machines and epochs --------------------------------------------------------------- */

static int take_hour(struct gathering *g, struct store_reader *r)
{
	struct hour h = { .platform = get_text(r), .epoch = (uint32_t)store_get_number(r, 4) };
	int result =
		h.platform ? base_grow(&g->hours, &g->cap_hours, g->nr_hours + 1, sizeof(*g->hours))
			   : -ENOMEM;

	if (result < 0)
		free(h.platform);
	else
		g->hours[g->nr_hours++] = h;
	return result;
}

static int take_number(struct gathering *g, struct store_reader *r)
{
	g->f->have_paths = store_get_number(r, 8);
	return 0;
}

#define KEPT "FROM part FINAL WHERE kind = 'callpaths' AND %s"

static int choose(struct gathering *g)
{
	struct base_buf sql = { 0 };
	int r = base_buf_printf(&sql, "SELECT count() " KEPT, fetch_text(&g->f->where));

	if (r >= 0)
		r = ask(g, &sql, take_number);
	if (r >= 0)
		r = base_buf_printf(&sql,
				    "SELECT platform, toUInt32(epoch) " KEPT
				    " ORDER BY cityHash64(platform, epoch), platform, epoch LIMIT "
				    "%d",
				    fetch_text(&g->f->where), CHOSEN);
	if (r >= 0)
		r = ask(g, &sql, take_hour);
	base_buf_release(&sql);
	return r;
}

/* (platform, epoch) IN (…) */
static int add_hours(const struct gathering *g, size_t from, size_t nr, struct base_buf *sql)
{
	int r = base_buf_printf(sql, "(platform, epoch) IN (");

	for (size_t i = from; i < from + nr && r >= 0; i++) {
		const struct hour *h = &g->hours[i];

		r = base_buf_printf(sql, "%s(", i > from ? ", " : "");
		if (r >= 0)
			r = store_quote(sql, h->platform, strlen(h->platform));
		if (r >= 0)
			r = base_buf_printf(sql, ", toDateTime(%u))", h->epoch);
	}
	return r < 0 ? r : base_buf_printf(sql, ")");
}

/* ---- pseudo-images --------------------------------------------------------------------------- */

static int take_jit(struct gathering *g, struct store_reader *r)
{
	struct jit j = { .platform = get_text(r) };
	const void *key = store_get_bytes(r, STORE_KEY);
	int result = j.platform
			     ? base_grow(&g->jits, &g->cap_jits, g->nr_jits + 1, sizeof(*g->jits))
			     : -ENOMEM;

	if (result < 0 || !key) {
		free(j.platform);
		return result;
	}
	memcpy(j.key.bytes, key, STORE_KEY);
	g->jits[g->nr_jits++] = j;
	return 0;
}

static int find_jits(struct gathering *g)
{
	struct base_buf sql = { 0 }, keys = { 0 };
	int r = base_buf_printf(&sql, "SELECT platform, image FROM prof WHERE ");

	if (r >= 0)
		r = add_hours(g, 0, g->nr_hours, &sql);
	if (r >= 0)
		r = base_buf_printf(&sql,
				    " AND %s AND image GLOBAL IN (SELECT image FROM image WHERE "
				    "kind = 'dynamic') GROUP BY platform, image",
				    fetch_text(&g->f->where));
	if (r >= 0)
		r = ask(g, &sql, take_jit);
	for (size_t i = 0; i < g->nr_jits && r >= 0; i++)
		r = base_buf_append(&keys, g->jits[i].key.bytes, STORE_KEY);
	if (r >= 0)
		r = fetch_images_of(g->f, &keys, false, g->err);
	base_buf_release(&sql);
	base_buf_release(&keys);
	return r;
}

static const struct fetch_image *find_jit(const struct gathering *g, const char *platform,
					  const char *stem)
{
	for (size_t i = 0; i < g->nr_jits; i++) {
		const struct fetch_image *image = strcmp(g->jits[i].platform, platform) == 0
							  ? fetch_image_of(g->f, &g->jits[i].key)
							  : NULL;

		if (image && strcmp(image->stem, stem) == 0)
			return image;
	}
	return NULL;
}

/* An image that cannot be opened has no names. */
static int open_content(struct gathering *g, const struct store_key *key, const char *bytes,
			size_t len)
{
	struct image *img = NULL;
	char path[32];
	int fd = memfd_create("code", MFD_CLOEXEC), r;

	if (fd < 0)
		return -errno;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	r = base_write_all(fd, bytes, len);
	if (r >= 0)
		image_open_path(path, IMAGE_DYNAMIC, &img, NULL);
	close(fd);
	if (r < 0 || !img)
		return r;
	r = base_grow(&g->images, &g->cap_images, g->nr_images + 1, sizeof(struct image *));
	if (r < 0) {
		image_close(img);
		return r;
	}
	g->images[g->nr_images++] = img;
	return base_map_set(&g->by_content, key, sizeof(*key), img);
}

static int take_content(struct gathering *g, struct store_reader *r)
{
	struct store_key sum;
	const void *key = store_get_bytes(r, STORE_KEY);
	size_t len;
	const char *bytes = store_get_string(r, &len);

	if (!key || !bytes)
		return 0;
	store_content_key(bytes, len, &sum);
	return memcmp(&sum, key, sizeof(sum)) ? 0 : open_content(g, &sum, bytes, len);
}

/* The contents of the pseudo-images of one's paths, once each. */
static int list_contents(struct gathering *g, const struct one *one, struct base_map *seen,
			 struct base_buf *keys)
{
	int r = 0;

	for (size_t i = 0; i < profdb_callpaths_nr_images(one->c) && r >= 0; i++) {
		const struct profdb_image_ref *ref = profdb_callpaths_image(one->c, i);
		const struct fetch_image *image =
			ref->kind == PROFDB_DYNAMIC ? find_jit(g, one->platform, ref->stem) : NULL;

		if (!image || base_map_get(seen, &image->content, STORE_KEY))
			continue;
		r = base_map_set(seen, &image->content, STORE_KEY, g);
		if (r >= 0)
			r = base_buf_append(keys, image->content.bytes, STORE_KEY);
	}
	return r;
}

static int ask_contents(struct gathering *g, const uint8_t *keys, size_t nr)
{
	struct base_buf sql = { 0 };
	int r = base_buf_printf(&sql, "SELECT content, bytes FROM content FINAL WHERE content ");

	if (r >= 0)
		r = fetch_keys(&sql, keys, nr);
	if (r >= 0)
		r = base_buf_printf(&sql, " AND length(bytes) <= %d", CONTENT_MAX);
	if (r >= 0)
		r = ask(g, &sql, take_content);
	base_buf_release(&sql);
	return r;
}

static int open_contents(struct gathering *g)
{
	struct base_buf keys = { 0 };
	struct base_map seen = { 0 };
	size_t nr;
	int r = 0;

	for (size_t i = 0; i < g->nr_ones && r >= 0; i++)
		r = list_contents(g, &g->ones[i], &seen, &keys);
	nr = keys.len / STORE_KEY;
	for (size_t i = 0; i < nr && r >= 0; i += CONTENTS)
		r = ask_contents(g, keys.data + i * STORE_KEY,
				 nr - i < CONTENTS ? nr - i : CONTENTS);
	base_map_release(&seen);
	base_buf_release(&keys);
	return r;
}

static struct image *open_jit(const struct gathering *g, const char *platform, const char *stem)
{
	const struct fetch_image *image = find_jit(g, platform, stem);

	return image ? base_map_get(&g->by_content, &image->content, STORE_KEY) : NULL;
}

/* ---- frames ---------------------------------------------------------------------------------- */

/* The paths of one machine and epoch, and how their images and events are numbered among all. */
struct merging {
	struct gathering *g;
	const struct profdb_callpaths *from;
	struct image **jit;	    /* an image's code; NULL: not dynamic, or not known */
	struct store_key *facility; /* its facility's key */
	int *number;		    /* and the number of its facility among images, + 1 */
	int *image; /* its number among all; a dynamic one's where no name is known */
	int event[PROFDB_NR_EVENTS];
	struct profdb_frame frames[FRAMES_MAX];
};

/* Finds the facility of a pseudo-image, and its number. -ENOENT: the store has none of that name.
 */
static int find_facility(struct merging *m, size_t index)
{
	const struct image_process *p = image_process(m->jit[index]);
	struct store_key *key = &m->facility[index];
	struct base_buf one = { 0 };
	struct fetch_image *i;
	int r = 0;

	if (!p)
		return -ENOENT;
	store_facility_key(p->facility, key);
	i = fetch_image_of(m->g->f, key);
	if (!i)
		r = base_buf_append(&one, key->bytes, STORE_KEY);
	if (r >= 0 && !i)
		r = fetch_images_of(m->g->f, &one, false, m->g->err);
	base_buf_release(&one);
	i = r < 0 ? NULL : fetch_image_of(m->g->f, key);
	if (!i)
		return r < 0 ? r : -ENOENT;
	i->used = true;
	r = profdb_callpaths_image_add(m->g->f->paths,
				       &(const struct profdb_image_ref){
					       .kind = PROFDB_FILE, .id = i->id, .path = i->path });
	m->number[index] = r + 1;
	return r;
}

/* A frame in a pseudo-image becomes one in its facility, where routines of all machines are. */
static int place_dynamic(struct merging *m, size_t index, uint64_t off, struct profdb_frame *out)
{
	struct image *img = m->jit[index];
	const struct image_symbol *symbol = NULL;
	uint64_t vaddr;
	int r = m->number[index] ? 0 : find_facility(m, index);

	if (r < 0)
		return r == -ENOENT ? 0 : r;
	if (image_vaddr(img, off, &vaddr) >= 0)
		symbol = image_symbol_at(img, vaddr);
	*out = (struct profdb_frame){ (uint32_t)m->number[index] - 1, FETCH_OUTSIDE };
	if (symbol && *symbol->name)
		out->off = fetch_place(m->g->f, &m->facility[index], symbol->name);
	return out->off ? 0 : -ENOMEM;
}

static int add_image(struct merging *m, const char *platform, size_t index)
{
	const struct profdb_image_ref *ref = profdb_callpaths_image(m->from, index);
	static const struct profdb_image_ref unknown = { .kind = PROFDB_NAMED,
							 .path = "dynamic code without names" };

	if (ref->kind == PROFDB_DYNAMIC)
		m->jit[index] = open_jit(m->g, platform, ref->stem);
	m->image[index] = profdb_callpaths_image_add(m->g->f->paths,
						     ref->kind == PROFDB_DYNAMIC ? &unknown : ref);
	return m->image[index];
}

/* The number among all of a workload. */
static int add_owner(struct merging *m, uint64_t workload, uint32_t *out)
{
	int r = profdb_callpaths_workload_add(m->g->f->paths,
					      profdb_callpaths_workload(m->from, workload));

	*out = (uint32_t)r;
	return r;
}

/* The sampled frame comes first. Returns the number of frames, or negative. */
static ssize_t list_frames(struct merging *m, size_t node, enum profdb_callpath_end *end,
			   uint32_t *owner)
{
	size_t nr = 0;
	int r = 0;

	*owner = PROFDB_CALLPATH_NOBODY;
	for (; node >= PROFDB_NR_CALLPATH_ENDS && nr < FRAMES_MAX && r >= 0; nr++) {
		struct profdb_callpath_node n = profdb_callpaths_node(m->from, node);

		if (n.frame.image == PROFDB_CALLPATH_WORKLOAD) {
			r = add_owner(m, n.frame.off, owner);
			node = n.parent;
			break;
		}
		m->frames[nr] =
			(struct profdb_frame){ (uint32_t)m->image[n.frame.image], n.frame.off };
		if (m->jit[n.frame.image])
			r = place_dynamic(m, n.frame.image, n.frame.off, &m->frames[nr]);
		node = n.parent;
	}
	*end = node < PROFDB_NR_CALLPATH_ENDS ? (enum profdb_callpath_end)node
					      : PROFDB_CALLPATH_CUT;
	return r < 0 ? r : (ssize_t)nr;
}

static int merge_node(struct merging *m, size_t node)
{
	struct profdb_callpath_node n = profdb_callpaths_node(m->from, node);
	size_t nr_events = profdb_callpaths_nr_events(m->from);
	enum profdb_callpath_end end = PROFDB_CALLPATH_CUT;
	uint32_t owner = PROFDB_CALLPATH_NOBODY;
	ssize_t nr = -1;
	int r = 0;

	for (size_t e = 0; e < nr_events && r >= 0; e++) {
		if (!n.count[e])
			continue;
		if (nr < 0)
			nr = list_frames(m, node, &end, &owner);
		r = nr < 0 ? (int)nr
			   : profdb_callpaths_add_of(m->g->f->paths, owner, (size_t)m->event[e],
						     end, m->frames, (size_t)nr, n.count[e]);
	}
	return r;
}

static int merge_all(struct merging *m, const char *platform)
{
	int r = 0;

	for (size_t i = 0; i < profdb_callpaths_nr_images(m->from) && r >= 0; i++)
		r = add_image(m, platform, i);
	for (size_t e = 0; e < profdb_callpaths_nr_events(m->from) && r >= 0; e++) {
		const struct profdb_event *event = profdb_callpaths_event(m->from, e);

		r = m->event[e] =
			profdb_callpaths_event_add(m->g->f->paths, event->name, event->period);
	}
	for (size_t i = PROFDB_NR_CALLPATH_ENDS; i < profdb_callpaths_nr_nodes(m->from) && r >= 0;
	     i++)
		r = merge_node(m, i);
	return r;
}

static int merge(struct gathering *g, const char *platform, const struct profdb_callpaths *from)
{
	struct merging *m = calloc(1, sizeof(*m));
	size_t nr = profdb_callpaths_nr_images(from) + 1;
	int r = m ? 0 : -ENOMEM;

	if (r >= 0) {
		*m = (struct merging){ .g = g,
				       .from = from,
				       .jit = calloc(nr, sizeof(*m->jit)),
				       .facility = calloc(nr, sizeof(*m->facility)),
				       .number = calloc(nr, sizeof(*m->number)),
				       .image = calloc(nr, sizeof(*m->image)) };
		r = m->jit && m->facility && m->number && m->image ? merge_all(m, platform)
								   : -ENOMEM;
		free(m->jit);
		free(m->facility);
		free(m->number);
		free(m->image);
	}
	free(m);
	if (r != -DCPI_ELIMIT)
		return r;
	g->full = true;
	return 0;
}

/* ---- files ----------------------------------------------------------------------------------- */

static int take_paths(struct gathering *g, struct store_reader *r)
{
	struct one *one = &g->ones[g->nr_ones];
	char *platform = get_text(r);
	size_t len;
	const char *bytes = store_get_string(r, &len);

	if (!platform || !bytes || g->nr_ones >= AT_ONCE ||
	    profdb_callpaths_parse(bytes, len, &one->c, NULL) < 0) {
		g->f->skipped++; /* any machine may have sent it */
		free(platform);
		return platform ? 0 : -ENOMEM;
	}
	one->platform = platform;
	g->nr_ones++;
	g->bytes += len;
	return 0;
}

static void forget_ones(struct gathering *g)
{
	for (size_t i = 0; i < g->nr_ones; i++) {
		free(g->ones[i].platform);
		profdb_callpaths_free(g->ones[i].c);
	}
	for (size_t i = 0; i < g->nr_images; i++)
		image_close(g->images[i]);
	base_map_release(&g->by_content);
	g->by_content = (struct base_map){ 0 };
	g->nr_ones = g->nr_images = 0;
}

static int merge_ones(struct gathering *g)
{
	int r = open_contents(g);

	for (size_t i = 0; i < g->nr_ones && r >= 0 && !g->full; i++) {
		r = merge(g, g->ones[i].platform, g->ones[i].c);
		g->f->with_paths += r >= 0;
	}
	forget_ones(g);
	return r;
}

static int read_some(struct gathering *g, size_t from, size_t nr)
{
	struct base_buf sql = { 0 };
	int r = base_buf_printf(&sql, "SELECT platform, bytes " KEPT " AND ",
				fetch_text(&g->f->where));

	if (r >= 0)
		r = add_hours(g, from, nr, &sql);
	if (r >= 0)
		r = ask(g, &sql, take_paths);
	base_buf_release(&sql);
	if (r >= 0)
		return merge_ones(g);
	forget_ones(g);
	return r;
}

static int read_paths(struct gathering *g)
{
	int r = find_jits(g);

	for (size_t i = 0; i < g->nr_hours && r >= 0 && g->bytes < BYTES && !g->full; i += AT_ONCE)
		r = read_some(g, i, g->nr_hours - i < AT_ONCE ? g->nr_hours - i : AT_ONCE);
	return r;
}

/* ---- images on call paths alone -------------------------------------------------------------- */

/* The images of call paths of @platform, once each, where their symbols are not here yet: a caller
 * may be any procedure of its image. 0 or -ENOMEM. */
static int list_callers(struct fetch *f, const struct profdb_callpaths *c, const char *platform,
			struct base_map *seen, struct base_buf *keys)
{
	int r = 0;

	for (size_t i = 0; i < profdb_callpaths_nr_images(c) && r >= 0; i++) {
		const struct profdb_image_ref *ref = profdb_callpaths_image(c, i);
		const struct fetch_image *image;
		struct store_key key;

		store_ref_key(ref, platform, &key);
		image = fetch_image_of(f, &key);
		if ((image && image->whole) || base_map_get(seen, &key, sizeof(key)))
			continue;
		r = base_map_set(seen, &key, sizeof(key), f);
		if (r >= 0)
			r = base_buf_append(keys, key.bytes, STORE_KEY);
	}
	return r;
}

/* Asks for these, which have no samples themselves. 0 or negative with @err. */
static int ask_callers(struct fetch *f, const struct base_buf *keys, struct base_err *err)
{
	int r = fetch_images_of(f, keys, true, err);

	for (size_t i = 0; i < keys->len && r >= 0; i += STORE_KEY) {
		struct fetch_image *image;
		struct store_key key;

		memcpy(key.bytes, keys->data + i, STORE_KEY);
		image = fetch_image_of(f, &key);
		if (image)
			image->used = true;
	}
	return r;
}

int fetch_callers(struct fetch *f, struct base_err *err)
{
	struct base_map seen = { 0 };
	struct base_buf keys = { 0 };
	struct profdb_callpaths *c;
	int r = f->paths ? list_callers(f, f->paths, "", &seen, &keys) : 0;

	for (size_t i = 0; i < f->nr_parts && r >= 0; i++) {
		const struct fetch_part *part = &f->parts[i];

		if (strcmp(part->kind, "callpaths") != 0 ||
		    profdb_callpaths_parse(part->bytes.data, part->bytes.len, &c, NULL) < 0)
			continue;
		r = list_callers(f, c, part->platform, &seen, &keys);
		profdb_callpaths_free(c);
	}
	if (r >= 0)
		r = ask_callers(f, &keys, err);
	base_map_release(&seen);
	base_buf_release(&keys);
	return r;
}

/* ---- all of it ------------------------------------------------------------------------------- */

static void release(struct gathering *g)
{
	for (size_t i = 0; i < g->nr_hours; i++)
		free(g->hours[i].platform);
	for (size_t i = 0; i < g->nr_jits; i++)
		free(g->jits[i].platform);
	free(g->hours);
	free(g->jits);
	free(g->images);
}

int fetch_paths(struct fetch *f, struct base_err *err)
{
	struct gathering g = { .f = f, .err = err };
	int r = choose(&g);

	f->paths = profdb_callpaths_new();
	if (r >= 0 && !f->paths)
		r = -ENOMEM;
	if (r >= 0 && g.nr_hours)
		r = read_paths(&g);
	if (r >= 0)
		r = fetch_callers(f, err);
	release(&g);
	return r < 0 ? r : fetch_by_routine(f, err);
}
