// Plans as a table: cores, ports and workers as one text each, and the whole plan or the error as
// another.
#include "port/plan.h"

#include "base/bits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <rte_config.h>

// `cores`: one character each: NUMA node, 'x' offline, 'n' not allowed, '-' no such core.
// `ports`: "own/most/tx[@node][!][=][*queues]", own 0: hashes; '!' does not hash, '=' tx like rx,
// '^' takes a power of two.
// `workers`: "core[:port.queue[,port.queue]][~][>core[+core]]", "" lets the plan choose; '~'
// receives nothing, '>' hands to. Ports are called a, b, c. `plan`:
// "core:port.queue,...[>worker+worker] | a rx/tx b rx/tx", 's' after shared transmit queues; or
// `error` and `warning`: a part of the message.
struct row {
	const char *name, *cores, *ports, *workers, *plan, *error, *warning;
};

static const struct row rows[] = {
	{"one_queue_each_makes_two_workers_where_cores_allow", "000", "1/1/1 1/1/1", "",
		.plan = "1:a.0 2:b.0 | a 1/1s b 1/1s"},
	{"leaves_one_core_to_the_control_thread", "00", "1/1/1 1/1/1", "",
		.plan = "1:a.0,b.0 | a 1/1 b 1/1"},
	{"takes_the_only_core_where_there_is_one", "0", "1/1/1", "", .plan = "0:a.0 | a 1/1"},
	{"leaves_forbidden_and_offline_cores_alone", "nx0n0", "1/1/1", "", .plan = "4:a.0 | a 1/1"},
	{"has_no_more_workers_than_queues", "00000000", "1/1/8 1/1/8", "",
		.plan = "1:a.0 2:b.0 | a 1/2 b 1/2"},
	{"gives_a_hashing_device_a_queue_per_near_worker", "0000", "0/64/64 0/64/64", "",
		.plan = "1:a.0,b.0 2:a.1,b.1 3:a.2,b.2 | a 3/3 b 3/3"},
	{"never_asks_for_more_queues_than_the_device_has", "00000", "0/2/2", "",
		.plan = "1:a.0 2:a.1 | a 2/2"},
	{"keeps_to_a_power_of_two_where_the_driver_wants_it", "0000", "0/16/8^", "",
		.plan = "1:a.0 2:a.1 | a 2/2"},
	{"keeps_each_port_on_workers_of_its_node", "001100", "0/64/64@1 0/64/64@0", "",
		.plan = "1:b.0 2:a.0 3:a.1 4:b.1 5:b.2 | a 2/5 b 3/5"},
	{"takes_far_cores_when_none_is_near", "00", "0/64/64@1", "", .plan = "1:a.0 | a 1/1",
		.warning = "choose a core on node 1"},
	{"shares_queues_evenly_among_workers_without_a_list", "000", "2/2/2 2/2/2", "1 2",
		.plan = "1:a.0,b.0 2:a.1,b.1 | a 2/2 b 2/2"},
	{"polls_as_many_queues_as_the_file_says", "000", "0/64/64*3", "1 2",
		.plan = "1:a.0,a.2 2:a.1 | a 3/2"},
	{"takes_queues_as_workers_name_them", "000", "0/64/64 0/64/64", "1:a.0,b.1 2:b.0,a.1",
		.plan = "1:a.0,b.1 2:b.0,a.1 | a 2/2 b 2/2"},
	{"gives_what_is_left_to_workers_without_a_list", "000", "2/2/2", "1:a.1 2",
		.plan = "1:a.1 2:a.0 | a 2/2"},
	{"shares_a_transmit_queue_where_there_are_too_few", "000", "1/1/1 1/1/1", "1 2",
		.plan = "1:a.0 2:b.0 | a 1/1s b 1/1s"},
	{"pairs_transmit_with_receive_queues_where_the_driver_wants_it", "000", "1/255/255= 1/1/8",
		"1 2", .plan = "1:a.0 2:b.0 | a 1/1s b 1/2"},
	{"refuses_a_queue_bound_twice", "000", "0/64/64", "1:a.0 2:a.0",
		.error = "workers[1]: queue 0 of port a is already bound to workers[0]"},
	{"refuses_a_queue_bound_to_no_worker", "000", "0/64/64*2", "1:a.0",
		.error = "ports[0] (a): queue 1 is not bound to any worker"},
	{"refuses_a_port_bound_to_no_worker", "000", "1/1/1 1/1/1", "1:a.0",
		.error = "ports[1] (b): queue 0 is not bound to any worker"},
	{"refuses_a_queue_that_the_port_has_not", "000", "1/1/1", "1:a.0,a.1",
		.error = "2 queues, but the device supports 1"},
	{"refuses_a_queue_beyond_the_files_number", "000", "0/64/64*1", "1:a.0,a.1",
		.error = "set queues: 2"},
	{"refuses_a_queue_of_an_unknown_port", "000", "1/1/1", "1:z.0",
		.error = "port \"z\" is not in ports"},
	{"refuses_more_queues_than_the_device_has", "000", "1/1/1*2", "1",
		.error = "use at most 1"},
	{"refuses_a_core_that_does_not_exist", "00", "1/1/1", "7",
		.error = "workers[0]: core 7 does not exist; expected 0 to 1"},
	{"refuses_a_hole_among_the_cores", "0-0", "1/1/1", "1", .error = "core 1 does not exist"},
	{"refuses_a_negative_core", "00", "1/1/1", "-1", .error = "core -1 does not exist"},
	{"refuses_a_core_that_is_offline", "0x", "1/1/1", "1",
		.error = "core 1 is offline; put it online"},
	{"refuses_a_core_that_is_not_allowed", "0n", "1/1/1", "1",
		.error = "this process may not use core 1"},
	{"refuses_a_core_used_twice", "00", "1/1/1", "1 1",
		.error = "core 1 already runs workers[0]"},
	{"refuses_a_process_without_cores", "nx", "1/1/1", "", .error = "any core that is online"},
	{"warns_of_a_worker_far_from_its_port", "01", "1/1/1@0", "1", .plan = "1:a.0 | a 1/1",
		.warning = "workers[0]: core 1 is on NUMA node 1, ports[0] (a) on node 0"},
	{"warns_of_a_worker_without_a_queue", "000", "1/1/1", "1 2", .plan = "1:a.0 2: | a 1/1s",
		.warning = "workers[1]: no queue is left for core 2"},
	{"workers_that_are_handed_packets_take_no_share", "0000", "1/1/8 1/1/8", "1>3+2 2 3",
		.plan = "1:a.0,b.0>2+1 2: 3: | a 1/3 b 1/3"},
	{"workers_may_receive_and_be_handed_packets", "0000", "1/1/8 1/1/8",
		"1:a.0>2+3 2:b.0>1+3 3", .plan = "1:a.0>1+2 2:b.0>0+2 3: | a 1/3 b 1/3"},
	{"gives_the_rest_to_workers_that_are_handed_nothing", "0000", "1/1/8 1/1/8", "1:a.0>2 2 3",
		.plan = "1:a.0>1 2: 3:b.0 | a 1/3 b 1/3"},
	{"warns_of_hands_far_from_the_port", "001", "1/1/8@0", "1>2 2",
		.plan = "1:a.0>1 2: | a 1/2",
		.warning =
			"workers[1]: core 2 is on NUMA node 1, and is handed packets of ports[0] "
			"(a) on node 0"},
	{"refuses_a_worker_that_hands_to_itself", "000", "1/1/1", "1>1 2",
		.error = "workers[0]: hands_to names its own core 1"},
	{"refuses_hands_without_a_worker", "000", "1/1/1", "1>7",
		.error = "workers[0]: hands_to names core 7, but no worker runs there"},
	{"refuses_a_hand_named_twice", "000", "1/1/1", "1>2+2 2",
		.error = "workers[0]: hands_to names core 2 twice"},
	{"refuses_hands_of_a_worker_that_receives_nothing", "0000", "1/1/1", "1:a.0 2>3 3",
		.error = "workers[1]: core 2 has hands_to, but receives nothing"},
	{"refuses_a_worker_without_work_beside_hands", "0000", "1/1/1", "1:a.0>2 2 3",
		.error = "workers[2]: core 3 receives nothing and is handed nothing"},
	{"refuses_a_worker_that_shall_receive_nothing", "000", "1/1/1", "1 2~",
		.error = "workers[1]: core 2 receives nothing and is handed nothing"},
	{"refuses_hands_on_a_core_that_is_offline", "00x", "1/1/1", "1>2 2",
		.error = "workers[1]: core 2 is offline"},
	{"warns_of_queues_that_nobody_polls", "000", "4/4/4*2", "1", .plan = "1:a.0,a.1 | a 2/1",
		.warning = "set queues: 4"},
	{"warns_of_queues_that_stay_empty", "000", "1/4/4!*2", "1", .plan = "1:a.0,a.1 | a 2/1",
		.warning = "may stay empty"},
};

static struct port_table_settings settings;
static struct plan_facts facts;
static struct plan plan;

static void read_cores(const char *text)
{
	facts.n_cores = strlen(text);
	for (unsigned i = 0; i < facts.n_cores; i++) {
		struct plan_core *core = &facts.cores[i];

		core->exists = text[i] != '-';
		core->online = core->exists && text[i] != 'x';
		core->allowed = core->online && text[i] != 'n';
		core->numa = text[i] >= '0' && text[i] <= '9' ? text[i] - '0' : 0;
	}
}

static void read_port(const char *text)
{
	struct port_settings *port = &settings.ports[settings.n_ports];
	struct plan_device *device = &facts.devices[settings.n_ports];
	unsigned own, most, tx;

	assert_int_equal(sscanf(text, "%u/%u/%u", &own, &most, &tx), 3);
	*device = (struct plan_device){.numa = -1,
		.n_rx_most = most,
		.n_tx_most = tx,
		.n_rx_own = own,
		.hashes = !strchr(text, '!'),
		.tx_like_rx = strchr(text, '='),
		.rx_power_of_two = strchr(text, '^')};
	if (strchr(text, '@'))
		device->numa = atoi(strchr(text, '@') + 1);
	if (strchr(text, '*'))
		port->n_queues = atoi(strchr(text, '*') + 1);
	port->name[0] = 'a' + settings.n_ports++;
}

static void read_worker(char *text)
{
	struct port_worker_settings *worker = &settings.workers[settings.n_workers++];
	char *at = strchr(text, ':');

	worker->core = atoi(text);
	worker->receives_nothing = strchr(text, '~');
	for (char *to = strchr(text, '>'); to; to = strchr(to + 1, '+'))
		worker->hands_to[worker->n_hands_to++] = atoi(to + 1);
	for (; at; at = strchr(at + 1, ',')) {
		worker->queues[worker->n_queues].port[0] = at[1];
		worker->queues[worker->n_queues++].queue = atoi(at + 3);
	}
}

static void read_row(const struct row *row)
{
	char text[256], *save;

	memset(&settings, 0, sizeof(settings));
	memset(&facts, 0, sizeof(facts));
	read_cores(row->cores);
	snprintf(text, sizeof(text), "%s", row->ports);
	for (char *word = strtok_r(text, " ", &save); word; word = strtok_r(NULL, " ", &save))
		read_port(word);
	snprintf(text, sizeof(text), "%s", row->workers);
	for (char *word = strtok_r(text, " ", &save); word; word = strtok_r(NULL, " ", &save))
		read_worker(word);
}

static void print_plan(char *text, size_t size)
{
	FILE *out = fmemopen(text, size, "w");

	for (unsigned i = 0; i < plan.n_workers; i++) {
		fprintf(out, "%d:", plan.workers[i].core);
		for (unsigned q = 0; q < plan.workers[i].n_queues; q++)
			fprintf(out, "%s%c.%u", q ? "," : "", 'a' + plan.workers[i].queues[q].port,
				plan.workers[i].queues[q].queue);
		for (unsigned k = 0; k < plan.workers[i].n_hands_to; k++)
			fprintf(out, "%c%u", k ? '+' : '>', plan.workers[i].hands_to[k]);
		fprintf(out, " ");
	}
	fprintf(out, "|");
	for (unsigned i = 0; i < settings.n_ports; i++)
		fprintf(out, " %c %u/%u%s", 'a' + i, plan.ports[i].n_rx, plan.ports[i].n_tx,
			plan.ports[i].shared_tx ? "s" : "");
	fclose(out);
}

static void check_row(void **state)
{
	const struct row *row = *state;
	struct error error = {0};
	char text[512] = "";

	read_row(row);
	int err = plan_workers(&settings, &facts, &plan, &error);

	if (!err)
		err = plan_queues(&settings, &facts, &plan, &error);
	if (row->error) {
		assert_true(err < 0);
		if (!strstr(error.text, row->error))
			fail_msg("found: %s", error.text);
		return;
	}
	if (err)
		fail_msg("%s", error.text);
	print_plan(text, sizeof(text));
	assert_string_equal(text, row->plan);
	if (!row->warning) {
		if (plan.n_warnings)
			fail_msg("%s", plan.warnings[0].text);
		return;
	}
	assert_true(plan.n_warnings > 0);
	if (!strstr(plan.warnings[0].text, row->warning))
		fail_msg("found: %s", plan.warnings[0].text);
}

static void keeps_lcore_numbers_when_better_facts_drop_a_worker(void **state)
{
	const struct row row = {.cores = "000", .ports = "0/0/0", .workers = ""};
	struct error error;

	read_row(&row);
	assert_int_equal(plan_workers(&settings, &facts, &plan, &error), 0);
	assert_int_equal(plan_queues(&settings, &facts, &plan, &error), 0);
	assert_int_equal(plan.n_workers, 2);
	facts.devices[0].n_rx_most = 1;
	assert_int_equal(plan_queues(&settings, &facts, &plan, &error), 0);
	assert_int_equal(plan.n_workers, 1);
	assert_int_equal(plan.workers[0].core, 1);
	assert_int_equal(plan.workers[0].lcore, 1);
	assert_int_equal(plan.n_warnings, 0);
}

static const struct {
	struct port_settings ports[2];
	uint16_t burst;
	const char *error;
} wrong_ports[] = {
	{{{.name = "a", .device = "net_null0"}, {.name = "a", .device = "net_null1"}}, 0,
		"ports[1] (a): ports[0] already has this name"},
	{{{.name = "a", .device = "net_null0"}, {.name = "b", .device = "net_null0,size=64"}}, 0,
		"device net_null0 is already ports[0] (a)"},
	{{{.name = "a", .device = "0000:03:00.0"}, {.name = "b", .device = "03:00.0"}}, 0,
		"device 0000:03:00.0 is already ports[0] (a)"},
	{{{.name = "a", .device = "eth0"}, {.name = "b", .device = "net_null0"}}, 0,
		"net_memif0; for an interface of Linux write \"net_af_packet0,iface=eth0\""},
	{{{.name = "a", .device = "net_null0", .mtu = 67}, {.name = "b", .device = "net_null1"}}, 0,
		"mtu 67 is out of range; expected 68 to 9600"},
	{{{.name = "a", .device = "net_null0"}, {.name = "b", .device = "net_null1", .mtu = 9601}},
		0, "ports[1] (b): mtu 9601"},
	{{{.name = "a", .device = "net_null0"}, {.name = "b", .device = "net_null1"}}, 65,
		"burst 65 is out of range; expected 1 to 64"},
	{{{.name = "a", .device = "net_null0", .mode = PORT_XCONNECT, .xconnect = "z"},
		 {.name = "b", .device = "net_null1"}},
		0, "xconnect names port \"z\", which is not in ports"},
	{{{.name = "a", .device = "net_null0", .n_queues = 65},
		 {.name = "b", .device = "net_null1"}},
		0, "65 queues; a port can have at most 64"},
};

// Debian's DPDK holds 32, fewer than a file may contain.
static void complains_of_more_ports_than_dpdk_holds(void **state)
{
	enum { MANY = RTE_MAX_ETHPORTS + 1 };
	char file[ERROR_MAX], added[ERROR_MAX];
	struct error error = {""};

	if ((int)MANY > (int)PORT_MAX)
		skip();
	snprintf(file, sizeof(file), "ports: %d configured, but DPDK was built for at most %d;",
		MANY, RTE_MAX_ETHPORTS);
	snprintf(added, sizeof(added), "ports[%d] (p%d): DPDK was built for at most %d ports",
		RTE_MAX_ETHPORTS, RTE_MAX_ETHPORTS, RTE_MAX_ETHPORTS);
	memset(&settings, 0, sizeof(settings));
	for (unsigned i = 0; i < MANY; i++) {
		snprintf(settings.ports[i].name, PORT_NAME_MAX, "p%u", i);
		snprintf(settings.ports[i].device, PORT_DEVICE_MAX, "net_null%u", i);
	}
	settings.n_ports = MANY;
	assert_true(plan_check_ports(&settings, &error) < 0);
	assert_non_null(strstr(error.text, file));
	assert_non_null(strstr(error.text, "-Dmax_ethports="));
	assert_true(plan_check_port(&settings, RTE_MAX_ETHPORTS, &error) < 0);
	assert_non_null(strstr(error.text, added));
	settings.ports[0].is_removed = true;
	assert_int_equal(plan_check_ports(&settings, &error), 0);
	assert_int_equal(plan_check_port(&settings, RTE_MAX_ETHPORTS, &error), 0);
}

static void complains_of_ports_that_cannot_be(void **state)
{
	struct error error;

	for (unsigned i = 0; i < ARRAY_LEN(wrong_ports); i++) {
		memset(&settings, 0, sizeof(settings));
		settings.n_ports = 2;
		settings.burst = wrong_ports[i].burst;
		memcpy(settings.ports, wrong_ports[i].ports, sizeof(wrong_ports[i].ports));
		assert_true(plan_check_ports(&settings, &error) < 0);
		if (!strstr(error.text, wrong_ports[i].error))
			fail_msg("wanted: %s, found: %s", wrong_ports[i].error, error.text);
	}
	memset(&settings, 0, sizeof(settings));
	assert_true(plan_check_ports(&settings, &error) < 0);
}

int main(void)
{
	enum { N_OTHERS = 3 }; // those of the initializer
	struct CMUnitTest tests[ARRAY_LEN(rows) + N_OTHERS] = {
		cmocka_unit_test(keeps_lcore_numbers_when_better_facts_drop_a_worker),
		cmocka_unit_test(complains_of_ports_that_cannot_be),
		cmocka_unit_test(complains_of_more_ports_than_dpdk_holds),
	};

	for (unsigned i = 0; i < ARRAY_LEN(rows); i++)
		tests[N_OTHERS + i] = (struct CMUnitTest){.name = rows[i].name,
			.test_func = check_row,
			.initial_state = (void *)&rows[i]};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
