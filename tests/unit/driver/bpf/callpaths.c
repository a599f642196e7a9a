/* SPDX-License-Identifier: BSD-2-Clause */
/* Call paths on their way from the ring, without a kernel; and who refuses them. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "bpf_callpaths.h"
#include "kernel/callpaths.h"

struct record {
	struct callpath_record w;
	uint64_t frames[CALLPATH_NR_FRAMES + 1];
};

static size_t record_of(struct record *r, uint64_t time_ns, uint16_t nr_kernel, uint16_t nr)
{
	memset(r, 0, sizeof(*r));
	r->w.time_ns = time_ns;
	r->w.instance = 5;
	r->w.tgid = 6;
	r->w.tid = 7;
	r->w.generation = 8;
	r->w.event = 1;
	r->w.mode = nr_kernel ? DRIVER_KERNEL : DRIVER_USER;
	r->w.flags = CALLPATH_READ;
	r->w.nr_kernel = nr_kernel;
	r->w.nr = nr;
	for (size_t i = 0; i < nr; i++)
		r->frames[i] = 1000 * time_ns + i;
	return sizeof(r->w) + nr * sizeof(uint64_t);
}

struct taken {
	uint64_t times[16], nr, refuse_at;
	struct driver_callpath last;
};

static int take(void *ctx, const struct driver_callpath *c, const uint64_t *frames)
{
	struct taken *t = ctx;

	for (size_t i = 0; i < c->nr; i++)
		assert_int_equal(frames[i], 1000 * c->time_ns + i);
	t->times[t->nr++] = c->time_ns;
	t->last = *c;
	return t->nr == t->refuse_at ? -EPIPE : 0;
}

static void paths_come_in_order_of_time(void **state)
{
	static const uint64_t times[] = { 5, 3, 9, 7, 1 }, until_8[] = { 1, 3, 5, 7 };
	struct bpf_callpaths q = { 0 };
	struct taken t = { 0 };
	const struct driver_sink sink = { .callpath = take, .ctx = &t };
	static struct record r;

	(void)state;
	assert_true(bpf_queue_next(&q.queue) == UINT64_MAX);
	for (size_t i = 0; i < 5; i++)
		bpf_callpaths_add(&q, &r, record_of(&r, times[i], (uint16_t)(i % 2), 3));
	assert_int_equal(bpf_queue_next(&q.queue), 1);
	assert_int_equal(bpf_callpaths_hand(&q, 8, &sink), 0);
	assert_int_equal(t.nr, 4);
	assert_memory_equal(t.times, until_8, sizeof(until_8));
	bpf_queue_tidy(&q.queue);
	assert_int_equal(bpf_queue_nr(&q.queue), 1);
	t.refuse_at = 5;
	assert_int_equal(bpf_callpaths_hand(&q, 10, &sink), -EPIPE);
	assert_int_equal(q.handed, 5);
	assert_int_equal(q.frames, 15);
	assert_int_equal(q.by_end[DRIVER_CALLPATH_COMPLETE], 5);
	bpf_callpaths_release(&q);
}

static void all_of_a_record_is_told(void **state)
{
	struct bpf_callpaths q = { 0 };
	struct taken t = { 0 };
	const struct driver_sink sink = { .callpath = take, .ctx = &t }, nobody = { .load = NULL };
	static struct record r;
	size_t len = record_of(&r, 4, 2, CALLPATH_NR_FRAMES);

	(void)state;
	r.w.end = CALLPATH_CUT;
	bpf_callpaths_add(&q, &r, len);
	assert_int_equal(bpf_callpaths_hand(&q, 5, &sink), 0);
	assert_int_equal(t.last.instance, 5);
	assert_int_equal(t.last.pid, 6);
	assert_int_equal(t.last.tid, 7);
	assert_int_equal(t.last.generation, 8);
	assert_int_equal(t.last.event, 1);
	assert_int_equal(t.last.count, 1);
	assert_int_equal(t.last.mode, DRIVER_KERNEL);
	assert_true(t.last.generation_read && !t.last.generation_unread);
	assert_int_equal(t.last.end, DRIVER_CALLPATH_CUT);
	assert_int_equal(t.last.nr_kernel, 2);
	assert_int_equal(t.last.nr, CALLPATH_NR_FRAMES);
	bpf_callpaths_add(&q, &r, record_of(&r, 5, 0, 1));
	assert_int_equal(bpf_callpaths_hand(&q, UINT64_MAX, &nobody), 0);
	assert_int_equal(q.handed, 2);
	bpf_callpaths_release(&q);
}

/* A record with @len bytes of its stack. */
struct stacked {
	struct callpath_record w;
	uint64_t frames[2];
	struct unwind_state state;
	uint64_t stack[CALLPATH_STACK_LEN / 8 + 1];
};

static size_t stacked_of(struct stacked *r, size_t len)
{
	*r = (struct stacked){ .w = { .time_ns = 4, .nr = 2, .end = CALLPATH_NO_ROWS } };
	r->frames[0] = 4000;
	r->frames[1] = 4001;
	r->state.pc = 77;
	r->stack[CALLPATH_STACK_LEN / 8 - 1] = 88;
	r->w.stack_len = (uint16_t)len;
	return offsetof(struct stacked, stack) + len;
}

static int take_stack(void *ctx, const struct driver_callpath *c, const uint64_t *frames)
{
	*(uint32_t *)ctx = c->stack_len;
	assert_int_equal(frames[1], 4001);
	assert_int_equal(c->state->pc, 77);
	assert_int_equal(c->stack[CALLPATH_STACK_LEN / 8 - 1], 88);
	return 0;
}

static void a_stack_comes_behind_the_frames(void **state)
{
	struct bpf_callpaths q = { 0 };
	uint32_t len = 0;
	const struct driver_sink sink = { .callpath = take_stack, .ctx = &len };
	static struct stacked r;

	(void)state;
	bpf_callpaths_add(&q, &r, stacked_of(&r, CALLPATH_STACK_LEN));
	assert_int_equal(bpf_callpaths_hand(&q, 5, &sink), 0);
	assert_int_equal(len, CALLPATH_STACK_LEN);
	bpf_callpaths_add(&q, &r, stacked_of(&r, CALLPATH_STACK_LEN + 8));
	bpf_callpaths_add(&q, &r, stacked_of(&r, 4));
	bpf_callpaths_add(&q, &r, stacked_of(&r, 8) - 8);
	assert_int_equal(q.lost_read, 3);
	bpf_callpaths_release(&q);
}

static int take_frames(void *ctx, const struct driver_callpath *c, const uint64_t *frames)
{
	uint64_t *last = ctx;

	assert_int_equal(c->nr, 3);
	memcpy(last, frames, 3 * sizeof(*last));
	return 0;
}

/* The record at @time_ns of a CPU, with the callers of the one before. */
static size_t same_of(struct record *r, uint64_t time_ns, uint16_t cpu)
{
	record_of(r, time_ns, 0, 3);
	r->w.flags |= CALLPATH_SAME;
	r->w.cpu = cpu;
	return sizeof(r->w) + sizeof(uint64_t);
}

static void callers_of_the_record_before(void **state)
{
	uint64_t last[3] = { 0 };
	struct bpf_callpaths q = { 0 };
	const struct driver_sink sink = { .callpath = take_frames, .ctx = last };
	static struct record r;

	(void)state;
	for (uint16_t cpu = 0; cpu < 3; cpu += 2) {
		size_t len = record_of(&r, 1 + cpu, 0, 3);

		r.w.cpu = cpu;
		bpf_callpaths_add(&q, &r, len);
	}
	bpf_callpaths_add(&q, &r, same_of(&r, 6, 0));
	bpf_callpaths_add(&q, &r, same_of(&r, 5, 2));
	bpf_callpaths_add(&q, &r, same_of(&r, 7, 0));
	assert_int_equal(bpf_callpaths_hand(&q, 6, &sink), 0);
	assert_int_equal(last[0], 5000);
	assert_int_equal(last[1], 3001);
	assert_int_equal(last[2], 3002);
	bpf_queue_tidy(&q.queue);
	assert_int_equal(bpf_callpaths_hand(&q, 7, &sink), 0);
	assert_int_equal(last[0], 6000);
	assert_int_equal(last[1], 1001);
	assert_int_equal(bpf_callpaths_hand(&q, 8, &sink), 0);
	assert_int_equal(last[0], 7000);
	assert_int_equal(last[2], 1002);
	assert_int_equal(q.handed, 5);
	assert_int_equal(q.lost_read, 0);
	bpf_callpaths_release(&q);
}

/* Its callers were lost, or are none that it can have. */
static void without_the_record_before(void **state)
{
	uint64_t last[3] = { 0 };
	struct bpf_callpaths q = { 0 };
	const struct driver_sink sink = { .callpath = take_frames, .ctx = last };
	static struct record r;
	size_t len;

	(void)state;
	bpf_callpaths_add(&q, &r, same_of(&r, 1, 0));
	len = record_of(&r, 2, 0, 3);
	bpf_callpaths_add(&q, &r, len);
	bpf_callpaths_add(&q, &r, record_of(&r, 3, 0, 3) - 8);
	bpf_callpaths_add(&q, &r, same_of(&r, 4, 0));
	same_of(&r, 5, 1);
	bpf_callpaths_add(&q, &r, sizeof(r.w) + sizeof(uint64_t));
	assert_int_equal(bpf_callpaths_hand(&q, 6, &sink), 0);
	assert_int_equal(last[0], 2000);
	assert_int_equal(q.handed, 1);
	assert_int_equal(q.lost_read, 4);
	bpf_callpaths_release(&q);
}

static void what_makes_no_sense_is_lost(void **state)
{
	struct bpf_callpaths q = { 0 };
	static struct record r;
	size_t len, nr = 0;

	(void)state;
	len = record_of(&r, 1, 1, 3);
	for (size_t cut = 0; cut < len; cut++, nr++)
		bpf_callpaths_add(&q, &r, cut);
	bpf_callpaths_add(&q, &r, record_of(&r, 1, 0, CALLPATH_NR_FRAMES + 1));
	bpf_callpaths_add(&q, &r, record_of(&r, 1, 0, 0));
	bpf_callpaths_add(&q, &r, record_of(&r, 1, 4, 3));
	len = record_of(&r, 1, 1, 3);
	r.w.mode = DRIVER_USER;
	bpf_callpaths_add(&q, &r, len);
	r.w.mode = DRIVER_OTHER;
	bpf_callpaths_add(&q, &r, len);
	r.w.mode = DRIVER_KERNEL;
	r.w.end = DRIVER_NR_CALLPATH_ENDS;
	bpf_callpaths_add(&q, &r, len);
	r.w.end = 0;
	r.w.event = DRIVER_NR_EVENTS;
	bpf_callpaths_add(&q, &r, len);
	assert_int_equal(q.lost_read, nr + 7);
	assert_int_equal(bpf_queue_nr(&q.queue), 0);
	bpf_callpaths_release(&q);
}

/* ---- functions ------------------------------------------------------------------------------- */

static size_t function_of(struct callpath_function *f, uint64_t time_ns, size_t lines_len)
{
	memset(f, 0, sizeof(*f));
	f->time_ns = time_ns;
	f->instance = 5;
	f->tgid = 6;
	f->key = 0x123456789;
	f->nr = 40;
	f->line = 7;
	f->uid = 1000;
	f->name = (struct callpath_string){ .len = 3, .kind = 1, .text = "abc" };
	f->file = (struct callpath_string){ .len = 4, .kind = 2, .text = "dede" };
	f->lines_len = (uint16_t)lines_len;
	return offsetof(struct callpath_function, lines) + ((lines_len + 7) & ~(size_t)7);
}

struct told {
	size_t nr_functions, nr_paths;
	struct driver_function last;
};

static int take_function(void *ctx, const struct driver_function *f)
{
	struct told *t = ctx;

	assert_int_equal(t->nr_paths, 0);
	t->nr_functions++;
	t->last = *f;
	return 0;
}

static int take_behind(void *ctx, const struct driver_callpath *c, const uint64_t *frames)
{
	struct told *t = ctx;

	(void)c;
	(void)frames;
	assert_int_equal(t->nr_functions, 1);
	t->nr_paths++;
	return 0;
}

static void a_function_comes_before_the_paths_of_its_time(void **state)
{
	struct bpf_callpaths q = { 0 };
	struct told t = { 0 };
	const struct driver_sink sink = { .callpath = take_behind,
					  .function = take_function,
					  .ctx = &t };
	static struct callpath_function f;
	static struct record r;

	(void)state;
	bpf_callpaths_add(&q, &r, record_of(&r, 4, 0, 3));
	bpf_callpaths_add_function(&q, &f, function_of(&f, 4, 9));
	bpf_callpaths_add_function(&q, &f, function_of(&f, 8, 0));
	assert_int_equal(bpf_callpaths_hand(&q, 5, &sink), 0);
	assert_int_equal(t.nr_functions, 1);
	assert_int_equal(t.nr_paths, 1);
	assert_int_equal(t.last.pid, 6);
	assert_int_equal(t.last.key, 0x123456789);
	assert_int_equal(t.last.nr, 40);
	assert_int_equal(t.last.line, 7);
	assert_int_equal(t.last.uid, 1000);
	assert_int_equal(t.last.lines_len, 9);
	assert_int_equal(t.last.name.len, 3);
	assert_int_equal(t.last.file.kind, 2);
	bpf_callpaths_release(&q);
}

static void a_function_that_makes_no_sense_is_not_told(void **state)
{
	struct bpf_callpaths q = { 0 };
	static struct callpath_function f;
	size_t len = function_of(&f, 1, 16);

	(void)state;
	for (size_t cut = 0; cut < len; cut++)
		bpf_callpaths_add_function(&q, &f, cut);
	f.name.len = CALLPATH_TEXT_LEN + 1;
	bpf_callpaths_add_function(&q, &f, len);
	function_of(&f, 1, 16);
	f.file.kind = 3;
	bpf_callpaths_add_function(&q, &f, len);
	assert_int_equal(bpf_queue_nr(&q.functions), 0);
	function_of(&f, 1, 16);
	bpf_callpaths_add_function(&q, &f, len);
	assert_int_equal(bpf_queue_nr(&q.functions), 1);
	bpf_queue_release(&q.functions);
}

static void other_sources_refuse_call_paths(void **state)
{
	static const char *const names[] = { "perf", "replay", "inprocess" };
	struct driver *d;

	(void)state;
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const struct driver_config config = { .source = names[i], .callpath_every = 1 };
		struct base_err err = { 0 };

		assert_int_equal(driver_open(&config, &d, &err), -DCPI_EUNSUPPORTED);
		assert_non_null(strstr(err.text, "call paths"));
		assert_true(err.hint[0] != 0);
	}
}

static void kernel_must_be_new_enough(void **state)
{
	struct base_err err = { 0 };

	(void)state;
	assert_int_equal(driver_callpaths_possible("6.1.0-13-amd64", &err), -DCPI_EUNSUPPORTED);
	assert_non_null(strstr(err.text, "no call paths on Linux '6.1.0-13-amd64'"));
	assert_int_equal(driver_callpaths_possible("6.4.0", NULL), 0);
	assert_int_equal(driver_callpaths_possible("7.0.1", NULL), 0);
	assert_int_equal(driver_callpaths_possible("what", NULL), -DCPI_EUNSUPPORTED);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(paths_come_in_order_of_time),
		cmocka_unit_test(all_of_a_record_is_told),
		cmocka_unit_test(a_stack_comes_behind_the_frames),
		cmocka_unit_test(callers_of_the_record_before),
		cmocka_unit_test(without_the_record_before),
		cmocka_unit_test(what_makes_no_sense_is_lost),
		cmocka_unit_test(a_function_comes_before_the_paths_of_its_time),
		cmocka_unit_test(a_function_that_makes_no_sense_is_not_told),
		cmocka_unit_test(other_sources_refuse_call_paths),
		cmocka_unit_test(kernel_must_be_new_enough),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
