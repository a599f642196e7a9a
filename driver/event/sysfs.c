/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * PMUs as sysfs describes them: <pmu>/type, <pmu>/format/TERM ("config:0-7,32-35"),
 * <pmu>/events/NAME ("event=0x3c,umask=0x1"). Nothing read here is believed.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "event.h"

enum {
	SYSFS_FILE_MAX = 65536, /* a file of sysfs is at most a page */
	SYSFS_TEXT_MAX = 1024,	/* longest useful text in one file */
	SYSFS_NAMES_MAX = 8192,
	FIELD_RANGES_MAX = 16,
	NR_WORDS = 3,
};

/* ---- reading --------------------------------------------------------------------------------- */

/* Part of a path, and of a text in which '/', ',', '=' and ':' have their own meaning. */
static bool name_ok(const char *name)
{
	if (!isalnum((unsigned char)name[0]) && name[0] != '_')
		return false;
	for (const char *c = name; *c; c++)
		if (!isalnum((unsigned char)*c) && !strchr("_.-", *c))
			return false;
	return strlen(name) < EVENT_PMU_LEN;
}

static int make_path(char *path, size_t len, const char *sysfs, const char *pmu, const char *folder,
		     const char *file)
{
	int n = snprintf(path, len, "%s%s%s%s%s%s%s", sysfs ? sysfs : EVENT_SYSFS, pmu ? "/" : "",
			 pmu ? pmu : "", folder ? "/" : "", folder ? folder : "", file ? "/" : "",
			 file ? file : "");

	return n < 0 || (size_t)n >= len ? -ENAMETOOLONG : 0;
}

/* The file <sysfs>/<pmu>/<folder>/<file> without its newline as a string into @text. Length, or
 * -errno; -DCPI_EFORMAT where it holds other bytes than printable ones. */
static int read_text(const char *sysfs, const char *pmu, const char *folder, const char *file,
		     char *text, size_t text_len)
{
	struct base_buf buf = { 0 };
	char path[1024];
	int r = make_path(path, sizeof(path), sysfs, pmu, folder, file);

	if (r >= 0)
		r = base_file_read(AT_FDCWD, path, SYSFS_FILE_MAX, &buf, NULL);
	if (r >= 0 && buf.len && buf.data[buf.len - 1] == '\n')
		buf.len--;
	if (r >= 0 && buf.len >= text_len)
		r = -DCPI_ELIMIT;
	for (size_t i = 0; r >= 0 && i < buf.len; i++)
		if (buf.data[i] < ' ' || buf.data[i] > '~')
			r = -DCPI_EFORMAT;
	if (r >= 0) {
		if (buf.len)
			memcpy(text, buf.data, buf.len);
		text[buf.len] = '\0';
		r = (int)buf.len;
	}
	base_buf_release(&buf);
	return r;
}

int event_sysfs_number(const char *sysfs, const char *pmu, const char *folder, const char *file,
		       uint64_t max, uint64_t *out)
{
	char text[32];
	int r = read_text(sysfs, pmu, folder, file, text, sizeof(text));

	if (r < 0)
		return r;
	return base_number_parse(text, out) && *out <= max ? 0 : -DCPI_EFORMAT;
}

int64_t event_number_read(const char *path, int64_t otherwise)
{
	int64_t n;
	char text[32];

	if (read_text(path, NULL, NULL, NULL, text, sizeof(text)) < 0 ||
	    !base_signed_parse(text, INT64_MIN, INT64_MAX, &n))
		return otherwise;
	return n;
}

/* ---- listing --------------------------------------------------------------------------------- */

struct names {
	char **items;
	size_t nr, cap;
};

static int compare(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static int read_names(DIR *dir, struct names *out)
{
	const struct dirent *e;

	while ((e = readdir(dir)) && out->nr < SYSFS_NAMES_MAX) {
		if (!name_ok(e->d_name))
			continue;
		if (base_grow(&out->items, &out->cap, out->nr + 1, sizeof(*out->items)) < 0)
			return -ENOMEM;
		out->items[out->nr] = strdup(e->d_name);
		if (!out->items[out->nr])
			return -ENOMEM;
		out->nr++;
	}
	return 0;
}

int event_sysfs_list(const char *sysfs, const char *pmu, const char *folder,
		     int (*each)(void *ctx, const char *name), void *ctx)
{
	struct names all = { 0 };
	char path[1024];
	DIR *dir;
	int r = make_path(path, sizeof(path), sysfs, pmu, folder, NULL);

	if (r < 0)
		return r;
	dir = opendir(path);
	if (!dir)
		return -errno;
	r = read_names(dir, &all);
	closedir(dir);
	if (r >= 0 && all.nr)
		qsort(all.items, all.nr, sizeof(*all.items), compare);
	for (size_t i = 0; i < all.nr; i++) {
		if (r == 0)
			r = each(ctx, all.items[i]);
		free(all.items[i]);
	}
	free(all.items);
	return r;
}

/* Whether <sysfs>/<pmu>/events/<name> is there. */
static bool has_event(const char *sysfs, const char *pmu, const char *name)
{
	char path[1024];

	return name_ok(name) && make_path(path, sizeof(path), sysfs, pmu, "events", name) == 0 &&
	       access(path, F_OK) == 0;
}

struct core {
	const char *sysfs, *name;
	char *pmu;
};

/* x86's only one is 'cpu'; others, and CPUs of several kinds, list their CPUs in a file 'cpus'. */
static int look_in(void *ctx, const char *pmu)
{
	const struct core *c = ctx;
	char path[1024];

	if (strcmp(pmu, "cpu") != 0 &&
	    (make_path(path, sizeof(path), c->sysfs, pmu, NULL, "cpus") < 0 ||
	     access(path, F_OK) < 0))
		return 0;
	if (!has_event(c->sysfs, pmu, c->name))
		return 0;
	snprintf(c->pmu, EVENT_PMU_LEN, "%s", pmu);
	return 1;
}

int event_sysfs_core(const char *sysfs, const char *name, char *pmu)
{
	struct core c = { sysfs, name, pmu };

	return event_sysfs_list(sysfs, NULL, NULL, look_in, &c) > 0 ? 0 : -ENOENT;
}

/* ---- terms ----------------------------------------------------------------------------------- */

struct resolve {
	const char *sysfs, *pmu;
	struct event_spec *out;
	char *name;
	bool inside; /* the text of an event of sysfs, which names no further one */
	struct base_err *err;
};

/* Bits of a config word that a term fills, from its lowest bit on. */
struct field {
	unsigned int word;
	size_t nr;
	struct {
		unsigned int first, last;
	} range[FIELD_RANGES_MAX];
};

static bool bit_parse(const char **at, unsigned int *out)
{
	unsigned int n = 0;
	const char *start = *at;

	while (isdigit((unsigned char)**at) && n < 64)
		n = n * 10 + (unsigned int)(*(*at)++ - '0');
	*out = n;
	return *at != start && n < 64;
}

static bool range_parse(const char **at, unsigned int *first, unsigned int *last)
{
	if (!bit_parse(at, first))
		return false;
	*last = *first;
	if (**at != '-')
		return true;
	(*at)++;
	return bit_parse(at, last) && *last >= *first;
}

/* "config:0-7,32-35". 0, -DCPI_EFORMAT, -DCPI_EUNSUPPORTED for a word that newer kernels have. */
static int field_parse(const char *text, struct field *f)
{
	static const char *const words[NR_WORDS] = { "config:", "config1:", "config2:" };

	*f = (struct field){ .word = NR_WORDS };
	for (unsigned int i = 0; i < NR_WORDS; i++)
		if (!strncmp(text, words[i], strlen(words[i])))
			f->word = i;
	if (f->word == NR_WORDS)
		return strncmp(text, "config", 6) ? -DCPI_EFORMAT : -DCPI_EUNSUPPORTED;
	text += strlen(words[f->word]);
	for (;; text++) {
		if (f->nr == FIELD_RANGES_MAX ||
		    !range_parse(&text, &f->range[f->nr].first, &f->range[f->nr].last))
			return -DCPI_EFORMAT;
		f->nr++;
		if (*text != ',')
			return *text ? -DCPI_EFORMAT : 0;
	}
}

/* False: @value has more bits than the field. */
static bool field_set(const struct field *f, uint64_t value, uint64_t *word)
{
	for (size_t i = 0; i < f->nr; i++) {
		for (unsigned int bit = f->range[i].first; bit <= f->range[i].last; bit++) {
			*word = (*word & ~(1ull << bit)) | (value & 1) << bit;
			value >>= 1;
		}
	}
	return value == 0;
}

static uint64_t *config_word(struct event_spec *spec, unsigned int index)
{
	return index == 0 ? &spec->config : index == 1 ? &spec->config1 : &spec->config2;
}

static int unknown_term(const struct resolve *r, const char *term)
{
	static const char *const words[] = { "config", "config1", "config2", "name", "period" };
	struct event_near near;

	base_fail(r->err, -DCPI_EUSAGE, "PMU '%s' has no event or term '%s'", r->pmu, term);
	event_near_init(&near, term);
	event_sysfs_list(r->sysfs, r->pmu, "events", event_near_add, &near);
	event_sysfs_list(r->sysfs, r->pmu, "format", event_near_add, &near);
	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		event_near_add(&near, words[i]);
	event_near_hint(&near, "its folders 'events' and 'format' in sysfs name them", r->err);
	return -DCPI_EUSAGE;
}

static int bad_value(const struct resolve *r, const char *term, const char *value)
{
	return base_fail(r->err, -DCPI_EUSAGE, "value '%s' of term '%s' of PMU '%s' is no number",
			 value, term, r->pmu);
}

static int set_field(const struct resolve *r, const char *term, const char *value)
{
	char text[SYSFS_TEXT_MAX];
	struct field f;
	uint64_t n = 1;
	int e = name_ok(term) ? read_text(r->sysfs, r->pmu, "format", term, text, sizeof(text))
			      : -ENOENT;

	if (e < 0)
		return unknown_term(r, term);
	e = field_parse(text, &f);
	if (e < 0)
		return base_fail_errno(r->err, e, "cannot use term '%s' of PMU '%s', '%s'", term,
				       r->pmu, text);
	if (value && !base_number_parse(value, &n))
		return bad_value(r, term, value);
	if (!field_set(&f, n, config_word(r->out, f.word)))
		return base_fail(r->err, -DCPI_EUSAGE,
				 "value '%s' of term '%s' of PMU '%s' is too large for '%s'", value,
				 term, r->pmu, text);
	return 0;
}

static int each_term(const struct resolve *r, char *terms);

/* The text behind a name in 'events'. */
static int set_event(const struct resolve *r, const char *term)
{
	struct resolve inner = *r;
	char text[SYSFS_TEXT_MAX], ignored[EVENT_NAME_LEN] = "";
	int e = read_text(r->sysfs, r->pmu, "events", term, text, sizeof(text));

	if (e < 0)
		return base_fail_errno(r->err, e, "cannot read event '%s' of PMU '%s'", term,
				       r->pmu);
	inner.inside = true;
	inner.name = ignored;
	return each_term(&inner, text);
}

/* 1: done, 0: no such word. */
static int set_word(const struct resolve *r, const char *term, const char *value)
{
	static const char *const words[NR_WORDS] = { "config", "config1", "config2" };
	uint64_t n = 0;

	if (!value)
		return 0;
	if (!strcmp(term, "name")) {
		if (strlen(value) >= EVENT_NAME_LEN || !*value)
			return base_fail(r->err, -DCPI_EUSAGE,
					 "name '%s' of an event: not 1 to %d bytes", value,
					 EVENT_NAME_LEN - 1);
		snprintf(r->name, EVENT_NAME_LEN, "%s", value);
		return 1;
	}
	for (unsigned int i = 0; i < NR_WORDS; i++) {
		if (strcmp(term, words[i]) != 0)
			continue;
		if (!base_number_parse(value, &n))
			return bad_value(r, term, value);
		*config_word(r->out, i) = n;
		return 1;
	}
	if (strcmp(term, "period") != 0)
		return 0;
	return base_number_parse(value, &r->out->period) ? 1 : bad_value(r, term, value);
}

static int one_term(const struct resolve *r, char *term)
{
	char *value = strchr(term, '=');
	int e;

	if (value)
		*value++ = '\0';
	e = set_word(r, term, value);
	if (e)
		return e;
	if (!value && !r->inside && has_event(r->sysfs, r->pmu, term))
		return set_event(r, term);
	return set_field(r, term, value);
}

/* @terms is cut up. */
static int each_term(const struct resolve *r, char *terms)
{
	char *term;
	int e = 0;

	while (e >= 0 && (term = strsep(&terms, ",")))
		e = *term ? one_term(r, term)
			  : base_fail(r->err, -DCPI_EUSAGE, "empty term of PMU '%s'", r->pmu);
	return e < 0 ? e : 0;
}

static int unknown_pmu(const char *sysfs, const char *pmu, struct base_err *err)
{
	struct event_near near;

	base_fail(err, -DCPI_EUSAGE, "this machine has no PMU '%s'", pmu);
	event_near_init(&near, pmu);
	event_sysfs_list(sysfs, NULL, NULL, event_near_add, &near);
	event_near_hint(&near, "'" EVENT_SYSFS "' lists them", err);
	return -DCPI_EUSAGE;
}

int event_sysfs_resolve(const char *sysfs, const char *pmu, const char *terms,
			struct event_spec *out, char *name, struct base_err *err)
{
	struct resolve r = { .sysfs = sysfs, .pmu = pmu, .out = out, .name = name, .err = err };
	char text[EVENT_TEXT_MAX];
	uint64_t type;

	*name = '\0';
	if (!name_ok(pmu) || event_sysfs_number(sysfs, pmu, NULL, "type", UINT32_MAX, &type) < 0)
		return unknown_pmu(sysfs, pmu, err);
	out->type = (uint32_t)type;
	if (strlen(terms) >= sizeof(text))
		return base_fail(err, -DCPI_EUSAGE, "event of more than %zu bytes",
				 sizeof(text) - 1);
	snprintf(text, sizeof(text), "%s", terms);
	return *text ? each_term(&r, text) : 0;
}
