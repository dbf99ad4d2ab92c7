// What keeps a vhost-user peer from stopping or ending the program. DPDK's library serves all peers
// on one thread, with sockets that block, and workers wait for that thread when they transmit.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

// The connection that the library has just accepted or made on this thread: limits how long the
// library waits for its peer, and returns a descriptor of its socket for vhost_guard_end, -1 if
// there is none.
int vhost_guard_begin(void);
// Ends the connection: the library will see that its peer has gone. The descriptor remains. / Ends
// it, and closes the descriptor. -1 is allowed. Any thread.
void vhost_guard_cut(int connection);
void vhost_guard_end(int connection);

// To be called for what recvmsg has returned, on any socket: if it is the header of a vhost-user
// message that no network device needs, closes the files that came with it and returns 0, as if the
// peer had gone; otherwise `n`.
ssize_t vhost_guard_received(int socket, struct msghdr *packet, ssize_t n);
// The flags for sendmsg on a socket. / To be called if it failed, with errno set.
int vhost_guard_flags(int socket, int flags);
void vhost_guard_failed(int socket);
