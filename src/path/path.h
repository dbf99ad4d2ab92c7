// The packet's walk on its lanes, as the control thread sees it: make the workers, start, park,
// stop, read counters.
#pragma once

#include "base/complaint.h"
#include "fib/fib.h"
#include "port/port.h"
#include "stat/stat.h"
#include "tap/tap.h"

struct path;

// Makes one worker per lane of `ports`; nothing runs yet. `twins`: packets for Linux go there;
// NULL: ports have none. `ports`, `door` and `twins` are borrowed. 0 or -errno with a complaint.
int path_open(struct path **out, struct port_room *ports, struct fib_door *door,
	struct tap_room *twins, struct complaint *why);
// Launches the lanes. / Asks them to finish what they hold, waits for them, and leaves no packet in
// flight.
int path_start(struct path *path, struct complaint *why);
void path_stop(struct path *path);
void path_close(struct path *path);

// Counters by lane, readable while running; valid until path_close.
struct stat_lane *const *path_stats(const struct path *path, unsigned *n_lanes);
