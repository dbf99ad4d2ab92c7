// Decodes MAC addresses of bridges and of VXLAN devices, which have tables of their own. Pure.
#include "netlink/decode_inside.h"

#include <linux/neighbour.h>
#include <linux/rtnetlink.h>
#include <string.h>

// An entry of either table while it is read.
struct draft {
	struct event_fdb fdb;
	struct event_remote remote;
	uint32_t ext_flags;
	bool has_mac;
};
#define FDB_AT(field) (offsetof(struct draft, fdb) + offsetof(struct event_fdb, field))
#define REMOTE_AT(field) (offsetof(struct draft, remote) + offsetof(struct event_remote, field))

static bool take_mac(void *out, const struct piece *value)
{
	struct draft *draft = out;

	draft->has_mac = value->n == sizeof(draft->fdb.mac);
	if (draft->has_mac)
		memcpy(&draft->fdb.mac, value->bytes, sizeof(draft->fdb.mac));
	return true;
}

static bool take_vni(void *out, const struct piece *value)
{
	struct event_remote *remote = &((struct draft *)out)->remote;

	if (value->n < sizeof(remote->vni))
		return false;
	memcpy(&remote->vni, value->bytes, sizeof(remote->vni));
	remote->has_vni = true;
	return remote->vni <= IFACE_MAX_VNI;
}

static const struct want want_fdb[] = {
	[NDA_DST] = {WANT_ADDR, .at = REMOTE_AT(addr)},
	[NDA_LLADDR] = {WANT_TAKE, .take = take_mac},
	[NDA_VLAN] = {WANT_U16, .at = FDB_AT(vlan)},
	[NDA_PORT] = {WANT_U16_BE, .at = REMOTE_AT(udp_port)},
	[NDA_VNI] = {WANT_TAKE, .take = take_vni},
	[NDA_IFINDEX] = {WANT_U32, .at = REMOTE_AT(link)},
	[NDA_MASTER] = {WANT_U32, .at = FDB_AT(bridge)},
	[NDA_NH_ID] = {WANT_U32, .at = REMOTE_AT(nexthop)},
	[NDA_FLAGS_EXT] = {WANT_U32, .at = offsetof(struct draft, ext_flags)},
};
static const struct wants wants_fdb = WANTS(want_fdb);

static enum decode_result take_remote(const struct ndmsg *head, struct draft *draft,
	struct event *out)
{
	struct event_remote *remote = &draft->remote;

	remote->ifindex = head->ndm_ifindex;
	remote->mac = draft->fdb.mac;
	remote->is_learnt = !(head->ndm_state & (NUD_PERMANENT | NUD_NOARP)) &&
	                    !(head->ndm_flags & NTF_EXT_LEARNED) && !remote->nexthop;
	out->kind = EVENT_REMOTE;
	out->remote = *remote;
	return DECODE_EVENT;
}

// Without a bridge it is an entry of the device itself: of VXLAN, or such as a group that its
// filter takes. NUD_PERMANENT: an address of the bridge or of a port itself.
enum decode_result fdb_read(const struct nlmsghdr *message, struct event *out)
{
	static const uint8_t usual = NTF_EXT_LEARNED | NTF_OFFLOADED | NTF_STICKY | NTF_MASTER;
	const struct ndmsg *head = NLMSG_DATA(message);
	struct draft draft = {.fdb = {.ifindex = head->ndm_ifindex}};

	if (read_attrs(message, sizeof(*head), &wants_fdb, &draft) != DECODE_EVENT)
		return DECODE_MALFORMED;
	const bool has_end = draft.remote.addr.family || draft.remote.nexthop;

	if (!draft.has_mac || head->ndm_ifindex <= 0)
		return DECODE_IGNORED;
	if (draft.fdb.bridge <= 0)
		return has_end ? take_remote(head, &draft, out) : DECODE_IGNORED;
	draft.fdb.is_plain = !(head->ndm_state & NUD_PERMANENT) && !draft.ext_flags &&
	                     !(head->ndm_flags & ~usual) && !has_end &&
	                     !(draft.fdb.mac.bytes[0] & 1);
	out->kind = EVENT_FDB;
	out->fdb = draft.fdb;
	return DECODE_EVENT;
}
