// Passes what Linux tells of bridges to those who store it. Control thread.
#include "netlink/bridges_inside.h"

#include "base/clock.h"

void bridges_look_again(struct bridges *bridges)
{
	const uint64_t now_ns = clock_now_ns();

	if (!bridges->mirror->settings.macs || !bridges->now.n)
		return;
	floods_poll(bridges);
	if (queriers_poll(bridges, now_ns))
		mdb_poll(bridges, now_ns);
}

void bridges_event(struct bridges *bridges, const struct event *event)
{
	if (event->kind == EVENT_FDB)
		fdb_event(bridges, &event->fdb, event->is_delete);
	else if (event->kind == EVENT_REMOTE)
		remotes_event(bridges, &event->remote, event->is_delete);
	else if (event->kind == EVENT_GROUPS)
		mdb_event(bridges, event);
	else if (event->is_delete) {
		mdb_bridge_gone(bridges, event->iface.ifindex);
		remotes_device_gone(bridges, event->iface.ifindex);
	} else {
		const struct iface_tunnel *tunnel = &event->iface.tunnel.settings;

		remotes_set_only(bridges, event->iface.ifindex,
			tunnel->kind == IFACE_GRETAP ? &tunnel->remote : NULL);
	}
}

void bridges_dump_begins(struct bridges *bridges)
{
	bridges->fdb.dump++;
	mdb_dump_begins(&bridges->mdb);
	if (bridges->mirror->settings.macs)
		mac_set_partial(bridges->mirror->settings.macs, true);
}

void bridges_dump_ends(struct bridges *bridges, uint32_t partial)
{
	if (!event_kinds_have(partial, EVENT_FDB)) {
		remotes_dump_ends(bridges);
		fdb_sweep(&bridges->fdb);
	}
	if (!event_kinds_have(partial, EVENT_GROUPS))
		mdb_dump_ends(bridges);
}

void bridges_info(const struct bridges *bridges, struct netlink_info *out)
{
	out->control_bytes += fdb_bytes(&bridges->fdb) + remotes_bytes(&bridges->remotes) +
	                      mdb_bytes(&bridges->mdb);
}
