/* SPDX-License-Identifier: BSD-2-Clause */
/* The reader and writer of .xct and .tab files: lines of words, with a checksum in the last line
 * (docs/format/xct.md). */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "exact.h"

/* A line that is being split into words. */
struct exact_text {
	const char *at, *end; /* the rest of the line: no newline, no NUL */
};

/* Finds the next word and moves behind it. */
static int word(struct exact_text *t, const char **from, size_t *len)
{
	const char *blank;

	if (t->at == t->end)
		return -DCPI_EFORMAT;
	blank = memchr(t->at, ' ', (size_t)(t->end - t->at));
	*from = t->at;
	*len = (size_t)((blank ? blank : t->end) - t->at);
	if (!*len || (blank && blank + 1 == t->end))
		return -DCPI_EFORMAT;
	t->at = blank ? blank + 1 : t->end;
	return 0;
}

static int digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : 99;
}

static int number(const char *from, size_t len, unsigned int base, uint64_t *out)
{
	uint64_t v = 0;

	if (!len || (len > 1 && from[0] == '0'))
		return -DCPI_EFORMAT;
	for (size_t i = 0; i < len; i++) {
		unsigned int d = (unsigned int)digit(from[i]);

		if (d >= base || base_mul_overflow(v, base, &v) || base_add_overflow(v, d, &v))
			return -DCPI_EFORMAT;
	}
	*out = v;
	return 0;
}

/* Each of these functions reads a word, and the blank before it: 0 or -DCPI_EFORMAT. */
static int exact_text_number(struct exact_text *t, unsigned int base, uint64_t *out)
{
	const char *from;
	size_t len;
	int r = word(t, &from, &len);

	return r < 0 ? r : number(from, len, base, out);
}

static int exact_text_signed(struct exact_text *t, int64_t *out)
{
	const char *from;
	uint64_t v;
	size_t len;
	int r = word(t, &from, &len);
	bool minus = r == 0 && *from == '-';

	if (r < 0 || (r = number(from + minus, len - minus, 10, &v)) < 0)
		return r;
	if (v > INT64_MAX)
		return -DCPI_EFORMAT;
	*out = minus ? -(int64_t)v : (int64_t)v;
	return 0;
}

/* Copies the word with a terminating NUL. */
static int exact_text_word(struct exact_text *t, char *out, size_t len)
{
	const char *from;
	size_t n;
	int r = word(t, &from, &n);

	if (r < 0 || n >= len)
		return -DCPI_EFORMAT;
	memcpy(out, from, n);
	out[n] = '\0';
	return 0;
}

/* Reads a build-id in hex digits, or "-" for none. */
static int exact_text_id(struct exact_text *t, struct base_id *out)
{
	const char *from;
	size_t len;

	*out = (struct base_id){ 0 };
	if (word(t, &from, &len) < 0)
		return -DCPI_EFORMAT;
	if (len == 1 && *from == '-')
		return 0;
	return base_id_parse(out, from, len) < 0 ? -DCPI_EFORMAT : 0;
}

static int exact_text_hash(struct exact_text *t, uint8_t out[20])
{
	struct base_id id;

	if (exact_text_id(t, &id) < 0 || id.len != 20)
		return -DCPI_EFORMAT;
	memcpy(out, id.bytes, 20);
	return 0;
}

/* Decodes one byte of escaped text: its value, or negative. */
static int unescape(const char **at, const char *end)
{
	const char *p = *at;
	int high, low;

	*at = p + 1;
	if (*p != '\\')
		return (unsigned char)*p;
	if (end - p >= 2 && p[1] == '\\') {
		*at = p + 2;
		return '\\';
	}
	if (end - p < 4 || p[1] != 'x')
		return -DCPI_EFORMAT;
	high = digit(p[2]);
	low = digit(p[3]);
	*at = p + 4;
	return high > 15 || low > 15 || !(high | low) ? -DCPI_EFORMAT : high << 4 | low;
}

/* Returns the rest of the line, not empty, with escapes decoded, to be freed. -DCPI_EFORMAT or
 * -ENOMEM. */
static int exact_text_rest(struct exact_text *t, char **out)
{
	char *text, *to;
	int c = 0;

	if (t->at == t->end)
		return -DCPI_EFORMAT;
	text = to = malloc((size_t)(t->end - t->at) + 1);
	if (!text)
		return -ENOMEM;
	while (t->at < t->end && (c = unescape(&t->at, t->end)) >= 0)
		*to++ = (char)c;
	*to = '\0';
	if (c < 0) {
		free(text);
		return c;
	}
	*out = text;
	return 0;
}

/* Is the next word @name? */
static bool exact_text_is(const struct exact_text *t, const char *name)
{
	size_t len = strlen(name), left = (size_t)(t->end - t->at);

	return left >= len && memcmp(t->at, name, len) == 0 && (left == len || t->at[len] == ' ');
}

/* Appends text with bytes that would break a line escaped. */
static int exact_text_put(struct base_buf *out, const char *text)
{
	int r = 0;

	for (; *text && r >= 0; text++) {
		unsigned char c = (unsigned char)*text;

		if (c == '\\')
			r = base_buf_append(out, "\\\\", 2);
		else if (c < 0x20 || c == 0x7f)
			r = base_buf_printf(out, "\\x%02x", c);
		else
			r = base_buf_append(out, &c, 1);
	}
	return r;
}

static int exact_text_put_hex(struct base_buf *out, const uint8_t *bytes, size_t len)
{
	int r = len ? 0 : base_buf_append(out, "-", 1);

	for (size_t i = 0; i < len && r >= 0; i++)
		r = base_buf_printf(out, "%02x", bytes[i]);
	return r;
}

/* ---- files ----------------------------------------------------------------------------------- */

#define FILE_MAX     ((size_t)1 << 31)
#define CRC_LINE     "crc32c "
#define CRC_LINE_LEN (strlen(CRC_LINE) + 8 + 1)

static const char *const kind_name[] = {
	[EXACT_FILE] = "file",
	[EXACT_DYNAMIC] = "dynamic",
	[EXACT_PROCESS] = "process",
};

/* ---- reading --------------------------------------------------------------------------------- */

struct parser {
	struct exact *e;
	bool tab;
	/* The current image: NULL before its first path. */
	struct exact_image *image;
	bool in_image;
	enum exact_kind kind;
	struct base_id id;
	uint32_t pid;
	/* The values of the line before, as lines ascend. */
	bool any_count, any_edge, any_procedure;
	uint64_t last_off;
	struct exact_edge last_edge;
};

static bool take_word(struct exact_text *t, const char *name)
{
	if (!exact_text_is(t, name))
		return false;
	t->at += strlen(name);
	t->at += t->at < t->end;
	return true;
}

static int parse_run(struct parser *p, struct exact_text *t)
{
	struct exact_run run = { 0 };
	char counter[64];
	int r;

	if (p->tab || p->in_image)
		return -DCPI_EFORMAT;
	if ((r = exact_text_signed(t, &run.utc)) < 0 ||
	    (r = exact_text_number(t, 10, &run.nr_processes)) < 0 ||
	    (r = exact_text_signed(t, &run.status)) < 0 ||
	    (r = exact_text_word(t, counter, sizeof(counter))) < 0 ||
	    (r = exact_text_rest(t, &run.command)) < 0)
		return r;
	run.counter = counter;
	r = exact_run_add(p->e, &run);
	free(run.command);
	return r;
}

static int parse_image(struct parser *p, struct exact_text *t)
{
	uint64_t pid = 0;
	int r = 0;

	if (p->in_image && !p->image)
		return -DCPI_EFORMAT; /* an image without a path */
	p->in_image = true;
	p->image = NULL;
	p->any_count = p->any_edge = p->any_procedure = false;
	p->id = (struct base_id){ 0 };
	if (take_word(t, "file")) {
		p->kind = EXACT_FILE;
		r = exact_text_id(t, &p->id);
	} else if (take_word(t, "dynamic")) {
		p->kind = EXACT_DYNAMIC;
		r = exact_text_id(t, &p->id);
	} else if (take_word(t, "process")) {
		p->kind = EXACT_PROCESS;
		r = exact_text_number(t, 10, &pid);
	} else {
		return -DCPI_EFORMAT;
	}
	p->pid = (uint32_t)pid;
	return r < 0 || pid > INT32_MAX ? -DCPI_EFORMAT : 0;
}

static int parse_path(struct parser *p, struct exact_text *t)
{
	char *path = NULL;
	/* An image without an identity is identified by its path. */
	bool second = p->image && !p->id.len && p->kind != EXACT_PROCESS;
	int r = !second && p->in_image && !p->any_count && !p->any_edge && !p->any_procedure
			? exact_text_rest(t, &path)
			: -DCPI_EFORMAT;

	if (r >= 0)
		r = exact_image_add(p->e, p->kind, &p->id, p->pid, path, &p->image);
	free(path);
	return r;
}

static int put_count(struct parser *p, uint64_t off, uint64_t count)
{
	if (p->any_count && off <= p->last_off)
		return -DCPI_EFORMAT;
	p->any_count = true;
	p->last_off = off;
	return exact_count_add(p->image, off, count);
}

/* Reads "n OFF COUNT [DISTANCE …]": the count of the instruction at OFF and of those behind it. */
static int parse_counts(struct parser *p, struct exact_text *t)
{
	uint64_t off, count, distance;
	int r;

	if (!p->image || p->tab || p->any_edge)
		return -DCPI_EFORMAT;
	if ((r = exact_text_number(t, 16, &off)) < 0 || (r = exact_text_number(t, 10, &count)) < 0)
		return r;
	if (!count)
		return -DCPI_EFORMAT;
	r = put_count(p, off, count);
	while (r >= 0 && t->at < t->end) {
		r = exact_text_number(t, 16, &distance);
		if (r >= 0 && base_add_overflow(off, distance, &off))
			r = -DCPI_EFORMAT;
		if (r >= 0)
			r = put_count(p, off, count);
	}
	return r;
}

/* Reads "e FROM TO COUNT". */
static int parse_edge(struct parser *p, struct exact_text *t)
{
	struct exact_edge e = { 0 };
	int r;

	if (!p->image || p->tab)
		return -DCPI_EFORMAT;
	if ((r = exact_text_number(t, 16, &e.from)) < 0)
		return r;
	if (take_word(t, "-"))
		e.to = EXACT_OUTSIDE;
	else if ((r = exact_text_number(t, 16, &e.to)) < 0)
		return r;
	if ((r = exact_text_number(t, 10, &e.count)) < 0)
		return r;
	if (t->at < t->end || !e.count)
		return -DCPI_EFORMAT;
	if (p->any_edge && (e.from < p->last_edge.from ||
			    (e.from == p->last_edge.from && e.to <= p->last_edge.to)))
		return -DCPI_EFORMAT;
	p->any_edge = true;
	p->last_edge = e;
	return exact_edge_add(p->image, e.from, e.to, e.count);
}

/* Reads "procedure OFF LEN EXACT MASKED NAME", with the hashes "- -" if there are none. */
static int parse_procedure(struct parser *p, struct exact_text *t)
{
	struct exact_procedure v = { 0 };
	int r;

	if (!p->image || !p->tab)
		return -DCPI_EFORMAT;
	if ((r = exact_text_number(t, 16, &v.off)) < 0 ||
	    (r = exact_text_number(t, 16, &v.len)) < 0)
		return r;
	v.hashed = !exact_text_is(t, "-");
	if (v.hashed && (r = exact_text_hash(t, v.hashes.exact)) == 0)
		r = exact_text_hash(t, v.hashes.masked);
	else if (!v.hashed && (!take_word(t, "-") || !take_word(t, "-")))
		r = -DCPI_EFORMAT;
	if (r < 0 || (p->any_procedure && v.off < p->last_off))
		return -DCPI_EFORMAT;
	p->any_procedure = true;
	p->last_off = v.off;
	r = exact_text_rest(t, &v.name);
	if (r >= 0)
		r = exact_procedure_add(p->image, &v);
	free(v.name);
	return r;
}

static int parse_line(struct parser *p, struct exact_text *t)
{
	if (memchr(t->at, '\0', (size_t)(t->end - t->at)))
		return -DCPI_EFORMAT;
	if (take_word(t, "n"))
		return parse_counts(p, t);
	if (take_word(t, "e"))
		return parse_edge(p, t);
	if (take_word(t, "procedure"))
		return parse_procedure(p, t);
	if (take_word(t, "path"))
		return parse_path(p, t);
	if (take_word(t, "image"))
		return parse_image(p, t);
	if (take_word(t, "run"))
		return parse_run(p, t);
	return -DCPI_EFORMAT;
}

/* The checksum covers everything before its line. */
static int check_crc(const char *text, size_t len)
{
	char line[32];

	if (len < CRC_LINE_LEN || text[len - 1] != '\n' ||
	    memcmp(text + len - CRC_LINE_LEN, CRC_LINE, strlen(CRC_LINE)) != 0)
		return -DCPI_ETRUNCATED;
	len -= CRC_LINE_LEN;
	snprintf(line, sizeof(line), CRC_LINE "%08" PRIx32, base_crc32c(0, text, len));
	return memcmp(text + len, line, strlen(line)) == 0 ? 0 : -DCPI_ECHECKSUM;
}

static int check_head(const char *text, size_t len, bool tab)
{
	const char *head = tab ? "dcpi-tab " : "dcpi-xct ";

	if (len < strlen(head) + 2 || memcmp(text, head, strlen(head)) != 0)
		return -DCPI_EFORMAT;
	text += strlen(head);
	return text[0] == '1' && text[1] == '\n' ? 0 : -DCPI_EVERSION;
}

static int parse_lines(struct parser *p, const char *at, const char *end, size_t *line)
{
	int r = 0;

	for (*line = 2; at < end && r >= 0; (*line)++) {
		const char *newline = memchr(at, '\n', (size_t)(end - at));
		struct exact_text t = { at, newline ? newline : end };

		if (!newline)
			return -DCPI_ETRUNCATED;
		r = parse_line(p, &t);
		at = newline + 1;
	}
	if (r >= 0 && p->in_image && !p->image)
		r = -DCPI_EFORMAT;
	return r;
}

static int parse(struct exact *e, const char *text, size_t len, bool tab, const char *name,
		 struct base_err *err)
{
	struct parser p = { .e = e, .tab = tab };
	size_t line = 0;
	int r = check_head(text, len, tab);

	if (r == -DCPI_EFORMAT)
		return base_fail(err, r, "cannot read '%s': no %s file", name,
				 tab ? ".tab" : ".xct");
	if (r >= 0)
		r = check_crc(text, len);
	if (r < 0)
		base_fail_errno(err, r, "cannot read '%s'", name);
	if (r == -DCPI_EVERSION)
		base_hint(err, "a newer DCPI wrote it");
	if (r < 0)
		return r;
	r = parse_lines(&p, text + strlen("dcpi-xct 1\n"), text + len - CRC_LINE_LEN, &line);
	if (r < 0)
		return base_fail_errno(err, r, "cannot read '%s': line %zu", name, line - 1);
	r = exact_sort(e);
	return r < 0 ? base_fail_errno(err, r, "cannot add '%s'", name) : 0;
}

int exact_parse(struct exact *e, const void *data, size_t len, const char *name,
		struct base_err *err)
{
	return parse(e, data, len, false, name, err);
}

int exact_parse_tab(struct exact *e, const void *data, size_t len, const char *name,
		    struct base_err *err)
{
	return parse(e, data, len, true, name, err);
}

static int read_file(struct exact *e, const char *path, bool tab, struct base_err *err)
{
	struct base_buf file = { 0 };
	int r = base_file_read(AT_FDCWD, path, FILE_MAX, &file, err);

	if (r >= 0)
		r = parse(e, (const char *)file.data, file.len, tab, path, err);
	base_buf_release(&file);
	return r;
}

int exact_read(struct exact *e, const char *path, struct base_err *err)
{
	return read_file(e, path, false, err);
}

int exact_read_tab(struct exact *e, const char *path, struct base_err *err)
{
	return read_file(e, path, true, err);
}

/* ---- writing --------------------------------------------------------------------------------- */

static int format_run(const struct exact_run *run, struct base_buf *out)
{
	int r = base_buf_printf(out, "run %" PRId64 " %" PRIu64 " %" PRId64 " %s ", run->utc,
				run->nr_processes, run->status, run->counter);

	if (r >= 0)
		r = exact_text_put(out, run->command);
	return r < 0 ? r : base_buf_append(out, "\n", 1);
}

static int format_head(const struct exact_image *x, struct base_buf *out)
{
	int r = base_buf_printf(out, "image %s ", kind_name[x->kind]);

	if (r >= 0 && x->kind == EXACT_PROCESS)
		r = base_buf_printf(out, "%" PRIu32, x->pid);
	else if (r >= 0)
		r = exact_text_put_hex(out, x->id.bytes, x->id.len);
	for (size_t i = 0; i < x->nr_paths && r >= 0; i++) {
		r = base_buf_printf(out, "\npath ");
		if (r >= 0)
			r = exact_text_put(out, x->paths[i]);
	}
	return r < 0 ? r : base_buf_append(out, "\n", 1);
}

/* Neighbours with equal counts share a line: mostly they are one block. */
enum { NEAR = 16 };

static int format_counts(const struct exact_image *x, struct base_buf *out)
{
	int r = 0;

	for (size_t i = 0; i < x->nr_counts && r >= 0; i++) {
		const struct exact_count *c = &x->counts[i];

		if (i && c->count == c[-1].count && c->off - c[-1].off < NEAR)
			r = base_buf_printf(out, " %" PRIx64, c->off - c[-1].off);
		else
			r = base_buf_printf(out, "%sn %" PRIx64 " %" PRIu64, i ? "\n" : "", c->off,
					    c->count);
	}
	return r < 0 || !x->nr_counts ? r : base_buf_append(out, "\n", 1);
}

static int format_edges(const struct exact_image *x, struct base_buf *out)
{
	int r = 0;

	for (size_t i = 0; i < x->nr_edges && r >= 0; i++) {
		const struct exact_edge *e = &x->edges[i];

		if (e->to == EXACT_OUTSIDE)
			r = base_buf_printf(out, "e %" PRIx64 " - %" PRIu64 "\n", e->from,
					    e->count);
		else
			r = base_buf_printf(out, "e %" PRIx64 " %" PRIx64 " %" PRIu64 "\n", e->from,
					    e->to, e->count);
	}
	return r;
}

static int format_procedure(const struct exact_procedure *p, struct base_buf *out)
{
	size_t len = p->hashed ? sizeof(p->hashes.exact) : 0;
	int r = base_buf_printf(out, "procedure %" PRIx64 " %" PRIx64 " ", p->off, p->len);

	if (r >= 0)
		r = exact_text_put_hex(out, p->hashes.exact, len);
	if (r >= 0)
		r = base_buf_append(out, " ", 1);
	if (r >= 0)
		r = exact_text_put_hex(out, p->hashes.masked, len);
	if (r >= 0)
		r = base_buf_append(out, " ", 1);
	if (r >= 0)
		r = exact_text_put(out, p->name);
	return r < 0 ? r : base_buf_append(out, "\n", 1);
}

static int format_procedures(const struct exact_image *x, struct base_buf *out)
{
	int r = 0;

	for (size_t i = 0; i < x->nr_procedures && r >= 0; i++)
		r = format_procedure(&x->procedures[i], out);
	return r;
}

static int format_image(const struct exact_image *x, bool tab, struct base_buf *out)
{
	int r;

	if (tab ? !x->nr_procedures : !x->nr_counts && !x->nr_edges)
		return 0;
	r = format_head(x, out);
	if (r >= 0 && tab)
		return format_procedures(x, out);
	if (r >= 0)
		r = format_counts(x, out);
	return r < 0 ? r : format_edges(x, out);
}

static int format(struct exact *e, bool tab, struct base_buf *out)
{
	size_t start = out->len;
	int r = exact_sort(e);

	if (r >= 0)
		r = base_buf_printf(out, "dcpi-%s 1\n", tab ? "tab" : "xct");
	for (size_t i = 0; !tab && i < e->nr_runs && r >= 0; i++)
		r = format_run(&e->runs[i], out);
	for (size_t i = 0; i < e->nr_images && r >= 0; i++)
		r = format_image(e->images[i], tab, out);
	if (r < 0)
		return r;
	return base_buf_printf(out, CRC_LINE "%08" PRIx32 "\n",
			       base_crc32c(0, out->data + start, out->len - start));
}

int exact_format(struct exact *e, struct base_buf *out)
{
	return format(e, false, out);
}

int exact_format_tab(struct exact *e, struct base_buf *out)
{
	return format(e, true, out);
}
