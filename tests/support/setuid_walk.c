/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A client that becomes a set-user-ID program, and itself again, while the reader walks a range of
 * its memory; for tests/system/setuid-walk.sh:
 *
 *	setuid_walk HELPERS CLIENT VAULT FILE ROUNDS   as root: so many clients, whose memory the
 *	                             reader is asked for while they change
 *	CLIENT client VAULT FILE     another user's: it waits for a byte, and executes VAULT
 *	VAULT victim CLIENT FILE     set-user-ID root: FILE's bytes stand in its memory for a while,
 *	                             then it executes the client, as its user
 *	CLIENT again! CLIENT FILE    looks as it did at first
 *
 * Names and paths have one length each, for it tells where a program's stack begins.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "reader.h"
#include "registry.h"

#define BASE 0x200000000000u
#define LEN  (32u << 20)

enum { OTHER = 65534, SECRET_LEN = 16, OWN = 0x5a, OWN_LEN = 1 << 20, STEP = 16 * 4096 };

static int die(const char *what)
{
	fprintf(stderr, "setuid_walk: %s: %s\n", what, strerror(errno));
	return 1;
}

static int map_at(uint64_t addr, size_t len)
{
	void *at = (void *)(uintptr_t)addr;

	return mmap(at, len, PROT_READ | PROT_WRITE,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == at
		       ? 0
		       : -1;
}

/* ---- the two programs ------------------------------------------------------------------------ */

static void own_path(char path[512])
{
	ssize_t n = readlink("/proc/self/exe", path, 511);

	path[n < 0 ? 0 : n] = '\0';
}

/* A program is placed alike each time it is executed; an exec that gives rights undoes that. */
static int as_at_first(char **argv)
{
	char own[512];

	if (personality(0xffffffff) & ADDR_NO_RANDOMIZE)
		return 0;
	personality(ADDR_NO_RANDOMIZE);
	own_path(own);
	execv(own, argv);
	return -1;
}

static int client(char **argv)
{
	char byte, own[512];

	if (as_at_first(argv) < 0 || map_at(BASE, OWN_LEN) < 0)
		return die("client");
	own_path(own);
	memset((void *)(uintptr_t)BASE, OWN, OWN_LEN);
	if (write(STDOUT_FILENO, "", 1) != 1 || read(STDIN_FILENO, &byte, 1) != 1)
		return die("client");
	execl(argv[2], own, "victim", own, argv[3], (char *)NULL);
	return die(argv[2]);
}

static int victim(char **argv)
{
	char *again[] = { argv[0], (char *)(uintptr_t) "again!", argv[2], argv[3], NULL };
	int fd = open(argv[3], O_RDONLY | O_CLOEXEC);

	if (fd < 0 || map_at(BASE, LEN) < 0)
		return die(argv[3]);
	for (uint64_t at = BASE; at < BASE + LEN; at += STEP)
		if (pread(fd, (void *)(uintptr_t)at, SECRET_LEN, 0) != SECRET_LEN)
			return die(argv[3]);
	if (getenv("STAY")) {
		(void)!write(STDOUT_FILENO, "", 1);
		pause();
	}
	usleep((useconds_t)getpid() % 16 * 100);
	if (setresuid(getuid(), getuid(), getuid()) < 0)
		return die("setresuid");
	execv(argv[2], again);
	return die(argv[2]);
}

static int again(char **argv)
{
	if (as_at_first(argv) < 0)
		return die("again");
	(void)!write(STDOUT_FILENO, "", 1);
	pause();
	return 0;
}

/* ---- who asks -------------------------------------------------------------------------------- */

struct life {
	pid_t pid;
	int to, from;
	uint64_t number;
};

static bool hears(const struct life *l)
{
	char byte;

	return read(l->from, &byte, 1) == 1;
}

static int begin(char **paths, bool stays, struct life *l)
{
	int in[2], out[2];

	if (pipe2(in, O_CLOEXEC) < 0 || pipe2(out, O_CLOEXEC) < 0)
		return -1;
	l->pid = fork();
	if (l->pid == 0) {
		if (dup2(in[0], 0) < 0 || dup2(out[1], 1) < 0 ||
		    setresgid(OTHER, OTHER, OTHER) < 0 || setresuid(OTHER, OTHER, OTHER) < 0 ||
		    (stays && setenv("STAY", "1", 1) < 0))
			_exit(1);
		execl(paths[0], paths[0], "client", paths[1], paths[2], (char *)NULL);
		_exit(die(paths[0]));
	}
	close(in[0]);
	close(out[1]);
	l->to = in[1];
	l->from = out[0];
	return l->pid > 0 && hears(l) ? registry_process_life(l->pid, NULL, &l->number) : -1;
}

static void end(struct life *l)
{
	kill(l->pid, SIGKILL);
	waitpid(l->pid, NULL, 0);
	close(l->to);
	close(l->from);
}

static int ask(struct reader *r, const struct life *l, struct base_buf *out)
{
	const struct wire_range range = { .kind = WIRE_RANGE_CODE, .base = BASE, .len = LEN };

	base_buf_clear(out);
	return reader_range_read(r, l->pid, OTHER, l->number, &range, out);
}

struct result {
	unsigned int nr_secrets, nr_own, nr_alike, nr_privileged;
};

/* It changes while the range is read. */
static int change(struct reader *r, char **paths, const char *secret, struct result *to)
{
	struct base_buf out = { 0 };
	uint64_t number = 0;
	struct life l;
	int code;

	if (begin(paths, false, &l) < 0 || write(l.to, "", 1) != 1)
		return die("begin");
	code = ask(r, &l, &out);
	to->nr_secrets += code == 0 && out.len && memmem(out.data, out.len, secret, SECRET_LEN);
	to->nr_alike +=
		hears(&l) && registry_process_life(l.pid, NULL, &number) == 0 && number == l.number;
	base_buf_release(&out);
	end(&l);
	return 0;
}

/* It is read as the client, and not when it stays what it became, by its true number. */
static int stay(struct reader *r, char **paths, struct result *to)
{
	struct base_buf out = { 0 };
	struct life l;

	if (begin(paths, true, &l) < 0)
		return die("begin");
	to->nr_own += ask(r, &l, &out) == 0 && out.len && memchr(out.data, OWN, out.len);
	if (write(l.to, "", 1) != 1 || !hears(&l) ||
	    registry_process_life(l.pid, NULL, &l.number) < 0)
		return die("begin");
	base_buf_clear(&out);
	to->nr_privileged += ask(r, &l, &out) != -ESRCH || out.len;
	base_buf_release(&out);
	end(&l);
	return 0;
}

static int walk(const char *helpers, char **paths, int rounds)
{
	int fd = open(paths[2], O_RDONLY | O_CLOEXEC), r = 0;
	struct result result = { 0 };
	char secret[SECRET_LEN];
	struct base_err err = { 0 };
	struct reader *reader;

	if (fd < 0 || read(fd, secret, sizeof(secret)) != SECRET_LEN)
		return die(paths[2]);
	if (reader_open(helpers, &reader, &err) < 0)
		return die(err.text);
	for (int i = 0; r == 0 && i < rounds; i++)
		r = change(reader, paths, secret, &result);
	for (int i = 0; r == 0 && i < 3; i++)
		r = stay(reader, paths, &result);
	reader_close(reader);
	printf("secrets %u own %u alike %u privileged %u\n", result.nr_secrets, result.nr_own,
	       result.nr_alike, result.nr_privileged);
	return r;
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";

	if (argc == 4 && !strcmp(what, "client"))
		return client(argv);
	if (argc == 4 && !strcmp(what, "victim"))
		return victim(argv);
	if (argc == 4 && !strcmp(what, "again!"))
		return again(argv);
	return argc == 6 ? walk(what, argv + 2, atoi(argv[5])) : 2;
}
