// Links. Control thread.
#pragma once

#include "fib/fib.h"
