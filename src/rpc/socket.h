// Private to rpc: the socket file and its listening descriptor.
#pragma once

#include "base/error.h"

#include <stdbool.h>
#include <sys/stat.h>
#include <sys/un.h>

struct rpc_socket {
	int fd;
	struct sockaddr_un addr;
	dev_t device; // identifies the file we created, so that no other is removed
	ino_t inode;
	bool made_folder;
};

// See rpc_open. Control thread; owner: caller, rpc_socket_close.
int rpc_socket_open(struct rpc_socket *s, const char *path, const char *group, struct error *error);
// Removes the file if it is still ours, and the directory if it was created for it and is otherwise
// empty; closes the descriptor.
void rpc_socket_close(struct rpc_socket *s);
