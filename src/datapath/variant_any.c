// CPUs without vector files of their own. Control thread.
#include "datapath/variant.h"

const struct datapath_variant *datapath_choose_variant(void)
{
	return &datapath_scalar;
}
