/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * notify_listen SOCKET: a service manager's ear. Prints what is said at SOCKET, each datagram as a
 * line that begins with the milliseconds since the start, until STOPPING=1 or for a minute.
 */
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>

static long long now_ms(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000ll + t.tv_nsec / 1000000;
}

int main(int argc, char **argv)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	struct pollfd p = { .fd = socket(AF_UNIX, SOCK_DGRAM, 0), .events = POLLIN };
	long long start = now_ms();
	char text[4096];

	if (argc != 2 || strlen(argv[1]) >= sizeof(addr.sun_path))
		return 2;
	strcpy(addr.sun_path, argv[1]);
	if (bind(p.fd, (struct sockaddr *)&addr, sizeof(addr)) < 0 || chmod(argv[1], 0666) < 0)
		return 1;
	setvbuf(stdout, NULL, _IOLBF, 0);
	while (poll(&p, 1, 60000) > 0) {
		ssize_t n = recv(p.fd, text, sizeof(text) - 1, 0);

		if (n < 0)
			return 1;
		text[n] = '\0';
		for (char *c = text; *c; c++)
			*c = *c == '\n' ? ' ' : *c;
		printf("%lld %s\n", now_ms() - start, text);
		if (strstr(text, "STOPPING=1"))
			return 0;
	}
	return 1;
}
