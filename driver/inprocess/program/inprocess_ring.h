/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The ring in which a program that samples itself keeps its samples: one file for each life of a
 * process (start, exec, fork) in the private folder of dcpirun. Written by the agent (libdcpirun,
 * program/) through a mapping, from signal handlers; read by the source "inprocess" with
 * pread, which believes nothing of it. libc only.
 *
 * A record is one or more units. Who writes reserves them by moving head, fills them, and stores
 * the sequence number of the first one last, with release: position + 1, never the same twice.
 */
#ifndef DCPI_INPROCESS_RING_H
#define DCPI_INPROCESS_RING_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

/* Tells the agent "PERIOD_NS:NR_UNITS:FOLDER", decimal. */
#define INPROCESS_ENV	 "DCPI_INPROCESS"
#define INPROCESS_PREFIX "ring." /* prefix of the files' names; the agent adds a unique part */
/* Name prefix of an empty file: a process that could not make a ring, and is not sampled. */
#define INPROCESS_FAILED INPROCESS_PREFIX "x"
#define INPROCESS_MAGIC	 0x31474e4952494344ull /* "DCIRING1" */

enum {
	INPROCESS_VERSION = 1,
	INPROCESS_HEAD_LEN = 4096, /* the units begin behind it */
	INPROCESS_UNITS_MIN = 64,  /* a power of two */
	INPROCESS_UNITS_MAX = 1 << 20,
	INPROCESS_PATH_MAX = 4095, /* bytes of a mapping's path */
};

enum inprocess_born {
	INPROCESS_EXEC = 1, /* a new program */
	INPROCESS_FORK,	    /* a copy of parent_pid's process, mappings and all */
};

struct inprocess_head {
	/* 0: written once; magic last, with release */
	uint64_t magic;
	uint32_t version;
	uint32_t nr_units;
	int32_t pid, parent_pid;	  /* as its own PID namespace numbers them */
	uint64_t pid_space, parent_space; /* inode of that namespace, 0: not known */
	uint64_t start_ns;		  /* CLOCK_MONOTONIC */
	uint64_t period_ns;		  /* mean CPU time from sample to sample of a thread */
	uint32_t born;			  /* enum inprocess_born */
	uint32_t reserved0;
	char comm[16];
	uint8_t pad0[128 - 80];

	/* 128: the agent. Counters only grow. */
	uint64_t head;	    /* units ever reserved */
	uint64_t received;  /* samples ever taken, counted before anything else */
	uint64_t lost;	    /* number of records that found the ring full */
	uint64_t lost_maps; /* samples whose mapping was not told: ring full, /proc not read */
	uint64_t missed;    /* samples that were due while a signal was still waiting */
	uint32_t ended;	    /* the program is at its end: little comes any more */
	uint8_t pad1[128 - 44];

	/* 256: the reader, by pwrite */
	uint64_t tail; /* units read */
	uint32_t stop; /* the reader has ended: write nothing more */
	uint32_t reserved1;
};
static_assert(sizeof(struct inprocess_head) == 272, "head");
static_assert(offsetof(struct inprocess_head, head) == 128, "the agent's line");
static_assert(offsetof(struct inprocess_head, tail) == 256, "the reader's line");

enum inprocess_type {
	INPROCESS_SAMPLE = 1, /* addr: where thread tid was; one unit */
	INPROCESS_MAP,	      /* addr: where it begins; struct inprocess_map in the units behind */
};

struct inprocess_unit {
	uint64_t seq;	  /* position + 1 */
	uint64_t time_ns; /* CLOCK_MONOTONIC */
	uint64_t addr;	  /* vaddr */
	uint32_t tid;
	uint16_t type; /* enum inprocess_type */
	uint16_t nr;   /* units of the record, this one included */
};
static_assert(sizeof(struct inprocess_unit) == 32, "unit");

/* An executable mapping, told before the first sample in it. The path follows, path_len bytes. */
struct inprocess_map {
	uint64_t len, file_off, inode;
	uint32_t dev_major, dev_minor;
	uint32_t prot; /* PROT_* */
	uint16_t path_len;
	uint8_t id_len; /* length of the build-id, 0: none, at most 32 */
	uint8_t reserved;
	uint8_t id[32];
};
static_assert(sizeof(struct inprocess_map) == 72, "mapping");

#endif
