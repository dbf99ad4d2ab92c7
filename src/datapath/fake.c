// Fake devices made of arrays, reached through the function pointers that rte_ethdev's inline
// functions call.
#include "datapath/fake.h"

#include "datapath/steps.h"
#include "tap/tap.h"
#include "wire/build.h"
#include "wire/checksum.h"
#include "wire/headers.h"

#include <rte_cycles.h>
#include <stdio.h>

enum { DEVICE = 7 }; // id of the first one
enum { OTHER_HOLDER = 1 };

struct packet {
	struct rte_mbuf mbuf;
	uint8_t room[FAKE_ROOM];
} LINE_ALIGNED;

struct fake fake;
const struct datapath_variant *fake_variants[FAKE_VARIANTS];
static struct datapath_variant waiting;
static struct packet packets[FAKE_FRAMES];
static struct iface ifaces[FAKE_IFACES];

static void spend(uint64_t cycles)
{
	for (uint64_t start = rte_rdtsc(); rte_rdtsc() - start < cycles;)
		;
}

static uint16_t receive(void *queue, struct rte_mbuf **mbuf, uint16_t n)
{
	struct fake_device *d = queue;
	uint16_t got = 0;

	if (d->n_read < d->n_waiting)
		spend(d->burst_cycles + (d->n_read == d->stall_at ? d->stall_cycles : 0));
	while (got < n && d->n_read < d->n_waiting)
		mbuf[got++] = d->waiting[d->n_read++];
	fake.n_idle = got ? 0 : fake.n_idle + 1;
	if (fake.n_idle > FAKE_PATIENCE * FAKE_PORTS && fake.stat.loops >= fake.loops_least)
		fake.stop = true;
	return got;
}

static uint16_t transmit(void *queue, struct rte_mbuf **mbuf, uint16_t n)
{
	struct fake_device *d = queue;
	uint16_t taken = MIN_OF(n, d->takes);

	spend(d->send_cycles);
	memcpy(d->sent + d->n_sent, mbuf, taken * sizeof(*mbuf));
	d->n_sent += taken;
	d->takes -= taken;
	return taken;
}

// A pool of as many buffers as a test wants.

static struct {
	struct rte_mempool pool;
	struct rte_pktmbuf_pool_private private;
} pool;
static struct packet buffers[FAKE_FRAMES];

static int take_buffers(struct rte_mempool *from, void **out, unsigned n)
{
	if (n > fake.n_buffers)
		return -ENOBUFS;
	for (unsigned i = 0; i < n; i++) {
		struct packet *packet = &buffers[fake.n_taken++];

		assert_true(fake.n_taken <= FAKE_FRAMES);
		packet->mbuf = (struct rte_mbuf){.buf_addr = packet->room,
			.buf_len = FAKE_ROOM,
			.nb_segs = 1,
			.refcnt = 1,
			.pool = from};
		out[i] = &packet->mbuf;
	}
	fake.n_buffers -= n;
	return 0;
}

static int return_buffers(struct rte_mempool *to, void *const *mbufs, unsigned n)
{
	fake.n_returned += n;
	return 0;
}

static int alloc_nothing(struct rte_mempool *mempool)
{
	return 0;
}

static unsigned count_buffers(const struct rte_mempool *mempool)
{
	return fake.n_buffers;
}

static void open_pool(void)
{
	static int index = -1;
	const struct rte_mempool_ops ops = {
		.name = "fake",
		.alloc = alloc_nothing,
		.enqueue = return_buffers,
		.dequeue = take_buffers,
		.get_count = count_buffers,
	};

	if (index < 0)
		index = rte_mempool_register_ops(&ops);
	assert_true(index >= 0);
	pool.pool.ops_index = index;
	pool.pool.private_data_size = sizeof(pool.private);
	pool.private.mbuf_data_room_size = FAKE_ROOM;
	assert_ptr_equal(rte_mempool_get_priv(&pool.pool), &pool.private);
}

static void open_device(uint8_t port)
{
	static void *queue[FAKE_PORTS], *none[1];
	struct rte_eth_fp_ops *ops = &rte_eth_fp_ops[DEVICE + port];

	queue[port] = &fake.device[port];
	ops->rx_pkt_burst = receive;
	ops->tx_pkt_burst = transmit;
	ops->rxq = ops->txq = (struct rte_ethdev_qdata){&queue[port], none};
	fake.io.queues[port] = (struct port_queue){.device = DEVICE + port, .port = port};
	fake.io.out[port] = (struct port_out){.device = DEVICE + port};
	fake.states[port] = (struct port_state){.mac = {2, 0, 0, 0, 0, port + 1}, .up = true};
}

int fake_open(void **state)
{
	struct tap_settings taps;

	fake_variants[0] = &datapath_scalar;
	fake_variants[1] = datapath_choose_variant();
	waiting = *datapath_choose_variant();
	fake_variants[2] = &waiting;
	open_pool();
	tap_settings_default(&taps);
	assert_int_equal(tap_worker_make(&fake.tap, taps.class), 0);
	fake.fib = fib_create(NULL);
	fake.rcu = rcu_create(1, NULL);
	assert_non_null(fake.fib);
	assert_non_null(fake.rcu);
	for (uint8_t port = 0; port < FAKE_PORTS; port++) {
		open_device(port);
		fake_iface(port, port, 0, (uint32_t[IFACE_MAX_TAGS]){0});
	}
	fake.io.n_queues = FAKE_PORTS;
	fake.live = (struct fib_live){.rcu = fake.rcu};
	fib_live_swap(&fake.live, fake.fib);
	return 0;
}

int fake_close(void **state)
{
	fake_reset(&datapath_scalar);
	tap_worker_free(&fake.tap);
	fib_live_swap(&fake.live, NULL);
	rcu_destroy(fake.rcu);
	fib_destroy(fake.fib);
	return 0;
}

void fake_reset(const struct datapath_variant *variant)
{
	struct rte_mbuf *m;

	for (unsigned c = 0; c < N_CLASSES; c++)
		while (fake_punted(c))
			;
	while (!rte_ring_sc_dequeue(fake.tap.inject, (void **)&m))
		;
	memset(&fake.stat, 0, sizeof(fake.stat));
	memset(fake.device, 0, sizeof(fake.device));
	for (uint8_t port = 0; port < FAKE_PORTS; port++) {
		fake.device[port].takes = FAKE_FRAMES;
		open_device(port);
	}
	for (unsigned iface = 0; iface < FAKE_IFACES; iface++)
		if (ifaces[iface].mtu)
			assert_int_equal(fib_iface_set(fake.fib, iface, &ifaces[iface]), 0);
	fib_set_synced(fake.fib, true);
	fake.worker = (struct worker){.io = &fake.io,
		.states = fake.states,
		.rcu = rcu_readers(fake.rcu),
		.live = &fake.live,
		.stat = &fake.stat,
		.stop = &fake.stop,
		.variant = variant,
		.poll = fake.worker.polls,
		.tap = &fake.tap,
		.poisons = true};
	fake.io.burst = variant == &waiting ? FAKE_SMALL_BURST : BURST_MAX;
	fake.n_made = fake.n_taken = fake.n_returned = fake.n_split = 0;
	fake.n_buffers = FAKE_FRAMES;
	fake.loops_least = 0;
}

void fake_set(uint16_t iface, const struct iface *settings)
{
	assert_int_equal(fib_iface_set(fake.fib, iface, settings), 0);
}

void fake_route(uint16_t vrf, const char *prefix, const struct fib_hop *hop)
{
	struct fib_change change = {.op = FIB_REPLACE, .route = {.vrf = vrf, .hop = *hop}};

	assert_int_equal(wire_prefix_parse(prefix, &change.route.prefix), 0);
	assert_int_equal(fib_change(fake.fib, &change, 1, NULL, NULL), 0);
}

static struct wire_mac neighbour_mac(uint16_t iface)
{
	return (struct wire_mac){{2, 0, 0, iface, 0, 2}};
}

static void add_neighbour(uint16_t iface, const char *format, const char *prefix)
{
	struct fib_hop hop = {.kind = FIB_VIA, .iface = iface};
	struct wire_mac mac = neighbour_mac(iface);
	char text[64];

	snprintf(text, sizeof(text), format, iface);
	assert_int_equal(wire_addr_parse(text, &hop.via), 0);
	assert_int_equal(fib_neighbour_set(fake.fib, iface, &hop.via, &mac, NULL), 0);
	snprintf(text, sizeof(text), prefix, iface);
	fake_route(ifaces[iface].vrf, text, &hop);
}

void fake_iface(uint16_t iface, uint8_t port, uint16_t vrf, const uint32_t tags[IFACE_MAX_TAGS])
{
	struct iface *made = &ifaces[iface];

	*made = (struct iface){.port = port,
		.vrf = vrf,
		.mtu = 1500,
		.mac = {{2, 0, 0, 0, 0, port + 1}}};
	for (; made->n_tags < IFACE_MAX_TAGS && tags[made->n_tags]; made->n_tags++)
		made->tag[made->n_tags] = (struct iface_tag){.tpid = tags[made->n_tags] >> 16,
			.vid = tags[made->n_tags] & 0xfff};
	fake_set(iface, made);
	add_neighbour(iface, "10.%u.0.2", "10.%u.0.0/16");
	add_neighbour(iface, "2001:db8:%x::2", "2001:db8:%x::/48");
}

struct bytes frame_to(uint8_t port, const char *dst)
{
	struct wire_recipe recipe = wire_recipe(strchr(dst, ':') ? 6 : 4);
	struct bytes frame = {.n = recipe.frame_bytes};

	memcpy(recipe.dst_mac.bytes, fake.states[port].mac, sizeof(recipe.dst_mac.bytes));
	assert_int_equal(wire_addr_parse(dst, &recipe.dst), 0);
	assert_int_equal(wire_build(&recipe, frame.at, sizeof(frame.at)), 0);
	return frame;
}

void frame_tag(struct bytes *frame, uint32_t tag)
{
	uint32_t tag_be = htobe32(tag);

	memmove(frame->at + 16, frame->at + 12, frame->n - 12);
	memcpy(frame->at + 12, &tag_be, sizeof(tag_be));
	frame->n += sizeof(tag_be);
}

static bool is_tagged(const struct bytes *frame)
{
	uint16_t type = frame->at[12] << 8 | frame->at[13];

	return type == WIRE_ETHERTYPE_VLAN || type == WIRE_ETHERTYPE_QINQ;
}

void frame_mend(struct bytes *frame)
{
	unsigned at = WIRE_ETHER_BYTES;

	while (frame->at[at - 2] != 0x08)
		at += WIRE_VLAN_BYTES;
	struct wire_ip4 *ip = (void *)(frame->at + at);
	ip->checksum_be = wire_ip4_checksum_be(ip);
}

struct bytes forwarded_once(const struct bytes *frame)
{
	struct bytes left = *frame;

	if (left.at[12] == 0x08) {
		left.at[22]--;
		frame_mend(&left);
	} else {
		left.at[21]--;
	}
	return left;
}

struct bytes frame_forwarded(const struct bytes *frame, uint16_t iface)
{
	const struct iface *out = &ifaces[iface];
	struct wire_mac neighbour = neighbour_mac(iface);
	struct bytes left = *frame;

	for (; is_tagged(&left); left.n -= 4)
		memmove(left.at + 12, left.at + 16, left.n - 16);
	memcpy(left.at, neighbour.bytes, 6);
	memcpy(left.at + 6, out->mac.bytes, 6);
	if (left.at[12] == 0x08) {
		left.at[22]--;
		frame_mend(&left);
	} else {
		left.at[21]--;
	}
	for (unsigned i = out->n_tags; i; i--)
		frame_tag(&left, (uint32_t)out->tag[i - 1].tpid << 16 | out->tag[i - 1].vid);
	return left;
}

// The mbuf has a second reference: freeing it once leaves one, so it is never returned to a pool.
struct rte_mbuf *fake_mbuf(const struct bytes *frame)
{
	struct packet *packet = &packets[fake.n_made++];

	assert_true(fake.n_made <= FAKE_FRAMES);
	packet->mbuf = (struct rte_mbuf){.buf_addr = packet->room,
		.buf_len = FAKE_ROOM,
		.data_off = FAKE_HEADROOM,
		.nb_segs = 1,
		.refcnt = 1 + OTHER_HOLDER,
		.pool = &pool.pool,
		.data_len = frame->n,
		.pkt_len = frame->n};
	memcpy(packet->room + FAKE_HEADROOM, frame->at, frame->n);
	return &packet->mbuf;
}

struct rte_mbuf *fake_receive(uint8_t port, const struct bytes *frame)
{
	struct fake_device *d = &fake.device[port];

	return d->waiting[d->n_waiting++] = fake_mbuf(frame);
}

struct rte_mbuf *fake_inject(uint8_t port, const struct bytes *frame)
{
	struct rte_mbuf *m = fake_mbuf(frame);

	m->port = port;
	assert_int_equal(rte_ring_sp_enqueue(fake.tap.inject, m), 0);
	return m;
}

static unsigned count_freed(void)
{
	unsigned n = 0;

	for (unsigned i = 0; i < fake.n_made; i++) {
		assert_in_range(packets[i].mbuf.refcnt, OTHER_HOLDER, OTHER_HOLDER + 1);
		n += packets[i].mbuf.refcnt == OTHER_HOLDER;
	}
	return n;
}

static void expect_accounting(void)
{
	struct stats_worker *workers[] = {&fake.stat};
	struct stats_account account = {0};
	uint64_t punted = 0;

	stats_add_workers(&account, workers, 1);
	for (unsigned v = 0; v < N_VERDICTS; v++)
		punted += fake.stat.handed[v];
	assert_int_equal(account.received + account.injected, fake.n_made);
	assert_int_equal(fake.n_made + account.copied, account.sent + punted + account.dropped);
	assert_int_equal(account.held, 0);
	assert_int_equal(account.sent, account.verdict[VERDICT_FORWARD]);
	// Of a packet and its fragments, one is not a copy: as many packets were replaced.
	assert_int_equal(account.dropped + fake.n_taken - fake.n_split - account.copied,
		count_freed() + fake.n_returned);
}

void fake_run(void)
{
	// The view itself is small.
	struct fib_view *view = (struct fib_view *)(uintptr_t)fib_live_view(&fake.live);

	view->waits4 = fake.worker.variant == &waiting;
	fake.stop = false;
	fake.n_idle = 0;
	assert_int_equal(worker_run(&fake.worker), 0);
	expect_accounting();
}

struct rte_mbuf *fake_punted(enum punt_class class)
{
	struct rte_mbuf *m;

	return rte_ring_sc_dequeue(fake.tap.punt[class], (void **)&m) ? NULL : m;
}

void expect_bytes(const struct rte_mbuf *mbuf, const struct bytes *frame)
{
	assert_non_null(mbuf);
	assert_int_equal(mbuf->data_len, frame->n);
	assert_int_equal(mbuf->pkt_len, frame->n);
	assert_memory_equal(rte_pktmbuf_mtod(mbuf, const uint8_t *), frame->at, frame->n);
}

void expect_sent(uint8_t port, const struct bytes *frame)
{
	for (uint8_t p = 0; p < FAKE_PORTS; p++)
		assert_int_equal(fake.device[p].n_sent, p == port);
	expect_bytes(fake.device[port].sent[0], frame);
	assert_int_equal(fake.stat.port[port].tx_bytes, frame->n);
}
