// Applies the access lists of output interfaces, then their tc filters. Packets that were punted
// before, and that Linux forwards, are judged by lists when they are punted (burst_drop_judged),
// and by filters in Linux. Worker.
#include "datapath/acl_judge.h"
#include "datapath/steps.h"

static void judge_lists(struct worker *w, struct burst *b)
{
	const struct acl_view *view = acl_live_view(w->acls);
	struct acl_verdicts verdicts;

	if (likely(!view || !acl_view_has(view, ACL_OUT)))
		return;
	const struct acl_basis basis = acl_basis_of(w, view, ACL_OUT);

	acl_judge(&basis, b, burst_all(b), &verdicts);
	if (verdicts.stopped)
		acl_stop(w, b, ACL_OUT, &verdicts);
}

void datapath_acl_out(struct worker *w, struct burst *b)
{
	judge_lists(w, b);
	acl_judge_tc(w, b, ACL_OUT);
}
