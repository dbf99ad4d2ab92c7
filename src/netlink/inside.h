// Shared by the files behind netlink.h. Control thread.
#pragma once

#include "netlink/listen.h"
#include "netlink/mirror.h"
#include "netlink/netlink.h"

struct neigh_refresh;
struct audit;

struct netlink {
	struct netlink_ctx ctx;
	struct mirror *mirror;
	struct listen *listen;
	struct neigh_refresh *refresh;
	struct audit *audit;
	int epoll, timer;
	uint64_t n_changes; // number of events that affect routes
};

// Neighbour refresh: keeps neighbours used by workers resolved, by marking them managed in the
// kernel or by probing them.
int neigh_refresh_open(struct neigh_refresh **out, struct netlink *netlink, struct error *error);
void neigh_refresh_close(struct neigh_refresh *refresh); // clears the managed flag of our entries
// A bounded amount of work, about ten times a second.
void neigh_refresh_poll(struct neigh_refresh *refresh);
uint64_t neigh_refresh_n_managed(const struct neigh_refresh *refresh);

// The slow audit: checks some routes per second while no dump is running.
int audit_open(struct audit **out, struct netlink *netlink, struct error *error);
void audit_close(struct audit *audit);
void audit_poll(struct audit *audit);
void audit_info(const struct audit *audit, struct netlink_info *out);
