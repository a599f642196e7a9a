/* SPDX-License-Identifier: BSD-2-Clause */
/* Writes what a live source delivers as a recorded stream (docs/format/replay.md). */
#include <errno.h>
#include <inttypes.h>

#include "replay_internal.h"

const char *const replay_keys[REPLAY_NR_KEYS] = {
#define X(id, name) [REPLAY_##id] = name,
	REPLAY_KEYS(X)
#undef X
};

const char *const replay_modes[] = {
	[DRIVER_USER] = "user",
	[DRIVER_KERNEL] = "kernel",
	[DRIVER_OTHER] = "other",
};

#define BIT REPLAY_BIT
const struct replay_kind replay_kinds[REPLAY_NR_KINDS] = {
	[DRIVER_LOAD_MMAP] = { "mmap", BIT(PID) | BIT(ADDR) | BIT(LEN) | BIT(PATH),
			       BIT(TIME) | BIT(TID) | BIT(OFF) | BIT(PROT) | BIT(MAJOR) |
				       BIT(MINOR) | BIT(INODE) | BIT(ID) },
	[DRIVER_LOAD_FORK] = { "fork", BIT(PID) | BIT(PPID), BIT(TIME) | BIT(TID) | BIT(CURSOR) },
	[DRIVER_LOAD_EXEC] = { "exec", BIT(PID), BIT(TIME) | BIT(TID) | BIT(PATH) },
	[DRIVER_LOAD_COMM] = { "comm", BIT(PID) | BIT(PATH), BIT(TIME) | BIT(TID) },
	[DRIVER_LOAD_EXIT] = { "exit", BIT(PID), BIT(TIME) | BIT(PPID) | BIT(TID) },
	[DRIVER_LOAD_KSYMBOL] = { "ksymbol", BIT(ADDR) | BIT(LEN) | BIT(PATH),
				  BIT(TIME) | BIT(PID) | BIT(TID) | BIT(GONE) },
	[DRIVER_LOAD_KERNEL] = { "kernel", BIT(ADDR) | BIT(LEN), BIT(TIME) | BIT(ID) | BIT(PATH) },
	[DRIVER_LOAD_DYN] = { "dyn", BIT(PID) | BIT(DATA), BIT(TIME) | BIT(TID) },
	[DRIVER_LOAD_POKE] = { "poke", BIT(ADDR) | BIT(DATA), BIT(TIME) },
	[DRIVER_LOAD_LABEL] = { "label", BIT(PID) | BIT(PATH), BIT(TIME) | BIT(TID) },
	[REPLAY_COUNT_LINE] = { "count", BIT(PID) | BIT(ADDR),
				BIT(FIRST) | BIT(TIME) | BIT(TID) | BIT(EVENT) | BIT(MODE) |
					BIT(GENERATION) | BIT(UNREAD) | BIT(COUNT) },
};
#undef BIT

/* A line in the making: keys that the kind does not know, and defaults, are left out. */
struct line {
	FILE *to;
	uint32_t must, keys;
};

static struct line line_begin(FILE *to, unsigned int kind)
{
	const struct replay_kind *k = &replay_kinds[kind];

	errno = 0;
	fputs(k->name, to);
	return (struct line){ to, k->must, k->must | k->may };
}

static bool wanted(const struct line *l, enum replay_key key, bool is_default)
{
	return (l->must | (is_default ? 0 : l->keys)) & 1u << key;
}

static void put_dec(const struct line *l, enum replay_key key, uint64_t v, uint64_t absent)
{
	if (wanted(l, key, v == absent))
		fprintf(l->to, " %s=%" PRIu64, replay_keys[key], v);
}

/* There whenever it is known, whatever it is. */
static void put_known(const struct line *l, enum replay_key key, uint64_t v, bool known)
{
	if (wanted(l, key, !known))
		fprintf(l->to, " %s=%" PRIu64, replay_keys[key], v);
}

static void put_hex(const struct line *l, enum replay_key key, uint64_t v)
{
	if (wanted(l, key, v == 0))
		fprintf(l->to, " %s=0x%" PRIx64, replay_keys[key], v);
}

static void put_pid(const struct line *l, enum replay_key key, int32_t v, int32_t absent)
{
	if (wanted(l, key, v == absent))
		fprintf(l->to, " %s=%" PRId32, replay_keys[key], v);
}

static void put_data(const struct line *l, const uint8_t *data, size_t len)
{
	if (!wanted(l, REPLAY_DATA, false))
		return;
	fprintf(l->to, " %s=", replay_keys[REPLAY_DATA]);
	for (size_t i = 0; i < len; i++)
		fprintf(l->to, "%02x", data[i]);
}

/* Last on its line, to the line's end; only what would end the line early is escaped. */
static void put_path(const struct line *l, const char *path)
{
	if (!wanted(l, REPLAY_PATH, !path))
		return;
	fprintf(l->to, " %s=", replay_keys[REPLAY_PATH]);
	for (; path && *path; path++) {
		if (*path == '\n')
			fputs("\\n", l->to);
		else if (*path == '\\')
			fputs("\\\\", l->to);
		else
			fputc(*path, l->to);
	}
}

static int line_end(const struct line *l)
{
	if (fputc('\n', l->to) == EOF || ferror(l->to))
		return errno ? -errno : -EIO;
	return 0;
}

int driver_record_head(FILE *to, const struct driver *d, int64_t utc)
{
	struct line l = { .to = to };

	errno = 0;
	fprintf(to, "%s %d\nutc %" PRId64, REPLAY_MAGIC, REPLAY_VERSION, utc);
	for (size_t i = 0; i < d->nr_events; i++)
		fprintf(to, "\nevent %s %" PRIu64, d->events[i].name, d->events[i].period);
	return line_end(&l);
}

int driver_record_load(FILE *to, const struct driver_load *load)
{
	char id[BASE_ID_TEXT_LEN];
	struct line l;

	if ((unsigned int)load->kind > DRIVER_LOAD_LABEL)
		return -EINVAL;
	l = line_begin(to, load->kind);
	put_dec(&l, REPLAY_TIME, load->time_ns, 0);
	put_pid(&l, REPLAY_PID, load->pid, 0);
	put_pid(&l, REPLAY_PPID, load->ppid, 0);
	put_pid(&l, REPLAY_TID, load->tid, load->pid);
	put_known(&l, REPLAY_CURSOR, load->cursor, load->flags & DRIVER_LOAD_CURSOR);
	put_dec(&l, REPLAY_GONE, load->flags & DRIVER_LOAD_GONE, 0);
	put_hex(&l, REPLAY_ADDR, load->addr);
	put_hex(&l, REPLAY_LEN, load->len);
	put_hex(&l, REPLAY_OFF, load->file_off);
	put_dec(&l, REPLAY_PROT, load->prot, REPLAY_PROT_DEFAULT);
	put_dec(&l, REPLAY_MAJOR, load->dev_major, 0);
	put_dec(&l, REPLAY_MINOR, load->dev_minor, 0);
	put_dec(&l, REPLAY_INODE, load->inode, 0);
	if (wanted(&l, REPLAY_ID, !load->id.len))
		fprintf(to, " %s=%s", replay_keys[REPLAY_ID], base_id_text(&load->id, id));
	put_data(&l, load->data, load->data_len);
	put_path(&l, load->path);
	return line_end(&l);
}

int driver_record_count(FILE *to, const struct driver_count *count)
{
	struct line l;

	if ((unsigned int)count->mode > DRIVER_OTHER)
		return -EINVAL;
	l = line_begin(to, REPLAY_COUNT_LINE);
	put_dec(&l, REPLAY_FIRST, count->first_ns, count->time_ns);
	put_dec(&l, REPLAY_TIME, count->time_ns, 0);
	put_pid(&l, REPLAY_PID, count->pid, 0);
	put_pid(&l, REPLAY_TID, count->tid, count->pid);
	put_dec(&l, REPLAY_EVENT, count->event, 0);
	if (count->mode != DRIVER_USER)
		fprintf(to, " %s=%s", replay_keys[REPLAY_MODE], replay_modes[count->mode]);
	put_known(&l, REPLAY_GENERATION, count->generation, count->generation_read);
	put_dec(&l, REPLAY_UNREAD, count->generation_unread, 0);
	put_hex(&l, REPLAY_ADDR, count->addr);
	put_dec(&l, REPLAY_COUNT, count->count, 1);
	return line_end(&l);
}
