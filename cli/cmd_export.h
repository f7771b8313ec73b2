// `sparsight export`
#pragma once

#include "sparsight/infer/export_model.h"

namespace sparsight::cli {

struct ExportArguments {
  ExportRequest request;
  std::string data;  // data.root, or ""
  bool json = false;
};

void run_export(const ExportArguments& arguments);

}  // namespace sparsight::cli
