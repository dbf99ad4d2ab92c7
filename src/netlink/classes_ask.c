// Asks Linux for the classes of an interface, and the filters that choose them. Control thread.
#include "netlink/inside.h"

#include <linux/rtnetlink.h>

static int dump_of(struct netlink *netlink, uint16_t type, int ifindex,
	void (*take)(void *arg, const struct event *event), void *arg)
{
	const struct {
		struct nlmsghdr head;
		struct tcmsg tc;
	} message = {{.nlmsg_len = sizeof(message),
			     .nlmsg_type = type,
			     .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
		{.tcm_ifindex = ifindex}};
	const struct listen_request request = {&message, sizeof(message), take, arg};

	return listen_ask(netlink->listen, &request);
}

// Filters without a parent are those of the root qdisc.
int classes_ask(void *ops, int ifindex, void (*take)(void *arg, const struct event *event),
	void *arg)
{
	const int err = dump_of(ops, RTM_GETTCLASS, ifindex, take, arg);

	return err ? err : dump_of(ops, RTM_GETTFILTER, ifindex, take, arg);
}
