/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A flush writes to disk what is in memory; a failure loses nothing, the counts stay for the next
 * time.
 */
#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "budget.h"
#include "core.h"
#include "trace.h"
#include "watch.h"

/* So much may stay in the heap, of memory that was freed since the last time. */
#define HEAP_UNUSED_MAX (8u << 20)
/* A flush continues in the next turns for so long. */
#define UNFINISHED_NS (15 * 1000000000ull)

/* @last: nothing comes any more, whatever counts still wait for. */
static int drain_all(struct daemon *d, bool last, struct base_err *err)
{
	int r = 0;

	d->attribute.flushing = true;
	/*
	 * Samples from before the source failed are still worth keeping; a replay has more all the
	 * time.
	 */
	if (!d->source_error.code && (last || !d->streaming)) {
		do {
			r = daemon_drain(d, true, err);
		} while (r > 0);
	}
	d->attribute.flushing = false;
	if (last)
		counts_resolve(&d->counts, UINT64_MAX);
	return r;
}

/* Nothing of @img is taken where the bucket cannot hold all of it. */
static int make_space(struct image *to, const struct image *img)
{
	for (size_t e = 0; e < profdb_profile_nr_events(img->counts); e++) {
		const struct profdb_event *from = profdb_profile_event(img->counts, e);
		int i = profdb_profile_event_add(to->counts, from->name, from->period);

		if (i < 0)
			return i;
		if (profdb_profile_event(to->counts, (size_t)i)->sum > UINT64_MAX - from->sum)
			return -DCPI_EOVERFLOW;
	}
	return 0;
}

/* Instruction samples go to the bucket's one offset too. There is room for them. */
static void give_up_insns(const struct profdb_profile *from, struct profdb_profile *to)
{
	for (size_t i = 0; i < profdb_profile_nr_insns(from); i++) {
		struct profdb_insn m = *profdb_profile_insn(from, i);
		const struct profdb_event *ev = profdb_profile_event(from, m.event);
		int event = profdb_profile_event_find(to, ev->name);

		m.off = m.off == PROFDB_OUTSIDE ? m.off : 0;
		m.event = (uint32_t)event;
		if (event >= 0)
			profdb_profile_insn_add(to, &m);
	}
}

/* Move the counts of an image that will never be on disk to where they are told as such. */
static int give_up(struct daemon *d, struct image *img, struct image *to)
{
	int r = make_space(to, img);

	if (r >= 0)
		r = profdb_profile_insns_reserve(to->counts, profdb_profile_nr_insns(img->counts));
	if (r >= 0)
		r = workload_table_reserve_from(img->workloads, &to->workloads,
						workload_table_nr(img->workloads));
	/* The bucket has one offset: after the first of these nothing needs memory. */
	for (size_t e = 0; r >= 0 && e < profdb_profile_nr_events(img->counts); e++) {
		const struct profdb_event *from = profdb_profile_event(img->counts, e);
		int i = profdb_profile_event_find(to->counts, from->name);

		r = profdb_profile_add(to->counts, 0, (size_t)i, from->sum);
		if (r >= 0)
			d->store.account.bucket[ACCOUNT_BUCKET_REFUSED] += from->sum;
	}
	if (r < 0)
		return r;
	image_workloads_move(img, NULL, to);
	give_up_insns(img->counts, to->counts);
	profdb_profile_clear(img->counts);
	if (d->traces)
		trace_given_up(d->traces, img);
	image_values_clear(img);
	img->dirty = false;
	to->dirty = true;
	return 0;
}

/* The same of call paths, whose frames in such images become the bucket's. */
static int give_up_callpaths(struct daemon *d, bool all)
{
	return d->callpaths ? callpath_give_up(d->callpaths, all) : 0;
}

/* Before profiles are put; at the end (@all) nothing can wait any more. How many, or negative. */
static int give_up_refused(struct daemon *d, bool all)
{
	/* Made before the walk, during which the table must not change. */
	struct image *to = images_bucket(d->images, ACCOUNT_BUCKET_REFUSED), *img;
	int nr = give_up_callpaths(d, all);

	if (nr < 0)
		return nr;
	for (size_t pos = 0; images_next(d->images, &pos, &img);) {
		if ((!img->dirty && !img->values) ||
		    !(img->refused || (all && image_must_wait(img))))
			continue;
		const struct images_owner owner = { .label = img->label };
		struct image *own = to ? images_of(d->images, to, &owner) : NULL;
		int r = own ? give_up(d, img, own) : -ENOMEM;

		if (r < 0)
			return r;
		nr++;
		/* Its label's bucket may be new to the table. */
		pos = img->label ? 0 : pos;
	}
	return nr;
}

/*
 * The period of an event sampled at a frequency is only known once samples came; so is, of an event
 * that takes turns with others, the fraction of the time that was its own.
 */
static void describe_events(const struct daemon *d, struct profdb_profile *p)
{
	for (size_t i = 0; i < profdb_profile_nr_events(p); i++) {
		const struct driver_event *e = driver_event_get(d->driver, i);

		profdb_profile_event_set_period(p, i, e->period);
		profdb_profile_event_set_enabled(p, i, e->enabled);
	}
}

/* Values that do not fit concern their profile alone. */
static bool does_not_fit(int r)
{
	return r == -DCPI_EOVERFLOW || r == -DCPI_ELIMIT;
}

/* Values that do not fit are no reason to put the profile beside it again. */
static int put_values(const struct daemon *d, const struct image *img, struct base_err *err)
{
	int r = image_values_put(d->db, img, d->follow.now_ns, err);

	if (!does_not_fit(r))
		return r;
	base_log(BASE_LOG_ERROR, "values of '%s' are lost: %s", img->path, err->text);
	*err = (struct base_err){ 0 };
	return 0;
}

/* 1: it was put, 0: it stays in memory, negative: nothing more can be put. */
static int put_one(struct daemon *d, struct image *img, struct base_err *err)
{
	struct base_err own = { 0 };
	int r = 0;

	describe_events(d, img->counts);
	if (img->dirty)
		r = profdb_flush_put(d->db, img->stem, img->counts, &own);
	if (r > 0) {
		base_log(BASE_LOG_WARN, "%s", own.text);
		own = (struct base_err){ 0 };
	}
	if (r >= 0 && img->values)
		r = put_values(d, img, &own);
	if (r >= 0)
		return 1;
	if (!does_not_fit(r)) {
		*err = err->code ? *err : own;
		return r;
	}
	base_log(BASE_LOG_ERROR, "the profile of '%s' stays in memory: %s", img->path, own.text);
	return 0;
}

/* The images that were put, so that just these are cleared after the commit. */
struct batch {
	struct image **items;
	size_t nr, cap;
};

static int put_all(struct daemon *d, struct batch *b, struct base_err *err)
{
	struct image *img;

	for (size_t pos = 0; images_next(d->images, &pos, &img);) {
		int r;

		if ((!img->dirty && !img->values) || image_must_wait(img))
			continue;
		r = base_grow(&b->items, &b->cap, b->nr + 1, sizeof(*b->items));
		if (r < 0)
			return base_fail_errno(err, r, "cannot flush");
		img->put = true;
		r = put_one(d, img, err);
		if (r < 0)
			return r;
		if (r > 0)
			b->items[b->nr++] = img;
	}
	return 0;
}

static int make_moved(const struct image_move *m, const struct profdb_profile *stored,
		      struct profdb_profile **out)
{
	int r;

	*out = profdb_profile_new(PROFDB_DYNAMIC, &m->to->id, m->to->path);
	r = *out ? image_move_counts(stored, m->map, *out) : -ENOMEM;
	if (r >= 0 && m->to->label)
		r = profdb_profile_set_word(*out, "label", m->to->label);
	return r;
}

static uint64_t moved_off(void *ctx, uint64_t off)
{
	return wire_moved_off(ctx, off);
}

static int put_moved_values(struct daemon *d, const struct image_move *m, struct base_err *err)
{
	const struct profdb_moved to = { .stem = m->to->stem,
					 .image = &m->to->id,
					 .path = m->to->path,
					 .off = moved_off,
					 .ctx = m->map };

	return profdb_flush_move_values(d->db, m->from->stem, &to, err);
}

/* One that cannot be moved stays where it is: its pseudo-image's build-id leads to the other one.
 */
static int put_moved_counts(struct daemon *d, const struct image_move *m, struct base_err *err)
{
	struct profdb_profile *stored = NULL, *p = NULL;
	struct base_err own = { 0 };
	int r = profdb_flush_read(d->db, m->from->stem, &stored, &own);

	if (r >= 0)
		r = make_moved(m, stored, &p);
	if (r >= 0)
		r = profdb_flush_put(d->db, m->to->stem, p, &own);
	if (r >= 0) {
		m->to->put = true;
		r = profdb_flush_remove(d->db, m->from->stem, &own);
	}
	profdb_profile_free(stored);
	profdb_profile_free(p);
	if (r >= 0 || r == -ENOENT || r == -DCPI_EFORMAT || does_not_fit(r))
		return 0;
	base_fail_errno(&own, r, "cannot move the profile of '%s'", m->from->path);
	*err = err->code ? *err : own;
	return r;
}

static int put_moved(struct daemon *d, const struct image_move *m, struct base_err *err)
{
	int r = put_moved_counts(d, m, err);

	return r < 0 ? r : put_moved_values(d, m, err);
}

/* Images that became part of others since the last flush. */
static int put_all_moved(struct daemon *d, struct base_err *err)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < d->moves.nr; i++)
		r = put_moved(d, &d->moves.items[i], err);
	return r;
}

/* Counts of images that became part of others follow them, those still to come too. */
static void follow_moved(struct daemon *d)
{
	for (size_t i = 0; i < d->moves.nr; i++) {
		const struct image_move *m = &d->moves.items[i];

		if (d->traces)
			trace_moved(d->traces, m->from, m->map, m->to);
		if (d->callpaths)
			callpath_moved(d->callpaths, m->from, m->map, m->to);
		if (m->from->values && image_values_move(m->from, m->map, m->to) < 0)
			base_log(BASE_LOG_WARN, "values of '%s' are lost: no memory",
				 m->from->path);
	}
}

/* After the profiles, and with their period. */
static int put_callpaths(struct daemon *d, struct base_err *err)
{
	struct driver_event events[DRIVER_NR_EVENTS];
	struct base_err own = { 0 };
	int r;

	if (!d->callpaths)
		return 0;
	for (size_t i = 0; i < d->store.nr_events; i++)
		events[i] = *driver_event_get(d->driver, i);
	r = callpath_put(d->callpaths, d->db, events, &own);
	if (r < 0)
		*err = err->code ? *err : own;
	return r;
}

static struct workload_image workload_image(const struct image *img)
{
	return (struct workload_image){
		.ref = { .kind = img->kind,
			 .id = img->id,
			 .path = img->path,
			 .stem = img->kind == PROFDB_DYNAMIC ? img->stem : NULL },
		.table = img->workloads,
	};
}

/* The kernel knows how long CPUs idled where no sample can tell. */
static void note_idle(struct daemon *d)
{
	struct machine_idle now, last = d->idle;
	struct profdb_note n = { .utc = (int64_t)time(NULL), .kind = PROFDB_NOTE_IDLE };

	if (!d->follow.live || !machine_idle("", &now))
		return;
	d->idle = now;
	/* A CPU that went offline takes its time along. */
	if (!last.all_ms || now.all_ms <= last.all_ms || now.idle_ms < last.idle_ms)
		return;
	n.n = (int64_t)(now.idle_ms - last.idle_ms);
	n.of = now.all_ms - last.all_ms;
	if ((uint64_t)n.n <= n.of)
		workload_note(d->workloads, &n);
}

/* The profiles that were put bring their tables, no others do: the sums are the same. */
static int put_workloads(struct daemon *d, const struct batch *b, struct base_err *err)
{
	struct profdb_event events[DRIVER_NR_EVENTS] = { 0 };
	struct workload_image *images;
	struct base_err own = { 0 };
	int r;

	if (!d->workloads || !b->nr)
		return 0;
	note_idle(d);
	images = malloc(b->nr * sizeof(*images));
	if (!images)
		return base_fail_errno(err, -ENOMEM, "cannot write workloads");
	for (size_t i = 0; i < b->nr; i++)
		images[i] = workload_image(b->items[i]);
	for (size_t i = 0; i < d->store.nr_events; i++) {
		const struct driver_event *e = driver_event_get(d->driver, i);

		events[i].period = e->period;
		memcpy(events[i].name, e->name, sizeof(events[i].name));
	}
	r = workload_put(d->workloads, d->db, events, d->store.nr_events, images, b->nr, &own);
	free(images);
	if (r < 0)
		*err = err->code ? *err : own;
	return r;
}

/* Processes that are known, or have counts that wait, keep their numbers. */
static void sweep_workloads(struct daemon *d)
{
	struct process *p;

	workload_written(d->workloads);
	for (size_t pos = 0; processes_next(d->processes, &pos, &p);)
		workload_mark(d->workloads, p->workload);
	for (size_t pos = 0; processes_next_over(d->processes, &pos, &p);)
		workload_mark(d->workloads, p->workload);
	if (d->callpaths)
		callpath_mark_lives(d->callpaths);
	workload_sweep(d->workloads);
	watch_forget(d->store.watch);
}

static void clear(const struct batch *b)
{
	for (size_t i = 0; i < b->nr; i++) {
		profdb_profile_clear(b->items[i]->counts);
		workload_table_clear(b->items[i]->workloads);
		image_values_clear(b->items[i]);
		b->items[i]->traces = b->items[i]->stepped = 0;
		b->items[i]->dirty = false;
	}
}

static int write_profiles(struct daemon *d, struct base_err *err)
{
	struct batch b = { 0 };
	int r = profdb_flush_begin(d->db, err);

	if (r < 0)
		return r;
	follow_moved(d);
	r = put_all(d, &b, err);
	if (r >= 0)
		r = put_all_moved(d, err);
	if (r >= 0)
		r = put_callpaths(d, err);
	if (r >= 0)
		r = put_workloads(d, &b, err);
	if (r >= 0)
		r = profdb_flush_commit(d->db, err);
	if (r < 0) {
		profdb_flush_abort(d->db);
	} else {
		clear(&b);
		if (d->callpaths)
			callpath_written(d->callpaths);
		if (d->workloads)
			sweep_workloads(d);
		image_moves_clear(&d->moves);
	}
	free(b.items);
	return r;
}

/*
 * Reading, merging and writing each have a user's share of the turn of their own: where processes
 * end all the time, merging alone takes all of one, and the code of those that live would not be
 * written.
 */
static int write_dynamic(struct daemon *d, struct base_err *err)
{
	int r, s;

	budget_turn(d->budgets);
	dyn_tasks_grace(d->dyn);
	r = dyn_merge(d->dyn, err);
	budget_turn(d->budgets);
	dyn_tasks_grace(d->dyn);
	s = dyn_write_images(d->dyn, err);
	return r < 0 ? r : s;
}

/* Their failures hold back what needs them; the other profiles are written all the same. */
static int write_images(struct daemon *d, bool last, struct base_err *err)
{
	int r = kernel_write_images(d->kernel, !last, err), s = write_dynamic(d, err);

	return r < 0 ? r : s;
}

/* Said once for each new cause, and when it is over: a full disk stays full for hours. */
static void tell(struct daemon *d, bool last, const struct base_err *err)
{
	if (err->code && err->code != d->flush_error.code) {
		base_log(BASE_LOG_ERROR, "flush failed: %s", err->text);
		if (err->hint[0])
			base_log(BASE_LOG_ERROR, "hint: %s", err->hint);
		if (!last)
			base_log(BASE_LOG_ERROR,
				 "its samples stay in memory; the next flush tries again");
	} else if (!err->code && d->flush_error.code) {
		base_log(BASE_LOG_INFO, "flush works again");
	}
	d->flush_error = *err;
}

/*
 * A daemon killed during its first flush has an epoch all the same: it begins empty. @written: code
 * was, in this turn, after a drain.
 */
static int flush(struct daemon *d, bool last, bool written, struct base_err *err)
{
	struct base_err own = { 0 };
	int r = 0, s;

	ranges_retry(&d->follow);
	if (!written)
		r = drain_all(d, last, &own);
	s = database_find(d, &own);
	if (r >= 0 && s >= 0)
		r = written ? kernel_write_images(d->kernel, true, &own)
			    : write_images(d, last, &own);
	if (s >= 0)
		s = give_up_refused(d, false);
	if (s >= 0)
		s = write_profiles(d, &own);
	if (r >= 0)
		r = s;
	/* A cause that nobody put into words. */
	if (r < 0)
		base_fail_errno(&own, r, "cannot flush");
	if ((own.code == -ENOSPC || own.code == -EDQUOT) && !own.hint[0])
		base_hint(&own,
			  "make room on its file system: 'dcpid -gc -old_epochs %s' removes old "
			  "epochs",
			  profdb_path(d->db));
	tell(d, last, &own);
	if (r < 0) {
		*err = err->code ? *err : own;
		return r;
	}
	d->nr_flushes++;
	d->last_flush_utc = (int64_t)time(NULL);
	daemon_keep_quota(d);
	identity_forget(d->identity);
	budget_clear(d->budgets, BUDGET_REGISTRATIONS);
	images_drop_unused(d->images);
	return 0;
}

/* A recorded stream has another time, and dcpirun's epochs are its runs. */
static bool is_one_of_many(const struct daemon *d)
{
	return d->follow.live && !d->opt.own;
}

/*
 * An epoch that has finished is indexed, so that its first reader need not. One of very many images
 * would hold up the drains.
 */
static void index_finished(struct daemon *d)
{
	enum { PROFILES_MAX = 5000 };
	int r = 0;

	if (d->unindexed[0])
		r = profdb_sums_make(d->db, d->unindexed, d->platform, PROFILES_MAX);
	/* It has changed just now: the next flush finds it at rest. */
	if (r != -EAGAIN)
		d->unindexed[0] = '\0';
}

uint64_t daemon_unwritten(const struct daemon *d, bool timed)
{
	size_t nr_sampled = d->store.nr_events - d->store.nr_timed;
	size_t from = timed ? nr_sampled : 0, to = timed ? d->store.nr_events : nr_sampled;
	struct image *img;
	uint64_t sum = 0;

	for (size_t pos = 0; images_next(d->images, &pos, &img);)
		for (size_t e = from;
		     img->dirty && e < to && e < profdb_profile_nr_events(img->counts); e++)
			sum += profdb_profile_event(img->counts, e)->sum;
	return sum;
}

/* @epoch gets no more; what waits for its pseudo-image comes into the next one. */
static void tell_finished(struct daemon *d, const char *epoch)
{
	uint64_t all = d->store.account.stored - daemon_unwritten(d, false),
		 nr = all - d->nr_before;

	d->nr_before = all;
	/* There was none, or somebody removed it. */
	if (epoch[0] && !d->reopened)
		base_log(BASE_LOG_INFO, "epoch %s finished: %llu sample%s stored", epoch,
			 (unsigned long long)nr, nr == 1 ? "" : "s");
}

/* d->epoch is another one now. */
static void epoch_began(struct daemon *d, const char *before, const char *why)
{
	tell_finished(d, before);
	index_finished(d);
	snprintf(d->unindexed, sizeof(d->unindexed), "%s", before);
	dyn_merge_forget(d->dyn);
	labels_new_epoch(&d->follow.labels);
	if (d->workloads)
		counts_new_epoch(&d->counts);
	watch_forget(d->store.watch);
	base_log(BASE_LOG_INFO, "epoch %s begins%s", d->epoch, why);
}

/* 1: another machine began an epoch, and so did we. */
static int follow(struct daemon *d, struct base_err *err)
{
	char before[sizeof(d->epoch)];
	int r;

	if (!is_one_of_many(d))
		return 0;
	memcpy(before, d->epoch, sizeof(before));
	r = profdb_epoch_follow(d->db, (int64_t)time(NULL), d->epoch, err);
	if (r > 0)
		epoch_began(d, before, ": another machine is in it");
	return r;
}

int daemon_turn_epoch(struct daemon *d, struct base_err *err)
{
	int64_t recorded = driver_recorded_utc(d->driver), now = (int64_t)time(NULL);
	bool must_be_new = d->opt.new_epoch && !d->epoch[0];
	char before[sizeof(d->epoch)];
	int r = must_be_new ? 0 : follow(d, err);

	if (r)
		return r;
	memcpy(before, d->epoch, sizeof(before));
	if (is_one_of_many(d))
		r = profdb_epoch_turn(d->db, now, d->epoch, err);
	else
		r = profdb_epoch_start(d->db, recorded >= 0 ? recorded : now, d->epoch, err);
	if (r >= 0)
		epoch_began(d, before, "");
	return r;
}

/*
 * Records of a process that tells of very much code are in small pieces, and the heap keeps their
 * pages.
 */
static void give_back_memory(struct daemon *d)
{
	size_t unused = mallinfo2().fordblks;

	/* Pages that were given back count as unused until they are used again. */
	if (unused < d->heap_unused)
		d->heap_unused = unused;
	if (unused - d->heap_unused < HEAP_UNUSED_MAX)
		return;
	malloc_trim(0);
	d->heap_unused = mallinfo2().fordblks;
}

/* Code of users who have had their turn is left, and there is time for it. */
static bool is_unfinished(struct daemon *d)
{
	uint64_t now = base_now_ns(), until = d->unfinished_until_ns;

	if (!d->in_turns)
		return false;
	d->unfinished_until_ns = 0;
	if (!dyn_is_behind(d->dyn))
		return false;
	if (until && now >= until) {
		d->nr_left = daemon_unwritten(d, false);
		return false;
	}
	d->unfinished_until_ns = until ? until : now + UNFINISHED_NS;
	return true;
}

/* The next turn reads and writes the code that was left; profiles wait until none is left. 1: it
 * was all written. */
static int continue_unfinished(struct daemon *d)
{
	struct base_err own = { 0 };
	int r;

	if (!d->in_turns || !d->unfinished_until_ns || base_now_ns() >= d->unfinished_until_ns)
		return 0;
	r = drain_all(d, false, &own);
	if (r >= 0)
		r = write_dynamic(d, &own);
	/* An error is the flush's, which says so. */
	return r < 0 ? 0 : dyn_is_behind(d->dyn) ? -EINPROGRESS : 1;
}

/* Profiles are on disk; who asked for a flush is told when the kernel's routines are, too. */
static bool waits_for_kernel(struct daemon *d)
{
	uint64_t now = base_now_ns(), until = d->kernel_until_ns;

	d->kernel_until_ns = 0;
	if (!d->in_turns || !kernel_is_writing(d->kernel) || (until && now >= until))
		return false;
	d->kernel_until_ns = until ? until : now + UNFINISHED_NS;
	return true;
}

static int flush_in_turns(struct daemon *d, struct base_err *err)
{
	int r;

	if (d->in_turns && d->kernel_until_ns)
		return waits_for_kernel(d) ? -EINPROGRESS : 0;
	d->nr_left = 0;
	if (d->in_turns && !d->unfinished_until_ns)
		dyn_begin_flush(d->dyn);
	r = continue_unfinished(d);
	if (r >= 0)
		r = flush(d, false, r == 1, err);
	return r >= 0 && (is_unfinished(d) || waits_for_kernel(d)) ? -EINPROGRESS : r;
}

int daemon_flush(struct daemon *d, struct base_err *err)
{
	struct base_err own = { 0 };
	int r = flush_in_turns(d, err);

	if (r == -EINPROGRESS)
		return r;
	/* This flush has succeeded; the next one tries again. */
	if (r >= 0 && follow(d, &own) < 0)
		base_log(BASE_LOG_WARN, "cannot follow other machines: %s", own.text);
	index_finished(d);
	give_back_memory(d);
	return r;
}

int daemon_new_epoch(struct daemon *d, struct base_err *err)
{
	int r = flush_in_turns(d, err);

	return r < 0 ? r : daemon_turn_epoch(d, err);
}

/* Everything else is on disk: what still waits for a pseudo-image waits in vain. */
static int finish_waiting(struct daemon *d, struct base_err *err)
{
	int r = give_up_refused(d, true);

	if (r < 0)
		return base_fail_errno(err, r, "cannot finish");
	return r > 0 ? write_profiles(d, err) : 0;
}

static void tell_losses(const struct driver_stats *stats, const struct account *total)
{
	for (size_t i = 0; i < ACCOUNT_NR_LOSSES; i++)
		if (total->lost[i])
			base_log(BASE_LOG_WARN, "%llu sample%s lost: %s",
				 (unsigned long long)total->lost[i],
				 total->lost[i] == 1 ? " was" : "s were",
				 account_loss_name((enum account_loss)i));
	if (stats->lost_load)
		base_log(BASE_LOG_WARN, "%llu load events were lost or came late",
			 (unsigned long long)stats->lost_load);
}

static void tell_callpaths(const struct daemon *d)
{
	struct driver_callpath_stats driver = { 0 };
	struct callpath_stats s = { 0 };

	if (!d->callpaths)
		return;
	callpath_stats_get(d->callpaths, false, &s);
	callpath_driver_stats_get(d->callpaths, &driver);
	base_log(BASE_LOG_INFO, "call paths: %llu of %llu samples stored, %llu lost; %llu complete",
		 (unsigned long long)s.stored, (unsigned long long)s.received,
		 (unsigned long long)callpath_lost(&s),
		 (unsigned long long)driver.by_end[DRIVER_CALLPATH_COMPLETE]);
	if (s.pending || s.received != s.stored + callpath_lost(&s))
		base_log(BASE_LOG_ERROR,
			 "the accounts of call paths do not balance: %llu samples pending",
			 (unsigned long long)s.pending);
}

static void tell_times(const struct daemon *d)
{
	struct driver_wait_stats driver = { 0 };
	struct account total;

	if (!d->store.nr_timed)
		return;
	driver_wait_stats_get(d->driver, &driver);
	account_times_total(&d->store.times, &driver, &total);
	base_log(BASE_LOG_INFO, "waiting and running threads: %llu of %llu ms stored, %llu lost",
		 (unsigned long long)total.stored / 1000000,
		 (unsigned long long)total.received / 1000000,
		 (unsigned long long)account_lost(&total) / 1000000);
	if (total.pending || !account_balanced(&total))
		base_log(BASE_LOG_ERROR,
			 "the accounts of waits do not balance: %llu ns received, %llu stored, "
			 "%llu pending, %llu lost",
			 (unsigned long long)total.received, (unsigned long long)total.stored,
			 (unsigned long long)total.pending,
			 (unsigned long long)account_lost(&total));
}

/*
 * Invariant 1 at the end: nothing is pending. A live daemon has said in its status what was lost; a
 * replay has no status, so the log says it.
 */
static void tell_account(const struct daemon *d)
{
	struct driver_stats stats = { 0 };
	struct account total;

	driver_stats_get(d->driver, &stats);
	account_total(&d->store.account, &stats, &total);
	if (total.pending || !account_balanced(&total))
		base_log(BASE_LOG_ERROR,
			 "the accounts do not balance: %llu samples received, %llu stored, "
			 "%llu pending, %llu lost",
			 (unsigned long long)total.received, (unsigned long long)total.stored,
			 (unsigned long long)total.pending,
			 (unsigned long long)account_lost(&total));
	if (driver_is_recorded(d->driver))
		tell_losses(&stats, &total);
}

/* Values of the last traces, which the flush has seen. */
static int finish_values(struct daemon *d, struct base_err *err)
{
	trace_values_finish(d->traces);
	return write_profiles(d, err);
}

int daemon_finish(struct daemon *d, struct base_err *err)
{
	struct base_err own = { 0 };
	int r;

	if (d->finished)
		return 0;
	driver_stop(d->driver);
	r = flush(d, true, false, &own);
	if (r < 0 && d->gone_ns)
		return database_give_up(d, &own, err);
	*err = own;
	if (r >= 0 && d->values)
		r = finish_values(d, err);
	if (r >= 0)
		r = finish_waiting(d, err);
	if (r >= 0)
		r = profdb_epoch_finish(d->db, err);
	if (r < 0)
		return r;
	d->finished = true;
	tell_finished(d, d->epoch);
	tell_account(d);
	tell_callpaths(d);
	tell_times(d);
	return 0;
}
