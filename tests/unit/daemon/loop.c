/* SPDX-License-Identifier: BSD-2-Clause */
/* When the loop wakes, what it does then, and what ends it: beside a source that only plays one. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "source.h"
#include "fast_clock.h"
#include "stand_ins.h"
#include "trace.h"
#include "watch.h"

#define SECOND 1000000000ull

static char folder[64], command[128];
static struct trial t;
static struct daemon d;

/* ---- timers that are faster (linked with --wrap) --------------------------------------------- */

static unsigned int nr_heartbeats;
static bool no_seconds;	  /* the timer of a second does not go */
static uint64_t timer_ns; /* its interval, and that of looks, as they were set last */
static uint64_t look_ns;

int __real_timerfd_settime(int fd, int flags, const struct itimerspec *to, struct itimerspec *old);
int __wrap_timerfd_settime(int fd, int flags, const struct itimerspec *to, struct itimerspec *old);
void __wrap_profdb_lock_heartbeat(struct profdb *db);

/* A hundred times as fast. The first timer that is made is that of seconds. */
int __wrap_timerfd_settime(int fd, int flags, const struct itimerspec *to, struct itimerspec *old)
{
	static int seconds_fd;
	uint64_t ns = (uint64_t)to->it_interval.tv_sec * SECOND + (uint64_t)to->it_interval.tv_nsec;
	struct itimerspec fast = { .it_interval.tv_nsec = (long)(ns / 100) };

	(void)flags;
	if (!timer_ns)
		seconds_fd = fd;
	*(fd == seconds_fd ? &timer_ns : &look_ns) = ns;
	if (fd == seconds_fd && no_seconds)
		fast.it_interval.tv_nsec = 0;
	fast.it_value = fast.it_interval;
	return __real_timerfd_settime(fd, 0, &fast, old);
}

void __wrap_profdb_lock_heartbeat(struct profdb *db)
{
	(void)db;
	nr_heartbeats++;
}

/* ---- the source ------------------------------------------------------------------------------ */

static struct {
	struct driver base;
	int fd;		   /* what the loop is to watch */
	char calls[1024];  /* what was called: Look, Drain, drain All, Wake at exec, Begin, Stop */
	const char *looks; /* what looks find: Quiet, News, the Last news, Urgent; then quiet */
	int result, result_all; /* of drains, and of whole ones */
	unsigned int last;	/* with so many drains a signal ends it */
	unsigned int more;	/* of a replay: so many drains leave something behind them */
	void (*on_drain)(const struct driver_sink *sink);
} source;

static void note(char what)
{
	size_t len = strlen(source.calls);

	assert_true(len + 1 < sizeof(source.calls));
	source.calls[len] = what;
}

static unsigned int nr_calls(char what)
{
	unsigned int nr = 0;

	for (const char *c = source.calls; *c; c++)
		nr += *c == what;
	return nr;
}

static int source_drain(struct driver *s, bool all, const struct driver_sink *sink,
			struct base_err *err)
{
	int r;

	(void)s;
	note(all ? 'A' : 'D');
	if (source.on_drain)
		source.on_drain(sink);
	if (!all && nr_calls('D') == source.last)
		kill(getpid(), SIGTERM);
	r = all ? source.result_all : source.result;
	return r < 0 ? base_fail_errno(err, r, "cannot go on") : nr_calls('D') < source.more;
}

static int source_poll_fd(const struct driver *s)
{
	(void)s;
	return source.fd;
}

static int source_look(struct driver *s)
{
	char found = *source.looks;

	(void)s;
	note('L');
	source.looks += found != '\0';
	if (found == 'L')
		kill(getpid(), SIGTERM);
	return found == 'U'		      ? DRIVER_URGENT
	       : found == 'N' || found == 'L' ? DRIVER_NEWS
					      : DRIVER_QUIET;
}

static int source_wake(struct driver *s)
{
	(void)s;
	note('W');
	return 0;
}

static int source_start(struct driver *s, struct base_err *err)
{
	(void)s;
	(void)err;
	note('B');
	return 0;
}

static void source_stop(struct driver *s)
{
	(void)s;
	note('S');
	source.more = 0;
}

static const struct driver_ops ops = {
	.start = source_start,
	.drain = source_drain,
	.poll_fd = source_poll_fd,
	.look = source_look,
	.wake_at_exec = source_wake,
	.stop = source_stop,
};

static void count_one(const struct driver_sink *sink)
{
	const struct driver_count c = { .pid = 1, .mode = DRIVER_OTHER, .count = 1 };

	source.base.stats.received[0]++;
	assert_int_equal(sink->count(sink->ctx, &c), 0);
}

/* ---- a daemon -------------------------------------------------------------------------------- */

static void open_core(void)
{
	struct base_err err = { 0 };

	snprintf(command, sizeof(command), "%s/db", folder);
	trial_daemon(&t, &d, command);
	d.opt.flush_s = 60;
	d.next_flush_ns = UINT64_MAX;
	d.driver = &source.base;
	d.follow.live = d.attribute.live = true;
	snprintf(d.run_dir, sizeof(d.run_dir), "%s", folder);
	assert_int_equal(control_open(d.run_dir, daemon_command, &d, &d.control, &err), 0);
}

static int setup(void **state)
{
	const struct rlimit all = { .rlim_cur = RLIM_INFINITY, .rlim_max = RLIM_INFINITY };

	(void)state;
	setrlimit(RLIMIT_FSIZE, &all);
	strcpy(folder, "/tmp/dcpi-loop-XXXXXX");
	assert_non_null(mkdtemp(folder));
	memset(&source, 0, sizeof(source));
	source.base.ops = &ops;
	source.base.utc = -1;
	source.base.nr_events = 2;
	source.looks = "";
	source.fd = eventfd(0, EFD_CLOEXEC);
	ahead_ns = timer_ns = look_ns = 0;
	stands = false;
	nr_heartbeats = 0;
	no_seconds = false;
	open_core();
	source.base.events[0] = d.store.events[0];
	source.base.events[1] = d.store.events[1];
	base_log_init(NULL, BASE_LOG_ERROR, BASE_LOG_BARE);
	alarm(20);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	control_close(d.control);
	trial_daemon_close(&t, &d);
	close(source.fd);
	snprintf(command, sizeof(command), "rm -r %s", folder);
	return system(command);
}

static int loop(void)
{
	struct base_err err = { 0 };
	int r = daemon_loop(&d, &err);

	assert_int_equal(r, err.code);
	return r;
}

static void turn(void)
{
	struct base_err err = { 0 };

	assert_int_equal(daemon_turn(&d, &err), 0);
}

static int ask(const char *request)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/control", folder);
	assert_int_equal(connect(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_int_equal(send(fd, request, strlen(request), 0), strlen(request));
	return fd;
}

/* A flush that is asked for is all of its turn; the one that is due is the next one's. */
static void one_flush_a_turn(void **state)
{
	int fd = ask("{\"cmd\":\"flush\"}\n");

	(void)state;
	d.next_flush_ns = 0;
	turn();
	assert_int_equal(d.nr_flushes, 1);
	turn();
	assert_int_equal(d.nr_flushes, 2);
	close(fd);
}

/* ---- what wakes it, and what ends it --------------------------------------------------------- */

static void a_signal_ends_it(void **state)
{
	(void)state;
	source.last = 3;
	source.on_drain = count_one;
	assert_int_equal(loop(), 0);
	assert_true(d.finished);
	/* Sampling stops before the last drain. */
	assert_string_equal(strchr(source.calls, 'S'), "SA");
	assert_int_equal(d.store.account.stored, 4);
	assert_int_equal(daemon_unwritten(&d, false), 0);
	assert_true(nr_heartbeats > 3);
	assert_int_equal(stand_ins.nr_kernel_looks, 4);
}

static int asked_fd;

/* A drain that goes on until a client has its answer, which it waits for in vain in the loop. */
static void a_drain_is_stuck(const struct driver_sink *sink)
{
	char text[16384] = "";
	struct pollfd wait = { .events = POLLIN };

	count_one(sink);
	if (asked_fd >= 0)
		return;
	wait.fd = asked_fd = ask("{\"cmd\":\"status\"}\n");
	assert_int_equal(poll(&wait, 1, -1), 1);
	assert_true(recv(asked_fd, text, sizeof(text) - 1, 0) > 0);
	/* As of the turn's beginning: its sums hold. */
	assert_non_null(strstr(text, "\"as_of\":"));
	assert_non_null(strstr(text, "\"received\":0,"));
	assert_non_null(strstr(text, "\"balanced\":true"));
}

static void the_status_is_told_meanwhile(void **state)
{
	(void)state;
	asked_fd = -1;
	source.last = 3;
	source.on_drain = a_drain_is_stuck;
	assert_int_equal(loop(), 0);
	close(asked_fd);
}

static void a_client_ends_it(void **state)
{
	int fd = ask("{\"cmd\":\"quit\"}\n");
	char text[256] = "";

	(void)state;
	/* Nothing but the socket wakes it; and that a flush is due means nothing behind the end. */
	no_seconds = true;
	d.opt.flush_s = 0;
	assert_int_equal(loop(), 0);
	assert_true(d.finished);
	assert_int_equal(d.flush_error.code, 0);
	control_close(d.control);
	d.control = NULL;
	assert_true(recv(fd, text, sizeof(text) - 1, 0) > 0);
	assert_non_null(strstr(text, "\"ok\":true"));
	close(fd);
}

static void the_last_flush_fails(const struct driver_sink *sink)
{
	struct rlimit l = { .rlim_cur = RLIM_INFINITY, .rlim_max = RLIM_INFINITY };

	count_one(sink);
	/* Between the flush that quit begins with and the one that it ends with. */
	if (nr_calls('A') == 2 && !strchr(source.calls, 'B'))
		l.rlim_cur = 0;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &l), 0);
	if (nr_calls('A') == 2 && strchr(source.calls, 'B'))
		source.last = nr_calls('D');
}

/* Whoever is told that it goes on, for he cannot have it end, has a daemon that samples. */
static void an_end_that_fails(void **state)
{
	int fd = ask("{\"cmd\":\"quit\"}\n");
	char text[512] = "", *begun;

	(void)state;
	signal(SIGXFSZ, SIG_IGN);
	source.on_drain = the_last_flush_fails;
	assert_int_equal(loop(), 0);
	assert_true(recv(fd, text, sizeof(text) - 1, 0) > 0);
	assert_non_null(strstr(text, "\"ok\":false"));
	assert_non_null(strstr(text, "goes on"));
	/* It begins again and drains, how often is the clock's affair, and ends. */
	begun = strstr(source.calls, "ASAB");
	assert_non_null(begun);
	assert_non_null(strchr(begun, 'D'));
	assert_string_equal(strrchr(begun, 'S'), "SA");
	assert_int_equal(d.store.account.stored, nr_calls('D') + nr_calls('A'));
	assert_int_equal(daemon_unwritten(&d, false), 0);
	close(fd);
}

static void the_source_wakes_it(void **state)
{
	(void)state;
	no_seconds = true;
	source.last = 2;
	source.looks = "QQQQQQ";
	assert_int_equal(eventfd_write(source.fd, 1), 0);
	assert_int_equal(loop(), 0);
}

static void a_doorbell_wakes_it(void **state)
{
	(void)state;
	no_seconds = true;
	source.last = 1;
	stand_ins.bell = source.fd;
	source.fd = -1;
	assert_int_equal(eventfd_write(stand_ins.bell, 1), 0);
	assert_int_equal(loop(), 0);
	source.fd = stand_ins.bell;
}

/* A client waits for what was not all read yet. */
static void catching_up_it_does_not_sleep(void **state)
{
	(void)state;
	no_seconds = true;
	source.last = 3;
	stand_ins.catching_up = true;
	assert_int_equal(loop(), 0);
}

/* What a flush finds broken ends it, too. */
static void a_failure_for_a_client_ends_it(void **state)
{
	int fd = ask("{\"cmd\":\"flush\"}\n");

	(void)state;
	source.result_all = -EIO;
	assert_int_equal(loop(), -EIO);
	close(fd);
}

static void has_an_epoch_of(int64_t before)
{
	int64_t began = profdb_epoch_begin_time(d.epoch);

	assert_true(began / 60 * 60 >= before / 60 * 60 && began <= (int64_t)time(NULL));
}

/* Long before the next flush; what came before the hour is in the epoch before. */
static void an_epoch_begins_by_itself(void **state)
{
	int64_t before = (int64_t)time(NULL);
	char first[PROFDB_EPOCH_LEN + 1], second[PROFDB_EPOCH_LEN + 1];

	(void)state;
	strcpy(first, d.epoch);
	source.on_drain = count_one;
	turn();
	assert_string_equal(d.epoch, first);
	d.opt.epoch_every_s = 7 * 86400;
	turn();
	assert_string_not_equal(d.epoch, first);
	has_an_epoch_of(before);
	assert_int_equal(d.nr_before, 3);
	assert_int_equal(daemon_unwritten(&d, false), 0);
	strcpy(second, d.epoch);
	turn();
	turn();
	assert_string_equal(d.epoch, second);
}

/* A recorded stream has its own time. */
static void a_replay_has_one_epoch(void **state)
{
	char first[PROFDB_EPOCH_LEN + 1];

	(void)state;
	strcpy(first, d.epoch);
	d.follow.live = d.attribute.live = false;
	d.opt.epoch_every_s = 60;
	turn();
	assert_string_equal(d.epoch, first);
}

/* On a full disk it is tried again with the next flush, and the epoch goes on. */
static void an_epoch_that_cannot_begin(void **state)
{
	const struct rlimit none = { .rlim_cur = 0, .rlim_max = RLIM_INFINITY };
	const struct rlimit all = { .rlim_cur = RLIM_INFINITY, .rlim_max = RLIM_INFINITY };
	char first[PROFDB_EPOCH_LEN + 1];

	(void)state;
	signal(SIGXFSZ, SIG_IGN);
	strcpy(first, d.epoch);
	source.on_drain = count_one;
	d.opt.epoch_every_s = 7 * 86400;
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
	turn();
	assert_int_equal(nr_calls('A'), 1);
	turn();
	assert_int_equal(nr_calls('A'), 1);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &all), 0);
	turn();
	assert_string_equal(d.epoch, first);
	ahead_ns += 61 * SECOND;
	turn();
	assert_string_not_equal(d.epoch, first);
	assert_int_equal(daemon_unwritten(&d, false), 0);
}

/* Its end is all that ends it; a flush on the way does not wait for the rest. */
static void a_replay(void **state)
{
	(void)state;
	source.base.utc = 1700000000;
	source.on_drain = count_one;
	source.more = 2;
	d.follow.live = d.attribute.live = false;
	d.opt.flush_s = 0;
	assert_int_equal(loop(), 0);
	assert_string_equal(source.calls, "DDSA");
	assert_int_equal(d.nr_flushes, 2);
	assert_int_equal(d.store.account.stored, 3);
	assert_int_equal(daemon_unwritten(&d, false), 0);
}

static void count_half_a_second(const struct driver_sink *sink)
{
	ahead_ns += SECOND / 2;
	count_one(sink);
}

/* It goes on for two seconds. */
static void a_signal_ends_a_replay(void **state)
{
	(void)state;
	stands = true;
	source.base.utc = 1700000000;
	source.on_drain = count_half_a_second;
	source.more = 1000;
	source.last = 3;
	d.follow.live = d.attribute.live = false;
	d.stop_fd = daemon_stop_open();
	assert_true(d.stop_fd > 0);
	assert_int_equal(loop(), 0);
	assert_int_equal(nr_calls('D'), 7);
	assert_int_equal(nr_calls('S'), 1);
	assert_true(d.finished);
	close(d.stop_fd);
	d.stop_fd = 0;
}

/* What came before is on disk all the same. */
static void a_failure_ends_it(void **state)
{
	(void)state;
	source.on_drain = count_one;
	source.result = -EIO;
	assert_int_equal(loop(), -EIO);
	assert_int_equal(nr_calls('A'), 0);
	assert_int_equal(nr_calls('S'), 1);
	assert_true(d.finished);
	assert_int_equal(d.store.account.stored, 1);
	assert_int_equal(daemon_unwritten(&d, false), 0);
}

/* ---- looks ----------------------------------------------------------------------------------- */

static void an_urgent_look_drains(void **state)
{
	(void)state;
	no_seconds = true;
	/* The first is asked whether it can look at all. */
	source.looks = "QQNQUU";
	source.last = 2;
	assert_int_equal(loop(), 0);
	assert_string_equal(source.calls, "LLLLLDLDSA");
	assert_int_equal(look_ns, SECOND / 4);
}

/* Four times nothing, and it rests until a program begins; one that began meanwhile is seen. */
static void quiet_looks_rest(void **state)
{
	char *to = source.calls;

	(void)state;
	source.looks = "QQQQQNQQQQQQQQL";
	assert_int_equal(loop(), 0);
	for (const char *c = source.calls; *c; c++)
		if (*c == 'L' || *c == 'W')
			*to++ = *c;
	*to = '\0';
	/* At rest it asks once behind each turn whether there is anything, and then looks again. */
	assert_string_equal(source.calls, "LLLLLWLLWLLLLLLLL");
	assert_int_equal(look_ns, SECOND / 4);
}

/* Traces look more often only while code is to be translated. */
static void looks_rest_beside_traces(void **state)
{
	const struct trace_config config = { .driver = &source.base };
	struct base_err err = { 0 };

	assert_int_equal(trace_open(&config, &d.traces, &err), 0);
	quiet_looks_rest(state);
	trace_close(d.traces);
	d.traces = NULL;
}

static void looks_keep_their_pace(void **state)
{
	char news[1000];

	(void)state;
	memset(news, 'N', sizeof(news) - 1);
	news[sizeof(news) - 1] = '\0';
	source.looks = news;
	source.last = 3;
	assert_int_equal(loop(), 0);
	/* Four to a second. */
	assert_true(nr_calls('L') < 100);
}

/* Where JITs are, their registries are read more often. */
static void come_and_go(const struct driver_sink *sink)
{
	(void)sink;
	if (nr_calls('D') == 2) {
		assert_int_equal(timer_ns, SECOND);
		stand_ins.nr_clients = 1;
	} else if (nr_calls('D') == 4) {
		assert_int_equal(timer_ns, SECOND / 4);
		stand_ins.nr_clients = 0;
	}
}

static void clients_hurry_it(void **state)
{
	(void)state;
	source.last = 6;
	source.on_drain = come_and_go;
	assert_int_equal(loop(), 0);
	assert_int_equal(timer_ns, SECOND);
}

/* ---- viewers --------------------------------------------------------------------------------- */

static void note_haste(const struct driver_sink *sink)
{
	(void)sink;
	stand_ins.was_hasty = stand_ins.hasty;
}

/* Users have no more of the loop than in a turn; new viewers, who may be turned away, share drains.
 */
static void viewers_are_bounded(void **state)
{
	struct control_peer peer = { .pid = 1, .uid = 1000, .sock = 5 };
	struct base_buf reply = { 0 };
	uint64_t drained_ns;

	(void)state;
	stands = true;
	d.store.watch = watch_new();
	source.on_drain = note_haste;
	ahead_ns += SECOND;
	stand_ins.was_hasty = false;
	assert_int_equal(daemon_watch(&d, &peer, &reply), 0);
	assert_true(stand_ins.was_hasty);
	assert_false(stand_ins.hasty);
	drained_ns = d.watched_ns;
	assert_int_not_equal(drained_ns, 0);
	ahead_ns += SECOND / 5;
	peer.sock = 6;
	assert_int_equal(daemon_watch(&d, &peer, &reply), 0);
	assert_int_equal(d.watched_ns, drained_ns);
	base_buf_release(&reply);
	watch_free(d.store.watch);
	d.store.watch = NULL;
}

/* ---- one turn -------------------------------------------------------------------------------- */

static void flushes_each_minute(void **state)
{
	(void)state;
	stands = true;
	d.next_flush_ns = base_now_ns() + 60 * SECOND;
	source.on_drain = count_one;
	turn();
	ahead_ns += 59 * SECOND;
	turn();
	assert_int_equal(d.nr_flushes, 0);
	ahead_ns += 2 * SECOND;
	turn();
	assert_int_equal(d.nr_flushes, 1);
	assert_int_equal(daemon_unwritten(&d, false), 0);
	/* A crowd that has ended does not hold up sampling; who asks for a flush gets all. */
	assert_true(stand_ins.was_hasty);
	assert_false(stand_ins.hasty);
	turn();
	ahead_ns += 59 * SECOND;
	turn();
	assert_int_equal(d.nr_flushes, 1);
	ahead_ns += 2 * SECOND;
	turn();
	assert_int_equal(d.nr_flushes, 2);
}

/* Its end was lost: it goes with the second flush that does not find it. */
static void sweeps_who_is_gone(void **state)
{
	(void)state;
	d.next_flush_ns = 0;
	assert_non_null(processes_add(d.processes, INT32_MAX));
	assert_non_null(processes_add(d.processes, getpid()));
	for (int i = 0; i < 2; i++) {
		assert_int_equal(processes_nr(d.processes), 2);
		ahead_ns += 61 * SECOND;
		turn();
	}
	turn();
	assert_int_equal(processes_nr(d.processes), 1);
}

static void clients_are_served(void **state)
{
	(void)state;
	turn();
	assert_int_equal(nr_calls('A'), 0);
	assert_int_equal(stand_ins.nr_writes, 0);
	assert_int_equal(stand_ins.nr_merges, 0);
	assert_int_equal(stand_ins.nr_ended, 1);
	assert_int_equal(nr_heartbeats, 1);
	stand_ins.wants_merge = true;
	turn();
	assert_int_equal(stand_ins.nr_merges, 1);
	stand_ins.wants_flush = true;
	turn();
	/* After everything up to now was read, with its ranges. */
	assert_string_equal(source.calls, "DDDA");
	assert_int_equal(stand_ins.nr_ranges, 1);
	assert_int_equal(stand_ins.nr_writes, 1);
	assert_true(stand_ins.was_hasty);
	assert_false(stand_ins.hasty);
}

static unsigned int nr_said(const char *what)
{
	unsigned int nr = 0;
	const char *line;

	for (size_t i = 0; (line = base_log_kept(i)); i++)
		nr += strstr(line, what) != NULL;
	return nr;
}

/* Who asks is told each time that his image could not be written, the log once. */
static void failures_are_said_once(void **state)
{
	FILE *nowhere = fopen("/dev/null", "w");

	(void)state;
	base_log_init(nowhere, BASE_LOG_WARN, BASE_LOG_BARE);
	base_log_keep();
	stand_ins.wants_flush = true;
	stand_ins.write_result = -ENOSPC;
	turn();
	turn();
	assert_int_equal(nr_said("cannot write 'x.dyn'"), 1);
	stand_ins.write_result = 0;
	turn();
	stand_ins.write_result = -ENOSPC;
	turn();
	assert_int_equal(nr_said("cannot write 'x.dyn'"), 2);
	/* So is a record that lacks something from now on. */
	d.opt.record = "stream";
	d.follow.record_error = -ENOSPC;
	turn();
	turn();
	assert_int_equal(nr_said("cannot write 'stream'"), 1);
	base_log_init(NULL, BASE_LOG_ERROR, BASE_LOG_BARE);
	fclose(nowhere);
}

/* Owned ranges are copied whole: each two seconds, while code in them runs. */
static void reads_ranges_while_code_runs(void **state)
{
	(void)state;
	stands = true;
	ahead_ns = 100 * SECOND;
	turn();
	assert_int_equal(stand_ins.nr_ranges, 0);
	d.attribute.dynamic_ns = base_now_ns();
	turn();
	turn();
	assert_int_equal(stand_ins.nr_ranges, 1);
	ahead_ns += 3 * SECOND;
	turn();
	assert_int_equal(stand_ins.nr_ranges, 2);
	ahead_ns += 8 * SECOND;
	turn();
	assert_int_equal(stand_ins.nr_ranges, 2);
	/* Samples come as late as tables are drained. */
	d.opt.drain_ms = 5000;
	turn();
	assert_int_equal(stand_ins.nr_ranges, 3);
}

/* ---- load events that were lost -------------------------------------------------------------- */

static void lose_and_count(const struct driver_sink *sink)
{
	const struct driver_load l = { .kind = DRIVER_LOAD_LOST,
				       .len = source.base.stats.lost_load };
	const struct driver_count c = { .first_ns = base_now_ns(),
					.time_ns = base_now_ns(),
					.pid = getpid(),
					.mode = DRIVER_USER,
					.addr = (uintptr_t)lose_and_count,
					.count = 1 };

	assert_int_equal(sink->load(sink->ctx, &l), 0);
	source.base.stats.received[0]++;
	assert_int_equal(sink->count(sink->ctx, &c), 0);
}

static uint64_t drained(bool all)
{
	struct base_err err = { 0 };

	assert_int_equal(daemon_drain(&d, all, &err), 0);
	return d.store.account.pending;
}

/* Counts wait for what /proc says, which is read at most each five seconds, but for a flush. */
static void losses_are_mended(void **state)
{
	(void)state;
	ahead_ns = 100 * SECOND;
	source.on_drain = lose_and_count;
	source.base.stats.lost_load = 7;
	drained(false);
	assert_int_equal(d.follow.lost_read, 7);
	assert_false(d.follow.events_lost);
	assert_non_null(processes_find(d.processes, getppid()));
	assert_int_equal(drained(true), 0);
	source.base.stats.lost_load = 8;
	assert_int_equal(drained(false), 1);
	assert_int_equal(drained(false), 2);
	assert_true(d.follow.events_lost);
	ahead_ns += 6 * SECOND;
	drained(false);
	assert_int_equal(d.follow.lost_read, 8);
	source.base.stats.lost_load = 9;
	assert_int_equal(drained(true), 0);
	assert_int_equal(d.follow.lost_read, 9);
}

/* dcpirun's own programs are all that concerns it. */
static void of_ones_own_alone(void **state)
{
	(void)state;
	d.opt.own = true;
	source.base.stats.lost_load = 7;
	assert_non_null(processes_add(d.processes, getpid()));
	drained(true);
	assert_int_equal(d.follow.lost_read, 7);
	assert_null(processes_find(d.processes, getppid()));
	assert_true(processes_find(d.processes, getpid())->known_ns > 0);
}

/* ---- labels, for the next daemon ------------------------------------------------------------- */

static bool is_kept(void)
{
	snprintf(command, sizeof(command), "%s/labels", folder);
	return access(command, F_OK) == 0;
}

static void labels_are_kept(void **state)
{
	struct process *p = processes_add(d.processes, getpid());

	(void)state;
	stands = true;
	p->start_time_ns = 1;
	p->label = labels_get(&d.follow.labels, "mine");
	turn();
	assert_false(is_kept());
	d.follow.labels.changed = true;
	turn();
	assert_true(is_kept());
	/* Not at every turn while many are given. */
	assert_int_equal(unlink(command), 0);
	base_buf_release(&d.follow.labels.written);
	d.follow.labels.changed = true;
	turn();
	assert_false(is_kept());
	ahead_ns += 2 * SECOND;
	turn();
	assert_true(is_kept());
	/* At each flush, and at the end, whatever has changed. */
	assert_int_equal(unlink(command), 0);
	base_buf_release(&d.follow.labels.written);
	d.next_flush_ns = 0;
	turn();
	assert_true(is_kept());
	assert_int_equal(unlink(command), 0);
	base_buf_release(&d.follow.labels.written);
	stands = false;
	source.last = nr_calls('D') + 1;
	assert_int_equal(loop(), 0);
	assert_true(is_kept());
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(one_flush_a_turn),
		TEST(a_signal_ends_it),
		TEST(the_status_is_told_meanwhile),
		TEST(a_client_ends_it),
		TEST(an_end_that_fails),
		TEST(the_source_wakes_it),
		TEST(a_doorbell_wakes_it),
		TEST(catching_up_it_does_not_sleep),
		TEST(a_failure_ends_it),
		TEST(a_failure_for_a_client_ends_it),
		TEST(an_epoch_begins_by_itself),
		TEST(a_replay_has_one_epoch),
		TEST(an_epoch_that_cannot_begin),
		TEST(a_replay),
		TEST(a_signal_ends_a_replay),
		TEST(an_urgent_look_drains),
		TEST(quiet_looks_rest),
		TEST(looks_rest_beside_traces),
		TEST(looks_keep_their_pace),
		TEST(clients_hurry_it),
		TEST(viewers_are_bounded),
		TEST(flushes_each_minute),
		TEST(sweeps_who_is_gone),
		TEST(clients_are_served),
		TEST(failures_are_said_once),
		TEST(reads_ranges_while_code_runs),
		TEST(losses_are_mended),
		TEST(of_ones_own_alone),
		TEST(labels_are_kept),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
