/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A file system of our own (FUSE, by its protocol) answers late, or stops answering.
 *
 *	fuse_hang FOLDER getattr|flush    a program whose perf map is in an overlay above it
 *	fuse_hang FOLDER read             FOLDER/fuse/tmp/memory, which can be mapped; a reader
 *					  is told late that it cannot be read
 *
 * FOLDER/fuse and FOLDER/root are mounted. Another user's program has FOLDER/root as its root
 * folder and runs code of its own. Once somebody has opened the map, the named operation is never
 * answered again. A line is printed for the first operation that hangs. With "read" there is no
 * program, and a line is printed when the file is there. At the end of the input all is undone.
 *Exit status 77: no FUSE, or no overlay, can be mounted here.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "truth_jit.h"

enum {
	NODE_ROOT = FUSE_ROOT_ID,
	NODE_TMP,
	NODE_MAP,
	OTHER = 65534,
	MEMORY = 1 << 20,
	LATE_US = 200000
};

/* Shared by the file system and the program in it. */
static struct shared {
	char name[64], text[128];
	bool opened, hung;
} * shared;
static int device;
static uint32_t stuck;

static int die(const char *what)
{
	fprintf(stderr, "fuse_hang: %s: %s\n", what, strerror(errno));
	return 1;
}

/* ---- the file system ------------------------------------------------------------------------- */

static void reply(const struct fuse_in_header *in, int error, const void *data, size_t len)
{
	char out[sizeof(struct fuse_out_header) + 4096];
	struct fuse_out_header h = { (uint32_t)(sizeof(h) + (error ? 0 : len)), -error,
				     in->unique };

	memcpy(out, &h, sizeof(h));
	if (!error && len)
		memcpy(out + sizeof(h), data, len);
	(void)!write(device, out, h.len);
}

static struct fuse_attr attr_of(uint64_t node)
{
	bool map = node == NODE_MAP;
	uint64_t now = (uint64_t)time(NULL);

	return (struct fuse_attr){ .ino = node,
				   .size = !map			? 0
					   : stuck == FUSE_READ ? MEMORY
								: strlen(shared->text),
				   .mtime = now,
				   .ctime = now,
				   .mode = map ? S_IFREG | 0644 : S_IFDIR | 0755,
				   .nlink = map ? 1 : 2,
				   .uid = map ? OTHER : 0,
				   .gid = map ? OTHER : 0,
				   .blksize = 4096 };
}

static void lookup(const struct fuse_in_header *in, const char *name)
{
	struct fuse_entry_out e = { 0 };

	if (in->nodeid == NODE_ROOT && !strcmp(name, "tmp"))
		e.nodeid = NODE_TMP;
	else if (in->nodeid == NODE_TMP && shared->name[0] && !strcmp(name, shared->name))
		e.nodeid = NODE_MAP;
	e.attr = attr_of(e.nodeid);
	reply(in, e.nodeid ? 0 : ENOENT, &e, sizeof(e));
}

static void serve(const struct fuse_in_header *in, const void *arg)
{
	const struct fuse_read_in *rd = arg;
	const struct fuse_init_in *init = arg;
	struct fuse_init_out hello = { .major = FUSE_KERNEL_VERSION,
				       .minor = FUSE_KERNEL_MINOR_VERSION,
				       .max_readahead = 4096,
				       .max_write = 4096 };
	struct fuse_attr_out attr = { .attr = attr_of(in->nodeid) };
	struct fuse_open_out opened = { .open_flags = stuck == FUSE_READ ? 0 : FOPEN_DIRECT_IO };
	struct fuse_statfs_out fs = { .st = { .bsize = 4096, .namelen = 255 } };
	size_t len = strlen(shared->text);

	switch (in->opcode) {
	case FUSE_INIT:
		hello.max_readahead = init->max_readahead;
		reply(in, 0, &hello, sizeof(hello));
		return;
	case FUSE_LOOKUP:
		lookup(in, arg);
		return;
	case FUSE_GETATTR:
		reply(in, 0, &attr, sizeof(attr));
		return;
	case FUSE_OPEN:
		shared->opened |= in->nodeid == NODE_MAP;
		/* fall through */
	case FUSE_OPENDIR:
		reply(in, 0, &opened, sizeof(opened));
		return;
	case FUSE_READ:
		len = rd->offset < len ? len - rd->offset : 0;
		reply(in, 0, shared->text + (rd->offset < strlen(shared->text) ? rd->offset : 0),
		      len < rd->size ? len : rd->size);
		return;
	case FUSE_READDIR:
	case FUSE_RELEASEDIR:
	case FUSE_RELEASE:
	case FUSE_FLUSH:
	case FUSE_ACCESS:
		reply(in, 0, NULL, 0);
		return;
	case FUSE_STATFS:
		reply(in, 0, &fs, sizeof(fs));
		return;
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
	case FUSE_INTERRUPT:
		return;
	}
	reply(in, ENOSYS, NULL, 0);
}

static void be_file_system(const char *none)
{
	static char buf[1 << 17];

	(void)none;

	for (;;) {
		const struct fuse_in_header *in = (const void *)buf;
		ssize_t n = read(device, buf, sizeof(buf));

		/* Until it is mounted, the device refuses to be read. */
		if (n < 0 && errno == EPERM)
			usleep(1000);
		if (n < 0 &&
		    (errno == EINTR || errno == ENOENT || errno == EAGAIN || errno == EPERM))
			continue;
		if (n < (ssize_t)sizeof(*in))
			_exit(0);
		if (stuck == FUSE_READ && in->opcode == FUSE_READ) {
			usleep(LATE_US);
			reply(in, EIO, NULL, 0);
			continue;
		}
		if (shared->opened && in->nodeid == NODE_MAP && in->opcode == stuck) {
			if (!shared->hung)
				puts("hangs");
			fflush(stdout);
			shared->hung = true;
			continue;
		}
		serve(in, in + 1);
	}
}

/* ---- the program in it ----------------------------------------------------------------------- */

static void be_program(const char *root)
{
	unsigned char *code;
	uint64_t random = 5;

	if (chroot(root) < 0 || chdir("/") < 0 || setgid(OTHER) < 0 || setuid(OTHER) < 0)
		_exit(die("root folder"));
	prctl(PR_SET_DUMPABLE, 1);
	prctl(PR_SET_NAME, "stuck");
	snprintf(shared->name, sizeof(shared->name), "perf-%d.map", getpid());
	code = truth_map(TRUTH_BLOCK);
	if (!code)
		_exit(die("memory"));
	truth_put(code, 1);
	snprintf(shared->text, sizeof(shared->text), "%llx %x stuck_1\n",
		 (unsigned long long)(uintptr_t)code, TRUTH_BLOCK);
	for (;;)
		truth_run(code, CLOCK_MONOTONIC, 1, &random);
}

/* An overlay without an upper layer has two lower ones at least: @folder itself is the other. */
static int mount_both(const char *folder, const char *fuse, const char *root)
{
	char options[4096 * 3];

	snprintf(options, sizeof(options), "fd=%d,rootmode=40755,user_id=0,group_id=0,allow_other",
		 device);
	if (mount("fuse_hang", fuse, "fuse", 0, options) < 0) {
		printf("skip: cannot mount FUSE: %s\n", strerror(errno));
		return 77;
	}
	snprintf(options, sizeof(options), "lowerdir=%s:%s/empty", fuse, folder);
	if (mount("overlay", root, "overlay", MS_RDONLY, options) == 0)
		return 0;
	printf("skip: cannot mount an overlay: %s\n", strerror(errno));
	return 77;
}

static pid_t start(void (*what)(const char *), const char *root)
{
	pid_t pid = fork();

	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		what(root);
	}
	return pid;
}

int main(int argc, char **argv)
{
	char fuse[4096], root[4096], empty[4096], c;
	pid_t server, program = -1;
	int r;

	if (argc != 3)
		return 2;
	stuck = !strcmp(argv[2], "flush")  ? FUSE_FLUSH
		: !strcmp(argv[2], "read") ? FUSE_READ
					   : FUSE_GETATTR;
	snprintf(fuse, sizeof(fuse), "%s/fuse", argv[1]);
	snprintf(root, sizeof(root), "%s/root", argv[1]);
	snprintf(empty, sizeof(empty), "%s/empty", argv[1]);
	shared = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	device = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	if (device < 0 || shared == MAP_FAILED) {
		printf("skip: cannot open /dev/fuse: %s\n", strerror(errno));
		return 77;
	}
	if (mkdir(fuse, 0755) < 0 || mkdir(root, 0755) < 0 || mkdir(empty, 0755) < 0)
		return die("folder");
	server = start(be_file_system, NULL);
	r = mount_both(argv[1], fuse, root);
	if (r == 0 && stuck == FUSE_READ) {
		snprintf(shared->name, sizeof(shared->name), "memory");
		puts("ready");
		fflush(stdout);
	} else if (r == 0) {
		program = start(be_program, root);
	}
	if (r == 0) {
		while (read(0, &c, 1) > 0)
			;
	}
	/* With its last descriptor of the device all that hangs is aborted. */
	kill(server, SIGKILL);
	close(device);
	if (program > 0)
		kill(program, SIGKILL);
	while (wait(NULL) > 0)
		;
	umount2(root, MNT_DETACH);
	umount2(fuse, MNT_DETACH);
	return r;
}
