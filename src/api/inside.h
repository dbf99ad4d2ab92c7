// Shared by the files of this module: the methods and names for display. Control thread.
#pragma once

#include "api/api.h"

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

// Each row of schema/methods.toml needs its function here; a missing one breaks the build.
#define METHOD_PROTOTYPE(method, word, takes, means)                                               \
	json_t *method_##method(void *ctx, const json_t *params, struct error *error);
SCHEMA_METHODS(METHOD_PROTOTYPE)
#undef METHOD_PROTOTYPE

// The packet account and the packets in flight: received + injected + copied - sent - punted -
// dropped, which is too high by packets that are processed during the read, and never too low.
void account_read(const struct api_ctx *ctx, struct stats_account *account);
json_t *account_json(const struct stats_account *account);

// ports_change.c: opens the ports that only `next` has / closes them again, / lets workers poll and
// use them, / closes the ports that `next` has not. On failure none is open and `error` is set.
// `next` is not yet the current configuration.
int ports_open_added(struct api_ctx *ctx, const struct config *next, struct error *error);
void ports_take_back_added(struct api_ctx *ctx, const struct config *next);
void ports_begin_added(struct api_ctx *ctx, const struct config *next);
void ports_close_removed(struct api_ctx *ctx, const struct config *next);
// The numbers of ports to which the table refers.
void ports_find_kept(const struct api_ctx *ctx, struct config_numbers *out);
// One port for display.
json_t *port_json(const struct api_ctx *ctx, unsigned port);
// The counters of a port since it was added.
void port_counters(const struct api_ctx *ctx, unsigned port, struct stats_port *out);

// Packets counted by all workers under a next hop's id, including earlier users of the id.
uint64_t hop_counted(const void *ctx, uint32_t id);

// Names: kind of a route, name of a port (NULL for IFACE_NONE), class of a verdict (NULL for
// CLASS_NONE), netlink state, MAC address.
const char *kind_word(unsigned kind);
const char *port_word(const struct api_ctx *ctx, unsigned port);
const char *class_word(unsigned class);
const char *mirror_word(const struct netlink *netlink);
json_t *mac_json(const struct wire_mac *mac);
json_t *addr_json(const struct wire_addr *addr); // null for family 0
json_t *prefix_json(const struct wire_prefix *prefix);
// Sets kind, via, port and interface; labels and label_ttl if packets get labels.
void set_hop(json_t *json, const struct api_ctx *ctx, const struct fib_hop *hop);
// Sets the members of a group and returns how many; other hops have none.
unsigned set_members(json_t *json, const struct api_ctx *ctx, const struct fib_hop *hop);
// Interfaces and VRFs by their Linux names; if Linux is not the control plane, an interface is a
// port, and the only VRF is "main". NULL: unknown, or IFACE_NONE; a bridge is no port.
const char *iface_word(const struct api_ctx *ctx, unsigned iface);
const char *port_of_iface(const struct api_ctx *ctx, unsigned iface);
// Whether packets to a hop leave by the port of a bridge, and by which one: NULL: workers find
// none.
bool hop_is_on_bridge(const struct api_ctx *ctx, const struct fib_hop *hop);
const char *port_behind_bridge(const struct api_ctx *ctx, const struct fib_hop *hop,
	const struct wire_mac *mac);
// The name of an interface as of now, as settings of other modules want it (`ctx`: struct api_ctx);
// NULL: there is no such interface.
const char *api_iface_name(void *ctx, unsigned iface);
const char *vrf_word(const struct api_ctx *ctx, unsigned vrf);
// The number of the port with this name. -EINVAL with `error` set: there is none.
int port_named(const struct api_ctx *ctx, const char *name, int *out, struct error *error);
// Lookup by name; a NULL name is allowed and leaves `out` unchanged. -EINVAL with `error` set.
int iface_find(const struct api_ctx *ctx, const char *name, int *out, struct error *error);
int vrf_find(const struct api_ctx *ctx, const char *name, uint16_t *out, struct error *error);
// VLAN tags of an interface, outer one first: ["802.1ad 10", "802.1Q 20"].
json_t *tags_json(const struct iface *iface);
// The tags with which packets to a hop leave: on a bridge they depend on the port.
json_t *sent_tags_json(const struct api_ctx *ctx, const struct fib_hop *hop,
	const struct wire_mac *mac);
json_t *number_json(uint64_t number);
// Bytes in hex: blanks and colons between them are ignored. Returns how many; -EINVAL: it is no
// hex, or there are more than `most`. / As text of two digits each.
int hex_read(const char *text, uint8_t bytes[], int most);
json_t *hex_json(const uint8_t bytes[], size_t n);
