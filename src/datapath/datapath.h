// The workers as the control thread sees them: create, start, stop, read counters.
#pragma once

#include "base/error.h"
#include "fib/fib.h"
#include "port/port.h"
#include "stats/stats.h"
#include "tap/tap.h"

struct path;

// Creates one worker for each worker of `ports`; none runs yet. `taps` receives punted packets;
// NULL: ports have no TAP interfaces. `ports`, `rcu` and `taps` are borrowed; `ports` closes
// devices that vanish after grace periods of `rcu`. Returns 0, or -errno with `error` set.
int datapath_open(struct path **out, struct port_table *ports, struct fib_rcu *rcu,
	struct tap_table *taps, struct error *error);
// Launches the workers. / Asks them to finish the packets that they hold and waits for them; no
// packet is in flight afterwards.
int datapath_start(struct path *path, struct error *error);
void datapath_stop(struct path *path);
void datapath_close(struct path *path);

// Counters by worker. They may be read while workers run, and are valid until datapath_close.
struct stats_worker *const *datapath_stats(const struct path *path, unsigned *n_workers);
