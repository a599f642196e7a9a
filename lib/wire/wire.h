/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Layouts that cross a process boundary: the registry that a JIT process shares, its records, the
 * doorbell, and the names of the control protocol. Fixed width, little-endian, versioned; every
 * size is asserted. libc only; used by libdbgdyn, the daemon and its helpers. Byte order: the
 * process's own CPU writes the registry, and x86-64, aarch64 and riscv64 Linux are little-endian.
 * Only what reads databases is built for big-endian machines; it turns the notes of pseudo-images.
 */
#ifndef DCPI_WIRE_H
#define DCPI_WIRE_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* ---- where things are ------------------------------------------------------------------------ */

#define WIRE_RUN_DIR                                                                               \
	"/run/dcpi" /* default; $DCPI_RUN in both library (secure_getenv) and tools                \
		     */
#define WIRE_CONTROL_NAME "control" /* stream socket in the run dir: JSON lines */
#define WIRE_DYN_NAME	  "dyn"	    /* seqpacket socket in the run dir: hand-over of registries */
#define WIRE_QUEUE_NAME	  "/dcpi"   /* POSIX message queue: doorbell; $DCPI_QUEUE likewise */
#define WIRE_MEMFD_NAME	  "dbgdyn"  /* shows as /memfd:dbgdyn in maps and mmap events */

/* ---- registry -------------------------------------------------------------------------------- */

#define WIRE_REGISTRY_MAGIC   0x3147455249504344ull /* "DCPIREG1" */
#define WIRE_REGISTRY_VERSION 2u
#define WIRE_PAGE	      4096u
#define WIRE_NR_FACILITIES    64u
#define WIRE_NR_RANGES	      2048u
#define WIRE_FACILITY_NAME    104u
#define WIRE_NR_WORDS	      65536u /* generation words at most, a power of two */
#define WIRE_BLOCK_SHIFT      12     /* addresses of a block share a word */

enum wire_facility_state { WIRE_FACILITY_FREE, WIRE_FACILITY_OPEN, WIRE_FACILITY_ENDED };
enum wire_range_kind { WIRE_RANGE_NONE, WIRE_RANGE_CODE, WIRE_RANGE_DST, WIRE_RANGE_ARENA };

/*
 * In the process's own memory, which fork copies: so a child's memory tells what it inherited, to a
 * daemon that was not there.
 */
struct wire_inherited {
	uint64_t registry; /* its number, of this process or the last ancestor with one; 0: none */
	uint64_t seq;	   /* number of the last record made; stored after all changes of it */
};

/*
 * Page 0. Two writers, on different cache lines: the library (mapping) and the daemon (pwrite on
 * the descriptor; it touches nothing of a client in its own memory). All counters only grow.
 */
struct wire_registry {
	/* 0: written once, before the descriptor leaves the process */
	uint64_t magic;
	uint32_t version;
	uint32_t header_len; /* WIRE_PAGE */
	uint64_t total_len;
	uint64_t facilities_off; /* struct wire_facility [WIRE_NR_FACILITIES] */
	uint64_t ranges_off;	 /* struct wire_range [WIRE_NR_RANGES] */
	uint64_t ring_off;
	uint64_t ring_len;  /* a multiple of 4096 */
	uint32_t machine;   /* ELF EM_* of the code */
	uint32_t nr_words;  /* a power of two; 0: none */
	uint64_t words_off; /* uint32_t [nr_words] */
	uint64_t heap_off;  /* live routines: struct wire_slot, one behind the other */
	uint64_t heap_len;
	/* For the sampler, which reads the process's memory, or has the words' pages pinned: where
	 * words and seq are mapped. */
	uint64_t words_addr, seq_addr;
	/* For a daemon that comes after a fork. number 0: by a library that tells nothing of it. */
	uint64_t number;	 /* number of this registry: no other process has it */
	uint64_t inherited_addr; /* where struct wire_inherited is, at a multiple of 16 */
	struct wire_inherited
		inherited; /* what this process had inherited by fork when it made this registry */
	uint8_t pad0[256 - 136];

	/* 256: the library */
	uint64_t head; /* bytes ever put into the ring; stored with release after the record */
	uint64_t nr_dropped;		   /* records that found the ring full */
	uint32_t nr_facilities, nr_ranges; /* used slots: stored with release after the slot */
	uint32_t
		flush_wanted; /* raised by flush and end; the daemon answers with the same number */
	uint32_t reserved1;
	uint64_t seq; /* number of the last record made; stored with release after all changes of it
		       */
	uint64_t heap_end;    /* bytes of the heap ever used */
	uint64_t nr_unlisted; /* registrations ever that found no room in the heap */
	uint64_t nr_left_out; /* entries of routines' tables ever that made no sense */
	uint8_t pad1[256 - 64];

	/* 512: the daemon */
	uint64_t tail;	   /* bytes of the ring that are read and kept; the rest is still needed */
	uint32_t attached; /* not 0: a daemon reads this registry */
	uint32_t flush_done;  /* everything put before this flush_wanted is on disk, or failed: */
	int32_t flush_status; /* 0, or the -errno of the last flush */
	uint32_t flush_seen;  /* the flush_wanted that it met last; the answer may take its time */
	uint8_t pad2[WIRE_PAGE - 512 - 24];
};
static_assert(sizeof(struct wire_registry) == WIRE_PAGE, "registry header");
static_assert(offsetof(struct wire_registry, head) == 256, "library's line");
static_assert(offsetof(struct wire_registry, tail) == 512, "daemon's line");

struct wire_facility {
	uint32_t state;	     /* enum wire_facility_state, stored with release */
	uint32_t name_len;   /* at most WIRE_FACILITY_NAME */
	uint32_t end_wanted; /* the flush_wanted of its end, 0 before and where that gave up */
	uint32_t reserved[3];
	char name[WIRE_FACILITY_NAME]; /* as the application gave it, no NUL needed */
};
static_assert(sizeof(struct wire_facility) == 128, "facility");

/*
 * An application-owned range, or (ARENA) addresses in which a record writer's code lies, for the
 * sampler to know. Never removed.
 */
struct wire_range {
	uint32_t facility; /* index */
	uint32_t kind;	   /* enum wire_range_kind, stored with release last */
	uint64_t base;	   /* vaddr */
	uint64_t len;	   /* bytes, above 0 */
	uint32_t flags;	   /* WIRE_RANGE_OWNED */
	uint32_t reserved;
};
static_assert(sizeof(struct wire_range) == 32, "range");

/* The daemon reads the range's bytes itself (as DBG$DYN_ADD has it); else routines bring theirs. */
#define WIRE_RANGE_OWNED 1u

/*
 * Generations. Each change of the registry's routines (WIRE_ROUTINE, WIRE_RETIRE, WIRE_MOVE,
 * WIRE_OBJECT) has a number, seq: 1, 2, 3, …, leaving out those whose low 32 bits are 0. The word
 * of address a is words[(a >> WIRE_BLOCK_SHIFT) % nr_words], so blocks may share one. A change that
 * ends a routine, or takes an address that was used before, stores the low half of its seq into the
 * words of all blocks it concerns, after its record and before the call returns; the first
 * registration at a virgin address stores nothing. So a sample that was taken with word w belongs
 * to the routine that lives at its address after all changes up to w; after a retirement (nobody
 * lives there), to the next one that comes.
 *
 * A record goes into the ring where a daemon has the registry, and is left out (seq tells) where
 * there is none or the ring is full. What lives then is known by the heap: one slot a live routine
 * or object.
 */

/*
 * A slot of the heap. Its length never changes; what it holds, a record without code
 * (WIRE_ROUTINE_CODE not set), or nothing (WIRE_PAD), does. Read it, then its version again.
 */
struct wire_slot {
	uint32_t len;	  /* with this head; a multiple of 64 */
	uint32_t version; /* odd while it is being changed; another after each change */
};
static_assert(sizeof(struct wire_slot) == 8, "slot");
#define WIRE_SLOT_ALIGN 64u

/* ---- records --------------------------------------------------------------------------------- */

/*
 * One record format serves the registry's ring, the reader's answers, recorded streams and the
 * jobs of the pseudo-image writer. A stream is a sequence of records, each 8-byte aligned within
 * it. Unknown types are skipped by length. Numbers are never reused.
 */
enum wire_type {
	WIRE_PAD = 1,	    /* skip; fills the ring's end */
	WIRE_ROUTINE = 2,   /* struct wire_routine */
	WIRE_RETIRE = 3,    /* struct wire_retire: code is gone */
	WIRE_MOVE = 4,	    /* struct wire_move: a routine stands elsewhere now */
	WIRE_FACILITY = 5,  /* struct wire_facility_rec: reader, replay */
	WIRE_RANGE = 6,	    /* struct wire_range_rec: reader, replay */
	WIRE_BYTES = 7,	    /* struct wire_bytes: contents of an owned CODE or DST range */
	WIRE_IMAGE = 8,	    /* struct wire_image: head of a pseudo-image job */
	WIRE_RUN = 9,	    /* struct wire_run: which vaddrs stand at which image offsets */
	WIRE_REPLACES = 10, /* struct wire_replaces: an earlier build-id of the same image */
	WIRE_OBJECT = 11,   /* struct wire_object: an ELF file in memory, relocated */
	WIRE_LISTED = 12,   /* struct wire_listed: reader; ends the list of what lives */
	WIRE_PLACE = 13,    /* struct wire_place: what stands at an ELF address of its own */
	WIRE_INSTANCE = 14, /* struct wire_instance: a process whose code is in the image */
	WIRE_TIME = 15,	    /* struct wire_time: reader; when what follows happened */
	WIRE_WHEN = 16,	    /* struct wire_time: ring; when the one record behind it happened */
};

struct wire_head {
	uint32_t len; /* whole record with this head, a multiple of 8, at least 8 */
	uint16_t type;
	uint16_t flags;
};
static_assert(sizeof(struct wire_head) == 8, "record head");

#define WIRE_RECORD_MAX (64u << 20) /* longer records are malformed */
#define WIRE_NAME_MAX	4095u /* bytes of a routine's name; longer ones are cut by the library */
#define WIRE_CODE_MAX	(16u << 20)

/*
 * A routine. Behind the struct, in this order and without gaps: name (name_len bytes),
 * code (code_len bytes if WIRE_ROUTINE_CODE is set, else nothing: read them from the process),
 * padding to 8, nr_lines × struct wire_line, nr_inlines × struct wire_inline, then nr_files × (u16
 * length, that many bytes): names of files and of inlined routines. With WIRE_ROUTINE_FRAMES
 * padding to 8 again, and struct wire_frame up to the end; an older daemon passes over them.
 */
struct wire_routine {
	struct wire_head head;
	uint32_t facility;
	uint32_t part; /* counts the routines of an object; else 0 */
	uint64_t seq; /* number of its registration or last move, above 0; with part it is unique */
	uint64_t addr;	   /* vaddr of its first byte */
	uint64_t code_len; /* above 0, at most WIRE_CODE_MAX */
	uint32_t name_len;
	uint32_t nr_lines;
	uint32_t nr_files;
	uint32_t nr_inlines;
};
static_assert(sizeof(struct wire_routine) == 56, "routine");
#define WIRE_ROUTINE_CODE 1u /* head.flags */
/* Set by the reader: the bytes were read from the process later, not put by the writer. */
#define WIRE_ROUTINE_FETCHED 2u
/* Its words have moved: others lived at some of its addresses before. Also of MOVE and OBJECT. */
#define WIRE_ROUTINE_REUSES 4u
/* Set by the reader: it comes from the heap. */
#define WIRE_ROUTINE_LISTED 8u
/* Frames are told, one at least. */
#define WIRE_ROUTINE_FRAMES 16u
/* Made by the daemon: the last one of its files is no name but CPython's table of locations, which
 * tells the lines behind the first one. */
#define WIRE_ROUTINE_LOCATIONS 32u

/* The code from code_off on (up to the next entry) is of this line; ascending code_off. */
struct wire_line {
	uint32_t code_off;
	uint32_t line;		/* 0: no source */
	uint32_t file;		/* index into the record's files */
	uint16_t column;	/* from 1; 0: unknown */
	uint16_t discriminator; /* DWARF's, low bits: tells blocks of one line apart */
};
static_assert(sizeof(struct wire_line) == 16, "line");

/*
 * The code from code_off on is that of a routine inlined there. In preorder: an entry of depth d
 * lies within the last one before it of depth d - 1; entries of one depth ascend and do not
 * overlap.
 */
struct wire_inline {
	uint32_t code_off, code_len; /* code_len above 0 */
	uint32_t name;		     /* index into the record's files */
	uint32_t call_file; /* likewise: where it is called from; its line is 0 where unknown */
	uint32_t call_line;
	uint32_t depth; /* 0: inlined into the routine itself; at most WIRE_INLINE_DEPTH */
};
static_assert(sizeof(struct wire_inline) == 24, "inline");
#define WIRE_INLINE_DEPTH 64u

/* The frame of the routine before the instruction at code_off, as its runtime says (dbgdyn.h). */
struct wire_frame {
	uint32_t code_off; /* ascending, each once */
	uint32_t flags;	   /* WIRE_FRAME_BY_FP: cfa_off counts from the frame pointer; and below */
	int32_t cfa_off;
	int32_t fp_off, link_off; /* from the CFA; WIRE_FRAME_IN_REGISTER, WIRE_FRAME_LOST */
	uint32_t reserved;
};
static_assert(sizeof(struct wire_frame) == 24, "frame");
#define WIRE_FRAME_BY_FP       1u
#define WIRE_FRAME_FALLBACK    2u /* of a dump: it counts where the code proves nothing itself */
#define WIRE_FRAME_IN_REGISTER 0
#define WIRE_FRAME_LOST	       INT32_MIN
#define WIRE_FRAME_FAR	       (1 << 20) /* no offset is above, or below its negative */

/* A fault of a frame, but for its code_off, as text; NULL: there is none. */
const char *wire_frame_fault(const struct wire_frame *f);

/*
 * Code is gone. @handle: the seq of the routine or object, as registered or last moved; 0: whatever
 * begins or lies in [addr, addr + code_len).
 */
struct wire_retire {
	struct wire_head head;
	uint32_t facility;
	uint32_t reserved;
	uint64_t seq, handle;
	uint64_t addr, code_len; /* the range that it covered, for the words */
};
static_assert(sizeof(struct wire_retire) == 48, "retire");

/* As a retirement at @from, and a registration of the same name and lines at @to. */
struct wire_move {
	struct wire_head
		head; /* flags: WIRE_ROUTINE_CODE: code_len bytes follow, as they are at @to */
	uint32_t facility;
	uint32_t reserved;
	uint64_t seq,
		handle; /* the routine's seq so far; from now on this one. 0: who is at from */
	uint64_t from, to, code_len;
};
static_assert(sizeof(struct wire_move) == 56, "move");

/*
 * A relocated ELF file: its symbols and lines tell of its routines, which the reader makes
 * WIRE_ROUTINE records from (one seq, part 0, 1, …). Addresses in it count from @bias. The code is
 * read from where it runs.
 */
struct wire_object {
	struct wire_head
		head; /* flags: WIRE_ROUTINE_CODE: elf_len bytes follow, else read them there */
	uint32_t facility;
	uint32_t reserved;
	uint64_t seq;
	uint64_t elf_addr, elf_len; /* vaddr */
	uint64_t bias;
	uint64_t addr, code_len; /* all its code lies here */
};
static_assert(sizeof(struct wire_object) == 64, "object");

/* All that lives was told before this, as of some moment between the two changes. */
struct wire_listed {
	struct wire_head head;
	uint64_t seq_before, seq_after;
	uint64_t nr_unlisted;
};
static_assert(sizeof(struct wire_listed) == 32, "listed");

/*
 * The changes behind it in the stream happened at @time_ns (CLOCK_MONOTONIC), as their runtime
 * said; 0: some time before they were read. WIRE_WHEN: the one change behind it, in the same step
 * of the head. An older daemon skips it.
 */
struct wire_time {
	struct wire_head head;
	uint64_t time_ns;
};
static_assert(sizeof(struct wire_time) == 16, "time");

struct wire_facility_rec {
	struct wire_head head;
	uint32_t index;
	uint32_t state;
	uint32_t name_len; /* name follows */
	uint32_t machine;  /* EM_* */
};
static_assert(sizeof(struct wire_facility_rec) == 24, "facility record");

struct wire_range_rec {
	struct wire_head head;
	uint32_t index;	  /* slot in the registry */
	uint32_t dst_len; /* in a pseudo-image's note: of a DST range, its bytes there; else 0 */
	struct wire_range range;
};
static_assert(sizeof(struct wire_range_rec) == 48, "range record");

/* Bytes of an owned range as read now; trailing zeros of the range may be left out. */
struct wire_bytes {
	struct wire_head head;
	uint32_t facility;
	uint32_t kind;			/* enum wire_range_kind */
	uint64_t vaddr;			/* address of the first byte */
	uint64_t bytes_len;		/* bytes follow */
	uint64_t range_base, range_len; /* the whole range */
};
static_assert(sizeof(struct wire_bytes) == 48, "bytes");
/* A longer range is several records of so many bytes; an image's identity tells them apart. */
#define WIRE_BYTES_MOST (WIRE_RECORD_MAX / 2)

/* Head of a pseudo-image job: what the note outside the hash says. Strings follow: facility, host,
 * exe. */
struct wire_image {
	struct wire_head head;
	uint32_t machine; /* EM_* */
	uint32_t pid;
	uint64_t start_time_ns; /* process start, ns since boot */
	uint64_t created_s;	/* UTC seconds of the process's first registration */
	uint32_t uid;
	uint16_t facility_len, host_len, exe_len, reserved;
	uint32_t flags;
};
static_assert(sizeof(struct wire_image) == 48, "image job");

/*
 * Image offsets: an address v in [vaddr, vaddr + len) of the process is image offset
 * img_off + (v - vaddr). Runs are given out in order of first registration, in whole pages, and
 * never change, so an offset once on disk keeps its meaning; equal programs get equal offsets
 * wherever the kernel put them.
 */
struct wire_run {
	struct wire_head head;
	uint64_t vaddr;
	uint64_t img_off;
	uint64_t len;
};
static_assert(sizeof(struct wire_run) == 32, "run");

/* Offsets of that image hold here, but for those in the map: nr_moved × struct wire_moved follow.
 */
struct wire_replaces {
	struct wire_head head;
	uint8_t id[20];
	uint32_t nr_moved;
};
static_assert(sizeof(struct wire_replaces) == 32, "replaces");

/* [from, from + len) of the earlier image is [to, to + len) of this one. Ascending, disjoint. */
struct wire_moved {
	uint64_t from, to, len; /* image offsets */
};
static_assert(sizeof(struct wire_moved) == 24, "moved");
/* Where offset @off of the earlier image stands in this one. @rec was found good by wire_check. */
uint64_t wire_moved_off(const struct wire_replaces *rec, uint64_t off);

/* A routine stands at @elf in the file, since others had its addresses first. */
struct wire_place {
	struct wire_head head;
	uint64_t vaddr, elf, len;
	uint64_t from_seq, until_seq; /* bounds of its life; until 0: it was not over */
};
static_assert(sizeof(struct wire_place) == 48, "place");

/*
 * One of the processes whose code is in a folded image (the first is in WIRE_IMAGE).
 * WIRE_INSTANCE_MORE: @pid more of them, of which nothing else is told.
 */
struct wire_instance {
	struct wire_head head;
	uint32_t pid, uid;
	uint64_t start_time_ns, created_s;
};
static_assert(sizeof(struct wire_instance) == 32, "instance");
#define WIRE_INSTANCE_MORE 1u /* head.flags */

/*
 * Step through a stream. @pos starts at 0; returns the next record, complete and within bounds, or
 * NULL at the end. After NULL, *pos == len says that the stream ended cleanly; anything else is the
 * offset of a malformed record. Contents beyond the head are not checked: see wire_routine_parse.
 * @data must be 8-byte aligned.
 */
const struct wire_head *wire_next(const void *data, size_t len, size_t *pos);
#define WIRE_FOR_EACH(rec, data, len, pos)                                                         \
	for (size_t pos = 0; ((rec) = wire_next((data), (len), &pos));)

/*
 * Turn the records of a pseudo-image's note, which are of the other byte order, into those of this
 * machine, in place. Types that are no part of a note keep their bodies. A record whose length lies
 * ends the work: wire_next then says so.
 */
void wire_turn(void *data, size_t len);

/* The parts of a routine record, pointing into it. */
struct wire_routine_view {
	const struct wire_routine *rec;
	const char *name;    /* rec->name_len bytes, any bytes */
	const uint8_t *code; /* NULL without WIRE_ROUTINE_CODE */
	const struct wire_line *lines;
	const struct wire_inline *inlines;
	const uint8_t *files; /* step with wire_file_next */
	size_t files_len;
	const struct wire_frame *frames;
	size_t nr_frames;
};

/* 0, or -EINVAL where a length lies, lines or frames do not ascend or leave the code, inlined parts
 * are not nested, a frame has a fault, or a file index is out of range. */
int wire_routine_parse(const struct wire_head *rec, struct wire_routine_view *view);
/* Step through the files of a parsed routine: @pos starts at 0. The next one's bytes and length, or
 * NULL past the last. */
static inline const char *wire_file_next(const struct wire_routine_view *view, size_t *pos,
					 size_t *len)
{
	const uint8_t *p = view->files + *pos;

	if (*pos >= view->files_len)
		return NULL;
	*len = p[0] | (size_t)p[1] << 8;
	*pos += 2 + *len;
	return (const char *)p + 2;
}

/* Check the fixed part and the trailing lengths of the other types: 0 or -EINVAL. */
int wire_check(const struct wire_head *rec);

/* Size of a routine record with these parts; 0 if it would exceed WIRE_RECORD_MAX or a limit. */
size_t wire_routine_len(size_t name_len, size_t code_len, bool with_code, size_t nr_lines,
			size_t nr_inlines, size_t files_len);
/* The same with frames behind the record of @len bytes; 0 where that is 0. */
size_t wire_routine_frames_len(size_t len, size_t nr_frames);

/* ---- doorbell and hand-over ------------------------------------------------------------------ */

#define WIRE_DOORBELL_MAGIC 0x4c4c4542u /* "BELL" */

/*
 * The whole content of a message: a hint, never believed. Sent with O_NONBLOCK. The same struct,
 * with the registry's descriptor beside it (SCM_RIGHTS), is the one message of a hand-over.
 */
struct wire_doorbell {
	uint32_t magic;
	uint32_t version; /* WIRE_REGISTRY_VERSION */
	uint32_t pid;	  /* in the sender's PID namespace */
	uint32_t reserved;
};
static_assert(sizeof(struct wire_doorbell) == 16, "doorbell");

#endif
