// Neighbours, ports and the resulting verdicts of workers. Tests only.
#include "fib/fib.h"

#include "fib/model.h"
#include "fib/table.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const struct wire_mac mac_a = {{2, 0, 0, 0, 0, 0xa}}, mac_b = {{2, 0, 0, 0, 0, 0xb}},
			     own = {{2, 0, 0, 0, 0, 1}};

static struct wire_addr addr(const char *text)
{
	struct wire_addr out;

	assert_int_equal(wire_addr_parse(text, &out), 0);
	return out;
}

static void change(struct fib *fib, enum fib_op op, const char *prefix, struct fib_hop hop)
{
	struct fib_change change = {.op = op, .route.hop = hop};

	assert_int_equal(wire_prefix_parse(prefix, &change.route.prefix), 0);
	assert_int_equal(fib_change(fib, &change, 1, NULL, NULL), 0);
}

static void set(struct fib *fib, uint8_t port, const char *text, const struct wire_mac *mac)
{
	struct wire_addr host = addr(text);

	assert_int_equal(fib_neighbour_set(fib, port, &host, mac, NULL), 0);
}

static void unset(struct fib *fib, uint8_t port, const char *text)
{
	struct wire_addr host = addr(text);

	assert_int_equal(fib_neighbour_delete(fib, port, &host), 0);
}

static struct fib_hop via(const char *text, uint8_t port)
{
	return (struct fib_hop){.via = addr(text), .iface = port, .kind = FIB_VIA};
}

static struct fib_hop kind(enum fib_kind kind, uint16_t port)
{
	return (struct fib_hop){.iface = port, .kind = kind};
}

// What workers read for an address; it must agree with rib_lookup.
static struct fib_hop_entry entry(const struct fib *fib, const char *text)
{
	struct wire_addr host = addr(text);
	struct fib_answer answer;
	uint32_t id = fib_lookup(fib, 0, &host);
	struct fib_hop_entry entry = fib->view.hops[id];

	rib_lookup(fib, 0, &host, &answer);
	assert_int_equal(answer.hop_id, id);
	assert_int_equal(answer.verdict, fib_entry_verdict(&entry));
	if (entry.kind == FIB_HOP_PLAIN)
		assert_memory_equal(answer.mac.bytes, entry.macs, 6);
	return entry;
}

static uint8_t verdict(const struct fib *fib, const char *text)
{
	const struct fib_hop_entry of = entry(fib, text);

	return fib_entry_verdict(&of);
}

static struct fib *fib_with_port(uint8_t port)
{
	struct fib *fib = fib_create(NULL);
	struct iface settings = {.mac = own, .port = port, .mtu = 1500};

	assert_int_equal(fib_iface_set(fib, port, &settings), 0);
	return fib;
}

static void forwards_via_a_neighbour_only_while_its_mac_is_known(void **state)
{
	struct fib *fib = fib_with_port(1);

	change(fib, FIB_ADD, "20.0.0.0/8", via("10.0.0.2", 1));
	assert_int_equal(verdict(fib, "20.1.1.1"), VERDICT_NEIGHBOUR_UNRESOLVED);
	set(fib, 1, "10.0.0.2", &mac_a);
	struct fib_hop_entry now = entry(fib, "20.1.1.1");
	assert_int_equal(fib_entry_verdict(&now), VERDICT_FORWARD);
	assert_memory_equal(now.macs, mac_a.bytes, 6);
	assert_memory_equal(now.macs + 6, own.bytes, 6);
	assert_int_equal(now.frame_max, 1514);
	assert_int_equal(now.port, 1);
	set(fib, 1, "10.0.0.2", &mac_b);
	assert_memory_equal(entry(fib, "20.1.1.1").macs, mac_b.bytes, 6);
	unset(fib, 1, "10.0.0.2");
	now = entry(fib, "20.1.1.1");
	assert_int_equal(fib_entry_verdict(&now), VERDICT_NEIGHBOUR_UNRESOLVED);
	assert_memory_equal(now.macs, mac_b.bytes, 6); // for a worker that has read the old limits
	fib_destroy(fib);
}

static void knows_a_neighbour_that_came_before_its_route(void **state)
{
	struct fib *fib = fib_with_port(1);

	set(fib, 1, "fe80::2", &mac_a);
	change(fib, FIB_ADD, "20.0.0.0/8", via("fe80::2", 1)); // RFC 5549
	assert_int_equal(verdict(fib, "20.1.1.1"), VERDICT_FORWARD);
	assert_int_equal(verdict(fib, "fe80::2"), VERDICT_LINK_LOCAL_DESTINATION);
	fib_destroy(fib);
}

static void reaches_hosts_of_a_connected_route_one_by_one(void **state)
{
	struct fib *fib = fib_with_port(1);

	set(fib, 1, "10.0.0.7", &mac_a);
	set(fib, 1, "2001:db8::7", &mac_b);
	assert_int_equal(verdict(fib, "10.0.0.7"), VERDICT_NO_ROUTE);
	change(fib, FIB_ADD, "10.0.0.0/24", kind(FIB_CONNECTED, 1));
	change(fib, FIB_ADD, "2001:db8::/64", kind(FIB_CONNECTED, 1));
	assert_int_equal(verdict(fib, "10.0.0.7"), VERDICT_FORWARD);
	assert_memory_equal(entry(fib, "10.0.0.7").macs, mac_a.bytes, 6);
	assert_memory_equal(entry(fib, "2001:db8::7").macs, mac_b.bytes, 6);
	assert_int_equal(verdict(fib, "10.0.0.8"), VERDICT_NEIGHBOUR_UNRESOLVED);
	assert_int_equal(verdict(fib, "2001:db8::8"), VERDICT_NEIGHBOUR_UNRESOLVED);
	unset(fib, 1, "10.0.0.7");
	assert_int_equal(verdict(fib, "10.0.0.7"), VERDICT_NEIGHBOUR_UNRESOLVED);
	change(fib, FIB_DELETE, "2001:db8::/64", kind(FIB_CONNECTED, 1));
	assert_int_equal(verdict(fib, "2001:db8::7"), VERDICT_NO_ROUTE);
	fib_destroy(fib);
}

static void takes_a_neighbour_only_on_the_port_of_its_connected_route(void **state)
{
	struct fib *fib = fib_with_port(1);
	struct iface other = {.mac = mac_b, .port = 2, .mtu = 9000};

	assert_int_equal(fib_iface_set(fib, 2, &other), 0);
	change(fib, FIB_ADD, "10.0.0.0/24", kind(FIB_CONNECTED, 1));
	set(fib, 2, "10.0.0.7", &mac_b);
	assert_int_equal(verdict(fib, "10.0.0.7"), VERDICT_NEIGHBOUR_UNRESOLVED);
	set(fib, 1, "10.0.0.7", &mac_a);
	assert_int_equal(entry(fib, "10.0.0.7").port, 1);
	change(fib, FIB_REPLACE, "10.0.0.0/24", kind(FIB_CONNECTED, 2));
	assert_int_equal(entry(fib, "10.0.0.7").port, 2);
	unset(fib, 2, "10.0.0.7");
	assert_int_equal(verdict(fib, "10.0.0.7"), VERDICT_NEIGHBOUR_UNRESOLVED);
	change(fib, FIB_REPLACE, "10.0.0.0/24", kind(FIB_CONNECTED, 1));
	assert_memory_equal(entry(fib, "10.0.0.7").macs, mac_a.bytes, 6);
	fib_destroy(fib);
}

static void prefers_an_explicit_host_route_to_the_neighbour(void **state)
{
	struct fib *fib = fib_with_port(1);

	change(fib, FIB_ADD, "10.0.0.0/24", kind(FIB_CONNECTED, 1));
	set(fib, 1, "10.0.0.7", &mac_a);
	change(fib, FIB_ADD, "10.0.0.7/32", kind(FIB_LOCAL, IFACE_NONE));
	assert_int_equal(verdict(fib, "10.0.0.7"), VERDICT_LOCAL);
	change(fib, FIB_REPLACE, "10.0.0.7/32",
		kind(FIB_CONNECTED, 1)); // a host that is itself on-link
	assert_int_equal(verdict(fib, "10.0.0.7"), VERDICT_FORWARD);
	change(fib, FIB_DELETE, "10.0.0.7/32", kind(FIB_CONNECTED, 1));
	assert_int_equal(verdict(fib, "10.0.0.7"), VERDICT_FORWARD);
	change(fib, FIB_ADD, "10.0.0.4/30", kind(FIB_BLACKHOLE, IFACE_NONE));
	assert_int_equal(verdict(fib, "10.0.0.7"), VERDICT_BLACKHOLE);
	fib_destroy(fib);
}

static void judges_lengths_by_the_mtu_of_the_neighbours_family(void **state)
{
	struct fib *fib = fib_create(NULL);
	struct iface settings = {.mac = own, .port = 3, .mtu = 1500, .mtu6 = 1400};

	assert_int_equal(fib_iface_set(fib, 3, &settings), 0);
	change(fib, FIB_ADD, "20.0.0.0/8", via("10.0.0.2", 3));
	change(fib, FIB_ADD, "2001:db8::/32", via("fe80::2", 3));
	set(fib, 3, "10.0.0.2", &mac_a);
	set(fib, 3, "fe80::2", &mac_a);
	assert_int_equal(entry(fib, "20.1.1.1").frame_max, 1514);
	assert_int_equal(entry(fib, "2001:db8::1").frame_max, 1414);
	settings.mtu6 = 0;
	assert_int_equal(fib_iface_set(fib, 3, &settings), 0);
	assert_int_equal(entry(fib, "2001:db8::1").frame_max, 1514);
	settings.mtu6 = 1501;
	assert_int_equal(fib_iface_set(fib, 3, &settings), -EINVAL);
	fib_destroy(fib);
}

static void rewrites_hops_when_a_port_changes(void **state)
{
	struct fib *fib = fib_create(NULL);
	struct iface settings = {.mac = own, .peer = mac_b, .port = 3, .mtu = 9600};

	change(fib, FIB_ADD, "20.0.0.0/8", via("10.0.0.2", 3));
	change(fib, FIB_ADD, "30.0.0.0/8", kind(FIB_PEER, 3));
	set(fib, 3, "10.0.0.2", &mac_a);
	assert_int_equal(verdict(fib, "20.1.1.1"),
		VERDICT_NEIGHBOUR_UNRESOLVED); // a port without settings yet
	assert_int_equal(fib_iface_set(fib, 3, &settings), 0);
	assert_int_equal(entry(fib, "20.1.1.1").frame_max, 9614);
	assert_int_equal(fib->view.plain->frame_max, 9614);
	assert_int_equal(verdict(fib, "30.1.1.1"), VERDICT_NEIGHBOUR_UNRESOLVED);
	settings.has_peer = true;
	settings.mtu = 576;
	assert_int_equal(fib_iface_set(fib, 3, &settings), 0);
	assert_memory_equal(entry(fib, "30.1.1.1").macs, mac_b.bytes, 6);
	assert_int_equal(entry(fib, "20.1.1.1").frame_max, 590);
	assert_int_equal(fib->view.plain->frame_max, 590);
	settings.mtu = 1500; // the short limit is no longer needed
	assert_int_equal(fib_iface_set(fib, 3, &settings), 0);
	assert_int_equal(fib->view.plain->frame_max, 1514);
	assert_int_equal(fib_iface_set(fib, IFACE_NONE, &settings), -EINVAL);
	fib_destroy(fib);
}

// Port 3 with an MTU of 1500, port 4 with one of 576.
static struct fib *fib_with_two_mtus(void)
{
	struct fib *fib = fib_with_port(3);
	struct iface settings = {.mac = own, .port = 4, .mtu = 576};

	assert_int_equal(fib_iface_set(fib, 4, &settings), 0);
	return fib;
}

static void limits_frames_in_brief_while_a_short_iface_has_neighbours(void **state)
{
	struct fib *fib = fib_with_two_mtus();

	set(fib, 3, "10.0.0.1", &mac_a);
	assert_int_equal(fib->view.plain->frame_max, 1514);
	set(fib, 4, "10.1.0.1", &mac_b);
	assert_int_equal(fib->view.plain->frame_max, 590);
	unset(fib, 4, "10.1.0.1");
	assert_int_equal(fib->view.plain->frame_max, 1514);
	fib_destroy(fib);
}

static void tells_in_brief_of_the_first_ids_only(void **state)
{
	struct fib *fib = fib_with_two_mtus();
	char text[32];

	for (unsigned i = 1; i <= FIB_PLAIN_HOPS; i++) {
		snprintf(text, sizeof(text), "10.0.%u.%u", i / 256, i % 256);
		set(fib, 3, text, &mac_a);
	}
	change(fib, FIB_ADD, "20.0.0.0/8", via("10.1.0.1", 4));
	set(fib, 4, "10.1.0.1", &mac_b);
	assert_int_equal(entry(fib, "20.1.1.1").frame_max, 590);
	assert_int_equal(fib->view.plain->frame_max, 1514);
	for (unsigned id = 0; id < FIB_PLAIN_HOPS; id++)
		assert_int_not_equal(fib->view.plain->port[id], 4);
	fib_destroy(fib);
}

static void gives_each_kind_its_verdict(void **state)
{
	static const struct {
		enum fib_kind kind;
		enum verdict verdict;
	} row[] = {{FIB_LOCAL, VERDICT_LOCAL}, {FIB_BLACKHOLE, VERDICT_BLACKHOLE},
		{FIB_UNREACHABLE, VERDICT_UNREACHABLE}, {FIB_PROHIBIT, VERDICT_PROHIBIT},
		{FIB_MARTIAN, VERDICT_MARTIAN_DESTINATION},
		{FIB_LINK_LOCAL, VERDICT_LINK_LOCAL_DESTINATION},
		{FIB_MULTICAST, VERDICT_MULTICAST}, {FIB_LINUX, VERDICT_LINUX}};
	struct fib *fib = fib_create(NULL);

	for (size_t i = 0; i < ARRAY_LEN(row); i++) {
		change(fib, FIB_REPLACE, "20.0.0.0/8", kind(row[i].kind, IFACE_NONE));
		assert_int_equal(verdict(fib, "20.1.1.1"), row[i].verdict);
	}
	assert_int_equal(verdict(fib, "21.1.1.1"), VERDICT_NO_ROUTE);
	assert_int_equal(verdict(fib, "127.0.0.1"), VERDICT_MARTIAN_DESTINATION);
	assert_int_equal(verdict(fib, "0.0.0.0"), VERDICT_MARTIAN_DESTINATION);
	assert_int_equal(verdict(fib, "255.255.255.255"), VERDICT_MARTIAN_DESTINATION);
	assert_int_equal(verdict(fib, "169.254.3.4"), VERDICT_LINK_LOCAL_DESTINATION);
	assert_int_equal(verdict(fib, "224.0.0.5"), VERDICT_MULTICAST);
	assert_int_equal(verdict(fib, "::"), VERDICT_MARTIAN_DESTINATION);
	assert_int_equal(verdict(fib, "::1"), VERDICT_MARTIAN_DESTINATION);
	assert_int_equal(verdict(fib, "::2"), VERDICT_NO_ROUTE);
	assert_int_equal(verdict(fib, "fe80::1"), VERDICT_LINK_LOCAL_DESTINATION);
	assert_int_equal(verdict(fib, "ff02::5"), VERDICT_MULTICAST);
	fib_destroy(fib);
}

static void counts_routes_neighbours_and_hops(void **state)
{
	struct fib *fib = fib_with_port(1);
	struct fib_usage usage;
	struct fib_hop_info info;

	change(fib, FIB_ADD, "20.0.0.0/8", via("10.0.0.2", 1));
	change(fib, FIB_ADD, "21.0.0.0/8", via("10.0.0.2", 1));
	change(fib, FIB_ADD, "2001:db8::/32", via("10.0.0.2", 1));
	set(fib, 1, "10.0.0.2", &mac_a);
	fib_usage(fib, &usage);
	assert_int_equal(usage.n_routes4, 2);
	assert_int_equal(usage.n_routes6, 1);
	assert_int_equal(usage.n_neighbours, 1);
	struct fib_hop hop = via("10.0.0.2", 1);
	uint32_t id = hops_find(&fib->hops, &hop);
	assert_true(fib_hop_info(fib, id, &info));
	assert_int_equal(info.n_routes, 3);
	assert_int_equal(info.mtu, 1500);
	assert_memory_equal(&info.mac, &mac_a, sizeof(mac_a));
	change(fib, FIB_DELETE, "20.0.0.0/8", hop);
	change(fib, FIB_DELETE, "21.0.0.0/8", hop);
	change(fib, FIB_DELETE, "2001:db8::/32", hop);
	assert_true(fib_hop_info(fib, id, &info)); // the neighbour holds a reference
	unset(fib, 1, "10.0.0.2");
	assert_false(fib_hop_info(fib, id, &info));
	struct wire_addr gone = addr("10.0.0.2");
	assert_int_equal(fib_neighbour_delete(fib, 1, &gone), -ENOENT);
	assert_false(fib_hop_info(fib, 0, &info));
	assert_false(fib_hop_info(fib, 65535, &info));
	fib_destroy(fib);
}

static struct fib_change change_to_host(uint32_t number, uint32_t via)
{
	struct fib_change change = {.op = FIB_REPLACE};

	change.route.prefix =
		(struct wire_prefix){model_addr(4, (model_bits)(0x14000000 + number) << 96), 32};
	change.route.hop =
		(struct fib_hop){.via = model_addr(4, (model_bits)(0x0a000000 + via) << 96),
			.iface = 1};
	return change;
}

// A batch that needs one hop too many changes nothing; a smaller one still fits after it.
static void refuses_a_batch_that_runs_out_of_hops(void **state)
{
	enum { N = FIB_MAX_HOPS - 4 }; // three are the built-in routes', one is Linux's
	static struct fib_change batch[N + 1];
	struct fib *fib = fib_create(NULL);
	struct fib_usage usage;
	struct error error;
	size_t bad;

	for (uint32_t i = 0; i <= N; i++)
		batch[i] = change_to_host(i, i);
	assert_int_equal(fib_change(fib, batch, N + 1, &bad, &error), -ENOSPC);
	assert_int_equal(bad, N);
	assert_non_null(strstr(error.text, "20.15.255.251/32"));
	fib_usage(fib, &usage);
	assert_int_equal(usage.n_routes4, 0);
	assert_int_equal(usage.n_hops, 4);
	assert_int_equal(verdict(fib, "20.0.0.1"), VERDICT_NO_ROUTE);
	assert_int_equal(fib_change(fib, batch, N, &bad, &error), 0);
	struct wire_addr host = addr("10.99.0.1");
	assert_int_equal(fib_neighbour_set(fib, 1, &host, &mac_a, &error), -ENOSPC);
	batch[0].op = FIB_DELETE;
	assert_int_equal(fib_change(fib, batch, 1, &bad, &error), 0);
	assert_int_equal(fib_neighbour_set(fib, 1, &host, &mac_a, &error), 0);
	fib_destroy(fib);
}

static void refuses_what_makes_no_sense(void **state)
{
	struct fib *fib = fib_create(NULL);
	struct fib_change bad[] = {change_to_host(1, 1), change_to_host(1, 1), change_to_host(1, 1),
		change_to_host(1, 1), change_to_host(1, 1)};
	struct error error;
	size_t index;

	bad[0].route.prefix.len = 8; // host bits
	bad[1].route.prefix.addr.family = 5;
	bad[2].route.hop.iface = IFACE_NONE;
	bad[3].route.hop.kind = N_FIB_KINDS;
	bad[4].route.hop.iface = IFACE_MAX;
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct fib_change batch[] = {change_to_host(2, 2), bad[i]};
		assert_int_equal(fib_change(fib, batch, 2, &index, &error), -EINVAL);
		assert_int_equal(index, 1);
		assert_int_equal(verdict(fib, "20.0.0.2"), VERDICT_NO_ROUTE);
	}
	assert_int_equal(fib_change(fib, NULL, 0, NULL, NULL), 0);
	fib_destroy(fib);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(forwards_via_a_neighbour_only_while_its_mac_is_known),
		cmocka_unit_test(knows_a_neighbour_that_came_before_its_route),
		cmocka_unit_test(reaches_hosts_of_a_connected_route_one_by_one),
		cmocka_unit_test(takes_a_neighbour_only_on_the_port_of_its_connected_route),
		cmocka_unit_test(prefers_an_explicit_host_route_to_the_neighbour),
		cmocka_unit_test(judges_lengths_by_the_mtu_of_the_neighbours_family),
		cmocka_unit_test(rewrites_hops_when_a_port_changes),
		cmocka_unit_test(limits_frames_in_brief_while_a_short_iface_has_neighbours),
		cmocka_unit_test(tells_in_brief_of_the_first_ids_only),
		cmocka_unit_test(gives_each_kind_its_verdict),
		cmocka_unit_test(counts_routes_neighbours_and_hops),
		cmocka_unit_test(refuses_a_batch_that_runs_out_of_hops),
		cmocka_unit_test(refuses_what_makes_no_sense),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
