// For CPUs without vectorised variants. Control thread.
#include "gen/recognise.h"

recognise_fn *recognise_choose(void)
{
	return recognise_scalar;
}
