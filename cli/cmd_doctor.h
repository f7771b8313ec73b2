// `sparsight doctor`
#pragma once

namespace sparsight::cli {

void run_doctor();

}  // namespace sparsight::cli
