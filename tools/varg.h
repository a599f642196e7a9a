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

/*
 * Makes it the current image. 1; 0: it cannot be opened, or its machine is not known, and it has
 * nothing to tell: report_problems and LIMITATIONS say so; -ENOMEM. Close it in each case.
 */
int varg_image_open(struct varg *x, struct analysis_image *ai);
void varg_image_close(struct varg *x);

/* The parts of what is told. */
enum varg_part {
	VARG_ARGUMENTS,
	VARG_CALLERS,
	VARG_SAVES, /* where the return address is saved, and the callers */
	VARG_BLOCKS,
};

/* Prints where @o is NULL, else adds what it tells to it. 1: it told something; 0; negative.
 * @full: arguments and callers with all that was seen, not in a line. */
int varg_tell(struct varg *x, enum varg_part part, bool full, const struct varg_procedure *p,
	      struct json_object *o);
/* Loads of the image, by the samples that waited for them; @max of them. */
int varg_loads(struct varg *x, const struct hotlists_procedure *v, size_t nr, size_t max,
	       struct json_object *o);

#endif
