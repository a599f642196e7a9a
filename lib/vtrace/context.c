/* SPDX-License-Identifier: BSD-2-Clause */
/* Calling contexts of traces: which call is open, told from where the stack pointer goes. */
#include "context.h"

/* No procedure's frame is that large; what moves the stack pointer further has changed stacks. */
#define FAR (1u << 20)

struct registers {
	uint8_t sp, fp;
};

static struct registers registers_of(enum vtrace_arch arch)
{
	return arch == VTRACE_X86_64 ? (struct registers){ 7, 6 } : (struct registers){ 31, 29 };
}

/* Frame 0 is that of nobody. */
static uint16_t frame_new(struct vtrace_contexts *c, struct vtrace_frame f)
{
	c->frames[c->nr_frames] = f;
	return (uint16_t)c->nr_frames++;
}

void vtrace_contexts_init(struct vtrace_contexts *c, enum vtrace_arch arch)
{
	/* The tables are large, and no longer than is said here. */
	c->arch = arch;
	c->nr = c->nr_frames = c->nr_stores = 0;
	c->has_sp = false;
	c->sp = 0;
	frame_new(c, (struct vtrace_frame){ 0 });
	c->current = frame_new(c, (struct vtrace_frame){ 0 });
}

static void go_to_parent(struct vtrace_contexts *c)
{
	struct vtrace_frame *f = &c->frames[c->current];

	if (!f->parent)
		f->parent = frame_new(c, (struct vtrace_frame){ 0 });
	c->current = f->parent;
}

/* Nothing is known of where we are. */
static void lose(struct vtrace_contexts *c)
{
	c->current = frame_new(c, (struct vtrace_frame){ 0 });
}

static void call(struct vtrace_contexts *c, const struct vtrace_entry *e)
{
	bool pushes = c->arch == VTRACE_X86_64;

	if (pushes && !e->store.has_addr)
		return;
	c->current = frame_new(c, (struct vtrace_frame){
					  .ret = e->pc + e->len,
					  .slot = pushes ? e->store.addr : 0,
					  .parent = c->current,
					  .called = true,
				  });
}

/* A return to what the program itself has put there is a jump. */
static bool was_stored(const struct vtrace_contexts *c, uint64_t addr)
{
	for (uint32_t i = 0; i < c->nr_stores; i++)
		if (c->stores[i].addr < addr + 8 && c->stores[i].end > addr)
			return true;
	return false;
}

static void give_back(struct vtrace_contexts *c, const struct vtrace_entry *e)
{
	struct vtrace_frame *f = &c->frames[c->current];

	/* On x86-64 the stack pointer tells. */
	if (f->called && c->arch == VTRACE_X86_64)
		return;
	if (!f->called && c->arch == VTRACE_X86_64 &&
	    (!e->load.has_addr || was_stored(c, e->load.addr)))
		return;
	if (f->called && f->ret != e->target) {
		lose(c);
		return;
	}
	f->ret = e->target;
	go_to_parent(c);
}

static void remember_store(struct vtrace_contexts *c, const struct vtrace_entry *e)
{
	if (!e->store.width || c->nr_stores == VTRACE_CONTEXTS)
		return;
	/* One that goes anywhere may have gone there. */
	c->stores[c->nr_stores].addr = e->store.has_addr ? e->store.addr : 0;
	c->stores[c->nr_stores++].end =
		e->store.has_addr ? e->store.addr + e->store.width : UINT64_MAX;
}

/* Is it still the same stack, as compilers move on it? */
static void follow_stack(struct vtrace_contexts *c, const struct vtrace_entry *e,
			 const struct vtrace_operands *o)
{
	const struct registers is = registers_of(c->arch);
	bool known = !vtrace_is_unknown(e->after, is.sp), memory;
	uint64_t sp = e->after->r[is.sp];

	memory = o->form & (VTRACE_FORM_READS | VTRACE_FORM_WRITES);
	if (!known || (c->has_sp && sp - c->sp + FAR > 2 * FAR) ||
	    (o->result == is.sp && (memory || (o->a != is.sp && o->a != is.fp))))
		lose(c);
	c->has_sp = known;
	c->sp = sp;
	while (known && c->frames[c->current].slot && sp > c->frames[c->current].slot)
		go_to_parent(c);
}

void vtrace_contexts_add(struct vtrace_contexts *c, const struct vtrace_entry *e,
			 const struct vtrace_operands *o)
{
	/* At most two frames are made of an instruction. */
	if (c->nr == VTRACE_CONTEXTS)
		return;
	c->of[c->nr++] = c->current;
	if (e->class == VTRACE_CLASS_CALL || e->class == VTRACE_CLASS_CALL_INDIRECT)
		call(c, e);
	else if (e->class == VTRACE_CLASS_RETURN)
		give_back(c, e);
	else
		remember_store(c, e);
	follow_stack(c, e, o);
}
