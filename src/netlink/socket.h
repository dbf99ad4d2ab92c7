// Netlink sockets: opened in a namespace, reading many datagrams at once. Internal to listen.
// Control thread.
#pragma once

#include <linux/netlink.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Opens a socket in the namespace given by the open file `namespace`, with strict checking and
// extended acks. Returns its descriptor or -errno (-EPROTONOSUPPORT: protocol not supported by this
// kernel).
int socket_open(int protocol, int namespace);
// Opens the namespace of the calling thread. Returns its descriptor or -errno.
int netlink_namespace(void);
// Sets the receive buffer to `bytes`: by force, otherwise as much as is allowed. Returns the
// resulting size.
uint32_t socket_make_space(int fd, uint32_t bytes);
int socket_join(int fd, const uint16_t groups[], unsigned n);

// Datagrams that were read and are waiting to be processed.
enum { NETLINK_SLOTS = 64, NETLINK_SLOT_BYTES = 32 << 10 };
struct socket_slot {
	uint32_t bytes;
	uint8_t protocol; // the protocol of the socket
	bool is_cut;      // longer than a slot
	bool is_foreign;
};
struct socket_buffer {
	uint8_t *bytes; // NETLINK_SLOTS of NETLINK_SLOT_BYTES
	unsigned n;
	struct socket_slot slot[NETLINK_SLOTS];
};
static inline const uint8_t *socket_slot(const struct socket_buffer *held, unsigned i)
{
	return held->bytes + (size_t)i * NETLINK_SLOT_BYTES;
}
// Reads available datagrams into the free slots without blocking. Returns how many were read, or
// -errno (-ENOBUFS: messages were lost).
int socket_buffer_open(int fd, uint8_t protocol, struct socket_buffer *held);

// Reads one datagram of at most `room` bytes. Returns its length; 0: nothing available (or not
// within the socket's timeout); -EBADMSG: truncated or not from the kernel; otherwise -errno.
int socket_read(int fd, void *bytes, size_t room);

// Iterates over the complete messages of one datagram. NULL: at the end, or (n is not 0) the rest
// is malformed.
struct socket_rest {
	const uint8_t *bytes;
	uint32_t n;
};
const struct nlmsghdr *socket_next(struct socket_rest *rest);
