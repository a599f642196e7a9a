/* SPDX-License-Identifier: BSD-2-Clause */
/* Inside lib/tarball: what the child that parses an archive tells its parent. */
#ifndef DCPI_TARBALL_INTERNAL_H
#define DCPI_TARBALL_INTERNAL_H

#include <sys/types.h>

#include "tarball.h"

#define TARBALL_CHUNK (64u << 10)

/* Frames follow one another: for each member its name, then its contents in pieces; last the end.
 */
enum tarball_kind {
	TARBALL_END,
	TARBALL_NAME, /* len bytes follow, without a NUL */
	TARBALL_DATA, /* 1 to TARBALL_CHUNK bytes follow */
};

struct tarball_frame {
	int32_t kind; /* enum tarball_kind; negative: the child gave up, for this error */
	uint32_t len;
};

/*
 * A reader of frames; the list is read at once. The descriptor @pipe and the process @child (0:
 * none) become the reader's, also where this fails. No frame is believed. As tarball_open.
 */
int tarball_open_frames(const char *path, int pipe, pid_t child, struct tarball_reader **out,
			struct base_err *err);

#endif
