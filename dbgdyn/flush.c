/* SPDX-License-Identifier: BSD-2-Clause */
#include "dbgdyn_internal.h"

#include <time.h>

static uint64_t now_ns(void)
{
	struct timespec now = { 0 };

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Ask for a flush; the number of the request, or 0 where the context was ended meanwhile. */
static uint32_t request(struct dbgdyn_state *s, uint32_t index, bool end)
{
	struct wire_facility *f = &s->facilities[index];
	uint32_t want;

	if (!s->open[index])
		return 0;
	want = s->flush_wanted + 1 ? s->flush_wanted + 1 : 1;
	s->flush_wanted = want;
	if (end) {
		__atomic_store_n(&s->open[index], 0, __ATOMIC_RELEASE);
		f->end_wanted = want;
		__atomic_store_n(&f->state, WIRE_FACILITY_ENDED, __ATOMIC_RELEASE);
	}
	__atomic_store_n(&s->reg->flush_wanted, want, __ATOMIC_RELEASE);
	return want;
}

static bool answered(const struct dbgdyn_state *s, uint32_t want, int *result)
{
	uint32_t done = __atomic_load_n(&s->reg->flush_done, __ATOMIC_ACQUIRE);

	/* 0 is no answer yet, so that the first request is not taken for one long past. */
	if (!done || (int32_t)(done - want) < 0)
		return false;
	*result = __atomic_load_n(&s->reg->flush_status, __ATOMIC_ACQUIRE) ? DBGDYN_EIO : DBGDYN_OK;
	return true;
}

/*
 * Wait for the answer to @want. Three cases: a daemon listens or has attached: as long as the
 * caller allows; there is only a queue, perhaps left behind by a daemon that was killed: one second
 * for its reader to attach; its socket refuses, or there is nothing: not at all.
 */
static int wait_answer(struct dbgdyn_state *s, uint32_t want, uint64_t timeout_ns, bool queue)
{
	uint64_t start = now_ns(), probed = 0, attach_ns = DBGDYN_ATTACH_MS * 1000000ull;
	uint64_t nap = DBGDYN_POLL_MIN_NS;
	enum dbgdyn_reach reach = DBGDYN_ABSENT;
	int result;

	while (!answered(s, want, &result)) {
		uint64_t now = now_ns();

		if (!probed || now - probed >= DBGDYN_REPROBE_MS * 1000000ull) {
			reach = dbgdyn_hand_over(s);
			probed = now;
		}
		bool known = reach == DBGDYN_LIVE || dbgdyn_attached(s);

		if (reach == DBGDYN_REFUSED || (!known && !queue))
			return DBGDYN_ENODAEMON;
		if (now - start >= timeout_ns || (!known && now - start >= attach_ns))
			return known ? DBGDYN_ETIMEDOUT : DBGDYN_ENODAEMON;
		nanosleep(&(struct timespec){ .tv_nsec = (long)nap }, NULL);
		nap = nap * 3 / 2 < DBGDYN_POLL_MAX_NS ? nap * 3 / 2 : DBGDYN_POLL_MAX_NS;
	}
	return result;
}

int dbgdyn_flush_wait(struct dbgdyn_state *s, uint32_t index, bool end)
{
	uint32_t want = 0;
	bool locked = dbgdyn_lock(s);

	if (locked) {
		want = request(s, index, end);
		dbgdyn_unlock(s);
	} else if (end) {
		__atomic_store_n(&s->open[index], 0, __ATOMIC_RELEASE);
		__atomic_store_n(&s->facilities[index].state, WIRE_FACILITY_ENDED,
				 __ATOMIC_RELEASE);
	}
	if (!locked)
		return DBGDYN_ETIMEDOUT;
	if (!want)
		return DBGDYN_EREFUSED;
	if (s->quiet[index])
		return DBGDYN_EINPROGRESS;
	return wait_answer(s, want, s->timeout_ms[index] * 1000000ull, dbgdyn_doorbell(s));
}
