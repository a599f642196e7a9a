/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Pages of clients' words that the kernel holds in their places, so that the sampler may read them
 * by the kernel's own addresses (struct sample_pages). Linux 6.13 pins what a pointer of the kind
 * "uptr" in a task's storage points to when that is stored, and lets go of it with the storage:
 * when we say so, or the process is gone. We store pointers into a mapping of our own of the words,
 * of which we touch nothing: whatever a process does to its file, only the kernel meets it.
 */
#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "bpf_program.h"

enum { PAGE_LEN = sizeof(uint32_t) << SAMPLE_PAGE_SHIFT };

/* ---- the storage ----------------------------------------------------------------------------- */

/*
 * struct dcpi_pins { struct dcpi_words { int words[]; } uptr *pages[SAMPLE_NR_PINS]; }: its id, or
 * negative. Of a name that the kernel has, too, it would take its own type.
 */
static int add_value(struct btf *btf, int number)
{
	int words = btf__add_array(btf, number, number, 1u << SAMPLE_PAGE_SHIFT);
	int page = btf__add_struct(btf, "dcpi_words", PAGE_LEN);
	int r = btf__add_field(btf, "words", words, 0, 0);
	int tag = btf__add_type_tag(btf, "uptr", page);
	int pages = btf__add_array(btf, number, btf__add_ptr(btf, tag), SAMPLE_NR_PINS);
	int value = btf__add_struct(btf, "dcpi_pins", SAMPLE_NR_PINS * sizeof(uint64_t));

	if (r >= 0)
		r = btf__add_field(btf, "pages", pages, 0, 0);
	return r < 0 ? r : value;
}

static int make_storage(const struct btf *btf, int key, int value)
{
	LIBBPF_OPTS(bpf_map_create_opts, opts, .map_flags = BPF_F_NO_PREALLOC,
		    .btf_fd = (uint32_t)btf__fd(btf), .btf_key_type_id = (uint32_t)key,
		    .btf_value_type_id = (uint32_t)value);
	int fd = bpf_map_create(BPF_MAP_TYPE_TASK_STORAGE, "pins", sizeof(int),
				SAMPLE_NR_PINS * sizeof(uint64_t), 0, &opts);

	return fd < 0 ? -errno : fd;
}

int bpf_pins_make(void)
{
	struct btf *btf = btf__new_empty();
	int key, value, r;

	if (!btf)
		return -errno;
	key = btf__add_int(btf, "int", sizeof(int), BTF_INT_SIGNED);
	value = add_value(btf, key);
	r = value < 0 ? value : btf__load_into_kernel(btf);
	if (r >= 0)
		r = make_storage(btf, key, value);
	btf__free(btf);
	return r;
}

int bpf_pins_use(const struct bpf_programs *p, void *map)
{
	return p->pins_fd < 0 ? bpf_map__set_autocreate(map, false)
			      : bpf_map__reuse_fd(map, p->pins_fd);
}

/* @values: addresses of ours, or 0; NULL: no more. */
static int store(const struct bpf_programs *p, uint32_t tgid, const uint64_t *values)
{
	int task = (int)syscall(SYS_pidfd_open, tgid, 0), r;

	if (task < 0)
		return -errno;
	r = values ? bpf_map_update_elem(p->pins_fd, &task, values, BPF_ANY)
		   : bpf_map_delete_elem(p->pins_fd, &task);
	close(task);
	return r;
}

/* The kernel's own addresses of what is stored. */
static int ask(const struct bpf_programs *p, uint32_t tgid, uint64_t *at)
{
	struct sample_pins pins = { .tgid = (int32_t)tgid };
	LIBBPF_OPTS(bpf_test_run_opts, opts, .ctx_in = &pins, .ctx_size_in = sizeof(pins));
	int r = bpf_prog_test_run_opts(bpf_program__fd(p->objects[0]->progs.pins_take), &opts);

	if (r >= 0 && opts.retval)
		r = -ESRCH;
	for (size_t i = 0; i < SAMPLE_NR_PINS; i++)
		at[i] = pins.at[i];
	return r;
}

/* ---- pages of a client ----------------------------------------------------------------------- */

bool bpf_pins_known(const struct bpf_pins *pins, const struct driver_client *client)
{
	return pins->ino == client->words_ino && pins->off == client->words_off &&
	       pins->words == client->words && pins->nr_words == client->nr_words;
}

void bpf_pins_close(const struct bpf_programs *p, struct bpf_pins *pins)
{
	if (pins->nr)
		store(p, pins->tgid, NULL);
	if (pins->base)
		munmap(pins->base, pins->len);
	*pins = (struct bpf_pins){ 0 };
}

void bpf_pins_open(const struct bpf_programs *p, struct bpf_pins *pins, uint32_t tgid,
		   const struct driver_client *client)
{
	size_t before = client->words_off % (size_t)sysconf(_SC_PAGESIZE);
	size_t len = before + client->nr_words * sizeof(uint32_t);
	void *base = MAP_FAILED;

	if (p->pins_fd >= 0 && client->words_ino && client->nr_words &&
	    client->nr_words <= SAMPLE_NR_PAGES << SAMPLE_PAGE_SHIFT)
		base = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, client->words_fd,
			    (off_t)(client->words_off - before));
	*pins = (struct bpf_pins){ .tgid = tgid,
				   .ino = client->words_ino,
				   .off = client->words_off,
				   .words = client->words,
				   .nr_words = client->nr_words,
				   .base = base == MAP_FAILED ? NULL : base,
				   .len = len,
				   .before = before };
}

/* How many are pinned then, which stand first among its pages. */
static uint32_t add_wanted(struct bpf_pins *pins, const struct sample_pages *pages)
{
	uint32_t nr = pins->nr;

	for (size_t i = 0; i < SAMPLE_NR_PAGES && nr < SAMPLE_NR_PINS; i++)
		if (__atomic_load_n(&pages->at[i], __ATOMIC_RELAXED) == SAMPLE_PAGE_WANTED)
			pins->pages[nr++] = (uint8_t)i;
	return nr;
}

static int pin(const struct bpf_programs *p, const struct bpf_pins *pins, uint64_t *at)
{
	uint64_t values[SAMPLE_NR_PINS] = { 0 };
	int r;

	for (uint32_t i = 0; i < pins->nr; i++)
		values[i] = (uintptr_t)pins->base + pins->before + pins->pages[i] * PAGE_LEN;
	r = store(p, pins->tgid, values);
	return r < 0 ? r : ask(p, pins->tgid, at);
}

void bpf_pins_take(const struct bpf_programs *p, struct bpf_pins *pins, struct sample_pages *pages)
{
	uint64_t at[SAMPLE_NR_PINS];
	uint32_t nr = pins->base ? add_wanted(pins, pages) : pins->nr;

	if (nr == pins->nr)
		return;
	/* Also what fails may have been stored. */
	pins->nr = nr;
	if (pin(p, pins, at) < 0) {
		/* What was pinned before still is, and this will not do a second time. */
		munmap(pins->base, pins->len);
		pins->base = NULL;
		return;
	}
	for (uint32_t i = 0; i < nr; i++)
		__atomic_store_n(&pages->at[pins->pages[i]], at[i], __ATOMIC_RELEASE);
}
