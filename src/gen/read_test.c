// The stream parser: what is accepted, and the error message for each mistake.
#include "gen/read.h"

#include "base/bits.h"
#include "wire/headers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

// left has a line rate of 10 Gbit/s, right an unknown one, small has an MTU of 600 bytes, later is
// a device that is not open yet.
static const struct gen_port ports[] = {
	{"left", {{2, 0, 0, 0, 0, 0x11}}, 1e10, 0},
	{"right", {{2, 0, 0, 0, 0, 0x12}}, 0, 0},
	{"small", {{2, 0, 0, 0, 0, 0x13}}, 1e9, 600},
	{"later", {{2, 0, 0, 0, 0, 0x14}}, -1, 0},
};

static int read_with(struct gen_streams *out, const char *text, const struct gen_port *of,
	struct error *error)
{
	json_t *list = json_loads(text, JSON_DECODE_ANY, NULL);

	assert_non_null(list);
	int err = gen_read_streams(out, list, of, of ? ARRAY_LEN(ports) : 0, error);
	json_decref(list);
	return err;
}

static const struct gen_streams *take(const char *text)
{
	static struct gen_streams streams;
	struct error error = {""};

	if (read_with(&streams, text, ports, &error))
		fail_msg("%s: %s", text, error.text);
	return &streams;
}

#define BASE "\"from\": \"left\", \"to\": \"right\", \"dst_mac\": \"02:00:00:00:00:01\""
#define SLOW BASE ", \"rate\": \"1 kpps\""
#define ONE(keys) "[{" SLOW ", " keys "}]"
#define RATE(rate) "[{" BASE ", \"rate\": " rate "}]"
#define RATE_FROM(port, rate)                                                                      \
	"[{\"from\": \"" port "\", \"to\": \"right\", \"dst_mac\": \"02:00:00:00:00:01\", "        \
	"\"rate\": " rate "}]"
#define RATE_WANTED "expected a rate like 1.5 Mpps, 50 %, 9.5 Gbit/s (layer 1), 9 Gbit/s l2, or max"

struct mistake {
	const char *json, *sentence;
};

static void check_mistakes(const struct mistake mistakes[], size_t n, const struct gen_port *of)
{
	static struct gen_streams streams;
	unsigned wrong = 0;

	for (size_t i = 0; i < n; i++) {
		struct error error = {""};

		if (!read_with(&streams, mistakes[i].json, of, &error))
			snprintf(error.text, sizeof(error.text), "accepted");
		if (!strcmp(error.text, mistakes[i].sentence))
			continue;
		print_error("for:  %s\nsaid: %s\nnot:  %s\n\n", mistakes[i].json, error.text,
			mistakes[i].sentence);
		wrong++;
	}
	assert_int_equal(wrong, 0);
}

static void answers_each_mistake_in_the_list_with_one_sentence(void **state)
{
	static const struct mistake mistakes[] = {
		{"{}", "streams: expected a list of streams"},
		{"3", "streams: expected a list of streams"},
		{"[]", "streams: 0 of them; expected 1 to 64"},
		{"[4]", "streams[0]: expected a map (key: value)"},
		{ONE("\"vlan\": {\"id\": 1, \"\": 1}"),
			"streams[0]: vlan.: unknown key; expected one of id, priority"},
		{ONE("\"siez\": 64"), "streams[0]: siez: unknown key; did you mean \"size\"?"},
		{ONE("\"name\": \"east\", \"tll\": 64"),
			"streams[0] (east): tll: unknown key; did you mean \"ttl\"?"},
		{ONE("\"colours\": 64"),
			"streams[0]: colours: unknown key; expected one of name, id, to, from, "
			"pcap, stamp, protocol, vlan, ttl, dscp, src_mac, dst_mac, src_ip, dst_ip, "
			"src_port, dst_port, encap, flows, distribution, exponent, seed, "
			"count_flows, log_arrivals, expect, size, rate, burst, catch_up, frames, "
			"loops"},
		{"[{\"from\": \"left\"}]", "streams[0]: to: missing; expected the receiving port"},
		{"[{\"from\": \"left\", \"to\": \"right\"}]",
			"streams[0]: dst_mac: missing; expected the destination MAC address, or "
			"auto"},
		{"[{" BASE "}]", "streams[0]: rate: missing; " RATE_WANTED},
		{"[{\"to\": \"rihgt\"}]",
			"streams[0]: to \"rihgt\": unknown port; did you mean \"right\"?"},
		{"[{\"to\": \"elsewhere\"}]",
			"streams[0]: to \"elsewhere\": unknown port; expected the name of a port: "
			"left, right, small, later"},
		{"[{\"to\": 1}]", "streams[0]: to 1: unknown port; expected the name of a port: "
				  "left, right, small, later"},
		{"[{\"to\": \"left\", \"from\": null}]",
			"streams[0]: from (empty): unknown port; expected the name of a port: "
			"left, right, small, later"},
		{ONE("\"name\": \"a b\""),
			"streams[0]: name \"a b\": expected 1 to 31 letters, digits and -_."},
		{ONE("\"name\": \"a2345678901234567890123456789012\""),
			"streams[0]: name \"a2345678901234567890123456789012\": expected 1 to 31 "
			"letters, digits and -_."},
		{ONE("\"name\": []"),
			"streams[0]: name (a list): expected 1 to 31 letters, digits and -_."},
		{"[{" SLOW ", \"name\": \"x\"}, {" SLOW ", \"name\": \"x\"}]",
			"streams[1] (x): name \"x\": x is already the name of streams[0]; choose "
			"another"},
		{"[{" SLOW ", \"name\": \"stream1\"}, {" SLOW "}]",
			"streams[1]: name: stream1 is already the name of streams[0]; choose "
			"another"},
		{"[{" SLOW ", \"id\": 7}, {" SLOW ", \"name\": \"west\", \"id\": 7}]",
			"streams[1] (west): id 7: 7 is already the id of streams[0], so their "
			"stamps would be ambiguous; choose another"},
		{"[{" SLOW ", \"id\": 1}, {" SLOW "}]",
			"streams[1]: id: 1 is already the id of streams[0], so their stamps would "
			"be ambiguous; choose another"},
		{ONE("\"id\": 256"), "streams[0]: id 256: expected a whole number from 0 to 255"},
		{ONE("\"id\": -1"), "streams[0]: id -1: expected a whole number from 0 to 255"},
	};

	check_mistakes(mistakes, ARRAY_LEN(mistakes), ports);
}

static void answers_each_wrong_header_with_one_sentence(void **state)
{
	static const struct mistake mistakes[] = {
		{ONE("\"protocol\": \"icmp\""),
			"streams[0]: protocol \"icmp\": expected udp or tcp"},
		{ONE("\"protocol\": 17"), "streams[0]: protocol 17: expected udp or tcp"},
		{ONE("\"vlan\": 4096"),
			"streams[0]: vlan 4096: expected a whole number from 0 to 4095"},
		{ONE("\"vlan\": {\"priority\": 3}"),
			"streams[0]: vlan.id: missing; expected {id: 5, priority: 3}"},
		{ONE("\"vlan\": {\"id\": 3, \"priority\": 8}"),
			"streams[0]: vlan.priority 8: expected a whole number from 0 to 7"},
		{ONE("\"vlan\": {\"di\": 3}"),
			"streams[0]: vlan.di: unknown key; did you mean \"id\"?"},
		{ONE("\"ttl\": 0"), "streams[0]: ttl 0: expected a whole number from 1 to 255"},
		{ONE("\"src_mac\": \"03:00:00:00:00:01\""),
			"streams[0]: src_mac \"03:00:00:00:00:01\": a multicast address cannot be "
			"a source; expected a unicast MAC address"},
		{ONE("\"src_mac\": \"02:00\""), "streams[0]: src_mac \"02:00\": expected a MAC "
						"address like 02:00:00:00:00:01"},
		{ONE("\"src_ip\": \"198.18.0.256\""),
			"streams[0]: src_ip \"198.18.0.256\": expected an address like 198.18.0.1 "
			"or 2001:2:0:1::1"},
		{ONE("\"src_ip\": \"224.0.0.1\""),
			"streams[0]: src_ip \"224.0.0.1\": a multicast address cannot be a source; "
			"expected the address of a host"},
		{ONE("\"src_ip\": {\"first\": \"223.255.255.255\", \"count\": 2}"),
			"streams[0]: src_ip: a multicast address cannot be a source; expected the "
			"address of a host"},
		{ONE("\"src_ip\": \"255.255.255.255\""),
			"streams[0]: src_ip \"255.255.255.255\": a reserved address (240.0.0.0 and "
			"above) cannot be a source; expected the address of a host"},
		{ONE("\"src_ip\": \"ff02::1\""),
			"streams[0]: src_ip \"ff02::1\": a multicast address cannot be a source; "
			"expected the address of a host"},
		{ONE("\"src_ip\": \"198.18.0.1\", \"dst_ip\": \"2001:db8::1\""),
			"streams[0]: dst_ip \"2001:db8::1\": IPv6, but src_ip is IPv4; expected "
			"the same family"},
		{ONE("\"dst_port\": 65536"),
			"streams[0]: dst_port 65536: expected a whole number from 0 to 65535"},
		{ONE("\"dst_port\": true"),
			"streams[0]: dst_port true: expected a whole number from 0 to 65535"},
	};

	check_mistakes(mistakes, ARRAY_LEN(mistakes), ports);
}

static void answers_each_wrong_range_and_count_with_one_sentence(void **state)
{
	static const struct mistake mistakes[] = {
		{ONE("\"dst_ip\": [\"198.18.0.1\"]"),
			"streams[0]: dst_ip (a list): expected an address like 198.19.0.1 or "
			"2001:2:0:2::1 or {first: VALUE, count: N}"},
		{ONE("\"dst_ip\": {\"count\": 2}"),
			"streams[0]: dst_ip.first: missing; expected {first: VALUE, count: N}"},
		{ONE("\"dst_ip\": {\"first\": \"198.18.0.1\"}"),
			"streams[0]: dst_ip.count: missing; expected {first: VALUE, count: N}"},
		{ONE("\"dst_ip\": {\"first\": \"198.18.0.1\", \"conut\": 5}"),
			"streams[0]: dst_ip.conut: unknown key; did you mean \"count\"?"},
		{ONE("\"dst_ip\": {\"first\": \"198.18.0.1\", \"count\": 0}"),
			"streams[0]: dst_ip.count 0: expected a whole number from 1 to 16777216"},
		{ONE("\"dst_ip\": {\"first\": \"198.18.0.1\", \"count\": 2, \"random\": "
		     "\"yes\"}"),
			"streams[0]: dst_ip.random \"yes\": expected true or false"},
		{ONE("\"dst_port\": {\"first\": 65000, \"count\": 537}"),
			"streams[0]: dst_port.count 537: expected at most 536, so that the last "
			"value is a valid port; lower first or count"},
		{ONE("\"dst_ip\": {\"first\": \"255.255.255.250\", \"count\": 7}"),
			"streams[0]: dst_ip.count 7: expected at most 6, so that the last value "
			"fits in 32 bits; lower first or count"},
		{ONE("\"dst_ip\": {\"first\": \"2001:db8::ffff:ffff\", \"count\": 2}"),
			"streams[0]: dst_ip.count 2: expected at most 1, so that the last value "
			"fits in 32 bits; lower first or count"},
		{ONE("\"src_mac\": {\"first\": \"02:00:ff:ff:ff:ff\", \"count\": 2}"),
			"streams[0]: src_mac.count 2: expected at most 1, so that the last value "
			"fits in 32 bits; lower first or count"},
		{ONE("\"flows\": 2"),
			"streams[0]: flows 2: expected at most 1, the number of combinations of "
			"the fields; raise the count of src_ip, dst_ip or a port"},
		{ONE("\"flows\": 16777217"),
			"streams[0]: flows 16777217: expected a whole number from 1 to 16777216"},
		{ONE("\"distribution\": \"normal\""), "streams[0]: distribution \"normal\": "
						      "expected sequential, uniform or zipf"},
		{ONE("\"exponent\": 1"), "streams[0]: exponent 1: requires \"distribution: zipf\""},
		{ONE("\"distribution\": \"zipf\", \"exponent\": 11"),
			"streams[0]: exponent 11: expected a number from 0.01 to 10"},
		{ONE("\"pcap\": 3"), "streams[0]: pcap 3: expected the path of a capture file"},
		{ONE("\"pcap\": \"/nowhere\""),
			"streams[0]: pcap: cannot open /nowhere: No such file or directory"},
		{ONE("\"pcap\": \"/tmp\""),
			"streams[0]: pcap: /tmp is not a file; expected a capture file"},
		{ONE("\"pcap\": \"/nowhere\", \"ttl\": 3"),
			"streams[0]: pcap: captured frames are sent unchanged, so \"ttl\" has no "
			"effect; remove it"},
		{ONE("\"stamp\": true"), "streams[0]: stamp true: requires \"pcap: FILE\""},
		{ONE("\"loops\": 3"), "streams[0]: loops 3: requires \"pcap: FILE\""},
		{ONE("\"seed\": 1"),
			"streams[0]: seed 1: requires \"distribution: uniform\" or zipf"},
		{ONE("\"distribution\": \"zipf\", \"seed\": -1"),
			"streams[0]: seed -1: expected a whole number from 0 to 4294967295"},
		{ONE("\"flows\": 0"),
			"streams[0]: flows 0: expected a whole number from 1 to 16777216"},
		{ONE("\"catch_up\": 63"),
			"streams[0]: catch_up 63: expected a whole number from 64 to 16384"},
		{ONE("\"burst\": 65"),
			"streams[0]: burst 65: expected a whole number from 1 to 64"},
		{ONE("\"frames\": 0"),
			"streams[0]: frames 0: expected a whole number from 1 to 1099511627776"},
		{ONE("\"frames\": 1.5"),
			"streams[0]: frames 1.5: expected a whole number from 1 to 1099511627776"},
		{ONE("\"frames\": 1e300"), "streams[0]: frames 1e+300: expected a whole number "
					   "from 1 to 1099511627776"},
		{"[{\"to\": \"left\", \"frames\": 3}]",
			"streams[0]: frames 3: a stream without \"from: PORT\" sends nothing; add "
			"that, or remove frames"},
	};

	check_mistakes(mistakes, ARRAY_LEN(mistakes), ports);
}

#define EXPECT(keys) ONE("\"expect\": {" keys "}")

static void answers_each_wrong_expectation_with_one_sentence(void **state)
{
	static const struct mistake mistakes[] = {
		{ONE("\"count_flows\": 1"), "streams[0]: count_flows 1: expected true or false"},
		{ONE("\"dscp\": 64"), "streams[0]: dscp 64: expected a whole number from 0 to 63"},
		{ONE("\"log_arrivals\": 0"),
			"streams[0]: log_arrivals 0: expected a whole number from 1 to 268435456"},
		{ONE("\"pcap\": \"/nowhere\", \"count_flows\": true"),
			"streams[0]: pcap: captured frames are sent unchanged, so \"count_flows\" "
			"has no effect; remove it"},
		{ONE("\"expect\": 7"), "streams[0]: expect 7: expected {secret: N, ports: [PORT, "
				       "...], dscps: [N, ...]}"},
		{EXPECT(""), "streams[0]: expect.secret: missing; expected a number"},
		{EXPECT("\"secret\": -1"), "streams[0]: expect.secret -1: expected a whole number "
					   "from 0 to 9223372036854775807"},
		{EXPECT("\"secret\": 1, \"port\": []"),
			"streams[0]: expect.port: unknown key; did you mean \"ports\"?"},
		{EXPECT("\"secret\": 1, \"ports\": []"),
			"streams[0]: expect.ports (a list): expected a list of 1 to 16 ports"},
		{EXPECT("\"secret\": 1, \"ports\": \"left\""),
			"streams[0]: expect.ports \"left\": expected a list of 1 to 16 ports"},
		{EXPECT("\"secret\": 1, \"ports\": [\"right\", \"elft\"]"),
			"streams[0]: expect.ports \"elft\": unknown port; did you mean \"left\"?"},
		{EXPECT("\"secret\": 1, \"ports\": [\"right\", \"right\"]"),
			"streams[0]: expect.ports \"right\": is in the list twice"},
		{EXPECT("\"secret\": 1, \"ports\": [\"left\", \"small\"]"),
			"streams[0]: expect.ports: expected right, the port of \"to\", to be among "
			"them"},
		{EXPECT("\"secret\": 1, \"dscps\": 3"),
			"streams[0]: expect.dscps 3: expected a list of 1 to 64 numbers from 0 to "
			"63"},
		{EXPECT("\"secret\": 1, \"dscps\": [3, 64]"),
			"streams[0]: expect.dscps 64: expected a whole number from 0 to 63"},
		{EXPECT("\"secret\": 1, \"alternative\": 5"),
			"streams[0]: expect.alternative 5: expected {secret: N, every: N}"},
		{EXPECT("\"secret\": 1, \"alternative\": {\"every\": 5}"),
			"streams[0]: expect.alternative.secret: missing; expected a number"},
		{EXPECT("\"secret\": 1, \"alternative\": {\"secret\": 2, \"every\": 0}"),
			"streams[0]: expect.alternative.every 0: expected a whole number from 1 to "
			"16777216"},
		{ONE("\"size\": 1000, \"expect\": {\"secret\": 1, \"ports\": [\"right\", "
		     "\"small\"]}"),
			"streams[0]: size 1000: port small accepts frames of up to 618 bytes (its "
			"mtu is 600); expected \"mtu: 982\" there, or smaller frames"},
	};

	check_mistakes(mistakes, ARRAY_LEN(mistakes), ports);
}

static void answers_each_impossible_size_with_one_sentence(void **state)
{
	static const struct mistake mistakes[] = {
		{ONE("\"size\": 63"),
			"streams[0]: size 63: expected at least 64 bytes, including the FCS"},
		{ONE("\"size\": \"63\""), "streams[0]: size \"63\": frames of 63 bytes: expected "
					  "at least 64 bytes, including the FCS"},
		{ONE("\"size\": \"18446744073709551680\""),
			"streams[0]: size \"18446744073709551680\": expected bytes from 64 to "
			"9618, imix, classic, or a list of {size: 64, weight: 7}"},
		{ONE("\"size\": -1"), "streams[0]: size -1: expected bytes from 64 to 9618, imix, "
				      "classic, or a list of {size: 64, weight: 7}"},
		{ONE("\"size\": \"jumbo\""),
			"streams[0]: size \"jumbo\": expected bytes from 64 to 9618, imix, "
			"classic, or a list of {size: 64, weight: 7}"},
		{ONE("\"size\": {}"), "streams[0]: size (a map): expected bytes from 64 to 9618, "
				      "imix, classic, or a list of {size: 64, weight: 7}"},
		{ONE("\"size\": 9619"), "streams[0]: size 9619: expected at most 9618 bytes: 9600 "
					"of IP, Ethernet and the FCS"},
		{ONE("\"size\": 9623, \"vlan\": 1"),
			"streams[0]: size 9623: expected at most 9622 bytes: 9600 of IP, Ethernet, "
			"the VLAN tag and the FCS"},
		{ONE("\"size\": 83, \"dst_ip\": \"2001:db8::1\""),
			"streams[0]: size 83: expected at least 84 bytes for the IPv6 and UDP "
			"headers, the stamp and the FCS"},
		{ONE("\"size\": 67, \"protocol\": \"tcp\""),
			"streams[0]: size 67: expected at least 68 bytes for the IPv4 and TCP "
			"headers, the stamp and the FCS"},
		{ONE("\"size\": 67, \"vlan\": 5"),
			"streams[0]: size 67: expected at least 68 bytes for the IPv4 and UDP "
			"headers, the VLAN tag, the stamp and the FCS"},
		{ONE("\"size\": \"imix\", \"src_ip\": \"2001:db8::1\""),
			"streams[0]: size \"imix\": frames of 64 bytes: expected at least 84 bytes "
			"for the IPv6 and UDP headers, the stamp and the FCS"},
		{ONE("\"size\": []"),
			"streams[0]: size (a list): it has 0 members; expected 1 to 16"},
		{ONE("\"size\": [{\"weight\": 2}]"),
			"streams[0]: size[0].size: missing; expected {size: 64, weight: 7}"},
		{ONE("\"size\": [64, {\"size\": 64, \"weight\": 0}]"),
			"streams[0]: size[1].weight 0: expected a whole number from 1 to 1000"},
		{ONE("\"size\": [64, {\"siez\": 64}]"),
			"streams[0]: size[1].siez: unknown key; did you mean \"size\"?"},
		{RATE_FROM("small", "1, \"size\": 619"),
			"streams[0]: size 619: port small accepts frames of up to 618 bytes (its "
			"mtu is 600); expected \"mtu: 601\" there, or smaller frames"},
	};

	check_mistakes(mistakes, ARRAY_LEN(mistakes), ports);
}

static void answers_each_impossible_rate_with_one_sentence(void **state)
{
	static const struct mistake mistakes[] = {
		{RATE("\"fast\""), "streams[0]: rate \"fast\": " RATE_WANTED},
		{RATE("\"1 mpps\""), "streams[0]: rate \"1 mpps\": " RATE_WANTED},
		{RATE("\"1 Gbit/s l3\""), "streams[0]: rate \"1 Gbit/s l3\": " RATE_WANTED},
		{RATE("\"nan\""), "streams[0]: rate \"nan\": " RATE_WANTED},
		{RATE("\"inf pps\""), "streams[0]: rate \"inf pps\": " RATE_WANTED},
		{RATE("\"1e999 pps\""), "streams[0]: rate \"1e999 pps\": " RATE_WANTED},
		{RATE("\"-1 pps\""), "streams[0]: rate \"-1 pps\": " RATE_WANTED},
		{RATE("-1"), "streams[0]: rate -1: " RATE_WANTED},
		{RATE("null"), "streams[0]: rate (empty): " RATE_WANTED},
		{RATE("0"), "streams[0]: rate 0: less than one frame per 1000 s; " RATE_WANTED},
		{RATE("\"0 %\""),
			"streams[0]: rate \"0 %\": less than one frame per 1000 s; " RATE_WANTED},
		{RATE("\"1e-9 pps\""), "streams[0]: rate \"1e-9 pps\": less than one frame per "
				       "1000 s; " RATE_WANTED},
		{RATE("\"15 Mpps\""), "streams[0]: rate \"15 Mpps\": the line rate of port left "
				      "(10 Gbit/s) allows at most 14.881 Mpps of these frames"},
		{RATE("\"101 %\""), "streams[0]: rate \"101 %\": the line rate of port left (10 "
				    "Gbit/s) allows at most 100 % of these frames"},
		{RATE("\"11 Gbit/s\""),
			"streams[0]: rate \"11 Gbit/s\": the line rate of port left (10 Gbit/s) "
			"allows at most 10 Gbit/s of these frames"},
		{RATE("\"8 Gbit/s l2\""),
			"streams[0]: rate \"8 Gbit/s l2\": the line rate of port left (10 Gbit/s) "
			"allows at most 7.61905 Gbit/s l2 of these frames"},
		{RATE_FROM("right", "\"50 %\""),
			"streams[0]: rate \"50 %\": the line rate of port right is unknown; "
			"expected \"line_rate: 100 Gbit/s\" there, or a rate in pps or bit/s"},
		{RATE_FROM("later", "\"100.1 %\""),
			"streams[0]: rate \"100.1 %\": more than 100 %; expected a lower rate"},
		{RATE_FROM("right", "\"11 Gpps\""),
			"streams[0]: rate \"11 Gpps\": more than 10 Gpps; expected a lower rate"},
		{"[{" BASE ", \"rate\": \"60 %\"}, {" BASE ", \"rate\": \"50 %\"}]",
			"streams[1]: rate \"50 %\": the preceding streams leave 40 % of the line "
			"rate of port left (10 Gbit/s), which allows 100 % of these frames"},
		{"[{\"to\": \"left\", \"rate\": \"1 Mpps\"}]",
			"streams[0]: rate \"1 Mpps\": a stream without \"from: PORT\" sends "
			"nothing; add that, or remove rate"},
	};

	check_mistakes(mistakes, ARRAY_LEN(mistakes), ports);
}

static void chooses_what_is_left_out(void **state)
{
	const struct gen_stream *s = take("[{" SLOW "}]")->stream;
	char text[WIRE_ADDR_TEXT];

	assert_string_equal(s->name, "stream0");
	assert_int_equal(s->id, 0);
	assert_int_equal(s->from, 0);
	assert_int_equal(s->to, 1);
	assert_false(s->is_receive_only);
	assert_memory_equal(&s->recipe.src_mac, &ports[0].mac, 6);
	assert_int_equal(s->recipe.dst_mac.bytes[5], 1);
	assert_string_equal(wire_addr_print(&s->recipe.src, text), "198.18.0.1");
	assert_string_equal(wire_addr_print(&s->recipe.dst, text), "198.19.0.1");
	assert_int_equal(s->recipe.src_port, 49152);
	assert_int_equal(s->recipe.dst_port, 9);
	assert_int_equal(s->recipe.ttl, 64);
	assert_int_equal(s->recipe.protocol, WIRE_PROTO_UDP);
	assert_int_equal(s->recipe.frame_bytes, 60);
	assert_int_equal(s->n_sizes, 1);
	assert_int_equal(s->sizes[0].bytes, 64);
	assert_int_equal(s->sizes[0].weight, 1);
	assert_int_equal(s->n_flows, 1);
	assert_int_equal(s->burst, 1);
	assert_int_equal(s->catch_up, 64);
	assert_int_equal(s->n_frames, 0);
	assert_int_equal(s->rate_unit, GEN_PPS);
	assert_true(s->rate == 1000 && s->pps == 1000);
}

static void takes_every_key(void **state)
{
	const struct gen_stream *s =
		take("[{\"to\": \"right\", \"from\": \"left\", \"name\": 12, \"id\": \"200\", "
		     "\"protocol\": \"tcp\", \"vlan\": {\"id\": 5, \"priority\": 3}, \"ttl\": 9, "
		     "\"src_mac\": {\"first\": \"02:00:00:00:00:00\", \"count\": 2}, "
		     "\"dst_mac\": \"33-33-00-00-00-01\", "
		     "\"src_ip\": \"2001:db8::1\", "
		     "\"dst_ip\": {\"first\": \"2001:db8:1::\", \"count\": 4294, \"random\": "
		     "true}, "
		     "\"src_port\": 7, \"dst_port\": {\"first\": \"65000\", \"count\": 536}, "
		     "\"size\": [92, {\"size\": 1500, \"weight\": 3}], \"flows\": 1e6, "
		     "\"rate\": \"50%\", \"burst\": 64, \"catch_up\": 1024, "
		     "\"frames\": 1000000}]")
			->stream;

	assert_string_equal(s->name, "12");
	assert_int_equal(s->id, 200);
	assert_int_equal(s->recipe.vlan_tag, 3 << 13 | 5);
	assert_true(s->recipe.has_vlan);
	assert_int_equal(s->recipe.ttl, 9);
	assert_int_equal(s->recipe.dst_mac.bytes[0], 0x33);
	assert_int_equal(s->recipe.src.family, 6);
	assert_int_equal(s->fields[GEN_SRC_MAC].count, 2);
	assert_int_equal(s->fields[GEN_DST_MAC].count, 1);
	assert_int_equal(s->fields[GEN_DST_IP].count, 4294);
	assert_true(s->fields[GEN_DST_IP].is_random);
	assert_int_equal(s->recipe.dst_port, 65000);
	assert_int_equal(s->fields[GEN_DST_PORT].count, 536);
	assert_int_equal(gen_most_flows(s), 2 * 4294 * 536);
	assert_int_equal(s->n_flows, 1000000);
	assert_int_equal(s->n_sizes, 2);
	assert_int_equal(s->sizes[1].weight, 3);
	assert_int_equal(s->recipe.frame_bytes, 88);
	assert_true(fabs(gen_mean_bytes(s) - 1148) < 1e-9);
	assert_true(fabs(s->pps - 5e9 / (1168 * 8)) < 1e-3);
	assert_int_equal(s->burst, 64);
	assert_int_equal(s->catch_up, 1024);
	assert_int_equal(s->n_frames, 1000000);
}

static void knows_the_smallest_frame_of_each_kind(void **state)
{
	static const struct {
		const char *json;
		unsigned bytes;
	} kinds[] = {
		{ONE("\"ttl\": 1"), 64},
		{ONE("\"vlan\": 1"), 68},
		{ONE("\"protocol\": \"tcp\""), 68},
		{ONE("\"protocol\": \"tcp\", \"vlan\": 0"), 72},
		{ONE("\"src_ip\": \"2001:db8::1\""), 84},
		{ONE("\"src_ip\": \"2001:db8::1\", \"vlan\": 1"), 88},
		{ONE("\"src_ip\": \"2001:db8::1\", \"protocol\": \"tcp\""), 88},
	};

	for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
		const struct gen_stream *s = take(kinds[i].json)->stream;

		assert_int_equal(gen_smallest_bytes(s), kinds[i].bytes);
		assert_int_equal(s->sizes[0].bytes, kinds[i].bytes);
	}
}

static void understands_each_unit_of_a_rate(void **state)
{
	static const struct {
		const char *json;
		int unit;
		double pps;
	} rates[] = {
		{RATE("1000"), GEN_PPS, 1000},
		{RATE("\"1000\""), GEN_PPS, 1000},
		{RATE("0.5"), GEN_PPS, 0.5},
		{RATE("\"1.5 Mpps\""), GEN_PPS, 1.5e6},
		{RATE("\"1.5Mpps\""), GEN_PPS, 1.5e6},
		{RATE("\"2e3 kpps\""), GEN_PPS, 2e6},
		{RATE("\"100 %\""), GEN_PERCENT, 1e10 / 672},
		{RATE("\"50%\""), GEN_PERCENT, 5e9 / 672},
		{RATE("\"10 Gbit/s\""), GEN_BPS_L1, 1e10 / 672},
		{RATE("\"672 Mbit/s l1\""), GEN_BPS_L1, 1e6},
		{RATE("\"512 bit/s l2\""), GEN_BPS_L2, 1},
		{RATE("\"max\""), GEN_MAX_RATE, 0},
		{RATE_FROM("right", "\"100 Mpps\""), GEN_PPS, 1e8},
		{RATE_FROM("later", "\"100 Mpps\""), GEN_PPS, 1e8},
		{RATE_FROM("later", "\"100 %\""), GEN_PERCENT, 0},
	};

	for (size_t i = 0; i < ARRAY_LEN(rates); i++) {
		const struct gen_stream *s = take(rates[i].json)->stream;

		assert_int_equal(s->rate_unit, rates[i].unit);
		if (fabs(s->pps - rates[i].pps) > 1e-6 * rates[i].pps)
			fail_msg("%s: %f pps", rates[i].json, s->pps);
	}
}

static void takes_two_streams_that_fill_a_line_together(void **state)
{
	const struct gen_streams *two = take("[{" BASE ", \"rate\": \"70 %\"}, {" BASE
					     ", \"rate\": \"30 %\", \"size\": \"classic\"}]");

	assert_int_equal(two->n, 2);
	assert_string_equal(two->stream[1].name, "stream1");
	assert_int_equal(two->stream[1].id, 1);
}

static void keeps_the_lines_of_two_ports_apart(void **state)
{
	const struct gen_streams *two =
		take("[{" BASE ", \"rate\": \"70 %\"}, {\"from\": \"small\", \"to\": \"left\", "
		     "\"dst_mac\": \"02:00:00:00:00:01\", \"rate\": \"70 %\"}]");

	assert_true(fabs(two->stream[1].pps - 7e8 / 672) < 1e-3);
}

static void knows_the_mixes_by_name(void **state)
{
	const struct gen_stream *s = take(ONE("\"size\": \"imix\""))->stream;

	assert_int_equal(s->n_sizes, 5);
	assert_true(fabs(gen_mean_bytes(s) -
			    (64 * .45 + 128 * .235 + 256 * .15 + 512 * .11 + 1024 * .055)) < 1e-9);
	s = take(ONE("\"size\": \"classic\""))->stream;
	assert_int_equal(s->n_sizes, 3);
	assert_true(fabs(gen_mean_bytes(s) - (64 * 7 + 570 * 4 + 1518) / 12.0) < 1e-9);
}

static void takes_a_stream_that_another_program_sends(void **state)
{
	const struct gen_stream *s = take("[{\"to\": \"right\", \"flows\": 1}]")->stream;

	assert_true(s->is_receive_only);
	assert_int_equal(s->to, 1);
	assert_true(s->pps == 0);
}

static void makes_sixteen_million_flows_and_no_more(void **state)
{
	const struct gen_stream *s =
		take(ONE("\"src_ip\": {\"first\": \"198.18.0.0\", \"count\": 65536}, "
			 "\"dst_ip\": {\"first\": \"198.19.0.0\", \"count\": 65536}"))
			->stream;

	assert_int_equal(s->n_flows, 16777216);
}

static void checks_without_ports_all_but_them(void **state)
{
	static const struct mistake mistakes[] = {
		{RATE("\"101 %\""),
			"streams[0]: rate \"101 %\": more than 100 %; expected a lower rate"},
		{"[{\"to\": 3}]", "streams[0]: to 3: unknown port; expected the name of a port"},
		{ONE("\"size\": 3"),
			"streams[0]: size 3: expected at least 64 bytes, including the FCS"},
	};
	static struct gen_streams streams;
	struct error error = {""};

	check_mistakes(mistakes, ARRAY_LEN(mistakes), NULL);
	assert_int_equal(read_with(&streams, RATE_FROM("anywhere", "\"50 %\""), NULL, &error), 0);
	assert_true(streams.stream[0].rate == 50 && streams.stream[0].pps == 0);
	assert_int_equal(read_with(&streams, RATE("\"1000 Mpps\""), NULL, &error), 0);
}

static void refuses_more_streams_than_there_is_room_for(void **state)
{
	static struct gen_streams streams;
	struct error error;
	json_t *list = json_array();

	for (unsigned i = 0; i <= GEN_MAX_STREAMS; i++)
		json_array_append_new(list, json_pack("{ss}", "to", "left"));
	assert_int_not_equal(gen_read_streams(&streams, list, ports, 3, &error), 0);
	assert_string_equal(error.text, "streams: 65 of them; expected 1 to 64");
	json_array_remove(list, 0);
	assert_int_equal(gen_read_streams(&streams, list, ports, 3, &error), 0);
	assert_int_equal(streams.n, 64);
	json_decref(list);
}

#define OUTER "\"src_ip\": \"192.0.2.1\", \"dst_ip\": \"192.0.2.2\""
#define ENCAP(keys) ONE("\"encap\": {" keys "}")
#define EXPECT_ENCAP(keys) ONE("\"expect\": {\"encap\": {" keys "}}")

static void answers_each_wrong_encapsulation_with_one_sentence(void **state)
{
	static const struct mistake mistakes[] = {
		{ONE("\"encap\": \"mpls\""),
			"streams[0]: encap \"mpls\": expected a map such as {type: mpls, labels: "
			"[16]}"},
		{ENCAP("\"labels\": 1"), "streams[0]: encap.type: missing; expected mpls, "
					 "mpls-udp, gre, gretap or vxlan"},
		{ENCAP("\"type\": \"none\""), "streams[0]: encap.type \"none\": expected mpls, "
					      "mpls-udp, gre, gretap or vxlan"},
		{ENCAP("\"type\": \"mpls\""), "streams[0]: encap.labels: missing; expected 1 to 4 "
					      "labels, such as [100, 16]"},
		{ENCAP("\"type\": \"mpls\", \"labels\": []"),
			"streams[0]: encap.labels (a list): it has 0 members; expected 1 to 4 "
			"labels"},
		{ENCAP("\"type\": \"mpls\", \"labels\": [1, 2, 3, 4, 5]"),
			"streams[0]: encap.labels (a list): it has 5 members; expected 1 to 4 "
			"labels"},
		{ENCAP("\"type\": \"mpls\", \"labels\": [1048576, 1]"),
			"streams[0]: encap.labels[0] 1048576: expected a whole number from 0 to "
			"1048575"},
		{ENCAP("\"type\": \"mpls\", \"labels\": [1, 1048576]"),
			"streams[0]: encap.labels[1] 1048576: expected a whole number from 0 to "
			"1048575"},
		{ENCAP("\"type\": \"mpls\", \"labels\": [{\"first\": 1, \"count\": 2}, 1]"),
			"streams[0]: encap.labels[0] (a map): expected a whole number from 0 to "
			"1048575"},
		{ENCAP("\"type\": \"mpls\", \"labels\": {\"first\": 1048570, \"count\": 7}"),
			"streams[0]: encap.labels.count 7: expected at most 6, so that the last "
			"value is at most 1048575; lower first or count"},
		{ENCAP("\"type\": \"mpls\", \"labels\": [1, {\"count\": 7}]"),
			"streams[0]: encap.labels[1].first: missing; expected {first: NUMBER, "
			"count: N}"},
		{ENCAP("\"type\": \"mpls\", \"labels\": 1, \"vni\": 1"),
			"streams[0]: encap.vni 1: type mpls has no vni; remove it"},
		{ENCAP("\"type\": \"mpls\", \"labels\": 1, " OUTER),
			"streams[0]: encap.src_ip \"192.0.2.1\": type mpls has no src_ip; remove "
			"it"},
		{ENCAP("\"type\": \"mpls-udp\", \"labels\": 1, \"dst_port\": 6635, " OUTER),
			"streams[0]: encap.dst_port 6635: type mpls-udp has no dst_port; remove "
			"it"},
		{ENCAP("\"type\": \"vxlan\", " OUTER),
			"streams[0]: encap.vni: missing; expected a number from 0 to 16777215"},
		{ENCAP("\"type\": \"vxlan\", \"vni\": 16777216, " OUTER),
			"streams[0]: encap.vni 16777216: expected a whole number from 0 to "
			"16777215"},
		{ENCAP("\"type\": \"vxlan\", \"vni\": 1, \"labels\": 1, " OUTER),
			"streams[0]: encap.labels 1: type vxlan has no labels; remove it"},
		{ENCAP("\"type\": \"vxlan\", \"vni\": 1, \"dst_port\": 6635, " OUTER),
			"streams[0]: encap.dst_port 6635: is the port of MPLS over UDP; choose "
			"another"},
		{ENCAP("\"type\": \"vxlan\", \"vni\": 1, \"src_port\": \"hash\", " OUTER),
			"streams[0]: encap.src_port \"hash\": expected a number from 0 to 65535, "
			"or "
			"flow: 49152 and above, by a hash of the inner addresses and ports"},
		{ENCAP("\"type\": \"vxlan\", \"vni\": 1, \"inner_src_mac\": "
		       "\"01:00:00:00:00:01\", " OUTER),
			"streams[0]: encap.inner_src_mac \"01:00:00:00:00:01\": a multicast "
			"address "
			"cannot be a source; expected a unicast MAC address"},
		{ENCAP("\"type\": \"gre\", \"src_ip\": \"192.0.2.1\""),
			"streams[0]: encap.dst_ip: missing; expected an address like 192.0.2.1 or "
			"2001:db8::1"},
		{ENCAP("\"type\": \"gre\", \"src_ip\": \"192.0.2.1\", \"dst_ip\": \"::1\""),
			"streams[0]: encap.dst_ip \"::1\": IPv6, but src_ip beside it is IPv4; "
			"expected the same family"},
		{ENCAP("\"type\": \"gre\", \"src_ip\": \"ff02::1\""),
			"streams[0]: encap.src_ip \"ff02::1\": a multicast or reserved address "
			"cannot be a source; expected the address of a host"},
		{ENCAP("\"type\": \"gre\", \"key\": 4294967296, " OUTER),
			"streams[0]: encap.key 4294967296: expected a whole number from 0 to "
			"4294967295"},
		{ENCAP("\"type\": \"gre\", \"checksum\": true, " OUTER),
			"streams[0]: encap.checksum true: type gre has no checksum; remove it"},
		{ENCAP("\"type\": \"gre\", \"inner_dst_mac\": \"02:00:00:00:00:01\", " OUTER),
			"streams[0]: encap.inner_dst_mac \"02:00:00:00:00:01\": type gre has no "
			"inner_dst_mac; remove it"},
		{ENCAP("\"type\": \"gre\", \"ttl\": 0, " OUTER),
			"streams[0]: encap.ttl 0: expected a whole number from 1 to 255"},
		{ENCAP("\"type\": \"gre\", \"size\": 64, " OUTER),
			"streams[0]: encap.size: unknown key; expected one of type, labels, vni, "
			"key, src_ip, dst_ip, src_port, dst_port, checksum, ttl, inner_src_mac, "
			"inner_dst_mac"},
		{ONE("\"size\": 91, \"encap\": {\"type\": \"gre\", \"key\": 1, " OUTER "}"),
			"streams[0]: size 91: expected at least 92 bytes for the IPv4 and UDP "
			"headers, the encapsulation, the stamp and the FCS"},
		{ONE("\"expect\": {\"encap\": \"plain\"}"),
			"streams[0]: expect.encap \"plain\": expected none, or a map such as "
			"{type: "
			"mpls, labels: [16]}"},
		{ONE("\"expect\": {\"encap\": \"none\", \"dscps\": [3]}"),
			"streams[0]: expect.secret: missing; expected a number"},
		{EXPECT_ENCAP("\"type\": \"mpls\", \"labels\": {\"first\": 1, \"count\": 2, "
			      "\"random\": true}"),
			"streams[0]: expect.encap.labels.random: unknown key; expected one of "
			"first, count"},
		{EXPECT_ENCAP("\"type\": \"gre\", \"labels\": 1, \"key\": 1"),
			"streams[0]: expect.encap.key 1: only the labels are checked if there are "
			"some; remove it"},
	};

	check_mistakes(mistakes, ARRAY_LEN(mistakes), ports);
}

static void takes_each_encapsulation(void **state)
{
	const struct gen_stream *s =
		take(ENCAP("\"type\": \"mpls-udp\", \"labels\": [3, 1048575, {\"first\": 16, "
			   "\"count\": 100, \"random\": true}], \"checksum\": false, \"ttl\": "
			   "9, " OUTER))
			->stream;

	assert_int_equal(s->encap.type, GEN_MPLS_UDP);
	assert_int_equal(s->encap.n_labels, 3);
	assert_int_equal(s->encap.label[0], 3);
	assert_int_equal(s->encap.label[1], 1048575);
	assert_int_equal(s->encap.id, 16);
	assert_int_equal(s->fields[GEN_ENCAP_ID].count, 100);
	assert_true(s->fields[GEN_ENCAP_ID].is_random);
	assert_int_equal(s->n_flows, 100);
	assert_int_equal(s->encap.dst_port, 6635);
	assert_true(s->encap.hashes_port && !s->encap.has_checksum);
	assert_int_equal(s->encap.ttl, 9);
	assert_int_equal(s->sizes[0].bytes, 64 + 20 + 8 + 12);
	s = take(ENCAP("\"type\": \"vxlan\", \"vni\": 16777215, \"src_port\": 7, "
		       "\"inner_dst_mac\": {\"first\": \"02:00:00:00:00:09\", \"count\": "
		       "3}, " OUTER))
	            ->stream;
	assert_int_equal(s->encap.id, 16777215);
	assert_int_equal(s->encap.dst_port, 4789);
	assert_int_equal(s->encap.src_port, 7);
	assert_true(!s->encap.hashes_port && s->encap.has_checksum);
	assert_int_equal(s->encap.inner_dst.bytes[5], 9);
	assert_int_equal(s->n_flows, 3);
	s = take(ENCAP("\"type\": \"gre\", \"labels\": [2], \"key\": 4294967295, " OUTER))->stream;
	assert_true(s->encap.has_key);
	assert_int_equal(s->encap.key, UINT32_MAX);
	assert_int_equal(s->encap.id, 2);
}

static void expects_the_encapsulation_it_is_told(void **state)
{
	const struct gen_stream *s = take(ONE("\"expect\": {\"encap\": \"none\"}"))->stream;
	const struct gen_expect_encap *encap = &s->expect.encap;

	assert_true(encap->is_checked);
	assert_int_equal(encap->type, GEN_PLAIN);
	assert_int_equal(s->expect.n_ports, 1);
	take(EXPECT_ENCAP("\"type\": \"vxlan\", \"dst_ip\": \"2001:db8::1\""));
	assert_int_equal(encap->type, GEN_VXLAN);
	assert_int_equal(encap->n_ids, 0);
	assert_int_equal(encap->src.family, 0);
	assert_int_equal(encap->dst.family, 6);
	assert_false(encap->has_checksum || encap->has_no_checksum);
	take(EXPECT_ENCAP("\"type\": \"mpls-udp\", \"labels\": [7, {\"first\": 3, \"count\": 4}], "
			  "\"checksum\": false"));
	assert_int_equal(encap->n_labels, 2);
	assert_int_equal(encap->label[0], 7);
	assert_int_equal(encap->id, 3);
	assert_int_equal(encap->n_ids, 4);
	assert_true(!encap->has_checksum && encap->has_no_checksum);
	take(ONE("\"size\": 64"));
	assert_false(encap->is_checked);
}

static void expects_what_it_is_told(void **state)
{
	const struct gen_stream *s = take(ONE("\"size\": 64"))->stream;

	assert_false(s->counts_flows);
	assert_int_equal(s->n_logged, 0);
	assert_int_equal(s->recipe.dscp_ecn, 0);
	assert_int_equal(s->expect.n_ports, 0);
	s = take(ONE("\"log_arrivals\": 268435456, \"dscp\": 46, \"expect\": {\"secret\": 1}"))
	            ->stream;
	assert_int_equal(s->n_logged, 1 << 28);
	assert_int_equal(s->recipe.dscp_ecn, 46 << 2);
	assert_int_equal(s->expect.dscp[0], 46);
	s = take(ONE("\"count_flows\": true, \"expect\": {\"secret\": 9223372036854775807}"))
	            ->stream;
	assert_true(s->counts_flows);
	assert_true(s->expect.secret == INT64_MAX);
	assert_int_equal(s->expect.n_ports, 1);
	assert_int_equal(s->expect.port[0], 1);
	assert_int_equal(s->expect.n_dscps, 1);
	assert_int_equal(s->expect.dscp[0], 0);
	assert_int_equal(s->expect.every, 0);
	s = take(EXPECT("\"secret\": 1, \"ports\": [\"left\", \"right\"], \"dscps\": [0, 46, 63], "
			"\"alternative\": {\"secret\": 2, \"every\": 5}"))
	            ->stream;
	assert_int_equal(s->expect.n_ports, 2);
	assert_int_equal(s->expect.port[0], 0);
	assert_int_equal(s->expect.port[1], 1);
	assert_int_equal(s->expect.n_dscps, 3);
	assert_int_equal(s->expect.dscp[2], 63);
	assert_int_equal(s->expect.other_secret, 2);
	assert_int_equal(s->expect.every, 5);
	assert_int_equal(take(EXPECT("\"secret\": 1, \"alternative\": {\"secret\": 2}"))
				 ->stream->expect.every,
		1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(answers_each_mistake_in_the_list_with_one_sentence),
		cmocka_unit_test(answers_each_wrong_header_with_one_sentence),
		cmocka_unit_test(answers_each_wrong_range_and_count_with_one_sentence),
		cmocka_unit_test(answers_each_wrong_expectation_with_one_sentence),
		cmocka_unit_test(expects_what_it_is_told),
		cmocka_unit_test(answers_each_wrong_encapsulation_with_one_sentence),
		cmocka_unit_test(takes_each_encapsulation),
		cmocka_unit_test(expects_the_encapsulation_it_is_told),
		cmocka_unit_test(answers_each_impossible_size_with_one_sentence),
		cmocka_unit_test(answers_each_impossible_rate_with_one_sentence),
		cmocka_unit_test(chooses_what_is_left_out),
		cmocka_unit_test(takes_every_key),
		cmocka_unit_test(knows_the_smallest_frame_of_each_kind),
		cmocka_unit_test(understands_each_unit_of_a_rate),
		cmocka_unit_test(takes_two_streams_that_fill_a_line_together),
		cmocka_unit_test(keeps_the_lines_of_two_ports_apart),
		cmocka_unit_test(knows_the_mixes_by_name),
		cmocka_unit_test(takes_a_stream_that_another_program_sends),
		cmocka_unit_test(makes_sixteen_million_flows_and_no_more),
		cmocka_unit_test(checks_without_ports_all_but_them),
		cmocka_unit_test(refuses_more_streams_than_there_is_room_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
