/* SPDX-License-Identifier: BSD-2-Clause */
/* Processes that ended, their images made by the helper, their profiles in a database. */
#include <dirent.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "core.h"
#include "dyn_merge_read.h"
#include "jit_internal.h"
#include "fake_registry.h"

/* ---- a daemon that is killed before one of its changes to the disk --------------------------- */

static int countdown = -1; /* below 0: it is not */

int __real_renameat(int from_dir, const char *from, int to_dir, const char *to);
int __real_unlinkat(int dir, const char *path, int flags);
int __real_fsync(int fd);
int __wrap_renameat(int from_dir, const char *from, int to_dir, const char *to);
int __wrap_unlinkat(int dir, const char *path, int flags);
int __wrap_fsync(int fd);

static void step(void)
{
	if (countdown >= 0 && countdown-- == 0)
		_exit(9);
}

int __wrap_renameat(int from_dir, const char *from, int to_dir, const char *to)
{
	step();
	return __real_renameat(from_dir, from, to_dir, to);
}

int __wrap_unlinkat(int dir, const char *path, int flags)
{
	step();
	return __real_unlinkat(dir, path, flags);
}

/* The thread that runs the test, which stands for the loop, has synced so many files. */
static _Thread_local int nr_synced;

int __wrap_fsync(int fd)
{
	step();
	nr_synced++;
	return __real_fsync(fd);
}

/* ---- a trial --------------------------------------------------------------------------------- */

struct trial {
	char dir[64], epoch[PROFDB_EPOCH_LEN + 1];
	struct daemon d; /* what a flush needs of it */
	struct base_opt_list apart;
	uint64_t time_ns, sampled;
	uint64_t off; /* of the last sample */
};

static const uint8_t code[4][16] = { { 0x48, 0xff, 0xcf, 0x75, 0xfb, 0xc3 },
				     { 0x90, 0xc3 },
				     { 0x31, 0xc0, 0xc3 },
				     { 0xb8, 1, 0, 0, 0, 0xc3 } };
static const char *const names[] = { "one", "two", "three", "four" };

static void open_dyn(struct trial *t, const char *helper_dir)
{
	struct dyn_config config = { .helper_dir = helper_dir,
				     .host = "here",
				     .db = t->d.db,
				     .images = t->d.images,
				     .moves = &t->d.moves };
	struct base_err err = { 0 };

	if (dyn_open(&config, &t->d.dyn, &err) < 0)
		fail_msg("%s", err.text);
}

/* A flush drains it; nothing comes. */
static void open_source(struct trial *t)
{
	struct driver_config config = { .source = "replay" };
	struct kernel_config kernel = { .images = t->d.images };
	struct base_err err = { 0 };
	char path[96];
	FILE *f;

	snprintf(path, sizeof(path), "%s/.stream", t->dir);
	f = fopen(path, "w");
	assert_non_null(f);
	fputs("dcpi-replay 1\nutc 1700000000\nevent cycles 1000\n", f);
	assert_int_equal(fclose(f), 0);
	config.replay_path = path;
	if (driver_open(&config, &t->d.driver, &err) < 0 || driver_start(t->d.driver, &err) < 0 ||
	    kernel_open(&kernel, &t->d.kernel, &err) < 0)
		fail_msg("%s", err.text);
}

static int setup(void **state)
{
	struct trial *t = calloc(1, sizeof(*t));
	struct base_err err = { 0 };

	*state = NULL;
	if (!fake_can_exec("dcpid-pseudoimg")) {
		free(t);
		return 0;
	}
	base_log_init(stderr, BASE_LOG_ERROR, BASE_LOG_BARE);
	strcpy(t->dir, "/tmp/dcpi-unit-XXXXXX");
	assert_non_null(mkdtemp(t->dir));
	if (profdb_open(t->dir, true, &t->d.db, &err) < 0 ||
	    profdb_lock(t->d.db, "box", &err) < 0 ||
	    profdb_epoch_start(t->d.db, 1700000000, t->epoch, &err) < 0)
		fail_msg("%s", err.text);
	t->d.images = images_new();
	t->d.processes = processes_new();
	t->d.identity = identity_new(NULL);
	images_choose(t->d.images, &t->apart, NULL);
	open_source(t);
	open_dyn(t, fake_helper_dir());
	daemon_connect(&t->d);
	*state = t;
	return 0;
}

static int teardown(void **state)
{
	struct trial *t = *state;
	char command[128];

	if (!t)
		return 0;
	counts_release(&t->d.counts);
	follow_release(&t->d.follow);
	dyn_close(t->d.dyn);
	kernel_close(t->d.kernel);
	driver_close(t->d.driver);
	identity_free(t->d.identity);
	image_moves_clear(&t->d.moves);
	images_free(t->d.images);
	profdb_close(t->d.db);
	snprintf(command, sizeof(command), "rm -rf '%s'", t->dir);
	assert_int_equal(system(command), 0);
	free(t);
	return 0;
}

#define TRIAL(state)                                                                               \
	struct trial *t = *(state);                                                                \
	if (!t)                                                                                    \
	skip()

/* ---- processes ------------------------------------------------------------------------------- */

/* Routine @i of process @pid stands here: each process has its own order. */
static uint64_t place(int32_t pid, unsigned int i)
{
	return 0x10000ull * (uint64_t)pid + 64 * ((i + (unsigned int)pid) % 4);
}

static void begin(struct trial *t, struct process *p, int32_t pid)
{
	struct base_buf b = { 0 };

	*p = (struct process){
		.pid = pid, .uid = getuid(), .comm = "prog", .start_time_ns = (uint64_t)pid
	};
	fake_facility_rec(&b, 0, "work");
	for (unsigned int i = 0; i < 4; i++) {
		fake_routine_rec(&b, 0, place(pid, i), names[i], code[i], sizeof(code[i]));
		for (size_t pos = 0; pos < b.len;) {
			struct wire_head *h = (void *)(b.data + pos);

			pos += h->len;
			if (pos == b.len)
				((struct wire_routine *)h)->seq = i + 1;
		}
	}
	assert_int_equal(dyn_records(t->d.dyn, p, ++t->time_ns, b.data, b.len), 0);
	base_buf_release(&b);
}

/* @n samples in the second byte of routine @i, and as many traces that begin there and leave. */
static struct image *sample(struct trial *t, struct process *p, unsigned int i, uint64_t n)
{
	const struct dyn_query q = { .addr = place(p->pid, i) + 1,
				     .first_ns = t->time_ns,
				     .time_ns = t->time_ns,
				     .count = n };
	struct image *img = NULL;
	uint64_t off = 0;

	assert_int_equal(dyn_lookup(t->d.dyn, p, &q, &img, &off), DYN_FOUND);
	assert_int_equal(profdb_profile_event_add(img->counts, "cycles", 1), 0);
	assert_int_equal(profdb_profile_add(img->counts, off, 0, n), 0);
	assert_int_equal(
		profdb_profile_edge_add(
			img->counts, &(struct profdb_edge){ off, off, PROFDB_OUTSIDE, { 0, n } }),
		0);
	img->dirty = true;
	t->off = off;
	t->sampled += n;
	return img;
}

/* ---- what is on disk ------------------------------------------------------------------------- */

static unsigned int files(const struct trial *t)
{
	DIR *dir = fdopendir(dup(profdb_dyn_fd(t->d.db)));
	unsigned int nr = 0;
	struct dirent *e;

	assert_non_null(dir);
	rewinddir(dir);
	while ((e = readdir(dir)))
		nr += e->d_name[0] != '.';
	closedir(dir);
	return nr;
}

struct sums {
	struct trial *t;
	uint64_t of[4], other, bad;
	uint64_t traces[4]; /* as of[], but of those, by both ends of the way in the image */
	unsigned int profiles;
	int processes; /* of the image of the last one */
};

static int routine_at(struct sums *s, const struct profdb_profile *p, uint64_t off, int *r)
{
	char name[64];
	int k = 0;

	*r = merge_read(profdb_dyn_fd(s->t->d.db), p, off, name);
	while (k < 4 && strcmp(name, names[k]))
		k++;
	return k;
}

static void add_traces(struct sums *s, const struct profdb_profile *p)
{
	for (size_t i = 0; i < profdb_profile_nr_edges(p); i++) {
		const struct profdb_edge *m = profdb_profile_edge(p, i);
		int r, k = routine_at(s, p, m->start, &r);

		assert_true(m->from == m->start && m->to == PROFDB_OUTSIDE && !m->count[0]);
		if (r < 0)
			s->bad += m->count[1];
		else if (k < 4)
			s->traces[k] += m->count[1];
	}
}

/* Whatever is on disk: each profile leads to an image, which names the routine of each sample. */
static int add_profile(void *ctx, const char *file, struct profdb_profile *p)
{
	/* A bucket has no image. */
	bool is_bucket = profdb_profile_kind(p) == PROFDB_NAMED;
	size_t nr = is_bucket ? 0 : profdb_profile_nr_entries(p);
	struct sums *s = ctx;

	(void)file;
	s->profiles++;
	for (size_t i = 0; i < nr; i++) {
		const struct profdb_entry *e = profdb_profile_entry(p, i);
		int r, k = routine_at(s, p, e->off, &r);

		if (r < 0)
			s->bad += e->count[0];
		else if (k < 4)
			s->of[k] += e->count[0];
		else
			s->other += e->count[0];
		s->processes = r;
	}
	add_traces(s, p);
	profdb_profile_free(p);
	return 0;
}

static struct sums look(struct trial *t, const char *epoch)
{
	struct sums s = { .t = t };

	assert_int_equal(profdb_walk(t->d.db, epoch, "box", add_profile, NULL, &s, NULL), 0);
	assert_int_equal(s.bad, 0);
	assert_memory_equal(s.traces, s.of, sizeof(s.of));
	return s;
}

static void flush(struct trial *t)
{
	struct base_err err = { 0 };

	if (daemon_flush(&t->d, &err) < 0)
		fail_msg("%s", err.text);
}

/* ---- tests ----------------------------------------------------------------------------------- */

/* In haste, in as many turns as the helper and the disk take. */
static void flush_until_done(struct trial *t)
{
	for (int i = 0; i < 1000 && (!i || dyn_is_behind(t->d.dyn)); i++) {
		budget_turn(t->d.dyn->config.budgets);
		flush(t);
	}
	assert_false(dyn_is_behind(t->d.dyn));
}

/* In haste, processes of a user who has had the turn wait for the next one, with their samples. */
static void test_turns(void **state)
{
	struct budgets *b = budgets_new();
	struct process p;
	struct sums s;
	TRIAL(state);

	assert_non_null(b);
	t->d.dyn->config.budgets = b;
	for (int32_t pid = 1; pid <= 5; pid++) {
		begin(t, &p, pid);
		sample(t, &p, 0, 1);
		dyn_end(t->d.dyn, &p);
	}
	dyn_set_hasty(t->d.dyn, true);
	dyn_begin_flush(t->d.dyn);
	budget_turn(b);
	budget_waited(b, p.uid, 1000000000u, 0, 0);
	flush(t);
	assert_true(dyn_is_behind(t->d.dyn));
	assert_int_equal(look(t, t->epoch).profiles, 0);
	flush_until_done(t);
	assert_null(t->d.dyn->registries);
	assert_int_equal(files(t), 1);
	s = look(t, t->epoch);
	assert_int_equal(s.processes, 5);
	assert_int_equal(s.of[0], 5);
	/* One that begins now is the next flush's. */
	begin(t, &p, 6);
	assert_false(dyn_is_behind(t->d.dyn));
	dyn_begin_flush(t->d.dyn);
	assert_true(dyn_is_behind(t->d.dyn));
	dyn_end(t->d.dyn, &p);
	dyn_set_hasty(t->d.dyn, false);
	t->d.dyn->config.budgets = NULL;
	budgets_free(b);
}

/* The disk may be slow: in haste the loop syncs none of these files itself, and does not wait. */
static void test_synced_elsewhere(void **state)
{
	struct process p;
	struct sums s;
	TRIAL(state);

	t->d.dyn->helper.meanwhile = NULL;
	for (int32_t pid = 1; pid <= 5; pid++) {
		begin(t, &p, pid);
		sample(t, &p, 0, 1);
		dyn_end(t->d.dyn, &p);
	}
	dyn_set_hasty(t->d.dyn, true);
	dyn_begin_flush(t->d.dyn);
	nr_synced = 0;
	for (int i = 0; i < 1000 && dyn_is_behind(t->d.dyn); i++) {
		assert_int_equal(dyn_merge(t->d.dyn, NULL), 0);
		assert_int_equal(dyn_write_images(t->d.dyn, NULL), 0);
		dyn_tasks_grace(t->d.dyn);
	}
	assert_int_equal(nr_synced, 0);
	flush(t);
	s = look(t, t->epoch);
	assert_int_equal(s.processes, 5);
	assert_int_equal(s.of[0], 5);
	assert_int_equal(files(t), 1);
	dyn_set_hasty(t->d.dyn, false);
}

struct living {
	struct process p[3];
	const struct dyn_facility *f[3];
	bool behind[3]; /* when the turn began */
	struct budgets *b;
};

/* A turn has time to begin with one of them. */
static void take_all(void *ctx)
{
	struct living *l = ctx;

	for (size_t i = 0; i < 3; i++)
		if (l->behind[i] && (l->f[i]->writing || !dyn_facility_is_behind(l->f[i], false)))
			budget_waited(l->b, l->p[i].uid, 1000000000u, 0, 0);
}

/* Each process runs new code in every turn: each is written within three turns all the same. */
static void test_turns_of_living(void **state)
{
	struct living l = { .b = budgets_new() };
	TRIAL(state);

	assert_non_null(l.b);
	for (int32_t i = 0; i < 3; i++) {
		begin(t, &l.p[i], i + 1);
		l.f[i] = l.p[i].dyn->own->facilities[0];
	}
	t->d.dyn->config.budgets = l.b;
	t->d.dyn->config.meanwhile = take_all;
	t->d.dyn->config.meanwhile_ctx = &l;
	dyn_set_hasty(t->d.dyn, true);
	dyn_begin_flush(t->d.dyn);
	for (unsigned int turn = 0; turn < 3; turn++) {
		for (size_t i = 0; i < 3; i++) {
			sample(t, &l.p[i], turn, 1);
			l.behind[i] = dyn_facility_is_behind(l.f[i], false);
			assert_true(l.behind[i]);
		}
		assert_true(dyn_is_behind(t->d.dyn));
		budget_turn(l.b);
		/* Its end costs no turn. */
		do
			flush(t);
		while (t->d.dyn->tasks);
	}
	assert_false(dyn_is_behind(t->d.dyn));
	dyn_set_hasty(t->d.dyn, false);
	t->d.dyn->config.budgets = NULL;
	t->d.dyn->config.meanwhile = NULL;
	for (size_t i = 0; i < 3; i++)
		dyn_end(t->d.dyn, &l.p[i]);
	budgets_free(l.b);
}

/* They live and die between two flushes: one file, one profile, and sums by routine. */
static void test_many(void **state)
{
	struct process p;
	struct sums s;
	TRIAL(state);

	for (int round = 1; round <= 3; round++) {
		for (int32_t pid = 1; pid <= 20; pid++) {
			begin(t, &p, 100 * round + pid);
			for (unsigned int i = 0; i < 3; i++)
				sample(t, &p, i + (pid % 5 == 0), i + 1);
			dyn_end(t->d.dyn, &p);
		}
		flush(t);
		assert_null(t->d.dyn->registries);
		assert_int_equal(files(t), 1);
		s = look(t, t->epoch);
		assert_int_equal(s.profiles, 1);
		assert_int_equal(s.processes, 20 * round);
		assert_int_equal(s.of[0], 16 * round);
		assert_int_equal(s.of[1], (16 * 2 + 4) * round);
		assert_int_equal(s.of[2], (16 * 3 + 4 * 2) * round);
		assert_int_equal(s.of[3], 4 * 3 * round);
		assert_int_equal(s.other, 0);
	}
}

/* Each was flushed while it lived: their profiles follow, and lead to the routines until then. */
static void test_flushed_before(void **state)
{
	struct process p[6];
	struct sums s;
	TRIAL(state);

	for (int32_t i = 0; i < 6; i++) {
		begin(t, &p[i], i + 1);
		sample(t, &p[i], 0, 1);
		sample(t, &p[i], 1 + (unsigned int)i % 3, 10);
	}
	flush(t);
	assert_int_equal(files(t), 6);
	s = look(t, t->epoch);
	assert_int_equal(s.profiles, 6);
	for (int32_t i = 0; i < 5; i++) {
		sample(t, &p[i], 3, 100);
		dyn_end(t->d.dyn, &p[i]);
	}
	/* Killed before the flush's profiles: the old ones are led to the new image. */
	assert_int_equal(dyn_merge(t->d.dyn, NULL), 0);
	assert_int_equal(files(t), 2);
	s = look(t, t->epoch);
	assert_int_equal(s.profiles, 6);
	assert_int_equal(s.of[0] + s.of[1] + s.of[2] + s.of[3], 66);
	assert_int_equal(s.of[0], 6);
	assert_int_equal(s.of[1], 20);
	flush(t);
	s = look(t, t->epoch);
	assert_int_equal(s.profiles, 2);
	assert_int_equal(s.of[0], 6);
	assert_int_equal(s.of[1], 20);
	assert_int_equal(s.of[2], 20);
	assert_int_equal(s.of[3], 520);
	assert_int_equal(t->d.moves.nr, 0);
	dyn_end(t->d.dyn, &p[5]);
	flush(t);
	s = look(t, t->epoch);
	assert_int_equal(s.profiles, 1);
	assert_int_equal(s.processes, 6);
	assert_int_equal(s.of[3], 520);
	assert_int_equal(files(t), 1);
}

/*
 * The database goes and another one comes: what lives has all its code there. Of those that ended
 * and were folded nobody has the code any more, and no image is told to hold it.
 */
static void test_database_removed(void **state)
{
	struct process old, lives, after;
	struct base_err err = { 0 };
	char command[128];
	struct sums s;
	TRIAL(state);

	begin(t, &old, 1);
	sample(t, &old, 0, 1);
	dyn_end(t->d.dyn, &old);
	begin(t, &lives, 2);
	sample(t, &lives, 1, 10);
	flush(t);
	assert_int_equal(files(t), 2);
	begin(t, &old, 3);
	sample(t, &old, 2, 5);
	dyn_end(t->d.dyn, &old);
	assert_int_equal(dyn_merge(t->d.dyn, NULL), 0);
	sample(t, &lives, 3, 100);
	snprintf(command, sizeof(command), "rm -r '%s'", t->dir);
	assert_int_equal(system(command), 0);
	assert_int_equal(daemon_flush(&t->d, &err), -ENOENT);
	/* They end, and there is no database to fold them in. */
	begin(t, &after, 4);
	sample(t, &after, 0, 1000);
	dyn_end(t->d.dyn, &after);
	sample(t, &lives, 1, 10000);
	dyn_end(t->d.dyn, &lives);
	assert_int_equal(dyn_merge(t->d.dyn, NULL), -ENOENT);
	assert_int_equal(mkdir(t->dir, 0755), 0);
	flush(t);
	assert_int_equal(t->d.store.account.bucket[ACCOUNT_BUCKET_REFUSED], 5);
	assert_int_equal(files(t), 1);
	s = look(t, t->d.epoch);
	assert_int_equal(s.of[0], 1000);
	assert_int_equal(s.of[1], 10000);
	assert_int_equal(s.of[2], 0);
	assert_int_equal(s.of[3], 100);
}

/* A copy that is put back has the code of those that ended. */
static void test_copy_put_back(void **state)
{
	struct process old;
	char command[400];
	struct sums s;
	TRIAL(state);

	begin(t, &old, 1);
	sample(t, &old, 2, 5);
	dyn_end(t->d.dyn, &old);
	assert_int_equal(dyn_merge(t->d.dyn, NULL), 0);
	snprintf(command, sizeof(command),
		 "cp -a '%s' '%s.copy' && rm -r '%s' && mv '%s.copy' '%s'", t->dir, t->dir, t->dir,
		 t->dir, t->dir);
	assert_int_equal(system(command), 0);
	flush(t);
	assert_int_equal(t->d.store.account.bucket[ACCOUNT_BUCKET_REFUSED], 0);
	s = look(t, t->d.epoch);
	assert_int_equal(s.of[2], 5);
}

/* In a flush of its own: one where the last sample was. */
static void put_value(struct trial *t, const struct image *img)
{
	struct profdb_values *v =
		profdb_values_new(PROFDB_DYNAMIC, &img->id, img->path, PROFDB_VALUES);

	assert_non_null(v);
	assert_int_equal(profdb_values_add(v, t->off, NULL, 7), 0);
	assert_int_equal(profdb_flush_begin(t->d.db, NULL), 0);
	assert_int_equal(profdb_flush_put_values(t->d.db, img->stem, v, 1000, NULL), 0);
	assert_int_equal(profdb_flush_commit(t->d.db, NULL), 0);
	profdb_values_free(v);
}

static int add_values(void *ctx, const char *file, struct profdb_values *v)
{
	struct sums *s = ctx;

	(void)file;
	s->profiles++;
	for (size_t i = 0; i < profdb_values_nr(v); i++) {
		const struct profdb_hotlist *l = profdb_values_at(v, i);
		int r, k = routine_at(s, profdb_values_header(v), l->off, &r);

		assert_true(r >= 0 && k < 4);
		s->of[k] += l->vtot;
	}
	profdb_values_free(v);
	return 0;
}

static struct sums look_at_values(struct trial *t)
{
	struct sums s = { .t = t };

	assert_int_equal(profdb_walk_values(t->d.db, t->epoch, "box", PROFDB_VALUES, add_values,
					    NULL, &s, NULL),
			 0);
	return s;
}

/* Values that were stored before their image became part of another one go with its profile. */
static void test_values(void **state)
{
	struct process p[4];
	struct sums s;
	TRIAL(state);

	for (int32_t i = 0; i < 4; i++) {
		begin(t, &p[i], i + 1);
		for (unsigned int k = 0; k <= (unsigned int)i; k++)
			sample(t, &p[i], k, 1);
	}
	flush(t);
	for (int32_t i = 0; i < 4; i++)
		put_value(t, sample(t, &p[i], (unsigned int)i, 1));
	s = look_at_values(t);
	assert_int_equal(s.profiles, 4);
	for (int32_t i = 0; i < 4; i++)
		dyn_end(t->d.dyn, &p[i]);
	flush(t);
	assert_int_equal(files(t), 1);
	s = look_at_values(t);
	assert_int_equal(s.profiles, 1);
	for (int k = 0; k < 4; k++)
		assert_int_equal(s.of[k], 1);
}

/* Values that come when their image is part of another one already, and was never on disk. */
static void test_late_values(void **state)
{
	struct process p[4];
	struct image *img[4];
	uint64_t off[4];
	struct sums s;
	TRIAL(state);

	for (int32_t i = 0; i < 4; i++) {
		begin(t, &p[i], i + 1);
		for (unsigned int k = 0; k <= (unsigned int)i; k++)
			img[i] = sample(t, &p[i], k, 1);
		image_get(img[i]);
		off[i] = t->off;
		dyn_end(t->d.dyn, &p[i]);
	}
	assert_int_equal(dyn_merge(t->d.dyn, NULL), 0);
	for (int32_t i = 0; i < 4; i++) {
		struct profdb_values *v = image_values_get(img[i], PROFDB_VALUES, NULL);

		assert_non_null(v);
		assert_int_equal(profdb_values_add(v, off[i], NULL, 7), 0);
	}
	flush(t);
	s = look_at_values(t);
	assert_int_equal(s.profiles, 1);
	for (int k = 0; k < 4; k++)
		assert_int_equal(s.of[k], 1);
	assert_int_equal(files(t), 1);
}

/* Some were gone before their path could be read: it is known from the load events. */
static void test_by_program(void **state)
{
	char one[] = "/opt/one", two[] = "/opt/two";
	struct process p;
	TRIAL(state);

	for (int32_t pid = 1; pid <= 6; pid++) {
		begin(t, &p, pid);
		sample(t, &p, 0, 1);
		p.exe = pid % 2 ? one : two;
		dyn_end(t->d.dyn, &p);
	}
	flush(t);
	assert_int_equal(files(t), 2);
	assert_int_equal(look(t, t->epoch).of[0], 6);
}

/* Profiles of finished epochs stay as they are, and lead to the image all the same. */
static void test_epochs(void **state)
{
	struct process a, b, c;
	char first[PROFDB_EPOCH_LEN + 1];
	struct base_err err = { 0 };
	struct sums s;
	TRIAL(state);

	begin(t, &a, 1);
	begin(t, &b, 2);
	begin(t, &c, 3);
	sample(t, &a, 0, 1);
	sample(t, &b, 1, 2);
	sample(t, &c, 2, 4);
	dyn_end(t->d.dyn, &a);
	flush(t);
	assert_int_equal(files(t), 3);
	strcpy(first, t->epoch);
	strcpy(t->d.epoch, t->epoch);
	if (daemon_new_epoch(&t->d, &err) < 0)
		fail_msg("%s", err.text);
	sample(t, &b, 1, 8);
	dyn_end(t->d.dyn, &b);
	dyn_end(t->d.dyn, &c);
	flush(t);
	/* Not onto that of the epoch before; c, which has no new sample, leads here too. */
	assert_int_equal(files(t), 2);
	s = look(t, first);
	assert_int_equal(s.profiles, 3);
	assert_int_equal(s.of[0], 1);
	assert_int_equal(s.of[1], 2);
	assert_int_equal(s.of[2], 4);
	s = look(t, t->d.epoch);
	assert_int_equal(s.profiles, 1);
	assert_int_equal(s.of[1], 8);
}

static void test_apart(void **state)
{
	struct process p;
	TRIAL(state);
	const char *list[] = { "work" };

	t->apart = (struct base_opt_list){ .items = list, .nr = 1 };
	for (int32_t pid = 1; pid <= 3; pid++) {
		begin(t, &p, pid);
		sample(t, &p, 0, 1);
		dyn_end(t->d.dyn, &p);
	}
	flush(t);
	assert_int_equal(files(t), 3);
	assert_int_equal(look(t, t->epoch).profiles, 3);
	t->apart = (struct base_opt_list){ 0 };
	/* Others of another user, or of another facility, keep apart of themselves. */
	for (int32_t pid = 4; pid <= 9; pid++) {
		begin(t, &p, pid);
		p.dyn->own->uid = 1000 + (uint32_t)pid % 2;
		sample(t, &p, 0, 1);
		dyn_end(t->d.dyn, &p);
	}
	flush(t);
	assert_int_equal(files(t), 5);
}

static int has_label(void *ctx, const char *file, struct profdb_profile *p)
{
	const char *label = profdb_profile_word(p, "label");
	uint64_t *sums = ctx;

	(void)file;
	for (size_t i = 0; i < profdb_profile_nr_entries(p); i++)
		sums[label ? label[0] - 'a' : 2] += profdb_profile_entry(p, i)->count[0];
	profdb_profile_free(p);
	return 0;
}

/* Of each label an image: of those flushed before they ended, and of others. */
static void test_labels(void **state)
{
	static const char *const labels[] = { "a", "b", NULL };
	struct process p[12];
	uint64_t sums[3] = { 0 };
	TRIAL(state);

	for (int32_t i = 0; i < 12; i++) {
		struct image *img;

		begin(t, &p[i], i + 1);
		img = sample(t, &p[i], 0, 1);
		if (labels[i % 3])
			assert_int_equal(image_set_label(img, labels[i % 3]), 0);
		if (i == 5)
			flush(t);
	}
	for (int32_t i = 0; i < 12; i++) {
		sample(t, &p[i], 1, 10 + (uint64_t)i % 3);
		dyn_end(t->d.dyn, &p[i]);
	}
	flush(t);
	assert_int_equal(files(t), 3);
	assert_int_equal(look(t, t->epoch).profiles, 3);
	assert_int_equal(profdb_walk(t->d.db, t->epoch, "box", has_label, NULL, sums, NULL), 0);
	for (unsigned int i = 0; i < 3; i++)
		assert_int_equal(sums[i], 4 * (11 + i));
}

/* Whatever the helper cannot do: each keeps an image of its own, and is counted. */
static void test_failing_helper(void **state)
{
	struct dyn_stats stats;
	struct process p;
	struct sums s;
	const char *good;
	TRIAL(state);

	begin(t, &p, 1);
	sample(t, &p, 0, 1);
	dyn_end(t->d.dyn, &p);
	flush(t);
	good = t->d.dyn->helper.program;
	t->d.dyn->helper.program = "/bin/false";
	for (int32_t pid = 2; pid <= 3; pid++) {
		begin(t, &p, pid);
		sample(t, &p, 0, 1);
		dyn_end(t->d.dyn, &p);
	}
	flush(t);
	dyn_stats_get(t->d.dyn, &stats);
	assert_int_equal(stats.merges_failed, 2);
	assert_int_equal(look(t, t->epoch).profiles, 1);
	t->d.dyn->helper.program = good;
	flush(t);
	s = look(t, t->epoch);
	assert_int_equal(s.profiles, 3);
	assert_int_equal(s.of[0], 3);
	/* The next ones are folded again, into another one. */
	for (int32_t pid = 4; pid <= 6; pid++) {
		begin(t, &p, pid);
		sample(t, &p, 0, 1);
		dyn_end(t->d.dyn, &p);
	}
	flush(t);
	assert_int_equal(files(t), 4);
	assert_int_equal(look(t, t->epoch).of[0], 6);
	assert_null(t->d.dyn->registries);
}

/* Somebody has removed what the others were folded onto. */
static void test_base_is_gone(void **state)
{
	struct process p;
	struct image *img;
	TRIAL(state);

	begin(t, &p, 1);
	img = sample(t, &p, 0, 1);
	dyn_end(t->d.dyn, &p);
	flush(t);
	assert_int_equal(unlinkat(profdb_dyn_fd(t->d.db), img->stem, 0), 0);
	begin(t, &p, 2);
	sample(t, &p, 0, 1);
	dyn_end(t->d.dyn, &p);
	flush(t);
	assert_int_equal(files(t), 1);
}

/* Who holds an image that was folded adds to nothing that counts elsewhere already. */
static void test_nothing_is_left(void **state)
{
	struct image *img = NULL;
	struct process p;
	TRIAL(state);

	for (int32_t pid = 1; pid <= 2; pid++) {
		begin(t, &p, pid);
		img = sample(t, &p, 0, 1);
		img->refs++;
		dyn_end(t->d.dyn, &p);
		flush(t);
	}
	assert_int_equal(files(t), 1);
	assert_int_equal(profdb_profile_nr_entries(img->counts), 0);
}

/* Exit status of a daemon that is killed at step @n of a flush; 0: it came to the end before. */
static int flush_until(struct trial *t, int n)
{
	struct base_err err = { 0 };
	pid_t child = fork();
	int status;

	assert_true(child >= 0);
	if (!child) {
		countdown = n;
		_exit(daemon_flush(&t->d, &err) < 0 ? 1 : 0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

/* Everything that was on disk is there, once, and leads to its routine; the rest all or not. */
static int killed_at(struct trial *t, int n)
{
	struct process p[4];
	struct sums s;
	int r;

	for (int32_t i = 0; i < 4; i++) {
		begin(t, &p[i], i + 1);
		sample(t, &p[i], 0, 1);
		sample(t, &p[i], (unsigned int)i, 10);
	}
	flush(t);
	for (int32_t i = 0; i < 4; i++) {
		sample(t, &p[i], 3, 100);
		dyn_end(t->d.dyn, &p[i]);
	}
	r = flush_until(t, n);
	s = look(t, t->epoch);
	assert_int_equal(s.of[0], 14);
	assert_int_equal(s.of[1], 10);
	assert_int_equal(s.of[2], 10);
	assert_true(s.of[3] == 410 || (r && s.of[3] == 10));
	assert_int_equal(s.other, 0);
	assert_int_equal(s.profiles, s.of[3] == 410 ? 1 : 4);
	return r;
}

static void test_killed(void **state)
{
	int r = 9;

	if (!*state)
		skip();
	for (int n = 0; r; n++) {
		assert_in_range(n, 0, 100);
		r = killed_at(*state, n);
		teardown(state);
		setup(state);
		assert_true(r == 0 || r == 9);
		assert_true(r || n > 10);
	}
}

/* ---- a helper that takes long ---------------------------------------------------------------- */

/* From now on the helper does nothing before let_go, then @what. */
static void hold_helper(struct trial *t, const char *what)
{
	char path[96];
	FILE *f;

	snprintf(path, sizeof(path), "%s/.helper", t->dir);
	f = fopen(path, "w");
	assert_non_null(f);
	fprintf(f, "#!/bin/sh\nwhile [ ! -e %s/.go ]; do sleep 0.01; done\n%s\n", t->dir, what);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(chmod(path, 0755), 0);
	free(t->d.dyn->program);
	t->d.dyn->program = strdup(path);
	t->d.dyn->helper.program = t->d.dyn->program;
}

static const char *real_helper(void)
{
	static char what[4200];

	snprintf(what, sizeof(what), "exec '%s/dcpid-pseudoimg' \"$@\"", fake_helper_dir());
	return what;
}

static void let_go(const struct trial *t)
{
	char path[96];
	FILE *f;

	snprintf(path, sizeof(path), "%s/.go", t->dir);
	f = fopen(path, "w");
	assert_non_null(f);
	fclose(f);
}

/* Three that have ended and one that lives, each with a sample in the first routine; and the first
 * turn of a flush. */
static void begin_slowly(struct trial *t, struct process *lives, const char *what)
{
	struct process p;

	hold_helper(t, what);
	for (int32_t pid = 1; pid <= 3; pid++) {
		begin(t, &p, pid);
		sample(t, &p, 0, 1);
		dyn_end(t->d.dyn, &p);
	}
	begin(t, lives, 4);
	sample(t, lives, 0, 1);
	dyn_set_hasty(t->d.dyn, true);
	dyn_begin_flush(t->d.dyn);
	flush(t);
}

static void flush_slowly(struct trial *t)
{
	for (int n = 0; dyn_is_behind(t->d.dyn); n++) {
		assert_in_range(n, 0, 1000);
		flush(t);
	}
	dyn_set_hasty(t->d.dyn, false);
}

/* The daemon does other things meanwhile, also for that user; profiles wait for their images. */
static void test_slow_helper(void **state)
{
	struct process p;
	struct sums s;
	TRIAL(state);

	begin_slowly(t, &p, real_helper());
	assert_true(dyn_is_behind(t->d.dyn));
	assert_int_equal(look(t, t->epoch).profiles, 0);
	assert_non_null(t->d.dyn->tasks);
	/* Of what waits, and is being written, nothing is lost. */
	sample(t, &p, 1, 1);
	flush(t);
	assert_int_equal(look(t, t->epoch).profiles, 0);
	let_go(t);
	flush_slowly(t);
	s = look(t, t->epoch);
	assert_int_equal(s.of[0], 4);
	assert_int_equal(s.of[1], 1);
	assert_int_equal(s.profiles, 2);
	assert_int_equal(files(t), 2);
	/* The one that lives is written while it gets samples in more routines. */
	assert_int_equal(unlinkat(profdb_dyn_fd(t->d.db), "../.go", 0), 0);
	sample(t, &p, 2, 1);
	dyn_set_hasty(t->d.dyn, true);
	dyn_begin_flush(t->d.dyn);
	flush(t);
	assert_non_null(t->d.dyn->tasks);
	sample(t, &p, 3, 1);
	let_go(t);
	flush_slowly(t);
	s = look(t, t->epoch);
	assert_int_equal(s.of[2], 1);
	assert_int_equal(s.of[3], 1);
	dyn_end(t->d.dyn, &p);
}

/* Images that it makes nothing of are written once more. */
static void test_slow_failure(void **state)
{
	struct process p;
	struct sums s;
	char *path;
	TRIAL(state);

	begin_slowly(t, &p, "exit 1");
	let_go(t);
	assert_true(asprintf(&path, "%s/dcpid-pseudoimg", fake_helper_dir()) > 0);
	/* Each has used the helper's name when it is done. */
	for (const struct dyn_task *task = t->d.dyn->tasks; task; task = task->next)
		while (!image_task_is_done(task->task, 1000))
			;
	free(t->d.dyn->program);
	t->d.dyn->program = path;
	t->d.dyn->helper.program = path;
	flush_slowly(t);
	flush(t);
	s = look(t, t->epoch);
	assert_int_equal(s.of[0], 4);
	/* They were not merged. */
	assert_int_equal(files(t), 4);
	dyn_end(t->d.dyn, &p);
}

/* A user has four at a time, and waits for their ends. */
static void test_slow_crowd(void **state)
{
	const struct dyn_task *of_user;
	struct process p[6];
	unsigned int nr = 0;
	struct sums s;
	TRIAL(state);

	for (int32_t i = 0; i < 6; i++) {
		begin(t, &p[i], i + 1);
		sample(t, &p[i], 0, 1);
	}
	hold_helper(t, real_helper());
	dyn_set_hasty(t->d.dyn, true);
	dyn_begin_flush(t->d.dyn);
	flush(t);
	for (of_user = t->d.dyn->tasks; of_user; of_user = of_user->next)
		nr++;
	assert_int_equal(nr, 4);
	assert_true(dyn_task_must_wait(t->d.dyn, p->uid));
	assert_false(dyn_task_must_wait(t->d.dyn, p->uid + 1));
	let_go(t);
	flush_slowly(t);
	s = look(t, t->epoch);
	assert_int_equal(s.of[0], 6);
	for (int i = 0; i < 6; i++)
		dyn_end(t->d.dyn, &p[i]);
}

/* What is under way is waited for at the end, and when an epoch begins. */
static void test_slow_end(void **state)
{
	struct process p;
	TRIAL(state);

	begin_slowly(t, &p, "exec false");
	let_go(t);
	dyn_merge_forget(t->d.dyn);
	assert_null(t->d.dyn->merges);
	dyn_set_hasty(t->d.dyn, true);
	sample(t, &p, 1, 1);
	assert_int_equal(unlinkat(profdb_dyn_fd(t->d.db), "../.go", 0), 0);
	flush(t);
	let_go(t);
	dyn_end(t->d.dyn, &p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_many, setup, teardown),
		cmocka_unit_test_setup_teardown(test_turns, setup, teardown),
		cmocka_unit_test_setup_teardown(test_synced_elsewhere, setup, teardown),
		cmocka_unit_test_setup_teardown(test_turns_of_living, setup, teardown),
		cmocka_unit_test_setup_teardown(test_flushed_before, setup, teardown),
		cmocka_unit_test_setup_teardown(test_database_removed, setup, teardown),
		cmocka_unit_test_setup_teardown(test_copy_put_back, setup, teardown),
		cmocka_unit_test_setup_teardown(test_values, setup, teardown),
		cmocka_unit_test_setup_teardown(test_late_values, setup, teardown),
		cmocka_unit_test_setup_teardown(test_by_program, setup, teardown),
		cmocka_unit_test_setup_teardown(test_epochs, setup, teardown),
		cmocka_unit_test_setup_teardown(test_apart, setup, teardown),
		cmocka_unit_test_setup_teardown(test_labels, setup, teardown),
		cmocka_unit_test_setup_teardown(test_failing_helper, setup, teardown),
		cmocka_unit_test_setup_teardown(test_base_is_gone, setup, teardown),
		cmocka_unit_test_setup_teardown(test_nothing_is_left, setup, teardown),
		cmocka_unit_test_setup_teardown(test_killed, setup, teardown),
		cmocka_unit_test_setup_teardown(test_slow_helper, setup, teardown),
		cmocka_unit_test_setup_teardown(test_slow_failure, setup, teardown),
		cmocka_unit_test_setup_teardown(test_slow_crowd, setup, teardown),
		cmocka_unit_test_setup_teardown(test_slow_end, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
