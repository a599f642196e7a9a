/* SPDX-License-Identifier: BSD-2-Clause */
/* The parts of the daemon are opened in order, and closed. */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <inttypes.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "budget.h"
#include "core.h"
#include "group.h"
#include "step.h"
#include "values.h"
#include "trace.h"
#include "watch.h"

enum { CALLPATH_EVERY = 40 };

/* While a turn waits, the rings are looked at so often. */
#define MEANWHILE_NS 20000000u

static const char default_run_dir[] = WIRE_RUN_DIR, default_queue[] = WIRE_QUEUE_NAME;

static const char *env_or(const char *option, const char *name, const char *fallback)
{
	const char *env = getenv(name);

	return option ? option : env && env[0] ? env : fallback;
}

/* ---- names ----------------------------------------------------------------------------------- */

/* A host's name as the name of a folder. */
static void clean_name(char *name)
{
	for (char *c = name; *c; c++)
		if (!isalnum((unsigned char)*c) && !strchr("._-", *c))
			*c = '_';
	if (!name[0] || name[0] == '.')
		name[0] = '_';
}

static int choose_platform(struct daemon *d, struct base_err *err)
{
	char name[PROFDB_PLATFORM_MAX + 1] = "";

	if (!d->opt.platform)
		return 0; /* the database may say */
	snprintf(name, sizeof(name), "%s", d->opt.platform);
	clean_name(name);
	if (strcmp(name, d->opt.platform) != 0) {
		base_fail(err, -DCPI_EUSAGE, "unfit platform name '%s'", d->opt.platform);
		base_hint(err, "1 to %d letters, digits, '.', '_', '-'; no '.' at the start",
			  PROFDB_PLATFORM_MAX);
		return -DCPI_EUSAGE;
	}
	snprintf(d->platform, sizeof(d->platform), "%s", name);
	return 0;
}

/* The helpers lie beside dcpid, or in libexec where it or dcpirun is installed. */
static int find_helpers(struct daemon *d, struct base_err *err)
{
	static const char *const below[] = { "", "/" DCPID_HELPERS, "/" DCPIRUN_HELPERS };
	char exe[256], path[512];
	ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);

	if (n <= 0)
		return base_fail_errno(err, -errno, "cannot find the helper programs");
	exe[n] = '\0';
	*strrchr(exe, '/') = '\0';
	for (size_t i = 0; i < sizeof(below) / sizeof(*below); i++) {
		snprintf(d->helper_dir, sizeof(d->helper_dir), "%s%s", exe, below[i]);
		snprintf(path, sizeof(path), "%.490s/dcpid-reader", d->helper_dir);
		if (access(path, X_OK) == 0)
			return 0;
	}
	base_fail(err, -DCPI_EHELPER, "cannot find the helper program 'dcpid-reader'");
	base_hint(err, "it belongs into '%s' or '%s'", exe, d->helper_dir);
	return -DCPI_EHELPER;
}

/* Every user's programs reach the sockets in it, whatever the umask. */
static int make_run_dir(struct daemon *d, struct base_err *err)
{
	const char *dir = env_or(d->opt.run_dir, "DCPI_RUN", default_run_dir);

	if (strlen(dir) >= sizeof(d->run_dir))
		return base_fail_errno(err, -ENAMETOOLONG, "cannot use '%s'", dir);
	snprintf(d->run_dir, sizeof(d->run_dir), "%s", dir);
	if (mkdir(dir, 0755) == 0 ? chmod(dir, 0755) < 0 : errno != EEXIST) {
		int r = base_fail_errno(err, -errno, "cannot make '%s'", dir);

		base_hint(err, "run dcpid as root, or give it a folder of yours with -run");
		return r;
	}
	return 0;
}

/* A recorded stream is of the time when it was recorded. */
static int64_t now_utc(const struct daemon *d)
{
	return driver_is_recorded(d->driver) ? driver_recorded_utc(d->driver) : (int64_t)time(NULL);
}

/* ---- the database ---------------------------------------------------------------------------- */

/* When the daemon that died last wrote something: nothing it received later is on disk. */
static int64_t last_written(const struct daemon *d, const char *epoch)
{
	char path[PROFDB_EPOCH_LEN + PROFDB_PLATFORM_MAX + 2];
	struct stat st;

	snprintf(path, sizeof(path), "%s/%s", epoch, d->platform);
	return fstatat(profdb_dir_fd(d->db), path, &st, 0) < 0 ? -1 : (int64_t)st.st_mtime;
}

static bool is_left_open(struct daemon *d, const char *epoch)
{
	return profdb_epoch_open(d->db, epoch, d->platform);
}

/* Files that are set aside are read by no program, so they would never be missed. */
static void tell_damage(struct daemon *d, const char *epoch)
{
	struct base_err why = { 0 };

	if (profdb_epoch_damaged(d->db, epoch, d->platform, &why))
		base_log(BASE_LOG_WARN,
			 "%s: it is set aside in '%s/%s/%s' as '.commit-bad', '.new-' files beside "
			 "it as '.bad-'",
			 why.text, profdb_path(d->db), epoch, d->platform);
}

/*
 * Samples that it received after its last flush are in no profile: each gap is named, with its
 * length.
 */
static void tell_gaps(struct daemon *d)
{
	char **epochs = profdb_epochs(d->db, NULL);

	for (size_t i = 0; epochs && epochs[i]; i++) {
		int64_t since = last_written(d, epochs[i]), gap = (int64_t)time(NULL) - since;
		uint64_t lost;

		if (!is_left_open(d, epochs[i]))
			continue;
		lost = profdb_epoch_lost(d->db, epochs[i], d->platform);
		if (lost)
			base_log(BASE_LOG_WARN,
				 "epoch %s lacks %" PRIu64 " sample%s that its daemon could not "
				 "write before it ended",
				 epochs[i], lost, lost == 1 ? "" : "s");
		base_log(BASE_LOG_WARN,
			 "epoch %s was left open by a daemon that %s: it has a gap of "
			 "%" PRId64 " s",
			 epochs[i], lost ? "failed" : "was killed", since < 0 || gap < 0 ? 0 : gap);
		tell_damage(d, epochs[i]);
	}
	free(epochs);
}

static int resume_epoch(struct daemon *d, struct base_err *err)
{
	int r = profdb_epoch_resume(d->db, d->epoch, err);

	if (r >= 0)
		base_log(BASE_LOG_INFO, "epoch %s goes on", d->epoch);
	return r;
}

static int open_epoch(struct daemon *d, struct base_err *err)
{
	struct base_err none = { 0 };
	int r = -ENOENT;

	tell_gaps(d);
	if (d->follow.live && !d->opt.new_epoch)
		r = resume_epoch(d, &none);
	if (r < 0 && r != -ENOENT) {
		*err = none;
		return r;
	}
	return r < 0 ? daemon_turn_epoch(d, err) : r;
}

/* ---- parts ----------------------------------------------------------------------------------- */

/* The texts of -event are one slot. */
static int join_events(const struct base_opt_list *events, struct base_buf *out)
{
	int r = 0;

	for (size_t i = 0; i < events->nr && r >= 0; i++)
		r = base_buf_printf(out, "%s%s", i ? "+" : "", events->items[i]);
	return r < 0 ? r : base_buf_append(out, "", 1);
}

/* Before the driver, whose traces hold what they need. */
static int open_values(struct daemon *d, struct base_err *err)
{
	enum { BUILT_IN = 16 }; /* at most */
	const struct options *o = &d->opt;
	const char **names = calloc(o->value_profilers.nr + BUILT_IN, sizeof(*names));
	size_t nr = 0;
	int r = 0;

	if (!names)
		return base_fail_errno(err, -ENOMEM, "cannot start");
	for (size_t i = 0; o->values && values_of_vprof(i); i++)
		names[nr++] = values_of_vprof(i);
	if (o->values_replay)
		names[nr++] = PROFDB_VALUES_REPLAY;
	for (size_t i = 0; i < o->value_profilers.nr; i++)
		names[nr++] = o->value_profilers.items[i];
	if (nr)
		r = values_open(d->helper_dir, names, nr, o->value_contexts, &d->values, err);
	d->nr_profilers = nr;
	free(names);
	return r;
}

static int open_step(struct daemon *d, struct base_err *err)
{
	if (!d->opt.step_pid)
		return 0;
	if (d->opt.step_pid == getpid())
		return base_fail(err, -EINVAL, "cannot step process %d: that is dcpid itself",
				 (int)getpid());
	return step_open(d->helper_dir, (pid_t)d->opt.step_pid, &d->step, err);
}

/* May a source have call paths by default? */
static bool may_have_callpaths(const struct daemon *d, struct base_err *why)
{
	if (!d->opt.replay && (!d->opt.source || strcmp(d->opt.source, "bpf") == 0))
		return driver_callpaths_possible(NULL, why) >= 0;
	base_fail(why, -DCPI_EUNSUPPORTED, "they need the source 'bpf'");
	return false;
}

/* A source that cannot have call paths does without, unless they were asked for. */
static int open_source(struct daemon *d, struct driver_config *config, struct base_err *err)
{
	struct base_err *why = &d->no_callpaths;
	bool by_default = d->opt.callpath_every < 0;
	int r = -DCPI_EUNSUPPORTED;

	if (by_default)
		d->opt.callpath_every = may_have_callpaths(d, why) ? CALLPATH_EVERY : 0;
	config->callpath_every = (uint32_t)d->opt.callpath_every;
	config->callpath_scaled = by_default;
	config->waits = d->opt.waits;
	if (config->waits && !config->callpath_every) {
		*err = *why;
		return why->code;
	}
	if (!by_default || !config->callpath_every || config->waits)
		return driver_open(config, &d->driver, err);
	r = driver_open(config, &d->driver, why);
	if (r >= 0)
		return r;
	d->opt.callpath_every = config->callpath_every = 0;
	return driver_open(config, &d->driver, err);
}

static int open_driver(struct daemon *d, struct base_err *err)
{
	struct driver_config config = { .source = d->opt.replay ? "replay" : d->opt.source,
					.replay_path = d->opt.replay,
					.slots = d->opt.slots.items,
					.nr_slots = d->opt.slots.nr,
					.frequency = (uint64_t)d->opt.rate,
					.fixed_period = d->opt.fixed_period,
					.table_len = (size_t)d->opt.table_len,
					.drain_ms = (uint32_t)d->opt.drain_ms,
					.ring_pages = (size_t)d->opt.ring_pages,
					.pid = d->opt.pid,
					.run_dir = d->opt.own ? d->opt.run_dir : NULL,
					.trace_every = (uint32_t)d->opt.trace_every,
					.trace_optional = d->opt.trace_optional,
					.trace_insns = TRACE_INSNS,
					.trace_log = d->values ? (uint8_t)values_log(d->values)
							       : VTRACE_LOG_PATH,
					.trace_kernel = d->opt.trace_kernel };
	struct base_buf joined = { 0 };
	const char *slot;
	int r = join_events(&d->opt.events, &joined);

	if (r >= 0 && d->opt.replay)
		r = d->stop_fd = daemon_stop_open();
	config.stop_fd = d->stop_fd;
	slot = (const char *)joined.data;
	if (d->opt.events.nr) {
		config.slots = &slot;
		config.nr_slots = 1;
	}
	r = r < 0 ? base_fail_errno(err, r, "cannot sample") : open_source(d, &config, err);
	base_buf_release(&joined);
	return r;
}

static void record_dyn(void *ctx, int32_t pid, uint64_t time_ns, const void *data, size_t len)
{
	struct driver_load l = { .kind = DRIVER_LOAD_DYN,
				 .time_ns = time_ns,
				 .pid = pid,
				 .data = data,
				 .data_len = len };

	follow_record(ctx, &l);
}

/* The doorbell of dcpirun would outlive it where it is killed; its programs hand over. */
static const char *queue_name(const struct daemon *d)
{
	if (!d->follow.live || d->opt.own)
		return NULL;
	return env_or(d->opt.queue, "DCPI_QUEUE", default_queue);
}

/* Called now and then while a turn waits for a helper or the disk; @ctx: struct daemon. It empties
 * the kernel's rings into memory. */
static void meanwhile(void *ctx)
{
	struct daemon *d = ctx;
	uint64_t now = base_now_ns();

	if (now - d->meanwhile_ns < MEANWHILE_NS)
		return;
	d->meanwhile_ns = now;
	driver_look(d->driver);
}

static int open_reader(struct daemon *d, struct base_err *err)
{
	int r = reader_open(d->helper_dir, &d->reader, err);

	if (r < 0)
		return r;
	d->budgets = budgets_new();
	if (!d->budgets)
		return base_fail_errno(err, -ENOMEM, "cannot start");
	reader_share(d->reader, d->budgets);
	reader_set_meanwhile(d->reader, meanwhile, d);
	return 0;
}

static int open_dyn(struct daemon *d, struct base_err *err)
{
	bool live = d->follow.live;
	char host[256] = "";
	struct dyn_config config = {
		.run_dir = live ? d->run_dir : NULL,
		.queue_name = queue_name(d),
		.helper_dir = d->helper_dir,
		.host = host,
		.db = d->db,
		.images = d->images,
		.moves = &d->moves,
		.reader = d->reader,
		.budgets = d->budgets,
		.keep_all = d->opt.keep_all,
		.process_quota = (uint64_t)d->opt.process_quota_mib << 20,
		.quota = d->quota.max,
		.meanwhile = d->reader ? meanwhile : NULL,
		.meanwhile_ctx = d,
		.record = d->record ? record_dyn : NULL,
		.record_ctx = &d->follow,
	};

	/* Replayed events did not happen on this host: their platform is all that is known. */
	if (!live || gethostname(host, sizeof(host) - 1) < 0)
		snprintf(host, sizeof(host), "%s", d->platform);
	return dyn_open(&config, &d->dyn, err);
}

static int open_tables(struct daemon *d, struct base_err *err)
{
	d->images = images_new();
	if (d->images)
		images_choose(d->images, &d->opt.bypid, &d->exclude);
	d->workloads = workloads_new();
	d->processes = processes_new();
	d->identity = identity_new(d->reader);
	d->store.watch = watch_new();
	if (!d->images || !d->workloads || !d->processes || !d->identity || !d->store.watch)
		return base_fail_errno(err, -ENOMEM, "cannot start");
	daemon_connect(d);
	d->store.nr_events = driver_nr_events(d->driver);
	d->store.nr_timed = d->store.nr_events - driver_nr_sampled(d->driver);
	if (d->store.nr_timed)
		workloads_set_timed(d->workloads, (uint32_t)driver_nr_sampled(d->driver));
	for (size_t i = 0; i < d->store.nr_events; i++)
		d->store.events[i] = *driver_event_get(d->driver, i);
	return 0;
}

static int open_kernel(struct daemon *d, struct base_err *err)
{
	const struct kernel_config config = {
		.db = d->db,
		.images = d->images,
		.live = d->follow.live && !d->opt.own,
		.vdso = d->opt.own,
		.helper_dir = d->helper_dir,
		.meanwhile = d->reader ? meanwhile : NULL,
		.meanwhile_ctx = d,
		.host = d->platform,
	};

	return kernel_open(&config, &d->kernel, err);
}

static uint32_t nr_cpus(void)
{
	long nr = sysconf(_SC_NPROCESSORS_ONLN);

	return nr < 1 ? 1 : (uint32_t)nr;
}

static int open_traces(struct daemon *d, struct base_err *err)
{
	const struct trace_config config = { .driver = d->driver,
					     .reader = d->reader,
					     .helper_dir = d->helper_dir,
					     .values = d->values,
					     .nr_profilers = d->nr_profilers,
					     .step = d->step,
					     .attribute = &d->attribute,
					     .follow = &d->follow,
					     .store = &d->store,
					     .exclude = &d->exclude,
					     .nr_cpus = d->opt.trace_optional ? nr_cpus() : 0,
					     .every = (uint32_t)d->opt.trace_every,
					     .log_unknown = d->opt.unknown };
	int r = driver_has_traces(d->driver) ? trace_open(&config, &d->traces, err) : 0;

	return r;
}

static int open_callpaths(struct daemon *d, struct base_err *err)
{
	struct callpath_config config = { .driver = d->driver,
					  .attribute = &d->attribute,
					  .follow = &d->follow,
					  .nr_events = d->store.nr_events,
					  .nr_timed = d->store.nr_timed,
					  .exclude = &d->exclude,
					  .workloads = d->workloads };
	int r = 0;

	if (d->opt.callpath_every <= 0)
		return 0;
	/* One of its own: tables take long, and all other requests are waited for. */
	if (d->reader)
		r = reader_open(d->helper_dir, &d->rows_reader, err);
	config.reader = d->rows_reader;
	return r < 0 ? r : callpath_open(&config, &d->callpaths, err);
}

static void record_kernel(void *ctx, const struct driver_load *load)
{
	follow_record(ctx, load);
}

/* @replayed: "-" for standard input, or NULL. */
static bool is_replayed(const char *replayed, const struct stat *record)
{
	struct stat st;

	return replayed &&
	       (strcmp(replayed, "-") ? stat(replayed, &st) : fstat(STDIN_FILENO, &st)) == 0 &&
	       st.st_dev == record->st_dev && st.st_ino == record->st_ino;
}

/* It tells where the kernel lies: a file that was there keeps no rights of others. */
static int empty_record(int fd, const struct stat *st)
{
	mode_t mode = st->st_mode & 07777;

	if (((mode & ~0640u) && fchmod(fd, mode & 0640) < 0) || ftruncate(fd, 0) < 0)
		return -errno;
	return 0;
}

static int create_record(const char *path, const char *replayed, struct base_err *err)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0640), r = fd < 0 ? -errno : 0;
	struct stat st;

	if (r == 0 && fstat(fd, &st) < 0)
		r = -errno;
	if (r == 0 && S_ISREG(st.st_mode) && is_replayed(replayed, &st))
		r = base_fail(err, -DCPI_EUSAGE, "-record names the file that is replayed: '%s'",
			      path);
	else if (r == 0 && S_ISREG(st.st_mode))
		r = empty_record(fd, &st);
	if (r < 0 && fd >= 0)
		close(fd);
	if (r < 0 && r != -DCPI_EUSAGE)
		base_fail_errno(err, r, "cannot create '%s'", path);
	return r < 0 ? r : fd;
}

static int open_record(struct daemon *d, struct base_err *err)
{
	int r, fd;

	if (!d->opt.record)
		return 0;
	fd = create_record(d->opt.record, d->opt.replay, err);
	if (fd < 0)
		return fd;
	d->record = fdopen(fd, "w");
	if (!d->record) {
		close(fd);
		return base_fail_errno(err, -ENOMEM, "cannot create '%s'", d->opt.record);
	}
	d->follow.record = d->record;
	r = driver_record_head(d->record, d->driver, now_utc(d));
	if (r >= 0)
		kernel_tell(d->kernel, record_kernel, &d->follow);
	return r < 0 ? base_fail_errno(err, r, "cannot write '%s'", d->opt.record) : 0;
}

static int find_platform(struct daemon *d, struct base_err *err)
{
	char host[256] = "";

	if (gethostname(host, sizeof(host) - 1) < 0)
		host[0] = '\0';
	return profdb_platform_of(d->db, host, d->platform, err);
}

/* A manager that hears nothing for minutes would end us within a flush, and so each one after us.
 */
static void tell_alive(void *ctx)
{
	struct daemon *d = ctx;

	service_alive(&d->service, d->epoch, d->store.account.stored);
	if (d->reader)
		meanwhile(d);
}

static void tell_watching(void *ctx, const char *text)
{
	(void)ctx;
	base_log(BASE_LOG_INFO, "%s", text);
}

/* @grouped: with other machines, by the database's hosts. */
static int lock_platform(struct daemon *d, bool grouped, struct base_err *err)
{
	profdb_set_watching(d->db, tell_watching, NULL);
	return grouped ? profdb_lock_member(d->db, d->platform, err)
		       : profdb_lock(d->db, d->platform, err);
}

/* ---- who may read it ------------------------------------------------------------------------- */

/*
 * The user who made root start us, by sudo: else the one developer of a machine could not read it.
 */
static bool find_sudo_user(uint32_t *uid)
{
	const char *text = getenv("SUDO_UID");
	uint64_t n;

	if (geteuid() != 0 || !text || !base_number_parse(text, &n) || n == 0 || n >= UINT32_MAX)
		return false;
	*uid = (uint32_t)n;
	return true;
}

int daemon_restrict(int fd, mode_t mode)
{
	const struct group *g = getgrnam("dcpi");
	int r = 0;
	uint32_t uid;

	if (fchmod(fd, mode) < 0)
		r = -errno;
	if (g && fchown(fd, (uid_t)-1, g->gr_gid) < 0 && r == 0)
		r = -errno;
	if (find_sudo_user(&uid) && r == 0)
		r = base_reader_set(fd, uid, true);
	return r;
}

/*
 * Other users may not read the counts by address of a user's programs, as perf_event_paranoid 2
 * would refuse them too. A folder that was there before keeps its mode.
 */
static void restrict_readers(const struct daemon *d)
{
	int r = daemon_restrict(profdb_dir_fd(d->db), 0750);

	if (r < 0)
		base_log(BASE_LOG_WARN, "cannot set who may read database '%s': %s",
			 profdb_path(d->db), base_strerror(r));
}

/*
 * The path is one that users of the status and of the log can use: their folder is another. A
 * replay waits for the end.
 */
static int open_folder(struct daemon *d, struct base_err *err)
{
	char folder[PATH_MAX], path[2 * PATH_MAX];
	bool relative = d->follow.live && *d->opt.database != '/' &&
			!profdb_is_store(d->opt.database) && getcwd(folder, sizeof(folder));
	int n = relative ? snprintf(path, sizeof(path), "%s/%s", folder, d->opt.database) : -1, r;
	const char *name = n > 0 && n < PATH_MAX ? path : d->opt.database;
	bool makes = faccessat(AT_FDCWD, name, F_OK, AT_EACCESS) < 0 && errno == ENOENT;

	r = profdb_open(name, true, &d->db, err);
	if (r >= 0 && makes && d->follow.live && !d->opt.own)
		restrict_readers(d);
	return r;
}

static int open_database(struct daemon *d, struct base_err *err)
{
	enum profdb_format format;
	bool grouped = false;
	int r = profdb_format_find(d->opt.format, &format, err);

	if (r >= 0)
		r = open_folder(d, err);
	if (r < 0)
		return r;
	profdb_set_format(d->db, format);
	d->follow.wants_extents = format != PROFDB_FORMAT_1;
	profdb_set_alive(d->db, tell_alive, d);
	/* Replayed programs ran elsewhere. */
	if (d->follow.live)
		profdb_set_machine(d->db, machine_cpu_mhz(""),
				   (uint64_t)sysconf(_SC_NPROCESSORS_ONLN));
	if (!d->opt.platform) {
		r = find_platform(d, err);
		grouped = r > 0;
	}
	return r < 0 ? r : lock_platform(d, grouped, err);
}

/*
 * Each CPU takes a descriptor for each event and one more, each client of dynamic code another; the
 * usual limit of 1024 is for programs that use select.
 */
static void raise_descriptors(void)
{
	struct rlimit l;

	if (getrlimit(RLIMIT_NOFILE, &l) == 0 && l.rlim_cur < l.rlim_max) {
		l.rlim_cur = l.rlim_max;
		setrlimit(RLIMIT_NOFILE, &l);
	}
}

int daemon_open(struct daemon *d, struct base_err *err)
{
	int r = choose_platform(d, err);

	if (r >= 0 && d->opt.exclusions)
		r = exclude_read(&d->exclude, d->opt.exclusions, err);
	if (!d->opt.replay)
		raise_descriptors();
	if (!d->opt.replay && !d->opt.own)
		group_open();
	if (r >= 0)
		r = find_helpers(d, err);
	/* Before the database: what cannot sample leaves no empty one behind. */
	if (r >= 0)
		r = open_values(d, err);
	if (r >= 0)
		r = open_step(d, err);
	if (r >= 0)
		r = open_driver(d, err);
	d->follow.live = r >= 0 && !driver_is_recorded(d->driver);
	d->counts.log_unknown = d->opt.unknown;
	if (r >= 0 && d->follow.live)
		r = make_run_dir(d, err);
	/* A daemon that finds another one there has touched nothing yet. */
	if (r >= 0 && d->follow.live && !d->opt.own)
		r = control_open(d->run_dir, daemon_command, d, &d->control, err);
	if (r >= 0 && d->control)
		labels_keep_read(&d->follow.labels, d->run_dir);
	if (r >= 0)
		r = open_database(d, err);
	if (r >= 0 && d->follow.live)
		r = open_reader(d, err);
	if (r >= 0)
		r = open_tables(d, err);
	if (r >= 0)
		r = open_kernel(d, err);
	if (r >= 0)
		r = open_traces(d, err);
	if (r >= 0)
		r = open_callpaths(d, err);
	if (r >= 0)
		r = open_record(d, err);
	if (r >= 0)
		r = open_dyn(d, err);
	d->follow.client_set = driver_client_set;
	daemon_connect(d);
	if (r >= 0)
		daemon_keep_quota(d);
	return r < 0 ? r : open_epoch(d, err);
}

int daemon_start(struct daemon *d, struct base_err *err)
{
	int r = driver_start(d->driver, err), nr;

	if (r < 0)
		return r;
	if (d->follow.live) {
		daemon_note(d, PROFDB_NOTE_START, 0);
		machine_idle("", &d->idle);
	}
	base_log(BASE_LOG_INFO, "%s", driver_describe(d->driver));
	if (d->no_callpaths.code && !d->opt.replay)
		base_log(BASE_LOG_INFO, "without call paths: %s", d->no_callpaths.text);
	if (!d->follow.live || d->opt.no_scan || d->opt.own)
		return 0;
	/* Reading /proc takes seconds on a slow machine. */
	driver_busy(d->driver, true);
	nr = follow_scan_all(&d->follow);
	counts_scanned(&d->counts);
	if (nr < 0)
		return base_fail_errno(err, nr, "cannot read '/proc'");
	base_log(BASE_LOG_INFO, "%d processes were running already", nr);
	return 0;
}

static int close_record(struct daemon *d)
{
	int r = d->follow.record_error;

	if (!d->record)
		return 0;
	if (fclose(d->record) != 0 && r == 0)
		r = -errno;
	/* A failure before the end was reported already. */
	if (r < 0 && !d->record_failed)
		base_log(BASE_LOG_ERROR, "cannot complete '%s': %s", d->opt.record,
			 base_strerror(r));
	return r;
}

int daemon_close(struct daemon *d)
{
	int r;

	control_close(d->control);
	callpath_close(d->callpaths);
	reader_close(d->rows_reader);
	if (d->processes) {
		counts_release(&d->counts);
		follow_release(&d->follow);
	}
	trace_close(d->traces);
	step_close(d->step);
	if (d->values)
		values_close(d->values);
	daemon_maintain_close(d);
	if (d->dyn)
		dyn_close(d->dyn);
	if (d->kernel)
		kernel_close(d->kernel);
	identity_free(d->identity);
	image_moves_clear(&d->moves);
	watch_free(d->store.watch);
	images_free(d->images);
	workloads_free(d->workloads);
	exclude_release(&d->exclude);
	if (d->reader)
		reader_close(d->reader);
	budgets_free(d->budgets);
	if (d->driver)
		driver_close(d->driver);
	if (d->stop_fd > 0)
		close(d->stop_fd);
	r = close_record(d);
	if (d->db)
		profdb_close(d->db);
	service_close(&d->service);
	*d = (struct daemon){ 0 };
	return r;
}
