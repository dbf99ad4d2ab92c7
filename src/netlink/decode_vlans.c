// Decodes the VLANs of a port of a bridge (RTM_NEWVLAN) into an event. Pure.
#include "netlink/decode_inside.h"

#include <linux/if_bridge.h>
#include <linux/rtnetlink.h>
#include <string.h>

// Missing in headers before Linux 6.3.
enum { ENTRY_MCAST_N_GROUPS = 7, ENTRY_MCAST_MAX_GROUPS = 8 };

// One VLAN, or some that have the same attributes.
struct entry {
	uint16_t flags, first, last;
	bool is_odd;
};

static bool take_info(struct entry *entry, const struct piece *value)
{
	struct bridge_vlan_info info;

	if (value->n < sizeof(info))
		return false;
	memcpy(&info, value->bytes, sizeof(info));
	entry->flags = info.flags;
	entry->first = info.vid;
	return true;
}

static bool take_last(struct entry *entry, const struct piece *value)
{
	if (value->n < sizeof(entry->last))
		return false;
	memcpy(&entry->last, value->bytes, sizeof(entry->last));
	return true;
}

// Attributes of newer kernels count if they are not 0.
static bool is_set(const struct piece *value)
{
	const uint8_t *bytes = value->bytes;

	for (uint32_t i = 0; i < value->n; i++)
		if (bytes[i])
			return true;
	return false;
}

static bool take_part(struct entry *entry, unsigned type, const struct piece *value)
{
	switch (type) {
	case BRIDGE_VLANDB_ENTRY_INFO:
		return take_info(entry, value);
	case BRIDGE_VLANDB_ENTRY_RANGE:
		return take_last(entry, value);
	case BRIDGE_VLANDB_ENTRY_STATE:
		if (!value->n)
			return false;
		entry->is_odd |= *(const uint8_t *)value->bytes != BR_STATE_FORWARDING;
		return true;
	case BRIDGE_VLANDB_ENTRY_STATS:
	case BRIDGE_VLANDB_ENTRY_MCAST_ROUTER:
	case ENTRY_MCAST_N_GROUPS:
	case ENTRY_MCAST_MAX_GROUPS:
		return true;
	}
	entry->is_odd |= is_set(value);
	return true;
}

static bool add(struct event_vlans *vlans, const struct entry *entry)
{
	const uint16_t last = entry->last ? entry->last : entry->first;

	if (!entry->first || last < entry->first || last >= EVENT_VIDS - 1)
		return false;
	for (unsigned vid = entry->first; vid <= last; vid++) {
		const uint64_t bit = 1ull << vid % 64;

		vlans->has[vid / 64] |= bit;
		if (entry->flags & BRIDGE_VLAN_INFO_UNTAGGED)
			vlans->untagged[vid / 64] |= bit;
		if (entry->is_odd)
			vlans->odd[vid / 64] |= bit;
	}
	if (entry->flags & BRIDGE_VLAN_INFO_PVID)
		vlans->pvid = last;
	return true;
}

static bool take_entry(struct event_vlans *vlans, const struct piece *value)
{
	struct entry entry = {0};
	struct piece rest = *value;
	const struct nlattr *attr;

	while ((attr = attrs_next(&rest))) {
		const struct piece part = attrs_value(attr);

		if (!take_part(&entry, attrs_type(attr), &part))
			return false;
	}
	return rest.n == 0 && add(vlans, &entry);
}

static enum decode_result vlans_read(const struct nlmsghdr *message, struct event *out)
{
	const struct br_vlan_msg *head = NLMSG_DATA(message);
	struct event_vlans *vlans = &out->vlans;
	const struct nlattr *attr;
	struct piece rest;
	bool tells = false;

	if (head->family != AF_BRIDGE)
		return DECODE_IGNORED;
	if ((int)head->ifindex <= 0 || !attrs_of(message, sizeof(*head), &rest))
		return DECODE_MALFORMED;
	vlans->ifindex = (int)head->ifindex;
	while ((attr = attrs_next(&rest))) {
		const struct piece value = attrs_value(attr);

		if (attrs_type(attr) != BRIDGE_VLANDB_ENTRY)
			continue;
		if (!take_entry(vlans, &value))
			return DECODE_MALFORMED;
		tells = true;
	}
	if (rest.n)
		return DECODE_MALFORMED;
	return tells ? DECODE_EVENT : DECODE_IGNORED;
}
const struct reader read_vlans = {sizeof(struct br_vlan_msg), EVENT_VLANS,
	sizeof(struct event_vlans), vlans_read};
