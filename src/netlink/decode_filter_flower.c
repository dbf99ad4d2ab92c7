// The classifier flower: keys as the kernel's flow dissector finds them. It looks at no transport
// header of any fragment, nor of the first one: ports, types and flags of fragments read as 0.
// Pure.
#include "netlink/decode_filter_inside.h"

#include "base/bits.h"
#include "wire/headers.h"
#include "wire/transport.h"

#include <arpa/inet.h>
#include <linux/if_ether.h>
#include <linux/pkt_cls.h>
#include <stdio.h>
#include <string.h>

enum { KEY_MAX_BYTES = 16 };

// A key and its mask, whose bytes are all ones if the kernel reported none.
struct key {
	uint8_t value[KEY_MAX_BYTES], mask[KEY_MAX_BYTES];
	bool is_set;
};

struct flower_draft {
	struct filter_draft *draft;
	struct key ether_type, proto, tos, fragment_flags;
	struct key src[2], dst[2];                                      // IPv4, IPv6
	struct key src_port, dst_port, icmp_type, icmp_code, tcp_flags; // numbers, first byte first
	struct key src_least, src_most, dst_least, dst_most;
};
#define AT(field) offsetof(struct flower_draft, field)

// What each attribute is: a key of `bytes`, or its mask; or why rules cannot say it.
struct attribute {
	uint16_t at;
	uint8_t bytes;
	bool is_mask, is_harmless;
	const char *refused;
};
#define KEY(field, n)                                                                              \
	{                                                                                          \
		.at = AT(field), .bytes = (n)                                                      \
	}
#define MASK(field, n)                                                                             \
	{                                                                                          \
		.at = AT(field), .bytes = (n), .is_mask = true                                     \
	}
#define REFUSED(name)                                                                              \
	{                                                                                          \
		.refused = (name)                                                                  \
	}
#define HARMLESS                                                                                   \
	{                                                                                          \
		.is_harmless = true                                                                \
	}

static const struct attribute attributes[] = {
	[TCA_FLOWER_CLASSID] = HARMLESS,
	[TCA_FLOWER_INDEV] = REFUSED("indev"),
	[TCA_FLOWER_ACT] = HARMLESS,
	[TCA_FLOWER_FLAGS] = HARMLESS,
	[TCA_FLOWER_IN_HW_COUNT] = HARMLESS,
	[TCA_FLOWER_KEY_ETH_DST] = REFUSED("dst_mac"),
	[TCA_FLOWER_KEY_ETH_DST_MASK] = REFUSED("dst_mac"),
	[TCA_FLOWER_KEY_ETH_SRC] = REFUSED("src_mac"),
	[TCA_FLOWER_KEY_ETH_SRC_MASK] = REFUSED("src_mac"),
	[TCA_FLOWER_KEY_ETH_TYPE] = KEY(ether_type, 2),
	[TCA_FLOWER_KEY_IP_PROTO] = KEY(proto, 1),
	[TCA_FLOWER_KEY_IPV4_SRC] = KEY(src[0], 4),
	[TCA_FLOWER_KEY_IPV4_SRC_MASK] = MASK(src[0], 4),
	[TCA_FLOWER_KEY_IPV4_DST] = KEY(dst[0], 4),
	[TCA_FLOWER_KEY_IPV4_DST_MASK] = MASK(dst[0], 4),
	[TCA_FLOWER_KEY_IPV6_SRC] = KEY(src[1], 16),
	[TCA_FLOWER_KEY_IPV6_SRC_MASK] = MASK(src[1], 16),
	[TCA_FLOWER_KEY_IPV6_DST] = KEY(dst[1], 16),
	[TCA_FLOWER_KEY_IPV6_DST_MASK] = MASK(dst[1], 16),
	[TCA_FLOWER_KEY_TCP_SRC] = KEY(src_port, 2),
	[TCA_FLOWER_KEY_TCP_SRC_MASK] = MASK(src_port, 2),
	[TCA_FLOWER_KEY_TCP_DST] = KEY(dst_port, 2),
	[TCA_FLOWER_KEY_TCP_DST_MASK] = MASK(dst_port, 2),
	[TCA_FLOWER_KEY_UDP_SRC] = KEY(src_port, 2),
	[TCA_FLOWER_KEY_UDP_SRC_MASK] = MASK(src_port, 2),
	[TCA_FLOWER_KEY_UDP_DST] = KEY(dst_port, 2),
	[TCA_FLOWER_KEY_UDP_DST_MASK] = MASK(dst_port, 2),
	[TCA_FLOWER_KEY_SCTP_SRC] = KEY(src_port, 2),
	[TCA_FLOWER_KEY_SCTP_SRC_MASK] = MASK(src_port, 2),
	[TCA_FLOWER_KEY_SCTP_DST] = KEY(dst_port, 2),
	[TCA_FLOWER_KEY_SCTP_DST_MASK] = MASK(dst_port, 2),
	[TCA_FLOWER_KEY_PORT_SRC_MIN] = KEY(src_least, 2),
	[TCA_FLOWER_KEY_PORT_SRC_MAX] = KEY(src_most, 2),
	[TCA_FLOWER_KEY_PORT_DST_MIN] = KEY(dst_least, 2),
	[TCA_FLOWER_KEY_PORT_DST_MAX] = KEY(dst_most, 2),
	[TCA_FLOWER_KEY_FLAGS] = KEY(fragment_flags, 4),
	[TCA_FLOWER_KEY_FLAGS_MASK] = MASK(fragment_flags, 4),
	[TCA_FLOWER_KEY_ICMPV4_TYPE] = KEY(icmp_type, 1),
	[TCA_FLOWER_KEY_ICMPV4_TYPE_MASK] = MASK(icmp_type, 1),
	[TCA_FLOWER_KEY_ICMPV4_CODE] = KEY(icmp_code, 1),
	[TCA_FLOWER_KEY_ICMPV4_CODE_MASK] = MASK(icmp_code, 1),
	[TCA_FLOWER_KEY_ICMPV6_TYPE] = KEY(icmp_type, 1),
	[TCA_FLOWER_KEY_ICMPV6_TYPE_MASK] = MASK(icmp_type, 1),
	[TCA_FLOWER_KEY_ICMPV6_CODE] = KEY(icmp_code, 1),
	[TCA_FLOWER_KEY_ICMPV6_CODE_MASK] = MASK(icmp_code, 1),
	[TCA_FLOWER_KEY_TCP_FLAGS] = KEY(tcp_flags, 2),
	[TCA_FLOWER_KEY_TCP_FLAGS_MASK] = MASK(tcp_flags, 2),
	[TCA_FLOWER_KEY_IP_TOS] = KEY(tos, 1),
	[TCA_FLOWER_KEY_IP_TOS_MASK] = MASK(tos, 1),
	[TCA_FLOWER_KEY_IP_TTL] = REFUSED("ip_ttl"),
	[TCA_FLOWER_KEY_VLAN_ID] = REFUSED("vlan_id"),
	[TCA_FLOWER_KEY_VLAN_PRIO] = REFUSED("vlan_prio"),
	[TCA_FLOWER_KEY_VLAN_ETH_TYPE] = REFUSED("vlan_ethtype"),
	[TCA_FLOWER_KEY_NUM_OF_VLANS] = REFUSED("num_of_vlans"),
	[TCA_FLOWER_KEY_ENC_KEY_ID] = REFUSED("enc_key_id"),
	[TCA_FLOWER_KEY_ENC_IPV4_SRC] = REFUSED("enc_src_ip"),
	[TCA_FLOWER_KEY_ENC_IPV4_DST] = REFUSED("enc_dst_ip"),
	[TCA_FLOWER_KEY_ENC_IPV6_SRC] = REFUSED("enc_src_ip"),
	[TCA_FLOWER_KEY_ENC_IPV6_DST] = REFUSED("enc_dst_ip"),
	[TCA_FLOWER_KEY_ENC_UDP_DST_PORT] = REFUSED("enc_dst_port"),
	[TCA_FLOWER_KEY_CT_STATE] = REFUSED("ct_state"),
	[TCA_FLOWER_KEY_CT_ZONE] = REFUSED("ct_zone"),
	[TCA_FLOWER_KEY_CT_MARK] = REFUSED("ct_mark"),
	[TCA_FLOWER_KEY_CT_LABELS] = REFUSED("ct_label"),
	[TCA_FLOWER_KEY_HASH] = REFUSED("hash"),
	[TCA_FLOWER_KEY_L2TPV3_SID] = REFUSED("l2tpv3_sid"),
};

static bool take_actions(void *out, const struct piece *value)
{
	((struct filter_draft *)out)->actions = *value;
	return true;
}

static const struct want want_flower[] = {
	[TCA_FLOWER_ACT] = {WANT_TAKE, .take = take_actions},
	[TCA_FLOWER_FLAGS] = {WANT_U32, .at = offsetof(struct filter_draft, flags)},
};
static const struct wants wants_flower = WANTS(want_flower);

// Attributes that are in no row are keys that came later, or their masks.
static bool read_attribute(struct flower_draft *found, unsigned type, const struct piece *value)
{
	static const struct attribute unknown;
	const struct attribute *row = type < ARRAY_LEN(attributes) ? &attributes[type] : &unknown;
	struct key *key = (void *)((char *)found + row->at);

	if (row->is_harmless)
		return true;
	if (row->refused) {
		filter_refuse(found->draft->out, "key %s", row->refused);
		return true;
	}
	if (!row->bytes) {
		filter_refuse(found->draft->out, "key number %u of flower", type);
		return true;
	}
	if (value->n < row->bytes)
		return false;
	memcpy(row->is_mask ? key->mask : key->value, value->bytes, row->bytes);
	key->is_set |= !row->is_mask;
	return true;
}

static bool read_keys(struct flower_draft *found)
{
	struct piece rest = found->draft->options;
	const struct nlattr *attr;

	// Masks that are not reported are all ones: those of keys that have none of their own.
	for (size_t i = 0; i < ARRAY_LEN(attributes); i++)
		if (attributes[i].bytes)
			memset(((struct key *)((char *)found + attributes[i].at))->mask, 0xff,
				KEY_MAX_BYTES);
	while ((attr = attrs_next(&rest))) {
		struct piece value = attrs_value(attr);

		if (!read_attribute(found, attrs_type(attr), &value))
			return false;
	}
	return rest.n == 0;
}

static uint16_t get16(const uint8_t *bytes)
{
	return bytes[0] << 8 | bytes[1];
}

// The ether type asked for beside the protocol of the filter.
static void read_ether_type(const struct flower_draft *found, struct event_filter *out)
{
	const uint16_t type = get16(found->ether_type.value);
	const uint8_t family = type == ETH_P_IP ? 4 : type == ETH_P_IPV6 ? 6 : 0;
	struct acl_rule *rule = &out->rule[0];

	if (!found->ether_type.is_set)
		return;
	if (type == ETH_P_8021Q || type == ETH_P_8021AD)
		filter_refuse(out, "key vlan_ethtype");
	else if (type == ETH_P_MPLS_UC && !rule->family)
		filter_refuse(out, "protocol mpls_uc");
	else if (!family || (rule->family && rule->family != family))
		out->n_rules = 0;
	rule->family = family ? family : rule->family;
}

static void read_addr(struct wire_prefix *to, const struct key keys[2], const char *name,
	struct event_filter *out)
{
	const uint8_t family = out->rule[0].family;
	const struct key *key = &keys[family == 6];

	if (keys[family == 4].is_set || (key->is_set && !family))
		filter_refuse(out, "key %s of the other or of no family", name);
	else if (key->is_set && !filter_read_prefix(to, key->value, key->mask, family))
		filter_refuse(out, "key %s with a mask that is no prefix", name);
}

// Fragments by two flags: is one, is the first one.
static void read_fragments(const struct flower_draft *found, struct event_filter *out)
{
	static const uint32_t flags_of[] = {
		[WIRE_FRAGMENT_NONE] = 0,
		[WIRE_FRAGMENT_FIRST] =
			TCA_FLOWER_KEY_FLAGS_IS_FRAGMENT | TCA_FLOWER_KEY_FLAGS_FRAG_IS_FIRST,
		[WIRE_FRAGMENT_LATER] = TCA_FLOWER_KEY_FLAGS_IS_FRAGMENT,
	};
	struct acl_rule *rule = &out->rule[0];
	uint32_t value, mask;

	if (!found->fragment_flags.is_set)
		return;
	memcpy(&value, found->fragment_flags.value, sizeof(value));
	memcpy(&mask, found->fragment_flags.mask, sizeof(mask));
	value = ntohl(value & mask);
	mask = ntohl(mask);
	if (mask & ~flags_of[WIRE_FRAGMENT_FIRST])
		filter_refuse(out, "key ip_flags other than frag and firstfrag");
	for (unsigned i = 0; i < ARRAY_LEN(flags_of); i++)
		if ((flags_of[i] & mask) != value)
			rule->fragments &= ~(1 << i);
	if (!rule->fragments)
		out->n_rules = 0;
}

static void read_number(struct acl_range *to, const struct key *key, const char *name,
	uint16_t most, struct event_filter *out)
{
	const bool is_short = most <= UINT8_MAX;
	const uint16_t value = is_short ? key->value[0] : get16(key->value);
	const uint16_t mask = is_short ? key->mask[0] : get16(key->mask);

	if (key->is_set && !filter_read_range(to, value, mask, most))
		filter_refuse(out, "key %s with a mask that is no range", name);
}

static void read_port_range(struct acl_range *to, const struct key *least, const struct key *most,
	const char *name, struct event_filter *out)
{
	if (!least->is_set && !most->is_set)
		return;
	if (!least->is_set || !most->is_set || to->is_set)
		filter_refuse(out, "key %s as a range and a port", name);
	*to = (struct acl_range){get16(least->value), get16(most->value), true};
	if (to->least > to->most)
		out->n_rules = 0;
}

static void read_tcp_flags(const struct key *key, struct event_filter *out)
{
	struct acl_rule *rule = &out->rule[0];
	const uint16_t mask = get16(key->mask) & 0xfff; // the kernel compares no more

	if (!key->is_set)
		return;
	if (mask > UINT8_MAX || get16(key->value) & get16(key->mask) & ~0xff)
		filter_refuse(out, "key tcp_flags beyond cwr");
	rule->tcp_mask = mask;
	rule->tcp_flags = get16(key->value) & mask;
}

static void read_transport(const struct flower_draft *found, struct event_filter *out)
{
	struct acl_rule *rule = &out->rule[0];

	read_number(&rule->from_port, &found->src_port, "src_port", UINT16_MAX, out);
	read_number(&rule->to_port, &found->dst_port, "dst_port", UINT16_MAX, out);
	read_port_range(&rule->from_port, &found->src_least, &found->src_most, "src_port", out);
	read_port_range(&rule->to_port, &found->dst_least, &found->dst_most, "dst_port", out);
	read_number(&rule->icmp_type, &found->icmp_type, "type", UINT8_MAX, out);
	read_number(&rule->icmp_code, &found->icmp_code, "code", UINT8_MAX, out);
	read_tcp_flags(&found->tcp_flags, out);
}

static bool asks_transport(const struct acl_rule *rule)
{
	return rule->from_port.is_set || rule->to_port.is_set || rule->icmp_type.is_set ||
	       rule->icmp_code.is_set || rule->tcp_mask;
}

static bool takes_zero(const struct acl_rule *rule)
{
	return !rule->from_port.least && !rule->to_port.least && !rule->icmp_type.least &&
	       !rule->icmp_code.least && !rule->tcp_flags;
}

// A rule about a transport header becomes one for whole packets, and, if zeros match, one for all
// fragments.
static void split_fragments(struct event_filter *out)
{
	const struct acl_rule rule = out->rule[0];
	const uint8_t whole = rule.fragments & 1 << WIRE_FRAGMENT_NONE;
	struct acl_rule blank;

	if (!out->n_rules || !asks_transport(&rule))
		return;
	out->n_rules = 0;
	if (whole) {
		out->rule[0].fragments = whole;
		out->n_rules++;
	}
	if (rule.fragments == whole || !takes_zero(&rule))
		return;
	blank = rule;
	blank.from_port = blank.to_port = (struct acl_range){.is_set = false};
	blank.icmp_type = blank.icmp_code = (struct acl_range){.is_set = false};
	blank.tcp_flags = blank.tcp_mask = 0;
	blank.fragments = rule.fragments & ~whole;
	out->rule[out->n_rules++] = blank;
}

bool filter_read_flower(struct filter_draft *draft)
{
	struct flower_draft found = {.draft = draft};
	struct event_filter *out = draft->out;
	struct acl_rule *rule = &out->rule[0];

	if (!attrs_take(&wants_flower, &draft->options, draft) || !read_keys(&found))
		return false;
	out->n_rules = 1;
	read_ether_type(&found, out);
	read_addr(&rule->from, found.src, "src_ip", out);
	read_addr(&rule->to, found.dst, "dst_ip", out);
	if (found.proto.is_set)
		rule->protocol = found.proto.value[0];
	if (found.tos.is_set &&
		!filter_read_dscp(&rule->dscp, found.tos.value[0], found.tos.mask[0]))
		filter_refuse(out, "key ip_tos with a mask that is no range of DSCPs");
	if (!rule->family && (found.proto.is_set || found.tos.is_set))
		filter_refuse(out, "key ip_proto or ip_tos without a family");
	read_fragments(&found, out);
	read_transport(&found, out);
	split_fragments(out);
	return true;
}
