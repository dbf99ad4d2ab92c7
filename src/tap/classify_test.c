// Frames and the class selected from their headers, one row each.
#include "base/bits.h"
#include "tap/tap_fast.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { FRAME_MAX = 256 };

#define TO_US "020000000001"
#define TO_GROUP "01005e000005"
#define TO_GROUP6 "333300000001"
#define TO_ALL "ffffffffffff"
#define FROM "020000000002"
#define IP4(proto, dst) "08004500005400000000ff" proto "00000a000002" dst
#define US4 "0a000001"
#define PORTS(from, to) from to "00000000"
#define IP6(next, dst)                                                                             \
	"86dd6000000000"                                                                           \
	"40" next "ff"                                                                             \
	"fe800000000000000000000000000002" dst
#define US6 "20010db8000000000000000000000001"
#define ALL6 "ff020000000000000000000000000001"
#define EXT(next) next "00010400000000"

static const struct row {
	const char *what, *hex;
	enum punt_class class;
} rows[] = {
	{"BGP to us", TO_US FROM IP4("06", US4) PORTS("c000", "00b3"), CLASS_ROUTING},
	{"BGP from their listener", TO_US FROM IP4("06", US4) PORTS("00b3", "c000"), CLASS_ROUTING},
	{"BGP over IPv6", TO_US FROM IP6("06", US6) PORTS("c000", "00b3"), CLASS_ROUTING},
	{"SSH", TO_US FROM IP4("06", US4) PORTS("c000", "0016"), CLASS_HOST},
	{"BFD", TO_US FROM IP4("11", US4) PORTS("c000", "0ec8"), CLASS_ROUTING},
	{"BFD echo", TO_US FROM IP4("11", US4) PORTS("c000", "0ec9"), CLASS_ROUTING},
	{"BFD over many hops", TO_US FROM IP4("11", US4) PORTS("c000", "12b0"), CLASS_ROUTING},
	{"BFD of a bond", TO_US FROM IP6("11", US6) PORTS("c000", "1a80"), CLASS_ROUTING},
	{"an answer to a port of BFD", TO_US FROM IP4("11", US4) PORTS("0ec8", "c000"), CLASS_HOST},
	{"OSPF", TO_GROUP FROM IP4("59", "e0000005"), CLASS_ROUTING},
	{"OSPFv3", TO_GROUP6 FROM IP6("59", ALL6), CLASS_ROUTING},
	{"IS-IS", "0180c2000014" FROM "0040fefe03830000", CLASS_ROUTING},
	{"spanning tree", "0180c2000000" FROM "0026424203000000", CLASS_MULTICAST},
	{"PIM", TO_GROUP FROM IP4("67", "e000000d"), CLASS_ROUTING},
	{"VRRP", TO_GROUP FROM IP4("70", "e0000012"), CLASS_ROUTING},
	{"IGMP", TO_GROUP FROM IP4("02", "e0000016"), CLASS_ROUTING},
	{"EIGRP", TO_GROUP FROM IP4("58", "e000000a"), CLASS_ROUTING},
	{"RIP", TO_GROUP FROM IP4("11", "e0000009") PORTS("0208", "0208"), CLASS_ROUTING},
	{"RIPng", TO_GROUP6 FROM IP6("11", ALL6) PORTS("0209", "0209"), CLASS_ROUTING},
	{"LDP hello", TO_GROUP FROM IP4("11", "e0000002") PORTS("0286", "0286"), CLASS_ROUTING},
	{"LDP session", TO_US FROM IP4("06", US4) PORTS("c000", "0286"), CLASS_ROUTING},
	{"MLDv2 behind hop-by-hop", TO_GROUP6 FROM IP6("00", ALL6) EXT("3a") "8f000000",
		CLASS_ROUTING},
	{"MLD query", TO_GROUP6 FROM IP6("3a", ALL6) "82000000", CLASS_ROUTING},
	{"ARP request", TO_ALL FROM "08060001080006040001", CLASS_NEIGHBOUR},
	{"ARP reply", TO_US FROM "08060001080006040002", CLASS_NEIGHBOUR},
	{"ARP in a VLAN", TO_ALL FROM "8100000a08060001080006040001", CLASS_NEIGHBOUR},
	{"ARP in two tags", TO_ALL FROM "88a800018100000a0806", CLASS_NEIGHBOUR},
	{"ARP in three tags", TO_US FROM "88a80001810000028100000a0806", CLASS_OTHER},
	{"neighbour solicitation", TO_GROUP6 FROM IP6("3a", ALL6) "87000000", CLASS_NEIGHBOUR},
	{"neighbour advertisement", TO_US FROM IP6("3a", US6) "88000000", CLASS_NEIGHBOUR},
	{"router advertisement", TO_GROUP6 FROM IP6("3a", ALL6) "86000000", CLASS_NEIGHBOUR},
	{"ping", TO_US FROM IP4("01", US4) "08000000", CLASS_HOST},
	{"ping over IPv6", TO_US FROM IP6("3a", US6) "80000000", CLASS_HOST},
	{"ping to a group", TO_GROUP6 FROM IP6("3a", ALL6) "80000000", CLASS_MULTICAST},
	{"DHCP", TO_ALL FROM IP4("11", "ffffffff") PORTS("0044", "0043"), CLASS_MULTICAST},
	{"multicast DNS", TO_GROUP FROM IP4("11", "e00000fb") PORTS("14e9", "14e9"),
		CLASS_MULTICAST},
	{"a group's address in a frame to us",
		TO_US FROM IP4("11", "e00000fb") PORTS("0001", "0001"), CLASS_MULTICAST},
	{"first fragment to the port of BGP",
		TO_US FROM "0800450000540000"
			   "2000"
			   "ff0600000a000002" US4 PORTS("c000", "00b3"),
		CLASS_HOST},
	{"later fragment",
		TO_US FROM "0800450000540000"
			   "0001"
			   "ff5900000a000002" US4,
		CLASS_HOST},
	{"fragment to a group",
		TO_GROUP FROM "0800450000540000"
			      "0001"
			      "ff1100000a000002"
			      "e00000fb",
		CLASS_MULTICAST},
	{"IPv6 fragment", TO_US FROM IP6("2c", US6) "0600000000000001" PORTS("c000", "00b3"),
		CLASS_HOST},
	{"BGP behind destination options",
		TO_US FROM IP6("3c", US6) EXT("06") PORTS("c000", "00b3"), CLASS_ROUTING},
	{"BGP behind too many headers",
		TO_US FROM IP6("3c", US6) EXT("3c") EXT("3c") EXT("3c") EXT("3c") EXT("06")
			PORTS("c000", "00b3"),
		CLASS_HOST},
	{"IPv4 with options to BGP",
		TO_US FROM "08004600005800000000ff0600000a000002" US4
			   "94040000" PORTS("c000", "00b3"),
		CLASS_ROUTING},
	{"IPv4 cut in its header", TO_US FROM "080045000054", CLASS_HOST},
	{"IPv4 cut in its ports", TO_US FROM IP4("06", US4) "c000", CLASS_HOST},
	{"IPv4 header of 4 bytes", TO_US FROM "08004100005400000000ff5900000a000002" US4,
		CLASS_HOST},
	{"IPv6 cut in an extension", TO_US FROM IP6("3c", US6) "06ff000000000000", CLASS_HOST},
	{"LLDP", "0180c200000e" FROM "88cc0207", CLASS_MULTICAST},
	{"unknown EtherType", TO_US FROM "88b50000", CLASS_OTHER},
	{"a runt", TO_US FROM "08", CLASS_OTHER},
	{"nothing", "", CLASS_OTHER},
};

static unsigned from_hex(const char *hex, uint8_t *bytes)
{
	unsigned n = 0;

	for (; hex[2 * n]; n++) {
		char pair[3] = {hex[2 * n], hex[2 * n + 1], 0};

		bytes[n] = strtoul(pair, NULL, 16);
	}
	return n;
}

static void knows_the_class_of_each_kind_of_frame(void **state)
{
	for (unsigned i = 0; i < ARRAY_LEN(rows); i++) {
		uint8_t bytes[FRAME_MAX];
		unsigned n = from_hex(rows[i].hex, bytes);
		enum punt_class class = tap_classify(bytes, n);

		if (class != rows[i].class)
			fail_msg("%s: %s instead of %s", rows[i].what, class_row(class)->name,
				class_row(rows[i].class)->name);
	}
}

// Each frame ends at the end of its allocation, so that sanitizers detect overreads.
static void reads_no_byte_beyond_any_frame(void **state)
{
	unsigned seed = 1;

	for (unsigned round = 0; round < 200000; round++) {
		const struct row *row = &rows[rand_r(&seed) % ARRAY_LEN(rows)];
		uint8_t bytes[FRAME_MAX] = {0};
		unsigned n = from_hex(row->hex, bytes);

		n = rand_r(&seed) % (n + 1);
		for (unsigned k = rand_r(&seed) % 4; n && k; k--)
			bytes[rand_r(&seed) % n] = rand_r(&seed);
		uint8_t *exact = malloc(n ? n : 1);
		memcpy(exact, bytes, n);
		assert_true(tap_classify(exact, n) < N_CLASSES);
		free(exact);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(knows_the_class_of_each_kind_of_frame),
		cmocka_unit_test(reads_no_byte_beyond_any_frame),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
