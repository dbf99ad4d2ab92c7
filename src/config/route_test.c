// The parser of routes and neighbours in text form.
#include "config/inside.h"

#include "base/bits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Port 1 has a peer.
static struct port_table_settings ports = {
	.n_ports = 3,
	.ports = {{.name = "left"}, {.name = "right", .has_peer = true}, {.name = "a.b-c_d"}},
};

// Formats the parsed result, or the error message.
static void describe(const char *line, char *out, size_t n)
{
	static const char *const kinds[N_FIB_KINDS] = {"via", "connected", "peer", "group", "local",
		"blackhole", "unreachable", "prohibit", "martian", "link_local", "multicast"};
	struct route_line route;
	struct error error;
	char prefix[WIRE_PREFIX_TEXT], via[WIRE_ADDR_TEXT] = "-", mac[WIRE_MAC_TEXT] = "-";
	int err = route_read(&ports, line, strlen(line), &route, &error);

	if (err) {
		snprintf(out, n, "%s", err > 0 ? "nothing" : error.text);
		return;
	}
	const struct fib_hop *hop = &route.route.hop;
	wire_prefix_print(&route.route.prefix, prefix);
	if (hop->kind == FIB_GROUP) {
		size_t used = snprintf(out, n, "%s group", prefix);

		for (unsigned i = 0; i < route.n_members; i++) {
			const struct route_member *member = &route.member[i];

			used += snprintf(out + used, n - used, " %s %u*%u", kinds[member->hop.kind],
				member->hop.iface, member->weight);
		}
		return;
	}
	if (hop->via.family)
		wire_addr_print(&hop->via, via);
	if (route.n_members && route.member[0].has_mac)
		wire_mac_print(&route.member[0].mac, mac);
	snprintf(out, n, "%s %s %s %u %s", prefix, kinds[hop->kind], via, hop->iface, mac);
}

struct example {
	const char *line, *expected;
};

static unsigned n_wrong(const struct example rows[], size_t n)
{
	unsigned wrong = 0;
	char said[ERROR_MAX];

	for (size_t i = 0; i < n; i++) {
		describe(rows[i].line, said, sizeof(said));
		if (!strcmp(said, rows[i].expected))
			continue;
		print_error("for:  %s\nsaid: %s\nnot:  %s\n\n", rows[i].line, said,
			rows[i].expected);
		wrong++;
	}
	return wrong;
}

static void reads_every_form_of_a_route(void **state)
{
	static const struct example rows[] = {
		{"10.0.0.0/8 via 192.0.2.1 dev left", "10.0.0.0/8 via 192.0.2.1 0 -"},
		{"10.0.0.0/8 dev left via 192.0.2.1", "10.0.0.0/8 via 192.0.2.1 0 -"},
		{"10.0.0.0/8 via 192.0.2.1 dev left lladdr 02:00:00:00:00:0a",
			"10.0.0.0/8 via 192.0.2.1 0 02:00:00:00:00:0a"},
		{"\t 10.0.0.0/8\tdev  a.b-c_d \r", "10.0.0.0/8 connected - 2 -"},
		{"10.0.0.0/8 dev 2 # the third", "10.0.0.0/8 connected - 2 -"},
		{"10.1.2.3 dev left", "10.1.2.3/32 connected - 0 -"},
		{"10.0.0.0/8 via 2001:db8::1 dev left", "10.0.0.0/8 via 2001:db8::1 0 -"},
		{"2001:db8::/32 via fe80::1 dev right", "2001:db8::/32 via fe80::1 1 -"},
		{"2001:db8::1 dev right", "2001:db8::1/128 connected - 1 -"},
		{"default via 192.0.2.1 dev left", "0.0.0.0/0 via 192.0.2.1 0 -"},
		{"default via 2001:db8::1 dev left", "::/0 via 2001:db8::1 0 -"},
		{"default dev left", "0.0.0.0/0 connected - 0 -"},
		{"0.0.0.0/0 dev left", "0.0.0.0/0 connected - 0 -"},
		{"::/0 dev left", "::/0 connected - 0 -"},
		{"10.1.2.0 255.255.255.0 left", "10.1.2.0/24 connected - 0 -"},
		{"10.1.2.0 24 right", "10.1.2.0/24 peer - 1 -"},
		{"10.1.2.0 24 1", "10.1.2.0/24 peer - 1 -"},
		{"10.1.2.3 255.255.255.255 left", "10.1.2.3/32 connected - 0 -"},
		{"0.0.0.0 0.0.0.0 left", "0.0.0.0/0 connected - 0 -"},
		{"128.0.0.0 128.0.0.0 left", "128.0.0.0/1 connected - 0 -"},
		{"2001:db8:: 32 right", "2001:db8::/32 peer - 1 -"},
		{"10.0.0.0/8 nexthop via 192.0.2.1 dev left nexthop dev right weight 3",
			"10.0.0.0/8 group via 0*1 peer 1*3"},
		{"default nexthop via 2001:db8::1 dev left weight 255 lladdr 02:00:00:00:00:01 "
		 "nexthop via 2001:db8::2 dev left",
			"::/0 group via 0*255 via 0*1"},
		{"10.0.0.0/8 nexthop dev left", "10.0.0.0/8 connected - 0 -"},
		{"blackhole 10.0.0.0/8", "10.0.0.0/8 blackhole - 65535 -"},
		{"10.0.0.0/8 unreachable", "10.0.0.0/8 unreachable - 65535 -"},
		{"prohibit 2001:db8::/32", "2001:db8::/32 prohibit - 65535 -"},
		{"blackhole default", "0.0.0.0/0 blackhole - 65535 -"},
		{"", "nothing"},
		{"  \t", "nothing"},
		{" # 10.0.0.0/8 dev left", "nothing"},
	};

	assert_int_equal(n_wrong(rows, ARRAY_LEN(rows)), 0);
}

#define FORMS                                                                                      \
	"\"PREFIX via ADDRESS dev PORT\", \"PREFIX dev PORT\", \"ADDRESS MASK PORT\" "             \
	"or "                                                                                      \
	"\"blackhole PREFIX\""

static void answers_each_mistake_with_one_sentence(void **state)
{
	static const struct example rows[] = {
		{"10.0.0.1/24 dev left", "10.0.0.1/24 has host bits; did you mean 10.0.0.0/24?"},
		{"2001:db8::1/32 dev left",
			"2001:db8::1/32 has host bits; did you mean 2001:db8::/32?"},
		{"10.1.2.3 255.255.255.0 left",
			"10.1.2.3 has host bits; did you mean 10.1.2.0/24?"},
		{"10.0.0.0/33 dev left", "invalid prefix \"10.0.0.0/33\": expected a length of 0 "
					 "to 32 after the slash"},
		{"10.0.0.0/ dev left", "invalid prefix \"10.0.0.0/\": expected a length of 0 to 32 "
				       "after the slash"},
		{"10.0.0.0/08 dev left", "invalid prefix \"10.0.0.0/08\": expected a length of 0 "
					 "to 32 after the slash"},
		{"::/129 dev left",
			"invalid prefix \"::/129\": expected a length of 0 to 128 after the slash"},
		{"10.0.0/8 dev left", "invalid prefix \"10.0.0/8\": expected ADDRESS/LENGTH"},
		{"10.0.0.256/8 dev left",
			"invalid prefix \"10.0.0.256/8\": expected ADDRESS/LENGTH"},
		{"10.0.0.01/8 dev left", "invalid prefix \"10.0.0.01/8\": expected ADDRESS/LENGTH"},
		{"10.0.0.0.0/8 dev left",
			"invalid prefix \"10.0.0.0.0/8\": expected ADDRESS/LENGTH"},
		{"10.0.0.0/8 dev middle",
			"unknown port \"middle\"; expected one of left, right, a.b-c_d"},
		{"10.0.0.0/8 dev 3", "unknown port \"3\"; expected one of left, right, a.b-c_d"},
		{"10.0.0.0/8 dev lef",
			"unknown port \"lef\"; expected one of left, right, a.b-c_d"},
		{"10.0.0.0/8 dev lefty",
			"unknown port \"lefty\"; expected one of left, right, a.b-c_d"},
		{"10.0.0.0/8 via x dev left",
			"invalid address \"x\": expected an IPv4 or IPv6 address"},
		{"10.0.0.0/8 via 224.0.0.1 dev left",
			"224.0.0.1 cannot be the address of a neighbour"},
		{"10.0.0.0/8 via 0.0.0.0 dev left", "0.0.0.0 cannot be the address of a neighbour"},
		{"10.0.0.0/8 via ff02::1 dev left", "ff02::1 cannot be the address of a neighbour"},
		{"10.0.0.0/8 via :: dev left", ":: cannot be the address of a neighbour"},
		{"2001:db8::/32 via 192.0.2.1 dev left",
			"an IPv6 prefix via an IPv4 address; expected an IPv6 address"},
		{"10.0.0.0/8 via 192.0.2.1", "missing \"dev PORT\"; expected the egress port"},
		{"10.0.0.0/8 via", "missing value after \"via\""},
		{"10.0.0.0/8 metric 5 dev left", "unknown word \"metric\": expected via, dev, "
						 "lladdr, label, ttl, or nexthop and "
						 "weight"},
		{"10.0.0.0/8 dev left dev right", "duplicate \"dev\"; expected it once"},
		{"10.0.0.0/8 dev left lladdr 02:00:00:00:00:01",
			"\"lladdr\" without \"via ADDRESS\"; expected the address of the "
			"neighbour"},
		{"10.0.0.0/8 via 192.0.2.1 dev left lladdr 02:00:00:00:00",
			"invalid MAC address \"02:00:00:00:00\": expected six hex pairs, like "
			"02:00:00:00:00:01"},
		{"10.0.0.0/8 via 192.0.2.1 dev left lladdr ff:ff:ff:ff:ff:ff",
			"ff:ff:ff:ff:ff:ff is a multicast address; expected a unicast MAC address"},
		{"10.0.0.0/8 via 192.0.2.1 dev left lladdr 00:00:00:00:00:00",
			"00:00:00:00:00:00 is a zero address; expected a unicast MAC address"},
		{"10.1.2.0 255.0.255.0 left", "invalid mask \"255.0.255.0\": expected a length or "
					      "a mask like 255.255.255.0"},
		{"2001:db8:: 129 left", "invalid mask \"129\": expected a length"},
		{"10.0.0.0/8 nexthop", "missing \"dev PORT\"; expected the egress port"},
		{"10.0.0.0/8 dev left weight 2", "several next hops, or a weight; expected "
						 "\"nexthop\" before each next hop"},
		{"10.0.0.0/8 dev left nexthop dev right",
			"several next hops, or a weight; expected \"nexthop\" before each next "
			"hop"},
		{"10.0.0.0/8 nexthop via 192.0.2.1 dev left nexthop dev left",
			"next hop 2 has no \"via ADDRESS\", and its port has no peer; expected one "
			"of the two"},
		{"10.0.0.0/8 nexthop dev left weight 0",
			"invalid weight \"0\": expected a number from 1 to 255"},
		{"10.0.0.0/8 nexthop dev left weight 256",
			"invalid weight \"256\": expected a number from 1 to 255"},
		{"default nexthop via 2001:db8::1 dev left nexthop via 192.0.2.1 dev left",
			"an IPv6 prefix via an IPv4 address; expected an IPv6 address"},
		{"a b left", "invalid address \"a\": expected " FORMS},
		{"10.0.0.0/8", "invalid route \"10.0.0.0/8\": expected " FORMS},
		{"10.0.0.0/8 vai left", "unknown word \"vai\": expected via, dev or nexthop"},
		{"10.0.0/8 vai left", "invalid prefix \"10.0.0/8\": expected ADDRESS/LENGTH"},
		{"default vai left", "unknown word \"vai\": expected via, dev or nexthop"},
		{"10.0.0.0 vai left",
			"invalid mask \"vai\": expected a length or a mask like 255.255.255.0"},
		{"1 2 3 4 5 6 7 8 9", "invalid prefix \"1\": expected ADDRESS/LENGTH"},
		{"blackhole", "invalid \"blackhole\" route: expected one prefix and nothing else"},
		{"blackhole 10.0.0.0/8 dev left",
			"invalid \"blackhole\" route: expected one prefix and nothing else"},
		{"10.0.0.0/8 prohibit dev left",
			"invalid \"prohibit\" route: expected one prefix and nothing else"},
	};

	assert_int_equal(n_wrong(rows, ARRAY_LEN(rows)), 0);
}

// What is pushed, and what a received label does.
static void describe_labels(const char *line, char *out, size_t n)
{
	static const char *const ops[] = {"", "forward", "pop", "linux"};
	struct route_line route;
	struct error error;
	size_t used = 0;
	int err = route_read(&ports, line, strlen(line), &route, &error);

	if (err) {
		snprintf(out, n, "%s", err > 0 ? "nothing" : error.text);
		return;
	}
	out[0] = 0;
	if (route.is_label)
		used = snprintf(out, n, "%u %s%s", route.label.label, ops[route.label.op],
			route.label.is_pipe ? " pipe" : "");
	for (unsigned i = 0; i < route.n_members; i++) {
		const struct fib_hop *hop = &route.member[i].hop;

		used += snprintf(out + used, n - used, " to %u%s", hop->iface,
			hop->kind == FIB_PEER ? " peer" : "");
		for (unsigned k = 0; k < hop->n_labels; k++)
			used += snprintf(out + used, n - used, "%c%u", k ? '/' : ' ',
				hop->label[k]);
		if (hop->label_ttl)
			used += snprintf(out + used, n - used, " ttl %u", hop->label_ttl);
	}
}

#define LABEL_FORMS                                                                                \
	"\"mpls LABEL via ADDRESS dev PORT\", with \"label LABELS\" or without, or \"mpls LABEL "  \
	"pop\""
#define PUSHABLE "a number from 16 to 1048575, or 0 or 2 (explicit null)"

static void reads_labels_and_answers_their_mistakes(void **state)
{
	static const struct example rows[] = {
		{"10.0.0.0/8 via 192.0.2.1 dev left label 100", " to 0 100"},
		{"10.0.0.0/8 via 192.0.2.1 dev left label 16/1048575/0", " to 0 16/1048575/0"},
		{"::/0 via fe80::1 dev left label 2 ttl 9", " to 0 2 ttl 9"},
		{"10.0.0.0/8 dev right label 100", " to 1 peer 100"},
		{"10.0.0.0/8 nexthop via 192.0.2.1 dev left label 100 weight 2 nexthop dev right",
			" to 0 100 to 1 peer"},
		{"mpls 16 pop", "16 pop"},
		{"mpls 1048575 pipe pop", "1048575 pop pipe"},
		{"mpls 100 via 192.0.2.1 dev left", "100 forward to 0"},
		{"mpls 100 pipe via 192.0.2.1 dev left", "100 forward pipe to 0"},
		{"mpls 100 dev right label 200/201", "100 forward to 1 peer 200/201"},
		{"mpls 100 nexthop via 192.0.2.1 dev left label 1000 nexthop dev right",
			"100 forward to 0 1000 to 1 peer"},
		{"mpls 3 pop", "label 3 is reserved (RFC 3032, 2.1): expected a number from 16 to "
			       "1048575"},
		{"mpls 1048576 pop",
			"invalid label \"1048576\": expected a number from 16 to 1048575"},
		{"mpls 016 pop", "invalid label \"016\": expected a number from 16 to 1048575"},
		{"mpls 16", "invalid label: expected " LABEL_FORMS},
		{"mpls 16 pipe", "invalid label: expected " LABEL_FORMS},
		{"mpls 16 pop left", "unknown word \"left\" after \"pop\"; remove it"},
		{"mpls 16 dev left", "next hop 1 has no \"via ADDRESS\", and its port has no peer; "
				     "expected one of the two"},
		{"mpls 16 via 192.0.2.1 dev left label 17 ttl 9",
			"\"ttl\" of a received label; its TTL is that of the labels that take its "
			"place"},
		{"10.0.0.0/8 via 192.0.2.1 dev left label 1",
			"label 1 is reserved (RFC 3032, 2.1) and cannot be pushed: "
			"expected " PUSHABLE},
		{"10.0.0.0/8 via 192.0.2.1 dev left label 16/x",
			"invalid label \"x\": expected " PUSHABLE},
		{"10.0.0.0/8 via 192.0.2.1 dev left label 16/",
			"invalid label \"\": expected " PUSHABLE},
		{"10.0.0.0/8 via 192.0.2.1 dev left label 1048576",
			"invalid label \"1048576\": expected " PUSHABLE},
		{"10.0.0.0/8 via 192.0.2.1 dev left label 16/17/18/19",
			"more than 3 labels in \"16/17/18/19\"; remove some"},
		{"10.0.0.0/8 via 192.0.2.1 dev left ttl 9",
			"\"ttl\" without \"label LABELS\"; expected the labels that get it"},
		{"10.0.0.0/8 via 192.0.2.1 dev left label 16 ttl 256",
			"invalid ttl \"256\": expected a number from 1 to 255"},
		{"10.0.0.0/8 dev left label 16",
			"\"label\" without \"via ADDRESS\", and the port has no peer; expected one "
			"of the two"},
	};
	char said[ERROR_MAX];

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		describe_labels(rows[i].line, said, sizeof(said));
		assert_string_equal(said, rows[i].expected);
	}
}

static void reads_a_neighbour_in_any_order(void **state)
{
	static const char *const lines[] = {
		"192.0.2.2 lladdr 02:00:00:00:00:02 dev right",
		"192.0.2.2 dev right lladdr 02-00-00-00-00-02",
		" 192.0.2.2\tdev 1 lladdr 02:00:00:00:00:02 # the peer",
	};
	struct neighbour neighbour;
	struct error error;

	for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
		assert_int_equal(neighbour_read(&ports, lines[i], strlen(lines[i]), &neighbour,
					 &error),
			0);
		assert_int_equal(neighbour.port, 1);
		assert_int_equal(neighbour.mac.bytes[5], 2);
		assert_int_equal(neighbour.addr.bytes[3], 2);
	}
}

static void refuses_half_a_neighbour(void **state)
{
	static const char *const lines[] = {
		"192.0.2.2",
		"192.0.2.2 dev right",
		"192.0.2.2 lladdr 02:00:00:00:00:02",
		"192.0.2.2 lladdr 02:00:00:00:00:02 dev left nexthop dev right",
		"192.0.2.2 via 192.0.2.3 dev right lladdr 02:00:00:00:00:02",
		"192.0.2.0/24 dev right lladdr 02:00:00:00:00:02",
	};
	struct neighbour neighbour;
	struct error error;

	for (size_t i = 0; i < ARRAY_LEN(lines); i++)
		assert_true(
			neighbour_read(&ports, lines[i], strlen(lines[i]), &neighbour, &error) < 0);
}

// Bytes after the end of the line are not read.
static void reads_no_byte_beyond_the_line(void **state)
{
	const char text[] = "10.0.0.0/8 dev leftover";
	struct route_line route;
	struct error error;

	for (size_t n = 1; n <= strlen("10.0.0.0/8 dev left"); n++) {
		char *exact = malloc(n);

		memcpy(exact, text, n);
		int err = route_read(&ports, exact, n, &route, &error);
		assert_int_equal(err == 0, n == strlen("10.0.0.0/8 dev left"));
		free(exact);
	}
}

// The name extends to the end of the word, not to a NUL byte inside it.
static void refuses_a_port_name_with_a_nul_byte(void **state)
{
	static const char text[] = "10.0.0.0/8 dev left\0x";
	struct route_line route;
	struct error error;

	assert_int_equal(route_read(&ports, text, sizeof(text) - 3, &route, &error), 0);
	assert_true(route_read(&ports, text, sizeof(text) - 2, &route, &error) < 0);
	assert_true(route_read(&ports, text, sizeof(text) - 1, &route, &error) < 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_every_form_of_a_route),
		cmocka_unit_test(answers_each_mistake_with_one_sentence),
		cmocka_unit_test(reads_labels_and_answers_their_mistakes),
		cmocka_unit_test(reads_a_neighbour_in_any_order),
		cmocka_unit_test(refuses_half_a_neighbour),
		cmocka_unit_test(reads_no_byte_beyond_the_line),
		cmocka_unit_test(refuses_a_port_name_with_a_nul_byte),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
