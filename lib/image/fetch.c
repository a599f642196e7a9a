/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Files by build-id from debuginfod servers ($DEBUGINFOD_URLS), by elfutils' library: it keeps what
 * it fetched, and what is not there, in its own cache. Loaded only where servers are named, because
 * it brings an HTTP client along.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "image_internal.h"

#define SILENCE_MAX 10000000000ull /* ns */

struct client; /* debuginfod_client */

typedef int find_fn(struct client *c, const unsigned char *id, int id_len, char **path);
typedef int progress_fn(struct client *c, long a, long b);

/* As much of <elfutils/debuginfod.h> as is used. */
struct library {
	struct client *(*begin)(void);
	void (*end)(struct client *c);
	void (*set_progress)(struct client *c, progress_fn *fn);
	void (*set_user_data)(struct client *c, void *data);
	void *(*get_user_data)(struct client *c);
	find_fn *find_debuginfo, *find_executable;
};

static struct library lib;
/* A server that did not answer once is not asked again by this process. */
static bool silent;
static int failed; /* the last error that tells nothing of the file that was asked for; 0: none */

struct wait {
	uint64_t deadline_ns;
	long got;
};

/* Called once a second or more; not 0 gives up. @a of @b bytes are here; until a server has said
 * how many there are, @b is 0 and @a counts calls. */
static int on_progress(struct client *c, long a, long b)
{
	struct wait *w = lib.get_user_data(c);

	if (b > 0 && a > w->got) {
		w->got = a;
		w->deadline_ns = base_now_ns() + SILENCE_MAX;
	}
	if (base_now_ns() < w->deadline_ns)
		return 0;
	silent = true;
	return 1;
}

static bool load(void)
{
	void *so;

	if (lib.begin)
		return true;
	so = dlopen("libdebuginfod.so.1", RTLD_NOW | RTLD_LOCAL);
	if (!so)
		return false;
	*(void **)&lib.end = dlsym(so, "debuginfod_end");
	*(void **)&lib.set_progress = dlsym(so, "debuginfod_set_progressfn");
	*(void **)&lib.set_user_data = dlsym(so, "debuginfod_set_user_data");
	*(void **)&lib.get_user_data = dlsym(so, "debuginfod_get_user_data");
	*(void **)&lib.find_debuginfo = dlsym(so, "debuginfod_find_debuginfo");
	*(void **)&lib.find_executable = dlsym(so, "debuginfod_find_executable");
	if (lib.end && lib.set_progress && lib.set_user_data && lib.get_user_data &&
	    lib.find_debuginfo && lib.find_executable)
		*(void **)&lib.begin = dlsym(so, "debuginfod_begin");
	return lib.begin != NULL;
}

const char *image_fetch_failure(void)
{
	if (!load())
		return "libdebuginfod.so.1 is not installed";
	return silent ? "no answer" : failed ? base_strerror(failed) : NULL;
}

char *image_fetch(const struct base_id *id, bool debug)
{
	struct wait w = { .deadline_ns = base_now_ns() + SILENCE_MAX };
	const char *urls = getenv("DEBUGINFOD_URLS");
	struct client *c;
	char *path = NULL;
	int fd;

	if (silent || !urls || !*urls || id->len < 2 || !load() || !(c = lib.begin()))
		return NULL;
	lib.set_user_data(c, &w);
	lib.set_progress(c, on_progress);
	fd = (debug ? lib.find_debuginfo : lib.find_executable)(c, id->bytes, id->len, &path);
	lib.end(c);
	if (fd < 0 && fd != -ENOENT)
		failed = fd;
	if (fd < 0)
		return NULL;
	close(fd);
	return path;
}
