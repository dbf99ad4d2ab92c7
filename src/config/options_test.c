// Command line parsing.
#include "config/inside.h"

#include "base/bits.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_ARGS = 32 };

// Splits `line` at blanks into argv, with "dl3d" first. `line` must outlive argv.
static int split(char *line, char *argv[MAX_ARGS])
{
	static char name[] = "dl3d";
	int n = 0;

	argv[n++] = name;
	for (char *word = strtok(line, " "); word; word = strtok(NULL, " "))
		argv[n++] = word;
	argv[n] = NULL;
	return n;
}

static int read_line(struct config_options *out, char *line, struct error *error)
{
	static char *argv[MAX_ARGS]; // the parsed options point into it
	int argc = split(line, argv);

	out->program = "dl3d";
	return config_read_options(out, argc, argv, error);
}

struct mistake {
	const char *line, *sentence;
};

static void answers_each_mistake_with_one_sentence(void **state)
{
	static const struct mistake mistakes[] = {
		{"a b", "two files, a and b; expected one (arguments for DPDK go after --)"},
		{"--chekc a", "unknown option --chekc; \"dl3d --help\" shows all"},
		{"-x a", "unknown option -x; \"dl3d --help\" shows all"},
		{"a -d", "no argument after -d; expected a plugin"},
		{"--hold", "no argument after --hold; expected a socket"},
	};

	for (size_t i = 0; i < ARRAY_LEN(mistakes); i++) {
		struct config_options options;
		struct error error = {""};
		char *line = strdup(mistakes[i].line);

		assert_int_not_equal(read_line(&options, line, &error), 0);
		assert_string_equal(error.text, mistakes[i].sentence);
		free(line);
	}
}

// The machine of the test may have the file.
static void takes_the_file_of_the_service_if_none_is_given(void **state)
{
	static const char *const lines[] = {"", "--check", "-- a", "-d p.so"};
	const bool is_there = access("/etc/dl3/dl3d.yaml", F_OK) == 0;

	for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
		struct config_options options;
		struct error error = {""};
		char *line = strdup(lines[i]);

		assert_int_equal(read_line(&options, line, &error), is_there ? 0 : -ENOENT);
		if (is_there)
			assert_string_equal(options.file, "/etc/dl3/dl3d.yaml");
		else
			assert_string_equal(error.text,
				"no file given, and /etc/dl3/dl3d.yaml: No such file or directory; "
				"specify FILE, \"dl3d --example\" prints one to start from");
		free(line);
	}
}

static void the_generator_needs_a_file(void **state)
{
	struct config_options options = {.program = "dl3gen"};
	struct error error = {""};
	char name[] = "dl3gen", *argv[] = {name, NULL};

	assert_int_equal(config_read_options(&options, 1, argv, &error), -EINVAL);
	assert_string_equal(error.text,
		"missing argument FILE; \"dl3gen --example\" prints one to start from");
}

static void adds_plugins_and_arguments_to_those_of_the_file(void **state)
{
	static struct port_table_settings settings = {.n_plugins = 1, .plugins = {"first.so"}};
	struct config_options options;
	struct error error;
	char line[] = "-d a.so f.yaml -d b.so -- --log-level=8 -d";

	assert_int_equal(read_line(&options, line, &error), 0);
	assert_int_equal(options.action, CONFIG_RUN);
	assert_string_equal(options.file, "f.yaml");
	assert_int_equal(config_add_options(&settings, &options, &error), 0);
	assert_int_equal(settings.n_plugins, 3);
	assert_string_equal(settings.plugins[0], "first.so");
	assert_string_equal(settings.plugins[2], "b.so");
	assert_int_equal(settings.n_eal_args, 2);
	assert_string_equal(settings.eal_args[1], "-d");
}

static void knows_what_is_asked_for(void **state)
{
	static const struct {
		const char *line;
		int action;
	} lines[] = {
		{"--check f", CONFIG_CHECK},
		{"f --check", CONFIG_CHECK},
		{"--example", CONFIG_EXAMPLE},
		{"--version", CONFIG_VERSION},
		{"--help", CONFIG_HELP},
		{"-h", CONFIG_HELP},
		{"--hold /run/dl3d.hold", CONFIG_HOLD},
	};

	for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
		struct config_options options;
		struct error error;
		char *line = strdup(lines[i].line);

		assert_int_equal(read_line(&options, line, &error), 0);
		assert_int_equal(options.action, lines[i].action);
		free(line);
	}
}

static char *answer(const char *program, const char *option)
{
	struct config_options options = {.program = program};
	struct error error;
	char name[] = "x", *argv[] = {name, strdup(option), NULL}, *text;
	size_t n;
	FILE *out = open_memstream(&text, &n);

	assert_int_equal(config_read_options(&options, 2, argv, &error), 0);
	assert_true(config_answer(&options, out));
	fclose(out);
	free(argv[1]);
	return text;
}

static void answers_for_the_program_that_it_is(void **state)
{
	static const struct {
		const char *program, *option, *begins;
	} answers[] = {
		{"dl3d", "--version", "dl3d "},
		{"dl3gen", "--version", "dl3gen "},
		{"dl3d", "--help", "dl3d [FILE] "},
		{"dl3gen", "--help", "dl3gen FILE "},
		{"dl3d", "--example", "# D-L3, a layer-3 forwarder"},
		{"dl3gen", "--example", "# dl3gen, a generator"},
	};

	for (size_t i = 0; i < ARRAY_LEN(answers); i++) {
		char *text = answer(answers[i].program, answers[i].option);

		assert_memory_equal(text, answers[i].begins, strlen(answers[i].begins));
		free(text);
	}
}

static void the_generator_holds_no_taps(void **state)
{
	struct config_options options = {.program = "dl3gen"};
	struct error error;
	char name[] = "dl3gen", option[] = "--hold=/x", *argv[] = {name, option, NULL};

	assert_int_not_equal(config_read_options(&options, 2, argv, &error), 0);
	assert_string_equal(error.text, "unknown option --hold=/x; \"dl3gen --help\" shows all");
}

static void refuses_more_plugins_than_there_is_room_for(void **state)
{
	struct config_options options;
	struct error error;
	char *argv[2 * PORT_MAX_PLUGINS + 4], option[] = "-d", plugin[] = "p";
	int argc = 1;

	argv[0] = plugin;
	for (int i = 0; i <= PORT_MAX_PLUGINS; i++) {
		argv[argc++] = option;
		argv[argc++] = plugin;
	}
	argv[argc] = NULL;
	options.program = "dl3d";
	assert_int_not_equal(config_read_options(&options, argc, argv, &error), 0);
	assert_string_equal(error.text, "more than 16 plugins; specify a folder of them");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(answers_each_mistake_with_one_sentence),
		cmocka_unit_test(takes_the_file_of_the_service_if_none_is_given),
		cmocka_unit_test(the_generator_needs_a_file),
		cmocka_unit_test(adds_plugins_and_arguments_to_those_of_the_file),
		cmocka_unit_test(knows_what_is_asked_for),
		cmocka_unit_test(answers_for_the_program_that_it_is),
		cmocka_unit_test(the_generator_holds_no_taps),
		cmocka_unit_test(refuses_more_plugins_than_there_is_room_for),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
