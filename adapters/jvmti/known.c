/* SPDX-License-Identifier: BSD-2-Clause */
/* A method's lines, and its name and file as a person can read them. */
#include <stdlib.h>
#include <string.h>

#include "jvmti_internal.h"

/* ---- readable names -------------------------------------------------------------------------- */

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

/* ---- methods --------------------------------------------------------------------------------- */

#define NR_CHAINS    8192u
#define NR_KNOWN_MAX 32768u /* some 10 MB */

/* ---- asking the JVM -------------------------------------------------------------------------- */

/* The JVM's answers about a method, in its own memory. Only the source may be missing. */
struct answer {
	char *class_descriptor, *source, *name, *signature;
};

static void give_back(jvmtiEnv *env, void *memory)
{
	if (memory)
		(*env)->Deallocate(env, memory);
}

static void answer_release(jvmtiEnv *env, struct answer *a)
{
	give_back(env, a->class_descriptor);
	give_back(env, a->source);
	give_back(env, a->name);
	give_back(env, a->signature);
}

/* References live until the event is over, and one event may ask for hundreds. */
static void class_drop(const struct jvmti_methods *m, jclass class)
{
	JNIEnv *jni;

	if ((*m->vm)->GetEnv(m->vm, (void **)&jni, JNI_VERSION_1_6) == JNI_OK)
		(*jni)->DeleteLocalRef(jni, class);
}

static bool class_ask(const struct jvmti_methods *m, jmethodID id, struct answer *out)
{
	jvmtiEnv *env = m->env;
	jclass class;
	bool good;

	if ((*env)->GetMethodDeclaringClass(env, id, &class) != JVMTI_ERROR_NONE)
		return false;
	good = (*env)->GetClassSignature(env, class, &out->class_descriptor, NULL) ==
	       JVMTI_ERROR_NONE;
	if (!good)
		out->class_descriptor = NULL;
	if (!good || (*env)->GetSourceFileName(env, class, &out->source) != JVMTI_ERROR_NONE)
		out->source = NULL;
	class_drop(m, class);
	return good;
}

static bool method_ask(const struct jvmti_methods *m, jmethodID id, struct answer *out)
{
	jvmtiEnv *env = m->env;

	*out = (struct answer){ 0 };
	if ((*env)->GetMethodName(env, id, &out->name, &out->signature, NULL) != JVMTI_ERROR_NONE) {
		*out = (struct answer){ 0 };
		return false;
	}
	if (class_ask(m, id, out))
		return true;
	answer_release(env, out);
	return false;
}

static void lines_ask(const struct jvmti_methods *m, struct jvmti_known *k)
{
	jvmtiEnv *env = m->env;
	jint nr;

	give_back(env, k->lines);
	k->nr_lines = 0;
	if ((*env)->GetLineNumberTable(env, k->id, &nr, &k->lines) != JVMTI_ERROR_NONE) {
		k->lines = NULL;
		return;
	}
	k->nr_lines = nr > 0 ? (size_t)nr : 0;
	jvmti_known_sort(k->lines, k->nr_lines);
}

/* ---- lines ----------------------------------------------------------------------------------- */

static int compare_lines(const void *a, const void *b)
{
	const jvmtiLineNumberEntry *x = a, *y = b;

	return (x->start_location > y->start_location) - (x->start_location < y->start_location);
}

void jvmti_known_sort(jvmtiLineNumberEntry *lines, size_t nr)
{
	for (size_t i = 1; i < nr; i++) {
		if (lines[i].start_location < lines[i - 1].start_location) {
			qsort(lines, nr, sizeof(*lines), compare_lines);
			return;
		}
	}
}

uint32_t jvmti_known_line(const struct jvmti_known *k, int64_t bci)
{
	size_t low = 0, high = k->nr_lines; /* entries below low begin at or before bci */

	bci = bci < 0 ? 0 : bci;
	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (k->lines[middle].start_location <= bci)
			low = middle + 1;
		else
			high = middle;
	}
	return low && k->lines[low - 1].line_number > 0 ? (uint32_t)k->lines[low - 1].line_number
							: 0;
}

/* ---- the table ------------------------------------------------------------------------------- */

static struct dbgdyn_string string_put(char *space, const struct jvmti_name *name)
{
	memcpy(space, name->text, name->len);
	return (struct dbgdyn_string){ space, name->len };
}

/* The names stand behind the struct. */
static struct jvmti_known *known_new(const struct jvmti_methods *m, jmethodID id,
				     const struct answer *a)
{
	struct jvmti_name name, file = { 0 };
	struct jvmti_known *k;
	char *space;

	jvmti_name_method(&name, a->class_descriptor, a->name, m->signatures ? a->signature : NULL);
	if (a->source)
		jvmti_name_file(&file, a->class_descriptor, a->source);
	k = calloc(1, sizeof(*k) + name.len + file.len);
	if (!k)
		return NULL;
	space = (char *)(k + 1);
	k->name = string_put(space, &name);
	k->file = string_put(space + name.len, &file);
	k->id = id;
	return k;
}

static void known_free(const struct jvmti_methods *m, struct jvmti_known *k)
{
	give_back(m->env, k->lines);
	free(k);
}

static struct jvmti_known **chain_of(const struct jvmti_methods *m, jmethodID id)
{
	uint64_t hash = (uintptr_t)id * 0x9e3779b97f4a7c15u;

	return &m->chains[hash >> 32 & (NR_CHAINS - 1)];
}

static struct jvmti_known *known_add(struct jvmti_methods *m, jmethodID id)
{
	struct answer a;
	struct jvmti_known *k, **chain = chain_of(m, id);

	if (!method_ask(m, id, &a))
		return NULL;
	k = known_new(m, id, &a);
	answer_release(m->env, &a);
	if (!k)
		return NULL;
	lines_ask(m, k);
	k->next = *chain;
	*chain = k;
	m->nr++;
	return k;
}

static struct jvmti_known *known_find(struct jvmti_methods *m, jmethodID id, bool *added)
{
	*added = false;
	if (!m->chains) {
		m->chains = calloc(NR_CHAINS, sizeof(*m->chains));
		if (!m->chains)
			return NULL;
	}
	for (struct jvmti_known *k = *chain_of(m, id); k; k = k->next)
		if (k->id == id)
			return k;
	*added = true;
	return known_add(m, id);
}

struct jvmti_known *jvmti_methods_find(struct jvmti_methods *m, jmethodID id)
{
	bool added;

	return known_find(m, id, &added);
}

struct jvmti_known *jvmti_methods_renew(struct jvmti_methods *m, jmethodID id)
{
	bool added;
	struct jvmti_known *k = known_find(m, id, &added);

	if (k && !added)
		lines_ask(m, k);
	return k;
}

void jvmti_methods_trim(struct jvmti_methods *m)
{
	if (m->nr < NR_KNOWN_MAX)
		return;
	for (size_t i = 0; i < NR_CHAINS; i++) {
		for (struct jvmti_known *next, *k = m->chains[i]; k; k = next) {
			next = k->next;
			known_free(m, k);
		}
		m->chains[i] = NULL;
	}
	m->nr = 0;
}
