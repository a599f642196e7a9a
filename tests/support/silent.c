/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Those who never answer, until killed.
 *	silent fuse DIR   mounts a file system at DIR (root)
 *	silent tcp FILE   listens on a port of the loopback, whose number it writes to FILE
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <unistd.h>

static int fuse(const char *dir)
{
	char options[128];
	int fd = open("/dev/fuse", O_RDWR);

	if (fd < 0)
		return 77;
	snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=0,group_id=0", fd);
	if (mount("silent", dir, "fuse", 0, options) < 0) {
		perror("silent: mount");
		return 1;
	}
	pause();
	return 0;
}

static int tcp(const char *file)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(at);
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	FILE *out;

	if (fd < 0 || bind(fd, (struct sockaddr *)&at, len) < 0 || listen(fd, 8) < 0 ||
	    getsockname(fd, (struct sockaddr *)&at, &len) < 0 || !(out = fopen(file, "w"))) {
		perror("silent");
		return 1;
	}
	fprintf(out, "%d\n", ntohs(at.sin_port));
	fclose(out);
	pause();
	return 0;
}

int main(int argc, char **argv)
{
	if (argc != 3)
		return 2;
	return strcmp(argv[1], "fuse") == 0 ? fuse(argv[2]) : tcp(argv[2]);
}
