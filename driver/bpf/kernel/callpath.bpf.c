/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * Call paths: behind one sample in so many, who called it. Frames in the kernel come from the
 * kernel's own unwinder; those in the process are walked by unwind tables of the files that are
 * mapped there (callpaths.h). Included by behind.bpf.c.
 */
#include "callpaths.h"

#define UNWIND_INLINE		   static __always_inline
#define UNWIND_READ(ctx, to, addr) stack_word(ctx, to, addr)

struct callpath_cpu;
static __always_inline long stack_word(struct callpath_cpu *c, uint64_t *to, uint64_t addr);

#include "walk.h"
#include "python.bpf.c"

/* ---- set before loading ---------------------------------------------------------------------- */

const volatile uint32_t callpath_every = 1; /* 0: none */
/* The kernel unwinds itself; of what is sampled precisely it does so for each sample or for none.
 */
const volatile bool callpath_kernel = true;

/* ---- maps ------------------------------------------------------------------------------------ */

#define FIRST_SPACE (UINT64_C(1) << 32) /* above all versions of tables */

/* A mapping that was met: valid for this mm in this state, while the epoch lasts. */
struct callpath_mapping {
	uint64_t mm, instance, start, end;
	uint64_t delta; /* offset in the file less address */
	uint32_t seq, epoch;
	uint32_t table; /* number of its table, 0: none */
	uint32_t code;	/* a part of one that is of no file: its program writes code into it */
} __attribute__((aligned(64)));

enum {
	CALLPATH_NR_MAPPINGS = 256, /* powers of two */
	CALLPATH_NR_TOLD = 64,
	CALLPATH_NR_CACHED = 2048,
	CALLPATH_NR_WORDS = 128, /* of a stack that are read at once; a power of two */
	CALLPATH_MEMORY_PAGE = 4096,
	CALLPATH_NR_TAIL = (sizeof(struct unwind_state) + CALLPATH_STACK_LEN) / sizeof(uint64_t),
	CALLPATH_NR_SPACES = 64,
	CALLPATH_SPACE_BITS = 33, /* log2 of the nanoseconds that a number of a space is good for */
	CALLPATH_SPACE_PATHS = 4, /* that are walked before rules are kept by address */
	CALLPATH_USE_NS = 100000000,
	CALLPATH_NODE = 32, /* words of a node of a maple tree */
	CALLPATH_DEPTH = 8, /* levels of the tree */
	CALLPATH_ROW_STEPS = 17,
	CALLPATH_PAGE_BITS = 16, /* UNWIND_PAGE_BITS */
	/* When tables have changed, so many samples are walked for missing ones alone. Such a walk
	 * is worth some paths in the long run; at once there may be 512. */
	CALLPATH_LOOKS = 8,
	CALLPATH_LOOK_COST = 4,
	CALLPATH_LOOKS_MAX = 512 * CALLPATH_LOOK_COST,
};

/* The rule at an offset of a table or at an address, which was found before. */
struct callpath_cached {
	uint64_t off;
	uint64_t of; /* the table's version, or a space's number */
	struct unwind_rule rule;
} __attribute__((aligned(32)));

/* The addresses of a process lead to the same rules for so long. Numbers are not used again. */
struct callpath_space {
	uint64_t mm, instance, number;
	uint32_t seq, epoch, slice;
	uint32_t nr; /* paths, up to CALLPATH_SPACE_PATHS */
};

/* A walk's knowledge of its process. It is too large for the stack that programs share. */
struct callpath_run {
	uint64_t mm, root, vdso, instance;
	uint64_t space; /* its number; 0: rules are not kept by address */
	uint32_t seq, epoch;
	uint32_t unmapped; /* the first address lies in no mapping */
	uint32_t awaits; /* the last frame has no table yet, or is in code that its program wrote */
	struct python_run python;
};

struct callpath_cpu {
	struct callpath_counts counts;
	uint32_t turn[COUNT_NR_EVENTS]; /* samples of the event since the last one with a path */
	uint32_t looks;			/* samples that are still to be walked for missing tables */
	uint32_t looked;     /* CALLPATH_LOOK_COST for each such walk, less one for each path */
	uint32_t look_epoch; /* the tables' epoch of these, plus one */
	struct unwind_state state;
	struct unwind_rule rule;
	struct callpath_run run;
	struct kernel_user_regs regs;
	struct callpath_missing missing;
	uint64_t told[CALLPATH_NR_TOLD]; /* files that were reported in this epoch, by hash */
	struct callpath_mapping mappings[CALLPATH_NR_MAPPINGS];
	struct callpath_cached cached[CALLPATH_NR_CACHED];
	struct callpath_space spaces[CALLPATH_NR_SPACES];
	uint64_t nr_spaces;
	uint64_t node[CALLPATH_NODE];
	uint64_t differs;  /* frames behind the first, from those that stood there before */
	uint32_t sent;	   /* frames of the record before, which are still there; 0: they are not */
	uint64_t words_at; /* address of the stack's words that were read last */
	uint32_t nr_words;
	uint64_t words[CALLPATH_NR_WORDS];
	/* The record that is sent. Behind its frames there is room for a stack. */
	struct callpath_record w;
	uint64_t frames[CALLPATH_NR_FRAMES + CALLPATH_NR_TAIL];
};

_Static_assert(offsetof(struct callpath_cpu, frames) ==
		       offsetof(struct callpath_cpu, w) + sizeof(struct callpath_record),
	       "a path is sent at once");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1); /* replaced when the source is opened */
	__uint(key_size, sizeof(uint32_t));
	__uint(value_size, sizeof(struct callpath_cpu));
} callpath_cpus SEC(".maps");

struct callpath_bank {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, CALLPATH_BANK);
	__uint(key_size, sizeof(uint32_t));
	__uint(value_size, CALLPATH_CHUNK * sizeof(uint32_t));
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
	__uint(max_entries, CALLPATH_NR_BANKS);
	__uint(key_size, sizeof(uint32_t));
	__array(values, struct callpath_bank);
} callpath_banks SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, CALLPATH_NR_FILES);
	__uint(key_size, sizeof(uint32_t));
	__uint(value_size, sizeof(struct callpath_table));
} callpath_tables SEC(".maps");

/* Number of its table. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, CALLPATH_NR_FILES);
	__uint(key_size, sizeof(struct callpath_file));
	__uint(value_size, sizeof(uint32_t));
} callpath_files SEC(".maps");

/* struct callpath_record and its frames. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, CALLPATH_RING_LEN);
} callpaths SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, CALLPATH_MISSING_LEN);
} callpath_missing SEC(".maps");

/* ---- rows ------------------------------------------------------------------------------------ */

static __always_inline const uint32_t *word_at(uint32_t number)
{
	uint32_t bank = number >> (CALLPATH_CHUNK_BITS + CALLPATH_BANK_BITS);
	uint32_t chunk = number >> CALLPATH_CHUNK_BITS & (CALLPATH_BANK - 1);
	void *map = bpf_map_lookup_elem(&callpath_banks, &bank);
	const uint32_t *words = map ? bpf_map_lookup_elem(map, &chunk) : NULL;

	return words ? &words[number & (CALLPATH_CHUNK - 1)] : NULL;
}

static __always_inline uint32_t word_of(uint32_t number)
{
	const uint32_t *word = word_at(number);

	return word ? *(volatile const uint32_t *)word : 0;
}

/* How many of the @nr rows from word @first on begin at @low or before. */
static __always_inline uint32_t rows_below(uint32_t first, uint32_t nr, uint32_t low)
{
	uint32_t from = 0;

#pragma clang loop unroll(disable)
	for (uint32_t i = 0; i < CALLPATH_ROW_STEPS && from < nr; i++) {
		uint32_t mid = from + (nr - from) / 2;

		if ((word_of(first + mid) & 0xffff) <= low)
			from = mid + 1;
		else
			nr = mid;
	}
	return from;
}

/*
 * Number of the rule at offset @off; 0: none. This, mapping_find and tree_find are not static so
 * that the verifier looks at them once, by themselves.
 */
__noinline uint32_t rule_number(const struct callpath_table *t, uint64_t off)
{
	uint64_t page = off >> CALLPATH_PAGE_BITS;
	uint32_t from, to, below;

	if (!t)
		return 0;
	page -= t->first_page;
	if (page >= t->nr_pages)
		return 0;
	from = word_of(t->pages + (uint32_t)page);
	to = word_of(t->pages + (uint32_t)page + 1);
	below = from + rows_below(t->rows + from, to - from, off & 0xffff);
	return below ? word_of(t->rows + below - 1) >> 16 : 0;
}

static __always_inline bool rule_read(struct unwind_rule *rule, const struct callpath_table *t,
				      uint64_t off)
{
	uint32_t number = rule_number(t, off), at = t->rules + number * CALLPATH_RULE_WORDS;
	/* Rules stand at multiples of their length: each lies in one chunk. */
	const uint32_t *words = word_at(at & ~(CALLPATH_RULE_WORDS - 1u));

	if (!words || !number || number >= t->nr_rules)
		return false;
	__builtin_memcpy(rule, words, sizeof(*rule));
	return true;
}

static __always_inline struct callpath_cached *cached_at(struct callpath_cpu *c, uint64_t off,
							 uint64_t of)
{
	return &c->cached[(uint32_t)((off ^ of * mix[0]) * mix[1] >> 32) % CALLPATH_NR_CACHED];
}

/* Paths go through the same calls again and again. */
static __always_inline bool rule_known(struct callpath_cpu *c, uint64_t off, uint64_t of)
{
	const struct callpath_cached *known = cached_at(c, off, of);

	if (known->off != off || known->of != of)
		return false;
	c->rule = known->rule;
	return true;
}

static __always_inline void rule_keep(struct callpath_cpu *c, uint64_t off, uint64_t of)
{
	*cached_at(c, off, of) = (struct callpath_cached){ off, of, c->rule };
}

static __always_inline bool rule_find(struct callpath_cpu *c, const struct callpath_table *t,
				      uint64_t off)
{
	uint32_t version = *(const volatile uint32_t *)&t->version;

	if (rule_known(c, off, version))
		return true;
	if (!rule_read(&c->rule, t, off))
		return false;
	rule_keep(c, off, version);
	return true;
}

/*
 * The number of the process's space: of another state of its mappings or of the tables it is
 * another one, and after a while, so that tables that paths go through are seen to be used. 0: it
 * has few paths, and would only take the room of others.
 */
static __always_inline uint64_t space_of(struct callpath_cpu *c, const struct callpath_run *r)
{
	/* Read from memory it is a number: the verifier lets no program compute with a pointer. */
	uint64_t mm = *(const volatile uint64_t *)&r->mm;
	uint32_t slot = (uint32_t)(mm * mix[0] >> 32) % CALLPATH_NR_SPACES;
	uint32_t slice = (uint32_t)(c->w.time_ns >> CALLPATH_SPACE_BITS);
	struct callpath_space *e = &c->spaces[slot];

	if (e->mm != mm || e->instance != r->instance || e->seq != r->seq || e->epoch != r->epoch ||
	    e->slice != slice)
		*e = (struct callpath_space){ .mm = mm,
					      .instance = r->instance,
					      .number = FIRST_SPACE + c->nr_spaces++,
					      .seq = r->seq,
					      .epoch = r->epoch,
					      .slice = slice };
	if (e->nr >= CALLPATH_SPACE_PATHS)
		return e->number;
	e->nr++;
	return 0;
}

/* ---- mappings -------------------------------------------------------------------------------- */

/*
 * The process's mappings are the kernel's maple tree of them, which readers may walk without a
 * lock: nodes stay where they are until no interrupt can be in them. A node is a parent, pivots
 * and slots; entry i holds the addresses up to pivot i, without those of the entry before. The low
 * byte of what leads to a node tells its type.
 */
enum {
	MAPLE_LEAF = 1,
	MAPLE_ARANGE = 3,
	MAPLE_RANGE_PIVOTS = 15,
	MAPLE_ARANGE_PIVOTS = 9,
	MAPLE_PIVOT = 1,       /* index of the first, in words */
	MAPLE_RANGE_SLOT = 16, /* the same of slots */
	MAPLE_ARANGE_SLOT = 10,
	MAPLE_RANGE_META = 31,
	MAPLE_ARANGE_META = 30,
};

#define MAPLE_IS_NODE(root)	     (((root)&3) == 2 && (root) > 4096)
#define MAPLE_TYPE(entry)	     ((entry) >> 3 & 15)
#define MAPLE_NODE(entry)	     ((entry) & ~UINT64_C(255))
#define MAPLE_STANDS(type, field, w) (bpf_core_field_offset(struct type, field) == (w)*8)

static __always_inline bool is_known_tree(void)
{
	return MAPLE_STANDS(maple_range_64, pivot, MAPLE_PIVOT) &&
	       MAPLE_STANDS(maple_range_64, slot, MAPLE_RANGE_SLOT) &&
	       MAPLE_STANDS(maple_arange_64, pivot, MAPLE_PIVOT) &&
	       MAPLE_STANDS(maple_arange_64, slot, MAPLE_ARANGE_SLOT) &&
	       MAPLE_STANDS(maple_arange_64, meta, MAPLE_ARANGE_META);
}

/* The index of the entry of @node that holds @addr. */
static __always_inline uint32_t entry_of(const uint64_t *node, bool arange, uint64_t addr)
{
	uint32_t nr = arange ? MAPLE_ARANGE_PIVOTS : MAPLE_RANGE_PIVOTS;
	uint32_t last = node[arange ? MAPLE_ARANGE_META : MAPLE_RANGE_META] & 0xff;
	uint32_t i = 0;

	/* A full node has a slot in place of the number of its last entry. */
	if (last > nr || (!arange && node[MAPLE_PIVOT + MAPLE_RANGE_PIVOTS - 1]))
		last = nr;
#pragma clang loop unroll(disable)
	for (; i < MAPLE_RANGE_PIVOTS && i < last; i++)
		if (node[(MAPLE_PIVOT + i) % CALLPATH_NODE] >= addr)
			break;
	return i;
}

/* The kernel's address of the mapping at @addr, or of one that is not; 0: there is none. */
__noinline uint64_t tree_find(uint32_t cpu, uint64_t root, uint64_t addr)
{
	struct callpath_cpu *c = bpf_map_lookup_elem(&callpath_cpus, &cpu);
	uint64_t entry = root;
	uint32_t type = MAPLE_LEAF + 1;

	if (!c || !MAPLE_IS_NODE(root))
		return 0;
#pragma clang loop unroll(disable)
	for (uint32_t i = 0; i < CALLPATH_DEPTH && type > MAPLE_LEAF; i++) {
		uint32_t at;

		type = MAPLE_TYPE(entry);
		if (bpf_probe_read_kernel(c->node, sizeof(c->node), (void *)MAPLE_NODE(entry)))
			return 0;
		at = entry_of(c->node, type == MAPLE_ARANGE, addr) +
		     (type == MAPLE_ARANGE ? MAPLE_ARANGE_SLOT : MAPLE_RANGE_SLOT);
		entry = c->node[at % CALLPATH_NODE];
	}
	return type > MAPLE_LEAF || entry & 3 ? 0 : entry;
}

/* Linux 6.13 notes beside the nanoseconds that a program has asked for the time. */
#define CTIME_QUERIED (1u << 31)

static __always_inline uint64_t changed_of(const struct inode *inode)
{
	const struct inode___old *old = (const void *)inode;
	const struct inode___newer *newer = (const void *)inode;
	const struct inode___older *older = (const void *)inode;

	(void)old;
	if (bpf_core_field_exists(newer->i_ctime_sec))
		return (uint64_t)BPF_CORE_READ(newer, i_ctime_sec) * 1000000000u +
		       (BPF_CORE_READ(newer, i_ctime_nsec) & ~CTIME_QUERIED);
	if (bpf_core_field_exists(old->__i_ctime))
		return (uint64_t)BPF_CORE_READ(old, __i_ctime.tv_sec) * 1000000000u +
		       (uint64_t)BPF_CORE_READ(old, __i_ctime.tv_nsec);
	return (uint64_t)BPF_CORE_READ(older, i_ctime.tv_sec) * 1000000000u +
	       (uint64_t)BPF_CORE_READ(older, i_ctime.tv_nsec);
}

static __always_inline void file_read(struct callpath_file *f, const struct file *file)
{
	const struct inode *inode = BPF_CORE_READ(file, f_inode);

	f->dev = BPF_CORE_READ(inode, i_sb, s_dev);
	f->ino = BPF_CORE_READ(inode, i_ino);
	f->size = (uint64_t)BPF_CORE_READ(inode, i_size);
	f->changed = changed_of(inode);
}

static __always_inline uint64_t file_hash(const struct callpath_file *f)
{
	uint64_t h = (f->ino ^ f->dev << 40) * mix[0] ^ f->size;

	h = (h ^ h >> 31) * mix[1] ^ f->changed;
	h = (h ^ h >> 29) * mix[2];
	return h ^ h >> 32;
}

/* Once in an epoch, as far as can be. */
static __always_inline void tell_missing(struct callpath_cpu *c, uint64_t addr,
					 const struct callpath_mapping *m)
{
	uint64_t hash = file_hash(&c->missing.file) ^ c->counts.epoch;
	uint64_t *told = &c->told[hash % CALLPATH_NR_TOLD];

	if (*told == hash)
		return;
	c->missing.instance = m->instance;
	c->missing.addr = addr;
	c->missing.start = m->start;
	c->missing.end = m->end;
	c->missing.file_off = m->start + m->delta;
	c->missing.tgid = bpf_get_current_pid_tgid() >> 32;
	if (bpf_ringbuf_output(&callpath_missing, &c->missing, sizeof(c->missing), 0) == 0)
		*told = hash;
}

/* The part of @m at @addr that has a table of its own. */
static __always_inline void code_read(struct callpath_file *f, uint64_t addr,
				      struct callpath_mapping *m)
{
	uint64_t page = addr >> CALLPATH_PAGE_BITS, start = page << CALLPATH_PAGE_BITS;
	uint64_t end = start + (1ull << CALLPATH_PAGE_BITS);

	m->start = m->start > start ? m->start : start;
	m->end = m->end < end ? m->end : end;
	m->delta = 0;
	m->code = 1;
	*f = (struct callpath_file){ .ino = m->instance, .size = page, .changed = CALLPATH_CODE };
}

/* Fill in the file and table that @vma maps. */
static __always_inline void mapping_read(struct callpath_cpu *c, uint64_t addr, uint64_t vdso,
					 const struct vm_area_struct *vma,
					 struct callpath_mapping *m)
{
	const struct file *file = BPF_CORE_READ(vma, vm_file);
	const uint32_t *table;

	m->delta = (BPF_CORE_READ(vma, vm_pgoff) << 12) - m->start;
	m->table = 0;
	m->code = 0;
	if (file) {
		file_read(&c->missing.file, file);
	} else if (vdso == m->start) {
		c->missing.file = (struct callpath_file){ .changed = CALLPATH_VDSO };
		m->delta = -m->start;
	} else {
		code_read(&c->missing.file, addr, m);
	}
	table = bpf_map_lookup_elem(&callpath_files, &c->missing.file);
	if (table)
		m->table = *table;
	else
		tell_missing(c, addr, m);
}

static __always_inline bool mapping_is(const struct callpath_mapping *m,
				       const struct callpath_run *r, uint64_t addr)
{
	return addr >= m->start && addr < m->end && m->mm == r->mm && m->seq == r->seq &&
	       m->instance == r->instance && m->epoch == r->epoch;
}

/* Processes that stem from one another have the same addresses, and run in turn. */
static __always_inline uint32_t mapping_slot(const struct callpath_run *r, uint64_t addr)
{
	uint32_t x = (uint32_t)(addr >> 16) ^ (uint32_t)(r->mm >> 6);

	return (x * 0x9e3779b1u >> 16) % CALLPATH_NR_MAPPINGS;
}

/* The executable mapping at @addr goes into its slot. false: there is none. */
__noinline int mapping_find(uint32_t cpu, uint64_t addr)
{
	struct callpath_cpu *c = bpf_map_lookup_elem(&callpath_cpus, &cpu);
	const struct vm_area_struct *vma;
	const struct callpath_run *r;
	struct callpath_mapping *m;

	if (!c)
		return false;
	r = &c->run;
	vma = (void *)tree_find(cpu, r->root, addr);
	m = &c->mappings[mapping_slot(r, addr)];
	m->mm = 0;
	if (!vma || !(BPF_CORE_READ(vma, vm_flags) & KERNEL_VM_EXEC))
		return false;
	m->start = BPF_CORE_READ(vma, vm_start);
	m->end = BPF_CORE_READ(vma, vm_end);
	m->instance = r->instance;
	m->seq = r->seq;
	m->epoch = r->epoch;
	/* A sample in the midst of a change may find one that is another's already. */
	if (addr < m->start || addr >= m->end || (uint64_t)BPF_CORE_READ(vma, vm_mm) != r->mm)
		return false;
	mapping_read(c, addr, r->vdso, vma, m);
	m->mm = r->mm;
	return true;
}

/* ---- walking --------------------------------------------------------------------------------- */

/* Words from @addr on; where nothing is mapped behind its page, or it is not there, those of the
 * page. */
static __noinline long words_read(struct callpath_cpu *c, uint64_t addr)
{
	uint32_t nr = CALLPATH_NR_WORDS;

	c->nr_words = 0;
	if (bpf_probe_read_user(c->words, sizeof(c->words), (void *)addr)) {
		nr = (CALLPATH_MEMORY_PAGE - addr % CALLPATH_MEMORY_PAGE) / sizeof(c->words[0]);
		if (!nr || nr >= CALLPATH_NR_WORDS ||
		    bpf_probe_read_user(c->words, nr * sizeof(c->words[0]), (void *)addr))
			return -1;
	}
	c->words_at = addr;
	c->nr_words = nr;
	return 0;
}

/* The word of the process's memory at @addr, most often one behind others that were read with it: a
 * read's call costs much more than its bytes. */
static __always_inline long stack_word(struct callpath_cpu *c, uint64_t *to, uint64_t addr)
{
	uint64_t off = addr - c->words_at;

	if (off % sizeof(*to) || off / sizeof(*to) >= c->nr_words) {
		if (words_read(c, addr))
			return bpf_probe_read_user(to, sizeof(*to), (void *)addr);
		off = 0;
	}
	*to = c->words[off / sizeof(*to) % CALLPATH_NR_WORDS];
	return 0;
}

static __always_inline int end_of(enum unwind_step step)
{
	return step == UNWIND_STEP_COMPLETE	? CALLPATH_COMPLETE
	       : step == UNWIND_STEP_NO_ROWS	? CALLPATH_NO_ROWS
	       : step == UNWIND_STEP_UNREADABLE ? CALLPATH_UNREADABLE
						: CALLPATH_ASTRAY;
}

/* All CPUs read what stands beside it: it is written now and then. */
static __always_inline void use(struct callpath_table *t, uint64_t now)
{
	if (now - *(volatile uint64_t *)&t->used_ns > CALLPATH_USE_NS)
		*(volatile uint64_t *)&t->used_ns = now;
}

static __always_inline uint64_t *frame_at(struct callpath_cpu *c, uint32_t i)
{
	i &= CALLPATH_NR_FRAMES - 1;
	/* The verifier is to see that bound where it is used. */
	__asm__ volatile("" : "+r"(i));
	return &c->frames[i];
}

/*
 * A coroutine's outermost frame was put onto its stack by hand: it "returns" to the first byte of a
 * routine, and no code stands before that which could have called.
 */
static __always_inline int without_rule(struct callpath_cpu *c, const struct callpath_mapping *m,
					const struct callpath_table *t, uint64_t off)
{
	/* Before a routine that a program wrote may stand one of which no rule is known. */
	if (c->state.exact || m->code || !rule_number(t, off + 1))
		return CALLPATH_NO_ROWS;
	*frame_at(c, c->w.nr - 1) |= CALLPATH_EXACT;
	/* The path before may have ended here without that. */
	c->differs |= CALLPATH_EXACT;
	return CALLPATH_COMPLETE;
}

static __always_inline void push(struct callpath_cpu *c, uint64_t frame)
{
	uint64_t *at = frame_at(c, c->w.nr);

	c->differs = c->w.nr ? c->differs | (*at ^ frame) : 0;
	*at = frame;
	c->w.nr++;
}

/* The frame of the state is the last one so far: to its caller, by the rule. */
static __always_inline int climb(struct callpath_cpu *c, struct callpath_run *r, uint64_t addr)
{
	uint64_t low = c->state.reg[UNWIND_SP];
	enum unwind_step step = unwind_step(c, &c->state, &c->rule);

	if (step != UNWIND_STEP_NEXT)
		return end_of(step);
	if (r->python.chunk)
		python_enter(&r->python, addr, low, c->state.reg[UNWIND_SP]);
	return -1;
}

static __always_inline void push_state(struct callpath_cpu *c)
{
	push(c, c->state.pc | (c->state.exact ? CALLPATH_EXACT : 0));
}

/* The rule of @m at @addr goes to @c. -1, or the end of the path. */
static __always_inline int rule_of(struct callpath_cpu *c, struct callpath_run *r,
				   const struct callpath_mapping *m, uint64_t addr)
{
	uint32_t number = m->table;
	struct callpath_table *t;

	if (!number)
		return CALLPATH_NO_ROWS;
	t = bpf_map_lookup_elem(&callpath_tables, &number);
	if (!t)
		return CALLPATH_NO_ROWS;
	use(t, c->w.time_ns);
	if (!rule_find(c, t, addr + m->delta))
		return without_rule(c, m, t, addr + m->delta);
	if (t->python)
		python_meet(&r->python, number, m->delta);
	else if (r->space && !m->code)
		rule_keep(c, addr, r->space);
	return -1;
}

/* The state's frame becomes the last one. -1: its rule is in @c; or the end of the path. */
static __always_inline int meet(struct callpath_cpu *c, struct callpath_run *r, uint32_t cpu,
				uint64_t addr, bool first)
{
	struct callpath_mapping *m;

	if (r->space && rule_known(c, addr, r->space)) {
		push_state(c);
		r->awaits = 0;
		return -1;
	}
	m = &c->mappings[mapping_slot(r, addr)];
	if (!mapping_is(m, r, addr) && !mapping_find(cpu, addr)) {
		if (!first)
			return CALLPATH_ASTRAY;
		m->table = 0;
		r->unmapped = 1;
	}
	push_state(c);
	r->awaits = m->code || !m->table;
	return rule_of(c, r, m, addr);
}

/* The interpreter's function that comes next; the sampled frame stays. */
static __always_inline int push_function(struct callpath_cpu *c, struct callpath_run *r)
{
	uint64_t frame = python_next(&r->python);

	if (frame == CALLPATH_FUNCTION)
		return CALLPATH_UNREADABLE;
	if (!frame)
		return -1;
	if (r->python.replaces && c->w.nr > 1)
		c->w.nr--;
	r->python.replaces = 0;
	push(c, frame);
	return -1;
}

static long callpath_step(uint32_t i, const uint32_t *cpu)
{
	struct callpath_cpu *c = bpf_map_lookup_elem(&callpath_cpus, cpu);
	struct callpath_run *r;
	uint64_t addr;
	int end;

	if (!c)
		return 1;
	r = &c->run;
	if (c->w.nr >= CALLPATH_NR_FRAMES) {
		c->w.end = CALLPATH_CUT;
		return 1;
	}
	if (r->python.frame) {
		end = push_function(c, r);
		if (end >= 0)
			c->w.end = (uint8_t)end;
		return end >= 0;
	}
	addr = unwind_lookup_pc(&c->state);
	end = meet(c, r, *cpu, addr, i == 0);
	if (end < 0)
		end = climb(c, r, addr);
	c->w.end = end < 0 ? CALLPATH_ASTRAY : (uint8_t)end;
	return end >= 0;
}

#if defined(DCPI_BPF_x86_64)
static __always_inline void state_fill(struct unwind_state *s, const struct kernel_user_regs *r)
{
	s->reg[0] = r->general[10];
	s->reg[1] = r->general[12];
	s->reg[2] = r->general[11];
	s->reg[3] = r->general[5];
	s->reg[4] = r->general[13];
	s->reg[5] = r->general[14];
	s->reg[6] = r->general[4];
	s->reg[7] = r->sp;
#pragma clang loop unroll(full)
	for (uint32_t i = 0; i < 4; i++) {
		s->reg[8 + i] = r->general[9 - i];
		s->reg[12 + i] = r->general[3 - i];
	}
	s->known = 0xffff;
}

/* Code of 64 bits of a process? */
static __always_inline bool is_walked(const struct kernel_user_regs *r)
{
	return r->cs == KERNEL_CS_USER_64;
}

/* Number of the system call by which the process came into the kernel; negative: it was
 * interrupted.
 */
static __always_inline int64_t call_of(const struct kernel_user_regs *r, const struct pt_regs *at)
{
	(void)at;
	return (int64_t)r->general[15];
}

enum { CALL_EXECVE = 59, CALL_EXECVEAT = 322 };
#else
static __always_inline void state_fill(struct unwind_state *s, const struct kernel_user_regs *r)
{
	s->reg[UNWIND_LINK] = r->general[30];
	s->reg[UNWIND_FP] = r->general[29];
	s->reg[UNWIND_SP] = r->sp;
	s->known = 1 << UNWIND_LINK | 1 << UNWIND_FP | 1 << UNWIND_SP;
}

static __always_inline bool is_walked(const struct kernel_user_regs *r)
{
	return KERNEL_IS_USER(r->pstate) && !(r->pstate & KERNEL_PSTATE_32);
}

static __always_inline int64_t call_of(const struct kernel_user_regs *r, const struct pt_regs *at)
{
	(void)r;
	return BPF_CORE_READ(at, syscallno);
}

enum { CALL_EXECVE = 221, CALL_EXECVEAT = 281 };
#endif

static __always_inline uint32_t seq_of(struct mm_struct *mm, uint32_t otherwise)
{
	struct mm_struct___int *old = (void *)mm;

	if (bpf_core_field_exists(mm->mm_lock_seq))
		return mm->mm_lock_seq.sequence;
	if (bpf_core_field_exists(old->mm_lock_seq))
		return (uint32_t)old->mm_lock_seq;
	return otherwise;
}

/* From the registers of the process on, in @cpu's memory. Not static, as rule_number. */
__noinline int walk(uint32_t cpu)
{
	struct callpath_cpu *c = bpf_map_lookup_elem(&callpath_cpus, &cpu);
	struct callpath_run *r;

	/* A thread of the kernel that serves a process. */
	if (!c || !KERNEL_IS_USER(c->regs.KERNEL_MODE_WORD))
		return true;
	if (!is_walked(&c->regs) || !is_known_tree()) {
		push(c, c->regs.ip | CALLPATH_EXACT);
		c->w.end = CALLPATH_NO_ROWS;
		return true;
	}
	r = &c->run;
	r->space = space_of(c, r);
	c->state.pc = c->regs.ip;
	c->state.exact = 1;
	c->state.guessed = 0;
	state_fill(&c->state, &c->regs);
	r->python.ask.cpu = cpu;
	r->python.ask.instance = c->w.instance;
	r->python.ask.time_ns = c->w.time_ns;
	/* The interpreter's frames may be as many as those that are kept, and they go. */
	bpf_loop(2 * CALLPATH_NR_FRAMES + 1, callpath_step, &cpu, 0);
	return !r->unmapped;
}

/* The frames of the process, from its registers in @c on. False: they are of no code. */
static __always_inline bool walk_process(struct callpath_cpu *c, uint32_t cpu, struct mm_struct *mm)
{
	struct callpath_run *r = &c->run;

	c->nr_words = 0;
	__builtin_memset(r, 0, sizeof(*r));
	r->mm = (uint64_t)mm;
	r->root = (uint64_t)mm->mm_mt.ma_root;
	r->vdso = (uint64_t)mm->context.vdso;
	r->instance = c->w.instance;
	r->epoch = *(volatile uint32_t *)&c->counts.epoch;
	/* Where nothing tells of changes no mapping is remembered any longer. */
	r->seq = seq_of(mm, (uint32_t)c->w.time_ns);
	return walk(cpu);
}

/* ---- frames in the kernel -------------------------------------------------------------------- */

enum { KERNEL_FRAMES_LEN = 128 * sizeof(uint64_t), KERNEL_SKIP = 32 };

/* Frames of the kernel, without the first @skip: how many. */
static __always_inline uint32_t kernel_frames(void *ctx, struct callpath_cpu *c, uint32_t skip)
{
	long len = bpf_get_stack(ctx, c->frames, KERNEL_FRAMES_LEN, skip & 0xff);

	return len > 0 && len <= KERNEL_FRAMES_LEN ? (uint32_t)len / sizeof(uint64_t) : 0;
}

static __always_inline bool begins_at(const struct callpath_cpu *c, uint32_t nr, uint64_t pc)
{
	return nr && c->frames[0] == pc;
}

/* How many frames stand above that of @pc, which was interrupted; KERNEL_SKIP: it is not there. */
static __always_inline uint32_t handler_frames(const struct callpath_cpu *c, uint32_t nr,
					       uint64_t pc)
{
	uint32_t i = 0;

#pragma clang loop unroll(disable)
	for (; i < KERNEL_SKIP && i < nr; i++)
		if (c->frames[i] == pc)
			return i;
	return KERNEL_SKIP;
}

/* In a handler, whose own frames come first: most often the same number. */
static __always_inline void kernel_path(void *ctx, struct callpath_cpu *c, uint64_t pc)
{
	uint32_t nr = callpath_kernel ? kernel_frames(ctx, c, c->counts.skip) : 0, skip;

	if (callpath_kernel && !begins_at(c, nr, pc)) {
		nr = kernel_frames(ctx, c, 0);
		skip = handler_frames(c, nr, pc);
		nr = 0;
		if (skip < KERNEL_SKIP) {
			nr = kernel_frames(ctx, c, skip);
			c->counts.skip = skip;
		}
	}
	if (!begins_at(c, nr, pc)) {
		c->frames[0] = pc;
		nr = 1;
	}
	c->w.nr_kernel = c->w.nr = (uint16_t)nr;
}

/* ---- paths ----------------------------------------------------------------------------------- */

static __always_inline void begin_path(struct callpath_record *w, uint32_t cpu,
				       const struct count_key *k)
{
	w->time_ns = bpf_ktime_get_ns();
	w->instance = k->instance;
	w->tgid = k->tgid;
	w->tid = (uint32_t)bpf_get_current_task_btf()->pid;
	w->generation = k->generation;
	w->event = COUNT_WHAT_EVENT(k->what);
	w->mode = COUNT_WHAT_MODE(k->what);
	w->flags = (k->what & COUNT_WHAT_READ ? CALLPATH_READ : 0) |
		   (k->what & COUNT_WHAT_UNREAD ? CALLPATH_UNREAD : 0);
	w->end = CALLPATH_COMPLETE;
	w->nr_kernel = w->nr = 0;
	w->stack_len = 0;
	w->cpu = (uint16_t)cpu;
}

/*
 * Code that a program has just written has no table yet, nor has a file that no path met before,
 * but both will have one soon: the stack of its callers is kept, and the path continues when that
 * is there. Where the ring is half full, other paths need it more.
 */
static __always_inline void keep_stack(struct callpath_cpu *c)
{
	uint64_t from = c->state.reg[UNWIND_SP];
	struct unwind_state *to;

	if (c->w.end != CALLPATH_NO_ROWS || !c->run.awaits || !(c->state.known & 1u << UNWIND_SP) ||
	    c->w.nr >= CALLPATH_NR_FRAMES ||
	    bpf_ringbuf_query(&callpaths, BPF_RB_AVAIL_DATA) > CALLPATH_RING_LEN / 2)
		return;
	to = (void *)frame_at(c, c->w.nr);
	*to = c->state;
#pragma clang loop unroll(full)
	for (uint32_t i = 0; i < CALLPATH_STACK_LEN; i += CALLPATH_STACK_PART) {
		if (bpf_probe_read_user((char *)(to + 1) + i, CALLPATH_STACK_PART,
					(void *)(from + i)))
			return;
		c->w.stack_len = i + CALLPATH_STACK_PART;
	}
}

/* A loop has the same callers again and again: @sent frames of the record before are still there.
 */
static __always_inline void send_path(struct callpath_cpu *c, uint32_t sent)
{
	const uint32_t max = sizeof(c->w) + sizeof(c->frames);
	uint32_t len;

	keep_stack(c);
	len = sizeof(c->w) + c->w.nr * sizeof(c->frames[0]);
	if (c->w.stack_len) {
		len += sizeof(c->state) + c->w.stack_len;
	} else if (!c->w.nr_kernel && c->w.nr == sent && !c->differs) {
		c->w.flags |= CALLPATH_SAME;
		len = sizeof(c->w) + sizeof(c->frames[0]);
	}
	if (len > max)
		len = max;
	if (bpf_ringbuf_output(&callpaths, &c->w, len,
			       bpf_ringbuf_query(&callpaths, BPF_RB_AVAIL_DATA) <
					       CALLPATH_RING_LEN / 2
				       ? BPF_RB_NO_WAKEUP
				       : BPF_RB_FORCE_WAKEUP) < 0)
		__sync_fetch_and_add(&c->counts.lost_ring, 1);
	else if (!c->w.nr_kernel)
		c->sent = c->w.nr;
}

/*
 * A path ends at the first table that is missing. Were only paths to meet them, as many would be
 * lost as there are files on them: when tables have changed, some samples between are walked for
 * that.
 */
static __always_inline bool looks_for_tables(struct callpath_cpu *c)
{
	uint32_t epoch = *(volatile uint32_t *)&c->counts.epoch + 1, looks;

	if (c->look_epoch != epoch) {
		c->look_epoch = epoch;
		c->looks = CALLPATH_LOOKS;
	}
	looks = *(volatile uint32_t *)&c->looks;
	if (!looks || c->looked >= CALLPATH_LOOKS_MAX || c->counts.busy)
		return false;
	c->looks = looks - 1;
	c->looked += CALLPATH_LOOK_COST;
	return true;
}

static __always_inline struct callpath_cpu *callpath_cpu(uint32_t *cpu)
{
	*cpu = bpf_get_smp_processor_id();
	return bpf_map_lookup_elem(&callpath_cpus, cpu);
}

enum callpath_turn { CALLPATH_NOT, CALLPATH_LOOKS_ONLY, CALLPATH_WALKS };

/* The work behind this sample. A walk that only looks sends nothing. */
static __always_inline enum callpath_turn callpath_turn(const struct count_key *k)
{
	struct callpath_cpu *c;
	uint32_t cpu, looked, *turn;

	/* One that was not counted has no process; in kernel mode it is the idle task's. */
	if (!callpath_every || !k->tgid)
		return CALLPATH_NOT;
	c = callpath_cpu(&cpu);
	turn = c ? &c->turn[event % COUNT_NR_EVENTS] : NULL;
	if (!turn)
		return CALLPATH_NOT;
	if (++*turn < callpath_every)
		return looks_for_tables(c) ? CALLPATH_LOOKS_ONLY : CALLPATH_NOT;
	*turn = 0;
	looked = *(volatile uint32_t *)&c->looked;
	c->looked = looked - (looked > 0);
	__sync_fetch_and_add(&c->counts.received, 1);
	if (!c->counts.busy)
		return CALLPATH_WALKS;
	__sync_fetch_and_add(&c->counts.lost_busy, 1);
	return CALLPATH_NOT;
}

/* The frames of the process, behind those of the kernel. */
static __always_inline void callers_of_kernel(struct callpath_cpu *c, uint32_t cpu,
					      struct mm_struct *mm, const void *regs)
{
	uint32_t first = c->w.nr;
	bool mapped = walk_process(c, cpu, mm);
	int64_t call = call_of(&c->regs, regs);

	/* Behind the call of the kernel, as behind any other. */
	if (call >= 0)
		*frame_at(c, first) &= ~CALLPATH_EXACT;
	/* The program that called it is gone already. */
	if (!mapped && (call == CALL_EXECVE || call == CALL_EXECVEAT)) {
		c->w.nr = (uint16_t)first;
		c->w.end = CALLPATH_COMPLETE;
	}
}

/* @regs: the interrupted ones, if @event: they are @ctx's. */
static __always_inline void callpath(void *ctx, struct callpath_cpu *c, uint32_t cpu,
				     const struct count_key *k, const void *regs, bool looks)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct mm_struct *mm = task->mm;
	bool kernel = COUNT_WHAT_MODE(k->what) != SAMPLE_USER;
	uint32_t sent = c->sent;

	c->sent = 0;
	begin_path(&c->w, cpu, k);
	c->run.awaits = 0;
	if (kernel) {
		if (!looks)
			kernel_path(ctx, c, k->addr);
		regs = (void *)bpf_task_pt_regs(task);
	}
	if (mm && !(task->flags & KERNEL_PF_KTHREAD) &&
	    (!regs || !bpf_probe_read_kernel(&c->regs, sizeof(c->regs), regs))) {
		if (kernel)
			callers_of_kernel(c, cpu, mm, regs);
		else
			walk_process(c, cpu, mm);
	}
	if (looks)
		return;
	if (!c->w.nr) {
		push(c, k->addr | CALLPATH_EXACT);
		c->w.end = CALLPATH_NO_ROWS;
	}
	send_path(c, sent);
}

static __attribute__((noinline, unused)) int
callpath_of_event(struct bpf_perf_event_data *ctx, const struct count_key *k, bool looks)
{
	uint32_t cpu;
	struct callpath_cpu *c = callpath_every && k ? callpath_cpu(&cpu) : NULL;

	if (!c)
		return 0;
	c->counts.busy = 1;
	COUNT_BARRIER();
	if (COUNT_WHAT_MODE(k->what) == SAMPLE_USER)
		__builtin_memcpy(&c->regs, &ctx->regs, sizeof(c->regs));
	callpath(ctx, c, cpu, k, NULL, looks);
	COUNT_BARRIER();
	c->counts.busy = 0;
	return 0;
}

static __attribute__((noinline, unused)) int callpath_of_tick(void *ctx, const void *regs,
							      const struct count_key *k, bool looks)
{
	uint32_t cpu;
	struct callpath_cpu *c = callpath_every && k ? callpath_cpu(&cpu) : NULL;

	if (!c)
		return 0;
	c->counts.busy = 1;
	COUNT_BARRIER();
	callpath(ctx, c, cpu, k, regs, looks);
	COUNT_BARRIER();
	c->counts.busy = 0;
	return 0;
}
