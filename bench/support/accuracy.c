/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Judges estimated frequencies by exact counts (bench/accuracy).
 *
 *   accuracy judge NAME DB XCT [COSTS-DB]  a line for each estimator and scale:
 *       NAME ESTIMATOR SCALE 5% 10% 15% 2x EDGES-10%  and  NAME high|medium COVERAGE RIGHT
 *   accuracy costs DB XCT                  keeps the blocks' costs in DB
 *   accuracy draw N SEED XCT               a stream for dcpid -replay: N samples of instructions
 *   accuracy list DB XCT                   every block: procedure, samples, truth, estimates
 *
 * $ACCURACY_LABEL: of the database only what was labelled so; $ACCURACY_EPOCH: of that epoch.
 *
 * All shares are by samples, those of edges by executions. At the scale "program" estimates are
 * multiplied by one factor, so that the instructions of all procedures are as many as in truth; at
 * the scale "procedure" by one for each.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "accuracy.h"
#include "measured.h"

enum { NR_BOUNDS = 4 };

struct score {
	double right[NR_BOUNDS], samples;
	double edges_right, edges;
	/* Samples of blocks by confidence, and those of them within 10 %, or a factor of two. */
	double by_confidence[FREQ_HIGH + 1], near[FREQ_HIGH + 1], within2x[FREQ_HIGH + 1];
};

static bool within(double is, double truth, double part)
{
	return truth > 0 && fabs(is - truth) <= part * truth;
}

static bool within_2x(double is, double truth)
{
	return truth > 0 && is <= 2 * truth && is >= truth / 2;
}

static double instructions(const struct procedure *pr, const double *blocks)
{
	double sum = 0;

	for (uint32_t i = 0; i < pr->nr_blocks; i++)
		sum += blocks[i] * pr->insns[i];
	return sum;
}

static void judge_block(struct score *s, const struct procedure *pr, uint32_t i, double is)
{
	static const double parts[] = { 0.05, 0.1, 0.15 };
	double w = pr->samples[i], truth = pr->truth[i];
	enum freq_confidence c = pr->confidence[i];

	for (int b = 0; b < 3; b++)
		s->right[b] += within(is, truth, parts[b]) ? w : 0;
	s->right[3] += within_2x(is, truth) ? w : 0;
	s->samples += w;
	s->by_confidence[c] += w;
	s->near[c] += within(is, truth, 0.1) ? w : 0;
	s->within2x[c] += within_2x(is, truth) ? w : 0;
}

static void judge_procedure(struct score *s, const struct procedure *pr, int estimator,
			    double factor)
{
	for (uint32_t i = 0; i < pr->nr_blocks; i++)
		judge_block(s, pr, i, pr->block[estimator][i] * factor);
	for (uint32_t i = 0; i < pr->nr_edges; i++) {
		double truth = pr->edge_truth[i];

		if (truth <= 0)
			continue;
		s->edges += truth;
		if (within(pr->edge[estimator][i] * factor, truth, 0.1))
			s->edges_right += truth;
	}
}

static struct score judge(const struct program *p, int estimator, bool whole)
{
	struct score s = { 0 };
	double truth = 0, is = 0;

	for (size_t i = 0; i < p->nr && whole; i++) {
		truth += instructions(&p->v[i], p->v[i].truth);
		is += instructions(&p->v[i], p->v[i].block[estimator]);
	}
	for (size_t i = 0; i < p->nr; i++) {
		if (!whole) {
			truth = instructions(&p->v[i], p->v[i].truth);
			is = instructions(&p->v[i], p->v[i].block[estimator]);
		}
		judge_procedure(&s, &p->v[i], estimator, is > 0 ? truth / is : 0);
	}
	return s;
}

static double percent(double part, double of)
{
	return of > 0 ? 100 * part / of : 0;
}

static void print_scores(const char *name, const struct program *p)
{
	static const char *const estimators[] = { "plain", "flow" };

	for (int whole = 0; whole < 2; whole++) {
		const char *scale = whole ? "program" : "procedure";
		struct score s;

		for (int e = 0; e < NR_ESTIMATORS; e++) {
			s = judge(p, e, whole);
			printf("%s %s %s", name, estimators[e], scale);
			for (int b = 0; b < NR_BOUNDS; b++)
				printf(" %.2f", percent(s.right[b], s.samples));
			printf(" %.2f\n", percent(s.edges_right, s.edges));
		}
		printf("%s high %s %.0f %.0f %.0f\n", name, scale, s.samples,
		       s.by_confidence[FREQ_HIGH], s.near[FREQ_HIGH]);
		printf("%s medium %s %.0f %.0f %.0f\n", name, scale, s.samples,
		       s.by_confidence[FREQ_MEDIUM], s.within2x[FREQ_MEDIUM]);
	}
	printf("%s about %.0f %.2f %.2f %zu %llu %.3f %llu\n", name, p->samples,
	       percent(p->nowhere, p->samples), percent(p->untrue, p->samples), p->nr,
	       (unsigned long long)p->blocks, p->seconds, (unsigned long long)p->traces);
}

static void print_blocks(const struct program *p)
{
	for (size_t i = 0; i < p->nr; i++) {
		const struct procedure *pr = &p->v[i];
		double factor = instructions(pr, pr->truth) / instructions(pr, pr->block[SOLVED]);
		double plain = instructions(pr, pr->truth) / instructions(pr, pr->block[PLAIN]);

		for (uint32_t b = 0; b < pr->nr_blocks; b++)
			printf("%s %u %.0f %.0f %.0f %.0f %.0f %s\n", pr->name, b, pr->insns[b],
			       pr->samples[b], pr->truth[b], pr->block[SOLVED][b] * factor,
			       pr->block[PLAIN][b] * plain,
			       freq_confidence_text(pr->confidence[b]));
	}
}

/* ---- databases ------------------------------------------------------------------------------- */

static int open_both(const char *db, const char *xct, struct analysis **a, struct exact *truth,
		     struct base_err *err)
{
	const char *label = getenv("ACCURACY_LABEL"), *epoch = getenv("ACCURACY_EPOCH");
	struct analysis_selection sel = { .db = db,
					  .epoch = epoch ? epoch : "all",
					  .labels = &label,
					  .nr_labels = label != NULL };
	int r = exact_read(truth, xct, err);

	if (r >= 0)
		r = analysis_open(&sel, a, err);
	if (r >= 0)
		r = estimate_event(*a, NULL);
	return r == -ENOENT ? base_fail(err, r, "no samples of time or instructions in '%s'", db)
			    : r;
}

static int run_judge(char **argv, bool list, struct base_err *err)
{
	struct analysis *a = NULL;
	struct profdb *costs = NULL;
	struct exact truth = { 0 };
	struct program p = { 0 };
	int r = open_both(argv[1], argv[2], &a, &truth, err);

	if (r >= 0 && argv[3]) {
		int event = r;

		r = profdb_open(argv[3], false, &costs, err);
		r = r < 0 ? r : event;
	}
	if (r >= 0)
		r = program_gather(&p, a, (size_t)r, &truth, costs, err);
	if (r >= 0 && list)
		print_blocks(&p);
	else if (r >= 0)
		print_scores(argv[0], &p);
	program_release(&p);
	profdb_close(costs);
	analysis_close(a);
	exact_release(&truth);
	return r;
}

static int run_costs(char **argv, struct base_err *err)
{
	struct analysis *a = NULL;
	struct exact truth = { 0 };
	struct estimate_kept kept;
	int r = open_both(argv[0], argv[1], &a, &truth, err);
	size_t event = r < 0 ? 0 : (size_t)r;

	for (size_t i = 0; r >= 0 && i < a->nr_images; i++) {
		if (exact_find(&truth, profdb_profile_image(a->images[i]->profile)))
			r = estimate_costs_keep(a, a->images[i], event, &truth, a->db, &kept, err);
	}
	analysis_close(a);
	exact_release(&truth);
	return r;
}

/* ---- ideal samples --------------------------------------------------------------------------- */

static uint64_t state;

/* splitmix64 */
static uint64_t draw(uint64_t below)
{
	uint64_t z = state += 0x9e3779b97f4a7c15;

	z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
	z = (z ^ z >> 27) * 0x94d049bb133111eb;
	z ^= z >> 31;
	return (uint64_t)((unsigned __int128)z * below >> 64);
}

static int by_number(const void *pa, const void *pb)
{
	const uint64_t *a = pa, *b = pb;

	return (*a > *b) - (*a < *b);
}

/* Each image has a gigabyte of its own in the process. */
#define BASE(image) ((uint64_t)((image) + 1) << 30)

static void print_image(const struct exact_image *x, size_t index)
{
	char id[BASE_ID_TEXT_LEN];

	printf("mmap t=1 pid=1 addr=0x%llx len=0x40000000 off=0 id=%s path=%s\n",
	       (unsigned long long)BASE(index), base_id_text(&x->id, id), x->paths[0]);
}

/* @at: ascending numbers of executed instructions; @from: of the image's first one. */
static size_t print_samples(const struct exact_image *x, size_t index, uint64_t from,
			    const uint64_t *at, size_t nr)
{
	size_t used = 0;

	for (size_t i = 0; i < x->nr_counts; i++) {
		size_t n = 0;

		from += x->counts[i].count;
		for (; used < nr && at[used] < from; used++)
			n++;
		if (n)
			printf("count t=2 pid=1 addr=0x%llx n=%zu\n",
			       (unsigned long long)(BASE(index) + x->counts[i].off), n);
	}
	return used;
}

static uint64_t executed(const struct exact_image *x)
{
	uint64_t sum = 0;

	if (x->kind != EXACT_FILE || !x->id.len)
		return 0;
	for (size_t i = 0; i < x->nr_counts; i++)
		sum += x->counts[i].count;
	return sum;
}

static int run_draw(char **argv, struct base_err *err)
{
	size_t nr = strtoull(argv[0], NULL, 10), used = 0;
	uint64_t *at = calloc(nr + 1, sizeof(*at)), all = 0, from = 0;
	struct exact truth = { 0 };
	int r = at ? exact_read(&truth, argv[2], err) : -ENOMEM;

	state = strtoull(argv[1], NULL, 10);
	for (size_t i = 0; r >= 0 && i < truth.nr_images; i++)
		all += executed(truth.images[i]);
	for (size_t i = 0; r >= 0 && i < nr; i++)
		at[i] = draw(all);
	if (r >= 0) {
		qsort(at, nr, sizeof(*at), by_number);
		printf("dcpi-replay 1\nutc 1700000000\nevent instructions %llu\n",
		       (unsigned long long)(all / nr));
		printf("exec t=0 pid=1 path=drawn\n");
	}
	for (size_t i = 0; r >= 0 && i < truth.nr_images; i++) {
		uint64_t mine = executed(truth.images[i]);

		if (!mine)
			continue;
		print_image(truth.images[i], i);
		used += print_samples(truth.images[i], i, from, at + used, nr - used);
		from += mine;
	}
	exact_release(&truth);
	free(at);
	return r;
}

int main(int argc, char **argv)
{
	struct base_err err = { 0 };
	int r = -DCPI_EUSAGE;

	if (argc >= 5 && !strcmp(argv[1], "judge"))
		r = run_judge(argv + 2, false, &err);
	else if (argc == 4 && !strcmp(argv[1], "list"))
		r = run_judge(argv + 1, true, &err);
	else if (argc == 4 && !strcmp(argv[1], "costs"))
		r = run_costs(argv + 2, &err);
	else if (argc == 5 && !strcmp(argv[1], "draw"))
		r = run_draw(argv + 2, &err);
	else
		base_fail_errno(&err, r,
				"judge NAME DB XCT [COSTS], costs DB XCT, draw N SEED XCT");
	if (r < 0) {
		base_fail_errno(&err, r, "failed");
		base_err_print(&err, "accuracy", stderr);
	}
	return r < 0 ? BASE_EXIT_FAILED : BASE_EXIT_OK;
}
