// Reads interfaces by netlink and sets them by ioctl.
#include "tap/netdev.h"

#include <ctype.h>
#include <errno.h>
#include <linux/if_link.h>
#include <linux/if_tun.h>
#include <linux/rtnetlink.h>
#include <net/if_arp.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

enum { ANSWER_MAX = 32768 };

int netdev_open(struct netdev_sockets *sockets)
{
	struct timeval patience = {.tv_sec = 2};

	sockets->plain = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	sockets->netlink = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	if (sockets->plain < 0 || sockets->netlink < 0) {
		int err = -errno;

		netdev_close(sockets);
		return err;
	}
	setsockopt(sockets->netlink, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
	return 0;
}

void netdev_close(struct netdev_sockets *sockets)
{
	if (sockets->plain >= 0)
		close(sockets->plain);
	if (sockets->netlink >= 0)
		close(sockets->netlink);
	sockets->plain = sockets->netlink = -1;
}

// Indexes the attributes of a nest or a message by type; types above `most` are ignored.
static void index_attributes(const struct rtattr *at[], unsigned most, const void *first, int bytes)
{
	memset(at, 0, (most + 1) * sizeof(*at));
	for (const struct rtattr *a = first; RTA_OK(a, bytes); a = RTA_NEXT(a, bytes))
		if ((a->rta_type & NLA_TYPE_MASK) <= most)
			at[a->rta_type & NLA_TYPE_MASK] = a;
}

static uint32_t number(const struct rtattr *a)
{
	uint32_t value = 0;

	if (a)
		memcpy(&value, RTA_DATA(a),
			RTA_PAYLOAD(a) < sizeof(value) ? RTA_PAYLOAD(a) : sizeof(value));
	return value;
}

static void text(const struct rtattr *a, char *out, size_t size)
{
	snprintf(out, size, "%.*s", a ? (int)RTA_PAYLOAD(a) : 0, a ? (char *)RTA_DATA(a) : "");
}

static void read_kind(const struct rtattr *info, struct netdev *out)
{
	const struct rtattr *at[IFLA_INFO_DATA + 1], *tun[IFLA_TUN_NUM_DISABLED_QUEUES + 1];

	index_attributes(at, IFLA_INFO_DATA, RTA_DATA(info), RTA_PAYLOAD(info));
	text(at[IFLA_INFO_KIND], out->kind, sizeof(out->kind));
	if (strcmp(out->kind, "tun") != 0 || !at[IFLA_INFO_DATA])
		return;
	index_attributes(tun, IFLA_TUN_NUM_DISABLED_QUEUES, RTA_DATA(at[IFLA_INFO_DATA]),
		RTA_PAYLOAD(at[IFLA_INFO_DATA]));
	out->is_tap = number(tun[IFLA_TUN_TYPE]) == IFF_TAP;
	out->has_queues = number(tun[IFLA_TUN_MULTI_QUEUE]);
	out->n_attached = number(tun[IFLA_TUN_NUM_QUEUES]);
}

static int read_answer(const struct nlmsghdr *message, int bytes, struct netdev *out)
{
	const struct ifinfomsg *info = NLMSG_DATA(message);
	const struct rtattr
		*at[IFLA_LINKINFO > IFLA_CARRIER ? IFLA_LINKINFO + 1 : IFLA_CARRIER + 1];

	if (!NLMSG_OK(message, (unsigned)bytes))
		return -EBADMSG;
	if (message->nlmsg_type == NLMSG_ERROR)
		return ((const struct nlmsgerr *)NLMSG_DATA(message))->error ?: -EBADMSG;
	if (message->nlmsg_type != RTM_NEWLINK)
		return -EBADMSG;
	index_attributes(at, sizeof(at) / sizeof(at[0]) - 1, IFLA_RTA(info), IFLA_PAYLOAD(message));
	memset(out, 0, sizeof(*out));
	out->index = info->ifi_index;
	out->is_up = info->ifi_flags & IFF_UP;
	text(at[IFLA_IFNAME], out->name, sizeof(out->name));
	out->mtu = number(at[IFLA_MTU]);
	out->has_carrier = number(at[IFLA_CARRIER]);
	if (at[IFLA_ADDRESS] && RTA_PAYLOAD(at[IFLA_ADDRESS]) == sizeof(out->mac.bytes))
		memcpy(out->mac.bytes, RTA_DATA(at[IFLA_ADDRESS]), sizeof(out->mac.bytes));
	if (at[IFLA_LINKINFO])
		read_kind(at[IFLA_LINKINFO], out);
	return 0;
}

int netdev_read(const struct netdev_sockets *sockets, const char *name, struct netdev *out)
{
	static uint32_t sequence;
	struct {
		struct nlmsghdr header;
		struct ifinfomsg info;
		struct rtattr attribute;
		char name[IFNAMSIZ];
	} request = {
		.header = {.nlmsg_type = RTM_GETLINK, .nlmsg_flags = NLM_F_REQUEST},
		.attribute = {.rta_type = IFLA_IFNAME},
	};
	_Alignas(struct nlmsghdr) char answer[ANSWER_MAX];

	snprintf(request.name, sizeof(request.name), "%s", name);
	request.attribute.rta_len = RTA_LENGTH(strlen(request.name) + 1);
	request.header.nlmsg_len = NLMSG_LENGTH(sizeof(request.info)) + request.attribute.rta_len;
	request.header.nlmsg_seq = ++sequence;
	if (send(sockets->netlink, &request, request.header.nlmsg_len, 0) < 0)
		return -errno;
	for (;;) { // skips late replies to earlier requests
		ssize_t n = recv(sockets->netlink, answer, sizeof(answer), 0);

		if (n < 0)
			return -errno;
		if (((struct nlmsghdr *)answer)->nlmsg_seq == sequence)
			return read_answer((struct nlmsghdr *)answer, n, out);
	}
}

int netdev_name(const struct netdev_sockets *sockets, int index, char name[IFNAMSIZ])
{
	struct ifreq request = {.ifr_ifindex = index};

	if (ioctl(sockets->plain, SIOCGIFNAME, &request) != 0)
		return -errno;
	memcpy(name, request.ifr_name, IFNAMSIZ);
	return 0;
}

static int set(const struct netdev_sockets *sockets, const char *name, unsigned long what,
	struct ifreq *request)
{
	snprintf(request->ifr_name, sizeof(request->ifr_name), "%s", name);
	return ioctl(sockets->plain, what, request) == 0 ? 0 : -errno;
}

int netdev_set_mac(const struct netdev_sockets *sockets, const char *name,
	const struct wire_mac *mac)
{
	struct ifreq request = {.ifr_hwaddr.sa_family = ARPHRD_ETHER};

	memcpy(request.ifr_hwaddr.sa_data, mac->bytes, sizeof(mac->bytes));
	return set(sockets, name, SIOCSIFHWADDR, &request);
}

int netdev_set_mtu(const struct netdev_sockets *sockets, const char *name, unsigned mtu)
{
	struct ifreq request = {.ifr_mtu = mtu};

	return set(sockets, name, SIOCSIFMTU, &request);
}

int netdev_set_up(const struct netdev_sockets *sockets, const char *name)
{
	struct ifreq request = {0};
	int err = set(sockets, name, SIOCGIFFLAGS, &request);

	request.ifr_flags |= IFF_UP;
	return err ? err : set(sockets, name, SIOCSIFFLAGS, &request);
}

const char *netdev_name_mistake(const char *name)
{
	if (!name[0])
		return "is empty";
	if (strlen(name) >= IFNAMSIZ)
		return "is longer than 15 bytes";
	if (strcmp(name, "lo") == 0 || strcmp(name, "all") == 0 || strcmp(name, "default") == 0 ||
		strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return "is reserved by Linux";
	for (const char *c = name; *c; c++)
		if (*c == '/' || *c == ':' || *c == '%' || isspace((unsigned char)*c))
			return "contains '/', ':', '%' or a space";
	return NULL;
}
