// CPUs without vector files of their own. Control thread.
#include "path/variant.h"

const struct path_variant *path_choose_variant(void)
{
	return &path_scalar;
}
