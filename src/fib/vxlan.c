// See vxlan.h: what workers read of VXLAN devices (RFC 7348), and of those of frames in GRE (RFC
// 2784, 2890). Control thread; workers find the former with fib_vxlan_find.
#include "fib/vxlan.h"

#include "base/pages.h"
#include "fib/table.h"
#include "wire/checksum.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { FIRST_PORT = 49152, LAST_PORT = 65535, HAS_VNI = 0x08 };
enum { GRE_CHECKSUM = 0x8000, GRE_KEY = 0x2000, GRE_FRAMES = 0x6558, DEFAULT_TTL = 64 };

static uint32_t place_of(const struct fib_vxlan_ends *ends, uint64_t key)
{
	return (key * 0x9e3779b97f4a7c15ull >> 32) & ends->mask;
}

uint16_t fib_vxlan_find(const struct fib_vxlan_ends *ends, uint64_t key)
{
	uint32_t at = place_of(ends, key);

	while (ends->end[at].key && ends->end[at].key != key)
		at = (at + 1) & ends->mask;
	return ends->end[at].key ? ends->end[at].vxlan : FIB_MAX_VXLANS;
}

bool fib_vxlan_has_port(const struct fib_vxlan_ends *ends, uint16_t udp_port)
{
	for (uint32_t i = 0; i < ends->n_udp; i++)
		if (ends->udp[i] == udp_port)
			return true;
	return false;
}

static void append(struct fib_vxlan *built, const void *bytes, unsigned n)
{
	memcpy(built->bytes + built->n_bytes, bytes, n);
	built->n_bytes += n;
}

static uint8_t protocol_of(const struct iface_tunnel *tunnel)
{
	return tunnel->kind == IFACE_GRETAP ? WIRE_PROTO_GRE : WIRE_PROTO_UDP;
}

static void append_outer4(struct fib_vxlan *built, const struct iface_tunnel *tunnel)
{
	struct wire_ip4 ip = {.version_ihl = 0x45,
		.dscp_ecn = tunnel->tos & 0xfc,
		.ttl = tunnel->ttl,
		.protocol = protocol_of(tunnel)};

	memcpy(ip.src, tunnel->local.bytes, sizeof(ip.src));
	append(built, &ip, sizeof(ip));
	ip.dscp_ecn = ip.ttl = ip.protocol = 0;
	const uint64_t sum = wire_sum(0, &ip, sizeof(ip));
	built->sum = (sum & 0xffff) + (sum >> 16 & 0xffff) + (sum >> 32 & 0xffff) + (sum >> 48);
}

// Linux gives packets of GRE over IPv6 that inherit nothing a hop limit of its own.
static void append_outer6(struct fib_vxlan *built, const struct iface_tunnel *tunnel)
{
	const bool is_gre = tunnel->kind == IFACE_GRETAP;
	const bool has_limit = is_gre && tunnel->flags & IFACE_TUNNEL_LIMIT;
	const uint8_t option[] = {WIRE_PROTO_GRE, 0, 4, 1, tunnel->limit, 1, 1, 0};
	struct wire_ip6 ip = {.version_class_flow_be =
				      htobe32(6u << 28 | (uint32_t)(tunnel->tos & 0xfc) << 20),
		.next_header = has_limit ? WIRE_PROTO_DESTINATION : protocol_of(tunnel),
		.hop_limit = is_gre && !tunnel->ttl ? DEFAULT_TTL : tunnel->ttl};

	memcpy(ip.src, tunnel->local.bytes, sizeof(ip.src));
	append(built, &ip, sizeof(ip));
	if (has_limit)
		append(built, option, sizeof(option));
}

static void append_vxlan(struct fib_vxlan *built, const struct iface_tunnel *tunnel)
{
	const struct wire_udp udp = {.dst_port_be = htobe16(tunnel->dest_port)};
	const uint32_t vxlan_be[] = {htobe32((uint32_t)HAS_VNI << 24), htobe32(tunnel->key << 8)};
	const uint16_t first = tunnel->source_port ? tunnel->source_port : FIRST_PORT;
	const uint16_t last = tunnel->source_port ? tunnel->last_source_port : LAST_PORT;

	built->first_port = first;
	built->n_ports = last - first + 1;
	append(built, &udp, sizeof(udp));
	append(built, vxlan_be, sizeof(vxlan_be));
}

static void append_gre(struct fib_vxlan *built, const struct iface_tunnel *tunnel)
{
	const bool has_sum = tunnel->flags & IFACE_TUNNEL_CHECKSUM;
	const bool has_key = tunnel->flags & IFACE_TUNNEL_KEY;
	const uint32_t first = (has_sum ? GRE_CHECKSUM : 0) | (has_key ? GRE_KEY : 0);
	const uint32_t word_be = htobe32(first << 16 | GRE_FRAMES), none = 0;
	const uint32_t key_be = htobe32(tunnel->key);

	append(built, &word_be, sizeof(word_be));
	if (has_sum) {
		built->sum_at = built->n_bytes;
		append(built, &none, sizeof(none));
	}
	if (has_key)
		append(built, &key_be, sizeof(key_be));
}

// NULL: there is no memory; then its frames are not sent.
static struct fib_vxlan *build(uint16_t iface, const struct iface_tunnel *tunnel)
{
	struct fib_vxlan *built = aligned_alloc(CACHE_LINE_BYTES, sizeof(*built));
	const bool is_gre6 = tunnel->kind == IFACE_GRETAP && tunnel->local.family == 6;

	if (!built)
		return NULL;
	*built = (struct fib_vxlan){.vni = tunnel->key,
		.flags = tunnel->flags,
		.iface = iface,
		.vrf = tunnel->vrf,
		.is_ip6 = tunnel->local.family == 6,
		.takes_tos = tunnel->flags & IFACE_TUNNEL_TOS,
		.takes_ttl = !tunnel->ttl && !is_gre6};
	if (built->is_ip6)
		append_outer6(built, tunnel);
	else
		append_outer4(built, tunnel);
	if (tunnel->kind == IFACE_GRETAP)
		append_gre(built, tunnel);
	else
		append_vxlan(built, tunnel);
	return built;
}

static const struct iface_tunnel *tunnel_of(const struct fib *fib, uint16_t iface)
{
	const struct iface *now = iface_current(&fib->ifaces, iface);

	return now && iface_carries_frames(now) ? &now->tunnel : NULL;
}

static void add_end(struct fib_vxlan_ends *ends, uint16_t number, const struct iface_tunnel *tunnel)
{
	const uint64_t key = fib_vxlan_key(tunnel->local.family == 6, tunnel->vrf,
		tunnel->dest_port, tunnel->key);
	uint32_t at = place_of(ends, key);

	if (!fib_vxlan_has_port(ends, tunnel->dest_port)) {
		if (ends->n_udp == FIB_MAX_VXLAN_PORTS)
			return;
		ends->udp[ends->n_udp++] = tunnel->dest_port;
	}
	while (ends->end[at].key && ends->end[at].key != key)
		at = (at + 1) & ends->mask;
	if (!ends->end[at].key)
		ends->end[at] = (struct fib_vxlan_end){key, number};
}

// At most half full. NULL: there are none, or there is no memory: then Linux gets their packets.
static struct fib_vxlan_ends *make_ends(const struct fib *fib)
{
	const struct vxlans *vxlans = &fib->vxlans;
	uint32_t places = 4;

	while (places < 2 * vxlans->n)
		places *= 2;
	struct fib_vxlan_ends *ends =
		vxlans->n ? calloc(1, sizeof(*ends) + places * sizeof(ends->end[0])) : NULL;
	if (!ends)
		return NULL;
	ends->mask = places - 1;
	for (unsigned i = 0; i < FIB_MAX_VXLANS; i++)
		if (vxlans->iface[i] && tunnel_of(fib, vxlans->iface[i])->kind == IFACE_VXLAN)
			add_end(ends, i, tunnel_of(fib, vxlans->iface[i]));
	return ends;
}

static void *as_writable(const void *pointer)
{
	return (void *)(uintptr_t)pointer;
}

static unsigned find(const struct vxlans *vxlans, uint16_t iface)
{
	unsigned i = 0;

	while (i < FIB_MAX_VXLANS && vxlans->iface[i] != iface)
		i++;
	return i;
}

// Two devices of one number: the one that had it loses it.
static void publish(struct fib *fib, unsigned was, unsigned is, struct fib_vxlan *built)
{
	struct fib_overlay *overlay = fib->vxlans.overlay;
	const struct fib_vxlan_ends *old_ends = overlay->ends;
	const struct fib_vxlan *old[2] = {NULL, NULL};

	if (was < FIB_MAX_VXLANS && was != is) {
		old[0] = overlay->vxlan[was];
		__atomic_store_n(&overlay->vxlan[was], NULL, __ATOMIC_RELEASE);
	}
	if (is < FIB_MAX_VXLANS) {
		old[1] = overlay->vxlan[is];
		// Pairs with fib_vxlan_load.
		__atomic_store_n(&overlay->vxlan[is], built, __ATOMIC_RELEASE);
	}
	__atomic_store_n(&overlay->ends, make_ends(fib), __ATOMIC_RELEASE);
	if (old_ends || old[0] || old[1])
		rcu_defer_wait(&fib->defer);
	free(as_writable(old_ends));
	free(as_writable(old[0]));
	free(as_writable(old[1]));
}

void vxlans_iface_changed(struct fib *fib, uint16_t iface)
{
	struct vxlans *vxlans = &fib->vxlans;
	const struct iface_tunnel *tunnel = tunnel_of(fib, iface);
	const unsigned was = vxlans->n && iface ? find(vxlans, iface) : FIB_MAX_VXLANS;
	const unsigned is = tunnel ? tunnel->vxlan : FIB_MAX_VXLANS;

	if (was == FIB_MAX_VXLANS && !tunnel)
		return;
	if (was < FIB_MAX_VXLANS) {
		vxlans->iface[was] = 0;
		vxlans->n--;
	}
	if (tunnel) {
		vxlans->n += !vxlans->iface[is];
		vxlans->iface[is] = iface;
	}
	publish(fib, was, is, tunnel ? build(iface, tunnel) : NULL);
}

static const size_t VTEP_BYTES = (FIB_MAX_VTEPS + 1) * sizeof(struct vtep);
static const size_t SHOWN_BYTES = (FIB_MAX_VTEPS + 1) * sizeof(struct fib_vtep);
static const size_t NUMBER_BYTES = (FIB_MAX_VTEPS + 1) * sizeof(uint32_t);
enum { FIRST_BUCKETS = 64 };

static void *alloc_sparse(size_t bytes)
{
	void *memory = pages_alloc(bytes);

	pages_keep_small(memory, bytes);
	return memory;
}

int vxlans_open(struct vxlans *vxlans)
{
	*vxlans = (struct vxlans){.overlay = alloc_sparse(sizeof(*vxlans->overlay)),
		.iface = alloc_sparse(FIB_MAX_VXLANS * sizeof(*vxlans->iface)),
		.vtep = alloc_sparse(VTEP_BYTES),
		.shown = alloc_sparse(SHOWN_BYTES),
		.unused = alloc_sparse(NUMBER_BYTES)};
	if (!vxlans->overlay || !vxlans->iface || !vxlans->vtep || !vxlans->shown ||
		!vxlans->unused || hash_table_init(&vxlans->table, FIRST_BUCKETS)) {
		vxlans_close(vxlans);
		return -ENOMEM;
	}
	vxlans->overlay->vtep = vxlans->shown;
	return 0;
}

static void keep(void *entry)
{
	(void)entry; // in vxlans->vtep
}

void vxlans_close(struct vxlans *vxlans)
{
	hash_table_free(&vxlans->table, keep);
	for (uint32_t i = 1; i <= vxlans->max; i++)
		free(vxlans->vtep[i].group);
	for (unsigned i = 0; vxlans->overlay && i < FIB_MAX_VXLANS; i++)
		free(as_writable(vxlans->overlay->vxlan[i]));
	if (vxlans->overlay)
		free(as_writable(vxlans->overlay->ends));
	pages_free(vxlans->overlay, sizeof(*vxlans->overlay));
	pages_free(vxlans->iface, FIB_MAX_VXLANS * sizeof(*vxlans->iface));
	pages_free(vxlans->vtep, VTEP_BYTES);
	pages_free(vxlans->shown, SHOWN_BYTES);
	pages_free(vxlans->unused, NUMBER_BYTES);
}

size_t vxlans_bytes(const struct vxlans *vxlans)
{
	const struct fib_vxlan_ends *ends = vxlans->overlay->ends;

	return sizeof(*vxlans->overlay) + vxlans->n * sizeof(struct fib_vxlan) +
	       (ends ? sizeof(*ends) + (ends->mask + 1) * sizeof(ends->end[0]) : 0) +
	       (vxlans->max + 1) * sizeof(*vxlans->shown);
}
