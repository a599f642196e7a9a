/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * control_say LINE [r|w|p FILE]: a control request (docs/format/control.md) as it stands, with a
 * descriptor of FILE that was opened to read, to write, or only to look at. Prints the answer.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "client.h"
#include "wire.h"

static int die(const char *what)
{
	fprintf(stderr, "control_say: %s: %s\n", what, strerror(errno));
	return 1;
}

int main(int argc, char **argv)
{
	const char *how = argc > 3 ? argv[2] : "";
	int flags = *how == 'r' ? O_RDONLY : *how == 'w' ? O_WRONLY : O_PATH;
	int sock, file = -1;
	char text[4096];
	ssize_t n;

	if (argc != 2 && argc != 4)
		return 2;
	if (argc == 4 && (file = open(argv[3], flags | O_CLOEXEC)) < 0)
		return die(argv[3]);
	sock = client_dial(WIRE_CONTROL_NAME, SOCK_STREAM);
	if (sock < 0 || send(sock, argv[1], strlen(argv[1]), MSG_NOSIGNAL) < 0 ||
	    client_send(sock, "\n", 1, file) != 1 /* the descriptor comes with it */)
		return die("request");
	n = recv(sock, text, sizeof(text) - 1, 0);
	if (n <= 0)
		return die("answer");
	text[n] = '\0';
	fputs(text, stdout);
	return 0;
}
