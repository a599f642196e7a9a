/* SPDX-License-Identifier: BSD-2-Clause */
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fake_registry.h"

/* EM_* of what runs here: no other registry is accepted. */
#if defined(__aarch64__)
enum { MACHINE = 183 };
#elif defined(__riscv)
enum { MACHINE = 243 };
#else
enum { MACHINE = 62 };
#endif

#define FACILITIES_OFF WIRE_PAGE
#define RANGES_OFF     (FACILITIES_OFF + WIRE_NR_FACILITIES * sizeof(struct wire_facility))
#define RING_OFF       (RANGES_OFF + WIRE_NR_RANGES * sizeof(struct wire_range))
#define HEAP_LEN       (256u << 10)
#define NR_WORDS       16u

/* A test that has no memory has failed. */
static void must(bool good)
{
	if (!good)
		abort();
}

static uint64_t seq;

uint64_t fake_seq(void)
{
	return ++seq;
}

void fake_open(struct fake *f, size_t ring_len)
{
	seq = 0;
	*f = (struct fake){ .len = RING_OFF + ring_len + HEAP_LEN + NR_WORDS * sizeof(uint32_t) };
	f->fd = memfd_create(WIRE_MEMFD_NAME, MFD_CLOEXEC | MFD_ALLOW_SEALING);
	must(f->fd >= 0 && ftruncate(f->fd, (off_t)f->len) == 0);
	must(fcntl(f->fd, F_ADD_SEALS, F_SEAL_SHRINK) == 0);
	f->map = mmap(NULL, f->len, PROT_READ | PROT_WRITE, MAP_SHARED, f->fd, 0);
	must(f->map != MAP_FAILED);
	f->h = (void *)f->map;
	f->facilities = (void *)(f->map + FACILITIES_OFF);
	f->ranges = (void *)(f->map + RANGES_OFF);
	f->ring = f->map + RING_OFF;
	f->heap = f->ring + ring_len;
	f->h->magic = WIRE_REGISTRY_MAGIC;
	f->h->version = WIRE_REGISTRY_VERSION;
	f->h->header_len = WIRE_PAGE;
	f->h->total_len = f->len;
	f->h->facilities_off = FACILITIES_OFF;
	f->h->ranges_off = RANGES_OFF;
	f->h->ring_off = RING_OFF;
	f->h->ring_len = ring_len;
	f->h->heap_off = RING_OFF + ring_len;
	f->h->heap_len = HEAP_LEN;
	f->h->machine = MACHINE;
}

uint32_t *fake_words(struct fake *f)
{
	f->h->words_off = f->len - NR_WORDS * sizeof(uint32_t);
	f->h->words_addr = f->h->seq_addr = 0x700000;
	f->h->nr_words = NR_WORDS;
	return (void *)(f->map + f->h->words_off);
}

void fake_close(struct fake *f)
{
	munmap(f->map, f->len);
	close(f->fd);
}

uint32_t fake_facility(struct fake *f, const char *name)
{
	struct wire_facility *t = &f->facilities[f->h->nr_facilities];

	t->name_len = (uint32_t)strlen(name);
	memcpy(t->name, name, t->name_len);
	t->state = WIRE_FACILITY_OPEN;
	return f->h->nr_facilities++;
}

uint32_t fake_range(struct fake *f, uint32_t facility, uint32_t kind, uint64_t base, uint64_t len)
{
	f->ranges[f->h->nr_ranges] = (struct wire_range){ .facility = facility,
							  .kind = kind,
							  .base = base,
							  .len = len,
							  .flags = WIRE_RANGE_OWNED };
	return f->h->nr_ranges++;
}

void fake_put(struct fake *f, const void *record)
{
	const struct wire_head *r = record;
	uint64_t at = f->h->head % f->h->ring_len, left = f->h->ring_len - at;

	if (r->len > left) {
		struct wire_head pad = { .len = (uint32_t)left, .type = WIRE_PAD };

		memcpy(f->ring + at, &pad, sizeof(pad));
		f->h->head += left;
		at = 0;
	}
	memcpy(f->ring + at, r, r->len);
	f->h->head += r->len;
	if (r->type == WIRE_ROUTINE && seq > f->h->seq)
		f->h->seq = seq;
}

struct wire_routine *fake_routine(const struct fake_routine *w)
{
	size_t name_len = strlen(w->name), files_len = w->file ? 2 + strlen(w->file) : 0;
	size_t len = wire_routine_len(name_len, w->code_len, w->code, w->nr_lines, 0, files_len);
	struct wire_routine *r = calloc(1, len);
	uint8_t *p = (void *)(r + 1);

	must(len && r);
	r->head = (struct wire_head){ .len = (uint32_t)len,
				      .type = WIRE_ROUTINE,
				      .flags = w->code ? WIRE_ROUTINE_CODE : 0 };
	r->facility = w->facility;
	r->seq = w->seq ? w->seq : fake_seq();
	r->addr = w->addr;
	r->code_len = w->code_len;
	r->name_len = (uint32_t)name_len;
	r->nr_lines = w->nr_lines;
	r->nr_files = w->file != NULL;
	p = mempcpy(p, w->name, name_len);
	if (w->code)
		p = mempcpy(p, w->code, w->code_len);
	p = (uint8_t *)r + base_align_up((size_t)(p - (uint8_t *)r), 8);
	if (w->nr_lines)
		p = mempcpy(p, w->lines, w->nr_lines * sizeof(*w->lines));
	if (w->file) {
		*p++ = (uint8_t)strlen(w->file);
		*p++ = 0;
		memcpy(p, w->file, strlen(w->file));
	}
	return r;
}

void fake_put_when(struct fake *f, uint64_t time_ns)
{
	fake_put(f, &(struct wire_time){
			    .head = { .len = sizeof(struct wire_time), .type = WIRE_WHEN },
			    .time_ns = time_ns });
}

void fake_put_routine(struct fake *f, uint32_t facility, uint64_t addr, const char *name,
		      const void *code, size_t code_len)
{
	struct wire_routine *r = fake_routine(&(struct fake_routine){ .facility = facility,
								      .addr = addr,
								      .name = name,
								      .code = code,
								      .code_len = code_len });

	fake_put(f, r);
	free(r);
}

struct wire_slot *fake_slot(struct fake *f, const void *record)
{
	const struct wire_head *r = record;
	struct wire_slot *slot = (void *)(f->heap + f->h->heap_end);

	slot->len = (uint32_t)base_align_up(sizeof(*slot) + r->len, WIRE_SLOT_ALIGN);
	must(slot->len <= f->h->heap_len - f->h->heap_end);
	memcpy(slot + 1, r, r->len);
	slot->version += 2;
	f->h->heap_end += slot->len;
	return slot;
}

struct wire_slot *fake_slot_routine(struct fake *f, uint64_t number, uint64_t addr,
				    const char *name)
{
	struct wire_routine *r = fake_routine(&(struct fake_routine){
		.seq = number, .addr = addr, .name = name, .code_len = 16 });
	struct wire_slot *slot = fake_slot(f, r);

	free(r);
	if (f->h->seq < number)
		f->h->seq = number;
	return slot;
}

static void *extend(struct base_buf *b, uint16_t type, size_t len)
{
	struct wire_head *h;
	void *p;

	len = base_align_up(len, 8);
	must(base_buf_extend(b, len, &p) == 0);
	h = p;
	*h = (struct wire_head){ .len = (uint32_t)len, .type = type };
	return p;
}

void fake_facility_rec(struct base_buf *b, uint32_t index, const char *name)
{
	struct wire_facility_rec *r = extend(b, WIRE_FACILITY, sizeof(*r) + strlen(name));

	r->index = index;
	r->state = WIRE_FACILITY_OPEN;
	r->name_len = (uint32_t)strlen(name);
	r->machine = MACHINE;
	memcpy(r + 1, name, r->name_len);
}

void fake_range_rec(struct base_buf *b, uint32_t index, uint32_t facility, uint32_t kind,
		    uint64_t base, uint64_t len)
{
	struct wire_range_rec *r = extend(b, WIRE_RANGE, sizeof(*r));

	r->index = index;
	r->range = (struct wire_range){ .facility = facility,
					.kind = kind,
					.base = base,
					.len = len,
					.flags = WIRE_RANGE_OWNED };
}

void fake_routine_rec(struct base_buf *b, uint32_t facility, uint64_t addr, const char *name,
		      const void *code, size_t code_len)
{
	struct wire_routine *r = fake_routine(&(struct fake_routine){ .facility = facility,
								      .addr = addr,
								      .name = name,
								      .code = code,
								      .code_len = code_len });

	must(base_buf_append(b, r, r->head.len) == 0);
	free(r);
}

void fake_bytes_rec(struct base_buf *b, uint32_t facility, uint32_t kind, uint64_t base,
		    uint64_t range_len, const void *bytes, size_t len)
{
	struct wire_bytes *r = extend(b, WIRE_BYTES, sizeof(*r) + len);

	r->facility = facility;
	r->kind = kind;
	r->vaddr = r->range_base = base;
	r->bytes_len = len;
	r->range_len = range_len;
	memcpy(r + 1, bytes, len);
}

unsigned int fake_count(const struct base_buf *b, uint16_t type)
{
	const struct wire_head *h;
	unsigned int n = 0;

	WIRE_FOR_EACH (h, b->data, b->len, pos)
		n += h->type == type;
	return n;
}

const void *fake_nth(const struct base_buf *b, uint16_t type, unsigned int nth)
{
	const struct wire_head *h;

	WIRE_FOR_EACH (h, b->data, b->len, pos)
		if (h->type == type && !nth--)
			return h;
	must(false);
	return NULL;
}

const void *fake_first(const struct base_buf *b, uint16_t type)
{
	return fake_nth(b, type, 0);
}

const char *fake_helper_dir(void)
{
	const char *dir = getenv("DCPI_BIN");

	return dir ? dir : "build-dev/bin";
}

unsigned int fake_nr_descriptors(void)
{
	DIR *d = opendir("/proc/self/fd");
	unsigned int n = 0;

	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

bool fake_can_exec(const char *program)
{
	char path[4096];
	int status = 0;
	pid_t pid;

	snprintf(path, sizeof(path), "%s/%s", fake_helper_dir(), program);
	pid = fork();
	if (pid == 0) {
		int null = open("/dev/null", O_WRONLY);

		dup2(null, 2);
		execl(path, path, "-help", NULL);
		_exit(99);
	}
	return waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status) != 99;
}
