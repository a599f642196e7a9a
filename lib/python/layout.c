/* SPDX-License-Identifier: BSD-2-Clause */
/* The layout of a CPython's structures: by its version, if its own functions agree, or as it says.
 */
#include "python_layout.h"

#include <string.h>

#include "insn_x86.h"

enum { CODE_MAX = 96 }; /* bytes of a function that are looked at */

/* ---- versions -------------------------------------------------------------------------------- */

/* A version's layout; the addresses are offsets in _PyRuntime. */
static const struct unwind_python layouts[] = {
	{
		.version = UNWIND_PYTHON_3_11,
		.current = 576,
		.main = 48,
		.threads = 16,
		.thread_next = 8,
		.thread_id = 152,
		.thread_cframe = 56,
		.cframe_frame = 8,
		.cframe_previous = 16,
		.frame_code = 32,
		.frame_previous = 48,
		.frame_instr = 56,
		.frame_entry = 68,
		.frame_owner = 69,
		.code_line = 72,
		.code_file = 112,
		.code_name = 128,
		.code_lines = 136,
		.code_bytes = 184,
		.string_ascii = 48,
		.string_other = 72,
	},
	{
		.version = UNWIND_PYTHON_3_12,
		.main = 48,
		.threads = 72,
		.thread_next = 8,
		.thread_id = 136,
		.thread_cframe = 56,
		.cframe_frame = 0,
		.cframe_previous = 8,
		.frame_code = 0,
		.frame_previous = 8,
		.frame_instr = 56,
		.frame_owner = 70,
		.code_line = 68,
		.code_file = 112,
		.code_name = 128,
		.code_lines = 136,
		.code_bytes = 192,
		.string_ascii = 40,
		.string_other = 56,
	},
};

/* ---- functions that read the same places ----------------------------------------------------- */

/* Does an operand of @i stand at @disp from a register; or, with @runtime, at that address? */
static bool reads(const struct insn_x86 *i, uint64_t vaddr, int64_t disp, uint64_t runtime)
{
	for (unsigned int k = 0; k < i->head.operand_count; k++) {
		const ZydisDecodedOperand *op = &i->op[k];

		if (op->type != ZYDIS_OPERAND_TYPE_MEMORY)
			continue;
		if (op->mem.base == ZYDIS_REGISTER_RIP) {
			if (runtime && vaddr + i->head.length + (uint64_t)op->mem.disp.value ==
					       runtime + (uint64_t)disp)
				return true;
		} else if (op->mem.base != ZYDIS_REGISTER_RSP && op->mem.disp.value == disp) {
			return true;
		}
	}
	return false;
}

/* Is there such an operand in the function's first bytes? */
static bool has_operand(const struct python_part *p, int64_t disp, uint64_t runtime)
{
	size_t len = p->len < CODE_MAX ? p->len : CODE_MAX, at = 0;
	struct insn_x86 i;

	while (p->vaddr && at < len && insn_x86_decode(true, p->bytes + at, len - at, &i)) {
		if (reads(&i, p->vaddr + at, disp, runtime))
			return true;
		at += i.head.length;
	}
	return false;
}

static bool agrees(const struct python_part *parts, const struct unwind_python *v)
{
	const struct {
		enum python_symbol function;
		uint64_t off;
		bool in_runtime;
	} places[] = {
		{ PYTHON_MAIN, v->main, true },
		{ PYTHON_THREAD_HEAD, v->threads, false },
		{ PYTHON_THREAD_NEXT, v->thread_next, false },
		{ PYTHON_GET_FRAME, v->thread_cframe, false },
		{ PYTHON_GET_FRAME, v->cframe_frame, false },
		{ PYTHON_GET_FRAME, v->frame_owner, false },
		{ PYTHON_GET_CODE, v->frame_code, false },
		{ PYTHON_GET_BACK, v->frame_previous, false },
		{ PYTHON_GET_LASTI, v->frame_code, false },
		{ PYTHON_GET_LASTI, v->frame_instr, false },
		{ PYTHON_GET_LASTI, v->code_bytes, false },
	};

	for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++)
		if (!has_operand(&parts[places[i].function], (int64_t)places[i].off,
				 places[i].in_runtime ? parts[PYTHON_RUNTIME].vaddr : 0))
			return false;
	return true;
}

/* ---- the table of 3.13 ----------------------------------------------------------------------- */

/* Its words: the first is a mark, the second PY_VERSION_HEX; of the others those that are needed.
 */
enum {
	TABLE_FREE_THREADED = 2,
	TABLE_INTERPRETERS = 5,
	TABLE_THREADS = 9,
	TABLE_THREAD_NEXT = 21,
	TABLE_THREAD_FRAME = 23,
	TABLE_THREAD_ID = 24,
	TABLE_FRAME_PREVIOUS = 29,
	TABLE_FRAME_CODE = 30,
	TABLE_FRAME_INSTR = 31,
	TABLE_FRAME_OWNER = 33,
	TABLE_CODE_FILE = 35,
	TABLE_CODE_NAME = 37,
	TABLE_CODE_LINES = 38,
	TABLE_CODE_LINE = 39,
	TABLE_CODE_BYTES = 43,
	TABLE_TYPE = 45,
	TABLE_BYTES = 66,
	TABLE_STRING_STATE = 68,
	TABLE_STRING_LEN = 69,
	TABLE_STRING_ASCII = 70,
	TABLE_LEN = 71,
	/* As all versions that are known have them. */
	TYPE_AT = 8,
	LEN_AT = 16,
	STATE_AT = 32,
	BYTES_AT = 32,
	OTHER_LEN = 16, /* of a string that is not ASCII: it has two more words */
};

static bool is_table(const uint64_t *t)
{
	return !memcmp(t, "xdebugpy", 8) && t[1] >> 16 == UNWIND_PYTHON_3_13 &&
	       !t[TABLE_FREE_THREADED] && t[TABLE_TYPE] == TYPE_AT &&
	       t[TABLE_STRING_LEN] == LEN_AT && t[TABLE_STRING_STATE] == STATE_AT &&
	       t[TABLE_BYTES] == BYTES_AT;
}

/* Larger ones are refused by unwind_python_valid. */
static uint16_t offset_of(const uint64_t *t, unsigned int word)
{
	return t[word] < UNWIND_PYTHON_OFFSET_MAX ? (uint16_t)t[word] : UINT16_MAX;
}

static void layout_of_table(const struct python_part *parts, struct unwind_python *out)
{
	const struct python_part *run = &parts[PYTHON_RUN_FRAME];
	uint64_t t[TABLE_LEN];

	if (parts[PYTHON_RUNTIME].len < sizeof(t) || !run->vaddr)
		return;
	memcpy(t, parts[PYTHON_RUNTIME].bytes, sizeof(t));
	if (!is_table(t))
		return;
	*out = (struct unwind_python){
		.version = UNWIND_PYTHON_3_13,
		.main = parts[PYTHON_RUNTIME].vaddr + t[TABLE_INTERPRETERS],
		.code_type = parts[PYTHON_CODE_TYPE].vaddr,
		.code = run->vaddr,
		.code_end = run->vaddr + run->size,
		.threads = offset_of(t, TABLE_THREADS),
		.thread_next = offset_of(t, TABLE_THREAD_NEXT),
		.thread_id = offset_of(t, TABLE_THREAD_ID),
		.thread_frame = offset_of(t, TABLE_THREAD_FRAME),
		.frame_code = offset_of(t, TABLE_FRAME_CODE),
		.frame_previous = offset_of(t, TABLE_FRAME_PREVIOUS),
		.frame_instr = offset_of(t, TABLE_FRAME_INSTR),
		.frame_owner = offset_of(t, TABLE_FRAME_OWNER),
		.code_line = offset_of(t, TABLE_CODE_LINE),
		.code_file = offset_of(t, TABLE_CODE_FILE),
		.code_name = offset_of(t, TABLE_CODE_NAME),
		.code_lines = offset_of(t, TABLE_CODE_LINES),
		.code_bytes = offset_of(t, TABLE_CODE_BYTES),
		.string_ascii = offset_of(t, TABLE_STRING_ASCII),
		.string_other = (uint16_t)(offset_of(t, TABLE_STRING_ASCII) + OTHER_LEN),
	};
	if (!unwind_python_valid(out))
		*out = (struct unwind_python){ 0 };
}

/* ---- the layout ------------------------------------------------------------------------------ */

static uint64_t version_of(const struct python_part *p)
{
	uint64_t version = 0;

	if (p->vaddr && p->len >= sizeof(version))
		memcpy(&version, p->bytes, sizeof(version));
	return version >> 16;
}

void python_layout(const struct python_part *parts, struct unwind_python *out)
{
	uint64_t version = version_of(&parts[PYTHON_VERSION]);

	*out = (struct unwind_python){ 0 };
	if (!parts[PYTHON_RUNTIME].vaddr || !parts[PYTHON_CODE_TYPE].vaddr)
		return;
	if (version == UNWIND_PYTHON_3_13)
		layout_of_table(parts, out);
	for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++) {
		if (layouts[i].version != version || !agrees(parts, &layouts[i]))
			continue;
		*out = layouts[i];
		out->main += parts[PYTHON_RUNTIME].vaddr;
		out->current += out->current ? parts[PYTHON_RUNTIME].vaddr : 0;
		out->code_type = parts[PYTHON_CODE_TYPE].vaddr;
	}
}
