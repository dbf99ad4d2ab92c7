// See testing.h. Packets are made from their words, with extension headers and fragments, so that
// what they are is known without reading them.
#include "acl/testing.h"

#include "wire/headers.h"

#include <rte_eal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { N_HOSTS = 64, DESCRIBED_BYTES = 20 };

bool testing_start_eal(unsigned mib)
{
	static char memory[16], prefix[48]; // EAL keeps them
	static char *args[] = {"test", "--no-huge", "-m", memory, "--no-pci", "--no-telemetry",
		"--no-shconf", "--log-level=error", prefix};

	snprintf(memory, sizeof(memory), "%u", mib);
	snprintf(prefix, sizeof(prefix), "--file-prefix=acl-test-%d", getpid());
	return rte_eal_init(ARRAY_LEN(args), args) >= 0;
}

uint32_t testing_random(uint64_t *state)
{
	*state ^= *state >> 12;
	*state ^= *state << 25;
	*state ^= *state >> 27;
	return *state * 0x2545f4914f6cdd1d >> 32;
}

static uint32_t pick(uint64_t *state, uint32_t n)
{
	return testing_random(state) % n;
}

static const uint8_t protos[] = {WIRE_PROTO_TCP, WIRE_PROTO_TCP, WIRE_PROTO_UDP, WIRE_PROTO_SCTP,
	WIRE_PROTO_ICMP4, WIRE_PROTO_ICMP6, WIRE_PROTO_ESP, 47};

// One of few hosts in networks of different lengths.
static struct wire_addr random_addr(uint8_t family, uint64_t *state)
{
	struct wire_addr addr = {.family = family};
	const uint32_t host = pick(state, N_HOSTS), net = pick(state, N_HOSTS);

	if (family == 4) {
		memcpy(addr.bytes, (uint8_t[]){10, net / 8, net % 8 * 32 + host / 16, host}, 4);
		return addr;
	}
	addr.bytes[0] = 0x20;
	addr.bytes[1] = 1;
	addr.bytes[5] = net;
	addr.bytes[7] = net % 4;
	addr.bytes[8] = host % 2;
	addr.bytes[15] = host;
	return addr;
}

static struct wire_prefix random_prefix(uint8_t family, uint64_t *state)
{
	static const uint8_t lens4[] = {0, 8, 13, 16, 19, 24, 28, 30, 32, 32, 32},
			     lens6[] = {0, 16, 44, 48, 56, 62, 64, 65, 96, 122, 128, 128, 128};
	struct wire_prefix prefix = {random_addr(family, state), 0};

	prefix.len = family == 4 ? lens4[pick(state, ARRAY_LEN(lens4))]
	                         : lens6[pick(state, ARRAY_LEN(lens6))];
	wire_prefix_mask(&prefix);
	return prefix;
}

static struct acl_range random_range(unsigned most, uint64_t *state)
{
	struct acl_range range = {.is_set = true};

	range.least = pick(state, most + 1);
	range.most =
		pick(state, 2) ? range.least : range.least + pick(state, most + 1 - range.least);
	return range;
}

static void draw_transport(struct acl_rule *rule, uint64_t *state)
{
	if (rule->protocol == WIRE_PROTO_ICMP4 || rule->protocol == WIRE_PROTO_ICMP6) {
		if (pick(state, 2))
			rule->icmp_type = random_range(15, state);
		if (pick(state, 3) == 0)
			rule->icmp_code = random_range(3, state);
		return;
	}
	if (rule->protocol == WIRE_PROTO_ESP || rule->protocol == 47)
		return;
	if (pick(state, 4) == 0)
		rule->from_port = random_range(31, state);
	if (pick(state, 2))
		rule->to_port = random_range(31, state);
	if (rule->protocol == WIRE_PROTO_TCP && pick(state, 4) == 0) {
		rule->tcp_mask = testing_random(state);
		rule->tcp_flags = testing_random(state) & rule->tcp_mask;
	}
}

static void draw(struct acl_rule *rule, uint64_t *state)
{
	const uint8_t family = pick(state, 16) ? 4 + 2 * pick(state, 2) : 0;

	acl_rule_start(rule);
	rule->has_effect = true;
	rule->effect = pick(state, ACL_EFFECTS);
	if (family && pick(state, 8))
		rule->from = random_prefix(family, state);
	if (family && pick(state, 8))
		rule->to = random_prefix(family, state);
	if (pick(state, 8)) {
		rule->protocol = protos[pick(state, ARRAY_LEN(protos))];
		draw_transport(rule, state);
	}
	if (pick(state, 8) == 0)
		rule->dscp = random_range(63, state);
	if (pick(state, 8) == 0)
		rule->fragments = 1 + pick(state, 6);
	rule->is_local = pick(state, 8) == 0;
	rule->mark = pick(state, 4) ? ACL_KEEP_DSCP : pick(state, 64);
}

void testing_rule(struct acl_rule *rule, uint64_t *state)
{
	do
		draw(rule, state);
	while (acl_rule_end(rule, NULL));
}

struct acl_source testing_list(const char *name, size_t n, uint64_t *state)
{
	struct acl_source source = {.rule = calloc(n + 1, sizeof(*source.rule)), .n = n};

	if (!source.rule)
		abort();
	snprintf(source.name, sizeof(source.name), "%s", name);
	for (size_t i = 0; i < n; i++)
		testing_rule(&source.rule[i], state);
	return source;
}

// Writes a transport header of `n` bytes; returns whether that is enough for rules.
static bool write_transport(const struct acl_packet *words, uint8_t *at, size_t n)
{
	uint8_t header[DESCRIBED_BYTES] = {0};
	const bool is_icmp =
		words->proto == (words->src.family == 4 ? WIRE_PROTO_ICMP4 : WIRE_PROTO_ICMP6);
	size_t needed = 4;

	if (is_icmp) {
		header[0] = words->src_port;
		header[1] = words->dst_port;
		needed = 2;
	} else if (words->proto == WIRE_PROTO_TCP || words->proto == WIRE_PROTO_UDP ||
		   words->proto == WIRE_PROTO_SCTP) {
		header[0] = words->src_port >> 8;
		header[1] = words->src_port;
		header[2] = words->dst_port >> 8;
		header[3] = words->dst_port;
		header[13] = words->tcp_flags;
		needed = words->proto == WIRE_PROTO_TCP ? 14 : 4;
	} else {
		needed = 0;
	}
	memcpy(at, header, MIN_OF(n, sizeof(header)));
	return n >= needed;
}

static void write4(struct testing_packet *out, size_t n_payload, uint64_t *state)
{
	const struct acl_packet *words = &out->words;
	struct wire_ip4 *ip = (void *)out->bytes;
	const size_t header = sizeof(*ip) + (pick(state, 8) ? 0 : 4 * (1 + pick(state, 10)));
	const uint16_t units = words->fragment == WIRE_FRAGMENT_LATER ? 1 + pick(state, 8000) : 0;
	const bool is_first = words->fragment == WIRE_FRAGMENT_FIRST;
	const bool has_more = is_first || (units && pick(state, 2));

	*ip = (struct wire_ip4){
		.version_ihl = 0x40 | header / 4,
		.dscp_ecn = words->dscp << 2 | pick(state, 4),
		.total_length_be = htobe16(header + n_payload),
		.fragment_be = htobe16(units | (has_more ? WIRE_IP4_MORE_FRAGMENTS : 0)),
		.ttl = 64,
		.protocol = words->proto,
	};
	memcpy(ip->src, words->src.bytes, 4);
	memcpy(ip->dst, words->dst.bytes, 4);
	out->n = header + n_payload;
	out->is_parsable = units ? words->proto != WIRE_PROTO_TCP || units > 1
	                         : write_transport(words, out->bytes + header, n_payload);
}

// Appends an extension header, whose number goes to *next.
static uint8_t *append(struct testing_packet *out, uint8_t *next, uint8_t proto, size_t bytes)
{
	uint8_t *header = out->bytes + out->n;

	*next = proto;
	memset(header, 0, bytes);
	header[1] = proto == WIRE_PROTO_AH ? bytes / 4 - 2 : bytes / 8 - 1;
	out->n += bytes;
	return header;
}

static void write6(struct testing_packet *out, size_t n_payload, uint64_t *state)
{
	static const uint8_t kinds[] = {0, 43, 51, 60, 135, 139, 140};
	const struct acl_packet *words = &out->words;
	const bool is_fragment = words->fragment != WIRE_FRAGMENT_NONE;
	struct wire_ip6 *ip = (void *)out->bytes;
	uint8_t *next = &ip->next_header;
	unsigned n_headers = pick(state, 3) ? 0 : pick(state, 10), units = 0;

	*ip = (struct wire_ip6){.hop_limit = 64,
		.version_class_flow_be =
			htobe32(6u << 28 | words->dscp << 22 | (testing_random(state) & 0x3fffff))};
	memcpy(ip->src, words->src.bytes, 16);
	memcpy(ip->dst, words->dst.bytes, 16);
	out->n = sizeof(*ip);
	for (unsigned i = 0; i < n_headers; i++)
		next = append(out, next, kinds[pick(state, ARRAY_LEN(kinds))], 8);
	if (is_fragment) {
		next = append(out, next, WIRE_PROTO_FRAGMENT, 8);
		units = words->fragment == WIRE_FRAGMENT_LATER ? 1 + pick(state, 8000) : 0;
		next[1] = 0;
		next[2] = units >> 5;
		next[3] = units << 3 | (!units || pick(state, 2));
	}
	*next = words->proto;
	out->is_parsable = n_headers + is_fragment <= WIRE_TRANSPORT_HEADERS;
	if (units)
		out->is_parsable &= words->proto != WIRE_PROTO_TCP || units > 1;
	else
		out->is_parsable &= write_transport(words, out->bytes + out->n, n_payload);
	out->n += n_payload;
	ip->payload_length_be = htobe16(out->n - sizeof(*ip));
}

void testing_packet(struct testing_packet *out, uint64_t *state)
{
	const uint8_t family = 4 + 2 * pick(state, 2);
	const size_t n_payload = pick(state, 8) ? DESCRIBED_BYTES : pick(state, DESCRIBED_BYTES);
	struct acl_packet *words = &out->words;

	*words = (struct acl_packet){
		.src = random_addr(family, state),
		.dst = random_addr(family, state),
		.proto = protos[pick(state, ARRAY_LEN(protos))],
		.dscp = pick(state, 64),
		.is_local = pick(state, 8) == 0,
		.fragment = pick(state, 2) ? WIRE_FRAGMENT_NONE : pick(state, 3),
	};
	memset(out->bytes, 0xee, sizeof(out->bytes));
	const bool is_icmp = words->proto == (family == 4 ? WIRE_PROTO_ICMP4 : WIRE_PROTO_ICMP6);
	const bool has_ports = words->proto == WIRE_PROTO_TCP || words->proto == WIRE_PROTO_UDP ||
	                       words->proto == WIRE_PROTO_SCTP;

	if ((is_icmp || has_ports) && words->fragment != WIRE_FRAGMENT_LATER) {
		words->src_port = pick(state, is_icmp ? 16 : 32);
		words->dst_port = pick(state, is_icmp ? 4 : 32);
		words->tcp_flags = words->proto == WIRE_PROTO_TCP ? testing_random(state) : 0;
	}
	if (family == 4)
		write4(out, n_payload, state);
	else
		write6(out, n_payload, state);
}

uint32_t testing_find(const struct acl_source *source, const struct acl_packet *packet)
{
	for (size_t i = 0; i < source->n; i++)
		if (!acl_rule_mismatch(&source->rule[i], packet))
			return i + 1;
	return 0;
}
