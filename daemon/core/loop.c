/* SPDX-License-Identifier: BSD-2-Clause */
/* The daemon waits for events, drains the driver, and does whatever is due. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "budget.h"
#include "core.h"
#include "every.h"
#include "step.h"
#include "trace.h"
#include "values.h"
#include "watch.h"

#define SECOND_NS 1000000000ull
/* Owned ranges are copied whole: not at every drain of a busy second. */
#define RANGES_NS (2 * SECOND_NS)
/* Dynamic code counts as running for so long after its last samples came, and these come late. */
#define BUSY_NS (10 * SECOND_NS)
/* Reading all of /proc must not become the load under which more events are lost. */
#define RESYNC_NS (5 * SECOND_NS)
#define OFTEN_NS  250000000ull
/* Removing a database takes some time: it is not begun anew meanwhile. */
#define REMOVAL_NS (10 * SECOND_NS)
/*
 * A JIT that could not ring the doorbell should not run long before it is found. Waking up costs
 * more than the look does: once for this and for the timer.
 */
#define LOOK_NS OFTEN_NS
/* So many looks that found nothing, one behind the other, and we rest until a program begins. */
#define REST_LOOKS 4
/* While traces meet code that is not translated: behind it they meet more. Then twice as long each
 * time, so that a miss now and then costs some looks and no more. */
#define SERVE_NS  5000000ull
#define BEGINS_NS 50000000ull

/* A replay that a signal ends: its writer may have got it too, and has some words left. */
#define STOP_NS (2 * SECOND_NS)

enum { DYN_FDS = 16 };

/* ---- one drain ------------------------------------------------------------------------------- */

/* Lost load events leave stale mappings behind: what /proc says now is the cure. */
static bool resync_lost_events(struct daemon *d, bool all)
{
	struct driver_stats stats = { 0 };

	driver_stats_get(d->driver, &stats);
	if (stats.lost_load == d->follow.lost_read || !d->follow.live ||
	    (!all && base_now_ns() - d->resynced_ns < RESYNC_NS))
		return false;
	d->resynced_ns = base_now_ns();
	base_log(BASE_LOG_WARN, "%llu load events were lost: reading /proc again",
		 (unsigned long long)(stats.lost_load - d->follow.lost_read));
	if (d->opt.own)
		follow_scan_known(&d->follow);
	else
		follow_scan_all(&d->follow);
	counts_resynchronised(&d->counts, stats.lost_load);
	return true;
}

static void tell_record_error(struct daemon *d)
{
	if (!d->follow.record_error || d->record_failed)
		return;
	d->record_failed = true;
	base_log(BASE_LOG_ERROR, "cannot write '%s': %s; it is not complete", d->opt.record,
		 base_strerror(d->follow.record_error));
}

static bool ranges_due(struct daemon *d, bool all)
{
	uint64_t now = base_now_ns(), seen = d->attribute.dynamic_ns;
	uint64_t busy_ns = BUSY_NS + (uint64_t)d->opt.drain_ms * 1000000u;

	seen = d->follow.attached_ns > seen ? d->follow.attached_ns : seen;
	if (!all && (!seen || now - seen > busy_ns || now - d->ranges_read_ns < RANGES_NS))
		return false;
	d->ranges_read_ns = now;
	return true;
}

/* Counts that are drained now are of the time from the last look on. */
static void look_at_clock(struct daemon *d)
{
	if (d->follow.live)
		workload_clock_look(&d->counts.owners.clock, base_now_ns(),
				    (int64_t)base_clock_ns(CLOCK_REALTIME));
	else
		d->counts.recorded_utc_ns = driver_recorded_utc(d->driver) * (int64_t)SECOND_NS;
}

/* @all: what the driver has; @whole: what is read now and then is read now, too. */
static int drain(struct daemon *d, bool all, bool whole, struct base_err *err)
{
	const struct driver_sink sink = counts_sink(&d->counts);
	uint64_t now = base_now_ns();
	int r;

	look_at_clock(d);
	kernel_look(d->kernel);
	dyn_take(d->dyn, follow_attach, &d->follow);
	ranges_tell(&d->follow);
	r = driver_drain(d->driver, all, &sink, err);
	/* A flush does not leave waiting what came before that. */
	if (resync_lost_events(d, whole))
		now = base_now_ns();
	/*
	 * A program that announced itself and ran during the drain has samples among those just
	 * read.
	 */
	dyn_take(d->dyn, follow_attach, &d->follow);
	d->follow.ranges_changed |= dyn_refresh(d->dyn, ranges_due(d, whole));
	counts_resolve(&d->counts, all && d->follow.live && r >= 0 ? now : 0);
	ranges_tell(&d->follow);
	tell_record_error(d);
	if (r < 0)
		d->source_error = *err;
	return r;
}

int daemon_drain(struct daemon *d, bool all, struct base_err *err)
{
	return drain(d, all, all, err);
}

int daemon_drain_counts(struct daemon *d, struct base_err *err)
{
	return drain(d, true, false, err);
}

/* ---- the loop -------------------------------------------------------------------------------- */

struct loop {
	int epoll_fd, signal_fd, timer_fd;
	int values_fd;	   /* watched, or -1 */
	int step_fd;	   /* likewise */
	int look_fd;	   /* the source is asked whether something is urgent, nothing else */
	uint64_t every_ns; /* the timer's interval; 0: set anew by each turn */
	uint64_t look_ns;  /* that of look_fd; 0: it rests */
	int nr_quiet;	   /* last looks that found nothing */
};

static int watch(struct loop *l, int fd)
{
	struct epoll_event ev = { .events = EPOLLIN, .data.fd = fd };

	return epoll_ctl(l->epoll_fd, EPOLL_CTL_ADD, fd, &ev) < 0 ? -errno : 0;
}

/* A replay (not @live) is a command like others: what was ignored when it began does not end it. */
static void fill_signals(sigset_t *set, bool live)
{
	static const int ending[] = { SIGTERM, SIGINT, SIGHUP };
	struct sigaction now;

	sigemptyset(set);
	for (size_t i = 0; i < sizeof(ending) / sizeof(*ending); i++) {
		if (live || sigaction(ending[i], NULL, &now) < 0 || now.sa_handler != SIG_IGN)
			sigaddset(set, ending[i]);
	}
}

static int open_signals(bool live)
{
	sigset_t set;
	int fd;

	fill_signals(&set, live);
	fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	return fd < 0 ? -errno : fd;
}

/* From now on they come by that descriptor alone. */
static int block_signals(bool live)
{
	sigset_t set;

	fill_signals(&set, live);
	return sigprocmask(SIG_BLOCK, &set, NULL) < 0 ? -errno : 0;
}

static int arm(int fd, uint64_t first, uint64_t ns)
{
	const struct itimerspec timer = { .it_interval = { .tv_sec = (time_t)(ns / SECOND_NS),
							   .tv_nsec = (long)(ns % SECOND_NS) },
					  .it_value = { .tv_sec = (time_t)(first / SECOND_NS),
							.tv_nsec = (long)(first % SECOND_NS) } };

	return timerfd_settime(fd, TFD_TIMER_ABSTIME, &timer, NULL) < 0 ? -errno : 0;
}

/*
 * Each second; where JITs are registered more often, as an address is its routine's for certain
 * only from the reading after its registration on. At whole multiples: timers that are due at the
 * same time wake us once. 0: never.
 */
static int set_timer(int fd, uint64_t ns)
{
	return arm(fd, ns ? (base_now_ns() / ns + 1) * ns : 0, ns);
}

static int open_timer(uint64_t ns)
{
	int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);

	if (fd >= 0 && set_timer(fd, ns) < 0) {
		close(fd);
		return -1;
	}
	return fd;
}

static void adapt_timer(struct loop *l, const struct daemon *d)
{
	struct dyn_stats stats = { 0 };
	uint64_t every_ns;

	dyn_stats_get(d->dyn, &stats);
	/* Where a viewer asks at least each second, its turns are enough. */
	if (!stats.clients && watch_has_viewers(d->store.watch)) {
		l->every_ns = 0;
		arm(l->timer_fd, base_now_ns() + SECOND_NS, SECOND_NS);
		return;
	}
	every_ns = stats.clients ? OFTEN_NS : SECOND_NS;
	if (l->every_ns != every_ns)
		set_timer(l->timer_fd, every_ns);
	l->every_ns = every_ns;
}

static int loop_open(struct loop *l, const struct daemon *d)
{
	int fds[DYN_FDS], r = 0;
	size_t nr = dyn_poll_fds(d->dyn, fds, DYN_FDS);

	l->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	l->signal_fd = open_signals(true);
	l->timer_fd = open_timer(SECOND_NS);
	if (l->epoll_fd < 0 || l->signal_fd < 0 || l->timer_fd < 0 || block_signals(true) < 0)
		return -errno;
	r = watch(l, l->signal_fd);
	if (r >= 0)
		r = watch(l, l->timer_fd);
	if (r >= 0 && driver_look(d->driver) >= 0) {
		l->look_fd = open_timer(LOOK_NS);
		r = l->look_fd < 0 ? -errno : watch(l, l->look_fd);
	}
	if (r >= 0 && driver_poll_fd(d->driver) >= 0)
		r = watch(l, driver_poll_fd(d->driver));
	if (r >= 0 && d->control)
		r = watch(l, control_poll_fd(d->control));
	for (size_t i = 0; r >= 0 && i < nr; i++)
		r = watch(l, fds[i]);
	return r;
}

static void loop_close(struct loop *l)
{
	int fds[] = { l->epoll_fd, l->signal_fd, l->timer_fd, l->look_fd };

	for (size_t i = 0; i < sizeof(fds) / sizeof(*fds); i++)
		if (fds[i] >= 0)
			close(fds[i]);
}

static bool got_signal(int fd)
{
	struct signalfd_siginfo info;

	if (read(fd, &info, sizeof(info)) != sizeof(info))
		return false;
	base_log(BASE_LOG_INFO, "ended by signal %u: flushing", info.ssi_signo);
	return true;
}

/*
 * Labels are what a daemon that is killed leaves to the next: soon, for programs are labelled when
 * they begin.
 */
static void keep_labels(struct daemon *d, bool now)
{
	struct labels *t = &d->follow.labels;

	if (d->control && (now || (t->changed && base_now_ns() - t->written_ns > SECOND_NS)))
		labels_keep_write(t, d->processes, d->run_dir);
}

/* A try that fails is made again with the next flush, one that is left unfinished in the next turn.
 */
static bool is_epoch_due(const struct daemon *d)
{
	return d->follow.live && d->epoch[0] && base_now_ns() >= d->next_turn_ns &&
	       every_is_due(d->opt.epoch_every_s, profdb_epoch_begin_time(d->epoch),
			    (int64_t)time(NULL));
}

static void flush_or_turn(struct daemon *d, bool turn, struct base_err *err)
{
	uint64_t pause_ns = (uint64_t)d->opt.flush_s * SECOND_NS;
	int r = turn ? daemon_new_epoch(d, err) : daemon_flush(d, err);

	if (turn && r != -EINPROGRESS)
		d->next_turn_ns = base_now_ns() + pause_ns;
	/* A flush that fails has said so. */
	if (turn && r < 0 && r != -EINPROGRESS && !d->flush_error.code)
		base_log(BASE_LOG_WARN, "cannot begin an epoch: %s", err->text);
	d->next_flush_ns = base_now_ns() + pause_ns;
}

static void periodic_flush(struct daemon *d)
{
	struct base_err err = { 0 };
	bool turn = is_epoch_due(d);

	if (!turn && base_now_ns() < d->next_flush_ns)
		return;
	database_look(d);
	if (d->gone_ns && base_now_ns() - d->gone_ns < REMOVAL_NS)
		return;
	if (d->follow.live)
		follow_sweep(&d->follow);
	counts_scanned(&d->counts);
	daemon_keep_status(d, true);
	/* Reading and writing earlier in this round leave no time for what is new. */
	budget_turn(d->budgets);
	dyn_set_hasty(d->dyn, true);
	flush_or_turn(d, turn, &err);
	dyn_set_hasty(d->dyn, false);
	keep_labels(d, true);
}

/* Clients that ask again and again on a full disk are told each time, the log once. Of a database
 * that was removed it has been said. */
static void tell_dyn(struct daemon *d, int r, const struct base_err *err)
{
	if (r < 0)
		base_log(d->gone_ns || r == d->dyn_error ? BASE_LOG_DEBUG : BASE_LOG_WARN,
			 "dynamic code: %s", err->text);
	d->dyn_error = r < 0 ? r : 0;
}

/*
 * A client that waits for its image is answered now, not at the next flush of profiles; but after
 * everything up to now was read, its ranges too. Draining and writing wait until that is so: each
 * turn of a long list would do them again.
 */
static int serve_dyn(struct daemon *d, struct base_err *err)
{
	struct base_err own = { 0 };
	int r;

	if (dyn_wants_merge(d->dyn))
		tell_dyn(d, dyn_merge(d->dyn, &own), &own);
	own = (struct base_err){ 0 };
	/* A flush that goes on writes them, too. */
	if (base_now_ns() >= d->unfinished_until_ns && dyn_write_ended(d->dyn, &own) < 0)
		base_log(BASE_LOG_DEBUG, "dynamic code: %s", own.text);
	if (!dyn_read_waited(d->dyn))
		return 0;
	own = (struct base_err){ 0 };
	r = daemon_drain(d, true, err);
	if (r >= 0)
		tell_dyn(d, dyn_write_waited(d->dyn, &own), &own);
	return r;
}

/* A viewer is shown routines by name before the next flush. */
static void write_for_viewers(struct daemon *d)
{
	uint64_t begin = base_now_ns();
	struct base_err err = { 0 };

	if (begin < d->next_watched_ns || !watch_has_viewers(d->store.watch))
		return;
	tell_dyn(d, dyn_write_watched(d->dyn, d->store.watch, &err), &err);
	d->next_watched_ns = base_now_ns() + watch_write_pause(base_now_ns() - begin);
}

/* ---- suspended, or its clock set ------------------------------------------------------------- */

/*
 * A machine that slept received nothing: a gap in its samples that is no fault. One whose clock
 * was set has epochs and messages whose times do not follow one another.
 */

/* The two clocks are read one after the other, and much may come between. */
#define SUSPENDED_NS 1000000000ull

uint64_t suspends_look(struct suspends *s, uint64_t ahead_ns)
{
	bool first = !s->looked;
	uint64_t slept = ahead_ns > s->ahead_ns ? ahead_ns - s->ahead_ns : 0;

	s->looked = true;
	if (!first && slept < SUSPENDED_NS)
		return 0;
	s->ahead_ns = ahead_ns;
	if (first)
		return 0;
	s->nr++;
	s->ns += slept;
	return slept;
}

/* How far apart the readings of a clock may be, and by how much it must be off. */
#define APART_NS     100000000ull
#define CLOCK_SET_NS 2000000000ll

int64_t clock_sets_look(struct clock_sets *s, uint64_t before_ns, int64_t utc_ns, uint64_t after_ns)
{
	int64_t offset_ns = utc_ns - (int64_t)before_ns, by_ns = offset_ns - s->offset_ns;
	bool first = !s->looked;

	if (after_ns - before_ns > APART_NS)
		return 0;
	s->looked = true;
	s->offset_ns = offset_ns;
	if (first || (by_ns < CLOCK_SET_NS && by_ns > -CLOCK_SET_NS))
		return 0;
	s->nr++;
	return by_ns / 1000000000;
}

void daemon_note(struct daemon *d, enum profdb_note_kind kind, int64_t n)
{
	const struct profdb_note note = { .utc = (int64_t)time(NULL), .kind = kind, .n = n };

	workload_note(d->workloads, &note);
}

static void tell_suspend(struct daemon *d)
{
	uint64_t ns = d->follow.live ? suspends_look(&d->suspends, base_boot_ahead_ns()) : 0;

	if (!ns)
		return;
	base_log(BASE_LOG_INFO, "the machine was suspended for %llu s",
		 (unsigned long long)(ns / SECOND_NS));
	daemon_note(d, PROFDB_NOTE_SUSPEND, (int64_t)(ns / SECOND_NS));
}

static void tell_clock(struct daemon *d)
{
	uint64_t before_ns = base_clock_ns(CLOCK_BOOTTIME);
	int64_t utc_ns = (int64_t)base_clock_ns(CLOCK_REALTIME), by = 0;

	if (d->follow.live)
		by = clock_sets_look(&d->clock_sets, before_ns, utc_ns,
				     base_clock_ns(CLOCK_BOOTTIME));
	if (!by)
		return;
	base_log(BASE_LOG_INFO, "the clock was set %s by %lld s", by < 0 ? "back" : "ahead",
		 (long long)(by < 0 ? -by : by));
	daemon_note(d, PROFDB_NOTE_CLOCK, by);
}

/* ---- a turn ---------------------------------------------------------------------------------- */

/* A viewer's question may be what woke us: it is answered with all that there is. */
static int drain_for_turn(struct daemon *d, struct base_err *err)
{
	uint64_t now = base_now_ns();

	if (now - d->watched_ns < WATCH_PAUSE_ALL_NS ||
	    !watch_is_due(d->store.watch, now - WATCH_PAUSE_NS))
		return daemon_drain(d, false, err);
	d->watched_ns = now;
	return daemon_drain_counts(d, err);
}

static void keep_longest(struct daemon *d, uint64_t begin_ns)
{
	uint64_t ns = base_now_ns() - begin_ns;

	d->longest_turn_ns = ns > d->longest_turn_ns ? ns : d->longest_turn_ns;
}

int daemon_turn(struct daemon *d, struct base_err *err)
{
	uint64_t begin_ns = base_now_ns();
	int r;

	d->stepped = false;
	daemon_keep_status(d, false);
	budget_turn(d->budgets);
	dyn_set_hasty(d->dyn, true);
	r = drain_for_turn(d, err);
	if (r >= 0)
		r = serve_dyn(d, err);
	if (r >= 0)
		write_for_viewers(d);
	dyn_set_hasty(d->dyn, false);
	if (r >= 0 && d->control)
		control_serve(d->control);
	daemon_keep_status(d, false);
	if (d->source_error.code) {
		*err = d->source_error;
		return err->code;
	}
	/* Two flushes would make the turn twice as long. */
	if (!d->finished && !d->stepped)
		periodic_flush(d);
	keep_labels(d, false);
	watch_expire(d->store.watch, base_now_ns());
	daemon_maintain(d);
	tell_suspend(d);
	tell_clock(d);
	profdb_lock_heartbeat(d->db);
	service_alive(&d->service, d->epoch, d->store.account.stored);
	database_look(d);
	keep_longest(d, begin_ns);
	return 0;
}

static int empty_timer(int fd, struct base_err *err)
{
	uint64_t ticks;

	if (fd >= 0 && read(fd, &ticks, sizeof(ticks)) < 0 && errno != EAGAIN)
		return base_fail_errno(err, -errno, "cannot read the timer");
	return 0;
}

static void set_look(struct loop *l, uint64_t ns)
{
	if (l->look_fd < 0 || ns == l->look_ns)
		return;
	l->nr_quiet = 0;
	l->look_ns = ns;
	set_timer(l->look_fd, ns);
}

/* Nothing but the timer of looks woke us. True: something is urgent. */
static bool look(struct daemon *d, struct loop *l)
{
	int found = driver_look(d->driver);

	l->nr_quiet = found == DRIVER_QUIET ? l->nr_quiet + 1 : 0;
	if (l->nr_quiet < REST_LOOKS || l->look_ns < LOOK_NS || driver_wake_at_exec(d->driver) < 0)
		return found == DRIVER_URGENT;
	/* A program that began before that has announced itself to no daemon. */
	found = driver_look(d->driver);
	if (found == DRIVER_QUIET)
		set_look(l, 0);
	return found == DRIVER_URGENT;
}

/* Behind a turn. */
static void look_again(const struct daemon *d, struct loop *l)
{
	if (l->look_fd >= 0 && !l->look_ns && driver_look(d->driver) != DRIVER_QUIET)
		set_look(l, LOOK_NS);
}

/* Code that is not translated, or has no unwind table, is met again and again until it is. True:
 * the events that tell of its process are to be taken. */
static bool serve_missing(struct daemon *d, struct loop *l)
{
	bool more = d->callpaths && callpath_serve(d->callpaths);
	uint64_t look_ns;

	if (!d->traces && !d->callpaths)
		return false;
	more |= d->traces && trace_serve(d->traces);
	look_ns = more ? SERVE_NS : 2 * l->look_ns;
	/* A client writes its first code now. */
	if (look_ns > BEGINS_NS && d->follow.attached_ns &&
	    base_now_ns() - d->follow.attached_ns < SECOND_NS)
		look_ns = BEGINS_NS;
	set_look(l, look_ns > LOOK_NS ? LOOK_NS : look_ns);
	return d->callpaths && callpath_wants_events(d->callpaths);
}

/* Its process is replaced now and then. */
static void watch_values(const struct daemon *d, struct loop *l)
{
	int fd = d->traces && d->values ? values_poll_fd(d->values) : -1;
	int r = fd < 0 ? 0 : watch(l, fd);

	if (r == 0 || r == -EEXIST)
		l->values_fd = fd;
	fd = d->step ? step_poll_fd(d->step) : -1;
	if (fd >= 0 && l->step_fd < 0 && watch(l, fd) < 0)
		fd = -1;
	l->step_fd = fd;
}

static bool is_of_values(const struct loop *l, int fd)
{
	return fd >= 0 && (fd == l->values_fd || fd == l->step_fd);
}

/* True: that was all that woke us. */
static bool turn_values(struct daemon *d, const struct loop *l, const struct epoll_event *events,
			int nr)
{
	if (!d->traces)
		return false;
	trace_step_turn(d->traces);
	trace_values_turn(d->traces);
	for (int i = 0; i < nr; i++)
		if (!is_of_values(l, events[i].data.fd))
			return false;
	return nr > 0;
}

static int turn(struct daemon *d, struct loop *l, struct base_err *err)
{
	struct epoll_event events[DYN_FDS + 8];
	int timeout_ms = dyn_is_catching_up(d->dyn) ? 0 : -1, r;
	bool wants;
	int nr;

	driver_busy(d->driver, false);
	nr = epoll_wait(l->epoll_fd, events, DYN_FDS + 8, timeout_ms);
	if (nr < 0)
		return errno == EINTR ? 0 : base_fail_errno(err, -errno, "cannot wait for events");
	driver_busy(d->driver, true);
	r = empty_timer(l->look_fd, err);
	wants = serve_missing(d, l);
	watch_values(d, l);
	if (r == 0 && turn_values(d, l, events, nr) && !wants)
		return 0;
	if (r < 0 || (nr == 1 && events[0].data.fd == l->look_fd && !look(d, l) && !wants))
		return r;
	/* The timer, or anything else, woke us: a drain is cheap, and all are emptied by one. */
	r = empty_timer(l->timer_fd, err);
	if (r == 0)
		r = daemon_turn(d, err);
	if (r < 0)
		return r;
	adapt_timer(l, d);
	look_again(d, l);
	return d->finished || got_signal(l->signal_fd);
}

static int run_live(struct daemon *d, struct base_err *err)
{
	struct loop l = { .epoll_fd = -1,
			  .signal_fd = -1,
			  .timer_fd = -1,
			  .look_fd = -1,
			  .every_ns = SECOND_NS,
			  .look_ns = LOOK_NS,
			  .values_fd = -1,
			  .step_fd = -1 };
	int r = loop_open(&l, d);

	if (r < 0)
		base_fail_errno(err, r, "cannot begin to wait for events");
	if (d->control && control_stand_in(d->control) < 0)
		base_log(BASE_LOG_WARN, "requests for the status wait while the daemon is busy");
	while (r == 0)
		r = turn(d, &l, err);
	loop_close(&l);
	return r < 0 ? r : 0;
}

int daemon_stop_open(void)
{
	return open_signals(false);
}

/* Is a signal to end the replay now? It is not taken yet, for the source looks at it too. */
static bool is_stopped(const struct daemon *d, uint64_t *end_ns)
{
	struct pollfd stop = { .fd = d->stop_fd, .events = POLLIN };

	if (d->stop_fd <= 0 || poll(&stop, 1, 0) <= 0)
		return false;
	if (*end_ns == UINT64_MAX)
		*end_ns = base_now_ns() + STOP_NS;
	return base_now_ns() >= *end_ns;
}

/* As daemon_drain, whose last answer it returns. */
static int run_recorded(struct daemon *d, struct base_err *err)
{
	uint64_t end_ns = UINT64_MAX;
	int r;

	d->streaming = true;
	if (d->stop_fd > 0)
		block_signals(false);
	while ((r = daemon_drain(d, false, err)) > 0 && !is_stopped(d, &end_ns)) {
		periodic_flush(d);
		profdb_lock_heartbeat(d->db);
	}
	if (d->stop_fd > 0)
		got_signal(d->stop_fd);
	return r;
}

/* There is no next try. */
static int finish(struct daemon *d, struct base_err *err)
{
	struct base_err why = { 0 };
	int r = daemon_finish(d, &why);

	if (r < 0 && !d->finished)
		return database_give_up(d, &why, err);
	if (r < 0)
		*err = why;
	return r;
}

int daemon_loop(struct daemon *d, struct base_err *err)
{
	int r;

	d->next_flush_ns = base_now_ns() + (uint64_t)d->opt.flush_s * SECOND_NS;
	r = driver_is_recorded(d->driver) ? run_recorded(d, err) : run_live(d, err);
	service_stopping(&d->service);
	keep_labels(d, true);
	/* Samples received before a failure are still good. */
	if (r < 0) {
		struct base_err late = { 0 };

		if (finish(d, &late) < 0)
			base_log(BASE_LOG_ERROR, "%s", late.text);
		return r;
	}
	return finish(d, err);
}
