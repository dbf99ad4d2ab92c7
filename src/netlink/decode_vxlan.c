// Decodes VXLAN devices of Linux into the settings of workers' devices. Pure. What a device sends:
// vxlan_xmit_one in drivers/net/vxlan/vxlan_core.c.
#include "netlink/decode_inside.h"

#include "base/bits.h"

#include <endian.h>
#include <linux/if_link.h>
#include <stddef.h>
#include <string.h>

// Attributes that are missing in headers before Linux 6.6, and the last one that is known here.
enum { VXLAN_LOCALBYPASS = 31, VXLAN_LABEL_POLICY = 32, VXLAN_RESERVED_BITS = 33, VXLAN_LAST = 34 };
enum { DF_UNSET, DF_SET, DF_INHERIT }; // VXLAN_DF_*
enum { TOS_INHERIT = 1, DSCP = 0xfc, DEFAULT_TTL = 64 };

// Attributes as they are.
struct draft {
	struct wire_addr local;
	uint32_t vni, link, ageing_s;
	uint16_t port, first_source, last_source;
	uint8_t ttl, tos, df;
	bool inherits_ttl, learns, has_checksum, has_zero_tx6, has_zero_rx6;
	bool is_external, has_filter, has_label, has_other_header, answers, tells, is_odd;
};
#define AT(field) offsetof(struct draft, field)

static bool is_set(const struct piece *value)
{
	const uint8_t *bytes = value->bytes;
	bool found = false;

	for (uint32_t i = 0; i < value->n; i++)
		found |= bytes[i] != 0;
	return found;
}

static bool take_ports(void *out, const struct piece *value)
{
	struct ifla_vxlan_port_range range;
	struct draft *draft = out;

	if (value->n < sizeof(range))
		return false;
	memcpy(&range, value->bytes, sizeof(range));
	draft->first_source = be16toh(range.low);
	draft->last_source = be16toh(range.high);
	return true;
}

// Flags of the header that packets may not have: all but that of the VNI, for a plain device.
static bool take_reserved(void *out, const struct piece *value)
{
	static const uint8_t usual[] = {0xf7, 0xff, 0xff, 0xff, 0, 0, 0, 0xff};

	((struct draft *)out)->has_other_header |=
		value->n != sizeof(usual) || memcmp(value->bytes, usual, sizeof(usual)) != 0;
	return true;
}

static bool take_label(void *out, const struct piece *value)
{
	((struct draft *)out)->has_label |= is_set(value);
	return true;
}

static bool take_answers(void *out, const struct piece *value)
{
	((struct draft *)out)->answers |= is_set(value);
	return true;
}

static bool take_header(void *out, const struct piece *value)
{
	((struct draft *)out)->has_other_header |= is_set(value);
	return true;
}

static const struct want want_vxlan[] = {
	[IFLA_VXLAN_ID] = {WANT_U32, .at = AT(vni)},
	[IFLA_VXLAN_LINK] = {WANT_U32, .at = AT(link)},
	[IFLA_VXLAN_LOCAL] = {WANT_ADDR, .at = AT(local)},
	[IFLA_VXLAN_LOCAL6] = {WANT_ADDR, .at = AT(local)},
	[IFLA_VXLAN_TTL] = {WANT_U8, .at = AT(ttl)},
	[IFLA_VXLAN_TOS] = {WANT_U8, .at = AT(tos)},
	[IFLA_VXLAN_LEARNING] = {WANT_BOOL, .at = AT(learns)},
	[IFLA_VXLAN_AGEING] = {WANT_U32, .at = AT(ageing_s)},
	[IFLA_VXLAN_PORT_RANGE] = {WANT_TAKE, .take = take_ports},
	[IFLA_VXLAN_PROXY] = {WANT_TAKE, .take = take_answers},
	[IFLA_VXLAN_RSC] = {WANT_TAKE, .take = take_answers},
	[IFLA_VXLAN_L2MISS] = {WANT_TAKE, .take = take_answers},
	[IFLA_VXLAN_PORT] = {WANT_U16_BE, .at = AT(port)},
	[IFLA_VXLAN_UDP_CSUM] = {WANT_BOOL, .at = AT(has_checksum)},
	[IFLA_VXLAN_UDP_ZERO_CSUM6_TX] = {WANT_BOOL, .at = AT(has_zero_tx6)},
	[IFLA_VXLAN_UDP_ZERO_CSUM6_RX] = {WANT_BOOL, .at = AT(has_zero_rx6)},
	[IFLA_VXLAN_REMCSUM_TX] = {WANT_TAKE, .take = take_header},
	[IFLA_VXLAN_REMCSUM_RX] = {WANT_TAKE, .take = take_header},
	[IFLA_VXLAN_GBP] = {WANT_THERE, .at = AT(has_other_header)},
	[IFLA_VXLAN_COLLECT_METADATA] = {WANT_BOOL, .at = AT(is_external)},
	[IFLA_VXLAN_LABEL] = {WANT_TAKE, .take = take_label},
	[IFLA_VXLAN_GPE] = {WANT_THERE, .at = AT(has_other_header)},
	[IFLA_VXLAN_TTL_INHERIT] = {WANT_BOOL, .at = AT(inherits_ttl)},
	[IFLA_VXLAN_DF] = {WANT_U8, .at = AT(df)},
	[IFLA_VXLAN_VNIFILTER] = {WANT_BOOL, .at = AT(has_filter)},
	[VXLAN_LABEL_POLICY] = {WANT_TAKE, .take = take_label},
	[VXLAN_RESERVED_BITS] = {WANT_TAKE, .take = take_reserved},
};
static const struct wants wants_vxlan = WANTS(want_vxlan);

// Attributes of newer kernels that say anything.
static bool has_newer(const struct piece *data)
{
	struct piece rest = *data;
	const struct nlattr *attr;
	bool found = false;

	while ((attr = attrs_next(&rest))) {
		const struct piece value = attrs_value(attr);

		found |= attrs_type(attr) >= VXLAN_LAST && (!value.n || is_set(&value));
	}
	return found;
}

static bool is_host(const struct wire_addr *addr)
{
	static const uint8_t none[sizeof(addr->bytes)];
	const bool is_group =
		addr->family == 4 ? (addr->bytes[0] & 0xf0) == 0xe0 : addr->bytes[0] == 0xff;

	return addr->family && !is_group && memcmp(addr->bytes, none, sizeof(none)) != 0;
}

static enum tunnel_trouble find_trouble(const struct draft *draft)
{
	const struct {
		bool is_so;
		enum tunnel_trouble trouble;
	} rows[] = {
		{draft->is_external || draft->has_filter, TUNNEL_EXTERNAL},
		{!is_host(&draft->local), TUNNEL_VXLAN_SOURCE},
		{draft->has_other_header, TUNNEL_VXLAN_HEADER},
		{draft->has_label, TUNNEL_FLAGS},
		{draft->answers, TUNNEL_VXLAN_ANSWERS},
		{draft->is_odd || draft->df > DF_INHERIT || !draft->port ||
				draft->vni > IFACE_MAX_VNI,
			TUNNEL_VXLAN_OPTION},
	};

	for (unsigned i = 0; i < ARRAY_LEN(rows); i++)
		if (rows[i].is_so)
			return rows[i].trouble;
	return TUNNEL_FINE;
}

static uint32_t flags_of(const struct draft *draft)
{
	const bool is_ip6 = draft->local.family == 6;
	const struct {
		bool is_set;
		uint32_t flag;
	} rows[] = {
		{is_ip6 ? !draft->has_zero_tx6 : draft->has_checksum, IFACE_TUNNEL_CHECKSUM},
		{is_ip6 && draft->has_zero_rx6, IFACE_TUNNEL_ZERO_CHECKSUM},
		{draft->tos == TOS_INHERIT, IFACE_TUNNEL_TOS},
		{!is_ip6 && draft->df == DF_SET, IFACE_TUNNEL_DF},
		{!is_ip6 && draft->df == DF_INHERIT, IFACE_TUNNEL_INNER_DF},
	};
	uint32_t flags = IFACE_TUNNEL_LINUX;

	for (unsigned i = 0; i < ARRAY_LEN(rows); i++)
		flags |= rows[i].is_set ? rows[i].flag : 0;
	return flags;
}

// Linux never uses the last port of a range, and a range without ports is that of all sockets, in
// place of which workers use that of RFC 7348.
static void translate(const struct draft *draft, struct iface_tunnel *out)
{
	const uint16_t first = MAX_OF(draft->first_source, 1u);

	out->kind = IFACE_VXLAN;
	out->local = draft->local;
	out->key = draft->vni;
	out->dest_port = draft->port;
	if (first < draft->last_source) {
		out->source_port = first;
		out->last_source_port = draft->last_source - 1;
	}
	if (!draft->inherits_ttl)
		out->ttl = draft->ttl ? draft->ttl : DEFAULT_TTL;
	out->flags = flags_of(draft);
	if (!(out->flags & IFACE_TUNNEL_TOS))
		out->tos = draft->tos & DSCP;
}

bool vxlan_take_data(struct event_link *link, const struct piece *data)
{
	struct event_tunnel *out = &link->tunnel;
	struct draft draft = {.ttl = 0};

	if (!attrs_take(&wants_vxlan, data, &draft))
		return false;
	draft.is_odd = has_newer(data);
	out->is_tunnel = true;
	out->link = draft.link;
	out->learns = draft.learns;
	out->ageing_s = draft.ageing_s;
	out->trouble = find_trouble(&draft);
	if (out->trouble == TUNNEL_FINE)
		translate(&draft, &out->settings);
	return true;
}
