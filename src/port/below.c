// Linux interfaces that hand over several frames as one: what is longer than the MTU is cut off in
// the ring that net_af_packet reads. Control thread.
#include "base/log.h"
#include "port/room.h"

#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <string.h>
#include <sys/ioctl.h>

// The value of an interface's setting; 0 where it does not say.
static uint32_t ask(int socket, const char *iface, uint32_t what)
{
	struct ethtool_value value = {.cmd = what};
	struct ifreq request = {.ifr_data = (void *)&value};

	strncpy(request.ifr_name, iface, IFNAMSIZ - 1);
	return ioctl(socket, SIOCETHTOOL, &request) ? 0 : value.data;
}

void merging_warn(const struct port_room *room, unsigned port)
{
	const struct kind *kind = &room->devices[port].kind;
	char label[48];

	if (!kind->iface[0] || !kind->slot_bytes || room->link_socket < 0)
		return;
	if (!ask(room->link_socket, kind->iface, ETHTOOL_GGRO) &&
		!(ask(room->link_socket, kind->iface, ETHTOOL_GFLAGS) & ETH_FLAG_LRO))
		return;
	log_warn(
		"%s: Linux may merge frames that come in on %s, and what is longer than a frame is "
		"cut; switch that off: ethtool -K %s gro off lro off",
		plan_port_label(room->settings, port, label), kind->iface, kind->iface);
}
