// Tells Linux of hosts whose frames workers forward: it does not see these frames, and would forget
// the hosts; nor does it see the first frame of one that workers flood. Control thread.
#include "netlink/bridges_inside.h"

#include "base/clock.h"

#include <rte_cycles.h>

enum {
	PAGE_MACS = 256,
	LONGEST_ROUND_S = 30,
	LONGEST_ROUND_STP_S = 5,
	ROUNDS_WHILE_AGEING = 10,
	TURN_NS = 2000000
};

static const uint64_t SECOND_NS = 1000000000;

// In seconds: the bridge that forgets first counts. After a change of the spanning tree, a bridge
// forgets after its forward delay, 15 s by default.
static uint64_t round_s(const struct bridges *bridges)
{
	uint32_t least_s = LONGEST_ROUND_S;

	for (unsigned i = 0; i < bridges->now.n; i++) {
		const struct served *one = &bridges->now.bridge[i];

		least_s = MIN_OF(least_s, one->is.ageing_s / ROUNDS_WHILE_AGEING);
		if (one->runs_stp)
			least_s = MIN_OF(least_s, (uint32_t)LONGEST_ROUND_STP_S);
	}
	for (unsigned i = 0; i < bridges->now.n_tunnels; i++)
		if (bridges->now.tunnel[i].ageing_s) // 0: it forgets nothing
			least_s = MIN_OF(least_s,
				bridges->now.tunnel[i].ageing_s / ROUNDS_WHILE_AGEING);
	return MAX_OF(least_s, 1u);
}

static const struct served_tunnel *tunnel_at(const struct bridges *bridges, uint16_t member)
{
	const uint16_t at =
		member < MAC_FIRST_TUNNEL ? 0 : bridges->now.of_number[member - MAC_FIRST_TUNNEL];

	return at ? &bridges->now.tunnel[at - 1] : NULL;
}

// The table of a VXLAN device is refreshed, too, unless somebody else has written the entry.
static struct mirror_seen seen_of(const struct bridges *bridges, const struct mac_info *info)
{
	const struct mirror_settings *settings = &bridges->mirror->settings;
	const struct served_tunnel *tunnel = tunnel_at(bridges, info->port);
	struct mirror_seen seen = {.mac = info->mac, .vlan = info->vlan};
	const struct event_remote *remote;

	if (info->port < MAC_PORTS)
		seen.ifindex = settings->tap[info->port];
	if (!tunnel)
		return seen;
	seen.ifindex = tunnel->ifindex;
	seen.is_alone = bridges->now.bridge[tunnel->of].is_tunnel;
	remote = remotes_find(bridges, tunnel->ifindex, &info->mac);
	if (remote && remote->is_learnt)
		seen.end = remote->addr;
	return seen;
}

// Addresses of one page that workers have seen in the last `recent_s`.
static void refresh_page(struct bridges *bridges, uint64_t recent_s)
{
	static const struct mac_choice all = {0, MAC_PORTS};
	const struct mirror_settings *settings = &bridges->mirror->settings;
	struct mac_info info[PAGE_MACS];
	struct mirror_seen seen[PAGE_MACS];
	unsigned n_seen = 0;
	const unsigned n =
		mac_page(settings->macs, &all, rte_rdtsc(), &bridges->place, info, PAGE_MACS);

	for (unsigned i = 0; i < n; i++)
		if (info[i].is_linux && !info[i].is_unseen && info[i].idle_s <= recent_s)
			seen[n_seen++] = seen_of(bridges, &info[i]);
	if (n_seen)
		settings->ops.macs_seen(settings->ops.ops, seen, n_seen);
}

void mirror_learn(struct mirror *mirror, const struct mac_info *info)
{
	const struct mirror_ops *ops = &mirror->settings.ops;
	const struct bridges *bridges = mirror->bridges;
	const struct served_tunnel *tunnel = tunnel_at(bridges, info->port);
	struct mirror_seen seen = seen_of(bridges, info);

	seen.end.family = 0;
	if (tunnel && tunnel->member.flags & MAC_LEARNS_REMOTES &&
		(!remotes_knows(bridges, tunnel->ifindex, &info->mac) ||
			remotes_has_learnt(bridges, tunnel->ifindex, &info->mac))) {
		seen.end = info->end;
		seen.is_new = true;
	}
	if (ops->macs_seen && seen.ifindex && (!seen.is_alone || seen.end.family))
		ops->macs_seen(ops->ops, &seen, 1);
}

// Linux handles each report at once, and may have to wait for its lock: a turn ends after 2 ms.
void mirror_refresh_macs(struct mirror *mirror, uint64_t now_ns)
{
	struct bridges *bridges = mirror->bridges;
	const uint64_t every_s = round_s(bridges), until_ns = clock_now_ns() + TURN_NS;

	bridges_retry(bridges, now_ns);
	if (!bridges->now.n || !mirror->settings.ops.macs_seen)
		return;
	if (!bridges->place) {
		const uint64_t since_s = (now_ns - bridges->began_ns) / SECOND_NS;

		if (bridges->began_ns && since_s < every_s)
			return;
		bridges->recent_s = bridges->began_ns ? since_s + 1 : every_s;
		bridges->began_ns = now_ns;
	}
	do
		refresh_page(bridges, bridges->recent_s);
	while (bridges->place && clock_now_ns() < until_ns);
}
