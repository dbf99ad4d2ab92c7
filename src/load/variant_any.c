// Where there are no vector files. Control thread.
#include "load/recognise.h"

recognise_fn *recognise_choose(void)
{
	return recognise_scalar;
}
