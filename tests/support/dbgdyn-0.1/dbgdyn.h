/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The interface of version 0.1, without its comments and never changed, for test programs that show
 * that clients compiled with it go on working.
 */
#ifndef DBGDYN_H
#define DBGDYN_H
#include <stddef.h>
#include <stdint.h>
#ifdef __cplusplus
extern "C" {
#endif
#if defined(__GNUC__)
#define DBGDYN_API __attribute__((visibility("default")))
#else
#define DBGDYN_API
#endif
#define DBGDYN_VERSION_MAJOR 0
#define DBGDYN_VERSION_MINOR 1
enum dbgdyn_result {
	DBGDYN_OK = 0,
	DBGDYN_EINVAL = -1,
	DBGDYN_ENOMEM = -2,
	DBGDYN_ENODAEMON = -3,
	DBGDYN_ETIMEDOUT = -4,
	DBGDYN_EFULL = -5,
	DBGDYN_EREFUSED = -6,
	DBGDYN_EIO = -7,
	DBGDYN_EINPROGRESS = -8
};
DBGDYN_API const char *dbgdyn_strerror(int result);
enum dbgdyn_kind { DBGDYN_CODE = 1, DBGDYN_DST = 2 };
struct dbgdyn_options {
	size_t size;
	const void *code_base;
	size_t code_len;
	const void *dst_base;
	size_t dst_len;
	uint32_t timeout_ms;
	uint32_t flags;
	int registry_fd;
};
#define DBGDYN_NO_SYSCALLS 1u
#define DBGDYN_REGISTRY_FD 2u
DBGDYN_API int dbgdyn_registry_make(void);
DBGDYN_API int dbgdyn_begin(const char *facility, size_t facility_len,
			    const struct dbgdyn_options *opts, uint64_t *context);
DBGDYN_API int dbgdyn_add(uint64_t context, enum dbgdyn_kind kind, const void *base, size_t len);
struct dbgdyn_line {
	uint32_t code_off;
	uint32_t line;
	uint32_t file;
};
struct dbgdyn_string {
	const char *text;
	size_t len;
};
#define DBGDYN_STR(literal)                                                                        \
	{                                                                                          \
		literal, sizeof(literal) - 1                                                       \
	}
struct dbgdyn_inline {
	uint32_t code_off, code_len;
	struct dbgdyn_string name;
	uint32_t call_file;
	uint32_t call_line;
	uint32_t depth;
};
struct dbgdyn_routine {
	size_t size;
	struct dbgdyn_string name;
	const void *code;
	size_t code_len;
	const struct dbgdyn_line *lines;
	size_t nr_lines;
	const struct dbgdyn_string *files;
	size_t nr_files;
	const struct dbgdyn_inline *inlines;
	size_t nr_inlines;
	const void *bytes;
};
DBGDYN_API int dbgdyn_register(uint64_t context, const struct dbgdyn_routine *routine,
			       uint64_t *handle);
DBGDYN_API int dbgdyn_check(const struct dbgdyn_routine *routine, char *text, size_t len);
DBGDYN_API int dbgdyn_retire(uint64_t context, uint64_t handle);
DBGDYN_API int dbgdyn_retire_code(uint64_t context, const void *code, size_t len);
DBGDYN_API int dbgdyn_move(uint64_t context, uint64_t handle, const void *code);
DBGDYN_API int dbgdyn_register_object(uint64_t context, const void *elf, size_t elf_len,
				      uint64_t bias, uint64_t *handle);
DBGDYN_API int dbgdyn_flush(uint64_t context);
DBGDYN_API int dbgdyn_end(uint64_t context);
#ifdef __cplusplus
}
#endif
#endif
