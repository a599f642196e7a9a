/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fake_traces.h"

static const uint8_t code_main[] = { 0x31, 0xc0, 0xb9, 3,    0,	   0,	 0,    0xe8, 0xf4,
				     0x0f, 0,	 0,    0xff, 0xc9, 0x75, 0xf7, 0x0f, 0x05 };
static const uint8_t code_lib[] = { 0xff, 0xc0, 0xc3 };

struct trial core;
struct fake_driver driver;
struct traces *traces;
struct vtrace_state machine;

static int read_memory(void *ctx, void *to, size_t len, uint64_t addr)
{
	const uint64_t stack = 0x7000;

	(void)ctx;
	if (addr >= MAIN && addr + len <= MAIN + sizeof(driver.code))
		memcpy(to, (uint8_t *)driver.code + (addr - MAIN), len);
	else if (addr >= stack && addr + len <= stack + sizeof(driver.stack))
		memcpy(to, (uint8_t *)driver.stack + (addr - stack), len);
	else
		return -EFAULT;
	return 0;
}

static int answer_missing(struct driver *base, int (*fn)(void *ctx, const struct insn_trace *w),
			  void *ctx)
{
	struct fake_driver *of = (struct fake_driver *)base;

	for (; of->nr_missing; of->nr_missing--, of->missing.tgid++)
		fn(ctx, &of->missing);
	return 0;
}

static int answer_put(struct driver *base, const struct vtrace_code *code)
{
	struct fake_driver *of = (struct fake_driver *)base;

	if (of->put_result < 0)
		return of->put_result;
	of->put[of->nr_put % PUT_MAX] = code->block.pc;
	return (int)of->nr_put++;
}

static const struct vtrace_code *answer_get(const struct driver *of, uint32_t id)
{
	return vtrace_blocks_get(((const struct fake_driver *)of)->blocks, id);
}

static void answer_every(struct driver *of, uint32_t every)
{
	((struct fake_driver *)of)->every = every;
}

static void answer_stats(const struct driver *of, struct driver_trace_stats *out)
{
	*out = ((const struct fake_driver *)of)->stats;
}

const struct trace_driver fake_traces_calls = {
	.missing = answer_missing,
	.put = answer_put,
	.get = answer_get,
	.every = answer_every,
	.stats = answer_stats,
};

struct trace_config fake_traces_config(void)
{
	return (struct trace_config){ .driver = &driver.base,
				      .calls = &fake_traces_calls,
				      .attribute = &core.attribute,
				      .follow = &core.follow,
				      .store = &core.store };
}

void fake_end(int32_t pid, uint64_t time_ns)
{
	struct follow_end end = { .p = processes_find(core.follow.processes, pid),
				  .pid = pid,
				  .time_ns = time_ns };

	core.follow.ends = (struct follow_ends){ .items = &end, .nr = 1, .cap = 1 };
	trace_take_ends(traces);
	core.follow.ends = (struct follow_ends){ 0 };
}

int fake_traces_open(const char *helper_dir)
{
	struct trace_config config = fake_traces_config();
	struct base_err err = { 0 };

	config.helper_dir = helper_dir;
	trial_open(&core);
	memset(&driver, 0, sizeof(driver));
	memcpy(driver.code, code_main, sizeof(code_main));
	memcpy((uint8_t *)driver.code + (LIB - MAIN), code_lib, sizeof(code_lib));
	assert_int_equal(vtrace_blocks_new(VTRACE_X86_64, &driver.blocks), 0);
	assert_int_equal(trace_open(&config, &traces, &err), 0);
	core.counts.traces = traces;
	core.follow.wants_ends = true;
	return 0;
}

int fake_traces_setup(void **state)
{
	(void)state;
	return fake_traces_open(NULL);
}

int fake_traces_teardown(void **state)
{
	struct trace_stats stats;

	(void)state;
	trace_stats_get(traces, false, &stats);
	assert_int_equal(stats.received, stats.stored + stats.pending + trace_lost(&stats));
	trace_close(traces);
	trial_close(&core);
	vtrace_blocks_free(driver.blocks);
	return 0;
}

struct insn_trace fake_run(uint64_t pc, uint16_t insns)
{
	const struct vtrace_memory memory = { read_memory, NULL };
	struct insn_trace out = { .tgid = PID, .pc = pc };

	memset(&machine, 0, sizeof(machine));
	machine.r[2] = 3;
	machine.r[7] = 0x7000 + 256; /* rsp */
	machine.pc = pc;
	vtrace_begin(&machine, insns);
	out.end = (uint8_t)vtrace_run(driver.blocks, &memory, &machine);
	out.end_pc = machine.pc;
	out.nr_words = (uint16_t)machine.nr_words;
	out.nr_insns = machine.nr_insns;
	return out;
}

void fake_take(const struct insn_trace *trace)
{
	const size_t len = INSN_TRACE_LEN(trace->has);
	struct insn_trace *copy = malloc(len); /* as long as what the driver hands on */

	assert_non_null(copy);
	memcpy(copy, trace, len);
	copy->time_ns = ++core.time_ns;
	driver.stats.received++;
	assert_int_equal(counts_trace(&core.counts, copy, machine.words), 0);
	free(copy);
}

void fake_traces_map(void)
{
	trial_mmap(&core, PID, MAIN, 0x1000, 0x1000, "/bin/a", 1);
	trial_mmap(&core, PID, LIB, 0x1000, 0x5000, "/lib/b", 2);
}

struct image *fake_image(const char *path)
{
	struct image *img;

	for (size_t pos = 0; images_next(core.store.images, &pos, &img);)
		if (strcmp(img->path, path) == 0)
			return img;
	fail_msg("no image %s", path);
	return NULL;
}

uint64_t fake_moved(const char *path, uint64_t start, uint64_t from, uint64_t to)
{
	const struct profdb_profile *p = fake_image(path)->counts;

	for (size_t i = 0; i < profdb_profile_nr_edges(p); i++) {
		const struct profdb_edge *m = profdb_profile_edge(p, i);

		if (m->start == start && m->from == from && m->to == to)
			return m->count[0] + m->count[1];
	}
	return 0;
}

uint64_t fake_nr_moves(const char *path)
{
	const struct profdb_profile *p = fake_image(path)->counts;
	uint64_t sum = 0;

	for (size_t i = 0; i < profdb_profile_nr_edges(p); i++)
		sum += profdb_profile_edge(p, i)->count[0] + profdb_profile_edge(p, i)->count[1];
	return sum;
}

uint64_t fake_lost(enum trace_loss loss)
{
	struct trace_stats stats;

	trace_stats_get(traces, false, &stats);
	return stats.lost[loss];
}

uint64_t fake_stored(void)
{
	struct trace_stats stats;

	trace_stats_get(traces, false, &stats);
	return stats.stored;
}
