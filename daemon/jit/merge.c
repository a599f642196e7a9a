/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Processes that have ended: those of one executable, facility, uid, machine and label
 * share a pseudo-image, that of the first of them that ended in this epoch. Its offsets never move;
 * what the others had moves by the maps that the jailed helper answers. The order makes that good
 * whatever is killed when: the new image is in place (synced) before the files that it replaces are
 * removed, and names those of their build-ids under which profiles may stand.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "jit_internal.h"
#include "pseudoimg.h"

/* One call of the helper gets so much: it reads all of them several times. */
#define JOBS_MAX (64ull << 20)
/* … and so much in haste. */
#define JOBS_HASTY_MAX (4ull << 20)
/* One process may bring so much; a larger one stays apart. */
#define JOB_MAX (16ull << 20)
/* Each folding writes all of the image again; a larger one takes no more, another one begins. */
#define IMAGE_MAX (32ull << 20)
/* Build-ids in a note, of which each has a map. */
enum { REPLACES_MAX = 4096 };
/* Groups known at a time, and processes that wait; more of these do not wait for the flush. */
enum { GROUPS_MAX = 1024, ENDED_MAX = 256 };

struct dyn_merge {
	struct dyn_merge *next;
	uint32_t uid, machine, name_len;
	char name[WIRE_FACILITY_NAME + 1], exe[256];
	char *label;	     /* or NULL */
	struct image *image; /* the image that takes the others; NULL: none yet */
	uint32_t nr_replaced;
	/* Facilities that have just ended, linked by next_ended. */
	struct dyn_facility *first, **last;
	struct batch *running; /* others of them are being merged; or NULL */
};

/* ---- who joins whom -------------------------------------------------------------------------- */

static bool owns_ranges(const struct dyn_facility *f)
{
	const struct dyn_registry *reg = f->registry;

	for (size_t i = 0; i < reg->nr_ranges; i++)
		if (reg->ranges[i].known && reg->ranges[i].range.facility == f->index &&
		    reg->ranges[i].range.flags & WIRE_RANGE_OWNED)
			return true;
	return false;
}

/* A process that ended before it could be looked at is known by the name of a thread alone. */
static const char *executable(const struct dyn_registry *reg)
{
	return reg->dyn->config.reader && reg->exe[0] != '/' ? "" : reg->exe;
}

bool dyn_merge_wants(const struct dyn_facility *f)
{
	const struct dyn_registry *reg = f->registry;
	const struct dyn_config *c = &reg->dyn->config;

	return dyn_registry_has_ended(reg) && c->db && !f->apart && !f->merged &&
	       !f->image->refused && !f->writing && !f->joining &&
	       (f->image->id.len || dyn_facility_is_behind(f, false)) &&
	       /* With more, ids under which profiles may stand would be forgotten. */
	       f->nr_replaced < DYN_REPLACES_MAX && reg->store.used <= JOB_MAX && !owns_ranges(f) &&
	       !images_is_apart(c->images, f->name) &&
	       !images_is_apart(c->images, *executable(reg) ? executable(reg) : NULL);
}

/* It takes no more; the next one that ends is the first of another image. */
static void finish(struct dyn_merge *g)
{
	if (g->image)
		g->image->refs--;
	g->image = NULL;
	g->nr_replaced = 0;
}

static bool same_label(const char *a, const char *b)
{
	return a && b ? !strcmp(a, b) : a == b;
}

static bool is_of(const struct dyn_merge *g, const struct dyn_facility *f)
{
	return g->uid == f->registry->uid && g->machine == f->machine &&
	       g->name_len == f->name_len && !memcmp(g->name, f->name, g->name_len) &&
	       !strcmp(g->exe, executable(f->registry)) && same_label(g->label, f->image->label);
}

static struct dyn_merge *new_group(struct dyn *d, const struct dyn_facility *f)
{
	struct dyn_merge *g = calloc(1, sizeof(*g));

	if (g && f->image->label && !(g->label = strdup(f->image->label))) {
		free(g);
		g = NULL;
	}
	if (!g)
		return NULL;
	g->uid = f->registry->uid;
	g->machine = f->machine;
	g->name_len = f->name_len;
	memcpy(g->name, f->name, g->name_len);
	snprintf(g->exe, sizeof(g->exe), "%s", executable(f->registry));
	g->next = d->merges;
	d->merges = g;
	return g;
}

/* The one that was used last comes first. */
static struct dyn_merge *find_group(struct dyn *d, const struct dyn_facility *f)
{
	struct dyn_merge **at = &d->merges, *g;

	while (*at && !is_of(*at, f))
		at = &(*at)->next;
	g = *at;
	if (!g)
		return new_group(d, f);
	*at = g->next;
	g->next = d->merges;
	d->merges = g;
	return g;
}

static int end_batch(struct dyn_merge *g, struct base_err *err);

static void free_groups(struct dyn_merge **at)
{
	struct base_err err = { 0 };
	struct dyn_merge *g;

	while ((g = *at)) {
		*at = g->next;
		while (g->running)
			if (end_batch(g, &err) < 0 && !g->running)
				base_log(BASE_LOG_WARN, "%s", err.text);
		finish(g);
		free(g->label);
		free(g);
	}
}

static void limit_groups(struct dyn *d)
{
	struct dyn_merge **at = &d->merges;

	for (int i = 0; *at && i < GROUPS_MAX; i++)
		at = &(*at)->next;
	free_groups(at);
}

void dyn_merge_forget(struct dyn *d)
{
	free_groups(&d->merges);
	budget_clear(d->config.budgets, BUDGET_COPIES);
}

static int collect(struct dyn *d)
{
	for (struct dyn_merge *g = d->merges; g; g = g->next)
		g->first = NULL;
	for (struct dyn_registry *reg = d->registries; reg; reg = reg->next) {
		for (size_t i = 0; dyn_registry_has_ended(reg) && i < WIRE_NR_FACILITIES; i++) {
			struct dyn_facility *f = reg->facilities[i];
			struct dyn_merge *g;

			if (!f || !dyn_merge_wants(f))
				continue;
			g = find_group(d, f);
			if (!g)
				return -ENOMEM;
			if (!g->first)
				g->last = &g->first;
			f->next_ended = NULL;
			*g->last = f;
			g->last = &f->next_ended;
		}
	}
	return 0;
}

/* ---- one folding ----------------------------------------------------------------------------- */

/* Some that have ended, and what they become part of. */
struct batch {
	struct dyn *dyn;
	struct dyn_merge *group;
	struct dyn_facility *first, *end; /* linked by next_ended, without @end */
	size_t nr;
	uint64_t len;	     /* length of their records */
	struct image *image; /* image of the group, or of the first one */
	const char *stem;
	int base, job, scratch; /* base: -1 where the first one is it */
	struct base_file file;
	struct dyn_task task;
	struct pseudoimg_helper helper; /* for that */
	struct base_err err;		/* of the helper */
	struct pseudoimg_result result;
	struct base_buf maps;
	bool failed;		      /* the helper, of what it was given */
	bool answered;		      /* it has, and the file is being put in place */
	struct profdb_profile *moved; /* counts in them, as they are in the image */
};

static int open_temporary(const struct batch *b)
{
	const char *name = "dcpid-fold";
	int fd = -1;

	if (b->len > (16ull << 20))
		fd = openat(profdb_dyn_fd(b->dyn->config.db), ".", O_TMPFILE | O_RDWR | O_CLOEXEC,
			    0600);
	if (fd < 0)
		fd = memfd_create(name, MFD_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static int write_jobs(struct batch *b)
{
	int r = 0;

	for (struct dyn_facility *f = b->first; r == 0 && f != b->end; f = f->next_ended) {
		dyn_meanwhile(b->dyn);
		r = dyn_image_remember(f);
		if (r == 0)
			r = dyn_facility_job(f, false, b->job);
	}
	if (r == 0 && lseek(b->job, 0, SEEK_SET) < 0)
		r = -errno;
	return r;
}

static int open_files(struct batch *b, struct base_err *err)
{
	struct stat st = { 0 };
	int r = 0;

	if (b->group->image) {
		b->base = openat(profdb_dyn_fd(b->dyn->config.db), b->stem, O_RDONLY | O_CLOEXEC);
		if (b->base < 0 || fstat(b->base, &st) < 0)
			return base_fail_errno(err, -errno, "cannot open '%s'", b->stem);
		b->len += (uint64_t)st.st_size;
	}
	b->job = r = open_temporary(b);
	if (r >= 0)
		b->scratch = r = open_temporary(b);
	if (r >= 0)
		r = write_jobs(b);
	return r < 0 ? base_fail_errno(err, r, "cannot make the job of '%s'", b->stem) : 0;
}

/* Before anything is in place: what is counted where, by the maps. */
static int move_counts(struct batch *b)
{
	const struct wire_head *map;
	size_t pos = 0;
	int r = 0;

	b->moved = profdb_profile_new(PROFDB_DYNAMIC, NULL, NULL);
	if (!b->moved)
		return -ENOMEM;
	for (struct dyn_facility *f = b->first; r >= 0 && f != b->end; f = f->next_ended) {
		map = wire_next(b->maps.data, b->maps.len, &pos);
		if (!map)
			return -DCPI_EHELPER;
		if (f->image != b->image)
			r = image_move_counts(f->image->counts, (const void *)map, b->moved);
	}
	return r;
}

/* Moving them then cannot fail. */
static int reserve_workloads(const struct batch *b)
{
	const struct workload_table *any = NULL;
	size_t nr = 0;

	for (struct dyn_facility *f = b->first; f != b->end; f = f->next_ended) {
		if (f->image == b->image || !workload_table_nr(f->image->workloads))
			continue;
		any = f->image->workloads;
		nr += workload_table_nr(any);
	}
	return workload_table_reserve_from(any, &b->image->workloads, nr);
}

/* It is in place: what it replaces can go. */
static void replace(struct batch *b, struct dyn_facility *f, const struct wire_replaces *map)
{
	const struct dyn_config *c = &b->dyn->config;

	b->group->nr_replaced += (uint32_t)f->nr_replaced;
	f->merged = true;
	dyn_facility_written(f, true);
	if (f->image == b->image)
		return;
	/* Its profile stays where it is, which leads here as well. Who else holds it has values of
	 * it that are on their way. */
	if ((f->image->put || f->image->refs > 1) && c->moves &&
	    image_moves_add(c->moves, f->image, b->image, map) < 0)
		base_log(BASE_LOG_WARN, "the profile of '%s' stays apart: no memory", f->stem);
	if (image_values_move(f->image, map, b->image) < 0)
		base_log(BASE_LOG_WARN, "values of '%s' are lost: no memory", f->stem);
	image_workloads_move(f->image, map, b->image);
	b->image->traces += f->image->traces;
	f->image->traces = f->image->stepped = 0;
	profdb_profile_clear(f->image->counts);
	f->image->dirty = false;
	if (f->image->id.len && unlinkat(profdb_dyn_fd(c->db), f->stem, 0) < 0 && errno != ENOENT)
		base_log(BASE_LOG_WARN, "cannot remove '%s': %s", f->stem, strerror(errno));
	b->dyn->stats.images_merged++;
}

static int take_over(struct batch *b, struct base_err *err)
{
	struct base_id id = { .len = sizeof(b->result.build_id) };
	const struct wire_head *map;
	size_t pos = 0;
	int r = 0;

	memcpy(id.bytes, b->result.build_id, sizeof(b->result.build_id));
	b->group->nr_replaced += b->base >= 0 && !base_id_equal(&b->image->id, &id);
	image_set_id(b->image, &id);
	if (profdb_profile_nr_entries(b->moved) || profdb_profile_nr_edges(b->moved)) {
		r = reserve_workloads(b);
		if (r >= 0)
			r = profdb_profile_merge(b->image->counts, b->moved);
		if (r < 0)
			return base_fail_errno(err, r, "cannot merge samples into '%s'", b->stem);
		b->image->dirty = true;
	}
	for (struct dyn_facility *f = b->first; f != b->end; f = f->next_ended) {
		dyn_meanwhile(b->dyn);
		map = wire_next(b->maps.data, b->maps.len, &pos);
		replace(b, f, (const void *)map);
	}
	if (!b->group->image)
		b->group->image = b->image, b->image->refs++;
	b->dyn->stats.images_written++;
	b->dyn->bad_gone += b->result.nr_bad;
	return 0;
}

/* The next folding would take longer than this one. */
static void check_bounds(struct batch *b)
{
	struct stat st = { 0 };

	if (fstatat(profdb_dyn_fd(b->dyn->config.db), b->stem, &st, 0) < 0 ||
	    (uint64_t)st.st_size > IMAGE_MAX || b->group->nr_replaced > REPLACES_MAX)
		finish(b->group);
}

static int call_helper(void *arg)
{
	struct batch *b = arg;
	const struct pseudoimg_merge fds = {
		.base_fd = b->base, .job_fd = b->job, .scratch_fd = b->scratch, .out_fd = b->file.fd
	};

	return pseudoimg_run_merge(&b->helper, &fds, image_file_timeout_ms(b->len), &b->result,
				   &b->maps, &b->err);
}

static int try_counts(struct batch *b, struct base_err *err)
{
	int r;

	profdb_profile_free(b->moved);
	r = move_counts(b);
	return r < 0 ? base_fail_errno(err, r, "cannot merge into '%s'", b->stem) : 0;
}

/* The helper has answered @r. */
static int take_answer(struct batch *b, int r, struct base_err *err)
{
	b->failed = r < 0 && r != -ENOSPC && r != -EDQUOT;
	if (r < 0)
		*err = b->err;
	return r < 0 ? r : try_counts(b, err);
}

static int commit(void *arg)
{
	struct batch *b = arg;

	return image_file_commit(&b->file, &b->helper, &b->err);
}

/* The image is in place, or why not (@r). Samples may have come while it was put there. */
static int take_file(struct batch *b, int r, struct base_err *err)
{
	base_file_abort(&b->file);
	if (r < 0)
		*err = b->err;
	else
		r = try_counts(b, err);
	return r < 0 ? r : take_over(b, err);
}

/* None of them is written, put or forgotten meanwhile. */
static void set_joining(const struct batch *b, bool joining)
{
	for (struct dyn_facility *f = b->first; f != b->end; f = f->next_ended)
		f->joining = f->image->writing = joining;
}

/* In haste, in a thread. False: @fn is to be called. */
static bool begin(struct batch *b, int (*fn)(void *arg))
{
	struct dyn *d = b->dyn;

	b->helper = d->helper;
	if (!d->hasty)
		return false;
	b->helper = (struct pseudoimg_helper){ .program = d->program };
	if (!dyn_task_begin(d, &b->task, b->group->uid, fn, b)) {
		b->helper = d->helper;
		return false;
	}
	set_joining(b, true);
	b->group->running = b;
	return true;
}

/* Likewise. */
static int put_in_place(struct batch *b, struct base_err *err)
{
	b->answered = true;
	return begin(b, commit) ? -EAGAIN : take_file(b, commit(b), err);
}

/* -EAGAIN: that takes longer, and is the group's to end. */
static int run(struct batch *b, struct base_err *err)
{
	struct dyn *d = b->dyn;
	int r = image_file_create(&b->file, profdb_dyn_fd(d->config.db), b->stem, &d->helper,
				  &b->group->uid, err);

	if (r < 0)
		return r;
	if (begin(b, call_helper))
		return -EAGAIN;
	r = take_answer(b, call_helper(b), err);
	return r < 0 ? r : put_in_place(b, err);
}

static void batch_release(struct batch *b)
{
	const int fds[] = { b->base, b->job, b->scratch };

	for (size_t i = 0; i < sizeof(fds) / sizeof(*fds); i++)
		if (fds[i] >= 0)
			close(fds[i]);
	base_file_abort(&b->file);
	base_buf_release(&b->maps);
	profdb_profile_free(b->moved);
	free(b);
}

/* ---- all of them ----------------------------------------------------------------------------- */

/* The first one of its group, alone: its own image is what others will be folded onto. */
static int begin_with(struct batch *b, struct base_err *err)
{
	struct dyn_facility *f = b->first;
	int r;

	r = dyn_image_write(f, false, err);
	if (r < 0)
		return r == -EAGAIN ? 0 : r;
	f->merged = true;
	b->group->image = f->image;
	b->group->nr_replaced = (uint32_t)f->nr_replaced;
	f->image->refs++;
	return 0;
}

/*
 * It lies in what some of them said, or in the image that was there: each has its own then, as
 * while it lived, and the next ones begin another.
 */
static void leave_apart(struct batch *b, const struct base_err *why)
{
	base_log(BASE_LOG_WARN, "%zu processes of '%s' keep pseudo-images of their own: %s", b->nr,
		 b->group->name, why->text);
	for (struct dyn_facility *f = b->first; f != b->end; f = f->next_ended)
		f->apart = true;
	finish(b->group);
	b->dyn->stats.merges_failed += b->nr;
}

/* It was merged, or not, by @r and @why. @b is freed. */
static int settle_batch(struct batch *b, int r, const struct base_err *why, struct base_err *err)
{
	int result = 0;

	if (r == 0)
		check_bounds(b);
	else if (b->failed || image_file_refusal(r))
		leave_apart(b, why);
	else
		result = base_fail(err, r, "%s", why->text);
	batch_release(b);
	return result;
}

static int merge_batch(struct batch *b, struct base_err *err)
{
	struct base_err why = { 0 };
	int r;

	b->image = b->group->image ? b->group->image : b->first->image;
	b->stem = b->image->stem;
	if (b->nr == 1 && !b->group->image) {
		r = begin_with(b, &why);
	} else {
		r = open_files(b, &why);
		/* The image was removed. */
		if (r == -ENOENT && b->base < 0 && b->group->image) {
			finish(b->group);
			return merge_batch(b, err);
		}
		if (r == 0)
			r = run(b, &why);
	}
	return b->group->running == b ? -EAGAIN : settle_batch(b, r, &why, err);
}

/* Merges that were begun are over, or are waited for. */
static int end_batch(struct dyn_merge *g, struct base_err *err)
{
	struct batch *b = g->running;
	struct base_err why = { 0 };
	int r = dyn_task_end(b->dyn, &b->task);

	g->running = NULL;
	set_joining(b, false);
	if (b->answered)
		return settle_batch(b, take_file(b, r, &why), &why, err);
	r = take_answer(b, r, &why);
	if (r == 0)
		r = put_in_place(b, &why);
	return g->running ? -EAGAIN : settle_batch(b, r, &why, err);
}

static uint64_t jobs_max(const struct dyn *d)
{
	return d->hasty ? JOBS_HASTY_MAX : JOBS_MAX;
}

/* Its user has had its turn: what is left has its own images, or waits for them. */
static bool must_wait(const struct dyn *d, const struct dyn_merge *g)
{
	return d->hasty &&
	       (!budget_has_turn(d->config.budgets, g->uid) || dyn_task_must_wait(d, g->uid));
}

/* The next ones of the group, from *@at on, which becomes the first one behind them. */
static int merge_some(struct dyn *d, struct dyn_merge *g, struct dyn_facility **at,
		      struct base_err *err)
{
	struct batch *b = malloc(sizeof(*b));
	struct dyn_facility *f = *at;

	if (!b)
		return base_fail_errno(err, -ENOMEM, "cannot merge pseudo-images");
	*b = (struct batch){
		.dyn = d, .group = g, .first = f, .base = -1, .job = -1, .scratch = -1
	};
	for (; f && (!b->nr || b->len + f->registry->store.used <= jobs_max(d)); b->nr++) {
		b->len += f->registry->store.used;
		f = f->next_ended;
	}
	*at = b->end = f;
	return merge_batch(b, err);
}

static int merge_group(struct dyn *d, struct dyn_merge *g, struct base_err *err)
{
	struct dyn_facility *f = g->first;
	int r = 0;

	if (g->running)
		r = dyn_task_is_done(d, &g->running->task) ? end_batch(g, err) : -EAGAIN;
	while (r == 0 && f && !must_wait(d, g)) {
		uint64_t since_ns = budget_begin(d->config.budgets);

		r = merge_some(d, g, &f, err);
		budget_end(d->config.budgets, g->uid, since_ns);
	}
	g->first = NULL;
	return r == -EAGAIN ? 0 : r;
}

static int merge_groups(struct dyn *d, struct base_err *err)
{
	int first = collect(d), r;

	if (first < 0)
		base_fail_errno(err, first, "cannot merge pseudo-images");
	for (struct dyn_merge *g = d->merges; g; g = g->next) {
		dyn_meanwhile(d);
		r = merge_group(d, g, err);
		first = first ? first : r;
	}
	limit_groups(d);
	return first;
}

void dyn_merge_settle(struct dyn_registry *reg)
{
	bool pending = false;

	for (size_t i = 0; i < WIRE_NR_FACILITIES; i++)
		pending |=
			reg->facilities[i] && (dyn_facility_is_behind(reg->facilities[i], false) ||
					       dyn_merge_wants(reg->facilities[i]));
	if (dyn_registry_has_ended(reg) && !pending)
		dyn_registry_free(reg);
}

int dyn_merge(struct dyn *d, struct base_err *err)
{
	struct dyn_registry *next;
	int first, lock;

	if (!d->config.db || !d->registries)
		return 0;
	/* As dyn_write_images. */
	lock = profdb_dyn_lock(d->config.db, false, IMAGE_FILE_LOCK_MS, err);
	if (lock < 0)
		return lock;
	first = merge_groups(d, err);
	/* Tasks that were begun have ended soon, most often: their files are put in place, then the
	 * rest, and what waits for these. */
	for (int i = 0; i < 2 && first == 0 && dyn_tasks_await(d); i++)
		first = merge_groups(d, err);
	close(lock);
	for (struct dyn_registry *reg = d->registries; reg; reg = next) {
		next = reg->next;
		dyn_merge_settle(reg);
	}
	d->merge_after_ns = first < 0 ? base_now_ns() + DYN_AGAIN_NS : 0;
	return first;
}

bool dyn_wants_merge(const struct dyn *d)
{
	int nr = 0;

	for (const struct dyn_registry *reg = d->registries; reg; reg = reg->next)
		nr += dyn_registry_has_ended(reg);
	return nr > ENDED_MAX && (!d->merge_after_ns || base_now_ns() > d->merge_after_ns);
}
