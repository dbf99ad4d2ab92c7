// Table-driven netlink attribute parser: each row gives an attribute's type, its form and where the
// value is stored. Pure; every length is checked. Internal to decode.
#pragma once

#include <linux/netlink.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

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
