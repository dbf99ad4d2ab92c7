// Applies the access lists of input interfaces. Worker.
#include "datapath/acl_judge.h"
#include "datapath/steps.h"

void datapath_acl_in(struct worker *w, struct burst *b)
{
	const struct acl_view *view = acl_live_view(w->acls);
	struct acl_verdicts verdicts;

	if (likely(!view || !acl_view_has(view, ACL_IN)))
		return;
	if (b->has_one_iif && !acl_view_list(view, ACL_IN, b->iif[0]))
		return;
	acl_judge(w, view, b, ACL_IN, &verdicts);
	if (verdicts.stopped)
		acl_stop(w, b, ACL_IN, &verdicts);
}
