/* SPDX-License-Identifier: BSD-2-Clause */
/* Names of kernel images, and the requests to make them, are built here. */
#include <elf.h>
#include <errno.h>
#include <string.h>

#include "kernel.h"

void kernel_file_name(char *to, size_t len, const char *name, const struct base_id *id,
		      const char *suffix)
{
	char text[BASE_ID_TEXT_LEN];

	snprintf(to, len, "%.120s-%.*s.%s", name, 2 * KERNEL_FILE_ID, base_id_text(id, text),
		 suffix);
	for (char *p = to; *p; p++)
		if (*p == '/' || (unsigned char)*p <= ' ')
			*p = '_';
}

int kernel_file_id(const char *file, struct base_id *id)
{
	static const char *const suffixes[] = { ".elf", ".code", ".text", ".so" };
	const char *end = strrchr(file, '.'), *from = strrchr(file, '-');
	bool known = false;

	for (size_t i = 0; end && i < sizeof(suffixes) / sizeof(*suffixes); i++)
		known |= !strcmp(end, suffixes[i]);
	if (!known || !from || from == file || from > end || end - from - 1 > 2 * KERNEL_FILE_ID ||
	    base_id_parse(id, from + 1, (size_t)(end - from - 1)) < 0)
		return -EINVAL;
	return (int)(from - file);
}

uint32_t kernel_machine(void)
{
#if defined(__x86_64__)
	return EM_X86_64;
#elif defined(__aarch64__)
	return EM_AARCH64;
#elif defined(__riscv)
	return EM_RISCV;
#else
	return EM_NONE;
#endif
}

int kernel_job_head(struct base_buf *job, const char *host, const char *facility, uint64_t vaddr,
		    uint64_t len)
{
	size_t facility_len = strnlen(facility, WIRE_FACILITY_NAME);
	size_t host_len = host ? strnlen(host, 255) : 0;
	size_t head_len = base_align_up(sizeof(struct wire_image) + facility_len + host_len, 8);
	struct wire_run run = { .head = { .len = sizeof(run), .type = WIRE_RUN },
				.vaddr = vaddr,
				.len = base_align_up(len, WIRE_PAGE) };
	struct wire_image *i;
	void *p;
	int r = base_buf_extend(job, head_len, &p);

	if (r < 0)
		return r;
	i = p;
	*i = (struct wire_image){ .head = { .len = (uint32_t)head_len, .type = WIRE_IMAGE },
				  .machine = kernel_machine(),
				  .facility_len = (uint16_t)facility_len,
				  .host_len = (uint16_t)host_len };
	memcpy(i + 1, facility, facility_len);
	if (host_len)
		memcpy((char *)(i + 1) + facility_len, host, host_len);
	return base_buf_append(job, &run, sizeof(run));
}

int kernel_job_routine(struct base_buf *job, const struct kernel_job_routine *from)
{
	size_t name_len = strnlen(from->name, WIRE_NAME_MAX), code_len = from->code ? from->len : 0;
	size_t files_len = from->files ? from->files->len : 0;
	size_t len = wire_routine_len(name_len, from->len, from->code != NULL, from->nr_lines, 0,
				      files_len);
	struct wire_routine *r;
	uint8_t *at;
	void *p;

	if (!len)
		return -DCPI_ELIMIT;
	if (base_buf_extend(job, len, &p) < 0)
		return -ENOMEM;
	r = p;
	*r = (struct wire_routine){
		.head = { .len = (uint32_t)len,
			  .type = WIRE_ROUTINE,
			  .flags = from->code ? WIRE_ROUTINE_CODE : 0 },
		.seq = 1,
		.addr = from->addr,
		.code_len = from->len,
		.name_len = (uint32_t)name_len,
		.nr_lines = from->nr_lines,
		.nr_files = from->nr_files,
	};
	at = (uint8_t *)(r + 1);
	memcpy(at, from->name, name_len);
	if (code_len)
		memcpy(at + name_len, from->code, code_len);
	at = (uint8_t *)r + base_align_up(sizeof(*r) + name_len + code_len, 8);
	if (from->nr_lines)
		memcpy(at, from->lines, from->nr_lines * sizeof(*from->lines));
	if (files_len)
		memcpy(at + from->nr_lines * sizeof(*from->lines), from->files->data, files_len);
	return 0;
}
