/* SPDX-License-Identifier: BSD-2-Clause */
/* Value profilers as shared objects: checked for who could change them, and loaded. */
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "profiler.h"

/* ---- files ----------------------------------------------------------------------------------- */

/* Could somebody else put another file in this place? */
static int check_place(const char *path, const char *part, struct base_err *err)
{
	struct stat st;
	bool sticky;

	if (lstat(part, &st) < 0)
		return base_fail_errno(err, -errno, "cannot use value profiler '%s'", path);
	if (st.st_uid != 0 && st.st_uid != geteuid())
		return base_fail(err, -EACCES,
				 "cannot use value profiler '%s': '%s' belongs to user %u", path,
				 part, st.st_uid);
	/* In a sticky folder others cannot replace what is not theirs. */
	sticky = S_ISDIR(st.st_mode) && st.st_mode & S_ISVTX;
	if (st.st_mode & S_IWGRP && st.st_gid != 0 && st.st_gid != getegid() && !sticky) {
		base_fail(err, -EACCES, "cannot use value profiler '%s': group %u may write '%s'",
			  path, st.st_gid, part);
		base_hint(err, "chmod g-w '%s'", part);
		return -EACCES;
	}
	if (st.st_mode & S_IWOTH && !sticky) {
		base_fail(err, -EACCES, "cannot use value profiler '%s': others may write '%s'",
			  path, part);
		base_hint(err, "chmod o-w '%s'", part);
		return -EACCES;
	}
	if (!strcmp(part, path) && !S_ISREG(st.st_mode))
		return base_fail(err, -EINVAL,
				 "cannot use value profiler '%s': it is no regular file", path);
	return 0;
}

/* The file and each folder above it. */
static int check_places(char *real, struct base_err *err)
{
	char *path = strdup(real);
	int r = path ? check_place(path, real, err) : -ENOMEM;
	char *slash;

	while (r >= 0 && (slash = strrchr(real, '/')) && real[1]) {
		slash[slash == real] = '\0';
		r = check_place(path, real, err);
	}
	free(path);
	return r;
}

int vtrace_profiler_check(const char *path, struct base_err *err)
{
	char *real;
	int r;

	if (path[0] != '/') {
		base_fail(err, -EINVAL, "cannot use value profiler '%s': no absolute path", path);
		base_hint(err, "name it from / on");
		return -EINVAL;
	}
	real = realpath(path, NULL);
	if (!real)
		return base_fail_errno(err, -errno, "cannot use value profiler '%s'", path);
	r = check_places(real, err);
	free(real);
	return r;
}

/* ---- names ----------------------------------------------------------------------------------- */

static bool is_reserved(const char *name)
{
	return !strcmp(name, "values") || !strcmp(name, "values.replay") ||
	       !strcmp(name, "values.trace") || !strncmp(name, "values.arg", 10);
}

/* 0 where @name may be that of a value profiler; else says why not. */
static int check_name(const char *name, struct base_err *err)
{
	size_t len = strlen(name);
	/* It becomes a part of files' names. */
	size_t good = strspn(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				   "0123456789._-");

	if (!len || len >= VTRACE_PROFILER_NAME || good != len || name[0] == '.')
		return base_fail(
			err, -DCPI_EFORMAT,
			"a value profiler's name is 1 to %d letters, digits, '.', '_', '-'",
			VTRACE_PROFILER_NAME - 1);
	if (is_reserved(name))
		return base_fail(err, -DCPI_EFORMAT, "the name '%s' is reserved", name);
	return 0;
}

/* ---- loading --------------------------------------------------------------------------------- */

static int take(struct vtrace_profiler *p, const char *path, struct base_err *err)
{
	struct base_err why = { 0 };
	const char *name;

	p->dispatch = dlsym(p->handle, "_dispatch");
	if (!p->dispatch)
		return base_fail(err, -DCPI_EFORMAT,
				 "cannot use value profiler '%s': it has no _dispatch", path);
	if (!p->dispatch->name || !p->dispatch->prof_init || !p->dispatch->prof_process)
		return base_fail(err, -DCPI_EFORMAT,
				 "cannot use value profiler '%s': its _dispatch lacks a function",
				 path);
	name = p->dispatch->name();
	if (check_name(name ? name : "", &why) < 0)
		return base_fail(err, -DCPI_EFORMAT, "cannot use value profiler '%s': %s", path,
				 why.text);
	snprintf(p->name, sizeof(p->name), "%s", name);
	if (p->dispatch->init)
		p->dispatch->init();
	return 0;
}

int vtrace_profiler_load(const char *path, struct vtrace_profiler *out, struct base_err *err)
{
	int r = vtrace_profiler_check(path, err);

	memset(out, 0, sizeof(*out));
	if (r < 0)
		return r;
	out->handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!out->handle) {
		const char *why = dlerror();

		return base_fail(err, -DCPI_EFORMAT, "cannot load value profiler '%s': %s", path,
				 why ? why : "no reason given");
	}
	r = take(out, path, err);
	if (r < 0) {
		dlclose(out->handle);
		memset(out, 0, sizeof(*out));
	}
	return r;
}

void vtrace_profiler_unload(struct vtrace_profiler *p)
{
	if (!p->handle)
		return;
	if (p->dispatch->fini)
		p->dispatch->fini();
	dlclose(p->handle);
	memset(p, 0, sizeof(*p));
}
