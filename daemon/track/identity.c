/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Mapped files get their identity here: the build-id, and the code of files that others than root
 * can write, for a build-id is what the file's maker says. The file is opened by the reader process
 * alone: a file on a FUSE mount of somebody's can keep its reader waiting for ever. It is asked
 * each time, as a file may be written over between two runs; but once for all that one reading of
 * /proc lists, as a file may have tens of thousands of mappings in one process; and once for a path
 * where root alone decides what stands there.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "track.h"

enum { TRIES = 3 /* a process may be gone before its file could be read: the next one may tell */ };

struct known {
	struct base_id id, text;
	struct base_extent extent;
	bool by_path, no_elf;
	unsigned int tries;
	/* The reader told it of a mapping that this process listed then. */
	int32_t listed_pid;
	uint64_t listed_ns;
};

/* The code behind a build-id at a path. */
struct named {
	struct base_id text;
	struct base_extent extent;
	bool roots;
};

struct identity {
	struct reader *reader;
	struct stat home;      /* the mount namespace that paths of events are meant in */
	struct base_map known; /* device, inode, path -> struct known */
	struct base_map named; /* build-id, path -> struct named */
	struct base_buf key;   /* of either, the last one that was looked for */
};

struct identity *identity_new(struct reader *reader)
{
	struct identity *t = calloc(1, sizeof(*t));

	if (!t)
		return NULL;
	t->reader = reader;
	/* As a service we have one of our own. */
	if (stat("/proc/1/ns/mnt", &t->home) < 0 && stat("/proc/self/ns/mnt", &t->home) < 0)
		t->home.st_ino = 0;
	return t;
}

static void forget(struct base_map *map)
{
	void *value;

	for (size_t pos = 0; base_map_next(map, &pos, &value);)
		free(value);
	base_map_release(map);
	*map = (struct base_map){ 0 };
}

void identity_forget(struct identity *t)
{
	forget(&t->known);
	forget(&t->named);
}

void identity_free(struct identity *t)
{
	if (!t)
		return;
	identity_forget(t);
	base_buf_release(&t->key);
	free(t);
}

static int make_key(struct base_buf *key, const struct driver_load *l)
{
	uint64_t where[] = { l->dev_major, l->dev_minor, l->inode };
	int r;

	base_buf_clear(key);
	r = base_buf_append(key, where, sizeof(where));
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

/* 0; -ETXTBSY: it was written over since; -EDQUOT: it may be told later; else nothing tells. */
static int ask_reader(struct identity *t, const struct process *p, const struct driver_load *l,
		      struct base_id *id, struct reader_dump *dump)
{
	int r;

	if (!t->reader)
		return -ENOENT;
	r = reader_image_id(t->reader, p->pid, p->uid, l, id, dump);
	if (r == -ETIMEDOUT && reader_may_tell(t->reader, p->uid))
		base_log(BASE_LOG_WARN, "cannot identify '%s' of pid %d: its file does not answer",
			 l->path, p->pid);
	if (r == -EREMOTE && reader_may_tell(t->reader, p->uid))
		base_log(BASE_LOG_WARN,
			 "'%s' of pid %d is not followed: its file system may not answer", l->path,
			 p->pid);
	return r >= 0 && !id->len ? -ENOENT : r;
}

int identity_of_sent(struct identity *t, uint32_t uid, int sock, struct driver_load *l)
{
	int r;

	if (!t->reader)
		return -ENOENT;
	r = reader_file_id(t->reader, sock, &l->id, &l->text);
	if (r == -ETIMEDOUT)
		base_log(BASE_LOG_WARN, "a file that user %u sent does not answer", uid);
	return r;
}

static bool is_announced(const struct known *k, const struct process *p,
			 const struct driver_load *l)
{
	return !l->time_ns && p->known_ns && k->listed_ns == p->known_ns && k->listed_pid == p->pid;
}

/* A dump is no image, and asked for each time. */
static void announced(struct known *k, const struct process *p, const struct driver_load *l,
		      bool is_dump)
{
	k->listed_pid = p->pid;
	k->listed_ns = l->time_ns || is_dump ? 0 : p->known_ns;
}

void identity_release_dump(struct identity *t, const struct reader_dump *dump)
{
	reader_release(t->reader, dump->owner, dump->fd);
}

int identity_find(struct identity *t, const struct process *p, const struct driver_load *l,
		  struct base_id *id, bool *by_path, struct reader_dump *dump)
{
	struct base_buf *key = &t->key;
	struct known *k;
	int r = make_key(key, l);

	if (r < 0)
		return r;
	k = base_map_get(&t->known, key->data, key->len);
	if (!k) {
		k = calloc(1, sizeof(*k));
		if (!k || base_map_set(&t->known, key->data, key->len, k) < 0) {
			free(k);
			return -ENOMEM;
		}
		k->by_path = true;
	}
	if (!is_announced(k, p, l) && (!k->by_path || k->tries < TRIES)) {
		struct base_id now = { 0 };

		r = ask_reader(t, p, l, &now, dump);
		if (r == -ETXTBSY)
			id_overwritten(key, &now);
		if (r >= 0 || r == -ETXTBSY) {
			k->id = now;
			k->by_path = false;
			k->no_elf = r >= 0 && dump->no_elf;
			k->text = r >= 0 ? dump->text : (struct base_id){ 0 };
			k->extent = r >= 0 ? dump->extent : (struct base_extent){ 0 };
			announced(k, p, l, dump->fd >= 0);
		} else if (k->by_path) {
			k->tries += r != -EDQUOT;
			id_of_place(l, &k->id);
		}
		/* Each process that has it is to be told apart. */
		if (dump->fd >= 0)
			k->tries = 0;
	}
	*id = k->id;
	*by_path = k->by_path;
	dump->no_elf = k->no_elf;
	dump->text = k->text;
	dump->extent = k->extent;
	return 0;
}

/* ---- files that brought a build-id ----------------------------------------------------------- */

/*
 * Do paths of @pid lead elsewhere than root's, by a mount namespace or root folder of its own? A
 * process that is gone is taken for one that did not: nobody can ask any more.
 */
static bool leads_elsewhere(const struct identity *t, int32_t pid)
{
	char path[64], root[2];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d/ns/mnt", pid);
	if (stat(path, &st) < 0)
		return errno != ENOENT && errno != ESRCH;
	snprintf(path, sizeof(path), "/proc/%d/root", pid);
	return st.st_ino != t->home.st_ino || st.st_dev != t->home.st_dev ||
	       readlink(path, root, sizeof(root)) != 1;
}

/* A mapping made before the last question has that one's answer: it is nearer than a new one. */
static bool is_elsewhere(const struct identity *t, struct process *p, const struct driver_load *l)
{
	if (p->lives_ns)
		return false;
	if (!l->time_ns || l->time_ns >= p->paths_asked_ns) {
		p->paths_asked_ns = base_now_ns();
		p->paths_elsewhere = leads_elsewhere(t, p->pid);
	}
	return p->paths_elsewhere;
}

/* NULL: no memory. */
static struct named *name(struct identity *t, const struct base_buf *key)
{
	struct named *n = calloc(1, sizeof(*n));

	if (n && base_map_set(&t->named, key->data, key->len, n) < 0) {
		free(n);
		n = NULL;
	}
	return n;
}

static void text_ask(struct identity *t, struct process *p, const struct driver_load *l,
		     const struct base_buf *key, struct base_id *text, struct base_extent *extent)
{
	struct named *n = base_map_get(&t->named, key->data, key->len);
	struct reader_dump found = { .fd = -1 };
	struct base_id id;
	int r;

	*text = (struct base_id){ 0 };
	*extent = n ? n->extent : (struct base_extent){ 0 };
	if (n && n->roots && !is_elsewhere(t, p, l))
		return;
	r = ask_reader(t, p, l, &id, &found);
	if (r >= 0 || r == -ETXTBSY)
		*extent = found.extent;
	if (r >= 0)
		*text = found.text;
	else if (r != -ETXTBSY && n)
		*text = n->text;
	else
		text->len = 1;
	if (r < 0 || (!n && !(n = name(t, key))))
		return;
	n->text = found.text;
	n->extent = found.extent;
	n->roots = found.roots;
}

void identity_text(struct identity *t, struct process *p, const struct driver_load *l,
		   struct base_id *text, struct base_extent *extent)
{
	struct base_buf *key = &t->key;

	*text = (struct base_id){ 0 };
	*extent = (struct base_extent){ 0 };
	if (!t->reader)
		return;
	base_buf_clear(key);
	if (base_buf_append(key, &l->id, sizeof(l->id)) >= 0 &&
	    base_buf_append(key, l->path, strlen(l->path)) >= 0)
		text_ask(t, p, l, key, text, extent);
	else
		text->len = 1;
}
