/* SPDX-License-Identifier: BSD-2-Clause */
/* dcpirun is the daemon's core, run by a user for one program of theirs; this it asks of the
 * program. */
#ifndef DCPIRUN_H
#define DCPIRUN_H

#include <stdbool.h>
#include <stddef.h>

/* Find @name as execvp(3) does. 0 and the path, or the -errno of its last failure. */
int program_find(const char *name, char *path, size_t len);
/* Why it cannot be sampled, for people, by perf events or (@inside) what is preloaded into it.
 * NULL: it can be, or nothing is known. */
const char *program_refusal(const char *path, bool inside);

#endif
