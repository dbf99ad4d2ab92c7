// The list for people: what in Linux workers leave to it, interface by interface. Control thread.
#include "netlink/judge.h"

#include <net/if.h>
#include <stdio.h>

static bool tell_reasons(const struct interface *one,
	bool (*tell)(void *arg, const struct netlink_unsupported *one), void *arg)
{
	for (unsigned i = 0; i < N_IFACE_REASONS; i++) {
		struct netlink_unsupported told = {.n = 1};

		if (!(one->reasons & 1u << i))
			continue;
		snprintf(told.what, sizeof(told.what), "%s", iface_reason[i].what);
		snprintf(told.where, sizeof(told.where), "%s", one->iface.name);
		snprintf(told.effect, sizeof(told.effect), "%s", iface_reason[i].effect);
		if (!tell(arg, &told))
			return false;
	}
	return true;
}

// Linux takes them for its own all the same, and names no local route by which workers would.
static bool tell_hidden_addresses(const struct interface *one,
	bool (*tell)(void *arg, const struct netlink_unsupported *one), void *arg)
{
	struct netlink_unsupported told = {.n = one->n_addresses4,
		.what = "IPv4 address on an interface that is set down",
		.effect = "workers forward packets that say they come from it; Linux drops them"};

	if (!one->is_known || !one->n_addresses4 || one->iface.flags & IFF_UP)
		return true;
	snprintf(told.where, sizeof(told.where), "%s", one->iface.name);
	return tell(arg, &told);
}

void ifaces_unsupported(const struct ifaces *ifaces,
	bool (*tell)(void *arg, const struct netlink_unsupported *one), void *arg)
{
	if (!foreign_unsupported(ifaces, tell, arg))
		return;
	for (const struct interface *one = NULL; (one = interfaces_next(&ifaces->all, one));)
		if (!tell_reasons(one, tell, arg) || !tell_hidden_addresses(one, tell, arg))
			return;
}
