/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * This part runs in the reader process and in its tests: parsing of a client's registry, contents
 * of the ranges a client owns, identity of mapped files. Every byte read here was written by
 * another program; nothing here trusts one, and each call does bounded work.
 */
#ifndef DCPI_REGISTRY_H
#define DCPI_REGISTRY_H

#include <elf.h>
#include <sys/stat.h>

#include "base.h"
#include "wire.h"

/* EM_* of what runs on this machine. */
#if defined(__x86_64__)
#define REGISTRY_MACHINE EM_X86_64
#elif defined(__aarch64__)
#define REGISTRY_MACHINE EM_AARCH64
#elif defined(__riscv)
#define REGISTRY_MACHINE EM_RISCV
#else
#define REGISTRY_MACHINE EM_NONE
#endif

/* Addresses of a client above this are lies: no user address space reaches so far. */
#define REGISTRY_VADDR_MAX (1ull << 56)
/* A parse stops when it has made this many bytes. One record more may still be behind it. */
#define REGISTRY_ANSWER_SOFT (2u << 20)
/* … and when it has taken so long, which its user's turn of the main loop still pays for. */
#define REGISTRY_CALL_NS 80000000ull
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
 * file. 0, -DCPI_EFORMAT, -DCPI_EVERSION, -DCPI_EUNSUPPORTED (another machine's code) or -errno.
 */
int registry_header_read(int fd, struct wire_registry *h);

/*
 * The counters of a header that was read and checked, anew. In the order in which the writer's
 * stores are undone: what a flush waits for is up to seq; what a record up to seq changed is below
 * heap_end, or in the ring below head; what it refers to is in the tables. 0, or negative as
 * base_read_at.
 */
int registry_counters_read(int fd, struct wire_registry *h);

/* Where a reading of a registry goes on; begin with zero and no list. */
struct registry_place {
	uint64_t tail; /* of the ring: behind the last record taken */
	uint64_t seq;  /* of the last record taken from the ring; one that is not above it lies */
	/* The list of what lives. 0: wanted, once the ring is read; then where in the heap it goes
	 * on; REGISTRY_NO_LIST: not wanted, or told to the end. */
	uint64_t list_at;
	uint64_t list_seq;  /* the header's seq when the list began; the reading fills it in */
	uint64_t known_seq; /* routines in the list up to this change come without their code */
};
#define REGISTRY_NO_LIST UINT64_MAX

/*
 * Append to @out: a WIRE_FACILITY for each facility, a WIRE_RANGE for each range, then the ring's
 * records from @place->tail on, all checked (below), and, when all of the ring was taken and a list
 * is wanted, what lives: the same from the heap with WIRE_ROUTINE_LISTED, as far as it came
 * by change list_seq, WIRE_LISTED at its end.
 * @place moves behind what was taken; where that was not all, call again.
 *
 * ROUTINE, MOVE: code that is not in the record is read from @memory (may be NULL) where that can
 * be (WIRE_ROUTINE_FETCHED). OBJECT: comes without its file, then its routines (WIRE_ROUTINE of the
 * same seq, part 0, 1, …); none where the file cannot be read.
 *
 * Returns the number of malformed slots and records (after a record whose length lies the rest of
 * the ring is skipped up to the head, that of the heap up to its end), -ESTALE where the ring was
 * overwritten meanwhile from @place->tail on, or negative as registry_header_read, -ENOMEM. After a
 * failure @place is as before and nothing in @out is good.
 */
int registry_parse(int fd, const struct registry_memory *memory, struct registry_place *place,
		   struct base_buf *out);

/*
 * Append the contents of @range, up to REGISTRY_RANGE_MAX bytes of it, as WIRE_BYTES records: one,
 * unless there is a large gap of zeros or of nothing within. Trailing zeros are left out; a range
 * of zeros gives no record. 0, -ENOMEM, or -ESRCH where @memory says so (the process is gone).
 */
int registry_range_read(const struct wire_range *range, const struct registry_memory *memory,
			struct base_buf *out);

/* NT_GNU_BUILD_ID of the ELF file, else 20 bytes of a hash of its heads, size and first 64 KiB.
 * *@elf (may be NULL): it is an ELF file. */
int registry_file_id(int fd, struct base_id *id, bool *elf);

/*
 * Of a process, from /proc: when it started (ns since boot), and a number that another process or
 * another program of the same process (exec) does not have: where its code and its stack begin goes
 * into it. Never 0. Either may be NULL. 0, or -ESRCH.
 */
int registry_process_life(int32_t pid, uint64_t *start_time_ns, uint64_t *life);
/* Process @pid is gone, or ends and has no memory any more: it executes nothing. */
bool registry_process_has_ended(int32_t pid);
/*
 * Is user @uid the only one whom process @pid acts for: are its real, effective and saved user that
 * one? 0, -EPERM, or -ESRCH: the process is gone.
 */
int registry_process_check(int32_t pid, uint32_t uid);
/*
 * May that user look into process @pid? Not into one that runs with rights which its user has not,
 * that has given up rights since its exec, or that chose not to be dumped.
 */
bool registry_process_open(int32_t pid, uint32_t uid);

/* Bytes of a file in an address space; len 0: any of them, anywhere. */
struct registry_part {
	uint64_t addr, len, off;
};
/* Does process @pid, at this moment, have @part of @file (st_dev, st_ino) mapped? */
bool registry_process_maps(int32_t pid, const struct stat *file, const struct registry_part *part);

#endif
