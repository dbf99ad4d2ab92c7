// Netlink sockets: opened in a namespace, read many datagrams at once. Inside listen. Control
// thread.
#pragma once

#include <linux/netlink.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// A socket in the namespace that `namespace` is an open file of; strict requests, extended errors.
// Its descriptor, or -errno (-EPROTONOSUPPORT: this kernel has no such family).
int socket_open(int protocol, int namespace);
// The namespace of the calling thread as an open file, or -errno.
int netlink_namespace(void);
// Makes room for `bytes` of unread messages: by force, else as much as is allowed. What it is now.
uint32_t socket_make_space(int fd, uint32_t bytes);
int socket_join(int fd, const uint16_t groups[], unsigned n);

// Datagrams that were read and wait for their turn.
enum { NETLINK_SLOTS = 64, NETLINK_SLOT_BYTES = 32 << 10 };
struct socket_slot {
	uint32_t bytes;
	uint8_t protocol; // whose socket
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
// Reads what is there, without waiting, into the free slots. How many came, or -errno (-ENOBUFS:
// messages were lost).
int socket_buffer_open(int fd, uint8_t protocol, struct socket_buffer *held);

// Reads one datagram of at most `room` bytes. How many, 0: nothing is there (or not within the
// socket's time), -EBADMSG: cut or not from the kernel; -errno.
int socket_read(int fd, void *bytes, size_t room);

// Goes through the messages of one datagram, as far as they are whole. NULL: at the end, or (n is
// not 0) what is left is nonsense.
struct socket_rest {
	const uint8_t *bytes;
	uint32_t n;
};
const struct nlmsghdr *socket_next(struct socket_rest *rest);
