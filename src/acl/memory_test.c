// A list whose classifier does not fit into the memory of EAL.
#include "acl/testing.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { N_RULES = 3000, EAL_MIB = 8 };

static const char *iface_name(void *ctx, unsigned iface)
{
	return "east";
}

static void a_list_that_does_not_build_leaves_the_old_one(void **state)
{
	const struct acl_settings settings = {.n_workers = 1,
		.iface_name = iface_name,
		.n_ifaces = 1};
	struct acl_source source = {"edge", calloc(1, sizeof(struct acl_rule)), 1, false};
	struct acl_use use = {"east", "edge", ACL_IN};
	struct acl_set set = {&source, &use, 1, 1};
	struct acl_table *table;
	struct error error = {""};
	uint64_t random = 11;

	assert_int_equal(acl_rule_parse(source.rule, "deny tcp", NULL), 0);
	assert_int_equal(acl_open(&table, &settings, NULL), 0);
	assert_int_equal(acl_apply(table, &set, NULL), 0);
	const struct acl_view *before = acl_live_view(acl_live(table));

	free(source.rule);
	source = testing_list("edge", N_RULES, &random);
	source.rule[0].police = (struct acl_police){.rate = 8000, .burst = 9000};
	assert_int_not_equal(acl_apply(table, &set, &error), 0);
	print_message("%s\n", error.text);
	assert_non_null(strstr(error.text, "cannot be built: its rules take more memory than there "
					   "is for classifiers; use fewer rules"));
	assert_ptr_equal(acl_live_view(acl_live(table)), before);
	assert_int_equal(acl_current(table)->list[0].n, 1);
	source.n = 10; // and what fits is still built
	assert_int_equal(acl_apply(table, &set, NULL), 0);
	acl_close(table);
	free(source.rule);
}

static int start_eal(void **state)
{
	return testing_start_eal(EAL_MIB) ? 0 : -1;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_list_that_does_not_build_leaves_the_old_one),
	};

	return cmocka_run_group_tests(tests, start_eal, NULL);
}
