// Configures DPDK devices by the plan: queues, offloads, RSS. Control thread.
#include "port/compat.h"
#include "port/eal.h"
#include "port/facts.h"
#include "port/table.h"

#include <errno.h>
#include <rte_dev.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FRAME_HEADER = 14, PEER_MS = 2000 };

void device_kernel_driver(const char *address, char *driver, size_t size)
{
	char path[128], target[256];

	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/driver", address);
	ssize_t n = readlink(path, target, sizeof(target) - 1);

	target[n < 0 ? 0 : n] = 0;
	const char *slash = strrchr(target, '/');

	snprintf(driver, size, "%.31s", n < 0 ? "none" : slash ? slash + 1 : target);
}

static int missing_error(const struct port_table *ports, unsigned port, struct error *error)
{
	const struct kind *kind = &ports->devices[port].kind;
	char driver[32], label[48];

	plan_port_label(ports->settings, port, label);
	if (kind->socket[0] && access(kind->socket, F_OK) == 0)
		return error_set(error, -ENODEV,
			"%s: DPDK created no port for %s%s%s; if no other program uses %s, remove "
			"that file",
			label, kind->name, eal_words()[0] ? ": " : "", eal_words(), kind->socket);
	if (kind->bus != KIND_PCI)
		return error_set(error, -ENODEV,
			"%s: DPDK created no port for %s%s%s%s; check the arguments of the device, "
			"and whether what they refer to exists",
			label, kind->name, eal_words()[0] ? " (first error: " : "", eal_words(),
			eal_words()[0] ? ")" : "");
	device_kernel_driver(kind->name, driver, sizeof(driver));
	return error_set(error, -ENODEV,
		"%s: DPDK cannot use %s with its current kernel driver (%s); bind it to vfio-pci "
		"(dpdk-devbind.py -b vfio-pci %s)",
		label, kind->name, driver, kind->name);
}

static int find_id(const struct port_device *device, uint16_t *id)
{
	struct rte_dev_iterator iterator;
	uint16_t found;

	if (rte_eth_dev_get_port_by_name(device->kind.name, id) == 0)
		return 0;
	// A device with several ports has its own names for them.
	RTE_ETH_FOREACH_MATCHING_DEV(found, device->kind.name, &iterator)
	{
		*id = found;
		rte_eth_iterator_cleanup(&iterator);
		return 0;
	}
	return -ENODEV;
}

int device_find(struct port_table *ports, unsigned port, struct error *error)
{
	struct port_device *device = &ports->devices[port];
	struct plan_device *facts = &ports->facts.devices[port];
	char label[48];

	kind_read(ports->settings->ports[port].device, &device->kind);
	if (find_id(device, &device->id) != 0)
		return missing_error(ports, port, error);
	device->is_found = true;
	__atomic_store_n(&device->is_gone, false, __ATOMIC_RELAXED);
	__atomic_store_n(&device->wants_reset, false, __ATOMIC_RELAXED);
	int err = rte_eth_dev_info_get(device->id, &device->info);
	if (err)
		return error_set(error, err, "%s: cannot read the capabilities of the device: %s",
			plan_port_label(ports->settings, port, label), strerror(-err));
	facts->n_rx_most = device->info.max_rx_queues;
	facts->n_tx_most = device->info.max_tx_queues;
	if (device->kind.bus == KIND_VIRTUAL)
		return 0;
	facts->numa = rte_eth_dev_socket_id(device->id);
	facts->hashes = rss_can_hash(device->info.flow_type_rss_offloads);
	facts->n_rx_own = facts->hashes ? 0 : 1;
	facts->rx_power_of_two = strcmp(device->info.driver_name, "net_vmxnet3") == 0;
	if (facts->hashes && device->info.reta_size)
		facts->n_rx_most = MIN_OF(facts->n_rx_most, device->info.reta_size);
	return 0;
}

void device_adjust_rings(struct port_table *ports, unsigned port)
{
	const struct port_settings *settings = &ports->settings->ports[port];
	struct pools_rings *rings = &ports->rings[port];
	struct kind kind;

	rings->n_rx_descriptors =
		settings->n_rx_descriptors ? settings->n_rx_descriptors : PORT_DEFAULT_DESCRIPTORS;
	rings->n_tx_descriptors =
		settings->n_tx_descriptors ? settings->n_tx_descriptors : PORT_DEFAULT_DESCRIPTORS;
	kind_read(settings->device, &kind);
	if (kind.is_zero_copy)
		rings->n_rx_descriptors = rings->n_tx_descriptors = kind.ring_slots;
	rings->n_extra = facts_count_looped_frames(settings->device) +
	                 (kind.has_offloads ? POOLS_OFFLOAD_MBUFS : 0);
	if (ports->devices[port].is_found)
		rte_eth_dev_adjust_nb_rx_tx_desc(ports->devices[port].id, &rings->n_rx_descriptors,
			&rings->n_tx_descriptors);
}

static void choose_offloads(const struct port_table *ports, unsigned port, struct offload *offload)
{
	const struct port_device *device = &ports->devices[port];
	const struct pools_node *node =
		&ports->pools.nodes[pools_of_port(&ports->pools, &ports->plan, port)];
	struct offload_facts facts = {
		.rx_offers = device->info.rx_offload_capa,
		.tx_offers = device->info.tx_offload_capa,
		.tx_queue_offers = device->info.tx_queue_offload_capa,
		.frame_max = device->mtu + FRAME_HEADER,
		.data_room = node->data_room - POOLS_HEADROOM,
		.has_guest = device->kind.has_offloads,
		.one_pool = ports->pools.n_nodes == 1 && !ports->settings->may_grow,
	};

	for (unsigned i = 0; i < ports->settings->n_ports; i++)
		facts.may_chain |= ports->devices[i].kind.may_chain;
	offload_choose(offload, &facts);
}

// The MTU that rte_eth_dev_configure accepts: virtual devices that do not support a large one keep
// theirs.
static uint32_t choose_configured_mtu(const struct port_device *device)
{
	uint32_t overhead = FRAME_HEADER + 4;

	if (device->info.max_rx_pktlen && device->info.max_mtu != UINT16_MAX &&
		device->info.max_rx_pktlen > device->info.max_mtu)
		overhead = device->info.max_rx_pktlen - device->info.max_mtu;
	if (device->mtu > device->info.max_mtu || device->mtu < device->info.min_mtu ||
		device->mtu + overhead > device->info.max_rx_pktlen)
		return 0;
	return device->mtu;
}

static int configure(struct port_table *ports, unsigned port, const struct offload *offload,
	struct error *error)
{
	struct port_device *device = &ports->devices[port];
	const struct plan_port *plan = &ports->plan.ports[port];
	struct rte_eth_conf conf = {0};
	char label[48];

	plan_port_label(ports->settings, port, label);
	conf.rxmode.offloads = offload->rx;
	conf.rxmode.mtu = choose_configured_mtu(device);
	conf.txmode.offloads = offload->tx;
	conf.intr_conf.rxq = device->has_interrupts;
	if (!conf.rxmode.mtu && device->kind.bus != KIND_VIRTUAL)
		return error_set(error, -ERANGE,
			"%s: mtu %u is out of range; the device supports %u to %u", label,
			device->mtu, device->info.min_mtu,
			MIN_OF(device->info.max_mtu, device->info.max_rx_pktlen));
	if (device->kind.bus != KIND_VIRTUAL)
		rss_choose(&device->rss, device->info.flow_type_rss_offloads,
			device->info.hash_key_size, plan->n_rx);
	if (device->rss.on) {
		conf.rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
		conf.rx_adv_conf.rss_conf.rss_hf = device->rss.fields;
		conf.rx_adv_conf.rss_conf.rss_key = device->rss.key_bytes ? device->rss.key : NULL;
		conf.rx_adv_conf.rss_conf.rss_key_len = device->rss.key_bytes;
		compat_ask_for_toeplitz(&conf.rx_adv_conf.rss_conf, &device->info);
	}
	int err = rte_eth_dev_configure(device->id, plan->n_rx, plan->n_tx, &conf);
	if (err)
		return error_set(error, err,
			"%s: the device rejected %u receive and %u transmit queues: %s", label,
			plan->n_rx, plan->n_tx, eal_words()[0] ? eal_words() : strerror(-err));
	return 0;
}

static int set_up_queues(struct port_table *ports, unsigned port, const struct offload *offload,
	struct error *error)
{
	const struct port_device *device = &ports->devices[port];
	const struct plan_port *plan = &ports->plan.ports[port];
	const struct pools_rings *rings = &ports->rings[port];
	struct rte_mempool *pool = port_pool(ports, port);
	struct rte_eth_rxconf rx = device->info.default_rxconf;
	struct rte_eth_txconf tx = device->info.default_txconf;
	unsigned numa = plan->numa < 0 ? (unsigned)SOCKET_ID_ANY : (unsigned)plan->numa;
	int err = 0;

	rx.offloads = offload->rx;
	tx.offloads = offload->tx;
	for (uint16_t q = 0; q < plan->n_rx && !err; q++)
		err = rte_eth_rx_queue_setup(device->id, q, rings->n_rx_descriptors, numa, &rx,
			pool);
	for (uint16_t q = 0; q < plan->n_tx && !err; q++)
		err = rte_eth_tx_queue_setup(device->id, q, rings->n_tx_descriptors, numa, &tx);
	if (!err)
		return 0;
	char label[48];

	return error_set(error, err,
		"%s: the device rejected queues with %u receive and %u transmit descriptors: %s",
		plan_port_label(ports->settings, port, label), rings->n_rx_descriptors,
		rings->n_tx_descriptors, eal_words()[0] ? eal_words() : strerror(-err));
}

// Some drivers use their device's numbers of descriptors, whatever was requested.
static void read_back_rings(struct port_table *ports, unsigned port)
{
	uint16_t id = ports->devices[port].id;
	struct rte_eth_rxq_info rx;
	struct rte_eth_txq_info tx;

	if (rte_eth_rx_queue_info_get(id, 0, &rx) == 0 && rx.nb_desc)
		ports->rings[port].n_rx_descriptors = rx.nb_desc;
	if (rte_eth_tx_queue_info_get(id, 0, &tx) == 0 && tx.nb_desc)
		ports->rings[port].n_tx_descriptors = tx.nb_desc;
}

static int make_locks(struct port_table *ports, unsigned port, struct error *error)
{
	const struct plan_port *plan = &ports->plan.ports[port];
	struct port_device *device = &ports->devices[port];

	if (!plan->shared_tx || device->locks)
		return 0;
	device->locks = aligned_alloc(CACHE_LINE_BYTES, plan->n_tx * sizeof(*device->locks));
	if (!device->locks)
		return error_set(error, -ENOMEM, "ports[%u]: not enough memory for its locks",
			port);
	for (unsigned q = 0; q < plan->n_tx; q++)
		rte_spinlock_init(&device->locks[q].lock);
	return 0;
}

// Runs on EAL's interrupt thread.
static int on_gone(uint16_t id, enum rte_eth_event_type event, void *arg, void *result)
{
	struct port_device *device = arg;

	__atomic_store_n(&device->is_gone, true, __ATOMIC_RELAXED);
	return 0;
}

static int on_reset(uint16_t id, enum rte_eth_event_type event, void *arg, void *result)
{
	struct port_device *device = arg;

	__atomic_store_n(&device->wants_reset, true, __ATOMIC_RELAXED);
	return 0;
}

// Linux wants to remove a device that is bound to vfio-pci, and waits until it is closed. Runs on
// EAL's interrupt thread.
static void on_request(const char *name, enum rte_dev_event_type event, void *arg)
{
	struct port_device *device = arg;

	if (event == RTE_DEV_EVENT_REMOVE)
		__atomic_store_n(&device->is_gone, true, __ATOMIC_RELAXED);
}

// After any of these events the device receives and sends no more packets. After the second one,
// which the driver of a virtual function raises when its physical function was reset, it does so
// again once it was reset.
static const struct {
	enum rte_eth_event_type event;
	rte_eth_dev_cb_fn call;
} end_events[] = {{RTE_ETH_EVENT_INTR_RMV, on_gone}, {RTE_ETH_EVENT_INTR_RESET, on_reset}};

// Registering again changes nothing.
static void listen_for_end(struct port_device *device)
{
	for (unsigned i = 0; i < ARRAY_LEN(end_events); i++)
		rte_eth_dev_callback_register(device->id, end_events[i].event, end_events[i].call,
			device);
	if (device->kind.bus == KIND_PCI)
		rte_dev_event_callback_register(device->kind.name, on_request, device);
}

// A callback that is running cannot be unregistered.
static void listen_no_more(struct port_device *device)
{
	for (unsigned i = 0; i < ARRAY_LEN(end_events); i++)
		while (rte_eth_dev_callback_unregister(device->id, end_events[i].event,
			       end_events[i].call, device) == -EAGAIN)
			sched_yield();
	while (device->kind.bus == KIND_PCI &&
		rte_dev_event_callback_unregister(device->kind.name, on_request, device) == -EAGAIN)
		sched_yield();
}

// The only virtual device with interrupts is net_tap, and it has them as soon as it is started.
static bool may_have_interrupts(const struct port_table *ports, unsigned port)
{
	const struct port_table_settings *settings = ports->settings;
	bool may_sleep = !settings->n_workers && settings->idle == PORT_IDLE_SLEEP;

	for (unsigned i = 0; i < settings->n_workers; i++)
		may_sleep |= settings->workers[i].idle == PORT_IDLE_SLEEP;
	return may_sleep && (ports->devices[port].kind.bus != KIND_VIRTUAL ||
				    strncmp(settings->ports[port].device, "net_tap", 7) == 0);
}

// Whether a driver supports interrupts (some need vfio-pci) can only be found by trying.
static int configure_queues(struct port_table *ports, unsigned port, const struct offload *offload,
	struct error *error)
{
	int err = configure(ports, port, offload, error);

	if (!err)
		err = set_up_queues(ports, port, offload, error);
	if (!err || !ports->devices[port].has_interrupts)
		return err;
	ports->devices[port].has_interrupts = false;
	eal_words_forget();
	return configure_queues(ports, port, offload, error);
}

// A net_vhost serves peers as soon as it is configured.
static int follow_vhost(struct port_table *ports, unsigned port, struct error *error)
{
	struct port_device *device = &ports->devices[port];
	const struct kind *kind = &device->kind;
	const struct vhost_device made = {.path = kind->socket,
		.serves = kind->serves,
		.has_offloads = kind->has_offloads,
		.may_merge = device->mtu > PORT_DEFAULT_MTU || kind->has_offloads,
		.n_queues = ports->plan.ports[port].n_rx,
		.steer = {workers_steer, ports, port}};

	if (!kind->is_vhost || device->vhost)
		return 0;
	workers_steer(ports, port, 0, 0);
	device->vhost = vhost_make(&made);
	if (!device->vhost)
		return error_set(error, -ENOMEM,
			"ports[%u]: not enough memory or file descriptors for its vhost state",
			port);
	return 0;
}

int device_set_up(struct port_table *ports, unsigned port, struct error *error)
{
	const struct port_settings *settings = &ports->settings->ports[port];
	struct port_device *device = &ports->devices[port];
	struct offload offload;

	eal_words_forget();
	if (!device->mtu)
		device->mtu = settings->mtu ? settings->mtu : PORT_DEFAULT_MTU;
	device->has_interrupts = may_have_interrupts(ports, port);
	choose_offloads(ports, port, &offload);
	int err = follow_vhost(ports, port, error);
	if (!err)
		err = configure_queues(ports, port, &offload, error);
	if (!err)
		err = make_locks(ports, port, error);
	if (!err)
		err = address_set_up(ports, port, error);
	if (err)
		return err;
	read_back_rings(ports, port);
	__atomic_store_n(&ports->states[port].tx_multi_segment, offload.tx_multi_segment,
		__ATOMIC_RELAXED);
	ports->states[port].has_offloads = device->kind.has_offloads;
	listen_for_end(device);
	device->is_set_up = true;
	return 0;
}

// Ports connect one after the other, see segments.h. The peer usually answers within a millisecond.
static void wait_for_peer(struct port_table *ports, const struct port_device *device)
{
	struct rte_eth_link link = {0};

	for (unsigned ms = 0; ms < PEER_MS && !link.link_status; ms++) {
		usleep(1000);
		if (rte_eth_link_get_nowait(device->id, &link) != 0)
			return;
		segments_mend(&ports->segments);
	}
}

static int start_without_interrupts(struct port_table *ports, unsigned port, struct error *error)
{
	struct port_device *device = &ports->devices[port];
	struct offload offload;

	device->has_interrupts = false;
	choose_offloads(ports, port, &offload);
	int err = configure_queues(ports, port, &offload, error);

	eal_words_forget();
	return err ? err : rte_eth_dev_start(device->id);
}

int device_start(struct port_table *ports, unsigned port, struct error *error)
{
	struct port_device *device = &ports->devices[port];
	char label[48];

	int err = device->kind.is_zero_copy ? segments_keep(&ports->segments, error) : 0;
	if (err)
		return err;
	eal_words_forget();
	err = rte_eth_dev_start(device->id);
	if (err && device->has_interrupts)
		err = start_without_interrupts(ports, port, error);
	if (err)
		return error_set(error, err, "%s: cannot start the device: %s",
			plan_port_label(ports->settings, port, label),
			eal_words()[0] ? eal_words() : strerror(-err));
	device->is_started = true;
	if (device->kind.is_zero_copy)
		wait_for_peer(ports, device);
	return 0;
}

// A device without a reset of its own is only stopped and configured again.
int device_reset(struct port_table *ports, unsigned port, struct error *error)
{
	struct port_device *device = &ports->devices[port];
	struct wire_mac mac = device->mac;
	char label[48];

	device_add_errors(device, &device->errors);
	rte_eth_stats_reset(device->id);
	rte_eth_dev_stop(device->id);
	device->is_started = false;
	int err = rte_eth_dev_reset(device->id);
	if (err && err != -ENOTSUP)
		return error_set(error, err, "%s: cannot reset the device: %s",
			plan_port_label(ports->settings, port, label), strerror(-err));
	device->has_mac &= !device->mac_is_own;
	err = device_set_up(ports, port, error);
	if (!err)
		err = device_start(ports, port, error);
	if (err)
		return err;
	device->n_resets++;
	device->n_own_macs += !wire_mac_equal(&device->mac, &mac);
	if (device->is_set_down)
		rte_eth_dev_set_link_down(device->id);
	return 0;
}

void device_close(struct port_table *ports, unsigned port)
{
	struct port_device *device = &ports->devices[port];

	if (device->is_started)
		rte_eth_dev_stop(device->id);
	if (device->is_set_up)
		listen_no_more(device);
	if (device->is_found)
		rte_eth_dev_close(device->id);
	vhost_free(device->vhost);
	device->vhost = NULL;
	device->is_started = device->is_found = device->is_set_up = false;
}

bool device_add_errors(const struct port_device *device, struct device_errors *errors)
{
	struct rte_eth_stats stats;

	if (!device->is_started || rte_eth_stats_get(device->id, &stats) != 0)
		return false;
	errors->rx_missed += stats.imissed;
	errors->rx_no_mbuf += stats.rx_nombuf;
	errors->rx_errors += stats.ierrors;
	errors->tx_errors += stats.oerrors;
	return true;
}
