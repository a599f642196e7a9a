/* SPDX-License-Identifier: BSD-2-Clause */
/* Files that take long to write are written in threads, while the loop does other things. */
#include "jit_internal.h"

/* So many at a time, and of one user: the disk makes each wait. */
enum { TASKS_MAX = 12, TASKS_OF_USER = 4 };
/* Calls in haste wait for ends for so long: one takes a tenth of that. */
#define GRACE_NS 100000000u

bool dyn_task_begin(struct dyn *d, struct dyn_task *t, uint32_t uid, int (*fn)(void *arg),
		    void *arg)
{
	*t = (struct dyn_task){ .next = d->tasks, .uid = uid };
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

void dyn_task_drop(struct dyn *d, struct dyn_task *t)
{
	if (!t)
		return;
	dyn_task_end(d, t);
	t->release(t);
}

void dyn_tasks_grace(struct dyn *d)
{
	d->grace_until_ns = base_now_ns() + GRACE_NS;
}

static unsigned int grace_ms(const struct dyn *d)
{
	uint64_t now = base_now_ns();

	return now < d->grace_until_ns ? (unsigned int)((d->grace_until_ns - now) / 1000000) : 0;
}

static size_t nr_running(const struct dyn *d, bool all, uint32_t uid, struct dyn_task **last)
{
	size_t nr = 0;

	for (struct dyn_task *t = d->tasks; t; t = t->next)
		if ((all || t->uid == uid) && !image_task_is_done(t->task, 0)) {
			*last = t;
			nr++;
		}
	return nr;
}

/* The one that began first ends first, most often. */
bool dyn_task_must_wait(const struct dyn *d, uint32_t uid)
{
	struct dyn_task *of_user = NULL, *of_all = NULL;

	if (!d->hasty)
		return false;
	while (nr_running(d, false, uid, &of_user) >= TASKS_OF_USER)
		if (!image_task_is_done(of_user->task, grace_ms(d)))
			return true;
	while (nr_running(d, true, 0, &of_all) >= TASKS_MAX)
		if (!image_task_is_done(of_all->task, grace_ms(d)))
			return true;
	return false;
}

bool dyn_tasks_await(const struct dyn *d)
{
	struct dyn_task *t;

	while (d->hasty && nr_running(d, true, 0, &t))
		if (!image_task_is_done(t->task, grace_ms(d)))
			return false;
	return d->hasty && d->tasks;
}
