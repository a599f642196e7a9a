/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Identity of mapped files that brought no build-id. The file is opened by the reader process
 * alone: a file on a FUSE mount of somebody's can keep its reader waiting for ever. It is asked
 * each time, as a file may be written over between two runs; but once for all that one reading of
 * /proc lists, as a file may have tens of thousands of mappings in one process.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "track.h"

enum { TRIES = 3 /* a process may be gone before its file could be read: the next one may tell */ };

struct known {
	struct base_id id;
	bool by_path, no_elf;
	unsigned int tries;
	/* The reader told it of a mapping that this process listed then. */
	int32_t listed_pid;
	uint64_t listed_ns;
};

struct identity {
	struct reader *reader;
	struct base_map known; /* device, inode, path -> struct known */
	struct base_map slow;  /* uid -> non-NULL: files of this user kept the reader waiting */
};

struct identity *identity_new(struct reader *reader)
{
	struct identity *t = calloc(1, sizeof(*t));

	if (t)
		t->reader = reader;
	return t;
}

void identity_forget(struct identity *t)
{
	void *value;

	for (size_t pos = 0; base_map_next(&t->known, &pos, &value);)
		free(value);
	base_map_release(&t->known);
	base_map_release(&t->slow);
	t->known = t->slow = (struct base_map){ 0 };
}

void identity_free(struct identity *t)
{
	if (!t)
		return;
	identity_forget(t);
	free(t);
}

static int make_key(struct base_buf *key, const struct driver_load *l)
{
	uint64_t where[] = { l->dev_major, l->dev_minor, l->inode };
	int r = base_buf_append(key, where, sizeof(where));

	return r < 0 ? r : base_buf_append(key, l->path, strlen(l->path));
}

/* It is known by what no file has. */
static void id_overwritten(const struct base_buf *key, struct base_id *id)
{
	struct base_sha256 s;

	base_sha256_init(&s);
	base_sha256_add(&s, "overwritten", 11);
	base_sha256_add(&s, key->data, key->len);
	base_id_of_sha256(id, &s);
}

static void id_of_place(const struct driver_load *l, struct base_id *id)
{
	const uint64_t where[] = { l->dev_major, l->dev_minor, l->inode };

	base_id_of_place(id, where, l->path);
}

/*
 * One second of waiting is what a user's files may cost us until identity_forget. 0; -ETXTBSY: it
 * was written over since; else nothing tells.
 */
static int ask_reader(struct identity *t, const struct process *p, const struct driver_load *l,
		      struct base_id *id, struct reader_dump *dump)
{
	int r;

	if (!t->reader || base_map_get(&t->slow, &p->uid, sizeof(p->uid)))
		return -ENOENT;
	r = reader_image_id(t->reader, p->pid, l, id, dump);
	if (r == -ETIMEDOUT) {
		base_log(BASE_LOG_WARN, "cannot identify '%s' of pid %d: its file does not answer",
			 l->path, p->pid);
		base_map_set(&t->slow, &p->uid, sizeof(p->uid), t);
	}
	if (r == -EREMOTE)
		base_log(BASE_LOG_WARN,
			 "'%s' of pid %d is not followed: its file system may not answer", l->path,
			 p->pid);
	return r >= 0 && !id->len ? -ENOENT : r;
}

int identity_of_sent(struct identity *t, uint32_t uid, int sock, struct base_id *id)
{
	int r;

	if (!t->reader || base_map_get(&t->slow, &uid, sizeof(uid)))
		return -ENOENT;
	r = reader_file_id(t->reader, sock, id);
	if (r == -ETIMEDOUT) {
		base_log(BASE_LOG_WARN, "a file that user %u sent does not answer", uid);
		base_map_set(&t->slow, &uid, sizeof(uid), t);
	}
	return r;
}

static bool is_told(const struct known *k, const struct process *p, const struct driver_load *l)
{
	return !l->time_ns && p->known_ns && k->listed_ns == p->known_ns && k->listed_pid == p->pid;
}

/* A dump is no image, and asked for each time. */
static void told(struct known *k, const struct process *p, const struct driver_load *l,
		 bool is_dump)
{
	k->listed_pid = p->pid;
	k->listed_ns = l->time_ns || is_dump ? 0 : p->known_ns;
}

void identity_release_dump(struct identity *t, const struct reader_dump *dump)
{
	reader_release(t->reader, dump->fd);
}

int identity_find(struct identity *t, const struct process *p, const struct driver_load *l,
		  struct base_id *id, bool *by_path, struct reader_dump *dump)
{
	struct base_buf key = { 0 };
	struct known *k;
	int r = make_key(&key, l);

	if (r < 0)
		goto out;
	k = base_map_get(&t->known, key.data, key.len);
	if (!k) {
		k = calloc(1, sizeof(*k));
		if (!k || base_map_set(&t->known, key.data, key.len, k) < 0) {
			free(k);
			r = -ENOMEM;
			goto out;
		}
		k->by_path = true;
	}
	if (!is_told(k, p, l) && (!k->by_path || k->tries < TRIES)) {
		struct base_id now = { 0 };

		r = ask_reader(t, p, l, &now, dump);
		if (r == -ETXTBSY)
			id_overwritten(&key, &now);
		if (r >= 0 || r == -ETXTBSY) {
			k->id = now;
			k->by_path = false;
			k->no_elf = r >= 0 && dump->no_elf;
			told(k, p, l, dump->fd >= 0);
		} else if (k->by_path) {
			k->tries++;
			id_of_place(l, &k->id);
		}
		/* Each process that has it is to be told apart. */
		if (dump->fd >= 0)
			k->tries = 0;
	}
	*id = k->id;
	*by_path = k->by_path;
	dump->no_elf = k->no_elf;
	r = 0;
out:
	base_buf_release(&key);
	return r;
}
