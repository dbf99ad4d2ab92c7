// The packet's walk on its workers, as the control thread sees it: make the workers, start, park,
// stop, read counters.
#pragma once

#include "base/error.h"
#include "fib/fib.h"
#include "port/port.h"
#include "stats/stats.h"
#include "tap/tap.h"

struct path;

// Makes one worker per worker of `ports`; nothing runs yet. `taps`: packets for Linux go
// there; NULL: ports have none. `ports`, `door` and `taps` are borrowed. 0 or -errno with
// `error` set.
int datapath_open(struct path **out, struct port_table *ports, struct fib_rcu *rcu,
	struct tap_table *taps, struct error *error);
// Launches the workers. / Asks them to finish what they hold, waits for them, and leaves no packet
// in flight.
int datapath_start(struct path *path, struct error *error);
void datapath_stop(struct path *path);
void datapath_close(struct path *path);

// Counters by worker, readable while running; valid until datapath_close.
struct stats_worker *const *datapath_stats(const struct path *path, unsigned *n_workers);
