// Fake ports and workers, for the tests of methods. Tests only.
#include "api/fake_ctx.h"

#include "stats/stats.h"

#include <errno.h>
#include <string.h>

struct fake fake;

static struct stats_worker worker_stat[2];
static struct stats_worker *const worker_stats[2] = {&worker_stat[0], &worker_stat[1]};
static struct port_worker workers[2];
static const struct port_state states[PORT_MAX] = {{.mac = {2, 0, 0, 0, 0, 0xa}},
	{.mac = {2, 0, 0, 0, 0, 0xb}}};

void fake_reset(void)
{
	memset(&fake, 0, sizeof(fake));
	memset(worker_stat, 0, sizeof(worker_stat));
	fake.refuse_change_of = -1;
	workers[0] = (struct port_worker){.id = 0,
		.core = 3,
		.burst = 64,
		.n_queues = 1,
		.queues = {{.port = 1}}};
	workers[1] = (struct port_worker){.id = 1, .core = 4, .burst = 64};
}

struct stats_worker *fake_stat(unsigned worker)
{
	return &worker_stat[worker];
}

struct stats_worker *const *datapath_stats(const struct path *path, unsigned *n_workers)
{
	*n_workers = 2;
	return worker_stats;
}

unsigned port_n_workers(const struct port_table *ports)
{
	return 2;
}

struct port_worker *port_worker(struct port_table *ports, unsigned worker)
{
	return &workers[worker];
}

const struct port_state *port_states(const struct port_table *ports)
{
	return states;
}

bool port_workers_alive(const struct port_table *ports)
{
	return !fake.worker_has_ended;
}

void port_poll(struct port_table *ports)
{
	fake.n_polled++;
}

void port_restore(struct port_table *ports)
{
	fake.n_ports_restored++;
}

int port_change(struct port_table *ports, unsigned port, const struct port_settings *settings,
	struct error *error)
{
	if (fake.refuse_change_of == (int)port)
		return error_set(error, -EIO, "the device of %s takes no MTU of %u", settings->name,
			settings->mtu);
	fake.mtu[port] = settings->mtu;
	fake.n_changes++;
	return 0;
}

void port_info(const struct port_table *ports, unsigned port, struct port_info *out)
{
	*out = (struct port_info){.name = "?",
		.device = "?",
		.driver = "net_fake",
		.mtu = 1500,
		.n_rx_queues = 1,
		.n_tx_queues = 2,
		.link_up = port == 0,
		.device_present = !fake.device_is_gone,
		.n_losses = fake.device_is_gone,
		.numa = -1,
		.rx_missed = 5,
		.rx_no_mbuf = 6,
		.rx_errors = 7};
	memcpy(out->mac.bytes, states[port].mac, sizeof(out->mac.bytes));
}

void port_memory(const struct port_table *ports, struct port_memory *out)
{
	*out = (struct port_memory){.planned_mib = 64,
		.mbuf_bytes = 2368,
		.n_mbufs = 1000,
		.n_mbufs_free = 900};
}
