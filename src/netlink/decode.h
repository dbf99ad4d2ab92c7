// Decodes netlink messages into events, using attribute tables. Pure: no socket, no state; fuzzed.
#pragma once

#include "netlink/event.h"

#include <stddef.h>

// Decodes one netlink message. It starts with struct nlmsghdr; `bytes` is the space left in the
// buffer.
enum decode_result {
	DECODE_EVENT,     // *out is filled in
	DECODE_IGNORED,   // valid, but of a kind we do not use
	DECODE_MALFORMED, // truncated, oversized or invalid: do not use *out
};
enum decode_result decode_route(const void *message, size_t bytes,
	struct event *out); // NETLINK_ROUTE
enum decode_result decode_netfilter(const void *message, size_t bytes,
	struct event *out); // NETLINK_NETFILTER
enum decode_result decode_xfrm(const void *message, size_t bytes,
	struct event *out); // NETLINK_XFRM
