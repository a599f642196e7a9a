/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A privileged program, and clients that name its memory in a registry of their own, for
 * tests/system/setuid.sh:
 *
 *	setuid_hole vault FILE SECONDS [PROGRAM ARG...]
 *		keeps the number in FILE at a known address, the word behind it all over a megabyte,
 *		and works; to be run set-user-ID, or by a client below. Then it gives up its rights,
 *		and executes PROGRAM
 *	setuid_hole late VAULT FILE SECONDS
 *		connects, executes VAULT; its child sends the registry
 *	setuid_hole early VAULT FILE SECONDS
 *		has a true registry, and executes VAULT afterwards
 *	setuid_hole switch VAULT FILE TIMES
 *		has a registry with a range where VAULT has the word, executes VAULT, which executes
 *		this again; so many times
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
#include <time.h>
#include <unistd.h>

#include "../unit/daemon/fake_registry.h"
#include "client.h"

#define SECRET ((volatile uint32_t *)0x200000000000)
#define CODE   ((void *)0x200000100000)
#define AREA   ((char *)0x200000200000)

enum { NR_NUMBERS = 8, OWN_NUMBER = 8, OTHER = 65534, AREA_LEN = 1 << 20 };

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

static void *map_at(void *p, size_t len)
{
	return mmap(p, len, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
}

/* Copies of @text, one behind the other, as far as they fit. */
static void fill_area(const char *text)
{
	size_t len = strlen(text);

	for (size_t at = 0; len && at + len <= AREA_LEN; at += len)
		memcpy(AREA + at, text, len);
}

/* @next: what is executed afterwards, or nothing. */
static int vault(const char *file, double seconds, char **next)
{
	FILE *f = fopen(file, "r");
	unsigned int number;
	char text[128] = "";

	if (map_at((void *)(uintptr_t)SECRET, 4096) != (void *)(uintptr_t)SECRET ||
	    map_at(AREA, AREA_LEN) != AREA || make_code() < 0)
		return die("mmap");
	if (!f || fscanf(f, "%u %127s", &number, text) < 1)
		return die(file);
	fclose(f);
	*SECRET = number;
	fill_area(text);
	work(seconds);
	if (*next) {
		if (setresuid(getuid(), getuid(), getuid()) < 0)
			return die("setresuid");
		execv(*next, next);
		return die(*next);
	}
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

static int receive_fd(int sock)
{
	union {
		struct cmsghdr head;
		char space[CMSG_SPACE(sizeof(int))];
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

	return client_send(sock, &bell, sizeof(bell), f->fd) == sizeof(bell) ? 0 : -1;
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
	sock = client_dial(WIRE_DYN_NAME, SOCK_SEQPACKET);
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
	sock = client_dial(WIRE_DYN_NAME, SOCK_SEQPACKET);
	if (sock < 0 || map_words(&f) < 0 || hand_over(sock, &f) < 0)
		return die("hand over");
	tell_work(1.5);
	execl(argv[0], argv[0], "vault", argv[1], argv[2], (char *)NULL);
	return die(argv[0]);
}

/* The reader is to walk the range while the process is another program. */
static int switch_programs(char **argv, const char *self)
{
	static const char lure[] = "nothing of anybody's ";
	int left = atoi(argv[2]), sock = client_dial(WIRE_DYN_NAME, SOCK_SEQPACKET);
	char times[16];
	struct fake f;

	if (left <= 0)
		return 0;
	make_registry(&f);
	fake_range(&f, 0, WIRE_RANGE_CODE, (uintptr_t)AREA, AREA_LEN);
	fake_put_routine(&f, 0, (uintptr_t)AREA, "lured", NULL, AREA_LEN);
	if (map_at(AREA, AREA_LEN) != AREA)
		return die("mmap");
	fill_area(lure);
	if (sock < 0 || map_words(&f) < 0 || hand_over(sock, &f) < 0)
		return die("hand over");
	work(0.001 * (left % 13));
	snprintf(times, sizeof(times), "%d", left - 1);
	execl(argv[0], argv[0], "vault", argv[1], left % 2 ? "0.002" : "0.02", self, "switch",
	      argv[0], argv[1], times, (char *)NULL);
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
		_exit(client_send(pair[1], "", 1, f.fd) != 1);
	}
	fd = receive_fd(pair[0]);
	if (fd < 0 || mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0) == MAP_FAILED)
		return die("map");
	return vault(file, seconds, (char *[]){ NULL });
}

static int dropper(double seconds)
{
	struct fake f;
	int sock;

	make_registry(&f);
	sock = client_dial(WIRE_DYN_NAME, SOCK_SEQPACKET);
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

	if (!strcmp(what, "vault") && argc >= 4)
		return vault(argv[2], atof(argv[3]), argv + 4);
	if (!strcmp(what, "switch") && argc == 5)
		return switch_programs(argv + 2, argv[0]);
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
