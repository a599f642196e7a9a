/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The calls of dbgdyn.h for a program that does not link libdbgdyn: the library is loaded at the
 * first call where it is installed, and where it is not every call is refused (dbgdyn_begin stores
 * a context that names nothing). Include it in place of dbgdyn.h; nothing is to be linked (before
 * glibc 2.34 -ldl).
 *
 * The names of the calls are macros here. All files of a program or shared object share one table
 * of addresses. From any thread; a signal handler may only make calls after another one has
 * returned. C and C++, GCC and clang.
 *
 * Source: the dlopen idiom of JITs that must run where the library is not; written for this
 * project.
 */
#ifndef DBGDYN_DLOPEN_H
#define DBGDYN_DLOPEN_H

#include <dbgdyn.h>
#include <dlfcn.h>

/* What is loaded: its binary interface is that of this number. */
#define DBGDYN_DLOPEN_NAME "libdbgdyn.so.0"

#define DBGDYN_DLOPEN_CALLS(X)                                                                     \
	X(begin)                                                                                   \
	X(add)                                                                                     \
	X(register)                                                                                \
	X(register_many)                                                                           \
	X(check)                                                                                   \
	X(retire)                                                                                  \
	X(retire_code)                                                                             \
	X(move)                                                                                    \
	X(register_object)                                                                         \
	X(copy_object)                                                                             \
	X(registry_make)                                                                           \
	X(flush)                                                                                   \
	X(end)                                                                                     \
	X(strerror)

#define DBGDYN_DLOPEN_FIELD(name) __typeof__(&dbgdyn_##name) call_##name;
struct dbgdyn_dlopen_table {
	int looked; /* stored with release after the addresses; those that were not found are NULL
		     */
	DBGDYN_DLOPEN_CALLS(DBGDYN_DLOPEN_FIELD)
};
#undef DBGDYN_DLOPEN_FIELD

__attribute__((weak, visibility("hidden"))) struct dbgdyn_dlopen_table dbgdyn_dlopen_table;

/* Two threads that come here at once store the same. */
static inline const struct dbgdyn_dlopen_table *dbgdyn_dlopen_get(void)
{
	struct dbgdyn_dlopen_table *t = &dbgdyn_dlopen_table;
	void *lib, *at;

	if (__atomic_load_n(&t->looked, __ATOMIC_ACQUIRE))
		return t;
	lib = dlopen(DBGDYN_DLOPEN_NAME, RTLD_NOW | RTLD_LOCAL);
	if (lib) {
#define DBGDYN_DLOPEN_LOAD(name)                                                                   \
	at = dlsym(lib, "dbgdyn_" #name);                                                          \
	__builtin_memcpy(&t->call_##name, &at, sizeof(at));
		DBGDYN_DLOPEN_CALLS(DBGDYN_DLOPEN_LOAD)
#undef DBGDYN_DLOPEN_LOAD
	}
	__atomic_store_n(&t->looked, 1, __ATOMIC_RELEASE);
	return t;
}

/* Of @call where it was found, else refused. */
#define DBGDYN_DLOPEN_RETURN(name, ...)                                                            \
	const struct dbgdyn_dlopen_table *t = dbgdyn_dlopen_get();                                 \
                                                                                                   \
	return t->call_##name ? t->call_##name(__VA_ARGS__) : (int)DBGDYN_EREFUSED

static inline int dbgdyn_dlopen_begin(const char *facility, size_t facility_len,
				      const struct dbgdyn_options *opts, dbgdyn_context *context)
{
	if (context)
		context->id = 0;
	DBGDYN_DLOPEN_RETURN(begin, facility, facility_len, opts, context);
}

static inline int dbgdyn_dlopen_add(dbgdyn_context context, enum dbgdyn_kind kind, const void *base,
				    size_t len)
{
	DBGDYN_DLOPEN_RETURN(add, context, kind, base, len);
}

static inline int dbgdyn_dlopen_register(dbgdyn_context context,
					 const struct dbgdyn_routine *routine,
					 dbgdyn_handle *handle)
{
	DBGDYN_DLOPEN_RETURN(register, context, routine, handle);
}

static inline int dbgdyn_dlopen_register_many(dbgdyn_context context,
					      const struct dbgdyn_routine *routines, size_t nr,
					      dbgdyn_handle *handles)
{
	DBGDYN_DLOPEN_RETURN(register_many, context, routines, nr, handles);
}

static inline int dbgdyn_dlopen_check(const struct dbgdyn_routine *routine, char *text, size_t len)
{
	DBGDYN_DLOPEN_RETURN(check, routine, text, len);
}

static inline int dbgdyn_dlopen_retire(dbgdyn_context context, dbgdyn_handle handle)
{
	DBGDYN_DLOPEN_RETURN(retire, context, handle);
}

static inline int dbgdyn_dlopen_retire_code(dbgdyn_context context, const void *code, size_t len)
{
	DBGDYN_DLOPEN_RETURN(retire_code, context, code, len);
}

static inline int dbgdyn_dlopen_move(dbgdyn_context context, dbgdyn_handle handle, const void *code)
{
	DBGDYN_DLOPEN_RETURN(move, context, handle, code);
}

static inline int dbgdyn_dlopen_register_object(dbgdyn_context context, const void *elf,
						size_t elf_len, uint64_t bias,
						dbgdyn_handle *handle)
{
	DBGDYN_DLOPEN_RETURN(register_object, context, elf, elf_len, bias, handle);
}

static inline int dbgdyn_dlopen_copy_object(dbgdyn_context context, const void *elf, size_t elf_len,
					    uint64_t bias, dbgdyn_handle *handle)
{
	DBGDYN_DLOPEN_RETURN(copy_object, context, elf, elf_len, bias, handle);
}

static inline int dbgdyn_dlopen_registry_make(void)
{
	DBGDYN_DLOPEN_RETURN(registry_make, );
}

static inline int dbgdyn_dlopen_flush(dbgdyn_context context)
{
	DBGDYN_DLOPEN_RETURN(flush, context);
}

static inline int dbgdyn_dlopen_end(dbgdyn_context context)
{
	DBGDYN_DLOPEN_RETURN(end, context);
}

static inline const char *dbgdyn_dlopen_strerror(int result)
{
	const struct dbgdyn_dlopen_table *t = dbgdyn_dlopen_get();

	return t->call_strerror ? t->call_strerror(result) : "libdbgdyn is not installed";
}

#undef DBGDYN_DLOPEN_RETURN
#undef DBGDYN_DLOPEN_CALLS

#define dbgdyn_begin	       dbgdyn_dlopen_begin
#define dbgdyn_add	       dbgdyn_dlopen_add
#define dbgdyn_register	       dbgdyn_dlopen_register
#define dbgdyn_register_many   dbgdyn_dlopen_register_many
#define dbgdyn_check	       dbgdyn_dlopen_check
#define dbgdyn_retire	       dbgdyn_dlopen_retire
#define dbgdyn_retire_code     dbgdyn_dlopen_retire_code
#define dbgdyn_move	       dbgdyn_dlopen_move
#define dbgdyn_register_object dbgdyn_dlopen_register_object
#define dbgdyn_copy_object     dbgdyn_dlopen_copy_object
#define dbgdyn_registry_make   dbgdyn_dlopen_registry_make
#define dbgdyn_flush	       dbgdyn_dlopen_flush
#define dbgdyn_end	       dbgdyn_dlopen_end
#define dbgdyn_strerror	       dbgdyn_dlopen_strerror

#endif
