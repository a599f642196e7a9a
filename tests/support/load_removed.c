/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * load_removed FILE SECONDS [memfd]: load a library, remove it at once, as some runtimes do with
 * what their compiler wrote, and work in it. In place of its name a FIFO stands then. With memfd a
 * copy in memory is loaded.
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "removed_code.h"

/* The copy's path. */
static void copy(const char *file, char path[64])
{
	int from = open(file, O_RDONLY | O_CLOEXEC), to = memfd_create("removed", MFD_CLOEXEC);
	char bytes[65536];
	ssize_t n;

	while ((n = read(from, bytes, sizeof(bytes))) > 0)
		if (write(to, bytes, (size_t)n) != n)
			exit(1);
	close(from);
	snprintf(path, 64, "/proc/self/fd/%d", to);
}

int main(int argc, char **argv)
{
	char path[64];
	void (*work)(double seconds);
	void *lib;

	if (argc < 3)
		return 2;
	if (argc > 3)
		copy(argv[1], path);
	lib = dlopen(argc > 3 ? path : argv[1], RTLD_NOW);
	if (!lib) {
		fprintf(stderr, "%s\n", dlerror());
		return 1;
	}
	unlink(argv[1]);
	mkfifo(argv[1], 0666);
	work = (void (*)(double))dlsym(lib, "removed_work");
	work(strtod(argv[2], NULL));
	return 0;
}
