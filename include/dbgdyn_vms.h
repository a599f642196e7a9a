/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The calls of DCPI for OpenVMS under their original names and in their original argument order,
 * and the debug-symbol table (DST) records that an application writes for them: layouts, constants,
 * and small writers. Self-contained beside dbgdyn.h; C and C++ clean.
 *
 * `$` is legal in GNU C and C++ identifiers, but warned of under -pedantic. Programs that want none
 * use dbgdyn.h; the DST part below has no `$`.
 *
 * Source: the DCPI for OpenVMS documentation (Dynamic Code Analysis), and the OpenVMS Alpha form of
 * the DST.
 */
#ifndef DBGDYN_VMS_H
#define DBGDYN_VMS_H

#include "dbgdyn.h"

#include <string.h>

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "DST records are little-endian"
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* ---- the three calls ------------------------------------------------------------------------- */

/* Odd: success. Only the low bit is promised by the original; these are the values used here. */
#ifndef SS$_NORMAL
#define SS$_NORMAL 1u
#endif
#define DBG$_BADPARAM 20u  /* DBGDYN_EINVAL, a negative length, a NULL descriptor or context */
#define DBG$_EXQUOTA  28u  /* DBGDYN_EFULL */
#define DBG$_NODAEMON 132u /* DBGDYN_ENODAEMON */
#define DBG$_INSFMEM  292u /* DBGDYN_ENOMEM */
#define DBG$_TIMEOUT  556u /* DBGDYN_ETIMEDOUT, DBGDYN_EINPROGRESS */
#define DBG$_REFUSED  340u /* DBGDYN_EREFUSED */
#define DBG$_IOERROR  84u  /* DBGDYN_EIO */

#define DBG$C_CODE 1u /* DBGDYN_CODE */
#define DBG$C_DST  2u /* DBGDYN_DST */

/* A string by descriptor. Only length and pointer are looked at. */
#ifndef DSC$K_CLASS_S
#define DSC$K_DTYPE_T 14
#define DSC$K_CLASS_S 1
struct dsc$descriptor_s {
	uint16_t dsc$w_length;
	uint8_t dsc$b_dtype;
	uint8_t dsc$b_class;
	const char *dsc$a_pointer;
};
#endif
/* Define descriptor @name of the string literal @text. */
#ifndef $DESCRIPTOR
#define $DESCRIPTOR(name, text)                                                                    \
	struct dsc$descriptor_s name = { sizeof(text) - 1, DSC$K_DTYPE_T, DSC$K_CLASS_S, text }
#endif

/*
 * Announce facility @facility_id with a first code range and a first DST range (lengths in bytes by
 * value, signed; 0: none). *@context is set, for the calls below. As dbgdyn_begin.
 */
DBGDYN_API uint32_t DBG$DYN_BEGIN(const struct dsc$descriptor_s *facility_id, int64_t code_bytes,
				  uint64_t code_base, int64_t dst_bytes, uint64_t dst_base,
				  uint64_t *context);

/* A further range; @type DBG$C_CODE or DBG$C_DST. As dbgdyn_add. */
DBGDYN_API uint32_t DBG$DYN_ADD(uint32_t type, int64_t bytes, uint64_t base,
				const uint64_t *context);

/* Blocks (bounded) until the daemon has written the image. As dbgdyn_end; sets *@context to 0. */
DBGDYN_API uint32_t DBG$DYN_END(uint64_t *context);

/* ---- DST records ----------------------------------------------------------------------------- */

/*
 * A DST range is a sequence of records without gaps, from its lowest address on; the rest of the
 * range is zero. All numbers are little-endian and unaligned. A record starts with
 *	u16 length: the whole record's bytes, header included, minus 1
 *	u16 type
 * Types that a reader does not know are skipped by length. Per code segment there is one module:
 * MODBEG, its routines (RTNBEG … RTNEND, nested like their scopes, with BLKBEG … BLKEND within),
 * LINE_NUM and SOURCE records anywhere inside (all of a kind in a module form one command stream),
 * MODEND. What is written is not changed later.
 *
 * Addresses are 32 bits wide, too few for code above 4 GB. They are therefore offsets from a base:
 * at the start of every DST range the base of the facility's first code range (BEGIN's, or where
 * BEGIN named none, the first that ADD named), and after a BASE record, up to the next one or the
 * end of that DST range, the address in it.
 *
 * Ports from OpenVMS may leave their absolute addresses where they are if the code lies below 4 GB.
 * A DST range without BASE records is read so, as a whole, if more of its routines lie in code
 * ranges of the facility that way than as offsets. Routines that could all be either are offsets;
 * this cannot happen to a facility with one code range that ends below twice its own address, as 1
 * MiB at 16 MiB does.
 */
/*
 * Names are the original ones without DST$K_, which stands in the constants at the end of this
 * file.
 */
enum dbgdyn_dst_type {
	DBGDYN_DST_DIS_RANGE = 118, /* skipped, as all that no struct stands for */
	DBGDYN_DST_PROLOG_LIST = 119,
	DBGDYN_DST_RTN_UNALLOC = 120,
	DBGDYN_DST_RETURN = 126,
	DBGDYN_DST_EPILOG = 127,
	DBGDYN_DST_INLINE = 136,
	DBGDYN_DST_EDIT_SOURCE = 139,
	DBGDYN_DST_VERSION = 153,
	DBGDYN_DST_SOURCE = 155,
	DBGDYN_DST_PROLOG = 162,
	DBGDYN_DST_CONTIN = 173,
	DBGDYN_DST_BLKBEG = 176,
	DBGDYN_DST_BLKEND = 177,
	DBGDYN_DST_ENTRY = 181,
	DBGDYN_DST_PSECT = 184,
	DBGDYN_DST_LINE_NUM = 185,
	DBGDYN_DST_LBLORLIT = 186,
	DBGDYN_DST_LABEL = 187,
	DBGDYN_DST_MODBEG = 188,
	DBGDYN_DST_MODEND = 189,
	DBGDYN_DST_RTNBEG = 190,
	DBGDYN_DST_RTNEND = 191,
	DBGDYN_DST_PCLOC = 192,
	/*
	 * Ours, outside all original types (0 to 255), so that other readers skip it: struct
	 * dbgdyn_dst_base. Stands between modules only.
	 */
	DBGDYN_DST_BASE = 0x4401,
};

#define DBGDYN_DST_RECORD_MAX 65536u /* bytes of a whole record */
#define DBGDYN_DST_NAME_MAX   255u   /* longest counted string: one length byte, then its bytes */
#define DBGDYN_DST_FILE_MAX   235u /* longest name of a source file: DECLFILE has one length byte */

#define DBGDYN_DST_PACKED __attribute__((packed))

struct dbgdyn_dst_head {
	uint16_t length; /* whole record minus 1 */
	uint16_t type;
} DBGDYN_DST_PACKED;

/* Behind it: counted module name, counted compiler name (may be empty). */
struct dbgdyn_dst_modbeg {
	struct dbgdyn_dst_head head;
	uint8_t flags;	   /* DBGDYN_DST_MODBEG_… */
	uint8_t unused;	   /* 0 */
	uint32_t language; /* enum dbgdyn_dst_language */
	uint16_t major, minor;
} DBGDYN_DST_PACKED;

enum {
	DBGDYN_DST_MODBEG_HIDE = 1,
	DBGDYN_DST_MODBEG_VERSION = 2, /* major and minor are set */
};

enum dbgdyn_dst_language {
	DBGDYN_DST_MACRO = 0,
	DBGDYN_DST_FORTRAN = 1,
	DBGDYN_DST_BLISS = 2,
	DBGDYN_DST_COBOL = 3,
	DBGDYN_DST_BASIC = 4,
	DBGDYN_DST_PLI = 5,
	DBGDYN_DST_PASCAL = 6,
	DBGDYN_DST_C = 7,
	DBGDYN_DST_RPG = 8,
	DBGDYN_DST_ADA = 9,
	DBGDYN_DST_UNKNOWN = 10,
	DBGDYN_DST_SCAN = 11,
	DBGDYN_DST_DIBOL = 12,
	DBGDYN_DST_MODULA = 13,
	DBGDYN_DST_PILLAR = 14,
	DBGDYN_DST_CXX = 15,
	DBGDYN_DST_AMACRO = 16,
	DBGDYN_DST_MACRO64 = 17,
};

/* Behind it: counted routine name. */
struct dbgdyn_dst_rtnbeg {
	struct dbgdyn_dst_head head;
	uint8_t flags; /* DBGDYN_DST_RTNBEG_… */
	uint32_t address;
	uint32_t descriptor; /* procedure descriptor's address, which nothing needs: 0 will do */
} DBGDYN_DST_PACKED;

enum {
	DBGDYN_DST_RTNBEG_UNALLOC = 16, /* this and the next two: no code of its own, no symbol */
	DBGDYN_DST_RTNBEG_PROTOTYPE = 32,
	DBGDYN_DST_RTNBEG_INLINED = 64,
	DBGDYN_DST_RTNBEG_NO_CALL = 128, /* called by JSB */
};

/* RTNEND and BLKEND. */
struct dbgdyn_dst_end {
	struct dbgdyn_dst_head head;
	uint8_t unused;
	uint32_t code_len; /* bytes from the matching beginning */
} DBGDYN_DST_PACKED;

/* Behind it: counted block name (may be empty). */
struct dbgdyn_dst_blkbeg {
	struct dbgdyn_dst_head head;
	uint8_t unused;
	uint32_t address;
} DBGDYN_DST_PACKED;

struct dbgdyn_dst_prolog {
	struct dbgdyn_dst_head head;
	uint32_t address; /* first instruction after the routine's prologue */
} DBGDYN_DST_PACKED;

/* From the next record on addresses are offsets from @base; 0: from where the range started. */
struct dbgdyn_dst_base {
	struct dbgdyn_dst_head head;
	uint64_t base; /* an address in the process, in a code range of this facility */
} DBGDYN_DST_PACKED;

/*
 * Commands of LINE_NUM records: a byte, then its operand (B u8, W u16, L u32). 0 and negative bytes
 * are DELTA_PC of minus that byte. A delta first adds the increment to the line, then moves PC; the
 * line starts there. Start: line 0, increment 1, PC the lowest routine's start, no line open.
 */
enum dbgdyn_dst_line_command {
	DBGDYN_DST_DELTA_PC_W = 1,
	DBGDYN_DST_INCR_LINUM = 2,
	DBGDYN_DST_INCR_LINUM_W = 3,
	DBGDYN_DST_SET_LINUM_INCR = 4,
	DBGDYN_DST_SET_LINUM_INCR_W = 5,
	DBGDYN_DST_RESET_LINUM_INCR = 6,
	DBGDYN_DST_BEG_STMT_MODE = 7,
	DBGDYN_DST_END_STMT_MODE = 8,
	DBGDYN_DST_SET_LINUM = 9, /* W */
	DBGDYN_DST_SET_PC = 10,
	DBGDYN_DST_SET_PC_W = 11,
	DBGDYN_DST_SET_PC_L = 12,
	DBGDYN_DST_SET_STMTNUM = 13,
	DBGDYN_DST_TERM = 14, /* B: PC moves behind the last line, which closes it */
	DBGDYN_DST_TERM_W = 15,
	DBGDYN_DST_SET_ABS_PC = 16, /* L, only while no line is open */
	DBGDYN_DST_DELTA_PC_L = 17,
	DBGDYN_DST_INCR_LINUM_L = 18,
	DBGDYN_DST_SET_LINUM_B = 19,
	DBGDYN_DST_SET_LINUM_L = 20,
	DBGDYN_DST_TERM_L = 21,
};

/*
 * Commands of SOURCE records: they bind the lines of LINE_NUM (listing lines) to records (lines)
 * of files. Start: line 1.
 */
enum dbgdyn_dst_source_command {
	DBGDYN_DST_DECLFILE = 1, /* struct dbgdyn_dst_declfile, counted file name, counted "" */
	DBGDYN_DST_SETFILE = 2,	 /* u16 file id */
	DBGDYN_DST_SETREC_L = 3,
	DBGDYN_DST_SETREC_W = 4,
	DBGDYN_DST_SETLNUM_L = 5,
	DBGDYN_DST_SETLNUM_W = 6,
	DBGDYN_DST_INCRLNUM_B = 7,
	DBGDYN_DST_DEFLINES_W = 10, /* n times: bind, line++, record++ */
	DBGDYN_DST_DEFLINES_B = 11,
	DBGDYN_DST_FORMFEED = 16,
};

struct dbgdyn_dst_declfile {
	uint8_t command;
	uint8_t length; /* bytes after this one */
	uint8_t flags;	/* 0 */
	uint16_t file;	/* id */
	uint64_t creation_time;
	uint32_t eof_block; /* all ones here and in the next two: no version check */
	uint16_t first_free;
	uint8_t record_format;
} DBGDYN_DST_PACKED;

/* ---- writers --------------------------------------------------------------------------------- */

/*
 * Append records to a DST range (or any buffer) that is zero from @used on. Each writer returns
 * DBGDYN_OK, DBGDYN_EFULL (it does not fit; nothing is written: name a new range by ADD) or
 * DBGDYN_EINVAL (a string too long for its count). A record's length is stored last, so that a
 * daemon that reads in the midst of it sees the zeros that end the DST. One thread at a time.
 */
struct dbgdyn_dst {
	unsigned char *base;
	size_t len;
	size_t used; /* 0 at first */
};

/* The parts of the writers; use those below. */
static inline unsigned char *dbgdyn_dst_space(struct dbgdyn_dst *d, size_t len)
{
	if (len > DBGDYN_DST_RECORD_MAX || d->used > d->len || d->len - d->used < len)
		return NULL;
	return d->base + d->used;
}

static inline void dbgdyn_dst_seal(struct dbgdyn_dst *d, size_t len, unsigned int type)
{
	uint16_t length16 = (uint16_t)(len - 1), type16 = (uint16_t)type;

	memcpy(d->base + d->used + 2, &type16, 2);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	memcpy(d->base + d->used, &length16, 2);
	d->used += len;
}

/* Fixed part (its head is skipped: dbgdyn_dst_seal writes it), then up to two counted strings. */
static inline int dbgdyn_dst_record_put(struct dbgdyn_dst *d, unsigned int type, const void *fixed,
					size_t fixed_len, const struct dbgdyn_string *text,
					size_t nr_text)
{
	size_t len = fixed_len;
	unsigned char *p;

	for (size_t i = 0; i < nr_text; i++) {
		if (text[i].len > DBGDYN_DST_NAME_MAX)
			return DBGDYN_EINVAL;
		len += 1 + text[i].len;
	}
	p = dbgdyn_dst_space(d, len);
	if (!p)
		return DBGDYN_EFULL;
	if (fixed_len > sizeof(struct dbgdyn_dst_head))
		memcpy(p + sizeof(struct dbgdyn_dst_head),
		       (const unsigned char *)fixed + sizeof(struct dbgdyn_dst_head),
		       fixed_len - sizeof(struct dbgdyn_dst_head));
	p += fixed_len;
	for (size_t i = 0; i < nr_text; i++) {
		*p++ = (unsigned char)text[i].len;
		if (text[i].len)
			memcpy(p, text[i].text, text[i].len);
		p += text[i].len;
	}
	dbgdyn_dst_seal(d, len, type);
	return DBGDYN_OK;
}

/* Start of a code segment's module. @compiler may be NULL with length 0. */
static inline int dbgdyn_dst_modbeg_put(struct dbgdyn_dst *d, enum dbgdyn_dst_language language,
					const char *name, size_t name_len, const char *compiler,
					size_t compiler_len)
{
	struct dbgdyn_dst_modbeg r;
	struct dbgdyn_string text[2];

	memset(&r, 0, sizeof(r));
	r.language = (uint32_t)language;
	r.flags = DBGDYN_DST_MODBEG_VERSION;
	r.major = 1;
	r.minor = 13;
	text[0].text = name;
	text[0].len = name_len;
	text[1].text = compiler;
	text[1].len = compiler_len;
	return dbgdyn_dst_record_put(d, DBGDYN_DST_MODBEG, &r, sizeof(r), text, 2);
}

static inline int dbgdyn_dst_modend_put(struct dbgdyn_dst *d)
{
	return dbgdyn_dst_record_put(d, DBGDYN_DST_MODEND, NULL, sizeof(struct dbgdyn_dst_head),
				     NULL, 0);
}

/* A routine's code starts at @address (see above). @flags: DBGDYN_DST_RTNBEG_… */
static inline int dbgdyn_dst_rtnbeg_flags_put(struct dbgdyn_dst *d, unsigned int flags,
					      uint32_t address, const char *name, size_t name_len)
{
	struct dbgdyn_dst_rtnbeg r;
	struct dbgdyn_string text;

	memset(&r, 0, sizeof(r));
	r.flags = (uint8_t)flags;
	r.address = address;
	text.text = name;
	text.len = name_len;
	return dbgdyn_dst_record_put(d, DBGDYN_DST_RTNBEG, &r, sizeof(r), &text, 1);
}

static inline int dbgdyn_dst_rtnbeg_put(struct dbgdyn_dst *d, uint32_t address, const char *name,
					size_t name_len)
{
	return dbgdyn_dst_rtnbeg_flags_put(d, 0, address, name, name_len);
}

/* The innermost open routine's code is @code_len bytes long. */
static inline int dbgdyn_dst_rtnend_put(struct dbgdyn_dst *d, uint32_t code_len)
{
	struct dbgdyn_dst_end r;

	memset(&r, 0, sizeof(r));
	r.code_len = code_len;
	return dbgdyn_dst_record_put(d, DBGDYN_DST_RTNEND, &r, sizeof(r), NULL, 0);
}

static inline int dbgdyn_dst_blkbeg_put(struct dbgdyn_dst *d, uint32_t address, const char *name,
					size_t name_len)
{
	struct dbgdyn_dst_blkbeg r;
	struct dbgdyn_string text;

	memset(&r, 0, sizeof(r));
	r.address = address;
	text.text = name;
	text.len = name_len;
	return dbgdyn_dst_record_put(d, DBGDYN_DST_BLKBEG, &r, sizeof(r), &text, 1);
}

static inline int dbgdyn_dst_blkend_put(struct dbgdyn_dst *d, uint32_t code_len)
{
	struct dbgdyn_dst_end r;

	memset(&r, 0, sizeof(r));
	r.code_len = code_len;
	return dbgdyn_dst_record_put(d, DBGDYN_DST_BLKEND, &r, sizeof(r), NULL, 0);
}

static inline int dbgdyn_dst_prolog_put(struct dbgdyn_dst *d, uint32_t address)
{
	struct dbgdyn_dst_prolog r;

	memset(&r, 0, sizeof(r));
	r.address = address;
	return dbgdyn_dst_record_put(d, DBGDYN_DST_PROLOG, &r, sizeof(r), NULL, 0);
}

/* Addresses of the modules after it are offsets from @base; NULL: from the first range again. */
static inline int dbgdyn_dst_base_put(struct dbgdyn_dst *d, const void *base)
{
	struct dbgdyn_dst_base r;

	memset(&r, 0, sizeof(r));
	r.base = (uint64_t)(uintptr_t)base;
	return dbgdyn_dst_record_put(d, DBGDYN_DST_BASE, &r, sizeof(r), NULL, 0);
}

/* Declare source file @file (an id of the caller's choice, unique in the module). */
static inline int dbgdyn_dst_file_put(struct dbgdyn_dst *d, uint16_t file, const char *name,
				      size_t name_len)
{
	struct {
		struct dbgdyn_dst_head head;
		struct dbgdyn_dst_declfile decl;
	} DBGDYN_DST_PACKED r;
	struct dbgdyn_string text[2];

	if (name_len > DBGDYN_DST_FILE_MAX)
		return DBGDYN_EINVAL;
	memset(&r, 0, sizeof(r));
	r.decl.command = DBGDYN_DST_DECLFILE;
	r.decl.length = (uint8_t)(sizeof(r.decl) - 2 + 1 + name_len + 1);
	r.decl.file = file;
	r.decl.eof_block = UINT32_MAX;
	r.decl.first_free = UINT16_MAX;
	r.decl.record_format = UINT8_MAX;
	text[0].text = name;
	text[0].len = name_len;
	text[1].text = NULL;
	text[1].len = 0;
	return dbgdyn_dst_record_put(d, DBGDYN_DST_SOURCE, &r, sizeof(r), text, 2);
}

/* Listing lines @line … @line + @nr - 1 are lines @record … of declared file @file. Lines ascend.
 */
static inline int dbgdyn_dst_source_put(struct dbgdyn_dst *d, uint16_t file, uint32_t line,
					uint32_t record, uint16_t nr)
{
	struct {
		struct dbgdyn_dst_head head;
		uint8_t setfile;
		uint16_t file;
		uint8_t setrec;
		uint32_t record;
		uint8_t setlnum;
		uint32_t line;
		uint8_t deflines;
		uint16_t nr;
	} DBGDYN_DST_PACKED r;

	memset(&r, 0, sizeof(r));
	r.setfile = DBGDYN_DST_SETFILE;
	r.file = file;
	r.setrec = DBGDYN_DST_SETREC_L;
	r.record = record;
	r.setlnum = DBGDYN_DST_SETLNUM_L;
	r.line = line;
	r.deflines = DBGDYN_DST_DEFLINES_W;
	r.nr = nr;
	return dbgdyn_dst_record_put(d, DBGDYN_DST_SOURCE, &r, sizeof(r), NULL, 0);
}

/* From @code_off (from the routine's start) on the code is of listing line @line; 0: of none. */
struct dbgdyn_dst_line {
	uint32_t code_off;
	uint32_t line;
};

/* One line's commands, 15 bytes at most, into @p: how many. @open: a line is open, at @pc. */
static inline size_t dbgdyn_dst_command_put(unsigned char *p, uint32_t pc, int open, uint32_t to,
					    uint32_t line)
{
	uint32_t delta = open ? to - pc : 0, before = line - 1;
	size_t n = 0;

	if (!line) {
		p[n++] = DBGDYN_DST_TERM_L;
		memcpy(p + n, &delta, 4);
		return n + 4;
	}
	p[n++] = DBGDYN_DST_SET_LINUM_L;
	memcpy(p + n, &before, 4);
	n += 4;
	if (!open) {
		p[n++] = DBGDYN_DST_SET_ABS_PC;
		memcpy(p + n, &to, 4);
		n += 4;
	}
	if (delta <= 128) {
		p[n++] = (unsigned char)(0u - delta);
		return n;
	}
	p[n++] = DBGDYN_DST_DELTA_PC_L;
	memcpy(p + n, &delta, 4);
	return n + 4;
}

/*
 * The lines of a routine that starts at @address and is @code_len bytes long, as LINE_NUM records
 * (one, or more for thousands of lines); between its RTNBEG and RTNEND by custom. @lines ascend in
 * code_off, all below @code_len. Wants 15 bytes of room for each line.
 */
static inline int dbgdyn_dst_lines_put(struct dbgdyn_dst *d, uint32_t address, uint32_t code_len,
				       const struct dbgdyn_dst_line *lines, size_t nr_lines)
{
	const size_t head = sizeof(struct dbgdyn_dst_head);
	size_t len = head;
	uint32_t pc = address;
	int open = 0;

	for (size_t i = 0; i < nr_lines; i++)
		if (lines[i].code_off >= code_len ||
		    (i && lines[i].code_off < lines[i - 1].code_off))
			return DBGDYN_EINVAL;
	if (d->used > d->len || (d->len - d->used) / 15 < nr_lines + 1 + nr_lines / 4000 + 1)
		return DBGDYN_EFULL;
	for (size_t i = 0; i <= nr_lines; i++) {
		uint32_t to = address + (i < nr_lines ? lines[i].code_off : code_len);
		uint32_t line = i < nr_lines ? lines[i].line : 0;

		if (!open && !line)
			continue;
		if (len > DBGDYN_DST_RECORD_MAX - 15) {
			dbgdyn_dst_seal(d, len, DBGDYN_DST_LINE_NUM);
			len = head;
		}
		len += dbgdyn_dst_command_put(d->base + d->used + len, pc, open, to, line);
		open = line != 0;
		pc = to;
	}
	if (len > head)
		dbgdyn_dst_seal(d, len, DBGDYN_DST_LINE_NUM);
	return DBGDYN_OK;
}

/*
 * Append the records of @m, made apart in a buffer of its own: a daemon that reads at that moment
 * sees all of them or none. So a module never begins in one DST range and ends in another.
 */
static inline int dbgdyn_dst_append(struct dbgdyn_dst *d, const struct dbgdyn_dst *m)
{
	if (d->used > d->len || d->len - d->used < m->used)
		return DBGDYN_EFULL;
	if (m->used < sizeof(struct dbgdyn_dst_head))
		return m->used ? DBGDYN_EINVAL : DBGDYN_OK;
	memcpy(d->base + d->used + 2, m->base + 2, m->used - 2);
	__atomic_thread_fence(__ATOMIC_RELEASE);
	memcpy(d->base + d->used, m->base, 2);
	d->used += m->used;
	return DBGDYN_OK;
}

/* ---- single commands ------------------------------------------------------------------------- */

/*
 * dbgdyn_dst_lines_put, _file_put and _source_put are enough for most. Who has such commands at
 * hand already writes them one by one into a buffer, and the buffer as a record of type
 * DBGDYN_DST_LINE_NUM or _SOURCE, whose records need not end where the commands of one routine do,
 * but never within a command.
 */
static inline int dbgdyn_dst_commands_put(struct dbgdyn_dst *d, enum dbgdyn_dst_type type,
					  const unsigned char *commands, size_t len)
{
	const size_t head = sizeof(struct dbgdyn_dst_head);
	unsigned char *p = dbgdyn_dst_space(d, head + len);

	if (type != DBGDYN_DST_LINE_NUM && type != DBGDYN_DST_SOURCE)
		return DBGDYN_EINVAL;
	if (!p)
		return DBGDYN_EFULL;
	if (len)
		memcpy(p + head, commands, len);
	dbgdyn_dst_seal(d, head + len, type);
	return DBGDYN_OK;
}

#define DBGDYN_DST_COMMAND_MAX 5u /* bytes of one command but DECLFILE */

/* A command byte and its operand of @width bytes: how many; 0 where it does not fit. */
static inline size_t dbgdyn_dst_operand_put(unsigned char *p, int command, int width,
					    uint32_t operand)
{
	if (width < 0 || (width < 4 && operand >> 8 * width))
		return 0;
	p[0] = (unsigned char)command;
	if (width)
		memcpy(p + 1, &operand, (size_t)width);
	return 1 + (size_t)width;
}

/*
 * One LINE_NUM command into @p, which has room for DBGDYN_DST_COMMAND_MAX: its bytes, or 0 where
 * there is no such command or @operand is too large for it (0 for those without). DELTA_PC in its
 * one-byte form is dbgdyn_dst_delta_pc_put.
 */
static inline size_t dbgdyn_dst_line_command_put(unsigned char *p,
						 enum dbgdyn_dst_line_command command,
						 uint32_t operand)
{
	int width = -1;

	switch (command) {
	case DBGDYN_DST_RESET_LINUM_INCR:
	case DBGDYN_DST_BEG_STMT_MODE:
	case DBGDYN_DST_END_STMT_MODE:
		width = 0;
		break;
	case DBGDYN_DST_INCR_LINUM:
	case DBGDYN_DST_SET_LINUM_INCR:
	case DBGDYN_DST_SET_PC:
	case DBGDYN_DST_SET_STMTNUM:
	case DBGDYN_DST_TERM:
	case DBGDYN_DST_SET_LINUM_B:
		width = 1;
		break;
	case DBGDYN_DST_DELTA_PC_W:
	case DBGDYN_DST_INCR_LINUM_W:
	case DBGDYN_DST_SET_LINUM_INCR_W:
	case DBGDYN_DST_SET_LINUM:
	case DBGDYN_DST_SET_PC_W:
	case DBGDYN_DST_TERM_W:
		width = 2;
		break;
	case DBGDYN_DST_SET_PC_L:
	case DBGDYN_DST_SET_ABS_PC:
	case DBGDYN_DST_DELTA_PC_L:
	case DBGDYN_DST_INCR_LINUM_L:
	case DBGDYN_DST_SET_LINUM_L:
	case DBGDYN_DST_TERM_L:
		width = 4;
		break;
	}
	return dbgdyn_dst_operand_put(p, (int)command, width, operand);
}

/* DELTA_PC in the shortest form. */
static inline size_t dbgdyn_dst_delta_pc_put(unsigned char *p, uint32_t delta)
{
	if (delta > 128)
		return dbgdyn_dst_line_command_put(
			p, delta > UINT16_MAX ? DBGDYN_DST_DELTA_PC_L : DBGDYN_DST_DELTA_PC_W,
			delta);
	p[0] = (unsigned char)(0u - delta);
	return 1;
}

/* One SOURCE command likewise; DECLFILE has a record of its own, dbgdyn_dst_file_put. */
static inline size_t dbgdyn_dst_source_command_put(unsigned char *p,
						   enum dbgdyn_dst_source_command command,
						   uint32_t operand)
{
	int width = -1;

	switch (command) {
	case DBGDYN_DST_DECLFILE:
		break;
	case DBGDYN_DST_FORMFEED:
		width = 0;
		break;
	case DBGDYN_DST_INCRLNUM_B:
	case DBGDYN_DST_DEFLINES_B:
		width = 1;
		break;
	case DBGDYN_DST_SETFILE:
	case DBGDYN_DST_SETREC_W:
	case DBGDYN_DST_SETLNUM_W:
	case DBGDYN_DST_DEFLINES_W:
		width = 2;
		break;
	case DBGDYN_DST_SETREC_L:
	case DBGDYN_DST_SETLNUM_L:
		width = 4;
		break;
	}
	return dbgdyn_dst_operand_put(p, (int)command, width, operand);
}

/* ---- the original constants ------------------------------------------------------------------ */

#define DST$K_DIS_RANGE	  DBGDYN_DST_DIS_RANGE
#define DST$K_PROLOG_LIST DBGDYN_DST_PROLOG_LIST
#define DST$K_RTN_UNALLOC DBGDYN_DST_RTN_UNALLOC
#define DST$K_RETURN	  DBGDYN_DST_RETURN
#define DST$K_EPILOG	  DBGDYN_DST_EPILOG
#define DST$K_INLINE	  DBGDYN_DST_INLINE
#define DST$K_EDIT_SOURCE DBGDYN_DST_EDIT_SOURCE
#define DST$K_VERSION	  DBGDYN_DST_VERSION
#define DST$K_SOURCE	  DBGDYN_DST_SOURCE
#define DST$K_PROLOG	  DBGDYN_DST_PROLOG
#define DST$K_CONTIN	  DBGDYN_DST_CONTIN
#define DST$K_BLKBEG	  DBGDYN_DST_BLKBEG
#define DST$K_BLKEND	  DBGDYN_DST_BLKEND
#define DST$K_ENTRY	  DBGDYN_DST_ENTRY
#define DST$K_PSECT	  DBGDYN_DST_PSECT
#define DST$K_LINE_NUM	  DBGDYN_DST_LINE_NUM
#define DST$K_LBLORLIT	  DBGDYN_DST_LBLORLIT
#define DST$K_LABEL	  DBGDYN_DST_LABEL
#define DST$K_MODBEG	  DBGDYN_DST_MODBEG
#define DST$K_MODEND	  DBGDYN_DST_MODEND
#define DST$K_RTNBEG	  DBGDYN_DST_RTNBEG
#define DST$K_RTNEND	  DBGDYN_DST_RTNEND
#define DST$K_PCLOC	  DBGDYN_DST_PCLOC

#define DST$K_MACRO   DBGDYN_DST_MACRO
#define DST$K_FORTRAN DBGDYN_DST_FORTRAN
#define DST$K_BLISS   DBGDYN_DST_BLISS
#define DST$K_COBOL   DBGDYN_DST_COBOL
#define DST$K_BASIC   DBGDYN_DST_BASIC
#define DST$K_PLI     DBGDYN_DST_PLI
#define DST$K_PASCAL  DBGDYN_DST_PASCAL
#define DST$K_C	      DBGDYN_DST_C
#define DST$K_RPG     DBGDYN_DST_RPG
#define DST$K_ADA     DBGDYN_DST_ADA
#define DST$K_UNKNOWN DBGDYN_DST_UNKNOWN
#define DST$K_SCAN    DBGDYN_DST_SCAN
#define DST$K_DIBOL   DBGDYN_DST_DIBOL
#define DST$K_MODULA  DBGDYN_DST_MODULA
#define DST$K_PILLAR  DBGDYN_DST_PILLAR
#define DST$K_CXX     DBGDYN_DST_CXX
#define DST$K_AMACRO  DBGDYN_DST_AMACRO
#define DST$K_MACRO64 DBGDYN_DST_MACRO64

#define DST$K_DELTA_PC_W       DBGDYN_DST_DELTA_PC_W
#define DST$K_INCR_LINUM       DBGDYN_DST_INCR_LINUM
#define DST$K_INCR_LINUM_W     DBGDYN_DST_INCR_LINUM_W
#define DST$K_SET_LINUM_INCR   DBGDYN_DST_SET_LINUM_INCR
#define DST$K_SET_LINUM_INCR_W DBGDYN_DST_SET_LINUM_INCR_W
#define DST$K_RESET_LINUM_INCR DBGDYN_DST_RESET_LINUM_INCR
#define DST$K_BEG_STMT_MODE    DBGDYN_DST_BEG_STMT_MODE
#define DST$K_END_STMT_MODE    DBGDYN_DST_END_STMT_MODE
#define DST$K_SET_LINUM	       DBGDYN_DST_SET_LINUM
#define DST$K_SET_PC	       DBGDYN_DST_SET_PC
#define DST$K_SET_PC_W	       DBGDYN_DST_SET_PC_W
#define DST$K_SET_PC_L	       DBGDYN_DST_SET_PC_L
#define DST$K_SET_STMTNUM      DBGDYN_DST_SET_STMTNUM
#define DST$K_TERM	       DBGDYN_DST_TERM
#define DST$K_TERM_W	       DBGDYN_DST_TERM_W
#define DST$K_SET_ABS_PC       DBGDYN_DST_SET_ABS_PC
#define DST$K_DELTA_PC_L       DBGDYN_DST_DELTA_PC_L
#define DST$K_INCR_LINUM_L     DBGDYN_DST_INCR_LINUM_L
#define DST$K_SET_LINUM_B      DBGDYN_DST_SET_LINUM_B
#define DST$K_SET_LINUM_L      DBGDYN_DST_SET_LINUM_L
#define DST$K_TERM_L	       DBGDYN_DST_TERM_L

#define DST$K_SRC_DECLFILE   DBGDYN_DST_DECLFILE
#define DST$K_SRC_SETFILE    DBGDYN_DST_SETFILE
#define DST$K_SRC_SETREC_L   DBGDYN_DST_SETREC_L
#define DST$K_SRC_SETREC_W   DBGDYN_DST_SETREC_W
#define DST$K_SRC_SETLNUM_L  DBGDYN_DST_SETLNUM_L
#define DST$K_SRC_SETLNUM_W  DBGDYN_DST_SETLNUM_W
#define DST$K_SRC_INCRLNUM_B DBGDYN_DST_INCRLNUM_B
#define DST$K_SRC_DEFLINES_W DBGDYN_DST_DEFLINES_W
#define DST$K_SRC_DEFLINES_B DBGDYN_DST_DEFLINES_B
#define DST$K_SRC_FORMFEED   DBGDYN_DST_FORMFEED

#ifdef __cplusplus
}
#endif
#endif
