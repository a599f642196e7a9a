/* SPDX-License-Identifier: BSD-2-Clause */
/* <db>/hosts: which machines are one platform. A line: the platform, then its hosts, which may be
 * patterns; '#' begins a comment. The first line that has the host counts. */
#include <errno.h>
#include <fnmatch.h>
#include <string.h>

#include "line.h"
#include "profdb_internal.h"

#define HOSTS_NAME "hosts"

enum { HOSTS_MAX = 1 << 20 };

/* As itself, or without its domain; names of hosts have no case. */
static bool matches(const char *pattern, const char *host)
{
	char bare[256];

	snprintf(bare, sizeof(bare), "%.*s", (int)strcspn(host, "."), host);
	return fnmatch(pattern, host, FNM_CASEFOLD) == 0 ||
	       fnmatch(pattern, bare, FNM_CASEFOLD) == 0;
}

/* One that no host can match, as with a bracket that is not closed, is a slip. */
static bool pattern_ok(const char *word)
{
	const char *class = NULL; /* where one begins that is not closed yet */

	for (; *word; word++) {
		bool letter = (*word | 32) >= 'a' && (*word | 32) <= 'z';

		if (!letter && !(*word >= '0' && *word <= '9') && !strchr("._-*?[]", *word))
			return false;
		if (*word == '[' && class)
			return false;
		if (*word == ']' && (!class || word == class + 1))
			return false;
		if (*word == '[' || *word == ']')
			class = *word == '[' ? word : NULL;
	}
	return !class;
}

static int bad_line(struct base_err *err, size_t line, const char *what, const char *word)
{
	base_fail(err, -DCPI_EFORMAT, "line %zu: %s '%.80s'", line, what, word);
	base_hint(err, "a line is a platform's name and its hosts, as 'web web1 web2'");
	return -DCPI_EFORMAT;
}

/* 1: @host is in it. Changes @text. */
static int take_line(char *text, size_t line, const char *host,
		     char platform[PROFDB_PLATFORM_MAX + 1], struct base_err *err)
{
	char *save = NULL, *name, *word;
	bool any = false, found = false;

	text[strcspn(text, "#")] = '\0';
	name = strtok_r(text, " \t\r", &save);
	if (!name)
		return 0;
	if (!profdb_platform_name_ok(name) || strchr(name, '+'))
		return bad_line(err, line, "unfit platform name", name);
	while ((word = strtok_r(NULL, " \t\r", &save))) {
		if (!pattern_ok(word))
			return bad_line(err, line, "unfit host name", word);
		found = found || matches(word, host);
		any = true;
	}
	if (!any)
		return bad_line(err, line, "no hosts for platform", name);
	if (found)
		strcpy(platform, name);
	return found;
}

/* All lines are looked at: nonsense behind ours is somebody else's trouble tomorrow. */
int profdb_hosts_find(const char *text, size_t len, const char *host,
		      char platform[PROFDB_PLATFORM_MAX + 1], struct base_err *err)
{
	char name[PROFDB_PLATFORM_MAX + 1], first[PROFDB_PLATFORM_MAX + 1] = "", *line;
	struct base_lines lines;
	int r = base_lines_open(&lines, text, len);

	if (r == -DCPI_EFORMAT)
		base_fail(err, r, "line %zu: not text", lines.number);
	while (r >= 0 && (line = base_lines_next(&lines))) {
		r = take_line(line, lines.number, host, name, err);
		if (r > 0 && !*first)
			strcpy(first, name);
	}
	base_lines_close(&lines);
	if (r >= 0 && *first)
		strcpy(platform, first);
	return r < 0 ? r : *first != '\0';
}

static void fit(const char *host, char platform[PROFDB_PLATFORM_MAX + 1])
{
	snprintf(platform, PROFDB_PLATFORM_MAX + 1, "%s", *host ? host : "localhost");
	for (char *c = platform; *c; c++) {
		char one[] = { *c, '\0' };

		if (!profdb_platform_name_ok(one) && (*c != '.' || c == platform))
			*c = '_';
	}
}

int profdb_platform_of(struct profdb *db, const char *host, char platform[PROFDB_PLATFORM_MAX + 1],
		       struct base_err *err)
{
	struct base_err why = { 0 };
	struct base_buf buf = { 0 };
	int r = base_file_read(db->fd, HOSTS_NAME, HOSTS_MAX, &buf, &why);

	fit(host, platform);
	if (r == -ENOENT) {
		r = 0;
	} else {
		if (r >= 0)
			r = profdb_hosts_find((char *)buf.data, buf.len, host, platform, &why);
		if (r < 0) {
			base_fail_errno(&why, r, "cannot read it");
			base_fail(err, r, "cannot use '%s/%s': %s", db->path, HOSTS_NAME, why.text);
			if (why.hint[0])
				base_hint(err, "%s", why.hint);
		}
	}
	base_buf_release(&buf);
	return r;
}
