// Interfaces: their settings, and what workers read of them. Tests only.
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

static struct fib_iface port_link(uint8_t port)
{
	return (struct fib_iface){.mac = own, .port = port, .mtu = 1500};
}

static struct fib_iface vlan(uint8_t port, uint16_t outer, uint16_t inner)
{
	struct fib_iface iface = port_link(port);

	iface.tag[0] = (struct fib_tag){inner ? 0x88a8 : 0x8100, outer};
	iface.tag[1] = (struct fib_tag){0x8100, inner};
	iface.n_tags = inner ? 2 : 1;
	return iface;
}

static struct fib_tags tags(uint16_t outer, uint16_t inner)
{
	struct fib_iface iface = vlan(0, outer, inner);

	return iface_tags(&iface);
}

static void set(struct fib *fib, uint16_t iface, struct fib_iface settings)
{
	assert_int_equal(fib_iface_set(fib, iface, &settings), 0);
}

static uint16_t tagged(const struct fib *fib, uint8_t port, uint16_t outer, uint16_t inner)
{
	struct fib_tags frame = tags(outer, inner);

	return fib_iface_tagged(&fib->view, port, &frame);
}

static struct fib *fib_with_ports(unsigned n)
{
	struct fib *fib = fib_create(NULL);

	for (unsigned port = 0; port < n; port++)
		set(fib, port, port_link(port));
	return fib;
}

static void takes_frames_of_a_port_that_was_never_told_of(void **state)
{
	struct fib *fib = fib_create(NULL);

	for (uint16_t port = 0; port < FIB_MAX_PORTS; port++) {
		struct fib_iface_in in = fib_iface_in_load(&fib->view, port);
		assert_int_equal(in.iface, port);
		assert_int_equal(in.flags | in.vrf | in.n_macs | in.n_tags, 0);
		assert_null(fib_iface(fib, port));
	}
	assert_int_equal(tagged(fib, 0, 10, 0), FIB_NO_IFACE_IN);
	fib_destroy(fib);
}

static void finds_a_vlan_by_its_port_and_tags(void **state)
{
	struct fib *fib = fib_with_ports(254);

	set(fib, 300, vlan(0, 10, 0));
	set(fib, 301, vlan(1, 10, 0));
	set(fib, 302, vlan(253, 10, 0));
	set(fib, 303, vlan(0, 10, 10));
	set(fib, 4095, vlan(0, 4094, 4094));
	assert_int_equal(tagged(fib, 0, 10, 0), 300);
	assert_int_equal(tagged(fib, 1, 10, 0), 301);
	assert_int_equal(tagged(fib, 253, 10, 0), 302);
	assert_int_equal(tagged(fib, 0, 10, 10), 303);
	assert_int_equal(tagged(fib, 0, 4094, 4094), 4095);
	assert_int_equal(tagged(fib, 2, 10, 0), FIB_NO_IFACE_IN);
	assert_int_equal(tagged(fib, 0, 11, 0), FIB_NO_IFACE_IN);
	assert_int_equal(tagged(fib, 1, 10, 10), FIB_NO_IFACE_IN);
	struct fib_tags service = {{0x88, 0xa8, 0, 10}}; // another TPID is another interface
	assert_int_equal(fib_iface_tagged(&fib->view, 0, &service), FIB_NO_IFACE_IN);
	fib_destroy(fib);
}

static void tells_workers_how_many_tags_to_look_for(void **state)
{
	struct fib *fib = fib_with_ports(2);

	set(fib, 10, vlan(0, 10, 0));
	set(fib, 11, vlan(0, 11, 0));
	set(fib, 12, vlan(0, 10, 20));
	assert_int_equal(fib_iface_in_load(&fib->view, 0).n_tags, 2);
	assert_int_equal(fib_iface_in_load(&fib->view, 1).n_tags, 0);
	assert_int_equal(fib_iface_in_load(&fib->view, 10).n_tags, 1);
	fib_iface_delete(fib, 12);
	assert_int_equal(fib_iface_in_load(&fib->view, 0).n_tags, 1);
	set(fib, 0, port_link(0)); // set again: VLANs are unaffected
	assert_int_equal(fib_iface_in_load(&fib->view, 0).n_tags, 1);
	fib_iface_delete(fib, 10);
	fib_iface_delete(fib, 11);
	assert_int_equal(fib_iface_in_load(&fib->view, 0).n_tags, 0);
	fib_destroy(fib);
}

static void tells_workers_flags_vrf_and_addresses(void **state)
{
	struct fib *fib = fib_with_ports(1);
	struct fib_iface settings = port_link(0);

	assert_int_equal(fib_vrf_open(fib, 63, NULL), 0);
	settings.flags = FIB_IFACE_LINUX4 | FIB_IFACE_REDIRECTS6;
	settings.vrf = 63;
	settings.macs[settings.n_macs++] = other;
	set(fib, 0, settings);
	struct fib_iface_in in = fib_iface_in_load(&fib->view, 0);
	assert_int_equal(in.flags, FIB_IFACE_LINUX4 | FIB_IFACE_REDIRECTS6);
	assert_int_equal(in.vrf, 63);
	assert_int_equal(in.n_macs, 1);
	assert_true(fib_iface_has_mac(&fib->view, 0, own.bytes));
	assert_true(fib_iface_has_mac(&fib->view, 0, other.bytes));
	assert_false(fib_iface_has_mac(&fib->view, 0, third.bytes));
	assert_false(fib_iface_has_mac(&fib->view, 1, (uint8_t[6]){0}));
	assert_memory_equal(fib_iface(fib, 0), &settings, sizeof(settings));
	settings.n_macs = 0;
	set(fib, 0, settings);
	assert_false(fib_iface_has_mac(&fib->view, 0, other.bytes));
	settings = vlan(0, 5, 0);
	settings.mac = third; // not the port's: workers have to check for it
	set(fib, 9, settings);
	assert_int_equal(fib_iface_in_load(&fib->view, 9).n_macs, 1);
	assert_true(fib_iface_has_mac(&fib->view, 9, third.bytes));
	fib_destroy(fib);
}

static void drops_what_comes_in_on_a_deleted_iface(void **state)
{
	struct fib *fib = fib_with_ports(1);

	set(fib, 9, vlan(0, 5, 0));
	fib_iface_delete(fib, 9);
	assert_int_equal(tagged(fib, 0, 5, 0), FIB_NO_IFACE_IN);
	assert_int_equal(fib_iface_in_load(&fib->view, 9).flags, FIB_IFACE_DOWN);
	fib_iface_delete(fib, 0);
	assert_int_equal(fib_iface_in_load(&fib->view, 0).flags, FIB_IFACE_DOWN);
	fib_iface_delete(fib, 0);
	fib_iface_delete(fib, FIB_NO_IFACE);
	set(fib, 0, port_link(0));
	assert_int_equal(fib_iface_in_load(&fib->view, 0).flags, 0);
	fib_destroy(fib);
}

// Adds and deletes all interfaces in random order, so that slots are deleted and reused; an unknown
// tag must still be found missing quickly, which would fail if the table filled up with deleted
// slots.
static void finds_every_link_while_others_come_and_go(void **state)
{
	enum { N_IFACES = FIB_MAX_IFACES - 4, N_STEPS = 60000 };
	static uint16_t iface_of[4][4095];
	static uint16_t outer_of[FIB_MAX_IFACES];
	struct fib *fib = fib_with_ports(4);

	memset(iface_of, 0xff, sizeof(iface_of));
	for (unsigned i = 0; i < N_STEPS; i++) {
		uint16_t iface = 4 + model_random(N_IFACES), port = iface % 4;
		uint16_t outer = 1 + model_random(4094);
		if (outer_of[iface]) {
			assert_int_equal(tagged(fib, port, outer_of[iface], 0), iface);
			iface_of[port][outer_of[iface]] = FIB_NO_IFACE_IN;
			outer_of[iface] = 0;
			fib_iface_delete(fib, iface);
			continue;
		}
		struct fib_iface settings = vlan(port, outer, 0);
		bool is_taken = iface_of[port][outer] != FIB_NO_IFACE_IN;
		assert_int_equal(fib_iface_set(fib, iface, &settings), is_taken ? -EINVAL : 0);
		if (is_taken)
			continue;
		iface_of[port][outer] = iface;
		outer_of[iface] = outer;
	}
	for (unsigned port = 0; port < 4; port++)
		for (uint16_t outer = 1; outer < 4095; outer++)
			assert_int_equal(tagged(fib, port, outer, 0), iface_of[port][outer]);
	for (uint16_t iface = 4; iface < FIB_MAX_IFACES; iface++)
		fib_iface_delete(fib, iface);
	for (unsigned at = 0; at < IFACE_SLOTS; at++)
		assert_int_equal(fib->ifaces.slot[at].key, SLOT_EMPTY);
	fib_destroy(fib);
}

static void refuses_what_is_no_iface(void **state)
{
	struct fib *fib = fib_with_ports(2);
	struct fib_iface bad[] = {port_link(1), vlan(255, 5, 0), vlan(0, 0, 0), vlan(0, 4095, 0),
		vlan(0, 5, 0), vlan(0, 5, 0), vlan(0, 5, 0), vlan(0, 5, 0), vlan(0, 5, 0),
		vlan(0, 10, 20)};

	set(fib, 8, vlan(0, 10, 20));
	bad[4].vrf = 1;
	bad[5].mtu = 67;
	bad[6].mtu = 9601;
	bad[7].n_macs = FIB_IFACE_MACS + 1;
	bad[8].tag[0].tpid = 0x9100;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		assert_int_equal(fib_iface_set(fib, 9, &bad[i]), -EINVAL);
		assert_null(fib_iface(fib, 9));
		assert_int_equal(fib_iface_set(fib, FIB_MAX_IFACES, &bad[i]), -EINVAL);
	}
	bad[0] = vlan(0, 11, 0);
	bad[0].n_tags = 3;
	assert_int_equal(fib_iface_set(fib, 9, &bad[0]), -EINVAL);
	bad[0].n_tags = 1;
	assert_int_equal(fib_iface_set(fib, 0, &bad[0]), -EINVAL); // the port's own number
	assert_int_equal(fib_iface_set(fib, 9, &bad[0]), 0);
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
	struct fib_iface settings = vlan(2, 10, 20);
	struct fib_answer answer;
	struct fib_hop_info info;

	settings.mac = other;
	settings.mtu = 1400;
	route_via(fib, "20.0.0.0/8", "10.0.0.2", 77);
	assert_int_equal(entry(fib, "20.1.1.1", &answer).verdict, VERDICT_NEIGHBOUR_UNRESOLVED);
	set(fib, 77, settings);
	assert_int_equal(entry(fib, "20.1.1.1", &answer).verdict, VERDICT_NEIGHBOUR_UNRESOLVED);
	set_neighbour(fib, 77, "10.0.0.2");
	struct fib_hop_entry now = entry(fib, "20.1.1.1", &answer);
	assert_int_equal(now.verdict, FIB_VERDICT_TAGGED);
	assert_int_equal(now.port, 2);
	assert_int_equal(now.frame_max, 1414);
	assert_memory_equal(now.macs, third.bytes, 6);
	assert_memory_equal(now.macs + 6, other.bytes, 6);
	struct fib_tags out = fib_tags_load(&fib->view, answer.hop_id);
	assert_memory_equal(out.bytes, ((uint8_t[]){0x88, 0xa8, 0, 10, 0x81, 0, 0, 20}), 8);
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
	assert_int_equal(after.verdict, VERDICT_NEIGHBOUR_UNRESOLVED);
	assert_int_equal(after.port, before.port); // a worker may have checked the old entry
	assert_memory_equal(after.macs, before.macs, 12);
	set(fib, 9, vlan(0, 6, 0));
	assert_int_equal(entry(fib, "20.1.1.1", &answer).verdict, FIB_VERDICT_TAGGED);
	assert_int_equal(fib_tags_load(&fib->view, answer.hop_id).bytes[3], 6);
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
	assert_int_equal(group.verdict, FIB_VERDICT_GROUP);
	const uint16_t *bucket = &fib->view.bucket[fib_entry_group(&group)];
	unsigned n_tagged = 0, n_plain = 0;
	for (unsigned i = 0; i < FIB_GROUP_BUCKETS; i++) {
		struct fib_hop_entry member = fib_hop_load(&fib->view.hops[bucket[i]]);
		n_tagged += member.verdict == FIB_VERDICT_TAGGED && member.port == 1;
		n_plain += member.verdict == VERDICT_FORWARD && member.port == 0;
	}
	assert_int_equal(n_tagged, FIB_GROUP_BUCKETS / 2);
	assert_int_equal(n_plain, FIB_GROUP_BUCKETS / 2);
	members[0].hop.iface = FIB_MAX_IFACES;
	assert_int_equal(fib_group(fib, members, 2, &change.route.hop, NULL), -EINVAL);
	fib_destroy(fib);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(takes_frames_of_a_port_that_was_never_told_of),
		cmocka_unit_test(finds_a_vlan_by_its_port_and_tags),
		cmocka_unit_test(tells_workers_how_many_tags_to_look_for),
		cmocka_unit_test(tells_workers_flags_vrf_and_addresses),
		cmocka_unit_test(drops_what_comes_in_on_a_deleted_iface),
		cmocka_unit_test(finds_every_link_while_others_come_and_go),
		cmocka_unit_test(refuses_what_is_no_iface),
		cmocka_unit_test(sends_out_of_a_vlan_with_its_tags_address_and_mtu),
		cmocka_unit_test(sends_nothing_out_of_a_deleted_iface),
		cmocka_unit_test(members_of_a_group_may_have_tags),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
