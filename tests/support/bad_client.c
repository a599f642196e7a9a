/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Clients as they should not be, for tests/system/bad-clients.sh:
 *
 *	bad_client bells COUNT     messages to the queue: forged, cut, of others' pids; as many as
 *go in, and COUNT in all. Prints how many went in. bad_client sockets COUNT   hand-overs likewise:
 *silent, cut, without a descriptor, with one that is no registry bad_client hang COUNT      so many
 *processes that announce a registry and then do nothing; ends when its input does bad_client silent
 *SECONDS  a JIT whose own range is memory that never answers (userfaultfd); prints a line when that
 *was announced
 *	bad_client machine NUMBER  a registry of that ELF machine and code that runs for a second;
 *prints whether the daemon attached it
 *
 *	bad_client slow COUNT FILE so many JITs of another user, each with an owned range that is
 *				   mapped from FILE, which no program has read; a line when all
 *				   of them have begun; they end when its input does
 *	bad_client lingering SECONDS  messages with as many descriptors as can be, whose close
 *				   lasts an hour; a line when all are sent
 *	bad_client crowd COUNT     so many processes of another user, one after the other or side
 *				   by side, each with 64 facilities that it ends at once
 */
#include <dbgdyn.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/userfaultfd.h>
#include <mqueue.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "client.h"
#include "fake_registry.h"
#include "lingering.h"
#include "truth_jit.h"
#include "wire.h"

static int die(const char *what)
{
	fprintf(stderr, "bad_client: %s: %s\n", what, strerror(errno));
	return 1;
}

static void forge(struct wire_doorbell *bell, uint64_t r)
{
	static const uint32_t pids[] = { 0, 1, 2, UINT32_MAX, 0x7fffffff };

	*bell = (struct wire_doorbell){ WIRE_DOORBELL_MAGIC, WIRE_REGISTRY_VERSION,
					(uint32_t)getppid(), 0 };
	switch (r % 4) {
	case 0:
		bell->pid = pids[r / 4 % 5];
		break;
	case 1:
		bell->magic = (uint32_t)r;
		break;
	case 2:
		bell->version = (uint32_t)(r >> 32);
		break;
	default:
		bell->reserved = (uint32_t)(r >> 16);
	}
}

static int bells(long count)
{
	const char *name = getenv("DCPI_QUEUE");
	mqd_t q = mq_open(name ? name : WIRE_QUEUE_NAME, O_WRONLY | O_NONBLOCK);
	uint64_t random = 21;
	long sent = 0;

	if (q == (mqd_t)-1)
		return die("queue");
	for (long i = 0; i < count; i++) {
		struct wire_doorbell bell;
		uint64_t r = truth_random(&random);

		forge(&bell, r);
		sent += mq_send(q, (const char *)&bell, r >> 60 ? sizeof(bell) : (r >> 50) % 16,
				0) == 0;
	}
	printf("sent %ld\n", sent);
	return 0;
}

static int make_queue(long count)
{
	struct mq_attr attr = { .mq_maxmsg = 3, .mq_msgsize = 1000 };
	const char *name = getenv("DCPI_QUEUE");
	bool other = setgid(65534) == 0 && setuid(65534) == 0;
	mqd_t q = mq_open(name ? name : WIRE_QUEUE_NAME, O_CREAT | O_EXCL | O_WRONLY | O_NONBLOCK,
			  0600, &attr);
	char text[1000] = "none of yours";

	if (!other || q == (mqd_t)-1)
		return die("queue");
	for (long i = 0; i < count; i++)
		if (mq_send(q, text, sizeof(text), 0) < 0)
			return die("send");
	return 0;
}

/* ---- hand-overs ------------------------------------------------------------------------------ */

static int sockets(long count)
{
	int null = open("/dev/null", O_RDWR | O_CLOEXEC), pipes[2], sock;
	int empty = memfd_create("dbgdyn", MFD_ALLOW_SEALING | MFD_CLOEXEC);
	uint64_t random = 23;
	long sent = 0;

	if (pipe(pipes) < 0 || null < 0 || empty < 0 ||
	    fcntl(empty, F_ADD_SEALS, F_SEAL_SHRINK) < 0)
		return die("open");
	for (long i = 0; i < count; i++) {
		const int fds[] = { -1, null, pipes[0], empty };
		struct wire_doorbell bell;
		uint64_t r = truth_random(&random);

		sock = client_dial(WIRE_DYN_NAME, SOCK_SEQPACKET | SOCK_NONBLOCK);
		if (sock < 0)
			continue;
		forge(&bell, r);
		if (r >> 61) /* else silent */
			sent += client_send(sock, &bell, r >> 60 & 1 ? sizeof(bell) : r >> 50 & 15,
					    fds[r >> 40 & 3]) >= 0;
		close(sock);
	}
	printf("sent %ld\n", sent);
	return 0;
}

/* The least that is a registry. */
static int make_registry(void)
{
	struct wire_registry h = {
		.magic = WIRE_REGISTRY_MAGIC,
		.version = WIRE_REGISTRY_VERSION,
		.header_len = WIRE_PAGE,
		.facilities_off = WIRE_PAGE,
		.machine = 62,
	};
	int fd = memfd_create("dbgdyn", MFD_ALLOW_SEALING | MFD_CLOEXEC);

	h.ranges_off = h.facilities_off + WIRE_NR_FACILITIES * sizeof(struct wire_facility);
	h.ring_off = h.ranges_off + WIRE_NR_RANGES * sizeof(struct wire_range);
	h.ring_len = WIRE_PAGE;
	h.total_len = h.ring_off + h.ring_len;
	if (fd < 0 || ftruncate(fd, (off_t)h.total_len) < 0 ||
	    pwrite(fd, &h, sizeof(h), 0) != sizeof(h) || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK) < 0)
		return -1;
	return fd;
}

static int hang(long count)
{
	char c;
	int ready[2];
	long there = 0;

	if (pipe(ready) < 0)
		return die("pipe");
	for (long i = 0; i < count; i++)
		if (fork() == 0) {
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			c = client_announce(make_registry()) == 0 ? '+' : '-';
			if (write(ready[1], &c, 1) != 1)
				_exit(1);
			for (;;)
				pause();
		}
	for (long i = 0; i < count && read(ready[0], &c, 1) == 1; i++)
		there += c == '+';
	printf("hang %ld\n", there);
	fflush(stdout);
	while (read(0, &c, 1) > 0)
		;
	return 0;
}

/* ---- memory that never answers --------------------------------------------------------------- */

static void *silent_memory(size_t len)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register reg = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	int fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS,
		       -1, 0);

	reg.range.start = (uintptr_t)p;
	reg.range.len = len;
	if (fd < 0 || p == MAP_FAILED || ioctl(fd, UFFDIO_API, &api) < 0 ||
	    ioctl(fd, UFFDIO_REGISTER, &reg) < 0)
		return NULL;
	return p;
}

static int silent(double seconds)
{
	void *p = silent_memory(1 << 20), *dst = silent_memory(1 << 16);
	struct dbgdyn_options opts = { .size = sizeof(opts),
				       .code_base = p,
				       .code_len = 1 << 20,
				       .dst_base = dst,
				       .dst_len = 1 << 16,
				       .timeout_ms = 1000 };
	unsigned char *code = truth_map(TRUTH_BLOCKS * TRUTH_BLOCK);
	double ran[TRUTH_SLOTS] = { 0 };
	uint64_t context, random = 31;

	if (!p || !dst || !code)
		return die("userfaultfd");
	if (dbgdyn_begin("silent", 6, &opts, &context) != DBGDYN_OK)
		return die("begin");
	puts("announced");
	fflush(stdout);
	truth_live(context, code, "silent", seconds, ran, &random);
	dbgdyn_end(context);
	return 0;
}

/* ---- a user's crowd -------------------------------------------------------------------------- */

enum { OTHER = 65534, FACILITIES = 64 };

/*
 * Memory that never answers is made before: an ordinary user would need a file system for it. With
 * other rights the kernel forgets that it is to end with its parent.
 */
static bool become_other(void)
{
	return setgroups(0, NULL) == 0 && setgid(OTHER) == 0 && setuid(OTHER) == 0 &&
	       prctl(PR_SET_DUMPABLE, 1) == 0 && prctl(PR_SET_PDEATHSIG, SIGKILL) == 0;
}

static const char *slow_file;

/* Memory behind a file system that may answer late, not read yet. */
static void *slow_memory(size_t len)
{
	int fd = open(slow_file, O_RDONLY | O_CLOEXEC);
	void *p = fd < 0 ? MAP_FAILED : mmap(NULL, len, PROT_READ, MAP_PRIVATE, fd, 0);

	return p == MAP_FAILED ? NULL : p;
}

/* It tells of a routine now and then, so that it is read again and again. */
static int be_slow(int ready)
{
	void *p = slow_memory(1 << 20);
	struct dbgdyn_options opts = {
		.size = sizeof(opts), .code_base = p, .code_len = 1 << 20, .timeout_ms = 1000
	};
	unsigned char *code = truth_map(TRUTH_BLOCKS * TRUTH_BLOCK);
	uint64_t context, random = 37;

	if (!p || !code)
		return die("memory");
	if (!become_other())
		return die("user");
	if (dbgdyn_begin("slow", 4, &opts, &context) != DBGDYN_OK)
		return die("begin");
	for (int i = 0;; i = (i + 1) % TRUTH_BLOCKS) {
		unsigned char *at = code + i * TRUTH_BLOCK;

		truth_make(context, at, "slow", i % TRUTH_SLOTS, NULL);
		truth_run(at, CLOCK_MONOTONIC, 1e-3, &random);
		if (ready >= 0 && write(ready, "+", 1) != 1)
			return 1;
		ready = -1;
		usleep(50000);
	}
}

static int be_crowded(int ready)
{
	unsigned char *code = truth_map(FACILITIES * TRUTH_BLOCK);
	struct dbgdyn_options opts = { .size = sizeof(opts), .timeout_ms = 100 };
	uint64_t context[FACILITIES];

	if (!code || !become_other())
		return die("user");
	for (int i = 0; i < FACILITIES; i++) {
		char name[16];
		int len = snprintf(name, sizeof(name), "crowd%d", i);

		if (dbgdyn_begin(name, (size_t)len, &opts, &context[i]) != DBGDYN_OK)
			return die("begin");
		truth_make(context[i], code + i * TRUTH_BLOCK, "crowd", i % TRUTH_SLOTS, NULL);
	}
	for (int i = 0; i < FACILITIES; i++)
		dbgdyn_end(context[i]);
	return write(ready, "+", 1) != 1;
}

static long start_all(long count, int (*be)(int ready))
{
	int ready[2];
	long there = 0;
	char c;

	if (pipe(ready) < 0)
		return -1;
	for (long i = 0; i < count; i++)
		if (fork() == 0) {
			close(ready[0]);
			_exit(be(ready[1]));
		}
	close(ready[1]);
	while (there < count && read(ready[0], &c, 1) == 1)
		there++;
	return there;
}

static int crowd(long count, int (*be)(int ready))
{
	long there = start_all(count, be);
	char c;

	printf("%ld of %ld\n", there, count);
	fflush(stdout);
	while (be == be_slow && read(0, &c, 1) > 0)
		;
	return there != count;
}

/* ---- code of another machine ----------------------------------------------------------------- */

/* A registry of @machine and its routine, handed over; then the routine runs. The daemon attaches
 * it, or it does not. */
static int machine(uint32_t number, double seconds)
{
	unsigned char *code = truth_map(TRUTH_BLOCK);
	uint64_t random = 41;
	struct fake f;

	if (!code)
		return die("memory");
	truth_put(code, 1);
	fake_open(&f, 1 << 16);
	f.h->machine = number;
	fake_facility(&f, "machine");
	fake_put_routine(&f, 0, (uintptr_t)code, "machine_1", code, TRUTH_BLOCK);
	if (client_announce(f.fd) < 0)
		return die("announce");
	truth_run(code, CLOCK_THREAD_CPUTIME_ID, seconds, &random);
	printf("attached %u\n", (unsigned int)(f.h->attached != 0));
	return 0;
}

/* The sockets that linger do so as long as their other ends are here. */
static int lingering(unsigned int seconds)
{
	static const char line[] = "{\"cmd\":\"status\"}\n";
	struct wire_doorbell bell = { WIRE_DOORBELL_MAGIC, WIRE_REGISTRY_VERSION,
				      (uint32_t)getpid(), 0 };
	struct sockaddr_in at;

	/* Its own end lingers too where it is the last one. */
	alarm(seconds + 20);
	for (int i = 0; i < 6; i++) {
		/* One has room for two messages. */
		if (lingering_listener(&at) < 0)
			return die("listen");
		int control = client_dial(WIRE_CONTROL_NAME, SOCK_STREAM);
		int dyn = client_dial(WIRE_DYN_NAME, SOCK_SEQPACKET);

		int status;
		pid_t pid = fork();

		if (pid == 0)
			_exit(lingering_send(control, line, sizeof(line) - 1, &at, LINGERING_MAX) <
				      0 ||
			      lingering_send(dyn, &bell, sizeof(bell), &at, LINGERING_MAX) < 0);
		if (pid < 0 || waitpid(pid, &status, 0) < 0 || status)
			return die("send");
	}
	puts("sent");
	fflush(stdout);
	sleep(seconds);
	return 0;
}

int main(int argc, char **argv)
{
	const char *what = argc > 2 ? argv[1] : "";

	if (!strcmp(what, "bells"))
		return bells(atol(argv[2]));
	if (!strcmp(what, "queue"))
		return make_queue(atol(argv[2]));
	if (!strcmp(what, "sockets"))
		return sockets(atol(argv[2]));
	if (!strcmp(what, "lingering"))
		return lingering((unsigned int)atol(argv[2]));
	if (!strcmp(what, "hang"))
		return hang(atol(argv[2]));
	if (!strcmp(what, "silent"))
		return silent(atof(argv[2]));
	if (!strcmp(what, "slow")) {
		slow_file = argc > 3 ? argv[3] : "";
		return crowd(atol(argv[2]), be_slow);
	}
	if (!strcmp(what, "crowd"))
		return crowd(atol(argv[2]), be_crowded);
	if (!strcmp(what, "machine"))
		return machine((uint32_t)atol(argv[2]), 1);
	return 2;
}
