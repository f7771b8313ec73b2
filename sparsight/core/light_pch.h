// The headers that sources without torch modules or loops share, precompiled once. They include what they use as if it
// were not there.
#pragma once
#include <ATen/ATen.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <thread>
