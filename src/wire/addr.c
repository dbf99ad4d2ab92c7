// Addresses as bytes and as text. No thread, no state.
#include "wire/addr.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

int wire_mac_parse(const char *text, struct wire_mac *out)
{
	struct wire_mac mac;
	char separator = 0;

	for (int i = 0; i < 6; i++, text += 3) {
		int high = hex_digit(text[0]);
		int low = high < 0 ? -1 : hex_digit(text[1]);

		if (low < 0)
			return -EINVAL;
		mac.bytes[i] = high << 4 | low;
		if (i == 0)
			separator = text[2] == '-' ? '-' : ':';
		if (text[2] != (i == 5 ? 0 : separator))
			return -EINVAL;
	}
	*out = mac;
	return 0;
}

int wire_addr_parse(const char *text, struct wire_addr *out)
{
	struct wire_addr addr = {.family = strchr(text, ':') ? 6 : 4};

	if (inet_pton(addr.family == 6 ? AF_INET6 : AF_INET, text, addr.bytes) != 1)
		return -EINVAL;
	*out = addr;
	return 0;
}

// Parses a prefix length: digits only, no leading zero. -1: invalid.
static int parse_len(const char *text, int max)
{
	int len = 0;

	if (!*text || (text[0] == '0' && text[1]))
		return -1;
	for (; *text; text++) {
		if (*text < '0' || *text > '9')
			return -1;
		len = len * 10 + (*text - '0');
		if (len > max)
			return -1;
	}
	return len;
}

int wire_prefix_parse(const char *text, struct wire_prefix *out)
{
	char addr_text[WIRE_ADDR_TEXT];
	struct wire_prefix prefix, masked;
	const char *slash = strchr(text, '/');
	int len;

	if (!slash || (size_t)(slash - text) >= sizeof(addr_text))
		return -EINVAL;
	memcpy(addr_text, text, slash - text);
	addr_text[slash - text] = 0;
	if (wire_addr_parse(addr_text, &prefix.addr) < 0)
		return -EINVAL;
	len = parse_len(slash + 1, prefix.addr.family == 6 ? 128 : 32);
	if (len < 0)
		return -EINVAL;
	prefix.len = len;
	masked = prefix;
	wire_prefix_mask(&masked);
	*out = prefix;
	return wire_addr_equal(&masked.addr, &prefix.addr) ? 0 : -ERANGE;
}

const char *wire_mac_print(const struct wire_mac *mac, char *text)
{
	const uint8_t *b = mac->bytes;

	snprintf(text, WIRE_MAC_TEXT, "%02x:%02x:%02x:%02x:%02x:%02x", b[0], b[1], b[2], b[3], b[4],
		b[5]);
	return text;
}

const char *wire_addr_print(const struct wire_addr *addr, char *text)
{
	if (addr->family != 4 && addr->family != 6)
		strcpy(text, "none");
	else
		inet_ntop(addr->family == 6 ? AF_INET6 : AF_INET, addr->bytes, text,
			WIRE_ADDR_TEXT);
	return text;
}

const char *wire_prefix_print(const struct wire_prefix *prefix, char *text)
{
	char addr_text[WIRE_ADDR_TEXT];

	snprintf(text, WIRE_PREFIX_TEXT, "%s/%u", wire_addr_print(&prefix->addr, addr_text),
		prefix->len);
	return text;
}

bool wire_addr_equal(const struct wire_addr *a, const struct wire_addr *b)
{
	return a->family == b->family && !memcmp(a->bytes, b->bytes, sizeof(a->bytes));
}

bool wire_addr_is_link_local(const struct wire_addr *addr)
{
	const uint8_t *b = addr->bytes;

	return addr->family == 4 ? b[0] == 169 && b[1] == 254
	                         : b[0] == 0xfe && (b[1] & 0xc0) == 0x80;
}

bool wire_mac_equal(const struct wire_mac *a, const struct wire_mac *b)
{
	return !memcmp(a->bytes, b->bytes, sizeof(a->bytes));
}

void wire_prefix_mask(struct wire_prefix *prefix)
{
	unsigned whole = prefix->len / 8;

	for (unsigned i = whole; i < sizeof(prefix->addr.bytes); i++) {
		unsigned kept_bits = i == whole ? prefix->len % 8 : 0;

		prefix->addr.bytes[i] &= 0xff00 >> kept_bits;
	}
}
