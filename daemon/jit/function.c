/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Functions that an interpreter runs. They are kept as routines without machine code, in a
 * pseudo-image of their own for each process, at addresses that they get here one behind the other,
 * two bytes for each instruction: no sample has such an address, and none of theirs is looked up
 * for one.
 */
#include <errno.h>
#include <string.h>

#include "function.h"
#include "jit_internal.h"

enum {
	FIRST_ADDR = 0x10000,
	ALIGN = 16,
	INSTR_LEN = 2,
	INSTRS_MAX = 1 << 20,
	FUNCTIONS_MAX = 1 << 15, /* of a process */
};

/* ---- text ------------------------------------------------------------------------------------ */

static int put_utf8(struct base_buf *b, uint32_t c)
{
	uint8_t bytes[4];
	size_t len;

	if (c >= 0x110000 || (c >= 0xd800 && c < 0xe000))
		c = 0xfffd;
	if (c < 0x80) {
		bytes[0] = (uint8_t)c;
		len = 1;
	} else if (c < 0x800) {
		bytes[0] = (uint8_t)(0xc0 | c >> 6);
		len = 2;
	} else if (c < 0x10000) {
		bytes[0] = (uint8_t)(0xe0 | c >> 12);
		len = 3;
	} else {
		bytes[0] = (uint8_t)(0xf0 | c >> 18);
		len = 4;
	}
	for (size_t i = 1; i < len; i++)
		bytes[i] = (uint8_t)(0x80 | (c >> 6 * (len - 1 - i) & 0x3f));
	return base_buf_append(b, bytes, len);
}

int dyn_function_text(struct base_buf *b, const struct driver_string *s)
{
	int r = 0;

	for (size_t at = 0; r >= 0 && s->kind && at + s->kind <= s->len; at += s->kind) {
		uint32_t c = 0;

		memcpy(&c, s->text + at, s->kind);
		r = put_utf8(b, c);
	}
	return r;
}

/* Behind the last folder in which Python looks for modules. */
static size_t module_start(const char *path, size_t len)
{
	static const char *const folders[] = { "/site-packages/", "/dist-packages/" };
	size_t start = 0;

	for (size_t at = 0; at < len; at++) {
		if (path[at] != '/')
			continue;
		for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
			size_t n = strlen(folders[i]);

			if (len - at >= n && !memcmp(path + at, folders[i], n))
				start = at + n;
		}
		if (len - at > 9 && !memcmp(path + at, "/python3.", 9)) {
			const char *end = memchr(path + at + 1, '/', len - at - 1);

			start = end ? (size_t)(end - path) + 1 : start;
		}
	}
	return start;
}

/* "/usr/lib/python3.11/json/decoder.py" is json.decoder. */
static int put_module(struct base_buf *b, const char *path, size_t len)
{
	static const char frozen[] = "<frozen ", init[] = "/__init__";
	size_t start = module_start(path, len);
	const char *last = len ? memrchr(path, '/', len) : NULL;
	int r = 0;

	if (len > sizeof(frozen) && path[len - 1] == '>' &&
	    !memcmp(path, frozen, sizeof(frozen) - 1))
		return base_buf_append(b, path + sizeof(frozen) - 1, len - sizeof(frozen));
	if (len > 3 && !memcmp(path + len - 3, ".py", 3))
		len -= 3;
	if (len > sizeof(init) - 1 &&
	    !memcmp(path + len - (sizeof(init) - 1), init, sizeof(init) - 1)) {
		len -= sizeof(init) - 1;
		last = memrchr(path, '/', len);
	}
	if (!start && last && last < path + len)
		start = (size_t)(last - path) + 1;
	for (size_t i = start; r >= 0 && i < len; i++)
		r = base_buf_append(b, path[i] == '/' ? "." : path + i, 1);
	return r;
}

int dyn_function_name(struct base_buf *b, const struct driver_function *f, const char *path,
		      size_t path_len)
{
	size_t before = b->len;
	int r = put_module(b, path, path_len);

	if (r >= 0 && b->len > before)
		r = base_buf_append(b, ".", 1);
	if (r >= 0)
		r = dyn_function_text(b, &f->name);
	if (b->len - before > WIRE_NAME_MAX)
		b->len = before + WIRE_NAME_MAX;
	return r;
}

/* ---- records --------------------------------------------------------------------------------- */

static int put_counted(struct base_buf *b, const void *bytes, size_t len)
{
	uint16_t n = (uint16_t)(len < UINT16_MAX ? len : UINT16_MAX);
	int r = base_buf_append(b, &n, sizeof(n));

	return r < 0 ? r : base_buf_append(b, bytes, n);
}

static int pad(struct base_buf *b)
{
	static const uint8_t zeros[8];

	return base_buf_append(b, zeros, -b->len & 7);
}

/* A routine at @addr: one line, and the table of the others. */
static int put_record(struct base_buf *b, const struct driver_function *f, uint64_t addr,
		      uint64_t seq)
{
	struct wire_routine rec = {
		.head = { .type = WIRE_ROUTINE, .flags = WIRE_ROUTINE_LOCATIONS },
		.seq = seq,
		.addr = addr,
		.code_len = (uint64_t)f->nr * INSTR_LEN,
		.nr_lines = 1,
		.nr_files = 2,
	};
	const struct wire_line line = { .line = f->line };
	struct base_buf path = { 0 };
	int r = dyn_function_text(&path, &f->file);

	if (r >= 0)
		r = base_buf_append(b, &rec, sizeof(rec));
	if (r >= 0)
		r = dyn_function_name(b, f, (const char *)path.data, path.len);
	rec.name_len = (uint32_t)(b->len - sizeof(rec));
	if (r >= 0)
		r = pad(b);
	if (r >= 0)
		r = base_buf_append(b, &line, sizeof(line));
	if (r >= 0)
		r = put_counted(b, path.data, path.len);
	if (r >= 0)
		r = put_counted(b, f->lines, f->lines_len);
	if (r >= 0)
		r = pad(b);
	base_buf_release(&path);
	if (r < 0)
		return r;
	rec.head.len = (uint32_t)b->len;
	memcpy(b->data, &rec, sizeof(rec));
	return 0;
}

/* ---- functions of a process ------------------------------------------------------------------ */

/* The user that is known of a process may be its parent's: a new registry has the one that the
 * kernel told. */
static struct dyn_registry *registry_of(struct dyn *d, struct process *p, uint32_t uid)
{
	struct dyn_registry *reg;

	if (!dyn_client_of(p))
		return NULL;
	reg = dyn_source_find(p->dyn, DYN_FUNCTIONS);
	if (reg)
		return reg;
	if (dyn_source_new(d, p, DYN_FUNCTIONS, -1, &reg) < 0)
		return NULL;
	reg->uid = reg->store.uid = uid;
	return reg;
}

int dyn_function_add(struct dyn *d, struct process *p, const struct driver_function *f)
{
	struct dyn_registry *reg;
	struct base_buf b = { 0 };
	uint64_t addr;
	int r;

	if (!f->nr || f->nr > INSTRS_MAX)
		return -EINVAL;
	reg = registry_of(d, p, f->uid);
	if (!reg)
		return -ENOMEM;
	/* Its texts are for the image's readers alone. */
	if (reg->uid && reg->uid != f->uid)
		return -EPERM;
	if (base_map_get(&reg->functions, &f->key, sizeof(f->key)))
		return 0;
	if (reg->nr_functions == FUNCTIONS_MAX)
		return -DCPI_ELIMIT;
	addr = FIRST_ADDR + reg->functions_len;
	r = put_record(&b, f, addr, reg->lifetimes.last_seq + 1);
	/* It was there before it was seen. */
	if (r >= 0 && dyn_apply(reg, b.data, b.len, 0, 0))
		r = -EINVAL;
	/* There was no room for it: it is told again. */
	if (r >= 0 && !dyn_routine_living(&reg->lifetimes.routines, addr))
		r = -DCPI_ELIMIT;
	reg->lifetimes.wants_list = false;
	base_buf_release(&b);
	if (r >= 0)
		r = base_map_set(&reg->functions, &f->key, sizeof(f->key), (void *)(uintptr_t)addr);
	if (r < 0)
		return r;
	reg->functions_len += base_align_up((uint64_t)f->nr * INSTR_LEN, ALIGN);
	reg->nr_functions++;
	return 0;
}

enum dyn_where dyn_function_find(const struct process *p, uint64_t key, uint32_t instr,
				 struct image **image, uint64_t *off)
{
	struct dyn_registry *reg = p->dyn ? dyn_source_find(p->dyn, DYN_FUNCTIONS) : NULL;
	uint64_t addr = reg ? (uintptr_t)base_map_get(&reg->functions, &key, sizeof(key)) : 0;
	const struct dyn_ask ask = { .addr = addr + (uint64_t)instr * INSTR_LEN,
				     .first_ns = 1,
				     .time_ns = UINT64_MAX };
	bool sure;

	return addr ? dyn_registry_lookup(reg, &ask, image, off, &sure) : DYN_NONE;
}
