// Decodes the groups and router ports of a bridge (its MDB) into an event, and how it snoops. Pure.
#include "netlink/decode_inside.h"

#include <arpa/inet.h>
#include <linux/if_bridge.h>
#include <linux/if_ether.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <string.h>

enum { MODE_INCLUDE = 1 }; // MCAST_INCLUDE: only what the listed sources send is wanted

static unsigned bytes_of(uint8_t family)
{
	return family == 4 ? 4 : family == 6 ? 16 : 6;
}

// 0 or a family; -1: of a protocol that we do not know.
static int family_of(uint16_t protocol_be)
{
	switch (ntohs(protocol_be)) {
	case 0:
		return 0;
	case ETH_P_IP:
		return 4;
	case ETH_P_IPV6:
		return 6;
	}
	return -1;
}

static bool take_head(struct event_group *group, const struct br_mdb_entry *entry)
{
	const int family = family_of(entry->addr.proto);

	if (family < 0 || (int)entry->ifindex <= 0)
		return false;
	group->ifindex = (int)entry->ifindex;
	group->vlan = entry->vid;
	group->family = (uint8_t)family;
	group->is_odd = entry->flags & (MDB_FLAGS_STAR_EXCL | MDB_FLAGS_BLOCKED);
	memcpy(group->addr, &entry->addr.u, bytes_of(group->family));
	return entry->vid < EVENT_VIDS;
}

static bool take_attribute(struct event_group *group, unsigned type, const struct piece *value)
{
	switch (type) {
	case MDBA_MDB_EATTR_SOURCE:
		if (value->n != bytes_of(group->family) || !group->family)
			return false;
		memcpy(group->source, value->bytes, value->n);
		group->has_source = true;
		break;
	case MDBA_MDB_EATTR_GROUP_MODE:
		if (!value->n)
			return false;
		group->is_odd |= *(const uint8_t *)value->bytes == MODE_INCLUDE;
		break;
	case MDBA_MDB_EATTR_SRC_LIST:
		group->is_odd |= value->n != 0;
		break;
	}
	return true;
}

// Attributes that follow `header` bytes of a value, which the caller has checked to be there.
static struct piece behind(const struct piece *value, uint32_t header)
{
	const uint32_t skip = NLA_ALIGN(header) < value->n ? NLA_ALIGN(header) : value->n;

	return (struct piece){(const uint8_t *)value->bytes + skip, value->n - skip};
}

static bool take_entry(struct event_groups *groups, const struct piece *value)
{
	struct event_group group = {0};
	struct br_mdb_entry entry;
	const struct nlattr *attr;
	struct piece rest;

	if (value->n < sizeof(entry))
		return false;
	memcpy(&entry, value->bytes, sizeof(entry));
	if (!take_head(&group, &entry))
		return false;
	rest = behind(value, sizeof(entry));
	while ((attr = attrs_next(&rest))) {
		const struct piece one = attrs_value(attr);

		if (!take_attribute(&group, attrs_type(attr), &one))
			return false;
	}
	if (rest.n)
		return false;
	if (groups->n == EVENT_MAX_GROUPS)
		groups->too_many = true;
	else
		groups->group[groups->n++] = group;
	return true;
}

static bool take_router(struct event_groups *groups, const struct piece *value)
{
	struct event_router router = {0};
	const struct nlattr *attr;
	struct piece rest;

	if (value->n < sizeof(router.ifindex))
		return false;
	memcpy(&router.ifindex, value->bytes, sizeof(router.ifindex));
	rest = behind(value, sizeof(router.ifindex));
	while ((attr = attrs_next(&rest))) {
		router.for4 |= attrs_type(attr) == MDBA_ROUTER_PATTR_INET_TIMER;
		router.for6 |= attrs_type(attr) == MDBA_ROUTER_PATTR_INET6_TIMER;
		router.has_vlan |= attrs_type(attr) == MDBA_ROUTER_PATTR_VID;
	}
	if (rest.n)
		return false;
	if (groups->n_routers == EVENT_MAX_ROUTERS)
		groups->too_many = true;
	else
		groups->router[groups->n_routers++] = router;
	return true;
}

// Calls `take` with the values of the attributes of a type.
static bool take_all(struct event_groups *groups, const struct piece *outer, unsigned type,
	bool (*take)(struct event_groups *groups, const struct piece *value))
{
	struct piece rest = *outer;
	const struct nlattr *attr;

	while ((attr = attrs_next(&rest))) {
		const struct piece value = attrs_value(attr);

		if (attrs_type(attr) == type && !take(groups, &value))
			return false;
	}
	return rest.n == 0;
}

static bool take_group(struct event_groups *groups, const struct piece *value)
{
	return take_all(groups, value, MDBA_MDB_ENTRY_INFO, take_entry);
}

static bool take_groups(void *out, const struct piece *value)
{
	return take_all(out, value, MDBA_MDB_ENTRY, take_group);
}

static bool take_routers(void *out, const struct piece *value)
{
	return take_all(out, value, MDBA_ROUTER_PORT, take_router);
}

static const struct want want_groups[] = {
	[MDBA_MDB] = {WANT_TAKE, .take = take_groups},
	[MDBA_ROUTER] = {WANT_TAKE, .take = take_routers},
};
static const struct wants wants_groups = WANTS(want_groups);

// In a dump, the family is not set. A part of it may have nothing to tell of a bridge.
static enum decode_result groups_read(const struct nlmsghdr *message, struct event *out)
{
	const struct br_port_msg *head = NLMSG_DATA(message);

	if (head->family != AF_BRIDGE && head->family != AF_UNSPEC)
		return DECODE_IGNORED;
	if ((int)head->ifindex <= 0)
		return DECODE_MALFORMED;
	out->groups.bridge = (int)head->ifindex;
	if (read_attrs(message, sizeof(*head), &wants_groups, &out->groups) != DECODE_EVENT)
		return DECODE_MALFORMED;
	return out->groups.n || out->groups.n_routers ? DECODE_EVENT : DECODE_IGNORED;
}
const struct reader read_groups = {sizeof(struct br_port_msg), EVENT_GROUPS,
	offsetof(struct event_groups, router), groups_read};

static bool take_time(uint64_t *out, const struct piece *value)
{
	if (value->n < sizeof(*out))
		return false;
	memcpy(out, value->bytes, sizeof(*out));
	return true;
}

static bool take_response(void *out, const struct piece *value)
{
	return take_time(&((struct event_snooping *)out)->response_cs, value);
}

static bool take_query(void *out, const struct piece *value)
{
	return take_time(&((struct event_snooping *)out)->query_cs, value);
}

static bool take_startup(void *out, const struct piece *value)
{
	return take_time(&((struct event_snooping *)out)->startup_cs, value);
}

static bool take_igmp(void *out, const struct piece *value)
{
	((struct event_snooping *)out)->sees_sources[0] =
		value->n && *(const uint8_t *)value->bytes >= 3;
	return value->n;
}

static bool take_mld(void *out, const struct piece *value)
{
	((struct event_snooping *)out)->sees_sources[1] =
		value->n && *(const uint8_t *)value->bytes >= 2;
	return value->n;
}

static bool take_other4(void *out, const struct piece *value)
{
	return take_time(&((struct event_snooping *)out)->other_cs[0], value);
}

static bool take_other6(void *out, const struct piece *value)
{
	return take_time(&((struct event_snooping *)out)->other_cs[1], value);
}

static bool take_querier6(void *out, const struct piece *value)
{
	const uint8_t *bytes = value->bytes;

	for (uint32_t i = 0; i < value->n; i++)
		((struct event_snooping *)out)->has_address6 |= bytes[i] != 0;
	return true;
}

static const struct want want_queriers[] = {
	[BRIDGE_QUERIER_IP_OTHER_TIMER] = {WANT_TAKE, .take = take_other4},
	[BRIDGE_QUERIER_IPV6_ADDRESS] = {WANT_TAKE, .take = take_querier6},
	[BRIDGE_QUERIER_IPV6_OTHER_TIMER] = {WANT_TAKE, .take = take_other6},
};
static const struct wants wants_queriers = WANTS(want_queriers);
static const struct want want_snooping[] = {
	[IFLA_BR_MCAST_ROUTER] = {WANT_U8, .at = offsetof(struct event_snooping, router)},
	[IFLA_BR_MCAST_QUERIER] = {WANT_BOOL, .at = offsetof(struct event_snooping, is_querier)},
	[IFLA_BR_MCAST_QUERY_RESPONSE_INTVL] = {WANT_TAKE, .take = take_response},
	[IFLA_BR_MCAST_QUERY_INTVL] = {WANT_TAKE, .take = take_query},
	[IFLA_BR_MCAST_STARTUP_QUERY_INTVL] = {WANT_TAKE, .take = take_startup},
	[IFLA_BR_MCAST_IGMP_VERSION] = {WANT_TAKE, .take = take_igmp},
	[IFLA_BR_MCAST_MLD_VERSION] = {WANT_TAKE, .take = take_mld},
	[IFLA_BR_MCAST_QUERIER_STATE] = {WANT_INSIDE, .inside = &wants_queriers},
};
static const struct wants wants_snooping = WANTS(want_snooping);

bool read_snooping(const struct piece *data, struct event_snooping *out)
{
	return attrs_take(&wants_snooping, data, out);
}
