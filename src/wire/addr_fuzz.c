// Any text as an address: what parses is printed, and parses again as the same address.
#include "wire/addr.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void read_mac(const char *line)
{
	struct wire_mac mac, again;
	char text[WIRE_MAC_TEXT];

	if (wire_mac_parse(line, &mac) < 0)
		return;
	if (wire_mac_parse(wire_mac_print(&mac, text), &again) < 0 || !wire_mac_equal(&mac, &again))
		abort();
}

static void read_addr(const char *line)
{
	struct wire_addr addr, again;
	char text[WIRE_ADDR_TEXT];

	if (wire_addr_parse(line, &addr) < 0)
		return;
	if (wire_addr_parse(wire_addr_print(&addr, text), &again) < 0 ||
		!wire_addr_equal(&addr, &again))
		abort();
}

static void read_prefix(const char *line)
{
	struct wire_prefix prefix, again;
	char text[WIRE_PREFIX_TEXT];

	if (wire_prefix_parse(line, &prefix) == -EINVAL)
		return;
	wire_prefix_mask(&prefix);
	if (wire_prefix_parse(wire_prefix_print(&prefix, text), &again) < 0 ||
		!wire_addr_equal(&prefix.addr, &again.addr) || prefix.len != again.len)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	char *line = malloc(n + 1); // exact size, so that sanitizers detect reads beyond it

	memcpy(line, data, n);
	line[n] = 0;
	read_mac(line);
	read_addr(line);
	read_prefix(line);
	free(line);
	return 0;
}
