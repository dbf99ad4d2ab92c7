// What the control loop does between two clients. Control thread.
#include "verbs/inside.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/signals.h"
#include "base/wake.h"

#include <errno.h>
#include <signal.h>

enum { TEND_EVERY_NS = 50 * 1000 * 1000 };

int verbs_follow(struct verbs_house *house, struct complaint *why)
{
	struct sync_house mirrored = {house->fib, house->ports, house->twins,
		config_ports(house->config)->n_ports};

	if (!house->twins)
		return 0;
	int err = tap_start(house->twins, why);
	if (!err)
		err = sync_open(&house->sync, &mirrored, why);
	return err ? err : wake_add(house->wake, sync_fd(house->sync), why);
}

void verbs_unfollow(struct verbs_house *house)
{
	if (house->sync)
		sync_close(house->sync);
	house->sync = NULL;
	house->is_busy = false;
}

// Devices and twins want a look now and then, not after each message.
static int tend_ports(struct verbs_house *house, struct complaint *why)
{
	uint64_t now = clock_now_ns();

	if (now - house->tended_ns < TEND_EVERY_NS)
		return 0;
	house->tended_ns = now;
	int err = port_tend(house->ports, why);
	if (!err && house->twins)
		tap_tend(house->twins);
	return err;
}

void verbs_heed(struct verbs_house *house, int signals)
{
	struct complaint why;

	for (int number = signals_next(signals); number; number = signals_next(signals)) {
		if (number != SIGHUP)
			house->stop = true;
		else if (verbs_reload(house, &why))
			log_error("reload: %s", why.text);
		else
			log_info("reload: done");
	}
}

int verbs_tend(struct verbs_house *house, struct complaint *why)
{
	int err = tend_ports(house, why);
	if (err)
		return err;
	if (!port_lanes_run(house->ports))
		return complain(why, -EIO, "a lane has ended by itself; all stop");
	if (house->sync)
		house->is_busy = sync_tend(house->sync);
	fib_tidy(house->fib);
	int lane = fib_door_tend(house->door);
	if (lane >= 0 && lane != house->silent_lane)
		log_error("lane %d has not come round for a second; is its core taken?", lane);
	house->silent_lane = lane;
	return 0;
}
