/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "profdb_internal.h"

int profdb_number_parse(const char *text, unsigned int base, uint64_t *out)
{
	uint64_t v = 0;

	if (!*text)
		return -EINVAL;
	for (; *text; text++) {
		unsigned int digit = 99;

		if (*text >= '0' && *text <= '9')
			digit = (unsigned int)(*text - '0');
		else if ((*text | 32) >= 'a' && (*text | 32) <= 'f')
			digit = (unsigned int)((*text | 32) - 'a') + 10;
		if (digit >= base || base_mul_overflow(v, base, &v) ||
		    base_add_overflow(v, digit, &v))
			return -EINVAL;
	}
	*out = v;
	return 0;
}

static bool all_digits(const char *text, size_t len)
{
	return strlen(text) == len && strspn(text, "0123456789") == len;
}

static int two(const char *p)
{
	return (p[0] - '0') * 10 + p[1] - '0';
}

bool profdb_epoch_name_ok(const char *name)
{
	return all_digits(name, PROFDB_EPOCH_LEN) && two(name + 4) >= 1 && two(name + 4) <= 12 &&
	       two(name + 6) >= 1 && two(name + 6) <= 31 && two(name + 8) < 24 &&
	       two(name + 10) < 60;
}

int profdb_epoch_normalize(const char *text, char epoch[PROFDB_EPOCH_LEN + 1])
{
	char out[PROFDB_EPOCH_LEN + 1];
	size_t len = strlen(text);

	if ((len != 10 && len != 12 && len != 14) || !all_digits(text, len))
		return -EINVAL;
	if (len == 10) /* DCPI is of 1997: two digits of the year below 70 are of this century. */
		snprintf(out, sizeof(out), "%s%s", two(text) < 70 ? "20" : "19", text);
	else
		snprintf(out, sizeof(out), "%.12s", text);
	if (!profdb_epoch_name_ok(out))
		return -EINVAL;
	strcpy(epoch, out);
	return 0;
}

static bool is_number(const char *value)
{
	uint64_t v;

	return profdb_number_parse(value, 10, &v) == 0;
}

static bool is_hex(const char *value)
{
	return *value && strspn(value, "0123456789abcdefABCDEF") == strlen(value);
}

/* Decimal like the sizes beside it, or hexadecimal where it says so. */
static bool is_address(const char *value)
{
	uint64_t v;

	if (value[0] == '0' && value[1] == 'x')
		return profdb_number_parse(value + 2, 16, &v) == 0;
	return is_number(value);
}

static const struct {
	const char *word;
	bool (*ok)(
		const char *value); /* NULL: no value at all, the word has functions of its own */
} rules[] = {
	{ "version", NULL },	   { "image", NULL },
	{ "kind", NULL },	   { "path", NULL },
	{ "event", NULL },	   { "period", NULL },
	{ "enabled", NULL },	   { "epoch", profdb_epoch_name_ok },
	{ "tsize", is_number },	   { "tstart", is_address },
	{ "cpuspeed", is_number }, { "cpucount", is_number },
	{ "cpuimplv", is_number }, { "cpuamask", is_hex },
};

static bool word_name_ok(const char *word)
{
	size_t len = 0;

	for (; word[len]; len++) {
		if ((unsigned char)word[len] <= ' ' || word[len] == 0x7f)
			return false;
	}
	return len > 0;
}

bool profdb_event_name_ok(const char *name)
{
	return word_name_ok(name) && strlen(name) < PROFDB_EVENT_NAME;
}

int profdb_word_check(const char *word, const char *value)
{
	if (!word_name_ok(word) || !*value)
		return -EINVAL;
	for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++) {
		if (!strcmp(rules[i].word, word))
			return rules[i].ok && rules[i].ok(value) ? 0 : -EINVAL;
	}
	return 0;
}

uint32_t profdb_enabled_millionths(double enabled)
{
	return enabled <= 0 ? 0 : enabled >= 1 ? 1000000 : (uint32_t)(enabled * 1e6 + 0.5);
}
