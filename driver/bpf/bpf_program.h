/* SPDX-License-Identifier: BSD-2-Clause */
/* The skeletons of the programs in kernel/, for the few files that reach into them. */
#ifndef DCPI_BPF_PROGRAM_H
#define DCPI_BPF_PROGRAM_H

#include "bpf_internal.h"
#include "kernel/sample.h"

#include <sample.skel.h>
#include <sample_behind.skel.h>
#include <sample_behind_older.skel.h>
#include <sample_older.skel.h>
#include <sample_waiting.skel.h>
#include <sample_waiting_older.skel.h>

_Static_assert((int)SAMPLE_USER == (int)DRIVER_USER && (int)SAMPLE_KERNEL == (int)DRIVER_KERNEL,
	       "modes");
_Static_assert((int)SAMPLE_NR_RANGES == (int)DRIVER_NR_RANGES, "ranges of a process");
/* They share the map of what is written here. */
#define SAME_PLACE(name)                                                                           \
	_Static_assert(offsetof(struct sample__bss, name) ==                                       \
				       offsetof(struct sample_behind__bss, name) &&                \
			       offsetof(struct sample__bss, name) ==                               \
				       offsetof(struct sample_waiting__bss, name),                 \
		       #name)
SAME_PLACE(shared);
SAME_PLACE(untabled);
SAME_PLACE(clients);
SAME_PLACE(ranges);
SAME_PLACE(pages);
SAME_PLACE(pages_wanted);
SAME_PLACE(names);
_Static_assert(sizeof(struct sample__bss) == sizeof(struct sample_behind__bss) &&
		       sizeof(struct sample__bss) == sizeof(struct sample_waiting__bss),
	       "bss");

/* The maps that all programs share, in either skeleton. */
enum { NR_SHARED_MAPS = 4 };
#define SHARED_MAPS(object)                                                                        \
	((struct bpf_map *const[NR_SHARED_MAPS]){ (object)->maps.tables, (object)->maps.forks,     \
						  (object)->maps.notes, (object)->maps.bss })

#endif
