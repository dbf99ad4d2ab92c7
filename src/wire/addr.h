// Addresses as bytes and as text. No thread, no state.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { WIRE_MAC_TEXT = 18, WIRE_ADDR_TEXT = 46, WIRE_PREFIX_TEXT = 50 };

struct wire_mac {
	uint8_t bytes[6];
};

// family 4, 6, or 0 for "none". IPv4 is in the first four bytes, the rest is 0; network order.
struct wire_addr {
	uint8_t bytes[16];
	uint8_t family;
};

struct wire_prefix {
	struct wire_addr addr;
	uint8_t len; // bits, 0 to 32 or 128
};

// Parsers of text: the whole string must match. 0, or -EINVAL and *out is unchanged.
int wire_mac_parse(const char *text, struct wire_mac *out);   // six hex pairs with ':' or '-'
int wire_addr_parse(const char *text, struct wire_addr *out); // dotted quad or RFC 4291 text
int wire_prefix_parse(const char *text,
	struct wire_prefix *out); // ADDRESS/LEN; -ERANGE: host bits are set (*out is filled)

// Formatters: `text` has the size given by the enum above; returned. IPv6 as in RFC 5952.
const char *wire_mac_print(const struct wire_mac *mac, char *text);
const char *wire_addr_print(const struct wire_addr *addr, char *text);
const char *wire_prefix_print(const struct wire_prefix *prefix, char *text);

bool wire_addr_equal(const struct wire_addr *a, const struct wire_addr *b);
// 169.254.0.0/16 or fe80::/10: valid on its own link only, so several ports may have the same one.
bool wire_addr_is_link_local(const struct wire_addr *addr);
bool wire_mac_equal(const struct wire_mac *a, const struct wire_mac *b);
// Clears the host bits.
void wire_prefix_mask(struct wire_prefix *prefix);
