/* SPDX-License-Identifier: BSD-2-Clause */
/* The functions of OProfile's agent library call libdbgdyn. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <search.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dbgdyn.h"
#include "opagent.h"

/* Lines as they were told, copied: files' names follow the entries. */
struct opagent_lines {
	struct debug_line_info *entries;
	size_t nr_entries;
};

/* The data given with one code pointer. name is NULL while there are only lines. */
struct opagent_code {
	uintptr_t code; /* the key: the given pointer, or vma */
	uint64_t vma;
	size_t code_len;
	char *name;
	struct opagent_lines lines;
};

/* ---- memory that can be read ----------------------------------------------------------------- */

#define PAGE 4096u

/*
 * False only where the kernel says that some of it cannot be read. The kernel reads a byte of each
 * page into a pipe, and says where it cannot.
 */
static bool opagent_readable(const void *addr, size_t len)
{
	int before = errno, fds[2];
	bool good = true;

	/* Where a sandbox forbids that, the code is taken for what it should be. */
	if (pipe2(fds, O_CLOEXEC | O_NONBLOCK) == 0) {
		for (size_t at = 0; good && at < len; at += PAGE - ((uintptr_t)addr + at) % PAGE)
			good = write(fds[1], (const char *)addr + at, 1) == 1 || errno != EFAULT;
		close(fds[0]);
		close(fds[1]);
	}
	errno = before;
	return good;
}

/* ---- lines ----------------------------------------------------------------------------------- */

static void opagent_lines_release(struct opagent_lines *l)
{
	free(l->entries);
	*l = (struct opagent_lines){ 0 };
}

static bool same_file(const struct debug_line_info *a, const struct debug_line_info *b)
{
	return a->filename == b->filename ||
	       (a->filename && b->filename && !strcmp(a->filename, b->filename));
}

/* Room for the names, each once for as long as it goes on. */
static size_t names_len(const struct debug_line_info *entries, size_t nr)
{
	size_t len = 0;

	for (size_t i = 0; i < nr; i++)
		if (entries[i].filename && (!i || !same_file(&entries[i], &entries[i - 1])))
			len += strlen(entries[i].filename) + 1;
	return len;
}

/* A copy; -ENOMEM: @to is as before. What it held is freed. */
static int opagent_lines_set(struct opagent_lines *to, const struct debug_line_info *entries,
			     size_t nr)
{
	struct debug_line_info *copy;
	size_t len;
	char *name;

	if (__builtin_mul_overflow(nr, sizeof(*copy), &len) ||
	    __builtin_add_overflow(len, names_len(entries, nr), &len))
		return -ENOMEM;
	copy = malloc(len);
	if (!copy)
		return -ENOMEM;
	memcpy(copy, entries, nr * sizeof(*copy));
	name = (char *)(copy + nr);
	for (size_t i = 0; i < nr; i++) {
		if (i && same_file(&entries[i], &entries[i - 1])) {
			copy[i].filename = copy[i - 1].filename;
		} else if (entries[i].filename) {
			copy[i].filename = name;
			name = stpcpy(name, entries[i].filename) + 1;
		}
	}
	opagent_lines_release(to);
	*to = (struct opagent_lines){ copy, nr };
	return 0;
}

static int by_file(const void *a, const void *b)
{
	const struct dbgdyn_string *x = a, *y = b;

	return strcmp(x->text, y->text);
}

static int by_offset(const void *a, const void *b)
{
	const struct dbgdyn_line *x = a, *y = b;

	return (x->code_off > y->code_off) - (x->code_off < y->code_off);
}

/* All names, each once, sorted. Returns how many. */
static size_t files_put(const struct opagent_lines *l, struct dbgdyn_string *files)
{
	size_t nr = 0, kept = 0;

	for (size_t i = 0; i < l->nr_entries; i++) {
		const char *name = l->entries[i].filename;

		if (name && (!i || name != l->entries[i - 1].filename))
			files[nr++] = (struct dbgdyn_string){ name, strlen(name) };
	}
	if (nr)
		qsort(files, nr, sizeof(*files), by_file);
	for (size_t i = 0; i < nr; i++)
		if (!kept || strcmp(files[i].text, files[kept - 1].text))
			files[kept++] = files[i];
	return kept;
}

/* Where in the code of @c an entry stands; its address may be that of the bytes, too. */
static bool offset_of(const struct opagent_code *c, uint64_t addr, uint32_t *off)
{
	uint64_t base = addr - c->vma < c->code_len ? c->vma : c->code;

	*off = (uint32_t)(addr - base);
	return addr - base < c->code_len;
}

static size_t entries_put(const struct opagent_code *c, struct dbgdyn_line *lines,
			  const struct dbgdyn_string *files, size_t nr_files)
{
	size_t nr = 0;

	for (size_t i = 0; i < c->lines.nr_entries; i++) {
		const struct debug_line_info *e = &c->lines.entries[i];
		struct dbgdyn_string key = { e->filename, 0 }, *file = NULL;

		if (!offset_of(c, e->vma, &lines[nr].code_off))
			continue;
		if (e->filename)
			file = bsearch(&key, files, nr_files, sizeof(*files), by_file);
		lines[nr].line = file ? e->lineno : 0;
		lines[nr++].file = file ? (uint32_t)(file - files) : 0;
	}
	if (nr)
		qsort(lines, nr, sizeof(*lines), by_offset);
	return nr;
}

/*
 * Put the lines of @c into @r. They and *@room, which the caller frees, must last as long as @r.
 * -ENOMEM.
 */
static int opagent_lines_put(const struct opagent_code *c, struct dbgdyn_routine *r, void **space)
{
	size_t nr = c->lines.nr_entries;
	struct dbgdyn_string *files;
	struct dbgdyn_line *lines;

	*space = NULL;
	if (!nr)
		return 0;
	files = calloc(nr, sizeof(*files) + sizeof(*lines));
	if (!files)
		return -ENOMEM;
	lines = (struct dbgdyn_line *)(files + nr);
	r->files = files;
	r->nr_files = files_put(&c->lines, files);
	r->lines = lines;
	r->nr_lines = entries_put(c, lines, files, r->nr_files);
	*space = files;
	return 0;
}

/* ---- known code ------------------------------------------------------------------------------ */

/* entries with a name are in both trees */
static void *by_code, *by_vma;

static int order(uint64_t a, uint64_t b)
{
	return (a > b) - (a < b);
}

static int compare_code(const void *a, const void *b)
{
	return order(((const struct opagent_code *)a)->code,
		     ((const struct opagent_code *)b)->code);
}

static int compare_vma(const void *a, const void *b)
{
	return order(((const struct opagent_code *)a)->vma, ((const struct opagent_code *)b)->vma);
}

static struct opagent_code *find(uintptr_t code)
{
	struct opagent_code key = { .code = code }, **found = tfind(&key, &by_code, compare_code);

	return found ? *found : NULL;
}

/* That code, made where there is none; NULL: no memory. */
static struct opagent_code *opagent_known_get(uintptr_t code)
{
	struct opagent_code *c = find(code);

	if (c)
		return c;
	c = calloc(1, sizeof(*c));
	if (!c)
		return NULL;
	c->code = code;
	if (tsearch(c, &by_code, compare_code))
		return c;
	free(c);
	return NULL;
}

static void forget_name(struct opagent_code *c)
{
	if (!c->name)
		return;
	tdelete(c, &by_vma, compare_vma);
	free(c->name);
	c->name = NULL;
}

static void remove_one(struct opagent_code *c)
{
	forget_name(c);
	tdelete(c, &by_code, compare_code);
	opagent_lines_release(&c->lines);
	free(c);
}

static void opagent_known_remove(uintptr_t code)
{
	struct opagent_code *c = find(code);

	if (c)
		remove_one(c);
}

/* Forget the one with that vma, or with that code pointer. */
static void opagent_known_remove_vma(uint64_t vma)
{
	struct opagent_code key = { .vma = vma }, **found = tfind(&key, &by_vma, compare_vma);

	if (found)
		remove_one(*found);
}

/* Give it a name, of code at @vma. -ENOMEM: it is as before. */
static int opagent_known_name(struct opagent_code *c, const char *name, uint64_t vma,
			      size_t code_len)
{
	struct opagent_code key = { .vma = vma }, **found = tfind(&key, &by_vma, compare_vma);
	char *copy = strdup(name);

	if (!copy)
		return -ENOMEM;
	if (found && *found != c)
		remove_one(*found);
	/* Its lines were those of what stood there. */
	if (c->name)
		opagent_lines_release(&c->lines);
	forget_name(c);
	c->vma = vma;
	c->code_len = code_len;
	c->name = copy;
	if (tsearch(c, &by_vma, compare_vma))
		return 0;
	c->name = NULL;
	free(copy);
	return -ENOMEM;
}

/* ---- the interface --------------------------------------------------------------------------- */

#define FACILITY "opagent"

/* A handle is known by its place in this list. */
struct agent {
	struct agent *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct agent *agents;
static dbgdyn_context context; /* one for the process: its facilities are few */

static void take(void)
{
	pthread_mutex_lock(&lock);
}

static void give(void)
{
	pthread_mutex_unlock(&lock);
}

/* Else a child might find it taken by a thread that it does not have. */
static void survive_fork(void)
{
	pthread_atfork(take, give, give);
}

static int error_of(int result)
{
	switch (result) {
	case DBGDYN_EINVAL:
		return -EINVAL;
	case DBGDYN_ENOMEM:
	case DBGDYN_EFULL:
		return -ENOMEM;
	default:
		return result < 0 ? -EIO : 0;
	}
}

static int begin(void)
{
	return error_of(dbgdyn_begin(FACILITY, strlen(FACILITY), NULL, &context));
}

static struct agent **find_agent(op_agent_t hdl)
{
	struct agent **link = &agents;

	while (*link && *link != hdl)
		link = &(*link)->next;
	return *link ? link : NULL;
}

/* Leave a call that entered with the lock. */
static int leave(int r)
{
	give();
	if (r == 0)
		return 0;
	errno = -r;
	return -1;
}

op_agent_t op_open_agent(void)
{
	struct agent *a = malloc(sizeof(*a));
	int r = a ? 0 : -ENOMEM;

	pthread_once(&once, survive_fork);
	take();
	if (r == 0 && !context.id)
		r = begin();
	if (r == 0) {
		a->next = agents;
		agents = a;
	}
	if (leave(r) == 0)
		return a;
	free(a);
	return NULL;
}

int op_close_agent(op_agent_t hdl)
{
	struct agent **link, *a;

	take();
	link = find_agent(hdl);
	if (!link)
		return leave(-EINVAL);
	a = *link;
	*link = a->next;
	free(a);
	return leave(0);
}

static int tell(const struct opagent_code *c)
{
	struct dbgdyn_routine r = { .size = sizeof(r),
				    .name = { c->name, strlen(c->name) },
				    .code = (const void *)(uintptr_t)c->vma,
				    .code_len = c->code_len,
				    .bytes = (const void *)c->code };
	void *space;
	int result = opagent_lines_put(c, &r, &space);

	if (result < 0)
		return result;
	result = dbgdyn_register(context, &r, NULL);
	/* A child of fork. */
	if (result == DBGDYN_EREFUSED && begin() == 0)
		result = dbgdyn_register(context, &r, NULL);
	free(space);
	return error_of(result);
}

static int write_code(const char *name, uint64_t vma, uintptr_t code, size_t len)
{
	struct opagent_code *c = opagent_known_get(code);
	int r = c ? opagent_known_name(c, name, vma, len) : -ENOMEM;

	if (r == 0)
		r = tell(c);
	if (r < 0)
		opagent_known_remove(code);
	return r;
}

int op_write_native_code(op_agent_t hdl, char const *symbol_name, uint64_t vma, void const *code,
			 unsigned int const code_size)
{
	take();
	if (!find_agent(hdl) || !symbol_name || !*symbol_name || !vma || !code_size)
		return leave(-EINVAL);
	if (!code && !opagent_readable((const void *)(uintptr_t)vma, code_size))
		return leave(-EFAULT);
	return leave(
		write_code(symbol_name, vma, code ? (uintptr_t)code : (uintptr_t)vma, code_size));
}

int op_write_debug_line_info(op_agent_t hdl, void const *code, size_t nr_entry,
			     struct debug_line_info const *compile_map)
{
	struct opagent_code *c;
	int r;

	take();
	if (!find_agent(hdl) || !code || (nr_entry && !compile_map))
		return leave(-EINVAL);
	if (!nr_entry)
		return leave(0);
	c = opagent_known_get((uintptr_t)code);
	r = c ? opagent_lines_set(&c->lines, compile_map, nr_entry) : -ENOMEM;
	if (r == 0 && c->name)
		r = opagent_readable(code, c->code_len) ? tell(c) : -EFAULT;
	return leave(r);
}

int op_unload_native_code(op_agent_t hdl, uint64_t vma)
{
	int r;

	take();
	if (!find_agent(hdl) || !vma)
		return leave(-EINVAL);
	opagent_known_remove_vma(vma);
	r = dbgdyn_retire_code(context, (const void *)(uintptr_t)vma, 1);
	/* In a child of fork nothing of the parent's can be ended. */
	return leave(r == DBGDYN_EREFUSED ? 0 : error_of(r));
}

int op_major_version(void)
{
	return 1;
}

int op_minor_version(void)
{
	return 0;
}
