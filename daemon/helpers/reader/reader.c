/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * dcpid starts the reader and its parser, sends one request at a time, and replaces a reader that
 * fails. Unwind tables are asked for, and taken when they are made; dcpid goes on meanwhile.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <unistd.h>

#include "closer.h"
#include "parser.h"
#include "reader.h"
#include "reader_internal.h"
#include "unwind.h"
#include "wire.h"

/* MEANWHILE_MS: by far less than the kernel's rings hold. */
enum { TIMEOUT_MS = 1000, END_MS = 50, MEANWHILE_MS = 40 };
/* A request for which the helpers work so long is as bad as one that waits; nor is longer waited
 * for an answer, however busy the machine is. */
#define WORK_MAX_NS 1000000000u
enum { WAIT_MAX_MS = 4000 };

/* A table that takes more work is given up, and one for which they wait so long for others (a file
 * system); nor is longer waited for one, however busy the machine is. */
#define TABLE_WORK_MAX_NS 2000000000ull
#define TABLE_IDLE_MAX_NS 1000000000ull
#define TABLE_WAIT_MAX_NS 30000000000ull
/* Between two looks no more counts as idle: all of us may have stood still. */
#define TABLE_LOOK_MAX_NS 250000000ull

/* While the kernel holds so many that were killed, none is asked. */
enum { HELD_MAX = 4 };

/* In place of a user id: the process is gone, and its time is charged to no user. */
#define NO_USER UINT32_MAX

/* ---- the helper's life ----------------------------------------------------------------------- */

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

/* A reader held in the kernel may outlive its killing for a while: that is not waited for. */
static void dismiss(struct reader *r)
{
	r->making.asked = false;
	close_fd(&r->answers);
	helper_end(&r->helper, true, END_MS);
	helper_end(&r->parser, true, END_MS);
	r->helper.held |= r->parser.held;
}

static int spawn_parser(struct reader *r)
{
	const struct helper_start how = { .socket_type = SOCK_SEQPACKET,
					  .socket_fd = PARSER_SOCKET_FD,
					  .more_fds = &r->answers,
					  .nr_more = 1 };

	return helper_start(&r->parser, &how);
}

/* The parser's socket is the reader's alone: each of them ends when the other is gone. */
static int spawn(struct reader *r)
{
	struct helper_start how = { .socket_type = SOCK_SEQPACKET, .socket_fd = READER_SOCKET_FD };
	int fds[HELPER_NR_MORE], code;

	r->answers = memfd_create("dcpid-reader", MFD_CLOEXEC);
	code = r->answers < 0 ? -errno : spawn_parser(r);
	if (code == 0) {
		fds[0] = r->answers;
		fds[1] = r->parser.sock;
		how.more_fds = fds;
		how.nr_more = 2;
		code = helper_start(&r->helper, &how);
		close_fd(&r->parser.sock);
	}
	if (code < 0)
		dismiss(r);
	return code;
}

int reader_open(const char *helper_dir, struct reader **out, struct base_err *err)
{
	struct reader *r = calloc(1, sizeof(*r));
	int code;

	*out = NULL;
	if (!r)
		return base_fail_errno(err, -ENOMEM, "cannot start 'dcpid-reader'");
	r->answers = -1;
	r->timeout_ms = TIMEOUT_MS;
	code = helper_find(&r->helper, helper_dir, "dcpid-reader", err);
	if (code == 0)
		code = helper_find(&r->parser, helper_dir, "dcpid-parse", err);
	if (code < 0)
		free(r);
	else
		*out = r;
	return code;
}

void reader_close(struct reader *r)
{
	if (!r)
		return;
	dismiss(r);
	helper_reap(&r->helper);
	helper_reap(&r->parser);
	free(r);
}

void reader_share(struct reader *r, struct budgets *budgets)
{
	r->budgets = budgets;
}

void reader_set_meanwhile(struct reader *r, void (*fn)(void *ctx), void *ctx)
{
	r->meanwhile = fn;
	r->ctx = ctx;
}

void reader_trim(struct reader *r)
{
	if (r->answers >= 0 && ftruncate(r->answers, 0) < 0)
		base_log(BASE_LOG_WARN, "the reader's answers stay: %s", base_strerror(errno));
}

/* ---- how much they work ---------------------------------------------------------------------- */

/*
 * Nanoseconds since its start in which a helper ran, and in which it could have run but had no CPU.
 * The rest of the time it waited for others. Zeros where it does not run, or the kernel does not
 * count. The kernel counts such a wait when it is over: is_on_cpu tells of one that lasts.
 */
static struct helper_effort effort_of_one(const struct helper *h)
{
	struct helper_effort e = { 0 };
	char text[96];
	ssize_t n = h->effort_fd < 0 ? -1 : pread(h->effort_fd, text, sizeof(text) - 1, 0);
	char *end;

	if (n <= 0)
		return e;
	text[n] = '\0';
	e.ran_ns = strtoull(text, &end, 10);
	e.ready_ns = strtoull(end, NULL, 10);
	return e;
}

static bool is_on_cpu(const struct helper *h)
{
	char path[32], text[128], *name_end;
	ssize_t n = -1;
	int fd;

	snprintf(path, sizeof(path), "/proc/%d/stat", h->pid);
	fd = h->pid ? open(path, O_RDONLY | O_CLOEXEC) : -1;
	if (fd >= 0) {
		n = read(fd, text, sizeof(text) - 1);
		close(fd);
	}
	text[n > 0 ? n : 0] = '\0';
	name_end = strrchr(text, ')');
	return name_end && strncmp(name_end, ") R", 3) == 0;
}

/* The sum of the reader's and the parser's: one waits while the other works. */
static struct helper_effort effort_of(const struct reader *r)
{
	struct helper_effort reader = effort_of_one(&r->helper);
	struct helper_effort parser = effort_of_one(&r->parser);

	return (struct helper_effort){ reader.ran_ns + parser.ran_ns,
				       reader.ready_ns + parser.ready_ns };
}

/* It was not told once. */
static uint64_t grown(uint64_t from, uint64_t to)
{
	return to > from ? to - from : 0;
}

static struct helper_effort effort_since(const struct helper_effort *from,
					 const struct helper_effort *to)
{
	return (struct helper_effort){ grown(from->ran_ns, to->ran_ns),
				       grown(from->ready_ns, to->ready_ns) };
}

/* ---- one request ----------------------------------------------------------------------------- */

/* A request alone: 0 or -errno. *@before gets the effort of the helpers until then. */
static int ask(struct reader *r, const struct reader_request *q, int fd,
	       struct helper_effort *before)
{
	int code = 0;

	helper_reap(&r->helper);
	helper_reap(&r->parser);
	if (!r->helper.pid)
		code = spawn(r);
	/* They may be done with it before this process runs again. */
	*before = effort_of(r);
	return code < 0 ? code : reader_send(r->helper.sock, q, sizeof(*q), fd);
}

/* 0: it is refused. */
static unsigned int wait_ms_of(const struct reader *r, const struct reader_request *q)
{
	return r->budgets ? budget_wait_ms(r->budgets, q->uid) : r->timeout_ms;
}

/* How an answer was waited for. */
struct waited {
	struct helper_effort used;
	unsigned int idle_ms; /* the helpers neither worked nor waited for a CPU */
	uint64_t all_ns;      /* by the clock */
};

/* The helpers may have worked before this process waited, on its CPU. */
static void charge(const struct reader *r, const struct reader_request *q, uint64_t since_ns,
		   const struct waited *w, uint64_t bytes)
{
	uint64_t all_ns = base_now_ns() - since_ns, ran_ns = w->used.ran_ns;
	uint64_t took_ns = all_ns - w->all_ns + ran_ns + w->idle_ms * UINT64_C(1000000);
	uint64_t most_ns = w->used.ready_ns < all_ns ? all_ns - w->used.ready_ns : 0;

	budget_waited(r->budgets, q->uid, took_ns < most_ns ? took_ns : most_ns, ran_ns, bytes);
}

static bool is_ready(const struct reader *r)
{
	return is_on_cpu(&r->helper) || is_on_cpu(&r->parser);
}

/* Time in which the helpers work, or wait for a CPU, is not their client's to answer for. */
static unsigned int idle_ms_of(const struct helper_effort *e, unsigned int took_ms)
{
	uint64_t ms = (e->ran_ns + e->ready_ns) / 1000000;

	return ms < took_ms ? took_ms - (unsigned int)ms : 0;
}

/* The helpers' effort was *@start. Where this process, or the host, is late itself, each step is no
 * longer for that. */
static int wait_for_answer(struct reader *r, unsigned int wait_ms,
			   const struct helper_effort *start, struct waited *w)
{
	uint64_t since_ns = base_now_ns();
	int code = -ETIMEDOUT;

	for (unsigned int all_ms = 0; code == -ETIMEDOUT && w->idle_ms < wait_ms &&
				      all_ms < WAIT_MAX_MS && w->used.ran_ns < WORK_MAX_NS;) {
		unsigned int left_ms = wait_ms - w->idle_ms;
		unsigned int step_ms = left_ms < MEANWHILE_MS ? left_ms : MEANWHILE_MS;
		unsigned int rest_ms = step_ms;
		struct helper_effort now, used, step;

		code = base_wait_readable(r->helper.sock, &rest_ms);
		now = effort_of(r);
		used = effort_since(start, &now);
		step = effort_since(&w->used, &used);
		w->used = used;
		if (code != -ETIMEDOUT || !is_ready(r))
			w->idle_ms += idle_ms_of(&step, step_ms - rest_ms);
		all_ms += step_ms;
		if (code == -ETIMEDOUT && r->meanwhile)
			r->meanwhile(r->ctx);
	}
	w->all_ns = base_now_ns() - since_ns;
	return code;
}

static int hear(struct reader *r, unsigned int wait_ms, struct reader_answer *a, int *fd_out,
		const struct helper_effort *before, struct waited *w)
{
	int none, code = wait_for_answer(r, wait_ms, before, w);

	if (code == 0)
		code = reader_receive(r->helper.sock, a, sizeof(*a), fd_out ? fd_out : &none);
	if (code == 0 && !fd_out && none >= 0)
		close(none);
	return code;
}

/*
 * Ask, wait, and charge the user. @fd is passed on (-1: none). Where @gives, ours is closed as soon
 * as the helper has its own, so that ours is not the last one of the file.
 */
static int call(struct reader *r, const struct reader_request *q, int fd, bool gives,
		struct reader_answer *a, int *fd_out)
{
	unsigned int wait_ms = wait_ms_of(r, q);
	uint64_t since_ns = base_now_ns();
	struct helper_effort before;
	struct waited w = { 0 };
	int code;

	*a = (struct reader_answer){ 0 };
	if (!wait_ms || r->making.asked) {
		if (gives)
			closer_close(fd);
		return wait_ms ? -EBUSY : -EDQUOT;
	}
	code = ask(r, q, fd, &before);
	if (gives)
		close(fd);
	if (code == 0)
		code = hear(r, wait_ms, a, fd_out, &before, &w);
	if (code < 0)
		dismiss(r);
	charge(r, q, since_ns, &w, a->len);
	/* Many short requests are as long as one that takes long. */
	if (r->meanwhile)
		r->meanwhile(r->ctx);
	return code == 0 ? a->status : code == -ETIMEDOUT ? code : -DCPI_EHELPER;
}

/*
 * One request: the helper's answer, or why there is none (-EDQUOT: the budget of user q->uid is
 * spent); after a failure of the helper itself that is replaced. @fd: to hand over, or -1. *@fd_out
 * (may be NULL): one that came back, or -1.
 */
static int reader_call(struct reader *r, const struct reader_request *q, int fd,
		       struct reader_answer *a, int *fd_out)
{
	if (fd_out)
		*fd_out = -1;
	return call(r, q, fd, false, a, fd_out);
}

/* Ours is closed while the helper has another: its own is the last. */
void reader_release(struct reader *r, uint32_t uid, int fd)
{
	const struct reader_request q = { .op = READER_CLOSE, .uid = uid };
	struct reader_answer a;

	call(r, &q, fd, true, &a, NULL);
}

static bool one_of_ours(uint16_t type)
{
	switch (type) {
	case WIRE_FACILITY:
	case WIRE_RANGE:
	case WIRE_ROUTINE:
	case WIRE_RETIRE:
	case WIRE_MOVE:
	case WIRE_OBJECT:
	case WIRE_LISTED:
	case WIRE_BYTES:
	case WIRE_TIME:
		return true;
	}
	return false;
}

/* The outer shape of what the helper made from an application's bytes, checked once more. */
static int check_answer(const struct base_buf *b, size_t from)
{
	const struct wire_head *h;
	size_t pos = 0, len = b->len - from;

	while (len && (h = wire_next(b->data + from, len, &pos))) {
		if (!one_of_ours(h->type))
			return -DCPI_EFORMAT;
		if (wire_check(h) < 0)
			return -DCPI_EFORMAT;
	}
	return pos == len ? 0 : -DCPI_EFORMAT;
}

/* Whether the bytes appended from @from on are good: 0, or -DCPI_EFORMAT. */
typedef int reader_check_fn(const struct base_buf *b, size_t from);

/* Any bytes are good. */
static int check_bytes(const struct base_buf *b, size_t from)
{
	(void)b;
	(void)from;
	return 0;
}

static int fetch_answer(const struct reader *r, const struct reader_answer *a,
			reader_check_fn *check, struct base_buf *out)
{
	size_t from = out->len;
	void *to;
	int code;

	if (a->len > READER_ANSWER_MAX)
		return -DCPI_EFORMAT;
	code = base_buf_extend(out, a->len, &to);
	if (code == 0)
		code = base_read_at(r->answers, 0, to, a->len);
	if (code == 0)
		code = check(out, from);
	if (code < 0)
		out->len = from;
	return code;
}

/* The long answer that @a, received, tells of is appended to @out. */
static int fetch_or_dismiss(struct reader *r, const struct reader_answer *a, reader_check_fn *check,
			    struct base_buf *out)
{
	int code = fetch_answer(r, a, check, out);

	if (code != -DCPI_EFORMAT && code != -DCPI_ETRUNCATED)
		return code;
	dismiss(r);
	return -DCPI_EHELPER;
}

/* The long answer is appended to @out: what @check finds good from @from on (0, or -DCPI_EFORMAT).
 */
static int call_checked(struct reader *r, const struct reader_request *q, int fd,
			struct reader_answer *a, reader_check_fn *check, struct base_buf *out)
{
	int status = reader_call(r, q, fd, a, NULL), code;

	if (status < 0)
		return status;
	code = fetch_or_dismiss(r, a, check, out);
	return code < 0 ? code : status;
}

int reader_call_long(struct reader *r, const struct reader_request *q, int fd,
		     struct reader_answer *a, struct base_buf *out)
{
	return call_checked(r, q, fd, a, check_answer, out);
}

/* The descriptor that came back, or negative. */
static int call_for_fd(struct reader *r, const struct reader_request *q, int fd,
		       struct reader_answer *a)
{
	int opened = -1, code = reader_call(r, q, fd, a, &opened);

	if (code >= 0 && opened < 0)
		code = -DCPI_EHELPER;
	if (code >= 0)
		return opened;
	close_fd(&opened);
	return code;
}

/* ---- whose time it is ------------------------------------------------------------------------ */

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

/* ---- requests -------------------------------------------------------------------------------- */

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

	return call_for_fd(r, &q, -1, &a);
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
	int fd = call_for_fd(r, &q, -1, &a);

	*ns_pid = a.ns_pid;
	return fd;
}

int reader_perfmap_find(struct reader *r, int root, int32_t ns_pid, uint32_t uid, uint64_t since_ns)
{
	struct reader_request q = {
		.op = READER_PERFMAP_OPEN, .ns_pid = ns_pid, .uid = uid, .since_ns = since_ns
	};
	struct reader_answer a;
	int code = call_for_fd(r, &q, root, &a);

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
	f->age_s = code == -EEXIST ? a.age_s : 0;
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

ssize_t reader_code_read(struct reader *r, int32_t pid, uint64_t addr, void *to, size_t len)
{
	struct reader_request q = { .op = READER_CODE_READ,
				    .pid = pid,
				    .uid = user_of(pid, NO_USER),
				    .addr = addr,
				    .end = addr + len };
	struct base_buf out = { 0 };
	struct reader_answer a;
	int code = call_checked(r, &q, -1, &a, check_bytes, &out);
	size_t n = out.len < len ? out.len : len;

	if (code >= 0 && n)
		memcpy(to, out.data, n);
	base_buf_release(&out);
	return code < 0 ? code : (ssize_t)n;
}

uint64_t reader_cpu_ns(const struct reader *r)
{
	return helper_cpu_ns(&r->helper);
}

int reader_maps(struct reader *r, int32_t pid, struct base_buf *out)
{
	struct reader_request q = { .op = READER_MAPS, .pid = pid, .uid = user_of(pid, NO_USER) };
	struct reader_answer a;
	int code = -ESRCH;

	/* A process that is gone has none, which costs no user. */
	if (q.uid != NO_USER)
		code = call_checked(r, &q, -1, &a, check_bytes, out);
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

/* ---- requests: GDB's JIT interface ----------------------------------------------------------- */

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
	code = call_checked(r, &q, -1, &a, check_entries, out);
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

/* ---- unwind tables: asking ------------------------------------------------------------------- */

static int ask_for_table(struct reader *r, const struct reader_request *q, int fd)
{
	struct helper_effort before;
	int code;

	if (r->making.asked || helper_reap(&r->helper) + helper_reap(&r->parser) >= HELD_MAX)
		return -EBUSY;
	code = ask(r, q, fd, &before);
	if (code < 0) {
		dismiss(r);
		return -DCPI_EHELPER;
	}
	r->making = (struct reader_making){ .asked = true,
					    .since_ns = base_now_ns(),
					    .before = before };
	r->making.looked_ns = r->making.since_ns;
	return 0;
}

int reader_rows_ask(struct reader *r, const struct reader_mapped *f, int fd)
{
	struct reader_request q = { .op = READER_ROWS,
				    .pid = f->pid,
				    .addr = f->start,
				    .end = f->end,
				    .inode = f->inode,
				    .size = f->size,
				    .dev_major = (uint32_t)(f->dev >> 20),
				    .dev_minor = f->dev & 0xfffff,
				    .id = f->id };

	if (f->path && strlen(f->path) < sizeof(q.path))
		snprintf(q.path, sizeof(q.path), "%s", f->path);
	return ask_for_table(r, &q, fd);
}

/* A file in memory that holds @c's routines and frames, or negative. */
static int routines_file(const struct reader_code *c)
{
	int fd = memfd_create("dcpid-routines", MFD_CLOEXEC), r;

	if (fd < 0)
		return -errno;
	r = base_write_all(fd, c->routines, c->nr * sizeof(*c->routines));
	if (r >= 0 && c->nr_frames)
		r = base_write_all(fd, c->frames, c->nr_frames * sizeof(*c->frames));
	if (r >= 0)
		return fd;
	close(fd);
	return r;
}

int reader_code_rows_ask(struct reader *r, const struct reader_code *c)
{
	const struct reader_request q = { .op = READER_CODE_ROWS,
					  .pid = c->pid,
					  .addr = c->start,
					  .end = c->end,
					  .size = c->nr };
	int fd = routines_file(c), code;

	if (fd < 0)
		return fd;
	code = ask_for_table(r, &q, fd);
	close(fd);
	return code;
}

/* ---- unwind tables: taking ------------------------------------------------------------------- */

/* See how far they are. */
static void look(struct reader *r)
{
	struct reader_making *m = &r->making;
	struct helper_effort now = effort_of(r), used = effort_since(&m->before, &now);
	struct helper_effort step = effort_since(&m->looked, &used);
	uint64_t now_ns = base_now_ns(), took_ns = now_ns - m->looked_ns;
	uint64_t busy_ns = step.ran_ns + step.ready_ns;

	took_ns = took_ns < TABLE_LOOK_MAX_NS ? took_ns : TABLE_LOOK_MAX_NS;
	if (busy_ns < took_ns && !is_ready(r))
		m->idle_ns += took_ns - busy_ns;
	m->looked = used;
	m->looked_ns = now_ns;
}

/* 0, or why it is given up. Work is the same each time. */
static int late(const struct reader_making *m)
{
	if (m->looked.ran_ns >= TABLE_WORK_MAX_NS)
		return -DCPI_ELIMIT;
	return m->idle_ns >= TABLE_IDLE_MAX_NS || m->looked_ns - m->since_ns >= TABLE_WAIT_MAX_NS
		       ? -ETIMEDOUT
		       : 0;
}

static int give_up(struct reader *r, int code)
{
	dismiss(r);
	/* Its file system holds even the killed one. */
	return r->helper.held ? -EREMOTE : code;
}

static int take_table(struct reader *r, const struct reader_answer *a, struct unwind_table **out)
{
	struct base_buf bytes = { 0 };
	/* It is checked as it is decoded: once, as it may be large. */
	int code = fetch_or_dismiss(r, a, check_bytes, &bytes);

	if (code >= 0)
		code = unwind_decode(bytes.data, bytes.len, out);
	base_buf_release(&bytes);
	if (code == -DCPI_EFORMAT || code == -DCPI_ETRUNCATED) {
		dismiss(r);
		code = -DCPI_EHELPER;
	}
	reader_trim(r);
	return code < 0 ? code : 0;
}

int reader_rows_take(struct reader *r, unsigned int wait_ms, struct unwind_table **out,
		     struct reader_cost *cost)
{
	struct reader_answer a;
	int code, none = -1;

	*out = NULL;
	*cost = (struct reader_cost){ 0 };
	if (!r->making.asked)
		return -EINVAL;
	code = base_wait_readable(r->helper.sock, &wait_ms);
	look(r);
	*cost = (struct reader_cost){ r->making.looked.ran_ns, r->making.idle_ns };
	if (code == -ETIMEDOUT) {
		code = late(&r->making);
		return code < 0 ? give_up(r, code) : 1;
	}
	r->making.asked = false;
	if (code == 0)
		code = reader_receive(r->helper.sock, &a, sizeof(a), &none);
	if (none >= 0)
		close(none);
	if (code == 0)
		return a.status < 0 ? a.status : take_table(r, &a, out);
	dismiss(r);
	return -DCPI_EHELPER;
}
