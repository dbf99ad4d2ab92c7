// The command line of dl3d and dl3gen. Control thread.
#include "config/inside.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { OPTION_CHECK = 256, OPTION_EXAMPLE, OPTION_VERSION, OPTION_HOLD };

static const struct option long_options[] = {
	{"check", no_argument, NULL, OPTION_CHECK},
	{"example", no_argument, NULL, OPTION_EXAMPLE},
	{"version", no_argument, NULL, OPTION_VERSION},
	{"help", no_argument, NULL, 'h'},
	{"hold", required_argument, NULL, OPTION_HOLD},
	{NULL, 0, NULL, 0},
};

bool config_answer(const struct config_options *options, FILE *out)
{
	const struct program *program = program_find(options->program);

	switch (options->action) {
	case CONFIG_EXAMPLE:
		program->print_example(out);
		return true;
	case CONFIG_HELP:
		fputs(program->help, out);
		return true;
	case CONFIG_VERSION:
		fprintf(out, "%s " DL3_VERSION "\n", program->name);
		return true;
	default:
		return false;
	}
}

static int take(struct config_options *out, int option, char **argv, struct error *error)
{
	switch (option) {
	case 'd':
		if (out->n_plugins == PORT_MAX_PLUGINS)
			return error_set(error, -EINVAL,
				"more than %d plugins; specify a folder of them", PORT_MAX_PLUGINS);
		out->plugins[out->n_plugins++] = optarg;
		return 0;
	case OPTION_CHECK:
	case OPTION_EXAMPLE:
	case OPTION_VERSION:
	case 'h':
		out->action = option == OPTION_CHECK     ? CONFIG_CHECK
		              : option == OPTION_EXAMPLE ? CONFIG_EXAMPLE
		              : option == OPTION_VERSION ? CONFIG_VERSION
		                                         : CONFIG_HELP;
		return 0;
	case ':':
		return error_set(error, -EINVAL, "no argument after %.60s; expected a %s",
			argv[optind - 1], optopt == OPTION_HOLD ? "socket" : "plugin");
	case OPTION_HOLD:
		if (program_find(out->program)->has_taps) {
			out->action = CONFIG_HOLD;
			out->file = optarg;
			return 0;
		}
		// fall through
	default:
		return error_set(error, -EINVAL, "unknown option %.60s; \"%s --help\" shows all",
			argv[optind - 1], out->program);
	}
}

// Without FILE.
static int take_default(struct config_options *out, struct error *error)
{
	const char *file = program_find(out->program)->file;

	if (!file)
		return error_set(error, -EINVAL,
			"missing argument FILE; \"%s --example\" prints one to start from",
			out->program);
	if (access(file, F_OK))
		return error_set(error, -errno,
			"no file given, and %s: %s; specify FILE, \"%s --example\" prints one to "
			"start from",
			file, strerror(errno), out->program);
	out->file = file;
	return 0;
}

int config_read_options(struct config_options *out, int argc, char **argv, struct error *error)
{
	int option, err = 0;
	int end = 1; // of our own arguments

	*out = (struct config_options){.program = out->program};
	while (end < argc && strcmp(argv[end], "--"))
		end++;
	if (end < argc) {
		out->eal_args = &argv[end + 1];
		out->n_eal_args = argc - end - 1;
	}
	optind = 0; // restart from the beginning, for repeated calls
	opterr = 0;
	while (!err && (option = getopt_long(end, argv, ":d:h", long_options, NULL)) >= 0)
		err = take(out, option, argv, error);
	if (err || (out->action != CONFIG_RUN && out->action != CONFIG_CHECK))
		return err;
	if (optind == end)
		return take_default(out, error);
	if (optind + 1 < end)
		return error_set(error, -EINVAL,
			"two files, %.60s and %.60s; expected one (arguments for DPDK go after --)",
			argv[optind], argv[optind + 1]);
	out->file = argv[optind];
	return 0;
}

static int append(char list[][PORT_DEVICE_MAX], unsigned *n, unsigned max, const char *text)
{
	if (*n == max || strlen(text) >= PORT_DEVICE_MAX)
		return -E2BIG;
	strcpy(list[(*n)++], text);
	return 0;
}

int config_add_options(struct port_table_settings *settings, const struct config_options *options,
	struct error *error)
{
	int err = 0;

	for (unsigned i = 0; i < options->n_plugins && !err; i++)
		err = append(settings->plugins, &settings->n_plugins, PORT_MAX_PLUGINS,
			options->plugins[i]);
	for (unsigned i = 0; i < options->n_eal_args && !err; i++)
		err = append(settings->eal_args, &settings->n_eal_args, PORT_MAX_EAL_ARGS,
			options->eal_args[i]);
	if (err)
		return error_set(error, err,
			"more than %d plugins or %d arguments for DPDK, or one longer than %d "
			"bytes; remove some",
			PORT_MAX_PLUGINS, PORT_MAX_EAL_ARGS, PORT_DEVICE_MAX - 1);
	return 0;
}
