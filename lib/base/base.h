/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The base of every part of the project: errors, log, option tables, hashes, growable buffers,
 * checked arithmetic, files that appear complete or not at all. Nothing here prints (except the log
 * and base_opt_help, to where they are told), exits or aborts. Functions that can fail return int:
 * >= 0 good, negative bad: -errno, or one of DCPI_ERRORS negated. Functions are not thread safe
 * unless they say so; one thread at a time may use an object.
 */
#ifndef DCPI_BASE_H
#define DCPI_BASE_H

#include <dirent.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/types.h>

/* ---- errors ---------------------------------------------------------------------------------- */

/* The project's own codes, above every errno: code, text. One list holds all of them. */
#define DCPI_ERRORS(X)                                                                             \
	X(DCPI_EFORMAT, "malformed data")                                                          \
	X(DCPI_EVERSION, "unsupported version")                                                    \
	X(DCPI_ECHECKSUM, "checksum mismatch")                                                     \
	X(DCPI_ETRUNCATED, "truncated data")                                                       \
	X(DCPI_ELIMIT, "limit exceeded")                                                           \
	X(DCPI_EOVERFLOW, "value does not fit")                                                    \
	X(DCPI_ENOTDB, "not a profile database")                                                   \
	X(DCPI_EBUSY, "in use by another daemon")                                                  \
	X(DCPI_ENODAEMON, "no daemon answers")                                                     \
	X(DCPI_ENOEVENTS, "no sampling source available")                                          \
	X(DCPI_ENOIMAGE, "image not found")                                                        \
	X(DCPI_ENOSYMBOL, "procedure not found")                                                   \
	X(DCPI_EUSAGE, "wrong usage")                                                              \
	X(DCPI_EHELPER, "helper process failed")                                                   \
	X(DCPI_EUNSUPPORTED, "not supported on this machine")

enum dcpi_code {
	DCPI_ERROR_BASE = 4096,
#define X(code, text) code,
	DCPI_ERRORS(X)
#undef X
		DCPI_ERROR_END
};

/* A caller's fixed buffer for a rich failure. Zero-initialize it: the first cause wins. */
struct base_err {
	int code;	/* negative, as returned; 0 while empty */
	char text[480]; /* "cannot open '/x': Permission denied": lower case, no newline */
	char hint[240]; /* a remedy; may be empty */
};

/* Text of a (negative or positive) errno or project code; never NULL, static storage. */
const char *base_strerror(int code);

/*
 * Record a failure unless @err already holds one; @err may be NULL. @code is negative. Returns
 * @code, so that "return base_fail(err, -EINVAL, …)" reads well. The message is used as it is:
 * append the cause yourself, or use base_fail_errno, which appends ": <base_strerror(code)>".
 */
int base_fail(struct base_err *err, int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
int base_fail_errno(struct base_err *err, int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Set the hint of a failure recorded just now (only where none is set yet). */
void base_hint(struct base_err *err, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Print "PROG: text\n" and, where there is one, "hint: …\n" to @to. */
void base_err_print(const struct base_err *err, const char *prog, FILE *to);

/* ---- log (programs only, never libraries) ---------------------------------------------------- */

enum base_log_level { BASE_LOG_ERROR, BASE_LOG_WARN, BASE_LOG_INFO, BASE_LOG_DEBUG };

/*
 * The start of each message: its level; UTC time and level; or the journal's form of the level
 * ("<4>"), since the journal knows the time itself.
 */
enum base_log_form { BASE_LOG_BARE, BASE_LOG_STAMPS, BASE_LOG_JOURNAL };

/* Where (default stderr), how much (default BASE_LOG_INFO) and in which form. */
void base_log_init(FILE *to, enum base_log_level max, enum base_log_form form);
void base_log(enum base_log_level level, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

#define BASE_LOG_KEPT	  256 /* lines */
#define BASE_LOG_KEPT_LEN 512 /* bytes of one; the rest is cut */

/* From here on the last lines are kept in memory, with their times, beside being written. */
void base_log_keep(void);
/* The kept lines, oldest first, of which @index 0 is the first; NULL past the last. Valid until the
 * next message. */
const char *base_log_kept(size_t index);

/* ---- version (version.c) --------------------------------------------------------------------- */

const char *base_release(void);
/* The revision of the sources; "" where the build did not get it. */
const char *base_revision(void);

/* ---- option tables --------------------------------------------------------------------------- */

enum base_opt_kind {
	BASE_OPT_FLAG,	 /* dest: bool *, set true */
	BASE_OPT_STRING, /* dest: const char **, last one wins; points into argv */
	BASE_OPT_LIST,	 /* dest: struct base_opt_list *, repeatable */
	BASE_OPT_INT,	 /* dest: int64_t *, checked against min..max (min == max: no limits) */
	BASE_OPT_DOUBLE, /* dest: double *, same limits */
};

struct base_opt_list {
	const char **items; /* point into argv */
	size_t nr;
};

/* One option: accepted as -name and --name; values as "-name value" or "-name=value". */
struct base_opt {
	const char *name; /* NULL ends the table */
	enum base_opt_kind kind;
	void *dest;
	const char *arg;  /* name of the value in help ("DIR"), NULL for flags */
	const char *help; /* one or more sentences, no trailing newline */
	double min, max;
};

struct base_example {
	const char *command; /* NULL ends the list */
	const char *what;
};

/* A command: everything its parser, -help, man page sections and completion are made from. */
struct base_cmd {
	const char *name;     /* "dcpiprof" */
	const char *summary;  /* one line, no full stop */
	const char *operands; /* "[IMAGE …]" or "" */
	const struct base_opt *opts;
	const struct base_example *examples;
	int min_operands, max_operands; /* max -1: any number */
	bool first_ends; /* the first operand ends the options: the rest is another command's */
	uint64_t *given; /* bit i: the i-th of @opts stood on the command line; may be NULL */
};

/* base_opt_parse results: go on, or the request was served and the program should exit 0. */
enum { BASE_OPT_RUN = 0, BASE_OPT_DONE = 1 };

/*
 * Parse argv. Options may stand between operands; "--" ends them. Operands are moved to the front
 * of *argv (argv[0] included in the skip): on return *argc counts them and *argv points at the
 * first. Besides the table, every command has -help (prints to stdout), -version (-V as the
 * original had it), and, for the build, -help-man (roff OPTIONS and EXAMPLES sections) and
 * -help-options (one name a line, for completion). Returns BASE_OPT_RUN, BASE_OPT_DONE, or
 * -DCPI_EUSAGE with @err filled (unknown option with the nearest name as hint, missing value, value
 * out of limits, operand count).
 */
int base_opt_parse(const struct base_cmd *cmd, int *argc, char ***argv, struct base_err *err);
/* An error about the operands that base_opt_parse left: @what is wrong with them, and the hint is
 * how the command is used. -DCPI_EUSAGE. */
int base_opt_usage(const struct base_cmd *cmd, const char *what, struct base_err *err);
/* Set one option that takes a value, as -name=@text would; @text must outlive it. 0 or
 * -DCPI_EUSAGE, -ENOMEM. */
int base_opt_set(const struct base_opt *o, const char *text, struct base_err *err);
void base_opt_help(const struct base_cmd *cmd, FILE *to);
/* The option that @name may be a slip of the fingers for, or NULL. */
const char *base_opt_nearest(const struct base_cmd *cmd, const char *name);
/* Edit distance of two names, for "did you mean"; at most 255 characters count. */
unsigned int base_name_distance(const char *a, const char *b);

/* Exit codes of every program. */
enum { BASE_EXIT_OK = 0, BASE_EXIT_FAILED = 1, BASE_EXIT_USAGE = 2, BASE_EXIT_SKIP = 77 };

/* ---- buffers and arithmetic ------------------------------------------------------------------ */

/* A growable byte buffer. Zero-initialize; release with base_buf_release. */
struct base_buf {
	uint8_t *data;
	size_t len, cap;
};

/* All return 0 or -ENOMEM (also for a length that would wrap). base_buf_extend hands out @len
 * zeroed bytes; behind what base_buf_printf added stands a 0 that does not count. */
int base_buf_append(struct base_buf *b, const void *data, size_t len);
int base_buf_extend(struct base_buf *b, size_t len, void **out);
/* A number, the lowest byte first: in @len bytes (1 to 8), and as LEB128 (seven bits in each). */
int base_buf_append_le(struct base_buf *b, uint64_t v, size_t len);
int base_buf_append_leb128(struct base_buf *b, uint64_t v);
int base_buf_printf(struct base_buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
int base_buf_vprintf(struct base_buf *b, const char *fmt, va_list args)
	__attribute__((format(printf, 2, 0)));
void base_buf_clear(struct base_buf *b);
void base_buf_release(struct base_buf *b);

/*
 * Grow a plain array: "if ((r = base_grow(&v, &cap, nr + 1, sizeof(*v))) < 0)". Amortized doubling.
 * Returns 0 or -ENOMEM; on failure the array is untouched.
 */
int base_grow(void *array, size_t *cap, size_t need, size_t elem_len);

#define base_add_overflow(a, b, out) __builtin_add_overflow((a), (b), (out))
#define base_mul_overflow(a, b, out) __builtin_mul_overflow((a), (b), (out))

static inline uint64_t base_align_up(uint64_t v, uint64_t to)
{
	return (v + to - 1) & ~(to - 1);
}

/*
 * Memory that will be read soon. GCC takes a function that only prefetches for one without effect,
 * and drops calls of it: an empty statement of assembler is an effect.
 */
static inline void base_prefetch(const void *at)
{
	__builtin_prefetch(at);
	__asm__ volatile("");
}

/* ---- hashes ---------------------------------------------------------------------------------- */

struct base_sha256 {
	uint32_t state[8];
	uint64_t len;
	uint8_t block[64];
};

/* SHA-256 (FIPS 180-4), used for identities by content. */
void base_sha256_init(struct base_sha256 *s);
void base_sha256_add(struct base_sha256 *s, const void *data, size_t len);
/* @v is added as eight bytes, little-endian, so that an identity is the same on all machines. */
void base_sha256_add_number(struct base_sha256 *s, uint64_t v);
void base_sha256_end(struct base_sha256 *s, uint8_t out[32]);
/* 1: what is to be read of @fd, to its end, has this sum; 0: another. Or a negative errno. */
int base_sha256_is(int fd, const uint8_t sum[32]);

/* CRC-32C (Castagnoli), start with crc 0. For file checksums. */
uint32_t base_crc32c(uint32_t crc, const void *data, size_t len);
/* A fast 64-bit hash for tables in memory; never stored. */
uint64_t base_hash64(const void *data, size_t len);
/* The same, another one for each @seed: who does not know it cannot choose keys of equal hash. */
uint64_t base_hash64_seeded(uint64_t seed, const void *data, size_t len);
/* A seed that no user can guess, not 0. Where there are no random numbers yet, it is what address
 * layout and clock make up. */
uint64_t base_hash_seed(void);
static inline uint64_t base_hash_u64(uint64_t v)
{
	v ^= v >> 32;
	v *= 0xd6e8feb86659fd93ull;
	v ^= v >> 32;
	v *= 0xd6e8feb86659fd93ull;
	v ^= v >> 32;
	return v;
}

/* Any number, each as likely (splitmix64; Steele, Lea, Flood 2014). Any *@state is as good as any
 * other. Not for secrets. */
uint64_t base_random64(uint64_t *state);

/*
 * A hash table from byte keys to pointers. Keys are copied, values are the caller's. Keys may come
 * from anybody: the hash is seeded anew in each process, and so is the order of a walk.
 * Zero-initialize; release with base_map_release (values are not freed).
 */
struct base_map {
	struct base_map_slot *slots;
	size_t nr, cap;
};

/* NULL where absent. */
void *base_map_get(const struct base_map *m, const void *key, size_t key_len);
/* Insert or replace; @value not NULL. 0 or -ENOMEM. */
int base_map_set(struct base_map *m, const void *key, size_t key_len, void *value);
/* Returns the value removed, or NULL. */
void *base_map_del(struct base_map *m, const void *key, size_t key_len);
/* Walk: "for (size_t i = 0; base_map_next(&m, &i, &value);)", any order; no changes
 * meanwhile, but what was returned last may be deleted: then --i. */
bool base_map_next(const struct base_map *m, size_t *pos, void **value);
void base_map_release(struct base_map *m);

/* ---- order (sort.c) -------------------------------------------------------------------------- */

struct base_sort_item {
	uint64_t key;
	const void *of; /* the object that it stands for */
};

/*
 * Ascending by key, those of one key in the order in which they came. @room: for as many. Returns
 * where they are: @v or @room. The fewer bits keys differ in, the faster.
 */
struct base_sort_item *base_sort(struct base_sort_item *v, struct base_sort_item *space, size_t nr);

/* ---- text ------------------------------------------------------------------------------------ */

/* The number of the UTF-8 character at @text, of at most @left bytes, into *@out. Its length; 0:
 * there is none. */
size_t base_utf8(const void *text, size_t left, uint32_t *out);
/* Is it a control character, or one that is not seen but changes the order or lines of others? */
bool base_utf8_acts(uint32_t c);
/* Characters of a text in UTF-8. */
size_t base_text_width(const char *text);
/* In place: control characters, marks that change the order of text, and what is not UTF-8 become
 * '?', so that names from outside may reach a terminal. Returns @text. */
char *base_text_clean(char *text);
/* Value of a digit, hexadecimal in either case; -1: it is none. */
int base_digit(char c);
/* The number that is all of @s, decimal, or hexadecimal behind 0x: no sign, no blank. False, and
 * *@out untouched: @s is no such number, or it does not fit. */
bool base_number_parse(const char *s, uint64_t *out);
/* The same with a sign. False also where it is below @min or above @max. */
bool base_signed_parse(const char *s, int64_t min, int64_t max, int64_t *out);

/* ---- identities ------------------------------------------------------------------------------ */

/* A build-id or its stand-in: up to 32 bytes. len 0: none. */
struct base_id {
	uint8_t len;
	uint8_t bytes[32];
};

#define BASE_ID_TEXT_LEN 65
/* Lower-case hex into @text (BASE_ID_TEXT_LEN bytes); returns @text. */
char *base_id_text(const struct base_id *id, char *text);
/* Parse 1 to 64 hex digits, even count. 0 or -EINVAL. */
int base_id_parse(struct base_id *id, const char *text, size_t len);
/* Ends @s; the first 20 bytes of the sum are the id. */
void base_id_of_sha256(struct base_id *id, struct base_sha256 *s);
/*
 * Stand-in for the build-id of a file that has none: from its length and its first
 * BASE_ID_HEAD_LEN bytes (@head, shorter where the file is). The same wherever the file is copied.
 */
#define BASE_ID_HEAD_LEN (64u << 10)
void base_id_of_head(struct base_id *id, uint64_t file_len, const void *head, size_t head_len);
/*
 * Stand-in for both, of a file that nobody could read when it was mapped: from its path then, and
 * the device (major and minor number) and inode that the kernel told of the mapping.
 */
void base_id_of_place(struct base_id *id, const uint64_t where[3], const char *path);
/*
 * The build-id in a block of ELF notes, of either byte order, that stand at multiples of @align (8,
 * else 4), or -ENOENT.
 */
int base_id_of_notes(struct base_id *id, const void *notes, size_t len, size_t align);
bool base_id_equal(const struct base_id *a, const struct base_id *b);
/*
 * The name in <db>/dyn of a copy of a file without a name: "ID-TEXT.file", where @text is the hash
 * of its code; "ID.file" where it has none (len 0), for it was root's.
 */
#define BASE_COPY_NAME_LEN (2 * BASE_ID_TEXT_LEN + 8)
void base_copy_name(const struct base_id *id, const struct base_id *text, char *name);
/* The identity in such a name. 0, or -EINVAL: it is none. */
int base_copy_id(const char *name, struct base_id *id);

/* A program header of an ELF file, of either class. */
struct base_segment {
	uint32_t type; /* PT_* */
	bool exec;
	uint64_t off, len, align; /* in the file, in bytes */
	uint64_t vaddr;
};
/*
 * Calls @fn with each program header of the ELF file @fd, of either byte order, until one call does
 * not return 0: that is the result. Otherwise 0, -ENOENT (no such file) or -ENOMEM.
 */
int base_elf_segments(int fd, int (*fn)(void *ctx, const struct base_segment *s), void *ctx);
/*
 * Hash of all bytes of @fd's executable segments and of where they stand: files of equal code have
 * one, whatever else they hold. -EFBIG: there are more than BASE_TEXT_MAX bytes of code; others as
 * base_elf_segments.
 */
#define BASE_TEXT_MAX (32u << 20)
int base_id_of_text(struct base_id *id, int fd);
/* Where the code of an ELF file wants to be: DCPI's text_start and text_size. */
struct base_extent {
	uint64_t start; /* for offset 0: the ELF address of code is this plus its file offset */
	uint64_t size;	/* bytes of its executable segments in the file; 0: not known */
};
/* 0, -ENOENT (no such file, or it has no code) or -ENOMEM. */
int base_elf_extent(int fd, struct base_extent *out);

/* ---- files ----------------------------------------------------------------------------------- */

/* Behind the last slash; all of @path where it ends with one. Points into @path. */
const char *base_path_name(const char *path);

/*
 * A file that appears complete or not at all: written beside its final name under a temporary
 * one (".tmp-<pid>-<n>-NAME"), synced, renamed, the folder synced.
 */
struct base_file {
	int dir_fd; /* the folder that @path names, opened anew */
	int fd;	    /* write here by any means; -1 when closed */
	char name[256];
	char tmp[300];
	bool in_place; /* base_output_create(): no temporary one */
	bool brief;    /* set by the caller: it may be lost with the machine, and is not synced */
};

/* @dir_fd may be AT_FDCWD; @path may have folders. Modes as open(2). 0 or negative with @err. */
int base_file_create(struct base_file *f, int dir_fd, const char *path, mode_t mode,
		     struct base_err *err);
/* Sync and rename over the final name (an existing file is replaced). On failure the temporary is
 * removed. */
int base_file_commit(struct base_file *f, struct base_err *err);
/* Give up: remove the temporary. Safe on a zeroed, committed or aborted object. */
void base_file_abort(struct base_file *f);
/* Create, write all of @data, commit. */
int base_file_write(int dir_fd, const char *path, mode_t mode, const void *data, size_t len,
		    struct base_err *err);
/* The same two for a file that a user named, below the current folder: what is there and no file (a
 * device, a FIFO), or what our standard output goes to (/dev/stdout), is not replaced but written
 * in place, as it comes. A folder is still refused. */
int base_output_create(struct base_file *f, const char *path, mode_t mode, struct base_err *err);
int base_output_write(const char *path, mode_t mode, const void *data, size_t len,
		      struct base_err *err);
/* Make the folder's names last; where the file system cannot, no failure. 0 or -errno. */
int base_sync_dir(int dir_fd);
/* Have the kernel begin to write what was written to @fd. Where many files are to be synced, this
 * for all of them before the first fsync spares the others theirs (20,000 took half the time, and
 * less). */
void base_sync_begin(int fd);
/* All that was written to the file system of @fd lasts, by one call, where the system can do that
 * and tells of failures: 1. 0: not here, sync each file. -errno: since @fd was opened something was
 * not written, of whichever file. */
int base_sync_file_system(int fd);
/* Where a program was started without standard input, output or error, /dev/null takes the place,
 * in it alone: the next file that it opens would, and what is said go into that. @mode: O_RDWR, or
 * O_RDONLY, with which to write there fails. 0 or -errno. */
int base_standard_fill(int mode);
/* Before a program ends: has all that it printed reached standard output? 0, or -errno with @err
 * filled. */
int base_output_end(struct base_err *err);
/* Write everything, going on after EINTR and short writes. 0 or -errno. */
int base_write_all(int fd, const void *data, size_t len);
/* Read exactly @len bytes: 0, -DCPI_ETRUNCATED at end of file, or -errno. */
int base_read_all(int fd, void *data, size_t len);
/* The same from @off on, wherever the descriptor stands. */
int base_read_at(int fd, uint64_t off, void *data, size_t len);
/* As base_read_at, but what is there, and can be read, is enough: how many bytes. */
size_t base_read_part(int fd, uint64_t off, void *data, size_t len);
/*
 * Wait until @fd can be read or has hung up: 0, -errno, or -ETIMEDOUT when *@left_ms, which tells
 * what is left, are over. Time in which we did not run ourselves (stopped, or the whole machine
 * was) is no waiting.
 */
int base_wait_readable(int fd, unsigned int *left_ms);
struct stat;
/* Open a regular file for reading, and say in *@st what it is. To open a FIFO can wait, and to open
 * a device do things (a watchdog's ends in a restart): they, and links to them, are refused before:
 * -EINVAL, folders -EISDIR; or -errno. */
int base_regular_open(int dir_fd, const char *path, struct stat *st);
/* Folder @name of @dir_fd (".": itself) for readdir, from its first entry on; closedir. 0 or
 * -errno. */
int base_dir_open(int dir_fd, const char *name, DIR **out);
/* Read a regular file of at most @max bytes into @out. Refuses FIFOs, devices and links' targets of
 * such kind without blocking. */
int base_file_read(int dir_fd, const char *path, size_t max, struct base_buf *out,
		   struct base_err *err);
/* As base_regular_open of a file that everybody may read, through all folders above it; -EACCES of
 * another. */
int base_public_open(const char *path, struct stat *st);
/* As base_file_read of such a file. */
int base_file_read_public(const char *path, size_t max, struct base_buf *out, struct base_err *err);

/*
 * One user who may read a file besides its owner (and, with @group, its group): an access control
 * list of mode 0600 or 0640 with an entry for @uid; of a folder, which may then be searched too,
 * 0700 or 0750. 0 or -errno: file systems without such lists refuse.
 */
int base_reader_set(int fd, uint32_t uid, bool group);
/* The owner alone. 0 or -errno. */
int base_reader_clear(int fd);
/* The user that was set; UINT32_MAX: none, or the rights were set by other means. */
uint32_t base_reader_get(int fd);
/* The same of a file that this process itself may not read. */
uint32_t base_reader_of(int dir_fd, const char *name);

/* ---- a process that gives up its rights (rights_linux.c) ------------------------------------- */

struct base_limit {
	int what; /* RLIMIT_*; one of memory is not set where a sanitizer needs more */
	uint64_t value;
};

/* Limit this process from now on; tighter limits stay. 0 or -errno. */
int base_limits_set(const struct base_limit *limits, size_t nr, struct base_err *err);
/*
 * For good: of the capabilities that it has no other than those of the mask @keep (1 << CAP_*), and
 * none for programs that it executes. Whether any of them is left (1, 0), or -errno.
 */
int base_rights_keep(uint64_t keep, struct base_err *err);
/* Likewise, but programs that root executes have those of @keep too. */
int base_rights_bound(uint64_t keep, struct base_err *err);
/* The user and the group that helpers are which root starts: no program of others has these ids. */
enum { BASE_HELPER_ID = 2147440000 };
/*
 * The process has these ids instead of root's for good, or those of the user "nobody" in a
 * container that does not have them. One that is not root's keeps its own. 0, -EPERM, or -EINVAL
 * where there is neither.
 */
int base_ids_drop(void);
/*
 * For good: no capability, base_ids_drop (where root may: not in every container), none to be had
 * by executing a program, and no inspection by others of its user. 0 or -errno.
 */
int base_rights_drop(struct base_err *err);

/*
 * The control group of helper programs: @fd is its "cgroup.procs", open for writing, and stays
 * open; -1, as in the beginning: they have none.
 */
void base_group_set(int fd);
/* @pid goes into it; 0: this process. Where the group takes no more, it stays where it is. Safe
 * between fork and exec. */
void base_group_join(pid_t pid);

/* The jail of a helper that parses bytes of others (jail_linux.c). */
struct base_jail {
	unsigned int nr_fds;   /* descriptors 0 to nr_fds - 1 stay, others are closed */
	bool receives;	       /* one more may come over a socket, to be looked at and closed */
	bool syncs;	       /* fdatasync is allowed */
	bool ends_with_parent; /* killed when the thread ends that started it */
	uint64_t memory, file; /* bytes at most, of memory and of a file */
	uint64_t cpu_s;	       /* seconds of CPU time at most; 0: no limit */
};
/*
 * base_rights_drop, and from now on no other system call than reading and writing open descriptors,
 * and memory that is not executable, need; any other kills the process. For one that @receives,
 * calls that name a file fail with EACCES instead, as libraries make them unasked. No way back. 0,
 * or negative with @err: then work must not begin.
 */
int base_jail_enter(const struct base_jail *jail, struct base_err *err);

/* A clock in nanoseconds; 0 where it cannot be read. */
uint64_t base_clock_ns(clockid_t clock);
/* The monotonic one. */
uint64_t base_now_ns(void);
/* Nanoseconds by which the clock of processes' start times is ahead of it: while the machine is
 * suspended the monotonic one stands still. 0 where there is no such clock. */
uint64_t base_boot_ahead_ns(void);

#endif
