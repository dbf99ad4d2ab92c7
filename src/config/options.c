// The command line of dl3d and dl3gen. Control thread.
#include "config/config.h"

#include <errno.h>
#include <getopt.h>
#include <stdlib.h>
#include <string.h>

enum { OPTION_CHECK = 256, OPTION_EXAMPLE, OPTION_VERSION };

static const struct option long_options[] = {
	{"check", no_argument, NULL, OPTION_CHECK},
	{"example", no_argument, NULL, OPTION_EXAMPLE},
	{"version", no_argument, NULL, OPTION_VERSION},
	{"help", no_argument, NULL, 'h'},
	{NULL, 0, NULL, 0},
};

static const char HELP[] =
	"dl3d FILE              forward as the file says\n"
	"dl3d --check FILE      read the file and all it names, say what is wrong, touch no "
	"device\n"
	"dl3d --example         print a complete, commented file\n"
	"dl3d --version         print the version\n"
	"\n"
	"  -d PLUGIN            load a DPDK driver or a folder of them (may be repeated)\n"
	"  -- ARGUMENTS         all that follows is given to DPDK\n"
	"\n"
	"While it runs: SIGHUP reads the file again, SIGINT and SIGTERM stop; dl3 shows and "
	"changes more.\n"
	"Leaves with 0 after a stop, 1 when something failed, 2 when the command line or the file "
	"is wrong.\n"
	"\n"
	"Example:\n"
	"  dl3d --example > forwarder.yaml\n"
	"  dl3d --check forwarder.yaml\n"
	"  dl3d forwarder.yaml -- --log-level=8\n";

static const char GENERATOR_HELP[] =
	"dl3gen FILE            open the ports of the file and send what dl3 bench tells it to\n"
	"dl3gen --check FILE    read the file and its streams, say what is wrong, touch no "
	"device\n"
	"dl3gen --example       print a commented file\n"
	"dl3gen --version       print the version\n"
	"\n"
	"  -d PLUGIN            load a DPDK driver or a folder of them (may be repeated)\n"
	"  -- ARGUMENTS         all that follows is given to DPDK\n"
	"\n"
	"While it runs: SIGINT and SIGTERM stop, also in the middle of a run.\n"
	"Leaves with 0 after a stop, 1 when something failed, 2 when the command line or the file "
	"is wrong.\n"
	"\n"
	"Example:\n"
	"  dl3gen --example > generator.yaml\n"
	"  dl3gen --check generator.yaml\n"
	"  dl3gen generator.yaml\n";

static bool is_generator(const struct config_options *options)
{
	return !strcmp(options->program, "dl3gen");
}

bool config_answer(const struct config_options *options, FILE *out)
{
	switch (options->action) {
	case CONFIG_EXAMPLE:
		if (is_generator(options))
			config_print_generator_example(out);
		else
			config_print_example(out);
		return true;
	case CONFIG_HELP:
		fputs(is_generator(options) ? GENERATOR_HELP : HELP, out);
		return true;
	case CONFIG_VERSION:
		fprintf(out, "%s " DL3_VERSION "\n", options->program);
		return true;
	default:
		return false;
	}
}

static int take(struct config_options *out, int option, char **argv, struct complaint *why)
{
	switch (option) {
	case 'd':
		if (out->n_plugins == PORT_MAX_PLUGINS)
			return complain(why, -EINVAL, "more than %d plugins; give a folder of them",
				PORT_MAX_PLUGINS);
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
		return complain(why, -EINVAL, "nothing after %.60s; a plugin is wanted",
			argv[optind - 1]);
	default:
		return complain(why, -EINVAL, "unknown option %.60s; \"%s --help\" shows all",
			argv[optind - 1], out->program);
	}
}

int config_read_options(struct config_options *out, int argc, char **argv, struct complaint *why)
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
	optind = 0; // read from the start, also the second time
	opterr = 0;
	while (!err && (option = getopt_long(end, argv, ":d:h", long_options, NULL)) >= 0)
		err = take(out, option, argv, why);
	if (err || (out->action != CONFIG_RUN && out->action != CONFIG_CHECK))
		return err;
	if (optind == end)
		return complain(why, -EINVAL,
			"no configuration file; \"%s --example\" prints one to start from",
			out->program);
	if (optind + 1 < end)
		return complain(why, -EINVAL,
			"one file is enough: %.60s and %.60s; arguments for DPDK go after --",
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

int config_add_options(struct port_room_settings *settings, const struct config_options *options,
	struct complaint *why)
{
	int err = 0;

	for (unsigned i = 0; i < options->n_plugins && !err; i++)
		err = append(settings->plugins, &settings->n_plugins, PORT_MAX_PLUGINS,
			options->plugins[i]);
	for (unsigned i = 0; i < options->n_eal_args && !err; i++)
		err = append(settings->eal_args, &settings->n_eal_args, PORT_MAX_EAL_ARGS,
			options->eal_args[i]);
	if (err)
		return complain(why, err,
			"more than %d plugins or %d arguments for DPDK, or one longer than %d; "
			"leave some out",
			PORT_MAX_PLUGINS, PORT_MAX_EAL_ARGS, PORT_DEVICE_MAX - 1);
	return 0;
}
