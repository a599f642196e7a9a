/* SPDX-License-Identifier: BSD-2-Clause */
/* Where clients stand, and that whoever looks finds them there: no kernel is needed for that. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "bpf_program.h"

static struct sample__bss bss;
static struct sample object = { .bss = &bss };
static struct bpf_programs p = { .objects = { &object }, .pins_fd = -1 };

/* What asks whether a process is there yet: 0, or the error of that. */
static int kill_error;

int __wrap_kill(int pid, int sig);

int __wrap_kill(int pid, int sig)
{
	assert_true(pid > 0 && sig == 0);
	errno = kill_error;
	return kill_error ? -1 : 0;
}

/* As if its programs were attached. */
static int set(uint32_t tgid, const struct driver_client *client)
{
	p.on_exec = p.on_exit = p.on_fork = (void *)-1;
	return bpf_clients_set(&p, (int32_t)tgid, client);
}

/* Whom a sample of @tgid meets, looking as the program does. */
static struct sample_client *look(uint32_t tgid)
{
	uint32_t at = sample_slot(tgid);

	for (int i = 0; i < SAMPLE_NR_PROBES; i++, at++) {
		struct sample_client *c = &bss.clients[at % SAMPLE_NR_SLOTS];

		if (c->tgid == tgid)
			return c;
		if (!c->tgid)
			return NULL;
	}
	return NULL;
}

static bool stands(void *ctx)
{
	(void)ctx;
	return true;
}

/* A client of one range at @at, with words of that number: so that each is told from all others. */
static int set_at(uint32_t tgid, uint64_t at)
{
	const struct driver_range range = { at, at + 8, DRIVER_RANGE_WORDS };
	const struct driver_client c = {
		.ranges = &range, .nr_ranges = 1, .words = at, .nr_words = 1, .stands = stands
	};

	return set(tgid, &c);
}

enum { NR_MEMBERS = 90 };

/* @at 0: no client. */
static struct {
	uint32_t tgid;
	uint64_t at;
} members[NR_MEMBERS];

/* Of those that begin to look in [low, high). */
static size_t take_members(size_t nr, size_t end, uint32_t low, uint32_t high)
{
	for (uint32_t tgid = 1; nr < end; tgid++) {
		uint32_t slot = sample_slot(tgid);

		if (slot >= low && slot < high)
			members[nr++].tgid = tgid;
	}
	return nr;
}

static void check_members(void)
{
	for (size_t i = 0; i < NR_MEMBERS; i++) {
		const struct sample_client *c = look(members[i].tgid);
		uint64_t at = members[i].at;

		if (!at) {
			assert_null(c);
			continue;
		}
		assert_non_null(c);
		assert_true(c->words == at && c->start == at && c->end == at + 8 && c->nr == 1);
		assert_true(bss.ranges[c->ranges].items[0].start == at);
	}
}

/* Only where somebody lives in each place that it could have. */
static void check_refused(uint32_t tgid)
{
	assert_null(look(tgid));
	for (uint32_t i = 0; i < SAMPLE_NR_PROBES; i++) {
		uint32_t of = bss.clients[(sample_slot(tgid) + i) % SAMPLE_NR_SLOTS].tgid;

		assert_true(of && of != SAMPLE_GONE);
	}
}

static uint32_t next_random(void)
{
	static uint64_t state = 1;

	state = state * 6364136223846793005u + 1442695040888963407u;
	return (uint32_t)(state >> 33);
}

/* They come, change, are dropped by us, and end, which the program sees: nobody stands in another's
 * place or cannot be found, and nothing stays. */
static void crowds_do_not_mix(void **state)
{
	size_t nr = take_members(0, 30, SAMPLE_NR_SLOTS - 8, SAMPLE_NR_SLOTS);
	size_t refused = 0;

	(void)state;
	nr = take_members(nr, 60, 0, 20);
	take_members(nr, NR_MEMBERS, 1000, 1001);
	for (uint32_t turn = 1; turn < 4000; turn++) {
		size_t i = next_random() % NR_MEMBERS;
		uint32_t tgid = members[i].tgid, what = next_random() % 8;

		if (what < 5 && set_at(tgid, turn * 8u) == 0) {
			members[i].at = turn * 8u;
		} else if (what < 5) {
			check_refused(tgid);
			refused++;
		} else if (what < 7) {
			assert_int_equal(set(tgid, NULL), 0);
			members[i].at = 0;
		} else if (members[i].at) {
			look(tgid)->tgid = SAMPLE_GONE;
			members[i].at = 0;
		}
		check_members();
	}
	assert_true(refused > 0);
	for (size_t i = 0; i < NR_MEMBERS; i++)
		assert_int_equal(set(members[i].tgid, NULL), 0);
	bpf_clients_sweep(&p);
	assert_int_equal(bss.shared.nr_clients, 0);
	for (size_t i = 0; i < SAMPLE_NR_SLOTS; i++)
		assert_int_equal(bss.clients[i].tgid, 0);
	bpf_clients_close(&p);
}

/* Who ended before its exit was watched for would stand there for good, and for the next of that
 * number. */
static void who_has_ended_is_no_client(void **state)
{
	(void)state;
	kill_error = EPERM; /* it lives, in a place where we may do nothing to it */
	assert_int_equal(set_at(7, 8), 0);
	kill_error = ESRCH;
	assert_int_equal(set_at(8, 16), 0);
	kill_error = 0;
	assert_non_null(look(7));
	assert_null(look(8));
	assert_int_equal(bss.shared.nr_clients, 1);
	assert_int_equal(set(7, NULL), 0);
	bpf_clients_close(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(crowds_do_not_mix),
		cmocka_unit_test(who_has_ended_is_no_client),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
