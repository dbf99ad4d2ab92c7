// Received MPLS labels, and next hops that push labels.
#include "base/bits.h"
#include "fib/fib.h"
#include "fib/fib_fast.h"
#include "rcu/rcu.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>

enum { MTU = 1500 };

static const struct wire_mac own = {{2, 0, 0, 0, 0, 1}};

static struct fib *open_fib(void)
{
	struct fib *fib = fib_create(NULL);
	const struct iface port = {.mac = own, .mtu = MTU};

	assert_non_null(fib);
	assert_int_equal(fib_iface_set(fib, 0, &port), 0);
	return fib;
}

static struct fib_hop pushing(unsigned n, const uint32_t labels[])
{
	struct fib_hop hop = {.kind = FIB_VIA,
		.via = {.family = 4, .bytes = {10, 0, 0, 2}},
		.n_labels = n};

	memcpy(hop.label, labels, n * sizeof(*labels));
	return hop;
}

static void set_neighbour(struct fib *fib, uint8_t last)
{
	const struct wire_addr addr = {.family = 4, .bytes = {10, 0, 0, 2}};

	assert_int_equal(fib_neighbour_set(fib, 0, &addr, &(struct wire_mac){{2, 0, 0, 0, 0, last}},
				 NULL),
		0);
}

static uint32_t add_route(struct fib *fib, const char *prefix, const struct fib_hop *hop)
{
	struct fib_change change = {.op = FIB_REPLACE, .route.hop = *hop};

	assert_int_equal(wire_prefix_parse(prefix, &change.route.prefix), 0);
	assert_int_equal(fib_change(fib, &change, 1, NULL, NULL), 0);
	return fib_lookup(fib, 0, &change.route.prefix.addr);
}

static struct fib_hop_info info_of(const struct fib *fib, uint32_t id)
{
	struct fib_hop_info info;

	assert_true(fib_hop_info(fib, id, &info));
	return info;
}

// RFC 3032, 2.1: label 0x12345 and bottom of stack, TTL 7.
static void a_hop_with_labels_has_them_in_its_header(void **state)
{
	struct fib *fib = open_fib();
	struct rcu *rcu = rcu_create(1, NULL);
	struct fib_live live = {.rcu = rcu};
	struct fib_hop hop = pushing(3, (uint32_t[]){16, 0xfffff, 0x12345});
	static const uint8_t wire[] = {2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0, 1, 0x88, 0x47, 0x00, 0x01,
		0x00, 0x07, 0xff, 0xff, 0xf0, 0x07, 0x12, 0x34, 0x51, 0x07};

	hop.label_ttl = 7;
	set_neighbour(fib, 9);
	const uint32_t id = add_route(fib, "10.1.0.0/16", &hop);
	fib_live_swap(&live, fib);
	const struct fib_template *template = fib_template_load(fib_live_view(&live), id);
	assert_int_equal(template->length, sizeof(wire));
	assert_memory_equal(template->bytes, wire, sizeof(wire));
	assert_int_equal(template->replaced, 14);
	assert_int_equal(template->n_labels, 3);
	assert_int_equal(template->label_ttl, 7);
	assert_int_equal(info_of(fib, id).mtu, MTU - 12);
	assert_int_equal(fib_live_view(&live)->hops[id].frame_max, MTU - 12 + 14);
	fib_live_swap(&live, NULL);
	fib_destroy(fib);
	rcu_destroy(rcu);
}

static void hops_with_labels_are_resolved_with_the_one_without(void **state)
{
	struct fib *fib = open_fib();
	const struct fib_hop one = pushing(1, (uint32_t[]){100}),
			     two = pushing(1, (uint32_t[]){200});
	const uint32_t first = add_route(fib, "10.1.0.0/16", &one);

	assert_int_equal(info_of(fib, first).verdict, VERDICT_NEIGHBOUR_UNRESOLVED);
	set_neighbour(fib, 9);
	const uint32_t second = add_route(fib, "10.2.0.0/16", &two);
	assert_int_not_equal(first, second);
	for (uint8_t last = 9; last < 12; last++) {
		set_neighbour(fib, last);
		assert_int_equal(info_of(fib, first).verdict, VERDICT_FORWARD);
		assert_int_equal(info_of(fib, first).mac.bytes[5], last);
		assert_int_equal(info_of(fib, second).verdict, VERDICT_FORWARD);
		assert_int_equal(info_of(fib, second).mac.bytes[5], last);
	}
	assert_int_equal(fib_neighbour_delete(fib, 0, &one.via), 0);
	assert_int_equal(info_of(fib, first).verdict, VERDICT_NEIGHBOUR_UNRESOLVED);
	assert_int_equal(info_of(fib, second).verdict, VERDICT_NEIGHBOUR_UNRESOLVED);
	fib_destroy(fib);
}

// All that routes with labels needed is given back, whatever the order.
static void hops_go_with_the_last_route(void **state)
{
	struct fib *fib = open_fib();
	const struct fib_hop hops[] = {pushing(1, (uint32_t[]){100}),
		pushing(2, (uint32_t[]){100, 101}), pushing(1, (uint32_t[]){300})};
	struct fib_usage before, after;
	struct fib_change change[3];

	fib_usage(fib, &before);
	for (unsigned turn = 0; turn < 6; turn++) {
		for (unsigned i = 0; i < 3; i++) {
			change[i] = (struct fib_change){.op = FIB_ADD,
				.route = {.prefix = {{.family = 4, .bytes = {10, i + 1}}, 16},
					.hop = hops[i]}};
			assert_int_equal(fib_change(fib, &change[i], 1, NULL, NULL), 0);
		}
		fib_usage(fib, &after);
		assert_int_equal(after.n_hops, before.n_hops + 4);
		for (unsigned i = 0; i < 3; i++) {
			change[(i + turn) % 3].op = FIB_DELETE;
			assert_int_equal(fib_change(fib, &change[(i + turn) % 3], 1, NULL, NULL),
				0);
		}
		fib_usage(fib, &after);
		assert_int_equal(after.n_hops, before.n_hops);
	}
	fib_destroy(fib);
}

static void labels_are_set_replaced_listed_and_deleted(void **state)
{
	struct fib *fib = open_fib();
	struct fib_label label = {.label = 16,
				 .op = FIB_LABEL_LOOKUP,
				 .is_pipe = true,
				 .ends_stack = true},
			 got;
	struct fib_usage before, after;

	fib_usage(fib, &before);
	assert_false(fib_label_next(fib, 0, &got));
	assert_int_equal(fib_label_delete(fib, 16), -ENOENT);
	assert_int_equal(fib_label_set(fib, &label, NULL), 0);
	label = (struct fib_label){.label = FIB_MAX_LABEL,
		.op = FIB_LABEL_FORWARD,
		.hop = pushing(2, (uint32_t[]){17, 18})};
	assert_int_equal(fib_label_set(fib, &label, NULL), 0);
	assert_true(fib_label_next(fib, 0, &got));
	assert_int_equal(got.label, 16);
	assert_true(got.op == FIB_LABEL_LOOKUP && got.is_pipe && !got.loops && got.vrf == 0);
	assert_true(got.ends_stack);
	assert_true(fib_label_next(fib, 17, &got));
	assert_int_equal(got.label, FIB_MAX_LABEL);
	assert_memory_equal(&got.hop, &label.hop, sizeof(label.hop));
	fib_usage(fib, &after);
	assert_int_equal(after.n_labels, 2);
	assert_true(after.worker_bytes_labels <= 4 << 20);
	label.op = FIB_LABEL_LINUX;
	assert_int_equal(fib_label_set(fib, &label, NULL), 0);
	assert_int_equal(fib_label_delete(fib, FIB_MAX_LABEL), 0);
	assert_int_equal(fib_label_delete(fib, FIB_MAX_LABEL), -ENOENT);
	assert_int_equal(fib_label_delete(fib, 16), 0);
	fib_usage(fib, &after);
	assert_int_equal(after.n_labels, 0);
	assert_int_equal(after.n_hops, before.n_hops);
	fib_destroy(fib);
}

static void bad_labels_change_nothing(void **state)
{
	struct fib *fib = open_fib();
	const struct fib_label bad[] = {
		{.label = FIB_MAX_LABEL + 1, .op = FIB_LABEL_LINUX},
		{.label = 16, .op = FIB_LABEL_NONE},
		{.label = 16, .op = 4},
		{.label = 16, .op = FIB_LABEL_LOOKUP, .vrf = 7},
		{.label = 16, .op = FIB_LABEL_FORWARD, .hop = {.kind = N_FIB_KINDS}},
		{.label = 16, .op = FIB_LABEL_FORWARD, .hop = {.kind = FIB_VIA}},
		{.label = 16,
			.op = FIB_LABEL_FORWARD,
			.hop = {.kind = FIB_PEER, .n_labels = FIB_MAX_PUSHED + 1}},
	};
	struct fib_label got;

	for (unsigned i = 0; i < ARRAY_LEN(bad); i++)
		assert_int_equal(fib_label_set(fib, &bad[i], NULL), -EINVAL);
	assert_false(fib_label_next(fib, 0, &got));
	fib_destroy(fib);
}

// The most that there can be: the table that workers read has 4 MiB.
static void all_labels_take_four_mib(void **state)
{
	struct fib *fib = open_fib();
	struct fib_label label = {.op = FIB_LABEL_FORWARD, .hop = pushing(1, (uint32_t[]){100})};
	struct fib_usage usage;

	for (label.label = 0; label.label <= FIB_MAX_LABEL; label.label++)
		assert_int_equal(fib_label_set(fib, &label, NULL), 0);
	fib_usage(fib, &usage);
	assert_int_equal(usage.n_labels, 1 << 20);
	assert_int_equal(usage.worker_bytes_labels, 4 << 20);
	fib_destroy(fib);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_hop_with_labels_has_them_in_its_header),
		cmocka_unit_test(hops_with_labels_are_resolved_with_the_one_without),
		cmocka_unit_test(hops_go_with_the_last_route),
		cmocka_unit_test(labels_are_set_replaced_listed_and_deleted),
		cmocka_unit_test(bad_labels_change_nothing),
		cmocka_unit_test(all_labels_take_four_mib),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
