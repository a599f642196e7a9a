/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The names of files in an epoch are made of profiles here, and read back into keys and versions.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "profdb_internal.h"

/*
 * STEM.KIND.ID, for people and for us: ID is the image's identity, or "p" and a hash of its path
 * where it has none. Of the word "text" the first 8 digits stand behind it (ID-tDIGITS). Of the
 * word "process" its value stands behind it (ID-PID-START), then that of
 * "label" (ID_LABEL). A pseudo-image changes its identity as it grows: STEM.dynamic. A file of one
 * event alone: STEM.KIND.ID+EVENT, STEM+EVENT.dynamic. Values are behind that, and PROFILER.values.
 * A second file of the same key, beside one
 * that cannot be read, is NAME~1.
 */
enum {
	STEM_MAX = 100,
	LABELLED_STEM_MAX = 80,
	PROCESS_MAX = 31,
	TEXT_MAX = 8,
	LABEL_MAX = 16,
	EVENT_MAX = 16
};
enum { VALUES_STEM_MAX = 40, PROFILER_MAX = 20 };

static const char dynamic[] = ".dynamic", values[] = ".values";

static void hash_text(const char *text, char out[17])
{
	struct base_sha256 s;
	uint8_t sum[32];

	base_sha256_init(&s);
	base_sha256_add(&s, text, strlen(text));
	base_sha256_end(&s, sum);
	for (int i = 0; i < 8; i++)
		snprintf(out + 2 * i, 3, "%02x", sum[i]);
}

static bool plain(char c)
{
	return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
	       (c && strchr("._+-", c));
}

/* True where @stem had to be changed. */
static bool clean_stem(const char *stem, char out[STEM_MAX + 1])
{
	size_t len = 0;

	for (; stem[len] && len < STEM_MAX; len++)
		out[len] = plain(stem[len]) && (len || !strchr(".-", stem[len])) ? stem[len] : '_';
	out[len] = '\0';
	if (!len)
		strcpy(out, "_");
	return strcmp(out, stem) != 0;
}

static void id_part(const struct profdb_profile *p, char id[BASE_ID_TEXT_LEN])
{
	const char *path = profdb_profile_path(p, 0);

	if (p->image.len && p->kind != PROFDB_NAMED) {
		base_id_text(&p->image, id);
		return;
	}
	id[0] = 'p';
	hash_text(path ? path : "", id + 1);
}

/* "-tDIGITS" of a file that is one of several of its identity. */
static void text_part(const struct profdb_profile *p, char text[TEXT_MAX + 3])
{
	const char *word = profdb_profile_word(p, "text");
	size_t len = word ? strspn(word, "0123456789abcdef") : 0;

	snprintf(text, TEXT_MAX + 3, "%s%.*s", len ? "-t" : "",
		 (int)(len < TEXT_MAX ? len : TEXT_MAX), len ? word : "");
}

/* "-PID-START" of a profile that is one process's alone, empty for all others. */
static void process_part(const struct profdb_profile *p, char process[PROCESS_MAX + 2])
{
	const char *word = profdb_profile_word(p, "process");
	bool ok = word && *word && strlen(word) <= PROCESS_MAX &&
		  strspn(word, "0123456789-") == strlen(word);

	snprintf(process, PROCESS_MAX + 2, "%s%s", ok ? "-" : "", ok ? word : "");
}

/* "_LABEL"; one with other bytes, or a long one, is told from others by its hash. */
static void label_part(const struct profdb_profile *p, char out[LABEL_MAX + 2])
{
	const char *label = profdb_profile_word(p, "label");
	char text[8], hash[17];
	size_t len = 0;
	bool ok = label && strlen(label) <= LABEL_MAX;

	*out = '\0';
	if (!label)
		return;
	for (size_t i = 0; label[i] && ok; i++)
		ok = plain(label[i]) && !strchr("._+", label[i]);
	if (ok) {
		snprintf(out, LABEL_MAX + 2, "_%s", label);
		return;
	}
	for (; label[len] && len < sizeof(text) - 1; len++)
		text[len] = plain(label[len]) && !strchr("._+", label[len]) ? label[len] : '-';
	text[len] = '\0';
	hash_text(label, hash);
	snprintf(out, LABEL_MAX + 2, "_%s_%.8s", text, hash);
}

/* "+EVENT": a name with other bytes, or a long one, is told from others by its hash. */
static void event_part(const char *event, char out[EVENT_MAX + 12])
{
	char text[EVENT_MAX + 1], hash[17];
	size_t len = 0;

	*out = '\0';
	if (!event)
		return;
	for (; event[len] && len < EVENT_MAX; len++)
		text[len] = plain(event[len]) && event[len] != '.' ? event[len] : '_';
	text[len] = '\0';
	if (!strcmp(text, event)) {
		snprintf(out, EVENT_MAX + 12, "+%s", text);
		return;
	}
	hash_text(event, hash);
	snprintf(out, EVENT_MAX + 12, "+%.8s-%s", text, hash);
}

/* The common start of the names of a pseudo-image's files. */
static void dynamic_part(const char *stem, char out[STEM_MAX + 18])
{
	char text[STEM_MAX + 1], hash[17];

	if (clean_stem(stem, text)) {
		hash_text(stem, hash);
		snprintf(out, STEM_MAX + 18, "%s-%s", text, hash);
	} else {
		snprintf(out, STEM_MAX + 18, "%s", text);
	}
}

void profdb_key(const struct profdb_profile *p, const char *stem, const char *event,
		char key[PROFDB_KEY_MAX])
{
	char id[BASE_ID_TEXT_LEN], text[STEM_MAX + 18], process[PROCESS_MAX + 2];
	char label[LABEL_MAX + 2], only[EVENT_MAX + 12], code[TEXT_MAX + 3];

	event_part(event, only);
	if (p->kind != PROFDB_DYNAMIC) {
		id_part(p, id);
		text_part(p, code);
		process_part(p, process);
		label_part(p, label);
		snprintf(key, PROFDB_KEY_MAX, "%s.%s%s%s%s%s", profdb_kind_name(p->kind), id, code,
			 process, label, only);
	} else {
		dynamic_part(stem, text);
		snprintf(key, PROFDB_KEY_MAX, "%s%s%s", text, only, dynamic);
	}
}

void profdb_file_name(const struct profdb_profile *p, const char *stem, const char *event,
		      unsigned int version, char name[256])
{
	char key[PROFDB_KEY_MAX], text[STEM_MAX + 1] = "", tail[12] = "";

	profdb_key(p, stem, event, key);
	if (p->kind != PROFDB_DYNAMIC)
		clean_stem(stem, text);
	if (version)
		snprintf(tail, sizeof(tail), "~%u", version);
	/* Keys with a label may be longer than others. */
	if (profdb_profile_word(p, "label"))
		text[LABELLED_STEM_MAX] = '\0';
	snprintf(name, 256, "%.100s%s%.142s%s", text, *text ? "." : "", key, tail);
}

/* "vp-addr", "values+replay"; one with other bytes, or a long one, is told from others by its hash.
 */
static void profiler_part(const char *profiler, char out[PROFILER_MAX + 1])
{
	char hash[17];
	size_t len = 0;
	bool ok = strlen(profiler) <= PROFILER_MAX;

	for (; profiler[len] && len < PROFILER_MAX; len++) {
		ok = ok && plain(profiler[len]) && profiler[len] != '+';
		out[len] = profiler[len] == '.' ? '+' : plain(profiler[len]) ? profiler[len] : '_';
	}
	out[len] = '\0';
	if (ok)
		return;
	hash_text(profiler, hash);
	snprintf(out + (len < 11 ? len : 11), 10, "-%.8s", hash);
}

void profdb_values_key(const struct profdb_values *v, const char *stem, char key[PROFDB_KEY_MAX])
{
	char profiler[PROFILER_MAX + 1], base[PROFDB_KEY_MAX];

	profiler_part(v->profiler, profiler);
	profdb_key(v->header, stem, NULL, base);
	snprintf(key, PROFDB_KEY_MAX, "%.200s.%s%s", base, profiler, values);
}

void profdb_values_file_name(const struct profdb_values *v, const char *stem, unsigned int version,
			     char name[256])
{
	char key[PROFDB_KEY_MAX], text[STEM_MAX + 1] = "", tail[12] = "";

	profdb_values_key(v, stem, key);
	if (v->header->kind != PROFDB_DYNAMIC)
		clean_stem(stem, text);
	if (version)
		snprintf(tail, sizeof(tail), "~%u", version);
	snprintf(name, 256, "%.*s%s%.190s%s", VALUES_STEM_MAX, text, *text ? "." : "", key, tail);
}

/* Where "PROFILER.values" begins in a name, or NULL: it is no name of values. */
static const char *values_part(const char *name)
{
	const char *tail = strchr(name, '~');
	size_t len = tail ? (size_t)(tail - name) : strlen(name), end = strlen(values);

	if (len <= end || strncmp(name + len - end, values, end) != 0)
		return NULL;
	for (const char *c = name + len - end; c > name; c--)
		if (c[-1] == '.')
			return c;
	return NULL;
}

bool profdb_values_name(const char *name, const char *profiler)
{
	const char *part = values_part(name);
	char text[PROFILER_MAX + 1];

	if (!part || !profiler)
		return part;
	profiler_part(profiler, text);
	return !strncmp(part, text, strlen(text)) && part[strlen(text)] == '.';
}

bool profdb_values_of_dynamic(const char *key, const char *stem)
{
	char own[PROFDB_KEY_MAX];
	const char *part = values_part(key);

	profdb_dynamic_key(stem, "", own);
	return part && !strncmp(key, own, strlen(own)) && part == key + strlen(own) + 1;
}

void profdb_dynamic_key(const char *stem, const char *ending, char key[PROFDB_KEY_MAX])
{
	char text[STEM_MAX + 18];

	dynamic_part(stem, text);
	snprintf(key, PROFDB_KEY_MAX, "%s%.100s%s", text, ending, dynamic);
}

bool profdb_key_ending(const char *key, size_t *from, char ending[PROFDB_KEY_MAX])
{
	size_t len = strlen(key), tail = strlen(dynamic);

	if (len < tail || strcmp(key + len - tail, dynamic) != 0)
		return false;
	for (size_t i = *from; i < len - tail; i++) {
		if (key[i] != '+' || memchr(key + i, '.', len - tail - i))
			continue;
		snprintf(ending, PROFDB_KEY_MAX, "%.*s", (int)(len - tail - i), key + i);
		*from = i + 1;
		return true;
	}
	return false;
}

void profdb_key_of_name(const char *name, char key[PROFDB_KEY_MAX], unsigned int *version)
{
	char *tail, *part;
	size_t len;

	snprintf(key, PROFDB_KEY_MAX, "%s", name);
	tail = strrchr(key, '~');
	*version = tail ? (unsigned int)strtoul(tail + 1, NULL, 10) : 0;
	if (tail)
		*tail = '\0';
	part = (char *)values_part(key);
	len = part ? (size_t)(part - 1 - key) : strlen(key);
	if (len >= strlen(dynamic) &&
	    !strncmp(key + len - strlen(dynamic), dynamic, strlen(dynamic)))
		return;
	while (len && key[len - 1] != '.')
		len--;
	if (!len)
		return;
	for (len--; len && key[len - 1] != '.';)
		len--;
	memmove(key, key + len, strlen(key + len) + 1);
}

bool profdb_file_name_ok(const char *name)
{
	size_t len = 0;

	while (name[len] && (plain(name[len]) || name[len] == '~'))
		len++;
	return len && !name[len] && len <= PROFDB_NAME_MAX && *name != '.';
}
