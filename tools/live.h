/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The live view: what the running daemon tells (control.c), the sums of the last seconds
 * (live_sums.c), what is shown of them as lines of text, and what keys change (live_view.c), and
 * the terminal (live_screen.c).
 */
#ifndef DCPI_LIVE_H
#define DCPI_LIVE_H

#include "listing.h"
#include "workload.h"

/* ---- what the daemon tells (control.c) ------------------------------------------------------- */

/* The line before the samples. */
struct live_head {
	uint64_t ns;	/* since the last answer; 0: this is the first, which has no samples */
	uint64_t bytes; /* length of the samples, in the form of a file of workloads */
	bool all;	/* of all users; else those of the user alone are told apart */
};

struct live_feed {
	int fd;
	struct base_buf in;
	struct live_head head;
	bool asked, has_head;
};

/* 0, or negative with @err: a refusal of the daemon's too. */
int live_head_parse(const char *line, struct live_head *out, struct base_err *err);
/* To the daemon of @run_dir, as control_ask takes it. */
int live_feed_open(struct live_feed *f, const char *run_dir, struct base_err *err);
void live_feed_close(struct live_feed *f);
/* Ask for the samples up to now; never while an answer is awaited. */
int live_feed_ask(struct live_feed *f, struct base_err *err);
/* When to ask again after @now_ns, where the last question is to be at @end_ns: at the latest then,
 * and never so shortly before it that the daemon does not drain for the last one. */
uint64_t live_feed_next_ns(uint64_t now_ns, uint64_t end_ns);
/*
 * Read what has come. 1: an answer is whole, f->head is its line, and *@out (NULL for the first)
 * the caller's; 0: more is to come; negative with @err.
 */
int live_feed_read(struct live_feed *f, struct profdb_workloads **out, struct base_err *err);

/* ---- sums (live_sums.c) ---------------------------------------------------------------------- */

enum { LIVE_NR_SECONDS = 80 }; /* answers that are kept */

struct live_sums {
	struct analysis *a;	       /* the caller's; its images are those of the samples */
	struct workload_filter filter; /* of workloads, the user's options */
	struct base_map opened;	       /* struct live_image by image */
	struct base_map looked;	       /* paths of own processes that were compared */
	uint64_t looked_ns;	       /* when that was; 0: never */
	uint64_t nr_added;	       /* answers so far */
	struct live_second {
		struct profdb_workloads *w;
		uint64_t ns;
	} seconds[LIVE_NR_SECONDS]; /* the newest first */
	size_t nr;
};

/* Rows of what. */
enum live_by { LIVE_PROCEDURES, LIVE_IMAGES, LIVE_WORKLOADS };
enum live_sort { LIVE_BY_SAMPLES, LIVE_BY_NAME, LIVE_BY_IMAGE, LIVE_NR_SORTS };

struct live_query {
	enum live_by by;
	enum workload_key key; /* LIVE_WORKLOADS */
	enum live_sort sort;
	bool reverse;
	bool idle;			   /* the idle task has a row, and counts in percentages */
	size_t event;			   /* index in the analysis */
	const char *text;		   /* rows whose name or image contains it; "": all */
	const struct analysis_image *only; /* samples of this image alone; NULL: of all */
	enum workload_key only_key;	   /* and of workloads that have this name; NULL: of all */
	const char *only_name;
};

struct live_row {
	char *name;		   /* clean, as shown */
	char *image;		   /* "" where it says no more than the name */
	char *group;		   /* of a workload the text of its key, for only_name; else NULL */
	struct analysis_image *ai; /* NULL: a workload */
	uint64_t vaddr;		   /* of the procedure, if it is one */
	bool procedure;
	uint64_t count;
};

struct live_rows {
	struct live_row *v;
	size_t nr, cap;
	uint64_t total; /* samples that percentages are of */
	uint64_t idle;	/* samples of the idle task */
	uint64_t all;	/* samples of all, whatever is chosen, without those of the idle task */
};

/* Takes over @w, @ns long. */
void live_sums_add(struct live_sums *s, struct profdb_workloads *w, uint64_t ns);
/* The samples of the last @seconds, as far as they are kept, merged, and how long that is. NULL: no
 * memory. */
struct profdb_workloads *live_sums_last(const struct live_sums *s, double seconds, uint64_t *ns);
/* 0 or negative. @rows is released first. */
int live_rows_make(struct live_sums *s, const struct profdb_workloads *w,
		   const struct live_query *q, struct live_rows *rows);
void live_rows_release(struct live_rows *rows);
/* The samples of one image into its profile, for a listing. */
int live_sums_profile(struct live_sums *s, const struct profdb_workloads *w,
		      const struct live_query *q, struct analysis_image *ai);
/* Closes images, and frees all but what is the caller's. */
void live_sums_release(struct live_sums *s);

/* A path that the daemon did not tell. */
#define LIVE_UNTOLD "(file)"

/* ---- the view (live_view.c) ------------------------------------------------------------------ */

/* Keys that are no characters. */
enum {
	LIVE_UP = 0x10000,
	LIVE_DOWN,
	LIVE_PAGE_UP,
	LIVE_PAGE_DOWN,
	LIVE_HOME,
	LIVE_END,
	LIVE_ENTER,
	LIVE_BACK, /* escape, backspace, left */
};

enum live_style {
	LIVE_PLAIN,
	LIVE_TITLE,
	LIVE_HEADS,
	LIVE_WARM,
	LIVE_HOT,
	LIVE_SELECTED,
	LIVE_DIM
};

enum live_page { LIVE_ROWS, LIVE_LISTING, LIVE_HELP };

struct live_view {
	struct live_sums *sums;
	struct live_query query;
	enum live_page page;
	unsigned int window; /* index in the lengths to choose from */
	bool frozen, quit;
	const char *event; /* the user's; NULL: the default */
	bool all;	   /* the daemon tells samples of all users apart */
	bool prompting;	   /* keys write the text of the filter */
	char text[64];	   /* the filter */
	char *only;	   /* name of the chosen workload */
	char clock[16];	   /* of the last samples */
	char message[128]; /* instead of help; "" */
	struct profdb_workloads *shown;
	uint64_t ns; /* time that this is of */
	struct live_rows rows;
	size_t selected, first;
	unsigned int width, height;
	/* the listing */
	struct analysis_listing *listing;
	struct analysis_image *listed;
	char title[256]; /* the procedure and its image */
	size_t line, first_line;
};

void live_view_init(struct live_view *v, struct live_sums *s);
void live_view_release(struct live_view *v);
void live_view_resize(struct live_view *v, unsigned int width, unsigned int height);
/* Samples were added, at this time of day: show them, unless the view is frozen. 0 or negative. */
int live_view_samples(struct live_view *v, const char *clock);
/* 0 or negative. */
int live_view_key(struct live_view *v, int key);
/* Line @y of the screen, UTF-8 of at most v->width columns, into @out, and how it looks. */
enum live_style live_view_line(const struct live_view *v, unsigned int y, char *out, size_t size);

/* Cut off in place what has no room in so many columns of the terminal, as the locale counts them.
 */
void live_text_cut(char *text, size_t width);

/* ---- the terminal (live_screen.c) ------------------------------------------------------------ */

/* Until the user leaves. 0 or negative with @err. */
int live_screen_run(struct live_view *v, struct live_feed *f, const char *run_dir,
		    struct base_err *err);

/* Time between two questions: less than a second, so that no sample is older than one when it is
 * shown. */
enum { LIVE_ASK_MS = 800 };

#endif
