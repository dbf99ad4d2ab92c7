// One reader per kind of message, and the table rows that refer to them. Internal to decode.
#pragma once

#include "netlink/attrs.h"
#include "netlink/decode.h"

#include <sys/socket.h>

// A kind of message: its header, and the function that reads it into *out (the head is set, and the
// first `clear` bytes of the union are zero).
struct reader {
	uint16_t header; // bytes after struct nlmsghdr
	uint8_t kind;    // enum event_kind
	uint16_t clear;
	enum decode_result (*read)(const struct nlmsghdr *message, struct event *out);
};

extern const struct reader read_iface, read_address, read_neighbour, read_netconf;
extern const struct reader read_route, read_nexthop, read_rule;
extern const struct reader read_qdisc, read_chain, read_flowtable, read_policy, read_policy_default;

// Parses the attributes after the header with a table.
enum decode_result read_attrs(const struct nlmsghdr *message, size_t header,
	const struct wants *wants, void *out);
// 4, 6, or 0 for any other family.
static inline uint8_t read_family(int family)
{
	return family == AF_INET ? 4 : family == AF_INET6 ? 6 : 0;
}
// Multicast routes use the route message format.
enum decode_result read_mroute(const struct nlmsghdr *message, struct event *out);
