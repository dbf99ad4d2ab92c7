// CPUs without vector files of their own. Control thread.
#include "path/parse.h"

path_parse_fn path_choose_parse(void)
{
	return parse_scalar;
}
