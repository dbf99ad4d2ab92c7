// Compares a fresh dump of the kernel's routes of MPLS labels with what workers do with received
// labels. Control thread; blocks while it runs.
//
// A label that workers leave to Linux is not a difference.
#include "netlink/inside.h"
#include "netlink/mirror_inside.h"

#include "fib/fib_fast.h"

#include <errno.h>
#include <linux/rtnetlink.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum { N_LABELS = FIB_MAX_LABEL + 1, EXPLICIT_NULL4 = 0, EXPLICIT_NULL6 = 2 };

struct inspection {
	struct netlink *netlink;
	const struct netlink_verification *how; // NULL: differences are only counted
	bool *has;                              // labels of Linux
	int n;                                  // differences
};

static void report(struct inspection *look, uint32_t label, const char *what)
{
	char text[128];

	look->n++;
	if (!look->how)
		return;
	snprintf(text, sizeof(text), "MPLS label %u: %s", label, what);
	look->how->cb(look->how->arg, text);
}

static bool is_equal(const struct fib_label *a, const struct fib_label *b)
{
	return a->op == b->op && a->vrf == b->vrf && a->loops == b->loops &&
	       a->ends_stack == b->ends_stack && a->is_pipe == b->is_pipe &&
	       (a->op != FIB_LABEL_FORWARD || !memcmp(&a->hop, &b->hop, sizeof(a->hop)));
}

static void take(void *arg, const struct event *event)
{
	struct inspection *look = arg;
	struct fib_label wanted, found;
	const uint32_t label = event->label.label;

	if (event->kind != EVENT_LABEL || label >= N_LABELS)
		return;
	look->has[label] = true;
	if (!fib_label_next(look->netlink->ctx.fib, label, &found) || found.label != label)
		report(look, label, "Linux has a route for it, workers drop its packets");
	else if (found.op == FIB_LABEL_LINUX)
		return;
	else if (!mpls_wanted(look->netlink->mirror->mpls, &event->label, &wanted))
		report(look, label,
			"workers do not leave it to Linux, though they do not support its route");
	else if (!is_equal(&wanted, &found))
		report(look, label, "workers do something else with its packets than Linux");
}

static int dump(struct inspection *look)
{
	struct {
		struct nlmsghdr head;
		struct rtmsg route;
	} message = {.head = {.nlmsg_len = sizeof(message),
			     .nlmsg_type = RTM_GETROUTE,
			     .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
		.route = {.rtm_family = AF_MPLS}};
	struct listen_request request = {&message, sizeof(message), take, look};

	return listen_ask(look->netlink->listen, &request);
}

// Linux does not report explicit null.
static void find_others(struct inspection *look)
{
	struct fib_label found;

	for (uint32_t from = 0; fib_label_next(look->netlink->ctx.fib, from, &found);
		from = found.label + 1)
		if (!look->has[found.label] && found.label != EXPLICIT_NULL4 &&
			found.label != EXPLICIT_NULL6)
			report(look, found.label,
				"workers have a route for it, which Linux does not have");
}

int verify_labels(struct netlink *netlink, const struct netlink_verification *how)
{
	struct inspection look = {.netlink = netlink, .how = how};
	int err;

	if (!mpls_is_known(netlink->mirror->mpls))
		return 0;
	look.has = calloc(N_LABELS, sizeof(*look.has));
	err = look.has ? dump(&look) : -ENOMEM;
	if (!err)
		find_others(&look);
	free(look.has);
	return err ? err : look.n;
}
