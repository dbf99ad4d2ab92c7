// The numbers of VXLAN devices, by which workers find them. Control thread.
#include "netlink/bridges_inside.h"

static bool has(const struct ifaces *ifaces, unsigned number)
{
	const struct interface *one = interfaces_find(&ifaces->all, ifaces->tunnels.vxlan[number]);

	return one && one->is_known && one->vxlan == number + 1 && tunnels_carry_frames(one) &&
	       one->trouble == TUNNEL_FINE;
}

// Those that it takes back rest as long as workers have remote ends of theirs, or them in a bridge.
static void take_back(struct ifaces *ifaces)
{
	struct tunnels_of_linux *tunnels = &ifaces->tunnels;

	for (unsigned i = 0; i < tunnels->end_vxlan; i++)
		if (tunnels->vxlan[i] && !has(ifaces, i))
			tunnels->vxlan[i] = 0;
}

static void give(struct ifaces *ifaces, struct interface *one)
{
	struct tunnels_of_linux *tunnels = &ifaces->tunnels;

	one->vxlan = 0;
	for (unsigned tries = 0; tries < IFACE_MAX_VXLANS; tries++) {
		const unsigned number = tunnels->next_vxlan;

		tunnels->next_vxlan = (number + 1) % IFACE_MAX_VXLANS;
		if (tunnels->vxlan[number] || remotes_use(ifaces->mirror->bridges, number))
			continue;
		tunnels->vxlan[number] = one->ifindex;
		tunnels->end_vxlan = MAX_OF(tunnels->end_vxlan, number + 1);
		one->vxlan = (uint16_t)(number + 1);
		return;
	}
	one->trouble = TUNNEL_NO_NUMBER;
}

void vxlans_check(struct ifaces *ifaces)
{
	struct tunnels_of_linux *tunnels = &ifaces->tunnels;

	take_back(ifaces);
	for (struct interface *one = NULL;
		tunnels->n_vxlans && (one = interfaces_next(&ifaces->all, one));) {
		if (!one->is_known || !tunnels_carry_frames(one))
			continue;
		if (one->trouble != TUNNEL_FINE)
			one->vxlan = 0;
		else if (!one->vxlan || tunnels->vxlan[one->vxlan - 1] != one->ifindex)
			give(ifaces, one);
	}
}
