/* SPDX-License-Identifier: BSD-2-Clause */
/* kernel_text FILE: write the code of the kernel that runs here to FILE, and print its address. 77:
 * it cannot be read. */
#include <inttypes.h>
#include <stdlib.h>

#include "kernel.h"

static char *read_all(const char *path, size_t *len)
{
	size_t cap = 1 << 25;
	char *text = malloc(cap);
	FILE *f = fopen(path, "r");

	*len = f && text ? fread(text, 1, cap, f) : 0;
	if (f)
		fclose(f);
	return text;
}

/* Page by page: some of it may be away. */
static bool copy(struct kernel_memory *k, uint64_t from, uint64_t to, FILE *f)
{
	static uint8_t page[4096];

	for (; from + sizeof(page) <= to; from += sizeof(page))
		if (kernel_memory_read(k, from, page, sizeof(page)) < 0 ||
		    fwrite(page, sizeof(page), 1, f) != 1)
			return false;
	return true;
}

int main(int argc, char **argv)
{
	struct kernel_symbols s = { 0 };
	struct kernel_memory *k = NULL;
	struct base_err err = { 0 };
	size_t len;
	char *text = read_all("/proc/kallsyms", &len);
	FILE *f = argc == 2 ? fopen(argv[1], "w") : NULL;
	bool good = f && kernel_symbols_parse(&s, text, len) == 0 && s.text_start &&
		    kernel_memory_open(&k, &err) >= 0 && copy(k, s.text_start, s.text_end, f) &&
		    fclose(f) == 0;

	if (good)
		printf("0x%" PRIx64 "\n", s.text_start);
	else
		fprintf(stderr, "the kernel's code cannot be read: %s\n", err.text);
	kernel_memory_close(k);
	kernel_symbols_release(&s);
	free(text);
	return good ? 0 : 77;
}
