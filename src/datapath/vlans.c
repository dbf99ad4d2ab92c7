// Tagged interfaces and their VRFs.
#include "datapath/vlans.h"

static const struct vlan {
	uint16_t iface;
	uint8_t port;
	uint16_t vrf;
	uint32_t tags[IFACE_MAX_TAGS];
} vlans[] = {
	{TAGGED_IN, 0, 0, {CUSTOMER | 10}},
	{SERVICE_IN, 0, 0, {SERVICE | 10}},
	{QINQ_IN, 0, 0, {SERVICE | 1030, CUSTOMER | 10}},
	{TAGGED_OUT, 1, 0, {CUSTOMER | 4094}},
	{QINQ_OUT, 1, 0, {SERVICE | 257, CUSTOMER | 1}},
	{RED_IN, 0, RED, {CUSTOMER | 100}},
	{BLUE_IN, 0, BLUE, {CUSTOMER | 200}},
	{RED_OUT, 2, RED, {CUSTOMER | 300}},
};

static void open_vrfs(void)
{
	struct fib_hop red = {.kind = FIB_VIA, .iface = RED_OUT};
	struct fib_hop blue = {.kind = FIB_VIA, .iface = 3};
	struct fib_hop local = {.kind = FIB_LOCAL, .iface = IFACE_NONE};

	wire_addr_parse("10.30.0.2", &red.via);
	wire_addr_parse("10.3.0.2", &blue.via);
	fake_route(RED, "10.1.0.0/16", &red);
	fake_route(RED, "2001:db8:1::/48", &red);
	fake_route(BLUE, "10.1.0.0/16", &blue);
	fake_route(BLUE, "2001:db8:1::/48", &blue);
	fake_route(BLUE, "10.0.0.9/32", &local);
}

int vlans_open(void **state)
{
	fake_open(state);
	assert_int_equal(fib_vrf_open(fake.fib, RED, NULL), 0);
	assert_int_equal(fib_vrf_open(fake.fib, BLUE, NULL), 0);
	for (unsigned i = 0; i < ARRAY_LEN(vlans); i++)
		fake_iface(vlans[i].iface, vlans[i].port, vlans[i].vrf, vlans[i].tags);
	open_vrfs();
	return 0;
}

static const struct vlan *vlan_of(uint16_t iface)
{
	static const struct vlan none;

	for (unsigned i = 0; i < ARRAY_LEN(vlans); i++)
		if (vlans[i].iface == iface)
			return &vlans[i];
	return &none;
}

void frame_tag_for(struct bytes *frame, uint16_t iface)
{
	const struct vlan *vlan = vlan_of(iface);

	for (unsigned i = IFACE_MAX_TAGS; i; i--)
		if (vlan->tags[i - 1])
			frame_tag(frame, vlan->tags[i - 1]);
}

struct bytes frame_on(uint16_t iface, const char *dst)
{
	struct bytes frame = frame_to(0, dst);

	frame_tag_for(&frame, iface);
	return frame;
}
