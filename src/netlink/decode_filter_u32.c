// The classifier u32: words of the packet at offsets from its IP header. Rules say fields, so that
// all bits that a filter asks for have to be those of fields that are at a fixed place: packets
// with IPv4 options are not forwarded by workers, but ports of later fragments are data. Pure.
#include "netlink/decode_filter_inside.h"

#include "wire/headers.h"
#include "wire/transport.h"

#include <arpa/inet.h>
#include <linux/pkt_cls.h>
#include <string.h>

enum {
	WORD_BYTES = 4,
	IP4_BYTES = 20,
	IP6_BYTES = 40,
	SEEN_BYTES = 40, // an IPv6 header; an IPv4 header and that of TCP
	FIRST_VERSION_LENGTH4 = 0x45,
	FIRST_VERSION6 = 0x60,
};

// What a filter asks for in all.
struct u32_bytes {
	uint8_t value[SEEN_BYTES], mask[SEEN_BYTES];
	bool never; // asks for two values of one bit
};

struct u32_draft {
	struct filter_draft *draft;
	struct piece selector;
	bool has_link, has_mark, has_iface;
};
#define AT(field) offsetof(struct u32_draft, field)

static bool take_selector(void *out, const struct piece *value)
{
	((struct u32_draft *)out)->selector = *value;
	return true;
}

static bool take_actions(void *out, const struct piece *value)
{
	((struct u32_draft *)out)->draft->actions = *value;
	return true;
}

// The form from before there were actions, in which the kernel reports filters made in it.
static bool take_police(void *out, const struct piece *value)
{
	((struct u32_draft *)out)->draft->police = *value;
	return true;
}

static bool take_flags(void *out, const struct piece *value)
{
	if (value->n < sizeof(uint32_t))
		return false;
	memcpy(&((struct u32_draft *)out)->draft->flags, value->bytes, sizeof(uint32_t));
	return true;
}

static const struct want want_u32[] = {
	[TCA_U32_LINK] = {WANT_THERE, .at = AT(has_link)},
	[TCA_U32_SEL] = {WANT_TAKE, .take = take_selector},
	[TCA_U32_POLICE] = {WANT_TAKE, .take = take_police},
	[TCA_U32_ACT] = {WANT_TAKE, .take = take_actions},
	[TCA_U32_INDEV] = {WANT_THERE, .at = AT(has_iface)},
	[TCA_U32_MARK] = {WANT_THERE, .at = AT(has_mark)},
	[TCA_U32_FLAGS] = {WANT_TAKE, .take = take_flags},
};
static const struct wants wants_u32 = WANTS(want_u32);

// Whether the word of a key is in each packet that the keys before let through: one that is not
// there ends the search of the whole priority. An IPv4 packet may end with its header, unless it
// has a protocol, the header of which workers look for, too.
static bool is_there(const struct u32_bytes *all, const struct tc_u32_key *key, uint8_t family)
{
	return family == 6 || key->off <= IP4_BYTES - WORD_BYTES || all->mask[9] == UINT8_MAX;
}

// A key adds its bits. `offmask` has no effect in the first table: there is no offset yet.
static void add_key(struct u32_bytes *all, const struct tc_u32_key *key, struct event_filter *out)
{
	// A word that is not there ends the search, even if no bit of it is asked for.
	const int most = (key->mask ? SEEN_BYTES : IP4_BYTES) - WORD_BYTES;
	uint8_t value[WORD_BYTES], mask[WORD_BYTES];

	if (key->off < 0 || key->off % WORD_BYTES || key->off > most) {
		filter_refuse(out, "key at offset %d", key->off);
		return;
	}
	if (!is_there(all, key, out->rule[0].family))
		filter_refuse(out, "key at offset %d before one for the protocol", key->off);
	memcpy(value, &key->val, sizeof(value));
	memcpy(mask, &key->mask, sizeof(mask));
	for (int i = 0; i < WORD_BYTES; i++) {
		uint8_t *seen = &all->value[key->off + i], *seen_mask = &all->mask[key->off + i];

		all->never |= ((*seen ^ value[i]) & *seen_mask & mask[i]) != 0;
		*seen |= value[i] & mask[i];
		*seen_mask |= mask[i];
	}
}

static bool read_keys(struct u32_bytes *all, const struct piece *selector, struct event_filter *out)
{
	const uint8_t *keys = (const uint8_t *)selector->bytes + sizeof(struct tc_u32_sel);
	struct tc_u32_sel head;
	struct tc_u32_key key;

	if (selector->n < sizeof(head))
		return false;
	memcpy(&head, selector->bytes, sizeof(head));
	if (selector->n < sizeof(head) + head.nkeys * sizeof(key))
		return false;
	for (unsigned i = 0; i < head.nkeys; i++) {
		memcpy(&key, keys + i * sizeof(key), sizeof(key));
		add_key(all, &key, out);
	}
	// Neither an action nor a class: only a link would lead on.
	all->never |= !(head.flags & TC_U32_TERMINAL);
	return true;
}

static uint16_t get16(const uint8_t *bytes)
{
	return bytes[0] << 8 | bytes[1];
}

// The first of n bytes at `at` that no rule can ask for.
static bool asks_bytes(const struct u32_bytes *all, unsigned at, unsigned n,
	struct event_filter *out)
{
	for (unsigned i = at; i < at + n; i++)
		if (all->mask[i]) {
			filter_refuse(out, "key for byte %u of the packet", i);
			return true;
		}
	return false;
}

static void read_prefixes(const struct u32_bytes *all, unsigned src, unsigned dst,
	struct event_filter *out)
{
	struct acl_rule *rule = &out->rule[0];

	if (!filter_read_prefix(&rule->from, all->value + src, all->mask + src, rule->family))
		filter_refuse(out, "key src with a mask that is no prefix");
	if (!filter_read_prefix(&rule->to, all->value + dst, all->mask + dst, rule->family))
		filter_refuse(out, "key dst with a mask that is no prefix");
}

// Flags and offset of fragments. Two bits make three classes: the last fragment is a later one.
static void read_fragments4(const struct u32_bytes *all, struct event_filter *out)
{
	const uint16_t mask = get16(all->mask + 6), value = get16(all->value + 6);
	const uint16_t both = WIRE_IP4_MORE_FRAGMENTS | WIRE_IP4_FRAGMENT_OFFSET;
	struct acl_rule *rule = &out->rule[0];

	if (mask == WIRE_IP4_FRAGMENT_OFFSET && !value)
		rule->fragments = 1 << WIRE_FRAGMENT_NONE | 1 << WIRE_FRAGMENT_FIRST;
	else if (mask == both && !value)
		rule->fragments = 1 << WIRE_FRAGMENT_NONE;
	else if (mask == both && value == WIRE_IP4_MORE_FRAGMENTS)
		rule->fragments = 1 << WIRE_FRAGMENT_FIRST;
	else if (mask)
		filter_refuse(out, "key for flags or offset of fragments");
}

static bool has_later(const struct acl_rule *rule)
{
	return rule->fragments >> WIRE_FRAGMENT_LATER & 1;
}

static void read_icmp4(const uint8_t *value, const uint8_t *mask, struct event_filter *out)
{
	struct acl_rule *rule = &out->rule[0];

	if (!filter_read_range(&rule->icmp_type, value[0], mask[0], UINT8_MAX) ||
		!filter_read_range(&rule->icmp_code, value[1], mask[1], UINT8_MAX))
		filter_refuse(out, "key type or code with a mask that is no range");
}

static void read_ports4(const uint8_t *value, const uint8_t *mask, struct event_filter *out)
{
	struct acl_rule *rule = &out->rule[0];

	if (!filter_read_range(&rule->from_port, get16(value), get16(mask), UINT16_MAX) ||
		!filter_read_range(&rule->to_port, get16(value + 2), get16(mask + 2), UINT16_MAX))
		filter_refuse(out, "key sport or dport with a mask that is no range");
}

// What follows an IPv4 header of 20 bytes.
static void read_transport4(const struct u32_bytes *all, struct event_filter *out)
{
	static const uint8_t with_ports[] = {WIRE_PROTO_TCP, WIRE_PROTO_UDP, WIRE_PROTO_DCCP,
		WIRE_PROTO_SCTP, WIRE_PROTO_UDP_LITE};
	const uint8_t *value = all->value + IP4_BYTES, *mask = all->mask + IP4_BYTES;
	struct acl_rule *rule = &out->rule[0];
	const uint16_t proto = rule->protocol;
	bool asks = false;

	for (unsigned i = 0; i < SEEN_BYTES - IP4_BYTES; i++)
		asks |= mask[i] != 0;
	if (!asks)
		return;
	if (has_later(rule)) {
		filter_refuse(out, "ports, types or flags need match u16 0 0x1fff at 6: in later "
				   "fragments they are data");
		return;
	}
	if (proto == WIRE_PROTO_ICMP4 && !asks_bytes(all, IP4_BYTES + 2, 18, out)) {
		read_icmp4(value, mask, out);
	} else if (proto <= UINT8_MAX && memchr(with_ports, proto, sizeof(with_ports))) {
		read_ports4(value, mask, out);
		rule->tcp_flags = value[13];
		rule->tcp_mask = mask[13];
		if (asks_bytes(all, IP4_BYTES + 4, 9, out) ||
			asks_bytes(all, IP4_BYTES + 14, 6, out))
			return;
		if (rule->tcp_mask && proto != WIRE_PROTO_TCP)
			filter_refuse(out, "key for byte %u of the packet", IP4_BYTES + 13);
	} else {
		filter_refuse(out, "key for ports or types without that for a protocol with them");
	}
}

static void read_ip4(const struct u32_bytes *all, struct event_filter *out)
{
	struct acl_rule *rule = &out->rule[0];

	if ((all->value[0] ^ FIRST_VERSION_LENGTH4) & all->mask[0])
		out->n_rules = 0; // options, or no IPv4
	if (!filter_read_dscp(&rule->dscp, all->value[1], all->mask[1]))
		filter_refuse(out, "key tos with a mask that is no range of DSCPs");
	if (asks_bytes(all, 2, 4, out) || asks_bytes(all, 8, 1, out) || asks_bytes(all, 10, 2, out))
		return;
	if (all->mask[9] == UINT8_MAX)
		rule->protocol = all->value[9];
	else
		asks_bytes(all, 9, 1, out);
	read_fragments4(all, out);
	read_prefixes(all, 12, 16, out);
	read_transport4(all, out);
}

// The next header is not always the protocol that rules ask for, which is behind all extensions.
static void read_ip6(const struct u32_bytes *all, struct event_filter *out)
{
	const uint16_t value = get16(all->value), mask = get16(all->mask);

	if ((all->value[0] ^ FIRST_VERSION6) & all->mask[0] & 0xf0)
		out->n_rules = 0;
	if (!filter_read_dscp(&out->rule[0].dscp, value >> 4, mask >> 4))
		filter_refuse(out, "key traffic class with a mask that is no range of DSCPs");
	if (mask & 0xf || asks_bytes(all, 2, 4, out))
		filter_refuse(out, "key for byte %u of the packet", 1);
	if (all->mask[6])
		filter_refuse(out, "key protocol of IPv6, which headers may precede");
	asks_bytes(all, 7, 1, out);
	read_prefixes(all, 8, 24, out);
}

static void read_bytes(const struct u32_bytes *all, struct event_filter *out)
{
	if (out->rule[0].family == 4)
		read_ip4(all, out);
	else if (out->rule[0].family == 6)
		read_ip6(all, out);
	else if (asks_bytes(all, 0, SEEN_BYTES, out))
		filter_refuse(out, "keys with protocol all");
}

// Tables that users make are asked only through links.
static void refuse_rest(const struct u32_draft *found, struct event_filter *out)
{
	if (found->has_link)
		filter_refuse(out, "key link");
	if (TC_U32_HASH(out->handle))
		filter_refuse(out, "key ht: a hash table");
	if (found->has_iface)
		filter_refuse(out, "key indev");
	if (found->has_mark)
		filter_refuse(out, "key mark");
}

bool filter_read_u32(struct filter_draft *draft)
{
	struct u32_draft found = {.draft = draft};
	struct u32_bytes all = {.never = false};
	struct event_filter *out = draft->out;

	if (!attrs_take(&wants_u32, &draft->options, &found))
		return false;
	refuse_rest(&found, out);
	if (found.selector.n && !read_keys(&all, &found.selector, out))
		return false;
	out->n_rules = found.selector.n && !all.never;
	read_bytes(&all, out);
	return true;
}
