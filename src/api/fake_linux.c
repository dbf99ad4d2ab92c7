// Fake TAP interfaces and netlink, for the tests of methods. Tests only.
#include "api/fixture.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>

struct tap_table *fake_taps(void)
{
	return (struct tap_table *)&fake;
}

struct netlink *fake_sync(void)
{
	return (struct netlink *)&fake;
}

void tap_set_captures(struct tap_table *taps, struct capture_live *captures)
{
}

int tap_start(struct tap_table *taps, struct error *error)
{
	strcat(fake.calls, "t");
	return fake.refuse_start ? error_set(error, -EAGAIN, "no thread") : 0;
}

void tap_poll(struct tap_table *taps)
{
	fake.n_taps_polled++;
}

int tap_restore(struct tap_table *taps, struct error *error)
{
	fake.n_restored++;
	return fake.refuse_restore ? error_set(error, -EEXIST, "left: its name is taken") : 0;
}

void tap_change(struct tap_table *taps, const struct tap_settings *settings)
{
	memcpy(fake.class, settings->class, sizeof(fake.class));
}

const struct stats_tap *tap_stats(const struct tap_table *taps)
{
	return &fake.taps;
}

struct tap_class_settings tap_class(const struct tap_table *taps, enum punt_class class)
{
	return fake.class[class];
}

void tap_info(const struct tap_table *taps, unsigned port, struct tap_info *out)
{
	*out = (struct tap_info){.namespace_name = "core",
		.keep = true,
		.held = true,
		.ifindex = 7 + port,
		.carrier = port == 0,
		.adopted = port == 1};
	strcpy(out->name, port ? "right" : "left");
}

int netlink_open(struct netlink **out, const struct netlink_ctx *mirrored, struct error *error)
{
	strcat(fake.calls, "s");
	*out = fake_sync();
	return 0;
}

void netlink_close(struct netlink *netlink)
{
	strcat(fake.calls, "S");
}

void netlink_learn(struct netlink *netlink, const struct mac_info *info)
{
	strcat(fake.calls, "h");
}

bool netlink_guarded(struct netlink *netlink, uint64_t *n)
{
	*n = 7;
	return true;
}

int netlink_fd(const struct netlink *netlink)
{
	static int fd = -1;

	if (fd < 0)
		fd = eventfd(0, EFD_CLOEXEC);
	return fd;
}

bool netlink_poll(struct netlink *netlink)
{
	fake.n_steps++;
	return fake.netlink_has_more;
}

void netlink_info(const struct netlink *netlink, struct netlink_info *out)
{
	*out = (struct netlink_info){.state = fake.is_dumping ? NETLINK_DUMPING : NETLINK_FOLLOWING,
		.messages = 12,
		.overruns = 2,
		.dumps = 3,
		.dumps_partial = 1,
		.last_dump_ns = 1500000000,
		.routes4 = 1000000,
		.receive_buffer = 64 << 20};
}

unsigned netlink_bursts(const struct netlink *netlink, struct netlink_burst out[NETLINK_BURSTS])
{
	out[0] = (struct netlink_burst){.begin_ns = 1000, .end_ns = 3500, .messages = 5};
	out[1] = (struct netlink_burst){.begin_ns = 9000000, .end_ns = 9500000, .messages = 1200};
	return 2;
}

const char *netlink_iface_name(const struct netlink *netlink, uint16_t iface)
{
	static const char *const names[] = {"left", "right", "left.5"};

	return iface < 3 ? names[iface] : NULL;
}

const char *netlink_vrf_name(const struct netlink *netlink, uint16_t vrf)
{
	return vrf == 3 ? "blue" : NULL;
}

int netlink_vrf_find(const struct netlink *netlink, const char *name)
{
	return strcmp(name, "blue") ? -ENOENT : 3;
}

void netlink_unsupported(struct netlink *netlink,
	bool (*cb)(void *arg, const struct netlink_unsupported *one), void *arg)
{
	struct netlink_unsupported one = {.what = "nftables forward hook",
		.where = "table inet filter chain forward",
		.effect = "all transit packets are punted to Linux"};

	for (one.n = 1; one.n <= fake.n_unsupported; one.n++)
		if (!cb(arg, &one))
			return;
}

int netlink_explain(struct netlink *netlink, uint16_t vrf, const struct wire_addr *addr,
	struct netlink_route_check *out, struct error *error)
{
	*out = fake.route_check;
	return fake.is_dumping ? error_set(error, -EAGAIN, "the mirror is still dumping; ask again")
	                       : 0;
}

int netlink_verify(struct netlink *netlink, struct netlink_verification *how, struct error *error)
{
	char text[32];

	if (fake.is_dumping)
		return error_set(error, -EAGAIN, "the mirror is still dumping; ask again");
	fake.sample = how->sample;
	how->compared = how->sample ? how->sample : 1000000;
	how->macs = 30;
	for (unsigned i = 0; i < fake.n_differences; i++) {
		snprintf(text, sizeof(text), "10.0.0.%u/32 differs", i);
		if (!how->cb(how->arg, text))
			break;
	}
	return fake.n_differences;
}

unsigned netlink_addresses(const struct netlink *netlink, unsigned port, struct wire_prefix out[],
	unsigned max)
{
	return wire_prefix_parse(port ? "2001:db8::1/128" : "192.0.2.1/32", &out[0]) ? 0 : 1;
}

bool netlink_route_origin(const struct netlink *netlink, uint16_t vrf,
	const struct wire_prefix *prefix, struct netlink_origin *out)
{
	*out = (struct netlink_origin){.protocol = prefix->addr.bytes[0] == 10 ? 186 : 77,
		.metric = 20};
	return prefix->addr.bytes[0] <= 11;
}
