// The configuration that a command line gives.
#pragma once

#include "cli/config_arguments.h"
#include "sparsight/core/config.h"

namespace sparsight::cli {

Config read_config(const ConfigArguments& arguments);    // all defaults if there is no file
Json resolved_config(const ConfigArguments& arguments);  // checked against config_sections()

}  // namespace sparsight::cli
