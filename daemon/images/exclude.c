/* SPDX-License-Identifier: BSD-2-Clause */
/* The file of exclusions is parsed, and says whose samples are not stored. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "exclude.h"

struct place {
	const char *name;
	unsigned int line;
};

static int fail_at(const struct place *at, const char *what, struct base_err *err)
{
	return base_fail(err, -DCPI_EUSAGE, "malformed exclusions '%s', line %u: %s", at->name,
			 at->line, what);
}

/* ---- one line -------------------------------------------------------------------------------- */

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r';
}

/* A decimal number at *@text, which goes behind it. */
static bool take_pid(const char **text, const char *end, int32_t *pid)
{
	int64_t v = 0;
	const char *c = *text;

	for (; c < end && *c >= '0' && *c <= '9'; c++) {
		v = v * 10 + (*c - '0');
		if (v > INT32_MAX)
			return false;
	}
	if (c == *text || !v)
		return false;
	*text = c;
	*pid = (int32_t)v;
	return true;
}

static int add_pids(struct exclude *x, const char *text, const char *end, const struct place *at,
		    struct base_err *err)
{
	struct exclude_pids p;
	bool good;

	while (text < end && is_blank(*text))
		text++;
	good = take_pid(&text, end, &p.first);
	p.last = p.first;
	if (good && text < end && *text == '-') {
		text++;
		good = take_pid(&text, end, &p.last);
	}
	if (!good || text < end || p.last < p.first) {
		fail_at(at, "no number or range of processes", err);
		base_hint(err, "write it as 'PID 4711' or 'PID 4700-4799'");
		return -DCPI_EUSAGE;
	}
	if (base_grow(&x->pids, &x->cap_pids, x->nr_pids + 1, sizeof(p)) < 0)
		return base_fail_errno(err, -ENOMEM, "cannot read exclusions '%s'", at->name);
	x->pids[x->nr_pids++] = p;
	return 0;
}

static int add_image(struct exclude *x, const char *text, size_t len, const struct place *at,
		     struct base_err *err)
{
	if (len > EXCLUDE_NAME_MAX)
		return fail_at(at, "the name is too long", err);
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f)
			return fail_at(at, "a byte that is no text", err);
	if (memchr(text, '/', len)) {
		fail_at(at, "a path instead of a short name", err);
		base_hint(err, "write what stands behind the last '/'");
		return -DCPI_EUSAGE;
	}
	if (base_map_set(&x->images, text, len, x) < 0)
		return base_fail_errno(err, -ENOMEM, "cannot read exclusions '%s'", at->name);
	return 0;
}

static int take_line(struct exclude *x, const char *text, const char *end, const struct place *at,
		     struct base_err *err)
{
	const char *comment = memchr(text, '#', (size_t)(end - text));

	end = comment ? comment : end;
	while (text < end && is_blank(*text))
		text++;
	while (end > text && is_blank(end[-1]))
		end--;
	if (text == end)
		return 0;
	if (end - text > 3 && memcmp(text, "PID", 3) == 0 && is_blank(text[3]))
		return add_pids(x, text + 4, end, at, err);
	return add_image(x, text, (size_t)(end - text), at, err);
}

/* ---- all of it ------------------------------------------------------------------------------- */

int exclude_parse(struct exclude *x, const char *text, size_t len, const char *name,
		  struct base_err *err)
{
	struct place at = { .name = name };
	const char *end = text + len;
	int r = 0;

	if (len > EXCLUDE_FILE_MAX)
		return base_fail(err, -DCPI_ELIMIT, "exclusions '%s' are longer than %u bytes",
				 name, EXCLUDE_FILE_MAX);
	while (r >= 0 && text < end) {
		const char *newline = memchr(text, '\n', (size_t)(end - text));

		at.line++;
		r = take_line(x, text, newline ? newline : end, &at, err);
		text = newline ? newline + 1 : end;
	}
	return r;
}

int exclude_read(struct exclude *x, const char *path, struct base_err *err)
{
	struct base_buf text = { 0 };
	int r = base_file_read(AT_FDCWD, path, EXCLUDE_FILE_MAX, &text, err);

	if (r >= 0)
		r = exclude_parse(x, (const char *)text.data, text.len, path, err);
	base_buf_release(&text);
	return r;
}

void exclude_release(struct exclude *x)
{
	base_map_release(&x->images);
	free(x->pids);
	*x = (struct exclude){ 0 };
}

bool exclude_has_pid(const struct exclude *x, int32_t pid)
{
	for (size_t i = 0; i < x->nr_pids; i++)
		if (pid >= x->pids[i].first && pid <= x->pids[i].last)
			return true;
	return false;
}
