// Rules as text: what is read, what is printed, and what is refused in one sentence.
#include "acl/acl.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

// A rule that is printed as `printed` (NULL: as it is written).
static const struct {
	const char *text, *printed;
} good[] = {
	{"deny", NULL},
	{"permit tcp from 10.0.0.0/8 to 192.0.2.1/32 from_port 1024-65535 to_port 80", NULL},
	{"permit tcp from any to 192.0.2.1 port 80", "permit tcp to 192.0.2.1/32 to_port 80"},
	{"reject udp to 2001:db8::/32 to_port 53 name dns",
		"reject udp to 2001:db8::/32 to_port 53"},
	{"deny any", "deny"},
	{"punt 253 local", NULL},
	{"punt local", NULL},
	{"deny icmp icmp_type 8 icmp_code 0", "deny icmp family ipv4 icmp_type 8 icmp_code 0"},
	{"deny icmp6 to 2001:db8::/32 icmp_type 128-129", NULL},
	{"deny icmpv6 icmp_type 128", "deny icmp6 family ipv6 icmp_type 128"},
	{"deny tcp tcp_flags syn,!ack", NULL},
	{"permit tcp tcp_flags !cwr,fin", "permit tcp tcp_flags fin,!cwr"},
	{"deny udp fragment later", NULL},
	{"deny fragment any", NULL},
	{"deny udp to_port 1 fragment any", "deny udp to_port 1 fragment first"},
	{"permit dscp 46 mark 0 mirror east", NULL},
	{"permit family ipv6 dscp 10-14", NULL},
	{"  deny\tesp  ", "deny esp"},
	{"permit udp police.rate 10Mbit/s police.burst 64kB", NULL},
	{"permit police.rate 2.5gbit/s police.burst 1518B police.mtu 1500 police.overhead 24 "
	 "police.bucket shared",
		"permit police.rate 2500Mbit/s police.burst 1518B police.mtu 1500 police.overhead "
		"24 police.bucket shared"},
	{"permit police.burst 20packets police.rate 1000packets/s",
		"permit police.rate 1000packets/s police.burst 20packets"},
	{"permit police.rate 8kbit/s", "permit police.rate 8kbit/s police.burst 15180B"},
	{"permit police.rate 400Gbit/s", "permit police.rate 400Gbit/s police.burst 500MB"},
	{"permit police.rate 5000packets/s",
		"permit police.rate 5000packets/s police.burst 50packets"},
};

static const struct {
	const char *text, *message;
} bad[] = {
	{"", "empty rule"},
	{"allow tcp", "invalid rule \"allow\": expected permit, deny, reject or punt first"},
	{"deny tpc", "unknown protocol or key 'tpc'"},
	{"deny tpc from any", "unknown key 'tpc' of a rule"},
	{"deny tcp from", "'from' needs a value"},
	{"deny tcp from 10.0.0.1/8",
		"invalid from \"10.0.0.1/8\": expected ADDRESS, ADDRESS/LENGTH or any"},
	{"deny tcp from 10.0.0.0/8 from 10.0.0.0/8", "key 'from' twice"},
	{"deny from 10.0.0.0/8 to 2001:db8::/32", "IPv4 and IPv6 in one rule: use a rule for each"},
	{"deny port 80", "ports need a protocol that has them: add protocol tcp, udp, sctp, dccp "
			 "or udplite"},
	{"deny esp port 80", "ports need a protocol that has them: add protocol tcp, udp, sctp, "
			     "dccp or udplite"},
	{"deny tcp port 90-80", "invalid to_port \"90-80\": expected PORT or PORT-PORT"},
	{"deny tcp port 65536", "invalid to_port \"65536\": expected PORT or PORT-PORT"},
	{"deny tcp port -1", "invalid to_port \"-1\": expected PORT or PORT-PORT"},
	{"deny udp tcp_flags syn", "tcp_flags need protocol tcp"},
	{"deny tcp tcp_flags syn,,ack",
		"invalid tcp_flags \"syn,,ack\": expected flags with ',' between them, '!' before "
		"those that must be clear, as in syn,!ack"},
	{"deny icmp_type 8", "icmp_type and icmp_code need protocol icmp (IPv4) or icmp6 (IPv6)"},
	{"deny icmp to 2001:db8::/32 icmp_type 8",
		"IPv4 and IPv6 in one rule: use a rule for each"},
	{"deny udp port 1 fragment later",
		"a later fragment has no transport header, so that ports, TCP flags and ICMP types "
		"never match"},
	{"permit mark 64", "invalid mark \"64\": expected a DSCP from 0 to 63"},
	{"deny tcp mirror east",
		"mirror is for packets that are forwarded: it needs do: permit, and no local"},
	{"permit tcp mirror east local",
		"mirror is for packets that are forwarded: it needs do: permit, and no local"},
	{"permit police.rate 7999bit/s",
		"invalid police.rate \"7999bit/s\": expected 8 kbit/s to 400 Gbit/s, or 1 to "
		"50,000,000,000 packets/s"},
	{"permit police.rate 401Gbit/s",
		"invalid police.rate \"401Gbit/s\": expected 8 kbit/s to 400 Gbit/s, or 1 to "
		"50,000,000,000 packets/s"},
	{"permit police.rate 999999999999Gbit/s",
		"invalid police.rate \"999999999999Gbit/s\": expected 8 kbit/s to 400 Gbit/s, or "
		"1 to 50,000,000,000 packets/s"},
	{"permit police.rate 10", "invalid police.rate \"10\": expected 8 kbit/s to 400 Gbit/s, "
				  "or 1 to 50,000,000,000 packets/s"},
	{"permit police.rate -1Mbit/s",
		"invalid police.rate \"-1Mbit/s\": expected 8 kbit/s to 400 Gbit/s, or 1 to "
		"50,000,000,000 packets/s"},
	{"permit police.rate 1Mbit/s police.burst 1517B",
		"invalid police.burst \"1517B\": expected 1518 B to 4 GB, or 1 to 4,000,000,000 "
		"packets"},
	{"permit police.rate 1Mbit/s police.burst 1518.5B",
		"invalid police.burst \"1518.5B\": expected 1518 B to 4 GB, or 1 to 4,000,000,000 "
		"packets"},
	{"permit police.burst 64kB", "police needs a rate: add police.rate"},
	{"deny police.rate 1Mbit/s", "police is for packets that may pass: it needs do: permit"},
	{"permit police.rate 1Mbit/s police.burst 10packets",
		"police.rate and police.burst differ in what they count: use bytes, or packets, "
		"for both"},
	{"permit police.rate 1packets/s police.overhead 4",
		"police.overhead is for bytes, but police.rate counts packets"},
	{"permit name a/b",
		"invalid name \"a/b\": expected 1 to 31 letters, digits, '-', '_' or '.'"},
};

static void rules_are_read_and_printed(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		struct acl_rule rule, again;
		struct error error = {""};
		char text[ACL_RULE_TEXT];

		if (acl_rule_parse(&rule, good[i].text, &error))
			fail_msg("%s: %s", good[i].text, error.text);
		assert_string_equal(acl_rule_print(&rule, text),
			good[i].printed ? good[i].printed : good[i].text);
		assert_int_equal(acl_rule_parse(&again, text, NULL), 0);
		memcpy(again.name, rule.name, sizeof(rule.name)); // it is not printed
		assert_memory_equal(&again, &rule, sizeof(rule));
	}
}

static void mistakes_are_told_in_a_sentence(void **state)
{
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		struct acl_rule rule;
		struct error error = {""};

		assert_int_equal(acl_rule_parse(&rule, bad[i].text, &error), -EINVAL);
		assert_string_equal(error.text, bad[i].message);
	}
}

static void keys_are_set_one_by_one(void **state)
{
	struct acl_rule rule;
	struct error error;

	acl_rule_start(&rule);
	assert_int_equal(acl_rule_set(&rule, "protocol", "tcp", &error), 0);
	assert_int_equal(acl_rule_set(&rule, "to_port", "80", &error), 0);
	assert_int_equal(acl_rule_end(&rule, &error), -EINVAL);
	assert_string_equal(error.text,
		"what to do is missing: add do: permit, deny, reject or punt");
	assert_int_equal(acl_rule_set(&rule, "do", "reject", &error), 0);
	assert_int_equal(acl_rule_end(&rule, &error), 0);
	assert_int_equal(rule.effect, ACL_REJECT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rules_are_read_and_printed),
		cmocka_unit_test(mistakes_are_told_in_a_sentence),
		cmocka_unit_test(keys_are_set_one_by_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
