/* SPDX-License-Identifier: BSD-2-Clause */
/* Batches on their way to a server that refuses some, or all, and that can change its mind. */
#include "scratch.h"
#include "ship.h"
#include "store_internal.h"

#include <arpa/inet.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/socket.h>

/* What the server shares with the test. */
struct shared {
	volatile uint64_t requests, wrong; /* so many answers are wrong */
	volatile bool trouble, drips, healed;
	volatile uint64_t columns; /* the answer to questions about columns */
	volatile uint64_t answer;  /* and to all others */
	char log[1 << 16];	   /* all requests' bodies, a line each */
};

struct fixture {
	char *dir;
	struct shared *shared;
	pid_t pid;
	struct store_server *server;
	struct send out;
	struct spool *spool;
};

/* ---- the server ------------------------------------------------------------------------------ */

/* A request whole: its length, or 0 where the other side has left. */
static size_t read_request(int c, char *to, size_t size)
{
	size_t len = 0, whole = 0;

	while (len < size - 1 && (!whole || len < whole)) {
		ssize_t got = read(c, to + len, size - 1 - len);
		char *head_end, *length;

		if (got <= 0)
			return 0;
		len += (size_t)got;
		to[len] = 0;
		head_end = memmem(to, len, "\r\n\r\n", 4);
		length = head_end ? strcasestr(to, "content-length:") : NULL;
		if (head_end)
			whole = (size_t)(head_end + 4 - to) +
				(length ? strtoul(length + 15, NULL, 10) : 0);
	}
	return len;
}

static void say(int c, const char *bytes, size_t len)
{
	if (write(c, bytes, len) < 0)
		_exit(1);
}

static void refuse(int c, const char *text)
{
	char answer[256];

	say(c, answer,
	    (size_t)snprintf(
		    answer, sizeof(answer),
		    "HTTP/1.1 500 Error\r\nConnection: close\r\nContent-Length: %zu\r\n\r\n%s",
		    strlen(text), text));
}

static void take(int c, struct shared *shared, bool question, bool columns)
{
	char answer[256];
	int len = snprintf(answer, sizeof(answer),
			   "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n",
			   question ? 8 : 0);
	uint64_t number = columns ? shared->columns : shared->wrong ? 1 : shared->answer;

	shared->wrong -= shared->wrong > 0;
	if (question)
		memcpy(answer + len, &number, 8);
	say(c, answer, (size_t)len + (question ? 8 : 0));
}

/* A byte of an endless head now and then, until the other side leaves. */
static void drip(int c)
{
	static const char head[] = "HTTP/1.1 200 OK\r\nX: ";

	if (write(c, head, sizeof(head) - 1) < 0)
		return;
	while (write(c, "x", 1) == 1)
		usleep(50000);
}

static void note(struct shared *shared, const char *request)
{
	const char *body = strstr(request, "\r\n\r\n");
	size_t len = strlen(shared->log);

	if (body)
		snprintf(shared->log + len, sizeof(shared->log) - len, "%s\n", body + 4);
}

static void answer(int c, struct shared *shared)
{
	static char request[1 << 20];
	size_t len = read_request(c, request, sizeof(request));

	if (!len)
		return;
	shared->requests++;
	note(shared, request);
	if (shared->drips)
		drip(c);
	else if (shared->trouble)
		refuse(c, "Code: 243, DB::Exception: Cannot reserve: not enough space");
	else if (!shared->healed && memmem(request, len, "SILENT", 6))
		return;
	else if (!shared->healed && memmem(request, len, "POISON", 6))
		refuse(c, "Code: 33, DB::Exception: Cannot read all data");
	else
		take(c, shared, memmem(request, len, "SELECT", 6),
		     memmem(request, len, "system.columns", 14));
}

static void serve(int fd, struct shared *shared)
{
	signal(SIGPIPE, SIG_IGN);
	for (;;) {
		int c = accept(fd, NULL, NULL);

		if (c < 0)
			_exit(1);
		answer(c, shared);
		close(c);
	}
}

static int setup(void **state)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t at_len = sizeof(at);
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	struct fixture *f = calloc(1, sizeof(*f));
	char url[64];

	scratch_setup((void **)&f->dir);
	f->shared = mmap(NULL, sizeof(*f->shared), PROT_READ | PROT_WRITE,
			 MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	assert_true(f->shared != MAP_FAILED);
	assert_true(fd >= 0 && bind(fd, (struct sockaddr *)&at, sizeof(at)) == 0);
	assert_int_equal(listen(fd, 16), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&at, &at_len), 0);
	f->pid = fork();
	assert_true(f->pid >= 0);
	if (f->pid == 0)
		serve(fd, f->shared);
	close(fd);
	snprintf(url, sizeof(url), "clickhouse://127.0.0.1:%u/d", ntohs(at.sin_port));
	assert_int_equal(store_open(url, NULL, &f->server, NULL), 0);
	assert_int_equal(spool_open(scratch_path(f->dir, "spool"), 1 << 24, &f->spool, NULL), 0);
	f->out = (struct send){ .prog = "test", .known = &f->spool->known };
	*state = f;
	return 0;
}

static int teardown(void **state)
{
	struct fixture *f = *state;

	kill(f->pid, SIGKILL);
	waitpid(f->pid, NULL, 0);
	munmap(f->shared, sizeof(*f->shared));
	later_release(&f->out.later);
	store_close(f->server);
	spool_close(f->spool);
	scratch_teardown((void **)&f->dir);
	free(f);
	return 0;
}

/* ---- batches --------------------------------------------------------------------------------- */

static void put(struct fixture *f, const char *name, const char *text)
{
	struct store_batch b = { 0 };
	struct base_buf *row = &b.rows[STORE_CONTENT], file = { 0 };
	char path[300];
	struct store_key hash;

	store_content_key(text, strlen(text), &hash);
	assert_int_equal(base_buf_append(row, &hash, sizeof(hash)), 0);
	assert_int_equal(base_buf_append_le(row, 1, 8), 0);
	assert_int_equal(store_put_text(row, text), 0);
	assert_int_equal(store_batch_format(&b, &file), 0);
	snprintf(path, sizeof(path), "spool/%s.batch", name);
	scratch_write(f->dir, path, file.data, file.len);
	base_buf_release(&file);
	store_batch_release(&b);
}

static void put_some(struct fixture *f, const char *prefix, int from, int to, const char *text)
{
	for (int i = from; i < to; i++) {
		char name[128];

		snprintf(name, sizeof(name), "%s%02d-box-1", prefix, i);
		put(f, name, text);
	}
}

/* A turn: how many batches went, with so many requests. */
static uint64_t turn(struct fixture *f, uint64_t *requests, int *code)
{
	struct base_err err = { 0 };
	uint64_t before = f->shared->requests;
	int r = send_batches(f->server, f->spool->dir_fd, &f->out, &err);

	if (requests)
		*requests = f->shared->requests - before;
	if (code)
		*code = r;
	return f->out.batches;
}

static size_t waiting(const struct fixture *f)
{
	size_t nr;

	spool_waiting(f->spool, &nr);
	return nr;
}

/* ---- tests ----------------------------------------------------------------------------------- */

/* Batches that are refused hold up the others for a turn, and are tried no more for a while; what
 * is known of the store is forgotten. */
static void test_poison(void **state)
{
	struct fixture *f = *state;
	uint64_t requests;
	int code;

	known_add(&f->spool->known, "12345678", 8);
	assert_int_equal(known_keep(&f->spool->known, NULL), 0);
	put_some(f, "2026112801", 0, 5, "POISON");
	put_some(f, "2026112802", 0, 4, "good");
	assert_int_equal(turn(f, &requests, &code), 0);
	assert_int_equal(code, -EPROTO);
	assert_int_equal(requests, 4);
	assert_true(known_has(&f->spool->known, "12345678", 8));
	for (int i = 0; waiting(f) > 5 && i < 3; i++)
		turn(f, NULL, &code);
	assert_int_equal(waiting(f), 5);
	assert_true(code < 0);
	assert_false(known_has(&f->spool->known, "12345678", 8));
	/* Each has been blamed by now, or is with the next good one. */
	put(f, "202611280300-box-1", "good");
	assert_int_equal(turn(f, NULL, NULL), 1);
	put(f, "202611280301-box-1", "good");
	turn(f, NULL, NULL);
	assert_int_equal(waiting(f), 5);
	put(f, "202611280302-box-1", "good");
	assert_int_equal(turn(f, &requests, &code), 1);
	assert_int_equal(requests, 1);
	assert_int_equal(code, 0);
	/* Nothing is set aside for good: another start tries again. */
	f->shared->healed = true;
	later_release(&f->out.later);
	f->out.later = (struct later){ .turn = 0 };
	assert_int_equal(turn(f, &requests, &code), 5);
	assert_int_equal(requests, 1);
	assert_int_equal(code, 0);
}

/* A server in trouble is asked a few times a turn, then left alone for a while, and gets everything
 * in one request afterwards. */
static void test_trouble(void **state)
{
	struct fixture *f = *state;
	uint64_t requests;
	int code;

	put_some(f, "2026112801", 0, 40, "good");
	f->shared->trouble = true;
	for (int i = 0; i < 10; i++) {
		assert_int_equal(turn(f, &requests, &code), 0);
		assert_int_equal(code, -EAGAIN);
		assert_int_equal(requests, i < 3 ? 4 : 0);
	}
	for (int i = 0; i < 8; i++) {
		int64_t pause = f->out.later.not_before - (int64_t)time(NULL);

		assert_in_range(pause, i < 4 ? (60 << i) - 5 : 595, i < 4 ? 60 << i : 600);
		f->out.later.not_before = 1;
		assert_int_equal(turn(f, &requests, &code), 0);
		assert_int_equal(requests, 4);
	}
	assert_int_equal(waiting(f), 40);
	f->shared->trouble = false;
	f->out.later.not_before = 1;
	assert_int_equal(turn(f, &requests, &code), 40);
	assert_int_equal(requests, 1);
	assert_int_equal(code, 0);
}

/* A batch to which the server gives no answer is behind the others in the next turn. */
static void test_silent(void **state)
{
	struct fixture *f = *state;
	int code;

	put(f, "202611280100-box-1", "SILENT");
	put_some(f, "2026112802", 0, 3, "good");
	assert_int_equal(turn(f, NULL, &code), 0);
	assert_int_equal(code, -EHOSTUNREACH);
	assert_int_equal(turn(f, NULL, &code), 3);
	assert_int_equal(waiting(f), 1);
}

/* A machine whose batches are refused holds up no other one, however many new ones it has. */
static void test_folders(void **state)
{
	struct fixture *f = *state;

	mkdir(scratch_path(f->dir, "spool/bad"), 0700);
	mkdir(scratch_path(f->dir, "spool/good"), 0700);
	f->out.known = NULL;
	for (int i = 0; i < 4; i++) {
		put_some(f, "bad/2026112801", 10 * i, 10 * i + 10, "POISON");
		put_some(f, "good/2026112802", 10 * i, 10 * i + 10, "good");
		assert_int_equal(turn(f, NULL, NULL), 10);
	}
	put(f, "bad/202611280300-bad-1", "good");
	for (int i = 0; i < 45 && turn(f, NULL, NULL) == 0; i++)
		;
	assert_int_equal(f->out.batches, 1);
}

/* Neither a server that drips nor one that says nothing is waited for longer than the deadline. */
static void test_deadline(void **state)
{
	struct fixture *f = *state;
	int code;

	f->shared->drips = true;
	store_set_timeout(f->server, 100);
	put(f, "202611280100-box-1", "good");
	assert_int_equal(turn(f, NULL, &code), 0);
	assert_int_equal(code, -EHOSTUNREACH);
	assert_int_equal(waiting(f), 1);
}

static volatile sig_atomic_t stopped;

static void stop(int sig)
{
	(void)sig;
	stopped = 1;
}

/* A request is given up at once where the program is to end. */
static void test_stopped(void **state)
{
	struct fixture *f = *state;
	const struct sigaction act = { .sa_handler = stop };
	int code;

	f->shared->drips = true;
	put(f, "202611280100-box-1", "good");
	store_set_stop(f->server, &stopped);
	sigaction(SIGALRM, &act, NULL);
	ualarm(50000, 0);
	assert_int_equal(turn(f, NULL, &code), 0);
	assert_int_equal(code, -ECANCELED);
	assert_int_equal(waiting(f), 1);
}

/* Pauses grow to an hour, and a machine counts as refused for as long. */
static void test_pauses(void **state)
{
	struct later l = { .turn = 0 };
	int64_t now = 1000, pause, last = 0;

	(void)state;
	for (int i = 0; i < 9; i++) {
		assert_int_equal(later_begin(&l), 0);
		assert_int_not_equal(later_rank(&l, "m/a", now).class, LATER_NOT_YET);
		assert_int_equal(later_note(&l, "m/a"), 0);
		assert_true(later_skip(&l, "m/b"));
		assert_false(later_skip(&l, "n/b"));
		assert_int_equal(later_end(&l, true, false, now), i == 0);
		assert_int_equal(later_rank(&l, "m/a", now).class, LATER_NOT_YET);
		pause = later_rank(&l, "m/a", now).when - now;
		assert_true(pause == (i < 6 ? 60 << i : 3600));
		assert_true(pause >= last);
		last = pause;
		now += pause;
	}
	assert_int_equal(later_begin(&l), 0);
	assert_int_equal(later_rank(&l, "m/c", now).class, LATER_BEHIND);
	assert_int_equal(later_end(&l, true, false, now), 0);
	assert_int_equal(later_begin(&l), 0);
	assert_int_equal(later_rank(&l, "m/c", now).class, LATER_FIRST);
	later_release(&l);
}

/* ---- -verify --------------------------------------------------------------------------------- */

static void ship_one(struct fixture *f, const char *dir)
{
	struct profdb *db = scratch_open(dir, true);
	char epoch[PROFDB_EPOCH_LEN + 1];

	assert_int_equal(profdb_lock(db, "box", NULL), 0);
	assert_int_equal(profdb_epoch_start(db, (int64_t)time(NULL), epoch, NULL), 0);
	assert_int_equal(profdb_flush_begin(db, NULL), 0);
	scratch_put(db, "/bin/prog", 1, 10);
	assert_int_equal(profdb_flush_commit(db, NULL), 0);
	assert_int_equal(profdb_epoch_finish(db, NULL), 0);
	profdb_close(db);
	assert_int_equal(spool_set_shipped(f->spool, epoch, "box", NULL), 0);
}

/* A replica that lags behind is asked again; a difference that stays is told. */
static void test_verify(void **state)
{
	struct fixture *f = *state;
	const char *dir = scratch_path(f->dir, "db");
	const struct gather g = { .prog = "test" };

	ship_one(f, dir);
	f->shared->answer = 30;
	assert_int_equal(verify(f->spool, f->server, dir, &g, 0, NULL), 1);
	f->shared->wrong = 1;
	assert_int_equal(verify(f->spool, f->server, dir, &g, 0, NULL), 0);
	f->shared->wrong = 1;
	assert_int_equal(verify(f->spool, f->server, dir, &g, 1, NULL), 1);
	f->shared->answer = 29;
	assert_int_equal(verify(f->spool, f->server, dir, &g, 0, NULL), 0);
}

/* ---- versions of the tables ------------------------------------------------------------------ */

static const struct store_step made_up[] = {
	{ 2, STORE_PROF, "a", "UInt8" },
	{ 3, STORE_WORK, "b", "UInt8 DEFAULT 7" },
	{ 0, STORE_PROF, NULL, NULL },
};

/* The answer to "which version, and which mark?", of eight bytes: @version, and "abc". */
static void set_version(struct fixture *f, uint64_t version)
{
	f->shared->answer = version | UINT64_C(3) << 32 | UINT64_C(0x636261) << 40;
	f->shared->log[0] = 0;
}

static bool asked(const struct fixture *f, const char *text)
{
	return strstr(f->shared->log, text);
}

/* An older store gets what it lacks, the version last; one of now or later is left alone. */
static void test_migrate(void **state)
{
	struct fixture *f = *state;
	const struct store_schema_how how = { .cluster = NULL }, cluster = { .cluster = "c" };
	struct base_err err = { 0 };
	const char *step;

	set_version(f, 2);
	assert_int_equal(store_schema_migrate(f->server, made_up, 3, &how, NULL), 0);
	assert_false(asked(f, "ALTER TABLE prof"));
	assert_true(asked(f, "CREATE TABLE IF NOT EXISTS totals"));
	step = strstr(f->shared->log, "ALTER TABLE work ADD COLUMN b UInt8 DEFAULT 7\n");
	assert_non_null(step);
	assert_non_null(strstr(step, "INSERT INTO schema SELECT 3, any(id) FROM schema "));
	set_version(f, 1);
	assert_int_equal(store_schema_migrate(f->server, made_up, 3, &how, NULL), 0);
	assert_true(asked(f, "ALTER TABLE prof ADD COLUMN a UInt8\n"));
	assert_true(asked(f, "ALTER TABLE work ADD"));
	/* A column that is there is left alone. */
	set_version(f, 1);
	f->shared->columns = 1;
	assert_int_equal(store_schema_migrate(f->server, made_up, 3, &how, NULL), 0);
	assert_false(asked(f, "ALTER"));
	assert_true(asked(f, "INSERT INTO schema"));
	set_version(f, 3);
	assert_int_equal(store_schema_migrate(f->server, made_up, 3, &how, NULL), 0);
	assert_false(asked(f, "ALTER"));
	set_version(f, 4);
	assert_int_equal(store_schema_migrate(f->server, made_up, 3, &how, &err), -DCPI_EVERSION);
	assert_non_null(strstr(err.hint, "older"));
	set_version(f, 1);
	assert_int_equal(store_schema_migrate(f->server, made_up, 3, &cluster, NULL), -DCPI_EUSAGE);
	assert_false(asked(f, "ALTER"));
}

int main(void)
{
#define server_test(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
	const struct CMUnitTest tests[] = {
		server_test(test_poison),      server_test(test_trouble),
		server_test(test_silent),      server_test(test_folders),
		server_test(test_deadline),    server_test(test_stopped),
		cmocka_unit_test(test_pauses), server_test(test_verify),
		server_test(test_migrate),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
