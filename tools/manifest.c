/* SPDX-License-Identifier: BSD-2-Clause */
/* The build's list of installed files is parsed. */
#include "manifest.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "line.h"

static const char first_line[] = "dcpi-install 1";

void manifest_release(struct manifest *m)
{
	for (size_t i = 0; i < m->nr; i++) {
		free(m->v[i].path);
		free(m->v[i].target);
	}
	free(m->v);
	*m = (struct manifest){ 0 };
}

static bool path_ok(const char *path)
{
	size_t len = strlen(path);

	if (!len || !strcmp(path, "/") || path[len - 1] == '/')
		return false;
	for (const char *part = path; part; part = strchr(part, '/')) {
		part += *part == '/';
		if (!strcmp(part, "..") || !strncmp(part, "../", 3))
			return false;
	}
	return true;
}

static int add(struct manifest *m, enum manifest_kind kind, const char *path, const char *target,
	       size_t target_len)
{
	struct manifest_entry *e;
	int r;

	if (!path_ok(path))
		return -DCPI_EFORMAT;
	r = base_grow(&m->v, &m->cap, m->nr + 1, sizeof(*m->v));
	if (r < 0)
		return r;
	e = &m->v[m->nr];
	*e = (struct manifest_entry){ .kind = kind,
				      .path = strdup(path),
				      .target = target ? strndup(target, target_len) : NULL };
	if (e->path && (e->target || !target)) {
		m->nr++;
		return 0;
	}
	free(e->path);
	free(e->target);
	return -ENOMEM;
}

static int add_file(struct manifest *m, const char *rest)
{
	struct base_id id;
	int r;

	if (strcspn(rest, " ") != 64 || !rest[64] || base_id_parse(&id, rest, 64) < 0)
		return -DCPI_EFORMAT;
	r = add(m, MANIFEST_FILE, rest + 65, NULL, 0);
	if (r == 0)
		memcpy(m->v[m->nr - 1].sum, id.bytes, 32);
	return r;
}

static int add_link(struct manifest *m, const char *rest)
{
	size_t len = strcspn(rest, " ");

	return len && rest[len] ? add(m, MANIFEST_LINK, rest + len + 1, rest, len) : -DCPI_EFORMAT;
}

static int parse_line(struct manifest *m, const char *line)
{
	if (!strncmp(line, "file ", 5))
		return add_file(m, line + 5);
	if (!strncmp(line, "link ", 5))
		return add_link(m, line + 5);
	return strncmp(line, "dir ", 4) ? -DCPI_EFORMAT : add(m, MANIFEST_DIR, line + 4, NULL, 0);
}

int manifest_parse(struct manifest *m, const char *text, size_t len, struct base_err *err)
{
	struct base_lines lines;
	int r = base_lines_open(&lines, text, len);
	char *line = r < 0 ? NULL : base_lines_next(&lines);

	if (r >= 0 && (!line || strcmp(line, first_line) != 0))
		r = -DCPI_EVERSION;
	if (r < 0)
		base_fail_errno(err, r, "cannot use the list of what was installed");
	while (r >= 0 && (line = base_lines_next(&lines))) {
		r = parse_line(m, line);
		if (r < 0)
			base_fail_errno(err, r,
					"cannot use line %zu of the list of what was installed",
					lines.number);
	}
	base_lines_close(&lines);
	return r;
}
