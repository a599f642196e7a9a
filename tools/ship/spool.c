/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The spool: the folder where batches wait, with the keys of what the store has and the list of
 * epochs that became batches; and how they do.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "ship.h"

/* Appends all of @data, so that it lasts, or nothing. 0 or negative. */
static int append_to(int dir_fd, const char *file, const void *data, size_t len)
{
	int fd = openat(dir_fd, file, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
	struct stat st;
	int r;

	if (fd < 0)
		return -errno;
	r = fstat(fd, &st) < 0 ? -errno : base_write_all(fd, data, len);
	if (r >= 0 && fdatasync(fd) < 0)
		r = -errno;
	/* The next record must not continue one that is cut. */
	if (r < 0 && ftruncate(fd, st.st_size) < 0)
		r = -errno;
	close(fd);
	return r;
}

/* ---- the keys of images and routines that the store has -------------------------------------- */

#define KEYS_FILE  "keys"
#define STORE_FILE "store"
enum { KEYS_MAX = 1 << 28 };

/* Each key in the file has its length before it. */
static int known_take(struct known *k, const struct base_buf *bytes)
{
	size_t at = 0;
	int r = 0;

	while (r >= 0 && at < bytes->len && bytes->len - at - 1 >= bytes->data[at]) {
		r = base_map_set(&k->keys, bytes->data + at + 1, bytes->data[at], k);
		at += 1 + (size_t)bytes->data[at];
	}
	return r;
}

static int known_open(struct known *k, int dir_fd, struct base_err *err)
{
	struct base_buf bytes = { 0 };
	int r = base_file_read(dir_fd, KEYS_FILE, KEYS_MAX, &bytes, NULL);

	memset(k, 0, sizeof(*k));
	k->dir_fd = dir_fd;
	if (r >= 0)
		r = known_take(k, &bytes);
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
	int r = append_to(k->dir_fd, KEYS_FILE, k->new.data, k->new.len);

	base_buf_clear(&k->new);
	return r < 0 ? base_fail_errno(err, r, "cannot note what was sent") : 0;
}

void known_drop(struct known *k)
{
	for (size_t at = 0; at + 1 < k->new.len; at += 1 + (size_t)k->new.data[at])
		base_map_del(&k->keys, k->new.data + at + 1, k->new.data[at]);
	base_buf_clear(&k->new);
}

static void known_release(struct known *k)
{
	base_map_release(&k->keys);
	base_buf_release(&k->new);
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

/* ---- the folder ------------------------------------------------------------------------------ */

#define SHIPPED_FILE "shipped"
#define HELD	     ".held-"
enum { SHIPPED_MAX = 1 << 26 };

static int lock(struct spool *s, struct base_err *err)
{
	s->lock_fd = openat(s->dir_fd, "lock", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (s->lock_fd < 0)
		return base_fail_errno(err, -errno, "cannot lock '%s'", s->path);
	if (flock(s->lock_fd, LOCK_EX | LOCK_NB) == 0)
		return 0;
	return base_fail(err, -EBUSY, "another dcpiship uses '%s'", s->path);
}

static int read_shipped(struct spool *s)
{
	char *save = NULL, *line;
	struct base_buf names = { 0 };
	int r = base_file_read(s->dir_fd, SHIPPED_FILE, SHIPPED_MAX, &names, NULL);

	if (r < 0)
		return r == -ENOENT ? 0 : r;
	r = base_buf_append(&names, "", 1);
	line = r < 0 ? NULL : strtok_r((char *)names.data, "\n", &save);
	for (; line && r >= 0; line = strtok_r(NULL, "\n", &save))
		r = base_map_set(&s->shipped, line, strlen(line), s);
	base_buf_release(&names);
	return r;
}

void spool_close(struct spool *s)
{
	if (!s)
		return;
	known_release(&s->known);
	base_map_release(&s->shipped);
	if (s->lock_fd >= 0)
		close(s->lock_fd);
	if (s->dir_fd >= 0)
		close(s->dir_fd);
	free(s->path);
	free(s);
}

/* ---- the epochs that became batches ---------------------------------------------------------- */

/*
 * A note is "EPOCH/PLATFORM"; with a minus before it where it is left out, and of a joined epoch
 * "+EPOCH/PLATFORM/PARTS" besides.
 */
#define NAME_LEN (PROFDB_EPOCH_LEN + PROFDB_PLATFORM_MAX + 24)

static void name_of(const char *epoch, const char *platform, const char *sign, char name[NAME_LEN])
{
	snprintf(name, NAME_LEN, "%s%s/%s", sign, epoch, platform);
}

static void name_of_joined(const char *epoch, const char *platform, size_t nr, char name[NAME_LEN])
{
	snprintf(name, NAME_LEN, "+%s/%s/%zu", epoch, platform, nr);
}

static bool is_noted(const struct spool *s, const char *name)
{
	return base_map_get(&s->shipped, name, strlen(name));
}

static int note(struct spool *s, const char *name, struct base_err *err)
{
	char line[NAME_LEN + 1];
	int r;

	snprintf(line, sizeof(line), "%s\n", name);
	r = append_to(s->dir_fd, SHIPPED_FILE, line, strlen(line));
	if (r >= 0)
		r = base_map_set(&s->shipped, name, strlen(name), s);
	return r < 0 ? base_fail_errno(err, r, "cannot note that '%s' was shipped", name) : 0;
}

bool spool_is_shipped(const struct spool *s, const char *epoch, const char *platform)
{
	char name[NAME_LEN];

	name_of(epoch, platform, "", name);
	return is_noted(s, name);
}

/* The name of the file that has the keys of an open epoch's rows. */
static void keys_name(const char *epoch, const char *platform, char name[128])
{
	snprintf(name, 128, "open-%.*s-%.*s", PROFDB_EPOCH_LEN, epoch, PROFDB_PLATFORM_MAX,
		 platform);
}

int spool_set_shipped(struct spool *s, const char *epoch, const char *platform,
		      struct base_err *err)
{
	char name[NAME_LEN], keys[128];
	int r;

	name_of(epoch, platform, "", name);
	r = note(s, name, err);
	keys_name(epoch, platform, keys);
	if (r >= 0)
		unlinkat(s->dir_fd, keys, 0);
	return r;
}

bool spool_is_begun(const struct spool *s, const char *epoch, const char *platform)
{
	char keys[128];

	keys_name(epoch, platform, keys);
	return spool_is_shipped(s, epoch, platform) ||
	       faccessat(s->dir_fd, keys, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* The note of the first part ends that of a joined epoch. */
bool spool_is_joined(const struct spool *s, const char *epoch, const char *platform, size_t nr)
{
	char name[NAME_LEN];

	name_of_joined(epoch, platform, nr, name);
	return is_noted(s, name) && spool_is_shipped(s, epoch, platform);
}

/* The note of the first part comes last: alone it would say that a part was sent before. */
static int spool_set_joined(struct spool *s, const char *epoch, const char *platform, size_t nr,
			    struct base_err *err)
{
	char name[NAME_LEN];
	int r;

	name_of_joined(epoch, platform, nr, name);
	r = note(s, name, err);
	return r < 0 ? r : spool_set_shipped(s, epoch, platform, err);
}

bool spool_is_left_out(const struct spool *s, const char *epoch, const char *platform)
{
	char name[NAME_LEN];

	name_of(epoch, platform, "-", name);
	return is_noted(s, name);
}

static int spool_leave_out(struct spool *s, const char *epoch, const char *platform,
			   struct base_err *err)
{
	char name[NAME_LEN];

	name_of(epoch, platform, "-", name);
	return note(s, name, err);
}

/* ---- the batches that wait ------------------------------------------------------------------- */

bool spool_is_batch(const char *name)
{
	size_t len = strlen(name), suffix = strlen(SHIP_SUFFIX);

	return name[0] != '.' && len > suffix && strcmp(name + len - suffix, SHIP_SUFFIX) == 0;
}

uint64_t spool_waiting(const struct spool *s, size_t *nr)
{
	uint64_t sum = 0;
	struct dirent *e;
	struct stat st;
	DIR *d;

	*nr = 0;
	if (base_dir_open(s->dir_fd, ".", &d) < 0)
		return 0;
	while ((e = readdir(d))) {
		if (!spool_is_batch(e->d_name) ||
		    fstatat(s->dir_fd, e->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
			continue;
		sum += (uint64_t)st.st_size;
		++*nr;
	}
	closedir(d);
	return sum;
}

static int check_limit(const struct spool *s, size_t more, struct base_err *err)
{
	size_t nr;

	if (spool_waiting(s, &nr) + more <= s->limit)
		return 0;
	base_fail(err, -ENOSPC, "%zu batches wait in '%s', which is as much as may be there", nr,
		  s->path);
	base_hint(err, "the rest stays in the database; -spool-limit allows more");
	return -ENOSPC;
}

static void held_name(const char *name, char held[SPOOL_NAME + 8])
{
	snprintf(held, SPOOL_NAME + 8, HELD "%s", name);
}

static bool exists(const struct spool *s, const char *name)
{
	return faccessat(s->dir_fd, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

int spool_hold(struct spool *s, const char *epoch, const char *platform, uint64_t ver,
	       const struct store_batch *b, char name[SPOOL_NAME], struct base_err *err)
{
	char held[SPOOL_NAME + 8];
	struct base_buf file = { 0 };
	unsigned int i = 0;
	int r = store_batch_format(b, &file);

	if (r < 0)
		base_fail_errno(err, r, "cannot make a batch");
	if (r >= 0)
		r = check_limit(s, file.len, err);
	/* One that waits may have images that this one takes for known. */
	do
		snprintf(name, SPOOL_NAME, "%s-%s-%016" PRIx64 "-%03u" SHIP_SUFFIX, epoch, platform,
			 ver, i++);
	while (exists(s, name));
	held_name(name, held);
	if (r >= 0)
		r = base_file_write(s->dir_fd, held, 0600, file.data, file.len, err);
	base_buf_release(&file);
	return r;
}

int spool_show(struct spool *s, const char *name, struct base_err *err)
{
	char held[SPOOL_NAME + 8];

	held_name(name, held);
	if (renameat(s->dir_fd, held, s->dir_fd, name) < 0)
		return base_fail_errno(err, -errno, "cannot finish batch '%s'", name);
	return 0;
}

static void spool_drop(struct spool *s, const char *name)
{
	char held[SPOOL_NAME + 8];

	held_name(name, held);
	unlinkat(s->dir_fd, held, 0);
}

/* ---- what a killed dcpiship has left --------------------------------------------------------- */

/* Splits a batch's name behind its epoch, which has no '-', and before its version. */
static bool take_name(char *name, char **platform, uint64_t *ver)
{
	char *at = strchr(name, '-'), *tail = strrchr(name, '-');

	if (!at || tail == at)
		return false;
	*at = 0;
	*tail = 0;
	*platform = at + 1;
	tail = strrchr(*platform, '-');
	if (!tail)
		return false;
	*tail = 0;
	*ver = strtoull(tail + 1, NULL, 16);
	return true;
}

/* The version that the file of an open epoch's keys begins with is @ver. */
static bool keys_are_of(const struct spool *s, const char *epoch, const char *platform,
			uint64_t ver)
{
	struct base_buf file = { 0 };
	uint64_t noted = 0;
	char keys[128];

	keys_name(epoch, platform, keys);
	if (base_file_read(s->dir_fd, keys, 1 << 28, &file, NULL) >= 0 && file.len >= sizeof(noted))
		memcpy(&noted, file.data, sizeof(noted));
	base_buf_release(&file);
	return noted == ver;
}

static void finish_held(struct spool *s, const char *name)
{
	char parts[SPOOL_NAME + 8], *platform;
	uint64_t ver;

	snprintf(parts, sizeof(parts), "%s", name);
	if (take_name(parts, &platform, &ver) &&
	    (spool_is_shipped(s, parts, platform) || keys_are_of(s, parts, platform, ver)))
		spool_show(s, name, NULL);
	else
		spool_drop(s, name);
}

static void finish_begun(struct spool *s)
{
	struct dirent *e;
	DIR *d;

	if (base_dir_open(s->dir_fd, ".", &d) < 0)
		return;
	while ((e = readdir(d))) {
		if (strncmp(e->d_name, HELD, strlen(HELD)) == 0)
			finish_held(s, e->d_name + strlen(HELD));
		else if (strncmp(e->d_name, ".tmp-", 5) == 0)
			unlinkat(s->dir_fd, e->d_name, 0);
	}
	closedir(d);
}

/* ---- opening --------------------------------------------------------------------------------- */

static int open_spool(const char *path, uint64_t limit, bool look, struct spool **out,
		      struct base_err *err)
{
	struct spool *s = calloc(1, sizeof(*s));
	int r = 0;

	if (!s || !(s->path = strdup(path))) {
		free(s);
		return base_fail_errno(err, -ENOMEM, "cannot open '%s'", path);
	}
	s->limit = limit;
	s->lock_fd = -1;
	if (!look && mkdir(path, 0700) < 0 && errno != EEXIST)
		r = base_fail_errno(err, -errno, "cannot make '%s'", path);
	s->dir_fd = r < 0 ? -1 : open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (r >= 0 && s->dir_fd < 0)
		r = base_fail_errno(err, -errno, "cannot open '%s'", path);
	if (r >= 0 && !look)
		r = lock(s, err);
	if (r >= 0)
		r = known_open(&s->known, s->dir_fd, err);
	if (r >= 0)
		r = read_shipped(s);
	if (r >= 0 && !look)
		finish_begun(s);
	if (r < 0) {
		base_fail_errno(err, r, "cannot open '%s'", path);
		spool_close(s);
		return r;
	}
	*out = s;
	return 0;
}

int spool_open(const char *path, uint64_t limit, struct spool **out, struct base_err *err)
{
	return open_spool(path, limit, false, out, err);
}

int spool_look(const char *path, struct spool **out, struct base_err *err)
{
	return open_spool(path, 0, true, out, err);
}

/* ---- packing: epochs become batches, each once, open ones after each flush ------------------- */

/* The fate of the parts of a joined epoch on one platform; @nr is 0 where it is not joined. */
struct gather_parts {
	size_t nr, shipped, begun; /* begun: some of it was sent */
};

struct gathering {
	struct spool *s;
	struct gather *g;
	struct profdb *db;
	struct store_pack *pack;
	struct base_buf keys; /* of the rows of an epoch, as in its file */
	struct base_map seen; /* the same, each once */
	uint64_t above, ver;  /* the version before, and this one */
	struct store_row_key *before;
	size_t nr_before, cap_before;
};

/* ---- keys of rows that were sent of an open epoch -------------------------------------------- */

/* In a file: the highest version that was sent (8 bytes), then of each key its table and length
 * (4 bytes each), and the key. */
static int note_row(void *ctx, const struct store_row_key *key)
{
	struct gathering *x = ctx;
	uint32_t head[2] = { (uint32_t)key->table, (uint32_t)key->len };
	int r;

	if (base_map_get(&x->seen, key->data, key->len))
		return 0;
	r = base_map_set(&x->seen, key->data, key->len, x);
	if (r >= 0)
		r = base_buf_append(&x->keys, head, sizeof(head));
	return r < 0 ? r : base_buf_append(&x->keys, key->data, key->len);
}

static int take_keys(struct gathering *x, const struct base_buf *bytes)
{
	uint32_t head[2];
	size_t at = sizeof(x->above);
	int r = 0;

	x->nr_before = 0;
	x->above = 0;
	base_map_release(&x->seen);
	base_buf_clear(&x->keys);
	if (bytes->len >= at)
		memcpy(&x->above, bytes->data, at);
	while (r >= 0 && bytes->len > at && bytes->len - at >= sizeof(head)) {
		memcpy(head, bytes->data + at, sizeof(head));
		at += sizeof(head);
		if (head[0] >= STORE_NR_SENT || head[1] > bytes->len - at)
			break;
		r = base_grow(&x->before, &x->cap_before, x->nr_before + 1, sizeof(*x->before));
		if (r >= 0) {
			x->before[x->nr_before] =
				(struct store_row_key){ (enum store_table_nr)head[0],
							bytes->data + at, head[1] };
			r = note_row(x, &x->before[x->nr_before++]);
		}
		at += head[1];
	}
	return r;
}

/* ---- one epoch ------------------------------------------------------------------------------- */

static void on_bad(void *ctx, const char *file, const struct base_err *why)
{
	struct gathering *x = ctx;

	(void)file;
	fprintf(stderr, "%s: warning: %s\n", x->g->prog, why->text);
}

/* The keys come first: a row that was never sent may become empty, the other way it would stay. */
static int write_keys(struct gathering *x, const char *epoch, const char *platform,
		      struct base_err *err)
{
	struct base_buf file = { 0 };
	char name[128];
	int r = base_buf_append(&file, &x->ver, sizeof(x->ver));

	if (r >= 0)
		r = base_buf_append(&file, x->keys.data, x->keys.len);
	keys_name(epoch, platform, name);
	if (r >= 0)
		r = base_file_write(x->s->dir_fd, name, 0600, file.data, file.len, err);
	base_buf_release(&file);
	return r;
}

/*
 * The batch is made, then it is noted, then others may see it. A kill in between leaves a batch
 * that is finished at the next start, or one that is not noted: it is made anew then.
 */
static int put(struct gathering *x, const char *epoch, const char *platform,
	       const struct gather_parts *parts, const struct store_batch *b, struct base_err *err)
{
	char name[SPOOL_NAME];
	int r = spool_hold(x->s, epoch, platform, x->ver, b, name, err);

	if (r < 0)
		return r;
	if (!parts)
		r = write_keys(x, epoch, platform, err);
	else if (parts->nr)
		r = spool_set_joined(x->s, epoch, platform, parts->nr, err);
	else
		r = spool_set_shipped(x->s, epoch, platform, err);
	if (r < 0) {
		spool_drop(x->s, name);
		return r;
	}
	r = spool_show(x->s, name, err);
	return r < 0 ? r : known_keep(&x->s->known, err);
}

/* Rows that earlier flushes sent stay among the keys, as a batch of theirs may come last. @parts is
 * NULL of an epoch that is still written. */
static int pack(struct gathering *x, const char *epoch, const char *platform,
		const struct gather_parts *parts, struct base_err *err)
{
	struct store_pack_how how = { .row = note_row,
				      .bad = on_bad,
				      .ver = &x->ver,
				      .ctx = x,
				      .rename = x->g->as,
				      .has = known_has,
				      .sent = known_add,
				      .known = &x->s->known };
	struct store_batch b = { 0 };
	struct base_buf before = { 0 };
	char name[128];
	int r;

	keys_name(epoch, platform, name);
	r = base_file_read(x->s->dir_fd, name, 1 << 28, &before, NULL);
	r = r == -ENOMEM ? r : take_keys(x, &before);
	how.before = x->before;
	how.nr_before = x->nr_before;
	how.above = x->above;
	if (r >= 0)
		r = store_pack_epoch(x->pack, epoch, platform, &how, &b, err);
	if (r >= 0)
		r = put(x, epoch, platform, parts, &b, err);
	if (r < 0)
		known_drop(&x->s->known);
	store_batch_release(&b);
	base_buf_release(&before);
	x->g->packed += r >= 0;
	return r < 0 ? base_fail_errno(err, r, "cannot pack '%s/%s'", epoch, platform) : 0;
}

/* An epoch that is written goes again when its last flush is another one. */
static void flush_name(struct gathering *x, const char *epoch, const char *platform, char key[160])
{
	snprintf(key, 160, "%s/%s@%" PRIu64, epoch, platform,
		 profdb_epoch_written(x->db, epoch, platform));
}

static int gather_parts(const struct spool *s, struct profdb *db, const char *epoch,
			const char *platform, struct gather_parts *out, struct base_err *err)
{
	char **parts = profdb_epoch_parts(db, epoch, err);

	*out = (struct gather_parts){ 0 };
	for (size_t i = 0; parts && parts[i]; i++) {
		char *slash = strchr(parts[i], '/');

		if (!slash || strcmp(slash + 1, platform) != 0)
			continue;
		*slash = 0;
		out->nr++;
		out->shipped += spool_is_shipped(s, parts[i], platform);
		out->begun += spool_is_begun(s, parts[i], platform);
	}
	free(parts);
	return parts ? 0 : -EIO;
}

static int leave_out(struct gathering *x, const char *epoch, const char *platform,
		     const struct gather_parts *parts, struct base_err *err)
{
	if (parts->shipped < parts->nr)
		fprintf(stderr,
			"%s: warning: '%s/%s' is left out: some of the epochs that became a part "
			"of it were sent "
			"before\n",
			x->g->prog, epoch, platform);
	return spool_leave_out(x->s, epoch, platform, err);
}

/* An epoch that is still written is packed after each flush. The flush is that before packing: one
 * that comes meanwhile is packed again. */
static int ship_open(struct gathering *x, const char *epoch, const char *platform,
		     struct base_err *err)
{
	char key[160];
	int r;

	flush_name(x, epoch, platform, key);
	if (base_map_get(&x->s->shipped, key, strlen(key)))
		return 0;
	r = pack(x, epoch, platform, NULL, err);
	return r < 0 ? r : base_map_set(&x->s->shipped, key, strlen(key), x);
}

static int ship_finished(struct gathering *x, const char *epoch, const char *platform,
			 struct base_err *err)
{
	struct gather_parts parts;
	int r = gather_parts(x->s, x->db, epoch, platform, &parts, err);

	/* A joined epoch's samples must not count twice. */
	if (r >= 0 && parts.nr && spool_is_joined(x->s, epoch, platform, parts.nr))
		return 0;
	if (r >= 0 && parts.begun)
		return leave_out(x, epoch, platform, &parts, err);
	if (r < 0 || spool_is_shipped(x->s, epoch, platform))
		return r;
	return pack(x, epoch, platform, &parts, err);
}

static int ship(struct gathering *x, const char *epoch, const char *platform, struct base_err *err)
{
	if (spool_is_left_out(x->s, epoch, platform))
		return 0;
	if (!profdb_epoch_open(x->db, epoch, platform))
		return ship_finished(x, epoch, platform, err);
	return x->g->open ? ship_open(x, epoch, platform, err) : 0;
}

/* An epoch that cannot be packed, or has just been removed, does not hold up the others. A failure
 * that each of them would meet does. */
static int ship_one(struct gathering *x, const char *epoch, const char *platform,
		    struct base_err *err)
{
	struct base_err why = { 0 };
	int r = ship(x, epoch, platform, &why);

	if (r >= 0)
		return 0;
	if (r == -ENOSPC || r == -ENOMEM || r == -EROFS || r == -EDQUOT) {
		*err = why;
		return r;
	}
	fprintf(stderr, "%s: warning: %s\n", x->g->prog, why.code ? why.text : base_strerror(r));
	return 0;
}

/* -DCPI_EUSAGE: @platforms are more than one, and all would get the name @g->as. */
static int gather_check_name(const struct gather *g, const char *epoch, char *const *platforms,
			     struct base_err *err)
{
	if (!g->as || g->platform || !platforms[0] || !platforms[1])
		return 0;
	base_fail(err, -DCPI_EUSAGE, "cannot name all platforms of epoch '%s' '%s'", epoch, g->as);
	base_hint(err, "choose one of them: -platform '%s'", platforms[0]);
	return -DCPI_EUSAGE;
}

/* Whether this platform is meant. One name is one platform's, so with it each member has to be
 * chosen by itself. */
static bool gather_takes(const struct gather *g, const char *platform)
{
	if (!g->platform)
		return true;
	return g->as ? strcmp(g->platform, platform) == 0
		     : profdb_platform_has(g->platform, platform);
}

static int ship_platforms(struct gathering *x, const char *epoch, struct base_err *err)
{
	char **platforms = profdb_platforms(x->db, epoch, NULL);
	int r = platforms ? gather_check_name(x->g, epoch, platforms, err) : 0;

	for (size_t i = 0; r >= 0 && platforms && platforms[i]; i++)
		if (gather_takes(x->g, platforms[i]))
			r = ship_one(x, epoch, platforms[i], err);
	free(platforms);
	return r;
}

int gather_epochs(struct spool *s, const char *db, struct gather *g, struct base_err *err)
{
	struct gathering x = { .s = s, .g = g };
	char **epochs = NULL;
	int r = profdb_open(db, false, &x.db, err);

	g->packed = 0;
	if (r >= 0)
		r = store_pack_open(x.db, db, &x.pack, err);
	if (r >= 0) {
		epochs = profdb_epochs(x.db, err);
		r = epochs ? 0 : -EIO;
	}
	for (size_t i = 0; r >= 0 && epochs[i] && !(g->stop && *g->stop); i++)
		r = ship_platforms(&x, epochs[i], err);
	free(epochs);
	free(x.before);
	base_buf_release(&x.keys);
	base_map_release(&x.seen);
	store_pack_close(x.pack);
	profdb_close(x.db);
	return r < 0 ? base_fail_errno(err, r, "cannot pack '%s'", db) : 0;
}

/* 1: all of it was sent; 0; negative. */
static int is_sent(const struct spool *s, struct profdb *db, const char *epoch,
		   const char *platform, struct base_err *err)
{
	struct gather_parts parts;
	int r = gather_parts(s, db, epoch, platform, &parts, err);

	if (r < 0)
		return r;
	/* A joined epoch has the name of its first part, which may have been sent alone. */
	return parts.nr ? spool_is_joined(s, epoch, platform, parts.nr)
			: spool_is_shipped(s, epoch, platform);
}

static int visit_sent(const struct spool *s, struct profdb *db, const struct gather *g,
		      const char *epoch, gather_visit *visit, void *ctx, struct base_err *err)
{
	char **platforms = profdb_platforms(db, epoch, err);
	int r = platforms ? gather_check_name(g, epoch, platforms, err) : -EIO;

	for (size_t i = 0; r >= 0 && platforms[i]; i++) {
		if (!gather_takes(g, platforms[i]))
			continue;
		r = is_sent(s, db, epoch, platforms[i], err);
		if (r > 0)
			r = visit(ctx, epoch, platforms[i], err);
	}
	free(platforms);
	return r;
}

int gather_visit_sent(const struct spool *s, struct profdb *db, const struct gather *g,
		      gather_visit *visit, void *ctx, struct base_err *err)
{
	char **epochs = profdb_epochs(db, err);
	int r = epochs ? 0 : -EIO;

	for (size_t i = 0; r >= 0 && epochs[i]; i++)
		r = visit_sent(s, db, g, epochs[i], visit, ctx, err);
	free(epochs);
	return r;
}
