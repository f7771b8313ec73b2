#include <nlohmann/json.hpp>

#include "cli/cmd_compare.h"
#include "cli/output.h"
#include "sparsight/core/json_fields.h"
#include "sparsight/eval/compare_records.h"
#include "sparsight/report/run/comparison_text.h"

namespace sparsight::cli {

void run_compare(const CompareArguments& arguments) {
  const Json result = compare_records(read_compared(arguments.a), read_compared(arguments.b));
  output() << (arguments.json ? json_text(result) + "\n" : comparison_text(result));
}

}  // namespace sparsight::cli
