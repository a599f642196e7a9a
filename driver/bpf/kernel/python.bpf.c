/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0 */
/*
 * Functions of CPython on a call path (lib/unwind/python.h): where the walk goes through a frame
 * of the interpreter, they stand in its place. A frame of the path names its function by a hash;
 * the function itself leaves the kernel once for each process, now and then again. Included by
 * callpath.bpf.c.
 */

enum {
	PYTHON_THREADS = 64, /* so many threads of a process are looked at */
	PYTHON_TELLS = 16,   /* functions that one path may tell of */
	PYTHON_SKIPS = 4,   /* activations of the interpreter in a frame that is not known as its */
	PYTHON_OWNER_C = 3, /* 3.12: a frame that is of no function */
	PYTHON_AGAIN_BITS = 34,	 /* nanoseconds after which a function is told again: 17 s */
	PYTHON_SPREAD_BITS = 18, /* keys differ in when that is */
	/* Objects: offsets that all versions share; a string's state. */
	PYTHON_TYPE = 8,
	PYTHON_SIZE = 16,
	PYTHON_STATE = 32,
	PYTHON_BYTES = 32,
};

#define PYTHON_KIND(state)    ((state) >> 2 & 7) /* bytes of a character */
#define PYTHON_COMPACT(state) ((state) >> 5 & 1)
#define PYTHON_ASCII(state)   ((state) >> 6 & 1)

/* The layouts, by number of their file's table. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, CALLPATH_NR_FILES);
	__uint(key_size, sizeof(uint32_t));
	__uint(value_size, sizeof(struct unwind_python));
} callpath_pythons SEC(".maps");

/* struct callpath_function, as long as it is. */
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, CALLPATH_FUNCTIONS_LEN);
} callpath_functions SEC(".maps");

/* One CPU's part: which functions it has told of, and the one that it tells now. */
struct python_cpu {
	uint64_t told[CALLPATH_NR_TOLD_FUNCTIONS];
	struct callpath_function f;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1); /* replaced when the source is opened */
	__uint(key_size, sizeof(uint32_t));
	__uint(value_size, sizeof(struct python_cpu));
} callpath_python_cpus SEC(".maps");

/* 0 and false: it could not be read. */
static __always_inline bool user_word(uint64_t *to, uint64_t addr)
{
	*to = 0;
	return !bpf_probe_read_user(to, sizeof(*to), (void *)addr);
}

static __always_inline const struct unwind_python *python_of(uint32_t number)
{
	return bpf_map_lookup_elem(&callpath_pythons, &number);
}

/* ---- threads --------------------------------------------------------------------------------- */

static __always_inline bool is_own_thread(const struct unwind_python *p, uint64_t thread,
					  uint64_t self)
{
	uint64_t id;

	return thread && user_word(&id, thread + p->thread_id) && id == self;
}

/* The state of the current thread in the CPython at @delta, or 0. */
static __always_inline uint64_t python_thread(const struct unwind_python *p, uint64_t delta)
{
	struct task_struct *task = bpf_get_current_task_btf();
	uint64_t self = BPF_CORE_READ(task, thread.KERNEL_THREAD_TLS), thread, interpreter;

	if (p->current && user_word(&thread, p->current - delta) && is_own_thread(p, thread, self))
		return thread;
	if (!user_word(&interpreter, p->main - delta) || !interpreter ||
	    !user_word(&thread, interpreter + p->threads))
		return 0;
#pragma clang loop unroll(disable)
	for (uint32_t i = 0; i < PYTHON_THREADS && thread; i++) {
		if (is_own_thread(p, thread, self))
			return thread;
		user_word(&thread, thread + p->thread_next);
	}
	return 0;
}

/* Address of the innermost cframe of the current thread, or (3.13) of its innermost frame; or 0.
 * Not static, as rule_number. */
__noinline uint64_t python_innermost(uint32_t number, uint64_t delta)
{
	const struct unwind_python *p = python_of(number);
	uint64_t thread = p ? python_thread(p, delta) : 0, innermost = 0;

	if (thread)
		user_word(&innermost,
			  thread + (p->thread_frame ? p->thread_frame : p->thread_cframe));
	return innermost;
}

/* ---- functions ------------------------------------------------------------------------------- */

/* The characters of the string at @addr, as many as fit. */
static __always_inline void string_read(const struct unwind_python *p, uint64_t addr,
					struct callpath_string *to)
{
	uint64_t nr, state;

	to->kind = 0;
	to->len = 0;
	if (!user_word(&nr, addr + PYTHON_SIZE) || !user_word(&state, addr + PYTHON_STATE) ||
	    !PYTHON_COMPACT(state) || nr > CALLPATH_STRING_MAX)
		return;
	nr *= PYTHON_KIND(state);
	if (nr > sizeof(to->text))
		nr = sizeof(to->text);
	addr += PYTHON_ASCII(state) ? p->string_ascii : p->string_other;
	if (bpf_probe_read_user(to->text, (uint32_t)nr, (void *)addr))
		return;
	to->kind = PYTHON_KIND(state);
	to->len = (uint16_t)nr;
}

static __always_inline void lines_read(struct callpath_function *f, uint64_t addr)
{
	uint64_t len;

	f->lines_len = 0;
	if (!user_word(&len, addr + PYTHON_SIZE))
		return;
	if (len > sizeof(f->lines))
		len = sizeof(f->lines);
	if (!bpf_probe_read_user(f->lines, (uint32_t)len, (void *)(addr + PYTHON_BYTES)))
		f->lines_len = (uint16_t)len;
}

/* A code object's words that tell it from another one that has its place later. */
struct python_code {
	uint64_t type, nr, line, file, name, lines;
};

static __always_inline bool code_object_read(const struct unwind_python *p, uint64_t delta,
					     uint64_t code, struct python_code *c)
{
	return user_word(&c->type, code + PYTHON_TYPE) && c->type == p->code_type - delta &&
	       user_word(&c->nr, code + PYTHON_SIZE) && user_word(&c->line, code + p->code_line) &&
	       user_word(&c->file, code + p->code_file) &&
	       user_word(&c->name, code + p->code_name) &&
	       user_word(&c->lines, code + p->code_lines);
}

static __always_inline uint64_t code_hash(const struct python_code *c, uint64_t code)
{
	uint64_t h = code * mix[0] ^ c->nr ^ (uint64_t)(uint32_t)c->line << 32;

	h = (h ^ h >> 31) * mix[1] ^ c->file;
	h = (h ^ h >> 29) * mix[2] ^ c->name;
	h = (h ^ h >> 32) * mix[0] ^ c->lines;
	h = (h ^ h >> 31) * mix[1];
	return h ^ h >> 32;
}

/* A request for function_key. */
struct python_ask {
	uint64_t delta, code, instance, time_ns;
	uint32_t number; /* of the layout */
	uint32_t cpu;
	uint32_t tell; /* the process's functions may be told */
	uint32_t nr;   /* answer: instructions of this one */
	uint32_t shim; /* answer: it is CPython's own (3.13), between a class and its __init__ */
};

/* False: there was no room in the ring. */
static __always_inline bool function_tell(struct python_cpu *c, const struct unwind_python *p,
					  const struct python_ask *ask,
					  const struct python_code *code, uint64_t key)
{
	struct callpath_function *f = &c->f;
	uint32_t len;

	f->time_ns = ask->time_ns;
	f->instance = ask->instance;
	f->key = key;
	f->tgid = bpf_get_current_pid_tgid() >> 32;
	f->nr = (uint32_t)code->nr;
	f->line = (uint32_t)code->line;
	f->uid = (uint32_t)bpf_get_current_uid_gid();
	string_read(p, code->name, &f->name);
	string_read(p, code->file, &f->file);
	lines_read(f, code->lines);
	len = offsetof(struct callpath_function, lines) + ((f->lines_len + 7u) & ~7u);
	if (len > sizeof(*f))
		len = sizeof(*f);
	return !bpf_ringbuf_output(&callpath_functions, f, len,
				   bpf_ringbuf_query(&callpath_functions, BPF_RB_AVAIL_DATA) <
						   CALLPATH_FUNCTIONS_LEN / 2
					   ? BPF_RB_NO_WAKEUP
					   : BPF_RB_FORCE_WAKEUP);
}

/* The key of the function of @ask->code, which is told if need be; 0: it is no code object. */
__noinline uint64_t function_key(struct python_ask *ask)
{
	const struct unwind_python *p = ask ? python_of(ask->number) : NULL;
	uint32_t cpu = ask ? ask->cpu : 0;
	struct python_cpu *c = bpf_map_lookup_elem(&callpath_python_cpus, &cpu);
	struct python_code code;
	uint64_t key, told, *first, *second;
	uint32_t slot;

	if (!ask || !p || !c || !code_object_read(p, ask->delta, ask->code, &code))
		return 0;
	ask->nr = (uint32_t)code.nr;
	ask->shim = code.name == code.file;
	key = code_hash(&code, ask->code) >> CALLPATH_KEY_DROP | 1;
	/* Not all of them at once. */
	told = (key ^ ask->instance * mix[2]) +
	       ((ask->time_ns + (key << PYTHON_SPREAD_BITS)) >> PYTHON_AGAIN_BITS);
	slot = (uint32_t)(key ^ ask->instance) % CALLPATH_NR_TOLD_FUNCTIONS;
	first = &c->told[slot];
	second = &c->told[slot ^ 1];
	if (*first == told || *second == told || !ask->tell || ask->shim)
		return key;
	if (!function_tell(c, p, ask, &code, key)) {
		ask->tell = 0;
		return key;
	}
	*second = *first;
	*first = told;
	ask->tell--;
	return key;
}

/* ---- chunks of frames ------------------------------------------------------------------------ */

/* A walk's place among them. */
struct python_run {
	struct python_ask ask;
	/* The innermost activation of the interpreter that the walk did not reach yet: its cframe,
	 * or (3.13) its innermost frame. 0: none. */
	uint64_t chunk;
	uint64_t frame;	    /* the function's that comes next; 0: none */
	uint64_t low, high; /* of the C frame that runs these */
	uint32_t looked;    /* the thread's cframe was looked for */
	uint32_t replaces;  /* the function that comes next stands in the interpreter's place */
};

/* Is it no program that has, or had, the rights of another user than the one who runs it? */
static __always_inline bool has_one_user(void)
{
	const struct cred *cred = BPF_CORE_READ(bpf_get_current_task_btf(), cred);
	uint32_t uid = BPF_CORE_READ(cred, uid.val);

	return BPF_CORE_READ(cred, euid.val) == uid && BPF_CORE_READ(cred, suid.val) == uid &&
	       BPF_CORE_READ(cred, fsuid.val) == uid;
}

/* A file with a CPython was met. */
static __always_inline void python_meet(struct python_run *r, uint32_t number, uint64_t delta)
{
	if (r->looked)
		return;
	r->looked = 1;
	if (!has_one_user())
		return;
	r->ask.number = number;
	r->ask.delta = delta;
	r->ask.tell = PYTHON_TELLS;
	r->chunk = python_innermost(number, delta);
}

static __always_inline void enter_by_cframe(const struct unwind_python *p, struct python_run *r)
{
#pragma clang loop unroll(disable)
	for (uint32_t i = 0; i < PYTHON_SKIPS && r->chunk && r->chunk < r->low; i++)
		user_word(&r->chunk, r->chunk + p->cframe_previous);
	if (r->chunk < r->low || r->chunk >= r->high)
		return;
	user_word(&r->frame, r->chunk + p->cframe_frame);
	user_word(&r->chunk, r->chunk + p->cframe_previous);
}

/* The frame of C code at @addr was left, which stands on the stack from @low up to @high: if it is
 * of the interpreter, its functions come next. */
static __always_inline void python_enter(struct python_run *r, uint64_t addr, uint64_t low,
					 uint64_t high)
{
	const struct unwind_python *p = python_of(r->ask.number);

	if (!p)
		return;
	r->low = low;
	r->high = high;
	r->replaces = 1;
	if (!p->thread_frame)
		enter_by_cframe(p, r);
	else if (addr + r->ask.delta >= p->code && addr + r->ask.delta < p->code_end)
		r->frame = r->chunk;
}

/*
 * The frame that comes next was made by C code, and a chunk ends with it (3.12 on). From 3.13 on it
 * stands in the C frame that runs the chunk; in a deeper one, if that was not known as the
 * interpreter's, and then the next chunk is this one's. 0, or CALLPATH_FUNCTION: it cannot be.
 */
static __always_inline uint64_t python_leave(const struct unwind_python *p, struct python_run *r,
					     uint64_t frame)
{
	if (!p->thread_frame)
		return 0;
	if (frame >= r->high || !user_word(&r->chunk, frame + p->frame_previous))
		return CALLPATH_FUNCTION;
	if (frame < r->low)
		r->frame = r->chunk;
	return 0;
}

static __always_inline bool python_is_entry(const struct unwind_python *p, uint64_t frame)
{
	uint8_t owner = 0;

	return p->version >= UNWIND_PYTHON_3_12 &&
	       !bpf_probe_read_user(&owner, 1, (void *)(frame + p->frame_owner)) &&
	       owner == PYTHON_OWNER_C;
}

/* The chunk ends here (3.11), and the next one goes on where it was called from: else what was read
 * is of a chunk that is just begun, and not of this one. */
static __always_inline bool python_is_linked(const struct unwind_python *p,
					     const struct python_run *r, uint64_t previous)
{
	uint64_t caller = 0;

	if (r->chunk)
		user_word(&caller, r->chunk + p->cframe_frame);
	return caller == previous;
}

/*
 * The frame of a path that names the function which comes next, and the place in it; the one after
 * it comes next then. 0: there is none there. CALLPATH_FUNCTION alone: it could not be read.
 */
static __always_inline uint64_t python_next(struct python_run *r)
{
	const struct unwind_python *p = python_of(r->ask.number);
	uint64_t frame = r->frame, instr, key, at;
	uint8_t entry = 0;

	r->frame = 0;
	if (!p)
		return 0;
	if (python_is_entry(p, frame))
		return python_leave(p, r, frame);
	if (!user_word(&r->ask.code, frame + p->frame_code) ||
	    !user_word(&instr, frame + p->frame_instr) ||
	    !user_word(&r->frame, frame + p->frame_previous) ||
	    (p->frame_entry && bpf_probe_read_user(&entry, 1, (void *)(frame + p->frame_entry))))
		return CALLPATH_FUNCTION;
	key = function_key(&r->ask);
	if (!key)
		return CALLPATH_FUNCTION;
	if (entry) {
		if (!python_is_linked(p, r, r->frame))
			return CALLPATH_FUNCTION;
		r->frame = 0;
	}
	if (r->ask.shim)
		return 0;
	/* Before its first instruction it stands at the one before. */
	at = (instr - r->ask.code - p->code_bytes) / 2;
	if (at >= r->ask.nr)
		at = 0;
	return CALLPATH_FUNCTION | key << CALLPATH_KEY_SHIFT |
	       (at < CALLPATH_INSTR_MAX ? at : CALLPATH_INSTR_MAX);
}
