/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The costs of an image's blocks are kept in a file of the database, and read, added to and
 * written here.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bound.h"
#include "line.h"
#include "profdb_internal.h"

#define FOLDER	   "costs"
#define FIRST_LINE "dcpi-costs 1"
#define FILE_MAX   (1u << 30)

void profdb_costs_release(struct profdb_costs *c)
{
	free(c->path);
	free(c->v);
	memset(c, 0, sizeof(*c));
}

/* Index of the first block that ends behind @off. */
static size_t find(const struct profdb_costs *c, uint64_t off)
{
	return BASE_BOUND(i, c->nr, c->v[i].off + c->v[i].len <= off);
}

const struct profdb_cost *profdb_costs_at(const struct profdb_costs *c, uint64_t off, uint64_t len)
{
	size_t i = find(c, off);

	if (i == c->nr || c->v[i].off != off || c->v[i].len != len)
		return NULL;
	return &c->v[i];
}

static bool is_block(const struct profdb_cost *b)
{
	uint64_t end;

	return b->len && b->executions && !base_add_overflow(b->off, b->len, &end);
}

int profdb_costs_add(struct profdb_costs *c, const struct profdb_cost *block)
{
	size_t at = find(c, block->off), behind = at;
	struct profdb_cost sum = *block, *old;
	int r = base_grow(&c->v, &c->cap, c->nr + 1, sizeof(*c->v));

	if (!is_block(block))
		return -EINVAL;
	if (r < 0)
		return r;
	if (at < c->nr && (old = c->v + at)->off == block->off && old->len == block->len &&
	    (base_add_overflow(old->samples, block->samples, &sum.samples) ||
	     base_add_overflow(old->units, block->units, &sum.units) ||
	     base_add_overflow(old->executions, block->executions, &sum.executions)))
		return -DCPI_EOVERFLOW;
	while (behind < c->nr && c->v[behind].off < block->off + block->len)
		behind++;
	memmove(c->v + at + 1, c->v + behind, (c->nr - behind) * sizeof(*c->v));
	c->nr = c->nr - (behind - at) + 1;
	c->v[at] = sum;
	return 0;
}

/* ---- the file's text ------------------------------------------------------------------------- */

/* The value of the next line, which begins with @word. */
static char *take(struct base_lines *lines, const char *word)
{
	char *line = base_lines_next(lines);
	size_t len = strlen(word);

	return line && !strncmp(line, word, len) && line[len] == ' ' ? line + len + 1 : NULL;
}

static int take_head(struct base_lines *at, struct profdb_costs *c)
{
	char *image = take(at, "image"), *path, *event;

	if (!image || base_id_parse(&c->image, image, strlen(image)) < 0)
		return -DCPI_EFORMAT;
	path = take(at, "path");
	event = path ? take(at, "event") : NULL;
	if (!event || !*path || !profdb_event_name_ok(event))
		return -DCPI_EFORMAT;
	snprintf(c->event, sizeof(c->event), "%s", event);
	c->path = strdup(path);
	return c->path ? 0 : -ENOMEM;
}

static int parse_block(char *text, struct profdb_cost *b)
{
	uint64_t *const fields[] = { &b->off, &b->len, &b->samples, &b->units, &b->executions };
	char *save = NULL, *word = strtok_r(text, " ", &save);

	for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++) {
		if (!word || profdb_number_parse(word, i ? 10 : 16, fields[i]) < 0)
			return -DCPI_EFORMAT;
		word = strtok_r(NULL, " ", &save);
	}
	return word || !is_block(b) ? -DCPI_EFORMAT : 0;
}

static int take_blocks(struct base_lines *at, struct profdb_costs *c)
{
	int r = 0;

	while (r >= 0 && at->at < at->end) {
		char *text = take(at, "block");
		struct profdb_cost b;

		if (!text || parse_block(text, &b) < 0)
			return -DCPI_EFORMAT;
		if (c->nr && c->v[c->nr - 1].off + c->v[c->nr - 1].len > b.off)
			return -DCPI_EFORMAT;
		r = base_grow(&c->v, &c->cap, c->nr + 1, sizeof(*c->v));
		if (r >= 0)
			c->v[c->nr++] = b;
	}
	return r;
}

int profdb_costs_parse(const void *data, size_t len, struct profdb_costs *out, struct base_err *err)
{
	struct base_lines lines;
	int r = base_lines_sealed(&lines, FIRST_LINE, data, len);

	memset(out, 0, sizeof(*out));
	if (r >= 0)
		r = take_head(&lines, out);
	if (r >= 0)
		r = take_blocks(&lines, out);
	base_lines_close(&lines);
	if (r < 0)
		profdb_costs_release(out);
	return r < 0 ? base_fail_errno(err, r, "cannot read costs of blocks") : 0;
}

int profdb_costs_format(const struct profdb_costs *c, struct base_buf *out)
{
	char id[BASE_ID_TEXT_LEN];
	int r = base_buf_printf(out, FIRST_LINE "\nimage %s\npath %s\nevent %s\n",
				base_id_text(&c->image, id), c->path, c->event);

	for (size_t i = 0; i < c->nr && r >= 0; i++) {
		const struct profdb_cost *b = &c->v[i];

		r = base_buf_printf(
			out, "block %" PRIx64 " %" PRIu64 " %" PRIu64 " %" PRIu64 " %" PRIu64 "\n",
			b->off, b->len, b->samples, b->units, b->executions);
	}
	return r < 0 ? r : base_buf_seal(out);
}

/* ---- the file -------------------------------------------------------------------------------- */

#define NAME_LEN (sizeof(FOLDER) + BASE_ID_TEXT_LEN + PROFDB_EVENT_NAME + 1)

static void file_name(const struct base_id *image, const char *event, char name[NAME_LEN])
{
	char id[BASE_ID_TEXT_LEN];
	int len = snprintf(name, NAME_LEN, FOLDER "/%s.", base_id_text(image, id));

	/* Some hardware events have a slash. */
	for (char *to = name + len; (*to++ = *event == '/' ? '_' : *event); event++)
		;
}

int profdb_costs_read(struct profdb *db, const struct base_id *image, const char *event,
		      struct profdb_costs *out, struct base_err *err)
{
	struct base_err why = { 0 };
	struct base_buf buf = { 0 };
	char name[NAME_LEN];
	int r;

	memset(out, 0, sizeof(*out));
	if (!image->len || !profdb_event_name_ok(event))
		return -ENOENT;
	file_name(image, event, name);
	r = base_file_read(db->fd, name, FILE_MAX, &buf, &why);
	if (r >= 0)
		r = profdb_costs_parse(buf.data, buf.len, out, &why);
	if (r >= 0 && (!base_id_equal(&out->image, image) || strcmp(out->event, event))) {
		profdb_costs_release(out);
		r = base_fail_errno(&why, -DCPI_EFORMAT, "other costs than its name says");
	}
	base_buf_release(&buf);
	if (r < 0 && r != -ENOENT) {
		base_fail(err, r, "cannot use '%s/%s': %s", db->path, name, why.text);
		base_hint(err, "remove it and measure anew, or it will stay unused");
	}
	return r;
}

static int write_costs(struct profdb *db, const struct profdb_costs *c, struct base_err *err)
{
	struct base_buf buf = { 0 };
	char name[NAME_LEN];
	int fd = -1, r = profdb_costs_format(c, &buf);

	file_name(&c->image, c->event, name);
	if (r < 0) {
		base_fail_errno(err, r, "cannot write '%s/%s'", db->path, name);
		goto out;
	}
	r = fd = profdb_folder_open(db->fd, FOLDER);
	if (r < 0)
		base_fail_errno(err, r, "cannot make '%s/" FOLDER "'", db->path);
	else
		r = base_file_write(fd, base_path_name(name), 0644, buf.data, buf.len, err);
	if (fd >= 0)
		close(fd);
out:
	base_buf_release(&buf);
	return r;
}

static bool is_complete(const struct profdb_costs *c)
{
	return c->image.len && c->path && *c->path && !strchr(c->path, '\n') &&
	       profdb_event_name_ok(c->event);
}

int profdb_costs_keep(struct profdb *db, const struct profdb_costs *more, struct base_err *err)
{
	struct profdb_costs all = { 0 };
	int r;

	if (!is_complete(more))
		return base_fail(err, -EINVAL, "costs of blocks need an image, path and event");
	r = profdb_costs_read(db, &more->image, more->event, &all, err);
	if (r == -ENOENT)
		r = write_costs(db, more, err);
	else if (r >= 0) {
		for (size_t i = 0; i < more->nr && r >= 0; i++)
			r = profdb_costs_add(&all, &more->v[i]);
		if (r < 0)
			base_fail_errno(err, r, "cannot add to the costs of '%s'", more->path);
		else
			r = write_costs(db, &all, err);
	}
	profdb_costs_release(&all);
	return r;
}

/* "<build-id>.<event>" */
int profdb_costs_file_id(const char *name, struct base_id *id)
{
	size_t len = strcspn(name, ".");

	return name[len] && name[len + 1] ? base_id_parse(id, name, len) : -EINVAL;
}

char **profdb_costs_files(struct profdb *db, const struct base_id *image)
{
	struct profdb_names all = { 0 }, good = { 0 };
	char id[BASE_ID_TEXT_LEN], **list;
	int r = profdb_names_list(&all, db->fd, FOLDER);
	size_t len = strlen(base_id_text(image, id));

	for (size_t i = 0; r >= 0 && len && i < all.nr; i++)
		if (!strncmp(all.items[i], id, len) && all.items[i][len] == '.')
			r = profdb_names_add(&good, all.items[i]);
	profdb_names_sort(&good);
	list = r == -ENOMEM ? NULL : profdb_names_pack(&good, 0, good.nr);
	profdb_names_release(&all);
	profdb_names_release(&good);
	return list;
}
