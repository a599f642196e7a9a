/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The note of a pseudo-image is read here: its process, its runs of code, and the images it
 * replaces.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "image_internal.h"

static int add_run(struct image_note *note, const struct wire_run *run)
{
	uint64_t end;
	int r;

	if (base_add_overflow(run->vaddr, run->len, &end) ||
	    base_add_overflow(run->img_off, run->len, &end))
		return -DCPI_EFORMAT;
	r = base_grow(&note->runs, &note->cap_runs, note->nr_runs + 1, sizeof(*note->runs));
	if (r < 0)
		return r;
	note->runs[note->nr_runs++] =
		(struct image_run){ .img_off = run->img_off, .vaddr = run->vaddr, .len = run->len };
	return 0;
}

static int add_place(struct image_note *note, const struct wire_place *place)
{
	int r = base_grow(&note->places, &note->cap_places, note->nr_places + 1,
			  sizeof(*note->places));

	if (r >= 0)
		note->places[note->nr_places++] =
			(struct image_run){ .vaddr = place->vaddr, .len = place->len };
	return r;
}

static int add_replaces(struct image_note *note, const struct wire_replaces *rec)
{
	int r = base_grow(&note->replaces, &note->cap_replaces, note->nr_replaces + 1,
			  sizeof(*note->replaces));
	struct wire_replaces *copy;

	if (r < 0)
		return r;
	copy = malloc(rec->head.len);
	if (!copy)
		return -ENOMEM;
	memcpy(copy, rec, rec->head.len);
	note->replaces[note->nr_replaces++] = copy;
	return 0;
}

/* Three strings of given lengths become three terminated ones in one allocation. */
static int set_process(struct image_note *note, const struct wire_image *rec)
{
	const char *from = (const char *)(rec + 1);
	const size_t lens[] = { rec->facility_len, rec->host_len, rec->exe_len };
	const char **to[] = { &note->process.facility, &note->process.host, &note->process.exe };
	char *at;

	if (note->strings)
		return 0;
	at = note->strings = calloc(1, lens[0] + lens[1] + lens[2] + 3);
	if (!at)
		return -ENOMEM;
	for (size_t i = 0; i < 3; i++) {
		memcpy(at, from, lens[i]);
		*to[i] = at;
		at += lens[i] + 1;
		from += lens[i];
	}
	note->process.pid = rec->pid;
	note->process.uid = rec->uid;
	note->process.start_time_ns = rec->start_time_ns;
	note->process.created_s = rec->created_s;
	note->process.nr_processes++;
	return 0;
}

static uint32_t nr_instances(const struct wire_instance *rec)
{
	return rec->head.flags & WIRE_INSTANCE_MORE ? rec->pid : 1;
}

static int add_record(struct image_note *note, const struct wire_head *rec)
{
	if (wire_check(rec) < 0)
		return -DCPI_EFORMAT;
	switch (rec->type) {
	case WIRE_IMAGE:
		return set_process(note, (const struct wire_image *)rec);
	case WIRE_RUN:
		return add_run(note, (const struct wire_run *)rec);
	case WIRE_PLACE:
		return add_place(note, (const struct wire_place *)rec);
	case WIRE_INSTANCE:
		note->process.nr_processes += nr_instances((const struct wire_instance *)rec);
		return 0;
	case WIRE_REPLACES:
		return add_replaces(note, (const struct wire_replaces *)rec);
	default:
		return 0;
	}
}

static int read_stream(struct image_note *note, const void *data, size_t len)
{
	const struct wire_head *rec;
	size_t pos = 0;
	uint64_t *aligned = malloc(len + 8);
	int r = 0;

	if (!aligned)
		return -ENOMEM;
	memcpy(aligned, data, len);
	if (__BYTE_ORDER__ == __ORDER_BIG_ENDIAN__)
		wire_turn(aligned, len);
	while (r >= 0 && (rec = wire_next(aligned, len, &pos)))
		r = add_record(note, rec);
	if (r >= 0 && pos != len)
		r = -DCPI_EFORMAT;
	free(aligned);
	return r;
}

static int by_img_off(const void *a, const void *b)
{
	const struct image_run *x = a, *y = b;

	return (x->img_off > y->img_off) - (x->img_off < y->img_off);
}

/* The ELF notes of the section; ours are read. */
static int read_notes(struct image_note *note, Elf_Data *data)
{
	size_t off = 0, name_off, desc_off;
	GElf_Nhdr nh;
	bool found = false;
	int r = 0;

	while (r >= 0 && (off = gelf_getnote(data, off, &nh, &name_off, &desc_off)) > 0) {
		const char *bytes = data->d_buf;

		if (nh.n_namesz != 5 || memcmp(bytes + name_off, "DCPI", 5) != 0)
			continue;
		found = true;
		r = read_stream(note, bytes + desc_off, nh.n_descsz);
	}
	return r < 0 ? r : found ? 0 : -DCPI_EFORMAT;
}

static Elf_Data *expanded(Elf_Scn *scn)
{
	Elf_Data *data = elf_compress(scn, 0, 0) < 0 ? NULL : elf_getdata(scn, NULL);

	if (data)
		data->d_type = ELF_T_NHDR;
	return data;
}

int image_note_read(struct image_note *note, const struct image_elf *f, struct base_err *err)
{
	GElf_Shdr sh;
	Elf_Scn *scn = image_elf_section(f, IMAGE_NOTE_SECTION, &sh);
	Elf_Data *data;
	int r;

	if (!scn)
		return 0;
	/* PROGBITS with the bytes of a note: libelf must see it as one to find its parts. */
	data = sh.sh_flags & SHF_COMPRESSED ? expanded(scn)
					    : elf_getdata_rawchunk(f->elf, (int64_t)sh.sh_offset,
								   sh.sh_size, ELF_T_NHDR);
	r = data ? read_notes(note, data) : -DCPI_EFORMAT;
	if (r < 0)
		return base_fail_errno(err, r, "cannot read the note of pseudo-image '%s'",
				       f->path);
	if (note->nr_runs)
		qsort(note->runs, note->nr_runs, sizeof(*note->runs), by_img_off);
	return 0;
}

void image_note_release(struct image_note *note)
{
	free(note->strings);
	free(note->runs);
	free(note->places);
	for (size_t i = 0; i < note->nr_replaces; i++)
		free(note->replaces[i]);
	free(note->replaces);
	memset(note, 0, sizeof(*note));
}

void image_replaces_id(const struct wire_replaces *rec, struct base_id *id)
{
	*id = (struct base_id){ .len = sizeof(rec->id) };
	memcpy(id->bytes, rec->id, sizeof(rec->id));
}

const struct wire_replaces *image_note_replaces(const struct image_note *note,
						const struct base_id *id)
{
	for (size_t i = 0; i < note->nr_replaces; i++)
		if (id->len == sizeof(note->replaces[i]->id) &&
		    !memcmp(id->bytes, note->replaces[i]->id, id->len))
			return note->replaces[i];
	return NULL;
}
