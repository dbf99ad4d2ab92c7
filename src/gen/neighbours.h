// Hosts simulated by ports with addresses: answers ARP requests and neighbour solicitations for
// them, and resolves the MAC address of the next hop of streams with "dst_mac: auto". Control
// thread.
#pragma once

#include "gen/queue.h"
#include "gen/stream.h"
#include "port/port.h"
#include "wire/neighbour.h"

// The next hop of a stream, on its port and with its VLAN tag.
struct neighbour {
	struct wire_addr addr;
	struct wire_mac mac; // valid if is_known
	uint16_t vlan_tag;
	uint8_t port;
	bool has_vlan, is_known;
};

struct neighbours {
	const struct port_table_settings *settings; // borrowed
	struct post *post[PORT_MAX];                // owned; NULL: the port has no addresses
	uint64_t n_posted;                          // atomic: frames queued for workers to send
	struct wire_mac mac[PORT_MAX];
	uint64_t n_malformed[PORT_MAX];
	unsigned n_wanted;
	struct neighbour wanted[GEN_MAX_STREAMS]; // of the current list of streams
};

struct neighbours_terms {
	struct port_table *ports;
	const struct port_table_settings *settings;
	const uint8_t *worker_of; // by port index
};
// 0, or -ENOMEM with `error` set. Owner: caller, neighbours_free, also after an error.
int neighbours_make(struct neighbours *n, const struct neighbours_terms *terms,
	struct error *error);
void neighbours_free(struct neighbours *n);

// Processes frames received by workers, at most NEIGHBOURS_AT_ONCE per port. Answers requests for
// addresses of ports, and for source and destination addresses of streams on that port, within the
// port's networks.
enum { NEIGHBOURS_AT_ONCE = 32 };
void neighbours_poll(struct neighbours *n, const struct gen_streams *streams);

// Whether each stream with dst_mac auto has a next hop to resolve. 0, or -EINVAL with `error` set,
// beginning with the stream.
int neighbours_check(const struct port_table_settings *settings, const struct gen_streams *streams,
	struct error *error);
// Resolves the MAC addresses required by streams, with retransmissions, and writes them into their
// recipes. -EHOSTUNREACH with `error` set if one does not answer within NEIGHBOURS_PATIENCE_MS. The
// workers must be running.
enum { NEIGHBOURS_PATIENCE_MS = 3000, NEIGHBOURS_AGAIN_MS = 200 };
int neighbours_resolve(struct neighbours *n, struct gen_streams *streams, struct error *error);

// --- Shared by neighbours.c and resolve.c.

// The link-local address derived from a MAC address (RFC 4291, appendix A).
struct wire_addr neighbours_link_local(const struct wire_mac *mac);
bool neighbours_are_on_link(const struct port_settings *port, const struct wire_addr *addr);
// Queues a request or a reply for the port's worker.
void neighbours_say(struct neighbours *n, unsigned port, const struct wire_neighbour *said);
