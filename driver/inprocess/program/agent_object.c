/* SPDX-License-Identifier: BSD-2-Clause */
/* Lookup of an address in the dynamic loader's data, without taking its locks. */
#include "agent.h"
#include "inprocess_internal.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <string.h>
#include <unistd.h>

enum { PHDRS_MAX = 64, NOTES_MAX = 1024 };

/* From glibc 2.35 on. */
#ifdef DLFO_STRUCT_HAS_EH_DBASE
extern __typeof__(_dl_find_object) _dl_find_object __attribute__((weak));

bool agent_object_find(uint64_t pc, struct agent_object *out)
{
	struct dl_find_object found;

	/* Documented to be safe in signal handlers. Missing where libc is older than ours was. */
	if (!_dl_find_object || _dl_find_object((void *)(uintptr_t)pc, &found) < 0)
		return false;
	*out = (struct agent_object){ .start = (uintptr_t)found.dlfo_map_start,
				      .key = found.dlfo_link_map };
	return true;
}
#else
bool agent_object_find(uint64_t pc, struct agent_object *out)
{
	(void)pc;
	(void)out;
	return false;
}
#endif

/* In the notes that were copied to @notes: offset of the build-id's bytes, or 0. */
static size_t note_find(const uint8_t *notes, size_t len, size_t align, size_t *id_len)
{
	for (size_t at = 0; at + sizeof(ElfW(Nhdr)) <= len;) {
		ElfW(Nhdr) n;
		size_t desc, next;

		memcpy(&n, notes + at, sizeof(n));
		desc = (at + sizeof(n) + n.n_namesz + align - 1) & ~(align - 1);
		next = (desc + n.n_descsz + align - 1) & ~(align - 1);
		if (desc < at || next <= at || desc > len || n.n_descsz > len - desc)
			return 0;
		if (n.n_type == NT_GNU_BUILD_ID && n.n_namesz == 4 && n.n_descsz &&
		    n.n_descsz <= 32 && !memcmp(notes + at + sizeof(n), "GNU", 4)) {
			*id_len = n.n_descsz;
			return desc;
		}
		at = next;
	}
	return 0;
}

static size_t notes_id(uint64_t vaddr, const ElfW(Phdr) * p, uint8_t id[32], uint64_t *at)
{
	static uint8_t notes[NOTES_MAX];
	size_t len = p->p_memsz < NOTES_MAX ? (size_t)p->p_memsz : NOTES_MAX, id_len = 0, off;

	if (inprocess_copy_from(notes, vaddr, len) < 0)
		return 0;
	off = note_find(notes, len, p->p_align == 8 ? 8 : 4, &id_len);
	if (!off)
		return 0;
	memcpy(id, notes + off, id_len);
	*at = vaddr + off;
	return id_len;
}

size_t agent_object_id(uint64_t start, uint8_t id[32], uint64_t *at)
{
	static ElfW(Phdr) phdrs[PHDRS_MAX];
	uint64_t page = (uint64_t)getpagesize(), low = UINT64_MAX;
	size_t len = 0;
	ElfW(Ehdr) h;

	if (inprocess_copy_from(&h, start, sizeof(h)) < 0 || memcmp(h.e_ident, ELFMAG, SELFMAG) ||
	    h.e_phentsize != sizeof(*phdrs) || h.e_phnum > PHDRS_MAX ||
	    inprocess_copy_from(phdrs, start + h.e_phoff, h.e_phnum * sizeof(*phdrs)) < 0)
		return 0;
	for (size_t i = 0; i < h.e_phnum; i++)
		if (phdrs[i].p_type == PT_LOAD && phdrs[i].p_vaddr < low)
			low = phdrs[i].p_vaddr;
	low &= ~(page - 1);
	for (size_t i = 0; i < h.e_phnum && !len; i++)
		if (phdrs[i].p_type == PT_NOTE)
			len = notes_id(start + (phdrs[i].p_vaddr - low), &phdrs[i], id, at);
	return len;
}
