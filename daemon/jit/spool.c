/* SPDX-License-Identifier: BSD-2-Clause */
/* Records of routines are kept in a file without a name, in segments. */
#include "budget.h"
#include "spool.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define NR_SEGMENTS_MAX (UINT32_MAX / (DYN_SPOOL_SEGMENT / 8) - 1)
#define FREE		UINT32_MAX

struct dyn_segment {
	uint32_t used; /* bytes of records that begin here, or FREE */
	uint32_t span; /* segments that a record needs that is larger; 0: free, or within a span */
	uint32_t prev, next; /* of its registry, or of those that are free; + 1 */
	uint32_t in_memory;  /* so many bytes at its end are in memory_fd */
};

int dyn_spool_open(struct dyn_spool *sp, int dir_fd)
{
	*sp = (struct dyn_spool){ .fd = -1, .memory_fd = -1 };
	sp->late = malloc(DYN_SPOOL_SEGMENT);
	if (!sp->late)
		return -ENOMEM;
	if (dir_fd >= 0)
		sp->fd = openat(dir_fd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	/* Not every file system knows files without names. */
	if (sp->fd < 0)
		sp->fd = memfd_create("dcpid-spool", MFD_CLOEXEC);
	return sp->fd < 0 ? -errno : 0;
}

void dyn_spool_close(struct dyn_spool *sp)
{
	if (sp->fd >= 0)
		close(sp->fd);
	if (sp->memory_fd >= 0)
		close(sp->memory_fd);
	free(sp->segments);
	free(sp->late);
	*sp = (struct dyn_spool){ .fd = -1, .memory_fd = -1 };
}

/* ---- segments -------------------------------------------------------------------------------- */

static struct dyn_segment *segment_of(const struct dyn_spool *sp, uint32_t record)
{
	return &sp->segments[(record - 1) / (DYN_SPOOL_SEGMENT / 8)];
}

static int add_segments(struct dyn_spool *sp, uint32_t nr, uint32_t *first)
{
	int r;

	if (sp->nr_segments + nr > NR_SEGMENTS_MAX)
		return -DCPI_ELIMIT;
	r = base_grow(&sp->segments, &sp->cap_segments, sp->nr_segments + nr,
		      sizeof(*sp->segments));
	if (r < 0)
		return r;
	*first = (uint32_t)sp->nr_segments;
	memset(sp->segments + *first, 0, nr * sizeof(*sp->segments));
	sp->nr_segments += nr;
	return 0;
}

static void add_free(struct dyn_spool *sp, uint32_t i)
{
	sp->segments[i] = (struct dyn_segment){ .used = FREE, .next = sp->free };
	if (sp->free)
		sp->segments[sp->free - 1].prev = i + 1;
	sp->free = i + 1;
	sp->nr_free++;
}

static void remove_free(struct dyn_spool *sp, uint32_t i)
{
	struct dyn_segment *s = &sp->segments[i];

	if (s->prev)
		sp->segments[s->prev - 1].next = s->next;
	else
		sp->free = s->next;
	if (s->next)
		sp->segments[s->next - 1].prev = s->prev;
	*s = (struct dyn_segment){ 0 };
	sp->nr_free--;
}

/* Free ones side by side, from where the last ones were found on. */
static bool find_free(struct dyn_spool *sp, uint32_t nr, uint32_t *first)
{
	size_t at = sp->look_at;
	uint32_t run = 0;

	if (nr == 1 && sp->free) {
		*first = sp->free - 1;
		return true;
	}
	for (size_t i = 0; sp->nr_free >= nr && i < sp->nr_segments + nr; i++, at++) {
		if (at >= sp->nr_segments)
			at = run = 0;
		run = sp->segments[at].used == FREE ? run + 1 : 0;
		if (run == nr) {
			*first = (uint32_t)(at + 1 - nr);
			sp->look_at = *first;
			return true;
		}
	}
	return false;
}

static int take_segments(struct dyn_spool *sp, struct dyn_store *st, uint32_t nr, uint32_t *first)
{
	uint64_t len = (uint64_t)nr * DYN_SPOOL_SEGMENT;
	struct dyn_segment *s;
	int r = 0;

	if (len > DYN_STORE_MAX - st->held || len > DYN_SPOOL_MAX - sp->held ||
	    !budget_take(sp->budgets, st->uid, BUDGET_RECORDS, len, DYN_SPOOL_MAX))
		return -DCPI_ELIMIT;
	if (find_free(sp, nr, first)) {
		for (uint32_t i = 0; i < nr; i++)
			remove_free(sp, *first + i);
	} else {
		r = add_segments(sp, nr, first);
		if (r < 0) {
			budget_give_back(sp->budgets, st->uid, BUDGET_RECORDS, len);
			return r;
		}
	}
	s = &sp->segments[*first];
	*s = (struct dyn_segment){ .span = nr, .next = st->first };
	if (st->first)
		sp->segments[st->first - 1].prev = *first + 1;
	st->first = *first + 1;
	st->held += len;
	sp->held += len;
	return 0;
}

/* Without holes the room is used again all the same. */
static void punch(const struct dyn_spool *sp, uint64_t at, uint64_t len)
{
	const int mode = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;

	(void)!fallocate(sp->fd, mode, (off_t)at, (off_t)len);
	if (sp->memory_fd >= 0)
		(void)!fallocate(sp->memory_fd, mode, (off_t)at, (off_t)len);
}

static void give_segments(struct dyn_spool *sp, struct dyn_store *st, uint32_t first)
{
	struct dyn_segment *s = &sp->segments[first];
	uint64_t at = (uint64_t)first * DYN_SPOOL_SEGMENT;
	uint64_t len = (uint64_t)s->span * DYN_SPOOL_SEGMENT;
	uint32_t nr = s->span;

	if (s->prev)
		sp->segments[s->prev - 1].next = s->next;
	else
		st->first = s->next;
	if (s->next)
		sp->segments[s->next - 1].prev = s->prev;
	punch(sp, at, len);
	if (sp->late_at >= at && sp->late_at < at + len)
		sp->late_len = 0;
	if (st->at >= at && st->at <= at + len)
		st->at = st->end = 0;
	for (uint32_t i = first; i < first + nr; i++) {
		sp->in_memory -= sp->segments[i].in_memory ? DYN_SPOOL_SEGMENT : 0;
		add_free(sp, i);
	}
	st->held -= len;
	sp->held -= len;
	budget_give_back(sp->budgets, st->uid, BUDGET_RECORDS, len);
}

/* ---- records --------------------------------------------------------------------------------- */

static int write_to(int fd, uint64_t at, const uint8_t *data, size_t len)
{
	while (len) {
		ssize_t n = pwrite(fd, data, len, (off_t)at);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		data += n;
		at += (uint64_t)n;
		len -= (size_t)n;
	}
	return 0;
}

/* @r: why the file did not take it. */
static int write_to_memory(struct dyn_spool *sp, uint64_t at, const uint8_t *data, size_t len,
			   int r)
{
	size_t first = at / DYN_SPOOL_SEGMENT, last = (at + len - 1) / DYN_SPOOL_SEGMENT;
	uint64_t more = 0;

	for (size_t i = first; i <= last; i++)
		more += sp->segments[i].in_memory ? 0 : DYN_SPOOL_SEGMENT;
	if (sp->in_memory + more > DYN_SPOOL_MEMORY_MAX)
		return r;
	if (sp->memory_fd < 0)
		sp->memory_fd = memfd_create("dcpid-spool", MFD_CLOEXEC);
	if (sp->memory_fd < 0 || write_to(sp->memory_fd, at, data, len) < 0)
		return r;
	sp->in_memory += more;
	for (size_t i = first; i <= last; i++, at = i * DYN_SPOOL_SEGMENT)
		if (!sp->segments[i].in_memory)
			sp->segments[i].in_memory =
				DYN_SPOOL_SEGMENT - (uint32_t)(at % DYN_SPOOL_SEGMENT);
	return 0;
}

/* Segments are filled from the front: behind what is in memory all is. */
static int write_at(struct dyn_spool *sp, uint64_t at, const uint8_t *data, size_t len)
{
	int r = -ENOSPC;

	if (!sp->segments[at / DYN_SPOOL_SEGMENT].in_memory)
		r = write_to(sp->fd, at, data, len);
	return r < 0 ? write_to_memory(sp, at, data, len, r) : 0;
}

static int write_late(struct dyn_spool *sp)
{
	int r = write_at(sp, sp->late_at, sp->late, sp->late_len);

	if (r == 0)
		sp->late_len = 0;
	return r;
}

/* Small records are written many at a time. */
static int write_record(struct dyn_spool *sp, uint64_t at, const struct wire_head *rec)
{
	int r;

	/* Never of two segments: one of them may be dropped. */
	if (sp->late_len && (at != sp->late_at + sp->late_len || at % DYN_SPOOL_SEGMENT == 0)) {
		r = write_late(sp);
		if (r < 0)
			return r;
	}
	if (rec->len > DYN_SPOOL_SEGMENT / 4 && !sp->late_len)
		return write_at(sp, at, (const uint8_t *)rec, rec->len);
	if (!sp->late_len)
		sp->late_at = at;
	memcpy(sp->late + sp->late_len, rec, rec->len);
	sp->late_len += rec->len;
	return 0;
}

int dyn_spool_put(struct dyn_spool *sp, struct dyn_store *st, const struct wire_head *rec,
		  uint32_t *record)
{
	uint32_t span = (rec->len + DYN_SPOOL_SEGMENT - 1) / DYN_SPOOL_SEGMENT, first;
	uint64_t at = st->at;
	int r;

	if (rec->len > st->end - st->at) {
		r = take_segments(sp, st, span, &first);
		if (r < 0)
			return r;
		at = (uint64_t)first * DYN_SPOOL_SEGMENT;
		/* Records behind a large one begin anew. */
		st->at = at;
		st->end = at + (span > 1 ? rec->len : DYN_SPOOL_SEGMENT);
	}
	r = write_record(sp, at, rec);
	*record = (uint32_t)(at / 8) + 1;
	if (r < 0) {
		if (!segment_of(sp, *record)->used)
			give_segments(sp, st, (uint32_t)(at / DYN_SPOOL_SEGMENT));
		return r;
	}
	st->at = at + rec->len;
	st->used += rec->len;
	segment_of(sp, *record)->used += rec->len;
	return 0;
}

void dyn_spool_drop(struct dyn_spool *sp, struct dyn_store *st, uint32_t record, size_t len)
{
	struct dyn_segment *s = segment_of(sp, record);

	st->used -= len;
	s->used -= (uint32_t)len;
	if (!s->used)
		give_segments(sp, st, (uint32_t)(s - sp->segments));
}

void dyn_spool_release(struct dyn_spool *sp, struct dyn_store *st)
{
	while (st->first)
		give_segments(sp, st, st->first - 1);
	*st = (struct dyn_store){ .uid = st->uid };
}

/* The first bytes from @at on that are in one file; which one into @fd. */
static size_t piece_at(const struct dyn_spool *sp, uint64_t at, size_t len, int *fd)
{
	size_t segment = at / DYN_SPOOL_SEGMENT, in = at % DYN_SPOOL_SEGMENT, from, piece;

	*fd = sp->fd;
	if (sp->memory_fd < 0 || segment >= sp->nr_segments)
		return len;
	from = DYN_SPOOL_SEGMENT - sp->segments[segment].in_memory;
	piece = (in < from ? from : DYN_SPOOL_SEGMENT) - in;
	if (in >= from)
		*fd = sp->memory_fd;
	return piece < len ? piece : len;
}

/* How many bytes from @at on could be read, at most @len. */
static size_t read_at(const struct dyn_spool *sp, uint64_t at, uint8_t *to, size_t len)
{
	size_t done = 0, piece, n = 0;
	int fd;

	/* Bytes that are written late cover what the file has. */
	for (piece = 0; done < len && n == piece; done += n) {
		piece = piece_at(sp, at + done, len - done, &fd);
		n = base_read_part(fd, at + done, to + done, piece);
	}
	if (sp->late_len && sp->late_at < at + len && at < sp->late_at + sp->late_len) {
		uint64_t from = at > sp->late_at ? at : sp->late_at,
			 end = sp->late_at + sp->late_len;

		end = end < at + len ? end : at + len;
		memcpy(to + (from - at), sp->late + (from - sp->late_at), (size_t)(end - from));
		done = end - at > done && from - at <= done ? (size_t)(end - at) : done;
	}
	return done;
}

static bool in_trace(const struct dyn_trace *w, uint64_t at, size_t len)
{
	return at >= w->at && at - w->at <= w->bytes.len && len <= w->bytes.len - (at - w->at);
}

static int fill(const struct dyn_spool *sp, struct dyn_trace *w, uint64_t at, size_t len)
{
	int r;

	base_buf_clear(&w->bytes);
	r = base_buf_extend(&w->bytes, len, NULL);
	if (r < 0)
		return r;
	w->at = at;
	w->bytes.len = read_at(sp, at, w->bytes.data, len);
	return 0;
}

const struct wire_routine *dyn_spool_get(const struct dyn_spool *sp, uint32_t record,
					 struct dyn_trace *w, size_t ahead)
{
	uint64_t at = (uint64_t)(record - 1) * 8;
	const struct wire_routine *rec;

	ahead = ahead < sizeof(*rec) ? sizeof(*rec) : ahead;
	if (!in_trace(w, at, sizeof(*rec)) && fill(sp, w, at, ahead) < 0)
		return NULL;
	if (!in_trace(w, at, sizeof(*rec)))
		return NULL;
	rec = (const void *)(w->bytes.data + (at - w->at));
	if (in_trace(w, at, rec->head.len))
		return rec;
	if (fill(sp, w, at, rec->head.len > ahead ? rec->head.len : ahead) < 0)
		return NULL;
	rec = (const void *)w->bytes.data;
	return in_trace(w, at, sizeof(*rec)) && in_trace(w, at, rec->head.len) ? rec : NULL;
}

void dyn_trace_release(struct dyn_trace *w)
{
	base_buf_release(&w->bytes);
}

/* ---- room ------------------------------------------------------------------------------------ */

bool dyn_spool_in_sparse(const struct dyn_spool *sp, uint32_t record)
{
	const struct dyn_segment *s = segment_of(sp, record);

	return s->span == 1 && s->used < DYN_SPOOL_SEGMENT / 2;
}
