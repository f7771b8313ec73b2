// What is logged while a piece of code runs.
#pragma once

#include <sstream>
#include <string>

#include "sparsight/core/log.h"

namespace sparsight::testing {

template <class Work>
std::string collect_warnings(Work work) {
  std::ostringstream text;
  LogSettings settings;
  settings.stream = &text;
  set_log(settings);
  work();
  set_log(default_log_settings());
  return text.str();
}

}  // namespace sparsight::testing
