/* SPDX-License-Identifier: BSD-2-Clause */
/* Waiting until the daemon has what was registered on disk. */
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

/* A daemon has met the request: it will answer, however long that takes. */
static bool is_met(const struct dbgdyn_state *s, uint32_t want)
{
	uint32_t seen = __atomic_load_n(&s->reg->flush_seen, __ATOMIC_ACQUIRE);

	return seen && (int32_t)(seen - want) >= 0;
}

/*
 * Wait for the answer to @want. A daemon listens, or has met the request: as long as the caller
 * allows. One has attached, but is out of sight, and may have been killed since: so long as it
 * would take to meet it. There is only a queue, perhaps left behind by one that was killed: one
 * second for its reader to attach. Its socket refuses, or there is nothing: not at all.
 */
static int wait_answer(struct dbgdyn_state *s, uint32_t want, uint64_t timeout_ns, bool queue)
{
	uint64_t start = now_ns(), probed = 0, nap = DBGDYN_POLL_MIN_NS;
	enum dbgdyn_reach reach = DBGDYN_ABSENT;
	int result;

	while (!answered(s, want, &result)) {
		uint64_t now = now_ns(), grace_ms = queue ? DBGDYN_ATTACH_MS : 0;

		if (!probed || now - probed >= DBGDYN_REPROBE_MS * 1000000ull) {
			reach = dbgdyn_hand_over(s);
			probed = now;
		}
		bool attached = dbgdyn_attached(s), known = reach == DBGDYN_LIVE || is_met(s, want);

		if (attached)
			grace_ms = DBGDYN_SEEN_MS;
		if (reach == DBGDYN_REFUSED || (!known && now - start >= grace_ms * 1000000))
			return DBGDYN_ENODAEMON;
		if (now - start >= timeout_ns)
			return known || attached ? DBGDYN_ETIMEDOUT : DBGDYN_ENODAEMON;
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
