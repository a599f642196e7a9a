/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A program or process inherits copies of all descriptors, and closes them before it begins. The
 * close of a file that a client has sent lasts as long as the client likes: a socket that lingers,
 * a file of a FUSE file system. So a thread starts processes whose own table of descriptors never
 * has such files. Only Linux has such threads.
 */
#ifndef DCPI_LAUNCH_H
#define DCPI_LAUNCH_H

#include <stddef.h>

enum { LAUNCH_NR_FDS = 8, LAUNCH_FD_MIN = 16 };

/*
 * Start the thread, once and before any client is heard. It has standard input, output and error of
 * now, its caller's rights and priority, and no signal. 0, or -errno.
 */
int launch_open(void);
/*
 * Have that thread call @fn, which starts a process and has its result: a process id, or -errno.
 * @fn gets copies of the @nr descriptors @fds, which are LAUNCH_FD_MIN or more, and are closed by
 * exec and when @fn returns; where @fds has -1 they have. It must use no other descriptors. Its
 * result, or -errno. Any thread may call this. Without launch_open @fn runs in its caller.
 */
int launch(int (*fn)(void *ctx, const int *fds), void *ctx, const int *fds, size_t nr);
/*
 * Run @program by that thread, with @argv, no environment, and @fds as its descriptors @first and
 * those behind it, less those of -1. No signal is blocked, and none ignored but SIGPIPE. Its
 * process id, or -errno.
 */
int launch_program(const char *program, char *const *argv, const int *fds, size_t nr, int first);

#endif
