// Bridges of dl3d: opened at start, changed by a reload, served by the control loop. Control
// thread.
#pragma once

#include "api/inside.h"
#include "mac/mac.h"

// Remote ends of VXLAN devices of the file.
struct vxlan_end {
	uint32_t vtep, remote; // numbers
	uint16_t member;
};
struct vxlan_ends {
	struct vxlan_end *end;
	unsigned n;
};

struct bridges {
	struct mac_table *table;
	bool is_in[PORT_MAX];              // ports in a bridge
	bool was_up[PORT_MAX];             // their links, when they were last read
	bool is_learning;                  // workers told something in the latest turn
	struct vxlan_ends ends, next_ends; // in use; while a change is prepared
};

// Prepares the bridges of `next`; NULL: those of Linux stay, which netlink has. -errno with `error`
// set and nothing to be dropped. / Makes workers use them; cannot fail. / Drops them instead.
int bridges_prepare(struct api_ctx *ctx, const struct config *next, struct mac_pending **out,
	struct error *error);
void bridges_commit(struct api_ctx *ctx, const struct config *next, struct mac_pending *pending);
void bridges_drop(struct api_ctx *ctx, struct mac_pending *pending);
// Learns and ages; forgets what was learnt behind ports whose links have gone down.
void bridges_poll(struct api_ctx *ctx);
// Whether the control loop should come back in some milliseconds.
bool bridges_are_learning(const struct api_ctx *ctx);

// groups.c: how workers forward to groups for the bridge of a domain; null: it does not snoop, or
// Linux does.
json_t *snooping_json(const struct mac_table *table, uint16_t domain);

// vxlans.c. Holds the remote ends of `next`: -errno with `error` set, nothing is held. / Releases
// them. / Has them get floods, and no others, before bridges change. / Releases the former ones
// after that.
int vxlans_hold(struct api_ctx *ctx, const struct config *next, struct error *error);
void vxlans_drop(struct api_ctx *ctx);
void vxlans_apply(struct api_ctx *ctx);
void vxlans_finish(struct api_ctx *ctx);
// struct mac_settings.
uint32_t vxlans_find(void *ctx, uint16_t member, const struct wire_addr *end);
// The bridges of the file with their VXLAN devices as members; NULL: no memory. Owner: caller, /
// freed with this.
struct mac_bridge *vxlans_list(const struct config *config, unsigned *n);
void vxlans_free_list(struct mac_bridge *list, unsigned n);
