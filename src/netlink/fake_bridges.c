// What the mirror does about bridges, recorded. Tests only.
#include "netlink/fake_linux.h"

#include <string.h>

static void set_bridged(void *ops, unsigned port, bool is_bridged)
{
	struct fake_linux *fake = ops;

	assert_true(fake->is_bridged[port] != is_bridged);
	fake->is_bridged[port] = is_bridged;
}

static uint8_t bridge_filters(void *ops)
{
	return ((struct fake_linux *)ops)->bridge_filters;
}

static bool guard(void *ops, const struct guard_port port[], unsigned n)
{
	struct fake_linux *fake = ops;

	assert_true(n <= sizeof(fake->guarded) / sizeof(fake->guarded[0]));
	fake->n_guarded = n;
	memcpy(fake->guarded, port, n * sizeof(*port));
	return fake->has_guard;
}

static bool is_judged(void *ops, unsigned port)
{
	return port == 0 && ((struct fake_linux *)ops)->is_judged;
}

static void storm(void *ops, unsigned port, uint32_t pps[MAC_STORMS])
{
	for (unsigned i = 0; i < MAC_STORMS && port == 0; i++)
		pps[i] = ((struct fake_linux *)ops)->storm_pps;
}

static void macs_seen(void *ops, const struct mirror_seen seen[], unsigned n)
{
	struct fake_linux *fake = ops;

	fake->n_seen += n;
	fake->seen = seen[n - 1];
}

static bool guard_follows(void *ops)
{
	return ((struct fake_linux *)ops)->guard_follows;
}

static int ask_link(void *ops, int ifindex, void (*take)(void *arg, const struct event *event),
	void *arg)
{
	const struct fake_linux *fake = ops;
	struct event event = {.kind = EVENT_LINK, .iface = fake->asked_link};

	if (fake->asked_link.ifindex == ifindex)
		take(arg, &event);
	return 0;
}

static int dump_groups(void *ops, void (*take)(void *arg, const struct event *event), void *arg)
{
	const struct fake_linux *fake = ops;

	if (fake->routers)
		take(arg, fake->routers);
	return fake->dump_error;
}

void fake_bridge_ops(struct mirror_ops *ops)
{
	ops->port_set_bridged = set_bridged;
	ops->bridge_filters = bridge_filters;
	ops->guard = guard;
	ops->is_judged = is_judged;
	ops->storm = storm;
	ops->macs_seen = macs_seen;
	ops->guard_follows = guard_follows;
	ops->ask_link = ask_link;
	ops->dump_groups = dump_groups;
}
