// Header templates: how they are built, and how long they are valid. Tests only.
#include "fib/template.h"

#include "fib/fib.h"
#include "fib/table.h"
#include "rcu/rcu_fast.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

enum { VLAN = 9, PORT = 1, VID = 10, N_OTHERS = 300 };

static const struct wire_mac own = {{2, 0, 0, 0, 0, 1}};
static const struct wire_addr gateway = {.family = 4, .bytes = {10, 0, 0, 2}};

static struct wire_mac mac(uint8_t last)
{
	return (struct wire_mac){{2, 0, 0, 0, 9, last}};
}

static struct iface vlan(uint16_t vid)
{
	return (struct iface){.mac = own,
		.port = PORT,
		.mtu = 1500,
		.n_tags = 1,
		.tag = {{0x8100, vid}}};
}

static void set_iface(struct fib *fib, struct iface settings)
{
	assert_int_equal(fib_iface_set(fib, VLAN, &settings), 0);
}

static void set_neighbour(struct fib *fib, const struct wire_addr *addr, uint8_t last)
{
	const struct wire_mac to = mac(last);

	assert_int_equal(fib_neighbour_set(fib, VLAN, addr, &to, NULL), 0);
}

// Routes 20.0.0.0/8 via the gateway on the VLAN, with MAC 1; returns the hop's id.
static uint32_t lead_over_vlan(struct fib *fib)
{
	struct fib_change change = {.op = FIB_ADD,
		.route.hop = {.kind = FIB_VIA, .iface = VLAN, .via = gateway}};

	set_iface(fib, vlan(VID));
	assert_int_equal(wire_prefix_parse("20.0.0.0/8", &change.route.prefix), 0);
	assert_int_equal(fib_change(fib, &change, 1, NULL, NULL), 0);
	set_neighbour(fib, &gateway, 1);
	return fib_lookup(fib, 0, &(struct wire_addr){.family = 4, .bytes = {20, 1}});
}

static void expect_header(const struct fib_template *header, uint8_t last, uint16_t vid)
{
	const struct wire_mac to = mac(last);
	const uint8_t tag[] = {0x81, 0, vid >> 8, vid & 0xff};

	assert_int_equal((uintptr_t)header % 64, 0);
	assert_int_equal(header->length, 16);
	assert_int_equal(header->replaced, 12);
	assert_memory_equal(header->bytes, to.bytes, 6);
	assert_memory_equal(header->bytes + 6, own.bytes, 6);
	assert_memory_equal(header->bytes + 12, tag, sizeof(tag));
}

static void a_header_has_macs_and_tags_in_order(void **state)
{
	const struct hop hop = {.key.kind = FIB_VIA, .mac = mac(7)};
	struct iface iface = vlan(VID);
	struct fib_template built;

	for (uint8_t n = 0; n <= IFACE_MAX_TAGS; n++) {
		iface.n_tags = n;
		iface.tag[0] = (struct iface_tag){n == 2 ? 0x88a8 : 0x8100, 0x123};
		iface.tag[1] = (struct iface_tag){0x8100, 0xffe};
		template_build(&built, &hop, &iface);
		assert_int_equal(built.length, 12 + 4 * n);
		assert_int_equal(built.mtu_bytes, 0);
		assert_int_equal(template_is_plain(&built), n == 0);
		assert_memory_equal(built.bytes, hop.mac.bytes, 6);
		assert_memory_equal(built.bytes + 6, own.bytes, 6);
	}
	assert_memory_equal(built.bytes + 12,
		((uint8_t[]){0x88, 0xa8, 0x01, 0x23, 0x81, 0x00, 0x0f, 0xfe}), 8);
}

static void a_peers_mac_comes_from_the_interface(void **state)
{
	const struct hop hop = {.key.kind = FIB_PEER, .mac = mac(7)};
	struct iface iface = vlan(VID);
	struct fib_template built;

	iface.peer = mac(8);
	template_build(&built, &hop, &iface);
	expect_header(&built, 8, VID);
}

static void small_headers_take_one_line_and_long_ones_more(void **state)
{
	static const uint8_t lengths[] = {16, FIB_TEMPLATE_SMALL, FIB_TEMPLATE_SMALL + 1, 104, 105,
		FIB_TEMPLATE_MAX};
	static const uint8_t lines[] = {1, 1, 2, 2, 3, 3};
	const struct fib_template *published[ARRAY_LEN(lengths)];
	struct fib_template built = {.replaced = 12};
	struct blocks pool;

	assert_int_equal(templates_open(&pool), 0);
	for (unsigned i = 0; i < ARRAY_LEN(lengths); i++) {
		built.length = lengths[i];
		memset(built.bytes, i + 1, sizeof(built.bytes));
		published[i] = template_publish(&pool, &built);
		assert_int_equal(template_lines(&pool, published[i]).n, lines[i]);
	}
	for (unsigned i = 0; i < ARRAY_LEN(lengths); i++) {
		built.length = lengths[i];
		memset(built.bytes, i + 1, sizeof(built.bytes));
		assert_true(templates_equal(published[i], &built));
		built.bytes[lengths[i] - 1]++;
		assert_false(templates_equal(published[i], &built));
		assert_false(i && templates_equal(published[i], published[i - 1]));
	}
	blocks_close(&pool);
}

// Makes templates of other hops, which would take the place of one that was freed too early.
static void make_others(struct fib *fib, uint8_t net)
{
	for (unsigned i = 0; i < N_OTHERS; i++)
		set_neighbour(fib,
			&(struct wire_addr){.family = 4, .bytes = {10, net, i >> 8, i & 0xff}}, 99);
}

static void a_replaced_template_is_valid_until_the_reader_reports(void **state)
{
	struct rcu *rcu = rcu_create(1, NULL);
	struct fib_live live = {.rcu = rcu};
	struct fib *fib = fib_create(NULL);
	const uint32_t id = lead_over_vlan(fib);
	const struct rcu_readers *readers = rcu_readers(rcu);

	fib_live_swap(&live, fib);
	rcu_reader_online(readers, 0);
	const struct fib_template *read = fib_template_load(fib_live_view(&live), id);
	set_neighbour(fib, &gateway, 2);
	const struct fib_template *now = fib_template_load(fib_live_view(&live), id);
	assert_ptr_not_equal(read, now);
	expect_header(now, 2, VID);
	rcu_poll(rcu);
	make_others(fib, 1);
	rcu_poll(rcu);
	expect_header(read, 1, VID);
	assert_int_equal(fib->hops.templates.n_free, 0);
	rcu_reader_report(readers, 0);
	rcu_poll(rcu);
	assert_int_equal(fib->hops.templates.n_free, 1);
	set_neighbour(fib, &gateway, 3); // takes the place of the first one
	assert_ptr_equal(fib_template_load(fib_live_view(&live), id), read);
	expect_header(read, 3, VID);
	rcu_reader_offline(readers, 0);
	fib_live_swap(&live, NULL);
	fib_destroy(fib);
	rcu_destroy(rcu);
}

static void a_template_outlives_its_hop_until_the_reader_reports(void **state)
{
	struct rcu *rcu = rcu_create(1, NULL);
	struct fib_live live = {.rcu = rcu};
	struct fib *fib = fib_create(NULL);
	const uint32_t id = lead_over_vlan(fib);
	const struct rcu_readers *readers = rcu_readers(rcu);
	struct fib_change gone = {.op = FIB_DELETE};

	assert_int_equal(wire_prefix_parse("20.0.0.0/8", &gone.route.prefix), 0);
	fib_live_swap(&live, fib);
	rcu_reader_online(readers, 0);
	assert_int_equal(fib_neighbour_delete(fib, VLAN, &gateway), 0);
	assert_int_equal(fib_change(fib, &gone, 1, NULL, NULL), 0);
	rcu_poll(rcu);
	make_others(fib, 1);
	expect_header(fib_template_load(fib_live_view(&live), id), 1, VID); // looked up before
	rcu_reader_report(readers, 0);
	rcu_poll(rcu);
	const size_t before = blocks_bytes(&fib->hops.templates);
	assert_int_equal(lead_over_vlan(fib), id);
	assert_int_equal(blocks_bytes(&fib->hops.templates), before);
	rcu_reader_offline(readers, 0);
	fib_live_swap(&live, NULL);
	fib_destroy(fib);
	rcu_destroy(rcu);
}

static void a_lost_neighbour_leaves_its_template(void **state)
{
	struct fib *fib = fib_create(NULL);
	const uint32_t id = lead_over_vlan(fib);
	const struct fib_template *before = fib_template_load(&fib->view, id);

	assert_int_equal(fib_neighbour_delete(fib, VLAN, &gateway), 0);
	struct fib_hop_entry entry = fib_hop_load(&fib->view.hops[id]);
	assert_int_equal(entry.kind, FIB_HOP_STOP);
	assert_int_equal(entry.verdict, VERDICT_NEIGHBOUR_UNRESOLVED);
	assert_ptr_equal(fib_template_load(&fib->view, id), before);
	expect_header(before, 1, VID);
	set_neighbour(fib, &gateway, 1);
	entry = fib_hop_load(&fib->view.hops[id]);
	assert_int_equal(entry.kind, FIB_HOP_TEMPLATE);
	assert_int_equal(entry.frame_max, 1514);
	assert_ptr_equal(fib_template_load(&fib->view, id), before);
	fib_destroy(fib);
}

static void a_template_stays_if_nothing_in_it_changes(void **state)
{
	struct fib *fib = fib_create(NULL);
	const uint32_t id = lead_over_vlan(fib);
	const struct fib_template *before = fib_template_load(&fib->view, id);
	struct iface settings = vlan(VID);
	struct fib_hop_info info;

	settings.mtu = 1400;
	set_iface(fib, settings);
	assert_ptr_equal(fib_template_load(&fib->view, id), before);
	assert_int_equal(fib_hop_load(&fib->view.hops[id]).frame_max, 1414);
	assert_true(fib_hop_info(fib, id, &info));
	assert_int_equal(info.mtu, 1400);
	assert_memory_equal(info.mac.bytes, mac(1).bytes, 6);
	fib_iface_delete(fib, VLAN);
	assert_ptr_equal(fib_template_load(&fib->view, id), before);
	assert_int_equal(fib_hop_load(&fib->view.hops[id]).kind, FIB_HOP_STOP);
	fib_destroy(fib);
}

static void bytes_that_count_shorten_packets(void **state)
{
	struct fib *fib = fib_create(NULL);
	const uint16_t id = lead_over_vlan(fib);
	const struct fib_template label = {.length = 18, .replaced = 14, .mtu_bytes = 4};
	struct iface settings = vlan(VID);

	settings.mtu6 = 1400;
	set_iface(fib, settings);
	assert_int_equal(hops_mtu(&fib->hops, id, 4), 1500);
	fib->hops.hop[id].template = &label;
	assert_int_equal(hops_mtu(&fib->hops, id, 4), 1496);
	assert_int_equal(hops_mtu(&fib->hops, id, 6), 1396);
	fib_destroy(fib);
}

static void an_interface_may_get_another_vlan_id(void **state)
{
	struct fib *fib = fib_create(NULL);
	const uint32_t id = lead_over_vlan(fib);
	const size_t bytes = blocks_bytes(&fib->hops.templates);

	for (uint16_t vid = 11; vid < 1000; vid++) {
		set_iface(fib, vlan(vid));
		assert_int_equal(fib_hop_load(&fib->view.hops[id]).kind, FIB_HOP_TEMPLATE);
		expect_header(fib_template_load(&fib->view, id), 1, vid);
	}
	assert_in_range(blocks_bytes(&fib->hops.templates), bytes, bytes + 64); // the old one
	fib_destroy(fib);
}

// Without tags, the interface has the index of its port.
static void an_interface_may_lose_its_tags(void **state)
{
	struct fib *fib = fib_create(NULL);
	const uint32_t id = lead_over_vlan(fib);
	struct fib_hop_entry entry;

	for (unsigned i = 0; i < 2; i++) {
		set_iface(fib, (struct iface){.mac = own, .port = VLAN, .mtu = 1500});
		entry = fib_hop_load(&fib->view.hops[id]);
		assert_int_equal(entry.kind, FIB_HOP_PLAIN);
		assert_int_equal(entry.port, VLAN);
		assert_memory_equal(entry.macs, mac(1).bytes, 6);
		assert_memory_equal(entry.macs + 6, own.bytes, 6);
		set_iface(fib, vlan(VID));
		entry = fib_hop_load(&fib->view.hops[id]);
		assert_int_equal(entry.kind, FIB_HOP_TEMPLATE);
		expect_header(fib_template_load(&fib->view, id), 1, VID);
	}
	fib_destroy(fib);
}

static void a_hop_without_space_for_its_template_stops(void **state)
{
	struct fib *fib = fib_create(NULL);
	const uint32_t id = lead_over_vlan(fib);
	const struct fib_template *before = fib_template_load(&fib->view, id);
	const uint32_t limit = fib->hops.templates.limit;

	fib->hops.templates.limit = fib->hops.templates.top;
	set_neighbour(fib, &gateway, 2);
	assert_int_equal(fib_hop_load(&fib->view.hops[id]).kind, FIB_HOP_STOP);
	assert_ptr_equal(fib_template_load(&fib->view, id), before);
	expect_header(before, 1, VID);
	fib->hops.templates.limit = limit;
	set_neighbour(fib, &gateway, 2);
	assert_int_equal(fib_hop_load(&fib->view.hops[id]).kind, FIB_HOP_TEMPLATE);
	expect_header(fib_template_load(&fib->view, id), 2, VID);
	fib_destroy(fib);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_header_has_macs_and_tags_in_order),
		cmocka_unit_test(a_peers_mac_comes_from_the_interface),
		cmocka_unit_test(small_headers_take_one_line_and_long_ones_more),
		cmocka_unit_test(a_replaced_template_is_valid_until_the_reader_reports),
		cmocka_unit_test(a_template_outlives_its_hop_until_the_reader_reports),
		cmocka_unit_test(a_lost_neighbour_leaves_its_template),
		cmocka_unit_test(a_template_stays_if_nothing_in_it_changes),
		cmocka_unit_test(bytes_that_count_shorten_packets),
		cmocka_unit_test(an_interface_may_get_another_vlan_id),
		cmocka_unit_test(an_interface_may_lose_its_tags),
		cmocka_unit_test(a_hop_without_space_for_its_template_stops),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
