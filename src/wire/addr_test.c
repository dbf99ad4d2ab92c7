// Parsers and formatters of addresses.
#include "wire/addr.h"

#include "base/bits.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

static void reads_a_mac_with_colons_or_dashes(void **state)
{
	const struct wire_mac wanted = {{0x02, 0, 0xab, 0xCD, 0xef, 0x1f}};
	struct wire_mac mac;

	assert_int_equal(wire_mac_parse("02:00:ab:CD:ef:1F", &mac), 0);
	assert_true(wire_mac_equal(&mac, &wanted));
	memset(&mac, 0, sizeof(mac));
	assert_int_equal(wire_mac_parse("02-00-ab-cd-ef-1f", &mac), 0);
	assert_true(wire_mac_equal(&mac, &wanted));
}

static void refuses_a_mac_that_is_not_exactly_six_pairs(void **state)
{
	static const char *const bad[] = {"", ":", "0", "02", "02:", "02:00:ab:cd:ef",
		"02:00:ab:cd:ef:", "02:00:ab:cd:ef:1", "02:00:ab:cd:ef:1f:", "02:00:ab:cd:ef:1f ",
		" 02:00:ab:cd:ef:1f", "02:00:ab:cd:ef:1f:00", "02:00-ab:cd:ef:1f",
		"2:00:ab:cd:ef:1f", "0200abcdef1f", "02:00:ab:cd:ef:1g", "02.00.ab.cd.ef.1f",
		"0x:00:ab:cd:ef:1f", "+2:00:ab:cd:ef:1f"};
	const struct wire_mac before = {{1, 2, 3, 4, 5, 6}};
	struct wire_mac mac = before;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		if (wire_mac_parse(bad[i], &mac) != -EINVAL)
			fail_msg("took '%s'", bad[i]);
		assert_true(wire_mac_equal(&mac, &before));
	}
}

static void reads_and_writes_addresses_as_rfc_5952_wants_them(void **state)
{
	static const char *const rows[][2] = {
		{"192.0.2.1", "192.0.2.1"},
		{"0.0.0.0", "0.0.0.0"},
		{"255.255.255.255", "255.255.255.255"},
		{"::", "::"},
		{"::1", "::1"},
		{"2001:DB8:0:0:0:0:0:1", "2001:db8::1"},
		{"2001:db8:0:1:1:1:1:1", "2001:db8:0:1:1:1:1:1"},
		{"2001:0:0:1:0:0:0:1", "2001:0:0:1::1"},
		{"2001:db8:0:0:1:0:0:1", "2001:db8::1:0:0:1"},
		{"fe80::0001", "fe80::1"},
		{"::ffff:192.0.2.1", "::ffff:192.0.2.1"},
		{"ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
			"ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"},
	};
	struct wire_addr addr;
	char text[WIRE_ADDR_TEXT];

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		assert_int_equal(wire_addr_parse(rows[i][0], &addr), 0);
		assert_int_equal(addr.family, strchr(rows[i][0], ':') ? 6 : 4);
		assert_string_equal(wire_addr_print(&addr, text), rows[i][1]);
	}
}

static void leaves_the_rest_of_an_ipv4_address_zero(void **state)
{
	static const uint8_t wanted[16] = {10, 1, 2, 3};
	struct wire_addr addr;

	memset(&addr, 0xff, sizeof(addr));
	assert_int_equal(wire_addr_parse("10.1.2.3", &addr), 0);
	assert_memory_equal(addr.bytes, wanted, 16);
}

static void refuses_text_that_is_not_exactly_an_address(void **state)
{
	static const char *const bad[] = {"", " ", "1", "1.2.3", "1.2.3.4.5", "1.2.3.256",
		"1.2.3.04", "1.2.3.4 ", " 1.2.3.4", "1.2.3.4/32", "0x1.2.3.4", "1..2.3", ":",
		":::", "1::2::3", "12345::", "::1%eth0", "::1/128", "1:2:3:4:5:6:7",
		"1:2:3:4:5:6:7:8:9", "::g", "::1 ", "fe80::1\n", "host"};
	struct wire_addr addr = {.family = 9};

	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		if (wire_addr_parse(bad[i], &addr) != -EINVAL)
			fail_msg("took '%s'", bad[i]);
		assert_int_equal(addr.family, 9);
	}
}

static void reads_and_writes_prefixes(void **state)
{
	static const struct {
		const char *text, *printed;
		int result;
	} rows[] = {
		{"0.0.0.0/0", "0.0.0.0/0", 0},
		{"10.0.0.0/8", "10.0.0.0/8", 0},
		{"10.128.0.0/9", "10.128.0.0/9", 0},
		{"192.0.2.1/32", "192.0.2.1/32", 0},
		{"::/0", "::/0", 0},
		{"2001:db8::/33", "2001:db8::/33", 0},
		{"2001:db8::1/128", "2001:db8::1/128", 0},
		{"10.0.0.1/8", "10.0.0.1/8", -ERANGE},
		{"10.64.0.0/9", "10.64.0.0/9", -ERANGE},
		{"0.0.0.1/0", "0.0.0.1/0", -ERANGE},
		{"::1/127", "::1/127", -ERANGE},
		{"1.2.3.4", NULL, -EINVAL},
		{"1.2.3.4/", NULL, -EINVAL},
		{"1.2.3.4/33", NULL, -EINVAL},
		{"::/129", NULL, -EINVAL},
		{"::/99999999999999999999", NULL, -EINVAL},
		{"1.2.3.4/-1", NULL, -EINVAL},
		{"1.2.3.4/+8", NULL, -EINVAL},
		{"10.0.0.0/08", NULL, -EINVAL},
		{"10.0.0.0/8 ", NULL, -EINVAL},
		{"10.0.0.0/8/8", NULL, -EINVAL},
		{"10.0.0.0/255.0.0.0", NULL, -EINVAL},
		{"/8", NULL, -EINVAL},
		{"0000000000000000000000000000000000000000000000000::/8", NULL, -EINVAL},
	};
	char text[WIRE_PREFIX_TEXT];

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct wire_prefix prefix = {.len = 200};

		if (wire_prefix_parse(rows[i].text, &prefix) != rows[i].result)
			fail_msg("'%s' is not judged %d", rows[i].text, rows[i].result);
		if (rows[i].printed)
			assert_string_equal(wire_prefix_print(&prefix, text), rows[i].printed);
		else
			assert_int_equal(prefix.len, 200);
	}
}

static void masks_the_host_bits(void **state)
{
	static const char *const rows[][2] = {
		{"255.255.255.255/0", "0.0.0.0/0"},
		{"255.255.255.255/9", "255.128.0.0/9"},
		{"255.255.255.255/24", "255.255.255.0/24"},
		{"255.255.255.255/31", "255.255.255.254/31"},
		{"255.255.255.255/32", "255.255.255.255/32"},
		{"ffff:ffff:ffff::ffff/47", "ffff:ffff:fffe::/47"},
		{"ffff::ffff/127", "ffff::fffe/127"},
		{"ffff::ffff/128", "ffff::ffff/128"},
	};
	char text[WIRE_PREFIX_TEXT];

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct wire_prefix prefix;

		wire_prefix_parse(rows[i][0], &prefix);
		wire_prefix_mask(&prefix);
		assert_string_equal(wire_prefix_print(&prefix, text), rows[i][1]);
	}
}

static void tells_families_apart(void **state)
{
	const struct wire_addr four = {.family = 4}, six = {.family = 6}, none = {.family = 0};
	char text[WIRE_ADDR_TEXT];

	assert_false(wire_addr_equal(&four, &six));
	assert_true(wire_addr_equal(&six, &six));
	assert_string_equal(wire_addr_print(&none, text), "none");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_a_mac_with_colons_or_dashes),
		cmocka_unit_test(refuses_a_mac_that_is_not_exactly_six_pairs),
		cmocka_unit_test(reads_and_writes_addresses_as_rfc_5952_wants_them),
		cmocka_unit_test(leaves_the_rest_of_an_ipv4_address_zero),
		cmocka_unit_test(refuses_text_that_is_not_exactly_an_address),
		cmocka_unit_test(reads_and_writes_prefixes),
		cmocka_unit_test(masks_the_host_bits),
		cmocka_unit_test(tells_families_apart),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
