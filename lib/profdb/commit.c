/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The redo log: one record, written at once, names the files of a flush (or the folders of a join)
 * that count. It is completed after it was written, and again after a crash.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "line.h"
#include "profdb_internal.h"

#define FIRST_WORD "dcpi-commit "
#define FIRST_LINE FIRST_WORD "1"
#define NEW_PREFIX "new-"

enum { COMMIT_MAX = 1 << 26 };

void profdb_commit_release(struct profdb_commit *c)
{
	profdb_names_release(&c->files);
	profdb_names_release(&c->gone);
	c->seq = 0;
}

char *profdb_new_name(uint64_t seq, const char *name, char out[256])
{
	snprintf(out, 256, "." NEW_PREFIX "%llu-%s", (unsigned long long)seq, name);
	return out;
}

/* Number of ".new-SEQ-NAME", 0 for other names. */
static uint64_t seq_of(const char *name)
{
	unsigned long long seq;
	char dash;

	if (name[0] != '.' || strncmp(name + 1, NEW_PREFIX, strlen(NEW_PREFIX)))
		return 0;
	return sscanf(name + 1 + strlen(NEW_PREFIX), "%20llu%c", &seq, &dash) == 2 && dash == '-'
		       ? seq
		       : 0;
}

/* ---- the file -------------------------------------------------------------------------------- */

static int take_line(struct profdb_commit *c, const char *line)
{
	unsigned long long seq;

	if (!strncmp(line, "file ", 5) && profdb_file_name_ok(line + 5))
		return profdb_names_add(&c->files, line + 5);
	if (!strncmp(line, "gone ", 5) && profdb_file_name_ok(line + 5))
		return profdb_names_add(&c->gone, line + 5);
	if (sscanf(line, "seq %20llu", &seq) != 1)
		return -DCPI_EFORMAT;
	c->seq = seq;
	return 0;
}

int profdb_commit_parse(const struct base_buf *text, struct profdb_commit *c)
{
	struct base_lines lines;
	int r = base_lines_sealed(&lines, FIRST_LINE, text->data, text->len);
	char *line;

	/* A record without its first word is damaged, and not of another version. */
	if (r == -DCPI_EVERSION && (text->len < strlen(FIRST_WORD) ||
				    memcmp(text->data, FIRST_WORD, strlen(FIRST_WORD)) != 0))
		r = -DCPI_ECHECKSUM;
	while (r >= 0 && (line = base_lines_next(&lines)))
		r = take_line(c, line);
	base_lines_close(&lines);
	return r < 0 ? r : c->seq ? 0 : -DCPI_EFORMAT;
}

int profdb_commit_read(int dir_fd, struct profdb_commit *c, struct base_err *err)
{
	struct base_buf buf = { 0 };
	struct base_err why = { 0 };
	int r = base_file_read(dir_fd, PROFDB_COMMIT_NAME, COMMIT_MAX, &buf, &why);

	*c = (struct profdb_commit){ 0 };
	if (r == -ENOENT) {
		r = 0;
		goto out;
	}
	if (r < 0)
		base_fail(err, r, "cannot use the flush record: %s", why.text);
	if (r >= 0)
		r = profdb_commit_parse(&buf, c);
	if (r < 0) {
		profdb_commit_release(c);
		base_fail_errno(err, r, "cannot read the flush record '%s'", PROFDB_COMMIT_NAME);
	}
out:
	base_buf_release(&buf);
	return r;
}

/* Renamed between the two looks: then it is there under its own name. */
int profdb_read_committed(int fd, uint64_t seq, const char *name, struct base_buf *out,
			  struct base_err *err)
{
	struct base_err why = { 0 };
	char new_name[256];
	int r = -ENOENT;

	if (seq)
		r = base_file_read(fd, profdb_new_name(seq, name, new_name), PROFDB_FILE_MAX, out,
				   &why);
	if (r == -ENOENT)
		return base_file_read(fd, name, PROFDB_FILE_MAX, out, err);
	return r < 0 ? base_fail(err, r, "%s", why.text) : 0;
}

int profdb_commit_write(int dir_fd, const struct profdb_commit *c, struct base_err *err)
{
	struct base_buf buf = { 0 };
	int r = base_buf_printf(&buf, FIRST_LINE "\nseq %llu\n", (unsigned long long)c->seq);

	for (size_t i = 0; r >= 0 && i < c->files.nr; i++)
		r = base_buf_printf(&buf, "file %s\n", c->files.items[i]);
	for (size_t i = 0; r >= 0 && i < c->gone.nr; i++)
		r = base_buf_printf(&buf, "gone %s\n", c->gone.items[i]);
	if (r >= 0)
		r = base_buf_seal(&buf);
	if (r < 0)
		base_fail_errno(err, r, "cannot write '%s'", PROFDB_COMMIT_NAME);
	else
		r = profdb_file_write(dir_fd, PROFDB_COMMIT_NAME, buf.data, buf.len, err);
	base_buf_release(&buf);
	return r;
}

/* ---- doing and redoing ----------------------------------------------------------------------- */

static int complete(int dir_fd, const struct profdb_commit *c, struct base_err *err)
{
	char new_name[256];
	int r;

	for (size_t i = 0; i < c->files.nr; i++) {
		const char *name = c->files.items[i];

		/* ENOENT: renamed already, before we failed or somebody before us was killed. */
		if (renameat(dir_fd, profdb_new_name(c->seq, name, new_name), dir_fd, name) < 0 &&
		    errno != ENOENT)
			return base_fail_errno(err, -errno, "cannot rename '%s' to '%s'", new_name,
					       name);
	}
	for (size_t i = 0; i < c->gone.nr; i++) {
		const char *name = c->gone.items[i];

		if (unlinkat(dir_fd, name, 0) < 0 && errno != ENOENT)
			return base_fail_errno(err, -errno, "cannot remove '%s'", name);
	}
	r = base_sync_dir(dir_fd);
	return r < 0 ? base_fail_errno(err, r, "cannot sync an epoch's folder") : 0;
}

int profdb_commit_redo(struct profdb *db, struct base_err *err)
{
	int r;

	if (!db->flush.redo)
		return 0;
	r = complete(db->epoch.fd, &db->flush.commit, err);
	if (r >= 0) {
		db->flush.redo = false;
		profdb_commit_release(&db->flush.commit);
	}
	return r;
}

/* ".new-SEQ-NAME" becomes ".bad-SEQ-NAME", which no recovery removes. */
static int keep_file(int dir_fd, const char *name, struct base_err *err)
{
	char kept[256];

	snprintf(kept, sizeof(kept), PROFDB_BAD_PREFIX "%s", name + 1 + strlen(NEW_PREFIX));
	if (renameat(dir_fd, name, dir_fd, kept) < 0)
		return base_fail_errno(err, -errno, "cannot set aside '%s'", name);
	return 0;
}

/* The record is damaged, so nobody knows what was committed: keep everything, go on above it. */
static int set_aside(int dir_fd, const struct profdb_names *all, uint64_t *seq,
		     struct base_err *err)
{
	for (size_t i = 0; i < all->nr; i++) {
		uint64_t n = seq_of(all->items[i]);
		int r = n ? keep_file(dir_fd, all->items[i], err) : 0;

		if (r < 0)
			return r;
		*seq = n > *seq ? n : *seq;
	}
	/* Last: who is killed before finds it damaged again. */
	if (renameat(dir_fd, PROFDB_COMMIT_NAME, dir_fd, PROFDB_COMMIT_NAME "-bad") < 0)
		return base_fail_errno(err, -errno, "cannot set aside a bad '%s'",
				       PROFDB_COMMIT_NAME);
	return 0;
}

static int clean(int dir_fd, const struct profdb_names *all, struct base_err *err)
{
	for (size_t i = 0; i < all->nr; i++) {
		const char *name = all->items[i];

		if (!seq_of(name) && strncmp(name, ".tmp-", 5))
			continue;
		if (unlinkat(dir_fd, name, 0) < 0 && errno != ENOENT)
			return base_fail_errno(err, -errno, "cannot remove '%s'", name);
	}
	return 0;
}

int profdb_commit_recover(int dir_fd, uint64_t *seq, struct base_err *err)
{
	struct profdb_commit c = { 0 };
	struct profdb_names all = { 0 };
	struct base_err why = { 0 };
	int r = profdb_names_list(&all, dir_fd, ".");

	*seq = 0;
	if (r < 0) {
		base_fail_errno(err, r, "cannot list an epoch's folder");
		goto out;
	}
	r = profdb_commit_read(dir_fd, &c, &why);
	if (profdb_error_is_content(r)) {
		r = set_aside(dir_fd, &all, seq, err);
		goto out;
	}
	*seq = c.seq;
	if (r < 0) {
		base_fail(err, r, "%s", why.text);
		base_hint(err, "move '" PROFDB_COMMIT_NAME "', and '." NEW_PREFIX
			       "' files beside it, out of the database first");
	}
	if (r >= 0 && c.seq)
		r = complete(dir_fd, &c, err);
	if (r >= 0)
		r = clean(dir_fd, &all, err);
out:
	profdb_commit_release(&c);
	profdb_names_release(&all);
	return r;
}
