/* SPDX-License-Identifier: BSD-2-Clause */
/* dcpid: sample the whole system into a database. Options, and coming up in the background. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/capability.h>
#include <malloc.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "check.h"
#include "config.h"
#include "core.h"
#include "every.h"
#include "launch.h"

enum {
	TRACE_DEFAULT = -1, /* nothing was said */
	/* See docs/decisions/instruction-traces.md for what it costs. */
	TRACE_EVERY = 32,
	TRACE_EVERY_VALUES = 10, /* where values are wanted */
};

static struct options opt = {
	.flush_s = 60,
	.trace_every = TRACE_DEFAULT,
	.callpath_every = -1,
};
static const char *config;
static struct json_object *config_root; /* what options of the file point into */
static uint64_t given;			/* on the command line, by their places in the table */

/* dcpid(8) promises traces on this machine alone. */
#ifdef __x86_64__
enum { TRACES_BY_DEFAULT = 1 };
#else
enum { TRACES_BY_DEFAULT = 0 };
#endif

static bool gc;
static const char *gc_join;
static int64_t gc_older;
static struct gc_config gc_config;

/* clang-format off */
static const struct base_opt options[] = {
	{ "config", BASE_OPT_STRING, &config, "FILE",
	  "Take options from FILE (dcpid.json(5)); those of the command line hold before them.", 0,
	  0 },
	{ "database", BASE_OPT_STRING, &opt.database, "DIR",
	  "The same as the operand DATABASE, for FILE.", 0, 0 },
	{ "event", BASE_OPT_LIST, &opt.events, "EVENT",
	  "What to sample: NAME[:MODIFIERS][:PERIOD], as 'cycles', 'cpu-clock' or "
	  "'cycles:u:100000'; several by repeating the option or joined by '+' are counted at the "
	  "same time (default: hardware cycles where there are any; else the scheduler's tick, or "
	  "cpu-clock where -rate is given or the source is perf).", 0, 0 },
	{ "t", BASE_OPT_LIST, &opt.events, "EVENT", "The same.", 0, 0 },
	{ "slot", BASE_OPT_LIST, &opt.slots, "EVENT[+EVENT ...]",
	  "As -event, but the events of each -slot have their turn of a second, one -slot after the "
	  "other: for more events than the CPU has counters. An event may be in several.", 0, 0 },
	{ "list-events", BASE_OPT_FLAG, &opt.list_events, NULL,
	  "Try the events and print those that this machine has, then what it refused, and why. "
	  "Takes no DATABASE; with -rate they are tried at that one.", 0, 0 },
	{ "check", BASE_OPT_FLAG, &opt.check, NULL,
	  "Print what this machine offers for sampling, what lacks and how to get it, and what a "
	  "sample costs here, measured. Takes no DATABASE.", 0, 0 },
	{ "rate", BASE_OPT_INT, &opt.rate, "HZ",
	  "Samples per second and CPU (default: 1000, or what the kernel allows where that is less).",
	  1, 100000 },
	{ "fixed_period", BASE_OPT_FLAG, &opt.fixed_period, NULL,
	  "Do not draw the periods anew each second. A program whose phases repeat with the period is "
	  "then seen in one of them (to show what that does).", 0, 0 },
	{ "flush", BASE_OPT_INT, &opt.flush_s, "SECONDS",
	  "Longest time that samples stay in memory alone (default: 60).", 1, 86400 },
	{ "source", BASE_OPT_STRING, &opt.source, "NAME",
	  "Where samples come from: 'bpf' (counts made in the kernel) or 'perf' (each sample by itself; "
	  "default: bpf, and where that is refused perf).", 0, 0 },
	{ "table", BASE_OPT_INT, &opt.table_len, "ENTRIES",
	  "Keys that a CPU can count at once in the kernel, a power of two (default: 16384).", 4,
	  1048576 },
	{ "drain", BASE_OPT_INT, &opt.drain_ms, "MS",
	  "Longest time that counts stay in the kernel (default: 5000).", 1, 3600000 },
	{ "ring", BASE_OPT_INT, &opt.ring_pages, "PAGES",
	  "Size of each CPU's ring of records, a power of two (default: 128).", 1, 65536 },
	{ "vwindows", BASE_OPT_INT, &opt.trace_every, "N",
	  "Follow the next 64 instructions of one user sample in N: the ways that programs take go into "
	  "the profiles, for dcpicalc and others. 0: of none. Needs source bpf, on Linux 6.1.36 or 6.4 "
	  "or later (default there: as many as 32 gives at -rate 1000; elsewhere 0).", 0, 1000000 },
	{ "vprof", BASE_OPT_FLAG, &opt.values, NULL,
	  "Keep the values that instructions make, the most frequent ones of each, for 'dcpilist "
	  "-vprof' and others. Values are secrets: their files are root's to read, and the user's "
	  "whose code ran alone. Implies -vwindows 10.", 0, 0 },
	{ "vtrace", BASE_OPT_LIST, &opt.value_profilers, "FILE",
	  "Have a value profiler of your own, a shared object by its absolute path, choose what is kept "
	  "(dcpivprofiler(5)). Several by repeating the option. Implies -vwindows 10.", 0, 0 },
	{ "vreplay", BASE_OPT_FLAG, &opt.values_replay, NULL,
	  "Keep where loads met stores that the processor had not completed. Implies -vwindows 10.",
	  0, 0 },
	{ "vcontext", BASE_OPT_FLAG, &opt.value_contexts, NULL,
	  "With -vprof, -vtrace, -vreplay: keep values apart by where their procedure was called from, "
	  "and its caller.", 0, 0 },
	{ "vstep", BASE_OPT_INT, &opt.step_pid, "PID",
	  "With -vprof, -vtrace, -vreplay: besides, run 64 instructions of that process again and "
	  "again step by step, for exact values, of floating point too. Its threads stand for some "
	  "ms each time, together at most a twentieth of the time. x86-64 only.", 1, 4194304 },
	{ "vkernel", BASE_OPT_FLAG, &opt.trace_kernel, NULL,
	  "Follow instructions of samples in the kernel too.", 0, 0 },
	{ "callpaths", BASE_OPT_INT, &opt.callpath_every, "N",
	  "Keep of one sample in N who called the sampled code, up to the thread's first routine, for "
	  "dcpicallers and others; 0: of none. Needs source bpf, on Linux 6.1.36 or 6.4 "
	  "or later (default there: as many as 40 gives at -rate 1000; elsewhere 0).", 0, 1000000 },
	{ "wait", BASE_OPT_FLAG, &opt.waits, NULL,
	  "Measure how long threads wait, for what and where, and how long they run: the events 'wait' "
	  "and 'run', in nanoseconds. Every switch of a thread is seen. Needs call paths.", 0, 0 },
	{ "platform", BASE_OPT_STRING, &opt.platform, "NAME",
	  "Folder of this machine within an epoch (default: the host's name).", 0, 0 },
	{ "format", BASE_OPT_STRING, &opt.format, "VERSION",
	  "Write profile files in version 1, or in the original's 0.07 or 0.06: 32-bit counts, a file "
	  "for each event (default: 1). See dcpiformat(5).", 0, 0 },
	{ "epoch", BASE_OPT_FLAG, &opt.new_epoch, NULL,
	  "Begin a new epoch, even if a daemon that was killed left one open (default: that one goes "
	  "on).", 0, 0 },
	{ "epoch_every", BASE_OPT_STRING, &opt.epoch_every, "1h|30m|…|off",
	  "Begin a new epoch at each full hour of UTC, or each 30 minutes, …, by itself (default: off; "
	  "the packaged service has 1h).", 0, 0 },
	{ "run", BASE_OPT_STRING, &opt.run_dir, "DIR",
	  "Folder of the sockets (default: $DCPI_RUN or " WIRE_RUN_DIR ").", 0, 0 },
	{ "queue", BASE_OPT_STRING, &opt.queue, "NAME",
	  "Message queue on which JIT programs ring (default: $DCPI_QUEUE or " WIRE_QUEUE_NAME ").",
	  0, 0 },
	{ "b", BASE_OPT_FLAG, &opt.no_scan, NULL,
	  "Do not read /proc for all that runs already; each program is looked up when its first "
	  "sample comes.", 0, 0 },
	{ "bypid", BASE_OPT_LIST, &opt.bypid, "IMAGE",
	  "Keep the processes of an executable (path or base name) or a facility apart: each has a "
	  "profile of its own, which 'dcpiprof -pids' shows. Several by repeating the option.",
	  0, 0 },
	{ "exclusions", BASE_OPT_STRING, &opt.exclusions, "FILE",
	  "Do not store the samples of the images and processes that FILE names "
	  "(dcpiexclusions(5); default: 'exclusions' in the folder of the -config file, where there "
	  "is one).", 0, 0 },
	{ "replay", BASE_OPT_STRING, &opt.replay, "FILE",
	  "Take samples and load events from a recorded stream, or from a file of perf's "
	  "(perf.data), and end with it; '-' is standard input. Needs no rights.", 0, 0 },
	{ "record", BASE_OPT_STRING, &opt.record, "FILE",
	  "Write what is received into FILE too, for -replay.", 0, 0 },
	{ "log", BASE_OPT_STRING, &opt.log, "FILE",
	  "Append messages to FILE, with the time (default: standard error; in the background "
	  "'dcpid.log' in the -run folder). It stays open: what rotates logs copies and truncates it.",
	  0, 0 },
	{ "unknown", BASE_OPT_FLAG, &opt.unknown, NULL,
	  "Log each user sample that is in no image, and each trace, with its process and address.", 0, 0 },
	{ "keep_all", BASE_OPT_FLAG, &opt.keep_all, NULL,
	  "Keep all routines of which programs tell by dbgdyn_register in their pseudo-images; without "
	  "it those that ended without a sample are dropped.", 0, 0 },
	{ "gc", BASE_OPT_FLAG, &gc, NULL,
	  "Sample nothing: remove from DATABASE the pseudo-images, files of kernels and costs of blocks "
	  "that no epoch in it refers to any more, print which, and how many bytes. Beside a running "
	  "daemon too.", 0, 0 },
	{ "old_epochs", BASE_OPT_FLAG, &gc_config.old, NULL,
	  "With -gc: first remove the epochs that are more than 7 days old and not among the 3 newest, "
	  "so that their pseudo-images go too.", 0, 0 },
	{ "gc_size", BASE_OPT_INT, &opt.gc_size_mib, "MIB",
	  "With -gc or -gc_daily: remove finished epochs, the oldest first, with what only they refer to, "
	  "until DATABASE takes no more than that.", 1, 1 << 30 },
	{ "gc_daily", BASE_OPT_FLAG, &opt.gc_daily, NULL,
	  "Each day between 03:00 and 05:00, local time, do what -gc -old_epochs does (and -gc_size, where "
	  "it is given), as the original's -gc did.", 0, 0 },
	{ "join", BASE_OPT_STRING, &gc_join, "day|week|month",
	  "With -gc: make of the finished epochs of each day, week or month one, with all their samples; "
	  "of those that are older than -older says.", 0, 0 },
	{ "older", BASE_OPT_INT, &gc_older, "DAYS",
	  "With -join: epochs begun, and written last, more than DAYS ago (default: 7).", 1, 36500 },
	{ "n", BASE_OPT_FLAG, &gc_config.dry_run, NULL,
	  "With -gc: remove nothing, print what would be removed.", 0, 0 },
	{ "quota", BASE_OPT_INT, &opt.quota_mib, "MIB",
	  "Most that the pseudo-images in DATABASE may take (default: 10240). Over it those go that no "
	  "epoch refers to, the oldest first; where that does not suffice, new dynamic code is "
	  "refused. With -gc: remove only until no more than that is left.", 1, 1 << 30 },
	{ "process_quota", BASE_OPT_INT, &opt.process_quota_mib, "MIB",
	  "Most that is kept of one process's dynamic code, names and lines (default: as much as fits, "
	  "2048). Routines beyond that are counted as their facility's, without a name.", 1, 2048 },
	{ "quiet", BASE_OPT_FLAG, &opt.quiet, NULL, "Log warnings and errors only.", 0, 0 },
	{ "verbose", BASE_OPT_FLAG, &opt.verbose, NULL, "Log details.", 0, 0 },
	{ "background", BASE_OPT_FLAG, &opt.background, NULL,
	  "Go into the background, and return when sampling has begun and dcpictl is answered.", 0,
	  0 },
	{ "nodaemon", BASE_OPT_FLAG, &opt.nodaemon, NULL,
	  "Stay in the foreground (the default).", 0, 0 },
	{ 0 },
};

static const struct base_example examples[] = {
	{ "dcpid -background /var/lib/dcpi",
	  "Sample everything on this machine into a database." },
	{ "dcpid -event cycles -event imiss /var/lib/dcpi",
	  "Count two events at the same time." },
	{ "dcpid -slot cycles+retires -slot retires+bmiss /var/lib/dcpi",
	  "Two pairs of events, a second each in turn; one event is in both and never stops." },
	{ "dcpid -check", "See what can be sampled here, and at what cost." },
	{ "dcpid -gc -n /var/lib/dcpi",
	  "See which pseudo-images nothing refers to any more, since epochs were removed." },
	{ "dcpid -replay stream.txt -platform test /tmp/db",
	  "Make a database from a recorded stream, without any rights." },
	{ "dcpid -replay perf.data -platform laptop /tmp/db",
	  "Make one from what 'perf record' wrote, on this machine or another." },
	{ 0 },
};
/* clang-format on */

static const struct base_cmd command = {
	.name = "dcpid",
	.summary = "sample the whole system into a profile database",
	.operands = "DATABASE",
	.opts = options,
	.examples = examples,
	.min_operands = 0,
	.max_operands = 1,
	.given = &given,
};

static struct daemon daemon_state;

/* Where what is said goes until there is a file for it: standard error, or what that was. */
static FILE *terminal;

/*
 * To open a FIFO would wait for who reads it; to write into one may. The log names processes,
 * addresses and files of all users: a new one has the readers of a database.
 */
static FILE *open_append(const char *path)
{
	const int how = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
	int made = open(path, how | O_EXCL, 0640), fd = made < 0 ? open(path, how, 0640) : made;
	int flags = fd < 0 ? -1 : fcntl(fd, F_GETFL);
	FILE *to = NULL;

	if (flags >= 0 && fcntl(fd, F_SETFL, flags & ~O_NONBLOCK) == 0)
		to = fdopen(fd, "a");
	if (!to && fd >= 0)
		close(fd);
	/* One of a replay is its user's. */
	if (to && made >= 0 && !opt.replay)
		(void)daemon_restrict(made, 0640);
	return to;
}

static int open_log(const char *path, struct base_err *err)
{
	FILE *to = terminal ? terminal : stderr;

	if (path) {
		to = open_append(path);
		if (!to && errno == ENXIO)
			return base_fail(err, -ENXIO, "cannot open '%s': nobody reads the FIFO",
					 path);
		if (!to)
			return base_fail_errno(err, -errno, "cannot open '%s'", path);
	}
	base_log_init(to,
		      opt.verbose ? BASE_LOG_DEBUG
		      : opt.quiet ? BASE_LOG_WARN
				  : BASE_LOG_INFO,
		      path				  ? BASE_LOG_STAMPS
		      : service_on_journal(STDERR_FILENO) ? BASE_LOG_JOURNAL
							  : BASE_LOG_BARE);
	return 0;
}

/* The journal has the program's name already, and wants to know how bad it is. */
static void print_failure(const struct base_err *err)
{
	if (!service_on_journal(STDERR_FILENO)) {
		base_err_print(err, "dcpid", stderr);
		return;
	}
	base_log_init(stderr, BASE_LOG_INFO, BASE_LOG_JOURNAL);
	base_log(BASE_LOG_ERROR, "%s", err->text);
	if (err->hint[0])
		base_log(BASE_LOG_ERROR, "hint: %s", err->hint);
}

static int fail(const struct base_err *err)
{
	print_failure(err);
	return err->code == -DCPI_EUSAGE ? BASE_EXIT_USAGE : BASE_EXIT_FAILED;
}

/* As of nice(1). */
enum { PRIORITY = -10 };
#define PRIORITY_TEXT "-10"

/*
 * A daemon that root started by hand keeps the capabilities that it and its helpers need: to sample
 * and count, to read processes and their files, to see the kernel's addresses and the code of BPF
 * programs; to make helpers another user, and to end them; to write a database that is another
 * user's, and to give it to its readers; to lift limits. All others are dropped.
 */
static const int needed[] = {
	CAP_PERFMON,  CAP_BPF,		CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH, CAP_CHECKPOINT_RESTORE,
	CAP_SYSLOG,   CAP_SYS_ADMIN,	CAP_SETUID,	CAP_SETGID,	     CAP_SETPCAP,
	CAP_KILL,     CAP_DAC_OVERRIDE, CAP_FOWNER,	CAP_CHOWN,	     CAP_SYS_RESOURCE,
	CAP_IPC_LOCK,
};

static void raise_session(void)
{
	int fd = open("/proc/self/autogroup", O_WRONLY | O_CLOEXEC);

	/* The kernel may know nothing of sessions here, or leave this to others. */
	if (fd >= 0 && write(fd, PRIORITY_TEXT, strlen(PRIORITY_TEXT)) < 0)
		base_log(BASE_LOG_DEBUG, "the session has its priority still");
	if (fd >= 0)
		close(fd);
}

/*
 * Where very many programs want to run, a daemon that waits for a CPU among them loses load events
 * and answers late; it needs little CPU time. Helpers inherit the priority, as the loop waits for
 * them. A daemon that may not raise it works without.
 */
static void raise_priority(void)
{
	if (opt.replay || getpriority(PRIO_PROCESS, 0) < PRIORITY)
		return;
	(void)setpriority(PRIO_PROCESS, 0, PRIORITY);
	/* CPUs may be shared among sessions first (sched(7)). One that is not ours stays as it is.
	 */
	if (getsid(0) == getpid())
		raise_session();
}

static int drop_rights(struct base_err *err)
{
	uint64_t keep = 0;

	/* A service's user has what its unit gives it. */
	if (geteuid() != 0)
		return 0;
	for (size_t i = 0; i < sizeof(needed) / sizeof(*needed); i++)
		keep |= 1ull << needed[i];
	return base_rights_bound(keep, err);
}

static int begin(struct base_err *err)
{
	int r = open_log(opt.log, err);

	base_log_keep();
	daemon_state.opt = opt;
	raise_priority();
	if (r >= 0)
		r = drop_rights(err);
	if (r >= 0) {
		r = launch_open();
		if (r < 0)
			base_fail_errno(err, r, "cannot start the thread that starts helpers");
	}
	if (r >= 0)
		r = daemon_open(&daemon_state, err);
	return r < 0 ? r : daemon_start(&daemon_state, err);
}

static int run(void)
{
	struct base_err err = { 0 };
	int r = daemon_loop(&daemon_state, &err);

	if (r < 0)
		base_log(BASE_LOG_ERROR, "%s", err.text);
	if (daemon_close(&daemon_state) < 0)
		r = -EIO;
	return r < 0 ? BASE_EXIT_FAILED : BASE_EXIT_OK;
}

static int run_here(void)
{
	struct base_err err = { 0 }, none = { 0 };

	if (service_open(&daemon_state.service, &none) < 0)
		base_log(BASE_LOG_WARN, "going on without a service's manager: %s", none.text);
	if (begin(&err) < 0) {
		service_failed(&daemon_state.service, &err);
		daemon_close(&daemon_state);
		return fail(&err);
	}
	service_ready(&daemon_state.service, driver_describe(daemon_state.driver));
	return run();
}

/* ---- the background -------------------------------------------------------------------------- */

/* Before helpers begin, which would hold it as long as they live. */
static int leave_terminal(struct base_err *err)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	int was = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);

	setsid();
	terminal = was < 0 ? NULL : fdopen(was, "a");
	if (!terminal || null < 0 || dup2(null, STDIN_FILENO) < 0 ||
	    dup2(null, STDOUT_FILENO) < 0 || dup2(null, STDERR_FILENO) < 0)
		return base_fail_errno(err, -errno, "cannot go into the background");
	close(null);
	return 0;
}

/* In the background there is no terminal: messages need another place before. */
static int background_log(struct base_err *err)
{
	char path[sizeof(daemon_state.run_dir) + 16];

	if (opt.log)
		return 0;
	snprintf(path, sizeof(path), "%s/dcpid.log", daemon_state.run_dir);
	return open_log(path, err);
}

/* In the child; what becomes of it goes into @report, as a struct base_err. */
static int run_behind(int report)
{
	struct base_err err = { 0 };
	int r = leave_terminal(&err);

	if (r >= 0)
		r = begin(&err);
	if (r >= 0)
		r = background_log(&err);
	if (base_write_all(report, &err, sizeof(err)) < 0 && r >= 0)
		r = base_fail(&err, -EPIPE, "nobody waits for the background daemon");
	close(report);
	if (r < 0) {
		daemon_close(&daemon_state);
		return BASE_EXIT_FAILED;
	}
	fclose(terminal);
	return run();
}

static int wait_for(pid_t child, int report)
{
	struct base_err err = { 0 };
	int status;

	if (base_read_all(report, &err, sizeof(err)) < 0) {
		err = (struct base_err){ 0 };
		base_fail(&err, -DCPI_EHELPER, "the daemon ended while it started");
	}
	close(report);
	if (!err.code)
		return BASE_EXIT_OK;
	waitpid(child, &status, 0);
	return fail(&err);
}

static int run_in_background(void)
{
	struct base_err err = { 0 };
	int report[2];
	pid_t child;

	/* Other programs wait for the end of descriptors that we inherited: a lock, a pipe. */
	if (syscall(SYS_close_range, STDERR_FILENO + 1u, ~0u, 0u) < 0 && errno != ENOSYS) {
		base_fail_errno(&err, -errno, "cannot go into the background");
		return fail(&err);
	}
	if (pipe2(report, O_CLOEXEC) < 0) {
		base_fail_errno(&err, -errno, "cannot go into the background");
		return fail(&err);
	}
	child = fork();
	if (child < 0) {
		base_fail_errno(&err, -errno, "cannot go into the background");
		return fail(&err);
	}
	close(report[child == 0 ? 0 : 1]);
	return child == 0 ? run_behind(report[1]) : wait_for(child, report[0]);
}

/* Beside the configuration, unless told. */
static void find_exclusions(void)
{
	static char path[4096];
	int len = config ? (int)(base_path_name(config) - config) : 0, n;

	if (!config || opt.exclusions)
		return;
	n = snprintf(path, sizeof(path), "%.*sexclusions", len, config);
	if (n > 0 && (size_t)n < sizeof(path) && (access(path, F_OK) == 0 || errno != ENOENT))
		opt.exclusions = path;
}

static int check_value_profilers(struct base_err *err)
{
	for (size_t i = 0; i < opt.value_profilers.nr; i++) {
		if (opt.value_profilers.items[i][0] == '/')
			continue;
		base_fail(err, -DCPI_EUSAGE, "-vtrace takes an absolute path, not '%s'",
			  opt.value_profilers.items[i]);
		return -DCPI_EUSAGE;
	}
	return 0;
}

/* Where nothing was said: as what else is wanted needs, or where they cost little. */
static void choose_traces(bool wanted)
{
	bool other = opt.replay || (opt.source && strcmp(opt.source, "bpf") != 0);

	if (opt.trace_every != TRACE_DEFAULT)
		return;
	opt.trace_optional = !wanted;
	opt.trace_every = wanted			? TRACE_EVERY_VALUES
			  : other || !TRACES_BY_DEFAULT ? 0
							: TRACE_EVERY;
}

/* Values come of traces. */
static int check_traces(struct base_err *err)
{
	bool values = opt.values || opt.values_replay || opt.value_profilers.nr;
	const char *name = opt.values		    ? "vprof"
			   : opt.values_replay	    ? "vreplay"
			   : opt.value_profilers.nr ? "vtrace"
			   : opt.trace_kernel	    ? "vkernel"
						    : "vwindows";

	if (opt.value_contexts && !values)
		return base_fail(err, -DCPI_EUSAGE,
				 "-vcontext goes with -vprof, -vtrace or -vreplay only");
	if (opt.step_pid && !values)
		return base_fail(err, -DCPI_EUSAGE,
				 "-vstep goes with -vprof, -vtrace or -vreplay only");
	choose_traces(values || opt.trace_kernel);
	if ((values || opt.trace_kernel) && !opt.trace_every)
		return base_fail(err, -DCPI_EUSAGE, "-%s does not go with -vwindows 0", name);
	if (opt.trace_every && (opt.replay || (opt.source && strcmp(opt.source, "bpf") != 0)))
		return base_fail(err, -DCPI_EUSAGE, "-%s does not go with -%s", name,
				 opt.replay ? "replay" : "source perf");
	return check_value_profilers(err);
}

static bool is_one_of(const char *name, const char *const *names)
{
	while (*names && strcmp(*names, name) != 0)
		names++;
	return *names;
}

/*
 * Options that @what does not heed: those of @names, or with @heeds all others. Of the command
 * line: a file of options is the service's, whatever is done by it now.
 */
static int check_heeded(const char *what, bool heeds, const char *const *names,
			struct base_err *err)
{
	for (size_t i = 0; options[i].name; i++)
		if (given >> i & 1 && is_one_of(options[i].name, names) != heeds)
			return base_fail(err, -DCPI_EUSAGE, "-%s does not go with -%s",
					 options[i].name, what);
	return 0;
}

/* Commands that sample nothing, or that ask for what was sampled before. */
static int check_one_shot(struct base_err *err)
{
	static const char *const of_gc[] = {
		"config", "database",	"gc",	 "gc_size", "join",    "n",  "nodaemon",
		"older",  "old_epochs", "quiet", "quota",   "verbose", NULL,
	};
	static const char *const of_report[] = { "check", "config", "list-events", "nodaemon",
						 "quiet", "rate",   "verbose",	   NULL };
	static const char *const of_live[] = { "drain", "epoch_every", "event", "fixed_period",
					       "rate",	"ring",	       "slot",	"source",
					       "table", NULL };
	int r = 0;

	if (gc)
		r = check_heeded("gc", true, of_gc, err);
	else if (opt.list_events || opt.check)
		r = check_heeded(opt.check ? "check" : "list-events", true, of_report, err);
	else if (opt.replay)
		r = check_heeded("replay", false, of_live, err);
	if (r < 0 && gc)
		base_hint(err, "-gc samples nothing; -gc_daily removes beside sampling");
	return r;
}

static bool is_given(const char *name)
{
	for (size_t i = 0; options[i].name; i++)
		if (given >> i & 1 && strcmp(options[i].name, name) == 0)
			return true;
	return false;
}

/* The tick has no rate but its own; other events beside it have, and other events of a file. */
static int check_rate(struct base_err *err)
{
	if (!opt.rate || opt.events.nr != 1 || strcmp(opt.events.items[0], "tick") != 0 ||
	    (is_given("event") && !is_given("rate")))
		return 0;
	base_fail(err, -DCPI_EUSAGE, "-rate does not go with -event tick");
	base_hint(err, "the scheduler's tick comes as it comes; cpu-clock takes any rate");
	return -DCPI_EUSAGE;
}

static int check_callpaths(struct base_err *err)
{
	if (opt.callpath_every <= 0 ||
	    (!opt.replay && (!opt.source || strcmp(opt.source, "bpf") == 0)))
		return 0;
	return base_fail(err, -DCPI_EUSAGE, "-callpaths does not go with -%s",
			 opt.replay ? "replay" : "source perf");
}

static int check_waits(struct base_err *err)
{
	if (!opt.waits ||
	    (opt.callpath_every && !opt.replay && (!opt.source || strcmp(opt.source, "bpf") == 0)))
		return 0;
	return base_fail(err, -DCPI_EUSAGE, "-wait does not go with -%s",
			 !opt.callpath_every ? "callpaths 0"
			 : opt.replay	     ? "replay"
					     : "source perf");
}

static int check_options(struct base_err *err)
{
	if (opt.replay && opt.background)
		return base_fail(err, -DCPI_EUSAGE, "-replay does not go with -background");
	if (opt.nodaemon && opt.background)
		return base_fail(err, -DCPI_EUSAGE, "-nodaemon does not go with -background");
	if (opt.quiet && opt.verbose)
		return base_fail(err, -DCPI_EUSAGE, "-quiet does not go with -verbose");
	if (opt.quiet && opt.unknown)
		return base_fail(err, -DCPI_EUSAGE, "-quiet does not go with -unknown");
	if (opt.events.nr && opt.slots.nr)
		return base_fail(err, -DCPI_EUSAGE, "-event does not go with -slot");
	if (opt.table_len && opt.source && !strcmp(opt.source, "perf"))
		return base_fail(err, -DCPI_EUSAGE, "-table does not go with -source perf");
	if (gc && (opt.replay || opt.background || opt.list_events || opt.check))
		return base_fail(err, -DCPI_EUSAGE, "-gc does not go with -%s",
				 opt.replay	  ? "replay"
				 : opt.background ? "background"
				 : opt.check	  ? "check"
						  : "list-events");
	if ((gc_config.dry_run || gc_config.old || gc_join) && !gc)
		return base_fail(err, -DCPI_EUSAGE, "-%s goes with -gc only",
				 gc_config.old ? "old_epochs"
				 : gc_join     ? "join"
					       : "n");
	if (opt.gc_size_mib && !gc && !opt.gc_daily)
		return base_fail(err, -DCPI_EUSAGE, "-gc_size goes with -gc or -gc_daily only");
	if (opt.gc_daily && gc)
		return base_fail(err, -DCPI_EUSAGE, "-gc_daily does not go with -gc");
	if (gc_older && !gc_join)
		return base_fail(err, -DCPI_EUSAGE, "-older goes with -join only");
	if (check_rate(err) < 0 || check_callpaths(err) < 0 || check_waits(err) < 0 ||
	    every_parse(opt.epoch_every, &opt.epoch_every_s, err) < 0)
		return -DCPI_EUSAGE;
	return check_traces(err);
}

/* ---- without a database ---------------------------------------------------------------------- */

/* Either option alone; driver_check and driver_list_events print nothing themselves. */
static int run_report(int (*report)(uint64_t frequency, struct base_buf *out, struct base_err *err))
{
	struct base_err err = { 0 };
	struct base_buf text = { 0 };
	int r = report((uint64_t)opt.rate, &text, &err);

	if (text.len)
		fwrite(text.data, 1, text.len, stdout);
	if (base_output_end(&err) < 0)
		r = -EIO;
	base_buf_release(&text);
	return r < 0 ? fail(&err) : BASE_EXIT_OK;
}

/* ---- pseudo-images that are not needed any more ---------------------------------------------- */

static void say_removed(void *ctx, const struct gc_file *file)
{
	static const char *const folders[GC_NR_FOLDERS] = { "", "kernel/", "costs/" };
	char name[NAME_MAX + 1];

	(void)ctx;
	snprintf(name, sizeof(name), "%s", file->name);
	printf("%s %s%s, %llu bytes\n", gc_config.dry_run ? "would remove" : "removed",
	       folders[file->folder], base_text_clean(name), (unsigned long long)file->len);
}

static void say_kept(void *ctx, const struct base_err *why)
{
	(void)ctx;
	base_err_print(why, "dcpid", stderr);
}

static void say_expired(void *ctx, const char *epoch)
{
	(void)ctx;
	printf("%s epoch %s\n", gc_config.dry_run ? "would remove" : "removed", epoch);
}

static void say_joined(void *ctx, const char *first, const char *last, size_t nr)
{
	(void)ctx;
	printf("%s epochs %s to %s, %zu of them, into %s\n",
	       gc_config.dry_run ? "would join" : "joined", first, last, nr, first);
}

static void say_watching(void *ctx, const char *text)
{
	(void)ctx;
	fprintf(stderr, "dcpid: %s\n", text);
}

static int join(struct profdb *db, struct base_err *err)
{
	struct profdb_join how = { .dry_run = gc_config.dry_run,
				   .joined = say_joined,
				   .kept = say_kept,
				   .before = (int64_t)time(NULL) -
					     (gc_older ? gc_older : 7) * 86400 };
	int r = profdb_span_find(gc_join, &how.span, err);

	return r < 0 ? r : profdb_epochs_join(db, &how, err);
}

static int run_gc(const char *database)
{
	struct gc_result result = { 0 };
	struct base_err err = { 0 };
	struct profdb *db = NULL;
	int r = profdb_open(database, false, &db, &err);

	/* Not that of who asks for reports. */
	if (r == -ENOENT) {
		err.hint[0] = '\0';
		base_hint(&err, "-gc takes the folder of a database that is there");
	}
	if (r >= 0)
		profdb_set_watching(db, say_watching, NULL);
	gc_config.removed = say_removed;
	gc_config.removed_epoch = say_expired;
	gc_config.kept = say_kept;
	gc_config.now = (int64_t)time(NULL);
	gc_config.size = (uint64_t)opt.gc_size_mib << 20;
	gc_config.quota = (uint64_t)opt.quota_mib << 20;
	if (r >= 0 && gc_join)
		r = join(db, &err);
	if (r >= 0)
		r = gc_run(db, &gc_config, &result, &err);
	if (r >= 0)
		printf("%s %zu files, %llu bytes; %zu stay, %llu bytes\n",
		       gc_config.dry_run ? "would remove" : "removed", result.nr_removed,
		       (unsigned long long)result.removed_len, result.nr_left,
		       (unsigned long long)result.left_len);
	if (r >= 0 && result.size > gc_config.size)
		fprintf(stderr, "dcpid: %llu bytes are left: no finished epoch is\n",
			(unsigned long long)result.size);
	if (base_output_end(&err) < 0)
		r = -EIO;
	profdb_close(db);
	return r < 0 ? fail(&err) : BASE_EXIT_OK;
}

/* The operand before -database, as all of the command line before the file. */
static int check_operand(int nr, char **operands, struct base_err *err)
{
	bool report = opt.list_events || opt.check;

	if (opt.list_events && opt.check)
		return base_fail(err, -DCPI_EUSAGE, "-list-events does not go with -check");
	if (nr)
		opt.database = operands[0];
	if (report ? nr == 0 : opt.database != NULL)
		return 0;
	if (report)
		return base_fail(err, -DCPI_EUSAGE, "-%s takes no database",
				 opt.check ? "check" : "list-events");
	base_fail(err, -DCPI_EUSAGE, config ? "no database given" : "missing operand");
	if (config)
		base_hint(err, "name it as \"database\" in '%s', or behind the options", config);
	base_hint(err, "usage: dcpid [options] DATABASE");
	return -DCPI_EUSAGE;
}

int main(int argc, char **argv)
{
	struct base_err err = { 0 };
	int r = base_standard_fill(O_RDWR);

	r = r < 0 ? base_fail_errno(&err, r, "cannot start")
		  : base_opt_parse(&command, &argc, &argv, &err);
	if (r == BASE_OPT_DONE)
		return base_output_end(&err) < 0 ? fail(&err) : BASE_EXIT_OK;
	if (r >= 0 && config)
		r = config_read(config, &command, given, &config_root, &err);
	find_exclusions();
	if (r >= 0)
		r = check_options(&err);
	if (r >= 0)
		r = check_one_shot(&err);
	if (r >= 0)
		r = check_operand(argc, argv, &err);
	if (r < 0)
		return fail(&err);
	/* A peer that closes a socket or a pipe is reported by the call that failed. */
	signal(SIGPIPE, SIG_IGN);
	/* Likewise what is too long for a limit of our user's. */
	signal(SIGXFSZ, SIG_IGN);
	/* Were it ignored, as we inherited it, no child's end could be waited for. */
	signal(SIGCHLD, SIG_DFL);
#ifdef M_MMAP_THRESHOLD
	/* Buffers of some megabytes go back at once: left alone, the heap keeps them. */
	mallopt(M_MMAP_THRESHOLD, 128 << 10);
#endif
	if (opt.list_events || opt.check)
		return run_report(opt.check ? driver_check : driver_list_events);
	if (gc)
		return run_gc(opt.database);
	return opt.background ? run_in_background() : run_here();
}
