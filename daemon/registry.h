/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What runs in the reader process and in its tests: parsing of a client's registry, contents of the
 * ranges a client owns, identity of mapped files. Every byte read here was written by somebody
 * else; nothing here trusts one, and each call does bounded work.
 */
#ifndef DCPI_REGISTRY_H
#define DCPI_REGISTRY_H

#include "base.h"
#include "wire.h"

/* Addresses of a client above this are lies: no user address space reaches so far. */
#define REGISTRY_VADDR_MAX (1ull << 56)
/* A parse stops when it has made this many bytes. One record more may still be behind it. */
#define REGISTRY_ANSWER_SOFT (8u << 20)
/* A range is read up to here in one call. */
#define REGISTRY_RANGE_MAX (32u << 20)

/*
 * Read memory of the client: how many bytes from @addr on could be read (at most @len), or -errno
 * where not even the first one could.
 */
struct registry_memory {
	ssize_t (*read)(void *ctx, uint64_t addr, void *to, size_t len);
	void *ctx;
};

/*
 * Read and check the header of the registry behind @fd: magic, version, every table within the
 * file. 0, -DCPI_EFORMAT, -DCPI_EVERSION or -errno.
 */
int registry_header_read(int fd, struct wire_registry *h);

/*
 * Append to @out: a WIRE_FACILITY for each facility, a WIRE_RANGE for each range, then the ring's
 * routines from *@tail on, all checked; *@tail moves behind what was taken. Routines without bytes
 * get them from @memory (may be NULL), where that can be read. Returns the number of malformed
 * slots and records (after a record whose length lies the rest is skipped up to the head), -ESTALE
 * where the ring was overwritten meanwhile from *@tail on (nothing then in @out is good), or
 * negative as registry_header_read, -ENOMEM.
 */
int registry_parse(int fd, const struct registry_memory *memory, uint64_t *tail,
		   struct base_buf *out);

/*
 * Append the contents of @range, up to REGISTRY_RANGE_MAX bytes of it, as WIRE_BYTES records: one,
 * unless there is a large gap of zeros or of nothing within. Trailing zeros are left out; a range
 * of zeros gives no record. 0, -ENOMEM, or -ESRCH where @memory says so (the process is gone).
 */
int registry_range_read(const struct wire_range *range, const struct registry_memory *memory,
			struct base_buf *out);

/* NT_GNU_BUILD_ID of the ELF file, else 20 bytes of a hash of its heads, size and first 64 KiB. */
int registry_file_id(int fd, struct base_id *id);
/* The build-id in a block of ELF notes, or -ENOENT. */
int registry_note_id(const void *notes, size_t len, size_t align, struct base_id *id);

/*
 * Of a process, from /proc: when it started (ns since boot), and a number that another process or
 * another program of the same process (exec) does not have: where its code and its stack begin goes
 * into it. Never 0. Either may be NULL. 0, or -ESRCH.
 */
int registry_process_life(int32_t pid, uint64_t *start_time_ns, uint64_t *life);

#endif
