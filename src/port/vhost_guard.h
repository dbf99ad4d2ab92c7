// What keeps a vhost-user peer from stopping or ending the program. DPDK's library serves all peers
// on one thread, with sockets that block, and workers wait for that thread when they transmit.
#pragma once

#include "port/vhost_rules.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

// Whom to ask about each message before the library has it, on the library's thread, which holds no
// locks then. `why`: what is wrong with it already, or NULL. Returns why it is refused, as
// vhost_rules_check does, or NULL; a message with `why` is refused anyway. Before the first device.
typedef const char *vhost_guard_call(int socket, const struct vhost_message *message,
	const char *why);
void vhost_guard_follow(vhost_guard_call *call);

// The connection that the library has just accepted or made on this thread: limits how long the
// library waits for its peer, and returns a descriptor of its socket for vhost_guard_end, -1 if
// there is none; *socket: the library's own.
int vhost_guard_begin(int *socket);
// Ends the connection: the library will see that its peer has gone. The descriptor remains. / Ends
// it, and closes the descriptor. -1 is allowed. Any thread.
void vhost_guard_cut(int connection);
void vhost_guard_end(int connection);

// To be called for what recvmsg has returned, on any socket: if it is the header of a vhost-user
// message that is refused, closes the files that came with it and returns 0, as if the peer had
// gone; otherwise `n`.
ssize_t vhost_guard_received(int socket, struct msghdr *packet, ssize_t n);
// The flags for sendmsg on a socket. / To be called if it failed, with errno set.
int vhost_guard_flags(int socket, int flags);
void vhost_guard_failed(int socket);
