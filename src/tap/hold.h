// Protocol between dl3d and the holder, over a SOCK_SEQPACKET socket. One message in each
// direction: "hold KEY" with a descriptor, or "release KEY"; the reply is "ok" or "no". A key is
// NAMESPACE/INTERFACE.
#pragma once

#include "base/error.h"
#include "tap/tap.h"

#define HOLD_WORD "hold "
#define HOLD_RELEASE_WORD "release "
#define HOLD_OK "ok"
#define HOLD_NO "no"

enum { HOLD_KEY_MAX = TAP_NAME_MAX + PORT_NAME_MAX + 1, HOLD_MESSAGE_MAX = HOLD_KEY_MAX + 16 };

// The holder's socket address; 0 or -ENAMETOOLONG.
struct sockaddr_un;
int hold_address(const char *path, struct sockaddr_un *out);

// Connects to the holder listening at `path`. -errno: there is none.
int hold_connect(const char *path);
// Same, but starts a holder if there is none. -errno with `error` set.
int hold_start(const char *path, struct error *error);
// Passes a descriptor to the holder; the caller may then close it.
int hold_give(int holder, const char *key, int fd);
// Makes the holder close it. 0 or -errno.
int hold_release(int holder, const char *key);
// Whether the holder has closed the connection.
bool hold_has_ended(int holder);
