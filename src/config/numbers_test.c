// Numbers of ports that come and go: by a file that is read again, and one by one.
#include "config/fake_file.h"

#include "base/bits.h"
#include "config/inside.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <string.h>

#define A "  - {name: a, device: x, addresses: [192.0.2.1/24]}\n"
#define B "  - {name: b, device: y, addresses: [198.51.100.1/24]}\n"
#define C "  - {name: c, device: z}\n"
#define ROUTES "routes: [10.0.0.0/8 via 198.51.100.2 dev b lladdr 02:00:00:00:00:09]\n"

static const struct config_numbers none;

static struct config *placed(const char *text, const struct config *now)
{
	struct config *next = fake_take(text);
	struct error error = {""};

	if (numbers_place(next, now, &none, &error))
		fail_msg("%s", error.text);
	return next;
}

static void expect_port(const struct config *config, unsigned number, const char *name)
{
	assert_int_equal(port_is_configured(&config->ports, number), name != NULL);
	if (name)
		assert_string_equal(config->ports.ports[number].name, name);
}

static void ports_keep_their_numbers_in_whatever_order_the_file_lists_them(void **state)
{
	struct config *now = fake_take("ports:\n" A B),
		      *next = placed("ports:\n" C B A ROUTES, now);

	expect_port(next, 0, "a");
	expect_port(next, 1, "b");
	expect_port(next, 2, "c");
	assert_int_equal(next->own[0].port, 1); // in the order of the file
	assert_int_equal(next->own[1].port, 0);
	assert_int_equal(next->routes.change[0].route.hop.iface, 1);
	assert_null(config_needs_restart(now, next));
	config_free(now);
	config_free(next);
}

static void the_number_of_a_removed_port_is_free_until_it_returns(void **state)
{
	struct config *first = fake_take("ports:\n" A B C), *second = placed("ports:\n" A C, first),
		      *third = placed("ports:\n" C B A, second);

	expect_port(second, 0, "a");
	expect_port(second, 1, NULL);
	expect_port(second, 2, "c");
	assert_int_equal(second->ports.n_ports, 3);
	assert_int_equal(port_find(&second->ports, "b", 1), -1);
	assert_int_equal(port_find(&second->ports, "1", 1), -1);
	expect_port(third, 1, "b");
	config_free(first);
	config_free(second);
	config_free(third);
}

#define QUEUES(list) "workers: [{core: 0, queues: [" list "]}, {core: 1}]\n"

// Workers get and lose queues with ports, but no others.
static void queues_of_workers_come_and_go_with_ports(void **state)
{
	static const struct {
		const char *text, *key;
	} rows[] = {
		{QUEUES("a/0") "ports:\n" A, NULL},
		{QUEUES("c/0, a/0, b/0, c/1") "ports:\n" A B C, NULL},
		{QUEUES("a/1, b/0") "ports:\n" A B, "workers[0].receives"},
		{QUEUES("a/0") "ports:\n" A B, "workers[0].receives"},
		{QUEUES("b/0, a/0") "ports:\n" A B, "workers[0].receives"},
	};
	struct config *now = fake_take(QUEUES("a/0, b/0") "ports:\n" A B);

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct config *next = placed(rows[i].text, now);
		const char *key = config_needs_restart(now, next);

		if (!key != !rows[i].key || (key && strcmp(key, rows[i].key)))
			fail_msg("%s: %s", rows[i].text, key);
		config_free(next);
	}
	config_free(now);
}

static json_t *described(const char *text)
{
	json_t *json = json_loads(text, 0, NULL);

	assert_non_null(json);
	return json;
}

static int with(struct config **out, const struct config *now, const char *text,
	const struct config_numbers *numbers, struct error *error)
{
	json_t *json = described(text);
	int err = config_with_port(out, now, json, numbers, error);

	json_decref(json);
	return err;
}

// Access lists stay when a port comes or goes.
static void access_lists_are_copied(void **state)
{
	struct config *now = fake_take("ports:\n" A B "acl: {lists: {x: [deny tcp]}, "
				       "use: [{interface: b, direction: out, list: x}]}\n");
	struct config *more, *less;
	struct error error = {""};

	assert_int_equal(with(&more, now, "{\"name\": \"n\", \"device\": \"n\"}", &none, &error),
		0);
	config_free(now);
	assert_int_equal(config_without_port(&less, more, "b", &error), 0);
	config_free(more);
	assert_int_equal(config_acl(less)->n_lists, 1);
	assert_int_equal(config_acl(less)->list[0].n, 1);
	assert_int_equal(config_acl(less)->n_uses, 1);
	assert_string_equal(config_acl(less)->use[0].iface, "b");
	config_free(less);
}

static void one_port_is_added_and_removed(void **state)
{
	struct config *now = fake_take("ports:\n" A B), *more, *less, *again;
	const struct config_numbers kept = {{[1] = true}};
	struct error error = {""};

	if (with(&more, now,
		    "{\"name\": \"n\", \"device\": \"net_null7\", \"mtu\": 9000, \"mac\": "
		    "\"02:00:00:00:00:07\", \"addresses\": [\"203.0.113.1/24\"], \"martians\": "
		    "\"pass\"}",
		    &none, &error))
		fail_msg("%s", error.text);
	expect_port(more, 2, "n");
	assert_int_equal(more->ports.ports[2].mtu, 9000);
	assert_true(more->ports.ports[2].has_mac && more->ports.ports[2].pass_martians);
	assert_int_equal(more->n_own, 3);
	assert_int_equal(more->own[2].port, 2);
	assert_int_equal(config_without_port(&less, more, "b", &error), 0);
	expect_port(less, 1, NULL);
	assert_int_equal(less->n_own, 2);
	// The number of a port that routes lead over is kept for it.
	assert_int_equal(with(&again, less, "{\"name\": \"m\", \"device\": \"m\"}", &kept, &error),
		0);
	expect_port(again, 3, "m");
	config_free(again);
	assert_int_equal(with(&again, less, "{\"name\": \"b\", \"device\": \"m\"}", &kept, &error),
		0);
	expect_port(again, 1, "b");
	config_free(again);
	assert_int_equal(with(&again, less, "{\"name\": \"m\", \"device\": \"m\"}", &none, &error),
		0);
	expect_port(again, 1, "m");
	config_free(again);
	config_free(now);
	config_free(more);
	config_free(less);
}

struct refusal {
	const char *port, *sentence;
};

static void refuses_in_one_sentence(void **state)
{
	static const struct refusal rows[] = {
		{"{\"name\": \"a\", \"device\": \"n\"}",
			"port \"a\" exists already; remove it first, or choose another name"},
		{"{\"name\": \"n\", \"device\": \"x\"}",
			"duplicate device x (first used in line 2); choose another"},
		{"{\"name\": \"n\"}", "port: missing key \"device\"; expected a name and a device"},
		{"{\"device\": \"n\"}", "port: missing key \"name\"; expected a name and a device"},
		{"{\"name\": \"n\", \"device\": \"n\", \"mtu\": 67}",
			"port.mtu: found \"67\", expected a number from 68 to 9600"},
		{"{\"name\": \"n\", \"device\": \"n\", \"mtv\": 67}",
			"unknown key \"port.mtv\"; did you mean \"mtu\"?"},
		{"{\"name\": \"n\", \"device\": \"n\", \"mode\": \"xconnect\", \"to\": \"q\"}",
			"ports[2].to: unknown port \"q\"; expected one of the names under ports"},
		{"{\"name\": \"n\", \"device\": \"n\", \"addresses\": [\"192.0.2.9/24\"]}",
			"port.addresses[0]: the prefix of 192.0.2.9/24 is already connected to "
			"another port (line 2); expected one port for each prefix"},
	};
	struct config *now = fake_take("ports:\n" A B), *next;
	struct error error;

	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		assert_true(with(&next, now, rows[i].port, &none, &error) < 0);
		assert_string_equal(error.text, rows[i].sentence);
	}
	assert_true(config_without_port(&next, now, "q", &error) < 0);
	assert_string_equal(error.text, "unknown port \"q\"; expected one of a, b");
	config_free(now);
	now = fake_take("ports:\n" C "  - {name: d, device: w, mode: xconnect, to: c}\n");
	assert_true(config_without_port(&next, now, "c", &error) < 0);
	assert_string_equal(error.text, "port \"c\" is the output of port \"d\" (mode: xconnect); "
					"remove that one first");
	config_free(now);
	now = fake_take("ports:\n" A);
	assert_true(config_without_port(&next, now, "a", &error) < 0);
	assert_string_equal(error.text, "port \"a\" is the only one, and at least one is needed; "
					"add another first, or stop dl3d");
	config_free(now);
}

static void linux_takes_no_addresses_and_no_cross_connects(void **state)
{
	struct config *now = fake_take("ports:\n" C "linux:\n"), *next;
	struct error error;

	assert_true(with(&next, now,
			    "{\"name\": \"n\", \"device\": \"n\", \"addresses\": "
			    "[\"192.0.2.9/24\"]}",
			    &none, &error) < 0);
	assert_non_null(strstr(error.text,
		"key \"addresses\" cannot be used with \"linux:\"; configure it in Linux"));
	config_free(now);
}

static void all_numbers_may_be_in_use(void **state)
{
	struct config *now = fake_take("ports:\n" A B C), *next;
	struct config_numbers numbers = none;
	struct error error;

	memset(&numbers, true, sizeof(numbers));
	assert_true(with(&next, now, "{\"name\": \"n\", \"device\": \"n\"}", &numbers, &error) < 0);
	assert_non_null(strstr(error.text, "all 256 port numbers are in use"));
	config_free(now);
}

static struct fib_answer look_up(const struct fib *fib, const char *text)
{
	struct fib_answer answer;
	struct wire_addr addr;

	assert_int_equal(wire_addr_parse(text, &addr), 0);
	rib_lookup(fib, 0, &addr, &answer);
	return answer;
}

// Routes via its neighbours stay, unresolved, and are resolved again when it returns.
static void a_port_enters_and_leaves_a_table_in_use(void **state)
{
	const struct wire_mac macs[PORT_MAX] = {{{2, 0, 0, 0, 0, 1}}, {{2, 0, 0, 0, 0, 2}}};
	struct config *now = fake_take("ports:\n" A B ROUTES);
	struct error error = {""};
	struct fib *fib = fib_create(&error);

	assert_int_equal(config_fill(now, macs, fib, &error), 0);
	assert_int_equal(look_up(fib, "10.0.0.1").verdict, VERDICT_FORWARD);
	config_clear_port(now, 1, fib);
	assert_null(fib_iface(fib, 1));
	assert_int_equal(look_up(fib, "10.0.0.1").verdict, VERDICT_NEIGHBOUR_UNRESOLVED);
	assert_int_equal(look_up(fib, "198.51.100.1").verdict, VERDICT_NO_ROUTE);
	assert_int_equal(look_up(fib, "198.51.100.9").verdict, VERDICT_NO_ROUTE);
	assert_int_equal(look_up(fib, "192.0.2.1").verdict, VERDICT_LOCAL);
	assert_int_equal(config_fill_port(now, 1, &macs[1], fib, &error), 0);
	assert_int_equal(look_up(fib, "10.0.0.1").verdict, VERDICT_FORWARD);
	assert_int_equal(look_up(fib, "198.51.100.1").verdict, VERDICT_LOCAL);
	assert_int_equal(look_up(fib, "198.51.100.255").verdict, VERDICT_LOCAL);
	config_clear_port(now, 1, fib);

	struct fib_change other = {.op = FIB_ADD,
		.route = {.prefix = now->own[1].prefix,
			.hop = {.kind = FIB_BLACKHOLE, .iface = IFACE_NONE}}};
	assert_int_equal(fib_change(fib, &other, 1, NULL, &error), 0);
	assert_int_equal(config_fill_port(now, 1, &macs[1], fib, &error), -EEXIST);
	assert_non_null(strstr(error.text, "cannot add the addresses of port b: "));
	assert_null(fib_iface(fib, 1));
	fib_destroy(fib);
	config_free(now);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ports_keep_their_numbers_in_whatever_order_the_file_lists_them),
		cmocka_unit_test(the_number_of_a_removed_port_is_free_until_it_returns),
		cmocka_unit_test(queues_of_workers_come_and_go_with_ports),
		cmocka_unit_test(access_lists_are_copied),
		cmocka_unit_test(one_port_is_added_and_removed),
		cmocka_unit_test(refuses_in_one_sentence),
		cmocka_unit_test(linux_takes_no_addresses_and_no_cross_connects),
		cmocka_unit_test(all_numbers_may_be_in_use),
		cmocka_unit_test(a_port_enters_and_leaves_a_table_in_use),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
