/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A small mutating driver for LLVMFuzzerTestOneInput, so that fuzz targets run with any compiler:
 *   fuzz_NAME [-seconds N] [-seed N] CORPUS-DIR-OR-FILE…
 * Every corpus file is run as it is, then mutations of them until the time is over: CPU time, so
 * that a busy machine tries as much, or four times as much of the clock's where a target waits for
 * something else than a CPU. A crash leaves the input in ./crash-NAME-SEED-N, because it is written
 * before each run and removed after.
 */
#include <dirent.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>
#include <fcntl.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

enum { FUZZ_INPUT_MAX = 1 << 16, CORPUS_MAX = 4096 };

static struct input {
	uint8_t *data;
	size_t len;
} corpus[CORPUS_MAX];
static size_t nr_corpus;
static uint64_t rng_state = 1;
static const uint8_t *current;
static size_t current_len;
static char crash_name[128];

static uint64_t rng(void)
{
	rng_state ^= rng_state << 13;
	rng_state ^= rng_state >> 7;
	rng_state ^= rng_state << 17;
	return rng_state;
}

static void add_file(const char *path)
{
	FILE *f = fopen(path, "rb");
	struct input in = { malloc(FUZZ_INPUT_MAX), 0 };

	if (!f || !in.data || nr_corpus == CORPUS_MAX) {
		fprintf(stderr, "cannot use corpus file '%s'\n", path);
		exit(1);
	}
	in.len = fread(in.data, 1, FUZZ_INPUT_MAX, f);
	fclose(f);
	corpus[nr_corpus++] = in;
}

static void add_path(const char *path)
{
	DIR *d = opendir(path);
	struct dirent *e;
	char name[4096];

	if (!d) {
		add_file(path);
		return;
	}
	while ((e = readdir(d))) {
		if (e->d_name[0] == '.')
			continue;
		snprintf(name, sizeof(name), "%s/%s", path, e->d_name);
		add_file(name);
	}
	closedir(d);
}

static void on_crash(int sig)
{
	int fd = open(crash_name, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	if (fd >= 0 && write(fd, current, current_len) == (ssize_t)current_len)
		(void)!write(2, "input kept in ./crash-*\n", 24);
	signal(sig, SIG_DFL);
	raise(sig);
}

static void run(const uint8_t *data, size_t len)
{
	/* An exact copy, so that reading one byte too many is seen. */
	uint8_t *copy = malloc(len ? len : 1);

	if (!copy)
		exit(1);
	memcpy(copy, data, len);
	current = copy;
	current_len = len;
	LLVMFuzzerTestOneInput(copy, len);
	free(copy);
}

static uint64_t interesting(void)
{
	static const uint64_t v[] = { 0,	  1,	      7,	 8,	    0x7f,
				      0x80,	  0xff,	      0x7fff,	 0xffff,    0x7fffffff,
				      0x80000000, 0xffffffff, INT64_MAX, UINT64_MAX };

	return v[rng() % (sizeof(v) / sizeof(v[0]))];
}

static void mutate_once(uint8_t *d, size_t *len)
{
	size_t at = *len ? rng() % *len : 0, n;
	uint64_t v;

	switch (*len ? rng() % 7 : 4) {
	case 0:
		d[at] ^= (uint8_t)(1u << rng() % 8);
		break;
	case 1:
		d[at] = (uint8_t)rng();
		break;
	case 2:
		v = interesting();
		n = (size_t)1 << rng() % 4;
		memcpy(d + at, &v, n < *len - at ? n : *len - at);
		break;
	case 3: /* cut */
		*len = at;
		break;
	case 4: /* insert */
		n = 1 + rng() % 16;
		if (*len + n > FUZZ_INPUT_MAX)
			break;
		memmove(d + at + n, d + at, *len - at);
		for (size_t i = 0; i < n; i++)
			d[at + i] = (uint8_t)rng();
		*len += n;
		break;
	case 5: /* remove */
		n = 1 + rng() % 32;
		n = n < *len - at ? n : *len - at;
		memmove(d + at, d + at + n, *len - at - n);
		*len -= n;
		break;
	case 6: /* splice from another input */ {
		struct input *o = &corpus[rng() % nr_corpus];

		if (!o->len)
			break;
		size_t from = rng() % o->len;

		n = 1 + rng() % 64;
		n = n < o->len - from ? n : o->len - from;
		n = n < *len - at ? n : *len - at;
		memcpy(d + at, o->data + from, n);
		break;
	}
	}
}

/* Seconds in which this thread could have run, and other programs had the CPU; 0 where the kernel
 * does not tell. */
static long starved_s(void)
{
	unsigned long long ran, waited = 0;
	FILE *f = fopen("/proc/self/schedstat", "re");

	if (f && fscanf(f, "%llu %llu", &ran, &waited) != 2)
		waited = 0;
	if (f)
		fclose(f);
	return (long)(waited / 1000000000);
}

static bool is_over(long seconds, time_t begin)
{
	static long starved;
	struct timespec t;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	if (t.tv_sec >= seconds)
		return true;
	if (time(NULL) - begin < 4 * seconds + starved)
		return false;
	starved = starved_s();
	return time(NULL) - begin >= 4 * seconds + starved;
}

int main(int argc, char **argv)
{
	static uint8_t work[FUZZ_INPUT_MAX + 64];
	long seconds = 10;
	uint64_t seed = 1, nr = 0;
	const char *base = strrchr(argv[0], '/') ? strrchr(argv[0], '/') + 1 : argv[0];

	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "-seconds") && i + 1 < argc)
			seconds = atol(argv[++i]);
		else if (!strcmp(argv[i], "-seed") && i + 1 < argc)
			seed = strtoull(argv[++i], NULL, 0);
		else
			add_path(argv[i]);
	}
	if (!nr_corpus) {
		fprintf(stderr, "usage: %s [-seconds N] [-seed N] CORPUS…\n", base);
		return 2;
	}
	rng_state = seed * 0x9e3779b97f4a7c15ull | 1;
	snprintf(crash_name, sizeof(crash_name), "crash-%s-%llu", base, (unsigned long long)seed);
	signal(SIGSEGV, on_crash);
	signal(SIGABRT, on_crash);
	signal(SIGBUS, on_crash);
	signal(SIGFPE, on_crash);
	for (size_t i = 0; i < nr_corpus; i++)
		run(corpus[i].data, corpus[i].len);
	for (time_t begin = time(NULL); !is_over(seconds, begin); nr++) {
		struct input *in = &corpus[rng() % nr_corpus];
		size_t len = in->len;

		memcpy(work, in->data, len);
		for (uint64_t k = 1 + rng() % 4; k; k--)
			mutate_once(work, &len);
		run(work, len);
	}
	printf("%s: %zu inputs, %llu mutations in %ld s, seed %llu\n", base, nr_corpus,
	       (unsigned long long)nr, seconds, (unsigned long long)seed);
	return 0;
}
