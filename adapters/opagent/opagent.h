/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The entry points of OProfile's agent library for JITs, over libdbgdyn: programs built for
 * libopagent.so.1 tell the DCPI daemon, and nothing in them changes. No dump file is written; where
 * no daemon runs nothing else happens either. dbgdyn.h is the interface for new programs.
 *
 * Results: 0, or -1 and errno: EINVAL (a handle that op_open_agent did not return, or that is
 * closed; an argument that makes no sense), ENOMEM, EFAULT, EIO. All calls may be made from any
 * thread, none from a signal handler. In a child of fork the parent's handles go on.
 *
 * Source: OProfile's developer guide for JIT agents (op_*), version 1.0 of that interface.
 */
#ifndef OPAGENT_H
#define OPAGENT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef void *op_agent_t;

/* From the address vma on the code is of this line, up to the next entry. */
struct debug_line_info {
	unsigned long vma;
	unsigned int lineno;
	char const *filename;
};

/* Before any other call. A handle, or NULL and errno (ENOMEM). */
op_agent_t op_open_agent(void);

/* The handle ends. What was told stays told, as the code may go on running. */
int op_close_agent(op_agent_t hdl);

/*
 * Code of @code_size bytes (1 to 16 MiB) runs at @vma from now on, in place of what stood there.
 * @symbol_name: not empty. @code: where its bytes can be read now, also elsewhere than at @vma;
 * NULL: read them at @vma, if need be (EFAULT: they cannot be read there).
 */
int op_write_native_code(op_agent_t hdl, char const *symbol_name, uint64_t vma, void const *code,
			 unsigned int const code_size);

/*
 * Lines of the code that was, or will next be, told with this @code (or this vma, where that was
 * told with NULL). Entries may come in any order and leave holes; those outside the code are left
 * out. A later call replaces the lines of an earlier one. Code that is told already is told again,
 * with lines: a sample from before this call is listed without.
 */
int op_write_debug_line_info(op_agent_t hdl, void const *code, size_t nr_entry,
			     struct debug_line_info const *compile_map);

/* The code at @vma is gone. 0 also where there was none. */
int op_unload_native_code(op_agent_t hdl, uint64_t vma);

/* Version of the interface: 1 and 0. */
int op_major_version(void);
int op_minor_version(void);

#ifdef __cplusplus
}
#endif
#endif
