/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <linux/perf_event.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "event.h"

#define TREES(X)                                                                                   \
	X(INTEL, "intel-icelake")                                                                  \
	X(ZEN3, "amd-zen3")                                                                        \
	X(ZEN4, "amd-zen4")                                                                        \
	X(ARM, "arm-neoverse-n1")                                                                  \
	X(NONE, "none")

enum tree {
#define X(id, name) id,
	TREES(X)
#undef X
};

/* A machine as its sysfs describes it; NONE: a virtual one that shows no PMU. */
static const char *tree(enum tree t)
{
	static const char *const names[] = {
#define X(id, name) name,
		TREES(X)
#undef X
	};
	static char path[1024];
	const char *src = getenv("DCPI_SRC");

	assert_non_null(src);
	snprintf(path, sizeof(path), "%s/tests/data/sysfs/%s", src, names[t]);
	return path;
}

/* ---- good texts ------------------------------------------------------------------------------ */

enum { U = 1, K = 2, H = 4 }; /* excluded */

struct good {
	enum tree tree;
	const char *text, *name; /* NULL: as the text */
	uint32_t type;
	uint64_t config, config1, config2, period;
	unsigned int precise, excluded;
};

static const struct good goods[] = {
	/* everybody's names */
	{ NONE, "cycles", NULL, PERF_TYPE_HARDWARE, 0, 0, 0, 0, 0, 0 },
	{ NONE, "cpu-cycles", NULL, PERF_TYPE_HARDWARE, 0, 0, 0, 0, 0, 0 },
	{ NONE, "instructions", NULL, PERF_TYPE_HARDWARE, 1, 0, 0, 0, 0, 0 },
	{ NONE, "cache-references", NULL, PERF_TYPE_HARDWARE, 2, 0, 0, 0, 0, 0 },
	{ NONE, "cache-misses", NULL, PERF_TYPE_HARDWARE, 3, 0, 0, 0, 0, 0 },
	{ NONE, "branches", NULL, PERF_TYPE_HARDWARE, 4, 0, 0, 0, 0, 0 },
	{ NONE, "branch-instructions", NULL, PERF_TYPE_HARDWARE, 4, 0, 0, 0, 0, 0 },
	{ NONE, "branch-misses", NULL, PERF_TYPE_HARDWARE, 5, 0, 0, 0, 0, 0 },
	{ NONE, "bus-cycles", NULL, PERF_TYPE_HARDWARE, 6, 0, 0, 0, 0, 0 },
	{ NONE, "stalled-cycles-frontend", NULL, PERF_TYPE_HARDWARE, 7, 0, 0, 0, 0, 0 },
	{ NONE, "stalled-cycles-backend", NULL, PERF_TYPE_HARDWARE, 8, 0, 0, 0, 0, 0 },
	{ NONE, "ref-cycles", NULL, PERF_TYPE_HARDWARE, 9, 0, 0, 0, 0, 0 },
	{ NONE, "L1-dcache-loads", NULL, PERF_TYPE_HW_CACHE, 0x00000, 0, 0, 0, 0, 0 },
	{ NONE, "L1-dcache-load-misses", NULL, PERF_TYPE_HW_CACHE, 0x10000, 0, 0, 0, 0, 0 },
	{ NONE, "L1-dcache-stores", NULL, PERF_TYPE_HW_CACHE, 0x00100, 0, 0, 0, 0, 0 },
	{ NONE, "L1-dcache-prefetch-misses", NULL, PERF_TYPE_HW_CACHE, 0x10200, 0, 0, 0, 0, 0 },
	{ NONE, "L1-icache-load-misses", NULL, PERF_TYPE_HW_CACHE, 0x10001, 0, 0, 0, 0, 0 },
	{ NONE, "LLC-loads", NULL, PERF_TYPE_HW_CACHE, 0x00002, 0, 0, 0, 0, 0 },
	{ NONE, "LLC-load-misses", NULL, PERF_TYPE_HW_CACHE, 0x10002, 0, 0, 0, 0, 0 },
	{ NONE, "LLC-store-misses", NULL, PERF_TYPE_HW_CACHE, 0x10102, 0, 0, 0, 0, 0 },
	{ NONE, "dTLB-load-misses", NULL, PERF_TYPE_HW_CACHE, 0x10003, 0, 0, 0, 0, 0 },
	{ NONE, "iTLB-load-misses", NULL, PERF_TYPE_HW_CACHE, 0x10004, 0, 0, 0, 0, 0 },
	{ NONE, "branch-loads", NULL, PERF_TYPE_HW_CACHE, 0x00005, 0, 0, 0, 0, 0 },
	{ NONE, "node-load-misses", NULL, PERF_TYPE_HW_CACHE, 0x10006, 0, 0, 0, 0, 0 },
	{ NONE, "page-faults", NULL, PERF_TYPE_SOFTWARE, 2, 0, 0, 0, 0, 0 },
	{ NONE, "context-switches", NULL, PERF_TYPE_SOFTWARE, 3, 0, 0, 0, 0, 0 },
	{ NONE, "cs", NULL, PERF_TYPE_SOFTWARE, 3, 0, 0, 0, 0, 0 },
	{ NONE, "cpu-migrations", NULL, PERF_TYPE_SOFTWARE, 4, 0, 0, 0, 0, 0 },
	{ NONE, "minor-faults", NULL, PERF_TYPE_SOFTWARE, 5, 0, 0, 0, 0, 0 },
	{ NONE, "major-faults", NULL, PERF_TYPE_SOFTWARE, 6, 0, 0, 0, 0, 0 },
	{ NONE, "alignment-faults", NULL, PERF_TYPE_SOFTWARE, 7, 0, 0, 0, 0, 0 },
	{ NONE, "emulation-faults", NULL, PERF_TYPE_SOFTWARE, 8, 0, 0, 0, 0, 0 },
	{ NONE, "cgroup-switches", NULL, PERF_TYPE_SOFTWARE, 11, 0, 0, 0, 0, 0 },
	{ NONE, "r1a8", NULL, PERF_TYPE_RAW, 0x1a8, 0, 0, 0, 0, 0 },
	{ NONE, "rFFFFFFFFFFFFFFFF", NULL, PERF_TYPE_RAW, UINT64_MAX, 0, 0, 0, 0, 0 },
	/* DCPI's */
	{ NONE, "imiss", NULL, PERF_TYPE_HW_CACHE, 0x10001, 0, 0, 0, 0, 0 },
	{ NONE, "dmiss:4096", "dmiss", PERF_TYPE_HW_CACHE, 0x10000, 0, 0, 4096, 0, 0 },
	{ NONE, "itbmiss", NULL, PERF_TYPE_HW_CACHE, 0x10004, 0, 0, 0, 0, 0 },
	{ NONE, "dtbmiss", NULL, PERF_TYPE_HW_CACHE, 0x10003, 0, 0, 0, 0, 0 },
	{ NONE, "bmiss", NULL, PERF_TYPE_HARDWARE, 3, 0, 0, 0, 0, 0 },
	{ NONE, "branchmp", NULL, PERF_TYPE_HARDWARE, 5, 0, 0, 0, 0, 0 },
	{ NONE, "retires", NULL, PERF_TYPE_HARDWARE, 1, 0, 0, 0, 0, 0 },
	/* modifiers and periods */
	{ NONE, "cycles:u", NULL, PERF_TYPE_HARDWARE, 0, 0, 0, 0, 0, K | H },
	{ NONE, "cycles:k", NULL, PERF_TYPE_HARDWARE, 0, 0, 0, 0, 0, U | H },
	{ NONE, "cycles:h", NULL, PERF_TYPE_HARDWARE, 0, 0, 0, 0, 0, U | K },
	{ NONE, "cycles:uk", NULL, PERF_TYPE_HARDWARE, 0, 0, 0, 0, 0, H },
	{ NONE, "cycles:ukh", NULL, PERF_TYPE_HARDWARE, 0, 0, 0, 0, 0, 0 },
	{ NONE, "cycles:ppu", NULL, PERF_TYPE_HARDWARE, 0, 0, 0, 0, 2, K | H },
	{ NONE, "cycles:u:63488", "cycles:u", PERF_TYPE_HARDWARE, 0, 0, 0, 63488, 0, K | H },
	{ NONE, "cycles:1", "cycles", PERF_TYPE_HARDWARE, 0, 0, 0, 1, 0, 0 },
	{ NONE, "cycles:9223372036854775807", "cycles", PERF_TYPE_HARDWARE, 0, 0, 0, INT64_MAX, 0,
	  0 },
	{ NONE, "page-faults:1", "page-faults", PERF_TYPE_SOFTWARE, 2, 0, 0, 1, 0, 0 },

	/* Intel: the core is precise by itself */
	{ INTEL, "cycles:ppp", NULL, PERF_TYPE_HARDWARE, 0, 0, 0, 0, 3, 0 },
	{ INTEL, "instructions:pp:2000003", "instructions:pp", PERF_TYPE_HARDWARE, 1, 0, 0, 2000003,
	  2, 0 },
	{ INTEL, "mem-loads:p", NULL, 4, 0x1cd, 3, 0, 0, 1, 0 },
	{ INTEL, "mem-stores", NULL, 4, 0x82d0, 0, 0, 0, 0, 0 },
	{ INTEL, "slots", NULL, 4, 0x400, 0, 0, 0, 0, 0 },
	{ INTEL, "cpu/cpu-cycles/", NULL, 4, 0x3c, 0, 0, 0, 0, 0 },
	{ INTEL, "cpu/mem-loads,ldlat=30/pp", NULL, 4, 0x1cd, 30, 0, 0, 2, 0 },
	{ INTEL, "cpu/mem-loads,ldlat=0x1e/:u:1000", "cpu/mem-loads,ldlat=0x1e/:u", 4, 0x1cd, 30, 0,
	  1000, 0, K | H },
	{ INTEL, "cpu/event=0xb7,umask=0x1,offcore_rsp=0x3fbfc00001,name=l3miss/:k", "l3miss:k", 4,
	  0x1b7, 0x3fbfc00001, 0, 0, 0, U | H },
	{ INTEL, "cpu/event=60,any,edge,inv,cmask=2,name=idle/", "idle", 4, 0x2a4003c, 0, 0, 0, 0,
	  0 },
	{ INTEL, "cpu/event=0xc4,in_tx,period=50/", NULL, 4, 0x1000000c4, 0, 0, 50, 0, 0 },
	{ INTEL, "cpu/event=0xc4,period=5000/:70", "cpu/event=0xc4,period=5000/", 4, 0xc4, 0, 0, 70,
	  0, 0 },
	{ INTEL, "cpu/config=0x5301b7,config1=1,config2=2,name=raw/", "raw", 4, 0x5301b7, 1, 2, 0,
	  0, 0 },
	{ INTEL, "cpu//", NULL, 4, 0, 0, 0, 0, 0, 0 },
	{ INTEL, "uncore_imc_0/cas_count_read/", NULL, 14, 0xf04, 0, 0, 0, 0, 0 },

	/* AMD: IBS is. cnt_ctl (bit 19) counts micro-operations instead of cycles. */
	{ ZEN3, "cycles", NULL, PERF_TYPE_HARDWARE, 0, 0, 0, 0, 0, 0 },
	{ ZEN3, "cycles:p", NULL, 11, 0, 0, 0, 0, 0, 0 },
	{ ZEN3, "cycles:pp:100000", "cycles:pp", 11, 0, 0, 0, 100000, 0, 0 },
	{ ZEN3, "cycles:p:100009", "cycles:p", 11, 0, 0, 0, 100000, 0, 0 },
	{ ZEN3, "cycles:p:100", "cycles:p", 11, 0, 0, 0, 0x90, 0, 0 },
	{ ZEN3, "cycles:p:9223372036854775807", "cycles:p", 11, 0, 0, 0, INT64_MAX - 15, 0, 0 },
	{ ZEN3, "r076:p", NULL, 11, 0, 0, 0, 0, 0, 0 },
	{ ZEN3, "r076", NULL, PERF_TYPE_RAW, 0x76, 0, 0, 0, 0, 0 },
	{ ZEN3, "r0C1:p", NULL, 11, 0x80000, 0, 0, 0, 0, 0 },
	{ ZEN3, "cpu/cpu-cycles/p", NULL, 11, 0, 0, 0, 0, 0, 0 },
	{ ZEN3, "cycles:ukp", NULL, 11, 0, 0, 0, 0, 0, 0 },
	{ ZEN3, "ibs_op/cnt_ctl=1/:65543", "ibs_op/cnt_ctl=1/", 11, 0x80000, 0, 0, 65536, 0, 0 },
	{ ZEN3, "ibs_op//pp", NULL, 11, 0, 0, 0, 0, 0, 0 },
	{ ZEN3, "ibs_fetch/rand_en/", NULL, 10, 1ull << 57, 0, 0, 0, 0, 0 },
	{ ZEN3, "cpu/event=0x1c7,umask=0xff/", NULL, 4, 0x10000ffc7, 0, 0, 0, 0, 0 },
	{ ZEN3, "stalled-cycles-frontend", NULL, PERF_TYPE_HARDWARE, 7, 0, 0, 0, 0, 0 },
	{ ZEN4, "cycles:pu", NULL, 11, 0, 0, 1, 0, 0, K },
	{ ZEN4, "r0c1:pk:1600", "r0c1:pk", 11, 0x80000, 0, 1, 1600, 0, U },
	{ ZEN4, "ibs_op/l3missonly/", NULL, 11, 0x10000, 0, 0, 0, 0, 0 },

	/* Arm: the core's PMU is not called cpu, and need not be asked for by its name */
	{ ARM, "cycles", NULL, PERF_TYPE_HARDWARE, 0, 0, 0, 0, 0, 0 },
	{ ARM, "cpu_cycles", NULL, 8, 0x11, 0, 0, 0, 0, 0 },
	{ ARM, "l1d_cache_refill:1000", "l1d_cache_refill", 8, 3, 0, 0, 1000, 0, 0 },
	{ ARM, "armv8_pmuv3_0/inst_retired/u", NULL, 8, 8, 0, 0, 0, 0, K | H },
	{ ARM, "armv8_pmuv3_0/event=36,long/", NULL, 8, 0x24, 1, 0, 0, 0, 0 },
	{ ARM, "armv8_pmuv3_0/event=36,rdpmc/", NULL, 8, 0x24, 2, 0, 0, 0, 0 },
	{ ARM, "arm_spe_0/ts_enable,load_filter,name=spe/", "spe", 9, 0x200000001, 0, 0, 0, 0, 0 },
	{ ARM, "arm_spe_0/jitter,min_latency=64,name=slow/", "slow", 9, 0x10000, 0, 64, 0, 0, 0 },
};

static void check_good(const struct good *g)
{
	struct event_spec e;
	struct base_err err = { 0 };
	int r = event_parse(g->text, tree(g->tree), &e, &err);

	if (r < 0)
		fail_msg("%s: %s", g->text, err.text);
	assert_string_equal(e.name, g->name ? g->name : g->text);
	if (e.type != g->type || e.config != g->config || e.config1 != g->config1 ||
	    e.config2 != g->config2 || e.period != g->period || e.precise != g->precise)
		fail_msg("%s: type %u config %#lx %#lx %#lx period %lu precise %u", g->text, e.type,
			 (unsigned long)e.config, (unsigned long)e.config1,
			 (unsigned long)e.config2, (unsigned long)e.period, e.precise);
	assert_int_equal(e.exclude_user, !!(g->excluded & U));
	assert_int_equal(e.exclude_kernel, !!(g->excluded & K));
	assert_int_equal(e.exclude_hv, !!(g->excluded & H));
	assert_false(e.tick);
	assert_false(e.clock);
	assert_int_equal(e.slots, 0);
}

static void texts_give_the_attributes(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(goods) / sizeof(goods[0]); i++)
		check_good(&goods[i]);
}

/* IBS also where it stands in for an event of the core's. */
static void hardware_that_tells_of_instructions_is_known(void **state)
{
	static const struct {
		enum tree tree;
		const char *text;
		enum event_hardware hardware;
		bool told;
	} of[] = {
		{ ZEN3, "ibs_op/cnt_ctl=1/", EVENT_HW_IBS_OP, true },
		{ ZEN3, "r0c1:p", EVENT_HW_IBS_OP, false },
		{ ZEN3, "ibs_fetch//", EVENT_HW_IBS_FETCH, true },
		{ ZEN3, "cycles", EVENT_HW_OTHER, false },
		{ INTEL, "mem-loads:p", EVENT_HW_OTHER, true },
		{ INTEL, "cpu/mem-loads,ldlat=30/pp", EVENT_HW_OTHER, true },
		{ INTEL, "mem-stores", EVENT_HW_OTHER, false },
		{ INTEL, "cycles:ppp", EVENT_HW_OTHER, false },
		{ ARM, "arm_spe_0/ts_enable,name=spe/", EVENT_HW_SPE, true },
		{ ARM, "cpu_cycles", EVENT_HW_OTHER, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(of) / sizeof(*of); i++) {
		struct event_spec e;

		assert_int_equal(event_parse(of[i].text, tree(of[i].tree), &e, NULL), 0);
		assert_int_equal(e.hardware, of[i].hardware);
		assert_int_equal(e.told, of[i].told);
	}
}

static void clocks_and_the_tick_are_told_apart(void **state)
{
	struct event_spec e;

	(void)state;
	assert_int_equal(event_parse("cpu-clock:k:1000000", tree(NONE), &e, NULL), 0);
	assert_int_equal(e.type, PERF_TYPE_SOFTWARE);
	assert_int_equal(e.config, PERF_COUNT_SW_CPU_CLOCK);
	assert_int_equal(e.period, 1000000);
	assert_true(e.clock && e.exclude_user && !e.exclude_kernel && !e.tick);
	assert_string_equal(e.name, "cpu-clock:k");
	assert_int_equal(event_parse("task-clock", tree(NONE), &e, NULL), 0);
	assert_int_equal(e.config, PERF_COUNT_SW_TASK_CLOCK);
	assert_true(e.clock);
	assert_int_equal(event_parse("tick", tree(NONE), &e, NULL), 0);
	assert_true(e.tick && !e.clock);
}

/* ---- bad texts ------------------------------------------------------------------------------- */

static const struct {
	enum tree tree;
	const char *text, *says, *hint;
} bads[] = {
	{ NONE, "", "no name", "NAME[:MODIFIERS][:PERIOD]" },
	{ NONE, ":u", "no name", "" },
	{ NONE, "cycles:", "nothing between", "" },
	{ NONE, "cycles::u", "nothing between", "" },
	{ NONE, "cycles:u:", "nothing between", "" },
	{ NONE, "cycles:1000:u", "period must be last", "" },
	{ NONE, "cycles:10:10", "period must be last", "" },
	{ NONE, "cycles:u:k", "stand together", "" },
	{ NONE, "cycles:0", "no number above 0", "" },
	{ NONE, "cycles:99999999999999999999", "no number above 0", "" },
	{ NONE, "cycles:9223372036854775808", "too large", "" },
	{ NONE, "cycles:-5", "unknown modifier '-'", "digits only" },
	{ NONE, "cycles:0x10", "unknown modifier '0'", "digits only" },
	{ NONE, "cycles:G", "unknown modifier 'G'", "u (user mode)" },
	{ NONE, "cycles:pppp", "more than three", "" },
	{ NONE, "cpu-clock:9999", "10000 at least", "" },
	{ NONE, "cpu-clock:p", "only hardware events", "" },
	{ NONE, "tick:u", "neither modifiers", "" },
	{ NONE, "tick:1000", "neither modifiers", "" },
	{ NONE, "cycles u", "without blanks", "" },
	{ NONE, "cycles\n", "without blanks", "" },
	{ NONE, "cycl\xc3\xa9s", "printable", "" },
	{ NONE, "cycels", "unknown event 'cycels'", "did you mean 'cycles'" },
	{ NONE, "L1-dcache-load-mises", "unknown event", "did you mean 'L1-dcache-load-misses'" },
	{ NONE, "zzzzzzzzzzzz", "unknown event", "-list-events" },
	{ NONE, "r", "unknown event 'r'", "" },
	{ NONE, "r12g", "unknown event 'r12g'", "" },
	{ NONE, "r12345678901234567", "unknown event", "" },
	{ NONE, "cpu/event=1/", "no PMU 'cpu'", "" },
	{ NONE, "../cpu/event=1/", "no PMU '..'", "" },
	{ INTEL, "cpu/event=1", "'/' that ends", "" },
	{ INTEL, "cp/event=1/", "no PMU 'cp'", "did you mean 'cpu'" },
	{ INTEL, "caps/event=1/", "no PMU 'caps'", "" },
	{ INTEL, "cpu/event=0x100/", "too large for 'config:0-7'", "" },
	{ INTEL, "cpu/any=2/", "too large for 'config:21'", "" },
	{ INTEL, "cpu/umsk=1/", "no event or term 'umsk'", "did you mean 'umask'" },
	{ INTEL, "cpu/instruction/", "no event or term", "did you mean 'instructions'" },
	{ INTEL, "cpu/event=/", "value '' of term 'event'", "" },
	{ INTEL, "cpu/event=1x/", "is no number", "" },
	{ INTEL, "cpu/event=-1/", "is no number", "" },
	{ INTEL, "cpu/config=99999999999999999999/", "is no number", "" },
	{ INTEL, "cpu/event=1,,umask=1/", "empty term", "" },
	{ INTEL, "cpu/event=1,/", "empty term", "" },
	{ INTEL, "cpu/name=/", "not 1 to 31 bytes", "" },
	{ INTEL, "cpu/event=1,name=abcdefghijklmnopqrstuvwxyz123456/", "not 1 to 31 bytes", "" },
	{ INTEL, "cpu/event=1,name=abcdefghijklmnopqrstuvwxyz12345/:u", "more than 31 bytes", "" },
	{ INTEL, "cpu/event=0x00000000000000000003c/", "more than 31 bytes", "name=NAME" },
	{ INTEL, "cpu/../type/", "no event or term '..'", "" },
	{ INTEL, "mem-lods", "unknown event", "did you mean 'mem-loads'" },
	{ ARM, "cycles:p", "has no precise events", "leave the p out" },
	{ ZEN3, "instructions:p", "not that precise", "cycles:p" },
	{ ZEN3, "branch-misses:p", "not that precise", "r0c1:p" },
	{ ZEN3, "cycles:ppp", "not that precise", "cycles:pp" },
	{ ZEN3, "cycles:pu", "IBS has no 'swfilt=1'", "6.14" },
	{ ZEN3, "cpu/ldlat=3/", "no event or term 'ldlat'", "" },
};

static void bad_texts_are_explained(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(bads) / sizeof(bads[0]); i++) {
		struct base_err err = { 0 };
		struct event_spec e;
		int r = event_parse(bads[i].text, tree(bads[i].tree), &e, &err);

		if (r != -DCPI_EUSAGE || !strstr(err.text, bads[i].says) ||
		    !strstr(err.hint, bads[i].hint))
			fail_msg("'%s': %d, %s (%s)", bads[i].text, r, err.text, err.hint);
	}
}

static void long_texts_are_refused(void **state)
{
	char text[5000];
	struct base_err err = { 0 };
	const char *slots[] = { text };
	struct event_spec all[DRIVER_NR_EVENTS];

	(void)state;
	memset(text, 'a', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	assert_int_equal(event_parse(text, tree(NONE), &all[0], &err), -DCPI_EUSAGE);
	assert_non_null(strstr(err.text, "too long"));
	err = (struct base_err){ 0 };
	assert_int_equal(event_parse_slots(slots, 1, tree(NONE), all, &err), -DCPI_EUSAGE);
	assert_non_null(strstr(err.text, "too long"));
}

/* ---- slots ----------------------------------------------------------------------------------- */

static void slots_keep_their_order(void **state)
{
	static const char *const slots[] = { "cycles:u:63488+imiss", "dmiss",
					     "cpu-clock+dmiss+page-faults" };
	struct event_spec all[DRIVER_NR_EVENTS];
	struct base_err err = { 0 };

	(void)state;
	assert_int_equal(event_parse_slots(slots, 3, tree(NONE), all, &err), 5);
	assert_string_equal(all[0].name, "cycles:u");
	assert_int_equal(all[0].period, 63488);
	assert_string_equal(all[1].name, "imiss");
	assert_string_equal(all[4].name, "page-faults");
	assert_int_equal(all[0].slots, 1);
	assert_int_equal(all[1].slots, 1);
	assert_int_equal(all[2].slots, 2 + 4);
	assert_int_equal(all[3].slots, 4);
	assert_int_equal(all[4].slots, 4);
	assert_int_equal(event_parse_slots(NULL, 0, tree(NONE), all, &err), 0);
}

static int parse_one_slot(const char *slot, struct base_err *err)
{
	struct event_spec all[DRIVER_NR_EVENTS];

	*err = (struct base_err){ 0 };
	return event_parse_slots(&slot, 1, tree(NONE), all, err);
}

static int parse_two_slots(const char *first, const char *second, struct event_spec *all,
			   struct base_err *err)
{
	const char *const slots[] = { first, second };

	*err = (struct base_err){ 0 };
	return event_parse_slots(slots, 2, tree(NONE), all, err);
}

/* DCPI's pairs. */
static void an_event_may_be_in_several_slots(void **state)
{
	struct event_spec all[DRIVER_NR_EVENTS];
	struct base_err err;

	(void)state;
	assert_int_equal(parse_two_slots("cycles+retires:9000", "retires:9000+bmiss", all, &err),
			 3);
	assert_string_equal(all[1].name, "retires");
	assert_int_equal(all[0].slots, 1);
	assert_int_equal(all[1].slots, 3);
	assert_int_equal(all[2].slots, 2);
	assert_int_equal(all[1].period, 9000);
	assert_int_equal(parse_two_slots("tick", "tick+cpu-clock", all, &err), 2);
	assert_int_equal(all[0].slots, 3);
}

static void slots_must_agree(void **state)
{
	static const struct {
		const char *first, *second, *says, *hint;
	} bad[] = {
		{ "cycles:1000", "imiss+cycles:2000", "'cycles' is asked for with two periods",
		  "same" },
		{ "cycles", "cycles:2000", "'cycles' is asked for with two periods", "same" },
		{ "cycles+imiss+cycles", "dmiss", "'cycles' is asked for twice", "" },
		{ "cycles", "imiss+cycles+cycles", "'cycles' is asked for twice", "" },
		{ "tick", "cycles", "cannot sample 'tick' in turn", "every slot" },
		{ "cycles", "dmiss+tick", "cannot sample 'tick' in turn", "every slot" },
	};
	struct event_spec all[DRIVER_NR_EVENTS];
	struct base_err err;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		int r = parse_two_slots(bad[i].first, bad[i].second, all, &err);

		if (r != -DCPI_EUSAGE || !strstr(err.text, bad[i].says) ||
		    !strstr(err.hint, bad[i].hint))
			fail_msg("'%s', '%s': %d, %s (%s)", bad[i].first, bad[i].second, r,
				 err.text, err.hint);
	}
}

/* A name of the user's own says nothing of what is counted. */
static void one_name_means_one_event(void **state)
{
	static const char *const slots[] = { "cpu/event=1,name=x/", "cpu/event=2,name=x/" };
	struct event_spec all[DRIVER_NR_EVENTS];
	struct base_err err = { 0 };

	(void)state;
	assert_int_equal(event_parse_slots(slots, 2, tree(INTEL), all, &err), -DCPI_EUSAGE);
	assert_string_equal(err.text, "'x' is the name of two events");
}

static void slots_have_limits(void **state)
{
	const char *many[EVENT_NR_SLOTS + 1];
	struct event_spec all[DRIVER_NR_EVENTS];
	struct base_err err = { 0 };

	(void)state;
	for (size_t i = 0; i <= EVENT_NR_SLOTS; i++)
		many[i] = "cycles";
	assert_int_equal(event_parse_slots(many, EVENT_NR_SLOTS, tree(NONE), all, &err), 1);
	assert_int_equal(all[0].slots, INT64_MAX);
	assert_int_equal(event_parse_slots(many, EVENT_NR_SLOTS + 1, tree(NONE), all, &err),
			 -DCPI_EUSAGE);
	assert_string_equal(err.text, "more than 63 slots");
	assert_int_equal(parse_one_slot("cycles+", &err), -DCPI_EUSAGE);
	assert_int_equal(parse_one_slot("+cycles", &err), -DCPI_EUSAGE);
	assert_int_equal(parse_one_slot("", &err), -DCPI_EUSAGE);
	assert_int_equal(parse_one_slot("r0+r1+r2+r3+r4+r5+r6+r7+r8+r9+ra+rb+rc+rd+re+rf", &err),
			 16);
	assert_int_equal(
		parse_one_slot("r0+r1+r2+r3+r4+r5+r6+r7+r8+r9+ra+rb+rc+rd+re+rf+r10", &err),
		-DCPI_EUSAGE);
	assert_non_null(strstr(err.text, "more than 16 events"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(texts_give_the_attributes),
		cmocka_unit_test(hardware_that_tells_of_instructions_is_known),
		cmocka_unit_test(clocks_and_the_tick_are_told_apart),
		cmocka_unit_test(bad_texts_are_explained),
		cmocka_unit_test(long_texts_are_refused),
		cmocka_unit_test(slots_keep_their_order),
		cmocka_unit_test(an_event_may_be_in_several_slots),
		cmocka_unit_test(slots_must_agree),
		cmocka_unit_test(one_name_means_one_event),
		cmocka_unit_test(slots_have_limits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
