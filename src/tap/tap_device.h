// One TAP: created or adopted by name, attached, held. Control thread, inside the namespace while
// creating one.
#pragma once

#include "base/error.h"
#include "tap/netdev.h"

struct tap_request {
	const char *name, *namespace_name; // namespace_name: for error messages
	struct wire_mac mac;
	unsigned mtu;
	bool keep;
	bool may_be_used; // by another program, possibly the dl3d to be replaced
};

struct tap_device {
	int fd;   // our queue, attached
	int held; // the holder's queue, detached; -1: none
	int index;
	char name[IFNAMSIZ]; // its current name
	bool adopted;        // it existed before us
	bool has_carrier;    // as last set by us
};

// Whether Linux accepts the name. 0, or -errno with `error` set.
int tap_device_check_name(const char *name, struct error *error);
// Whether a TAP interface of this name can be created or adopted; changes nothing. 0, or -errno
// with `error` set.
int tap_device_check(const struct tap_request *request, const struct netdev_sockets *sockets,
	struct error *error);
// Whether we can use /dev/net/tun. 0, or -errno with `error` set.
int tap_device_check_device(struct error *error);
// Creates or adopts it. A new one is up, with the requested MAC address and MTU and without
// carrier; an existing one keeps its settings. On error nothing has changed.
int tap_device_make(struct tap_device *out, const struct tap_request *request,
	const struct netdev_sockets *sockets, struct error *error);
// Opens a queue for the holder if there is none. Inside the namespace. 0 or -errno.
int tap_device_hold_again(struct tap_device *tap);
// Closes its files. It persists if it is to be kept; with `undo`, unless it was new.
void tap_device_close(struct tap_device *tap, bool undo);
// For an interface that no other process holds and that is not kept: it is deleted with its last
// file.
void tap_device_forget(struct tap_device *tap);
// Sets the carrier of the TAP to that of the port. 0 or -errno.
int tap_device_set_carrier(struct tap_device *tap, bool carrier);

// Opens /dev/net/tun without a device: reads and writes fail with EBADFD. Returns -errno on error.
int tap_device_open_blank(void);
