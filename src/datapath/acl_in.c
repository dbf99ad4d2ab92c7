// Applies the access lists of input interfaces. Worker.
#include "datapath/acl_judge.h"
#include "datapath/steps.h"

void datapath_acl_in(struct worker *w, struct burst *b)
{
	const struct acl_view *view = acl_live_view(w->acls);
	struct acl_judgement judgement;

	if (likely(!view || !view->has[ACL_IN]))
		return;
	if (b->has_one_iif && !acl_view_list(view, ACL_IN, b->iif[0]))
		return;
	acl_judge(w, view, b, ACL_IN, &judgement);
	if (judgement.stopped)
		acl_stop(w, b, &judgement);
}
