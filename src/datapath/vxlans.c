// See vxlans.h.
#include "datapath/vxlans.h"

#include "wire/checksum.h"
#include "wire/headers.h"

#include <rte_cycles.h>
#include <string.h>

struct mac_table *table;
struct mac_member members[3];
struct mac_bridge bridge;
struct iface device;
uint32_t vtep[2], remote[2]; // of 10.2.0.9 and .10, or 2001:db8:2::9 and a
struct stats_worker stat_before;

const struct wire_mac own = {{2, 0, 0, 0, 7, 1}};
const uint8_t broadcast[6] = {0xff, 0xff, 0xff, 0xff, 0xff, 0xff};

struct wire_addr addr(const char *text)
{
	struct wire_addr parsed;

	assert_int_equal(wire_addr_parse(text, &parsed), 0);
	return parsed;
}

struct wire_mac mac_of(unsigned host)
{
	return (struct wire_mac){{2, 0, 0, 0, 9, host}};
}

struct wire_addr end_addr(unsigned i, bool is_ip6)
{
	return addr(
		is_ip6 ? (i ? "2001:db8:2::a" : "2001:db8:2::9") : (i ? "10.2.0.10" : "10.2.0.9"));
}

static uint32_t find_remote(void *ctx, uint16_t member, const struct wire_addr *end)
{
	const struct mac_remote is = {.vtep = fib_vtep_find(fake.fib, 0, end), .member = MEMBER};

	assert_int_equal(member, MEMBER);
	return is.vtep ? mac_remote_find(table, &is) : 0;
}

struct mac_info told;
static void teach(void *ctx, const struct mac_info *info)
{
	told = *info;
}

int open_vxlan(void **state)
{
	const struct fib_hop local = {.kind = FIB_LOCAL, .iface = IFACE_NONE};
	const struct fib_hop connected = {.kind = FIB_CONNECTED, .iface = BRIDGE};
	int err = fake_open(state);
	struct mac_settings settings = {.hz = rte_get_tsc_hz(),
		.n_workers = 1,
		.rcu = fake.rcu,
		.unknown = teach,
		.remote = find_remote};

	settings.hz = settings.hz ? settings.hz : 1000000000; // no EAL
	fake_route(0, "10.2.0.1/32", &local);
	fake_route(0, "2001:db8:2::1/128", &local);
	fake_route(0, "10.50.0.0/16", &connected);
	return err ? err : mac_open(&table, &settings, NULL);
}

int close_vxlan(void **state)
{
	mac_close(table);
	return fake_close(state);
}

void commit(void)
{
	struct mac_pending *pending;

	assert_int_equal(mac_prepare(table, &bridge, 1, &pending, NULL), 0);
	mac_commit(table, pending, rte_rdtsc());
}

void set_ends(bool is_ip6, unsigned n)
{
	for (unsigned i = 0; i < 2; i++) {
		const struct wire_addr end = end_addr(i, is_ip6);
		struct mac_remote is = {.member = MEMBER};

		assert_int_equal(fib_vtep_hold(fake.fib, 0, &end, &vtep[i], NULL), 0);
		is.vtep = vtep[i];
		assert_int_equal(mac_remote_hold(table, &is, &remote[i], NULL), 0);
	}
	assert_int_equal(mac_set_flood(table, MEMBER, remote, n, NULL), 0);
}

void note_before(void)
{
	memcpy(&stat_before, &fake.stat, sizeof(stat_before));
}

void reset(bool is_ip6, uint16_t flags)
{
	struct mac_pending *pending;

	fake_reset(fake_variants[1]);
	fake.worker.macs = mac_live(table);
	fake.worker.tap = NULL;
	fake.worker.next_id = 0;
	device = (struct iface){.mtu = 9600,
		.is_bridge = true,
		.tunnel = {.kind = IFACE_VXLAN,
			.local = addr(is_ip6 ? "2001:db8:2::1" : "10.2.0.1"),
			.ttl = 64,
			.vxlan = NUMBER,
			.flags = flags,
			.dest_port = UDP_PORT,
			.key = VNI}};
	fake_set(DEVICE, &device);
	for (unsigned i = 0; i < FAKE_PORTS; i++) {
		fake.states[i].is_bridged = i < UNDER;
		fake.states[i].mtu = MTU;
	}
	for (unsigned i = 0; i < 3; i++)
		members[i] = (struct mac_member){.port = i < 2 ? i : (unsigned)MEMBER,
			.flags = MAC_LEARNS | MAC_FLOODS | MAC_LEARNS_REMOTES};
	bridge = (struct mac_bridge){.name = "br0",
		.ageing_s = 300,
		.max = 100,
		.member = members,
		.n_members = 3};
	assert_int_equal(mac_prepare(table, NULL, 0, &pending, NULL), 0);
	mac_commit(table, pending, rte_rdtsc());
	set_ends(is_ip6, 2);
	commit();
	note_before();
}

void reset_linux(uint8_t linuxs)
{
	const struct iface settings = {.is_bridge = true, .mtu = MTU, .mac = own};

	reset(false, 0);
	fake_reset(fake_variants[1]);
	fake.worker.macs = mac_live(table);
	fake_set(DEVICE, &device);
	fake_set(BRIDGE, &settings);
	for (unsigned i = 0; i < UNDER; i++)
		fake.states[i].is_bridged = true;
	for (unsigned i = 0; i < FAKE_PORTS; i++)
		fake.states[i].mtu = MTU;
	for (unsigned i = 0; i < 3; i++)
		members[i].flags |= MAC_OF_LINUX;
	bridge.linux_id = 1;
	bridge.linuxs = linuxs;
	bridge.is_routed = true;
	bridge.iface = BRIDGE;
	bridge.mac = own;
	commit();
	note_before();
}

void follow(unsigned host, uint32_t port)
{
	assert_true(mac_follow(table, 1, &(struct mac_fixed){mac_of(host), port, 0, false},
		rte_rdtsc()));
}

struct bytes frame(const uint8_t dst[6], unsigned from)
{
	const struct wire_mac source = mac_of(from);
	struct bytes made = {.n = LENGTH};

	memcpy(made.at, dst, 6);
	memcpy(made.at + 6, source.bytes, 6);
	made.at[12] = 0x88;
	made.at[13] = 0xb5;
	for (unsigned i = 14; i < LENGTH; i++)
		made.at[i] = i;
	return made;
}

struct bytes frame_between(unsigned to, unsigned from)
{
	return frame(mac_of(to).bytes, from);
}

void set_length(struct bytes *packet, bool is_ip6)
{
	const unsigned udp_at = is_ip6 ? 54 : 34, from = is_ip6 ? udp_at : 14;

	packet->at[is_ip6 ? 18 : 16] = (packet->n - from) >> 8;
	packet->at[is_ip6 ? 19 : 17] = packet->n - from;
	packet->at[udp_at + 4] = (packet->n - udp_at) >> 8;
	packet->at[udp_at + 5] = packet->n - udp_at;
	if (!is_ip6)
		frame_mend(packet);
}

struct bytes wrapped(const struct bytes *inner, unsigned i, bool is_ip6)
{
	const struct wire_addr from = addr(is_ip6 ? "2001:db8:2::1" : "10.2.0.1");
	const struct wire_addr to = end_addr(i, is_ip6);
	const unsigned n = is_ip6 ? OUTER6 : OUTER4, n_addr = is_ip6 ? 16 : 4;
	static const uint8_t link[] = {2, 0, 0, UNDER, 0, 2, 2, 0, 0, 0, 0, UNDER + 1};
	static const uint8_t tail[] = {0, 0, UDP_PORT >> 8, UDP_PORT & 0xff, 0, 0, 0, 0, 8, 0, 0, 0,
		1, 2, 3, 0};
	struct bytes made = {.n = n + inner->n};

	memcpy(made.at, link, sizeof(link));
	if (is_ip6)
		memcpy(made.at + 12, (uint8_t[]){0x86, 0xdd, 0x60, 0, 0, 0, 0, 0, 17, 64}, 10);
	else
		memcpy(made.at + 12, (uint8_t[]){8, 0, 0x45, 0, 0, 0, 0, 0, 0, 0, 64, 17}, 12);
	memcpy(made.at + (is_ip6 ? 22 : 26), from.bytes, n_addr);
	memcpy(made.at + (is_ip6 ? 22 : 26) + n_addr, to.bytes, n_addr);
	memcpy(made.at + n - sizeof(tail), tail, sizeof(tail));
	memcpy(made.at + n, inner->at, inner->n);
	set_length(&made, is_ip6);
	return made;
}

struct bytes arriving(const struct bytes *inner, unsigned i, bool is_ip6)
{
	struct bytes made = wrapped(inner, i, is_ip6);
	const unsigned at = is_ip6 ? 22 : 26, n = is_ip6 ? 16 : 4;
	uint8_t local[16];

	memcpy(local, made.at + at, n);
	memcpy(made.at + at, made.at + at + n, n);
	memcpy(made.at + at + n, local, n);
	memcpy(made.at, (uint8_t[]){2, 0, 0, 0, 0, UNDER + 1}, 6);
	return made;
}

uint16_t expect_wrapped(uint8_t port, unsigned k, struct bytes expected, bool is_ip6)
{
	const unsigned udp_at = is_ip6 ? 54 : 34;

	assert_true(k < fake.device[port].n_sent);
	const uint8_t *sent = rte_pktmbuf_mtod(fake.device[port].sent[k], const uint8_t *);
	memcpy(expected.at + udp_at, sent + udp_at, 2);
	if (!is_ip6) {
		memcpy(expected.at + 18, sent + 18, 2);
		frame_mend(&expected);
	}
	expect_bytes(fake.device[port].sent[k], &expected);
	return expected.at[udp_at] << 8 | expected.at[udp_at + 1];
}

void receive(uint8_t port, const struct bytes *made)
{
	note_before();
	fake_receive(port, made);
	fake_run();
	mac_poll(table, rte_rdtsc());
}

void expect_verdict(enum verdict verdict)
{
	assert_int_equal(fake.stat.verdict[verdict] - stat_before.verdict[verdict], 1);
}

unsigned n_sent(uint8_t port)
{
	return fake.device[port].n_sent;
}

void expect_refused(const struct bytes *packet, enum verdict verdict)
{
	receive(UNDER, packet);
	expect_verdict(verdict);
}
