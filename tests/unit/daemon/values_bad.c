/* SPDX-License-Identifier: BSD-2-Clause */
/* Value profilers that do not behave, one for each number BAD (values.c beside this). */
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>
#include <vprofiler.h>

enum {
	NOTHING,
	LACKING,
	RESERVED,
	EIGHTH,
	NO_TABLE,
	LOOPS,
	CRASHES,
	TOO_MANY,
	NO_BUFFER,
	ELSEWHERE,
	EXITS,
	ODD_NAME,
	LOADS_FOREVER,
	LEAVES,
	ENDS,
	ENDS_NEVER
};

#if BAD != NOTHING

static vsample_t samples[2];

static const char *vp_name(void)
{
	while (BAD == LOADS_FOREVER)
		;
	return BAD == RESERVED ? "values.trace" : BAD == ODD_NAME ? "../x" : "bad";
}

static trace_vlist_table_t *vp_prof_init(void)
{
	trace_vlist_table_t *table = trace_vlist_table_alloc();
	trace_vlist_t *vlist = trace_vlist_alloc();

	for (unsigned int i = 0; i < (BAD == EIGHTH ? 8 : 1); i++)
		trace_add_value_to_vlist(vlist, TRACE_REGISTER(i));
	trace_add_vlist_by_opc(table, TRACE_OP_LOAD, vlist);
	trace_vlist_free(vlist);
	return BAD == NO_TABLE ? NULL : table;
}

static int vp_prof_process(uint pid, trace_parser_t *parser, vsample_t **vsamples)
{
	(void)pid;
	while (BAD == LOOPS)
		;
	if (BAD == CRASHES)
		*(volatile int *)8 = 1;
	if (BAD == EXITS)
		_Exit(0);
	/* It takes its hands off what it does not know, and goes on. */
	if (BAD == LEAVES)
		for (int fd = 3; fd < 256; fd++)
			close(fd);
	while (BAD == LEAVES)
		;
	/* One where it was, and one where nothing was. */
	trace_parser_next(parser, NULL, &samples[0].pc, NULL, NULL, 0, NULL);
	samples[1].pc = samples[0].pc + 1;
	*vsamples = BAD == NO_BUFFER ? NULL : samples;
	return BAD == TOO_MANY ? 1 << 30 : 2;
}

/* A file that the test made for its child tells that it was called. */
static char *ends;

static void vp_init(void)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/tmp/dcpi-unit-ends-%d", (int)getppid());
	fd = open(path, O_RDWR);
	ends = mmap(NULL, 2, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
}

static void vp_prof_fini(void)
{
	ends[0] = 'p';
	while (BAD == ENDS_NEVER)
		;
}

static void vp_fini(void)
{
	ends[1] = ends[0] == 'p' ? 'f' : '?';
}

vp_dispatch_t _dispatch = {
	.init = BAD == ENDS || BAD == ENDS_NEVER ? vp_init : NULL,
	.fini = BAD == ENDS || BAD == ENDS_NEVER ? vp_fini : NULL,
	.prof_fini = BAD == ENDS || BAD == ENDS_NEVER ? vp_prof_fini : NULL,
	.name = vp_name,
	.prof_init = vp_prof_init,
	.prof_process = BAD == LACKING ? NULL : vp_prof_process,
};

#else

extern int nothing_at_all;
int nothing_at_all;

#endif
