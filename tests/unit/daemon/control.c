/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "fast_clock.h"
#include "reader_internal.h"
#include "stand_ins.h"

static char dir[] = "/tmp/dcpi-control-XXXXXX";
static struct control *c;
static unsigned int nr_asked;
static unsigned int nr_later;	/* that often an epoch is not done yet */
static void (*meanwhile)(void); /* called while a flush is done */
static unsigned int nr_flushed;
static unsigned int nr_files; /* that came with requests */
static size_t answer_len;
static uint64_t answer_ns;

/* ---- both ends ------------------------------------------------------------------------------- */

static int answer(void *ctx, const struct control_request *request, const struct control_peer *peer,
		  struct base_buf *reply)
{
	void *fill;

	assert_ptr_equal(ctx, &nr_asked);
	assert_int_equal(peer->pid, getpid());
	assert_int_equal(peer->uid, geteuid());
	nr_asked++;
	if (request->command == CONTROL_FLUSH && meanwhile) {
		nr_flushed++;
		for (int i = 0; i < 4; i++)
			meanwhile();
	}
	if (request->command == CONTROL_EPOCH && nr_later) {
		nr_later--;
		return CONTROL_LATER;
	}
	if (request->command == CONTROL_FLUSH) {
		int fd = reader_peek_fd(peer->sock);

		nr_files += fd >= 0;
		if (fd >= 0)
			close(fd);
	}
	ahead_ns += answer_ns;
	if (answer_len) {
		assert_int_equal(base_buf_extend(reply, answer_len, &fill), 0);
		memset(fill, 'x', answer_len);
	}
	return base_buf_printf(reply, "did %d\n", (int)request->command);
}

static int setup(void **state)
{
	struct base_err err = { 0 };

	(void)state;
	nr_asked = 0;
	answer_len = answer_ns = 0;
	nr_files = 0;
	strcpy(dir + strlen(dir) - 6, "XXXXXX");
	assert_non_null(mkdtemp(dir));
	assert_int_equal(control_open(dir, answer, &nr_asked, &c, &err), 0);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	control_close(c);
	assert_int_equal(rmdir(dir), 0);
	return 0;
}

static int connected(void)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0);

	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/control", dir);
	assert_int_equal(connect(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	return fd;
}

static int client(void)
{
	int fd = connected();

	control_serve(c);
	return fd;
}

static void say(int fd, const char *text)
{
	assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

/* What came, after some turns of the loop; "" where nothing did, "closed" at the end. */
static const char *hear(int fd)
{
	static char text[1024];
	ssize_t n;

	for (int i = 0; i < 8; i++)
		control_serve(c);
	n = recv(fd, text, sizeof(text) - 1, 0);
	if (n == 0 || (n < 0 && errno != EAGAIN))
		return "closed";
	text[n < 0 ? 0 : n] = '\0';
	return text;
}

static bool held; /* our user has sent files that are not closed yet */

bool __wrap_closer_is_held(uint32_t uid);
bool __wrap_closer_is_held(uint32_t uid)
{
	assert_int_equal(uid, geteuid());
	return held;
}

static void request_and_answer(void **state)
{
	int fd = client();

	(void)state;
	say(fd, "{\"cmd\":\"flush\"}\n");
	assert_string_equal(hear(fd), "did 1\n");
	say(fd, "{\"cmd\":\"status\"}\n{\"cmd\":\"epoch\"}\n{\"cmd\":");
	assert_string_equal(hear(fd), "did 0\ndid 2\n");
	say(fd, "\"quit\"}\n");
	assert_string_equal(hear(fd), "did 3\n");
	say(fd, "nonsense\n");
	assert_non_null(strstr(hear(fd), "\"ok\":false"));
	say(fd, "{\"cmd\":\"status\"}\n");
	assert_string_equal(hear(fd), "did 0\n");
	close(fd);
}

/* Until it is done the loop does not sleep, nor is it called without a pause. */
static void serve_turns(void)
{
	struct pollfd wait = { .fd = control_poll_fd(c), .events = POLLIN };
	uint64_t begin_ns = base_now_ns();
	unsigned int nr = nr_later;
	bool last;

	do {
		last = !nr_later;
		assert_int_equal(poll(&wait, 1, 10000), 1);
		control_serve(c);
	} while (!last);
	assert_true(base_now_ns() - begin_ns >= (nr - 1) * UINT64_C(1000000));
}

/* A request that takes several turns: others are answered meanwhile. */
static void request_that_takes_turns(void **state)
{
	struct pollfd wait = { .fd = control_poll_fd(c), .events = POLLIN };
	int fd = client(), other = client();

	(void)state;
	nr_later = 20;
	say(fd, "{\"cmd\":\"epoch\"}\n{\"cmd\":\"flush\"}\n");
	assert_string_equal(hear(fd), "");
	say(other, "{\"cmd\":\"status\"}\n");
	assert_string_equal(hear(other), "did 0\n");
	assert_true(nr_later > 0);
	serve_turns();
	assert_string_equal(hear(fd), "did 2\ndid 1\n");
	assert_int_equal(poll(&wait, 1, 0), 0);
	/* Its client leaves. */
	nr_later = 20;
	say(fd, "{\"cmd\":\"epoch\"}\n");
	assert_string_equal(hear(fd), "");
	close(fd);
	serve_turns();
	say(other, "{\"cmd\":\"status\"}\n");
	assert_string_equal(hear(other), "did 0\n");
	close(other);
}

static void serve_status(void)
{
	control_serve_status(c);
}

static void keep(const char *status)
{
	struct base_buf kept = { 0 };

	assert_int_equal(base_buf_printf(&kept, "%s", status), 0);
	control_keep(c, &kept);
	base_buf_release(&kept);
}

/* While one request is served for long, those who ask for the status alone are told what is kept.
 */
static void status_meanwhile(void **state)
{
	int busy = client(), epoch = client(), status = client(), late;

	(void)state;
	say(busy, "{\"cmd\":\"flush\"}\n");
	say(epoch, "{\"cmd\":\"epoch\"}\n");
	say(status, "{\"cmd\":\"status\"}\n");
	late = connected();
	say(late, "{\"cmd\":\"status\"}\n");
	keep("kept\n");
	meanwhile = serve_status;
	nr_asked = nr_flushed = 0;
	control_serve(c);
	meanwhile = NULL;
	assert_int_equal(nr_flushed, 1);
	assert_string_equal(hear(busy), "did 1\n");
	assert_string_equal(hear(epoch), "did 2\n");
	assert_string_equal(hear(status), "kept\n");
	assert_string_equal(hear(late), "kept\n");
	assert_int_equal(nr_asked, 2);
	close(busy);
	close(epoch);
	close(status);
	close(late);
}

/* Where nothing is kept, they wait for the loop. */
static void no_status_meanwhile(void **state)
{
	int busy = client(), status = client();

	(void)state;
	say(busy, "{\"cmd\":\"flush\"}\n");
	say(status, "{\"cmd\":\"status\"}\n");
	keep("kept\n");
	control_keep(c, NULL);
	meanwhile = serve_status;
	assert_string_equal(hear(busy), "did 1\n");
	meanwhile = NULL;
	assert_string_equal(hear(status), "did 0\n");
	close(busy);
	close(status);
}

/* An answer that comes by itself. */
static const char *await(int fd)
{
	static char text[1024];
	struct pollfd p = { .fd = fd, .events = POLLIN };
	ssize_t n = poll(&p, 1, 60000) == 1 ? recv(fd, text, sizeof(text) - 1, 0) : -1;

	assert_true(n > 0);
	text[n] = '\0';
	return text;
}

/* The loop stands still, and a request is being carried out for ever: a thread tells the status. */
static void stand_in_tells_the_status(void **state)
{
	int early = client(), quit = client(), late;

	(void)state;
	keep("kept\n");
	assert_int_equal(control_stand_in(c), 0);
	say(early, "{\"cmd\":\"status\"}\n");
	assert_string_equal(await(early), "kept\n");
	say(quit, "{\"cmd\":\"quit\"}\n");
	late = connected();
	say(late, "{\"cmd\":\"status\"}\n");
	assert_string_equal(await(late), "kept\n");
	/* What is more than a status is the loop's. */
	assert_int_equal(nr_asked, 0);
	assert_string_equal(hear(quit), "did 3\n");
	close(early);
	close(quit);
	close(late);
}

static int late_fd;

static void ask_late(void)
{
	if (late_fd < 0)
		late_fd = connected();
	say(late_fd, "{\"cmd\":\"status\"}\n");
	assert_string_equal(await(late_fd), "kept\n");
}

/* The same within a request that takes long. */
static void stand_in_within_a_request(void **state)
{
	int busy = client();

	(void)state;
	late_fd = -1;
	keep("kept\n");
	assert_int_equal(control_stand_in(c), 0);
	say(busy, "{\"cmd\":\"flush\"}\n");
	meanwhile = ask_late;
	assert_string_equal(hear(busy), "did 1\n");
	meanwhile = NULL;
	assert_int_equal(nr_asked, 1);
	close(busy);
	close(late_fd);
}

/* The place of a client that has gone is another's. */
static void take_its_place(void)
{
	control_serve_status(c);
	if (late_fd < 0)
		late_fd = connected();
	control_serve_status(c);
}

/* What was seen of one that goes while another is served is not the next one's. */
static void place_of_one_that_goes(void **state)
{
	int busy = client(), gone = client();

	(void)state;
	late_fd = -1;
	keep("kept\n");
	say(busy, "{\"cmd\":\"flush\"}\n");
	close(gone);
	meanwhile = take_its_place;
	control_serve(c);
	meanwhile = NULL;
	assert_string_equal(hear(busy), "did 1\n");
	say(late_fd, "{\"cmd\":\"status\"}\n");
	assert_string_equal(hear(late_fd), "did 0\n");
	close(busy);
	close(late_fd);
}

/* Whom it is sent to takes a request's descriptor, which we do not have at any time. */
static void descriptors(void **state)
{
	int fd = client(), null = open("/dev/null", O_RDONLY | O_CLOEXEC);

	(void)state;
	for (int i = 0; i < 3; i++) {
		say(fd, "{\"cmd\":\"flush\"}");
		assert_string_equal(hear(fd), "");
		assert_int_equal(reader_send(fd, "\n", 1, i ? null : -1), 0);
		assert_string_equal(hear(fd), "did 1\n");
		assert_int_equal(nr_files, i);
	}
	/* With another request, or before its end, it is nobody's. */
	say(fd, "{\"cmd\":\"status\"}");
	assert_int_equal(reader_send(fd, "\n", 1, null), 0);
	assert_string_equal(hear(fd), "did 0\n");
	assert_int_equal(reader_send(fd, "{", 1, null), 0);
	say(fd, "\"cmd\":\"flush\"}\n");
	assert_string_equal(hear(fd), "did 1\n");
	assert_int_equal(nr_files, 2);
	close(null);
	close(fd);
}

static void last_words(void **state)
{
	int fd = client();

	(void)state;
	say(fd, "{\"cmd\":\"status\"}\n");
	shutdown(fd, SHUT_WR);
	assert_string_equal(hear(fd), "did 0\n");
	assert_string_equal(hear(fd), "closed");
	close(fd);
}

static void too_long_a_line(void **state)
{
	char *line = malloc(CONTROL_LINE_MAX + 1);
	size_t sent = 0;
	int fd = client();

	(void)state;
	memset(line, 'a', CONTROL_LINE_MAX + 1);
	while (sent < CONTROL_LINE_MAX + 1) {
		ssize_t n = send(fd, line + sent, CONTROL_LINE_MAX + 1 - sent, MSG_NOSIGNAL);

		assert_true(n > 0 || errno == EAGAIN);
		sent += n > 0 ? (size_t)n : 0;
		control_serve(c);
	}
	assert_non_null(strstr(hear(fd), "longer than"));
	assert_string_equal(hear(fd), "closed");
	assert_int_equal(nr_asked, 0);
	close(fd);
	free(line);
}

static void files_are_not_closed_yet(void **state)
{
	int fd = client();

	(void)state;
	held = true;
	say(fd, "{\"cmd\":\"status\"}\n");
	assert_non_null(strstr(hear(fd), "still being closed\",\"hint\":\"try again later\""));
	assert_string_equal(hear(fd), "closed");
	assert_int_equal(nr_asked, 0);
	held = false;
	close(fd);
}

/* Who asks and does not read holds up nobody, and not much memory. */
static void reads_nothing(void **state)
{
	int fd = client(), good = client();
	unsigned int before;

	(void)state;
	answer_len = 100 << 10;
	for (int i = 0; i < 100; i++) {
		if (send(fd, "{\"cmd\":\"status\"}\n", 17, MSG_NOSIGNAL) < 0)
			break;
		control_serve(c);
	}
	before = nr_asked;
	assert_true(before < 20);
	answer_len = 0;
	say(good, "{\"cmd\":\"status\"}\n");
	assert_string_equal(hear(good), "did 0\n");
	assert_int_equal(nr_asked, before + 1);
	close(fd);
	close(good);
}

static void many_clients(void **state)
{
	int fds[CONTROL_CLIENTS], extra;

	(void)state;
	for (int i = 0; i < CONTROL_CLIENTS; i++)
		fds[i] = client();
	extra = client();
	assert_non_null(strstr(hear(extra), "too many clients"));
	assert_string_equal(hear(extra), "closed");
	close(extra);
	close(fds[5]);
	control_serve(c);
	extra = client();
	say(extra, "{\"cmd\":\"status\"}\n");
	assert_string_equal(hear(extra), "did 0\n");
	for (int i = 0; i < CONTROL_CLIENTS; i++)
		if (i != 5)
			close(fds[i]);
	close(extra);
}

/* Of another user; the kernel notes who connects. */
static int stranger(uid_t uid)
{
	int fd;

	assert_int_equal(seteuid(uid), 0);
	fd = connected();
	assert_int_equal(seteuid(0), 0);
	control_serve(c);
	return fd;
}

/* However many of them ask, another user is answered, and, whoever asks, root. */
static void strangers_leave_room(void **state)
{
	int fds[CONTROL_CLIENTS], nr = 0, fd;

	(void)state;
	if (geteuid() != 0)
		skip();
	assert_int_equal(chmod(dir, 0755), 0);
	for (uid_t uid = 65534; uid > 65530; uid--) {
		int before = nr;

		while (fds[nr] = stranger(uid), !*hear(fds[nr]))
			assert_in_range(++nr, 1, CONTROL_CLIENTS - 1);
		close(fds[nr]);
		assert_true(nr > before || uid < 65533);
	}
	fd = client();
	say(fd, "{\"cmd\":\"status\"}\n");
	assert_string_equal(hear(fd), "did 0\n");
	close(fd);
	while (nr-- > 0)
		close(fds[nr]);
}

/* Who begins a request and never ends it keeps its place for half a minute. */
static void silent_ones_go(void **state)
{
	int fd = client(), other;

	(void)state;
	say(fd, "{\"cmd\":");
	assert_string_equal(hear(fd), "");
	ahead_ns += 20 * 1000000000ull;
	assert_string_equal(hear(fd), "");
	other = client();
	ahead_ns += 20 * 1000000000ull;
	assert_string_equal(hear(fd), "closed");
	assert_string_equal(hear(other), "");
	assert_int_equal(nr_asked, 0);
	close(fd);
	close(other);
}

/* It was not he who was silent. */
static void asks_during_a_long_answer(void **state)
{
	int fd = client(), other;

	(void)state;
	other = connected();
	say(fd, "{\"cmd\":\"flush\"}\n");
	say(other, "{\"cmd\":\"status\"}\n");
	answer_ns = 40 * 1000000000ull;
	control_serve(c);
	answer_ns = 0;
	assert_string_equal(hear(fd), "did 1\n");
	assert_string_equal(hear(other), "did 0\n");
	close(fd);
	close(other);
}

/* Nor is an answer that takes long one's own silence, or what the daemon does between two lines. */
static void asks_for_long_answers(void **state)
{
	int fd = client();

	(void)state;
	say(fd, "{\"cmd\":\"flush\"}\n{\"cmd\":\"status\"}\n{\"cmd\":\"quit\"}\n");
	answer_ns = 35 * 1000000000ull;
	control_serve(c);
	answer_ns = 0;
	ahead_ns += 35 * 1000000000ull;
	assert_string_equal(hear(fd), "did 1\ndid 0\ndid 3\n");
	ahead_ns += 20 * 1000000000ull;
	assert_string_equal(hear(fd), "");
	ahead_ns += 20 * 1000000000ull;
	assert_string_equal(hear(fd), "closed");
	close(fd);
}

/* What others' answers take is added to nobody's silence, and takes nothing from it. */
static void waits_for_others(void **state)
{
	int fd = client(), other = client();

	(void)state;
	ahead_ns += 20 * 1000000000ull;
	say(other, "{\"cmd\":\"flush\"}\n");
	answer_ns = 40 * 1000000000ull;
	assert_string_equal(hear(other), "did 1\n");
	answer_ns = 0;
	assert_string_equal(hear(fd), "");
	ahead_ns += 20 * 1000000000ull;
	assert_string_equal(hear(fd), "closed");
	assert_string_equal(hear(other), "");
	close(fd);
	close(other);
}

static bool wants_serving(void)
{
	struct pollfd p = { .fd = control_poll_fd(c), .events = POLLIN };

	return poll(&p, 1, 0) == 1;
}

/* Who cannot be accepted is told so, and does not wake us for ever. */
static void no_descriptors(void **state)
{
	struct rlimit old, low;
	int fd = connected(), first = dup(0);

	(void)state;
	assert_int_equal(close(first), 0);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	low = (struct rlimit){ .rlim_cur = (rlim_t)first, .rlim_max = old.rlim_max };
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
	for (int i = 0; i < 8; i++)
		control_serve(c);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
	assert_false(wants_serving());
	assert_non_null(strstr(hear(fd), "\"ok\":false"));
	close(fd);
	fd = client();
	say(fd, "{\"cmd\":\"status\"}\n");
	assert_string_equal(hear(fd), "did 0\n");
	close(fd);
}

/* Each says half a request and goes: whoever comes behind them is answered. */
static void a_thousand_at_once(void **state)
{
	int fds[1000], fd, refused = 0;

	(void)state;
	for (int i = 0; i < 1000; i++) {
		fds[i] = client();
		send(fds[i], "{\"cmd\":\"sta", 11, MSG_NOSIGNAL);
		control_serve(c);
	}
	for (int i = 0; i < 1000; i++) {
		const char *said = hear(fds[i]);

		refused += strstr(said, "too many clients") || !strcmp(said, "closed");
		if (*said)
			close(fds[i]);
	}
	assert_int_equal(refused, 1000 - CONTROL_CLIENTS);
	assert_int_equal(nr_asked, 0);
	for (int i = 0; i < CONTROL_CLIENTS; i++)
		close(fds[i]);
	hear(fds[999]);
	fd = client();
	say(fd, "{\"cmd\":\"status\"}\n");
	assert_string_equal(hear(fd), "did 0\n");
	close(fd);
}

static void second_daemon(void **state)
{
	struct control *second = NULL;
	struct base_err err = { 0 };
	int fd;

	(void)state;
	assert_int_equal(control_open(dir, answer, &nr_asked, &second, &err), -DCPI_EBUSY);
	assert_null(second);
	assert_non_null(strstr(err.hint, "-run"));
	/* The first one's socket is still there. */
	fd = client();
	say(fd, "{\"cmd\":\"status\"}\n");
	assert_string_equal(hear(fd), "did 0\n");
	close(fd);
}

static void stale_socket(void **state)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	struct base_err err = { 0 };
	struct stat st;
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	(void)state;
	control_close(c);
	snprintf(addr.sun_path, sizeof(addr.sun_path), "%s/control", dir);
	assert_int_equal(bind(fd, (struct sockaddr *)&addr, sizeof(addr)), 0);
	close(fd);
	assert_int_equal(control_open(dir, answer, &nr_asked, &c, &err), 0);
	assert_int_equal(stat(addr.sun_path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0666);
}

static void no_folder(void **state)
{
	struct control *none = NULL;
	struct base_err err = { 0 };
	char name[300];

	(void)state;
	assert_int_equal(control_open("/nonexistent", answer, &nr_asked, &none, &err), -ENOENT);
	memset(name, 'a', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	err = (struct base_err){ 0 };
	assert_int_equal(control_open(name, answer, &nr_asked, &none, &err), -ENAMETOOLONG);
}

static void answer_at_close(void **state)
{
	int fd = client();
	char text[64] = "";

	(void)state;
	say(fd, "{\"cmd\":\"quit\"}\n");
	control_serve(c);
	control_close(c);
	assert_true(recv(fd, text, sizeof(text) - 1, 0) > 0);
	assert_string_equal(text, "did 3\n");
	close(fd);
	assert_int_equal(control_open(dir, answer, &nr_asked, &c, &(struct base_err){ 0 }), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(request_and_answer),
		TEST(request_that_takes_turns),
		TEST(status_meanwhile),
		TEST(no_status_meanwhile),
		TEST(stand_in_tells_the_status),
		TEST(stand_in_within_a_request),
		TEST(place_of_one_that_goes),
		TEST(descriptors),
		TEST(last_words),
		TEST(too_long_a_line),
		TEST(files_are_not_closed_yet),
		TEST(reads_nothing),
		TEST(many_clients),
		TEST(a_thousand_at_once),
		TEST(strangers_leave_room),
		TEST(silent_ones_go),
		TEST(second_daemon),
		TEST(stale_socket),
		TEST(no_folder),
		TEST(answer_at_close),
		TEST(asks_during_a_long_answer),
		TEST(asks_for_long_answers),
		TEST(waits_for_others),
		TEST(no_descriptors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
