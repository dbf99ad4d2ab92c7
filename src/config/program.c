// The two programs with a configuration file, and their differences. Control thread.
#include "config/inside.h"

#include <string.h>

static const char FORWARDER_HELP[] =
	"dl3d FILE              forward as the file says\n"
	"dl3d --check FILE      read the file and all it names, say what is wrong, touch no "
	"device\n"
	"dl3d --example         print a complete, commented file\n"
	"dl3d --version         print the version\n"
	"\n"
	"  -d PLUGIN            load a DPDK driver or a folder of them (may be repeated)\n"
	"  -- ARGUMENTS         all that follows is given to DPDK\n"
	"\n"
	"It starts itself as \"dl3d --hold SOCKET\" where the file has \"linux:\": that process "
	"keeps\n"
	"the TAP interfaces alive when dl3d ends.\n"
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
	"dl3gen FILE            open the ports, wait on the socket for what to send\n"
	"dl3gen --check FILE    read the file and its streams, say what is wrong, touch no device\n"
	"dl3gen --example       print a complete, commented file\n"
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
	"  dl3gen generator.yaml -- --log-level=8\n";

const struct program program_forwarder = {
	.name = "dl3d",
	.socket = "/run/dl3d.sock",
	.help = FORWARDER_HELP,
	.top = &forwarder_top,
	.port = &forwarder_port,
	.print_example = config_print_example,
	.has_taps = true,
};

const struct program program_generator = {
	.name = "dl3gen",
	.socket = "/run/dl3gen.sock",
	.help = GENERATOR_HELP,
	.top = &generator_top,
	.port = &generator_port,
	.print_example = config_print_generator_example,
	.n_queues = 1,
};

const struct program *program_find(const char *name)
{
	return strcmp(name, program_generator.name) ? &program_forwarder : &program_generator;
}
