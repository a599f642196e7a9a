/* SPDX-License-Identifier: BSD-2-Clause */
/* The keys of images and routines that a store has are kept between runs. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "ship.h"

#define KEYS_FILE  "keys"
#define STORE_FILE "store"
enum { KEYS_MAX = 1 << 28 };

/* Each key in the file has its length before it. */
static int take(struct known *k, const struct base_buf *bytes)
{
	size_t at = 0;
	int r = 0;

	while (r >= 0 && at < bytes->len && bytes->len - at - 1 >= bytes->data[at]) {
		r = base_map_set(&k->keys, bytes->data + at + 1, bytes->data[at], k);
		at += 1 + (size_t)bytes->data[at];
	}
	return r;
}

int known_open(struct known *k, int dir_fd, struct base_err *err)
{
	struct base_buf bytes = { 0 };
	int r = base_file_read(dir_fd, KEYS_FILE, KEYS_MAX, &bytes, NULL);

	memset(k, 0, sizeof(*k));
	k->dir_fd = dir_fd;
	if (r >= 0)
		r = take(k, &bytes);
	base_buf_release(&bytes);
	return r == -ENOMEM ? base_fail_errno(err, r, "cannot read what was sent") : 0;
}

bool known_has(void *ctx, const void *key, size_t len)
{
	const struct known *k = ctx;

	return base_map_get(&k->keys, key, len);
}

/* Where there is no memory the key is sent once more. */
void known_add(void *ctx, const void *key, size_t len)
{
	struct known *k = ctx;
	uint8_t nr = (uint8_t)len;

	if (base_map_set(&k->keys, key, len, k) < 0 || base_buf_append(&k->new, &nr, 1) < 0)
		return;
	if (base_buf_append(&k->new, key, len) < 0)
		k->new.len--;
}

int known_keep(struct known *k, struct base_err *err)
{
	int r = spool_append(k->dir_fd, KEYS_FILE, k->new.data, k->new.len);

	base_buf_clear(&k->new);
	return r < 0 ? base_fail_errno(err, r, "cannot note what was sent") : 0;
}

void known_drop(struct known *k)
{
	for (size_t at = 0; at + 1 < k->new.len; at += 1 + (size_t)k->new.data[at])
		base_map_del(&k->keys, k->new.data + at + 1, k->new.data[at]);
	base_buf_clear(&k->new);
}

int known_forget(struct known *k, struct base_err *err)
{
	known_release(k);
	if (unlinkat(k->dir_fd, KEYS_FILE, 0) < 0 && errno != ENOENT)
		return base_fail_errno(err, -errno, "cannot forget what was sent");
	return 0;
}

int known_store(struct known *k, const char *id, struct base_err *err)
{
	struct base_buf before = { 0 };
	int r = base_file_read(k->dir_fd, STORE_FILE, 256, &before, NULL);
	bool same = r >= 0 && before.len == strlen(id) && memcmp(before.data, id, before.len) == 0;
	bool first = r < 0;

	base_buf_release(&before);
	if (same)
		return 0;
	if (!first) {
		r = known_forget(k, err);
		if (r < 0)
			return r;
	}
	/* Where there is no room for it, batches go all the same, which makes some. */
	r = base_file_write(k->dir_fd, STORE_FILE, 0600, id, strlen(id), NULL);
	return r < 0 && r != -ENOSPC && r != -EDQUOT
		       ? base_fail_errno(err, r, "cannot note which store it is")
		       : !first;
}

void known_release(struct known *k)
{
	base_map_release(&k->keys);
	base_buf_release(&k->new);
}
