// Port state for workers and for display while ports run. Control thread.
#include "port/table.h"

#include "base/log.h"
#include "port/compat.h"

#include <assert.h>
#include <errno.h>
#include <stddef.h>
#include <string.h>

static_assert(offsetof(struct port_state, mac) % 8 == 0 &&
		      offsetof(struct port_state, up) == offsetof(struct port_state, mac) + 6 &&
		      offsetof(struct port_state, pass_martians) ==
			      offsetof(struct port_state, up) + 1,
	"mac and its two neighbours are one word");
static_assert(offsetof(struct port_state, peer) % 8 == 0 &&
		      offsetof(struct port_state, has_peer) ==
			      offsetof(struct port_state, peer) + 6,
	"peer and has_peer are one word");

static bool read_link(struct port_device *device)
{
	struct rte_eth_link link = {0};

	if (rte_eth_link_get_nowait(device->id, &link) != 0)
		return true;
	if (link.link_status)
		device->has_been_up = true;
	// Drivers without link state always report "down"; one that has reported "up" is reliable.
	return link.link_status || !(device->kind.has_link || device->has_been_up);
}

// net_af_packet and net_af_xdp always report "up"; the state of the underlying interface is
// correct, unless it is not available.
bool port_read_carrier(const struct port_table *ports, struct port_device *device)
{
	bool up = read_link(device);

	if (up && device->kind.netdev[0] && device->netdev_index && ports->link_socket >= 0)
		up = below_runs(ports->link_socket, device->netdev_index) != 0;
	if (device->vhost)
		up = up && vhost_is_live(device->vhost);
	return up;
}

void port_set_carrier(struct port_table *ports, unsigned port, bool has_carrier)
{
	struct port_device *device = &ports->devices[port];

	if (device->has_carrier != has_carrier && device->is_set_up)
		log_info("port %s: link %s", ports->settings->ports[port].name,
			has_carrier ? "up" : "down");
	device->has_carrier = has_carrier;
	__atomic_store_n(&ports->states[port].up, has_carrier && !device->is_set_down,
		__ATOMIC_RELEASE);
}

void port_poll(struct port_table *ports)
{
	segments_mend(&ports->segments);
	for (unsigned i = port_next(ports->settings, 0); i < ports->settings->n_ports;
		i = port_next(ports->settings, i + 1))
		if (hotplug_follow(ports, i)) {
			port_set_carrier(ports, i, port_read_carrier(ports, &ports->devices[i]));
			if (ports->devices[i].vhost)
				vhost_poll(ports->devices[i].vhost, ports->settings->ports[i].name);
		}
}

bool port_vhost(const struct port_table *ports, unsigned port, struct port_vhost *out)
{
	const struct vhost *vhost = ports->devices[port].vhost;

	if (vhost)
		vhost_read(vhost, out);
	return vhost;
}

const struct port_state *port_states(const struct port_table *ports)
{
	return ports->states;
}

bool port_has_carrier(const struct port_table *ports, unsigned port)
{
	return ports->devices[port].has_carrier;
}

// Writes address and flag in one store, so that a worker that reads eight bytes never sees half of
// a new address.
static void set_peer(struct port_state *port_state, const struct port_settings *settings)
{
	typedef uint64_t __attribute__((may_alias)) word;
	uint8_t bytes[sizeof(word)] = {0};
	word next;

	memcpy(bytes, settings->peer.bytes, sizeof(port_state->peer));
	bytes[sizeof(port_state->peer)] = settings->has_peer;
	memcpy(&next, bytes, sizeof(next));
	__atomic_store_n((word *)port_state->peer, next, __ATOMIC_RELAXED);
}

// The control thread is the only writer of the whole word.
void port_state_set_mac(struct port_state *port_state, const struct wire_mac *mac)
{
	typedef uint64_t __attribute__((may_alias)) word;
	word next = __atomic_load_n((word *)port_state->mac, __ATOMIC_RELAXED);

	memcpy(&next, mac->bytes, sizeof(mac->bytes));
	__atomic_store_n((word *)port_state->mac, next, __ATOMIC_RELAXED);
}

void port_state_fill(struct port_table *ports, unsigned port)
{
	const struct port_settings *settings = &ports->settings->ports[port];
	const struct kind *kind = &ports->devices[port].kind;
	struct port_state *port_state = &ports->states[port];

	port_state->is_xconnect = ports->plan.ports[port].xconnect >= 0;
	port_state->xconnect = port_state->is_xconnect ? ports->plan.ports[port].xconnect : 0;
	port_state->mac_update = settings->mac_update;
	port_state->cut_bytes = kind->cuts_frames ? MIN_OF(kind->slot_bytes, UINT16_MAX) : 0;
	port_state->pass_martians = settings->pass_martians;
	port_state->rpf6 = settings->rpf6;
	set_peer(port_state, settings);
}

int port_change(struct port_table *ports, unsigned port, const struct port_settings *settings,
	struct error *error)
{
	struct port_state *port_state = &ports->states[port];
	int err =
		port_set_mtu(ports, port, settings->mtu ? settings->mtu : PORT_DEFAULT_MTU, error);

	if (err)
		return err;
	__atomic_store_n(&port_state->pass_martians, settings->pass_martians, __ATOMIC_RELAXED);
	__atomic_store_n(&port_state->rpf6, settings->rpf6, __ATOMIC_RELAXED);
	set_peer(port_state, settings);
	return 0;
}

// Losses that occur at these drivers' devices and that their stats_get leaves at 0. With memif,
// vhost and virtio_user a full ring makes the peer wait or drop; net_null and net_ring lose
// nothing. Drivers of hardware are taken to count all, except virtio: its host drops.
static const struct {
	const char *driver;
	uint8_t uncounted; // enum port_loss
} silent_drivers[] = {
	{"net_af_packet", COMPAT_PACKET_UNCOUNTED},
	{"net_af_xdp", PORT_RX_NO_MBUF | PORT_RX_ERRORS},
	{"net_memif", PORT_RX_NO_MBUF | PORT_RX_ERRORS},
	{"net_vhost", PORT_RX_NO_MBUF | PORT_RX_ERRORS},
	{"net_tap", PORT_RX_MISSED},
	{"net_virtio", PORT_RX_MISSED},
	{"net_pcap", 0},
	{"net_null", 0},
	{"net_ring", 0},
	{"net_virtio_user", 0},
};

static uint8_t find_uncounted(const struct port_device *device)
{
	bool is_virtual = device->kind.bus == KIND_VIRTUAL;

	for (unsigned i = 0; device->info.driver_name && i < ARRAY_LEN(silent_drivers); i++)
		if (!strcmp(device->info.driver_name, silent_drivers[i].driver))
			return silent_drivers[i].uncounted;
	// What the driver of a plugin counts is unknown.
	return is_virtual ? PORT_RX_MISSED | PORT_RX_NO_MBUF | PORT_RX_ERRORS | PORT_TX_ERRORS : 0;
}

static uint8_t only_if(uint64_t n, uint8_t loss)
{
	return n ? 0 : loss;
}

static void read_errors(const struct port_device *device, struct port_info *out)
{
	struct device_errors sum = device->errors;

	out->uncounted = PORT_RX_MISSED | PORT_RX_NO_MBUF | PORT_RX_ERRORS | PORT_TX_ERRORS;
	if (device_add_errors(device, &sum))
		out->uncounted = find_uncounted(device);
	out->uncounted &=
		only_if(sum.rx_missed, PORT_RX_MISSED) | only_if(sum.rx_no_mbuf, PORT_RX_NO_MBUF) |
		only_if(sum.rx_errors, PORT_RX_ERRORS) | only_if(sum.tx_errors, PORT_TX_ERRORS);
	out->rx_missed = sum.rx_missed;
	out->rx_no_mbuf = sum.rx_no_mbuf;
	out->rx_errors = sum.rx_errors;
	out->tx_errors = sum.tx_errors;
}

void port_info(const struct port_table *ports, unsigned port, struct port_info *out)
{
	const struct port_device *device = &ports->devices[port];
	struct rte_eth_link link = {0};

	memset(out, 0, sizeof(*out));
	out->name = ports->settings->ports[port].name;
	out->device = ports->settings->ports[port].device;
	out->driver = device->info.driver_name ? device->info.driver_name : "";
	out->device_id = device->id;
	out->mtu = device->mtu;
	out->n_rx_queues = ports->plan.ports[port].n_rx;
	out->n_tx_queues = ports->plan.ports[port].n_tx;
	out->n_rx_descriptors = ports->rings[port].n_rx_descriptors;
	out->n_tx_descriptors = ports->rings[port].n_tx_descriptors;
	out->mac = device->mac;
	out->rss = device->rss.on;
	out->numa = ports->facts.devices[port].numa;
	out->link_up = __atomic_load_n(&ports->states[port].up, __ATOMIC_RELAXED);
	out->device_present = device->phase == DEVICE_PRESENT || device->phase == DEVICE_RESETTING;
	out->n_losses = device->n_losses;
	out->n_resets = device->n_resets;
	out->n_own_macs = device->n_own_macs;
	if (device->is_started && rte_eth_link_get_nowait(device->id, &link) == 0 &&
		link.link_status && link.link_speed != RTE_ETH_SPEED_NUM_UNKNOWN)
		out->link_mbps = link.link_speed;
	out->line_bps = ports->settings->ports[port].line_bps;
	if (!out->line_bps && device->kind.bus != KIND_VIRTUAL) // those make up a speed
		out->line_bps = out->link_mbps * 1e6;
	out->has_backpressure = device->kind.has_backpressure;
	out->rx_ring_slots = device->kind.ring_slots ? device->kind.ring_slots
	                                             : ports->rings[port].n_rx_descriptors;
	read_errors(device, out);
}

struct rte_mempool *port_pool(const struct port_table *ports, unsigned port)
{
	struct rte_mempool *added = added_pools_find(ports, port);

	return added ? added : ports->pool[pools_of_port(&ports->pools, &ports->plan, port)];
}

static void add_pool(struct port_memory *out, const struct rte_mempool *pool)
{
	out->mbuf_bytes =
		MAX_OF(out->mbuf_bytes, pool->header_size + pool->elt_size + pool->trailer_size);
	out->n_mbufs += pool->size;
	out->n_mbufs_free += rte_mempool_avail_count(pool);
}

void port_memory(const struct port_table *ports, struct port_memory *out)
{
	memset(out, 0, sizeof(*out));
	out->huge = ports->memory.huge;
	out->planned_mib = ports->memory.mib;
	for (unsigned i = 0; i < ports->pools.n_nodes; i++)
		add_pool(out, ports->pool[i]);
	for (unsigned i = 0; i < ports->n_added; i++)
		add_pool(out, ports->added[i].pool);
}
