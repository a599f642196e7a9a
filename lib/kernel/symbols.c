/* SPDX-License-Identifier: BSD-2-Clause */
/* The kernel's symbols and modules are read from /proc and found by address here. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "kernel.h"
#include "bound.h"

/* Where kallsyms does not tell it: no kernel is larger with all its data. */
#define KERNEL_IMAGE_GUESS (UINT64_C(256) << 20)

/* Ends of names count: "intel_idle*" also waits as intel_idle_ibrs, intel_idle_irq. */
static const char *const idle_names[] = {
	"acpi_idle*",
	"acpi_processor_ffh_cstate_enter",
	"acpi_safe_halt",
	"amd_e400_idle",
	"apm_cpu_idle",
	"arch_cpu_idle*",
	"call_cpuidle",
	"cpu_do_idle",
	"cpu_idle_poll*",
	"cpu_startup_entry",
	"cpuidle_*",
	"default_enter_idle",
	"default_idle",
	"default_idle_call",
	"do_idle",
	"haltpoll_*",
	"intel_idle*",
	"io_idle",
	"mwait_idle*",
	"native_safe_halt",
	"play_idle_precise",
	"poll_idle",
	"psci_cpu_suspend_enter",
	"psci_enter_idle_state",
	"pv_native_safe_halt",
	"tdx_safe_halt",
	"xen_safe_halt",
};

bool kernel_is_idle(const char *name)
{
	for (size_t i = 0; i < sizeof(idle_names) / sizeof(idle_names[0]); i++) {
		size_t len = strlen(idle_names[i]);

		if (idle_names[i][len - 1] == '*' ? !strncmp(name, idle_names[i], len - 1)
						  : !strcmp(name, idle_names[i]))
			return true;
	}
	return false;
}

/*
 * Symbols at one address: the one that others may call first, then the one of fewer underscores
 * before it ("schedule", not "__sched_text_start"), then the shorter.
 */
static int rank(char type)
{
	return type == 'T' ? 0 : type == 't' ? 1 : 2;
}

static int by_name(const char *x, const char *y)
{
	size_t x_under = strspn(x, "_"), y_under = strspn(y, "_"), x_len, y_len;

	if (x_under != y_under)
		return x_under < y_under ? -1 : 1;
	x_len = strlen(x);
	y_len = strlen(y);
	return x_len != y_len ? (x_len < y_len ? -1 : 1) : strcmp(x, y);
}

static int compare(const void *a, const void *b)
{
	const struct kernel_symbol *x = a, *y = b;

	if (x->addr != y->addr)
		return x->addr < y->addr ? -1 : 1;
	if (rank(x->type) != rank(y->type))
		return rank(x->type) - rank(y->type);
	return by_name(x->name, y->name);
}

/* Idle is one that is by any of its names. */
static void keep_one_each(struct kernel_symbols *s)
{
	size_t kept = 0;

	if (s->nr)
		qsort(s->v, s->nr, sizeof(*s->v), compare);
	for (size_t i = 0; i < s->nr; i++) {
		if (!kept || s->v[kept - 1].addr != s->v[i].addr)
			s->v[kept++] = s->v[i];
		else
			s->v[kept - 1].idle |= s->v[i].idle;
	}
	s->nr = kept;
}

/* "ffffffff81000000 T _stext\t[module]", cut into its parts: 0, or -DCPI_EFORMAT. */
static int parse_line(char *line, struct kernel_symbol *sym)
{
	char *p;

	*sym = (struct kernel_symbol){ 0 };
	sym->addr = strtoull(line, &p, 16);
	if (p == line || p[0] != ' ' || !p[1] || p[2] != ' ' || !p[3])
		return -DCPI_EFORMAT;
	sym->type = p[1];
	sym->name = p + 3;
	p = strchr(p + 3, '\t');
	if (!p)
		return 0;
	*p++ = '\0';
	if (!*sym->name)
		return -DCPI_EFORMAT;
	if (*p != '[')
		return 0;
	sym->module = p + 1;
	p = strchr(p, ']');
	if (p)
		*p = '\0';
	return 0;
}

static void note_bounds(struct kernel_symbols *s, const struct kernel_symbol *sym)
{
	if (sym->module)
		return;
	if (!strcmp(sym->name, "_text") || (!s->text_start && !strcmp(sym->name, "_stext")))
		s->text_start = sym->addr;
	if (!strcmp(sym->name, "_etext"))
		s->text_end = sym->addr;
	if (!strcmp(sym->name, "_end"))
		s->image_end = sym->addr;
}

static int add_line(struct kernel_symbols *s, char *line, bool *any)
{
	struct kernel_symbol sym;
	int r;

	if (parse_line(line, &sym) < 0)
		return 0;
	*any |= sym.addr != 0;
	note_bounds(s, &sym);
	/* "__pfx_": the padding before a function, where nothing runs. */
	if (!strchr("tTwW", sym.type) || !strncmp(sym.name, "__pfx_", 6))
		return 0;
	r = base_grow(&s->v, &s->cap, s->nr + 1, sizeof(*s->v));
	if (r < 0)
		return r;
	sym.idle = kernel_is_idle(sym.name);
	s->v[s->nr++] = sym;
	return 0;
}

/* Most of kallsyms is data, padding and words we do not need: keep the names alone. */
static int pack(struct kernel_symbols *s)
{
	struct base_buf names = { 0 };
	struct kernel_symbol *v;
	const char *module = NULL;
	size_t at = 0, module_at = 0;
	int r = 0;

	for (size_t i = 0; r == 0 && i < s->nr; i++) {
		const struct kernel_symbol *sym = &s->v[i];

		if (sym->module && (!module || strcmp(module, sym->module) != 0))
			r = base_buf_append(&names, sym->module, strlen(sym->module) + 1);
		module = sym->module ? sym->module : module;
		if (r == 0)
			r = base_buf_append(&names, sym->name, strlen(sym->name) + 1);
	}
	if (r < 0 || !s->nr) {
		base_buf_release(&names);
		return r;
	}
	module = NULL;
	for (size_t i = 0; i < s->nr; i++) {
		struct kernel_symbol *sym = &s->v[i];
		const char *was = sym->module;

		if (was && (!module || strcmp(module, was) != 0)) {
			module_at = at;
			at += strlen(was) + 1;
		}
		module = was ? was : module;
		sym->module = was ? (const char *)names.data + module_at : NULL;
		sym->name = (const char *)names.data + at;
		at += strlen(sym->name) + 1;
	}
	free(s->text);
	s->text = (char *)names.data;
	v = realloc(s->v, s->nr * sizeof(*s->v));
	if (v) {
		s->v = v;
		s->cap = s->nr;
	}
	return 0;
}

int kernel_symbols_parse(struct kernel_symbols *s, const char *text, size_t len)
{
	bool any = false;
	char *line, *next;
	int r = 0;

	*s = (struct kernel_symbols){ .text = malloc(len + 1) };
	if (!s->text)
		return -ENOMEM;
	memcpy(s->text, text, len);
	s->text[len] = '\0';
	for (line = s->text; r == 0 && line < s->text + len; line = next) {
		next = memchr(line, '\n', (size_t)(s->text + len - line));
		next = next ? next : s->text + len;
		*next++ = '\0';
		r = add_line(s, line, &any);
	}
	if (r < 0) {
		kernel_symbols_release(s);
		return r;
	}
	s->hidden = !any;
	if (s->hidden)
		s->nr = 0;
	keep_one_each(s);
	if (s->text_start && s->image_end <= s->text_start)
		s->image_end = s->text_start + KERNEL_IMAGE_GUESS;
	r = pack(s);
	if (r < 0)
		kernel_symbols_release(s);
	return r;
}

void kernel_symbols_release(struct kernel_symbols *s)
{
	free(s->v);
	free(s->text);
	*s = (struct kernel_symbols){ 0 };
}

bool kernel_symbol_belongs(const struct kernel_symbol *s, const char *module)
{
	return module ? s->module && !strcmp(s->module, module) : !s->module;
}

const struct kernel_symbol *kernel_symbols_find(const struct kernel_symbols *s, uint64_t addr)
{
	size_t lo = BASE_UPPER_BOUND(s->v, s->nr, addr, addr);

	return lo ? &s->v[lo - 1] : NULL;
}

/* "nf_tables 376832 1 nft_x, Live 0xffffffffc0a00000": name, size, …, address last. */
int kernel_module_parse(const char *line, struct kernel_module *m)
{
	const char *at = strstr(line, " 0x");
	size_t name_len = strcspn(line, " ");
	char *end;

	*m = (struct kernel_module){ 0 };
	if (!at || !name_len || name_len >= sizeof(m->name))
		return -DCPI_EFORMAT;
	memcpy(m->name, line, name_len);
	/* It becomes part of a path. */
	if (strchr(m->name, '/'))
		return -DCPI_EFORMAT;
	m->len = strtoull(line + name_len, &end, 10);
	m->addr = strtoull(at, NULL, 16);
	if (end == line + name_len || !m->len || !m->addr || m->addr + m->len < m->addr)
		return -DCPI_EFORMAT;
	return 0;
}
