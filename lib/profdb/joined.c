/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The list of epochs in a joined epoch: a line EPOCH/PLATFORM each in its folder, read by imports.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profdb_internal.h"

#define JOINED_NAME ".joined"
enum { TEXT_MAX = 16 << 20 };

static bool line_ok(const char *line)
{
	char epoch[PROFDB_EPOCH_LEN + 1];
	size_t len = strcspn(line, "/");

	snprintf(epoch, sizeof(epoch), "%.*s", (int)len, line);
	return line[len] && len <= PROFDB_EPOCH_LEN && profdb_epoch_name_ok(epoch) &&
	       profdb_platform_name_ok(line + len + 1);
}

int profdb_joined_parse(struct base_buf *text, struct profdb_names *out)
{
	char *save = NULL, *line;
	int r = base_buf_append(text, "", 1);

	line = r < 0 ? NULL : strtok_r((char *)text->data, "\n", &save);
	for (; r >= 0 && line; line = strtok_r(NULL, "\n", &save))
		if (line_ok(line))
			r = profdb_names_add(out, line);
	return r;
}

int profdb_joined_read(struct profdb *db, const char *epoch, struct profdb_names *out)
{
	char path[PROFDB_EPOCH_LEN + sizeof(JOINED_NAME) + 1];
	struct base_buf buf = { 0 };
	int r;

	snprintf(path, sizeof(path), "%.*s/" JOINED_NAME, PROFDB_EPOCH_LEN, epoch);
	r = base_file_read(db->fd, path, TEXT_MAX, &buf, NULL);
	if (r >= 0)
		r = profdb_joined_parse(&buf, out);
	base_buf_release(&buf);
	return r == -ENOENT ? 0 : r;
}

char **profdb_epoch_parts(struct profdb *db, const char *epoch, struct base_err *err)
{
	struct profdb_names names = { 0 };
	int r = profdb_joined_read(db, epoch, &names);
	char **parts = r < 0 ? NULL : profdb_names_pack(&names, 0, names.nr);

	profdb_names_release(&names);
	if (!parts)
		base_fail_errno(err, r < 0 ? r : -ENOMEM, "cannot read the parts of epoch '%s'",
				epoch);
	return parts;
}

static int add_platforms(struct profdb *db, const char *epoch, struct profdb_names *out,
			 struct base_err *err)
{
	char line[PROFDB_EPOCH_LEN + PROFDB_PLATFORM_MAX + 2];
	char **platforms = profdb_platforms(db, epoch, err);
	int r = platforms ? 0 : -EIO;

	for (size_t i = 0; r >= 0 && platforms[i]; i++) {
		snprintf(line, sizeof(line), "%s/%s", epoch, platforms[i]);
		r = profdb_names_add(out, line);
	}
	free(platforms);
	return r;
}

int profdb_joined_write(struct profdb *db, int epoch_fd, const struct profdb_names *epochs,
			struct base_err *err)
{
	struct profdb_names lines = { 0 };
	struct base_buf text = { 0 };
	int r = 0;

	for (size_t i = 0; r >= 0 && i < epochs->nr; i++) {
		r = profdb_joined_read(db, epochs->items[i], &lines);
		if (r >= 0)
			r = add_platforms(db, epochs->items[i], &lines, err);
	}
	profdb_names_sort(&lines);
	for (size_t i = 0; r >= 0 && i < lines.nr; i++)
		r = base_buf_printf(&text, "%s\n", lines.items[i]);
	if (r >= 0)
		r = profdb_file_write(epoch_fd, JOINED_NAME, text.data, text.len, err);
	base_buf_release(&text);
	profdb_names_release(&lines);
	return r;
}
