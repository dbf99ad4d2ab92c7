// Applies the access lists of input interfaces, then their tc filters. Worker.
#include "datapath/acl_judge.h"
#include "datapath/steps.h"

static void judge_lists(struct worker *w, struct burst *b)
{
	const struct acl_view *view = acl_live_view(w->acls);
	struct acl_verdicts verdicts;

	if (likely(!view || !acl_view_has(view, ACL_IN)))
		return;
	if (b->has_one_iif && !acl_view_list(view, ACL_IN, b->iif[0]))
		return;
	const struct acl_basis basis = acl_basis_of(w, view, ACL_IN);

	acl_judge(&basis, b, burst_all(b), &verdicts);
	if (verdicts.stopped)
		acl_stop(w, b, ACL_IN, &verdicts);
}

void datapath_acl_in(struct worker *w, struct burst *b)
{
	judge_lists(w, b);
	acl_judge_tc(w, b, ACL_IN);
}
