// The keys of a rule and their values as text, in one table: the configuration file, RPC and the
// text form of rules use it. Any thread.
#include "acl/inside.h"
#include "acl/words.h"

#include "wire/headers.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

// A decimal number of at most `most`. Returns what follows it, NULL: there is none.
static const char *read_number(const char *text, unsigned most, uint16_t *out)
{
	unsigned value = 0;

	if (!isdigit((unsigned char)*text))
		return NULL;
	for (; isdigit((unsigned char)*text); text++) {
		value = value * 10 + *text - '0';
		if (value > most)
			return NULL;
	}
	*out = value;
	return text;
}

// N or N-M.
static int read_range(struct acl_range *out, const char *text, unsigned most)
{
	struct acl_range range = {.is_set = true};
	const char *rest = read_number(text, most, &range.least);

	range.most = range.least;
	if (rest && *rest == '-')
		rest = read_number(rest + 1, most, &range.most);
	if (!rest || *rest || range.most < range.least)
		return -EINVAL;
	*out = range;
	return 0;
}

// A key of a rule. `kind` and what it needs.
enum kind { NAME, PREFIX, RANGE, WORD, PROTOCOL, FLAGS, MARK, RATE, BURST, BYTES16, BYTES32 };
struct key {
	const char *name;
	enum kind kind;
	size_t offset;
	unsigned most;             // RANGE
	const struct words *words; // WORD: into a byte
	const char *expected;
};

#define AT(field) offsetof(struct acl_rule, field)

static const struct key keys[] = {
	{"name", NAME, AT(name), .expected = "1 to 31 letters, digits, '-', '_' or '.'"},
	{"do", WORD, AT(effect), .words = &acl_effects, .expected = "permit, deny, reject or punt"},
	{"family", WORD, AT(family), .words = &acl_families, .expected = "ipv4 or ipv6"},
	{"protocol", PROTOCOL, AT(protocol),
		.expected =
			"tcp, udp, icmp, icmp6, icmpv6, sctp, dccp, udplite, esp, ah, gre, ospf, "
			"any or a number up to 255"},
	{"from", PREFIX, AT(from), .expected = "ADDRESS, ADDRESS/LENGTH or any"},
	{"to", PREFIX, AT(to), .expected = "ADDRESS, ADDRESS/LENGTH or any"},
	{"from_port", RANGE, AT(from_port), 65535, .expected = "PORT or PORT-PORT"},
	{"to_port", RANGE, AT(to_port), 65535, .expected = "PORT or PORT-PORT"},
	{"dscp", RANGE, AT(dscp), 63, .expected = "a number or range from 0 to 63"},
	{"tcp_flags", FLAGS, AT(tcp_flags),
		.expected =
			"flags with ',' between them, '!' before those that must be clear, as in "
			"syn,!ack"},
	{"icmp_type", RANGE, AT(icmp_type), 255, .expected = "a number or range from 0 to 255"},
	{"icmp_code", RANGE, AT(icmp_code), 255, .expected = "a number or range from 0 to 255"},
	{"fragment", WORD, AT(fragments), .words = &acl_fragments,
		.expected = "none, first, later or any (first or later)"},
	{"local", WORD, AT(is_local), .words = &acl_truths, .expected = "true or false"},
	{"mark", MARK, AT(mark), .expected = "a DSCP from 0 to 63"},
	{"mirror", NAME, AT(mirror), .expected = "the name of a port"},
	{"police.rate", RATE, AT(police),
		.expected = "8 kbit/s to 400 Gbit/s, or 1 to 50,000,000,000 packets/s"},
	{"police.burst", BURST, AT(police),
		.expected = "1518 B to 4 GB, or 1 to 4,000,000,000 packets"},
	{"police.mtu", BYTES32, AT(police.mtu), UINT16_MAX, .expected = "a number of bytes"},
	{"police.overhead", BYTES16, AT(police.overhead), 255, .expected = "0 to 255 bytes"},
	{"police.bucket", NAME, AT(police.bucket),
		.expected = "1 to 31 letters, digits, '-', '_' or '.'"},
};

static bool is_name(const char *text)
{
	const size_t n = strlen(text);

	for (size_t i = 0; i < n; i++)
		if (!isalnum((unsigned char)text[i]) && !strchr("-_.:", text[i]))
			return false;
	return n > 0 && n < ACL_NAME_MAX;
}

static int read_name(char *out, const char *text)
{
	if (!is_name(text))
		return -EINVAL;
	snprintf(out, ACL_NAME_MAX, "%s", text);
	return 0;
}

static int read_prefix(struct wire_prefix *out, const char *text)
{
	struct wire_prefix prefix = {.len = 0};

	if (strcmp(text, "any") && !strchr(text, '/')) {
		if (wire_addr_parse(text, &prefix.addr))
			return -EINVAL;
		prefix.len = prefix.addr.family == 4 ? 32 : 128;
	} else if (strcmp(text, "any") && wire_prefix_parse(text, &prefix)) {
		return -EINVAL;
	}
	*out = prefix;
	return 0;
}

static int read_protocol(uint16_t *out, const char *text)
{
	const int word = words_find(&acl_protocols, text, strlen(text));
	uint16_t number;

	if (word >= 0) {
		*out = word;
		return 0;
	}
	const char *rest = read_number(text, 255, &number);

	if (!rest || *rest)
		return -EINVAL;
	*out = number;
	return 0;
}

static int read_flags(struct acl_rule *rule, const char *text)
{
	uint8_t value = 0, mask = 0;

	for (;;) {
		const bool is_clear = *text == '!';

		text += is_clear;
		const size_t n = strcspn(text, ",");
		const int flag = words_find(&acl_flags, text, n);

		if (flag < 0 || mask & flag)
			return -EINVAL;
		mask |= flag;
		value |= is_clear ? 0 : flag;
		if (!text[n])
			break;
		text += n + 1;
	}
	rule->tcp_flags = value;
	rule->tcp_mask = mask;
	return 0;
}

// -1: it is no number of at most `most`, which is less than 65536.
static int read_whole(const char *text, unsigned most)
{
	uint16_t number;
	const char *rest = read_number(text, most, &number);

	return rest && !*rest ? number : -1;
}

// Into an integer of so many bytes.
static int read_bytes(void *out, size_t size, const char *text, unsigned most)
{
	const int number = read_whole(text, most);

	if (number < 0)
		return -EINVAL;
	if (size == 1)
		*(uint8_t *)out = number;
	else if (size == 2)
		*(uint16_t *)out = number;
	else
		*(uint32_t *)out = number;
	return 0;
}

static int read_word(uint8_t *out, const struct key *key, const char *text)
{
	const int value = words_find(key->words, text, strlen(text));

	if (value < 0)
		return -EINVAL;
	*out = value;
	return 0;
}

static int read_value(struct acl_rule *rule, const struct key *key, const char *text)
{
	void *at = (char *)rule + key->offset;

	switch (key->kind) {
	case NAME:
		return read_name(at, text);
	case PREFIX:
		return read_prefix(at, text);
	case RANGE:
		return read_range(at, text, key->most);
	case WORD:
		return read_word(at, key, text);
	case PROTOCOL:
		return read_protocol(at, text);
	case FLAGS:
		return read_flags(rule, text);
	case MARK:
		return read_bytes(at, 1, text, 63);
	case RATE:
		return police_read_rate(at, text);
	case BURST:
		return police_read_burst(at, text);
	case BYTES16:
		return read_bytes(at, 2, text, key->most);
	case BYTES32:
		return read_bytes(at, 4, text, key->most);
	}
	return -EINVAL;
}

int rule_key(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(keys); i++)
		if (!strcmp(keys[i].name, name))
			return i;
	return -1;
}

void acl_rule_start(struct acl_rule *rule)
{
	*rule = (struct acl_rule){.protocol = ACL_ANY_PROTOCOL,
		.fragments = ACL_ANY_FRAGMENT,
		.mark = ACL_KEEP_DSCP};
}

int acl_rule_set(struct acl_rule *rule, const char *key, const char *value, struct error *error)
{
	const int i = rule_key(key);

	if (i < 0)
		return error_set(error, -EINVAL, "unknown key '%.40s' of a rule", key);
	if (read_value(rule, &keys[i], value))
		return error_set(error, -EINVAL, "invalid %s \"%.60s\": expected %s", key, value,
			keys[i].expected);
	rule->has_effect |= keys[i].offset == AT(effect);
	return 0;
}

static int check_transport(const struct acl_rule *rule, struct error *error)
{
	const bool is_icmp = proto_is_icmp(rule->protocol, rule->family == 6);

	if ((rule->from_port.is_set || rule->to_port.is_set) &&
		(rule->protocol > UINT8_MAX || !proto_has_ports(rule->protocol)))
		return error_set(error, -EINVAL,
			"ports need a protocol that has them: add protocol tcp, udp, sctp, dccp or "
			"udplite");
	if (rule->tcp_mask && rule->protocol != WIRE_PROTO_TCP)
		return error_set(error, -EINVAL, "tcp_flags need protocol tcp");
	if ((rule->icmp_type.is_set || rule->icmp_code.is_set) && !is_icmp)
		return error_set(error, -EINVAL,
			"icmp_type and icmp_code need protocol icmp (IPv4) or icmp6 (IPv6)");
	return 0;
}

bool rule_asks_transport(const struct acl_rule *rule)
{
	return rule->from_port.is_set || rule->to_port.is_set || rule->tcp_mask ||
	       rule->icmp_type.is_set || rule->icmp_code.is_set;
}

// What a rule says about its family.
static int find_family(struct acl_rule *rule, struct error *error)
{
	const bool is_icmp = rule->icmp_type.is_set || rule->icmp_code.is_set;
	const uint8_t said[] = {rule->family, rule->from.addr.family, rule->to.addr.family,
		is_icmp && rule->protocol == WIRE_PROTO_ICMP4   ? 4
		: is_icmp && rule->protocol == WIRE_PROTO_ICMP6 ? 6
								: 0};

	for (size_t i = 0; i < ARRAY_LEN(said); i++) {
		if (said[i] && rule->family && said[i] != rule->family)
			return error_set(error, -EINVAL,
				"IPv4 and IPv6 in one rule: use a rule for each");
		rule->family = said[i] ? said[i] : rule->family;
	}
	return 0;
}

int acl_rule_end(struct acl_rule *rule, struct error *error)
{
	int err = find_family(rule, error);

	if (!err)
		err = check_transport(rule, error);
	if (err)
		return err;
	if (!rule->has_effect)
		return error_set(error, -EINVAL,
			"what to do is missing: add do: permit, deny, reject or punt");
	if (rule->mirror[0] && (rule->effect != ACL_PERMIT || rule->is_local))
		return error_set(error, -EINVAL,
			"mirror is for packets that are forwarded: it needs do: permit, and no "
			"local");
	if (police_end(rule, error))
		return -EINVAL;
	if (!rule_asks_transport(rule))
		return 0;
	rule->fragments &= ~(1 << WIRE_FRAGMENT_LATER); // it has no transport header
	if (!rule->fragments)
		return error_set(error, -EINVAL,
			"a later fragment has no transport header, so that ports, TCP flags and "
			"ICMP types never match");
	return 0;
}
