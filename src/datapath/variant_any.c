// For CPUs without vector code. Control thread.
#include "datapath/variant.h"

const struct datapath_variant *datapath_choose_variant(void)
{
	return &datapath_scalar;
}
