/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "jit_internal.h"
#include "fake_registry.h"
#include "reader_internal.h"
#include "tracker.h"
#include "watch.h"

static const uint8_t code[16] = { 0x48, 0xff, 0xcf, 0x75, 0xfb, 0xc3 };
static uint64_t handed_over_ns; /* when what was handed over last was made */
static struct fake fake;

static int setup(void **state)
{
	int r = tracker_setup(state);

	if (*state)
		fake_open(&fake, 64 << 10);
	return r;
}

static int teardown(void **state)
{
	if (*state)
		fake_close(&fake);
	return tracker_teardown(state);
}

static struct process *find(void *ctx, int32_t pid, uint64_t time_ns)
{
	struct tracker *t = ctx;

	handed_over_ns = time_ns;
	return pid == t->p.pid ? &t->p : NULL;
}

static int hand_over(struct tracker *t)
{
	struct wire_doorbell bell = { .magic = WIRE_DOORBELL_MAGIC };
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

	snprintf(to.sun_path, sizeof(to.sun_path), "%s/dyn", t->dir);
	assert_int_equal(connect(sock, (void *)&to, sizeof(to)), 0);
	assert_int_equal(reader_send(sock, &bell, sizeof(bell), fake.fd), 0);
	close(sock);
	return dyn_take(t->dyn, find, t);
}

/* However late it is taken. */
static void test_when_it_was_made(void **state)
{
	TRACKER(state);
	uint64_t made_ns = base_now_ns();

	usleep(3 * DYN_MADE_NS / 1000);
	assert_int_equal(hand_over(t), 1);
	assert_in_range(handed_over_ns, made_ns - 1000000000u, made_ns + DYN_MADE_NS);
}

/* It has ended by then, and its parent has not waited for it. */
static void test_ended_client(void **state)
{
	const struct wire_doorbell bell = { .magic = WIRE_DOORBELL_MAGIC };
	uid_t user = getuid() ? getuid() : 65534;
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	siginfo_t info;
	TRACKER(state);

	snprintf(to.sun_path, sizeof(to.sun_path), "%s/dyn", t->dir);
	assert_int_equal(chmod(t->dir, 0755), 0);
	assert_int_equal(fchown(fake.fd, user, (gid_t)-1), 0);
	t->p.pid = fork();
	assert_true(t->p.pid >= 0);
	if (!t->p.pid) {
		int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);

		_exit(setresuid(user, user, user) < 0 ||
		      connect(sock, (void *)&to, sizeof(to)) < 0 ||
		      reader_send(sock, &bell, sizeof(bell), fake.fd) < 0);
	}
	assert_int_equal(waitid(P_PID, (id_t)t->p.pid, &info, WEXITED | WNOWAIT), 0);
	assert_int_equal(info.si_status, 0);
	assert_int_equal(dyn_take(t->dyn, find, t), 1);
	assert_int_equal(t->dyn->intake.nr_refused, 0);
	/* Nothing of its memory is read. */
	assert_int_equal(t->p.dyn->own->life, 0);
	assert_int_equal(waitpid(t->p.pid, NULL, 0), t->p.pid);
}

/* What reader_mapped answers; 1: what it says itself. */
static int mapped_answer = 1;

int __real_reader_mapped(struct reader *r, int32_t pid, const struct stat *file,
			 const struct registry_part *part);
int __wrap_reader_mapped(struct reader *r, int32_t pid, const struct stat *file,
			 const struct registry_part *part);

int __wrap_reader_mapped(struct reader *r, int32_t pid, const struct stat *file,
			 const struct registry_part *part)
{
	return mapped_answer == 1 ? __real_reader_mapped(r, pid, file, part) : mapped_answer;
}

/* Its user's budget is spent, or the reader was killed: that does not say that it is not its. */
static void test_not_answered(void **state)
{
	static const int unanswered[] = { -EDQUOT, -ETIMEDOUT, -DCPI_EHELPER };
	TRACKER(state);

	mapped_answer = unanswered[0];
	assert_int_equal(hand_over(t), 0);
	for (size_t i = 0; i < 3; i++) {
		mapped_answer = unanswered[i];
		assert_null(t->p.dyn);
		assert_int_equal(t->dyn->nr_handed, 1);
		/* Nobody waits for it meanwhile. */
		assert_false(dyn_is_catching_up(t->dyn));
		dyn_begin_flush(t->dyn);
		assert_false(dyn_is_behind(t->dyn));
		t->dyn->handed[0].again_ns = 1;
		assert_int_equal(dyn_take(t->dyn, find, t), 0);
	}
	mapped_answer = 1;
	assert_int_equal(dyn_take(t->dyn, find, t), 0);
	t->dyn->handed[0].again_ns = 1;
	assert_int_equal(dyn_take(t->dyn, find, t), 1);
	assert_int_equal(t->dyn->nr_handed, 0);
	assert_true(t->p.dyn->own->life != 0);
}

/* The same of one that its marker showed. */
static void test_marker_not_answered(void **state)
{
	uint64_t len = (fake.len + WIRE_PAGE - 1) / WIRE_PAGE * WIRE_PAGE;
	int fd;
	TRACKER(state);

	fd = reader_registry_open(t->reader, getpid(), (uintptr_t)fake.map,
				  (uintptr_t)fake.map + len);
	if (fd == -EPERM || fd == -EACCES)
		skip(); /* needs the right to open /proc/PID/map_files */
	assert_true(fd >= 0);
	close(fd);
	mapped_answer = -EDQUOT;
	dyn_marker(t->dyn, &t->p, (uintptr_t)fake.map, len);
	mapped_answer = 1;
	assert_null(t->p.dyn);
	assert_int_equal(t->dyn->nr_handed, 1);
	t->dyn->handed[0].again_ns = 1;
	assert_int_equal(dyn_take(t->dyn, find, t), 1);
	assert_true(t->p.dyn->own->life != 0);
}

/* The words are not given up for that either. */
static void test_words_not_answered(void **state)
{
	TRACKER(state);

	assert_int_equal(hand_over(t), 1);
	mapped_answer = -EDQUOT;
	assert_false(dyn_words_stand(&t->p));
	assert_false(t->p.dyn->own->no_words);
	mapped_answer = 0;
	assert_false(dyn_words_stand(&t->p));
	assert_true(t->p.dyn->own->no_words);
	mapped_answer = 1;
}

static enum dyn_where where(struct tracker *t, uint64_t addr, struct image **img)
{
	uint64_t off, now = base_now_ns();
	const struct dyn_query q = { .addr = addr, .first_ns = now, .time_ns = now };

	return dyn_lookup(t->dyn, &t->p, &q, img, &off);
}

static void ask_flush(struct tracker *t)
{
	fake.h->flush_wanted++;
	hand_over(t);
}

static void test_follow(void **state)
{
	struct dyn_stats stats;
	struct image *img = NULL;
	char path[512];
	struct stat st;
	TRACKER(state);

	assert_int_equal(hand_over(t), 1);
	assert_int_equal(fake.h->attached, t->dyn->id);
	/* The same one once more is known. */
	assert_int_equal(hand_over(t), 0);
	fake_facility(&fake, "unit jit");
	fake_put_routine(&fake, 0, 0x10000, "routine", code, sizeof(code));
	assert_int_equal(where(t, 0x10000, &img), DYN_LATER);
	dyn_refresh(t->dyn, false);
	assert_int_equal(where(t, 0x10004, &img), DYN_FOUND);
	assert_true(img->behind);
	assert_int_equal(fake.h->tail, fake.h->head);

	ask_flush(t);
	/* Whoever waits learns that it was met before it is done. */
	dyn_refresh(t->dyn, false);
	assert_int_equal(fake.h->flush_seen, 1);
	assert_int_equal(fake.h->flush_done, 0);
	assert_int_equal(dyn_write_images(t->dyn, NULL), 0);
	assert_int_equal(fake.h->flush_done, 1);
	assert_int_equal(fake.h->flush_status, 0);
	assert_false(img->behind);
	assert_int_equal(img->id.len, 20);
	snprintf(path, sizeof(path), "%s/dyn/%s", t->db_path, img->stem);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0640);
	assert_true(st.st_size > 0);

	/* Nothing new: answered at once. */
	ask_flush(t);
	assert_int_equal(dyn_write_images(t->dyn, NULL), 0);
	assert_int_equal(fake.h->flush_done, 2);
	dyn_stats_get(t->dyn, &stats);
	assert_int_equal(stats.images_written, 1);
	assert_int_equal(stats.clients, 1);
	assert_int_equal(stats.routines, 1);
	assert_int_equal(stats.records_bad, 0);
}

/* Between flushes code is written for viewers that are shown its samples, and for no others. */
static void test_watched(void **state)
{
	struct watch_peer other = { .pid = 2, .uid = 65533, .sock = 3 };
	struct watch_peer all = { .pid = 3, .uid = 65533, .sock = 4, .all = true };
	struct watch *w = watch_new();
	struct base_buf b = { 0 };
	struct image *img = NULL;
	TRACKER(state);

	fake_facility(&fake, "jit");
	fake_put_routine(&fake, 0, 0x10000, "routine", code, sizeof(code));
	hand_over(t);
	dyn_refresh(t->dyn, true);
	assert_int_equal(where(t, 0x10000, &img), DYN_FOUND);
	assert_int_equal(dyn_write_watched(t->dyn, w, NULL), 0);
	assert_int_equal(watch_take(w, &other, NULL, 0, 1, &b, NULL), 0);
	assert_int_equal(dyn_write_watched(t->dyn, w, NULL), 0);
	assert_true(img->behind);
	assert_int_equal(watch_take(w, &all, NULL, 0, 1, &b, NULL), 0);
	assert_int_equal(dyn_write_watched(t->dyn, w, NULL), 0);
	assert_false(img->behind);
	watch_free(w);
	base_buf_release(&b);
}

static void test_image_grows(void **state)
{
	struct image *img = NULL;
	struct base_id first;
	TRACKER(state);

	fake_facility(&fake, "jit");
	fake_put_routine(&fake, 0, 0x10000, "one", code, sizeof(code));
	hand_over(t);
	dyn_refresh(t->dyn, true);
	assert_int_equal(where(t, 0x10000, &img), DYN_FOUND);
	assert_int_equal(dyn_write_images(t->dyn, NULL), 0);
	first = img->id;
	fake_put_routine(&fake, 0, 0x20000, "two", code, sizeof(code));
	/* It ended: what is in the ring is still read, and written. */
	struct dyn_registry *reg = t->p.dyn->own;

	struct process child = { .pid = 43 };
	struct dyn_stats stats;

	dyn_fork(t->dyn, &t->p, &child, base_now_ns() + 1000000000, &(uint64_t){ UINT32_MAX });
	dyn_end(t->dyn, &t->p);
	assert_null(t->p.dyn);
	assert_int_equal(reg->fd, -1);
	assert_int_equal(dyn_write_images(t->dyn, NULL), 0);
	assert_true(base_id_equal(&first, &img->id));
	/* Its child still runs there. */
	t->p = child;
	assert_int_equal(where(t, 0x20000, &img), DYN_FOUND);
	assert_true(img->behind);
	assert_int_equal(dyn_write_images(t->dyn, NULL), 0);
	assert_false(base_id_equal(&first, &img->id));
	assert_non_null(t->dyn->registries);
	dyn_end(t->dyn, &t->p);
	/* It waits for others like it. */
	assert_int_equal(dyn_write_images(t->dyn, NULL), 0);
	assert_non_null(t->dyn->registries);
	assert_int_equal(dyn_merge(t->dyn, NULL), 0);
	assert_null(t->dyn->registries);
	assert_int_equal(t->dyn->spool.held, 0);
	assert_int_equal(t->dyn->nr_slots, 0);
	dyn_stats_get(t->dyn, &stats);
	assert_int_equal(stats.routines, 0);
}

/* Who waits for the images need not wait for a routine that found no room. */
static void test_no_room(void **state)
{
	struct image *img = NULL;
	TRACKER(state);

	fake_facility(&fake, "jit");
	fake_put_routine(&fake, 0, 0x10000, "kept", code, 16);
	fake_slot_routine(&fake, fake.h->seq, 0x10000, "kept");
	hand_over(t);
	dyn_refresh(t->dyn, true);
	assert_int_equal(where(t, 0x10000, &img), DYN_FOUND);
	t->dyn->nr_slots = DYN_ALL_ROUTINES_MAX;
	fake_put_routine(&fake, 0, 0x20000, "one too many", code, 16);
	ask_flush(t);
	dyn_refresh(t->dyn, true);
	assert_int_equal(dyn_write_images(t->dyn, NULL), 0);
	assert_int_equal(fake.h->flush_done, 1);
	assert_int_equal(fake.h->flush_status, 0);
	assert_int_equal(where(t, 0x10000, &img), DYN_FOUND);
	assert_int_equal(where(t, 0x20000, &img), DYN_NONE);
	t->dyn->nr_slots = 1;
}

/* As libdbgdyn keeps it: fork copies it. */
static _Alignas(16) struct wire_inherited inherited_code;

static pid_t fork_waiting(int fds[2])
{
	pid_t pid;
	char end;

	assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
	pid = fork();
	if (pid == 0) {
		close(fds[1]);
		_exit(read(fds[0], &end, 1) != 0);
	}
	close(fds[0]);
	return pid;
}

/* Of forks before the daemon's time the children's memory tells. */
static void test_inherited_before(void **state)
{
	struct process child = { 0 }, other = { 0 };
	struct image *img = NULL;
	int fds[2], other_fds[2];
	TRACKER(state);

	inherited_code = (struct wire_inherited){ 76, 1 };
	other.pid = fork_waiting(other_fds);
	inherited_code = (struct wire_inherited){ 77, 1 };
	child.pid = fork_waiting(fds);
	inherited_code.seq = 2;
	fake.h->number = 77;
	fake.h->inherited_addr = (uintptr_t)&inherited_code;
	fake_facility(&fake, "jit");
	fake_put_routine(&fake, 0, 0x10000, "before", code, sizeof(code));
	fake_put_routine(&fake, 0, 0x20000, "after", code, sizeof(code));
	hand_over(t);
	/* Whoever it is of: another registry's is not this one's. */
	assert_false(dyn_inherit(t->dyn, &t->p, &other));
	assert_null(other.dyn);
	/* One that holds up the reader is the last that is asked. */
	t->reader->timeout_ms = 30;
	assert_true(t->reader->helper.pid > 0);
	kill(t->reader->helper.pid, SIGSTOP);
	assert_false(dyn_inherit(t->dyn, &t->p, &child));
	t->reader->timeout_ms = 60000;
	assert_false(dyn_inherit(t->dyn, &t->p, &child));
	t->p.dyn->own->unresponsive = false;
	assert_true(dyn_inherit(t->dyn, &t->p, &child));
	assert_false(dyn_inherit(t->dyn, &t->p, &child));
	dyn_refresh(t->dyn, false);
	assert_int_equal(where(t, 0x20000, &img), DYN_FOUND);
	dyn_end(t->dyn, &t->p);
	t->p = child;
	assert_int_equal(where(t, 0x10000, &img), DYN_FOUND);
	assert_int_equal(where(t, 0x20000, &img), DYN_NONE);
	close(fds[1]);
	close(other_fds[1]);
	assert_int_equal(waitpid(child.pid, NULL, 0), child.pid);
	assert_int_equal(waitpid(other.pid, NULL, 0), other.pid);
}

/* One that has a registry of its own says in it what it inherited; a circle is a lie. */
static void test_inherited_with_own(void **state)
{
	struct process parent;
	struct image *img = NULL;
	struct fake f;
	TRACKER(state);

	fake.h->number = 77;
	fake.h->inherited_addr = (uintptr_t)&inherited_code;
	fake.h->inherited = (struct wire_inherited){ 78, 1 };
	fake_facility(&fake, "jit");
	fake_put_routine(&fake, 0, 0x10000, "parent's", code, sizeof(code));
	hand_over(t);
	dyn_refresh(t->dyn, false);
	f = fake;
	fake_open(&fake, 64 << 10);
	fake.h->number = 78;
	fake.h->inherited_addr = (uintptr_t)&inherited_code;
	fake.h->inherited = (struct wire_inherited){ 77, 1 };
	fake_facility(&fake, "own");
	fake_put_routine(&fake, 0, 0x20000, "own", code, sizeof(code));
	/* Both are handed over by us. */
	parent = t->p;
	t->p.dyn = NULL;
	hand_over(t);
	dyn_refresh(t->dyn, false);
	assert_true(dyn_inherit(t->dyn, &parent, &t->p));
	assert_false(dyn_inherit(t->dyn, &t->p, &parent));
	assert_int_equal(where(t, 0x20000, &img), DYN_FOUND);
	assert_int_equal(where(t, 0x10000, &img), DYN_FOUND);
	dyn_end(t->dyn, &parent);
	fake_close(&f);
}

/* What cannot be written is answered, kept, and written when it can be. */
static void test_failing_write(void **state)
{
	struct base_err err = { 0 };
	struct image *img = NULL;
	TRACKER(state);

	dyn_close(t->dyn);
	tracker_open_dyn(t, "/nonexistent");
	fake_facility(&fake, "jit");
	fake_put_routine(&fake, 0, 0x10000, "one", code, sizeof(code));
	hand_over(t);
	dyn_refresh(t->dyn, true);
	assert_int_equal(where(t, 0x10000, &img), DYN_FOUND);
	ask_flush(t);
	assert_true(dyn_write_images(t->dyn, &err) < 0);
	assert_true(err.text[0] != '\0');
	assert_int_equal(fake.h->flush_done, 1);
	assert_true(fake.h->flush_status < 0);
	assert_true(img->behind);
	free(t->dyn->program);
	assert_true(asprintf(&t->dyn->program, "%s/dcpid-pseudoimg", fake_helper_dir()) > 0);
	t->dyn->helper.program = t->dyn->program;
	assert_int_equal(dyn_write_images(t->dyn, NULL), 0);
	assert_false(img->behind);
}

/* Nothing can be written for lack of a place: the client is told, and does not wait in vain. */
static void test_database_gone(void **state)
{
	char command[160];
	TRACKER(state);

	fake_facility(&fake, "jit");
	fake_put_routine(&fake, 0, 0x10000, "one", code, sizeof(code));
	hand_over(t);
	dyn_refresh(t->dyn, true);
	ask_flush(t);
	snprintf(command, sizeof(command), "rm -rf '%s'", t->db_path);
	assert_int_equal(system(command), 0);
	assert_int_equal(dyn_write_images(t->dyn, NULL), -ENOENT);
	assert_int_equal(fake.h->flush_done, 1);
	assert_int_equal(fake.h->flush_status, -ENOENT);
}

/* Both live; the first one got a sample. */
static struct image *two_routines(struct tracker *t)
{
	struct image *img = NULL;

	fake_facility(&fake, "jit");
	fake_put_routine(&fake, 0, 0x10000, "one", code, sizeof(code));
	fake_put_routine(&fake, 0, 0x20000, "two", code, sizeof(code));
	hand_over(t);
	dyn_refresh(t->dyn, true);
	assert_int_equal(where(t, 0x10000, &img), DYN_FOUND);
	return img;
}

/* Its client is told that its image is on disk only when it is in the database that there is now.
 */
static void test_database_exchanged(void **state)
{
	struct image *img;
	struct base_id id;
	char command[300];
	TRACKER(state);

	img = two_routines(t);
	ask_flush(t);
	assert_int_equal(dyn_write_images(t->dyn, NULL), 0);
	id = img->id;
	snprintf(command, sizeof(command), "rm -rf '%s'; mkdir '%s'", t->db_path, t->db_path);
	assert_int_equal(system(command), 0);
	assert_int_equal(profdb_reopen(t->db, NULL), 1);
	dyn_images_lost(t->dyn);
	assert_true(img->behind);
	ask_flush(t);
	assert_int_equal(dyn_write_images(t->dyn, NULL), 0);
	assert_int_equal(fake.h->flush_done, 2);
	assert_int_equal(fake.h->flush_status, 0);
	assert_int_equal(faccessat(profdb_dyn_fd(t->db), img->stem, F_OK, 0), 0);
	/* All that was in it is, sampled or not. */
	assert_true(base_id_equal(&id, &img->id));
}

/* What the client said makes no image: the client is told, the flush goes on, three times is
 * enough. */
static void test_refused_image(void **state)
{
	struct image *img = NULL;
	TRACKER(state);

	free(t->dyn->program);
	t->dyn->program = strdup("/bin/false");
	t->dyn->helper.program = t->dyn->program;
	fake_facility(&fake, "jit");
	fake_put_routine(&fake, 0, 0x10000, "one", code, sizeof(code));
	hand_over(t);
	dyn_refresh(t->dyn, true);
	assert_int_equal(where(t, 0x10000, &img), DYN_FOUND);
	for (unsigned int i = 1; i <= 4; i++) {
		assert_int_equal(img->refused, i > 3);
		ask_flush(t);
		assert_int_equal(dyn_write_images(t->dyn, NULL), 0);
		assert_int_equal(fake.h->flush_done, i);
		assert_int_equal(fake.h->flush_status, -DCPI_EHELPER);
	}
	assert_int_equal(t->dyn->stats.images_written, 0);
	/* What comes later is not waited for either: who is over is forgotten. */
	fake_put_routine(&fake, 0, 0x20000, "two", code, sizeof(code));
	dyn_end(t->dyn, &t->p);
	assert_int_equal(dyn_write_images(t->dyn, NULL), 0);
	assert_null(t->dyn->registries);
}

/* The helper refuses one image: the flush succeeds, and the image beside it is written. */
static void test_unknown_machine(void **state)
{
	struct image *bad = NULL, *good = NULL;
	TRACKER(state);

	fake_facility(&fake, "bad");
	fake_facility(&fake, "good");
	fake_put_routine(&fake, 0, 0x10000, "one", code, sizeof(code));
	fake_put_routine(&fake, 1, 0x20000, "two", code, sizeof(code));
	hand_over(t);
	dyn_refresh(t->dyn, true);
	assert_int_equal(where(t, 0x10000, &bad), DYN_FOUND);
	assert_int_equal(where(t, 0x20000, &good), DYN_FOUND);
	t->p.dyn->own->facilities[0]->machine = EM_386;
	for (unsigned int i = 1; i <= 3; i++) {
		ask_flush(t);
		assert_int_equal(dyn_write_images(t->dyn, NULL), 0);
		assert_int_equal(fake.h->flush_status, -DCPI_EUNSUPPORTED);
		assert_int_equal(bad->refused, i == 3);
	}
	assert_true(good->id.len && !good->behind && !good->refused);
}

static void test_owned_ranges(void **state)
{
	static uint8_t text[2 * WIRE_PAGE] __attribute__((aligned(4096)));
	struct image *img = NULL;
	TRACKER(state);

	memcpy(text, code, sizeof(code));
	fake_facility(&fake, "owner");
	fake_range(&fake, 0, WIRE_RANGE_CODE, (uintptr_t)text, sizeof(text));
	hand_over(t);
	dyn_refresh(t->dyn, false);
	assert_int_equal(where(t, (uintptr_t)text + 100, &img), DYN_FOUND);
	if (!t->p.dyn->own->ranges[0].contents.len)
		skip(); /* yama: only a parent may read */
	assert_int_equal(t->p.dyn->own->ranges[0].contents.len, 6);
	/* A flush reads them anew. */
	text[WIRE_PAGE] = 0xc3;
	ask_flush(t);
	assert_int_equal(dyn_write_images(t->dyn, NULL), 0);
	assert_int_equal(t->p.dyn->own->ranges[0].contents.len, WIRE_PAGE + 1);
	assert_int_equal(fake.h->flush_done, 1);
}

static void test_header_lies_later(void **state)
{
	struct dyn_stats stats;
	TRACKER(state);

	fake_facility(&fake, "jit");
	hand_over(t);
	dyn_refresh(t->dyn, false);
	fake.h->ring_len = WIRE_PAGE;
	fake.h->head = 8;
	dyn_refresh(t->dyn, false);
	assert_true(t->p.dyn->own->refused);
	dyn_stats_get(t->dyn, &stats);
	assert_int_equal(stats.records_bad, 1);
	dyn_refresh(t->dyn, true);
	dyn_stats_get(t->dyn, &stats);
	assert_int_equal(stats.records_bad, 1);
}

static void test_no_registry(void **state)
{
	TRACKER(state);

	fake.h->magic = 0;
	assert_int_equal(hand_over(t), 0);
	assert_null(t->p.dyn);
	assert_null(t->dyn->registries);
	assert_int_equal(fake.h->attached, 0);
}

/* Another daemon reads it: its generations go on when we end, and end with the last of us. */
static void test_second_daemon(void **state)
{
	char path[32];
	int fd;
	TRACKER(state);

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fake.fd);
	fd = open(path, O_RDWR | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(flock(fd, LOCK_SH | LOCK_NB), 0);
	assert_int_equal(hand_over(t), 1);
	dyn_end(t->dyn, &t->p);
	dyn_close(t->dyn);
	assert_int_not_equal(fake.h->attached, 0);
	assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
	close(fd);
	tracker_open_dyn(t, fake_helper_dir());
	hand_over(t);
	dyn_end(t->dyn, &t->p);
	dyn_close(t->dyn);
	assert_int_equal(fake.h->attached, 0);
	tracker_open_dyn(t, fake_helper_dir());
}

/* Who lists the files of dyn/ hands their names to other programs. */
static void test_name_is_no_option(void **state)
{
	struct image *img = NULL;
	TRACKER(state);

	fake_facility(&fake, "-rf");
	fake_put_routine(&fake, 0, 0x10000, "routine", code, sizeof(code));
	hand_over(t);
	dyn_refresh(t->dyn, false);
	assert_int_equal(where(t, 0x10004, &img), DYN_FOUND);
	assert_int_equal(strncmp(img->stem, "_rf", 3), 0);
}

/* Counts of clients that lie add up to no other number. */
static void test_dropped(void **state)
{
	struct dyn_stats stats;
	TRACKER(state);

	fake.h->nr_dropped = UINT64_MAX;
	assert_int_equal(hand_over(t), 1);
	dyn_stats_get(t->dyn, &stats);
	assert_int_equal(stats.records_dropped, 1ull << 32);
	dyn_end(t->dyn, &t->p);
	dyn_refresh(t->dyn, true);
	dyn_stats_get(t->dyn, &stats);
	assert_int_equal(stats.records_dropped, 1ull << 32);
}

/* Changes that no record told stay counted when their process is gone. */
static void test_missed(void **state)
{
	struct dyn_stats stats;
	TRACKER(state);

	fake_facility(&fake, "jit");
	hand_over(t);
	dyn_refresh(t->dyn, false);
	fake_seq();
	fake_seq();
	fake_put_routine(&fake, 0, 0x10000, "routine", code, sizeof(code));
	dyn_refresh(t->dyn, false);
	dyn_stats_get(t->dyn, &stats);
	assert_int_equal(stats.changes_missed, 2);
	dyn_end(t->dyn, &t->p);
	dyn_refresh(t->dyn, true);
	assert_int_equal(dyn_write_images(t->dyn, NULL), 0);
	assert_int_equal(dyn_merge(t->dyn, NULL), 0);
	assert_null(t->dyn->registries);
	dyn_stats_get(t->dyn, &stats);
	assert_int_equal(stats.changes_missed, 2);
}

/* A life of a process has one registry; another is refused, and that is counted. */
static void test_second_registry(void **state)
{
	struct dyn_stats stats;
	struct fake first;
	TRACKER(state);

	assert_int_equal(hand_over(t), 1);
	first = fake;
	fake_open(&fake, 64 << 10);
	assert_int_equal(hand_over(t), 0);
	assert_int_equal(fake.h->attached, 0);
	dyn_stats_get(t->dyn, &stats);
	assert_int_equal(stats.clients, 1);
	assert_int_equal(stats.registries_refused, 1);
	assert_int_equal(stats.records_bad, 0);
	fake_close(&fake);
	fake = first;
}

/* A client that has a routine, and a reader that stands still. */
static void begin_slow(struct tracker *t)
{
	fake_facility(&fake, "jit");
	hand_over(t);
	dyn_refresh(t->dyn, false);
	t->reader->timeout_ms = 30;
	kill(t->reader->helper.pid, SIGSTOP);
	fake_put_routine(&fake, 0, 0x10000, "one", code, sizeof(code));
}

/* One that holds up the reader is asked less and less, and told that it failed; so is the log, once
 * a minute. */
static void test_slow_client(void **state)
{
	struct budgets *b = budgets_new();
	TRACKER(state);
	uint64_t now;

	begin_slow(t);
	now = base_now_ns();
	t->dyn->config.budgets = b;
	dyn_refresh(t->dyn, false);
	assert_true(t->p.dyn->own->pause_until_ns > now + 500000000);
	/* However late the next turn is. */
	t->p.dyn->own->pause_until_ns = UINT64_MAX;
	assert_false(budget_may_tell(b, t->p.uid));
	t->dyn->config.budgets = NULL;
	budgets_free(b);
	assert_int_equal(fake.h->tail, 0);
	ask_flush(t);
	dyn_write_images(t->dyn, NULL);
	assert_int_equal(fake.h->flush_done, 1);
	assert_true(fake.h->flush_status < 0);
	t->reader->timeout_ms = 60000;
	t->p.dyn->own->pause_until_ns = 0;
	dyn_refresh(t->dyn, false);
	assert_int_equal(fake.h->tail, fake.h->head);
	assert_int_equal(t->p.dyn->own->pause_ns, 0);
}

/* A client whose user's budget is spent is answered when it was read; the loop does not spin till
 * then. */
static void test_spent_budget(void **state)
{
	struct budgets *b = budgets_new();
	TRACKER(state);
	unsigned int ms;

	assert_non_null(b);
	fake_facility(&fake, "jit");
	hand_over(t);
	dyn_refresh(t->dyn, false);
	fake_put_routine(&fake, 0, 0x10000, "one", code, sizeof(code));
	reader_share(t->reader, b);
	while ((ms = budget_wait_ms(b, t->p.uid)))
		budget_waited(b, t->p.uid, ms * 1000000ull, 0, 0);
	/* For longer than this test takes. */
	budget_waited(b, t->p.uid, 10000000000ull, 0, 0);
	ask_flush(t);
	dyn_refresh(t->dyn, false);
	dyn_write_images(t->dyn, NULL);
	assert_int_equal(fake.h->tail, 0);
	assert_int_equal(fake.h->flush_done, 0);
	assert_false(dyn_is_catching_up(t->dyn));
	reader_share(t->reader, NULL);
	dyn_refresh(t->dyn, false);
	dyn_write_images(t->dyn, NULL);
	assert_int_equal(fake.h->tail, fake.h->head);
	assert_int_equal(fake.h->flush_done, 1);
	assert_int_equal(fake.h->flush_status, 0);
	budgets_free(b);
}

/*
 * A turn has no time for a registry: where the program had another routine since, the one that was
 * there is not the answer. By its generation a sample would wait as well.
 */
static void test_skipped(void **state)
{
	struct budgets *b = budgets_new();
	struct image *img;
	TRACKER(state);

	assert_non_null(b);
	fake_facility(&fake, "jit");
	fake_put_routine(&fake, 0, 0x10000, "one", code, sizeof(code));
	hand_over(t);
	dyn_refresh(t->dyn, false);
	assert_int_equal(where(t, 0x10000, &img), DYN_FOUND);
	fake_put_routine(&fake, 0, 0x10000, "two", code, sizeof(code));
	t->dyn->config.budgets = b;
	dyn_set_hasty(t->dyn, true);
	budget_turn(b);
	budget_waited(b, t->p.uid, 1000000000, 0, 0);
	dyn_refresh(t->dyn, false);
	assert_int_equal(where(t, 0x10000, &img), DYN_LATER);
	budget_turn(b);
	dyn_refresh(t->dyn, false);
	assert_int_not_equal(where(t, 0x10000, &img), DYN_LATER);
	dyn_set_hasty(t->dyn, false);
	t->dyn->config.budgets = NULL;
	budgets_free(b);
}

/* Samples of a process that ended wait no longer: it is read whether a turn has time or not. */
static void test_skipped_and_ended(void **state)
{
	struct budgets *b = budgets_new();
	struct image *img;
	TRACKER(state);

	assert_non_null(b);
	fake_facility(&fake, "jit");
	hand_over(t);
	dyn_refresh(t->dyn, false);
	fake_put_routine(&fake, 0, 0x10000, "one", code, sizeof(code));
	t->dyn->config.budgets = b;
	dyn_set_hasty(t->dyn, true);
	budget_turn(b);
	budget_waited(b, t->p.uid, 1000000000, 0, 0);
	dyn_refresh(t->dyn, false);
	assert_int_equal(where(t, 0x10000, &img), DYN_LATER);
	dyn_read_ended(t->dyn, &t->p);
	assert_int_equal(where(t, 0x10000, &img), DYN_FOUND);
	dyn_set_hasty(t->dyn, false);
	t->dyn->config.budgets = NULL;
	budgets_free(b);
}

/* Between flushes an image is written when its client waits for it and all that it told is read. */
static void test_waited(void **state)
{
	struct budgets *b = budgets_new();
	struct image *img = NULL;
	TRACKER(state);

	assert_non_null(b);
	fake_facility(&fake, "jit");
	fake_put_routine(&fake, 0, 0x10000, "one", code, sizeof(code));
	hand_over(t);
	dyn_refresh(t->dyn, false);
	assert_int_equal(where(t, 0x10000, &img), DYN_FOUND);
	assert_false(dyn_read_waited(t->dyn));
	assert_int_equal(dyn_write_waited(t->dyn, NULL), 0);
	assert_true(img->behind);
	t->dyn->config.budgets = b;
	dyn_set_hasty(t->dyn, true);
	budget_turn(b);
	budget_waited(b, t->p.uid, 1000000000, 0, 0);
	ask_flush(t);
	assert_false(dyn_read_waited(t->dyn));
	assert_int_equal(dyn_write_waited(t->dyn, NULL), 0);
	assert_int_equal(fake.h->flush_done, 0);
	budget_turn(b);
	assert_true(dyn_read_waited(t->dyn));
	assert_int_equal(fake.h->flush_done, 0);
	/* Where the CPU was taken away meanwhile the user's turn may be over; and its file is
	 * written beside us, which is waited for no longer than 50 ms. */
	for (int i = 0; i < 20000 && !fake.h->flush_done; i++) {
		assert_int_equal(dyn_write_waited(t->dyn, NULL), 0);
		budget_turn(b);
		usleep(1000);
	}
	assert_int_equal(fake.h->flush_done, 1);
	assert_false(img->behind);
	assert_false(dyn_read_waited(t->dyn));
	dyn_set_hasty(t->dyn, false);
	t->dyn->config.budgets = NULL;
	budgets_free(b);
}

/* Others stood there before. */
static void put_reusing(uint64_t addr, const char *name)
{
	struct wire_routine *r = fake_routine(&(struct fake_routine){
		.addr = addr, .name = name, .code = code, .code_len = sizeof(code) });

	r->head.flags |= WIRE_ROUTINE_REUSES;
	fake_put(&fake, r);
	free(r);
}

static enum dyn_where where_at(struct tracker *t, uint64_t time_ns, uint64_t *off)
{
	const struct dyn_query q = { .addr = 0x10000, .first_ns = time_ns, .time_ns = time_ns };
	struct image *img;

	return dyn_lookup(t->dyn, &t->p, &q, &img, off);
}

/*
 * Three routines of one address, all told in one reading: by the times that the library tells, a
 * sample is of the one that stood there, also where it brings no generation.
 */
static void test_times(void **state)
{
	uint64_t off[3], now = 0, t0;
	TRACKER(state);

	fake_facility(&fake, "jit");
	fake_put_routine(&fake, 0, 0x20000, "before", code, sizeof(code));
	hand_over(t);
	dyn_refresh(t->dyn, false);
	t0 = base_now_ns();
	while (base_now_ns() < t0 + 400)
		;
	for (unsigned int i = 0; i < 3; i++) {
		fake_put_when(&fake, t0 + 100 * i + 50);
		fake_put_routine(&fake, 0, 0x10000, (const char *const[]){ "a", "b", "c" }[i], code,
				 sizeof(code));
	}
	dyn_refresh(t->dyn, false);
	assert_int_equal(where_at(t, t0 + 20, &now), DYN_NONE);
	for (unsigned int i = 0; i < 3; i++)
		assert_int_equal(where_at(t, t0 + 100 * i + 75, &off[i]), DYN_FOUND);
	assert_true(off[0] != off[1] && off[1] != off[2] && off[0] != off[2]);
	assert_int_equal(where_at(t, t0 + 350, &now), DYN_FOUND);
	assert_int_equal(now, off[2]);
}

/*
 * A change before those that are told was missed: whose code it registered stood there, as far as
 * anybody knows, until the next one came, whatever change was told meanwhile.
 */
static void test_times_of_missed(void **state)
{
	uint64_t off, t0;
	TRACKER(state);

	fake_facility(&fake, "jit");
	hand_over(t);
	dyn_refresh(t->dyn, false);
	t0 = base_now_ns();
	while (base_now_ns() < t0 + 400)
		;
	fake_seq();
	fake_put_when(&fake, t0 + 100);
	fake_put_routine(&fake, 0, 0x20000, "elsewhere", code, sizeof(code));
	fake_put_when(&fake, t0 + 200);
	put_reusing(0x10000, "next");
	dyn_refresh(t->dyn, false);
	assert_int_equal(where_at(t, t0 + 150, &off), DYN_REUSED);
	assert_int_equal(where_at(t, t0 + 250, &off), DYN_FOUND);
}

/* It ends before it is asked again: what it registered since is in the memfd all the same. */
static void test_slow_client_ends(void **state)
{
	struct image *img;
	TRACKER(state);

	begin_slow(t);
	dyn_refresh(t->dyn, false);
	assert_true(t->p.dyn->own->pause_until_ns > base_now_ns());
	assert_int_equal(fake.h->tail, 0);
	t->reader->timeout_ms = 60000;
	dyn_leaving(&t->p);
	dyn_refresh(t->dyn, false);
	assert_int_equal(fake.h->tail, fake.h->head);
	assert_int_equal(where(t, 0x10004, &img), DYN_FOUND);
}

/* Many ranges, each of which takes its time: a reading ends, the next goes on behind it. */
static void test_slow_ranges(void **state)
{
	static uint8_t text[3][WIRE_PAGE] __attribute__((aligned(4096)));
	struct dyn_registry *reg;
	TRACKER(state);

	fake_facility(&fake, "owner");
	for (size_t i = 0; i < 3; i++)
		fake_range(&fake, 0, WIRE_RANGE_CODE, (uintptr_t)text[i], sizeof(text[i]));
	hand_over(t);
	reg = t->p.dyn->own;
	reg->budget_ns = 0;
	for (size_t i = 0; i < 3; i++) {
		reg->pause_until_ns = 0;
		dyn_refresh(t->dyn, false);
		assert_int_equal(reg->next_range, i + 1);
		assert_true(reg->ranges[i].read);
		assert_false(i < 2 && reg->ranges[i + 1].read);
		assert_int_equal(reg->pause_ns > 0, i < 2);
	}
	/* All of them anew, from the first on. */
	dyn_refresh(t->dyn, true);
	assert_int_equal(reg->next_range, 1);
	assert_true(reg->pause_ns > 0);
	reg->pause_until_ns = 0;
	reg->budget_ns = 60000000000;
	dyn_refresh(t->dyn, true);
	assert_int_equal(reg->pause_ns, 0);
}

/* Invariant 6: a daemon after this one finds everything that is still in the ring. */
static void test_restart(void **state)
{
	struct image *old = NULL, *new = NULL;
	char stem[256];
	TRACKER(state);

	fake_facility(&fake, "jit");
	fake_put_routine(&fake, 0, 0x10000, "one", code, sizeof(code));
	hand_over(t);
	dyn_refresh(t->dyn, true);
	assert_int_equal(where(t, 0x10000, &old), DYN_FOUND);
	snprintf(stem, sizeof(stem), "%s", old->stem);
	assert_int_equal(dyn_write_images(t->dyn, NULL), 0);
	dyn_end(t->dyn, &t->p);
	dyn_close(t->dyn);
	assert_int_equal(fake.h->attached, 0);
	/* The one after us knows nothing but what is on disk. */
	images_free(t->images);
	t->images = images_new();
	tracker_open_dyn(t, fake_helper_dir());
	hand_over(t);
	dyn_refresh(t->dyn, true);
	assert_int_equal(where(t, 0x10000, &new), DYN_FOUND);
	/* The image that profiles of before refer to stays. */
	assert_string_not_equal(stem, new->stem);
	assert_int_equal(dyn_write_images(t->dyn, NULL), 0);
}

/* Whoever removes an image that samples refer to, or may, does no harm. */
static void test_removed_image(void **state)
{
	const struct timespec old[2] = { { .tv_sec = 1 }, { .tv_sec = 1 } };
	struct image *img = NULL;
	struct base_id id;
	char path[512];
	struct stat st;
	TRACKER(state);

	fake_facility(&fake, "jit");
	fake_put_routine(&fake, 0, 0x10000, "one", code, sizeof(code));
	hand_over(t);
	dyn_refresh(t->dyn, true);
	assert_int_equal(where(t, 0x10000, &img), DYN_FOUND);
	assert_int_equal(dyn_write_images(t->dyn, NULL), 0);
	id = img->id;
	snprintf(path, sizeof(path), "%s/dyn/%s", t->db_path, img->stem);
	assert_int_equal(utimensat(AT_FDCWD, path, old, 0), 0);
	/* Without samples it may go. */
	assert_int_equal(dyn_write_images(t->dyn, NULL), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mtime, 1);
	img->dirty = true;
	assert_int_equal(dyn_write_images(t->dyn, NULL), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_not_equal(st.st_mtime, 1);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(dyn_write_images(t->dyn, NULL), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_true(base_id_equal(&id, &img->id));
	assert_false(img->behind);
}

/* A client is told that the database is full; what got samples is written. */
static void test_full_database(void **state)
{
	struct image *img;
	TRACKER(state);

	img = two_routines(t);
	dyn_set_full(t->dyn, true, 0);
	ask_flush(t);
	assert_int_equal(dyn_write_images(t->dyn, NULL), 0);
	assert_int_equal(fake.h->flush_done, 1);
	assert_int_equal(fake.h->flush_status, -EDQUOT);
	assert_int_equal(img->id.len, 20);
	assert_false(img->behind);
	assert_int_equal(where(t, 0x20000, &img), DYN_NO_CAPACITY);
	ask_flush(t);
	assert_int_equal(dyn_write_images(t->dyn, NULL), 0);
	assert_int_equal(fake.h->flush_status, -EDQUOT);
	dyn_set_full(t->dyn, false, 0);
	ask_flush(t);
	assert_int_equal(dyn_write_images(t->dyn, NULL), 0);
	assert_int_equal(fake.h->flush_status, 0);
	assert_int_equal(where(t, 0x20000, &img), DYN_FOUND);
}

/* Another user's images fill it: that is no reason to refuse this one's. */
static void test_database_full_for_others(void **state)
{
	struct budgets *b = budgets_new();
	struct image *img;
	TRACKER(state);

	assert_non_null(b);
	t->dyn->config.budgets = b;
	img = two_routines(t);
	budget_take(b, t->dyn->registries->uid + 1, BUDGET_IMAGES, 1000, UINT64_MAX);
	budget_take(b, t->dyn->registries->uid, BUDGET_IMAGES, 99, UINT64_MAX);
	dyn_set_full(t->dyn, true, 100);
	ask_flush(t);
	assert_int_equal(dyn_write_images(t->dyn, NULL), 0);
	assert_int_equal(fake.h->flush_status, 0);
	assert_int_equal(where(t, 0x20000, &img), DYN_FOUND);
	dyn_set_full(t->dyn, true, 99);
	ask_flush(t);
	assert_int_equal(dyn_write_images(t->dyn, NULL), 0);
	assert_int_equal(fake.h->flush_status, 0);
	t->dyn->config.budgets = NULL;
	budgets_free(b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_follow, setup, teardown),
		cmocka_unit_test_setup_teardown(test_removed_image, setup, teardown),
		cmocka_unit_test_setup_teardown(test_full_database, setup, teardown),
		cmocka_unit_test_setup_teardown(test_database_full_for_others, setup, teardown),
		cmocka_unit_test_setup_teardown(test_ended_client, setup, teardown),
		cmocka_unit_test_setup_teardown(test_when_it_was_made, setup, teardown),
		cmocka_unit_test_setup_teardown(test_not_answered, setup, teardown),
		cmocka_unit_test_setup_teardown(test_marker_not_answered, setup, teardown),
		cmocka_unit_test_setup_teardown(test_words_not_answered, setup, teardown),
		cmocka_unit_test_setup_teardown(test_watched, setup, teardown),
		cmocka_unit_test_setup_teardown(test_image_grows, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_room, setup, teardown),
		cmocka_unit_test_setup_teardown(test_inherited_before, setup, teardown),
		cmocka_unit_test_setup_teardown(test_inherited_with_own, setup, teardown),
		cmocka_unit_test_setup_teardown(test_failing_write, setup, teardown),
		cmocka_unit_test_setup_teardown(test_database_gone, setup, teardown),
		cmocka_unit_test_setup_teardown(test_database_exchanged, setup, teardown),
		cmocka_unit_test_setup_teardown(test_refused_image, setup, teardown),
		cmocka_unit_test_setup_teardown(test_unknown_machine, setup, teardown),
		cmocka_unit_test_setup_teardown(test_owned_ranges, setup, teardown),
		cmocka_unit_test_setup_teardown(test_header_lies_later, setup, teardown),
		cmocka_unit_test_setup_teardown(test_no_registry, setup, teardown),
		cmocka_unit_test_setup_teardown(test_second_daemon, setup, teardown),
		cmocka_unit_test_setup_teardown(test_dropped, setup, teardown),
		cmocka_unit_test_setup_teardown(test_missed, setup, teardown),
		cmocka_unit_test_setup_teardown(test_name_is_no_option, setup, teardown),
		cmocka_unit_test_setup_teardown(test_second_registry, setup, teardown),
		cmocka_unit_test_setup_teardown(test_slow_client, setup, teardown),
		cmocka_unit_test_setup_teardown(test_spent_budget, setup, teardown),
		cmocka_unit_test_setup_teardown(test_skipped, setup, teardown),
		cmocka_unit_test_setup_teardown(test_skipped_and_ended, setup, teardown),
		cmocka_unit_test_setup_teardown(test_waited, setup, teardown),
		cmocka_unit_test_setup_teardown(test_times, setup, teardown),
		cmocka_unit_test_setup_teardown(test_times_of_missed, setup, teardown),
		cmocka_unit_test_setup_teardown(test_slow_client_ends, setup, teardown),
		cmocka_unit_test_setup_teardown(test_slow_ranges, setup, teardown),
		cmocka_unit_test_setup_teardown(test_restart, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
