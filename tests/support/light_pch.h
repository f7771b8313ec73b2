// The headers that tests without torch modules share, precompiled once. Tests include what they use as if it were not
// there.
#pragma once
#include <gtest/gtest.h>

#include "sparsight/core/light_pch.h"
