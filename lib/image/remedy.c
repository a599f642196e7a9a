/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Where the symbols of a stripped file can be had: it is fetched by build-id from debuginfod
 * servers ($DEBUGINFOD_URLS), and the remedies are told: the package, or such a server.
 *
 * elfutils' library keeps what it fetched, and what is not there, in its own cache. It is loaded
 * only where servers are named, because it brings an HTTP client along.
 */
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "image_internal.h"

/* ---- files from debuginfod servers ----------------------------------------------------------- */

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

/* Why a server of $DEBUGINFOD_URLS could not be asked; NULL: they all answered so far. */
static const char *fetch_failure(void)
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

/* ---- remedies -------------------------------------------------------------------------------- */

enum { LIST_MAX = 64 << 20 };

static bool has_line(const struct base_buf *list, const char *path)
{
	size_t len = strlen(path);
	const char *at = (const char *)list->data, *end = at + list->len;

	while (len && at && (at = memmem(at, (size_t)(end - at), path, len)) != NULL) {
		bool begins = at == (const char *)list->data || at[-1] == '\n';

		at += len;
		if (begins && at < end && *at == '\n')
			return true;
	}
	return false;
}

/* dpkg knows a file by the path that its package has, which may lead through a merged folder. */
static bool owns(const struct base_buf *list, const char *path)
{
	return has_line(list, path) ||
	       (strncmp(path, "/usr/", 5) == 0 && has_line(list, path + strlen("/usr")));
}

static bool package_of(const char *info, const char *path, char *out, size_t out_len)
{
	DIR *dir = opendir(info);
	struct base_buf list = { 0 };
	bool found = false;

	for (struct dirent *e; dir && !found && (e = readdir(dir));) {
		size_t len = strlen(e->d_name);

		if (len < 6 || strcmp(e->d_name + len - 5, ".list") != 0)
			continue;
		base_buf_clear(&list);
		if (base_file_read(dirfd(dir), e->d_name, LIST_MAX, &list, NULL) < 0 ||
		    !owns(&list, path))
			continue;
		snprintf(out, out_len, "%.*s", (int)strcspn(e->d_name, ":"), e->d_name);
		if (strlen(out) == len)
			out[len - strlen(".list")] = '\0';
		found = true;
	}
	base_buf_release(&list);
	if (dir)
		closedir(dir);
	return found;
}

/* Says what the servers have said, who are asked when the file is opened. Their addresses are not
 * told: they may have a password, and what is told here is sent on. */
static int put_servers(const struct base_id *id, struct base_buf *to)
{
	const char *urls = getenv("DEBUGINFOD_URLS"), *why;
	char text[BASE_ID_TEXT_LEN];

	if (!urls || !*urls)
		return base_buf_printf(to, "; DEBUGINFOD_URLS=https://debuginfod.elfutils.org asks "
					   "the distributions for them by build-id");
	why = fetch_failure();
	if (why)
		return base_buf_printf(
			to, "; the servers of DEBUGINFOD_URLS could not be asked: %s", why);
	return base_buf_printf(to, "; the servers of DEBUGINFOD_URLS have none for build-id %s",
			       base_id_text(id, text));
}

/* Is the file that stands there now the one that was profiled? */
static bool is_here(const char *path, const struct base_id *id)
{
	struct base_id own;

	return image_identify(AT_FDCWD, path, &own, NULL) >= 0 && base_id_equal(&own, id);
}

int image_package_remedy(const char *info, const char *path, const struct base_id *id,
			 struct base_buf *to)
{
	char package[256];

	if (!package_of(info, path, package, sizeof(package)))
		return base_buf_printf(to, "a program of your own keeps its symbols without -s and "
					   "strip");
	/* The C library's has had a name of its own since before there was a rule. */
	return base_buf_printf(to, "package '%s-%s' %s its symbols", package,
			       strcmp(package, "libc6") ? "dbgsym" : "dbg",
			       is_here(path, id) ? "has" : "may have");
}

int image_symbols_remedy(const char *path, const struct base_id *id, struct base_buf *to)
{
	int r = image_package_remedy("/var/lib/dpkg/info", path, id, to);

	return r < 0 || !id->len ? r : put_servers(id, to);
}
