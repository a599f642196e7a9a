/* SPDX-License-Identifier: BSD-2-Clause */
/* Which file a program is, and whether a library can be preloaded into it. */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base.h"
#include "dcpirun.h"

enum { LINE_MAX_LEN = 256, PHDRS_MAX = 256, SCRIPTS_MAX = 4 };

/* ---- finding ------------------------------------------------------------------------------- */

static int try_path(const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0)
		return -errno;
	if (S_ISDIR(st.st_mode))
		return -EACCES;
	return access(path, X_OK) < 0 ? -errno : 0;
}

int program_find(const char *name, char *path, size_t len)
{
	const char *dirs = getenv("PATH"), *next;
	int r, worst = -ENOENT;

	if (strchr(name, '/'))
		return snprintf(path, len, "%s", name) < (int)len ? try_path(path) : -ENAMETOOLONG;
	if (!*name)
		return -ENOENT;
	/* An empty one, the first too, is the folder where we are. */
	for (dirs = dirs ? dirs : "/bin:/usr/bin"; dirs; dirs = next) {
		int n = (int)strcspn(dirs, ":");

		next = dirs[n] ? dirs + n + 1 : NULL;
		r = snprintf(path, len, "%.*s/%s", n ? n : 1, n ? dirs : ".", name) < (int)len
			    ? try_path(path)
			    : -ENAMETOOLONG;
		if (r == 0)
			return 0;
		/* One that is there and must not be executed says more than those that lack. */
		if (r == -EACCES)
			worst = r;
	}
	return worst;
}

/* ---- what it is ------------------------------------------------------------------------------ */

/* Runs with rights that its user has not: the loader preloads nothing, the kernel tells nothing. */
static bool has_rights(int fd)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return false;
	if ((st.st_mode & S_ISUID && st.st_uid != geteuid()) ||
	    (st.st_mode & S_ISGID && st.st_gid != getegid()))
		return true;
	return geteuid() != 0 && fgetxattr(fd, "security.capability", NULL, 0) > 0;
}

static const char *elf_refusal(int fd, const Elf64_Ehdr *h)
{
	static const unsigned char own_class = sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32;
	Elf64_Phdr p;

	if (h->e_ident[EI_CLASS] != own_class || h->e_phentsize != sizeof(p))
		return "it is for another kind of machine";
	for (unsigned int i = 0; i < h->e_phnum && i < PHDRS_MAX; i++) {
		off_t at = (off_t)(h->e_phoff + (uint64_t)i * sizeof(p));

		if (pread(fd, &p, sizeof(p), at) != (ssize_t)sizeof(p))
			return NULL;
		if (p.p_type == PT_INTERP)
			return NULL;
	}
	return "it is statically linked";
}

/* "#! /bin/sh -e": what is executed is the interpreter. */
static bool interpreter(char *line, char *path, size_t len)
{
	char *name = line + 2 + strspn(line + 2, " \t");

	name[strcspn(name, " \t\n")] = '\0';
	return *name && snprintf(path, len, "%s", name) < (int)len;
}

static const char *refusal(char *path, size_t len, bool inside, bool *again)
{
	union {
		Elf64_Ehdr h;
		char text[LINE_MAX_LEN + 1];
	} b = { 0 };
	const char *why = NULL;
	struct stat st;
	int fd = base_regular_open(AT_FDCWD, path, &st);
	ssize_t n;

	/* Nor may its user then see into it by perf events. */
	if (fd < 0)
		return !inside && fd == -EACCES ? "you may not read it" : NULL;
	n = pread(fd, &b, LINE_MAX_LEN, 0);
	if (n > 2 && !memcmp(b.text, "#!", 2))
		*again = interpreter(b.text, path, len);
	else if (has_rights(fd))
		why = "it runs with rights that you have not (set-uid, set-gid or capabilities)";
	else if (inside && n >= (ssize_t)sizeof(b.h) && !memcmp(b.h.e_ident, ELFMAG, SELFMAG))
		why = elf_refusal(fd, &b.h);
	close(fd);
	return why;
}

const char *program_refusal(const char *name, bool inside)
{
	char path[4096];
	const char *why = NULL;
	bool again = true;

	snprintf(path, sizeof(path), "%s", name);
	for (int i = 0; i < SCRIPTS_MAX && again; i++) {
		again = false;
		why = refusal(path, sizeof(path), inside, &again);
	}
	return why;
}
