/* SPDX-License-Identifier: BSD-2-Clause */
#include "fake.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void must(bool good, const char *what)
{
	if (good)
		return;
	perror(what);
	_exit(99);
}

#define TMP  "/tmp"
#define STEM "dbgdyn-test-" /* and the process that made it */

static struct sockaddr_un address(const struct fake *f)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };

	snprintf(a.sun_path, sizeof(a.sun_path), "%s/%s", f->dir, WIRE_DYN_NAME);
	return a;
}

void fake_open(struct fake *f, int parts)
{
	struct mq_attr attr = { .mq_maxmsg = 10, .mq_msgsize = sizeof(struct wire_doorbell) };

	*f = (struct fake){ .listen = -1, .queue = (mqd_t)-1, .fd = -1 };
	snprintf(f->dir, sizeof(f->dir), TMP "/" STEM "%d-XXXXXX", (int)getpid());
	must(mkdtemp(f->dir), "mkdtemp");
	snprintf(f->queue_name, sizeof(f->queue_name), "%s", strrchr(f->dir, '/'));
	setenv("DCPI_RUN", f->dir, 1);
	setenv("DCPI_QUEUE", f->queue_name, 1);
	if (parts & FAKE_SOCKET) {
		struct sockaddr_un a = address(f);

		f->listen = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
		must(bind(f->listen, (void *)&a, sizeof(a)) == 0, "bind");
		must(listen(f->listen, 8) == 0, "listen");
	}
	if (parts & FAKE_QUEUE) {
		f->queue = mq_open(f->queue_name, O_RDONLY | O_CREAT | O_EXCL | O_NONBLOCK, 0600,
				   &attr);
		must(f->queue != (mqd_t)-1, "mq_open");
	}
}

void fake_die(struct fake *f)
{
	if (f->listen >= 0)
		close(f->listen);
	f->listen = -1;
}

void fake_hide(const struct fake *f)
{
	struct sockaddr_un a = address(f);

	unlink(a.sun_path);
}

void fake_close(struct fake *f)
{
	fake_die(f);
	fake_hide(f);
	rmdir(f->dir);
	if (f->queue != (mqd_t)-1) {
		mq_close(f->queue);
		mq_unlink(f->queue_name);
	}
	if (f->fd >= 0)
		close(f->fd);
}

/* The registry's descriptor, or -1 where the message brought none. */
static int take_message(struct fake *f, int conn)
{
	union {
		struct cmsghdr align;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control;
	struct wire_doorbell b = { 0 };
	struct iovec part = { .iov_base = &b, .iov_len = sizeof(b) };
	struct msghdr msg = { .msg_iov = &part,
			      .msg_iovlen = 1,
			      .msg_control = control.bytes,
			      .msg_controllen = sizeof(control.bytes) };
	ssize_t n = recvmsg(conn, &msg, MSG_CMSG_CLOEXEC);
	struct cmsghdr *c = n > 0 ? CMSG_FIRSTHDR(&msg) : NULL;
	int fd = -1;

	must(n == (ssize_t)sizeof(b) && b.magic == WIRE_DOORBELL_MAGIC, "hand-over message");
	f->message_pid = b.pid;
	if (c && c->cmsg_type == SCM_RIGHTS)
		memcpy(&fd, CMSG_DATA(c), sizeof(fd));
	return fd;
}

bool fake_take(struct fake *f)
{
	struct pollfd p = { .fd = f->listen, .events = POLLIN };
	int conn, fd;

	if (poll(&p, 1, 60000) != 1)
		return false;
	conn = accept4(f->listen, NULL, NULL, SOCK_CLOEXEC);
	if (conn < 0)
		return false;
	fd = take_message(f, conn);
	close(conn);
	if (fd >= 0 && f->fd >= 0)
		close(f->fd);
	if (fd >= 0)
		f->fd = fd;
	return fd >= 0;
}

int fake_bells(struct fake *f)
{
	struct wire_doorbell b;
	int n = 0;

	while (mq_receive(f->queue, (char *)&b, sizeof(b), NULL) == (ssize_t)sizeof(b)) {
		must(b.magic == WIRE_DOORBELL_MAGIC && b.version == WIRE_REGISTRY_VERSION, "bell");
		n++;
	}
	return n;
}

/* To where no counter is torn: see registry_counters_copy. */
void fake_header(const struct fake *f, struct wire_registry *reg)
{
	_Alignas(WIRE_PAGE) struct wire_registry copy;

	must(pread(f->fd, &copy, sizeof(copy), 0) == (ssize_t)sizeof(copy), "pread header");
	*reg = copy;
}

static void put(const struct fake *f, size_t off, const void *data, size_t len)
{
	must(pwrite(f->fd, data, len, (off_t)off) == (ssize_t)len, "pwrite header");
}

void fake_attach(const struct fake *f, uint32_t attached)
{
	put(f, offsetof(struct wire_registry, attached), &attached, sizeof(attached));
}

void fake_see(const struct fake *f, uint32_t wanted)
{
	put(f, offsetof(struct wire_registry, flush_seen), &wanted, sizeof(wanted));
}

void fake_answer(const struct fake *f, int32_t status)
{
	struct wire_registry reg;

	fake_header(f, &reg);
	put(f, offsetof(struct wire_registry, flush_status), &status, sizeof(status));
	put(f, offsetof(struct wire_registry, flush_done), &reg.flush_wanted,
	    sizeof(reg.flush_wanted));
}

size_t fake_read(const struct fake *f, void *to, size_t space)
{
	struct wire_registry reg;
	size_t got = 0;

	fake_header(f, &reg);
	must(reg.head - reg.tail <= reg.ring_len && reg.head - reg.tail <= space, "ring");
	while (reg.tail < reg.head) {
		uint64_t pos = reg.tail % reg.ring_len, len = reg.head - reg.tail;

		if (len > reg.ring_len - pos)
			len = reg.ring_len - pos;
		must(pread(f->fd, (char *)to + got, len, (off_t)(reg.ring_off + pos)) ==
			     (ssize_t)len,
		     "pread ring");
		reg.tail += len;
		got += len;
	}
	put(f, offsetof(struct wire_registry, tail), &reg.tail, sizeof(reg.tail));
	return got;
}

uint64_t fake_when_ns;

const struct wire_head *fake_next(const void *data, size_t len, size_t *pos)
{
	static uint64_t last_ns;
	const struct wire_head *h;
	struct timespec now;

	fake_when_ns = 0;
	do {
		h = wire_next(data, len, pos);
		if (!h || h->type != WIRE_WHEN)
			continue;
		must(!fake_when_ns && wire_check(h) == 0, "two times of one change");
		fake_when_ns = ((const struct wire_time *)(const void *)h)->time_ns;
		clock_gettime(CLOCK_MONOTONIC, &now);
		must(fake_when_ns >= last_ns && fake_when_ns <= (uint64_t)now.tv_sec * 1000000000 +
									(uint64_t)now.tv_nsec,
		     "time of a change");
		last_ns = fake_when_ns;
	} while (h && (h->type == WIRE_WHEN || h->type == WIRE_PAD));
	must(h || !fake_when_ns, "a time without a change");
	return h;
}

/* What a child that failed, or died, left. There is room for 256 queues, and none for the tests
 * after them. */
static void sweep(pid_t pid)
{
	DIR *dir = opendir(TMP);
	struct dirent *e;
	struct fake f;
	char stem[32];

	snprintf(stem, sizeof(stem), STEM "%d-", (int)pid);
	while (dir && (e = readdir(dir))) {
		if (strncmp(e->d_name, stem, strlen(stem)) != 0)
			continue;
		snprintf(f.dir, sizeof(f.dir), TMP "/%.40s", e->d_name);
		fake_hide(&f);
		rmdir(f.dir);
		mq_unlink(strrchr(f.dir, '/'));
	}
	if (dir)
		closedir(dir);
}

void fake_in_child(int (*run)(void))
{
	int status = 0;
	pid_t pid;

	fflush(NULL);
	pid = fork();
	if (pid == 0)
		_exit(run());
	assert_true(pid > 0);
	while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
		;
	if (status)
		sweep(pid);
	assert_int_equal(status, 0);
}

struct dbgdyn_routine fake_routine(const char *name, const void *code, size_t code_len)
{
	return (struct dbgdyn_routine){ .size = sizeof(struct dbgdyn_routine),
					.name = { name, strlen(name) },
					.code = code,
					.code_len = code_len };
}

double fake_seconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

int fake_descriptors(void)
{
	DIR *dir = opendir("/proc/self/fd");
	int nr = 0;

	while (dir && readdir(dir))
		nr++;
	if (dir)
		closedir(dir);
	return nr;
}
