// The numbers of VXLAN devices, by which workers find them. Control thread.
#include "netlink/bridges_inside.h"

#include "fib/fib_fast.h"

// The UDP ports of the devices that have a number; workers receive on so many.
struct udp_ports {
	uint16_t port[FIB_MAX_VXLAN_PORTS];
	unsigned n;
};

// Whether workers receive on the port of this device; GRE has none.
static bool add_port(struct udp_ports *ports, const struct interface *one)
{
	const uint16_t wanted = one->iface.tunnel.settings.dest_port;
	unsigned i = 0;

	if (one->iface.tunnel.settings.kind != IFACE_VXLAN)
		return true;
	while (i < ports->n && ports->port[i] != wanted)
		i++;
	if (i == FIB_MAX_VXLAN_PORTS)
		return false;
	ports->port[i] = wanted;
	ports->n += i == ports->n;
	return true;
}

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

static void give(struct ifaces *ifaces, struct interface *one, struct udp_ports *ports)
{
	struct tunnels_of_linux *tunnels = &ifaces->tunnels;

	one->vxlan = 0;
	if (!add_port(ports, one)) {
		one->trouble = TUNNEL_VXLAN_PORT;
		return;
	}
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

static bool has_number(const struct tunnels_of_linux *tunnels, const struct interface *one)
{
	return one->vxlan && tunnels->vxlan[one->vxlan - 1] == one->ifindex;
}

// Devices that have a number keep it, and their port, before others get one.
void vxlans_check(struct ifaces *ifaces)
{
	struct tunnels_of_linux *tunnels = &ifaces->tunnels;
	struct udp_ports ports = {.n = 0};

	take_back(ifaces);
	for (unsigned is_new = 0; is_new < 2; is_new++)
		for (struct interface *one = NULL;
			tunnels->n_vxlans && (one = interfaces_next(&ifaces->all, one));) {
			if (!one->is_known || !tunnels_carry_frames(one))
				continue;
			if (one->trouble != TUNNEL_FINE)
				one->vxlan = 0;
			else if (has_number(tunnels, one) == is_new)
				continue;
			else if (is_new)
				give(ifaces, one, &ports);
			else if (!add_port(&ports, one))
				one->trouble = TUNNEL_VXLAN_PORT;
		}
}
