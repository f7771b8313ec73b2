#include "cli/output.h"

#include <iostream>

#include "sparsight/core/printable_stream.h"

namespace sparsight::cli {

std::ostream& output() {
  static PrintableStream stream(std::cout);
  return stream;
}

}  // namespace sparsight::cli
