/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Generation words that stand in a file: the real program reads them where the kernel has them
 * pinned, as long as the client is one, and nowhere else. Kernels that pin nothing read them from
 * the process: then so says what is expected.
 */
#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/utsname.h>

#include "live.h"

#include "bpf_program.h"

enum {
	PAGE_LEN = sizeof(uint32_t) << SAMPLE_PAGE_SHIFT,
	NR_WORDS = SAMPLE_NR_PAGES << SAMPLE_PAGE_SHIFT,
	LEN = NR_WORDS * sizeof(uint32_t),
};

/* What says where pages are pinned fails. */
static bool nobody_says;

int __real_bpf_prog_test_run_opts(int fd, struct bpf_test_run_opts *opts);
int __wrap_bpf_prog_test_run_opts(int fd, struct bpf_test_run_opts *opts);

int __wrap_bpf_prog_test_run_opts(int fd, struct bpf_test_run_opts *opts)
{
	return nobody_says ? -ENOMEM : __real_bpf_prog_test_run_opts(fd, opts);
}

struct words {
	int fd;
	uint32_t *own;	  /* by which we write */
	uint32_t *shared; /* where the sampler is told that they are */
};

static struct driver_range range;
static ino_t next_ino;

/* What stands in for the storage of pins: how to make it. NULL: the real one. */
static int (*make_storage)(void);

int __real_bpf_pins_make(void);
int __wrap_bpf_pins_make(void);

int __wrap_bpf_pins_make(void)
{
	return make_storage ? make_storage() : __real_bpf_pins_make();
}

static uint32_t number(void)
{
	return (uint32_t)(range.start / BLOCK) & (NR_WORDS - 1);
}

/* All there, as those are of who has written them. */
static uint32_t *map(const struct words *w, void *at)
{
	int flags = MAP_SHARED | MAP_POPULATE | (at ? MAP_FIXED : 0);
	void *p = mmap(at, LEN, PROT_READ | PROT_WRITE, flags, w->fd, 0);

	assert_true(p != MAP_FAILED);
	return p;
}

/* @at: where those of another file stood. */
static struct words make_words(uint32_t *at)
{
	struct words w = { .fd = memfd_create("words", MFD_CLOEXEC | MFD_ALLOW_SEALING) };

	assert_true(w.fd >= 0);
	assert_int_equal(ftruncate(w.fd, LEN), 0);
	w.own = map(&w, NULL);
	w.shared = map(&w, at);
	next_ino++;
	return w;
}

static struct driver_client client_of(const struct words *w)
{
	range = (struct driver_range){ (uintptr_t)spin_some, (uintptr_t)spin_end,
				       DRIVER_RANGE_WORDS };
	return (struct driver_client){ .ranges = &range,
				       .nr_ranges = 1,
				       .words = (uintptr_t)w->shared,
				       .nr_words = NR_WORDS,
				       .words_ino = next_ino,
				       .words_fd = w->fd,
				       .stands = live_stands };
}

static struct seen see_range(void)
{
	return (struct seen){ .pid = getpid(), .lo = range.start, .hi = range.end };
}

static const struct bpf_programs *programs(void)
{
	return &((struct bpf *)d)->programs;
}

static bool can_pin(void)
{
	return programs()->pins_fd >= 0;
}

/* Of the client @tgid; NULL: it is none. */
static struct sample_pages *pages_of(uint32_t tgid)
{
	struct sample__bss *bss = programs()->objects[0]->bss;

	for (size_t i = 0; i < SAMPLE_NR_SLOTS; i++)
		if (bss->clients[i].tgid == tgid)
			return &bss->pages[bss->clients[i].ranges];
	return NULL;
}

static size_t nr_pinned(uint32_t tgid)
{
	const struct sample_pages *pages = pages_of(tgid);
	size_t nr = 0;

	for (size_t i = 0; pages && i < SAMPLE_NR_PAGES; i++)
		nr += pages->at[i] > SAMPLE_PAGE_WANTED;
	return nr;
}

/* Nobody can read them in our memory any more. */
static void hide(const struct words *w)
{
	assert_int_equal(mprotect(w->shared, LEN, PROT_NONE), 0);
}

/*
 * Nobody has them mapped or pinned any more, which the kernel lets go of a moment later: only then
 * can they be sealed.
 */
static void check_released(const struct words *w)
{
	const struct timespec nap = { .tv_nsec = 10000000 };
	int r;

	assert_int_equal(munmap(w->own, LEN), 0);
	assert_int_equal(munmap(w->shared, LEN), 0);
	for (int i = 0; i < 1000; i++) {
		r = fcntl(w->fd, F_ADD_SEALS, F_SEAL_WRITE);
		if (r == 0 || errno != EBUSY)
			break;
		nanosleep(&nap, NULL);
	}
	assert_int_equal(r, 0);
	close(w->fd);
}

static void start_with(const struct driver_client *c)
{
	start(&fast);
	assert_int_equal(driver_client_set(d, getpid(), c), 0);
}

/* From then on in places that we cannot read ourselves. */
static void spin_until_pinned(struct seen *s, const struct words *w)
{
	w->own[number()] = 1;
	spin_until(s, &s->traces[1].counts, 11);
	assert_int_equal(nr_pinned((uint32_t)getpid()), can_pin());
	hide(w);
}

/* Samples of @generation that come now, of words that are hidden. */
static void check_hidden(struct seen *s, const struct words *w, uint32_t generation)
{
	uint64_t *nr = can_pin() ? &s->traces[generation].counts : &s->unread;
	uint64_t unread, before;

	w->own[number()] = generation;
	drain(s, true);
	unread = s->unread;
	before = s->traces[generation].counts;
	spin_until(s, nr, *nr + 11);
	if (can_pin())
		assert_int_equal(s->unread, unread);
	else
		assert_int_equal(s->traces[generation].counts, before);
}

/* Else nothing of what follows would be seen. */
static void kernels_from_6_13_on_pin(void **state)
{
	unsigned int major = 0, minor = 0;
	struct utsname u;
	struct seen s = { 0 };

	(void)state;
	assert_int_equal(uname(&u), 0);
	assert_int_equal(sscanf(u.release, "%u.%u", &major, &minor), 2);
	start(&fast);
	assert_int_equal(can_pin(), major > 6 || (major == 6 && minor >= 13));
	stop(&s);
}

static void words_are_read_where_they_are_pinned(void **state)
{
	struct words w = make_words(NULL);
	struct driver_client c = client_of(&w);
	struct seen s = see_range();

	(void)state;
	start_with(&c);
	spin_until_pinned(&s, &w);
	for (uint32_t g = 2; g < 5; g++)
		check_hidden(&s, &w, g);
	/* What does not concern its words lets them be. */
	range.end += BLOCK;
	assert_int_equal(driver_client_set(d, getpid(), &c), 0);
	assert_int_equal(nr_pinned((uint32_t)getpid()), can_pin());
	check_hidden(&s, &w, 5);
	assert_int_equal(driver_client_set(d, getpid(), NULL), 0);
	check_released(&w);
	stop(&s);
}

/* At the same address others: those of the file before are not read any more. */
static void other_words_are_others(void **state)
{
	struct words w = make_words(NULL), other;
	struct driver_client c = client_of(&w);
	struct seen s = see_range();

	(void)state;
	start_with(&c);
	spin_until_pinned(&s, &w);
	other = make_words(w.shared);
	w.shared = map(&w, NULL);
	other.own[number()] = 6;
	c.words_ino = next_ino;
	c.words_fd = other.fd;
	assert_int_equal(driver_client_set(d, getpid(), &c), 0);
	w.own[number()] = 2;
	check_released(&w);
	drain(&s, true);
	assert_int_equal(s.traces[2].counts, 0);
	spin_until(&s, &s.traces[6].counts, 11);
	assert_int_equal(nr_pinned((uint32_t)getpid()), can_pin());
	hide(&other);
	check_hidden(&s, &other, 7);
	assert_int_equal(s.traces[2].counts, 0);
	/* With a file of which nothing is known they are read from memory alone. */
	c.words_ino = 0;
	assert_int_equal(driver_client_set(d, getpid(), &c), 0);
	drain(&s, true);
	s.unread = 0;
	spin_until(&s, &s.unread, 11);
	assert_int_equal(nr_pinned((uint32_t)getpid()), 0);
	check_released(&other);
	stop(&s);
}

/* As if samples had met @nr pages more than there are of ours. */
static void want(struct sample_pages *pages, size_t nr)
{
	for (size_t i = 0; nr && i < SAMPLE_NR_PAGES; i++) {
		if (pages->at[i])
			continue;
		pages->at[i] = SAMPLE_PAGE_WANTED;
		nr--;
	}
	programs()->objects[0]->bss->pages_wanted = 1;
}

/* So many and no more: the others are read as before. */
static void few_pages_are_pinned(void **state)
{
	struct words w = make_words(NULL);
	struct driver_client c = client_of(&w);
	struct seen s = see_range();
	size_t most = 0;

	(void)state;
	start_with(&c);
	most = can_pin() ? SAMPLE_NR_PINS : 0;
	want(pages_of((uint32_t)getpid()), 3);
	drain(&s, false);
	assert_int_equal(nr_pinned((uint32_t)getpid()), can_pin() ? 3 : 0);
	want(pages_of((uint32_t)getpid()), SAMPLE_NR_PINS);
	drain(&s, false);
	assert_int_equal(nr_pinned((uint32_t)getpid()), most);
	w.own[number()] = 4;
	spin_until(&s, &s.traces[4].counts, 11);
	assert_int_equal(nr_pinned((uint32_t)getpid()), most);
	assert_int_equal(driver_client_set(d, getpid(), NULL), 0);
	check_released(&w);
	stop(&s);
}

/* What cannot be written cannot be pinned. */
static void files_to_read_only_are_read_from_memory(void **state)
{
	struct words w = make_words(NULL);
	struct driver_client c = client_of(&w);
	struct seen s = see_range();
	char path[64];

	(void)state;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", w.fd);
	c.words_fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(c.words_fd >= 0);
	start_with(&c);
	close(c.words_fd);
	w.own[number()] = 3;
	spin_until(&s, &s.traces[3].counts, 11);
	assert_int_equal(nr_pinned((uint32_t)getpid()), 0);
	w.own[number()] = 4;
	spin_until(&s, &s.traces[4].counts, 11);
	assert_int_equal(driver_client_set(d, getpid(), NULL), 0);
	check_released(&w);
	stop(&s);
}

/* What was pinned all the same is let go of with the client. */
static void pages_that_nobody_finds_are_let_go(void **state)
{
	struct words w = make_words(NULL);
	struct driver_client c = client_of(&w);
	struct seen s = see_range();

	(void)state;
	start_with(&c);
	nobody_says = true;
	want(pages_of((uint32_t)getpid()), 2);
	drain(&s, false);
	nobody_says = false;
	assert_int_equal(nr_pinned((uint32_t)getpid()), 0);
	w.own[number()] = 5;
	spin_until(&s, &s.traces[5].counts, 11);
	assert_int_equal(driver_client_set(d, getpid(), NULL), 0);
	check_released(&w);
	stop(&s);
}

/* Who ends lets go, and so does a source that is closed. */
static void ends_let_go(void **state)
{
	struct words w = make_words(NULL), own = make_words(NULL);
	struct driver_client c = client_of(&own);
	struct seen s = see_range();
	pid_t child = fork_child();

	(void)state;
	if (!child)
		for (;;)
			pause();
	start_with(&c);
	c.words_fd = w.fd;
	assert_int_equal(driver_client_set(d, child, &c), 0);
	want(pages_of((uint32_t)child), 2);
	drain(&s, false);
	assert_int_equal(nr_pinned((uint32_t)child), can_pin() ? 2 : 0);
	spin_until_pinned(&s, &own);
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	drain(&s, false);
	assert_null(pages_of((uint32_t)child));
	check_released(&w);
	check_hidden(&s, &own, 2);
	stop(&s);
	close_driver(NULL);
	check_released(&own);
}

/* ---- kernels that pin nothing ---------------------------------------------------------------- */

static int make_none(void)
{
	return -EINVAL;
}

/* No program can take it for a task's storage. */
static int make_wrong(void)
{
	return bpf_map_create(BPF_MAP_TYPE_ARRAY, "pins", sizeof(int), 64, 1, NULL);
}

static void check_without(int (*make)(void))
{
	struct words w = make_words(NULL);
	struct driver_client c = client_of(&w);
	struct seen s = see_range();

	make_storage = make;
	start(&fast);
	make_storage = NULL;
	assert_false(can_pin());
	assert_int_equal(driver_client_set(d, getpid(), &c), 0);
	spin_until_pinned(&s, &w);
	check_hidden(&s, &w, 2);
	assert_int_equal(driver_client_set(d, getpid(), NULL), 0);
	check_released(&w);
	stop(&s);
}

static void kernels_without_pins_read_from_memory(void **state)
{
	(void)state;
	check_without(make_none);
}

static void pins_that_no_program_takes_are_left_out(void **state)
{
	(void)state;
	check_without(make_wrong);
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		LIVE_TEST(kernels_from_6_13_on_pin),
		LIVE_TEST(words_are_read_where_they_are_pinned),
		LIVE_TEST(other_words_are_others),
		LIVE_TEST(few_pages_are_pinned),
		LIVE_TEST(files_to_read_only_are_read_from_memory),
		LIVE_TEST(pages_that_nobody_finds_are_let_go),
		LIVE_TEST(ends_let_go),
		LIVE_TEST(kernels_without_pins_read_from_memory),
		LIVE_TEST(pins_that_no_program_takes_are_left_out),
	};
	int r = live_begin(argc, argv);

	return r >= 0 ? r : cmocka_run_group_tests(tests, NULL, NULL);
}
