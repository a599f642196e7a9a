/* SPDX-License-Identifier: BSD-2-Clause */
/* The header of a registry is read and checked. */
#include <errno.h>
#include <sys/stat.h>

#include "registry_internal.h"

#define RING_MAX (1ull << 30)
#define HEAP_MAX (1ull << 30)

static bool within(uint64_t off, uint64_t len, uint64_t total)
{
	return off >= WIRE_PAGE && off % 8 == 0 && off <= total && len <= total - off;
}

/* Where the sampler is to look, in the process's own memory. */
static bool words_good(const struct wire_registry *h)
{
	uint64_t len = h->nr_words * sizeof(uint32_t);

	if (!h->nr_words)
		return true;
	return !(h->nr_words & (h->nr_words - 1)) && h->nr_words <= WIRE_NR_WORDS &&
	       within(h->words_off, len, h->total_len) && h->words_addr % sizeof(uint32_t) == 0 &&
	       h->seq_addr % sizeof(uint64_t) == 0 && registry_vaddr_good(h->words_addr, len) &&
	       registry_vaddr_good(h->seq_addr, sizeof(uint64_t));
}

/* In the process's memory, and its children's; the reader reads one page of that. */
static bool inherited_good(const struct wire_registry *h)
{
	return !h->inherited_addr ||
	       (h->inherited_addr % sizeof(struct wire_inherited) == 0 &&
		registry_vaddr_good(h->inherited_addr, sizeof(struct wire_inherited)));
}

static bool heap_good(const struct wire_registry *h)
{
	return !h->heap_len || (h->heap_len <= HEAP_MAX && h->heap_len % WIRE_SLOT_ALIGN == 0 &&
				within(h->heap_off, h->heap_len, h->total_len));
}

static bool header_good(const struct wire_registry *h)
{
	return within(h->facilities_off, WIRE_NR_FACILITIES * sizeof(struct wire_facility),
		      h->total_len) &&
	       within(h->ranges_off, WIRE_NR_RANGES * sizeof(struct wire_range), h->total_len) &&
	       within(h->ring_off, h->ring_len, h->total_len) && h->ring_len &&
	       h->ring_len % WIRE_PAGE == 0 && h->ring_len <= RING_MAX && words_good(h) &&
	       inherited_good(h) && heap_good(h);
}

/*
 * Some CPUs copy byte by byte where the copy's place in its page is a few bytes behind that of the
 * original (seen on an AMD EPYC with fsrm: up to 31), while the client stores: of a counter that
 * goes from 0x1ff to 0x200, 0x2ff may arrive. So the copy gets the original's place in its page.
 */
int registry_counters_copy(int fd, size_t off, void *to, size_t len)
{
	_Alignas(WIRE_PAGE) uint8_t page[WIRE_PAGE];
	int r = base_read_at(fd, off, page + off, len);

	if (r == 0)
		memcpy(to, page + off, len);
	return r;
}

#define OFF(field) offsetof(struct wire_registry, field)

int registry_counters_read(int fd, struct wire_registry *h)
{
	/* With those that stand beside them in 8 bytes. */
	static const size_t order[] = { OFF(flush_wanted), OFF(seq), OFF(heap_end), OFF(head),
					OFF(nr_facilities) };
	uint8_t now[OFF(pad1) - OFF(head)], *to = (uint8_t *)h;
	int r = registry_counters_copy(fd, OFF(head), now, sizeof(now));

	/* Counters only grow: all that are alike in two readings were so at one moment between. */
	if (r < 0 || memcmp(now, to + OFF(head), sizeof(now)) == 0)
		return r;
	memcpy(to + OFF(head), now, sizeof(now));
	for (size_t i = 0; r == 0 && i < sizeof(order) / sizeof(order[0]); i++)
		r = registry_counters_copy(fd, order[i], to + order[i], 8);
	return r;
}

int registry_header_read(int fd, struct wire_registry *h)
{
	struct stat st;
	int r;

	if (fstat(fd, &st) < 0)
		return -errno;
	r = base_read_at(fd, 0, h, sizeof(*h));
	if (r < 0)
		return r;
	if (h->magic != WIRE_REGISTRY_MAGIC)
		return -DCPI_EFORMAT;
	if (h->version != WIRE_REGISTRY_VERSION || h->header_len != WIRE_PAGE)
		return -DCPI_EVERSION;
	/* Its samples are of this machine, or there are none. */
	if (h->machine != REGISTRY_MACHINE)
		return -DCPI_EUNSUPPORTED;
	if (st.st_size < 0 || h->total_len > (uint64_t)st.st_size || !header_good(h))
		return -DCPI_EFORMAT;
	return registry_counters_read(fd, h);
}
