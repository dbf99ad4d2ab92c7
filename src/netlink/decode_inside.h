// Shared by the files of decode: the attribute parser and one reader per kind of message. Pure;
// every length is checked.
#pragma once

#include "netlink/event.h"
#include "netlink/tunnel_facts.h"

#include <linux/netlink.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

// Table-driven attribute parser: each row gives an attribute's type, its form and where the value
// is stored.

// Form of an attribute. 0 means ignored, so that rows left out of a table are skipped.
enum want_form {
	WANT_NOT,
	WANT_U8,
	WANT_U16,
	WANT_U16_BE,
	WANT_U32,
	WANT_TEXT,   // truncated to 16 bytes
	WANT_ADDR,   // struct wire_addr: 4 or 16 bytes
	WANT_MAC,    // struct wire_mac: 6 bytes; other lengths are ignored
	WANT_BOOL,   // uint8: true unless 0
	WANT_THERE,  // true if present, whatever its value
	WANT_INSIDE, // nested attributes, parsed by the table `inside`
	WANT_TAKE,   // passed to `take`
};

struct piece {
	const void *bytes;
	uint32_t n;
};

struct wants;
struct want {
	uint8_t form;
	uint16_t at; // offset in the struct to be filled
	const struct wants *inside;
	bool (*take)(void *out, const struct piece *value); // returns false if malformed
};

struct wants {
	const struct want *row; // indexed by attribute type
	unsigned n;
};
#define WANTS(table)                                                                               \
	{                                                                                          \
		table, sizeof(table) / sizeof((table)[0])                                          \
	}

// Fills *out from a sequence of attributes. Returns false if one is malformed or bytes are left
// over.
bool attrs_take(const struct wants *wants, const struct piece *attrs, void *out);

// Iterates over attributes. Returns the attribute at the start of *rest and advances *rest past it.
// NULL: at the end, or malformed (rest->n is not 0).
const struct nlattr *attrs_next(struct piece *rest);
static inline unsigned attrs_type(const struct nlattr *attr)
{
	return attr->nla_type & NLA_TYPE_MASK;
}
static inline struct piece attrs_value(const struct nlattr *attr)
{
	return (struct piece){(const uint8_t *)attr + NLA_HDRLEN, attr->nla_len - NLA_HDRLEN};
}

// The attributes after a message header of `header` bytes. Returns false if the message is too
// short.
bool attrs_of(const struct nlmsghdr *message, size_t header, struct piece *out);

// One reader per kind of message, and the table rows that refer to them.

// A kind of message: its header, and the function that reads it into *out (the head is set, and the
// first `clear` bytes of the union are zero).
struct reader {
	uint16_t header; // bytes after struct nlmsghdr
	uint8_t kind;    // enum event_kind
	uint16_t clear;
	enum decode_result (*read)(const struct nlmsghdr *message, struct event *out);
};

extern const struct reader read_iface, read_vlans, read_groups, read_address, read_neighbour,
	read_netconf;
extern const struct reader read_route, read_nexthop, read_rule;
extern const struct reader read_filter, read_action;
extern const struct reader read_htb_class;
// decode_queue.c: a qdisc of this kind. False: it is malformed. / A filter of one that has classes.
bool queue_read(const struct nlmsghdr *message, const char *kind, bool is_delete,
	struct event_queue *out);
void queue_read_filter(const struct nlmsghdr *message, struct event *event);
extern const struct reader read_qdisc, read_chain, read_flowtable, read_policy, read_policy_default;

// Parses the attributes after the header with a table.
enum decode_result read_attrs(const struct nlmsghdr *message, size_t header,
	const struct wants *wants, void *out);
// 4, 6, or 0 for any other family.
static inline uint8_t read_family(int family)
{
	return family == AF_INET ? 4 : family == AF_INET6 ? 6 : 0;
}
// Multicast routes use the route message format, / and those of MPLS labels.
enum decode_result read_mroute(const struct nlmsghdr *message, struct event *out);
enum decode_result read_label(const struct nlmsghdr *message, struct event *out);
// How a bridge snoops: from IFLA_INFO_DATA of its interface. False: it is malformed.
bool read_snooping(const struct piece *data, struct event_snooping *out);
// RTA_VIA: a gateway of the other address family, preceded by its family.
bool read_via(struct wire_addr *out, const struct piece *value);
// Takes the labels of RTA_ENCAP into a struct event_hop, as if its type were MPLS. / Gives them up
// if it is not, once all attributes are read.
bool labels_take_encap(void *hop, const struct piece *value);
void labels_settle(struct event_hop *hop);

// A link of a kind that is a tunnel gets it from IFLA_INFO_DATA; others stay as they are. / The
// same for VXLAN. False: it is malformed.
bool tunnel_take_data(struct event_link *link, const struct piece *data);
bool vxlan_take_data(struct event_link *link, const struct piece *data);
// MAC addresses of bridges and VXLAN devices use the neighbour message format.
enum decode_result fdb_read(const struct nlmsghdr *message, struct event *out);

// The next hops of an event: at most EVENT_MAX_HOPS.
struct hop_list {
	struct event_hop *hop;
	uint16_t *n;
	bool *too_many; // set if there were more
};
// Adds those of an RTA_MULTIPATH, with the attributes that are wanted. False: it is malformed.
bool read_hops(const struct piece *value, const struct wants *wants, struct hop_list *list);
