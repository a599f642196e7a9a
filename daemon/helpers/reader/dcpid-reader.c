/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * dcpid-reader: reads processes' memory and the files they name, and parses what applications
 * wrote, for dcpid, which may kill it at any moment. Not for people: it is started with its socket
 * and its answers' memfd as descriptors 3 and 4, and ends when the socket is closed.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <unistd.h>

#include "reader_file.h"
#include "reader_gdb.h"
#include "reader_known.h"
#include "registry.h"

/* Bytes of the answers' file that are kept from one to the next. */
#define ANSWER_KEPT (REGISTRY_ANSWER_SOFT + (1 << 20))

enum { READER_PAGE = 4096, READER_CODE_PAGES = 16 };

/* A sanitizer's shadow alone reserves terabytes. */
#if defined(__SANITIZE_ADDRESS__)
#define MEMORY_MAX RLIM_INFINITY
#else
#define MEMORY_MAX (1u << 30)
#endif

/* ---- a process's memory -------------------------------------------------------------------- */

static ssize_t memory_read(void *ctx, uint64_t addr, void *to, size_t len)
{
	const struct reader_request *q = ctx;
	struct iovec local = { to, len }, remote = { (void *)(uintptr_t)addr, len };
	ssize_t n = process_vm_readv(q->pid, &local, 1, &remote, 1, 0);

	return n < 0 ? -errno : n;
}

/*
 * Is it still the program that was meant? A pid comes back, and exec replaces. Of one that may not
 * be dumped, only routines that bring their code are seen whole.
 */
static bool same_process(const struct reader_request *q)
{
	uint64_t life;

	return q->life && registry_process_open(q->pid, q->uid) &&
	       registry_process_life(q->pid, NULL, &life) == 0 && life == q->life;
}

/* ---- mapped files ---------------------------------------------------------------------------- */

static int dump_found(const struct stat *st, int looked, struct reader_answer *a, int *fd_out)
{
	int fd = fcntl(looked, F_DUPFD_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	a->owner = st->st_uid;
	a->dev = st->st_dev;
	a->ino = st->st_ino;
	*fd_out = fd;
	return 0;
}

/* A dump or a file's identity, by reading it. */
static int file_read_id(const struct stat *st, int looked, struct base_id *id, bool *elf,
			struct reader_answer *a, int *fd_out)
{
	int fd = reader_looked_open(looked), r;

	if (fd < 0)
		return fd;
	r = reader_is_dump(fd);
	if (r == 0)
		r = registry_file_id(fd, id, elf);
	else if (r > 0)
		r = dump_found(st, looked, a, fd_out);
	close(fd);
	if (*fd_out >= 0)
		return r;
	if (r >= 0)
		reader_known_add(st, id, *elf);
	return r;
}

static int image_id(const struct reader_request *q, struct reader_answer *a, int *fd_out)
{
	struct base_id id = { 0 };
	struct stat st;
	int r = 0, looked = reader_mapped_look(q);
	bool elf = true;

	if (looked < 0)
		return looked;
	if (fstat(looked, &st) < 0)
		r = -errno;
	else if (!reader_known_find(&st, &id, &elf))
		r = file_read_id(&st, looked, &id, &elf, a, fd_out);
	close(looked);
	a->no_elf = !elf;
	/* What else programs map they write while it is mapped: dumps, memory for code. */
	if (r >= 0 && id.len && elf && reader_written_since(&st, q->since_ns))
		return -ETXTBSY;
	a->id_len = id.len;
	memcpy(a->id, id.bytes, sizeof(a->id));
	return r;
}

/*
 * Its user has opened it to read, so what it holds is no secret to him. Files that tell other
 * things to other readers, as those of /proc, are no ELF.
 */
static int file_id(int fd, struct reader_answer *a)
{
	int flags = fcntl(fd, F_GETFL);
	struct base_id id = { 0 };
	bool elf = false;
	int r = 0;

	if (flags < 0 || flags & O_PATH || (flags & O_ACCMODE) == O_WRONLY)
		r = -EACCES;
	if (r == 0)
		r = registry_file_id(fd, &id, &elf);
	if (r < 0 || !elf)
		return r < 0 ? r : -DCPI_EFORMAT;
	a->id_len = id.len;
	memcpy(a->id, id.bytes, sizeof(a->id));
	return 0;
}

static int sent_file_id(int sock, struct reader_answer *a)
{
	int fd = reader_peek_fd(sock), r;

	if (fd < 0)
		return fd;
	r = file_id(fd, a);
	close(fd);
	return r;
}

static int registry_open(const struct reader_request *q, int *fd_out)
{
	struct wire_registry h;
	char path[64];
	int seals, r, fd;

	reader_map_file(q, path);
	fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
	if (fd < 0)
		return -errno;
	/* Only memfds (and shared memory, whose seals are closed) have seals at all. */
	seals = fcntl(fd, F_GET_SEALS);
	r = seals >= 0 && (seals & F_SEAL_SHRINK) ? registry_header_read(fd, &h) : -EPERM;
	if (r < 0) {
		close(fd);
		return r;
	}
	*fd_out = fd;
	return 0;
}

/* ---- requests -------------------------------------------------------------------------------- */

static int registry_read(const struct reader_request *q, int fd, struct reader_answer *a,
			 struct base_buf *out)
{
	struct registry_memory memory = { memory_read, (void *)(uintptr_t)q };
	bool alive = same_process(q);
	int r;

	a->place = q->place;
	r = registry_parse(fd, alive ? &memory : NULL, &a->place, out);
	/* It ended meanwhile, and another may have its pid: what was read may be the other's. */
	if (r >= 0 && alive && !same_process(q)) {
		base_buf_clear(out);
		a->place = q->place;
		r = registry_parse(fd, NULL, &a->place, out);
	}
	return r;
}

static int range_read(const struct reader_request *q, struct base_buf *out)
{
	struct registry_memory memory = { memory_read, (void *)(uintptr_t)q };
	int r;

	if (!same_process(q))
		return -ESRCH;
	r = registry_range_read(&q->range, &memory, out);
	return r < 0 ? r : same_process(q) ? 0 : -ESRCH;
}

/* Page by page: the second may not be there. */
static int code_read(const struct reader_request *q, struct base_buf *out)
{
	struct iovec local = { 0 }, remote[READER_CODE_PAGES];
	size_t len = q->end - q->addr, nr = 0;
	int r = -EINVAL;
	ssize_t n;

	if (q->end <= q->addr || q->addr % READER_PAGE ||
	    len > sizeof(remote) / sizeof(*remote) * READER_PAGE)
		return r;
	for (size_t off = 0; off < len; off += READER_PAGE)
		remote[nr++] = (struct iovec){
			(void *)(uintptr_t)(q->addr + off),
			len - off < READER_PAGE ? len - off : READER_PAGE,
		};
	r = base_buf_extend(out, len, &local.iov_base);
	if (r < 0)
		return r;
	local.iov_len = len;
	n = process_vm_readv(q->pid, &local, 1, remote, nr, 0);
	r = n < 0 ? -errno : 0;
	out->len = n < 0 ? 0 : (size_t)n;
	return r;
}

/* As registry_read, of a file that its runtime writes. */
static int read_opened(const struct reader_request *q, int fd, struct reader_answer *a,
		       struct base_buf *out)
{
	bool alive = same_process(q);
	struct foreign_file file = { .fd = fd,
				     .machine = REGISTRY_MACHINE,
				     .read = alive ? memory_read : NULL,
				     .ctx = (void *)(uintptr_t)q,
				     .deadline_ns = base_now_ns() + REGISTRY_CALL_NS,
				     .answer_max = REGISTRY_ANSWER_SOFT };
	int r = -ESRCH;

	for (int i = 0; i < 2; i++) {
		base_buf_clear(out);
		a->file = q->file;
		r = q->kind == FOREIGN_JITDUMP ? foreign_jitdump_read(&file, &a->file, out)
					       : foreign_perfmap_read(&file, &a->file, out);
		/* It ended meanwhile: what was read of its memory may be another's. */
		if (!file.read || same_process(q))
			break;
		file.read = NULL;
	}
	return r;
}

/* The time of a file that is mapped does not move with each byte: its size does, or room was made
 * ahead. */
static bool is_same(const struct reader_request *q, const struct foreign_seen *now)
{
	return q->file.at_end && !q->file.ahead && now->size == q->seen.size &&
	       now->written_ns == q->seen.written_ns;
}

/* To open and to close it may wait, so both are part of the request. */
static int file_read(const struct reader_request *q, int looked, struct reader_answer *a,
		     struct base_buf *out)
{
	int fd = -1, r = 0;
	struct stat st;

	a->file = q->file;
	if (fstat(looked, &st) < 0)
		return -errno;
	a->seen.size = st.st_size;
	a->seen.written_ns =
		(uint64_t)st.st_mtim.tv_sec * 1000000000u + (uint64_t)st.st_mtim.tv_nsec;
	a->seen.same = is_same(q, &a->seen);
	if (a->seen.same)
		return 0;
	fd = reader_looked_open(looked);
	r = fd < 0 ? fd : read_opened(q, fd, a, out);
	if (fd >= 0)
		close(fd);
	return r;
}

static int root_open(const struct reader_request *q, struct reader_answer *a, int *fd_out)
{
	int fd = reader_root_open(q, &a->ns_pid);

	*fd_out = fd;
	return fd < 0 ? fd : 0;
}

static int perfmap_open(const struct reader_request *q, int root, int *fd_out)
{
	int fd = root < 0 ? -EBADF : reader_perfmap_open(q, root);

	*fd_out = fd;
	return fd < 0 ? fd : 0;
}

/* What was read of a process that ended meanwhile may be another's. */
static int gdb(const struct reader_request *q, struct reader_answer *a, struct base_buf *out)
{
	const struct foreign_memory memory = { memory_read, (void *)(uintptr_t)q };
	struct foreign_gdb_entry entry = q->entry;
	int r;

	if (!same_process(q))
		return -ESRCH;
	a->gdb = q->gdb;
	if (q->op == READER_GDB_FIND)
		r = reader_gdb_find(q, REGISTRY_MACHINE, base_now_ns() + REGISTRY_CALL_NS, &a->gdb);
	else if (q->op == READER_GDB_LIST)
		r = foreign_gdb_list(&memory, &a->gdb, out);
	else
		r = foreign_gdb_object(&memory, REGISTRY_MACHINE, q->seq, &entry, out);
	a->print = entry.print;
	return same_process(q) ? r : -ESRCH;
}

static int serve(const struct reader_request *q, int fd, struct reader_answer *a, int *fd_out,
		 struct base_buf *out)
{
	switch (q->op) {
	case READER_IMAGE_ID:
		return image_id(q, a, fd_out);
	case READER_REGISTRY_OPEN:
		return registry_open(q, fd_out);
	case READER_REGISTRY_READ:
		return fd < 0 ? -EBADF : registry_read(q, fd, a, out);
	case READER_RANGE_READ:
		return range_read(q, out);
	case READER_ROOT_OPEN:
		return root_open(q, a, fd_out);
	case READER_PERFMAP_OPEN:
		return perfmap_open(q, fd, fd_out);
	case READER_FILE_READ:
		return fd < 0 ? -EBADF : file_read(q, fd, a, out);
	case READER_GDB_FIND:
	case READER_GDB_LIST:
	case READER_GDB_OBJECT:
		return gdb(q, a, out);
	case READER_CODE_READ:
		return code_read(q, out);
	case READER_CLOSE:
		close(fd);
		return 0;
	case READER_FILE_ID:
		return fd < 0 ? -EBADF : sent_file_id(fd, a);
	}
	return -EINVAL;
}

/*
 * The long answer replaces the one before. Memory of the usual size is used again: to get and clear
 * it takes longer than to fill it.
 */
static int put_answer(const struct base_buf *out)
{
	size_t off = 0;

	if (ftruncate(READER_ANSWERS_FD, ANSWER_KEPT) < 0)
		return -errno;
	while (off < out->len) {
		ssize_t n = pwrite(READER_ANSWERS_FD, out->data + off, out->len - off, (off_t)off);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return n < 0 ? -errno : -EIO;
		off += (size_t)n;
	}
	return 0;
}

static int serve_one(void)
{
	struct base_buf out = { 0 };
	struct reader_answer a = { 0 };
	struct reader_request q;
	int fd = -1, fd_out = -1, r;

	r = reader_receive(READER_SOCKET_FD, &q, sizeof(q), &fd);
	if (r < 0)
		return r;
	a.status = serve(&q, fd, &a, &fd_out, &out);
	if (a.status >= 0 && out.len) {
		r = put_answer(&out);
		a.status = r < 0 ? r : a.status;
		a.len = out.len;
	}
	r = reader_send(READER_SOCKET_FD, &a, sizeof(a), fd_out);
	if (fd >= 0 && q.op != READER_CLOSE)
		close(fd);
	if (fd_out >= 0)
		close(fd_out);
	base_buf_release(&out);
	return r;
}

/* ---- rights -------------------------------------------------------------------------------- */

/* What reading processes and their mapped files takes, of what there is; the rest goes. */
static int drop_rights(void)
{
	static const unsigned int keep[] = { CAP_SYS_PTRACE, CAP_DAC_READ_SEARCH,
#ifdef CAP_CHECKPOINT_RESTORE
					     CAP_CHECKPOINT_RESTORE
#endif
	};
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = { 0 };
	uint32_t mask[2] = { 0 };

	if (syscall(SYS_capget, &head, data) < 0)
		return -errno;
	for (size_t i = 0; i < sizeof(keep) / sizeof(keep[0]); i++)
		mask[keep[i] / 32] |= 1u << keep[i] % 32;
	for (size_t i = 0; i < 2; i++) {
		data[i].permitted &= mask[i];
		data[i].effective = data[i].permitted;
		data[i].inheritable = 0;
	}
	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || syscall(SYS_capset, &head, data) < 0)
		return -errno;
	return 0;
}

int main(int argc, char **argv)
{
	struct rlimit limit = { READER_ANSWER_MAX, READER_ANSWER_MAX };
	struct rlimit memory = { MEMORY_MAX, MEMORY_MAX };

	(void)argv;
	if (argc != 1 || fcntl(READER_SOCKET_FD, F_GETFD) < 0 ||
	    fcntl(READER_ANSWERS_FD, F_GETFD) < 0) {
		fputs("dcpid-reader: not for use by hand: dcpid starts it\n", stderr);
		return BASE_EXIT_USAGE;
	}
	signal(SIGXFSZ, SIG_IGN);
	/* Terminal signals are dcpid's, which lets us go when it is done. */
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || setrlimit(RLIMIT_FSIZE, &limit) < 0 ||
	    setrlimit(RLIMIT_AS, &memory) < 0 || drop_rights() < 0)
		return BASE_EXIT_FAILED;
	while (serve_one() >= 0)
		;
	return BASE_EXIT_OK;
}
