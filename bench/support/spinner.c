/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * spinner CPU SECONDS: prints "COUNT MEDIAN" of the interruptions that a thread on that CPU sees
 * (spin.h), nanoseconds.
 */
#include <stdio.h>
#include <stdlib.h>

#include "spin.h"

int main(int argc, char **argv)
{
	struct spin s;

	if (argc != 3) {
		fputs("usage: spinner CPU SECONDS\n", stderr);
		return 2;
	}
	if (spin_begin(&s, atoi(argv[1]), NULL) < 0) {
		perror("spinner");
		return 1;
	}
	spin_for(&s, atof(argv[2]));
	printf("%zu %u\n", s.nr, spin_median(&s));
	free(s.gaps);
	return 0;
}
