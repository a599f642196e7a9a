/* SPDX-License-Identifier: BSD-2-Clause */
/* Stand-ins for what follows dynamic code, the kernel, and the reader process: tests of the core
 * say what these answer, and look at how they were called. */
#ifndef STAND_INS_H
#define STAND_INS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cmocka.h>

#include "core.h"
#include "values.h"

struct stand_ins {
	/* dyn_lookup */
	enum dyn_where where;
	struct image *dyn_image;
	uint64_t dyn_off;
	/* Not 0: then another routine takes the address, and is at dyn_off + 16. */
	uint64_t changes_ns;
	struct dyn_query query;			  /* the last one */
	unsigned int nr_lookups, nr_lookups_read; /* all; those before dyn_read_ended */
	uint64_t function;	  /* the key of the one that dyn_function_add was told of */
	int32_t read_ended;	  /* process that dyn_read_ended was told last */
	uint64_t news, waited_ns; /* dyn_news; what dyn_wait was told last */
	uint64_t settled_ns;
	bool registered; /* dyn_has_registry, of who has a client */
	/* dyn_ranges: one, or none where its end is 0 */
	uint64_t code_start, code_end;
	bool code_virgin; /* no address had two routines yet */
	uint64_t words;	  /* dyn_words; 0: none */
	uint64_t words_ino;
	struct dyn_client *looked_up_by;
	/* dyn calls seen */
	unsigned int nr_fork, nr_hand_on, nr_end, nr_marker, nr_records;
	uint64_t fork_ns, fork_cursor;
	uint64_t marker_addr;
	/* dyn_write_images: what it answers, and what is done in it */
	int write_result;
	void (*on_write)(void);
	unsigned int nr_sampled; /* dyn_sampled: files with samples */
	unsigned int nr_take, nr_refresh, nr_read_early, nr_ranges, nr_writes;
	int32_t early_pid; /* the process of which dyn_read_early reads something */
	/* The quota: dyn_stats_get's images, dyn_set_full, dyn_spare_images */
	uint64_t images_written;
	bool full;
	bool kernel_hasty;
	int kernel_writes; /* so many times kernel_is_writing */
	uint64_t share;
	unsigned int nr_spared;
	/* What the loop asks of it */
	bool wants_merge, wants_flush, catching_up;
	unsigned int behind;   /* that many times dyn_is_behind */
	int bell;	       /* dyn_poll_fds; 0: none */
	bool hasty, was_hasty; /* now, and when images were written last */
	unsigned int nr_clients, nr_merges, nr_ended;
	unsigned int nr_kernel_looks;
	unsigned int nr_lost; /* dyn_images_lost and kernel_images_lost */
	/* kernel_lookup: [kernel_start, kernel_end) is kernel_image */
	struct image *kernel_image, *vdso;
	uint64_t kernel_start, kernel_end, idle_addr;
	bool claimed;	      /* dyn_claims */
	bool is_dump, no_elf; /* what reader_image_id finds */
	unsigned int nr_dumps;
	/* reader_image_id */
	int reader_result;
	struct base_id reader_id;
	/* The same of a mapping with a build-id */
	int text_result;
	struct base_id reader_text;
	struct base_extent reader_extent;
	bool reader_roots;
	/* reader_code_read; NULL: there is none */
	ssize_t (*read_code)(int32_t pid, uint64_t addr, void *to, size_t len);
	unsigned int nr_asked;
	/* Answers to reader_rows_ask; NULL: there are none */
	int (*rows)(const struct reader_mapped *f, int fd, struct unwind_table **out);
	unsigned int nr_rows;
	/* reader_rows_take: it is not made for so many times, and then takes so long */
	unsigned int rows_wait;
	uint64_t rows_ran_ns;
	/* dyn_living, and dyn_frames: so many, whose cfa_off is the routine's seq * 8 */
	struct {
		uint64_t addr, len, seq;
		size_t nr_frames;
	} routines[4];
	size_t nr_routines;
	/* The same of code; NULL: there are none */
	int (*code_rows)(const struct reader_code *c, struct unwind_table **out);
	/* values_send: what it answers, and the last trace it took; values_receive: hands these on
	 * for each of them */
	int send_result;
	uint64_t later_than;   /* values_send: a time; … */
	unsigned int nr_later; /* … traces that came later, whatever it answers but -EAGAIN */
	unsigned int nr_sent;
	uint64_t tickets[64];
	const struct values_tuple *tuples;
	size_t nr_tuples;
};

extern struct stand_ins stand_ins;

/* A core to try, with one event "cycles" and another "misses". */
struct trial {
	struct store store;
	struct attribute attribute;
	struct follow follow;
	struct counts counts;
	uint64_t time_ns;
};

void trial_open(struct trial *t);
void trial_close(struct trial *t);
/* And a daemon around it, as platform "here" in an epoch of a new database @db; no driver yet. */
void trial_daemon(struct trial *t, struct daemon *d, const char *db);
void trial_daemon_close(struct trial *t, struct daemon *d);
/* Lines with @what that were logged into @log (base_log_init) since the last call. */
int trial_said(FILE *log, const char *what);
struct base_id trial_id(uint8_t byte);

void trial_mmap(struct trial *t, int32_t pid, uint64_t addr, uint64_t len, uint64_t file_off,
		const char *path, uint8_t id);
void trial_event(struct trial *t, enum driver_load_kind kind, int32_t pid, int32_t ppid);
void trial_sample(struct trial *t, int32_t pid, uint64_t addr);
/* A count of one that may have been taken at any time since @first_ns. */
void trial_span(struct trial *t, int32_t pid, uint64_t addr, uint64_t first_ns);
/* Samples of event 0 at @off of the image @path; 0 where there is none. */
uint64_t trial_count(struct trial *t, const char *path, uint64_t off);
/* The workloads of each image have the sums of its profile. */
void trial_same_sums(const struct images *images);
uint64_t trial_sum(const struct trial *t);

#endif
