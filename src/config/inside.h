// What the files of this room share: the configuration in memory and its parts. Control thread.
#pragma once

#include "config/config.h"
#include "config/rows.h"
#include "tap/tap.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
	CONFIG_MAX_ADDRESSES = 4096, // of all ports together
	CONFIG_MAX_ROUTE_FILES = 64,
	CONFIG_MAX_MEMBERS = 64, // next hops of one route
	CONFIG_SOCKET_MAX = 108,
	CONFIG_GROUP_MAX = 33,
};

// An address of ours with the prefix that is connected through it.
struct own_address {
	struct wire_addr addr;
	struct wire_prefix prefix;
	uint8_t port;
	int line;
};

// Where an entry was written: a file by its number in `file`, and the line.
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

// All routes of a configuration, ready for fib_change, in the order in which they were written.
struct route_list {
	struct fib_change *change;
	struct spot *spot;
	size_t n, room;
	struct fib_member
		*member; // of all groups; a route's hop of kind FIB_GROUP says which are its own
	size_t n_members, member_room;
	bool has_groups;
	struct neighbour *slot; // open-addressing table by port and address
	size_t n_neighbours, n_slots;
	char *file[CONFIG_MAX_ROUTE_FILES + 1]; // [0] the YAML file itself
	unsigned n_files;
};

// What the file of a program is, beyond what all have.
struct program {
	const char *name;   // "dl3d"
	const char *socket; // unless the file says another
	const char *help;
	const struct key_table *top, *port;
	void (*print_example)(FILE *out);
	uint16_t n_queues; // receive queues of a port; 0: as the file says
	bool has_taps;     // takes --hold
};
extern const struct program program_forwarder, program_generator;
const struct program *program_find(const char *name); // the forwarder, where the name is no other

// Files that may be opened: none, for the text alone is looked at; any; regular ones, for a program
// that runs waits for nobody who is to write into a pipe.
enum files { FILES_NONE, FILES_ANY, FILES_REGULAR };

struct config {
	const struct program *program;
	char *path;
	enum files files;
	struct port_table_settings ports;
	char socket[CONFIG_SOCKET_MAX];
	char group[CONFIG_GROUP_MAX];
	struct tap_settings taps; // is_on: Linux is the control plane
	struct own_address *own;
	unsigned n_own;
	uint8_t own_last_bytes[32]; // a bit for each last byte of them, so that most others are
	                            // told apart at once
	struct route_list routes;
	json_t *streams;      // a list; NULL: none
	json_t *stream_lines; // for each of them {KEY: line}, its own line under ""
};

// config_load on bytes in memory. `name` is the file's name in errors; route files are opened
// as far as `files` says.
struct source {
	const char *name, *bytes;
	size_t n;
	enum files files;
	const struct program *program;
};
int config_read(struct config **out, const struct source *source, struct error *error);

// A whole file, at most `limit` bytes; *bytes ends with a 0 that *n does not count. One sentence
// without a line number when it is missing, a directory, unreadable or too large. Owner: caller,
// free.
struct wanted_file {
	const char *path;
	size_t limit;
	enum files files;
};
int file_read(const struct wanted_file *file, char **bytes, size_t *n, struct error *error);

// The settings part of the file: everything but routes and streams. Fills the config and leaves
// their nodes for the caller.
struct rest_nodes {
	const struct node *routes, *files, *neighbours, *streams;
};
int settings_read(struct reader *reader, const struct node *root, struct config *config,
	struct rest_nodes *rest);
// The key `linux`, after `control`, whose socket names the namespace. / What the file may not say
// beside it.
int linux_read(struct reader *reader, const struct node *node, struct config *config);
int linux_check(struct reader *reader, const struct config *config, const struct rest_nodes *rest);
const struct key_table *linux_tables(unsigned i); // for tests: NULL at the end
// The list of streams, as JSON; what its members mean is read by others.
int streams_read(struct reader *reader, const struct node *list, struct config *config);
// True for an address of ours, on any port. Cheap for those that are not.
bool own_has(const struct config *config, const struct wire_addr *addr);

// One member of the list `ports`, into config->ports.ports[i].
int port_read(struct reader *reader, const struct node *node, unsigned i);

// What kind of MAC address no box has, NULL: one may have it.
const char *mac_of_no_box(const struct wire_mac *mac);
// The last address of an IPv4 prefix.
struct wire_addr broadcast_of(const struct wire_prefix *prefix);

// The first level and the ports of each program's file; all tables of one, for tests: NULL at the
// end.
extern const struct key_table forwarder_top, generator_top, forwarder_port, generator_port;
const struct key_table *settings_table(const struct program *program, unsigned i);

// One of the next hops in a line.
struct route_member {
	struct fib_hop hop;
	struct wire_mac mac; // of hop.via, when has_mac
	bool has_mac, has_weight;
	uint8_t weight;
};

// One line in its text form. Several members: the hop is of kind FIB_GROUP and still without what
// fib_group gives. The sentence has no file and line yet.
struct route_line {
	struct fib_route route;
	unsigned n_members; // 0 for triples and drops
	struct route_member member[CONFIG_MAX_MEMBERS];
};
// 0, 1 when the line is blank or a comment, or -EINVAL. `text` need not end with a 0.
int route_read(const struct port_table_settings *ports, const char *text, size_t n,
	struct route_line *out, struct error *error);
// "ADDRESS lladdr MAC dev PORT", words after the address in any order; else as above.
int neighbour_read(const struct port_table_settings *ports, const char *text, size_t n,
	struct neighbour *out, struct error *error);
// The port of that name, else of that index; -1 when there is none. `n`: letters of `name`.
int port_find(const struct port_table_settings *ports, const char *name, size_t n);

// Adds a line found at `spot` / all lines of a file's bytes. Errors carry file and line.
int routes_add(struct config *config, struct spot spot, const char *text, size_t n,
	struct error *error);
int routes_add_lines(struct config *config, unsigned file, const char *bytes, size_t n,
	struct error *error);
int routes_add_neighbour(struct config *config, const struct neighbour *neighbour,
	struct error *error);
// The members of a route whose hop is of kind FIB_GROUP; returns how many.
unsigned routes_members(const struct route_list *routes, const struct fib_hop *hop,
	const struct fib_member **out);
void routes_free(struct route_list *routes);
