// Replaces the files of routes: records the calls that ifaces makes to them. Tests only.
#include "netlink/fake_linux.h"

#include "netlink/mirror_inside.h"

#include <assert.h>

struct fake_call fake_call[FAKE_MAX_CALLS];
unsigned fake_n_calls;

static const struct mirror *ctx;

static void write_down(struct fake_call call)
{
	fake_call[fake_n_calls++ % FAKE_MAX_CALLS] = call;
}

unsigned fake_calls(enum fake_call_kind kind, int ifindex)
{
	unsigned n = 0;

	assert(fake_n_calls <= FAKE_MAX_CALLS);
	for (unsigned i = 0; i < fake_n_calls; i++)
		n += fake_call[i].kind == kind && fake_call[i].ifindex == ifindex;
	return n;
}

int routes_open(struct routes **out, struct mirror *mirror, struct error *error)
{
	*out = NULL;
	ctx = mirror;
	fake_n_calls = 0;
	return 0;
}

void routes_close(struct routes *routes)
{
}

void routes_event(struct routes *routes, const struct event *event)
{
}

void routes_nexthop_event(struct routes *routes, const struct event *event)
{
}

void routes_dump_begins(struct routes *routes)
{
}

void routes_dump_ends(struct routes *routes, uint32_t partial)
{
}

bool routes_flush(struct routes *routes)
{
	return false;
}

void routes_poll(struct routes *routes)
{
}

void routes_iface_changed(struct routes *routes, int ifindex)
{
	write_down((struct fake_call){.kind = CALL_CHANGED, .ifindex = ifindex});
}

void routes_iface_gone(struct routes *routes, int ifindex)
{
	assert(!ifaces_state(ctx, ifindex).is_known);
	write_down((struct fake_call){.kind = CALL_GONE, .ifindex = ifindex});
}

void routes_address_gone(struct routes *routes, uint16_t vrf, const struct wire_addr *local)
{
	write_down((struct fake_call){.kind = CALL_ADDRESS, .table = vrf, .addr = *local});
}

void routes_address_came(struct routes *routes, int ifindex)
{
}

void routes_ip4_gone(struct routes *routes, int ifindex)
{
	write_down((struct fake_call){.kind = CALL_IP4_GONE, .ifindex = ifindex});
}

void routes_vrf_changed(struct routes *routes, uint32_t table)
{
	write_down((struct fake_call){.kind = CALL_VRF,
		.table = table,
		.vrf = ifaces_vrf_of_table(ctx, table)});
}

void routes_label_ttl_changed(struct routes *routes, uint8_t ttl)
{
}

void routes_unsupported(struct routes *routes,
	bool (*cb)(void *arg, const struct netlink_unsupported *one), void *arg)
{
}

void routes_info(const struct routes *routes, struct netlink_info *out)
{
}
