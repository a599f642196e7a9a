/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "stand_ins.h"

struct stand_ins stand_ins;

/* The core never looks into these. */
static char a_dyn, a_kernel, a_reader;

void dyn_marker(struct dyn *d, struct process *p, uint64_t addr, uint64_t len)
{
	(void)d;
	(void)len;
	stand_ins.nr_marker++;
	stand_ins.marker_addr = addr;
	p->dyn = (struct dyn_client *)&a_dyn;
}

void dyn_fork(struct dyn *d, struct process *parent, struct process *child, uint64_t time_ns,
	      const uint64_t *cursor)
{
	(void)d;
	stand_ins.fork_cursor = cursor ? *cursor : 0;
	stand_ins.nr_fork++;
	stand_ins.fork_ns = time_ns;
	child->dyn = parent->dyn;
}

bool dyn_words_stand(const struct process *p)
{
	(void)p;
	return true;
}

bool dyn_inherit(struct dyn *d, struct process *ancestor, struct process *child)
{
	(void)d;
	(void)ancestor;
	(void)child;
	return false;
}

int dyn_hand_on(struct process *from, struct process *to)
{
	stand_ins.nr_hand_on += from->dyn != NULL;
	to->dyn = from->dyn;
	from->dyn = NULL;
	return 0;
}

void dyn_read_ended(struct dyn *d, struct process *p)
{
	(void)d;
	stand_ins.nr_lookups_read = stand_ins.nr_lookups;
	stand_ins.read_ended = p->pid;
}

void dyn_end(struct dyn *d, struct process *p)
{
	(void)d;
	stand_ins.nr_end++;
	p->dyn = NULL;
}

int dyn_records(struct dyn *d, struct process *p, uint64_t time_ns, const void *data, size_t len)
{
	(void)d;
	(void)time_ns;
	(void)data;
	(void)len;
	stand_ins.nr_records++;
	p->dyn = (struct dyn_client *)&a_dyn;
	return 0;
}

enum dyn_where dyn_lookup(struct dyn *d, struct process *p, const struct dyn_query *q,
			  struct image **image, uint64_t *off)
{
	(void)d;
	stand_ins.looked_up_by = p->dyn;
	stand_ins.query = *q;
	stand_ins.nr_lookups++;
	*image = stand_ins.dyn_image;
	*off = stand_ins.dyn_off;
	if (stand_ins.changes_ns && q->time_ns >= stand_ins.changes_ns) {
		*off += 16;
		if (q->first_ns < stand_ins.changes_ns)
			return DYN_REUSED;
	}
	return stand_ins.where == DYN_LATER && q->last ? DYN_GENERATION : stand_ins.where;
}

enum dyn_where dyn_function_find(const struct process *p, uint64_t key, uint32_t instr,
				 struct image **image, uint64_t *off)
{
	(void)p;
	if (key != stand_ins.function)
		return DYN_NONE;
	*image = stand_ins.dyn_image;
	*off = stand_ins.dyn_off + 2u * instr;
	return DYN_FOUND;
}

int dyn_function_add(struct dyn *d, struct process *p, const struct driver_function *f)
{
	(void)d;
	(void)p;
	stand_ins.function = f->key;
	return 0;
}

bool dyn_words(const struct process *p, struct driver_client *client)
{
	(void)p;
	client->words = stand_ins.words;
	client->nr_words = stand_ins.words ? 16 : 0;
	client->cursor = stand_ins.words ? 0x5000 : 0;
	client->words_ino = stand_ins.words_ino;
	return stand_ins.words;
}

size_t dyn_poll_fds(const struct dyn *d, int *fds, size_t max)
{
	(void)d;
	(void)max;
	fds[0] = stand_ins.bell;
	return stand_ins.bell > 0;
}

int dyn_take(struct dyn *d, struct process *(*find)(void *ctx, int32_t pid, uint64_t time_ns),
	     void *ctx)
{
	(void)d;
	(void)find;
	(void)ctx;
	stand_ins.nr_take++;
	return 0;
}

bool dyn_refresh(struct dyn *d, bool ranges)
{
	(void)d;
	stand_ins.nr_refresh++;
	stand_ins.nr_ranges += ranges;
	return false;
}

bool dyn_read_early(struct dyn *d, const struct process *p, uint64_t after_ns)
{
	(void)d;
	(void)after_ns;
	stand_ins.nr_read_early++;
	return p->pid == stand_ins.early_pid;
}

void dyn_settled(struct dyn *d, uint64_t time_ns)
{
	(void)d;
	stand_ins.settled_ns = time_ns;
}

uint64_t dyn_news(const struct process *p)
{
	(void)p;
	return stand_ins.news;
}

void dyn_living(const struct process *p, uint64_t start, uint64_t end,
		void (*fn)(void *ctx, uint64_t addr, uint64_t len, uint64_t seq), void *ctx)
{
	(void)p;
	for (size_t i = 0; i < stand_ins.nr_routines; i++)
		if (stand_ins.routines[i].addr < end &&
		    stand_ins.routines[i].addr + stand_ins.routines[i].len > start)
			fn(ctx, stand_ins.routines[i].addr, stand_ins.routines[i].len,
			   stand_ins.routines[i].seq);
}

size_t dyn_frames(const struct process *p, uint64_t addr, uint64_t seq, struct wire_frame *frames,
		  size_t max)
{
	size_t nr = 0;

	(void)p;
	for (size_t i = 0; i < stand_ins.nr_routines; i++)
		if (stand_ins.routines[i].addr == addr && stand_ins.routines[i].seq == seq)
			nr = stand_ins.routines[i].nr_frames;
	nr = nr < max ? nr : max;
	for (size_t i = 0; i < nr; i++)
		frames[i] =
			(struct wire_frame){ .code_off = (uint32_t)i, .cfa_off = (int32_t)seq * 8 };
	return nr;
}

void dyn_wait(const struct process *p, uint64_t first_ns)
{
	(void)p;
	stand_ins.waited_ns = first_ns;
}

void dyn_sampled(struct dyn *d, const struct process *p, const struct map *m)
{
	(void)d;
	(void)p;
	stand_ins.nr_sampled++;
	m->image->watched = true;
}

bool dyn_has_registry(const struct process *p)
{
	return p->dyn && stand_ins.registered;
}

bool dyn_reuses(const struct process *p)
{
	(void)p;
	return !stand_ins.code_virgin;
}

bool dyn_lived(const struct process *p, uint64_t addr, uint64_t time_ns)
{
	(void)p;
	(void)addr;
	(void)time_ns;
	return stand_ins.code_virgin;
}

void dyn_ranges(const struct process *p, void (*fn)(void *ctx, uint64_t start, uint64_t end),
		void *ctx)
{
	(void)p;
	if (stand_ins.code_end)
		fn(ctx, stand_ins.code_start, stand_ins.code_end);
}

void dyn_stats_get(const struct dyn *d, struct dyn_stats *out)
{
	(void)d;
	*out = (struct dyn_stats){ .clients = stand_ins.nr_clients,
				   .images_written = stand_ins.images_written };
}

bool dyn_read_waited(struct dyn *d)
{
	(void)d;
	return stand_ins.wants_flush;
}

bool dyn_is_catching_up(const struct dyn *d)
{
	(void)d;
	return stand_ins.catching_up;
}

void dyn_begin_flush(struct dyn *d)
{
	(void)d;
}

bool dyn_is_behind(const struct dyn *d)
{
	(void)d;
	return stand_ins.behind && stand_ins.behind--;
}

int dyn_merge(struct dyn *d, struct base_err *err)
{
	(void)d;
	(void)err;
	stand_ins.nr_merges++;
	return 0;
}

int dyn_write_ended(struct dyn *d, struct base_err *err)
{
	(void)d;
	(void)err;
	stand_ins.nr_ended++;
	return 0;
}

void dyn_tasks_grace(struct dyn *d)
{
	(void)d;
}

void dyn_set_hasty(struct dyn *d, bool hasty)
{
	(void)d;
	stand_ins.hasty = hasty;
}

bool dyn_wants_merge(const struct dyn *d)
{
	(void)d;
	return stand_ins.wants_merge;
}

void dyn_merge_forget(struct dyn *d)
{
	(void)d;
}

void dyn_images_lost(struct dyn *d)
{
	(void)d;
	stand_ins.nr_lost++;
}

void kernel_images_lost(struct kernel *k)
{
	(void)k;
	stand_ins.nr_lost++;
}

int dyn_write_images(struct dyn *d, struct base_err *err)
{
	(void)d;
	stand_ins.nr_writes++;
	stand_ins.was_hasty = stand_ins.hasty;
	if (stand_ins.on_write)
		stand_ins.on_write();
	if (stand_ins.write_result < 0)
		base_fail_errno(err, stand_ins.write_result, "cannot write 'x.dyn'");
	return stand_ins.write_result;
}

int dyn_write_waited(struct dyn *d, struct base_err *err)
{
	return dyn_write_images(d, err);
}

int dyn_write_watched(struct dyn *d, const struct watch *watch, struct base_err *err)
{
	(void)watch;
	return dyn_write_images(d, err);
}

int kernel_write_images(struct kernel *k, bool hasty, struct base_err *err)
{
	(void)k;
	(void)err;
	stand_ins.kernel_hasty = hasty;
	return 0;
}

bool kernel_is_writing(const struct kernel *k)
{
	(void)k;
	return stand_ins.kernel_writes > 0 && stand_ins.kernel_writes--;
}

void kernel_tell(const struct kernel *k, void (*tell)(void *ctx, const struct driver_load *load),
		 void *ctx)
{
	(void)k;
	(void)tell;
	(void)ctx;
}

void kernel_load(struct kernel *k, const struct driver_load *load)
{
	(void)k;
	(void)load;
}

struct image *kernel_lookup(struct kernel *k, const struct driver_count *c, uint64_t *off,
			    bool *idle)
{
	(void)k;
	if (c->addr < stand_ins.kernel_start || c->addr >= stand_ins.kernel_end)
		return NULL;
	*off = c->addr - stand_ins.kernel_start;
	*idle = c->pid == 0 && c->addr == stand_ins.idle_addr;
	return stand_ins.kernel_image;
}

void kernel_look(struct kernel *k)
{
	(void)k;
	stand_ins.nr_kernel_looks++;
}

struct image *kernel_vdso(struct kernel *k)
{
	(void)k;
	return stand_ins.vdso;
}

int dyn_dump(struct dyn *d, struct process *p, const struct reader_dump *dump)
{
	(void)d;
	(void)p;
	stand_ins.nr_dumps++;
	close(dump->fd);
	return 0;
}

void dyn_watch(struct dyn *d, struct process *p)
{
	(void)d;
	p->watched = true;
}

bool dyn_claims(const struct process *p, uint64_t addr)
{
	(void)p;
	(void)addr;
	return stand_ins.claimed;
}

void dyn_mapped(const struct process *p)
{
	(void)p;
}

void dyn_leaving(struct process *p)
{
	(void)p;
}

/* The table that reader_rows_take will find. */
static struct {
	bool asked;
	struct unwind_table *table;
	int result;
} making;

bool reader_may_tell(const struct reader *r, uint32_t uid)
{
	(void)r;
	(void)uid;
	return true;
}

int reader_image_id(struct reader *r, int32_t pid, uint32_t uid, const struct driver_load *l,
		    struct base_id *id, struct reader_dump *dump)
{
	(void)r;
	(void)uid;
	(void)pid;
	stand_ins.nr_asked++;
	dump->text = stand_ins.reader_text;
	dump->extent = stand_ins.reader_extent;
	dump->roots = stand_ins.reader_roots;
	if (l->id.len) {
		*id = l->id;
		return stand_ins.text_result;
	}
	*id = stand_ins.reader_id;
	dump->no_elf = stand_ins.no_elf;
	if (stand_ins.is_dump) {
		id->len = 0;
		dump->fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
	}
	return stand_ins.reader_result;
}

int reader_file_id(struct reader *r, int sock, struct base_id *id, struct base_id *text)
{
	(void)r;
	(void)sock;
	stand_ins.nr_asked++;
	*id = stand_ins.reader_id;
	*text = stand_ins.reader_text;
	return stand_ins.reader_result;
}

void reader_release(struct reader *r, uint32_t uid, int fd)
{
	(void)r;
	(void)uid;
	close(fd);
}

static int begin_table(int result)
{
	assert_false(making.asked);
	making.asked = true;
	making.result = result;
	stand_ins.nr_rows++;
	return 0;
}

int reader_rows_ask(struct reader *r, const struct reader_mapped *f, int fd)
{
	(void)r;
	making.table = NULL;
	return begin_table(stand_ins.rows ? stand_ins.rows(f, fd, &making.table) : -DCPI_EFORMAT);
}

int reader_code_rows_ask(struct reader *r, const struct reader_code *c)
{
	(void)r;
	making.table = NULL;
	return begin_table(stand_ins.code_rows ? stand_ins.code_rows(c, &making.table) : -ESRCH);
}

uint32_t reader_user(int32_t pid)
{
	(void)pid;
	return 0;
}

int reader_rows_take(struct reader *r, unsigned int wait_ms, struct unwind_table **out,
		     struct reader_cost *cost)
{
	(void)r;
	(void)wait_ms;
	assert_true(making.asked);
	*out = NULL;
	*cost = (struct reader_cost){ .ran_ns = stand_ins.rows_ran_ns };
	if (stand_ins.rows_wait) {
		stand_ins.rows_wait--;
		return 1;
	}
	making.asked = false;
	*out = making.table;
	return making.result;
}

int kernel_vdso_open(void)
{
	return memfd_create("vdso", MFD_CLOEXEC);
}

/* Tests list their own process themselves. */
int reader_maps(struct reader *r, int32_t pid, struct base_buf *out)
{
	(void)r;
	(void)pid;
	(void)out;
	return -ESRCH;
}

ssize_t reader_code_read(struct reader *r, int32_t pid, uint64_t addr, void *to, size_t len)
{
	(void)r;
	return stand_ins.read_code ? stand_ins.read_code(pid, addr, to, len) : -ESRCH;
}

uint64_t reader_cpu_ns(const struct reader *r)
{
	(void)r;
	return 0;
}

/* ---- value profilers: one, "values" ---------------------------------------------------------- */

int values_open(const char *helper_dir, const char *const *profilers, size_t nr, bool context,
		struct values **out, struct base_err *err)
{
	(void)helper_dir;
	(void)profilers;
	(void)nr;
	(void)context;
	*out = NULL;
	return base_fail_errno(err, -ENOENT, "there are no value profilers here");
}

void values_close(struct values *v)
{
	(void)v;
}

const char *values_name(const struct values *v, size_t index)
{
	(void)v;
	(void)index;
	return "values";
}

enum vtrace_log values_log(const struct values *v)
{
	(void)v;
	return VTRACE_LOG_READS;
}

int values_send(struct values *v, uint64_t ticket, const struct insn_trace *w,
		const uint64_t *words, vtrace_block_fn *get, void *ctx)
{
	(void)v;
	stand_ins.nr_later += stand_ins.send_result != -EAGAIN && w->time_ns > stand_ins.later_than;
	if (stand_ins.send_result < 0)
		return stand_ins.send_result;
	if (w->nr_words)
		assert_non_null(get(ctx, VTRACE_WORD_ID(words[0])));
	stand_ins.tickets[stand_ins.nr_sent++ % 64] = ticket;
	return 0;
}

int values_receive(struct values *v,
		   int (*fn)(void *ctx, uint64_t ticket, size_t profiler,
			     const struct values_tuple *t, size_t nr),
		   void *ctx)
{
	unsigned int nr = stand_ins.nr_sent;

	(void)v;
	stand_ins.nr_sent = 0;
	for (unsigned int i = 0; i < nr; i++)
		fn(ctx, stand_ins.tickets[i], 0, stand_ins.tuples, stand_ins.nr_tuples);
	return (int)nr;
}

int values_poll_fd(const struct values *v)
{
	(void)v;
	return -1;
}

void values_stats_get(const struct values *v, struct values_stats *out)
{
	(void)v;
	*out = (struct values_stats){ 0 };
}

void values_profiler_stats_get(const struct values *v, size_t index,
			       struct values_profiler_stats *out)
{
	(void)v;
	(void)index;
	*out = (struct values_profiler_stats){ 0 };
}

/* ---- a core to try --------------------------------------------------------------------------- */

void trial_open(struct trial *t)
{
	*t = (struct trial){ .time_ns = 1000 };
	stand_ins = (struct stand_ins){ .reader_result = -EIO };
	making.asked = false;
	t->store.images = images_new();
	t->store.workloads = workloads_new();
	t->store.events[0] = (struct driver_event){ .name = "cycles", .period = 1000 };
	t->store.events[1] = (struct driver_event){ .name = "misses", .period = 10 };
	t->store.nr_events = 2;
	t->attribute = (struct attribute){ .images = t->store.images,
					   .dyn = (struct dyn *)&a_dyn,
					   .kernel = (struct kernel *)&a_kernel };
	t->follow = (struct follow){ .images = t->store.images,
				     .processes = processes_new(),
				     .identity = identity_new((struct reader *)&a_reader),
				     .dyn = (struct dyn *)&a_dyn,
				     .kernel = (struct kernel *)&a_kernel };
	t->counts = (struct counts){ .attribute = &t->attribute,
				     .follow = &t->follow,
				     .store = &t->store,
				     .owners = { .follow = &t->follow, .store = &t->store } };
	assert_non_null(t->store.images);
	assert_non_null(t->store.workloads);
	assert_non_null(t->follow.processes);
	assert_non_null(t->follow.identity);
}

void trial_daemon(struct trial *t, struct daemon *d, const char *db)
{
	struct base_err err = { 0 };

	trial_open(t);
	memset(d, 0, sizeof(*d));
	strcpy(d->platform, "here");
	d->images = t->store.images;
	d->workloads = t->store.workloads;
	d->processes = t->follow.processes;
	d->identity = t->follow.identity;
	d->dyn = t->follow.dyn;
	d->kernel = t->follow.kernel;
	d->store = t->store;
	d->opt.database = db;
	assert_int_equal(profdb_open(db, true, &d->db, &err), 0);
	assert_int_equal(profdb_lock(d->db, d->platform, &err), 0);
	assert_int_equal(profdb_epoch_start(d->db, 1700000000, d->epoch, &err), 0);
	daemon_connect(d);
}

void trial_close(struct trial *t)
{
	counts_release(&t->counts);
	follow_release(&t->follow);
	identity_free(t->follow.identity);
	images_free(t->store.images);
	workloads_free(t->store.workloads);
}

void trial_daemon_close(struct trial *t, struct daemon *d)
{
	counts_release(&d->counts);
	follow_release(&d->follow);
	identity_free(d->identity);
	images_free(d->images);
	workloads_free(d->workloads);
	(void)t;
	profdb_close(d->db);
}

int trial_said(FILE *log, const char *what)
{
	char line[300];
	int nr = 0;

	rewind(log);
	while (fgets(line, sizeof(line), log))
		nr += strstr(line, what) != NULL;
	rewind(log);
	assert_int_equal(ftruncate(fileno(log), 0), 0);
	return nr;
}

struct base_id trial_id(uint8_t byte)
{
	struct base_id id = { .len = byte ? 20 : 0 };

	if (byte)
		memset(id.bytes, byte, 20);
	return id;
}

void trial_mmap(struct trial *t, int32_t pid, uint64_t addr, uint64_t len, uint64_t file_off,
		const char *path, uint8_t id)
{
	const struct driver_load l = { .kind = DRIVER_LOAD_MMAP,
				       .time_ns = ++t->time_ns,
				       .pid = pid,
				       .tid = pid,
				       .addr = addr,
				       .len = len,
				       .file_off = file_off,
				       .id = trial_id(id),
				       .path = path };

	assert_int_equal(counts_load(&t->counts, &l), 0);
}

void trial_event(struct trial *t, enum driver_load_kind kind, int32_t pid, int32_t ppid)
{
	const struct driver_load l = { .kind = kind,
				       .time_ns = ++t->time_ns,
				       .pid = pid,
				       .tid = pid,
				       .ppid = ppid,
				       .path = "name" };

	assert_int_equal(counts_load(&t->counts, &l), 0);
}

void trial_sample(struct trial *t, int32_t pid, uint64_t addr)
{
	trial_span(t, pid, addr, t->time_ns + 1);
}

void trial_span(struct trial *t, int32_t pid, uint64_t addr, uint64_t first_ns)
{
	const struct driver_count c = { .first_ns = first_ns,
					.time_ns = ++t->time_ns,
					.pid = pid,
					.tid = pid,
					.mode = DRIVER_USER,
					.addr = addr,
					.count = 1 };

	assert_int_equal(counts_count(&t->counts, &c), 0);
}

uint64_t trial_count(struct trial *t, const char *path, uint64_t off)
{
	struct image *img;

	store_all(&t->store);
	for (size_t pos = 0; images_next(t->store.images, &pos, &img);) {
		if (strcmp(img->path, path) != 0)
			continue;
		for (size_t i = 0; i < profdb_profile_nr_entries(img->counts); i++) {
			const struct profdb_entry *e = profdb_profile_entry(img->counts, i);

			if (e->off == off)
				return e->count[0];
		}
	}
	return 0;
}

void trial_same_sums(const struct images *images)
{
	struct image *img;

	for (size_t pos = 0; images_next(images, &pos, &img);)
		for (size_t e = 0; e < profdb_profile_nr_events(img->counts); e++)
			assert_int_equal(workload_table_sum(img->workloads, (uint32_t)e),
					 profdb_profile_event(img->counts, e)->sum);
}

uint64_t trial_sum(const struct trial *t)
{
	struct image *img;
	uint64_t sum = 0;

	for (size_t pos = 0; images_next(t->store.images, &pos, &img);)
		for (size_t i = 0; i < profdb_profile_nr_events(img->counts); i++)
			sum += profdb_profile_event(img->counts, i)->sum;
	return sum;
}

void dyn_set_full(struct dyn *d, bool full, uint64_t share)
{
	(void)d;
	stand_ins.full = full;
	stand_ins.share = share;
}

void dyn_spare_images(struct dyn *d)
{
	(void)d;
	stand_ins.nr_spared++;
}
