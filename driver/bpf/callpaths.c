/* SPDX-License-Identifier: BSD-2-Clause */
/* Records of call paths, checked, and handed on as driver.h has them. No kernel is needed. */
#include "bpf_callpaths.h"
#include "kernel/callpaths.h"

_Static_assert((int)CALLPATH_COMPLETE == (int)DRIVER_CALLPATH_COMPLETE &&
		       (int)CALLPATH_CUT == (int)DRIVER_CALLPATH_CUT &&
		       (int)CALLPATH_UNREADABLE == (int)DRIVER_CALLPATH_UNREADABLE &&
		       (int)CALLPATH_NO_ROWS == (int)DRIVER_CALLPATH_NO_ROWS &&
		       (int)CALLPATH_ASTRAY == (int)DRIVER_CALLPATH_ASTRAY &&
		       (int)CALLPATH_NR_FRAMES == (int)DRIVER_NR_FRAMES &&
		       CALLPATH_EXACT == DRIVER_FRAME_EXACT &&
		       CALLPATH_FUNCTION == DRIVER_FRAME_FUNCTION &&
		       (int)CALLPATH_KEY_SHIFT == (int)DRIVER_FRAME_KEY_SHIFT,
	       "call paths");

static bool is_sound(const struct callpath_record *w, size_t len)
{
	size_t rest =
		len < sizeof(*w) || !w->stack_len ? 0 : sizeof(struct unwind_state) + w->stack_len;

	if (len < sizeof(*w) || w->stack_len > CALLPATH_STACK_LEN || w->stack_len % 8 ||
	    len != sizeof(*w) + w->nr * sizeof(uint64_t) + rest)
		return false;
	return w->nr > 0 && w->nr <= CALLPATH_NR_FRAMES && w->nr_kernel <= w->nr &&
	       w->end < DRIVER_NR_CALLPATH_ENDS && w->event < DRIVER_NR_EVENTS &&
	       w->mode <= DRIVER_KERNEL && (w->nr_kernel > 0) == (w->mode == DRIVER_KERNEL);
}

void bpf_callpaths_add(struct bpf_callpaths *q, const void *record, size_t len)
{
	const struct callpath_record *w = record;

	if (!is_sound(w, len) || bpf_queue_add(&q->queue, w->time_ns, w, len) < 0)
		q->lost_read++;
}

struct telling {
	struct bpf_callpaths *q;
	const struct driver_sink *sink;
};

static int hand(void *ctx, const uint64_t *record)
{
	const struct telling *t = ctx;
	const struct callpath_record *w = (const void *)record;
	const uint64_t *frames = record + sizeof(*w) / sizeof(*record);
	const struct unwind_state *state = (const void *)(frames + w->nr);
	const struct driver_callpath c = {
		.first_ns = w->time_ns,
		.time_ns = w->time_ns,
		.instance = w->instance,
		.count = 1,
		.pid = (int32_t)w->tgid,
		.tid = (int32_t)w->tid,
		.event = w->event,
		.mode = w->mode,
		.generation = w->generation,
		.generation_read = (w->flags & CALLPATH_READ) != 0,
		.generation_unread = (w->flags & CALLPATH_UNREAD) != 0,
		.end = w->end,
		.nr_kernel = w->nr_kernel,
		.nr = w->nr,
		.state = w->stack_len ? state : NULL,
		.stack = w->stack_len ? (const void *)(state + 1) : NULL,
		.stack_len = w->stack_len,
	};

	t->q->handed++;
	t->q->by_end[w->end]++;
	t->q->frames += w->nr;
	return t->sink->callpath ? t->sink->callpath(t->sink->ctx, &c, frames) : 0;
}

/* ---- functions ------------------------------------------------------------------------------- */

static bool string_is_sound(const struct callpath_string *s)
{
	return s->len <= sizeof(s->text) &&
	       (!s->len || s->kind == 1 || s->kind == 2 || s->kind == 4);
}

void bpf_callpaths_add_function(struct bpf_callpaths *q, const void *record, size_t len)
{
	const struct callpath_function *f = record;

	if (len >= offsetof(struct callpath_function, lines) && len % 8 == 0 &&
	    f->lines_len <= len - offsetof(struct callpath_function, lines) &&
	    string_is_sound(&f->name) && string_is_sound(&f->file))
		bpf_queue_add(&q->functions, f->time_ns, f, len);
}

static int hand_function(void *ctx, const uint64_t *record)
{
	const struct telling *t = ctx;
	const struct callpath_function *f = (const void *)record;
	const struct driver_function to = {
		.time_ns = f->time_ns,
		.instance = f->instance,
		.key = f->key,
		.pid = (int32_t)f->tgid,
		.nr = f->nr,
		.line = f->line,
		.uid = f->uid,
		.name = { f->name.text, f->name.len, f->name.kind },
		.file = { f->file.text, f->file.len, f->file.kind },
		.lines = f->lines,
		.lines_len = f->lines_len,
	};

	return t->sink->function ? t->sink->function(t->sink->ctx, &to) : 0;
}

int bpf_callpaths_hand(struct bpf_callpaths *q, uint64_t until_ns, const struct driver_sink *sink)
{
	struct telling t = { q, sink };
	int r = bpf_queue_hand(&q->functions, until_ns, hand_function, &t);

	return r < 0 ? r : bpf_queue_hand(&q->queue, until_ns, hand, &t);
}
