// Lists of random rules compared with a plain reading of the rules, and what a change does to
// counters and to lists that it does not touch.
#include "acl/testing.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { N_RULES = 10000, N_PACKETS = 20000, EAL_MIB = 1024 };

static const char *ifaces[] = {"east", "west", "south"};
static unsigned n_ifaces = ARRAY_LEN(ifaces); // that exist

static const char *iface_name(void *ctx, unsigned iface)
{
	return iface < n_ifaces ? ifaces[iface] : NULL;
}

static struct acl_table *open_table(void)
{
	const struct acl_settings settings = {.n_workers = 2,
		.iface_name = iface_name,
		.n_ifaces = ARRAY_LEN(ifaces),
		.n_ports = 2};
	struct acl_table *table;

	assert_int_equal(acl_open(&table, &settings, NULL), 0);
	return table;
}

static struct acl_rule rule_of(const char *text)
{
	struct acl_rule rule;
	struct error error = {""};

	if (acl_rule_parse(&rule, text, &error))
		fail_msg("%s: %s", text, error.text);
	return rule;
}

// The number of the rule that a worker finds for a packet.
static uint32_t classify(const struct acl_list *list, const struct testing_packet *packet,
	bool *is_parsable)
{
	const bool is_ip6 = packet->words.src.family == 6;
	uint8_t *exact = malloc(packet->n); // so that sanitizers detect reads beyond it
	struct acl_key key;
	uint32_t rule;

	memcpy(exact, packet->bytes, packet->n);
	*is_parsable = (is_ip6 ? acl_key6 : acl_key4)(&key, exact, packet->n);
	free(exact);
	key.is_local = packet->words.is_local;
	acl_classify(list, is_ip6, &key, &rule, 1);
	return rule;
}

// How many packets of each kind a list of random rules has judged.
struct judged {
	unsigned n_found, n_none, n_unparsable;
};

static void compare_with_model(size_t n_rules, struct judged *judged)
{
	uint64_t random = 25;
	struct acl_source source = testing_list("random", n_rules, &random);
	struct acl_use use = {"east", "random", ACL_IN};
	struct acl_table *table = open_table();
	struct error error = {""};

	if (acl_apply(table, &(struct acl_set){&source, &use, 1, 1}, &error))
		fail_msg("%s", error.text);
	const struct acl_list *list = acl_view_list(acl_live_view(acl_live(table)), ACL_IN, 0);

	for (unsigned i = 0; i < N_PACKETS; i++) {
		struct testing_packet packet;
		bool is_parsable;

		testing_packet(&packet, &random);
		const uint32_t got = classify(list, &packet, &is_parsable);

		assert_int_equal(is_parsable, packet.is_parsable);
		if (!is_parsable) {
			judged->n_unparsable++;
			continue;
		}
		const uint32_t want = testing_find(&source, &packet.words);

		assert_int_equal(got, want);
		assert_int_equal(acl_find(table, "random", &packet.words), want);
		*(want ? &judged->n_found : &judged->n_none) += 1;
	}
	acl_close(table);
	free(source.rule);
}

static void random_rules_judge_random_packets_like_the_model(void **state)
{
	static const size_t n_rules[] = {N_RULES, 500, 20, 1};
	struct judged judged = {0};

	for (size_t i = 0; i < ARRAY_LEN(n_rules); i++)
		compare_with_model(n_rules[i], &judged);
	print_message("matched %u, none %u, unparsable %u\n", judged.n_found, judged.n_none,
		judged.n_unparsable);
	assert_true(judged.n_found > 10000 && judged.n_none > 1000 && judged.n_unparsable > 1000);
}

static void a_frame_is_read_behind_its_tags(void **state)
{
	uint64_t random = 3;

	for (unsigned i = 0; i < 10000; i++) {
		const unsigned n_tags = i % 3;
		const size_t at = 14 + n_tags * 4;
		struct testing_packet packet;
		struct acl_packet got;
		uint8_t frame[TESTING_ROOM + 64] = {0};

		testing_packet(&packet, &random);
		const bool is_ip6 = packet.words.src.family == 6;

		for (unsigned t = 0; t < n_tags; t++)
			memcpy(frame + 12 + 4 * t,
				(uint8_t[]){t || n_tags == 1 ? 0x81 : 0x88,
					t || n_tags == 1 ? 0x00 : 0xa8, 0, 7},
				4);
		memcpy(frame + at - 2, is_ip6 ? "\x86\xdd" : "\x08\x00", 2);
		memcpy(frame + at, packet.bytes, packet.n);
		packet.words.is_local = false;
		const bool is_read = !acl_packet_read(&got, frame, at + packet.n + 4, NULL);

		assert_int_equal(is_read, packet.is_parsable);
		if (is_read)
			assert_memory_equal(&got, &packet.words, sizeof(got));
		assert_int_equal(acl_packet_read(&got, frame, at + 19, NULL), -EINVAL);
	}
}

static void count(struct acl_table *table, unsigned worker, enum acl_direction direction,
	uint32_t rule)
{
	const struct acl_live *live = acl_live(table);
	const struct acl_list *list = acl_view_list(acl_live_view(live), direction, 0);

	acl_count_packet(live->count[worker], list->action[rule].counter, 100);
}

static void counters_survive_a_rebuild_by_name(void **state)
{
	struct acl_rule rules[] = {rule_of("deny tcp port 23 name telnet"),
		rule_of("permit udp name rest")};
	struct acl_source source = {"edge", rules, 2, false};
	struct acl_use use = {"east", "edge", ACL_IN};
	struct acl_set set = {&source, &use, 1, 1};
	struct acl_table *table = open_table();

	assert_int_equal(acl_apply(table, &set, NULL), 0);
	count(table, 0, ACL_IN, 1);
	count(table, 1, ACL_IN, 1);
	count(table, 1, ACL_IN, 2);
	count(table, 0, ACL_IN, 0);
	rules[1] = rule_of("deny tcp port 22-23 name telnet");
	rules[0] = rule_of("permit sctp name new");
	assert_int_equal(acl_apply(table, &set, NULL), 0);
	assert_int_equal(acl_rule_count(table, "edge", 2).packets, 2);
	assert_int_equal(acl_rule_count(table, "edge", 2).bytes, 200);
	assert_int_equal(acl_rule_count(table, "edge", 1).packets, 0);
	assert_int_equal(acl_rule_count(table, "edge", 0).packets, 1);
	rules[0] = rule_of("permit udp name rest"); // it comes back: a new counter
	assert_int_equal(acl_apply(table, &set, NULL), 0);
	assert_int_equal(acl_rule_count(table, "edge", 1).packets, 0);
	acl_close(table);
}

static void an_unchanged_list_is_not_built_again(void **state)
{
	struct acl_rule one = rule_of("deny tcp"), two = rule_of("deny udp");
	struct acl_source sources[] = {{"a", &one, 1, false}, {"b", &two, 1, false}};
	struct acl_use uses[] = {{"east", "a", ACL_IN}, {"east", "b", ACL_OUT}};
	struct acl_set set = {sources, uses, 2, 2};
	struct acl_table *table = open_table();

	assert_int_equal(acl_apply(table, &set, NULL), 0);
	const struct acl_list *a = acl_view_list(acl_live(table)->view, ACL_IN, 0);
	const struct acl_list *b = acl_view_list(acl_live(table)->view, ACL_OUT, 0);

	two = rule_of("deny sctp");
	assert_int_equal(acl_apply(table, &set, NULL), 0);
	assert_ptr_equal(acl_view_list(acl_live(table)->view, ACL_IN, 0), a);
	assert_ptr_not_equal(acl_view_list(acl_live(table)->view, ACL_OUT, 0), b);
	acl_close(table);
}

static void interfaces_come_and_go(void **state)
{
	struct acl_rule rule = rule_of("permit tcp mirror west");
	struct acl_source source = {"a", &rule, 1, false};
	struct acl_use use = {"south", "a", ACL_IN};
	struct acl_table *table = open_table();

	n_ifaces = 1;
	assert_int_equal(acl_apply(table, &(struct acl_set){&source, &use, 1, 1}, NULL), 0);
	assert_null(acl_live_view(acl_live(table)));
	assert_false(acl_use_is_bound(table, &use));
	n_ifaces = 3;
	acl_refresh(table);
	const struct acl_list *list = acl_view_list(acl_live_view(acl_live(table)), ACL_IN, 2);

	assert_true(acl_use_is_bound(table, &use));
	assert_non_null(list);
	assert_int_equal(list->action[1].mirror, 1);
	n_ifaces = 1;
	acl_refresh(table);
	assert_null(acl_live_view(acl_live(table)));
	n_ifaces = ARRAY_LEN(ifaces);
	acl_close(table);
}

static const struct acl_list *list_of(const struct acl_table *table, unsigned direction,
	unsigned iface)
{
	const struct acl_view *view = acl_live_view(acl_live(table));

	return view ? acl_view_list(view, direction, iface) : NULL;
}

// A number that another interface gets has its lists at once.
static void a_number_has_the_lists_of_its_interface(void **state)
{
	struct acl_rule one = rule_of("deny tcp"), two = rule_of("deny udp");
	struct acl_source sources[] = {{"a", &one, 1, false}, {"b", &two, 1, false}};
	struct acl_use uses[] = {{"new", "a", ACL_IN}, {"new", "b", ACL_OUT}, {"old", "b", ACL_IN}};
	struct acl_set set = {sources, uses, 2, 3};
	struct acl_table *table = open_table();

	assert_int_equal(acl_apply(table, &set, NULL), 0);
	acl_bind(table, 40, "old");
	const struct acl_list *b = list_of(table, ACL_IN, 40);

	assert_non_null(b);
	acl_bind(table, 40, "new");
	assert_ptr_not_equal(list_of(table, ACL_IN, 40), b);
	assert_non_null(list_of(table, ACL_IN, 40));
	assert_ptr_equal(list_of(table, ACL_OUT, 40), b);
	assert_true(acl_view_has(acl_live_view(acl_live(table)), ACL_OUT));
	acl_bind(table, 40, "old");
	assert_null(list_of(table, ACL_OUT, 40));
	assert_false(acl_view_has(acl_live_view(acl_live(table)), ACL_OUT));
	acl_bind(table, 40, "other");
	assert_null(acl_live_view(acl_live(table)));
	acl_close(table);
}

// What was prepared has no effect before it is committed, and interfaces may change until then.
static void what_is_prepared_is_applied_or_dropped(void **state)
{
	struct acl_rule one = rule_of("deny tcp"), two = rule_of("deny udp");
	struct acl_source sources[] = {{"a", &one, 1, false}, {"b", &two, 1, false}};
	struct acl_use uses[] = {{"east", "a", ACL_IN}, {"south", "b", ACL_IN}};
	struct acl_table *table = open_table();
	struct acl_pending *pending;

	assert_int_equal(acl_apply(table, &(struct acl_set){sources, uses, 1, 1}, NULL), 0);
	const struct acl_list *a = list_of(table, ACL_IN, 0);

	assert_int_equal(acl_prepare(table, &(struct acl_set){sources, uses, 2, 2}, &pending, NULL),
		0);
	acl_drop(table, pending);
	n_ifaces = 2;
	assert_int_equal(acl_prepare(table, &(struct acl_set){sources, uses, 2, 2}, &pending, NULL),
		0);
	assert_ptr_equal(list_of(table, ACL_IN, 0), a);
	assert_int_equal(acl_current(table)->n_lists, 1);
	n_ifaces = 3;
	acl_commit(table, pending);
	assert_ptr_equal(list_of(table, ACL_IN, 0), a);
	assert_non_null(list_of(table, ACL_IN, 2));
	assert_int_equal(acl_current(table)->n_lists, 2);
	acl_close(table);
}

// A mirror leads to a port, not to another interface.
static void mirrors_follow_the_numbers_of_ports(void **state)
{
	struct acl_rule rule = rule_of("permit tcp mirror west");
	struct acl_source source = {"a", &rule, 1, false};
	struct acl_use use = {"east", "a", ACL_IN};
	struct acl_table *table = open_table();

	assert_int_equal(acl_apply(table, &(struct acl_set){&source, &use, 1, 1}, NULL), 0);
	const struct acl_list *list = list_of(table, ACL_IN, 0);

	assert_int_equal(list->action[1].mirror, 1);
	ifaces[1] = "south";
	ifaces[2] = "west";
	acl_refresh(table);
	assert_int_equal(list->action[1].mirror, ACL_NO_MIRROR);
	ifaces[1] = "west";
	ifaces[2] = "south";
	acl_close(table);
}

// More than one use of an interface in one direction is found among any number of them.
static void many_uses_are_checked(void **state)
{
	struct acl_source source = {"a", &(struct acl_rule){.name = ""}, 0, false};
	struct acl_set set = {&source, calloc(ACL_MAX_USES + 1, sizeof(*set.use)), 1, 0};
	struct error error;

	assert_non_null(set.use);
	for (; set.n_uses < ACL_MAX_USES; set.n_uses++) {
		struct acl_use *use = &set.use[set.n_uses];

		snprintf(use->iface, sizeof(use->iface), "%zu", set.n_uses / 2);
		strcpy(use->list, "a");
		use->direction = set.n_uses % 2;
	}
	assert_int_equal(acl_set_check(&set, &error), 0);
	strcpy(set.use[7].iface, "5000");
	assert_int_equal(acl_set_check(&set, &error), -EINVAL);
	assert_string_equal(error.text, "interface '5000' has two lists in direction out");
	set.n_uses++;
	assert_int_equal(acl_set_check(&set, &error), -EINVAL);
	assert_string_equal(error.text, "131073 uses of lists, expected at most 131072");
	set.n_uses = 1;
	source.rule = NULL; // it is to be removed
	assert_int_equal(acl_set_check(&set, &error), -EINVAL);
	assert_string_equal(error.text, "interface '0' uses list 'a', which does not exist");
	free(set.use);
}

static void what_is_wrong_changes_nothing(void **state)
{
	struct acl_rule good = rule_of("deny tcp"),
			same[2] = {rule_of("deny tcp name x"), rule_of("deny udp name x")};
	struct acl_source source = {"a", &good, 1, false};
	struct acl_use use = {"east", "a", ACL_IN};
	struct acl_set set = {&source, &use, 1, 1};
	struct acl_table *table = open_table();
	struct error error;

	assert_int_equal(acl_apply(table, &set, NULL), 0);
	const struct acl_view *before = acl_live_view(acl_live(table));

	source = (struct acl_source){"a", same, 2, false};
	assert_int_equal(acl_apply(table, &set, &error), -EINVAL);
	assert_string_equal(error.text, "list 'a': two rules have the name 'x' (a rule without a "
					"name has its number)");
	source = (struct acl_source){"b", &good, 1, false};
	assert_int_equal(acl_apply(table, &set, &error), -EINVAL);
	assert_string_equal(error.text, "interface 'east' uses list 'a', which does not exist");
	assert_ptr_equal(acl_live_view(acl_live(table)), before);
	assert_int_equal(acl_current(table)->n_lists, 1);
	acl_close(table);
}

static int start_eal(void **state)
{
	return testing_start_eal(EAL_MIB) ? 0 : -1;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_rules_judge_random_packets_like_the_model),
		cmocka_unit_test(a_frame_is_read_behind_its_tags),
		cmocka_unit_test(counters_survive_a_rebuild_by_name),
		cmocka_unit_test(an_unchanged_list_is_not_built_again),
		cmocka_unit_test(interfaces_come_and_go),
		cmocka_unit_test(a_number_has_the_lists_of_its_interface),
		cmocka_unit_test(what_is_prepared_is_applied_or_dropped),
		cmocka_unit_test(mirrors_follow_the_numbers_of_ports),
		cmocka_unit_test(many_uses_are_checked),
		cmocka_unit_test(what_is_wrong_changes_nothing),
	};

	return cmocka_run_group_tests(tests, start_eal, NULL);
}
