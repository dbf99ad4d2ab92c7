// See tunnel_facts.h. Control thread.
#include "netlink/tunnel_facts.h"

#include "netlink/listen_inside.h"

#include <errno.h>
#include <linux/fou.h>
#include <linux/genetlink.h>
#include <linux/rtnetlink.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { ANSWER_BYTES = 32 << 10 };

static int open_one(int protocol, int namespace)
{
	const struct timeval second = {.tv_sec = 1};
	const int fd = socket_open(protocol, namespace);

	if (fd >= 0)
		setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &second, sizeof(second));
	return fd;
}

int tunnel_facts_open(struct tunnel_facts *facts)
{
	const int here = netlink_namespace();

	*facts = (struct tunnel_facts){.generic = -1, .route = -1};
	if (here < 0)
		return here;
	facts->generic = open_one(NETLINK_GENERIC, here);
	facts->route = open_one(NETLINK_ROUTE, here);
	close(here);
	return facts->generic < 0 ? facts->generic : facts->route < 0 ? facts->route : 0;
}

void tunnel_facts_close(struct tunnel_facts *facts)
{
	if (facts->generic >= 0)
		close(facts->generic);
	if (facts->route >= 0)
		close(facts->route);
}

// What takes the messages of an answer, other than its end.
struct taker {
	void (*take)(void *arg, const struct nlmsghdr *message);
	void *arg;
};

// Returns 1: it is the last message; 0: more come; -errno.
static int take(const struct nlmsghdr *message, const struct taker *taker)
{
	int err = 0;

	if (message->nlmsg_type == NLMSG_ERROR || message->nlmsg_type == NLMSG_DONE) {
		if (message->nlmsg_len >= NLMSG_LENGTH(sizeof(err)))
			memcpy(&err, NLMSG_DATA(message), sizeof(err));
		return err < 0 ? err : 1;
	}
	taker->take(taker->arg, message);
	return 0;
}

static int ask_one(int fd, const struct nlmsghdr *question, const struct taker *taker)
{
	static uint8_t answer[ANSWER_BYTES] __attribute__((aligned(NLMSG_ALIGNTO)));
	struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};

	while (recv(fd, answer, sizeof(answer), MSG_DONTWAIT) > 0)
		continue; // of a question that was given up
	if (sendto(fd, question, question->nlmsg_len, 0, (struct sockaddr *)&kernel,
		    sizeof(kernel)) < 0)
		return -errno;
	for (;;) {
		const int n = socket_read(fd, answer, sizeof(answer));
		struct socket_rest rest = {answer, MAX_OF(n, 0)};
		const struct nlmsghdr *message;

		if (n <= 0)
			return n ? n : -ETIMEDOUT;
		while ((message = socket_next(&rest))) {
			const int end = take(message, taker);

			if (end)
				return end < 0 ? end : 0;
		}
	}
}

// --- ports

static void take_family(void *arg, const struct nlmsghdr *message)
{
	if (message->nlmsg_type == GENL_ID_CTRL)
		*(uint16_t *)arg = decode_family(message);
}

static int ask_family(struct tunnel_facts *facts)
{
	const struct {
		struct nlmsghdr head;
		struct genlmsghdr command;
		struct nlattr attr;
		char name[sizeof(FOU_GENL_NAME)];
	} question = {.head = {.nlmsg_len = sizeof(question),
			      .nlmsg_type = GENL_ID_CTRL,
			      .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK},
		.command = {.cmd = CTRL_CMD_GETFAMILY, .version = 1},
		.attr = {NLA_HDRLEN + sizeof(FOU_GENL_NAME), CTRL_ATTR_FAMILY_NAME},
		.name = FOU_GENL_NAME};

	return ask_one(facts->generic, &question.head,
		&(struct taker){take_family, &facts->family});
}

struct ports {
	struct mirror_udp_port *out;
	unsigned most, n;
};

static void take_port(void *arg, const struct nlmsghdr *message)
{
	struct ports *ports = arg;
	struct mirror_udp_port one;

	if (!decode_udp_port(message, &one))
		return;
	if (ports->n < ports->most)
		ports->out[ports->n] = one;
	ports->n++;
}

int tunnel_facts_ports(struct tunnel_facts *facts, struct mirror_udp_port out[], unsigned most)
{
	struct ports ports = {out, most, 0};
	int err = facts->family ? 0 : ask_family(facts);

	if (err || !facts->family)
		return err == -ENOENT ? 0 : err;
	const struct {
		struct nlmsghdr head;
		struct genlmsghdr command;
	} question = {.head = {.nlmsg_len = sizeof(question),
			      .nlmsg_type = facts->family,
			      .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP},
		.command = {.cmd = FOU_CMD_GET, .version = FOU_GENL_VERSION}};
	err = ask_one(facts->generic, &question.head, &(struct taker){take_port, &ports});
	if (err == -ENOENT || err == -EOPNOTSUPP) { // the module was removed
		facts->family = 0;
		return 0;
	}
	return err ? err : (int)ports.n;
}

// --- routes

struct route_question {
	struct nlmsghdr head;
	struct rtmsg route;
	uint8_t attrs[64];
};

static void add_attr(struct route_question *question, uint16_t type, const void *value, size_t n)
{
	const struct rtattr attr = {RTA_LENGTH(n), type};
	uint8_t *at = (uint8_t *)question + question->head.nlmsg_len;

	memcpy(at, &attr, sizeof(attr));
	memcpy(at + RTA_LENGTH(0), value, n);
	question->head.nlmsg_len += RTA_ALIGN(attr.rta_len);
}

static void take_mtu(void *arg, const struct nlmsghdr *message)
{
	if (message->nlmsg_type == RTM_NEWROUTE)
		*(uint32_t *)arg = decode_route_mtu(message);
}

uint32_t tunnel_facts_mtu(struct tunnel_facts *facts, const struct wire_addr *addr, int ifindex)
{
	const size_t bytes = addr->family == 4 ? 4 : 16;
	struct route_question question = {.head = {.nlmsg_len =
							   NLMSG_LENGTH(sizeof(question.route)),
						  .nlmsg_type = RTM_GETROUTE,
						  .nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK},
		.route = {.rtm_family = addr->family == 4 ? AF_INET : AF_INET6,
			.rtm_dst_len = bytes * 8}};
	uint32_t mtu = 0;

	add_attr(&question, RTA_DST, addr->bytes, bytes);
	if (ifindex)
		add_attr(&question, RTA_OIF, &ifindex, sizeof(ifindex));
	return ask_one(facts->route, &question.head, &(struct taker){take_mtu, &mtu}) ? 0 : mtu;
}
