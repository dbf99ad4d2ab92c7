// The two programs with a configuration file, and their differences. Control thread.
#include "config/inside.h"

#include <string.h>

static const char FORWARDER_HELP[] =
	"dl3d [FILE]            start forwarding with configuration FILE, or else\n"
	"                       /etc/dl3/dl3d.yaml\n"
	"dl3d --check [FILE]    check the file and those it names, without opening any device\n"
	"dl3d --example         print a complete, commented configuration\n"
	"dl3d --version         print the version\n"
	"\n"
	"  -d PLUGIN            load a DPDK driver (PMD), or all in a folder (may be repeated)\n"
	"  -- ARGUMENTS         the remaining arguments are passed to DPDK (rte_eal_init)\n"
	"\n"
	"If FILE contains \"linux:\", dl3d starts a helper process, \"dl3d --hold SOCKET\" (in "
	"ps:\n"
	"dl3d-hold), which keeps the TAP interfaces after dl3d exits.\n"
	"\n"
	"Signals: SIGHUP reloads the configuration, SIGINT and SIGTERM stop. For status and\n"
	"control use dl3.\n"
	"Exit status: 0 stopped normally, 1 runtime error, 2 invalid command line or "
	"configuration.\n"
	"\n"
	"Example:\n"
	"  dl3d --example > forwarder.yaml\n"
	"  dl3d --check forwarder.yaml\n"
	"  dl3d forwarder.yaml -- --log-level=8\n";

static const char GENERATOR_HELP[] =
	"dl3gen FILE            open the ports of FILE and wait for commands on the control "
	"socket\n"
	"dl3gen --check FILE    check FILE and its streams, without opening any device\n"
	"dl3gen --example       print a complete, commented configuration\n"
	"dl3gen --version       print the version\n"
	"\n"
	"  -d PLUGIN            load a DPDK driver (PMD), or all in a folder (may be repeated)\n"
	"  -- ARGUMENTS         the remaining arguments are passed to DPDK (rte_eal_init)\n"
	"\n"
	"Signals: SIGINT and SIGTERM stop, also during a run.\n"
	"Exit status: 0 stopped normally, 1 runtime error, 2 invalid command line or "
	"configuration.\n"
	"\n"
	"Example:\n"
	"  dl3gen --example > generator.yaml\n"
	"  dl3gen --check generator.yaml\n"
	"  dl3gen generator.yaml -- --log-level=8\n";

const struct program program_forwarder = {
	.name = "dl3d",
	.socket = "/run/dl3d.sock",
	.file = "/etc/dl3/dl3d.yaml",
	.help = FORWARDER_HELP,
	.top = &forwarder_top,
	.port = &forwarder_port,
	.worker = &forwarder_worker,
	.print_example = config_print_example,
	.has_taps = true,
};

const struct program program_generator = {
	.name = "dl3gen",
	.socket = "/run/dl3gen.sock",
	.help = GENERATOR_HELP,
	.top = &generator_top,
	.port = &generator_port,
	.worker = &generator_worker,
	.print_example = config_print_generator_example,
	.n_queues = 1,
};

const struct program *program_find(const char *name)
{
	return strcmp(name, program_generator.name) ? &program_forwarder : &program_generator;
}
