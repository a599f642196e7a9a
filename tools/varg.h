/* SPDX-License-Identifier: BSD-2-Clause */
/* The output of dcpivarg, procedure by procedure: as text, or added to a JSON object. */
#ifndef DCPI_VARG_H
#define DCPI_VARG_H

#include "flow.h"
#include "valued.h"

enum { VARG_REGISTERS = 8 };

/* The registers that carry arguments, in order. */
struct varg_machine {
	uint8_t nr;
	uint8_t machine[VARG_REGISTERS]; /* numbers as in struct insn_registers */
	uint8_t dwarf[VARG_REGISTERS];
	bool call_saves; /* a call stores the return address */
};

/* Where something was seen: hotlist @at of a profile of values, or a move. */
struct varg_place {
	uint64_t vaddr;
	size_t at;
};

struct varg_places {
	const struct profdb_values *values; /* NULL: there is none of the image */
	struct varg_place *v;		    /* ascending */
	size_t nr;
};

struct varg_image {
	const struct analysis_image *ai;
	struct image *img; /* NULL: it cannot be opened */
};

struct varg {
	struct analysis *a;
	struct valued valued; /* "values"; lists are empty where there are none */
	struct hotlists args[VARG_REGISTERS];
	struct analysis_image **images; /* the images to look into */
	size_t nr_images;
	/* The current image: */
	struct analysis_image *ai;
	struct image *img;
	const struct varg_machine *machine;
	struct insn_decoder *decoder;
	struct insn_disasm *disasm;
	struct varg_places seen, seen_args[VARG_REGISTERS];
	struct varg_places edge_counts; /* edges by their target; made when needed */
	/* The images that contain callers. */
	struct varg_image *opened;
	size_t nr_opened, cap_opened;
};

/* The procedure that is looked at. */
struct varg_procedure {
	const struct hotlists_procedure *of;
	struct flow *flow; /* without blocks where its bytes are missing */
};

/* NULL: a machine whose calls are not known here. */
const struct varg_machine *varg_machine_of(uint32_t machine);

/*
 * Argument registers that the procedure reads before it writes them, bit by number of the argument;
 * *@maybe: those that it leaves alone up to a call, which may pass them on. Of @source only bytes
 * is used.
 */
uint32_t varg_used(const struct varg_machine *m, const struct flow *f,
		   const struct flow_source *source, uint32_t *maybe);

/* ---- each prints where @o is NULL, else adds what it tells to it. 1: it told something; 0;
 * negative */

int varg_arguments(struct varg *x, const struct varg_procedure *p, bool full,
		   struct json_object *o);
int varg_callers(struct varg *x, const struct varg_procedure *p, bool full, struct json_object *o);
int varg_saves(struct varg *x, const struct varg_procedure *p, struct json_object *o);
int varg_blocks(struct varg *x, const struct varg_procedure *p, struct json_object *o);

/* Loads of the image, by the samples that waited for them; @max of them. */
int varg_loads(struct varg *x, const struct hotlists_procedure *v, size_t nr, size_t max,
	       struct json_object *o);

/* ---- what these share ------------------------------------------------------------------------ */

/*
 * Find the values @of has for the image, by address. 0 or -ENOMEM; release it also after failure.
 */
int varg_places_find(const struct varg *x, const struct hotlists *of, struct varg_places *out);
/* The same of the moves of the image's profile. */
int varg_edges_find(const struct varg *x, struct varg_places *out);
void varg_places_release(struct varg_places *p);
/* The first at @vaddr or behind it. */
size_t varg_place_at(const struct varg_places *p, uint64_t vaddr);
/* Collect the values at an instruction; *@out is zero at first. 0 or -ENOMEM. */
int varg_spot(const struct varg *x, const struct varg_places *of, uint64_t vaddr,
	      struct hotlist_spot *out);
/* A row of a table: samples, address, text, values. @samples: below 0: none are told. */
void varg_columns(struct varg *x, struct table *t);
int varg_row(struct varg *x, const struct insn *insn, double samples, struct table *t,
	     struct json_object *rows);
/* Print it with its heads, and release it. 0 or -ENOMEM. */
int varg_table(struct table *t);

#endif
