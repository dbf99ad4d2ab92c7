// One TAP: made or adopted by name, attached, held. Control thread, which is inside the namespace
// while it makes one.
#pragma once

#include "base/error.h"
#include "tap/netdev.h"

struct tap_request {
	const char *name, *namespace_name; // the latter for errors
	struct wire_mac mac;
	unsigned mtu;
	bool keep;
	bool may_be_used; // by another program, which may be the dl3d that is to be followed
};

struct tap_device {
	int fd;   // our queue, attached
	int held; // one for the holder, detached; -1: none
	int index;
	char name[IFNAMSIZ]; // as it is called now
	bool adopted;        // it was there before us
	bool has_carrier;    // as we set it
};

// Whether Linux takes the name. 0, or -errno with one sentence.
int tap_device_check_name(const char *name, struct error *error);
// Whether a TAP interface of this name can be made or adopted; changes nothing. 0, or -errno with
// one sentence.
int tap_device_check(const struct tap_request *request, const struct netdev_sockets *sockets,
	struct error *error);
// Whether there is /dev/net/tun, for us. 0, or -errno with one sentence.
int tap_device_check_device(struct error *error);
// Makes or adopts it. A new one is up, with MAC and MTU as wished and no carrier yet; one that was
// there keeps what it has. On error nothing has changed.
int tap_device_make(struct tap_device *out, const struct tap_request *request,
	const struct netdev_sockets *sockets, struct error *error);
// Opens a queue for the holder where there is none. Inside the namespace. 0 or -errno.
int tap_device_hold_again(struct tap_device *tap);
// Closes its files. It stays where it is kept; `undo`: unless it was new.
void tap_device_close(struct tap_device *tap, bool undo);
// Another process holds it no more and nobody is to keep it: it goes with its last file.
void tap_device_forget(struct tap_device *tap);
// Tells Linux of the port's carrier. 0 or -errno.
int tap_device_set_carrier(struct tap_device *tap, bool carrier);

// A file of /dev/net/tun without a device: reads and writes fail with EBADFD. Or -errno.
int tap_device_open_blank(void);
