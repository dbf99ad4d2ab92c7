// Ports, workers and senders for tests. Tests only.
#include "gen/fake_ctx.h"

#include <errno.h>
#include <pthread.h>
#include <rte_cycles.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { ALIVE = 0x11fe, DEAD = 0xdead };

struct fake fake;

const struct port_table_settings fake_settings = {
	.n_ports = FAKE_WORKERS,
	.ports = {{.name = "left", .device = "net_ring0"},
		{.name = "right", .device = "net_ring1"}},
};

static struct port_worker workers[FAKE_WORKERS];
static struct port_state states[PORT_MAX];
static pthread_t threads[FAKE_WORKERS];

struct worker_loop {
	int (*loop)(void *arg);
	void *arg;
};
static struct worker_loop loops[FAKE_WORKERS];

struct gen *fake_load(const json_t *streams)
{
	struct error error = {""};
	struct gen *gen;

	memset(&fake, 0, sizeof(fake));
	for (unsigned i = 0; i < FAKE_WORKERS; i++)
		workers[i] = (struct port_worker){.id = i, .core = 4 + i, .burst = 64};
	if (gen_open(&gen, NULL, &fake_settings, streams, &error))
		fail_msg("refused: %s", error.text);
	// Workers without queues, which would require a DPDK device.
	for (unsigned i = 0; i < FAKE_WORKERS; i++) {
		gen->worker_of[i] = i;
		gen->worker[i].hz = FAKE_HZ;
		gen->worker[i].long_gap = FAKE_HZ / 1000000 * STALLS_LEAST_US;
	}
	gen->patience_s = 60; // other tests may be using the CPUs
	gen->hz = gen->current->hz = FAKE_HZ;
	return gen;
}

unsigned port_n_workers(const struct port_table *ports)
{
	return FAKE_WORKERS;
}

struct port_worker *port_worker(struct port_table *ports, unsigned worker)
{
	return &workers[worker];
}

unsigned fake_cpus(void)
{
	cpu_set_t allowed;

	return sched_getaffinity(0, sizeof(allowed), &allowed) == 0 ? CPU_COUNT(&allowed) : 1;
}

// Busy-polling workers on the same CPU would only wait for each other.
static void take_cpu(unsigned number)
{
	cpu_set_t allowed, own;

	CPU_ZERO(&own);
	if (fake_cpus() < FAKE_WORKERS || sched_getaffinity(0, sizeof(allowed), &allowed) != 0)
		return;
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &allowed) && number-- == 0)
			CPU_SET(cpu, &own);
	pthread_setaffinity_np(pthread_self(), sizeof(own), &own);
}

static void *run_loop(void *arg)
{
	struct worker_loop *l = arg;

	take_cpu(l - loops);
	l->loop(l->arg);
	return NULL;
}

int port_workers_launch(struct port_table *ports, int (*loop)(void *arg), void *args[],
	struct error *error)
{
	for (unsigned i = 0; i < FAKE_WORKERS; i++) {
		loops[i] = (struct worker_loop){loop, args[i]};
		assert_int_equal(pthread_create(&threads[i], NULL, run_loop, &loops[i]), 0);
	}
	return 0;
}

void port_workers_join(struct port_table *ports)
{
	for (unsigned i = 0; i < FAKE_WORKERS; i++)
		pthread_join(threads[i], NULL);
}

bool port_workers_alive(const struct port_table *ports)
{
	return !fake.worker_has_ended;
}

void port_poll(struct port_table *ports)
{
	for (unsigned i = 0; i < FAKE_WORKERS; i++)
		states[i].up = !fake.is_down[i];
}

int port_check_devices(const struct port_table *ports, struct error *error)
{
	return fake.device_is_gone ? error_set(error, -ENODEV, "its device is gone") : 0;
}

const struct port_state *port_states(const struct port_table *ports)
{
	return states;
}

void port_info(const struct port_table *ports, unsigned port, struct port_info *out)
{
	*out = (struct port_info){.name = fake_settings.ports[port].name,
		.device = fake_settings.ports[port].device,
		.driver = "net_ring",
		.mtu = 1500,
		.mac.bytes = {2, 0, 0, 0, 0, port},
		.link_up = !fake.is_down[port],
		.numa = -1,
		.line_bps = 1e9,
		.has_backpressure = true,
		.rx_ring_slots = 1024,
		.rx_missed = fake.missed};
}

struct rte_mempool *port_pool(const struct port_table *ports, unsigned port)
{
	return NULL;
}

void port_memory(const struct port_table *ports, struct port_memory *out)
{
	*out = (struct port_memory){.planned_mib = 64, .n_mbufs = 1000};
}

// A sender counts one frame per turn. It detects calls after its destruction or before its
// preparation.
struct sender {
	struct sender_counters counters;
	unsigned state;
	uint64_t start, end, n_frames;
	bool is_prepared;
};

int sender_create(struct sender **out, const struct sender_terms *terms, struct error *error)
{
	if (terms->stream->burst == GEN_MAX_BURST)
		return error_set(error, -ENOMEM, "stream %s: not enough memory for its frames",
			terms->stream->name);
	*out = calloc(1, sizeof(**out));
	(*out)->state = ALIVE;
	(*out)->n_frames = terms->stream->n_frames;
	__atomic_fetch_add(&fake.n_senders, 1, __ATOMIC_RELAXED);
	return 0;
}

void sender_destroy(struct sender *sender)
{
	sender->state = DEAD;
	__atomic_fetch_sub(&fake.n_senders, 1, __ATOMIC_RELAXED);
	free(sender);
}

void sender_prepare(struct sender *sender)
{
	if (sender->state != ALIVE || sender->start)
		__atomic_fetch_add(&fake.n_wrong, 1, __ATOMIC_RELAXED);
	sender->is_prepared = true;
}

void sender_begin(struct sender *sender, uint64_t start, uint64_t end)
{
	if (!sender->is_prepared)
		__atomic_fetch_add(&fake.n_wrong, 1, __ATOMIC_RELAXED);
	sender->start = start;
	sender->end = end;
}

bool sender_turn(struct sender *sender, uint64_t now)
{
	struct sender_counters *c = &sender->counters;

	if (sender->state != ALIVE || !sender->start)
		__atomic_fetch_add(&fake.n_wrong, 1, __ATOMIC_RELAXED);
	if ((sender->end && now >= sender->end) ||
		(sender->n_frames && c->sent == sender->n_frames))
		return false;
	if (now < sender->start)
		return true;
	for (uint64_t from = rte_rdtsc(); rte_rdtsc() - from < fake.turn_cycles;)
		;
	if (!c->sent)
		stats_set(&c->first_tsc, now);
	stats_set(&c->last_tsc, now);
	stats_add(&c->sent, 1);
	stats_add(&c->sent_bytes, 64);
	return true;
}

const struct sender_counters *sender_counters(const struct sender *sender)
{
	return &sender->counters;
}
