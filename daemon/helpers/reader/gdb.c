/* SPDX-License-Identifier: BSD-2-Clause */
/* The reader looks in the files of a process for the descriptor of GDB's JIT interface. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "parser.h"
#include "reader_file.h"
#include "reader_gdb.h"

/* Files that were asked; a later one takes the place of one that has the same number. */
enum { KNOWN = 4096, MAPS_MAX = 65536 };

/* A file that is written anew has another time. */
struct known {
	uint64_t dev, ino, len, changed_ns;
	uint64_t value; /* of the symbol; 0: it has none */
};

static struct known known[KNOWN];

static struct known *place_of(const struct known *k)
{
	uint64_t hash = base_hash_u64(k->dev) ^ base_hash_u64(k->ino + 1);

	return &known[hash % KNOWN];
}

static bool is_same(const struct known *a, const struct known *b)
{
	return a->dev == b->dev && a->ino == b->ino && a->len == b->len &&
	       a->changed_ns == b->changed_ns;
}

static struct known describe(const struct stat *st)
{
	return (struct known){ .dev = st->st_dev,
			       .ino = st->st_ino,
			       .len = (uint64_t)st->st_size,
			       .changed_ns = (uint64_t)st->st_ctim.tv_sec * 1000000000u +
					     (uint64_t)st->st_ctim.tv_nsec };
}

struct search {
	const struct reader_request *from;
	struct foreign_gdb *g;
	uint64_t deadline_ns;
};

static void add_head(struct foreign_gdb *g, uint64_t addr)
{
	bool there = g->nr_heads == FOREIGN_GDB_HEADS;

	for (size_t i = 0; !there && i < g->nr_heads; i++)
		there = g->heads[i] == addr;
	if (!there)
		g->heads[g->nr_heads++] = addr;
}

/* 0, or -ETIMEDOUT. */
static int ask(const struct search *s, const struct reader_request *map, uint64_t file_off, int fd,
	       struct known *k)
{
	struct reader_request q = { .op = READER_GDB_FIND,
				    .addr = map->addr,
				    .seq = file_off,
				    .since_ns = s->deadline_ns };
	struct reader_answer a;

	if (is_same(place_of(k), k))
		q.entry.node = place_of(k)->value;
	if (parser_ask(&q, fd, -1, &a) == -ETIMEDOUT)
		return -ETIMEDOUT;
	k->value = a.gdb.state;
	*place_of(k) = *k;
	if (a.gdb.nr_heads == 1)
		add_head(s->g, a.gdb.heads[0]);
	return 0;
}

/* Files that were asked and had none, which are most, are not opened. */
static int ask_map(const struct search *s, const struct reader_request *map, uint64_t file_off)
{
	int fd = reader_mapped_look(map), readable, r = 0;
	struct known k;
	struct stat st;

	if (fd < 0)
		return 0;
	if (fstat(fd, &st) == 0) {
		k = describe(&st);
		readable = is_same(place_of(&k), &k) && !place_of(&k)->value
				   ? -1
				   : reader_looked_open(fd);
		if (readable >= 0) {
			r = ask(s, map, file_off, readable, &k);
			close(readable);
		}
	}
	close(fd);
	return r;
}

/* A line of /proc/PID/maps, of a file that is mapped for code. */
static bool parse(const struct search *s, char *line, struct reader_request *map,
		  uint64_t *file_off)
{
	char perms[8];
	int path_at = 0;

	line[strcspn(line, "\n")] = '\0';
	*map = (struct reader_request){ .pid = s->from->pid };
	if (sscanf(line,
		   "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %" SCNx32 ":%" SCNx32 " %" SCNu64 " %n",
		   &map->addr, &map->end, perms, file_off, &map->dev_major, &map->dev_minor,
		   &map->inode, &path_at) < 7 ||
	    !map->inode || strlen(perms) != 4 || perms[2] != 'x')
		return false;
	if (path_at && strlen(line + path_at) < sizeof(map->path))
		strcpy(map->path, line + path_at);
	return true;
}

int reader_gdb_find(const struct reader_request *q, uint64_t deadline_ns, struct foreign_gdb *g)
{
	struct search s = { q, g, deadline_ns };
	char name[64], *line = NULL;
	struct reader_request map;
	uint64_t file_off;
	size_t cap = 0;
	int r = 0;
	FILE *f;

	*g = (struct foreign_gdb){ 0 };
	snprintf(name, sizeof(name), "/proc/%d/maps", q->pid);
	f = fopen(name, "re");
	if (!f)
		return -errno;
	for (int i = 0; r == 0 && i < MAPS_MAX && getline(&line, &cap, f) > 0; i++) {
		if (base_now_ns() > deadline_ns)
			r = -ETIMEDOUT;
		else if (parse(&s, line, &map, &file_off))
			r = ask_map(&s, &map, file_off);
	}
	free(line);
	fclose(f);
	return r == -ETIMEDOUT ? 1 : r;
}
