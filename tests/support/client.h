/* SPDX-License-Identifier: BSD-2-Clause */
/* The daemon's sockets, as hostile and as honest test programs use them. */
#ifndef TESTS_CLIENT_H
#define TESTS_CLIENT_H

#include <stddef.h>
#include <sys/types.h>

/* A socket of @type (SOCK_STREAM, SOCK_SEQPACKET, with flags) that is connected to @name in
 * $DCPI_RUN (default WIRE_RUN_DIR); -1 and errno. */
int client_dial(const char *name, int type);
/* Send @len bytes, with the descriptor @fd beside them where it is not negative. The number of
 * bytes, or -1 and errno. */
ssize_t client_send(int sock, const void *data, size_t len, int fd);
/* Give the registry @fd to the daemon, which may be busy for a second: 0, or -1. */
int client_announce(int fd);

#endif
