// Ports and lanes that exist on paper only, for the tests of verbs. Test.
#include "verbs/fake_house.h"

#include "stat/stat.h"

#include <errno.h>
#include <string.h>

struct fake fake;

static struct stat_lane lane_stat[2];
static struct stat_lane *const lane_stats[2] = {&lane_stat[0], &lane_stat[1]};
static struct port_lane lanes[2];
static const struct port_face faces[PORT_MAX] = {{.mac = {2, 0, 0, 0, 0, 0xa}},
	{.mac = {2, 0, 0, 0, 0, 0xb}}};

void fake_reset(void)
{
	memset(&fake, 0, sizeof(fake));
	memset(lane_stat, 0, sizeof(lane_stat));
	fake.refuse_change_of = -1;
	lanes[0] = (struct port_lane){.id = 0,
		.core = 3,
		.burst = 64,
		.n_queues = 1,
		.queues = {{.port = 1}}};
	lanes[1] = (struct port_lane){.id = 1, .core = 4, .burst = 64};
}

struct stat_lane *fake_stat(unsigned lane)
{
	return &lane_stat[lane];
}

struct stat_lane *const *path_stats(const struct path *path, unsigned *n_lanes)
{
	*n_lanes = 2;
	return lane_stats;
}

unsigned port_n_lanes(const struct port_room *room)
{
	return 2;
}

struct port_lane *port_lane(struct port_room *room, unsigned lane)
{
	return &lanes[lane];
}

const struct port_face *port_faces(const struct port_room *room)
{
	return faces;
}

bool port_lanes_run(const struct port_room *room)
{
	return !fake.lane_has_ended;
}

int port_tend(struct port_room *room, struct complaint *why)
{
	fake.n_tended++;
	return fake.device_is_gone ? complain(why, -ENODEV, "its device is gone") : 0;
}

int port_change(struct port_room *room, unsigned port, const struct port_settings *settings,
	struct complaint *why)
{
	if (fake.refuse_change_of == (int)port)
		return complain(why, -EIO, "the device of %s takes no MTU of %u", settings->name,
			settings->mtu);
	fake.mtu[port] = settings->mtu;
	fake.n_changes++;
	return 0;
}

void port_info(const struct port_room *room, unsigned port, struct port_info *out)
{
	*out = (struct port_info){.name = "?",
		.device = "?",
		.driver = "net_fake",
		.mtu = 1500,
		.n_rx_queues = 1,
		.n_tx_queues = 2,
		.link_up = port == 0,
		.numa = -1,
		.rx_missed = 5,
		.rx_no_mbuf = 6,
		.rx_errors = 7};
	memcpy(out->mac.bytes, faces[port].mac, sizeof(out->mac.bytes));
}

void port_memory(const struct port_room *room, struct port_memory *out)
{
	*out = (struct port_memory){.planned_mib = 64,
		.mbuf_bytes = 2368,
		.n_mbufs = 1000,
		.n_mbufs_free = 900};
}
