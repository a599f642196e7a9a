/* SPDX-License-Identifier: BSD-2-Clause */
/* The helper that translates, and answers that it would never give. */
#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "fake_registry.h"
#include "fast_clock.h"
#include "translator.h"

#define BASE 0x10000ull

/* xor eax,eax; mov ecx,10; 1: add rax,rcx; dec ecx; jnz 1b; jmp 0, which leads out of what is
 * there; something else behind it */
static const uint8_t loop[48] = { 0x31, 0xc0, 0xb9, 0x0a, 0x00, 0x00, 0x00, 0x48, 0x01, 0xc8,
				  0xff, 0xc9, 0x75, 0xf9, 0xe9, 0x00, 0x10, 0x00, 0x00 };

static const struct translator_request request = {
	.arch = VTRACE_X86_64, .len = sizeof(loop), .base = BASE, .pc = BASE
};

/* Each call may have to start a helper, which takes seconds where many programs run. */
enum { PATIENCE_MS = 20000 };

static unsigned int nr_before;

static int setup(void **state)
{
	struct base_err err = { 0 };
	struct translator *t = NULL;

	stride_ns = 0;
	nr_before = fake_nr_descriptors();
	if (!fake_can_exec("dcpid-translate")) {
		*state = NULL;
		return 0;
	}
	if (translator_open(fake_helper_dir(), &t, &err) < 0)
		fail_msg("%s", err.text);
	translator_set_patience(t, PATIENCE_MS);
	*state = t;
	return 0;
}

/* Neither one that runs on, nor one that nobody waits for, nor an end of its socket. */
static bool nothing_is_left(void)
{
	return waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD &&
	       fake_nr_descriptors() == nr_before;
}

static int teardown(void **state)
{
	translator_close(*state);
	return nothing_is_left() ? 0 : -1;
}

#define TRANSLATOR(state)                                                                          \
	struct translator *t = *(state);                                                           \
	if (!t)                                                                                    \
	skip()

/* Those that follow are translated ahead, each once. */
static void the_block_and_its_successors(void **state)
{
	static const uint64_t at[] = { BASE, BASE + 14, BASE + 7, BASE + 19 };
	const struct vtrace_code *blocks;

	TRANSLATOR(state);
	assert_int_equal(translator_call(t, &request, loop, &blocks), 4);
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(blocks[i].block.pc, at[i]);
	assert_int_equal(blocks[0].block.nr_insns, 5);
	assert_int_equal(blocks[0].insns[4].class, VTRACE_CLASS_BRANCH);
	assert_int_equal(blocks[1].successors[0], BASE + 19 + 0x1000);
}

/* A daemon that was stopped meanwhile does not end a helper that answers. */
static void a_stopped_daemon_waits(void **state)
{
	const struct vtrace_code *blocks;
	pid_t same;

	TRANSLATOR(state);
	assert_int_equal(translator_call(t, &request, loop, &blocks), 4);
	same = translator_pid(t);
	stride_ns = 2 * PATIENCE_MS * 1000000ull;
	assert_int_equal(translator_call(t, &request, loop, &blocks), 1);
	stride_ns = 0;
	assert_int_equal(translator_pid(t), same);
}

/* A helper may take longer to start than a caller waits for an answer. */
static void a_slow_start(void **state)
{
	char dir[] = "/tmp/dcpi-translator-XXXXXX", path[64], real[4096];
	const struct vtrace_code *blocks;
	struct base_err err = { 0 };
	int r = -ETIMEDOUT;
	FILE *f;

	TRANSLATOR(state);
	translator_close(t);
	assert_non_null(realpath(fake_helper_dir(), real));
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/dcpid-translate", dir);
	f = fopen(path, "we");
	assert_non_null(f);
	fprintf(f, "#!/bin/sh\nsleep 0.1\nexec '%s/dcpid-translate'\n", real);
	assert_int_equal(fchmod(fileno(f), 0755), 0);
	fclose(f);
	assert_int_equal(translator_open(dir, &t, &err), 0);
	translator_set_patience(t, 2);
	assert_int_equal(translator_call(t, &request, loop, &blocks), -ETIMEDOUT);
	/* On a busy machine it may even take a second. */
	for (int i = 0; i < 10 && r < 0; i++)
		r = translator_ready(t);
	assert_int_equal(r, 0);
	assert_true(translator_pid(t) > 0);
	assert_int_equal(translator_ready(t), 0);
	translator_set_patience(t, PATIENCE_MS);
	assert_int_equal(translator_call(t, &request, loop, &blocks), 4);
	*state = t;
	unlink(path);
	rmdir(dir);
}

static const struct vtrace_code *ask(struct translator *t, struct translator_request q, uint64_t pc,
				     const uint8_t *code, int nr)
{
	const struct vtrace_code *blocks = NULL;

	q.pc = pc;
	assert_int_equal(translator_call(t, &q, code, &blocks), nr);
	assert_int_equal(blocks[0].block.pc, pc);
	return blocks;
}

/* Who asks for a block gets it, and of those behind it what was not told before. */
static void what_was_told(void **state)
{
	static uint8_t chain[64];
	struct translator_request q = request;
	const struct vtrace_code *blocks;

	TRANSLATOR(state);
	ask(t, q, BASE, loop, 4);
	ask(t, q, BASE, loop, 1);
	ask(t, q, BASE + 7, loop, 1);
	/* Blocks of a jump each to the next. */
	for (size_t i = 0; i < 40; i += 2)
		chain[i] = 0xeb;
	q.len = sizeof(chain);
	ask(t, q, BASE, chain, 1 + TRANSLATOR_DEPTH);
	blocks = ask(t, q, BASE + 8, chain, 1 + 4);
	assert_int_equal(blocks[1].block.pc, BASE + 2 + 2 * TRANSLATOR_DEPTH);
	assert_int_equal(blocks[4].block.pc, BASE + 8 + 2 * TRANSLATOR_DEPTH);
	ask(t, q, BASE + 8, chain, 1);
	ask(t, q, BASE, chain, 1);
}

static void the_end_of_what_is_there(void **state)
{
	struct translator_request q = request;
	const struct vtrace_code *blocks;

	TRANSLATOR(state);
	q.pc = BASE + sizeof(loop);
	assert_int_equal(translator_call(t, &q, loop, &blocks), -EINVAL);
	q.pc = BASE - 1;
	assert_int_equal(translator_call(t, &q, loop, &blocks), -EINVAL);
	q.pc = BASE;
	/* Less than it is found by. */
	q.len = VTRACE_PLACE_BYTES - 1;
	assert_int_equal(translator_call(t, &q, loop, &blocks), -EINVAL);
	q.len = VTRACE_PLACE_BYTES;
	assert_int_equal(translator_call(t, &q, loop, &blocks), 1);
	assert_int_equal(blocks[0].block.len, 2);
}

static void one_that_was_killed_is_replaced(void **state)
{
	const struct vtrace_code *blocks;
	pid_t first;

	TRANSLATOR(state);
	assert_int_equal(translator_call(t, &request, loop, &blocks), 4);
	first = translator_pid(t);
	assert_true(first > 0);
	assert_int_equal(kill(first, SIGKILL), 0);
	assert_int_equal(translator_call(t, &request, loop, &blocks), -DCPI_EHELPER);
	assert_int_equal(translator_pid(t), 0);
	assert_int_equal(translator_call(t, &request, loop, &blocks), 4);
}

/* It has no capability, is nobody, and cannot get more. */
static void it_is_jailed(void **state)
{
	const struct vtrace_code *blocks;
	char path[64], line[256];
	int seccomp = -1, found = 0;
	FILE *f;

	TRANSLATOR(state);
	assert_int_equal(translator_call(t, &request, loop, &blocks), 4);
	snprintf(path, sizeof(path), "/proc/%d/status", translator_pid(t));
	f = fopen(path, "re");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		unsigned long long caps;

		if (sscanf(line, "CapEff: %llx", &caps) == 1 ||
		    sscanf(line, "CapPrm: %llx", &caps) == 1) {
			assert_int_equal(caps, 0);
			found++;
		}
		sscanf(line, "Seccomp: %d", &seccomp);
	}
	fclose(f);
	assert_int_equal(found, 2);
	assert_int_equal(seccomp, 2);
}

/* One that talks nonsense is killed; so is one that ends. */
static void a_bad_helper(void **state)
{
	static const char *const scripts[] = { "#!/bin/sh\nexec cat /dev/zero >&0 2>/dev/null\n",
					       "#!/bin/sh\nexec cat >&0 2>/dev/null\n",
					       "#!/bin/sh\nexit 0\n" };
	char dir[] = "/tmp/dcpi-translator-XXXXXX", path[64];
	const struct vtrace_code *blocks;
	struct translator *t = NULL;
	struct base_err err = { 0 };

	(void)state;
	nr_before = fake_nr_descriptors();
	assert_non_null(mkdtemp(dir));
	snprintf(path, sizeof(path), "%s/dcpid-translate", dir);
	assert_int_equal(translator_open(dir, &t, &err), -ENOENT);
	for (size_t i = 0; i < sizeof(scripts) / sizeof(scripts[0]); i++) {
		FILE *f = fopen(path, "we");

		assert_non_null(f);
		fputs(scripts[i], f);
		assert_int_equal(fchmod(fileno(f), 0755), 0);
		fclose(f);
		assert_int_equal(translator_open(dir, &t, &err), 0);
		translator_set_patience(t, PATIENCE_MS);
		assert_int_equal(translator_call(t, &request, loop, &blocks), -DCPI_EHELPER);
		assert_int_equal(translator_pid(t), 0);
		assert_true(nothing_is_left());
		translator_close(t);
	}
	unlink(path);
	rmdir(dir);
}

/* ---- answers --------------------------------------------------------------------------------- */

struct answer {
	struct translator_answer head;
	struct vtrace_code blocks[2];
};

static int check(const struct answer *a, size_t len)
{
	const struct vtrace_code *blocks;

	return translator_check(&request, loop, a, len, &blocks);
}

static void answer_of_two(struct answer *a)
{
	struct vtrace_translator *t;

	memset(a, 0, sizeof(*a));
	assert_int_equal(vtrace_translator_open(VTRACE_X86_64, &t), 0);
	assert_int_equal(vtrace_translate(t, loop, sizeof(loop), BASE, &a->blocks[0]), 0);
	assert_int_equal(vtrace_translate(t, loop + 7, sizeof(loop) - 7, BASE + 7, &a->blocks[1]),
			 0);
	vtrace_translator_close(t);
	a->head.nr = 2;
}

static void answers_of_a_wrong_length(void **state)
{
	struct answer a;

	(void)state;
	answer_of_two(&a);
	assert_int_equal(check(&a, sizeof(a)), 2);
	assert_int_equal(check(&a, sizeof(a) - 1), -DCPI_EHELPER);
	assert_int_equal(check(&a, sizeof(a.head) - 1), -DCPI_EHELPER);
	assert_int_equal(check(&a, 0), -DCPI_EHELPER);
	a.head.nr = 0;
	assert_int_equal(check(&a, sizeof(a.head)), -DCPI_EHELPER);
	a.head.nr = 1;
	assert_int_equal(check(&a, sizeof(a)), -DCPI_EHELPER);
	a.head.nr = UINT32_MAX;
	assert_int_equal(check(&a, sizeof(a)), -DCPI_EHELPER);
}

/* @what of the second block is not what it has to be. */
#define HOSTILE(what)                                                                              \
	do {                                                                                       \
		struct answer a;                                                                   \
		struct vtrace_code *c = &a.blocks[1];                                              \
		answer_of_two(&a);                                                                 \
		what;                                                                              \
		assert_int_equal(check(&a, sizeof(a)), -DCPI_EHELPER);                             \
	} while (0)

static void hostile_blocks(void **state)
{
	(void)state;
	HOSTILE(c->block.pc--);
	HOSTILE(c->block.pc = BASE - 1);
	HOSTILE(c->block.pc = UINT64_MAX);
	HOSTILE(c->block.code[c->block.len] = 1);
	HOSTILE(c->place.where++);
	HOSTILE(c->place.code[1]++);
	HOSTILE(c->block.len = 0);
	HOSTILE(c->block.len = 255);
	HOSTILE(c->block.code[0] ^= 1);
	HOSTILE(c->block.nr_uops = 0);
	HOSTILE(c->block.nr_uops = UINT16_MAX);
	HOSTILE(c->block.nr_uops--);
	HOSTILE(c->block.nr_insns = 0);
	HOSTILE(c->block.nr_insns = 255);
	HOSTILE(c->block.nr_insns--);
	HOSTILE(c->uops[0].op = VTRACE_NR_OPS);
	HOSTILE(c->uops[0].w = 3);
	HOSTILE(c->uops[0].a = VTRACE_IMM);
	HOSTILE(c->uops[0].marks = 0x80);
	HOSTILE(c->uops[c->block.nr_uops - 1].marks = 0);
	HOSTILE(c->uops[0].marks ^= VTRACE_LAST);
	HOSTILE(c->uops[0].marks |= VTRACE_PC_RELATIVE);
	HOSTILE(c->insns[0].offset = 1);
	HOSTILE(c->insns[1].len = 0);
	HOSTILE(c->insns[1].len = 200);
	HOSTILE(c->insns[1].first = 255);
	HOSTILE(c->insns[2].class = VTRACE_NR_CLASSES);
	HOSTILE(c->nr_successors = 3);
	HOSTILE(a.blocks[0] = *c); /* the first one is what was asked for */
}

/* A helper of its own: it remembers. */
#define HELPER(test) cmocka_unit_test_setup_teardown(test, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		HELPER(the_block_and_its_successors),
		HELPER(a_stopped_daemon_waits),
		HELPER(a_slow_start),
		HELPER(what_was_told),
		HELPER(the_end_of_what_is_there),
		HELPER(one_that_was_killed_is_replaced),
		HELPER(it_is_jailed),
		cmocka_unit_test(a_bad_helper),
		cmocka_unit_test(answers_of_a_wrong_length),
		cmocka_unit_test(hostile_blocks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
