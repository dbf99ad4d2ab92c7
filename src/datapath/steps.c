// The steps of the datapath, in order; each worker runs its own list of those that are enabled.
// Worker; names: any thread.
#include "datapath/steps.h"

#include "datapath/datapath.h"

enum { IP4 = 1, IP6 = 2, BOTH = IP4 | IP6 };

static bool has_taps(const struct worker *w)
{
	return w->tap;
}

// The one table. `has`: the step runs on bursts that have one of these. Phases of the worker itself
// have no function; their rows name what it does.
static const struct step {
	const char *name; // in counters, verdicts and documents
	enum phase phase;
	uint8_t families;
	uint16_t has;                              // enum burst_has
	bool (*is_enabled)(const struct worker *); // NULL: always
	void (*run)(struct worker *w, struct burst *b);
} steps[] = {
	{"rx", PHASE_RX, BOTH, BURST_PACKETS, NULL, NULL},
	{"xconnect", PHASE_XCONNECT, BOTH, BURST_PACKETS, NULL, NULL},
	{"parse", PHASE_PARSE, BOTH, BURST_PACKETS, NULL, NULL},
	{"discovery", PHASE_BEFORE, IP6, BURST_DISCOVERY, has_taps, datapath_discovery},
	{"lookup", PHASE_LOOKUP, BOTH, BURST_PACKETS, NULL, datapath_lookup},
	{"source", PHASE_AFTER, IP4, BURST_OWN_SOURCES, NULL, datapath_source},
	{"rpf", PHASE_AFTER, BOTH, BURST_RPF, NULL, datapath_rpf},
	{"check", PHASE_AFTER, BOTH, BURST_PACKETS, NULL, datapath_check},
	{"redirect", PHASE_AFTER, BOTH, BURST_REDIRECTS, has_taps, datapath_redirect},
	{"rewrite", PHASE_AFTER, BOTH, BURST_PACKETS, NULL, datapath_rewrite},
	{"trim", PHASE_AFTER, BOTH, BURST_TRAILERS, NULL, datapath_trim},
	{"untag", PHASE_AFTER, BOTH, BURST_TAGS, NULL, datapath_untag},
	{"fragment", PHASE_AFTER, IP4, BURST_FRAGMENTS, NULL, datapath_fragment},
	{"encap", PHASE_AFTER, BOTH, BURST_TEMPLATES, NULL, datapath_encap},
	{"send", PHASE_AFTER, BOTH, BURST_PACKETS, NULL, datapath_send},
	{"free", PHASE_FREE, BOTH, BURST_PACKETS, NULL, NULL},
};
_Static_assert(ARRAY_LEN(steps) <= STATS_MAX_STEPS, "a counter for each step");

const char *datapath_step_name(unsigned step)
{
	return step < ARRAY_LEN(steps) ? steps[step].name : NULL;
}

static bool is_in(const struct step *step, const struct worker *w, uint8_t family)
{
	return step->run && step->families & family && (!step->is_enabled || step->is_enabled(w));
}

// The rows of the table are in the order of phases.
static void enable(struct worker *w, struct enabled_steps *list, uint8_t family)
{
	unsigned n = 0, i = 0;

	for (unsigned phase = 0; phase < N_PHASES; phase++) {
		list->first[phase] = n;
		w->step_of_phase[phase] = i;
		for (; i < ARRAY_LEN(steps) && steps[i].phase == phase; i++)
			if (is_in(&steps[i], w, family))
				list->step[n++] =
					(struct enabled_step){steps[i].run, steps[i].has, i};
	}
	list->first[N_PHASES] = n;
}

void datapath_enable_steps(struct worker *w)
{
	enable(w, &w->steps[0], IP4);
	enable(w, &w->steps[1], IP6);
}
