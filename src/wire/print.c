// Frames as text: each layer appends its words to the line and passes the rest on. Any thread but
// workers; no state.
#include "wire/print.h"

#include "wire/addr.h"
#include "wire/checksum.h"
#include "wire/headers.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

enum { MAX_VLAN_TAGS = 2 };

struct line {
	char *text;
	size_t used;
};

// The rest of the frame, from some header on.
struct rest {
	const uint8_t *at;
	size_t bytes;
};

struct ends {
	struct wire_addr src, dst;
};

__attribute__((format(printf, 2, 3))) static void add(struct line *line, const char *format, ...)
{
	size_t room = WIRE_FRAME_TEXT - line->used;
	va_list args;
	int n;

	va_start(args, format);
	n = vsnprintf(line->text + line->used, room, format, args);
	va_end(args);
	line->used += (size_t)n < room ? (size_t)n : room - 1;
}

// Takes the header at the start of the rest. If it is truncated, returns NULL and says so in the
// line.
static const void *take(struct rest *rest, size_t header_bytes, struct line *line)
{
	const void *header = rest->at;

	if (rest->bytes < header_bytes) {
		add(line, " cut short");
		return NULL;
	}
	rest->at += header_bytes;
	rest->bytes -= header_bytes;
	return header;
}

static void print_end(struct line *line, const struct wire_addr *addr, const uint8_t *port)
{
	char text[WIRE_ADDR_TEXT];
	bool brackets = port && addr->family == 6;

	add(line, "%s%s%s", brackets ? "[" : "", wire_addr_print(addr, text), brackets ? "]" : "");
	if (port)
		add(line, ":%u", port[0] << 8 | port[1]);
}

// `ports` is NULL for packets without ports.
static void print_ends(struct line *line, const struct ends *ends, const uint8_t *ports)
{
	print_end(line, &ends->src, ports);
	add(line, " > ");
	print_end(line, &ends->dst, ports ? ports + 2 : NULL);
}

static void print_tcp_flags(struct line *line, uint8_t flags)
{
	static const char *const names[] = {"FIN", "SYN", "RST", "PSH", "ACK", "URG"};

	for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (flags & 1 << i)
			add(line, " %s", names[i]);
}

static void print_icmp(struct line *line, const struct wire_icmp *icmp, bool is_icmp4)
{
	unsigned echo = is_icmp4 ? WIRE_ICMP4_ECHO : WIRE_ICMP6_ECHO;
	unsigned reply = is_icmp4 ? WIRE_ICMP4_ECHO_REPLY : WIRE_ICMP6_ECHO_REPLY;

	add(line, is_icmp4 ? " ICMP" : " ICMPv6");
	if (icmp->type == echo || icmp->type == reply)
		add(line, " echo %s id %u seq %u", icmp->type == echo ? "request" : "reply",
			be16toh(icmp->id_be), be16toh(icmp->seq_be));
	else
		add(line, " type %u code %u", icmp->type, icmp->code);
}

// Prints addresses and protocol; `rest` starts after the IP header.
static void print_layer4(struct line *line, const struct ends *ends, uint8_t protocol,
	struct rest rest)
{
	const struct wire_tcp *tcp = (const void *)rest.at;
	bool is_tcp = protocol == WIRE_PROTO_TCP && rest.bytes >= sizeof(*tcp);
	bool is_udp = protocol == WIRE_PROTO_UDP && rest.bytes >= sizeof(struct wire_udp);
	bool is_icmp = (protocol == WIRE_PROTO_ICMP4 || protocol == WIRE_PROTO_ICMP6) &&
	               rest.bytes >= sizeof(struct wire_icmp);

	print_ends(line, ends, is_tcp || is_udp ? rest.at : NULL);
	if (is_icmp) {
		print_icmp(line, (const void *)rest.at, protocol == WIRE_PROTO_ICMP4);
	} else if (is_tcp) {
		add(line, " TCP");
		print_tcp_flags(line, tcp->flags);
	} else if (is_udp) {
		add(line, " UDP");
	} else {
		add(line, " protocol %u", protocol);
	}
}

// The packet ends where its length field says, or with the frame: the rest is padding.
static void cut(struct rest *rest, size_t bytes)
{
	if (rest->bytes > bytes)
		rest->bytes = bytes;
}

static void print_ip4(struct line *line, struct rest rest)
{
	struct rest header_rest = rest;
	const struct wire_ip4 *ip;
	struct ends ends = {{.family = 4}, {.family = 4}};
	unsigned header_bytes, total_bytes, offset;

	add(line, " IPv4");
	ip = take(&rest, sizeof(*ip), line);
	if (!ip)
		return;
	add(line, " ");
	memcpy(ends.src.bytes, ip->src, sizeof(ip->src));
	memcpy(ends.dst.bytes, ip->dst, sizeof(ip->dst));
	header_bytes = wire_ip4_header_bytes(ip);
	total_bytes = be16toh(ip->total_length_be);
	offset = be16toh(ip->fragment_be) & WIRE_IP4_FRAGMENT_OFFSET;
	if (header_bytes < sizeof(*ip) || header_bytes > header_rest.bytes ||
		total_bytes < header_bytes) {
		print_ends(line, &ends, NULL);
		add(line, " header length %u, total length %u of %zu", header_bytes, total_bytes,
			header_rest.bytes);
		return;
	}
	rest = (struct rest){header_rest.at + header_bytes, header_rest.bytes - header_bytes};
	cut(&rest, offset ? 0 : total_bytes - header_bytes);
	print_layer4(line, &ends, ip->protocol, rest);
	if (offset || be16toh(ip->fragment_be) & WIRE_IP4_MORE_FRAGMENTS)
		add(line, " fragment at %u", offset * 8);
	add(line, " ttl %u length %u%s%s%s", ip->ttl, total_bytes,
		total_bytes > header_rest.bytes ? " cut short" : "",
		header_bytes > sizeof(*ip) ? " options" : "",
		wire_ip4_checksum_good(ip) ? "" : " checksum wrong");
}

static void print_ip6(struct line *line, struct rest rest)
{
	const struct wire_ip6 *ip;
	struct ends ends = {{.family = 6}, {.family = 6}};
	unsigned payload_bytes;
	size_t there;

	add(line, " IPv6");
	ip = take(&rest, sizeof(*ip), line);
	if (!ip)
		return;
	add(line, " ");
	memcpy(ends.src.bytes, ip->src, sizeof(ip->src));
	memcpy(ends.dst.bytes, ip->dst, sizeof(ip->dst));
	payload_bytes = be16toh(ip->payload_length_be);
	there = rest.bytes;
	cut(&rest, payload_bytes);
	print_layer4(line, &ends, ip->next_header, rest);
	add(line, " hop limit %u length %zu%s", ip->hop_limit, sizeof(*ip) + payload_bytes,
		payload_bytes > there ? " cut short" : "");
}

static void print_arp(struct line *line, struct rest rest)
{
	const struct wire_arp *arp;
	struct wire_addr sender = {.family = 4}, target = {.family = 4};
	struct wire_mac mac;
	char sender_text[WIRE_ADDR_TEXT], target_text[WIRE_ADDR_TEXT], mac_text[WIRE_MAC_TEXT];

	add(line, " ARP");
	arp = take(&rest, sizeof(*arp), line);
	if (!arp)
		return;
	memcpy(sender.bytes, arp->sender_ip, sizeof(arp->sender_ip));
	memcpy(target.bytes, arp->target_ip, sizeof(arp->target_ip));
	memcpy(mac.bytes, arp->sender_mac, sizeof(mac.bytes));
	wire_addr_print(&sender, sender_text);
	wire_addr_print(&target, target_text);
	if (be16toh(arp->operation_be) == 1)
		add(line, " who has %s, asks %s", target_text, sender_text);
	else
		add(line, " %s is at %s", sender_text, wire_mac_print(&mac, mac_text));
}

// Prints and skips VLAN tags; returns the EtherType after them. -1: truncated.
static int print_vlans(struct line *line, struct rest *rest, int ethertype)
{
	for (int i = 0; i < MAX_VLAN_TAGS; i++) {
		const struct wire_vlan *vlan;

		if (ethertype != WIRE_ETHERTYPE_VLAN && ethertype != WIRE_ETHERTYPE_QINQ)
			break;
		add(line, " VLAN");
		vlan = take(rest, sizeof(*vlan), line);
		if (!vlan)
			return -1;
		add(line, " %u", be16toh(vlan->tag_be) & 0xfff);
		ethertype = be16toh(vlan->ethertype_be);
	}
	return ethertype;
}

const char *wire_frame_print(const uint8_t *frame, size_t bytes, char *text)
{
	struct line line = {text, 0};
	struct rest rest = {frame, bytes};
	const struct wire_ether *ether;
	struct wire_mac src, dst;
	char src_text[WIRE_MAC_TEXT], dst_text[WIRE_MAC_TEXT];
	int ethertype;

	add(&line, "frame of %zu bytes:", bytes);
	ether = take(&rest, sizeof(*ether), &line);
	if (!ether)
		return text;
	memcpy(src.bytes, ether->src, sizeof(src.bytes));
	memcpy(dst.bytes, ether->dst, sizeof(dst.bytes));
	add(&line, " %s > %s", wire_mac_print(&src, src_text), wire_mac_print(&dst, dst_text));
	ethertype = print_vlans(&line, &rest, be16toh(ether->ethertype_be));
	if (ethertype == WIRE_ETHERTYPE_IP4)
		print_ip4(&line, rest);
	else if (ethertype == WIRE_ETHERTYPE_IP6)
		print_ip6(&line, rest);
	else if (ethertype == WIRE_ETHERTYPE_ARP)
		print_arp(&line, rest);
	else if (ethertype >= 0)
		add(&line, " EtherType 0x%04x", ethertype);
	return text;
}
