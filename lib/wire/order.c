/* SPDX-License-Identifier: BSD-2-Clause */
/* The note of a pseudo-image is little-endian; here a big-endian machine turns its records round.
 */
#include "wire.h"

enum { ID = 20 };

/*
 * The widths of the fields behind the head, and those of what is repeated up to the record's end.
 * 'i' stands for an identity, which is bytes. Types without a row are no part of a note that is
 * read.
 */
static const struct layout {
	uint16_t type;
	const char *fields, *repeated;
} layouts[] = {
	{ WIRE_IMAGE, "4488422224", NULL }, { WIRE_RUN, "888", NULL },
	{ WIRE_REPLACES, "i4", "888" },	    { WIRE_PLACE, "88888", NULL },
	{ WIRE_INSTANCE, "4488", NULL },
};

static void turn(uint8_t *p, size_t width)
{
	for (size_t i = 0; i < width / 2; i++) {
		uint8_t byte = p[i];

		p[i] = p[width - 1 - i];
		p[width - 1 - i] = byte;
	}
}

/* Returns where the next field begins; a field that ends behind @end stays. */
static uint8_t *turn_fields(uint8_t *p, const uint8_t *end, const char *widths)
{
	for (; *widths; widths++) {
		size_t width = *widths == 'i' ? ID : (size_t)(*widths - '0');

		if (width > (size_t)(end - p))
			return (uint8_t *)end;
		if (*widths != 'i')
			turn(p, width);
		p += width;
	}
	return p;
}

static void turn_body(uint16_t type, uint8_t *p, const uint8_t *end)
{
	for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++) {
		if (layouts[i].type != type)
			continue;
		p = turn_fields(p, end, layouts[i].fields);
		while (layouts[i].repeated && p < end)
			p = turn_fields(p, end, layouts[i].repeated);
		return;
	}
}

void wire_turn(void *data, size_t len)
{
	uint8_t *p = data;
	struct wire_head head;

	while (len >= sizeof(head)) {
		turn_fields(p, p + sizeof(head), "422");
		memcpy(&head, p, sizeof(head));
		if (head.len < sizeof(head) || head.len > len)
			return;
		turn_body(head.type, p + sizeof(head), p + head.len);
		p += head.len;
		len -= head.len;
	}
}
