/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The reader process (dcpid-reader), as dcpid asks it: it alone reads the memory of processes and
 * the files that they name.
 */
#ifndef DCPI_READER_H
#define DCPI_READER_H

#include "base.h"
#include "driver.h"
#include "reader_routine.h"
#include "wire.h"

/*
 * Reading a process's memory, or a file it names, can block without end and parses outside bytes:
 * only this helper does it, one request at a time. A request that takes longer than what is left of
 * the budget of its process's user (budget.h) fails with -ETIMEDOUT, and the helper is killed and
 * replaced; where nothing is left, it fails at once with -EDQUOT.
 */
struct reader;

int reader_open(const char *helper_dir, struct reader **out, struct base_err *err);
void reader_close(struct reader *r);
/* Requests are charged to the budgets of their users; @budgets must outlive @r. */
struct budgets;
void reader_share(struct reader *r, struct budgets *budgets);
/* budget_may_tell of these. */
bool reader_may_tell(const struct reader *r, uint32_t uid);
/* Called now and then while an answer is waited for; it asks the reader nothing. */
void reader_set_meanwhile(struct reader *r, void (*fn)(void *ctx), void *ctx);
/* Give back the memory of the last answer, of a registry's two MiB; the next one takes it anew.
 */
void reader_trim(struct reader *r);
/*
 * Close a descriptor of a file (O_PATH) in the helper, as the last one: its file system may be that
 * of a client of user @uid. Those that the calls below return are all to be closed so.
 */
void reader_release(struct reader *r, uint32_t uid, int fd);
/* A file that is no image but one that a runtime writes its code into (jitdump). */
struct reader_dump {
	int fd; /* the caller's (O_PATH); -1: it is an image */
	uint64_t dev, ino;
	uint32_t owner;
	bool no_elf; /* nor an ELF file: what it holds, its program alone knows */
	/* The code of an image that others than root can have written; len 0: it is root's. */
	struct base_id text;
	bool roots;		   /* root alone decides what stands at its path */
	struct base_extent extent; /* size 0: not known */
};
/*
 * Identity of the file that mapping @l of @pid was of when the kernel told of it: build-id, else a
 * hash of the file's heads. Of @l with a build-id, the file must have that. -ESTALE: neither the
 * mapping nor the path leads to that file any more; -ETXTBSY: it was changed since @l->time_ns (0:
 * not known), and may have been written over; -EREMOTE: a dump where it cannot be followed. @uid:
 * the process's user, if it has ended. @dump may be NULL.
 */
int reader_image_id(struct reader *r, int32_t pid, uint32_t uid, const struct driver_load *l,
		    struct base_id *id, struct reader_dump *dump);
/*
 * Identity and code (as in struct reader_dump) of the ELF file whose descriptor comes with the next
 * byte of @sock. Who sent it must have opened it to read: nothing is told of other files. Negative
 * where none came that is such a one; -ETIMEDOUT.
 */
int reader_file_id(struct reader *r, int sock, struct base_id *id, struct base_id *text);
/*
 * A file that process @pid has mapped executable at [@start, @end), and that no name leads to any
 * more, or none outside of its container. It is found by that mapping alone.
 */
struct reader_removed {
	const char *path; /* under which its profile is kept */
	int32_t pid;
	uint32_t uid; /* the process's user, if it has ended */
	uint64_t start, end;
	struct base_id id; /* the file has it */

	/* what is found */
	uint64_t age_s; /* -EEXIST: for so long nothing of it has changed; else 0 */
	uint64_t len;
	uint32_t owner;
	bool public; /* its mode let everybody read it */
	/* Where it was copied: its code, as of struct reader_dump; and whether root alone could
	 * write into it. */
	struct base_id text;
	bool roots;
};
/*
 * Look at it, and copy it to @to (-1: only look). -EEXIST: a name leads to it; -ENOENT, -ESTALE: it
 * is not mapped there, or another one is; -EINVAL: not a regular file; -ENOEXEC: no ELF file (told
 * when it is to be copied); -EFBIG: above 64 MiB; -EREMOTE: its file system may not answer; -EPERM:
 * without the right to open what processes have mapped.
 */
int reader_removed_file(struct reader *r, struct reader_removed *f, int to);
/*
 * The unwind table (unwind.h) of a file that process @pid has, or had, mapped executable, made from
 * what the file says of its frames.
 */
struct reader_mapped {
	int32_t pid;
	uint64_t start, end;
	uint64_t dev, inode, size; /* of the file; @dev: major << 20 | minor */
	const char *path;	   /* where it was; NULL: not known */
	struct base_id id;	   /* the file has it, whatever dev and inode say; or none */
};
/*
 * The same of memory [start, end) of process @pid, made from what the code there does with its
 * stack: @routines, ascending and disjoint, of which the first may begin before, and the last end
 * behind. Offsets of the table are addresses.
 */
struct reader_code {
	int32_t pid;
	uint64_t start, end;
	const struct reader_routine *routines;
	size_t nr; /* at most READER_ROUTINES_MAX */
	const struct wire_frame *frames;
	size_t nr_frames; /* at most READER_FRAMES_MAX */
};
/*
 * To make one takes long: it is asked for, and taken when it is there; meanwhile all other requests
 * to this reader fail with -EBUSY. It is charged to no budget. @fd: the file itself, whatever @f
 * says, or -1. 0: it was asked for; -EBUSY: it may be later; -DCPI_EHELPER or another.
 */
int reader_rows_ask(struct reader *r, const struct reader_mapped *f, int fd);
int reader_code_rows_ask(struct reader *r, const struct reader_code *c);
/*
 * 1: it is not there yet, nor in @wait_ms. 0: *@out is to be freed (unwind_free). -ESTALE, -ENOENT:
 * neither the mapping nor the path leads to that file any more; -ETIMEDOUT; -DCPI_EFORMAT,
 * -DCPI_ELIMIT, -EREMOTE (the file's system holds the helper even when it is killed) or another:
 * there is none to be had of it. *@cost: the helpers' CPU time for it up to now, and the time in
 * which they waited for others.
 */
struct unwind_table;
struct reader_cost {
	uint64_t ran_ns, idle_ns;
};
int reader_rows_take(struct reader *r, unsigned int wait_ms, struct unwind_table **out,
		     struct reader_cost *cost);
/* The real user of process @pid, which the kernel may not show as its owner; UINT32_MAX: it is
 * gone.
 */
uint32_t reader_user(int32_t pid);
/* Descriptor, to read and write, of the registry that @pid has mapped there (checked: sealed
 * against shrinking, header; not: who made it). -EPERM also without the right to open map_files. */
int reader_registry_open(struct reader *r, int32_t pid, uint64_t map_start, uint64_t map_end);
/*
 * Parse a registry from *@place on (registry.h): its tables, its ring's records, and where @place
 * asks for it what lives, as normalized records, about 2 MiB of them; @place says how far that was.
 * Returns how many were malformed. Code that is not in a record comes from the process (flag
 * WIRE_ROUTINE_FETCHED), if that still is @life (registry_process_life) and @uid's, who will see
 * it. -ESTALE: what was at @place->tail is overwritten. @place moves on success only.
 */
struct registry_place;
int reader_registry_read(struct reader *r, int fd, int32_t pid, uint32_t uid, uint64_t life,
			 struct registry_place *place, struct base_buf *out);
/* Contents of owned ranges (trailing zeros left out), as WIRE_BYTES records. -ESRCH: it is not that
 * life any more, or its memory is not @uid's to see (set-uid, or not to be dumped). */
int reader_range_read(struct reader *r, int32_t pid, uint32_t uid, uint64_t life,
		      const struct wire_range *range, struct base_buf *out);
/* The root folder of @pid (O_PATH), and its number in its own PID namespace. Or negative. */
int reader_root_find(struct reader *r, int32_t pid, int32_t *ns_pid);
/*
 * Descriptor (O_PATH) of the perf map that process @ns_pid of @uid has below @root, written since
 * @since_ns (CLOCK_REALTIME). -ENOENT; others: there is one that is not to be read (not the user's,
 * a link, a FIFO, on a file system that may not answer).
 */
int reader_perfmap_find(struct reader *r, int root, int32_t ns_pid, uint32_t uid,
			uint64_t since_ns);
/*
 * What is new in a file of enum foreign_kind @kind (foreign.h), from *@place on, as normalized
 * records of facility 0. Code that is not in it comes from the process as in reader_registry_read.
 * Returns how many records were malformed, or as foreign.h has it; -EREMOTE: the file's system
 * holds the helper even when it is killed. @place and @seen move on success only. A file that was
 * read to its end, and is as it was @seen then, is not read again (@seen->same).
 */
struct reader_who {
	int32_t pid;
	uint32_t uid;
	uint64_t life;
};
struct foreign_place;
struct foreign_seen;
int reader_file_read(struct reader *r, int fd, unsigned int kind, const struct reader_who *who,
		     struct foreign_place *place, struct foreign_seen *seen, struct base_buf *out);
/*
 * Bytes of @pid's memory from @addr, a page's start, on, at most @len, to translate or
 * (dyn_inherit) to compare: how many, up to the first page that is not there. Their owner need not
 * be known: they are compared with what the process runs, or with what its ancestor said, before
 * they are used, and go nowhere else.
 */
ssize_t reader_code_read(struct reader *r, int32_t pid, uint64_t addr, void *to, size_t len);
/* CPU time of the process that reads. */
uint64_t reader_cpu_ns(const struct reader *r);
/*
 * The text of /proc/@pid/maps, appended to @out: its program chose how much that is, and, where its
 * memory lies in a file system that does not answer, how long it takes. 0 or negative.
 */
int reader_maps(struct reader *r, int32_t pid, struct base_buf *out);
/* The same question as registry_process_maps: 1, 0, or negative: it was not answered. */
struct stat;
struct registry_part;
int reader_mapped(struct reader *r, int32_t pid, const struct stat *file,
		  const struct registry_part *part);
/*
 * GDB's JIT interface (foreign.h); all of them -ESRCH as reader_range_read. Find: where the process
 * has descriptors; 1: not all of its files were asked yet. List: as foreign_gdb_list, entries.
 * Object: as foreign_gdb_object; its print is stored where it was read, whatever the result.
 */
struct foreign_gdb;
struct foreign_gdb_entry;
int reader_gdb_find(struct reader *r, const struct reader_who *who, struct foreign_gdb *g);
int reader_gdb_list(struct reader *r, const struct reader_who *who, struct foreign_gdb *g,
		    struct base_buf *out);
int reader_gdb_object(struct reader *r, const struct reader_who *who, uint64_t seq,
		      struct foreign_gdb_entry *entry, struct base_buf *out);

#endif
