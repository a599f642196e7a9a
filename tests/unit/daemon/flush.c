/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "follow_internal.h"
#include "stand_ins.h"
#include "trace.h"

static char folder[64], db_path[80];
static struct trial t;
static struct daemon d;
static FILE *quiet;
static bool damaged; /* what is on disk */

static void write_stream(const char *path)
{
	FILE *f = fopen(path, "w");

	assert_non_null(f);
	fputs("dcpi-replay 1\nutc 1700000000\nevent cycles 1000\nevent misses 10\n"
	      "mmap pid=1 addr=0x1000 len=0x1000 id=01 path=/bin/a\n"
	      "count pid=1 addr=0x1001 n=3\n",
	      f);
	assert_int_equal(fclose(f), 0);
}

static int setup(void **state)
{
	struct driver_config config = { .source = "replay" };
	struct base_err err = { 0 };
	char path[96];

	(void)state;
	strcpy(folder, "/tmp/dcpi-flush-XXXXXX");
	assert_non_null(mkdtemp(folder));
	snprintf(path, sizeof(path), "%s/stream", folder);
	snprintf(db_path, sizeof(db_path), "%s/db", folder);
	write_stream(path);
	config.replay_path = path;
	trial_daemon(&t, &d, db_path);
	assert_int_equal(driver_open(&config, &d.driver, &err), 0);
	assert_int_equal(driver_start(d.driver, &err), 0);
	base_log_init(quiet, BASE_LOG_ERROR, BASE_LOG_BARE);
	return 0;
}

/* ---- the law: sums by image are those of the workloads --------------------------------------- */

struct sums {
	struct {
		char path[100];
		uint64_t flat, by_workload, by_minute;
	} items[16];
	size_t nr;
};

static size_t sum_of(struct sums *s, const char *path)
{
	size_t i = 0;

	while (i < s->nr && strncmp(s->items[i].path, path, sizeof(s->items->path) - 1) != 0)
		i++;
	if (i == s->nr) {
		assert_in_range(s->nr, 0, 15);
		snprintf(s->items[s->nr++].path, sizeof(s->items->path), "%s", path);
	}
	return i;
}

static int add_flat(void *ctx, const char *file, struct profdb_profile *p)
{
	struct sums *s = ctx;
	size_t to = sum_of(s, profdb_profile_path(p, 0));

	(void)file;
	for (size_t i = 0; i < profdb_profile_nr_events(p); i++)
		s->items[to].flat += profdb_profile_event(p, i)->sum;
	profdb_profile_free(p);
	return 0;
}

static void add_workloads(struct sums *s, const struct profdb_workloads *w)
{
	for (size_t i = 0; i < profdb_workloads_nr_counts(w); i++) {
		struct profdb_workload_count c = profdb_workloads_count(w, i);
		size_t to = sum_of(s, profdb_workloads_image(w, c.image)->path);

		for (size_t e = 0; e < profdb_workloads_nr_events(w); e++)
			s->items[to].by_workload += c.count[e];
	}
	for (size_t i = 0; i < profdb_workloads_nr_minutes(w); i++) {
		struct profdb_workload_minute m = profdb_workloads_minute(w, i);
		size_t to = sum_of(s, profdb_workloads_image(w, m.image)->path);

		for (size_t e = 0; e < profdb_workloads_nr_events(w); e++)
			s->items[to].by_minute += m.count[e];
	}
}

/* It looks at the open epoch. */
static void same_sums(void)
{
	struct profdb_workloads *w = NULL;
	struct profdb *db = NULL;
	struct base_err err = { 0 };
	struct sums s = { 0 };

	trial_same_sums(d.images);
	if (profdb_open(db_path, false, &db, &err) < 0)
		return;
	profdb_walk(db, d.epoch, "here", add_flat, NULL, &s, &err);
	if (profdb_workloads_load(db, d.epoch, "here", &w, &err) == 0)
		add_workloads(&s, w);
	for (size_t i = 0; i < s.nr; i++) {
		assert_int_equal(s.items[i].flat, s.items[i].by_workload);
		assert_int_equal(s.items[i].flat, s.items[i].by_minute);
	}
	profdb_workloads_free(w);
	profdb_close(db);
}

static int teardown(void **state)
{
	char command[128];

	(void)state;
	if (!damaged)
		same_sums();
	damaged = false;
	trial_daemon_close(&t, &d);
	driver_close(d.driver);
	snprintf(command, sizeof(command), "rm -r %s", folder);
	return system(command);
}

struct found {
	uint64_t sum;
	double enabled; /* of the last event with samples */
	unsigned int nr, nr_bad;
};

static int add(void *ctx, const char *file, struct profdb_profile *p)
{
	struct found *f = ctx;

	(void)file;
	f->nr++;
	for (size_t i = 0; i < profdb_profile_nr_events(p); i++) {
		const struct profdb_event *e = profdb_profile_event(p, i);

		f->sum += e->sum;
		f->enabled = e->sum ? e->enabled : f->enabled;
	}
	profdb_profile_free(p);
	return 0;
}

static void bad(void *ctx, const char *file, const struct base_err *err)
{
	struct found *f = ctx;

	(void)file;
	(void)err;
	f->nr_bad++;
}

/* As a reader sees it, through a database of its own. */
static struct found on_disk(void)
{
	struct profdb *db = NULL;
	struct found f = { 0 };
	struct base_err err = { 0 };

	assert_int_equal(profdb_open(db_path, false, &db, &err), 0);
	assert_int_equal(profdb_walk(db, d.epoch, "here", add, bad, &f, &err), 0);
	profdb_close(db);
	return f;
}

static int flush(void)
{
	struct base_err err = { 0 };
	int r = daemon_flush(&d, &err);

	assert_int_equal(r < 0 ? r : 0, err.code);
	return r;
}

static void add_samples(struct image *img, uint64_t off, uint32_t event, uint64_t n)
{
	const struct store_count c = { .off = off, .event = event, .n = n };

	store_soon(&d.store, img, &c);
	store_all(&d.store);
}

static void store(const char *path, uint8_t id, uint64_t n)
{
	const struct base_id image = trial_id(id);

	add_samples(images_get(d.images, PROFDB_FILE, &image, path, path + 1), 8, 0, n);
}

static void drains_writes_and_clears(void **state)
{
	(void)state;
	assert_int_equal(flush(), 0);
	assert_int_equal(on_disk().sum, 3);
	assert_true(stand_ins.nr_ranges > 0);
	assert_true(stand_ins.nr_take >= 2);
	store("/b", 2, 5);
	assert_int_equal(flush(), 0);
	assert_int_equal(on_disk().sum, 8);
	assert_int_equal(flush(), 0);
	assert_int_equal(on_disk().sum, 8);
	assert_int_equal(on_disk().nr, 2);
	assert_int_equal(d.store.account.stored, 8);
	assert_int_equal(d.nr_flushes, 3);
}

static void failure_keeps_counts(void **state)
{
	const struct rlimit none = { .rlim_cur = 0, .rlim_max = RLIM_INFINITY };
	const struct rlimit all = { .rlim_cur = RLIM_INFINITY, .rlim_max = RLIM_INFINITY };

	(void)state;
	assert_int_equal(flush(), 0);
	store("/b", 2, 5);
	store("/c", 3, 7);
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
	assert_int_equal(flush(), -EFBIG);
	assert_true(d.flush_error.text[0] != '\0');
	assert_int_equal(flush(), -EFBIG);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &all), 0);
	assert_int_equal(on_disk().sum, 3);
	store("/b", 2, 1);
	assert_int_equal(flush(), 0);
	assert_int_equal(on_disk().sum, 16);
	assert_int_equal(d.store.account.stored, 16);
	assert_int_equal(d.flush_error.code, 0);
	assert_int_equal(d.nr_flushes, 2);
}

static void pseudo_image_comes_first(void **state)
{
	const struct base_id id = trial_id(7);
	struct image *img = image_get(images_get(d.images, PROFDB_DYNAMIC, NULL, "x.dyn", "x.dyn"));

	(void)state;
	add_samples(img, 8, 0, 5);
	/* It is not on disk: its profile waits, the others do not. */
	stand_ins.write_result = -ENOSPC;
	assert_int_equal(flush(), -ENOSPC);
	assert_non_null(strstr(d.flush_error.hint, "make room"));
	assert_int_equal(on_disk().sum, 3);
	assert_true(img->dirty);
	stand_ins.write_result = 0;
	image_set_id(img, &id);
	assert_int_equal(flush(), 0);
	assert_int_equal(on_disk().sum, 8);
	assert_false(img->dirty);
	/* It is, but without a routine that has samples. */
	add_samples(img, 16, 0, 1);
	img->behind = true;
	assert_int_equal(flush(), 0);
	assert_int_equal(on_disk().sum, 8);
	img->behind = false;
	assert_int_equal(flush(), 0);
	assert_int_equal(on_disk().sum, 9);
}

/* The sum on disk under the bucket of refused images. */
static uint64_t in_bucket(void)
{
	struct image *b = images_bucket(d.images, ACCOUNT_BUCKET_REFUSED);

	assert_false(b->dirty);
	return d.store.account.bucket[ACCOUNT_BUCKET_REFUSED];
}

/* No image will come: the samples are stored all the same, under a name that says so. */
static void refused_image(void **state)
{
	const struct trace_config config = { .driver = d.driver };
	struct trace_stats stats;
	struct image *img = image_get(images_get(d.images, PROFDB_DYNAMIC, NULL, "x.dyn", "x.dyn"));
	struct image *late = images_get(d.images, PROFDB_DYNAMIC, NULL, "y.dyn", "y.dyn");
	struct base_err err = { 0 };

	(void)state;
	add_samples(img, 8, 0, 5);
	add_samples(img, 9, 1, 2);
	add_samples(late, 8, 0, 11);
	assert_int_equal(flush(), 0);
	assert_int_equal(on_disk().sum, 3);
	assert_int_equal(trace_open(&config, &d.traces, &err), 0);
	img->traces = 2;
	img->refused = true;
	assert_int_equal(flush(), 0);
	assert_int_equal(on_disk().sum, 10);
	assert_int_equal(in_bucket(), 7);
	/* A bucket has no way for traces. */
	trace_stats_get(d.traces, false, &stats);
	assert_int_equal(stats.lost[TRACE_LOST_REFUSED], 2);
	/* At the end nothing can wait any more. */
	assert_int_equal(daemon_finish(&d, &err), 0);
	assert_int_equal(on_disk().sum, 21);
	assert_int_equal(in_bucket(), 18);
	assert_int_equal(d.store.account.stored, 21);
	trace_close(d.traces);
}

/* However many images there are, and so however the table of images grows meanwhile. */
static void many_refused_images(void **state)
{
	assert_int_equal(teardown(state), 0);
	for (unsigned int nr = 1; nr <= 40; nr++) {
		struct base_err err = { 0 };

		assert_int_equal(setup(state), 0);
		for (unsigned int i = 0; i < nr; i++) {
			char stem[16];

			snprintf(stem, sizeof(stem), "%u.dyn", i);
			add_samples(images_get(d.images, PROFDB_DYNAMIC, NULL, stem, stem), 8, 0,
				    1);
		}
		assert_int_equal(daemon_drain(&d, false, &err), 0);
		assert_int_equal(daemon_finish(&d, &err), 0);
		assert_int_equal(on_disk().sum, 3 + nr);
		assert_int_equal(teardown(state), 0);
	}
	assert_int_equal(setup(state), 0);
}

/* The part of the time in which an event was counted reaches the disk, and is merged there. */
static void fraction_of_the_time(void **state)
{
	struct driver_event *e = (struct driver_event *)driver_event_get(d.driver, 0);
	double enabled;

	(void)state;
	e->enabled = 0.25;
	assert_int_equal(flush(), 0);
	enabled = on_disk().enabled;
	assert_true(enabled > 0.2499 && enabled < 0.2501);
	/* 3 samples in a quarter of the time are 12; 6 in half of it as many. */
	e->enabled = 0.5;
	add_samples(images_get(d.images, PROFDB_FILE, &(struct base_id){ 1, { 1 } }, "/bin/a", "a"),
		    8, 0, 6);
	assert_int_equal(flush(), 0);
	enabled = on_disk().enabled;
	assert_true(enabled > 0.3749 && enabled < 0.3751);
}

/* Invariant 1: counts that wait for events of before a reading of /proc are stored at the end. */
static void nothing_is_left(void **state)
{
	struct process *p = processes_add(d.processes, 20);
	const struct driver_load l = {
		.addr = 0x1000, .len = 0x1000, .path = "/b", .id = trial_id(2)
	};
	const struct driver_count c = { .pid = 20,
					.time_ns = 10,
					.first_ns = 10,
					.mode = DRIVER_USER,
					.addr = 0x1008,
					.count = 7 };
	struct base_err err = { 0 };

	(void)state;
	p->known_ns = base_now_ns() + 1000000000u;
	follow_mmap(&d.follow, p, &l, FOLLOW_LISTED);
	assert_int_equal(counts_count(&d.counts, &c), 0);
	assert_int_equal(flush(), 0);
	assert_int_equal(d.store.account.pending, 7);
	assert_int_equal(on_disk().sum, 3);
	/* The source failed: what came before is kept. */
	base_fail(&d.source_error, -EIO, "it failed");
	assert_int_equal(daemon_finish(&d, &err), 0);
	assert_int_equal(d.store.account.pending, 0);
	assert_int_equal(on_disk().sum, 10);
}

/* A drain's samples come as late as drains are apart. */
static void ranges_are_read_while_busy(void **state)
{
	struct base_err err = { 0 };
	unsigned int before;

	(void)state;
	d.opt.drain_ms = 60000;
	d.attribute.dynamic_ns = base_now_ns() - 30000000000u;
	before = stand_ins.nr_ranges;
	assert_true(daemon_drain(&d, false, &err) >= 0);
	assert_int_equal(stand_ins.nr_ranges, before + 1);
	d.ranges_read_ns = 0;
	d.attribute.dynamic_ns = base_now_ns() - 80000000000u;
	assert_true(daemon_drain(&d, false, &err) >= 0);
	assert_int_equal(stand_ins.nr_ranges, before + 1);
}

static void nothing_stored_yet(void)
{
	assert_int_equal(on_disk().sum, 0);
}

static void images_before_profiles(void **state)
{
	(void)state;
	stand_ins.on_write = nothing_stored_yet;
	assert_int_equal(flush(), 0);
	stand_ins.on_write = NULL;
	assert_int_equal(on_disk().sum, 3);
}

/* A damaged file stays for whom it may concern; what comes later goes beside it. */
static void damaged_profile(void **state)
{
	char command[256];

	(void)state;
	damaged = true;
	assert_int_equal(flush(), 0);
	snprintf(command, sizeof(command), "for f in %s/%s/here/a.*; do echo x >$f; done", db_path,
		 d.epoch);
	assert_int_equal(system(command), 0);
	assert_int_equal(on_disk().nr_bad, 1);
	add_samples(images_get(d.images, PROFDB_FILE, &(struct base_id){ 1, { 1 } }, "/bin/a", "a"),
		    8, 0, 2);
	store("/b", 2, 5);
	assert_int_equal(flush(), 0);
	assert_int_equal(on_disk().sum, 7);
	assert_int_equal(on_disk().nr_bad, 1);
	assert_int_equal(d.store.account.stored, 10);
}

static void store_values(void)
{
	static const char *const profilers[] = { "values.replay", "values" };
	const struct base_id id = trial_id(2);
	struct image *img = images_get(d.images, PROFDB_FILE, &id, "/b", "b");

	for (size_t i = 0; i < sizeof(profilers) / sizeof(*profilers); i++) {
		struct profdb_values *v = image_values_get(img, profilers[i], NULL);

		assert_non_null(v);
		assert_int_equal(profdb_values_add(v, 8, NULL, 1), 0);
	}
	store("/b", 2, 5);
}

/* Of each of them that is said, once. */
static void damaged_values(void **state)
{
	FILE *log = tmpfile();
	char command[256];

	(void)state;
	damaged = true;
	assert_non_null(log);
	base_log_init(log, BASE_LOG_WARN, BASE_LOG_BARE);
	store_values();
	assert_int_equal(flush(), 0);
	assert_int_equal(trial_said(log, ""), 0);
	snprintf(command, sizeof(command), "for f in %s/%s/here/b.*; do echo x >$f; done", db_path,
		 d.epoch);
	assert_int_equal(system(command), 0);
	store_values();
	assert_int_equal(flush(), 0);
	store_values();
	assert_int_equal(flush(), 0);
	assert_int_equal(trial_said(log, "gets a second file"), 3);
	base_log_init(quiet, BASE_LOG_ERROR, BASE_LOG_BARE);
	fclose(log);
}

/* A sum that does not fit stays in memory, and holds back no other. */
static void full_counter(void **state)
{
	(void)state;
	store("/b", 2, UINT64_MAX - 10);
	assert_int_equal(flush(), 0);
	store("/b", 2, 11);
	store("/c", 3, 4);
	assert_int_equal(flush(), 0);
	assert_int_equal(on_disk().nr, 3);
	assert_int_equal(on_disk().sum, UINT64_MAX - 10 + 3 + 4);
}

/* So does what its file has no room for; the epoch can be turned, and the daemon ended. */
static void too_long_header(void **state)
{
	static char text[(2u << 20) + 1];
	const struct base_id id = trial_id(2);
	struct base_err err = { 0 };
	struct image *img;

	(void)state;
	memset(text, 'x', sizeof(text) - 1);
	store("/b", 2, 5);
	store("/c", 3, 4);
	img = images_get(d.images, PROFDB_FILE, &id, "/b", "b");
	assert_int_equal(profdb_profile_set_word(img->counts, "note", text), 0);
	assert_int_equal(flush(), 0);
	assert_int_equal(on_disk().sum, 3 + 4);
	assert_true(img->dirty);
	assert_int_equal(daemon_new_epoch(&d, &err), 0);
	assert_int_equal(profdb_profile_set_word(img->counts, "note", NULL), 0);
	assert_int_equal(daemon_finish(&d, &err), 0);
	assert_int_equal(on_disk().sum, 5);
	assert_int_equal(d.store.account.stored, 3 + 4 + 5);
}

/* Nothing limits how deep folders are nested. */
static void long_path(void **state)
{
	static char path[(2u << 20) + 1];

	(void)state;
	memset(path, '/', sizeof(path) - 1);
	store(path, 2, 5);
	assert_int_equal(flush(), 0);
	assert_int_equal(on_disk().sum, 3 + 5);
}

static void new_epoch_is_empty(void **state)
{
	char first[PROFDB_EPOCH_LEN + 1];
	struct base_err err = { 0 };

	(void)state;
	strcpy(first, d.epoch);
	assert_int_equal(daemon_new_epoch(&d, &err), 0);
	assert_string_not_equal(d.epoch, first);
	assert_int_equal(on_disk().nr, 0);
	store("/b", 2, 5);
	assert_int_equal(daemon_finish(&d, &err), 0);
	assert_int_equal(on_disk().sum, 5);
	assert_true(d.finished);
	assert_int_equal(daemon_finish(&d, &err), 0);
	strcpy(d.epoch, first);
	assert_int_equal(on_disk().sum, 3);
}

static const char *command(int what)
{
	const struct control_request q = { .command = what };
	const struct control_peer peer = { .privileged = true };
	static struct base_buf reply;

	base_buf_clear(&reply);
	d.stepped = false;
	assert_int_equal(daemon_command(&d, &q, &peer, &reply), 0);
	assert_int_equal(base_buf_append(&reply, "", 1), 0);
	return (const char *)reply.data;
}

/* Whoever asks for a flush finds the kernel's routines on disk; others are not held up for these.
 */
static void the_answer_waits_for_kernel_files(void **state)
{
	struct base_err err = { 0 };

	(void)state;
	stand_ins.kernel_writes = 2;
	assert_int_equal(daemon_flush(&d, &err), 0);
	assert_true(stand_ins.kernel_hasty);
	d.in_turns = true;
	assert_int_equal(daemon_flush(&d, &err), -EINPROGRESS);
	assert_int_equal(daemon_flush(&d, &err), -EINPROGRESS);
	assert_int_equal(daemon_flush(&d, &err), 0);
	d.in_turns = false;
	assert_int_equal(daemon_finish(&d, &err), 0);
	assert_false(stand_ins.kernel_hasty);
}

/* Code of a user whose turn is over is left for the next one, but not for ever. */
static void unfinished(void **state)
{
	struct base_err err = { 0 };
	char first[PROFDB_EPOCH_LEN + 1];
	uint64_t until;

	(void)state;
	strcpy(first, d.epoch);
	stand_ins.behind = 2;
	d.in_turns = true;
	assert_int_equal(daemon_flush(&d, &err), -EINPROGRESS);
	assert_int_equal(on_disk().sum, 3);
	assert_int_equal(daemon_new_epoch(&d, &err), -EINPROGRESS);
	assert_string_equal(d.epoch, first);
	assert_int_equal(daemon_new_epoch(&d, &err), 0);
	assert_string_not_equal(d.epoch, first);
	stand_ins.behind = 2;
	assert_int_equal(daemon_flush(&d, &err), -EINPROGRESS);
	/* The periodic flush does not begin its time anew. */
	d.in_turns = false;
	until = d.unfinished_until_ns;
	assert_int_equal(daemon_flush(&d, &err), 0);
	assert_int_equal(d.unfinished_until_ns, until);
	d.in_turns = true;
	d.unfinished_until_ns = base_now_ns();
	assert_int_equal(daemon_flush(&d, &err), 0);
	assert_int_equal(d.unfinished_until_ns, 0);
	/* The answer tells what is left, and counts no sample that is not on disk. */
	add_samples(images_get(d.images, PROFDB_DYNAMIC, NULL, "x.dyn", "x.dyn"), 8, 0, 5);
	d.store.account.stored = 12;
	d.unfinished_until_ns = base_now_ns();
	stand_ins.behind = 1;
	assert_non_null(strstr(command(CONTROL_FLUSH), ",\"stored\":7,\"left\":5}\n"));
	assert_null(strstr(command(CONTROL_FLUSH), "left"));
	/* A flush that is not in turns leaves nothing. */
	d.in_turns = false;
	stand_ins.behind = 1;
	assert_int_equal(daemon_flush(&d, &err), 0);
	stand_ins.behind = 0;
}

/* So that who asks first need not read all profiles: as soon as nothing more happens there. */
static void finished_epoch_is_indexed(void **state)
{
	const struct timespec long_ago[2] = { { .tv_sec = 1000 }, { .tv_sec = 1000 } };
	char platform[160], index[176];
	struct base_err err = { 0 };

	(void)state;
	snprintf(platform, sizeof(platform), "%s/%s/here", db_path, d.epoch);
	snprintf(index, sizeof(index), "%s/.index", platform);
	assert_int_equal(daemon_new_epoch(&d, &err), 0);
	assert_int_equal(flush(), 0);
	assert_int_not_equal(access(index, F_OK), 0);
	assert_int_equal(utimensat(AT_FDCWD, platform, long_ago, 0), 0);
	assert_int_equal(flush(), 0);
	assert_int_equal(access(index, F_OK), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

static void remove_database(void)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -r '%s'", db_path);
	assert_int_equal(system(command), 0);
}

static void remove_epoch(void)
{
	char command[160];

	snprintf(command, sizeof(command), "rm -r '%s/%s'", db_path, d.epoch);
	assert_int_equal(system(command), 0);
}

/* It is not made again, and what waits for it arrives when somebody has done so. */
static void removed_database(void **state)
{
	struct base_err err = { 0 };
	const struct base_id id = trial_id(7);
	struct image *lost, *waits;

	(void)state;
	assert_int_equal(flush(), 0);
	store("/b", 2, 5);
	lost = image_get(images_get(d.images, PROFDB_DYNAMIC, NULL, "x.dyn", "x.dyn"));
	waits = image_get(images_get(d.images, PROFDB_DYNAMIC, NULL, "y.dyn", "y.dyn"));
	image_set_id(lost, &id);
	add_samples(lost, 8, 0, 7);
	image_set_id(waits, &id);
	waits->behind = true;
	add_samples(waits, 8, 0, 11);
	remove_database();
	database_look(&d);
	assert_true(d.gone_ns > 0);
	assert_non_null(strstr(d.flush_error.text, "was removed"));
	assert_int_equal(flush(), -ENOENT);
	assert_int_equal(daemon_new_epoch(&d, &err), -ENOENT);
	assert_non_null(strstr(err.hint, "dcpiquit"));
	assert_int_not_equal(access(db_path, F_OK), 0);
	assert_int_equal(stand_ins.nr_lost, 0);
	store("/b", 2, 1);
	assert_int_equal(mkdir(db_path, 0755), 0);
	assert_int_equal(flush(), 0);
	assert_int_equal(stand_ins.nr_lost, 2);
	assert_int_equal(d.gone_ns, 0);
	assert_int_equal(d.flush_error.code, 0);
	/* Its code is nowhere any more; what can be written again is waited for. */
	assert_int_equal(in_bucket(), 7);
	assert_int_equal(on_disk().sum, 13);
	waits->behind = false;
	assert_int_equal(flush(), 0);
	assert_int_equal(on_disk().sum, 24);
	assert_int_equal(d.store.account.stored, 27);
}

/* What was out of reach, as handles of a network file system may be, goes on where it was. */
static void out_of_reach(void **state)
{
	char epoch[sizeof(d.epoch)];

	(void)state;
	assert_int_equal(flush(), 0);
	store("/b", 2, 5);
	d.gone_ns = 1;
	strcpy(epoch, d.epoch);
	assert_int_equal(flush(), 0);
	assert_int_equal(d.gone_ns, 0);
	assert_string_equal(d.epoch, epoch);
	assert_int_equal(stand_ins.nr_lost, 0);
	assert_int_equal(on_disk().sum, 8);
}

/* An epoch is removed by removing its folder: the database is the same one. */
static void removed_epoch(void **state)
{
	(void)state;
	assert_int_equal(flush(), 0);
	store("/b", 2, 5);
	remove_epoch();
	assert_int_equal(flush(), 0);
	assert_int_equal(stand_ins.nr_lost, 0);
	assert_int_equal(on_disk().sum, 5);
	assert_int_equal(d.flush_error.code, 0);
}

/* Whoever ends the daemon without it is told what that costs; not where it can be had again. */
static void ended_without_a_database(void **state)
{
	char path[96];

	(void)state;
	assert_int_equal(flush(), 0);
	store("/b", 2, 5);
	remove_database();
	assert_int_equal(mkdir(db_path, 0755), 0);
	snprintf(path, sizeof(path), "%s/letter", db_path);
	assert_int_equal(close(creat(path, 0600)), 0);
	assert_non_null(strstr(command(CONTROL_QUIT), "other files in it"));
	assert_false(d.finished);
	remove_database();
	assert_non_null(strstr(command(CONTROL_QUIT), "5 samples that waited in memory are lost"));
	assert_true(d.finished);
}

/* The same by a signal. */
static void finished_without_a_database(void **state)
{
	struct base_err err = { 0 };

	(void)state;
	assert_int_equal(daemon_drain(&d, false, &err), 0);
	store("/b", 2, 5);
	remove_database();
	assert_int_equal(daemon_finish(&d, &err), -ENOENT);
	assert_non_null(strstr(err.text, "8 samples that waited in memory are lost"));
	assert_true(d.finished);
	/* The accounts say so too. */
	assert_int_equal(d.store.account.lost[ACCOUNT_LOST_UNWRITTEN], 8);
	assert_int_equal(d.store.account.stored, 0);
}

/* A full disk at the end: who comes next is told by the epoch how many samples it lacks. */
static void finished_on_a_full_disk(void **state)
{
	const struct rlimit little = { .rlim_cur = 64, .rlim_max = RLIM_INFINITY };
	const struct rlimit all = { .rlim_cur = RLIM_INFINITY, .rlim_max = RLIM_INFINITY };
	struct base_err err = { 0 }, why = { 0 };
	struct profdb *db = NULL;
	uint64_t lost;

	(void)state;
	assert_int_equal(flush(), 0);
	lost = d.store.account.stored;
	store("/b", 2, 5);
	signal(SIGXFSZ, SIG_IGN);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &little), 0);
	assert_int_equal(daemon_finish(&d, &why), -EFBIG);
	assert_int_equal(database_give_up(&d, &why, &err), -EFBIG);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &all), 0);
	assert_int_equal(d.store.account.lost[ACCOUNT_LOST_UNWRITTEN], 5);
	assert_int_equal(d.store.account.stored, lost);
	assert_int_equal(profdb_epoch_lost(d.db, d.epoch, d.platform), 5);
	/* Also once somebody has closed the epoch. */
	assert_int_equal(profdb_epoch_finish(d.db, &err), 0);
	assert_int_equal(profdb_open(db_path, false, &db, NULL), 0);
	assert_false(profdb_epoch_open(db, d.epoch, d.platform));
	assert_int_equal(profdb_epoch_lost(db, d.epoch, d.platform), 5);
	profdb_close(db);
}

/* Nanoseconds that are not on disk are lost as samples are. */
static void times_that_are_given_up(void **state)
{
	const struct base_err why = { .code = -ENOENT };
	struct base_err err = { 0 };

	(void)state;
	d.store.nr_timed = 1; /* the misses */
	store("/b", 2, 5);
	d.store.times.stored = 0;
	assert_int_equal(daemon_unwritten(&d, true), 0);
	d.store.nr_timed = d.store.nr_events; /* all of them */
	d.store.times.stored = 5;
	d.store.times.pending = 2;
	d.store.account.stored = 0;
	assert_int_equal(daemon_unwritten(&d, true), 5);
	assert_int_equal(database_give_up(&d, &why, &err), -ENOENT);
	assert_int_equal(d.store.times.lost[ACCOUNT_LOST_UNWRITTEN], 7);
	assert_int_equal(d.store.times.stored, 0);
	assert_int_equal(d.store.times.pending, 0);
	assert_int_equal(d.store.account.lost[ACCOUNT_LOST_UNWRITTEN], 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(drains_writes_and_clears),
		TEST(failure_keeps_counts),
		TEST(finished_on_a_full_disk),
		TEST(times_that_are_given_up),
		TEST(pseudo_image_comes_first),
		TEST(refused_image),
		TEST(many_refused_images),
		TEST(images_before_profiles),
		TEST(damaged_profile),
		TEST(damaged_values),
		TEST(full_counter),
		TEST(too_long_header),
		TEST(long_path),
		TEST(new_epoch_is_empty),
		TEST(the_answer_waits_for_kernel_files),
		TEST(unfinished),
		TEST(finished_epoch_is_indexed),
		TEST(fraction_of_the_time),
		TEST(nothing_is_left),
		TEST(ranges_are_read_while_busy),
		TEST(removed_database),
		TEST(out_of_reach),
		TEST(removed_epoch),
		TEST(ended_without_a_database),
		TEST(finished_without_a_database),
	};

	quiet = fopen("/dev/null", "w");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
