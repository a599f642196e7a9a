/* SPDX-License-Identifier: BSD-2-Clause */
/* Whose turn it is, and how long the periods are: arithmetic over times that the caller tells. */
#include "perf_internal.h"

/*
 * New periods once a second. A daemon's clock of a second is a little early now and then; without
 * any clock a draw is due half a second late.
 */
#define DRAW_LEAST_NS 900000000u
#define DRAW_MOST_NS  1500000000u

void perf_turn_start(struct perf_turn *t, uint64_t now_ns)
{
	t->slot = 0;
	t->slot_since = t->drawn_since = now_ns;
}

bool perf_turn_rotate(struct perf_turn *t, uint64_t now_ns)
{
	if (t->nr_slots < 2 || now_ns < t->slot_since + t->slot_ns)
		return false;
	t->slot = (t->slot + 1) % t->nr_slots;
	t->slot_since = now_ns;
	return true;
}

bool perf_turn_draw(struct perf_turn *t, uint64_t now_ns)
{
	if (!t->draws || now_ns < t->drawn_since + DRAW_LEAST_NS)
		return false;
	t->drawn_since = now_ns;
	return true;
}

uint64_t perf_turn_next_ns(const struct perf_turn *t)
{
	if (t->nr_slots > 1)
		return t->slot_since + t->slot_ns;
	return t->draws ? t->drawn_since + DRAW_MOST_NS : 0;
}

/* AMD's IBS takes multiples of 16 alone. */
static uint64_t unit(uint64_t nominal)
{
	return nominal % 16 ? 1 : 16;
}

/* A hundredth, or a little more. */
static uint64_t nearest(uint64_t nominal)
{
	uint64_t least = nominal / 100 + (nominal % 100 != 0), u = unit(nominal);

	return (least + u - 1) / u * u;
}

static uint64_t farthest(uint64_t nominal)
{
	return nominal / 25 / unit(nominal) * unit(nominal);
}

static bool has_room(uint64_t nominal)
{
	return nominal && farthest(nominal) >= nearest(nominal);
}

static bool only_longer(uint64_t nominal, uint64_t least)
{
	return nominal - farthest(nominal) < least;
}

uint64_t perf_period_draw(uint64_t nominal, uint64_t least, uint64_t *random)
{
	uint64_t near = nearest(nominal), far = farthest(nominal), u = unit(nominal);
	uint64_t r = base_random64(random), off;

	if (!has_room(nominal))
		return nominal;
	off = near + (r >> 1) % ((far - near) / u + 1) * u;
	return r & 1 || only_longer(nominal, least) ? nominal + off : nominal - off;
}

uint64_t perf_period_mean(uint64_t nominal, uint64_t least)
{
	if (!has_room(nominal) || !only_longer(nominal, least))
		return nominal;
	return nominal + (nearest(nominal) + farthest(nominal)) / 2;
}
