// From the file to the table: the resulting entry for each address, neighbour and route, and the
// conflicts that are rejected.
#include "config/fake_file.h"

#include "base/bits.h"
#include "fib/fib_fast.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ADDRESSED                                                                                  \
	"ports:\n  - {name: left, device: x, addresses: [192.0.2.1/24, 192.0.2.9/24, "             \
	"2001:db8::1/64]}\n"                                                                       \
	"  - {name: right, device: y, peer: 02:00:00:00:00:99, addresses: [198.51.100.0/31]}\n"

static int fill(const char *text, struct fib **out, struct error *error)
{
	const struct wire_mac macs[PORT_MAX] = {{{2, 0, 0, 0, 0, 0xa}}, {{2, 0, 0, 0, 0, 0xb}}};
	struct config *config = fake_take(text);
	struct fib *fib = fib_create(error);

	assert_non_null(fib);
	int err = config_fill(config, macs, fib, error);
	config_free(config);
	if (err)
		fib_destroy(fib);
	else
		*out = fib;
	return err;
}

struct example {
	const char *addr, *prefix;
	int kind;
	const char *verdict;
	uint8_t last_of_mac;
};

static void check_examples(const struct fib *fib, const struct example examples[], size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct example *e = &examples[i];
		struct wire_addr addr;
		struct fib_answer answer;
		char prefix[WIRE_PREFIX_TEXT];

		assert_int_equal(wire_addr_parse(e->addr, &addr), 0);
		rib_lookup(fib, 0, &addr, &answer);
		wire_prefix_print(&answer.route.prefix, prefix);
		if (strcmp(verdict_name(answer.verdict), e->verdict) ||
			(e->last_of_mac && answer.mac.bytes[5] != e->last_of_mac))
			fail_msg("%s: %s to ..:%02x", e->addr, verdict_name(answer.verdict),
				answer.mac.bytes[5]);
		// A neighbour in a connected prefix may have its own host entry.
		if (!e->last_of_mac &&
			(strcmp(prefix, e->prefix) || answer.route.hop.kind != e->kind))
			fail_msg("%s: %s of kind %u", e->addr, prefix, answer.route.hop.kind);
		if (e->last_of_mac && answer.route.hop.kind != e->kind && e->kind != FIB_CONNECTED)
			fail_msg("%s: kind %u", e->addr, answer.route.hop.kind);
	}
}

static void gives_each_address_its_route(void **state)
{
	static const struct example examples[] = {
		{"192.0.2.1", "192.0.2.1/32", FIB_LOCAL, "local", 0},
		{"192.0.2.9", "192.0.2.9/32", FIB_LOCAL, "local", 0},
		{"192.0.2.0", "192.0.2.0/32", FIB_LOCAL, "local", 0},
		{"192.0.2.255", "192.0.2.255/32", FIB_LOCAL, "local", 0},
		{"192.0.2.77", "192.0.2.0/24", FIB_CONNECTED, "neighbour_unresolved", 0},
		{"192.0.2.2", "192.0.2.0/24", FIB_CONNECTED, "forward", 2},
		{"198.51.100.0", "198.51.100.0/32", FIB_LOCAL, "local", 0},
		{"198.51.100.1", "198.51.100.0/31", FIB_CONNECTED, "neighbour_unresolved", 0},
		{"2001:db8::1", "2001:db8::1/128", FIB_LOCAL, "local", 0},
		{"2001:db8::", "2001:db8::/128", FIB_LOCAL, "local", 0},
		{"2001:db8::2", "2001:db8::/64", FIB_CONNECTED, "neighbour_unresolved", 0},
		{"10.1.2.3", "10.0.0.0/8", FIB_VIA, "forward", 2},
		{"11.1.2.3", "11.1.0.0/16", FIB_PEER, "forward", 0x99},
		{"12.1.2.3", "12.0.0.0/8", FIB_BLACKHOLE, "blackhole", 0},
		{"13.1.2.3", "0.0.0.0/0", FIB_VIA, "forward", 3},
		{"2001:db9::1", "::/0", FIB_VIA, "neighbour_unresolved", 0},
	};
	struct error error = {""};
	struct fib *fib = NULL;

	if (fill(ADDRESSED "neighbours: [192.0.2.2 lladdr 02:00:00:00:00:02 dev left]\n"
			   "routes:\n"
			   "  - 10.0.0.0/8 via 192.0.2.2 dev left\n"
			   "  - 11.1.0.0 255.255.0.0 right\n"
			   "  - blackhole 12.0.0.0/8\n"
			   "  - default via 192.0.2.3 dev left lladdr 02:00:00:00:00:03\n"
			   "  - default via 2001:db8::9 dev left\n",
		    &fib, &error))
		fail_msg("refused: %s", error.text);
	check_examples(fib, examples, ARRAY_LEN(examples));
	fib_destroy(fib);
}

static void never_forwards_to_link_local_addresses(void **state)
{
	static const struct example examples[] = {
		{"fe80::1", "fe80::1/128", FIB_LOCAL, "local", 0},
		{"fe80::2", "fe80::/10", FIB_LINK_LOCAL, "link_local_destination", 0},
		{"169.254.1.1", "169.254.1.1/32", FIB_LOCAL, "local", 0},
		{"169.254.1.2", "169.254.0.0/16", FIB_LINK_LOCAL, "link_local_destination", 0},
		{"169.254.1.255", "169.254.0.0/16", FIB_LINK_LOCAL, "link_local_destination", 0},
		{"2001:db8::1", "2001:db8::/32", FIB_VIA, "forward", 2},
	};
	struct error error = {""};
	struct fib *fib = NULL;

	if (fill("ports:\n"
		 "  - {name: left, device: x, addresses: ['fe80::1/64', 169.254.1.1/24]}\n"
		 "  - {name: right, device: y, addresses: ['fe80::1/64']}\n"
		 "neighbours: ['fe80::2 lladdr 02:00:00:00:00:02 dev left']\n"
		 "routes: ['2001:db8::/32 via fe80::2 dev left']\n",
		    &fib, &error))
		fail_msg("refused: %s", error.text);
	check_examples(fib, examples, ARRAY_LEN(examples));
	fib_destroy(fib);
}

struct clash {
	const char *routes, *sentence;
};

static void names_both_lines_of_a_prefix_that_stands_twice(void **state)
{
	static const struct clash clashes[] = {
		{"  - 10.0.0.0/8 dev left\n  - 11.0.0.0/8 dev left\n  - 10.0.0.0/8 dev right\n",
			"f.yaml:7: duplicate route to 10.0.0.0/8 (first in f.yaml:5); remove one"},
		{"  - default dev left\n  - 0.0.0.0 0 right\n",
			"f.yaml:6: duplicate route to 0.0.0.0/0 (first in f.yaml:5); remove one"},
		{"  - 192.0.2.0/24 dev left\n",
			"f.yaml:5: route to 192.0.2.0/24, which is already connected by the port's "
			"address in f.yaml:2; remove one"},
		{"  - blackhole 192.0.2.9\n",
			"f.yaml:5: route to 192.0.2.9/32, which is already connected by the port's "
			"address in f.yaml:2; remove one"},
		{"  - 2001:db8::/64 dev right\n",
			"f.yaml:5: route to 2001:db8::/64, which is already connected by the "
			"port's address in f.yaml:2; remove one"},
		{"  - mpls 100 pop\n  - mpls 101 pop\n  - mpls 100 dev right label 16\n",
			"f.yaml:7: duplicate label 100 (first in f.yaml:5); remove one"},
	};

	for (size_t i = 0; i < ARRAY_LEN(clashes); i++) {
		struct error error = {""};
		struct fib *fib;
		char text[1024];

		snprintf(text, sizeof(text), ADDRESSED "routes:\n%s", clashes[i].routes);
		assert_int_not_equal(fill(text, &fib, &error), 0);
		assert_string_equal(error.text, clashes[i].sentence);
	}
}

static void labels_lead_where_their_lines_say(void **state)
{
	struct fib_label label, found;
	struct fib_member members[4];
	struct error error = {""};
	struct fib *fib = NULL;
	unsigned n = 0;

	if (fill(ADDRESSED
		    "routes:\n  - mpls 100 via 192.0.2.2 dev left label 200/201\n"
		    "  - mpls 101 pipe pop\n"
		    "  - mpls 102 nexthop dev right label 300 nexthop via 192.0.2.2 dev left\n",
		    &fib, &error))
		fail_msg("refused: %s", error.text);
	for (uint32_t from = 0; fib_label_next(fib, from, &label); from = label.label + 1, n++) {
		if (label.label == 100)
			assert_true(label.op == FIB_LABEL_FORWARD && label.hop.n_labels == 2 &&
				    label.hop.label[1] == 201);
		else if (label.label == 102)
			assert_int_equal(fib_group_members(fib, &label.hop, members, 4), 2);
		else
			assert_true(label.op == FIB_LABEL_LOOKUP &&
				    label.is_pipe == (label.label == 101) && !label.loops);
	}
	assert_int_equal(n, 5); // with explicit null
	fib_destroy(fib);
	assert_int_equal(fill(ADDRESSED, &fib, &error), 0);
	assert_false(fib_label_next(fib, 0, &found));
	fib_destroy(fib);
}

static void spreads_a_route_over_several_next_hops(void **state)
{
	struct fib_member members[4];
	struct fib_answer answer;
	struct wire_addr addr;
	struct error error = {""};
	struct fib *fib = NULL;

	if (fill(ADDRESSED
		    "routes:\n  - 10.0.0.0/8 dev left\n"
		    "  - 11.0.0.0/8 nexthop via 192.0.2.2 dev left weight 3 nexthop via "
		    "192.0.2.3 dev left\n"
		    "  - 12.0.0.0/8 nexthop via 192.0.2.3 dev left nexthop via 192.0.2.2 dev "
		    "left weight 3\n",
		    &fib, &error))
		fail_msg("refused: %s", error.text);
	wire_addr_parse("11.1.2.3", &addr);
	rib_lookup(fib, 0, &addr, &answer);
	assert_int_equal(answer.hop.kind, FIB_GROUP);
	assert_int_equal(fib_group_members(fib, &answer.hop, members, 4), 2);
	assert_int_equal(members[0].weight + members[1].weight, 4);
	uint32_t id = answer.hop_id;
	wire_addr_parse("12.1.2.3", &addr);
	rib_lookup(fib, 0, &addr, &answer);
	assert_int_equal(answer.hop_id, id);
	fib_destroy(fib);
}

static void write_file(const char *path, const char *text)
{
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

// Relative names are resolved against the file that contains them, and errors are reported with the
// lines of the route files.
static void reads_route_files_with_their_lines(void **state)
{
	char folder[] = "/tmp/config_XXXXXX", yaml[64], routes[64], expected[256];
	struct config *config = NULL;
	struct error error = {""};

	assert_non_null(mkdtemp(folder));
	snprintf(yaml, sizeof(yaml), "%s/f.yaml", folder);
	snprintf(routes, sizeof(routes), "%s/r.txt", folder);
	write_file(yaml, "ports: [{name: a, device: x}]\nroute_files: [r.txt]\n");
	write_file(routes,
		"\xef\xbb\xbf# two routes\n\n10.0.0.0/8 dev a\n  11.0.0.0/8 dev a  # the last");
	if (config_load(&config, yaml, &error))
		fail_msg("refused: %s", error.text);
	assert_int_equal(config_n_routes(config), 2);
	config_free(config);
	write_file(routes, "10.0.0.0/8 dev a\n\n10.0.0.1/24 dev a\n");
	assert_int_not_equal(config_load(&config, yaml, &error), 0);
	snprintf(expected, sizeof(expected),
		"%s:3: 10.0.0.1/24 has host bits; did you mean 10.0.0.0/24?", routes);
	assert_string_equal(error.text, expected);
	unlink(routes);
	assert_int_not_equal(config_load(&config, yaml, &error), 0);
	snprintf(expected, sizeof(expected),
		"%s:2: route file %s: cannot read the file: No such file or directory", yaml,
		routes);
	assert_string_equal(error.text, expected);
	unlink(yaml);
	rmdir(folder);
}

// Same check as in the file.
static void refuses_a_change_by_way_of_our_own_address(void **state)
{
	static const char *const texts[] = {
		"10.0.0.0/8 via 192.0.2.9 dev left",
		"10.0.0.0/8 nexthop via 192.0.2.2 dev left nexthop via 192.0.2.9 dev left",
	};
	struct config *config = fake_take(ADDRESSED);
	struct error error = {""};
	struct fib *fib = fib_create(&error);
	struct fib_route route;

	assert_non_null(fib);
	for (unsigned i = 0; i < ARRAY_LEN(texts); i++) {
		assert_int_not_equal(config_parse_route(config, fib, texts[i], &route, &error), 0);
		assert_string_equal(error.text, "192.0.2.9 is an address of the router itself; "
						"expected that of a neighbour");
	}
	assert_int_equal(config_parse_route(config, fib, "10.0.0.0/8 via 192.0.2.2 dev left",
				 &route, &error),
		0);
	fib_destroy(fib);
	config_free(config);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(gives_each_address_its_route),
		cmocka_unit_test(never_forwards_to_link_local_addresses),
		cmocka_unit_test(labels_lead_where_their_lines_say),
		cmocka_unit_test(spreads_a_route_over_several_next_hops),
		cmocka_unit_test(names_both_lines_of_a_prefix_that_stands_twice),
		cmocka_unit_test(reads_route_files_with_their_lines),
		cmocka_unit_test(refuses_a_change_by_way_of_our_own_address),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
