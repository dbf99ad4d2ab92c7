// Selection of huge or ordinary pages.
#include "port/memory.h"

#include "base/bits.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

struct row {
	const char *name;
	unsigned wanted, mib;
	struct facts_pages pages; // reserved, free, total
	bool huge;
	const char *warning, *error;
};

static const struct row rows[] = {
	{"takes_huge_pages_when_enough_are_free", PORT_HUGE_AUTO, 100, {true, 100, 200}, true, "",
		NULL},
	{"says_what_4_kib_pages_cost", PORT_HUGE_AUTO, 101, {false, 0, 0}, false,
		"vm.nr_hugepages=51 reserves", NULL},
	{"does_not_fall_back_when_too_few_are_free", PORT_HUGE_AUTO, 100, {true, 90, 200}, false,
		NULL,
		"100 MiB of huge pages are needed and 90 MiB are free; free some, reserve more "
		"(sysctl "
		"vm.nr_hugepages=105), or set memory: {hugepages: never}"},
	{"refuses_to_start_without_required_pages", PORT_HUGE_REQUIRE, 100, {false, 0, 0}, false,
		NULL, "vm.nr_hugepages=50"},
	{"takes_required_pages", PORT_HUGE_REQUIRE, 100, {true, 128, 128}, true, "", NULL},
	{"leaves_huge_pages_alone_when_told", PORT_HUGE_NEVER, 100, {true, 128, 128}, false, "",
		NULL},
};

static void check_row(void **state)
{
	const struct row *row = *state;
	struct memory_choice choice;
	struct error error = {0};
	int err = memory_choose(&choice, row->wanted, row->mib, &row->pages, &error);

	if (row->error) {
		assert_true(err < 0);
		if (!strstr(error.text, row->error))
			fail_msg("found: %s", error.text);
		return;
	}
	assert_int_equal(err, 0);
	assert_int_equal(choice.huge, row->huge);
	if (row->warning[0] ? !strstr(choice.warning.text, row->warning) : choice.warning.text[0])
		fail_msg("found: %s", choice.warning.text);
}

static void refuses_more_than_the_machine_has(void **state)
{
	const struct facts_ram ram = {2000, 500, false}, limited = {2000, 500, true}, unknown = {0};
	const struct facts_pages none = {0}, many = {.total_mib = 2002};
	struct error error = {0};

	assert_int_equal(memory_check(2000, &ram, &none, &error), 0);
	assert_int_equal(memory_check(2001, &unknown, &none, &error), 0);
	assert_int_equal(memory_check(2001, &ram, &many, &error), 0);
	assert_int_equal(memory_check(2001, &ram, &none, &error), -ENOMEM);
	assert_string_equal(error.text, "memory: mib requests 2001 MiB, but this machine has 2000 "
					"MiB; use less, or remove mib: it "
					"is then computed from queues and descriptors");
	assert_int_equal(memory_check(2001, &limited, &none, &error), -ENOMEM);
	assert_non_null(strstr(error.text,
		"but the memory limit of this container (cgroup) is 2000 MiB; use less"));
}

static void takes_no_more_ordinary_pages_than_are_available(void **state)
{
	const struct facts_ram ram = {2000, 500, false}, limited = {2000, 500, true}, unknown = {0};
	struct error error = {0};

	assert_int_equal(memory_check_ordinary(500, &ram, &error), 0);
	assert_int_equal(memory_check_ordinary(501, &unknown, &error), 0);
	assert_int_equal(memory_check_ordinary(501, &ram, &error), -ENOMEM);
	assert_non_null(strstr(error.text,
		"501 MiB of ordinary pages are needed and 500 MiB are available; stop other"));
	assert_int_equal(memory_check_ordinary(501, &limited, &error), -ENOMEM);
	assert_non_null(strstr(error.text,
		"500 MiB are available within the memory limit of this container (cgroup); stop"));
}

static void reads_what_this_machine_has(void **state)
{
	struct facts_ram ram;

	facts_read_ram(&ram);
	assert_true(ram.available_mib > 0 && ram.mib > 0);
}

int main(void)
{
	struct CMUnitTest tests[ARRAY_LEN(rows) + 3] = {
		cmocka_unit_test(refuses_more_than_the_machine_has),
		cmocka_unit_test(takes_no_more_ordinary_pages_than_are_available),
		cmocka_unit_test(reads_what_this_machine_has),
	};

	for (unsigned i = 0; i < ARRAY_LEN(rows); i++)
		tests[3 + i] = (struct CMUnitTest){.name = rows[i].name,
			.test_func = check_row,
			.initial_state = (void *)&rows[i]};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
