// Polices the packets of rules that have a rate. See acl_judge.h. Worker.
#include "datapath/acl_judge.h"
#include "wire/headers.h"

#include <rte_cycles.h>

static uint16_t ip_bytes(const struct burst *b, uint16_t i)
{
	const uint8_t *packet = b->frame[i] + WIRE_ETHER_BYTES;
	const struct wire_ip4 *ip4 = (const void *)packet;
	const struct wire_ip6 *ip6 = (const void *)packet;

	return b->is_ip6 ? WIRE_IP6_BYTES + be16toh(ip6->payload_length_be)
	                 : be16toh(ip4->total_length_be);
}

// What is counted for a packet: rules count as their counters do, and tc the bytes that Linux has
// at this place. A packet that comes in has no Ethernet header any more, and one that goes out no
// padding.
static uint16_t counted_bytes(const struct acl_basis *basis, const struct burst *b, uint16_t i)
{
	if (!basis->is_tc)
		return b->length[i];
	if (basis->direction == ACL_IN)
		return b->length[i] - WIRE_ETHER_BYTES;
	return MIN_OF(b->length[i], WIRE_ETHER_BYTES + ip_bytes(b, i));
}

// Packets of a burst that share a bucket.
struct sharers {
	unsigned n;
	uint8_t place[BURST_MAX];
	uint32_t cost[BURST_MAX];
};

// A traced packet asks a copy.
static uint64_t take(const struct acl_basis *basis, struct police *police, uint64_t now,
	const struct sharers *sharers)
{
	struct police copy;
	uint64_t passed, red = 0;

	if (unlikely(basis->tracer != NULL))
		police_copy(police, &copy);
	passed = police_take(basis->tracer ? &copy : police, now, sharers->cost, sharers->n);

	for (unsigned k = 0; k < sharers->n; k++)
		red |= (uint64_t) !(passed >> k & 1) << sharers->place[k];
	return red;
}

// The packets whose rules have a policer, and of these, in *too_long, those that are longer than it
// lets pass.
static uint64_t find_policed(const struct acl_list *list, const struct burst *b,
	const uint8_t index[], const uint32_t rule[], unsigned n, uint64_t *too_long)
{
	uint64_t found = 0;

	*too_long = 0;
	for (unsigned k = 0; k < n; k++) {
		const struct acl_policer *policer = &list->policer[rule[k]];
		const uint32_t most = policer->measure.most;
		const bool is_long = most && b->length[index[k]] > most;

		found |= (uint64_t)(policer->police != NULL) << k;
		*too_long |= (uint64_t)(policer->police && is_long) << k;
	}
	return found;
}

__attribute__((noinline)) uint64_t acl_police(const struct acl_basis *basis,
	const struct acl_list *list, const struct burst *b, const uint8_t index[],
	const uint32_t rule[], unsigned n)
{
	uint64_t red, left = find_policed(list, b, index, rule, n, &red);
	const uint64_t now = left ? rte_rdtsc() : 0;

	left &= ~red;
	while (left) {
		struct police *police = list->policer[rule[__builtin_ctzll(left)]].police;
		struct sharers sharers;

		sharers.n = 0;
		for (uint64_t rest = left; rest; rest &= rest - 1) {
			const uint8_t k = __builtin_ctzll(rest);
			const struct acl_policer *policer = &list->policer[rule[k]];

			if (policer->police != police)
				continue;
			sharers.place[sharers.n] = k;
			sharers.cost[sharers.n++] =
				police_cost(&policer->measure, counted_bytes(basis, b, index[k]));
			left &= ~(1ull << k);
		}
		red |= take(basis, police, now, &sharers);
	}
	for (uint64_t rest = red; rest; rest &= rest - 1) {
		const unsigned k = __builtin_ctzll(rest);

		acl_count_packet(basis->count, list->policer[rule[k]].red, b->length[index[k]]);
	}
	return red;
}
