/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * How often the branches of an earlier run went where: what dcpifdo -json tells of its routines, by
 * name and offset. The code generator puts what ran seldom out of the way (gen.c).
 */
#ifndef CALC_LAYOUT_H
#define CALC_LAYOUT_H

#include <stddef.h>
#include <stdint.h>

struct json_object;
struct calc_layout;

/* 0, or -EINVAL where the file cannot be read or is not dcpifdo's, or -ENOMEM. */
int calc_layout_read(const char *path, struct calc_layout **out);
void calc_layout_free(struct calc_layout *l);
/* The routine of that name whose code had @size bytes, or NULL. */
struct json_object *calc_layout_find(const struct calc_layout *l, const char *name, size_t size);
/* How often control went from [@from, @end) of it to @to, all offsets. */
uint64_t calc_layout_count(struct json_object *procedure, uint64_t from, uint64_t end, uint64_t to);

#endif
