/* SPDX-License-Identifier: BSD-2-Clause */
/* Stubs and adapters of the JVM are registered once each, however often the JVM tells of them. */
#include "jvmti_internal.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* ---- what was told, until the JVM has listed everything -------------------------------------- */

struct range {
	uintptr_t start, end;
};

/*
 * The list that the JVM gives has stubs that it told of when it made them, and buffers with stubs
 * inside: what was told must stay as it is. Ascending, disjoint.
 */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct range *announced;
static size_t nr_announced, announced_space;
static bool complete; /* the list has been asked for */
static _Thread_local bool listing;

/* With the lock held, as below: the first range that ends behind @at. */
static size_t announced_find(uintptr_t at)
{
	size_t low = 0, high = nr_announced;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (announced[middle].end <= at)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static void cover(struct range *r, const struct range *also)
{
	r->start = also->start < r->start ? also->start : r->start;
	r->end = also->end > r->end ? also->end : r->end;
}

/*
 * In place of what it overlaps, which has ended; in the list it was added to that. Without memory
 * it is forgotten: the list then tells it twice.
 */
static void announced_add(struct range r)
{
	size_t at = announced_find(r.start), gone = 0;

	if (nr_announced == announced_space) {
		size_t space = announced_space ? 2 * announced_space : 1024;
		struct range *grown = reallocarray(announced, space, sizeof(*announced));

		if (!grown)
			return;
		announced = grown;
		announced_space = space;
	}
	for (; at + gone < nr_announced && announced[at + gone].start < r.end; gone++)
		if (listing)
			cover(&r, &announced[at + gone]);
	memmove(&announced[at + 1], &announced[at + gone],
		(nr_announced - at - gone) * sizeof(*announced));
	announced[at] = r;
	nr_announced = nr_announced + 1 - gone;
}

/* ---- registering ----------------------------------------------------------------------------- */

static void range_register(const struct jvmti_name *name, struct range r)
{
	struct dbgdyn_routine routine = {
		.size = sizeof(routine),
		.name = { name->text, name->len },
		.code = (const void *)r.start,
		.code_len = r.end - r.start,
	};

	dbgdyn_register(jvmti_agent.context, &routine, NULL);
}

/* Register the parts of a stub that the list does not have yet. */
static void gaps_register(const struct jvmti_name *name, struct range r)
{
	size_t i = announced_find(r.start);

	for (uintptr_t at = r.start; at < r.end; i++) {
		bool last = i == nr_announced || announced[i].start >= r.end;
		uintptr_t end = last ? r.end : announced[i].start;

		if (end > at)
			range_register(name, (struct range){ at, end });
		at = last ? r.end : announced[i].end;
	}
}

/* Rooms in which compilers put code together: it runs elsewhere. */
static bool is_scratch(const char *name)
{
	return strstr(name, "temporary CodeBuffer") != NULL;
}

void JNICALL jvmti_stub_made(jvmtiEnv *env, const char *name, const void *code, jint code_len)
{
	struct range r = { (uintptr_t)code,
			   (uintptr_t)code + (code_len > 0 ? (size_t)code_len : 0) };
	struct jvmti_name text;

	(void)env;
	if (!code || code_len <= 0 || !name || is_scratch(name))
		return;
	jvmti_name_stub(&text, name);
	pthread_mutex_lock(&lock);
	if (listing)
		gaps_register(&text, r);
	else
		range_register(&text, r);
	if (!complete)
		announced_add(r);
	pthread_mutex_unlock(&lock);
}

void jvmti_stubs_list(jvmtiEnv *env)
{
	listing = true;
	(*env)->GenerateEvents(env, JVMTI_EVENT_DYNAMIC_CODE_GENERATED);
	listing = false;
	pthread_mutex_lock(&lock);
	complete = true;
	free(announced);
	announced = NULL;
	nr_announced = announced_space = 0;
	pthread_mutex_unlock(&lock);
}
