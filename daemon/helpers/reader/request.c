/* SPDX-License-Identifier: BSD-2-Clause */
/* The requests of dcpid to its reader process. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include "reader.h"
#include "reader_internal.h"

/* In place of a user id: the process is gone, and its time is charged to no user. */
#define NO_USER UINT32_MAX

/* Rather too late than too early, where we stood still between two looks. */
static uint64_t wall_ns(uint64_t time_ns)
{
	uint64_t now = base_now_ns();
	struct timespec wall;

	clock_gettime(CLOCK_REALTIME, &wall);
	return (uint64_t)wall.tv_sec * 1000000000u + (uint64_t)wall.tv_nsec - now + time_ns;
}

static uint32_t real_user(int32_t pid, uint32_t otherwise)
{
	uint32_t uid = otherwise;
	char path[32], line[256];
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f) && sscanf(line, "Uid: %" SCNu32, &uid) != 1)
		;
	if (f)
		fclose(f);
	return uid;
}

/*
 * The process's owner now; @otherwise where it is gone. The kernel shows root as the owner of one
 * that is not to be dumped, which is any program's choice: the user who started it pays for it.
 */
static uint32_t user_of(int32_t pid, uint32_t otherwise)
{
	char path[32];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d", pid);
	if (stat(path, &st) < 0)
		return otherwise;
	return st.st_uid ? st.st_uid : real_user(pid, otherwise);
}

bool reader_may_tell(const struct reader *r, uint32_t uid)
{
	return budget_may_tell(r->budgets, uid);
}

uint32_t reader_user(int32_t pid)
{
	return user_of(pid, NO_USER);
}

int reader_image_id(struct reader *r, int32_t pid, uint32_t uid, const struct driver_load *l,
		    struct base_id *id, struct reader_dump *dump)
{
	struct reader_request q = { .op = READER_IMAGE_ID,
				    .pid = pid,
				    .uid = user_of(pid, uid),
				    .addr = l->addr,
				    .end = l->addr + l->len,
				    .inode = l->inode,
				    .dev_major = l->dev_major,
				    .dev_minor = l->dev_minor,
				    .id = l->id,
				    .since_ns = l->time_ns ? wall_ns(l->time_ns) : 0 };
	struct reader_answer a;
	int code, fd = -1;

	if (strlen(l->path) < sizeof(q.path))
		snprintf(q.path, sizeof(q.path), "%s", l->path);
	code = reader_call(r, &q, -1, &a, &fd);
	if (code >= 0 && fd >= 0 && dump) {
		*dump = (struct reader_dump){
			.fd = fd, .dev = a.dev, .ino = a.ino, .owner = a.owner
		};
		return 0;
	}
	if (fd >= 0)
		reader_release(r, q.uid, fd);
	if (code < 0)
		return code;
	if (!a.id_len || a.id_len > sizeof(id->bytes) || a.text.len > sizeof(a.text.bytes))
		return -DCPI_EHELPER;
	*id = (struct base_id){ .len = (uint8_t)a.id_len };
	memcpy(id->bytes, a.id, a.id_len);
	if (dump) {
		dump->no_elf = a.no_elf;
		dump->roots = a.roots;
		dump->text = a.text;
		dump->extent = a.extent;
	}
	return 0;
}

int reader_registry_open(struct reader *r, int32_t pid, uint64_t map_start, uint64_t map_end)
{
	struct reader_request q = { .op = READER_REGISTRY_OPEN,
				    .pid = pid,
				    .uid = user_of(pid, NO_USER),
				    .addr = map_start,
				    .end = map_end };
	struct reader_answer a;

	return reader_call_for_fd(r, &q, -1, &a);
}

int reader_registry_read(struct reader *r, int fd, int32_t pid, uint32_t uid, uint64_t life,
			 struct registry_place *place, struct base_buf *out)
{
	struct reader_request q = {
		.op = READER_REGISTRY_READ, .pid = pid, .uid = uid, .life = life, .place = *place
	};
	struct reader_answer a;
	int code = reader_call_long(r, &q, fd, &a, out);

	if (code >= 0)
		*place = a.place;
	return code;
}

int reader_range_read(struct reader *r, int32_t pid, uint32_t uid, uint64_t life,
		      const struct wire_range *range, struct base_buf *out)
{
	struct reader_request q = {
		.op = READER_RANGE_READ, .pid = pid, .uid = uid, .life = life, .range = *range
	};
	struct reader_answer a;

	return reader_call_long(r, &q, -1, &a, out);
}

int reader_root_find(struct reader *r, int32_t pid, int32_t *ns_pid)
{
	struct reader_request q = { .op = READER_ROOT_OPEN,
				    .pid = pid,
				    .uid = user_of(pid, NO_USER) };
	struct reader_answer a;
	int fd = reader_call_for_fd(r, &q, -1, &a);

	*ns_pid = a.ns_pid;
	return fd;
}

int reader_perfmap_find(struct reader *r, int root, int32_t ns_pid, uint32_t uid, uint64_t since_ns)
{
	struct reader_request q = {
		.op = READER_PERFMAP_OPEN, .ns_pid = ns_pid, .uid = uid, .since_ns = since_ns
	};
	struct reader_answer a;
	int code = reader_call_for_fd(r, &q, root, &a);

	return code == -ETIMEDOUT && r->helper.held ? -EREMOTE : code;
}

int reader_file_read(struct reader *r, int fd, unsigned int kind, const struct reader_who *who,
		     struct foreign_place *place, struct foreign_seen *seen, struct base_buf *out)
{
	struct reader_request q = { .op = READER_FILE_READ,
				    .seen = *seen,
				    .kind = kind,
				    .pid = who->pid,
				    .uid = who->uid,
				    .life = who->life,
				    .file = *place };
	struct reader_answer a;
	int code = reader_call_long(r, &q, fd, &a, out);

	if (code >= 0) {
		*place = a.file;
		*seen = a.seen;
	}
	return code == -ETIMEDOUT && r->helper.held ? -EREMOTE : code;
}

int reader_file_id(struct reader *r, int sock, struct base_id *id, struct base_id *text)
{
	struct ucred who = { .uid = NO_USER };
	socklen_t len = sizeof(who);
	struct reader_request q = { .op = READER_FILE_ID };
	struct reader_answer a;
	int code;

	getsockopt(sock, SOL_SOCKET, SO_PEERCRED, &who, &len);
	q.uid = who.uid;
	code = reader_call(r, &q, sock, &a, NULL);

	if (code < 0)
		return code;
	if (!a.id_len || a.id_len > sizeof(id->bytes) || a.text.len > sizeof(a.text.bytes))
		return -DCPI_EHELPER;
	*id = (struct base_id){ .len = (uint8_t)a.id_len };
	memcpy(id->bytes, a.id, a.id_len);
	*text = a.text;
	return 0;
}

int reader_removed_file(struct reader *r, struct reader_removed *f, int to)
{
	struct reader_request q = { .op = READER_REMOVED,
				    .pid = f->pid,
				    .uid = user_of(f->pid, f->uid),
				    .addr = f->start,
				    .end = f->end,
				    .id = f->id };
	struct reader_answer a;
	int code;

	if (strlen(f->path) < sizeof(q.path))
		strcpy(q.path, f->path);
	code = reader_call(r, &q, to, &a, NULL);
	if (code < 0)
		return code;
	if (a.text.len > sizeof(a.text.bytes))
		return -DCPI_EHELPER;
	f->len = a.size;
	f->owner = a.owner;
	f->public = a.mode & S_IROTH;
	f->text = a.text;
	f->roots = a.roots;
	return 0;
}

/* Any bytes are good. */
static int check_bytes(const struct base_buf *b, size_t from)
{
	(void)b;
	(void)from;
	return 0;
}

ssize_t reader_code_read(struct reader *r, int32_t pid, uint64_t addr, void *to, size_t len)
{
	struct reader_request q = { .op = READER_CODE_READ,
				    .pid = pid,
				    .uid = user_of(pid, NO_USER),
				    .addr = addr,
				    .end = addr + len };
	struct base_buf out = { 0 };
	struct reader_answer a;
	int code = reader_call_checked(r, &q, -1, &a, check_bytes, &out);
	size_t n = out.len < len ? out.len : len;

	if (code >= 0 && n)
		memcpy(to, out.data, n);
	base_buf_release(&out);
	return code < 0 ? code : (ssize_t)n;
}

int reader_maps(struct reader *r, int32_t pid, struct base_buf *out)
{
	struct reader_request q = { .op = READER_MAPS, .pid = pid, .uid = user_of(pid, NO_USER) };
	struct reader_answer a;
	int code = -ESRCH;

	/* A process that is gone has none, which costs no user. */
	if (q.uid != NO_USER)
		code = reader_call_checked(r, &q, -1, &a, check_bytes, out);
	return code > 0 ? 0 : code;
}

int reader_mapped(struct reader *r, int32_t pid, const struct stat *file,
		  const struct registry_part *part)
{
	struct reader_request q = { .op = READER_MAPPED,
				    .pid = pid,
				    .uid = user_of(pid, NO_USER),
				    .addr = part->addr,
				    .end = part->addr + part->len,
				    .size = part->off,
				    .inode = file->st_ino,
				    .dev_major = major(file->st_dev),
				    .dev_minor = minor(file->st_dev) };
	struct reader_answer a;

	return q.uid == NO_USER ? -ESRCH : reader_call(r, &q, -1, &a, NULL);
}

/* ---- GDB's JIT interface --------------------------------------------------------------------- */

static struct reader_request gdb_request(uint32_t op, const struct reader_who *who)
{
	return (struct reader_request){
		.op = op, .pid = who->pid, .uid = who->uid, .life = who->life
	};
}

static int check_entries(const struct base_buf *b, size_t from)
{
	size_t len = b->len - from;

	return len % sizeof(struct foreign_gdb_entry) ||
			       len / sizeof(struct foreign_gdb_entry) > FOREIGN_GDB_ENTRIES
		       ? -DCPI_EFORMAT
		       : 0;
}

int reader_gdb_find(struct reader *r, const struct reader_who *who, struct foreign_gdb *g)
{
	struct reader_request q = gdb_request(READER_GDB_FIND, who);
	struct reader_answer a;
	int code = reader_call(r, &q, -1, &a, NULL);

	if (code >= 0 && a.gdb.nr_heads > FOREIGN_GDB_HEADS)
		return -DCPI_EHELPER;
	if (code >= 0)
		*g = a.gdb;
	return code;
}

int reader_gdb_list(struct reader *r, const struct reader_who *who, struct foreign_gdb *g,
		    struct base_buf *out)
{
	struct reader_request q = gdb_request(READER_GDB_LIST, who);
	struct reader_answer a;
	int code;

	q.gdb = *g;
	code = reader_call_checked(r, &q, -1, &a, check_entries, out);
	if (code >= 0) {
		g->next = a.gdb.next;
		g->state = a.gdb.state;
	}
	return code;
}

int reader_gdb_object(struct reader *r, const struct reader_who *who, uint64_t seq,
		      struct foreign_gdb_entry *entry, struct base_buf *out)
{
	struct reader_request q = gdb_request(READER_GDB_OBJECT, who);
	struct reader_answer a;
	int code;

	q.entry = *entry;
	q.seq = seq;
	code = reader_call_long(r, &q, -1, &a, out);
	if (a.print)
		entry->print = a.print;
	return code;
}
