// See reject.h. Linux selects the source address and the route of an error, as for its own.
#include "tap/reject.h"

#include "base/bits.h"
#include "wire/icmp_error.h"

#include <errno.h>
#include <linux/icmp.h>
#include <netinet/icmp6.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

// The sockets only send: filters keep what Linux receives out of their queues.
static int open_one(int family, int protocol, int level, int filter_option)
{
	const struct icmp_filter no_types4 = {UINT32_MAX};
	struct icmp6_filter no_types6;
	int fd = socket(family, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, protocol);

	if (fd < 0)
		return -errno;
	ICMP6_FILTER_SETBLOCKALL(&no_types6);
	const void *filter = family == AF_INET ? (const void *)&no_types4 : &no_types6;
	const socklen_t n = family == AF_INET ? sizeof(no_types4) : sizeof(no_types6);

	if (setsockopt(fd, level, filter_option, filter, n) == 0)
		return fd;
	int err = -errno;

	close(fd);
	return err;
}

int reject_open(struct reject *reject)
{
	reject->socket4 = open_one(AF_INET, IPPROTO_ICMP, SOL_RAW, ICMP_FILTER);
	reject->socket6 = open_one(AF_INET6, IPPROTO_ICMPV6, IPPROTO_ICMPV6, ICMP6_FILTER);
	const int err = MIN_OF(MIN_OF(reject->socket4, reject->socket6), 0);

	if (err && err != -EAFNOSUPPORT) // a kernel without IPv6
		reject_close(reject);
	return err == -EAFNOSUPPORT ? 0 : err;
}

void reject_close(struct reject *reject)
{
	if (reject->socket4 >= 0)
		close(reject->socket4);
	if (reject->socket6 >= 0)
		close(reject->socket6);
	reject->socket4 = reject->socket6 = -1;
}

static bool send_to(int fd, const struct wire_icmp_error *error, const void *to, socklen_t n)
{
	return sendto(fd, error->bytes, error->n, MSG_DONTWAIT, to, n) >= 0;
}

bool reject_packet(const struct reject *reject, const struct rte_mbuf *mbuf)
{
	struct sockaddr_in to4 = {.sin_family = AF_INET};
	struct sockaddr_in6 to6 = {.sin6_family = AF_INET6};
	struct wire_icmp_error error;

	if (!wire_icmp_prohibited(&error, rte_pktmbuf_mtod(mbuf, const uint8_t *), mbuf->data_len))
		return true;
	if (error.to.family == 6) {
		memcpy(&to6.sin6_addr, error.to.bytes, sizeof(to6.sin6_addr));
		return send_to(reject->socket6, &error, &to6, sizeof(to6));
	}
	memcpy(&to4.sin_addr, error.to.bytes, sizeof(to4.sin_addr));
	return send_to(reject->socket4, &error, &to4, sizeof(to4));
}
