// Complete argument lists for EAL.
#include "port/eal_args.h"

#include "base/bits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct port_table_settings settings;
static struct plan_facts facts;
static struct plan plan;
static struct eal_args args;

static void make_machine(unsigned n_cores, const char *device0, const char *device1)
{
	memset(&settings, 0, sizeof(settings));
	memset(&facts, 0, sizeof(facts));
	memset(&plan, 0, sizeof(plan));
	facts.n_cores = n_cores;
	for (unsigned i = 0; i < n_cores; i++)
		facts.cores[i] = (struct plan_core){true, true, true, 0};
	settings.n_ports = 2;
	snprintf(settings.ports[0].device, PORT_DEVICE_MAX, "%s", device0);
	snprintf(settings.ports[1].device, PORT_DEVICE_MAX, "%s", device1);
}

static void add_worker(int core, unsigned lcore)
{
	plan.workers[plan.n_workers].core = core;
	plan.workers[plan.n_workers++].lcore = lcore;
}

static void build(const struct eal_memory *memory, int pid)
{
	eal_args_build(&args, &settings, &facts, &plan, memory, pid);
}

static void assert_args(const struct eal_memory *memory, const char *wanted)
{
	char text[4096];
	size_t used = 0;

	build(memory, 77);
	for (int i = 0; i < args.n; i++)
		used += snprintf(text + used, sizeof(text) - used, "%s%s", i ? " " : "",
			args.argv[i]);
	assert_null(args.argv[args.n]);
	assert_string_equal(text, wanted);
}

static void touches_no_pci_device_that_the_file_does_not_name(void **state)
{
	make_machine(2, "net_null0", "net_null1,no-rx=1");
	add_worker(1, 1);
	assert_args(&(struct eal_memory){.mib = 64},
		"dl3d --lcores=0@(0),1@1 --main-lcore=0 --no-huge --no-shconf -m 64 "
		"--file-prefix=dl3d-77 "
		"--no-telemetry --log-level=warning --vdev=net_null0 --vdev=net_null1,no-rx=1 "
		"--no-pci --iova-mode=va");
}

static void names_exactly_the_pci_devices_of_the_file(void **state)
{
	make_machine(4, "3b:00.0,devarg=1", "0000:3B:00.1");
	add_worker(1, 1);
	add_worker(3, 2);
	assert_args(&(struct eal_memory){.mib = 300, .huge = true},
		"dl3d --lcores=0@(0,2),1@1,2@3 --main-lcore=0 --in-memory --single-file-segments "
		"-m 300 "
		"--file-prefix=dl3d-77 --no-telemetry --log-level=warning -a 0000:3b:00.0,devarg=1 "
		"-a 0000:3b:00.1");
}

static void puts_the_control_thread_on_all_cores_when_workers_take_them_all(void **state)
{
	make_machine(2, "net_null0", "net_null1");
	add_worker(0, 1);
	add_worker(1, 2);
	build(&(struct eal_memory){.mib = 64}, 77);
	assert_string_equal(args.argv[1], "--lcores=0@(0,1),1@0,2@1");
}

static void leaves_forbidden_cores_out(void **state)
{
	make_machine(4, "net_null0", "net_null1");
	facts.cores[0].allowed = false;
	facts.cores[2].online = false;
	add_worker(3, 1);
	build(&(struct eal_memory){.mib = 64}, 77);
	assert_string_equal(args.argv[1], "--lcores=0@(1),1@3");
}

static void keeps_the_lcore_of_a_worker_after_others_were_dropped(void **state)
{
	make_machine(4, "net_null0", "net_null1");
	add_worker(3, 3);
	build(&(struct eal_memory){.mib = 64}, 77);
	assert_string_equal(args.argv[1], "--lcores=0@(0,1,2),3@3");
}

static void spreads_huge_pages_over_numa_nodes(void **state)
{
	make_machine(2, "net_null0", "net_null1");
	facts.cores[1].numa = 1;
	add_worker(1, 1);
	assert_args(&(struct eal_memory){.huge = true, .mib = 90, .node_mib = {30, 60}},
		"dl3d --lcores=0@(0),1@1 --main-lcore=0 --in-memory --single-file-segments "
		"--socket-mem=30,60 "
		"--file-prefix=dl3d-77 --no-telemetry --log-level=warning --vdev=net_null0 "
		"--vdev=net_null1 --no-pci "
		"--iova-mode=va");
}

static void lets_the_files_own_arguments_win(void **state)
{
	make_machine(2, "net_null0", "net_null1");
	add_worker(1, 1);
	snprintf(settings.plugins[settings.n_plugins++], PORT_DEVICE_MAX, "/usr/lib/p.so");
	snprintf(settings.eal_args[settings.n_eal_args++], PORT_DEVICE_MAX, "--log-level=debug");
	build(&(struct eal_memory){.mib = 64}, 77);
	assert_string_equal(args.argv[args.n - 3], "-d");
	assert_string_equal(args.argv[args.n - 2], "/usr/lib/p.so");
	assert_string_equal(args.argv[args.n - 1], "--log-level=debug");
	assert_int_equal(args.n_ours, args.n - 1);
}

static void has_room_for_the_largest_settings(void **state)
{
	make_machine(PLAN_MAX_CORES, "", "");
	settings.n_ports = PORT_MAX;
	settings.n_plugins = PORT_MAX_PLUGINS;
	settings.n_eal_args = PORT_MAX_EAL_ARGS;
	for (unsigned i = 0; i < PORT_MAX; i++) {
		memset(settings.ports[i].device, 'x', PORT_DEVICE_MAX - 1);
		memcpy(settings.ports[i].device, "03:00.0,", 8);
	}
	for (unsigned i = 0; i < PORT_MAX_EAL_ARGS; i++)
		memset(settings.eal_args[i], 'y', PORT_DEVICE_MAX - 1);
	for (unsigned i = 0; i < PORT_MAX_PLUGINS; i++)
		memset(settings.plugins[i], 'z', PORT_DEVICE_MAX - 1);
	for (unsigned i = 0; i < 127; i++)
		add_worker(PLAN_MAX_CORES - 1 - i, i + 1);
	build(&(struct eal_memory){.mib = 64}, 4194304);
	assert_true(args.n > PORT_MAX * 2 + PORT_MAX_EAL_ARGS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(touches_no_pci_device_that_the_file_does_not_name),
		cmocka_unit_test(names_exactly_the_pci_devices_of_the_file),
		cmocka_unit_test(puts_the_control_thread_on_all_cores_when_workers_take_them_all),
		cmocka_unit_test(leaves_forbidden_cores_out),
		cmocka_unit_test(keeps_the_lcore_of_a_worker_after_others_were_dropped),
		cmocka_unit_test(spreads_huge_pages_over_numa_nodes),
		cmocka_unit_test(lets_the_files_own_arguments_win),
		cmocka_unit_test(has_room_for_the_largest_settings),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
