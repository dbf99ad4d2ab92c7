// What dl3d and the holder say to each other over a SOCK_SEQPACKET socket. One message each way:
// "hold KEY" with a descriptor, "release KEY", answered with "ok" or "no". A key is
// NAMESPACE/INTERFACE.
#pragma once

#include "base/error.h"
#include "tap/tap.h"

#define HOLD_WORD "hold "
#define HOLD_RELEASE_WORD "release "
#define HOLD_OK "ok"
#define HOLD_NO "no"

enum { HOLD_KEY_MAX = TAP_NAME_MAX + PORT_NAME_MAX + 1, HOLD_MESSAGE_MAX = HOLD_KEY_MAX + 16 };

// The holder's address; 0 or -ENAMETOOLONG.
struct sockaddr_un;
int hold_address(const char *path, struct sockaddr_un *out);

// Connects to the holder that listens there. -errno: there is none.
int hold_connect(const char *path);
// The same, but starts one where there is none. -errno with `error` set.
int hold_start(const char *path, struct error *error);
// Hands over a descriptor, which the caller may then close. / Has it dropped. 0 or -errno.
int hold_give(int holder, const char *key, int fd);
int hold_release(int holder, const char *key);
// Whether the other end has gone.
bool hold_has_ended(int holder);
