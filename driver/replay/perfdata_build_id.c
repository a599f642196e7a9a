/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "perfdata_internal.h"

/* An entry, up to the path. */
struct entry {
	struct perf_event_header h;
	int32_t pid;
	uint8_t bytes[20], len, reserved[3];
};

/* misc: len is told. */
#define HAS_LEN (1u << 15)

static struct base_id entry_id(const struct entry *e)
{
	struct base_id id = { .len = sizeof(e->bytes) };

	memcpy(id.bytes, e->bytes, sizeof(e->bytes));
	if (e->h.misc & HAS_LEN && e->len <= sizeof(e->bytes))
		id.len = e->len;
	/* Older perfs did not say how long it is, and filled up with zeros. */
	while (!(e->h.misc & HAS_LEN) && id.len && !memcmp(id.bytes + id.len - 4, "\0\0\0", 4))
		id.len -= 4;
	return id;
}

bool perfdata_is_kernel(const char *path)
{
	return !strncmp(path, "[kernel.", 8) || !strncmp(base_path_name(path), "vmlinux", 7);
}

static int add_file(struct perfdata_build_ids *t, const char *path, const struct base_id *id)
{
	struct base_id *known = base_map_get(&t->files, path, strlen(path) + 1);
	int r = 0;

	if (!known && t->files.nr == PERFDATA_NR_BUILD_IDS)
		return -DCPI_ELIMIT;
	if (!known) {
		known = malloc(sizeof(*known));
		r = known ? base_map_set(&t->files, path, strlen(path) + 1, known) : -ENOMEM;
	}
	if (r >= 0)
		*known = *id;
	else
		free(known);
	return r;
}

int perfdata_build_id_add(struct perfdata_build_ids *t, const uint8_t *rec, size_t len)
{
	const char *path = (const char *)rec + sizeof(struct entry);
	uint16_t mode;
	struct base_id id;
	struct entry e;

	if (len <= sizeof(e) || !memchr(path, 0, len - sizeof(e)))
		return -DCPI_EFORMAT;
	memcpy(&e, rec, sizeof(e));
	id = entry_id(&e);
	mode = e.h.misc & PERF_RECORD_MISC_CPUMODE_MASK;
	if (!id.len || mode == PERF_RECORD_MISC_GUEST_KERNEL || mode == PERF_RECORD_MISC_GUEST_USER)
		return 0;
	if (mode == PERF_RECORD_MISC_KERNEL && perfdata_is_kernel(path))
		t->kernel = id;
	return strlen(path) < PERFDATA_PATH_MAX ? add_file(t, path, &id) : 0;
}

int perfdata_build_ids_parse(struct perfdata_build_ids *t, const uint8_t *data, size_t len)
{
	struct perf_event_header h;
	int r = 0;

	while (r >= 0 && len) {
		if (len < sizeof(h))
			return -DCPI_EFORMAT;
		memcpy(&h, data, sizeof(h));
		if (h.size < sizeof(h) || h.size > len)
			return -DCPI_EFORMAT;
		r = perfdata_build_id_add(t, data, h.size);
		data += h.size;
		len -= h.size;
	}
	return r;
}

const struct base_id *perfdata_build_id_find(const struct perfdata_build_ids *t, const char *path)
{
	return base_map_get(&t->files, path, strlen(path) + 1);
}

void perfdata_build_ids_release(struct perfdata_build_ids *t)
{
	void *value;

	for (size_t pos = 0; base_map_next(&t->files, &pos, &value);)
		free(value);
	base_map_release(&t->files);
}
