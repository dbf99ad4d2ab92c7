// The Linux interface below a net_af_packet or net_af_xdp device: what Linux does to frames without
// the driver's knowledge. Control thread.
#include "base/log.h"
#include "port/table.h"
#include "port/wait.h"

#include <dlfcn.h>
#include <errno.h>
#include <linux/ethtool.h>
#include <linux/if_packet.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

// Sockets with a receive ring, in the order in which drivers created them.
enum { MAX_SOCKETS = 512 };
static int sockets[MAX_SOCKETS];
static unsigned n_sockets;

// A number that was noted before belongs to a device that has been closed.
static void note_socket(int socket)
{
	unsigned n = 0;

	for (unsigned i = 0; i < n_sockets; i++)
		if (sockets[i] != socket)
			sockets[n++] = sockets[i];
	if (n < MAX_SOCKETS)
		sockets[n++] = socket;
	n_sockets = n;
}

// net_af_packet makes Linux reassemble IPv4 fragments before it delivers them, and the driver has
// no argument to turn that off. A forwarder must forward each fragment separately (RFC 791; RFC
// 1812, 4.2.2.7): a reassembled packet may be too long for the port, and a single fragment would
// never be delivered. In both programs this function overrides libc's, also for drivers
// (meson.build).
int setsockopt(int socket, int level, int name, const void *value, socklen_t length)
{
	int (*const next)(int, int, int, const void *, socklen_t) =
		(__typeof__(&setsockopt))dlsym(RTLD_NEXT, "setsockopt");
	uint32_t fanout;

	if (level == SOL_PACKET && name == PACKET_RX_RING)
		note_socket(socket);
	if (level != SOL_PACKET || name != PACKET_FANOUT || length != sizeof(fanout))
		return next(socket, level, name, value, length);
	memcpy(&fanout, value, sizeof(fanout));
	fanout &= ~((uint32_t)PACKET_FANOUT_FLAG_DEFRAG << 16);
	return next(socket, level, name, &fanout, length);
}

// net_af_packet creates its sockets with a protocol, so until it binds them to its interface they
// receive what arrives on all others, too. With protocol 0 they receive nothing before; bind() sets
// the protocol (packet(7)).
int socket(int domain, int type, int protocol)
{
	int (*const next)(int, int, int) = (__typeof__(&socket))dlsym(RTLD_NEXT, "socket");

	return next(domain, type, domain == AF_PACKET ? 0 : protocol);
}

// Linux unbinds a socket when its interface is deleted. Sockets that were closed, or whose number
// is reused by another kind of file, are bound to no interface.
static bool is_bound(int socket, int index)
{
	struct sockaddr_ll address = {0};
	socklen_t n = sizeof(address);

	return !getsockname(socket, (struct sockaddr *)&address, &n) &&
	       address.sll_family == AF_PACKET && address.sll_ifindex == index;
}

int below_socket(const char *netdev, unsigned queue)
{
	int index = if_nametoindex(netdev);

	for (unsigned i = 0; i < n_sockets; i++)
		if (is_bound(sockets[i], index) && !queue--)
			return sockets[i];
	return -1;
}

unsigned below_count_sockets(int index)
{
	unsigned n = 0;

	for (unsigned i = 0; i < n_sockets; i++)
		n += is_bound(sockets[i], index);
	return n;
}

int below_runs(int socket, int index)
{
	struct ifreq request = {.ifr_ifindex = index}; // its name may have changed

	if (ioctl(socket, SIOCGIFNAME, &request) || ioctl(socket, SIOCGIFFLAGS, &request))
		return -errno;
	return (request.ifr_flags & (IFF_UP | IFF_RUNNING)) == (IFF_UP | IFF_RUNNING);
}

static struct ifreq named(const char *netdev)
{
	struct ifreq request = {.ifr_name = ""};

	snprintf(request.ifr_name, sizeof(request.ifr_name), "%.*s", IFNAMSIZ - 1, netdev);
	return request;
}

// The value of an interface's ethtool setting; 0 if it is not available.
static uint32_t ask(int socket, const char *netdev, uint32_t what)
{
	struct ethtool_value value = {.cmd = what};
	struct ifreq request = named(netdev);

	request.ifr_data = (void *)&value;
	return ioctl(socket, SIOCETHTOOL, &request) ? 0 : value.data;
}

// Frames longer than the MTU are truncated in the ring that net_af_packet reads.
void below_warn_of_merging(const struct port_table *ports, unsigned port)
{
	const struct kind *kind = &ports->devices[port].kind;
	char label[48];

	if (!kind->netdev[0] || !kind->slot_bytes || ports->link_socket < 0)
		return;
	if (!ask(ports->link_socket, kind->netdev, ETHTOOL_GGRO) &&
		!(ask(ports->link_socket, kind->netdev, ETHTOOL_GFLAGS) & ETH_FLAG_LRO))
		return;
	log_warn("%s: GRO or LRO is enabled on %s, and merged frames are truncated; disable both: "
		 "ethtool -K %s gro off lro off",
		plan_port_label(ports->settings, port, label), kind->netdev, kind->netdev);
}

static int raise_mtu(int socket, const char *netdev, int mtu)
{
	struct ifreq request = named(netdev);

	if (ioctl(socket, SIOCGIFMTU, &request))
		return -errno;
	int now = request.ifr_mtu;
	if (now >= mtu)
		return 0;
	request.ifr_mtu = mtu;
	if (ioctl(socket, SIOCSIFMTU, &request))
		return -errno;
	log_info("interface %s: MTU raised from %d to %d, the MTU of its port", netdev, now, mtu);
	return 0;
}

int below_carry_mtu(const struct kind *kind, uint16_t mtu)
{
	if (!kind->netdev[0])
		return 0;
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -errno;
	int err = raise_mtu(fd, kind->netdev, mtu);
	close(fd);
	return err;
}
