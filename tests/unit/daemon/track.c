/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "follow_internal.h"
#include "stand_ins.h"

static struct trial t;

static int setup(void **state)
{
	(void)state;
	trial_open(&t);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	trial_close(&t);
	return 0;
}

static const struct map *at(int32_t pid, uint64_t addr)
{
	const struct process *p = processes_find(t.follow.processes, pid);

	return p ? map_find(p, addr) : NULL;
}

static void kinds_of_memory(void **state)
{
	static const struct {
		const char *path;
		uint8_t id;
		enum map_kind kind;
	} cases[] = {
		{ "//anon", 0, MAP_DYNAMIC },
		{ "[heap]", 0, MAP_DYNAMIC },
		{ "[stack]", 0, MAP_DYNAMIC },
		{ "anon_inode:[x]", 0, MAP_DYNAMIC },
		{ "/memfd:jit (deleted)", 0, MAP_DYNAMIC },
		{ "/memfd:dbgdyn2", 0, MAP_DYNAMIC },
		{ "/dev/zero (deleted)", 0, MAP_DYNAMIC },
		{ "/SYSV00000000 (deleted)", 0, MAP_DYNAMIC },
		{ "/tmp/ffi123 (deleted)", 0, MAP_DYNAMIC },
		{ "/memfd:program (deleted)", 5, MAP_IMAGE },
		{ "/usr/lib/libold.so (deleted)", 6, MAP_IMAGE },
		{ "/usr/lib/libc.so", 7, MAP_IMAGE },
		{ "/usr/lib/no-build-id.so", 0, MAP_IMAGE },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const struct map *m;

		trial_mmap(&t, 10, 0x1000, 0x1000, 0x2000, cases[i].path, cases[i].id);
		m = at(10, 0x1000);
		assert_non_null(m);
		if (m->kind != cases[i].kind)
			fail_msg("'%s' is taken for the wrong kind", cases[i].path);
	}
	trial_mmap(&t, 10, 0x1000, 0x1000, 0, "/usr/lib/libold.so (deleted)", 6);
	assert_string_equal(at(10, 0x1000)->image->path, "/usr/lib/libold.so");
	assert_int_equal(stand_ins.nr_marker, 0);
}

static void map_with(uint32_t prot, uint64_t addr, const char *path)
{
	const struct driver_load l = { .kind = DRIVER_LOAD_MMAP,
				       .time_ns = ++t.time_ns,
				       .pid = 10,
				       .addr = addr,
				       .len = 0x1000,
				       .prot = prot,
				       .path = path };

	assert_int_equal(counts_load(&t.counts, &l), 0);
}

/* A runtime goes on in a file that it has written once: what it compiles there is in no file. */
static void file_to_write_code_into(void **state)
{
	const uint32_t run = PROT_READ | PROT_EXEC, write = run | PROT_WRITE;

	(void)state;
	stand_ins.reader_id = trial_id(7);
	stand_ins.reader_result = 0;
	stand_ins.no_elf = true;
	map_with(write, 0x1000, "/lib/a.core");
	assert_int_equal(at(10, 0x1000)->kind, MAP_DYNAMIC);
	/* mprotect: what was written stands there still. */
	map_with(run, 0x1000, "/lib/a.core");
	assert_int_equal(at(10, 0x1000)->kind, MAP_DYNAMIC);
	/* What nobody could write is the file's own. */
	map_with(run, 0x4000, "/lib/a.core");
	assert_int_equal(at(10, 0x4000)->kind, MAP_IMAGE);
	/* An ELF file is one image however it is mapped. */
	stand_ins.no_elf = false;
	map_with(write, 0x1000, "/bin/patches-itself");
	assert_int_equal(at(10, 0x1000)->kind, MAP_IMAGE);
	/* The file cannot be read any more: as it was last. */
	stand_ins.reader_result = -ENOENT;
	map_with(write, 0x6000, "/lib/a.core");
	assert_int_equal(at(10, 0x6000)->kind, MAP_DYNAMIC);
}

static void marker_is_no_mapping(void **state)
{
	(void)state;
	trial_mmap(&t, 10, 0x1000, 0x1000, 0, "/bin/a", 1);
	trial_mmap(&t, 10, 0x8000, 0x1000, 0, "/memfd:dbgdyn (deleted)", 0);
	assert_int_equal(stand_ins.nr_marker, 1);
	assert_int_equal(stand_ins.marker_addr, 0x8000);
	assert_null(at(10, 0x8000));
}

static void vdso(void **state)
{
	const struct base_id id = trial_id(3);
	const uint64_t far = UINT64_C(0x7fff00007000);
	const struct map *m;
	char *text = NULL;
	size_t len;

	(void)state;
	stand_ins.vdso = images_get(t.store.images, PROFDB_VDSO, &id, "[vdso]", "vdso");
	trial_mmap(&t, 10, far, 0x1000, far, "[vdso]", 0);
	trial_sample(&t, 10, far + 0x123);
	assert_int_equal(trial_count(&t, "[vdso]", 0x123), 1);
	/* A program of 32 bits has not that one. */
	trial_mmap(&t, 12, 0xf7f2a000, 0x2000, 0, "[vdso]", 0);
	m = at(12, 0xf7f2a000);
	assert_non_null(m);
	assert_int_equal(m->kind, MAP_DYNAMIC);
	assert_null(m->image);
	assert_false(processes_find(t.follow.processes, 12)->watched);
	/* Who replays what is recorded here has another one. */
	t.follow.record = open_memstream(&text, &len);
	trial_mmap(&t, 11, far, 0x1000, far, "[vdso]", 0);
	fclose(t.follow.record);
	t.follow.record = NULL;
	assert_non_null(strstr(text, " id=0303"));
	assert_non_null(strstr(text, " path=[vdso]"));
	free(text);
	/* The kernel's page that /proc lists beside it is no memory that a JIT could use. */
	trial_mmap(&t, 10, 0xffffffffff600000, 0x1000, 0, "[vsyscall]", 0);
	assert_null(at(10, 0xffffffffff600000));
	assert_false(processes_find(t.follow.processes, 10)->watched);
}

static void nonsense_is_ignored(void **state)
{
	(void)state;
	trial_mmap(&t, 10, UINT64_MAX - 5, 100, 0, "/bin/a", 1);
	trial_mmap(&t, 10, 0x1000, 0, 0, "/bin/a", 1);
	trial_mmap(&t, 10, 0x1000, 10, 0, NULL, 1);
	trial_event(&t, DRIVER_LOAD_FORK, 10, 10);
	trial_event(&t, DRIVER_LOAD_EXIT, 77, 0);
	trial_event(&t, DRIVER_LOAD_COMM, 77, 0);
	assert_int_equal(processes_find(t.follow.processes, 10)->nr_maps, 0);
	assert_null(processes_find(t.follow.processes, 77));
}

static void names(void **state)
{
	(void)state;
	trial_event(&t, DRIVER_LOAD_EXEC, 10, 0);
	assert_string_equal(processes_find(t.follow.processes, 10)->comm, "name");
	assert_int_equal(processes_find(t.follow.processes, 10)->execed_ns, t.time_ns);
	trial_event(&t, DRIVER_LOAD_FORK, 11, 10);
	assert_string_equal(processes_find(t.follow.processes, 11)->comm, "name");
	assert_int_equal(processes_find(t.follow.processes, 11)->execed_ns, 0);
}

/* As scan_process leaves a process: its mappings were read from /proc at @known_ns. */
static struct process *scanned(int32_t pid, uint64_t known_ns)
{
	struct process *p = processes_add(t.follow.processes, pid);
	const struct driver_load l = { .kind = DRIVER_LOAD_MMAP,
				       .pid = pid,
				       .addr = 0x4000,
				       .len = 0x1000,
				       .id = trial_id(4),
				       .path = "/bin/scanned" };

	assert_non_null(p);
	p->known_ns = known_ns;
	follow_mmap(&t.follow, p, &l, FOLLOW_LISTED);
	return p;
}

static void older_events_undo_nothing(void **state)
{
	struct process *p = scanned(10, 1000000);

	(void)state;
	trial_event(&t, DRIVER_LOAD_FORK, 10, 9);
	assert_ptr_equal(processes_find(t.follow.processes, 10), p);
	trial_mmap(&t, 10, 0x3000, 0x3000, 0, "/bin/early", 1);
	assert_string_equal(at(10, 0x4000)->image->path, "/bin/scanned");
	assert_string_equal(at(10, 0x3000)->image->path, "/bin/early");
	assert_string_equal(at(10, 0x5000)->image->path, "/bin/early");
	/* What was mapped before an exec is not there after it. */
	trial_event(&t, DRIVER_LOAD_EXEC, 10, 0);
	assert_ptr_equal(processes_find(t.follow.processes, 10), p);
	assert_null(at(10, 0x3000));
	assert_string_equal(at(10, 0x4000)->image->path, "/bin/scanned");
	trial_event(&t, DRIVER_LOAD_EXIT, 10, 0);
	assert_ptr_equal(processes_find(t.follow.processes, 10), p);
}

static void newer_events_win(void **state)
{
	struct process *p = scanned(10, 5);

	(void)state;
	trial_mmap(&t, 10, 0x4000, 0x1000, 0, "/bin/later", 1);
	assert_string_equal(at(10, 0x4000)->image->path, "/bin/later");
	trial_event(&t, DRIVER_LOAD_EXEC, 10, 0);
	assert_ptr_not_equal(processes_find(t.follow.processes, 10), p);
	assert_null(at(10, 0x4000));
}

/* What a process runs is known also when it is gone before anybody can ask. */
static void program_of_a_process(void **state)
{
	(void)state;
	trial_mmap(&t, 10, 0x1000, 0x1000, 0, "/bin/shell", 1);
	assert_null(processes_find(t.follow.processes, 10)->exe);
	trial_event(&t, DRIVER_LOAD_FORK, 11, 10);
	trial_mmap(&t, 11, 0x8000, 0x1000, 0, "/lib/plugin.so", 2);
	assert_null(processes_find(t.follow.processes, 11)->exe);
	trial_event(&t, DRIVER_LOAD_EXEC, 11, 0);
	assert_null(processes_find(t.follow.processes, 11)->exe);
	/* A stack that may be executed is there before the program. */
	trial_mmap(&t, 11, 0x9000, 0x1000, 0, "//anon", 0);
	assert_null(processes_find(t.follow.processes, 11)->exe);
	trial_mmap(&t, 11, 0x1000, 0x1000, 0, "/opt/a/bin/worker", 3);
	trial_mmap(&t, 11, 0x4000, 0x1000, 0, "/lib/ld.so", 4);
	assert_string_equal(processes_find(t.follow.processes, 11)->exe, "/opt/a/bin/worker");
	trial_event(&t, DRIVER_LOAD_FORK, 12, 11);
	trial_event(&t, DRIVER_LOAD_EXIT, 11, 0);
	assert_string_equal(processes_find(t.follow.processes, 12)->exe, "/opt/a/bin/worker");
}

/* A registry handed over after an exec whose event has not come yet belongs to the new program. */
static void client_goes_over(void **state)
{
	struct process *p;
	struct dyn_client *client;

	(void)state;
	trial_mmap(&t, 10, 0x1000, 0x1000, 0, "/bin/a", 1);
	trial_mmap(&t, 10, 0x8000, 0x1000, 0, "/memfd:dbgdyn", 0);
	p = follow_attach(&t.follow, 10, t.time_ns);
	client = p->dyn;
	assert_non_null(client);
	p->attached_ns = t.time_ns + 100;
	trial_event(&t, DRIVER_LOAD_EXEC, 10, 0);
	assert_ptr_equal(processes_find(t.follow.processes, 10)->dyn, client);
	counts_resolve(&t.counts, 0);
	assert_int_equal(stand_ins.nr_end, 0);
	t.time_ns += 200;
	trial_event(&t, DRIVER_LOAD_EXEC, 10, 0);
	assert_null(processes_find(t.follow.processes, 10)->dyn);
	counts_resolve(&t.counts, 0);
	assert_int_equal(stand_ins.nr_end, 1);
}

/* Two programs that one process runs have each handed over, and no event of theirs has come. */
static void second_client_waits(void **state)
{
	struct process *p, *later;
	uint64_t between;

	(void)state;
	trial_mmap(&t, 10, 0x1000, 0x1000, 0, "/bin/a", 1);
	trial_mmap(&t, 10, 0x8000, 0x1000, 0, "/memfd:dbgdyn", 0);
	stand_ins.registered = true;
	p = processes_find(t.follow.processes, 10);
	p->attached_ns = t.time_ns + 10;
	later = follow_attach(&t.follow, 10, t.time_ns);
	assert_non_null(later);
	assert_ptr_not_equal(later, p);
	/* It is asked for again until it has a registry. */
	assert_ptr_equal(follow_attach(&t.follow, 10, t.time_ns), later);
	later->dyn = p->dyn;
	between = t.time_ns + 20;
	later->attached_ns = t.time_ns + 30;
	assert_ptr_not_equal(follow_attach(&t.follow, 10, t.time_ns), later);
	later->later->attached_ns = later->attached_ns + 10;
	/* The exec that began the first of them, and that which began the second. */
	trial_event(&t, DRIVER_LOAD_EXEC, 10, 0);
	p = processes_find(t.follow.processes, 10);
	assert_non_null(p->dyn);
	assert_ptr_equal(p->later, later);
	t.time_ns = between;
	trial_event(&t, DRIVER_LOAD_EXEC, 10, 0);
	assert_non_null(p->dyn);
	assert_non_null(processes_find(t.follow.processes, 10)->dyn);
	assert_non_null(processes_find(t.follow.processes, 10)->later);
	t.time_ns = between + 15;
	/* The last one is another process with that pid. */
	trial_event(&t, DRIVER_LOAD_EXIT, 10, 0);
	p = processes_find(t.follow.processes, 10);
	assert_non_null(p);
	assert_true(p->placeholder);
	assert_null(p->later);
	counts_resolve(&t.counts, 0);
	assert_int_equal(stand_ins.nr_end, 2);
	assert_ptr_equal(processes_find(t.follow.processes, 10), p);
}

/* No exec: it was no other life. */
static void second_client_of_one_life(void **state)
{
	struct process *p, *later;

	(void)state;
	trial_mmap(&t, 10, 0x8000, 0x1000, 0, "/memfd:dbgdyn", 0);
	stand_ins.registered = true;
	p = processes_find(t.follow.processes, 10);
	later = follow_attach(&t.follow, 10, t.time_ns);
	later->dyn = p->dyn;
	later->attached_ns = t.time_ns + 5;
	counts_resolve(&t.counts, 0);
	assert_ptr_equal(p->later, later);
	counts_resolve(&t.counts, t.time_ns + 5);
	assert_null(p->later);
	assert_int_equal(stand_ins.nr_end, 1);
	assert_non_null(p->dyn);
}

/* There is no end to what a process may hand over. */
static void few_clients_wait(void **state)
{
	struct process *p = NULL;
	int nr = 0;

	(void)state;
	trial_mmap(&t, 10, 0x8000, 0x1000, 0, "/memfd:dbgdyn", 0);
	stand_ins.registered = true;
	while (nr < 100 && (p = follow_attach(&t.follow, 10, t.time_ns))) {
		p->dyn = processes_find(t.follow.processes, 10)->dyn;
		nr++;
	}
	assert_in_range(nr, 1, 10);
	trial_event(&t, DRIVER_LOAD_EXIT, 10, 0);
	counts_resolve(&t.counts, 0);
}

/* A hand-over from a process of which nothing has been heard waits for its events. */
static void hand_over_before_events(void **state)
{
	struct process *p = follow_attach(&t.follow, 10, t.time_ns);

	(void)state;
	assert_non_null(p);
	assert_true(p->placeholder);
	counts_resolve(&t.counts, 0);
	assert_ptr_equal(processes_find(t.follow.processes, 10), p);
	/* And one from a process that has ended in this drain finds the life that ended. */
	trial_event(&t, DRIVER_LOAD_EXIT, 10, 0);
	assert_ptr_equal(follow_attach(&t.follow, 10, t.time_ns), p);
}

/* It died, and its pid's next program has one too: each its own. */
static void each_life_its_own(void **state)
{
	struct process *p, *next;
	struct dyn_client *first;

	(void)state;
	trial_mmap(&t, 10, 0x8000, 0x1000, 0, "/memfd:dbgdyn", 0);
	stand_ins.registered = true;
	p = processes_find(t.follow.processes, 10);
	first = p->dyn;
	/* As exact as the times of files: it may have been before the exit. */
	p->attached_ns = t.time_ns + 5;
	follow_attach(&t.follow, 10, t.time_ns + 10)->dyn = first;
	trial_event(&t, DRIVER_LOAD_EXIT, 10, 0);
	next = processes_find(t.follow.processes, 10);
	assert_non_null(next);
	assert_non_null(next->dyn);
	assert_null(next->later);
	assert_ptr_equal(p->dyn, first);
	assert_true(p->exited);
	/* Certainly after it. */
	next->attached_ns = t.time_ns + 2 * DYN_MADE_NS;
	next->placeholder = false;
	trial_event(&t, DRIVER_LOAD_EXIT, 10, 0);
	assert_null(next->dyn);
	assert_non_null(processes_find(t.follow.processes, 10)->dyn);
}

/* Nothing is known of a parent: nor of its child, which may be asked for. */
static void child_of_the_unknown(void **state)
{
	struct process *p;

	(void)state;
	trial_sample(&t, 9, 0x1000);
	trial_event(&t, DRIVER_LOAD_FORK, 10, 9);
	p = processes_find(t.follow.processes, 10);
	assert_true(p->placeholder);
	assert_false(p->asked);
	trial_sample(&t, 10, 0x1000);
	assert_true(p->asked);
	trial_event(&t, DRIVER_LOAD_FORK, 11, 9);
	counts_resolve(&t.counts, 0);
	assert_null(processes_find(t.follow.processes, 11));
}

/* What /proc listed of the parent later need not have been there at the fork. */
static void child_older_than_listing(void **state)
{
	(void)state;
	scanned(10, 1000000);
	trial_event(&t, DRIVER_LOAD_FORK, 11, 10);
	trial_sample(&t, 11, 0x4000);
	assert_int_equal(trial_count(&t, "/bin/scanned", 0), 0);
	assert_int_equal(trial_count(&t, "unknown process", 0), 1);
	t.time_ns = 2000000;
	trial_event(&t, DRIVER_LOAD_FORK, 12, 10);
	trial_sample(&t, 12, 0x4000);
	assert_int_equal(trial_count(&t, "/bin/scanned", 0), 1);
}

/* Each of many is ended, wherever the table moves those that are left. */
static void many_of_the_unknown(void **state)
{
	(void)state;
	for (int32_t pid = 100; pid < 3000; pid++) {
		trial_sample(&t, pid, 0x1000);
		if (pid % 3 == 0)
			trial_mmap(&t, pid, 0x1000, 0x1000, 0, "/bin/a", 1);
	}
	counts_resolve(&t.counts, 0);
	for (int32_t pid = 100; pid < 3000; pid++)
		assert_int_equal(processes_find(t.follow.processes, pid) != NULL, pid % 3 == 0);
}

static void recorded_registry(void **state)
{
	static const uint64_t data[4];
	const struct driver_load l = {
		.kind = DRIVER_LOAD_DYN, .pid = 10, .data = data, .data_len = sizeof(data)
	};

	(void)state;
	assert_int_equal(counts_load(&t.counts, &l), 0);
	assert_int_equal(stand_ins.nr_records, 1);
	assert_non_null(processes_find(t.follow.processes, 10)->dyn);
}

static void no_memory_of_unused_images(void **state)
{
	(void)state;
	trial_mmap(&t, 10, 0x1000, 0x1000, 0, "/bin/a", 1);
	trial_event(&t, DRIVER_LOAD_FORK, 11, 10);
	trial_event(&t, DRIVER_LOAD_EXIT, 10, 0);
	counts_resolve(&t.counts, 0);
	images_drop_unused(t.store.images);
	assert_int_equal(images_nr(t.store.images), 1);
	trial_event(&t, DRIVER_LOAD_EXIT, 11, 0);
	counts_resolve(&t.counts, 0);
	images_drop_unused(t.store.images);
	assert_int_equal(images_nr(t.store.images), 0);
}

/* As a client's request does, while the time of @pid is @time_ns. */
static void give_label(int32_t pid, const char *label, uint64_t time_ns)
{
	const struct driver_load l = {
		.kind = DRIVER_LOAD_LABEL, .time_ns = time_ns, .pid = pid, .tid = pid, .path = label
	};

	assert_int_equal(follow_queue_add(&t.follow.queue, &l), 0);
}

static const char *label_of(int32_t pid)
{
	const struct process *p = processes_find(t.follow.processes, pid);

	return p && p->label ? p->label : "";
}

/* Samples of event 0 at @off of /bin/a with @label. */
static uint64_t labelled(const char *label, uint64_t off)
{
	struct image *img;
	uint64_t sum = 0;

	store_all(&t.store);
	for (size_t pos = 0; images_next(t.store.images, &pos, &img);)
		for (size_t i = 0; i < profdb_profile_nr_entries(img->counts); i++)
			if (strcmp(img->label ? img->label : "", label) == 0 &&
			    profdb_profile_entry(img->counts, i)->off == off)
				sum += profdb_profile_entry(img->counts, i)->count[0];
	return sum;
}

static void label_from_exec_on(void **state)
{
	(void)state;
	trial_mmap(&t, 10, 0x1000, 0x1000, 0, "/bin/a", 1);
	give_label(10, "run", t.time_ns + 2);
	trial_sample(&t, 10, 0x1010);
	trial_sample(&t, 10, 0x1010);
	assert_int_equal(labelled("", 0x10), 2);
	trial_event(&t, DRIVER_LOAD_EXEC, 10, 0);
	assert_string_equal(label_of(10), "run");
	trial_mmap(&t, 10, 0x1000, 0x1000, 0, "/bin/a", 1);
	trial_sample(&t, 10, 0x1010);
	assert_int_equal(labelled("run", 0x10), 1);
	/* All that comes of it; another label takes its place for what comes of that alone. */
	trial_event(&t, DRIVER_LOAD_FORK, 11, 10);
	trial_event(&t, DRIVER_LOAD_EXEC, 11, 0);
	trial_event(&t, DRIVER_LOAD_FORK, 12, 11);
	assert_string_equal(label_of(12), "run");
	give_label(11, "inner", t.time_ns + 1);
	trial_event(&t, DRIVER_LOAD_EXEC, 11, 0);
	trial_event(&t, DRIVER_LOAD_FORK, 13, 11);
	assert_string_equal(label_of(13), "inner");
	trial_event(&t, DRIVER_LOAD_EXEC, 12, 0);
	assert_string_equal(label_of(12), "run");
	assert_string_equal(label_of(10), "run");
	/* Samples in no image have it, too; a pid's next process does not. */
	trial_sample(&t, 13, 0x999000);
	assert_int_equal(labelled("inner", 0), 1);
	trial_event(&t, DRIVER_LOAD_EXIT, 13, 0);
	trial_event(&t, DRIVER_LOAD_FORK, 13, 1);
	assert_string_equal(label_of(13), "");
}

/* The events of before it came still lie in a ring when the client asks: they come first. */
static void label_waits_for_its_time(void **state)
{
	(void)state;
	trial_event(&t, DRIVER_LOAD_EXEC, 10, 0);
	give_label(11, "run", t.time_ns + 3);
	give_label(10, "other", t.time_ns + 100);
	trial_event(&t, DRIVER_LOAD_FORK, 11, 10);
	trial_event(&t, DRIVER_LOAD_EXEC, 11, 0);
	assert_string_equal(label_of(11), "");
	trial_event(&t, DRIVER_LOAD_EXEC, 11, 0);
	assert_string_equal(label_of(11), "run");
	trial_event(&t, DRIVER_LOAD_EXEC, 10, 0);
	assert_string_equal(label_of(10), "");
	assert_int_equal(t.follow.queue.nr, 1);
}

/* What the client wrote is gone by the time. */
static void what_is_told_is_kept(void **state)
{
	char text[] = "mine";

	(void)state;
	trial_event(&t, DRIVER_LOAD_EXEC, 10, 0);
	give_label(10, text, t.time_ns + 1);
	memset(text, 'x', sizeof(text) - 1);
	trial_event(&t, DRIVER_LOAD_EXEC, 10, 0);
	assert_string_equal(label_of(10), "mine");
}

/* A client that tells and tells does not take all memory. */
static void so_many_wait_at_most(void **state)
{
	const struct driver_load l = { .kind = DRIVER_LOAD_LABEL, .time_ns = 50, .path = "run" };
	size_t nr = 0;

	(void)state;
	while (nr < 5000 && follow_queue_add(&t.follow.queue, &l) == 0)
		nr++;
	assert_int_equal(nr, 4096);
	assert_int_equal(t.follow.queue.nr, nr);
	assert_int_equal(follow_queue_add(&t.follow.queue, &l), -DCPI_ELIMIT);
	follow_until(&t.follow, 50);
	assert_int_equal(t.follow.queue.nr, 0);
	assert_int_equal(follow_queue_add(&t.follow.queue, &l), 0);
}

/* Before the first count that comes behind it. */
static void told_is_recorded_in_time(void **state)
{
	char *text = NULL;
	size_t len;

	(void)state;
	t.follow.record = open_memstream(&text, &len);
	assert_non_null(t.follow.record);
	give_label(10, "run", t.time_ns + 1);
	trial_sample(&t, 10, 0x1010);
	assert_int_equal(fclose(t.follow.record), 0);
	t.follow.record = NULL;
	assert_string_equal(text, "label t=1001 pid=10 path=run\n"
				  "count t=1001 pid=10 addr=0x1010\n");
	free(text);
}

/* What was listed in /proc is told of late. */
static void label_of_the_listed(void **state)
{
	(void)state;
	trial_event(&t, DRIVER_LOAD_EXEC, 10, 0);
	give_label(10, "run", t.time_ns + 1);
	trial_event(&t, DRIVER_LOAD_EXEC, 10, 0);
	give_label(11, "inner", t.time_ns + 2);
	scanned(11, t.time_ns + 4);
	trial_event(&t, DRIVER_LOAD_FORK, 11, 10);
	assert_string_equal(label_of(11), "run");
	trial_event(&t, DRIVER_LOAD_COMM, 10, 0);
	trial_event(&t, DRIVER_LOAD_EXEC, 11, 0);
	assert_string_equal(label_of(11), "inner");
}

/* Its fork, and the exec of who labelled it, come behind younger events of other CPUs. */
static void label_before_late_events(void **state)
{
	struct driver_load l = { .pid = 11, .tid = 11, .ppid = 10, .path = "name" };

	(void)state;
	trial_event(&t, DRIVER_LOAD_EXEC, 10, 0);
	t.time_ns = 100;
	scanned(11, 100);
	give_label(11, "run", 90);
	trial_event(&t, DRIVER_LOAD_COMM, 10, 0);
	for (int i = 0; i < 2; i++) {
		l.kind = i ? DRIVER_LOAD_EXEC : DRIVER_LOAD_FORK;
		l.time_ns = 80 + (uint64_t)i;
		assert_int_equal(counts_load(&t.counts, &l), 0);
		assert_string_equal(label_of(11), "");
	}
	trial_event(&t, DRIVER_LOAD_EXEC, 11, 0);
	assert_string_equal(label_of(11), "run");
}

/* Nobody asked for who was forked before its parent was listed, and has no sample yet. */
static void label_of_the_idle(void **state)
{
	enum { NOBODY = 0x7ffffff0 }; /* no such number is in /proc */

	(void)state;
	scanned(10, 1000000);
	give_label(10, "run", t.time_ns + 1);
	trial_event(&t, DRIVER_LOAD_EXEC, 10, 0);
	for (int32_t pid = 11; pid < 14; pid++)
		trial_event(&t, DRIVER_LOAD_FORK, pid, 10);
	trial_event(&t, DRIVER_LOAD_FORK, NOBODY, 10);
	counts_resolve(&t.counts, 0);
	assert_string_equal(label_of(11), "run");
	assert_true(processes_find(t.follow.processes, 11)->placeholder);
	trial_event(&t, DRIVER_LOAD_EXEC, 11, 0);
	assert_string_equal(label_of(11), "run");
	/* It goes when it ends, when /proc knows nothing of it, or has it no more. */
	trial_event(&t, DRIVER_LOAD_EXIT, 12, 0);
	assert_null(processes_find(t.follow.processes, 12));
	trial_sample(&t, 13, 0x1000);
	counts_resolve(&t.counts, 0);
	assert_null(processes_find(t.follow.processes, 13));
	follow_sweep(&t.follow);
	assert_non_null(processes_find(t.follow.processes, NOBODY));
	follow_sweep(&t.follow);
	assert_null(processes_find(t.follow.processes, NOBODY));
}

static void labels_that_are_none(void **state)
{
	static const char *const bad[] = { "", "a b", "x\ny", "caf\xc3\xa9", "'", "\\" };
	char text[LABEL_MAX + 2];
	struct base_err err = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_int_equal(label_check(bad[i], strlen(bad[i]), NULL), -EINVAL);
	memset(text, 'x', sizeof(text));
	assert_int_equal(label_check(text, LABEL_MAX, NULL), 0);
	assert_int_equal(label_check(text, LABEL_MAX + 1, NULL), -EINVAL);
	assert_int_equal(label_check("a\0b", 3, NULL), -EINVAL);
	assert_int_equal(label_check("run 1", 5, &err), -EINVAL);
	assert_string_equal(err.text, "'run 1' is no label");
	assert_int_equal(label_check("v1.2_x+y-z:@=/%,", 16, NULL), 0);
	assert_int_equal(label_check("09azAZ", 6, NULL), 0);
	trial_event(&t, DRIVER_LOAD_EXEC, 10, 0);
	give_label(10, "a b", t.time_ns + 1);
	trial_event(&t, DRIVER_LOAD_EXEC, 10, 0);
	assert_string_equal(label_of(10), "");
}

static void few_labels(void **state)
{
	struct labels *l = &t.follow.labels;
	struct base_err err = { 0 };
	char text[16];

	(void)state;
	for (int i = 0; i < LABELS_OF_USER; i++) {
		snprintf(text, sizeof(text), "l%d", i);
		assert_int_equal(labels_give(l, text, 1000, &err), 0);
		assert_int_equal(labels_give(l, text, 1000, &err), 0);
	}
	assert_int_equal(labels_give(l, "more", 1000, &err), -DCPI_ELIMIT);
	assert_non_null(strstr(err.text, "too many labels"));
	/* One that is there is free; others have their own. */
	assert_int_equal(labels_give(l, "l0", 1000, &err), 0);
	assert_int_equal(labels_give(l, "more", 1001, &err), 0);
	assert_int_equal(labels_give(l, "more", 1000, &err), 0);
	for (int i = LABELS_OF_USER + 1; i < LABELS_MAX; i++) {
		snprintf(text, sizeof(text), "r%d", i);
		assert_int_equal(labels_give(l, text, 0, &err), 0);
	}
	assert_int_equal(labels_give(l, "full", 0, &err), -DCPI_ELIMIT);
	assert_int_equal(labels_give(l, "full", 1001, &err), -DCPI_ELIMIT);
	assert_non_null(strstr(err.hint, "dcpictl epoch"));
	labels_new_epoch(l);
	assert_int_equal(labels_give(l, "full", 1000, &err), 0);
	for (int i = 1; i < LABELS_OF_USER; i++) {
		snprintf(text, sizeof(text), "l%d", i);
		assert_int_equal(labels_give(l, text, 1000, &err), 0);
	}
	assert_int_equal(labels_give(l, "l0", 1000, &err), -DCPI_ELIMIT);
	/* One text is kept once, however often it is given. */
	assert_ptr_equal(labels_get(l, "full"), labels_get(l, "full"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(kinds_of_memory),		 TEST(file_to_write_code_into),
		TEST(marker_is_no_mapping),	 TEST(vdso),
		TEST(nonsense_is_ignored),	 TEST(names),
		TEST(older_events_undo_nothing), TEST(newer_events_win),
		TEST(program_of_a_process),	 TEST(client_goes_over),
		TEST(second_client_waits),	 TEST(second_client_of_one_life),
		TEST(few_clients_wait),		 TEST(hand_over_before_events),
		TEST(each_life_its_own),	 TEST(child_of_the_unknown),
		TEST(child_older_than_listing),	 TEST(many_of_the_unknown),
		TEST(recorded_registry),	 TEST(no_memory_of_unused_images),
		TEST(label_from_exec_on),	 TEST(label_waits_for_its_time),
		TEST(what_is_told_is_kept),	 TEST(so_many_wait_at_most),
		TEST(label_of_the_listed),	 TEST(label_before_late_events),
		TEST(label_of_the_idle),	 TEST(told_is_recorded_in_time),
		TEST(labels_that_are_none),	 TEST(few_labels),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
