// burst_keep against a plain model: each array separately, packet by packet.
#include "datapath/dice.h"
#include "datapath/steps.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { ROUNDS = 2000 };

static void fill(void *array, size_t bytes)
{
	for (size_t i = 0; i < bytes; i++)
		((uint8_t *)array)[i] = dice(256);
}

// Bursts without flows are more frequent.
static void deal_flows(struct burst *b)
{
	fill(&b->flow_mask, sizeof(b->flow_mask));
	fill(&b->flow_hop_mask, sizeof(b->flow_hop_mask));
	fill(&b->mark_mask, sizeof(b->mark_mask));
	fill(&b->mirror_mask, sizeof(b->mirror_mask));
	if (dice(2))
		b->flow_mask = b->flow_hop_mask = 0;
	if (dice(2))
		b->mark_mask = 0;
	if (dice(2))
		b->mirror_mask = 0;
}

static void deal(struct burst *b)
{
	fill(b->mbuf, sizeof(b->mbuf));
	fill(b->frame, sizeof(b->frame));
	fill(b->dst6, sizeof(b->dst6));
	fill(b->length, sizeof(b->length));
	fill(b->ttl, sizeof(b->ttl));
	fill(b->hop, sizeof(b->hop));
	fill(b->port, sizeof(b->port));
	fill(b->iif, sizeof(b->iif));
	fill(b->vrf, sizeof(b->vrf));
	fill(b->flow, sizeof(b->flow));
	fill(b->action, sizeof(b->action));
	fill(b->mirror, sizeof(b->mirror));
	fill(b->dscp, sizeof(b->dscp));
	fill(&b->own_source_mask, sizeof(b->own_source_mask));
	fill(&b->linux_mask, sizeof(b->linux_mask));
	fill(&b->redirect_mask, sizeof(b->redirect_mask));
	fill(&b->discovery_mask, sizeof(b->discovery_mask));
	fill(&b->strict_mask, sizeof(b->strict_mask));
	fill(&b->loose_mask, sizeof(b->loose_mask));
	fill(&b->fragment_mask, sizeof(b->fragment_mask));
	fill(&b->template_mask, sizeof(b->template_mask));
	deal_flows(b);
	b->n = dice(BURST_MAX + 1);
	b->is_ip6 = dice(2);
	b->has_one_port = dice(2);
	b->has_one_iif = dice(2);
	b->has_one_vrf = dice(2);
}

static uint64_t any_mask(void)
{
	uint64_t mask = (uint64_t)dice(UINT32_MAX) << 32 | dice(UINT32_MAX);

	switch (dice(5)) {
	case 0:
		return UINT64_MAX;
	case 1:
		return 0;
	case 2:
		return mask | (uint64_t)dice(UINT32_MAX) << 32 | dice(UINT32_MAX);
	}
	return mask;
}

static void expect_flow(const struct burst *b, unsigned at, const struct burst *from, unsigned i)
{
	assert_int_equal(b->flow_mask >> at & 1, from->flow_mask >> i & 1);
	assert_int_equal(b->flow_hop_mask >> at & 1, from->flow_hop_mask >> i & 1);
	assert_int_equal(b->mark_mask >> at & 1, from->mark_mask >> i & 1);
	assert_int_equal(b->mirror_mask >> at & 1, from->mirror_mask >> i & 1);
	if (from->flow_mask >> i & 1) {
		assert_int_equal(b->flow[at], from->flow[i]);
		assert_int_equal(b->action[at], from->action[i]);
	}
	if (from->mark_mask >> i & 1)
		assert_int_equal(b->dscp[at], from->dscp[i]);
	if (from->mirror_mask >> i & 1)
		assert_int_equal(b->mirror[at], from->mirror[i]);
}

static void expect_packet(const struct burst *b, unsigned at, const struct burst *from, unsigned i)
{
	assert_ptr_equal(b->mbuf[at], from->mbuf[i]);
	assert_ptr_equal(b->frame[at], from->frame[i]);
	if (b->is_ip6)
		assert_memory_equal(&b->dst6[at], &from->dst6[i], sizeof(b->dst6[at]));
	else
		assert_int_equal(b->dst4[at], from->dst4[i]);
	assert_int_equal(b->length[at], from->length[i]);
	assert_int_equal(b->ttl[at], from->ttl[i]);
	assert_int_equal(b->hop[at], from->hop[i]);
	assert_int_equal(burst_port(b, at), burst_port(from, i));
	assert_int_equal(burst_iif(b, at), burst_iif(from, i));
	assert_int_equal(burst_vrf(b, at), burst_vrf(from, i));
	assert_int_equal(b->own_source_mask >> at & 1, from->own_source_mask >> i & 1);
	assert_int_equal(b->linux_mask >> at & 1, from->linux_mask >> i & 1);
	assert_int_equal(b->redirect_mask >> at & 1, from->redirect_mask >> i & 1);
	assert_int_equal(b->discovery_mask >> at & 1, from->discovery_mask >> i & 1);
	assert_int_equal(b->strict_mask >> at & 1, from->strict_mask >> i & 1);
	assert_int_equal(b->loose_mask >> at & 1, from->loose_mask >> i & 1);
	assert_int_equal(b->fragment_mask >> at & 1, from->fragment_mask >> i & 1);
	assert_int_equal(b->template_mask >> at & 1, from->template_mask >> i & 1);
	expect_flow(b, at, from, i);
}

static void packets_keep_what_belongs_to_them(void **state)
{
	static struct burst b, before;

	for (unsigned round = 0; round < ROUNDS; round++) {
		uint64_t mask = any_mask();
		unsigned n = 0;

		deal(&b);
		before = b;
		burst_keep(&b, mask);
		for (unsigned i = 0; i < before.n; i++)
			if (mask >> i & 1)
				expect_packet(&b, n++, &before, i);
		assert_int_equal(b.n, n);
		assert_int_equal(b.has_one_port, before.has_one_port);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(packets_keep_what_belongs_to_them),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
