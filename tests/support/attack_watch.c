/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The daemon's user beside attacks, for attack.sh. "attack_watch" asks for the status ten times a
 * second, and now and then for a flush or an epoch, until SIGTERM; then it prints "NAME VALUE"
 * lines. "attack_watch FILE" prints the identity that FILE has without a build-id.
 *
 * An answer that is late is late for each question that was due meanwhile: the times are those of
 * somebody who comes at any moment.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <json-c/json.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base.h"
#include "client.h"
#include "truth_jit.h"
#include "wire.h"

enum { TICK_MS = 100, PATIENCE_MS = 60000, POLLS = 1 << 20 };

/* Of both processes. */
static struct watch {
	uint64_t polls, refused, broken, flushes, failed, unanswered;
	uint64_t received, lost, missed, lost_load;
	double longest_flush_ms;
	uint32_t ms[POLLS];
} * w;

static volatile sig_atomic_t over;

static void on_term(int sig)
{
	(void)sig;
	over = 1;
}

/* One line, into @text; its length, 0 at the end, or -1 after @ms. */
static ssize_t read_line(int sock, char *text, size_t size, int ms)
{
	double end = truth_clock(CLOCK_MONOTONIC) + ms / 1000.0;
	size_t len = 0;

	while (len + 1 < size && (!len || text[len - 1] != '\n')) {
		struct pollfd p = { sock, POLLIN, 0 };
		double left = end - truth_clock(CLOCK_MONOTONIC);
		ssize_t n;

		if (left <= 0)
			return -1;
		if (poll(&p, 1, (int)(left * 1000) + 1) <= 0)
			continue;
		n = recv(sock, text + len, size - len - 1, 0);
		if (n <= 0)
			return 0;
		len += (size_t)n;
	}
	text[len] = '\0';
	return (ssize_t)len;
}

/* A connection, which others may have to be taken before: at most @ms later. */
static int dial(int ms)
{
	double end = truth_clock(CLOCK_MONOTONIC) + ms / 1000.0;
	int sock;

	do {
		sock = client_dial(WIRE_CONTROL_NAME, SOCK_STREAM | SOCK_NONBLOCK);
		if (sock < 0)
			usleep(10000);
	} while (sock < 0 && !over && truth_clock(CLOCK_MONOTONIC) < end);
	return sock;
}

/* The answer to @request, or NULL: none came in @ms. */
static struct json_object *ask(const char *request, int ms)
{
	static char text[1 << 18];
	double begin = truth_clock(CLOCK_MONOTONIC);
	int sock = dial(ms);
	struct json_object *o = NULL;

	if (sock < 0)
		return NULL;
	ms -= (int)(1000 * (truth_clock(CLOCK_MONOTONIC) - begin));
	if (client_send(sock, request, strlen(request), -1) > 0 &&
	    read_line(sock, text, sizeof(text), ms) > 0)
		o = json_tokener_parse(text);
	close(sock);
	return o;
}

static struct json_object *member(struct json_object *o, const char *name)
{
	struct json_object *m = NULL;

	json_object_object_get_ex(o, name, &m);
	return m;
}

static uint64_t number(struct json_object *o, const char *name)
{
	return (uint64_t)json_object_get_int64(member(o, name));
}

static bool good(struct json_object *o)
{
	return o && json_object_get_boolean(member(o, "ok"));
}

/* received = stored + pending + the sum of what was lost. */
static void balance(struct json_object *o)
{
	uint64_t sum = number(o, "stored") + number(o, "pending"), lost = 0;

	json_object_object_foreach(member(o, "losses"), name, value)
	{
		(void)name;
		lost += (uint64_t)json_object_get_int64(value);
	}
	if (number(o, "received") != sum + lost ||
	    !json_object_get_boolean(member(o, "balanced"))) {
		w->broken++;
		fprintf(stderr,
			"attack_watch: received %" PRIu64 ", stored and pending %" PRIu64
			", lost %" PRIu64 "\n",
			number(o, "received"), sum, lost);
	}
	w->received = number(o, "received");
	w->missed = number(o, "missed");
	w->lost_load = number(o, "lost_load_events");
	w->lost = lost;
}

static void keep(double ms)
{
	if (w->polls < POLLS)
		w->ms[w->polls++] = (uint32_t)ms;
}

/* Until there is an answer, or it is over. */
static void poll_status(double due)
{
	struct json_object *o = NULL;
	double now;

	for (;;) {
		o = ask("{\"cmd\":\"status\"}\n", PATIENCE_MS);
		if (good(o) || over)
			break;
		w->refused++;
		json_object_put(o);
		usleep(10000);
	}
	now = truth_clock(CLOCK_MONOTONIC);
	for (double t = due; t < now; t += TICK_MS / 1000.0)
		keep(1000 * (now - t));
	if (good(o))
		balance(o);
	else
		w->unanswered++;
	json_object_put(o);
}

static void watch_status(void)
{
	double due = truth_clock(CLOCK_MONOTONIC);

	while (!over) {
		double now;

		poll_status(due);
		now = truth_clock(CLOCK_MONOTONIC);
		while (due < now)
			due += TICK_MS / 1000.0;
		usleep((useconds_t)(1e6 * (due - now)));
	}
}

static void flush_once(bool epoch)
{
	double begin = truth_clock(CLOCK_MONOTONIC), ms;
	struct json_object *o =
		ask(epoch ? "{\"cmd\":\"epoch\"}\n" : "{\"cmd\":\"flush\"}\n", PATIENCE_MS);

	ms = 1000 * (truth_clock(CLOCK_MONOTONIC) - begin);
	w->flushes++;
	if (ms > w->longest_flush_ms)
		w->longest_flush_ms = ms;
	if (!good(o) && !over) {
		const char *error = o ? json_object_get_string(member(o, "error")) : NULL;

		w->failed++;
		fprintf(stderr, "attack_watch: %s failed after %.0f ms: %s\n",
			epoch ? "epoch" : "flush", ms, error ? error : "no answer");
	}
	json_object_put(o);
}

/* A flush in 1 to 4 seconds; each tenth is an epoch. */
static void watch_flushes(uint64_t seed)
{
	while (!over) {
		uint64_t r = truth_random(&seed);

		for (uint64_t i = 0; i < 10 + (r >> 8) % 30 && !over; i++)
			usleep(100000);
		if (!over)
			flush_once((r >> 32) % 10 == 0);
	}
}

static int by_size(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static void report(void)
{
	qsort(w->ms, w->polls, sizeof(*w->ms), by_size);
	printf("polls %" PRIu64 "\nrefused %" PRIu64 "\nunanswered %" PRIu64 "\n", w->polls,
	       w->refused, w->unanswered);
	printf("p50 %u\np99 %u\nmax %u\n", w->polls ? w->ms[w->polls / 2] : 0,
	       w->polls ? w->ms[w->polls * 99 / 100] : UINT32_MAX,
	       w->polls ? w->ms[w->polls - 1] : 0);
	printf("accounting_broken %" PRIu64 "\nflushes %" PRIu64 "\nflush_failed %" PRIu64
	       "\nflush_max %.0f\n",
	       w->broken, w->flushes, w->failed, w->longest_flush_ms);
	printf("received %" PRIu64 "\nlost %" PRIu64 "\nmissed %" PRIu64
	       "\nload_events_lost %" PRIu64 "\n",
	       w->received, w->lost, w->missed, w->lost_load);
}

static int identity(const char *path)
{
	static uint8_t head[BASE_ID_HEAD_LEN];
	char text[BASE_ID_TEXT_LEN];
	struct base_id id;
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0 || fstat(fd, &st) < 0)
		return 1;
	base_id_of_head(&id, (uint64_t)st.st_size, head, base_read_part(fd, 0, head, sizeof(head)));
	puts(base_id_text(&id, text));
	return 0;
}

/* CPUs may be shared among sessions first: one of our own has the daemon's priority (dcpid.c). */
static void raise_session(void)
{
	int fd = setsid() < 0 ? -1 : open("/proc/self/autogroup", O_WRONLY | O_CLOEXEC);

	if (fd < 0)
		return;
	(void)!write(fd, "-10", 3);
	close(fd);
}

int main(int argc, char **argv)
{
	struct sigaction act = { .sa_handler = on_term };
	const char *seed = getenv("DCPI_SEED");
	pid_t flusher;

	if (argc == 2)
		return identity(argv[1]);
	w = mmap(NULL, sizeof(*w), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (w == MAP_FAILED)
		return 1;
	sigaction(SIGTERM, &act, NULL);
	/* It is the daemon's time that is measured. */
	setpriority(PRIO_PROCESS, 0, -10);
	raise_session();
	flusher = fork();
	if (flusher == 0) {
		prctl(PR_SET_PDEATHSIG, SIGTERM);
		watch_flushes(seed ? strtoull(seed, NULL, 10) + 1 : 1);
		_exit(0);
	}
	watch_status();
	kill(flusher, SIGTERM);
	waitpid(flusher, NULL, 0);
	report();
	return 0;
}
