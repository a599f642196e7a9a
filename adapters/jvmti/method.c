/* SPDX-License-Identifier: BSD-2-Clause */
/* A compiled method is registered when it is loaded and retired when it is unloaded. */
#include "jvmti_internal.h"

#include <pthread.h>
#include <stdlib.h>

/*
 * Guards what is known of methods and the room for one routine's tables, both used again for the
 * next. Loads come from one thread of the JVM, and from those that ask it to list its methods; a
 * thread that waits here is no obstacle to a safepoint.
 */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct jvmti_frames frames;

/* Places, and byte-code indices for those of a map. */
struct places {
	struct jvmti_place *at;
	jint *bcis;
	size_t nr;
	uint32_t end;
};

struct loaded {
	jmethodID id;
	const void *code;
	uint32_t code_len;
	const jvmtiAddrLocationMap *map;
	size_t nr_map;
	const jvmtiCompiledMethodLoadInlineRecord *inlined; /* NULL: none */
};

/* HotSpot's own record of what was inlined where. */
static const jvmtiCompiledMethodLoadInlineRecord *inlined_find(const void *info)
{
	for (const jvmtiCompiledMethodLoadRecordHeader *h = info; h; h = h->next) {
		const jvmtiCompiledMethodLoadInlineRecord *r = (const void *)h;

		if (h->kind == JVMTI_CMLR_INLINE_INFO &&
		    h->majorinfoversion == JVMTI_CMLR_MAJOR_VERSION_1)
			return r->numpcs > 0 ? r : NULL;
	}
	return NULL;
}

static int places_make(struct places *p, const struct loaded *l)
{
	size_t space = l->inlined ? (size_t)l->inlined->numpcs : l->nr_map;

	*p = (struct places){ .end = l->code_len };
	if (!space)
		return 0;
	p->at = calloc(space, sizeof(*p->at));
	p->bcis = calloc(space, sizeof(*p->bcis));
	if (!p->at || !p->bcis)
		return -1;
	p->nr = l->inlined ? jvmti_places_of_records(p->at, l->inlined->pcinfo, space, l->code,
						     l->code_len, &p->end)
			   : jvmti_places_of_map(p->at, l->map, p->bcis, space, &l->id, l->code,
						 l->code_len);
	return 0;
}

static struct jvmti_known *find(void *arg, jmethodID id)
{
	return jvmti_methods_find(arg, id);
}

static void routine_register(const struct loaded *l, struct dbgdyn_string name, bool whole)
{
	struct dbgdyn_routine r = {
		.size = sizeof(r),
		.name = name,
		.code = l->code,
		.code_len = l->code_len,
	};

	if (whole) {
		r.lines = frames.lines;
		r.nr_lines = frames.nr_lines;
		r.files = frames.files;
		r.nr_files = frames.nr_files;
		r.inlines = frames.inlines;
		r.nr_inlines = frames.nr_inlines;
	}
	/* Without its lines rather than not at all: its name is what counts most. */
	if (dbgdyn_register(jvmti_agent.context, &r, NULL) == DBGDYN_EINVAL && whole)
		routine_register(l, name, false);
}

/* With the lock held. */
static void method_tell(const struct loaded *l)
{
	static const struct dbgdyn_string unknown = { "unknown method", 14 };
	struct jvmti_methods *m = &jvmti_agent.methods;
	const struct jvmti_known *k;
	struct places p;
	bool whole;

	jvmti_methods_trim(m);
	k = jvmti_methods_renew(m, l->id);
	whole = !places_make(&p, l) &&
		!jvmti_frames_convert(&frames, p.at, p.nr, p.end, l->code_len, find, m);
	routine_register(l, k ? k->name : unknown, whole);
	free(p.at);
	free(p.bcis);
}

void JNICALL jvmti_method_loaded(jvmtiEnv *env, jmethodID id, jint code_len, const void *code,
				 jint map_len, const jvmtiAddrLocationMap *map, const void *info)
{
	struct loaded l = { .id = id,
			    .code = code,
			    .code_len = (uint32_t)code_len,
			    .map = map,
			    .nr_map = map && map_len > 0 ? (size_t)map_len : 0,
			    .inlined = inlined_find(info) };

	(void)env;
	if (code_len <= 0)
		return;
	pthread_mutex_lock(&lock);
	method_tell(&l);
	pthread_mutex_unlock(&lock);
}

/* Takes no lock, so that it is told at once. */
void JNICALL jvmti_method_unloaded(jvmtiEnv *env, jmethodID id, const void *code)
{
	(void)env;
	(void)id;
	dbgdyn_retire_code(jvmti_agent.context, code, 1);
}
