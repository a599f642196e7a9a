/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * dcpid-reader: opens and copies processes' memory and the files they name, for dcpid, which may
 * kill it at any moment; what applications wrote is parsed by dcpid-parse, which has no rights. Not
 * for people: it is started with its socket, its answers' memfd and its socket to the parser as
 * descriptors 3 to 5, and ends when one of the sockets is closed.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include "parser.h"
#include "reader_file.h"
#include "reader_gdb.h"
#include "registry.h"

/* ---- lists of mappings ----------------------------------------------------------------------- */

/* Far more than the mappings that the kernel lets a process have. */
enum { STEP = 64 << 10, MAPS_MAX = 64 << 20 };

static int read_all(const char *path, struct base_buf *out)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), r = 0;
	ssize_t n = 1;
	void *to;

	if (fd < 0)
		return -errno;
	while (r == 0 && n > 0 && out->len < MAPS_MAX) {
		r = base_buf_extend(out, STEP, &to);
		if (r < 0)
			break;
		n = read(fd, to, STEP);
		out->len -= STEP - (n > 0 ? (size_t)n : 0);
		r = n < 0 ? -errno : 0;
	}
	close(fd);
	return r;
}

/* The text of /proc/@pid/maps onto @out; nothing where it has no address space. 0 or -errno. A main
 * thread that has ended shows no mappings; its other threads show them. */
static int reader_maps_read(int32_t pid, struct base_buf *out)
{
	char path[64], name[400];
	struct dirent *entry;
	DIR *task;
	int r;

	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	r = read_all(path, out);
	snprintf(path, sizeof(path), "/proc/%d/task", pid);
	task = r == 0 && !out->len ? opendir(path) : NULL;
	while (task && !out->len && (entry = readdir(task))) {
		snprintf(name, sizeof(name), "%s/%s/maps", path, entry->d_name);
		if (entry->d_name[0] != '.')
			read_all(name, out);
	}
	if (task)
		closedir(task);
	return r;
}

/* ---- what files were identified as ----------------------------------------------------------- */

/* A later one takes the place of one that has the same number. */
enum { KNOWN = 1024 };

#define SECOND_NS 1000000000u

struct reader_known {
	struct base_id id;
	struct base_id text; /* len 0: not asked for yet */
	struct base_extent extent;
	bool elf;
};

/* A file that is written anew has another time. */
static struct known {
	uint64_t dev, ino, len, changed_ns;
	struct reader_known is;
} known[KNOWN];

static uint64_t ns_of(const struct timespec *t)
{
	return (uint64_t)t->tv_sec * SECOND_NS + (uint64_t)t->tv_nsec;
}

static struct known *place_of(const struct stat *st)
{
	return &known[(base_hash_u64(st->st_dev) ^ base_hash_u64(st->st_ino + 1)) % KNOWN];
}

static bool reader_known_find(const struct stat *st, struct reader_known *out)
{
	const struct known *k = place_of(st);

	if (!k->is.id.len || k->dev != st->st_dev || k->ino != st->st_ino ||
	    k->len != (uint64_t)st->st_size || k->changed_ns != ns_of(&st->st_ctim))
		return false;
	*out = k->is;
	return true;
}

/* @st is from before the file was read. What has changed just now is not remembered. */
static void reader_known_add(const struct stat *st, const struct reader_known *k)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	/* Times of files move by ticks: within one it could be written again. */
	if (ns_of(&st->st_ctim) + SECOND_NS > ns_of(&now))
		return;
	*place_of(st) = (struct known){ .dev = st->st_dev,
					.ino = st->st_ino,
					.len = (uint64_t)st->st_size,
					.changed_ns = ns_of(&st->st_ctim),
					.is = *k };
}

/*
 * The file may have other contents than at @since_ns (CLOCK_REALTIME; 0: false). A time of writing
 * can be set back, that of change cannot; it moves with names and rights, too. Of what has no name
 * any more that was its removal. A time to come is another clock's.
 */
static bool reader_written_since(const struct stat *st, uint64_t since_ns)
{
	uint64_t changed_ns = ns_of(st->st_nlink ? &st->st_ctim : &st->st_mtim);
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	return since_ns && changed_ns > since_ns && changed_ns <= ns_of(&now);
}

/* ---- files that may lie ---------------------------------------------------------------------- */

/*
 * Files may lie about their build-id. A file that root alone can place is believed; of any other
 * one the code is hashed, so that those of one build-id that differ are told apart.
 */

static bool is_of_root(const struct stat *st)
{
	return st->st_uid == 0 && !(st->st_mode & (S_IWGRP | S_IWOTH));
}

/* Can root alone decide what stands at path @q->path, and is @st that file? A file system that a
 * user has mounted may claim any owner: the path must stay on the first. */
static bool reader_is_roots(const struct reader_request *q, const struct stat *st)
{
	char path[sizeof(q->path)];
	struct stat at;
	uint64_t dev;

	snprintf(path, sizeof(path), "%s", q->path);
	if (*path != '/' || !is_of_root(st) || lstat("/", &at) < 0 || !is_of_root(&at))
		return false;
	dev = at.st_dev;
	for (char *end = strchr(path + 1, '/'); end; end = strchr(end + 1, '/')) {
		*end = '\0';
		if (lstat(path, &at) < 0 || !S_ISDIR(at.st_mode) || !is_of_root(&at) ||
		    at.st_dev != dev)
			return false;
		*end = '/';
	}
	return lstat(path, &at) == 0 && at.st_dev == st->st_dev && at.st_dev == dev &&
	       at.st_ino == st->st_ino;
}

/* Could root alone write into it? Not known of a file system that is not that of "/". */
static bool reader_was_roots(const struct stat *st)
{
	struct stat at;

	return is_of_root(st) && lstat("/", &at) == 0 && at.st_dev == st->st_dev;
}

/* The word by which profiles name a file whose code is too large to hash, or is none. */
static void reader_text_of_file(const struct stat *st, struct base_id *text)
{
	const uint64_t file[] = { st->st_dev, st->st_ino, (uint64_t)st->st_size,
				  (uint64_t)st->st_mtim.tv_sec, (uint64_t)st->st_mtim.tv_nsec };
	struct base_sha256 s;

	base_sha256_init(&s);
	base_sha256_add(&s, file, sizeof(file));
	base_id_of_sha256(text, &s);
	text->len = READER_TEXT_FILE;
}

/* ---- memory of processes --------------------------------------------------------------------- */

/*
 * The memory of the process that a request is about, and of no other. It is opened once, and its
 * credentials are read afterwards; after an exec the opened memory is the old one, or reads
 * nothing, whatever the process has become.
 */

/* The last one that was opened: requests of one process follow each other. */
static struct {
	int fd; /* plus 1; 0: none */
	int32_t pid;
	uint32_t uid;
	uint64_t life;
	uint64_t dev, ino; /* of the registry that it has mapped; 0: it was not asked */
} last;

/* Is it so still? To be asked before what was read is given away. */
static bool reader_memory_good(const struct reader_request *q)
{
	uint64_t life;

	return q->life && registry_process_check(q->pid, q->uid) == 0 &&
	       registry_process_open(q->pid, q->uid) &&
	       registry_process_life(q->pid, NULL, &life) == 0 && life == q->life;
}

static bool is_last(const struct reader_request *q, const struct stat *file)
{
	return last.fd && last.pid == q->pid && last.uid == q->uid && last.life == q->life &&
	       (!file->st_ino || (last.dev == file->st_dev && last.ino == file->st_ino));
}

/* The caller's, of whatever program @pid runs; or -errno. */
static int reader_memory_open_any(int32_t pid)
{
	char path[64];
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

static void keep(const struct reader_request *q, const struct stat *file, int fd)
{
	if (last.fd)
		close(last.fd - 1);
	last.fd = fd + 1;
	last.pid = q->pid;
	last.uid = q->uid;
	last.life = q->life;
	last.dev = file->st_dev;
	last.ino = file->st_ino;
}

/*
 * A descriptor of the memory of process @q, which stays this module's; -1 where it is not to be
 * read: it is not that life any more, not user @q->uid's alone, not to be dumped, or, where
 * @registry is not -1, has not mapped that file. All of that is asked after it was opened.
 */
static int reader_memory_open(const struct reader_request *q, int registry)
{
	const struct registry_part any = { 0 };
	struct stat file = { 0 };
	int fd;

	if (registry >= 0 && fstat(registry, &file) < 0)
		return -1;
	if (is_last(q, &file))
		return reader_memory_good(q) ? last.fd - 1 : -1;
	fd = q->life ? reader_memory_open_any(q->pid) : -1;
	if (fd < 0)
		return -1;
	if (!reader_memory_good(q) ||
	    (registry >= 0 && !registry_process_maps(q->pid, &file, &any))) {
		close(fd);
		return -1;
	}
	keep(q, &file, fd);
	return fd;
}

/* Code is read by so much at most. */
enum { READER_PAGE = 4096, READER_CODE_MAX = 16 * READER_PAGE };
/* The search of a process's files for GDB's symbol stops then; one large file may take long. */
#define FIND_NS 300000000ull

/* A sanitizer's shadow alone reserves terabytes. */
#if defined(__SANITIZE_ADDRESS__)
#define MEMORY_MAX RLIM_INFINITY
#else
#define MEMORY_MAX (1u << 30)
#endif

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

/* The parser's answer about an ELF file's code; it tells nothing of one that is too large to hash.
 */
static void put_text(struct reader_answer *a, const struct stat *st)
{
	if (!a->no_elf && !a->text.len)
		reader_text_of_file(st, &a->text);
}

/* Read a file: whether it is a dump, else its identity, and the hash of its code unless @roots. */
static int file_read_id(const struct stat *st, int looked, bool roots, struct reader_known *k,
			struct reader_answer *a, int *fd_out)
{
	const struct reader_request q = { .op = READER_FILE_ID, .wants_text = !roots };
	int fd = reader_looked_open(looked), r, dump;

	if (fd < 0)
		return fd;
	r = parser_ask(&q, fd, -1, a);
	dump = r < 0 ? r : reader_is_dump(fd, a->dump);
	close(fd);
	if (dump)
		return dump < 0 ? dump : dump_found(st, looked, a, fd_out);
	if (a->id_len > sizeof(k->id.bytes) || a->text.len > sizeof(a->text.bytes))
		return -DCPI_EFORMAT;
	if (!roots)
		put_text(a, st);
	k->id.len = (uint8_t)a->id_len;
	memcpy(k->id.bytes, a->id, sizeof(a->id));
	k->text = a->text;
	k->extent = a->extent;
	k->elf = !a->no_elf;
	reader_known_add(st, k);
	return 0;
}

static int looked_id(const struct reader_request *q, int looked, struct reader_answer *a,
		     int *fd_out)
{
	struct reader_known k = { .elf = true };
	struct stat st;
	bool roots;
	int r = 0;

	if (fstat(looked, &st) < 0)
		return -errno;
	roots = reader_is_roots(q, &st);
	if (!reader_known_find(&st, &k) || (k.elf && !k.text.len && !roots))
		r = file_read_id(&st, looked, roots, &k, a, fd_out);
	if (r < 0)
		return r;
	if (q->id.len && !base_id_equal(&q->id, &k.id))
		return -ESTALE;
	a->no_elf = !k.elf;
	a->roots = roots;
	a->text = roots ? (struct base_id){ 0 } : k.text;
	a->extent = k.extent;
	/* Other files that programs map are written while they are mapped: dumps, memory for code.
	 */
	if (k.id.len && k.elf && !(q->id.len && roots) && reader_written_since(&st, q->since_ns))
		return -ETXTBSY;
	a->id_len = k.id.len;
	memcpy(a->id, k.id.bytes, sizeof(a->id));
	return 0;
}

static int image_id(const struct reader_request *q, struct reader_answer *a, int *fd_out)
{
	int looked = reader_mapped_look(q), r;

	if (looked < 0)
		return looked;
	r = looked_id(q, looked, a, fd_out);
	close(looked);
	/* A file with a build-id is no dump. */
	if (q->id.len && *fd_out >= 0) {
		close(*fd_out);
		*fd_out = -1;
		r = -ESTALE;
	}
	return r;
}

/*
 * Its user has opened it to read, so its contents are no secret to that user. Files that show other
 * things to other readers, as those of /proc, are no ELF.
 */
static int file_id(int sent, struct reader_answer *a)
{
	const struct reader_request q = { .op = READER_FILE_ID, .wants_text = true };
	int flags = fcntl(sent, F_GETFL), fd, r;
	struct stat st;

	if (flags < 0 || flags & O_PATH || (flags & O_ACCMODE) == O_WRONLY)
		return -EACCES;
	if (fstat(sent, &st) < 0 || !S_ISREG(st.st_mode))
		return -EINVAL;
	/* Opened again, so that the parser can neither write to it nor move its user's position. */
	fd = reader_looked_open(sent);
	if (fd < 0)
		return fd;
	r = parser_ask(&q, fd, -1, a);
	close(fd);
	if (r >= 0)
		put_text(a, &st);
	return r < 0 ? r : a->no_elf ? -DCPI_EFORMAT : 0;
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

/* ---- removed files --------------------------------------------------------------------------- */

static int copy(int looked, int to, off_t len)
{
	int from = reader_looked_open(looked);
	ssize_t n = from < 0 ? from : 0;

	while (from >= 0 && len > 0 && (n = sendfile(to, from, NULL, (size_t)len)) > 0)
		len -= n;
	n = from >= 0 && n < 0 ? -errno : n;
	if (from >= 0)
		close(from);
	return n < 0 ? (int)n : len ? -ESTALE : 0;
}

/* It is an ELF file of the identity that is meant. Its program may write to it still: the tools
 * compare its code once more. */
static int check_meant(const struct reader_request *q, int looked, struct reader_answer *a)
{
	int dump = -1, r = looked_id(q, looked, a, &dump);

	if (dump >= 0)
		close(dump);
	return r < 0 ? r : dump >= 0 || a->no_elf ? -ENOEXEC : 0;
}

/* The file outside, under the path of a container's file, has the same identity. */
static bool is_found(const struct reader_request *q, int twin)
{
	struct reader_answer a = { 0 };

	return twin >= 0 && q->id.len && check_meant(q, twin, &a) == 0;
}

/* Seconds since its name, mode or contents changed. */
static uint64_t age_of(const struct stat *st)
{
	time_t now = time(NULL);

	return now > st->st_ctime ? (uint64_t)(now - st->st_ctime) : 0;
}

static int removed_file(const struct reader_request *q, int to, struct reader_answer *a)
{
	struct stat st;
	int twin, looked = reader_removed_look(q, &st, &twin), r = 0;

	if (looked >= 0 || looked == -EEXIST)
		a->age_s = age_of(&st);
	if (looked < 0)
		return looked;
	if (is_found(q, twin))
		r = -EEXIST;
	if (twin >= 0)
		close(twin);
	if (r == 0 && to >= 0)
		r = check_meant(q, looked, a);
	if (r == 0 && to >= 0)
		r = copy(looked, to, st.st_size);
	close(looked);
	a->size = (uint64_t)st.st_size;
	a->mode = st.st_mode;
	a->owner = st.st_uid;
	a->roots = reader_was_roots(&st);
	return r;
}

/* ---- unwind tables --------------------------------------------------------------------------- */

/* A file that grew or shrank since is another one. */
static int looked_rows(const struct reader_request *q, int looked, struct reader_answer *a)
{
	struct stat st;
	int r = 0, fd;

	if (fstat(looked, &st) < 0)
		return -errno;
	if ((uint64_t)st.st_size != q->size)
		return -ESTALE;
	if (q->id.len)
		r = check_meant(q, looked, a);
	if (r < 0)
		return r;
	fd = reader_looked_open(looked);
	if (fd < 0)
		return fd;
	r = parser_ask(q, fd, -1, a);
	close(fd);
	return r;
}

/* @fd: the file, or -1: a mapped one. */
static int rows(const struct reader_request *q, int fd, struct reader_answer *a)
{
	int looked, r;

	if (fd >= 0)
		return parser_ask(q, fd, -1, a);
	looked = reader_mapped_look(q);
	if (looked < 0)
		return looked;
	r = looked_rows(q, looked, a);
	close(looked);
	return r;
}

static int code_rows(const struct reader_request *q, int fd, struct reader_answer *a)
{
	int memory = reader_memory_open_any(q->pid), r;

	if (memory < 0)
		return memory;
	r = parser_ask(q, fd, memory, a);
	close(memory);
	return r;
}

/* ---- registries ------------------------------------------------------------------------------ */

static int registry_check(const struct reader_request *q, int fd)
{
	/* Only memfds (and shared memory, whose seals are closed) have seals at all. */
	int seals = fcntl(fd, F_GET_SEALS), readable, r;
	struct reader_answer a;

	if (seals < 0 || !(seals & F_SEAL_SHRINK))
		return -EPERM;
	readable = reader_looked_open(fd);
	if (readable < 0)
		return readable;
	r = parser_ask(q, readable, -1, &a);
	close(readable);
	return r;
}

static int registry_open(const struct reader_request *q, int *fd_out)
{
	char path[64];
	int r, fd;

	reader_map_file(q, path);
	fd = open(path, O_RDWR | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
	if (fd < 0)
		return -errno;
	r = registry_check(q, fd);
	if (r < 0) {
		close(fd);
		return r;
	}
	*fd_out = fd;
	return 0;
}

/* ---- requests -------------------------------------------------------------------------------- */

/*
 * The parser is asked about @fd and memory, and once more without memory where that is not to be
 * given away: the process ended meanwhile, or is another's.
 */
static int parse_opened(const struct reader_request *q, int fd, int memory, struct reader_answer *a)
{
	struct reader_request again = *q;
	int r;

	again.life = memory < 0 ? 0 : q->life;
	r = parser_ask(&again, fd, memory, a);
	if (memory < 0 || reader_memory_good(q))
		return r;
	again.life = 0;
	return parser_ask(&again, fd, -1, a);
}

static int registry_read(const struct reader_request *q, int fd, struct reader_answer *a)
{
	int readable = reader_looked_open(fd), r;

	if (readable < 0)
		return readable;
	r = parse_opened(q, readable, reader_memory_open(q, fd), a);
	close(readable);
	return r;
}

static int range_read(const struct reader_request *q, struct base_buf *out)
{
	int memory = reader_memory_open(q, -1), r;

	if (memory < 0)
		return -ESRCH;
	r = registry_range_read(&q->range, &(struct registry_memory){ reader_memory_read, &memory },
				out);
	return r < 0 ? r : reader_memory_good(q) ? 0 : -ESRCH;
}

/* As far as it stands there without a gap. */
static int code_read(const struct reader_request *q, struct base_buf *out)
{
	size_t len = q->end - q->addr;
	void *to;
	ssize_t n;
	int r, memory;

	if (q->end <= q->addr || q->addr % READER_PAGE || len > READER_CODE_MAX)
		return -EINVAL;
	r = base_buf_extend(out, len, &to);
	if (r < 0)
		return r;
	memory = reader_memory_open_any(q->pid);
	n = memory < 0 ? memory : reader_memory_read(&memory, q->addr, to, len);
	if (memory >= 0)
		close(memory);
	out->len = n < 0 ? 0 : (size_t)n;
	return n < 0 ? (int)n : 0;
}

/* The time of a file that is mapped does not move with each byte: its size does, or room was made
 * ahead. */
static bool is_same(const struct reader_request *q, const struct foreign_seen *now)
{
	return q->file.at_end && !q->file.ahead && now->size == q->seen.size &&
	       now->written_ns == q->seen.written_ns;
}

/* To open and to close it may wait, so both are part of the request. */
static int file_read(const struct reader_request *q, int looked, struct reader_answer *a)
{
	struct foreign_seen seen = { 0 };
	struct stat st;
	int fd, r;

	a->file = q->file;
	if (fstat(looked, &st) < 0)
		return -errno;
	seen.size = st.st_size;
	seen.written_ns = (uint64_t)st.st_mtim.tv_sec * 1000000000u + (uint64_t)st.st_mtim.tv_nsec;
	seen.same = is_same(q, &seen);
	a->seen = seen;
	if (seen.same)
		return 0;
	fd = reader_looked_open(looked);
	if (fd < 0)
		return fd;
	r = parse_opened(q, fd, reader_memory_open(q, -1), a);
	close(fd);
	a->seen = seen;
	return r;
}

/* The last number of the line "NSpid:" in its status. */
static int read_ns_pid(int32_t pid, int32_t *ns_pid)
{
	char path[64], *line = NULL, *number;
	size_t cap = 0;
	int r = -ESRCH;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	f = fopen(path, "re");
	while (f && r < 0 && getline(&line, &cap, f) > 0) {
		if (strncmp(line, "NSpid:", 6) != 0)
			continue;
		line[strcspn(line, "\n")] = '\0';
		number = strrchr(line, '\t');
		*ns_pid = number ? (int32_t)strtol(number + 1, NULL, 10) : 0;
		r = *ns_pid > 0 ? 0 : -DCPI_EFORMAT;
	}
	free(line);
	if (f)
		fclose(f);
	return r;
}

/* To look things up in, also when the process has ended; with its own number in its PID namespace.
 */
static int root_open(const struct reader_request *q, struct reader_answer *a, int *fd_out)
{
	char path[64];
	int r = read_ns_pid(q->pid, &a->ns_pid), fd;

	if (r < 0)
		return r;
	snprintf(path, sizeof(path), "/proc/%d/root", q->pid);
	fd = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	*fd_out = fd;
	return 0;
}

static int perfmap_open(const struct reader_request *q, int root, int *fd_out)
{
	int fd = root < 0 ? -EBADF : reader_perfmap_open(q, root);

	*fd_out = fd;
	return fd < 0 ? fd : 0;
}

/* Where the process is another program or user meanwhile, the answer is dropped. */
static int gdb(const struct reader_request *q, struct reader_answer *a)
{
	int memory = reader_memory_open(q, -1), r;

	if (memory < 0)
		return -ESRCH;
	if (q->op == READER_GDB_FIND)
		r = reader_gdb_find(q, base_now_ns() + FIND_NS, &a->gdb);
	else
		r = parser_ask(q, -1, memory, a);
	return reader_memory_good(q) ? r : -ESRCH;
}

static bool has_mapped(const struct reader_request *q)
{
	const struct stat file = { .st_dev = makedev(q->dev_major, q->dev_minor),
				   .st_ino = q->inode };
	const struct registry_part part = { q->addr, q->end - q->addr, q->size };

	return registry_process_maps(q->pid, &file, &part);
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
		return fd < 0 ? -EBADF : registry_read(q, fd, a);
	case READER_RANGE_READ:
		return range_read(q, out);
	case READER_ROOT_OPEN:
		return root_open(q, a, fd_out);
	case READER_PERFMAP_OPEN:
		return perfmap_open(q, fd, fd_out);
	case READER_FILE_READ:
		return fd < 0 ? -EBADF : file_read(q, fd, a);
	case READER_GDB_FIND:
	case READER_GDB_LIST:
	case READER_GDB_OBJECT:
		return gdb(q, a);
	case READER_CODE_READ:
		return code_read(q, out);
	case READER_CLOSE:
		close(fd);
		return 0;
	case READER_FILE_ID:
		return fd < 0 ? -EBADF : sent_file_id(fd, a);
	case READER_REMOVED:
		return removed_file(q, fd, a);
	case READER_ROWS:
		return rows(q, fd, a);
	case READER_CODE_ROWS:
		return fd < 0 ? -EBADF : code_rows(q, fd, a);
	case READER_MAPS:
		return reader_maps_read(q->pid, out);
	case READER_MAPPED:
		return has_mapped(q);
	}
	return -EINVAL;
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
	/* The parser writes its own answers; @out is empty then. */
	if (out.len)
		reader_put_answer(READER_ANSWERS_FD, &out, &a);
	r = reader_send(READER_SOCKET_FD, &a, sizeof(a), fd_out);
	if (fd >= 0 && q.op != READER_CLOSE)
		close(fd);
	if (fd_out >= 0)
		close(fd_out);
	base_buf_release(&out);
	return r;
}

/* ---- rights ---------------------------------------------------------------------------------- */

/* CAP_CHECKPOINT_RESTORE, which older headers do not have. */
enum { CAP_MAP_FILES = 40 };

/* Opening processes' memory and their mapped files takes these, of what there is. */
static const uint64_t rights =
	1ull << CAP_SYS_PTRACE | 1ull << CAP_DAC_READ_SEARCH | 1ull << CAP_MAP_FILES;

int main(int argc, char **argv)
{
	struct rlimit limit = { READER_ANSWER_MAX, READER_ANSWER_MAX };
	struct rlimit memory = { MEMORY_MAX, MEMORY_MAX };
	struct base_err err = { 0 };

	(void)argv;
	if (argc != 1 || fcntl(READER_SOCKET_FD, F_GETFD) < 0 ||
	    fcntl(READER_ANSWERS_FD, F_GETFD) < 0 || fcntl(READER_PARSER_FD, F_GETFD) < 0) {
		fputs("dcpid-reader: not for use by hand: dcpid starts it\n", stderr);
		return BASE_EXIT_USAGE;
	}
	signal(SIGXFSZ, SIG_IGN);
	/* Terminal signals are dcpid's, which lets us go when it is done. */
	signal(SIGINT, SIG_IGN);
	signal(SIGTERM, SIG_IGN);
	signal(SIGHUP, SIG_IGN);
	if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || setrlimit(RLIMIT_FSIZE, &limit) < 0 ||
	    setrlimit(RLIMIT_AS, &memory) < 0 || base_rights_keep(rights, &err) < 0)
		return BASE_EXIT_FAILED;
	while (serve_one() >= 0)
		;
	return BASE_EXIT_OK;
}
