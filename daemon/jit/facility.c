/* SPDX-License-Identifier: BSD-2-Clause */
/* A facility gives image offsets to the pages of its code and places in the image to its routines,
 * drops those that no sample needs, and writes the job of its image. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "jit_internal.h"

/* Bytes; and units of the spool. */
enum { JOB_PIECE = 256 << 10, JOB_NEAR = 4096 };
/* Hints to runs are kept where there are HINTS_FROM; among fewer a search is as fast. */
enum { HINTS = 512, HINTS_FROM = 8 };

/* ---- names ----------------------------------------------------------------------------------- */

/* The result is fit for a file name everywhere: not hidden, not empty, no option. */
static void clean(const char *from, size_t len, char *to, size_t max)
{
	size_t n = 0;

	for (size_t i = 0; i < len && n + 1 < max; i++) {
		unsigned char c = (unsigned char)from[i];

		to[n++] = isascii(c) && (isalnum(c) || strchr("._+-", c)) && c ? (char)c : '_';
	}
	if (!n)
		to[n++] = '_';
	if (to[0] == '.' || to[0] == '-')
		to[0] = '_';
	to[n] = '\0';
}

/*
 * Unique across hosts by name, across boots and PID namespaces by the hash; a recorded stream has
 * no boot, and gets the same name each time.
 */
static uint64_t unique_of(const struct dyn_facility *f)
{
	const struct dyn_registry *reg = f->registry;
	struct base_buf b = { 0 };
	uint64_t h = 0;

	if (base_buf_printf(&b, "%s %s %d %llx %llx %llx %u", reg->dyn->host, reg->dyn->boot,
			    reg->pid, (unsigned long long)reg->start_time_ns,
			    (unsigned long long)reg->dev, (unsigned long long)reg->ino,
			    f->index) == 0)
		h = base_hash64(b.data, b.len);
	base_buf_release(&b);
	return h;
}

/* It has no image yet. */
static bool is_free(const struct dyn *d, const char *stem, struct image **img)
{
	static const struct base_id none;

	if (d->config.db && faccessat(profdb_dyn_fd(d->config.db), stem, F_OK, 0) == 0)
		return false;
	*img = images_get(d->config.images, PROFDB_DYNAMIC, &none, stem, stem);
	return !*img || (!(*img)->refs && !(*img)->dirty && !(*img)->id.len);
}

/*
 * A daemon before us may have written an image of this very facility: that one stays as it is. In a
 * recorded stream nothing tells two lives of a pid apart.
 */
static int choose_stem(struct dyn_facility *f)
{
	char name[WIRE_FACILITY_NAME + 1], host[64], stem[256], tail[16] = "";

	clean(f->name, f->name_len, name, sizeof(name));
	clean(f->registry->dyn->host, strlen(f->registry->dyn->host), host, sizeof(host));
	for (int i = 2; i < 10000; i++) {
		snprintf(stem, sizeof(stem), "%s-%s-%d-%016llx%s.dyn", name, host, f->registry->pid,
			 (unsigned long long)unique_of(f), tail);
		if (is_free(f->registry->dyn, stem, &f->image))
			break;
		snprintf(tail, sizeof(tail), "-%d", i);
	}
	if (f->image) {
		f->image->refs++;
		f->image->excluded = images_is_excluded(f->registry->dyn->config.images, f->name);
	}
	f->stem = strdup(stem);
	return f->stem && f->image ? 0 : -ENOMEM;
}

/* ---- life ------------------------------------------------------------------------------------ */

int dyn_facility_new(struct dyn_registry *reg, const struct wire_facility_rec *rec,
		     struct dyn_facility **out)
{
	struct dyn_facility *f = calloc(1, sizeof(*f));
	int r = -ENOMEM;

	if (!f)
		return r;
	f->registry = reg;
	f->index = rec->index;
	f->machine = rec->machine;
	f->name_len = rec->name_len < WIRE_FACILITY_NAME ? rec->name_len : WIRE_FACILITY_NAME;
	memcpy(f->name, rec + 1, f->name_len);
	f->next_private = 1;
	r = choose_stem(f);
	if (r < 0) {
		dyn_facility_free(f);
		return r;
	}
	*out = f;
	return 0;
}

static void free_runs(struct dyn_facility *f)
{
	/* The runs are the nodes of the tree. */
	interval_release(&f->pages);
	free(f->hints);
	f->hints = NULL;
	f->first_run = f->last_run = NULL;
}

/* The end of a file that is being written is waited for; its result is of no use. */
static void drop_writing(struct dyn_facility *f)
{
	struct dyn_task *t = f->writing;

	if (!t)
		return;
	dyn_task_end(f->registry->dyn, t);
	t->release(t);
}

void dyn_facility_free(struct dyn_facility *f)
{
	if (!f)
		return;
	f->registry->dyn->stats.routines -= f->nr_routines;
	drop_writing(f);
	free_runs(f);
	free(f->replaced);
	if (f->image)
		f->image->refs--;
	free(f->stem);
	free(f);
}

/* ---- image offsets --------------------------------------------------------------------------- */

static void widen(struct dyn_registry *reg, uint64_t start, uint64_t end)
{
	if (start >= PSEUDOIMG_MODULE)
		return;
	reg->low = !reg->high || start < reg->low ? start : reg->low;
	reg->high = end > reg->high ? end : reg->high;
}

static int add_run(struct dyn_facility *f, uint64_t start, uint64_t end)
{
	struct dyn_run *run = f->last_run;

	if (end - start > DYN_IMAGE_MAX - f->next_off)
		return -DCPI_ELIMIT;
	widen(f->registry, start, end);
	/* Pages that follow each other in both address and offset are one run; it may grow, never
	 * change. */
	if (run && run->node.end == start &&
	    run->img_off + (run->node.end - run->node.start) == f->next_off) {
		run->node.end = end;
		f->next_off += end - start;
		return 0;
	}
	run = calloc(1, sizeof(*run));
	if (!run)
		return -ENOMEM;
	run->node.start = start;
	run->node.end = end;
	run->img_off = f->next_off;
	f->next_off += end - start;
	if (f->last_run)
		f->last_run->next = run;
	else
		f->first_run = run;
	f->last_run = run;
	interval_insert(&f->pages, &run->node);
	f->registry->nr_runs++;
	if (!f->hints && f->pages.nr >= HINTS_FROM)
		f->hints = calloc(HINTS, sizeof(*f->hints));
	return 0;
}

/* The last runs are kept as hints: pages of several threads come by turns. */
int dyn_facility_offset(const struct dyn_facility *f, uint64_t elf, uint64_t *off)
{
	const struct dyn_run **hint =
		f->hints ? &f->hints[base_hash_u64(elf / WIRE_PAGE) % HINTS] : NULL;
	const struct dyn_run *run = hint ? *hint : NULL;

	if (!run || elf < run->node.start || elf >= run->node.end) {
		run = (const void *)interval_find(&f->pages, elf);
		if (!run)
			return -ENOENT;
		if (hint)
			*hint = run;
	}
	*off = run->img_off + (elf - run->node.start);
	return 0;
}

int dyn_facility_cover(struct dyn_facility *f, uint64_t elf, uint64_t len)
{
	uint64_t pos = elf & ~(uint64_t)(WIRE_PAGE - 1);
	uint64_t end = base_align_up(elf + len, WIRE_PAGE), off;

	if (dyn_facility_offset(f, pos, &off) == 0)
		pos += WIRE_PAGE;
	while (pos < end) {
		const struct interval_node *n = interval_overlap(&f->pages, pos, end);
		uint64_t stop = n ? n->start : end;
		int r;

		if (n && n->start <= pos) {
			pos = n->end;
			continue;
		}
		r = add_run(f, pos, stop);
		if (r < 0)
			return r;
		f->changed = true;
		pos = stop;
	}
	return 0;
}

/* ---- its routines ---------------------------------------------------------------------------- */

const struct wire_routine *dyn_facility_record(const struct dyn_facility *f,
					       const struct dyn_routine *r)
{
	struct dyn *d = f->registry->dyn;

	/* Other code may stand there now than when it was filled. */
	base_buf_clear(&d->trace.bytes);
	return dyn_spool_get(&d->spool, r->record, &d->trace, 1024);
}

/* ---- places ---------------------------------------------------------------------------------- */

int dyn_facility_place(struct dyn_facility *f, uint32_t index, bool space)
{
	struct dyn_lifetimes *t = &f->registry->lifetimes;
	struct dyn_routine *r = dyn_routine_get(&t->routines, index);
	uint32_t units = (uint32_t)((r->addr % 16 + r->len + 15) / 16);
	int err;

	if (r->place != DYN_PLACE_NONE || r->flags & DYN_NAMELESS)
		return 0;
	/* Routines that live are disjoint from it: only ended ones can have its address. */
	if (r->flags & DYN_LIVE &&
	    !dyn_routine_overlap(&t->routines, t->dead[f->index], r->addr, r->addr + r->len))
		r->place = DYN_PLACE_OWN;
	else if (!space)
		return 0;
	else if (units > DYN_PLACE_OWN - 1 - f->next_private)
		return -DCPI_ELIMIT;
	else
		r->place = f->next_private;
	/* Without a place it is as one that has no record. */
	err = f->registry->nr_runs < DYN_RUNS_MAX
		      ? dyn_facility_cover(f, dyn_facility_elf(r), r->len)
		      : -DCPI_ELIMIT;
	if (err < 0)
		r->place = DYN_PLACE_NONE;
	else if (r->place != DYN_PLACE_OWN)
		f->next_private += units;
	f->changed = true;
	return err;
}

/* ---- what is in the image -------------------------------------------------------------------- */

/* While the database is full only what must be. */
static bool keeps_all(const struct dyn_facility *f)
{
	const struct dyn *d = f->registry->dyn;

	return d->config.keep_all && !dyn_is_full(d, f->registry->uid);
}

static bool dyn_facility_is_included(const struct dyn_facility *f, const struct dyn_routine *r,
				     bool full)
{
	unsigned int flags = DYN_SAMPLED | DYN_WRITTEN | (full ? DYN_LIVE : 0);

	return r->record && r->facility == f->index && r->place != DYN_PLACE_NONE &&
	       (keeps_all(f) || r->flags & flags);
}

void dyn_facility_written(struct dyn_facility *f, bool full)
{
	const struct dyn_routines *t = &f->registry->lifetimes.routines;

	for (uint32_t i = 1; i <= t->last; i++) {
		struct dyn_routine *r = dyn_routine_get(t, i);

		if (dyn_facility_is_included(f, r, full))
			r->flags |= DYN_WRITTEN;
	}
	f->image->behind = f->owned_changed = false;
	if (full || keeps_all(f))
		f->changed = false;
}

bool dyn_facility_is_behind(const struct dyn_facility *f, bool full)
{
	if (f->image->behind || f->writing || f->joining)
		return true;
	return !f->registry->dyn->full &&
	       (f->owned_changed || (f->changed && (full || keeps_all(f))));
}

/* ---- what is dropped ------------------------------------------------------------------------- */

static void drop(struct dyn_registry *reg, uint32_t index)
{
	struct dyn_lifetimes *t = &reg->lifetimes;
	struct dyn_routine *r = dyn_routine_get(&t->routines, index);
	struct dyn_facility *f = reg->facilities[r->facility];
	const struct wire_routine *rec = dyn_facility_record(f, r);

	if (!rec)
		return;
	dyn_spool_drop(&reg->dyn->spool, &reg->store, r->record, rec->head.len);
	r->record = 0;
	f->nr_routines--;
	reg->dyn->stats.routines--;
	/* An offset that was on disk once is given to no other routine. */
	if (r->place == DYN_PLACE_OWN && r->flags & DYN_WRITTEN)
		return;
	if (r->place == DYN_PLACE_OWN)
		dyn_routine_remove(&t->routines, &t->dead[r->facility], index);
	dyn_routine_drop(&t->routines, index);
}

/* Segments of which little is left are emptied. */
static void compact(struct dyn_registry *reg)
{
	const struct dyn_routines *t = &reg->lifetimes.routines;
	struct dyn_spool *spool = &reg->dyn->spool;

	if (!dyn_spool_is_sparse(&reg->store))
		return;
	for (uint32_t i = 1; i <= t->last; i++) {
		struct dyn_routine *r = dyn_routine_get(t, i);
		const struct wire_routine *rec;
		uint32_t record;

		if (!r->record || !dyn_spool_in_sparse(spool, r->record))
			continue;
		rec = dyn_facility_record(reg->facilities[r->facility], r);
		if (!rec || dyn_spool_put(spool, &reg->store, &rec->head, &record) < 0)
			return;
		dyn_spool_drop(spool, &reg->store, r->record, rec->head.len);
		r->record = record;
	}
}

void dyn_facility_drop_unused(struct dyn_registry *reg)
{
	struct dyn_lifetimes *t = &reg->lifetimes;

	for (size_t i = 0; i < t->nr_unused; i++) {
		const struct dyn_routine *r = dyn_routine_get(&t->routines, t->unused[i]);

		/* It may have come back, or be dropped already. */
		if (r->nr_past || r->flags & (DYN_LIVE | DYN_SAMPLED))
			continue;
		if (r->flags & DYN_NAMELESS)
			dyn_routine_drop(&t->routines, t->unused[i]);
		else if (r->record && !reg->dyn->config.keep_all)
			drop(reg, t->unused[i]);
	}
	t->nr_unused = 0;
	compact(reg);
}

/* ---- the job --------------------------------------------------------------------------------- */

static int put_head(const struct dyn_facility *f, struct base_buf *b)
{
	const struct dyn_registry *reg = f->registry;
	size_t host_len = strlen(reg->dyn->host), exe_len = strlen(reg->exe);
	size_t len = sizeof(struct wire_image) + f->name_len + host_len + exe_len;
	struct wire_image *i;
	void *p;
	int r = base_buf_extend(b, base_align_up(len, 8), &p);

	if (r < 0)
		return r;
	i = p;
	*i = (struct wire_image){ .head = { .len = (uint32_t)base_align_up(len, 8),
					    .type = WIRE_IMAGE },
				  .machine = f->machine,
				  .pid = (uint32_t)reg->pid,
				  .start_time_ns = reg->start_time_ns,
				  .created_s = reg->created_s,
				  .uid = reg->uid,
				  .facility_len = (uint16_t)f->name_len,
				  .host_len = (uint16_t)host_len,
				  .exe_len = (uint16_t)exe_len };
	p = i + 1;
	p = mempcpy(p, f->name, f->name_len);
	p = mempcpy(p, reg->dyn->host, host_len);
	memcpy(p, reg->exe, exe_len);
	return 0;
}

static int put_runs(const struct dyn_facility *f, struct base_buf *b)
{
	int r = 0;

	for (const struct dyn_run *run = f->first_run; run && r == 0; run = run->next) {
		struct wire_run rec = { .head = { .len = sizeof(rec), .type = WIRE_RUN },
					.vaddr = run->node.start,
					.img_off = run->img_off,
					.len = run->node.end - run->node.start };

		r = base_buf_append(b, &rec, sizeof(rec));
	}
	for (size_t i = 0; i < f->nr_replaced && r == 0; i++) {
		struct wire_replaces rec = { .head = { .len = sizeof(rec),
						       .type = WIRE_REPLACES } };

		memcpy(rec.id, f->replaced[i].bytes, sizeof(rec.id));
		r = base_buf_append(b, &rec, sizeof(rec));
	}
	return r;
}

/*
 * In parts that are records; one, but for ranges of a size that nobody has seen yet. One without
 * bytes as well: DST counts from the first code range, which may be empty still.
 */
static int write_range(const struct dyn_range *range, int fd)
{
	static const uint8_t zeros[8];
	size_t pos = 0;
	int r = 0;

	do {
		size_t part = range->contents.len - pos;
		struct wire_bytes rec = { .head.type = WIRE_BYTES,
					  .facility = range->range.facility,
					  .kind = range->range.kind,
					  .vaddr = range->range.base + pos,
					  .range_base = range->range.base,
					  .range_len = range->range.len };

		part = part < WIRE_BYTES_MOST ? part : WIRE_BYTES_MOST;
		rec.bytes_len = part;
		rec.head.len = (uint32_t)base_align_up(sizeof(rec) + part, 8);
		r = base_write_all(fd, &rec, sizeof(rec));
		if (r == 0 && part)
			r = base_write_all(fd, range->contents.data + pos, part);
		if (r == 0)
			r = base_write_all(fd, zeros, rec.head.len - sizeof(rec) - part);
		pos += part;
	} while (r == 0 && pos < range->contents.len);
	return r;
}

static int put_place(struct base_buf *b, const struct dyn_routine *r)
{
	struct wire_place rec = { .head = { .len = sizeof(rec), .type = WIRE_PLACE },
				  .vaddr = r->addr,
				  .elf = dyn_facility_elf(r),
				  .len = r->len,
				  .from_seq = r->seq };

	if (!(r->flags & DYN_LIVE))
		rec.until_seq = r->kid[0] | (uint64_t)r->kid[1] << 32;
	return base_buf_append(b, &rec, sizeof(rec));
}

/* The record stands at its place in the ELF, of which a note tells where that is not its own. */
static int put_routine(struct base_buf *b, const struct dyn_routine *routine,
		       const struct wire_routine *rec)
{
	struct wire_routine *to;
	void *p;
	int r;

	if (!rec)
		return -EIO;
	r = base_buf_extend(b, rec->head.len, &p);
	if (r < 0)
		return r;
	to = memcpy(p, rec, rec->head.len);
	to->addr = dyn_facility_elf(routine);
	return routine->place == DYN_PLACE_OWN ? 0 : put_place(b, routine);
}

/* Records that lie one behind the other are read many at a time. */
static int write_routines(const struct dyn_facility *f, bool full, int fd)
{
	const struct dyn_routines *t = &f->registry->lifetimes.routines;
	const struct dyn_spool *spool = &f->registry->dyn->spool;
	struct dyn_trace trace = { 0 };
	struct base_buf b = { 0 };
	uint32_t last = 0;
	int r = 0;

	for (uint32_t i = 1; r == 0 && i <= t->last; i++) {
		const struct dyn_routine *routine = dyn_routine_get(t, i);
		bool near = routine->record - last < JOB_NEAR;

		if (!dyn_facility_is_included(f, routine, full))
			continue;
		last = routine->record;
		r = put_routine(&b, routine,
				dyn_spool_get(spool, last, &trace, near ? JOB_PIECE : 1024));
		if (r < 0 || b.len < JOB_PIECE)
			continue;
		r = base_write_all(fd, b.data, b.len);
		base_buf_clear(&b);
	}
	if (r == 0)
		r = base_write_all(fd, b.data, b.len);
	dyn_trace_release(&trace);
	base_buf_release(&b);
	return r;
}

struct put_patch {
	const struct dyn_range *range;
	int fd;
};

/* Code that stood there later is a range of its own, which a place ties to where it stood. */
static int put_patch(void *ctx, uint64_t vaddr, uint64_t elf, uint64_t len,
		     const struct base_buf *bytes)
{
	const struct put_patch *p = ctx;
	struct wire_place place = { .head = { .len = sizeof(place), .type = WIRE_PLACE },
				    .vaddr = vaddr,
				    .elf = elf,
				    .len = len };
	struct dyn_range range = { .range = p->range->range, .contents = *bytes };
	int r;

	range.range.base = elf;
	range.range.len = len;
	r = base_write_all(p->fd, &place, sizeof(place));
	return r < 0 ? r : write_range(&range, p->fd);
}

static int write_owned(const struct dyn_range *range, int fd)
{
	int r = write_range(range, fd);

	return r < 0 ? r : dyn_patch_each(range, put_patch, &(struct put_patch){ range, fd });
}

int dyn_facility_job(const struct dyn_facility *f, bool full, int fd)
{
	const struct dyn_registry *reg = f->registry;
	struct base_buf b = { 0 };
	int r = put_head(f, &b);

	if (r == 0)
		r = put_runs(f, &b);
	if (r == 0)
		r = base_write_all(fd, b.data, b.len);
	if (r == 0)
		r = write_routines(f, full, fd);
	for (size_t i = 0; r == 0 && i < reg->nr_ranges; i++)
		if (reg->ranges[i].known && reg->ranges[i].range.facility == f->index &&
		    reg->ranges[i].range.flags & WIRE_RANGE_OWNED)
			r = write_owned(&reg->ranges[i], fd);
	base_buf_release(&b);
	return r;
}
