/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Readers of what others announce their code with: made into records as libdbgdyn writes them
 * (wire.h). Every byte was written by somebody else. Runs in the reader process, which is replaced
 * when it dies or does not answer.
 */
#ifndef DCPI_FOREIGN_H
#define DCPI_FOREIGN_H

#include "base.h"
#include "wire.h"

/* No object gives more bytes of records, nor more routines, than this. */
#define FOREIGN_OBJECT_MAX   (64u << 20)
#define FOREIGN_ROUTINES_MAX (1u << 17)
/* DWARF in larger sections is left aside, and symbols alone used. */
#define FOREIGN_INFO_MAX (16u << 20)
#define FOREIGN_LINE_MAX (2u << 20)
#define FOREIGN_DWARF_NS 250000000ull /* dcpid spends this long on an object's DWARF */

/* Read memory of the process: how many bytes from @addr on could be read, or -errno where none. */
typedef ssize_t foreign_read_fn(void *ctx, uint64_t addr, void *to, size_t len);

struct foreign_object {
	const struct wire_object *rec; /* its elf_len bytes are at @elf; elsewhere checked */
	const void *elf;
	uint32_t machine;      /* EM_* that it has to be for */
	uint16_t flags;	       /* flags of the records, beside those that their code gives */
	foreign_read_fn *read; /* NULL: the process is gone */
	void *ctx;
	uint64_t deadline_ns; /* base_now_ns(): no DWARF is read after that */
};

/*
 * Append the object's routines, ascending and disjoint, as WIRE_ROUTINE records of its seq, part 0,
 * 1, …: its FUNC symbols within [addr, addr + code_len) of @rec, one for each address, none within
 * another, none above WIRE_CODE_MAX; with the lines and inlined parts of its DWARF (not compressed,
 * nor in another file).
 * Code is what runs (WIRE_ROUTINE_FETCHED), where that cannot be read what the file has. Returns
 * how many; -DCPI_EFORMAT (not an ELF64 file of that machine, or a table that leaves it or is not
 * aligned), -DCPI_ELIMIT (then those in @out are good, and there were more), -ENOMEM.
 */
int foreign_elf_object(const struct foreign_object *object, struct base_buf *out);

/* ---- files that runtimes write: jitdump and perf maps (jitdump.c, perfmap.c) ----------------- */

enum foreign_kind { FOREIGN_JITDUMP, FOREIGN_PERFMAP };

/* Where a reading of such a file goes on; begin with zero. */
struct foreign_place {
	uint64_t off;	    /* every record, or line, before it was taken */
	uint32_t sum;	    /* checksum of the bytes before it, by which the place is found again */
	uint64_t seq;	    /* number of the last change made by these records */
	uint64_t debug_off; /* jitdump: of lines whose routine has not come yet; 0: none */
	uint64_t nr_others; /* jitdump: records of other processes, which were left out */
	uint32_t lines;	    /* jitdump: what it has shown of where they count from */
	bool in_line;	    /* perf map: off is within a line that is too long */
	bool at_end; /* the file was read to its end as it was then, except for an unfinished rest
		      */
	bool ahead;  /* that is room made ahead: it may be filled while the file's size stays */
};
/* A file as it was when it was read last; @same: it is so still, and was read to its end then. */
struct foreign_seen {
	int64_t size;
	uint64_t written_ns; /* CLOCK_REALTIME */
	bool same;
};

/* A file that may be written, cut, or be lies, while it is read. */
struct foreign_file {
	int fd;		       /* descriptor of a regular file; read by pread(2) */
	uint32_t machine;      /* EM_* that the code has to be for */
	foreign_read_fn *read; /* reads the process's memory; NULL: the process has ended, or may
				  not be read */
	void *ctx;
	uint64_t deadline_ns; /* base_now_ns(): it stops at the first record after that */
	size_t answer_max;    /* … or that makes @out longer than this */
};

/*
 * Does @fd begin as a jitdump file does, of either byte order? 1, 0 (also where it is shorter than
 * that: LLVM and V8 map theirs before they write), or -errno.
 */
int foreign_jitdump_is(int fd);
/*
 * Append what is new: WIRE_TIME (before the first change, and where the next has another time),
 * WIRE_ROUTINE (facility 0, with code, lines), WIRE_MOVE (handle 0; with code where memory can be
 * read), seq ascending from @place->seq. Records of unknown types are skipped, one that is not
 * whole yet is waited for. A time stamp that is not CLOCK_MONOTONIC's (the header says so) is 0.
 * Returns how many records were malformed; -DCPI_EFORMAT: not a jitdump file, or of another byte
 * order or machine, or the next record's length lies (nothing behind it can be read),
 * -DCPI_ETRUNCATED: it was cut below @place->off, or is written anew, -DCPI_EVERSION, -ENOMEM,
 * -errno. After a failure @place is as before; what can be read before the cause of one is read
 * first.
 */
int foreign_jitdump_read(const struct foreign_file *file, struct foreign_place *place,
			 struct base_buf *out);
/*
 * The same of a perf map: a WIRE_ROUTINE (facility 0) for each line, with the code that stands
 * there now where that can be read (WIRE_ROUTINE_FETCHED). Lines that are none are counted. A name
 * may be empty. It fails with -DCPI_ETRUNCATED, -ENOMEM or -errno.
 */
int foreign_perfmap_read(const struct foreign_file *file, struct foreign_place *place,
			 struct base_buf *out);

/* ---- GDB's JIT interface (gdb.c, gdb_symbol.c) ----------------------------------------------- */

/*
 * A process lists ELF files that it has in memory from the symbol __jit_debug_descriptor on;
 * source: the GDB manual, "JIT Compilation Interface". A main program and its libraries may each
 * have one.
 */
#define FOREIGN_GDB_HEADS   4u
#define FOREIGN_GDB_ENTRIES 65536u
#define FOREIGN_GDB_ELF_MAX (64u << 20)

/*
 * The symbol's address in the ELF64 file @fd of @machine, before relocation; from .dynsym, else
 * .symtab. 1; 0: no such symbol, no such file, or tables that are too long or damaged; -ETIMEDOUT:
 * not found before @deadline_ns; -ENOMEM, -errno.
 */
int foreign_gdb_symbol(int fd, uint32_t machine, uint64_t deadline_ns, uint64_t *value);
/* How far it is moved, if its code at @file_off is mapped at @start. 0, -DCPI_EFORMAT, -errno. */
int foreign_gdb_bias(int fd, uint64_t start, uint64_t file_off, uint64_t *bias);

struct foreign_memory {
	foreign_read_fn *read;
	void *ctx;
};

struct foreign_gdb {
	uint64_t heads[FOREIGN_GDB_HEADS]; /* addresses of descriptors */
	uint32_t nr_heads;
	uint32_t next;	/* number of the entry to look at first */
	uint64_t state; /* a hash of what tells that the list has changed; 0: it was never read */
};

struct foreign_gdb_entry {
	uint64_t node, elf_addr, elf_len; /* vaddr: the list's entry, and its file */
	/* A hash of the file, of one above 256 KiB of both its ends; 0: not looked at. It may have
	 * become another at the same place. */
	uint64_t print;
};

/*
 * Append an array of struct foreign_gdb_entry, of one list the oldest first as far as it tells. 0:
 * the list is as it was at @g->state, nothing is appended; 1: all of it; 2: there were more than
 * FOREIGN_GDB_ENTRIES. Prints are of 4 MiB of files a call, others' at the next one. -EAGAIN: it
 * was changed while it was read; -DCPI_EFORMAT: it leads back into itself, or nowhere; -ENOMEM. @g
 * is as before then.
 */
int foreign_gdb_list(const struct foreign_memory *memory, struct foreign_gdb *g,
		     struct base_buf *out);
/*
 * Append the routines of the file at *@entry as foreign_elf_object does, of change @seq, and store
 * its print there. 0; 1: there were more of them than may be; -EAGAIN: it is not there any more;
 * -DCPI_EFORMAT: it is no ELF file of this machine, or longer than FOREIGN_GDB_ELF_MAX; -ENOMEM.
 */
int foreign_gdb_object(const struct foreign_memory *memory, uint32_t machine, uint64_t seq,
		       struct foreign_gdb_entry *entry, struct base_buf *out);

#endif
