/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>

#include "perf_internal.h"

/* A number without sign or blanks, below a million. */
static int number_take(const char **at, unsigned long *out)
{
	char *end;

	if (**at < '0' || **at > '9')
		return -EINVAL;
	*out = strtoul(*at, &end, 10);
	*at = end;
	return *out < 1000000 ? 0 : -EINVAL;
}

int perf_cpus_parse(const char *text, unsigned int *cpus, size_t max)
{
	unsigned long from, to;
	size_t nr = 0;

	for (;; text++) {
		if (number_take(&text, &from) < 0)
			return -EINVAL;
		to = from;
		if (*text == '-' && (text++, number_take(&text, &to) < 0))
			return -EINVAL;
		if (to < from)
			return -EINVAL;
		for (; from <= to && nr < max; from++)
			cpus[nr++] = (unsigned int)from;
		if (*text != ',')
			break;
	}
	return *text == '\0' || *text == '\n' ? (int)nr : -EINVAL;
}

bool perf_cpu_is_listed(unsigned int cpu, const unsigned int *cpus, int nr)
{
	for (int i = 0; i < nr; i++) {
		if (cpus[i] == cpu)
			return true;
	}
	return false;
}
