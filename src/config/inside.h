// Shared by the files of this module: the configuration in memory and its parts. Control thread.
#pragma once

#include "config/config.h"
#include "config/rows.h"
#include "tap/tap.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	CONFIG_MAX_ADDRESSES = 4096, // total of all ports
	CONFIG_MAX_ROUTE_FILES = 64,
	CONFIG_MAX_MEMBERS = 64, // next hops per route
	CONFIG_SOCKET_MAX = 108,
	CONFIG_GROUP_MAX = 33,
};

// One of our addresses with its connected prefix.
struct own_address {
	struct wire_addr addr;
	struct wire_prefix prefix;
	uint8_t port;
	int line;
};

// Where an entry was written: index of its file in `file`, and line.
struct spot {
	uint16_t file;
	uint32_t line;
};

struct neighbour {
	struct wire_addr addr; // family 0: free slot
	struct wire_mac mac;
	uint8_t port;
	struct spot spot;
};

// An MPLS label; its hop of kind FIB_GROUP refers to members, as those of routes do.
struct label_entry {
	struct fib_label label;
	struct spot spot;
};

// All routes of a configuration, ready for fib_change, in file order.
struct route_list {
	struct label_entry *label;
	size_t n_labels, label_capacity;
	struct fib_change *change;
	struct spot *spot;
	size_t n, capacity;        // of both
	struct fib_member *member; // of all groups; a hop of kind FIB_GROUP refers to its own
	size_t n_members, member_capacity;
	bool has_groups;
	struct neighbour *slot; // open-addressing hash table by port and address
	size_t n_neighbours, n_slots;
	char *file[CONFIG_MAX_ROUTE_FILES + 1]; // [0] the YAML file itself
	unsigned n_files;
};

// The properties of a program's file that differ between programs.
struct program {
	const char *name;   // "dl3d"
	const char *socket; // default socket
	const char *file;   // default configuration file; NULL: none
	const char *help;
	const struct key_table *top, *port, *worker;
	void (*print_example)(FILE *out);
	uint16_t n_queues; // receive queues per port; 0: as configured
	bool has_taps;     // supports --hold
};
extern const struct program program_forwarder, program_generator;
const struct program *program_find(const char *name); // the forwarder if the name is unknown

// Which files may be opened: none, when only the text is checked; any; or regular ones only, so
// that a running program does not block on a pipe.
enum files { FILES_NONE, FILES_ANY, FILES_REGULAR };

struct config_bridges {
	unsigned n;
	struct mac_bridge *bridge; // MAC_BRIDGES of them, with members and addresses of their own
	struct config_vxlan vxlan[MAC_BRIDGES]; // by bridge; without a kind: it has none
};

// Tunnels that routes lead into, as they are written: without `local` if the file does not say it.
struct config_tunnel {
	struct iface_tunnel settings;
	struct spot spot;
	uint16_t iface; // its number in the table
};
struct config_tunnels {
	struct config_tunnel *tunnel;
	size_t n, capacity;
	uint16_t end; // numbers from here on were never given
};

// The key `qos`: changes as text, with "profile" or "put" before them.
struct config_qos {
	bool is_on;
	size_t n, capacity;
	struct qos_line_of_file {
		char *text;
		int line;
	} * line;
	char file[CONFIG_PATH_MAX]; // "": none
	uint32_t held_packets;      // 0: nothing is shaped
};

struct config {
	const struct program *program;
	char *path;
	enum files files;
	struct port_table_settings ports;
	unsigned reading; // number of the port being read
	char socket[CONFIG_SOCKET_MAX];
	char group[CONFIG_GROUP_MAX];
	struct tap_settings taps; // is_on: Linux is the control plane
	struct config_flow flow;
	struct acl_set acl;
	struct config_qos qos;
	struct config_bridges bridges;
	struct own_address *own;
	unsigned n_own;
	uint8_t own_last_bytes[32]; // one bit per value of their last byte, to reject most other
	                            // addresses quickly
	struct route_list routes;
	struct config_tunnels tunnels;
	json_t *streams;      // a JSON array; NULL: none
	json_t *stream_lines; // for each stream {KEY: line}, the stream's own line under ""
};

// config_load for bytes in memory. `name` is the file name for error messages; route files are
// opened as permitted by `files`.
struct source {
	const char *name, *bytes;
	size_t n;
	enum files files;
	const struct program *program;
};
int config_read(struct config **out, const struct source *source, struct error *error);

// Reads a whole file of at most `limit` bytes; *bytes is terminated by a 0 that *n does not count.
// If it is missing, a directory, unreadable or too large, `error` has no line number. Owner:
// caller, free.
struct wanted_file {
	const char *path;
	size_t limit;
	enum files files;
};
int file_read(const struct wanted_file *file, char **bytes, size_t *n, struct error *error);

// Reads the settings: everything except routes and streams, whose nodes are returned to the caller.
struct rest_nodes {
	const struct node *routes, *files, *neighbours, *streams, *bridges;
};
int settings_read(struct reader *reader, const struct node *root, struct config *config,
	struct rest_nodes *rest);
// Reads the key `linux`, after `control`, whose socket determines the name of the namespace.
int linux_read(struct reader *reader, const struct node *node, struct config *config);
// Rejects keys that cannot be combined with `linux`.
int linux_check(struct reader *reader, const struct config *config, const struct rest_nodes *rest);
const struct key_table *linux_tables(unsigned i); // for tests: NULL after the last one
// Reads the key `acl`.
int acl_read(struct reader *reader, const struct node *node, struct config *config);
enum { N_ACL_TABLES = 3 };
const struct key_table *acl_tables(unsigned i); // for tests: NULL after the last one
// Reads the key `qos`. / Frees what was read, / copies it: 0, or -ENOMEM.
int qos_read(struct reader *reader, const struct node *node, struct config *config);
// Whether workers may shape.
int qos_check_workers(struct reader *reader, const struct config *config);
void qos_free(struct config_qos *qos);
int qos_copy(struct config_qos *to, const struct config_qos *from);
extern const struct key_table qos_keys;
// Reads the key `bridges`. / Frees what was read, / copies it: 0, or -ENOMEM, and it must be freed,
// too. / Ports get other numbers.
int bridges_read(struct reader *reader, const struct node *node, struct config *config);
void bridges_free(struct config_bridges *bridges);
int bridges_copy(struct config_bridges *to, const struct config_bridges *from);
void bridges_renumber(struct config_bridges *bridges, const int to[]);
// Limits of storm control: broadcast, multicast, unknown.
int bridge_read_storm(struct reader *reader, const struct node *node, uint32_t pps[MAC_STORMS]);
// Reads the key `vxlan` of the latest bridge. / Keeps numbers at a reload. / Adds devices to a
// table that has all interfaces of ports.
int vxlan_read(struct reader *reader, const struct node *node, struct config *config);
void vxlans_place(struct config_bridges *next, const struct config_bridges *now);
int vxlans_fill(const struct config *config, struct fib *fib, struct error *error);
extern const struct key_table vxlan_keys;
enum { N_BRIDGE_TABLES = 5 };
const struct key_table *bridge_tables(unsigned i); // for tests: NULL after the last one
// Reads the key `flow`.
int flow_read(struct reader *reader, const struct node *node, struct config *config);
extern const struct key_table flow_keys, flow_learn_keys;
// The path of a file: relative names are resolved against the directory of the file `path`. NULL:
// no memory. Owner: caller, free.
char *config_beside(const char *path, const char *name);
// The list of streams as JSON; its contents are interpreted elsewhere.
int streams_read(struct reader *reader, const struct node *list, struct config *config);
// Whether this is one of our addresses, on any port. Fast if it is not.
bool own_has(const struct config *config, const struct wire_addr *addr);

// Reads one member of the list `ports` into config->ports.ports[i].
int port_read(struct reader *reader, const struct node *node, unsigned i);
// The key `vhost` of a port, read into its device without a name; then the whole map gives the
// name.
extern const struct key_table vhost_keys;
int vhost_read_keys(struct reader *reader, const struct node *node, void *base);
int vhost_finish(struct reader *reader, const struct node *node, struct port_settings *port);
// Checks that cross-connects name ports, and replaces indices by names.
int settings_check_xconnects(struct reader *reader, struct port_table_settings *ports);

// A configuration without ports and settings. NULL: no memory.
struct config *config_create(const char *name, const struct program *program);
// Gives the ports of `config`, numbered in the order of the file, the numbers that they have in
// `now`, or free ones. -ENOSPC with `error` set.
int numbers_place(struct config *config, const struct config *now,
	const struct config_numbers *numbers, struct error *error);

// Reads the unicast MAC address of a host; `or_else`: what else may be there, for the error.
int mac_read(struct reader *reader, const struct node *node, struct wire_mac *mac,
	const char *or_else);
// Why this cannot be the MAC address of a host (its kind), NULL: it can.
const char *mac_of_no_box(const struct wire_mac *mac);
// The last address of an IPv4 prefix.
struct wire_addr broadcast_of(const struct wire_prefix *prefix);

// The top level and port tables of each program's file; all tables of a program for tests, NULL
// after the last one.
extern const struct key_table forwarder_top, generator_top, forwarder_port, generator_port,
	forwarder_worker, generator_worker;
const struct key_table *settings_table(const struct program *program, unsigned i);

// One next hop of a line.
struct route_member {
	struct fib_hop hop;
	struct wire_mac mac; // of hop.via, if has_mac
	bool has_mac, has_weight;
	uint8_t weight;
};

// One parsed line. With several members the hop is of kind FIB_GROUP, before fib_group fills it in.
// Errors have no file and line yet.
struct route_line {
	struct fib_route route;
	bool has_tunnel; // it leads into `tunnel`, and its hop is of kind FIB_PEER
	struct iface_tunnel tunnel;
	bool is_label; // of an MPLS label, and not of a prefix: `label`, with the hop of `route`
	struct fib_label label;
	unsigned n_members; // 0 for ADDRESS MASK PORT lines and for blackholes
	struct route_member member[CONFIG_MAX_MEMBERS];
};
// 0, 1 if the line is blank or a comment, or -EINVAL. `text` need not be terminated.
int route_read(const struct port_table_settings *ports, const char *text, size_t n,
	struct route_line *out, struct error *error);
// "ADDRESS lladdr MAC dev PORT", with the words after the address in any order; otherwise as above.
int neighbour_read(const struct port_table_settings *ports, const char *text, size_t n,
	struct neighbour *out, struct error *error);
// The index of the port with this name, or given as a number; -1 if there is none. `n`: length of
// `name`.
int port_find(const struct port_table_settings *ports, const char *name, size_t n);

// Adds one line found at `spot` / all lines of a file. Errors contain file and line.
int routes_add(struct config *config, struct spot spot, const char *text, size_t n,
	struct error *error);
int routes_add_lines(struct config *config, unsigned file, const char *bytes, size_t n,
	struct error *error);
int routes_add_neighbour(struct config *config, const struct neighbour *neighbour,
	struct error *error);
// The number of the tunnel with these settings, added if there is none. / The number, IFACE_NONE:
// there is none. / Keeps numbers at a reload. / Adds tunnels to a table that has all routes.
int tunnels_add(struct config *config, struct spot spot, const struct iface_tunnel *settings,
	uint16_t *iface, struct error *error);
uint16_t tunnels_iface(const struct config *config, const struct iface_tunnel *settings);
void tunnels_place(struct config *config, const struct config *now);
int tunnels_fill(const struct config *config, struct fib *fib, struct error *error);
// The members of a route with a hop of kind FIB_GROUP; returns how many.
unsigned routes_members(const struct route_list *routes, const struct fib_hop *hop,
	const struct fib_member **out);
void routes_free(struct route_list *routes);
