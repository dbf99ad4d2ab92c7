// Tells Linux which hosts behind ports of its bridges workers have seen: it ages them as if their
// frames had passed it. Control thread.
#include "netlink/inside.h"

#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/socket.h>

enum { MOST_AT_ONCE = 256 };

struct report {
	struct nlmsghdr head;
	struct ndmsg entry;
	struct nlattr mac;
	uint8_t bytes[8];
	struct nlattr vlan; // not there without a VLAN
	uint16_t vid[2];
};

// NTF_USE: the bridge does what it does for a frame from there (br_fdb_update). Others that keep an
// entry alive make it static, or take it from the bridge's clock (NTF_EXT_LEARNED). Without a VLAN,
// it does so for each VLAN of the port, too.
static struct report report_of(const struct mirror_seen *seen)
{
	struct report report = {.head = {.nlmsg_len = seen->vlan ? sizeof(report)
	                                                         : offsetof(struct report, vlan),
					.nlmsg_type = RTM_NEWNEIGH,
					.nlmsg_flags = NLM_F_REQUEST | NLM_F_CREATE},
		.entry = {.ndm_family = AF_BRIDGE,
			.ndm_ifindex = seen->ifindex,
			.ndm_state = NUD_REACHABLE,
			.ndm_flags = NTF_USE | NTF_MASTER},
		.mac = {NLA_HDRLEN + sizeof(seen->mac), NDA_LLADDR},
		.vlan = {NLA_HDRLEN + sizeof(seen->vlan), NDA_VLAN},
		.vid = {seen->vlan}};

	memcpy(report.bytes, seen->mac.bytes, sizeof(seen->mac.bytes));
	return report;
}

// Nothing depends on one of them: the next round repeats it.
void macs_refresh(struct netlink *netlink, const struct mirror_seen seen[], unsigned n)
{
	uint8_t reports[MOST_AT_ONCE * sizeof(struct report)];

	while (n) {
		uint32_t bytes = 0;
		unsigned i = 0;

		for (; i < n && i < MOST_AT_ONCE; i++) {
			const struct report report = report_of(&seen[i]);

			memcpy(reports + bytes, &report, report.head.nlmsg_len);
			bytes += report.head.nlmsg_len;
		}
		listen_tell(netlink->listen, reports, bytes);
		seen += i;
		n -= i;
	}
}
