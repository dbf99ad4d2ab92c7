// Random changes against a plain map, with hashes that collide and tables that are full; keys; what
// is refused. Tests only.
#include "flow/flow.h"

#include "flow/hash.h"
#include "flow/table.h"
#include "flow/testing.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include <cmocka.h>

enum { MAX_KEYS = 4000, BURST = FLOW_BURST };

// Actions that differ in all bits.
enum { N_ACTIONS = 512, ACTION_STEP = 8191 };
static uint32_t action_number(unsigned i)
{
	return 1 + i * ACTION_STEP;
}
_Static_assert(1 + (N_ACTIONS - 1) * ACTION_STEP < FLOW_ACTIONS, "");

// The plain map: key number -> what it should be.
struct wanted {
	bool exists;
	uint32_t action, flow;
	uint64_t packets, bytes;
};

struct model {
	struct flow_table *table;
	unsigned n_keys[2], n[2]; // by family
	struct wanted key[2][MAX_KEYS];
	uint64_t n_ended, packets_ended, bytes_ended, packets, bytes;
	uint64_t n_refused;
};

static const uint8_t FAMILY[2] = {4, 6};

static void note_ended(void *ctx, const struct flow_info *info)
{
	struct model *model = ctx;

	assert_int_equal(info->reason, FLOW_DELETED);
	model->n_ended++;
	model->packets_ended += info->packets;
	model->bytes_ended += info->bytes;
}

// Only `groups` pairs of lines; other keys have the same first line, the same tag, or all equal.
static uint64_t colliding_hash(uint32_t seed)
{
	enum { GROUPS = 23 };
	const uint32_t pick = seed * 0x9e3779b1u;

	return (uint64_t)(pick % GROUPS * (UINT32_MAX / GROUPS)) << 32 |
	       (pick / GROUPS % GROUPS * (UINT32_MAX / GROUPS));
}

static void colliding4(const struct flow_view *view, const struct flow_key4 key[], uint64_t hash[],
	unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		hash[i] = colliding_hash(key[i].dst_be);
}

static void colliding6(const struct flow_view *view, const struct flow_key6 key[], uint64_t hash[],
	unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		hash[i] = colliding_hash(load32(key[i].dst + 12));
}

// Looks up `n` keys from number `from` on with each variant, and counts a packet for those found.
static void check_burst(struct model *model, unsigned f, unsigned from, unsigned n)
{
	struct flow_view *view = &model->table->view;
	struct flow_lookup lookup = {.n = n, .count = view->count[0]};
	struct flow_key4 four[BURST];
	struct flow_key6 six[BURST];

	for (unsigned i = 0; i < n; i++) {
		struct flow_key key = testing_key(FAMILY[f], (from + i) % MAX_KEYS);
		four[i] = key.four;
		six[i] = key.six;
	}
	for (unsigned variant = 0; variant < 2; variant++) {
		testing_use_variant(view, variant);
		memset(lookup.flow, 0xff, sizeof(lookup.flow));
		if (f)
			flow_lookup6(view, six, &lookup);
		else
			flow_lookup4(view, four, &lookup);
		for (unsigned i = 0; i < n; i++) {
			struct wanted *wanted = &model->key[f][(from + i) % MAX_KEYS];
			if (!wanted->exists) {
				assert_int_equal(lookup.flow[i], FLOW_NONE);
				continue;
			}
			assert_int_equal(lookup.flow[i], wanted->flow);
			assert_int_equal(lookup.action[i], wanted->action);
			const uint32_t bytes = testing_below(9000);
			flow_count_packet(view->count[0], wanted->flow, bytes, 1);
			wanted->packets++;
			wanted->bytes += bytes;
			model->packets++;
			model->bytes += bytes;
		}
	}
}

static void check_found(struct model *model, unsigned f, unsigned number)
{
	struct flow_key key = testing_key(FAMILY[f], number);
	const struct wanted *wanted = &model->key[f][number];
	struct flow_info info;

	assert_int_equal(flow_find(model->table, &key, TESTING_HZ, &info), wanted->exists);
	if (!wanted->exists)
		return;
	assert_int_equal(info.action, wanted->action);
	assert_int_equal(info.number, wanted->flow);
	assert_int_equal(info.packets, wanted->packets);
	assert_int_equal(info.bytes, wanted->bytes);
	assert_int_equal(info.reason, FLOW_ALIVE);
	assert_memory_equal(&info.key, &key, sizeof(key));
}

// What the table must answer.
static int expected(const struct wanted *wanted, enum flow_op op)
{
	if (op == FLOW_ADD && wanted->exists)
		return -EEXIST;
	if (op == FLOW_DELETE && !wanted->exists)
		return -ENOENT;
	return 0;
}

static void change_one(struct model *model, unsigned f, unsigned number, enum flow_op op)
{
	struct wanted *wanted = &model->key[f][number];
	struct flow_change change = {.op = op,
		.key = testing_key(FAMILY[f], number),
		.action = action_number(testing_below(N_ACTIONS))};
	const int result = testing_change(model->table, &change, TESTING_HZ);
	struct flow_info info;

	if (result == -ENOSPC && op != FLOW_DELETE && !wanted->exists) {
		model->n_refused++;
		return;
	}
	assert_int_equal(result, expected(wanted, op));
	if (result)
		return;
	if (op == FLOW_DELETE) {
		model->n[f]--;
		*wanted = (struct wanted){0};
		return;
	}
	model->n[f] += !wanted->exists;
	assert_true(flow_find(model->table, &change.key, TESTING_HZ, &info));
	if (!wanted->exists)
		*wanted = (struct wanted){.exists = true, .flow = info.number};
	assert_int_equal(info.number, wanted->flow);
	wanted->action = change.action;
}

// All flows, each once, by number.
static void check_list(const struct model *model)
{
	struct flow_info info = {.number = 0};
	unsigned n = 0;

	for (; flow_next(model->table, info.number + 1, TESTING_HZ, &info); n++) {
		struct flow_info found;
		assert_true(flow_find(model->table, &info.key, TESTING_HZ, &found));
		assert_memory_equal(&found, &info, sizeof(info));
	}
	assert_int_equal(n, model->n[0] + model->n[1]);
}

static struct model *model_open(struct flow_settings settings)
{
	struct model *model = calloc(1, sizeof(*model));

	assert_non_null(model);
	settings.ended = note_ended;
	settings.ctx = model;
	model->table = testing_table(&settings);
	for (unsigned i = 0; i < N_ACTIONS; i++)
		testing_use_action(model->table, action_number(i));
	return model;
}

static void model_close(struct model *model)
{
	struct flow_usage usage;

	check_list(model);
	flow_usage(model->table, &usage);
	assert_int_equal(usage.four.n, model->n[0]);
	assert_int_equal(usage.six.n, model->n[1]);
	assert_int_equal(usage.four.n_full + usage.six.n_full, model->n_refused);
	for (unsigned f = 0; f < 2; f++)
		for (unsigned i = 0; i < MAX_KEYS; i++) {
			check_found(model, f, i);
			if (model->key[f][i].exists)
				change_one(model, f, i, FLOW_DELETE);
		}
	flow_usage(model->table, &usage);
	assert_int_equal(usage.four.n + usage.six.n, 0);
	assert_int_equal(usage.n_added, model->n_ended);
	assert_int_equal(usage.n_deleted, model->n_ended);
	// Nothing that was counted is lost.
	assert_int_equal(model->packets_ended, model->packets);
	assert_int_equal(model->bytes_ended, model->bytes);
	flow_destroy(model->table);
	free(model);
}

static void churn(struct model *model, unsigned n_changes, unsigned n_keys)
{
	for (unsigned i = 0; i < n_changes; i++) {
		const unsigned f = testing_below(2), number = testing_below(n_keys);

		change_one(model, f, number, testing_below(5) ? testing_below(2) : FLOW_DELETE);
		check_found(model, f, number);
		if (i % 16 == 0)
			check_burst(model, f, testing_below(MAX_KEYS), testing_below(BURST + 1));
		if (i % 4096 == 0)
			check_list(model);
	}
}

static void agrees_with_a_plain_map(void **state)
{
	struct model *model = model_open(testing_settings(1500, 1500, 1));

	churn(model, 30000, 2000);
	model_close(model);
}

static void agrees_with_a_plain_map_when_hashes_collide(void **state)
{
	struct model *model = model_open(testing_settings(1500, 1500, 1));

	model->table->view.hash4 = colliding4;
	model->table->view.hash6 = colliding6;
	churn(model, 8000, 2000);
	assert_in_range(model->n_refused, 1000, 8000);
	assert_in_range(model->table->index[0].n_moves, 20, 1000000);
	assert_in_range(model->table->index[1].n_moves, 1, 1000000);
	model_close(model);
}

static void agrees_with_a_plain_map_in_tables_of_a_few_lines(void **state)
{
	for (unsigned max = 1; max < 40; max++) {
		struct model *model = model_open(testing_settings(max, max, 1));

		churn(model, 300, 2 * max);
		assert_in_range(model->n[0], 0, max);
		model_close(model);
	}
}

// More flows than lines are meant for: until no path leads to a free slot.
static void same4(const struct flow_view *view, const struct flow_key4 key[], uint64_t hash[],
	unsigned n)
{
	memset(hash, 0, n * sizeof(hash[0]));
}

// All keys have the same lines, so that only the comparison of the keys tells them apart.
static void a_key_that_differs_in_one_bit_is_another_one(void **state)
{
	struct flow_settings settings = testing_settings(100, 0, 1);
	struct flow_table *table = testing_table(&settings);
	struct flow_change change = {.op = FLOW_ADD, .key = testing_key(4, 7), .action = 1};
	uint32_t action;

	table->view.hash4 = same4;
	testing_use_action(table, 1);
	assert_int_equal(testing_change(table, &change, TESTING_HZ), 0);
	for (unsigned variant = 0; variant < 2; variant++) {
		testing_use_variant(&table->view, variant);
		assert_int_not_equal(testing_lookup(table, &change.key, &action), FLOW_NONE);
		for (unsigned bit = 0; bit < 8 * sizeof(struct flow_key4); bit++) {
			struct flow_key other = change.key;

			if (bit >= KIND_BITS && bit < 32)
				continue; // belongs to the action
			((uint8_t *)&other.four)[bit / 8] ^= 1 << bit % 8;
			assert_int_equal(testing_lookup(table, &other, &action), FLOW_NONE);
		}
	}
	flow_destroy(table);
}

static void fills_lines_to_more_than_95_percent(void **state)
{
	struct model *model = model_open(testing_settings(3999, 3999, 1));

	model->table->index[0].n_lines = model->table->view.n_lines4 = 1000;
	model->table->index[1].n_lines = model->table->view.n_lines6 = 300;
	for (unsigned i = 0; i < MAX_KEYS; i++) {
		change_one(model, 0, i, FLOW_ADD);
		change_one(model, 1, i, FLOW_ADD);
	}
	assert_in_range(model->n[0], 2850, 3000);
	assert_in_range(model->n[1], 2850, 3000);
	for (unsigned i = 0; i < MAX_KEYS; i += BURST) {
		check_burst(model, 0, i, BURST);
		check_burst(model, 1, i, BURST);
	}
	churn(model, 4000, MAX_KEYS);
	model_close(model);
}

static void refuses_flows_beyond_its_size_and_keeps_the_others(void **state)
{
	struct model *model = model_open(testing_settings(100, 50, 1));

	for (unsigned i = 0; i < 200; i++) {
		change_one(model, 0, i, FLOW_ADD);
		change_one(model, 1, i, FLOW_REPLACE);
	}
	assert_int_equal(model->n[0], 100);
	assert_int_equal(model->n[1], 50);
	assert_int_equal(model->n_refused, 100 + 150);
	for (unsigned i = 0; i < 100; i++)
		check_found(model, 0, i);
	change_one(model, 0, 7, FLOW_DELETE);
	change_one(model, 0, 150, FLOW_ADD);
	assert_true(model->key[0][150].exists);
	model_close(model);
}

static void applies_a_batch_in_order(void **state)
{
	const struct flow_settings settings = testing_settings(200, 200, 1);
	struct flow_table *table = testing_table(&settings);
	struct flow_change change[200];
	int result[200];
	struct flow_info info;

	testing_use_actions(table, 199);
	for (unsigned i = 0; i < 200; i++)
		change[i] = (struct flow_change){.op = FLOW_ADD,
			.key = testing_key(i % 3 ? 4 : 6, i % 150),
			.action = 1 + i % 199};
	change[120].key.family = 5;
	change[121].action = FLOW_ACTIONS;
	change[122].life = FLOW_LIVES;
	change[124].key.four.kind |= 1u << 31;
	assert_int_equal(flow_change(table, change, 200, TESTING_HZ, result), 146);
	for (unsigned i = 0; i < 200; i++)
		assert_int_equal(result[i], (i >= 120 && i < 123) || i == 124 ? -EINVAL
					    : i >= 150                        ? -EEXIST
									      : 0);
	assert_true(flow_find(table, &change[77].key, TESTING_HZ, &info));
	assert_int_equal(info.action, 78);
	flow_destroy(table);
}

static void all_hashes_are_equal_and_keyed(void **state)
{
	struct hashes hashes[3];
	const unsigned n = hash_variants(hashes);
	struct flow_view view = {0}, other = {0};
	uint64_t hash[3][BURST], differing[BURST];

	assert_int_equal(hash_draw_secret(&view.secret), 0);
	assert_int_equal(hash_draw_secret(&other.secret), 0);
	for (unsigned n_keys = 0; n_keys <= BURST; n_keys++) {
		struct flow_key4 four[BURST] = {0};
		struct flow_key6 six[BURST] = {0};
		for (unsigned i = 0; i < n_keys; i++) {
			four[i] = testing_key(4, testing_random()).four;
			six[i] = testing_key(6, testing_random()).six;
		}
		for (unsigned i = 0; i < n; i++) {
			hashes[i].four(&view, four, hash[i], n_keys);
			assert_memory_equal(hash[i], hash[0], n_keys * sizeof(uint64_t));
		}
		hash4_plain(&other, four, differing, n_keys);
		for (unsigned i = 0; i < n_keys; i++)
			assert_int_not_equal(differing[i], hash[0][i]);
		for (unsigned i = 0; i < n; i++) {
			hashes[i].six(&view, six, hash[i], n_keys);
			assert_memory_equal(hash[i], hash[0], n_keys * sizeof(uint64_t));
		}
	}
}

static void the_round_is_that_of_aes(void **state)
{
	// Known answer: AESENC of the Intel white paper "AES New Instructions Set".
	static const uint8_t in[16] = {0x5d, 0x47, 0x53, 0x5d, 0x72, 0x6f, 0x74, 0x63, 0x65, 0x56,
		0x74, 0x73, 0x65, 0x54, 0x5b, 0x7b},
			     key[16] = {0x5d, 0x6e, 0x6f, 0x72, 0x65, 0x75, 0x47, 0x5b, 0x29, 0x79,
				     0x61, 0x68, 0x53, 0x28, 0x69, 0x48},
			     wanted[16] = {0x95, 0xe5, 0xd7, 0xde, 0x58, 0x4b, 0x10, 0x8b, 0xc5,
				     0xa3, 0xdb, 0x9f, 0x2f, 0x1c, 0x31, 0xa8};
	uint8_t block[16];

	memcpy(block, in, sizeof(block));
	hash_round(block, key);
	assert_memory_equal(block, wanted, sizeof(block));
}

struct refusal {
	struct flow_tuple tuple;
	const char *text;
};

static struct flow_tuple tuple_of(const char *src, const char *dst, uint8_t proto)
{
	struct flow_tuple tuple = {.proto = proto};

	assert_int_equal(wire_addr_parse(src, &tuple.src), 0);
	assert_int_equal(wire_addr_parse(dst, &tuple.dst), 0);
	return tuple;
}

static void refuses_keys_that_no_packet_has(void **state)
{
	struct refusal row[] = {
		{tuple_of("1.2.3.4", "2001:db8::1", 6),
			"a flow has a source and a destination of the same family"},
		{tuple_of("2001:db8::1", "::ffff:1.2.3.4", 6),
			"IPv4-mapped IPv6 address in a flow: use the IPv4 address"},
		{tuple_of("1.2.3.4", "1.2.3.5", 17), "VRF 4096 of a flow: expected 0 to 4095"},
		{tuple_of("1.2.3.4", "1.2.3.5", 1),
			"an ICMP flow has an identifier (as its source port), but no destination "
			"port"},
		{tuple_of("1.2.3.4", "1.2.3.5", 47), "protocol 47 has no ports"},
		{tuple_of("::1", "::2", 1), "protocol 1 in a flow of IPv6: expected 58"},
		{tuple_of("1.2.3.4", "1.2.3.5", 58), "protocol 58 in a flow of IPv4: expected 1"},
		{tuple_of("0.0.0.0", "0.0.0.0", 0), "a flow of zeros only is not possible"},
	};
	struct flow_key key;
	struct error error;

	row[2].tuple.vrf = 4096;
	row[3].tuple.dst_port = 8;
	row[4].tuple.src_port = 9;
	for (size_t i = 0; i < ARRAY_LEN(row); i++) {
		assert_int_equal(flow_key_set(&key, &row[i].tuple, &error), -EINVAL);
		assert_string_equal(error.text, row[i].text);
	}
}

static void refuses_extension_headers_of_ipv6(void **state)
{
	static const uint8_t all[] = {0, 43, 44, 51, 60, 135, 139, 140};
	struct flow_key key;
	struct error error;

	for (unsigned proto = 0; proto < 256; proto++) {
		const struct flow_tuple tuple = tuple_of("::1", "::2", proto);
		const bool is_extension = memchr(all, proto, sizeof(all));
		const bool is_refused = flow_key_set(&key, &tuple, &error);

		assert_int_equal(is_refused, is_extension || proto == 1);
		if (is_extension)
			assert_non_null(strstr(error.text, " is an extension header of IPv6: "));
	}
}

static void keys_give_back_what_they_were_made_of(void **state)
{
	struct flow_tuple tuple[] = {tuple_of("1.2.3.4", "5.6.7.8", 6),
		tuple_of("2001:db8::1", "2001:db8::2", 17), tuple_of("1.2.3.4", "5.6.7.8", 1),
		tuple_of("fe80::1", "fe80::2", 58), tuple_of("1.1.1.1", "1.1.1.2", 47)};
	struct flow_tuple back;
	struct flow_key key;

	tuple[0].vrf = 0xabc;
	tuple[0].src_port = 1234;
	tuple[1].dst_port = 80;
	tuple[1].vrf = 4095;
	tuple[2].src_port = tuple[3].src_port = 77;
	for (size_t i = 0; i < ARRAY_LEN(tuple); i++) {
		assert_int_equal(flow_key_set(&key, &tuple[i], NULL), 0);
		flow_key_tuple(&key, &back);
		assert_memory_equal(&back, &tuple[i], sizeof(back));
	}
}

static void refuses_tables_that_are_too_large(void **state)
{
	struct flow_settings settings = testing_settings(FLOW_MAX, 1, 1);
	struct error error;

	assert_null(flow_create(&settings, 0, &error));
	assert_string_equal(error.text, "table for 67108864 flows: expected 1 to 67108863");
	settings = testing_settings(FLOW_MAX, 0, 128);
	assert_null(flow_create(&settings, 0, &error));
	assert_non_null(strstr(error.text, "a table for 67108863 flows takes 1335"));
	assert_non_null(strstr(error.text, " of memory are available; make it smaller"));
	settings = testing_settings(10, 0, 0);
	assert_null(flow_create(&settings, 0, &error));
	assert_string_equal(error.text, "flow table for 0 workers: expected 1 to 128");
}

static void an_ipv4_flow_takes_less_than_60_bytes(void **state)
{
	const uint32_t sizes[] = {1 << 20, 33554432, FLOW_MAX};

	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		const struct flow_settings settings = testing_settings(sizes[i], 0, 1);
		assert_true(flow_bytes(&settings) < 60ull * sizes[i]);
	}
}

static void no_lookup_takes_a_page_fault(void **state)
{
	const struct flow_settings settings = testing_settings(200000, 200000, 1);
	struct flow_table *table = testing_table(&settings);

	for (unsigned f = 0; f < 2; f++) {
		const struct index *index = &table->index[f];
		const size_t n_bytes = index->n_lines * sizeof(union line);
		unsigned char resident[2048] = {0};
		assert_in_range(n_bytes, 1 << 20, (sizeof(resident) - 1) * 4096);
		assert_int_equal(mincore(index->lines, n_bytes, resident), 0);
		for (size_t page = 0; page < n_bytes / 4096; page++)
			assert_int_equal(resident[page] & 1, 1);
	}
	flow_destroy(table);
}

static void tables_of_one_family_find_nothing_of_the_other(void **state)
{
	const struct flow_settings settings = testing_settings(10, 0, 1);
	struct flow_table *table = testing_table(&settings);
	struct flow_change change = {.op = FLOW_ADD, .key = testing_key(6, 1), .action = 1};
	struct flow_info info;
	uint32_t action;

	testing_use_actions(table, 1);
	assert_int_equal(testing_change(table, &change, 0), -ENOSPC);
	assert_int_equal(testing_lookup(table, &change.key, &action), FLOW_NONE);
	assert_false(flow_find(table, &change.key, 0, &info));
	change.op = FLOW_DELETE;
	assert_int_equal(testing_change(table, &change, 0), -ENOENT);
	flow_destroy(table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(agrees_with_a_plain_map),
		cmocka_unit_test(a_key_that_differs_in_one_bit_is_another_one),
		cmocka_unit_test(agrees_with_a_plain_map_when_hashes_collide),
		cmocka_unit_test(agrees_with_a_plain_map_in_tables_of_a_few_lines),
		cmocka_unit_test(fills_lines_to_more_than_95_percent),
		cmocka_unit_test(refuses_flows_beyond_its_size_and_keeps_the_others),
		cmocka_unit_test(applies_a_batch_in_order),
		cmocka_unit_test(all_hashes_are_equal_and_keyed),
		cmocka_unit_test(the_round_is_that_of_aes),
		cmocka_unit_test(refuses_keys_that_no_packet_has),
		cmocka_unit_test(refuses_extension_headers_of_ipv6),
		cmocka_unit_test(keys_give_back_what_they_were_made_of),
		cmocka_unit_test(refuses_tables_that_are_too_large),
		cmocka_unit_test(an_ipv4_flow_takes_less_than_60_bytes),
		cmocka_unit_test(no_lookup_takes_a_page_fault),
		cmocka_unit_test(tables_of_one_family_find_nothing_of_the_other),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
