// Names of route types and protocols. Any thread.
#include "netlink/netlink.h"

#include "base/bits.h"

#include <linux/rtnetlink.h>

const char *netlink_type_name(unsigned type)
{
	static const char *const names[] = {[RTN_UNICAST] = "unicast",
		[RTN_LOCAL] = "local",
		[RTN_BROADCAST] = "broadcast",
		[RTN_ANYCAST] = "anycast",
		[RTN_MULTICAST] = "multicast",
		[RTN_BLACKHOLE] = "blackhole",
		[RTN_UNREACHABLE] = "unreachable",
		[RTN_PROHIBIT] = "prohibit",
		[RTN_THROW] = "throw"};

	return type < ARRAY_LEN(names) ? names[type] : NULL;
}

const char *netlink_protocol_name(unsigned protocol)
{
	static const char *const names[] = {[RTPROT_REDIRECT] = "redirect",
		[RTPROT_KERNEL] = "kernel",
		[RTPROT_BOOT] = "boot",
		[RTPROT_STATIC] = "static",
		[RTPROT_GATED] = "gated",
		[RTPROT_RA] = "ra",
		[RTPROT_ZEBRA] = "zebra",
		[RTPROT_BIRD] = "bird",
		[RTPROT_DHCP] = "dhcp",
		[RTPROT_KEEPALIVED] = "keepalived",
		[RTPROT_BABEL] = "babel",
		[RTPROT_BGP] = "bgp",
		[RTPROT_ISIS] = "isis",
		[RTPROT_OSPF] = "ospf",
		[RTPROT_RIP] = "rip",
		[RTPROT_EIGRP] = "eigrp"};

	return protocol < ARRAY_LEN(names) ? names[protocol] : NULL;
}
