/* SPDX-License-Identifier: BSD-2-Clause */
/* Windows over code known by hand: where they belong, what moves they become, what became of each.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fake_registry.h"
#include "stand_ins.h"
#include "windows.h"

/* At MAIN: xor eax,eax; mov ecx,3; 1: call LIB; dec ecx; jnz 1b; syscall. At LIB: inc eax; ret. */
#define MAIN 0x401000ull
#define LIB  0x402000ull
static const uint8_t code_main[] = { 0x31, 0xc0, 0xb9, 3,    0,	   0,	 0,    0xe8, 0xf4,
				     0x0f, 0,	 0,    0xff, 0xc9, 0x75, 0xf7, 0x0f, 0x05 };
static const uint8_t code_lib[] = { 0xff, 0xc0, 0xc3 };
#define CALL  (MAIN + 7)
#define AFTER (MAIN + 12)
#define JNZ   (MAIN + 14)
#define END   (MAIN + 16)
#define RET   (LIB + 2)

enum { PID = 10, MOVES_MAX = 64, PUT_MAX = 1024 };

struct driver {
	struct driver_window_stats stats;
	struct vtrace_blocks *blocks;
	uint64_t code[2048]; /* both pages, from MAIN on */
	uint64_t stack[64];
	struct vtrace_window missing;
	unsigned int nr_missing, nr_put;
	uint64_t put[PUT_MAX];
	int put_result;
};

static struct trial t;
static struct driver d;
static struct windows *w;
static struct vtrace_state s;

static int read_memory(void *ctx, void *to, size_t len, uint64_t addr)
{
	const uint64_t stack = 0x7000;

	(void)ctx;
	if (addr >= MAIN && addr + len <= MAIN + sizeof(d.code))
		memcpy(to, (uint8_t *)d.code + (addr - MAIN), len);
	else if (addr >= stack && addr + len <= stack + sizeof(d.stack))
		memcpy(to, (uint8_t *)d.stack + (addr - stack), len);
	else
		return -EFAULT;
	return 0;
}

static int answer_missing(struct driver *of, int (*fn)(void *ctx, const struct vtrace_window *w),
			  void *ctx)
{
	for (; of->nr_missing; of->nr_missing--)
		fn(ctx, &of->missing);
	return 0;
}

static int answer_put(struct driver *of, const struct vtrace_code *code)
{
	if (of->put_result < 0)
		return of->put_result;
	of->put[of->nr_put % PUT_MAX] = code->block.pc;
	return (int)of->nr_put++;
}

static const struct vtrace_code *answer_get(const struct driver *of, uint32_t id)
{
	return vtrace_blocks_get(of->blocks, id);
}

static void answer_stats(const struct driver *of, struct driver_window_stats *out)
{
	*out = of->stats;
}

static const struct windows_driver calls = {
	.missing = answer_missing,
	.put = answer_put,
	.get = answer_get,
	.stats = answer_stats,
};

static int open_it(const char *helper_dir)
{
	const struct windows_config config = { .driver = &d,
					       .calls = &calls,
					       .helper_dir = helper_dir };
	struct base_err err = { 0 };

	trial_open(&t);
	memset(&d, 0, sizeof(d));
	memcpy(d.code, code_main, sizeof(code_main));
	memcpy((uint8_t *)d.code + (LIB - MAIN), code_lib, sizeof(code_lib));
	assert_int_equal(vtrace_blocks_new(VTRACE_X86_64, &d.blocks), 0);
	assert_int_equal(windows_open(&config, &w, &err), 0);
	t.a.windows = w;
	return 0;
}

static int setup(void **state)
{
	(void)state;
	return open_it(NULL);
}

/* Law 1 of windows, whatever a test did. */
static int teardown(void **state)
{
	struct windows_stats stats;

	(void)state;
	windows_stats_get(w, &stats);
	assert_int_equal(stats.received, stats.stored + stats.pending + windows_lost(&stats));
	windows_close(w);
	trial_close(&t);
	vtrace_blocks_free(d.blocks);
	return 0;
}

/* A window of so many instructions from @pc on. */
static struct vtrace_window run(uint64_t pc, uint16_t insns)
{
	const struct vtrace_memory memory = { read_memory, NULL };
	struct vtrace_window out = { .tgid = PID, .pc = pc };

	memset(&s, 0, sizeof(s));
	s.r[2] = 3;
	s.r[7] = 0x7000 + 256; /* rsp */
	s.pc = pc;
	vtrace_begin(&s, insns);
	out.end = (uint8_t)vtrace_run(d.blocks, &memory, &s);
	out.end_pc = s.pc;
	out.nr_words = (uint16_t)s.nr_words;
	out.nr_insns = s.nr_insns;
	return out;
}

static void take(const struct vtrace_window *window)
{
	const size_t len = VTRACE_WINDOW_LEN(window->has);
	struct vtrace_window *copy = malloc(len); /* as long as what the driver hands on */

	assert_non_null(copy);
	memcpy(copy, window, len);
	copy->time_ns = ++t.time_ns;
	d.stats.received++;
	assert_int_equal(attrib_window(&t.a, copy, s.words), 0);
	free(copy);
}

static void map_both(void)
{
	trial_mmap(&t, PID, MAIN, 0x1000, 0x1000, "/bin/a", 1);
	trial_mmap(&t, PID, LIB, 0x1000, 0x5000, "/lib/b", 2);
}

static struct image *image_of(const char *path)
{
	struct image *img;

	for (size_t pos = 0; images_next(t.a.images, &pos, &img);)
		if (strcmp(img->path, path) == 0)
			return img;
	fail_msg("no image %s", path);
	return NULL;
}

/* How often in both halves; offsets in "/bin/a" are addresses less MAIN plus 0x1000. */
static uint64_t moved(const char *path, uint64_t start, uint64_t from, uint64_t to)
{
	const struct profdb_profile *p = image_of(path)->counts;

	for (size_t i = 0; i < profdb_profile_nr_moves(p); i++) {
		const struct profdb_move *m = profdb_profile_move(p, i);

		if (m->start == start && m->from == from && m->to == to)
			return m->count[0] + m->count[1];
	}
	return 0;
}

static uint64_t nr_moves(const char *path)
{
	const struct profdb_profile *p = image_of(path)->counts;
	uint64_t sum = 0;

	for (size_t i = 0; i < profdb_profile_nr_moves(p); i++)
		sum += profdb_profile_move(p, i)->count[0] + profdb_profile_move(p, i)->count[1];
	return sum;
}

static uint64_t lost(enum windows_loss loss)
{
	struct windows_stats stats;

	windows_stats_get(w, &stats);
	return stats.lost[loss];
}

static uint64_t stored(void)
{
	struct windows_stats stats;

	windows_stats_get(w, &stats);
	return stats.stored;
}

#define A(addr) ((addr)-MAIN + 0x1000)
#define B(addr) ((addr)-LIB + 0x5000)
#define OUTSIDE PROFDB_OUTSIDE

/* ---- moves ----------------------------------------------------------------------------------- */

/* Calls into the library and back are one move in the program, and two in the library. */
static void two_images(void **state)
{
	struct vtrace_window window = run(MAIN, 64);

	(void)state;
	map_both();
	assert_int_equal(window.end, VTRACE_SYSTEM);
	take(&window);
	assert_int_equal(stored(), 1);
	assert_int_equal(moved("/bin/a", A(MAIN), OUTSIDE, A(MAIN)), 1);
	assert_int_equal(moved("/bin/a", A(MAIN), A(CALL), A(AFTER)), 3);
	assert_int_equal(moved("/bin/a", A(MAIN), A(JNZ), A(CALL)), 2);
	/* Not taken, and nothing ran behind it. */
	assert_int_equal(moved("/bin/a", A(MAIN), A(JNZ), A(END)), 1);
	assert_int_equal(nr_moves("/bin/a"), 7);
	assert_int_equal(moved("/lib/b", OUTSIDE, OUTSIDE, B(LIB)), 1);
	assert_int_equal(moved("/lib/b", OUTSIDE, B(RET), B(LIB)), 2);
	assert_int_equal(moved("/lib/b", OUTSIDE, B(RET), OUTSIDE), 1);
	assert_int_equal(nr_moves("/lib/b"), 4);
}

/* The last instruction is no transfer: where it stood is told. */
static void ends_within_a_block(void **state)
{
	struct vtrace_window window = run(MAIN, 2);

	(void)state;
	map_both();
	take(&window);
	assert_int_equal(moved("/bin/a", A(MAIN), OUTSIDE, A(MAIN)), 1);
	assert_int_equal(moved("/bin/a", A(MAIN), A(MAIN + 2), OUTSIDE), 1);
	assert_int_equal(nr_moves("/bin/a"), 2);
}

/* It is one, and led elsewhere: to the same image that is told, to another it is not. */
static void ends_with_a_transfer(void **state)
{
	struct vtrace_window window;

	(void)state;
	map_both();
	window = run(MAIN, 3);
	assert_int_equal(window.end, VTRACE_FULL);
	assert_int_equal(window.end_pc, LIB);
	take(&window);
	assert_int_equal(moved("/bin/a", A(MAIN), A(CALL), OUTSIDE), 1);
	assert_int_equal(nr_moves("/bin/a"), 2);
	window = run(AFTER, 2);
	take(&window);
	assert_int_equal(moved("/bin/a", A(AFTER), OUTSIDE, A(AFTER)), 1);
	assert_int_equal(moved("/bin/a", A(AFTER), A(JNZ), A(CALL)), 1);
	assert_int_equal(nr_moves("/bin/a"), 4);
}

/* Nothing could be run: it began there all the same. */
static void without_an_instruction(void **state)
{
	struct vtrace_window window = run(END, 64);

	(void)state;
	map_both();
	assert_int_equal(window.nr_insns, 0);
	take(&window);
	assert_int_equal(stored(), 1);
	assert_int_equal(moved("/bin/a", A(END), OUTSIDE, A(END)), 1);
	assert_int_equal(nr_moves("/bin/a"), 1);
	/* Nor was there a block. */
	window.nr_words = 0;
	take(&window);
	assert_int_equal(moved("/bin/a", A(END), OUTSIDE, A(END)), 2);
}

/* Windows of even and of odd number are kept apart. */
static void halves(void **state)
{
	struct vtrace_window window = run(MAIN, 2);
	const struct profdb_move *m;

	(void)state;
	map_both();
	for (int i = 0; i < 5; i++)
		take(&window);
	m = profdb_profile_move(image_of("/bin/a")->counts, 0);
	assert_int_equal(m->count[0], 3);
	assert_int_equal(m->count[1], 2);
	assert_true(image_of("/bin/a")->dirty);
}

/* A block that was cut for its length goes on as if it had not been. */
static void long_blocks(void **state)
{
	struct vtrace_window window;

	(void)state;
	map_both();
	memset(d.code, 0x90, 256);
	window = run(MAIN, 60);
	assert_true(window.nr_words > 1);
	take(&window);
	assert_int_equal(moved("/bin/a", A(MAIN), OUTSIDE, A(MAIN)), 1);
	assert_int_equal(moved("/bin/a", A(MAIN), A(MAIN + 59), OUTSIDE), 1);
	assert_int_equal(nr_moves("/bin/a"), 2);
}

/* ---- where they belong ----------------------------------------------------------------------- */

/* Only what lies in a mapping is somewhere; where that is nothing, the window is lost. */
static void partly_unknown(void **state)
{
	struct vtrace_window window = run(MAIN, 64);

	(void)state;
	trial_mmap(&t, PID, MAIN, 0x1000, 0x1000, "/bin/a", 1);
	take(&window);
	assert_int_equal(stored(), 1);
	assert_int_equal(moved("/bin/a", A(MAIN), A(CALL), A(AFTER)), 3);
	window = run(LIB, 1);
	take(&window);
	assert_int_equal(lost(WINDOWS_LOST_UNKNOWN), 1);
}

static void of_nobody(void **state)
{
	struct vtrace_window window = run(MAIN, 64);

	(void)state;
	window.tgid = 4711;
	take(&window);
	assert_int_equal(lost(WINDOWS_LOST_PROCESS), 1);
}

/* By the mappings at its time: what came later is not it. */
static void in_the_order_of_time(void **state)
{
	struct vtrace_window window = run(MAIN, 2);

	(void)state;
	trial_mmap(&t, PID, MAIN, 0x1000, 0x1000, "/bin/old", 3);
	take(&window);
	trial_mmap(&t, PID, MAIN, 0x1000, 0x1000, "/bin/a", 1);
	take(&window);
	assert_int_equal(nr_moves("/bin/old"), 2);
	assert_int_equal(nr_moves("/bin/a"), 2);
}

static void dynamic_code(void **state)
{
	struct vtrace_window window = run(MAIN, 64);
	struct windows_stats stats;
	struct image *img;

	(void)state;
	trial_mmap(&t, PID, MAIN, 0x2000, 0, "//anon", 0);
	img = images_get(t.a.images, PROFDB_DYNAMIC, NULL, "jit", "jit.dyn");
	processes_find(t.a.processes, PID)->dyn = (struct dyn_client *)&d;
	stand_ins.registered = true;
	stand_ins.where = DYN_LATER;
	stand_ins.dyn_image = img;
	take(&window);
	windows_stats_get(w, &stats);
	assert_int_equal(stats.pending, 1);
	attrib_resolve(&t.a, 0);
	assert_int_equal(stored(), 0);
	/* Now the registry tells. */
	stand_ins.where = DYN_FOUND;
	stand_ins.dyn_off = 0x40;
	stand_ins.registered = false;
	window = run(MAIN, 1);
	vtrace_tag(&s, 7);
	window.nr_words = (uint16_t)s.nr_words;
	take(&window);
	attrib_resolve(&t.a, 0);
	assert_int_equal(stand_ins.query.generation, 7);
	assert_true(stand_ins.query.generation_read);
	assert_int_equal(stored() + lost(WINDOWS_LOST_REUSED), 2);
	assert_int_equal(moved("jit", 0x40, OUTSIDE, 0x40), 1);
	assert_int_equal(moved("jit", 0x40, 0x40, OUTSIDE), 1);
}

/* Its mappings are gone when the registries are read; what they were is not. */
static void dynamic_code_of_the_dead(void **state)
{
	struct vtrace_window window = run(MAIN, 1);

	(void)state;
	trial_mmap(&t, PID, MAIN, 0x2000, 0, "//anon", 0);
	t.a.live = true;
	stand_ins.where = DYN_FOUND;
	stand_ins.dyn_image = images_get(t.a.images, PROFDB_DYNAMIC, NULL, "jit", "jit.dyn");
	take(&window);
	assert_int_equal(stored(), 0);
	trial_event(&t, DRIVER_LOAD_EXIT, PID, 0);
	attrib_resolve(&t.a, 0);
	assert_int_equal(stored(), 1);
	assert_true(stand_ins.query.last);
	assert_true(stand_ins.query.dynamic);
	assert_int_equal(stand_ins.query.map_start, MAIN);
}

/* What was stored in it alone is not any more; what another image has a part of is. */
static void refused_image(void **state)
{
	struct vtrace_window window = run(MAIN, 1);
	struct image *img = images_get(t.a.images, PROFDB_DYNAMIC, NULL, "jit", "jit.dyn");

	(void)state;
	trial_mmap(&t, PID, MAIN, 0x2000, 0, "//anon", 0);
	trial_mmap(&t, PID, LIB, 0x1000, 0x5000, "/lib/b", 2);
	processes_find(t.a.processes, PID)->dyn = (struct dyn_client *)&d;
	stand_ins.where = DYN_FOUND;
	stand_ins.dyn_image = img;
	stand_ins.dyn_off = 0x40;
	for (int i = 0; i < 3; i++)
		take(&window);
	window = run(MAIN, 64);
	take(&window);
	attrib_resolve(&t.a, 0);
	assert_int_equal(stored(), 4);
	assert_int_equal(img->windows, 3);
	windows_given_up(w, img);
	assert_int_equal(stored(), 1);
	assert_int_equal(lost(WINDOWS_LOST_REFUSED), 3);
	/* Once. */
	windows_given_up(w, img);
	assert_int_equal(stored(), 1);
}

static void dynamic_losses(void **state)
{
	static const struct {
		enum dyn_where where;
		enum windows_loss loss;
	} cases[] = { { DYN_NONE, WINDOWS_LOST_UNKNOWN },
		      { DYN_REUSED, WINDOWS_LOST_REUSED },
		      { DYN_GENERATION, WINDOWS_LOST_GENERATION },
		      { DYN_NO_ROOM, WINDOWS_LOST_QUOTA } };
	struct vtrace_window window = run(MAIN, 2);

	(void)state;
	trial_mmap(&t, PID, MAIN, 0x2000, 0, "//anon", 0);
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		stand_ins.where = cases[i].where;
		take(&window);
		attrib_resolve(&t.a, 0);
		assert_int_equal(lost(cases[i].loss), 1);
	}
	assert_int_equal(stored(), 0);
}

/* What a program claims of a file's mapping may still be the file's. */
static void claimed_code(void **state)
{
	struct vtrace_window window = run(MAIN, 2);

	(void)state;
	map_both();
	stand_ins.claimed = true;
	stand_ins.where = DYN_NONE;
	take(&window);
	assert_int_equal(stored(), 0);
	attrib_resolve(&t.a, 0);
	assert_int_equal(stored(), 1);
	assert_int_equal(moved("/bin/a", A(MAIN), A(MAIN + 2), OUTSIDE), 1);
}

static void kernel_code(void **state)
{
	struct vtrace_window window = run(MAIN, 2);
	const struct base_id id = trial_id(9);

	(void)state;
	stand_ins.kernel_image = images_get(t.a.images, PROFDB_KERNEL, &id, "vmlinux", "vmlinux");
	stand_ins.kernel_start = MAIN;
	stand_ins.kernel_end = LIB;
	window.has = VTRACE_WINDOW_KERNEL;
	window.tgid = 0;
	take(&window);
	assert_int_equal(moved("vmlinux", 0, 2, OUTSIDE), 1);
	window = run(LIB, 1);
	window.has = VTRACE_WINDOW_KERNEL;
	take(&window);
	assert_int_equal(lost(WINDOWS_LOST_UNKNOWN), 1);
}

static void excluded(void **state)
{
	struct vtrace_window window = run(MAIN, 2);

	(void)state;
	map_both();
	image_of("/bin/a")->excluded = true;
	take(&window);
	assert_int_equal(lost(WINDOWS_LOST_EXCLUDED), 1);
}

static void malformed(void **state)
{
	struct vtrace_window good = run(MAIN, 64), bad = good;
	uint64_t word = s.words[0];

	(void)state;
	map_both();
	s.words[0] = VTRACE_WORD(4711) | 3;
	take(&bad);
	s.words[0] = word + 1;
	take(&bad);
	s.words[0] = word + 200;
	take(&bad);
	s.words[0] = word;
	/* Where its block cannot stand. */
	s.words[1]++;
	bad.pc++;
	take(&bad);
	s.words[1]--;
	bad = good;
	bad.nr_insns++;
	take(&bad);
	bad = good;
	bad.pc++;
	take(&bad);
	bad = good;
	bad.nr_words = VTRACE_NR_WORDS + 1;
	take(&bad);
	bad.nr_words = 0;
	take(&bad);
	assert_int_equal(lost(WINDOWS_LOST_BAD), 8);
	take(&good);
	assert_int_equal(stored(), 1);
}

/* /proc told of its mappings after it; events up to then come first, and then its end. */
static void of_a_listed_process(void **state)
{
	struct vtrace_window window = run(MAIN, 64);
	struct process *p;

	(void)state;
	map_both();
	p = processes_find(t.a.processes, PID);
	for (size_t i = 0; i < p->nr_maps; i++)
		p->maps[i].listed = true;
	p->known_ns = t.time_ns + 10;
	take(&window);
	assert_int_equal(stored(), 0);
	t.time_ns = p->known_ns;
	trial_event(&t, DRIVER_LOAD_EXIT, PID, 0);
	attrib_resolve(&t.a, 0);
	assert_int_equal(stored(), 1);
	assert_int_equal(moved("/bin/a", A(MAIN), A(CALL), A(AFTER)), 3);
}

/* What the driver lost, or holds, is in the account. */
static void the_drivers_part(void **state)
{
	struct windows_stats stats;

	(void)state;
	d.stats = (struct driver_window_stats){
		.received = 10, .held = 1, .lost_ring = 2, .lost_busy = 3, .lost_read = 4
	};
	windows_stats_get(w, &stats);
	assert_int_equal(stats.received, 10);
	assert_int_equal(stats.pending, 1);
	assert_int_equal(windows_lost(&stats), 9);
}

/* ---- code ------------------------------------------------------------------------------------ */

static int setup_translator(void **state)
{
	*state = fake_can_exec("dcpid-translate") ? &d : NULL;
	return open_it(*state ? fake_helper_dir() : NULL);
}

static void miss(uint64_t time_ns)
{
	d.missing = (struct vtrace_window){ .time_ns = time_ns,
					    .tgid = PID,
					    .end_pc = MAIN,
					    .end = VTRACE_UNTRANSLATED,
					    .code_len = VTRACE_WINDOW_CODE };
	memcpy(d.missing.code, d.code, VTRACE_WINDOW_CODE);
	d.nr_missing = 1;
}

static void what_is_missing(void **state)
{
	struct windows_stats stats;
	unsigned int nr;

	if (!*state)
		skip();
	assert_false(windows_serve(w));
	miss(base_now_ns());
	assert_true(windows_serve(w));
	assert_true(d.nr_put >= 1);
	assert_int_equal(d.put[0], MAIN);
	nr = d.nr_put;
	windows_stats_get(w, &stats);
	assert_int_equal(stats.translated, nr);
	/* A window of before it was put. */
	miss(1);
	assert_true(windows_serve(w));
	assert_int_equal(d.nr_put, nr);
	/* Later it is other code; what may follow is there. */
	miss(base_now_ns());
	windows_serve(w);
	assert_int_equal(d.nr_put, nr + 1);
	/* One that is another one all the time is given up for a while. */
	for (int i = 0; i < 100; i++) {
		miss(base_now_ns());
		windows_serve(w);
	}
	assert_in_range(d.nr_put, nr + 60, nr + 70);
}

/* An address without code, and a table without room. */
static void what_cannot_be_served(void **state)
{
	struct windows_stats stats;

	if (!*state)
		skip();
	miss(base_now_ns());
	d.missing.code_len = 0;
	windows_serve(w);
	assert_int_equal(d.nr_put, 0);
	miss(base_now_ns());
	d.missing.end_pc += 64;
	d.put_result = -DCPI_ELIMIT;
	windows_serve(w);
	d.put_result = 0;
	miss(base_now_ns());
	d.missing.end_pc += 128;
	windows_serve(w);
	windows_stats_get(w, &stats);
	assert_int_equal(stats.refused, 1);
	assert_int_equal(stats.postponed, 1);
	assert_int_equal(d.nr_put, 0);
}

/* Blocks are of code: another process has them too, wherever it stands there. */
static void another_process(void **state)
{
	unsigned int nr;

	if (!*state)
		skip();
	miss(base_now_ns());
	windows_serve(w);
	nr = d.nr_put;
	assert_true(nr >= 1);
	windows_ended(w, PID, base_now_ns());
	attrib_resolve(&t.a, 0);
	miss(1);
	d.missing.tgid++;
	d.missing.end_pc += 0x10000;
	windows_serve(w);
	assert_int_equal(d.nr_put, nr);
	/* Less of it than it is found by. */
	miss(base_now_ns());
	d.missing.code_len = VTRACE_PLACE_BYTES - 1;
	windows_serve(w);
	assert_int_equal(d.nr_put, nr);
}

/* A process that makes code faster than it can be translated has its share and no more. */
static void a_flood(void **state)
{
	struct windows_stats stats;

	if (!*state)
		skip();
	for (unsigned int i = 0; i < 1500; i++) {
		miss(base_now_ns());
		d.missing.end_pc += 64 * i;
		windows_serve(w);
	}
	windows_stats_get(w, &stats);
	assert_int_equal(stats.missing, 1500);
	assert_true(stats.postponed > 0);
}

/* At MAIN is a call of what stands pages away, and at LIB two more: a page is read once. */
#define FAR (MAIN + 0x5000)
static unsigned int nr_far_read;

static ssize_t read_code(uint64_t addr, void *to, size_t len)
{
	if (addr == FAR) {
		nr_far_read++;
		memset(to, 0x90, len);
		for (size_t i = 0; i < len; i += 64)
			((uint8_t *)to)[i] = 0xc3;
		return (ssize_t)len;
	}
	assert_in_range(addr, MAIN, MAIN + sizeof(d.code) - len);
	memcpy(to, (uint8_t *)d.code + (addr - MAIN), len);
	return (ssize_t)len;
}

static void put_call(uint64_t at, uint64_t to)
{
	uint32_t rel = (uint32_t)(to - at - 5);
	uint8_t *code = (uint8_t *)d.code + (at - MAIN);

	code[0] = 0xe8;
	memcpy(code + 1, &rel, sizeof(rel));
}

static bool was_put(uint64_t pc)
{
	for (unsigned int i = 0; i < d.nr_put && i < PUT_MAX; i++)
		if (d.put[i] == pc)
			return true;
	return false;
}

/* A turn that takes long, as the helper starts, leaves what lies ahead to the next. */
static void miss_until(uint64_t pc, uint64_t wanted)
{
	for (int i = 0; i < 50 && !was_put(wanted); i++) {
		miss(base_now_ns());
		d.missing.end_pc = pc;
		memcpy(d.missing.code, (uint8_t *)d.code + (pc - MAIN), VTRACE_WINDOW_CODE);
		windows_serve(w);
	}
	assert_true(was_put(pc));
	assert_true(was_put(wanted));
}

static int setup_reader(void **state)
{
	static char reader;
	struct windows_config config = { .driver = &d,
					 .calls = &calls,
					 .reader = (struct reader *)&reader };
	struct base_err err = { 0 };

	enum vtrace_arch arch;

	open_it(NULL);
	*state = NULL;
	if (!fake_can_exec("dcpid-translate") || translator_arch(&arch) < 0 ||
	    arch != VTRACE_X86_64)
		return 0;
	*state = &d;
	config.helper_dir = fake_helper_dir();
	windows_close(w);
	assert_int_equal(windows_open(&config, &w, &err), 0);
	t.a.windows = w;
	stand_ins.read_code = read_code;
	nr_far_read = 0;
	return 0;
}

/* What is called lies elsewhere, and is there before a window comes to it. */
static void what_lies_ahead(void **state)
{
	if (!*state)
		skip();
	memset(d.code, 0, sizeof(d.code));
	put_call(MAIN, FAR);
	put_call(LIB, FAR + 64);
	put_call(LIB + 5, FAR + 128);
	miss_until(MAIN, FAR);
	assert_int_equal(nr_far_read, 1);
	/* One reading for both. */
	miss_until(LIB, FAR + 128);
	assert_true(was_put(FAR + 64));
	assert_int_equal(nr_far_read, 2);
	/* What was looked at once is not read for another who calls it. */
	put_call(MAIN + 256, FAR);
	miss_until(MAIN + 256, MAIN + 256);
	assert_int_equal(nr_far_read, 2);
}

/* ---- values ---------------------------------------------------------------------------------- */

static char a_client;

static int setup_values(void **state)
{
	const struct windows_config config = { .driver = &d,
					       .calls = &calls,
					       .values = (struct values *)&a_client,
					       .nr_profilers = 1 };
	struct base_err err = { 0 };

	(void)state;
	open_it(NULL);
	windows_close(w);
	assert_int_equal(windows_open(&config, &w, &err), 0);
	t.a.windows = w;
	map_both();
	return 0;
}

static void take_values(struct vtrace_window *window)
{
	window->has = VTRACE_WINDOW_VALUES;
	take(window);
}

static struct windows_values_stats values_stats(size_t waiting)
{
	struct windows_values_stats stats;
	size_t nr;

	assert_true(windows_values_stats_get(w, &stats, &nr));
	assert_int_equal(nr, waiting);
	return stats;
}

static void answer(const struct values_tuple *tuples, size_t nr)
{
	stand_ins.tuples = tuples;
	stand_ins.nr_tuples = nr;
	windows_values_turn(w);
	windows_values_turn(w);
}

/* What comes back is put where the window's blocks were, with where it was called from. */
static void values_come_back(void **state)
{
	const struct values_tuple tuples[] = { { .pc = MAIN, .value = 42 },
					       { .pc = LIB, .c0 = AFTER, .value = 7 },
					       { .pc = LIB, .c0 = 0x999, .value = 8 },
					       { .pc = 0x999, .value = 1 } };
	struct vtrace_window window = run(MAIN, 64);
	const struct profdb_values *v;
	struct base_id id;

	(void)state;
	take_values(&window);
	values_stats(1);
	answer(tuples, 4);
	assert_int_equal(values_stats(0).stored, 3);
	assert_int_equal(values_stats(0).unplaced, 1);
	v = image_of("/bin/a")->values->values;
	assert_string_equal(profdb_values_profiler(v), "values");
	assert_int_equal(profdb_values_nr(v), 1);
	assert_int_equal(profdb_values_at(v, 0)->off, A(MAIN));
	assert_int_equal(profdb_values_at(v, 0)->v[0].value, 42);
	v = image_of("/lib/b")->values->values;
	assert_int_equal(profdb_values_nr(v), 2);
	assert_int_equal(profdb_values_at(v, 0)->context[0].image, 0);
	assert_int_equal(profdb_values_at(v, 1)->context[0].image, 1);
	assert_int_equal(profdb_values_at(v, 1)->context[0].off, A(AFTER));
	assert_string_equal(profdb_values_image(v, 1, &id), "/bin/a");
}

/* Nor are its values. */
static void values_of_a_refused_image(void **state)
{
	const struct values_tuple tuples[] = { { .pc = MAIN, .value = 42 },
					       { .pc = MAIN, .value = 43 },
					       { .pc = LIB, .value = 7 } };
	struct vtrace_window window = run(MAIN, 64);

	(void)state;
	take_values(&window);
	values_stats(1);
	answer(tuples, 3);
	assert_int_equal(values_stats(0).stored, 3);
	windows_given_up(w, image_of("/bin/a"));
	assert_int_equal(values_stats(0).stored, 1);
	assert_int_equal(values_stats(0).unplaced, 2);
}

/* Windows wait for who is busy, and are known as not sent where there is no room. */
static void values_wait(void **state)
{
	struct vtrace_window window = run(MAIN, 64);

	(void)state;
	stand_ins.send_result = -EAGAIN;
	for (int i = 0; i < 4100; i++)
		take_values(&window);
	answer(NULL, 0);
	assert_int_equal(values_stats(4096).not_sent, 4);
	stand_ins.send_result = -DCPI_EFORMAT;
	answer(NULL, 0);
	assert_int_equal(values_stats(0).not_sent, 4100);
}

/* Without registers and reads there is nothing to send. */
static void values_of_none(void **state)
{
	struct vtrace_window window = run(MAIN, 64);

	(void)state;
	take(&window);
	assert_int_equal(values_stats(0).not_sent, 0);
}

/* What @path has is @vtot values at @off, all of them called from CALL in "/bin/a". */
static void assert_called(const char *path, uint64_t off, uint64_t vtot)
{
	const struct profdb_values *v = image_of(path)->values->values;
	struct base_id id;

	assert_int_equal(profdb_values_nr(v), 1);
	assert_int_equal(profdb_values_at(v, 0)->off, off);
	assert_int_equal(profdb_values_at(v, 0)->vtot, vtot);
	assert_int_equal(profdb_values_at(v, 0)->context[0].off, A(CALL));
	assert_string_equal(profdb_values_image(v, profdb_values_at(v, 0)->context[0].image, &id),
			    "/bin/a");
}

static void run_another(void)
{
	trial_event(&t, DRIVER_LOAD_EXEC, PID, 0);
	trial_mmap(&t, PID, MAIN, 0x1000, 0x9000, "/bin/next", 7);
}

/* Where the context is: also a mapping that stood there then, and to the end of that life. */
static void values_of_a_caller(void **state)
{
	const struct values_tuple tuple = { .pc = LIB, .c0 = CALL, .value = 7 };
	struct vtrace_window window = run(LIB, 1);

	(void)state;
	take_values(&window);
	answer(&tuple, 1);
	take_values(&window);
	run_another();
	answer(&tuple, 1);
	assert_called("/lib/b", B(LIB), 2);
}

/* A mapping that came later is not the caller's. */
static void values_of_nobody_knows_whom(void **state)
{
	const struct values_tuple tuple = { .pc = LIB, .c0 = CALL, .value = 7 };
	struct vtrace_window window = run(LIB, 1);
	const struct profdb_values *v;

	(void)state;
	take_values(&window);
	trial_mmap(&t, PID, MAIN, 0x1000, 0x9000, "/bin/next", 7);
	trial_event(&t, DRIVER_LOAD_EXIT, PID, 0);
	answer(&tuple, 1);
	v = image_of("/lib/b")->values->values;
	assert_int_equal(profdb_values_at(v, 0)->context[0].image, 0);
}

static struct image *made_code(const char *name, const char *stem)
{
	trial_mmap(&t, PID, LIB, 0x1000, 0, "//anon", 0);
	stand_ins.where = DYN_FOUND;
	stand_ins.dyn_off = 0x40;
	stand_ins.dyn_image = images_get(t.a.images, PROFDB_DYNAMIC, NULL, name, stem);
	return stand_ins.dyn_image;
}

/* They waited for its registry to be read when its life was over. */
static void values_of_the_dead(void **state)
{
	const struct values_tuple tuple = { .pc = LIB, .c0 = CALL, .value = 7 };
	struct vtrace_window window = run(LIB, 1);

	(void)state;
	made_code("jit", "jit.dyn");
	take_values(&window);
	run_another();
	attrib_resolve(&t.a, 0);
	answer(&tuple, 1);
	assert_called("jit", 0x40, 1);
}

/* Their image became part of another one before they came. */
static void values_of_a_folded_image(void **state)
{
	const struct values_tuple tuple = { .pc = LIB, .c0 = CALL, .value = 7 };
	const struct {
		struct wire_replaces head;
		struct wire_moved moved;
	} map = { .head.nr_moved = 1, .moved = { 0, 0x2000, 0x1000 } };
	struct vtrace_window window = run(LIB, 1);
	struct image *from = made_code("jit", "jit.dyn");
	struct image *to = images_get(t.a.images, PROFDB_DYNAMIC, NULL, "all", "all.dyn");

	(void)state;
	take_values(&window);
	attrib_resolve(&t.a, 0);
	windows_moved(w, from, &map.head, to);
	answer(&tuple, 1);
	assert_null(from->values);
	assert_called("all", 0x2040, 1);
}

/* Asked in a life, it is good for all of it; asked after it, the values are nobody's. */
static void whose_values(void **state)
{
	const struct values_tuple tuple = { .pc = LIB, .value = 7 };
	struct vtrace_window window = run(LIB, 1);
	const struct image_values *i;

	(void)state;
	window.tgid = (uint32_t)getpid();
	trial_mmap(&t, getpid(), LIB, 0x1000, 0, "/lib/mine", 5);
	take_values(&window);
	answer(&tuple, 1);
	i = image_of("/lib/mine")->values;
	assert_int_equal(i->nr_owners, 1);
	assert_int_equal(i->owners[0]->uid, getuid());
	assert_false(i->owners[0]->certain);
	windows_ended(w, getpid(), base_now_ns());
	assert_true(i->owners[0]->certain);
	take_values(&window);
	answer(&tuple, 1);
	assert_int_equal(i->uid, getuid());
	assert_int_equal(i->nr_owners, 1);
	windows_ended(w, getpid(), 1);
	assert_int_equal(i->owners[0]->uid, IMAGE_VALUES_NOBODY);
	/* One that runs another program by the time its registry is read. */
	trial_mmap(&t, getpid(), LIB, 0x1000, 0, "//anon", 0);
	stand_ins.where = DYN_FOUND;
	stand_ins.dyn_image = images_get(t.a.images, PROFDB_DYNAMIC, NULL, "jit", "jit.dyn");
	take_values(&window);
	t.time_ns = base_now_ns();
	trial_event(&t, DRIVER_LOAD_EXEC, getpid(), 0);
	attrib_resolve(&t.a, 0);
	answer(&tuple, 1);
	i = image_of("jit")->values;
	assert_true(i->owned);
	assert_int_equal(i->uid, getuid());
	stand_ins.where = DYN_NONE;
	t.time_ns = 2000;
	/* A process that is gone. */
	window.tgid = 4000000;
	trial_mmap(&t, 4000000, LIB, 0x1000, 0, "/lib/gone", 6);
	take_values(&window);
	answer(&tuple, 1);
	i = image_of("/lib/gone")->values;
	assert_true(i->owned);
	assert_int_equal(i->uid, IMAGE_VALUES_NOBODY);
}

#define VALUES(test) cmocka_unit_test_setup_teardown(test, setup_values, teardown)
#define PLAIN(test)  cmocka_unit_test_setup_teardown(test, setup, teardown)
#define CODE(test)   cmocka_unit_test_setup_teardown(test, setup_translator, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		PLAIN(two_images),
		PLAIN(ends_within_a_block),
		PLAIN(ends_with_a_transfer),
		PLAIN(without_an_instruction),
		PLAIN(halves),
		PLAIN(long_blocks),
		PLAIN(partly_unknown),
		PLAIN(of_nobody),
		PLAIN(in_the_order_of_time),
		PLAIN(dynamic_code),
		PLAIN(dynamic_code_of_the_dead),
		PLAIN(refused_image),
		PLAIN(dynamic_losses),
		PLAIN(claimed_code),
		PLAIN(kernel_code),
		PLAIN(excluded),
		PLAIN(malformed),
		PLAIN(of_a_listed_process),
		VALUES(values_come_back),
		VALUES(values_of_a_refused_image),
		VALUES(values_wait),
		VALUES(values_of_none),
		VALUES(values_of_a_caller),
		VALUES(values_of_nobody_knows_whom),
		VALUES(values_of_the_dead),
		VALUES(values_of_a_folded_image),
		VALUES(whose_values),
		PLAIN(the_drivers_part),
		CODE(what_is_missing),
		CODE(what_cannot_be_served),
		CODE(another_process),
		CODE(a_flood),
		cmocka_unit_test_setup_teardown(what_lies_ahead, setup_reader, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
