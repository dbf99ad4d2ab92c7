// Private to the room: the socket file and the descriptor that listens on it.
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <sys/stat.h>
#include <sys/un.h>

struct rpc_socket {
	int fd;
	struct sockaddr_un addr;
	dev_t device; // the file that we made, so that no other is removed
	ino_t inode;
	bool made_folder;
};

// As rpc_open says it. Control thread; owner: caller, rpc_socket_close.
int rpc_socket_open(struct rpc_socket *s, const char *path, const char *group, struct error *error);
// Removes the file, if it is still ours, and the folder, if it was made for it and nothing else is
// in it; closes the descriptor.
void rpc_socket_close(struct rpc_socket *s);
