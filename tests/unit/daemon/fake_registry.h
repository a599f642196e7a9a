/* SPDX-License-Identifier: BSD-2-Clause */
/* A registry made by hand, as libdbgdyn would or as a liar would. */
#ifndef FAKE_REGISTRY_H
#define FAKE_REGISTRY_H

#include "base.h"
#include "wire.h"

struct fake {
	int fd;	      /* sealed memfd */
	uint8_t *map; /* all of it, writable */
	size_t len;
	struct wire_registry *h;
	struct wire_facility *facilities;
	struct wire_range *ranges;
	uint8_t *ring;
	uint8_t *heap; /* 256 KiB, none of it used */
};

void fake_open(struct fake *f, size_t ring_len);
void fake_close(struct fake *f);
/* Give it its generation words: 16, which it has not unless it is told so. */
uint32_t *fake_words(struct fake *f);
uint32_t fake_facility(struct fake *f, const char *name);
uint32_t fake_range(struct fake *f, uint32_t facility, uint32_t kind, uint64_t base, uint64_t len);
/* Copy a record into the ring, padding to its start first where it does not fit before the end. */
void fake_put(struct fake *f, const void *record);

/* The time of the change that is put next. */
void fake_put_when(struct fake *f, uint64_t time_ns);

struct fake_routine {
	uint32_t facility;
	uint64_t seq; /* 0: the next one */
	uint64_t addr;
	const char *name;
	const void *code; /* NULL: none in the record */
	size_t code_len;
	const struct wire_line *lines;
	uint32_t nr_lines;
	const char *file; /* one, or NULL */
};
/* Each time a higher one, for records made by hand; the functions below use them up too. It begins
 * anew with each registry. */
uint64_t fake_seq(void);
/* The record of it, malloc'ed. */
struct wire_routine *fake_routine(const struct fake_routine *what);
void fake_put_routine(struct fake *f, uint32_t facility, uint64_t addr, const char *name,
		      const void *code, size_t code_len);

/* Append a slot to the heap. It can be changed afterwards: what lives there follows it. */
struct wire_slot *fake_slot(struct fake *f, const void *record);
/* A routine of facility 0, 16 bytes long. */
struct wire_slot *fake_slot_routine(struct fake *f, uint64_t number, uint64_t addr,
				    const char *name);

/* Records of a type in @b; the first of them, or the one after @nth, which must be there. */
unsigned int fake_count(const struct base_buf *b, uint16_t type);
const void *fake_first(const struct base_buf *b, uint16_t type);
const void *fake_nth(const struct base_buf *b, uint16_t type, unsigned int nth);

/* Open in this process, and a few more: for comparing. */
unsigned int fake_nr_descriptors(void);
/* Under user-mode emulation a program cannot start another one of its kind: can it be run? */
bool fake_can_exec(const char *program);
/* Where the helper programs are. */
const char *fake_helper_dir(void);

/* Normalized records, as the reader makes them, for dyn_records. */
void fake_facility_rec(struct base_buf *b, uint32_t index, const char *name);
void fake_range_rec(struct base_buf *b, uint32_t index, uint32_t facility, uint32_t kind,
		    uint64_t base, uint64_t len);
void fake_routine_rec(struct base_buf *b, uint32_t facility, uint64_t addr, const char *name,
		      const void *code, size_t code_len);
void fake_bytes_rec(struct base_buf *b, uint32_t facility, uint32_t kind, uint64_t base,
		    uint64_t range_len, const void *bytes, size_t len);

#endif
