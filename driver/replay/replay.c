/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The source "replay": a recorded stream, as docs/format/replay.md has it. A file of perf's is told
 * by its first byte and read by perfdata.c.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "perfdata_internal.h"
#include "replay_internal.h"
#include "wire.h"

/* ---- one line -------------------------------------------------------------------------------- */

/* Values of absent keys are the documented defaults. */
struct fields {
	uint32_t seen;
	uint64_t num[REPLAY_NR_KEYS];
	int32_t pid[REPLAY_NR_KEYS];
	struct base_id id;
	const char *path;
	uint8_t *data; /* decoded in place, from the line's start on */
	size_t data_len;
};

static int bad(char *why, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static int bad(char *why, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(why, REPLAY_WHY_LEN, fmt, args);
	va_end(args);
	return -DCPI_EFORMAT;
}

/* The next word at *@at, cut off in place; NULL at the end. */
static char *replay_word_next(char **at)
{
	char *w = *at + strspn(*at, " ");

	if (!*w)
		return NULL;
	*at = w + strcspn(w, " ");
	if (**at)
		*(*at)++ = '\0';
	return w;
}

static bool mode_parse(const char *s, uint64_t *out)
{
	for (size_t i = 0; i <= DRIVER_OTHER; i++) {
		if (!strcmp(s, replay_modes[i])) {
			*out = i;
			return true;
		}
	}
	return false;
}

/* Undo the escapes of newline and backslash, in place. */
static bool path_parse(char *s)
{
	char *to = s;

	for (; *s; s++) {
		if (*s == '\\') {
			s++;
			if (*s != 'n' && *s != '\\')
				return false;
			*to++ = *s == 'n' ? '\n' : '\\';
			continue;
		}
		*to++ = *s;
	}
	*to = '\0';
	return true;
}

/* Hex digits at @s become bytes at @to, which lies before them in the same buffer. */
static bool data_parse(const char *s, uint8_t *to, size_t *len)
{
	size_t n = 0;

	for (; *s; s += 2) {
		int hi = base_digit(s[0]), lo = base_digit(s[1]);

		if (hi < 0 || lo < 0)
			return false;
		to[n++] = (uint8_t)(hi << 4 | lo);
	}
	*len = n;
	return true;
}

static uint64_t number_max(enum replay_key key)
{
	switch (key) {
	case REPLAY_GONE:
	case REPLAY_UNREAD:
		return 1;
	case REPLAY_EVENT:
	case REPLAY_GENERATION:
	case REPLAY_PROT:
	case REPLAY_MAJOR:
	case REPLAY_MINOR:
		return UINT32_MAX;
	default:
		return UINT64_MAX;
	}
}

static bool value_parse(struct fields *f, enum replay_key key, char *line, char *value)
{
	int64_t pid = 0;
	bool good;

	switch (key) {
	case REPLAY_PID:
	case REPLAY_PPID:
	case REPLAY_TID:
		good = base_signed_parse(value, -1, INT32_MAX, &pid);
		f->pid[key] = (int32_t)pid;
		return good;
	case REPLAY_MODE:
		return mode_parse(value, &f->num[key]);
	case REPLAY_ID:
		return base_id_parse(&f->id, value, strlen(value)) == 0;
	case REPLAY_DATA:
		/* The words before it are used up by now: the last key but path, which is of
		 * other kinds. */
		f->data = (uint8_t *)line;
		return data_parse(value, f->data, &f->data_len);
	case REPLAY_PATH:
		f->path = value;
		return path_parse(value);
	default:
		return base_number_parse(value, &f->num[key]) && f->num[key] <= number_max(key);
	}
}

/* ---- record lines ---------------------------------------------------------------------------- */

static int key_find(const char *word, size_t len)
{
	for (int k = 0; k < REPLAY_NR_KEYS; k++) {
		if (strlen(replay_keys[k]) == len && !memcmp(replay_keys[k], word, len))
			return k;
	}
	return -1;
}

static int kind_find(const char *word)
{
	for (int k = 0; k < REPLAY_NR_KINDS; k++) {
		if (!strcmp(replay_kinds[k].name, word))
			return k;
	}
	return -1;
}

/* One key=value at *@at; @allowed: the keys that this kind of line may have. */
static int field_parse(struct fields *f, uint32_t allowed, char *line, char **at, char *why)
{
	char *word = *at;
	size_t len = strcspn(word, "= ");
	int key = word[len] == '=' ? key_find(word, len) : -1;

	if (key < 0 || !(allowed & 1u << key))
		return bad(why, "unknown key '%.*s'", len > 40 ? 40 : (int)len, word);
	if (f->seen & 1u << key)
		return bad(why, "'%s=' twice", replay_keys[key]);
	if (f->seen & REPLAY_BIT(DATA))
		return bad(why, "'data=' is not last");
	f->seen |= 1u << key;
	if (key == REPLAY_PATH)
		*at += strlen(*at);
	else
		replay_word_next(at);
	if (!value_parse(f, (enum replay_key)key, line, word + len + 1))
		return bad(why, "bad value of '%s='", replay_keys[key]);
	return 0;
}

static int fields_parse(struct fields *f, const struct replay_kind *kind, char *line, char *at,
			char *why)
{
	uint32_t missing;
	int r;

	*f = (struct fields){ .num[REPLAY_PROT] = REPLAY_PROT_DEFAULT, .num[REPLAY_COUNT] = 1 };
	for (at += strspn(at, " "); *at; at += strspn(at, " ")) {
		r = field_parse(f, kind->must | kind->may, line, &at, why);
		if (r < 0)
			return r;
	}
	if (!(f->seen & REPLAY_BIT(TID)))
		f->pid[REPLAY_TID] = f->pid[REPLAY_PID];
	missing = kind->must & ~f->seen;
	if (missing)
		return bad(why, "'%s' needs '%s='", kind->name,
			   replay_keys[__builtin_ctz(missing)]);
	return 0;
}

static void load_fill(struct driver_load *load, enum driver_load_kind kind, const struct fields *f)
{
	*load = (struct driver_load){
		.kind = kind,
		.time_ns = f->num[REPLAY_TIME],
		.pid = f->pid[REPLAY_PID],
		.ppid = f->pid[REPLAY_PPID],
		.tid = f->pid[REPLAY_TID],
		.flags = (f->num[REPLAY_GONE] ? DRIVER_LOAD_GONE : 0) |
			 (f->seen & REPLAY_BIT(CURSOR) ? DRIVER_LOAD_CURSOR : 0),
		.cursor = f->num[REPLAY_CURSOR],
		.addr = f->num[REPLAY_ADDR],
		.len = f->num[REPLAY_LEN],
		.file_off = f->num[REPLAY_OFF],
		.prot = kind == DRIVER_LOAD_MMAP ? (uint32_t)f->num[REPLAY_PROT] : 0,
		.dev_major = (uint32_t)f->num[REPLAY_MAJOR],
		.dev_minor = (uint32_t)f->num[REPLAY_MINOR],
		.inode = f->num[REPLAY_INODE],
		.id = f->id,
		.path = f->path,
		.data = f->data,
		.data_len = f->data_len,
	};
}

static void count_fill(struct driver_count *count, const struct fields *f)
{
	*count = (struct driver_count){
		.first_ns = f->num[f->seen & REPLAY_BIT(FIRST) ? REPLAY_FIRST : REPLAY_TIME],
		.time_ns = f->num[REPLAY_TIME],
		.pid = f->pid[REPLAY_PID],
		.tid = f->pid[REPLAY_TID],
		.event = (uint32_t)f->num[REPLAY_EVENT],
		.mode = (enum driver_mode)f->num[REPLAY_MODE],
		.generation = (uint32_t)f->num[REPLAY_GENERATION],
		.generation_read = f->seen & REPLAY_BIT(GENERATION),
		.generation_unread = f->num[REPLAY_UNREAD] != 0,
		.addr = f->num[REPLAY_ADDR],
		.count = f->num[REPLAY_COUNT],
	};
}

/*
 * Take @line (writable, 8-byte aligned, without its newline) apart; it is cut up and overwritten.
 * 0, or -DCPI_EFORMAT with the cause in @why (REPLAY_WHY_LEN bytes).
 */
static int replay_line_parse(char *line, struct replay_record *out, char *why)
{
	char *at = line, *word = replay_word_next(&at);
	struct fields f;
	int kind, r;

	if (!word)
		return bad(why, "blanks alone");
	kind = kind_find(word);
	if (kind < 0)
		return bad(why, "unknown kind of record '%.40s'", word);
	r = fields_parse(&f, &replay_kinds[kind], line, at, why);
	if (r < 0)
		return r;
	out->is_count = kind == REPLAY_COUNT_LINE;
	if (out->is_count)
		count_fill(&out->count, &f);
	else
		load_fill(&out->load, (enum driver_load_kind)kind, &f);
	return 0;
}

/* ---- lines ----------------------------------------------------------------------------------- */

/* Few enough that a daemon's drains between two flushes are exercised by a stream of any size. */
enum { REPLAY_DRAIN_RECORDS = 4096 };
/* The longest wire record in hex, and room for the rest of its line. */
#define REPLAY_LINE_MAX (2 * WIRE_RECORD_MAX + 65536u)

struct replay {
	struct driver base;
	FILE *in;
	char *name;
	struct base_buf line; /* the current one, with its NUL */
	uint64_t line_nr;
	bool waiting;		 /* line was read ahead and not yet used */
	bool ended;		 /* nothing more is read */
	struct base_err failure; /* the stream stays failed */
};

static int bad_line(const struct replay *p, struct base_err *err, int code, const char *fmt, ...)
	__attribute__((format(printf, 4, 5)));

static int bad_line(const struct replay *p, struct base_err *err, int code, const char *fmt, ...)
{
	char why[200];
	va_list args;

	va_start(args, fmt);
	vsnprintf(why, sizeof(why), fmt, args);
	va_end(args);
	return base_fail(err, code, "cannot replay '%s': line %" PRIu64 ": %s", p->name, p->line_nr,
			 why);
}

/* ---- lines ----------------------------------------------------------------------------------- */

static int line_put(struct replay *p, char c)
{
	return base_buf_append(&p->line, &c, 1);
}

/* 1: a line stands in p->line; 0: end of the stream. */
static int line_read(struct replay *p, struct base_err *err)
{
	int c, r;

	if (p->ended)
		return 0;
	if (p->waiting) {
		p->waiting = false;
		return 1;
	}
	base_buf_clear(&p->line);
	p->line_nr++;
	while ((c = getc_unlocked(p->in)) != EOF && c != '\n') {
		if (!c)
			return bad_line(p, err, -DCPI_EFORMAT, "NUL byte");
		if (p->line.len >= REPLAY_LINE_MAX)
			return bad_line(p, err, -DCPI_EFORMAT, "line too long");
		r = line_put(p, (char)c);
		if (r < 0)
			return bad_line(p, err, r, "%s", base_strerror(r));
	}
	p->ended = c == EOF && ferror(p->in) && errno == ECANCELED;
	if (p->ended)
		return 0;
	if (c == EOF && ferror(p->in))
		return bad_line(p, err, -EIO, "%s", base_strerror(-EIO));
	if (c == EOF && p->line.len)
		return bad_line(p, err, -DCPI_ETRUNCATED, "cut in the middle of a line");
	if (c == EOF)
		return 0;
	r = line_put(p, '\0');
	return r < 0 ? bad_line(p, err, r, "%s", base_strerror(r)) : 1;
}

static bool line_is_empty(const char *line)
{
	return *line == '\0' || *line == '#';
}

/* ---- the head -------------------------------------------------------------------------------- */

static int magic_parse(struct replay *p, struct base_err *err)
{
	int r = line_read(p, err);
	char *at, *word;
	uint64_t version;

	if (r < 0)
		return r;
	at = r ? (char *)p->line.data : NULL;
	word = at ? replay_word_next(&at) : NULL;
	if (!word || strcmp(word, REPLAY_MAGIC))
		return base_fail(err, -DCPI_EFORMAT, "cannot replay '%s': not a recorded stream",
				 p->name);
	word = replay_word_next(&at);
	if (!word || !base_number_parse(word, &version) || replay_word_next(&at))
		return bad_line(p, err, -DCPI_EFORMAT, "bad version");
	if (version != REPLAY_VERSION)
		return bad_line(p, err, -DCPI_EVERSION, "version %" PRIu64 " is not known",
				version);
	return 0;
}

/* As profiles take it. */
static bool event_name_ok(const char *name)
{
	const unsigned char *c = (const unsigned char *)name;

	while (*c > ' ' && *c != 0x7f)
		c++;
	return !*c;
}

static bool event_is_known(const struct driver *d, const char *name)
{
	for (size_t i = 0; i < d->nr_events; i++)
		if (!strcmp(d->events[i].name, name))
			return true;
	return false;
}

static int event_line_parse(struct replay *p, char *at, struct base_err *err)
{
	char *name = replay_word_next(&at), *period = name ? replay_word_next(&at) : NULL;
	struct driver_event *e = &p->base.events[p->base.nr_events];

	if (p->base.nr_events == DRIVER_NR_EVENTS)
		return bad_line(p, err, -DCPI_EFORMAT, "more than %d events", DRIVER_NR_EVENTS);
	if (!period || strlen(name) >= sizeof(e->name) || !event_name_ok(name) ||
	    !base_number_parse(period, &e->period) || replay_word_next(&at))
		return bad_line(p, err, -DCPI_EFORMAT, "bad event");
	/* A profile has one of that name: samples of the other would be lost, or be its. */
	if (event_is_known(&p->base, name))
		return bad_line(p, err, -DCPI_EFORMAT, "event '%s' twice", name);
	memcpy(e->name, name, strlen(name) + 1);
	e->enabled = 1;
	p->base.nr_events++;
	return 0;
}

static int utc_parse(struct replay *p, char *at, bool *seen, struct base_err *err)
{
	char *word = replay_word_next(&at);

	if (*seen || !word || !base_signed_parse(word, 0, INT64_MAX, &p->base.utc) ||
	    replay_word_next(&at))
		return bad_line(p, err, -DCPI_EFORMAT, "bad utc");
	*seen = true;
	return 0;
}

/* True if @line begins with the word @word; *@rest is what follows it. */
static bool line_begins(char *line, const char *word, char **rest)
{
	size_t len = strlen(word);

	*rest = line + len;
	return !strncmp(line, word, len) && (line[len] == ' ' || !line[len]);
}

static int head_parse(struct replay *p, struct base_err *err)
{
	bool utc = false;
	char *line, *rest;
	int r = magic_parse(p, err);

	while (r >= 0) {
		r = line_read(p, err);
		if (r <= 0)
			break;
		line = (char *)p->line.data;
		if (line_is_empty(line))
			continue;
		if (line_begins(line, "utc", &rest)) {
			r = utc_parse(p, rest, &utc, err);
		} else if (line_begins(line, "event", &rest)) {
			r = event_line_parse(p, rest, err);
		} else {
			p->waiting = true;
			break;
		}
	}
	if (r >= 0 && !utc)
		r = bad_line(p, err, -DCPI_EFORMAT, "no 'utc' before the first record");
	return r < 0 ? r : 0;
}

/* ---- the source ------------------------------------------------------------------------------ */

static int replay_start(struct driver *d, struct base_err *err)
{
	(void)d;
	(void)err;
	return 0;
}

static int count_hand(struct replay *p, const struct driver_count *count,
		      const struct driver_sink *sink, struct base_err *err)
{
	uint64_t *received;

	if (count->event >= p->base.nr_events)
		return bad_line(p, err, -DCPI_EFORMAT, "event %" PRIu32 " was not announced",
				count->event);
	received = &p->base.stats.received[count->event];
	if (base_add_overflow(*received, count->count, received))
		return bad_line(p, err, -DCPI_EFORMAT, "sum of counts does not fit");
	return sink->count(sink->ctx, count);
}

/* 1: a record was handed on; 0: end of the stream. A failure without @err is the sink's. */
static int replay_step(struct replay *p, const struct driver_sink *sink, struct base_err *err)
{
	struct replay_record rec;
	char why[REPLAY_WHY_LEN];
	int r;

	do {
		r = line_read(p, err);
		if (r <= 0)
			return r;
	} while (line_is_empty((char *)p->line.data));
	r = replay_line_parse((char *)p->line.data, &rec, why);
	if (r < 0)
		return bad_line(p, err, r, "%s", why);
	if (rec.is_count)
		r = count_hand(p, &rec.count, sink, err);
	else
		r = sink->load(sink->ctx, &rec.load);
	return r < 0 ? r : 1;
}

static int replay_drain(struct driver *d, bool all, const struct driver_sink *sink,
			struct base_err *err)
{
	struct replay *p = (struct replay *)d;
	uint64_t end_ns = replay_drain_end(p->in);
	int r = 1;

	(void)all; /* nothing is ever held: the file's order is the order */
	for (int n = 0; n < REPLAY_DRAIN_RECORDS && r > 0 && !p->failure.code; n++) {
		r = replay_step(p, sink, &p->failure);
		if (end_ns != UINT64_MAX && base_now_ns() > end_ns)
			break;
	}
	if (!p->failure.code)
		return r;
	return base_fail(err, p->failure.code, "%s", p->failure.text);
}

static int replay_poll_fd(const struct driver *d)
{
	(void)d;
	return -1;
}

static void replay_stop(struct driver *d)
{
	((struct replay *)d)->ended = true;
}

static void replay_close(struct driver *d)
{
	struct replay *p = (struct replay *)d;

	fclose(p->in);
	base_buf_release(&p->line);
	free(p->name);
	free(p);
}

static const struct driver_ops replay_ops = {
	.start = replay_start,
	.drain = replay_drain,
	.poll_fd = replay_poll_fd,
	.stop = replay_stop,
	.close = replay_close,
};

int replay_open_stream(FILE *in, const char *name, struct driver **out, struct base_err *err)
{
	struct replay *p = calloc(1, sizeof(*p));
	int r = -ENOMEM;

	if (p)
		p->name = strdup(name);
	if (!p || !p->name) {
		fclose(in);
		free(p);
		return base_fail_errno(err, r, "cannot replay '%s'", name);
	}
	p->in = in;
	p->base.ops = &replay_ops;
	snprintf(p->base.describe, sizeof(p->base.describe), "replay: '%s'", name);
	r = head_parse(p, err);
	if (r < 0)
		replay_close(&p->base);
	else
		*out = &p->base;
	return r;
}

int replay_open(const struct driver_config *config, struct driver **out, struct base_err *err)
{
	FILE *in = NULL;
	int r, c;

	if (!config->replay_path)
		return base_fail(err, -DCPI_EUSAGE, "no file to replay");
	r = replay_input_open(config, &in, err);
	if (r < 0)
		return r;
	c = getc(in);
	ungetc(c, in);
	if (perfdata_begins(c))
		return perfdata_open_stream(in, config->replay_path, out, err);
	return replay_open_stream(in, config->replay_path, out, err);
}
