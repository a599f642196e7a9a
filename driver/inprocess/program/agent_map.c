/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Which mappings the ring was told of. What the loader knows is asked at every sample, without its
 * locks, so that a library in another's place is seen at its first.
 */
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "agent.h"
#include "inprocess_internal.h"

/* ---- objects of the loader ------------------------------------------------------------------- */

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

/* ---- mappings -------------------------------------------------------------------------------- */

/* One that found no place is told again, more often than it need be. */
enum { KNOWN_MAX = 1024, PAUSE_EVERY = 16 };
/* Reading of /proc takes at most one part in so many of the time. */
enum { READ_SHARE = 10 };

struct known {
	uint64_t start, end;
	const void *key; /* key of the object, NULL: none */
	uint64_t id_at;
	uint8_t id[32];
	uint8_t id_len;
};

/* All of it is used by one thread at a time; not on the stack, which may be small. */
static struct known known[KNOWN_MAX];
static size_t nr_known;
static uint64_t next_read_ns;
static char text[INPROCESS_PATH_MAX + 257];
static size_t text_len;
static bool text_read; /* there was something in the file */

void agent_map_forget(void)
{
	nr_known = 0;
	next_read_ns = 0;
}

/* ---- /proc/self/maps ------------------------------------------------------------------------- */

/* The first shows nothing once the main thread has ended; the second only the kernel knows. */
static const char *const files[] = { "/proc/self/maps", "/proc/thread-self/maps" };

static bool number(const char **at, unsigned int base, char end, uint64_t *out)
{
	const char *p = *at;

	for (*out = 0;; p++) {
		unsigned int digit = 99;

		if (*p >= '0' && *p <= '9')
			digit = (unsigned int)(*p - '0');
		else if (*p >= 'a' && *p <= 'f')
			digit = (unsigned int)(*p - 'a') + 10;
		if (digit >= base)
			break;
		*out = *out * base + digit;
	}
	if (p == *at || *p != end)
		return false;
	*at = p + 1;
	return true;
}

static uint32_t prot_of(const char *flags)
{
	return (flags[0] == 'r' ? PROT_READ : 0u) | (flags[1] == 'w' ? PROT_WRITE : 0u) |
	       (flags[2] == 'x' ? PROT_EXEC : 0u);
}

int agent_line_parse(const char *line, struct agent_line *out)
{
	uint64_t major, minor;
	const char *flags;

	if (!number(&line, 16, '-', &out->start) || !number(&line, 16, ' ', &out->end))
		return -EINVAL;
	flags = line;
	if (strnlen(flags, 5) < 5 || flags[4] != ' ')
		return -EINVAL;
	out->prot = prot_of(flags);
	line += 5;
	if (!number(&line, 16, ' ', &out->file_off) || !number(&line, 16, ':', &major) ||
	    !number(&line, 16, ' ', &minor) || !number(&line, 10, ' ', &out->inode))
		return -EINVAL;
	out->dev_major = (uint32_t)major;
	out->dev_minor = (uint32_t)minor;
	out->path = line + strspn(line, " ");
	return 0;
}

/* Fill the buffer behind what is left of it; false at the end. */
static bool read_more(int fd)
{
	long n;

	if (text_len == sizeof(text) - 1)
		return false;
	n = syscall(SYS_read, fd, text + text_len, sizeof(text) - 1 - text_len);
	if (n <= 0)
		return false;
	text_len += (size_t)n;
	text_read = true;
	return true;
}

/* The line that holds @pc; its path stays in the buffer. */
static bool find_line(int fd, uint64_t pc, struct agent_line *out)
{
	text_len = 0;
	text_read = false;
	while (read_more(fd)) {
		char *line = text, *end;

		while ((end = memchr(line, '\n', text_len - (size_t)(line - text)))) {
			*end = '\0';
			if (agent_line_parse(line, out) == 0 && pc >= out->start && pc < out->end)
				return true;
			line = end + 1;
		}
		text_len -= (size_t)(line - text);
		memmove(text, line, text_len);
	}
	return false;
}

/* Read by system calls, because libc's open and read are cancellation points. */
static bool read_file(const char *path, uint64_t pc, struct agent_line *out)
{
	int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDONLY | O_CLOEXEC);
	bool found = false;

	if (fd >= 0) {
		found = find_line(fd, pc, out);
		syscall(SYS_close, fd);
	}
	return found;
}

static bool read_line(uint64_t pc, struct agent_line *out)
{
	uint64_t start = agent_now_ns(), end;
	bool found;

	if (start < next_read_ns)
		return false;
	found = read_file(files[0], pc, out) || (!text_read && read_file(files[1], pc, out));
	end = agent_now_ns();
	/* The first few may come at once. */
	if (nr_known >= PAUSE_EVERY)
		next_read_ns = end + (end - start) * READ_SHARE;
	return found;
}

/* The kernel writes a newline in a path as \012 there. */
static size_t unescape(const char *path, char *to)
{
	size_t len = 0;

	while (*path && len < INPROCESS_PATH_MAX) {
		bool newline = strncmp(path, "\\012", 4) == 0;

		to[len++] = newline ? '\n' : *path;
		path += newline ? 4 : 1;
	}
	return len;
}

/* ---- telling --------------------------------------------------------------------------------- */

static bool put_map(const struct agent_ring *r, const struct agent_line *line,
		    const struct known *k)
{
	static char path[INPROCESS_PATH_MAX];
	const struct inprocess_unit unit = { .time_ns = agent_now_ns(),
					     .addr = line->start,
					     .tid = (uint32_t)syscall(SYS_gettid),
					     .type = INPROCESS_MAP };
	struct inprocess_map map = { .len = line->end - line->start,
				     .file_off = line->file_off,
				     .inode = line->inode,
				     .dev_major = line->dev_major,
				     .dev_minor = line->dev_minor,
				     .prot = line->prot,
				     .id_len = k->id_len };

	map.path_len = (uint16_t)unescape(line->path[0] ? line->path : "//anon", path);
	memcpy(map.id, k->id, sizeof(map.id));
	return agent_ring_put(r, &unit, &map, sizeof(map), path, map.path_len);
}

/* Its build-id still stands where it stood: nothing else was loaded into its place. */
static bool is_same(const struct known *k)
{
	uint8_t id[32];

	return !k->id_len || (inprocess_copy_from(id, k->id_at, k->id_len) == 0 &&
			      memcmp(id, k->id, k->id_len) == 0);
}

/* The latest word counts. */
static struct known *find_known(uint64_t pc)
{
	for (size_t i = nr_known; i--;)
		if (pc >= known[i].start && pc < known[i].end)
			return &known[i];
	return NULL;
}

static bool is_announced(uint64_t pc, const struct agent_object *object)
{
	const struct known *k = find_known(pc);

	return k && k->key == object->key && is_same(k);
}

static bool tell(const struct agent_ring *r, uint64_t pc, const struct agent_object *object)
{
	struct known k = { .key = object->key };
	struct agent_line line;

	if (!read_line(pc, &line))
		return false;
	if (object->key)
		k.id_len = (uint8_t)agent_object_id(object->start, k.id, &k.id_at);
	k.start = line.start;
	k.end = line.end;
	if (!put_map(r, &line, &k))
		return false;
	if (nr_known == KNOWN_MAX)
		nr_known = 0;
	known[nr_known++] = k;
	return true;
}

void agent_map_tell(const struct agent_ring *r, uint64_t pc)
{
	struct agent_object object = { 0 };

	agent_object_find(pc, &object);
	if (!is_announced(pc, &object) && !tell(r, pc, &object))
		__atomic_add_fetch(&r->head->lost_maps, 1, __ATOMIC_RELAXED);
}
