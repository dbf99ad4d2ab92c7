// The hosts that ports with addresses play: who answers ARP requests and neighbour solicitations
// for them, and who asks for the MAC address of the next hop of streams with "dst_mac: auto".
// Control thread.
#pragma once

#include "gen/queue.h"
#include "gen/stream.h"
#include "port/port.h"
#include "wire/neighbour.h"

// Whom a stream's frames go to, on its port and with its VLAN tag.
struct neighbour {
	struct wire_addr addr;
	struct wire_mac mac; // is_known
	uint16_t vlan_tag;
	uint8_t port;
	bool has_vlan, is_known;
};

struct neighbours {
	const struct port_table_settings *settings; // borrowed
	struct post *post[PORT_MAX];                // owned; NULL: the port has no address
	uint64_t n_posted;                          // atomic: frames put into posts, for workers
	struct wire_mac mac[PORT_MAX];
	uint64_t n_malformed[PORT_MAX];
	unsigned n_wanted;
	struct neighbour wanted[GEN_MAX_STREAMS]; // of the newest list of streams
};

struct neighbours_terms {
	struct port_table *ports;
	const struct port_table_settings *settings;
	const uint8_t *worker_of; // by port index
};
// 0 or -ENOMEM with `error` set. Owner: caller, neighbours_free, also after an error.
int neighbours_make(struct neighbours *n, const struct neighbours_terms *terms,
	struct error *error);
void neighbours_free(struct neighbours *n);

// Reads what workers have heard, at most NEIGHBOURS_AT_ONCE frames of each port, and answers what
// is asked for addresses of ports, and for those that streams send from or to there, within the
// port's networks.
enum { NEIGHBOURS_AT_ONCE = 32 };
void neighbours_poll(struct neighbours *n, const struct gen_streams *streams);

// Whether each stream with dst_mac auto has somebody to ask for. 0, or -EINVAL with a sentence that
// begins with the stream.
int neighbours_check(const struct port_table_settings *settings, const struct gen_streams *streams,
	struct error *error);
// Asks for the MAC addresses that streams want, again and again, and writes them into their
// recipes. -EHOSTUNREACH with a sentence when one does not answer for NEIGHBOURS_PATIENCE_MS. The
// workers must run.
enum { NEIGHBOURS_PATIENCE_MS = 3000, NEIGHBOURS_AGAIN_MS = 200 };
int neighbours_resolve(struct neighbours *n, struct gen_streams *streams, struct error *error);

// --- What both of its files share.

// The link-local address that follows from a MAC address (RFC 4291, appendix A).
struct wire_addr neighbours_link_local(const struct wire_mac *mac);
bool neighbours_are_on_link(const struct port_settings *port, const struct wire_addr *addr);
// Gives a question or an answer to the port's worker.
void neighbours_say(struct neighbours *n, unsigned port, const struct wire_neighbour *said);
