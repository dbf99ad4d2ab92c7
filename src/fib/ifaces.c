// What follows from a change of an interface: for its next hops, neighbours and workers. Control
// thread.
#include "fib/table.h"

#include <errno.h>

void fib_iface_delete(struct fib *fib, uint16_t iface)
{
	if (!fib_iface(fib, iface))
		return;
	iface_delete(&fib->ifaces, iface);
	hops_rewrite_iface(&fib->hops, iface);
	iface_publish(&fib->ifaces, iface);
	tunnels_iface_changed(fib, iface);
	vxlans_iface_changed(fib, iface);
	tunnels_follow(fib);
}

const struct iface *fib_iface(const struct fib *fib, uint16_t iface)
{
	return iface_current(&fib->ifaces, iface);
}

// The port or the tags of an index change. A worker may have checked a packet with the old ones and
// would write its header with the new ones, so nothing is sent there until a grace period has
// passed.
static void forget_place(struct fib *fib, uint16_t iface)
{
	fib_iface_delete(fib, iface);
	rcu_defer_wait(&fib->defer);
}

int fib_iface_set(struct fib *fib, uint16_t iface, const struct iface *settings)
{
	if (!iface_is_sound(&fib->ifaces, iface, settings) || !vrf_exists(fib, settings->vrf))
		return -EINVAL;
	if (hosts_follow_iface(fib, iface, settings->vrf))
		return -ENOSPC;
	if (iface_moves(&fib->ifaces, iface, settings))
		forget_place(fib, iface);
	iface_set(&fib->ifaces, iface, settings);
	hops_rewrite_iface(&fib->hops, iface);
	iface_publish(&fib->ifaces, iface);
	tunnels_iface_changed(fib, iface);
	vxlans_iface_changed(fib, iface);
	tunnels_follow(fib);
	return 0;
}
