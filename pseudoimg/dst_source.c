/* SPDX-License-Identifier: BSD-2-Clause */
/* SOURCE commands: which line of which file each listing line is. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bound.h"
#include "pseudoimg_internal.h"

enum source_command {
	SOURCE_DECLFILE = 1,
	SOURCE_SETFILE = 2,
	SOURCE_SETREC_L = 3,
	SOURCE_SETREC_W = 4,
	SOURCE_SETLNUM_L = 5,
	SOURCE_SETLNUM_W = 6,
	SOURCE_INCRLNUM_B = 7,
	SOURCE_DEFLINES_W = 10,
	SOURCE_DEFLINES_B = 11,
	SOURCE_FORMFEED = 16,
};

enum { NR_IDS = 65536 };

int pseudoimg_source_begin(struct pseudoimg_source *s)
{
	if (!s->by_id) {
		s->by_id = calloc(NR_IDS, sizeof(*s->by_id));
		if (!s->by_id)
			return -ENOMEM;
	}
	s->lines.nr = s->files.nr = 0;
	s->line = 1;
	s->record = 0;
	s->current = SIZE_MAX;
	return 0;
}

void pseudoimg_source_release(struct pseudoimg_source *s)
{
	free(s->lines.v);
	free(s->files.v);
	free(s->by_id);
	memset(s, 0, sizeof(*s));
}

/* The table is never cleared between modules: an entry counts only where the file confirms it. */
static size_t file_by_id(const struct pseudoimg_source *s, uint16_t id)
{
	size_t i = s->by_id[id];

	return i < s->files.nr && s->files.v[i].id == id ? i : SIZE_MAX;
}

static int declare_file(struct pseudoimg_source *s, struct pseudoimg_cursor *c,
			struct pseudoimg_dst *out)
{
	struct pseudoimg_cursor body;
	struct pseudoimg_str name, library, *text;
	struct pseudoimg_source_file *file;
	uint64_t len, id;

	if (!pseudoimg_cursor_uint(c, 1, &len))
		return -DCPI_EFORMAT;
	body = (struct pseudoimg_cursor){ c->p, len };
	if (!pseudoimg_cursor_skip(c, len) || !pseudoimg_cursor_skip(&body, 1) ||
	    !pseudoimg_cursor_uint(&body, 2, &id) || !pseudoimg_cursor_skip(&body, 15) ||
	    !pseudoimg_cursor_counted(&body, &name) || !pseudoimg_cursor_counted(&body, &library))
		return -DCPI_EFORMAT;
	text = PSEUDOIMG_PUSH(&out->files);
	file = PSEUDOIMG_PUSH(&s->files);
	if (!text || !file)
		return -ENOMEM;
	*text = name;
	*file = (struct pseudoimg_source_file){ .id = (uint16_t)id,
						.record = 1,
						.file = (uint32_t)(out->files.nr - 1) };
	s->by_id[id] = (uint32_t)(s->files.nr - 1);
	return 0;
}

static int set_file(struct pseudoimg_source *s, uint16_t id)
{
	size_t i = file_by_id(s, id);

	if (i == SIZE_MAX)
		return -DCPI_EFORMAT;
	if (s->current != SIZE_MAX)
		s->files.v[s->current].record = s->record;
	s->current = i;
	s->record = s->files.v[i].record;
	return 0;
}

static int define_lines(struct pseudoimg_source *s, uint32_t nr)
{
	struct pseudoimg_source_lines *last = NULL, *add;
	uint32_t end, record_end;

	if (s->current == SIZE_MAX || base_add_overflow(s->line, nr, &end) ||
	    base_add_overflow(s->record, nr, &record_end))
		return -DCPI_EFORMAT;
	if (s->lines.nr)
		last = &s->lines.v[s->lines.nr - 1];
	if (last && s->line < last->first + last->nr)
		return -DCPI_EFORMAT; /* lines are defined in ascending order */
	if (nr) {
		add = PSEUDOIMG_PUSH(&s->lines);
		if (!add)
			return -ENOMEM;
		*add = (struct pseudoimg_source_lines){ .first = s->line,
							.nr = nr,
							.record = s->record,
							.file = s->files.v[s->current].file };
	}
	s->line = end;
	s->record = record_end;
	return 0;
}

static int set_record(struct pseudoimg_source *s, uint32_t record)
{
	if (s->current == SIZE_MAX)
		return -DCPI_EFORMAT;
	s->record = record;
	return 0;
}

static int run_command(struct pseudoimg_source *s, uint64_t command, struct pseudoimg_cursor *c,
		       struct pseudoimg_dst *out)
{
	/* Bytes of the operand; DECLFILE takes its own apart. */
	static const uint8_t operand_len[] = {
		[SOURCE_SETFILE] = 2,	 [SOURCE_SETREC_L] = 4,	  [SOURCE_SETREC_W] = 2,
		[SOURCE_SETLNUM_L] = 4,	 [SOURCE_SETLNUM_W] = 2,  [SOURCE_INCRLNUM_B] = 1,
		[SOURCE_DEFLINES_W] = 2, [SOURCE_DEFLINES_B] = 1, [SOURCE_FORMFEED] = 0,
	};
	uint64_t v = 0;

	if (command == SOURCE_DECLFILE)
		return declare_file(s, c, out);
	if (command >= sizeof(operand_len) || !pseudoimg_cursor_uint(c, operand_len[command], &v))
		return -DCPI_EFORMAT;
	switch (command) {
	case SOURCE_SETFILE:
		return set_file(s, (uint16_t)v);
	case SOURCE_SETREC_L:
	case SOURCE_SETREC_W:
		return set_record(s, (uint32_t)v);
	case SOURCE_SETLNUM_L:
	case SOURCE_SETLNUM_W:
		s->line = (uint32_t)v;
		return 0;
	case SOURCE_INCRLNUM_B:
		return base_add_overflow(s->line, (uint32_t)v, &s->line) ? -DCPI_EFORMAT : 0;
	case SOURCE_DEFLINES_W:
	case SOURCE_DEFLINES_B:
		return define_lines(s, (uint32_t)v);
	case SOURCE_FORMFEED: /* matters to who counts lines in the file; records are numbered */
		return 0;
	default:
		return -DCPI_EFORMAT;
	}
}

int pseudoimg_source_run(struct pseudoimg_source *s, struct pseudoimg_cursor commands,
			 struct pseudoimg_dst *out)
{
	uint64_t command;
	int r = 0;

	while (r >= 0 && pseudoimg_cursor_uint(&commands, 1, &command))
		r = run_command(s, command, &commands, out);
	return r;
}

bool pseudoimg_source_find(const struct pseudoimg_source *s, uint32_t listing, uint32_t *file,
			   uint32_t *line)
{
	size_t lo = BASE_UPPER_BOUND(s->lines.v, s->lines.nr, first, listing);
	const struct pseudoimg_source_lines *l;

	if (!lo)
		return false;
	l = &s->lines.v[lo - 1];
	if (listing - l->first >= l->nr)
		return false;
	*file = l->file;
	*line = l->record + (listing - l->first);
	return true;
}
