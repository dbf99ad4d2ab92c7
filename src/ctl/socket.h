// Private to the room: the socket file and the descriptor that listens on it.
#pragma once

#include "base/complaint.h"

#include <stdbool.h>
#include <sys/stat.h>
#include <sys/un.h>

struct ctl_socket {
	int fd;
	struct sockaddr_un addr;
	dev_t device; // the file that we made, so that no other is removed
	ino_t inode;
	bool made_folder;
};

// As ctl_open says it. Control thread; owner: caller, ctl_socket_close.
int ctl_socket_open(struct ctl_socket *s, const char *path, const char *group,
	struct complaint *why);
// Removes the file, if it is still ours, and the folder, if it was made for it and nothing else is
// in it; closes the descriptor.
void ctl_socket_close(struct ctl_socket *s);
