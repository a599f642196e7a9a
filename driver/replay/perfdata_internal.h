/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The source "replay" where its file is one of perf's: perf.data, or what 'perf record -o -' writes
 * into a pipe. Bytes are cut into records, decompressed where they are packed (perfdata_stream.c);
 * the file's head and its features (perfdata_head.c) tell the events and build-ids; records of the
 * kernel's are parsed by the attributes of their event (perfdata_event.c), put in order of time and
 * handed on (perfdata.c). What the hardware told of the sampled instructions is in the samples, or
 * in traces of its own.
 *
 * Facts of the format: <linux/perf_event.h>, and the kernel's
 * tools/perf/Documentation/perf.data-file-format.txt.
 */
#ifndef DCPI_PERFDATA_INTERNAL_H
#define DCPI_PERFDATA_INTERNAL_H

#include <string.h>

#include "perf.h"
#include "replay_internal.h"

/* ---- records as bytes (perfdata_stream.c) ---------------------------------------------------- */

/* The kinds of records that perf adds to the kernel's. */
enum perfdata_type {
	PERFDATA_ATTR = 64,
	PERFDATA_TRACING_DATA = 66, /* bytes follow that its size does not count */
	PERFDATA_BUILD_ID = 67,
	PERFDATA_FINISHED_ROUND = 68,
	PERFDATA_AUXTRACE = 71, /* bytes follow that its size does not count */
	PERFDATA_EVENT_UPDATE = 78,
	PERFDATA_TIME_CONV = 79,
	PERFDATA_FEATURE = 80,
	PERFDATA_COMPRESSED = 81,
	PERFDATA_COMPRESSED2 = 83,
};

enum { PERFDATA_RECORD_MAX = 65536 };
/* The limit for one unpacked record of at most 64 KiB; perf's own are as long as a ring. */
#define PERFDATA_UNPACKED_MAX (128ull << 20)

struct perfdata_stream {
	FILE *in;		  /* owned */
	const char *name;	  /* in messages */
	uint64_t pos;		  /* position of the next byte to read */
	uint64_t end;		  /* end of the records; UINT64_MAX: the file's end */
	uint64_t at;		  /* where the current record began; of a packed one, its pack */
	void *unpack;		  /* ZSTD_DStream; NULL until needed */
	struct perf_bytes packed; /* bytes of the current pack, not yet unpacked */
	bool unpacking;		  /* a pack is being unpacked */
	uint64_t unpacked_len;	  /* length unpacked from it so far */
	size_t part_len;	  /* length of a record that the next pack completes */
	bool part_used;		  /* it was complete, and handed out */
	uint64_t trail;		  /* bytes behind the current record that were not read yet */
	_Alignas(8) uint8_t plain[PERFDATA_RECORD_MAX];
	_Alignas(8) uint8_t part[PERFDATA_RECORD_MAX];
};

/* "cannot replay 'NAME': offset N: …", N being where the current record began. Returns @code. */
int perfdata_fail(const struct perfdata_stream *s, struct base_err *err, int code, const char *fmt,
		  ...) __attribute__((format(printf, 4, 5)));
/* Exactly @len bytes at the current place: -DCPI_ETRUNCATED, or -EIO. */
int perfdata_read(struct perfdata_stream *s, void *to, size_t len, struct base_err *err);
/*
 * The next record, whole, 8-byte aligned, valid until the next call. 1; 0: the end; -DCPI_EFORMAT
 * (a size that lies, packs within packs, packs that cannot be unpacked), -DCPI_ETRUNCATED,
 * -DCPI_ELIMIT (a pack that becomes too long), -ENOMEM, -EIO, -ECANCELED (see stop_fd, driver.h).
 */
int perfdata_next(struct perfdata_stream *s, const uint8_t **rec, size_t *len,
		  struct base_err *err);
/* Up to @len of the bytes that follow an AUXTRACE record: how many, 0 at their end, or as
 * perfdata_read. Without that the next record is behind them. */
ssize_t perfdata_trail(struct perfdata_stream *s, void *to, size_t len, struct base_err *err);
void perfdata_stream_close(struct perfdata_stream *s);

/* ---- events (perfdata_event.c) --------------------------------------------------------------- */

struct perfdata_event {
	struct perf_event_attr attr;
	enum event_hardware pmu; /* the hardware that it is of */
	uint64_t config3;	 /* newer than the headers that this is built with */
	char name[128];		 /* as perf calls it; empty: it did not say */
	int index;		 /* as announced by the driver; -1: it never samples */
	uint64_t period_sum, nr_periods;
};

struct perfdata_id {
	uint64_t id;
	size_t event; /* index into perfdata_events.v */
};

enum { PERFDATA_NR_EVENTS = 4096, PERFDATA_NR_IDS = 4 << 20 };

struct perfdata_events {
	struct perfdata_event *v;
	size_t nr, cap;
	struct perfdata_id *ids; /* ascending once sorted */
	size_t nr_ids, cap_ids;
	size_t nr_sampling;
	size_t last;	    /* index of the last lookup */
	bool sorted;	    /* an id was looked up */
	bool lost_counted;  /* the kernel counts losses by event: perf adds them at the end */
	bool has_build_ids; /* an event asked for build-ids */
};

/*
 * One more event: @len bytes of its attributes (fewer or more than we know), @nr_ids ids at @ids,
 * any alignment. Not once an id was looked up. 0, -ENOMEM; -DCPI_EFORMAT: too short; -DCPI_ELIMIT:
 * more than the driver has room for, or more dummies or ids than make sense.
 */
int perfdata_events_add(struct perfdata_events *e, const void *attr, size_t len, const void *ids,
			size_t nr_ids);
/* NULL where none has that id. */
struct perfdata_event *perfdata_events_find(struct perfdata_events *e, uint64_t id);
void perfdata_events_release(struct perfdata_events *e);

/* ---- build-ids (perfdata_head.c) ------------------------------------------------------------- */

enum { PERFDATA_NR_BUILD_IDS = 65536, PERFDATA_PATH_MAX = 4096 };

/* Build-ids of files by path, for mappings that came without one. */
struct perfdata_build_ids {
	struct base_map files; /* path -> struct base_id, owned */
	struct base_id kernel;
};

/* Whether perf so names the kernel itself, and not a module. */
static inline bool perfdata_is_kernel(const char *path)
{
	return !strncmp(path, "[kernel.", 8) || !strncmp(base_path_name(path), "vmlinux", 7);
}

/* NULL where unknown. */
static inline const struct base_id *perfdata_build_id_find(const struct perfdata_build_ids *t,
							   const char *path)
{
	return base_map_get(&t->files, path, strlen(path) + 1);
}

void perfdata_build_ids_release(struct perfdata_build_ids *t);

/* ---- records (perfdata_event.c) -------------------------------------------------------------- */

struct perfdata_record {
	struct perf_record perf; /* kind, count, load, nr; time_ns if has_time */
	bool has_time;
	bool kernel; /* a mapping of the kernel's own; load.file_off is what perf says */
	struct perfdata_event *event; /* NULL: none known */
	uint64_t period;	      /* period of a sample; 0: unknown */
	struct isample insn;	      /* a sample's; nothing known: the hardware told nothing */
};

/*
 * Parse a record of one of the kernel's kinds, as perf_record_parse does. Mappings of the kernel's
 * are DRIVER_LOAD_KERNEL with perf's own path and no more done to them.
 */
int perfdata_record_parse(struct perfdata_events *e, const uint8_t *rec, size_t len,
			  struct perfdata_record *out);

/* ---- instruction samples (perfdata_event.c) -------------------------------------------------- */

enum { PERFDATA_NR_PMUS = 64 };

/* Numbers that the recording machine gave to that hardware. */
struct perfdata_pmus {
	uint32_t type[PERFDATA_NR_PMUS];
	enum event_hardware pmu[PERFDATA_NR_PMUS];
	size_t nr;
};

/*
 * All events are there: fill the driver's (names without blanks, that fit, each another), and give
 * each its hardware, by its number in @pmus, else by its name. 0, or -DCPI_EFORMAT, where records
 * do not tell of which event they are: *@why says so.
 */
int perfdata_events_announce(struct perfdata_events *e, const struct perfdata_pmus *pmus,
			     struct driver *d, const char **why);
/* The first event of that hardware that samples, or NULL. */
struct perfdata_event *perfdata_pmu_event(const struct perfdata_events *e, enum event_hardware pmu);

/* ---- traces of Arm's SPE (perfdata.c) -------------------------------------------------------- */

/* A trace is decoded in pieces of so many bytes. */
enum { PERFDATA_SPE_PIECE = 256 << 10 };

/* A trace that is being read, a piece at a time. */
struct perfdata_spe {
	struct perfdata_event *event; /* NULL: no trace is being read */
	uint8_t *bytes;		      /* allocated */
	size_t nr;		      /* bytes read, and not yet decoded */
	uint64_t offset;	      /* where the first of them lies in the trace's buffer */
	int32_t tid;		      /* -1: of all threads of a CPU */
	/* How its times become those of the records; no mult: not known. */
	uint64_t shift, mult, zero, cycles, mask;
};

/* ---- order (perfdata.c) ---------------------------------------------------------------------- */

/* One allocation: the event, its data, its path. */
struct perfdata_load {
	struct driver_load load;
	uint8_t bytes[];
};

/* In a sample's pid: that of its thread's process, which is known when its turn comes. */
#define PERFDATA_PID_BY_THREAD INT32_MIN

struct perfdata_item {
	uint64_t time_ns;
	uint64_t seq; /* place in the file */
	uint64_t addr;
	struct perfdata_load *load; /* owned; NULL: a sample, or a mark that records were lost */
	struct isample *insn;	    /* owned, of a sample; or NULL */
	int32_t pid, tid;
	uint8_t event, mode;
	bool lost;
};

struct perfdata_order {
	struct perfdata_item *items;
	size_t nr, cap;
	size_t len; /* bytes held */
	uint64_t seq;
	uint64_t youngest_ns; /* time of the youngest record that was added */
	uint64_t round_ns;    /* no record behind the last round is older than this */
	uint64_t nr_samples;
};

/* More than this is not held: the older half goes first. */
#define PERFDATA_HELD_MAX (128u << 20)

/* 0 or -ENOMEM. What @load points at is copied. */
int perfdata_order_load(struct perfdata_order *o, uint64_t time_ns, const struct driver_load *load);
int perfdata_order_sample(struct perfdata_order *o, uint64_t time_ns,
			  const struct driver_count *count);
int perfdata_order_lost(struct perfdata_order *o, uint64_t time_ns);
/* A round ended: up to which time the order is known. */
uint64_t perfdata_order_round(struct perfdata_order *o);
/* True: too much is held; what is up to *@until is to be handed on. Sorts. */
bool perfdata_order_full(struct perfdata_order *o, uint64_t *until);
/*
 * Hand all items up to @until to @fn in order of time (equal ones as in the file); they are gone
 * then. Stops behind the item for which @fn returned negative.
 */
int perfdata_order_hand(struct perfdata_order *o, uint64_t until,
			int (*fn)(void *ctx, struct perfdata_item *item), void *ctx);
void perfdata_order_release(struct perfdata_order *o);

/* ---- the source (perfdata.c) ----------------------------------------------------------------- */

struct perfdata {
	struct driver base;
	struct perfdata_stream stream;
	char *name;
	bool pipe;	 /* the form without seeking: events and features are records */
	bool unfinished; /* perf never came to write its head */
	struct perfdata_events events;
	struct perfdata_build_ids build_ids;
	struct perfdata_order order;
	struct perf_threads threads;
	struct perf_names names;
	struct perfdata_pmus pmus;
	struct perfdata_spe spe;
	struct base_map process_of; /* each thread has the number of its process + 1 (traces) */
	char release[64], host[64], version[64]; /* names of the machine and perf; may be empty */
	uint64_t utc_ns;	    /* when it began, by the clock's feature; 0: unknown */
	uint64_t first_ns, last_ns; /* times of its first and last sample; 0: unknown */
	uint64_t read_ns;	    /* time of the last record that has one */
	uint64_t handed_ns;	    /* time of the youngest record passed on */
	uint64_t lost_said;	    /* losses by records of loss, not yet counted by event */
	const uint8_t *waiting;	    /* a record read ahead while looking for events */
	size_t waiting_len;
	struct base_err failure; /* the source stays failed */
	bool ended;
};

/* Which parts of a file's end are read (bit numbers of the head's flags). */
enum perfdata_feature {
	PERFDATA_FEAT_BUILD_ID = 2,
	PERFDATA_FEAT_HOSTNAME = 3,
	PERFDATA_FEAT_OSRELEASE = 4,
	PERFDATA_FEAT_VERSION = 5,
	PERFDATA_FEAT_EVENT_DESC = 12,
	PERFDATA_FEAT_PMU_MAPPINGS = 16,
	PERFDATA_FEAT_SAMPLE_TIME = 21,
	PERFDATA_FEAT_DIR_FORMAT = 24,
	PERFDATA_FEAT_CLOCK_DATA = 29,
};

/* Magic, head, and of a file in full form events and features; leaves the stream at the records. */
int perfdata_head_read(struct perfdata *p, struct base_err *err);
/* A record of perf's own that tells of events, features and build-ids (pipe form), or is ignored.
 */
int perfdata_note_parse(struct perfdata *p, uint32_t type, const uint8_t *rec, size_t len,
			struct base_err *err);

/* The first byte of a file of perf's, in either byte order; no recorded stream begins so. */
static inline bool perfdata_begins(int c)
{
	return c == 'P' || c == '2';
}

/* As replay_open_stream. */
int perfdata_open_stream(FILE *in, const char *name, struct driver **out, struct base_err *err);

#endif
