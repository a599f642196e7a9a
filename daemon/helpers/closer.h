/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Descriptors that clients chose are closed by threads that do nothing else. The close of a file on
 * a client's file system (FUSE), or of a socket with SO_LINGER, lasts as long as the client likes;
 * so may that of a connection in which such descriptors lie unread.
 */
#ifndef DCPI_CLOSER_H
#define DCPI_CLOSER_H

#include <stddef.h>
#include <sys/types.h>

/* Before descriptors may run short: 0 or -errno. closer_close does it where it was not done. */
int closer_open(void);
/* Close @fd elsewhere; never waits. While all threads are held up, and more descriptors wait than
 * they have room for, @fd stays open until the program ends. */
void closer_close(int fd);
/* As recv(2) with MSG_DONTWAIT; descriptors that come along are closed elsewhere. */
ssize_t closer_recv(int sock, void *data, size_t len);

#endif
