/* SPDX-License-Identifier: BSD-2-Clause */
/* A hosts file of any bytes, its first line the host: refused, or a platform's name, or none. And a
 * list of what was joined, and the record of a flush: that as it is and, because a checksum stops
 * nearly all mutations, with the checksum put right. */
#include <stdlib.h>
#include <string.h>

#include "profdb_internal.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

/* Names lead out of no folder here either. */
static void try_joined(const uint8_t *data, size_t len)
{
	struct profdb_names names = { 0 };
	struct base_buf text = { 0 };

	if (base_buf_append(&text, data, len) < 0 || profdb_joined_parse(&text, &names) < 0)
		abort();
	for (size_t i = 0; i < names.nr; i++) {
		const char *slash = strchr(names.items[i], '/');

		if (!slash ||
		    (slash - names.items[i] != PROFDB_EPOCH_LEN &&
		     slash - names.items[i] != PROFDB_EPOCH_MINUTE) ||
		    strchr(slash + 1, '/') || !slash[1] || slash[1] == '.' ||
		    strlen(slash + 1) > PROFDB_PLATFORM_MAX ||
		    names.items[i] + strspn(names.items[i], "0123456789") != slash)
			abort();
	}
	profdb_names_release(&names);
	base_buf_release(&text);
}

static void check_commit(const uint8_t *data, size_t len)
{
	struct profdb_commit c = { 0 };
	struct base_buf text = { 0 };

	if (base_buf_append(&text, data, len) < 0)
		abort();
	if (profdb_commit_parse(&text, &c) >= 0 && !c.seq)
		abort();
	for (size_t i = 0; i < c.files.nr + c.gone.nr; i++) {
		const char *name = i < c.files.nr ? c.files.items[i] : c.gone.items[i - c.files.nr];
		char new_name[256];

		if (*name == '.' || !*name || strchr(name, '/') ||
		    strcmp(strrchr(profdb_new_name(UINT64_MAX, name, new_name), '-') + 1,
			   strrchr(name, '-') ? strrchr(name, '-') + 1 : name))
			abort();
	}
	profdb_commit_release(&c);
	base_buf_release(&text);
}

static void try_commit(const uint8_t *data, size_t len)
{
	const uint8_t *crc = memmem(data, len, "\ncrc ", 5);
	size_t n = crc ? (size_t)(crc + 1 - data) : len;
	struct base_buf right = { 0 };

	check_commit(data, len);
	if (base_buf_append(&right, data, n) < 0 ||
	    (!crc && base_buf_append(&right, "\n", 1) < 0) ||
	    base_buf_printf(&right, "crc %08x\n", base_crc32c(0, right.data, right.len)) < 0)
		abort();
	check_commit(right.data, right.len);
	base_buf_release(&right);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	const uint8_t *end = len ? memchr(data, '\n', len) : NULL;
	char host[300] = "", platform[PROFDB_PLATFORM_MAX + 1] = "?";
	size_t n = end ? (size_t)(end - data) : 0;
	struct base_err err = { 0 };
	int r;

	memcpy(host, data, n < sizeof(host) ? n : sizeof(host) - 1);
	n += end != NULL;
	r = profdb_hosts_find((const char *)data + n, len - n, host, platform, &err);
	/* A name leads out of no folder. */
	if (r > 1 || (r == 1) == !strcmp(platform, "?") || strchr(platform, '/') ||
	    *platform == '.' || (r < 0) != (err.code < 0))
		abort();
	try_joined(data, len);
	try_commit(data, len);
	return 0;
}
