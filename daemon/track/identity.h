/* SPDX-License-Identifier: BSD-2-Clause */
/* Identity of mapped files that brought no build-id (identity.c). */
#ifndef DCPI_DAEMON_IDENTITY_H
#define DCPI_DAEMON_IDENTITY_H

#include "daemon_internal.h"

struct identity;

/* @reader may be NULL (replay): then paths are all that tells. */
struct identity *identity_new(struct reader *reader);
void identity_free(struct identity *t);
/*
 * Identity of the file of mapping @l of @p: its build-id or contents as the reader process tells,
 * else, of a process that is gone with its file, what the same (device, inode, path) was the last
 * time since identity_forget, else a hash of these (*@by_path is set). Of an ELF file that was
 * written over since @l->time_ns (0: not known) a hash that no file has. What is no image but a
 * runtime's dump goes to *@dump (fd; else -1), which also says of a file that was read whether it
 * is ELF. With @l->time_ns 0 the reader is asked once for each @p->known_ns. 0 or -ENOMEM.
 */
int identity_find(struct identity *t, const struct process *p, const struct driver_load *l,
		  struct base_id *id, bool *by_path, struct reader_dump *dump);
void identity_forget(struct identity *t);

#endif
