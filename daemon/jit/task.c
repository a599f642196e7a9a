/* SPDX-License-Identifier: BSD-2-Clause */
/* Files that take long to write are written in threads, while the loop does other things. */
#include "jit_internal.h"

/* So many at a time. */
enum { TASKS_MAX = 8 };

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

bool dyn_task_is_done(const struct dyn *d, struct dyn_task *t, unsigned int wait_ms)
{
	return !d->hasty || image_task_is_done(t->task, wait_ms);
}

int dyn_task_end(struct dyn *d, struct dyn_task *t)
{
	struct dyn_task **at = &d->tasks;

	while (*at != t)
		at = &(*at)->next;
	*at = t->next;
	return image_task_end(t->task);
}

bool dyn_task_must_wait(const struct dyn *d, uint32_t uid)
{
	size_t nr = 0;

	for (const struct dyn_task *t = d->hasty ? d->tasks : NULL; t; t = t->next) {
		if (image_task_is_done(t->task, 0))
			continue;
		if (t->uid == uid)
			return true;
		nr++;
	}
	return nr >= TASKS_MAX;
}
