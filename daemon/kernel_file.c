/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <elf.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kernel_internal.h"
#include "pseudoimg.h"
#include "registry.h"

#if defined(__x86_64__)
#define MACHINE EM_X86_64
#elif defined(__aarch64__)
#define MACHINE EM_AARCH64
#else
#define MACHINE EM_RISCV
#endif

/* NAME-<first half of the id>.SUFFIX, fit for a file name. */
static void file_name(char *to, size_t len, const char *name, const struct base_id *id,
		      const char *suffix)
{
	char text[BASE_ID_TEXT_LEN];

	snprintf(to, len, "%.120s-%.20s.%s", name, base_id_text(id, text), suffix);
	for (char *p = to; *p; p++)
		if (*p == '/' || (unsigned char)*p <= ' ')
			*p = '_';
}

static int write_symbols(struct kernel *k, const char *file, const struct pseudoimg_symbol *syms,
			 size_t nr, uint64_t text_len, const struct base_id *id,
			 struct base_err *err)
{
	struct base_file f = { 0 };
	int r = base_file_create(&f, profdb_kernel_fd(k->db), file, 0644, err);

	if (r < 0)
		return r;
	r = pseudoimg_write_symbols(syms, nr, text_len, MACHINE, id, f.fd, err);
	if (r == 0)
		r = base_file_commit(&f, err);
	base_file_abort(&f);
	return r;
}

static bool exists(const struct kernel *k, const char *file)
{
	return faccessat(profdb_kernel_fd(k->db), file, F_OK, 0) == 0;
}

static bool belongs(const struct kernel_symbol *s, const char *module)
{
	return module ? s->module && !strcmp(s->module, module) : !s->module;
}

int kernel_file_write(struct kernel *k, const char *name, const struct base_id *id,
		      const char *module, uint64_t start, uint64_t len, struct base_err *err)
{
	struct pseudoimg_symbol *syms;
	char file[256];
	size_t nr = 0;
	int r;

	if (!k->db)
		return 0;
	file_name(file, sizeof(file), name, id, "elf");
	/* Equal ids are equal kernels. */
	if (exists(k, file))
		return 0;
	syms = calloc(k->symbols.nr + 1, sizeof(*syms));
	if (!syms)
		return base_fail_errno(err, -ENOMEM, "cannot write '%s'", file);
	for (size_t i = 0; i < k->symbols.nr; i++) {
		const struct kernel_symbol *s = &k->symbols.v[i];

		if (belongs(s, module) && s->addr >= start && s->addr - start < len)
			syms[nr++] = (struct pseudoimg_symbol){ .name = s->name,
								.off = s->addr - start };
	}
	r = write_symbols(k, file, syms, nr, len, id, err);
	free(syms);
	return r;
}

int kernel_file_write_dynsyms(struct kernel *k, struct base_err *err)
{
	struct pseudoimg_symbol *syms = calloc(k->nr_dynsyms + 1, sizeof(*syms));
	char file[256];
	int r;

	file_name(file, sizeof(file), k->dynsym_image->stem, &k->dynsym_image->id, "elf");
	if (!syms)
		return base_fail_errno(err, -ENOMEM, "cannot write '%s'", file);
	for (size_t i = 0; i < k->nr_dynsyms; i++)
		syms[i] = (struct pseudoimg_symbol){ .name = k->dynsyms[i].name,
						     .off = k->dynsyms[i].off,
						     .len = k->dynsyms[i].len };
	r = write_symbols(k, file, syms, k->nr_dynsyms, k->dynsym_next, &k->dynsym_image->id, err);
	free(syms);
	return r;
}

/* ---- the vdso ------------------------------------------------------------------------------ */

/* Length of our mapping that begins at @start, 0 where there is none. */
static size_t mapping_len(uintptr_t start)
{
	char *line = NULL, *p;
	size_t cap = 0, len = 0;
	FILE *f = fopen("/proc/self/maps", "re");

	while (f && !len && getline(&line, &cap, f) > 0) {
		if (strtoull(line, &p, 16) == start && *p == '-')
			len = (size_t)(strtoull(p + 1, NULL, 16) - start);
	}
	free(line);
	if (f)
		fclose(f);
	return len;
}

/* What the kernel mapped is trusted; it is small, so a file in memory serves to find its id. */
static int vdso_id(const void *data, size_t len, struct base_id *id)
{
	int r, fd = memfd_create("vdso", MFD_CLOEXEC);

	if (fd < 0)
		return -errno;
	r = base_write_all(fd, data, len);
	if (r == 0)
		r = registry_file_id(fd, id);
	close(fd);
	return r;
}

int kernel_file_write_vdso(struct kernel *k, struct base_id *id, struct base_err *err)
{
	uintptr_t start = (uintptr_t)getauxval(AT_SYSINFO_EHDR);
	size_t len = start ? mapping_len(start) : 0;
	char file[256];
	int r;

	if (!len)
		return -ENOENT;
	r = vdso_id((const void *)start, len, id);
	if (r < 0) {
		base_log(BASE_LOG_WARN, "going on without the vdso: %s", base_strerror(r));
		return -ENOENT;
	}
	file_name(file, sizeof(file), "vdso", id, "so");
	if (!k->db || exists(k, file))
		return 0;
	return base_file_write(profdb_kernel_fd(k->db), file, 0644, (const void *)start, len, err);
}
