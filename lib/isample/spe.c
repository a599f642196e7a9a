/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Records of Arm's statistical profiling extension are decoded here, packet by packet. Facts: Arm
 * Architecture Reference Manual for A-profile, "Statistical Profiling Extension Sample Record
 * Specification".
 */
#include <string.h>

#include "isample.h"

/* Kinds of packets, by their first byte. */
enum kind {
	BAD,
	PADDING,
	ALIGNMENT,
	END,
	TIMESTAMP,
	EVENTS,
	SOURCE,
	CONTEXT,
	OPERATION,
	ADDRESS,
	COUNTER
};

struct packet {
	enum kind kind;
	uint8_t head;	    /* without what the long form has before it */
	unsigned int index; /* number of an address or counter */
	uint64_t payload;
	size_t len; /* all of it */
};

static enum kind kind_of(uint8_t head)
{
	if (head == 0)
		return PADDING;
	if (head == 0x01)
		return END;
	if (head == 0x71)
		return TIMESTAMP;
	if ((head & 0xcf) == 0x42)
		return EVENTS;
	if ((head & 0xcf) == 0x43)
		return SOURCE;
	if ((head & 0xfc) == 0x64)
		return CONTEXT;
	if ((head & 0xfc) == 0x48)
		return OPERATION;
	if ((head & 0xf8) == 0xb0)
		return ADDRESS;
	return (head & 0xf8) == 0x98 ? COUNTER : BAD;
}

static size_t payload_len(enum kind kind, uint8_t head)
{
	return kind == PADDING || kind == END ? 0 : (size_t)1 << (head >> 4 & 3);
}

/* This packet fills up to a boundary of the buffer. */
static void align(struct packet *p, uint8_t first, uint64_t at)
{
	uint64_t unit = UINT64_C(2) << (first & 0xf);

	p->kind = ALIGNMENT;
	p->len = (size_t)(unit - (at & (unit - 1)));
}

/* False: the bytes end in the midst of it. */
static bool take(const uint8_t *data, size_t len, uint64_t at, struct packet *p)
{
	bool extended = (data[0] & 0xfc) == 0x20;
	size_t n, head_len = extended ? 2 : 1;

	*p = (struct packet){ .kind = BAD, .len = head_len };
	if (len < head_len)
		return false;
	p->head = data[head_len - 1];
	if (extended && !p->head) {
		align(p, data[0], at);
		p->len = p->len < len ? p->len : len;
		return true;
	}
	p->kind = kind_of(p->head);
	if (extended && p->kind != ADDRESS && p->kind != COUNTER)
		p->kind = BAD;
	n = p->kind == BAD ? 0 : payload_len(p->kind, p->head);
	p->index = (p->head & 7u) | (extended ? (data[0] & 3u) << 3 : 0);
	p->len = head_len + n;
	if (p->len > len)
		return false;
	for (size_t i = 0; i < n; i++)
		p->payload |= (uint64_t)data[head_len + i] << 8 * i;
	return true;
}

/* ---- packets that tell ----------------------------------------------------------------------- */

/* A pair of events: whether it was tried, and whether it failed. What was not tried tells nothing.
 */
static void tell_try(struct isample *s, uint64_t events, unsigned int tried, enum isample_bit bit)
{
	if (events >> tried & 3)
		isample_tell(s, bit, events >> (tried + 1) & 1);
}

/* Taken, and whether predicted, are of branches alone. */
static void tell_events(struct isample *s, uint64_t events, size_t len)
{
	bool retired = events & 2, trap = events & 1;

	isample_tell(s, ISAMPLE_TRAP, trap);
	isample_tell(s, ISAMPLE_RETIRED, retired);
	isample_tell(s, ISAMPLE_VALID, retired && !trap);
	isample_tell(s, ISAMPLE_TAKEN, !(events >> 6 & 1));
	isample_tell(s, ISAMPLE_MISPREDICT, events >> 7 & 1);
	tell_try(s, events, 2, ISAMPLE_DCMISS);
	tell_try(s, events, 4, ISAMPLE_DTB2MISS);
	if (len < 2)
		return;
	tell_try(s, events, 8, ISAMPLE_LLCMISS);
	isample_tell(s, ISAMPLE_REMOTE, events >> 10 & 1);
	isample_tell(s, ISAMPLE_UNALIGNED, events >> 11 & 1);
}

enum { OTHER, ACCESS, BRANCH };

static void tell_operation(struct isample *s, uint8_t head, uint64_t v)
{
	unsigned int class = head & 3;

	isample_tell(s, ISAMPLE_FETCH, false);
	isample_tell(s, ISAMPLE_LOAD, class == ACCESS && !(v & 1));
	isample_tell(s, ISAMPLE_STORE, class == ACCESS && v & 1);
	isample_tell(s, ISAMPLE_BRANCH, class == BRANCH);
	isample_tell(s, ISAMPLE_COND, class == BRANCH && v & 1);
	isample_tell(s, ISAMPLE_INDIRECT, class == BRANCH && v & 2);
	/* An extended access is atomic, or exclusive. */
	isample_tell(s, ISAMPLE_LOCKED, class == ACCESS && (v & 0xe2) == 2 && v & 0xc);
}

static void tell_counter(struct isample *s, unsigned int index, uint64_t cycles)
{
	if (index == 0)
		isample_count(s, ISAMPLE_INFLIGHT, cycles);
	else if (index == 1)
		isample_count(s, ISAMPLE_ISSUE, cycles);
	else if (index == 2)
		isample_count(s, ISAMPLE_XLAT, cycles);
}

/* The highest byte says in which state it was; of the kernel's addresses it is all ones. */
static void tell_address(struct isample_spe *out, unsigned int index, uint64_t v)
{
	if (index != 0)
		return;
	out->has_pc = true;
	out->el = v >> 61 & 3;
	out->pc = v & ((UINT64_C(1) << 56) - 1);
	if (out->pc >> 55)
		out->pc |= UINT64_C(0xff) << 56;
}

static void tell(struct isample_spe *out, const struct packet *p)
{
	switch (p->kind) {
	case TIMESTAMP:
		out->time = p->payload;
		out->has_time = true;
		break;
	case EVENTS:
		tell_events(&out->sample, p->payload, p->len - 1);
		break;
	case CONTEXT:
		out->context = (uint32_t)p->payload;
		out->has_context = true;
		break;
	case OPERATION:
		tell_operation(&out->sample, p->head, p->payload);
		break;
	case ADDRESS:
		tell_address(out, p->index, p->payload);
		break;
	case COUNTER:
		tell_counter(&out->sample, p->index, p->payload);
		break;
	default:
		break;
	}
}

/* ---- records --------------------------------------------------------------------------------- */

/* Events say of branches alone whether they were taken and predicted. */
static void settle(struct isample_spe *out)
{
	struct isample *s = &out->sample;
	const uint64_t of_branches = ISAMPLE_BIT(ISAMPLE_TAKEN) | ISAMPLE_BIT(ISAMPLE_MISPREDICT);
	uint64_t both = ISAMPLE_BIT(ISAMPLE_COND) | ISAMPLE_BIT(ISAMPLE_MISPREDICT);

	if (out->bad || !out->has_pc) {
		out->bad = true;
		isample_void(s, ISAMPLE_UNREADABLE);
		return;
	}
	if (!(s->bits & ISAMPLE_BIT(ISAMPLE_BRANCH))) {
		if (s->known & ISAMPLE_BIT(ISAMPLE_BRANCH))
			s->bits &= ~of_branches;
		else
			s->known &= ~of_branches;
		s->bits &= s->known;
	}
	if ((s->known & both) == both)
		isample_tell(s, ISAMPLE_CBRMISPREDICT, (s->bits & both) == both);
}

/* Behind a bad packet all up to the next end of a record is of the bad one. */
int isample_spe_next(const uint8_t *data, size_t len, uint64_t offset, size_t *pos,
		     struct isample_spe *out)
{
	struct packet p = { 0 };
	bool begun = false;

	*out = (struct isample_spe){ 0 };
	while (*pos < len) {
		if (!take(data + *pos, len - *pos, offset + *pos, &p)) {
			*pos = len;
			out->bad = true;
			settle(out);
			return 1;
		}
		*pos += p.kind == BAD ? 1 : p.len;
		if (p.kind == PADDING || p.kind == ALIGNMENT)
			continue;
		begun = true;
		out->bad |= p.kind == BAD;
		tell(out, &p);
		if (p.kind != END && p.kind != TIMESTAMP)
			continue;
		settle(out);
		return 1;
	}
	out->bad = begun;
	if (begun)
		settle(out);
	return begun;
}
