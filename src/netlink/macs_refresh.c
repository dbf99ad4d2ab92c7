// Tells Linux which hosts behind ports of its bridges, and behind VXLAN devices, workers have seen:
// it ages them as if their frames had passed it. Control thread.
#include "netlink/inside.h"

#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/socket.h>

enum { MOST_AT_ONCE = 256 };

struct report {
	struct nlmsghdr head;
	struct ndmsg entry;
	uint8_t attrs[64];
};

static void add_attr(struct report *report, uint16_t type, const void *value, size_t n)
{
	const struct nlattr attr = {NLA_HDRLEN + n, type};
	uint8_t *at = (uint8_t *)report + report->head.nlmsg_len;

	memcpy(at, &attr, sizeof(attr));
	memcpy(at + NLA_HDRLEN, value, n);
	report->head.nlmsg_len += NLA_ALIGN(attr.nla_len);
}

// NTF_USE: the bridge does what it does for a frame from there (br_fdb_update), and the device
// refreshes the entry of its own table (vxlan_fdb_update). Others that keep an entry alive make it
// static, or take it from the clock (NTF_EXT_LEARNED).
static struct report report_of(const struct mirror_seen *seen, uint8_t whose, uint16_t flags)
{
	struct report report = {.head = {.nlmsg_len = NLMSG_LENGTH(sizeof(report.entry)),
					.nlmsg_type = RTM_NEWNEIGH,
					.nlmsg_flags = NLM_F_REQUEST | NLM_F_CREATE | flags},
		.entry = {.ndm_family = AF_BRIDGE,
			.ndm_ifindex = seen->ifindex,
			.ndm_state = NUD_REACHABLE,
			.ndm_flags = NTF_USE | whose}};

	add_attr(&report, NDA_LLADDR, seen->mac.bytes, sizeof(seen->mac.bytes));
	return report;
}

// Without a VLAN, it does so for each VLAN of the port, too.
static struct report report_to_bridge(const struct mirror_seen *seen)
{
	struct report report = report_of(seen, NTF_MASTER, 0);

	if (seen->vlan)
		add_attr(&report, NDA_VLAN, &seen->vlan, sizeof(seen->vlan));
	return report;
}

// Only an address that is new, or has moved, gets another remote end.
static struct report report_to_device(const struct mirror_seen *seen)
{
	struct report report = report_of(seen, NTF_SELF, seen->is_new ? NLM_F_REPLACE : 0);

	add_attr(&report, NDA_DST, seen->end.bytes, seen->end.family == 4 ? 4 : 16);
	return report;
}

// Messages to be sent at once.
struct reports {
	uint8_t bytes[2 * MOST_AT_ONCE * sizeof(struct report)];
	uint32_t n;
};

static void add(struct reports *reports, const struct report *report)
{
	memcpy(reports->bytes + reports->n, report, report->head.nlmsg_len);
	reports->n += report->head.nlmsg_len;
}

// Nothing depends on one of them: the next round repeats it.
void macs_refresh(struct netlink *netlink, const struct mirror_seen seen[], unsigned n)
{
	struct reports reports;

	while (n) {
		unsigned i = 0;

		reports.n = 0;
		for (; i < n && i < MOST_AT_ONCE; i++) {
			const struct report to_device = report_to_device(&seen[i]);
			const struct report to_bridge = report_to_bridge(&seen[i]);

			if (seen[i].end.family)
				add(&reports, &to_device);
			if (!seen[i].is_alone)
				add(&reports, &to_bridge);
		}
		if (reports.n)
			listen_tell(netlink->listen, reports.bytes, reports.n);
		seen += i;
		n -= i;
	}
}
