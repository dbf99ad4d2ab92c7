// Netlink bytes -> events, by tables of wanted attributes. Pure: no socket, no state; fuzzed.
#pragma once

#include "netlink/event.h"

#include <stddef.h>

// One netlink message (struct nlmsghdr first; `bytes` is what the buffer holds from there on).
enum decode_result {
	DECODE_EVENT,     // *out is filled
	DECODE_IGNORED,   // sound, but of no kind that concerns us
	DECODE_MALFORMED, // truncated, oversized, nonsense: *out is not to be used
};
enum decode_result decode_route(const void *message, size_t bytes,
	struct event *out); // NETLINK_ROUTE
enum decode_result decode_netfilter(const void *message, size_t bytes,
	struct event *out); // NETLINK_NETFILTER
enum decode_result decode_xfrm(const void *message, size_t bytes,
	struct event *out); // NETLINK_XFRM
