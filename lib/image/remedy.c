/* SPDX-License-Identifier: BSD-2-Clause */
/* Says where the symbols of a stripped file can be had: the package, or a server by build-id. */
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

	while (at && (at = memmem(at, (size_t)(end - at), path, len)) != NULL) {
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

bool image_package_of(const char *info, const char *path, char *out, size_t out_len)
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

/* What the servers have said, who are asked when the file is opened. */
static int put_servers(const struct base_id *id, struct base_buf *to)
{
	const char *urls = getenv("DEBUGINFOD_URLS"), *why;
	char text[BASE_ID_TEXT_LEN];

	if (!urls || !*urls)
		return base_buf_printf(to, "; DEBUGINFOD_URLS=https://debuginfod.elfutils.org asks "
					   "the distributions for them by build-id");
	why = image_fetch_failure();
	if (why)
		return base_buf_printf(to, "; %s (DEBUGINFOD_URLS) %s", urls, why);
	return base_buf_printf(to, "; %s (DEBUGINFOD_URLS) has none for build-id %s", urls,
			       base_id_text(id, text));
}

int image_symbols_remedy(const char *path, const struct base_id *id, struct base_buf *to)
{
	char package[256];
	int r = 0;

	/* The C library's has had a name of its own since before there was a rule. */
	if (image_package_of("/var/lib/dpkg/info", path, package, sizeof(package)))
		r = base_buf_printf(to, "package '%s-%s' has its symbols", package,
				    strcmp(package, "libc6") ? "dbgsym" : "dbg");
	else
		r = base_buf_printf(to, "a program of your own keeps its symbols without -s and "
					"strip");
	return r < 0 || !id->len ? r : put_servers(id, to);
}
