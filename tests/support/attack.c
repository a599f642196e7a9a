/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Hostile clients of one kind, an honest one, and their supervisor, for attack.sh.
 *
 * "attack KIND SEED" is one of the kinds below, until it is killed; all that it draws follows from
 * SEED. It prints "full" when it has reached its size.
 *
 * "attack honest SEED NAME PREFIX PART" is a JIT that behaves, until SIGTERM. It prints "ROUTINE
 * SECONDS" lines, "cpu SECONDS" of all that it did, and how its end succeeded. "attack calibrate
 * SEED" prints PART, which is the same for all of them: to measure it, code runs that no daemon is
 * told of.
 *
 * "attack run SEED SECONDS MOST PROGRAM ARG..." runs PROGRAM as uid 65534 for so long, and where it
 * has not printed "full" by then, until it does, MOST seconds in all; "attack keep" likewise as the
 * user that it is. Then, or when it is told to end, or its parent ends, it kills PROGRAM and all
 * descendants, and removes their perf maps and dumps. Exit status 0: PROGRAM printed "full", or has
 * ended with status 0.
 */
#include <dbgdyn.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/falloc.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "client.h"
#include "fake_registry.h"
#include "jitdump.h"
#include "truth_jit.h"
#include "wire.h"

/* The sizes: those of the attack that found the holes. */
enum {
	OTHER = 65534,
	WILD = 6,	  /* processes with wild registries */
	SLOW = 24,	  /* processes with memory that answers slowly */
	CROWD = 100,	  /* processes with WIRE_NR_FACILITIES each */
	VIEWERS = 8,	  /* processes that watch as dcpitop does */
	RENAMED = 4,	  /* processes that get another name all the time */
	MAPPINGS = 64000, /* of one process */
	FILLERS = 4,	  /* processes, which fill FILL bytes together */
	FILLER_CODE = 1 << 20,
};
#define FILL (1536ull << 20)

static uint64_t seed;
static pid_t self;

static int die(const char *what)
{
	fprintf(stderr, "attack: %s: %s\n", what, strerror(errno));
	return 1;
}

static uint64_t draw(uint64_t below)
{
	return (truth_random(&seed) >> 16) % below;
}

/* The attack has the size that it is to have. */
static void full(void)
{
	(void)!write(STDOUT_FILENO, "full\n", 5);
}

/* A child, which draws otherwise than its parent and ends with it. */
static pid_t child(void)
{
	uint64_t next = truth_random(&seed) | 1;
	pid_t parent = getpid(), pid = fork();

	if (pid != 0)
		return pid;
	seed = next;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != parent)
		_exit(1);
	self = getpid();
	return 0;
}

/* @nr children that do @what, anew where one ends; for ever. */
static int keep_children(int nr, void (*what)(int index))
{
	pid_t pids[CROWD], ended;
	int status;

	for (int i = 0; i < nr; i++) {
		pids[i] = child();
		if (pids[i] == 0) {
			what(i);
			_exit(0);
		}
		if (pids[i] < 0)
			return die("fork");
	}
	while ((ended = wait(&status)) > 0)
		for (int i = 0; i < nr; i++)
			if (pids[i] == ended) {
				usleep(1000);
				pids[i] = child();
				if (pids[i] == 0) {
					what(i);
					_exit(0);
				}
			}
	return 0;
}

/* Counts processes that got so far, of all children; the last of @nr tells that all have. */
static int *arrived;

static void arrive(int nr)
{
	if (__atomic_add_fetch(arrived, 1, __ATOMIC_RELAXED) == nr)
		full();
}

/* Run any routine at any address of one's own for a while, so that samples are there. */
static void run_code(unsigned char *code, double seconds)
{
	truth_run(code, CLOCK_MONOTONIC, seconds, &seed);
}

/* ---- registries with wild headers, and races ------------------------------------------------- */

static uint64_t wild_number(uint64_t near)
{
	static const uint64_t numbers[] = {
		0,	    1,		7,	    4095,	4096,	    65535,	   1u << 31,
		UINT32_MAX, 1ull << 32, 1ull << 47, 1ull << 63, UINT64_MAX, UINT64_MAX - 7
	};

	switch (draw(4)) {
	case 0:
		return near + draw(17) - 8;
	case 1:
		return truth_random(&seed);
	default:
		return numbers[draw(sizeof(numbers) / sizeof(*numbers))];
	}
}

/* Change a number somewhere: in the header most often, else in the tables, the ring or the heap. */
static void spoil(struct fake *f)
{
	static const uint64_t areas[] = { 136, 640, WIRE_PAGE, WIRE_PAGE + 8192, 0 };
	uint64_t area = areas[draw(5)], at = draw((area ? area : f->len) / 4) * 4, old, new;

	if (at + 8 > f->len)
		return;
	memcpy(&old, f->map + at, sizeof(old));
	new = wild_number(old);
	memcpy(f->map + at, &new, draw(2) ? 4 : 8);
}

static void wild_facility(struct fake *f)
{
	static const char *const names[] = {
		"-rf", "../../etc/passwd", "\033]0;x\007", "a\nb", ".", "%s%n", "", "wild"
	};

	if (f->h->nr_facilities < WIRE_NR_FACILITIES)
		fake_facility(f, names[draw(8)]);
}

static void wild_registry(struct fake *f, unsigned char *code)
{
	uint32_t *words;

	fake_open(f, 64 << 10);
	words = fake_words(f);
	f->h->words_addr = (uintptr_t)words;
	wild_facility(f);
	for (uint64_t n = draw(20); n; n--) {
		int slot = (int)draw(TRUTH_SLOTS);

		wild_facility(f);
		truth_put(code + draw(8) * TRUTH_BLOCK, slot);
		fake_put_routine(f, (uint32_t)draw(4), (uintptr_t)code + draw(8) * TRUTH_BLOCK,
				 "wild_1", draw(2) ? code : NULL, TRUTH_BLOCK);
	}
	if (draw(2))
		fake_range(f, 0, (uint32_t)draw(5), draw(2) ? (uintptr_t)code : wild_number(0),
			   draw(2) ? TRUTH_BLOCK : wild_number(0));
	if (draw(2))
		f->h->nr_dropped = wild_number(0);
	for (uint64_t n = draw(6); n; n--)
		spoil(f);
}

static void race(struct fake *f, unsigned char *code)
{
	for (uint64_t n = 5 + draw(40); n; n--) {
		spoil(f);
		if (!draw(20))
			fallocate(f->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0,
				  (off_t)draw(f->len));
		if (!draw(30))
			(void)!ftruncate(f->fd, (off_t)(f->len + draw(1ull << 40)));
		if (!draw(10))
			client_announce(f->fd);
		run_code(code, 0.0005);
	}
}

static void be_wild(int index)
{
	unsigned char *code = truth_map(8 * TRUTH_BLOCK);
	struct fake f;

	(void)index;
	if (!code)
		return;
	for (int i = 0; i < 8; i++)
		truth_put(code + i * TRUTH_BLOCK, i);
	arrive(WILD);
	for (uint64_t n = 1 + draw(4); n; n--) {
		wild_registry(&f, code);
		if (client_announce(f.fd) == 0)
			race(&f, code);
		fake_close(&f);
	}
	if (!draw(3))
		execl("/bin/true", "true", (char *)NULL);
}

static int registries(void)
{
	return keep_children(WILD, be_wild);
}

/* ---- memory that answers slowly, never, or is gone ------------------------------------------- */

/* A descriptor of /dev/userfaultfd, which root has opened. */
static int userfaults = -1;

static int slow_range(void *p, size_t len)
{
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register reg = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	int fd = ioctl(userfaults, USERFAULTFD_IOC_NEW, O_CLOEXEC);

	reg.range.start = (uintptr_t)p;
	reg.range.len = len;
	if (fd < 0 || ioctl(fd, UFFDIO_API, &api) < 0 || ioctl(fd, UFFDIO_REGISTER, &reg) < 0)
		return -1;
	return fd;
}

struct slow {
	int fd;
	unsigned int wait_us; /* 0: never answers */
	uint64_t random;
};

static void *answer_slowly(void *arg)
{
	struct slow *s = arg;
	struct uffd_msg m;

	while (read(s->fd, &m, sizeof(m)) == sizeof(m)) {
		struct uffdio_zeropage zero = { { m.arg.pagefault.address & ~4095ull, 4096 },
						0,
						0 };

		if (!s->wait_us)
			continue;
		usleep(s->wait_us);
		if (truth_random(&s->random) >> 62)
			ioctl(s->fd, UFFDIO_ZEROPAGE, &zero);
		else /* asked for again, it is empty once more */
			ioctl(s->fd, UFFDIO_WAKE, &zero.range);
	}
	return NULL;
}

static void be_slow(int index)
{
	static const unsigned int waits[] = { 0, 20000, 300000, 900000 };
	const size_t len = 1 << 20;
	unsigned char *code = truth_map(TRUTH_BLOCKS * TRUTH_BLOCK);
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS,
		       -1, 0);
	struct slow s = { slow_range(p, len), waits[index % 4], seed };
	struct dbgdyn_options opts = {
		.size = sizeof(opts), .code_base = p, .code_len = len, .timeout_ms = 500
	};
	double ran[TRUTH_SLOTS] = { 0 };
	uint64_t context;
	pthread_t thread;

	if (!code || p == MAP_FAILED || s.fd < 0 ||
	    pthread_create(&thread, NULL, answer_slowly, &s) != 0)
		_exit(die("slow memory"));
	dbgdyn_begin("slow", 4, &opts, &context);
	arrive(SLOW);
	for (uint64_t n = 2 + draw(6); n; n--) {
		truth_live(context, code, "slow", 0.02, ran, &seed);
		usleep(100000);
		dbgdyn_flush(context);
	}
	munmap(p, draw(2) ? len : len / 2);
	truth_live(context, code, "slow", 0.02, ran, &seed);
}

static int memory(void)
{
	return keep_children(SLOW, be_slow);
}

/* ---- crowds ---------------------------------------------------------------------------------- */

static void be_in_crowd(int index)
{
	unsigned char *code = truth_map(WIRE_NR_FACILITIES * TRUTH_BLOCK);
	struct dbgdyn_options opts = { .size = sizeof(opts),
				       .code_len = TRUTH_BLOCK,
				       .timeout_ms = 2000 };
	uint64_t contexts[WIRE_NR_FACILITIES];
	char name[64];

	if (!code)
		return;
	for (unsigned int i = 0; i < WIRE_NR_FACILITIES; i++) {
		opts.code_base = code + i * TRUTH_BLOCK;
		truth_put(code + i * TRUTH_BLOCK, (int)draw(TRUTH_SLOTS));
		snprintf(name, sizeof(name), "crowd_%d_%u_%llx", index, i,
			 (unsigned long long)draw(1 << 30));
		dbgdyn_begin(name, strlen(name), draw(2) ? &opts : NULL, &contexts[i]);
		truth_register(contexts[i], code + i * TRUTH_BLOCK, name, (int)i % TRUTH_SLOTS,
			       NULL);
		run_code(code + i * TRUTH_BLOCK, 0.0001);
	}
	arrive(CROWD);
	for (unsigned int i = 0; i < WIRE_NR_FACILITIES; i++)
		dbgdyn_end(contexts[i]);
	usleep((unsigned int)draw(500000));
}

static int crowd(void)
{
	return keep_children(CROWD, be_in_crowd);
}

/* ---- names of processes, each of which would be a workload ----------------------------------- */

static void be_renamed(int index)
{
	unsigned char *code = truth_map(TRUTH_BLOCK);
	char name[16];

	(void)index;
	if (!code)
		return;
	truth_put(code, (int)draw(TRUTH_SLOTS));
	arrive(RENAMED);
	for (;;) {
		snprintf(name, sizeof(name), "%llx", (unsigned long long)draw(1ull << 40));
		prctl(PR_SET_NAME, name);
		run_code(code, 0.0005);
	}
}

static int renames(void)
{
	return keep_children(RENAMED, be_renamed);
}

/* ---- floods ---------------------------------------------------------------------------------- */

/* What the daemon said, for the search for secrets. */
static void keep_answer(int sock)
{
	static int file = -1;
	static size_t kept;
	char text[65536];
	ssize_t n = recv(sock, text, sizeof(text), MSG_DONTWAIT);

	if (file < 0) {
		snprintf(text + 60000, 64, "answers-%d", getpid());
		file = open(text + 60000, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
	}
	if (n > 0 && kept < 1 << 22 && write(file, text, (size_t)n) == n)
		kept += (size_t)n;
}

static void one_request(char *line, size_t size)
{
	static const char *const fixed[] = { "{\"cmd\":\"status\"}", "{\"cmd\":\"flush\"}",
					     "{\"cmd\":\"quit\"}",   "{\"cmd\":\"epoch\"}",
					     "{\"cmd\":\"log\"}",    "{\"cmd\":",
					     "[[[[[[[[[[[[",	     "{\"cmd\":\"register\"}" };
	uint64_t kind = draw(10);

	if (kind < 8) {
		snprintf(line, size, "%s", fixed[kind]);
	} else if (kind == 8) {
		snprintf(line, size, "{\"cmd\":\"label\",\"pid\":%d,\"label\":\"l%llu\"}", self,
			 (unsigned long long)draw(1000));
	} else {
		memset(line, 'x', size - 1);
		line[size - 1] = '\0';
	}
}

static void be_asking(int index)
{
	char line[8192];
	int sock = client_dial(WIRE_CONTROL_NAME, SOCK_STREAM | SOCK_NONBLOCK);

	(void)index;
	arrive(16);
	if (sock < 0)
		return;
	for (uint64_t n = draw(400); n; n--) {
		one_request(line, draw(20) ? 200 : sizeof(line));
		client_send(sock, line, strlen(line), -1);
		if (draw(50))
			client_send(sock, "\n", 1, -1);
		if (draw(2))
			keep_answer(sock);
	}
	close(sock);
}

static int control(void)
{
	return keep_children(16, be_asking);
}

/* As dcpitop does, but without a pause; some do not read what they asked for. */
static void be_viewing(int index)
{
	static const char line[] = "{\"cmd\":\"watch\"}\n";
	int sock = client_dial(WIRE_CONTROL_NAME, SOCK_STREAM | SOCK_NONBLOCK);

	arrive(VIEWERS);
	for (uint64_t n = 1 + draw(200); n && sock >= 0; n--) {
		client_send(sock, line, sizeof(line) - 1, -1);
		if (index % 2)
			keep_answer(sock);
		usleep((unsigned int)draw(20000));
	}
	close(sock);
}

static int viewers(void)
{
	return keep_children(VIEWERS, be_viewing);
}

static void be_connecting(int index)
{
	int socks[256];

	for (int i = 0; i < 256; i++)
		socks[i] = index % 2 ? client_dial(WIRE_CONTROL_NAME, SOCK_STREAM | SOCK_NONBLOCK)
				     : client_dial(WIRE_DYN_NAME, SOCK_SEQPACKET | SOCK_NONBLOCK);
	arrive(8);
	if (draw(2))
		usleep((unsigned int)draw(500000));
	for (int i = 0; i < 256; i++)
		if (socks[i] >= 0)
			close(socks[i]);
}

static int connections(void)
{
	return keep_children(8, be_connecting);
}

/* ---- register -------------------------------------------------------------------------------- */

/* A register request of this process: of @image, with the descriptor @fd beside it. */
static void register_image(int sock, uint64_t start, uint64_t size, const char *image, int fd)
{
	struct stat st = { 0 };
	char line[1024];

	stat(image, &st);
	snprintf(line, sizeof(line),
		 "{\"cmd\":\"register\",\"pid\":%d,\"start\":%llu,\"size\":%llu,\"dev_major\":%u,"
		 "\"dev_minor\":%u,\"inode\":%llu,\"image\":\"%s\",\"name\":\"registered\"}",
		 self, (unsigned long long)start, (unsigned long long)size,
		 (unsigned int)(st.st_dev >> 8 & 0xfff), (unsigned int)(st.st_dev & 0xff),
		 (unsigned long long)st.st_ino, image);
	client_send(sock, line, strlen(line), -1);
	client_send(sock, "\n", 1, fd);
	keep_answer(sock);
}

static void be_registering(int index)
{
	int sock = client_dial(WIRE_CONTROL_NAME, SOCK_STREAM), exe;

	(void)index;
	exe = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	for (int i = 0; i < 200 && sock >= 0; i++)
		register_image(sock, draw(2) ? wild_number(0) >> 1 : TRUTH_BASE + draw(1 << 28),
			       1 + draw(1 << 20), "/bin/sh", exe);
	close(sock);
	close(exe);
}

/* Every other page may be executed: so many mappings. */
static int maps(void)
{
	const size_t len = (size_t)MAPPINGS * 4096;
	char *p = mmap((void *)TRUTH_BASE, len, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	for (size_t at = 0; p != MAP_FAILED && at < len; at += 8192)
		if (mprotect(p + at, 4096, PROT_READ | PROT_EXEC) < 0)
			return die("mappings");
	if (p == MAP_FAILED)
		return die("memory");
	full();
	for (;;)
		be_registering(0);
}

/* Root's files, by name, by a descriptor that reads nothing, or as another's. */
static int files(void)
{
	const char *folder = getenv("ATTACK_SECRETS");
	unsigned char *code = truth_map(TRUTH_BLOCK);
	char path[512];
	bool announced = false;

	if (!folder || !code)
		return 2;
	truth_put(code, 1);
	for (;;) {
		static const char *const names[] = { "secret.so", "secret.txt", "none" };
		int sock = client_dial(WIRE_CONTROL_NAME, SOCK_STREAM), fd = -1;

		snprintf(path, sizeof(path), "%s/%s", folder, names[draw(3)]);
		switch (draw(4)) {
		case 0:
			fd = open(path, O_PATH | O_CLOEXEC);
			break;
		case 1:
			fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
			break;
		case 2:
			fd = open("/proc/self/mem", O_RDONLY | O_CLOEXEC);
			break;
		}
		if (sock >= 0) {
			register_image(sock, (uintptr_t)code, 4096, path, fd);
			run_code(code, 0.01);
			keep_answer(sock);
			close(sock);
		}
		close(fd);
		if (!announced)
			full();
		announced = true;
	}
}

/* ---- hostile perf maps and jitdumps ---------------------------------------------------------- */

static void write_map(int fd, uint64_t addr)
{
	char *big;
	FILE *f;

	switch (draw(5)) {
	case 0: /* one line */
		big = malloc(8 << 20);
		if (big) {
			memset(big, 'a', 8 << 20);
			(void)!write(fd, big, 8 << 20);
		}
		free(big);
		return;
	case 1:
		(void)!ftruncate(fd, (off_t)1 << (20 + draw(22)));
		return;
	}
	f = fdopen(dup(fd), "w");
	for (uint64_t n = draw(20000); n && f; n--)
		fprintf(f, "%llx %llx \033[2J%.*s_%llu\n",
			(unsigned long long)(draw(2) ? addr + draw(4096) : wild_number(addr)),
			(unsigned long long)(draw(2) ? draw(4096) : wild_number(16)), (int)draw(64),
			"-rf ../../../..//////%s%n%n%n", (unsigned long long)n);
	if (f)
		fclose(f);
}

static void be_mapped(int index)
{
	const char *folder = getenv("ATTACK_SECRETS");
	unsigned char *code = truth_map(TRUTH_BLOCK);
	char path[64], secret[512];
	int fd;

	(void)index;
	if (!code)
		return;
	truth_put(code, 1);
	snprintf(path, sizeof(path), "/tmp/perf-%d.map", self);
	snprintf(secret, sizeof(secret), "%s/secret.map", folder ? folder : "");
	switch (draw(6)) {
	case 0:
		(void)!symlink(secret, path);
		break;
	case 1:
		mkfifo(path, 0666);
		break;
	default:
		fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
		write_map(fd, (uintptr_t)code);
		close(fd);
	}
	arrive(8);
	run_code(code, 0.3);
	unlink(path);
}

static int perfmaps(void)
{
	return keep_children(8, be_mapped);
}

/* True records, of which bytes change as they are read. */
static void be_dumped(int index)
{
	unsigned char *code = truth_map(8 * TRUTH_BLOCK), *dump;
	FILE *f = jitdump_open(".");
	char path[64];
	long len;

	(void)index;
	if (!code || !f)
		return;
	for (unsigned int i = 0; i < 8; i++) {
		truth_put(code + i * TRUTH_BLOCK, (int)i);
		jitdump_write(f, code + i * TRUTH_BLOCK, TRUTH_BLOCK, draw(2) ? "-dumped" : "../\n",
			      i);
	}
	fflush(f);
	len = ftell(f);
	dump = mmap(NULL, (size_t)len, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(f), 0);
	if (dump != MAP_FAILED)
		(void)!mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fileno(f), 0);
	arrive(8);
	for (uint64_t n = 20 + draw(60); n && dump != MAP_FAILED; n--) {
		run_code(code + draw(8) * TRUTH_BLOCK, 0.002);
		for (uint64_t k = draw(5); k; k--) {
			uint64_t number = wild_number(0);

			memcpy(dump + draw((uint64_t)len - 8), &number, draw(2) ? 4 : 8);
		}
		if (!draw(20))
			(void)!ftruncate(fileno(f), len + (off_t)draw(1ull << 40));
	}
	snprintf(path, sizeof(path), "jit-%d.dump", self);
	unlink(path);
	fclose(f);
}

static int jitdumps(void)
{
	return keep_children(8, be_dumped);
}

/* ---- disk fillers ---------------------------------------------------------------------------- */

static uint64_t *filled; /* bytes, of all */

static void fill_code(unsigned char *code)
{
	truth_put(code, (int)draw(TRUTH_SLOTS));
	for (size_t at = TRUTH_BLOCK; at + 8 <= FILLER_CODE; at += 64) {
		uint64_t number = truth_random(&seed);

		memcpy(code + at, &number, 8);
	}
}

static void be_filling(int index)
{
	enum { NR = 16 };
	unsigned char *code =
		mmap(NULL, (size_t)NR * FILLER_CODE, PROT_READ | PROT_WRITE | PROT_EXEC,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	/* It is not for the daemon to say how much comes. */
	struct dbgdyn_options opts = { .size = sizeof(opts), .timeout_ms = 100 };
	struct dbgdyn_routine r = { .size = sizeof(r),
				    .name = { "fill", 4 },
				    .code_len = FILLER_CODE };
	uint64_t context, before;

	(void)index;
	if (code == MAP_FAILED || dbgdyn_begin("filler", 6, &opts, &context) != DBGDYN_OK)
		return;
	for (;;) {
		for (unsigned int i = 0; i < NR; i++) {
			r.code = code + i * FILLER_CODE;
			fill_code(code + i * FILLER_CODE);
			dbgdyn_register(context, &r, NULL);
			run_code(code + i * FILLER_CODE, 0.001);
		}
		dbgdyn_flush(context);
		before = __atomic_fetch_add(filled, NR * FILLER_CODE, __ATOMIC_RELAXED);
		if (before < FILL && before + NR * FILLER_CODE >= FILL)
			full();
		/* By then its process may hold no more: another one. */
		if (!draw(4))
			return;
	}
}

static int disk(void)
{
	return keep_children(FILLERS, be_filling);
}

/* ---- an honest one --------------------------------------------------------------------------- */

static volatile sig_atomic_t over;

static void on_term(int sig)
{
	(void)sig;
	over = 1;
}

/* CPU time of pieces of code as truth_run() has them, with or without its clock between them. */
static double pieces(const unsigned char *code, bool clock)
{
	void (*run)(unsigned long, unsigned long) =
		(void (*)(unsigned long, unsigned long))(void *)(uintptr_t)code;
	double begin = truth_clock(CLOCK_THREAD_CPUTIME_ID);
	uint64_t random = 11;

	for (int i = 0; i < 1000; i++) {
		uint64_t r = truth_random(&random);

		run(5000 + r % 30000, 5000 + (r >> 32) % 30000);
		if (clock)
			truth_clock(CLOCK_THREAD_CPUTIME_ID);
	}
	return truth_clock(CLOCK_THREAD_CPUTIME_ID) - begin;
}

static int ascending(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

/* Which part of the time that truth_run() measures is the code's; the rest is the clock's own. */
static double code_part(unsigned char *code)
{
	enum { NR = 15 };
	double parts[NR], with, part;

	truth_put(code, 1);
	for (int i = 0; i < NR; i++) {
		with = pieces(code, true);
		parts[i] = with > 0 ? pieces(code, false) / with : 1;
	}
	/* The median: a host that takes the CPU away makes any of them longer. */
	qsort(parts, NR, sizeof(*parts), ascending);
	part = parts[NR / 2];
	return part < 1 ? part : 1;
}

static int calibrate(void)
{
	unsigned char *code = truth_map(TRUTH_BLOCK);

	if (!code)
		return die("memory");
	printf("%.6f\n", code_part(code));
	return 0;
}

static int honest(const char *name, const char *prefix, double part)
{
	unsigned char *code = truth_map(TRUTH_BLOCKS * TRUTH_BLOCK);
	struct sigaction act = { .sa_handler = on_term };
	double ran[TRUTH_SLOTS] = { 0 }, begin = truth_clock(CLOCK_PROCESS_CPUTIME_ID);
	uint64_t context;
	int r;

	sigaction(SIGTERM, &act, NULL);
	if (!code || dbgdyn_begin(name, strlen(name), NULL, &context) != DBGDYN_OK)
		return die("begin");
	while (!over) {
		truth_live(context, code, prefix, 0.03, ran, &seed);
		usleep(60000);
	}
	r = dbgdyn_end(context);
	for (int i = 0; i < TRUTH_SLOTS; i++)
		ran[i] *= part;
	truth_print(prefix, ran);
	printf("cpu %.6f\nend %s\n", truth_clock(CLOCK_PROCESS_CPUTIME_ID) - begin,
	       dbgdyn_strerror(r));
	return 0;
}

/* ---- the one that watches over them ---------------------------------------------------------- */

/* All children of this process, those of ended ones too. They may be new ones' parents. */
static void kill_children(void)
{
	char path[64], text[65536];
	ssize_t len;
	int fd;

	snprintf(path, sizeof(path), "/proc/self/task/%d/children", getpid());
	fd = open(path, O_RDONLY | O_CLOEXEC);
	len = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
	close(fd);
	text[len > 0 ? len : 0] = '\0';
	for (char *at = text, *end; *at; at = end) {
		long pid = strtol(at, &end, 10);

		if (end == at)
			break;
		kill((pid_t)pid, SIGKILL);
	}
}

static void reap(pid_t pid)
{
	char path[64];

	snprintf(path, sizeof(path), "/tmp/perf-%d.map", pid);
	unlink(path);
	snprintf(path, sizeof(path), "jit-%d.dump", pid);
	unlink(path);
}

/* Until there are none, or it is time: what waits in a file system cannot be killed. */
static void kill_all(double end)
{
	while (truth_clock(CLOCK_MONOTONIC) < end) {
		pid_t pid;

		kill_children();
		pid = waitpid(-1, NULL, WNOHANG);
		if (pid < 0)
			return;
		if (pid > 0)
			reap(pid);
		else
			usleep(2000);
	}
}

/* Take what they print, until they have ended, or it is time: @end, or @most where none has said
 * that they are all there. */
static bool watch(int from, pid_t first, double end, double most, bool *said)
{
	struct pollfd p = { from, POLLIN, 0 };
	char text[4096];
	int status;
	pid_t pid;

	while (!over && truth_clock(CLOCK_MONOTONIC) < (*said ? end : most)) {
		if (poll(&p, 1, 50) > 0 && p.revents & POLLIN) {
			ssize_t n = read(from, text, sizeof(text) - 1);

			text[n > 0 ? n : 0] = '\0';
			*said |= strstr(text, "full\n") != NULL;
		} else if (p.revents & POLLHUP) {
			p.fd = -1;
		}
		while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
			reap(pid);
			if (pid == first)
				return WIFEXITED(status) && WEXITSTATUS(status) == 0;
		}
	}
	return false;
}

static bool become_nobody(void)
{
	return setgroups(0, NULL) == 0 && setresgid(OTHER, OTHER, OTHER) == 0 &&
	       setresuid(OTHER, OTHER, OTHER) == 0;
}

/* Descriptors of its own: the pipe, and that of the faults. */
static void start(char **argv, int out, bool drop)
{
	char number[16];
	int faults = open("/dev/userfaultfd", O_RDWR);

	dup2(out, STDOUT_FILENO);
	snprintf(number, sizeof(number), "%d", faults);
	setenv("ATTACK_FAULTS", number, 1);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (drop && !become_nobody())
		_exit(die("setuid"));
	execvp(argv[0], argv);
	_exit(die(argv[0]));
}

static int run(char **argv, double seconds, double most, bool drop)
{
	struct sigaction act = { .sa_handler = on_term };
	double begin = truth_clock(CLOCK_MONOTONIC);
	bool said = false, good;
	int pipes[2];
	pid_t pid;

	sigaction(SIGTERM, &act, NULL);
	sigaction(SIGINT, &act, NULL);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0 || pipe2(pipes, O_CLOEXEC) < 0)
		return die("children");
	pid = fork();
	if (pid == 0)
		start(argv, pipes[1], drop);
	close(pipes[1]);
	good = watch(pipes[0], pid, begin + seconds, begin + most, &said);
	kill_all(truth_clock(CLOCK_MONOTONIC) + 20);
	return good || said ? 0 : 3;
}

static const struct {
	const char *name;
	int (*run)(void);
} kinds[] = {
	{ "registries", registries }, { "memory", memory },	{ "crowd", crowd },
	{ "renames", renames },	      { "control", control },	{ "connections", connections },
	{ "viewers", viewers },	      { "maps", maps },		{ "files", files },
	{ "perfmaps", perfmaps },     { "jitdumps", jitdumps }, { "disk", disk },
};

static int attack(const char *kind)
{
	const char *faults = getenv("ATTACK_FAULTS");
	uint64_t *shared =
		mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (shared == MAP_FAILED)
		return die("memory");
	arrived = (void *)shared;
	filled = shared + 1;
	userfaults = faults ? atoi(faults) : -1;
	signal(SIGPIPE, SIG_IGN);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		if (!strcmp(kinds[i].name, kind))
			return kinds[i].run();
	fprintf(stderr, "attack: unknown kind '%s'\n", kind);
	return 2;
}

int main(int argc, char **argv)
{
	if (argc < 3)
		return 2;
	seed = strtoull(argv[2], NULL, 10) * 2654435761u + 1;
	self = getpid();
	if (!strcmp(argv[1], "calibrate"))
		return calibrate();
	if (!strcmp(argv[1], "honest") && argc == 6)
		return honest(argv[3], argv[4], atof(argv[5]));
	if ((!strcmp(argv[1], "run") || !strcmp(argv[1], "keep")) && argc >= 6)
		return run(argv + 5, atof(argv[3]), atof(argv[4]), argv[1][0] == 'r');
	return attack(argv[1]);
}
