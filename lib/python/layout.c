/* SPDX-License-Identifier: BSD-2-Clause */
/* The layout of a CPython's structures, by its version, and whether its own functions agree. */
#include "python_layout.h"

#include <string.h>

#include "insn_x86.h"

const char *python_symbol_name(enum python_symbol symbol)
{
	static const char *const names[] = {
#define X(id, name) name,
		PYTHON_SYMBOLS(X)
#undef X
	};

	return names[symbol];
}

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

/* ---- functions that read the same places ------------------------------------------------------
 */

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
	struct insn_x86 i;
	size_t at = 0;

	while (p->vaddr && at < p->len && insn_x86_decode(true, p->bytes + at, p->len - at, &i)) {
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
	for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++) {
		if (layouts[i].version != version || !agrees(parts, &layouts[i]))
			continue;
		*out = layouts[i];
		out->main += parts[PYTHON_RUNTIME].vaddr;
		out->current += out->current ? parts[PYTHON_RUNTIME].vaddr : 0;
		out->code_type = parts[PYTHON_CODE_TYPE].vaddr;
	}
}
