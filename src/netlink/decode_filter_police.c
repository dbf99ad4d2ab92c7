// The action police of tc as the policer of a rule. Pure.
#include "netlink/decode_filter_inside.h"

#include <linux/pkt_cls.h>
#include <linux/pkt_sched.h>
#include <stdio.h>
#include <string.h>

enum { TICK_NS = 64, LONGEST = UINT16_MAX }; // the kernel's unit of bursts; bytes of any frame
#define NS 1000000000ull

struct police_draft {
	struct tc_police parms;
	uint64_t rate, packet_rate, packet_burst; // bytes/s, packets/s, ticks; 0: not there
	uint32_t average, within;
	bool has_parms, has_peak;
};
#define AT(field) offsetof(struct police_draft, field)

static bool take_parms(void *out, const struct piece *value)
{
	struct police_draft *draft = out;

	if (value->n < sizeof(draft->parms))
		return false;
	memcpy(&draft->parms, value->bytes, sizeof(draft->parms));
	draft->has_parms = true;
	return true;
}

static bool take_u64(uint64_t *out, const struct piece *value)
{
	if (value->n < sizeof(*out))
		return false;
	memcpy(out, value->bytes, sizeof(*out));
	return true;
}

static bool take_rate(void *out, const struct piece *value)
{
	return take_u64(&((struct police_draft *)out)->rate, value);
}

static bool take_packet_rate(void *out, const struct piece *value)
{
	return take_u64(&((struct police_draft *)out)->packet_rate, value);
}

static bool take_packet_burst(void *out, const struct piece *value)
{
	return take_u64(&((struct police_draft *)out)->packet_burst, value);
}

static const struct want want_police[] = {
	[TCA_POLICE_TBF] = {WANT_TAKE, .take = take_parms},
	[TCA_POLICE_AVRATE] = {WANT_U32, .at = AT(average)},
	[TCA_POLICE_RESULT] = {WANT_U32, .at = AT(within)},
	[TCA_POLICE_RATE64] = {WANT_TAKE, .take = take_rate},
	[TCA_POLICE_PEAKRATE64] = {WANT_THERE, .at = AT(has_peak)},
	[TCA_POLICE_PKTRATE64] = {WANT_TAKE, .take = take_packet_rate},
	[TCA_POLICE_PKTBURST64] = {WANT_TAKE, .take = take_packet_burst},
};
static const struct wants wants_police = WANTS(want_police);

static void refuse_rest(const struct police_draft *draft, struct event_filter *out)
{
	const struct tc_ratespec *rate = &draft->parms.rate;
	const uint8_t layer = rate->linklayer & TC_LINKLAYER_MASK;

	if (draft->parms.peakrate.rate || draft->has_peak)
		filter_refuse(out, "action police peakrate");
	if (draft->average)
		filter_refuse(out, "action police avrate");
	if (layer != TC_LINKLAYER_UNAWARE && layer != TC_LINKLAYER_ETHERNET)
		filter_refuse(out, "action police linklayer other than ethernet");
	if (rate->mpu)
		filter_refuse(out, "action police mpu");
}

// Linux has bursts as the time that they take at the rate, in ticks, cut to whole ones. Here they
// are rounded, so that what was a whole number of bytes or packets is the same again.
static void set_burst(struct acl_police *police, uint64_t ticks, uint64_t rate,
	struct event_filter *out)
{
	const unsigned __int128 all = (unsigned __int128)ticks * TICK_NS * rate + NS / 2;

	if (ticks > UINT32_MAX || all / NS > POLICE_MOST_BURST)
		filter_refuse(out, "action police with a burst of more than 4 GB");
	police->burst = (uint64_t)(all / NS);
	if (!police->burst)
		filter_refuse(out, "action police with a burst of 0");
}

static void read_rate(const struct police_draft *draft, struct acl_police *police,
	struct event_filter *out)
{
	const uint64_t rate = draft->rate ? draft->rate : draft->parms.rate.rate;
	const uint64_t most = POLICE_MOST_RATE / 8;

	if (!rate == !draft->packet_rate)
		filter_refuse(out, "action police without a rate, or with two");
	if (rate > most || draft->packet_rate > most)
		filter_refuse(out, "action police with a rate of more than 400 Gbit/s");
	if (filter_is_refused(out))
		return;
	police->packets = !rate;
	police->rate = rate ? rate * 8 : draft->packet_rate;
	police->overhead = rate ? draft->parms.rate.overhead : 0;
	if (rate)
		set_burst(police, draft->parms.burst, rate, out);
	else
		set_burst(police, draft->packet_burst, draft->packet_rate, out);
}

// Filters that use one action, by its index, share its bucket.
bool filter_read_police(struct event_filter *filter, const struct piece *options,
	struct filter_police *out)
{
	struct police_draft draft = {.has_parms = false};
	const struct tc_police *parms = &draft.parms;

	*out = (struct filter_police){.above = 0};
	if (!attrs_take(&wants_police, options, &draft) || !draft.has_parms)
		return false;
	refuse_rest(&draft, filter);
	read_rate(&draft, &out->police, filter);
	out->police.mtu = parms->mtu > LONGEST ? 0 : parms->mtu;
	snprintf(out->police.bucket, sizeof(out->police.bucket), "%u", parms->index);
	out->within = (int)draft.within;
	out->above = parms->action;
	return true;
}
