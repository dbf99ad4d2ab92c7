// Shared by the files behind netlink.h. Control thread.
#pragma once

#include "netlink/listen.h"
#include "netlink/mirror.h"
#include "netlink/netlink.h"

struct keep;
struct audit;

struct netlink {
	struct netlink_ctx ctx;
	struct mirror *mirror;
	struct listen *listen;
	struct keep *keep;
	struct audit *audit;
	int epoll, timer;
	uint64_t n_changes; // number of events that affect routes
};

// Neighbour refresh: keeps neighbours used by workers resolved, by marking them managed in the
// kernel or by probing them.
int keep_open(struct keep **out, struct netlink *netlink, struct error *error);
void keep_close(struct keep *keep); // clears the managed flag of our entries
// A bounded amount of work, about ten times a second.
void keep_poll(struct keep *keep);
uint64_t keep_n_managed(const struct keep *keep);

// The slow audit: checks some routes per second while no dump is running.
int audit_open(struct audit **out, struct netlink *netlink, struct error *error);
void audit_close(struct audit *audit);
void audit_poll(struct audit *audit);
void audit_info(const struct audit *audit, struct netlink_info *out);
