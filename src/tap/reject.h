// Sends ICMP errors about packets that access lists have rejected, instead of the packets: Linux
// would forward them.
#pragma once

#include <rte_mbuf.h>
#include <stdbool.h>

// Raw sockets in the namespace of the TAP interfaces; -1: not open.
struct reject {
	int socket4, socket6;
};

// Opens them in the namespace of the calling thread. 0 or -errno. Control thread.
int reject_open(struct reject *reject);
void reject_close(struct reject *reject);
// Sends the error, if one may be sent. False: Linux did not accept it. Tap thread.
bool reject_packet(const struct reject *reject, const struct rte_mbuf *mbuf);
