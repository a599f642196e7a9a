/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * remap SECONDS MILLISECONDS OBJECT…: maps the code of one object after the other (remap_code) at
 * one and the same address, and runs its entry each time for up to twice so many milliseconds,
 * chosen by chance, twice as long for the second, and so on. Prints "OBJECT MILLISECONDS" of its
 * own CPU time, for each of them.
 */
#include <elf.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#if UINTPTR_MAX != UINT64_MAX
#error "64-bit ELF only"
#endif

/* Far from whatever else is mapped. */
#define PLACE ((char *)0x5a0000000000)

enum { MAX_OBJECTS = 8 };

struct object {
	int fd;
	size_t off, len; /* of its code in the file */
	size_t entry;	 /* in there */
	double cpu_ms;
};

static double now_ms(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static int object_open(struct object *o, const char *path)
{
	Elf64_Ehdr head;
	Elf64_Phdr p;

	o->fd = open(path, O_RDONLY | O_CLOEXEC);
	if (o->fd < 0 || pread(o->fd, &head, sizeof(head), 0) != sizeof(head))
		return perror(path), -1;
	for (int i = 0; i < head.e_phnum; i++) {
		off_t at = (off_t)(head.e_phoff + (uint64_t)i * sizeof(p));

		if (pread(o->fd, &p, sizeof(p), at) != sizeof(p))
			return perror(path), -1;
		if (p.p_type != PT_LOAD || !(p.p_flags & PF_X))
			continue;
		o->off = p.p_offset & ~4095ul;
		o->len = (p.p_offset & 4095) + p.p_memsz;
		o->entry = head.e_entry - (p.p_vaddr & ~4095ul);
		return 0;
	}
	return fprintf(stderr, "%s: no code\n", path), -1;
}

static int turn(struct object *o, double ms)
{
	void (*entry)(unsigned long n);
	double start, used;
	char *at = mmap(PLACE, o->len, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, o->fd,
			(off_t)o->off);

	if (at != PLACE)
		return perror("remap: mmap"), -1;
	memcpy(&entry, &(char *){ at + o->entry }, sizeof(entry));
	start = now_ms(CLOCK_PROCESS_CPUTIME_ID);
	do {
		entry(300000);
		used = now_ms(CLOCK_PROCESS_CPUTIME_ID) - start;
	} while (used < ms);
	o->cpu_ms += used;
	/* Every other time its place is empty for a moment, as after dlclose. */
	if (random() % 2)
		munmap(at, o->len);
	return 0;
}

int main(int argc, char **argv)
{
	struct object objects[MAX_OBJECTS] = { 0 };
	int nr = argc > 4 && argc - 3 <= MAX_OBJECTS ? argc - 3 : 0;
	double end = now_ms(CLOCK_MONOTONIC) + (nr ? atof(argv[1]) * 1e3 : 0);
	double mean = nr ? atof(argv[2]) : 0;

	if (!nr)
		return fprintf(stderr, "usage: remap SECONDS MILLISECONDS OBJECT OBJECT...\n"), 2;
	for (int i = 0; i < nr; i++)
		if (object_open(&objects[i], argv[3 + i]) < 0)
			return 1;
	for (int i = 0; now_ms(CLOCK_MONOTONIC) < end; i = (i + 1) % nr)
		if (turn(&objects[i], 2 * (i + 1) * mean * (double)random() / RAND_MAX) < 0)
			return 1;
	for (int i = 0; i < nr; i++)
		printf("%s %.3f\n", argv[3 + i], objects[i].cpu_ms);
	return 0;
}
