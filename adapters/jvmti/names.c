/* SPDX-License-Identifier: BSD-2-Clause */
/* The JVM's names of classes, methods and stubs become names that a person can read. */
#include "jvmti_internal.h"

#include <string.h>

static void put(struct jvmti_name *out, const char *text, size_t len)
{
	size_t space = JVMTI_NAME_MAX - out->len;

	len = len < space ? len : space;
	if (len)
		memcpy(out->text + out->len, text, len);
	out->len += len;
	out->text[out->len] = '\0';
}

static void put_word(struct jvmti_name *out, const char *word)
{
	put(out, word, strlen(word));
}

/* Bytes of the class's name without what the VM adds to a hidden one's: ".0x0000000800c03000". */
static size_t without_address(const char *name, size_t len)
{
	size_t digits = len;

	while (digits && strchr("0123456789abcdefABCDEF", name[digits - 1]))
		digits--;
	if (digits == len || digits < 4 || memcmp(name + digits - 2, "0x", 2) != 0)
		return len;
	return name[digits - 3] == '.' || name[digits - 3] == '/' ? digits - 3 : len;
}

static void put_class(struct jvmti_name *out, const char *name, size_t len)
{
	size_t from = out->len;

	put(out, name, without_address(name, len));
	for (size_t i = from; i < out->len; i++)
		if (out->text[i] == '/')
			out->text[i] = '.';
}

static const char *primitive_name(char c)
{
	static const char *const names[] = { "Bbyte", "Cchar",	"Ddouble",  "Ffloat", "Iint",
					     "Jlong", "Sshort", "Zboolean", "Vvoid" };

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (names[i][0] == c)
			return names[i] + 1;
	return NULL;
}

/* One type of a descriptor; where the next begins. */
static const char *put_type(struct jvmti_name *out, const char *at)
{
	size_t nr_dimensions = strspn(at, "[");
	const char *primitive;
	size_t len;

	at += nr_dimensions;
	primitive = primitive_name(*at);
	if (primitive) {
		put_word(out, primitive);
		at++;
	} else {
		at += *at == 'L';
		len = strcspn(at, ";");
		put_class(out, at, len);
		at += len;
		at += *at == ';';
	}
	while (nr_dimensions--)
		put(out, "[]", 2);
	return at;
}

static void put_parameters(struct jvmti_name *out, const char *signature)
{
	const char *at = signature + (*signature == '(');

	put(out, "(", 1);
	for (bool first = true; *at && *at != ')'; first = false) {
		if (!first)
			put(out, ", ", 2);
		at = put_type(out, at);
	}
	put(out, ")", 1);
}

void jvmti_name_method(struct jvmti_name *out, const char *class_descriptor, const char *method,
		       const char *signature)
{
	out->len = 0;
	put_type(out, class_descriptor);
	put(out, ".", 1);
	put_word(out, method);
	if (signature)
		put_parameters(out, signature);
}

void jvmti_name_file(struct jvmti_name *out, const char *class_descriptor, const char *source)
{
	const char *name = class_descriptor + (*class_descriptor == 'L');
	size_t len = without_address(name, strcspn(name, ";"));

	while (len && name[len - 1] != '/')
		len--;
	out->len = 0;
	put(out, name, len);
	put_word(out, source);
}

void jvmti_name_stub(struct jvmti_name *out, const char *name)
{
	const char *at = strstr(name, "@0x");

	out->len = 0;
	put(out, name, at ? (size_t)(at - name) : strlen(name));
	if (!out->len)
		put_word(out, "stub");
}
