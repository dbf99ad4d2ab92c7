// See tunnels.h. Control thread; workers find ends with fib_end_find.
#include "fib/tunnels.h"

#include "base/bits.h"
#include "base/hash_table.h"
#include "base/vector.h"
#include "fib/table.h"
#include "wire/headers.h"

#include <stdlib.h>
#include <string.h>

void tunnels_close(struct tunnels *tunnels)
{
	free(tunnels->iface);
	free(tunnels->ends);
}

static uint32_t hash_of(const struct fib_end_key *key)
{
	return hash_table_hash(key->local, key->key) ^
	       hash_table_hash(key->remote, (uint32_t)key->vrf << 8 | key->carrier << 1);
}

const struct fib_end *fib_end_find(const struct fib_ends *ends, const struct fib_end_key *key)
{
	for (uint32_t i = ends->first[hash_of(key) & ends->mask]; i; i = ends->end[i - 1].next)
		if (!memcmp(&ends->end[i - 1].key, key, sizeof(*key)))
			return &ends->end[i - 1];
	return NULL;
}

const struct fib_udp_end *fib_udp_end_find(const struct fib_ends *ends, uint16_t port, bool is_ip6)
{
	for (uint32_t i = 0; i < ends->n_udp; i++)
		if (ends->udp[i].port == port &&
			ends->udp[i].flags & (is_ip6 ? FIB_UDP_IP6 : FIB_UDP_IP4))
			return &ends->udp[i];
	return NULL;
}

// Whether packets to its UDP port are received by this tunnel, and not by those of Linux.
static bool has_port(const struct iface_tunnel *tunnel)
{
	return tunnel->flags & IFACE_TUNNEL_UDP && !(tunnel->flags & IFACE_TUNNEL_LINUX);
}

// All tunnels with a port have the same in it, but some may take no checksum. A port of
// fib_udp_ends_set stays as it is.
static void add_udp(struct fib_ends *ends, const struct iface_tunnel *tunnel)
{
	const struct fib_udp_end end = {.port = tunnel->dest_port,
		.protocol = tunnel->flags & IFACE_TUNNEL_MPLS ? WIRE_PROTO_MPLS : 0,
		.flags = FIB_UDP_IP4 | FIB_UDP_IP6 | FIB_UDP_BY_PORT |
	                 (tunnel->flags & IFACE_TUNNEL_ZERO_CHECKSUM ? FIB_UDP_ZERO : 0)};
	uint32_t i = 0;

	while (i < ends->n_udp && ends->udp[i].port != end.port)
		i++;
	if (i == ends->n_udp && i < FIB_MAX_UDP_ENDS)
		ends->udp[ends->n_udp++] = end;
	else if (i < ends->n_udp && ends->udp[i].flags & FIB_UDP_BY_PORT)
		ends->udp[i].flags |= end.flags;
}

static void add_end(struct fib_ends *ends, uint16_t iface, const struct iface_tunnel *tunnel,
	enum fib_carrier carrier)
{
	struct fib_end *end = &ends->end[ends->n_ends++];
	const bool is_gre = carrier == FIB_IP_IN_GRE || carrier == FIB_FRAMES_IN_GRE;
	const bool has_key = is_gre && tunnel->flags & IFACE_TUNNEL_WANTS_KEY;

	memset(end, 0, sizeof(*end));
	memcpy(end->key.local, tunnel->local.bytes, sizeof(end->key.local));
	memcpy(end->key.remote, tunnel->remote.bytes, sizeof(end->key.remote));
	end->key.key = has_key ? tunnel->wanted_key : has_port(tunnel) ? tunnel->dest_port : 0;
	end->key.vrf = tunnel->vrf;
	end->key.is_ip6 = tunnel->local.family == 6;
	end->key.carrier = carrier;
	end->key.has_key = has_key;
	end->iface = iface;
	end->vxlan = tunnel->vxlan;
	end->flags = tunnel->flags;
	uint32_t *first = (uint32_t *)&ends->first[hash_of(&end->key) & ends->mask];
	end->next = *first;
	*first = ends->n_ends;
}

static void add_tunnel(struct fib_ends *ends, uint16_t iface, const struct iface_tunnel *tunnel)
{
	if (has_port(tunnel))
		add_udp(ends, tunnel);
	if (tunnel->kind == IFACE_GRE || tunnel->kind == IFACE_GRETAP) {
		add_end(ends, iface, tunnel,
			tunnel->kind == IFACE_GRE ? FIB_IP_IN_GRE : FIB_FRAMES_IN_GRE);
		return;
	}
	if (tunnel->flags & IFACE_TUNNEL_IP4)
		add_end(ends, iface, tunnel, FIB_IP4_IN_IP);
	if (tunnel->flags & IFACE_TUNNEL_IP6)
		add_end(ends, iface, tunnel, FIB_IP6_IN_IP);
	if (tunnel->flags & IFACE_TUNNEL_MPLS)
		add_end(ends, iface, tunnel, FIB_MPLS_IN_IP);
}

// NULL: there are none, or there is no memory: then Linux gets their packets.
static struct fib_ends *make_ends(const struct fib *fib)
{
	const size_t most = (N_FIB_CARRIERS - 1) * fib->tunnels.n;
	uint32_t slots = 1;

	while (slots < most)
		slots *= 2;
	struct fib_ends *ends = fib->tunnels.n
	                                ? calloc(1, sizeof(*ends) + most * sizeof(struct fib_end) +
							    slots * sizeof(*ends->first))
	                                : NULL;
	if (!ends)
		return NULL;
	ends->mask = slots - 1;
	ends->first = (const uint32_t *)&ends->end[most];
	ends->n_udp = fib->tunnels.n_udp;
	memcpy(ends->udp, fib->tunnels.udp, sizeof(ends->udp));
	for (size_t i = 0; i < fib->tunnels.n; i++)
		add_tunnel(ends, fib->tunnels.iface[i],
			&iface_current(&fib->ifaces, fib->tunnels.iface[i])->tunnel);
	return ends;
}

static void publish_ends(struct fib *fib)
{
	struct fib_ends *old = fib->tunnels.ends;

	__atomic_store_n(&fib->tunnels.ends, make_ends(fib), __ATOMIC_RELEASE);
	if (!old)
		return;
	rcu_defer_wait(&fib->defer);
	free(old);
}

void fib_udp_ends_set(struct fib *fib, const struct fib_udp_end *ends, unsigned n)
{
	struct tunnels *tunnels = &fib->tunnels;

	tunnels->n_udp = MIN_OF(n, FIB_MAX_UDP_ENDS);
	memset(tunnels->udp, 0, sizeof(tunnels->udp));
	for (unsigned i = 0; i < tunnels->n_udp; i++)
		tunnels->udp[i] = ends[i];
	if (tunnels->n)
		publish_ends(fib);
}

static size_t find(const struct tunnels *tunnels, uint16_t iface)
{
	size_t i = 0;

	while (i < tunnels->n && tunnels->iface[i] != iface)
		i++;
	return i;
}

static void mark(struct hops *hops, uint32_t id)
{
	hops->hop[id].is_under = 1;
	if (hops->hop[id].key.kind != FIB_GROUP)
		return;
	const struct group *group = &hops->groups->group[groups_number(&hops->hop[id].key)];
	for (unsigned i = 0; i < group->n_members; i++)
		hops->hop[group->member[i]].is_under = 1;
}

// The remote end is reached by another hop from now on; 0: by none.
static void lead(struct hops *hops, uint16_t iface, uint32_t id)
{
	const uint32_t old = hops->under[iface];

	if (id) {
		hops->hop[id].n_holders++;
		mark(hops, id);
	}
	hops->under[iface] = id;
	if (old)
		hops_release(hops, old);
}

void tunnels_iface_changed(struct fib *fib, uint16_t iface)
{
	struct tunnels *tunnels = &fib->tunnels;
	const struct iface *now = iface_current(&fib->ifaces, iface);
	const bool is_tunnel = now && (iface_is_tunnel(now) || now->tunnel.kind == IFACE_GRETAP);
	const size_t i = find(tunnels, iface);

	if (!is_tunnel && i == tunnels->n)
		return;
	if (is_tunnel && i == tunnels->n) {
		if (vector_reserve(&tunnels->iface, &tunnels->capacity, tunnels->n + 1,
			    sizeof(*tunnels->iface)))
			return; // its hops have no way then
		tunnels->iface[tunnels->n++] = iface;
	} else if (!is_tunnel) {
		tunnels->iface[i] = tunnels->iface[--tunnels->n];
		lead(&fib->hops, iface, 0);
	}
	publish_ends(fib);
	fib->hops.under_changed = true;
}

static uint32_t find_way(const struct fib *fib, uint16_t iface)
{
	const struct iface_tunnel *tunnel = &iface_current(&fib->ifaces, iface)->tunnel;
	struct fib_answer answer;

	rib_lookup(fib, tunnel->vrf, &tunnel->remote, &answer);
	return answer.hop.iface == iface ? 0 : answer.hop_id;
}

void tunnels_follow(struct fib *fib)
{
	struct hops *hops = &fib->hops;
	const bool changed = hops->under_changed;

	hops->under_changed = false;
	vteps_follow(fib);
	if (!fib->tunnels.n)
		return;
	for (size_t i = 0; i < fib->tunnels.n; i++) {
		const uint16_t iface = fib->tunnels.iface[i];

		if (!iface_is_tunnel(iface_current(&fib->ifaces, iface)))
			continue; // see vteps_follow
		const uint32_t way = find_way(fib, iface);
		if (way == hops->under[iface] && !changed)
			continue;
		if (way != hops->under[iface])
			lead(hops, iface, way);
		else if (way)
			mark(hops, way);
		hops_rewrite_iface(hops, iface);
	}
	hops->under_changed = false; // hops into tunnels are not followed
	hops_sweep(hops);
}
