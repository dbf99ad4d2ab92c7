// See bridge_vlans.h. A frame whose tag has another EtherType than those of the bridge has no VLAN,
// and one in VLAN 0 has a priority only: both are in the PVID of their port, as untagged ones.
#include "datapath/bridge_vlans.h"

#include "wire/headers.h"

#include <string.h>

enum { MACS_BYTES = 12, VID = 0xfff, TAGGED_BYTES = WIRE_ETHER_BYTES + WIRE_VLAN_BYTES };

static uint16_t read16(const uint8_t *at)
{
	return at[0] << 8 | at[1];
}

static void write16(uint8_t *at, uint16_t value)
{
	at[0] = value >> 8;
	at[1] = value;
}

static bool has_tag(const struct mac_vlans *vlans, const struct rte_mbuf *m)
{
	return read16(rte_pktmbuf_mtod(m, const uint8_t *) + MACS_BYTES) == vlans->tag;
}

uint16_t bridge_vlans_in(const struct mac_vlans *in, const struct rte_mbuf *m)
{
	const uint8_t *frame = rte_pktmbuf_mtod(m, const uint8_t *);
	uint16_t vid = 0;

	if (m->data_len < WIRE_ETHER_BYTES)
		return 0;
	if (has_tag(in, m)) {
		if (m->data_len < TAGGED_BYTES)
			return 0;
		vid = read16(frame + WIRE_ETHER_BYTES) & VID;
	}
	if (!vid)
		vid = in->pvid;
	return mac_vlans_has(in->has, vid) ? vid : 0;
}

uint16_t bridge_vlans_tag_bytes(const struct mac_vlans *in, const struct rte_mbuf *m)
{
	return has_tag(in, m) ? WIRE_VLAN_BYTES : 0;
}

// Linux does not count the tag that it adds as part of a frame, but all others.
bool bridge_vlans_out(const struct mac_vlans *in, const struct mac_vlans *out, uint16_t vid,
	const struct rte_mbuf *m, uint16_t mtu)
{
	if (!out || out->domain != in->domain || !mac_vlans_has(out->has, vid))
		return false;
	if (mac_vlans_has(out->untagged, vid) || has_tag(in, m))
		return true;
	return rte_pktmbuf_headroom(m) >= WIRE_VLAN_BYTES &&
	       m->pkt_len <= mtu + (uint32_t)TAGGED_BYTES;
}

unsigned bridge_vlans_more(const struct mac_vlans *out, uint16_t vid, const struct rte_mbuf *m)
{
	return has_tag(out, m) || mac_vlans_has(out->untagged, vid) ? 0 : (unsigned)WIRE_VLAN_BYTES;
}

static void push(const struct mac_vlans *out, uint16_t vid, struct rte_mbuf *m)
{
	uint8_t *frame;

	rte_pktmbuf_prepend(m, WIRE_VLAN_BYTES); // bridge_vlans_out has seen that there is space
	frame = rte_pktmbuf_mtod(m, uint8_t *);
	memmove(frame, frame + WIRE_VLAN_BYTES, MACS_BYTES);
	write16(frame + MACS_BYTES, out->tag);
	write16(frame + WIRE_ETHER_BYTES, vid);
}

static void pop(struct rte_mbuf *m)
{
	uint8_t *frame = rte_pktmbuf_mtod(m, uint8_t *);

	memmove(frame + WIRE_VLAN_BYTES, frame, MACS_BYTES);
	rte_pktmbuf_adj(m, WIRE_VLAN_BYTES);
}

void bridge_vlans_tag(const struct mac_vlans *out, uint16_t vid, struct rte_mbuf *m)
{
	const bool is_tagged = has_tag(out, m), wants_tag = !mac_vlans_has(out->untagged, vid);
	uint8_t *tci = rte_pktmbuf_mtod_offset(m, uint8_t *, WIRE_ETHER_BYTES);

	if (is_tagged && wants_tag)
		write16(tci, (read16(tci) & ~VID) | vid);
	else if (is_tagged)
		pop(m);
	else if (wants_tag)
		push(out, vid, m);
}
