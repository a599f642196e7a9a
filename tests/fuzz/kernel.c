/* SPDX-License-Identifier: BSD-2-Clause */
/* /proc/kallsyms of any bytes: symbols in order, whose names lie in what they were packed into. And
 * each line as one of /proc/modules. */
#include <stdlib.h>
#include <string.h>

#include "kernel.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void require(bool ok)
{
	if (!ok)
		abort();
}

static void try_symbols(const char *text, size_t len)
{
	struct kernel_symbols s;
	uint64_t before = 0;

	require(kernel_symbols_parse(&s, text, len) == 0);
	require(!s.hidden || !s.nr);
	for (size_t i = 0; i < s.nr; i++) {
		const struct kernel_symbol *sym = &s.v[i];

		require(!i || sym->addr > before);
		before = sym->addr;
		require(*sym->name && strlen(sym->name) < len);
		require(!sym->module || strlen(sym->module) < len);
		require(kernel_symbol_belongs(sym, sym->module));
		/* By this name, or by another one of that address. */
		require(sym->idle || !kernel_is_idle(sym->name));
		require(kernel_symbols_find(&s, sym->addr) == sym);
	}
	require(!s.nr || kernel_symbols_find(&s, UINT64_MAX) == &s.v[s.nr - 1]);
	kernel_symbols_release(&s);
}

static void try_module(const char *line)
{
	struct kernel_module m;

	if (kernel_module_parse(line, &m) < 0)
		return;
	require(*m.name && !strchr(m.name, '/') && memchr(m.name, '\0', sizeof(m.name)));
	require(m.addr && m.len && m.addr + m.len > m.addr);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	char *text = malloc(len + 1), *save = NULL;

	require(text != NULL);
	try_symbols((const char *)data, len);
	memcpy(text, data, len);
	text[len] = '\0';
	for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
		try_module(line);
	free(text);
	return 0;
}
