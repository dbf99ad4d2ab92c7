// What the files behind sync.h share. Control thread.
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
	uint64_t n_changes; // that were told of what routes depend on
};

// Neighbours that workers use are kept alive by the kernel, or by asking them now and then.
int keep_open(struct keep **out, struct netlink *netlink, struct error *error);
void keep_close(struct keep *keep); // given back
// A bounded piece of work, about ten times a second.
void keep_poll(struct keep *keep);
uint64_t keep_n_managed(const struct keep *keep);

// The slow audit: some routes a second, while nothing is being dumped.
int audit_open(struct audit **out, struct netlink *netlink, struct error *error);
void audit_close(struct audit *audit);
void audit_poll(struct audit *audit);
void audit_info(const struct audit *audit, struct netlink_info *out);
