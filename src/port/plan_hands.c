// Workers that hand what they receive to other workers. Pure.
#include "port/plan.h"

#include <errno.h>

static int find_worker(const struct port_table_settings *settings, int core)
{
	for (unsigned i = 0; i < settings->n_workers; i++)
		if (settings->workers[i].core == core)
			return i;
	return -1;
}

static int hand(const struct port_table_settings *settings, struct plan *plan, unsigned worker,
	int core, struct error *error)
{
	struct plan_worker *l = &plan->workers[worker];
	const int to = find_worker(settings, core);

	if (to < 0)
		return error_set(error, -ENOENT,
			"workers[%u]: hands_to names core %d, but no worker runs there; add one "
			"with core: %d",
			worker, core, core);
	if (to == (int)worker)
		return error_set(error, -EINVAL,
			"workers[%u]: hands_to names its own core %d; name the cores of other "
			"workers",
			worker, core);
	for (unsigned i = 0; i < l->n_hands_to; i++)
		if (l->hands_to[i] == to)
			return error_set(error, -EEXIST,
				"workers[%u]: hands_to names core %d twice; name each worker once",
				worker, core);
	l->hands_to[l->n_hands_to++] = to;
	plan->workers[to].is_handed = true;
	return 0;
}

int plan_hands(const struct port_table_settings *settings, struct plan *plan, struct error *error)
{
	int err = 0;

	for (unsigned i = 0; i < settings->n_workers && !err; i++)
		for (unsigned k = 0; k < settings->workers[i].n_hands_to && !err; k++)
			err = hand(settings, plan, i, settings->workers[i].hands_to[k], error);
	return err;
}

// Whether the file says what each worker receives or hands on, so that one without work is a
// mistake.
static bool is_explicit(const struct port_table_settings *settings, unsigned worker)
{
	for (unsigned i = 0; i < settings->n_workers; i++)
		if (settings->workers[i].n_hands_to)
			return true;
	return settings->workers[worker].receives_nothing;
}

int plan_check_hands(const struct port_table_settings *settings, const struct plan *plan,
	struct error *error)
{
	for (unsigned i = 0; i < settings->n_workers; i++) {
		const struct plan_worker *l = &plan->workers[i];

		if (l->n_queues)
			continue;
		if (l->n_hands_to)
			return error_set(error, -EINVAL,
				"workers[%u]: core %d has hands_to, but receives nothing that it "
				"could hand on; give it queues (receives)",
				i, l->core);
		if (!l->is_handed && !settings->workers[i].shapes && is_explicit(settings, i))
			return error_set(error, -EINVAL,
				"workers[%u]: core %d receives nothing and is handed nothing; give "
				"it queues (receives), name it in hands_to of another worker, or "
				"remove it",
				i, l->core);
	}
	return 0;
}
