/* SPDX-License-Identifier: BSD-2-Clause */
/* Lives of processes have numbers, and share their names with those that are equal; threads have
 * numbers by their names. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "workload_internal.h"

/* ---- each user's share of names -------------------------------------------------------------- */

/* Names that come again after a sweep are no new ones. */
static bool is_known(const struct workloads *w, uint64_t hash)
{
	return base_map_get(&w->taken, &hash, sizeof(hash)) != NULL;
}

static bool take(struct workloads *w, uint32_t uid, size_t len)
{
	if (!budget_take(w->shares, uid, BUDGET_WORKLOADS, 1, WORKLOAD_NR_NAMES))
		return false;
	if (budget_take(w->shares, uid, BUDGET_WORKLOAD_TEXTS, len, WORKLOAD_TEXT_MAX))
		return true;
	budget_give_back(w->shares, uid, BUDGET_WORKLOADS, 1);
	return false;
}

static void tell(struct workloads *w, uint32_t uid)
{
	char who[32] = "unknown users";

	if (!budget_may_tell(w->shares, uid))
		return;
	if (uid != WORKLOAD_NO_UID)
		snprintf(who, sizeof(who), "user %u", uid);
	base_log(BASE_LOG_WARN,
		 "the share of %s of the names of workloads is used up: further ones of this epoch "
		 "have none",
		 who);
}

/* @uid has new names, whose key is @key. False: that is beyond the user's share of the epoch. */
static bool workload_share_take(struct workloads *w, uint32_t uid, const struct base_buf *key)
{
	uint64_t hash = base_hash64_seeded(w->seed, key->data, key->len);

	if (is_known(w, hash))
		return true;
	if (!take(w, uid, key->len)) {
		tell(w, uid);
		return false;
	}
	/* Without memory it is taken again when it comes again. */
	(void)base_map_set(&w->taken, &hash, sizeof(hash), w);
	return true;
}

/* @uid has new names, whose key is @key. False: that is beyond the user's share of the epoch. */
static void workload_shares_forget(struct workloads *w)
{
	base_map_release(&w->taken);
	budget_clear(w->shares, BUDGET_WORKLOADS);
	budget_clear(w->shares, BUDGET_WORKLOAD_TEXTS);
}

/* ---- names of threads ------------------------------------------------------------------------ */

/* Names of threads have numbers that outlive the driver's, as counts may wait over an epoch's end.
 */

static uint32_t add(struct workloads *w, const char *name, size_t len)
{
	uint32_t number = (uint32_t)w->nr_threads;

	if (w->nr_threads > WORKLOAD_NR_THREADS ||
	    base_grow(&w->threads, &w->cap_threads, w->nr_threads + 1, sizeof(*w->threads)) < 0 ||
	    base_map_set(&w->by_thread, name, len, (void *)(uintptr_t)number) < 0)
		return 0;
	memset(w->threads[number], 0, sizeof(*w->threads));
	memcpy(w->threads[number], name, len);
	w->nr_threads++;
	return number;
}

static uint32_t number_of(struct workloads *w, const char *name)
{
	size_t len = strnlen(name, WORKLOAD_THREAD_LEN - 1);
	uintptr_t number = len ? (uintptr_t)base_map_get(&w->by_thread, name, len) : 0;

	return number || !len ? (uint32_t)number : add(w, name, len);
}

uint32_t workload_thread(struct workloads *w, uint32_t thread,
			 const char *(*name)(const void *ctx, uint32_t thread), const void *ctx)
{
	uint32_t number;

	if (!thread)
		return 0;
	if (thread < w->nr_of_driver && w->of_driver[thread])
		return w->of_driver[thread] - 1;
	number = number_of(w, name(ctx, thread));
	if (base_grow(&w->of_driver, &w->cap_of_driver, (size_t)thread + 1, sizeof(*w->of_driver)) <
	    0)
		return number;
	for (; w->nr_of_driver <= thread; w->nr_of_driver++)
		w->of_driver[w->nr_of_driver] = 0;
	w->of_driver[thread] = number + 1;
	return number;
}

const char *workload_thread_name(const struct workloads *w, uint32_t number)
{
	return number < w->nr_threads ? w->threads[number] : "";
}

/* The driver's numbers are no more; where there are many names they are not either: true. */
static bool workload_threads_forget(struct workloads *w)
{
	w->nr_of_driver = 0;
	if (w->nr_threads <= WORKLOAD_NR_THREADS / 2)
		return false;
	for (struct workload_table *t = w->tables; t; t = t->next)
		for (size_t i = 0; i < t->cap; i++)
			t->places[i].thread = 0;
	base_map_release(&w->by_thread);
	w->nr_threads = 1;
	return true;
}

enum { NR_TEXTS = 4, NR_FIXED = WORKLOAD_IDLE + 1 };

/* ---- names ----------------------------------------------------------------------------------- */

const char *workload_text(const struct workload_names *n, unsigned int index)
{
	const char *text = n->text;

	while (index--)
		text += strlen(text) + 1;
	return text;
}

static int add_text(struct base_buf *key, const char *text)
{
	int r = text ? base_buf_append(key, text, strnlen(text, PROFDB_WORKLOAD_NAME)) : 0;

	return r < 0 ? r : base_buf_append(key, "", 1);
}

/* The texts, and the uid behind them; @key is of no use any more when another one is made. */
static int make_key(struct base_buf *key, const struct workload_who *who)
{
	const char *const texts[NR_TEXTS] = { who->comm, who->exe, who->cgroup, who->label };
	int r = 0;

	base_buf_clear(key);
	for (size_t i = 0; r >= 0 && i < NR_TEXTS; i++)
		r = add_text(key, texts[i]);
	return r < 0 ? r : base_buf_append(key, &who->uid, sizeof(who->uid));
}

static int64_t new_names(struct workloads *w)
{
	if (w->nr_free_names)
		return w->free_names[--w->nr_free_names];
	if (base_grow(&w->names, &w->cap_names, w->nr_names + 1, sizeof(*w->names)) < 0 ||
	    base_grow(&w->free_names, &w->cap_free_names, w->nr_names + 1, sizeof(*w->free_names)) <
		    0)
		return -ENOMEM;
	return (int64_t)w->nr_names++;
}

static void free_names(struct workloads *w, uint32_t index)
{
	struct workload_names *n = &w->names[index];

	w->text_len -= n->len;
	free(n->text);
	*n = (struct workload_names){ 0 };
	w->free_names[w->nr_free_names++] = index;
}

static int64_t add_names(struct workloads *w, const struct base_buf *key, uint32_t uid)
{
	int64_t index = key->len > WORKLOAD_TEXT_MAX - w->text_len ? -ENOMEM : new_names(w);
	struct workload_names *n;

	if (index < 0)
		return index;
	n = &w->names[index];
	*n = (struct workload_names){ .text = malloc(key->len), .len = key->len, .uid = uid };
	w->text_len += n->len;
	if (!n->text ||
	    base_map_set(&w->by_names, key->data, key->len, (void *)(uintptr_t)(index + 1)) < 0) {
		free_names(w, (uint32_t)index);
		return -ENOMEM;
	}
	memcpy(n->text, key->data, key->len);
	return index;
}

/* -1: there are none with that key. */
static int64_t find_names(const struct workloads *w, const struct base_buf *key)
{
	return (int64_t)(uintptr_t)base_map_get(&w->by_names, key->data, key->len) - 1;
}

/* Processes beyond their user's share have the user's number, and no names. */
static int64_t names_of_user(struct workloads *w, uint32_t uid)
{
	int64_t index = make_key(&w->key, &(struct workload_who){ .uid = uid });

	if (index < 0)
		return index;
	index = find_names(w, &w->key);
	return index < 0 ? add_names(w, &w->key, uid) : index;
}

static int64_t add_within_share(struct workloads *w, uint32_t uid)
{
	return workload_share_take(w, uid, &w->key) ? add_names(w, &w->key, uid)
						    : names_of_user(w, uid);
}

/* The index of names equal to those of @who, or negative. */
static int64_t names_of(struct workloads *w, const struct workload_who *who)
{
	int64_t index = make_key(&w->key, who);

	if (index < 0)
		return index;
	index = find_names(w, &w->key);
	return index < 0 ? add_within_share(w, who->uid) : index;
}

/* ---- lives ----------------------------------------------------------------------------------- */

static uint32_t new_life(struct workloads *w, int64_t names, int32_t pid)
{
	uint32_t number;

	if (names < 0)
		return WORKLOAD_NOBODY;
	if (w->nr_free_lives) {
		number = w->free_lives[--w->nr_free_lives];
	} else {
		if (base_grow(&w->lives, &w->cap_lives, w->nr_lives + 1, sizeof(*w->lives)) < 0 ||
		    base_grow(&w->free_lives, &w->cap_free_lives, w->nr_lives + 1,
			      sizeof(*w->free_lives)) < 0)
			return WORKLOAD_NOBODY;
		number = (uint32_t)w->nr_lives++;
	}
	w->lives[number] = (struct workload_one){
		.names = (uint32_t)names, .pid = pid, .processes = pid != 0, .taken = true
	};
	return number;
}

uint32_t workload_group_of(struct workloads *w, int64_t names)
{
	if (names < 0)
		return WORKLOAD_NOBODY;
	if (!w->names[names].life) {
		uint32_t number = new_life(w, names, 0);

		if (number == WORKLOAD_NOBODY)
			return number;
		w->names[names].life = number;
	}
	return w->names[names].life;
}

uint32_t workload_group(struct workloads *w, const struct workload_who *who)
{
	return workload_group_of(w, names_of(w, who));
}

uint32_t workload_life(struct workloads *w, const struct workload_who *who)
{
	int64_t names = names_of(w, who);
	uint32_t number;

	if (!who->brief && w->nr_lives - w->nr_free_lives < WORKLOAD_NR_LIVES)
		return new_life(w, names, who->pid);
	number = workload_group_of(w, names);
	w->lives[number].processes++;
	return number;
}

uint32_t workload_life_change(struct workloads *w, uint32_t number, const struct workload_who *who)
{
	struct workload_one *one = &w->lives[number];
	int64_t names;

	if (!one->pid) {
		one->processes -= one->processes > one->telling;
		return workload_life(w, who);
	}
	names = names_of(w, who);
	if (names < 0 || (uint32_t)names == one->names)
		return number;
	/* It is a process of others now, also where it was one of the old ones. */
	one->names = (uint32_t)names;
	one->processes = 1;
	return who->brief ? workload_group_of(w, names) : number;
}

bool workload_is_group(const struct workloads *w, uint32_t number)
{
	return number < w->nr_lives && !w->lives[number].pid;
}

struct profdb_workload workload_describe(const struct workloads *w, uint32_t number,
					 uint32_t thread)
{
	const struct workload_one *one =
		&w->lives[number && number < w->nr_lives ? number : WORKLOAD_NOBODY];
	const struct workload_names *n = &w->names[one->names];

	return (struct profdb_workload){ .comm = workload_text(n, 0),
					 .exe = workload_text(n, 1),
					 .cgroup = workload_text(n, 2),
					 .label = workload_text(n, 3),
					 .thread = workload_thread_name(w, thread),
					 .uid = n->uid,
					 .pid = one->pid,
					 .processes = one->pid != 0 };
}

/* ---- their ends ------------------------------------------------------------------------------ */

void workload_mark(struct workloads *w, uint32_t number)
{
	if (number < w->nr_lives)
		w->lives[number].used = true;
}

static void mark_counts(struct workloads *w)
{
	for (const struct workload_table *t = w->tables; t; t = t->next)
		for (size_t i = 0; i < t->cap; i++)
			if (t->places[i].n)
				workload_mark(w, t->places[i].life);
}

/* One that stands for many has a use while it has processes to tell of. */
static void sweep_lives(struct workloads *w)
{
	for (uint32_t i = 1; i < w->nr_lives; i++) {
		struct workload_one *one = &w->lives[i];
		struct workload_names *n = &w->names[one->names];

		if (!one->taken)
			continue;
		if (one->used || i < NR_FIXED || (!one->pid && one->processes)) {
			n->used = true;
			one->used = false;
			continue;
		}
		if (n->life == i)
			n->life = 0;
		*one = (struct workload_one){ 0 };
		w->free_lives[w->nr_free_lives++] = i;
	}
}

static void sweep_names(struct workloads *w)
{
	for (uint32_t i = 0; i < w->nr_names; i++) {
		struct workload_names *n = &w->names[i];

		if (n->text && !n->used) {
			base_map_del(&w->by_names, n->text, n->len);
			free_names(w, i);
		}
		n->used = false;
	}
}

void workload_sweep(struct workloads *w)
{
	w->full_minute = 0;
	mark_counts(w);
	sweep_lives(w);
	sweep_names(w);
}

/* ---- all of them ----------------------------------------------------------------------------- */

bool workload_new_epoch(struct workloads *w)
{
	for (size_t i = 1; i < w->nr_lives; i++) {
		struct workload_one *one = &w->lives[i];

		one->samples = one->ns = 0;
		one->apart = false;
		one->processes = one->pid ? 1 : one->processes;
	}
	w->samples = w->ns = w->nr_apart = w->nr_apart_ns = w->joined = 0;
	w->level = WORKLOAD_ALL;
	workload_shares_forget(w);
	return workload_threads_forget(w);
}

static int add_fixed(struct workloads *w)
{
	static const struct workload_who fixed[] = { { .uid = WORKLOAD_NO_UID },
						     { .comm = "(idle)", .uid = WORKLOAD_NO_UID } };

	w->nr_lives = 1;
	for (uint32_t i = 0; i < sizeof(fixed) / sizeof(*fixed); i++) {
		int64_t names = names_of(w, &fixed[i]);

		if (names < 0 || new_life(w, names, 0) != WORKLOAD_NOBODY + i)
			return -ENOMEM;
		w->names[names].life = WORKLOAD_NOBODY + i;
	}
	return 0;
}

struct workloads *workloads_new(void)
{
	struct workloads *w = calloc(1, sizeof(*w));

	if (!w)
		return NULL;
	w->seed = base_hash_seed();
	w->shares = budgets_new();
	if (w->shares && base_grow(&w->lives, &w->cap_lives, NR_FIXED, sizeof(*w->lives)) == 0 &&
	    base_grow(&w->threads, &w->cap_threads, 1, sizeof(*w->threads)) == 0) {
		w->lives[0] = (struct workload_one){ 0 };
		memset(w->threads[0], 0, sizeof(*w->threads));
		w->nr_threads = 1;
		if (add_fixed(w) == 0)
			return w;
	}
	workloads_free(w);
	return NULL;
}

void workloads_set_timed(struct workloads *w, uint32_t first)
{
	w->first_timed = first;
}

void workloads_free(struct workloads *w)
{
	if (!w)
		return;
	for (size_t i = 0; i < w->nr_names; i++)
		free(w->names[i].text);
	base_map_release(&w->by_names);
	base_map_release(&w->by_thread);
	base_map_release(&w->taken);
	base_buf_release(&w->key);
	budgets_free(w->shares);
	free(w->names);
	free(w->free_names);
	free(w->lives);
	free(w->free_lives);
	free(w->threads);
	free(w->of_driver);
	free(w->notes);
	free(w);
}
