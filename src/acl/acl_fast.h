// The part of access lists that workers read. No function here allocates, locks or makes system
// calls.
#pragma once

#include "base/bits.h"
#include "police/police_fast.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum acl_direction { ACL_IN, ACL_OUT, ACL_DIRECTIONS };
enum acl_effect { ACL_PERMIT, ACL_DENY, ACL_REJECT, ACL_PUNT, ACL_EFFECTS };
enum { ACL_KEEP_DSCP = 64, ACL_NO_MIRROR = 0xffff };
enum { ACL_BURST = 64, ACL_MAX_WORKERS = 128, ACL_MAX_IFACES = 1 << 16 };

// What rules may ask of a packet, as the classifier reads it. Ports are 0 if the packet has none
// (also later fragments); for ICMP they are its type and code.
struct acl_key {
	uint8_t proto; // IPv6: behind the extension headers
	uint8_t zero[3];
	uint8_t dscp;
	uint8_t fragment; // 1 << enum wire_fragment_class
	uint8_t tcp_flags;
	uint8_t is_local; // for the router itself
	uint16_t src_port_be, dst_port_be;
	uint8_t addr[32]; // source, then destination: 4 bytes each for IPv4, or 16
};
_Static_assert(sizeof(struct acl_key) == 44, "no padding: groups of four bytes");

// What happens to the packets of a rule.
struct acl_action {
	uint32_t counter; // its index in the counters of workers
	uint16_t mirror;  // interface that gets a copy of each packet, or ACL_NO_MIRROR
	uint8_t effect;   // enum acl_effect
	uint8_t dscp;     // to be set: 0 to 63, or ACL_KEEP_DSCP
};

// The policer of a rule.
struct acl_policer {
	struct police *police; // NULL: none
	struct police_measure measure;
	uint32_t red; // index of the counter of packets above the rate
};

// The counter of a rule on one worker, which alone writes it.
struct acl_count {
	uint64_t packets, bytes;
};

// A list as workers use it; never changed. Rule numbers start at 1; 0 is the end of the list.
struct acl_list {
	const void *classifier[2];         // for IPv4 and IPv6; NULL: no rule of this family
	const struct acl_action *action;   // by rule number
	const struct acl_policer *policer; // same; NULL: no rule has one
	bool has_local;                    // some rule is about packets for the router itself
};

// Which list an interface has in each direction: an index into `list`, where 0 is NULL. Entries
// change in place as interfaces come and go.
struct acl_view {
	bool has[ACL_DIRECTIONS]; // any interface has a list
	const struct acl_list *const *list;
	uint16_t of_iface[ACL_DIRECTIONS][ACL_MAX_IFACES];
};

// What workers start from.
struct acl_live {
	const struct acl_view *view; // NULL: no list is in use
	struct acl_count *count[ACL_MAX_WORKERS];
};

// Read once per burst; valid until the worker reports a quiescent state. Worker.
static inline const struct acl_view *acl_live_view(const struct acl_live *live)
{
	return __atomic_load_n(&live->view, __ATOMIC_ACQUIRE); // partner: show() in table.c
}

// NULL: none. Worker.
static inline const struct acl_list *acl_view_list(const struct acl_view *view,
	enum acl_direction direction, uint16_t iface)
{
	return view->list[__atomic_load_n(&view->of_iface[direction][iface], __ATOMIC_RELAXED)];
}

// Whether any interface has a list in this direction. Worker.
static inline bool acl_view_has(const struct acl_view *view, enum acl_direction direction)
{
	return __atomic_load_n(&view->has[direction], __ATOMIC_RELAXED);
}

// Reads a packet, of which `bytes` from its IP header on are there and belong to it: at least the
// fixed header, and for IPv4 the options. False: no rule can judge it, because its transport header
// is cut or overwritten by a fragment (RFC 1858, 3 and 4), or behind too many extension headers.
// `is_local` is left to the caller. Worker.
bool acl_key4(struct acl_key *out, const uint8_t *packet, size_t bytes);
bool acl_key6(struct acl_key *out, const uint8_t *packet, size_t bytes);

// Whether Linux's tc finds the same protocol, ports, types, flags and class of fragment in a packet
// that acl_key4() or acl_key6() has read. It takes an IPv6 packet with extension headers for one of
// another protocol, unless they are only that of a fragment; an atomic fragment for a fragment; and
// flags or types of cut headers for zeros. False for some packets that are read alike. Worker.
bool acl_is_alike(const uint8_t *packet, size_t bytes, bool is_ip6);

// Writes the number of the first rule that matches each of `n` packets, 0: none does. `n` is at
// most ACL_BURST. Worker.
void acl_classify(const struct acl_list *list, bool is_ip6, const struct acl_key key[],
	uint32_t rule[], unsigned n);

// Counts a packet in the counter with this index: that of a rule, or of what is above its rate.
// Worker.
static inline void acl_count_packet(struct acl_count *count, uint32_t index, uint16_t bytes)
{
	struct acl_count *counter = &count[index];

	__atomic_store_n(&counter->packets, counter->packets + 1, __ATOMIC_RELAXED);
	__atomic_store_n(&counter->bytes, counter->bytes + bytes, __ATOMIC_RELAXED);
}
