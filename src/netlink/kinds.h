// One reader per kind of message, and the table rows that name them. Inside decode.
#pragma once

#include "netlink/attrs.h"
#include "netlink/decode.h"

#include <sys/socket.h>

// A kind of message: header, who reads it into *out (whose head is set and whose union is cleared
// up to `clear` bytes of it).
struct reader {
	uint16_t header; // bytes behind struct nlmsghdr
	uint8_t kind;    // enum event_kind
	uint16_t clear;
	enum decode_result (*read)(const struct nlmsghdr *message, struct event *out);
};

extern const struct reader read_iface, read_address, read_neighbour, read_netconf;
extern const struct reader read_route, read_nexthop, read_rule;
extern const struct reader read_qdisc, read_chain, read_flowtable, read_policy, read_policy_default;

// Reads what stands behind the header by a table.
enum decode_result read_attrs(const struct nlmsghdr *message, size_t header,
	const struct wants *wants, void *out);
// 4, 6, or 0: neither.
static inline uint8_t read_family(int family)
{
	return family == AF_INET ? 4 : family == AF_INET6 ? 6 : 0;
}
// Multicast routes come in a route's clothes.
enum decode_result read_mroute(const struct nlmsghdr *message, struct event *out);
