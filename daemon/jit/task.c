/* SPDX-License-Identifier: BSD-2-Clause */
/* Files that take long to write are written in threads, while the loop does other things. */
#include "jit_internal.h"

/* So many at a time; of them a user may have half of what the others leave, but a few at most. */
enum { TASKS_MAX = 12, TASKS_OF_USER = 4 };
/* Calls in haste wait for ends for so long: most take a fifth of that; and for none longer. */
#define GRACE_NS 50000000u

bool dyn_task_begin(struct dyn *d, struct dyn_task *t, uint32_t uid, int (*fn)(void *arg),
		    void *arg)
{
	*t = (struct dyn_task){ .next = d->tasks, .uid = uid, .begun_ns = base_now_ns() };
	t->task = image_task_begin(&d->helper, d->wake_fd, fn, arg);
	if (!t->task)
		return false;
	d->tasks = t;
	return true;
}

bool dyn_task_is_done(const struct dyn *d, const struct dyn_task *t)
{
	return !d->hasty || image_task_is_done(t->task, 0);
}

int dyn_task_end(struct dyn *d, struct dyn_task *t)
{
	struct dyn_task **at = &d->tasks;

	while (*at != t)
		at = &(*at)->next;
	*at = t->next;
	return image_task_end(t->task);
}

void dyn_tasks_grace(struct dyn *d)
{
	d->grace_until_ns = base_now_ns() + GRACE_NS;
}

static unsigned int grace_ms(const struct dyn *d, const struct dyn_task *t)
{
	uint64_t now = base_now_ns(), until = t->begun_ns + GRACE_NS;

	until = until < d->grace_until_ns ? until : d->grace_until_ns;
	return now < until ? (unsigned int)((until - now) / 1000000) : 0;
}

/* Tasks that run, of @uid and of others; *@first: of @uid the one that began first. */
static void count(const struct dyn *d, uint32_t uid, size_t nr[2], const struct dyn_task **first)
{
	nr[0] = nr[1] = 0;
	for (const struct dyn_task *t = d->tasks; t; t = t->next) {
		bool own = t->uid == uid;

		if (image_task_is_done(t->task, 0))
			continue;
		nr[own]++;
		*first = own ? t : *first;
	}
}

bool dyn_task_must_wait(const struct dyn *d, uint32_t uid)
{
	const struct dyn_task *first = NULL;
	size_t nr[2], most;

	while (d->hasty) {
		count(d, uid, nr, &first);
		most = (TASKS_MAX + 1 - nr[0]) / 2;
		most = most < TASKS_OF_USER ? most : TASKS_OF_USER;
		if (nr[1] < most)
			return false;
		if (!nr[1] || !image_task_is_done(first->task, grace_ms(d, first)))
			return true;
	}
	return false;
}

bool dyn_tasks_await(const struct dyn *d)
{
	bool some = false;

	for (const struct dyn_task *t = d->hasty ? d->tasks : NULL; t; t = t->next)
		some |= image_task_is_done(t->task, grace_ms(d, t));
	return some;
}
