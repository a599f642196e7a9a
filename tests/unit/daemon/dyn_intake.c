/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "closer.h"
#include "jit_internal.h"
#include "fake_registry.h"
#include "reader_internal.h"

struct trial {
	char dir[64], queue[64];
	struct dyn_intake in;
};

/* Descriptors are closed by another thread. */
static void assert_closed(unsigned int before)
{
	for (int i = 0; i < 10000 && fake_nr_descriptors() != before; i++)
		usleep(1000);
	assert_int_equal(fake_nr_descriptors(), before);
}

static int setup(void **state)
{
	struct trial *t = calloc(1, sizeof(*t));
	struct base_err err = { 0 };
	int fd;

	base_log_init(stderr, BASE_LOG_ERROR, BASE_LOG_BARE);
	/* What it needs itself is open before descriptors are counted. */
	fd = dup(STDERR_FILENO);
	closer_close(fd);
	while (fcntl(fd, F_GETFD) >= 0)
		usleep(1000);
	strcpy(t->dir, "/tmp/dcpi-unit-XXXXXX");
	assert_non_null(mkdtemp(t->dir));
	snprintf(t->queue, sizeof(t->queue), "/dcpi-unit-%d", getpid());
	if (dyn_intake_open(&t->in, t->dir, t->queue, &err) < 0)
		fail_msg("%s", err.text);
	*state = t;
	return 0;
}

static int teardown(void **state)
{
	struct trial *t = *state;
	char path[128];

	dyn_intake_close(&t->in);
	/* The socket is gone, or the folder could not be removed. */
	snprintf(path, sizeof(path), "%s/dyn", t->dir);
	assert_int_equal(access(path, F_OK), -1);
	assert_int_equal(rmdir(t->dir), 0);
	free(t);
	return 0;
}

static int dial(const struct trial *t)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	snprintf(to.sun_path, sizeof(to.sun_path), "%s/dyn", t->dir);
	assert_int_equal(connect(fd, (void *)&to, sizeof(to)), 0);
	return fd;
}

static void hand_over(const struct trial *t, int fd)
{
	struct wire_doorbell bell = { .magic = WIRE_DOORBELL_MAGIC,
				      .version = WIRE_REGISTRY_VERSION };
	int sock = dial(t);

	assert_int_equal(reader_send(sock, &bell, sizeof(bell), fd), 0);
	close(sock);
}

static int next(struct trial *t)
{
	struct dyn_peer peer = { .pidfd = -1 };
	int fd = dyn_intake_next(&t->in, &peer);

	if (fd >= 0) {
		assert_int_equal(peer.pid, getpid());
		assert_int_equal(peer.uid, getuid());
		assert_true(peer.pidfd >= 0);
		close(peer.pidfd);
	}
	return fd;
}

static void test_hand_over(void **state)
{
	struct trial *t = *state;
	unsigned int before = fake_nr_descriptors();
	struct stat a, b;
	struct fake f;
	int fd;

	assert_int_equal(next(t), -EAGAIN);
	fake_open(&f, WIRE_PAGE);
	hand_over(t, f.fd);
	fd = next(t);
	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &a) + fstat(f.fd, &b), 0);
	assert_int_equal(a.st_ino, b.st_ino);
	assert_int_equal(fcntl(fd, F_GETFD), FD_CLOEXEC);
	close(fd);
	assert_int_equal(next(t), -EAGAIN);
	fake_close(&f);
	assert_closed(before);
}

/* Both ends of a TCP connection on this machine. */
static void connect_tcp(int *client, int *server)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	socklen_t len = sizeof(to);

	assert_int_equal(bind(listener, (void *)&to, sizeof(to)) + listen(listener, 1), 0);
	assert_int_equal(getsockname(listener, (void *)&to, &len), 0);
	*client = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(*client, (void *)&to, sizeof(to)), 0);
	*server = accept(listener, NULL, NULL);
	assert_true(*server >= 0);
	close(listener);
}

/* Fill what the connection holds: closing it waits for an hour then, or until it is read. */
static size_t fill(int sock)
{
	const struct linger hour = { .l_onoff = 1, .l_linger = 3600 };
	static char bytes[4096];
	size_t sent = 0;
	ssize_t n;

	assert_int_equal(setsockopt(sock, SOL_SOCKET, SO_LINGER, &hour, sizeof(hour)), 0);
	while ((n = send(sock, bytes, sizeof(bytes), MSG_DONTWAIT)) > 0)
		sent += (size_t)n;
	return sent;
}

static size_t read_all(int sock)
{
	char bytes[4096];
	size_t got = 0;
	ssize_t n;

	while ((n = read(sock, bytes, sizeof(bytes))) > 0)
		got += (size_t)n;
	assert_int_equal(n, 0);
	return got;
}

/* Nothing that a client sends keeps us from the next one. */
static void test_slow_close(void **state)
{
	struct trial *t = *state;
	unsigned int before = fake_nr_descriptors();
	int client, server;
	size_t sent;

	connect_tcp(&client, &server);
	sent = fill(client);
	hand_over(t, client);
	close(client);
	assert_int_equal(next(t), -EPERM);
	assert_int_equal(next(t), -EAGAIN);
	assert_int_equal(read_all(server), sent);
	close(server);
	assert_closed(before);
}

/* The descriptor lies in a connection that is dropped unread. */
static void test_slow_close_unread(void **state)
{
	struct trial *t = *state;
	unsigned int before = fake_nr_descriptors();
	int client, server, sock = dial(t);
	size_t sent;

	connect_tcp(&client, &server);
	sent = fill(client);
	assert_int_equal(next(t), -EINPROGRESS);
	assert_int_equal(reader_send(sock, "x", 1, client), 0);
	assert_int_equal(reader_send(sock, "x", 1, client), 0);
	close(client);
	close(sock);
	assert_int_equal(next(t), -EAGAIN);
	assert_int_equal(read_all(server), sent);
	close(server);
	assert_closed(before);
}

static void test_refused(void **state)
{
	struct trial *t = *state;
	unsigned int before = fake_nr_descriptors();
	char path[64];
	int pair[2], plain, readonly, sock, fd;
	struct fake f;

	fake_open(&f, WIRE_PAGE);
	assert_int_equal(pipe(pair), 0);
	plain = memfd_create("dbgdyn", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	snprintf(path, sizeof(path), "/proc/self/fd/%d", f.fd);
	readonly = open(path, O_RDONLY);
	hand_over(t, pair[0]);
	hand_over(t, plain);
	hand_over(t, readonly);
	/* Not our message. */
	sock = dial(t);
	assert_int_equal(reader_send(sock, "hello, daemon...", 16, f.fd), 0);
	close(sock);
	sock = dial(t);
	assert_int_equal(reader_send(sock, "x", 1, f.fd), 0);
	close(sock);
	sock = dial(t);
	close(sock);
	/* One at a time, so that a crowd of them is bounded by who asks. */
	for (unsigned int i = 1; i <= 6; i++) {
		fd = next(t);
		assert_true(fd < 0 && fd != -EAGAIN);
		assert_int_equal(t->in.nr_refused, i);
	}
	assert_int_equal(next(t), -EAGAIN);
	assert_int_equal(t->in.nr_refused, 6);
	/* Without a descriptor it is a doorbell. */
	hand_over(t, -1);
	assert_int_equal(next(t), -ENODATA);
	close(pair[0]);
	close(pair[1]);
	close(plain);
	close(readonly);
	fake_close(&f);
	assert_closed(before);
}

static void test_several_descriptors(void **state)
{
	struct trial *t = *state;
	unsigned int before = fake_nr_descriptors();
	struct wire_doorbell bell = { .magic = WIRE_DOORBELL_MAGIC };
	union {
		struct cmsghdr head;
		char space[CMSG_SPACE(3 * sizeof(int))];
	} c = { 0 };
	struct iovec v = { &bell, sizeof(bell) };
	struct msghdr m = {
		.msg_iov = &v, .msg_iovlen = 1, .msg_control = &c, .msg_controllen = sizeof(c)
	};
	struct cmsghdr *h = CMSG_FIRSTHDR(&m);
	struct fake f;
	int sock = dial(t), fds[3], fd;

	fake_open(&f, WIRE_PAGE);
	fds[0] = fds[1] = fds[2] = f.fd;
	h->cmsg_level = SOL_SOCKET;
	h->cmsg_type = SCM_RIGHTS;
	h->cmsg_len = CMSG_LEN(sizeof(fds));
	memcpy(CMSG_DATA(h), fds, sizeof(fds));
	assert_int_equal(sendmsg(sock, &m, 0), sizeof(bell));
	close(sock);
	fd = next(t);
	assert_true(fd >= 0);
	close(fd);
	fake_close(&f);
	assert_closed(before);
}

/* As if those that wait had connected just now. */
static int next_at_once(struct trial *t)
{
	for (size_t i = 0; i < t->in.nr_waiting; i++)
		t->in.waiting[i].since_ns = base_now_ns();
	return next(t);
}

/* Who connects and says nothing holds nobody up. */
static void test_silence(void **state)
{
	struct trial *t = *state;
	unsigned int before = fake_nr_descriptors();
	struct wire_doorbell bell = { .magic = WIRE_DOORBELL_MAGIC };
	int socks[DYN_NR_WAITING + 6], fd;
	struct fake f;

	fake_open(&f, WIRE_PAGE);
	for (size_t i = 0; i < DYN_NR_WAITING + 6; i++)
		socks[i] = dial(t);
	assert_false(dyn_intake_is_quiet(&t->in));
	for (size_t i = 0; i < DYN_NR_WAITING + 6; i++)
		assert_int_equal(next_at_once(t), -EINPROGRESS);
	assert_int_equal(next_at_once(t), -EAGAIN);
	/* Their time runs. */
	assert_false(dyn_intake_is_quiet(&t->in));
	assert_int_equal(t->in.nr_waiting, DYN_NR_WAITING);
	assert_int_equal(t->in.nr_refused, 6);
	/* It speaks after all. */
	assert_int_equal(reader_send(socks[40], &bell, sizeof(bell), f.fd), 0);
	fd = next_at_once(t);
	assert_true(fd >= 0);
	close(fd);
	/* A doorbell is one however late it rings. */
	assert_int_equal(reader_send(socks[20], &bell, sizeof(bell), -1), 0);
	assert_int_equal(next_at_once(t), -ENODATA);
	assert_int_equal(t->in.nr_refused, 6);
	for (size_t i = 0; i < t->in.nr_waiting; i++)
		t->in.waiting[i].since_ns = base_now_ns();
	t->in.waiting[3].since_ns -= 2000000000;
	assert_int_equal(next(t), -EAGAIN);
	assert_int_equal(t->in.nr_refused, 7);
	assert_int_equal(t->in.nr_waiting, DYN_NR_WAITING - 3);
	for (size_t i = 0; i < DYN_NR_WAITING + 6; i++)
		close(socks[i]);
	assert_int_equal(next(t), -EAGAIN);
	assert_int_equal(t->in.nr_waiting, 0);
	assert_true(dyn_intake_is_quiet(&t->in));
	fake_close(&f);
	assert_closed(before);
}

static void test_second_daemon(void **state)
{
	struct trial *t = *state;
	struct dyn_intake second;
	struct fake f;
	int fd;

	assert_int_equal(dyn_intake_open(&second, t->dir, t->queue, NULL), 0);
	assert_int_equal(second.listener, -1);
	assert_int_equal(second.queue, -1);
	assert_int_equal(dyn_intake_next(&second, &(struct dyn_peer){ 0 }), -EAGAIN);
	assert_false(dyn_intake_drain_queue(&second));
	dyn_intake_close(&second);
	/* The first is as it was. */
	while (next(t) != -EAGAIN)
		;
	fake_open(&f, WIRE_PAGE);
	hand_over(t, f.fd);
	fd = next(t);
	assert_true(fd >= 0);
	close(fd);
	fake_close(&f);
}

static void test_left_behind(void **state)
{
	struct trial *t = *state;

	/* As of a daemon that was killed: the names are there, nobody behind them. */
	close(t->in.listener);
	mq_close(t->in.queue);
	close(t->in.epoll);
	assert_int_equal(dyn_intake_open(&t->in, t->dir, t->queue, NULL), 0);
	assert_true(t->in.listener >= 0);
	assert_true(t->in.queue >= 0);
}

static void test_doorbell(void **state)
{
	struct trial *t = *state;
	struct wire_doorbell bell = { .magic = WIRE_DOORBELL_MAGIC };
	struct stat st;
	mqd_t q;

	assert_int_equal(fstat(t->in.queue, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0622);
	assert_true(dyn_intake_is_quiet(&t->in));
	assert_false(dyn_intake_drain_queue(&t->in));
	q = mq_open(t->queue, O_WRONLY | O_NONBLOCK);
	assert_true(q >= 0);
	for (int i = 0; i < 10; i++)
		assert_int_equal(mq_send(q, (const void *)&bell, sizeof(bell), 0), 0);
	assert_int_equal(mq_send(q, (const void *)&bell, sizeof(bell), 0), -1);
	assert_false(dyn_intake_is_quiet(&t->in));
	assert_true(dyn_intake_drain_queue(&t->in));
	assert_true(dyn_intake_is_quiet(&t->in));
	assert_false(dyn_intake_drain_queue(&t->in));
	/* Whatever it says. */
	assert_int_equal(mq_send(q, "nonsense", 8, 0), 0);
	assert_true(dyn_intake_drain_queue(&t->in));
	mq_close(q);
}

/* No descriptor is left: whoever comes is turned away, not kept at the door. */
static void test_no_descriptors(void **state)
{
	struct trial *t = *state;
	struct rlimit old, low;
	int first = dial(t), second = dial(t);

	assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
	low = old;
	low.rlim_cur = (rlim_t)second;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
	assert_int_equal(next(t), -EMFILE);
	for (int i = 0; i < 10000 && t->in.nr_refused < 2; i++)
		usleep(next(t) == -EMFILE ? 0 : 1000);
	assert_int_equal(next(t), -EAGAIN);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &old), 0);
	assert_int_equal(next(t), -EAGAIN);
	assert_int_equal(t->in.nr_refused, 2);
	assert_true(t->in.spare >= 0);
	close(first);
	close(second);
}

static void test_bad_folder(void **state)
{
	struct base_err err = { 0 };
	struct dyn_intake in;

	(void)state;
	assert_true(dyn_intake_open(&in, "/nonexistent/dcpi", NULL, &err) < 0);
	assert_non_null(strstr(err.text, "cannot listen on '/nonexistent/dcpi/dyn'"));
	assert_int_equal(in.epoll, -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_hand_over, setup, teardown),
		cmocka_unit_test_setup_teardown(test_slow_close, setup, teardown),
		cmocka_unit_test_setup_teardown(test_slow_close_unread, setup, teardown),
		cmocka_unit_test_setup_teardown(test_refused, setup, teardown),
		cmocka_unit_test_setup_teardown(test_several_descriptors, setup, teardown),
		cmocka_unit_test_setup_teardown(test_silence, setup, teardown),
		cmocka_unit_test_setup_teardown(test_second_daemon, setup, teardown),
		cmocka_unit_test_setup_teardown(test_left_behind, setup, teardown),
		cmocka_unit_test_setup_teardown(test_doorbell, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_descriptors, setup, teardown),
		cmocka_unit_test(test_bad_folder),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
