// Applies the access lists of output interfaces. Packets that were punted before, and that Linux
// forwards, are judged when they are punted (burst_drop_judged). Worker.
#include "datapath/acl_judge.h"
#include "datapath/steps.h"

void datapath_acl_out(struct worker *w, struct burst *b)
{
	const struct acl_view *view = acl_live_view(w->acls);
	struct acl_verdicts verdicts;

	if (likely(!view || !acl_view_has(view, ACL_OUT)))
		return;
	acl_judge(w, view, b, ACL_OUT, &verdicts);
	if (verdicts.stopped)
		acl_stop(w, b, ACL_OUT, &verdicts);
}
