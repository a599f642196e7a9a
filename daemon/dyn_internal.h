/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The dynamic-code tracker from within.
 *
 * A registry (dyn_registry.c) is one memfd of one process life. It has facilities, each of which is
 * one pseudo-image: a list of runs (vaddr -> image offset) and the records that go into its file
 * (dyn_facility.c). Which routine lived at an address, and when, is one question for the whole
 * registry, answered by its tenants (dyn_tenant.c). A client is what a process holds: its own
 * registry, if it has one, and what it inherited by fork.
 */
#ifndef DCPI_DYN_INTERNAL_H
#define DCPI_DYN_INTERNAL_H

#include "daemon_internal.h"
#include "dyn_tree.h"

/* ---- facilities (dyn_facility.c, dyn_image.c) ---------------------------------------------- */

/*
 * ELF addresses of routines whose own address an earlier routine of that pseudo-image has. Far
 * above every user address, below 2^63.
 */
#define DYN_PRIVATE_BASE 0x7000000000000000ull
/* Image offsets end here; ranges whose sum is larger are lies. */
#define DYN_IMAGE_MAX (1ull << 60)
/* Bytes of records and range contents kept for one registry, and for all. */
#define DYN_REGISTRY_BYTES_MAX (256ull << 20)
#define DYN_ALL_BYTES_MAX      (2048ull << 20)
#define DYN_REPLACES_MAX       16384

struct dyn_registry;
struct pseudoimg_result;

/* Pages of the ELF's addresses and the image offset of the first one. */
struct dyn_run {
	struct dyn_node node;
	uint64_t img_off;
	struct dyn_run *next; /* in order of registration */
};

/* A declared range. */
struct dyn_range {
	struct wire_range range;
	bool known;
	bool read;		  /* its contents were read at least once */
	bool limited;		  /* contents left out for lack of room (counted once) */
	uint64_t lo;		  /* samples up to here are from before it was declared */
	uint64_t hi;		  /* those from here on are not */
	struct base_buf contents; /* from its base on, as last read, without trailing zeros */
	struct dyn_tree changed;  /* pages whose code was changed after it was read */
};

struct dyn_routine {
	uint64_t addr, elf;
	size_t record; /* offset in the facility's records */
};

struct dyn_facility {
	struct dyn_registry *registry;
	uint32_t index, machine;
	char name[WIRE_FACILITY_NAME + 1]; /* as given, for the image */
	uint32_t name_len;
	char *stem; /* file name in <db>/dyn */
	struct image *image;

	struct dyn_run *first_run, *last_run;
	struct dyn_tree pages;	  /* struct dyn_run */
	struct dyn_tree occupied; /* real addresses that routines have in the ELF */
	uint64_t next_off, next_private;
	struct base_buf records; /* WIRE_ROUTINE records with their ELF address */
	struct dyn_routine *routines;
	size_t nr_routines, cap_routines;
	size_t nr_told;		     /* routines ever kept, of the daemon's figure */
	struct base_map by_contents; /* hash -> index + 1 of the last routine with it */

	bool changed;	     /* since the image was written */
	uint32_t nr_refused; /* times that the helper would not make an image of it */
	struct base_id *replaced;
	size_t nr_replaced, cap_replaced;
};

int dyn_facility_new(struct dyn_registry *reg, const struct wire_facility_rec *rec,
		     struct dyn_facility **out);
void dyn_facility_free(struct dyn_facility *f);
/* Only lookups are still to come: free what a new image would be written from. */
void dyn_facility_trim(struct dyn_facility *f);
/* Give image offsets to the pages of [elf, elf + len). 0, -ENOMEM, -DCPI_ELIMIT. */
int dyn_facility_cover(struct dyn_facility *f, uint64_t elf, uint64_t len);
/*
 * Keep a routine, with a place in the ELF: its own address where no other routine has it, else a
 * private one; the place it has already where the same (address, name, bytes, lines) was there
 * before. 0 or negative.
 */
int dyn_facility_routine(struct dyn_facility *f, const struct wire_routine_view *v, uint64_t *elf);
/* Image offset of an ELF address, or -ENOENT. */
int dyn_facility_offset(const struct dyn_facility *f, uint64_t elf, uint64_t *off);
/* Calls @fn with the pages of its routines and declared ranges, at their own addresses. */
void dyn_facility_ranges(const struct dyn_facility *f,
			 void (*fn)(void *ctx, uint64_t start, uint64_t end), void *ctx);
/* The job of the pseudo-image, written to @fd. 0 or -errno. */
int dyn_facility_job(const struct dyn_facility *f, int fd);

/* ---- tenants (dyn_tenant.c) ------------------------------------------------------------------ */

/*
 * Who lived at [node.start, node.end), and when. Registries are read now and then, so that a change
 * is known to lie in a window: after @lo (the reading before, which did not show it) and up to @hi.
 * Times are CLOCK_MONOTONIC.
 */
struct dyn_tenant {
	struct dyn_node node;
	struct dyn_facility *facility;
	uint64_t elf; /* of node.start */
	uint64_t lo, hi;
	bool evicted; /* others lived at some of its addresses before */
};

/* A tenant of the past, and when it was gone for certain. */
struct dyn_past {
	uint64_t start, end;
	struct dyn_facility *facility;
	uint64_t elf;
	uint64_t lo; /* as the tenant's */
	uint64_t until_hi;
};

/* A tenant that was gone so long before the last samples that came is forgotten. */
#define DYN_PAST_NS  (10 * 1000000000ull)
#define DYN_PAST_MAX 16384

struct dyn_tenants {
	struct dyn_tree now;
	struct dyn_past *past; /* ascending by until_hi */
	size_t nr_past, cap_past;
	uint64_t forgotten; /* tenants that ended up to here may be missing from past */
	bool reused;	    /* some address had more than one of them */
};

/* [addr, addr+len) is from now on of a routine at @elf; what overlaps is evicted. 0 or -ENOMEM. */
int dyn_tenant_enter(struct dyn_tenants *t, struct dyn_facility *f, uint64_t addr, uint64_t len,
		     uint64_t elf, uint64_t lo, uint64_t hi);
/*
 * DYN_FOUND fills @f and @elf: the one tenant of the interval, all the time; @sure: certainly, not
 * only as far as this registry tells. DYN_NONE: no tenant at any time of it.
 */
enum dyn_where dyn_tenant_find(const struct dyn_tenants *t, uint64_t addr, uint64_t first_ns,
			       uint64_t time_ns, struct dyn_facility **f, uint64_t *elf,
			       bool *sure);
/* Nobody will ask for long before @settled_ns. */
void dyn_tenant_forget(struct dyn_tenants *t, uint64_t settled_ns);
void dyn_tenant_release(struct dyn_tenants *t);

/* ---- registries (dyn_registry.c, dyn_apply.c) ---------------------------------------------- */

struct dyn_registry {
	struct dyn *dyn;
	struct dyn_registry *next;
	uint32_t refs; /* clients */
	int fd;	       /* -1: recorded */
	uint64_t dev, ino;
	int32_t pid;
	uint32_t uid;
	uint64_t start_time_ns; /* of the process, since boot */
	uint64_t life;		/* registry_process_life; 0: not known, its memory is not read */
	uint64_t created_s;	/* UTC */
	char exe[256];
	bool attached;
	bool over;    /* the process life is over */
	bool refused; /* it lied about its header, or cannot be written: read no more */

	struct wire_registry h; /* header as last read; only the library's line is looked at */
	bool dirty;		/* the header moved, and was not yet followed */
	uint64_t tail;
	uint64_t read_ns;	 /* before the last reading began; 0: never */
	uint32_t flush_ready;	 /* flush_wanted before everything was read last */
	int flush_error;	 /* of that reading, or 0 */
	uint32_t flush_answered; /* as told to the library */
	uint64_t nr_bad;
	uint64_t budget_ns;		   /* one reading begins no request after so long */
	uint64_t pause_until_ns, pause_ns; /* after its reading took too long */

	struct dyn_facility *facilities[WIRE_NR_FACILITIES];
	struct dyn_range *ranges; /* by slot */
	size_t nr_ranges, cap_ranges;
	size_t next_range; /* to be read first: not always the same when time is short */
	struct dyn_tenants tenants;
	uint64_t bytes; /* kept, of DYN_REGISTRY_BYTES_MAX */
};

/* Shared by what holds the registry of one life; counted, see struct process. */
struct dyn_client {
	uint32_t refs;
	struct dyn_registry *own;     /* or NULL */
	struct dyn_client *inherited; /* or NULL: looked up as of fork_ns */
	uint64_t fork_ns;
};

/* A registry for @p, in the list of @d. @fd is taken over, also on failure. */
int dyn_registry_new(struct dyn *d, const struct process *p, int fd, struct dyn_registry **out);
void dyn_registry_free(struct dyn_registry *reg);
/* Look at the header: dirty, flush wanted. 0 or negative (then it is refused). */
int dyn_registry_peek(struct dyn_registry *reg);
/* Read what is new; owned ranges that were never read, or all of them. True: there was something.
 */
bool dyn_registry_read(struct dyn_registry *reg, bool ranges);
/* Answer a flush request. */
void dyn_registry_answer(struct dyn_registry *reg, int status);
bool dyn_registry_wants_flush(const struct dyn_registry *reg);
void dyn_registry_detach(struct dyn_registry *reg);
/* Free the contents of ranges: no image will be written any more. */
void dyn_registry_trim(struct dyn_registry *reg);
/* As dyn_lookup; @sure: what DYN_FOUND says needs nobody else's word. */
enum dyn_where dyn_registry_lookup(const struct dyn_registry *reg, uint64_t addr, uint64_t first_ns,
				   uint64_t time_ns, struct image **image, uint64_t *off,
				   bool *sure);
/* Room for @len more bytes, taken from the registry's and the daemon's limits. */
bool dyn_registry_room(struct dyn_registry *reg, uint64_t len);
void dyn_registry_give_back(struct dyn_registry *reg, uint64_t len);

/* Normalized records, read in the window (lo, hi]. Returns how many could not be used. */
int dyn_apply(struct dyn_registry *reg, const void *data, size_t len, uint64_t lo, uint64_t hi);
/*
 * Contents of one range as read now (WIRE_BYTES records). What was read once is kept: changed code
 * makes its pages unknown from then on, changed DST is refused; either counts as bad. 0 or -ENOMEM.
 */
int dyn_apply_contents(struct dyn_registry *reg, struct dyn_range *range, const void *data,
		       size_t len);

/* ---- hand-over and doorbell (dyn_intake.c) --------------------------------------------------- */

#define DYN_NR_WAITING 64

struct dyn_intake {
	int epoll, listener, queue;
	int spare; /* given up for a moment when there are no more descriptors */
	bool own_socket;
	char socket_path[108], queue_name[64];
	size_t queue_msg_len;
	struct {
		int fd;
		uint64_t since_ns;
	} waiting[DYN_NR_WAITING]; /* connected, nothing said yet */
	size_t nr_waiting;
	uint64_t nr_refused;
};

int dyn_intake_open(struct dyn_intake *in, const char *run_dir, const char *queue_name,
		    struct base_err *err);
void dyn_intake_close(struct dyn_intake *in);
/* True if the doorbell rang. */
bool dyn_intake_drain_queue(struct dyn_intake *in);
/*
 * The next registry handed over: its descriptor (sealed memfd) and its process. -EAGAIN: no more
 * for now. Else one connection was of no use, which the caller counts: -ENODATA, a doorbell;
 * -EINPROGRESS, it said nothing yet, and waits; else it was refused (counted).
 */
int dyn_intake_next(struct dyn_intake *in, int32_t *pid, uint32_t *uid);
/* 0 if @fd is a memfd sealed against shrinking, and readable and writable; else -EPERM. */
int dyn_intake_check(int fd);

/* ---- all of it (dyn.c) --------------------------------------------------------------------- */

struct dyn {
	struct dyn_config config;
	char *host, *helper;
	char boot[40]; /* of this machine; empty for recorded streams */
	uint32_t id;   /* put into `attached`, not 0 */
	struct dyn_intake intake;
	struct dyn_registry *registries;
	uint64_t bytes;	     /* kept, of DYN_ALL_BYTES_MAX */
	uint64_t settled_ns; /* samples up to here have been looked up */
	struct dyn_stats stats;
	uint64_t bad_gone, dropped_gone; /* counts of registries that are gone */
};

/* Write the facility's image if it changed; durable when it returns 0. */
int dyn_image_write(struct dyn_facility *f, struct base_err *err);
/* A failure of dyn_image_write that lies in what the client said, not in this machine's disk or
 * memory. */
bool dyn_image_refusal(int r);
/*
 * Let the jailed helper make @name from @job (a descriptor, at its beginning): complete or not at
 * all, for the daemon's user, its group and the uid @reader (may be NULL).
 */
int dyn_image_put(int dir_fd, const char *name, const char *helper, const uint32_t *reader, int job,
		  struct pseudoimg_result *result, struct base_err *err);
/* One more refusal (counted in @nr_refused); after the third the image is given up: true. */
bool dyn_image_give_up(struct image *img, uint32_t *nr_refused);

#endif
