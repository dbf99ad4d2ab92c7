// What follows from changes of interfaces for next hops. Tests only.
#include "fib/fib.h"

#include "fib/model.h"
#include "fib/table.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

static const struct wire_mac own = {{2, 0, 0, 0, 0, 1}}, other = {{2, 0, 0, 0, 0, 2}},
			     third = {{2, 0, 0, 0, 0, 3}};

static struct iface port_link(uint8_t port)
{
	return (struct iface){.mac = own, .port = port, .mtu = 1500};
}

static struct iface vlan(uint8_t port, uint16_t outer, uint16_t inner)
{
	struct iface iface = port_link(port);

	iface.tag[0] = (struct iface_tag){inner ? 0x88a8 : 0x8100, outer};
	iface.tag[1] = (struct iface_tag){0x8100, inner};
	iface.n_tags = inner ? 2 : 1;
	return iface;
}

static void set(struct fib *fib, uint16_t iface, struct iface settings)
{
	assert_int_equal(fib_iface_set(fib, iface, &settings), 0);
}

static struct fib *fib_with_ports(unsigned n)
{
	struct fib *fib = fib_create(NULL);

	for (unsigned port = 0; port < n; port++)
		set(fib, port, port_link(port));
	return fib;
}

static void refuses_a_vrf_that_is_not_open(void **state)
{
	struct fib *fib = fib_with_ports(1);
	struct iface settings = vlan(0, 5, 0);

	settings.vrf = 1;
	assert_int_equal(fib_iface_set(fib, 9, &settings), -EINVAL);
	assert_null(fib_iface(fib, 9));
	assert_int_equal(fib_vrf_open(fib, 1, NULL), 0);
	assert_int_equal(fib_iface_set(fib, 9, &settings), 0);
	assert_int_equal(iface_in_load(&fib->view.ifaces, 9).vrf, 1);
	settings.vrf = 0;
	settings.port = 1; // not the port's own index
	settings.n_tags = 0;
	assert_int_equal(fib_iface_set(fib, 9, &settings), -EINVAL);
	assert_int_equal(fib_iface_set(fib, IFACE_MAX, &settings), -EINVAL);
	fib_iface_delete(fib, IFACE_NONE);
	fib_destroy(fib);
}

// Next hops on interfaces.

static struct fib_hop_entry entry(const struct fib *fib, const char *text,
	struct fib_answer *answer)
{
	struct wire_addr addr;

	assert_int_equal(wire_addr_parse(text, &addr), 0);
	rib_lookup(fib, 0, &addr, answer);
	assert_int_equal(fib_lookup(fib, 0, &addr), answer->hop_id);
	return fib_hop_load(&fib->view.hops[answer->hop_id]);
}

static void expect_unresolved(const struct fib *fib, const char *text)
{
	struct fib_answer answer;
	const struct fib_hop_entry now = entry(fib, text, &answer);

	assert_int_equal(now.kind, FIB_HOP_STOP);
	assert_int_equal(now.verdict, VERDICT_NEIGHBOUR_UNRESOLVED);
}

static void route_via(struct fib *fib, const char *prefix, const char *via, uint16_t iface)
{
	struct fib_change change = {.op = FIB_REPLACE,
		.route.hop = {.kind = FIB_VIA, .iface = iface}};

	assert_int_equal(wire_prefix_parse(prefix, &change.route.prefix), 0);
	assert_int_equal(wire_addr_parse(via, &change.route.hop.via), 0);
	assert_int_equal(fib_change(fib, &change, 1, NULL, NULL), 0);
}

static void set_neighbour(struct fib *fib, uint16_t iface, const char *text)
{
	struct wire_addr addr;

	assert_int_equal(wire_addr_parse(text, &addr), 0);
	assert_int_equal(fib_neighbour_set(fib, iface, &addr, &third, NULL), 0);
}

static void sends_out_of_a_vlan_with_its_tags_address_and_mtu(void **state)
{
	struct fib *fib = fib_with_ports(3);
	struct iface settings = vlan(2, 10, 20);
	struct fib_answer answer;
	struct fib_hop_info info;

	settings.mac = other;
	settings.mtu = 1400;
	route_via(fib, "20.0.0.0/8", "10.0.0.2", 77);
	expect_unresolved(fib, "20.1.1.1");
	set(fib, 77, settings);
	expect_unresolved(fib, "20.1.1.1");
	set_neighbour(fib, 77, "10.0.0.2");
	struct fib_hop_entry now = entry(fib, "20.1.1.1", &answer);
	assert_int_equal(now.kind, FIB_HOP_TEMPLATE);
	assert_int_equal(now.port, 2);
	assert_int_equal(now.frame_max, 1414);
	const struct fib_template *header = fib_template_load(&fib->view, answer.hop_id);
	assert_int_equal(header->length, 20);
	assert_memory_equal(header->bytes, third.bytes, 6);
	assert_memory_equal(header->bytes + 6, other.bytes, 6);
	assert_memory_equal(header->bytes + 12, ((uint8_t[]){0x88, 0xa8, 0, 10, 0x81, 0, 0, 20}),
		8);
	assert_int_equal(answer.verdict, VERDICT_FORWARD);
	assert_memory_equal(answer.mac.bytes, third.bytes, 6);
	assert_true(fib_hop_info(fib, answer.hop_id, &info));
	assert_int_equal(info.verdict, VERDICT_FORWARD);
	assert_int_equal(info.mtu, 1400);
	fib_destroy(fib);
}

static void sends_nothing_out_of_a_deleted_iface(void **state)
{
	struct fib *fib = fib_with_ports(1);
	struct fib_answer answer;

	set(fib, 9, vlan(0, 5, 0));
	route_via(fib, "20.0.0.0/8", "10.0.0.2", 9);
	set_neighbour(fib, 9, "10.0.0.2");
	struct fib_hop_entry before = entry(fib, "20.1.1.1", &answer);
	fib_iface_delete(fib, 9);
	struct fib_hop_entry after = entry(fib, "20.1.1.1", &answer);
	expect_unresolved(fib, "20.1.1.1");
	assert_int_equal(after.port, before.port); // a worker may have checked the old entry
	assert_memory_equal(after.macs, before.macs, 12);
	set(fib, 9, vlan(0, 6, 0));
	assert_int_equal(entry(fib, "20.1.1.1", &answer).kind, FIB_HOP_TEMPLATE);
	assert_int_equal(fib_template_load(&fib->view, answer.hop_id)->bytes[15], 6);
	fib_destroy(fib);
}

static void members_of_a_group_may_have_tags(void **state)
{
	struct fib *fib = fib_with_ports(2);
	struct fib_member members[2] = {{.hop = {.kind = FIB_VIA, .iface = 0}, .weight = 1},
		{.hop = {.kind = FIB_VIA, .iface = 9}, .weight = 1}};
	struct fib_change change = {.op = FIB_ADD};
	struct fib_answer answer;

	set(fib, 9, vlan(1, 5, 0));
	wire_addr_parse("10.0.0.2", &members[0].hop.via);
	members[1].hop.via = members[0].hop.via;
	set_neighbour(fib, 0, "10.0.0.2");
	set_neighbour(fib, 9, "10.0.0.2");
	assert_int_equal(fib_group(fib, members, 2, &change.route.hop, NULL), 0);
	wire_prefix_parse("20.0.0.0/8", &change.route.prefix);
	assert_int_equal(fib_change(fib, &change, 1, NULL, NULL), 0);
	struct fib_hop_entry group = entry(fib, "20.1.1.1", &answer);
	assert_int_equal(group.kind, FIB_HOP_GROUP);
	const uint32_t *bucket = &fib->view.bucket[fib_entry_group(&group)];
	unsigned n_tagged = 0, n_plain = 0;
	for (unsigned i = 0; i < FIB_GROUP_BUCKETS; i++) {
		struct fib_hop_entry member = fib_hop_load(&fib->view.hops[bucket[i]]);
		n_tagged += member.kind == FIB_HOP_TEMPLATE && member.port == 1;
		n_plain += member.kind == FIB_HOP_PLAIN && member.port == 0;
	}
	assert_int_equal(n_tagged, FIB_GROUP_BUCKETS / 2);
	assert_int_equal(n_plain, FIB_GROUP_BUCKETS / 2);
	members[0].hop.iface = IFACE_MAX;
	assert_int_equal(fib_group(fib, members, 2, &change.route.hop, NULL), -EINVAL);
	fib_destroy(fib);
}

static void sends_to_a_bridge_without_a_port_of_its_own(void **state)
{
	struct fib *fib = fib_with_ports(1);
	const struct iface bridge = {.is_bridge = true, .mac = other, .mtu = 1400};
	struct fib_answer answer;

	assert_int_equal(fib_iface_set(fib, 9, &bridge), -EINVAL); // the index of a port
	set(fib, 300, bridge);
	route_via(fib, "20.0.0.0/8", "10.0.0.2", 300);
	expect_unresolved(fib, "20.1.1.1");
	set_neighbour(fib, 300, "10.0.0.2");
	const struct fib_hop_entry now = entry(fib, "20.1.1.1", &answer);
	assert_int_equal(now.kind, FIB_HOP_BRIDGE);
	assert_int_equal(now.frame_max, 1414);
	assert_memory_equal(now.macs, third.bytes, 6);
	assert_memory_equal(now.macs + 6, other.bytes, 6);
	assert_int_equal(answer.verdict, VERDICT_FORWARD);
	assert_int_equal(fib_oif_load(&fib->view, answer.hop_id), 300);
	assert_int_equal(fib->view.plain->port[answer.hop_id], FIB_NOT_PLAIN);
	set(fib, 301, bridge);
	struct iface on = vlan(0, 5, 0);
	on.port = 301;
	on.is_bridge = true;
	set(fib, 300, on); // the tag depends on the port
	const struct fib_hop_entry tagged = entry(fib, "20.1.1.1", &answer);
	assert_int_equal(tagged.kind, FIB_HOP_BRIDGE);
	assert_memory_equal(tagged.macs, third.bytes, 6);
	assert_memory_equal(tagged.macs + 6, on.mac.bytes, 6);
	set(fib, 300, vlan(0, 5, 0));
	assert_int_equal(entry(fib, "20.1.1.1", &answer).kind, FIB_HOP_TEMPLATE);
	fib_destroy(fib);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(refuses_a_vrf_that_is_not_open),
		cmocka_unit_test(sends_out_of_a_vlan_with_its_tags_address_and_mtu),
		cmocka_unit_test(sends_nothing_out_of_a_deleted_iface),
		cmocka_unit_test(members_of_a_group_may_have_tags),
		cmocka_unit_test(sends_to_a_bridge_without_a_port_of_its_own),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
