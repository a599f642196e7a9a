/* SPDX-License-Identifier: BSD-2-Clause */
/* One line of a recorded stream, taken apart. */
#include <stdarg.h>
#include <string.h>

#include "replay_internal.h"

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

char *replay_word_next(char **at)
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

int replay_line_parse(char *line, struct replay_record *out, char *why)
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
