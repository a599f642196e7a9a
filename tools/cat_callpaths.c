/* SPDX-License-Identifier: BSD-2-Clause */
/* Call paths are printed as a tree, callers above what they call, or as JSON. */
#include "cat_callpaths.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

#include "cat_images.h"

/* ---- text ------------------------------------------------------------------------------------ */

/* Level, image, offset, counts; a level is a blank. */
static void print_node(const struct profdb_callpath_node *n, uint32_t level, size_t first,
		       size_t end)
{
	printf("%*s%u 0x%012" PRIx64, (int)level, "", n->frame.image, n->frame.off);
	cat_counts_print(n->count, first, end);
}

/* Files have each node behind its parent, in the order of a tree's lines; nodes below an end stand
 * together. */
static void print_nodes(const struct profdb_callpaths *c, uint32_t *level, size_t first, size_t end)
{
	uint32_t last = PROFDB_NR_CALLPATH_ENDS;

	for (size_t i = PROFDB_NR_CALLPATH_ENDS; i < profdb_callpaths_nr_nodes(c); i++) {
		struct profdb_callpath_node n = profdb_callpaths_node(c, i);

		level[i] = level[n.parent] + 1;
		if (n.parent < PROFDB_NR_CALLPATH_ENDS && n.parent != last) {
			last = n.parent;
			printf("%-10s %s\n", "paths",
			       profdb_callpath_end_word((enum profdb_callpath_end)last));
		}
		print_node(&n, level[i], first, end);
	}
}

int cat_callpaths_print(const struct profdb_callpaths *c, size_t first, size_t end)
{
	uint32_t *level = calloc(profdb_callpaths_nr_nodes(c), sizeof(*level));

	if (!level)
		return -ENOMEM;
	for (size_t i = 0; i < profdb_callpaths_nr_images(c); i++)
		cat_image_print(profdb_callpaths_image(c, i), i);
	print_nodes(c, level, first, end);
	free(level);
	return 0;
}

/* ---- JSON ------------------------------------------------------------------------------------ */

/* The parent is a node's number, from 0 on, or how the path ends. */
static struct json_object *json_node(const struct profdb_callpath_node *n, size_t first, size_t end)
{
	struct json_object *o = json_object_new_object();
	bool outermost = n->parent < PROFDB_NR_CALLPATH_ENDS;

	json_object_object_add(
		o, "parent",
		outermost ? json_object_new_string(
				    profdb_callpath_end_word((enum profdb_callpath_end)n->parent))
			  : json_object_new_uint64(n->parent - PROFDB_NR_CALLPATH_ENDS));
	json_object_object_add(o, "image", json_object_new_uint64(n->frame.image));
	json_object_object_add(o, "offset", json_object_new_uint64(n->frame.off));
	json_object_object_add(o, "counts", cat_counts_json(n->count, first, end));
	return o;
}

void cat_callpaths_json(const struct profdb_callpaths *c, size_t first, size_t end,
			struct json_object *o)
{
	struct json_object *images = json_object_new_array(), *nodes = json_object_new_array();

	for (size_t i = 0; i < profdb_callpaths_nr_images(c); i++)
		json_object_array_add(images, cat_image_json(profdb_callpaths_image(c, i)));
	for (size_t i = PROFDB_NR_CALLPATH_ENDS; i < profdb_callpaths_nr_nodes(c); i++) {
		struct profdb_callpath_node n = profdb_callpaths_node(c, i);

		json_object_array_add(nodes, json_node(&n, first, end));
	}
	json_object_object_add(o, "images", images);
	json_object_object_add(o, "nodes", nodes);
}
