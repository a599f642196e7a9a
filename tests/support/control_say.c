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
#include <sys/un.h>
#include <unistd.h>

static int die(const char *what)
{
	fprintf(stderr, "control_say: %s: %s\n", what, strerror(errno));
	return 1;
}

static int dial(void)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	snprintf(to.sun_path, sizeof(to.sun_path), "%s/control", getenv("DCPI_RUN"));
	return connect(fd, (void *)&to, sizeof(to)) < 0 ? -1 : fd;
}

/* The descriptor comes with the newline. */
static int end_line(int sock, int file)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} c = { 0 };
	char newline = '\n';
	struct iovec v = { &newline, 1 };
	struct msghdr m = { .msg_iov = &v, .msg_iovlen = 1 };
	struct cmsghdr *h;

	if (file >= 0) {
		m.msg_control = &c;
		m.msg_controllen = sizeof(c);
		h = CMSG_FIRSTHDR(&m);
		h->cmsg_level = SOL_SOCKET;
		h->cmsg_type = SCM_RIGHTS;
		h->cmsg_len = CMSG_LEN(sizeof(file));
		memcpy(CMSG_DATA(h), &file, sizeof(file));
	}
	return sendmsg(sock, &m, MSG_NOSIGNAL) == 1 ? 0 : -1;
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
	sock = dial();
	if (sock < 0 || send(sock, argv[1], strlen(argv[1]), MSG_NOSIGNAL) < 0 ||
	    end_line(sock, file) < 0)
		return die("request");
	n = recv(sock, text, sizeof(text) - 1, 0);
	if (n <= 0)
		return die("answer");
	text[n] = '\0';
	fputs(text, stdout);
	return 0;
}
