// Frames to groups of a bridge of Linux that snoops: they go to the ports that want the group and
// to those of routers, or are flooded, as Linux's bridge does (net/bridge: br_multicast.c,
// br_forward.c). Worker.
#include "datapath/bridge_inside.h"

#include "wire/checksum.h"

#include <string.h>

static uint16_t read16(const uint8_t *at)
{
	return at[0] << 8 | at[1];
}

// Whether Linux takes the tag of this EtherType off before it looks at a frame.
static bool is_tag(const struct frames *f, uint16_t type)
{
	if (f->from->vlans)
		return type == f->from->vlans->tag;
	return type == WIRE_ETHERTYPE_VLAN || type == WIRE_ETHERTYPE_QINQ;
}

void frames_packet(const struct frames *f, const struct rte_mbuf *m, struct frame_packet *out)
{
	uint32_t at = WIRE_ETHER_BYTES, n = MIN_OF(m->pkt_len, (uint32_t)sizeof(out->space));
	const uint8_t *frame;

	memset(out->space, 0, WIRE_ETHER_BYTES);
	frame = rte_pktmbuf_read(m, 0, n, out->space);
	out->type = read16(frame + 12);
	if (is_tag(f, out->type) && n >= at + WIRE_VLAN_BYTES) {
		out->type = read16(frame + at + 2);
		at += WIRE_VLAN_BYTES;
	}
	out->bytes = frame + at;
	out->n = n > at ? n - at : 0;
	out->whole = m->pkt_len > at ? m->pkt_len - at : 0;
}

// As Linux checks them: it drops other packets to groups if it snoops.
static bool is_good4(const struct frame_packet *packet)
{
	const struct wire_ip4 *ip = (const void *)packet->bytes;
	const uint32_t header = packet->n ? (packet->bytes[0] & 0xf) * 4u : 0;
	uint32_t total;

	if (packet->n < sizeof(*ip) || packet->bytes[0] >> 4 != 4 || header < sizeof(*ip) ||
		packet->n < header)
		return false;
	total = read16(packet->bytes + 2);
	return total >= header && total <= packet->whole && wire_ip4_checksum_good(ip);
}

static bool is_good6(const struct frame_packet *packet)
{
	uint32_t payload;

	if (packet->n < sizeof(struct wire_ip6) || packet->bytes[0] >> 4 != 6)
		return false;
	payload = read16(packet->bytes + 4);
	return payload && sizeof(struct wire_ip6) + payload <= packet->whole;
}

// 224.0.0.0/24 and ff02::1, which everybody wants.
static bool is_for_all(enum mac_family family, const uint8_t *addr)
{
	static const uint8_t local4[3] = {224}, all6[16] = {0xff, 2, [15] = 1};

	if (family == MAC_OF_IP4)
		return !memcmp(addr, local4, sizeof(local4));
	return family == MAC_OF_IP6 && !memcmp(addr, all6, sizeof(all6));
}

// Reads the group to which the frame goes. False: Linux drops it.
static bool read_group(const struct frames *f, uint16_t i, enum mac_family *family,
	uint8_t addr[16])
{
	enum { AT4 = 16, AT6 = 24 };
	struct frame_packet packet;

	frames_packet(f, f->mbuf[i], &packet);
	memset(addr, 0, 16);
	*family = MAC_OF_MACS;
	if (packet.type == WIRE_ETHERTYPE_IP4) {
		*family = MAC_OF_IP4;
		if (!is_good4(&packet))
			return false;
		memcpy(addr, packet.bytes + AT4, 4);
	} else if (packet.type == WIRE_ETHERTYPE_IP6) {
		*family = MAC_OF_IP6;
		if (!is_good6(&packet))
			return false;
		memcpy(addr, packet.bytes + AT6, 16);
	} else {
		memcpy(addr, rte_pktmbuf_mtod(f->mbuf[i], const uint8_t *), 6);
	}
	return true;
}

// Groups of MAC addresses need no querier.
bool frames_snoop(struct frames *f, uint16_t i)
{
	const struct mac_snoop *snoop = mac_snoop_of(f->view, f->from->domain);
	struct mac_group_key key;
	enum mac_family family;
	uint8_t addr[16];

	f->out[i] = NULL;
	if (!snoop)
		return true;
	if (!read_group(f, i, &family, addr))
		return false;
	if ((family != MAC_OF_MACS && !snoop->has_querier[family]) || is_for_all(family, addr))
		return true;
	key = mac_group_key(f->dst[i] >> 48, family, addr);
	f->out[i] = mac_group_find(f->view, &key);
	if (!f->out[i] && family != MAC_OF_MACS)
		f->out[i] = &snoop->routers[family];
	return true;
}

// A VXLAN device that wants a group is not one of its ports: Linux gets the frame itself, then.
void frames_send_groups(struct worker *w, const struct frames *f, uint64_t mask)
{
	while (mask) {
		const struct mac_out *out = f->out[__builtin_ctzll(mask)];
		uint64_t ports[MAC_PORTS / 64], same = 0;

		for (uint64_t rest = mask; rest; rest &= rest - 1) {
			const unsigned i = __builtin_ctzll(rest);

			same |= (uint64_t)(f->out[i] == out) << i;
		}
		for (unsigned word = 0; word < MAC_PORTS / 64; word++)
			ports[word] = out->ports[word] & f->from->others[word];
		frames_flood(w, f, same,
			&(struct flood_to){.ports = ports,
				.keeps = out->linux_too,
				.kind = MAC_STORMS});
		mask &= ~same;
	}
}
