/* SPDX-License-Identifier: BSD-2-Clause */
/* The options behind "-agentpath:…=" are parsed. */
#include "jvmti_internal.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* A stretch of the options' text. */
struct span {
	const char *at;
	size_t len;
};

static bool span_is(struct span s, const char *word)
{
	return s.len == strlen(word) && !memcmp(s.at, word, s.len);
}

static int facility_set(struct jvmti_options *o, struct span value, char *err, size_t err_len)
{
	if (!value.len || value.len > JVMTI_FACILITY_MAX) {
		snprintf(err, err_len, "bad value for 'facility': %s",
			 value.len ? "longer than 104 bytes" : "empty");
		return -EINVAL;
	}
	memcpy(o->facility, value.at, value.len);
	o->facility[value.len] = '\0';
	return 0;
}

static int signatures_set(struct jvmti_options *o, struct span value, char *err, size_t err_len)
{
	o->signatures = span_is(value, "yes");
	if (o->signatures || span_is(value, "no"))
		return 0;
	snprintf(err, err_len, "bad value for 'signatures': '%.*s' is neither yes nor no",
		 (int)value.len, value.at);
	return -EINVAL;
}

static const struct {
	const char *name;
	int (*set)(struct jvmti_options *o, struct span value, char *err, size_t err_len);
} table[] = { { "facility", facility_set }, { "signatures", signatures_set } };

static int option_set(struct jvmti_options *o, struct span option, char *err, size_t err_len)
{
	const char *equals = memchr(option.at, '=', option.len);
	struct span name = { option.at, equals ? (size_t)(equals - option.at) : option.len };
	struct span value = { equals ? equals + 1 : NULL, equals ? option.len - name.len - 1 : 0 };

	for (size_t i = 0; i < sizeof(table) / sizeof(table[0]); i++) {
		if (!span_is(name, table[i].name))
			continue;
		if (equals)
			return table[i].set(o, value, err, err_len);
		snprintf(err, err_len, "option '%s' wants a value", table[i].name);
		return -EINVAL;
	}
	snprintf(err, err_len, "unknown option '%.*s'", (int)name.len, name.at);
	return -EINVAL;
}

int jvmti_options_parse(const char *text, struct jvmti_options *out, char *err, size_t err_len)
{
	struct span option = { text, 0 };

	*out = (struct jvmti_options){ .facility = "java" };
	while (option.at && *option.at) {
		option.len = strcspn(option.at, ",");
		if (option_set(out, option, err, err_len))
			return -EINVAL;
		option.at += option.len;
		option.at += *option.at == ',';
	}
	return 0;
}
