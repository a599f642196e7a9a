/* SPDX-License-Identifier: BSD-2-Clause */
/* The symbols and code of two kernels, or of one and its file, are read, written and compared. */
#include "kdiff.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "pseudoimg.h"

enum { KALLSYMS_MAX = 256 << 20, NOTES_MAX = 64 << 10 };
/* No routine is so long: what is between two symbols so far apart is data. */
enum { ROUTINE_MAX = 256 << 10 };

/* ---- reading --------------------------------------------------------------------------------- */

static int read_symbols(struct kdiff_kernel *k, struct base_err *err)
{
	struct base_buf text = { 0 };
	int r = base_file_read(AT_FDCWD, "/proc/kallsyms", KALLSYMS_MAX, &text, err);

	if (r >= 0)
		r = kernel_symbols_parse(&k->symbols, (const char *)text.data, text.len);
	base_buf_release(&text);
	if (r < 0)
		return base_fail_errno(err, r, "cannot read the kernel's symbols");
	k->start = k->symbols.text_start;
	if (k->symbols.text_end > k->start && k->start) {
		k->len = k->symbols.text_end - k->start;
		return 0;
	}
	base_fail(err, -EPERM, "the kernel does not tell where its code is");
	base_hint(err, "as root, with kernel.kptr_restrict below 2, /proc/kallsyms has addresses");
	return -EPERM;
}

static int read_identity(struct kdiff_kernel *k, struct base_err *err)
{
	struct utsname uts = { .release = "unknown" };
	struct base_buf notes = { 0 };
	int r = base_file_read(AT_FDCWD, "/sys/kernel/notes", NOTES_MAX, &notes, err);

	uname(&uts);
	snprintf(k->name, sizeof(k->name), "vmlinux-%s", uts.release);
	if (r >= 0)
		r = base_id_of_notes(&k->id, notes.data, notes.len, 4);
	base_buf_release(&notes);
	return r < 0 ? base_fail_errno(err, r, "the running kernel has no build-id") : 0;
}

/* Any target outside the image becomes the one place behind its end. */
static uint64_t place(void *ctx, uint64_t target)
{
	const struct kdiff_kernel *k = ctx;

	(void)target;
	return k->len;
}

void kdiff_show(const struct kdiff_kernel *k, const struct kdiff_routine *r, uint64_t start,
		uint8_t *code)
{
	const struct kernel_view view = {
		.machine = kernel_machine(),
		.addr = start + r->off,
		.at = r->off,
		.own_start = start,
		.own_end = start + (k->symbols.image_end - k->start),
		.place = place,
		.ctx = (void *)(uintptr_t)k,
	};

	kernel_view_hide(&view, code, r->len);
}

static void read_routine(struct kdiff_kernel *k, struct kernel_memory *memory,
			 struct kdiff_routine *r)
{
	uint8_t *code = k->text + r->off;

	if (r->len > ROUTINE_MAX ||
	    kernel_memory_read(memory, k->start + r->off, code, r->len) < 0) {
		memset(code, 0, r->len);
		k->nr_unread++;
		return;
	}
	kdiff_show(k, r, k->start, code);
	r->code = code;
}

/* From symbol to symbol, as the daemon keeps them. */
static int read_routines(struct kdiff_kernel *k, struct kernel_memory *memory)
{
	const struct kernel_symbols *s = &k->symbols;
	uint64_t end = k->start + k->len;

	k->text = calloc(1, k->len);
	k->routines = calloc(s->nr + 1, sizeof(*k->routines));
	if (!k->text || !k->routines)
		return -ENOMEM;
	for (size_t i = 0; i < s->nr; i++) {
		struct kdiff_routine *r = &k->routines[k->nr_routines];
		uint64_t next = i + 1 < s->nr && s->v[i + 1].addr < end ? s->v[i + 1].addr : end;

		if (s->v[i].module || s->v[i].addr < k->start || s->v[i].addr >= end)
			continue;
		*r = (struct kdiff_routine){ .name = s->v[i].name,
					     .off = s->v[i].addr - k->start,
					     .len = next - s->v[i].addr };
		read_routine(k, memory, r);
		k->nr_routines++;
	}
	return 0;
}

int kdiff_read(struct kdiff_kernel *k, struct base_err *err)
{
	struct kernel_memory *memory = NULL;
	int r = read_symbols(k, err);

	if (r >= 0)
		r = read_identity(k, err);
	if (r >= 0 && (r = kernel_memory_open(&memory, err)) < 0)
		base_hint(err,
			  "it takes CAP_BPF and CAP_PERFMON, or a /proc/kcore that can be read");
	if (r >= 0)
		r = read_routines(k, memory);
	kernel_memory_close(memory);
	return r < 0 ? base_fail_errno(err, r, "cannot read the kernel's code") : 0;
}

void kdiff_release(struct kdiff_kernel *k)
{
	kernel_symbols_release(&k->symbols);
	free(k->routines);
	free(k->text);
	*k = (struct kdiff_kernel){ 0 };
}

/* ---- writing --------------------------------------------------------------------------------- */

int kdiff_write(const struct kdiff_kernel *k, int fd, struct base_err *err)
{
	struct pseudoimg_result result;
	struct base_buf job = { 0 };
	char id[BASE_ID_TEXT_LEN];
	int r = kernel_job_head(&job, NULL, base_id_text(&k->id, id), 0, k->len);

	for (size_t i = 0; r >= 0 && i < k->nr_routines; i++) {
		const struct kernel_job_routine routine = { .name = k->routines[i].name,
							    .addr = k->routines[i].off,
							    .code = k->routines[i].code,
							    .len = k->routines[i].len };

		if (routine.code)
			r = kernel_job_routine(&job, &routine);
	}
	if (r >= 0)
		r = pseudoimg_write(job.data, job.len, fd, &result, err);
	base_buf_release(&job);
	return r < 0 ? base_fail_errno(err, r, "cannot write the kernel's image") : 0;
}

int kdiff_write_symbols(const struct kdiff_kernel *k, int fd, struct base_err *err)
{
	struct pseudoimg_symbol *syms = calloc(k->nr_routines + 1, sizeof(*syms));
	int r;

	if (!syms)
		return base_fail_errno(err, -ENOMEM, "cannot write the kernel's symbols");
	for (size_t i = 0; i < k->nr_routines; i++)
		syms[i] = (struct pseudoimg_symbol){ .name = k->routines[i].name,
						     .off = k->routines[i].off };
	r = pseudoimg_write_symbols(syms, k->nr_routines, k->len, kernel_machine(), &k->id, fd,
				    err);
	free(syms);
	return r;
}
