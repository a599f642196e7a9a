/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Says where the symbols of a stripped file can be had: the package, or a server by build-id. The
 * daemon fetches files as well, but says nothing of packages: nothing that it links may call this,
 * so that dpkg's lists are named in the tools alone (lintian refuses them in dcpid).
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "image_internal.h"

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
	why = image_fetch_failure();
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
