/* SPDX-License-Identifier: BSD-2-Clause */
/* dcpiship: finished epochs of a database go to the store of a fleet. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "ship.h"

static const char *db, *to, *spool_path, *credentials, *relay, *as, *platform;
static const char *cluster, *replicas;
static int64_t every, jitter = -1, spool_limit = 1024, timeout = 60, wait_most = 30;
static bool open_too, verify_only, make_schema, print_schema, expire, sum, quiet;

static const struct base_opt options[] = {
	{ "db", BASE_OPT_STRING, &db, "DIR", "The database (default: $DCPIDB).", 0, 0 },
	{ "to", BASE_OPT_STRING, &to, "STORE",
	  "clickhouse://[USER@]HOST[:PORT]/DATABASE, or clickhouses:// for TLS. Without it batches "
	  "stay in the spool, for a relay.",
	  0, 0 },
	{ "credentials", BASE_OPT_STRING, &credentials, "FILE",
	  "A file whose first line is the password, or USER:PASSWORD; only its owner and group may "
	  "read it "
	  "(default: $DCPI_STORE_CREDENTIALS).",
	  0, 0 },
	{ "spool", BASE_OPT_STRING, &spool_path, "DIR",
	  "Batches wait here until the store has them (default: DB/ship).", 0, 0 },
	{ "spool-limit", BASE_OPT_INT, &spool_limit, "MIB",
	  "As much may wait; the rest stays in the database (default: 1024).", 1, 1 << 24 },
	{ "relay", BASE_OPT_STRING, &relay, "DIR",
	  "Send the batches of this folder, and of those in it, which many machines fill, in place "
	  "of "
	  "a database.",
	  0, 0 },
	{ "platform", BASE_OPT_STRING, &platform, "NAME", "Only this platform (default: all).", 0,
	  0 },
	{ "as", BASE_OPT_STRING, &as, "NAME",
	  "The platform's name in the store; with -platform, or a database of one.", 0, 0 },
	{ "open", BASE_OPT_FLAG, &open_too, NULL,
	  "Send epochs that are still written, too, after each flush.", 0, 0 },
	{ "every", BASE_OPT_INT, &every, "SECONDS",
	  "Stay, and look again so often (default: once).", 1, 1 << 24 },
	{ "jitter", BASE_OPT_INT, &jitter, "SECONDS",
	  "Wait up to so long before each time, another time on each machine (default: a tenth "
	  "of -every).",
	  0, 1 << 24 },
	{ "timeout", BASE_OPT_INT, &timeout, "SECONDS",
	  "An answer takes so long at most, and an upload makes no progress for so long "
	  "(default: 60).",
	  1, 3600 },
	{ "verify", BASE_OPT_FLAG, &verify_only, NULL,
	  "Compare the sums of what was sent with those of the store; 1 where some differ.", 0, 0 },
	{ "wait", BASE_OPT_INT, &wait_most, "SECONDS",
	  "With -verify: ask again for so long where sums differ, as a replica may lag behind "
	  "(default: 30).",
	  0, 86400 },
	{ "make-schema", BASE_OPT_FLAG, &make_schema, NULL,
	  "Make the store's tables, on the server of -to; on a cluster once for each server.", 0,
	  0 },
	{ "print-schema", BASE_OPT_FLAG, &print_schema, NULL,
	  "Print the statements that make the tables, on ClickHouse 19.6 or later.", 0, 0 },
	{ "expire", BASE_OPT_FLAG, &expire, NULL,
	  "Remove what is older than its table keeps, from the server of -to; for ClickHouse "
	  "before "
	  "19.6, daily and on each server.",
	  0, 0 },
	{ "sum", BASE_OPT_FLAG, &sum, NULL,
	  "Add up what machines had by routine and by offset in six hours and in a day, where that "
	  "is "
	  "not done, so that questions about many hours take less; with -every again and again.",
	  0, 0 },
	{ "cluster", BASE_OPT_STRING, &cluster, "NAME",
	  "The tables are distributed over this cluster of the server's configuration.", 0, 0 },
	{ "replicas", BASE_OPT_STRING, &replicas, "PATH",
	  "The tables are replicated, by this path in ZooKeeper; servers have macros 'shard' and "
	  "'replica'.",
	  0, 0 },
	{ "quiet", BASE_OPT_FLAG, &quiet, NULL, "Say nothing where nothing is wrong.", 0, 0 },
	{ 0 },
};

static const struct base_cmd cmd = {
	.name = "dcpiship",
	.summary = "send a database's samples to the store of a fleet",
	.operands = "",
	.opts = options,
	.examples =
		(const struct base_example[]){
			{ "dcpiship -make-schema -to clickhouse://db.example/dcpi",
			  "Make the tables of a store, once." },
			{ "dcpiship -db /var/lib/dcpi -to clickhouse://db.example/dcpi -every 600",
			  "Send each epoch when it is finished." },
			{ "dcpiship -sum -to clickhouse://db.example/dcpi -every 600",
			  "Keep the sums of hours and days, once for each store." },
			{ "dcpiship -relay /srv/batches -to clickhouse://db.example/dcpi -every 10",
			  "Send what many machines have put into a folder, in large requests." },
			{ NULL, NULL } },
};

static volatile sig_atomic_t stopped;

static void stop(int sig)
{
	(void)sig;
	stopped = 1;
}

static int open_server(struct store_server **s, struct base_err *err)
{
	int r = store_open(to, credentials, s, err);

	if (r < 0)
		return r;
	store_set_timeout(*s, (unsigned int)timeout * 1000);
	store_set_stop(*s, &stopped);
	return 0;
}

/* ---- the schema ------------------------------------------------------------------------------ */

static int schema(struct base_err *err)
{
	const struct store_schema_how how = { .cluster = cluster,
					      .replicas = replicas,
					      .ttl = true };
	struct base_buf sql = { 0 };
	struct store_url url;
	int r = store_url_parse(to, &url, err);

	if (r < 0)
		return r;
	r = store_schema(url.database, &how, &sql);
	for (size_t at = 0; r >= 0 && at < sql.len; at += strlen((char *)sql.data + at) + 1)
		printf("%s;\n", (const char *)sql.data + at);
	base_buf_release(&sql);
	store_url_release(&url);
	return r < 0 ? base_fail_errno(err, r, "cannot print the schema") : 0;
}

static int schema_make(struct base_err *err)
{
	const struct store_schema_how how = { .cluster = cluster, .replicas = replicas };
	struct store_server *s;
	int r = open_server(&s, err);

	if (r >= 0) {
		r = store_schema_make(s, &how, err);
		store_close(s);
	}
	return r;
}

static void on_removed(void *ctx, const char *table, const char *partition)
{
	(void)ctx;
	if (!quiet)
		printf("%s of %s removed\n", table, partition);
}

static int expire_old(struct base_err *err)
{
	struct store_server *s;
	int r = open_server(&s, err);

	if (r >= 0) {
		r = store_expire(s, (int64_t)time(NULL), on_removed, NULL, err);
		store_close(s);
	}
	return r;
}

/* ---- sums of many hours ---------------------------------------------------------------------- */

/* All days are looked at in the first turn of a day, and in others those that may still change. */
static int64_t sum_since(int64_t now)
{
	static int64_t looked = -1;
	bool all = looked != now / 86400;

	looked = now / 86400;
	return all ? 0 : now - 2 * 86400;
}

static int sum_store(struct base_err *err)
{
	int64_t now = (int64_t)time(NULL);
	struct store_server *s;
	uint64_t rows = 0;
	char id[64];
	int r = open_server(&s, err);

	if (r < 0)
		return r;
	r = store_schema_check(s, id, err);
	if (r >= 0)
		r = store_sum(s, sum_since(now), now, &rows, err);
	store_close(s);
	if (!quiet && rows)
		printf("%" PRIu64 " sums made\n", rows);
	return r;
}

/* ---- one round ------------------------------------------------------------------------------- */

/* Opens the store, and forgets what was known of another one before anything is packed. */
static int open_store(struct spool *sp, struct store_server **s, struct base_err *err)
{
	char id[64];
	int r = open_server(s, err);

	if (r >= 0)
		r = store_schema_check(*s, id, err);
	if (r >= 0 && sp)
		r = known_store(&sp->known, id, err);
	if (r > 0)
		fprintf(stderr,
			"%s: warning: the store is another one than before: images and routines "
			"are sent again with later epochs\n",
			cmd.name);
	return r < 0 ? r : 0;
}

static int send_from(struct store_server *s, int dir_fd, struct send *out, struct base_err *err)
{
	int r = send_batches(s, dir_fd, out, err);

	if (!quiet && out->batches)
		printf("%" PRIu64 " batches sent, %.1f MB\n", out->batches,
		       (double)out->bytes / 1e6);
	return r;
}

static int round_of(struct spool *sp, int dir_fd, struct send *out, struct base_err *err)
{
	struct gather g = {
		.prog = cmd.name, .platform = platform, .as = as, .open = open_too, .stop = &stopped
	};
	struct store_server *s = NULL;
	struct base_err why = { 0 };
	int sent = to ? open_store(sp, &s, err) : 0;
	int r = sp ? gather_epochs(sp, db, &g, &why) : 0;

	/* Batches are sent even where another epoch cannot be packed. */
	if (to && sent >= 0)
		sent = send_from(s, dir_fd, out, err);
	store_close(s);
	if (r >= 0 || sent < 0) {
		if (r < 0)
			fprintf(stderr, "%s: warning: %s\n", cmd.name, why.text);
		return sent;
	}
	*err = why;
	return r;
}

/* Nearly everything can pass; not what is wrong on the command line, or with its files. */
static bool again_helps(int r)
{
	return r != -DCPI_EUSAGE && r != -EPERM && r != -DCPI_ENOTDB;
}

/* A share of -jitter that differs between machines, and each time. */
static unsigned int wait_of(uint64_t *random)
{
	int64_t most = jitter >= 0 ? jitter : every / 10;

	return (unsigned int)(base_random64(random) % (uint64_t)(most + 1));
}

static void pause_for(unsigned int seconds)
{
	while (seconds && !stopped)
		seconds = sleep(seconds);
}

static int all_rounds(struct spool *sp, int dir_fd, struct send *out, struct base_err *err)
{
	uint64_t random = base_hash_seed();
	int r;

	for (;;) {
		if (jitter > 0 || every)
			pause_for(wait_of(&random));
		if (stopped)
			return 0;
		r = sum ? sum_store(err) : round_of(sp, dir_fd, out, err);
		if (!every || (r < 0 && !again_helps(r)))
			return r;
		/* All that was under way is done again at the next start. */
		if (stopped)
			return 0;
		if (r < 0)
			base_err_print(err, cmd.name, stderr);
		fflush(stdout);
		memset(err, 0, sizeof(*err));
		pause_for((unsigned int)every);
		if (stopped)
			return 0;
	}
}

static int rounds(struct spool *sp, int dir_fd, struct base_err *err)
{
	struct send out = { .prog = cmd.name, .known = sp ? &sp->known : NULL };
	int r = all_rounds(sp, dir_fd, &out, err);

	later_release(&out.later);
	return r;
}

/* ---- the command ----------------------------------------------------------------------------- */

static int compare(struct spool *sp, struct base_err *err)
{
	const struct gather g = {
		.prog = cmd.name, .platform = platform, .as = as, .stop = &stopped
	};
	struct store_server *s;
	int r = open_server(&s, err);

	if (r < 0)
		return r;
	r = verify(sp, s, db, &g, (unsigned int)wait_most, err);
	store_close(s);
	return r < 0 ? r : r ? BASE_EXIT_OK : BASE_EXIT_FAILED;
}

static int run_database(struct base_err *err)
{
	char *path = NULL;
	struct spool *sp;
	int r;

	if (!spool_path && asprintf(&path, "%s/ship", db) < 0)
		return base_fail_errno(err, -ENOMEM, "cannot start");
	if (verify_only)
		r = spool_look(spool_path ? spool_path : path, &sp, err);
	else
		r = spool_open(spool_path ? spool_path : path, (uint64_t)spool_limit << 20, &sp,
			       err);
	free(path);
	if (r < 0)
		return r;
	r = verify_only ? compare(sp, err) : rounds(sp, sp->dir_fd, err);
	spool_close(sp);
	return r;
}

static int run_relay(struct base_err *err)
{
	int fd = open(relay, O_RDONLY | O_DIRECTORY | O_CLOEXEC), r;

	if (fd < 0)
		return base_fail_errno(err, -errno, "cannot open '%s'", relay);
	r = rounds(NULL, fd, err);
	close(fd);
	return r;
}

/* A name without a slash that can be a folder, and is of no more bytes than others have. */
static bool is_platform(const char *name)
{
	struct profdb_place place;
	char path[PROFDB_PLATFORM_MAX + 64];

	return snprintf(path, sizeof(path), "202611280000/%s/image-0", name) < (int)sizeof(path) &&
	       profdb_place_parse(path, &place) >= 0;
}

static int check(struct base_err *err)
{
	if (relay && (db || spool_path || platform || as || open_too || verify_only))
		return base_fail(err, -DCPI_EUSAGE,
				 "-relay sends batches as they are: -db, -spool, -platform, -as, "
				 "-open and -verify are for a database");
	if (as && !is_platform(as))
		return base_fail(err, -DCPI_EUSAGE, "'%s' cannot be a platform's name", as);
	if (!db)
		db = getenv("DCPIDB");
	if (sum && (relay || spool_path || platform || as || open_too || verify_only))
		return base_fail(err, -DCPI_EUSAGE,
				 "-sum adds up what a store has: -relay, -spool, -platform, -as, "
				 "-open and -verify are for what is sent");
	if (!to && (relay || verify_only || make_schema || print_schema || expire || sum))
		return base_fail(err, -DCPI_EUSAGE, "no store given: use -to");
	if (relay || make_schema || print_schema || expire || sum)
		return 0;
	if (!db || !*db)
		return base_fail(err, -DCPI_EUSAGE, "no database given: use -db DIR or set DCPIDB");
	return profdb_refuse_store(db, err);
}

static int run(struct base_err *err)
{
	const struct sigaction act = { .sa_handler = stop };
	int r = check(err);

	if (r < 0)
		return r;
	sigaction(SIGTERM, &act, NULL);
	sigaction(SIGINT, &act, NULL);
	signal(SIGPIPE, SIG_IGN);
	if (print_schema)
		return schema(err);
	if (make_schema)
		return schema_make(err);
	if (expire)
		return expire_old(err);
	if (sum)
		return rounds(NULL, -1, err);
	return relay ? run_relay(err) : run_database(err);
}

int main(int argc, char **argv)
{
	struct base_err err = { 0 };
	int r, end;

	base_standard_fill(O_RDONLY);
	r = base_opt_parse(&cmd, &argc, &argv, &err);
	if (r >= 0 && r != BASE_OPT_DONE)
		r = run(&err);
	else if (r == BASE_OPT_DONE)
		r = BASE_EXIT_OK;
	end = base_output_end(&err);
	if (r >= 0 && end < 0)
		r = end;
	if (r >= 0)
		return r;
	base_err_print(&err, cmd.name, stderr);
	return r == -DCPI_EUSAGE ? BASE_EXIT_USAGE : BASE_EXIT_FAILED;
}
