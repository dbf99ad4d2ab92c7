// One TAP: made or adopted by name, attached, held. Control thread, which is inside the namespace
// while it makes one.
#pragma once

#include "base/complaint.h"
#include "tap/iface.h"

struct twin_wish {
	const char *name, *namespace_name; // the latter for complaints
	struct wire_mac mac;
	unsigned mtu;
	bool keep;
	bool may_be_used; // by another program, which may be the dl3d that is to be followed
};

struct twin {
	int fd;   // our queue, attached
	int held; // one for the holder, detached; -1: none
	int index;
	char name[IFNAMSIZ]; // as it is called now
	bool adopted;        // it was there before us
	bool has_carrier;    // as we set it
};

// Whether Linux takes the name. 0, or -errno with one sentence.
int twin_check_name(const char *name, struct complaint *why);
// Whether a twin of this name can be made or adopted; changes nothing. 0, or -errno with one
// sentence.
int twin_check(const struct twin_wish *wish, const struct iface_sockets *sockets,
	struct complaint *why);
// Whether there is /dev/net/tun, for us. 0, or -errno with one sentence.
int twin_check_device(struct complaint *why);
// Makes or adopts it. A new one is up, with MAC and MTU as wished and no carrier yet; one that was
// there keeps what it has. On error nothing has changed.
int twin_make(struct twin *out, const struct twin_wish *wish, const struct iface_sockets *sockets,
	struct complaint *why);
// Opens a queue for the holder where there is none. Inside the namespace. 0 or -errno.
int twin_hold_again(struct twin *twin);
// Closes its files. It stays where it is kept; `undo`: unless it was new.
void twin_close(struct twin *twin, bool undo);
// Another process holds it no more and nobody is to keep it: it goes with its last file.
void twin_forget(struct twin *twin);
// Tells Linux of the port's carrier. 0 or -errno.
int twin_set_carrier(struct twin *twin, bool carrier);

// A file of /dev/net/tun without a device: reads and writes fail with EBADFD. Or -errno.
int twin_open_blank(void);
