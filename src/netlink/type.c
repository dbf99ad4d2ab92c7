// Any thread.
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
