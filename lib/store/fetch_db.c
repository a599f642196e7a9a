/* SPDX-License-Identifier: BSD-2-Clause */
/* Fetched images and profiles are written as a database, by the way that archives take. */
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "fetch.h"

/* A file that is to come, by its path in the database. */
struct output {
	char *path;
	struct base_buf own; /* its bytes, or */
	const struct base_buf *bytes;
};

struct outputs {
	struct output *v;
	size_t nr, cap;
};

static void outputs_release(struct outputs *o)
{
	for (size_t i = 0; i < o->nr; i++) {
		free(o->v[i].path);
		base_buf_release(&o->v[i].own);
	}
	free(o->v);
}

/* Takes over @path and, of @own, the bytes. A file that no database has is left out, and counted:
 * any machine may have sent it. */
static int add_output(struct fetch *f, struct outputs *o, char *path, struct base_buf *own,
		      const struct base_buf *bytes)
{
	int r = path ? base_grow(&o->v, &o->cap, o->nr + 1, sizeof(*o->v)) : -ENOMEM;
	struct profdb_place place;

	if (r < 0 || profdb_place_parse(path, &place) < 0) {
		f->skipped++;
		free(path);
		if (own)
			base_buf_release(own);
		return r < 0 ? r : 0;
	}
	o->v[o->nr] = (struct output){ .path = path, .bytes = bytes };
	if (own)
		o->v[o->nr].own = *own;
	o->nr++;
	return 0;
}

/* ---- paths ----------------------------------------------------------------------------------- */

static void epoch_name(uint32_t at, char name[PROFDB_EPOCH_LEN + 1])
{
	time_t t = at;
	struct tm tm;

	gmtime_r(&t, &tm);
	strftime(name, PROFDB_EPOCH_LEN + 1, tm.tm_sec ? "%Y%m%d%H%M%S" : "%Y%m%d%H%M", &tm);
}

static char *path_of(const struct fetch *f, const char *platform, uint32_t epoch, const char *name)
{
	char text[PROFDB_EPOCH_LEN + 1], *path;

	epoch_name(epoch ? epoch : f->begin, text);
	return asprintf(&path, "%s/%s/%s", text, platform, name) < 0 ? NULL : path;
}

/* ---- files ----------------------------------------------------------------------------------- */

static int add_profile(struct fetch *f, size_t index, struct outputs *o, struct base_err *err)
{
	const struct fetch_profile *p = &f->profiles[index];
	struct base_buf bytes = { 0 };
	char name[32];
	int r;

	snprintf(name, sizeof(name), "image-%zu", index);
	r = profdb_profile_format(p->p, PROFDB_FORMAT_1, 0, &bytes, err);
	r = r < 0 ? r : add_output(f, o, path_of(f, p->platform, p->epoch, name), &bytes, NULL);
	if (r >= 0 && p->w) {
		memset(&bytes, 0, sizeof(bytes));
		r = profdb_workloads_format(p->w, &bytes, err);
		r = r < 0 ? r
			  : add_output(f, o, path_of(f, p->platform, p->epoch, "workloads"), &bytes,
				       NULL);
	}
	return r;
}

static int add_replicates(struct fetch *f, struct outputs *o, struct base_err *err)
{
	struct base_buf bytes = { 0 };
	int r = profdb_workloads_format(f->replicates.w, &bytes, err);

	return r < 0 ? r : add_output(f, o, path_of(f, f->fleet, 0, "workloads"), &bytes, NULL);
}

static int add_paths(struct fetch *f, struct outputs *o, struct base_err *err)
{
	struct base_buf bytes = { 0 };
	int r = profdb_callpaths_format(f->paths, &bytes, err);

	return r < 0 ? r : add_output(f, o, path_of(f, f->fleet, 0, "callpaths"), &bytes, NULL);
}

static const struct base_buf *content_of(const struct fetch *f, const struct store_key *key)
{
	size_t at = (size_t)(uintptr_t)base_map_get(&f->by_content, key, sizeof(*key));

	return at ? &f->contents[at - 1].bytes : NULL;
}

static int compare_symbols(const void *pa, const void *pb)
{
	const struct pseudoimg_symbol *a = pa, *b = pb;

	return (a->off > b->off) - (a->off < b->off);
}

/* The symbols of a file that is on other machines: an ELF file of these alone. */
static int write_symbols(struct fetch_image *i, struct base_buf *out, struct base_err *err)
{
	int fd = memfd_create("symbols", MFD_CLOEXEC), r;
	uint64_t end = 0;
	off_t len;
	void *to;

	if (fd < 0)
		return -errno;
	qsort(i->symbols, i->nr_symbols, sizeof(*i->symbols), compare_symbols);
	for (size_t k = 0; k < i->nr_symbols; k++)
		if (i->symbols[k].off + i->symbols[k].len > end)
			end = i->symbols[k].off + i->symbols[k].len;
	r = pseudoimg_write_symbols(i->symbols, i->nr_symbols, end, EM_NONE, &i->id, fd, err);
	len = r < 0 ? 0 : lseek(fd, 0, SEEK_END);
	if (r >= 0)
		r = base_buf_extend(out, (size_t)len, &to);
	if (r >= 0)
		r = base_read_at(fd, 0, to, (size_t)len);
	close(fd);
	return r < 0 ? r : 0;
}

static int add_symbols(struct fetch *f, struct fetch_image *i, struct outputs *o,
		       struct base_err *err)
{
	char id[BASE_ID_TEXT_LEN], *path = NULL;
	struct base_buf bytes = { 0 };
	int r = write_symbols(i, &bytes, err);

	if (r >= 0 && asprintf(&path, "kernel/%s.symbols", base_id_text(&i->id, id)) < 0)
		path = NULL;
	if (r < 0) {
		base_buf_release(&bytes);
		return r;
	}
	return add_output(f, o, path, &bytes, NULL);
}

/* Where samples are told by routine, the file of an image without symbols would tell no more. */
static bool is_known(const struct fetch *f, const struct fetch_image *i)
{
	bool by_routine = f->w->detail == STORE_BY_ROUTINE || f->w->detail == STORE_PATHS;

	return i->nr_symbols ||
	       (by_routine && (i->kind == PROFDB_FILE || i->kind == PROFDB_KERNEL));
}

static int add_image(struct fetch *f, struct fetch_image *i, struct outputs *o,
		     struct base_err *err)
{
	const struct base_buf *bytes = content_of(f, &i->content);
	char *path = NULL;

	if (bytes && *i->stem && !strchr(i->stem, '/')) {
		if (asprintf(&path, "%s/%s", i->kind == PROFDB_DYNAMIC ? "dyn" : "kernel",
			     i->stem) < 0)
			path = NULL;
		return add_output(f, o, path, NULL, bytes);
	}
	/* A file with another's build-id, which has a text, must not name that one's code. */
	return is_known(f, i) && i->id.len && !*i->text ? add_symbols(f, i, o, err) : 0;
}

static int add_part(struct fetch *f, const struct fetch_part *part, struct outputs *o)
{
	bool known = strcmp(part->kind, "workloads") == 0 || strcmp(part->kind, "callpaths") == 0;

	f->skipped += !known;
	return !known ? 0
		      : add_output(f, o, path_of(f, part->platform, part->epoch, part->kind), NULL,
				   &part->bytes);
}

/* Images come before what refers to them. */
static int collect(struct fetch *f, struct outputs *o, struct base_err *err)
{
	int r = 0;

	for (size_t i = 0; i < f->nr && r >= 0; i++)
		if (f->v[i].used)
			r = add_image(f, &f->v[i], o, err);
	for (size_t i = 0; i < f->nr_profiles && r >= 0; i++)
		if (f->profiles[i].p)
			r = add_profile(f, i, o, err);
	if (r >= 0 && f->replicates.w)
		r = add_replicates(f, o, err);
	if (r >= 0 && f->with_paths)
		r = add_paths(f, o, err);
	for (size_t i = 0; i < f->nr_parts && r >= 0; i++)
		r = add_part(f, &f->parts[i], o);
	return r;
}

/* ---- the database ---------------------------------------------------------------------------- */

static int import_one(struct profdb_import *im, const struct output *one, struct base_err *err)
{
	const struct base_buf *bytes = one->bytes ? one->bytes : &one->own;
	struct base_sha256 s;
	struct base_file file = { 0 };
	uint8_t sum[32];
	int r;

	base_sha256_init(&s);
	base_sha256_add(&s, bytes->data, bytes->len);
	base_sha256_end(&s, sum);
	r = profdb_import_file(im, one->path, sum, 0644, &file, err);
	if (r != 0)
		return r < 0 ? r : 0;
	/* The store has it all: after a crash it is fetched once more. */
	file.brief = true;
	r = base_write_all(file.fd, bytes->data, bytes->len);
	if (r >= 0)
		r = base_file_commit(&file, err);
	base_file_abort(&file);
	return r;
}

static int import_all(struct profdb *db, const struct outputs *o, struct base_err *err)
{
	const char **paths = calloc(o->nr + 1, sizeof(*paths));
	struct profdb_import *im = NULL;
	int r = paths ? 0 : -ENOMEM;

	for (size_t i = 0; paths && i < o->nr; i++)
		paths[i] = o->v[i].path;
	if (r >= 0)
		r = profdb_import_begin(db, paths, o->nr, &im, err);
	for (size_t i = 0; i < o->nr && r >= 0; i++)
		r = import_one(im, &o->v[i], err);
	if (r >= 0)
		r = profdb_import_commit(im, err);
	if (im)
		profdb_import_end(im);
	free(paths);
	return r;
}

/* Counts what there is, by names that differ. */
static void count(const struct fetch *f, struct store_fetched *out)
{
	struct base_map seen = { 0 };

	memset(out, 0, sizeof(*out));
	out->skipped = f->skipped;
	out->with_paths = f->with_paths;
	out->have_paths = f->have_paths;
	for (size_t i = 0; i < f->nr_profiles; i++) {
		const struct fetch_profile *p = &f->profiles[i];

		out->profiles++;
		if (!base_map_get(&seen, p->platform, strlen(p->platform) + 1)) {
			out->platforms++;
			base_map_set(&seen, p->platform, strlen(p->platform) + 1, &seen);
		}
		if (!base_map_get(&seen, &p->epoch, sizeof(p->epoch))) {
			out->epochs++;
			base_map_set(&seen, &p->epoch, sizeof(p->epoch), &seen);
		}
	}
	base_map_release(&seen);
}

static int nothing(const struct fetch *f, struct base_err *err)
{
	const struct store_want *w = f->w;
	struct base_buf what = { 0 };
	bool timed = w->epoch || w->since != INT64_MIN || w->until != INT64_MAX;

	base_buf_printf(&what, "%s", timed ? "of that time" : "of the last day");
	if (w->event)
		base_buf_printf(&what, ", of event '%s'", w->event);
	if (w->platform)
		base_buf_printf(&what, ", of platform '%s'", w->platform);
	for (size_t i = 0; i < w->nr_labels; i++)
		base_buf_printf(&what, ", %s label '%s'", i ? "or" : "with", w->labels[i]);
	for (size_t i = 0; i < w->nr_images; i++)
		base_buf_printf(&what, ", %s image '%s'", i ? "or" : "in", w->images[i]);
	base_fail(err, -ENOENT, "the store has no samples %s", fetch_text(&what));
	if (!timed)
		base_hint(err, "'-epoch all' looks at all that it has");
	base_buf_release(&what);
	return -ENOENT;
}

int fetch_write(struct fetch *f, const char *path, struct store_fetched *out, struct base_err *err)
{
	struct outputs o = { 0 };
	struct profdb *db = NULL;
	int r;

	if (!f->nr_profiles && f->w->detail != STORE_SYMBOLS)
		return nothing(f, err);
	r = collect(f, &o, err);
	if (r >= 0)
		r = profdb_open(path, true, &db, err);
	if (r >= 0)
		r = import_all(db, &o, err);
	profdb_close(db);
	outputs_release(&o);
	count(f, out);
	return r;
}
