// Routes into tunnels: what is read, what fills the table, and what is refused.
#include "config/fake_file.h"

#include "base/bits.h"
#include "config/inside.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const struct wire_mac macs[PORT_MAX];

// Two ports, and routes of which each line is one.
static int load(struct config **out, const char *routes, struct error *error)
{
	char text[2048];

	snprintf(text, sizeof(text),
		"ports:\n"
		"- {name: left, device: net_null0, addresses: [192.0.2.1/24, \"2001:db8::1/64\"]}\n"
		"- {name: right, device: net_null1, addresses: [198.51.100.1/24]}\n"
		"routes:\n%s",
		routes);
	const struct source source = {"f.yaml", text, strlen(text), FILES_NONE, &program_forwarder};
	return config_read(out, &source, error);
}

static int fill(const char *routes, struct fib **fib, struct config **config, struct error *error)
{
	int err = load(config, routes, error);

	if (err)
		return err;
	*fib = fib_create(error);
	err = config_fill(*config, macs, *fib, error);
	if (!err)
		return 0;
	fib_destroy(*fib);
	config_free(*config);
	return err;
}

static const struct iface_tunnel *tunnel_to(const struct fib *fib, const char *addr,
	uint16_t *iface)
{
	struct wire_addr dst;
	struct fib_answer answer;

	assert_int_equal(wire_addr_parse(addr, &dst), 0);
	rib_lookup(fib, 0, &dst, &answer);
	assert_int_equal(answer.hop.kind, FIB_PEER);
	*iface = answer.hop.iface;
	return &fib_iface(fib, answer.hop.iface)->tunnel;
}

static void routes_with_the_same_words_share_a_tunnel(void **state)
{
	struct config *config;
	struct fib *fib = NULL;
	struct error error;
	uint16_t one, same, other, six;

	assert_int_equal(fill("- 203.0.113.0/25 encap gre remote 192.0.2.9 key 7\n"
			      "- 203.0.113.128/25 encap gre key 7 remote 192.0.2.9\n"
			      "- 10.0.0.0/8 encap ipip remote 192.0.2.9 local 198.51.100.1\n"
			      "- 2001:db8:9::/48 encap fou remote 2001:db8::9 dport 5555\n",
				 &fib, &config, &error),
		0);
	const struct iface_tunnel *gre = tunnel_to(fib, "203.0.113.1", &one);
	tunnel_to(fib, "203.0.113.200", &same);
	assert_int_equal(one, same);
	assert_int_equal(gre->kind, IFACE_GRE);
	assert_int_equal(gre->key, 7);
	assert_memory_equal(gre->local.bytes, ((uint8_t[]){192, 0, 2, 1}), 4);
	const struct iface_tunnel *ipip = tunnel_to(fib, "10.1.1.1", &other);
	assert_int_not_equal(one, other);
	assert_memory_equal(ipip->local.bytes, ((uint8_t[]){198, 51, 100, 1}), 4);
	const struct iface_tunnel *fou = tunnel_to(fib, "2001:db8:9::1", &six);
	assert_int_equal(fou->dest_port, 5555);
	assert_int_equal(fou->local.family, 6);
	fib_destroy(fib);
	config_free(config);
}

static void a_tunnel_keeps_its_number_over_a_reload(void **state)
{
	struct config *now, *next;
	struct error error;

	assert_int_equal(load(&now,
				 "- 10.1.0.0/16 encap gre remote 192.0.2.8\n"
				 "- 10.2.0.0/16 encap gre remote 192.0.2.9\n",
				 &error),
		0);
	assert_int_equal(load(&next,
				 "- 10.3.0.0/16 encap gre remote 192.0.2.7\n"
				 "- 10.2.0.0/16 encap gre remote 192.0.2.9\n"
				 "- mpls 500 encap gre remote 192.0.2.9\n",
				 &error),
		0);
	tunnels_place(next, now);
	assert_int_equal(next->routes.label[0].label.hop.iface, now->tunnels.tunnel[1].iface);
	assert_int_equal(next->tunnels.tunnel[1].iface, now->tunnels.tunnel[1].iface);
	assert_int_equal(next->routes.change[1].route.hop.iface, now->tunnels.tunnel[1].iface);
	assert_true(next->tunnels.tunnel[0].iface > now->tunnels.tunnel[1].iface);
	assert_int_equal(next->routes.change[0].route.hop.iface, next->tunnels.tunnel[0].iface);
	config_free(now);
	config_free(next);
}

static void labels_share_the_tunnel_that_carries_them(void **state)
{
	struct config *config;
	struct fib *fib = NULL;
	struct fib_label label;
	struct error error;
	uint16_t one, other, plain, with, six;

	assert_int_equal(
		fill("- 10.1.0.0/16 encap mpls-udp label 100 remote 192.0.2.9\n"
		     "- 10.2.0.0/16 encap mpls-udp remote 192.0.2.9 label 200/300 ttl 9\n"
		     "- 10.3.0.0/16 encap gre remote 192.0.2.9\n"
		     "- 10.4.0.0/16 encap gre remote 192.0.2.9 label 7000\n"
		     "- 10.5.0.0/16 encap mpls-udp label 16 remote 2001:db8::9 checksum off\n"
		     "- mpls 500 encap mpls-udp label 100 remote 192.0.2.9\n",
			&fib, &config, &error),
		0);
	const struct iface_tunnel *udp = tunnel_to(fib, "10.1.0.1", &one);
	assert_int_equal(udp->dest_port, 6635);
	assert_int_equal(udp->flags & (IFACE_TUNNEL_UDP | IFACE_TUNNEL_MPLS | IFACE_TUNNEL_IP4),
		IFACE_TUNNEL_UDP | IFACE_TUNNEL_MPLS);
	assert_int_equal(udp->flags & IFACE_TUNNEL_CHECKSUM, 0);
	tunnel_to(fib, "10.2.0.1", &other);
	assert_int_equal(one, other);
	tunnel_to(fib, "10.3.0.1", &plain);
	tunnel_to(fib, "10.4.0.1", &with);
	assert_int_equal(plain, with);
	udp = tunnel_to(fib, "10.5.0.1", &six);
	assert_int_equal(udp->flags & (IFACE_TUNNEL_CHECKSUM | IFACE_TUNNEL_ZERO_CHECKSUM),
		IFACE_TUNNEL_ZERO_CHECKSUM);
	assert_true(fib_label_next(fib, 16, &label));
	assert_int_equal(label.hop.iface, one);
	assert_int_equal(label.hop.label[0], 100);
	assert_int_not_equal(fib_iface(fib, one)->flags & IFACE_MPLS, 0);
	fib_destroy(fib);
	config_free(config);
}

static void a_udp_port_has_packets_or_labels_in_it(void **state)
{
	struct config *config;
	struct error error;

	assert_int_not_equal(load(&config,
				     "- 10.1.0.0/16 encap mpls-udp label 100 remote 192.0.2.9\n"
				     "- 10.2.0.0/16 encap fou dport 6635 remote 192.0.2.8\n",
				     &error),
		0);
	assert_non_null(strstr(error.text, "f.yaml:6: UDP port 6635 has IP packets in it"));
}

// What is received tells tunnels apart by their ends, the key and the UDP port.
static void tunnels_that_are_received_as_one_are_refused(void **state)
{
	static const struct {
		const char *first, *second;
		bool is_twin;
	} rows[] = {
		{"gre remote 192.0.2.9", "gre remote 192.0.2.9 checksum on", true},
		{"gre remote 192.0.2.9", "gre remote 192.0.2.9 local 192.0.2.1", true},
		{"gre remote 192.0.2.9", "gre remote 192.0.2.9 key 0", false},
		{"gre remote 192.0.2.9 key 1", "gre remote 192.0.2.9 key 2", false},
		{"mpls-udp label 16 remote 192.0.2.9",
			"mpls-udp label 16 remote 192.0.2.9 checksum on", true},
		{"mpls-udp label 16 remote 192.0.2.9", "mpls-udp label 16 remote 192.0.2.9 dport 7",
			false},
		{"mpls-udp label 16 remote 192.0.2.9", "ipip label 16 remote 192.0.2.9", false},
		{"fou dport 5555 remote 192.0.2.9", "ipip remote 192.0.2.9", false},
	};

	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		struct config *config;
		struct fib *fib = NULL;
		struct error error = {""};
		char lines[300];

		snprintf(lines, sizeof(lines), "- 10.1.0.0/16 encap %s\n- 10.2.0.0/16 encap %s\n",
			rows[i].first, rows[i].second);
		const int err = fill(lines, &fib, &config, &error);
		if (!err != !rows[i].is_twin)
			fail_msg("%s: %s", lines, error.text);
		if (rows[i].is_twin) {
			assert_string_equal(error.text,
				"f.yaml:6: 192.0.2.9 is the remote end of a tunnel with the same "
				"ends in f.yaml:5; use the same words, or another key or dport");
			continue;
		}
		fib_destroy(fib);
		config_free(config);
	}
}

static void a_seventeenth_udp_port_is_refused(void **state)
{
	struct config *config;
	struct fib *fib = NULL;
	struct error error = {""};
	char lines[2000] = "";
	size_t n = 0;

	for (unsigned i = 1; i <= 17; i++)
		n += snprintf(lines + n, sizeof(lines) - n,
			"- 10.%u.0.0/16 encap fou dport %u remote 192.0.2.%u\n", i,
			i < 17 ? 6000 + i : 6001, 100 + i);
	assert_int_equal(fill(lines, &fib, &config, &error), 0); // two tunnels with one port
	fib_destroy(fib);
	config_free(config);
	snprintf(lines + n, sizeof(lines) - n,
		"- 10.18.0.0/16 encap mpls-udp label 16 remote 192.0.2.118\n");
	assert_int_not_equal(load(&config, lines, &error), 0);
	assert_string_equal(error.text,
		"f.yaml:22: UDP port 6635 of a tunnel is one more than the 16 that can be received "
		"on; use the dport of another tunnel");
}

static void a_mistake_is_named_with_its_line(void **state)
{
	static const struct {
		const char *words, *said;
	} rows[] = {
		{"encap", "missing encapsulation"},
		{"encap vxlan remote 192.0.2.9", "unknown encapsulation \"vxlan\""},
		{"encap gre", "missing \"remote ADDRESS\""},
		{"encap gre remote", "missing value after \"remote\""},
		{"encap gre remote 192.0.2.9 remote 192.0.2.8", "duplicate \"remote\""},
		{"encap gre remote 192.0.2.9 key 4294967296", "invalid key \"4294967296\""},
		{"encap ipip remote 192.0.2.9 key 1", "\"key\" of a tunnel that is not of GRE"},
		{"encap gre remote 192.0.2.9 dport 1", "\"dport\" of a tunnel that is not of fou"},
		{"encap fou remote 192.0.2.9", "missing \"dport PORT\""},
		{"encap fou remote 192.0.2.9 dport 0", "invalid dport \"0\""},
		{"encap gre remote 192.0.2.9 local 2001:db8::1", "different families"},
		{"encap gre remote 192.0.2.9 odd 1", "unknown word \"odd\""},
		{"encap gre remote 192.0.2.1", "192.0.2.1 is an address of the router itself"},
		{"encap gre remote 192.0.2.9 local 192.0.2.7", "192.0.2.7 is no address of the"},
		{"encap gre remote 203.0.113.9", "203.0.113.9 is the remote end of a tunnel and"},
		{"encap gre remote 10.0.0.9", "10.0.0.9 is the remote end of a tunnel and has no"},
		{"encap mpls-udp remote 192.0.2.9", "missing \"label LABELS\""},
		{"encap mpls-udp remote 192.0.2.9 label 3", "label 3 is reserved (RFC 3032, 2.1)"},
		{"encap mpls-udp remote 192.0.2.9 label 1048576", "invalid label \"1048576\""},
		{"encap gre remote 192.0.2.9 label 16/17/18/19", "more than 3 labels"},
		{"encap gre remote 192.0.2.9 label 16 label 17", "duplicate \"label\""},
		{"encap fou remote 192.0.2.9 dport 1 label 16", "\"label\" of a tunnel of fou"},
		{"encap gre remote 192.0.2.9 ttl 4", "\"ttl\" without \"label\""},
		{"encap gre remote 192.0.2.9 label 16 ttl 256", "invalid ttl \"256\""},
		{"encap ipip remote 192.0.2.9 checksum on", "\"checksum\" of a tunnel of ipip"},
		{"encap gre remote 192.0.2.9 checksum 1", "invalid checksum \"1\""},
	};

	for (unsigned i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		char line[200];
		struct config *config;
		struct fib *fib = NULL;
		struct error error = {""};

		snprintf(line, sizeof(line), "- 10.0.0.0/8 %s\n", rows[i].words);
		assert_int_not_equal(fill(line, &fib, &config, &error), 0);
		if (!strstr(error.text, rows[i].said) || !strstr(error.text, "f.yaml:5: "))
			fail_msg("%s: %s", line, error.text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(routes_with_the_same_words_share_a_tunnel),
		cmocka_unit_test(a_tunnel_keeps_its_number_over_a_reload),
		cmocka_unit_test(labels_share_the_tunnel_that_carries_them),
		cmocka_unit_test(a_udp_port_has_packets_or_labels_in_it),
		cmocka_unit_test(tunnels_that_are_received_as_one_are_refused),
		cmocka_unit_test(a_seventeenth_udp_port_is_refused),
		cmocka_unit_test(a_mistake_is_named_with_its_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
