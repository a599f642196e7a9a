/* SPDX-License-Identifier: BSD-2-Clause */
/* Images of kernel code are written as files of the database. */
#include <errno.h>
#include <elf.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "kernelcode_internal.h"
#include "pseudoimg.h"
#include "registry.h"

static int write_symbols(struct kernel *k, const char *file, const struct pseudoimg_symbol *syms,
			 size_t nr, uint64_t text_len, const struct base_id *id,
			 struct base_err *err)
{
	struct base_file f = { 0 };
	int r = base_file_create(&f, profdb_kernel_fd(k->config.db), file, 0644, err);

	if (r < 0)
		return r;
	r = pseudoimg_write_symbols(syms, nr, text_len, REGISTRY_MACHINE, id, f.fd, err);
	if (r == 0)
		r = base_file_commit(&f, err);
	base_file_abort(&f);
	return r;
}

bool kernel_file_renew(const struct kernel *k, const char *file)
{
	/* The time of another user's file may not be ours to set. */
	return utimensat(profdb_kernel_fd(k->config.db), file, NULL, 0) == 0 || errno != ENOENT;
}

int kernel_file_write(struct kernel *k, const char *name, const struct base_id *id,
		      const char *module, uint64_t start, uint64_t len, struct base_err *err)
{
	struct pseudoimg_symbol *syms;
	char file[256];
	size_t nr = 0;
	int r;

	if (!k->config.db)
		return 0;
	kernel_file_name(file, sizeof(file), name, id, "elf");
	/* Equal ids are equal kernels. */
	if (kernel_file_renew(k, file))
		return 0;
	syms = calloc(k->symbols.nr + 1, sizeof(*syms));
	if (!syms)
		return base_fail_errno(err, -ENOMEM, "cannot write '%s'", file);
	for (size_t i = 0; i < k->symbols.nr; i++) {
		const struct kernel_symbol *s = &k->symbols.v[i];

		if (kernel_symbol_belongs(s, module) && s->addr >= start && s->addr - start < len)
			syms[nr++] = (struct pseudoimg_symbol){ .name = s->name,
								.off = s->addr - start };
	}
	r = write_symbols(k, file, syms, nr, len, id, err);
	free(syms);
	return r;
}

int kernel_file_write_name(struct kernel *k, const char *name, const struct base_id *id,
			   uint64_t len, struct base_err *err)
{
	const struct pseudoimg_symbol sym = { .name = name, .len = len };
	char file[256];

	kernel_file_name(file, sizeof(file), name, id, "elf");
	return kernel_file_renew(k, file) ? 0 : write_symbols(k, file, &sym, 1, len, id, err);
}

/* ---- pseudo-images --------------------------------------------------------------------------- */

int kernel_file_job(const struct base_buf *job)
{
	int r, fd = memfd_create("dcpid-job", MFD_CLOEXEC);

	if (fd < 0)
		return -errno;
	r = base_write_all(fd, job->data, job->len);
	if (r == 0 && lseek(fd, 0, SEEK_SET) < 0)
		r = -errno;
	if (r == 0)
		return fd;
	close(fd);
	return r;
}

int kernel_file_write_job(struct kernel *k, int dir_fd, const char *file,
			  const struct base_buf *job, struct base_id *id, struct base_err *err)
{
	const struct pseudoimg_helper helper = { k->helper, k->config.meanwhile,
						 k->config.meanwhile_ctx };
	struct pseudoimg_result result = { 0 };
	int r, from = kernel_file_job(job);

	if (from < 0)
		return base_fail_errno(err, from, "cannot make the job of '%s'", file);
	r = image_file_put(dir_fd, file, &helper, NULL, from, &result, err);
	close(from);
	*id = (struct base_id){ .len = sizeof(result.build_id) };
	memcpy(id->bytes, result.build_id, sizeof(result.build_id));
	return r;
}
