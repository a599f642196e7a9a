/* SPDX-License-Identifier: BSD-2-Clause */
/* The agent in a program that dcpirun runs: it samples each thread on a tick into a ring. */
#include "agent.h"
#include "inprocess_internal.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Far from those that programs take, at either end. Programs that profile themselves have SIGPROF.
 */
#define SIGNO (SIGRTMAX - 7)
/* Samples in a row that found the ring full: whoever read it is gone. */
enum { FULL_MAX = 10000 };

static struct agent_orders orders;
static struct agent_ring ring;
/* The ring's constants: the ring itself is not there in a forked child. */
static struct inprocess_head life;
static struct inprocess_lock lock; /* lock of agent_map.c */
static _Atomic uint32_t nr_full;
static _Atomic uint64_t nr_signals;
static uint64_t seed;
static uint32_t every = 1; /* ticks to a sample */

static int put_sample(const struct inprocess_tick *tick)
{
	const struct inprocess_unit unit = { .time_ns = agent_now_ns(),
					     .addr = tick->pc,
					     .tid = (uint32_t)syscall(SYS_gettid),
					     .type = INPROCESS_SAMPLE };

	if (agent_ring_put(&ring, &unit, NULL, 0, NULL, 0)) {
		atomic_store_explicit(&nr_full, 0, memory_order_relaxed);
		return 0;
	}
	__atomic_add_fetch(&ring.head->lost, 1, __ATOMIC_RELAXED);
	return atomic_fetch_add_explicit(&nr_full, 1, memory_order_relaxed) < FULL_MAX ? 0 : -1;
}

/* Neighbouring numbers come out as unlike as those of a die (splitmix64). */
static uint64_t mix(uint64_t n)
{
	n *= UINT64_C(0x9e3779b97f4a7c15);
	n = (n ^ n >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	n = (n ^ n >> 27) * UINT64_C(0x94d049bb133111eb);
	return n ^ n >> 31;
}

/*
 * The number of samples due for the ticks of one signal. The rest of a period is drawn at random: a
 * running count would favour first ticks in programs that live shortly, and one of two threads that
 * tick in turn.
 */
static uint64_t count_due(uint32_t nr)
{
	uint64_t n = atomic_fetch_add_explicit(&nr_signals, 1, memory_order_relaxed);

	return nr / every + (mix(seed + n) % every < nr % every);
}

static int on_tick(void *ctx, const struct inprocess_tick *tick)
{
	struct inprocess_head *h = ring.head;
	uint64_t due;

	(void)ctx;
	if (!h || __atomic_load_n(&h->stop, __ATOMIC_RELAXED))
		return -1;
	due = count_due(tick->nr);
	if (!due)
		return 0;
	__atomic_add_fetch(&h->received, 1, __ATOMIC_RELAXED);
	if (due > 1)
		__atomic_add_fetch(&h->missed, due - 1, __ATOMIC_RELAXED);
	inprocess_lock_take(&lock);
	agent_map_tell(&ring, tick->pc);
	inprocess_lock_drop(&lock);
	return put_sample(tick);
}

static void on_forked(void *ctx);

static const struct inprocess_client client = { .tick = on_tick, .forked = on_forked };

/* Each life draws for itself, a child otherwise than its parent. */
static void remember(void)
{
	if (!ring.head)
		return;
	life = *ring.head;
	seed = mix(life.start_ns + ((uint64_t)life.pid << 40));
}

/* In the child. It tells its mappings anew: nobody can say whether dcpirun still knows the
 * parent's. */
static void on_forked(void *ctx)
{
	(void)ctx;
	atomic_store(&lock.word, 0);
	atomic_store(&nr_full, 0);
	agent_map_forget();
	agent_ring_open(&orders, &life, &ring);
	remember();
}

__attribute__((constructor)) static void begin(void)
{
	const char *text = getenv(INPROCESS_ENV);
	uint64_t tick = inprocess_tick_ns();

	if (!text || agent_orders_parse(text, &orders) < 0)
		return;
	if (agent_ring_open(&orders, NULL, &ring) < 0)
		return;
	remember();
	if (orders.period_ns > tick)
		every = (uint32_t)((orders.period_ns + tick / 2) / tick);
	agent_signal_prepare();
	if (inprocess_set(&client, SIGNO, NULL) >= 0)
		agent_signal_keep(SIGNO);
}

/*
 * For where dcpirun cannot ask who lives: another PID namespace. Whoever shares our memory (vfork)
 * is not us, and in a child that fork's handlers did not see the ring is not there.
 */
__attribute__((destructor)) static void end(void)
{
	static const uint32_t yes = 1;

	if (ring.head && life.pid == getpid())
		inprocess_copy_to((uintptr_t)&ring.head->ended, &yes, sizeof(yes));
}

/* So end shells, and forked children, past all destructors. Signal-safe, as it is said to be. */
__attribute__((visibility("default"))) _Noreturn void _exit(int status)
{
	end();
	for (;;)
		syscall(SYS_exit_group, status);
}

__attribute__((visibility("default"), alias("_exit"))) _Noreturn void _Exit(int status);
