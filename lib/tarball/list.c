/* SPDX-License-Identifier: BSD-2-Clause */
/* The list of files that an archive begins with is parsed and formatted here. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "line.h"
#include "tarball.h"

/* Numbers, sum and path of the longest line. */
enum { LINE_LEN = 140 + TARBALL_PATH_MAX };

static const char first_line[] = TARBALL_LIST_NAME " 1";

static bool part_ok(const char *part, size_t len)
{
	return len && len <= 255 && !(len == 1 && part[0] == '.') &&
	       !(len == 2 && part[0] == '.' && part[1] == '.');
}

static bool path_ok(const char *path)
{
	size_t len = strlen(path);

	for (size_t i = 0; i < len; i++)
		if ((unsigned char)path[i] <= ' ' || path[i] == 0x7f)
			return false;
	while (*path) {
		size_t part = strcspn(path, "/");

		if (!part_ok(path, part) || (path[part] && !path[part + 1]))
			return false;
		path += part + (path[part] == '/');
	}
	return len && len <= TARBALL_PATH_MAX;
}

static bool member_ok(const struct tarball_member *m)
{
	return path_ok(m->path) && strcmp(m->path, TARBALL_LIST_NAME) != 0 && m->mode <= 0777 &&
	       !(m->mode & 022) && m->mtime >= 0 && m->mtime <= UINT32_MAX;
}

int tarball_list_add(struct tarball_list *l, const struct tarball_member *m)
{
	struct tarball_member *copy;
	uint64_t bytes;
	int r;

	if (!member_ok(m))
		return -EINVAL;
	if (m->len > TARBALL_MEMBER_MAX || base_add_overflow(l->bytes, m->len, &bytes))
		return -DCPI_ELIMIT;
	r = base_grow(&l->v, &l->cap, l->nr + 1, sizeof(*l->v));
	if (r < 0)
		return r;
	copy = &l->v[l->nr];
	*copy = *m;
	copy->path = strdup(m->path);
	if (!copy->path)
		return -ENOMEM;
	l->nr++;
	l->bytes = bytes;
	return 0;
}

void tarball_list_release(struct tarball_list *l)
{
	for (size_t i = 0; i < l->nr; i++)
		free(l->v[i].path);
	free(l->v);
	*l = (struct tarball_list){ 0 };
}

/* ---- the text -------------------------------------------------------------------------------- */

static void format_line(const struct tarball_member *m, char line[LINE_LEN])
{
	struct base_id sum = { .len = sizeof(m->sum) };
	char text[BASE_ID_TEXT_LEN];

	memcpy(sum.bytes, m->sum, sizeof(m->sum));
	snprintf(line, LINE_LEN, "file %" PRIo32 " %" PRId64 " %" PRIu64 " %s %s", m->mode,
		 m->mtime, m->len, base_id_text(&sum, text), m->path);
}

static int parse_line(struct tarball_list *l, char *line)
{
	struct tarball_member m = { 0 };
	char sum[65], again[LINE_LEN];
	struct base_id id;
	int at = 0;

	if (sscanf(line, "file %" SCNo32 " %" SCNd64 " %" SCNu64 " %64[0-9a-f] %n", &m.mode,
		   &m.mtime, &m.len, sum, &at) != 4 ||
	    !at || base_id_parse(&id, sum, strlen(sum)) < 0)
		return -DCPI_EFORMAT;
	m.path = line + at;
	memcpy(m.sum, id.bytes, id.len);
	/* Each list has one form: numbers have no zeros in front, and blanks stand alone. */
	format_line(&m, again);
	if (strcmp(line, again) != 0)
		return -DCPI_EFORMAT;
	if (l->nr && strcmp(l->v[l->nr - 1].path, m.path) >= 0)
		return -EEXIST;
	return tarball_list_add(l, &m);
}

static int bad_line(int r, size_t number, const char *line, struct base_err *err)
{
	char shown[80];

	if (r == -ENOMEM)
		return base_fail_errno(err, r, "cannot read the archive's list");
	snprintf(shown, sizeof(shown), "%s", line);
	base_text_clean(shown);
	if (r == -EEXIST)
		return base_fail(err, -DCPI_EFORMAT,
				 "line %zu of the archive's list is out of order, or there "
				 "already: '%s'",
				 number, shown);
	return base_fail(err, -DCPI_EFORMAT, "line %zu of the archive's list cannot be: '%s'",
			 number, shown);
}

static int parse_lines(struct tarball_list *l, struct base_lines *lines, struct base_err *err)
{
	char *line;
	int r = 0;

	while (r >= 0 && (line = base_lines_next(lines)))
		r = parse_line(l, line);
	return r < 0 ? bad_line(r, lines->number, line, err) : 0;
}

int tarball_list_parse(struct tarball_list *l, const char *text, size_t len, struct base_err *err)
{
	static const char any[] = TARBALL_LIST_NAME " ";
	struct base_lines lines;
	int r = base_lines_sealed(&lines, first_line, text, len);

	if (r < 0)
		base_fail_errno(err, r, "cannot read the archive's list");
	else
		r = parse_lines(l, &lines, err);
	if (r == -DCPI_EVERSION && len >= strlen(any) && memcmp(text, any, strlen(any)) == 0)
		base_hint(err, "a newer DCPI wrote this archive");
	base_lines_close(&lines);
	return r;
}

int tarball_list_format(const struct tarball_list *l, struct base_buf *to)
{
	int r = base_buf_printf(to, "%s\n", first_line);

	for (size_t i = 0; r >= 0 && i < l->nr; i++) {
		char line[LINE_LEN];

		format_line(&l->v[i], line);
		r = base_buf_printf(to, "%s\n", line);
	}
	return r < 0 ? r : base_buf_seal(to);
}
