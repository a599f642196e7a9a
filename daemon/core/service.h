/* SPDX-License-Identifier: BSD-2-Clause */
/* The service's manager (service.c). */
#ifndef DCPI_DAEMON_SERVICE_H
#define DCPI_DAEMON_SERVICE_H

#include <sys/socket.h>
#include <sys/un.h>

#include "base.h"

/* Whom to tell, by the protocol of sd_notify(3): datagrams to $NOTIFY_SOCKET. Zeroed: nobody. */
struct service {
	int fd;
	struct sockaddr_un to;
	socklen_t to_len;  /* 0: nobody */
	uint64_t every_ns; /* 0: no watchdog ($WATCHDOG_USEC, $WATCHDOG_PID) */
	uint64_t next_ns;
};

/* Does @fd lead to the journal ($JOURNAL_STREAM)? */
bool service_on_journal(int fd);
/* From the environment. 0 (nobody is to be told, too), or negative where that makes no sense. */
int service_open(struct service *s, struct base_err *err);
void service_close(struct service *s);
/* Sampling has begun and control requests are answered. */
void service_ready(struct service *s, const char *source);
/* Each time round the loop; tells at half of the watchdog's time. */
void service_alive(struct service *s, const char *epoch, uint64_t stored);
void service_stopping(struct service *s);
void service_failed(struct service *s, const struct base_err *err);

#endif
