// Netlink attributes by tables: a row says which one is wanted, what it holds and where that goes.
// Pure; each length is checked. Inside decode.
#pragma once

#include <linux/netlink.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// What an attribute holds. The 0 of rows that a table leaves out: not wanted.
enum want_form {
	WANT_NOT,
	WANT_U8,
	WANT_U16,
	WANT_U16_BE,
	WANT_U32,
	WANT_TEXT,   // 16 bytes, cut there
	WANT_ADDR,   // struct wire_addr: 4 or 16 bytes
	WANT_MAC,    // struct wire_mac: 6 bytes, other lengths are of no use to us
	WANT_BOOL,   // a uint8: true unless 0
	WANT_THERE,  // true: it is there, whatever it holds
	WANT_INSIDE, // attributes by the table `inside`
	WANT_TAKE,   // handed to `take`
};

struct piece {
	const void *bytes;
	uint32_t n;
};

struct wants;
struct want {
	uint8_t form;
	uint16_t at; // offset in what is filled
	const struct wants *inside;
	bool (*take)(void *out, const struct piece *value); // false: malformed
};

struct wants {
	const struct want *row; // by type
	unsigned n;
};
#define WANTS(table)                                                                               \
	{                                                                                          \
		table, sizeof(table) / sizeof((table)[0])                                          \
	}

// Fills *out from a row of attributes. False: one of them is malformed, or bytes are left.
bool attrs_take(const struct wants *wants, const struct piece *attrs, void *out);

// Walks by hand. The attribute at the start of *rest, which is moved behind it. NULL: at the end,
// or (rest->n is not 0) malformed.
const struct nlattr *attrs_next(struct piece *rest);
static inline unsigned attrs_type(const struct nlattr *attr)
{
	return attr->nla_type & NLA_TYPE_MASK;
}
static inline struct piece attrs_value(const struct nlattr *attr)
{
	return (struct piece){(const uint8_t *)attr + NLA_HDRLEN, attr->nla_len - NLA_HDRLEN};
}

// What stands behind a message's header of `header` bytes; false: it is too short for that.
bool attrs_of(const struct nlmsghdr *message, size_t header, struct piece *out);
