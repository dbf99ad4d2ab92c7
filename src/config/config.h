// Reads the YAML file into the settings struct that each module declares; one clear error per
// mistake. Control thread.
#pragma once

#include "acl/acl.h"
#include "base/error.h"
#include "fib/fib.h"
#include "flow/flow.h"
#include "mac/mac.h"
#include "port/port.h"
#include "qos/qos.h"
#include "tap/tap.h"

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

struct config;

// Reads `path` and all route files it names, and checks everything that does not require a device.
// 0, or -errno with `error` set to "FILE:LINE: what was found, what was expected". Owner: caller,
// config_free.
int config_load(struct config **out, const char *path, struct error *error);
// Which numbers of removed ports other ports may not get yet, because the table still refers to
// them.
struct config_numbers {
	bool is_kept[PORT_MAX];
};
// Reads the same file again at run time: regular files only, because a read must not block. Ports
// keep their numbers by name, and the file's new ones get free numbers.
int config_load_again(struct config **out, const struct config *now,
	const struct config_numbers *numbers, struct error *error);
// The running configuration with one port more, given as a JSON object with the keys of a port in
// the file, / with one port less. Routes are left out. Owner: caller, config_free. -errno with
// `error` set, without file and line.
int config_with_port(struct config **out, const struct config *now, const json_t *port,
	const struct config_numbers *numbers, struct error *error);
int config_without_port(struct config **out, const struct config *now, const char *name,
	struct error *error);
// Same for the generator's file: streams instead of routes, one receive queue per port.
int config_load_generator(struct config **out, const char *path, struct error *error);
void config_free(struct config *config);
// Frees the routes and neighbours, which are only used by config_fill.
void config_forget_routes(struct config *config);

const struct port_table_settings *config_ports(const struct config *config);
const struct tap_settings *config_taps(const struct config *config); // key `linux`
// Key `flow`. NULL: there is no flow table.
enum { CONFIG_PATH_MAX = 1024 };
struct config_flow {
	uint32_t max4, max6;
	uint8_t drops_missing;             // packets without a flow are dropped, not routed
	uint32_t timeout_s[FLOW_TIMEOUTS]; // 0: this one and the following ones are not given
	char file[CONFIG_PATH_MAX];        // "": none
	char ended_file[CONFIG_PATH_MAX];  // "": none
	struct config_learn {
		uint32_t timeout_s;              // one of those above; 0: no flows are learnt
		uint32_t rate;                   // flows in a second
		uint32_t per_vrf, per_interface; // learnt flows at a time; 0: any number
	} learn;
};
const struct acl_set *config_acl(const struct config *config); // key `acl`
// Key `qos`: whether there may be subscribers. / Stages those of the file in a batch that has
// begun, in place of those of an earlier file; reads the file that it names. -errno with `error`
// set to "FILE:LINE: ...": the batch is to be aborted.
bool config_has_qos(const struct config *config);
uint32_t config_held_packets(const struct config *config); // in queues; 0: nothing is shaped
// Workers with the key `shapes`; returns their number.
unsigned config_shapers(const struct config *config, uint8_t worker[QOS_MOST_SHAPERS]);
int config_stage_qos(const struct config *config, struct qos *qos, struct error *error);
// Whether access lists can do what they say with these ports: a port with `mode: xconnect`, or
// in a bridge, has no list, / and mirrors lead to ports. -EINVAL with `error` set. Pure.
int config_check_acl_uses(const struct config *config, const struct acl_set *set,
	struct error *error);
int config_check_acl_mirrors(const struct config *config, const struct acl_set *set,
	struct error *error);
const struct config_flow *config_flow(const struct config *config);
// Key `bridges`: n of them, with the numbers of their ports; valid as long as `config`. / The name
// of the bridge that a port is in; NULL: none.
const struct mac_bridge *config_bridges(const struct config *config, unsigned *n);
const char *config_bridge_of(const struct config *config, unsigned port);
// The VXLAN of a bridge; NULL: it has none. Its interface is CONFIG_FIRST_VXLAN plus the number of
// the device, which a bridge keeps at a reload.
enum { CONFIG_MAX_REMOTES = 64, CONFIG_FIRST_VXLAN = IFACE_MAX - IFACE_MAX_VXLANS };
struct config_vxlan {
	struct iface_tunnel tunnel;
	struct wire_addr remote[CONFIG_MAX_REMOTES]; // that get floods
	unsigned n_remotes;
};
const struct config_vxlan *config_vxlan(const struct config *config, unsigned bridge);
const char *config_socket(const struct config *config);       // control socket
const char *config_socket_group(const struct config *config); // NULL: the group of the
                                                              // process
const char *config_path(const struct config *config);

// The configured addresses of a port with their prefix lengths, at most `max`; returns how many
// were written.
unsigned config_addresses(const struct config *config, unsigned port, struct wire_prefix out[],
	unsigned max);

// Fills an empty table: ports (with MAC addresses `macs[port]`, known only from the open devices),
// own addresses, connected routes, routes (inline and from files), neighbours. If Linux is the
// control plane: ports only, netlink adds the rest. -errno with `error` set to a message with file
// and line.
int config_fill(const struct config *config, const struct wire_mac macs[], struct fib *fib,
	struct error *error);

// Adds a port to a table in use, or removes it: its settings, its own addresses and its connected
// routes. The latter leaves routes via its neighbours, which become unresolved. -EEXIST with
// `error` set: another route has the prefix of an address; nothing is changed then.
int config_fill_port(const struct config *config, unsigned port, const struct wire_mac *mac,
	struct fib *fib, struct error *error);
void config_clear_port(const struct config *config, unsigned port, struct fib *fib);

// Parses one route in the file's text form, for routes.change: "PREFIX via ADDRESS dev PORT" and
// its variants. Several next hops become a group of `fib`, valid for its next fib_change.
int config_parse_route(const struct config *config, struct fib *fib, const char *text,
	struct fib_route *out, struct error *error);

// The generator's list of streams as written in the file, borrowed; NULL: none. It is interpreted
// elsewhere; config_place_stream adds FILE:LINE to the resulting error ("streams[1] (east): size
// ...").
const json_t *config_streams(const struct config *config);
void config_place_stream(const struct config *config, struct error *error);

// Parses a prefix alone: PREFIX, ADDRESS or "default" (IPv4). 0, or -EINVAL.
int config_parse_prefix(const char *text, struct wire_prefix *out);

// NULL if `next` can replace `now` at run time, otherwise the first key that requires a restart
// ("ports[1].device"). Ports have the same numbers in both; those in one of them only are added or
// removed, with their queues in `workers`.
const char *config_needs_restart(const struct config *now, const struct config *next);

// Prints a complete, commented file that config_load / config_load_generator accepts.
void config_print_example(FILE *out);
void config_print_generator_example(FILE *out);

// The command line: PROGRAM [--check|--example|--version|--help|--hold] [-d PLUGIN]... [FILE] [--
// EAL ARGUMENTS].
enum config_action {
	CONFIG_RUN,
	CONFIG_CHECK,
	CONFIG_EXAMPLE,
	CONFIG_VERSION,
	CONFIG_HELP,
	CONFIG_HOLD
};
struct config_options {
	const char *program; // "dl3d" or "dl3gen"; set by the caller
	int action;          // enum config_action
	const char *file;    // for CONFIG_RUN and CONFIG_CHECK, else the default of dl3d; for
	                     // CONFIG_HOLD the holder's socket
	const char *plugins[PORT_MAX_PLUGINS];
	char **eal_args;
	unsigned n_plugins, n_eal_args;
};
// 0, or -errno with `error` set: no file is named, and there is no default; a mistake. Strings and
// eal_args point into `argv`.
int config_read_options(struct config_options *out, int argc, char **argv, struct error *error);
// Prints the example, version or help if that is the action. Returns false for other actions.
bool config_answer(const struct config_options *options, FILE *out);
// Adds plugins and arguments from the command line to those of the file.
int config_add_options(struct port_table_settings *settings, const struct config_options *options,
	struct error *error);

// The name of a tunnel that routes of the file lead into, as gre-192.0.2.9. False: there is none
// with this number.
enum { CONFIG_TUNNEL_NAME = 64 };
bool config_tunnel_name(const struct config *config, uint16_t iface, char name[CONFIG_TUNNEL_NAME]);

// Number of routes in the file and its route files.
size_t config_n_routes(const struct config *config);
