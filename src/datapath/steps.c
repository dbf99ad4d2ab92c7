// The step table; each worker runs its own list of those that are enabled.
// Worker; names: any thread.
#include "datapath/steps.h"

#include "datapath/datapath.h"

enum { IP4 = 1, IP6 = 2, BOTH = IP4 | IP6 };

static bool has_taps(const struct worker *w)
{
	return w->tap;
}

static bool has_flows(const struct worker *w)
{
	return w->flows;
}

static bool can_learn(const struct worker *w)
{
	return w->flows && w->learn;
}

static bool has_acls(const struct worker *w)
{
	return w->acls;
}

static bool has_subscribers(const struct worker *w)
{
	return w->qos;
}

static bool has_shaper(const struct worker *w)
{
	return w->shape;
}

#define PHASE_ROW(name, phase) {#name, phase, BOTH, BURST_PACKETS, NULL, NULL},
#define STEP_ROW(name, phase, families, has, is_enabled)                                           \
	{#name, phase, families, has, is_enabled, datapath_##name},

// `has`: the step runs on bursts that have one of these.
static const struct step {
	const char *name; // in counters, verdicts and documents
	enum phase phase;
	uint8_t families;
	uint32_t has;                              // enum burst_has
	bool (*is_enabled)(const struct worker *); // NULL: always
	void (*run)(struct worker *w, struct burst *b);
} steps[] = {DATAPATH_STEPS(PHASE_ROW, STEP_ROW)};
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
	unsigned n = 0, phase = 0;

	for (unsigned i = 0; i < ARRAY_LEN(steps); i++) {
		for (; phase <= steps[i].phase; phase++)
			list->first[phase] = n;
		if (is_in(&steps[i], w, family))
			list->step[n++] = (struct enabled_step){steps[i].run, steps[i].has, i};
	}
	list->first[N_PHASES] = n;
}

// Finds, for each phase, the row that gets its cycles if the driver runs it as a whole.
static void find_first_rows(struct worker *w)
{
	for (unsigned i = ARRAY_LEN(steps); i--;)
		if (!steps[i].run || is_in(&steps[i], w, BOTH))
			w->step_of_phase[steps[i].phase] = i;
}

void datapath_enable_steps(struct worker *w)
{
	enable(w, &w->steps[0], IP4);
	enable(w, &w->steps[1], IP6);
	find_first_rows(w);
	for (unsigned i = 0; i < N_POLLS; i++)
		w->polls[i].flows = w->flows ? &w->poll_flows[i] : NULL;
}
