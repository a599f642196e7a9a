/* SPDX-License-Identifier: BSD-2-Clause */
/* The identity of an ELF file is its build-id, or a hash of its heads. */
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "registry.h"

enum { HEAD_LEN = BASE_ID_HEAD_LEN, NOTES_MAX = 64 << 10 };

struct wanted {
	int fd;
	struct base_id *id;
};

/* 1: the segment has it. */
static int segment_id(void *ctx, const struct base_segment *s)
{
	size_t len = s->len < NOTES_MAX ? (size_t)s->len : NOTES_MAX;
	struct wanted *w = ctx;
	uint8_t *notes;
	int r;

	if (s->type != PT_NOTE || !len)
		return 0;
	notes = malloc(len);
	if (!notes)
		return -ENOMEM;
	r = base_id_of_notes(w->id, notes, base_read_part(w->fd, s->off, notes, len), s->align);
	free(notes);
	return r == 0;
}

static int build_id(int fd, struct base_id *id)
{
	struct wanted w = { fd, id };
	int r = base_elf_segments(fd, segment_id, &w);

	return r > 0 ? 0 : r < 0 ? r : -ENOENT;
}

int registry_file_id(int fd, struct base_id *id, bool *elf)
{
	uint8_t *head = malloc(HEAD_LEN);
	size_t len;
	struct stat st;
	int r = 0;

	if (!head || fstat(fd, &st) < 0) {
		r = head ? -errno : -ENOMEM;
		goto out;
	}
	if (!S_ISREG(st.st_mode)) {
		r = -EINVAL;
		goto out;
	}
	len = base_read_part(fd, 0, head, HEAD_LEN);
	if (elf)
		*elf = len >= SELFMAG && memcmp(head, ELFMAG, SELFMAG) == 0;
	r = build_id(fd, id);
	if (r == -ENOENT) {
		base_id_of_head(id, (uint64_t)st.st_size, head, len);
		r = 0;
	}
out:
	free(head);
	return r;
}
