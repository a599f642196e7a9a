/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Several processes' images become one: the first one's offsets stay, of the others each routine
 * that is there already (by hash) is found in it, and the rest gets room behind. One job is made of
 * all, and written as any other.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bound.h"
#include "pseudoimg_internal.h"

/* Part of a file that is a job. */
struct merge_part {
	int fd;
	uint64_t start, len;
};

/* Ascending, disjoint once it is a map. */
struct merge_list {
	struct wire_moved *v;
	size_t nr, cap;
};

struct merge_known {
	uint8_t exact[20];
	uint64_t img_off;
};

struct merge {
	struct pseudoimg_sink out; /* the job that is made of all */
	struct merge_part base, image;
	struct wire_image *head; /* a copy of the first one's; NULL: none was taken yet */
	PSEUDOIMG_ARRAY(struct merge_known) known;
	uint32_t *table; /* index of these by hash: number + 1 */
	size_t cap;
	uint64_t seed;
	uint64_t vaddr, img_off, used; /* room for what is new, page aligned; bytes of it */
	bool has_gap, needs_gap;
	/* New places of the merged image's routines; and all its offsets. */
	struct merge_list moved, map;
	struct base_buf *maps; /* the answer */
	uint32_t nr_bad, nr_overlaps;
};

/* ---- the map of offsets ---------------------------------------------------------------------- */

static int by_from(const void *a, const void *b)
{
	const struct wire_moved *x = a, *y = b;

	return (x->from > y->from) - (x->from < y->from);
}

/* Neighbours that went together are one; what stayed needs no entry. */
static int append(struct merge_list *list, uint64_t from, uint64_t to, uint64_t len)
{
	struct wire_moved *last = list->nr ? &list->v[list->nr - 1] : NULL;

	if (!len || from == to)
		return 0;
	if (last && last->from + last->len == from && last->to + last->len == to) {
		last->len += len;
		return 0;
	}
	last = PSEUDOIMG_PUSH(list);
	if (!last)
		return -ENOMEM;
	*last = (struct wire_moved){ from, to, len };
	return 0;
}

static int append_gap(struct merge *f, struct merge_list *list, uint64_t from, uint64_t to)
{
	if (from >= to)
		return 0;
	f->needs_gap = true;
	return append(list, from, PSEUDOIMG_GAP_OFF + from, to - from);
}

/*
 * From the places of the routines, those of all offsets of the image: gaps go to the gap. Runs and
 * places ascend. What is in no routine must not fall into one of another process.
 */
static int merge_map_make(struct merge *f, const struct pseudoimg_model *m)
{
	size_t next = 0;
	int r = 0;

	if (f->moved.nr)
		qsort(f->moved.v, f->moved.nr, sizeof(*f->moved.v), by_from);
	for (size_t k = 0; r >= 0 && k < m->runs_by_off.nr; k++) {
		const struct pseudoimg_span *run = &m->runs.v[m->runs_by_off.v[k]];
		uint64_t at = run->img_off, end = at + run->len;

		/* Its offsets stay: the image has been folded before. */
		if (run->start == PSEUDOIMG_GAP) {
			f->needs_gap = true;
			continue;
		}
		if (end > PSEUDOIMG_GAP_LEN)
			return -DCPI_ELIMIT;
		for (; r >= 0 && next < f->moved.nr && f->moved.v[next].from < end; next++) {
			const struct wire_moved *v = &f->moved.v[next];

			r = append_gap(f, &f->map, at, v->from);
			if (r >= 0)
				r = append(&f->map, v->from, v->to, v->len);
			at = v->from + v->len;
		}
		if (r >= 0)
			r = append_gap(f, &f->map, at, end);
	}
	return r;
}

/* The entry that ends behind @off first, or nr. */
static size_t entry_at(const struct merge_list *map, uint64_t off)
{
	return BASE_BOUND(i, map->nr, map->v[i].from + map->v[i].len <= off);
}

/* Follow [@from, @from + @len), known as @as, through the map piece by piece. */
static int through(const struct merge_list *map, uint64_t as, uint64_t from, uint64_t len,
		   struct merge_list *out)
{
	uint64_t done = 0;
	int r = 0;

	for (size_t i = entry_at(map, from); r >= 0 && done < len; i++) {
		uint64_t at = from + done, n = len - done;
		const struct wire_moved *e = i < map->nr ? &map->v[i] : NULL;

		if (e && e->from > at && e->from - at < n)
			n = e->from - at;
		if (!e || e->from > at) {
			r = append(out, as + done, at, n);
			done += n;
			i--;
			continue;
		}
		if (e->from + e->len - at < n)
			n = e->from + e->len - at;
		r = append(out, as + done, e->to + (at - e->from), n);
		done += n;
	}
	return r;
}

/* First the old image's own map, then ours; between its entries ours alone. */
static int compose(const struct merge *f, const struct wire_replaces *rec, struct merge_list *out)
{
	const struct merge_list *map = &f->map;
	const struct wire_moved *own = (const void *)(rec + 1);
	uint64_t at = 0;
	size_t i = 0;
	int r = 0;

	for (uint32_t k = 0; r >= 0 && k <= rec->nr_moved; k++) {
		uint64_t end = k < rec->nr_moved ? own[k].from : UINT64_MAX;

		for (i = entry_at(map, at); r >= 0 && i < map->nr && map->v[i].from < end; i++) {
			uint64_t from = map->v[i].from > at ? map->v[i].from : at;
			uint64_t to = map->v[i].from + map->v[i].len;

			to = to < end ? to : end;
			if (from < to)
				r = append(out, from, map->v[i].to + (from - map->v[i].from),
					   to - from);
		}
		if (r < 0 || k == rec->nr_moved)
			break;
		r = through(map, own[k].from, own[k].to, own[k].len, out);
		at = own[k].from + own[k].len;
	}
	return r;
}

static int put_replaces(struct base_buf *b, const uint8_t id[20], const struct merge_list *map)
{
	struct wire_replaces rec = { .head = { .type = WIRE_REPLACES } };
	uint64_t len = sizeof(rec) + map->nr * sizeof(*map->v);
	int r;

	if (len > WIRE_RECORD_MAX)
		return -DCPI_ELIMIT;
	rec.head.len = (uint32_t)len;
	rec.nr_moved = (uint32_t)map->nr;
	memcpy(rec.id, id, sizeof(rec.id));
	r = base_buf_append(b, &rec, sizeof(rec));
	return r < 0 ? r : base_buf_append(b, map->v, map->nr * sizeof(*map->v));
}

/* An earlier build-id of it, and a place in it, as they are in the new image. */
static int merge_map_replaces(struct merge *f, const struct wire_replaces *rec)
{
	struct merge_list list = { 0 };
	int r = compose(f, rec, &list);

	if (r >= 0)
		r = put_replaces(&f->out.b, rec->id, &list);
	if (r >= 0)
		r = pseudoimg_sink_drain(&f->out);
	free(list.v);
	return r;
}

/* Its address in the file is another now. Without an entry in the map it stays where it is. */
static int merge_map_place(struct merge *f, const struct pseudoimg_model *m,
			   const struct wire_place *rec)
{
	const struct pseudoimg_span *run = pseudoimg_runs_find(m, rec->elf);
	struct wire_place place = *rec;
	const struct wire_moved *e;
	uint64_t off, end;
	size_t i;
	int r;

	if (!run || rec->len > pseudoimg_span_end(run) - rec->elf)
		return 0;
	off = run->img_off + (rec->elf - run->start);
	i = entry_at(&f->map, off);
	e = i < f->map.nr ? &f->map.v[i] : NULL;
	end = !e ? UINT64_MAX : e->from <= off ? e->from + e->len : e->from;
	/* It went to several places. */
	if (rec->len > end - off)
		return 0;
	if (e && e->from <= off)
		off = e->to + (off - e->from);
	/* Where it was found in what was there before, that has its own note. */
	if (off < f->img_off || off >= PSEUDOIMG_GAP_LEN)
		return 0;
	place.head.len = sizeof(place);
	place.elf = f->vaddr + (off - f->img_off);
	r = base_buf_append(&f->out.b, &place, sizeof(place));
	return r < 0 ? r : pseudoimg_sink_drain(&f->out);
}

/* Append the map to the answer. */
static int merge_map_answer(struct merge *f)
{
	static const uint8_t none[20];

	return put_replaces(f->maps, none, &f->map);
}

/* ---- the job --------------------------------------------------------------------------------- */

enum { MODULE_ALIGN = 4 /* as instructions need it */, COPY = 64 << 10 };

/* ---- known routines -------------------------------------------------------------------------- */

static struct merge_known *slot(struct merge *f, const uint8_t exact[20], uint32_t **table)
{
	size_t i = base_hash64_seeded(f->seed, exact, 20) & (f->cap - 1);

	for (; f->table[i]; i = (i + 1) & (f->cap - 1))
		if (!memcmp(f->known.v[f->table[i] - 1].exact, exact, 20))
			break;
	*table = &f->table[i];
	return f->table[i] ? &f->known.v[f->table[i] - 1] : NULL;
}

static int grow(struct merge *f)
{
	size_t cap = f->cap ? f->cap * 2 : 256;
	uint32_t *table = calloc(cap, sizeof(*table)), *at;

	if (!table)
		return -ENOMEM;
	if (!f->seed)
		f->seed = base_hash_seed();
	free(f->table);
	f->table = table;
	f->cap = cap;
	for (size_t i = 0; i < f->known.nr; i++) {
		slot(f, f->known.v[i].exact, &at);
		*at = (uint32_t)i + 1;
	}
	return 0;
}

/* 1 where it is known: *img_off is its place; 0 where it is added with that. */
static int know(struct merge *f, const struct pseudoimg_hashes *h, uint64_t *img_off)
{
	struct merge_known *known;
	uint32_t *at;
	int r = f->known.nr * 2 >= f->cap ? grow(f) : 0;

	if (r < 0)
		return r;
	known = slot(f, h->exact, &at);
	if (known) {
		*img_off = known->img_off;
		return 1;
	}
	if (f->known.nr >= UINT32_MAX / 2)
		return -DCPI_ELIMIT;
	known = PSEUDOIMG_PUSH(&f->known);
	if (!known)
		return -ENOMEM;
	known->img_off = *img_off;
	memcpy(known->exact, h->exact, sizeof(known->exact));
	*at = (uint32_t)f->known.nr;
	return 0;
}

static bool is_known(struct merge *f, const struct pseudoimg_hashes *h)
{
	uint32_t *at;

	return f->cap && slot(f, h->exact, &at);
}

/* ---- output ---------------------------------------------------------------------------------- */

static int put(struct merge *f, const void *data, size_t len)
{
	int r = base_buf_append(&f->out.b, data, len);

	return r < 0 ? r : pseudoimg_sink_drain(&f->out);
}

static int put_run(struct merge *f, uint64_t vaddr, uint64_t img_off, uint64_t len)
{
	const struct wire_run run = { .head = { .len = sizeof(run), .type = WIRE_RUN },
				      .vaddr = vaddr,
				      .img_off = img_off,
				      .len = len };

	return put(f, &run, sizeof(run));
}

static int copy(struct merge *f, const struct merge_part *part)
{
	struct pseudoimg_job j;
	uint64_t done = 0;
	void *space;
	int r = 0;

	pseudoimg_job_of_part(&j, part->fd, part->start, part->len);
	while (r >= 0 && done < part->len) {
		size_t n = part->len - done < COPY ? (size_t)(part->len - done) : COPY;

		r = base_buf_extend(&f->out.b, n, &space);
		if (r >= 0)
			r = pseudoimg_job_read(&j, done, space, n);
		if (r >= 0)
			r = pseudoimg_sink_drain(&f->out);
		done += n;
	}
	return r;
}

/* ---- the first one --------------------------------------------------------------------------- */

static int hash_node(struct pseudoimg_model *m, const struct pseudoimg_node *node,
		     struct pseudoimg_loaded *l, struct pseudoimg_hashes *h)
{
	int r = pseudoimg_model_load_lines(m, node, l);

	return r < 0 ? r : pseudoimg_hash(m, node, l, h);
}

/* Room for others begins behind all that it has. */
static void find_space(struct merge *f, const struct pseudoimg_model *m)
{
	f->vaddr = PSEUDOIMG_MODULE;
	for (size_t i = 0; i < m->runs.nr; i++) {
		const struct pseudoimg_span *run = &m->runs.v[i];

		if (run->start == PSEUDOIMG_GAP) {
			f->has_gap = true;
			continue;
		}
		if (pseudoimg_span_end(run) > f->vaddr)
			f->vaddr = pseudoimg_span_end(run);
		if (run->img_off + run->len > f->img_off)
			f->img_off = run->img_off + run->len;
	}
	f->vaddr = base_align_up(f->vaddr, WIRE_PAGE);
	f->img_off = base_align_up(f->img_off, WIRE_PAGE);
}

static int learn(struct merge *f, struct pseudoimg_model *m)
{
	int r = 0;

	for (size_t i = 0; r >= 0 && i < m->nodes.nr; i++) {
		const struct pseudoimg_node *node = &m->nodes.v[i];
		const struct pseudoimg_span *run = pseudoimg_runs_find(m, node->start);
		struct pseudoimg_loaded l;
		struct pseudoimg_hashes h;
		uint64_t off;

		/* One that the runs tear apart is not at one place. */
		if (!run || node->start + node->len > pseudoimg_span_end(run))
			continue;
		off = run->img_off + (node->start - run->start);
		r = hash_node(m, node, &l, &h);
		if (r >= 0)
			r = know(f, &h, &off);
	}
	return r;
}

static int take_first(struct merge *f, struct pseudoimg_model *m, const struct merge_part *part)
{
	int r = copy(f, part);

	f->head = malloc(m->image->head.len);
	if (!f->head)
		return -ENOMEM;
	memcpy(f->head, m->image, m->image->head.len);
	find_space(f, m);
	if (f->img_off >= PSEUDOIMG_GAP_LEN || f->vaddr >= PSEUDOIMG_GAP)
		return -DCPI_ELIMIT;
	return r < 0 ? r : learn(f, m);
}

/* ---- the others ------------------------------------------------------------------------------ */

static int put_place(struct merge *f, const struct pseudoimg_node *node, uint64_t elf, uint64_t seq)
{
	const struct wire_place place = {
		.head = { .len = sizeof(place), .type = WIRE_PLACE },
		.vaddr = node->start,
		.elf = elf,
		.len = node->len,
		.from_seq = seq,
	};

	/* One that had room of its own already has a note that tells its address. */
	return node->start >= PSEUDOIMG_MODULE ? 0 : put(f, &place, sizeof(place));
}

static int put_routine(struct merge *f, struct pseudoimg_model *m,
		       const struct pseudoimg_node *node, uint64_t *img_off)
{
	struct pseudoimg_loaded l;
	struct wire_routine head;
	uint64_t vaddr;
	int r;

	f->used = base_align_up(f->used, MODULE_ALIGN);
	vaddr = f->vaddr + f->used;
	*img_off = f->img_off + f->used;
	f->used += node->len;
	if (vaddr + node->len > PSEUDOIMG_GAP || *img_off + node->len > PSEUDOIMG_GAP_LEN)
		return -DCPI_ELIMIT;
	r = pseudoimg_model_load(m, node, &l);
	if (r < 0)
		return r;
	head = *l.view.rec;
	head.addr = vaddr;
	r = base_buf_append(&f->out.b, &head, sizeof(head));
	if (r >= 0)
		r = put(f, l.view.rec + 1, head.head.len - sizeof(head));
	return r < 0 ? r : put_place(f, node, vaddr, head.seq);
}

/* Where a routine of this one stands in the new one: each piece of it that stands together. */
static int map_node(struct merge *f, const struct pseudoimg_model *m,
		    const struct pseudoimg_node *node, uint64_t to)
{
	const struct pseudoimg_span *run;
	struct wire_moved *moved;
	uint64_t off, n;

	for (uint64_t done = 0; done < node->len; done += n) {
		run = pseudoimg_runs_find(m, node->start + done);
		moved = run ? PSEUDOIMG_PUSH(&f->moved) : NULL;
		if (!moved)
			return run ? -ENOMEM : -DCPI_EFORMAT;
		off = node->start + done - run->start;
		n = run->len - off < node->len - done ? run->len - off : node->len - done;
		*moved = (struct wire_moved){ run->img_off + off, to + done, n };
	}
	return 0;
}

static int merge_node(struct merge *f, struct pseudoimg_model *m, const struct pseudoimg_node *node)
{
	uint64_t to = 0, found = 0;
	struct pseudoimg_loaded l;
	struct pseudoimg_hashes h;
	int r = hash_node(m, node, &l, &h);

	if (r >= 0 && !is_known(f, &h))
		r = put_routine(f, m, node, &to);
	found = to;
	if (r >= 0)
		r = know(f, &h, &found);
	return r < 0 ? r : map_node(f, m, node, found);
}

/* Go by image offset, so that equal processes are laid out alike wherever the kernel put them. */
static int merge_nodes(struct merge *f, struct pseudoimg_model *m)
{
	int r = 0;

	for (size_t k = 0; k < m->runs_by_off.nr; k++) {
		const struct pseudoimg_span *run = &m->runs.v[m->runs_by_off.v[k]];
		size_t i = pseudoimg_model_from(m, run->start);

		for (; r >= 0 && i < m->nodes.nr; i++) {
			if (m->nodes.v[i].start >= pseudoimg_span_end(run))
				break;
			r = merge_node(f, m, &m->nodes.v[i]);
		}
	}
	return r;
}

static bool same_kind(const struct wire_image *a, const struct wire_image *b)
{
	return a->machine == b->machine && a->facility_len == b->facility_len &&
	       !memcmp(a + 1, b + 1, a->facility_len);
}

static int put_notes(struct merge *f, struct pseudoimg_model *m)
{
	const struct wire_instance self = {
		.head = { .len = sizeof(self), .type = WIRE_INSTANCE },
		.pid = m->image->pid,
		.uid = m->image->uid,
		.start_time_ns = m->image->start_time_ns,
		.created_s = m->image->created_s,
	};
	const struct wire_head *rec;
	size_t pos = 0;
	int r = put(f, &self, sizeof(self));

	while (r >= 0 && (rec = wire_next(m->notes.data, m->notes.len, &pos))) {
		if (rec->type == WIRE_REPLACES)
			r = merge_map_replaces(f, (const void *)rec);
		else if (rec->type == WIRE_PLACE)
			r = merge_map_place(f, m, (const void *)rec);
		else
			r = put(f, rec, rec->len);
	}
	return r;
}

static int merge_one(struct merge *f, struct pseudoimg_model *m, struct base_err *err)
{
	int r;

	if (!same_kind(f->head, m->image))
		return base_fail(err, -EINVAL,
				 "cannot merge images of different facilities or machines");
	if (m->ranges.nr || m->dst.nr)
		return base_fail(err, -DCPI_EUNSUPPORTED,
				 "cannot merge an image whose application owns its ranges");
	f->moved.nr = 0;
	r = merge_nodes(f, m);
	if (r >= 0)
		r = merge_map_make(f, m);
	if (r >= 0)
		r = put_notes(f, m);
	return r < 0 ? base_fail_errno(err, r, "cannot merge image") : 0;
}

/* ---- the whole ------------------------------------------------------------------------------- */

static int take(struct merge *f, const struct merge_part *part, bool base, struct base_err *err)
{
	struct pseudoimg_model *m = calloc(1, sizeof(*m));
	struct pseudoimg_job j;
	int r;

	if (!m)
		return base_fail_errno(err, -ENOMEM, "cannot merge image");
	pseudoimg_job_of_part(&j, part->fd, part->start, part->len);
	r = pseudoimg_model_read(m, &j, err);
	if (r < 0)
		goto out;
	f->map.nr = 0;
	if (!f->head) {
		/* Its refused routines are refused once more, and counted then. */
		r = take_first(f, m, part);
		if (r < 0)
			base_fail_errno(err, r, "cannot merge image");
	} else {
		r = merge_one(f, m, err);
		f->nr_bad += m->nr_bad;
		f->nr_overlaps += m->nr_overlaps;
	}
	if (r >= 0 && !base)
		r = merge_map_answer(f);
out:
	pseudoimg_model_release(m);
	pseudoimg_job_release(&j);
	free(m);
	return r;
}

/* The file's jobs, each from one WIRE_IMAGE to the next. */
static int take_jobs(struct merge *f, int fd, struct base_err *err)
{
	struct merge_part part = { .fd = fd };
	const struct wire_head *rec;
	struct pseudoimg_job j;
	uint64_t pos = 0, off = 0;
	int r = pseudoimg_job_of_file(&j, fd);

	if (r < 0)
		return base_fail_errno(err, r, "cannot read pseudo-image job");
	while ((r = pseudoimg_job_next(&j, &pos, &rec)) > 0) {
		if (rec->type == WIRE_IMAGE && off) {
			part.len = off - part.start;
			r = take(f, &part, false, err);
			if (r < 0)
				break;
			part.start = off;
		}
		off = pos;
	}
	pseudoimg_job_release(&j);
	part.len = off - part.start;
	return r < 0 ? base_fail_errno(err, r, "cannot read pseudo-image job")
		     : take(f, &part, false, err);
}

/* An image on disk becomes a job at the end of the scratch file. */
static int stage(int fd, int scratch, uint64_t *scratch_len, struct merge_part *part,
		 struct base_err *err)
{
	struct pseudoimg_sink sink = { .fd = scratch, .off = *scratch_len };
	int r = pseudoimg_read(fd, &sink, err);

	if (r >= 0 && (r = pseudoimg_sink_flush(&sink)) < 0)
		base_fail_errno(err, r, "cannot write scratch file");
	*part = (struct merge_part){ .fd = scratch,
				     .start = *scratch_len,
				     .len = sink.off - *scratch_len };
	*scratch_len = sink.off;
	base_buf_release(&sink.b);
	return r;
}

static bool is_elf(int fd)
{
	char magic[4];

	return pread(fd, magic, sizeof(magic), 0) == sizeof(magic) &&
	       !memcmp(magic, "\177ELF", sizeof(magic));
}

static int finish(struct merge *f, struct base_err *err)
{
	int r = 0;

	if (f->used)
		r = put_run(f, f->vaddr, f->img_off, base_align_up(f->used, WIRE_PAGE));
	if (r >= 0 && f->needs_gap && !f->has_gap)
		r = put_run(f, PSEUDOIMG_GAP, PSEUDOIMG_GAP_OFF, PSEUDOIMG_GAP_LEN);
	if (r >= 0)
		r = pseudoimg_sink_flush(&f->out);
	return r < 0 ? base_fail_errno(err, r, "cannot merge image") : 0;
}

static void merge_release(struct merge *f)
{
	base_buf_release(&f->out.b);
	free(f->head);
	free(f->known.v);
	free(f->table);
	free(f->moved.v);
	free(f->map.v);
	free(f);
}

int pseudoimg_merge(const struct pseudoimg_merge *fds, struct pseudoimg_result *result,
		    struct base_buf *maps, struct base_err *err)
{
	struct merge *f = calloc(1, sizeof(*f));
	uint64_t scratch_len = 0, start;
	struct pseudoimg_job j;
	int r = 0;

	memset(result, 0, sizeof(*result));
	if (!f)
		return base_fail_errno(err, -ENOMEM, "cannot merge image");
	f->maps = maps;
	f->out.fd = fds->scratch_fd;
	/* Images first, as jobs; the job that is made of all comes behind them. */
	if (fds->base_fd >= 0)
		r = stage(fds->base_fd, fds->scratch_fd, &scratch_len, &f->base, err);
	if (r >= 0 && is_elf(fds->job_fd))
		r = stage(fds->job_fd, fds->scratch_fd, &scratch_len, &f->image, err);
	start = f->out.off = scratch_len;
	if (r >= 0 && f->base.len)
		r = take(f, &f->base, true, err);
	if (r >= 0)
		r = f->image.len ? take(f, &f->image, false, err) : take_jobs(f, fds->job_fd, err);
	if (r >= 0)
		r = finish(f, err);
	if (r >= 0) {
		pseudoimg_job_of_part(&j, fds->scratch_fd, start, f->out.off - start);
		r = pseudoimg_write_job(&j, fds->out_fd, result, err);
		pseudoimg_job_release(&j);
		result->nr_bad += f->nr_bad;
		result->nr_overlaps += f->nr_overlaps;
	}
	merge_release(f);
	return r < 0 ? r : 0;
}
