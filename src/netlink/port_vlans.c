// The VLANs of ports of Linux's bridges, as Linux has them. Control thread.
#include "netlink/ifaces_inside.h"

#include <stdlib.h>
#include <string.h>

static_assert((int)EVENT_VIDS == (int)MAC_VIDS, "sets are copied");

static unsigned count(const uint64_t set[])
{
	unsigned n = 0;

	for (unsigned i = 0; i < EVENT_VIDS / 64; i++)
		n += __builtin_popcountll(set[i]);
	return n;
}

// What workers may do with them: frames of odd ones are Linux's.
static void publish(struct ifaces *ifaces, struct port_vlans *vlans)
{
	const struct event_vlans *has = &vlans->has;
	struct mac_vlans next = {.pvid = has->pvid};

	vlans->n = count(has->has);
	vlans->n_odd = count(has->odd);
	for (unsigned i = 0; i < EVENT_VIDS / 64; i++) {
		next.has[i] = has->has[i] & ~has->odd[i];
		next.untagged[i] = has->untagged[i] & next.has[i];
	}
	if (!memcmp(&next, &vlans->workers, sizeof(next)))
		return;
	vlans->workers = next;
	vlans->version = ++ifaces->n_vlan_changes;
}

static void remove_bits(struct event_vlans *has, unsigned word, uint64_t bits)
{
	has->has[word] &= ~bits;
	has->untagged[word] &= ~bits;
	has->odd[word] &= ~bits;
	if (has->pvid / 64 == word && bits >> has->pvid % 64 & 1)
		has->pvid = 0;
}

static void take(struct port_vlans *vlans, const struct event *event)
{
	const struct event_vlans *told = &event->vlans;

	for (unsigned i = 0; i < EVENT_VIDS / 64; i++) {
		remove_bits(&vlans->has, i, told->has[i]);
		if (event->is_delete)
			continue;
		vlans->has.has[i] |= told->has[i];
		vlans->has.untagged[i] |= told->untagged[i];
		vlans->has.odd[i] |= told->odd[i];
		vlans->told[i] |= told->has[i];
	}
	if (told->pvid && !event->is_delete)
		vlans->has.pvid = told->pvid;
}

// NULL: there are none, or not enough memory.
static struct port_vlans *get(struct ifaces *ifaces, struct interface *one, bool is_delete)
{
	if (!one->vlans && !is_delete) {
		one->vlans = calloc(1, sizeof(*one->vlans));
		if (!one->vlans)
			ifaces_lost(ifaces, EVENT_VLANS);
	}
	return one->vlans;
}

void port_vlans_event(struct ifaces *ifaces, const struct event *event)
{
	struct interface *one = interfaces_find(&ifaces->all, event->vlans.ifindex);
	struct port_vlans *vlans = one ? get(ifaces, one, event->is_delete) : NULL;

	if (!vlans)
		return;
	if (vlans->dump != ifaces->dump)
		memset(vlans->told, 0, sizeof(vlans->told));
	vlans->dump = ifaces->dump;
	take(vlans, event);
	publish(ifaces, vlans);
	ifaces->is_dirty = true;
}

void port_vlans_sweep(struct ifaces *ifaces)
{
	for (struct interface *one = NULL; (one = interfaces_next(&ifaces->all, one));) {
		struct port_vlans *vlans = one->vlans;

		if (!vlans)
			continue;
		for (unsigned i = 0; i < EVENT_VIDS / 64; i++)
			remove_bits(&vlans->has, i,
				vlans->dump == ifaces->dump ? ~vlans->told[i] : ~0ull);
		publish(ifaces, vlans);
	}
	ifaces->is_dirty = true;
}
