/* SPDX-License-Identifier: BSD-2-Clause */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "dyn_internal.h"

/* ---- names --------------------------------------------------------------------------------- */

/* What is fit for a file name everywhere; nothing hidden, nothing empty. */
static void clean(const char *from, size_t len, char *to, size_t max)
{
	size_t n = 0;

	for (size_t i = 0; i < len && n + 1 < max; i++) {
		unsigned char c = (unsigned char)from[i];

		to[n++] = isascii(c) && (isalnum(c) || strchr("._+-", c)) && c ? (char)c : '_';
	}
	if (!n)
		to[n++] = '_';
	if (to[0] == '.')
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

/* A daemon before us may have written an image of this very facility: that one stays as it is. */
static int choose_stem(struct dyn_facility *f)
{
	int dir = f->registry->dyn->config.db ? profdb_dyn_fd(f->registry->dyn->config.db) : -1;
	char name[WIRE_FACILITY_NAME + 1], host[64], stem[256], tail[16] = "";

	clean(f->name, f->name_len, name, sizeof(name));
	clean(f->registry->dyn->host, strlen(f->registry->dyn->host), host, sizeof(host));
	for (int i = 2; i < 10000; i++) {
		snprintf(stem, sizeof(stem), "%s-%s-%d-%016llx%s.dyn", name, host, f->registry->pid,
			 (unsigned long long)unique_of(f), tail);
		if (dir < 0 || faccessat(dir, stem, F_OK, 0) < 0)
			break;
		snprintf(tail, sizeof(tail), "-%d", i);
	}
	f->stem = strdup(stem);
	return f->stem ? 0 : -ENOMEM;
}

/* ---- life ------------------------------------------------------------------------------------ */

int dyn_facility_new(struct dyn_registry *reg, const struct wire_facility_rec *rec,
		     struct dyn_facility **out)
{
	static const struct base_id none;
	struct dyn_facility *f = calloc(1, sizeof(*f));
	int r = -ENOMEM;

	if (!f)
		return r;
	f->registry = reg;
	f->index = rec->index;
	f->machine = rec->machine;
	f->name_len = rec->name_len < WIRE_FACILITY_NAME ? rec->name_len : WIRE_FACILITY_NAME;
	memcpy(f->name, rec + 1, f->name_len);
	f->next_private = DYN_PRIVATE_BASE;
	r = choose_stem(f);
	if (r == 0) {
		f->image = images_get(reg->dyn->config.images, PROFDB_DYNAMIC, &none, f->stem,
				      f->stem);
		r = f->image ? 0 : -ENOMEM;
	}
	if (r < 0) {
		dyn_facility_free(f);
		return r;
	}
	f->image->refs++;
	*out = f;
	return 0;
}

static void free_runs(struct dyn_facility *f)
{
	/* The runs are the nodes of the tree. */
	dyn_tree_release(&f->pages);
	f->first_run = f->last_run = NULL;
}

void dyn_facility_trim(struct dyn_facility *f)
{
	dyn_registry_give_back(f->registry, f->records.len);
	base_buf_release(&f->records);
	free(f->routines);
	f->routines = NULL;
	f->nr_routines = f->cap_routines = 0;
	base_map_release(&f->by_contents);
	free(f->replaced);
	f->replaced = NULL;
	f->nr_replaced = f->cap_replaced = 0;
}

void dyn_facility_free(struct dyn_facility *f)
{
	if (!f)
		return;
	f->registry->dyn->stats.routines -= f->nr_told;
	dyn_facility_trim(f);
	free_runs(f);
	dyn_tree_release(&f->occupied);
	if (f->image)
		f->image->refs--;
	free(f->stem);
	free(f);
}

/* ---- image offsets ------------------------------------------------------------------------- */

static int add_run(struct dyn_facility *f, uint64_t start, uint64_t end)
{
	struct dyn_run *run = f->last_run;

	if (end - start > DYN_IMAGE_MAX - f->next_off)
		return -DCPI_ELIMIT;
	/* Whatever follows in both address and offset is one run; it may grow, never change. */
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
	dyn_tree_insert(&f->pages, &run->node);
	return 0;
}

int dyn_facility_cover(struct dyn_facility *f, uint64_t elf, uint64_t len)
{
	uint64_t pos = elf & ~(uint64_t)(WIRE_PAGE - 1);
	uint64_t end = base_align_up(elf + len, WIRE_PAGE);

	while (pos < end) {
		const struct dyn_node *n = dyn_tree_overlap(&f->pages, pos, end);
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

int dyn_facility_offset(const struct dyn_facility *f, uint64_t elf, uint64_t *off)
{
	const struct dyn_run *run = (const void *)dyn_tree_find(&f->pages, elf);

	if (!run)
		return -ENOENT;
	*off = run->img_off + (elf - run->node.start);
	return 0;
}

void dyn_facility_ranges(const struct dyn_facility *f,
			 void (*fn)(void *ctx, uint64_t start, uint64_t end), void *ctx)
{
	for (const struct dyn_run *run = f->first_run; run; run = run->next)
		if (run->node.start < DYN_PRIVATE_BASE)
			fn(ctx, run->node.start, run->node.end);
}

/* ---- routines -------------------------------------------------------------------------------- */

static const struct wire_routine *kept(const struct dyn_facility *f, const struct dyn_routine *r)
{
	return (const void *)(f->records.data + r->record);
}

static uint64_t contents_hash(const struct wire_routine *rec)
{
	uint64_t key[3] = { rec->addr, rec->code_len,
			    base_hash64(rec + 1, rec->head.len - sizeof(*rec)) };

	return base_hash64(key, sizeof(key));
}

static bool same(const struct wire_routine *a, uint64_t a_addr, const struct wire_routine *b)
{
	return a_addr == b->addr && a->head.len == b->head.len && a->code_len == b->code_len &&
	       a->name_len == b->name_len && a->nr_lines == b->nr_lines &&
	       a->nr_files == b->nr_files &&
	       !((a->head.flags ^ b->head.flags) & WIRE_ROUTINE_CODE) &&
	       !memcmp(a + 1, b + 1, a->head.len - sizeof(*a));
}

/* Where it is to stand: -ENOMEM, or 0. Its place is marked as taken. */
static int choose_place(struct dyn_facility *f, uint64_t addr, uint64_t len, uint64_t *elf)
{
	struct dyn_node *n;

	if (dyn_tree_overlap(&f->occupied, addr, addr + len)) {
		/* In step with its true address as far as a 16-byte block goes. */
		*elf = base_align_up(f->next_private, 16) + addr % 16;
		f->next_private = *elf + len;
		return 0;
	}
	n = calloc(1, sizeof(*n));
	if (!n)
		return -ENOMEM;
	*n = (struct dyn_node){ .start = addr, .end = addr + len };
	dyn_tree_insert(&f->occupied, n);
	*elf = addr;
	return 0;
}

static int keep_routine(struct dyn_facility *f, const struct wire_routine *rec, uint64_t hash,
			uint64_t *elf)
{
	size_t at = f->records.len;
	struct wire_routine *mine;
	int r;

	if (!dyn_registry_room(f->registry, rec->head.len))
		return -DCPI_ELIMIT;
	r = base_grow(&f->routines, &f->cap_routines, f->nr_routines + 1, sizeof(*f->routines));
	if (r == 0)
		r = base_buf_append(&f->records, rec, rec->head.len);
	if (r == 0)
		r = choose_place(f, rec->addr, rec->code_len, elf);
	if (r == 0)
		r = dyn_facility_cover(f, *elf, rec->code_len);
	if (r < 0) {
		f->records.len = at;
		dyn_registry_give_back(f->registry, rec->head.len);
		return r;
	}
	mine = (void *)(f->records.data + at);
	mine->addr = *elf;
	mine->generation = 0;
	f->routines[f->nr_routines++] = (struct dyn_routine){ rec->addr, *elf, at };
	/* Without memory here the routine may get a second place one day: no harm. */
	base_map_set(&f->by_contents, &hash, sizeof(hash), (void *)(uintptr_t)f->nr_routines);
	f->changed = true;
	f->nr_told++;
	f->registry->dyn->stats.routines++;
	return 0;
}

int dyn_facility_routine(struct dyn_facility *f, const struct wire_routine_view *v, uint64_t *elf)
{
	uint64_t hash = contents_hash(v->rec);
	uintptr_t index = (uintptr_t)base_map_get(&f->by_contents, &hash, sizeof(hash));

	if (index) {
		const struct dyn_routine *old = &f->routines[index - 1];

		if (same(kept(f, old), old->addr, v->rec)) {
			*elf = old->elf;
			return 0;
		}
	}
	return keep_routine(f, v->rec, hash, elf);
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

		part = part < WIRE_RECORD_MAX / 2 ? part : WIRE_RECORD_MAX / 2;
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

int dyn_facility_job(const struct dyn_facility *f, int fd)
{
	const struct dyn_registry *reg = f->registry;
	struct base_buf b = { 0 };
	int r = put_head(f, &b);

	if (r == 0)
		r = put_runs(f, &b);
	if (r == 0)
		r = base_write_all(fd, b.data, b.len);
	if (r == 0)
		r = base_write_all(fd, f->records.data, f->records.len);
	for (size_t i = 0; r == 0 && i < reg->nr_ranges; i++)
		if (reg->ranges[i].known && reg->ranges[i].range.facility == f->index &&
		    reg->ranges[i].range.flags & WIRE_RANGE_OWNED)
			r = write_range(&reg->ranges[i], fd);
	base_buf_release(&b);
	return r;
}
