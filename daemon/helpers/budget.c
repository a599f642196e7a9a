/* SPDX-License-Identifier: BSD-2-Clause */
/* Each user's share of the loop's time and of shared tables is counted and refilled here. */
#include "budget.h"

#include <stdlib.h>

/*
 * A user's waiting processes may hold the loop for BURST_NS at once, and after that for a part of
 * the time. So everybody else is answered within half a second, and the kernel's rings, which are
 * read meanwhile, hold that long.
 */
#define BURST_NS 200000000
enum { PART = 20, LEAST_MS = 100 };
/*
 * The price of an answer, which costs nothing: many times what it takes on a quiet machine. Where
 * this process is woken late, waiting is not measured more finely (base_wait_readable).
 */
#define ANSWER_NS      20000000u
#define ANSWER_BYTE_NS 60u /* 16 MB in a second */
/* In one turn, whatever is done for a user, and for all of them once each has had something; more
 * of it waits for the next turn. */
#define TURN_NS	 100000000u
#define ALL_NS	 150000000u
#define AGAIN_NS (60 * 1000000000ull)

struct user {
	uint32_t uid;
	int64_t left_ns; /* of BURST_NS; below 0: a debt */
	uint64_t refilled_ns;
	uint64_t turn, turn_ns; /* taken in that turn */
	uint64_t nr_refused, announced_ns;
	uint64_t said_ns; /* budget_may_tell */
	uint64_t places[BUDGET_NR_PLACES];
};

struct budgets {
	struct base_map users;
	uint64_t turn;	 /* 0: the loop has not begun */
	uint64_t all_ns; /* taken in it, by all users */
	bool begun;	 /* budget_begin */
	uint64_t places[BUDGET_NR_PLACES];
	struct budget_stats stats;
};

struct budgets *budgets_new(void)
{
	return calloc(1, sizeof(struct budgets));
}

void budgets_free(struct budgets *b)
{
	void *user;

	if (!b)
		return;
	for (size_t pos = 0; base_map_next(&b->users, &pos, &user);)
		free(user);
	base_map_release(&b->users);
	free(b);
}

static struct user *find(const struct budgets *b, uint32_t uid)
{
	return b ? base_map_get(&b->users, &uid, sizeof(uid)) : NULL;
}

/* NULL: no memory, and nothing is refused. */
static struct user *user_of(struct budgets *b, uint32_t uid)
{
	struct user *u = find(b, uid);

	if (u || !b)
		return u;
	u = calloc(1, sizeof(*u));
	if (!u)
		return NULL;
	*u = (struct user){ .uid = uid, .left_ns = BURST_NS, .refilled_ns = base_now_ns() };
	if (base_map_set(&b->users, &u->uid, sizeof(u->uid), u) == 0)
		return u;
	free(u);
	return NULL;
}

/* ---- time ------------------------------------------------------------------------------------ */

static void refill(struct user *u)
{
	uint64_t now = base_now_ns();

	u->left_ns += (int64_t)((now - u->refilled_ns) / PART);
	u->left_ns = u->left_ns < BURST_NS ? u->left_ns : BURST_NS;
	u->refilled_ns = now;
}

static void refuse(struct budgets *b, struct user *u)
{
	b->stats.requests_refused++;
	b->stats.users_over += !u->nr_refused++;
	if (u->announced_ns && u->refilled_ns - u->announced_ns < AGAIN_NS)
		return;
	u->announced_ns = u->refilled_ns;
	base_log(BASE_LOG_WARN,
		 "user %u has taken its share of the daemon's time: its processes and files are "
		 "read later",
		 u->uid);
}

unsigned int budget_wait_ms(struct budgets *b, uint32_t uid)
{
	struct user *u = user_of(b, uid);
	unsigned int ms;

	if (!u)
		return BURST_NS / 1000000;
	refill(u);
	if (u->left_ns <= 0) {
		refuse(b, u);
		return 0;
	}
	ms = (unsigned int)(u->left_ns / 1000000);
	return ms > LEAST_MS ? ms : LEAST_MS;
}

static uint64_t turn_left_ns(const struct budgets *b, const struct user *u)
{
	if (!b->turn || u->turn != b->turn)
		return TURN_NS;
	return u->turn_ns < TURN_NS ? TURN_NS - u->turn_ns : 0;
}

static void take_turn(struct budgets *b, struct user *u, uint64_t ns)
{
	if (!b->turn)
		return;
	b->all_ns += ns;
	u->turn_ns = u->turn == b->turn ? u->turn_ns + ns : ns;
	u->turn = b->turn;
}

void budget_waited(struct budgets *b, uint32_t uid, uint64_t ns, uint64_t busy_ns, uint64_t bytes)
{
	uint64_t price = ANSWER_NS + bytes * ANSWER_BYTE_NS, left;
	struct user *u = user_of(b, uid);

	if (!u)
		return;
	left = turn_left_ns(b, u);
	price = price > busy_ns ? price : busy_ns;
	price = price < left ? price : left;
	if (ns > price)
		u->left_ns -= (int64_t)(ns - price);
	if (!b->begun)
		take_turn(b, u, ns);
}

void budget_turn(struct budgets *b)
{
	if (!b)
		return;
	b->turn++;
	b->all_ns = 0;
}

bool budget_has_turn(const struct budgets *b, uint32_t uid)
{
	const struct user *u = find(b, uid);

	/* However many there are, each is served in each turn. */
	if (!u || !b->turn || u->turn != b->turn)
		return true;
	return turn_left_ns(b, u) > 0 && b->all_ns < ALL_NS;
}

uint64_t budget_begin(struct budgets *b)
{
	if (b)
		b->begun = true;
	return base_now_ns();
}

void budget_end(struct budgets *b, uint32_t uid, uint64_t since_ns)
{
	struct user *u = user_of(b, uid);

	if (!b)
		return;
	b->begun = false;
	if (u)
		take_turn(b, u, base_now_ns() - since_ns);
}

/* ---- places ---------------------------------------------------------------------------------- */

bool budget_take(struct budgets *b, uint32_t uid, enum budget_place place, uint64_t n, uint64_t max)
{
	struct user *u = user_of(b, uid);
	uint64_t others, has;

	if (!u)
		return true;
	has = u->places[place];
	others = b->places[place] - has;
	if (others >= max || has > (max - others) / 2 || n > (max - others) / 2 - has)
		return false;
	u->places[place] += n;
	b->places[place] += n;
	return true;
}

void budget_give_back(struct budgets *b, uint32_t uid, enum budget_place place, uint64_t n)
{
	struct user *u = find(b, uid);

	if (!u)
		return;
	u->places[place] -= n;
	b->places[place] -= n;
}

uint64_t budget_has(const struct budgets *b, uint32_t uid, enum budget_place place)
{
	const struct user *u = find(b, uid);

	return u ? u->places[place] : 0;
}

void budget_clear(struct budgets *b, enum budget_place place)
{
	void *user;

	for (size_t pos = 0; b && base_map_next(&b->users, &pos, &user);)
		((struct user *)user)->places[place] = 0;
	if (b)
		b->places[place] = 0;
}

bool budget_may_tell(struct budgets *b, uint32_t uid)
{
	struct user *u = user_of(b, uid);
	uint64_t now = base_now_ns();

	if (u && u->said_ns && now - u->said_ns < AGAIN_NS)
		return false;
	if (u)
		u->said_ns = now;
	return true;
}

void budget_stats_get(const struct budgets *b, struct budget_stats *out)
{
	*out = b ? b->stats : (struct budget_stats){ 0 };
}
