/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Descriptors that may be slow to close are closed by threads that do nothing else. The close of a
 * file on a client's file system (FUSE) lasts as long as the client likes. That of a socket with
 * SO_LINGER, or of a connection in which such sockets lie unread, would too; a signal breaks it.
 */
#ifndef DCPI_CLOSER_H
#define DCPI_CLOSER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* Most descriptors that the kernel lets a message have (SCM_MAX_FD). Those that a receiver has no
 * room for are dropped by it, which may wait. */
enum { CLOSER_NR_SENT = 253 };

/* Close a connection, or a socket that listens, elsewhere; never waits. */
void closer_close(int fd);
/* Likewise what a client of the user @uid has sent. */
void closer_close_sent(int fd, uint32_t uid);
/*
 * So many descriptors that the user @uid has sent are not closed yet that no more are to be
 * received: a connection of that user is to be closed unread. The log says so, once a minute.
 */
bool closer_is_held(uint32_t uid);
/* As recv(2) with MSG_DONTWAIT; descriptors that come along are closed elsewhere, as @uid's. */
ssize_t closer_recv(int sock, void *data, size_t len, uint32_t uid);

#endif
