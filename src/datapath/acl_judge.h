// Judges packets by the access lists of their interfaces. Internal to the datapath. Worker.
#pragma once

#include "acl/acl_fast.h"
#include "datapath/burst.h"

// Packets that a list has stopped, a bit for each, and their verdicts.
struct acl_verdicts {
	uint64_t stopped;
	uint8_t verdict[BURST_MAX];
};

// Judges the packets of a burst by the lists of their input interfaces, or of those to which their
// hops lead; counts them, and sets marks and mirrors of those that may pass. `view` is not NULL.
void acl_judge(struct worker *w, const struct acl_view *view, struct burst *b,
	enum acl_direction direction, struct acl_verdicts *out);
// Drops or punts the packet of a burst of one, whose lookups are done: Linux would get it with this
// verdict, and forward it, so the lists of both of its interfaces and its flow judge it first.
void acl_stop_linuxs(struct worker *w, struct burst *one, enum verdict verdict);
// Drops or punts the packet of a burst of one without a lookup: Linux gets it with this verdict,
// and takes it for itself, so rules with `local` of its input interface judge it first.
void acl_stop_local(struct worker *w, struct burst *one, enum verdict verdict);
// Removes the packets that acl_judge has stopped in this direction.
void acl_stop(struct worker *w, struct burst *b, enum acl_direction direction,
	const struct acl_verdicts *verdicts);
