// Values as JSON, and the words for them. Control thread.
#include "verbs/inside.h"

#include "base/bits.h"

static const char *const kinds[N_FIB_KINDS] = {
	[FIB_VIA] = "via",
	[FIB_CONNECTED] = "connected",
	[FIB_PEER] = "peer",
	[FIB_GROUP] = "group",
	[FIB_LOCAL] = "local",
	[FIB_BLACKHOLE] = "blackhole",
	[FIB_UNREACHABLE] = "unreachable",
	[FIB_PROHIBIT] = "prohibit",
	[FIB_MARTIAN] = "martian",
	[FIB_LINK_LOCAL] = "link_local",
	[FIB_MULTICAST] = "multicast",
};

const char *kind_word(unsigned kind)
{
	return kind < N_FIB_KINDS ? kinds[kind] : NULL;
}

const char *port_word(const struct verbs_house *house, unsigned port)
{
	const struct port_room_settings *ports = config_ports(house->config);

	return port < ports->n_ports ? ports->ports[port].name : NULL;
}

json_t *mac_json(const struct wire_mac *mac)
{
	char text[WIRE_MAC_TEXT];

	return json_string(wire_mac_print(mac, text));
}

json_t *addr_json(const struct wire_addr *addr)
{
	char text[WIRE_ADDR_TEXT];

	return addr->family ? json_string(wire_addr_print(addr, text)) : json_null();
}

json_t *prefix_json(const struct wire_prefix *prefix)
{
	char text[WIRE_PREFIX_TEXT];

	return json_string(wire_prefix_print(prefix, text));
}

json_t *text_json(const char *text)
{
	char plain[PORT_DEVICE_MAX];
	size_t n = 0;

	if (!text)
		return json_null();
	json_t *whole = json_string(text);
	if (whole)
		return whole;
	for (; text[n] && n < sizeof(plain) - 1; n++)
		plain[n] = (unsigned char)text[n] < 0x80 ? text[n] : '?';
	return json_stringn(plain, n);
}

json_t *number_json(uint64_t number)
{
	return json_integer(number);
}
