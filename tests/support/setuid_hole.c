/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A privileged program, and clients that name its memory in a registry of their own, for
 * tests/system/setuid.sh:
 *
 *	setuid_hole vault FILE SECONDS     keeps the number in FILE at a known address, and works at
 *	                                   another one; to be run set-user-ID, or by a client below
 *	setuid_hole late VAULT FILE SECONDS    connects, executes VAULT; its child sends the
 *registry setuid_hole early VAULT FILE SECONDS   has a true registry, and executes VAULT afterwards
 *	setuid_hole server FILE SECONDS    a vault, run by root, which maps a client's registry
 *	setuid_hole dropper SECONDS        root, with a registry, which becomes another user
 *
 * The registry has a routine number_N for each generation N, all at the address where the vault
 * works: the routine that a sample is charged to tells the word that the sampler read.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "../unit/daemon/fake_registry.h"

#define SECRET ((volatile uint32_t *)0x200000000000)
#define CODE   ((void *)0x200000100000)

enum { NR_NUMBERS = 8, OWN_NUMBER = 8, OTHER = 65534 };

#if defined(__x86_64__)
static const uint8_t code[] = { 0x48, 0xff, 0xcf, 0x75, 0xfb, 0xc3 };
#elif defined(__aarch64__)
static const uint32_t code[] = { 0xf1000400, 0x54ffffe1, 0xd65f03c0 };
#endif

static int die(const char *what)
{
	fprintf(stderr, "setuid_hole: %s: %s\n", what, strerror(errno));
	return 1;
}

static double now(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* ---- the vault ------------------------------------------------------------------------------- */

/* CPU time, in milliseconds. */
static double work(double seconds)
{
	void (*loop)(uint64_t) = (void (*)(uint64_t))CODE;
	double end = now(CLOCK_MONOTONIC) + seconds, spent = now(CLOCK_PROCESS_CPUTIME_ID);

	while (now(CLOCK_MONOTONIC) < end)
		loop(100000);
	return 1000 * (now(CLOCK_PROCESS_CPUTIME_ID) - spent);
}

static void tell_work(double seconds)
{
	printf("own %.0f\n", work(seconds));
	fflush(stdout);
}

static int make_code(void)
{
	void *p = mmap(CODE, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);

	if (p != CODE)
		return -1;
	memcpy(p, code, sizeof(code));
	__builtin___clear_cache(p, (char *)p + sizeof(code));
	return 0;
}

static int vault(const char *file, double seconds)
{
	FILE *f = fopen(file, "r");
	unsigned int number;

	if (mmap((void *)(uintptr_t)SECRET, 4096, PROT_READ | PROT_WRITE,
		 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1,
		 0) != (void *)(uintptr_t)SECRET ||
	    make_code() < 0)
		return die("mmap");
	if (!f || fscanf(f, "%u", &number) != 1)
		return die(file);
	fclose(f);
	*SECRET = number;
	work(seconds);
	printf("euid %u worked\n", geteuid());
	return 0;
}

/* ---- registries ------------------------------------------------------------------------------ */

static void make_registry(struct fake *f)
{
	uint32_t facility;
	char name[32];

	fake_open(f, 64 << 10);
	fake_words(f);
	f->h->nr_words = 1;
	f->h->words_addr = (uintptr_t)SECRET;
	f->h->seq_addr = 0;
	facility = fake_facility(f, "hole");
	for (int i = 1; i <= NR_NUMBERS; i++) {
		snprintf(name, sizeof(name), "number_%d", i);
		fake_put_routine(f, facility, (uintptr_t)CODE, name, code, sizeof(code));
	}
}

static int dial(void)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	int sock = socket(AF_UNIX, SOCK_SEQPACKET, 0);

	snprintf(to.sun_path, sizeof(to.sun_path), "%s/%s", getenv("DCPI_RUN"), WIRE_DYN_NAME);
	return connect(sock, (void *)&to, sizeof(to)) < 0 ? -1 : sock;
}

static int send_fd(int sock, const void *data, size_t len, int fd)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} c = { 0 };
	struct iovec v = { (void *)(uintptr_t)data, len };
	struct msghdr m = {
		.msg_iov = &v, .msg_iovlen = 1, .msg_control = &c, .msg_controllen = sizeof(c)
	};
	struct cmsghdr *h = CMSG_FIRSTHDR(&m);

	h->cmsg_level = SOL_SOCKET;
	h->cmsg_type = SCM_RIGHTS;
	h->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(h), &fd, sizeof(fd));
	return sendmsg(sock, &m, MSG_NOSIGNAL) == (ssize_t)len ? 0 : -1;
}

static int receive_fd(int sock)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} c = { 0 };
	char byte;
	struct iovec v = { &byte, 1 };
	struct msghdr m = {
		.msg_iov = &v, .msg_iovlen = 1, .msg_control = &c, .msg_controllen = sizeof(c)
	};
	int fd = -1;

	if (recvmsg(sock, &m, 0) == 1 && CMSG_FIRSTHDR(&m))
		memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&m)), sizeof(fd));
	return fd;
}

static int hand_over(int sock, const struct fake *f)
{
	struct wire_doorbell bell = { .magic = WIRE_DOORBELL_MAGIC,
				      .version = WIRE_REGISTRY_VERSION };

	return send_fd(sock, &bell, sizeof(bell), f->fd);
}

/* The child's work: the registry goes out when its parent is the vault, and is newer than that. */
static int send_late(int sock, const struct fake *f, pid_t parent)
{
	char path[64], name[32] = "";
	FILE *comm;

	snprintf(path, sizeof(path), "/proc/%d/comm", parent);
	for (int i = 0; i < 5000 && strcmp(name, "vault\n") != 0; i++) {
		usleep(1000);
		comm = fopen(path, "r");
		if (!comm)
			return die(path);
		if (!fgets(name, sizeof(name), comm))
			name[0] = '\0';
		fclose(comm);
	}
	usleep(100000);
	f->h->nr_dropped = 0;
	if (fchmod(f->fd, 0600) < 0 || hand_over(sock, f) < 0)
		return die("hand over");
	return 0;
}

static int late(char **argv)
{
	pid_t parent = getpid();
	struct fake f;
	int sock;

	make_registry(&f);
	sock = dial();
	if (sock < 0)
		return die("connect");
	if (fork() == 0)
		_exit(send_late(sock, &f, parent));
	execl(argv[0], argv[0], "vault", argv[1], argv[2], (char *)NULL);
	return die(argv[0]);
}

/* The words where the registry says, and in them a number of one's own. */
static int map_words(struct fake *f)
{
	uint64_t off = f->len & ~(uint64_t)4095;

	f->h->words_off = off - 4096;
	if (mmap((void *)(uintptr_t)SECRET, 4096, PROT_READ | PROT_WRITE,
		 MAP_SHARED | MAP_FIXED_NOREPLACE, f->fd,
		 (off_t)f->h->words_off) != (void *)(uintptr_t)SECRET)
		return -1;
	*SECRET = OWN_NUMBER;
	return make_code();
}

static int early(char **argv)
{
	struct fake f;
	int sock;

	make_registry(&f);
	sock = dial();
	if (sock < 0 || map_words(&f) < 0 || hand_over(sock, &f) < 0)
		return die("hand over");
	tell_work(1.5);
	execl(argv[0], argv[0], "vault", argv[1], argv[2], (char *)NULL);
	return die(argv[0]);
}

/* What a client gives it is mapped as any file is that is to be executed. */
static int server(const char *file, double seconds)
{
	int pair[2], fd;
	struct fake f;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) < 0)
		return die("socketpair");
	if (fork() == 0) {
		if (setresgid(OTHER, OTHER, OTHER) < 0 || setresuid(OTHER, OTHER, OTHER) < 0)
			_exit(die("setresuid"));
		make_registry(&f);
		_exit(send_fd(pair[1], "", 1, f.fd) < 0);
	}
	fd = receive_fd(pair[0]);
	if (fd < 0 || mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0) == MAP_FAILED)
		return die("map");
	return vault(file, seconds);
}

static int dropper(double seconds)
{
	struct fake f;
	int sock;

	make_registry(&f);
	sock = dial();
	if (sock < 0 || map_words(&f) < 0 || hand_over(sock, &f) < 0)
		return die("hand over");
	tell_work(seconds / 2);
	if (setresuid(OTHER, OTHER, OTHER) < 0)
		return die("setresuid");
	/* The daemon sees it when there is something new. */
	fake_put_routine(&f, 0, (uintptr_t)CODE + 2048, "later", code, sizeof(code));
	tell_work(1);
	*SECRET = 1;
	work(seconds / 2);
	return 0;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	if (!strcmp(what, "vault") && argc == 4)
		return vault(argv[2], atof(argv[3]));
	if (!strcmp(what, "late") && argc == 5)
		return late(argv + 2);
	if (!strcmp(what, "early") && argc == 5)
		return early(argv + 2);
	if (!strcmp(what, "server") && argc == 4)
		return server(argv[2], atof(argv[3]));
	if (!strcmp(what, "dropper") && argc == 3)
		return dropper(atof(argv[2]));
	return 2;
}
